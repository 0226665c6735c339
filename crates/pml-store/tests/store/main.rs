//! The store on real files, from one handle, from several, and from several processes.
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at what they do not expect")]

mod accepted;
mod allowed;
mod asynchronous;
mod audit;
mod backup;
mod catalogue;
mod check;
mod claims;
mod corruption;
mod epoch;
mod keys;
mod memory;
mod mocks;
mod open;
mod opening;
mod processes;
mod rules;
mod runs;
mod sealing;
mod state;
mod tenants;
mod vectors;

use std::path::PathBuf;
use std::sync::mpsc::sync_channel;

use pml_model::question::{Answer, CallInDoubt, DoubtVerdict, Question, ResolvedDoubt};
use pml_model::{Definition, Digest, Principal, RunId, RunState, ServerName};
use pml_store::{
    AcceptancePolicy, BlockingStore, Claim, Error, JournalEntry, JournalEntryKind, Lease, NewAnswer,
    NewAuditEntry, NewRun, ProcessIdentity, RunChange, RunKind, ServerListing, StoredServerProfile, Urgency,
};
use serde_json::value::RawValue;

/// A store in a directory of its own, which goes with it.
struct Fixture {
    store: BlockingStore,
    path: PathBuf,
    _directory: tempfile::TempDir,
}

fn fixture() -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pml.db");
    Fixture { store: BlockingStore::open(&path).unwrap(), path, _directory: directory }
}

fn me() -> Principal {
    Principal::local()
}

fn ann() -> Principal {
    Principal("ann".to_owned())
}

fn server(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn definition(text: &str) -> Definition {
    Definition::parse(raw(text)).unwrap()
}

/// A tool with a name and a description.
fn tool(name: &str, description: &str) -> Definition {
    definition(&serde_json::json!({ "name": name, "description": description }).to_string())
}

fn listing(name: &str, tools: Vec<Definition>) -> ServerListing {
    ServerListing {
        server: server(name),
        launch: Digest::of(b"launch"),
        profile: StoredServerProfile::default(),
        tools,
        acceptance: AcceptancePolicy::FirstManifest,
    }
}

/// The number of a run that is to be made, as its id.
fn id(number: u128) -> RunId {
    RunId::new(number)
}

/// A time that comes after all others.
const LATE: i64 = 1 << 50;

/// A run of this process, made at 1000.
fn new_run(number: u128) -> NewRun {
    NewRun {
        id: id(number),
        principal: me(),
        session: "session".to_owned(),
        kind: RunKind::Code,
        intent: "count the files".to_owned(),
        code_hash: "c0de".to_owned(),
        capability: None,
        client_key: None,
        plan: format!("plan of {number}").into_bytes(),
        expires_at: None,
        idempotency: None,
        request_mark: None,
        audit: Vec::new(),
        owner: ProcessIdentity::current().unwrap(),
        lease_until: LATE,
        now: 1000,
    }
}

/// Makes a run and waits until it is stored.
fn create(store: &BlockingStore, run: NewRun) -> Result<Lease, Error> {
    let (reply, answer) = sync_channel(1);
    let lease = store.create_run(run, Urgency::Soon, move |stored| reply.send(stored).unwrap())?;
    answer.recv().unwrap().map(|()| lease)
}

/// Writes to a run and waits until that is stored.
fn append(
    store: &BlockingStore,
    lease: &Lease,
    entries: Vec<JournalEntry>,
    change: Option<RunChange>,
) -> Result<(), Error> {
    append_with(store, lease, entries, change, Urgency::Soon)
}

fn append_with(
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
fn entry(body: &str) -> JournalEntry {
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

fn to(state: RunState, at: i64) -> Option<RunChange> {
    Some(RunChange { state: Some(state), at, ..RunChange::default() })
}

/// What takes a run to waiting and leaves it to whoever comes.
fn park(wake_at: Option<i64>, question: Option<&str>) -> Option<RunChange> {
    Some(RunChange {
        state: Some(RunState::Waiting),
        wake_at: Some(wake_at),
        question: Some(question.map(|name| (name.to_owned(), in_doubt("arguments")))),
        release: true,
        at: 1000,
        ..RunChange::default()
    })
}

fn in_doubt(arguments: &str) -> Question {
    let doubt = CallInDoubt {
        call: 1,
        node: None,
        tool: "mail:send".to_owned(),
        arguments: arguments.to_owned(),
        sent_at: 1,
    };
    Question::InDoubt { calls: vec![doubt], by: pml_model::question::Answerer::Client }
}

fn it_was_done(result: &str) -> Answer {
    let verdict = DoubtVerdict::Done { result: result.to_owned() };
    Answer::Doubts { calls: vec![ResolvedDoubt { call: 1, verdict }] }
}

/// An answer that a call in doubt was done.
fn said(question: &str, result: &str, at: i64, audit: Vec<NewAuditEntry>) -> NewAnswer {
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
fn told(word: &str) -> Vec<NewAuditEntry> {
    let body = serde_json::json!({ "word": word });
    vec![NewAuditEntry { at: 1000, principal: me(), run: Some(id(1)), kind: "told", body }]
}

/// The words of the audit log.
fn words(store: &BlockingStore) -> Vec<String> {
    let word = |body: &str| serde_json::from_str::<serde_json::Value>(body).unwrap()["word"].clone();
    let rows = store.audit_entries(0, u32::MAX).unwrap();
    rows.into_iter().map(|row| word(row.body.get()).as_str().unwrap().to_owned()).collect()
}

/// Claims a run for this process, at a time when only ended owners have lost theirs.
fn claim(store: &BlockingStore, id: &RunId) -> Claim {
    store.claim_run(&me(), id, &ProcessIdentity::current().unwrap(), LATE, 1000).unwrap()
}

#[track_caller]
fn taken(claim: Claim) -> Lease {
    match claim {
        Claim::Taken(lease) => lease,
        other => panic!("{other:?}"),
    }
}

/// The bodies of a run's journal.
fn bodies(store: &BlockingStore, id: &RunId) -> Vec<String> {
    let entries = store.load_run(&me(), id).unwrap().entries;
    entries.into_iter().map(|entry| String::from_utf8(entry.body).unwrap()).collect()
}
