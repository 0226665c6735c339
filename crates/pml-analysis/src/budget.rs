//! Work budget of an analysis, and a guard against visiting shared parts of values twice.
//!
//! Values share their parts: forty lines can make one with more parts than fit into memory when written out. Code that
//! traverses values spends budget for what it visits. When the budget is spent, everything returns at once with what it
//! has, and the program is refused: a result computed after that is never used.

use std::cell::Cell;

use oxc_span::Span;
use rustc_hash::FxHashSet;

/// Maximum number of expressions, values and changes that are visited or copied for one program. The largest ordinary
/// programs need a tenth of this.
const MAX_WORK: u32 = 3_000_000;
/// Number of parts of a value that are visited without recording them.
const UNREMEMBERED: u32 = 32;

/// Remaining work of an analysis. It is counted through shared references (`Cell`), so that reads, which borrow the
/// values, can be counted too.
#[derive(Debug)]
pub(crate) struct WorkBudget {
    left: Cell<u32>,
    /// Where the analysis was when it noticed that the budget is spent.
    gave_up_at: Cell<Option<Span>>,
}

impl Default for WorkBudget {
    fn default() -> WorkBudget {
        WorkBudget { left: Cell::new(MAX_WORK), gave_up_at: Cell::new(None) }
    }
}

impl WorkBudget {
    pub(crate) fn spend(&self, amount: usize) {
        let amount = u32::try_from(amount).unwrap_or(u32::MAX);
        self.left.set(self.left.get().saturating_sub(amount));
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.left.get() == 0
    }

    /// Whether the budget is spent; records the first `at` after that. The caller must then return at once.
    pub(crate) fn is_spent_at(&self, at: Span) -> bool {
        let spent = self.is_spent();
        if spent && self.gave_up_at.get().is_none() {
            self.gave_up_at.set(Some(at));
        }
        spent
    }

    pub(crate) fn gave_up_at(&self) -> Option<Span> {
        self.gave_up_at.get()
    }
}

/// Parts of a value that have been visited, by address or number. Recorded parts must not move.
#[derive(Debug, Default)]
pub(crate) struct VisitedParts {
    visits: u32,
    places: FxHashSet<(usize, usize)>,
}

impl VisitedParts {
    /// Whether a part has to be visited. True for the first few parts without a check: most values are small.
    pub(crate) fn is_first_visit(&mut self, place: usize, how: usize) -> bool {
        self.visits = self.visits.saturating_add(1);
        self.visits <= UNREMEMBERED || self.places.insert((place, how))
    }

    /// Counts one more visited value.
    pub(crate) fn count_visit(&mut self) {
        self.visits = self.visits.saturating_add(1);
    }

    /// Number of visited values.
    pub(crate) fn visit_count(&self) -> usize {
        self.visits as usize
    }
}
