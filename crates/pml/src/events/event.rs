//! The events of the feed and their JSON.

use pml_model::question::Question;
use pml_model::{RunId, RunState};
use serde::Serialize;

/// The characters of a text that an event carries: more than a page shows in a line, and no result.
const MAX_TEXT: usize = 2_000;

/// What happened to a run.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum FeedEvent {
    /// A run began, or goes on in a process.
    RunStart(RunSummary),
    /// A run issued a call.
    TaskStart {
        /// The number of the call, in the order of issue.
        call: u32,
        /// The tool, as `server:tool`.
        tool: String,
        /// The node that makes the call.
        #[serde(skip_serializing_if = "Option::is_none")]
        node_id: Option<String>,
        /// The name of the capability that makes the call, if one does.
        #[serde(skip_serializing_if = "Option::is_none")]
        capability: Option<String>,
    },
    /// A call ended.
    TaskComplete(Box<TaskOutcome>),
    /// All tasks of a layer of a DAG ended.
    LayerComplete {
        /// The index of the layer, from 0.
        layer: usize,
        /// The number of layers.
        layers: usize,
    },
    /// A layer of a DAG waits for a decision.
    DecisionRequired(QuestionRef),
    /// A run waits for approval of calls, or for an answer about calls in doubt.
    ApprovalRequired(QuestionRef),
    /// How far a run is.
    Progress {
        /// `running`, `waiting` or `interrupted`.
        status: &'static str,
        /// The number of issued calls.
        calls: u32,
        /// The number of finished calls.
        ended: u32,
        /// The progress that the program reports itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        done: Option<f64>,
        /// The total that `done` counts towards.
        #[serde(skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        /// The message of the program.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// A program printed something.
    Log {
        /// `debug`, `log`, `info`, `warn` or `error`.
        level: &'static str,
        /// What was printed.
        text: String,
    },
    /// A capability is called.
    CapabilityStart {
        /// The capability.
        capability: CapabilityRef,
        /// The number of this call of a capability within the run.
        frame: u32,
        /// The node that calls it.
        #[serde(skip_serializing_if = "Option::is_none")]
        node_id: Option<String>,
    },
    /// The call of a capability ended.
    CapabilityEnd {
        /// The capability.
        capability: CapabilityRef,
        /// The number of this call of a capability within the run.
        frame: u32,
        /// `ok` or `error`.
        status: &'static str,
        /// How long it took.
        duration_ms: i64,
    },
    /// A program named the capability that it should become.
    #[serde(rename_all = "snake_case")]
    CapabilityHint {
        /// The name.
        name: Option<String>,
        /// What it does.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// The tools that it may call.
        tools_used: Vec<String>,
    },
    /// A run ended.
    RunEnd {
        /// The state it ended in.
        status: RunState,
        /// From the start to the end.
        duration_ms: i64,
        /// The number of calls.
        calls: u32,
        /// How many of them failed; `None` if another process had the run.
        #[serde(skip_serializing_if = "Option::is_none")]
        failed_calls: Option<usize>,
        /// The id of the learned capability.
        #[serde(skip_serializing_if = "Option::is_none")]
        capability: Option<String>,
        /// Why there is no result.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<EventError>,
    },
}

/// A run that begins.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunSummary {
    /// `program`, `dag` or `tool`.
    pub kind: &'static str,
    /// The intent, in the words of the client.
    pub intent: String,
    /// The session that requested it.
    pub session: String,
    /// Whether the run was begun before, or waited for an answer.
    pub resumed: bool,
    /// When the run was begun, in milliseconds since the Unix epoch.
    pub started_at: i64,
}

/// How a call ended.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskOutcome {
    /// The number of the call, in the order of issue.
    pub call: u32,
    /// The tool, as `server:tool`.
    pub tool: String,
    /// The node that made the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
    /// The name of the capability that made the call, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// `ok`, `error` or `in_doubt`.
    pub status: &'static str,
    /// How long the call took.
    pub duration_ms: i64,
    /// The beginning of the result or of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_preview: Option<String>,
    /// The size of the result in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_size: Option<usize>,
    /// Whether the call was made before the program asked for it.
    pub speculated: bool,
    /// How much sooner its result was there for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved_ms: Option<u64>,
}

/// A question that a run waits on.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionRef {
    /// The id of the question.
    pub question: String,
    /// `approval`, `in_doubt` or `layer`.
    pub kind: &'static str,
    /// What is asked, in one line.
    pub summary: String,
}

/// A capability.
#[derive(Debug, Clone, Serialize)]
pub struct CapabilityRef {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// Why a run has no result.
#[derive(Debug, Clone, Serialize)]
pub struct EventError {
    /// The stable code.
    pub code: String,
    /// The message; empty if another process had the run.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl FeedEvent {
    /// The name of the event.
    pub fn name(&self) -> &'static str {
        match self {
            FeedEvent::RunStart(_) => "run_start",
            FeedEvent::TaskStart { .. } => "task_start",
            FeedEvent::TaskComplete(_) => "task_complete",
            FeedEvent::LayerComplete { .. } => "layer_complete",
            FeedEvent::DecisionRequired(_) => "decision_required",
            FeedEvent::ApprovalRequired(_) => "approval_required",
            FeedEvent::Progress { .. } => "progress",
            FeedEvent::Log { .. } => "log",
            FeedEvent::CapabilityStart { .. } => "capability_start",
            FeedEvent::CapabilityEnd { .. } => "capability_end",
            FeedEvent::CapabilityHint { .. } => "capability_hint",
            FeedEvent::RunEnd { .. } => "run_end",
        }
    }

    /// The event about a question that a run asks.
    pub fn question(id: &str, question: &Question) -> FeedEvent {
        let of = |kind: &'static str, summary: String| QuestionRef { question: id.to_owned(), kind, summary };
        match question {
            Question::Approval(asked) => {
                let tools = distinct(asked.calls.iter().map(|call| call.tool.as_str()));
                let calls = asked.calls.len();
                FeedEvent::ApprovalRequired(of("approval", format!("may it call {tools}? ({calls} in all)")))
            }
            Question::InDoubt { calls, .. } => {
                let tools = distinct(calls.iter().map(|call| call.tool.as_str()));
                FeedEvent::ApprovalRequired(of("in_doubt", format!("did {tools} take effect?")))
            }
            Question::SignIn { calls } => {
                let servers = distinct(calls.iter().map(|call| call.server.as_str()));
                FeedEvent::ApprovalRequired(of("sign_in", format!("sign in to {servers}")))
            }
            Question::Layer(layer) => FeedEvent::DecisionRequired(of(
                "layer",
                format!("layer {} of {} is done; go on?", layer.layer_index + 1, layer.total_layers),
            )),
        }
    }

    pub(super) fn to_json(&self, run: &RunId, at: i64) -> String {
        #[derive(Serialize)]
        struct Placed<'e> {
            run: &'e RunId,
            at: i64,
            #[serde(flatten)]
            event: &'e FeedEvent,
        }
        serde_json::to_string(&Placed { run, at, event: self }).expect("our own shapes have string keys only")
    }
}

/// The tools, each once, as text.
fn distinct<'t>(tools: impl Iterator<Item = &'t str>) -> String {
    let mut named: Vec<&str> = Vec::new();
    for tool in tools {
        if !named.contains(&tool) {
            named.push(tool);
        }
    }
    let rest = named.len().saturating_sub(3);
    named.truncate(3);
    let named = named.iter().map(|tool| format!("`{tool}`")).collect::<Vec<_>>().join(", ");
    if rest == 0 { named } else { format!("{named} and {rest} more") }
}

/// The beginning of a text that a program printed.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
