//! Layout of one level without nesting: ranks, order within ranks, coordinates, routes.

use super::coordinates::assign_x;
use super::order::order_layers;
use super::shape::{Layers, Point, Spacing};

/// Largest number of boxes side by side; further ones go to the next layer, so that the picture stays readable.
const MOST_IN_A_LAYER: usize = 14;
/// Largest number of bends over all edges. Long edges beyond it are straight lines.
const MOST_BENDS: usize = 20_000;
/// Width that a passing edge takes in a layer, as a share of the space between boxes.
const LANE: f64 = 0.4;

/// The boxes of a level by size, and the edges between them.
pub(super) struct Level {
    pub(super) sizes: Vec<Point>,
    pub(super) edges: Vec<(usize, usize)>,
}

pub(super) struct PlacedLevel {
    pub(super) corners: Vec<Point>,
    pub(super) routes: Vec<Vec<Point>>,
    pub(super) upwards: Vec<bool>,
    pub(super) width: f64,
    pub(super) height: f64,
}

pub(super) fn lay_out(level: &Level, spacing: &Spacing) -> PlacedLevel {
    let number = level.sizes.len();
    let upwards = closing_edges(number, &level.edges);
    let downwards: Vec<(usize, usize)> = level
        .edges
        .iter()
        .zip(&upwards)
        .map(|(&(from, to), up)| if *up { (to, from) } else { (from, to) })
        .collect();
    let ranks = ranks(number, &downwards);
    let (mut layers, bends) = build_layers(level, &downwards, &ranks, spacing);
    order_layers(&mut layers);
    let centres = assign_x(&layers, spacing.between);
    let heights: Vec<f64> = layers
        .layers
        .iter()
        .map(|layer| {
            let boxes = layer.iter().filter(|item| **item < number);
            boxes.map(|item| level.sizes[*item].1).fold(0.0, f64::max)
        })
        .collect();
    let mut tops = Vec::with_capacity(heights.len());
    let mut y = 0.0;
    for height in &heights {
        tops.push(y);
        y += height + spacing.layers;
    }
    let corners: Vec<Point> = (0..number)
        .map(|item| {
            let (width, height) = level.sizes[item];
            let spare = heights[ranks[item]] - height;
            (centres[item] - width / 2.0, tops[ranks[item]] + spare / 2.0)
        })
        .collect();
    let routes = routes(level, &downwards, &bends, (&ranks, &heights, &tops), &centres, &corners);
    let routes = routes
        .into_iter()
        .zip(&upwards)
        .map(|(mut route, up)| {
            if *up {
                route.reverse();
            }
            route
        })
        .collect();
    let right = (0..number).map(|item| corners[item].0 + level.sizes[item].0).fold(0.0, f64::max);
    let bent = centres[number..].iter().copied().fold(0.0, f64::max);
    PlacedLevel { corners, routes, upwards, width: right.max(bent), height: (y - spacing.layers).max(0.0) }
}

/// Which edges close a cycle: those that lead back to a box which is not finished yet, in a depth-first search in the
/// order of the boxes.
fn closing_edges(number: usize, edges: &[(usize, usize)]) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Visit {
        New,
        Open,
        Done,
    }
    let mut out: Vec<Vec<(usize, usize)>> = vec![Vec::new(); number];
    for (edge, &(from, to)) in edges.iter().enumerate() {
        out[from].push((to, edge));
    }
    out.iter_mut().for_each(|targets| targets.sort_unstable());
    let mut closing = vec![false; edges.len()];
    let mut visits = vec![Visit::New; number];
    for start in 0..number {
        if visits[start] != Visit::New {
            continue;
        }
        visits[start] = Visit::Open;
        let mut open = vec![(start, 0)];
        while let Some((node, next)) = open.last_mut() {
            let Some(&(to, edge)) = out[*node].get(*next) else {
                visits[*node] = Visit::Done;
                open.pop();
                continue;
            };
            *next += 1;
            match visits[to] {
                Visit::New => {
                    visits[to] = Visit::Open;
                    open.push((to, 0));
                }
                Visit::Open => closing[edge] = true,
                Visit::Done => {}
            }
        }
    }
    closing
}

/// The layer of each box: below all that lead to it, with a limited number side by side.
fn ranks(number: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut waiting = vec![0_usize; number];
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); number];
    for &(from, to) in edges.iter().filter(|(from, to)| from != to) {
        waiting[to] += 1;
        out[from].push(to);
    }
    let mut least = vec![0_usize; number];
    let mut ranks = vec![0; number];
    let mut sizes: Vec<usize> = Vec::new();
    // By rank first, so that a layer is full of its own boxes before later ones are put into it.
    let mut ready: std::collections::BTreeSet<(usize, usize)> =
        (0..number).filter(|node| waiting[*node] == 0).map(|node| (0, node)).collect();
    while let Some((mut rank, node)) = ready.pop_first() {
        while sizes.get(rank).is_some_and(|size| *size >= MOST_IN_A_LAYER) {
            rank += 1;
        }
        sizes.resize(sizes.len().max(rank + 1), 0);
        sizes[rank] += 1;
        ranks[node] = rank;
        for &to in &out[node] {
            least[to] = least[to].max(rank + 1);
            waiting[to] -= 1;
            if waiting[to] == 0 {
                ready.insert((least[to], to));
            }
        }
    }
    ranks
}

/// The layers with their bends, and the bends of each edge from above to below.
fn build_layers(
    level: &Level,
    edges: &[(usize, usize)],
    ranks: &[usize],
    spacing: &Spacing,
) -> (Layers, Vec<Vec<usize>>) {
    let number = level.sizes.len();
    let mut built = Layers {
        widths: level.sizes.iter().map(|size| size.0).collect(),
        layers: vec![Vec::new(); ranks.iter().max().map_or(0, |last| last + 1)],
        above: vec![Vec::new(); number],
        below: vec![Vec::new(); number],
        boxes: number,
    };
    for (item, rank) in ranks.iter().enumerate() {
        built.layers[*rank].push(item);
    }
    let mut bends = vec![Vec::new(); edges.len()];
    for (edge, &(from, to)) in edges.iter().enumerate().filter(|(_, (from, to))| from != to) {
        let passed = ranks[from] + 1..ranks[to];
        if built.widths.len() - number + passed.len() > MOST_BENDS {
            continue;
        }
        let mut last = from;
        for rank in passed {
            let bend = built.widths.len();
            built.widths.push(spacing.between * LANE);
            built.above.push(vec![last]);
            built.below.push(Vec::new());
            built.below[last].push(bend);
            built.layers[rank].push(bend);
            bends[edge].push(bend);
            last = bend;
        }
        built.below[last].push(to);
        built.above[to].push(last);
    }
    (built, bends)
}

/// The line of each edge, from above to below. The ends of several edges at one box are spread over its side.
fn routes(
    level: &Level,
    edges: &[(usize, usize)],
    bends: &[Vec<usize>],
    (ranks, heights, tops): (&[usize], &[f64], &[f64]),
    centres: &[f64],
    corners: &[Point],
) -> Vec<Vec<Point>> {
    let number = level.sizes.len();
    let (mut leaving, mut entering) = (vec![Vec::new(); number], vec![Vec::new(); number]);
    for (edge, &(from, to)) in edges.iter().enumerate() {
        let next = bends[edge].first().copied().unwrap_or(to);
        let last = bends[edge].last().copied().unwrap_or(from);
        leaving[from].push((centres[next], edge));
        entering[to].push((centres[last], edge));
    }
    let mut starts = vec![0.0; edges.len()];
    let mut ends = vec![0.0; edges.len()];
    for item in 0..number {
        spread(&mut leaving[item], centres[item], level.sizes[item].0, &mut starts);
        spread(&mut entering[item], centres[item], level.sizes[item].0, &mut ends);
    }
    let line = |(edge, &(from, to)): (usize, &(usize, usize))| {
        if from == to {
            return Vec::new();
        }
        let mut points = vec![(starts[edge], corners[from].1 + level.sizes[from].1)];
        for (bend, rank) in bends[edge].iter().zip(ranks[from] + 1..) {
            // Straight through the layer: a line that only touched its middle would cut the corners of high boxes.
            points.push((centres[*bend], tops[rank]));
            points.push((centres[*bend], tops[rank] + heights[rank]));
        }
        points.push((ends[edge], corners[to].1));
        points
    };
    edges.iter().enumerate().map(line).collect()
}

/// Spreads the ends of edges over the middle of a side, in the order of where the edges lead.
fn spread(edges: &mut [(f64, usize)], centre: f64, width: f64, ends: &mut [f64]) {
    edges.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    #[expect(clippy::cast_precision_loss, reason = "numbers of edges are small")]
    let step = (width * 0.6 / edges.len().max(1) as f64).min(18.0);
    #[expect(clippy::cast_precision_loss, reason = "numbers of edges are small")]
    let middle = (edges.len() as f64 - 1.0) / 2.0;
    for (place, &(_, edge)) in edges.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "numbers of edges are small")]
        let place = place as f64;
        ends[edge] = centre + (place - middle) * step;
    }
}
