//! Tools that come next because a path leads over them, from the results at hand to what the request asks for.
//!
//! A tool that the request may ask for is reached when all its required parameters have a value: one of the request, or
//! a result of a tool that was used, or of another tool that is reached. The first call of its cheapest hyperpath comes
//! next, if it takes a result at hand. Schemas alone say so, so a path overtakes nothing: it is a better reason for a tool
//! that the request asks for, and tools that only lead to one come last ([`NextPrediction::add_paths`]).

use std::collections::{BTreeMap, HashSet};

use pml_language::Reading;

use super::{NextPrediction, NextReason, NextToolCandidate};
use crate::call_paths::{
    ArgumentSource, CallGraph, CallOptions, CallPath, GivenArgument, PathCall, PossibleCall, ResultLink,
};
use crate::graph::feeds::{mappings_among, value_fit};
use crate::graph::fields::ToolFields;
use crate::graph::provides::ProvidesIndex;

/// Tools that are looked at as what the request asks for.
const MOST_GOALS: usize = 8;
/// Tools in the graph altogether, with those that give others what they need.
const MOST_OPTIONS: usize = 16;
/// Used tools whose results are at hand, the last ones.
const MOST_USED: usize = 4;
/// Least fit of a value of the request with a parameter, as in suggestions.
const LEAST_VALUE: f32 = 0.5;
/// Least fit of a result with a parameter: below it, two fields have no more in common than their kind.
const LEAST_RESULT: f32 = 0.3;
/// What can be called, by its schemas.
#[derive(Clone, Copy)]
pub struct CallableTools<'a> {
    /// Fields of all tools.
    pub provides: &'a ProvidesIndex,
    /// Id of a tool in `provides`, by its index in the catalogue.
    pub id_of: &'a dyn Fn(u32) -> String,
    /// Index of a tool in the catalogue, by its id.
    pub index_of: &'a dyn Fn(&str) -> Option<u32>,
}

/// A tool that takes a result at hand and leads to what the request asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NextOnPath {
    /// Index of the tool in the catalogue.
    pub tool: u32,
    /// How well everything on the path fits, from 0 to 1.
    pub fit: f32,
    /// The used tool whose result it takes.
    pub from: u32,
    /// The tool at the end of the path; the same tool where the path has one call.
    pub towards: u32,
}

/// Tools that come next on paths from the results of `used` to the likeliest tools of `prediction`, best first.
pub fn next_on_paths(
    prediction: &NextPrediction,
    request: &Reading<'_>,
    used: &[u32],
    tools: CallableTools<'_>,
) -> Vec<NextOnPath> {
    let search = PathSearch::new(prediction, request, used, tools);
    let mut best: BTreeMap<u32, NextOnPath> = BTreeMap::new();
    for goal in 0..search.goals {
        for next in search.first_calls(goal) {
            let known = best.entry(next.tool).or_insert(next);
            // A tool that is asked for itself is named for its own sake.
            if (next.towards == next.tool, next.fit) > (known.towards == known.tool, known.fit) {
                *known = next;
            }
        }
    }
    let mut found: Vec<NextOnPath> = best.into_values().collect();
    found.sort_by(|a, b| b.fit.total_cmp(&a.fit));
    found
}

impl NextPrediction {
    /// Names the path as the reason for tools that nothing was observed of, and adds those that only lead to others,
    /// behind all that are there.
    ///
    /// Raising tools on paths above others that the request asks for was tried: three times the weight left first
    /// guesses as they were (0.427 of NESTFUL's calls), and those among three fell from 0.760 to 0.748.
    pub fn add_paths(&mut self, paths: &[NextOnPath]) {
        let last = self.tools.last().map_or(0.0, |next| next.confidence);
        let mut added = Vec::new();
        for path in paths {
            let reason = NextReason::Path { from: path.from, towards: path.towards };
            match self.tools.iter_mut().find(|next| next.tool == path.tool) {
                Some(next) if next.reason == NextReason::MatchesRequest => next.reason = reason,
                Some(_) => {}
                None => {
                    added.push(NextToolCandidate { tool: path.tool, confidence: last * path.fit, reason });
                }
            }
        }
        let more: f32 = added.iter().map(|next| next.confidence).sum();
        self.tools.extend(added);
        // All confidences together stay what they were.
        let all: f32 = self.tools.iter().map(|next| next.confidence).sum();
        if more > 0.0 {
            self.tools.iter_mut().for_each(|next| next.confidence *= (all - more) / all);
        }
    }
}

/// The graph of what could be called.
struct PathSearch {
    /// The tool of each possible call; those that may be asked for come first.
    tools: Vec<u32>,
    goals: usize,
    options: CallOptions,
    /// The tool that gives each value at hand; `None` for values of the request.
    values: Vec<Option<u32>>,
}

impl PathSearch {
    fn new(
        prediction: &NextPrediction,
        request: &Reading<'_>,
        used: &[u32],
        tools: CallableTools<'_>,
    ) -> PathSearch {
        let used = &used[used.len().saturating_sub(MOST_USED)..];
        let fields_of = |tool: u32| tools.provides.tool(&(tools.id_of)(tool));
        let options = PathOptions::find(prediction, used, tools);
        let mut search = PathSearch {
            tools: options.tools.clone(),
            goals: options.goals,
            options: CallOptions::default(),
            values: request.literals().map(|_| None).collect(),
        };
        let called: Vec<&ToolFields> = options.tools.iter().filter_map(|tool| fields_of(*tool)).collect();
        for (call, fields) in called.iter().enumerate() {
            search.add_call(call, fields, request);
        }
        let mut givers: Vec<u32> = Vec::new();
        for tool in used.iter().rev() {
            if !givers.contains(tool) && fields_of(*tool).is_some() {
                givers.push(*tool);
            }
        }
        let all: Vec<&ToolFields> =
            called.iter().copied().chain(givers.iter().filter_map(|tool| fields_of(*tool))).collect();
        let is_pair = |from: usize, to: usize| {
            to < called.len() && (from >= called.len() || options.feeders.contains(&(from, to)))
        };
        let mappings = mappings_among(&all, is_pair, |input| input.required);
        for (from, to, mapping) in mappings.into_iter().filter(|link| link.2.weight >= LEAST_RESULT) {
            let (parameter, fit) = (mapping.to, f64::from(mapping.weight.min(1.0)));
            match from.checked_sub(called.len()) {
                None => {
                    search.options.links.push(ResultLink { from, to, parameter, path: mapping.from, fit });
                }
                Some(giver) => {
                    let value = search.values.len();
                    search.values.push(Some(givers[giver]));
                    search.options.given.push(GivenArgument { call: to, parameter, value, fit });
                }
            }
        }
        search
    }

    /// Adds a call with the values of the request that it could take.
    fn add_call(&mut self, call: usize, fields: &ToolFields, request: &Reading<'_>) {
        let required: Vec<String> =
            fields.inputs.iter().filter(|input| input.required).map(|input| input.name.clone()).collect();
        // A value goes to one parameter of a call only, the one that it fits best.
        for (value, literal) in request.literals().enumerate() {
            let fits = fields.inputs.iter().filter(|input| input.required);
            let fits = fits.map(|input| (value_fit(request, literal, input), input));
            let best = fits.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(fit, _)| *fit >= LEAST_VALUE);
            if let Some((fit, input)) = best {
                let (parameter, fit) = (input.name.clone(), f64::from(fit.min(1.0)));
                self.options.given.push(GivenArgument { call, parameter, value, fit });
            }
        }
        self.options.calls.push(PossibleCall { required, reliability: 1.0 });
    }

    /// The calls that the best path to a goal begins with, and that take a result at hand.
    fn first_calls(&self, goal: usize) -> Vec<NextOnPath> {
        let options = CallOptions { steps: vec![vec![(goal, 1.0)]], ..self.options.clone() };
        let Ok(mut graph) = CallGraph::new(&options) else { return Vec::new() };
        let Some(path) = graph.paths().next() else { return Vec::new() };
        let begins = |call: &&PathCall| call.sources().next().is_none();
        path.calls.iter().filter(begins).filter_map(|call| self.next_on_path(&path, call, goal)).collect()
    }

    fn next_on_path(&self, path: &CallPath, call: &PathCall, goal: usize) -> Option<NextOnPath> {
        let from = call.arguments.iter().find_map(|(_, source)| match source {
            ArgumentSource::Given(value) => self.values[*value],
            ArgumentSource::Result { .. } => None,
        })?;
        #[expect(clippy::cast_possible_truncation, reason = "a probability")]
        let fit = (-path.cost).exp() as f32;
        Some(NextOnPath { tool: self.tools[call.call], fit, from, towards: self.tools[goal] })
    }
}

/// Tools that could come next.
struct PathOptions {
    /// First the likeliest, then what could give these what they need.
    tools: Vec<u32>,
    /// How many of them the request may ask for.
    goals: usize,
    /// Pairs of tools, by their places, of which the first is a best source of the second.
    feeders: HashSet<(usize, usize)>,
}

impl PathOptions {
    fn find(prediction: &NextPrediction, used: &[u32], tools: CallableTools<'_>) -> PathOptions {
        let has_fields = |tool: u32| tools.provides.tool(&(tools.id_of)(tool)).is_some();
        let likely = prediction.tools.iter().map(|next| next.tool);
        let found: Vec<u32> =
            likely.filter(|tool| has_fields(*tool) && !used.contains(tool)).take(MOST_GOALS).collect();
        let mut options = PathOptions { goals: found.len(), tools: found, feeders: HashSet::new() };
        let mut at = 0;
        while at < options.tools.len() {
            let sources = tools.provides.best_sources(&(tools.id_of)(options.tools[at]));
            for source in sources.into_iter().filter_map(|id| (tools.index_of)(id)) {
                let place = options.tools.iter().position(|tool| *tool == source);
                let is_new = place.is_none() && !used.contains(&source) && options.tools.len() < MOST_OPTIONS;
                if is_new {
                    options.tools.push(source);
                }
                let place = if is_new { Some(options.tools.len() - 1) } else { place };
                options.feeders.extend(place.map(|place| (place, at)));
            }
            at += 1;
        }
        options
    }
}
