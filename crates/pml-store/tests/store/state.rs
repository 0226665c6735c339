//! What running processes say of their servers.

use std::process::{Command, Stdio};

use pml_model::Principal;
use pml_store::{BlockingStore, ProcessIdentity};

use super::{fixture, me, server};

fn shown(store: &BlockingStore) -> Vec<String> {
    let states = store.server_states(&me(), 1000).unwrap();
    states.iter().map(|state| format!("{} {} {}", state.server, state.state, state.at)).collect()
}

#[test]
fn another_handle_sees_the_latest_state_until_it_is_cleared() {
    let fixture = fixture();
    let other = BlockingStore::open(&fixture.path).unwrap();
    let process = ProcessIdentity::current().unwrap();
    fixture.store.publish_server_state(&me(), &process, &server("fs"), "starting", 999).unwrap();
    fixture.store.publish_server_state(&me(), &process, &server("fs"), r#"{"ready":true}"#, 1000).unwrap();
    fixture.store.publish_server_state(&me(), &process, &server("db"), "down", 1000).unwrap();
    assert_eq!(shown(&other), ["db down 1000", r#"fs {"ready":true} 1000"#]);
    assert!(other.server_states(&Principal("ann".to_owned()), 1000).unwrap().is_empty());
    other.clear_server_states(&process).unwrap();
    assert!(shown(&fixture.store).is_empty());
}

#[test]
#[cfg(target_os = "linux")]
fn what_a_process_said_goes_with_it() {
    let fixture = fixture();
    let mut child = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
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
    let connection = rusqlite::Connection::open(&fixture.path).unwrap();
    let rows: i64 = connection.query_row("SELECT count(*) FROM server_state", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 1);
}
