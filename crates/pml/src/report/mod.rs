//! The report of a run: its path, its calls, its status and its result.

mod dry_run;
mod exploration;
mod not_ahead;
mod path;

use pml_model::ErrorCode;
use std::collections::{BTreeMap, HashMap};

use pml_model::question::{LayerResult, Question};
use pml_model::structure::{ForkForm, NodeId, NodeKind, Structure};
use pml_model::{CapabilityId, RunState};
use pml_store::RunSavings;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::plan::Plan;
pub use dry_run::{
    Branch, BranchCoverage, CapturedCall, CostAmount, DryRunEffect, DryRunMode, DryRunReport, DryRunStatus,
    DryRunWarning, EstimatedCost, ExploredPath,
};
pub use exploration::{
    Exploration, ExplorationTrace, ExploredCall, FailedPath, PathOutput, PathStanding, ToolHistory,
    ViablePath,
};
pub use not_ahead::NotAhead;
pub use path::{ExecutedPath, LoopTurns, PathDecision};
pub use pml_mock::MockOrigin as ValueOrigin;

/// The number of characters of a result shown in a list of calls.
const PREVIEW_CHARACTERS: usize = 240;

/// The number of pure operations that a report lists.
pub(crate) const MOST_OPERATIONS: usize = 200;

/// The report of a run that has ended or is parked. It is stored and sent as it stands here.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunReport {
    /// The state of the run.
    pub state: RunState,
    /// The value that the program returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// Whether the result is the complete tool result of a direct call, which may itself be marked as an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// Images and other non-text parts that the result refers to by handle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) parts: Vec<ContentPart>,
    /// The reason why there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunFailure>,
    /// The calls, in the order in which they were issued.
    pub tasks: Vec<CallReport>,
    /// The first pure operations at each place of the program, in the order in which they happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<OperationReport>,
    /// The outcomes of the tasks of a DAG.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outcomes: Vec<LayerResult>,
    /// The results of called capabilities, in the order in which they started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub called: Vec<CapabilityResult>,
    /// The path that the run took.
    pub path: ExecutedPath,
    /// The lines that the program printed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub console: Vec<ConsoleLine>,
    /// When each line was printed, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub console_at: Vec<i64>,
    /// Whether the program printed more than is kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub console_cut: bool,
    /// The name that the program suggests for itself, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Box<RawValue>>,
    /// When the run started, in milliseconds since the Unix epoch.
    pub started_at: i64,
    /// When the run ended, in the same unit.
    pub ended_at: i64,
    /// The id by which the learned capability can be requested from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability_id: Option<CapabilityId>,
    /// The parameters without a default, because their values look like secrets; every later run has to give them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// The parameters that the capability takes instead of values which the intent names and the program contains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lifted: Vec<String>,
    /// What usually follows this run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<NextSuggestion>,
    /// Warnings for the client beside the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The cache that the result came from; `None` if the run was executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_hit: Option<CacheSource>,
}

/// The cache that a result came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheSource {
    /// `execution` or `capability`.
    pub kind: String,
    /// The age of the cache entry, in milliseconds.
    pub age_ms: i64,
    /// Whether the result was produced before anybody asked for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ahead: bool,
}

/// A part of a result that is not text. The program holds its handle; the client receives the part itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ContentPart {
    /// The URI of the handle.
    pub(crate) uri: String,
    /// The content block as the tool returned it.
    pub(crate) content: Box<RawValue>,
}

/// A suggestion of what usually comes next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NextSuggestion {
    /// `capability` or `tool`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The id of the tool or capability.
    pub id: String,
    /// The display name.
    pub name: String,
    /// The estimated probability, from 0 to 1.
    pub confidence: f64,
    /// The reason for the suggestion, as text.
    pub reason: String,
}

/// The reason why a run has no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunFailure {
    /// The stable error code for programs.
    #[schema(value_type = String)]
    pub code: ErrorCode,
    /// The message, one sentence.
    pub message: String,
    /// The hint: what to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The node at which it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    /// The source line at which it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The numbers of the calls in doubt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_doubt: Vec<u32>,
}

impl RunReport {
    /// Whether a call or a task failed, even if the run went on.
    pub(crate) fn has_failures(&self) -> bool {
        let failed = |task: &CallReport| matches!(task.status, TaskStatus::Error | TaskStatus::Unknown);
        self.tasks.iter().any(failed) || self.outcomes.iter().any(|outcome| outcome.status == "error")
    }

    /// What the run saved: time by calls made ahead, and results that the client did not have to read.
    pub(crate) fn savings(&self) -> RunSavings {
        RunSavings {
            waited_less_ms: self.tasks.iter().filter_map(|task| task.saved_ms).sum(),
            call_bytes: self.tasks.iter().filter_map(|task| task.result_size).sum::<usize>() as u64,
            result_bytes: self.result.as_ref().map_or(0, |result| result.get().len()) as u64,
        }
    }

    /// The report of a run that waited longer than runs may.
    pub(crate) fn expired(started_at: i64, ended_at: Option<i64>) -> RunReport {
        let failure =
            RunFailure::new(ErrorCode::Expired, "the run waited longer than runs may").hint("run it anew");
        RunReport::only(RunState::Expired, failure, started_at, ended_at)
    }

    /// The report of a run that failed with `code` when nothing more could be recorded about it.
    pub(crate) fn unrecorded(code: Option<&str>, started_at: i64, ended_at: Option<i64>) -> RunReport {
        let failure = RunFailure::new(
            code.and_then(ErrorCode::parse).unwrap_or(ErrorCode::Storage),
            "how the run ended could not be recorded",
        )
        .hint("what was sent is in the journal as far as it goes: `pml runs show` tells");
        RunReport::only(RunState::Failed, failure, started_at, ended_at)
    }

    /// The report of a cached result.
    pub(crate) fn from_cache(
        result: Box<RawValue>,
        from: CacheSource,
        capability_id: Option<CapabilityId>,
        next: Vec<NextSuggestion>,
        now: i64,
    ) -> RunReport {
        let nothing = RunReport::only(RunState::Done, RunFailure::nothing_known(), now, None);
        RunReport { result: Some(result), error: None, cache_hit: Some(from), capability_id, next, ..nothing }
    }

    /// The report of a run about which only the failure is known.
    fn only(state: RunState, failure: RunFailure, started_at: i64, ended_at: Option<i64>) -> RunReport {
        RunReport {
            state,
            error: Some(failure),
            ..RunReport::empty(started_at, ended_at.unwrap_or(started_at))
        }
    }

    /// A report without any entries yet.
    pub(crate) fn empty(started_at: i64, ended_at: i64) -> RunReport {
        RunReport {
            state: RunState::Running,
            result: None,
            whole: false,
            parts: Vec::new(),
            error: None,
            tasks: Vec::new(),
            operations: Vec::new(),
            outcomes: Vec::new(),
            called: Vec::new(),
            path: ExecutedPath::default(),
            console: Vec::new(),
            console_at: Vec::new(),
            console_cut: false,
            hint: None,
            started_at,
            ended_at,
            capability_id: None,
            withheld: Vec::new(),
            lifted: Vec::new(),
            next: Vec::new(),
            warnings: Vec::new(),
            cache_hit: None,
        }
    }

    /// The report without measured times, which differ between runs of the same program.
    pub(crate) fn without_measured_times(mut self) -> RunReport {
        self.operations.iter_mut().for_each(|operation| operation.execution_time_us = None);
        self
    }

    /// The complete tool result of a direct call.
    pub fn tool_result(&self) -> Option<&RawValue> {
        self.result.as_deref().filter(|_| self.whole)
    }

    /// The calls that nothing awaited and that the end of the program cut off. Calls that lost a `Promise.race` are not
    /// among them: the program awaited one of several, and got it.
    pub(crate) fn cut_off(&self, structure: &Structure) -> Vec<&CallReport> {
        let raced = |task: &&CallReport| {
            let forks = |from: NodeId| {
                let kind = structure.node(from).map(|node| &node.kind);
                matches!(kind, Some(NodeKind::Fork { form: ForkForm::Race | ForkForm::Any }))
            };
            task.node_id
                .is_some_and(|node| structure.edges.iter().any(|edge| edge.to == node && forks(edge.from)))
        };
        let cut = |task: &&CallReport| task.status == TaskStatus::Cancelled;
        match self.state {
            RunState::Done => self.tasks.iter().filter(cut).filter(|task| !raced(task)).collect(),
            _ => Vec::new(),
        }
    }

    /// Adds warnings for the client: that calls were cut off, and that there is no result.
    pub(crate) fn add_warnings(&mut self, plan: &Plan) {
        if self.state != RunState::Done {
            return;
        }
        let mut cut: BTreeMap<&str, u32> = BTreeMap::new();
        for task in self.cut_off(&plan.structure) {
            *cut.entry(&task.tool).or_default() += 1;
        }
        if !cut.is_empty() {
            let named: Vec<String> = cut
                .iter()
                .map(
                    |(tool, times)| {
                        if *times == 1 { format!("`{tool}`") } else { format!("`{tool}` ({times} times)") }
                    },
                )
                .collect();
            self.warnings.push(format!(
                "the program ended before these calls did, and they were not sent or called off: {}; put `await` before them. Nothing \
                 is learned from this run",
                named.join(", ")
            ));
        }
        let nothing = self.result.as_ref().is_none_or(|result| result.get() == "null");
        if nothing && plan.program().is_some() {
            self.warnings
                .push("the program returned nothing; end it with `return` and what is wanted".to_owned());
        }
    }

    /// The images and other parts that the result refers to, as their tools returned them.
    pub fn contents(&self) -> impl Iterator<Item = &RawValue> {
        self.parts.iter().map(|part| &*part.content)
    }
}

impl RunFailure {
    /// The hint for a run whose tool has changed its definition.
    pub(crate) const RUN_ANEW: &str =
        "`pml list --changes` shows the change; run it anew to be asked about the tool as it is now";

    /// The failure of a run that recorded no reason.
    pub fn nothing_known() -> RunFailure {
        RunFailure::new(ErrorCode::Unknown, "the run has no result and does not say why")
    }

    /// A failure without a node or line.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> RunFailure {
        RunFailure {
            code,
            message: message.into(),
            hint: None,
            node_id: None,
            line: None,
            in_doubt: Vec::new(),
        }
    }

    /// The failure with a hint.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> RunFailure {
        self.hint = Some(hint.into());
        self
    }
}

/// The result of a capability that a run called.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityResult {
    /// The task id of the result: the node that calls the capability, with `#2` for the second call there.
    pub task_id: String,
    /// The name of the capability.
    pub capability: String,
    /// The outcome of the call.
    pub status: TaskStatus,
    /// The value it returned; `None` if it failed, or if the results of all capabilities are too large to be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// The reason why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunFailure>,
}

/// One call of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallReport {
    /// The number of the call, in the order of issue.
    pub call: u32,
    /// The node that makes the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    /// The task id of the result, if the node alone is ambiguous: `n2#1` for the first call of several there, `n3/n1`
    /// for a call that the capability called at `n3` makes at its own node `n1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// The tool, as `server:tool`.
    pub tool: String,
    /// The name of the capability that made the call, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// The outcome of the call.
    pub status: TaskStatus,
    /// The beginning of the result or of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_preview: Option<String>,
    /// The size of its result in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_size: Option<usize>,
    /// When the call was issued, in milliseconds since the Unix epoch.
    pub issued_at: i64,
    /// The duration, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_time_ms: Option<i64>,
    /// Whether the call was made before the program asked for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub speculated: bool,
    /// How much sooner its result was there for that, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_ms: Option<u64>,
    /// The age of its result in milliseconds, if the dry run that the run confirms had read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    /// Why the call was not made ahead, if something kept it from being.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_ahead: Option<NotAhead>,
}

impl CallReport {
    /// A call that was issued by the program itself and has no end yet.
    pub(crate) fn issued(call: u32, tool: String, issued_at: i64) -> CallReport {
        CallReport {
            call,
            node_id: None,
            task_id: None,
            tool,
            capability: None,
            status: TaskStatus::Cancelled,
            result_preview: None,
            result_size: None,
            issued_at,
            execution_time_ms: None,
            speculated: false,
            saved_ms: None,
            age_ms: None,
            not_ahead: None,
        }
    }
}

/// One pure operation of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationReport {
    /// The node of the operation; within a capability, the node that calls the capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    /// The operation, such as `code:filter`.
    pub tool: String,
    /// The name of the capability that the operation is part of, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// The beginning of its result.
    pub result_preview: String,
    /// Time in milliseconds since the Unix epoch.
    pub at: i64,
    /// The number of calls issued before it.
    pub after: u32,
    /// The duration, in microseconds; `None` in a replay, whose durations are its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_time_us: Option<u64>,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// The call returned a result.
    Success,
    /// The call returned an error.
    Error,
    /// The program ended first: the call was not sent, or was cancelled.
    Cancelled,
    /// The call was sent, and whether the tool acted is unknown.
    Unknown,
}

/// One line that a program printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConsoleLine {
    /// `log`, `info`, `warn`, `error`, `debug`.
    pub level: String,
    /// The text of the line.
    pub text: String,
    /// The name of the capability that printed it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
}

/// The status of a run, for a client that waits for it.
#[derive(Debug, Clone)]
pub enum RunStatus {
    /// The run is executing.
    Running(RunProgress),
    /// The run waits for an answer or for a timer.
    Waiting {
        /// The open question, with its id.
        question: Option<(String, Question)>,
        /// When the run resumes by itself, in milliseconds since the Unix epoch.
        wake_at: Option<i64>,
        /// The number of calls still in flight.
        in_flight: usize,
    },
    /// The run has ended.
    Finished(std::sync::Arc<RunReport>),
    /// The run has not ended, and no process executes it.
    Interrupted,
    /// This process no longer has the run; another does, or will.
    Elsewhere,
}

impl RunStatus {
    /// The id of the open question.
    pub fn question_id(&self) -> Option<&str> {
        match self {
            RunStatus::Waiting { question: Some((name, _)), .. } => Some(name),
            RunStatus::Waiting { question: None, .. }
            | RunStatus::Running(_)
            | RunStatus::Finished(_)
            | RunStatus::Interrupted
            | RunStatus::Elsewhere => None,
        }
    }
}

/// The progress of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunProgress {
    /// The number of issued calls.
    pub calls: u32,
    /// The number of finished calls.
    pub ended: u32,
    /// The progress that the program reports itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<f64>,
    /// The total that `done` counts towards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// The message for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl RunProgress {
    /// The progress notification for a client.
    pub(crate) fn for_client(&self) -> serde_json::Value {
        let said = self.message.clone();
        match self.done {
            Some(done) => serde_json::json!({ "progress": done, "total": self.total, "message": said }),
            None => {
                let message = format!("{} of {} calls ended", self.ended, self.calls);
                serde_json::json!({ "progress": self.ended, "message": message })
            }
        }
    }
}

/// A distinct name for each of these places: repeated places are numbered.
pub(crate) fn number_places(places: &[Option<impl AsRef<str>>]) -> Vec<Option<String>> {
    let names = || places.iter().map(|place| place.as_ref().map(AsRef::as_ref));
    let mut all: HashMap<&str, usize> = HashMap::new();
    names().flatten().for_each(|place| *all.entry(place).or_default() += 1);
    let mut so_far: HashMap<&str, usize> = HashMap::new();
    let mut number = |place| {
        let number = so_far.entry(place).or_default();
        *number += 1;
        if all[place] == 1 { place.to_owned() } else { format!("{place}#{number}") }
    };
    names().map(|place| place.map(&mut number)).collect()
}

/// The beginning of a value, for display.
pub(crate) fn preview(json: &str) -> String {
    pml_model::name::truncate_text(json, PREVIEW_CHARACTERS)
}
