//! Which way a program went: the nodes it came to, the outcomes of its decisions, the turns of its loops.
//!
//! The path is in the order in which nodes were first come to; what ran side by side in a fork stands in the order of the
//! structure, so that two runs that did the same have the same path however long their calls took.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use pml_analysis::{Program, Site};
use pml_model::structure::{DecisionForm, Letter, Link, NodeId, NodeKind, Structure};
use pml_sandbox::{Kind, Reached};
use serde::{Deserialize, Serialize};

/// Which way a program went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    /// The nodes it came to.
    pub nodes: Vec<NodeId>,
    /// What its decisions came to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decided>,
    /// How often its loops went around.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<Turns>,
}

/// One outcome of a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// The decision, or the `try` whose handler was entered.
    pub node: NodeId,
    /// `true`, `false`, `case:<value>`, `default`, `error`.
    pub outcome: String,
    /// How often.
    pub times: u64,
}

/// The turns of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turns {
    /// The loop.
    pub node: NodeId,
    /// How many.
    pub turns: u64,
}

/// Finds the node of a report.
#[derive(Debug, Default)]
pub(super) struct Sites {
    exact: HashMap<(u32, u32), Site>,
    all: Vec<Site>,
    /// The decisions that are taken where there is nothing on the left.
    nullish: HashSet<NodeId>,
}

impl Sites {
    /// Where there is no program.
    pub(super) fn none() -> Sites {
        Sites::default()
    }

    pub(super) fn new(program: &Program, structure: &Structure) -> Sites {
        let exact = program.sites.iter().map(|site| ((site.point, site.context), site.clone())).collect();
        let is_nullish =
            |kind: &NodeKind| matches!(kind, NodeKind::Decision { form: DecisionForm::Nullish, .. });
        let nullish =
            structure.nodes.iter().filter(|node| is_nullish(&node.kind)).map(|node| node.id).collect();
        Sites { exact, all: program.sites.clone(), nullish }
    }

    /// The site of a call. One made in a context nobody foresaw belongs to the first site of its point and tool;
    /// one that carries no point, to the place where its tool was handed on as a value.
    pub(super) fn call(&self, point: u32, context: u32, tool: &str) -> Option<&Site> {
        let is_it = |site: &&Site| site.tool.as_deref() == Some(tool);
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

    fn report(&self, reached: &Reached) -> Option<&Site> {
        self.exact.get(&(reached.point, reached.context))
    }
}

/// Puts together what probes reported.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Way {
    path: Path,
    /// When each node was first come to: what is told of a turn comes after all its calls.
    seen: HashMap<NodeId, Moment>,
    /// The nodes that call capabilities: they are told of at once, and what was come to before them only later.
    #[serde(default)]
    capabilities: HashSet<NodeId>,
}

/// When something was come to: after how many calls, and whether it is the last of them itself.
type Moment = (u32, bool);

impl Way {
    /// A call of the program, by its number, belongs to this node.
    pub(super) fn call(&mut self, node: NodeId, number: u32) {
        self.visit(node, (number, false));
    }

    /// A capability was called after so many calls, and belongs to this node.
    pub(super) fn capability(&mut self, node: NodeId, after: u32) {
        self.visit(node, (after, true));
        self.capabilities.insert(node);
    }

    fn visit(&mut self, node: NodeId, moment: Moment) {
        if let Entry::Vacant(free) = self.seen.entry(node) {
            free.insert(moment);
            self.path.nodes.push(node);
        }
    }

    /// Takes in a report.
    pub(super) fn take(&mut self, reached: &Reached, sites: &Sites) {
        let Some(site) = sites.report(reached) else { return };
        self.visit(site.node, (reached.after, true));
        if let Some(outcome) = outcome(reached, site, sites) {
            self.decided(site.node, outcome, reached.count);
        }
        if reached.kind == Kind::Turn {
            self.turned(site.node, reached.count);
        } else if reached.kind == Kind::Loop {
            self.turned(site.node, 0);
        }
    }

    fn decided(&mut self, node: NodeId, outcome: String, times: u64) {
        match self.path.decisions.iter_mut().find(|seen| seen.node == node && seen.outcome == outcome) {
            Some(seen) => seen.times += times,
            None => self.path.decisions.push(Decided { node, outcome, times }),
        }
    }

    fn turned(&mut self, node: NodeId, turns: u64) {
        match self.path.loops.iter_mut().find(|seen| seen.node == node) {
            Some(seen) => seen.turns += turns,
            None => self.path.loops.push(Turns { node, turns }),
        }
    }

    /// The path so far, in an order that does not depend on how long calls took.
    pub(super) fn path(&self, structure: &Structure) -> Path {
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

impl Way {
    /// Of what was come to between the same two calls, a capability stands behind all that the structure has before it.
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

/// A `try` is told of when its handler is entered, but it was come to before what it tries.
fn put_tries_before_their_bodies(nodes: &mut [NodeId], order: &HashMap<NodeId, usize>) {
    let mut tries: Vec<NodeId> = nodes.iter().copied().filter(|node| node.letter == Letter::T).collect();
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

fn outcome(reached: &Reached, site: &Site, sites: &Sites) -> Option<String> {
    let truth = |truth: bool| Some(if truth { "true" } else { "false" }.to_owned());
    match reached.kind {
        Kind::Is => truth(reached.outcome != 0),
        // The right side is taken where there is nothing on the left.
        Kind::Has if sites.nullish.contains(&site.node) => truth(reached.outcome == 0),
        Kind::Has => truth(reached.outcome != 0),
        Kind::Case => {
            usize::try_from(reached.outcome).ok().and_then(|index| site.outcomes.get(index).cloned())
        }
        Kind::Caught => Some("error".to_owned()),
        Kind::Loop | Kind::Turn | Kind::Did | Kind::Fork => None,
    }
}

fn in_structure_order_within_forks(
    nodes: &mut [NodeId],
    place: &HashMap<NodeId, usize>,
    structure: &Structure,
) {
    let forks: Vec<NodeId> = nodes.iter().copied().filter(|id| id.letter == Letter::F).collect();
    for fork in forks {
        let members = members(fork, structure);
        let places: Vec<usize> =
            nodes.iter().enumerate().filter(|(_, id)| members.contains(id)).map(|(index, _)| index).collect();
        let mut inside: Vec<NodeId> = places.iter().map(|index| nodes[*index]).collect();
        inside.sort_by_key(|id| place.get(id).copied());
        for (index, id) in places.iter().zip(inside) {
            nodes[*index] = id;
        }
        // It reports itself when its members have begun.
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
    // They are numbered apart, but stand at the same place.
    let at = structure.node(fork).map(|node| node.at);
    let is_its_join = |id: NodeId| {
        structure.node(id).is_some_and(|node| matches!(node.kind, NodeKind::Join) && Some(node.at) == at)
    };
    let mut members = HashSet::new();
    let mut waiting = vec![fork];
    while let Some(from) = waiting.pop() {
        for edge in structure.edges.iter().filter(|edge| edge.from == from && !is_its_join(edge.to)) {
            let follows = matches!(edge.link, Link::Sequence | Link::Conditional { .. } | Link::Contains);
            if follows && members.insert(edge.to) {
                waiting.push(edge.to);
            }
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use pml_analysis::{Catalogue, analyse};

    use super::*;

    /// The path of a program whose probes report `reports`, each a kind, a node and an outcome.
    fn path(source: &str, reports: &[(Kind, &str, i32)]) -> Path {
        let analysis = analyse(source, &Catalogue::default()).unwrap();
        let sites = Sites::new(&analysis.program, &analysis.structure);
        let mut way = Way::default();
        for (kind, node, outcome) in reports {
            let node = NodeId::try_from((*node).to_owned()).unwrap();
            let site = analysis.program.sites.iter().find(|site| site.node == node).unwrap();
            let reached = Reached {
                kind: *kind,
                point: site.point,
                context: site.context,
                outcome: *outcome,
                count: 1,
                after: 0,
            };
            way.take(&reached, &sites);
        }
        way.path(&analysis.structure)
    }

    fn names(path: &Path) -> String {
        path.nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn members_of_a_fork_stand_in_the_order_of_the_structure_behind_it() {
        let source = "const [a, b] = await Promise.all([mcp.s.a({}), mcp.s.b({})]); return mcp.s.c({ a, b })";
        let one = path(
            source,
            &[(Kind::Did, "n2", 0), (Kind::Did, "n1", 0), (Kind::Fork, "f1", 0), (Kind::Did, "n3", 0)],
        );
        let other = path(
            source,
            &[(Kind::Did, "n1", 0), (Kind::Fork, "f1", 0), (Kind::Did, "n2", 0), (Kind::Did, "n3", 0)],
        );
        assert_eq!(names(&one), "f1 n1 n2 n3");
        assert_eq!(one, other);
    }

    #[test]
    fn a_decision_stands_before_the_call_it_led_to_though_it_is_told_later() {
        let source = "const file = await mcp.fs.stat({}); if (file.exists) await mcp.fs.read({}); else await mcp.fs.create({});";
        let analysis = analyse(source, &Catalogue::default()).unwrap();
        let sites = Sites::new(&analysis.program, &analysis.structure);
        let node = |name: &str| NodeId::try_from(name.to_owned()).unwrap();
        let mut way = Way::default();
        way.call(node("n1"), 1);
        way.call(node("n2"), 2);
        let decision = analysis.program.sites.iter().find(|site| site.node == node("d1")).unwrap();
        let (point, context) = (decision.point, decision.context);
        way.take(&Reached { kind: Kind::Is, point, context, outcome: 1, count: 1, after: 1 }, &sites);
        assert_eq!(names(&way.path(&analysis.structure)), "n1 d1 n2");
    }

    #[test]
    fn what_follows_a_fork_is_none_of_its_members() {
        let source = "await Promise.all([1].map(async (x) => { await Promise.all([mcp.s.a({ x }), mcp.s.b({ x })]); }));\
                      for (const y of args.ys) { if (y) await mcp.s.c({}); else await mcp.s.d({}); }";
        let analysis = analyse(source, &Catalogue::default()).unwrap();
        let outer = NodeId { letter: Letter::F, number: 1 };
        let mut inside: Vec<String> =
            members(outer, &analysis.structure).iter().map(ToString::to_string).collect();
        inside.sort();
        assert!(inside.contains(&"n1".to_owned()) && inside.contains(&"n2".to_owned()), "{inside:?}");
        assert!(!inside.contains(&"n3".to_owned()) && !inside.contains(&"n4".to_owned()), "{inside:?}");
    }

    #[test]
    fn a_loop_stands_once_with_its_turns_and_its_body_in_the_order_of_the_first_visit() {
        let source = "for (const x of args.xs) { if (x) await mcp.s.a({}); else await mcp.s.b({}); }";
        let turn = (Kind::Turn, "l1", 0);
        let seen = path(
            source,
            &[
                (Kind::Loop, "l1", 0),
                turn,
                (Kind::Is, "d1", 0),
                (Kind::Did, "n2", 0),
                turn,
                (Kind::Is, "d1", 1),
                (Kind::Did, "n1", 0),
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
        let seen =
            path("return args.x ?? (await mcp.s.a({}))", &[(Kind::Has, "d1", 0), (Kind::Did, "n1", 0)]);
        assert_eq!(seen.decisions[0].outcome, "true");
        let seen = path("return args.x?.y && (await mcp.s.a({}))", &[(Kind::Is, "d1", 1)]);
        assert_eq!(seen.decisions[0].outcome, "true");
    }

    #[test]
    fn the_handler_of_a_try_is_an_outcome_of_it() {
        let seen = path(
            "try { await mcp.s.a({}) } catch { await mcp.s.b({}) }",
            &[(Kind::Did, "n1", 0), (Kind::Caught, "t1", 0)],
        );
        assert_eq!(
            seen.decisions,
            [Decided { node: NodeId::try_from("t1".to_owned()).unwrap(), outcome: "error".into(), times: 1 }]
        );
    }
}
