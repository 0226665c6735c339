//! What one run may use, and how runs are kept.

use std::time::Duration;

use super::error::Complaint;
use super::reference;
use super::section::Section;

/// What one run may use: `[limits]`. A limit that is exceeded ends that run only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Tool calls of one run.
    pub calls: u32,
    /// Calls of one run at the same time.
    pub concurrent: u32,
    /// Calls of one run to one server at the same time.
    pub concurrent_per_server: u32,
    /// Memory of the program.
    pub heap_bytes: u64,
    /// Stack of the program.
    pub stack_bytes: u64,
    /// Time the program itself computes.
    pub cpu: Duration,
    /// Time from start to end, without what the run waits for people and sleeps without a process.
    pub wall: Duration,
    /// Source text of the program.
    pub source_bytes: u64,
    /// Arguments of one call.
    pub arguments_bytes: u64,
    /// Result of one call, and of the program.
    pub result_bytes: u64,
    /// What the program writes to its console.
    pub console_bytes: u64,
    /// Levels of a value that enters or leaves the program.
    pub nesting: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
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

/// How runs are kept: `[runs]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runs {
    /// Whether runs that were interrupted go on by themselves.
    pub resume: bool,
    /// What is on the disk before a call that must not be made twice is sent.
    pub durable: Durable,
    /// How long the result of a run can be asked for.
    pub keep_results: Duration,
    /// Processes that are kept ready for programs.
    pub workers: u32,
    /// A run that waits longer than this for a timer gives its process back meanwhile.
    pub park_after: Duration,
}

impl Default for Runs {
    fn default() -> Runs {
        Runs {
            resume: true,
            durable: Durable::Full,
            keep_results: HOUR,
            workers: 2,
            park_after: Duration::from_secs(10),
        }
    }
}

/// How far the record of a call that must not be made twice has got before the call is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durable {
    /// On the disk: it survives a power cut.
    Full,
    /// With the system: it survives the end of PML.
    Normal,
}

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(60 * 60);

/// Messages to servers and values in the database have at most 16 MiB, with what is around them.
const LARGEST_VALUE: u64 = 8 * MIB;
/// Below what the kernel gives a sandbox as its last limits, so that ours are the ones that are met.
const LARGEST_HEAP: u64 = 256 * MIB;
const LONGEST_CPU: Duration = Duration::from_secs(5 * 60);

/// Reads `[limits]`.
pub(super) fn limits(root: &Section<'_>) -> Result<Limits, Complaint> {
    let default = Limits::default();
    let Some(table) = root.section("limits", &reference::keys("limits"))? else { return Ok(default) };
    let count = |key, most, default| Ok::<_, Complaint>(table.count(key, 1..=most)?.unwrap_or(default));
    let size =
        |key, least, most, default| Ok::<_, Complaint>(table.size(key, least..=most)?.unwrap_or(default));
    let time = |key, most, default| {
        Ok::<_, Complaint>(table.duration_in(key, MILLISECOND..=most)?.unwrap_or(default))
    };
    Ok(Limits {
        calls: count("calls", 100_000, default.calls)?,
        concurrent: count("concurrent", 1_024, default.concurrent)?,
        concurrent_per_server: count("concurrent_per_server", 1_024, default.concurrent_per_server)?,
        // Less than this does not hold the engine's own objects.
        heap_bytes: size("heap", 2 * MIB, LARGEST_HEAP, default.heap_bytes)?,
        stack_bytes: size("stack", 64 * KIB, 4 * MIB, default.stack_bytes)?,
        cpu: time("cpu", LONGEST_CPU, default.cpu)?,
        wall: time("wall", 24 * HOUR, default.wall)?,
        // Analysis reads no more.
        source_bytes: size("source", KIB, 256 * KIB, default.source_bytes)?,
        arguments_bytes: size("arguments", KIB, LARGEST_VALUE, default.arguments_bytes)?,
        result_bytes: size("result", KIB, LARGEST_VALUE, default.result_bytes)?,
        console_bytes: size("console", KIB, LARGEST_VALUE, default.console_bytes)?,
        // No JSON that is nested deeper is read anywhere.
        nesting: count("nesting", 128, default.nesting)?,
    })
}

/// Reads `[runs]`.
pub(super) fn runs(root: &Section<'_>) -> Result<Runs, Complaint> {
    let default = Runs::default();
    let Some(table) = root.section("runs", &reference::keys("runs"))? else { return Ok(default) };
    Ok(Runs {
        resume: table.flag("resume")?.unwrap_or(default.resume),
        durable: durable(&table)?,
        keep_results: table
            .duration_in("keep_results", SECOND..=30 * 24 * HOUR)?
            .unwrap_or(default.keep_results),
        workers: table.count("workers", 1..=64)?.unwrap_or(default.workers),
        park_after: table.duration_in("park_after", SECOND..=24 * HOUR)?.unwrap_or(default.park_after),
    })
}

fn durable(table: &Section<'_>) -> Result<Durable, Complaint> {
    match (table.text("durable")?, table.get("durable")) {
        (Some("normal"), _) => Ok(Durable::Normal),
        (Some(other), Some(node)) if other != "full" => Err(table
            .file
            .complaint(node.at, format!("`{}` is `{other}`", table.path("durable")))
            .hint("write \"full\" (survives a power cut) or \"normal\" (survives the end of PML)")),
        (_, _) => Ok(Durable::Full),
    }
}
