//! Repeated requests: the same request again while the question of the first run is open.
//!
//! An agent that has to wait for a person often just sends its request again. The repeated request finds the open
//! question, even after a restart, so that the person is not asked twice. Two requests are the same if the same client
//! of the same principal requests the same code with the same arguments, under the same answerer setting and with
//! unchanged tool definitions. The wording of the intent does not matter; an idempotency key does.

use pml_model::Principal;
use pml_model::json::canonical_json;

use super::ExecuteOutcome;
use crate::app::App;
use crate::clock::now_ms;
use crate::execute;
use crate::plan::Plan;
use crate::planning::RunRequest;
use crate::problem::Problem;
use crate::report::RunStatus;

/// The mark that identifies a request, a keyed digest; `None` if its plan can never need approval.
///
/// # Errors
/// The key file cannot be used.
pub(super) async fn request_mark(
    app: &App,
    asked: &RunRequest,
    plan: &Plan,
) -> Result<Option<String>, Problem> {
    if !plan.may_need_approval() {
        return Ok(None);
    }
    let client = asked.session.rsplit_once('/').map_or(asked.session.as_str(), |(client, _)| client);
    let arguments = plan.arguments.get();
    let key = asked.idempotency.as_ref().map(|given| given.key.clone()).unwrap_or_default();
    let mut words = vec![
        "a request".to_owned(),
        asked.principal.0.clone(),
        client.to_owned(),
        asked.answerer.as_str().to_owned(),
        plan.approved_hash(),
        canonical_json(arguments).unwrap_or_else(|_| arguments.to_owned()),
        format!("{:?}", plan.pause()),
        plan.limits.wall_ms.to_string(),
        key,
    ];
    for tool in &plan.tools {
        words.extend([tool.id.to_string(), tool.digest.as_str().to_owned()]);
    }
    Ok(Some(app.store.mark_request(&words).await?))
}

/// The run of the same request whose question is open.
///
/// # Errors
/// The database cannot be read.
pub(super) async fn find_open_run(
    app: &App,
    principal: &Principal,
    mark: &str,
) -> Result<Option<ExecuteOutcome>, Problem> {
    let Some(id) = app.store.run_of_open_request(principal, mark, now_ms()).await? else {
        return Ok(None);
    };
    Ok(match execute::run_status(&app.runs, principal, &id).await? {
        standing @ RunStatus::Waiting { question: Some(_), .. } => {
            Some(ExecuteOutcome::AlreadyWaiting(id, standing))
        }
        // The question was answered in between.
        _ => None,
    })
}
