//! Checks the capabilities against the current tools. A capability that would fail is marked before a user runs it, and
//! restored when its tools are back and it has worked with them.

use pml_model::capability::{CapabilitySource, CapabilityState, Invalidation};
use pml_model::trace::Trace;
use pml_model::{Digest, ToolId};
use pml_store::{InvalidationScope, TraceOrder, TraceQuery};

use super::{IndexedCapability, Knowledge};
use crate::catalogue::ToolSnapshot;
use crate::clock::now_ms;
use crate::repair;
use crate::tools::installation;

/// The number of runs of a capability that are checked against a changed tool.
const RUNS: usize = 5;
/// The number of traces read at a time to find these runs.
const PAGE: u32 = 50;
/// The number of such reads: most of the latest traces may be uses of a cached result.
const PAGES: usize = 20;

/// The reason why a capability whose tools are back is not found yet.
const BACK: &str =
    "its tools are there again, and it has not worked since; a run of it by name that works makes it active";

/// Checks every capability that works or used to.
pub(crate) async fn check(knowledge: &Knowledge) {
    let Ok(all) = knowledge.memory.all().await else { return };
    let snapshot = knowledge.tools.snapshot();
    for known in all.iter().filter(|known| known.state != CapabilityState::Planned) {
        let because = match problem(knowledge, &snapshot, known).await {
            Ok(because) => because,
            Err(error) => {
                tracing::warn!(%error, "what was learned could not be compared with the tools there are");
                return;
            }
        };
        if because.is_none() && known.state == CapabilityState::Active {
            continue;
        }
        let marked = match because {
            Some(because) => {
                knowledge.store.degrade_capability(&known.owner, &known.id, &because, now_ms()).await
            }
            None => knowledge.store.mark_recoverable(&known.owner, &known.id, BACK).await,
        };
        if let Err(error) = marked {
            tracing::warn!(%error, capability = %known.id, "a capability could not be marked");
        }
    }
}

/// The reason why a capability would not work now.
async fn problem(
    knowledge: &Knowledge,
    snapshot: &ToolSnapshot,
    known: &IndexedCapability,
) -> Result<Option<String>, pml_store::Error> {
    for used in &known.tools {
        let Ok(id) = ToolId::parse(&used.id) else { continue };
        let is_known =
            |server: &&crate::catalogue::CatalogueServer| server.name == id.server && server.tools_known;
        let server = snapshot.servers.iter().find(|server| server.name == id.server);
        if server.is_some() && server.filter(is_known).is_none() {
            // The server of the tool has not been listed yet.
            continue;
        }
        let tool = match snapshot.tool(&id) {
            Ok(tool) => tool,
            Err(problem) => return Ok(Some(format!("`{id}` cannot be used: {}", problem.message))),
        };
        if tool.definition.digest != used.digest
            && known.cache.is_invalidated_by(Invalidation::ToolSchemaChange)
        {
            forget_results(knowledge, known, &used.id).await?;
        }
        if tool.definition.digest != used.digest
            && let Some(because) = refused(knowledge, tool, known).await?
        {
            return Ok(Some(because));
        }
        if tool.definition.digest != used.digest
            && let Some(lost) = lost(knowledge, tool, (&used.digest, known)).await?
        {
            return Ok(Some(format!("`{id}` changed: its result has no `{lost}` as it had before")));
        }
    }
    Ok(None)
}

/// The part of the result that the program mentions and the tool no longer declares.
async fn lost(
    knowledge: &Knowledge,
    tool: &crate::catalogue::CatalogueTool,
    (before, known): (&Digest, &IndexedCapability),
) -> Result<Option<String>, pml_store::Error> {
    let CapabilitySource::Code { code, .. } = &known.program.source else { return Ok(None) };
    if tool.definition.output_schema.is_none() {
        return Ok(None);
    }
    let history = knowledge.store.definition_history(&installation(), &tool.id).await?;
    let before = history.iter().find(|version| version.digest == *before);
    let before = before.and_then(|version| version.definition.as_ref());
    Ok(before.and_then(|before| repair::lost_result(before, &tool.definition, code)))
}

/// Drops the cached results that another definition of the tool gave. Those of other capabilities stay: they may come
/// from the tool as it is now.
async fn forget_results(
    knowledge: &Knowledge,
    known: &IndexedCapability,
    tool: &str,
) -> Result<(), pml_store::Error> {
    let because = format!("the definition of `{tool}` changed");
    knowledge
        .store
        .invalidate_cache(&known.owner, InvalidationScope::Outdated(&known.id), &because, now_ms())
        .await
        .map(drop)
}

/// The reason why a tool would reject the arguments of earlier runs.
async fn refused(
    knowledge: &Knowledge,
    tool: &crate::catalogue::CatalogueTool,
    known: &IndexedCapability,
) -> Result<Option<String>, pml_store::Error> {
    let traces = worked(knowledge, known).await?;
    let name = tool.id.to_string();
    let calls = traces.iter().flat_map(|trace| &trace.body.task_results);
    let mut calls = calls.filter(|call| call.tool == name && call.success && !call.altered);
    let wrong =
        calls.find_map(|call| knowledge.tools.validators.check(&tool.id, &tool.definition, &call.args).err());
    Ok(wrong.map(|problem| format!("`{name}` changed: {}", problem.message)))
}

/// The latest successful runs of a capability.
async fn worked(knowledge: &Knowledge, known: &IndexedCapability) -> Result<Vec<Trace>, pml_store::Error> {
    let (mut worked, mut after) = (Vec::new(), None);
    for _ in 0..PAGES {
        let wanted =
            TraceQuery { capability: Some(known.id.clone()), order: TraceOrder::Newest, limit: PAGE, after };
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
