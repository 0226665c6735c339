//! Puts other tasks in place of those of a DAG that have not run.
//!
//! What has run stays what it is: the new tasks may wait for it and refer to it, and cannot change or remove it.

use std::sync::Arc;

use pml_model::question::{Answer, Onward, Question};
use pml_model::{Principal, RunId, ToolId};

use super::approvals::{By, answer, open_question};
use super::authority::at_door;
use super::{Whose, understood_dag};
use crate::app::App;
use crate::execute::{self, no_run};
use crate::planning;
use crate::planning::{Refused, Setting};
use crate::problem::{Code, Problem};

/// Answers a run that waits after a layer with other tasks; the name of its question.
///
/// # Errors
/// The run does not wait after a layer, or the tasks cannot take the place of those that have not run.
pub async fn replan(
    app: &Arc<App>,
    principal: &Principal,
    id: &RunId,
    document: &str,
    by: &By,
    visible: &(dyn Fn(&ToolId) -> bool + Send + Sync),
) -> Result<String, Refused> {
    let Some((name, Question::Layer(_))) = open_question(app, principal, id).await? else {
        return Err(Problem::new(Code::InvalidRequest, format!("run `{id}` does not wait after a layer"))
            .hint("start it with `options.perLayerValidation`, and replan when it answers `layer_complete`")
            .into());
    };
    let recorded = app.store.load(principal, id).await.map_err(|error| match error {
        pml_store::Error::NoRun { .. } => no_run(id),
        other => other.into(),
    })?;
    // A server that nobody has met may offer what the new tasks call.
    app.tools.ensure_manifests_loaded().await;
    let standing = execute::tasks_of(&recorded)?;
    let whole = planning::with_what_has_run(&standing, document)?;
    let analysis = understood_dag(app, principal, whole).await?;
    let (snapshot, policy) = (app.tools.snapshot(), app.policy());
    let learned = Whose { app, principal };
    let bounds = standing.limits;
    let setting = Setting { snapshot: &snapshot, policy: &policy, bounds, visible, learned: &learned };
    let approvals = &app.config().approvals;
    let mut replan = planning::replan(&setting, &analysis, standing, approvals.dynamic)?;
    // What it adds was not there when the run was started: whoever would have to be asked through this door is.
    replan.by = Some(at_door(by, approvals.by));
    let plan = serde_json::to_string(&replan).map_err(|error| {
        Problem::new(Code::InvalidRequest, format!("the plan cannot be recorded: {error}"))
    })?;
    answer(app, id, &name, Answer::Layer(Onward::Replan { plan }), by).await?;
    Ok(name)
}
