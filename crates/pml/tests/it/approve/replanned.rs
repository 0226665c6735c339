//! What another plan adds is asked for, and asked of whoever may answer at the door it came through.

use serde_json::{Value, json};

use super::{
    asked, by_api, code, hits, home, over_http, refused, remember_as_person, say, saying, state, yes,
};
use crate::harness::{Client, Home, Served};

/// A document that only reads and waits after its first layer.
fn reads_only(client: &mut Client) -> Value {
    let sum = |id: &str, after: Value| json!({"id": id, "tool": "math:evaluate", "arguments": {"expression": "1+1"}, "dependsOn": after});
    let reply = document(client, &json!([sum("a", json!([])), sum("b", json!(["a"]))]));
    assert_eq!(reply["status"], "layer_complete", "{reply}");
    reply
}

#[track_caller]
fn document(client: &mut Client, tasks: &Value) -> Value {
    let request = json!({
        "intent": "look", "implementation": {"type": "dag", "dagStructure": {"tasks": tasks}},
        "options": {"perLayerValidation": true},
    });
    client.call("pml_execute", &request)["structuredContent"].clone()
}

fn pay(amount: u32) -> Value {
    json!({"tasks": [{"id": "pay", "tool": "s:echo", "arguments": {"amount": amount}}]})
}

fn replan(reply: &Value, document: &Value) -> Value {
    json!({"workflow_id": reply["workflowId"], "dagStructure": document})
}

/// Nobody but a person can allow what the run asks now.
#[track_caller]
fn is_a_persons(home: &Home, client: &mut Client, served: &Served, asks: &Value) {
    assert_eq!(asks["question"]["by"], "human", "{asks}");
    assert_eq!(code(&over_http(served, "pml_continue", &saying(asks, &json!({"approved": true})))), "DENIED");
    let remember = json!({"answer": {"approved": true, "remember": {"only": "tool", "anyArguments": true}}});
    assert_eq!(code(&over_http(served, "pml_continue", &saying(asks, &remember))), "DENIED");
    assert_eq!(by_api(served, asks, &json!({"approved": true})).0, 403);
    assert_eq!(code(&yes(client, asks)), "DENIED", "nor may the client whose run it was");
    assert_ne!(home.run(&["runs", "approve", asks["workflowId"].as_str().unwrap()]).code, 0);
    assert_eq!((state(home, asks).as_str(), hits(home), refused(home, asks)), ("waiting", 0, 4));
    assert_eq!(home.run(&["rules", "list", "--json"]).stdout.trim(), "[]");
}

#[test]
fn another_plan_through_http_makes_a_clients_run_a_persons() {
    let home = home("");
    let (mut client, served) = (home.stdio(&[]), home.serve(&[]));
    let waiting = reads_only(&mut client);
    let asks = over_http(&served, "pml_replan", &replan(&waiting, &pay(100)));
    assert_eq!(asked(&asks), [r#"s:echo {"amount":100}"#]);
    is_a_persons(&home, &mut client, &served, &asks);
    // Also for those who take the run up again.
    client.child.kill().unwrap();
    drop(served);
    let (mut client, served) = (home.stdio(&[]), home.serve(&[]));
    assert_eq!(code(&yes(&mut client, &asks)), "DENIED");
    assert_eq!(
        code(&over_http(&served, "pml_continue", &saying(&asks, &json!({"approved": true})))),
        "DENIED"
    );
    let person = home.run_as_person(&["runs", "approve", asks["workflowId"].as_str().unwrap()]);
    assert_eq!((person.code, hits(&home)), (0, 1), "{person:?}");
}

#[test]
fn another_plan_through_its_own_door_leaves_a_run_as_it_was_and_never_makes_it_looser() {
    let place = home("");
    let mut client = place.stdio(&[]);
    let waiting = reads_only(&mut client);
    let asks = client.call("pml_replan", &replan(&waiting, &pay(1)))["structuredContent"].clone();
    assert_eq!(asks["question"]["by"], "client", "{asks}");
    assert_eq!((yes(&mut client, &asks)["status"].as_str(), hits(&place)), (Some("success"), 1));

    let place = home("[approvals]\nby = \"human\"\n");
    let mut client = place.stdio(&[]);
    let waiting = reads_only(&mut client);
    client.finish();
    super::configure(&place, "[approvals]\nby = \"client\"\n");
    let mut client = place.stdio(&[]);
    let asks = client.call("pml_replan", &replan(&waiting, &pay(1)))["structuredContent"].clone();
    assert_eq!(asks["question"]["by"], "human", "{asks}");
    assert_eq!((code(&yes(&mut client, &asks)), hits(&place)), ("DENIED", 0));
}

/// A document whose first layer calls `s:echo` and that waits after it.
fn pays_first(client: &mut Client) -> Value {
    document(
        client,
        &json!([
            {"id": "first", "tool": "s:echo", "arguments": {"amount": 1}},
            {"id": "rest", "tool": "math:evaluate", "arguments": {"expression": "1+1"}, "dependsOn": ["first"]},
        ]),
    )
}

#[test]
fn what_was_allowed_for_one_plan_allows_nothing_of_the_next() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let asks = pays_first(&mut client);
    let waiting = say(&mut client, &asks, &json!({"approved": true, "answer": {"anyArguments": 10}}));
    assert_eq!((&waiting["status"], hits(&home)), (&json!("layer_complete"), 1), "{waiting}");
    let again = client.call("pml_replan", &replan(&waiting, &pay(1_000)))["structuredContent"].clone();
    assert_eq!((asked(&again), hits(&home)), (vec![r#"s:echo {"amount":1000}"#.to_owned()], 1));
    assert_eq!((yes(&mut client, &again)["status"].as_str(), hits(&home)), (Some("success"), 2));
}

#[test]
fn a_rule_for_the_code_that_was_asked_for_allows_nothing_of_another_plan() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let asks = pays_first(&mut client);
    remember_as_person(&home, &asks, &["code", "--whatever"]);
    let waiting = say(&mut client, &asks, &json!({}));
    assert_eq!((&waiting["status"], hits(&home)), (&json!("layer_complete"), 1), "{waiting}");
    let again = client.call("pml_replan", &replan(&waiting, &pay(1_000)))["structuredContent"].clone();
    assert_eq!((asked(&again), hits(&home)), (vec![r#"s:echo {"amount":1000}"#.to_owned()], 1));
    // The document it was made for is not asked for again.
    let unasked = pays_first(&mut client);
    assert_eq!((&unasked["status"], hits(&home)), (&json!("layer_complete"), 2), "{unasked}");
}
