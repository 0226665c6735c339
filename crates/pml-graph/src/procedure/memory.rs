//! Memory of traces: intents with the procedures that served them, comparable with a new intent.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use super::row::QuantisedVector;
use crate::linear::sigmoid;
use crate::tokens;

/// Texts of a tool, whose words a request may contain.
#[derive(Debug, Clone, Copy)]
pub struct ToolText<'a> {
    /// Name of the tool.
    pub name: &'a str,
    /// Description of the tool.
    pub description: &'a str,
}

/// A tool that the catalogue alone offers for an intent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ToolMatch {
    /// Index of the tool in the catalogue.
    pub tool: u32,
    /// Probability that the tool is the right one, from 0 to 1.
    pub probability: f32,
}

/// An intent with the procedure that served it.
#[derive(Debug, Clone, Copy)]
pub struct ProcedureTrace<'a> {
    /// The intent, as text.
    pub intent: &'a str,
    /// Vector of the intent; `None` when it was not embedded.
    pub vector: Option<&'a [f32]>,
    /// Tools that the catalogue alone offered for the intent, see [`catalogue_matches`]; empty if unknown.
    pub matches: &'a [ToolMatch],
    /// Tools that were called, in order.
    pub tools: &'a [u32],
    /// Links as positions in `tools`: the second call used the result of the first or had to wait for it.
    pub links: &'a [(usize, usize)],
}

/// Maximum number of catalogue matches that are kept: mostly all that could be right.
const MATCHES: usize = 16;

/// Steepness of the logistic curve from score to probability. Only shares of the best score count, because scores of
/// large catalogues are larger.
const STEEPNESS: f32 = 7.0;
/// Share of the best score at which the probability is one half.
const EVEN: f32 = 0.75;

/// The tools that `scores` support; one score per tool, computed without traces.
///
/// A score must be 0 for a tool of usual fit, as standard deviations over the catalogue are; when no score is positive
/// there are no matches. The matches do not depend on what is learned, so those of a trace can be stored with it.
pub fn catalogue_matches(scores: &[f32]) -> Vec<ToolMatch> {
    let best = scores.iter().copied().filter(|score| score.is_finite()).fold(0.0, f32::max);
    if best <= 0.0 {
        return Vec::new();
    }
    let mut order: Vec<usize> = (0..scores.len()).filter(|tool| scores[*tool] > 0.0).collect();
    let by_score = |a: &usize, b: &usize| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b));
    if order.len() > MATCHES {
        order.select_nth_unstable_by(MATCHES, by_score);
        order.truncate(MATCHES);
    }
    order.sort_unstable_by(by_score);
    let value = |tool: usize| sigmoid(STEEPNESS * (scores[tool].min(best) / best - EVEN));
    order.into_iter().map(|tool| ToolMatch { tool: number(tool), probability: value(tool) }).collect()
}

/// Everything that was learned. Traces are numbered in the order of learning.
#[derive(Debug, Default)]
pub struct ProcedureMemory {
    terms: HashMap<Box<str>, u32>,
    pub(super) tools: Vec<RememberedTool>,
    pub(super) traces: Vec<RememberedTrace>,
    /// Number of intents with each term.
    term_uses: Vec<u32>,
    /// Number of intents with a term that a tool served, by (term, tool).
    together: HashMap<(u32, u32), u32>,
    /// For each term of tool names: summed earliness of those tools, and their count.
    earliness: Vec<(f32, f32)>,
    /// Number of times the first tool came before the second.
    before: HashMap<(u32, u32), u32>,
    /// Direct successors of each tool with counts; a `None` successor is the end.
    follows: BTreeMap<Option<u32>, BTreeMap<Option<u32>, u32>>,
    /// Repeated calls, by tool and of all tools.
    repeats: HashMap<u32, RepeatCounts>,
    all_repeats: RepeatCounts,
}

/// How often a tool that was called came next again.
#[derive(Debug, Clone, Copy, Default)]
struct RepeatCounts {
    /// Number of times it came next again.
    times: f32,
    /// Number of times it would have, if every tool of a run were equally likely at every step.
    expected: f32,
}

impl RepeatCounts {
    /// The ratio of both, as if `weight` further repetitions had been expected and the share `prior` of them had come.
    fn ratio(self, prior: f32, weight: f32) -> f32 {
        (self.times + weight * prior) / (self.expected + weight)
    }
}

/// Learned facts about a tool.
#[derive(Debug, Default)]
pub(super) struct RememberedTool {
    /// Terms of its name, sorted.
    name: Vec<u32>,
    /// Terms of its description, sorted.
    description: Vec<u32>,
    /// Number of intents it served.
    uses: u32,
}

/// A stored trace.
#[derive(Debug)]
pub(super) struct RememberedTrace {
    pub(super) row: Option<QuantisedVector>,
    /// Matches sorted by tool, scaled to a vector of length 1.
    pub(super) profile: Vec<ToolMatch>,
    /// Matches as they were given.
    pub(super) matches: Vec<ToolMatch>,
    pub(super) graph: StepGraph,
}

/// Calls and their links.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct StepGraph {
    /// Tools in call order.
    pub(super) tools: Vec<u32>,
    /// Links, as positions in `tools`.
    pub(super) links: Vec<(usize, usize)>,
}

impl StepGraph {
    /// Distinct tools, sorted.
    pub(super) fn distinct_tools(&self) -> Vec<u32> {
        sorted(self.tools.clone())
    }

    /// Distinct pairs of linked tools, sorted.
    pub(super) fn distinct_links(&self) -> Vec<(u32, u32)> {
        sorted(self.links.iter().map(|(from, to)| (self.tools[*from], self.tools[*to])).collect())
    }
}

/// Prior count of intents for a word of a tool's name.
const NAMED: f32 = 6.0;
/// Prior count of intents for a word of a tool's description.
const DESCRIBED: f32 = 2.0;

/// Number of intents at which the observations of a word weigh as much as its usual rate.
const USUAL: f32 = 4.0;

/// Share of the expected repetitions that come, when nothing was learned: few runs call a tool again.
const USUAL_REPEATS: f32 = 0.135;
/// Number of expected repetitions at which the observations of all tools weigh as much as that.
const USUAL_REPEATS_WEIGHT: f32 = 10.0;
/// The same for the observations of one tool, relative to those of all.
const TOOL_REPEATS_WEIGHT: f32 = 2.0;

/// The same for the earliness of tools with a word in their name.
const USUAL_PLACE: f32 = 2.0;

impl ProcedureMemory {
    /// An empty memory for `tools`, which are numbered in this order.
    pub fn new<'a>(tools: impl IntoIterator<Item = ToolText<'a>>) -> ProcedureMemory {
        let mut memory = ProcedureMemory::default();
        for text in tools {
            let name = sorted(memory.read(text.name));
            let description = sorted(memory.read(text.description));
            memory.tools.push(RememberedTool { name, description, uses: 0 });
        }
        memory
    }

    /// Number of traces.
    pub fn len(&self) -> usize {
        self.traces.len()
    }

    /// Whether no trace was learned yet.
    pub fn is_empty(&self) -> bool {
        self.traces.is_empty()
    }

    /// Learns a trace. Returns its number.
    ///
    /// # Panics
    /// If it names a tool that the memory was not created with, or a link to a missing call.
    pub fn learn_trace(&mut self, trace: &ProcedureTrace<'_>) -> usize {
        let graph = StepGraph { tools: trace.tools.to_vec(), links: trace.links.to_vec() };
        let used = graph.distinct_tools();
        for term in sorted(self.read(trace.intent)) {
            self.term_uses[term as usize] += 1;
            for tool in &used {
                *self.together.entry((term, *tool)).or_default() += 1;
            }
        }
        for tool in &used {
            self.tools[*tool as usize].uses += 1;
        }
        self.learn_order(&graph.tools);
        // Reads the links once, so that a wrong one panics here and not during a later request.
        graph.distinct_links();
        self.traces.push(RememberedTrace {
            row: trace.vector.and_then(QuantisedVector::new),
            profile: unit_profile(trace.matches),
            matches: trace.matches.to_vec(),
            graph,
        });
        self.traces.len() - 1
    }

    fn learn_order(&mut self, tools: &[u32]) {
        let last = tools.len().saturating_sub(1).max(1) as f32;
        for (at, tool) in tools.iter().enumerate() {
            let early = if tools.len() > 1 { 1.0 - 2.0 * at as f32 / last } else { 0.0 };
            for term in &self.tools[*tool as usize].name {
                let (sum, times) = &mut self.earliness[*term as usize];
                (*sum, *times) = (*sum + early, *times + 1.0);
            }
            for later in &tools[at + 1..] {
                *self.before.entry((*tool, *later)).or_default() += 1;
            }
        }
        self.learn_repeats(tools);
        let steps = [None].into_iter().chain(tools.iter().copied().map(Some));
        for (from, to) in steps.zip(tools.iter().copied().map(Some).chain([None])) {
            *self.follows.entry(from).or_default().entry(to).or_default() += 1;
        }
    }

    fn learn_repeats(&mut self, tools: &[u32]) {
        let chance = 1.0 / sorted(tools.to_vec()).len().max(1) as f32;
        for at in 1..tools.len() {
            for tool in sorted(tools[..at].to_vec()) {
                let came = RepeatCounts { times: f32::from(u8::from(tool == tools[at])), expected: chance };
                for counts in [self.repeats.entry(tool).or_default(), &mut self.all_repeats] {
                    counts.times += came.times;
                    counts.expected += came.expected;
                }
            }
        }
    }

    /// How much likelier `tool` is to come next once it was called, as a factor.
    pub(crate) fn repeat_ratio(&self, tool: u32) -> f32 {
        let usual = self.all_repeats.ratio(USUAL_REPEATS, USUAL_REPEATS_WEIGHT);
        self.repeats.get(&tool).copied().unwrap_or_default().ratio(usual, TOOL_REPEATS_WEIGHT)
    }

    /// Terms of a text, in order.
    fn read(&mut self, text: &str) -> Vec<u32> {
        let tokens = tokens::tokenize(text).into_iter().filter(|token| !token.compound);
        tokens.map(|token| self.intern(&token.term)).collect()
    }

    fn intern(&mut self, term: &str) -> u32 {
        if let Some(known) = self.terms.get(term) {
            return *known;
        }
        let next = number(self.terms.len());
        self.terms.insert(term.into(), next);
        self.term_uses.push(0);
        self.earliness.push((0.0, 0.0));
        next
    }

    /// Terms of a request, in order; `None` for an unknown term.
    pub(super) fn known_terms(&self, text: &str) -> Vec<Option<u32>> {
        let tokens = tokens::tokenize(text).into_iter().filter(|token| !token.compound);
        tokens.map(|token| self.terms.get(token.term.as_str()).copied()).collect()
    }

    /// Log ratio of the frequency of `term` in intents served by `tool` to that in others, at least 0. The tool's own
    /// words count as if some intents had been seen; without traces (`aided` is false) they are all that counts.
    pub(super) fn term_evidence(&self, term: Option<u32>, tool: u32, aided: bool) -> f32 {
        let Some(term) = term else { return 0.0 };
        let known = &self.tools[tool as usize];
        let own = if self.is_named(Some(term), tool) {
            NAMED
        } else if known.description.binary_search(&term).is_ok() {
            DESCRIBED
        } else {
            0.0
        };
        let seen = |times: f32| if aided { times } else { 0.0 };
        let usual =
            (seen(self.term_uses[term as usize] as f32) + 0.5) / (seen(self.traces.len() as f32) + 1.0);
        let together = seen(self.together.get(&(term, tool)).map_or(0.0, |times| *times as f32));
        let here = (together + own + USUAL * usual) / (seen(known.uses as f32) + own + USUAL);
        (here / usual).ln().max(0.0)
    }

    /// Whether a term is in a tool's name.
    pub(super) fn is_named(&self, term: Option<u32>, tool: u32) -> bool {
        term.is_some_and(|term| self.tools[tool as usize].name.binary_search(&term).is_ok())
    }

    /// How early tools with the words of this one's name are used: 1 first, -1 last.
    pub(super) fn earliness(&self, tool: u32) -> f32 {
        let name = &self.tools[tool as usize].name;
        let places = name.iter().map(|term| self.earliness[*term as usize]);
        places.map(|(sum, times)| sum / (times + USUAL_PLACE)).sum::<f32>() / name.len().max(1) as f32
    }

    /// Number of times `first` came before `second`.
    pub(super) fn times_before(&self, first: u32, second: u32) -> f32 {
        self.before.get(&(first, second)).map_or(0.0, |times| *times as f32)
    }

    /// Direct successors of a tool, or the first tools for `None`, with counts; a `None` successor is the end.
    pub(crate) fn successors(&self, tool: Option<u32>) -> Option<&BTreeMap<Option<u32>, u32>> {
        self.follows.get(&tool)
    }

    /// Calls of a trace, in order.
    pub(crate) fn calls_of(&self, trace: usize) -> &[u32] {
        &self.traces[trace].graph.tools
    }
}

/// `matches` sorted by tool, as a vector of length 1.
pub(super) fn unit_profile(matches: &[ToolMatch]) -> Vec<ToolMatch> {
    let length = matches.iter().map(|found| found.probability.powi(2)).sum::<f32>().sqrt();
    if length.partial_cmp(&0.0) != Some(Ordering::Greater) {
        return Vec::new();
    }
    let scaled =
        matches.iter().map(|found| ToolMatch { tool: found.tool, probability: found.probability / length });
    let mut profile: Vec<ToolMatch> = scaled.collect();
    profile.sort_unstable_by_key(|found| found.tool);
    profile
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("fewer than four billion of anything")
}

fn sorted<T: Ord>(mut values: Vec<T>) -> Vec<T> {
    values.sort_unstable();
    values.dedup();
    values
}
