//! Traces come back as they were stored, to those they belong to.

use pml_model::RunState;
use pml_model::trace::{
    DecisionOutcome, EdgeKind, Trace, TraceBody, TraceEdge, TraceFailure, TraceId, TraceStatus,
};
use pml_store::{RunChange, TraceOrder, TraceQuery};

use super::super::{ann, append, create, entry, fixture, id, me, new_run, raw, to};
use super::{capability_id, failed, get, learn, listed, memory, path, remember, task, trace};

/// A trace with something everywhere.
fn full(number: u128) -> Trace {
    let error = TraceFailure { node_id: Some("n2".to_owned()), ..failed(1, "no").error.unwrap() };
    let mut task = task("fs:read", r#"{"_truncated": true, "size": 1.50}"#);
    (task.node_id, task.task_id, task.layer) = (Some(path("n1")[0]), Some("t1".to_owned()), Some(2));
    (task.success, task.altered, task.attempt, task.error) = (false, true, 3, Some(error.clone()));
    Trace {
        parent_trace_id: Some(TraceId::from_text("trace_of_another")),
        status: TraceStatus::Partial,
        error: Some(error),
        exploratory: true,
        approved: true,
        body: TraceBody {
            executed_path: path("n1 d1 n2"),
            decisions: vec![DecisionOutcome {
                node_id: path("d1")[0],
                condition: "a > 1".to_owned(),
                value: None,
                outcome: "true".to_owned(),
                times: 2,
            }],
            task_results: vec![task],
            omitted: 4,
            edges: vec![TraceEdge { from: 0, to: 0, kind: EdgeKind::Sequence }],
            initial_context: Some(raw(r#"{"a" : 1.0}"#)),
            mock_ratio: 0.25,
            explored: None,
        },
        ..trace(number)
    }
}

#[test]
fn a_trace_comes_back_as_it_was_stored() {
    let fixture = fixture();
    remember(&fixture.store, memory("p", full(1)));
    learn(&fixture.store);
    let stored = fixture.store.trace(&me(), &TraceId::of(&id(1))).unwrap().unwrap();
    let expected =
        Trace { capability_id: Some(capability_id("p")), learn_seq: Some(1), priority: Some(0.0), ..full(1) };
    assert_eq!(serde_json::to_string(&stored).unwrap(), serde_json::to_string(&expected).unwrap());
    assert!(fixture.store.trace(&ann(), &TraceId::of(&id(1))).unwrap().is_none());
    assert!(fixture.store.trace(&me(), &TraceId::of(&id(2))).unwrap().is_none());
}

#[test]
fn the_end_of_a_run_and_its_trace_are_stored_together_or_not_at_all() {
    let fixture = fixture();
    let end = |number| {
        let memory = Some(Box::new(memory("p", trace(number))));
        Some(RunChange { memory, ..to(RunState::Done, 2000).unwrap() })
    };
    let lease = create(&fixture.store, new_run(1)).unwrap();
    append(&fixture.store, &lease, vec![entry("last")], end(1)).unwrap();
    assert!(fixture.store.trace_of_run(&me(), &id(1)).unwrap().is_some());
    assert_eq!(get(&fixture.store, "p").intents[0].text, "read the file");
    // A run that is over ends no second time, and leaves nothing more.
    append(&fixture.store, &lease, Vec::new(), end(2)).unwrap_err();
    assert!(fixture.store.trace_of_run(&me(), &id(2)).unwrap().is_none());
}

#[test]
fn a_trace_without_a_procedure_counts_for_one_that_is_there() {
    let fixture = fixture();
    let bare = |number, identity: &str| {
        let trace = Trace { capability_id: Some(capability_id(identity)), cached: true, ..trace(number) };
        pml_store::RunMemory { procedure: None, ..memory(identity, trace) }
    };
    remember(&fixture.store, memory("p", trace(1)));
    remember(&fixture.store, bare(2, "p"));
    remember(&fixture.store, bare(3, "unknown"));
    learn(&fixture.store);
    assert_eq!(get(&fixture.store, "p").statistics.usage_count, 2);
    let of = |number| fixture.store.trace_of_run(&me(), &id(number)).unwrap().unwrap().capability_id;
    assert_eq!((of(2), of(3)), (Some(capability_id("p")), None));
    assert!(fixture.store.capability(&me(), &capability_id("unknown")).unwrap().is_none());
}

#[test]
fn traces_are_listed_newest_first_or_most_surprising_first() {
    let fixture = fixture();
    let name = |number: u128| TraceId::of(&id(number)).to_string();
    for number in 1..=4 {
        remember(&fixture.store, memory("p", trace(number)));
    }
    remember(&fixture.store, memory("p", failed(5, "no")));
    remember(&fixture.store, memory("q", trace(6)));
    remember(&fixture.store, memory("p", Trace { principal: ann(), ..trace(7) }));
    let newest: Vec<String> = [6, 5, 4, 3, 2, 1].map(name).to_vec();
    assert_eq!(listed(&fixture.store, TraceOrder::Newest, None), newest);
    assert_eq!(listed(&fixture.store, TraceOrder::Newest, Some("p")), newest[1..]);
    assert!(listed(&fixture.store, TraceOrder::Newest, Some("unknown")).is_empty());
    assert!(listed(&fixture.store, TraceOrder::Priority, None).is_empty(), "nothing was learned yet");
    learn(&fixture.store);
    let surprising: Vec<String> = [6, 1, 5, 2, 3, 4].map(name).to_vec();
    assert_eq!(listed(&fixture.store, TraceOrder::Priority, None), surprising);
    assert_eq!(listed(&fixture.store, TraceOrder::Priority, Some("p")), surprising[1..]);
}

#[test]
fn pages_of_traces_join_without_gaps() {
    let fixture = fixture();
    for number in 0..23 {
        let identity = if number % 3 == 0 { "p" } else { "q" };
        remember(&fixture.store, memory(identity, trace(number)));
    }
    learn(&fixture.store);
    for order in [TraceOrder::Newest, TraceOrder::Priority] {
        for capability in [None, Some("p"), Some("q")] {
            let mut wanted =
                TraceQuery { capability: capability.map(capability_id), order, limit: 4, after: None };
            let mut paged = Vec::new();
            // Enough pages for all, and no more if a page does not move on.
            for _ in 0..7 {
                let page = fixture.store.traces(&me(), &wanted).unwrap();
                let Some(last) = page.last() else { break };
                wanted.after = Some(last.id.clone());
                paged.extend(page.iter().map(|trace| trace.id.to_string()));
            }
            assert_eq!(paged, listed(&fixture.store, order, capability));
        }
    }
    // What is not the principal's comes before nothing.
    remember(&fixture.store, memory("p", Trace { principal: ann(), ..trace(99) }));
    let after = Some(TraceId::of(&id(99)));
    let wanted = TraceQuery { capability: None, order: TraceOrder::Newest, limit: 4, after };
    assert!(fixture.store.traces(&me(), &wanted).unwrap().is_empty());
}
