//! The order of a program's nodes: what comes after what, in which loops a node is, and on which decisions it depends.
//!
//! It is computed from the edges of the structure, which has no back edges: a node of a loop is followed by what follows
//! the loop, and shares its turns with the other nodes of the loop.

use std::collections::HashMap;

use pml_model::structure::{DecisionForm, EdgeLink, NodeId, NodeKind, Structure};

/// Programs with more nodes are not speculated: the order takes time that grows with the square of the nodes, and
/// people and models write programs of a few dozen.
pub(super) const MOST_NODES: usize = 512;

/// A set of nodes, by their index in the structure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NodeSet(Vec<u64>);

impl NodeSet {
    fn new(nodes: usize) -> NodeSet {
        NodeSet(vec![0; nodes.div_ceil(64)])
    }

    /// Adds a node; `false` if it was there before.
    pub(super) fn insert(&mut self, node: usize) -> bool {
        let (word, bit) = (node / 64, 1 << (node % 64));
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }

    pub(super) fn contains(&self, node: usize) -> bool {
        self.0[node / 64] & (1 << (node % 64)) != 0
    }

    pub(super) fn overlaps(&self, other: &NodeSet) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    fn add_all(&mut self, other: &NodeSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }
}

/// A decision that a node depends on, with the outcomes that lead to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) decision: NodeId,
    pub(super) outcomes: Vec<String>,
}

/// The order of the nodes of one structure.
#[derive(Debug)]
pub(super) struct ProgramOrder {
    index: HashMap<NodeId, usize>,
    ids: Vec<NodeId>,
    /// What can follow each node.
    after: Vec<NodeSet>,
    /// What can follow each node once all loops around it, or it itself if it is a loop, are over.
    beyond: Vec<NodeSet>,
    /// The loops around each node, innermost first.
    loops: Vec<Vec<usize>>,
    conditions: Vec<Vec<Condition>>,
}

impl ProgramOrder {
    /// The order of a structure; `None` if it is too large.
    pub(super) fn new(structure: &Structure) -> Option<ProgramOrder> {
        let count = structure.nodes.len();
        if count > MOST_NODES {
            return None;
        }
        let ids: Vec<NodeId> = structure.nodes.iter().map(|node| node.id).collect();
        let index: HashMap<NodeId, usize> = ids.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        let flow = ControlFlow::new(structure, &index);
        let loops: Vec<Vec<usize>> = (0..count).map(|node| flow.loops_around(node)).collect();
        let after = flow.after();
        let outermost = |node: usize| loops[node].last().copied().unwrap_or(node);
        let beyond = (0..count).map(|node| flow.beyond(outermost(node), &after)).collect();
        Some(ProgramOrder { after, beyond, loops, conditions: flow.conditions(structure), index, ids })
    }

    pub(super) fn index(&self, node: NodeId) -> Option<usize> {
        self.index.get(&node).copied()
    }

    pub(super) fn id(&self, node: usize) -> NodeId {
        self.ids[node]
    }

    pub(super) fn empty_set(&self) -> NodeSet {
        NodeSet::new(self.ids.len())
    }

    /// Whether `first` stands before `second` in the program, or in the same loop, where it stands before later turns.
    pub(super) fn stands_before(&self, first: usize, second: usize) -> bool {
        self.after[first].contains(second) || self.share_loop(first, second)
    }

    /// Whether the program has passed a node for good: it has reached something that follows it and all its loops.
    pub(super) fn is_passed(&self, node: usize, reached: &NodeSet) -> bool {
        self.beyond[node].overlaps(reached)
    }

    /// The loops around a node, outermost first.
    pub(super) fn loops_of(&self, node: usize) -> Vec<NodeId> {
        self.loops[node].iter().rev().map(|at| self.ids[*at]).collect()
    }

    pub(super) fn is_in_loop(&self, node: usize) -> bool {
        !self.loops[node].is_empty()
    }

    pub(super) fn share_loop(&self, one: usize, other: usize) -> bool {
        self.loops[one].iter().any(|around| self.loops[other].contains(around))
    }

    /// The decisions that a node depends on.
    pub(super) fn conditions_of(&self, node: usize) -> &[Condition] {
        &self.conditions[node]
    }
}

/// The edges along which control moves.
struct ControlFlow {
    next: Vec<Vec<(usize, Option<String>)>>,
    /// The loop that directly contains each node.
    parent: Vec<Option<usize>>,
    /// Whether control enters a node from nowhere.
    entries: Vec<usize>,
}

impl ControlFlow {
    fn new(structure: &Structure, index: &HashMap<NodeId, usize>) -> ControlFlow {
        let count = structure.nodes.len();
        let mut flow =
            ControlFlow { next: vec![Vec::new(); count], parent: vec![None; count], entries: Vec::new() };
        let mut entered = vec![false; count];
        let (mut bodies, mut sources) = (Vec::new(), vec![Vec::new(); count]);
        for edge in &structure.edges {
            let (Some(&from), Some(&to)) = (index.get(&edge.from), index.get(&edge.to)) else { continue };
            let outcome = match &edge.link {
                EdgeLink::Sequence => None,
                EdgeLink::Conditional { outcome } => Some(outcome.clone()),
                EdgeLink::Contains => {
                    flow.parent[to] = Some(from);
                    bodies.push((from, to));
                    continue;
                }
                EdgeLink::Provides { .. } => continue,
            };
            flow.next[from].push((to, outcome));
            sources[to].push(from);
            entered[to] = true;
        }
        // A loop contains all nodes of its body, but control enters it only where nothing else leads: what stands in a
        // branch of the body is reached through its decision.
        for (around, node) in bodies {
            if !sources[node].iter().any(|from| flow.loops_around(*from).contains(&around)) {
                flow.next[around].push((node, None));
            }
            entered[node] = true;
        }
        flow.entries = (0..count).filter(|node| !entered[*node]).collect();
        flow
    }

    /// The loops around a node, innermost first.
    fn loops_around(&self, node: usize) -> Vec<usize> {
        let mut around = Vec::new();
        let mut at = self.parent[node];
        while let Some(outer) = at.filter(|outer| !around.contains(outer)) {
            around.push(outer);
            at = self.parent[outer];
        }
        around
    }

    /// What can follow each node. A node of a loop is followed by what follows the loop.
    fn after(&self) -> Vec<NodeSet> {
        let count = self.next.len();
        let mut after: Vec<Option<NodeSet>> = vec![None; count];
        for node in 0..count {
            self.find_after(node, &mut after);
        }
        after.into_iter().map(Option::unwrap_or_default).collect()
    }

    fn find_after(&self, node: usize, after: &mut Vec<Option<NodeSet>>) {
        if after[node].is_some() {
            return;
        }
        // An entry while it is computed ends the recursion, should the edges have a cycle after all.
        after[node] = Some(NodeSet::new(self.next.len()));
        let mut set = NodeSet::new(self.next.len());
        let exits = self.parent[node].map(|outer| self.exits(outer)).unwrap_or_default();
        for to in self.next[node].iter().map(|(to, _)| *to).chain(exits) {
            self.find_after(to, after);
            set.insert(to);
            if let Some(further) = &after[to] {
                set.add_all(further);
            }
        }
        after[node] = Some(set);
    }

    /// What can follow a node that is in no loop; for a loop, without its own turns.
    fn beyond(&self, node: usize, after: &[NodeSet]) -> NodeSet {
        let mut beyond = NodeSet::new(self.next.len());
        for exit in self.exits(node) {
            beyond.insert(exit);
            beyond.add_all(&after[exit]);
        }
        beyond
    }

    /// What follows a loop.
    fn exits(&self, of: usize) -> Vec<usize> {
        let own = self.next[of].iter().map(|(to, _)| *to).filter(|to| self.parent[*to] != Some(of));
        let outer = self.parent[of].map(|outer| self.exits(outer)).unwrap_or_default();
        own.chain(outer).collect()
    }

    /// The decisions that each node depends on: those of which only some outcomes lead to it.
    fn conditions(&self, structure: &Structure) -> Vec<Vec<Condition>> {
        let mut conditions = vec![Vec::new(); self.next.len()];
        for (decision, node) in structure.nodes.iter().enumerate() {
            let Some(outcomes) = self.outcomes(decision, &node.kind) else { continue };
            let reached: Vec<NodeSet> =
                outcomes.iter().map(|outcome| self.reachable(decision, outcome.as_deref())).collect();
            for (at, conditions) in conditions.iter_mut().enumerate() {
                let leads = |place: &usize| reached[*place].contains(at);
                let leading: Vec<usize> = (0..outcomes.len()).filter(leads).collect();
                if leading.len() < outcomes.len() && !leading.is_empty() {
                    let outcomes = leading.iter().filter_map(|place| outcomes[*place].clone()).collect();
                    conditions.push(Condition { decision: node.id, outcomes });
                }
            }
        }
        conditions
    }

    /// The outcomes of a node that decides; `None` stands for all outcomes without an edge.
    fn outcomes(&self, node: usize, kind: &NodeKind) -> Option<Vec<Option<String>>> {
        let mut outcomes: Vec<Option<String>> = Vec::new();
        for (_, outcome) in &self.next[node] {
            if outcome.is_some() && !outcomes.contains(outcome) {
                outcomes.push(outcome.clone());
            }
        }
        let has = |name: &str| outcomes.iter().any(|outcome| outcome.as_deref() == Some(name));
        let complete = match kind {
            NodeKind::Decision { form: DecisionForm::Switch, .. } => has("default"),
            NodeKind::Decision { .. } => has("true") && has("false"),
            _ => false,
        };
        if outcomes.is_empty() {
            return None;
        }
        if !complete {
            outcomes.push(None);
        }
        Some(outcomes)
    }

    /// What can be reached if `decision` has this outcome.
    fn reachable(&self, decision: usize, outcome: Option<&str>) -> NodeSet {
        let mut reached = NodeSet::new(self.next.len());
        let mut waiting = self.entries.clone();
        for entry in &waiting {
            reached.insert(*entry);
        }
        while let Some(node) = waiting.pop() {
            for (to, taken) in &self.next[node] {
                let open = node != decision || taken.is_none() || taken.as_deref() == outcome;
                if open && reached.insert(*to) {
                    waiting.push(*to);
                }
            }
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(source: &str) -> (ProgramOrder, Structure) {
        let analysis = pml_analysis::analyse(source, &pml_analysis::AnalysisCatalogue::default()).unwrap();
        (ProgramOrder::new(&analysis.structure).unwrap(), analysis.structure)
    }

    /// The conditions of a node as `d1=true|false`.
    fn conditions(source: &str, node: &str) -> Vec<String> {
        let (order, _) = order(source);
        let at = order.index(NodeId::try_from(node.to_owned()).unwrap()).unwrap();
        let shown = |one: &Condition| format!("{}={}", one.decision, one.outcomes.join("|"));
        order.conditions_of(at).iter().map(shown).collect()
    }

    #[track_caller]
    fn before(source: &str, pairs: &[(&str, &str, bool)]) {
        let (order, _) = order(source);
        let at = |name: &str| order.index(NodeId::try_from(name.to_owned()).unwrap()).unwrap();
        for (first, second, expected) in pairs {
            assert_eq!(order.stands_before(at(first), at(second)), *expected, "{first} before {second}");
        }
    }

    #[test]
    fn a_node_depends_on_the_outcomes_that_lead_to_it() {
        let source =
            "if (args.a) { await mcp.s.one({}); } else { await mcp.s.two({}); } await mcp.s.three({});";
        assert_eq!(conditions(source, "n1"), ["d1=true"]);
        assert_eq!(conditions(source, "n2"), ["d1=false"]);
        assert!(conditions(source, "n3").is_empty());
    }

    #[test]
    fn what_follows_an_early_return_depends_on_the_other_outcome() {
        let source = "if (args.a) return 1; await mcp.s.one({}); if (args.b) { await mcp.s.two({}); }";
        assert_eq!(conditions(source, "n1"), ["d1=false"]);
        assert_eq!(conditions(source, "n2"), ["d1=false", "d2=true"]);
    }

    #[test]
    fn a_handler_depends_on_an_error() {
        let source = "try { await mcp.s.one({}); } catch { await mcp.s.two({}); } await mcp.s.three({});";
        assert_eq!(conditions(source, "n2"), ["t1=error"]);
        assert!(conditions(source, "n3").is_empty());
    }

    #[test]
    fn a_loop_stands_before_what_follows_it_and_its_turns_before_each_other() {
        let source =
            "for (const x of args.xs) { await mcp.s.one({x}); await mcp.s.two({x}); } await mcp.s.three({});";
        before(source, &[("n1", "n2", true), ("n2", "n1", true), ("n2", "n3", true), ("n3", "n1", false)]);
    }

    #[test]
    fn a_branch_in_a_loop_depends_on_its_decision() {
        let source = "for (const x of args.xs) { await mcp.s.one({x}); if (x.a) { await mcp.s.two({x}); await mcp.s.three({x}); } }";
        assert!(conditions(source, "n1").is_empty());
        assert_eq!(conditions(source, "n2"), ["d1=true"]);
        assert_eq!(conditions(source, "n3"), ["d1=true"]);
        before(source, &[("n1", "n3", true), ("n3", "n1", true)]);
    }

    #[test]
    fn members_of_a_fork_have_no_order() {
        let source = "await Promise.all([mcp.s.one({}), mcp.s.two({})]); await mcp.s.three({});";
        before(source, &[("n1", "n2", false), ("n2", "n1", false), ("n1", "n3", true), ("n2", "n3", true)]);
    }
}
