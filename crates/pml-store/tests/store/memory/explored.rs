//! What traces show of explored paths, and the capabilities that they become.

use super::super::raw_database;
use pml_model::capability::{CapabilityOrigin, CapabilityState, Procedure};
use pml_model::exploration::{ExploredPath, MisleadingCause, PathOutcome};
use pml_model::trace::{Trace, TraceId};
use pml_model::{Digest, Principal};
use pml_store::{IntentFit, RunMemory};
use serde_json::Map;

use super::super::{ann, fixture, id, me};
use super::{capability_id, dump, failed, get, learn, memory, procedure, remember, trace};

fn path(number: u128, outcome: PathOutcome) -> ExploredPath {
    ExploredPath {
        exploration_id: format!("exploration_{number}"),
        path_id: format!("dry_{number}"),
        procedure: capability_id("p"),
        definitions: Digest::of(b"tools"),
        masked_intent: "read {path}".to_owned(),
        not_chosen: Vec::new(),
        outcome,
        weight: 0.875,
        cause: (outcome == PathOutcome::Misleading).then_some(MisleadingCause::Mock),
        message: Some("no such file".to_owned()),
    }
}

/// The trace of a path that was explored.
fn explored(number: u128, principal: Principal, outcome: PathOutcome) -> RunMemory {
    let mut trace = Trace { principal, exploratory: true, ..trace(number) };
    trace.body.explored = Some(Box::new(path(number, outcome)));
    RunMemory {
        procedure: None,
        activates: false,
        tools: Vec::new(),
        values: Map::new(),
        result: None,
        golden: false,
        intent: IntentFit::Unchecked,
        excluded_from_learning: true,
        trace: Box::new(trace),
        nested: Vec::new(),
    }
}

fn explored_procedure() -> Procedure {
    Procedure { origin: CapabilityOrigin::Explored, ..procedure("p") }
}

#[test]
fn what_traces_show_of_paths_is_read_oldest_first_and_by_principal() {
    let fixture = fixture();
    remember(&fixture.store, explored(1, me(), PathOutcome::Viable));
    remember(&fixture.store, explored(2, ann(), PathOutcome::Failed));
    let mut run = failed(3, "no such file");
    run.body.explored = Some(Box::new(path(3, PathOutcome::Misleading)));
    remember(&fixture.store, memory("p", run));
    let found = fixture.store.explored_paths(&me(), 10).unwrap();
    assert_eq!(found, [path(1, PathOutcome::Viable), path(3, PathOutcome::Misleading)]);
    assert_eq!(
        fixture.store.explored_paths(&me(), 1).unwrap(),
        [path(3, PathOutcome::Misleading)],
        "the latest"
    );
    let stored = fixture.store.trace(&me(), &TraceId::of(&id(3))).unwrap().unwrap();
    assert_eq!(stored.body.explored, Some(Box::new(path(3, PathOutcome::Misleading))));
}

#[test]
fn a_row_that_was_altered_is_left_out() {
    let fixture = fixture();
    remember(&fixture.store, explored(1, me(), PathOutcome::Viable));
    raw_database(&fixture.path).execute("UPDATE explored_path SET weight = 9.0");
    assert_eq!(fixture.store.explored_paths(&me(), 10).unwrap(), []);
}

#[test]
fn explored_paths_change_no_learned_number_and_nothing_that_follows() {
    let (plain, fixture) = (fixture(), fixture());
    for number in 1..=4 {
        remember(&plain.store, memory(if number % 2 == 0 { "p" } else { "q" }, trace(number)));
        remember(&fixture.store, memory(if number % 2 == 0 { "p" } else { "q" }, trace(number)));
        remember(&fixture.store, explored(10 + number, me(), PathOutcome::Viable));
        // One by one, so that the last trace of the session is read from the database.
        learn(&plain.store);
        learn(&fixture.store);
    }
    for identity in ["p", "q"] {
        let (with, without) = (get(&fixture.store, identity), get(&plain.store, identity));
        assert_eq!((with.statistics, with.intents), (without.statistics, without.intents));
        assert_eq!(with.learning, without.learning);
    }
    let numbers = |path: &std::path::Path| {
        let is_number = |row: &String| !row.starts_with("trace\t") && !row.starts_with("capability\t");
        dump(path).into_iter().filter(is_number).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&fixture.path), numbers(&plain.path));
    let before = dump(&fixture.path);
    fixture.store.relearn_all(5000).unwrap();
    assert_eq!(dump(&fixture.path), before);
}

#[test]
fn an_explored_procedure_becomes_a_capability_only_if_there_is_none() {
    let fixture = fixture();
    assert!(fixture.store.promote_explored(explored_procedure(), "read a.txt", 7).unwrap());
    let found = get(&fixture.store, "p");
    assert_eq!(found.state, CapabilityState::Active);
    assert_eq!((found.procedure.origin, found.statistics.success_count), (CapabilityOrigin::Explored, 0));
    assert_eq!(found.intents[0].text, "read a.txt");
    assert!(!fixture.store.promote_explored(explored_procedure(), "read b.txt", 8).unwrap());
    remember(&fixture.store, memory("p", trace(1)));
    learn(&fixture.store);
    assert_eq!(get(&fixture.store, "p").statistics.success_count, 1, "runs count for it");
}

#[test]
fn a_capability_that_was_deleted_does_not_come_back_by_exploring() {
    let fixture = fixture();
    assert!(fixture.store.promote_explored(explored_procedure(), "read a.txt", 7).unwrap());
    assert!(fixture.store.delete_capability(&me(), &capability_id("p"), 8).unwrap());
    assert!(!fixture.store.promote_explored(explored_procedure(), "read a.txt", 9).unwrap());
}

#[test]
fn a_plan_that_failed_is_not_promoted_by_exploring() {
    let fixture = fixture();
    remember(&fixture.store, memory("p", failed(1, "no")));
    assert!(!fixture.store.promote_explored(explored_procedure(), "read a.txt", 7).unwrap());
    assert_eq!(get(&fixture.store, "p").state, CapabilityState::Planned);
}
