//! What of a trace learning needs, made when the trace is stored so that learning reads no more than this.

use std::collections::BTreeMap;

use pml_model::Digest;
use pml_model::observed::Shape;
use pml_model::structure::NodeId;
use pml_model::trace::{Body, Decision, EdgeKind, Status, TaskResult};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::tool_use::{self, CallCounts};

/// How large an example of a parameter may be, in bytes of JSON.
const LARGEST_VALUE: usize = 500;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Lesson {
    /// The nodes the run came to.
    #[serde(rename = "p")]
    pub(super) path: Vec<NodeId>,
    #[serde(rename = "d", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) decisions: Vec<Decision>,
    /// Which tools, capabilities and operations came after which, each once.
    #[serde(rename = "e", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) edges: Vec<(String, String, EdgeKind)>,
    /// What parameters were given.
    #[serde(rename = "v", default, skip_serializing_if = "Map::is_empty")]
    pub(super) values: Map<String, Value>,
    /// What tools returned.
    #[serde(rename = "s", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) seen: Vec<(String, Digest, Shape)>,
    /// What became of the calls of tools.
    #[serde(rename = "c", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) uses: BTreeMap<String, CallCounts>,
}

impl Lesson {
    pub(super) fn of(body: &Body, values: Map<String, Value>) -> Lesson {
        Lesson {
            path: body.executed_path.clone(),
            decisions: body.decisions.clone(),
            edges: edges(body),
            values: values
                .into_iter()
                .filter(|(_, value)| value.to_string().len() <= LARGEST_VALUE)
                .collect(),
            seen: seen(body),
            uses: tool_use::uses(body),
        }
    }
}

/// Whether a trace tells what its procedure is good for, and with which values.
pub(super) fn tells_intent(status: Status, cached: bool, exploratory: bool) -> bool {
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
