//! Traces, capabilities and what is learned.

mod cache;
mod capabilities;
mod explored;
mod forgotten;
mod intents;
mod learning;
mod published;
mod traces;
mod versions;

use super::raw_database;
use std::path::Path;
use std::sync::mpsc::sync_channel;

use pml_model::capability::{
    CacheConfig, Capability, CapabilityId, CapabilityOrigin, CapabilitySource, Procedure, ToolUse,
};
use pml_model::structure::{NodeId, Structure};
use pml_model::trace::{ErrorType, TaskResult, Trace, TraceBody, TraceFailure, TraceId, TraceStatus};
use pml_model::{Digest, Principal};
use pml_store::{BlockingStore, IntentFit, RunMemory, TraceOrder, TraceQuery, Urgency};
use serde_json::{Map, json};

use super::{id, me, raw};

/// The nodes of a way, written with spaces between them.
pub(crate) fn path(nodes: &str) -> Vec<NodeId> {
    nodes.split_whitespace().map(|node| NodeId::try_from(node.to_owned()).unwrap()).collect()
}

pub(crate) fn capability_id(identity: &str) -> CapabilityId {
    CapabilityId::of(&me(), identity)
}

/// A procedure that reads a file.
pub(crate) fn procedure(identity: &str) -> Procedure {
    procedure_of(&me(), identity)
}

pub(crate) fn procedure_of(owner: &Principal, identity: &str) -> Procedure {
    Procedure {
        id: CapabilityId::of(owner, identity),
        owner: owner.clone(),
        suggested_name: "readFile".to_owned(),
        description: "Reads a file.".to_owned(),
        source: CapabilitySource::Code {
            code: format!("return mcp.fs.read({{}}) // {identity}"),
            template: None,
        },
        code_hash: "c0de".to_owned(),
        identity: identity.to_owned(),
        analysis_version: 1,
        tools_used: vec![ToolUse { id: "fs:read".to_owned(), digest: Digest::of(b"read") }],
        dependencies: Vec::new(),
        parameters_schema: json!({ "type": "object", "properties": { "path": { "type": "string" } } }),
        static_structure: Structure::default(),
        origin: CapabilityOrigin::Emergent,
        cache_config: CacheConfig::default(),
        unproven_lift: None,
    }
}

/// A call of a tool that gave `result`.
pub(crate) fn task(tool: &str, result: &str) -> TaskResult {
    TaskResult {
        call: 1,
        node_id: None,
        task_id: None,
        tool: tool.to_owned(),
        tool_digest: Digest::of(b"read"),
        args: raw("{}"),
        result: Some(raw(result)),
        success: true,
        error: None,
        started_at: 1,
        duration_us: None,
        duration_ms: Some(1),
        attempt: 1,
        layer: None,
        altered: false,
        speculated: false,
        saved_ms: None,
        mocked: false,
        mock_weight: None,
    }
}

/// The trace of a run that worked.
pub(crate) fn trace(number: u128) -> Trace {
    Trace {
        id: TraceId::of(&id(number)),
        workflow_id: id(number),
        principal: me(),
        session: "session".to_owned(),
        capability_id: None,
        plan_hash: "c0de".to_owned(),
        intent: "read the file".to_owned(),
        status: TraceStatus::Success,
        error: None,
        duration_ms: 100,
        created_at: 1000 + i64::try_from(number).unwrap(),
        parent_trace_id: None,
        learn_seq: None,
        priority: None,
        cached: false,
        exploratory: false,
        approved: false,
        body: TraceBody {
            executed_path: path("n1"),
            task_results: vec![task("fs:read", r#"{"text":"a"}"#)],
            ..TraceBody::default()
        },
    }
}

/// A run of a procedure with that identity.
pub(crate) fn memory(identity: &str, trace: Trace) -> RunMemory {
    let procedure = Box::new(procedure_of(&trace.principal, identity));
    let activates = trace.status.evidence() == Some(true);
    RunMemory {
        procedure: Some(procedure),
        activates,
        tools: Vec::new(),
        values: Map::new(),
        result: None,
        golden: false,
        intent: IntentFit::Unchecked,
        excluded_from_learning: false,
        trace: Box::new(trace),
        nested: Vec::new(),
    }
}

pub(crate) fn failed(number: u128, message: &str) -> Trace {
    let error = TraceFailure {
        code: "TOOL".to_owned(),
        message: message.to_owned(),
        error_type: ErrorType::Unknown,
        node_id: None,
    };
    Trace { status: TraceStatus::Failed, error: Some(error), ..trace(number) }
}

/// Stores and waits until that is done.
#[track_caller]
pub(crate) fn remember(store: &BlockingStore, memory: RunMemory) {
    let (reply, answer) = sync_channel(1);
    store.store_memory(memory, Urgency::Soon, move |stored| reply.send(stored).unwrap());
    answer.recv().unwrap().unwrap();
}

/// Learns from all there is.
pub(crate) fn learn(store: &BlockingStore) -> usize {
    let mut traces = 0;
    loop {
        let learned = store.learn_traces(7, 5000).unwrap();
        traces += learned.traces;
        if !learned.has_more {
            return traces;
        }
    }
}

#[track_caller]
pub(crate) fn get(store: &BlockingStore, identity: &str) -> Capability {
    store.capability(&me(), &capability_id(identity)).unwrap().unwrap()
}

/// The numbers of runs whose traces are listed.
pub(crate) fn listed(store: &BlockingStore, order: TraceOrder, capability: Option<&str>) -> Vec<String> {
    let wanted = TraceQuery { capability: capability.map(capability_id), order, limit: 100, after: None };
    store.traces(&me(), &wanted).unwrap().iter().map(|trace| trace.id.to_string()).collect()
}

/// All that was learned, cell by cell.
pub(crate) fn dump(path: &Path) -> Vec<String> {
    let database = raw_database(path);
    let mut rows = Vec::new();
    for query in [
        "SELECT 'capability', id, name, created_at, promoted_at, approved, outside_because, usage_count, success_count,
            failure_count, failures_in_a_row, avg_duration_ms, last_used, failing, worked_seq, learning, examples,
            state, degraded_because
         FROM capability ORDER BY id",
        "SELECT 'intent', capability.id, text, count, first_at, last_at
         FROM capability_intent JOIN capability ON number = capability ORDER BY 2, 3",
        "SELECT 'edge', principal, source, kind, target, count FROM edge ORDER BY 2, 3, 4, 5",
        "SELECT 'observed', principal, tool, digest, shape FROM observed ORDER BY 2, 3, 4",
        "SELECT 'trace', id, capability, own, priority FROM trace ORDER BY seq",
        "SELECT 'drop', * FROM cache_drop ORDER BY 2",
    ] {
        rows.extend(database.texts(query).into_iter().map(|row| row.join("\t")));
    }
    rows
}
