//! Golden runs: the first runs of a capability, with which it is tested. Their records are spared when others are purged.

use crate::sql::{Connection, params};
use pml_model::capability::CapabilityId;
use pml_model::{Principal, RunId};

use super::identity::resolve_capability;
use crate::column::run_id;
use crate::vouch::vouched_condition;
use crate::{BlockingStore, Error};

/// The number of golden runs of a capability.
const MOST_GOLDENS: u32 = 3;

impl BlockingStore {
    /// The golden runs of a capability, first one first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn golden_runs(&self, principal: &Principal, id: &CapabilityId) -> Result<Vec<RunId>, Error> {
        self.read(|connection| {
            let Some((number, true)) = resolve_capability(connection, principal, id)? else {
                return Ok(Vec::new());
            };
            connection
                .prepare_cached(&format!(
                    "SELECT run FROM capability_golden WHERE capability = ?1 AND {} ORDER BY at, run",
                    vouched_condition("capability_golden", "capability_golden")
                ))?
                .query_map([number], |row| run_id(row, 0))?
                .collect()
        })
    }
}

/// Makes a run a golden one of its capability, unless that has enough of them.
pub(super) fn keep_golden(
    connection: &Connection,
    (capability, principal): (i64, &Principal),
    run: &RunId,
    at: i64,
) -> rusqlite::Result<()> {
    let kept: u32 = connection
        .prepare_cached("SELECT count(*) FROM capability_golden WHERE capability = ?1")?
        .query_row([capability], |row| row.get(0))?;
    if kept >= MOST_GOLDENS {
        return Ok(());
    }
    connection
        .prepare_cached(
            "INSERT INTO capability_golden (capability, run, principal, at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO NOTHING",
        )?
        .execute(params![capability, run.as_str(), principal.0, at])
        .map(drop)
}
