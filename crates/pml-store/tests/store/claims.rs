//! Who works on a run, when it can be worked on, and what is answered to it.

use super::{open_at, raw_database, this_process};
use std::process::{Command, Stdio};

use pml_model::RunState;
use pml_store::{
    AnswerOutcome, BlockingStore, Claim, Lease, NewRun, ProcessIdentity, QuestionOutcome, RunChange,
    StoredAnswer, UnattendedRun,
};

use super::{
    LATE, ann, append, claim, create, entry, fixture, id, in_doubt, it_was_done, me, new_run, park, said,
    taken, to, told, words,
};

/// A process that has ended.
fn ended() -> ProcessIdentity {
    let mut child = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    ProcessIdentity { pid, started: "1".to_owned() }
}

fn ids(found: Vec<UnattendedRun>) -> Vec<String> {
    found.into_iter().map(|found| format!("{} {}", &found.run.as_str()[35..], found.state)).collect()
}

/// The answer to what the run asks.
fn heard(store: &BlockingStore, lease: &Lease) -> Option<StoredAnswer> {
    match store.question_outcome(lease).unwrap()? {
        QuestionOutcome::Answered(answer) => Some(answer),
        QuestionOutcome::DefinitionChanged { tool } => panic!("`{tool}` did not change"),
    }
}

#[test]
fn a_run_is_held_while_its_owner_runs_and_says_so() {
    let fixture = fixture();
    let lease = create(&fixture.store, NewRun { lease_until: 5000, ..new_run(1) }).unwrap();
    let this = this_process();
    let at = |now| fixture.store.claim_run(&me(), &id(1), &this, now + 100, now).unwrap();
    assert!(matches!(at(4999), Claim::Held { by, until: 5000 } if by == this));
    assert!(fixture.store.renew_leases(std::slice::from_ref(&lease), 6000).unwrap().is_empty());
    assert!(matches!(at(5999), Claim::Held { until: 6000, .. }));
    let second = taken(at(6000));
    assert_eq!((lease.fence(), second.fence()), (1, 2));
    // Now it is the second one's.
    assert_eq!(fixture.store.renew_leases(&[lease, second], 7000).unwrap(), [id(1)]);
    assert!(matches!(at(6999), Claim::Held { until: 7000, .. }));
}

#[test]
fn what_is_released_ended_or_unknown_is_not_kept() {
    let fixture = fixture();
    let lease = create(&fixture.store, new_run(1)).unwrap();
    append(&fixture.store, &lease, Vec::new(), park(None, None)).unwrap();
    assert_eq!(fixture.store.renew_leases(&[lease], LATE).unwrap(), [id(1)]);
    let lease = taken(claim(&fixture.store, &id(1)));
    let run = fixture.store.run(&me(), &id(1)).unwrap().unwrap();
    assert_eq!((run.state, run.wake_at), (RunState::Running, None));
    assert_eq!(run.owner, Some((this_process(), LATE)));
    append(&fixture.store, &lease, Vec::new(), to(RunState::Done, 2000)).unwrap();
    assert_eq!(fixture.store.renew_leases(&[lease], LATE).unwrap(), [id(1)]);
    assert!(matches!(claim(&fixture.store, &id(1)), Claim::Ended(RunState::Done)));
    assert!(matches!(claim(&fixture.store, &id(2)), Claim::Unknown));
}

#[test]
#[cfg(target_os = "linux")]
fn runs_of_ended_processes_are_interrupted_once_and_can_be_claimed_before() {
    let fixture = fixture();
    let other = open_at(&fixture.path).unwrap();
    let orphan = |number| create(&fixture.store, NewRun { owner: ended(), ..new_run(number) }).unwrap();
    let stale = orphan(1);
    let waits = orphan(2);
    append(
        &fixture.store,
        &waits,
        Vec::new(),
        Some(RunChange { release: false, ..park(Some(9000), None).unwrap() }),
    )
    .unwrap();
    orphan(3);
    taken(claim(&other, &id(3)));
    create(&fixture.store, new_run(4)).unwrap();
    create(&fixture.store, NewRun { lease_until: 1000, principal: ann(), ..new_run(5) }).unwrap();

    assert_eq!(ids(other.release_orphaned_runs(1000).unwrap()).len(), 3);
    assert!(fixture.store.release_orphaned_runs(1000).unwrap().is_empty());
    assert_eq!(ids(fixture.store.due_runs(1000).unwrap()), ["1 interrupted", "5 interrupted"]);
    let waiting = other.run(&me(), &id(2)).unwrap().unwrap();
    assert_eq!((waiting.state, waiting.owner, waiting.wake_at), (RunState::Waiting, None, Some(9000)));
    // Whoever it was that was too slow to keep it writes no more.
    assert!(append(&fixture.store, &stale, vec![entry("late")], None).is_err());
    let lease = taken(claim(&fixture.store, &id(1)));
    append(&fixture.store, &lease, vec![entry("on")], None).unwrap();
}

#[test]
fn runs_are_due_when_their_time_comes_or_their_question_is_answered() {
    let fixture = fixture();
    let store = &fixture.store;
    let parked =
        |number, change| append(store, &create(store, new_run(number)).unwrap(), Vec::new(), change).unwrap();
    assert_eq!(store.next_wake_at().unwrap(), None);
    parked(1, park(Some(3000), None));
    parked(2, park(Some(2000), Some("q")));
    parked(3, park(None, Some("q")));
    parked(4, to(RunState::Interrupted, 1000));
    parked(5, to(RunState::Failed, 1000));
    create(store, new_run(6)).unwrap();
    assert_eq!(store.next_wake_at().unwrap(), Some(2000));
    assert_eq!(ids(store.due_runs(1999).unwrap()), ["4 interrupted"]);
    assert_eq!(ids(store.due_runs(2000).unwrap()), ["2 waiting", "4 interrupted"]);
    store.store_answer(&me(), &id(3), said("q", "1", 1500, Vec::new())).unwrap();
    assert_eq!(ids(store.due_runs(3000).unwrap()), ["1 waiting", "2 waiting", "3 waiting", "4 interrupted"]);
    let lease = taken(claim(store, &id(3)));
    // The answer is read; the next question has none.
    append(store, &lease, Vec::new(), park(None, Some("q2"))).unwrap();
    assert_eq!(ids(store.due_runs(1999).unwrap()), ["4 interrupted"]);
}

#[test]
fn a_question_is_answered_once() {
    let fixture = fixture();
    let (store, other) = (&fixture.store, open_at(&fixture.path).unwrap());
    let lease = create(store, new_run(1)).unwrap();
    let answer = |question: &str, result: &str| {
        other.store_answer(&me(), &id(1), said(question, result, 2000, Vec::new())).unwrap()
    };
    assert_eq!(answer("q", "0"), AnswerOutcome::NotAsked);
    let asks =
        RunChange { question: Some(Some(("q".to_owned(), in_doubt("x")))), at: 1000, ..RunChange::default() };
    append(store, &lease, Vec::new(), Some(asks)).unwrap();
    assert_eq!(heard(store, &lease), None);
    assert_eq!(answer("another", "0"), AnswerOutcome::NotAsked);
    assert_eq!(answer("q", "1"), AnswerOutcome::Stored);
    assert_eq!(answer("q", "2"), AnswerOutcome::AlreadyAnswered);
    let given = heard(store, &lease).unwrap();
    assert_eq!((given.question_id.as_str(), given.answer), ("q", it_was_done("1")));
    append(
        store,
        &lease,
        Vec::new(),
        Some(RunChange { question: Some(None), at: 1, ..RunChange::default() }),
    )
    .unwrap();
    assert_eq!(heard(store, &lease), None);
    assert_eq!(answer("q", "3"), AnswerOutcome::NotAsked);
    assert_eq!(store.load_run(&me(), &id(1)).unwrap().answers.len(), 1);
}

#[test]
fn runs_that_waited_too_long_expire() {
    let fixture = fixture();
    let store = &fixture.store;
    for (number, change) in [(1, park(None, Some("q"))), (2, to(RunState::Interrupted, 1000)), (3, None)] {
        let lease = create(store, NewRun { expires_at: Some(5000), ..new_run(number) }).unwrap();
        append(store, &lease, Vec::new(), change).unwrap();
    }
    assert_eq!(store.next_wake_at().unwrap(), Some(5000));
    assert!(store.expire_runs(4999).unwrap().is_empty());
    // The third is being worked on.
    assert_eq!(ids(store.expire_runs(5000).unwrap()), ["1 expired", "2 expired"]);
    assert!(store.expire_runs(5000).unwrap().is_empty());
    let told = store.audit_entries(0, 9).unwrap();
    let told: Vec<_> = told.iter().map(|entry| (entry.kind.as_str(), entry.run.clone())).collect();
    assert_eq!(told, [("expired", Some(id(1))), ("expired", Some(id(2)))]);
    assert_eq!(store.next_wake_at().unwrap(), None);
    let standing = store.run_overview(&me(), &id(1)).unwrap().unwrap();
    assert_eq!((standing.run.ended_at, standing.question), (Some(5000), None));
    assert!(matches!(claim(store, &id(1)), Claim::Ended(RunState::Expired)));
    assert_eq!(
        store.store_answer(&me(), &id(1), said("q", "1", 5001, Vec::new())).unwrap(),
        AnswerOutcome::NotAsked
    );
}

#[test]
fn open_questions_of_one_principal_are_found_oldest_first() {
    let fixture = fixture();
    let store = &fixture.store;
    let asks = |number, principal, question| {
        let lease = create(store, NewRun { principal, ..new_run(number) }).unwrap();
        append(store, &lease, Vec::new(), park(None, question)).unwrap();
    };
    asks(4, ann(), Some("a"));
    asks(3, me(), Some("b"));
    asks(2, me(), None);
    asks(1, me(), Some("c"));
    // While a process works on it, too.
    let lease = taken(claim(store, &id(1)));
    let asking = |whose: &pml_model::Principal| -> Vec<_> {
        let all = store.asking_runs(whose).unwrap();
        all.into_iter().map(|asking| (asking.run.id, asking.run.principal, asking.id)).collect()
    };
    let (b, c) = ((id(3), me(), "b"), (id(1), me(), "c"));
    let expect = |expected: &[&(pml_model::RunId, pml_model::Principal, &str)]| {
        let expected: Vec<_> = expected
            .iter()
            .map(|(run, whose, name)| (run.clone(), whose.clone(), (*name).to_owned()))
            .collect();
        assert_eq!(asking(&me()), expected);
    };
    expect(&[&b, &c]);
    assert_eq!(asking(&ann()), [(id(4), ann(), "a".to_owned())]);
    assert_eq!(store.asking_runs(&ann()).unwrap()[0].question, in_doubt("arguments"));

    let (mine, anns) = (store.asking_mark(&me()).unwrap(), store.asking_mark(&ann()).unwrap());
    assert_eq!((mine.runs, anns.runs), (2, 1));
    assert_eq!(store.asking_mark(&me()).unwrap(), mine, "nothing changed");
    store.store_answer(&me(), &id(3), said("b", "1", 2000, Vec::new())).unwrap();
    expect(&[&c]);
    assert_ne!(store.asking_mark(&me()).unwrap(), mine);
    assert_eq!(store.asking_mark(&ann()).unwrap(), anns, "it is not hers");
    // Another question is open again, and so is one that was answered under another name.
    let lease_of_b = taken(claim(store, &id(3)));
    append(store, &lease_of_b, Vec::new(), park(None, Some("b2"))).unwrap();
    expect(&[&(id(3), me(), "b2"), &c]);
    append(store, &lease, Vec::new(), to(RunState::Cancelled, 3000)).unwrap();
    expect(&[&(id(3), me(), "b2")]);
    // One that cannot be opened is left out.
    raw_database(&fixture.path).execute(
        "UPDATE run_key SET wrapped = x'00' WHERE run = (SELECT number FROM run WHERE principal = 'ann')",
    );
    assert_eq!(asking(&ann()), []);
    expect(&[&(id(3), me(), "b2")]);

    assert_eq!(store.run_principal(&id(4)).unwrap(), Some(ann()));
    assert_eq!(store.run_principal(&id(9)).unwrap(), None);
}

#[test]
fn an_answer_given_before_the_run_was_left_makes_it_due() {
    let fixture = fixture();
    let store = &fixture.store;
    let lease = create(store, new_run(1)).unwrap();
    let asks = RunChange { release: false, ..park(None, Some("q")).unwrap() };
    append(store, &lease, Vec::new(), Some(asks)).unwrap();
    let answered = store.store_answer(&me(), &id(1), said("q", "1", 2000, Vec::new())).unwrap();
    assert_eq!(answered, AnswerOutcome::Stored);
    assert!(store.due_runs(LATE).unwrap().is_empty(), "its owner has it");
    assert_eq!(heard(store, &lease).unwrap().answer, it_was_done("1"));
    // Asked once more under the same name, it is answered already.
    append(store, &lease, Vec::new(), park(None, Some("q"))).unwrap();
    assert_eq!(ids(store.due_runs(1000).unwrap()), ["1 waiting"]);
    assert!(store.asking_runs(&me()).unwrap().is_empty());
}

#[test]
fn only_the_answer_is_told_to_the_audit_log() {
    let fixture = fixture();
    let store = &fixture.store;
    let lease = create(store, NewRun { audit: told("made"), ..new_run(1) }).unwrap();
    let asks = RunChange { audit: told("asked"), ..park(None, Some("q")).unwrap() };
    append(store, &lease, Vec::new(), Some(asks)).unwrap();
    let answer = |principal, question: &str, word: &str| {
        store.store_answer(&principal, &id(1), said(question, "1", 2000, told(word))).unwrap()
    };
    assert_eq!(answer(ann(), "q", "not hers"), AnswerOutcome::Unknown);
    assert_eq!(answer(me(), "other", "not asked"), AnswerOutcome::NotAsked);
    assert_eq!(answer(me(), "q", "answered"), AnswerOutcome::Stored);
    assert_eq!(answer(me(), "q", "too late"), AnswerOutcome::AlreadyAnswered);
    // What is refused is not told either.
    taken(claim(store, &id(1)));
    let late = RunChange { audit: told("fenced"), at: 3000, ..RunChange::default() };
    assert!(append(store, &lease, Vec::new(), Some(late)).is_err());
    let twice = create(store, NewRun { audit: told("made twice"), ..new_run(1) });
    assert!(twice.is_err());
    assert_eq!(words(store), ["made", "asked", "answered"]);
}

#[test]
fn an_answer_that_comes_too_late_is_none() {
    let fixture = fixture();
    let store = &fixture.store;
    let lease = create(store, new_run(1)).unwrap();
    let asks = RunChange { expires_at: Some(Some(5000)), ..park(None, Some("q")).unwrap() };
    append(store, &lease, Vec::new(), Some(asks)).unwrap();
    let answer = |now| store.store_answer(&me(), &id(1), said("q", "1", now, told("answered"))).unwrap();
    assert_eq!(
        answer(5000),
        AnswerOutcome::NotAsked,
        "though nobody has looked for runs that waited too long"
    );
    assert!(words(store).is_empty());
    assert_eq!(answer(4999), AnswerOutcome::Stored);
}
