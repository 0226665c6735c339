//! Client-routed programs: a client that has some of the tools itself is told to run the program.
//!
//! What analysis found is kept for an hour, so that the trace of the client can be learned from like a run of this
//! gateway. Nothing of the program runs here; tools of the gateway are called by the client one by one, by name.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use pml_model::remote::{DagMode, DagSummary, ExecuteLocally};
use pml_model::structure::{EdgeLink, NodeId, Structure};
use pml_model::{Principal, ToolId};
use pml_store::ContextOwner;

use super::{ExecuteOutcome, analyse_with, counting, execute};
use crate::app::App;
use crate::catalogue::{ClientTools, OverlaidTools};
use crate::clock::now_ms;
use crate::config::DynamicPolicy;
use crate::execute::new_run_id;
use crate::plan::{Bounds, Plan, PlannedTool};
use crate::planning::{self, CapabilityLookup, PlanRefusal, PlanningContext, RunRequest, Work};
use crate::problem::{ErrorCode, Problem};

/// 1 h in milliseconds: how long the trace of a client-routed run may take to come back.
const CONTEXT_MS: i64 = 60 * 60 * 1_000;

/// What became of a request of a client that runs programs itself.
pub enum RoutedOutcome {
    /// It was executed here.
    Here(ExecuteOutcome),
    /// The client has to run it.
    Locally(Box<ExecuteLocally>),
}

/// As [`execute`], for a client that has tools of its own: a program that calls one of them is the client's to run.
///
/// # Errors
/// The run cannot be started or recorded.
pub async fn execute_for_client(
    app: &Arc<App>,
    asked: RunRequest,
    client: &ClientTools,
    visible: impl Fn(&ToolId) -> bool + Send + Sync,
) -> Result<RoutedOutcome, Problem> {
    crate::discover::check_intent_length(&asked.intent)?;
    let routed = match &asked.work {
        Work::Code(code) => route(app, &asked, code, client, &visible).await,
        _ => Ok(None),
    };
    match routed {
        Ok(Some(local)) => Ok(RoutedOutcome::Locally(Box::new(local))),
        Ok(None) => execute(app, asked, visible).await.map(RoutedOutcome::Here),
        Err(refused) => Ok(RoutedOutcome::Here(ExecuteOutcome::Refused(refused))),
    }
}

/// What the client has to run; `None` if the program calls no tool of the client.
async fn route(
    app: &Arc<App>,
    asked: &RunRequest,
    code: &str,
    client: &ClientTools,
    visible: &(dyn Fn(&ToolId) -> bool + Send + Sync),
) -> Result<Option<ExecuteLocally>, PlanRefusal> {
    let began = Instant::now();
    app.tools.ensure_manifests_loaded().await;
    let policy = app.policy();
    let OverlaidTools { snapshot, only_client } = client.overlay(&app.tools.snapshot(), |id, definition| {
        !policy.verdict(id, &definition.annotations).routing.is_server()
    });
    let catalogue = app.knowledge.catalogue_over(&snapshot, &asked.principal, code);
    let Some(analysis) = analyse_with(app, catalogue, code).await else { return Ok(None) };
    let is_of_client = |name: &String| {
        ToolId::parse(name).is_ok_and(|id| {
            let annotations = snapshot.tool(&id).map(|tool| tool.definition.annotations).unwrap_or_default();
            only_client.contains(&id.server) || !policy.verdict(&id, &annotations).routing.is_server()
        })
    };
    if !analysis.permissions.declared.iter().any(is_of_client) {
        return Ok(None);
    }
    planning::refuse_mistakes(&analysis.complaints)?;
    if !analysis.permissions.capabilities.is_empty() {
        let text = "a program that the client runs cannot call capabilities, which are on this gateway";
        return Err(Problem::new(ErrorCode::InvalidProgram, text)
            .hint("write out in the program what they do, or run them by themselves")
            .into());
    }
    let capabilities = NoCapabilities;
    let setting = PlanningContext {
        snapshot: &snapshot,
        policy: &policy,
        bounds: Bounds::new(&app.config()),
        visible,
        capabilities: &capabilities,
        client: Some(&only_client),
    };
    // Which tools an opaque program calls is not known, so its trace could not be checked.
    let asked = &RunRequest { dynamic: DynamicPolicy::Refuse, ..asked.clone() };
    let mut plan = planning::plan(&setting, analysis, asked)?;
    // The client's own approvals decide there; a tool of the gateway asks when the client calls it.
    plan.question = None;
    plan.key = asked.key;
    app.keys.admit_direct_call(asked.key)?;
    counting::note_plan(app, &(asked.principal.clone(), asked.session.clone()), &plan);
    let local = keep(app, asked, &plan, began).await?;
    Ok(Some(local))
}

/// Keeps what was found of a program until its trace comes back.
async fn keep(app: &App, asked: &RunRequest, plan: &Plan, began: Instant) -> Result<ExecuteLocally, Problem> {
    let workflow = new_run_id()?;
    let owner =
        ContextOwner { principal: asked.principal.clone(), key: asked.key, workflow: workflow.clone() };
    let body = serde_json::to_vec(plan).expect("a plan is plain data");
    let now = now_ms();
    app.store.keep_learning_context(&owner, body, (now, now.saturating_add(CONTEXT_MS))).await?;
    let tools_used = names(plan.tools.iter());
    let calls = plan.structure.nodes.iter().filter(|node| node.kind.is_call()).count();
    Ok(ExecuteLocally {
        workflow_id: workflow,
        code: plan.source.clone(),
        client_tools: names(plan.tools.iter().filter(|tool| !tool.routing.is_server())),
        dag: DagSummary {
            mode: DagMode::Dag,
            tasks_count: calls,
            layers_count: layers(&plan.structure),
            tools_discovered: tools_used.clone(),
        },
        tools_used,
        execution_time_ms: began.elapsed().as_secs_f64() * 1_000.0,
    })
}

fn names<'p>(tools: impl Iterator<Item = &'p PlannedTool>) -> Vec<String> {
    tools.map(|tool| tool.id.to_string()).collect()
}

/// How many calls follow each other at most, each turn of a loop counted once.
fn layers(structure: &Structure) -> usize {
    let weight: HashMap<NodeId, usize> =
        structure.nodes.iter().map(|node| (node.id, usize::from(node.kind.is_call()))).collect();
    let most = weight.values().sum();
    let goes_on = |link: &EdgeLink| match link {
        EdgeLink::Contains => false,
        EdgeLink::Provides { around, .. } => around.is_none(),
        EdgeLink::Sequence | EdgeLink::Conditional { .. } => true,
    };
    let edges: Vec<_> = structure.edges.iter().filter(|edge| goes_on(&edge.link)).collect();
    let mut depth = weight.clone();
    for _ in &structure.nodes {
        let mut changed = false;
        for edge in &edges {
            let (Some(before), Some(own)) = (depth.get(&edge.from), weight.get(&edge.to)) else { continue };
            let reached = (before + own).min(most);
            if depth.get(&edge.to).is_some_and(|known| *known < reached) {
                depth.insert(edge.to, reached);
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    depth.values().copied().max().unwrap_or(0)
}

/// A program that the client runs calls none.
struct NoCapabilities;

impl CapabilityLookup for NoCapabilities {
    fn find_by_name(
        &self,
        _: Option<&Principal>,
        _: &str,
    ) -> Option<Arc<crate::knowledge::IndexedCapability>> {
        None
    }

    fn catalogue_for(&self, _: Option<&Principal>, _: &str) -> Arc<pml_analysis::AnalysisCatalogue> {
        Arc::default()
    }
}
