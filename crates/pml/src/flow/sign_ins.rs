//! Sends the calls again that waited for a sign-in, once somebody has signed in.

use std::collections::BTreeSet;
use std::sync::Arc;

use pml_model::question::{Answer, ApprovalDecision, Question};
use pml_model::{Principal, RunId};

use super::approvals::{answer, open_questions};
use super::authority::AnswerChannel;
use crate::app::App;
use crate::problem::{ErrorCode, Problem};

/// Answers the questions of all runs that wait for a sign-in to `server`, which whoever looks after due runs then takes
/// up. Returns these runs. All people use the same sign-in.
///
/// # Errors
/// The database cannot be read or written.
pub async fn note_sign_in(app: &Arc<App>, server: &str, by: &AnswerChannel) -> Result<Vec<RunId>, Problem> {
    let mut answered = Vec::new();
    for principal in everybody(app).await? {
        for open in open_questions(app, &principal).await? {
            let Question::SignIn { calls } = &open.question else { continue };
            if calls.iter().all(|call| call.server != server) {
                continue;
            }
            let again = ApprovalDecision {
                approved: true,
                reason: None,
                any_arguments: None,
                remember: None,
                by: String::new(),
            };
            match answer(app, &open.run, &open.question_id, Answer::Approval(again), by).await {
                Ok(()) => answered.push(open.run),
                // Somebody else answered, or the run has ended.
                Err(problem) if matches!(problem.code, ErrorCode::AlreadyAnswered | ErrorCode::Gone) => {}
                Err(problem) => return Err(problem),
            }
        }
    }
    Ok(answered)
}

/// The operator, the people who sign in, and those whom keys are for.
async fn everybody(app: &App) -> Result<BTreeSet<Principal>, Problem> {
    let people = app.store.people().await?.into_iter().map(|person| person.principal);
    let keys = app.store.client_keys().await?.into_iter().map(|key| key.principal);
    Ok(std::iter::once(Principal::local()).chain(people).chain(keys).collect())
}
