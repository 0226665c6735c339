//! Chooses the graph that will most likely share most with the right one.

use std::collections::{HashMap, HashSet};

use super::Request;
use super::memory::{Graph, Memory};
use super::recall::Recall;
use crate::linear::sigmoid;

/// What is suggested for a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggestion {
    /// The tools to call, in that order.
    pub tools: Vec<u32>,
    /// Which call needs another one first, as positions in `tools`.
    pub links: Vec<(usize, usize)>,
    /// How likely it is that both tools and links are right.
    pub confidence: f32,
    /// The nearest trace that did exactly this, if one did.
    pub copied: Option<usize>,
    /// The traces that speak for it, those that count most first.
    pub neighbours: Vec<Neighbour>,
    /// What was done before and could serve again, best first.
    pub known: Vec<Known>,
}

/// An earlier trace that speaks for a suggestion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// Its number.
    pub trace: usize,
    /// How alike the intents are, up to 1.
    pub similarity: f32,
    /// What its word counts; those of all traces sum up to about 1.
    pub weight: f32,
}

/// A graph that was used before.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    /// The nearest trace that has it.
    pub trace: usize,
    /// How well it would serve, from 0 to 1.
    pub value: f32,
}

/// How many of the nearest traces may be repeated as they are.
const REPEATED: usize = 40;

/// How many graphs of each length are pursued while putting one together.
const PURSUED: usize = 10;

/// How long a graph may get where nothing earlier says how long they are.
const USUAL_LENGTH: usize = 4;

/// What it counts for a graph that an intent just like this one was served by it.
const REPEATING: f32 = 0.2;

/// What turns the shares of tools and links that are expected to be right into the chance that all are.
const SURE_TOOLS: f32 = 1.8;
const SURE_LINKS: f32 = 4.2;
const SURE_OFFSET: f32 = -4.0;

/// How many traces and earlier graphs are named.
const NAMED: usize = 5;

/// The steps that most likely serve `request`; `None` where nothing speaks for any tool.
///
/// # Panics
/// If a match of the request is a tool that the memory was not made for.
pub fn suggest(memory: &Memory, request: &Request<'_>) -> Option<Suggestion> {
    let alone = chosen(Recall::unaided(memory, request));
    let recall = Recall::new(memory, request);
    if recall.near.is_empty() {
        return alone;
    }
    let aided = chosen(recall);
    // Earlier intents that only seem related make every tool less likely. Where what they say comes to less than what the
    // catalogue says by itself, it is not followed.
    let Some(alone) = alone else { return aided };
    match aided {
        Some(aided) if aided.confidence >= alone.confidence => Some(aided),
        aided => Some(Suggestion { known: aided.map(|aided| aided.known).unwrap_or_default(), ..alone }),
    }
}

/// The best graph by these beliefs.
fn chosen(mut recall: Recall<'_>) -> Option<Suggestion> {
    let repeated = Repeated::collect(&recall);
    let mut judge = Judge::new(&mut recall);
    let longest = repeated.graphs.iter().map(|known| known.graph.tools.len()).max().unwrap_or(USUAL_LENGTH);
    let composed = judge.compose(longest);
    let judged: Vec<(Shares, &Repeat<'_>)> =
        repeated.graphs.iter().map(|repeat| (judge.shares(repeat.graph), repeat)).collect();

    let copies = judged.iter().map(|(shares, repeat)| {
        (shares.sum() + REPEATING * repeat.similarity, *shares, repeat.graph, Some(repeat.trace))
    });
    let fresh = composed.iter().filter(|graph| !repeated.contains(graph));
    let fresh = fresh.map(|graph| {
        let shares = judge.shares(graph);
        (shares.sum(), shares, graph, None)
    });
    // The first of equal ones: earlier graphs before composed ones, nearer ones before others.
    let best = copies.chain(fresh).reduce(|best, next| if next.0 > best.0 { next } else { best })?;
    let (_, shares, graph, copied) = best;
    let confidence = sigmoid(SURE_TOOLS * shares.tools + SURE_LINKS * shares.links + SURE_OFFSET);
    let known = known(&judged, &recall);
    let graph = graph.clone();
    let neighbours = neighbours(&recall, &graph);
    Some(Suggestion { tools: graph.tools, links: graph.links, confidence, copied, neighbours, known })
}

/// A graph of an earlier trace.
struct Repeat<'m> {
    graph: &'m Graph,
    /// The nearest trace that has it, and how near that is.
    trace: usize,
    similarity: f32,
    /// What the words of all traces that have it count.
    weight: f32,
}

struct Repeated<'m> {
    /// Of the nearest traces, nearest first.
    graphs: Vec<Repeat<'m>>,
}

impl<'m> Repeated<'m> {
    fn collect(recall: &Recall<'m>) -> Repeated<'m> {
        let mut at: HashMap<&Graph, usize> = HashMap::new();
        let mut graphs: Vec<Repeat<'m>> = Vec::new();
        for (rank, near) in recall.near.iter().enumerate() {
            let graph = &recall.memory.traces[near.trace].graph;
            if let Some(known) = at.get(graph) {
                graphs[*known].weight += near.weight;
            } else if rank < REPEATED && !graph.tools.is_empty() {
                at.insert(graph, graphs.len());
                let (trace, similarity) = (near.trace, near.similarity);
                graphs.push(Repeat { graph, trace, similarity, weight: near.weight });
            }
        }
        Repeated { graphs }
    }

    fn contains(&self, graph: &Graph) -> bool {
        self.graphs.iter().any(|known| known.graph == graph)
    }
}

/// Which shares of tools and links, of what is suggested and what is right together, are expected to be
/// in both.
#[derive(Debug, Clone, Copy)]
struct Shares {
    tools: f32,
    links: f32,
}

impl Shares {
    fn sum(self) -> f32 {
        self.tools + self.links
    }
}

/// Says what to expect of a graph.
struct Judge<'r, 'm> {
    recall: &'r mut Recall<'m>,
    links: HashMap<(u32, u32), f32>,
    /// How many tools and links the right graph will have.
    expected_tools: f32,
    expected_links: f32,
}

impl<'r, 'm> Judge<'r, 'm> {
    fn new(recall: &'r mut Recall<'m>) -> Judge<'r, 'm> {
        let likeliest = recall.likeliest().to_vec();
        let expected_tools = likeliest.iter().map(|tool| recall.chance(*tool)).sum();
        let mut judge = Judge { recall, links: HashMap::new(), expected_tools, expected_links: 0.0 };
        for from in &likeliest {
            for to in likeliest.iter().filter(|to| *to != from) {
                judge.expected_links += judge.link(*from, *to);
            }
        }
        judge
    }

    fn link(&mut self, from: u32, to: u32) -> f32 {
        let recall = &mut *self.recall;
        *self.links.entry((from, to)).or_insert_with(|| recall.link_chance(from, to))
    }

    fn shares(&mut self, graph: &Graph) -> Shares {
        let tools = graph.distinct_tools();
        let likely: f32 = tools.iter().map(|tool| self.recall.chance(*tool)).sum();
        let links = graph.distinct_links();
        let linked: f32 = links.iter().map(|(from, to)| self.link(*from, *to)).sum();
        let unlinked = self.recall.unlinked;
        let links = if links.is_empty() {
            unlinked
        } else {
            (1.0 - unlinked) * 2.0 * linked / (links.len() as f32 + self.expected_links)
        };
        Shares { tools: 2.0 * likely / (tools.len() as f32 + self.expected_tools), links }
    }

    /// Graphs of the likeliest tools: of each length up to `longest` the best, each one tool longer than
    /// one that is a tool shorter. They are chains, or without links where earlier ones mostly are.
    fn compose(&mut self, longest: usize) -> Vec<Graph> {
        let tools = self.recall.likeliest().to_vec();
        let chained = self.recall.unlinked < 0.5;
        let mut best: Vec<Graph> = tools.iter().map(|tool| steps(vec![*tool], chained)).collect();
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

/// `graph` with one more of `tools`, at every place.
fn grown(graph: &Graph, tools: &[u32], chained: bool) -> Vec<Graph> {
    let added = tools.iter().filter(|tool| !graph.tools.contains(tool));
    let grow = |tool: &u32, at: usize| {
        let mut longer = graph.tools.clone();
        longer.insert(at, *tool);
        steps(longer, chained)
    };
    added.flat_map(|tool| (0..=graph.tools.len()).map(move |at| grow(tool, at))).collect()
}

fn steps(tools: Vec<u32>, chained: bool) -> Graph {
    let links = if chained { (1..tools.len()).map(|at| (at - 1, at)).collect() } else { Vec::new() };
    Graph { tools, links }
}

/// Earlier graphs, best first. What is expected of them, who used them and what the catalogue says count
/// alike.
fn known(judged: &[(Shares, &Repeat<'_>)], recall: &Recall<'_>) -> Vec<Known> {
    let value = |shares: &Shares, repeat: &Repeat<'_>| {
        let tools = repeat.graph.distinct_tools();
        let offered = tools.iter().map(|tool| recall.offered(*tool)).sum::<f32>() / tools.len() as f32;
        ((shares.sum() + repeat.similarity + repeat.weight + offered) / 5.0).clamp(0.0, 1.0)
    };
    let mut known: Vec<Known> = (judged.iter())
        .map(|(shares, repeat)| Known { trace: repeat.trace, value: value(shares, repeat) })
        .collect();
    // Stable, so that of equal ones the nearer comes first.
    known.sort_by(|a, b| b.value.total_cmp(&a.value));
    known.truncate(NAMED);
    known
}

/// Traces that share a tool with `graph`, by what their word counts.
fn neighbours(recall: &Recall<'_>, graph: &Graph) -> Vec<Neighbour> {
    let shares = |trace: usize| recall.memory.calls(trace).iter().any(|tool| graph.tools.contains(tool));
    let speaking = recall.near.iter().filter(|near| near.weight > 0.0 && shares(near.trace));
    let mut neighbours: Vec<Neighbour> = speaking
        .map(|near| Neighbour { trace: near.trace, similarity: near.similarity, weight: near.weight })
        .collect();
    neighbours.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    neighbours.truncate(NAMED);
    neighbours
}
