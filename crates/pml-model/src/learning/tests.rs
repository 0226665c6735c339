//! The examples of the specification, and that splitting traces into batches changes nothing.

use serde_json::json;

use super::*;
use crate::structure::NodeId;
use crate::trace::{DecisionOutcome, ErrorType};

const MINUTE: i64 = 60_000;

fn me() -> Principal {
    Principal::local()
}

fn capability(name: &str) -> CapabilityId {
    CapabilityId::of(&me(), name)
}

fn path(nodes: &str) -> Vec<NodeId> {
    nodes.split(' ').map(|node| NodeId::try_from(node.to_owned()).unwrap()).collect()
}

fn exists(outcome: &str) -> DecisionOutcome {
    DecisionOutcome {
        node_id: path("d1")[0],
        condition: "file.exists".to_owned(),
        value: None,
        outcome: outcome.to_owned(),
        times: 1,
    }
}

/// A successful run of capability `a` with the path `n1`.
fn trace(seq: i64) -> NewTrace {
    NewTrace {
        seq,
        principal: me(),
        session: "client/1".to_owned(),
        capability: Some(capability("a")),
        is_own_procedure: true,
        intent: "read it".to_owned(),
        status: TraceStatus::Success,
        error: None,
        duration_ms: 100,
        created_at: seq * MINUTE,
        is_nested: false,
        cached: false,
        exploratory: false,
        intent_counts: true,
        first_tool: None,
        last_tool: None,
        caller: None,
        callees: Vec::new(),
        lesson: Lesson { path: path("n1"), ..Lesson::default() },
    }
}

fn failed(seq: i64) -> NewTrace {
    let error = TraceFailure {
        code: "X".to_owned(),
        message: format!("error {seq}"),
        error_type: ErrorType::Internal,
        node_id: None,
    };
    NewTrace { status: TraceStatus::Failed, error: Some(error), ..trace(seq) }
}

fn known(names: &[&str]) -> LearningState {
    let capabilities = names.iter().map(|name| (capability(name), LearnedCapability::default())).collect();
    LearningState { capabilities, ..LearningState::default() }
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

/// Stands in for the store: holds the state and gives each batch only what it touches.
#[derive(Default, PartialEq, Debug)]
struct Stored {
    priorities: Vec<f64>,
    capabilities: BTreeMap<CapabilityId, LearnedCapability>,
    intents: BTreeMap<(CapabilityId, String), IntentCount>,
    edges: BTreeMap<(Principal, String, EdgeKind, String), u64>,
    tool_uses: BTreeMap<(Principal, String), CallCounts>,
    argument_patterns: BTreeMap<(Principal, String, String), CallCounts>,
    observed: HashMap<ObservedTool, ObservedShape>,
    degraded: Vec<DegradedCapability>,
}

impl Stored {
    fn state(&self, before: &[NewTrace], batch: &[NewTrace]) -> LearningState {
        let mut state = LearningState::default();
        for trace in batch {
            if let Some(id) = &trace.capability {
                let known = self.capabilities.get(id).cloned().unwrap_or_default();
                state.capabilities.insert(id.clone(), known);
            }
            for (tool, digest, _) in &trace.lesson.observed_shapes {
                let key = (trace.principal.clone(), tool.clone(), digest.clone());
                state.observed.extend(self.observed.get(&key).map(|shape| (key.clone(), shape.clone())));
            }
        }
        for trace in before.iter().filter(|trace| !trace.is_nested && !trace.exploratory) {
            let previous = PreviousTrace {
                capability: trace.capability.clone(),
                created_at: trace.created_at,
                last_tool: trace.last_tool.clone(),
                calls: trace.lesson.calls.clone(),
            };
            state.sessions.insert((trace.principal.clone(), trace.session.clone()), previous);
        }
        state
    }

    fn apply(&mut self, changes: LearningChanges) {
        self.priorities.extend(changes.priorities);
        self.capabilities.extend(changes.capabilities);
        for (key, more) in changes.intents {
            let known = self.intents.entry(key).or_insert(IntentCount { count: 0, ..more });
            known.count += more.count;
            known.first_at = known.first_at.min(more.first_at);
            known.last_at = known.last_at.max(more.last_at);
        }
        for (key, more) in changes.edges {
            *self.edges.entry(key).or_default() += more;
        }
        for (key, more) in changes.tool_uses {
            self.tool_uses.entry(key).or_default().add(more);
        }
        for (key, more) in changes.argument_patterns {
            self.argument_patterns.entry(key).or_default().add(more);
        }
        self.observed.extend(changes.observed);
        self.degraded.extend(changes.degraded);
    }
}

fn in_batches(traces: &[NewTrace], mut size: impl FnMut() -> usize) -> Stored {
    let mut stored = Stored::default();
    let mut at = 0;
    while at < traces.len() {
        let (before, rest) = traces.split_at(at);
        let batch = &rest[..size().clamp(1, rest.len())];
        stored.apply(fold_traces(stored.state(before, batch), batch.to_vec()));
        at += batch.len();
    }
    stored
}

/// Deterministic pseudo-random numbers.
fn scattered(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// Traces of all kinds: several capabilities, sessions and principals, failures, cache hits, nested ones.
fn mixed(count: i64, seed: u64) -> Vec<NewTrace> {
    let mut random = scattered(seed);
    let mut one = |seq: i64| {
        let pick = random();
        let base = match pick % 10 {
            0..3 => failed(seq),
            3 => NewTrace { status: TraceStatus::Blocked, ..trace(seq) },
            4 => NewTrace { cached: true, ..trace(seq) },
            5 => NewTrace { exploratory: true, ..trace(seq) },
            _ => trace(seq),
        };
        let tool = format!("fs:read{}", pick % 3);
        let outcome = if pick & 64 == 0 { "true" } else { "false" };
        let name = |number: u64| (!number.is_multiple_of(5)).then(|| capability(&number.to_string()));
        NewTrace {
            principal: Principal(format!("p{}", pick % 2)),
            session: format!("s{}", pick % 3),
            capability: name(pick >> 8 & 7),
            is_own_procedure: !pick.is_multiple_of(13),
            intent: format!("intent {}", pick % 4),
            duration_ms: 50 + (pick % 300) as i64,
            created_at: seq * 5 * MINUTE + (pick % 40) as i64 * MINUTE,
            is_nested: pick.is_multiple_of(11),
            caller: name(pick >> 16 & 7).filter(|_| pick.is_multiple_of(11)),
            callees: name(pick >> 20 & 7).into_iter().filter(|_| pick.is_multiple_of(7)).collect(),
            first_tool: Some(tool.clone()),
            last_tool: Some("fs:stat".to_owned()),
            lesson: Lesson {
                path: path(if pick & 32 == 0 { "n1 d1 n2" } else { "n1 d1 n3" }),
                decisions: vec![exists(outcome)],
                edges: vec![(tool.clone(), "fs:stat".to_owned(), EdgeKind::Sequence)],
                parameter_values: [("path".to_owned(), json!(pick % 9))].into_iter().collect(),
                observed_shapes: vec![(
                    tool.clone(),
                    Digest::of(b"d"),
                    ObservedShape::of(&json!({ format!("m{}", pick % 5): pick })),
                )],
                argument_patterns: vec![(
                    tool.clone(),
                    format!("*.e{}", pick % 3),
                    CallCounts { calls: 1, failures: pick % 2 },
                )],
                call_counts: [(tool, CallCounts { calls: 1, failures: pick % 2 })].into_iter().collect(),
                calls: vec![format!("call {}", pick % 7)],
            },
            ..base
        }
    };
    (1..=count).map(&mut one).collect()
}

#[test]
fn any_division_into_batches_gives_the_same_numbers() {
    for seed in 1..=20 {
        let traces = mixed(200, seed);
        let at_once = in_batches(&traces, || traces.len());
        assert!(!at_once.degraded.is_empty() && at_once.edges.len() > 20, "the traces are of all kinds");
        assert_eq!(in_batches(&traces, || 1), at_once, "one by one, seed {seed}");
        let mut random = scattered(seed + 1000);
        assert_eq!(in_batches(&traces, || random() as usize % 40), at_once, "at random, seed {seed}");
    }
}

#[test]
fn three_successes_of_the_file_exists_example() {
    let step = |seq, nodes, outcome| {
        let lesson = Lesson { path: path(nodes), decisions: vec![exists(outcome)], ..Lesson::default() };
        NewTrace { lesson, ..trace(seq) }
    };
    let traces = vec![step(1, "n1 d1 n2", "true"), step(2, "n1 d1 n3", "false"), step(3, "n1 d1 n2", "true")];
    let changes = fold_traces(known(&["a"]), traces);
    let learned = &changes.capabilities[&capability("a")];
    let outcomes = &learned.learning.decision_stats[0].outcomes;
    assert!(outcomes["true"].count == 2 && close(outcomes["true"].success_rate, 0.595));
    assert!(outcomes["false"].count == 1 && close(outcomes["false"].success_rate, 0.55));
    assert!(close(changes.priorities[0], 1.0) && close(changes.priorities[1], 1.0), "both ways were new");
    assert!(close(changes.priorities[2], 0.45), "the third went a known way, which is half of all runs");
}

#[test]
fn priority_compares_a_trace_with_what_its_path_promised() {
    let priority = |nodes, status| {
        let stats = |nodes, count, success_rate| PathStats {
            path: path(nodes),
            count,
            success_rate,
            avg_duration_ms: 100.0,
        };
        let mut state = known(&["a"]);
        state.capabilities.get_mut(&capability("a")).unwrap().learning.paths =
            vec![stats("n1 d1 n2", 95, 0.95), stats("n1 d1 n3", 5, 0.5)];
        let lesson = Lesson { path: path(nodes), ..Lesson::default() };
        fold_traces(state, vec![NewTrace { status, lesson, ..trace(1) }]).priorities[0]
    };
    assert!(close(priority("n1 d1 n2", TraceStatus::Success), 0.05));
    assert!(close(priority("n1 d1 n2", TraceStatus::Failed), 0.95));
    assert!(close(priority("n1 d1 n3", TraceStatus::Success), 0.60));
    assert!(close(priority("n1", TraceStatus::Success), 1.0));
}

#[test]
fn the_third_failure_in_a_row_degrades_and_a_success_heals() {
    let changes = fold_traces(known(&["a"]), vec![failed(1), failed(2), trace(3), failed(4), failed(5)]);
    assert!(changes.degraded.is_empty());
    let changes = fold_traces(known(&["a"]), vec![failed(1), failed(2), failed(3), failed(4)]);
    let degraded = DegradedCapability { seq: 3, principal: me(), capability: capability("a") };
    assert_eq!(changes.degraded, [degraded], "once, by the third");
    let learned = &changes.capabilities[&capability("a")];
    assert_eq!(learned.failing_because.as_deref(), Some("4 failures in a row: error 4"));
    let healed = fold_traces(known(&["a"]), vec![failed(1), failed(2), failed(3), trace(4)]);
    let learned = &healed.capabilities[&capability("a")];
    assert_eq!((&learned.failing_because, learned.last_success_seq), (&None, 4));
}

#[test]
fn what_was_not_the_fault_of_a_capability_counts_neither_way() {
    for status in [TraceStatus::Blocked, TraceStatus::Cancelled, TraceStatus::Diverged] {
        let changes = fold_traces(known(&["a"]), vec![NewTrace { status, ..trace(1) }]);
        let learned = &changes.capabilities[&capability("a")];
        assert_eq!(*learned, LearnedCapability::default(), "{status:?}");
        assert!(changes.intents.is_empty() && close(changes.priorities[0], 0.0));
    }
}

#[test]
fn a_cached_answer_is_a_use_and_nothing_else() {
    let changes = fold_traces(known(&["a"]), vec![NewTrace { cached: true, ..trace(1) }]);
    let statistics = &changes.capabilities[&capability("a")].statistics;
    assert_eq!((statistics.usage_count, statistics.success_count), (1, 0));
    assert!(changes.intents.is_empty());
}

#[test]
fn an_explored_path_is_a_run_of_nothing() {
    let explored = |seq| {
        let lesson = mixed(1, 1).remove(0).lesson;
        let tool = Some("fs:read".to_owned());
        let (first_tool, last_tool) = (tool.clone(), tool);
        NewTrace { exploratory: true, first_tool, last_tool, lesson, ..trace(seq) }
    };
    let failing = NewTrace { status: TraceStatus::Failed, ..explored(2) };
    let changes = fold_traces(known(&["a"]), vec![explored(1), failing.clone()]);
    assert_eq!(changes, LearningChanges { priorities: vec![0.0, 0.0], ..LearningChanges::default() });
    let alone = NewTrace { capability: None, ..failing };
    assert_eq!(fold_traces(known(&["a"]), vec![alone]).priorities, [0.0]);
    let runs = |between: Vec<NewTrace>| {
        let next = NewTrace { capability: Some(capability("b")), ..trace(9) };
        let all = [trace(1)].into_iter().chain(between).chain([next]).collect();
        fold_traces(known(&["a", "b"]), all).edges
    };
    assert_eq!(runs(vec![explored(2)]), runs(Vec::new()), "what follows what is not interrupted");
}

#[test]
fn an_intent_counts_only_where_the_trace_tells_it() {
    let intents = |trace: NewTrace| fold_traces(known(&["a"]), vec![trace]).intents.len();
    assert_eq!(intents(trace(1)), 1);
    assert_eq!(intents(NewTrace { intent_counts: false, ..trace(1) }), 0);
    assert_eq!(intents(NewTrace { exploratory: true, ..trace(1) }), 0);
    assert_eq!(intents(NewTrace { intent: String::new(), ..trace(1) }), 0);
    assert_eq!(intents(failed(1)), 0);
}

#[test]
fn runs_of_a_session_follow_each_other_for_half_an_hour() {
    let edges = |later: i64| {
        let next = NewTrace { capability: Some(capability("b")), created_at: later, ..trace(2) };
        fold_traces(known(&["a", "b"]), vec![NewTrace { created_at: 0, ..trace(1) }, next]).edges.len()
    };
    assert_eq!(edges(30 * MINUTE), 1);
    assert_eq!(edges(30 * MINUTE + 1), 0);
}

#[test]
fn a_tool_follows_itself_only_with_other_arguments() {
    let run = |seq, calls: &[&str]| {
        let tool = Some("fs:read".to_owned());
        let calls = calls.iter().map(|&call| call.to_owned()).collect();
        let lesson = Lesson { calls, ..Lesson::default() };
        NewTrace { capability: None, first_tool: tool.clone(), last_tool: tool, lesson, ..trace(seq) }
    };
    let times = |one: &[&str], other: &[&str]| {
        fold_traces(known(&[]), vec![run(1, one), run(2, other)]).edges.into_values().sum::<u64>()
    };
    assert_eq!(times(&["a.txt"], &["b.txt"]), 1);
    assert_eq!(times(&["a.txt"], &["a.txt"]), 0);
    assert_eq!(times(&["a.txt", "b.txt"], &["a.txt", "c.txt"]), 0, "it begins with the same call");
    assert_eq!(times(&[], &[]), 0, "what is not known is no evidence");
}

#[test]
fn a_part_of_a_run_is_contained_in_it_and_follows_nothing() {
    let part = NewTrace {
        capability: Some(capability("b")),
        is_nested: true,
        caller: Some(capability("a")),
        ..trace(2)
    };
    let changes = fold_traces(known(&["a", "b"]), vec![trace(1), part]);
    let (from, to) = (capability("a").as_str().to_owned(), capability("b").as_str().to_owned());
    assert_eq!(changes.edges, BTreeMap::from([((me(), from, EdgeKind::Contains, to), 1)]));
}

#[test]
fn a_trace_without_a_known_capability_is_all_news() {
    let changes =
        fold_traces(known(&[]), vec![trace(1), NewTrace { cached: true, capability: None, ..trace(2) }]);
    assert_eq!(changes.priorities, [1.0, 0.0]);
    assert!(changes.capabilities.is_empty() && changes.intents.is_empty());
}
