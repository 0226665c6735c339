//! Where a ranked list ends: at the point from which on the scores say that nothing helps any more.

/// A result with less than this share of the best score is of no help beside it. An intent of several steps needs
/// tools that serve it in part only: in it they score a third of the best or more.
const LEAST_SHARE: f64 = 0.3;
/// After `ALWAYS` results, a drop to less than this share from one result to the next ends the list.
const DROP: f64 = 0.5;
/// The number of results that a drop does not end.
const ALWAYS: usize = 3;

/// The number of results, best first, before their scores fall off; at least one if there is any.
pub(crate) fn count_before_falloff(scores: &[f64]) -> usize {
    let Some(best) = scores.first().copied() else { return 0 };
    let ends = |(place, pair): (usize, &[f64])| {
        let count = place + 1;
        (pair[1] < best * LEAST_SHARE || (count >= ALWAYS && pair[1] < pair[0] * DROP)).then_some(count)
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
            (&[0.9, 0.8, 0.3, 0.14], 3),
            (&[0.9, 0.8, 0.7, 0.6], 4),
            (&[0.3, 0.29, 0.28, 0.12], 3),
            (&[0.9, 0.32, 0.3, 0.2], 3),
        ];
        for (scores, kept) in cases {
            assert_eq!(count_before_falloff(scores), kept, "{scores:?}");
        }
    }
}
