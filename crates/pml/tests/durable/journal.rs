//! How runs stand in the database of a home.
//!
//! Read from a copy of its files: looking leaves a database whose owner was killed to the next owner to put in order.

use std::path::Path;

use pml_model::{Principal, RunId};
use pml_store::{BlockingStore, JournalEntryKind, RunQuery, RunRecord, RunRow};

use crate::harness::Home;

/// The database as it was at one moment when nobody wrote to it.
pub struct Journal {
    store: Option<BlockingStore>,
    _dir: tempfile::TempDir,
}

impl Journal {
    /// Copies the database of `home`, in which no process may be at work.
    pub fn of(home: &Home) -> Journal {
        let dir = tempfile::tempdir().unwrap();
        for name in ["pml.db", "pml.db-wal", "seal.key"] {
            if home.path(name).exists() {
                std::fs::copy(home.path(name), dir.path().join(name)).unwrap();
            }
        }
        Journal { store: open(&dir.path().join("pml.db")), _dir: dir }
    }

    /// Every run.
    pub fn runs(&self) -> Vec<RunRow> {
        let Some(store) = &self.store else { return Vec::new() };
        store.runs(&Principal::local(), &RunQuery { state: None, before: None, limit: 1_000_000 }).unwrap()
    }

    /// All there is of a run.
    pub fn load(&self, id: &RunId) -> RunRecord {
        self.store.as_ref().unwrap().load_run(&Principal::local(), id).unwrap()
    }
}

/// A gateway that was killed before it made one leaves no database.
fn open(path: &Path) -> Option<BlockingStore> {
    path.exists().then(|| BlockingStore::open(path).unwrap_or_else(|error| panic!("{error}")))
}

/// A call as far as the journal knows.
#[derive(Debug)]
pub struct Call {
    pub number: u32,
    pub tool: String,
    pub arguments: String,
    /// It may be with the server.
    pub promised: bool,
    /// It may have been with the server at some time.
    pub ever_promised: bool,
    pub ended: bool,
}

/// The calls of a run.
pub fn calls(recorded: &RunRecord) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    for entry in &recorded.entries {
        let known = entry.call.and_then(|number| calls.get_mut(number as usize - 1));
        match (entry.kind, known) {
            (JournalEntryKind::Issued, _) => calls.push(Call {
                number: entry.call.unwrap(),
                tool: entry.tool.clone().unwrap(),
                arguments: String::from_utf8(entry.body.clone()).unwrap(),
                promised: false,
                ever_promised: false,
                ended: false,
            }),
            (JournalEntryKind::Sending, Some(call)) => (call.promised, call.ever_promised) = (true, true),
            (JournalEntryKind::Resending, Some(call)) => call.promised = false,
            (JournalEntryKind::Delivered, Some(call)) => call.ended = true,
            // What a person allowed is about calls, and changes nothing about how far they are.
            (JournalEntryKind::Delivered | JournalEntryKind::Granted, None)
            | (JournalEntryKind::Granted | JournalEntryKind::Allowed, Some(_)) => {}
            (kind, None) => panic!("{kind:?} of a call that nobody asked for"),
        }
    }
    calls
}
