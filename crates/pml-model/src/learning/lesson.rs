//! What of a trace learning needs, made when the trace is stored so that learning reads no more than this.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Digest;
use crate::observed::Shape;
use crate::structure::NodeId;
use crate::trace::{Body, Decision, EdgeKind, ErrorType, Status, TaskResult};

/// How large an example of a parameter may be, in bytes of JSON.
const LARGEST_VALUE: usize = 500;

/// What a trace teaches.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Lesson {
    /// The nodes the run came to.
    #[serde(rename = "p")]
    pub path: Vec<NodeId>,
    /// What its decisions came to.
    #[serde(rename = "d", default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// Which tools, capabilities and operations came after which, each once.
    #[serde(rename = "e", default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<(String, String, EdgeKind)>,
    /// What parameters were given.
    #[serde(rename = "v", default, skip_serializing_if = "Map::is_empty")]
    pub values: Map<String, Value>,
    /// What tools returned.
    #[serde(rename = "s", default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<(String, Digest, Shape)>,
    /// What became of the calls of tools.
    #[serde(rename = "c", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub uses: BTreeMap<String, CallCounts>,
}

/// What became of the calls of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallCounts {
    /// How often it was called.
    #[serde(rename = "n")]
    pub calls: u64,
    /// How often it failed for a reason of its own: what was asked of it may be wrong as well.
    #[serde(rename = "f", default, skip_serializing_if = "is_zero")]
    pub failures: u64,
}

impl CallCounts {
    /// Adds more calls.
    pub fn add(&mut self, more: CallCounts) {
        self.calls += more.calls;
        self.failures += more.failures;
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Lesson {
    /// What a run teaches in which this happened and whose parameters were given these values.
    pub fn of(body: &Body, values: Map<String, Value>) -> Lesson {
        Lesson {
            path: body.executed_path.clone(),
            decisions: body.decisions.clone(),
            edges: edges(body),
            values: values
                .into_iter()
                .filter(|(_, value)| value.to_string().len() <= LARGEST_VALUE)
                .collect(),
            seen: seen(body),
            uses: uses(body),
        }
    }
}

/// Whether a trace tells what its procedure is good for, and with which values.
pub fn tells_intent(status: Status, cached: bool, exploratory: bool) -> bool {
    status.evidence() == Some(true) && !cached && !exploratory
}

fn edges(body: &Body) -> Vec<(String, String, EdgeKind)> {
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

/// What tools returned, as far as that is known whole.
fn seen(body: &Body) -> Vec<(String, Digest, Shape)> {
    let mut seen: Vec<(String, Digest, Shape)> = Vec::new();
    let tells = |task: &&TaskResult| task.success && !task.altered && !task.is_operation();
    for task in body.task_results.iter().filter(tells) {
        let Some(result) = &task.result else { continue };
        // Text that is nested deeper than values are read is not looked into.
        let Ok(value) = serde_json::from_str::<Value>(result.get()) else { continue };
        let shape = Shape::of(&value);
        match seen.iter_mut().find(|(tool, digest, _)| *tool == task.tool && *digest == task.tool_digest) {
            Some((_, _, known)) => known.merge(&shape),
            None => seen.push((task.tool.clone(), task.tool_digest.clone(), shape)),
        }
    }
    seen
}

fn uses(body: &Body) -> BTreeMap<String, CallCounts> {
    let mut uses: BTreeMap<String, CallCounts> = BTreeMap::new();
    // What has no number is no call of a tool.
    for task in body.task_results.iter().filter(|task| task.call > 0) {
        if let Some(failed) = failed(task) {
            let one = CallCounts { calls: 1, failures: u64::from(failed) };
            uses.entry(task.tool.clone()).or_default().add(one);
        }
    }
    uses
}

/// Whether a tool failed by itself; nothing where it was not called after all.
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
