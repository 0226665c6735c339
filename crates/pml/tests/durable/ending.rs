//! Runs that are called off, and processes that end or are ended while programs run.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use pml_model::{Principal, RunId};
use pml_store::BlockingStore;
use serde_json::{Value, json};

use crate::gateway::{Gateway, group_of, signal};
use crate::harness::{Home, eventually, lives};
use crate::ledger::{self, Ledger, WAIT};
use crate::resume::{listed, recording, report, state, wait_for_ends};

/// As long as a gateway may take to end.
const LEAVING: Duration = Duration::from_secs(10);

/// One worker is kept ready, so that those of runs can be told from it.
const ONE_WORKER: &str = "[runs]\nworkers = 1\n";

fn cancel(gateway: &mut Gateway, request: u64) {
    let params = json!({ "requestId": request, "reason": "no longer wanted" });
    gateway.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
}

#[test]
fn a_cancelled_run_ends_with_its_worker_and_its_calls() {
    let home = ledger::home(ONE_WORKER);
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let code = r#"
        await mcp.ledger.get({ key: "long", before: 60000 });
        return (await mcp.ledger.add({ id: "never" })).id;
    "#;
    let request = gateway.execute(code, &json!({}), &json!({}));
    let ledger = Ledger::of(&home);
    ledger.wait_for("got", "get");
    assert_eq!(gateway.workers().len(), 2);
    cancel(&mut gateway, request);
    eventually("the server hears that nobody waits", || ledger.called_off() == 1);
    eventually("the worker is gone", || gateway.workers().len() == 1);
    eventually("the run is cancelled", || listed(&home)[0]["state"] == "cancelled");
    assert_eq!(gateway.run("return 1", &json!({}))["result"], 1);
    assert_eq!(ledger.added(), [""; 0]);
}

#[test]
fn a_write_under_way_is_waited_for_when_its_run_is_cancelled() {
    let home = ledger::home("");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let code = r#"
        await mcp.ledger.add({ id: "under way", after: 1000 });
        await mcp.ledger.add({ id: "never" });
    "#;
    let request = gateway.execute(code, &json!({}), &json!({}));
    let ledger = Ledger::of(&home);
    ledger.wait_for("done", "add");
    cancel(&mut gateway, request);
    eventually("the run is cancelled", || listed(&home)[0]["state"] == "cancelled");
    let report = report(&home, listed(&home)[0]["workflowId"].as_str().unwrap());
    assert_eq!(report["tasks"][0]["status"], "success", "{report}");
    assert_eq!(report["error"].get("inDoubt"), None, "{report}");
    assert_eq!((ledger.added(), ledger.called_off()), (vec!["under way".to_owned()], 0));
}

#[test]
fn a_write_that_takes_too_long_is_in_doubt_when_its_run_is_aborted() {
    let home = ledger::home("");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let code = r#"await mcp.ledger.add({ id: "too long", after: 60000 });"#;
    let started = gateway.execute(code, &json!({}), &json!({ "detach": true }));
    let id = gateway.outcome(started)["workflowId"].as_str().unwrap().to_owned();
    let ledger = Ledger::of(&home);
    ledger.wait_for("done", "add");
    let aborted = gateway.call("pml_abort", &json!({ "workflow_id": id, "reason": "enough" }));
    assert_eq!(aborted["status"], "failed", "{aborted}");
    assert_eq!(aborted["error"]["inDoubt"], json!([1]), "{aborted}");
    assert_eq!(aborted["tasks"][0]["status"], "unknown", "{aborted}");
    assert_eq!(state(&home, &id), "aborted");
    eventually("the server hears that nobody waits", || ledger.called_off() == 1);
}

/// Ends a run while a write of it is under way, by `end`, and kills the gateway while that is waited for.
fn killed_while_ending(end: impl FnOnce(&mut Gateway, u64, &str)) -> (Home, String) {
    let home = ledger::home("");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let code = r#"
        await mcp.ledger.add({ id: "under way", after: 60000 });
        await mcp.ledger.add({ id: "never" });
    "#;
    let request = gateway.execute(code, &json!({}), &json!({}));
    Ledger::of(&home).wait_for("done", "add");
    let id = listed(&home)[0]["workflowId"].as_str().unwrap().to_owned();
    end(&mut gateway, request, &id);
    let store = BlockingStore::open(&home.path("pml.db")).unwrap();
    let run = RunId::parse(&id).unwrap();
    eventually("it is known how it is to end", || {
        store.load_run(&Principal::local(), &run).is_ok_and(|recorded| recorded.requested_end.is_some())
    });
    assert_eq!(state(&home, &id), "running");
    drop(store);
    gateway.kill();
    (home, id)
}

#[test]
fn what_was_cancelled_stays_cancelled_when_the_gateway_is_killed_before_it_is() {
    let (home, id) = killed_while_ending(|gateway, request, _| cancel(gateway, request));
    let _next = Gateway::start(home.command(&["stdio"]));
    eventually("the next one ends it", || state(&home, &id) == "cancelled");
    let report = report(&home, &id);
    assert_eq!(report["error"]["inDoubt"], json!([1]), "{report}");
    assert_eq!(Ledger::of(&home).ids("got"), ["under way"]);
}

#[test]
fn what_was_aborted_stays_aborted_when_the_gateway_is_killed_before_it_is() {
    let (home, id) = killed_while_ending(|gateway, _, id| {
        let arguments = json!({ "workflow_id": id, "reason": "enough" });
        gateway.begin("tools/call", &json!({ "name": "pml_abort", "arguments": arguments }));
    });
    let resumed = home.run(&["runs", "resume", &id]);
    assert_eq!(state(&home, &id), "aborted", "{resumed:?}");
    assert!(report(&home, &id)["error"]["message"].as_str().unwrap().contains("enough"));
}

#[test]
fn a_client_that_hangs_up_cancels_what_it_waits_for_and_leaves_the_rest_to_others() {
    let home = ledger::home("");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let waits = r#"await mcp.ledger.get({ key: "long", before: 60000 }); return 1;"#;
    let detached = format!(
        r#"
        const {{ id }} = await mcp.ledger.add({{ id: "one" }});
        {WAIT}
        return [id, (await mcp.ledger.add({{ id: "two" }})).id];
    "#
    );
    let second = gateway.execute(&detached, &json!({}), &json!({ "detach": true }));
    let second = gateway.outcome(second)["workflowId"].as_str().unwrap().to_owned();
    gateway.execute(waits, &json!({}), &json!({}));
    let ledger = Ledger::of(&home);
    eventually("both are under way", || ledger.count("got", "get") >= 2);
    wait_for_ends(&home, &second, 1);
    let workers = gateway.workers();
    gateway.hang_up();
    assert_eq!(gateway.ends_within(LEAVING), 0);
    eventually("no worker outlives its gateway", || workers.iter().all(|pid| !lives(*pid)));
    let rows = listed(&home);
    let first = rows.iter().find(|row| row["workflowId"] != second.as_str()).unwrap();
    assert_eq!(first["state"], "cancelled", "{first}");
    assert_eq!(state(&home, &second), "interrupted");

    ledger.go();
    let _next = Gateway::start(home.command(&["stdio"]));
    eventually("the detached run is done", || state(&home, &second) == "done");
    assert_eq!(report(&home, &second)["result"], json!(["one", "two"]));
    assert_eq!(ledger.added(), ["one", "two"]);
}

/// Asks for runs, ends the gateway when all have begun, and lets the next one finish them.
fn ended_by_a_signal(options: &Value) {
    const RUNS: usize = 10;
    // One write is under way for a while, the rest waits.
    let code = format!(
        r#"
        const slow = mcp.ledger.add({{ id: `${{args.n}} slow`, after: 2500 }});
        const first = await mcp.ledger.add({{ id: `${{args.n}} first` }});
        {WAIT}
        const last = await mcp.ledger.add({{ id: `${{args.n}} last` }});
        return [first.id, (await slow).id, last.id];
    "#
    );
    let home = ledger::home("");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    for n in 0..RUNS {
        gateway.execute(&code, &json!({ "n": n }), options);
    }
    let ledger = Ledger::of(&home);
    eventually("all have begun", || ledger.ids("got").len() == 2 * RUNS);
    signal(gateway.child.id(), "-TERM");
    assert_eq!(gateway.ends_within(LEAVING), 0);
    for row in listed(&home) {
        assert_eq!(row["state"], "interrupted", "{row}");
    }

    ledger.go();
    let _next = Gateway::start(home.command(&["stdio"]));
    eventually("all are done", || listed(&home).iter().all(|row| row["state"] == "done"));
    assert_eq!(listed(&home).len(), RUNS);
    let mut added = ledger.added();
    added.sort();
    added.dedup();
    assert_eq!((added.len(), ledger.added().len()), (3 * RUNS, 3 * RUNS));
}

#[test]
fn a_gateway_asked_to_end_leaves_detached_runs_to_the_next() {
    ended_by_a_signal(&json!({ "detach": true }));
}

#[test]
fn a_gateway_asked_to_end_leaves_awaited_runs_to_the_next() {
    ended_by_a_signal(&json!({}));
}

/// What Ctrl-C in a terminal does: every process of the foreground group is told to end, and that is the gateway alone.
#[test]
fn a_terminal_interrupts_the_gateway_and_neither_its_workers_nor_its_servers() {
    let home = ledger::home("");
    let mut command = home.command(&["stdio"]);
    command.process_group(0);
    let mut gateway = Gateway::start(command);
    // Longer than a server is given to end.
    let code = format!(
        r#"
        const slow = mcp.ledger.add({{ id: "slow", after: 2500 }});
        {WAIT}
        return [(await slow).id, (await mcp.ledger.add({{ id: "last" }})).id];
    "#
    );
    gateway.execute(&code, &json!({}), &json!({}));
    let ledger = Ledger::of(&home);
    ledger.wait_for("done", "add");
    let group = gateway.child.id();
    assert_eq!(group_of(group), Some(group));
    assert!(!gateway.workers().is_empty());
    for worker in gateway.workers() {
        assert_ne!(group_of(worker), Some(group), "worker {worker} would be interrupted too");
    }
    assert!(Command::new("kill").args(["-INT", "--", &format!("-{group}")]).status().unwrap().success());
    assert_eq!(gateway.ends_within(LEAVING), 0);
    let id = listed(&home)[0]["workflowId"].as_str().unwrap().to_owned();
    assert_eq!(state(&home, &id), "interrupted");
    assert_eq!(ledger.ids("answered"), ["slow"], "the call under way was waited for");

    ledger.go();
    let _next = Gateway::start(home.command(&["stdio"]));
    eventually("the run is done", || state(&home, &id) == "done");
    assert_eq!(report(&home, &id)["result"], json!(["slow", "last"]));
    assert_eq!(ledger.added(), ["slow", "last"]);
}

#[test]
fn a_server_that_dies_in_mid_call_is_told_to_the_program_and_the_call_is_not_repeated() {
    let home = ledger::home("");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let code = r#"
        let told = "nothing";
        try { await mcp.ledger.add({ id: "fatal", after: 60000 }); }
        catch (error) { told = error.code; }
        return [told, (await mcp.ledger.add({ id: "next" })).id];
    "#;
    let request = gateway.execute(code, &json!({}), &json!({}));
    let ledger = Ledger::of(&home);
    ledger.wait_for("done", "add");
    let starts: Vec<Value> = ledger.events().into_iter().filter(|event| event["event"] == "start").collect();
    signal(u32::try_from(starts.last().unwrap()["pid"].as_u64().unwrap()).unwrap(), "-KILL");
    let reply = gateway.outcome(request);
    assert_eq!(reply["result"], json!(["DOWNSTREAM_DIED", "next"]), "{reply}");
    assert_eq!(reply["tasks"][0]["status"], "unknown", "{reply}");
    assert_eq!(ledger.ids("got"), ["fatal", "next"]);
    let replayed = home.run(&["runs", "replay", reply["workflowId"].as_str().unwrap(), "--json"]);
    assert_eq!(replayed.code, 0, "{replayed:?}");
}

#[test]
fn interrupting_pml_execute_ends_the_run_and_its_calls() {
    let home = ledger::home("");
    let code = r#"await mcp.ledger.get({ key: "long", before: 60000 }); return (await mcp.ledger.add({ id: "never" })).id;"#;
    std::fs::write(home.path("f.ts"), code).unwrap();
    // A first run makes the tools of the server known.
    std::fs::write(home.path("warm.ts"), r#"return await mcp.ledger.get({ key: "x" });"#).unwrap();
    let warm = home.run(&["execute", "--code", "warm.ts"]);
    assert_eq!(warm.code, 0, "{warm:?}");
    let mut command = home.command(&["execute", "--code", "f.ts", "--json"]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let ledger = Ledger::of(&home);
    eventually("it waits for its call", || ledger.count("got", "get") == 2);
    signal(child.id(), "-INT");
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&told["state"], &told["error"]["code"]),
        (&json!("cancelled"), &json!("CANCELLED")),
        "{told}"
    );
    assert_eq!(listed(&home)[0]["state"], "cancelled");
    assert_eq!((ledger.called_off(), ledger.added().len()), (1, 0));
}

/// The worker of the run that was just asked for: the one that was ready before.
fn worker_of_next_run(gateway: &Gateway) -> u32 {
    eventually("a worker is ready", || gateway.workers().len() == 1);
    gateway.workers()[0]
}

#[test]
fn a_killed_worker_is_replaced_unseen_where_nothing_was_called() {
    let home = ledger::home("[runs]\nworkers = 1\n[limits]\ncpu = \"30s\"\n");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let worker = worker_of_next_run(&gateway);
    let code = "let sum = 0; for (let i = 0; i < args.n; i++) sum += i % 7; return sum > 0;";
    let request = gateway.execute(code, &json!({ "n": 10_000_000 }), &json!({}));
    eventually("it computes", || gateway.workers().len() == 2);
    signal(worker, "-KILL");
    let reply = gateway.outcome(request);
    assert_eq!(reply["result"], true, "{reply}");
    assert!(!lives(worker));
    eventually("one is ready again", || gateway.workers().len() == 1);
}

/// Whether a process has been busy for a while: more than a fifth of a second of it was computing.
fn computes(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = status.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().nth(11).and_then(|ticks| ticks.parse::<u64>().ok());
    ticks.is_some_and(|ticks| ticks > 20)
}

#[test]
fn a_program_is_begun_again_once_and_only_while_it_has_asked_for_nothing() {
    let home = ledger::home("[runs]\nworkers = 1\n[limits]\ncpu = \"30s\"\n");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let crashed = |reply: &Value| {
        assert_eq!(
            (&reply["status"], &reply["error"]["code"]),
            (&json!("failed"), &json!("WORKER_CRASHED")),
            "{reply}"
        );
    };
    let first = worker_of_next_run(&gateway);
    let twice = gateway.execute("for (;;);", &json!({}), &json!({}));
    eventually("it computes", || gateway.workers().len() == 2);
    signal(first, "-KILL");
    let mut second = None;
    eventually("it computes again", || {
        second = gateway.workers().into_iter().find(|pid| *pid != first && computes(*pid));
        second.is_some()
    });
    signal(second.unwrap(), "-KILL");
    crashed(&gateway.outcome(twice));

    let worker = worker_of_next_run(&gateway);
    let code = "await new Promise((wake) => setTimeout(wake, 1)); for (;;);";
    let woken = gateway.execute(code, &json!({}), &json!({ "detach": true }));
    let id = gateway.outcome(woken)["workflowId"].as_str().unwrap().to_owned();
    eventually("it was given something", || recording(&home, &id)["deliveries"][0].is_object());
    signal(worker, "-KILL");
    crashed(&gateway.call("pml_continue", &json!({ "workflow_id": id })));
    assert_eq!(gateway.run("return 1", &json!({}))["result"], 1);
}

#[test]
fn a_worker_killed_after_a_call_fails_its_run_alone() {
    let home = ledger::home(ONE_WORKER);
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let code = r#"
        const { id } = await mcp.ledger.add({ id: `${args.n}`, after: 2000 });
        return id;
    "#;
    let worker = worker_of_next_run(&gateway);
    let doomed = gateway.execute(code, &json!({ "n": "doomed" }), &json!({}));
    let ledger = Ledger::of(&home);
    ledger.wait_for("got", "add");
    let other = gateway.execute(code, &json!({ "n": "other" }), &json!({}));
    eventually("both are under way", || ledger.ids("got").len() == 2);
    signal(worker, "-KILL");
    let reply = gateway.outcome(doomed);
    assert_eq!(
        (&reply["status"], &reply["error"]["code"]),
        (&json!("failed"), &json!("WORKER_CRASHED")),
        "{reply}"
    );
    assert_eq!(gateway.outcome(other)["result"], "other");
    let id = reply["workflowId"].as_str().unwrap();
    // The call that was under way had its time to end, so that nothing is in doubt.
    assert_eq!(report(&home, id)["tasks"][0]["status"], "success");
    assert_eq!(gateway.run(code, &json!({ "n": "next" }))["result"], "next");
    assert_eq!(ledger.added(), ["doomed", "other", "next"]);
}

fn killing_idle_workers(workers: usize) {
    let home = ledger::home(&format!("[runs]\nworkers = {workers}\n"));
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    for round in 0..3 {
        eventually("all are ready", || gateway.workers().len() == workers);
        for worker in gateway.workers() {
            signal(worker, "-KILL");
        }
        let reply = gateway.run("return args.round", &json!({ "round": round }));
        assert_eq!(reply["result"], round, "{reply}");
    }
    eventually("all are ready again", || gateway.workers().len() == workers);
}

#[test]
fn killing_both_idle_workers_costs_nobody_a_run() {
    killing_idle_workers(2);
}

#[test]
fn killing_many_idle_workers_costs_nobody_a_run() {
    killing_idle_workers(4);
}

#[test]
fn a_gateway_whose_file_is_replaced_goes_on_as_the_program_it_is() {
    let home = ledger::home(ONE_WORKER);
    let original = home.command(&["stdio"]);
    let program = home.path("pml");
    std::fs::copy(original.get_program(), &program).unwrap();
    let mut command = Command::new(&program);
    command.arg("stdio").current_dir(original.get_current_dir().unwrap()).env_clear();
    command.envs(original.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut gateway = Gateway::start(command);
    assert_eq!(gateway.run("return 0", &json!({}))["result"], 0);
    std::fs::remove_file(&program).unwrap();
    std::fs::write(&program, "another version").unwrap();
    for n in 1..5 {
        let reply = gateway.run("return args.n", &json!({ "n": n }));
        assert_eq!(reply["result"], n, "{reply}");
    }
}
