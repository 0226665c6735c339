//! A run outlives the process it began in also while a capability that it called is under way.

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::harness::eventually;
use crate::ledger::{self, Ledger, WAIT};
use crate::resume::{recording, report, state, wait_for_ends};

#[test]
fn a_run_killed_within_a_capability_does_each_thing_once() {
    let home = ledger::home("");
    let file = home.path("inner.ts");
    let inner = format!(
        "const first = await mcp.ledger.add({{ id: `${{args.id}} first` }});\n{WAIT}\n\
         const second = await mcp.ledger.add({{ id: `${{args.id}} second` }});\nreturn [first.id, second.id];"
    );
    std::fs::write(&file, inner).unwrap();
    let made = home.run(&[
        "capabilities",
        "create",
        "add two",
        "--name",
        "add_two",
        "--code",
        file.to_str().unwrap(),
    ]);
    assert_eq!(made.code, 0, "{made:?}");

    let code = "const { id } = await mcp.ledger.add({ id: 'outer' });\n\
                const both = await Promise.all([capabilities.add_two({ id: 'a' }), capabilities.add_two({ id: 'b' })]);\n\
                return [id, ...both];";
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let started = gateway.execute(code, &json!({}), &json!({ "detach": true }));
    let id = gateway.outcome(started)["workflowId"].as_str().unwrap().to_owned();
    wait_for_ends(&home, &id, 3);
    gateway.kill();
    let recorded = recording(&home, &id);
    let nodes: Vec<&Value> =
        recorded["calls"].as_array().unwrap().iter().take(3).map(|call| &call["node"]).collect();
    assert_eq!(json!(nodes), json!(["n1", "n2/n1", "n3/n1"]));

    // What it is called by no longer matters: the run keeps what it was planned with.
    let renamed = home.run(&["capabilities", "rename", "add_two", "another"]);
    assert_eq!(renamed.code, 0, "{renamed:?}");
    let _next = Gateway::start(home.command(&["stdio"]));
    Ledger::of(&home).go();
    eventually("the run is done", || state(&home, &id) == "done");
    let mut added = Ledger::of(&home).added();
    added.sort();
    assert_eq!(added, ["a first", "a second", "b first", "b second", "outer"]);
    let told = report(&home, &id);
    assert_eq!(told["result"], json!(["outer", ["a first", "a second"], ["b first", "b second"]]));
    assert_eq!(told["path"]["nodes"], json!(["n1", "f1", "n2", "n3"]));
    let by = |name: &str| {
        told["tasks"].as_array().unwrap().iter().filter(|task| task["capability"] == name).count()
    };
    assert!(by("add_two") >= 4, "{told}");

    let replayed = home.run(&["runs", "replay", &id]);
    assert_eq!(replayed.code, 0, "{replayed:?}");
    let shown = home.run(&["capabilities", "show", "another", "--json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let parts = shown["recentTraces"].as_array().unwrap();
    assert_eq!(parts.len(), 2, "{shown}");
    assert!(
        parts.iter().all(|part| part["status"] == "success" && part["parentTraceId"].is_string()),
        "{shown}"
    );
}
