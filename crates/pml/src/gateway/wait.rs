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

/// 45 s: how long a client waits by default. Most clients give up after a minute.
pub(super) const WAIT_MS: u64 = 45_000;
/// A program waits for a free sandbox at most this long, or as long as its client waits if that is longer.
pub(super) const TURN: Duration = Duration::from_secs(2);

/// Waits for a run of this process. Cancelling the request cancels the run.
pub(super) async fn wait_for_run(
    handle: &RunHandle,
    patience: Duration,
    request: &IncomingRequest,
) -> Result<RunStatus, Problem> {
    let standing = tokio::select! {
        standing = handle.wait(patience) => standing,
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
    request: &IncomingRequest,
    id: &RunId,
    answered: &str,
    reserved: ResumeReservation,
) -> Result<RunStatus, Problem> {
    let resumed = flow::resume(app, &request.client.principal, id, request.caller.clone()).await?;
    drop(reserved);
    match resumed {
        ResumeOutcome::Running(_) | ResumeOutcome::HeldElsewhere | ResumeOutcome::Over(_) => {
            wait_for_news(app, id, request, Some(answered)).await
        }
        ResumeOutcome::Asks { .. } => flow::run_status(app, &request.client.principal, id).await,
    }
}

/// Waits until a run is over or asks another question than `known`.
pub(super) async fn wait_for_news(
    app: &Arc<App>,
    id: &RunId,
    request: &IncomingRequest,
    known: Option<&str>,
) -> Result<RunStatus, Problem> {
    let whose = &request.client.principal;
    let until = tokio::time::Instant::now() + Duration::from_millis(WAIT_MS);
    loop {
        let left = until.saturating_duration_since(tokio::time::Instant::now());
        let standing = match flow::local_run(app, whose, id) {
            Some(handle) => tokio::select! {
                standing = handle.wait(left) => standing,
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
        if !goes_on || left.is_zero() || request.cancel.is_cancelled() {
            return Ok(standing);
        }
        // The run is in another process, or in none; the database shows its status.
        tokio::select! {
            () = tokio::time::sleep(left.min(Duration::from_millis(100))) => {}
            () = request.cancel.cancelled() => {}
        }
    }
}
