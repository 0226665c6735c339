//! Learning and caching: `[memory]`.

use std::time::Duration;

use super::error::ConfigComplaint;
use super::reference;
use super::section::Section;

const HOUR: Duration = Duration::from_secs(3_600);

/// What is learned and reused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemorySettings {
    /// Whether anything is learned from runs.
    pub learn: bool,
    /// Whether cached results are returned.
    pub cache: bool,
    /// Whether the result of an earlier run for a similar intent is shown where nothing is run.
    pub earlier_results: bool,
    /// Whether the records of golden runs are kept as long as their capability.
    pub golden_runs: bool,
    /// How long the details of traces are kept: arguments, results and paths; `None` for as long as the database.
    pub keep_traces: Option<Duration>,
    /// The confidence in per cent from which on a capability runs without being named.
    pub confidence: u32,
}

impl Default for MemorySettings {
    fn default() -> MemorySettings {
        MemorySettings {
            learn: true,
            cache: true,
            earlier_results: false,
            golden_runs: true,
            keep_traces: None,
            confidence: 85,
        }
    }
}

/// Reads `[memory]`.
pub(super) fn memory(root: &Section<'_>) -> Result<MemorySettings, ConfigComplaint> {
    let default = MemorySettings::default();
    let Some(table) = root.section("memory", &reference::keys("memory"))? else { return Ok(default) };
    Ok(MemorySettings {
        learn: table.flag("learn")?.unwrap_or(default.learn),
        cache: table.flag("cache")?.unwrap_or(default.cache),
        earlier_results: table.flag("earlier_results")?.unwrap_or(default.earlier_results),
        golden_runs: table.flag("golden_runs")?.unwrap_or(default.golden_runs),
        keep_traces: table.duration_in("keep_traces", HOUR..=10 * 365 * 24 * HOUR)?,
        // Lower thresholds were never measured.
        confidence: table.count("confidence", 85..=100)?.unwrap_or(default.confidence),
    })
}
