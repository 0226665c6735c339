//! How long a run may take, and what becomes of what is under way when its time is over.

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::harness::eventually;
use crate::ledger::{self, Ledger};
use crate::resume::{listed, recording, report, state, wait_for_ends};

/// A gateway whose server is running, so that the first call of a run takes no longer than the others.
fn warm(home: &crate::harness::Home) -> Gateway {
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let reply = gateway.run(r#"return await mcp.ledger.get({ key: "x" });"#, &json!({}));
    assert_eq!(reply["status"], "success", "{reply}");
    gateway
}

fn assert_out_of_time(reply: &Value) {
    assert_eq!((&reply["status"], &reply["error"]["code"]), (&json!("failed"), &json!("TIMEOUT")), "{reply}");
}

#[test]
fn a_write_under_way_at_the_deadline_is_waited_for_and_one_that_never_ends_is_in_doubt() {
    let home = ledger::home("");
    let mut gateway = warm(&home);
    let code = r#"
        await mcp.ledger.add({ id: args.id, after: args.after });
        await mcp.ledger.add({ id: `after ${args.id}` });
    "#;
    let in_time = json!({ "timeoutMs": 1000 });
    let late = gateway.execute(code, &json!({ "id": "late", "after": 2500 }), &in_time);
    let silent = gateway.execute(code, &json!({ "id": "silent", "after": 60_000 }), &in_time);

    let late = gateway.outcome(late);
    assert_out_of_time(&late);
    assert_eq!(late["error"].get("inDoubt"), None, "{late}");
    let kept = report(&home, late["workflowId"].as_str().unwrap());
    for report in [&late, &kept] {
        assert_eq!(report["tasks"][0]["status"], "success", "its end was waited for: {report}");
        assert_eq!(report["tasks"][0]["resultPreview"], r#"{"id": "late"}"#, "{report}");
    }

    let silent = gateway.outcome(silent);
    assert_out_of_time(&silent);
    assert_eq!(silent["error"]["inDoubt"], json!([1]), "{silent}");
    assert_eq!(silent["tasks"][0]["status"], "unknown", "{silent}");
    let rows = listed(&home);
    let failed: Vec<&Value> = rows.iter().filter(|row| row["state"] == "failed").collect();
    assert_eq!(failed.len(), 2, "{rows:?}");
    let ledger = Ledger::of(&home);
    eventually("the server hears that nobody waits", || ledger.called_off() == 1);
    let mut got = ledger.ids("got");
    got.sort();
    assert_eq!(got, ["late", "silent"]);
}

#[test]
fn timers_that_a_program_waits_for_count_as_its_time() {
    let home = ledger::home("");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    // Not so far away that it is put aside.
    let code = "await new Promise((wake) => setTimeout(wake, 9000)); return 1;";
    let request = gateway.execute(code, &json!({}), &json!({ "timeoutMs": 1000 }));
    let reply = gateway.outcome(request);
    assert_out_of_time(&reply);
    let given = recording(&home, reply["workflowId"].as_str().unwrap())["deliveries"].clone();
    assert_eq!(given, json!([]), "it was not woken before");
}

#[test]
fn sleeping_without_a_process_does_not_count_as_time_of_the_run() {
    let home = ledger::home("[runs]\npark_after = \"1s\"\n");
    let mut gateway = warm(&home);
    // Twice, so that the first time is in the journal when it goes on after the second.
    let code = r#"
        const sleep = () => new Promise((wake) => setTimeout(wake, 2200));
        for (const key of ["first", "second"]) {
          await mcp.ledger.get({ key });
          await sleep();
        }
        return "awake";
    "#;
    let request = gateway.execute(code, &json!({}), &json!({ "timeoutMs": 2100 }));
    let parked = gateway.outcome(request);
    assert!(parked["wakeAt"].is_i64(), "{parked}");
    let id = parked["workflowId"].as_str().unwrap();
    let open = ["running", "waiting", "interrupted"];
    eventually("it is over", || !open.contains(&state(&home, id).as_str()));
    assert_eq!(report(&home, id)["result"], "awake", "{}", report(&home, id));
}

#[test]
fn what_a_run_used_before_it_was_interrupted_counts_afterwards() {
    let home = ledger::home("");
    let mut gateway = warm(&home);
    let code = r#"
        for (const key of ["first", "second"]) await mcp.ledger.get({ key, before: 1800 });
        return "done";
    "#;
    // Without reading ahead the two calls are made one after the other.
    let options = json!({ "timeoutMs": 3000, "detach": true, "speculate": false });
    let started = gateway.execute(code, &json!({}), &options);
    let id = gateway.outcome(started)["workflowId"].as_str().unwrap().to_owned();
    let ledger = Ledger::of(&home);
    eventually("the second call is under way", || ledger.count("got", "get") == 3);
    wait_for_ends(&home, &id, 1);
    gateway.kill();

    // The second call is made again and alone takes less than the run may.
    let _next = Gateway::start(home.command(&["stdio"]));
    eventually("it is over", || !["running", "interrupted"].contains(&state(&home, &id).as_str()));
    let report = report(&home, &id);
    assert_eq!(report["error"]["code"], "TIMEOUT", "{report}");
    assert_eq!(ledger.count("got", "get"), 4);
}
