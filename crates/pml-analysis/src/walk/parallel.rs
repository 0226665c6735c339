//! Parallel work: `Promise.all` and its relatives, and `.then` chains.

use std::rc::Rc;

use oxc_ast::ast::{Argument, ArrayExpressionElement, CallExpression, Expression};
use oxc_span::{GetSpan, Span};
use pml_model::structure::{ForkForm, PathStep};
use rustc_hash::FxHashSet;
use smallvec::smallvec;

use super::Walker;
use super::arguments::CallArguments;
use super::memory::{PromiseOrigin, settled_value};
use super::objects::append;
use super::parts::graph::{DraftKind, Frontier, add_points};
use super::syntax::plain;
use crate::marks::ProbePlace;
use crate::value::{AbstractValue, ObjectMember, ObjectRecord, RecordKind, one_of};

/// The kind of fork that a method of `Promise` makes.
pub(super) fn form(name: &str) -> Option<ForkForm> {
    match name {
        "Promise.all" => Some(ForkForm::All),
        "Promise.allSettled" => Some(ForkForm::AllSettled),
        "Promise.race" => Some(ForkForm::Race),
        "Promise.any" => Some(ForkForm::Any),
        _ => None,
    }
}

impl<'a> Walker<'a, '_> {
    pub(super) fn fork(&mut self, it: &'a CallExpression<'a>, form: ForkForm) -> AbstractValue<'a> {
        if self.recording.is_quiet() {
            let given = self.evaluate_arguments(&it.arguments);
            let value = given.into_iter().next().map_or(AbstractValue::Undefined, |(value, _, _)| value);
            return self.join_results(value, form, it.span);
        }
        let fork = self.node(ProbePlace::Fork, it.span, DraftKind::Fork { form });
        let start: Frontier = self.flow.frontier.clone();
        let (value, mut ends) = match it.arguments.first().and_then(Argument::as_expression).map(plain) {
            Some(Expression::ArrayExpression(array)) => {
                self.fork_members(&array.elements, array.span, &start)
            }
            Some(other) => {
                let value = self.evaluate(other);
                (value, self.flow.frontier.clone())
            }
            None => (AbstractValue::Undefined, start.clone()),
        };
        for extra in it.arguments.iter().skip(1) {
            if let Some(extra) = extra.as_expression() {
                self.evaluate(extra);
            }
        }
        self.wait_for_started(&value, fork, &mut ends);
        self.flow.frontier = ends;
        self.memory.budget().spend((self.graph.nodes.len() - fork as usize) / 32);
        let place = self.probes.place(self.graph.node(fork).point);
        let join = self
            .graph
            .join_of(fork, place)
            .unwrap_or_else(|| self.graph.add_node(place, it.span, DraftKind::Join, &self.flow.loops));
        self.graph.connect(&mut self.flow.frontier, join);
        self.join_results(value, form, it.span)
    }

    /// Members of a fork written as a list: each begins at the fork.
    fn fork_members(
        &mut self,
        elements: &'a [ArrayExpressionElement<'a>],
        span: Span,
        start: &Frontier,
    ) -> (AbstractValue<'a>, Frontier) {
        let mut record =
            ObjectRecord { kind: RecordKind::Array, written: Some(span), ..ObjectRecord::default() };
        let mut ends = Frontier::new();
        let mut known: FxHashSet<(u32, Option<Rc<str>>)> = FxHashSet::default();
        for element in elements {
            self.flow.frontier.clone_from(start);
            match element {
                ArrayExpressionElement::SpreadElement(spread) => {
                    let value = self.evaluate(&spread.argument);
                    self.append_all(&mut record, &value);
                }
                ArrayExpressionElement::Elision(_) => append(&mut record, AbstractValue::Undefined, span),
                other => {
                    if let Some(expression) = other.as_expression() {
                        let value = self.evaluate(expression);
                        append(&mut record, value, plain(expression).span());
                    }
                }
            }
            let moved = self.flow.frontier != *start;
            if moved {
                self.memory.budget().spend(4 * self.flow.frontier.len());
                ends.extend(
                    self.flow.frontier.iter().filter(|point| known.insert((*point).clone())).cloned(),
                );
            }
        }
        if ends.is_empty() {
            ends.clone_from(start);
        }
        (self.memory.allocate(record), ends)
    }

    /// Adds calls that were started earlier and are awaited here.
    fn wait_for_started(&self, value: &AbstractValue<'a>, fork: u32, ends: &mut Frontier) {
        let AbstractValue::Object(index) = value else { return };
        let record = self.memory.state.object(*index);
        let members = record.fields.iter().map(|member| &member.value).chain(&record.extra);
        for member in members {
            if let AbstractValue::Promise(result, _) = member
                && let AbstractValue::Result(node, _) = **result
                && node < fork
            {
                self.memory.budget().spend(ends.len() / 32);
                // For a node in a loop that has ended, the loop itself is awaited.
                let ended =
                    self.graph.nodes[node as usize].loops.iter().find(|l| !self.flow.loops.contains(l));
                let node = ended.copied().unwrap_or(node);
                if !ends.contains(&(node, None)) {
                    ends.push((node, None));
                }
            }
        }
    }

    /// The value of awaiting all, or one, of them.
    fn join_results(&mut self, value: AbstractValue<'a>, form: ForkForm, span: Span) -> AbstractValue<'a> {
        self.memory.mark_awaited(&value);
        let result = match form {
            ForkForm::Race | ForkForm::Any => {
                let one = self.memory.part(&value, &PathStep::Any);
                settled_value(&one)
            }
            ForkForm::All | ForkForm::Layer => self.settled_list(&value, &settled_value),
            ForkForm::AllSettled => self.settled_list(&value, &|value| {
                let member = |name: &str, value: AbstractValue<'a>| ObjectMember {
                    key: PathStep::Key(name.to_owned()),
                    value,
                    span,
                    getter: false,
                };
                AbstractValue::Record(Rc::new(ObjectRecord {
                    fields: vec![
                        member("status", AbstractValue::Computed(span, Rc::new([settled_value(value)]))),
                        member("value", settled_value(value)),
                        member("reason", AbstractValue::Computed(span, Rc::new([settled_value(value)]))),
                    ],
                    ..ObjectRecord::default()
                }))
            }),
        };
        let pending = self.memory.add_promise(span, PromiseOrigin::Fork);
        AbstractValue::Promise(Rc::new(result), Some(pending))
    }

    fn settled_list(
        &mut self,
        value: &AbstractValue<'a>,
        each: &dyn Fn(&AbstractValue<'a>) -> AbstractValue<'a>,
    ) -> AbstractValue<'a> {
        let record = match value {
            AbstractValue::Object(index) => Rc::clone(self.memory.state.object(*index)),
            AbstractValue::Promise(inner, _) => return self.settled_list(&inner.clone(), each),
            AbstractValue::OneOf(values) => {
                return one_of(values.iter().map(|value| self.settled_list(value, each)).collect::<Vec<_>>());
            }
            other => return other.clone(),
        };
        let mut list = ObjectRecord { kind: RecordKind::Array, ..ObjectRecord::default() };
        for member in &record.fields {
            list.fields.push(member.with_value(each(&member.value)));
        }
        list.extra = record.extra.iter().map(each).collect();
        list.extra.extend(match value {
            AbstractValue::Object(index) => self.memory.loop_phis_of(*index),
            _ => Vec::new(),
        });
        list.spreads.clone_from(&record.spreads);
        self.memory.allocate(list)
    }

    /// `.then(f, g)`, `.catch(g)`, `.finally(h)`.
    pub(super) fn promise_method(
        &mut self,
        it: &'a CallExpression<'a>,
        object: &AbstractValue<'a>,
        name: &str,
    ) -> AbstractValue<'a> {
        self.memory.mark_awaited(object);
        let value = settled_value(object);
        let given = self.evaluate_arguments(&it.arguments);
        let mut results = Vec::new();
        // A failure handler follows the nodes that may fail, not what comes after them.
        let failed = self.flow.frontier.clone();
        let mut handlers = given.into_iter();
        match name {
            "then" => {
                if let Some((function, span, _)) = handlers.next() {
                    results.push(self.run_handler(&function, smallvec![(value.clone(), span, false)]));
                } else {
                    results.push(value.clone());
                }
            }
            "catch" => results.push(value.clone()),
            _ => {
                results.push(value.clone());
                if let Some((function, _, _)) = handlers.next() {
                    self.run_handler(&function, CallArguments::new());
                }
            }
        }
        if let Some((function, span, _)) = handlers.next() {
            let before = self.flow.frontier.clone();
            let mark = self.memory.state.mark();
            self.flow.frontier.clear();
            let failed = failed.into_iter().map(|(node, _)| (node, Some("error".into()))).collect();
            add_points(&mut self.flow.frontier, failed);
            results.push(self.run_handler(&function, smallvec![(AbstractValue::Unknown, span, false)]));
            self.flow.end_optional_arm(&mut self.memory.state, mark, before);
        }
        let result = settled_value(&one_of(results));
        let method = ["then", "catch"].into_iter().find(|known| *known == name).unwrap_or("finally");
        let pending = self.memory.add_promise(it.span, PromiseOrigin::Method(method));
        AbstractValue::Promise(Rc::new(result), Some(pending))
    }

    fn run_handler(&mut self, function: &AbstractValue<'a>, given: CallArguments<'a>) -> AbstractValue<'a> {
        let at = given.first().map_or(Span::default(), |(_, span, _)| *span);
        let value = match function {
            AbstractValue::Function(closure) => self.follow_call(&Rc::clone(closure), given, None, None),
            AbstractValue::Tool(..) | AbstractValue::Capability(_) | AbstractValue::OneOf(_) => {
                self.call_callback(function, given, at)
            }
            AbstractValue::Global(name) if self.resolve_promise(name, &given) => AbstractValue::Undefined,
            other => {
                let values: Vec<AbstractValue<'a>> =
                    given.iter().map(|(value, _, _)| value.clone()).collect();
                let mut all = vec![other.clone()];
                all.extend(values);
                self.memory.computed(at, &all)
            }
        };
        self.memory.mark_awaited(&value);
        settled_value(&value)
    }
}
