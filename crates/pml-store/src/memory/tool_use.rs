//! How often tools were called, and how often they failed.

use std::collections::BTreeMap;

use pml_model::Principal;
use pml_model::trace::{Body, ErrorType, TaskResult};
use rusqlite::{Connection, params};
use serde::{Deserialize, Serialize};

use crate::vouch::vouched;
use crate::{Error, Store};

/// What became of the calls of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallCounts {
    /// How often it was called.
    #[serde(rename = "n")]
    pub calls: u64,
    /// How often it failed for a reason of its own: what was asked of it may be wrong as well.
    #[serde(rename = "f", default, skip_serializing_if = "is_zero")]
    pub failures: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "that is how it is called")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Store {
    /// How often each tool was called, and failed.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn tool_uses(&self, principal: &Principal) -> Result<Vec<(String, CallCounts)>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT tool, calls, failures FROM tool_use WHERE principal = ?1 AND {}",
                    vouched("tool_use", "tool_use")
                ))?
                .query_map([&principal.0], |row| {
                    Ok((row.get(0)?, CallCounts { calls: row.get(1)?, failures: row.get(2)? }))
                })?
                .collect()
        })
    }
}

/// What a trace tells of its tools.
pub(super) fn uses(body: &Body) -> BTreeMap<String, CallCounts> {
    let mut uses: BTreeMap<String, CallCounts> = BTreeMap::new();
    // What has no number is no call of a tool.
    for task in body.task_results.iter().filter(|task| task.call > 0) {
        if let Some(failed) = failed(task) {
            let known = uses.entry(task.tool.clone()).or_default();
            known.calls += 1;
            known.failures += u64::from(failed);
        }
    }
    uses
}

/// Whether a tool failed by itself; nothing where it was not called after all.
fn failed(task: &TaskResult) -> Option<bool> {
    match task.error.as_ref().map(|error| error.error_type) {
        Some(ErrorType::Cancelled | ErrorType::Permission) => None,
        Some(ErrorType::NotFound | ErrorType::Validation) => Some(false),
        Some(
            ErrorType::Timeout
            | ErrorType::Network
            | ErrorType::RateLimit
            | ErrorType::Internal
            | ErrorType::Unknown,
        ) => Some(true),
        None => Some(!task.success),
    }
}

/// What is to be added to what is known of tools.
#[derive(Default)]
pub(super) struct Uses(BTreeMap<(String, String), CallCounts>);

impl Uses {
    pub(super) fn add(&mut self, principal: &Principal, tool: String, more: CallCounts) {
        let known = self.0.entry((principal.0.clone(), tool)).or_default();
        known.calls += more.calls;
        known.failures += more.failures;
    }

    pub(super) fn store(self, connection: &Connection) -> rusqlite::Result<()> {
        let mut add = connection.prepare_cached(
            "INSERT INTO tool_use (principal, tool, calls, failures) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (principal, tool)
             DO UPDATE SET calls = calls + excluded.calls, failures = failures + excluded.failures",
        )?;
        for ((principal, tool), new) in self.0 {
            add.execute(params![principal, tool, new.calls, new.failures])?;
        }
        Ok(())
    }
}
