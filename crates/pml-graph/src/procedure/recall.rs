//! What is believed about a request: how likely each tool and each link is part of what serves it.

use std::collections::HashMap;

use super::Request;
use super::kernel::{self, Near};
use super::memory::{Match, Memory};
use super::order::Order;
use crate::linear::sigmoid;

/// How far what the catalogue offers counts beside what traces say.
const CATALOGUE: f32 = 0.7;

/// What turns evidence for a tool, which is about 1 where all agree on it, into a probability. These two
/// came out alike for a hundred traces and for thousands.
const TOOL_SLOPE: f32 = 10.5;
const TOOL_OFFSET: f32 = -5.3;

/// What the votes for a link add to the chance that both tools are used in that order.
const LINK_SLOPE: f32 = 4.0;
const LINK_OFFSET: f32 = -1.0;

/// That chance is a product of dependent things, so it is a little too small.
const DEPENDENCE: f32 = 0.8;

/// How many tools are thought about together.
const LIKELIEST: usize = 8;

/// Beliefs about one request.
pub(crate) struct Recall<'m> {
    pub(crate) memory: &'m Memory,
    /// The nearest traces, nearest first.
    pub(super) near: Vec<Near>,
    /// Every tool for which there is any evidence, likeliest first.
    tools: Vec<u32>,
    chances: HashMap<u32, f32>,
    votes: HashMap<(u32, u32), f32>,
    /// What the catalogue alone says of a tool.
    offered: HashMap<u32, f32>,
    order: Order<'m>,
    /// How likely it is that nothing is linked.
    pub(super) unlinked: f32,
}

impl<'m> Recall<'m> {
    /// Asks the memory about `request`.
    pub(crate) fn new(memory: &'m Memory, request: &Request<'_>) -> Recall<'m> {
        let order = Order::new(memory, request.intent);
        Recall::by(memory, request, kernel::nearest(memory, request), order)
    }

    /// What is believed where no earlier intent is asked.
    pub(super) fn unaided(memory: &'m Memory, request: &Request<'_>) -> Recall<'m> {
        Recall::by(memory, request, Vec::new(), Order::unaided(memory, request.intent))
    }

    fn by(memory: &'m Memory, request: &Request<'_>, near: Vec<Near>, order: Order<'m>) -> Recall<'m> {
        let evidence = evidence(memory, &near, request.matches);
        let mut tools: Vec<u32> = evidence.keys().copied().collect();
        tools.sort_unstable_by(|a, b| evidence[b].total_cmp(&evidence[a]).then(a.cmp(b)));
        let chance = |evidence: f32| sigmoid(TOOL_SLOPE * evidence + TOOL_OFFSET);
        let chances = evidence.into_iter().map(|(tool, evidence)| (tool, chance(evidence))).collect();
        let mut votes = HashMap::new();
        let (mut unlinked, mut all) = (0.0, 0.0);
        for near in &near {
            let links = memory.traces[near.trace].graph.distinct_links();
            all += near.weight.max(0.0);
            unlinked += if links.is_empty() { near.weight.max(0.0) } else { 0.0 };
            for link in links {
                *votes.entry(link).or_default() += near.weight;
            }
        }
        let unlinked = if all > 0.0 { unlinked / all } else { 0.0 };
        let offered = request.matches.iter().map(|found| (found.tool, found.value)).collect();
        Recall { memory, near, tools, chances, votes, offered, order, unlinked }
    }

    /// The traces whose word counts for something, nearest first, and how much.
    pub(crate) fn voices(&self) -> impl Iterator<Item = (usize, f32)> {
        self.near.iter().filter(|near| near.weight > 0.0).map(|near| (near.trace, near.weight))
    }

    /// Every tool for which there is any evidence, likeliest first.
    pub(crate) fn tools(&self) -> &[u32] {
        &self.tools
    }

    /// Those worth thinking about.
    pub(super) fn likeliest(&self) -> &[u32] {
        &self.tools[..self.tools.len().min(LIKELIEST)]
    }

    /// How likely `tool` is used; without any evidence, hardly.
    pub(crate) fn chance(&self, tool: u32) -> f32 {
        self.chances.get(&tool).copied().unwrap_or_else(|| sigmoid(TOOL_OFFSET))
    }

    /// How likely the catalogue alone holds it that `tool` is meant.
    pub(super) fn offered(&self, tool: u32) -> f32 {
        self.offered.get(&tool).copied().unwrap_or(0.0)
    }

    /// How likely `to` is linked to what `from` gives.
    pub(super) fn link_chance(&mut self, from: u32, to: u32) -> f32 {
        let ordered = self.order.chance(from, to);
        let votes = self.votes.get(&(from, to)).copied().unwrap_or(0.0);
        let both = (self.chance(from) * self.chance(to) * ordered).powf(DEPENDENCE);
        let odds = both * (LINK_SLOPE * votes + LINK_OFFSET).exp();
        odds / (1.0 + odds)
    }
}

/// What speaks for each tool: the votes of the traces for it, and what the catalogue offers, less what it
/// offered to the traces that vote.
fn evidence(memory: &Memory, near: &[Near], offered: &[Match]) -> HashMap<u32, f32> {
    let mut evidence: HashMap<u32, f32> = HashMap::new();
    for near in near {
        for tool in memory.traces[near.trace].graph.distinct_tools() {
            *evidence.entry(tool).or_default() += near.weight;
        }
    }
    for found in offered {
        *evidence.entry(found.tool).or_default() += CATALOGUE * found.value;
    }
    for near in near {
        for found in &memory.traces[near.trace].matches {
            if let Some(evidence) = evidence.get_mut(&found.tool) {
                *evidence -= CATALOGUE * near.weight * found.value;
            }
        }
    }
    evidence
}
