//! Builds the path of a program: the nodes it reached, the outcomes of its decisions, the turns of its loops.
//!
//! Nodes are in the order in which they were first reached. Concurrent branches of a fork are in the order of the
//! structure, so that two equal runs have the same path however long their calls took.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use pml_analysis::{InstrumentedProgram, ProbeSite};
use pml_model::structure::{DecisionForm, EdgeLink, NodeId, NodeKind, NodeLetter, Structure};
use pml_sandbox::{ProbeKind, ReachedPoint};
use serde::{Deserialize, Serialize};

use crate::report::{ExecutedPath, LoopTurns, PathDecision};

/// Finds the node of a probe report.
#[derive(Debug, Default)]
pub(super) struct Sites {
    exact: HashMap<(u32, u32), ProbeSite>,
    all: Vec<ProbeSite>,
    /// The decisions that are taken if the left side is `null` or `undefined`.
    nullish: HashSet<NodeId>,
}

impl Sites {
    /// No sites, for a run without a program.
    pub(super) fn none() -> Sites {
        Sites::default()
    }

    pub(super) fn new(program: &InstrumentedProgram, structure: &Structure) -> Sites {
        let exact = program.sites.iter().map(|site| ((site.point, site.context), site.clone())).collect();
        let is_nullish =
            |kind: &NodeKind| matches!(kind, NodeKind::Decision { form: DecisionForm::Nullish, .. });
        let nullish =
            structure.nodes.iter().filter(|node| is_nullish(&node.kind)).map(|node| node.id).collect();
        Sites { exact, all: program.sites.clone(), nullish }
    }

    /// The site of a call. A call in an unforeseen context belongs to the first site of its point and tool; a call
    /// without a point belongs to the place where its tool was passed on as a value.
    pub(super) fn call(&self, point: u32, context: u32, tool: &str) -> Option<&ProbeSite> {
        let is_it = |site: &&ProbeSite| site.tool.as_deref() == Some(tool);
        let exact = self.exact.get(&(point, context)).filter(|site| is_it(site));
        exact
            .or_else(|| self.all.iter().filter(is_it).find(|site| site.point == point))
            .or_else(|| self.all.iter().filter(is_it).find(|site| site.value))
    }

    /// The pure operation at a point: its node and its name.
    pub(super) fn operation<'s>(
        &self,
        point: u32,
        context: u32,
        structure: &'s Structure,
    ) -> Option<(NodeId, &'s str)> {
        let node = self.exact.get(&(point, context))?.node;
        match &structure.node(node)?.kind {
            NodeKind::Task { tool, pure: true, .. } => Some((node, tool)),
            _ => None,
        }
    }

    fn report(&self, reached: &ReachedPoint) -> Option<&ProbeSite> {
        self.exact.get(&(reached.point, reached.context))
    }
}

/// Assembles the path from probe reports.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct PathBuilder {
    path: ExecutedPath,
    /// When each node was first reached: the reports of a turn arrive after all its calls.
    seen: HashMap<NodeId, VisitOrder>,
    /// The nodes that call capabilities. They are reported at once, while nodes reached before them are reported later.
    #[serde(default)]
    capabilities: HashSet<NodeId>,
}

/// When a node was reached: after how many calls, and whether it is itself the last of those calls.
type VisitOrder = (u32, bool);

impl PathBuilder {
    /// Records that call `number` belongs to this node.
    pub(super) fn visit_call(&mut self, node: NodeId, number: u32) {
        self.visit(node, (number, false));
    }

    /// Records that the capability at this node was called after `after` calls.
    pub(super) fn visit_capability(&mut self, node: NodeId, after: u32) {
        self.visit(node, (after, true));
        self.capabilities.insert(node);
    }

    fn visit(&mut self, node: NodeId, moment: VisitOrder) {
        if let Entry::Vacant(free) = self.seen.entry(node) {
            free.insert(moment);
            self.path.nodes.push(node);
        }
    }

    /// Takes in a probe report.
    pub(super) fn add_report(&mut self, reached: &ReachedPoint, sites: &Sites) {
        let Some(site) = sites.report(reached) else { return };
        self.visit(site.node, (reached.after, true));
        if let Some(outcome) = outcome(reached, site, sites) {
            self.decided(site.node, outcome, reached.count);
        }
        if reached.kind == ProbeKind::Turn {
            self.turned(site.node, reached.count);
        } else if reached.kind == ProbeKind::Loop {
            self.turned(site.node, 0);
        }
    }

    /// The nodes reached and the decisions made so far. Both lists only grow.
    pub(super) fn progress(&self) -> (&[NodeId], &[PathDecision]) {
        (&self.path.nodes, &self.path.decisions)
    }

    fn decided(&mut self, node: NodeId, outcome: String, times: u64) {
        match self.path.decisions.iter_mut().find(|seen| seen.node == node && seen.outcome == outcome) {
            Some(seen) => seen.times += times,
            None => self.path.decisions.push(PathDecision { node, outcome, times }),
        }
    }

    fn turned(&mut self, node: NodeId, turns: u64) {
        match self.path.loops.iter_mut().find(|seen| seen.node == node) {
            Some(seen) => seen.turns += turns,
            None => self.path.loops.push(LoopTurns { node, turns }),
        }
    }

    /// The path so far, in an order that does not depend on how long calls took.
    pub(super) fn build(&self, structure: &Structure) -> ExecutedPath {
        let mut path = self.path.clone();
        path.nodes.sort_by_key(|node| self.seen.get(node).copied());
        let order: HashMap<NodeId, usize> =
            structure.nodes.iter().enumerate().map(|(index, node)| (node.id, index)).collect();
        self.put_capabilities_behind_what_led_to_them(&mut path.nodes, &order);
        put_tries_before_their_bodies(&mut path.nodes, &order);
        in_structure_order_within_forks(&mut path.nodes, &order, structure);
        let place: HashMap<NodeId, usize> =
            path.nodes.iter().enumerate().map(|(index, id)| (*id, index)).collect();
        path.decisions.sort_by_key(|decided| (place.get(&decided.node).copied(), decided.outcome.clone()));
        path.loops.sort_by_key(|turns| place.get(&turns.node).copied());
        path
    }
}

impl PathBuilder {
    /// Among nodes reached between the same two calls, moves a capability behind everything that precedes it in the
    /// structure.
    fn put_capabilities_behind_what_led_to_them(
        &self,
        nodes: &mut Vec<NodeId>,
        order: &HashMap<NodeId, usize>,
    ) {
        let called: Vec<NodeId> =
            nodes.iter().copied().filter(|node| self.capabilities.contains(node)).collect();
        for capability in called {
            let moment = self.seen.get(&capability);
            nodes.retain(|node| *node != capability);
            let first = nodes.partition_point(|node| self.seen.get(node) < moment);
            let together = nodes[first..].iter().take_while(|node| self.seen.get(*node) == moment);
            let before = together.enumerate().filter(|(_, node)| order.get(*node) < order.get(&capability));
            let at = before.map(|(index, _)| first + index + 1).last().unwrap_or(first);
            nodes.insert(at, capability);
        }
    }
}

/// A `try` is reported when its handler is entered, but was reached before its body.
fn put_tries_before_their_bodies(nodes: &mut [NodeId], order: &HashMap<NodeId, usize>) {
    let mut tries: Vec<NodeId> = nodes.iter().copied().filter(|node| node.letter == NodeLetter::T).collect();
    tries.sort_by_key(|node| order.get(node).copied());
    for own in tries {
        let behind = |node: &NodeId| order.get(node) > order.get(&own);
        let now = nodes.iter().position(|node| *node == own);
        if let (Some(now), Some(first)) = (now, nodes.iter().position(behind))
            && first < now
        {
            nodes[first..=now].rotate_right(1);
        }
    }
}

fn outcome(reached: &ReachedPoint, site: &ProbeSite, sites: &Sites) -> Option<String> {
    let truth = |truth: bool| Some(if truth { "true" } else { "false" }.to_owned());
    match reached.kind {
        ProbeKind::Is => truth(reached.outcome != 0),
        // The right side is taken if the left side is `null` or `undefined`.
        ProbeKind::Has if sites.nullish.contains(&site.node) => truth(reached.outcome == 0),
        ProbeKind::Has => truth(reached.outcome != 0),
        ProbeKind::Case => {
            usize::try_from(reached.outcome).ok().and_then(|index| site.outcomes.get(index).cloned())
        }
        ProbeKind::Caught => Some("error".to_owned()),
        ProbeKind::Loop | ProbeKind::Turn | ProbeKind::Did | ProbeKind::Fork => None,
    }
}

fn in_structure_order_within_forks(
    nodes: &mut [NodeId],
    place: &HashMap<NodeId, usize>,
    structure: &Structure,
) {
    let forks: Vec<NodeId> = nodes.iter().copied().filter(|id| id.letter == NodeLetter::F).collect();
    for fork in forks {
        let members = members(fork, structure);
        let places: Vec<usize> =
            nodes.iter().enumerate().filter(|(_, id)| members.contains(id)).map(|(index, _)| index).collect();
        let mut inside: Vec<NodeId> = places.iter().map(|index| nodes[*index]).collect();
        inside.sort_by_key(|id| place.get(id).copied());
        for (index, id) in places.iter().zip(inside) {
            nodes[*index] = id;
        }
        // A fork reports itself after its members have started.
        let own = nodes.iter().position(|id| *id == fork);
        if let (Some(own), Some(first)) = (own, places.first())
            && *first < own
        {
            nodes[*first..=own].rotate_right(1);
        }
    }
}

/// The nodes between a fork and its join.
fn members(fork: NodeId, structure: &Structure) -> HashSet<NodeId> {
    // Fork and join have different numbers, but the same position.
    let at = structure.node(fork).map(|node| node.at);
    let is_its_join = |id: NodeId| {
        structure.node(id).is_some_and(|node| matches!(node.kind, NodeKind::Join) && Some(node.at) == at)
    };
    let mut members = HashSet::new();
    let mut waiting = vec![fork];
    while let Some(from) = waiting.pop() {
        for edge in structure.edges.iter().filter(|edge| edge.from == from && !is_its_join(edge.to)) {
            let follows =
                matches!(edge.link, EdgeLink::Sequence | EdgeLink::Conditional { .. } | EdgeLink::Contains);
            if follows && members.insert(edge.to) {
                waiting.push(edge.to);
            }
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use pml_analysis::{AnalysisCatalogue, analyse};

    use super::*;

    /// The path of a program whose probes report `reports`, each a kind, a node and an outcome.
    fn path(source: &str, reports: &[(ProbeKind, &str, i32)]) -> ExecutedPath {
        let analysis = analyse(source, &AnalysisCatalogue::default()).unwrap();
        let sites = Sites::new(&analysis.program, &analysis.structure);
        let mut way = PathBuilder::default();
        for (kind, node, outcome) in reports {
            let node = NodeId::try_from((*node).to_owned()).unwrap();
            let site = analysis.program.sites.iter().find(|site| site.node == node).unwrap();
            let reached = ReachedPoint {
                kind: *kind,
                point: site.point,
                context: site.context,
                outcome: *outcome,
                count: 1,
                after: 0,
            };
            way.add_report(&reached, &sites);
        }
        way.build(&analysis.structure)
    }

    fn names(path: &ExecutedPath) -> String {
        path.nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn members_of_a_fork_stand_in_the_order_of_the_structure_behind_it() {
        let source = "const [a, b] = await Promise.all([mcp.s.a({}), mcp.s.b({})]); return mcp.s.c({ a, b })";
        let one = path(
            source,
            &[
                (ProbeKind::Did, "n2", 0),
                (ProbeKind::Did, "n1", 0),
                (ProbeKind::Fork, "f1", 0),
                (ProbeKind::Did, "n3", 0),
            ],
        );
        let other = path(
            source,
            &[
                (ProbeKind::Did, "n1", 0),
                (ProbeKind::Fork, "f1", 0),
                (ProbeKind::Did, "n2", 0),
                (ProbeKind::Did, "n3", 0),
            ],
        );
        assert_eq!(names(&one), "f1 n1 n2 n3");
        assert_eq!(one, other);
    }

    #[test]
    fn a_decision_stands_before_the_call_it_led_to_though_it_is_told_later() {
        let source = "const file = await mcp.fs.stat({}); if (file.exists) await mcp.fs.read({}); else await mcp.fs.create({});";
        let analysis = analyse(source, &AnalysisCatalogue::default()).unwrap();
        let sites = Sites::new(&analysis.program, &analysis.structure);
        let node = |name: &str| NodeId::try_from(name.to_owned()).unwrap();
        let mut way = PathBuilder::default();
        way.visit_call(node("n1"), 1);
        way.visit_call(node("n2"), 2);
        let decision = analysis.program.sites.iter().find(|site| site.node == node("d1")).unwrap();
        let (point, context) = (decision.point, decision.context);
        way.add_report(
            &ReachedPoint { kind: ProbeKind::Is, point, context, outcome: 1, count: 1, after: 1 },
            &sites,
        );
        assert_eq!(names(&way.build(&analysis.structure)), "n1 d1 n2");
    }

    #[test]
    fn what_follows_a_fork_is_none_of_its_members() {
        let source = "await Promise.all([1].map(async (x) => { await Promise.all([mcp.s.a({ x }), mcp.s.b({ x })]); }));\
                      for (const y of args.ys) { if (y) await mcp.s.c({}); else await mcp.s.d({}); }";
        let analysis = analyse(source, &AnalysisCatalogue::default()).unwrap();
        let outer = NodeId { letter: NodeLetter::F, number: 1 };
        let mut inside: Vec<String> =
            members(outer, &analysis.structure).iter().map(ToString::to_string).collect();
        inside.sort();
        assert!(inside.contains(&"n1".to_owned()) && inside.contains(&"n2".to_owned()), "{inside:?}");
        assert!(!inside.contains(&"n3".to_owned()) && !inside.contains(&"n4".to_owned()), "{inside:?}");
    }

    #[test]
    fn a_loop_stands_once_with_its_turns_and_its_body_in_the_order_of_the_first_visit() {
        let source = "for (const x of args.xs) { if (x) await mcp.s.a({}); else await mcp.s.b({}); }";
        let turn = (ProbeKind::Turn, "l1", 0);
        let seen = path(
            source,
            &[
                (ProbeKind::Loop, "l1", 0),
                turn,
                (ProbeKind::Is, "d1", 0),
                (ProbeKind::Did, "n2", 0),
                turn,
                (ProbeKind::Is, "d1", 1),
                (ProbeKind::Did, "n1", 0),
            ],
        );
        assert_eq!(names(&seen), "l1 d1 n2 n1");
        assert_eq!(seen.loops.iter().map(|turns| turns.turns).collect::<Vec<_>>(), [2]);
        let outcomes: Vec<(&str, u64)> =
            seen.decisions.iter().map(|d| (d.outcome.as_str(), d.times)).collect();
        assert_eq!(outcomes, [("false", 1), ("true", 1)]);
    }

    #[test]
    fn nothing_on_the_left_of_a_nullish_operator_is_its_true_outcome() {
        let seen = path(
            "return args.x ?? (await mcp.s.a({}))",
            &[(ProbeKind::Has, "d1", 0), (ProbeKind::Did, "n1", 0)],
        );
        assert_eq!(seen.decisions[0].outcome, "true");
        let seen = path("return args.x?.y && (await mcp.s.a({}))", &[(ProbeKind::Is, "d1", 1)]);
        assert_eq!(seen.decisions[0].outcome, "true");
    }

    #[test]
    fn the_handler_of_a_try_is_an_outcome_of_it() {
        let seen = path(
            "try { await mcp.s.a({}) } catch { await mcp.s.b({}) }",
            &[(ProbeKind::Did, "n1", 0), (ProbeKind::Caught, "t1", 0)],
        );
        assert_eq!(
            seen.decisions,
            [PathDecision {
                node: NodeId::try_from("t1".to_owned()).unwrap(),
                outcome: "error".into(),
                times: 1
            }]
        );
    }
}
