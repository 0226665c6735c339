//! Tools that clients call by name: held to the same rules as the calls of programs, asked about and audited.
//!
//! What counts is what the server `danger` wrote down in its ledger.

mod stateless;
mod terminal;

use serde_json::{Value, json};

use crate::faulty;
use crate::harness::{Client, Home, eventually, material, node, text};
use crate::http::modern_by;

/// A home with the server `danger`: `danger:balance` may be called, everything else of it has to be asked for. `settings`
/// are further lines of `pml.toml`; what they say under `[permissions]` comes last.
fn home(settings: &str) -> Home {
    let home = Home::new("");
    configure(&home, settings, "");
    assert_eq!(home.run(&["doctor"]).code, 0);
    home
}

fn configure(home: &Home, settings: &str, of_server: &str) {
    let (first, rules) = settings.split_once("[permissions]").unwrap_or((settings, ""));
    let args = json!([material("fixture/danger.mjs"), "--ledger", home.path("danger.ledger")]);
    home.configure(&format!(
        "{first}\n[servers.danger]\ncommand = {:?}\nargs = {args}\n{of_server}\n[permissions]\n\
         \"danger:balance\" = {{ approval_mode = \"auto\" }}\n{rules}\n",
        node()
    ));
}

/// The calls that arrived at the server.
fn ledger(home: &Home) -> Vec<Value> {
    let text = std::fs::read_to_string(home.path("danger.ledger")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn hits(home: &Home) -> usize {
    ledger(home).len()
}

/// What the server gives for `danger:pay` with 5, byte by byte.
const PAID: &str = r#"{"x-kept":[1.50],"content":[{"type":"text","text":"paid 5"}],"structuredContent":{"receipt":"r-5","exact":12345678901234567890,"rate":1.0},"_meta":{"example.com/trace":"t"}}"#;
/// And for `danger:fail`.
const FAILED: &str = r#"{"isError":true,"content":[{"type":"text","text":"no funds"}],"structuredContent":{"left":0.10},"_meta":{"example.com/trace":"f"}}"#;

fn pay() -> Value {
    json!({"name": "danger:pay", "arguments": {"amount": 5}})
}

/// The name of the run in a reply that says that somebody has to allow the call.
#[track_caller]
fn waiting(reply: &Value) -> String {
    assert_eq!(reply["isError"], true, "{reply}");
    assert!(
        reply.get("structuredContent").is_none(),
        "clients hold it against the tool's own schema: {reply}"
    );
    let run = reply["_meta"]["pml/workflowId"].as_str().unwrap_or_else(|| panic!("{reply}"));
    let said = text(reply);
    assert!(said.starts_with("approval_required") && said.contains(run), "{said}");
    assert!(said.contains("`danger:"), "what is asked is told: {said}");
    run.to_owned()
}

/// The result of a request as it stands in the line.
#[track_caller]
fn raw_result(client: &mut Client, method: &str, params: &Value) -> String {
    let id = client.begin(method, params);
    let head = format!("\"id\":{id},");
    loop {
        let line = client.line();
        if line.contains(&head) && !line.contains("\"method\"") {
            let from = line.find("\"result\":").unwrap_or_else(|| panic!("{line}")) + "\"result\":".len();
            return line[from..line.len() - 1].to_owned();
        }
    }
}

#[track_caller]
fn go_on(client: &mut Client, run: &str, more: &Value) -> Value {
    let mut arguments = more.clone();
    arguments["workflow_id"] = json!(run);
    client.call("pml_continue", &arguments)
}

fn continuing(run: &str) -> Value {
    json!({"name": "pml_continue", "arguments": {"workflow_id": run}})
}

fn runs(home: &Home) -> Vec<Value> {
    serde_json::from_str(&home.run(&["runs", "list", "--json"]).stdout).unwrap()
}

fn state(home: &Home, run: &str) -> String {
    let all = runs(home);
    let row = all.iter().find(|row| row["workflowId"] == *run).unwrap_or_else(|| panic!("{run}: {all:?}"));
    row["state"].as_str().unwrap().to_owned()
}

/// The entries of the audit log that are about direct calls, or of another kind.
fn audited(home: &Home, kind: &str) -> Vec<Value> {
    let verified = home.run(&["audit", "verify"]);
    assert_eq!(verified.code, 0, "{verified:?}");
    let rows = home.run(&["audit", "list", "--limit", "1000", "--json"]);
    let rows: Vec<Value> = serde_json::from_str(&rows.stdout).unwrap();
    rows.into_iter().filter(|row| row["kind"] == kind).map(|row| row["body"].clone()).collect()
}

/// Waits for the entries of direct calls, which are written after the reply.
#[track_caller]
fn direct_calls(home: &Home, count: usize) -> Vec<Value> {
    eventually("direct calls are in the audit log", || audited(home, "direct call").len() >= count);
    let found = audited(home, "direct call");
    assert_eq!(found.len(), count, "{found:?}");
    found
}

/// A client of the older era with a key that says that a person sits in front of it.
fn desk(home: &Home) -> Client {
    home.key("desk", true, false);
    able(home.stdio_unopened(&["--key-file", "desk.key"]))
}

/// Opens a session of a client that can ask its user.
fn able(mut client: Client) -> Client {
    let info = json!({"name": "test", "version": "1"});
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": info});
    client.request("initialize", &params);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
    client
}

/// Answers the question that the client is asked next, and gives it.
#[track_caller]
fn answer(client: &mut Client, answer: &Value) -> String {
    let question = client.announced("elicitation/create");
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}).to_string());
    question["params"]["message"].as_str().unwrap().to_owned()
}

fn allow() -> Value {
    json!({"action": "accept", "content": {"decision": "allow"}})
}

#[test]
fn where_only_a_person_may_answer_nothing_is_called_before_one_has() {
    for exposure in ["meta", "full", "danger:*"] {
        let home = home("[approvals]\nby = \"human\"\n");
        let mut agent = home.stdio(&["--expose", exposure]);
        let run = waiting(&agent.request("tools/call", &pay()));
        assert_eq!((hits(&home), state(&home, &run).as_str()), (0, "waiting"), "{exposure}");
        let status: Value = serde_json::from_str(&home.run(&["status", "--json"]).stdout).unwrap();
        assert_eq!((&status["waitingForAnswer"], &status["runs"][0]["workflowId"]), (&json!(1), &json!(run)));
        assert!(home.run(&["status"]).stdout.contains("waiting for an answer"));
        let refused = go_on(&mut agent, &run, &json!({"approved": true}));
        assert_eq!(refused["structuredContent"]["error"]["code"], "DENIED", "{exposure}: {refused}");
        assert_eq!(hits(&home), 0, "{exposure}");

        let mut desk = desk(&home);
        let going = desk.begin("tools/call", &continuing(&run));
        let shown = answer(&mut desk, &allow());
        assert!(shown.contains("`danger:pay`") && shown.contains(r#"{"amount":5}"#), "{shown}");
        assert_eq!(text(&desk.response_or_aside(going)["result"]), "paid 5");
        assert_eq!(raw_result(&mut agent, "tools/call", &continuing(&run)), PAID, "{exposure}");
        assert_eq!((hits(&home), state(&home, &run).as_str()), (1, "done"), "{exposure}");
        for kind in ["asked", "answered", "decided"] {
            assert_eq!(audited(&home, kind).len(), 1, "{kind}");
        }
    }
}

#[test]
fn a_client_that_can_ask_its_user_does_and_gets_the_tools_own_result() {
    let home = home("[approvals]\nby = \"human\"\n");
    let mut desk = desk(&home);
    let called = desk.begin("tools/call", &pay());
    answer(&mut desk, &allow());
    let result = desk.response_or_aside(called)["result"].clone();
    assert_eq!(result, serde_json::from_str::<Value>(PAID).unwrap());
    let called = desk.begin("tools/call", &pay());
    answer(&mut desk, &json!({"action": "accept", "content": {"decision": "deny", "reason": "too much"}}));
    let denied = desk.response_or_aside(called)["result"].clone();
    assert_eq!(denied["isError"], true);
    assert!(denied.get("structuredContent").is_none(), "{denied}");
    assert!(text(&denied).starts_with("DENIED") && text(&denied).contains("too much"), "{denied}");
    assert_eq!(hits(&home), 1);
}

#[test]
fn where_clients_may_answer_a_tool_they_were_listed_counts_as_asked_and_no_other() {
    let home = home("");
    let mut meta = home.stdio(&[]);
    let run = waiting(&meta.request("tools/call", &pay()));
    assert_eq!(hits(&home), 0);
    assert_eq!(text(&go_on(&mut meta, &run, &json!({"approved": true}))), "paid 5");
    assert_eq!(raw_result(&mut meta, "tools/call", &continuing(&run)), PAID);
    assert_eq!(hits(&home), 1);

    for (exposure, calls) in [("full", 2), ("danger:*", 3), ("danger:pay", 4)] {
        let mut listed = home.stdio(&["--expose", exposure]);
        assert_eq!(raw_result(&mut listed, "tools/call", &pay()), PAID, "{exposure}");
        assert_eq!(hits(&home), calls, "{exposure}");
    }
    let entries = direct_calls(&home, 3);
    for entry in &entries {
        assert_eq!(
            (&entry["tool"], &entry["decision"]),
            (&json!("danger:pay"), &json!("asked by the client"))
        );
        assert!(entry["because"].as_str().unwrap().contains("was listed the tool"), "{entry}");
        assert_eq!((&entry["client"], entry.get("key")), (&json!("test"), None));
    }
    let mut other = home.stdio(&["--expose", "danger:balance"]);
    assert!(text(&other.request("tools/call", &pay())).contains("is not exposed to this client"));
    assert_eq!((hits(&home), runs(&home).len()), (4, 1));
}

#[test]
fn over_http_a_listed_tool_is_asked_for_unless_the_config_trusts_clients() {
    let call = |home: &Home, arguments: &[&str]| {
        let served = home.serve(arguments);
        let who = json!({"name": "test", "capabilities": {}});
        modern_by(&served, &who, "tools/call", &pay()).response()["result"].clone()
    };
    let home = home("");
    for arguments in [&[][..], &["--expose", "full"], &["--expose", "danger:pay"]] {
        waiting(&call(&home, arguments));
    }
    assert_eq!(hits(&home), 0);
    configure(&home, "[approvals]\nby = \"client\"\n", "");
    waiting(&call(&home, &[]));
    assert_eq!(text(&call(&home, &["--expose", "full"])), "paid 5");
    assert_eq!(hits(&home), 1);
}

#[test]
fn a_no_ends_the_run_with_the_reason_and_nothing_is_called() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let run = waiting(&client.request("tools/call", &pay()));
    let denied = go_on(&mut client, &run, &json!({"approved": false, "reason": "not on a Friday"}));
    assert_eq!(
        (&denied["isError"], &denied["structuredContent"]["error"]["code"]),
        (&json!(true), &json!("DENIED"))
    );
    assert!(text(&denied).contains("not on a Friday"), "{denied}");
    assert_eq!((hits(&home), state(&home, &run).as_str()), (0, "failed"));
}

#[test]
fn denied_is_denied_whoever_calls_and_is_audited() {
    let home = home("[approvals]\nby = \"client\"\n[permissions]\n\"danger:pay\" = { deny = true }\n");
    let key = home.key("editor", true, true);
    for arguments in [&[][..], &["--expose", "full"], &["--expose", "full", "--key-file", "editor.key"]] {
        let refused = home.stdio(arguments).request("tools/call", &pay());
        assert!(text(&refused).starts_with("DENIED") && refused["isError"] == true, "{refused}");
    }
    let served = home.serve(&["--expose", "full"]);
    for token in [&key, &served.token] {
        let refused = stateless::call(&served, token, &pay())["result"].clone();
        assert!(text(&refused).starts_with("DENIED"), "{refused}");
    }
    let called = home.run(&["call", "danger:pay", "--args", "{\"amount\": 5}", "--yes"]);
    assert_eq!(called.code, 1, "{called:?}");
    assert!(called.stderr.contains("may not be called"), "{called:?}");
    let entries = audited(&home, "direct call");
    assert_eq!(entries.len(), 6, "each is in the log before it is told");
    for entry in entries {
        assert_eq!((&entry["tool"], &entry["decision"]), (&json!("danger:pay"), &json!("denied")), "{entry}");
    }
    assert_eq!((hits(&home), runs(&home).len()), (0, 0));
}

#[test]
fn what_nobody_has_to_be_asked_about_is_called_at_once_and_audited() {
    let home = home("[approvals]\nby = \"human\"\n");
    let mut client = home.stdio(&[]);
    for _ in 0..20 {
        assert_eq!(text(&client.call("danger:balance", &json!({"of": "me"}))), "7");
    }
    let large = json!({"of": "x".repeat(10_000)});
    assert_eq!(text(&client.call("danger__balance", &large)), "7");
    assert_eq!(client.finish(), 0, "what is queued is written at the end");
    let entries = direct_calls(&home, 21);
    for entry in &entries {
        assert_eq!((&entry["tool"], &entry["decision"]), (&json!("danger:balance"), &json!("auto")));
        assert_eq!(entry["definition"].as_str().unwrap().len(), 64);
    }
    assert_eq!(entries[0]["arguments"], entries[19]["arguments"]);
    assert_eq!(entries[20]["arguments"].as_str().unwrap().len(), 64, "a digest, and not the arguments");
    assert_ne!(entries[19]["arguments"], entries[20]["arguments"]);
    assert_eq!((hits(&home), runs(&home).len()), (21, 0));
}

#[test]
fn a_tool_that_fails_in_its_own_words_is_passed_on_and_its_run_has_failed() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let run = waiting(&client.call("danger:fail", &json!({})));
    go_on(&mut client, &run, &json!({"approved": true}));
    assert_eq!(raw_result(&mut client, "tools/call", &continuing(&run)), FAILED);
    assert_eq!((hits(&home), state(&home, &run).as_str()), (1, "failed"));
}

#[test]
fn a_call_that_cannot_be_made_is_no_question() {
    let home = home("[approvals]\nby = \"human\"\n");
    let mut client = home.stdio(&[]);
    for (tool, arguments, expected) in [
        ("danger:pay", json!({"amount": "all"}), "INVALID_ARGUMENTS"),
        ("danger:pay", json!({}), "INVALID_ARGUMENTS"),
        ("danger:steal", json!({}), "UNKNOWN_TOOL"),
    ] {
        let refused = client.call(tool, &arguments);
        assert!(text(&refused).starts_with(expected), "{tool} {arguments}: {refused}");
    }
    assert_eq!((hits(&home), runs(&home).len()), (0, 0));
}

#[test]
fn a_request_repeated_with_its_key_is_the_same_run() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let keyed = |amount: u32| json!({"name": "danger:pay", "arguments": {"amount": amount}, "_meta": {"pml/idempotencyKey": "k1"}});
    let run = waiting(&client.request("tools/call", &keyed(5)));
    assert_eq!(waiting(&client.request("tools/call", &keyed(5))), run);
    let other = client.request("tools/call", &keyed(6));
    assert!(text(&other).contains("used for another request"), "{other}");
    let program = json!({"intent": "x", "implementation": {"type": "tool", "toolId": "danger:pay"}, "context": {"amount": 5}});
    let mixed = json!({"name": "pml_execute", "arguments": program, "_meta": {"pml/idempotencyKey": "k1"}});
    assert!(text(&client.request("tools/call", &mixed)).contains("used for another request"));
    go_on(&mut client, &run, &json!({"approved": true}));
    assert_eq!(raw_result(&mut client, "tools/call", &keyed(5)), PAID);
    assert_eq!((hits(&home), runs(&home).len()), (1, 1));
    let again = waiting(&client.request("tools/call", &pay()));
    assert_ne!(again, run, "without the key it is another request");
}

#[test]
fn a_call_that_nobody_is_asked_about_is_made_once_for_its_key() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let keyed =
        |key: &str| json!({"name": "danger:balance", "arguments": {}, "_meta": {"pml/idempotencyKey": key}});
    let first = raw_result(&mut client, "tools/call", &keyed("k1"));
    assert!(first.contains('7'), "{first}");
    assert_eq!(raw_result(&mut client, "tools/call", &keyed("k1")), first);
    let mut other = home.stdio(&[]);
    assert_eq!(raw_result(&mut other, "tools/call", &keyed("k1")), first, "another process finds it too");
    assert_eq!((hits(&home), runs(&home).len()), (1, 1));
    raw_result(&mut client, "tools/call", &keyed("k2"));
    assert_eq!(hits(&home), 2);
}

#[test]
fn a_call_whose_client_asked_its_user_is_made_once_for_its_key() {
    let home = home("");
    let mut listed = home.stdio(&["--expose", "full"]);
    let mut keyed = pay();
    keyed["_meta"] = json!({"pml/idempotencyKey": "k1"});
    for _ in 0..2 {
        assert_eq!(raw_result(&mut listed, "tools/call", &keyed), PAID);
    }
    assert_eq!(hits(&home), 1);
    let entries = direct_calls(&home, 1);
    assert_eq!(
        (&entries[0]["tool"], &entries[0]["decision"]),
        (&json!("danger:pay"), &json!("asked by the client"))
    );
}

#[test]
fn a_standing_rule_allows_direct_calls_as_it_does_those_of_programs() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let run = waiting(&client.request("tools/call", &pay()));
    let approved = home.run_as_person(&["runs", "approve", &run, "--remember", "tool"]);
    assert!(approved.code == 0 && approved.stdout.contains("paid 5"), "{approved:?}");
    assert_eq!(raw_result(&mut client, "tools/call", &pay()), PAID);
    assert_eq!((hits(&home), audited(&home, "allowed by rule").len()), (2, 1));
    waiting(&client.call("danger:pay", &json!({"amount": 6})));
    assert_eq!(home.run(&["rules", "revoke", "1"]).code, 0);
    waiting(&client.request("tools/call", &pay()));
    assert_eq!(hits(&home), 2);
}

#[test]
fn a_tool_that_says_it_writes_once_its_server_runs_is_asked_for() {
    let home = Home::new("");
    let trusted = "trust = \"annotations\"\ndefinitions = \"follow\"\n";
    configure(&home, "[approvals]\nby = \"human\"\n", trusted);
    let config = std::fs::read_to_string(home.path("pml.toml")).unwrap();
    home.configure(&config.replace("\"danger:balance\" = { approval_mode = \"auto\" }", ""));
    assert_eq!(home.run(&["doctor"]).code, 0);
    assert_eq!(text(&home.stdio(&[]).call("danger:balance", &json!({}))), "7", "it only reads, as it says");
    std::fs::write(home.path("danger.ledger.writes"), "").unwrap();
    waiting(&home.stdio(&[]).call("danger:balance", &json!({})));
    assert_eq!(hits(&home), 1);
}

#[test]
fn a_tool_can_ask_the_user_while_it_works_also_after_it_was_allowed() {
    let home = home("");
    let mut client = able(home.stdio_unopened(&[]));
    let called = client.begin("tools/call", &json!({"name": "danger:confirm", "arguments": {}}));
    assert!(answer(&mut client, &allow()).contains("`danger:confirm`"));
    let asked = answer(&mut client, &json!({"action": "decline"}));
    assert_eq!(asked, "Server `danger` asks (the answer goes to server `danger`): Really pay?");
    assert_eq!(text(&client.response_or_aside(called)["result"]), "user said decline");
}

#[test]
fn what_nobody_is_shown_does_not_go_with_a_call_that_was_asked_for() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let mut hidden = pay();
    hidden["_meta"] = json!({"example.com/also": "send it to mallory"});
    hidden["inputResponses"] = json!({"q1": {"action": "accept"}});
    let run = waiting(&client.request("tools/call", &hidden));
    assert_eq!(text(&go_on(&mut client, &run, &json!({"approved": true}))), "paid 5");
    assert!(!ledger(&home)[0].to_string().contains("mallory"), "{:?}", ledger(&home));
}

#[test]
fn a_large_result_of_an_allowed_call_arrives_whole() {
    let home = home("");
    let mut client = home.stdio(&[]);
    // More than a program may be given.
    let size = 6 << 20;
    let run = waiting(&client.call("danger:report", &json!({"size": size})));
    let result = go_on(&mut client, &run, &json!({"approved": true}));
    assert_eq!(text(&result).len(), size, "{}", &result.to_string()[..200]);
}

#[test]
fn arguments_reach_the_tool_as_they_were_written_also_after_they_were_asked_for() {
    let home = Home::new("");
    home.configure(&faulty::table(&home, "s", &[], ""));
    let mut client = home.stdio(&[]);
    let arguments = r#"{"z":1.0,"a":123456789012345678901234567890,"e":10e110,"s":"\u00e9 é","n":null}"#;
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{{"name":"s:echo","arguments":{arguments}}}}}"#
    );
    client.send(&call);
    let asked = client.response(77)["result"].clone();
    let run = asked["_meta"]["pml/workflowId"].as_str().unwrap_or_else(|| panic!("{asked}")).to_owned();
    go_on(&mut client, &run, &json!({"approved": true}));
    let given = raw_result(&mut client, "tools/call", &continuing(&run));
    assert!(given.ends_with(&format!("\"structuredContent\":{arguments}}}")), "{given}");
}

#[test]
fn a_client_that_takes_its_call_back_ends_the_run() {
    let home = home("");
    let mut client = able(home.stdio_unopened(&[]));
    let called = client.begin("tools/call", &pay());
    client.announced("elicitation/create");
    let taken_back = json!({"requestId": called, "reason": "changed my mind"});
    client.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": taken_back}).to_string(),
    );
    eventually("the run is cancelled", || runs(&home)[0]["state"] == "cancelled");
    assert_eq!(hits(&home), 0);
}

#[test]
fn a_question_outlives_the_gateway_that_asked_it() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let run = waiting(&client.request("tools/call", &pay()));
    client.child.kill().unwrap();
    let mut next = home.stdio(&[]);
    assert_eq!(text(&go_on(&mut next, &run, &json!({"approved": true}))), "paid 5");
    assert_eq!((hits(&home), state(&home, &run).as_str()), (1, "done"));
}
