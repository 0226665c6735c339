//! Queries about runs, each for one principal.

use crate::sql::{Connection, OptionalExtension, Row, params};
use pml_model::question::{Answer, Question};
use pml_model::{CapabilityId, Digest, Principal, RunId, RunState};

use super::place::{
    answer_context, entry_context, outcome_context, plan_context, question_context, requested_end_context,
};
use super::{
    JournalEntry, JournalEntryKind, Lease, QuestionOutcome, RunKind, RunOverview, RunQuery, RunRecord,
    RunRow, StoredAnswer,
};
use crate::column::{digest, optional_digest, run_id, run_state, unexpected_value};
use crate::seal::{SealContext, SealKey};
use crate::{BlockingStore, Error, ProcessIdentity};

/// Validity of an idempotency key: 24 hours, in milliseconds.
pub(super) const IDEMPOTENCY_MS: i64 = 24 * 60 * 60 * 1000;

/// The columns that [`run_row`] reads.
pub(super) const ROW: &str = "id, principal, session, kind, intent, code_hash, state, error_code, calls, question_id,
    created_at, updated_at, ended_at, wake_at, expires_at, purged_at, owner_pid, owner_started, lease_until, fence, capability, learned,
    failed_calls, speculated_calls, error_message";

impl BlockingStore {
    /// A run without its sealed bodies.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn run(&self, principal: &Principal, id: &RunId) -> Result<Option<RunRow>, Error> {
        self.read(|connection| Ok(find_run(connection, principal, id)?.map(|(_, run)| run)))
    }

    /// The principal's runs, latest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn runs(&self, principal: &Principal, filter: &RunQuery) -> Result<Vec<RunRow>, Error> {
        self.read(|connection| runs(connection, principal, filter))
    }

    /// The run that a request with this idempotency key created within the last 24 hours, and the digest of that
    /// request.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn run_by_idempotency_key(
        &self,
        principal: &Principal,
        key: &str,
        now: i64,
    ) -> Result<Option<(RunId, Digest)>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT id, request_digest FROM run
                     WHERE principal = ?1 AND idempotency_key = ?2 AND created_at > ?3",
                )?
                .query_row(params![principal.0, key, now.saturating_sub(IDEMPOTENCY_MS)], |row| {
                    Ok((run_id(row, 0)?, digest(row, 1)?))
                })
                .optional()
        })
    }

    /// A run with its question and its outcome. Once the records of a run are purged, only the row is left.
    ///
    /// # Errors
    /// The database cannot be read, or a sealed body cannot be opened.
    pub fn run_overview(&self, principal: &Principal, id: &RunId) -> Result<Option<RunOverview>, Error> {
        let found = self.read(|connection| {
            let Some((number, run)) = find_run(connection, principal, id)? else { return Ok(None) };
            Ok(Some((run, SealedRun::read(connection, number)?)))
        })?;
        let Some((run, sealed)) = found else { return Ok(None) };
        let Some(key) = self.run_key(&run, sealed.key)? else {
            return Ok(Some(RunOverview { run, question: None, outcome: None }));
        };
        let question = open_question(&key, &run, sealed.question)?;
        let outcome = open(&key, &outcome_context(&run.id), sealed.outcome)?;
        Ok(Some(RunOverview { run, question, outcome }))
    }

    /// Everything that is stored of a run.
    ///
    /// # Errors
    /// The principal has no such run, its records are purged, the database cannot be read, or a sealed body cannot be
    /// opened.
    pub fn load_run(&self, principal: &Principal, id: &RunId) -> Result<RunRecord, Error> {
        let found = self.read(|connection| {
            let Some((number, run)) = find_run(connection, principal, id)? else { return Ok(None) };
            let (sealed, entries) = (SealedRun::read(connection, number)?, entries(connection, number)?);
            Ok(Some((run, sealed, entries, answers(connection, number)?, voided_by(connection, number)?)))
        })?;
        let Some((run, sealed, entries, answers, voided_by)) = found else {
            return Err(Error::UnknownRun { run: id.clone() });
        };
        let key = self.run_key(&run, sealed.key)?.ok_or_else(|| Error::RecordsExpired { run: id.clone() })?;
        let plan = open(&key, &plan_context(id), sealed.plan)?;
        Ok(RunRecord {
            plan: plan.ok_or_else(|| key.unsealed_error(&plan_context(id)))?,
            entries: open_entries(&key, id, entries)?,
            question: open_question(&key, &run, sealed.question)?,
            voided_by,
            answers: answers.into_iter().map(|answer| answer.open(&key, id)).collect::<Result<_, _>>()?,
            requested_end: open(&key, &requested_end_context(id), sealed.wish)?,
            outcome: open(&key, &outcome_context(id), sealed.outcome)?,
            run,
        })
    }

    /// What happened to the open question of the run; `None` while nothing has.
    ///
    /// # Errors
    /// The database cannot be read, or a sealed body cannot be opened.
    pub fn question_outcome(&self, lease: &Lease) -> Result<Option<QuestionOutcome>, Error> {
        let (id, key) = (&lease.0.run, &lease.0.key);
        let changed = self.read(|connection| {
            connection
                .prepare_cached("SELECT voided_by FROM run WHERE id = ?1 AND voided_by IS NOT NULL")?
                .query_row([id.as_str()], |row| row.get(0))
                .optional()
        })?;
        if let Some(tool) = changed {
            return Ok(Some(QuestionOutcome::DefinitionChanged { tool }));
        }
        let found = self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT answer.question_id, answer.principal, answer.at, answer.body
                     FROM run JOIN answer ON answer.run = run.number AND answer.question_id = run.question_id
                     WHERE run.id = ?1",
                )?
                .query_row([id.as_str()], SealedAnswer::of_row)
                .optional()
        })?;
        found.map(|answer| answer.open(key, id).map(QuestionOutcome::Answered)).transpose()
    }

    /// Whether a pause of the run before its next layer is requested.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn is_pause_requested(&self, lease: &Lease) -> Result<bool, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT 1 FROM run JOIN run_body ON run_body.run = run.number AND run_body.part = 'pause'
                     WHERE run.id = ?1",
                )?
                .exists([lease.0.run.as_str()])
        })
    }

    /// The key of a run; `None` once it is destroyed.
    pub(super) fn run_key(&self, run: &RunRow, wrapped: Option<Vec<u8>>) -> Result<Option<SealKey>, Error> {
        wrapped
            .map(|wrapped| self.inner.authenticator.master.unwrap_run_key(&run.id, &run.principal, wrapped))
            .transpose()
    }
}

/// The number and the row of a principal's run.
pub(super) fn find_run(
    connection: &Connection,
    principal: &Principal,
    id: &RunId,
) -> rusqlite::Result<Option<(i64, RunRow)>> {
    connection
        .prepare_cached(&format!("SELECT {ROW}, number FROM run WHERE id = ?1 AND principal = ?2"))?
        .query_row(params![id.as_str(), principal.0], |row| Ok((row.get("number")?, run_row(row)?)))
        .optional()
}

/// The tool whose definition changed after the question of the run was asked.
pub(super) fn voided_by(connection: &Connection, run: i64) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT voided_by FROM run WHERE number = ?1")?
        .query_row([run], |row| row.get(0))
}

/// The wrapped key of a run; `None` once it is destroyed.
pub(super) fn wrapped_key(connection: &Connection, run: i64) -> rusqlite::Result<Option<Vec<u8>>> {
    connection
        .prepare_cached("SELECT wrapped FROM run_key WHERE run = ?1")?
        .query_row([run], |row| row.get(0))
        .optional()
}

fn runs(connection: &Connection, principal: &Principal, filter: &RunQuery) -> rusqlite::Result<Vec<RunRow>> {
    // One statement per combination of filters, so that each uses the index made for it.
    let state = if filter.state.is_some() { "state = ?2" } else { "?2 IS NULL" };
    let before = match filter.before {
        Some(_) => "number < (SELECT number FROM run WHERE id = ?3 AND principal = ?1)",
        None => "?3 IS NULL",
    };
    connection
        .prepare_cached(&format!(
            "SELECT {ROW} FROM run WHERE principal = ?1 AND {state} AND {before} ORDER BY number DESC LIMIT ?4"
        ))?
        .query_map(
            params![
                principal.0,
                filter.state.map(RunState::as_str),
                filter.before.as_ref().map(RunId::as_str),
                filter.limit
            ],
            run_row,
        )?
        .collect()
}

pub(super) fn run_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    let kind = row.get_ref(3)?.as_str()?;
    Ok(RunRow {
        id: run_id(row, 0)?,
        principal: Principal(row.get(1)?),
        session: row.get(2)?,
        kind: RunKind::parse(kind)
            .ok_or_else(|| unexpected_value(3, format!("`{kind}` is no kind of run")))?,
        intent: row.get(4)?,
        code_hash: row.get(5)?,
        state: run_state(row, 6)?,
        error_code: row.get(7)?,
        calls: row.get(8)?,
        question_id: row.get(9)?,
        created_at: row.get(10)?,
        updated_at: row.get(11)?,
        ended_at: row.get(12)?,
        wake_at: row.get(13)?,
        expires_at: row.get(14)?,
        purged_at: row.get(15)?,
        owner: owner(row, 16)?,
        fence: row.get(19)?,
        capability: capability_id(row, 20)?,
        learned: capability_id(row, 21)?,
        failed_calls: row.get(22)?,
        speculated_calls: row.get(23)?,
        error_message: row.get(24)?,
    })
}

/// The id of a capability, if the column has one.
fn capability_id(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<CapabilityId>> {
    let text: Option<String> = row.get(column)?;
    let parsed = text.map(|text| CapabilityId::parse(&text)).transpose();
    parsed.map_err(|error| unexpected_value(column, error.to_string()))
}

/// The owner and the end of its lease, from three columns.
pub(super) fn owner(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<(ProcessIdentity, i64)>> {
    match row.get(column)? {
        Some(pid) => Ok(Some((ProcessIdentity { pid, started: row.get(column + 1)? }, row.get(column + 2)?))),
        None => Ok(None),
    }
}

/// The sealed bodies of a run, without its row and its journal.
#[derive(Default)]
pub(super) struct SealedRun {
    pub(super) key: Option<Vec<u8>>,
    pub(super) plan: Option<Vec<u8>>,
    pub(super) question: Option<Vec<u8>>,
    pub(super) outcome: Option<Vec<u8>>,
    wish: Option<Vec<u8>>,
}

impl SealedRun {
    pub(super) fn read(connection: &Connection, run: i64) -> rusqlite::Result<SealedRun> {
        SealedRun::read_parts(connection, run, "SELECT part, body FROM run_body WHERE run = ?1")
    }

    /// The same without the outcome, which may be large.
    pub(super) fn read_before_end(connection: &Connection, run: i64) -> rusqlite::Result<SealedRun> {
        let parts = "SELECT part, body FROM run_body WHERE run = ?1 AND part <> 'outcome'";
        SealedRun::read_parts(connection, run, parts)
    }

    fn read_parts(connection: &Connection, run: i64, parts: &str) -> rusqlite::Result<SealedRun> {
        let mut sealed = SealedRun { key: wrapped_key(connection, run)?, ..SealedRun::default() };
        let mut parts = connection.prepare_cached(parts)?;
        let mut rows = parts.query([run])?;
        while let Some(row) = rows.next()? {
            match row.get_ref(0)?.as_str()? {
                "plan" => sealed.plan = row.get(1)?,
                "question" => sealed.question = row.get(1)?,
                "outcome" => sealed.outcome = row.get(1)?,
                "wish" => sealed.wish = row.get(1)?,
                // The row has no content: its presence is the request.
                "pause" => {}
                other => return Err(unexpected_value(0, format!("`{other}` is no part of a run"))),
            }
        }
        Ok(sealed)
    }
}

/// The journal entries with their numbers; bodies are still sealed.
fn entries(connection: &Connection, run: i64) -> rusqlite::Result<Vec<(i64, JournalEntry)>> {
    connection
        .prepare_cached(
            "SELECT seq, kind, call, frame, node, tool, digest, at, body FROM journal WHERE run = ?1 ORDER BY seq",
        )?
        .query_map([run], sealed_entry)?
        .collect()
}

/// A journal entry with its number; its body is still sealed.
pub(super) fn sealed_entry(row: &Row<'_>) -> rusqlite::Result<(i64, JournalEntry)> {
    let word = row.get_ref(1)?.as_str()?;
    let kind = JournalEntryKind::parse(word)
        .ok_or_else(|| unexpected_value(1, format!("`{word}` is no kind of entry")))?;
    let entry = JournalEntry {
        kind,
        call: row.get(2)?,
        frame: row.get(3)?,
        node: row.get(4)?,
        tool: row.get(5)?,
        digest: optional_digest(row, 6)?,
        at: row.get(7)?,
        body: row.get(8)?,
    };
    Ok((row.get(0)?, entry))
}

fn open_entries(
    key: &SealKey,
    run: &RunId,
    entries: Vec<(i64, JournalEntry)>,
) -> Result<Vec<JournalEntry>, Error> {
    let open = |(expected, (number, mut entry)): (i64, (i64, JournalEntry))| {
        let place = entry_context(run, expected, &entry);
        if number != expected {
            return Err(key.unsealed_error(&place));
        }
        entry.body = key.open(&place, std::mem::take(&mut entry.body))?;
        Ok(entry)
    };
    (1..).zip(entries).map(open).collect()
}

pub(super) struct SealedAnswer {
    question_id: String,
    principal: Principal,
    at: i64,
    body: Vec<u8>,
}

pub(super) fn answers(connection: &Connection, run: i64) -> rusqlite::Result<Vec<SealedAnswer>> {
    connection
        .prepare_cached("SELECT question_id, principal, at, body FROM answer WHERE run = ?1 ORDER BY at")?
        .query_map([run], SealedAnswer::of_row)?
        .collect()
}

impl SealedAnswer {
    fn of_row(row: &Row<'_>) -> rusqlite::Result<SealedAnswer> {
        let principal = Principal(row.get(1)?);
        Ok(SealedAnswer { question_id: row.get(0)?, principal, at: row.get(2)?, body: row.get(3)? })
    }

    pub(super) fn open(self, key: &SealKey, run: &RunId) -> Result<StoredAnswer, Error> {
        let place = answer_context(run, &self.question_id, &self.principal, self.at);
        let text = key.open(&place, self.body)?;
        let answer: Answer = serde_json::from_slice(&text).map_err(|_| key.unsealed_error(&place))?;
        Ok(StoredAnswer { question_id: self.question_id, answer, principal: self.principal, at: self.at })
    }
}

pub(super) fn open(
    key: &SealKey,
    place: &SealContext,
    sealed: Option<Vec<u8>>,
) -> Result<Option<Vec<u8>>, Error> {
    sealed.map(|sealed| key.open(place, sealed)).transpose()
}

pub(super) fn open_question(
    key: &SealKey,
    run: &RunRow,
    sealed: Option<Vec<u8>>,
) -> Result<Option<(String, Question)>, Error> {
    let Some(id) = run.question_id.clone() else { return Ok(None) };
    let place = question_context(&run.id, &id);
    let text = open(key, &place, sealed)?.ok_or_else(|| key.unsealed_error(&place))?;
    let question = serde_json::from_slice(&text).map_err(|_| key.unsealed_error(&place))?;
    Ok(Some((id, question)))
}
