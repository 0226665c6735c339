//! Several processes want the same run; one gets it.

use std::collections::HashMap;
use std::process::Stdio;
use std::time::Duration;

use pml_model::{Principal, RunState};
use pml_store::{BlockingStore, RunQuery, RunRow};
use serde_json::json;

use crate::gateway::Gateway;
use crate::harness::eventually;
use crate::ledger::{self, Ledger, WAIT};
use crate::resume::{listed, report, wait_for_ends};
use crate::sleep::ahead;

const RUNS: usize = 24;

#[test]
fn of_all_who_would_take_a_run_up_one_does() {
    let home = ledger::home("");
    // Between two calls when it is killed, so that nothing is in doubt.
    let code = format!(
        r#"
        const first = await mcp.ledger.add({{ id: `${{args.n}} first` }});
        {WAIT}
        const second = await mcp.ledger.add({{ id: `${{args.n}} second`, before: 20 }});
        return [first.id, second.id];
    "#
    );
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    for n in 0..RUNS {
        gateway.execute(&code, &json!({ "n": n }), &json!({ "detach": true }));
    }
    let ledger = Ledger::of(&home);
    eventually("every run has made its first call", || ledger.ids("answered").len() == RUNS);
    let runs: Vec<String> =
        listed(&home).iter().map(|row| row["workflowId"].as_str().unwrap().to_owned()).collect();
    assert_eq!(runs.len(), RUNS);
    runs.iter().for_each(|id| wait_for_ends(&home, id, 1));
    gateway.kill();
    ledger.go();

    let mut gateways: Vec<Gateway> = (0..2).map(|_| Gateway::start(home.command(&["stdio"]))).collect();
    let terminals: Vec<_> = runs
        .iter()
        .step_by(4)
        .map(|id| {
            let mut command = home.command(&["runs", "resume", id, "--json"]);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    eventually("every run is done", || listed(&home).iter().all(|row| row["state"] == "done"));
    for terminal in terminals {
        let output = terminal.wait_with_output().unwrap();
        let (told, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(
            output.status.success() || told.contains("BUSY") || said.contains("another process"),
            "{told}{said}"
        );
    }
    let mut counts: HashMap<String, usize> = HashMap::new();
    for id in ledger.added() {
        *counts.entry(id).or_default() += 1;
    }
    assert_eq!(counts.len(), 2 * RUNS);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    for id in &runs {
        let result = report(&home, id)["result"].clone();
        let n = result[0].as_str().unwrap().strip_suffix(" first").unwrap();
        assert_eq!(result[1], format!("{n} second"));
    }
    for gateway in &mut gateways {
        gateway.hang_up();
        assert_eq!(gateway.ends_within(Duration::from_secs(10)), 0);
    }
}

/// For a gateway whose clock is ahead the others have let their runs lapse: it takes them while they are being worked on.
#[test]
fn a_gateway_that_lost_its_runs_sends_nothing_more_for_them() {
    const STOLEN: usize = 8;
    let home = ledger::home("[runs]\nworkers = 1\n");
    let code = r#"
        const added = [];
        for (let i = 0; i < 20; i++) {
          const id = `${args.n}.${i}`;
          try { added.push((await mcp.ledger.add({ id, after: 150 })).id); }
          catch (error) { added.push(`failed ${id}`); }
        }
        return added;
    "#;
    let mut first = Gateway::start(home.command(&["stdio"]));
    let requests: Vec<u64> =
        (0..STOLEN).map(|n| first.execute(code, &json!({ "n": n }), &json!({}))).collect();
    let ledger = Ledger::of(&home);
    eventually("all are under way", || (0..STOLEN).all(|n| ledger.ids("got").contains(&format!("{n}.1"))));
    let mut second = Gateway::start(ahead(&home, 60, &["stdio"]));
    for request in requests {
        let reply = first.outcome(request);
        assert!(
            ["running", "approval_required", "success"].contains(&reply["status"].as_str().unwrap()),
            "{reply}"
        );
    }
    eventually("the first works on none of them", || first.workers().len() == 1);
    // What it took up from now on would lapse for the other at once.
    first.hang_up();
    assert_eq!(first.ends_within(Duration::from_secs(10)), 0);
    // Where a call was under way, nobody but a person knows its end.
    eventually("each is done or asks", || {
        listed(&home).iter().all(|row| row["state"] == "done" || !row["questionId"].is_null())
    });
    let asking: Vec<String> = listed(&home)
        .iter()
        .filter(|row| row["state"] == "waiting")
        .map(|row| row["workflowId"].as_str().unwrap().to_owned())
        .collect();
    assert!(!asking.is_empty(), "a call was under way");
    for id in &asking {
        let asked = second.call("pml_get_task_result", &json!({ "workflow_id": id }));
        let doubts = asked["question"]["calls"].as_array().unwrap_or_else(|| panic!("{asked}")).clone();
        let said: Vec<String> = doubts.iter().map(|doubt| format!("{}=failed", doubt["call"])).collect();
        let args: Vec<&str> = said.iter().flat_map(|said| ["--call", said]).collect();
        let resumed =
            ahead(&home, 60, &[&["runs", "resume", id.as_str()], &args[..]].concat()).output().unwrap();
        assert!(resumed.status.success(), "{resumed:?}");
    }
    eventually("all are done", || listed(&home).iter().all(|row| row["state"] == "done"));
    let mut counts: HashMap<String, usize> = HashMap::new();
    for id in ledger.ids("got") {
        *counts.entry(id).or_default() += 1;
    }
    assert_eq!(counts.len(), STOLEN * 20);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
}

/// As long as a process holds a run without saying so again.
const LEASE_MS: i64 = 15_000;
/// As many programs as run at a time in one process.
const AT_ONCE: usize = 64;

/// All sandboxes are in use, and runs of others wait to be taken up: our own are kept all the same.
#[test]
fn a_process_that_has_more_to_do_than_it_can_keeps_its_runs() {
    let home = ledger::home("");
    let code = r#"
        while ((await mcp.ledger.get({ key: "go", before: 200 })).value === null);
        return args.n;
    "#;
    let mut busy = Gateway::start(home.command(&["stdio"]));
    for n in 0..AT_ONCE {
        busy.execute(code, &json!({ "n": n }), &json!({}));
    }
    let ledger = Ledger::of(&home);
    eventually("all run", || ledger.count("got", "get") >= AT_ONCE && listed(&home).len() == AT_ONCE);
    let mut other = Gateway::start(home.command(&["stdio"]));
    let left = other.execute(code, &json!({ "n": AT_ONCE }), &json!({ "detach": true }));
    let left = other.outcome(left)["workflowId"].as_str().unwrap().to_owned();
    other.kill();

    let store = BlockingStore::open(&home.path("pml.db")).unwrap();
    let everything = RunQuery { state: None, before: None, limit: 1_000 };
    let rows = || store.runs(&Principal::local(), &everything).unwrap();
    eventually("nobody works on the run that was left", || {
        rows().iter().any(|row| row.id.as_str() == left && row.state == RunState::Interrupted)
    });
    let renewed = |row: &RunRow| {
        row.owner.as_ref().is_some_and(|(_, until)| *until > row.created_at + LEASE_MS + 1_000)
    };
    eventually("the others are renewed", || rows().iter().filter(|row| row.id.as_str() != left).all(renewed));
    for row in rows().iter().filter(|row| row.id.as_str() != left) {
        assert_eq!((row.state, row.fence), (RunState::Running, 1), "{row:?}");
    }
    ledger.go();
    eventually("all are done", || listed(&home).iter().all(|row| row["state"] == "done"));
}
