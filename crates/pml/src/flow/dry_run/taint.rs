//! Where the outcome of a dry run depends on made-up values: along the data flow of the program, from a call that was
//! answered with one to a decision, to the arguments of a later call, or to the result; and from such a decision or loop
//! to the calls that are made because of it. A capability is followed like the program that calls it.
//!
//! A variable that only gets another constant in a branch is not followed.

mod files;

use std::collections::{BTreeMap, BTreeSet};

use pml_analysis::DecisionReads;
use pml_model::structure::{DecisionForm, NodeId, NodeKind, Structure};

use super::control::ControlFlow;
use super::places::{PlacedCode, reaches};
use crate::execute::dry_run::{DryCallRecord, DryRunRecord};
use crate::plan::Plan;
use crate::report::{DryRunWarning, ExecutedPath};
use files::SkippedWrite;

/// What depends on made-up values.
#[derive(Debug, Default)]
pub(super) struct Taint {
    pub(super) warnings: Vec<DryRunWarning>,
    /// The calls whose arguments do, and those that are only made because of such values.
    pub(super) calls: BTreeSet<u32>,
    /// Writes of files that were not made, because of such values.
    skipped: Vec<SkippedWrite>,
}

/// The name of the tool or capability whose result was made up.
type Source = String;

/// The calls and the path of one place: the program itself, or a capability that is called there.
struct PlacedRun<'r> {
    code: PlacedCode<'r>,
    /// The nodes that call it, outermost first.
    place: Vec<NodeId>,
    /// The node of the program itself that the calls belong to.
    outer: Option<NodeId>,
    paths: Vec<&'r ExecutedPath>,
    /// The calls that the code itself makes, with their nodes.
    calls: Vec<(NodeId, &'r DryCallRecord)>,
}

/// What made-up values reach at one place.
#[derive(Default)]
struct Spread {
    /// The nodes whose results are made up, or come only because of such values.
    origins: BTreeMap<NodeId, Source>,
    /// The nodes that are given such values.
    given: BTreeMap<NodeId, Source>,
    /// The decisions and loops that go by them.
    decided: BTreeMap<NodeId, Source>,
    /// The nodes that are only reached because of these.
    led_to: BTreeMap<NodeId, Source>,
}

/// What a capability is called with.
#[derive(Default)]
struct Entered {
    arguments: Option<Source>,
    because: Option<Source>,
}

/// Follows made-up values through the program of `plan`, as far as `record` shows.
pub(super) fn follow(plan: &Plan, record: &DryRunRecord) -> Taint {
    let mut made_up: BTreeSet<u32> =
        record.calls.iter().filter(|call| is_made_up(call)).map(|call| call.call).collect();
    loop {
        let mut taint = Taint::default();
        let program = (PlacedCode::of_plan(plan), Vec::new());
        taint.follow_place(plan, record, &made_up, program, &Entered::default());
        let before = made_up.len();
        made_up.extend(files::affected_reads(&record.calls, &taint));
        if made_up.len() == before {
            return taint;
        }
    }
}

fn is_made_up(call: &DryCallRecord) -> bool {
    call.node.is_some() && has_returned(call) && (call.is_made_up() || call.unknown_state)
}

fn has_returned(call: &DryCallRecord) -> bool {
    call.end.as_ref().is_some_and(Result::is_ok)
}

impl Taint {
    fn follow_place(
        &mut self,
        plan: &Plan,
        record: &DryRunRecord,
        made_up: &BTreeSet<u32>,
        (code, place): (PlacedCode<'_>, Vec<NodeId>),
        entered: &Entered,
    ) {
        let run = PlacedRun::new(code, place, record);
        let spread = run.spread(record, made_up, entered);
        self.warn_of_calls(&run, &spread);
        self.skipped.extend(run.skipped_writes(&spread));
        self.warn_of_decisions(&run, &spread);
        if run.place.is_empty() {
            self.warn_of_result(plan, &run, &spread);
        }
        let called: BTreeSet<NodeId> =
            record.frames.iter().filter_map(|frame| run.node_of(&frame.place)).collect();
        for node in called {
            let Some(capability) = code.called_at(plan, node) else { continue };
            let entered = Entered {
                arguments: spread.given.get(&node).cloned(),
                because: spread.led_to.get(&node).cloned(),
            };
            let place = run.place.iter().copied().chain([node]).collect();
            self.follow_place(plan, record, made_up, (capability, place), &entered);
        }
    }

    fn warn_of_calls(&mut self, run: &PlacedRun<'_>, spread: &Spread) {
        for (node, call) in &run.calls {
            let (source, text) = match (spread.given.get(node), spread.led_to.get(node)) {
                (Some(source), _) => (source, format!("the arguments of `{}` depend on", call.tool)),
                (None, Some(source)) => (source, format!("`{}` is called because of", call.tool)),
                (None, None) => continue,
            };
            self.calls.insert(call.call);
            self.warn(run, source, &text, Some(run.outer.unwrap_or(*node)), call.line);
        }
    }

    fn warn_of_decisions(&mut self, run: &PlacedRun<'_>, spread: &Spread) {
        for (node, source) in spread.decided.iter().filter(|(node, _)| run.has_reached(**node)) {
            // What is only reached because of another decision goes by that one.
            if spread.led_to.contains_key(node) && !spread.reads_made_up(run.code, *node) {
                continue;
            }
            let Some(found) = run.code.structure.node(*node) else { continue };
            let text = match &found.kind {
                NodeKind::Decision { condition, .. } => format!("`{condition}` is decided by"),
                NodeKind::Loop { over, .. } => {
                    format!("how often the loop over `{over}` turns is decided by")
                }
                _ => continue,
            };
            self.warn(run, source, &text, Some(run.outer.unwrap_or(*node)), Some(found.at.line));
        }
    }

    fn warn_of_result(&mut self, plan: &Plan, run: &PlacedRun<'_>, spread: &Spread) {
        let returned = run.code.program.map(|program| &program.returns_from[..]).unwrap_or_default();
        let returned = returned.iter().find_map(|read| spread.of_value(*read));
        // The result of a DAG is that of all its tasks.
        let of_dag = || plan.dag().and_then(|_| spread.origins.values().next());
        if let Some(source) = returned.or_else(of_dag).or_else(|| spread.ends_by(run)) {
            let source = source.clone();
            self.warn(run, &source, "the result depends on", None, None);
        }
    }

    fn warn(
        &mut self,
        run: &PlacedRun<'_>,
        source: &str,
        text: &str,
        node: Option<NodeId>,
        line: Option<u32>,
    ) {
        let said = format!("{text} the made-up result of `{source}`");
        let message = match (line, run.code.capability) {
            (Some(line), Some(capability)) => format!("`{capability}`, line {line}: {said}"),
            (Some(line), None) => format!("line {line}: {said}"),
            (None, _) => said,
        };
        let warning = DryRunWarning { message, tool: Some(source.to_owned()), node_id: node, line };
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

impl<'r> PlacedRun<'r> {
    fn new(code: PlacedCode<'r>, place: Vec<NodeId>, record: &'r DryRunRecord) -> PlacedRun<'r> {
        let paths = match place.is_empty() {
            true => vec![&record.report.path],
            false => {
                record.frames.iter().filter(|frame| frame.place == place).map(|frame| &frame.path).collect()
            }
        };
        let own = |call: &'r DryCallRecord| {
            let (path, node) = call.place.as_ref()?;
            (*path == place).then_some((*node, call))
        };
        let calls = record.calls.iter().filter_map(own).collect();
        PlacedRun { code, outer: place.first().copied(), calls, paths, place }
    }

    /// The node of this code that `path` goes through.
    fn node_of(&self, path: &[NodeId]) -> Option<NodeId> {
        path.strip_prefix(&self.place[..])?.first().copied()
    }

    fn has_reached(&self, node: NodeId) -> bool {
        self.paths.iter().any(|path| {
            path.nodes.contains(&node)
                || path.decisions.iter().any(|decided| decided.node == node)
                || path.loops.iter().any(|turned| turned.node == node)
        })
    }

    /// The writes of files that a decision about made-up values kept from being made.
    fn skipped_writes(&self, spread: &Spread) -> Vec<SkippedWrite> {
        let skipped = spread.led_to.keys().filter(|node| !self.has_reached(**node));
        skipped.filter_map(|node| SkippedWrite::of(self, *node)).collect()
    }

    /// What made-up values reach, until nothing more is reached.
    fn spread(&self, record: &DryRunRecord, made_up: &BTreeSet<u32>, entered: &Entered) -> Spread {
        let mut spread = Spread::default();
        for call in record.calls.iter().filter(|call| made_up.contains(&call.call)) {
            let Some((path, own)) = &call.place else { continue };
            // A capability shows as one node: whatever is made up within it is a part of its result.
            let node = if *path == self.place { Some(*own) } else { self.node_of(path) };
            if let Some(node) = node {
                spread.origins.insert(node, name_of(self.code.structure, node));
            }
        }
        if spread.origins.is_empty() && entered.arguments.is_none() && entered.because.is_none() {
            return spread;
        }
        let flow = ControlFlow::new(self.code);
        while spread.grow(self, &flow, entered) {}
        spread
    }
}

impl Spread {
    /// One step along all edges; returns whether it reached anything new.
    fn grow(&mut self, run: &PlacedRun<'_>, flow: &ControlFlow, entered: &Entered) -> bool {
        let before = (self.origins.len(), self.given.len(), self.decided.len(), self.led_to.len());
        let structure = run.code.structure;
        if let Some(source) = &entered.arguments {
            run.code.takes_arguments().into_iter().for_each(|node| add(&mut self.given, node, source));
        }
        if let Some(source) = &entered.because {
            structure.nodes.iter().for_each(|node| add(&mut self.led_to, node.id, source));
        }
        for (node, from) in reaches(structure, &self.origins.keys().copied().collect()) {
            // A call whose own answer is made up taints what comes after it, not its arguments.
            if let Some(source) = from.iter().find(|source| **source != node) {
                let source = self.origins[source].clone();
                add(&mut self.given, node, &source);
            }
        }
        for (node, source) in self.read_by_deciders(run.code, entered) {
            add(&mut self.decided, node, &source);
        }
        for (decider, source) in self.decided.clone() {
            flow.dependents(decider).into_iter().for_each(|node| add(&mut self.led_to, node, &source));
        }
        for (node, source) in self.led_to.clone() {
            match structure.node(node).map(|node| &node.kind) {
                Some(NodeKind::Decision { .. } | NodeKind::Loop { .. }) => {
                    add(&mut self.decided, node, &source);
                }
                Some(NodeKind::Task { .. } | NodeKind::Capability { .. }) => {
                    add(&mut self.origins, node, &source);
                }
                _ => {}
            }
        }
        before != (self.origins.len(), self.given.len(), self.decided.len(), self.led_to.len())
    }

    /// The source of the value of a node, if it depends on made-up values.
    fn of_value(&self, node: NodeId) -> Option<&Source> {
        self.origins.get(&node).or_else(|| self.given.get(&node))
    }

    fn read_by_deciders(&self, code: PlacedCode<'_>, entered: &Entered) -> Vec<(NodeId, Source)> {
        let decided = code.program.map(|program| &program.decided_by[..]).unwrap_or_default();
        let by_values = decided.iter().filter_map(|DecisionReads { node, reads }| {
            Some((*node, reads.iter().find_map(|read| self.of_value(*read))?.clone()))
        });
        let by_arguments = code.structure.nodes.iter().filter_map(|node| {
            let text = match &node.kind {
                NodeKind::Decision { condition, .. } => condition,
                NodeKind::Loop { over, .. } => over,
                _ => return None,
            };
            Some((node.id, entered.arguments.clone().filter(|_| text.contains("args"))?))
        });
        by_values.chain(by_arguments).collect()
    }

    fn reads_made_up(&self, code: PlacedCode<'_>, decider: NodeId) -> bool {
        self.read_by_deciders(code, &Entered::default()).iter().any(|(node, _)| *node == decider)
    }

    /// The source of a decision about how the program ends: which of several ends it comes to, or which of two values it
    /// gives there.
    fn ends_by(&self, run: &PlacedRun<'_>) -> Option<&Source> {
        let ends = run.code.program.map(|program| &program.ends_after[..]).unwrap_or_default();
        let chooses_value = |node: &&NodeId| {
            let kind = run.code.structure.node(**node).map(|node| &node.kind);
            matches!(
                kind,
                Some(NodeKind::Decision { form: DecisionForm::Ternary | DecisionForm::Nullish, .. })
            )
        };
        let before = ends.iter().flatten().filter(|node| ends.len() > 1 || chooses_value(node));
        before
            .filter(|node| run.has_reached(**node))
            .find_map(|node| self.decided.get(node).or_else(|| self.led_to.get(node)))
    }
}

fn add(to: &mut BTreeMap<NodeId, Source>, node: NodeId, source: &Source) {
    to.entry(node).or_insert_with(|| source.clone());
}

fn name_of(structure: &Structure, node: NodeId) -> Source {
    match structure.node(node).map(|node| &node.kind) {
        Some(NodeKind::Task { tool, .. }) => tool.clone(),
        Some(NodeKind::Capability { capability, .. }) => capability.clone(),
        _ => "a call".to_owned(),
    }
}
