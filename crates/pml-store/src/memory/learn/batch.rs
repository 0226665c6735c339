//! What traces that are learned together change, held in memory until all of them are taken in.

use std::collections::HashMap;
use std::collections::btree_map::{BTreeMap, Entry};

use pml_model::trace::{EdgeKind, Status};
use pml_model::{CapabilityId, Digest, Principal};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::known::{Effect, Known};
use crate::column::{trace_status, unexpected};
use crate::memory::cache;
use crate::memory::edge::Edges;
use crate::memory::lesson::Lesson;
use crate::memory::next_version;
use crate::memory::observed::Seen;
use crate::memory::tool_use::Uses;
use crate::vouch::vouched;

/// How long after a run another in the same session follows it.
const FOLLOWS_MS: i64 = 30 * 60 * 1000;

/// What learning reads of a trace.
pub(super) struct TraceRow {
    pub(super) seq: i64,
    id: String,
    principal: Principal,
    session: String,
    capability: Option<i64>,
    pub(super) own: bool,
    pub(super) intent: String,
    pub(super) status: Status,
    pub(super) error: Option<String>,
    pub(super) duration_ms: i64,
    pub(super) created_at: i64,
    parent: Option<String>,
    pub(super) cached: bool,
    pub(super) exploratory: bool,
    /// Its intent counts for its capability.
    pub(super) tells: bool,
    first_tool: Option<String>,
    last_tool: Option<String>,
    priority: Option<f64>,
    lesson: String,
}

/// The columns of [`trace_row`].
const COLUMNS: &str =
    "trace.seq, trace.id, trace.principal, trace.session, trace.capability, trace.own, trace.intent, trace.status,
    trace.error, trace.duration_ms, trace.created_at, trace.parent, trace.cached, trace.exploratory, trace.first_tool,
    trace.last_tool, trace.priority, trace_body.lesson, trace.tells";

/// Gives also those that are damaged: learning has to get past them.
fn select() -> String {
    let sound = ["trace", "trace_body"].map(|table| vouched(table, table)).join(" AND ");
    format!("SELECT {COLUMNS}, {sound} FROM trace LEFT JOIN trace_body ON trace_body.seq = trace.seq")
}

/// The place of a trace in the order of learning, and the trace unless it is damaged.
pub(super) type Place = (i64, Option<TraceRow>);

/// The next traces in the order of learning.
pub(super) fn rows_after(connection: &Connection, seq: i64, limit: usize) -> rusqlite::Result<Vec<Place>> {
    connection
        .prepare_cached(&format!("{} WHERE trace.seq > ?1 ORDER BY trace.seq LIMIT ?2", select()))?
        .query_map(params![seq, limit as i64], place)?
        .collect()
}

/// The next ones of those that count for a capability, as far as they were learned from.
pub(super) fn rows_of(
    connection: &Connection,
    capability: i64,
    seq: i64,
    learned_to: i64,
    limit: usize,
) -> rusqlite::Result<Vec<Place>> {
    connection
        .prepare_cached(&format!(
            "{} WHERE capability = ?1 AND trace.seq > ?2 AND trace.seq <= ?3 ORDER BY trace.seq LIMIT ?4",
            select()
        ))?
        .query_map(params![capability, seq, learned_to, limit as i64], place)?
        .collect()
}

fn place(row: &Row<'_>) -> rusqlite::Result<Place> {
    let sound: Option<bool> = row.get(19)?;
    Ok((row.get(0)?, if sound == Some(true) { Some(trace_row(row)?) } else { None }))
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
        lesson: row.get(17)?,
        tells: row.get(18)?,
    })
}

impl TraceRow {
    fn lesson(&self) -> rusqlite::Result<Lesson> {
        serde_json::from_str(&self.lesson).map_err(|error| unexpected(17, error))
    }
}

/// The trace that came last in a session.
struct Previous {
    capability: Option<i64>,
    created_at: i64,
    last_tool: Option<String>,
}

pub(super) struct Batch<'a> {
    connection: &'a Connection,
    /// Traces up to this one have had their effects.
    effects_to: i64,
    now: i64,
    /// `None` for those that are damaged.
    capabilities: BTreeMap<i64, Option<Known>>,
    sessions: HashMap<(String, String), Previous>,
    edges: Edges,
    seen: Seen,
    uses: Uses,
}

impl<'a> Batch<'a> {
    pub(super) fn new(connection: &'a Connection, effects_to: i64, now: i64) -> Batch<'a> {
        Batch {
            connection,
            effects_to,
            now,
            capabilities: BTreeMap::new(),
            sessions: HashMap::new(),
            edges: Edges::default(),
            seen: Seen::default(),
            uses: Uses::default(),
        }
    }

    /// Takes in a trace.
    pub(super) fn learn(&mut self, trace: &TraceRow) -> rusqlite::Result<()> {
        let lesson = trace.lesson()?;
        self.fold(trace, &lesson)?;
        self.follow(trace)?;
        if trace.cached {
            return Ok(());
        }
        self.contain(trace)?;
        for (from, to, kind) in lesson.edges {
            self.edges.add(&trace.principal, from, to, kind);
        }
        for (tool, uses) in lesson.uses {
            self.uses.add(&trace.principal, tool, uses);
        }
        for (tool, digest, shape) in lesson.seen {
            self.see(&trace.principal, tool, digest, &shape)?;
        }
        Ok(())
    }

    /// Takes in what a trace tells of its capability, and nothing else.
    pub(super) fn learn_capability(&mut self, trace: &TraceRow) -> rusqlite::Result<()> {
        self.fold(trace, &trace.lesson()?)
    }

    fn fold(&mut self, trace: &TraceRow, lesson: &Lesson) -> rusqlite::Result<()> {
        let known = trace.capability.map(|number| self.known(number)).transpose()?.flatten();
        let (priority, effect) = match known {
            Some(known) => known.learn(trace, lesson),
            // Nothing is known of what has no capability, so all of it is new.
            None if trace.cached || trace.status.evidence().is_none() => (0.0, Effect::Nothing),
            None => (1.0, Effect::Nothing),
        };
        if trace.priority != Some(priority) {
            self.connection
                .prepare_cached("UPDATE trace SET priority = ?2 WHERE seq = ?1")?
                .execute(params![trace.seq, priority])?;
        }
        if let Some(number) = trace.capability
            && effect == Effect::Degraded
            && trace.seq > self.effects_to
        {
            let id = self.known(number)?.map(|known| known.id.clone());
            let because = "it failed repeatedly";
            if let Some(id) = id {
                let which = (&id, number);
                cache::drop_unless_manual(self.connection, &trace.principal, which, because, self.now)?;
            }
        }
        Ok(())
    }

    fn known(&mut self, number: i64) -> rusqlite::Result<Option<&mut Known>> {
        let known = match self.capabilities.entry(number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => vacant.insert(Known::load(self.connection, number)?),
        };
        Ok(known.as_mut())
    }

    fn id(&mut self, number: i64) -> rusqlite::Result<Option<String>> {
        Ok(self.known(number)?.map(|known| known.id.as_str().to_owned()))
    }

    /// Counts that this was asked for after what came before it in its session.
    fn follow(&mut self, trace: &TraceRow) -> rusqlite::Result<()> {
        if trace.parent.is_some() {
            return Ok(());
        }
        let session = (trace.principal.0.clone(), trace.session.clone());
        let present = Previous {
            capability: trace.capability,
            created_at: trace.created_at,
            last_tool: trace.last_tool.clone(),
        };
        let previous = match self.sessions.insert(session, present) {
            Some(known) => Some(known),
            None => previous(self.connection, trace)?,
        };
        let recent = |previous: &Previous| trace.created_at.saturating_sub(previous.created_at) <= FOLLOWS_MS;
        let Some(previous) = previous.filter(recent) else { return Ok(()) };
        if let (Some(from), Some(to)) = (previous.capability, trace.capability) {
            self.relate(&trace.principal, from, to, EdgeKind::Follows)?;
        }
        if let (Some(from), Some(to)) = (previous.last_tool, &trace.first_tool) {
            self.edges.add(&trace.principal, from, to.clone(), EdgeKind::Follows);
        }
        Ok(())
    }

    /// Counts that a capability was called within another, once both are stored.
    fn contain(&mut self, trace: &TraceRow) -> rusqlite::Result<()> {
        let Some(capability) = trace.capability else { return Ok(()) };
        if let Some(parent) = &trace.parent {
            let outer = self
                .connection
                .prepare_cached(
                    "SELECT capability FROM trace
                     WHERE principal = ?1 AND id = ?2 AND seq < ?3 AND capability IS NOT NULL",
                )?
                .query_row(params![trace.principal.0, parent, trace.seq], |row| row.get(0))
                .optional()?;
            if let Some(outer) = outer {
                self.relate(&trace.principal, outer, capability, EdgeKind::Contains)?;
            }
        }
        let inner: Vec<i64> = self
            .connection
            .prepare_cached(
                "SELECT capability FROM trace
                 WHERE principal = ?1 AND parent = ?2 AND seq < ?3 AND capability IS NOT NULL AND NOT cached",
            )?
            .query_map(params![trace.principal.0, trace.id, trace.seq], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for inner in inner {
            self.relate(&trace.principal, capability, inner, EdgeKind::Contains)?;
        }
        Ok(())
    }

    fn relate(&mut self, principal: &Principal, from: i64, to: i64, kind: EdgeKind) -> rusqlite::Result<()> {
        if let (Some(from), Some(to)) = (self.id(from)?, self.id(to)?) {
            self.edges.add(principal, from, to, kind);
        }
        Ok(())
    }

    fn see(
        &mut self,
        principal: &Principal,
        tool: String,
        digest: Digest,
        shape: &pml_model::observed::Shape,
    ) -> rusqlite::Result<()> {
        self.seen.add(self.connection, principal, tool, digest, shape)
    }

    /// Writes everything, and says which capabilities changed.
    pub(super) fn store(self) -> rusqlite::Result<Vec<CapabilityId>> {
        self.edges.store(self.connection)?;
        self.seen.store(self.connection)?;
        self.uses.store(self.connection)?;
        let mut changed = Vec::new();
        if !self.capabilities.is_empty() {
            let version = next_version(self.connection)?;
            for known in self.capabilities.into_values().flatten() {
                changed.extend(known.store(self.connection, version)?);
            }
        }
        changed.sort();
        Ok(changed)
    }
}

fn previous(connection: &Connection, trace: &TraceRow) -> rusqlite::Result<Option<Previous>> {
    connection
        .prepare_cached(
            "SELECT capability, created_at, last_tool FROM trace
             WHERE principal = ?1 AND session = ?2 AND parent IS NULL AND seq < ?3 ORDER BY seq DESC LIMIT 1",
        )?
        .query_row(params![trace.principal.0, trace.session, trace.seq], |row| {
            Ok(Previous { capability: row.get(0)?, created_at: row.get(1)?, last_tool: row.get(2)? })
        })
        .optional()
}
