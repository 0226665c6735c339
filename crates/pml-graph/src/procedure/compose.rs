//! Chooses the graph with the largest expected overlap with the right one.

use std::collections::{HashMap, HashSet};

use super::ProcedureRequest;
use super::memory::{ProcedureMemory, StepGraph};
use super::recall::ProcedureBeliefs;
use crate::linear::sigmoid;

/// Suggested procedure for a request.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcedureSuggestion {
    /// Tools to call, in order.
    pub tools: Vec<u32>,
    /// Links between calls, as positions in `tools`: the second needs the first.
    pub links: Vec<(usize, usize)>,
    /// Probability that both tools and links are right.
    pub confidence: f32,
    /// Nearest trace with exactly this graph, if any.
    pub repeated_trace: Option<usize>,
    /// Traces that support it, those with the most weight first.
    pub neighbours: Vec<NeighbourTrace>,
    /// Earlier graphs that could serve again, best first.
    pub earlier_procedures: Vec<EarlierProcedure>,
}

/// A trace that supports a suggestion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NeighbourTrace {
    /// Index of the trace.
    pub trace: usize,
    /// Similarity of the intents, up to 1.
    pub similarity: f32,
    /// Weight of its vote; the weights of all traces sum to about 1.
    pub vote_weight: f32,
}

/// A graph that was used before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EarlierProcedure {
    /// Nearest trace with this graph.
    pub trace: usize,
    /// Estimated fit, from 0 to 1.
    pub score: f32,
}

/// Number of nearest traces whose graphs are candidates for repetition.
const REPEATED: usize = 40;

/// Beam width of the composition: graphs kept per length.
const PURSUED: usize = 10;

/// Maximum length of a composed graph when no trace shows the usual length.
const USUAL_LENGTH: usize = 4;

/// Bonus of a graph that served an almost equal intent.
const REPEATING: f32 = 0.2;

/// Log-odds weight of the expected share of right tools, for the probability that all tools and links are right.
const SURE_TOOLS: f32 = 1.8;
/// Log-odds weight of the expected share of right links.
const SURE_LINKS: f32 = 4.2;
/// Constant term of these log-odds.
const SURE_OFFSET: f32 = -4.0;

/// Maximum number of traces and earlier graphs that are returned.
const NAMED: usize = 5;

/// Suggests the steps that most likely serve `request`; `None` when there is no evidence for any tool.
///
/// # Panics
/// If a match of the request is a tool that the memory was not created with.
pub fn suggest_procedure(
    memory: &ProcedureMemory,
    request: &ProcedureRequest<'_>,
) -> Option<ProcedureSuggestion> {
    let alone = chosen(ProcedureBeliefs::without_traces(memory, request));
    let recall = ProcedureBeliefs::new(memory, request);
    if recall.nearest_traces.is_empty() {
        return alone;
    }
    let aided = chosen(recall);
    // Traces that only seem related make every tool less likely. When the suggestion with traces is less confident than
    // the one by the catalogue alone, the latter is used.
    let Some(alone) = alone else { return aided };
    match aided {
        Some(aided) if aided.confidence >= alone.confidence => Some(aided),
        aided => Some(ProcedureSuggestion {
            earlier_procedures: aided.map(|aided| aided.earlier_procedures).unwrap_or_default(),
            ..alone
        }),
    }
}

/// The best graph by these beliefs.
fn chosen(mut recall: ProcedureBeliefs<'_>) -> Option<ProcedureSuggestion> {
    let repeated = RepeatableGraphs::collect(&recall);
    let mut judge = GraphJudge::new(&mut recall);
    let longest = repeated.graphs.iter().map(|known| known.graph.tools.len()).max().unwrap_or(USUAL_LENGTH);
    let composed = judge.compose(longest);
    let judged: Vec<(ExpectedShares, &RepeatableGraph<'_>)> =
        repeated.graphs.iter().map(|repeat| (judge.shares(repeat.graph), repeat)).collect();

    let copies = judged.iter().map(|(shares, repeat)| {
        (shares.sum() + REPEATING * repeat.similarity, *shares, repeat.graph, Some(repeat.trace))
    });
    let fresh = composed.iter().filter(|graph| !repeated.contains(graph));
    let fresh = fresh.map(|graph| {
        let shares = judge.shares(graph);
        (shares.sum(), shares, graph, None)
    });
    // The first of equals wins: earlier graphs before composed ones, nearer ones before others.
    let best = copies.chain(fresh).reduce(|best, next| if next.0 > best.0 { next } else { best })?;
    let (_, shares, graph, copied) = best;
    let confidence = sigmoid(SURE_TOOLS * shares.tools + SURE_LINKS * shares.links + SURE_OFFSET);
    let known = known(&judged, &recall);
    let graph = graph.clone();
    let neighbours = neighbours(&recall, &graph);
    Some(ProcedureSuggestion {
        tools: graph.tools,
        links: graph.links,
        confidence,
        repeated_trace: copied,
        neighbours,
        earlier_procedures: known,
    })
}

/// A graph of a trace.
struct RepeatableGraph<'m> {
    graph: &'m StepGraph,
    /// Nearest trace with this graph, and its similarity.
    trace: usize,
    similarity: f32,
    /// Summed vote weight of all traces with this graph.
    weight: f32,
}

struct RepeatableGraphs<'m> {
    /// Graphs of the nearest traces, nearest first.
    graphs: Vec<RepeatableGraph<'m>>,
}

impl<'m> RepeatableGraphs<'m> {
    fn collect(recall: &ProcedureBeliefs<'m>) -> RepeatableGraphs<'m> {
        let mut at: HashMap<&StepGraph, usize> = HashMap::new();
        let mut graphs: Vec<RepeatableGraph<'m>> = Vec::new();
        for (rank, near) in recall.nearest_traces.iter().enumerate() {
            let graph = &recall.memory.traces[near.trace].graph;
            if let Some(known) = at.get(graph) {
                graphs[*known].weight += near.vote_weight;
            } else if rank < REPEATED && !graph.tools.is_empty() {
                at.insert(graph, graphs.len());
                let (trace, similarity) = (near.trace, near.similarity);
                graphs.push(RepeatableGraph { graph, trace, similarity, weight: near.vote_weight });
            }
        }
        RepeatableGraphs { graphs }
    }

    fn contains(&self, graph: &StepGraph) -> bool {
        self.graphs.iter().any(|known| known.graph == graph)
    }
}

/// Expected shares of tools and links in both the suggested and the right graph, relative to their union.
#[derive(Debug, Clone, Copy)]
struct ExpectedShares {
    tools: f32,
    links: f32,
}

impl ExpectedShares {
    fn sum(self) -> f32 {
        self.tools + self.links
    }
}

/// Computes the expected shares of a graph.
struct GraphJudge<'r, 'm> {
    recall: &'r mut ProcedureBeliefs<'m>,
    links: HashMap<(u32, u32), f32>,
    /// Expected number of tools and links of the right graph.
    expected_tools: f32,
    expected_links: f32,
}

impl<'r, 'm> GraphJudge<'r, 'm> {
    fn new(recall: &'r mut ProcedureBeliefs<'m>) -> GraphJudge<'r, 'm> {
        let likeliest = recall.likeliest_tools().to_vec();
        let expected_tools = likeliest.iter().map(|tool| recall.tool_probability(*tool)).sum();
        let mut judge = GraphJudge { recall, links: HashMap::new(), expected_tools, expected_links: 0.0 };
        for from in &likeliest {
            for to in likeliest.iter().filter(|to| *to != from) {
                judge.expected_links += judge.link(*from, *to);
            }
        }
        judge
    }

    fn link(&mut self, from: u32, to: u32) -> f32 {
        let recall = &mut *self.recall;
        *self.links.entry((from, to)).or_insert_with(|| recall.link_probability(from, to))
    }

    fn shares(&mut self, graph: &StepGraph) -> ExpectedShares {
        let tools = graph.distinct_tools();
        let likely: f32 = tools.iter().map(|tool| self.recall.tool_probability(*tool)).sum();
        let links = graph.distinct_links();
        let linked: f32 = links.iter().map(|(from, to)| self.link(*from, *to)).sum();
        let unlinked = self.recall.unlinked_probability;
        let links = if links.is_empty() {
            unlinked
        } else {
            (1.0 - unlinked) * 2.0 * linked / (links.len() as f32 + self.expected_links)
        };
        ExpectedShares { tools: 2.0 * likely / (tools.len() as f32 + self.expected_tools), links }
    }

    /// Composes graphs of the likeliest tools by beam search: for each length up to `longest` the best ones, each
    /// extending a shorter one by one tool. They are chains, or have no links where earlier graphs mostly have none.
    fn compose(&mut self, longest: usize) -> Vec<StepGraph> {
        let tools = self.recall.likeliest_tools().to_vec();
        let chained = self.recall.unlinked_probability < 0.5;
        let mut best: Vec<StepGraph> = tools.iter().map(|tool| steps(vec![*tool], chained)).collect();
        let mut all = best.clone();
        for _ in 1..longest.min(tools.len()) {
            let mut seen = HashSet::new();
            let mut longer = Vec::new();
            for graph in best.iter().flat_map(|graph| grown(graph, &tools, chained)) {
                if seen.insert(graph.tools.clone()) {
                    longer.push((self.shares(&graph).sum(), graph));
                }
            }
            longer.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.tools.cmp(&b.1.tools)));
            longer.truncate(PURSUED);
            best = longer.into_iter().map(|(_, graph)| graph).collect();
            all.extend(best.iter().cloned());
        }
        all
    }
}

/// `graph` extended by one of `tools`, at every position.
fn grown(graph: &StepGraph, tools: &[u32], chained: bool) -> Vec<StepGraph> {
    let added = tools.iter().filter(|tool| !graph.tools.contains(tool));
    let grow = |tool: &u32, at: usize| {
        let mut longer = graph.tools.clone();
        longer.insert(at, *tool);
        steps(longer, chained)
    };
    added.flat_map(|tool| (0..=graph.tools.len()).map(move |at| grow(tool, at))).collect()
}

fn steps(tools: Vec<u32>, chained: bool) -> StepGraph {
    let links = if chained { (1..tools.len()).map(|at| (at - 1, at)).collect() } else { Vec::new() };
    StepGraph { tools, links }
}

/// Earlier graphs, best first. Expected shares, vote weight and catalogue probability count equally.
fn known(
    judged: &[(ExpectedShares, &RepeatableGraph<'_>)],
    recall: &ProcedureBeliefs<'_>,
) -> Vec<EarlierProcedure> {
    let value = |shares: &ExpectedShares, repeat: &RepeatableGraph<'_>| {
        let tools = repeat.graph.distinct_tools();
        let offered =
            tools.iter().map(|tool| recall.catalogue_probability(*tool)).sum::<f32>() / tools.len() as f32;
        ((shares.sum() + repeat.similarity + repeat.weight + offered) / 5.0).clamp(0.0, 1.0)
    };
    let mut known: Vec<EarlierProcedure> = (judged.iter())
        .map(|(shares, repeat)| EarlierProcedure { trace: repeat.trace, score: value(shares, repeat) })
        .collect();
    // Stable, so that of equals the nearer comes first.
    known.sort_by(|a, b| b.score.total_cmp(&a.score));
    known.truncate(NAMED);
    known
}

/// Traces that share a tool with `graph`, ordered by vote weight.
fn neighbours(recall: &ProcedureBeliefs<'_>, graph: &StepGraph) -> Vec<NeighbourTrace> {
    let shares = |trace: usize| recall.memory.calls_of(trace).iter().any(|tool| graph.tools.contains(tool));
    let speaking = recall.nearest_traces.iter().filter(|near| near.vote_weight > 0.0 && shares(near.trace));
    let mut neighbours: Vec<NeighbourTrace> = speaking
        .map(|near| NeighbourTrace {
            trace: near.trace,
            similarity: near.similarity,
            vote_weight: near.vote_weight,
        })
        .collect();
    neighbours.sort_by(|a, b| b.vote_weight.total_cmp(&a.vote_weight));
    neighbours.truncate(NAMED);
    neighbours
}
