//! What a store does whatever its database is, from one handle, from several, and from several processes.

mod accepted;
mod allowed;
mod asynchronous;
mod catalogue;
mod claims;
mod client_runs;
mod epoch;
mod keys;
pub(crate) mod memory;
mod mocks;
mod open;
mod packages;
mod processes;
#[path = "raw_database.rs"]
pub(crate) mod raw_database;
mod rules;
mod runs;
mod server_sign_ins;
pub(crate) mod state;
mod tenants;
mod vectors;

use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use pml_model::question::{Answer, CallInDoubt, DoubtVerdict, Question, ResolvedDoubt};
use pml_model::{Definition, Digest, Principal, RunId, RunState, ServerName};
use pml_store::{
    AcceptancePolicy, BlockingStore, Claim, Error, JournalEntry, JournalEntryKind, Lease, NewAnswer,
    NewAuditEntry, NewRun, ProcessIdentity, RunChange, RunKind, ServerListing, StoredServerProfile, Urgency,
};
use raw_database::Raw;
use serde_json::value::RawValue;

/// A store in a directory of its own, which goes with it.
pub(crate) struct Fixture {
    pub(crate) store: BlockingStore,
    /// The database file, or a path beside the key of a database on a server.
    pub(crate) path: PathBuf,
    _directory: tempfile::TempDir,
}

/// A directory with a path for a database in it that does not exist yet or is empty.
pub(crate) fn new_place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pml.db");
    if let Some(url) = crate::new_database() {
        std::fs::write(path.with_extension("url"), url).unwrap();
    }
    (directory, path)
}

/// The address of the database that a path stands for, if it is on a server.
pub(crate) fn url_at(path: &Path) -> Option<String> {
    std::fs::read_to_string(path.with_extension("url")).ok()
}

/// Opens the database that a path stands for.
pub(crate) fn open_at(path: &Path) -> Result<BlockingStore, Error> {
    match url_at(path) {
        Some(url) => BlockingStore::open_postgres(&url, path),
        None => BlockingStore::open(path),
    }
}

/// Identity of this process, as the database names it.
pub(crate) fn this_process() -> ProcessIdentity {
    crate::this_process()
}

/// The database that a path stands for, without a store in between.
pub(crate) fn raw_database(path: &Path) -> Raw {
    match url_at(path) {
        Some(url) => Raw::connect(&url),
        None => Raw::open(path),
    }
}

pub(crate) fn fixture() -> Fixture {
    let (directory, path) = new_place();
    Fixture { store: open_at(&path).unwrap(), path, _directory: directory }
}

pub(crate) fn me() -> Principal {
    Principal::local()
}

pub(crate) fn ann() -> Principal {
    Principal("ann".to_owned())
}

pub(crate) fn server(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

pub(crate) fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

pub(crate) fn definition(text: &str) -> Definition {
    Definition::parse(raw(text)).unwrap()
}

/// A tool with a name and a description.
pub(crate) fn tool(name: &str, description: &str) -> Definition {
    definition(&serde_json::json!({ "name": name, "description": description }).to_string())
}

pub(crate) fn listing(name: &str, tools: Vec<Definition>) -> ServerListing {
    ServerListing {
        server: server(name),
        launch: Digest::of(b"launch"),
        profile: StoredServerProfile::default(),
        tools,
        acceptance: AcceptancePolicy::FirstManifest,
    }
}

/// The number of a run that is to be made, as its id.
pub(crate) fn id(number: u128) -> RunId {
    RunId::new(number)
}

/// A time that comes after all others.
pub(crate) const LATE: i64 = 1 << 50;

/// A run of this process, made at 1000.
pub(crate) fn new_run(number: u128) -> NewRun {
    NewRun {
        id: id(number),
        principal: me(),
        session: "session".to_owned(),
        kind: RunKind::Code,
        intent: "count the files".to_owned(),
        code_hash: "c0de".to_owned(),
        capability: None,
        client_key: None,
        key_runs_at_once: None,
        plan: format!("plan of {number}").into_bytes(),
        expires_at: None,
        idempotency: None,
        request_mark: None,
        audit: Vec::new(),
        owner: this_process(),
        lease_until: LATE,
        now: 1000,
    }
}

/// Makes a run and waits until it is stored.
pub(crate) fn create(store: &BlockingStore, run: NewRun) -> Result<Lease, Error> {
    let (reply, answer) = sync_channel(1);
    let lease = store.create_run(run, Urgency::Soon, move |stored| reply.send(stored).unwrap())?;
    answer.recv().unwrap().map(|()| lease)
}

/// Writes to a run and waits until that is stored.
pub(crate) fn append(
    store: &BlockingStore,
    lease: &Lease,
    entries: Vec<JournalEntry>,
    change: Option<RunChange>,
) -> Result<(), Error> {
    append_with(store, lease, entries, change, Urgency::Soon)
}

pub(crate) fn append_with(
    store: &BlockingStore,
    lease: &Lease,
    entries: Vec<JournalEntry>,
    change: Option<RunChange>,
    urgency: Urgency,
) -> Result<(), Error> {
    let (reply, answer) = sync_channel(1);
    store.append_journal(lease, entries, change, urgency, move |stored| reply.send(stored).unwrap());
    answer.recv().unwrap()
}

/// An entry with little in it but a body.
pub(crate) fn entry(body: &str) -> JournalEntry {
    JournalEntry {
        kind: JournalEntryKind::Delivered,
        call: Some(1),
        frame: 0,
        node: None,
        tool: None,
        digest: None,
        at: 1000,
        body: body.as_bytes().to_vec(),
    }
}

pub(crate) fn to(state: RunState, at: i64) -> Option<RunChange> {
    Some(RunChange { state: Some(state), at, ..RunChange::default() })
}

/// What takes a run to waiting and leaves it to whoever comes.
pub(crate) fn park(wake_at: Option<i64>, question: Option<&str>) -> Option<RunChange> {
    Some(RunChange {
        state: Some(RunState::Waiting),
        wake_at: Some(wake_at),
        question: Some(question.map(|name| (name.to_owned(), in_doubt("arguments")))),
        release: true,
        at: 1000,
        ..RunChange::default()
    })
}

pub(crate) fn in_doubt(arguments: &str) -> Question {
    let doubt = CallInDoubt {
        call: 1,
        node: None,
        tool: "mail:send".to_owned(),
        arguments: arguments.to_owned(),
        sent_at: 1,
    };
    Question::InDoubt { calls: vec![doubt], by: pml_model::question::Answerer::Client }
}

pub(crate) fn it_was_done(result: &str) -> Answer {
    let verdict = DoubtVerdict::Done { result: result.to_owned() };
    Answer::Doubts { calls: vec![ResolvedDoubt { call: 1, verdict }] }
}

/// An answer that a call in doubt was done.
pub(crate) fn said(question: &str, result: &str, at: i64, audit: Vec<NewAuditEntry>) -> NewAnswer {
    let (question_id, answer) = (question.to_owned(), it_was_done(result));
    NewAnswer {
        question_id,
        answer,
        at,
        shown_definitions: Vec::new(),
        allowed: Vec::new(),
        rules: Vec::new(),
        audit,
    }
}

/// Entries for the audit log that tell no more than a word.
pub(crate) fn told(word: &str) -> Vec<NewAuditEntry> {
    let body = serde_json::json!({ "word": word });
    vec![NewAuditEntry { at: 1000, principal: me(), run: Some(id(1)), kind: "told", body }]
}

/// The words of the audit log.
pub(crate) fn words(store: &BlockingStore) -> Vec<String> {
    let word = |body: &str| serde_json::from_str::<serde_json::Value>(body).unwrap()["word"].clone();
    let rows = store.audit_entries(0, u32::MAX).unwrap();
    rows.into_iter().map(|row| word(row.body.get()).as_str().unwrap().to_owned()).collect()
}

/// Claims a run for this process, at a time when only ended owners have lost theirs.
pub(crate) fn claim(store: &BlockingStore, id: &RunId) -> Claim {
    store.claim_run(&me(), id, &this_process(), LATE, 1000).unwrap()
}

#[track_caller]
pub(crate) fn taken(claim: Claim) -> Lease {
    match claim {
        Claim::Taken(lease) => lease,
        other => panic!("{other:?}"),
    }
}

/// The bodies of a run's journal.
pub(crate) fn bodies(store: &BlockingStore, id: &RunId) -> Vec<String> {
    let entries = store.load_run(&me(), id).unwrap().entries;
    entries.into_iter().map(|entry| String::from_utf8(entry.body).unwrap()).collect()
}
