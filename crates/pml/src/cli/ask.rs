//! Prompts on the terminal: a run's question, yes or no, and the passphrase.

use std::io::IsTerminal as _;
use std::sync::Arc;

use pml_mcp::Caller;
use pml_model::RunId;
use pml_model::question::{Answer, ApprovalDecision, Question};
use pml_store::Store;

use super::follow::{wait_for_end, wait_for_other_process};
use super::run_output::print_question;
use super::{CommandContext, out};
use crate::app::App;
use crate::config::Paths;
use crate::execute::ResumeOutcome;
use crate::flow::{self, AnswerChannel};
use crate::passphrase::{self, SignInDoor};
use crate::problem::{ErrorCode, Problem};
use crate::report::RunStatus;

/// Asks the questions of a run on the terminal until the run is over or one gets no answer. `yes` approves everything
/// that needs no person.
pub(super) async fn answer_questions(
    here: &CommandContext,
    app: &Arc<App>,
    id: &RunId,
    mut standing: RunStatus,
    (caller, yes): (&Caller, bool),
) -> Result<RunStatus, Problem> {
    while let RunStatus::Waiting { question: Some((name, question)), .. } = &standing {
        if !matches!(question, Question::Approval(_)) {
            break;
        }
        let Some((approved, by)) = ask_at_terminal(here, app, id, question, yes).await? else { break };
        let decision = ApprovalDecision {
            approved,
            reason: None,
            any_arguments: None,
            remember: None,
            by: String::new(),
        };
        flow::answer(app, id, name, Answer::Approval(decision), &by).await?;
        standing = match flow::resume(app, &app.principal, id, caller.clone()).await? {
            ResumeOutcome::Running(handle) => wait_for_end(&handle).await,
            ResumeOutcome::Asks { .. } | ResumeOutcome::HeldElsewhere | ResumeOutcome::Over(_) => {
                wait_for_other_process(app, id).await?
            }
        };
    }
    Ok(standing)
}

/// The answer from the terminal and its channel; `None` where there is no terminal or no answer. Where only a
/// person's answer counts, the passphrase proves that a person gives it.
async fn ask_at_terminal(
    here: &CommandContext,
    app: &App,
    id: &RunId,
    question: &Question,
    yes: bool,
) -> Result<Option<(bool, AnswerChannel)>, Problem> {
    let needs_person = flow::needs_person(app, question, &AnswerChannel::Shell);
    if yes && !needs_person {
        return Ok(Some((true, AnswerChannel::Shell)));
    }
    let nobody = here.json || !std::io::stdin().is_terminal();
    if nobody || (needs_person && !passphrase::is_set(&app.settings.paths, &app.store)?) {
        return Ok(None);
    }
    print_question(here, id, question);
    let Some(approved) = read_confirmation("allow it?").await else { return Ok(None) };
    if !needs_person {
        return Ok(Some((approved, AnswerChannel::Shell)));
    }
    require_passphrase(&app.settings.paths, &app.store).await?;
    Ok(Some((approved, AnswerChannel::Terminal)))
}

/// Reads yes or no from the terminal; `None` for any other line and at the end of input.
pub(super) async fn read_confirmation(question: &str) -> Option<bool> {
    out::note(format!("{question} [y/n]"));
    let line = crate::runtime::run_blocking(|| std::io::stdin().lines().next()).await;
    match line?.ok()?.trim() {
        "y" | "yes" => Some(true),
        "n" | "no" => Some(false),
        _ => None,
    }
}

/// Asks for the passphrase on the terminal, where a program with a shell cannot type it.
pub(super) async fn require_passphrase(paths: &Paths, store: &Store) -> Result<(), Problem> {
    if !passphrase::is_set(paths, store)? {
        return Err(Problem::new(
            ErrorCode::Denied,
            "only a person may approve here, and no passphrase is set",
        )
        .hint("run `pml passphrase` in a terminal"));
    }
    let typed = passphrase::ask_on_terminal("Passphrase: ").await?;
    if passphrase::verify(paths, store, SignInDoor::Terminal, typed.reveal()).await? {
        return Ok(());
    }
    Err(Problem::new(ErrorCode::Denied, "that is not the passphrase").hint("nothing was done; try again"))
}
