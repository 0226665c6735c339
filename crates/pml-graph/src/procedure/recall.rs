//! Beliefs about a request: probabilities that each tool and each link is part of what serves it.

use std::collections::HashMap;

use super::ProcedureRequest;
use super::kernel::{self, NearTrace};
use super::memory::{ProcedureMemory, ToolMatch};
use super::order::ToolOrder;
use crate::linear::sigmoid;

/// Weight of the catalogue's offers relative to the votes of traces.
const CATALOGUE: f32 = 0.7;

/// Slope and offset that turn evidence for a tool, about 1 when all agree on it, into a probability. The fit was alike
/// for a hundred traces and for thousands.
const TOOL_SLOPE: f32 = 10.5;
const TOOL_OFFSET: f32 = -5.3;

/// Weight of the votes for a link, added to the probability that both tools are used in that order.
const LINK_SLOPE: f32 = 4.0;
const LINK_OFFSET: f32 = -1.0;

/// Exponent that corrects that probability: it is a product of dependent events and thus a little too small.
const DEPENDENCE: f32 = 0.8;

/// Number of likeliest tools that are considered together.
const LIKELIEST: usize = 8;

/// Beliefs about one request.
pub(crate) struct ProcedureBeliefs<'m> {
    pub(crate) memory: &'m ProcedureMemory,
    /// Nearest traces, nearest first.
    pub(super) nearest_traces: Vec<NearTrace>,
    /// Tools with any evidence, likeliest first.
    tools: Vec<u32>,
    chances: HashMap<u32, f32>,
    votes: HashMap<(u32, u32), f32>,
    /// Probability of a tool by the catalogue alone.
    offered: HashMap<u32, f32>,
    order: ToolOrder<'m>,
    /// Probability that the right graph has no links.
    pub(super) unlinked_probability: f32,
}

impl<'m> ProcedureBeliefs<'m> {
    /// Computes the beliefs about `request` from the memory.
    pub(crate) fn new(memory: &'m ProcedureMemory, request: &ProcedureRequest<'_>) -> ProcedureBeliefs<'m> {
        let order = ToolOrder::new(memory, request.intent);
        ProcedureBeliefs::by(memory, request, kernel::nearest_traces(memory, request), order)
    }

    /// Beliefs by the catalogue alone.
    pub(super) fn without_traces(
        memory: &'m ProcedureMemory,
        request: &ProcedureRequest<'_>,
    ) -> ProcedureBeliefs<'m> {
        ProcedureBeliefs::by(memory, request, Vec::new(), ToolOrder::without_traces(memory, request.intent))
    }

    fn by(
        memory: &'m ProcedureMemory,
        request: &ProcedureRequest<'_>,
        near: Vec<NearTrace>,
        order: ToolOrder<'m>,
    ) -> ProcedureBeliefs<'m> {
        let evidence = evidence(memory, &near, request.matches);
        let mut tools: Vec<u32> = evidence.keys().copied().collect();
        tools.sort_unstable_by(|a, b| evidence[b].total_cmp(&evidence[a]).then(a.cmp(b)));
        let chance = |evidence: f32| sigmoid(TOOL_SLOPE * evidence + TOOL_OFFSET);
        let chances = evidence.into_iter().map(|(tool, evidence)| (tool, chance(evidence))).collect();
        let mut votes = HashMap::new();
        let (mut unlinked, mut all) = (0.0, 0.0);
        for near in &near {
            let links = memory.traces[near.trace].graph.distinct_links();
            all += near.vote_weight.max(0.0);
            unlinked += if links.is_empty() { near.vote_weight.max(0.0) } else { 0.0 };
            for link in links {
                *votes.entry(link).or_default() += near.vote_weight;
            }
        }
        let unlinked = if all > 0.0 { unlinked / all } else { 0.0 };
        let offered = request.matches.iter().map(|found| (found.tool, found.probability)).collect();
        ProcedureBeliefs {
            memory,
            nearest_traces: near,
            tools,
            chances,
            votes,
            offered,
            order,
            unlinked_probability: unlinked,
        }
    }

    /// Traces with a vote, nearest first, and their weights.
    pub(crate) fn voting_traces(&self) -> impl Iterator<Item = (usize, f32)> {
        self.nearest_traces
            .iter()
            .filter(|near| near.vote_weight > 0.0)
            .map(|near| (near.trace, near.vote_weight))
    }

    /// Tools with any evidence, likeliest first.
    pub(crate) fn tools(&self) -> &[u32] {
        &self.tools
    }

    /// The likeliest tools, at most `LIKELIEST`.
    pub(super) fn likeliest_tools(&self) -> &[u32] {
        &self.tools[..self.tools.len().min(LIKELIEST)]
    }

    /// Probability that `tool` is used; close to 0 without any evidence.
    pub(crate) fn tool_probability(&self, tool: u32) -> f32 {
        self.chances.get(&tool).copied().unwrap_or_else(|| sigmoid(TOOL_OFFSET))
    }

    /// Probability of `tool` by the catalogue alone.
    pub(super) fn catalogue_probability(&self, tool: u32) -> f32 {
        self.offered.get(&tool).copied().unwrap_or(0.0)
    }

    /// Probability that `to` uses the result of `from`.
    pub(super) fn link_probability(&mut self, from: u32, to: u32) -> f32 {
        let ordered = self.order.precedence_probability(from, to);
        let votes = self.votes.get(&(from, to)).copied().unwrap_or(0.0);
        let both = (self.tool_probability(from) * self.tool_probability(to) * ordered).powf(DEPENDENCE);
        let odds = both * (LINK_SLOPE * votes + LINK_OFFSET).exp();
        odds / (1.0 + odds)
    }
}

/// Evidence for each tool: the votes of the traces, plus what the catalogue offers, minus what it offered to the voting
/// traces.
fn evidence(memory: &ProcedureMemory, near: &[NearTrace], offered: &[ToolMatch]) -> HashMap<u32, f32> {
    let mut evidence: HashMap<u32, f32> = HashMap::new();
    for near in near {
        for tool in memory.traces[near.trace].graph.distinct_tools() {
            *evidence.entry(tool).or_default() += near.vote_weight;
        }
    }
    for found in offered {
        *evidence.entry(found.tool).or_default() += CATALOGUE * found.probability;
    }
    for near in near {
        for found in &memory.traces[near.trace].matches {
            if let Some(evidence) = evidence.get_mut(&found.tool) {
                *evidence -= CATALOGUE * near.vote_weight * found.probability;
            }
        }
    }
    evidence
}
