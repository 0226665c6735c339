//! Traces: what is kept of a run for good, free of secrets, for learning and for people.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::capability::CapabilityId;
use crate::structure::NodeId;
use crate::{Digest, Principal, RunId};

/// The name of a trace. A run has one, whose name follows from the run's; so storing it twice stores it once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TraceId(String);

impl TraceId {
    /// The trace of a run.
    pub fn of(run: &RunId) -> TraceId {
        TraceId(run.as_str().replacen("run_", "trace_", 1))
    }

    /// The trace of a part of a run: a capability that was called within it.
    pub fn part(run: &RunId, frame: u32) -> TraceId {
        TraceId(format!("{}.{frame}", TraceId::of(run).0))
    }

    /// A name as it is written; whether there is such a trace is another question.
    pub fn written(text: &str) -> TraceId {
        TraceId(text.to_owned())
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for TraceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The finished record of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    /// Its name.
    pub id: TraceId,
    /// The run.
    pub workflow_id: RunId,
    /// Whose it is.
    pub principal: Principal,
    /// In which session.
    pub session: String,
    /// The procedure that was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability_id: Option<CapabilityId>,
    /// Hash of the exact source.
    pub plan_hash: String,
    /// What it was for.
    pub intent: String,
    /// How it ended.
    pub status: Status,
    /// Why it has no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failed>,
    /// How long it took, waiting for people not counted.
    pub duration_ms: i64,
    /// When it ended, in milliseconds since 1970.
    pub created_at: i64,
    /// The trace of the run it was a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_trace_id: Option<TraceId>,
    /// Its place in the order of learning, from 1; given when it is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learn_seq: Option<i64>,
    /// How surprising it was, from 0 to 1; known once it has been learned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// Nothing ran: the answer was known.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cached: bool,
    /// It was run to find something out, not for its result.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exploratory: bool,
    /// A person allowed what it did.
    #[serde(default, skip_serializing_if = "is_false")]
    pub approved: bool,
    /// What happened in it.
    #[serde(flatten)]
    pub body: Body,
}

/// What happened in a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Body {
    /// The nodes it came to, in an order that does not depend on timing.
    pub executed_path: Vec<NodeId>,
    /// What its decisions came to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// Its calls and the first pure operations of each place, in the order they were asked for.
    pub task_results: Vec<TaskResult>,
    /// How many more calls there were of which nothing is kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u32,
    /// What followed from what, by time and by data; places in `task_results`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<TraceEdge>,
    /// What it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_context: Option<Box<RawValue>>,
}

/// How a run ended, for learning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It gave a result and every call worked.
    Success,
    /// It gave a result although calls failed.
    Partial,
    /// It gave an error.
    Failed,
    /// Whoever asked no longer wanted it.
    Cancelled,
    /// It took too long.
    Timeout,
    /// It did not do what its journal says it did.
    Diverged,
    /// It was kept from doing it: refused, limited, a server down, wrong arguments.
    Blocked,
}

impl Status {
    /// Every status.
    pub const ALL: [Status; 7] = [
        Status::Success,
        Status::Partial,
        Status::Failed,
        Status::Cancelled,
        Status::Timeout,
        Status::Diverged,
        Status::Blocked,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Success => "success",
            Status::Partial => "partial",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
            Status::Timeout => "timeout",
            Status::Diverged => "diverged",
            Status::Blocked => "blocked",
        }
    }

    /// The status a word stands for.
    pub fn parse(word: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// What it says of the procedure: whether it works, or nothing.
    pub fn evidence(self) -> Option<bool> {
        match self {
            Status::Success | Status::Partial => Some(true),
            Status::Failed | Status::Timeout => Some(false),
            Status::Cancelled | Status::Diverged | Status::Blocked => None,
        }
    }
}

/// Why a run or a call has no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failed {
    /// For programs; stable.
    pub code: String,
    /// For people.
    pub message: String,
    /// What kind of error it is.
    pub error_type: ErrorType,
    /// Where it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
}

/// Kinds of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorType {
    /// It took too long.
    Timeout,
    /// It was not allowed.
    Permission,
    /// Something was not there.
    NotFound,
    /// Something had the wrong form.
    Validation,
    /// Something could not be reached.
    Network,
    /// Too much was asked for.
    RateLimit,
    /// Nobody wanted it any more.
    Cancelled,
    /// The tool itself is broken.
    Internal,
    /// None of these, as far as can be told.
    Unknown,
}

/// One outcome of a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The decision, or the `try` whose handler was entered.
    pub node_id: NodeId,
    /// What was tested, as written.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// What it came to, as far as the outcome tells: the truth of a condition, or the value of the case that was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// `true`, `false`, `case:<value>`, `default`, `error`.
    pub outcome: String,
    /// How often.
    pub times: u64,
}

/// One call of a run, or one pure operation of its program.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskResult {
    /// Its number in the run, from 1; 0 for a capability that was called and for an operation.
    pub call: u32,
    /// The node of the structure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    /// The task of a document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// `server:tool`, the id of a capability that was called, or `code:filter` and the like for an operation.
    pub tool: String,
    /// Its definition then; of a capability, of what it ran.
    pub tool_digest: Digest,
    /// What it was called with; nothing of an operation.
    pub args: Box<RawValue>,
    /// What it gave, as far as that is small; `{"_truncated": true, "_originalSize": …}` otherwise. Of an operation at most 240
    /// bytes: larger values by type and size, with their beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// Whether it worked.
    pub success: bool,
    /// What it said instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failed>,
    /// When it was asked for.
    pub started_at: i64,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
    /// How long an operation took, in microseconds: few take a millisecond.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<u64>,
    /// Which try.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub attempt: u32,
    /// The layer of a DAG, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<u32>,
    /// Something was taken out of it, or it did not fit: it cannot stand for what was really there.
    #[serde(default, skip_serializing_if = "is_false")]
    pub altered: bool,
}

impl TaskResult {
    /// Whether it is a pure operation and not a call.
    pub fn is_operation(&self) -> bool {
        is_operation(&self.tool)
    }
}

/// Whether something of a trace or of the graph is a pure operation: no server can be called `code`.
pub fn is_operation(id: &str) -> bool {
    id.starts_with("code:")
}

/// That one call came after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceEdge {
    /// The earlier call's place in `task_results`.
    pub from: u32,
    /// The later call's.
    pub to: u32,
    /// By what.
    #[serde(rename = "type")]
    pub kind: EdgeKind,
}

/// What ties calls together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeKind {
    /// The later one was given something of the earlier one's result.
    Dependency,
    /// The earlier one had ended when the later one began.
    Sequence,
    /// The later one was asked for next in the same session.
    Follows,
    /// The later one was called within the earlier one.
    Contains,
}

impl EdgeKind {
    /// Every kind.
    pub const ALL: [EdgeKind; 4] =
        [EdgeKind::Dependency, EdgeKind::Sequence, EdgeKind::Follows, EdgeKind::Contains];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            EdgeKind::Dependency => "dependency",
            EdgeKind::Sequence => "sequence",
            EdgeKind::Follows => "follows",
            EdgeKind::Contains => "contains",
        }
    }

    /// The kind a word stands for.
    pub fn parse(word: &str) -> Option<EdgeKind> {
        EdgeKind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}
