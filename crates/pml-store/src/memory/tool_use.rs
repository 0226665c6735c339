//! Call counts of tools: calls and failures.

use std::collections::BTreeMap;

use crate::sql::{Connection, params};
use pml_model::Principal;
use pml_model::learning::CallCounts;

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
