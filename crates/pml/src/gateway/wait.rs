//! Waits for runs, for at most as long as clients wait.

use std::sync::Arc;
use std::time::Duration;

use pml_mcp::server::IncomingRequest;
use pml_model::RunId;

use crate::app::App;
use crate::execute::{ResumeOutcome, ResumeReservation, RunHandle};
use crate::flow;
use crate::problem::Problem;
use crate::report::RunStatus;

/// 1 d: longer than any question of a server to the client may stay open.
const LONGEST_QUESTION: Duration = Duration::from_secs(24 * 3600);
/// 12 s: how long a request with a progress token stays silent. Clients that go by progress give up after 30 s or more.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(12);
/// A program waits for a free sandbox at most this long, or as long as its client waits if that is longer.
pub(super) const TURN: Duration = Duration::from_secs(2);

/// Waits for a run of this process. Cancelling the request cancels the run.
pub(super) async fn wait_for_run(
    handle: &RunHandle,
    patience: Duration,
    request: &IncomingRequest,
) -> Result<RunStatus, Problem> {
    let standing = tokio::select! {
        standing = handle.wait(LONGEST_QUESTION) => standing,
        // While a server's question is open, the client cannot be told anything else.
        () = request.caller.wait_while_answering(patience) => handle.status(),
        () = request.cancel.cancelled() => {
            handle.cancel();
            handle.wait(Duration::from_secs(10)).await
        }
    };
    if let RunStatus::Running(_) | RunStatus::Interrupted = standing {
        handle.wait_until_stored().await?;
    }
    Ok(standing)
}

/// Resumes a run whose question `answered` was answered, unless another process did, and waits for it.
pub(super) async fn resume_and_wait(
    app: &Arc<App>,
    (request, patience): (&IncomingRequest, Duration),
    id: &RunId,
    answered: &str,
    reserved: ResumeReservation,
) -> Result<RunStatus, Problem> {
    let resumed = flow::resume(app, &request.client.principal, id, request.caller.clone()).await?;
    drop(reserved);
    match resumed {
        ResumeOutcome::Running(_) | ResumeOutcome::HeldElsewhere | ResumeOutcome::Over(_) => {
            wait_for_news(app, id, (request, patience), Some(answered)).await
        }
        ResumeOutcome::Asks { .. } => flow::run_status(app, &request.client.principal, id).await,
    }
}

/// Waits until a run is over or asks another question than `known`.
pub(super) async fn wait_for_news(
    app: &Arc<App>,
    id: &RunId,
    (request, patience): (&IncomingRequest, Duration),
    known: Option<&str>,
) -> Result<RunStatus, Problem> {
    let whose = &request.client.principal;
    let time_is_up = request.caller.wait_while_answering(patience);
    tokio::pin!(time_is_up);
    let mut in_time = true;
    loop {
        let standing = match flow::local_run(app, whose, id) {
            Some(handle) if !in_time => handle.status(),
            Some(handle) => tokio::select! {
                standing = handle.wait(LONGEST_QUESTION) => standing,
                () = &mut time_is_up => {
                    in_time = false;
                    handle.status()
                }
                () = request.cancel.cancelled() => handle.status(),
            },
            None => flow::run_status(app, whose, id).await?,
        };
        let goes_on = match &standing {
            RunStatus::Running(_) | RunStatus::Interrupted | RunStatus::Elsewhere => true,
            // The same question may still be answered through another channel.
            RunStatus::Waiting { question: Some((name, _)), .. } => known == Some(name),
            RunStatus::Waiting { question: None, .. } | RunStatus::Finished(_) => false,
        };
        if !goes_on || !in_time || request.cancel.is_cancelled() {
            return Ok(standing);
        }
        // The run is in another process, or in none; the database shows its status.
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
            () = &mut time_is_up => in_time = false,
            () = request.cancel.cancelled() => {}
        }
    }
}
