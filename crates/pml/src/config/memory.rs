//! What is remembered, and how it is used: `[memory]`.

use super::error::Complaint;
use super::reference;
use super::section::Section;

/// What is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// Whether anything is learned from runs.
    pub learn: bool,
    /// Whether a result that is known is given again.
    pub cache: bool,
    /// Whether the result of an earlier run for nearly the same intent is shown where nothing is run.
    pub earlier_results: bool,
    /// How sure it must be that a capability is meant for it to be run without being named, in per cent.
    pub confidence: u32,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory { learn: true, cache: true, earlier_results: false, confidence: 85 }
    }
}

/// Reads it.
pub(super) fn memory(root: &Section<'_>) -> Result<Memory, Complaint> {
    let default = Memory::default();
    let Some(table) = root.section("memory", &reference::keys("memory"))? else { return Ok(default) };
    Ok(Memory {
        learn: table.flag("learn")?.unwrap_or(default.learn),
        cache: table.flag("cache")?.unwrap_or(default.cache),
        earlier_results: table.flag("earlier_results")?.unwrap_or(default.earlier_results),
        // Below this nothing was measured.
        confidence: table.count("confidence", 85..=100)?.unwrap_or(default.confidence),
    })
}
