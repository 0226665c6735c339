//! Requests made again while their question is open, and how many questions may be open.

use serde_json::{Value, json};

use super::{ONE_CALL, asked, code, execute, execute_with, hits, home, request, state, yes};
use crate::harness::{Client, Home, eventually, text};

/// A client of that name.
fn named(home: &Home, name: &str) -> Client {
    let mut client = home.stdio_unopened(&[]);
    let info = json!({"name": name, "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    client.request("initialize", &params);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
    client
}

#[track_caller]
fn with(client: &mut Client, change: impl FnOnce(&mut Value)) -> Value {
    let mut request = request(ONE_CALL, &json!({"n": 1}));
    change(&mut request);
    client.call("pml_execute", &request)["structuredContent"].clone()
}

fn waiting(home: &Home) -> usize {
    let list = home.run(&["runs", "list", "--json"]);
    let list: Value = serde_json::from_str(&list.stdout).unwrap_or_else(|_| panic!("{list:?}"));
    list.as_array().unwrap().iter().filter(|row| row["state"] == "waiting").count()
}

#[test]
fn a_request_that_is_made_again_finds_its_open_question() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let first = with(&mut client, |_| ());
    asked(&first);
    for again in [
        with(&mut client, |_| ()),
        with(&mut client, |request| request["intent"] = json!("please, this time in other words")),
        with(&mut client, |request| request["context"] = serde_json::from_str("{ \"n\": 1 }").unwrap()),
    ] {
        assert_eq!(
            (&again["workflowId"], &again["questionId"]),
            (&first["workflowId"], &first["questionId"]),
            "{again}"
        );
    }
    assert_eq!(waiting(&home), 1);
    // What differs is another run.
    let mut others = vec![
        with(&mut client, |request| request["context"] = json!({"n": 2})),
        with(&mut client, |request| request["implementation"]["code"] = json!(format!("{ONE_CALL} "))),
        with(&mut client, |request| request["options"] = json!({"idempotencyKey": "a"})),
        with(&mut client, |request| request["options"] = json!({"idempotencyKey": "b"})),
        with(&mut named(&home, "somebody-else"), |_| ()),
    ];
    others.push(first.clone());
    let mut ids: Vec<String> = others.iter().map(|one| one["workflowId"].to_string()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), waiting(&home)), (6, 6), "{others:?}");
    // Once it has its answer, the same request is a new one.
    assert_eq!(yes(&mut client, &first)["status"], "success");
    let next = with(&mut client, |_| ());
    assert_ne!(next["workflowId"], first["workflowId"]);
    assert_eq!((asked(&next).len(), hits(&home)), (1, 1));
}

#[test]
fn a_request_that_is_made_again_after_a_restart_finds_its_open_question() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let first = execute(&mut client, ONE_CALL);
    client.child.kill().unwrap();
    drop(client);
    let mut next = home.stdio(&[]);
    let again = execute(&mut next, ONE_CALL);
    assert_eq!((&again["workflowId"], waiting(&home)), (&first["workflowId"], 1), "{again}");
    assert_eq!((yes(&mut next, &again)["status"].as_str(), hits(&home)), (Some("success"), 1));
}

#[test]
fn a_run_that_asks_at_its_calls_is_found_too() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let program = "return await mcp.s.echo({ v: Number(args.v) });";
    let context = json!({"v": "3"});
    let begun = execute_with(&mut client, program, &context);
    let at_the_call = yes(&mut client, &begun);
    assert_eq!(asked(&at_the_call), [r#"s:echo {"v":3}"#]);
    let again = execute_with(&mut client, program, &context);
    assert_eq!(
        (&again["workflowId"], &again["questionId"]),
        (&begun["workflowId"], &at_the_call["questionId"]),
        "{again}"
    );
    assert_eq!(waiting(&home), 1);
}

#[test]
fn of_equal_requests_at_once_one_makes_a_run() {
    let home = home("");
    let mut clients = [home.stdio(&[]), home.stdio(&[])];
    let params = json!({"name": "pml_execute", "arguments": request(ONE_CALL, &json!({}))});
    let begin = |client: &mut Client| [0; 8].map(|_| client.begin("tools/call", &params));
    let begun = clients.each_mut().map(begin);
    let mut runs = Vec::new();
    for (client, ids) in clients.iter_mut().zip(begun) {
        for id in ids {
            let reply = client.response_or_aside(id)["result"]["structuredContent"].clone();
            asked(&reply);
            runs.push(reply["workflowId"].to_string());
        }
    }
    runs.sort();
    runs.dedup();
    assert_eq!((runs.len(), waiting(&home)), (1, 1));
}

#[test]
fn whoever_repeats_a_request_and_takes_that_back_leaves_the_first_as_it_was() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let first = execute(&mut client, ONE_CALL);
    let mut able = super::elicit::able(&home, "test");
    let again = super::elicit::begin(&mut able, ONE_CALL, &json!({}));
    able.announced("elicitation/create");
    let params = json!({"requestId": again});
    able.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).to_string());
    able.request("ping", &json!({}));
    assert_eq!(yes(&mut client, &first)["status"], "success");
    assert_eq!(hits(&home), 1);
}

/// A program that nothing is known of before it runs.
const OPAQUE: &str = "return await mcp[args.server].echo({ v: args.v });";

#[test]
fn a_client_has_only_so_many_questions_open() {
    let home = home("[approvals]\nopen = 3\n");
    let mut client = home.stdio(&[]);
    let ask = |client: &mut Client, v: u32| {
        client.call("pml_execute", &request("return await mcp.s.echo({ v: args.v });", &json!({"v": v})))
    };
    let open: Vec<Value> = (0..3).map(|v| ask(&mut client, v)["structuredContent"].clone()).collect();
    open.iter().for_each(|reply| drop(asked(reply)));
    for v in 3..10 {
        let full = ask(&mut client, v);
        assert_eq!(code(&full["structuredContent"]), "TOO_MANY_QUESTIONS", "{full}");
        let oldest = open[0]["workflowId"].as_str().unwrap();
        assert!(text(&full).contains(oldest) && text(&full).contains("pml_abort"), "{}", text(&full));
    }
    assert_eq!(waiting(&home), 3, "nothing was made");
    let again = ask(&mut client, 2)["structuredContent"].clone();
    assert_eq!(again["workflowId"], open[2]["workflowId"], "its own question is still found");
    // Calls whose tool is not known beforehand are told so when they are made.
    let late = execute_with(&mut client, OPAQUE, &json!({"server": "s", "v": 20}));
    assert_eq!(code(&late), "TOO_MANY_QUESTIONS", "{late}");
    // Another client has questions of its own.
    asked(&ask(&mut named(&home, "somebody-else"), 3)["structuredContent"].clone());
    client.call("pml_abort", &json!({"workflow_id": open[0]["workflowId"]}));
    assert_eq!(yes(&mut client, &open[1])["status"], "success");
    for v in [30, 31] {
        asked(&ask(&mut client, v)["structuredContent"].clone());
    }
    assert_eq!(code(&ask(&mut client, 32)["structuredContent"]), "TOO_MANY_QUESTIONS");
    assert_eq!(hits(&home), 1);
}

#[test]
fn other_names_do_not_get_a_client_any_number_of_questions() {
    let home = home("[approvals]\nopen = 1\n");
    let mut refused = 0;
    for n in 0..12 {
        let mut client = named(&home, &format!("client-{n}"));
        refused += usize::from(code(&execute(&mut client, ONE_CALL)) == "TOO_MANY_QUESTIONS");
    }
    assert_eq!((refused, waiting(&home)), (4, 8));
}

#[test]
fn questions_that_expired_are_not_open() {
    let home = home("[approvals]\nopen = 1\nexpire = \"1s\"\n");
    let mut client = home.stdio(&[]);
    let first = execute(&mut client, ONE_CALL);
    assert_eq!(code(&execute(&mut client, &ONE_CALL.replace('x', "y"))), "TOO_MANY_QUESTIONS");
    eventually("it expires", || state(&home, &first) == "expired");
    let next = execute(&mut client, ONE_CALL);
    asked(&next);
    assert_ne!(next["workflowId"], first["workflowId"]);
}

#[test]
fn programs_that_ask_at_the_same_moment_are_counted_too() {
    let home = home("[approvals]\nopen = 3\n");
    let mut client = home.stdio(&[]);
    let begin = |client: &mut Client, v: u32| {
        let arguments = request(OPAQUE, &json!({"server": "s", "v": v}));
        client.begin("tools/call", &json!({"name": "pml_execute", "arguments": arguments}))
    };
    let begun: Vec<u64> = (0..12).map(|v| begin(&mut client, v)).collect();
    let mut ends: Vec<String> = Vec::new();
    for id in begun {
        let reply = client.response_or_aside(id)["result"]["structuredContent"].clone();
        ends.push(if code(&reply).is_empty() {
            reply["status"].to_string()
        } else {
            code(&reply).to_owned()
        });
    }
    let of = |word: &str| ends.iter().filter(|end| end.contains(word)).count();
    assert_eq!((of("approval_required"), of("TOO_MANY_QUESTIONS")), (3, 9), "{ends:?}");
    assert_eq!((waiting(&home), hits(&home)), (3, 0));
}
