//! What people look at: the tool graph, definitions of capabilities, and invocations of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use pml_model::json::raw;
use pml_model::name::printable;
use pml_model::trace::Trace;
use pml_model::{CapabilityId, Principal, TraceId};
use serde::Serialize;
use utoipa::ToSchema;

use super::capabilities::{capability, trace};
use crate::app::App;
use crate::knowledge::graph::{
    EndSchemas, GraphLayout, GraphView, GraphViewPath, LayoutNode, NodeDetails, ToolGraph,
};
use crate::problem::{ErrorCode, Problem};
use crate::runtime::run_blocking;
use crate::views::definition::{self, Definition};
use crate::views::invocation::{self, Invocation};

/// The number of nested capability calls whose own calls are shown.
const MOST_FRAMES: u32 = 200;

/// The definition of a capability as a picture.
///
/// # Errors
/// There is no such capability, or the database cannot be read.
pub async fn definition(app: &App, principal: &Principal, name: &str) -> Result<Definition, Problem> {
    let capability = capability(app, principal, name).await?;
    Ok(run_blocking(move || definition::definition(&capability)).await)
}

/// A trace as a picture.
///
/// # Errors
/// There is no such trace, or the database cannot be read.
pub async fn invocation(app: &App, principal: &Principal, id: &str) -> Result<Invocation, Problem> {
    let trace = trace(app, principal, id).await?;
    let frames = frames(app, principal, &trace).await?;
    let capability = match &trace.capability_id {
        Some(id) => app.store.capability(principal, id).await?,
        None => None,
    };
    let names = capability_names(app, principal, std::iter::once(&trace).chain(&frames)).await?;
    let shown = move || {
        let structure = capability.as_ref().map(|capability| &capability.procedure.static_structure);
        invocation::invocation(&trace, &frames, structure, &names)
    };
    Ok(run_blocking(shown).await)
}

/// The traces of the capabilities that were called in the run of a trace, in the order in which they began.
async fn frames(app: &App, principal: &Principal, trace: &Trace) -> Result<Vec<Trace>, Problem> {
    let mut frames = Vec::new();
    if trace.body.task_results.iter().all(|task| task.call > 0 || task.is_operation()) {
        return Ok(frames);
    }
    for number in 1..=MOST_FRAMES {
        match app.store.trace(principal, &TraceId::of_frame(&trace.workflow_id, number)).await? {
            Some(frame) => frames.push(frame),
            None => break,
        }
    }
    Ok(frames)
}

/// The names of the capabilities that were called, by id.
async fn capability_names(
    app: &App,
    principal: &Principal,
    traces: impl Iterator<Item = &Trace>,
) -> Result<HashMap<String, String>, Problem> {
    let called = traces.flat_map(|trace| &trace.body.task_results).filter(|task| task.call == 0);
    let ids: BTreeSet<&str> = called.map(|task| task.tool.as_str()).collect();
    let mut names = HashMap::new();
    for id in ids {
        if let Ok(parsed) = CapabilityId::parse(id)
            && let Some(capability) = app.store.capability(principal, &parsed).await?
        {
            names.insert(id.to_owned(), capability.name);
        }
    }
    Ok(names)
}

/// The tool graph: how tools and capabilities relate.
///
/// # Errors
/// The database cannot be read.
pub async fn graph(app: &App, principal: &Principal) -> Result<GraphView, Problem> {
    let graph = app.knowledge.graph(principal).await?;
    Ok(run_blocking(move || graph.view()).await)
}

/// The tool graph as a map, with these communities open.
///
/// # Errors
/// The database cannot be read.
pub async fn graph_layout(
    app: &App,
    principal: &Principal,
    expand: BTreeSet<String>,
) -> Result<GraphLayout, Problem> {
    let graph = app.knowledge.graph(principal).await?;
    Ok(run_blocking(move || graph.layout(&expand)).await)
}

/// The tools and capabilities whose names contain the words of `text`.
///
/// # Errors
/// The database cannot be read.
pub async fn find_graph_nodes(
    app: &App,
    principal: &Principal,
    text: String,
) -> Result<Vec<LayoutNode>, Problem> {
    let graph = app.knowledge.graph(principal).await?;
    Ok(run_blocking(move || graph.search(&text)).await)
}

/// A tool or capability with its neighbours and schemas.
///
/// # Errors
/// It is unknown, or the database cannot be read.
pub async fn graph_node(app: &App, principal: &Principal, name: &str) -> Result<NodeDetails, Problem> {
    let graph = app.knowledge.graph(principal).await?;
    let id = node_id(app, principal, name).await?;
    let shown = Arc::clone(&graph);
    let mut details = run_blocking(move || shown.details(&id)).await.ok_or_else(|| unknown_node(name))?;
    if let Some(known) = known_capability(app, principal, &details.node.id).await? {
        details.description = known.procedure.description;
        details.input_schema = Some(raw(&known.procedure.parameters_schema));
    }
    Ok(details)
}

/// The most likely paths from one tool or capability to another.
///
/// # Errors
/// One of them is unknown, or the database cannot be read.
pub async fn find_graph_paths(
    app: &App,
    principal: &Principal,
    from: &str,
    to: &str,
) -> Result<Vec<GraphViewPath>, Problem> {
    let graph = app.knowledge.graph(principal).await?;
    graph.best_paths(from, to).ok_or_else(|| {
        let (from, to) = (printable(from), printable(to));
        Problem::new(ErrorCode::NotFound, format!("`{from}` or `{to}` is no tool or capability"))
            .hint("give tools as `server:tool` and capabilities by id; `pml graph --json` lists them")
    })
}

/// The paths between two nodes, and the schemas of both.
#[derive(Debug, Serialize, ToSchema)]
pub struct GraphWays {
    /// The node where the paths begin.
    pub from: EndSchemas,
    /// The node where they end.
    pub to: EndSchemas,
    /// The paths, best first.
    pub ways: Vec<GraphViewPath>,
    /// The name of every node on a path, by id.
    pub labels: BTreeMap<String, String>,
}

/// The most likely paths from one tool or capability to another, each given by id or name, with the schemas of both.
///
/// # Errors
/// One of them is unknown, or the database cannot be read.
pub async fn graph_ways(
    app: &App,
    principal: &Principal,
    from: &str,
    to: &str,
) -> Result<GraphWays, Problem> {
    let (from, to) = (node_id(app, principal, from).await?, node_id(app, principal, to).await?);
    let ways = find_graph_paths(app, principal, &from, &to).await?;
    let graph = app.knowledge.graph(principal).await?;
    let (from, to) = (end(app, principal, &graph, &from).await?, end(app, principal, &graph, &to).await?);
    let on_paths = ways.iter().flat_map(|way| &way.through);
    let labels = on_paths.map(|id| (id.clone(), graph.name(id).to_owned())).collect();
    Ok(GraphWays { from, to, ways, labels })
}

async fn end(app: &App, principal: &Principal, graph: &ToolGraph, id: &str) -> Result<EndSchemas, Problem> {
    let mut end = graph.end_schemas(id);
    if let Some(known) = known_capability(app, principal, id).await? {
        end.input_schema = Some(raw(&known.procedure.parameters_schema));
    }
    Ok(end)
}

/// The id of a node that is given by id or, if it is a capability, by name.
async fn node_id(app: &App, principal: &Principal, name: &str) -> Result<String, Problem> {
    if name.contains(':') || CapabilityId::parse(name).is_ok() {
        return Ok(name.to_owned());
    }
    let known = app.store.capability_named(principal, name).await?;
    Ok(known.map_or_else(|| name.to_owned(), |known| known.procedure.id.to_string()))
}

async fn known_capability(
    app: &App,
    principal: &Principal,
    id: &str,
) -> Result<Option<pml_model::capability::Capability>, Problem> {
    match CapabilityId::parse(id) {
        Ok(id) => Ok(app.store.capability(principal, &id).await?),
        Err(_) => Ok(None),
    }
}

fn unknown_node(name: &str) -> Problem {
    Problem::new(ErrorCode::NotFound, format!("`{}` is no tool or capability", printable(name)))
        .hint("give a tool as `server:tool` and a capability by id or name")
}
