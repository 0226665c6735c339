//! Reads traces in the order of learning, and what is known of all that they touch.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use pml_model::capability::Statistics;
use pml_model::learning::{LearnedCapability, LearningState, Lesson, NewTrace, ObservedTool, PreviousTrace};
use pml_model::trace::Status;
use pml_model::{CapabilityId, Principal};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::column::{capability_id, json, trace_status};
use crate::memory::observed;
use crate::vouch::vouched;

/// A trace as it is stored.
pub(super) struct TraceRow {
    pub(super) seq: i64,
    pub(super) priority: Option<f64>,
    id: String,
    principal: Principal,
    session: String,
    capability: Option<i64>,
    own: bool,
    intent: String,
    status: Status,
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

/// The columns of [`trace_row`].
const COLUMNS: &str =
    "trace.seq, trace.id, trace.principal, trace.session, trace.capability, trace.own, trace.intent, trace.status,
    trace.error, trace.duration_ms, trace.created_at, trace.parent, trace.cached, trace.exploratory, trace.first_tool,
    trace.last_tool, trace.priority, trace_body.lesson, trace.tells";

/// Traces in the order of learning, those that are damaged left out.
pub(super) struct Rows {
    /// The place of the last one, damaged or not: learning has to get past it.
    pub(super) last: i64,
    /// How many there were, damaged or not.
    pub(super) count: usize,
    pub(super) sound: Vec<TraceRow>,
}

/// The next traces in the order of learning; `None` where there are no more.
pub(super) fn rows_after(connection: &Connection, seq: i64, limit: usize) -> rusqlite::Result<Option<Rows>> {
    rows(connection, "WHERE trace.seq > ?1 ORDER BY trace.seq LIMIT ?2", params![seq, limit as i64])
}

/// The next ones of those that count for a capability, as far as they were learned from.
pub(super) fn rows_of(
    connection: &Connection,
    capability: i64,
    seq: i64,
    learned_to: i64,
    limit: usize,
) -> rusqlite::Result<Option<Rows>> {
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
) -> rusqlite::Result<Option<Rows>> {
    let sound = ["trace", "trace_body"].map(|table| vouched(table, table)).join(" AND ");
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS}, {sound} FROM trace LEFT JOIN trace_body ON trace_body.seq = trace.seq {which}"
    ))?;
    let mut found = statement.query(params)?;
    let mut rows: Option<Rows> = None;
    while let Some(row) = found.next()? {
        let (last, sound): (i64, Option<bool>) = (row.get(0)?, row.get(19)?);
        let rows = rows.get_or_insert_with(|| Rows { last, count: 0, sound: Vec::new() });
        (rows.last, rows.count) = (last, rows.count + 1);
        if sound == Some(true) {
            rows.sound.push(trace_row(row)?);
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
        lesson: json(row, 17)?,
        tells: row.get(18)?,
    })
}

/// Traces with what is known of all that they touch. Damaged rows are as if they were not there.
pub(super) struct Batch<'a> {
    connection: &'a Connection,
    pub(super) state: LearningState,
    pub(super) traces: Vec<NewTrace>,
    /// The ids of capabilities by their numbers; `None` for those that are damaged.
    ids: HashMap<i64, Option<CapabilityId>>,
    /// The sessions whose trace before the first one of the batch was looked for.
    sessions: HashSet<(Principal, String)>,
    /// Which of the tools that were seen to return something have a sound row, or none.
    observable: HashMap<ObservedTool, bool>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(connection: &'a Connection) -> Batch<'a> {
        Batch {
            connection,
            state: LearningState::default(),
            traces: Vec::new(),
            ids: HashMap::new(),
            sessions: HashSet::new(),
            observable: HashMap::new(),
        }
    }

    /// The numbers of the capabilities that are known.
    pub(super) fn numbers(&self) -> HashMap<CapabilityId, i64> {
        self.ids.iter().filter_map(|(number, id)| Some((id.clone()?, *number))).collect()
    }

    /// Adds a trace, with its capability alone.
    pub(super) fn add(&mut self, row: TraceRow) -> rusqlite::Result<()> {
        let capability = row.capability.map(|number| self.id(number)).transpose()?.flatten();
        self.traces.push(NewTrace {
            seq: row.seq,
            principal: row.principal,
            session: row.session,
            capability,
            own: row.own,
            intent: row.intent,
            status: row.status,
            error: row.error.and_then(|error| serde_json::from_str(&error).ok()),
            duration_ms: row.duration_ms,
            created_at: row.created_at,
            is_part: row.parent.is_some(),
            cached: row.cached,
            exploratory: row.exploratory,
            tells: row.tells,
            first_tool: row.first_tool,
            last_tool: row.last_tool,
            called_by: None,
            called: Vec::new(),
            lesson: row.lesson,
        });
        Ok(())
    }

    /// Adds a trace with all that it touches.
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
            (trace.called_by, trace.called) = (called_by, called);
        }
        Ok(())
    }

    /// The id of a capability, once what is known of it is at hand.
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

    /// The trace before the first one of a session.
    fn load_previous(&mut self, row: &TraceRow) -> rusqlite::Result<()> {
        let session = (row.principal.clone(), row.session.clone());
        if !self.sessions.insert(session.clone()) {
            return Ok(());
        }
        let previous = self
            .connection
            .prepare_cached(
                "SELECT capability, created_at, last_tool FROM trace
                 WHERE principal = ?1 AND session = ?2 AND parent IS NULL AND seq < ?3 ORDER BY seq DESC LIMIT 1",
            )?
            .query_row(params![row.principal.0, row.session, row.seq], |row| {
                Ok((row.get::<_, Option<i64>>(0)?, row.get(1)?, row.get(2)?))
            })
            .optional()?;
        let Some((capability, created_at, last_tool)) = previous else { return Ok(()) };
        let capability = capability.map(|number| self.id(number)).transpose()?.flatten();
        self.state.sessions.insert(session, PreviousTrace { capability, created_at, last_tool });
        Ok(())
    }

    /// The capability that called this one, where its trace was stored before.
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

    /// What tools were seen to return. Counting on from a damaged row would vouch for it, so such a tool is left out.
    fn load_observed(&mut self, row: &mut TraceRow) -> rusqlite::Result<()> {
        let mut seen = std::mem::take(&mut row.lesson.seen);
        for (tool, digest, _) in &seen {
            let key = (row.principal.clone(), tool.clone(), digest.clone());
            if let Entry::Vacant(vacant) = self.observable.entry(key) {
                let found = observed::find(self.connection, vacant.key())?;
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
        row.lesson.seen = seen;
        Ok(())
    }
}

/// A capability and what has been learned of it; nothing where the row is damaged.
fn capability(
    connection: &Connection,
    number: i64,
) -> rusqlite::Result<Option<(CapabilityId, LearnedCapability)>> {
    connection
        .prepare_cached(&format!(
            "SELECT id, usage_count, success_count, failure_count, failures_in_a_row, avg_duration_ms, last_used,
                failing, worked_seq, learning, examples
             FROM capability WHERE number = ?1 AND {}",
            vouched("capability", "capability")
        ))?
        .query_row([number], |row| {
            let learned = LearnedCapability {
                statistics: Statistics {
                    usage_count: row.get(1)?,
                    success_count: row.get(2)?,
                    failure_count: row.get(3)?,
                    failures_in_a_row: row.get(4)?,
                    avg_duration_ms: row.get(5)?,
                    last_used: row.get(6)?,
                },
                failing: row.get(7)?,
                worked_seq: row.get(8)?,
                learning: json(row, 9)?,
                examples: json(row, 10)?,
            };
            Ok((capability_id(row, 0)?, learned))
        })
        .optional()
}
