//! Stores traces with their procedures, and reads them.

use std::sync::LazyLock;

use crate::sql::{Connection, OptionalExtension, Row, params};
use pml_model::capability::{CapabilityId, ToolUse};
use pml_model::learning::{Lesson, is_intent_evidence, result_digest};
use pml_model::observed::ObservedShape;
use pml_model::trace::{Trace, TraceBody, TraceFailure, TraceId};
use pml_model::{Principal, RunId};
use serde_json::{Map, Value};

use super::capability::{self, NewProcedure};
use super::explored::insert_explored;
use super::golden::keep_golden;
use super::{IntentFit, RunMemory, identity, publication};
use crate::column::{run_id, trace_status, unexpected_value};
use crate::connection::MAX_BODY_BYTES;
use crate::table::TRACE_COLUMNS;
use crate::vouch::{mark_sql, vouched_condition};
use crate::{BlockingStore, Error};

/// Filter, order and page of a list of traces.
#[derive(Debug, Clone)]
pub struct TraceQuery {
    /// Only traces of this capability.
    pub capability: Option<CapabilityId>,
    /// The sort order.
    pub order: TraceOrder,
    /// Maximum number of traces.
    pub limit: u32,
    /// Only traces after this one, the last of the previous page.
    pub after: Option<TraceId>,
}

/// Sort order of a list of traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceOrder {
    /// Stored last first.
    Newest,
    /// Highest priority (most surprising) first; traces that were not learned yet are left out.
    Priority,
}

impl BlockingStore {
    /// A trace by id.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn trace(&self, principal: &Principal, id: &TraceId) -> Result<Option<Trace>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "{SELECT} WHERE trace.principal = ?1 AND trace.id = ?2 AND {}",
                    vouched_condition("trace", "trace")
                ))?
                .query_row([&principal.0, id.as_str()], trace)
                .optional()
        })
    }

    /// The trace of a run, once the run has ended.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn trace_of_run(&self, principal: &Principal, run: &RunId) -> Result<Option<Trace>, Error> {
        self.trace(principal, &TraceId::of(run))
    }

    /// The principal's traces, one page.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn traces(&self, principal: &Principal, wanted: &TraceQuery) -> Result<Vec<Trace>, Error> {
        self.read(|connection| list(connection, principal, wanted))
    }
}

fn list(connection: &Connection, principal: &Principal, wanted: &TraceQuery) -> rusqlite::Result<Vec<Trace>> {
    let capability = match &wanted.capability {
        Some(id) => match identity::resolve_capability(connection, principal, id)? {
            Some((number, _)) => Some(number),
            None => return Ok(Vec::new()),
        },
        None => None,
    };
    // One statement per combination of filters, so that each uses the index made for it.
    let of = if capability.is_some() { "trace.capability = ?2" } else { "?2 IS NULL" };
    let (after, order) = match (wanted.order, &wanted.after) {
        (TraceOrder::Newest, Some(_)) => {
            ("trace.seq < (SELECT seq FROM trace WHERE principal = ?1 AND id = ?3)", "trace.seq DESC")
        }
        (TraceOrder::Newest, None) => ("?3 IS NULL", "trace.seq DESC"),
        (TraceOrder::Priority, Some(_)) => (
            "trace.priority IS NOT NULL AND (trace.priority, trace.seq) <
                (SELECT priority, seq FROM trace WHERE principal = ?1 AND id = ?3)",
            "trace.priority DESC, trace.seq DESC",
        ),
        (TraceOrder::Priority, None) => {
            ("trace.priority IS NOT NULL AND ?3 IS NULL", "trace.priority DESC, trace.seq DESC")
        }
    };
    connection
        .prepare_cached(&format!(
            "{SELECT} WHERE trace.principal = ?1 AND {of} AND {after} AND {} ORDER BY {order} LIMIT ?4",
            vouched_condition("trace", "trace")
        ))?
        .query_map(
            params![principal.0, capability, wanted.after.as_ref().map(TraceId::as_str), wanted.limit],
            trace,
        )?
        .collect()
}

/// The columns that [`trace`] reads.
const SELECT: &str = "SELECT trace.id, trace.run, trace.principal, trace.session,
    (SELECT capability.id FROM capability WHERE capability.number = trace.capability), trace.plan_hash,
    trace.intent, trace.status, trace.error, trace.duration_ms, trace.created_at, trace.parent, trace.seq,
    trace.priority, trace.cached, trace.exploratory, trace.approved, trace_body.body
    FROM trace JOIN trace_body ON trace_body.seq = trace.seq";

fn trace(row: &Row<'_>) -> rusqlite::Result<Trace> {
    let capability = row.get_ref(4)?.as_str_or_null()?.map(CapabilityId::parse).transpose();
    let error = row.get_ref(8)?.as_str_or_null()?.map(serde_json::from_str::<TraceFailure>).transpose();
    Ok(Trace {
        id: TraceId::from_text(row.get_ref(0)?.as_str()?),
        workflow_id: run_id(row, 1)?,
        principal: Principal(row.get(2)?),
        session: row.get(3)?,
        capability_id: capability.map_err(|error| unexpected_value(4, error))?,
        plan_hash: row.get(5)?,
        intent: row.get(6)?,
        status: trace_status(row, 7)?,
        error: error.map_err(|error| unexpected_value(8, error))?,
        duration_ms: row.get(9)?,
        created_at: row.get(10)?,
        parent_trace_id: row.get_ref(11)?.as_str_or_null()?.map(TraceId::from_text),
        learn_seq: row.get(12)?,
        priority: row.get(13)?,
        cached: row.get(14)?,
        exploratory: row.get(15)?,
        approved: row.get(16)?,
        body: serde_json::from_str::<TraceBody>(row.get_ref(17)?.as_str()?)
            .map_err(|error| unexpected_value(17, error))?,
    })
}

/// What is learned from a trace: the shape of a result counts for the capability that gave it.
fn lesson(trace: &Trace, values: Map<String, Value>, result: Option<ObservedShape>) -> Lesson {
    let mut lesson = Lesson::of(&trace.body, values);
    if let (Some(id), Some(shape)) = (&trace.capability_id, result) {
        lesson.observed_shapes.push((id.to_string(), result_digest(id), shape));
    }
    lesson
}

/// What a run leaves in memory, serialised on the thread of the caller.
pub(crate) struct EncodedMemory {
    trace: Box<Trace>,
    body: String,
    lesson: String,
    error: Option<String>,
    procedure: Option<NewProcedure>,
    activates: bool,
    tools: Vec<ToolUse>,
    intent: IntentFit,
    untaught: bool,
    golden: bool,
    nested: Vec<EncodedMemory>,
}

impl EncodedMemory {
    pub(crate) fn encode(memory: RunMemory) -> Result<EncodedMemory, Error> {
        let RunMemory {
            procedure,
            activates,
            tools,
            values,
            result,
            golden,
            intent,
            excluded_from_learning: untaught,
            trace,
            nested,
        } = memory;
        let text = |value: serde_json::Result<String>| value.expect("what a run leaves is plain data");
        let body = text(serde_json::to_string(&trace.body));
        let bytes = body.len();
        if bytes > MAX_BODY_BYTES {
            let (run, what, limit) = (trace.workflow_id.clone(), "the trace", MAX_BODY_BYTES);
            return Err(Error::TooLarge { run, what, bytes, limit });
        }
        Ok(EncodedMemory {
            lesson: text(serde_json::to_string(&match untaught {
                true => Lesson::default(),
                false => lesson(&trace, values, result),
            })),
            error: trace.error.as_ref().map(|error| text(serde_json::to_string(error))),
            procedure: procedure.map(|procedure| NewProcedure::encode(*procedure)),
            nested: nested
                .into_iter()
                .map(|trace| EncodedMemory::part(trace, tools.clone(), untaught))
                .collect::<Result<_, Error>>()?,
            body,
            activates,
            tools,
            intent,
            untaught,
            golden,
            trace,
        })
    }

    /// What a nested trace leaves in memory.
    fn part(trace: Trace, tools: Vec<ToolUse>, untaught: bool) -> Result<EncodedMemory, Error> {
        EncodedMemory::encode(RunMemory {
            procedure: None,
            activates: false,
            tools,
            values: Map::new(),
            result: None,
            golden: false,
            // A nested capability was called; nobody stated an intent for it.
            intent: IntentFit::Unchecked,
            excluded_from_learning: untaught,
            trace: Box::new(trace),
            nested: Vec::new(),
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        let procedure = self.procedure.as_ref().map_or(0, NewProcedure::bytes);
        let nested: usize = self.nested.iter().map(EncodedMemory::bytes).sum();
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
        if let (true, Some((number, true))) = (self.golden, capability) {
            let Trace { principal, workflow_id, created_at, .. } = &*self.trace;
            keep_golden(connection, (number, principal), workflow_id, *created_at)?;
        }
        self.nested.iter().try_for_each(|part| part.store(connection))
    }

    /// The number of the capability that the trace counts for, and whether that is the one that was run.
    fn capability(&self, connection: &Connection) -> rusqlite::Result<Option<(i64, bool)>> {
        let trace = &self.trace;
        match (&self.procedure, &trace.capability_id) {
            (Some(procedure), _) => {
                let approved = trace.approved && self.activates;
                let promoted_at = self.activates.then_some(trace.created_at);
                procedure.insert_or_update(connection, promoted_at, approved, trace.created_at).map(Some)
            }
            (None, Some(id)) => {
                let found = identity::resolve_capability(connection, &trace.principal, id)?;
                if let Some((number, true)) = found
                    && trace.status.evidence() == Some(true)
                {
                    self.confirm(connection, number)?;
                }
                if found.is_none() {
                    publication::count_use(connection, &trace.principal, id)?;
                }
                Ok(found)
            }
            (None, None) => Ok(None),
        }
    }

    /// Records what a successful run proves about a capability beside the numbers.
    fn confirm(&self, connection: &Connection, capability: i64) -> rusqlite::Result<()> {
        // An approval covers the run: nobody approved the capabilities that it called by name.
        if self.trace.approved && self.trace.parent_trace_id.is_none() {
            capability::mark_approved(connection, capability)?;
        }
        if self.tools.is_empty() {
            Ok(())
        } else {
            capability::record_tool_definitions(connection, capability, &self.tools)
        }
    }

    fn insert(&self, connection: &Connection, capability: Option<(i64, bool)>) -> rusqlite::Result<()> {
        let trace = &self.trace;
        let mut called = trace.body.task_results.iter().filter(|task| !self.untaught && !task.is_operation());
        let first = called.next();
        let last = called.next_back().or(first);
        static INSERT: LazyLock<String> = LazyLock::new(|| {
            format!(
                "INSERT INTO trace ({}, mark)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, {})",
                TRACE_COLUMNS.join(", "),
                mark_sql("trace", &TRACE_COLUMNS)
            )
        });
        connection.prepare_cached(&INSERT)?.execute(params![
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
        let seq = connection.last_insert_rowid();
        connection
            .prepare_cached(&format!(
                "INSERT INTO trace_body (seq, lesson, body, mark) VALUES (?1, ?2, ?3, {})",
                mark_sql("trace_body", &["seq", "lesson"])
            ))?
            .execute(params![seq, self.lesson, self.body])?;
        match &trace.body.explored {
            Some(explored) => insert_explored(connection, seq, &trace.principal, explored),
            None => Ok(()),
        }
    }

    /// Adds the intent at once, so that it finds the capability before learning counts it.
    fn tell_intent(&self, connection: &Connection, capability: i64) -> rusqlite::Result<()> {
        let trace = &self.trace;
        let checked = match self.intent {
            IntentFit::Unchecked => 0,
            IntentFit::Fits(version) => version,
            IntentFit::Misfit => return Ok(()),
        };
        if trace.intent.is_empty() || !is_intent_evidence(trace.status, trace.cached, trace.exploratory) {
            return Ok(());
        }
        capability::add_intent(connection, capability, &trace.intent, checked, trace.created_at)
    }
}
