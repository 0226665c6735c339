//! Layered layout of a directed graph with nested boxes.
//!
//! Each level (the top, and the inside of every box) is laid out for itself, innermost first, and is then one box of
//! the level around it. An edge belongs to the innermost level that has both of its ends inside; there it connects the
//! boxes that the ends are in.

use super::level::{Level, lay_out};
pub use super::shape::{Point, Spacing};

/// A node, or a box around other nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayoutBox {
    /// Width; the smallest width of a box around others.
    pub width: f64,
    /// Height; the height of the heading of a box around others.
    pub height: f64,
    /// Index of the box that it is inside of. Chains of these must end.
    pub parent: Option<usize>,
}

/// A rectangle, by its upper left corner.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rectangle {
    /// Distance from the left.
    pub x: f64,
    /// Distance from the top.
    pub y: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

/// Where everything is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LayeredLayout {
    /// The boxes, in the order in which they were given.
    pub boxes: Vec<Rectangle>,
    /// The edges, in the order in which they were given: the points of a line from the first node to the second.
    /// Empty for an edge from a box to itself, to one inside of it, or to one that it is inside of.
    pub routes: Vec<Vec<Point>>,
    /// Whether the edge leads upwards because it closes a cycle.
    pub upwards: Vec<bool>,
    /// Width of the picture.
    pub width: f64,
    /// Height of the picture.
    pub height: f64,
}

/// Lays out boxes so that edges lead downwards, except for those that close a cycle.
pub fn layered(boxes: &[LayoutBox], edges: &[(usize, usize)], spacing: &Spacing) -> LayeredLayout {
    let depths: Vec<usize> = (0..boxes.len()).map(|node| chain(boxes, node).len()).collect();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); boxes.len() + 1];
    let top = boxes.len();
    for (node, item) in boxes.iter().enumerate() {
        children[item.parent.unwrap_or(top)].push(node);
    }
    let mut edges_of: Vec<Vec<(usize, usize, usize)>> = vec![Vec::new(); boxes.len() + 1];
    for (edge, &(from, to)) in edges.iter().enumerate() {
        if let Some((level, from, to)) = lifted(boxes, from, to) {
            edges_of[level.unwrap_or(top)].push((edge, from, to));
        }
    }
    let mut layout = LayeredLayout {
        boxes: boxes
            .iter()
            .map(|item| Rectangle { width: item.width, height: item.height, ..Rectangle::default() })
            .collect(),
        routes: vec![Vec::new(); edges.len()],
        upwards: vec![false; edges.len()],
        ..LayeredLayout::default()
    };
    // Innermost first: a box has its size when the level around it is laid out.
    let mut levels: Vec<usize> = (0..boxes.len()).filter(|node| !children[*node].is_empty()).collect();
    levels.sort_by_key(|node| (std::cmp::Reverse(depths[*node]), *node));
    for &level in levels.iter().chain(&[top]) {
        let (width, height) = place_level(&mut layout, &children[level], &edges_of[level], spacing);
        if level == top {
            (layout.width, layout.height) = (width, height);
        } else {
            let outer = &mut layout.boxes[level];
            outer.width = outer.width.max(width + 2.0 * spacing.padding);
            outer.height = boxes[level].height + height + 2.0 * spacing.padding;
        }
    }
    // Outermost first: what is inside moves with its box.
    for &level in levels.iter().rev() {
        let outer = layout.boxes[level];
        let inner = children[level].iter().map(|child| layout.boxes[*child]);
        let used = inner.fold(0.0, |most: f64, inner| most.max(inner.x + inner.width));
        let left = outer.x + (outer.width - used) / 2.0;
        let above = outer.y + boxes[level].height + spacing.padding;
        for &child in &children[level] {
            layout.boxes[child].x += left;
            layout.boxes[child].y += above;
        }
        for &(edge, ..) in &edges_of[level] {
            for point in &mut layout.routes[edge] {
                *point = (point.0 + left, point.1 + above);
            }
        }
    }
    connect_inner_ends(&mut layout, edges);
    layout
}

/// The boxes around a node, outermost first. A chain that does not end is cut.
fn chain(boxes: &[LayoutBox], node: usize) -> Vec<usize> {
    let mut around = Vec::new();
    let mut at = boxes[node].parent;
    while let Some(outer) = at.filter(|_| around.len() <= boxes.len()) {
        around.push(outer);
        at = boxes[outer].parent;
    }
    around.reverse();
    around
}

/// The level of an edge (`None` is the top), and the boxes of that level which its ends are in. `None` if one end is
/// inside of the other.
fn lifted(boxes: &[LayoutBox], from: usize, to: usize) -> Option<(Option<usize>, usize, usize)> {
    let full = |node: usize| {
        let mut path = chain(boxes, node);
        path.push(node);
        path
    };
    let (one, other) = (full(from), full(to));
    let common = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
    let level = common.checked_sub(1).map(|last| one[last]);
    Some((level, *one.get(common)?, *other.get(common)?))
}

/// Places the boxes of one level relative to its corner; returns its size.
fn place_level(
    layout: &mut LayeredLayout,
    nodes: &[usize],
    edges: &[(usize, usize, usize)],
    spacing: &Spacing,
) -> Point {
    let place = |node: usize| nodes.binary_search(&node).expect("both ends are of this level");
    let level = Level {
        sizes: nodes.iter().map(|node| (layout.boxes[*node].width, layout.boxes[*node].height)).collect(),
        edges: edges.iter().map(|&(_, from, to)| (place(from), place(to))).collect(),
    };
    let placed = lay_out(&level, spacing);
    for (&node, &(x, y)) in nodes.iter().zip(&placed.corners) {
        (layout.boxes[node].x, layout.boxes[node].y) = (x, y);
    }
    for ((&(edge, ..), route), upwards) in edges.iter().zip(placed.routes).zip(placed.upwards) {
        layout.routes[edge] = route;
        layout.upwards[edge] = upwards;
    }
    (placed.width, placed.height)
}

/// Leads edges that begin or end inside of a box of their level to the actual node.
fn connect_inner_ends(layout: &mut LayeredLayout, edges: &[(usize, usize)]) {
    for (edge, &(from, to)) in edges.iter().enumerate() {
        let upwards = layout.upwards[edge];
        let side = |node: usize, lower: bool| {
            let inner = layout.boxes[node];
            (inner.x + inner.width / 2.0, if lower { inner.y + inner.height } else { inner.y })
        };
        let (first, last) = (side(from, !upwards), side(to, upwards));
        let route = &mut layout.routes[edge];
        let (Some(&begins), Some(&ends)) = (route.first(), route.last()) else { continue };
        if (begins.1 - first.1).abs() > 0.5 {
            route.insert(0, first);
        }
        if (ends.1 - last.1).abs() > 0.5 {
            route.push(last);
        }
    }
}
