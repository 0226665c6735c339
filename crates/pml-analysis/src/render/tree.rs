//! Nesting of a structure's nodes, derived from its edges.
//!
//! `contains` edges give the body of a loop. A node belongs to an arm of a decision when every path to it passes that
//! arm. This holds for early returns and helper functions as well as for blocks.

use std::collections::{BTreeSet, HashMap, HashSet};

use pml_model::structure::{EdgeLink, NodeId, NodeKind, NodeLetter, Structure};

use super::words::BETWEEN;

/// A structure in nested program order.
#[derive(Debug)]
pub(super) struct NestedStructure {
    /// Nodes at the top level.
    pub(super) top: Vec<NestedNode>,
}

/// A node with its nested nodes.
#[derive(Debug)]
pub(super) struct NestedNode {
    /// Index into the structure's nodes.
    pub(super) node: usize,
    /// Nodes inside a loop, a fork or the block of a `try`.
    pub(super) inside: Vec<NestedNode>,
    /// Nodes of each outcome, or of several outcomes that share an arm.
    pub(super) arms: Vec<(String, Vec<NestedNode>)>,
    /// The outcome with which the program continues at the same level, because every other one leaves.
    pub(super) goes_on_with: Option<String>,
}

/// Position of a node in the nesting.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum NestPlace {
    Top,
    In(usize),
    Arm(usize, String),
}

/// Outcome that stands for the block of a `try`.
const BLOCK: &str = "";

/// Nests the nodes of `structure`.
pub(super) fn nest_structure(structure: &Structure) -> NestedStructure {
    let flow = Dominators::of(structure);
    let mut nesting = Nesting { structure, children: HashMap::new(), arms: HashMap::new() };
    for node in 0..structure.nodes.len() {
        let place = flow.place(structure, node);
        if let NestPlace::Arm(of, arm) = &place
            && !nesting.children.contains_key(&place)
        {
            nesting.arms.entry(*of).or_default().push(arm.clone());
        }
        nesting.children.entry(place).or_default().push(node);
    }
    NestedStructure { top: nesting.items(&NestPlace::Top) }
}

/// Nodes that are not nested yet.
struct Nesting<'a> {
    structure: &'a Structure,
    children: HashMap<NestPlace, Vec<usize>>,
    /// Non-empty arms of each node, in program order.
    arms: HashMap<usize, Vec<String>>,
}

impl Nesting<'_> {
    fn items(&mut self, place: &NestPlace) -> Vec<NestedNode> {
        let mut waiting = self.children.remove(place).unwrap_or_default();
        let mut made = Vec::new();
        let mut next = 0;
        while let Some(&node) = waiting.get(next) {
            next += 1;
            let mut inside = self.items(&NestPlace::In(node));
            inside.extend(self.items(&NestPlace::Arm(node, BLOCK.to_owned())));
            let goes_on_with = if next == waiting.len() { self.continuation(node) } else { None };
            if let Some(arm) = &goes_on_with {
                waiting.extend(self.children.remove(&NestPlace::Arm(node, arm.clone())).unwrap_or_default());
            }
            let arms = self.arms(node);
            made.push(NestedNode { node, inside, arms, goes_on_with });
        }
        made
    }

    fn arms(&mut self, node: usize) -> Vec<(String, Vec<NestedNode>)> {
        let arms = self.arms.get(&node).cloned().unwrap_or_default().into_iter().map(|arm| {
            let inside = self.items(&NestPlace::Arm(node, arm.clone()));
            (arm, inside)
        });
        arms.filter(|(_, inside)| !inside.is_empty()).collect()
    }

    /// The arm that is not a block of the decision but the rest of the program, because every other arm ends it.
    fn continuation(&self, node: usize) -> Option<String> {
        let decision = &self.structure.nodes[node];
        if !matches!(decision.kind, NodeKind::Decision { .. }) {
            return None;
        }
        let goes_on = |arm: &&String| {
            let first = self.children.get(&NestPlace::Arm(node, (*arm).clone())).and_then(|arm| arm.first());
            let starts = first.map(|first| self.structure.nodes[*first].at.start);
            decision.at.end > decision.at.start && starts.is_some_and(|start| start >= decision.at.end)
        };
        self.arms.get(&node)?.iter().find(goes_on).cloned()
    }
}

/// Nodes with a predecessor in program order.
pub(super) fn nodes_with_predecessor(structure: &Structure) -> HashSet<NodeId> {
    structure.edges.iter().filter(|edge| is_order(&edge.link)).map(|edge| edge.to).collect()
}

fn is_order(link: &EdgeLink) -> bool {
    matches!(link, EdgeLink::Sequence | EdgeLink::Conditional { .. })
}

/// The innermost loop around each node.
pub(super) fn enclosing_loops(structure: &Structure) -> HashMap<NodeId, NodeId> {
    let contained = structure.edges.iter().filter(|edge| matches!(edge.link, EdgeLink::Contains));
    contained.filter(|edge| edge.from.letter == NodeLetter::L).map(|edge| (edge.to, edge.from)).collect()
}

/// A point of the control flow: a node, or the start of one of its arms.
#[derive(Debug)]
struct FlowPoint {
    place: NestPlace,
    /// Immediate dominator.
    before: Option<usize>,
    depth: usize,
}

/// Dominator tree of the control flow.
struct Dominators {
    points: Vec<FlowPoint>,
    /// Point of each node.
    at: Vec<Option<usize>>,
    /// Innermost loop of each node.
    inside: Vec<Option<usize>>,
    /// Fork of each join.
    forks: HashMap<usize, usize>,
}

impl Dominators {
    fn of(structure: &Structure) -> Dominators {
        let index: HashMap<NodeId, usize> =
            structure.nodes.iter().enumerate().map(|(index, node)| (node.id, index)).collect();
        let mut ways: Vec<Vec<(usize, Option<String>)>> = vec![Vec::new(); structure.nodes.len()];
        for edge in structure.edges.iter().filter(|edge| is_order(&edge.link)) {
            let (Some(&from), Some(&to)) = (index.get(&edge.from), index.get(&edge.to)) else { continue };
            let outcome = match &edge.link {
                EdgeLink::Conditional { outcome } => Some(outcome.clone()),
                _ if matches!(structure.nodes[from].kind, NodeKind::Try) => Some(BLOCK.to_owned()),
                _ => None,
            };
            ways[to].push((from, outcome));
        }
        let loops = enclosing_loops(structure);
        let inside = structure.nodes.iter().map(|node| index.get(loops.get(&node.id)?).copied()).collect();
        let mut flow = Dominators {
            points: Vec::new(),
            at: vec![None; structure.nodes.len()],
            inside,
            forks: forks(structure),
        };
        let mut arms: HashMap<(usize, String), usize> = HashMap::new();
        share_arms(&mut ways);
        for node in order(&ways) {
            let mut before: Option<Option<usize>> = None;
            for (from, outcome) in &ways[node] {
                // A path from a node without a point is the back edge of a cycle and adds nothing.
                let Some(from_point) = flow.at[*from] else { continue };
                let point = match outcome {
                    None => from_point,
                    Some(outcome) => *arms.entry((*from, outcome.clone())).or_insert_with(|| {
                        flow.points.push(FlowPoint {
                            place: NestPlace::Arm(*from, outcome.clone()),
                            before: Some(from_point),
                            depth: flow.points[from_point].depth + 1,
                        });
                        flow.points.len() - 1
                    }),
                };
                before = Some(match before {
                    None => Some(point),
                    Some(other) => other.and_then(|other| flow.common(other, point)),
                });
            }
            let before = before.flatten();
            let depth = before.map_or(0, |before| flow.points[before].depth + 1);
            flow.at[node] = Some(flow.points.len());
            flow.points.push(FlowPoint { place: NestPlace::In(node), before, depth });
        }
        flow
    }

    /// The nearest common dominator of `a` and `b`.
    fn common(&self, mut a: usize, mut b: usize) -> Option<usize> {
        while a != b {
            if self.points[a].depth >= self.points[b].depth {
                a = self.points[a].before?;
            } else {
                b = self.points[b].before?;
            }
        }
        Some(a)
    }

    /// Position of a node in the nesting.
    fn place(&self, structure: &Structure, node: usize) -> NestPlace {
        let mut joined: Vec<usize> = self.forks.get(&node).copied().into_iter().collect();
        let mut at = self.at[node].and_then(|point| self.points[point].before);
        // Nodes on the path from the current dominator to this node.
        let mut passed = vec![node];
        while let Some(point) = at {
            match &self.points[point].place {
                NestPlace::Arm(tried, arm) if arm == BLOCK && comes_after(structure, *tried, &passed) => {}
                NestPlace::In(outer) if self.inside[node] == Some(*outer) => return NestPlace::In(*outer),
                place @ NestPlace::Arm(outer, _) if self.inside[*outer] == self.inside[node] => {
                    return place.clone();
                }
                NestPlace::In(outer) => match structure.nodes[*outer].kind {
                    NodeKind::Join => joined.extend(self.forks.get(outer)),
                    NodeKind::Fork { .. }
                        if self.inside[*outer] == self.inside[node]
                            && self.forks.values().any(|fork| fork == outer)
                            && !joined.contains(outer) =>
                    {
                        return NestPlace::In(*outer);
                    }
                    _ => {}
                },
                NestPlace::Arm(..) | NestPlace::Top => {}
            }
            if let NestPlace::In(outer) = self.points[point].place {
                passed.push(outer);
            }
            at = self.points[point].before;
        }
        self.inside[node].map_or(NestPlace::Top, NestPlace::In)
    }
}

/// Whether a node that is reached only through the block of a `try` comes after the statement: when the handler leaves,
/// everything after it is reached that way. This is so when one of `passed` (the node and those on the path to it) is
/// written behind the whole statement, and not in a function written there: from that, the program would return to code
/// written before.
fn comes_after(structure: &Structure, tried: usize, passed: &[usize]) -> bool {
    let end = structure.nodes[tried].at.end;
    passed.iter().any(|node| {
        let start = structure.nodes[*node].at.start;
        let goes_back =
            || structure.nodes[node + 1..].iter().any(|later| (end..start).contains(&later.at.start));
        end > 0 && start >= end && !goes_back()
    })
}

/// Merges several outcomes of one decision that lead to the same node, like cases without a `break`, into one arm. When
/// all outcomes lead there, the node simply comes after the decision.
fn share_arms(ways: &mut [Vec<(usize, Option<String>)>]) {
    let mut targets: HashMap<usize, HashSet<usize>> = HashMap::new();
    for (to, into) in ways.iter().enumerate() {
        for (from, _) in into {
            targets.entry(*from).or_default().insert(to);
        }
    }
    for into in ways.iter_mut().filter(|into| into.len() > 1) {
        let from = into[0].0;
        let outcomes: Vec<&str> = into.iter().filter_map(|(_, outcome)| outcome.as_deref()).collect();
        let of_one = into.iter().all(|(other, _)| *other == from) && outcomes.len() == into.len();
        if of_one && targets[&from].len() > 1 {
            *into = vec![(from, Some(outcomes.join(&BETWEEN.to_string())))];
        }
    }
}

/// Fork of each join: a join closes the fork that was opened last at the same place.
fn forks(structure: &Structure) -> HashMap<usize, usize> {
    let (mut open, mut closed): (Vec<usize>, _) = (Vec::new(), HashMap::new());
    for (index, node) in structure.nodes.iter().enumerate() {
        match node.kind {
            NodeKind::Fork { .. } => open.push(index),
            NodeKind::Join => {
                let same = open.iter().rposition(|fork| structure.nodes[*fork].at == node.at);
                if let Some(last) = same.or(open.len().checked_sub(1)) {
                    closed.insert(index, open.remove(last));
                }
            }
            _ => {}
        }
    }
    closed
}

/// Nodes in topological order, as far as there is one.
fn order(ways: &[Vec<(usize, Option<String>)>]) -> Vec<usize> {
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); ways.len()];
    let mut missing: Vec<usize> = ways.iter().map(Vec::len).collect();
    for (to, from) in
        ways.iter().enumerate().flat_map(|(to, ways)| ways.iter().map(move |(from, _)| (to, *from)))
    {
        out[from].push(to);
    }
    let mut ready: BTreeSet<usize> = (0..ways.len()).filter(|node| missing[*node] == 0).collect();
    let mut rest: BTreeSet<usize> = (0..ways.len()).collect();
    let mut ordered = Vec::with_capacity(ways.len());
    while let Some(node) = ready.pop_first().or_else(|| rest.first().copied()) {
        if !rest.remove(&node) {
            continue;
        }
        ordered.push(node);
        for &to in &out[node] {
            missing[to] = missing[to].saturating_sub(1);
            if missing[to] == 0 && rest.contains(&to) {
                ready.insert(to);
            }
        }
    }
    ordered
}
