//! Requests that are made again while the question of the first is open.
//!
//! An agent that is told to wait for a person often just sends its request once more. That finds the open question instead
//! of asking the person twice, also after a restart. Two requests are the same where the same client of the same principal
//! asks for the same code with the same arguments, under the same setting and with the tools as they are: the words of
//! the intent do not matter, an idempotency key does.

use pml_model::Principal;
use pml_model::json::canonical;

use super::Executed;
use crate::app::App;
use crate::clock::now_ms;
use crate::execute;
use crate::plan::Plan;
use crate::planning::Execution;
use crate::problem::Problem;
use crate::report::Standing;

/// Marks what is asked for, where a person may be asked about it.
///
/// # Errors
/// The key file cannot be used.
pub(super) async fn mark(app: &App, asked: &Execution, plan: &Plan) -> Result<Option<String>, Problem> {
    if !plan.asks() {
        return Ok(None);
    }
    let client = asked.session.rsplit_once('/').map_or(asked.session.as_str(), |(client, _)| client);
    let arguments = plan.arguments.get();
    let key = asked.idempotency.as_ref().map(|given| given.key.clone()).unwrap_or_default();
    let mut words = vec![
        "a request".to_owned(),
        asked.principal.0.clone(),
        client.to_owned(),
        asked.by.as_str().to_owned(),
        plan.approved_hash(),
        canonical(arguments).unwrap_or_else(|_| arguments.to_owned()),
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
pub(super) async fn open(app: &App, principal: &Principal, mark: &str) -> Result<Option<Executed>, Problem> {
    let Some(id) = app.store.asked_already(principal, mark, now_ms()).await? else {
        return Ok(None);
    };
    Ok(match execute::standing(&app.runs, principal, &id).await? {
        standing @ Standing::Waiting { question: Some(_), .. } => Some(Executed::AsksAlready(id, standing)),
        // It was answered meanwhile.
        _ => None,
    })
}
