//! Runs that are forgotten, with everything that came of them, and old traces without their details.

use std::path::Path;
use std::sync::mpsc::sync_channel;

use pml_model::trace::{Trace, TraceId};
use pml_model::{Digest, Principal, RunState, ToolId};
use pml_store::{
    BlockingStore, CacheKey, CapabilityQuery, Error, ForgetScope, ForgottenCounts, NewCachedResult, NewMock,
    NewRun, StoredVector,
};

use super::super::{ann, append, create, entry, fixture, id, me, new_run, open_at, raw, raw_database, to};
use super::{capability_id, dump, learn, listed, memory, procedure_of, remember, trace};
use pml_store::TraceOrder;

/// A run that has ended, with its trace.
fn run(store: &BlockingStore, who: &Principal, identity: &str, number: u128, intent: &str, at: i64) {
    let new = NewRun { principal: who.clone(), intent: intent.to_owned(), now: at, ..new_run(number) };
    let lease = create(store, new).unwrap();
    append(store, &lease, vec![entry("a")], to(RunState::Done, at + 10)).unwrap();
    let trace = Trace { principal: who.clone(), intent: intent.to_owned(), created_at: at, ..trace(number) };
    remember(store, memory(identity, trace));
    learn(store);
}

fn forget(store: &BlockingStore, scope: &ForgetScope) -> ForgottenCounts {
    store.forget(scope, 9000).unwrap()
}

fn of_run(number: u128) -> ForgetScope {
    ForgetScope { run: Some(id(number)), ..ForgetScope::default() }
}

fn count(path: &Path, table: &str) -> i64 {
    raw_database(path).number(&format!("SELECT count(*) FROM {table}"))
}

/// The intents of a capability.
fn intents(store: &BlockingStore, identity: &str) -> Vec<String> {
    let found = store.capability(&me(), &capability_id(identity)).unwrap().unwrap();
    let mut texts: Vec<String> = found.intents.into_iter().map(|intent| intent.text).collect();
    texts.sort();
    texts
}

#[test]
fn a_forgotten_run_leaves_what_there_would_be_without_it() {
    let (with, without) = (fixture(), fixture());
    for fixture in [&with, &without] {
        run(&fixture.store, &me(), "p", 1, "read one", 1000);
        run(&fixture.store, &ann(), "p", 2, "read two", 2000);
    }
    run(&with.store, &me(), "p", 3, "read the diary", 3000);
    run(&with.store, &me(), "q", 4, "read the diary", 4000);
    assert_eq!(intents(&with.store, "p"), ["read one", "read the diary"]);
    let preview = with.store.count_forgettable(&of_run(3)).unwrap();
    assert_eq!((preview.runs, preview.traces), (1, 1));
    let gone = forget(&with.store, &of_run(3));
    assert_eq!((gone.runs, gone.traces, gone.capabilities), (1, 1, 0));
    let gone = forget(&with.store, &of_run(4));
    assert_eq!((gone.runs, gone.traces, gone.capabilities), (1, 1, 1), "nothing else taught the second one");
    assert_eq!(dump(&with.path), dump(&without.path));
    for table in ["run", "run_key", "run_body", "journal", "run_claim", "trace_body"] {
        assert_eq!(count(&with.path, table), count(&without.path, table), "{table}");
    }
    let learned = dump(&with.path);
    with.store.relearn_all(9000).unwrap();
    assert_eq!(dump(&with.path), learned);
    assert!(with.store.check_integrity().unwrap().damaged_rows.is_empty());
    let kinds: Vec<String> =
        with.store.audit_entries(0, 9).unwrap().into_iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, ["forgotten", "forgotten"]);
    // What keeps capabilities in memory hears of it.
    let changes = with.store.capabilities_since(0).unwrap();
    assert!(changes.gone.contains(&capability_id("q")));
}

#[test]
fn a_run_in_the_middle_is_forgotten_and_learning_is_as_from_the_rest() {
    let fixture = fixture();
    for number in 1..8 {
        run(
            &fixture.store,
            &me(),
            "p",
            number,
            &format!("read {number}"),
            1000 * i64::try_from(number).unwrap(),
        );
    }
    forget(&fixture.store, &of_run(4));
    assert_eq!(intents(&fixture.store, "p").len(), 6);
    assert_eq!(listed(&fixture.store, TraceOrder::Newest, None).len(), 6);
    let found = fixture.store.capability(&me(), &capability_id("p")).unwrap().unwrap();
    assert_eq!(found.statistics.usage_count, 6);
    let learned = dump(&fixture.path);
    fixture.store.relearn_all(9000).unwrap();
    assert_eq!(dump(&fixture.path), learned);
    // The rest of it is gone for a store that is opened later, too.
    assert!(matches!(open_at(&fixture.path).unwrap().load_run(&me(), &id(4)), Err(Error::UnknownRun { .. })));
}

#[test]
fn a_run_and_its_trace_are_forgotten_together_though_one_is_older() {
    let fixture = fixture();
    let store = &fixture.store;
    // It began at 1000 and ended at 3000.
    let lease = create(store, new_run(1)).unwrap();
    append(store, &lease, vec![entry("a")], to(RunState::Done, 3000)).unwrap();
    remember(store, memory("p", Trace { created_at: 3000, ..trace(1) }));
    learn(store);
    let since = ForgetScope { since: Some(2000), ..ForgetScope::default() };
    let none = forget(store, &since);
    assert_eq!((none.runs, none.traces, count(&fixture.path, "trace")), (0, 0, 1));
    let before = ForgetScope { before: Some(2000), ..ForgetScope::default() };
    let preview = store.count_forgettable(&before).unwrap();
    assert_eq!((preview.runs, preview.traces), (1, 1));
    let gone = forget(store, &before);
    assert_eq!((gone.runs, gone.traces, gone.capabilities), (1, 1, 1));
    assert_eq!((count(&fixture.path, "run"), count(&fixture.path, "trace")), (0, 0));
}

#[test]
fn runs_are_forgotten_by_time_and_by_person() {
    let fixture = fixture();
    let store = &fixture.store;
    for number in 1..7 {
        let who = if number % 2 == 0 { ann() } else { me() };
        run(store, &who, "p", number, "read", 1000 * i64::try_from(number).unwrap());
    }
    let times = |since, before, user| ForgetScope { run: None, user, since, before };
    assert_eq!(forget(store, &times(Some(5000), Some(6000), None)).runs, 1);
    assert_eq!(forget(store, &times(None, Some(3000), Some(ann()))).runs, 1);
    assert_eq!(forget(store, &times(Some(7000), None, None)).runs, 0);
    assert_eq!(forget(store, &ForgetScope::default()).runs, 0, "without a condition nothing is meant");
    let left: Vec<String> = raw_database(&fixture.path)
        .texts("SELECT created_at FROM run ORDER BY 1")
        .into_iter()
        .map(|mut row| row.remove(0))
        .collect();
    assert_eq!(left, ["1000", "3000", "4000", "6000"]);
    assert_eq!(forget(store, &times(Some(4000), None, None)).runs, 2);
    assert_eq!(count(&fixture.path, "trace"), 2);
    assert_eq!(store.capabilities(&ann(), &all()).unwrap().len(), 0);
}

fn all() -> CapabilityQuery {
    CapabilityQuery { state: None, recent: false, limit: 100, offset: 0 }
}

fn keep_result(store: &BlockingStore, who: &Principal) {
    let key = CacheKey {
        principal: who.clone(),
        capability: procedure_of(who, "p").id,
        parameters: Digest::of(b"a"),
        epoch: "e".to_owned(),
    };
    let new = NewCachedResult {
        result: &raw("1"),
        intent: None,
        stamps: "[]",
        at: 1000,
        expires_at: 1 << 40,
        max_entries: 3,
    };
    let (reply, answer) = sync_channel(1);
    store.cache_result(&key, &new, move |stored| reply.send(stored).unwrap());
    answer.recv().unwrap().unwrap();
}

fn mock(store: &BlockingStore, who: &Principal, path: &str, at: i64) {
    let mock = NewMock {
        principal: who.clone(),
        tool: ToolId::parse("fs:read").unwrap(),
        digest: Digest::of(b"definition"),
        arguments: raw(&format!("{{\"path\":\"{path}\"}}")),
        result: raw("\"text\""),
    };
    store.record_mocks(vec![mock], at).unwrap();
}

fn vector(store: &BlockingStore, who: &Principal, text: &str) {
    let vector = StoredVector { scale: 0.25, numbers: vec![1, 127] };
    store.store_vectors(who, "small", vec![(Digest::of(text.as_bytes()), vector)]).unwrap();
}

#[test]
fn recorded_and_cached_results_and_embeddings_go_with_a_run() {
    let fixture = fixture();
    let store = &fixture.store;
    run(store, &me(), "p", 1, "read one", 1000);
    run(store, &me(), "p", 2, "read two", 500_000);
    run(store, &ann(), "p", 3, "read one", 1000);
    for (who, path, at) in [
        (me(), "early.txt", 900),
        (me(), "mine.txt", 1005),
        (me(), "late.txt", 500_005),
        (ann(), "hers.txt", 1005),
    ] {
        mock(store, &who, path, at);
    }
    for who in [me(), ann()] {
        keep_result(store, &who);
        ["read one", "read two"].iter().for_each(|text| vector(store, &who, text));
    }
    let gone = forget(store, &of_run(1));
    assert_eq!((gone.mocks, gone.cached_results), (1, 1));
    let paths = |who: &Principal| -> Vec<String> {
        let mut paths: Vec<String> = store
            .mocks(who)
            .unwrap()
            .into_iter()
            .map(|mock| mock.arguments["path"].as_str().unwrap().to_owned())
            .collect();
        paths.sort();
        paths
    };
    assert_eq!(paths(&me()), ["early.txt", "late.txt"]);
    assert_eq!(paths(&ann()), ["hers.txt"]);
    assert_eq!(count(&fixture.path, "cached_result"), 1);
    let known = store.vectors(&me(), "small").unwrap();
    assert_eq!(known.keys().collect::<Vec<_>>(), [&Digest::of(b"read two")]);
    assert_eq!(store.vectors(&ann(), "small").unwrap().len(), 2);
}

#[test]
fn everything_of_a_person_is_forgotten_and_nothing_of_another() {
    let fixture = fixture();
    let store = &fixture.store;
    let neil = Principal("o'neil".to_owned());
    run(store, &me(), "p", 1, "read", 1000);
    let mine = dump(&fixture.path);
    run(store, &neil, "p", 2, "read", 1000);
    store
        .create_capability(
            procedure_of(&neil, "by hand"),
            pml_store::NewName::Suggested,
            &["x".to_owned()],
            1,
        )
        .unwrap();
    mock(store, &neil, "hers.txt", 900_000);
    keep_result(store, &neil);
    vector(store, &neil, "anything");
    assert_eq!(store.capabilities(&neil, &all()).unwrap().len(), 2);
    let gone = forget(store, &ForgetScope { user: Some(neil.clone()), ..ForgetScope::default() });
    let expected = ForgottenCounts { runs: 1, traces: 1, capabilities: 2, mocks: 1, cached_results: 1 };
    assert_eq!(gone, expected);
    assert_eq!(dump(&fixture.path), mine);
    for table in ["run", "trace", "capability", "mock", "vector", "cached_result", "cache_drop", "edge"] {
        let left = format!("SELECT count(*) FROM {table} WHERE principal = 'o''neil'");
        assert_eq!(raw_database(&fixture.path).number(&left), 0, "{table}");
    }
}

#[test]
fn a_run_that_has_not_ended_is_not_forgotten() {
    let fixture = fixture();
    let store = &fixture.store;
    run(store, &me(), "p", 1, "read", 1000);
    create(store, new_run(2)).unwrap();
    let everything = ForgetScope { since: Some(0), ..ForgetScope::default() };
    let refused = store.forget(&everything, 9000).unwrap_err();
    assert!(matches!(&refused, Error::RunNotEnded { run } if *run == id(2)), "{refused}");
    assert_eq!((count(&fixture.path, "run"), count(&fixture.path, "trace")), (2, 1));
    assert!(store.audit_entries(0, 9).unwrap().is_empty());
}

#[test]
fn old_traces_lose_their_details_and_still_count() {
    let fixture = fixture();
    let store = &fixture.store;
    for number in 1..6 {
        run(store, &me(), "p", number, "read", 1000 * i64::try_from(number).unwrap());
    }
    let learned = dump(&fixture.path);
    let position = store.drop_trace_details(0, 3000).unwrap();
    let details = |number: u128| {
        store.trace(&me(), &TraceId::of(&id(number))).unwrap().unwrap().body.task_results.len()
    };
    assert_eq!([1, 2, 3, 4, 5].map(details), [0, 0, 1, 1, 1]);
    assert_eq!(store.drop_trace_details(position, 5000).unwrap(), position + 2);
    assert_eq!(store.drop_trace_details(0, 5000).unwrap(), position + 2, "a gateway that has just started");
    assert_eq!([1, 2, 3, 4, 5].map(details), [0, 0, 0, 0, 1]);
    assert!(store.check_integrity().unwrap().damaged_rows.is_empty());
    store.relearn_all(9000).unwrap();
    assert_eq!(dump(&fixture.path), learned);
}
