//! Open questions: how many there may be, which tools they show, and finding the one a repeated request asks again.
//!
//! What a question shows is noted beside it in the clear, by the names of its tools alone, so that the transaction which
//! records another definition of a tool voids the questions that showed the one before. A definition that comes back
//! revives none of them.

use pml_model::question::Question;
use pml_model::{Principal, RunId, RunState, ServerName};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;

use super::append::{SealedChange, create};
use super::place::{plan_place, seal};
use super::{Change, NewRun};
use crate::audit::Audit;
use crate::column::run_id;
use crate::{BlockingStore, Error, Urgency};

/// How many approvals may be open at a time.
#[derive(Debug, Clone, Copy)]
pub struct OpenLimit {
    /// Of one client, by the name it gives.
    pub per_client: u32,
    /// Of one principal, whatever names clients give.
    pub per_principal: u32,
}

/// What became of a run that asks before it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// It is stored, and waits for its answer.
    Made,
    /// The same request asked before, and its question is still open: this is its run.
    Same(RunId),
    /// Too many questions are open: those of the same client, or all of the principal. The oldest comes first.
    Full(Vec<RunId>),
}

/// A question that cannot be answered any more, because it showed another definition of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoidedQuestion {
    /// Whose run it is.
    pub principal: Principal,
    /// The run that asked.
    pub run: RunId,
    /// The name of the question.
    pub question_id: String,
    /// `server:tool`.
    pub tool: String,
}

impl VoidedQuestion {
    /// What the audit log is told of it.
    pub(crate) fn audit(&self, at: i64) -> Audit {
        let body = json!({ "question": self.question_id, "tool": self.tool });
        Audit {
            at,
            principal: self.principal.clone(),
            run: Some(self.run.clone()),
            kind: "question voided",
            body,
        }
    }
}

impl OpenLimit {
    /// The questions that keep a run of `session` from asking, where there are too many.
    pub fn exceeded(self, open: &[(RunId, String)], session: &str) -> Option<Vec<RunId>> {
        let client = client_of(session);
        let own: Vec<RunId> = open
            .iter()
            .filter(|(_, asked_in)| client_of(asked_in) == client)
            .map(|(run, _)| run.clone())
            .collect();
        if own.len() >= self.per_client as usize {
            return Some(own);
        }
        (open.len() >= self.per_principal as usize).then(|| open.iter().map(|(run, _)| run.clone()).collect())
    }
}

/// The client of a session that is called `client/number`.
fn client_of(session: &str) -> &str {
    session.rsplit_once('/').map_or(session, |(client, _)| client)
}

impl BlockingStore {
    /// Makes a run that waits for the answer to `question` before it begins, unless the same request still waits for
    /// one or too many questions are open. All of that is one transaction, so that of several equal requests one makes
    /// a run, in whichever process.
    ///
    /// # Errors
    /// The run cannot be sealed or stored, or the idempotency key is another run's.
    pub fn create_asking_run(
        &self,
        mut run: NewRun,
        question: (String, Question),
        limit: OpenLimit,
    ) -> Result<Opened, Error> {
        let (key, wrapped) =
            self.inner.voucher.master.new_key(&run.id, &run.principal, || self.uses_key())?;
        let plan = seal(&key, &plan_place(&run.id), &run.plan)?;
        let asks = Change {
            state: Some(RunState::Waiting),
            question: Some(Some(question)),
            release: true,
            at: run.now,
            ..Change::default()
        };
        let asks = SealedChange::seal(&run.id, &key, asks)?;
        let log = self.log(std::mem::take(&mut run.audit))?;
        self.change(Urgency::Durable, move |connection| {
            if let Some(mark) = &run.request_mark
                && let Some(same) = same_request(connection, &run.principal, mark, run.now)?
            {
                return Ok(Opened::Same(same));
            }
            let open = open_questions(connection, &run.principal, run.now)?;
            if let Some(open) = limit.exceeded(&open, &run.session) {
                return Ok(Opened::Full(open));
            }
            let number = create(connection, &run, &wrapped, &plan)?;
            asks.store(connection, number)?;
            log.store(connection)?;
            Ok(Opened::Made)
        })
    }

    /// The run that the same request made and whose question is open.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn asked_already(
        &self,
        principal: &Principal,
        request_mark: &str,
        now: i64,
    ) -> Result<Option<RunId>, Error> {
        self.read(|connection| same_request(connection, principal, request_mark, now))
    }

    /// The runs of a principal whose approvals are open, each with its session; the oldest comes first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn open_approvals(&self, principal: &Principal, now: i64) -> Result<Vec<(RunId, String)>, Error> {
        self.read(|connection| open_questions(connection, principal, now))
    }
}

fn same_request(
    connection: &Connection,
    principal: &Principal,
    mark: &str,
    now: i64,
) -> rusqlite::Result<Option<RunId>> {
    connection
        .prepare_cached(
            "SELECT id FROM run INDEXED BY run_request
             WHERE principal = ?1 AND request_mark = ?2 AND request_mark IS NOT NULL AND ended_at IS NULL
                AND question_id IS NOT NULL AND answered = 0 AND coalesce(expires_at > ?3, 1)
             ORDER BY number LIMIT 1",
        )?
        .query_row(params![principal.0, mark, now], |row| run_id(row, 0))
        .optional()
}

/// Questions about layers and calls in doubt show no tools, and are not counted: nobody is asked to allow anything.
fn open_questions(
    connection: &Connection,
    principal: &Principal,
    now: i64,
) -> rusqlite::Result<Vec<(RunId, String)>> {
    connection
        .prepare_cached(
            "SELECT id, session FROM run INDEXED BY run_asks
             WHERE question_id IS NOT NULL AND ended_at IS NULL AND answered = 0 AND principal = ?1
                AND coalesce(expires_at > ?2, 1)
                AND EXISTS (SELECT 1 FROM question_tool WHERE question_tool.run = run.number)
             ORDER BY number",
        )?
        .query_map(params![principal.0, now], |row| Ok((run_id(row, 0)?, row.get(1)?)))?
        .collect()
}

/// Whether any question shows a tool of the server.
pub(crate) fn has_questions(connection: &Connection, server: &ServerName) -> rusqlite::Result<bool> {
    connection
        // `;` follows `:`.
        .prepare_cached("SELECT 1 FROM question_tool WHERE tool > ?1 || ':' AND tool < ?1 || ';'")?
        .exists([server.as_str()])
}

/// Voids the questions that show a tool whose definition is another from now on, also those whose answer nobody has
/// taken up yet.
pub(crate) fn void_questions(
    connection: &Connection,
    principal: &str,
    tool: &str,
) -> rusqlite::Result<Vec<VoidedQuestion>> {
    connection
        .prepare_cached(
            "UPDATE run SET voided_by = ?2, answered = 1
             WHERE number IN (SELECT run FROM question_tool WHERE tool = ?2)
                AND principal = ?1 AND question_id IS NOT NULL AND ended_at IS NULL AND voided_by IS NULL
             RETURNING id, question_id",
        )?
        .query_map([principal, tool], |row| {
            Ok(VoidedQuestion {
                principal: Principal(principal.to_owned()),
                run: run_id(row, 0)?,
                question_id: row.get(1)?,
                tool: tool.to_owned(),
            })
        })?
        .collect()
}
