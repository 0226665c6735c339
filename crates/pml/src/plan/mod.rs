//! The plan of a run: everything needed to execute it, or to replay it exactly.
//!
//! The stages share this leaf module: planning makes a [`Plan`], approval inspects it, execution carries it out and
//! learning records it.

mod explored;
mod grant;
mod learn;

use pml_analysis::dag::TaskArguments;
use pml_analysis::{Analysis, InstrumentedProgram, ProgramIdentity};
use pml_model::json::{Fields, raw};
use pml_model::question::{Answerer, ApprovalQuestion};
use pml_model::remote::Routing;
use pml_model::structure::{NodeId, Structure};
use pml_model::{CapabilityId, Digest, KeyId, ToolId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::config::Config;
pub use explored::ExploredChoice;
pub use grant::Grant;
pub(crate) use learn::remove_required;
pub use learn::{LearningPlan, LiftedPlan, PlanLiteral};

/// An analysed and permitted program, with everything it may use. It is stored with the run as it stands here: grouping
/// its fields would change the record of every run that is still to be resumed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The intent, in the client's words.
    pub intent: String,
    /// The source text of the request.
    pub source: String,
    /// The hash of `source`.
    pub code_hash: String,
    /// The version of the analysis that instrumented the program.
    pub analysis_version: u32,
    /// The version of the JavaScript engine and of the sandbox interface.
    pub engine: String,
    /// The program or DAG to execute.
    pub work: PlannedWork,
    /// The structure that analysis found.
    pub structure: Structure,
    /// The program's `args`, a JSON object.
    pub arguments: Box<RawValue>,
    /// The seed of the program's random numbers.
    pub seed: u64,
    /// The program's clock at its start, in milliseconds since the Unix epoch.
    pub start: i64,
    /// The granted tools, by handle. The tools that only called capabilities see come last.
    pub tools: Vec<PlannedTool>,
    /// The capabilities that the program or other capabilities call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<PlannedCapability>,
    /// What the program itself sees; `None` if it sees every tool of the plan and calls no capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sees: Option<ProgramScope>,
    /// The grants from standing rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<Grant>,
    /// Whose answer counts if the run needs approval.
    #[serde(default = "Answerer::strictest")]
    pub by: Answerer,
    /// The places that may call tools which cannot be known beforehand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opaque: Vec<String>,
    /// The question that must be answered before the run starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<ApprovalQuestion>,
    /// The resource limits of the run.
    pub limits: Bounds,
    /// The session of the client.
    #[serde(default)]
    pub session: String,
    /// The key of the client. A run goes on only as long as its key is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyId>,
    /// What to learn from the run; `None` if nothing is learned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learn: Option<LearningPlan>,
    /// The hash of the document that replaced the requested one, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replanned_hash: Option<String>,
    /// The explored path that was chosen, if this is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explored: Option<Box<ExploredChoice>>,
}

/// The tools and capabilities that a program sees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramScope {
    /// The handles of the tools.
    pub tools: Vec<u32>,
    /// The indexes of the capabilities in [`Plan::nested`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<u32>,
}

/// A capability that the run calls, as it was when the run was planned.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedCapability {
    /// The id of the capability.
    pub id: CapabilityId,
    /// The name by which programs call it.
    pub name: String,
    /// The source text of the capability.
    pub source: String,
    /// The hash of `source`.
    pub code_hash: String,
    /// The instrumented program made from `source`.
    pub program: InstrumentedProgram,
    /// The structure that analysis found.
    pub structure: Structure,
    /// The values of parameters that its caller leaves out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defaults: Vec<(String, Box<RawValue>)>,
    /// The tools and capabilities it sees.
    pub sees: ProgramScope,
    /// The task ids by node; empty unless the capability is a DAG document.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<(NodeId, String)>,
}

/// The work that a plan executes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlannedWork {
    /// A program.
    Code(InstrumentedProgram),
    /// A DAG of tasks.
    Dag(DagPlan),
}

/// The tasks of a DAG run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DagPlan {
    /// The tasks, in document order.
    pub tasks: Vec<DagTask>,
    /// When the run waits for an answer between layers.
    pub pause: Pause,
    /// Whether there is only one task, whose result is the result of the run.
    pub single: bool,
    /// Whether the task is a direct call by a client: the tool's result is the result of the run, unchanged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub direct: bool,
}

/// When a run waits for an answer before it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pause {
    /// Never.
    #[default]
    None,
    /// After each layer.
    PerLayer,
    /// After a task failed that is not marked safe to fail.
    OnError,
    /// Never by itself; before the next layer once a client requests it.
    Manual,
}

/// A task, with everything it needs to run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DagTask {
    /// The id of the task in the document.
    pub id: String,
    /// The node of the task in the structure.
    pub node: NodeId,
    /// The tool or program it runs.
    pub work: TaskWork,
    /// The arguments of the task.
    #[serde(with = "pml_analysis::dag::kept")]
    pub given: TaskArguments,
    /// The indexes of the tasks it depends on.
    pub after: Vec<usize>,
    /// Whether its dependents run even if it fails.
    pub safe_to_fail: bool,
    /// The timeout of one attempt, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// The number of retries after the first attempt.
    pub retries: u32,
    /// Whether a replan removed the task.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dropped: bool,
}

/// The work of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskWork {
    /// Calls a tool.
    Tool {
        /// The handle of the tool in the sandbox.
        handle: u32,
    },
    /// Runs a program.
    Code(Box<TaskCode>),
}

/// The program of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TaskCode {
    /// The source text of the task.
    pub source: String,
    /// The instrumented program made from `source`.
    pub program: InstrumentedProgram,
    /// The structure that analysis found.
    pub structure: Structure,
    /// The tools and capabilities it sees.
    #[serde(flatten)]
    pub sees: ProgramScope,
    /// The index in [`Plan::nested`] if the task runs a capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<u32>,
}

/// A replan: other tasks in place of those that have not run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Replan {
    /// All tasks. Tasks that have run keep their indexes.
    pub tasks: Vec<DagTask>,
    /// All tools. Tools of the original plan keep their handles.
    pub tools: Vec<PlannedTool>,
    /// All called capabilities. Those of the original plan keep their indexes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<PlannedCapability>,
    /// The hash of the text of all tasks; approvals are bound to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code_hash: Option<String>,
    /// Whose answers count on the channel the replan came through. It can make the run stricter, never looser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Answerer>,
}

/// A tool that a run may call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedTool {
    /// The id of the tool.
    pub id: ToolId,
    /// The names by which the program can call it.
    pub names: Vec<String>,
    /// The digest of its definition when the run was planned. With another definition it counts as another tool.
    pub digest: Digest,
    /// Whether the tool is idempotent.
    pub idempotent: bool,
    /// Where its calls are made.
    #[serde(default, skip_serializing_if = "Routing::is_server")]
    pub routing: Routing,
    /// Why its calls need approval; `None` if they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<ApprovalReason>,
}

/// What a person is shown about a tool that needs approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalReason {
    /// The kind of reach the tool has.
    pub scope: String,
    /// The reason for asking, phrased to follow the word "because".
    pub because: String,
}

/// The resource limits of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bounds {
    /// The number of calls in total.
    pub calls: u32,
    /// The number of concurrent calls.
    pub concurrent: usize,
    /// The number of concurrent calls to one server.
    pub concurrent_per_server: usize,
    /// Bytes of heap of the program.
    pub heap_bytes: u64,
    /// Bytes of stack of the program.
    pub stack_bytes: u64,
    /// CPU time of the program, in milliseconds.
    pub cpu_ms: u64,
    /// Elapsed time in milliseconds, without the time spent waiting for a person or a distant timer.
    pub wall_ms: u64,
    /// Bytes of the arguments of one call.
    pub argument_bytes: u64,
    /// Bytes of the result of one call, and of the program.
    pub result_bytes: u64,
    /// Bytes the program may print.
    pub console_bytes: u64,
    /// The nesting depth of values.
    pub nesting: u32,
    /// Milliseconds: a run that waits for a timer at least this far away is parked.
    pub park_after_ms: u64,
    /// The number of calls that may be made before the program asks for them; 0 makes none.
    #[serde(default)]
    pub speculated_calls: u32,
}

/// The parts of an analysis that a plan needs.
#[derive(Debug)]
pub struct AnalysedSource {
    /// The hashes that identify the source and its meaning.
    pub identity: ProgramIdentity,
    /// The structure that analysis found.
    pub structure: Structure,
    /// The program or DAG to execute.
    pub work: PlannedWork,
}

impl Plan {
    /// Makes a plan from an analysed source.
    pub fn new(
        intent: String,
        source: String,
        understood: AnalysedSource,
        arguments: Box<RawValue>,
        tools: Vec<PlannedTool>,
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
            key: None,
            session: String::new(),
            learn: None,
            replanned_hash: None,
            explored: None,
        }
    }

    /// Whether the run may wait for an answer between its layers.
    pub(crate) fn pauses(&self) -> bool {
        self.dag().is_some_and(|dag| dag.pause != Pause::None)
    }

    /// When the run waits for an answer between its layers.
    pub(crate) fn pause(&self) -> Pause {
        self.dag().map_or(Pause::None, |dag| dag.pause)
    }

    /// Whether the plan is a direct call of one tool by a client. Its result is a complete MCP tool result.
    pub(crate) fn is_direct(&self) -> bool {
        self.dag().is_some_and(|dag| dag.direct)
    }

    /// Whether the run may need approval.
    pub(crate) fn may_need_approval(&self) -> bool {
        self.tools.iter().any(|tool| tool.asks.is_some())
    }

    /// The plan with the tasks that have not run replaced.
    pub(crate) fn replanned(&self, replan: &Replan) -> Plan {
        let mut plan = self.clone();
        plan.tools.clone_from(&replan.tools);
        if let Some(learn) = &mut plan.learn {
            learn.changed = true;
        }
        plan.nested.clone_from(&replan.nested);
        plan.by = replan.by.map_or(plan.by, |by| plan.by.stricter(by));
        plan.replanned_hash.clone_from(&replan.code_hash);
        if let PlannedWork::Dag(dag) = &mut plan.work {
            dag.tasks.clone_from(&replan.tasks);
        }
        plan
    }

    /// The plan with another program. It sees the tools that the recorded program saw, and of the capabilities those it
    /// names.
    #[must_use]
    pub fn with_code(self, source: String, analysis: Analysis) -> Plan {
        let names = &analysis.permissions.capabilities;
        let named = (0..).zip(&self.nested).filter(|(_, nested)| names.contains(&nested.name));
        let nested = named.map(|(place, _)| place).collect();
        Plan {
            sees: self.sees.map(|sees| ProgramScope { nested, ..sees }),
            source,
            code_hash: analysis.identity.code_hash,
            analysis_version: analysis.identity.analysis_version,
            // The program is made anew, for the engine that is there now.
            engine: pml_sandbox::ENGINE.to_owned(),
            work: PlannedWork::Code(analysis.program),
            structure: analysis.structure,
            learn: None,
            ..self
        }
    }

    /// The program; `None` for a DAG.
    pub fn program(&self) -> Option<&InstrumentedProgram> {
        match &self.work {
            PlannedWork::Code(program) => Some(program),
            PlannedWork::Dag(_) => None,
        }
    }

    /// The DAG; `None` for a program.
    pub(crate) fn dag(&self) -> Option<&DagPlan> {
        match &self.work {
            PlannedWork::Code(_) => None,
            PlannedWork::Dag(dag) => Some(dag),
        }
    }

    /// The programs of the tasks; empty unless the plan is a DAG.
    pub(crate) fn task_programs(&self) -> impl Iterator<Item = &TaskCode> {
        let tasks = self.dag().map(|dag| dag.tasks.as_slice()).unwrap_or_default();
        tasks.iter().filter_map(|task| match &task.work {
            TaskWork::Code(code) => Some(&**code),
            TaskWork::Tool { .. } => None,
        })
    }

    /// Whether the node calls the tool with this handle. The same tool has a second handle for tasks that declare that
    /// they change something.
    pub(crate) fn may_call(&self, node: NodeId, handle: u32) -> bool {
        let task = self.dag().and_then(|dag| dag.tasks.iter().find(|task| task.node == node));
        match task.map(|task| &task.work) {
            Some(TaskWork::Tool { handle: its }) => *its == handle,
            Some(TaskWork::Code(code)) => code.sees.tools.contains(&handle),
            None => true,
        }
    }

    /// The hash that approvals bind to: the exact text of everything that runs.
    pub(crate) fn approved_hash(&self) -> String {
        let code_hash = self.replanned_hash.as_ref().unwrap_or(&self.code_hash);
        if self.nested.is_empty() {
            return code_hash.clone();
        }
        // Defaults take the place of arguments the caller leaves out, so they count as program text.
        let all = self.nested.iter().map(|nested| match nested.defaults.is_empty() {
            true => nested.code_hash.clone(),
            false => format!("{} {}", nested.code_hash, raw(&nested.defaults)),
        });
        let all: Vec<String> = std::iter::once(code_hash.clone()).chain(all).collect();
        Digest::of(all.join("\n").as_bytes()).as_str().to_owned()
    }

    /// The worker input for the plan's own program.
    pub(crate) fn for_worker(&self, program: &InstrumentedProgram) -> pml_sandbox::SandboxProgram {
        let all = || ProgramScope { tools: (0..).take(self.tools.len()).collect(), nested: Vec::new() };
        let sees = self.sees.clone().unwrap_or_else(all);
        self.program_for_worker(program, self.arguments.get(), &sees, 0, self.start)
    }

    /// The worker input for a program with this scope. `which` distinguishes the programs of one run.
    pub(crate) fn program_for_worker(
        &self,
        program: &InstrumentedProgram,
        arguments: &str,
        sees: &ProgramScope,
        which: u64,
        now_ms: i64,
    ) -> pml_sandbox::SandboxProgram {
        let nested = |nested: &PlannedCapability| pml_sandbox::NestedProgram {
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
        pml_sandbox::SandboxProgram {
            js: program.js.clone(),
            probe: program.probe.clone(),
            entries: entries(program),
            arguments: arguments.to_owned(),
            seed: self.seed.wrapping_add(which),
            now_ms,
            tools: self.seen_tools(sees),
            nested: self.nested.iter().filter(|_| !sees.nested.is_empty()).map(nested).collect(),
            sees: sees.nested.clone(),
            limits: pml_sandbox::SandboxLimits {
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

    fn seen_tools(&self, sees: &ProgramScope) -> Vec<pml_sandbox::GrantedTool> {
        let granted = |handle: &u32| {
            let tool = self.tools.get(*handle as usize)?;
            Some(pml_sandbox::GrantedTool {
                server: tool.id.server.to_string(),
                names: tool.names.clone(),
                handle: *handle,
            })
        };
        sees.tools.iter().filter_map(granted).collect()
    }
}

impl PlannedCapability {
    /// `arguments`, a JSON object, completed with the defaults.
    pub(crate) fn with_defaults(&self, arguments: &RawValue) -> Box<RawValue> {
        let mut given = Fields::parse(arguments.get()).unwrap_or_default();
        for (name, value) in &self.defaults {
            if given.get(name).is_none() {
                given.set(name.clone(), value.clone());
            }
        }
        given.to_raw()
    }
}

fn entries(program: &InstrumentedProgram) -> Vec<pml_sandbox::ProbeEntry> {
    let entry = |entry: &pml_analysis::ContextEntry| pml_sandbox::ProbeEntry {
        point: entry.point,
        context: entry.context,
        function: entry.function,
        enters: entry.enters,
    };
    program.entries.iter().map(entry).collect()
}

/// The source line that a position in the instrumented program comes from.
pub(crate) fn source_line(program: &InstrumentedProgram, line: u32, column: u32) -> Option<u32> {
    let index = usize::try_from(line).ok()?.checked_sub(1)?;
    let first = program.lines.get(index).copied().filter(|line| *line > 0)?;
    let mut breaks = program.breaks.iter().filter(|after| after.line == line && after.column <= column);
    Some(breaks.next_back().map_or(first, |after| after.source))
}

impl Bounds {
    /// The limits that the configuration sets.
    pub fn new(config: &Config) -> Bounds {
        let Config { limits, runs, speculation, .. } = config;
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
            speculated_calls: speculation.reads_per_run(),
        }
    }
}
