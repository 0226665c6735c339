//! Learning: each trace once, whoever learns and however often it is stopped, and the same again.

use super::super::open_at;
use std::thread;

use pml_model::capability::CapabilityState;
use pml_model::trace::{DecisionOutcome, EdgeKind, Trace, TraceBody, TraceEdge, TraceId, TraceStatus};
use pml_model::{Digest, Principal};
use pml_store::{BlockingStore, LearnedEdge, RunMemory};
use serde_json::json;

use super::super::{ann, fixture, id, me};
use super::{capability_id, dump, failed, get, learn, memory, path, remember, task, trace};

const MINUTE: i64 = 60_000;

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

/// A number that looks random and is the same in every run.
fn scattered(number: u128) -> u128 {
    (number + 1) * 0x9e37_79b9_7f4a_7c15 % 1_000_003
}

/// Traces of all kinds: several procedures, sessions, principals, failures, caches, parts.
fn mixed(number: u128) -> RunMemory {
    let pick = scattered(number);
    let mut trace = match pick % 10 {
        0 | 1 => failed(number, &format!("error {}", pick % 4)),
        2 => Trace { status: TraceStatus::Blocked, ..trace(number) },
        3 => Trace { cached: true, ..trace(number) },
        4 => Trace { exploratory: true, ..trace(number) },
        5 => Trace { status: TraceStatus::Partial, ..trace(number) },
        _ => trace(number),
    };
    trace.principal = if pick.is_multiple_of(7) { ann() } else { me() };
    trace.session = format!("session {}", pick % 3);
    trace.intent = format!("intent {}", pick % 6);
    trace.duration_ms = 50 + (pick % 300) as i64;
    trace.created_at = 1000 + number as i64 * 5 * MINUTE + (pick % 40) as i64 * MINUTE;
    trace.parent_trace_id = pick.is_multiple_of(11).then(|| TraceId::of(&id(number.saturating_sub(3))));
    trace.body = TraceBody {
        executed_path: path(if pick.is_multiple_of(2) { "n1 d1 n2" } else { "n1 d1 n3" }),
        decisions: vec![exists(pick.is_multiple_of(2))],
        task_results: vec![
            task("fs:stat", &json!({ "size": pick, "exists": pick.is_multiple_of(2) }).to_string()),
            task(
                &format!("fs:read{}", pick % 3),
                &json!({ format!("m{}", pick % 5): pick as f64 / 7.0 }).to_string(),
            ),
        ],
        edges: vec![TraceEdge { from: 0, to: 1, kind: EdgeKind::Dependency }],
        ..TraceBody::default()
    };
    let values = [("path".to_owned(), json!(format!("file {}", pick % 9)))].into_iter().collect();
    RunMemory { values, ..memory(&format!("p{}", pick % 4), trace) }
}

fn exists(outcome: bool) -> DecisionOutcome {
    DecisionOutcome {
        node_id: path("d1")[0],
        condition: "file.exists".to_owned(),
        value: None,
        outcome: outcome.to_string(),
        times: 1,
    }
}

/// How often procedures were used, worked and failed, by what was stored.
fn expected(memories: &[RunMemory], identity: &str) -> (u64, u64, u64) {
    let (mut used, mut worked, mut broken) = (0, 0, 0);
    for memory in memories {
        let trace = &memory.trace;
        let is_it =
            memory.procedure.as_ref().is_some_and(|procedure| procedure.id == capability_id(identity));
        if is_it && !trace.exploratory && trace.status != TraceStatus::Blocked {
            used += 1;
            match trace.status.evidence() {
                Some(true) if !trace.cached => worked += 1,
                Some(false) if !trace.cached => broken += 1,
                _ => {}
            }
        }
    }
    (used, worked, broken)
}

fn counted(store: &BlockingStore, identity: &str) -> (u64, u64, u64) {
    let statistics = get(store, identity).statistics;
    (statistics.usage_count, statistics.success_count, statistics.failure_count)
}

fn edges(store: &BlockingStore, kind: EdgeKind) -> Vec<(String, String, u64)> {
    let edges = store.learned_edges(&me()).unwrap();
    edges.into_iter().filter(|edge| edge.kind == kind).map(|edge| (edge.from, edge.to, edge.count)).collect()
}

#[test]
fn traces_that_come_several_times_in_any_order_count_once() {
    let fixture = fixture();
    let all: Vec<RunMemory> = (0..60).map(mixed).collect();
    let mut sent: Vec<&RunMemory> =
        all.iter().enumerate().flat_map(|(number, memory)| vec![memory; 1 + number % 5]).collect();
    for place in (1..sent.len()).rev() {
        sent.swap(place, scattered(place as u128) as usize % (place + 1));
    }
    for (number, memory) in sent.into_iter().enumerate() {
        remember(&fixture.store, memory.clone());
        if number % 13 == 0 {
            learn(&fixture.store);
        }
    }
    learn(&fixture.store);
    assert_eq!(learn(&fixture.store), 0);
    for identity in ["p0", "p1", "p2", "p3"] {
        assert_eq!(counted(&fixture.store, identity), expected(&all, identity), "{identity}");
    }
}

#[test]
fn stores_that_learn_at_once_share_the_traces() {
    let fixture = fixture();
    let all: Vec<RunMemory> = (0..400).map(mixed).collect();
    let stores: Vec<BlockingStore> = (0..3).map(|_| open_at(&fixture.path).unwrap()).collect();
    let learned: usize = thread::scope(|scope| {
        let learning: Vec<_> = stores
            .iter()
            .enumerate()
            .map(|(place, store)| {
                let all = &all;
                scope.spawn(move || {
                    let mut learned = 0;
                    for memory in all.iter().skip(place).step_by(3) {
                        remember(store, memory.clone());
                        learned += store.learn_traces(3, 5000).unwrap().traces;
                    }
                    learned + learn(store)
                })
            })
            .collect();
        learning.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(learned, all.len());
    for identity in ["p0", "p1", "p2", "p3"] {
        assert_eq!(counted(&fixture.store, identity), expected(&all, identity), "{identity}");
    }
    let before = dump(&fixture.path);
    assert_eq!(fixture.store.relearn_all(9000).unwrap(), all.len());
    assert_eq!(dump(&fixture.path), before);
}

#[test]
fn learning_anew_gives_the_same_rows_however_it_is_divided() {
    let fixture = fixture();
    for number in 0..300 {
        remember(&fixture.store, mixed(number));
        if number % 17 == 0 {
            fixture.store.learn_traces(5, 5000).unwrap();
        }
    }
    learn(&fixture.store);
    let before = dump(&fixture.path);
    assert!(before.len() > 330, "{}", before.len());
    fixture.store.relearn_all(9000).unwrap();
    assert_eq!(dump(&fixture.path), before);

    // The same after what people did to capabilities.
    let mine = |identity: &str| capability_id(identity);
    assert!(fixture.store.merge_capabilities(&me(), &mine("p0"), &mine("p1"), 9000).unwrap());
    assert!(fixture.store.delete_capability(&me(), &mine("p2"), 9000).unwrap());
    assert!(fixture.store.degrade_capability(&me(), &mine("p3"), "a tool is gone", 9000).unwrap());
    remember(&fixture.store, mixed(300));
    for number in 301..340 {
        remember(&fixture.store, mixed(number));
    }
    learn(&fixture.store);
    let before = dump(&fixture.path);
    fixture.store.relearn_all(9000).unwrap();
    assert_eq!(dump(&fixture.path), before);
}

#[test]
fn learning_anew_goes_on_where_it_was_stopped() {
    let fixture = fixture();
    for number in 0..50 {
        remember(&fixture.store, mixed(number));
    }
    learn(&fixture.store);
    let before = dump(&fixture.path);
    // As a process leaves it that ends before it has begun to learn.
    fixture.store.reset_learning().unwrap();
    assert_eq!(fixture.store.learn_traces(20, 9000).unwrap().traces, 20);
    drop(fixture.store);
    learn(&open_at(&fixture.path).unwrap());
    assert_eq!(dump(&fixture.path), before);
}

#[test]
fn two_ways_through_one_decision() {
    let fixture = fixture();
    for (number, (nodes, outcome)) in (1..).zip([("n1 d1 n2", true), ("n1 d1 n3", false), ("n1 d1 n2", true)])
    {
        let body = TraceBody {
            executed_path: path(nodes),
            decisions: vec![exists(outcome)],
            ..TraceBody::default()
        };
        remember(&fixture.store, memory("p", Trace { body, ..trace(number) }));
        learn(&fixture.store);
    }
    let known = get(&fixture.store, "p").learning;
    assert_eq!(known.paths.iter().map(|path| path.count).collect::<Vec<_>>(), [2, 1]);
    assert!(close(known.paths[0].success_rate, 0.595) && close(known.paths[1].success_rate, 0.55));
    let outcomes = &known.decision_stats[0].outcomes;
    assert!(outcomes["true"].count == 2 && close(outcomes["true"].success_rate, 0.595));
    assert!(outcomes["false"].count == 1 && close(outcomes["false"].success_rate, 0.55));
    let priorities: Vec<f64> = (1..=3)
        .map(|number| fixture.store.trace_of_run(&me(), &id(number)).unwrap().unwrap().priority.unwrap())
        .collect();
    assert!(close(priorities[0], 1.0) && close(priorities[1], 1.0) && close(priorities[2], 0.45));
}

#[test]
fn what_is_no_evidence_is_no_failure() {
    let fixture = fixture();
    remember(&fixture.store, memory("p", trace(1)));
    for (number, status) in (2..).zip([TraceStatus::Blocked, TraceStatus::Cancelled, TraceStatus::Diverged]) {
        remember(&fixture.store, memory("p", Trace { status, ..trace(number) }));
    }
    remember(&fixture.store, memory("p", Trace { cached: true, duration_ms: 1, ..trace(9) }));
    let long = Trace { status: TraceStatus::Partial, duration_ms: 200, ..trace(8) };
    remember(&fixture.store, memory("p", long));
    learn(&fixture.store);
    let capability = get(&fixture.store, "p");
    assert_eq!(counted(&fixture.store, "p"), (3, 2, 0));
    assert!(close(capability.statistics.avg_duration_ms, 150.0));
    assert_eq!(capability.statistics.last_used, Some(1009));
    assert_eq!(capability.learning.paths[0].count, 2);
    let of = |number| fixture.store.trace_of_run(&me(), &id(number)).unwrap().unwrap().priority;
    assert_eq!((of(2), of(9)), (Some(0.0), Some(0.0)));
    assert_eq!(capability.intents[0].count, 2);
}

#[test]
fn three_failures_in_a_row_degrade_and_a_success_makes_up_for_them() {
    let fixture = fixture();
    remember(&fixture.store, memory("p", trace(1)));
    for number in 2..=3 {
        remember(&fixture.store, memory("p", failed(number, "no such file")));
    }
    remember(&fixture.store, memory("p", Trace { status: TraceStatus::Blocked, ..trace(4) }));
    learn(&fixture.store);
    assert_eq!(get(&fixture.store, "p").state, CapabilityState::Active);
    remember(&fixture.store, memory("p", failed(5, "no such disk")));
    learn(&fixture.store);
    let degraded = get(&fixture.store, "p");
    assert_eq!(degraded.state, CapabilityState::Degraded);
    assert_eq!(degraded.degraded_because.as_deref(), Some("3 failures in a row: no such disk"));
    assert_eq!(degraded.statistics.failures_in_a_row, 3);
    remember(&fixture.store, memory("p", trace(6)));
    learn(&fixture.store);
    let recovered = get(&fixture.store, "p");
    assert_eq!((recovered.state, recovered.degraded_because), (CapabilityState::Active, None));
    assert_eq!(recovered.statistics.failures_in_a_row, 0);
}

#[test]
fn what_never_worked_is_a_plan_however_often_it_failed() {
    let fixture = fixture();
    for number in 1..=4 {
        remember(&fixture.store, memory("p", failed(number, "no")));
    }
    learn(&fixture.store);
    let plan = get(&fixture.store, "p");
    assert_eq!((plan.state, plan.degraded_because, plan.promoted_at), (CapabilityState::Planned, None, None));
    assert!(plan.intents.is_empty());
    remember(&fixture.store, memory("p", trace(5)));
    assert_eq!(get(&fixture.store, "p").promoted_at, Some(1005));
    learn(&fixture.store);
    assert_eq!(get(&fixture.store, "p").state, CapabilityState::Active);
}

#[test]
fn what_came_after_what_is_counted_once_per_trace() {
    let fixture = fixture();
    let body = || TraceBody {
        task_results: vec![task("fs:stat", "1"), task("fs:read", "2"), task("fs:read", "3")],
        edges: vec![
            TraceEdge { from: 0, to: 1, kind: EdgeKind::Dependency },
            TraceEdge { from: 0, to: 2, kind: EdgeKind::Dependency },
            TraceEdge { from: 1, to: 2, kind: EdgeKind::Sequence },
            TraceEdge { from: 1, to: 9, kind: EdgeKind::Sequence },
        ],
        ..TraceBody::default()
    };
    let at = |number, created_at| Trace { body: body(), created_at, ..trace(number) };
    remember(&fixture.store, memory("a", at(1, 0)));
    remember(&fixture.store, memory("b", Trace { cached: true, ..at(2, 30 * MINUTE) }));
    // Too late to follow, and of another session.
    remember(&fixture.store, memory("a", at(3, 60 * MINUTE + 1)));
    remember(&fixture.store, memory("b", Trace { session: "other".to_owned(), ..at(4, 60 * MINUTE + 2) }));
    learn(&fixture.store);
    let pair = |from: &str, to: &str, count| (from.to_owned(), to.to_owned(), count);
    assert_eq!(edges(&fixture.store, EdgeKind::Dependency), [pair("fs:stat", "fs:read", 3)]);
    assert_eq!(edges(&fixture.store, EdgeKind::Sequence), [pair("fs:read", "fs:read", 3)]);
    let (a, b) = (capability_id("a"), capability_id("b"));
    assert_eq!(
        edges(&fixture.store, EdgeKind::Follows),
        [pair(a.as_str(), b.as_str(), 1), pair("fs:read", "fs:stat", 1)]
    );
    let from = |kind, limit| fixture.store.learned_edges_from(&me(), "fs:read", kind, limit).unwrap();
    let most = LearnedEdge {
        from: "fs:read".to_owned(),
        to: "fs:read".to_owned(),
        kind: EdgeKind::Sequence,
        count: 3,
    };
    assert_eq!(from(None, 1), [most]);
    assert_eq!(from(Some(EdgeKind::Follows), 9).len(), 1);
    assert_eq!(from(None, 9).len(), 2);
}

#[test]
fn a_capability_within_another_is_seen_whichever_is_stored_first() {
    let fixture = fixture();
    let part = |run: u128, frame| Trace {
        id: TraceId::of_frame(&id(run), frame),
        parent_trace_id: Some(TraceId::of(&id(run))),
        ..trace(run)
    };
    remember(&fixture.store, memory("inner", part(1, 1)));
    remember(&fixture.store, memory("inner", Trace { cached: true, ..part(1, 2) }));
    learn(&fixture.store);
    remember(&fixture.store, memory("outer", trace(1)));
    remember(&fixture.store, memory("outer", Trace { session: "other".to_owned(), ..trace(2) }));
    remember(&fixture.store, memory("inner", part(2, 1)));
    remember(&fixture.store, memory("inner", Trace { cached: true, ..part(2, 2) }));
    learn(&fixture.store);
    let (inner, outer) = (capability_id("inner").to_string(), capability_id("outer").to_string());
    assert_eq!(edges(&fixture.store, EdgeKind::Contains), [(outer, inner, 2)]);
    // Parts are not asked for one after the other.
    assert!(edges(&fixture.store, EdgeKind::Follows).is_empty());
}

#[test]
fn what_tools_return_is_observed_for_each_definition() {
    let fixture = fixture();
    let mut spoilt = task("fs:read", r#"{"text":"[redacted]","token":"t"}"#);
    spoilt.altered = true;
    let mut broken = task("fs:read", r#""broken""#);
    broken.success = false;
    let mut later = task("fs:read", "[1]");
    later.tool_digest = Digest::of(b"later");
    for (number, tasks) in [
        vec![task("fs:read", r#"{"text":"a","size":1}"#), spoilt, broken],
        vec![task("fs:read", r#"{"text":"b"}"#), task("fs:read", r#"{"text":"c"}"#), later],
    ]
    .into_iter()
    .enumerate()
    {
        let body = TraceBody { task_results: tasks, ..TraceBody::default() };
        remember(&fixture.store, memory("p", Trace { body, ..trace(number as u128) }));
        learn(&fixture.store);
    }
    let observed = |digest: &[u8]| {
        fixture.store.observed_schema(&me(), "fs:read", &Digest::of(digest)).unwrap().unwrap()
    };
    let schema = json!({
        "type": "object",
        "properties": {
            "text": { "type": "string", "examples": ["a", "b", "c"] },
            "size": { "type": "integer", "examples": [1] },
        },
        "required": ["text"],
    });
    assert_eq!((observed(b"read").schema, observed(b"read").count), (schema, 3));
    assert_eq!(observed(b"later").schema["type"], "array");
    assert_eq!(fixture.store.observed_schemas(&me()).unwrap().len(), 2);
    assert!(fixture.store.observed_schemas(&ann()).unwrap().is_empty());
}

#[test]
fn nothing_of_one_principal_is_learned_for_another() {
    let fixture = fixture();
    let of = |principal: Principal, number| Trace { principal, ..trace(number) };
    remember(&fixture.store, memory("p", of(me(), 1)));
    remember(&fixture.store, memory("p", of(ann(), 2)));
    remember(&fixture.store, memory("p", of(me(), 3)));
    learn(&fixture.store);
    assert_eq!(counted(&fixture.store, "p"), (2, 2, 0));
    let (mine, theirs) = (capability_id("p"), pml_model::CapabilityId::of(&ann(), "p"));
    assert!(fixture.store.capability(&ann(), &mine).unwrap().is_none());
    assert_eq!(fixture.store.capability(&ann(), &theirs).unwrap().unwrap().statistics.usage_count, 1);
    // Hers came between mine, and neither follows the other.
    assert_eq!(edges(&fixture.store, EdgeKind::Follows)[0], (mine.to_string(), mine.to_string(), 1));
    assert!(fixture.store.learned_edges(&ann()).unwrap().is_empty());
    assert!(fixture.store.learned_edges_from(&ann(), "fs:read", None, 9).unwrap().is_empty());
    assert_eq!(
        fixture.store.observed_schema(&ann(), "fs:read", &Digest::of(b"read")).unwrap().unwrap().count,
        1
    );
    assert!(fixture.store.trace_of_run(&ann(), &id(1)).unwrap().is_none());
}
