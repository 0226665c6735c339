//! How much work one analysis may do, and how shared parts of values are visited once.
//!
//! Values share their parts: forty lines can make one that would have more parts than there is memory if it were
//! written out. Code that traverses values counts here what it visits. When nothing is left, everything returns at once
//! with whatever it has, and the program is refused: a result computed after that point is never used.

use std::cell::Cell;

use oxc_span::Span;
use rustc_hash::FxHashSet;

/// How many expressions, values and changes are looked at or copied for one program. The largest ordinary programs need
/// a tenth of this.
const MAX_WORK: u32 = 3_000_000;
/// So many parts of a value are gone through without remembering which.
const UNREMEMBERED: u32 = 32;

/// The work an analysis may still do. It is counted through shared references (`Cell`), so that reading values, which
/// borrows them, can be counted too.
#[derive(Debug)]
pub(crate) struct WorkBudget {
    left: Cell<u32>,
    /// Where the analysis was when it noticed that nothing is left.
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

    /// Whether the budget is spent; the first place this is asked for after that is remembered. Whoever asks returns at
    /// once if it is.
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

/// The parts of a value that have been gone through, by their place in memory or their number. What is remembered must
/// stay where it is.
#[derive(Debug, Default)]
pub(crate) struct VisitedParts {
    visits: u32,
    places: FxHashSet<(usize, usize)>,
}

impl VisitedParts {
    /// Whether a part has to be gone through. The first few always have: most values are small.
    pub(crate) fn is_first_visit(&mut self, place: usize, how: usize) -> bool {
        self.visits = self.visits.saturating_add(1);
        self.visits <= UNREMEMBERED || self.places.insert((place, how))
    }

    /// One more value was looked at.
    pub(crate) fn count_visit(&mut self) {
        self.visits = self.visits.saturating_add(1);
    }

    /// How many values were looked at.
    pub(crate) fn visit_count(&self) -> usize {
        self.visits as usize
    }
}
