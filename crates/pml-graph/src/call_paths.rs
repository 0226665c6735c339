//! Ways to serve a request by calls: which tools, in which order, with arguments from where.
//!
//! The calls that could be made, the steps of the request and the arguments they need form a hypergraph. A call needs
//! all its required arguments, an argument needs a value of the request or a result of another call, a step needs one
//! of the calls that could serve it, and the goal needs all steps. A hyperpath to the goal is a plan: its cost is the
//! risk of everything it relies on, plus a penalty per edge for its length.

use std::collections::HashSet;

use crate::hyperpaths::{HyperedgeError, Hypergraph, Hyperpath, edge_weight};

/// Hyperpaths looked at for paths in which no value is an argument twice. Where many parameters could take the same few
/// values, more hyperpaths than can ever be listed use one of them twice.
const MOST_HYPERPATHS: usize = 2_000;

/// What could be called, and where arguments could come from.
#[derive(Debug, Clone, Default)]
pub struct CallOptions {
    /// Calls that may be made.
    pub calls: Vec<PossibleCall>,
    /// For each step of the request, the calls that could serve it with their probabilities.
    pub steps: Vec<Vec<(usize, f64)>>,
    /// Values at hand that could be arguments.
    pub given: Vec<GivenArgument>,
    /// Results of calls that could be arguments of others.
    pub links: Vec<ResultLink>,
}

/// A call that may be made.
#[derive(Debug, Clone)]
pub struct PossibleCall {
    /// Parameters that must have a value.
    pub required: Vec<String>,
    /// Probability that the call succeeds, above 0.
    pub reliability: f64,
}

/// A value at hand that could be an argument.
#[derive(Debug, Clone)]
pub struct GivenArgument {
    /// Index of the call.
    pub call: usize,
    /// The parameter.
    pub parameter: String,
    /// Number of the value, for the caller.
    pub value: usize,
    /// Probability that the value belongs there, above 0.
    pub fit: f64,
}

/// A result of one call that could be an argument of another.
#[derive(Debug, Clone)]
pub struct ResultLink {
    /// Index of the call that gives.
    pub from: usize,
    /// Index of the call that takes.
    pub to: usize,
    /// The parameter that takes it.
    pub parameter: String,
    /// Path of the value in the result; empty for the whole.
    pub path: String,
    /// Probability that the value belongs there, above 0.
    pub fit: f64,
}

/// Calls that together serve a request.
#[derive(Debug, Clone, PartialEq)]
pub struct CallPath {
    /// Calls in an order in which each finds what it needs.
    pub calls: Vec<PathCall>,
    /// For each step of the request, the call that serves it: an index into [`CallOptions::calls`].
    pub steps: Vec<usize>,
    /// Cost of everything the path relies on, each counted once: a call is made once, however many take its result.
    pub cost: f64,
}

/// One call of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct PathCall {
    /// Index into [`CallOptions::calls`].
    pub call: usize,
    /// Arguments with their sources.
    pub arguments: Vec<(String, ArgumentSource)>,
}

/// Where an argument comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentSource {
    /// A value at hand, by its number.
    Given(usize),
    /// A result of another call.
    Result {
        /// Index into [`CallOptions::calls`].
        call: usize,
        /// Path of the value in the result; empty for the whole.
        path: String,
    },
}

impl CallPath {
    /// Number of calls in the longest chain in which each takes something from the one before.
    pub fn depth(&self) -> usize {
        let mut depths: Vec<(usize, usize)> = Vec::new();
        for call in &self.calls {
            let below = call.sources().filter_map(|source| depths.iter().find(|depth| depth.0 == source));
            let depth = below.map(|depth| depth.1).max().unwrap_or(0) + 1;
            depths.push((call.call, depth));
        }
        depths.into_iter().map(|depth| depth.1).max().unwrap_or(0)
    }
}

impl PathCall {
    /// Calls whose results it takes.
    pub fn sources(&self) -> impl Iterator<Item = usize> {
        self.arguments.iter().filter_map(|(_, source)| match source {
            ArgumentSource::Result { call, .. } => Some(*call),
            ArgumentSource::Given(_) => None,
        })
    }
}

/// The graph of what could be called, ready to be asked for its best paths.
pub struct CallGraph<'o> {
    options: &'o CallOptions,
    graph: Hypergraph,
    meanings: Vec<EdgeMeaning>,
    weights: Vec<f64>,
    goal: usize,
}

/// What an edge of the hypergraph stands for.
#[derive(Debug, Clone, Copy)]
enum EdgeMeaning {
    Given(usize),
    Link(usize),
    Call(usize),
    Step { step: usize, call: usize },
    Goal,
}

impl<'o> CallGraph<'o> {
    /// Builds the graph. Arguments for parameters that are not required take no part in it.
    ///
    /// # Errors
    /// A probability is not above 0, or an index names nothing.
    pub fn new(options: &'o CallOptions) -> Result<CallGraph<'o>, HyperedgeError> {
        let mut built = CallGraph {
            options,
            graph: Hypergraph::new(0),
            meanings: Vec::new(),
            weights: Vec::new(),
            goal: 0,
        };
        let called: Vec<usize> = options.calls.iter().map(|_| built.graph.add_vertex()).collect();
        let parameters: Vec<Vec<usize>> = options
            .calls
            .iter()
            .map(|call| call.required.iter().map(|_| built.graph.add_vertex()).collect())
            .collect();
        let steps: Vec<usize> = options.steps.iter().map(|_| built.graph.add_vertex()).collect();
        built.goal = built.graph.add_vertex();
        let parameter = |call: usize, name: &str| {
            let of_call = options.calls.get(call)?;
            let at = of_call.required.iter().position(|required| required == name)?;
            Some(parameters[call][at])
        };
        let vertex = |call: usize| called.get(call).copied().ok_or(HyperedgeError::UnknownVertex(call));
        for (at, given) in options.given.iter().enumerate() {
            if let Some(target) = parameter(given.call, &given.parameter) {
                built.add(&[], target, given.fit, EdgeMeaning::Given(at))?;
            }
        }
        for (at, link) in options.links.iter().enumerate() {
            if let Some(target) = parameter(link.to, &link.parameter) {
                built.add(&[vertex(link.from)?], target, link.fit, EdgeMeaning::Link(at))?;
            }
        }
        for (at, call) in options.calls.iter().enumerate() {
            built.add(&parameters[at], called[at], call.reliability, EdgeMeaning::Call(at))?;
        }
        for (step, candidates) in options.steps.iter().enumerate() {
            for (call, probability) in candidates {
                let meaning = EdgeMeaning::Step { step, call: *call };
                built.add(&[vertex(*call)?], steps[step], *probability, meaning)?;
            }
        }
        built.add(&steps, built.goal, 1.0, EdgeMeaning::Goal)?;
        Ok(built)
    }

    fn add(
        &mut self,
        sources: &[usize],
        target: usize,
        reliability: f64,
        meaning: EdgeMeaning,
    ) -> Result<(), HyperedgeError> {
        let weight = edge_weight(reliability);
        self.graph.add_edge(sources, &[target], weight)?;
        self.meanings.push(meaning);
        self.weights.push(weight);
        Ok(())
    }

    /// Paths that serve all steps, computed as they are asked for, in the order of their hyperpaths' costs, in which
    /// each use counts. A value is no argument twice in the same call; paths that come after thousands of hyperpaths
    /// in which one is are not found.
    pub fn paths(&mut self) -> impl Iterator<Item = CallPath> {
        let CallGraph { options, graph, meanings, weights, goal } = self;
        let paths = graph.best(*goal).take(MOST_HYPERPATHS).map(|path| CallPath {
            cost: path.steps.iter().map(|(_, edge)| weights[*edge]).sum(),
            ..call_path(options, meanings, &path)
        });
        paths.filter(|path| path.calls.iter().all(takes_each_value_once))
    }
}

fn takes_each_value_once(call: &PathCall) -> bool {
    let mut seen = HashSet::new();
    call.arguments.iter().all(|(_, source)| match source {
        ArgumentSource::Given(value) => seen.insert(*value),
        ArgumentSource::Result { .. } => true,
    })
}

fn call_path(options: &CallOptions, meanings: &[EdgeMeaning], path: &Hyperpath) -> CallPath {
    let mut arguments: Vec<(usize, String, ArgumentSource)> = Vec::new();
    let mut calls = Vec::new();
    let mut steps = vec![0; options.steps.len()];
    for (_, edge) in &path.steps {
        match meanings[*edge] {
            EdgeMeaning::Given(at) => {
                let given = &options.given[at];
                arguments.push((given.call, given.parameter.clone(), ArgumentSource::Given(given.value)));
            }
            EdgeMeaning::Link(at) => {
                let link = &options.links[at];
                let source = ArgumentSource::Result { call: link.from, path: link.path.clone() };
                arguments.push((link.to, link.parameter.clone(), source));
            }
            EdgeMeaning::Call(call) => {
                let (own, others) = arguments.into_iter().partition(|argument| argument.0 == call);
                arguments = others;
                let own: Vec<(usize, String, ArgumentSource)> = own;
                let arguments = own.into_iter().map(|(_, name, source)| (name, source)).collect();
                calls.push(PathCall { call, arguments });
            }
            EdgeMeaning::Step { step, call } => steps[step] = call,
            EdgeMeaning::Goal => {}
        }
    }
    CallPath { calls, steps, cost: path.cost }
}
