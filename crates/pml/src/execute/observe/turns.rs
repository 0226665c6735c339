//! When things happen in a run: after how many deliveries, and at which time.

use std::collections::VecDeque;

use crate::execute::delivery::RunDelivery;
use crate::trace::TurnTime;

/// The deliveries that a run has received.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The number of deliveries before the events that the program reports now.
    current: u64,
    /// The times of the deliveries.
    delivered_at: Vec<i64>,
}

impl Turns {
    /// Adds a delivery and returns the turn it begins.
    pub(super) fn on_delivery(&mut self, at: i64) -> TurnTime {
        self.delivered_at.push(at);
        self.after_all(at)
    }

    /// Notes that the program has nothing left to do after `taken` deliveries.
    pub(super) fn on_quiet(&mut self, taken: u32) {
        self.current = u64::from(taken) + 1;
    }

    /// The turn of an event that the program reports.
    pub(super) fn current(&self, at: i64) -> TurnTime {
        TurnTime { turn: self.current, at }
    }

    /// The turn after all deliveries so far.
    pub(super) fn after_all(&self, at: i64) -> TurnTime {
        TurnTime { turn: self.delivered_at.len() as u64, at }
    }

    /// The turn at the time `at`, which may be long past.
    pub(super) fn at(&self, at: i64) -> TurnTime {
        TurnTime { turn: turn_at(&self.delivered_at, at), at }
    }
}

/// The number of deliveries up to the time `at`.
pub(super) fn turn_at(delivered_at: &[i64], at: i64) -> u64 {
    delivered_at.partition_point(|delivered| *delivered <= at) as u64
}

/// The recorded deliveries on their way to a program that is being replayed.
#[derive(Debug, Default)]
pub(super) struct RepeatedDeliveries {
    expected: VecDeque<(i64, RunDelivery)>,
    /// The number of deliveries that the program has taken again.
    taken: u32,
    /// Whether the program has run until it had nothing left to do.
    has_rested: bool,
}

impl RepeatedDeliveries {
    /// Announces a delivery that the program will receive again.
    pub(super) fn expect(&mut self, what: RunDelivery, at: i64) {
        self.expected.push_back((at, what));
    }

    /// The next delivery of the first `taken` ones, which the program has taken.
    pub(super) fn next_taken(&mut self, taken: u32) -> Option<(i64, RunDelivery)> {
        let next = (self.taken < taken).then(|| self.expected.pop_front()).flatten()?;
        self.taken += 1;
        Some(next)
    }

    /// Notes that the program has nothing left to do for now.
    pub(super) fn on_quiet(&mut self) {
        self.has_rested = true;
    }

    /// The time of an event of a program that started at `start`, while it is being replayed: that of the delivery the
    /// event followed.
    pub(super) fn time_of_event(&self, start: i64) -> Option<i64> {
        let (next, _) = self.expected.front()?;
        Some(if self.has_rested { *next } else { start })
    }
}
