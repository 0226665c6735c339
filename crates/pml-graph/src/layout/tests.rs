//! Pictures keep their promises: nothing overlaps, edges lead downwards, the same input gives the same picture.

use std::time::Instant;

use super::layered::{LayeredLayout, LayoutBox, Rectangle, Spacing, layered};
use super::map::{self, GraphMap};
use crate::graph::csr::CsrGraph;

const SPACING: Spacing = Spacing { between: 24.0, layers: 48.0, padding: 16.0 };

fn boxes(number: usize) -> Vec<LayoutBox> {
    let size = |node: usize| LayoutBox { width: 80.0 + (node % 5) as f64 * 30.0, height: 40.0, parent: None };
    (0..number).map(size).collect()
}

/// Pseudo-random numbers, the same every time.
fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    }
}

fn overlap(one: &Rectangle, other: &Rectangle) -> bool {
    one.x + 0.01 < other.x + other.width
        && other.x + 0.01 < one.x + one.width
        && one.y + 0.01 < other.y + other.height
        && other.y + 0.01 < one.y + one.height
}

#[track_caller]
fn check(given: &[LayoutBox], edges: &[(usize, usize)]) -> LayeredLayout {
    let layout = layered(given, edges, &SPACING);
    for (one, inner) in given.iter().enumerate() {
        let place = layout.boxes[one];
        assert!(place.x >= -0.01 && place.y >= -0.01, "{one}: {place:?}");
        assert!(place.x + place.width <= layout.width + 0.01, "{one}: {place:?} of {}", layout.width);
        assert!(place.y + place.height <= layout.height + 0.01, "{one}: {place:?} of {}", layout.height);
        for (other, beside) in given.iter().enumerate().skip(one + 1) {
            if inner.parent == beside.parent {
                assert!(!overlap(&place, &layout.boxes[other]), "{one} and {other}: {layout:?}");
            }
        }
        if let Some(outer) = inner.parent {
            let outer = layout.boxes[outer];
            assert!(outer.x <= place.x && place.x + place.width <= outer.x + outer.width + 0.01, "{one}");
            assert!(outer.y < place.y && place.y + place.height <= outer.y + outer.height + 0.01, "{one}");
        }
    }
    for (edge, (from, to)) in edges.iter().enumerate() {
        let route = &layout.routes[edge];
        if !layout.upwards[edge] && from != to && !route.is_empty() {
            let (from, to) = (layout.boxes[*from], layout.boxes[*to]);
            assert!(from.y + from.height <= to.y, "edge {edge} does not lead down: {from:?} {to:?}");
            assert!(route.windows(2).all(|pair| pair[0].1 <= pair[1].1 + 0.01), "edge {edge}: {route:?}");
        }
    }
    assert_eq!(layout, layered(given, edges, &SPACING), "the same picture every time");
    layout
}

#[test]
fn a_chain_is_a_column() {
    let layout = check(&[boxes(1)[0]; 4], &[(0, 1), (1, 2), (2, 3)]);
    assert!(layout.boxes.windows(2).all(|pair| (pair[0].x - pair[1].x).abs() < 0.01), "{layout:?}");
}

#[test]
fn a_diamond_is_symmetric_and_does_not_cross() {
    let layout = check(&[boxes(1)[0]; 4], &[(0, 1), (0, 2), (1, 3), (2, 3)]);
    let centre = |node: usize| layout.boxes[node].x + layout.boxes[node].width / 2.0;
    assert!((centre(0) - (centre(1) + centre(2)) / 2.0).abs() < 1.0, "{layout:?}");
    assert!((centre(0) - centre(3)).abs() < 1.0, "{layout:?}");
}

#[test]
fn a_cycle_leads_up_exactly_once() {
    let layout = check(&boxes(3), &[(0, 1), (1, 2), (2, 0), (1, 1)]);
    assert_eq!(layout.upwards, [false, false, true, false]);
    let back = &layout.routes[2];
    assert!(back[0].1 > back[back.len() - 1].1, "{back:?}");
    assert_eq!(layout.routes[3], [], "an edge to itself has no line");
}

#[test]
fn boxes_hold_what_is_inside_of_them() {
    let mut given = boxes(7);
    given[1].parent = Some(0);
    given[2].parent = Some(0);
    given[3].parent = Some(2);
    given[4].parent = Some(2);
    let edges = [(5, 0), (1, 3), (3, 4), (4, 6), (0, 6), (0, 1), (5, 3)];
    let layout = check(&given, &edges);
    assert_eq!(layout.routes[5], [], "a box is not connected with what is in it");
    let into = &layout.routes[6];
    let end = into[into.len() - 1];
    assert!((end.1 - layout.boxes[3].y).abs() < 0.01, "the line ends at the inner node: {into:?}");
}

#[test]
fn nothing_is_a_picture_too() {
    assert_eq!(check(&[], &[]), LayeredLayout::default());
    check(&boxes(1), &[(0, 0)]);
    check(&boxes(40), &[]);
}

#[test]
fn random_graphs_with_nesting_keep_the_promises() {
    for seed in 0..30 {
        let mut number = numbers(seed);
        let mut given = boxes(2 + number(60));
        let all = given.len();
        for (node, inner) in given.iter_mut().enumerate().skip(1) {
            if number(3) == 0 {
                inner.parent = Some(number(node));
            }
        }
        let edges: Vec<(usize, usize)> = (0..number(3 * all)).map(|_| (number(all), number(all))).collect();
        check(&given, &edges);
    }
}

#[test]
fn five_hundred_nodes_take_milliseconds() {
    let mut number = numbers(7);
    let given = boxes(500);
    let mut edges: Vec<(usize, usize)> = (1..500).map(|to| (to - 1 - number(to.min(9)), to)).collect();
    edges.extend((0..400).map(|_| {
        let from = number(499);
        (from, from + 1 + number((499 - from).min(60)))
    }));
    let began = Instant::now();
    check(&given, &edges);
    // Twice, without optimisation, on a busy machine; criterion measures it (`benches/layout.rs`).
    assert!(began.elapsed().as_millis() < 3_000, "{:?}", began.elapsed());
}

/// Communities of a few sizes, dense inside and with a few edges between them.
fn clustered(sizes: &[usize]) -> (CsrGraph, Vec<usize>) {
    let mut number = numbers(3);
    let communities: Vec<usize> =
        sizes.iter().enumerate().flat_map(|(community, size)| vec![community; *size]).collect();
    let all = communities.len();
    let mut edges = Vec::new();
    let mut first = 0;
    for size in sizes {
        for node in 1..*size {
            for _ in 0..3 {
                edges.push(((first + node) as u32, (first + number(node)) as u32, 1.0));
            }
        }
        if *size > 1 {
            edges.push((first as u32, number(all) as u32, 0.2));
        }
        first += size;
    }
    (CsrGraph::new(all, edges).undirected(), communities)
}

#[track_caller]
fn check_map(sizes: &[usize]) -> GraphMap {
    let (graph, communities) = clustered(sizes);
    let map = map::draw(&graph, &communities);
    for (place, one) in map.communities.iter().enumerate() {
        assert!(one.centre.0 - one.radius >= 0.0 && one.centre.0 + one.radius <= map.width, "{one:?}");
        assert!(one.centre.1 - one.radius >= 0.0 && one.centre.1 + one.radius <= map.height, "{one:?}");
        for other in &map.communities[place + 1..] {
            let distance = (one.centre.0 - other.centre.0).hypot(one.centre.1 - other.centre.1);
            assert!(distance + 0.1 >= one.radius + other.radius, "{one:?} {other:?}");
        }
        for &node in &one.members {
            let (x, y) = map.positions[node];
            assert!((x - one.centre.0).hypot(y - one.centre.1) <= one.radius, "{node} is outside");
            assert_eq!(map.community_of[node], place);
        }
    }
    assert_eq!(map, map::draw(&graph, &communities), "the same map every time");
    map
}

#[test]
fn communities_do_not_overlap() {
    let map = check_map(&[1, 40, 7, 1, 1, 90, 2, 12, 12, 1]);
    assert_eq!(map.communities.len(), 7, "those without a community are together");
    let last = &map.communities[6];
    assert!(last.unconnected && last.members == [0, 48, 49, 166]);
    assert_eq!(map.communities[0].members.len(), 90);
    let close = map.positions.iter().enumerate().any(|(one, point)| {
        let near = |other: &(f64, f64)| (point.0 - other.0).hypot(point.1 - other.1) < 20.0;
        map.positions[one + 1..].iter().any(near)
    });
    assert!(!close, "nodes are apart");
}

#[test]
fn empty_and_tiny_maps() {
    assert_eq!(check_map(&[]), GraphMap::default());
    assert_eq!(check_map(&[1]).communities.len(), 1);
    check_map(&[2]);
}

#[test]
fn five_thousand_nodes_have_their_place() {
    let sizes: Vec<usize> = (0..60).map(|place| 20 + place * 2).chain([600, 400]).collect();
    let map = check_map(&sizes);
    assert!(map.positions.len() > 5_000);
    assert!(map.width < 12_000.0 && map.height < 12_000.0, "{} x {}", map.width, map.height);
}
