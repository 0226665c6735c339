//! A person's answers to runs, from the terminal: `pml runs approve`, `deny`, `continue`, and resolving calls in
//! doubt.

use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use pml_model::RunId;
use pml_model::name::printable;
use pml_model::question::{
    Answer, ApprovalDecision, ApprovalScope, DoubtVerdict, LayerDecision, Question, ResolvedDoubt,
};
use serde_json::value::RawValue;

use super::ask::require_passphrase;
use super::follow::{parse_run_argument, resume_and_follow};
use super::run_output::print_question;
use super::{CommandContext, out};
use crate::app::App;
use crate::clock::now_ms;
use crate::flow::{self, AnswerChannel, RememberRequest};
use crate::problem::{ErrorCode, Problem};

/// Arguments of `pml runs approve`.
#[derive(Debug, Args)]
pub(super) struct ApproveArgs {
    /// The run
    id: String,
    /// Allow any arguments in this run, for at most this many calls of each tool
    #[arg(long, value_name = "CALLS")]
    any_arguments: Option<u32>,
    /// Make a standing rule: for this code, or for these tools in any code
    #[arg(long, value_name = "FOR")]
    remember: Option<RememberFor>,
    /// With --remember: for any arguments
    #[arg(long, requires = "remember")]
    whatever: bool,
    /// With --remember: how many days the rule lasts [default: 30]
    #[arg(long, value_name = "DAYS", requires = "remember")]
    days: Option<u32>,
    /// Record the answer and let a gateway resume the run
    #[arg(long)]
    detach: bool,
}

/// Arguments of `pml runs deny`.
#[derive(Debug, Args)]
pub(super) struct DenyArgs {
    /// The run
    id: String,
    /// The reason, shown to the agent
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RememberFor {
    Code,
    Tool,
}

pub(super) async fn approve(
    here: &CommandContext,
    app: &Arc<App>,
    approve: &ApproveArgs,
) -> Result<ExitCode, Problem> {
    let id = parse_run_argument(&approve.id)?;
    let remembered = approve.remember.map(|only| RememberRequest {
        only: if only == RememberFor::Code { ApprovalScope::Code } else { ApprovalScope::Tool },
        any_arguments: approve.whatever,
        days: approve.days,
    });
    let remember = remembered.map(|remembered| remembered.to_remember(now_ms())).transpose()?;
    let decision = ApprovalDecision {
        approved: true,
        reason: None,
        any_arguments: approve.any_arguments,
        remember,
        by: String::new(),
    };
    decide(here, app, &id, decision).await?;
    if approve.detach {
        out::note("allowed; a gateway goes on with it");
        return Ok(ExitCode::SUCCESS);
    }
    resume_and_follow(here, app, &id, true).await
}

pub(super) async fn deny(
    here: &CommandContext,
    app: &Arc<App>,
    deny: &DenyArgs,
) -> Result<ExitCode, Problem> {
    let id = parse_run_argument(&deny.id)?;
    let decision = ApprovalDecision {
        approved: false,
        reason: deny.reason.clone(),
        any_arguments: None,
        remember: None,
        by: String::new(),
    };
    decide(here, app, &id, decision).await?;
    resume_and_follow(here, app, &id, true).await?;
    Ok(ExitCode::SUCCESS)
}

/// Answers the approval that a run waits for. Where only a person's answer counts, the passphrase is read from the
/// terminal device itself, which no pipe can feed.
async fn decide(
    here: &CommandContext,
    app: &Arc<App>,
    id: &RunId,
    decision: ApprovalDecision,
) -> Result<(), Problem> {
    let (name, question) = require_open_question(app, id).await?;
    if !matches!(question, Question::Approval(_) | Question::SignIn { .. }) {
        print_question(here, id, &question);
        return Err(Problem::new(ErrorCode::InvalidRequest, format!("run `{id}` does not ask for approval")));
    }
    // Only a person can make a standing rule.
    let needs = if decision.remember.is_some() { RequiredAnswerer::Person } else { RequiredAnswerer::Anyone };
    let by = require_answerer(here, app, id, &question, needs).await?;
    flow::answer(app, id, &name, Answer::Approval(decision), &by).await
}

/// Whose answer a question requires.
#[derive(PartialEq, Eq)]
enum RequiredAnswerer {
    Person,
    Anyone,
}

/// The channel of an answer from the terminal: a person's, after the passphrase, where one is required.
async fn require_answerer(
    here: &CommandContext,
    app: &App,
    id: &RunId,
    question: &Question,
    needs: RequiredAnswerer,
) -> Result<AnswerChannel, Problem> {
    if needs == RequiredAnswerer::Anyone && !flow::needs_person(app, question, &AnswerChannel::Shell) {
        return Ok(AnswerChannel::Shell);
    }
    print_question(here, id, question);
    require_passphrase(&app.settings.paths, &app.store).await?;
    Ok(AnswerChannel::Terminal)
}

/// Continues a DAG after a layer.
pub(super) async fn continue_after_layer(
    here: &CommandContext,
    app: &Arc<App>,
    id: &str,
) -> Result<ExitCode, Problem> {
    let id = parse_run_argument(id)?;
    let (name, question) = require_open_question(app, &id).await?;
    if !matches!(question, Question::Layer(_)) {
        print_question(here, &id, &question);
        return Ok(ExitCode::FAILURE);
    }
    flow::answer(app, &id, &name, Answer::Layer(LayerDecision::Continue), &AnswerChannel::Shell).await?;
    resume_and_follow(here, app, &id, true).await
}

async fn require_open_question(app: &App, id: &RunId) -> Result<(String, Question), Problem> {
    match flow::open_question(app, &app.principal, id).await? {
        Some(open) => Ok(open),
        None => match flow::why_no_question(app, &app.principal, id).await? {
            problem if problem.code == ErrorCode::ToolChanged => Err(problem),
            _ => Err(Problem::new(ErrorCode::InvalidRequest, format!("run `{id}` asks nothing"))),
        },
    }
}

/// Resolves the calls in doubt of a run.
pub(super) async fn resolve_doubts(
    here: &CommandContext,
    app: &Arc<App>,
    id: &RunId,
    said: Vec<ResolvedDoubt>,
) -> Result<(), Problem> {
    let (name, question) =
        require_open_question(app, id).await.map_err(|problem| problem.hint("leave `--call` out"))?;
    let Question::InDoubt { .. } = question else {
        return Err(Problem::new(ErrorCode::InvalidRequest, format!("run `{id}` has no calls in doubt"))
            .hint("leave `--call` out"));
    };
    let by = require_answerer(here, app, id, &question, RequiredAnswerer::Anyone).await?;
    flow::answer(app, id, &name, Answer::Doubts { calls: said }, &by).await
}

/// Parses the resolution of a call in doubt: `3=again`, `3=failed`, `3={"ok":true}`.
pub(super) fn parse_resolution(text: &str) -> Result<ResolvedDoubt, Problem> {
    let wrong = || {
        Problem::new(ErrorCode::InvalidRequest, format!("`--call {}` cannot be read", printable(text)))
            .hint(r#"write N=again, N=failed or N=JSON, such as --call 3=again or --call '3={"id": 7}'"#)
    };
    let (call, what) = text.split_once('=').ok_or_else(wrong)?;
    let call = call.trim().parse().map_err(|_| wrong())?;
    let verdict = match what.trim() {
        "again" => DoubtVerdict::Again,
        "failed" => DoubtVerdict::Failed,
        json => {
            let json: &RawValue = serde_json::from_str(json).map_err(|_| wrong())?;
            DoubtVerdict::Done { result: json.get().to_owned() }
        }
    };
    Ok(ResolvedDoubt { call, verdict })
}
