//! The client that waits for a run, and the messages it receives meanwhile.

use std::time::{Duration, Instant};

use pml_mcp::Caller;
use pml_model::json::raw;
use pml_sandbox::{ConsoleLevel, WorkerEvent};
use tokio::sync::watch;

use crate::plan::Plan;
use crate::report::{RunProgress, RunStatus};

/// 100 ms: the shortest interval between two progress notifications to a client.
const BETWEEN_PROGRESS: Duration = Duration::from_millis(100);

/// The client that requested the run, and the handles of this process that watch it.
pub(super) struct RunClient {
    pub(super) caller: Caller,
    status: watch::Sender<RunStatus>,
    last_progress_at: Option<Instant>,
}

impl RunClient {
    pub(super) fn new(caller: Caller, status: watch::Sender<RunStatus>) -> RunClient {
        RunClient { caller, status, last_progress_at: None }
    }

    /// Publishes the status of the run.
    pub(super) fn set_status(&self, status: RunStatus) {
        self.status.send_replace(status);
    }

    /// Forwards a line that a program prints.
    pub(super) fn print(&self, level: ConsoleLevel, text: &str) {
        let level = match level {
            ConsoleLevel::Debug => "debug",
            ConsoleLevel::Log | ConsoleLevel::Info => "info",
            ConsoleLevel::Warn => "warning",
            ConsoleLevel::Error => "error",
        };
        self.caller.forward_log(&raw(&serde_json::json!({ "level": level, "logger": "pml", "data": text })));
    }

    /// Forwards the progress of the run, at most once per interval. Whether it was due.
    pub(super) fn progress(&mut self, plan: &Plan, progress: &RunProgress) -> bool {
        let now = Instant::now();
        if self.last_progress_at.is_some_and(|last| now - last < BETWEEN_PROGRESS) {
            return false;
        }
        self.last_progress_at = Some(now);
        // The tool of a direct call reports its own progress.
        if self.caller.wants_progress() && !plan.is_direct() {
            self.caller.forward_progress(&raw(&progress.for_client()));
        }
        true
    }
}

/// The message for the client in an event of a program, if there is one.
pub(super) enum ClientNotice<'e> {
    Print(ConsoleLevel, &'e str),
    Progress,
}

impl<'e> ClientNotice<'e> {
    pub(super) fn of(seen: &'e WorkerEvent) -> Option<ClientNotice<'e>> {
        match seen {
            WorkerEvent::Console { level, text, .. } => Some(ClientNotice::Print(*level, text)),
            WorkerEvent::Progress { .. } => Some(ClientNotice::Progress),
            _ => None,
        }
    }
}
