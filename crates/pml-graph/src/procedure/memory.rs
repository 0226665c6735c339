//! What was done for earlier intents, kept so that a new one can be compared with all of them.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use super::row::Row;
use crate::linear::sigmoid;
use crate::tokens;

/// The texts of a tool that a request may quote.
#[derive(Debug, Clone, Copy)]
pub struct ToolText<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it does.
    pub description: &'a str,
}

/// A tool that the catalogue alone offers for an intent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Match {
    /// Its number.
    pub tool: u32,
    /// How likely it is meant, from 0 to 1.
    pub value: f32,
}

/// An intent and what served it.
#[derive(Debug, Clone, Copy)]
pub struct Trace<'a> {
    /// In words.
    pub intent: &'a str,
    /// The intent's vector, where there is one.
    pub vector: Option<&'a [f32]>,
    /// What the catalogue alone offered for the intent, see [`matches`]; may be empty if unknown.
    pub matches: &'a [Match],
    /// The tools that were called, in that order.
    pub tools: &'a [u32],
    /// Which call used what another one gave or had to wait for it, as positions in `tools`.
    pub links: &'a [(usize, usize)],
}

/// How many tools are kept of what the catalogue offers: all that could be meant, mostly.
const MATCHES: usize = 16;

/// How steeply belief in a tool falls with its score, and the share of the best score at which it is
/// even. Only shares count, because scores of large catalogues are larger.
const STEEPNESS: f32 = 7.0;
const EVEN: f32 = 0.75;

/// The tools that `scores`, one per tool and without regard to memory, speak for.
///
/// Scores have to be 0 for a tool that fits as well as most do, as standard deviations over the catalogue
/// are; where no tool is above that, there are no matches. They do not change with what is learned, so
/// those of a trace can be stored with it.
pub fn matches(scores: &[f32]) -> Vec<Match> {
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
    order.into_iter().map(|tool| Match { tool: number(tool), value: value(tool) }).collect()
}

/// Everything that was learned. Traces are numbered in the order they came.
#[derive(Debug, Default)]
pub struct Memory {
    terms: HashMap<Box<str>, u32>,
    pub(super) tools: Vec<Tool>,
    pub(super) traces: Vec<Past>,
    /// In how many intents a term stands.
    term_uses: Vec<u32>,
    /// In how many intents a term stands that a tool served.
    together: HashMap<(u32, u32), u32>,
    /// Per term of tools' names, how early those tools came, summed, and how often.
    earliness: Vec<(f32, f32)>,
    /// How often the first tool came before the second.
    before: HashMap<(u32, u32), u32>,
    /// What came directly after a tool, and how often; `None` is the end.
    follows: BTreeMap<Option<u32>, BTreeMap<Option<u32>, u32>>,
}

/// What is known of a tool.
#[derive(Debug, Default)]
pub(super) struct Tool {
    /// The terms of its name, sorted.
    name: Vec<u32>,
    /// The terms of its description, sorted.
    description: Vec<u32>,
    /// How many intents it served.
    uses: u32,
}

/// A trace as it is kept.
#[derive(Debug)]
pub(super) struct Past {
    pub(super) row: Option<Row>,
    /// By tool, with the values scaled to a vector of length 1.
    pub(super) profile: Vec<Match>,
    /// As they were given.
    pub(super) matches: Vec<Match>,
    pub(super) graph: Graph,
}

/// Calls and how they are linked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Graph {
    /// In the order of the calls.
    pub(super) tools: Vec<u32>,
    /// Positions in `tools`.
    pub(super) links: Vec<(usize, usize)>,
}

impl Graph {
    /// Every tool once, sorted.
    pub(super) fn distinct_tools(&self) -> Vec<u32> {
        sorted(self.tools.clone())
    }

    /// Every pair of linked tools once, sorted.
    pub(super) fn distinct_links(&self) -> Vec<(u32, u32)> {
        sorted(self.links.iter().map(|(from, to)| (self.tools[*from], self.tools[*to])).collect())
    }
}

/// What a word of a tool's name or description counts before any intent was seen, in intents.
const NAMED: f32 = 6.0;
const DESCRIBED: f32 = 2.0;

/// How many intents it takes until what they say about a word counts as much as what is usual.
const USUAL: f32 = 4.0;

/// The same for how early tools with a word in their name come.
const USUAL_PLACE: f32 = 2.0;

impl Memory {
    /// An empty memory about `tools`, which are numbered in this order.
    pub fn new<'a>(tools: impl IntoIterator<Item = ToolText<'a>>) -> Memory {
        let mut memory = Memory::default();
        for text in tools {
            let name = sorted(memory.read(text.name));
            let description = sorted(memory.read(text.description));
            memory.tools.push(Tool { name, description, uses: 0 });
        }
        memory
    }

    /// How many traces there are.
    pub fn len(&self) -> usize {
        self.traces.len()
    }

    /// Whether nothing was learned yet.
    pub fn is_empty(&self) -> bool {
        self.traces.is_empty()
    }

    /// Keeps a trace and says its number.
    ///
    /// # Panics
    /// If it names a tool that the memory was not made for, or a link to a call that is not there.
    pub fn learn(&mut self, trace: &Trace<'_>) -> usize {
        let graph = Graph { tools: trace.tools.to_vec(), links: trace.links.to_vec() };
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
        // Links are read here once so that a wrong one is found now and not in the middle of a request.
        graph.distinct_links();
        self.traces.push(Past {
            row: trace.vector.and_then(Row::new),
            profile: profile(trace.matches),
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
        let steps = [None].into_iter().chain(tools.iter().copied().map(Some));
        for (from, to) in steps.zip(tools.iter().copied().map(Some).chain([None])) {
            *self.follows.entry(from).or_default().entry(to).or_default() += 1;
        }
    }

    /// The terms of a text in order.
    fn read(&mut self, text: &str) -> Vec<u32> {
        let tokens = tokens::tokens(text).into_iter().filter(|token| !token.compound);
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

    /// The terms of a request in order; `None` for one that was never seen.
    pub(super) fn terms(&self, text: &str) -> Vec<Option<u32>> {
        let tokens = tokens::tokens(text).into_iter().filter(|token| !token.compound);
        tokens.map(|token| self.terms.get(token.term.as_str()).copied()).collect()
    }

    /// How much more often `term` stands in intents that `tool` serves than in others, as a logarithm and
    /// at least 0. A tool's own words count as if some intents had been seen; where nothing is `aided` by traces, they are all
    /// that counts.
    pub(super) fn speaks_for(&self, term: Option<u32>, tool: u32, aided: bool) -> f32 {
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

    /// Whether a term stands in a tool's name.
    pub(super) fn is_named(&self, term: Option<u32>, tool: u32) -> bool {
        term.is_some_and(|term| self.tools[tool as usize].name.binary_search(&term).is_ok())
    }

    /// How early tools with the words of this one's name come in their graphs: 1 first, -1 last.
    pub(super) fn earliness(&self, tool: u32) -> f32 {
        let name = &self.tools[tool as usize].name;
        let places = name.iter().map(|term| self.earliness[*term as usize]);
        places.map(|(sum, times)| sum / (times + USUAL_PLACE)).sum::<f32>() / name.len().max(1) as f32
    }

    /// How often `first` came before `second`.
    pub(super) fn times_before(&self, first: u32, second: u32) -> f32 {
        self.before.get(&(first, second)).map_or(0.0, |times| *times as f32)
    }

    /// What came directly after a tool, or first for `None`, and how often; `None` is the end.
    pub(crate) fn followers(&self, tool: Option<u32>) -> Option<&BTreeMap<Option<u32>, u32>> {
        self.follows.get(&tool)
    }

    /// The calls of a trace, in order.
    pub(crate) fn calls(&self, trace: usize) -> &[u32] {
        &self.traces[trace].graph.tools
    }
}

/// `matches` by tool and as a vector of length 1.
pub(super) fn profile(matches: &[Match]) -> Vec<Match> {
    let length = matches.iter().map(|found| found.value.powi(2)).sum::<f32>().sqrt();
    if length.partial_cmp(&0.0) != Some(Ordering::Greater) {
        return Vec::new();
    }
    let scaled = matches.iter().map(|found| Match { tool: found.tool, value: found.value / length });
    let mut profile: Vec<Match> = scaled.collect();
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
