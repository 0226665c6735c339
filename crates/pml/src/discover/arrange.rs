//! The order of results beyond their scores: deprecated tools come last, and one result stands for tools that do the same.

use std::collections::HashMap;

use super::{RankedGroup, RankedItem};
use crate::catalogue::{ToolSnapshot, deprecated};

/// Puts deprecated tools last, unless no other result is nearly as probable: a deprecated tool is better than none.
/// Scores stay in order.
pub(super) fn deprecated_last<'c>(
    snapshot: &ToolSnapshot,
    ranked: Vec<(f64, RankedItem<'c>)>,
) -> Vec<(f64, RankedItem<'c>)> {
    let is_deprecated = |(_, item): &(f64, RankedItem<'_>)| match item {
        RankedItem::Tool(item) => snapshot.is_deprecated(*item),
        RankedItem::Capability(_) => false,
    };
    let (last, mut kept): (Vec<_>, Vec<_>) = ranked.into_iter().partition(is_deprecated);
    let best = kept.first().map_or(0.0, |(score, _)| *score);
    let lowest = kept.last().map_or(1.0, |(score, _)| *score);
    kept.extend(last.into_iter().map(|(score, item)| {
        let score = score * deprecated::LEFT;
        (if score > best { score } else { score.min(lowest) }, item)
    }));
    // Stable: at equal scores a deprecated tool stays behind.
    kept.sort_by(|one, other| other.0.total_cmp(&one.0));
    kept
}

/// Lets the best of tools that do the same stand for all of them.
pub(super) fn group_alike<'c>(
    snapshot: &ToolSnapshot,
    ranked: Vec<(f64, RankedItem<'c>)>,
) -> Vec<RankedGroup<'c>> {
    let mut groups: Vec<RankedGroup<'c>> = Vec::with_capacity(ranked.len());
    let mut places: HashMap<usize, usize> = HashMap::with_capacity(ranked.len());
    for (score, item) in ranked {
        if let RankedItem::Tool(tool) = item {
            let place = *places.entry(snapshot.first_alike(tool)).or_insert(groups.len());
            if let Some(group) = groups.get_mut(place) {
                group.also.push(tool);
                continue;
            }
        }
        groups.push(RankedGroup { score, item, also: Vec::new() });
    }
    groups
}
