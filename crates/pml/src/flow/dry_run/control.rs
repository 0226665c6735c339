//! Which nodes of a program run only because a decision came out as it did, or a loop turned as often as it did.
//!
//! A node depends on a decision if one outcome always leads to it and another need not: it comes after that outcome, and
//! before the point that every outcome reaches. Edges of order only lead forward, so one pass from the end finds that
//! point for every node. A loop decides about its body. Which statements a `continue`, or a `return` within a loop,
//! skips is not told by the edges, so those are not followed.

use std::collections::{BTreeSet, HashMap};

use pml_model::structure::{EdgeLink, NodeId, NodeKind};

use super::places::{PlacedCode, branches_of};

/// The order of the nodes of a program.
pub(super) struct ControlFlow {
    nodes: Vec<NodeId>,
    index: HashMap<NodeId, usize>,
    forks: BTreeSet<usize>,
    /// What may come next, by index; the end of the program is one more than the last node.
    next: Vec<Vec<usize>>,
    /// The nearest node that always comes later.
    always_later: Vec<usize>,
    bodies: Vec<Vec<usize>>,
    /// The loop right around each node.
    around: Vec<Option<usize>>,
}

impl ControlFlow {
    pub(super) fn new(code: PlacedCode<'_>) -> ControlFlow {
        let structure = code.structure;
        let nodes: Vec<NodeId> = structure.nodes.iter().map(|node| node.id).collect();
        let end = nodes.len();
        let index: HashMap<NodeId, usize> =
            nodes.iter().enumerate().map(|(index, node)| (*node, index)).collect();
        let (mut next, mut bodies) = (vec![Vec::new(); end], vec![Vec::new(); end]);
        let mut around = vec![None; end];
        let mut taken: BTreeSet<(NodeId, &str)> = BTreeSet::new();
        for edge in &structure.edges {
            let (Some(from), Some(to)) = (index.get(&edge.from), index.get(&edge.to)) else { continue };
            match &edge.link {
                EdgeLink::Sequence if from < to => next[*from].push(*to),
                EdgeLink::Conditional { outcome } if from < to => {
                    taken.insert((edge.from, outcome.as_str()));
                    next[*from].push(*to);
                }
                EdgeLink::Contains => {
                    bodies[*from].push(*to);
                    around[*to] = Some(*from);
                }
                EdgeLink::Sequence | EdgeLink::Conditional { .. } | EdgeLink::Provides { .. } => {}
            }
        }
        // An outcome after which nothing comes ends the program, or the turn of a loop.
        for (node, outcome) in branches_of(code) {
            let is_decision = structure.node(node).is_some_and(|node| is_decision(&node.kind));
            if is_decision && !taken.contains(&(node, outcome.as_str())) {
                next[index[&node]].push(end);
            }
        }
        let forks = structure.nodes.iter().filter(|node| matches!(node.kind, NodeKind::Fork { .. }));
        let forks = forks.filter_map(|node| index.get(&node.id).copied()).collect();
        let always_later = always_later(&next, end);
        ControlFlow { nodes, index, forks, next, always_later, bodies, around }
    }

    /// The nodes that depend on what this decision or loop does.
    pub(super) fn dependents(&self, decider: NodeId) -> BTreeSet<NodeId> {
        let mut found = BTreeSet::new();
        let Some(from) = self.index.get(&decider).copied() else { return BTreeSet::new() };
        found.extend(self.bodies[from].iter().copied());
        if self.bodies[from].is_empty() {
            for next in &self.next[from] {
                match self.around[from].filter(|_| *next < self.nodes.len()) {
                    // What comes after a loop comes in any case; how often it turns depends on the decision.
                    Some(outer) if !self.is_within(*next, outer) => {
                        found.insert(outer);
                    }
                    _ => self.add_until(*next, self.always_later[from], &mut found),
                }
            }
        }
        found.into_iter().map(|index| self.nodes[index]).collect()
    }

    fn is_within(&self, node: usize, outer: usize) -> bool {
        let mut parents = std::iter::successors(self.around[node], |parent| self.around[*parent]);
        parents.any(|parent| parent == outer)
    }

    /// Adds the nodes that always come from `node` on, up to `last`.
    fn add_until(&self, node: usize, last: usize, found: &mut BTreeSet<usize>) {
        let mut node = node;
        while node != last && node < self.nodes.len() {
            found.insert(node);
            if self.forks.contains(&node) {
                let members = self.next[node].iter();
                members.for_each(|member| self.add_until(*member, self.always_later[node], found));
            }
            node = self.always_later[node];
        }
    }
}

fn is_decision(kind: &NodeKind) -> bool {
    matches!(kind, NodeKind::Decision { .. })
}

/// For each node the nearest one that is on all ways from it to the end.
fn always_later(next: &[Vec<usize>], end: usize) -> Vec<usize> {
    let mut later = vec![end; end + 1];
    for node in (0..end).rev() {
        let both = |one: usize, other: usize| {
            let (mut one, mut other) = (one, other);
            while one != other {
                // Edges lead forward, so the earlier one of the two is not on all ways.
                if one < other { one = later[one] } else { other = later[other] }
            }
            one
        };
        later[node] = next[node].iter().copied().reduce(both).unwrap_or(end);
    }
    later
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of the nodes that depend on the first decision or loop of a program.
    #[track_caller]
    fn check(source: &str, expected: &[u32]) {
        let analysis = pml_analysis::analyse(source, &pml_analysis::AnalysisCatalogue::default()).unwrap();
        let code = PlacedCode {
            structure: &analysis.structure,
            program: Some(&analysis.program),
            source,
            capability: None,
        };
        let decides = |kind: &NodeKind| is_decision(kind) || matches!(kind, NodeKind::Loop { .. });
        let first = analysis.structure.nodes.iter().find(|node| decides(&node.kind)).unwrap();
        let found = ControlFlow::new(code).dependents(first.id);
        let lines: BTreeSet<u32> =
            found.iter().filter_map(|id| Some(analysis.structure.node(*id)?.at.line)).collect();
        assert_eq!(lines.into_iter().collect::<Vec<_>>(), expected, "{source}\n{:#?}", analysis.structure);
    }

    #[test]
    fn the_arms_of_a_branch_depend_on_it_and_what_follows_does_not() {
        check(
            "if (args.a) {\nawait mcp.x.one({});\n} else {\nawait mcp.x.two({});\n}\nawait mcp.x.three({});",
            &[2, 4],
        );
        check("if (args.a)\nawait mcp.x.one({});\nawait mcp.x.two({});", &[2]);
    }

    #[test]
    fn what_comes_after_an_early_end_depends_on_the_branch() {
        check("if (args.a) return 1;\nawait mcp.x.one({});\nawait mcp.x.two({});\nreturn 2;", &[2, 3]);
        check("if (args.a) throw new Error('no');\nawait mcp.x.one({});", &[2]);
    }

    #[test]
    fn the_body_of_a_loop_depends_on_it() {
        check("for (const x of args.xs) {\nawait mcp.x.one({ x });\n}\nawait mcp.x.two({});", &[2]);
        check("while (args.a) {\nawait mcp.x.one({});\nawait mcp.x.two({});\n}", &[2, 3]);
    }

    #[test]
    fn all_members_of_a_fork_depend_on_the_branch_around_it() {
        check(
            "if (args.a) {\nawait Promise.all([\nmcp.x.one({}),\nmcp.x.two({})]);\n}\nawait mcp.x.three({});",
            &[2, 3, 4],
        );
    }

    #[test]
    fn a_branch_that_leaves_a_loop_decides_how_often_it_turns() {
        let source = "await mcp.x.one({});\nconst test = () => args.a;\nfor (;;) {\nif (args.b) break;\nawait mcp.x.two({});\n}\nawait mcp.x.three({});";
        let analysis = pml_analysis::analyse(source, &pml_analysis::AnalysisCatalogue::default()).unwrap();
        let code = PlacedCode {
            structure: &analysis.structure,
            program: Some(&analysis.program),
            source,
            capability: None,
        };
        let flow = ControlFlow::new(code);
        let of = |kind: &dyn Fn(&NodeKind) -> bool| {
            analysis.structure.nodes.iter().find(|node| kind(&node.kind)).unwrap().id
        };
        let (decision, around) = (of(&is_decision), of(&|kind| matches!(kind, NodeKind::Loop { .. })));
        let found = flow.dependents(decision);
        assert!(found.contains(&around), "{found:?} {:#?}", analysis.structure);
        let last = analysis.structure.nodes.last().unwrap().id;
        assert!(!found.contains(&last), "{found:?}");
    }
}
