//! The part of a plan that says which explored path it runs.

use pml_model::exploration::{ExploredPath, PathOutcome, TriedCalls, judge_chosen};
use pml_model::name::truncate_text;
use pml_model::trace::Trace;
use pml_model::{CapabilityId, Digest};
use serde::{Deserialize, Serialize};

/// Characters of a failure that are kept with its path.
const MESSAGE_CHARACTERS: usize = 200;

/// A path of an exploration that was chosen to be run. It is stored with the plan, because another process may finish
/// the run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExploredChoice {
    /// The id of the exploration.
    pub exploration_id: String,
    /// The id of the path.
    pub path_id: String,
    /// The procedure of the path.
    pub procedure: CapabilityId,
    /// The digest of the definitions of its tools when it was explored.
    pub definitions: Digest,
    /// The intent of the exploration, with its values replaced by what they are.
    pub masked_intent: String,
    /// The viable paths that were not chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_chosen: Vec<String>,
    /// How its calls were tried.
    pub tried: TriedCalls,
}

impl ExploredChoice {
    /// What the run with this trace shows of the path.
    pub(crate) fn outcome(&self, trace: &Trace) -> ExploredPath {
        let (outcome, cause) =
            judge_chosen(trace.status, trace.error.as_ref(), &trace.body.task_results, &self.tried);
        let failed = trace.error.as_ref().filter(|_| outcome == PathOutcome::Misleading);
        let message = failed.map(|error| truncate_text(&error.message, MESSAGE_CHARACTERS));
        ExploredPath { outcome, weight: weight(outcome), cause, message, ..self.undecided() }
    }

    /// The reference to the path, for a run that shows nothing of it.
    pub(crate) fn undecided(&self) -> ExploredPath {
        ExploredPath {
            exploration_id: self.exploration_id.clone(),
            path_id: self.path_id.clone(),
            procedure: self.procedure.clone(),
            definitions: self.definitions.clone(),
            masked_intent: self.masked_intent.clone(),
            not_chosen: self.not_chosen.clone(),
            outcome: PathOutcome::Undecided,
            weight: weight(PathOutcome::Undecided),
            cause: None,
            message: None,
        }
    }
}

/// How much the outcome of a run counts.
fn weight(outcome: PathOutcome) -> f64 {
    match outcome {
        PathOutcome::Worked | PathOutcome::Misleading => 1.0,
        PathOutcome::Undecided | PathOutcome::Viable | PathOutcome::Failed => 0.0,
    }
}
