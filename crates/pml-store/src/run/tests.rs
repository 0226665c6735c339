//! Runs on a full disk, and queries among many waiting runs.

use std::sync::mpsc::sync_channel;

use rusqlite::StatementStatus;

use super::*;
use crate::{BlockingStore, Error, Urgency};

fn append(store: &BlockingStore, lease: &Lease, body: &[u8], change: Option<RunChange>) -> Result<(), Error> {
    let entry = |body: &[u8]| JournalEntry {
        kind: JournalEntryKind::Delivered,
        call: None,
        frame: 0,
        node: None,
        tool: None,
        digest: None,
        at: 1,
        body: body.to_vec(),
    };
    let entries = if change.is_none() { vec![entry(body)] } else { Vec::new() };
    let (reply, answer) = sync_channel(1);
    store.append_journal(lease, entries, change, Urgency::Soon, move |stored| reply.send(stored).unwrap());
    answer.recv().unwrap()
}

/// Limits the file to this number of pages.
fn limit_pages(store: &BlockingStore, pages: i64) {
    store
        .write(move |connection| {
            connection.sqlite().pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
        })
        .unwrap();
}

#[test]
fn a_run_that_met_a_full_disk_resumes_from_what_was_stored() {
    let directory = tempfile::tempdir().unwrap();
    let store = BlockingStore::open(&directory.path().join("pml.db")).unwrap();
    let (run, principal, owner) = (RunId::new(1), Principal::local(), ProcessIdentity::current().unwrap());
    let new = NewRun {
        id: run.clone(),
        principal: principal.clone(),
        session: String::new(),
        kind: RunKind::Code,
        intent: String::new(),
        code_hash: String::new(),
        capability: None,
        client_key: None,
        key_runs_at_once: None,
        plan: Vec::new(),
        expires_at: None,
        idempotency: None,
        request_mark: None,
        audit: Vec::new(),
        owner: owner.clone(),
        lease_until: i64::MAX,
        now: 1,
    };
    let lease = store.create_run(new, Urgency::Soon, |stored| stored.unwrap()).unwrap();
    append(&store, &lease, b"first", None).unwrap();

    limit_pages(&store, 1);
    let refused = append(&store, &lease, &[0; 100_000], None).unwrap_err();
    assert!(matches!(refused, Error::DiskFull { .. }), "{refused}");
    assert_eq!(store.load_run(&principal, &run).unwrap().entries.len(), 1);
    limit_pages(&store, 1_000_000);
    // There is space again, but this entry must not take the place of the lost one.
    let refused = append(&store, &lease, b"third", None).unwrap_err();
    assert!(matches!(refused, Error::JournalGap { .. }), "{refused}");

    let give_up = RunChange { state: Some(RunState::Interrupted), at: 2, ..RunChange::default() };
    append(&store, &lease, b"", Some(give_up)).unwrap();
    let Claim::Taken(lease) = store.claim_run(&principal, &run, &owner, i64::MAX, 3).unwrap() else {
        panic!("nobody else has it")
    };
    append(&store, &lease, &[0; 100_000], None).unwrap();
    assert_eq!(store.load_run(&principal, &run).unwrap().entries.len(), 2);
}

#[test]
fn runs_that_wait_cost_those_nothing_that_do_not() {
    let directory = tempfile::tempdir().unwrap();
    let store = BlockingStore::open(&directory.path().join("pml.db")).unwrap();
    store
        .write(|connection| {
            connection.execute_batch(
                "INSERT INTO run (id, principal, session, kind, intent, code_hash, state, created_at, updated_at,
                    question_id, wake_at, expires_at, fence)
                 WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1000)
                 SELECT format('run_%032x', n), 'local', '', 'code', '', '', 'waiting', 1, 1,
                    'q', iif(n % 2, NULL, 5000), 9000, 1 FROM n;
                 UPDATE run SET question_id = NULL WHERE number > 990;",
            )
        })
        .unwrap();
    let steps = |statement: &str, now: Option<i64>| {
        store
            .read(|connection| {
                let mut statement = connection.sqlite().prepare(statement)?;
                let mut rows = statement.query(rusqlite::params_from_iter(now))?;
                let mut count = 0;
                while rows.next()?.is_some() {
                    count += 1;
                }
                drop(rows);
                Ok((count, statement.get_status(StatementStatus::VmStep)))
            })
            .unwrap()
    };
    for (statement, now) in [
        (claim::DUE, Some(4999)),
        (claim::NEXT_WAKE, None),
        (claim::OVERDUE, Some(8999)),
        (claim::OWNED, None),
    ] {
        let (_, steps) = steps(statement, now);
        assert!(steps < 200, "{steps} steps: {statement}");
    }
    assert_eq!(store.next_wake_at().unwrap(), Some(5000));
    assert!(store.due_runs(4999).unwrap().is_empty());
    assert_eq!(store.due_runs(5000).unwrap().len(), 500);
    // The query reads only the asking runs whose question is open.
    store.write(|connection| connection.execute("UPDATE run SET answered = 1 WHERE number > 3", [])).unwrap();
    let (_, steps) = steps(&ask::asking_statement().replace("?1", "'local'"), None);
    assert!(steps < 500, "{steps} steps");
}
