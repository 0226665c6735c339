//! The clock of a program: it stands still between deliveries, so that a replay sees the same times.

/// The program's clock, and how many of its deliveries the program has taken.
#[derive(Debug)]
pub(super) struct ProgramClock {
    /// The time at the start and after each delivery.
    times: Vec<i64>,
    /// The number of deliveries after which the program last had nothing left to do.
    taken: Option<u32>,
}

impl ProgramClock {
    pub(super) fn new(start: i64) -> ProgramClock {
        ProgramClock { times: vec![start], taken: None }
    }

    /// When the program started.
    pub(super) fn start(&self) -> i64 {
        self.times[0]
    }

    /// The number of deliveries made to the program.
    pub(super) fn delivered(&self) -> u32 {
        u32::try_from(self.times.len() - 1).unwrap_or(u32::MAX)
    }

    pub(super) fn on_delivery(&mut self, at: i64) {
        self.times.push(at);
    }

    /// Notes that the program has nothing left to do after `taken` deliveries.
    pub(super) fn on_quiet(&mut self, taken: u32) {
        self.taken = Some(taken);
    }

    /// Whether the program has nothing left to do before the next delivery.
    pub(super) fn is_quiet(&self) -> bool {
        self.taken == Some(self.delivered())
    }

    /// The time that the program sees now.
    pub(super) fn now(&self) -> i64 {
        let step = self.taken.map_or(0, |taken| taken as usize + 1).min(self.times.len() - 1);
        self.times[step]
    }
}
