//! Clients that ask their users: by a question of the older era, by `input_required` of the stateless one.

use serde_json::{Value, json};

use super::{ONE_CALL, asked, code, execute, hits, home, request, state, yes};
use crate::harness::{Client, Home, Served, eventually};
use crate::http::{modern_as, modern_by};

/// A client of the older era that calls itself `name` and can ask its user.
pub(super) fn able(home: &Home, name: &str) -> Client {
    opened(home.stdio_unopened(&[]), name)
}

/// A client of the older era with a key that says that a person sits in front of it.
pub(super) fn desk(home: &Home) -> Client {
    home.key("desk", true, false);
    opened(home.stdio_unopened(&["--key-file", "desk.key"]), "whatever it calls itself")
}

fn opened(mut client: Client, name: &str) -> Client {
    let info = json!({"name": name, "version": "1"});
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": info});
    client.request("initialize", &params);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
    client
}

/// Asks for a program and gives the number of the request.
pub(super) fn begin(client: &mut Client, code: &str, context: &Value) -> u64 {
    client.begin("tools/call", &json!({"name": "pml_execute", "arguments": request(code, context)}))
}

/// The question the gateway asks the client, and the answer to it.
#[track_caller]
pub(super) fn answer(client: &mut Client, answer: &Value) -> Value {
    let question = client.announced("elicitation/create");
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}).to_string());
    question["params"].clone()
}

#[track_caller]
pub(super) fn outcome(client: &mut Client, id: u64) -> Value {
    client.response_or_aside(id)["result"]["structuredContent"].clone()
}

#[test]
fn a_client_that_can_asks_its_user_and_does_what_they_say() {
    let home = home("");
    let mut client = able(&home, "test");
    let allow = json!({"action": "accept", "content": {"decision": "allow"}});
    let run = begin(&mut client, ONE_CALL, &json!({}));
    let question = answer(&mut client, &allow);
    let message = question["message"].as_str().unwrap();
    for words in ["`s:echo`", "line 2", r#"{"path":"x","list":[1,2]}"#] {
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(question["requestedSchema"]["properties"]["decision"]["enum"], json!(["allow", "deny"]));
    let done = outcome(&mut client, run);
    assert_eq!((&done["status"], hits(&home)), (&json!("success"), 1), "{done}");

    let no = json!({"action": "accept", "content": {"decision": "deny", "reason": "later perhaps"}});
    for (said, reason) in [(no, "later perhaps"), (json!({"action": "decline"}), "did not allow")] {
        let run = begin(&mut client, ONE_CALL, &json!({}));
        answer(&mut client, &said);
        let denied = outcome(&mut client, run);
        assert_eq!((code(&denied), hits(&home)), ("DENIED", 1), "{denied}");
        assert!(denied["error"]["message"].as_str().unwrap().contains(reason), "{denied}");
    }
    for dismissed in [json!({"action": "cancel"}), json!({"action": "accept", "content": {}}), json!({})] {
        let run = begin(&mut client, ONE_CALL, &json!({}));
        answer(&mut client, &dismissed);
        let open = outcome(&mut client, run);
        asked(&open);
        assert_eq!((state(&home, &open).as_str(), hits(&home)), ("waiting", 1), "{dismissed}");
    }
}

#[test]
fn every_question_of_a_run_reaches_the_user() {
    let home = home("");
    let mut client = able(&home, "test");
    let looped = "for (const v of args.values) await mcp.s.echo({ v });\nreturn args.values.length;";
    let run = begin(&mut client, looped, &json!({"values": [1, 2, 3]}));
    let allow = json!({"action": "accept", "content": {"decision": "allow"}});
    answer(&mut client, &allow);
    for v in 1..=3 {
        let question = answer(&mut client, &allow);
        assert!(question["message"].as_str().unwrap().contains(&format!(r#"{{"v":{v}}}"#)), "{question}");
    }
    assert_eq!((&outcome(&mut client, run)["result"], hits(&home)), (&json!(3), 3));
}

#[test]
fn nothing_in_a_question_can_hide_or_pretend() {
    let home = home("");
    let mut client = able(&home, "test");
    let hidden = "a\u{202e}b\u{1b}[2Jc\u{200b}d\ne\u{2066}f";
    let program = format!("/* \u{202e} */ return await mcp.s.echo({{ text: {} }});", json!(hidden));
    let run = begin(&mut client, &program, &json!({}));
    let question = answer(&mut client, &json!({"action": "decline"}));
    let message = question["message"].as_str().unwrap();
    for bad in ['\u{202e}', '\u{1b}', '\u{200b}', '\u{2066}'] {
        assert!(!message.contains(bad), "{bad:?} is in {message:?}");
    }
    for shown in ["202e", "200b", "2066"] {
        assert!(message.to_lowercase().contains(shown), "{shown} is not told: {message:?}");
    }
    assert_eq!((code(&outcome(&mut client, run)), hits(&home)), ("DENIED", 0));
}

#[test]
fn a_question_too_long_for_a_client_is_not_asked_in_part() {
    let home = home("");
    let mut client = able(&home, "test");
    let run = begin(
        &mut client,
        "return await mcp.s.echo({ text: args.text });",
        &json!({"text": "x".repeat(5_000)}),
    );
    let reply = outcome(&mut client, run);
    assert_eq!(
        asked(&reply),
        [format!("s:echo {}", json!({"text": "x".repeat(5_000)}))],
        "all of it is shown"
    );
    assert!(client.aside.iter().all(|message| message["method"] != "elicitation/create"));
}

#[test]
fn a_user_who_is_slower_than_another_way_sees_what_came_of_it() {
    let home = home("");
    let mut client = able(&home, "test");
    let run = begin(&mut client, ONE_CALL, &json!({}));
    let question = client.announced("elicitation/create");
    let list = home.run(&["runs", "list", "--json"]);
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    let reply = list[0].clone();
    let approved = home.run(&["runs", "approve", reply["workflowId"].as_str().unwrap()]);
    assert_eq!(approved.code, 0, "{approved:?}");
    eventually("the run is done", || state(&home, &reply) == "done");
    let late = json!({"action": "accept", "content": {"decision": "deny"}});
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": late}).to_string());
    let done = outcome(&mut client, run);
    assert_eq!((&done["status"], hits(&home)), (&json!("success"), 1), "{done}");
}

#[test]
fn a_user_is_asked_also_while_other_calls_are_under_way() {
    let home = home("");
    let mut client = able(&home, "test");
    let program = "const [waited, said] = await Promise.all([mcp.s.wait({ file: args.file }), mcp.s.echo({ v: Number(args.v) })]);\nreturn [waited, said.v];";
    let file = home.path("go");
    let run = begin(&mut client, program, &json!({"file": file, "v": "7"}));
    let allow = json!({"action": "accept", "content": {"decision": "allow"}});
    answer(&mut client, &allow);
    let question = answer(&mut client, &allow);
    assert!(question["message"].as_str().unwrap().contains(r#"{"v":7}"#), "{question}");
    eventually("the call is made while the other is under way", || hits(&home) == 1);
    std::fs::write(file, "").unwrap();
    assert_eq!(outcome(&mut client, run)["result"], json!(["waited", 7]));
}

#[test]
fn a_user_who_dismissed_a_question_is_asked_again_when_the_client_goes_on() {
    let home = home("");
    let mut client = able(&home, "test");
    let run = begin(&mut client, ONE_CALL, &json!({}));
    answer(&mut client, &json!({"action": "cancel"}));
    let open = outcome(&mut client, run);
    asked(&open);
    let again = client.begin(
        "tools/call",
        &json!({"name": "pml_continue", "arguments": {"workflow_id": open["workflowId"]}}),
    );
    answer(&mut client, &json!({"action": "accept", "content": {"decision": "allow"}}));
    assert_eq!((&outcome(&mut client, again)["status"], hits(&home)), (&json!("success"), 1));
}

#[test]
fn a_client_that_leaves_while_its_user_thinks_leaves_the_question() {
    let home = home("");
    let mut client = able(&home, "test");
    begin(&mut client, ONE_CALL, &json!({}));
    client.announced("elicitation/create");
    assert_eq!(client.finish(), 0);
    let mut next = home.stdio(&[]);
    let list: Value = serde_json::from_str(&home.run(&["runs", "list", "--json"]).stdout).unwrap();
    assert_eq!((&list[0]["state"], hits(&home)), (&json!("waiting"), 0), "{list}");
    assert_eq!((&yes(&mut next, &list[0])["status"], hits(&home)), (&json!("success"), 1));
}

#[test]
fn a_client_that_takes_its_request_back_while_its_user_thinks_ends_the_run() {
    let home = home("");
    let mut client = able(&home, "test");
    let at_the_call = "for (const v of [1, 2]) await mcp[args.server].echo({ v });\nreturn 1;";
    for (code, answers) in [(ONE_CALL, 0), (at_the_call, 1)] {
        let run = begin(&mut client, code, &json!({"server": "s"}));
        for _ in 0..answers {
            answer(&mut client, &json!({"action": "accept", "content": {"decision": "allow"}}));
        }
        client.announced("elicitation/create");
        let taken_back = json!({"requestId": run, "reason": "changed my mind"});
        let notification =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": taken_back});
        client.send(&notification.to_string());
        let listed =
            || -> Value { serde_json::from_str(&home.run(&["runs", "list", "--json"]).stdout).unwrap() };
        eventually("the run is cancelled", || listed()[0]["state"] == "cancelled");
        assert_eq!(hits(&home), answers);
    }
    // What was handed to others is theirs.
    let mut asked = request(ONE_CALL, &json!({}));
    asked["options"] = json!({"detach": true});
    let detached = client.call("pml_execute", &asked)["structuredContent"].clone();
    assert_eq!(
        (&detached["status"], state(&home, &detached)),
        (&json!("approval_required"), "waiting".to_owned())
    );
}

#[test]
fn where_only_a_person_may_answer_a_key_says_in_front_of_which_client_one_sits() {
    // What the config says of a name counts for nothing: every client can give itself that name.
    let home = home("[approvals]\nby = \"human\"\n[clients.agent]\ninteractive = true\n");
    let mut client = able(&home, "agent");
    let run = begin(&mut client, ONE_CALL, &json!({}));
    let reply = outcome(&mut client, run);
    asked(&reply);
    assert!(client.aside.iter().all(|message| message["method"] != "elicitation/create"), "it was asked");

    let mut desk = desk(&home);
    let run = begin(&mut desk, ONE_CALL, &json!({}));
    answer(&mut desk, &json!({"action": "accept", "content": {"decision": "allow"}}));
    let done = outcome(&mut desk, run);
    assert_eq!((&done["status"], hits(&home)), (&json!("success"), 1), "{done}");
    // What it passes on by itself is its own word, not its user's.
    assert_eq!((code(&yes(&mut desk, &reply)), hits(&home)), ("DENIED", 1));
}

#[test]
fn a_client_that_cannot_ask_is_told_what_is_asked() {
    let home = home("");
    let mut client = home.stdio(&[]);
    asked(&execute(&mut client, ONE_CALL));
    assert!(client.aside.iter().all(|message| message["method"] != "elicitation/create"), "it was asked");
}

/// A gateway for a client of the stateless era with a key that says that a person sits in front of it.
struct Desk {
    served: Served,
    key: String,
}

impl Desk {
    fn of(home: &Home) -> Desk {
        Desk { key: home.key("desk", true, false), served: home.serve(&[]) }
    }

    fn call(&self, params: &Value) -> Value {
        let who = json!({"name": "whatever it calls itself", "capabilities": {"elicitation": {}}});
        modern_as(&self.served, &self.key, &who, "tools/call", params).response()
    }
}

#[test]
fn a_stateless_client_answers_and_goes_on_with_the_same_run() {
    let home = home("");
    let mut desk = Desk::of(&home);
    let mut params = json!({"name": "pml_execute", "arguments": request(ONE_CALL, &json!({}))});
    let first = desk.call(&params)["result"].clone();
    assert_eq!(first["resultType"], "input_required", "{first}");
    let (name, question) = first["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(question["method"], "elicitation/create");
    assert!(
        question["params"]["message"].as_str().unwrap().contains(r#"{"path":"x","list":[1,2]}"#),
        "{question}"
    );
    assert_eq!(hits(&home), 0);
    let runs = || home.run(&["runs", "list", "--json"]).stdout.matches("workflowId").count();
    assert_eq!(runs(), 1);

    let allow = json!({name.clone(): {"action": "accept", "content": {"decision": "allow"}}});
    params["inputResponses"] = allow;
    let state = first["requestState"].as_str().unwrap().to_owned();
    let mut tampered: Vec<char> = state.chars().collect();
    let last = tampered.pop().unwrap();
    tampered.push(if last == 'A' { 'B' } else { 'A' });
    params["requestState"] = json!(tampered.into_iter().collect::<String>());
    let refused = desk.call(&params);
    assert!(refused.get("error").is_some(), "{refused}");
    // A state is for the request it was given for.
    params["requestState"] = json!(state);
    let mut other = params.clone();
    other["arguments"] = request("return await mcp.s.echo({ another: true });", &json!({}));
    let refused = desk.call(&other);
    assert!(refused.get("error").is_some(), "{refused}");
    assert_eq!((hits(&home), runs()), (0, 1));

    let done = desk.call(&params)["result"].clone();
    assert_eq!((&done["structuredContent"]["status"], hits(&home)), (&json!("success"), 1), "{done}");
    // Whoever lost the reply hears it again, also from the next gateway.
    desk.served = home.serve(&[]);
    let again = desk.call(&params)["result"].clone();
    assert_eq!(again["structuredContent"]["workflowId"], done["structuredContent"]["workflowId"]);
    assert_eq!((hits(&home), runs()), (1, 1), "the same run, once");
}

#[test]
fn a_state_is_for_its_run_its_question_its_request_and_outlives_the_process() {
    let home = home("");
    let mut desk = Desk::of(&home);
    let mut params = json!({"name": "pml_execute", "arguments": request(ONE_CALL, &json!({}))});
    let first = desk.call(&params)["result"].clone();
    let other = desk.call(&params)["result"].clone();
    desk.served = home.serve(&[]);
    params["inputResponses"] = json!({"q1": {"action": "accept", "content": {"decision": "allow"}}});
    let states = [&first, &other].map(|result| result["requestState"].as_str().unwrap().to_owned());
    let [mine, theirs] = states.each_ref().map(|state| state.split('.').collect::<Vec<&str>>());
    // Each part of another's state, and one character of each part.
    for part in 0..mine.len() {
        let mut swapped = mine.clone();
        swapped[part] = theirs[part];
        let mut flipped: Vec<String> = mine.iter().map(|part| (*part).to_owned()).collect();
        let last = flipped[part].pop().unwrap();
        flipped[part].push(if last == '0' { '1' } else { '0' });
        for state in [swapped.join("."), flipped.join(".")] {
            if states.contains(&state) {
                continue;
            }
            params["requestState"] = json!(state);
            let refused = desk.call(&params);
            // A state that is not one of ours by its looks belongs to nobody, and the request is a new one.
            let asked_anew = refused["result"]["resultType"] == "input_required";
            assert!(refused.get("error").is_some() || asked_anew, "{state}: {refused}");
            assert_eq!(hits(&home), 0, "{state}");
        }
    }
    // Nor does it count from a client in front of which nobody sits.
    params["requestState"] = json!(states[0]);
    let who = json!({"name": "agent", "capabilities": {"elicitation": {}}});
    let said = modern_by(&desk.served, &who, "tools/call", &params).response();
    assert_eq!(hits(&home), 0, "{said}");
    let done = desk.call(&params)["result"]["structuredContent"].clone();
    assert_eq!((&done["status"], hits(&home)), (&json!("success"), 1), "{done}");
}

#[test]
fn a_stateless_client_that_comes_back_without_an_answer_is_asked_again() {
    let home = home("");
    let desk = Desk::of(&home);
    let mut params = json!({"name": "pml_execute", "arguments": request(ONE_CALL, &json!({}))});
    let first = desk.call(&params)["result"].clone();
    params["requestState"] = first["requestState"].clone();
    let second = desk.call(&params)["result"].clone();
    assert_eq!(second["resultType"], "input_required", "{second}");
    params["requestState"] = second["requestState"].clone();
    params["inputResponses"] = json!({"q1": {"action": "cancel"}});
    let open = desk.call(&params)["result"]["structuredContent"].clone();
    asked(&open);
    assert_eq!((state(&home, &open).as_str(), hits(&home)), ("waiting", 0));
}
