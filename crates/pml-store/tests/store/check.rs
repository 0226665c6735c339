//! Processes that did not end properly, and tries to sign in.

use pml_store::{BlockingStore, ProcessIdentity, SignInAttempt};

use super::suite::state::shown;
use super::{fixture, me, server};

#[test]
fn a_process_that_ended_without_a_word_is_told_until_that_was_looked_into() {
    let fixture = fixture();
    let me = ProcessIdentity::current().unwrap();
    assert_eq!(fixture.store.register_process(&me, 1).unwrap(), []);
    // The same number at another time is another process.
    let earlier = ProcessIdentity { pid: me.pid, started: "1".to_owned() };
    assert_eq!(fixture.store.register_process(&earlier, 2).unwrap(), []);
    let other = BlockingStore::open(&fixture.path).unwrap();
    for _ in 0..2 {
        assert_eq!(other.register_process(&me, 3).unwrap(), std::slice::from_ref(&earlier));
    }
    assert!(other.quick_check().is_ok());
    other.unregister_processes(vec![earlier]).unwrap();
    assert_eq!(other.register_process(&me, 4).unwrap(), []);
    other.unregister_processes(vec![me]).unwrap();
}

/// Two tries cost nothing.
fn delay(wrong: u32) -> i64 {
    if wrong < 2 { 0 } else { 1000 * i64::from(wrong) }
}

#[test]
fn wrong_tries_make_all_processes_wait_at_that_door() {
    let fixture = fixture();
    let other = BlockingStore::open(&fixture.path).unwrap();
    let attempt = |store: &BlockingStore, door, now| store.attempt_sign_in(door, now, delay).unwrap();
    assert_eq!(attempt(&fixture.store, "web", 100), SignInAttempt::Allowed);
    assert_eq!(attempt(&other, "web", 100), SignInAttempt::Allowed);
    for store in [&fixture.store, &other] {
        assert_eq!(attempt(store, "web", 101), SignInAttempt::Wait(1999));
        assert_eq!(attempt(store, "web", 2099), SignInAttempt::Wait(1));
    }
    assert_eq!(
        attempt(&other, "terminal", 101),
        SignInAttempt::Allowed,
        "another door has a count of its own"
    );
    // A clock that was set back does not make the wait longer than it would have been.
    assert_eq!(attempt(&other, "web", -1_000_000), SignInAttempt::Wait(2000));
    assert_eq!(attempt(&other, "web", 2100), SignInAttempt::Allowed);
    assert_eq!(attempt(&fixture.store, "web", 2101), SignInAttempt::Wait(2999));
    fixture.store.clear_failed_sign_ins("web").unwrap();
    assert_eq!(attempt(&other, "web", 2102), SignInAttempt::Allowed);
}

#[test]
#[cfg(target_os = "linux")]
fn what_a_process_said_goes_with_it() {
    let fixture = fixture();
    let mut child =
        std::process::Command::new("sleep").arg("1000").stdin(std::process::Stdio::null()).spawn().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let started = stat.split(' ').nth(21).unwrap().to_owned();
    let ended = ProcessIdentity { pid: child.id(), started };
    let reused = ProcessIdentity { pid: std::process::id(), started: "1".to_owned() };
    fixture.store.publish_server_state(&me(), &ended, &server("fs"), "ready", 1).unwrap();
    assert_eq!(shown(&fixture.store), ["fs ready 1"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(shown(&fixture.store).is_empty());
    // The next one to publish sweeps, also what an earlier process with its own number left.
    fixture.store.publish_server_state(&me(), &reused, &server("fs"), "ready", 2).unwrap();
    fixture
        .store
        .publish_server_state(&me(), &ProcessIdentity::current().unwrap(), &server("fs"), "ready", 3)
        .unwrap();
    assert_eq!(shown(&fixture.store), ["fs ready 3"]);
    let rows = super::suite::raw_database(&fixture.path).number("SELECT count(*) FROM server_state");
    assert_eq!(rows, 1);
}
