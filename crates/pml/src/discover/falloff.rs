//! Where a ranked list ends: at the point from which on the scores say that nothing helps any more.

/// A result with less than this share of the best score is of no help beside it.
const LEAST_SHARE: f64 = 0.35;
/// From this rank on, a drop by more than half from one result to the next ends the list.
const DROP: f64 = 0.5;
/// The number of results that are kept whatever the drop between them: an intent often needs two tools.
const ALWAYS: usize = 2;

/// The number of results, best first, before their scores fall off; at least one if there is any.
pub(crate) fn count_before_falloff(scores: &[f64]) -> usize {
    let Some(best) = scores.first().copied() else { return 0 };
    let ends = |(rank, pair): (usize, &[f64])| {
        let rank = rank + 1;
        (pair[1] < best * LEAST_SHARE || (rank >= ALWAYS && pair[1] < pair[0] * DROP)).then_some(rank)
    };
    scores.windows(2).enumerate().find_map(ends).unwrap_or(scores.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_ends_where_its_scores_fall_off() {
        let cases: [(&[f64], usize); 7] = [
            (&[], 0),
            (&[0.02], 1),
            (&[0.9, 0.1, 0.09], 1),
            (&[0.9, 0.8, 0.3, 0.29], 2),
            (&[0.9, 0.8, 0.7, 0.6], 4),
            (&[0.3, 0.29, 0.28, 0.12], 3),
            (&[0.9, 0.44, 0.4, 0.36], 4),
        ];
        for (scores, kept) in cases {
            assert_eq!(count_before_falloff(scores), kept, "{scores:?}");
        }
    }
}
