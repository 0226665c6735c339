//! Limits of one run, and how runs are stored.

use std::time::Duration;

use super::error::ConfigComplaint;
use super::reference;
use super::section::Section;

/// The limits of one run: `[limits]`. Exceeding one fails that run only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitSettings {
    /// The largest number of tool calls.
    pub calls: u32,
    /// The largest number of concurrent calls.
    pub concurrent: u32,
    /// The largest number of concurrent calls to one server.
    pub concurrent_per_server: u32,
    /// The heap of the program, in bytes.
    pub heap_bytes: u64,
    /// The stack of the program, in bytes.
    pub stack_bytes: u64,
    /// The CPU time of the program.
    pub cpu: Duration,
    /// The time from start to end, excluding waiting for people and sleeping without a process.
    pub wall: Duration,
    /// The source of the program, in bytes.
    pub source_bytes: u64,
    /// The arguments of one call, in bytes.
    pub arguments_bytes: u64,
    /// The result of one call, and of the program, in bytes.
    pub result_bytes: u64,
    /// The console output of the program, in bytes.
    pub console_bytes: u64,
    /// The nesting depth of a value that enters or leaves the program.
    pub nesting: u32,
}

impl Default for LimitSettings {
    fn default() -> LimitSettings {
        LimitSettings {
            calls: 1_000,
            concurrent: 128,
            concurrent_per_server: 32,
            heap_bytes: 64 * MIB,
            stack_bytes: 512 * KIB,
            cpu: Duration::from_secs(5),
            wall: Duration::from_secs(5 * 60),
            source_bytes: 256 * KIB,
            arguments_bytes: 256 * KIB,
            result_bytes: 4 * MIB,
            console_bytes: 64 * KIB,
            nesting: 128,
        }
    }
}

/// How runs are stored and resumed: `[runs]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSettings {
    /// Whether interrupted runs resume by themselves.
    pub resume: bool,
    /// The durability of the journal before a call that must not be repeated is sent.
    pub durable: Durability,
    /// How long the result of a run is kept.
    pub keep_results: Duration,
    /// The number of idle sandbox processes kept ready.
    pub workers: u32,
    /// A run that waits longer than this for a timer is parked: it releases its process meanwhile.
    pub park_after: Duration,
}

impl Default for RunSettings {
    fn default() -> RunSettings {
        RunSettings {
            resume: true,
            durable: Durability::Full,
            keep_results: HOUR,
            workers: 2,
            park_after: Duration::from_secs(10),
        }
    }
}

/// How durably a call that must not be repeated is recorded before it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Synced to the disk: survives a power cut.
    Full,
    /// Written to the system: survives the end of PML.
    Normal,
}

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(60 * 60);

/// 8 MiB: messages to servers and values in the database may have 16 MiB including their envelope.
const LARGEST_VALUE: u64 = 8 * MIB;
/// 256 MiB: below the kernel limits of the sandbox, so that our own limit is hit first, with a clear error.
const LARGEST_HEAP: u64 = 256 * MIB;
const LONGEST_CPU: Duration = Duration::from_secs(5 * 60);

/// Reads `[limits]`.
pub(super) fn limits(root: &Section<'_>) -> Result<LimitSettings, ConfigComplaint> {
    let default = LimitSettings::default();
    let Some(table) = root.section("limits", &reference::keys("limits"))? else { return Ok(default) };
    let count = |key, most, default| Ok::<_, ConfigComplaint>(table.count(key, 1..=most)?.unwrap_or(default));
    let size = |key, least, most, default| {
        Ok::<_, ConfigComplaint>(table.size(key, least..=most)?.unwrap_or(default))
    };
    let time = |key, most, default| {
        Ok::<_, ConfigComplaint>(table.duration_in(key, MILLISECOND..=most)?.unwrap_or(default))
    };
    Ok(LimitSettings {
        calls: count("calls", 100_000, default.calls)?,
        concurrent: count("concurrent", 1_024, default.concurrent)?,
        concurrent_per_server: count("concurrent_per_server", 1_024, default.concurrent_per_server)?,
        // The engine's own objects need this much.
        heap_bytes: size("heap", 2 * MIB, LARGEST_HEAP, default.heap_bytes)?,
        stack_bytes: size("stack", 64 * KIB, 4 * MIB, default.stack_bytes)?,
        cpu: time("cpu", LONGEST_CPU, default.cpu)?,
        wall: time("wall", 24 * HOUR, default.wall)?,
        // The analysis accepts no more.
        source_bytes: size("source", KIB, 256 * KIB, default.source_bytes)?,
        arguments_bytes: size("arguments", KIB, LARGEST_VALUE, default.arguments_bytes)?,
        result_bytes: size("result", KIB, LARGEST_VALUE, default.result_bytes)?,
        console_bytes: size("console", KIB, LARGEST_VALUE, default.console_bytes)?,
        // No JSON parser in PML accepts deeper nesting.
        nesting: count("nesting", 128, default.nesting)?,
    })
}

/// Reads `[runs]`.
pub(super) fn runs(root: &Section<'_>) -> Result<RunSettings, ConfigComplaint> {
    let default = RunSettings::default();
    let Some(table) = root.section("runs", &reference::keys("runs"))? else { return Ok(default) };
    Ok(RunSettings {
        resume: table.flag("resume")?.unwrap_or(default.resume),
        durable: durable(&table)?,
        keep_results: table
            .duration_in("keep_results", SECOND..=30 * 24 * HOUR)?
            .unwrap_or(default.keep_results),
        workers: table.count("workers", 1..=64)?.unwrap_or(default.workers),
        park_after: table.duration_in("park_after", SECOND..=24 * HOUR)?.unwrap_or(default.park_after),
    })
}

fn durable(table: &Section<'_>) -> Result<Durability, ConfigComplaint> {
    match (table.text("durable")?, table.get("durable")) {
        (Some("normal"), _) => Ok(Durability::Normal),
        (Some(other), Some(node)) if other != "full" => Err(table
            .file
            .complaint(node.at, format!("`{}` is `{other}`", table.member_path("durable")))
            .hint("write \"full\" (survives a power cut) or \"normal\" (survives the end of PML)")),
        (_, _) => Ok(Durability::Full),
    }
}
