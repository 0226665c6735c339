//! Messages between host and worker: programs, deliveries and events.

use std::time::Duration;

use pml_model::ErrorCode;
use serde::{Deserialize, Serialize};

/// One program with everything that determines its behaviour: the same program with the same deliveries produces the
/// same events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SandboxProgram {
    /// Body of an async function in strict mode.
    pub js: String,
    /// Name of the variable through which the body reaches its probe object.
    pub probe: String,
    /// For each call of a local function, the context that the call enters.
    pub entries: Vec<ProbeEntry>,
    /// `args` of the program, a JSON object.
    pub arguments: String,
    /// Seed of `Math.random`.
    pub seed: u64,
    /// The time the program sees until its first delivery, in milliseconds since the Unix epoch.
    pub now_ms: i64,
    /// The tools that the program itself may call.
    pub tools: Vec<GrantedTool>,
    /// All programs that this program can call, directly or through another one.
    pub nested: Vec<NestedProgram>,
    /// The programs that it can call directly, as indices into [`Self::nested`].
    pub sees: Vec<u32>,
    /// Limits that hold for the program and its nested programs together.
    pub limits: SandboxLimits,
}

/// A program that another can call: `capabilities[name](arguments)`. Each call is a *frame* with a realm of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NestedProgram {
    /// Key of the program in `capabilities`.
    pub name: String,
    /// Body of an async function in strict mode.
    pub js: String,
    /// Name of the variable through which the body reaches its probe object.
    pub probe: String,
    /// For each call of a local function, the context that the call enters.
    pub entries: Vec<ProbeEntry>,
    /// Defaults of `args`: name and JSON of each member that a caller may leave out.
    pub defaults: Vec<(String, String)>,
    /// The tools that this program may call.
    pub tools: Vec<GrantedTool>,
    /// The programs it can call, as indices into [`SandboxProgram::nested`].
    pub sees: Vec<u32>,
}

/// A call of a local function: from `context`, point `point` enters function `function` in context `enters`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeEntry {
    /// Number of the call's point in the probe table.
    pub point: u32,
    /// The context that the call is made in.
    pub context: u32,
    /// Number of the called function.
    pub function: u32,
    /// The context in which the body of the function then runs.
    pub enters: u32,
}

/// A tool the program may call: `mcp[server][name]` for each of `names`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantedTool {
    /// Name of the server, as the key in `mcp`.
    pub server: String,
    /// The tool's own name first, then its aliases.
    pub names: Vec<String>,
    /// Number that identifies the tool in events; names never cross the boundary.
    pub handle: u32,
}

/// Limits of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxLimits {
    /// Memory of the engine, in bytes. Exceeding it ends the run.
    pub heap_bytes: u64,
    /// Stack of the engine, in bytes. Exceeding it throws a `RangeError` in the program.
    pub stack_bytes: u64,
    /// Bytes of console output. The rest is dropped.
    pub console_bytes: u64,
    /// Bytes of the serialised arguments of one call. Exceeding it rejects that call.
    pub argument_bytes: u64,
    /// Bytes of the serialised value of the program. Exceeding it ends the run.
    pub result_bytes: u64,
    /// Nesting depth of objects and arrays, in arguments and in the value.
    pub nesting: u32,
    /// Number of tool calls, and likewise of frames. One more ends the run.
    pub calls: u32,
    /// Processor time. Exceeding it kills the worker.
    pub cpu: Duration,
}

impl Default for SandboxLimits {
    fn default() -> SandboxLimits {
        SandboxLimits {
            heap_bytes: 64 << 20,
            stack_bytes: 512 << 10,
            console_bytes: 64 << 10,
            argument_bytes: 256 << 10,
            result_bytes: 4 << 20,
            nesting: 128,
            calls: 1_000,
            cpu: Duration::from_secs(5),
        }
    }
}

/// Input of a running program. The worker takes one delivery, runs until no job is left, and takes the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The time the program sees from this delivery on, in milliseconds since the Unix epoch.
    pub now_ms: i64,
    /// The end of a call, or a timer.
    pub what: DeliveryPayload,
}

/// Payload of a delivery. The worker ignores calls that have ended and timers that were cleared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeliveryPayload {
    /// A call succeeded.
    Result {
        /// Number of the call within its run.
        call: u32,
        /// The result, as JSON.
        json: String,
    },
    /// A call failed.
    Error {
        /// Number of the call within its run.
        call: u32,
        /// The error the program sees.
        error: ToolCallError,
    },
    /// A timer is due.
    Timer {
        /// Number of the timer within its run.
        timer: u32,
    },
}

/// A failed call as the program sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallError {
    /// `error.code`.
    pub code: ErrorCode,
    /// `error.message`.
    pub message: String,
    /// `error.hint`.
    pub hint: Option<String>,
    /// JSON of `error.data`: the tool's own error result.
    pub data: Option<String>,
}

/// What a worker reports to its host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum WorkerEvent {
    /// The program calls a tool.
    Call {
        /// Calls are numbered from 1 in the order they are made.
        call: u32,
        /// The frame the call was made in; the program itself is 0.
        frame: u32,
        /// The point of the call; 0 when it is not known.
        point: u32,
        /// The context of the point.
        context: u32,
        /// Handle of the tool.
        handle: u32,
        /// The arguments, a JSON object.
        arguments: String,
    },
    /// The program sets a timer.
    Timer {
        /// Timers are numbered from 1 in the order they are set; an interval sets a new one each time.
        timer: u32,
        /// Milliseconds from the current delivery.
        delay_ms: u64,
    },
    /// The program clears a timer.
    TimerCleared {
        /// Number of the cleared timer.
        timer: u32,
    },
    /// One line of console output.
    Console {
        /// The frame that wrote it.
        frame: u32,
        /// Level, from the console method that was called.
        level: ConsoleLevel,
        /// The text of the line.
        text: String,
    },
    /// The console limit is reached: all further output is dropped.
    ConsoleCut,
    /// The last `pml.progress` call of a turn.
    Progress {
        /// Amount of work done, in units the program chooses.
        done: f64,
        /// Amount of work in all, in the same units.
        total: Option<f64>,
        /// The message for people.
        message: Option<String>,
    },
    /// The last `pml.hint` call of a turn.
    Hint {
        /// The hint, a JSON object.
        json: String,
    },
    /// Points that probes reached since the last such event, in the order of the first visit.
    Reached {
        /// The frame that the probes belong to.
        frame: u32,
        /// The points, each with its count.
        places: Vec<ReachedPoint>,
    },
    /// The worker is quiet: it does nothing before the next delivery.
    Quiet {
        /// Number of deliveries taken so far.
        taken: u32,
        /// Number of calls without an end.
        calls: u32,
        /// Number of timers that are set.
        timers: u32,
    },
    /// The program has ended; this is the last event.
    Ended(ProgramEnding),
    /// A program calls another: a frame begins.
    FrameBegan {
        /// Frames are numbered from 1 in the order of the calls.
        frame: u32,
        /// The frame of the caller.
        parent: u32,
        /// The called program, as an index into [`SandboxProgram::nested`].
        nested: u32,
        /// The point of the call; 0 when it is not known.
        point: u32,
        /// The context of the point.
        context: u32,
        /// The arguments with defaults filled in, a JSON object.
        arguments: String,
    },
    /// A frame has ended. Its calls and timers that nothing awaited are dropped.
    FrameEnded {
        /// Number of the frame: of the capability call within its run.
        frame: u32,
        /// Value of the frame as JSON, or the error it failed with.
        end: Result<String, ThrownError>,
    },
    /// A pure operation returned a value. Only the first few of each point are reported, immediately.
    Operation {
        /// The frame that runs the operation.
        frame: u32,
        /// Number of the operation's point in the probe table.
        point: u32,
        /// The context of the point.
        context: u32,
        /// Duration by the worker's clock. It is the only field that differs between two runs of the same program, so
        /// no decision may depend on it.
        took: Duration,
        /// Preview of the returned value.
        gave: ValuePreview,
    },
}

/// A value in a few bytes. A value that does not fit or has no JSON is described by type and size:
/// `{"_type": "array", "_size": 5}`. Strings are never cut, because half a secret would not be recognised as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValuePreview {
    /// JSON of at most [`PREVIEW_BYTES`] bytes.
    pub json: String,
    /// Whether `json` is the complete value.
    pub whole: bool,
}

/// Level of a line of console output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConsoleLevel {
    /// `console.debug`, `console.trace`.
    Debug,
    /// `console.log`.
    Log,
    /// `console.info`.
    Info,
    /// `console.warn`.
    Warn,
    /// `console.error`, a failed `console.assert`.
    Error,
}

/// A probe point that was reached, with its count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachedPoint {
    /// Kind of the point.
    pub kind: ProbeKind,
    /// Number of the point in the probe table.
    pub point: u32,
    /// The context it was reached in.
    pub context: u32,
    /// For `Is` and `Has` 0 or 1, for `Case` the index of the case, else 0.
    pub outcome: i32,
    /// Number of visits since the last report.
    pub count: u64,
    /// Number of calls made before the first visit since the last report.
    pub after: u32,
}

/// Kind of a probe point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ProbeKind {
    /// A condition was evaluated: true (1) or false (0).
    Is,
    /// A value was tested: present (1), or null or undefined (0).
    Has,
    /// A case matched.
    Case,
    /// A loop began.
    Loop,
    /// A loop took a turn.
    Turn,
    /// An exception was caught.
    Caught,
    /// An operation was performed.
    Did,
    /// A fork began.
    Fork,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProgramEnding {
    /// It returned a value, as JSON.
    Value(String),
    /// It threw.
    Thrown(ThrownError),
    /// It waits forever: no call and no timer is left.
    Deadlock,
    /// It ended, but a rejection or an exception in it was never handled.
    Unhandled(ThrownError),
    /// It exceeded a limit.
    Limit(ExceededLimit),
}

/// A thrown value.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ThrownError {
    /// Name of the error; for other values their type, such as `null` or `string`.
    pub name: String,
    /// The error's message; other values as the console shows them.
    pub message: String,
    /// Code of an error that the host or the boundary made. None for errors that the program made itself.
    pub code: Option<ErrorCode>,
    /// The call that failed with this error.
    pub call: Option<u32>,
    /// The frame that failed with this error, when a nested program did.
    pub frame: Option<u32>,
    /// The line in [`SandboxProgram::js`], counted from 1; 0 when it is not known.
    pub line: u32,
    /// The column, counted from 1; 0 when it is not known.
    pub column: u32,
    /// Stack as the engine writes it, restricted to frames of the program.
    pub stack: String,
}

/// The limit that ended a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExceededLimit {
    /// [`SandboxLimits::heap_bytes`].
    Memory,
    /// [`SandboxLimits::calls`].
    Calls,
    /// [`SandboxLimits::result_bytes`].
    Result,
}

/// Maximum nesting depth of frames.
pub const MOST_DEPTH: u32 = 8;

/// Maximum size of a [`ValuePreview`], in bytes.
pub const PREVIEW_BYTES: usize = 240;

/// Maximum number of reported operations in one run, nested programs included.
pub(crate) const MOST_OPERATIONS: u32 = 1_000;

/// Maximum size of each text of an error or of progress, in bytes.
pub(crate) const THROWN_BYTES: usize = 16 << 10;
