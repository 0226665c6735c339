//! What one server does wrong is told to its caller alone, in words, and costs nobody else anything.

use serde_json::{Value, json};

use crate::faulty::{self, Ledger, NO_MODEL, Remote, begin, code, peak, resident, signal};
use crate::harness::{Client, Home, eventually, lives, text};

/// How much memory a fault may cost.
const MEMORY: u64 = 64 * 1024 * 1024;

#[track_caller]
fn assert_problem(result: &Value, expected: &str, words: &str) {
    assert_eq!(code(result), expected, "{result}");
    assert!(text(result).contains(words), "`{words}` is not in {result}");
}

#[track_caller]
fn assert_ok(client: &mut Client, tool: &str) {
    let result = client.call(tool, &json!({}));
    assert_eq!(text(&result), "ok", "{result}");
}

/// Compares the most memory that the gateway ever had in use with what it had before a fault.
#[track_caller]
fn assert_grown_little(client: &Client, before: u64) {
    let grown = peak(client.child.id()).saturating_sub(before);
    assert!(grown < MEMORY, "{} MiB", grown / 1024 / 1024);
}

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}{n}")).collect()
}

// ---------------------------------------------------------------- servers that die

#[test]
fn a_crash_in_mid_call_is_told_and_the_call_is_not_sent_again() {
    let fallible = names("s", 30);
    let all: Vec<&str> = fallible.iter().map(String::as_str).chain(["steady"]).collect();
    let home = faulty::home(&all);
    let mut client = home.stdio(&[]);
    let release = home.path("release");
    let in_flight = begin(&mut client, "steady:wait", &json!({"file": release}));
    Ledger::of(&home, "steady").await_call("wait");
    for name in &fallible {
        let result = client.call(&format!("{name}:crash"), &json!({}));
        assert_problem(&result, "DOWNSTREAM_DIED", "exit status: 9");
        assert_problem(&result, "DOWNSTREAM_DIED", "about to fall over");
        assert_ok(&mut client, &format!("{name}:ok"));
        let ledger = Ledger::of(&home, name);
        assert_eq!((ledger.calls("crash"), ledger.calls("ok"), ledger.pids().len()), (1, 1, 2), "{name}");
    }
    std::fs::write(release, "").unwrap();
    assert_eq!(text(&client.response(in_flight)["result"]), "waited");
    assert_eq!(Ledger::of(&home, "steady").pids().len(), 1);
}

#[test]
fn a_server_killed_from_outside_is_told_and_started_again() {
    let fallible = names("s", 10);
    let home = faulty::home(&fallible.iter().map(String::as_str).collect::<Vec<_>>());
    let mut client = home.stdio(&[]);
    for name in &fallible {
        let ledger = Ledger::of(&home, name);
        let call = begin(&mut client, &format!("{name}:hang"), &json!({}));
        ledger.await_call("hang");
        signal(ledger.pids()[0], "-KILL");
        let response = client.response(call);
        assert_problem(&response["result"], "DOWNSTREAM_DIED", "it ended with");
        assert_ok(&mut client, &format!("{name}:ok"));
        assert_eq!((ledger.calls("hang"), ledger.pids().len()), (1, 2), "{name}");
    }
}

#[test]
fn every_call_in_flight_is_told_of_a_crash_and_none_is_repeated() {
    let home = faulty::home(&["s"]);
    let mut client = home.stdio(&[]);
    let hanging: Vec<u64> = (0..20).map(|_| begin(&mut client, "s:hang", &json!({}))).collect();
    let ledger = Ledger::of(&home, "s");
    eventually("all calls arrive", || ledger.calls("hang") == 20);
    let crash = begin(&mut client, "s:crash", &json!({}));
    for id in hanging.into_iter().chain([crash]) {
        let response = client.response_or_aside(id);
        assert_problem(&response["result"], "DOWNSTREAM_DIED", "exit status: 9");
    }
    assert_ok(&mut client, "s:ok");
    assert_eq!((ledger.calls("hang"), ledger.calls("crash"), ledger.pids().len()), (20, 1, 2));
}

#[test]
fn a_server_that_keeps_dying_is_left_alone_for_longer_and_longer() {
    let home = faulty::home(&["s"]);
    let mut client = home.stdio(&[]);
    let mut died = 0;
    let refusal = loop {
        let result = client.call("s:crash", &json!({}));
        if code(&result) != "DOWNSTREAM_DIED" {
            break result;
        }
        died += 1;
        assert!(died < 10, "it was started again every time");
    };
    assert_problem(&refusal, "SERVER_DOWN", "is down: it ended with exit status: 9");
    assert!(text(&refusal).contains("it is tried again in"), "{refusal}");
    // Pauses of 0.25, 0.5 and 1 s are waited out by the caller; from the next on it is told.
    assert!(died >= 4, "{died}");
    assert_eq!(Ledger::of(&home, "s").calls("crash"), died);
}

#[test]
fn a_command_that_cannot_be_started_says_why() {
    let home = Home::new("[servers.gone]\ncommand = \"/no/such/program\"\n");
    let mut client = home.stdio(&[]);
    let result = client.call("gone:ok", &json!({}));
    assert_problem(&result, "SERVER_DOWN", "/no/such/program");
}

// ---------------------------------------------------------------- servers that hang

#[test]
fn a_call_whose_server_reports_progress_may_take_longer() {
    for era in ["legacy", "modern"] {
        let home = Home::new("");
        let settings = "call_timeout = \"2s\"\nlongest_call = \"8s\"";
        home.configure(&faulty::allowed(&home, "s", &["--era", era], settings));
        let mut client = home.stdio(&[]);
        let ledger = Ledger::of(&home, "s");
        // Neither a client that names no progress token nor a program hears of the progress.
        let done = client.call("s:tick", &json!({"times": 14, "ms": 250}));
        assert_eq!(text(&done), "ticked", "{done}");
        let code = "return mcp.s.tick({ times: 14, ms: 250 })";
        let run = json!({"intent": "tick", "implementation": {"type": "code", "code": code}});
        let done = client.call("pml_execute", &run);
        assert_eq!(done["structuredContent"]["status"], "success", "{done}");
        let late = client.call("s:tick", &json!({"times": 1_000, "ms": 250}));
        assert_problem(&late, "TIMEOUT", "did not answer in time");
        eventually("the server hears of it", || ledger.events("cancelled").len() == 1);
    }
}

#[test]
fn an_event_stream_that_is_refused_at_first_is_asked_for_again() {
    let home = Home::new("");
    let remote = Remote::start(&home, "far", &["--era", "legacy", "--late-stream"]);
    home.configure(&remote.allowed("far", "definitions = \"follow\""));
    // No proxy knows this machine.
    let mut command = home.command(&["stdio"]);
    command.env("HTTP_PROXY", "http://127.0.0.1:9").env("http_proxy", "http://127.0.0.1:9");
    let mut client = Client::start(command);
    client.initialize();
    assert_eq!(text(&client.call("far:ok", &json!({}))), "ok");
    let ledger = Ledger::of(&home, "far");
    eventually("the stream is open", || ledger.events("stream").len() == 2);
    client.call("far:redefine", &json!({"add": "late"}));
    eventually("the new tool is listed", || ledger.events("list").len() >= 2);
}

#[test]
fn a_hanging_call_times_out_is_cancelled_and_its_late_answer_goes_nowhere() {
    for era in ["legacy", "modern"] {
        let home = Home::new("");
        home.configure(&faulty::allowed(&home, "s", &["--era", era], "call_timeout = \"4s\""));
        let mut client = home.stdio(&[]);
        let ledger = Ledger::of(&home, "s");
        for round in 1..=2 {
            let late = begin(&mut client, "s:hang", &json!({"answerAfterCancel": true}));
            let response = client.response(late);
            assert_problem(&response["result"], "TIMEOUT", "did not answer in time");
            assert!(text(&response["result"]).contains("`call_timeout`"), "{response}");
            eventually("the server hears of it", || ledger.events("cancelled").len() == round);
            assert_eq!(ledger.events("cancelled")[round - 1]["tool"], "hang");
            let echo = client.call("s:echo", &json!({"round": round}));
            assert_eq!(echo["structuredContent"]["round"], round);
        }
        assert!(client.aside.iter().all(|message| message.get("id").is_none()), "{:?}", client.aside);
        assert_eq!((ledger.calls("hang"), ledger.pids().len()), (2, 1), "{era}");
    }
}

#[test]
fn a_cancelled_call_is_cancelled_at_its_server_and_gets_no_response() {
    for era in ["legacy", "modern"] {
        let home = Home::new("");
        home.configure(&faulty::allowed(&home, "s", &["--era", era], ""));
        let mut client = home.stdio(&[]);
        let ledger = Ledger::of(&home, "s");
        let call = begin(&mut client, "s:hang", &json!({"answerAfterCancel": true}));
        ledger.await_call("hang");
        let params = json!({"requestId": call, "reason": "changed my mind"});
        client.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}).to_string(),
        );
        eventually("the server hears of it", || !ledger.events("cancelled").is_empty());
        assert_eq!(ledger.events("cancelled")[0]["tool"], "hang");
        assert_ok(&mut client, "s:ok");
        assert!(client.aside.iter().all(|message| message["id"] != call), "{:?}", client.aside);
    }
}

#[test]
fn a_call_that_is_cancelled_in_the_same_breath_does_not_go_on() {
    let home = faulty::home(&["s"]);
    let mut client = home.stdio(&[]);
    assert_ok(&mut client, "s:ok");
    let ledger = Ledger::of(&home, "s");
    for id in 100..120 {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "s:hang", "arguments": {}}});
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        client.send(&format!("{call}\n{cancel}"));
    }
    assert_ok(&mut client, "s:ok");
    // Whatever had left before the cancellation was read is taken back at the server.
    eventually("every call that arrived is cancelled", || {
        ledger.calls("hang") == ledger.events("cancelled").len()
    });
    assert!(client.aside.iter().all(|message| message.get("id").is_none()), "{:?}", client.aside);
}

// ---------------------------------------------------------------- servers that talk nonsense

#[test]
fn between_any_garbage_every_answer_reaches_its_own_call() {
    for era in ["legacy", "modern"] {
        let home = Home::new("");
        home.configure(&faulty::allowed(&home, "s", &["--era", era], ""));
        let mut client = home.stdio(&[]);
        let calls: Vec<(u64, String)> = (0..100)
            .map(|n| {
                let value = format!("value {n}");
                let tool = if n % 3 == 0 { "s:echo" } else { "s:garbage" };
                (begin(&mut client, tool, &json!({"value": value})), value)
            })
            .collect();
        for (index, (id, value)) in calls.iter().enumerate() {
            let response = client.response_or_aside(*id);
            let expected = if index % 3 == 0 { json!({"value": value}).to_string() } else { value.clone() };
            assert_eq!(text(&response["result"]), expected, "{era}: {response}");
        }
        assert_ok(&mut client, "s:ok");
        assert!(client.aside.iter().all(|message| message.get("id").is_none()), "{:?}", client.aside);
        assert_eq!(Ledger::of(&home, "s").pids().len(), 1, "{era}: it was not taken for broken");
    }
}

#[test]
fn a_result_nested_without_end_is_refused_and_the_server_stays() {
    let home = faulty::home(&["s"]);
    let mut client = home.stdio(&[]);
    assert_ok(&mut client, "s:ok");
    let before = resident(client.child.id());
    let result = client.call("s:deep", &json!({"depth": 1_000_000}));
    assert_problem(&result, "BAD_ANSWER", "nested too deep");
    assert_ok(&mut client, "s:ok");
    assert_eq!(Ledger::of(&home, "s").pids().len(), 1);
    assert_grown_little(&client, before);
}

// ---------------------------------------------------------------- servers that talk too much

#[test]
fn a_line_without_end_ends_its_server_only() {
    let home = faulty::home(&["s", "steady"]);
    let mut client = home.stdio(&[]);
    assert_ok(&mut client, "s:ok");
    assert_ok(&mut client, "steady:ok");
    let before = resident(client.child.id());
    let endless = begin(&mut client, "s:endless", &json!({}));
    assert_ok(&mut client, "steady:ok");
    let response = client.response_or_aside(endless);
    assert_problem(&response["result"], "DOWNSTREAM_DIED", "a line longer than 16 MiB");
    assert_ok(&mut client, "s:ok");
    let ledger = Ledger::of(&home, "s");
    assert_eq!((ledger.calls("endless"), ledger.pids().len()), (1, 2));
    eventually("the talker is gone", || !lives(ledger.pids()[0]));
    // The end of the first process must not be taken for the end of the second.
    assert_ok(&mut client, "s:ok");
    assert_eq!(ledger.pids().len(), 2);
    assert_grown_little(&client, before);
}

#[test]
fn floods_of_notifications_cost_no_memory_and_nobody_else_any_patience() {
    let kinds = [
        ("unknown", 1_000_000),
        ("progress", 100_000),
        ("tools", 100_000),
        ("resources", 100_000),
        ("questions", 100_000),
    ];
    let home = faulty::home(&["s", "steady"]);
    let mut client = home.stdio(&[]);
    assert_ok(&mut client, "s:ok");
    assert_ok(&mut client, "steady:ok");
    let before = resident(client.child.id());
    for (kind, count) in kinds {
        let params = json!({"name": "s:flood", "arguments": {"kind": kind, "count": count}, "_meta": {"progressToken": 1}});
        let flood = client.begin("tools/call", &params);
        assert_ok(&mut client, "steady:ok");
        let response = client.response_or_aside(flood);
        assert_eq!(text(&response["result"]), "flooded", "{kind}: {response}");
        client.aside.clear();
        assert_ok(&mut client, "s:ok");
        assert_grown_little(&client, before);
    }
    assert_eq!(Ledger::of(&home, "s").pids().len(), 1);
}

#[test]
fn a_flood_on_standard_error_is_bounded_and_its_last_words_are_harmless() {
    let home = faulty::home(&["s", "steady"]);
    let mut client = home.stdio(&[]);
    assert_ok(&mut client, "s:ok");
    assert_ok(&mut client, "steady:ok");
    let before = resident(client.child.id());
    let flood = begin(&mut client, "s:flood", &json!({"kind": "stderr", "count": 50_000}));
    for _ in 0..20 {
        assert_ok(&mut client, "steady:ok");
    }
    let response = client.response_or_aside(flood);
    assert_eq!(text(&response["result"]), "flooded", "{response}");
    assert_grown_little(&client, before);
    client.call("s:whisper", &json!({}));
    let call = begin(&mut client, "s:hang", &json!({}));
    let ledger = Ledger::of(&home, "s");
    ledger.await_call("hang");
    signal(ledger.pids()[0], "-KILL");
    let died = client.response(call);
    assert_problem(&died["result"], "DOWNSTREAM_DIED", "red");
    assert!(!text(&died["result"]).contains(['\u{1b}', '\u{7}']), "{died}");
}

#[test]
fn a_server_that_stops_reading_stalls_nobody_else() {
    let home = Home::new("");
    let deaf = faulty::allowed(&home, "s", &[], "call_timeout = \"2s\"");
    let steady = faulty::allowed(&home, "steady", &[], "");
    home.configure(&format!("{NO_MODEL}{deaf}{steady}"));
    let mut client = home.stdio(&[]);
    assert_ok(&mut client, "steady:ok");
    assert_eq!(text(&client.call("s:deaf", &json!({}))), "deaf from now on");
    // Loads the embedding model, which would otherwise be loaded at some moment of what is measured.
    client.call("pml_discover", &json!({"intent": "echo"}));
    let before = resident(client.child.id());
    let filling = "x".repeat(16 * 1024);
    let calls: Vec<u64> = (0..300).map(|_| begin(&mut client, "s:echo", &json!({"x": filling}))).collect();
    assert_ok(&mut client, "steady:ok");
    let mut seen = std::collections::BTreeSet::new();
    for id in calls {
        let response = client.response_or_aside(id);
        seen.insert(code(&response["result"]).to_owned());
    }
    // What was written may have been taken; what still waited here has not.
    assert_eq!(Vec::from_iter(seen), ["SERVER_DOWN", "TIMEOUT"]);
    assert_grown_little(&client, before);
    assert_ok(&mut client, "steady:ok");
}

// ---------------------------------------------------------------- servers that are slow to start

#[test]
fn while_one_server_starts_everything_else_answers() {
    let home = Home::new("");
    let slow = faulty::allowed(&home, "slow", &["--slow", "3000"], "");
    home.configure(&(slow + &faulty::allowed(&home, "steady", &[], "")));
    let mut client = home.stdio(&[]);
    let waiting = begin(&mut client, "slow:ok", &json!({}));
    let listed = client.request("tools/list", &json!({}));
    assert!(
        listed["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "pml_discover"),
        "{listed}"
    );
    assert_ok(&mut client, "steady:ok");
    assert!(client.aside.iter().all(|message| message["id"] != waiting), "nothing waited for the slow one");
    assert_eq!(text(&client.response(waiting)["result"]), "ok");
}

#[test]
fn a_server_that_still_starts_is_told_as_starting_and_not_as_unknown() {
    let home = Home::new("");
    home.configure(
        &(faulty::table(&home, "slow", &["--slow", "600000"], "start_timeout = \"300s\"\n")
            + "[servers.dead]\ncommand = \"/there/is/no/such/program\"\n"),
    );
    let mut client = home.stdio(&[]);
    let code = |code: &str| json!({ "intent": "try it", "implementation": { "type": "code", "code": code } });
    let told = client.call("pml_execute", &code("return await mcp.slow.ok({})"));
    assert_problem(&told, "SERVER_STARTING", "`slow` is still starting");
    assert!(!told.to_string().contains("no connected server"), "{told}");
    let told = client.call("pml_execute", &code("return await mcp.slow['ok']({})"));
    assert_problem(&told, "SERVER_STARTING", "`slow` is still starting");
    let told = client.call("pml_execute", &code("return await mcp.dead.ok({})"));
    // It is tried again from time to time.
    assert!(["SERVER_DOWN", "SERVER_STARTING"].contains(&faulty::code(&told)), "{told}");
    assert!(told.to_string().contains("server `dead` is"), "{told}");
    let told = client.call("pml_execute", &code("return await mcp.slwo.ok({})"));
    assert_problem(&told, "INVALID_PROGRAM", "no connected server is called `slwo`");
    let tasks = json!([{ "id": "a", "tool": "slow:ok", "arguments": {} }]);
    let dag = json!({ "type": "dag", "dagStructure": { "tasks": tasks } });
    let told = client.call("pml_execute", &json!({ "intent": "try it", "implementation": dag }));
    assert_problem(&told, "SERVER_STARTING", "`slow` is still starting");
    let tool = json!({ "type": "tool", "toolId": "slow:ok" });
    let told = client.call("pml_execute", &json!({ "intent": "try it", "implementation": tool }));
    assert_problem(&told, "SERVER_STARTING", "`slow` is still starting");
    let told = client.call("slow__ok", &json!({}));
    assert_problem(&told, "SERVER_STARTING", "`slow` is still starting");

    let found = client.call("pml_discover", &json!({ "intent": "anything at all" }));
    let notes = found["structuredContent"]["notes"].to_string();
    assert!(notes.contains("`slow` is still starting") && notes.contains("server `dead` is"), "{found}");
    let listed = home.run(&["list"]).stdout;
    assert!(listed.lines().any(|line| line.starts_with("slow") && line.contains("starting")), "{listed}");
    let listed = home.run(&["list", "slow"]).stdout;
    assert!(listed.contains("`slow` is starting") && listed.contains("not listed its tools"), "{listed}");
}

#[test]
fn a_server_that_never_gets_ready_is_given_up() {
    let home = Home::new("");
    home.configure(&faulty::allowed(&home, "slow", &["--slow", "600000"], "start_timeout = \"1s\""));
    let mut client = home.stdio(&[]);
    let result = client.call("slow:ok", &json!({}));
    assert!(["SERVER_STARTING", "SERVER_DOWN"].contains(&code(&result)), "{result}");
    let ledger = Ledger::of(&home, "slow");
    assert_eq!(ledger.events("call"), Vec::<Value>::new());
    eventually("its process is ended", || ledger.pids().into_iter().all(|pid| !lives(pid)));
}

// ---------------------------------------------------------------- servers that change their tools

#[test]
fn tools_that_change_while_a_server_runs_are_announced_recorded_and_in_force() {
    for era in ["legacy", "modern"] {
        let home = Home::new("");
        home.configure(&faulty::allowed(&home, "s", &["--era", era], "definitions = \"follow\""));
        let mut client = home.stdio(&["--expose", "full"]);
        assert_ok(&mut client, "s:ok");
        assert_problem(&client.call("s:fresh", &json!({})), "UNKNOWN_TOOL", "s:fresh");
        client.aside.clear();

        client.call("s:redefine", &json!({"add": "fresh"}));
        client.announced("notifications/tools/list_changed");
        assert_ok(&mut client, "s:fresh");
        let listed = client.request("tools/list", &json!({}));
        assert!(
            listed["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "s__fresh"),
            "{listed}"
        );

        let definition = json!({"description": "now it deletes files", "inputSchema": {"type": "object"}});
        client.call("s:redefine", &json!({"change": {"tool": "fresh", "definition": definition}}));
        client.announced("notifications/tools/list_changed");
        let changes = home.run(&["list", "--changes"]);
        assert!(changes.stdout.contains("s:fresh"), "{changes:?}");
        assert!(changes.stdout.contains("the tool fresh"), "{changes:?}");
        assert!(changes.stdout.contains("now it deletes files"), "{changes:?}");

        client.call("s:redefine", &json!({"remove": "fresh"}));
        client.announced("notifications/tools/list_changed");
        assert_problem(&client.call("s:fresh", &json!({})), "UNKNOWN_TOOL", "s:fresh");
        assert_eq!(Ledger::of(&home, "s").calls("fresh"), 1, "{era}");
    }
}

// ---------------------------------------------------------------- servers behind HTTP

#[test]
fn failures_of_a_remote_server_are_told_apart() {
    for era in ["legacy", "modern"] {
        let home = Home::new("");
        let remote = Remote::start(&home, "far", &["--era", era]);
        home.configure(&remote.allowed("far", ""));
        let mut client = home.stdio(&[]);
        let ledger = Ledger::of(&home, "far");
        assert_ok(&mut client, "far:ok");

        let result = client.call("far:status", &json!({"status": 500}));
        assert_problem(&result, "BAD_ANSWER", "HTTP 500");
        let result = client.call("far:reset", &json!({}));
        assert_problem(&result, "DOWNSTREAM_DIED", "`far`");
        for (status, code) in [(401, "LOGIN_REQUIRED"), (403, "UNAUTHORIZED")] {
            let result = client.call("far:status", &json!({"status": status}));
            assert_problem(&result, code, "`far`");
            assert!(text(&result).contains("set `bearer` or `headers` of `[servers.far]`"), "{result}");
        }
        let elsewhere = json!({"status": 307, "headers": {"location": "http://169.254.169.254/latest"}});
        let call = begin(&mut client, "far:status", &elsewhere);
        let response = client.response(call);
        assert!(response.to_string().contains("http://169.254.169.254/latest"), "{response}");
        assert_ok(&mut client, "far:ok");
        assert_eq!((ledger.calls("status"), ledger.calls("reset")), (4, 1), "{era}: nothing was sent twice");
    }
}

#[test]
fn an_answer_without_end_from_a_remote_server_is_cut_off() {
    let home = Home::new("");
    let remote = Remote::start(&home, "far", &[]);
    home.configure(&remote.allowed("far", ""));
    let mut client = home.stdio(&[]);
    assert_ok(&mut client, "far:ok");
    let before = resident(client.child.id());
    for kind in ["application/json", "text/event-stream"] {
        let result = client.call("far:endless", &json!({"type": kind}));
        assert_problem(&result, "BAD_ANSWER", "longer than a message may be");
        assert_ok(&mut client, "far:ok");
    }
    assert_grown_little(&client, before);
}

#[test]
fn a_remote_server_that_asks_for_a_pause_gets_it() {
    let home = Home::new("");
    let remote = Remote::start(&home, "far", &[]);
    home.configure(&remote.allowed("far", ""));
    let mut client = home.stdio(&[]);
    let limit = json!({"status": 429, "headers": {"retry-after": "300"}});
    assert_problem(&client.call("far:status", &limit), "RATE_LIMITED", "300 s");
    assert_problem(&client.call("far:ok", &json!({})), "RATE_LIMITED", "try again after");
    let ledger = Ledger::of(&home, "far");
    assert_eq!((ledger.calls("status"), ledger.calls("ok")), (1, 0));
}

#[test]
fn a_remote_server_that_is_gone_is_told_as_down_and_used_again_when_back() {
    let home = Home::new("");
    let remote = Remote::start(&home, "far", &[]);
    let port = remote.url.rsplit(':').next().unwrap().split('/').next().unwrap().to_owned();
    home.configure(&remote.allowed("far", ""));
    let mut client = home.stdio(&[]);
    assert_ok(&mut client, "far:ok");
    drop(remote);
    let result = client.call("far:ok", &json!({}));
    // The first call may still have found the old connection.
    assert!(["SERVER_DOWN", "DOWNSTREAM_DIED"].contains(&code(&result)), "{result}");
    assert_problem(&client.call("far:ok", &json!({})), "SERVER_DOWN", "`far`");
    let _back = Remote::start(&home, "far", &["--port", &port]);
    eventually("it is used again", || text(&client.call("far:ok", &json!({}))) == "ok");
    assert_eq!(Ledger::of(&home, "far").calls("ok"), 2);
}

#[test]
fn a_client_that_closes_its_stream_cancels_its_call() {
    use std::io::{Read as _, Write as _};
    let home = faulty::home(&["s"]);
    let served = home.serve(&[]);
    let address = served.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    });
    let params = json!({"name": "s:hang", "arguments": {}, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
         Mcp-Name: s:hang\r\nContent-Length: {}\r\n\r\n{body}",
        served.token,
        body.len()
    );
    let ledger = Ledger::of(&home, "s");
    // Once before the answer has become a stream, once after.
    for (round, wait_for_stream) in [false, true].into_iter().enumerate() {
        let mut socket = std::net::TcpStream::connect(&address).unwrap();
        socket.write_all(request.as_bytes()).unwrap();
        eventually("the call arrives", || ledger.calls("hang") == round + 1);
        if wait_for_stream {
            let mut head = [0; 12];
            socket.read_exact(&mut head).unwrap();
            assert_eq!(&head, b"HTTP/1.1 200");
        }
        drop(socket);
        eventually("the server hears of it", || ledger.events("cancelled").len() == round + 1);
    }
}

#[test]
fn a_server_that_closes_its_input_is_started_anew() {
    let home = faulty::home(&["s"]);
    let mut client = home.stdio(&[]);
    let ledger = Ledger::of(&home, "s");
    assert_eq!(text(&client.call("s:shut", &json!({}))), "taking nothing from now on");
    eventually("another process serves", || {
        let result = client.call("s:ok", &json!({}));
        result["isError"] != json!(true) && ledger.pids().len() > 1
    });
}
