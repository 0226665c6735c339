//! Runs and their journals: what is stored comes back, in order, to those it belongs to.

use super::{open_at, this_process};
use std::sync::mpsc::channel;

use pml_model::{Digest, RunState};
use pml_store::{
    AnswerOutcome, Claim, Error, Idempotency, JournalEntry, JournalEntryKind, RunCallCounts, RunChange,
    RunQuery, Urgency,
};

use super::{
    LATE, ann, append, append_with, bodies, claim, create, entry, fixture, id, in_doubt, it_was_done, me,
    new_run, park, said, taken, to,
};

const DAY: i64 = 24 * 60 * 60 * 1000;

#[test]
fn a_run_comes_back_as_it_was_stored_also_after_a_restart() {
    let fixture = fixture();
    let run = pml_store::NewRun { expires_at: Some(9000), ..new_run(1) };
    let lease = create(&fixture.store, run).unwrap();
    let entries: Vec<JournalEntry> = JournalEntryKind::ALL
        .into_iter()
        .map(|kind| JournalEntry {
            kind,
            call: Some(u32::MAX),
            frame: 3,
            node: Some("n1".to_owned()),
            tool: Some("fs:read".to_owned()),
            digest: Some(Digest::of(b"arguments")),
            at: -5,
            body: vec![0, 255, 1],
        })
        .chain([JournalEntry { call: None, body: Vec::new(), ..entry("") }])
        .collect();
    let change = RunChange {
        calls: Some(RunCallCounts { made: 7, ..RunCallCounts::default() }),
        ..park(Some(5000), Some("q1")).unwrap()
    };
    append(&fixture.store, &lease, entries.clone(), Some(change)).unwrap();
    fixture.store.store_answer(&me(), &id(1), said("q1", "42", 2000, Vec::new())).unwrap();
    drop(fixture.store);

    let store = open_at(&fixture.path).unwrap();
    let recorded = store.load_run(&me(), &id(1)).unwrap();
    assert_eq!(recorded.plan, b"plan of 1");
    assert_eq!(recorded.entries, entries);
    assert_eq!(recorded.question, Some(("q1".to_owned(), in_doubt("arguments"))));
    assert_eq!(recorded.answers.len(), 1);
    assert_eq!(recorded.answers[0].answer, it_was_done("42"));
    assert_eq!((&recorded.answers[0].principal, recorded.answers[0].at), (&me(), 2000));
    assert_eq!(recorded.outcome, None);
    let run = recorded.run;
    assert_eq!(
        (run.session.as_str(), run.intent.as_str(), run.code_hash.as_str()),
        ("session", "count the files", "c0de")
    );
    assert_eq!((run.state, run.calls, run.owner, run.fence), (RunState::Waiting, 7, None, 1));
    assert_eq!(
        (run.wake_at, run.expires_at, run.created_at, run.ended_at),
        (Some(5000), Some(9000), 1000, None)
    );

    let lease = taken(claim(&store, &id(1)));
    let end = RunChange { outcome: Some(b"seven".to_vec()), ..to(RunState::Done, 6000).unwrap() };
    append(&store, &lease, vec![entry("last")], Some(end)).unwrap();
    let standing = store.run_overview(&me(), &id(1)).unwrap().unwrap();
    assert_eq!(standing.outcome.as_deref(), Some(b"seven".as_slice()));
    assert_eq!(standing.question, None);
    assert_eq!(
        (standing.run.state, standing.run.ended_at, standing.run.owner),
        (RunState::Done, Some(6000), None)
    );
    assert_eq!(store.load_run(&me(), &id(1)).unwrap().entries.len(), JournalEntryKind::ALL.len() + 2);
}

#[test]
fn a_failed_run_says_why() {
    let fixture = fixture();
    let lease = create(&fixture.store, new_run(1)).unwrap();
    let end = RunChange { error_code: Some("DIVERGED".to_owned()), ..to(RunState::Failed, 2000).unwrap() };
    append(&fixture.store, &lease, Vec::new(), Some(end)).unwrap();
    let run = fixture.store.run(&me(), &id(1)).unwrap().unwrap();
    assert_eq!((run.state, run.error_code.as_deref()), (RunState::Failed, Some("DIVERGED")));
}

#[test]
fn entries_are_stored_in_the_order_they_were_given_whatever_their_urgency() {
    let fixture = fixture();
    let (reply, answers) = channel();
    let stored = || {
        let reply = reply.clone();
        move |stored: Result<(), Error>| reply.send(stored).unwrap()
    };
    // Nothing waits for the creation of the run.
    let lease = fixture.store.create_run(new_run(1), Urgency::Lazy, stored()).unwrap();
    let mut given = Vec::new();
    for number in 0..500 {
        let urgency =
            [Urgency::Lazy, Urgency::Lazy, Urgency::Soon, Urgency::Lazy, Urgency::Durable][number % 5];
        let texts: Vec<String> = (0..number % 3).map(|part| format!("{number}.{part}")).collect();
        fixture.store.append_journal(
            &lease,
            texts.iter().map(|text| entry(text)).collect(),
            None,
            urgency,
            stored(),
        );
        given.extend(texts);
    }
    for _ in 0..501 {
        answers.recv().unwrap().unwrap();
    }
    assert_eq!(bodies(&fixture.store, &id(1)), given);
    assert_eq!(fixture.store.backlog_bytes(), 0);
}

#[test]
fn an_append_after_the_run_was_taken_leaves_nothing() {
    let fixture = fixture();
    let stale = create(&fixture.store, new_run(1)).unwrap();
    append(&fixture.store, &stale, vec![entry("first")], park(None, None)).unwrap();
    let other = open_at(&fixture.path).unwrap();
    let lease = taken(claim(&other, &id(1)));
    assert_eq!((stale.fence(), lease.fence()), (1, 2));
    let neighbour = create(&fixture.store, new_run(2)).unwrap();

    // All three share a commit.
    let (reply, answers) = channel();
    for (lease, change) in [(&neighbour, None), (&stale, to(RunState::Done, 3000)), (&neighbour, None)] {
        let reply = reply.clone();
        let done = move |stored: Result<(), Error>| reply.send(stored).unwrap();
        fixture.store.append_journal(lease, vec![entry("second")], change, Urgency::Lazy, done);
    }
    assert!(answers.recv().unwrap().is_ok());
    assert!(matches!(answers.recv().unwrap(), Err(Error::Fenced { run }) if run == id(1)));
    assert!(answers.recv().unwrap().is_ok());
    assert_eq!(bodies(&fixture.store, &id(1)), ["first"]);
    assert_eq!(bodies(&fixture.store, &id(2)), ["second", "second"]);
    assert_eq!(fixture.store.run(&me(), &id(1)).unwrap().unwrap().state, RunState::Running);
    append(&other, &lease, vec![entry("second")], None).unwrap();
    assert_eq!(bodies(&fixture.store, &id(1)), ["first", "second"]);
}

#[test]
fn a_run_that_is_over_changes_no_more() {
    let fixture = fixture();
    let lease = create(&fixture.store, new_run(1)).unwrap();
    append(&fixture.store, &lease, Vec::new(), to(RunState::Cancelled, 2000)).unwrap();
    for (entries, change) in [(vec![entry("late")], None), (Vec::new(), to(RunState::Done, 3000))] {
        let refused = append(&fixture.store, &lease, entries, change).unwrap_err();
        assert!(matches!(refused, Error::RunEnded { state: RunState::Cancelled, .. }), "{refused}");
    }
    assert!(matches!(claim(&fixture.store, &id(1)), Claim::Ended(RunState::Cancelled)));
    assert_eq!(fixture.store.load_run(&me(), &id(1)).unwrap().entries.len(), 0);
}

#[test]
fn nothing_follows_an_entry_that_was_not_stored_until_the_run_is_resumed() {
    let fixture = fixture();
    let lease = create(&fixture.store, new_run(1)).unwrap();
    append(&fixture.store, &lease, vec![entry("a")], None).unwrap();
    let large = JournalEntry { body: vec![0; 16 * 1024 * 1024 + 1], ..entry("") };
    let refused = append(&fixture.store, &lease, vec![large], None).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("an entry of run `{}` has 16777217 bytes and at most 16777216 are stored", id(1))
    );
    for (entries, change) in
        [(vec![entry("b")], None), (Vec::new(), to(RunState::Done, 2000)), (Vec::new(), None)]
    {
        let refused = append(&fixture.store, &lease, entries, change).unwrap_err();
        assert!(matches!(refused, Error::JournalGap { .. }), "{refused}");
    }
    append(&fixture.store, &lease, Vec::new(), to(RunState::Interrupted, 2000)).unwrap();
    let lease = taken(claim(&fixture.store, &id(1)));
    append(&fixture.store, &lease, vec![entry("b")], None).unwrap();
    assert_eq!(bodies(&fixture.store, &id(1)), ["a", "b"]);
}

#[test]
fn the_largest_bodies_are_stored() {
    let fixture = fixture();
    let large = vec![7; 16 * 1024 * 1024];
    let lease = create(&fixture.store, pml_store::NewRun { plan: large.clone(), ..new_run(1) }).unwrap();
    let end = RunChange { outcome: Some(large.clone()), ..to(RunState::Done, 2000).unwrap() };
    let entries = vec![JournalEntry { body: large.clone(), ..entry("") }];
    append_with(&fixture.store, &lease, entries, Some(end), Urgency::Lazy).unwrap();
    let recorded = fixture.store.load_run(&me(), &id(1)).unwrap();
    assert!(recorded.plan == large && recorded.entries[0].body == large && recorded.outcome == Some(large));
}

#[test]
fn a_repeated_request_finds_its_run_for_a_day() {
    let fixture = fixture();
    let request = Digest::of(b"request");
    let with_key = |number, now| pml_store::NewRun {
        idempotency: Some(Idempotency { key: "k".to_owned(), request: request.clone() }),
        now,
        ..new_run(number)
    };
    create(&fixture.store, with_key(1, 1000)).unwrap();
    let found = |now| fixture.store.run_by_idempotency_key(&me(), "k", now).unwrap();
    assert_eq!(found(1000 + DAY - 1), Some((id(1), request.clone())));
    assert_eq!(found(1000 + DAY), None);
    assert_eq!(fixture.store.run_by_idempotency_key(&me(), "other", 1000).unwrap(), None);
    assert_eq!(fixture.store.run_by_idempotency_key(&ann(), "k", 1000).unwrap(), None);

    let refused = create(&fixture.store, with_key(2, 1000 + DAY - 1)).unwrap_err();
    assert!(matches!(refused, Error::IdempotencyKeyInUse { run } if run == id(1)));
    assert_eq!(fixture.store.run(&me(), &id(2)).unwrap(), None);
    create(&fixture.store, pml_store::NewRun { principal: ann(), ..with_key(3, 1000) }).unwrap();
    create(&fixture.store, with_key(4, 1000 + DAY)).unwrap();
    assert_eq!(found(1000 + DAY), Some((id(4), request.clone())));
}

#[test]
fn runs_are_listed_latest_first_a_page_at_a_time() {
    let fixture = fixture();
    for number in 1..=6 {
        let lease = create(&fixture.store, new_run(number)).unwrap();
        if number % 2 == 0 {
            append(&fixture.store, &lease, Vec::new(), to(RunState::Done, 2000)).unwrap();
        }
    }
    create(&fixture.store, pml_store::NewRun { principal: ann(), ..new_run(7) }).unwrap();
    let listed = |state, before: Option<u128>, limit| -> Vec<_> {
        let filter = RunQuery { state, before: before.map(id), limit };
        fixture.store.runs(&me(), &filter).unwrap().into_iter().map(|run| run.id).collect()
    };
    assert_eq!(listed(None, None, 2), [id(6), id(5)]);
    assert_eq!(listed(None, Some(5), 10), [id(4), id(3), id(2), id(1)]);
    assert_eq!(listed(Some(RunState::Done), None, 2), [id(6), id(4)]);
    assert_eq!(listed(Some(RunState::Done), Some(4), 2), [id(2)]);
    // A run that is not the principal's is before nothing.
    assert!(listed(None, Some(7), 10).is_empty());
}

#[test]
fn a_run_does_not_exist_for_another_principal() {
    let fixture = fixture();
    let lease = create(&fixture.store, new_run(1)).unwrap();
    append(&fixture.store, &lease, vec![entry("a")], park(Some(1), Some("q"))).unwrap();
    let (store, ann) = (&fixture.store, &ann());
    assert_eq!(store.run(ann, &id(1)).unwrap(), None);
    assert!(store.run_overview(ann, &id(1)).unwrap().is_none());
    assert!(matches!(store.load_run(ann, &id(1)), Err(Error::UnknownRun { .. })));
    assert!(store.runs(ann, &RunQuery { state: None, before: None, limit: 10 }).unwrap().is_empty());
    let claimed = store.claim_run(ann, &id(1), &this_process(), LATE, 1000).unwrap();
    assert!(matches!(claimed, Claim::Unknown));
    assert_eq!(
        store.store_answer(ann, &id(1), said("q", "1", 2000, Vec::new())).unwrap(),
        AnswerOutcome::Unknown
    );
    let run = store.run(&me(), &id(1)).unwrap().unwrap();
    assert_eq!((run.fence, run.state), (1, RunState::Waiting));
}

#[test]
fn other_processes_are_seen_to_change_something() {
    let fixture = fixture();
    let lease = create(&fixture.store, new_run(1)).unwrap();
    let watching = open_at(&fixture.path).unwrap();
    let before = watching.data_version().unwrap();
    assert_eq!(watching.data_version().unwrap(), before);
    append(&fixture.store, &lease, vec![entry("a")], None).unwrap();
    let after = watching.data_version().unwrap();
    assert_ne!(after, before);
    // What it wrote itself may have been done by another part of the same process.
    create(&watching, new_run(2)).unwrap();
    assert_ne!(watching.data_version().unwrap(), after);
}
