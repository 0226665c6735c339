//! What speaks for something or against it, whatever the request: whether it works, and what it hangs together with.

/// How much it can add that something hangs together with what was just used.
const CLOSE: f64 = 0.5;

/// What speaks for something or against it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prior {
    /// How much of what it seems to promise it keeps.
    pub(crate) works: f64,
    /// How close it is to what was just used.
    pub(crate) close: f64,
}

impl Default for Prior {
    fn default() -> Prior {
        Prior { works: 1.0, close: 0.0 }
    }
}

impl Prior {
    /// How likely something is wanted that is so likely by the request alone. What hardly has to do with the request stays
    /// where it is, and what often fails is lifted the less.
    pub(crate) fn apply(self, score: f64) -> f64 {
        let score = score * self.works;
        score + (1.0 - score) * score.sqrt() * CLOSE * self.close * self.works
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_just_used_lifts_what_fits_and_nothing_else() {
        let close = Prior { close: 1.0, ..Prior::default() };
        assert!(close.apply(0.4) > 0.5 && close.apply(0.4) < 0.7);
        assert!(close.apply(0.001) < 0.05);
        assert!((0.0..=1.0).contains(&close.apply(1.0)));
        assert!((Prior::default().apply(0.4) - 0.4).abs() < 1e-12);
    }

    #[test]
    fn what_fails_sinks_and_is_not_lifted_over_what_works() {
        let failing = Prior { works: 0.5, close: 1.0 };
        assert!(failing.apply(0.6) < Prior::default().apply(0.4));
        assert!(Prior { works: 0.0, close: 1.0 }.apply(0.9) < 1e-12);
    }
}
