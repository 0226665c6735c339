//! The budget of speculated reads that all runs of the process share: so many at a time per server, so many a minute.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use pml_model::ServerName;

/// The shared budget.
pub(super) struct ReadBudget(Mutex<BudgetState>);

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
        Arc::new(ReadBudget(Mutex::new(state)))
    }

    /// Takes one read out of the budget of `per_server` reads of a server at a time and `per_minute` of all; `None` if it
    /// is used up.
    pub(super) fn take(
        self: &Arc<Self>,
        server: &ServerName,
        per_server: u32,
        per_minute: u32,
    ) -> Option<BudgetSlot> {
        let mut state = self.0.lock();
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

/// One read under way. It counts against the budget of its server until it is dropped.
pub(super) struct BudgetSlot {
    budget: Arc<ReadBudget>,
    server: ServerName,
}

impl Drop for BudgetSlot {
    fn drop(&mut self) {
        if let Some(under_way) = self.budget.0.lock().by_server.get_mut(&self.server) {
            *under_way = under_way.saturating_sub(1);
        }
    }
}
