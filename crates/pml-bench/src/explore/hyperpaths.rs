//! The best hyperpaths over a large catalogue, found anew and after one tool became less reliable.
//!
//! The graph has the form that exploration gives it: a call needs all its parameters, a parameter a value or the result
//! of another call, a step one of the calls that could serve it, the goal all steps.

use std::time::{Duration, Instant};

use pml::problem::Problem;
use pml_graph::hyperpaths::{HyperedgeError, Hypergraph, Hyperpath, edge_weight};

use crate::figure::{BenchFigure, failed, milliseconds, quantile};

/// Tools in the catalogue.
const TOOLS: usize = 5_000;
/// Types of fields: two fields of one type can be passed on.
const TYPES: usize = 400;
/// Types of the values that the request gives.
const GIVEN_TYPES: usize = 20;
/// Sources of each parameter, as many as the graph of tools keeps.
const SOURCES: usize = 5;
/// Steps of the request, each with this many tools that could serve it.
const STEPS: usize = 3;
const TOOLS_PER_STEP: usize = 6;
/// Paths that are asked for.
const PATHS: usize = 3;

pub(super) fn measure(rounds: usize) -> Result<Vec<BenchFigure>, Problem> {
    let (mut builds, mut colds, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    let mut found = Vec::new();
    for round in 0..rounds.max(1) {
        let mut random = Random(round as u64);
        let catalogue = Catalogue::generate(&mut random);
        let (build, built) = timed(|| catalogue.graph(&mut random));
        let mut built = built.map_err(failed)?;
        let (cold, paths) = timed(|| built.best());
        if paths.len() < PATHS {
            return Err(failed("a generated request has fewer than three paths"));
        }
        // A call of the best path: a change anywhere else would cost less.
        let used = paths[0].edges();
        let call = used.iter().copied().find(|edge| built.calls.contains(edge));
        let call = call.ok_or_else(|| failed("a path makes no call"))?;
        let (change, changed) = timed(|| {
            built.graph.set_weight(call, edge_weight(0.3))?;
            Ok::<_, HyperedgeError>(built.best())
        });
        found.push(changed.map_err(failed)?.len());
        builds.push(build);
        colds.push(cold);
        changes.push(change);
    }
    let [build, cold, change] =
        [builds, colds, changes].map(|mut times| [0.5, 1.0].map(|share| quantile(&mut times, share)));
    let told = |[median, most]: [Duration; 2]| format!("{} / {}", milliseconds(median), milliseconds(most));
    let within = |time: [Duration; 2], most: u64| time[0] <= Duration::from_millis(most);
    Ok(vec![
        BenchFigure::of(format!("a hypergraph of {TOOLS} tools, built: median / slowest"), told(build)),
        BenchFigure::of(format!("its {PATHS} best hyperpaths, from cold"), told(cold))
            .target("≤ 20 ms", within(cold, 20)),
        BenchFigure::of("the same after one changed weight", told(change))
            .target("≤ 2 ms", within(change, 2) && found.iter().all(|paths| *paths == PATHS)),
    ])
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let started = Instant::now();
    let done = work();
    (started.elapsed(), done)
}

/// Tools by the types of their fields.
struct Catalogue {
    tools: Vec<GeneratedTool>,
    /// Tools that give each type.
    givers: Vec<Vec<usize>>,
}

struct GeneratedTool {
    required: Vec<usize>,
    reliability: f64,
}

impl Catalogue {
    fn generate(random: &mut Random) -> Catalogue {
        let mut givers = vec![Vec::new(); TYPES];
        let tools = (0..TOOLS)
            .map(|tool| {
                for _ in 0..=random.below(3) {
                    givers[random.below(TYPES)].push(tool);
                }
                let required = (0..random.below(4)).map(|_| random.below(TYPES)).collect();
                GeneratedTool { required, reliability: random.share(0.6, 1.0) }
            })
            .collect();
        Catalogue { tools, givers }
    }

    fn graph(&self, random: &mut Random) -> Result<RequestGraph, HyperedgeError> {
        let mut graph = Hypergraph::new(TOOLS + STEPS + 1);
        let mut calls = Vec::new();
        for (tool, of_tool) in self.tools.iter().enumerate() {
            let mut parameters = Vec::new();
            for field in &of_tool.required {
                let parameter = graph.add_vertex();
                parameters.push(parameter);
                if *field < GIVEN_TYPES {
                    graph.add_edge(&[], &[parameter], edge_weight(random.share(0.5, 1.0)))?;
                }
                let givers = &self.givers[*field];
                for _ in 0..SOURCES.min(givers.len()) {
                    let giver = givers[random.below(givers.len())];
                    if giver != tool {
                        graph.add_edge(&[giver], &[parameter], edge_weight(random.share(0.3, 1.0)))?;
                    }
                }
            }
            calls.push(graph.add_edge(&parameters, &[tool], edge_weight(of_tool.reliability))?);
        }
        let steps: Vec<usize> = (TOOLS..TOOLS + STEPS).collect();
        for step in &steps {
            for _ in 0..TOOLS_PER_STEP {
                graph.add_edge(&[random.below(TOOLS)], &[*step], edge_weight(random.share(0.1, 0.9)))?;
            }
        }
        let goal = TOOLS + STEPS;
        graph.add_edge(&steps, &[goal], edge_weight(1.0))?;
        Ok(RequestGraph { graph, calls, goal })
    }
}

/// The graph of one request.
struct RequestGraph {
    graph: Hypergraph,
    /// The edges that are calls.
    calls: Vec<usize>,
    goal: usize,
}

impl RequestGraph {
    fn best(&mut self) -> Vec<Hyperpath> {
        self.graph.best(self.goal).take(PATHS).collect()
    }
}

/// Pseudorandom numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn share(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
