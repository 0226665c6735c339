//! Follows runs from the terminal: waits for them, prints their progress, and resumes them.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use pml_mcp::caller::{CallerInfo, CallerMessage, new_session_number};
use pml_mcp::{Caller, Era};
use pml_model::RunId;
use pml_model::json::{empty_object, raw};
use pml_model::name::printable;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::run_output::{print_question, print_status};
use super::{CommandContext, out};
use crate::app::App;
use crate::execute::{ResumeOutcome, RunHandle};
use crate::flow;
use crate::problem::{ErrorCode, Problem};
use crate::report::RunStatus;

/// One year: in effect no limit, since a person can interrupt the command.
pub(super) const PATIENCE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Parses a run id from the command line.
pub(super) fn parse_run_argument(text: &str) -> Result<RunId, Problem> {
    RunId::parse(text).map_err(|error| Problem::new(ErrorCode::InvalidRequest, error.to_string()))
}

/// Resumes a run and follows it. Where the run was just `answered`, a gateway may have resumed it first.
pub(super) async fn resume_and_follow(
    here: &CommandContext,
    app: &Arc<App>,
    id: &RunId,
    answered: bool,
) -> Result<ExitCode, Problem> {
    let (caller, messages) = progress_caller();
    let mut showing = JoinSet::new();
    showing.spawn(print_progress(messages));
    let resumed = flow::resume(app, &app.principal, id, caller).await;
    let code = match resumed? {
        ResumeOutcome::Running(handle) => print_status(here, id, &print_and_follow(&handle).await, None),
        ResumeOutcome::Asks { question, .. } => {
            print_question(here, id, &question);
            ExitCode::FAILURE
        }
        ResumeOutcome::HeldElsewhere if answered => {
            print_status(here, id, &wait_for_other_process(app, id).await?, None)
        }
        ResumeOutcome::HeldElsewhere => {
            return Err(Problem::new(ErrorCode::Busy, format!("another process works on run `{id}`"))
                .hint(format!("`pml runs show {id}` tells how it stands")));
        }
        ResumeOutcome::Over(_) => {
            print_status(here, id, &flow::run_status(app, &app.principal, id).await?, None)
        }
    };
    showing.shutdown().await;
    Ok(code)
}

/// Waits for a run of another process; its status is polled in the database.
pub(super) async fn wait_for_other_process(app: &App, id: &RunId) -> Result<RunStatus, Problem> {
    loop {
        let standing = flow::run_status(app, &app.principal, id).await?;
        if !matches!(standing, RunStatus::Running(_) | RunStatus::Interrupted | RunStatus::Elsewhere) {
            return Ok(standing);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Prints the id of a run and waits for it.
pub(super) async fn print_and_follow(handle: &RunHandle) -> RunStatus {
    print_run_id(&handle.id);
    wait_for_end(handle).await
}

/// Prints the id of a run.
pub(super) fn print_run_id(id: &RunId) {
    out::note(format!("{}{id}{}", out::DIM, out::RESET));
}

/// Waits for a run; interrupting the command cancels the run.
pub(super) async fn wait_for_end(handle: &RunHandle) -> RunStatus {
    tokio::select! {
        standing = handle.wait(PATIENCE) => standing,
        () = super::starting::wait_for_shutdown() => {
            out::note("stopping the run");
            handle.cancel();
            handle.wait(PATIENCE).await
        }
    }
}

/// A caller that receives a program's output and progress, and cannot be asked anything.
pub(super) fn progress_caller() -> (Caller, mpsc::Receiver<CallerMessage>) {
    Caller::new(CallerInfo {
        session: new_session_number(),
        session_end: CancellationToken::new(),
        era: Era::Modern,
        capabilities: empty_object(),
        progress_token: std::io::stderr().is_terminal().then(|| raw(&"pml-execute")),
        min_log_rank: Some(0),
    })
}

/// Prints a program's output and progress.
pub(super) async fn print_progress(mut messages: mpsc::Receiver<CallerMessage>) {
    while let Some(message) = messages.recv().await {
        let CallerMessage::Notify { method, params: Some(params) } = message else { continue };
        let said: Value = serde_json::from_str(params.get()).unwrap_or_default();
        if method == "notifications/progress" {
            let total = said["total"].as_f64().map(|total| format!(" of {total}")).unwrap_or_default();
            let text = said["message"].as_str().map(printable).unwrap_or_default();
            out::note(format!("{}{}{total} {text}{}", out::DIM, said["progress"], out::RESET));
        } else {
            let colour = match said["level"].as_str() {
                Some("error") => out::BOLD_RED,
                Some("warning") => out::YELLOW,
                _ => out::CYAN,
            };
            let text = said["data"].as_str().unwrap_or_default();
            for line in text.lines() {
                out::note(format!("{colour}│{} {}", out::RESET, printable(line)));
            }
        }
    }
}
