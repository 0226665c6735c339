//! The store on real files.
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at what they do not expect")]

mod audit;
mod backup;
mod check;
mod corruption;
mod opening;
mod sealing;
#[path = "suite.rs"]
mod suite;

use pml_store::ProcessIdentity;
use suite::{
    Fixture, ann, append, claim, create, entry, fixture, id, in_doubt, listing, me, memory, new_run, park,
    raw, said, server, taken, to, told, tool, words,
};

/// The suite runs on files here.
fn new_database() -> Option<String> {
    None
}

fn this_process() -> ProcessIdentity {
    ProcessIdentity::current().unwrap()
}
