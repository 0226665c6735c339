//! What a run is made of: everything that is needed to run it, or to run it again exactly.
//!
//! A leaf that the stages share: planning makes a [`Plan`], approval looks at it, execution carries it out and learning
//! remembers it.

mod grant;
mod learn;

use pml_analysis::dag::Given;
use pml_analysis::{Analysis, Identity, Program};
use pml_model::json::{Fields, raw};
use pml_model::question::{Answerer, Approval};
use pml_model::structure::{NodeId, Structure};
use pml_model::{CapabilityId, Digest, ToolId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::config::Limits;
pub use grant::Grant;
pub(crate) use learn::without_required;
pub use learn::{Learn, Literal};

/// A program, analysed and allowed, with all it may use.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// What it is for, in the asker's words.
    pub intent: String,
    /// The text that was asked for.
    pub source: String,
    /// Of that text.
    pub code_hash: String,
    /// Which rules made the program that is run.
    pub analysis_version: u32,
    /// Which engine and surface it is run by.
    pub engine: String,
    /// What is run.
    pub work: Work,
    /// What it can do.
    pub structure: Structure,
    /// `args`, JSON.
    pub arguments: Box<RawValue>,
    /// What its random numbers are made of.
    pub seed: u64,
    /// Its time when it starts, in milliseconds since 1970.
    pub start: i64,
    /// The tools it sees, by handle; behind them those that only the capabilities it calls see.
    pub tools: Vec<Granted>,
    /// The capabilities that are called, by it or by each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<Nested>,
    /// What it sees itself, where others see something too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sees: Option<Sees>,
    /// What standing rules allow it beforehand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// Whose word counts where a person has to be asked.
    #[serde(default = "Answerer::strictest")]
    pub by: Answerer,
    /// Where it may call tools that cannot be known beforehand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opaque: Vec<String>,
    /// What a person is asked before it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Approval>,
    /// What it may use up.
    pub limits: Bounds,
    /// The session it was asked for in.
    #[serde(default)]
    pub session: String,
    /// What is to be learned of it; nothing where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learn: Option<Learn>,
    /// Of the document that took the place of what was asked for, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replanned_hash: Option<String>,
}

/// What a program sees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sees {
    /// Tools, by handle.
    pub tools: Vec<u32>,
    /// Capabilities, by their places in [`Plan::nested`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<u32>,
}

/// A capability that is called, as it was when the run was planned.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Nested {
    /// Which.
    pub id: CapabilityId,
    /// What programs call it by.
    pub name: String,
    /// What is run.
    pub source: String,
    /// Of that text.
    pub code_hash: String,
    /// The same, ready to run.
    pub program: Program,
    /// What it can do.
    pub structure: Structure,
    /// What it is given where its caller leaves something out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defaults: Vec<(String, Box<RawValue>)>,
    /// What it sees.
    pub sees: Sees,
    /// The names of its tasks by their nodes, where it is a document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<(NodeId, String)>,
}

/// What a plan runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// A program.
    Code(Program),
    /// Tasks that wait for each other.
    Dag(DagPlan),
}

/// Tasks that wait for each other.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DagPlan {
    /// The tasks.
    pub tasks: Vec<DagTask>,
    /// When somebody's word is waited for.
    pub pause: Pause,
    /// There is one task, and its result is the run's.
    pub single: bool,
    /// The task is a client's own call: what the tool answers is the run's result, unchanged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub direct: bool,
}

/// When a run waits for somebody's word before it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pause {
    /// Never.
    #[default]
    None,
    /// After each layer.
    PerLayer,
    /// When a task has failed that nobody said may fail.
    OnError,
    /// Never by itself: before the next layer, once somebody asks for it.
    Manual,
}

/// A task, with all it needs to run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DagTask {
    /// Its name in the document.
    pub id: String,
    /// Its name in the structure.
    pub node: NodeId,
    /// What it does.
    pub work: TaskWork,
    /// What it is given.
    #[serde(with = "pml_analysis::dag::kept")]
    pub given: Given,
    /// The tasks it waits for, by their places.
    pub after: Vec<usize>,
    /// What waits for it runs although it failed.
    pub safe_to_fail: bool,
    /// How long one try may take.
    pub timeout_ms: Option<u64>,
    /// How often it may be tried again.
    pub retries: u32,
    /// Another plan has no place for it any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dropped: bool,
}

/// What a task does.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskWork {
    /// Calls a tool.
    Tool {
        /// Which.
        handle: u32,
    },
    /// Runs a program.
    Code(Box<TaskCode>),
}

/// The program of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TaskCode {
    /// The text that was asked for.
    pub source: String,
    /// What is run.
    pub program: Program,
    /// What it can do.
    pub structure: Structure,
    /// What it sees.
    #[serde(flatten)]
    pub sees: Sees,
    /// The capability it is, by its place in [`Plan::nested`], where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<u32>,
}

/// Other tasks in place of those that have not run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Replan {
    /// All tasks: those that have run keep their places.
    pub tasks: Vec<DagTask>,
    /// All tools: those that were there keep their handles.
    pub tools: Vec<Granted>,
    /// All capabilities that are called: those that were there keep their places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<Nested>,
    /// Of the text of all tasks: what people allow is bound to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_hash: Option<String>,
    /// Whose answers count at the door it came through. It makes the run stricter, never looser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Answerer>,
}

/// A tool a run may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Granted {
    /// The tool.
    pub id: ToolId,
    /// What the program can call it by.
    pub names: Vec<String>,
    /// Its definition when the run was planned; with another it is another tool.
    pub digest: Digest,
    /// Calling it twice is calling it once.
    pub idempotent: bool,
    /// Why a person has to allow its calls, where one has to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<Asks>,
}

/// What a person is told of a tool whose calls they have to allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asks {
    /// What kind of reach it has.
    pub scope: String,
    /// Why they are asked: what follows the word "because".
    pub because: String,
}

/// What a run may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bounds {
    /// Calls in all.
    pub calls: u32,
    /// Calls at one time.
    pub concurrent: usize,
    /// Calls at one time to one server.
    pub concurrent_per_server: usize,
    /// Memory of the program.
    pub heap_bytes: u64,
    /// Stack of the program.
    pub stack_bytes: u64,
    /// Computing time.
    pub cpu_ms: u64,
    /// Time, waiting for a person or for a distant timer not counted.
    pub wall_ms: u64,
    /// Arguments of one call.
    pub argument_bytes: u64,
    /// Result of one call, and of the program.
    pub result_bytes: u64,
    /// What it may print.
    pub console_bytes: u64,
    /// How deep values may nest.
    pub nesting: u32,
    /// How far away a timer must be for the run to be put aside.
    pub park_after_ms: u64,
}

/// What analysis made of a program or a document, as far as a plan needs it.
#[derive(Debug)]
pub struct Understood {
    /// What it is.
    pub identity: Identity,
    /// What it can do.
    pub structure: Structure,
    /// What is run.
    pub work: Work,
}

impl Plan {
    /// A plan for what was understood.
    pub fn new(
        intent: String,
        source: String,
        understood: Understood,
        arguments: Box<RawValue>,
        tools: Vec<Granted>,
        limits: Bounds,
        (seed, start): (u64, i64),
    ) -> Plan {
        Plan {
            intent,
            source,
            code_hash: understood.identity.code_hash,
            analysis_version: understood.identity.analysis_version,
            engine: pml_sandbox::ENGINE.to_owned(),
            work: understood.work,
            structure: understood.structure,
            arguments,
            seed,
            start,
            tools,
            nested: Vec::new(),
            sees: None,
            grants: Vec::new(),
            by: Answerer::strictest(),
            opaque: Vec::new(),
            question: None,
            limits,
            session: String::new(),
            learn: None,
            replanned_hash: None,
        }
    }

    /// Whether somebody's word is waited for between its layers.
    pub(crate) fn pauses(&self) -> bool {
        self.dag().is_some_and(|dag| dag.pause != Pause::None)
    }

    /// When somebody's word is waited for between its layers.
    pub(crate) fn pause(&self) -> Pause {
        self.dag().map_or(Pause::None, |dag| dag.pause)
    }

    /// Whether it is a client's own call of one tool. Its results are whole MCP tool results.
    pub(crate) fn is_direct(&self) -> bool {
        self.dag().is_some_and(|dag| dag.direct)
    }

    /// Whether a person may have to allow something.
    pub(crate) fn asks(&self) -> bool {
        self.tools.iter().any(|tool| tool.asks.is_some())
    }

    /// The same run with other tasks in place of those that have not run.
    pub(crate) fn replanned(&self, replan: &Replan) -> Plan {
        let mut plan = self.clone();
        plan.tools.clone_from(&replan.tools);
        if let Some(learn) = &mut plan.learn {
            learn.changed = true;
        }
        plan.nested.clone_from(&replan.nested);
        plan.by = replan.by.map_or(plan.by, |by| plan.by.stricter(by));
        plan.replanned_hash.clone_from(&replan.code_hash);
        if let Work::Dag(dag) = &mut plan.work {
            dag.tasks.clone_from(&replan.tasks);
        }
        plan
    }

    /// The same run with another program. It sees the tools the recorded one saw, and of the capabilities those it names.
    #[must_use]
    pub fn with_code(self, source: String, analysis: Analysis) -> Plan {
        let names = &analysis.permissions.capabilities;
        let named = (0..).zip(&self.nested).filter(|(_, nested)| names.contains(&nested.name));
        let nested = named.map(|(place, _)| place).collect();
        Plan {
            sees: self.sees.map(|sees| Sees { nested, ..sees }),
            source,
            code_hash: analysis.identity.code_hash,
            analysis_version: analysis.identity.analysis_version,
            work: Work::Code(analysis.program),
            structure: analysis.structure,
            learn: None,
            ..self
        }
    }

    /// The program, where it is one.
    pub fn program(&self) -> Option<&Program> {
        match &self.work {
            Work::Code(program) => Some(program),
            Work::Dag(_) => None,
        }
    }

    /// The tasks, where it is made of tasks.
    pub(crate) fn dag(&self) -> Option<&DagPlan> {
        match &self.work {
            Work::Code(_) => None,
            Work::Dag(dag) => Some(dag),
        }
    }

    /// The programs of its tasks, where it is made of tasks.
    pub(crate) fn codes(&self) -> impl Iterator<Item = &TaskCode> {
        let tasks = self.dag().map(|dag| dag.tasks.as_slice()).unwrap_or_default();
        tasks.iter().filter_map(|task| match &task.work {
            TaskWork::Code(code) => Some(&**code),
            TaskWork::Tool { .. } => None,
        })
    }

    /// Whether the node calls the tool by this handle. The same tool has another where a task says of itself that it
    /// changes something.
    pub(crate) fn may_call(&self, node: NodeId, handle: u32) -> bool {
        let task = self.dag().and_then(|dag| dag.tasks.iter().find(|task| task.node == node));
        match task.map(|task| &task.work) {
            Some(TaskWork::Tool { handle: its }) => *its == handle,
            Some(TaskWork::Code(code)) => code.sees.tools.contains(&handle),
            None => true,
        }
    }

    /// What approvals bind to: the exact text of all that is run.
    pub(crate) fn approved_hash(&self) -> String {
        let code_hash = self.replanned_hash.as_ref().unwrap_or(&self.code_hash);
        if self.nested.is_empty() {
            return code_hash.clone();
        }
        // What one is given where its caller leaves something out is as good as written.
        let all = self.nested.iter().map(|nested| match nested.defaults.is_empty() {
            true => nested.code_hash.clone(),
            false => format!("{} {}", nested.code_hash, raw(&nested.defaults)),
        });
        let all: Vec<String> = std::iter::once(code_hash.clone()).chain(all).collect();
        Digest::of(all.join("\n").as_bytes()).as_str().to_owned()
    }

    /// What a worker is given: the plan's own program.
    pub(crate) fn for_worker(&self, program: &Program) -> pml_sandbox::Program {
        let all = || Sees { tools: (0..).take(self.tools.len()).collect(), nested: Vec::new() };
        let sees = self.sees.clone().unwrap_or_else(all);
        self.program_for_worker(program, self.arguments.get(), &sees, 0, self.start)
    }

    /// What a worker is given to run a program that sees this. `which` tells programs of one run apart.
    pub(crate) fn program_for_worker(
        &self,
        program: &Program,
        arguments: &str,
        sees: &Sees,
        which: u64,
        now_ms: i64,
    ) -> pml_sandbox::Program {
        let nested = |nested: &Nested| pml_sandbox::Nested {
            name: nested.name.clone(),
            js: nested.program.js.clone(),
            probe: nested.program.probe.clone(),
            entries: entries(&nested.program),
            defaults: nested
                .defaults
                .iter()
                .map(|(name, value)| (name.clone(), value.get().to_owned()))
                .collect(),
            tools: self.seen_tools(&nested.sees),
            sees: nested.sees.nested.clone(),
        };
        pml_sandbox::Program {
            js: program.js.clone(),
            probe: program.probe.clone(),
            entries: entries(program),
            arguments: arguments.to_owned(),
            seed: self.seed.wrapping_add(which),
            now_ms,
            tools: self.seen_tools(sees),
            nested: self.nested.iter().filter(|_| !sees.nested.is_empty()).map(nested).collect(),
            sees: sees.nested.clone(),
            limits: pml_sandbox::Limits {
                heap_bytes: self.limits.heap_bytes,
                stack_bytes: self.limits.stack_bytes,
                console_bytes: self.limits.console_bytes,
                argument_bytes: self.limits.argument_bytes,
                result_bytes: self.limits.result_bytes,
                nesting: self.limits.nesting,
                calls: self.limits.calls,
                cpu: std::time::Duration::from_millis(self.limits.cpu_ms),
            },
        }
    }

    fn seen_tools(&self, sees: &Sees) -> Vec<pml_sandbox::Granted> {
        let granted = |handle: &u32| {
            let tool = self.tools.get(*handle as usize)?;
            Some(pml_sandbox::Granted {
                server: tool.id.server.to_string(),
                names: tool.names.clone(),
                handle: *handle,
            })
        };
        sees.tools.iter().filter_map(granted).collect()
    }
}

impl Nested {
    /// `arguments`, a JSON object, with what they leave out.
    pub(crate) fn given(&self, arguments: &RawValue) -> Box<RawValue> {
        let mut given = Fields::parse(arguments.get()).unwrap_or_default();
        for (name, value) in &self.defaults {
            if given.get(name).is_none() {
                given.set(name.clone(), value.clone());
            }
        }
        given.to_raw()
    }
}

fn entries(program: &Program) -> Vec<pml_sandbox::Entry> {
    let entry = |entry: &pml_analysis::Entry| pml_sandbox::Entry {
        point: entry.point,
        context: entry.context,
        function: entry.function,
        enters: entry.enters,
    };
    program.entries.iter().map(entry).collect()
}

/// The line of the source that a place of a program comes from.
pub(crate) fn source_line(program: &Program, line: u32, column: u32) -> Option<u32> {
    let index = usize::try_from(line).ok()?.checked_sub(1)?;
    let first = program.lines.get(index).copied().filter(|line| *line > 0)?;
    let mut breaks = program.breaks.iter().filter(|after| after.line == line && after.column <= column);
    Some(breaks.next_back().map_or(first, |after| after.source))
}

impl Bounds {
    /// The bounds a configuration sets.
    pub fn new(limits: &Limits, runs: &crate::config::Runs) -> Bounds {
        let ms = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Bounds {
            calls: limits.calls,
            concurrent: limits.concurrent as usize,
            concurrent_per_server: limits.concurrent_per_server as usize,
            heap_bytes: limits.heap_bytes,
            stack_bytes: limits.stack_bytes,
            cpu_ms: ms(limits.cpu),
            wall_ms: ms(limits.wall),
            argument_bytes: limits.arguments_bytes,
            result_bytes: limits.result_bytes,
            console_bytes: limits.console_bytes,
            nesting: limits.nesting,
            park_after_ms: ms(runs.park_after),
        }
    }
}
