//! Learns from traces, each once, in the order in which they were stored.
//!
//! The rules are in [`pml_model::learning`]. This module reads the traces not learned yet, with the current knowledge
//! of everything they touch, folds them, and writes the changes in the transaction that moves the cursor.

mod read;
mod write;

use std::collections::BTreeSet;

use crate::sql::{Connection, params};
use pml_model::CapabilityId;
use pml_model::learning::{fold_capabilities, fold_traces};
use read::{TraceBatch, TraceRow};
use write::LearningWriter;

use crate::{BlockingStore, Error, Urgency};

/// Maximum number of traces in memory at once.
pub(crate) const CHUNK: usize = 500;

/// Result of learning from a batch of traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnedBatch {
    /// Number of traces.
    pub traces: usize,
    /// Whether more traces wait.
    pub has_more: bool,
    /// The capabilities whose learned numbers changed.
    pub changed: Vec<CapabilityId>,
}

impl BlockingStore {
    /// Learns from up to `limit` traces that were not learned yet, oldest first, of all principals.
    ///
    /// # Errors
    /// The change could not be stored; nothing was learned then.
    pub fn learn_traces(&self, limit: usize, now: i64) -> Result<LearnedBatch, Error> {
        // Mostly there is nothing to learn, and a read does not block other processes.
        if limit == 0 || !self.read(|connection| is_left(connection, mark(connection)?.learned_to))? {
            return Ok(LearnedBatch { traces: 0, has_more: limit == 0, changed: Vec::new() });
        }
        self.change(Urgency::Soon, move |connection| Ok(learn(connection, limit, now)?))
    }

    /// Deletes all learned numbers; [`BlockingStore::learn_traces`] learns them again from all traces.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn reset_learning(&self) -> Result<(), Error> {
        self.write(reset)
    }

    /// Deletes all learned numbers, learns them again from all traces, and returns the number of traces. If this is
    /// interrupted, [`BlockingStore::learn_traces`] continues.
    ///
    /// # Errors
    /// A change could not be stored.
    pub fn relearn_all(&self, now: i64) -> Result<usize, Error> {
        self.relearn_all_observed(now, |_, _| ())
    }

    /// As [`BlockingStore::relearn_all`]. `progress` is called now and then with the number of traces learned so far
    /// and the number of all.
    ///
    /// # Errors
    /// A change could not be stored.
    pub fn relearn_all_observed(&self, now: i64, progress: impl Fn(usize, usize)) -> Result<usize, Error> {
        self.reset_learning()?;
        let (all, mut learned) = (self.count_traces()?, 0);
        progress(learned, all);
        // Other processes may learn at the same time.
        loop {
            let batch = self.learn_traces(CHUNK, now)?;
            learned += batch.traces;
            progress(learned, all);
            if !batch.has_more {
                return self.count_traces();
            }
        }
    }

    fn count_traces(&self) -> Result<usize, Error> {
        self.read(|connection| {
            connection.prepare_cached("SELECT count(*) FROM trace")?.query_row([], |row| row.get(0))
        })
    }
}

/// How far learning has come.
struct LearningCursor {
    learned_to: i64,
    effects_to: i64,
}

fn mark(connection: &Connection) -> rusqlite::Result<LearningCursor> {
    connection
        .prepare_cached("SELECT learned_to, effects_to FROM memory")?
        .query_row([], |row| Ok(LearningCursor { learned_to: row.get(0)?, effects_to: row.get(1)? }))
}

fn is_left(connection: &Connection, learned_to: i64) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM trace WHERE seq > ?1 LIMIT 1")?.exists([learned_to])
}

fn learn(connection: &Connection, limit: usize, now: i64) -> rusqlite::Result<LearnedBatch> {
    let LearningCursor { mut learned_to, effects_to } = mark(connection)?;
    let (mut traces, mut changed) = (0, BTreeSet::new());
    while traces < limit {
        let Some(rows) = read::rows_after(connection, learned_to, CHUNK.min(limit - traces))? else { break };
        (learned_to, traces) = (rows.last, traces + rows.count);
        let places = places(&rows.sound);
        let mut batch = TraceBatch::new(connection);
        rows.sound.into_iter().try_for_each(|row| batch.add_whole(row))?;
        let target = LearningWriter { connection, numbers: batch.numbers(), effects_to, now };
        changed.extend(target.store(&places, fold_traces(batch.state, batch.traces))?);
    }
    connection
        .prepare_cached("UPDATE memory SET learned_to = ?1, effects_to = max(effects_to, ?1)")?
        .execute([learned_to])?;
    let changed = changed.into_iter().collect();
    Ok(LearnedBatch { traces, has_more: is_left(connection, learned_to)?, changed })
}

fn places(rows: &[TraceRow]) -> Vec<(i64, Option<f64>)> {
    rows.iter().map(|row| (row.seq, row.priority)).collect()
}

/// Folds the traces of one capability again, as far as they were learned.
pub(super) fn relearn_capability(connection: &Connection, capability: i64, now: i64) -> rusqlite::Result<()> {
    let learned_to = mark(connection)?.learned_to;
    forget_capabilities(connection, "WHERE capability.number = ?1", "WHERE capability = ?1", &[capability])?;
    let mut seq = 0;
    while let Some(rows) = read::rows_of_capability(connection, capability, seq, learned_to, CHUNK)? {
        seq = rows.last;
        let places = places(&rows.sound);
        let mut batch = TraceBatch::new(connection);
        rows.sound.into_iter().try_for_each(|row| batch.add(row))?;
        // Traces that were learned before have no effects beyond the numbers.
        let target = LearningWriter { connection, numbers: batch.numbers(), effects_to: learned_to, now };
        target.store(&places, fold_capabilities(batch.state, &batch.traces))?;
    }
    Ok(())
}

/// Deletes everything that was learned. Earlier effects of it, such as a degraded capability, stay.
pub(crate) fn reset(connection: &Connection) -> rusqlite::Result<()> {
    forget_capabilities(connection, "", "", &[])?;
    connection.execute("DELETE FROM observed", params![])?;
    connection.execute("DELETE FROM edge", params![])?;
    connection.execute("DELETE FROM tool_use", params![])?;
    connection.execute("DELETE FROM argument_pattern", params![])?;
    connection.execute("UPDATE memory SET learned_to = 0", params![]).map(drop)
}

fn forget_capabilities(
    connection: &Connection,
    which: &str,
    whose: &str,
    params: &[i64],
) -> rusqlite::Result<()> {
    connection.execute(
        &format!(
            "UPDATE capability SET usage_count = 0, success_count = 0, failure_count = 0, failures_in_a_row = 0,
                avg_duration_ms = 0, last_used = NULL, failing = NULL, worked_seq = 0,
                learning = '{NOTHING}', examples = '{{}}' {which}"
        ),
        params,
    )?;
    // The texts stay: some were entered by hand, and their times are those of the traces.
    connection.execute(&format!("UPDATE capability_intent SET count = 0 {whose}"), params).map(drop)
}

/// Path statistics before any run, as the table has them for a new capability.
const NOTHING: &str = r#"{"paths":[],"dominantPath":[],"decisionStats":[]}"#;
