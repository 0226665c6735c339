//! Which nodes of a structure are shown as one, and which boxes they are inside of.
//!
//! Calls of the same tool are one shown node with several sites. Loops, and what runs in parallel between a fork and
//! its join, are boxes. A shown node is in the innermost box that holds all of its sites.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pml_model::structure::{EdgeLink, Node, NodeId, NodeKind, NodeLetter, Structure};

/// The shown nodes of a structure.
pub(super) struct Grouping<'s> {
    /// The shown nodes, in the order of their first site.
    pub(super) groups: Vec<Group<'s>>,
    /// The shown node of each node; a join is shown as its fork.
    pub(super) of_node: HashMap<NodeId, usize>,
    /// What each box contains directly, whether or not it is shown inside of it.
    pub(super) contained: BTreeSet<(usize, usize)>,
}

/// One shown node.
pub(super) struct Group<'s> {
    /// Stable id: the tool, or the id of the first node.
    pub(super) id: String,
    /// The nodes that it stands for.
    pub(super) sites: Vec<&'s Node>,
    /// The box that it is inside of.
    pub(super) parent: Option<usize>,
}

/// Groups the nodes of a structure.
pub(super) fn group(structure: &Structure) -> Grouping<'_> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut by_key: HashMap<String, usize> = HashMap::new();
    let mut of_node = HashMap::new();
    for node in structure.nodes.iter().filter(|node| !matches!(node.kind, NodeKind::Join)) {
        let id = key(node);
        let place = *by_key.entry(id.clone()).or_insert_with(|| {
            groups.push(Group { id, sites: Vec::new(), parent: None });
            groups.len() - 1
        });
        groups[place].sites.push(node);
        of_node.insert(node.id, place);
    }
    for node in structure.nodes.iter().filter(|node| matches!(node.kind, NodeKind::Join)) {
        if let Some(place) = of_node.get(&fork_of(node.id)).copied() {
            of_node.insert(node.id, place);
        }
    }
    let around = boxes_around(structure);
    let mut contained = BTreeSet::new();
    for (place, group) in groups.iter_mut().enumerate() {
        let chains: Vec<Vec<NodeId>> = group.sites.iter().map(|site| chain(&around, site.id)).collect();
        for innermost in chains.iter().filter_map(|chain| chain.last()) {
            if let Some(outer) = of_node.get(innermost) {
                contained.insert((*outer, place));
            }
        }
        let common = common_prefix(&chains);
        group.parent = common.and_then(|id| of_node.get(&id).copied());
    }
    Grouping { groups, of_node, contained }
}

/// Nodes with the same key are shown as one.
fn key(node: &Node) -> String {
    match &node.kind {
        // Operations of the same name do different things.
        NodeKind::Task { tool, code: Some(code), .. } if !node.kind.is_call() => format!("{tool} {code}"),
        NodeKind::Task { tool, .. } => tool.clone(),
        NodeKind::Capability { capability, .. } => format!("capability:{capability}"),
        _ => node.id.to_string(),
    }
}

fn fork_of(join: NodeId) -> NodeId {
    NodeId { letter: NodeLetter::F, ..join }
}

/// The loops and forks that each node is inside of, of all levels.
type BoxesAround = BTreeMap<NodeId, BTreeSet<NodeId>>;

fn boxes_around(structure: &Structure) -> BoxesAround {
    let mut around = BoxesAround::new();
    for edge in &structure.edges {
        if edge.link == EdgeLink::Contains {
            around.entry(edge.to).or_default().insert(edge.from);
        }
    }
    let (mut out, mut into): (BTreeMap<NodeId, Vec<NodeId>>, BTreeMap<NodeId, Vec<NodeId>>) =
        (BTreeMap::new(), BTreeMap::new());
    for edge in &structure.edges {
        if matches!(edge.link, EdgeLink::Sequence | EdgeLink::Conditional { .. } | EdgeLink::Contains) {
            out.entry(edge.from).or_default().push(edge.to);
            into.entry(edge.to).or_default().push(edge.from);
        }
    }
    for join in structure.nodes.iter().filter(|node| matches!(node.kind, NodeKind::Join)) {
        let fork = fork_of(join.id);
        // Between the two: what the fork reaches and what reaches the join. Where one side leaves (a `throw`), the
        // other still holds it back. A loop may end with its box: what it contains is inside with it.
        let after = reached(fork, join.id, &out);
        let mut before = reached(join.id, fork, &into);
        let inside: Vec<NodeId> = after.intersection(&before).copied().collect();
        for node in &after {
            if around.get(node).is_some_and(|outer| outer.iter().any(|outer| inside.contains(outer))) {
                before.insert(*node);
            }
        }
        for node in after.intersection(&before) {
            around.entry(*node).or_default().insert(fork);
        }
    }
    around
}

/// The nodes that `from` leads to without passing `end`; neither of them included.
fn reached(from: NodeId, end: NodeId, next: &BTreeMap<NodeId, Vec<NodeId>>) -> BTreeSet<NodeId> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(node) = open.pop() {
        for &to in next.get(&node).into_iter().flatten() {
            if to != end && to != from && seen.insert(to) {
                open.push(to);
            }
        }
    }
    seen
}

/// The boxes around a node, outermost first.
fn chain(around: &BoxesAround, node: NodeId) -> Vec<NodeId> {
    let mut chain = Vec::new();
    let mut at = innermost(around, node);
    // Boxes that claim to be inside of each other end the chain.
    while let Some(outer) = at.filter(|outer| !chain.contains(outer) && *outer != node) {
        chain.push(outer);
        at = innermost(around, outer);
    }
    chain.reverse();
    chain
}

/// The box directly around a node: the one that is itself inside of the most others.
fn innermost(around: &BoxesAround, node: NodeId) -> Option<NodeId> {
    let depth = |outer: &NodeId| around.get(outer).map_or(0, BTreeSet::len);
    around.get(&node)?.iter().copied().max_by_key(|outer| (depth(outer), *outer))
}

/// The last box that all chains begin with.
fn common_prefix(chains: &[Vec<NodeId>]) -> Option<NodeId> {
    let first = chains.first()?;
    let common = (0..first.len()).take_while(|&at| chains.iter().all(|chain| chain.get(at) == first.get(at)));
    common.last().map(|at| first[at])
}
