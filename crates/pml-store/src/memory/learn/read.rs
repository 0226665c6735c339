//! Reads traces in the order of learning, with the current knowledge of everything they touch.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use crate::sql::{Connection, OptionalExtension, Row, params};
use pml_model::capability::CapabilityStatistics;
use pml_model::learning::{LearnedCapability, LearningState, Lesson, NewTrace, ObservedTool, PreviousTrace};
use pml_model::trace::TraceStatus;
use pml_model::{CapabilityId, Principal};

use crate::column::{capability_id, json_column, trace_status};
use crate::memory::observed;
use crate::vouch::vouched_condition;

/// A stored trace.
pub(super) struct TraceRow {
    pub(super) seq: i64,
    pub(super) priority: Option<f64>,
    id: String,
    principal: Principal,
    session: String,
    capability: Option<i64>,
    own: bool,
    intent: String,
    status: TraceStatus,
    error: Option<String>,
    duration_ms: i64,
    created_at: i64,
    parent: Option<String>,
    cached: bool,
    exploratory: bool,
    tells: bool,
    first_tool: Option<String>,
    last_tool: Option<String>,
    lesson: Lesson,
}

/// The columns that [`trace_row`] reads.
const COLUMNS: &str =
    "trace.seq, trace.id, trace.principal, trace.session, trace.capability, trace.own, trace.intent, trace.status,
    trace.error, trace.duration_ms, trace.created_at, trace.parent, trace.cached, trace.exploratory, trace.first_tool,
    trace.last_tool, trace.priority, trace_body.lesson, trace.tells";

/// Traces in the order of learning, without the damaged ones.
pub(super) struct TraceRows {
    /// Position of the last row, damaged or not: the cursor has to move past it.
    pub(super) last: i64,
    /// Number of rows, damaged ones included.
    pub(super) count: usize,
    pub(super) sound: Vec<TraceRow>,
}

/// The next traces in the order of learning; `None` if there are no more.
pub(super) fn rows_after(
    connection: &Connection,
    seq: i64,
    limit: usize,
) -> rusqlite::Result<Option<TraceRows>> {
    rows(connection, "WHERE trace.seq > ?1 ORDER BY trace.seq LIMIT ?2", params![seq, limit as i64])
}

/// The next learned traces that count for a capability.
pub(super) fn rows_of_capability(
    connection: &Connection,
    capability: i64,
    seq: i64,
    learned_to: i64,
    limit: usize,
) -> rusqlite::Result<Option<TraceRows>> {
    rows(
        connection,
        "WHERE capability = ?1 AND trace.seq > ?2 AND trace.seq <= ?3 ORDER BY trace.seq LIMIT ?4",
        params![capability, seq, learned_to, limit as i64],
    )
}

fn rows(
    connection: &Connection,
    which: &str,
    params: &[&dyn rusqlite::ToSql],
) -> rusqlite::Result<Option<TraceRows>> {
    let sound = ["trace", "trace_body"].map(|table| vouched_condition(table, table)).join(" AND ");
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS}, {sound} FROM trace LEFT JOIN trace_body ON trace_body.seq = trace.seq {which}"
    ))?;
    let mut found = statement.query(params)?;
    let mut rows: Option<TraceRows> = None;
    while let Some(row) = found.next()? {
        let (last, sound): (i64, Option<bool>) = (row.get(0)?, row.get(19)?);
        let rows = rows.get_or_insert_with(|| TraceRows { last, count: 0, sound: Vec::new() });
        (rows.last, rows.count) = (last, rows.count + 1);
        if sound == Some(true) {
            rows.sound.push(trace_row(&row)?);
        }
    }
    Ok(rows)
}

fn trace_row(row: &Row<'_>) -> rusqlite::Result<TraceRow> {
    Ok(TraceRow {
        seq: row.get(0)?,
        id: row.get(1)?,
        principal: Principal(row.get(2)?),
        session: row.get(3)?,
        capability: row.get(4)?,
        own: row.get(5)?,
        intent: row.get(6)?,
        status: trace_status(row, 7)?,
        error: row.get(8)?,
        duration_ms: row.get(9)?,
        created_at: row.get(10)?,
        parent: row.get(11)?,
        cached: row.get(12)?,
        exploratory: row.get(13)?,
        first_tool: row.get(14)?,
        last_tool: row.get(15)?,
        priority: row.get(16)?,
        lesson: json_column(row, 17)?,
        tells: row.get(18)?,
    })
}

/// Traces with the current knowledge of everything they touch. Damaged rows are treated as missing.
pub(super) struct TraceBatch<'a> {
    connection: &'a Connection,
    pub(super) state: LearningState,
    pub(super) traces: Vec<NewTrace>,
    /// Ids of capabilities by their numbers; `None` for damaged ones.
    ids: HashMap<i64, Option<CapabilityId>>,
    /// The sessions whose last trace before the batch was looked up already.
    sessions: HashSet<(Principal, String)>,
    /// Whether the row of an observed tool is undamaged or missing.
    observable: HashMap<ObservedTool, bool>,
}

impl<'a> TraceBatch<'a> {
    pub(super) fn new(connection: &'a Connection) -> TraceBatch<'a> {
        TraceBatch {
            connection,
            state: LearningState::default(),
            traces: Vec::new(),
            ids: HashMap::new(),
            sessions: HashSet::new(),
            observable: HashMap::new(),
        }
    }

    /// Numbers of the loaded capabilities, by id.
    pub(super) fn numbers(&self) -> HashMap<CapabilityId, i64> {
        self.ids.iter().filter_map(|(number, id)| Some((id.clone()?, *number))).collect()
    }

    /// Adds a trace with its capability only.
    pub(super) fn add(&mut self, row: TraceRow) -> rusqlite::Result<()> {
        let capability = row.capability.map(|number| self.id(number)).transpose()?.flatten();
        self.traces.push(NewTrace {
            seq: row.seq,
            principal: row.principal,
            session: row.session,
            capability,
            is_own_procedure: row.own,
            intent: row.intent,
            status: row.status,
            error: row.error.and_then(|error| serde_json::from_str(&error).ok()),
            duration_ms: row.duration_ms,
            created_at: row.created_at,
            is_nested: row.parent.is_some(),
            cached: row.cached,
            exploratory: row.exploratory,
            intent_counts: row.tells,
            first_tool: row.first_tool,
            last_tool: row.last_tool,
            caller: None,
            callees: Vec::new(),
            lesson: row.lesson,
        });
        Ok(())
    }

    /// Adds a trace with everything that it touches.
    pub(super) fn add_whole(&mut self, mut row: TraceRow) -> rusqlite::Result<()> {
        if row.parent.is_none() {
            self.load_previous(&row)?;
        }
        let (mut called_by, mut called) = (None, Vec::new());
        if !row.cached {
            (called_by, called) = (self.caller(&row)?, self.callees(&row)?);
            self.load_observed(&mut row)?;
        }
        self.add(row)?;
        if let Some(trace) = self.traces.last_mut() {
            (trace.caller, trace.callees) = (called_by, called);
        }
        Ok(())
    }

    /// The id of a capability; loads what was learned of it first.
    fn id(&mut self, number: i64) -> rusqlite::Result<Option<CapabilityId>> {
        if let Some(id) = self.ids.get(&number) {
            return Ok(id.clone());
        }
        let found = capability(self.connection, number)?;
        let id = found.map(|(id, known)| {
            self.state.capabilities.insert(id.clone(), known);
            id
        });
        self.ids.insert(number, id.clone());
        Ok(id)
    }

    /// Loads the last trace of the session before the batch.
    fn load_previous(&mut self, row: &TraceRow) -> rusqlite::Result<()> {
        let session = (row.principal.clone(), row.session.clone());
        if !self.sessions.insert(session.clone()) {
            return Ok(());
        }
        let previous = self
            .connection
            .prepare_cached(
                "SELECT trace.capability, trace.created_at, trace.last_tool, trace_body.lesson
                 FROM trace LEFT JOIN trace_body ON trace_body.seq = trace.seq
                 WHERE trace.principal = ?1 AND trace.session = ?2 AND trace.parent IS NULL
                     AND NOT trace.exploratory AND trace.seq < ?3
                 ORDER BY trace.seq DESC LIMIT 1",
            )?
            .query_row(params![row.principal.0, row.session, row.seq], |row| {
                let lesson: Option<String> = row.get(3)?;
                let lesson = lesson.and_then(|lesson| serde_json::from_str::<Lesson>(&lesson).ok());
                let calls = lesson.unwrap_or_default().calls;
                Ok((row.get::<_, Option<i64>>(0)?, row.get(1)?, row.get(2)?, calls))
            })
            .optional()?;
        let Some((capability, created_at, last_tool, calls)) = previous else { return Ok(()) };
        let capability = capability.map(|number| self.id(number)).transpose()?.flatten();
        self.state.sessions.insert(session, PreviousTrace { capability, created_at, last_tool, calls });
        Ok(())
    }

    /// The capability that called this one, if its trace was stored before.
    fn caller(&mut self, row: &TraceRow) -> rusqlite::Result<Option<CapabilityId>> {
        let (Some(parent), Some(_)) = (&row.parent, row.capability) else { return Ok(None) };
        let number: Option<i64> = self
            .connection
            .prepare_cached(
                "SELECT capability FROM trace
                 WHERE principal = ?1 AND id = ?2 AND seq < ?3 AND capability IS NOT NULL",
            )?
            .query_row(params![row.principal.0, parent, row.seq], |row| row.get(0))
            .optional()?;
        Ok(number.map(|number| self.id(number)).transpose()?.flatten())
    }

    /// The capabilities that this one called, as far as their traces were stored before.
    fn callees(&mut self, row: &TraceRow) -> rusqlite::Result<Vec<CapabilityId>> {
        if row.capability.is_none() {
            return Ok(Vec::new());
        }
        let numbers: Vec<i64> = self
            .connection
            .prepare_cached(
                "SELECT capability FROM trace
                 WHERE principal = ?1 AND parent = ?2 AND seq < ?3 AND capability IS NOT NULL AND NOT cached",
            )?
            .query_map(params![row.principal.0, row.id, row.seq], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        numbers.into_iter().filter_map(|number| self.id(number).transpose()).collect()
    }

    /// Loads the observed results of tools. A damaged row must not be updated, because that would authenticate it;
    /// such a tool is left out.
    fn load_observed(&mut self, row: &mut TraceRow) -> rusqlite::Result<()> {
        let mut seen = std::mem::take(&mut row.lesson.observed_shapes);
        for (tool, digest, _) in &seen {
            let key = (row.principal.clone(), tool.clone(), digest.clone());
            if let Entry::Vacant(vacant) = self.observable.entry(key) {
                let found = observed::find_observed(self.connection, vacant.key())?;
                if let Some(Some(shape)) = &found {
                    self.state.observed.insert(vacant.key().clone(), shape.clone());
                }
                vacant.insert(!matches!(found, Some(None)));
            }
        }
        seen.retain(|(tool, digest, _)| {
            let key = (row.principal.clone(), tool.clone(), digest.clone());
            self.observable.get(&key).copied().unwrap_or_default()
        });
        row.lesson.observed_shapes = seen;
        Ok(())
    }
}

/// A capability and what was learned of it; `None` if the row is damaged.
fn capability(
    connection: &Connection,
    number: i64,
) -> rusqlite::Result<Option<(CapabilityId, LearnedCapability)>> {
    connection
        .prepare_cached(&format!(
            "SELECT id, usage_count, success_count, failure_count, failures_in_a_row, avg_duration_ms, last_used,
                failing, worked_seq, learning, examples
             FROM capability WHERE number = ?1 AND {}",
            vouched_condition("capability", "capability")
        ))?
        .query_row([number], |row| {
            let learned = LearnedCapability {
                statistics: CapabilityStatistics {
                    usage_count: row.get(1)?,
                    success_count: row.get(2)?,
                    failure_count: row.get(3)?,
                    failures_in_a_row: row.get(4)?,
                    avg_duration_ms: row.get(5)?,
                    last_used: row.get(6)?,
                },
                failing_because: row.get(7)?,
                last_success_seq: row.get(8)?,
                learning: json_column(row, 9)?,
                examples: json_column(row, 10)?,
            };
            Ok((capability_id(row, 0)?, learned))
        })
        .optional()
}
