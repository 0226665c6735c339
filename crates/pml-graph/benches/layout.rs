//! How long pictures take: a procedure of 500 nodes, a map of 5,000.
#![allow(missing_docs, reason = "criterion makes the items")]

use criterion::{Criterion, criterion_group, criterion_main};
use pml_graph::graph::csr::CsrGraph;
use pml_graph::layout::layered::{LayoutBox, Spacing, layered};
use pml_graph::layout::map;

fn numbers(mut state: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    }
}

fn procedure(criterion: &mut Criterion) {
    let mut number = numbers(7);
    let boxes = [LayoutBox { width: 150.0, height: 44.0, parent: None }; 500];
    let mut edges: Vec<(usize, usize)> = (1..500).map(|to| (to - 1 - number(to.min(9)), to)).collect();
    edges.extend((0..400).map(|_| {
        let from = number(499);
        (from, from + 1 + number((499 - from).min(60)))
    }));
    let spacing = Spacing { between: 28.0, layers: 56.0, padding: 16.0 };
    criterion.bench_function("layered, 500 nodes", |bench| {
        bench.iter(|| layered(&boxes, &edges, &spacing));
    });
}

fn whole_graph(criterion: &mut Criterion) {
    let mut number = numbers(3);
    let sizes: Vec<usize> = (0..60).map(|place| 20 + place * 2).chain([300]).collect();
    let communities: Vec<usize> =
        sizes.iter().enumerate().flat_map(|(community, size)| vec![community; *size]).collect();
    let (mut first, mut edges) = (0, Vec::new());
    for size in sizes {
        for node in 1..size {
            for _ in 0..6 {
                edges.push(((first + node) as u32, (first + number(node)) as u32, 1.0));
            }
        }
        edges.push((first as u32, number(communities.len()) as u32, 0.2));
        first += size;
    }
    let graph = CsrGraph::new(communities.len(), edges).undirected();
    criterion.bench_function(&format!("map, {} nodes", communities.len()), |bench| {
        bench.iter(|| map::draw(&graph, &communities));
    });
}

criterion_group!(benches, procedure, whole_graph);
criterion_main!(benches);
