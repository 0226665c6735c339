//! The extract of a trace that learning needs, made when the trace is stored so that learning reads nothing else.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::argument_pattern::argument_patterns;
use crate::observed::ObservedShape;
use crate::structure::NodeId;
use crate::trace::{DecisionOutcome, EdgeKind, ErrorType, TaskResult, TraceBody, TraceStatus};
use crate::{CapabilityId, Digest};

/// Maximum size of an example value, in bytes of JSON.
const LARGEST_VALUE: usize = 500;

/// The extract of a trace that learning needs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Lesson {
    /// The nodes that were reached.
    #[serde(rename = "p")]
    pub path: Vec<NodeId>,
    /// The outcomes of decisions.
    #[serde(rename = "d", default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<DecisionOutcome>,
    /// Edges between tools, capabilities and operations, without duplicates.
    #[serde(rename = "e", default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<(String, String, EdgeKind)>,
    /// The arguments, by parameter.
    #[serde(rename = "v", default, skip_serializing_if = "Map::is_empty")]
    pub parameter_values: Map<String, Value>,
    /// The results of tools, as shapes, by tool and digest of its definition.
    #[serde(rename = "s", default, skip_serializing_if = "Vec::is_empty")]
    pub observed_shapes: Vec<(String, Digest, ObservedShape)>,
    /// Calls and failures by tool.
    #[serde(rename = "c", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub call_counts: BTreeMap<String, CallCounts>,
    /// Calls and failures by tool and pattern of arguments. Arguments that the tool refuses count as failures here.
    #[serde(rename = "g", default, skip_serializing_if = "Vec::is_empty")]
    pub argument_patterns: Vec<(String, String, CallCounts)>,
    /// The calls with their arguments, as digests in order, as far as they are kept.
    #[serde(rename = "a", default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallDigest>,
}

/// A digest of a tool and the arguments of a call: its first 16 hexadecimal digits.
pub type CallDigest = String;

/// Maximum number of calls of which a digest is kept: those at the beginning.
const MOST_CALLS: usize = 32;

/// Calls and failures of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallCounts {
    /// Number of calls.
    #[serde(rename = "n")]
    pub calls: u64,
    /// Number of failures for which the tool is to blame. Wrong arguments do not count.
    #[serde(rename = "f", default, skip_serializing_if = "is_zero")]
    pub failures: u64,
}

impl CallCounts {
    /// Adds the counts of more calls.
    pub fn add(&mut self, more: CallCounts) {
        self.calls += more.calls;
        self.failures += more.failures;
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Lesson {
    /// The lesson of a trace with this body and these arguments.
    pub fn of(body: &TraceBody, values: Map<String, Value>) -> Lesson {
        Lesson {
            path: body.executed_path.clone(),
            decisions: body.decisions.clone(),
            edges: edges(body),
            parameter_values: values
                .into_iter()
                .filter(|(_, value)| value.to_string().len() <= LARGEST_VALUE)
                .collect(),
            observed_shapes: seen(body),
            call_counts: uses(body),
            argument_patterns: patterns(body),
            calls: body.task_results.iter().filter(|task| task.call > 0).take(MOST_CALLS).map(call).collect(),
        }
    }
}

/// The digest under which the results of whole runs of a capability are observed: those that it gives when others call it
/// are observed under the hash of its code.
pub fn result_digest(capability: &CapabilityId) -> Digest {
    Digest::of(format!("result {capability}").as_bytes())
}

/// Whether a trace shows which intent its procedure serves, and with which values.
pub fn is_intent_evidence(status: TraceStatus, cached: bool, exploratory: bool) -> bool {
    status.evidence() == Some(true) && !cached && !exploratory
}

fn call(task: &TaskResult) -> CallDigest {
    let mut digest = Digest::of(format!("{} {}", task.tool, task.args.get()).as_bytes()).as_str().to_owned();
    digest.truncate(16);
    digest
}

fn edges(body: &TraceBody) -> Vec<(String, String, EdgeKind)> {
    let tool = |place: u32| body.task_results.get(place as usize).map(|task| task.tool.clone());
    let mut edges: Vec<_> = body
        .edges
        .iter()
        .filter(|edge| matches!(edge.kind, EdgeKind::Dependency | EdgeKind::Sequence))
        .filter_map(|edge| Some((tool(edge.from)?, tool(edge.to)?, edge.kind)))
        .collect();
    edges.sort();
    edges.dedup();
    edges
}

/// The shapes of tool results, as far as the results were recorded unaltered.
fn seen(body: &TraceBody) -> Vec<(String, Digest, ObservedShape)> {
    let mut seen: Vec<(String, Digest, ObservedShape)> = Vec::new();
    let tells = |task: &&TaskResult| task.success && !task.altered && !task.is_operation();
    for task in body.task_results.iter().filter(tells) {
        let Some(result) = &task.result else { continue };
        // A text nested too deep to be parsed is skipped.
        let Ok(value) = serde_json::from_str::<Value>(result.get()) else { continue };
        let shape = ObservedShape::of(&value);
        match seen.iter_mut().find(|(tool, digest, _)| *tool == task.tool && *digest == task.tool_digest) {
            Some((_, _, known)) => known.merge(&shape),
            None => seen.push((task.tool.clone(), task.tool_digest.clone(), shape)),
        }
    }
    seen
}

fn uses(body: &TraceBody) -> BTreeMap<String, CallCounts> {
    let mut uses: BTreeMap<String, CallCounts> = BTreeMap::new();
    // An entry without a number is not a tool call.
    for task in body.task_results.iter().filter(|task| task.call > 0) {
        if let Some(failed) = failed(task) {
            let one = CallCounts { calls: 1, failures: u64::from(failed) };
            uses.entry(task.tool.clone()).or_default().add(one);
        }
    }
    uses
}

fn patterns(body: &TraceBody) -> Vec<(String, String, CallCounts)> {
    let mut counts: BTreeMap<(String, String), CallCounts> = BTreeMap::new();
    for task in body.task_results.iter().filter(|task| task.call > 0) {
        let Ok(arguments) = serde_json::from_str::<Value>(task.args.get()) else { continue };
        // What is not there, or may not be called, says nothing of its kind.
        let cause = task.error.as_ref().map(|error| error.error_type);
        if matches!(cause, Some(ErrorType::NotFound | ErrorType::Cancelled | ErrorType::Permission)) {
            continue;
        }
        let one = CallCounts { calls: 1, failures: u64::from(!task.success) };
        for pattern in argument_patterns(&arguments) {
            counts.entry((task.tool.clone(), pattern)).or_default().add(one);
        }
    }
    counts.into_iter().map(|((tool, pattern), counts)| (tool, pattern, counts)).collect()
}

/// Whether the tool is to blame for a failure; `None` if it was not called after all.
fn failed(task: &TaskResult) -> Option<bool> {
    match task.error.as_ref().map(|error| error.error_type) {
        Some(ErrorType::Cancelled | ErrorType::Permission) => None,
        Some(ErrorType::NotFound | ErrorType::Validation) => Some(false),
        Some(
            ErrorType::Timeout
            | ErrorType::Network
            | ErrorType::RateLimit
            | ErrorType::Internal
            | ErrorType::Unknown,
        ) => Some(true),
        None => Some(!task.success),
    }
}
