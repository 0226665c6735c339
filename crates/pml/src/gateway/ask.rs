//! Asks the user of a client what a run wants to know, where the client can ask and its user's word counts.

use std::sync::Arc;

use pml_mcp::server::Incoming;
use pml_model::RunId;
use pml_model::json::{Fields, raw};
use pml_model::question::{Answer, Answerer, Decision, Question};
use serde_json::{Value, json};

use crate::app::App;
use crate::approve::words;
use crate::execute::Standing;
use crate::flow::{self, By};
use crate::problem::{Code, Problem};

/// The longest question a client is asked to show: nobody may allow what they have not seen, and what a client cuts
/// off is not known.
const MAX_CHARACTERS: usize = 4_000;

/// How a run stands when its questions that this client's user can answer are answered.
///
/// # Errors
/// An answer cannot be stored, or the run cannot be gone on with.
pub(super) async fn settle(
    app: &Arc<App>,
    request: &Incoming,
    id: &RunId,
    mut standing: Standing,
) -> Result<Standing, Problem> {
    while let Standing::Waiting { question: Some((name, question)), .. } = &standing {
        let by = by(app, request);
        let Some(decision) = ask(request, id, question, &by).await else { break };
        match flow::answer(app, id, name, Answer::Approval(decision), &by).await {
            Ok(()) => {}
            // Somebody else was quicker, by another way, and the run may have gone on.
            Err(problem) if matches!(problem.code, Code::AlreadyAnswered | Code::Gone) => {}
            Err(problem) => return Err(problem),
        }
        standing = super::runs::go_on(app, request, id, name).await?;
    }
    Ok(standing)
}

/// By whom an answer of this client's is: the config says in front of which clients a person sits.
pub(super) fn by(app: &App, request: &Incoming) -> By {
    let name = request.client.name.clone();
    By::Client { person: app.config().is_interactive(&name), name }
}

async fn ask(request: &Incoming, id: &RunId, question: &Question, by: &By) -> Option<Decision> {
    let Question::Approval(asked) = question else { return None };
    let counts = asked.by == Answerer::Client || matches!(by, By::Client { person: true, .. });
    let message = format!("{id} {}", words::approval(asked));
    if !counts || message.chars().nth(MAX_CHARACTERS).is_some() {
        return None;
    }
    let params = json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {
                "decision": { "type": "string", "title": "May it?", "enum": ["allow", "deny"] },
                "reason": { "type": "string", "title": "Why (for the agent)" }
            },
            "required": ["decision"]
        }
    });
    let answer = match request.caller.ask("elicitation/create", Some(raw(&params))).await {
        Ok(answer) => answer,
        Err(error) => {
            tracing::debug!(%error, "a client's user was not asked");
            return None;
        }
    };
    let fields = Fields::parse(answer.get()).ok()?;
    let content: Value = fields.read("content").unwrap_or_default();
    let decision = |approved, reason: Option<&str>| Decision {
        approved,
        reason: reason.map(str::to_owned).filter(|reason| !reason.is_empty()),
        any_arguments: None,
        remember: None,
        by: String::new(),
    };
    match (fields.read::<String>("action").as_deref(), content["decision"].as_str()) {
        (Some("accept"), Some("allow")) => Some(decision(true, None)),
        (Some("accept"), Some("deny")) => Some(decision(false, content["reason"].as_str())),
        (Some("decline"), _) => Some(decision(false, None)),
        // Dismissed: the question stays open.
        (_, _) => None,
    }
}
