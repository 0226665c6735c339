//! Cheapest hyperpaths against brute force, on random hypergraphs with circles, shared sources, free edges and targets
//! that cannot be reached.
//!
//! `PML_HYPERGRAPHS` says how many there are (`cargo xtask soak hyperpaths`).

use std::collections::{BTreeMap, BTreeSet};

use pml_graph::hyperpaths::{HyperedgeError, Hypergraph, Hyperpath, MAX_WEIGHT};

/// Hypergraphs of the ordinary test.
const SAMPLE: u64 = 500;

fn count() -> u64 {
    std::env::var("PML_HYPERGRAPHS").map_or(SAMPLE, |text| text.parse().expect("PML_HYPERGRAPHS is a number"))
}

/// Pseudorandom numbers (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).expect("below `end`")
    }
}

/// An edge as the tests know it; weights are whole tenths.
#[derive(Debug, Clone)]
struct Edge {
    sources: BTreeSet<usize>,
    targets: BTreeSet<usize>,
    tenths: u32,
}

impl Edge {
    fn weight(&self) -> f64 {
        f64::from(self.tenths) / 10.0
    }

    fn random(random: &mut Random, vertices: usize) -> Edge {
        let few = |random: &mut Random, at_least: usize| {
            let count = at_least + [0, 1, 1, 2, 3][random.below(5)];
            (0..count).map(|_| random.below(vertices)).collect()
        };
        let sources = few(random, 0);
        let targets = if random.below(4) == 0 { few(random, 1) } else { [random.below(vertices)].into() };
        Edge { sources, targets, tenths: random_tenths(random) }
    }
}

/// A third of the weights is 0.
fn random_tenths(random: &mut Random) -> u32 {
    [0, 0, 1, 2, 3, 10][random.below(6)]
}

/// Edges by their ids.
type Edges = BTreeMap<usize, Edge>;

fn random_graph(random: &mut Random) -> (usize, Edges, Hypergraph) {
    let vertices = 2 + random.below(6);
    let mut graph = Hypergraph::new(vertices);
    let mut edges = Edges::new();
    for _ in 0..2 + random.below(10) {
        insert(&mut graph, &mut edges, Edge::random(random, vertices));
    }
    (vertices, edges, graph)
}

fn insert(graph: &mut Hypergraph, edges: &mut Edges, edge: Edge) {
    let (sources, targets): (Vec<_>, Vec<_>) =
        (edge.sources.iter().copied().collect(), edge.targets.iter().copied().collect());
    let id = graph.add_edge(&sources, &targets, edge.weight()).expect("a sound edge");
    edges.insert(id, edge);
}

/// Cost in tenths, for every set of edges that derives `target`: all ways to name an edge for each vertex are tried.
fn all_hyperpaths(edges: &Edges, target: usize) -> BTreeMap<BTreeSet<usize>, u64> {
    let mut found = BTreeMap::new();
    choose(edges, target, &mut BTreeMap::from([(target, None)]), &mut found);
    found
}

fn choose(
    edges: &Edges,
    target: usize,
    chosen: &mut BTreeMap<usize, Option<usize>>,
    found: &mut BTreeMap<BTreeSet<usize>, u64>,
) {
    let Some(open) = chosen.iter().find_map(|(vertex, edge)| edge.is_none().then_some(*vertex)) else {
        if let Some(cost) = unfold(edges, chosen, target, &mut Vec::new()) {
            let set = chosen.values().flatten().copied().collect();
            let best = found.entry(set).or_insert(cost);
            *best = cost.min(*best);
        }
        return;
    };
    for (id, edge) in edges.iter().filter(|(_, edge)| edge.targets.contains(&open)) {
        let mut chosen = chosen.clone();
        chosen.insert(open, Some(*id));
        for source in &edge.sources {
            chosen.entry(*source).or_insert(None);
        }
        choose(edges, target, &mut chosen, found);
    }
}

/// The cost of a vertex, paid at each use; `None` where it is derived from itself.
fn unfold(
    edges: &Edges,
    chosen: &BTreeMap<usize, Option<usize>>,
    vertex: usize,
    above: &mut Vec<usize>,
) -> Option<u64> {
    if above.contains(&vertex) {
        return None;
    }
    above.push(vertex);
    let edge = &edges[&chosen[&vertex]?];
    let sources = edge.sources.iter().map(|source| unfold(edges, chosen, *source, above));
    let cost = sources.sum::<Option<u64>>();
    above.pop();
    Some(u64::from(edge.tenths) + cost?)
}

fn tenths(cost: f64) -> u64 {
    let tenths = cost * 10.0;
    assert!((tenths - tenths.round()).abs() < 1e-6, "{cost} is a sum of tenths");
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small sum of weights")]
    {
        tenths.round() as u64
    }
}

/// The steps stand after what they need, and each vertex once.
fn check_order(edges: &Edges, path: &Hyperpath, target: usize) {
    let mut reached = BTreeSet::new();
    for (vertex, edge) in &path.steps {
        let edge = &edges[edge];
        assert!(edge.sources.is_subset(&reached), "{path:?} uses what it has not");
        assert!(edge.targets.contains(vertex), "{path:?}");
        assert!(reached.insert(*vertex), "{path:?} derives {vertex} twice");
    }
    assert_eq!(path.steps.last().map(|step| step.0), Some(target));
}

#[track_caller]
fn check_best(edges: &Edges, graph: &mut Hypergraph, target: usize) {
    let mut expected = all_hyperpaths(edges, target);
    let mut costs: Vec<u64> = expected.values().copied().collect();
    costs.sort_unstable();
    assert_eq!(graph.cost(target).map(tenths), costs.first().copied(), "cost of {target} in {edges:?}");
    let found: Vec<Hyperpath> = graph.best(target).collect();
    let in_order: Vec<u64> = found.iter().map(|path| tenths(path.cost)).collect();
    assert_eq!(in_order, costs, "hyperpaths to {target} in {edges:?}");
    for path in &found {
        check_order(edges, path, target);
        let set: BTreeSet<usize> = path.edges().into_iter().collect();
        assert_eq!(expected.remove(&set), Some(tenths(path.cost)), "{path:?} in {edges:?}");
    }
}

#[test]
fn hyperpaths_are_those_of_brute_force() {
    let (mut unreached, mut several) = (0, 0);
    for seed in 0..count() {
        let mut random = Random(seed);
        let (vertices, edges, mut graph) = random_graph(&mut random);
        for target in 0..vertices {
            check_best(&edges, &mut graph, target);
        }
        unreached += usize::from(graph.cost(0).is_none());
        several += usize::from(graph.best(0).count() > 1);
    }
    let least = usize::try_from(count() / 10).expect("a small number");
    assert!(unreached > least && several > least, "{unreached} unreached, {several} with a choice");
}

#[test]
fn a_changed_graph_is_like_a_new_one() {
    for seed in 0..count() {
        let mut random = Random(seed ^ 0xd1ce);
        let (vertices, mut edges, mut graph) = random_graph(&mut random);
        for _ in 0..8 {
            change(&mut random, vertices, &mut graph, &mut edges);
            if random.below(3) > 0 {
                let mut anew = build(vertices, &edges);
                for target in 0..vertices {
                    assert_eq!(graph.cost(target), anew.cost(target), "cost of {target} in {edges:?}");
                    let (kept, new) = (graph.shortest(target), anew.shortest(target));
                    assert_eq!(kept, new, "the first of equals is chosen, whatever changed before");
                }
                check_best(&edges, &mut graph, random.below(vertices));
            }
        }
    }
}

fn change(random: &mut Random, vertices: usize, graph: &mut Hypergraph, edges: &mut Edges) {
    let ids: Vec<usize> = edges.keys().copied().collect();
    match (ids.is_empty(), random.below(4)) {
        (true, _) | (_, 0) => insert(graph, edges, Edge::random(random, vertices)),
        (_, 1) => {
            let id = ids[random.below(ids.len())];
            graph.remove_edge(id).expect("the edge is there");
            edges.remove(&id);
        }
        _ => {
            let id = ids[random.below(ids.len())];
            let edge = edges.get_mut(&id).expect("the edge is there");
            edge.tenths = random_tenths(random);
            graph.set_weight(id, edge.weight()).expect("a sound weight");
        }
    }
}

/// The same edges under the same ids in a graph that never had others.
fn build(vertices: usize, edges: &Edges) -> Hypergraph {
    let mut graph = Hypergraph::new(vertices);
    for id in 0..edges.keys().last().map_or(0, |last| last + 1) {
        let edge = edges.get(&id);
        let (sources, targets) = edge.map_or((Vec::new(), vec![0]), |edge| {
            (edge.sources.iter().copied().collect(), edge.targets.iter().copied().collect())
        });
        let added = graph.add_edge(&sources, &targets, edge.map_or(0.0, Edge::weight));
        if edge.is_none() {
            graph.remove_edge(added.expect("a sound edge")).expect("the edge is there");
        }
    }
    graph
}

#[test]
fn all_sources_are_needed_and_each_use_is_paid() {
    let mut graph = Hypergraph::new(4);
    let [given, left, right, target] = [0, 1, 2, 3];
    graph.add_edge(&[given], &[left], 1.0).unwrap();
    graph.add_edge(&[given], &[right], 1.0).unwrap();
    graph.add_edge(&[left, right], &[target], 1.0).unwrap();
    assert_eq!(graph.cost(target), None);
    graph.add_edge(&[], &[given], 2.0).unwrap();
    assert_eq!(graph.cost(target), Some(7.0), "what is given is used twice and paid twice");
}

#[test]
fn a_cost_too_large_to_count_is_not_reached() {
    let mut graph = Hypergraph::new(200);
    graph.add_edge(&[], &[0], 1.0).unwrap();
    graph.add_edge(&[], &[1], 1.0).unwrap();
    for vertex in 2..200 {
        graph.add_edge(&[vertex - 2, vertex - 1], &[vertex], 1.0).unwrap();
    }
    assert_eq!(graph.cost(5), Some(15.0));
    assert_eq!(graph.cost(199), None);
}

#[test]
fn unsound_edges_are_refused() {
    let mut graph = Hypergraph::new(2);
    for weight in [-0.1, f64::NAN, f64::INFINITY, MAX_WEIGHT * 2.0] {
        assert!(matches!(graph.add_edge(&[], &[0], weight), Err(HyperedgeError::Weight(_))), "{weight}");
    }
    assert_eq!(graph.add_edge(&[7], &[0], 1.0), Err(HyperedgeError::UnknownVertex(7)));
    assert_eq!(graph.add_edge(&[0], &[], 1.0), Err(HyperedgeError::NoTarget));
    assert_eq!(graph.set_weight(3, 1.0), Err(HyperedgeError::UnknownEdge(3)));
    let edge = graph.add_edge(&[], &[0], 1.0).unwrap();
    graph.remove_edge(edge).unwrap();
    assert_eq!(graph.remove_edge(edge), Err(HyperedgeError::UnknownEdge(edge)));
    assert!(graph.best(9).next().is_none());
}
