//! What runs and caches saved, by day.

use std::collections::BTreeMap;

use crate::sql::params;
use pml_model::Principal;

use crate::{BlockingStore, Error};

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// What was saved on one day, in UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DailySavings {
    /// The beginning of the day, in milliseconds since the Unix epoch.
    pub day: i64,
    /// Runs that were started.
    pub runs: u64,
    /// Requests that were answered from the cache.
    pub cache_hits: u64,
    /// Milliseconds that the cached results would have taken: for each the average of its capability's runs.
    pub cache_saved_ms: u64,
    /// Calls whose results were there before the program asked.
    pub speculated_calls: u64,
    /// Milliseconds that programs waited less because of them.
    pub speculation_saved_ms: u64,
    /// Bytes of results of calls that did not reach the client, because the run returned less.
    pub kept_bytes: u64,
}

impl BlockingStore {
    /// What was saved on each day since `since` on which something happened, oldest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn daily_savings(&self, principal: &Principal, since: i64) -> Result<Vec<DailySavings>, Error> {
        self.read(|connection| {
            let mut days: BTreeMap<i64, DailySavings> = BTreeMap::new();
            let mut runs = connection.prepare_cached(
                "SELECT created_at / ?3, count(*), sum(speculated_calls), sum(saved_ms),
                    sum(max(0, call_bytes - result_bytes))
                 FROM run INDEXED BY run_created WHERE principal = ?1 AND created_at >= ?2 GROUP BY 1",
            )?;
            let mut rows = runs.query(params![principal.0, since, DAY_MS])?;
            while let Some(row) = rows.next()? {
                let day: i64 = row.get(0)?;
                let known = days.entry(day).or_default();
                known.runs = row.get(1)?;
                known.speculated_calls = row.get(2)?;
                known.speculation_saved_ms = row.get(3)?;
                known.kept_bytes = row.get(4)?;
            }
            let mut hits = connection.prepare_cached(
                "SELECT trace.created_at / ?3, count(*), total(capability.avg_duration_ms)
                 FROM trace INDEXED BY trace_cached LEFT JOIN capability ON capability.number = trace.capability
                 WHERE trace.principal = ?1 AND trace.cached = 1 AND trace.created_at >= ?2 GROUP BY 1",
            )?;
            let mut rows = hits.query(params![principal.0, since, DAY_MS])?;
            while let Some(row) = rows.next()? {
                let day: i64 = row.get(0)?;
                let saved_ms: f64 = row.get(2)?;
                let known = days.entry(day).or_default();
                known.cache_hits = row.get(1)?;
                // Averages of durations are neither negative nor beyond the range.
                known.cache_saved_ms = saved_ms.round() as u64;
            }
            Ok(days.into_iter().map(|(day, saved)| DailySavings { day: day * DAY_MS, ..saved }).collect())
        })
    }
}
