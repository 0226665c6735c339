//! Call counts of tools: calls and failures, of each tool and of each pattern of its arguments.

use std::collections::BTreeMap;

use crate::sql::{Connection, params};
use pml_model::Principal;
use pml_model::learning::{CallCounts, Lesson};

use crate::column::json_column;
use crate::vouch::vouched_condition;
use crate::{BlockingStore, Error};

impl BlockingStore {
    /// Number of calls and failures of each tool.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn tool_call_counts(&self, principal: &Principal) -> Result<Vec<(String, CallCounts)>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT tool, calls, failures FROM tool_use WHERE principal = ?1 AND {}",
                    vouched_condition("tool_use", "tool_use")
                ))?
                .query_map([&principal.0], |row| {
                    Ok((row.get(0)?, CallCounts { calls: row.get(1)?, failures: row.get(2)? }))
                })?
                .collect()
        })
    }

    /// The lessons of the latest traces that count for tools, oldest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn latest_lessons(&self, principal: &Principal, limit: u32) -> Result<Vec<Lesson>, Error> {
        let lessons: Result<Vec<Lesson>, Error> = self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT trace_body.lesson FROM trace JOIN trace_body ON trace_body.seq = trace.seq
                     WHERE trace.principal = ?1 AND NOT trace.exploratory AND NOT trace.cached AND {}
                     ORDER BY trace.seq DESC LIMIT ?2",
                    vouched_condition("trace_body", "trace_body")
                ))?
                .query_map(params![principal.0, limit], |row| json_column(row, 0))?
                .collect()
        });
        let mut lessons = lessons?;
        lessons.reverse();
        Ok(lessons)
    }

    /// Number of calls and failures of each tool by pattern of arguments.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn argument_pattern_counts(
        &self,
        principal: &Principal,
    ) -> Result<Vec<(String, String, CallCounts)>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT tool, pattern, calls, failures FROM argument_pattern WHERE principal = ?1 AND {}",
                    vouched_condition("argument_pattern", "argument_pattern")
                ))?
                .query_map([&principal.0], |row| {
                    let counts = CallCounts { calls: row.get(2)?, failures: row.get(3)? };
                    Ok((row.get(0)?, row.get(1)?, counts))
                })?
                .collect()
        })
    }
}

/// Adds to the call counts of tools.
pub(super) fn add_call_counts(
    connection: &Connection,
    uses: BTreeMap<(Principal, String), CallCounts>,
) -> rusqlite::Result<()> {
    let mut add = connection.prepare_cached(
        "INSERT INTO tool_use (principal, tool, calls, failures) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (principal, tool)
         DO UPDATE SET calls = calls + excluded.calls, failures = failures + excluded.failures",
    )?;
    for ((principal, tool), new) in uses {
        add.execute(params![principal.0, tool, new.calls, new.failures])?;
    }
    Ok(())
}

/// Adds to the call counts of patterns of arguments.
pub(super) fn add_argument_patterns(
    connection: &Connection,
    patterns: BTreeMap<(Principal, String, String), CallCounts>,
) -> rusqlite::Result<()> {
    let mut add = connection.prepare_cached(
        "INSERT INTO argument_pattern (principal, tool, pattern, calls, failures) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (principal, tool, pattern)
         DO UPDATE SET calls = calls + excluded.calls, failures = failures + excluded.failures",
    )?;
    for ((principal, tool, pattern), new) in patterns {
        add.execute(params![principal.0, tool, pattern, new.calls, new.failures])?;
    }
    Ok(())
}
