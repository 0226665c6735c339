//! Whoever waits for one run: what it hears meanwhile.

use std::time::{Duration, Instant};

use pml_mcp::Caller;
use pml_model::json::raw;
use pml_sandbox::{Event as Seen, Level};
use tokio::sync::watch;

use crate::plan::Plan;
use crate::report::{Progress, Standing};

/// How often a client hears of progress at most.
const BETWEEN_PROGRESS: Duration = Duration::from_millis(100);

/// The client that asked for the run, and the handles of this process that watch it.
pub(super) struct Client {
    pub(super) caller: Caller,
    status: watch::Sender<Standing>,
    last_progress_at: Option<Instant>,
}

impl Client {
    pub(super) fn new(caller: Caller, status: watch::Sender<Standing>) -> Client {
        Client { caller, status, last_progress_at: None }
    }

    /// Tells those who watch how the run stands.
    pub(super) fn set_status(&self, status: Standing) {
        self.status.send_replace(status);
    }

    /// Passes on what a program prints.
    pub(super) fn print(&self, level: Level, text: &str) {
        let level = match level {
            Level::Debug => "debug",
            Level::Log | Level::Info => "info",
            Level::Warn => "warning",
            Level::Error => "error",
        };
        self.caller.log(&raw(&serde_json::json!({ "level": level, "logger": "pml", "data": text })));
    }

    /// Passes on how far the run has come, now and then; says whether it was time.
    pub(super) fn progress(&mut self, plan: &Plan, progress: &Progress) -> bool {
        let now = Instant::now();
        if self.last_progress_at.is_some_and(|last| now - last < BETWEEN_PROGRESS) {
            return false;
        }
        self.last_progress_at = Some(now);
        // Of a direct call the tool tells how far it is.
        if self.caller.wants_progress() && !plan.is_direct() {
            self.caller.progress(&raw(&progress.for_client()));
        }
        true
    }
}

/// Whether an event of a program is something a client hears of, and what.
pub(super) enum Audible<'e> {
    Print(Level, &'e str),
    Progress,
}

impl<'e> Audible<'e> {
    pub(super) fn of(seen: &'e Seen) -> Option<Audible<'e>> {
        match seen {
            Seen::Console { level, text, .. } => Some(Audible::Print(*level, text)),
            Seen::Progress { .. } => Some(Audible::Progress),
            _ => None,
        }
    }
}
