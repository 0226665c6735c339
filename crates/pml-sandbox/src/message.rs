//! What host and worker say to each other.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One program with everything that decides what it does: the same program and the same deliveries give the same
/// events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Body of an async function in strict mode.
    pub js: String,
    /// The name under which the body finds its probe object.
    pub probe: String,
    /// Which context a call of a local function enters.
    pub entries: Vec<Entry>,
    /// JSON of `args`.
    pub arguments: String,
    /// Seed of `Math.random`.
    pub seed: u64,
    /// The time the program sees until its first delivery, in milliseconds since 1970.
    pub now_ms: i64,
    /// The tools there are.
    pub tools: Vec<Granted>,
    /// The programs that it and they can call.
    pub nested: Vec<Nested>,
    /// Those of them that it can call itself, by their places.
    pub sees: Vec<u32>,
    /// What it may use, and all that it calls with it.
    pub limits: Limits,
}

/// A program that another can call: `capabilities[name](arguments)`. Each call is a *frame* with a realm of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nested {
    /// What others call it by.
    pub name: String,
    /// Body of an async function in strict mode.
    pub js: String,
    /// The name under which the body finds its probe object.
    pub probe: String,
    /// Which context a call of a local function enters.
    pub entries: Vec<Entry>,
    /// Members of `args` where the caller leaves them out: name and JSON.
    pub defaults: Vec<(String, String)>,
    /// The tools it sees.
    pub tools: Vec<Granted>,
    /// The programs it can call, by their places in [`Program::nested`].
    pub sees: Vec<u32>,
}

/// A call of a local function: from `context`, point `point` enters function `function` in context `enters`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The number in the probe.
    pub point: u32,
    /// The context the call is in.
    pub context: u32,
    /// The function called.
    pub function: u32,
    /// The context its body then has.
    pub enters: u32,
}

/// A tool the program may call: `mcp[server][name]` for each of `names`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// The server.
    pub server: String,
    /// The tool's own name first, then others it goes by.
    pub names: Vec<String>,
    /// What crosses the boundary instead of names.
    pub handle: u32,
}

/// What a run may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory of the engine; beyond it the run ends.
    pub heap_bytes: u64,
    /// Stack of the engine; beyond it the program sees a `RangeError`.
    pub stack_bytes: u64,
    /// Text written to the console; what comes after is dropped.
    pub console_bytes: u64,
    /// Serialised arguments of one call; beyond it that call is rejected.
    pub argument_bytes: u64,
    /// The serialised value of the program; beyond it the run ends.
    pub result_bytes: u64,
    /// Objects and arrays within each other, in arguments and in the value.
    pub nesting: u32,
    /// Calls of tools, and as many of programs; one more ends the run.
    pub calls: u32,
    /// Processor time; beyond it the worker is killed.
    pub cpu: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
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

/// Something that enters a running program. The worker takes one, runs until nothing is left to do, and takes the
/// next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The time the program sees from now on, in milliseconds since 1970.
    pub now_ms: i64,
    /// What is delivered.
    pub what: What,
}

/// What is delivered. A call that has ended and a timer that was cleared are passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A call succeeded.
    Result {
        /// Its number.
        call: u32,
        /// What it gave, as JSON.
        json: String,
    },
    /// A call failed.
    Error {
        /// Its number.
        call: u32,
        /// How.
        error: CallError,
    },
    /// A timer is due.
    Timer {
        /// Its number.
        timer: u32,
    },
}

/// A failed call as the program sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallError {
    /// `error.code`.
    pub code: String,
    /// `error.message`.
    pub message: String,
    /// `error.hint`.
    pub hint: Option<String>,
    /// JSON of `error.data`: the tool's own error result.
    pub data: Option<String>,
}

/// What a worker tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Event {
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
        /// The tool.
        handle: u32,
        /// A JSON object.
        arguments: String,
    },
    /// The program waits for a time.
    Timer {
        /// Timers are numbered from 1 in the order they are set; an interval sets a new one each time.
        timer: u32,
        /// From now.
        delay_ms: u64,
    },
    /// The program waits no more.
    TimerCleared {
        /// The timer.
        timer: u32,
    },
    /// A line of the console.
    Console {
        /// The frame that wrote it.
        frame: u32,
        /// How it was said.
        level: Level,
        /// What was said.
        text: String,
    },
    /// What follows on the console is dropped.
    ConsoleCut,
    /// `pml.progress`, the last one of a turn.
    Progress {
        /// How much is done.
        done: f64,
        /// Of how much.
        total: Option<f64>,
        /// In words.
        message: Option<String>,
    },
    /// `pml.hint`, the last one of a turn: an object.
    Hint {
        /// What was given, as JSON.
        json: String,
    },
    /// What probes saw since the last time, in the order of the first visit.
    Reached {
        /// The frame whose probes they are.
        frame: u32,
        /// What they saw.
        places: Vec<Reached>,
    },
    /// Nothing more happens before the next delivery.
    Quiet {
        /// How many deliveries were taken so far.
        taken: u32,
        /// How many calls have no end yet.
        calls: u32,
        /// How many timers are set.
        timers: u32,
    },
    /// The program has ended; this is the last event.
    Ended(Ending),
    /// A program calls another.
    FrameBegan {
        /// Frames are numbered from 1 in the order of the calls.
        frame: u32,
        /// The frame that calls.
        parent: u32,
        /// What is called, by its place in [`Program::nested`].
        nested: u32,
        /// The point of the call; 0 when it is not known.
        point: u32,
        /// The context of the point.
        context: u32,
        /// What it is given, with its defaults: a JSON object.
        arguments: String,
    },
    /// A program that was called has ended. What it had called and not waited for is given up.
    FrameEnded {
        /// Which.
        frame: u32,
        /// Its value as JSON, or why there is none.
        end: Result<String, Thrown>,
    },
    /// A pure operation has given something. The first few of each place are told, at once.
    Operation {
        /// The frame whose program it is a part of.
        frame: u32,
        /// The number in the probe.
        point: u32,
        /// The context of the point.
        context: u32,
        /// How long it took by the worker's clock. The one thing a worker tells that another run of the same program
        /// tells otherwise: nothing may be decided by it.
        took: Duration,
        /// What it gave.
        gave: Preview,
    },
}

/// A value in a few bytes. What does not fit or is no JSON is told by type and size: `{"_type": "array", "_size": 5}`; texts
/// are never cut, because half a secret is not recognised as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preview {
    /// JSON of at most [`PREVIEW_BYTES`].
    pub json: String,
    /// Whether that is all of the value.
    pub whole: bool,
}

/// How a line of the console was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Level {
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

/// A place of the program that was reached, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// What kind of place.
    pub kind: Kind,
    /// The number in the probe.
    pub point: u32,
    /// The context.
    pub context: u32,
    /// Of `Is` and `Has` 0 or 1, of `Case` the case's index, else 0.
    pub outcome: i32,
    /// How often since it was last told.
    pub count: u64,
    /// How many calls had been made when it was first reached since then.
    pub after: u32,
}

/// What kind of place was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// A condition was true or false.
    Is,
    /// A value was there (1), or null or undefined (0).
    Has,
    /// A case matched.
    Case,
    /// A loop began.
    Loop,
    /// A loop took a turn.
    Turn,
    /// An exception was caught.
    Caught,
    /// An operation happened.
    Did,
    /// A fork began.
    Fork,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// It returned a value: JSON.
    Value(String),
    /// It threw.
    Thrown(Thrown),
    /// It waits for something that cannot come: no call and no timer is left.
    Deadlock,
    /// It is over, but a rejection or an exception somewhere in it was never handled.
    Unhandled(Thrown),
    /// It wanted more than it may have.
    Limit(Limit),
}

/// What was thrown.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Thrown {
    /// The error's name; for other values what they are, such as `null` or `string`.
    pub name: String,
    /// The error's message; other values as the console shows them.
    pub message: String,
    /// The code of an error that came from the host or from the boundary; never one the program made up.
    pub code: Option<String>,
    /// The call that failed with it.
    pub call: Option<u32>,
    /// The frame that failed with it, where a program that was called did.
    pub frame: Option<u32>,
    /// The line in [`Program::js`], counted from 1; 0 when it is not known.
    pub line: u32,
    /// The column, counted from 1; 0 when it is not known.
    pub column: u32,
    /// The stack as the engine tells it, without frames that are not the program's.
    pub stack: String,
}

/// Which limit ended a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// [`Limits::heap_bytes`].
    Memory,
    /// [`Limits::calls`].
    Calls,
    /// [`Limits::result_bytes`].
    Result,
}

/// How deep programs may call each other.
pub const MOST_DEPTH: u32 = 8;

/// The longest preview of what an operation gave.
pub const PREVIEW_BYTES: usize = 240;

/// How many operations of one program are told, those of the programs it calls included.
pub(crate) const MOST_OPERATIONS: u32 = 1_000;

/// The longest text of an error or of progress, each for itself.
pub(crate) const THROWN_BYTES: usize = 16 << 10;
