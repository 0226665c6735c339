//! The budget of speculated reads that all runs of the process share: so many at a time per server, so many a minute; and
//! how many each run has made.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pml_model::{RunId, ServerName};
use tokio::sync::watch;

/// The shared budget.
pub(super) struct ReadBudget {
    state: Mutex<BudgetState>,
    /// Changes whenever a read has ended.
    ended: watch::Sender<()>,
}

struct BudgetState {
    /// The reads under way, by server.
    by_server: HashMap<ServerName, u32>,
    /// The reads that may still be made now; it fills up over a minute.
    left: f64,
    filled: Instant,
}

impl ReadBudget {
    pub(super) fn new() -> Arc<ReadBudget> {
        let state = BudgetState { by_server: HashMap::new(), left: f64::MAX, filled: Instant::now() };
        Arc::new(ReadBudget { state: Mutex::new(state), ended: watch::Sender::default() })
    }

    /// Changes whenever a read has ended, so that there may be room for another.
    pub(super) fn room_returns(&self) -> watch::Receiver<()> {
        self.ended.subscribe()
    }

    /// Takes one read out of the budget of `per_server` reads of a server at a time and `per_minute` of all; `None` if it
    /// is used up.
    pub(super) fn take(
        self: &Arc<Self>,
        server: &ServerName,
        per_server: u32,
        per_minute: u32,
    ) -> Option<BudgetSlot> {
        let mut state = self.state.lock();
        let now = Instant::now();
        let per_minute = f64::from(per_minute);
        let refill = now.duration_since(state.filled).as_secs_f64() * per_minute / 60.0;
        state.left = (state.left + refill).min(per_minute);
        state.filled = now;
        let under_way = state.by_server.get(server).copied().unwrap_or_default();
        if under_way >= per_server || state.left < 1.0 {
            return None;
        }
        state.by_server.insert(server.clone(), under_way + 1);
        state.left -= 1.0;
        Some(BudgetSlot { budget: Arc::clone(self), server: server.clone() })
    }
}

/// 1 h: how long the reads of a run count after the last of them. A run that waits longer has its whole budget again.
const COUNTED_FOR: Duration = Duration::from_secs(60 * 60);

/// How many reads were made ahead of each run, over all its pauses.
#[derive(Default)]
pub(super) struct RunCounts(Mutex<HashMap<RunId, RunCount>>);

struct RunCount {
    reads: u32,
    latest: Instant,
}

impl RunCounts {
    pub(super) fn get(&self, run: &RunId) -> u32 {
        self.0.lock().get(run).map_or(0, |count| count.reads)
    }

    pub(super) fn add_one(&self, run: &RunId) {
        let mut counts = self.0.lock();
        let now = Instant::now();
        let count = counts.entry(run.clone()).or_insert(RunCount { reads: 0, latest: now });
        *count = RunCount { reads: count.reads + 1, latest: now };
    }

    pub(super) fn remove(&self, run: &RunId) {
        self.0.lock().remove(run);
    }

    pub(super) fn remove_old(&self) {
        self.0.lock().retain(|_, count| count.latest.elapsed() < COUNTED_FOR);
    }
}

/// One read under way. It counts against the budget of its server until it is dropped.
pub(super) struct BudgetSlot {
    budget: Arc<ReadBudget>,
    server: ServerName,
}

impl Drop for BudgetSlot {
    fn drop(&mut self) {
        if let Some(under_way) = self.budget.state.lock().by_server.get_mut(&self.server) {
            *under_way = under_way.saturating_sub(1);
        }
        self.budget.ended.send_replace(());
    }
}
