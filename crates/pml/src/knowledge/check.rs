//! Compares what was learned with the tools there are now: a capability that would fail is marked before a user meets it,
//! and taken back when its tools are there again and it has worked with them.

use pml_model::ToolId;
use pml_model::capability::{Invalidation, State};
use pml_model::trace::Trace;
use pml_store::{Dropped, Order, Traces};

use super::{Knowledge, Known};
use crate::catalogue::Snapshot;
use crate::clock::now_ms;

/// How many runs of a capability are tried on a changed tool.
const RUNS: usize = 5;
/// How many are read at a time to find them, and how often: most of the latest may be uses of a result that was known.
const PAGE: u32 = 50;
const PAGES: usize = 20;

/// Why a capability whose tools are back is not found yet.
const BACK: &str =
    "its tools are there again, and it has not worked since; a run of it by name that works makes it active";

/// Looks at every capability that works or used to.
pub(crate) async fn check(knowledge: &Knowledge) {
    let Ok(all) = knowledge.memory.all().await else { return };
    let snapshot = knowledge.tools.snapshot();
    for known in all.iter().filter(|known| known.state != State::Planned) {
        let because = match problem(knowledge, &snapshot, known).await {
            Ok(because) => because,
            Err(error) => {
                tracing::warn!(%error, "what was learned could not be compared with the tools there are");
                return;
            }
        };
        if because.is_none() && known.state == State::Active {
            continue;
        }
        let marked = match because {
            Some(because) => knowledge.store.degrade(&known.owner, &known.id, &because, now_ms()).await,
            None => knowledge.store.may_work_again(&known.owner, &known.id, BACK).await,
        };
        if let Err(error) = marked {
            tracing::warn!(%error, capability = %known.id, "a capability could not be marked");
        }
    }
}

/// Why a capability would not work now.
async fn problem(
    knowledge: &Knowledge,
    snapshot: &Snapshot,
    known: &Known,
) -> Result<Option<String>, pml_store::Error> {
    for used in &known.tools {
        let Ok(id) = ToolId::parse(&used.id) else { continue };
        let is_known = |server: &&crate::catalogue::Server| server.name == id.server && server.known;
        let server = snapshot.servers.iter().find(|server| server.name == id.server);
        if server.is_some() && server.filter(is_known).is_none() {
            // Nobody has asked it yet.
            continue;
        }
        let tool = match snapshot.tool(&id) {
            Ok(tool) => tool,
            Err(problem) => return Ok(Some(format!("`{id}` cannot be used: {}", problem.message))),
        };
        if tool.definition.digest != used.digest && known.cache.goes_with(Invalidation::ToolSchemaChange) {
            forget_results(knowledge, known, &used.id).await?;
        }
        if tool.definition.digest != used.digest
            && let Some(because) = refused(knowledge, tool, known).await?
        {
            return Ok(Some(because));
        }
    }
    Ok(None)
}

/// Results that another tool gave say nothing of this one. Those of other capabilities stay: they may have been got with the
/// tool as it is now.
async fn forget_results(knowledge: &Knowledge, known: &Known, tool: &str) -> Result<(), pml_store::Error> {
    let because = format!("the definition of `{tool}` changed");
    knowledge
        .store
        .drop_cached(&known.owner, Dropped::Outdated(&known.id), &because, now_ms())
        .await
        .map(drop)
}

/// Why a tool would not take what it was given in earlier runs.
async fn refused(
    knowledge: &Knowledge,
    tool: &crate::catalogue::Tool,
    known: &Known,
) -> Result<Option<String>, pml_store::Error> {
    let traces = worked(knowledge, known).await?;
    let name = tool.id.to_string();
    let calls = traces.iter().flat_map(|trace| &trace.body.task_results);
    let mut calls = calls.filter(|call| call.tool == name && call.success && !call.altered);
    let wrong =
        calls.find_map(|call| knowledge.tools.validators.check(&tool.id, &tool.definition, &call.args).err());
    Ok(wrong.map(|problem| format!("`{name}` changed: {}", problem.message)))
}

/// The latest runs of a capability that worked.
async fn worked(knowledge: &Knowledge, known: &Known) -> Result<Vec<Trace>, pml_store::Error> {
    let (mut worked, mut after) = (Vec::new(), None);
    for _ in 0..PAGES {
        let wanted = Traces { capability: Some(known.id.clone()), order: Order::Newest, limit: PAGE, after };
        let page = knowledge.store.traces(&known.owner, &wanted).await?;
        after = page.last().map(|trace| trace.id.clone());
        let ran = |trace: &Trace| !trace.cached && trace.status.evidence() == Some(true);
        worked.extend(page.into_iter().filter(ran));
        if after.is_none() || worked.len() >= RUNS {
            break;
        }
    }
    worked.truncate(RUNS);
    Ok(worked)
}
