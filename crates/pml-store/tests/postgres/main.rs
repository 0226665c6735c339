//! The store on PostgreSQL: everything that it does on a file, and what only a server can do to it.
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at what they do not expect")]

mod copies;
mod faults;
mod proxy;
mod server;
#[path = "../store/suite.rs"]
#[allow(dead_code, reason = "some helpers are for tests of files")]
mod suite;

use pml_store::ProcessIdentity;

/// The suite runs on a database of its own for each test.
fn new_database() -> Option<String> {
    // Tests may be asynchronous, and this waits.
    Some(std::thread::spawn(server::new_database).join().unwrap())
}

fn this_process() -> ProcessIdentity {
    let mut process = ProcessIdentity::current().unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let numbers = std::fs::read_link("/proc/self/ns/pid").unwrap();
    process.started = format!("{} {} {}", process.started, boot.trim(), numbers.display());
    process
}
