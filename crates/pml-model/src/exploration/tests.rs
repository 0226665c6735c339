//! What explored paths count for, and what they do not.

use serde_json::json;

use super::*;
use crate::Principal;
use crate::json::raw;

const INTENT: &str = "read {path} and count its lines";

fn node(text: &str) -> NodeId {
    NodeId::try_from(text.to_owned()).unwrap()
}

/// A call of `n{number}`.
fn call(number: u32) -> TaskResult {
    TaskResult {
        call: number,
        node_id: Some(node(&format!("n{number}"))),
        task_id: None,
        tool: "fs:read".to_owned(),
        tool_digest: Digest::of(b"d"),
        args: raw(&json!({})),
        result: None,
        success: true,
        error: None,
        started_at: 0,
        duration_ms: None,
        duration_us: None,
        attempt: 1,
        layer: None,
        altered: false,
        speculated: false,
        saved_ms: None,
        age_ms: None,
        mocked: false,
        mock_weight: None,
    }
}

fn mocked(number: u32, weight: f64) -> TaskResult {
    TaskResult { mocked: true, mock_weight: Some(weight), ..call(number) }
}

fn failure(code: &str, error_type: ErrorType, node_id: Option<&str>) -> TraceFailure {
    TraceFailure {
        code: code.to_owned(),
        message: "no".to_owned(),
        error_type,
        node_id: node_id.map(str::to_owned),
    }
}

fn failing(number: u32, error_type: ErrorType) -> TaskResult {
    TaskResult { success: false, error: Some(failure("TOOL_ERROR", error_type, None)), ..call(number) }
}

fn body(task_results: Vec<TaskResult>) -> TraceBody {
    TraceBody { task_results, ..TraceBody::default() }
}

fn procedure() -> CapabilityId {
    CapabilityId::of(&Principal::local(), "a")
}

fn seen(exploration: u32, outcome: PathOutcome, weight: f64) -> ExploredPath {
    ExploredPath {
        exploration_id: format!("exploration_{exploration}"),
        path_id: format!("dry_{exploration}"),
        procedure: procedure(),
        definitions: Digest::of(b"now"),
        masked_intent: INTENT.to_owned(),
        not_chosen: Vec::new(),
        outcome,
        weight,
        cause: (outcome == PathOutcome::Misleading).then_some(MisleadingCause::Tool),
        message: None,
    }
}

fn evidence(seen: Vec<ExploredPath>) -> PathEvidence {
    PathHistory::new(seen).evidence(&procedure(), &Digest::of(b"now"), INTENT)
}

fn is_due(seen: Vec<ExploredPath>) -> bool {
    PathHistory::new(seen).is_due(&procedure(), &Digest::of(b"now"), INTENT)
}

#[test]
fn a_trace_counts_by_its_mocks_and_only_if_most_calls_were_real() {
    for (calls, weight) in [
        (vec![call(1), call(2)], 1.0),
        (vec![call(1), call(2), call(3), mocked(4, 0.5)], 0.875),
        (vec![call(1), call(2), call(3), mocked(4, 1.0)], 1.0),
        // Three of ten made up are the most that counts.
        ((1..=10).map(|number| if number > 7 { mocked(number, 0.5) } else { call(number) }).collect(), 0.85),
        (vec![call(1), call(2), mocked(3, 1.0)], 0.0),
        (vec![], 0.0),
    ] {
        let found = body(calls.clone()).viable_weight();
        assert!((found - weight).abs() < 1e-9, "{found} for {} calls", calls.len());
    }
}

#[test]
fn a_failure_counts_if_a_real_call_refused_what_it_was_wired_to() {
    let none = BTreeSet::new();
    for kind in [ErrorType::Validation, ErrorType::Internal, ErrorType::Unknown] {
        assert_eq!(body(vec![call(1), failing(2, kind)]).failed_weight(&none), 1.0, "{kind:?}");
    }
    for kind in [
        ErrorType::NotFound,
        ErrorType::Network,
        ErrorType::Timeout,
        ErrorType::RateLimit,
        ErrorType::Permission,
        ErrorType::Cancelled,
    ] {
        assert_eq!(body(vec![failing(1, kind)]).failed_weight(&none), 0.0, "{kind:?}");
    }
    let refused = failing(2, ErrorType::Validation);
    assert_eq!(
        body(vec![refused.clone()]).failed_weight(&BTreeSet::from([node("n2")])),
        0.0,
        "made-up arguments"
    );
    assert_eq!(
        body(vec![TaskResult { mocked: true, ..refused }]).failed_weight(&none),
        0.0,
        "a made-up failure"
    );
}

#[test]
fn the_cause_of_a_misleading_path_is_found() {
    use MisleadingCause::{Mock, Tool, ToolChange};
    let tried = TriedCalls { mocked: BTreeSet::from([node("n1")]), tainted: BTreeSet::from([node("n2")]) };
    let judged = |status, code: &str, at: &str| {
        let error = failure(code, ErrorType::Unknown, Some(at));
        judge_chosen(status, Some(&error), &[], &tried)
    };
    let misleading = |cause| (PathOutcome::Misleading, Some(cause));
    assert_eq!(judged(TraceStatus::Failed, "TOOL_ERROR", "n1"), misleading(Mock), "not made when exploring");
    assert_eq!(judged(TraceStatus::Failed, "TOOL_ERROR", "n2"), misleading(Mock), "made-up arguments");
    assert_eq!(judged(TraceStatus::Failed, "TOOL_ERROR", "n3"), misleading(Tool));
    assert_eq!(judged(TraceStatus::Timeout, "TIMEOUT", "n3"), misleading(Tool));
    assert_eq!(judged(TraceStatus::Failed, "TOOL_CHANGED", "n1"), misleading(ToolChange));
    assert_eq!(judged(TraceStatus::Blocked, "INVALID_ARGUMENTS", "n2"), misleading(Mock));
    for (status, code) in [
        (TraceStatus::Blocked, "INVALID_ARGUMENTS"),
        (TraceStatus::Blocked, "DENIED"),
        (TraceStatus::Cancelled, "CANCELLED"),
    ] {
        assert_eq!(judged(status, code, "n3"), (PathOutcome::Undecided, None), "{code}");
    }
    assert_eq!(judge_chosen(TraceStatus::Success, None, &[], &tried), (PathOutcome::Worked, None));
    let tasks = [call(3), failing(1, ErrorType::Internal)];
    assert_eq!(judge_chosen(TraceStatus::Failed, None, &tasks, &tried), misleading(Mock), "by its call");
}

#[test]
fn explorations_cannot_outweigh_a_run_that_failed() {
    let viable = |count| (0..count).map(|number| seen(number, PathOutcome::Viable, 1.0)).collect::<Vec<_>>();
    assert_eq!(evidence(viable(9)).reliability(), 1.0);
    let mut misled = viable(9);
    misled.push(seen(9, PathOutcome::Misleading, 1.0));
    let found = evidence(misled.clone());
    assert!(found.is_misleading() && found.reliability() < 0.7, "{found:?}");
    misled.push(seen(10, PathOutcome::Worked, 1.0));
    assert!(!evidence(misled).is_misleading(), "it works again");
}

#[test]
fn a_path_that_was_chosen_and_worked_is_preferred_until_another_is_chosen_more_often() {
    let other = CapabilityId::of(&Principal::local(), "b");
    let of_other = |path: ExploredPath| ExploredPath { procedure: other.clone(), ..path };
    // Both paths are viable in each exploration.
    let both = |exploration| {
        let viable = seen(exploration, PathOutcome::Viable, 0.0);
        [viable.clone(), of_other(viable)]
    };
    let mut history = both(1).to_vec();
    assert!(!evidence(history.clone()).is_preferred(), "nobody has chosen");
    history.push(seen(1, PathOutcome::Worked, 1.0));
    assert!(evidence(history.clone()).is_preferred());
    let of_it = |history: &[ExploredPath], procedure: &CapabilityId| {
        PathHistory::new(history.to_vec()).evidence(procedure, &Digest::of(b"now"), INTENT)
    };
    assert_eq!(of_it(&history, &other).passed_over, 1);
    for exploration in [2, 3] {
        history.extend(both(exploration));
        history.push(of_other(seen(exploration, PathOutcome::Worked, 1.0)));
    }
    assert!(!evidence(history.clone()).is_preferred(), "the other was chosen twice");
    assert!(of_it(&history, &other).is_preferred());
    history.push(of_other(seen(3, PathOutcome::Misleading, 1.0)));
    assert!(!of_it(&history, &other).is_preferred(), "it failed since");
}

#[test]
fn what_was_prevented_is_no_evidence() {
    let found = evidence(vec![seen(1, PathOutcome::Undecided, 0.0)]);
    assert_eq!((found.reliability(), found.is_misleading()), (1.0, false));
}

#[test]
fn other_definitions_and_other_intents_are_no_evidence() {
    let before = ExploredPath { definitions: Digest::of(b"before"), ..seen(1, PathOutcome::Misleading, 1.0) };
    let found = evidence(vec![before]);
    assert_eq!((found.reliability(), found.is_misleading()), (1.0, false));
    assert!(found.misleading.is_some_and(|run| run.is_outdated), "it is still told");
    let similar = ExploredPath {
        masked_intent: "read {path} and count the lines".to_owned(),
        ..seen(1, PathOutcome::Misleading, 1.0)
    };
    assert!(evidence(vec![similar.clone()]).is_misleading());
    let other = ExploredPath { masked_intent: "send {email} the weather".to_owned(), ..similar };
    assert!(!evidence(vec![other]).is_misleading());
}

#[test]
fn a_path_is_promoted_once_it_was_viable_often_enough() {
    let viable = |exploration| seen(exploration, PathOutcome::Viable, 1.0);
    assert!(!is_due(vec![viable(1), viable(2)]));
    assert!(is_due(vec![viable(1), viable(2), viable(3)]));
    assert!(!is_due(vec![viable(1), viable(1), viable(1)]), "one exploration counts once");
    let partly = |exploration| seen(exploration, PathOutcome::Viable, 0.875);
    assert!(!is_due(vec![partly(1), partly(2), partly(3)]));
    assert!(is_due(vec![partly(1), partly(2), partly(3), partly(4)]));
    let mostly_made_up = |exploration| seen(exploration, PathOutcome::Viable, 0.0);
    assert!(!is_due((1..20).map(mostly_made_up).collect()));
    let against = seen(0, PathOutcome::Failed, 1.0);
    assert!(!is_due(vec![against, viable(1), viable(2), viable(3)]), "it failed once");
    let unlucky = seen(0, PathOutcome::Failed, 0.0);
    assert!(is_due(vec![unlucky, viable(1), viable(2), viable(3)]), "a missing file is no evidence");
    let similar = ExploredPath { masked_intent: "read {path} and count the lines".to_owned(), ..viable(1) };
    assert!(!is_due(vec![similar, viable(2), viable(3)]), "word for word");
}
