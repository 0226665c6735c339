//! Turns the findings of a walk into the result: arguments, edges, parameters, complaints.

mod callees;
mod check;
mod draw;
mod edges;
mod lowering;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use oxc_span::Span;
use pml_model::structure::{Argument, Edge, NodeId, Structure};

use self::callees::Callees;
use self::lowering::Lowering;
use super::memory::PromiseOrigin;
use super::parts::graph::DraftKind;
use super::{BudgetSpent, WalkFindings, Walker};
use crate::analysis::{ComplaintCode, DecisionReads, Severity};
use crate::annotations;
use crate::literals::{LiftedParameters, LiteralLifter, hide_secrets, secret_complaint};
use crate::value::AbstractValue;

impl<'a, 's> Walker<'a, 's> {
    pub(super) fn finish(mut self) -> Result<WalkFindings, BudgetSpent> {
        self.follow_uncalled();
        self.complain_of_unawaited();
        self.declare_written();
        let callees = Callees::of(self.input.catalogue, &self.graph.nodes);
        let arguments = self.lower_arguments()?;
        let (decided_by, returns_from) = self.follow_results();
        let ends_after = self.ends_after();
        self.add_edges(&callees);
        self.check_calls(&callees, &arguments);
        let LiftedParameters { parameters, spans, secrets } = self.lift(&callees)?;
        let Walker { input, mut graph, mut probes, mut diagnostics, permissions, .. } = self;
        let mut nodes = draw::draw_nodes(&input, &graph, &callees, arguments);
        hide_secrets(&mut nodes, &parameters);
        let edges = graph.take_edges().into_iter().map(|(from, to, link)| Edge {
            from: graph.node(from).id,
            to: graph.node(to).id,
            link,
        });
        let mut structure = Structure { nodes, edges: edges.collect() };
        let refused =
            annotations::apply_annotations(input.program, input.source, input.lines, &mut structure);
        let complaints = &mut diagnostics.complaints;
        complaints.extend(refused);
        let sites = draw::draw_sites(&graph, &callees, &structure.nodes);
        probes.marks.lifted = spans;
        complaints.extend(secrets.iter().map(|(name, span)| secret_complaint(name, *span, input.lines)));
        diagnostics.complain_of_opaque(&permissions.found.opaque);
        let mut complaints = diagnostics.complaints;
        complaints.sort_by_key(|complaint| (complaint.at.start, complaint.severity, complaint.code));
        Ok(WalkFindings {
            structure,
            parameters,
            permissions: permissions.found,
            complaints,
            marks: probes.marks,
            sites,
            entries: probes.entries,
            decided_by,
            returns_from,
            ends_after,
        })
    }

    /// # Errors
    /// The budget is spent: the findings cannot be relied on.
    fn within_budget(&self) -> Result<(), BudgetSpent> {
        let (budget, program) = (self.memory.budget(), self.input.program);
        if budget.is_spent_at(program.span) {
            return Err(BudgetSpent(budget.gave_up_at().unwrap_or(program.span)));
        }
        Ok(())
    }

    /// Arguments of each node that has some.
    fn lower_arguments(&self) -> Result<Vec<Option<Argument>>, BudgetSpent> {
        let lowering = Lowering::new(self.input.source, &self.graph, &self.memory);
        let arguments = (0..self.graph.nodes.len()).map(|node| lowering.arguments_of(node as u32)).collect();
        self.within_budget()?;
        Ok(arguments)
    }

    /// The calls whose results decisions test or loops turn by, and those whose results the program returns.
    fn follow_results(&mut self) -> (Vec<DecisionReads>, Vec<NodeId>) {
        let (decided, returned) =
            (std::mem::take(&mut self.graph.decided), std::mem::take(&mut self.graph.returned));
        let lowering = Lowering::new(self.input.source, &self.graph, &self.memory);
        let reads = |value: &AbstractValue<'a>| -> BTreeSet<NodeId> {
            lowering.providers(value).iter().map(|(from, _)| self.graph.node(*from).id).collect()
        };
        let mut by_decision: BTreeMap<NodeId, BTreeSet<NodeId>> = BTreeMap::new();
        for (decision, tested) in &decided {
            by_decision.entry(self.graph.node(*decision).id).or_default().extend(reads(tested));
        }
        let decided_by = by_decision
            .into_iter()
            .filter(|(_, reads)| !reads.is_empty())
            .map(|(node, reads)| DecisionReads { node, reads: reads.into_iter().collect() });
        let returns: BTreeSet<NodeId> = returned.iter().flat_map(reads).collect();
        (decided_by.collect(), returns.into_iter().collect())
    }

    fn ends_after(&self) -> Vec<Vec<NodeId>> {
        let ids = |nodes: &Vec<u32>| nodes.iter().map(|node| self.graph.node(*node).id).collect();
        self.graph.ends.iter().map(ids).collect()
    }

    fn add_edges(&mut self, callees: &Callees<'s>) {
        let lowering = Lowering::new(self.input.source, &self.graph, &self.memory);
        for (from, to, link) in edges::data_edges(&self.graph, &lowering, callees, self.memory.budget()) {
            self.graph.add_edge(from, to, link);
        }
        for (from, to, link) in edges::schema_edges(&self.graph, callees) {
            self.graph.add_edge(from, to, link);
        }
    }

    fn check_calls(&mut self, callees: &Callees<'s>, arguments: &[Option<Argument>]) {
        let Walker { graph, memory, uses, deciding, diagnostics, .. } = self;
        let lowering = Lowering::new(self.input.source, graph, memory);
        check::use_parameters(graph, callees, &lowering, uses);
        check::check_arguments(graph, callees, arguments, deciding, diagnostics);
        uses.apply_declared_optional();
    }

    /// Lifts literals passed to tools to parameters.
    fn lift(&mut self, callees: &Callees<'s>) -> Result<LiftedParameters, BudgetSpent> {
        let uses = std::mem::take(&mut self.uses);
        let budget = self.memory.budget();
        let max_parts = lowering::max_parts(self.input.source);
        let mut lifting = LiteralLifter::new(uses.names(), &self.deciding.spans, budget, max_parts);
        for (draft, node) in self.graph.nodes.iter().zip(0..) {
            if let DraftKind::Call(call) = &draft.kind
                && !call.as_value
            {
                lifting.lift_call(draft.id, &call.arguments, callees.input_schema(node, call));
            }
        }
        self.within_budget()?;
        Ok(lifting.finish(uses.into_schema(), |span| self.input.lines.position(span)))
    }

    /// Walks functions that nothing calls, so that their calls are known all the same.
    fn follow_uncalled(&mut self) {
        // Walking one may discover others.
        while let Some(closure) = self.functions.next_kept() {
            if self.functions.visited[closure.function as usize] {
                continue;
            }
            self.flow.frontier.clear();
            self.flow.live = true;
            let info = self.facts.function(closure.function);
            // A call that was not followed may call it.
            if let (Some(name), false) = (info.name.clone(), self.functions.left_out) {
                let span = Span::new(info.span.start, info.span.start + 8.min(info.span.size()));
                self.diagnostics.complain(
                    Severity::Warning,
                    ComplaintCode::Unreachable,
                    span,
                    format!("`{name}` is never called"),
                    Some("call it, or leave it out".to_owned()),
                );
            }
            let outer = std::mem::replace(&mut self.calls.activation, Rc::clone(&closure.outer));
            let value = self.follow_alone(&closure);
            self.memory.mark_awaited(&value);
            self.calls.activation = outer;
        }
    }

    /// Tools that are written anywhere count as permissions; a server that the walk never reached makes the program
    /// opaque.
    fn declare_written(&mut self) {
        for (root, span) in &self.facts.roots.named {
            if !self.permissions.has(root) {
                self.permissions.declare_value(&AbstractValue::from(root), *span, &mut self.diagnostics);
            }
        }
        for span in self.facts.roots.open.iter().copied() {
            if !self.permissions.was_touched(span) {
                let what = format!("`{}` is used where the analysis cannot follow it", self.input.text(span));
                self.permissions.note_opaque(span, what);
            }
        }
    }

    /// Complains about promises that nothing awaits.
    fn complain_of_unawaited(&mut self) {
        for pending in std::mem::take(&mut self.memory.promises) {
            // Code that was not followed may await it.
            if !pending.consumed && !self.functions.left_out {
                let message = format!("nothing waits for {}", pending.what.describe(&self.input));
                let hint = match pending.what {
                    PromiseOrigin::Reduce => "put `await` before it",
                    _ => "put `await` before it, or the program may end first",
                };
                self.diagnostics.complain(
                    Severity::Warning,
                    ComplaintCode::NotAwaited,
                    pending.span,
                    message,
                    Some(hint.to_owned()),
                );
            }
        }
    }
}
