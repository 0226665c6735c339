//! A map of a large graph: every community in a circle of its own, connected ones near each other.
//!
//! Positions depend on the graph alone. What is shown of it (communities closed or opened) moves nothing.

use super::shape::Point;
use crate::graph::csr::CsrGraph;

/// Distance between neighbouring nodes.
const STEP: f64 = 44.0;
/// Smallest distance between two nodes.
const CLOSEST: f64 = 30.0;
/// Space between two communities.
const GAP: f64 = 36.0;
/// Space between the outermost nodes of a community and its circle.
const MARGIN: f64 = 30.0;
/// Golden angle in radians: points at its multiples fill a disc evenly.
const GOLDEN: f64 = 2.399_963_229_728_653;
/// Communities smaller than this are put together: a circle around one node says nothing.
const SMALLEST: usize = 2;

/// A community on the map.
#[derive(Debug, Clone, PartialEq)]
pub struct MapCommunity {
    /// Its nodes, in ascending order.
    pub members: Vec<usize>,
    /// Centre of its circle.
    pub centre: Point,
    /// Radius of its circle.
    pub radius: f64,
    /// Whether it holds the nodes that belong to no community.
    pub unconnected: bool,
}

/// Where everything is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GraphMap {
    /// The nodes.
    pub positions: Vec<Point>,
    /// The communities, largest first; the unconnected nodes are last.
    pub communities: Vec<MapCommunity>,
    /// The community of each node, as a place in `communities`.
    pub community_of: Vec<usize>,
    /// Width of the map.
    pub width: f64,
    /// Height of the map.
    pub height: f64,
}

/// Draws the map of an undirected graph whose nodes are in these communities.
pub fn draw(graph: &CsrGraph, communities: &[usize]) -> GraphMap {
    let mut circles = members(graph.len(), communities);
    let mut community_of = vec![0; graph.len()];
    for (place, circle) in circles.iter().enumerate() {
        circle.members.iter().for_each(|node| community_of[*node] = place);
    }
    let mut positions = vec![(0.0, 0.0); graph.len()];
    for circle in &mut circles {
        let placed = if circle.unconnected {
            disc(circle.members.len(), STEP * 0.8)
        } else {
            arrange(graph, &circle.members)
        };
        let outermost = placed.iter().map(|point| point.0.hypot(point.1)).fold(0.0, f64::max);
        circle.radius = outermost + MARGIN;
        for (&node, point) in circle.members.iter().zip(placed) {
            positions[node] = point;
        }
    }
    place_circles(graph, &community_of, &mut circles);
    let left = circles.iter().map(|circle| circle.centre.0 - circle.radius).fold(f64::INFINITY, f64::min);
    let top = circles.iter().map(|circle| circle.centre.1 - circle.radius).fold(f64::INFINITY, f64::min);
    let mut map = GraphMap { positions, community_of, ..GraphMap::default() };
    for mut circle in circles {
        circle.centre = (circle.centre.0 - left + GAP, circle.centre.1 - top + GAP);
        for &node in &circle.members {
            let point = &mut map.positions[node];
            *point = (point.0 + circle.centre.0, point.1 + circle.centre.1);
        }
        map.width = map.width.max(circle.centre.0 + circle.radius + GAP);
        map.height = map.height.max(circle.centre.1 + circle.radius + GAP);
        map.communities.push(circle);
    }
    map
}

/// The communities without positions. Order: by size, then by their first node, so that it is the same every time.
fn members(number: usize, communities: &[usize]) -> Vec<MapCommunity> {
    let mut by_community: std::collections::BTreeMap<usize, Vec<usize>> = std::collections::BTreeMap::new();
    for node in 0..number {
        by_community.entry(communities.get(node).copied().unwrap_or(usize::MAX)).or_default().push(node);
    }
    let (mut large, small): (Vec<Vec<usize>>, Vec<Vec<usize>>) =
        by_community.into_values().partition(|members| members.len() >= SMALLEST);
    large.sort_by_key(|members| (std::cmp::Reverse(members.len()), members[0]));
    let mut rest: Vec<usize> = small.into_iter().flatten().collect();
    rest.sort_unstable();
    let circle =
        |members, unconnected| MapCommunity { members, centre: (0.0, 0.0), radius: 0.0, unconnected };
    let mut circles: Vec<MapCommunity> = large.into_iter().map(|members| circle(members, false)).collect();
    if !rest.is_empty() {
        circles.push(circle(rest, true));
    }
    circles
}

/// So many points evenly in a disc, the first in the middle.
#[expect(clippy::cast_precision_loss, reason = "numbers of nodes are small")]
fn disc(number: usize, step: f64) -> Vec<Point> {
    let point = |place: usize| {
        let (distance, angle) = (step * 0.62 * (place as f64).sqrt(), place as f64 * GOLDEN);
        (distance * angle.cos(), distance * angle.sin())
    };
    (0..number).map(point).collect()
}

/// Places the nodes of one community around its middle: connected ones near each other (springs that get weaker with
/// time, as by Fruchterman and Reingold), none too close.
#[expect(clippy::cast_precision_loss, reason = "numbers of nodes are small")]
fn arrange(graph: &CsrGraph, members: &[usize]) -> Vec<Point> {
    let number = members.len();
    let place = |node: usize| members.binary_search(&node).ok();
    let edges: Vec<(usize, usize)> = members
        .iter()
        .enumerate()
        .flat_map(|(from, node)| {
            let near = graph.neighbours(*node).filter_map(|(to, _)| place(to));
            near.filter(move |to| from < *to).map(move |to| (from, to)).collect::<Vec<_>>()
        })
        .collect();
    let mut degrees = vec![0_usize; number];
    for (from, to) in &edges {
        degrees[*from] += 1;
        degrees[*to] += 1;
    }
    // Nodes with many neighbours begin in the middle.
    let mut order: Vec<usize> = (0..number).collect();
    order.sort_by_key(|node| (std::cmp::Reverse(degrees[*node]), *node));
    let mut points = vec![(0.0, 0.0); number];
    for (node, point) in order.into_iter().zip(disc(number, STEP)) {
        points[node] = point;
    }
    let rounds = if number <= 400 { 120 } else { 50 };
    for round in 0..rounds {
        let mut moves = vec![(0.0, 0.0); number];
        near_pairs(&points, 3.0 * STEP, |one, other, apart, distance| {
            let push = STEP * STEP / distance / distance;
            moves[one] = (moves[one].0 + apart.0 * push, moves[one].1 + apart.1 * push);
            moves[other] = (moves[other].0 - apart.0 * push, moves[other].1 - apart.1 * push);
        });
        for &(from, to) in &edges {
            let apart = (points[from].0 - points[to].0, points[from].1 - points[to].1);
            let pull = apart.0.hypot(apart.1) / STEP / (degrees[from].max(degrees[to]) as f64).sqrt();
            moves[from] = (moves[from].0 - apart.0 * pull, moves[from].1 - apart.1 * pull);
            moves[to] = (moves[to].0 + apart.0 * pull, moves[to].1 + apart.1 * pull);
        }
        let most = STEP * (1.0 - f64::from(round) / f64::from(rounds)) * 0.5;
        for (point, step) in points.iter_mut().zip(&moves) {
            let gravity = (point.0 * 0.04, point.1 * 0.04);
            let step = (step.0 - gravity.0, step.1 - gravity.1);
            let length = step.0.hypot(step.1).max(1e-9);
            let share = length.min(most) / length;
            *point = (point.0 + step.0 * share, point.1 + step.1 * share);
        }
    }
    separate(&mut points);
    centred(points)
}

/// Pushes nodes apart that are closer than [`CLOSEST`]; where that does not end, everything is stretched.
fn separate(points: &mut [Point]) {
    for _ in 0..60 {
        let mut moves = vec![(0.0, 0.0); points.len()];
        let mut moved = false;
        near_pairs(points, CLOSEST, |one, other, apart, distance| {
            let push = (CLOSEST - distance) / distance * 0.52;
            moves[one] = (moves[one].0 + apart.0 * push, moves[one].1 + apart.1 * push);
            moves[other] = (moves[other].0 - apart.0 * push, moves[other].1 - apart.1 * push);
            moved = true;
        });
        if !moved {
            return;
        }
        for (point, step) in points.iter_mut().zip(moves) {
            *point = (point.0 + step.0, point.1 + step.1);
        }
    }
    let mut closest = CLOSEST;
    near_pairs(points, CLOSEST, |_, _, _, distance| closest = closest.min(distance));
    let stretch = (CLOSEST / closest).min(3.0);
    points.iter_mut().for_each(|point| *point = (point.0 * stretch, point.1 * stretch));
}

#[expect(clippy::cast_precision_loss, reason = "numbers of nodes are small")]
fn centred(mut points: Vec<Point>) -> Vec<Point> {
    let number = points.len().max(1) as f64;
    let sum = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    points.iter_mut().for_each(|point| *point = (point.0 - sum.0 / number, point.1 - sum.1 / number));
    points
}

/// Calls `visit` with every pair of points that is closer than `reach`, the vector from the second to the first, and
/// its length. Equal points count as a little apart, in a direction that depends on their numbers.
fn near_pairs(points: &[Point], reach: f64, mut visit: impl FnMut(usize, usize, Point, f64)) {
    let grid = Grid::new(points, reach);
    for (one, point) in points.iter().enumerate() {
        let (column, row) = grid.cell(*point);
        for y in row.saturating_sub(1)..=(row + 1).min(grid.rows - 1) {
            let first = column.saturating_sub(1) + y * grid.columns;
            let last = (column + 1).min(grid.columns - 1) + y * grid.columns;
            for &other in &grid.points[grid.starts[first]..grid.starts[last + 1]] {
                if other <= one {
                    continue;
                }
                let mut apart = (point.0 - points[other].0, point.1 - points[other].1);
                let mut distance = (apart.0 * apart.0 + apart.1 * apart.1).sqrt();
                if distance < 1e-6 {
                    #[expect(clippy::cast_precision_loss, reason = "numbers of nodes are small")]
                    let angle = (one + other) as f64 * GOLDEN;
                    apart = (angle.cos() * 0.01, angle.sin() * 0.01);
                    distance = 0.01;
                }
                if distance < reach {
                    visit(one, other, apart, distance);
                }
            }
        }
    }
}

/// Points by the cell of a grid that they are in, so that near ones are found without looking at all.
struct Grid {
    corner: Point,
    size: f64,
    columns: usize,
    rows: usize,
    /// Where the points of each cell begin; one more than there are cells.
    starts: Vec<usize>,
    points: Vec<usize>,
}

impl Grid {
    /// Largest number of cells side by side: far-flung points get larger cells instead of a huge table.
    const MOST: f64 = 200.0;

    fn new(points: &[Point], reach: f64) -> Grid {
        let least = |value: fn(&Point) -> f64| points.iter().map(value).fold(f64::INFINITY, f64::min);
        let most = |value: fn(&Point) -> f64| points.iter().map(value).fold(f64::NEG_INFINITY, f64::max);
        let corner = (least(|point| point.0), least(|point| point.1));
        let extent = (most(|point| point.0) - corner.0, most(|point| point.1) - corner.1);
        let size = reach.max(extent.0 / Grid::MOST).max(extent.1 / Grid::MOST);
        let mut grid = Grid { corner, size, columns: 1, rows: 1, starts: Vec::new(), points: Vec::new() };
        if points.is_empty() {
            grid.starts = vec![0, 0];
            return grid;
        }
        let (column, row) = grid.cell((corner.0 + extent.0, corner.1 + extent.1));
        (grid.columns, grid.rows) = (column + 1, row + 1);
        let cells: Vec<usize> = points
            .iter()
            .map(|point| {
                let (column, row) = grid.cell(*point);
                column + row * grid.columns
            })
            .collect();
        grid.starts = vec![0; grid.columns * grid.rows + 1];
        cells.iter().for_each(|cell| grid.starts[cell + 1] += 1);
        for cell in 0..grid.columns * grid.rows {
            grid.starts[cell + 1] += grid.starts[cell];
        }
        let mut next = grid.starts.clone();
        grid.points = vec![0; points.len()];
        for (point, cell) in cells.into_iter().enumerate() {
            grid.points[next[cell]] = point;
            next[cell] += 1;
        }
        grid
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most `MOST` cells, right of and below the corner"
    )]
    fn cell(&self, point: Point) -> (usize, usize) {
        (((point.0 - self.corner.0) / self.size) as usize, ((point.1 - self.corner.1) / self.size) as usize)
    }
}

/// Places the circles: connected ones near each other, none overlapping.
fn place_circles(graph: &CsrGraph, community_of: &[usize], circles: &mut [MapCommunity]) {
    let mut links: std::collections::BTreeMap<(usize, usize), f64> = std::collections::BTreeMap::new();
    for (from, to, weight) in graph.edges() {
        let (one, other) = (community_of[from as usize], community_of[to as usize]);
        if one < other {
            *links.entry((one, other)).or_default() += weight;
        }
    }
    let strongest = links.values().copied().fold(1e-9, f64::max);
    #[expect(clippy::cast_precision_loss, reason = "numbers of communities are small")]
    for (place, circle) in circles.iter_mut().enumerate() {
        let (distance, angle) = ((place as f64).sqrt() * 3.0 * STEP + circle.radius, place as f64 * GOLDEN);
        // Wider than high, as screens are.
        circle.centre =
            if place == 0 { (0.0, 0.0) } else { (1.4 * distance * angle.cos(), distance * angle.sin()) };
    }
    let rounds = if circles.len() <= 150 { 200 } else { 60 };
    for round in 0..rounds {
        let warmth = 1.0 - f64::from(round) / f64::from(rounds);
        for (&(one, other), weight) in &links {
            let (apart, distance) = between(circles, one, other);
            let spare = (distance - circles[one].radius - circles[other].radius - GAP).max(0.0);
            let pull = spare / distance * 0.3 * warmth * (weight / strongest).sqrt();
            shift(&mut circles[one], apart, -pull / 2.0);
            shift(&mut circles[other], apart, pull / 2.0);
        }
        for circle in circles.iter_mut() {
            let centre = circle.centre;
            shift(circle, (centre.0 * 0.7, centre.1), -0.03 * warmth);
        }
        push_apart(circles);
    }
    for _ in 0..400 {
        if !push_apart(circles) {
            return;
        }
    }
    stretch(circles);
}

fn between(circles: &[MapCommunity], one: usize, other: usize) -> (Point, f64) {
    let (from, to) = (circles[other].centre, circles[one].centre);
    let apart = (to.0 - from.0, to.1 - from.1);
    let distance = apart.0.hypot(apart.1);
    if distance > 1e-6 { (apart, distance) } else { ((0.01, 0.0), 0.01) }
}

fn shift(circle: &mut MapCommunity, by: Point, share: f64) {
    circle.centre = (circle.centre.0 + by.0 * share, circle.centre.1 + by.1 * share);
}

/// Moves overlapping circles apart, the smaller one further; returns whether there were any.
fn push_apart(circles: &mut [MapCommunity]) -> bool {
    let mut moved = false;
    for one in 0..circles.len() {
        for other in one + 1..circles.len() {
            let least = circles[one].radius + circles[other].radius + GAP;
            let (apart, distance) = between(circles, one, other);
            if distance + 0.01 < least {
                let push = (least - distance) / distance;
                let share = circles[other].radius / (circles[one].radius + circles[other].radius);
                shift(&mut circles[one], apart, push * share);
                shift(&mut circles[other], apart, -push * (1.0 - share));
                moved = true;
            }
        }
    }
    moved
}

/// Moves all circles away from the middle until none overlap.
fn stretch(circles: &mut [MapCommunity]) {
    let mut most = 1.0_f64;
    for one in 0..circles.len() {
        for other in one + 1..circles.len() {
            let least = circles[one].radius + circles[other].radius + GAP;
            most = most.max(least / between(circles, one, other).1);
        }
    }
    circles.iter_mut().for_each(|circle| circle.centre = (circle.centre.0 * most, circle.centre.1 * most));
}
