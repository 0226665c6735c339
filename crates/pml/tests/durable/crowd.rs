//! Many programs at a time, and more than there is room for.

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::harness::eventually;
use crate::ledger::{self, Ledger};
use crate::resume::listed;

/// As many programs as run at a time in one process, and as many as may wait.
const AT_ONCE: usize = 64;
const QUEUE: usize = 1_000;

#[test]
fn sixty_four_programs_run_at_a_time_and_each_gets_its_own_result() {
    let home = ledger::home("");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let code = r#"
        const mine = await Promise.all([0, 1, 2].map((i) => mcp.ledger.add({ id: `${args.n}.${i}`, before: 20 })));
        await mcp.ledger.put({ key: `${args.n}`, value: args.n });
        const { value } = await mcp.ledger.get({ key: `${args.n}` });
        return { value, ids: mine.map((one) => one.id) };
    "#;
    let requests: Vec<u64> =
        (0..AT_ONCE).map(|n| gateway.execute(code, &json!({ "n": n }), &json!({}))).collect();
    for (n, request) in requests.into_iter().enumerate() {
        let reply = gateway.outcome(request);
        let ids: Vec<String> = (0..3).map(|i| format!("{n}.{i}")).collect();
        assert_eq!(reply["result"], json!({ "value": n, "ids": ids }), "{reply}");
    }
    let mut added = Ledger::of(&home).added();
    added.sort();
    added.dedup();
    assert_eq!((added.len(), Ledger::of(&home).added().len()), (3 * AT_ONCE, 3 * AT_ONCE));
    assert!(listed(&home).iter().all(|row| row["state"] == "done"));
}

/// Keeps its sandbox for as long as a test may take: no timer is so far away that it is put aside.
const LONG: &str =
    "for (let i = 0; i < 20; i++) await new Promise((wake) => setTimeout(wake, 9000)); return 1;";

#[test]
fn programs_beyond_the_queue_are_told_to_come_later() {
    let home = ledger::home("");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let beyond = 5;
    let requests: Vec<u64> =
        (0..AT_ONCE + QUEUE + beyond).map(|_| gateway.execute(LONG, &json!({}), &json!({}))).collect();
    let refused: Vec<Value> = (0..beyond).map(|_| gateway.any_outcome(&requests)).collect();
    for reply in refused {
        assert_busy(&reply, &format!("{QUEUE} wait"));
    }
}

/// It says that it is busy, why, and that nothing was run.
#[track_caller]
fn assert_busy(reply: &Value, why: &str) {
    assert_eq!(reply["error"]["code"], "BUSY", "{reply}");
    assert!(reply["error"]["message"].as_str().unwrap().contains(why), "{reply}");
    assert!(reply["error"]["hint"].as_str().unwrap().contains("nothing was run"), "{reply}");
    assert_eq!(reply.get("workflowId"), None, "{reply}");
}

#[test]
fn a_program_whose_turn_does_not_come_in_time_is_told_so_and_did_nothing() {
    let home = ledger::home("");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let code = "return (await mcp.ledger.add({ id: args.id })).id;";
    assert_eq!(gateway.run(code, &json!({ "id": "early" }))["result"], "early");
    for _ in 0..AT_ONCE {
        gateway.execute(LONG, &json!({}), &json!({}));
    }
    eventually("all run", || listed(&home).len() == AT_ONCE + 1);
    let late: Vec<u64> = [json!({ "waitMs": 0 }), json!({ "detach": true })]
        .iter()
        .map(|options| gateway.execute(code, &json!({ "id": "late" }), options))
        .collect();
    for request in late {
        assert_busy(&gateway.outcome(request), "all sandboxes are in use");
    }
    assert_eq!(listed(&home).len(), AT_ONCE + 1, "nothing is recorded of what was refused");
    // Its turn comes when another run ends.
    let patient = gateway.execute(code, &json!({ "id": "patient" }), &json!({}));
    gateway.call("pml_abort", &json!({ "workflow_id": listed(&home)[0]["workflowId"] }));
    assert_eq!(gateway.outcome(patient)["result"], "patient");
    assert_eq!(Ledger::of(&home).ids("got"), ["early", "patient"]);
}

#[test]
fn a_limit_ends_the_run_that_exceeds_it_and_no_other() {
    let home = ledger::home("[limits]\ncalls = 20\ncpu = \"500ms\"\nwall = \"8s\"\nheap = \"16MiB\"\n");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let steady = r#"
        const added = [];
        for (let i = 0; i < 5; i++) added.push((await mcp.ledger.add({ id: `steady ${i}`, before: 100 })).id);
        return added.length;
    "#;
    let steady = gateway.execute(steady, &json!({}), &json!({}));
    let greedy = [
        ("while (true) {}", "TIMEOUT"),
        ("const all = []; while (true) all.push(new Array(1000).fill(all.length));", "MEMORY"),
        ("for (;;) await mcp.ledger.get({ key: 'x' });", "LIMIT"),
        ("await mcp.ledger.get({ key: 'x', before: 60000 }); return 1;", "TIMEOUT"),
        ("const deep = (n) => deep(n + 1) + 1; return deep(0);", ""),
        ("await new Promise(() => {}); return 1;", "DEADLOCK"),
    ];
    let requests: Vec<u64> =
        greedy.iter().map(|(code, _)| gateway.execute(code, &json!({}), &json!({}))).collect();
    for ((code, expected), request) in greedy.iter().zip(requests) {
        let reply = gateway.outcome(request);
        assert_eq!(reply["status"], "failed", "{code}: {reply}");
        let told = reply["error"]["code"].as_str().unwrap();
        assert!(told.contains(expected), "{code}: {reply}");
    }
    let reply = gateway.outcome(steady);
    assert_eq!(reply["result"], 5, "{reply}");
}
