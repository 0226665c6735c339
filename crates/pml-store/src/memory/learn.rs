//! Learns from traces, each once, in the order they were stored.
//!
//! The rules are those of [`pml_model::learning`]. Here the traces not yet learned are read with what is known of all
//! they touch, folded, and what they change is written in the transaction that moves the mark of what was learned.

mod read;
mod write;

use std::collections::BTreeSet;

use pml_model::CapabilityId;
use pml_model::learning::{fold, fold_capabilities};
use read::{Batch, TraceRow};
use rusqlite::{Connection, params};
use write::Target;

use crate::{BlockingStore, Error, Urgency};

/// How many traces are held in memory at once.
const CHUNK: usize = 500;

/// What was learned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learned {
    /// From how many traces.
    pub traces: usize,
    /// There are more.
    pub left: bool,
    /// The capabilities of which more is known now.
    pub changed: Vec<CapabilityId>,
}

impl BlockingStore {
    /// Learns from up to `limit` traces that were not learned from, oldest first, of all principals.
    ///
    /// # Errors
    /// The change could not be stored; nothing was learned then.
    pub fn learn(&self, limit: usize, now: i64) -> Result<Learned, Error> {
        // Asking costs others nothing, and mostly there is nothing to learn.
        if limit == 0 || !self.read(|connection| is_left(connection, mark(connection)?.learned_to))? {
            return Ok(Learned { traces: 0, left: limit == 0, changed: Vec::new() });
        }
        self.change(Urgency::Soon, move |connection| Ok(learn(connection, limit, now)?))
    }

    /// Forgets all numbers; [`BlockingStore::learn`] makes them anew from all traces.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn forget_learned(&self) -> Result<(), Error> {
        self.write(forget)
    }

    /// Forgets all numbers and learns them anew from all traces, and says from how many. Should this be
    /// stopped in the middle, [`BlockingStore::learn`] goes on.
    ///
    /// # Errors
    /// A change could not be stored.
    pub fn relearn(&self, now: i64) -> Result<usize, Error> {
        self.forget_learned()?;
        // Other processes may be quicker.
        while self.learn(CHUNK, now)?.left {}
        self.read(|connection| {
            connection.prepare_cached("SELECT count(*) FROM trace")?.query_row([], |row| row.get(0))
        })
    }
}

/// How far learning is.
struct Mark {
    learned_to: i64,
    effects_to: i64,
}

fn mark(connection: &Connection) -> rusqlite::Result<Mark> {
    connection
        .prepare_cached("SELECT learned_to, effects_to FROM memory")?
        .query_row([], |row| Ok(Mark { learned_to: row.get(0)?, effects_to: row.get(1)? }))
}

fn is_left(connection: &Connection, learned_to: i64) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM trace WHERE seq > ?1 LIMIT 1")?.exists([learned_to])
}

fn learn(connection: &Connection, limit: usize, now: i64) -> rusqlite::Result<Learned> {
    let Mark { mut learned_to, effects_to } = mark(connection)?;
    let (mut traces, mut changed) = (0, BTreeSet::new());
    while traces < limit {
        let Some(rows) = read::rows_after(connection, learned_to, CHUNK.min(limit - traces))? else { break };
        (learned_to, traces) = (rows.last, traces + rows.count);
        let places = places(&rows.sound);
        let mut batch = Batch::new(connection);
        rows.sound.into_iter().try_for_each(|row| batch.add_whole(row))?;
        let target = Target { connection, numbers: batch.numbers(), effects_to, now };
        changed.extend(target.store(&places, fold(batch.state, batch.traces))?);
    }
    connection
        .prepare_cached("UPDATE memory SET learned_to = ?1, effects_to = max(effects_to, ?1)")?
        .execute([learned_to])?;
    let changed = changed.into_iter().collect();
    Ok(Learned { traces, left: is_left(connection, learned_to)?, changed })
}

fn places(rows: &[TraceRow]) -> Vec<(i64, Option<f64>)> {
    rows.iter().map(|row| (row.seq, row.priority)).collect()
}

/// Folds the traces of one capability anew, as far as they were learned from.
pub(super) fn relearn_one(connection: &Connection, capability: i64, now: i64) -> rusqlite::Result<()> {
    let learned_to = mark(connection)?.learned_to;
    forget_capabilities(connection, "WHERE capability.number = ?1", "WHERE capability = ?1", &[capability])?;
    let mut seq = 0;
    while let Some(rows) = read::rows_of(connection, capability, seq, learned_to, CHUNK)? {
        seq = rows.last;
        let places = places(&rows.sound);
        let mut batch = Batch::new(connection);
        rows.sound.into_iter().try_for_each(|row| batch.add(row))?;
        // Nothing beyond the numbers happens for traces that were learned from before.
        let target = Target { connection, numbers: batch.numbers(), effects_to: learned_to, now };
        target.store(&places, fold_capabilities(batch.state, &batch.traces))?;
    }
    Ok(())
}

/// Forgets everything that was learned. What has happened because of it stays.
fn forget(connection: &Connection) -> rusqlite::Result<()> {
    forget_capabilities(connection, "", "", &[])?;
    connection.execute("DELETE FROM observed", params![])?;
    connection.execute("DELETE FROM edge", params![])?;
    connection.execute("DELETE FROM tool_use", params![])?;
    connection.execute("UPDATE memory SET learned_to = 0", params![]).map(drop)
}

fn forget_capabilities(
    connection: &Connection,
    which: &str,
    whose: &str,
    params: &[i64],
) -> rusqlite::Result<()> {
    let params = rusqlite::params_from_iter(params);
    connection.execute(
        &format!(
            "UPDATE capability SET usage_count = 0, success_count = 0, failure_count = 0, failures_in_a_row = 0,
                avg_duration_ms = 0, last_used = NULL, failing = NULL, worked_seq = 0,
                learning = '{NOTHING}', examples = '{{}}' {which}"
        ),
        params.clone(),
    )?;
    // The texts stay: some were given by hand, and the times they have are those of the traces.
    connection.execute(&format!("UPDATE capability_intent SET count = 0 {whose}"), params).map(drop)
}

/// What is known of ways before any was gone, as the table has it for a new capability.
const NOTHING: &str = r#"{"paths":[],"dominantPath":[],"decisionStats":[]}"#;
