//! Traces: the permanent record of a run, free of secrets, for learning and for people.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::explored_path::ExploredPath;
use crate::id::CapabilityId;
use crate::structure::NodeId;
use crate::{Digest, Principal, RunId};

/// How much a mocked call counts in learning if its mock has not proved itself.
pub const UNPROVEN_WEIGHT: f64 = 0.5;

/// Id of a trace. It is derived from the id of the run, so storing the trace of a run twice is idempotent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TraceId(String);

impl TraceId {
    /// Id of the trace of a run.
    pub fn of(run: &RunId) -> TraceId {
        TraceId(run.as_str().replacen("run_", "trace_", 1))
    }

    /// Id of the trace of a frame: a capability that was called within a run.
    pub fn of_frame(run: &RunId, frame: u32) -> TraceId {
        TraceId(format!("{}.{frame}", TraceId::of(run).0))
    }

    /// An id from its text form. Such a trace need not exist.
    pub fn from_text(text: &str) -> TraceId {
        TraceId(text.to_owned())
    }

    /// The text form.
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
    /// Id of the trace.
    pub id: TraceId,
    /// Id of the run.
    pub workflow_id: RunId,
    /// The principal that the run belongs to.
    pub principal: Principal,
    /// The session that requested the run.
    pub session: String,
    /// The capability of the procedure that was run, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability_id: Option<CapabilityId>,
    /// Hash of the exact source.
    pub plan_hash: String,
    /// The intent, as text.
    pub intent: String,
    /// How the run ended.
    pub status: TraceStatus,
    /// The failure; `None` for a run with a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TraceFailure>,
    /// Duration in milliseconds, without the time spent waiting for people.
    pub duration_ms: i64,
    /// When the run ended, in milliseconds since the Unix epoch.
    pub created_at: i64,
    /// The trace of the calling run, for a nested capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_trace_id: Option<TraceId>,
    /// Position in the order of learning, from 1; assigned when the trace is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learn_seq: Option<i64>,
    /// How surprising the run was, from 0 to 1; `None` until the trace has been learned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
    /// Whether the result came from the cache and nothing ran.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cached: bool,
    /// Whether the run was made to find something out, not for its result.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exploratory: bool,
    /// Whether a person approved the calls of the run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub approved: bool,
    /// Path, calls and data flow of the run.
    #[serde(flatten)]
    pub body: TraceBody,
}

/// Path, calls and data flow of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceBody {
    /// The nodes that were reached, in an order that does not depend on timing.
    pub executed_path: Vec<NodeId>,
    /// The outcomes of its decisions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<DecisionOutcome>,
    /// The calls, and the first pure operations of each place in the source, in the order in which they were issued.
    pub task_results: Vec<TaskResult>,
    /// Number of further calls that were not recorded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: u32,
    /// Dependencies by time and by data; the indices point into `task_results`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<TraceEdge>,
    /// The arguments of the run, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_context: Option<Box<RawValue>>,
    /// Share of the calls that were not made, from 0 to 1: [`TraceBody::share_of_mocks`] when the trace was built.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub mock_ratio: f64,
    /// The explored path that was tried or run, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explored: Option<Box<ExploredPath>>,
}

impl TraceBody {
    /// Share of the calls that were not made but answered with a made-up or recorded value.
    pub fn share_of_mocks(&self) -> f64 {
        let calls = || self.task_results.iter().filter(|task| task.call > 0);
        let mocked = calls().filter(|task| task.mocked).count();
        mocked as f64 / calls().count().max(1) as f64
    }
}

/// How a run ended, as far as learning distinguishes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceStatus {
    /// The run has a result, and every call succeeded.
    Success,
    /// The run has a result although calls failed.
    Partial,
    /// The run ended with an error.
    Failed,
    /// The client cancelled it.
    Cancelled,
    /// The run exceeded its time limit.
    Timeout,
    /// On replay the program did not do what its journal records.
    Diverged,
    /// The run was prevented: denied, rate limited, a server down, wrong arguments.
    Blocked,
}

impl TraceStatus {
    /// Every status.
    pub const ALL: [TraceStatus; 7] = [
        TraceStatus::Success,
        TraceStatus::Partial,
        TraceStatus::Failed,
        TraceStatus::Cancelled,
        TraceStatus::Timeout,
        TraceStatus::Diverged,
        TraceStatus::Blocked,
    ];

    /// The name of the status, as it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            TraceStatus::Success => "success",
            TraceStatus::Partial => "partial",
            TraceStatus::Failed => "failed",
            TraceStatus::Cancelled => "cancelled",
            TraceStatus::Timeout => "timeout",
            TraceStatus::Diverged => "diverged",
            TraceStatus::Blocked => "blocked",
        }
    }

    /// The status with this name.
    pub fn parse(word: &str) -> Option<TraceStatus> {
        TraceStatus::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether the procedure works, according to this status; `None` if it is no evidence either way.
    pub fn evidence(self) -> Option<bool> {
        match self {
            TraceStatus::Success | TraceStatus::Partial => Some(true),
            TraceStatus::Failed | TraceStatus::Timeout => Some(false),
            TraceStatus::Cancelled | TraceStatus::Diverged | TraceStatus::Blocked => None,
        }
    }
}

/// Failure of a run or a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceFailure {
    /// Stable code for programs.
    pub code: String,
    /// The message for people.
    pub message: String,
    /// The class of the error.
    pub error_type: ErrorType,
    /// Id of the node where it happened, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
}

/// Classes of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorType {
    /// A time limit was exceeded.
    Timeout,
    /// The call was not allowed.
    Permission,
    /// Something does not exist.
    NotFound,
    /// An argument or result has the wrong form.
    Validation,
    /// A host or server could not be reached.
    Network,
    /// A rate limit was exceeded.
    RateLimit,
    /// The call was cancelled.
    Cancelled,
    /// The tool itself is broken.
    Internal,
    /// None of these, or not known.
    Unknown,
}

/// An outcome of a decision, with its frequency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DecisionOutcome {
    /// The decision, or the `try` whose handler was entered.
    pub node_id: NodeId,
    /// The tested expression, as written.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// The value of the expression as far as the outcome shows it: a boolean, or the value of the case that was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// `true`, `false`, `case:<value>`, `default`, `error`.
    pub outcome: String,
    /// Number of occurrences.
    pub times: u64,
}

/// A call of a run, or a pure operation of its program.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskResult {
    /// Number of the call within the run, from 1; 0 for a nested capability and for an operation.
    pub call: u32,
    /// Id of the node of the structure, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_id: Option<NodeId>,
    /// Id of the task in the DAG document, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// `server:tool`, the id of a nested capability, or `code:filter` and the like for an operation.
    pub tool: String,
    /// Digest of the tool's definition at that time; for a capability, hash of the code it ran.
    pub tool_digest: Digest,
    /// The arguments, as JSON; `{}` for an operation.
    pub args: Box<RawValue>,
    /// The result if it is small, else `{"_truncated": true, "_originalSize": …}`. For an operation at most 240 bytes:
    /// larger values are given by type and size, with their beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Box<RawValue>>,
    /// Whether the call succeeded.
    pub success: bool,
    /// The failure, if it did not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TraceFailure>,
    /// When the call was issued, in milliseconds since the Unix epoch.
    pub started_at: i64,
    /// Duration of a call in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
    /// Duration of an operation in microseconds: few take a millisecond.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<u64>,
    /// Number of the attempt, from 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub attempt: u32,
    /// Index of the layer of a DAG, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<u32>,
    /// Whether arguments or result were redacted or truncated, so that they are not the real values.
    #[serde(default, skip_serializing_if = "is_false")]
    pub altered: bool,
    /// Whether the call was made before the program asked for it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub speculated: bool,
    /// How much sooner its result was there for that, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_ms: Option<u64>,
    /// How old the result was when the program received it, in milliseconds; absent unless the call of an earlier dry run
    /// gave it and none was made for this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    /// Whether the call was not made but answered with a made-up or recorded value.
    #[serde(default, skip_serializing_if = "is_false")]
    pub mocked: bool,
    /// How much such a call counts in learning, compared with a real one; 0.5 unless its mock has proved itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mock_weight: Option<f64>,
}

impl TaskResult {
    /// How much the call counts in learning, from 0 to 1.
    pub fn training_weight(&self) -> f64 {
        if self.mocked { self.mock_weight.unwrap_or(UNPROVEN_WEIGHT) } else { 1.0 }
    }

    /// Whether this is a pure operation and not a call.
    pub fn is_operation(&self) -> bool {
        is_operation(&self.tool)
    }
}

/// Whether the id, of a trace or of the graph, is that of a pure operation: no server can be named `code`.
pub fn is_operation(id: &str) -> bool {
    id.starts_with("code:")
}

/// An edge between two calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TraceEdge {
    /// Index of the earlier call in `task_results`.
    pub from: u32,
    /// Index of the later call.
    pub to: u32,
    /// The relation between them.
    #[serde(rename = "type")]
    pub kind: EdgeKind,
}

/// Relation between two calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeKind {
    /// The later call was given a part of the earlier call's result.
    Dependency,
    /// The earlier call had ended when the later one began.
    Sequence,
    /// The later one was requested next in the same session.
    Follows,
    /// The later one was called within the earlier one.
    Contains,
}

impl EdgeKind {
    /// Every kind.
    pub const ALL: [EdgeKind; 4] =
        [EdgeKind::Dependency, EdgeKind::Sequence, EdgeKind::Follows, EdgeKind::Contains];

    /// The name of the kind, as it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            EdgeKind::Dependency => "dependency",
            EdgeKind::Sequence => "sequence",
            EdgeKind::Follows => "follows",
            EdgeKind::Contains => "contains",
        }
    }

    /// The kind with this name.
    pub fn parse(word: &str) -> Option<EdgeKind> {
        EdgeKind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_nothing(share: &f64) -> bool {
    *share == 0.0
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
