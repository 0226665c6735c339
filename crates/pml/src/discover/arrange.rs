//! The order of results beyond their scores: deprecated tools come last, and one result stands for tools that do the same.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{RankedGroup, RankedItem};
use crate::catalogue::{ToolSnapshot, deprecated};
use crate::knowledge::ToolUseCounts;

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

/// Orders tools that do the same among themselves: the one that was called most comes first, then the one that was
/// there first. Their scores differ at most by the names of their servers, and a server that copies the tools of another
/// chooses its name.
pub(super) fn order_alike<T>(
    snapshot: &ToolSnapshot,
    uses: Option<&ToolUseCounts>,
    ranked: &mut [T],
    tool_of: impl Fn(&mut T) -> Option<&mut usize>,
) {
    let mut places: HashMap<usize, Vec<usize>> = HashMap::new();
    for (place, found) in ranked.iter_mut().enumerate() {
        if let Some(tool) = tool_of(found) {
            places.entry(snapshot.first_alike(*tool)).or_default().push(place);
        }
    }
    for alike in places.into_values().filter(|alike| alike.len() > 1) {
        let mut tools: Vec<usize> =
            alike.iter().filter_map(|place| tool_of(&mut ranked[*place]).copied()).collect();
        tools.sort_by_key(|tool| {
            let known = &snapshot.tools[*tool];
            let calls = uses.and_then(|uses| uses.get(&known.id.to_string()));
            let worked = calls.map_or(0, |uses| uses.calls.saturating_sub(uses.failures));
            (Reverse(worked), known.first_seen_at, *tool)
        });
        for (place, tool) in alike.into_iter().zip(tools) {
            if let Some(found) = tool_of(&mut ranked[place]) {
                *found = tool;
            }
        }
    }
}

/// Lets the first of tools that do the same stand for all of them.
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
