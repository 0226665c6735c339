//! The weights of ranking, in one place, so that each can be measured with and without.
//!
//! They are few on purpose: a weight stays only if leaving it out costs rank quality on data sets that it was not fitted
//! to. `pml bench ablation` prints what each is worth.

/// Weights of ranking. All scores are in standard deviations over the catalogue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankWeights {
    /// Best part, relative to the whole of a request of one part. The more parts there are, the less the whole says
    /// about each: its weight falls with the square root of their number.
    pub part: f32,
    /// Gain of an item when the best part of the request contains every word of its name.
    pub name: f32,
    /// Gain when the request contains every word of its server's name.
    pub server: f32,
    /// Two adjacent words of the request that are adjacent in an item, relative to their usual weight.
    pub pair: f32,
    /// A word that the request is only related to, relative to one that it has.
    pub related: f32,
    /// A standard deviation of vector scores, relative to one of word scores: this, plus `meaning_of_few` divided by the
    /// number of words of the request, since few words say little.
    pub meaning: f32,
    /// See `meaning`.
    pub meaning_of_few: f32,
    /// Share of an item's usual similarity that is subtracted for a request of one part.
    pub usual: f32,
    /// Factor on a part's weight each time an item has answered it.
    pub answered: f32,
    /// Factor on a word's weight each time an item has had it. Applied only with vectors: by words alone, an item with
    /// the other words of a request is mostly the wrong one.
    pub said: f32,
    /// Whether the peak of a part that resembles no item is raised halfway to that of the clearest part.
    pub levels_parts: bool,
}

impl Default for RankWeights {
    fn default() -> RankWeights {
        RankWeights {
            part: 1.5,
            name: 0.8,
            server: 0.48,
            pair: 1.0,
            related: 0.5,
            meaning: 0.6,
            meaning_of_few: 20.0,
            usual: 0.5,
            answered: 0.5,
            said: 0.9,
            levels_parts: true,
        }
    }
}
