//! Calls made before programs ask for them: `[speculation]`.

use std::time::Duration;

use super::error::ConfigComplaint;
use super::reference;
use super::section::Section;

/// How far PML reads ahead of programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeculationSettings {
    /// Whether reads are made ahead at all.
    pub enabled: bool,
    /// How confident PML must be that a program asks for a read.
    pub preset: SpeculationPreset,
    /// The reads of one run that may be under way or unused at a time.
    pub concurrent: u32,
    /// The reads ahead that one run may make in all.
    pub per_run: u32,
    /// The reads ahead of all runs under way at one server.
    pub per_server: u32,
    /// The reads ahead of all runs within a minute.
    pub per_minute: u32,
    /// The reads of one run in branches that are not decided yet.
    pub branches: u32,
    /// How long a result may wait for its program.
    pub ttl: Duration,
    /// The share of used results, in per cent, that are read again and compared.
    pub sample: u32,
}

/// How confident PML must be that a program asks for a read before it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpeculationPreset {
    /// More reads, more of them wasted.
    Eager,
    /// The default.
    #[default]
    Balanced,
    /// Fewer reads, fewer of them wasted.
    Cautious,
}

impl Default for SpeculationSettings {
    fn default() -> SpeculationSettings {
        SpeculationSettings {
            enabled: true,
            preset: SpeculationPreset::Balanced,
            concurrent: 16,
            per_run: 500,
            per_server: 32,
            per_minute: 6_000,
            branches: 8,
            ttl: Duration::from_secs(5 * 60),
            sample: 1,
        }
    }
}

impl SpeculationSettings {
    /// The reads ahead that one run may make; 0 if speculation is off.
    pub fn reads_per_run(&self) -> u32 {
        let off = !self.enabled || [self.concurrent, self.per_server, self.per_minute].contains(&0);
        if off { 0 } else { self.per_run }
    }

    /// The confidence that a read needs, before what came of earlier ones is known.
    pub fn min_confidence(&self) -> f64 {
        match self.preset {
            SpeculationPreset::Eager => 0.55,
            SpeculationPreset::Balanced => 0.70,
            SpeculationPreset::Cautious => 0.85,
        }
    }
}

/// Reads `[speculation]`.
pub(super) fn speculation(root: &Section<'_>) -> Result<SpeculationSettings, ConfigComplaint> {
    let default = SpeculationSettings::default();
    let Some(table) = root.section("speculation", &reference::keys("speculation"))? else {
        return Ok(default);
    };
    let budget = |key: &str, most: u32, usual: u32| Ok(table.count_from_zero(key, most)?.unwrap_or(usual));
    Ok(SpeculationSettings {
        enabled: table.flag("enabled")?.unwrap_or(default.enabled),
        preset: preset(&table)?.unwrap_or_default(),
        concurrent: budget("concurrent", 128, default.concurrent)?,
        per_run: budget("per_run", 100_000, default.per_run)?,
        per_server: budget("per_server", 1_024, default.per_server)?,
        per_minute: budget("per_minute", 1_000_000, default.per_minute)?,
        branches: budget("branches", 1_000, default.branches)?,
        ttl: table
            .duration_in("ttl", Duration::from_secs(1)..=Duration::from_secs(60 * 60))?
            .unwrap_or(default.ttl),
        sample: budget("sample", 100, default.sample)?,
    })
}

fn preset(table: &Section<'_>) -> Result<Option<SpeculationPreset>, ConfigComplaint> {
    match table.text("preset")? {
        None => Ok(None),
        Some("eager") => Ok(Some(SpeculationPreset::Eager)),
        Some("balanced") => Ok(Some(SpeculationPreset::Balanced)),
        Some("cautious") => Ok(Some(SpeculationPreset::Cautious)),
        Some(other) => {
            let at = table.get("preset").map_or(0, |node| node.at);
            let message = format!("`{}` cannot be \"{other}\"", table.member_path("preset"));
            Err(table.file.complaint(at, message).hint("write \"eager\", \"balanced\" or \"cautious\""))
        }
    }
}
