//! Queries for people who look at runs: lists with filters, one run with its past, and pages of its calls.
//!
//! None of them reads more of a journal than it returns.

use crate::sql::{Connection, OptionalExtension, Row, params};
use pml_model::question::Question;
use pml_model::{CapabilityId, Principal, RunId, RunState};

use super::place::{entry_context, outcome_context, plan_context};
use super::read::{self, ROW, SealedRun, find_run, run_row, wrapped_key};
use super::{JournalEntry, RunRow, StoredAnswer};
use crate::seal::SealContext;
use crate::{BlockingStore, Error};

/// Filter and page of a list of runs for people, latest first.
#[derive(Debug, Clone, Default)]
pub struct RunListQuery {
    /// Only runs in this state.
    pub state: Option<RunState>,
    /// Only runs whose intent or id contains this text, whatever its case.
    pub text: Option<String>,
    /// Only runs that execute this capability, or became it.
    pub capability: Option<CapabilityId>,
    /// Only runs that called this tool, as `server:tool`. Runs whose journal is purged are left out.
    pub tool: Option<String>,
    /// Only runs created before this one.
    pub before: Option<RunId>,
    /// Maximum number of runs.
    pub limit: u32,
}

/// A run in a list.
#[derive(Debug, Clone)]
pub struct ListedRun {
    /// The row of the run. While the run has not ended, `calls` is the number of calls in its journal.
    pub run: RunRow,
    /// The name of the capability that it executes or became, if that still exists.
    pub capability_name: Option<String>,
    /// The open question, if there is one and it can be opened.
    pub question: Option<(String, Question)>,
}

/// A period in which one process worked on a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkPeriod {
    /// When the process began.
    pub from: i64,
    /// The last sign of its work; `None` while it works.
    pub to: Option<i64>,
}

/// A run with everything but its outcome and its journal, which may be large.
#[derive(Debug, Clone)]
pub struct RunHistory {
    /// The run as listed.
    pub listed: ListedRun,
    /// The plan; `None` once the records are purged.
    pub plan: Option<Vec<u8>>,
    /// All answers so far, oldest first.
    pub answers: Vec<StoredAnswer>,
    /// The periods in which processes worked on it.
    pub periods: Vec<WorkPeriod>,
}

/// The journal entries of some calls of a run.
#[derive(Debug, Clone)]
pub struct CallEntries {
    /// The row of the run.
    pub run: RunRow,
    /// The entries, by call and then in the order in which they were written.
    pub entries: Vec<JournalEntry>,
    /// Whether later calls exist.
    pub more: bool,
}

/// The name of a run's capability; that of the one it was merged into, if it was.
const CAPABILITY_NAME: &str = "(SELECT name FROM capability WHERE capability.principal = run.principal
        AND (capability.id = coalesce(run.capability, run.learned) OR capability.number = (
            SELECT capability_alias.capability FROM capability_alias
            WHERE capability_alias.id = coalesce(run.capability, run.learned))))";

/// The number of calls of a run. It is recorded when the run ends or is parked; until then the journal is newer.
const CALLS: &str = "CASE WHEN ended_at IS NOT NULL THEN calls ELSE (
        SELECT coalesce(max(call), 0) FROM journal INDEXED BY journal_call
        WHERE journal.run = run.number AND call IS NOT NULL) END";

impl BlockingStore {
    /// The principal's runs that match a filter, latest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn list_runs(&self, principal: &Principal, filter: &RunListQuery) -> Result<Vec<ListedRun>, Error> {
        let found = self.read(|connection| {
            list(connection, principal, filter)?
                .into_iter()
                .map(|(number, run, name)| {
                    let asks = run.question_id.is_some();
                    let sealed = asks.then(|| SealedRun::read(connection, number)).transpose()?;
                    Ok((run, name, sealed))
                })
                .collect::<rusqlite::Result<Vec<_>>>()
        })?;
        let listed = |(run, capability_name, sealed): (RunRow, Option<String>, Option<SealedRun>)| {
            let question = sealed.and_then(|sealed| self.open_listed_question(&run, sealed));
            ListedRun { run, capability_name, question }
        };
        Ok(found.into_iter().map(listed).collect())
    }

    /// The open question of a listed run. One that cannot be opened must not hide the other runs of the list.
    fn open_listed_question(&self, run: &RunRow, sealed: SealedRun) -> Option<(String, Question)> {
        let key = self.run_key(run, sealed.key).ok().flatten()?;
        read::open_question(&key, run, sealed.question).ok().flatten()
    }

    /// A run with everything but its outcome and its journal; `None` if the principal has no such run.
    ///
    /// # Errors
    /// The database cannot be read, or a sealed body cannot be opened.
    pub fn run_history(&self, principal: &Principal, id: &RunId) -> Result<Option<RunHistory>, Error> {
        let found = self.read(|connection| {
            let Some((number, mut run)) = find_run(connection, principal, id)? else { return Ok(None) };
            let (calls, name) = connection
                .prepare_cached(&format!("SELECT {CALLS}, {CAPABILITY_NAME} FROM run WHERE number = ?1"))?
                .query_row([number], |row| Ok((row.get(0)?, row.get(1)?)))?;
            run.calls = calls;
            let name: Option<String> = name;
            let periods = periods(connection, number, &run)?;
            let sealed = SealedRun::read_before_end(connection, number)?;
            Ok(Some((run, name, periods, sealed, read::answers(connection, number)?)))
        })?;
        let Some((run, capability_name, periods, sealed, answers)) = found else { return Ok(None) };
        let Some(key) = self.run_key(&run, sealed.key)? else {
            let listed = ListedRun { run, capability_name, question: None };
            return Ok(Some(RunHistory { listed, plan: None, answers: Vec::new(), periods }));
        };
        let question = read::open_question(&key, &run, sealed.question)?;
        Ok(Some(RunHistory {
            plan: read::open(&key, &plan_context(id), sealed.plan)?,
            answers: answers.into_iter().map(|answer| answer.open(&key, id)).collect::<Result<_, _>>()?,
            listed: ListedRun { run, capability_name, question },
            periods,
        }))
    }

    /// The plan of a run; `None` once its records are purged.
    ///
    /// # Errors
    /// The principal has no such run, the database cannot be read, or the plan cannot be opened.
    pub fn run_plan(&self, principal: &Principal, id: &RunId) -> Result<Option<Vec<u8>>, Error> {
        self.run_part(principal, id, "plan", &plan_context(id))
    }

    /// The outcome of a run; `None` until it has one, and once its records are purged.
    ///
    /// # Errors
    /// The principal has no such run, the database cannot be read, or the outcome cannot be opened.
    pub fn run_outcome(&self, principal: &Principal, id: &RunId) -> Result<Option<Vec<u8>>, Error> {
        self.run_part(principal, id, "outcome", &outcome_context(id))
    }

    /// One of the sealed bodies of a run.
    fn run_part(
        &self,
        principal: &Principal,
        id: &RunId,
        part: &str,
        context: &SealContext,
    ) -> Result<Option<Vec<u8>>, Error> {
        let found = self.read(|connection| {
            let Some((number, run)) = find_run(connection, principal, id)? else { return Ok(None) };
            let body: Option<Vec<u8>> = connection
                .prepare_cached("SELECT body FROM run_body WHERE run = ?1 AND part = ?2")?
                .query_row(params![number, part], |row| row.get(0))
                .optional()?;
            Ok(Some((run, wrapped_key(connection, number)?, body)))
        })?;
        let Some((run, wrapped, body)) = found else { return Err(Error::UnknownRun { run: id.clone() }) };
        match self.run_key(&run, wrapped)? {
            Some(key) => read::open(&key, context, body),
            None => Ok(None),
        }
    }

    /// The journal entries of the calls after number `after`, at most `limit` calls.
    ///
    /// # Errors
    /// The principal has no such run, its records are purged, the database cannot be read, or an entry cannot be
    /// opened.
    pub fn run_calls(
        &self,
        principal: &Principal,
        id: &RunId,
        after: u32,
        limit: u32,
    ) -> Result<CallEntries, Error> {
        let last = after.saturating_add(limit);
        let found = self.read(|connection| {
            let Some((number, run)) = find_run(connection, principal, id)? else { return Ok(None) };
            let entries: Vec<(i64, JournalEntry)> = connection
                .prepare_cached(
                    "SELECT seq, kind, call, frame, node, tool, digest, at, body
                     FROM journal INDEXED BY journal_call
                     WHERE run = ?1 AND call IS NOT NULL AND call > ?2 AND call <= ?3 ORDER BY call, seq",
                )?
                .query_map(params![number, after, last], read::sealed_entry)?
                .collect::<rusqlite::Result<_>>()?;
            let more = connection
                .prepare_cached(
                    "SELECT 1 FROM journal INDEXED BY journal_call
                     WHERE run = ?1 AND call IS NOT NULL AND call > ?2 LIMIT 1",
                )?
                .exists(params![number, last])?;
            Ok(Some((run, wrapped_key(connection, number)?, entries, more)))
        })?;
        let Some((run, wrapped, entries, more)) = found else {
            return Err(Error::UnknownRun { run: id.clone() });
        };
        let key = self.run_key(&run, wrapped)?.ok_or_else(|| Error::RecordsExpired { run: id.clone() })?;
        let open = |(number, mut entry): (i64, JournalEntry)| {
            let place = entry_context(id, number, &entry);
            entry.body = key.open(&place, std::mem::take(&mut entry.body))?;
            Ok(entry)
        };
        let entries = entries.into_iter().map(open).collect::<Result<_, Error>>()?;
        Ok(CallEntries { run, entries, more })
    }
}

/// Rows of runs with their numbers and the names of their capabilities.
fn list(
    connection: &Connection,
    principal: &Principal,
    filter: &RunListQuery,
) -> rusqlite::Result<Vec<(i64, RunRow, Option<String>)>> {
    // One statement per combination of filters, so that each uses the index made for it.
    let only = |given: bool, condition: &'static str, unused: &'static str| {
        if given { condition } else { unused }
    };
    let state = only(filter.state.is_some(), "state = ?2", "?2 IS NULL");
    let before = only(
        filter.before.is_some(),
        "number < (SELECT number FROM run WHERE id = ?3 AND principal = ?1)",
        "?3 IS NULL",
    );
    let text =
        only(filter.text.is_some(), "(intent LIKE ?4 ESCAPE '\\' OR id LIKE ?4 ESCAPE '\\')", "?4 IS NULL");
    let capability = only(filter.capability.is_some(), "coalesce(capability, learned) = ?5", "?5 IS NULL");
    let tool = only(
        filter.tool.is_some(),
        "EXISTS (SELECT 1 FROM journal WHERE journal.run = run.number AND journal.kind = 'issued'
            AND journal.tool = ?6)",
        "?6 IS NULL",
    );
    let statement = format!(
        "SELECT {ROW}, number, {CALLS}, {CAPABILITY_NAME} FROM run
         WHERE principal = ?1 AND {state} AND {before} AND {text} AND {capability} AND {tool}
         ORDER BY number DESC LIMIT ?7"
    );
    let listed = |row: &Row<'_>| {
        let mut run = run_row(row)?;
        run.calls = row.get(26)?;
        Ok((row.get(25)?, run, row.get(27)?))
    };
    connection
        .prepare_cached(&statement)?
        .query_map(
            params![
                principal.0,
                filter.state.map(RunState::as_str),
                filter.before.as_ref().map(RunId::as_str),
                filter.text.as_deref().map(containing),
                filter.capability.as_ref().map(CapabilityId::as_str),
                filter.tool,
                filter.limit
            ],
            listed,
        )?
        .collect()
}

/// The pattern of `LIKE` for texts that contain `text`.
fn containing(text: &str) -> String {
    let mut pattern = String::from("%");
    for character in text.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern + "%"
}

/// The periods in which processes worked on a run. When a process died is not recorded, so its period ends with the
/// last entry it wrote.
fn periods(connection: &Connection, number: i64, run: &RunRow) -> rusqlite::Result<Vec<WorkPeriod>> {
    let begun: Vec<i64> = connection
        .prepare_cached("SELECT at FROM run_claim WHERE run = ?1 ORDER BY fence")?
        .query_map([number], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut last_entry =
        connection.prepare_cached("SELECT max(at) FROM journal WHERE run = ?1 AND at >= ?2 AND at < ?3")?;
    let mut periods = Vec::with_capacity(begun.len());
    for (index, from) in begun.iter().copied().enumerate() {
        let next = begun.get(index + 1).copied();
        let to = match (next, run.ended_at, run.state) {
            (None, Some(ended), _) => Some(ended.max(from)),
            (None, None, RunState::Running) => None,
            (next, _, _) => {
                let written: Option<i64> = last_entry
                    .query_row(params![number, from, next.unwrap_or(i64::MAX)], |row| row.get(0))?;
                Some(written.unwrap_or(from))
            }
        };
        periods.push(WorkPeriod { from, to });
    }
    Ok(periods)
}
