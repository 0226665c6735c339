//! Offers repaired versions of capabilities whose tools have changed.
//!
//! A repaired program is offered only after a recorded run of the capability has been replayed with it: the record is
//! mapped by the same edits, and the program has to make exactly those calls and end the same way. It becomes a version
//! that is not in force; a person looks at the difference and accepts it, or not.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use pml_mcp::server::ChangeNotice;
use pml_model::capability::{Capability, CapabilitySource, ToolUse};
use pml_model::name::printable;
use pml_model::{CapabilityId, Definition, Digest, Principal, ToolId};
use pml_store::{DefinitionVersion, OfferOutcome};
use serde::Serialize;
use tokio::sync::broadcast::error::RecvError;

use super::capabilities::{PlannedProcedure, capability, plan_procedure};
use super::regression::recorded_runs;
use super::share::take_parameters;
use super::version_names::put_in_force;
use crate::app::App;
use crate::catalogue::ToolSnapshot;
use crate::clock::now_ms;
use crate::execute::replay::ReplayOutcome;
use crate::planning::Work;
use crate::problem::{ErrorCode, Problem};
use crate::repair::{OfferedTool, ProgramEdit, RepairedProgram, repair_program};
use crate::tools::installation;

/// What became of an attempt to repair a capability.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase", tag = "outcome")]
pub enum RepairOutcome {
    /// None of its tools has changed.
    Unchanged,
    /// A repaired version is offered.
    #[serde(rename_all = "camelCase")]
    Offered {
        /// The name of the capability.
        name: String,
        /// The number of the version.
        version: u32,
        /// What was changed, and what shows that it is right.
        because: String,
    },
    /// The repaired program exists already.
    #[serde(rename_all = "camelCase")]
    Existing {
        /// The name that runs it.
        name: String,
    },
    /// There is no repair.
    #[serde(rename_all = "camelCase")]
    None {
        /// Why there is none.
        because: String,
    },
}

/// Offers a repaired version of a capability, if its tools have changed and the definitions show how it has to follow.
///
/// # Errors
/// There is no such capability, or no worker is available.
pub async fn repair_capability(
    app: &Arc<App>,
    principal: &Principal,
    which: &str,
) -> Result<RepairOutcome, Problem> {
    let found = capability(app, principal, which).await?;
    app.tools.ensure_manifests_loaded().await;
    let none = |because: String| Ok(RepairOutcome::None { because });
    let CapabilitySource::Code { code, template } = &found.procedure.source else {
        return none("only programs are repaired, and it is a document or a call".to_owned());
    };
    let changed = changed_tools(app, &found).await?;
    if changed.is_empty() {
        return Ok(RepairOutcome::Unchanged);
    }
    // The form that takes arguments is what runs, and its parameters stay as they are.
    let mut text = template.as_ref().unwrap_or(code).clone();
    let (mut edits, mut evidence): (Vec<(ToolId, Vec<ProgramEdit>)>, Vec<String>) = (Vec::new(), Vec::new());
    for ChangedTool { id, before, offered } in changed {
        let catalogue = app.knowledge.catalogue_for(principal, &text);
        let Ok(analysis) = pml_analysis::analyse(&text, &catalogue) else {
            return none("its program is not understood".to_owned());
        };
        let repaired = repair_program(&text, &analysis.structure, (&id, &before), &offered, &catalogue);
        let Some(RepairedProgram { code, repair }) = repaired else {
            return none(format!("the definitions do not show how to follow the change of `{id}`"));
        };
        text = code;
        evidence.extend(repair.evidence);
        edits.push((id, repair.edits));
    }
    let tried = replay_repaired(app, principal, (&found, &text), &edits).await?;
    if let Err(because) = tried {
        return none(because);
    }
    offer(app, principal, &found, text, evidence.join("; ")).await
}

async fn offer(
    app: &Arc<App>,
    principal: &Principal,
    found: &Capability,
    text: String,
    because: String,
) -> Result<RepairOutcome, Problem> {
    let intent = found.intents.iter().min_by_key(|intent| intent.first_at);
    let intent = intent.map(|intent| intent.text.clone()).unwrap_or_default();
    let planned = plan_procedure(app, principal, Work::Code(text), &intent).await;
    let PlannedProcedure { mut procedure, .. } = match planned {
        Ok(planned) => planned,
        Err(problem) => return Ok(RepairOutcome::None { because: problem.message }),
    };
    take_parameters(&mut procedure.parameters_schema, &found.procedure.parameters_schema);
    procedure.description.clone_from(&found.procedure.description);
    let name = app.store.version_of(principal, &found.procedure.id).await?;
    let name = name.map_or_else(|| found.name.clone(), |(name, _)| name);
    Ok(match app.store.offer_version(procedure, &name, &because, now_ms()).await? {
        OfferOutcome::Offered(version) => RepairOutcome::Offered { name, version, because },
        OfferOutcome::Existing(id) => {
            RepairOutcome::Existing { name: capability(app, principal, id.as_str()).await?.name }
        }
        OfferOutcome::Unknown => RepairOutcome::None { because: format!("`{name}` is gone") },
    })
}

/// A tool of a capability that has another definition than it last worked with, or is gone.
struct ChangedTool {
    id: ToolId,
    before: Definition,
    /// The tools that its server offers now.
    offered: Vec<OfferedTool>,
}

async fn changed_tools(app: &App, found: &Capability) -> Result<Vec<ChangedTool>, Problem> {
    let snapshot = app.tools.snapshot();
    let mut changed = Vec::new();
    for used in &found.procedure.tools_used {
        let Ok(id) = ToolId::parse(&used.id) else { continue };
        let is_listed = snapshot.servers.iter().any(|server| server.name == id.server && server.tools_known);
        let is_same = snapshot.tool(&id).is_ok_and(|tool| tool.definition.digest == used.digest);
        // A tool that is held back is accepted first, or not.
        let is_held = snapshot.quarantined.iter().any(|held| held.id == id);
        if !is_listed || is_same || is_held {
            continue;
        }
        let history = app.store.definition_history(&installation(), &id).await?;
        let Some(before) = definition_of(&history, &used.digest) else { continue };
        let last_used = found.statistics.last_used.unwrap_or(found.created_at);
        let mut offered = Vec::new();
        for tool in snapshot.tools_of(&id.server) {
            let history = app.store.definition_history(&installation(), &tool.id).await?;
            offered.push(OfferedTool {
                id: tool.id.clone(),
                identifier: tool.identifier.clone(),
                definition: (*tool.definition).clone(),
                is_new: history.first().is_none_or(|first| first.seen_at > last_used),
            });
        }
        changed.push(ChangedTool { id, before, offered });
    }
    Ok(changed)
}

fn definition_of(history: &[DefinitionVersion], digest: &Digest) -> Option<Definition> {
    history.iter().rev().find(|version| version.digest == *digest)?.definition.clone()
}

/// Replays the recorded runs with the repaired program. Returns why it is not the same; there has to be a record.
async fn replay_repaired(
    app: &Arc<App>,
    principal: &Principal,
    (found, text): (&Capability, &str),
    edits: &[(ToolId, Vec<ProgramEdit>)],
) -> Result<Result<(), String>, Problem> {
    let mut replayed = 0;
    for recording in recorded_runs(app, principal, &found.procedure.id).await? {
        let mapped = recording.following(edits, &found.procedure.parameters_schema);
        let Some(mapped) = mapped else { continue };
        match super::replay(app, principal, &mapped, Some(text.to_owned())).await {
            Ok(ReplayOutcome::Same { .. }) => replayed += 1,
            Ok(ReplayOutcome::Diverged { divergence }) => {
                return Ok(Err(format!("the repaired program differs from what was recorded: {divergence}")));
            }
            Ok(ReplayOutcome::Differs { .. } | ReplayOutcome::Unfinished { .. }) => {
                return Ok(Err("the repaired program ends otherwise than was recorded".to_owned()));
            }
            Err(problem) if problem.code == ErrorCode::InvalidProgram => return Ok(Err(problem.message)),
            Err(problem) => return Err(problem),
        }
    }
    Ok(match replayed {
        0 => Err("no recorded run is kept that could show whether it is right".to_owned()),
        _ => Ok(()),
    })
}

/// Puts the version in force that is offered for a capability.
///
/// # Errors
/// None is offered, or there is no such capability.
pub async fn accept_repair(app: &App, principal: &Principal, which: &str) -> Result<(String, u32), Problem> {
    let list = super::versions::capability_versions(app, principal, which).await?;
    let offered = list.versions.iter().find(|record| record.version.offered_because.is_some());
    let Some(offered) = offered else {
        let text = format!("no repaired version of `{}` is offered", printable(&list.name));
        return Err(Problem::new(ErrorCode::NotFound, text).hint(
            "`pml capabilities repair` looks for one; `pml capabilities rollback` puts any version in force",
        ));
    };
    let repaired = capability(app, principal, offered.version.id.as_str()).await?;
    app.tools.ensure_manifests_loaded().await;
    let snapshot = app.tools.snapshot();
    let is_as_it_was = |used: &&ToolUse| {
        let id = ToolId::parse(&used.id).ok();
        id.is_some_and(|id| snapshot.tool(&id).is_ok_and(|tool| tool.definition.digest == used.digest))
    };
    if let Some(other) = repaired.procedure.tools_used.iter().find(|used| !is_as_it_was(used)) {
        let text = format!("`{}` has changed again since this version was offered", printable(&other.id));
        return Err(Problem::new(ErrorCode::ToolChanged, text).hint(format!(
            "`pml capabilities repair {}` compares the capability with the tools there are now",
            printable(&list.name)
        )));
    }
    let (_, version) = put_in_force(app, principal, &list.name, offered.version.id.clone()).await?;
    Ok((list.name, version))
}

/// What was tried: a capability, and the hash of all tools that its servers had then.
type TriedRepair = (CapabilityId, Digest);

/// Looks for repairs at the start and whenever the tools change, until the program ends.
pub async fn repair_task(app: Arc<App>) {
    let mut changes = app.tools.changes();
    let mut tried: HashSet<TriedRepair> = HashSet::new();
    loop {
        look_for_repairs(&app, &mut tried).await;
        tokio::select! {
            () = app.stopped() => return,
            change = changes.recv() => match change {
                Ok(ChangeNotice::Tools) | Err(RecvError::Lagged(_)) => {}
                Ok(_) => continue,
                Err(RecvError::Closed) => return,
            },
        }
    }
}

/// Looks for repairs of all capabilities whose tools have changed, but for those tried before with the same definitions.
async fn look_for_repairs(app: &Arc<App>, tried: &mut HashSet<TriedRepair>) {
    let snapshot = app.tools.snapshot();
    let outdated = match app.knowledge.memory.with_other_tools(&snapshot).await {
        Ok(outdated) => outdated,
        Err(error) => {
            tracing::warn!(%error, "capabilities could not be compared with the tools there are");
            return;
        }
    };
    for (owner, id) in outdated {
        let Ok(found) = capability(app, &owner, id.as_str()).await else { continue };
        let attempt = (id.clone(), tools_of_servers(&snapshot, &found));
        if tried.contains(&attempt) {
            continue;
        }
        match repair_capability(app, &owner, id.as_str()).await {
            Ok(outcome) => {
                if let RepairOutcome::Offered { name, version, because } = outcome {
                    tracing::info!(capability = %name, version, %because, "a repaired version is offered");
                }
                tried.insert(attempt);
            }
            // Tried again at the next change of the tools.
            Err(problem) => tracing::debug!(capability = %id, %problem, "no repair was looked for"),
        }
    }
}

/// The hash of all tools of the servers whose tools a capability calls: a tool that is gone may be there under another
/// name.
fn tools_of_servers(snapshot: &ToolSnapshot, found: &Capability) -> Digest {
    let used = found.procedure.tools_used.iter().filter_map(|used| ToolId::parse(&used.id).ok());
    let servers: BTreeSet<_> = used.map(|id| id.server).collect();
    let mut listed = String::new();
    for server in &servers {
        for tool in snapshot.tools_of(server) {
            listed.push_str(&format!("{} {}\n", tool.id, tool.definition.digest.as_str()));
        }
    }
    Digest::of(listed.as_bytes())
}
