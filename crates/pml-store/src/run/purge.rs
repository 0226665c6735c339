//! Purges the records of ended runs after their retention time.

use crate::sql::{Connection, params};

use crate::memory::{delete_expired_plans, expired_plans};
use crate::{BlockingStore, Error};

/// Runs per transaction: small, so that other writers are not kept waiting.
const TOGETHER: u32 = 16;

impl BlockingStore {
    /// Destroys the keys and the sealed bodies of the runs that ended `keep_ms` ago or earlier, and returns the number
    /// of runs. Their rows stay. Golden runs of capabilities are spared. Procedures that never worked and were not run for 30 days are deleted too.
    ///
    /// # Errors
    /// The change could not be stored. Earlier batches stay deleted.
    pub fn purge_ended_runs(&self, now: i64, keep_ms: i64) -> Result<usize, Error> {
        while !self.read(|connection| expired_plans(connection, now))?.is_empty() {
            self.write(move |connection| delete_expired_plans(connection, now))?;
        }
        let mut purged = 0;
        loop {
            let ended = now.saturating_sub(keep_ms);
            let old = self.read(|connection| old(connection, ended))?;
            if old.is_empty() {
                return Ok(purged);
            }
            purged += self.write(move |connection| forget(connection, ended, now))?;
        }
    }
}

/// Deletes the runs that meet an SQL condition, with their rows; returns their number.
pub(crate) fn delete_runs(connection: &Connection, condition: &str) -> rusqlite::Result<u64> {
    // Sealed bodies may remain in free pages; their keys must not.
    connection.execute_batch("PRAGMA secure_delete = ON")?;
    let destroyed = connection
        .prepare(&format!("DELETE FROM run_key WHERE run IN (SELECT number FROM run WHERE {condition})"))
        .and_then(|mut delete| delete.execute([]));
    connection.execute_batch("PRAGMA secure_delete = OFF")?;
    destroyed?;
    for table in ["journal", "answer", "run_body", "run_claim", "question_tool"] {
        let sql = format!("DELETE FROM {table} WHERE run IN (SELECT number FROM run WHERE {condition})");
        connection.prepare(&sql)?.execute([])?;
    }
    let golden = format!("DELETE FROM capability_golden WHERE run IN (SELECT id FROM run WHERE {condition})");
    connection.prepare(&golden)?.execute([])?;
    connection
        .prepare(&format!("DELETE FROM run WHERE {condition}"))?
        .execute([])
        .map(|deleted| deleted as u64)
}

fn old(connection: &Connection, ended: i64) -> rusqlite::Result<Vec<i64>> {
    connection
        .prepare_cached(
            "SELECT number FROM run WHERE ended_at IS NOT NULL AND purged_at IS NULL AND ended_at <= ?1
             AND NOT EXISTS (SELECT 1 FROM capability_golden WHERE capability_golden.run = run.id) LIMIT ?2",
        )?
        .query_map(params![ended, TOGETHER], |row| row.get(0))?
        .collect()
}

fn forget(connection: &Connection, ended: i64, now: i64) -> rusqlite::Result<usize> {
    let runs = old(connection, ended)?;
    // Sealed bodies may remain in free pages; their keys must not.
    connection.execute_batch("PRAGMA secure_delete = ON")?;
    let destroyed = runs.iter().try_for_each(|run| {
        connection.prepare_cached("DELETE FROM run_key WHERE run = ?1")?.execute([run]).map(drop)
    });
    connection.execute_batch("PRAGMA secure_delete = OFF")?;
    destroyed?;
    for run in &runs {
        for table in ["journal", "answer", "run_body"] {
            connection.prepare_cached(&format!("DELETE FROM {table} WHERE run = ?1"))?.execute([run])?;
        }
        connection
            .prepare_cached("UPDATE run SET purged_at = ?2 WHERE number = ?1")?
            .execute(params![run, now])?;
    }
    Ok(runs.len())
}
