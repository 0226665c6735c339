//! What runs together: `Promise.all` and its kin, and `.then` chains.

use std::rc::Rc;

use oxc_ast::ast::{Argument, ArrayExpressionElement, CallExpression, Expression};
use oxc_span::{GetSpan, Span};
use pml_model::structure::{ForkForm, Step};
use rustc_hash::FxHashSet;
use smallvec::smallvec;

use super::call::Givens;
use super::expression::{plain, settled};
use super::objects::append;
use super::value::{Kind, Member, Record, Value, one_of};
use super::{Changes, DraftKind, Frontier, Promised, Walk, Way};
use crate::marks::Place;

/// The fork a name of the language makes.
pub(super) fn form(name: &str) -> Option<ForkForm> {
    match name {
        "Promise.all" => Some(ForkForm::All),
        "Promise.allSettled" => Some(ForkForm::AllSettled),
        "Promise.race" => Some(ForkForm::Race),
        "Promise.any" => Some(ForkForm::Any),
        _ => None,
    }
}

impl<'a> Walk<'a, '_> {
    pub(super) fn fork(&mut self, it: &'a CallExpression<'a>, form: ForkForm) -> Value<'a> {
        if self.quiet > 0 {
            let given = self.arguments(&it.arguments);
            let value = given.into_iter().next().map_or(Value::Undefined, |(value, _, _)| value);
            return self.joined(value, form, it.span);
        }
        let fork = self.node(Place::Fork, it.span, DraftKind::Fork { form });
        let start: Frontier = self.frontier.clone();
        let (value, mut ends) = match it.arguments.first().and_then(Argument::as_expression).map(plain) {
            Some(Expression::ArrayExpression(array)) => self.members(&array.elements, array.span, &start),
            Some(other) => {
                let value = self.value(other);
                (value, self.frontier.clone())
            }
            None => (Value::Undefined, start.clone()),
        };
        for extra in it.arguments.iter().skip(1) {
            if let Some(extra) = extra.as_expression() {
                self.value(extra);
            }
        }
        self.started(&value, fork, &mut ends);
        self.frontier = ends;
        let point = self.nodes[fork as usize].point;
        self.state.budget.spend((self.nodes.len() - fork as usize) / 32);
        let join = match self.nodes.get(fork as usize + 1..).and_then(|after| {
            after.iter().position(|node| {
                matches!(node.kind, DraftKind::Join) && node.point == point && node.context == self.context
            })
        }) {
            Some(offset) => fork + 1 + offset as u32,
            None => self.new_node(point, it.span, DraftKind::Join),
        };
        self.connect(join);
        self.joined(value, form, it.span)
    }

    /// The members of a fork written as a list: each begins at the fork.
    fn members(
        &mut self,
        elements: &'a [ArrayExpressionElement<'a>],
        span: Span,
        start: &Frontier,
    ) -> (Value<'a>, Frontier) {
        let mut record = Record { kind: Kind::Array, written: Some(span), ..Record::default() };
        let mut ends = Frontier::new();
        let mut known: FxHashSet<(u32, Option<Rc<str>>)> = FxHashSet::default();
        for element in elements {
            self.frontier.clone_from(start);
            match element {
                ArrayExpressionElement::SpreadElement(spread) => {
                    let value = self.value(&spread.argument);
                    self.append_all(&mut record, &value);
                }
                ArrayExpressionElement::Elision(_) => append(&mut record, Value::Undefined, span),
                other => {
                    if let Some(expression) = other.as_expression() {
                        let value = self.value(expression);
                        append(&mut record, value, plain(expression).span());
                    }
                }
            }
            let moved = self.frontier != *start;
            if moved {
                self.state.budget.spend(4 * self.frontier.len());
                ends.extend(self.frontier.iter().filter(|point| known.insert((*point).clone())).cloned());
            }
        }
        if ends.is_empty() {
            ends.clone_from(start);
        }
        (Value::Object(self.state.new_object(record)), ends)
    }

    /// Calls that were started earlier and are waited for here.
    fn started(&self, value: &Value<'a>, fork: u32, ends: &mut Frontier) {
        let Value::Object(index) = value else { return };
        let record = self.state.object(*index);
        let members = record.fields.iter().map(|member| &member.value).chain(&record.extra);
        for member in members {
            if let Value::Promise(result, _) = member
                && let Value::Result(node, _) = **result
                && node < fork
            {
                self.state.budget.spend(ends.len() / 32);
                // Of what happens in a loop that has ended, the loop is what is waited for.
                let ended = self.nodes[node as usize].loops.iter().find(|l| !self.parents.contains(l));
                let node = ended.copied().unwrap_or(node);
                if !ends.contains(&(node, None)) {
                    ends.push((node, None));
                }
            }
        }
    }

    /// What waiting for all, or one, of them gives.
    fn joined(&mut self, value: Value<'a>, form: ForkForm, span: Span) -> Value<'a> {
        self.consume(&value);
        let result = match form {
            ForkForm::Race | ForkForm::Any => {
                let one = self.part(&value, &Step::Any);
                settled(&one)
            }
            ForkForm::All | ForkForm::Layer => self.settled_list(&value, &settled),
            ForkForm::AllSettled => self.settled_list(&value, &|value| {
                let member = |name: &str, value: Value<'a>| Member {
                    key: Step::Key(name.to_owned()),
                    value,
                    span,
                    getter: false,
                };
                Value::Record(Rc::new(Record {
                    fields: vec![
                        member("status", Value::Computed(span, Rc::new([settled(value)]))),
                        member("value", settled(value)),
                        member("reason", Value::Computed(span, Rc::new([settled(value)]))),
                    ],
                    ..Record::default()
                }))
            }),
        };
        let pending = self.pending(span, Promised::Fork);
        Value::Promise(Rc::new(result), Some(pending))
    }

    fn settled_list(&mut self, value: &Value<'a>, each: &dyn Fn(&Value<'a>) -> Value<'a>) -> Value<'a> {
        let record = match value {
            Value::Object(index) => Rc::clone(self.state.object(*index)),
            Value::Promise(inner, _) => return self.settled_list(&inner.clone(), each),
            Value::OneOf(values) => {
                return one_of(values.iter().map(|value| self.settled_list(value, each)).collect::<Vec<_>>());
            }
            other => return other.clone(),
        };
        let mut list = Record { kind: Kind::Array, ..Record::default() };
        for member in &record.fields {
            list.fields.push(member.with(each(&member.value)));
        }
        list.extra = record.extra.iter().map(each).collect();
        list.extra.extend(match value {
            Value::Object(index) => self.coming_around(*index),
            _ => Vec::new(),
        });
        list.spreads.clone_from(&record.spreads);
        Value::Object(self.state.new_object(list))
    }

    /// `.then(f, g)`, `.catch(g)`, `.finally(h)`.
    pub(super) fn promise_method(
        &mut self,
        it: &'a CallExpression<'a>,
        object: &Value<'a>,
        name: &str,
    ) -> Value<'a> {
        self.consume(object);
        let value = settled(object);
        let given = self.arguments(&it.arguments);
        let mut results = Vec::new();
        // What a handler of failures follows is what may fail, not what comes after it.
        let failed = self.frontier.clone();
        let mut handlers = given.into_iter();
        match name {
            "then" => {
                if let Some((function, span, _)) = handlers.next() {
                    results.push(self.handled(&function, smallvec![(value.clone(), span, false)]));
                } else {
                    results.push(value.clone());
                }
            }
            "catch" => results.push(value.clone()),
            _ => {
                results.push(value.clone());
                if let Some((function, _, _)) = handlers.next() {
                    self.handled(&function, Givens::new());
                }
            }
        }
        if let Some((function, span, _)) = handlers.next() {
            let before = self.frontier.clone();
            let mark = self.state.mark();
            self.frontier.clear();
            let failed = failed.into_iter().map(|(node, _)| (node, Some("error".into()))).collect();
            super::add_points(&mut self.frontier, failed);
            results.push(self.handled(&function, smallvec![(Value::Unknown, span, false)]));
            let done = self.end_arm(mark);
            let skipped = Way { changes: Changes::default(), frontier: before };
            self.rejoin(done.into_iter().chain([skipped]));
        }
        let result = settled(&one_of(results));
        let method = ["then", "catch"].into_iter().find(|known| *known == name).unwrap_or("finally");
        let pending = self.pending(it.span, Promised::Method(method));
        Value::Promise(Rc::new(result), Some(pending))
    }

    fn handled(&mut self, function: &Value<'a>, given: Givens<'a>) -> Value<'a> {
        let at = given.first().map_or(Span::default(), |(_, span, _)| *span);
        let value = match function {
            Value::Function(closure) => self.follow(&Rc::clone(closure), given, None, None),
            Value::Tool(..) | Value::Capability(_) | Value::OneOf(_) => self.called_back(function, given, at),
            Value::Global(name) if self.resolved(name, &given) => Value::Undefined,
            other => {
                let values: Vec<Value<'a>> = given.iter().map(|(value, _, _)| value.clone()).collect();
                let mut all = vec![other.clone()];
                all.extend(values);
                self.computed(at, &all)
            }
        };
        self.consume(&value);
        settled(&value)
    }
}
