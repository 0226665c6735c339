//! What `pml_execute` would do with an intent alone; nothing is run.

use std::sync::Arc;

use pml_model::{CapabilityId, Principal, ToolId};
use serde_json::{Map, Value};

use super::recall::{self, RecallOutcome};
use super::unasked;
use crate::app::App;
use crate::planning::Work;
use crate::problem::Problem;
use crate::suggest::SuggestedDag;

/// What `pml_execute` would do with an intent alone.
#[derive(Debug, Default)]
pub struct ExecutePreview {
    /// The capability that would run, or the likeliest one.
    pub capability: Option<PreviewedCapability>,
    /// A DAG of tools that could serve the intent.
    pub suggested_dag: Option<SuggestedDag>,
}

/// A capability that would run for an intent, or could.
#[derive(Debug)]
pub struct PreviewedCapability {
    /// The id of the capability.
    pub id: CapabilityId,
    /// The name of the capability.
    pub name: String,
    /// The arguments it would run with.
    pub arguments: Map<String, Value>,
    /// What keeps it from running; empty if it would run.
    pub obstacles: Vec<String>,
}

/// What `pml_execute` would do with an intent alone.
///
/// # Errors
/// The intent cannot be understood, or the database cannot be read.
pub async fn preview_execute(
    app: &Arc<App>,
    principal: &Principal,
    intent: &str,
    visible: impl Fn(&ToolId) -> bool + Send + Sync,
) -> Result<ExecutePreview, Problem> {
    app.tools.ensure_manifests_loaded().await;
    match recall::resolve_work(app, unasked(principal, intent, Work::Intent), &visible).await? {
        RecallOutcome::Run(request) => match &request.capability {
            Some(id) => {
                let known = super::capability(app, principal, id.as_str()).await?;
                let capability = PreviewedCapability {
                    id: id.clone(),
                    name: known.name,
                    arguments: serde_json::from_str(request.arguments.get()).unwrap_or_default(),
                    obstacles: Vec::new(),
                };
                Ok(ExecutePreview { capability: Some(capability), suggested_dag: None })
            }
            // The DAG that would run is the one that would be suggested.
            None => {
                let suggested_dag = super::suggest_dag(app, principal, intent, &visible).await;
                Ok(ExecutePreview { capability: None, suggested_dag })
            }
        },
        RecallOutcome::Suggested(suggested) => {
            let suggested = *suggested;
            let first = suggested.candidates.into_iter().next();
            let capability = first.map(|first| {
                let contradiction = first.contradiction.as_ref().map(|contradiction| {
                    format!(
                        "it always uses {}, and the intent says {}",
                        contradiction.constant, contradiction.intent_says
                    )
                });
                let missing = first.missing.iter().map(|missing| missing.why.clone());
                let obstacles = [suggested.because.clone()].into_iter().chain(contradiction).chain(missing);
                PreviewedCapability {
                    id: first.id,
                    name: first.name,
                    arguments: first.arguments,
                    obstacles: obstacles.collect(),
                }
            });
            Ok(ExecutePreview { capability, suggested_dag: suggested.suggested_dag })
        }
    }
}
