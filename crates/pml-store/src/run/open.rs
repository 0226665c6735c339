//! Open questions: their limit, the tools they show, and finding the run of a repeated request.
//!
//! The names of the tools that a question shows are stored beside it, unsealed. The transaction that records a new
//! definition of a tool can thus void the questions that showed the previous one. A definition that returns revives
//! none of them.

use crate::sql::{Connection, OptionalExtension, params};
use pml_model::question::Question;
use pml_model::{Principal, RunId, RunState, ServerName};
use serde_json::json;

use super::append::{SealedChange, insert_run};
use super::place::{plan_context, seal_body};
use super::{NewRun, RunChange};
use crate::audit::NewAuditEntry;
use crate::column::run_id;
use crate::{BlockingStore, Error, Urgency};

/// Maximum number of open approvals.
#[derive(Debug, Clone, Copy)]
pub struct OpenApprovalLimit {
    /// Per client, by the name that the client gives.
    pub per_client: u32,
    /// Per principal, across all client names.
    pub per_principal: u32,
}

/// Outcome of creating a run that asks before it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskingRunOutcome {
    /// The run is stored and waits for its answer.
    Created,
    /// The same request asked before, and the question of this run is still open.
    AlreadyAsked(RunId),
    /// The limit is reached. These are the runs with open questions, of the client or of the whole principal; oldest
    /// first.
    TooManyOpen(Vec<RunId>),
}

/// A question that cannot be answered any more because the definition of a tool it showed has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoidedQuestion {
    /// The principal that the run belongs to.
    pub principal: Principal,
    /// The run that asked.
    pub run: RunId,
    /// Id of the question.
    pub question_id: String,
    /// `server:tool`.
    pub tool: String,
}

impl VoidedQuestion {
    /// The audit entry about it.
    pub(crate) fn audit_entry(&self, at: i64) -> NewAuditEntry {
        let body = json!({ "question": self.question_id, "tool": self.tool });
        NewAuditEntry {
            at,
            principal: self.principal.clone(),
            run: Some(self.run.clone()),
            kind: "question voided",
            body,
        }
    }
}

impl OpenApprovalLimit {
    /// The open runs that keep a run of `session` from asking; `None` while the limit is not reached.
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

/// The client name of a session id `client/number`.
fn client_of(session: &str) -> &str {
    session.rsplit_once('/').map_or(session, |(client, _)| client)
}

impl BlockingStore {
    /// Creates a run that waits for the answer to `question` before it begins, unless the same request still waits for
    /// an answer or too many questions are open. The check and the insertion share a transaction, so several equal
    /// requests, in any process, create one run.
    ///
    /// # Errors
    /// The run cannot be sealed or stored, or the idempotency key belongs to another run.
    pub fn create_asking_run(
        &self,
        mut run: NewRun,
        question: (String, Question),
        limit: OpenApprovalLimit,
    ) -> Result<AskingRunOutcome, Error> {
        let (key, wrapped) =
            self.inner.authenticator.master.new_run_key(&run.id, &run.principal, || self.is_key_in_use())?;
        let plan = seal_body(&key, &plan_context(&run.id), &run.plan)?;
        let asks = RunChange {
            state: Some(RunState::Waiting),
            question: Some(Some(question)),
            release: true,
            at: run.now,
            ..RunChange::default()
        };
        let asks = SealedChange::seal(&run.id, &key, asks)?;
        let log = self.prepare_audit(std::mem::take(&mut run.audit))?;
        self.change(Urgency::Durable, move |connection| {
            if let Some(mark) = &run.request_mark
                && let Some(same) = same_request(connection, &run.principal, mark, run.now)?
            {
                return Ok(AskingRunOutcome::AlreadyAsked(same));
            }
            let open = open_questions(connection, &run.principal, run.now)?;
            if let Some(open) = limit.exceeded(&open, &run.session) {
                return Ok(AskingRunOutcome::TooManyOpen(open));
            }
            let number = insert_run(connection, &run, &wrapped, &plan)?;
            asks.store(connection, number)?;
            log.store(connection)?;
            Ok(AskingRunOutcome::Created)
        })
    }

    /// The run that the same request created, if its question is still open.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn run_of_open_request(
        &self,
        principal: &Principal,
        request_mark: &str,
        now: i64,
    ) -> Result<Option<RunId>, Error> {
        self.read(|connection| same_request(connection, principal, request_mark, now))
    }

    /// The runs of a principal with open approvals, each with its session; oldest first.
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
                AND question_id IS NOT NULL AND answered = 0 AND coalesce(expires_at > ?3, TRUE)
             ORDER BY number LIMIT 1",
        )?
        .query_row(params![principal.0, mark, now], |row| run_id(row, 0))
        .optional()
}

/// Only approvals count towards the limit. Questions about layers and calls in doubt show no tools and approve
/// nothing.
fn open_questions(
    connection: &Connection,
    principal: &Principal,
    now: i64,
) -> rusqlite::Result<Vec<(RunId, String)>> {
    connection
        .prepare_cached(
            "SELECT id, session FROM run INDEXED BY run_asks
             WHERE question_id IS NOT NULL AND ended_at IS NULL AND answered = 0 AND principal = ?1
                AND coalesce(expires_at > ?2, TRUE)
                AND EXISTS (SELECT 1 FROM question_tool WHERE question_tool.run = run.number)
             ORDER BY number",
        )?
        .query_map(params![principal.0, now], |row| Ok((run_id(row, 0)?, row.get(1)?)))?
        .collect()
}

/// Whether any open question shows a tool of the server.
pub(crate) fn has_questions_about_server(
    connection: &Connection,
    server: &ServerName,
) -> rusqlite::Result<bool> {
    connection
        // `;` is the character after `:`, so this range holds every `server:tool` name of the server.
        .prepare_cached("SELECT 1 FROM question_tool WHERE tool > ?1 || ':' AND tool < ?1 || ';'")?
        .exists([server.as_str()])
}

/// Voids the questions that show a tool whose definition changes, including answered ones that no process has taken up
/// yet.
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
