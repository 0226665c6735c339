//! Deletes what old traces hold beyond what is learned from them.
//!
//! A trace without details still counts: learning reads its lesson, which stays, so learning everything again gives the
//! same numbers.

use crate::sql::{Connection, params};
use crate::{BlockingStore, Error};

/// Traces per transaction: few, so that other writers are not kept waiting.
const TOGETHER: i64 = 200;

/// The body of a trace without details.
const NOTHING: &str = r#"{"executedPath":[],"taskResults":[]}"#;

impl BlockingStore {
    /// Deletes arguments, results and paths of the traces that were created before `before`, from position `from` on.
    /// Returns the position to go on from next time.
    ///
    /// # Errors
    /// The change could not be stored. Earlier batches stay deleted.
    pub fn drop_trace_details(&self, from: i64, before: i64) -> Result<i64, Error> {
        let mut from = from;
        loop {
            let old = self.read(|connection| old(connection, from, before))?;
            let Some((last, _)) = old.last().copied() else { return Ok(from) };
            if old.iter().any(|(_, has_details)| *has_details) {
                self.write(move |connection| {
                    connection
                        .prepare_cached(
                            "UPDATE trace_body SET body = ?3
                             WHERE seq > ?1 AND seq <= ?2 AND body <> ?3",
                        )?
                        .execute(params![from, last, NOTHING])
                        .map(drop)
                })?;
            }
            from = last;
        }
    }
}

/// The next traces from before a time, up to the first later one, and whether they have details.
fn old(connection: &Connection, from: i64, before: i64) -> rusqlite::Result<Vec<(i64, bool)>> {
    let rows: Vec<(i64, i64, bool)> = connection
        .prepare_cached(
            "SELECT trace.seq, trace.created_at, trace_body.body <> ?3 FROM trace
             JOIN trace_body ON trace_body.seq = trace.seq
             WHERE trace.seq > ?1 ORDER BY trace.seq LIMIT ?2",
        )?
        .query_map(params![from, TOGETHER, NOTHING], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<_>>()?;
    Ok(rows.into_iter().take_while(|(_, at, _)| *at < before).map(|(seq, _, has)| (seq, has)).collect())
}
