//! Loops: followed once, with phis for values that come around.

use std::rc::Rc;

use oxc_ast::ast::{
    DoWhileStatement, Expression, ForInStatement, ForOfStatement, ForStatement, ForStatementInit,
    ForStatementLeft, WhileStatement,
};
use oxc_span::{GetSpan, Span};
use pml_model::structure::{LoopForm, PathStep};
use rustc_hash::FxHashMap;
use smallvec::smallvec;

use super::Walker;
use super::memory::state::{StateChanges, merge_cost, merge_records};
use super::memory::{LoopScope, has_sources};
use super::parts::flow::{FlowPath, JumpTargetKind};
use super::parts::graph::{DraftKind, Frontier};
use crate::marks::ProbePlace;
use crate::value::{AbstractValue, MemberPath, one_of};

/// How a loop begins and ends.
pub(super) struct LoopHead {
    pub(super) place: ProbePlace,
    pub(super) span: Span,
    pub(super) over: Span,
    pub(super) form: LoopForm,
    pub(super) exit: LoopExit,
}

/// Where a loop ends without `break`.
#[derive(PartialEq, Eq, Clone, Copy)]
pub(super) enum LoopExit {
    /// Before a turn, when its condition fails.
    AtHead,
    /// After a turn.
    AtEnd,
    /// Never.
    Never,
}

impl<'a> Walker<'a, '_> {
    pub(super) fn walk_loop(&mut self, head: &LoopHead, body: impl FnOnce(&mut Self, Option<u32>)) {
        let labels = std::mem::take(&mut self.flow.labels);
        let node = (!self.recording.is_quiet())
            .then(|| self.node(head.place, head.span, DraftKind::Loop { over: head.over, form: head.form }));
        let at_head = self.flow.frontier.clone();
        let heads = self.add_loop_phis(head.span, node);
        self.memory.loops.push(LoopScope {
            node,
            objects: self.memory.state.object_count(),
            phis: FxHashMap::default(),
        });
        let mark = self.memory.state.mark();
        self.flow.enter_jump(labels, JumpTargetKind::Loop, mark, self.calls.frames.len());
        let outside = Rc::clone(&self.flow.loops);
        if let Some(node) = node {
            self.flow.loops = outside.iter().copied().chain([node]).collect();
            self.flow.frontier.clear();
        }
        let returned = self.returns().len();
        body(self, node);
        if let Some(node) = node {
            // A return from a turn in which no node was reached before comes from the loop node.
            let ways = self.returns()[returned..].iter_mut().map(|(_, way)| way);
            ways.filter(|way| way.frontier.is_empty()).for_each(|way| way.frontier = smallvec![(node, None)]);
        }
        self.flow.loops = outside;
        let jump = self.flow.jumps.pop().expect("entered above");
        let mut ends: Vec<FlowPath<'a>> =
            if self.flow.live { vec![self.flow.path_since(&self.memory.state, mark)] } else { Vec::new() };
        ends.extend(jump.continues);
        let phis: Vec<(u32, u32)> = heads.iter().map(|(variable, _)| *variable).collect();
        for (variable, phi) in heads {
            let around: Vec<AbstractValue<'a>> =
                ends.iter().filter_map(|way| way.changes.variables.get(variable).cloned()).collect();
            around.iter().for_each(|value| self.memory.feed_phi(phi, value));
        }
        let scope = self.memory.loops.pop().expect("pushed above");
        self.memory.state.undo(mark);
        self.feed_objects(&scope, &ends);
        let mut ways = self.loop_exits(head.exit, ends, &at_head, &phis);
        ways.extend(jump.breaks);
        if let Some(node) = node {
            ways.iter_mut()
                .filter(|way| way.frontier.is_empty())
                .for_each(|way| way.frontier = smallvec![(node, None)]);
        }
        self.flow.rejoin(&mut self.memory.state, ways);
    }

    /// Keeps what decides how often a loop turns. No decision that follows tests it.
    pub(super) fn note_turns(&mut self, node: Option<u32>, by: &AbstractValue<'a>) {
        self.graph.tested = None;
        if let Some(node) = node
            && has_sources(by)
        {
            let by = self.memory.freeze(by);
            self.graph.decided.push((node, by));
        }
    }

    /// Return paths of the current function.
    fn returns(&mut self) -> &mut [(AbstractValue<'a>, FlowPath<'a>)] {
        self.calls.frames.last_mut().map_or(&mut [], |frame| &mut frame.returns)
    }

    /// Creates a phi for every variable the loop writes.
    fn add_loop_phis(&mut self, span: Span, node: Option<u32>) -> Vec<((u32, u32), u32)> {
        let shared = self.facts.survey.shared.iter().copied();
        let mut symbols: Vec<_> = self.facts.survey.writes_within(span).chain(shared).collect();
        symbols.sort_unstable();
        symbols.dedup();
        let mut heads = Vec::new();
        for symbol in symbols {
            let Some(variable) = self.memory.variable(&self.calls.activation, symbol) else { continue };
            let Some(before) = self.memory.state.read(variable).cloned() else { continue };
            let phi = self.memory.new_phi(before, node);
            self.memory.state.write(variable, AbstractValue::Phi(phi, MemberPath::default()));
            heads.push((variable, phi));
        }
        heads
    }

    /// Values that a turn stores in older objects are there in the next turn.
    fn feed_objects(&mut self, scope: &LoopScope, ends: &[FlowPath<'a>]) {
        let mut phis: Vec<(u32, u32)> = scope.phis.iter().map(|(object, phi)| (*object, *phi)).collect();
        phis.sort_unstable();
        for (object, phi) in phis {
            let base = Rc::clone(self.memory.state.object(object));
            let mut fresh: Vec<AbstractValue<'a>> = Vec::new();
            for record in ends.iter().filter_map(|way| way.changes.objects.get(object)) {
                for member in &record.fields {
                    if !base.field(&member.key).is_some_and(|old| old.value.same(&member.value)) {
                        fresh.push(member.value.clone());
                    }
                }
                let old = |value: &&AbstractValue<'a>| !base.extra.iter().any(|other| other.same(value));
                fresh.extend(record.extra.iter().filter(old).cloned());
            }
            fresh.iter().for_each(|value| self.memory.feed_phi(phi, value));
        }
    }

    fn loop_exits(
        &self,
        exit: LoopExit,
        ends: Vec<FlowPath<'a>>,
        at_head: &Frontier,
        phis: &[(u32, u32)],
    ) -> Vec<FlowPath<'a>> {
        match exit {
            LoopExit::AtEnd => ends,
            LoopExit::Never => Vec::new(),
            LoopExit::AtHead => {
                let mut changes = StateChanges::default();
                for (object, record) in ends.iter().flat_map(|way| way.changes.objects.iter()) {
                    let base =
                        changes.objects.get(object).unwrap_or_else(|| self.memory.state.object(object));
                    self.memory.budget().spend(merge_cost(base, record));
                    if self.memory.budget().is_spent() {
                        break;
                    }
                    let either = Rc::new(merge_records(base, record));
                    changes.objects.insert(object, either);
                }
                // Variables of the body live on in functions created there.
                for (variable, value) in ends.iter().flat_map(|way| way.changes.variables.iter()) {
                    if !phis.contains(&variable) {
                        let before = changes
                            .variables
                            .get(variable)
                            .or_else(|| self.memory.state.read(variable))
                            .cloned();
                        changes.variables.insert(variable, one_of(before.into_iter().chain([value.clone()])));
                    }
                }
                vec![FlowPath { changes, frontier: at_head.clone() }]
            }
        }
    }

    pub(super) fn while_loop(&mut self, it: &'a WhileStatement<'a>) {
        let exit = if is_true(&it.test) { LoopExit::Never } else { LoopExit::AtHead };
        let head = LoopHead {
            place: ProbePlace::Loop,
            span: it.span,
            over: it.test.span(),
            form: LoopForm::While,
            exit,
        };
        self.walk_loop(&head, |walk, node| {
            let tested = walk.evaluate_test(&it.test);
            walk.note_turns(node, &tested);
            walk.statement(&it.body);
        });
    }

    pub(super) fn do_while(&mut self, it: &'a DoWhileStatement<'a>) {
        let head = LoopHead {
            place: ProbePlace::Loop,
            span: it.span,
            over: it.test.span(),
            form: LoopForm::DoWhile,
            exit: LoopExit::AtEnd,
        };
        self.walk_loop(&head, |walk, node| {
            walk.statement(&it.body);
            walk.rejoin_continues();
            let tested = walk.evaluate_test(&it.test);
            walk.note_turns(node, &tested);
        });
    }

    pub(super) fn for_loop(&mut self, it: &'a ForStatement<'a>) {
        let labels = std::mem::take(&mut self.flow.labels);
        match &it.init {
            Some(ForStatementInit::VariableDeclaration(declaration)) => self.variables(declaration),
            Some(init) => {
                if let Some(init) = init.as_expression() {
                    self.evaluate(init);
                }
            }
            None => {}
        }
        self.flow.labels = labels;
        let exit = if it.test.as_ref().is_none_or(is_true) { LoopExit::Never } else { LoopExit::AtHead };
        let over = it.test.as_ref().map_or(Span::new(it.span.start, it.span.start), GetSpan::span);
        let head = LoopHead { place: ProbePlace::Loop, span: it.span, over, form: LoopForm::For, exit };
        self.walk_loop(&head, |walk, node| {
            if let Some(test) = &it.test {
                let tested = walk.evaluate_test(test);
                walk.note_turns(node, &tested);
            }
            walk.statement(&it.body);
            walk.rejoin_continues();
            if let Some(update) = &it.update {
                walk.evaluate(update);
            }
        });
    }

    /// Joins `continue` paths before the update that precedes the next turn.
    fn rejoin_continues(&mut self) {
        let Some(jump) = self.flow.jumps.last_mut() else { return };
        if jump.continues.is_empty() {
            return;
        }
        let mark = jump.mark;
        let continues = std::mem::take(&mut jump.continues);
        let end = self.flow.end_arm(&mut self.memory.state, mark);
        self.flow.rejoin(&mut self.memory.state, end.into_iter().chain(continues));
    }

    pub(super) fn for_of(&mut self, it: &'a ForOfStatement<'a>) {
        let labels = std::mem::take(&mut self.flow.labels);
        let over = self.evaluate(&it.right);
        let over = if it.r#await { self.await_value(over) } else { over };
        self.uses.note_iteration(&over);
        self.flow.labels = labels;
        let form = if it.r#await { LoopForm::ForAwait } else { LoopForm::ForOf };
        let head = LoopHead {
            place: ProbePlace::Loop,
            span: it.span,
            over: it.right.span(),
            form,
            exit: LoopExit::AtHead,
        };
        self.walk_loop(&head, |walk, node| {
            walk.note_turns(node, &over);
            let item = walk.loop_item(&over, node);
            let item = if it.r#await { walk.await_value(item) } else { item };
            walk.bind_left(&it.left, item);
            walk.statement(&it.body);
        });
    }

    pub(super) fn for_in(&mut self, it: &'a ForInStatement<'a>) {
        let labels = std::mem::take(&mut self.flow.labels);
        let over = self.evaluate(&it.right);
        self.flow.labels = labels;
        let head = LoopHead {
            place: ProbePlace::Loop,
            span: it.span,
            over: it.right.span(),
            form: LoopForm::ForIn,
            exit: LoopExit::AtHead,
        };
        self.walk_loop(&head, |walk, node| {
            walk.note_turns(node, &over);
            walk.uses.note_object(&over);
            let key = walk.memory.computed(left_span(&it.left), &[over]);
            walk.bind_left(&it.left, key);
            walk.statement(&it.body);
        });
    }

    fn bind_left(&mut self, left: &'a ForStatementLeft<'a>, value: AbstractValue<'a>) {
        match left {
            ForStatementLeft::VariableDeclaration(declaration) => {
                if let Some(declarator) = declaration.declarations.first() {
                    self.bind(&declarator.id, value);
                }
            }
            other => {
                if let Some(target) = other.as_assignment_target() {
                    self.assign(target, value);
                }
            }
        }
    }

    /// The current item of a loop over `over`.
    pub(super) fn loop_item(&mut self, over: &AbstractValue<'a>, node: Option<u32>) -> AbstractValue<'a> {
        match node {
            Some(node) => AbstractValue::Item(Rc::new(self.memory.freeze(over)), node, MemberPath::default()),
            None => self.memory.part(over, &PathStep::Any),
        }
    }
}

/// Span of the variable that a loop assigns its items to.
fn left_span(left: &ForStatementLeft<'_>) -> Span {
    match left {
        ForStatementLeft::VariableDeclaration(it) => {
            it.declarations.first().map_or(it.span, |it| it.id.span())
        }
        other => other.span(),
    }
}

fn is_true(test: &Expression<'_>) -> bool {
    match test {
        Expression::BooleanLiteral(literal) => literal.value,
        Expression::NumericLiteral(literal) => literal.value != 0.0,
        _ => false,
    }
}
