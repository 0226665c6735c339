//! What is known of one capability while traces are folded into it.

use std::collections::BTreeMap;

use pml_model::capability::{CapabilityId, DEGRADING_FAILURES, Statistics};
use pml_model::learning::Learning;
use pml_model::trace::{Failed, Status};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Map, Value};

use super::super::lesson::{Lesson, tells_intent};
use super::batch::TraceRow;
use crate::column::{capability_id, json};
use crate::vouch::vouched;

/// How many different values of a parameter are kept.
const MOST_EXAMPLES: usize = 5;
/// How much of an error is told, in characters.
const LONGEST_REASON: usize = 200;
/// How much one duration counts.
const RATE: f64 = 0.1;

/// A capability and what has been learned of it.
pub(super) struct Known {
    number: i64,
    pub(super) id: CapabilityId,
    statistics: Statistics,
    /// Why it is taken for broken.
    failing: Option<String>,
    /// The last trace in which it worked.
    worked_seq: i64,
    learning: Learning,
    examples: Map<String, Value>,
    /// What more it was run for: how often, first and last.
    intents: BTreeMap<String, (u64, i64, i64)>,
    changed: bool,
}

/// What follows from a trace beside the numbers.
#[derive(PartialEq, Eq)]
pub(super) enum Effect {
    Nothing,
    /// It failed so often that it is taken for broken from now on.
    Degraded,
}

impl Known {
    /// What is known; nothing where the row is damaged.
    pub(super) fn load(connection: &Connection, number: i64) -> rusqlite::Result<Option<Known>> {
        connection
            .prepare_cached(&format!(
                "SELECT id, usage_count, success_count, failure_count, failures_in_a_row, avg_duration_ms, last_used,
                    failing, worked_seq, learning, examples
                 FROM capability WHERE number = ?1 AND {}",
                vouched("capability", "capability")
            ))?
            .query_row([number], |row| {
                Ok(Known {
                    number,
                    id: capability_id(row, 0)?,
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
                    intents: BTreeMap::new(),
                    changed: false,
                })
            })
            .optional()
    }

    /// Takes in a trace; gives its priority and what follows.
    pub(super) fn learn(&mut self, trace: &TraceRow, lesson: &Lesson) -> (f64, Effect) {
        self.changed = true;
        if !matches!(trace.status, Status::Blocked | Status::Cancelled | Status::Diverged) {
            self.statistics.usage_count += 1;
            self.statistics.last_used = self.statistics.last_used.max(Some(trace.created_at));
        }
        let Some(worked) = trace.status.evidence().filter(|_| !trace.cached) else {
            return (0.0, Effect::Nothing);
        };
        let effect = self.count(trace, worked);
        if tells_intent(trace.status, trace.cached, trace.exploratory) {
            if trace.tells {
                self.add_intent(&trace.intent, trace.created_at);
            }
            self.add_examples(&lesson.values);
        }
        (self.go(trace, lesson, worked), effect)
    }

    /// Counts success and failure.
    fn count(&mut self, trace: &TraceRow, worked: bool) -> Effect {
        let statistics = &mut self.statistics;
        if worked {
            let duration = trace.duration_ms as f64;
            if statistics.success_count == 0 {
                statistics.avg_duration_ms = duration;
            } else {
                statistics.avg_duration_ms += RATE * (duration - statistics.avg_duration_ms);
            }
            statistics.success_count += 1;
            statistics.failures_in_a_row = 0;
            self.failing = None;
            self.worked_seq = trace.seq;
            return Effect::Nothing;
        }
        statistics.failure_count += 1;
        statistics.failures_in_a_row += 1;
        if statistics.failures_in_a_row >= DEGRADING_FAILURES {
            self.failing = Some(reason(statistics.failures_in_a_row, trace.error.as_deref()));
        }
        if statistics.failures_in_a_row == DEGRADING_FAILURES { Effect::Degraded } else { Effect::Nothing }
    }

    /// Learns the way it went, and says how surprising that was.
    fn go(&mut self, trace: &TraceRow, lesson: &Lesson, worked: bool) -> f64 {
        let duration = trace.duration_ms as f64;
        if !trace.own {
            // The nodes are those of another structure.
            0.0
        } else if trace.exploratory {
            self.learning.priority(&lesson.path, worked, duration)
        } else {
            self.learning.learn(&lesson.path, &lesson.decisions, worked, duration)
        }
    }

    fn add_intent(&mut self, text: &str, at: i64) {
        if text.is_empty() {
            return;
        }
        match self.intents.get_mut(text) {
            Some((count, first, last)) => {
                (*count, *first, *last) = (*count + 1, at.min(*first), at.max(*last));
            }
            None => drop(self.intents.insert(text.to_owned(), (1, at, at))),
        }
    }

    fn add_examples(&mut self, values: &Map<String, Value>) {
        for (name, value) in values {
            let known = self.examples.entry(name.as_str()).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(known) = known
                && known.len() < MOST_EXAMPLES
                && !known.contains(value)
            {
                known.push(value.clone());
            }
        }
    }

    /// Writes what is known, under the number of this change; gives its id where anything changed.
    pub(super) fn store(
        self,
        connection: &Connection,
        version: i64,
    ) -> rusqlite::Result<Option<CapabilityId>> {
        if !self.changed {
            return Ok(None);
        }
        let text = |value: serde_json::Result<String>| value.expect("what is known is plain data");
        let statistics = &self.statistics;
        connection
            .prepare_cached(
                "UPDATE capability SET usage_count = ?2, success_count = ?3, failure_count = ?4, failures_in_a_row = ?5,
                    avg_duration_ms = ?6, last_used = ?7, failing = ?8, worked_seq = ?9, learning = ?10, examples = ?11,
                    version = ?12
                 WHERE number = ?1",
            )?
            .execute(params![
                self.number,
                statistics.usage_count,
                statistics.success_count,
                statistics.failure_count,
                statistics.failures_in_a_row,
                statistics.avg_duration_ms,
                statistics.last_used,
                self.failing,
                self.worked_seq,
                text(serde_json::to_string(&self.learning)),
                text(serde_json::to_string(&self.examples)),
                version,
            ])?;
        let mut upsert = connection.prepare_cached(
            "INSERT INTO capability_intent (capability, text, count, first_at, last_at)
             SELECT ?1, ?2, ?3, ?4, ?5
             WHERE NOT EXISTS (SELECT 1 FROM forgotten_intent WHERE capability = ?1 AND text = ?2)
             ON CONFLICT DO UPDATE SET count = count + excluded.count, first_at = min(first_at, excluded.first_at),
                last_at = max(last_at, excluded.last_at)",
        )?;
        for (intent, (count, first, last)) in &self.intents {
            upsert.execute(params![self.number, intent, count, first, last])?;
        }
        Ok(Some(self.id))
    }
}

fn reason(failures: u64, error: Option<&str>) -> String {
    match error.and_then(|error| serde_json::from_str::<Failed>(error).ok()) {
        Some(Failed { message, .. }) => {
            let message: String = message.chars().take(LONGEST_REASON).collect();
            format!("{failures} failures in a row: {message}")
        }
        None => format!("{failures} failures in a row"),
    }
}
