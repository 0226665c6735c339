//! Capabilities that could serve one step of a request.

use std::sync::Arc;

use pml_model::Principal;
use pml_model::capability::CapabilityState;
use serde_json::{Map, Value};

use super::{ReadRequest, bound, contradiction, is_worth_suggesting};
use crate::app::App;
use crate::knowledge::IndexedCapability;
use crate::problem::Problem;

/// A capability that could serve a step.
pub(crate) struct StepCapability {
    pub(crate) capability: Arc<IndexedCapability>,
    /// The probability that it is what the step asks for.
    pub(crate) probability: f64,
    /// Its arguments, if the words and the context give all of them.
    pub(crate) arguments: Option<Map<String, Value>>,
}

/// The capabilities that could serve a step with these words, best first, at most `most`. Those that have not worked
/// yet, that mostly fail, or that the words contradict are left out.
///
/// # Errors
/// The database cannot be read.
pub(crate) async fn capabilities_for_step(
    app: &App,
    principal: &Principal,
    words: &str,
    context: &Map<String, Value>,
    most: usize,
) -> Result<Vec<StepCapability>, Problem> {
    let wanted = app.knowledge.embeddings.read_intent(words).await;
    let mut request = ReadRequest::of_intent(words);
    request.context = context.clone();
    let mut steps = Vec::new();
    for found in app.knowledge.find(principal, words, &wanted).await?.into_iter().take(super::LOOKED_AT) {
        let known = &found.capability;
        let is_usable = known.state == CapabilityState::Active
            && known.program.unproven_by.is_none()
            && !known.is_unproven()
            && is_worth_suggesting(&known.statistics);
        if !is_usable {
            continue;
        }
        let binding = bound(app, known, &request);
        if contradiction(known, &request, &binding).is_none() {
            steps.push(StepCapability {
                probability: binding.similarity,
                arguments: binding.is_complete().then_some(binding.arguments),
                capability: found.capability,
            });
        }
    }
    steps.sort_by(|one, other| other.probability.total_cmp(&one.probability));
    steps.truncate(most);
    Ok(steps)
}
