//! Proves that the lifted form of a learned program is the same program.
//!
//! The form is run with the values that stood in the program, and the journal of the run it was learned from answers
//! its calls. It is put in force only if it makes the same calls with the same bytes in the same order, takes the same
//! path and ends with the same result.

use std::sync::Arc;

use pml_model::capability::{Capability, CapabilitySource};
use pml_model::json::Fields;
use pml_model::{CapabilityId, Principal};
use serde_json::Value;
use serde_json::value::RawValue;

use super::RunRegistry;
use super::replay::{Recording, ReplayOutcome, recording, replay};
use crate::capability::is_same_structure;
use crate::plan::Plan;
use crate::problem::{ErrorCode, Problem};

/// Proves the lifted form of a capability in the background, off the path of the reply.
pub(super) fn prove_later(runs: &Arc<RunRegistry>, principal: &Principal, id: &CapabilityId) {
    let (runs, principal, id) = (Arc::clone(runs), principal.clone(), id.clone());
    let owner = Arc::clone(&runs);
    owner.drivers.spawn(async move { prove(&runs, &principal, &id).await });
}

/// Proves the lifted form of a capability: puts it in force, or drops it. Where the recorded run cannot be read or no
/// worker is free, nothing changes.
pub(crate) async fn prove(runs: &Arc<RunRegistry>, principal: &Principal, id: &CapabilityId) {
    let proven = match try_prove(runs, principal, id).await {
        Ok(Some(proven)) => proven,
        Ok(None) => return,
        Err(problem) => {
            tracing::debug!(capability = %id, %problem, "the lifted form of a capability could not be compared");
            return;
        }
    };
    if !proven {
        tracing::info!(capability = %id, "the lifted form of a capability is another program and is dropped");
    }
    if let Err(error) = runs.store.settle_lift(principal, id, proven).await {
        tracing::warn!(capability = %id, %error, "the lifted form of a capability could not be stored");
    }
}

/// Whether the lifted form is the same program; `None` if there is no such form.
async fn try_prove(
    runs: &Arc<RunRegistry>,
    principal: &Principal,
    id: &CapabilityId,
) -> Result<Option<bool>, Problem> {
    let Some(capability) = runs.store.capability(principal, id).await? else { return Ok(None) };
    let Some(lift) = &capability.procedure.unproven_lift else { return Ok(None) };
    let recording = match recording(runs, principal, &lift.run).await {
        Ok(recording) => recording,
        // The journal is kept for a while only; without it there will never be a proof.
        Err(problem) if matches!(problem.code, ErrorCode::UnknownRun | ErrorCode::Gone) => {
            return Ok(Some(false));
        }
        Err(problem) => return Err(problem),
    };
    let Some(plan) = lifted_plan(runs, principal, &capability, &recording) else { return Ok(Some(false)) };
    let outcome = replay(runs, &recording, plan).await?;
    Ok(Some(matches!(outcome, ReplayOutcome::Same { .. })))
}

/// The recorded plan with the lifted form as its program and the values that stood in the program as its arguments.
fn lifted_plan(
    runs: &RunRegistry,
    principal: &Principal,
    capability: &Capability,
    recording: &Recording,
) -> Option<Plan> {
    let lift = capability.procedure.unproven_lift.as_ref()?;
    let CapabilitySource::Code { .. } = capability.procedure.source else { return None };
    let tools = runs.knowledge.catalogue_for(principal, &lift.template);
    let analysis = pml_analysis::analyse(&lift.template, &tools).ok()?;
    if !is_same_structure(&analysis.structure, &recording.plan.structure) {
        return None;
    }
    let arguments = with_defaults(&recording.plan.arguments, &lift.parameters_schema)?;
    let plan = recording.plan.clone().with_code(lift.template.clone(), analysis);
    Some(Plan { arguments, ..plan })
}

/// The arguments of the run, completed with the values that stood in the program.
pub(super) fn with_defaults(given: &RawValue, schema: &Value) -> Option<Box<RawValue>> {
    let mut arguments = Fields::parse(given.get()).ok()?;
    for (name, member) in schema.get("properties")?.as_object()? {
        if let Some(default) = member.get("default").filter(|_| arguments.get(name).is_none()) {
            arguments.set(name.clone(), pml_model::json::raw(default));
        }
    }
    Some(arguments.to_raw())
}
