//! What is told of a run when it is over.

use std::collections::{BTreeMap, HashMap};

use pml_model::question::{LayerResult, Question};
use pml_model::structure::{ForkForm, NodeId, NodeKind, Structure};
use pml_model::{CapabilityId, RunState};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::journal::Part;
use super::path::Path;
use super::plan::Plan;
use crate::cache::Source;

/// How many characters of a result stand in a list of calls.
const PREVIEW_CHARACTERS: usize = 240;

/// How many operations of a run are told.
pub(super) const MOST_OPERATIONS: usize = 200;

/// All there is to tell of a run that is over or put aside.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// How it stands.
    pub state: RunState,
    /// What the program returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// The result is what the tool of a direct call answered, whole, also where it says that the tool failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// Images and the like that the result names by their handles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) parts: Vec<Part>,
    /// Why there is no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// Its calls, in the order they were asked for.
    pub tasks: Vec<Task>,
    /// The first pure operations of each place of its program, in the order they happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<Operated>,
    /// What became of the tasks of a DAG.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outcomes: Vec<LayerResult>,
    /// What the capabilities it called came to, in the order they began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub called: Vec<Called>,
    /// Which way it went.
    pub path: Path,
    /// What it printed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub console: Vec<Line>,
    /// It printed more than is kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub console_cut: bool,
    /// What the program would be called, in its own words; JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Box<RawValue>>,
    /// When it began, in milliseconds since 1970.
    pub started_at: i64,
    /// When it ended.
    pub ended_at: i64,
    /// What can be asked for by that name from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability_id: Option<CapabilityId>,
    /// Parameters that have to be given each time, because what they were looks like a secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// What usually comes next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<Next>,
    /// What whoever asked has to know beside the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Where the result was kept, where nothing was run for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_hit: Option<Source>,
}

/// Something that usually comes next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Next {
    /// `capability` or `tool`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its id.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// How likely, from 0 to 1.
    pub confidence: f64,
    /// Why.
    pub reason: String,
}

/// Why a run has no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// For programs; stable.
    pub code: String,
    /// One sentence.
    pub message: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The node it happened at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    /// The line of the source it happened at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Calls that were sent and whose effect is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_doubt: Vec<u32>,
}

impl Report {
    /// Whether something in it failed, also where the run went on: a call, or a task that need not have made one.
    pub(crate) fn has_failures(&self) -> bool {
        let failed = |task: &Task| matches!(task.status, TaskStatus::Error | TaskStatus::Unknown);
        self.tasks.iter().any(failed) || self.outcomes.iter().any(|outcome| outcome.status == "error")
    }

    /// Of a run that waited longer than runs may.
    pub(super) fn expired(started_at: i64, ended_at: Option<i64>) -> Report {
        let failure = Failure::new("EXPIRED", "the run waited longer than runs may").hint("run it anew");
        Report::only(RunState::Expired, failure, started_at, ended_at)
    }

    /// Of a run that failed with `code` when nothing more could be recorded of it.
    pub(super) fn unrecorded(code: Option<&str>, started_at: i64, ended_at: Option<i64>) -> Report {
        let failure = Failure::new(code.unwrap_or("STORAGE"), "how the run ended could not be recorded")
            .hint("what was sent is in the journal as far as it goes: `pml runs show` tells");
        Report::only(RunState::Failed, failure, started_at, ended_at)
    }

    /// Of something whose result was known.
    pub(crate) fn known(
        result: Box<RawValue>,
        from: Source,
        capability_id: Option<CapabilityId>,
        next: Vec<Next>,
        now: i64,
    ) -> Report {
        let nothing = Report::only(RunState::Done, Failure::nothing_known(), now, None);
        Report { result: Some(result), error: None, cache_hit: Some(from), capability_id, next, ..nothing }
    }

    /// Of a run of which nothing is known but why it has no result.
    fn only(state: RunState, failure: Failure, started_at: i64, ended_at: Option<i64>) -> Report {
        Report { state, error: Some(failure), ..Report::empty(started_at, ended_at.unwrap_or(started_at)) }
    }

    /// Of something of which nothing is known yet.
    pub(super) fn empty(started_at: i64, ended_at: i64) -> Report {
        Report {
            state: RunState::Running,
            result: None,
            whole: false,
            parts: Vec::new(),
            error: None,
            tasks: Vec::new(),
            operations: Vec::new(),
            outcomes: Vec::new(),
            called: Vec::new(),
            path: Path::default(),
            console: Vec::new(),
            console_cut: false,
            hint: None,
            started_at,
            ended_at,
            capability_id: None,
            withheld: Vec::new(),
            next: Vec::new(),
            warnings: Vec::new(),
            cache_hit: None,
        }
    }

    /// The same without what another run of the same program would tell otherwise.
    pub(super) fn without_measured_times(mut self) -> Report {
        self.operations.iter_mut().for_each(|operation| operation.execution_time_us = None);
        self
    }

    /// What the tool of a direct call answered.
    pub fn tool_result(&self) -> Option<&RawValue> {
        self.result.as_deref().filter(|_| self.whole)
    }

    /// Calls that nothing waited for and that the end of the program cut off. Those that lost a `Promise.race` are none:
    /// the program waited for one of several, and had it.
    pub(crate) fn cut_off(&self, structure: &Structure) -> Vec<&Task> {
        let raced = |task: &&Task| {
            let forks = |from: NodeId| {
                let kind = structure.node(from).map(|node| &node.kind);
                matches!(kind, Some(NodeKind::Fork { form: ForkForm::Race | ForkForm::Any }))
            };
            task.node_id
                .is_some_and(|node| structure.edges.iter().any(|edge| edge.to == node && forks(edge.from)))
        };
        let cut = |task: &&Task| task.status == TaskStatus::Cancelled;
        match self.state {
            RunState::Done => self.tasks.iter().filter(cut).filter(|task| !raced(task)).collect(),
            _ => Vec::new(),
        }
    }

    /// Adds what whoever asked has to know: that calls were cut off, and that there is no result.
    pub(super) fn warn(&mut self, plan: &Plan) {
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

    /// Images and the like that the result names, as their tools gave them.
    pub fn contents(&self) -> impl Iterator<Item = &RawValue> {
        self.parts.iter().map(|part| &*part.content)
    }
}

impl Failure {
    /// What to do where a tool is no longer what it was.
    pub(super) const RUN_ANEW: &str =
        "`pml list --changes` shows the change; run it anew to be asked about the tool as it is now";

    /// For a run that says nothing of why it has no result.
    pub fn nothing_known() -> Failure {
        Failure::new("UNKNOWN", "the run has no result and does not say why")
    }

    /// A failure without a place.
    pub(super) fn new(code: &str, message: impl Into<String>) -> Failure {
        Failure {
            code: code.to_owned(),
            message: message.into(),
            hint: None,
            node_id: None,
            line: None,
            in_doubt: Vec::new(),
        }
    }

    /// The same with a hint.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Failure {
        self.hint = Some(hint.into());
        self
    }
}

/// What a capability that a run called came to.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Called {
    /// What its result is asked for by: the node that calls it, with `#2` for the second call there.
    pub task_id: String,
    /// Its name.
    pub capability: String,
    /// What became of it.
    pub status: TaskStatus,
    /// What it returned; not where it failed, nor where all that capabilities returned is too large to be kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// One call of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Its number, in the order they were asked for.
    pub call: u32,
    /// The node of the structure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    /// What its result is asked for by, where that is not the node alone: `n2#1` for the first call of several there,
    /// `n3/n1` for a call that the capability called at `n3` makes at its own node `n1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// `server:tool`.
    pub tool: String,
    /// The name of the capability that made it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// What became of it.
    pub status: TaskStatus,
    /// The beginning of its result, or its error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_preview: Option<String>,
    /// The size of its result in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_size: Option<usize>,
    /// When it was asked for.
    pub issued_at: i64,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_time_ms: Option<i64>,
}

/// One pure operation of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operated {
    /// The node of the structure; of one within a capability, the node that calls that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    /// `code:filter` and the like.
    pub tool: String,
    /// The name of the capability it is a part of, where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// What it gave, or the beginning of it.
    pub result_preview: String,
    /// When.
    pub at: i64,
    /// How many calls had been asked for before.
    pub after: u32,
    /// How long it took, in microseconds; not told of a replay, which took its own time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_time_us: Option<u64>,
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// It gave a result.
    Success,
    /// It gave an error.
    Error,
    /// The program ended first: it was not sent, or called off.
    Cancelled,
    /// It was sent, and whether the tool acted is not known.
    Unknown,
}

/// One line a program printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// `log`, `info`, `warn`, `error`, `debug`.
    pub level: String,
    /// The text.
    pub text: String,
    /// The name of the capability that printed it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
}

/// How a run stands for someone who waits for it.
#[derive(Debug, Clone)]
pub enum Standing {
    /// It goes on.
    Running(Progress),
    /// It waits: for an answer, or for a time.
    Waiting {
        /// What it asks, under its name.
        question: Option<(String, Question)>,
        /// When it goes on by itself.
        wake_at: Option<i64>,
        /// How many calls are still under way.
        in_flight: usize,
    },
    /// It is over.
    Over(std::sync::Arc<Report>),
    /// Nobody works on it, though it is not over.
    Interrupted,
    /// This process no longer has it; another does, or will.
    Elsewhere,
}

impl Standing {
    /// The name of the question it asks.
    pub fn asks(&self) -> Option<&str> {
        match self {
            Standing::Waiting { question: Some((name, _)), .. } => Some(name),
            Standing::Waiting { question: None, .. }
            | Standing::Running(_)
            | Standing::Over(_)
            | Standing::Interrupted
            | Standing::Elsewhere => None,
        }
    }
}

/// How far a run has come.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// Calls asked for.
    pub calls: u32,
    /// Calls ended.
    pub ended: u32,
    /// What the program says of itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<f64>,
    /// Of how much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// In words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl Progress {
    /// As a client is notified of it.
    pub(super) fn for_client(&self) -> serde_json::Value {
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

/// The names for these places by which each of those at one place is told from the others.
pub(super) fn numbered<'p>(places: &'p [Option<String>]) -> Vec<Option<String>> {
    let mut all: HashMap<&str, usize> = HashMap::new();
    places.iter().flatten().for_each(|place| *all.entry(place).or_default() += 1);
    let mut so_far: HashMap<&str, usize> = HashMap::new();
    let mut name = |place: Option<&'p str>| {
        let place = place?;
        let number = so_far.entry(place).or_default();
        *number += 1;
        Some(if all[place] == 1 { place.to_owned() } else { format!("{place}#{number}") })
    };
    places.iter().map(|place| name(place.as_deref())).collect()
}

/// The beginning of a value as it is shown.
pub(super) fn preview(json: &str) -> String {
    pml_model::name::shortened(json, PREVIEW_CHARACTERS)
}
