//! Stores traces with the procedures they are of, and gives them back.

use pml_model::capability::{CapabilityId, ToolUse};
use pml_model::trace::{Body, Failed, Status, Trace, TraceId};
use pml_model::{Principal, RunId};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::capability::{self, NewProcedure};
use super::lesson::{Lesson, tells_intent};
use super::{IntentFit, Memory};
use crate::catalogue::unexpected;
use crate::database::MAX_BODY_BYTES;
use crate::run::run_id;
use crate::vouch::{mark_of_values, vouched};
use crate::{Error, Store};

/// Which traces are asked for.
#[derive(Debug, Clone)]
pub struct Traces {
    /// Those of this capability alone.
    pub capability: Option<CapabilityId>,
    /// Which first.
    pub order: Order,
    /// How many at most.
    pub limit: u32,
    /// Those that come after this one alone: the last of the page before.
    pub after: Option<TraceId>,
}

/// In which order traces are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Those stored last first.
    Newest,
    /// The most surprising first; those not learned from yet are left out.
    Priority,
}

impl Store {
    /// A trace.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn trace(&self, principal: &Principal, id: &TraceId) -> Result<Option<Trace>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "{SELECT} WHERE trace.principal = ?1 AND trace.id = ?2 AND {}",
                    vouched("trace", "trace")
                ))?
                .query_row([&principal.0, id.as_str()], trace)
                .optional()
        })
    }

    /// The trace of a run, once that is over.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn trace_of_run(&self, principal: &Principal, run: &RunId) -> Result<Option<Trace>, Error> {
        self.trace(principal, &TraceId::of(run))
    }

    /// The principal's traces, a page at a time.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn traces(&self, principal: &Principal, wanted: &Traces) -> Result<Vec<Trace>, Error> {
        self.read(|connection| list(connection, principal, wanted))
    }
}

fn list(connection: &Connection, principal: &Principal, wanted: &Traces) -> rusqlite::Result<Vec<Trace>> {
    let capability = match &wanted.capability {
        Some(id) => match capability::resolve(connection, principal, id)? {
            Some((number, _)) => Some(number),
            None => return Ok(Vec::new()),
        },
        None => None,
    };
    // One statement for each question, so that each has the index made for it.
    let of = if capability.is_some() { "trace.capability = ?2" } else { "?2 IS NULL" };
    let (after, order) = match (wanted.order, &wanted.after) {
        (Order::Newest, Some(_)) => {
            ("trace.seq < (SELECT seq FROM trace WHERE principal = ?1 AND id = ?3)", "trace.seq DESC")
        }
        (Order::Newest, None) => ("?3 IS NULL", "trace.seq DESC"),
        (Order::Priority, Some(_)) => (
            "trace.priority IS NOT NULL AND (trace.priority, trace.seq) <
                (SELECT priority, seq FROM trace WHERE principal = ?1 AND id = ?3)",
            "trace.priority DESC, trace.seq DESC",
        ),
        (Order::Priority, None) => {
            ("trace.priority IS NOT NULL AND ?3 IS NULL", "trace.priority DESC, trace.seq DESC")
        }
    };
    connection
        .prepare_cached(&format!(
            "{SELECT} WHERE trace.principal = ?1 AND {of} AND {after} AND {} ORDER BY {order} LIMIT ?4",
            vouched("trace", "trace")
        ))?
        .query_map(
            params![principal.0, capability, wanted.after.as_ref().map(TraceId::as_str), wanted.limit],
            trace,
        )?
        .collect()
}

/// The columns of [`trace`].
const SELECT: &str = "SELECT trace.id, trace.run, trace.principal, trace.session,
    (SELECT capability.id FROM capability WHERE capability.number = trace.capability), trace.plan_hash,
    trace.intent, trace.status, trace.error, trace.duration_ms, trace.created_at, trace.parent, trace.seq,
    trace.priority, trace.cached, trace.exploratory, trace.approved, trace_body.body
    FROM trace JOIN trace_body ON trace_body.seq = trace.seq";

fn trace(row: &Row<'_>) -> rusqlite::Result<Trace> {
    let capability = row.get_ref(4)?.as_str_or_null()?.map(CapabilityId::parse).transpose();
    let error = row.get_ref(8)?.as_str_or_null()?.map(serde_json::from_str::<Failed>).transpose();
    Ok(Trace {
        id: TraceId::written(row.get_ref(0)?.as_str()?),
        workflow_id: run_id(row, 1)?,
        principal: Principal(row.get(2)?),
        session: row.get(3)?,
        capability_id: capability.map_err(|error| unexpected(4, error))?,
        plan_hash: row.get(5)?,
        intent: row.get(6)?,
        status: status(row, 7)?,
        error: error.map_err(|error| unexpected(8, error))?,
        duration_ms: row.get(9)?,
        created_at: row.get(10)?,
        parent_trace_id: row.get_ref(11)?.as_str_or_null()?.map(TraceId::written),
        learn_seq: row.get(12)?,
        priority: row.get(13)?,
        cached: row.get(14)?,
        exploratory: row.get(15)?,
        approved: row.get(16)?,
        body: serde_json::from_str::<Body>(row.get_ref(17)?.as_str()?)
            .map_err(|error| unexpected(17, error))?,
    })
}

pub(super) fn status(row: &Row<'_>, column: usize) -> rusqlite::Result<Status> {
    let word = row.get_ref(column)?.as_str()?;
    Status::parse(word).ok_or_else(|| unexpected(column, format!("`{word}` is no status of a trace")))
}

/// The columns a trace is stored with; the mark of its row is of all of them.
pub(crate) const TRACE_COLUMNS: [&str; 19] = [
    "id",
    "run",
    "principal",
    "session",
    "capability",
    "own",
    "plan_hash",
    "intent",
    "status",
    "error",
    "duration_ms",
    "created_at",
    "parent",
    "cached",
    "exploratory",
    "approved",
    "first_tool",
    "last_tool",
    "tells",
];

/// What a run leaves behind, written out on the thread of whoever had it run.
pub(crate) struct Remembered {
    trace: Box<Trace>,
    body: String,
    lesson: String,
    error: Option<String>,
    procedure: Option<NewProcedure>,
    activates: bool,
    tools: Vec<ToolUse>,
    intent: IntentFit,
    untaught: bool,
    nested: Vec<Remembered>,
}

impl Remembered {
    pub(crate) fn of(memory: Memory) -> Result<Remembered, Error> {
        let Memory { procedure, activates, tools, values, intent, untaught, trace, nested } = memory;
        let text = |value: serde_json::Result<String>| value.expect("what a run leaves is plain data");
        let body = text(serde_json::to_string(&trace.body));
        let bytes = body.len();
        if bytes > MAX_BODY_BYTES {
            let (run, what, limit) = (trace.workflow_id.clone(), "the trace", MAX_BODY_BYTES);
            return Err(Error::TooLarge { run, what, bytes, limit });
        }
        Ok(Remembered {
            lesson: text(serde_json::to_string(&match untaught {
                true => Lesson::default(),
                false => Lesson::of(&trace.body, values),
            })),
            error: trace.error.as_ref().map(|error| text(serde_json::to_string(error))),
            procedure: procedure.map(|procedure| NewProcedure::of(*procedure)),
            nested: nested
                .into_iter()
                .map(|trace| Remembered::part(trace, tools.clone(), untaught))
                .collect::<Result<_, Error>>()?,
            body,
            activates,
            tools,
            intent,
            untaught,
            trace,
        })
    }

    /// What a part of a run leaves behind.
    fn part(trace: Trace, tools: Vec<ToolUse>, untaught: bool) -> Result<Remembered, Error> {
        Remembered::of(Memory {
            procedure: None,
            activates: false,
            tools,
            values: serde_json::Map::new(),
            // It was called and not asked for.
            intent: IntentFit::Unchecked,
            untaught,
            trace: Box::new(trace),
            nested: Vec::new(),
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        let procedure = self.procedure.as_ref().map_or(0, NewProcedure::bytes);
        let nested: usize = self.nested.iter().map(Remembered::bytes).sum();
        self.body.len() + self.lesson.len() + self.trace.intent.len() + procedure + nested
    }

    pub(crate) fn store(&self, connection: &Connection) -> rusqlite::Result<()> {
        let known = connection
            .prepare_cached("SELECT 1 FROM trace WHERE principal = ?1 AND id = ?2")?
            .exists([&self.trace.principal.0, self.trace.id.as_str()])?;
        if known {
            return Ok(());
        }
        let capability = self.capability(connection)?;
        self.insert(connection, capability)?;
        if let Some((number, _)) = capability {
            self.tell_intent(connection, number)?;
        }
        self.nested.iter().try_for_each(|part| part.store(connection))
    }

    /// The capability it counts for, and whether that is the very one that was run.
    fn capability(&self, connection: &Connection) -> rusqlite::Result<Option<(i64, bool)>> {
        let trace = &self.trace;
        match (&self.procedure, &trace.capability_id) {
            (Some(procedure), _) => {
                let approved = trace.approved && self.activates;
                let promoted_at = self.activates.then_some(trace.created_at);
                procedure.put(connection, promoted_at, approved, trace.created_at).map(Some)
            }
            (None, Some(id)) => {
                let found = capability::resolve(connection, &trace.principal, id)?;
                if let Some((number, true)) = found
                    && trace.status.evidence() == Some(true)
                {
                    self.confirm(connection, number)?;
                }
                Ok(found)
            }
            (None, None) => Ok(None),
        }
    }

    /// Notes of a capability what a run of it that worked shows beside the numbers.
    fn confirm(&self, connection: &Connection, capability: i64) -> rusqlite::Result<()> {
        // What was allowed is the run: of a capability that it called, nobody was asked by name.
        if self.trace.approved && self.trace.parent_trace_id.is_none() {
            capability::approve(connection, capability)?;
        }
        if self.tools.is_empty() {
            Ok(())
        } else {
            capability::works_with(connection, capability, &self.tools)
        }
    }

    fn insert(&self, connection: &Connection, capability: Option<(i64, bool)>) -> rusqlite::Result<()> {
        let trace = &self.trace;
        let mut called = trace.body.task_results.iter().filter(|task| !self.untaught && !task.is_operation());
        let first = called.next();
        let last = called.next_back().or(first);
        connection
            .prepare_cached(&format!(
                "INSERT INTO trace ({}, mark)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, {})",
                TRACE_COLUMNS.join(", "),
                mark_of_values("trace", &TRACE_COLUMNS)
            ))?
            .execute(params![
                trace.id.as_str(),
                trace.workflow_id.as_str(),
                trace.principal.0,
                trace.session,
                capability.map(|(number, _)| number),
                capability.is_none_or(|(_, own)| own),
                trace.plan_hash,
                trace.intent,
                trace.status.as_str(),
                self.error,
                trace.duration_ms,
                trace.created_at,
                trace.parent_trace_id.as_ref().map(TraceId::as_str),
                trace.cached,
                trace.exploratory,
                trace.approved,
                first.map(|task| &task.tool),
                last.map(|task| &task.tool),
                !self.untaught && self.intent != IntentFit::Misfit,
            ])?;
        connection
            .prepare_cached(&format!(
                "INSERT INTO trace_body (seq, lesson, body, mark) VALUES (?1, ?2, ?3, {})",
                mark_of_values("trace_body", &["seq", "lesson"])
            ))?
            .execute(params![connection.last_insert_rowid(), self.lesson, self.body])
            .map(drop)
    }

    /// Lets the capability be found at once by what it was run for; learning counts it.
    fn tell_intent(&self, connection: &Connection, capability: i64) -> rusqlite::Result<()> {
        let trace = &self.trace;
        let checked = match self.intent {
            IntentFit::Unchecked => 0,
            IntentFit::Fits(version) => version,
            IntentFit::Misfit => return Ok(()),
        };
        if trace.intent.is_empty() || !tells_intent(trace.status, trace.cached, trace.exploratory) {
            return Ok(());
        }
        capability::add_intent(connection, capability, &trace.intent, checked, trace.created_at)
    }
}
