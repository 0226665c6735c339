//! A run outlives the process it began in.

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::harness::{Home, eventually};
use crate::ledger::{self, Ledger, WAIT};

/// The runs of a home as the terminal lists them, the latest first.
pub fn listed(home: &Home) -> Vec<Value> {
    let list = home.run(&["runs", "list", "--json", "--limit", "10000"]);
    serde_json::from_str(&list.stdout).unwrap_or_else(|error| panic!("{error}: {list:?}"))
}

/// How a run stands.
pub fn state(home: &Home, id: &str) -> String {
    let run = listed(home).into_iter().find(|row| row["workflowId"] == id);
    run.unwrap_or_else(|| panic!("there is no run {id}"))["state"].as_str().unwrap().to_owned()
}

/// Waits until the journal has the ends of `count` calls of a run.
#[track_caller]
pub fn wait_for_ends(home: &Home, id: &str, count: usize) {
    eventually("the ends of calls are recorded", || {
        let calls = recording(home, id)["calls"].clone();
        calls.as_array().into_iter().flatten().filter(|call| call["ended"] == true).count() >= count
    });
}

/// Waits until the journal has `count` calls of a run.
#[track_caller]
fn wait_for_calls(home: &Home, id: &str, count: usize) {
    eventually("the calls are recorded", || {
        recording(home, id)["calls"].as_array().is_some_and(|calls| calls.len() == count)
    });
}

/// What came of a run, as the terminal shows it.
pub fn report(home: &Home, id: &str) -> Value {
    recording(home, id)["report"].clone()
}

/// All that is recorded of a run, as the terminal shows it.
pub fn recording(home: &Home, id: &str) -> Value {
    let shown = home.run(&["runs", "show", id, "--json"]);
    let shown: Value =
        serde_json::from_str(&shown.stdout).unwrap_or_else(|error| panic!("{error}: {shown:?}"));
    shown["recording"].clone()
}

#[test]
fn a_run_killed_between_two_writes_does_each_of_them_once() {
    let home = ledger::home("[builtin.fs]\nroot = \"files\"\n");
    std::fs::create_dir(home.path("files")).unwrap();
    let code = format!(
        r#"
        await mcp.fs.write({{ path: "notes.txt", content: "first\n", append: true }});
        const {{ id }} = await mcp.ledger.add({{ id: "between" }});
        {WAIT}
        await mcp.fs.write({{ path: "notes.txt", content: "second\n", append: true }});
        return id + ", then the second";
    "#
    );
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let started = gateway.execute(&code, &json!({}), &json!({ "detach": true }));
    let id = gateway.outcome(started)["workflowId"].as_str().unwrap().to_owned();
    wait_for_ends(&home, &id, 2);
    gateway.kill();
    assert_eq!(std::fs::read_to_string(home.path("files/notes.txt")).unwrap(), "first\n");

    let _next = Gateway::start(home.command(&["stdio"]));
    Ledger::of(&home).go();
    eventually("the run is done", || state(&home, &id) == "done");
    assert_eq!(std::fs::read_to_string(home.path("files/notes.txt")).unwrap(), "first\nsecond\n");
    assert_eq!(Ledger::of(&home).added(), ["between"]);
    assert_eq!(report(&home, &id)["result"], "between, then the second");
}

#[test]
fn a_call_in_doubt_is_a_question_that_a_client_sees_and_a_terminal_answers() {
    let home = ledger::home("");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let code = r#"
        const { id } = await mcp.ledger.add({ id: "doubtful", after: 60000 });
        const { id: next } = await mcp.ledger.add({ id: "next" });
        return [id, next];
    "#;
    let started = gateway.execute(code, &json!({}), &json!({ "detach": true }));
    let id = gateway.outcome(started)["workflowId"].as_str().unwrap().to_owned();
    Ledger::of(&home).wait_for("done", "add");
    gateway.kill();

    let mut gateway = Gateway::start(home.command(&["stdio"]));
    eventually("the run asks", || state(&home, &id) == "waiting");
    let asked = gateway.call("pml_get_task_result", &json!({ "workflow_id": id }));
    assert_eq!(
        (&asked["status"], &asked["question"]["type"]),
        (&json!("waiting"), &json!("in_doubt")),
        "{asked}"
    );
    let doubt = &asked["question"]["calls"][0];
    assert_eq!((&doubt["call"], &doubt["tool"]), (&json!(1), &json!("ledger:add")));
    let arguments: Value = serde_json::from_str(doubt["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments["id"], "doubtful");

    let shown = home.run(&["runs", "resume", &id]);
    assert_eq!(shown.code, 1, "{shown:?}");
    assert!(shown.stderr.contains("ledger:add") && shown.stderr.contains(r#""id":"doubtful""#), "{shown:?}");
    for wrong in ["1", "1=", "1={", "x=again", "2=again"] {
        let refused = home.run(&["runs", "resume", &id, "--call", wrong]);
        assert_ne!(refused.code, 0, "{wrong}: {refused:?}");
        assert_eq!(state(&home, &id), "waiting", "{wrong}");
    }
    // The gateway sees the answer as well; whoever takes the run up, the terminal tells how it ended.
    let resumed = home.run(&["runs", "resume", &id, "--call", r#"1={"id": "seen"}"#, "--json"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    let told: Value = serde_json::from_str(&resumed.stdout).unwrap();
    assert_eq!(told["result"], json!(["seen", "next"]));
    assert_eq!(
        gateway.call("pml_continue", &json!({ "workflow_id": id }))["result"],
        json!(["seen", "next"])
    );
    assert_eq!(Ledger::of(&home).added(), ["doubtful", "next"]);
}

#[test]
fn what_a_detached_run_was_promised_survives_a_kill_at_once() {
    let home = ledger::home("");
    for n in 0..25 {
        let mut gateway = Gateway::start(home.command(&["stdio"]));
        let started = gateway.execute("return args.n", &json!({ "n": n }), &json!({ "detach": true }));
        let id = gateway.outcome(started)["workflowId"].clone();
        gateway.kill();
        assert!(listed(&home).iter().any(|row| row["workflowId"] == id), "{id} of life {n} is lost");
    }
    let _last = Gateway::start(home.command(&["stdio"]));
    eventually("all are done", || listed(&home).iter().all(|row| row["state"] == "done"));
    assert_eq!(listed(&home).len(), 25);
}

#[test]
fn another_gateway_finishes_what_a_killed_one_began() {
    let home = ledger::home("");
    let code = format!(
        r#"
        const {{ id }} = await mcp.ledger.add({{ id: "one" }});
        {WAIT}
        return [id, (await mcp.ledger.add({{ id: "two" }})).id];
    "#
    );
    let _served = home.serve(&[]);
    let mut client = Gateway::start(home.command(&["stdio"]));
    let started = client.execute(&code, &json!({}), &json!({ "detach": true }));
    let id = client.outcome(started)["workflowId"].as_str().unwrap().to_owned();
    wait_for_ends(&home, &id, 1);
    client.kill();
    Ledger::of(&home).go();
    eventually("the other gateway has finished it", || state(&home, &id) == "done");
    assert_eq!(report(&home, &id)["result"], json!(["one", "two"]));
    assert_eq!(Ledger::of(&home).added(), ["one", "two"]);
}

#[test]
fn aborting_an_interrupted_run_tells_what_it_did_and_what_nobody_knows() {
    let home = ledger::home("[runs]\nresume = false\n[limits]\nconcurrent_per_server = 1\n");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let code = r#"
        const { id } = await mcp.ledger.add({ id: "answered" });
        const rest = [mcp.ledger.add({ id: "sent", after: 60000 }), mcp.ledger.add({ id: "waiting" })];
        return [id, ...await Promise.all(rest)];
    "#;
    let started = gateway.execute(code, &json!({}), &json!({ "detach": true }));
    let id = gateway.outcome(started)["workflowId"].as_str().unwrap().to_owned();
    let ledger = Ledger::of(&home);
    eventually("the second is sent", || ledger.added().len() == 2);
    wait_for_calls(&home, &id, 3);
    gateway.kill();

    let aborted = home.run(&["runs", "abort", &id, "--reason", "enough", "--json"]);
    assert_eq!(aborted.code, 0, "{aborted:?}");
    let told: Value = serde_json::from_str(&aborted.stdout).unwrap();
    for report in [&told, &report(&home, &id)] {
        assert_eq!((&report["state"], &report["error"]["code"]), (&json!("aborted"), &json!("ABORTED")));
        assert!(report["error"]["message"].as_str().unwrap().contains("enough"), "{report}");
        assert_eq!(report["error"]["inDoubt"], json!([2]), "{report}");
        let tasks: Vec<(&str, &str)> = report["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|task| (task["tool"].as_str().unwrap(), task["status"].as_str().unwrap()))
            .collect();
        assert_eq!(
            tasks,
            [("ledger:add", "success"), ("ledger:add", "unknown"), ("ledger:add", "cancelled")]
        );
    }
    let shown = home.run(&["runs", "show", &id]).stdout;
    assert!(shown.contains("aborted") && shown.contains("unknown"), "{shown}");
    assert_eq!(state(&home, &id), "aborted");
    assert_eq!(ledger.ids("got"), ["answered", "sent"]);
    let again = home.run(&["runs", "abort", &id]);
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.stderr.contains(&format!("aborted run `{id}`")), "{again:?}");
    assert!(again.stderr.contains("not known: [2]") && !again.stderr.contains("error"), "{again:?}");
}
