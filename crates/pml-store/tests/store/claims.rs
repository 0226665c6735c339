//! Who works on a run, when it can be worked on, and what is answered to it.

use std::process::{Command, Stdio};

use pml_model::RunState;
use pml_store::{Answered, Change, Claim, Found, NewRun, Process, Store};

use super::{
    LATE, ann, append, claim, create, entry, fixture, id, in_doubt, it_was_done, me, new_run, park, taken, to,
};

/// A process that has ended.
fn ended() -> Process {
    let mut child = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    Process { pid, started: "1".to_owned() }
}

fn ids(found: Vec<Found>) -> Vec<String> {
    found.into_iter().map(|found| format!("{} {}", &found.run.as_str()[35..], found.state)).collect()
}

#[test]
fn a_run_is_held_while_its_owner_runs_and_says_so() {
    let fixture = fixture();
    let lease = create(&fixture.store, NewRun { lease_until: 5000, ..new_run(1) }).unwrap();
    let this = Process::current().unwrap();
    let at = |now| fixture.store.claim(&me(), &id(1), &this, now + 100, now).unwrap();
    assert!(matches!(at(4999), Claim::Held { by, until: 5000 } if by == this));
    assert!(fixture.store.renew(std::slice::from_ref(&lease), 6000).unwrap().is_empty());
    assert!(matches!(at(5999), Claim::Held { until: 6000, .. }));
    let second = taken(at(6000));
    assert_eq!((lease.fence(), second.fence()), (1, 2));
    // Now it is the second one's.
    assert_eq!(fixture.store.renew(&[lease, second], 7000).unwrap(), [id(1)]);
    assert!(matches!(at(6999), Claim::Held { until: 7000, .. }));
}

#[test]
fn what_is_released_ended_or_unknown_is_not_kept() {
    let fixture = fixture();
    let lease = create(&fixture.store, new_run(1)).unwrap();
    append(&fixture.store, &lease, Vec::new(), park(None, None)).unwrap();
    assert_eq!(fixture.store.renew(&[lease], LATE).unwrap(), [id(1)]);
    let lease = taken(claim(&fixture.store, &id(1)));
    let run = fixture.store.run(&me(), &id(1)).unwrap().unwrap();
    assert_eq!((run.state, run.wake_at), (RunState::Running, None));
    assert_eq!(run.owner, Some((Process::current().unwrap(), LATE)));
    append(&fixture.store, &lease, Vec::new(), to(RunState::Done, 2000)).unwrap();
    assert_eq!(fixture.store.renew(&[lease], LATE).unwrap(), [id(1)]);
    assert!(matches!(claim(&fixture.store, &id(1)), Claim::Over(RunState::Done)));
    assert!(matches!(claim(&fixture.store, &id(2)), Claim::Unknown));
}

#[test]
#[cfg(target_os = "linux")]
fn runs_of_ended_processes_are_interrupted_once_and_can_be_claimed_before() {
    let fixture = fixture();
    let other = Store::open(&fixture.path).unwrap();
    let orphan = |number| create(&fixture.store, NewRun { owner: ended(), ..new_run(number) }).unwrap();
    let stale = orphan(1);
    let waits = orphan(2);
    append(
        &fixture.store,
        &waits,
        Vec::new(),
        Some(Change { release: false, ..park(Some(9000), None).unwrap() }),
    )
    .unwrap();
    orphan(3);
    taken(claim(&other, &id(3)));
    create(&fixture.store, new_run(4)).unwrap();
    create(&fixture.store, NewRun { lease_until: 1000, principal: ann(), ..new_run(5) }).unwrap();

    assert_eq!(ids(other.interrupt_orphans(1000).unwrap()).len(), 3);
    assert!(fixture.store.interrupt_orphans(1000).unwrap().is_empty());
    assert_eq!(ids(fixture.store.due(1000).unwrap()), ["1 interrupted", "5 interrupted"]);
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
    assert_eq!(store.next_wake().unwrap(), None);
    parked(1, park(Some(3000), None));
    parked(2, park(Some(2000), Some("q")));
    parked(3, park(None, Some("q")));
    parked(4, to(RunState::Interrupted, 1000));
    parked(5, to(RunState::Failed, 1000));
    create(store, new_run(6)).unwrap();
    assert_eq!(store.next_wake().unwrap(), Some(2000));
    assert_eq!(ids(store.due(1999).unwrap()), ["4 interrupted"]);
    assert_eq!(ids(store.due(2000).unwrap()), ["2 waiting", "4 interrupted"]);
    store.answer(&me(), &id(3), "q", &it_was_done("1"), 1500).unwrap();
    assert_eq!(ids(store.due(3000).unwrap()), ["1 waiting", "2 waiting", "3 waiting", "4 interrupted"]);
    let lease = taken(claim(store, &id(3)));
    // The answer is read; the next question has none.
    append(store, &lease, Vec::new(), park(None, Some("q2"))).unwrap();
    assert_eq!(ids(store.due(1999).unwrap()), ["4 interrupted"]);
}

#[test]
fn a_question_is_answered_once() {
    let fixture = fixture();
    let (store, other) = (&fixture.store, Store::open(&fixture.path).unwrap());
    let lease = create(store, new_run(1)).unwrap();
    let answer = |question: &str, result: &str| {
        other.answer(&me(), &id(1), question, &it_was_done(result), 2000).unwrap()
    };
    assert_eq!(answer("q", "0"), Answered::Gone);
    let asks =
        Change { question: Some(Some(("q".to_owned(), in_doubt("x")))), at: 1000, ..Change::default() };
    append(store, &lease, Vec::new(), Some(asks)).unwrap();
    assert_eq!(store.answer_for(&lease).unwrap(), None);
    assert_eq!(answer("another", "0"), Answered::Gone);
    assert_eq!(answer("q", "1"), Answered::Stored);
    assert_eq!(answer("q", "2"), Answered::AlreadyAnswered);
    let given = store.answer_for(&lease).unwrap().unwrap();
    assert_eq!((given.question_id.as_str(), given.answer), ("q", it_was_done("1")));
    append(store, &lease, Vec::new(), Some(Change { question: Some(None), at: 1, ..Change::default() }))
        .unwrap();
    assert_eq!(store.answer_for(&lease).unwrap(), None);
    assert_eq!(answer("q", "3"), Answered::Gone);
    assert_eq!(store.load(&me(), &id(1)).unwrap().answers.len(), 1);
}

#[test]
fn runs_that_waited_too_long_expire() {
    let fixture = fixture();
    let store = &fixture.store;
    for (number, change) in [(1, park(None, Some("q"))), (2, to(RunState::Interrupted, 1000)), (3, None)] {
        let lease = create(store, NewRun { expires_at: Some(5000), ..new_run(number) }).unwrap();
        append(store, &lease, Vec::new(), change).unwrap();
    }
    assert_eq!(store.next_wake().unwrap(), Some(5000));
    assert!(store.expire(4999).unwrap().is_empty());
    // The third is being worked on.
    assert_eq!(ids(store.expire(5000).unwrap()), ["1 expired", "2 expired"]);
    assert!(store.expire(5000).unwrap().is_empty());
    assert_eq!(store.next_wake().unwrap(), None);
    let standing = store.standing(&me(), &id(1)).unwrap().unwrap();
    assert_eq!((standing.run.ended_at, standing.question), (Some(5000), None));
    assert!(matches!(claim(store, &id(1)), Claim::Over(RunState::Expired)));
    assert_eq!(store.answer(&me(), &id(1), "q", &it_was_done("1"), 5001).unwrap(), Answered::Gone);
}
