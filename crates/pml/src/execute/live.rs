//! What a run of this process has printed and decided so far. Its driver tells it when asked, so that a run that nobody
//! looks at does nothing for it. What other processes' runs print is known once it is in their report.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::RunHandle;
use crate::report::{ConsoleLine, PathDecision};

/// The requests that may wait for one driver: it answers each as soon as it waits for something itself.
const QUEUE: usize = 16;
/// 1 s: how long a driver that is busy, with the database above all, is waited for. Whoever looks asks again soon.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a run has shown of itself so far.
#[derive(Debug)]
pub struct LiveOutput {
    /// The lines that the program printed.
    pub console: Vec<ConsoleLine>,
    /// When each line was printed.
    pub console_at: Vec<i64>,
    /// Whether the program printed more than is kept.
    pub console_cut: bool,
    /// The decisions that the program made.
    pub decisions: Vec<PathDecision>,
}

/// Asks the driver of a run.
#[derive(Debug, Clone)]
pub(super) struct LiveRequests(mpsc::Sender<oneshot::Sender<LiveOutput>>);

/// The requests to the driver of a run.
#[derive(Debug)]
pub(super) struct LiveAnswers(mpsc::Receiver<oneshot::Sender<LiveOutput>>);

pub(super) fn channel() -> (LiveRequests, LiveAnswers) {
    let (ask, asked) = mpsc::channel(QUEUE);
    (LiveRequests(ask), LiveAnswers(asked))
}

impl LiveAnswers {
    /// The next request; `None` once nobody can ask any more.
    pub(super) async fn next(&mut self) -> Option<oneshot::Sender<LiveOutput>> {
        self.0.recv().await
    }
}

impl RunHandle {
    /// What the run has shown so far; `None` if its driver is gone or too busy to tell.
    pub async fn live_output(&self) -> Option<LiveOutput> {
        let (tell, told) = oneshot::channel();
        let asked = async {
            self.live.0.send(tell).await.ok()?;
            told.await.ok()
        };
        tokio::time::timeout(PATIENCE, asked).await.ok().flatten()
    }
}
