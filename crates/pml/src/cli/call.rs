//! `pml call` and `pml discover`.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use pml_mcp::caller::{CallerInfo, CallerMessage, new_session_number};
use pml_mcp::{Caller, Era};
use pml_model::json::{Fields, empty_object, raw};
use pml_model::question::Answerer;
use pml_model::{RunId, RunState, ToolId};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::ask::answer_questions;
use super::follow::{PATIENCE, wait_for_end};
use super::run_output::{print_result, print_status};
use super::{CommandContext, out};
use crate::app::{App, ProcessRole};
use crate::discover::{DiscoverFilter, DiscoverRequest, ResultDetail, ResultKind, default_limit};
use crate::flow::{self, DirectOutcome, ExecuteOutcome, NamedCall};
use crate::knowledge;
use crate::problem::{ErrorCode, Problem, SentStatus};
use crate::progress::ProgressBar;
use crate::report::RunStatus;
use crate::tools::{CallOutcome, DirectCaller, ToolError};

/// Arguments of `pml call`.
#[derive(Debug, Args)]
pub(super) struct CallArgs {
    /// The tool, as server:tool
    tool: String,
    /// Its arguments, a JSON object
    #[arg(long, default_value = "{}", value_name = "JSON")]
    args: String,
    /// Approve the call, unless only a person may (`approvals.by = "human"`)
    #[arg(long, short)]
    yes: bool,
}

/// Arguments of `pml discover`.
#[derive(Debug, Args)]
pub(super) struct DiscoverArgs {
    /// What you want to do
    intent: String,
    /// The number of results
    #[arg(long, default_value_t = default_limit())]
    limit: usize,
    /// The number of results to skip
    #[arg(long, default_value_t = 0)]
    offset: usize,
    /// Only results with at least this score, from 0 to 1
    #[arg(long, default_value_t = 0.0)]
    min_score: f64,
    /// Show the reasons for each result
    #[arg(long)]
    explain: bool,
    /// Show signatures with all comments, and the JSON Schemas (with --json)
    #[arg(long)]
    full: bool,
}

pub(super) async fn call(here: &CommandContext, call: CallArgs) -> Result<ExitCode, Problem> {
    let tool = ToolId::parse(&call.tool)
        .map_err(|error| Problem::new(ErrorCode::InvalidRequest, error.to_string()))?;
    let arguments: Box<RawValue> = serde_json::from_str(&call.args).map_err(|error| {
        Problem::new(ErrorCode::InvalidRequest, format!("`--args` is not JSON: {error}"))
            .hint(r#"write it as --args '{"path": "x"}'"#)
    })?;
    let app = here.open_app(ProcessRole::Command).await?;
    let (caller, messages) = terminal_caller();
    let mut showing = JoinSet::new();
    showing.spawn(show_progress(messages));
    let ended = make_call(here, &app, &tool, &arguments, (&caller, call.yes)).await;
    app.close().await;
    showing.shutdown().await;
    match ended? {
        CallEnd::Answered(outcome) => print_outcome(here, &tool, outcome),
        CallEnd::Run(id, RunStatus::Finished(report)) => Ok(match report.tool_result() {
            Some(result) => print_and_exit_code(here, result, report.state == RunState::Done),
            None => print_status(here, &id, &RunStatus::Finished(report), None),
        }),
        CallEnd::Run(id, standing) => {
            if !here.json && standing.question_id().is_some() {
                out::note(format!("approval_required: {id}"));
            }
            Ok(print_status(here, &id, &standing, None))
        }
    }
}

/// The end of a call: its direct outcome, or the run it became.
enum CallEnd {
    Answered(CallOutcome),
    Run(RunId, RunStatus),
}

/// Makes the call. Where it needs an approval, the person at the terminal is asked.
async fn make_call(
    here: &CommandContext,
    app: &Arc<App>,
    tool: &ToolId,
    arguments: &RawValue,
    (caller, yes): (&Caller, bool),
) -> Result<CallEnd, Problem> {
    let cancel = CancellationToken::new();
    let call = NamedCall {
        principal: app.principal.clone(),
        session: "terminal".to_owned(),
        direct: DirectCaller { client: "terminal".to_owned(), key: None, asked_by_client: None },
        tool,
        arguments,
        extra_params: Fields::default(),
        caller: caller.clone(),
        cancel: cancel.clone(),
        answerer: app.config().approvals.answerer.unwrap_or(Answerer::Client),
        idempotency: None,
        max_wait: PATIENCE,
        take_over_after: None,
    };
    let calling = flow::call(app, call, |_| true);
    tokio::pin!(calling);
    let called = tokio::select! {
        called = &mut calling => called,
        () = super::starting::wait_for_shutdown() => {
            cancel.cancel();
            calling.await
        }
    };
    let (id, standing) = match called? {
        DirectOutcome::Answered(outcome) => return Ok(CallEnd::Answered(outcome)),
        DirectOutcome::TakenOver(handle) | DirectOutcome::Run(ExecuteOutcome::Running(handle)) => {
            (handle.id.clone(), wait_for_end(&handle).await)
        }
        DirectOutcome::Run(
            ExecuteOutcome::Status(id, standing) | ExecuteOutcome::AlreadyWaiting(id, standing),
        ) => (id, standing),
        DirectOutcome::Run(ExecuteOutcome::Cached(known)) => {
            (known.id, RunStatus::Finished(Arc::new(known.report)))
        }
        DirectOutcome::Run(ExecuteOutcome::Refused(refused)) => return Err(refused.problem),
        DirectOutcome::Run(ExecuteOutcome::Suggested(_)) => unreachable!("a tool was named"),
    };
    let standing = answer_questions(here, app, &id, standing, (caller, yes)).await?;
    Ok(CallEnd::Run(id, standing))
}

/// Prints the outcome of a call that was made, or refused, without a run.
fn print_outcome(here: &CommandContext, tool: &ToolId, outcome: CallOutcome) -> Result<ExitCode, Problem> {
    match outcome {
        CallOutcome::Ok(result) if pml_mcp::protocol::is_input_required(&result) => {
            Err(Problem::new(ErrorCode::InputRequired, format!("`{tool}` asks for input while it works"))
                .hint("call it from a client that can answer"))
        }
        CallOutcome::Ok(result) => Ok(print_and_exit_code(here, &result, true)),
        CallOutcome::ToolError(ToolError::Result(result)) => Ok(print_and_exit_code(here, &result, false)),
        CallOutcome::ToolError(ToolError::Rpc(error)) => Err(Problem::new(
            ErrorCode::ServerError,
            format!("`{tool}` answered: {}", pml_model::name::printable(&error.to_string())),
        )),
        CallOutcome::NotSent(problem)
        | CallOutcome::NeedsApproval(problem)
        | CallOutcome::Withheld(problem) => Err(problem.sent(SentStatus::No)),
        CallOutcome::Unknown(problem) => Err(problem.sent(SentStatus::Unknown)),
    }
}

fn print_and_exit_code(here: &CommandContext, result: &RawValue, worked: bool) -> ExitCode {
    print_result(here, result);
    if worked { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A caller that receives progress where standard error is a terminal, and cannot be asked anything.
fn terminal_caller() -> (Caller, mpsc::Receiver<CallerMessage>) {
    Caller::new(CallerInfo {
        session: new_session_number(),
        session_end: CancellationToken::new(),
        era: Era::Modern,
        capabilities: empty_object(),
        progress_token: std::io::stderr().is_terminal().then(|| raw(&"pml-call")),
        min_log_rank: None,
    })
}

async fn show_progress(mut messages: mpsc::Receiver<CallerMessage>) {
    while let Some(message) = messages.recv().await {
        if let CallerMessage::Notify { params: Some(params), .. } = message {
            let progress: Value = serde_json::from_str(params.get()).unwrap_or_default();
            let total = progress["total"].as_f64().map(|total| format!(" of {total}")).unwrap_or_default();
            let text = progress["message"].as_str().map(pml_model::name::printable).unwrap_or_default();
            out::note(format!("{}{}{total} {text}{}", out::DIM, progress["progress"], out::RESET));
        }
    }
}

/// 20 s: how long a command waits for embeddings before it ranks tools. They are computed once; 2,000 tools take about
/// five seconds where nothing else runs.
const READING: Duration = Duration::from_secs(20);

/// Waits for embeddings, with a bar where they take long.
pub(super) async fn embed_with_bar(app: &App) {
    let progress = || match app.knowledge.embeddings.progress() {
        Some(progress) => (progress.embedded, Some(progress.embedded + progress.remaining)),
        None => (0, None),
    };
    let embedding = knowledge::embed_for(&app.knowledge, READING);
    ProgressBar::new("embedding tools").during(progress, embedding).await;
}

pub(super) async fn discover(here: &CommandContext, discover: DiscoverArgs) -> Result<ExitCode, Problem> {
    let app = here.open_app(ProcessRole::Command).await?;
    let request = DiscoverRequest {
        intent: discover.intent,
        filter: DiscoverFilter { kind: ResultKind::All, min_score: discover.min_score },
        limit: discover.limit,
        offset: discover.offset,
        detail: if discover.full { ResultDetail::Full } else { ResultDetail::Brief },
    };
    app.tools.ensure_manifests_loaded().await;
    embed_with_bar(&app).await;
    let page = flow::discover(&app, (&app.principal, None), &request, |_| true).await;
    app.close().await;
    let page = page?;
    if here.json {
        out::json(&page);
        return Ok(ExitCode::SUCCESS);
    }
    for found in &page.results {
        out::line(format!(
            "{}{}{} {}{:.2}{}",
            out::BOLD,
            // A person calls a capability by its name, not by its id.
            if found.kind == ResultKind::Capability {
                format!("capability {}", found.name)
            } else {
                found.id.clone()
            },
            out::RESET,
            out::DIM,
            found.score,
            out::RESET
        ));
        if !discover.full && !found.description.is_empty() {
            out::line(format!("  {}", pml_model::name::printable(&found.description)));
        }
        out::line(indent(&found.signature));
        if !found.also.is_empty() {
            out::line(format!("  {}the same: {}{}", out::DIM, found.also.join(", "), out::RESET));
        }
        if discover.explain {
            found
                .reasons
                .iter()
                .for_each(|reason| out::line(format!("  {}because {reason}{}", out::CYAN, out::RESET)));
        }
    }
    if page.total > page.results.len() {
        out::note(format!("{} of {}; see more with --offset and --limit", page.results.len(), page.total));
    }
    for related in page.suggestions.iter().filter(|related| related.is_likely()) {
        out::line(format!("{}see also {}: {}{}", out::DIM, related.name, related.reason, out::RESET));
    }
    page.notes.iter().for_each(out::note);
    Ok(if page.total == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
