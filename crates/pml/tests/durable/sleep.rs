//! A run that sleeps costs nothing, and wakes in whichever process there is when its time has come.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::harness::{Home, eventually};
use crate::ledger::{self, Ledger};
use crate::resume::{listed, report, state, wait_for_ends};

const HOUR: i64 = 60 * 60;

/// What makes the clock of a process go ahead. Built with the C compiler that PML itself needs.
fn clock(home: &Home) -> PathBuf {
    let library = home.path("clock.so");
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/durable/clock.c");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
    assert!(built.unwrap().success());
    library
}

/// A command on a machine whose clock is `seconds` ahead.
pub fn ahead(home: &Home, seconds: i64, args: &[&str]) -> Command {
    let mut command = home.command(args);
    command.env("LD_PRELOAD", clock(home)).env("AHEAD", seconds.to_string());
    command
}

const SLEEPER: &str = r#"
    const before = Date.now();
    const { id } = await mcp.ledger.add({ id: `${args.n} before` });
    await new Promise((wake) => setTimeout(wake, 3600 * 1000));
    const { id: last } = await mcp.ledger.add({ id: `${args.n} after` });
    return { slept: Date.now() - before, id, last };
"#;

#[test]
fn a_program_sleeps_an_hour_without_a_process_and_wakes_in_another() {
    let home = ledger::home("[runs]\nworkers = 1\n");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let reply = gateway.run(SLEEPER, &json!({ "n": 1 }));
    assert_eq!(reply["status"], "running", "{reply}");
    let id = reply["workflowId"].as_str().unwrap().to_owned();
    let row = listed(&home).remove(0);
    let wakes_in = row["wakeAt"].as_i64().unwrap() - row["createdAt"].as_i64().unwrap();
    assert!((HOUR * 1000..HOUR * 1000 + 60_000).contains(&wakes_in), "{row}");
    assert_eq!(row["state"], "waiting");
    let list = home.run(&["runs", "list"]);
    assert!(list.stdout.contains("sleeps until"), "{list:?}");
    // One idle worker is kept; none is held by the run.
    eventually("its worker is gone", || gateway.workers().len() == 1);
    gateway.hang_up();
    assert_eq!(gateway.ends_within(Duration::from_secs(10)), 0);

    // Half an hour later it still sleeps, also for someone who asks it to go on.
    let mut gateway = Gateway::start(ahead(&home, HOUR / 2, &["stdio"]));
    let reply = gateway.call("pml_continue", &json!({ "workflow_id": id }));
    assert_eq!(reply["status"], "running", "{reply}");
    assert_eq!(reply["wakeAt"], row["wakeAt"], "{reply}");
    assert_eq!(home.run(&["runs", "resume", &id]).code, 0);
    assert_eq!(state(&home, &id), "waiting");
    assert_eq!(listed(&home)[0]["wakeAt"], row["wakeAt"]);
    gateway.hang_up();
    assert_eq!(gateway.ends_within(Duration::from_secs(10)), 0);
    assert_eq!(Ledger::of(&home).added(), ["1 before"]);

    let _late = Gateway::start(ahead(&home, HOUR + 60, &["stdio"]));
    eventually("the run is done", || state(&home, &id) == "done");
    let result = report(&home, &id)["result"].clone();
    let slept = result["slept"].as_i64().unwrap();
    assert!((HOUR * 1000..HOUR * 1000 + 300_000).contains(&slept), "{result}");
    assert_eq!((&result["id"], &result["last"]), (&json!("1 before"), &json!("1 after")));
    assert_eq!(Ledger::of(&home).added(), ["1 before", "1 after"]);
}

#[test]
fn a_hundred_sleepers_hold_no_process_and_all_wake() {
    const SLEEPERS: usize = 100;
    let home = ledger::home("[runs]\nworkers = 1\n");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let begin = |gateway: &mut Gateway, n: usize| {
        gateway.execute(SLEEPER, &json!({ "n": n }), &json!({ "detach": true }))
    };
    let requests: Vec<u64> = (0..SLEEPERS).map(|n| begin(&mut gateway, n)).collect();
    for (n, mut request) in requests.into_iter().enumerate() {
        // A busy machine refuses those whose turn does not come in time.
        while gateway.outcome(request)["error"]["code"] == "BUSY" {
            request = begin(&mut gateway, n);
        }
    }
    let sleeping = |home: &Home| listed(home).iter().filter(|row| row["state"] == "waiting").count();
    eventually("all sleep", || sleeping(&home) == SLEEPERS);
    eventually("no worker is left but an idle one", || gateway.workers().len() == 1);
    gateway.kill();

    let late = Gateway::start(ahead(&home, HOUR + 60, &["stdio"]));
    let done = |row: &Value| row["state"] == "done";
    eventually("all are done", || listed(&home).iter().all(done));
    let mut added = Ledger::of(&home).added();
    added.sort();
    added.dedup();
    assert_eq!((added.len(), Ledger::of(&home).added().len()), (2 * SLEEPERS, 2 * SLEEPERS));
    drop(late);
}

#[test]
fn a_clock_that_is_set_forward_or_back_ends_no_run_and_repeats_no_call() {
    let code = r#"
        const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));
        const added = [(await mcp.ledger.add({ id: "0" })).id];
        do await sleep(300); while ((await mcp.ledger.get({ key: "go" })).value === null);
        for (let i = 1; i < 3; i++) {
          added.push((await mcp.ledger.add({ id: `${i}` })).id);
          await sleep(300);
        }
        return added;
    "#;
    for (first, then) in [(0, HOUR), (3 * 24 * HOUR, 0), (0, -3 * 24 * HOUR), (HOUR, -HOUR)] {
        // Long enough for results to be kept whatever the time is.
        let home = ledger::home("[runs]\nkeep_results = \"720h\"\n");
        let mut gateway = Gateway::start(ahead(&home, first, &["stdio"]));
        let started = gateway.execute(code, &json!({}), &json!({ "detach": true }));
        let id = gateway.outcome(started)["workflowId"].as_str().unwrap().to_owned();
        wait_for_ends(&home, &id, 1);
        gateway.kill();
        Ledger::of(&home).go();
        let _later = Gateway::start(ahead(&home, then, &["stdio"]));
        eventually("the run is done", || state(&home, &id) == "done");
        assert_eq!(report(&home, &id)["result"], json!(["0", "1", "2"]));
        assert_eq!(Ledger::of(&home).added(), ["0", "1", "2"]);
    }
}
