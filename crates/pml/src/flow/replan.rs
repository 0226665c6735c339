//! Replaces the tasks of a DAG that have not run.
//!
//! Tasks that have run stay as they are: the new tasks may depend on them and refer to their results, but cannot change
//! or remove them.

use std::sync::Arc;

use pml_model::question::{Answer, LayerDecision, Question};
use pml_model::{Principal, RunId, ToolId};

use super::approvals::{answer, open_question};
use super::authority::AnswerChannel;
use super::authority::required_answerer;
use super::{CapabilitiesOf, analyse_dag_or_refuse};
use crate::app::App;
use crate::execute::{self, no_run};
use crate::planning;
use crate::planning::{PlanRefusal, PlanningContext};
use crate::problem::{ErrorCode, Problem};

/// Answers a run that waits after a layer with replacement tasks. Returns the id of the answered question.
///
/// # Errors
/// The run does not wait after a layer, or the tasks cannot replace those that have not run.
pub async fn replan(
    app: &Arc<App>,
    principal: &Principal,
    id: &RunId,
    document: &str,
    by: &AnswerChannel,
    visible: &(dyn Fn(&ToolId) -> bool + Send + Sync),
) -> Result<String, PlanRefusal> {
    let Some((name, Question::Layer(_))) = open_question(app, principal, id).await? else {
        return Err(Problem::new(
            ErrorCode::InvalidRequest,
            format!("run `{id}` does not wait after a layer"),
        )
        .hint("start it with `options.perLayerValidation`, and replan when it answers `layer_complete`")
        .into());
    };
    let recorded = app.store.load_run(principal, id).await.map_err(|error| match error {
        pml_store::Error::UnknownRun { .. } => no_run(id),
        other => other.into(),
    })?;
    // A server whose manifest is not loaded yet may offer the tools that the new tasks call.
    app.tools.ensure_manifests_loaded().await;
    let standing = execute::dag_tasks(&recorded)?;
    let whole = planning::merge_with_finished_tasks(&standing, document)?;
    let learned = CapabilitiesOf::of_program(app, principal, recorded.run.capability.as_ref());
    let analysis = analyse_dag_or_refuse(&learned, whole).await?;
    let (snapshot, policy) = (app.tools.snapshot(), app.policy());
    let bounds = standing.limits;
    let setting =
        PlanningContext { snapshot: &snapshot, policy: &policy, bounds, visible, capabilities: &learned };
    let approvals = &app.config().approvals;
    let mut replan = planning::replan(&setting, &analysis, standing, approvals.dynamic)?;
    // The added tasks were not part of the run when it started, so the answerer setting of this channel applies to
    // them.
    replan.by = Some(required_answerer(by, approvals.answerer));
    let plan = serde_json::to_string(&replan).map_err(|error| {
        Problem::new(ErrorCode::InvalidRequest, format!("the plan cannot be recorded: {error}"))
    })?;
    answer(app, id, &name, Answer::Layer(LayerDecision::Replan { plan }), by).await?;
    Ok(name)
}
