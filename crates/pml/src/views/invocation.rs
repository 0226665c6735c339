//! An invocation of a capability as a picture: every call of a trace on a time axis.

use std::collections::{BTreeMap, HashMap};

use pml_model::structure::{NodeId, NodeKind, Structure};
use pml_model::trace::{EdgeKind, TaskResult, Trace, TraceFailure, TraceStatus};
use pml_model::{RunId, TraceId};
use serde::Serialize;
use utoipa::ToSchema;

/// A run as it happened.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Invocation {
    /// The trace.
    #[schema(value_type = String)]
    pub trace_id: TraceId,
    /// The run.
    #[schema(value_type = String)]
    pub workflow_id: RunId,
    /// How the run ended.
    #[schema(value_type = String)]
    pub status: TraceStatus,
    /// The intent.
    pub intent: String,
    /// Why the run failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub error: Option<TraceFailure>,
    /// When the run began, in milliseconds since the Unix epoch.
    pub started_at: i64,
    /// From the beginning to the end on the clock, in milliseconds.
    pub duration_ms: i64,
    /// The same without the time spent waiting for people.
    pub active_ms: i64,
    /// The number of lanes that are needed so that no two calls of one lane overlap.
    pub lanes: u32,
    /// The calls, in the order in which they began.
    pub nodes: Vec<InvocationNode>,
    /// The relations between calls.
    pub edges: Vec<InvocationEdge>,
    /// The outcomes of decisions.
    pub decisions: Vec<InvocationDecision>,
    /// The nodes that were reached.
    #[schema(value_type = Vec<String>)]
    pub executed_path: Vec<NodeId>,
    /// Whether `nodeId` refers to the present structure of the capability.
    pub structure_known: bool,
    /// Whether the result came from the cache and nothing was called.
    pub cached: bool,
    /// The number of calls that were not recorded.
    pub omitted: u32,
}

/// One call.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InvocationNode {
    /// The id: the tool and its number in this run, such as `fs:read_2`.
    pub id: String,
    /// Number of the call in the run; 0 for a capability.
    pub call: u32,
    /// The trace whose call it is: that of the run, or of a capability within it.
    #[schema(value_type = String)]
    pub trace_id: TraceId,
    /// The node of the structure.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub node_id: Option<NodeId>,
    /// The task of the DAG document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// `tool` or `capability`.
    pub kind: &'static str,
    /// `server:tool`, or the id of the capability.
    pub tool: String,
    /// The name of the tool or capability.
    pub label: String,
    /// The lane, from 0.
    pub lane: u32,
    /// When it began, in milliseconds since the beginning.
    pub from_ms: i64,
    /// When it ended; the end of the run if it did not.
    pub to_ms: i64,
    /// `ok`, `error` or `unfinished`.
    pub status: &'static str,
    /// The failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub error: Option<TraceFailure>,
    /// The number of attempts of the same task before this one.
    pub retries: u32,
    /// Whether it was made before the program asked for it.
    pub speculated: bool,
    /// How much sooner its result was there for that, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved_ms: Option<u64>,
    /// Whether its result is that of an earlier dry run, which the run confirms, so that no call was made for it.
    pub cached: bool,
    /// Whether it was answered with a made-up or recorded value.
    pub mocked: bool,
    /// The layer of the DAG, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<u32>,
    /// The capability call that it is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

/// A relation between two calls.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
pub struct InvocationEdge {
    /// The id of the earlier call.
    pub from: String,
    /// The id of the later call.
    pub to: String,
    /// `sequence`, `dependency` (a result was passed on) or `contains`.
    pub kind: &'static str,
}

/// What a decision came out as.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InvocationDecision {
    /// The decision.
    #[schema(value_type = String)]
    pub node_id: NodeId,
    /// The tested expression.
    pub condition: String,
    /// The outcome.
    pub taken: String,
    /// How often.
    pub times: u64,
}

/// A call that is being placed.
struct Placing<'t> {
    trace: &'t Trace,
    task: &'t TaskResult,
    /// Index within its trace.
    index: usize,
    parent: Option<usize>,
    from: i64,
    to: i64,
}

/// The picture of a trace. `frames` are the traces of the capabilities that were called in the same run, in the order
/// in which they began; `structure` is that of the capability, if it still exists; `names` are of capabilities by id.
pub fn invocation(
    trace: &Trace,
    frames: &[Trace],
    structure: Option<&Structure>,
    names: &HashMap<String, String>,
) -> Invocation {
    let calls = trace.body.task_results.iter().filter(|task| !task.is_operation());
    let first = calls.map(|task| task.started_at).min().unwrap_or(i64::MAX);
    let started_at = first.min(trace.created_at.saturating_sub(trace.duration_ms.max(0)));
    let mut placing = Vec::new();
    collect(trace, None, frames, started_at, &mut placing, 0);
    let last = placing.iter().map(|call| call.to).max().unwrap_or(0);
    let duration_ms = last.max(trace.created_at - started_at).max(0);
    let (lanes, number) = lanes(&placing);
    // Numbers follow the clock; what contains something comes before it.
    let mut order: Vec<usize> = (0..placing.len()).collect();
    order.sort_by_key(|place| (placing[*place].from, *place));
    let mut counts: HashMap<&str, u32> = HashMap::new();
    let mut ids = vec![String::new(); placing.len()];
    for &place in &order {
        let label = label(placing[place].task, names);
        let count = counts.entry(label).or_default();
        *count += 1;
        ids[place] = format!("{label}_{count}");
    }
    let node = |&place: &usize| shown(&placing[place], lanes[place], &ids, place, names);
    let nodes = order.iter().map(node).collect();
    Invocation {
        trace_id: trace.id.clone(),
        workflow_id: trace.workflow_id.clone(),
        status: trace.status,
        intent: trace.intent.clone(),
        error: trace.error.clone(),
        started_at,
        duration_ms,
        active_ms: trace.duration_ms,
        lanes: number,
        nodes,
        edges: edges(&placing, &ids),
        decisions: trace
            .body
            .decisions
            .iter()
            .map(|decided| InvocationDecision {
                node_id: decided.node_id,
                condition: decided.condition.clone(),
                taken: decided.outcome.clone(),
                times: decided.times,
            })
            .collect(),
        executed_path: trace.body.executed_path.clone(),
        structure_known: structure.is_some_and(|structure| fits(trace, structure)),
        cached: trace.cached,
        omitted: trace.body.omitted,
    }
}

/// Whether the trace can be a run of this structure: its nodes are there, with the same tools.
fn fits(trace: &Trace, structure: &Structure) -> bool {
    let nodes: HashMap<NodeId, &NodeKind> =
        structure.nodes.iter().map(|node| (node.id, &node.kind)).collect();
    let called = trace.body.task_results.iter().filter_map(|task| Some((task.node_id?, task)));
    let same_tool = |id: NodeId, task: &TaskResult| match nodes.get(&id) {
        Some(NodeKind::Task { tool, .. }) => task.call == 0 || *tool == task.tool,
        Some(NodeKind::Capability { .. }) => task.call == 0,
        Some(_) | None => false,
    };
    trace.body.executed_path.iter().all(|id| nodes.contains_key(id))
        && called.into_iter().all(|(id, task)| same_tool(id, task))
}

/// The deepest nesting that is followed.
const DEEPEST: usize = 16;

/// Collects the calls of a trace, each followed by what was called within it.
fn collect<'t>(
    trace: &'t Trace,
    parent: Option<usize>,
    frames: &'t [Trace],
    started_at: i64,
    placing: &mut Vec<Placing<'t>>,
    depth: usize,
) {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for (index, task) in trace.body.task_results.iter().enumerate() {
        if task.is_operation() {
            continue;
        }
        let from = task.started_at - started_at;
        let end = task.duration_ms.map_or(trace.created_at, |took| task.started_at + took);
        // A trace does not say which frame a call was; frames of one capability are in the order of the calls.
        let frame = if task.call == 0 && depth < DEEPEST {
            let number = seen.entry(&task.tool).or_default();
            *number += 1;
            let of_task = |frame: &&Trace| {
                frame.parent_trace_id.as_ref() == Some(&trace.id)
                    && frame.capability_id.as_ref().is_some_and(|id| id.as_str() == task.tool)
            };
            frames.iter().filter(of_task).nth(*number - 1)
        } else {
            None
        };
        let place = placing.len();
        let to = (end - started_at).max(from);
        placing.push(Placing { trace, task, index, parent, from, to });
        if let Some(frame) = frame {
            collect(frame, Some(place), frames, started_at, placing, depth + 1);
        }
    }
}

/// The lane of each call, and the number of lanes. What is called within a call has the lanes below it; calls that
/// overlap have different lanes.
fn lanes(placing: &[Placing<'_>]) -> (Vec<u32>, u32) {
    let mut children: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
    for (place, call) in placing.iter().enumerate() {
        children.entry(call.parent).or_default().push(place);
    }
    // Relative to the call around it; innermost first, because later calls are inside of earlier ones.
    let mut relative = vec![0_usize; placing.len()];
    let mut heights = vec![1_usize; placing.len()];
    for outer in (0..placing.len()).rev().map(Some).chain([None]) {
        let Some(inner) = children.get(&outer) else { continue };
        let mut order = inner.clone();
        order.sort_by_key(|place| (placing[*place].from, *place));
        let mut busy_until: Vec<i64> = Vec::new();
        for place in order {
            let (call, height) = (&placing[place], heights[place]);
            let is_free = |lane: usize| {
                (lane..lane + height).all(|lane| busy_until.get(lane).is_none_or(|end| *end <= call.from))
            };
            let lane = (0..=busy_until.len()).find(|lane| is_free(*lane)).unwrap_or(busy_until.len());
            busy_until.resize(busy_until.len().max(lane + height), i64::MIN);
            busy_until[lane..lane + height].fill(call.to);
            relative[place] = lane;
        }
        match outer {
            Some(outer) => heights[outer] = 1 + busy_until.len(),
            None => {
                let number = u32::try_from(busy_until.len()).unwrap_or(u32::MAX);
                return (absolute(placing, &relative), number);
            }
        }
    }
    (Vec::new(), 0)
}

fn absolute(placing: &[Placing<'_>], relative: &[usize]) -> Vec<u32> {
    let mut lanes: Vec<usize> = Vec::with_capacity(placing.len());
    for (place, call) in placing.iter().enumerate() {
        lanes.push(relative[place] + call.parent.map_or(0, |outer| lanes[outer] + 1));
    }
    lanes.into_iter().map(|lane| u32::try_from(lane).unwrap_or(u32::MAX)).collect()
}

fn label<'t>(task: &'t TaskResult, names: &'t HashMap<String, String>) -> &'t str {
    names.get(&task.tool).map_or(&task.tool, String::as_str)
}

fn shown(
    call: &Placing<'_>,
    lane: u32,
    ids: &[String],
    place: usize,
    names: &HashMap<String, String>,
) -> InvocationNode {
    let task = call.task;
    InvocationNode {
        id: ids[place].clone(),
        call: task.call,
        trace_id: call.trace.id.clone(),
        node_id: task.node_id,
        task_id: task.task_id.clone(),
        kind: if task.call == 0 { "capability" } else { "tool" },
        tool: task.tool.clone(),
        label: label(task, names).to_owned(),
        lane,
        from_ms: call.from,
        to_ms: call.to,
        status: match (task.success, &task.error) {
            (true, _) => "ok",
            (false, Some(_)) => "error",
            (false, None) => "unfinished",
        },
        error: task.error.clone(),
        retries: task.attempt.saturating_sub(1),
        speculated: task.speculated,
        saved_ms: task.saved_ms,
        cached: task.age_ms.is_some(),
        mocked: task.mocked,
        layer: task.layer,
        parent: call.parent.map(|outer| ids[outer].clone()),
    }
}

fn edges(placing: &[Placing<'_>], ids: &[String]) -> Vec<InvocationEdge> {
    let places: HashMap<(&str, usize), usize> = placing
        .iter()
        .enumerate()
        .map(|(place, call)| ((call.trace.id.as_str(), call.index), place))
        .collect();
    let mut traces: BTreeMap<&str, &Trace> = BTreeMap::new();
    placing.iter().for_each(|call| {
        traces.insert(call.trace.id.as_str(), call.trace);
    });
    let mut found = Vec::new();
    for (id, trace) in traces {
        for edge in &trace.body.edges {
            let kind = match edge.kind {
                EdgeKind::Sequence => "sequence",
                EdgeKind::Dependency => "dependency",
                EdgeKind::Contains | EdgeKind::Follows => continue,
            };
            let end = |index: u32| places.get(&(id, index as usize));
            if let (Some(&from), Some(&to)) = (end(edge.from), end(edge.to)) {
                found.push(InvocationEdge { from: ids[from].clone(), to: ids[to].clone(), kind });
            }
        }
    }
    for (place, call) in placing.iter().enumerate() {
        if let Some(outer) = call.parent {
            found.push(InvocationEdge { from: ids[outer].clone(), to: ids[place].clone(), kind: "contains" });
        }
    }
    found.sort();
    found.dedup();
    found
}
