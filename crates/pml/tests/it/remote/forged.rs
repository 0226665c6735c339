//! Traces that no honest client sends: none of them makes a capability, for anybody.

use pml_model::{Principal, RunId};
use pml_store::{BlockingStore, ContextOwner};
use serde_json::{Value, json};

use super::{Chain, capabilities, failed, home, placed, post, post_by, served, told, traces, worked};

/// What is changed about the trace of a run that worked.
type Change = fn(&mut Value);

/// Traces that are refused whole.
const REFUSED: [Change; 36] = [
    |trace| trace["durationMs"] = json!(-1),
    |trace| trace["durationMs"] = json!(1e12),
    |trace| trace["durationMs"] = json!(1e308),
    |trace| trace["durationMs"] = json!("12"),
    |trace| trace["durationMs"] = json!(null),
    |trace| trace["success"] = json!("true"),
    |trace| trace["success"] = json!(1),
    |trace| trace["error"] = json!("it worked and failed"),
    |trace| trace["usageCount"] = json!(4_000_000_000_u64),
    |trace| trace["successCount"] = json!(1),
    |trace| trace["learnSeq"] = json!(1),
    |trace| trace["status"] = json!("success"),
    |trace| trace["principal"] = json!("ann"),
    |trace| trace["userId"] = json!("ann"),
    |trace| trace["capabilityId"] = json!("cap_1"),
    |trace| trace["capabilityId"] = json!("'; DROP TABLE capability; --"),
    |trace| trace["workflowId"] = json!(""),
    |trace| trace["workflowId"] = json!("run_1"),
    |trace| trace["workflowId"] = json!("run_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"),
    |trace| trace["workflowId"] = json!(["run_00000000000000000000000000000001"]),
    |trace| trace["timestamp"] = json!("yesterday"),
    |trace| trace["timestamp"] = json!("2026-01-13T10:00:00Z".repeat(9)),
    |trace| trace["taskResults"] = json!({}),
    |trace| trace["taskResults"][0]["tool"] = json!("fs:write"),
    |trace| trace["taskResults"][0]["tool"] = json!("shell:run"),
    |trace| trace["taskResults"][0]["tool"] = json!("fs"),
    |trace| trace["taskResults"][0]["nodeId"] = json!("n2"),
    |trace| trace["taskResults"][0]["nodeId"] = json!("n99"),
    |trace| trace["taskResults"][0]["durationMs"] = json!(86_400_000),
    |trace| trace["taskResults"][0]["durationMs"] = json!(-0.5),
    |trace| trace["taskResults"][0]["args"] = json!("x"),
    |trace| trace["taskResults"][0]["result"] = json!("x".repeat(70_000)),
    |trace| {
        let calls: Vec<Value> = (0..501).map(|_| trace["taskResults"][1].clone()).collect();
        trace["taskResults"] = json!(calls);
    },
    |trace| trace["executedPath"] = json!(["n1", "n7"]),
    |trace| trace["decisions"] = json!([{"nodeId": "n1", "outcome": "true"}]),
    |trace| trace["edges"] = json!([{"from": 1, "to": 0, "type": "dependency"}]),
];

#[test]
fn what_is_forged_is_refused_and_the_true_trace_still_counts() {
    let (_home, served) = served();
    let workflow = told(&served)["workflowId"].clone();
    for (place, change) in REFUSED.iter().enumerate() {
        let mut trace = worked(&workflow);
        change(&mut trace);
        let (status, reply) = post(&served, &[&Chain::new("desk").add(trace)]);
        assert_eq!(status, 400, "case {place}: {reply}");
    }
    assert!(capabilities(&served).is_empty() && traces(&served).is_empty());
    // Places in the chain that are not the trace's own.
    let honest = worked(&workflow);
    let hash = "0".repeat(64);
    let mut changed = Chain::new("desk").add(failed(&workflow));
    (changed["success"], changed["error"]) = (json!(true), Value::Null);
    let wrong_hash = {
        let mut trace = Chain::new("desk").add(honest.clone());
        trace["hash"] = json!(hash);
        trace
    };
    for (place, trace) in [
        placed(honest.clone(), "desk", 0, ""),
        placed(honest.clone(), "desk", 1, &hash),
        placed(honest.clone(), "desk", 2, ""),
        placed(honest.clone(), "../desk", 1, ""),
        placed(honest.clone(), "", 1, ""),
        placed(honest.clone(), "desk", u64::MAX, &hash),
        changed,
        wrong_hash,
    ]
    .iter()
    .enumerate()
    {
        let (status, reply) = post(&served, &[trace]);
        assert_eq!(status, 400, "place {place}: {reply}");
    }
    let body = |traces: &str| super::api(&served, "POST", "/api/traces", traces).0;
    for text in ["", "[]", "{}", r#"{"traces":[]}"#, r#"{"traces":[1]}"#, r#"{"traces":[{}],"all":true}"#] {
        assert_eq!(body(text), 400, "{text}");
    }
    let mut chain = Chain::new("desk");
    let many: Vec<Value> = (0..257).map(|_| chain.add(honest.clone())).collect();
    assert_eq!(post(&served, &many.iter().collect::<Vec<_>>()).0, 400, "too many");
    let mut large = honest.clone();
    large["taskResults"] = json!(vec![
        json!({"tool": "fs:read", "result": "x".repeat(60_000), "success": true, "durationMs": 0});
        80
    ]);
    assert_eq!(post(&served, &[&Chain::new("desk").add(large)]).0, 413, "too large");
    assert!(capabilities(&served).is_empty() && traces(&served).is_empty());

    let (status, reply) = post(&served, &[&Chain::new("desk").add(honest)]);
    assert_eq!(status, 200, "{reply}");
    assert_eq!((capabilities(&served).len(), traces(&served).len()), (1, 1));
}

#[test]
fn what_is_of_nobody_or_of_somebody_else_teaches_nothing() {
    let (home, named) = (home(), pml::keys::KeyRequest::named);
    let keys = [("ann-key", home.key_of("ann", named("ann-key"))), ("mine", home.key("mine", false, false))];
    let served = home.serve(&[]);
    let workflow = told(&served)["workflowId"].clone();
    let unknown = |number: u128| json!(RunId::new(number).as_str());
    let mut chain = Chain::new("desk");
    let stranger = chain.add(worked(&unknown(1)));
    let expired = {
        let owner = ContextOwner { principal: Principal::local(), key: None, workflow: RunId::new(2) };
        let store = BlockingStore::open(&home.path("pml.db")).unwrap();
        store.keep_learning_context(&owner, b"{}", (1, 2)).unwrap();
        chain.add(worked(&unknown(2)))
    };
    for trace in [&stranger, &expired] {
        let (status, reply) = post(&served, &[trace]);
        assert_eq!(status, 200, "{reply}");
        assert!(reply["results"][0]["warning"].is_string(), "{reply}");
    }
    // Another person's key, and another key of the same person, get the same answer as for a run that never was.
    let mut seen = Vec::new();
    for (client, key) in keys {
        for id in [workflow.clone(), unknown(3)] {
            let name: &'static str = if id == workflow { "known" } else { "unknown" };
            let (status, reply) = post_by(&served, &key, &[&Chain::new(name).add(worked(&id))]);
            let said = reply["results"][0]["warning"]
                .as_str()
                .unwrap_or_else(|| panic!("{client}: {reply}"))
                .replace(id.as_str().unwrap(), "ID");
            seen.push((client, status, said));
        }
    }
    assert!(seen.iter().all(|(_, status, said)| (*status, said) == (200, &seen[0].2)), "{seen:?}");
    assert!(capabilities(&served).is_empty());
    assert_eq!(traces(&served).len(), 4, "the traces of this person are kept");
    let (_, reply) = post(&served, &[&chain.add(worked(&workflow))]);
    assert!(reply["results"][0].get("warning").is_none(), "the owner's own still counts: {reply}");
    assert_eq!(capabilities(&served).len(), 1);
}
