//! How much each tool's speculation has earned.
//!
//! Every speculated read that the program asked for is a hit; every other one is waste. Together they are a Beta
//! posterior of the share of hits, which moves the confidence that a read needs to be made ahead: a tool whose reads
//! are often wasted needs more, one whose reads are used needs less.

/// The weight of the preset, in reads: after this many, hits and waste count as much as the preset.
const PRESET_WEIGHT: f64 = 20.0;
/// The least confidence that any read needs.
pub(crate) const LEAST_CONFIDENCE: f64 = 0.40;
/// The most that a read may need.
const MOST: f64 = 0.95;
/// The reads that count: older ones fade, so that a tool that changed is judged by what it is now.
const MEMORY: f64 = 200.0;
/// How much waste fades with each read that was not made for it, so that a tool is tried again some time.
const FADING: f64 = 0.98;

/// What came of the speculated reads of one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct SpeculationRecord {
    hits: f64,
    waste: f64,
}

impl SpeculationRecord {
    /// A record of earlier counts.
    pub(crate) fn new(hits: u64, waste: u64) -> SpeculationRecord {
        #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
        let mut record = SpeculationRecord { hits: hits as f64, waste: waste as f64 };
        record.fade();
        record
    }

    /// Counts a read that the program asked for.
    pub(crate) fn add_hit(&mut self) {
        self.hits += 1.0;
        self.fade();
    }

    /// Counts reads that nobody asked for.
    pub(crate) fn add_waste(&mut self, reads: u32) {
        self.waste += f64::from(reads);
        self.fade();
    }

    fn fade(&mut self) {
        let total = self.hits + self.waste;
        if total > MEMORY {
            self.hits *= MEMORY / total;
            self.waste *= MEMORY / total;
        }
    }

    /// The confidence that a read needs, given that of the preset.
    pub(crate) fn threshold(&self, preset: f64) -> f64 {
        let reads = PRESET_WEIGHT + self.hits + self.waste;
        ((preset * reads - self.hits) / PRESET_WEIGHT).clamp(LEAST_CONFIDENCE, MOST)
    }

    /// Whether a read with this confidence is made ahead.
    pub(crate) fn admits(&mut self, confidence: f64, preset: f64) -> bool {
        let admitted = confidence >= self.threshold(preset);
        if !admitted {
            self.waste *= FADING;
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BALANCED: f64 = 0.70;

    fn record(hits: u64, waste: u64) -> SpeculationRecord {
        SpeculationRecord::new(hits, waste)
    }

    #[test]
    fn a_new_tool_has_the_threshold_of_the_preset() {
        assert!((record(0, 0).threshold(BALANCED) - BALANCED).abs() < 1e-9);
    }

    #[test]
    fn hits_lower_the_threshold_and_waste_raises_it_within_bounds() {
        assert!(record(20, 0).threshold(BALANCED) < BALANCED);
        assert!(record(0, 5).threshold(BALANCED) > BALANCED);
        assert!((record(1_000, 0).threshold(BALANCED) - LEAST_CONFIDENCE).abs() < 1e-9);
        assert!((record(0, 1_000).threshold(BALANCED) - MOST).abs() < 1e-9);
    }

    #[test]
    fn a_tool_whose_reads_are_wasted_is_left_alone_and_tried_again_later() {
        let mut wasted = record(0, 0);
        wasted.add_waste(20);
        assert!(!wasted.admits(0.9, BALANCED));
        let tries = (0..200).position(|_| wasted.admits(0.9, BALANCED));
        assert!(tries.is_some_and(|tries| tries > 10), "{tries:?}");
    }

    #[test]
    fn an_undecided_branch_is_admitted_once_the_tool_has_earned_it() {
        let mut tool = record(0, 0);
        assert!(!tool.admits(0.5, BALANCED));
        (0..20).for_each(|_| tool.add_hit());
        assert!(tool.admits(0.5, BALANCED));
    }
}
