//! What a client can rely on between its requests.

use std::time::Duration;

use serde_json::{Value, json};

use crate::gateway::{Gateway, execution};
use crate::harness::eventually;
use crate::ledger::{self, Ledger};
use crate::resume::listed;
use crate::sleep::ahead;

const CODE: &str = r#"return (await mcp.ledger.add({ id: args.id, before: args.before })).id;"#;

fn keyed(id: &str, key: &str) -> Value {
    let mut params = execution("a test", CODE, &json!({ "id": id, "before": 100 }), &json!({}));
    params["_meta"] = json!({ "pml/idempotencyKey": key });
    params
}

#[test]
fn a_request_repeated_with_its_key_is_the_same_run() {
    let home = ledger::home("");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let first = gateway.begin("tools/call", &keyed("a", "key 1"));
    let first = gateway.outcome(first);
    assert_eq!(first["result"], "a", "{first}");
    let again = gateway.begin("tools/call", &keyed("a", "key 1"));
    assert_eq!(gateway.outcome(again)["workflowId"], first["workflowId"]);

    let other = gateway.begin("tools/call", &keyed("b", "key 1"));
    let other = gateway.outcome(other);
    assert_eq!(other["error"]["code"], "INVALID_REQUEST", "{other}");
    assert!(other["error"]["message"].as_str().unwrap().contains("idempotency key"), "{other}");

    gateway.kill();
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let later = gateway.begin("tools/call", &keyed("a", "key 1"));
    let later = gateway.outcome(later);
    assert_eq!((&later["workflowId"], &later["result"]), (&first["workflowId"], &json!("a")), "{later}");
    assert_eq!(Ledger::of(&home).added(), ["a"]);
    assert_eq!(listed(&home).len(), 1);
}

#[test]
fn a_key_finds_its_run_also_when_its_results_are_gone() {
    let home = ledger::home("[memory]\ngolden_runs = false\n");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let first = gateway.begin("tools/call", &keyed("a", "key 1"));
    let first = gateway.outcome(first);
    assert_eq!(first["result"], "a", "{first}");
    gateway.hang_up();
    assert_eq!(gateway.ends_within(Duration::from_secs(10)), 0);

    // Results are kept for an hour, keys for a day.
    let mut later = Gateway::start(ahead(&home, 2 * 60 * 60, &["stdio"]));
    let mut told = Value::Null;
    eventually("its results are gone", || {
        let again = later.begin("tools/call", &keyed("a", "key 1"));
        told = later.outcome(again);
        told.get("result").is_none()
    });
    assert_eq!(told["error"]["code"], "GONE", "{told}");
    let message = told["error"]["message"].as_str().unwrap();
    assert!(message.contains(first["workflowId"].as_str().unwrap()), "{told}");
    assert!(message.contains("no longer kept"), "{told}");
    let other = later.begin("tools/call", &keyed("b", "key 1"));
    assert_eq!(later.outcome(other)["error"]["code"], "INVALID_REQUEST");
    assert_eq!(Ledger::of(&home).ids("got"), ["a"]);
    assert_eq!(listed(&home).len(), 1);
}

#[test]
fn a_request_repeated_before_it_is_answered_is_the_same_run_in_whichever_gateway() {
    let home = ledger::home("");
    let mut gateways = [(); 2].map(|()| Gateway::start(home.command(&["stdio"])));
    // Both know the server first, so that they are equally quick.
    for gateway in &mut gateways {
        assert_eq!(
            gateway.run("return (await mcp.ledger.get({ key: 'x' })).value", &json!({}))["status"],
            "success"
        );
    }
    for round in 0..10 {
        let name = format!("round {round}");
        let requests: Vec<(usize, u64)> =
            (0..6).map(|n| (n % 2, gateways[n % 2].begin("tools/call", &keyed(&name, &name)))).collect();
        let mut runs: Vec<Value> = Vec::new();
        for (gateway, request) in requests {
            let reply = gateways[gateway].outcome(request);
            assert!(reply["status"] == "success" || reply["status"] == "running", "{reply}");
            runs.push(reply["workflowId"].clone());
        }
        runs.dedup();
        assert_eq!(runs.len(), 1, "{runs:?}");
    }
    let mut added = Ledger::of(&home).added();
    added.sort();
    assert_eq!(added, (0..10).map(|round| format!("round {round}")).collect::<Vec<_>>());
}

#[test]
fn a_run_that_takes_longer_than_its_client_waits_is_heard_of_later() {
    let home = ledger::home("");
    let mut gateway = Gateway::start(home.command(&["stdio"]));
    let arguments = json!({ "id": "slow", "before": 700 });
    for (id, options) in [("patient", json!({ "waitMs": 50 })), ("detached", json!({ "detach": true }))] {
        let mut arguments = arguments.clone();
        arguments["id"] = json!(id);
        let started = gateway.execute(CODE, &arguments, &options);
        let reply = gateway.outcome(started);
        assert_eq!((&reply["status"], reply.get("result")), (&json!("running"), None), "{reply}");
        let done = gateway.call("pml_continue", &json!({ "workflow_id": reply["workflowId"] }));
        assert_eq!((&done["status"], &done["result"]), (&json!("success"), &json!(id)), "{done}");
        // And for whoever asks again, in another process.
        let mut other = Gateway::start(home.command(&["stdio"]));
        let told = other.call("pml_continue", &json!({ "workflow_id": reply["workflowId"] }));
        assert_eq!(told["result"], json!(id), "{told}");
    }
    let unknown =
        gateway.call("pml_continue", &json!({ "workflow_id": "run_00000000000000000000000000000000" }));
    assert_eq!(unknown["error"]["code"], "UNKNOWN_RUN", "{unknown}");
}

#[test]
fn a_run_in_another_gateway_is_waited_for_and_aborted_there() {
    let home = ledger::home("");
    let mut owner = Gateway::start(home.command(&["stdio"]));
    let mut other = Gateway::start(home.command(&["stdio"]));
    let arguments = json!({ "id": "slow", "before": 700 });
    let started = owner.execute(CODE, &arguments, &json!({ "detach": true }));
    let id = owner.outcome(started)["workflowId"].clone();
    let told = other.call("pml_continue", &json!({ "workflow_id": id }));
    assert_eq!(told["result"], "slow", "{told}");

    let started = owner.execute(CODE, &json!({ "id": "x", "before": 30_000 }), &json!({ "detach": true }));
    let id = owner.outcome(started)["workflowId"].clone();
    eventually("it is under way", || Ledger::of(&home).ids("got").len() == 2);
    let refused = other.call("pml_abort", &json!({ "workflow_id": id }));
    assert_eq!(refused["error"]["code"], "BUSY", "{refused}");
    let aborted = owner.call("pml_abort", &json!({ "workflow_id": id }));
    assert_eq!(aborted["status"], "failed", "{aborted}");
    owner.hang_up();
    assert_eq!(owner.ends_within(Duration::from_secs(10)), 0);
}
