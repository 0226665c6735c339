//! The usual measures for rankings, DAGs and next steps.

use std::collections::HashSet;

/// The scores of one ranking.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RankingScore {
    pub(super) ndcg_5: f64,
    pub(super) recall_10: f64,
    /// 1 where the first result is right, else 0.
    pub(super) first: f64,
}

/// The number of results of a ranking that are scored.
const DEPTH: usize = 50;

/// Scores a ranking against the right groups; any member of a group will do, and each group counts once.
pub(super) fn ranking(ranked: &[&str], groups: &[Vec<String>]) -> RankingScore {
    let mut left: Vec<Option<&Vec<String>>> = groups.iter().map(Some).collect();
    let mut places = Vec::new();
    for (place, item) in ranked.iter().take(DEPTH).enumerate() {
        let fits = |group: &&mut Option<&Vec<String>>| {
            group.is_some_and(|group| group.iter().any(|member| member == item))
        };
        if let Some(group) = left.iter_mut().find(fits) {
            places.push(place);
            *group = None;
        }
    }
    let all = groups.len().max(1);
    let gain = |place: usize| 1.0 / (2.0 + place as f64).log2();
    let ndcg = |depth: usize| {
        let found: f64 = places.iter().filter(|place| **place < depth).map(|place| gain(*place)).sum();
        found / (0..all.min(depth)).map(gain).sum::<f64>()
    };
    let recall = |depth: usize| places.iter().filter(|place| **place < depth).count() as f64 / all as f64;
    RankingScore {
        ndcg_5: ndcg(5),
        recall_10: recall(10),
        first: f64::from(u8::from(places.first() == Some(&0))),
    }
}

/// The mean of one measure.
pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, number) =
        values.into_iter().fold((0.0, 0_u32), |(sum, number), value| (sum + value, number + 1));
    if number == 0 { 0.0 } else { sum / f64::from(number) }
}

/// The F1 score of two sets: the harmonic mean of precision and recall.
pub(crate) fn f1<T: std::hash::Hash + Eq>(found: &HashSet<T>, right: &HashSet<T>) -> f64 {
    if found.is_empty() && right.is_empty() {
        return 1.0;
    }
    2.0 * found.intersection(right).count() as f64 / (found.len() + right.len()) as f64
}

/// The expected calibration error: the distance of stated probability from the observed share, over ten ranges
/// weighted by their size.
pub(super) fn calibration_error(said: &[(f64, bool)]) -> f64 {
    let mut bins = [(0.0, 0.0, 0.0); 10];
    for (likely, true_) in said {
        let bin = &mut bins[((likely * 10.0) as usize).min(9)];
        bin.0 += likely;
        bin.1 += f64::from(u8::from(*true_));
        bin.2 += 1.0;
    }
    let error = |(likely, came_true, number): &(f64, f64, f64)| {
        if *number > 0.0 { (likely - came_true).abs() } else { 0.0 }
    };
    bins.iter().map(error).sum::<f64>() / said.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(groups: &[&[&str]]) -> Vec<Vec<String>> {
        groups.iter().map(|group| group.iter().map(|item| (*item).to_owned()).collect()).collect()
    }

    #[test]
    fn a_ranking_is_measured_by_where_each_group_comes_first() {
        let score = ranking(&["x", "a", "a2", "b"], &groups(&[&["a", "a2"], &["b"], &["c"]]));
        // Found at ranks 1 and 3 of three expected; `a2` belongs to a group that was already found.
        let gain = |place: f64| 1.0 / (2.0 + place).log2();
        let expected = (gain(1.0) + gain(3.0)) / (gain(0.0) + gain(1.0) + gain(2.0));
        assert!((score.ndcg_5 - expected).abs() < 1e-12);
        assert!((score.recall_10 - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(score.first, 0.0);
        let best = ranking(&["a"], &groups(&[&["a"]]));
        assert_eq!((best.ndcg_5, best.first), (1.0, 1.0));
        assert_eq!(ranking(&[], &groups(&[&["a"]])).ndcg_5, 0.0);
    }

    #[test]
    fn sets_agree_by_what_they_share() {
        let set = |items: &[u8]| items.iter().copied().collect::<HashSet<u8>>();
        assert_eq!(f1(&set(&[]), &set(&[])), 1.0);
        assert_eq!(f1(&set(&[1]), &set(&[])), 0.0);
        assert_eq!(f1(&set(&[1, 2]), &set(&[2, 3])), 0.5);
    }

    #[test]
    fn what_is_said_is_held_against_what_comes_true() {
        assert!(calibration_error(&[(0.75, true), (0.75, true), (0.75, true), (0.75, false)]) < 1e-12);
        assert!((calibration_error(&[(0.95, false), (0.05, false)]) - 0.5).abs() < 1e-12);
    }
}
