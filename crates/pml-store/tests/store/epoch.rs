//! How often processes wrote.

use super::{raw_database, this_process};
use std::collections::BTreeMap;
use std::sync::mpsc::sync_channel;

use pml_store::{BlockingStore, ProcessIdentity};

use super::fixture;

fn process(pid: u32) -> ProcessIdentity {
    ProcessIdentity { pid, started: "never".to_owned() }
}

/// Counts a write and waits until it is stored.
fn write(store: &BlockingStore, process: &ProcessIdentity, server: Option<&str>) {
    let (reply, answer) = sync_channel(1);
    store.count_write(process, server, || (), move |stored| reply.send(stored).unwrap());
    answer.recv().unwrap().unwrap();
}

fn seen(store: &BlockingStore, process: &ProcessIdentity) -> BTreeMap<String, i64> {
    store.writes_of_others(process).unwrap()
}

#[test]
fn a_process_sees_what_others_wrote_and_not_its_own() {
    let fixture = fixture();
    let (me, other) = (this_process(), process(1));
    write(&fixture.store, &me, None);
    assert_eq!(seen(&fixture.store, &me), BTreeMap::new());
    write(&fixture.store, &other, None);
    write(&fixture.store, &other, None);
    write(&fixture.store, &other, Some("memory"));
    assert_eq!(seen(&fixture.store, &me), BTreeMap::from([(String::new(), 2), ("memory".to_owned(), 1)]));
    assert_eq!(seen(&fixture.store, &other), BTreeMap::from([(String::new(), 1)]));
}

#[test]
fn what_ended_processes_wrote_still_counts() {
    let fixture = fixture();
    let me = this_process();
    for pid in 1..=20 {
        write(&fixture.store, &process(pid), None);
        write(&fixture.store, &process(pid), Some("memory"));
    }
    let before = seen(&fixture.store, &me);
    write(&fixture.store, &me, None);
    assert_eq!(seen(&fixture.store, &me), before);
    assert_eq!(before[""], 20);
    let rows = raw_database(&fixture.path).number("SELECT count(*) FROM write_epoch");
    assert_eq!(rows, 3, "two sums of the ended ones, and its own");
}
