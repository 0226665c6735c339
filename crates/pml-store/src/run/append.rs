//! Creates runs, and appends to them for the holder of the lease.
//!
//! Bodies are sealed on the caller's thread; the writer thread only stores sealed bytes.

use std::sync::PoisonError;

use crate::sql::{Connection, OptionalExtension, params};
use pml_model::question::Question;
use pml_model::{CapabilityId, Digest, RunId, RunState};

use super::place::{
    entry_context, outcome_context, plan_context, question_context, requested_end_context, seal_body,
};
use super::read::IDEMPOTENCY_MS;
use super::{JournalEntry, Lease, NewRun, RunChange};
use crate::audit::AuditBatch;
use crate::column::{run_id, run_state};
use crate::key_use::runs_under_way;
use crate::memory::EncodedMemory;
use crate::seal::SealKey;
use crate::writer::WriteFailure;
use crate::{BlockingStore, Error, Urgency};

/// The fence of a run's first owner.
const FIRST_FENCE: i64 = 1;

impl BlockingStore {
    /// Creates a run that its owner executes. Appends may follow at once: they are stored after it. A run with audit
    /// entries is always stored durably. `done` gets [`Error::IdempotencyKeyInUse`] if the idempotency key belongs to
    /// another run, and [`Error::TooManyKeyRuns`] if its key may have no more runs. The first call reads or creates the key file and blocks for that.
    ///
    /// # Errors
    /// The run cannot be sealed, or its plan is too large. `done` is not called then.
    pub fn create_run(
        &self,
        mut run: NewRun,
        urgency: Urgency,
        done: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) -> Result<Lease, Error> {
        let (key, wrapped) =
            self.inner.authenticator.master.new_run_key(&run.id, &run.principal, || self.is_key_in_use())?;
        let plan = seal_body(&key, &plan_context(&run.id), &run.plan)?;
        let lease = Lease::new(run.id.clone(), FIRST_FENCE, key, 1);
        let log = self.prepare_audit(std::mem::take(&mut run.audit))?;
        let (bytes, urgency) = (plan.len() + run.intent.len() + log.bytes(), log.required_urgency(urgency));
        let work = move |connection: &Connection| {
            let number = insert_run(connection, &run, &wrapped, &plan)?;
            record_claim(connection, number, FIRST_FENCE, run.now)?;
            log.store(connection)
        };
        let made = lease.clone();
        let done = move |stored: Result<(), Error>| {
            if let Err(error) = &stored {
                // A later append should report why the run was not created, not that it does not exist.
                drop(made.0.not_made.set(error.clone()));
            }
            done(stored);
        };
        self.inner.writer.enqueue(bytes, urgency, work, done);
        Ok(lease)
    }

    /// Appends entries to the journal of a run and changes its row, both or neither. A change with audit entries is
    /// always stored durably.
    ///
    /// Appends through one lease are stored in the order of the calls. Once entries could not be stored, for whatever
    /// reason, all later appends fail with [`Error::JournalGap`], so that the journal has no gaps. The only changes
    /// still accepted are those that interrupt the run or end it in a state other than done. `done` gets
    /// [`Error::Fenced`] when the lease is lost and [`Error::RunEnded`] when the run has ended.
    pub fn append_journal(
        &self,
        lease: &Lease,
        entries: Vec<JournalEntry>,
        mut change: Option<RunChange>,
        urgency: Urgency,
        done: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) {
        let audit = change.as_mut().map(|change| std::mem::take(&mut change.audit)).unwrap_or_default();
        let log = self.prepare_audit(audit);
        // Held until the change is queued: entry numbers must follow the order of the queue.
        let mut next = lease.0.next.lock().unwrap_or_else(PoisonError::into_inner);
        match log.and_then(|log| SealedAppend::seal(lease, *next, entries, change, log)) {
            Ok(append) => {
                *next += append.entries.len() as i64;
                let (bytes, urgency) = (append.bytes(), append.log.required_urgency(urgency));
                let made = lease.clone();
                let done = move |stored: Result<(), Error>| match (stored, made.0.not_made.get()) {
                    (Err(Error::UnknownRun { .. }), Some(error)) => done(Err(error.clone())),
                    (stored, _) => done(stored),
                };
                self.inner.writer.enqueue(bytes, urgency, move |connection| append.store(connection), done);
            }
            Err(error) => {
                // Skips a number on purpose: later appends must fail with `JournalGap`.
                *next += 1;
                drop(next);
                done(Err(error));
            }
        }
    }
}

/// An append, sealed and ready to be stored.
struct SealedAppend {
    run: RunId,
    fence: i64,
    /// Number of the first entry.
    first: i64,
    /// Earlier entries may be missing: the change interrupts the run or ends it in a state other than done.
    gives_up: bool,
    entries: Vec<JournalEntry>,
    change: Option<SealedChange>,
    log: AuditBatch,
}

pub(super) struct SealedChange {
    change: RunChange,
    question: Option<Option<(String, Vec<u8>)>>,
    /// The tools that the question shows.
    shows: Vec<String>,
    memory: Option<EncodedMemory>,
}

impl SealedAppend {
    fn seal(
        lease: &Lease,
        first: i64,
        mut entries: Vec<JournalEntry>,
        change: Option<RunChange>,
        log: AuditBatch,
    ) -> Result<SealedAppend, Error> {
        let (run, key) = (&lease.0.run, &lease.0.key);
        for (entry, number) in entries.iter_mut().zip(first..) {
            entry.body = seal_body(key, &entry_context(run, number, entry), &entry.body)?;
        }
        let gives_up = entries.is_empty() && change.as_ref().is_some_and(gives_up);
        let change = change.map(|change| SealedChange::seal(run, key, change)).transpose()?;
        Ok(SealedAppend { run: run.clone(), fence: lease.0.fence, first, gives_up, entries, change, log })
    }

    fn bytes(&self) -> usize {
        let entries: usize =
            self.entries.iter().map(|entry| size_of::<JournalEntry>() + entry.body.len()).sum();
        entries + self.change.as_ref().map_or(0, SealedChange::bytes) + self.log.bytes()
    }

    fn store(self, connection: &Connection) -> Result<(), WriteFailure> {
        let number = self.admit(connection)?;
        if !self.entries.is_empty() {
            insert(connection, number, self.first, &self.entries)?;
        }
        if let Some(change) = &self.change {
            change.store(connection, number)?;
        }
        self.log.store(connection)
    }

    /// The number of the run, if the append is admissible: the lease holds, the run has not ended, and no entry is
    /// missing.
    fn admit(&self, connection: &Connection) -> Result<i64, WriteFailure> {
        let mut standing = connection.prepare_cached(
            "SELECT number, fence, state, (SELECT coalesce(max(seq), 0) FROM journal WHERE run = number)
             FROM run WHERE id = ?1",
        )?;
        let found = standing
            .query_row([self.run.as_str()], |row| {
                Ok((row.get(0)?, row.get(1)?, run_state(row, 2)?, row.get(3)?))
            })
            .optional()?;
        let run = self.run.clone();
        let Some((number, fence, state, last)) = found else { return Err(Error::UnknownRun { run }.into()) };
        let (fence, last): (i64, i64) = (fence, last);
        if state.is_over() && fence == self.fence {
            Err(Error::RunEnded { run, state }.into())
        } else if fence != self.fence {
            Err(Error::Fenced { run }.into())
        } else if last + 1 != self.first && !self.gives_up {
            Err(Error::JournalGap { run }.into())
        } else {
            Ok(number)
        }
    }
}

/// Whether the change does not build on earlier entries: it interrupts the run or ends it in a state other than done.
fn gives_up(change: &RunChange) -> bool {
    match change.state {
        Some(RunState::Running | RunState::Waiting | RunState::Done) | None => false,
        Some(
            RunState::Interrupted
            | RunState::Failed
            | RunState::Cancelled
            | RunState::Aborted
            | RunState::Expired,
        ) => true,
    }
}

impl SealedChange {
    pub(super) fn seal(run: &RunId, key: &SealKey, mut change: RunChange) -> Result<SealedChange, Error> {
        let shows = match &change.question {
            Some(Some((_, Question::Approval(asked)))) => {
                asked.calls.iter().map(|call| call.tool.clone()).collect()
            }
            Some(_) | None => Vec::new(),
        };
        if let Some(outcome) = &mut change.outcome {
            *outcome = seal_body(key, &outcome_context(run), outcome)?;
        }
        if let Some(wish) = &mut change.requested_end {
            *wish = seal_body(key, &requested_end_context(run), wish)?;
        }
        let seal_question = |(id, question): (String, Question)| {
            let text = serde_json::to_vec(&question).expect("a question is plain data");
            let sealed = seal_body(key, &question_context(run, &id), &text)?;
            Ok::<_, Error>((id, sealed))
        };
        let question = match change.question.take() {
            Some(Some(question)) => Some(Some(seal_question(question)?)),
            Some(None) => Some(None),
            // A run that has ended asks nothing.
            None => change.state.filter(|state| state.is_over()).map(|_| None),
        };
        let memory = change.memory.take().map(|memory| EncodedMemory::encode(*memory)).transpose()?;
        Ok(SealedChange { change, question, shows, memory })
    }

    fn bytes(&self) -> usize {
        let question = self.question.as_ref().and_then(Option::as_ref);
        let memory = self.memory.as_ref().map_or(0, EncodedMemory::bytes);
        let wish = self.change.requested_end.as_ref().map_or(0, Vec::len);
        let question = question.map_or(0, |(_, body)| body.len());
        self.change.outcome.as_ref().map_or(0, Vec::len) + question + memory + wish
    }

    pub(super) fn store(&self, connection: &Connection, number: i64) -> rusqlite::Result<()> {
        let change = &self.change;
        let over = change.state.is_some_and(RunState::is_over);
        let released = change.release || over || change.state == Some(RunState::Interrupted);
        let wake_at = if over { Some(None) } else { change.wake_at };
        connection
            .prepare_cached(
                "UPDATE run SET state = coalesce(?2, state), updated_at = ?3,
                    ended_at = CASE WHEN ?4 THEN ?3 ELSE ended_at END,
                    wake_at = CASE WHEN ?5 THEN ?6 ELSE wake_at END,
                    question_id = CASE WHEN ?7 THEN ?8 ELSE question_id END,
                    answered = CASE WHEN ?7 THEN EXISTS (
                        SELECT 1 FROM answer WHERE answer.run = ?1 AND answer.question_id = ?8)
                        OR (question_id IS ?8 AND voided_by IS NOT NULL)
                        ELSE answered END,
                    voided_by = CASE WHEN ?7 AND question_id IS NOT ?8 THEN NULL ELSE voided_by END,
                    expires_at = CASE WHEN ?12 THEN ?13 ELSE expires_at END,
                    error_code = coalesce(?9, error_code), calls = coalesce(?10, calls),
                    failed_calls = coalesce(?14, failed_calls),
                    speculated_calls = coalesce(?15, speculated_calls),
                    error_message = coalesce(?16, error_message), learned = coalesce(?17, learned),
                    saved_ms = coalesce(?18, saved_ms), call_bytes = coalesce(?19, call_bytes),
                    result_bytes = coalesce(?20, result_bytes),
                    owner_pid = CASE WHEN ?11 THEN NULL ELSE owner_pid END,
                    owner_started = CASE WHEN ?11 THEN NULL ELSE owner_started END,
                    lease_until = CASE WHEN ?11 THEN NULL ELSE lease_until END
                 WHERE number = ?1",
            )?
            .execute(params![
                number,
                change.state.map(RunState::as_str),
                change.at,
                over,
                wake_at.is_some(),
                wake_at.flatten(),
                self.question.is_some(),
                self.question.as_ref().and_then(|question| Some(&question.as_ref()?.0)),
                change.error_code,
                change.calls.map(|calls| calls.made),
                released,
                change.expires_at.is_some(),
                change.expires_at.flatten(),
                change.calls.map(|calls| calls.failed),
                change.calls.map(|calls| calls.speculated),
                change.error_message,
                change.learned.as_ref().map(CapabilityId::as_str),
                change.savings.map(|saved| saved.waited_less_ms),
                change.savings.map(|saved| saved.call_bytes),
                change.savings.map(|saved| saved.result_bytes),
            ])?;
        if let Some(outcome) = &change.outcome {
            put_body(connection, number, "outcome", outcome)?;
        }
        if let Some(memory) = &self.memory {
            memory.store(connection)?;
        }
        if let Some(wish) = &change.requested_end {
            put_body(connection, number, "wish", wish)?;
        }
        if self.question.is_some() {
            show(connection, number, &self.shows)?;
        }
        if change.pause_acknowledged {
            connection
                .prepare_cached("DELETE FROM run_body WHERE run = ?1 AND part = 'pause'")?
                .execute([number])?;
        }
        match &self.question {
            Some(Some((_, body))) => put_body(connection, number, "question", body),
            Some(None) => connection
                .prepare_cached("DELETE FROM run_body WHERE run = ?1 AND part = 'question'")?
                .execute([number])
                .map(drop),
            None => Ok(()),
        }
    }
}

/// Inserts the row of a run and returns its number.
pub(super) fn insert_run(
    connection: &Connection,
    run: &NewRun,
    wrapped: &[u8],
    plan: &[u8],
) -> Result<i64, WriteFailure> {
    if let Some(idempotency) = &run.idempotency {
        claim_key(connection, run, &idempotency.key)?;
    }
    // Within the transaction: of two gateways that start the last admitted run, one is refused.
    if let (Some(key), Some(most)) = (run.client_key, run.key_runs_at_once)
        && runs_under_way(connection, key)? >= u64::from(most)
    {
        return Err(Error::TooManyKeyRuns { key, most }.into());
    }
    let (key, request) =
        run.idempotency.as_ref().map(|given| (given.key.as_str(), given.request.as_str())).unzip();
    connection
        .prepare_cached(
            "INSERT INTO run (id, principal, session, kind, intent, code_hash, state, created_at, updated_at,
                expires_at, owner_pid, owner_started, lease_until, fence, idempotency_key, request_digest,
                request_mark, capability, client_key)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'running', ?7, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
        )?
        .execute(params![
            run.id.as_str(),
            run.principal.0,
            run.session,
            run.kind.as_str(),
            run.intent,
            run.code_hash,
            run.now,
            run.expires_at,
            run.owner.pid,
            run.owner.started,
            run.lease_until,
            FIRST_FENCE,
            key,
            request,
            run.request_mark,
            run.capability.as_ref().map(CapabilityId::as_str),
            run.client_key.map(|key| key.0),
        ])?;
    let number = connection.last_insert_rowid();
    connection
        .prepare_cached("INSERT INTO run_key (run, wrapped) VALUES (?1, ?2)")?
        .execute(params![number, wrapped])?;
    put_body(connection, number, "plan", plan)?;
    Ok(number)
}

/// Records that a process begins to work on a run.
pub(super) fn record_claim(connection: &Connection, run: i64, fence: i64, at: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO run_claim (run, fence, at) VALUES (?1, ?2, ?3)")?
        .execute(params![run, fence, at])
        .map(drop)
}

/// Takes an idempotency key away from an earlier run for which it is no longer valid.
fn claim_key(connection: &Connection, run: &NewRun, key: &str) -> Result<(), WriteFailure> {
    let past = run.now.saturating_sub(IDEMPOTENCY_MS);
    connection
        .prepare_cached(
            "UPDATE run SET idempotency_key = NULL, request_digest = NULL
             WHERE principal = ?1 AND idempotency_key = ?2 AND created_at <= ?3",
        )?
        .execute(params![run.principal.0, key, past])?;
    let holder = connection
        .prepare_cached("SELECT id FROM run WHERE principal = ?1 AND idempotency_key = ?2")?
        .query_row(params![run.principal.0, key], |row| run_id(row, 0))
        .optional()?;
    holder.map_or(Ok(()), |run| Err(Error::IdempotencyKeyInUse { run }.into()))
}

fn insert(connection: &Connection, run: i64, first: i64, entries: &[JournalEntry]) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO journal (run, seq, kind, call, frame, node, tool, digest, at, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?;
    for (entry, number) in entries.iter().zip(first..) {
        insert.execute(params![
            run,
            number,
            entry.kind.as_str(),
            entry.call,
            entry.frame,
            entry.node,
            entry.tool,
            entry.digest.as_ref().map(Digest::as_str),
            entry.at,
            entry.body,
        ])?;
    }
    Ok(())
}

fn put_body(connection: &Connection, run: i64, part: &str, body: &[u8]) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO run_body (run, part, body) VALUES (?1, ?2, ?3)")?
        .execute(params![run, part, body])
        .map(drop)
}

/// Stores which tools the question of a run shows.
fn show(connection: &Connection, run: i64, tools: &[String]) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM question_tool WHERE run = ?1")?.execute([run])?;
    for tool in tools {
        connection
            .prepare_cached("INSERT OR IGNORE INTO question_tool (run, tool) VALUES (?1, ?2)")?
            .execute(params![run, tool])?;
    }
    Ok(())
}
