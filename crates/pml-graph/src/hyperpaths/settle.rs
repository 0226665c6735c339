//! Brings the costs of vertices up to date after changes.
//!
//! Each vertex has a *settled* cost and the cost *ahead* of it: the cheapest of its edges at the settled costs of their
//! sources. Where both agree everywhere, the costs are right. Vertices where they differ wait in a heap under the lower
//! of the two. A vertex that became cheaper is settled; one that became dearer is first unsettled together with what
//! was derived through it, and then settled like any other (the fixed-point algorithm of Ramalingam and Reps).
//! On a graph without settled costs this is Knuth's generalisation of Dijkstra's algorithm.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::EdgeTable;
use super::cost::Cost;

/// What is known of a vertex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) settled: Cost,
    ahead: Cost,
    /// The edge that gives the cost ahead; of equal ones the first. [`NO_EDGE`] for none.
    pub(super) edge: u32,
}

const NO_EDGE: u32 = u32::MAX;

impl Label {
    pub(super) const UNREACHED: Label =
        Label { settled: Cost::UNREACHED, ahead: Cost::UNREACHED, edge: NO_EDGE };

    fn is_consistent(&self) -> bool {
        self.settled == self.ahead
    }

    fn key(&self) -> Cost {
        self.settled.min(self.ahead)
    }
}

/// Vertices whose settled cost differs from the cost ahead. Entries that are no longer true are skipped when met.
pub(super) type SettleQueue = BinaryHeap<Reverse<(Cost, u32)>>;

/// The labels that are being brought up to date, and which edges count.
pub(super) trait LabelTable {
    fn label(&self, vertex: u32) -> Label;
    fn set(&mut self, vertex: u32, label: Label);
    /// Whether `edge` may produce `vertex`.
    fn allows(&self, vertex: u32, edge: u32) -> bool;
}

/// Settles vertices until all are right, or until the cost of `target` is.
pub(super) fn settle(
    edges: &EdgeTable,
    labels: &mut impl LabelTable,
    queue: &mut SettleQueue,
    target: Option<u32>,
) {
    while let Some(Reverse((key, vertex))) = queue.peek().copied() {
        let label = labels.label(vertex);
        if label.is_consistent() || key != label.key() {
            queue.pop();
            continue;
        }
        // Everything cheaper than the first of the queue is right, and so is the way to it.
        if target.map(|target| labels.label(target)).is_some_and(|at| at.is_consistent() && at.settled <= key)
        {
            return;
        }
        queue.pop();
        if label.ahead < label.settled {
            lower(edges, labels, queue, vertex);
        } else {
            unsettle(edges, labels, queue, vertex);
        }
    }
}

/// Recomputes the cost ahead of `vertex` from all its edges.
pub(super) fn refresh(edges: &EdgeTable, labels: &mut impl LabelTable, queue: &mut SettleQueue, vertex: u32) {
    let mut label = labels.label(vertex);
    (label.ahead, label.edge) = (Cost::UNREACHED, NO_EDGE);
    for edge in &edges.incoming[vertex as usize] {
        let cost = cost_of(edges, labels, *edge);
        if cost < label.ahead && labels.allows(vertex, *edge) {
            (label.ahead, label.edge) = (cost, *edge);
        }
    }
    put(labels, queue, vertex, label);
}

/// Settles a vertex that became cheaper, and offers its new cost to what is derived from it.
fn lower(edges: &EdgeTable, labels: &mut impl LabelTable, queue: &mut SettleQueue, vertex: u32) {
    let mut label = labels.label(vertex);
    label.settled = label.ahead;
    labels.set(vertex, label);
    for edge in &edges.outgoing[vertex as usize] {
        let cost = cost_of(edges, labels, *edge);
        if cost == Cost::UNREACHED {
            continue;
        }
        for target in &edges.get(*edge).targets {
            let mut label = labels.label(*target);
            if (cost, *edge) < (label.ahead, label.edge) && labels.allows(*target, *edge) {
                (label.ahead, label.edge) = (cost, *edge);
                put(labels, queue, *target, label);
            }
        }
    }
}

/// Forgets the cost of a vertex that became dearer, and looks again for what was derived through it.
fn unsettle(edges: &EdgeTable, labels: &mut impl LabelTable, queue: &mut SettleQueue, vertex: u32) {
    let mut label = labels.label(vertex);
    label.settled = Cost::UNREACHED;
    labels.set(vertex, label);
    // An edge that leads back to its own source is no reason to keep it.
    refresh(edges, labels, queue, vertex);
    for edge in &edges.outgoing[vertex as usize] {
        for target in &edges.get(*edge).targets {
            if labels.label(*target).edge == *edge {
                refresh(edges, labels, queue, *target);
            }
        }
    }
}

fn put(labels: &mut impl LabelTable, queue: &mut SettleQueue, vertex: u32, label: Label) {
    labels.set(vertex, label);
    if !label.is_consistent() {
        queue.push(Reverse((label.key(), vertex)));
    }
}

fn cost_of(edges: &EdgeTable, labels: &impl LabelTable, edge: u32) -> Cost {
    let edge = edges.get(edge);
    let costs = edge.sources.iter().map(|source| labels.label(*source).settled);
    costs.fold(edge.weight, Cost::plus)
}
