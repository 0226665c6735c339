//! Direct calls of clients of the stateless era, which get the question for a result.

use serde_json::{Value, json};

use super::{allow, hits, home, pay, runs, waiting};
use crate::harness::{Served, text};
use crate::http::modern_as;

/// A call by a client that can ask its user, with this token.
pub(super) fn call(served: &Served, token: &str, params: &Value) -> Value {
    let capabilities = json!({"elicitation": {}});
    modern_as(served, token, &json!({"name": "test", "capabilities": capabilities}), "tools/call", params)
        .response()
}

/// The same request with what the question was answered.
fn retry(params: &Value, asked: &Value, answer: &Value) -> Value {
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let name = asked["inputRequests"].as_object().unwrap().keys().next().unwrap();
    let mut again = params.clone();
    again["requestState"] = asked["requestState"].clone();
    again["inputResponses"] = json!({name.clone(): answer});
    again
}

/// What the tool gave, without what the protocol adds.
fn own(result: &Value) -> Value {
    let mut own = result.clone();
    own.as_object_mut().unwrap().remove("resultType");
    own["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/serverInfo");
    own
}

#[test]
fn the_retry_goes_on_with_the_same_run_and_gives_the_tools_own_result() {
    let home = home("");
    let key = home.key("desk", true, false);
    let served = home.serve(&[]);
    let asked = call(&served, &key, &pay())["result"].clone();
    let again = retry(&pay(), &asked, &allow());
    assert_eq!((hits(&home), runs(&home).len()), (0, 1));

    let mut tampered = again.clone();
    let state = again["requestState"].as_str().unwrap();
    let flipped = if state.ends_with('0') { "1" } else { "0" };
    tampered["requestState"] = json!(format!("{}{flipped}", &state[..state.len() - 1]));
    let mut other = again.clone();
    other["arguments"] = json!({"amount": 5000});
    for wrong in [tampered, other] {
        let refused = call(&served, &key, &wrong);
        assert!(refused.get("error").is_some(), "{refused}");
    }
    // Who has not the key of an interactive client cannot answer, even with its state.
    let refused = call(&served, &served.token, &again)["result"].clone();
    assert!(text(&refused).starts_with("DENIED"), "{refused}");
    assert_eq!((hits(&home), runs(&home).len()), (0, 1));

    let done = call(&served, &key, &again)["result"].clone();
    assert_eq!(own(&done), serde_json::from_str::<Value>(super::PAID).unwrap());
    let repeated = call(&served, &key, &again)["result"].clone();
    assert_eq!(own(&repeated), own(&done), "whoever lost the reply hears it again");
    assert_eq!((hits(&home), runs(&home).len()), (1, 1));
}

#[test]
fn a_no_and_a_dismissal_are_told_in_text() {
    let home = home("");
    let key = home.key("desk", true, false);
    let served = home.serve(&[]);
    let asked = call(&served, &key, &pay())["result"].clone();
    let dismissed =
        call(&served, &key, &retry(&pay(), &asked, &json!({"action": "cancel"})))["result"].clone();
    waiting(&dismissed);
    let denied = call(&served, &key, &retry(&pay(), &asked, &json!({"action": "decline"})))["result"].clone();
    assert!(text(&denied).starts_with("DENIED") && denied["isError"] == true, "{denied}");
    assert!(denied.get("structuredContent").is_none(), "{denied}");
    assert_eq!(hits(&home), 0);
}

#[test]
fn a_tool_can_ask_its_own_question_after_it_was_allowed() {
    let home = home("");
    let key = home.key("desk", true, false);
    let served = home.serve(&[]);
    let confirm = json!({"name": "danger:confirm", "arguments": {}});
    let first = call(&served, &key, &confirm)["result"].clone();
    let second = call(&served, &key, &retry(&confirm, &first, &allow()))["result"].clone();
    let asked = second["inputRequests"].as_object().unwrap().values().next().unwrap();
    let question = "Server `danger` asks (the answer goes to server `danger`): Really pay?";
    assert_eq!(asked["params"]["message"], question, "{second}");
    let done = call(&served, &key, &retry(&confirm, &second, &json!({"action": "accept", "content": {}})));
    assert_eq!(text(&done["result"]), "user said accept", "{done}");
    assert_eq!((hits(&home), runs(&home).len()), (1, 1));
}

#[test]
fn a_client_whose_users_answer_does_not_count_is_not_asked() {
    let home = home("");
    let served = home.serve(&[]);
    let key = home.key("plain", false, false);
    crate::harness::eventually("the key is known", || {
        let who = json!({"name": "test", "capabilities": {}});
        modern_as(&served, &key, &who, "tools/list", &json!({})).status == 200
    });
    for token in [&key, &served.token] {
        waiting(&call(&served, token, &pay())["result"]);
    }
    assert_eq!(hits(&home), 0);
}
