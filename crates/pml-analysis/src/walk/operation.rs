//! Operations of the language on values and collections of the program.

use std::borrow::Cow;
use std::rc::Rc;

use oxc_ast::ast::{CallExpression, Expression};
use oxc_semantic::SymbolId;
use oxc_span::{GetSpan, Span};
use pml_model::structure::Step;

use super::Walker;
use super::arguments::{CallArgument, CallArguments};
use super::memory::settled;
use super::objects::append;
use super::parts::graph::{DraftKind, OperationInput};
use super::places::{MemberKey, WriteCertainty, put_into, step_of};
use super::syntax::{plain, root_of};
use crate::marks::ProbePlace;
use crate::operations::{self, Operation};
use crate::roots;
use crate::survey::Mention;
use crate::value::{MemberPath, ObjectRecord, RecordKind, Value, ValueList};

impl<'a> Walker<'a, '_> {
    /// A method that is not the program's own: an operation of the language, or something unknown.
    pub(super) fn operation_call(
        &mut self,
        it: &'a CallExpression<'a>,
        object: Value<'a>,
        object_expression: &'a Expression<'a>,
        key: &Step,
        key_span: Span,
    ) -> Value<'a> {
        let Step::Key(name) = key else {
            let given = self.evaluate_arguments(&it.arguments);
            return self.call_unknown(it.span, &[object], &given);
        };
        self.complain_if_unawaited(&object, object_expression.span(), format_args!("is asked for `{name}`"));
        let object = settled(&object);
        if matches!(object, Value::Unknown) {
            let given = self.evaluate_arguments(&it.arguments);
            return self.call_unknown(it.span, &[], &given);
        }
        if let Value::Parameter(path) = &object {
            self.uses.note_read(path);
        }
        let Some(operation) = operations::method(name) else {
            if let Value::Result(..) = object {
                self.read_member(object.clone(), key, key_span, it.callee.span());
            }
            let given = self.evaluate_arguments(&it.arguments);
            return self.call_unknown(it.span, &[object], &given);
        };
        self.uses.note_receiver(&object, operation.receiver);
        let given = self.evaluate_arguments(&it.arguments);
        if let Value::Object(index) = object
            && let Some(value) = self.update_collection(index, name, &given, it.span)
        {
            return value;
        }
        if let ("push" | "unshift" | "add" | "set", Value::OneOf(objects)) = (name.as_str(), &object) {
            self.add_functions(objects, &given);
        }
        if matches!(name.as_str(), "push" | "unshift" | "add" | "set") {
            self.rearrange(&object, object_expression, name, &given);
            return Value::Unknown;
        }
        let value = self.operate(it, operation, Some((object.clone(), object_expression)), given.clone());
        self.rearrange(&object, object_expression, name, &given);
        let of_outside = !matches!(object, Value::Object(_));
        if let (true, "sort" | "reverse" | "fill" | "copyWithin" | "splice") = (of_outside, name.as_str())
            && let (Some(root), Expression::Identifier(_)) =
                (root_of(self.input.scoping, object_expression), plain(object_expression))
        {
            // What the variable holds has been changed in place.
            let changed = if name == "splice" {
                self.memory.computed(it.span, &[object, value.clone()])
            } else {
                value.clone()
            };
            self.write_symbol(root, changed);
        }
        value
    }

    /// Putting into and taking out of the program's own collections: bookkeeping, not operations.
    fn update_collection(
        &mut self,
        index: u32,
        name: &str,
        given: &[CallArgument<'a>],
        span: Span,
    ) -> Option<Value<'a>> {
        let record = Rc::clone(self.memory.state.object(index));
        let values: ValueList<'a> = given.iter().map(|(value, _, _)| value.clone()).collect();
        match (name, &record.kind) {
            ("push", RecordKind::Array) => {
                // The item of one turn is one of many: its position says nothing.
                let older_than_loop = self.memory.loops.iter().any(|scope| index < scope.objects);
                let mut changed = ObjectRecord::clone(&record);
                for (value, at, spread) in given {
                    if *spread {
                        self.append_all(&mut changed, value);
                    } else if older_than_loop {
                        changed.extra.push(value.clone());
                    } else {
                        append(&mut changed, value.clone(), *at);
                    }
                }
                self.memory.state.change(index, |record| {
                    *record = changed;
                    record.written = None;
                });
                Some(Value::Unknown)
            }
            ("pop" | "shift", RecordKind::Array) => Some(self.take_item(index, &record, name)),
            ("set", RecordKind::Collection) => {
                if let [key, value, ..] = values.as_slice() {
                    let spot =
                        step_of(key).map_or_else(|| MemberKey::Computed(key.clone()), MemberKey::Known);
                    put_into(
                        &mut self.memory.state,
                        index,
                        &spot,
                        value.clone(),
                        span,
                        WriteCertainty::Certain,
                    );
                }
                Some(Value::Object(index))
            }
            ("add", RecordKind::Collection) => {
                self.memory.state.change(index, |record| record.extra.extend(values));
                Some(Value::Object(index))
            }
            ("get", RecordKind::Collection) => {
                let key = values.into_iter().next().unwrap_or(Value::Unknown);
                let step = step_of(&key).unwrap_or(Step::Any);
                let held = self.memory.part(&Value::Object(index), &step);
                Some(self.look_up(held, &key, span))
            }
            ("keys", RecordKind::Collection) => Some(self.names_of(&Value::Object(index))),
            ("values", RecordKind::Collection) => Some(self.values_of(&Value::Object(index))),
            ("entries", RecordKind::Collection) => Some(Value::Object(index)),
            ("has" | "delete" | "clear", RecordKind::Collection) => Some(Value::Unknown),
            _ => None,
        }
    }

    /// `pop` and `shift` take a known item from an array whose items are known.
    fn take_item(&mut self, index: u32, record: &ObjectRecord<'a>, name: &str) -> Value<'a> {
        if !record.is_closed() || !self.memory.loop_phis_of(index).is_empty() {
            return self.memory.part(&Value::Object(index), &Step::Any);
        }
        let mut left = record.clone();
        if left.fields.is_empty() {
            return Value::Undefined;
        }
        let taken = if name == "pop" { left.fields.pop() } else { Some(left.fields.remove(0)) };
        for (position, member) in left.fields.iter_mut().enumerate() {
            member.key = Step::Index(position as u64);
        }
        self.memory.state.change(index, |record| {
            *record = left;
            record.written = None;
        });
        taken.map_or(Value::Undefined, |member| member.value)
    }

    /// Operations that move the items of an array about, or put some in.
    fn rearrange(
        &mut self,
        object: &Value<'a>,
        expression: &'a Expression<'a>,
        name: &str,
        given: &[CallArgument<'a>],
    ) {
        let added: Vec<Value<'a>> = match name {
            "splice" => given.iter().skip(2).map(|(value, _, _)| value.clone()).collect(),
            "push" | "unshift" | "add" => given.iter().map(|(value, _, _)| value.clone()).collect(),
            "set" => given.iter().skip(1).map(|(value, _, _)| value.clone()).collect(),
            "fill" => given.iter().take(1).map(|(value, _, _)| value.clone()).collect(),
            "reverse" | "sort" | "copyWithin" => Vec::new(),
            _ => return,
        };
        match object {
            Value::Object(index) => self.memory.state.change(*index, |record| {
                let items = std::mem::take(&mut record.fields);
                record.extra.extend(items.into_iter().map(|member| member.value).chain(added));
                record.written = None;
            }),
            Value::Unknown | Value::Undefined | Value::Function(_) | Value::Literal(_) => {}
            _ => {
                let keeps = matches!(name, "push" | "unshift" | "add" | "set");
                if let (Some(root), true) =
                    (root_of(self.input.scoping, expression), keeps && !added.is_empty())
                {
                    let kind = if matches!(name, "set" | "add") {
                        RecordKind::Collection
                    } else {
                        RecordKind::Array
                    };
                    self.add_to_variable(
                        root,
                        ObjectRecord { kind, extra: added, ..ObjectRecord::default() },
                    );
                }
            }
        }
    }

    /// The names of an object's members, as far as they come from somewhere.
    fn names_of(&mut self, object: &Value<'a>) -> Value<'a> {
        match self.memory.freeze(object) {
            Value::Record(record) => {
                let known = ObjectRecord {
                    kind: RecordKind::Array,
                    extra: record.names.clone(),
                    ..ObjectRecord::default()
                };
                let mut known = known;
                known.spreads.clone_from(&record.spreads);
                self.memory.allocate(known)
            }
            other => other,
        }
    }

    /// The values of an object's members.
    fn values_of(&mut self, object: &Value<'a>) -> Value<'a> {
        match self.memory.freeze(object) {
            Value::Record(record) => {
                let mut values = ObjectRecord::clone(&record);
                values.names.clear();
                self.memory.allocate(values)
            }
            other => other,
        }
    }

    /// A call of a name of the language.
    pub(super) fn global_call(&mut self, it: &'a CallExpression<'a>, name: &str) -> Value<'a> {
        if let Some(form) = super::parallel::form(name) {
            return self.fork(it, form);
        }
        let mut given = match name {
            "Promise.resolve" => {
                let given = self.evaluate_arguments(&it.arguments);
                let value = given.into_iter().next().map_or(Value::Undefined, |(value, _, _)| value);
                return Value::Promise(Rc::new(value), None);
            }
            _ => self.evaluate_arguments(&it.arguments),
        };
        if self.resolve_promise(name, &given) {
            return Value::Undefined;
        }
        let (object, member) = name.split_once('.').unwrap_or((name, ""));
        match object {
            "console" | "pml" => {
                for (value, span, _) in &given {
                    self.complain_if_unawaited(value, *span, "is shown");
                }
                return Value::Undefined;
            }
            "setTimeout" | "setInterval" | "queueMicrotask" => {
                given.iter().for_each(|(value, _, _)| self.escape(value, 0));
                return Value::Unknown;
            }
            _ => {}
        }
        match name {
            "Object.keys" => {
                for (value, span, _) in &mut given {
                    let names = self.names_of(value);
                    *value = self.memory.computed(*span, &[names]);
                }
            }
            "Object.values" => given.iter_mut().for_each(|(value, _, _)| *value = self.values_of(value)),
            _ => {}
        }
        let operation =
            if member.is_empty() { operations::global(object) } else { operations::function(object, member) };
        match operation {
            Some(operation) => {
                if let Some((value, _, _)) = given.first() {
                    self.uses.note_receiver(value, operation.receiver);
                }
                let value = self.operate(it, operation, None, given.clone());
                if name == "Object.assign" {
                    self.assign_object(&given);
                }
                match (name, given.first()) {
                    ("Object.assign" | "Object.freeze", Some((target @ Value::Object(_), _, _))) => {
                        target.clone()
                    }
                    _ => value,
                }
            }
            None => self.call_unknown(it.span, &[], &given),
        }
    }

    /// The function a promise's maker gets: what it is given becomes the promise's value.
    pub(super) fn resolve_promise(&mut self, name: &str, given: &[CallArgument<'a>]) -> bool {
        let Some(holder) = name.strip_prefix("#resolve:").and_then(|index| index.parse().ok()) else {
            return false;
        };
        for (value, _, _) in given {
            self.memory.mark_awaited(value);
            let value = value.clone();
            self.memory.state.change(holder, |record| record.extra.push(value));
        }
        true
    }

    /// `Object.assign(target, …)` on an object of the program.
    fn assign_object(&mut self, given: &[CallArgument<'a>]) {
        let Some((Value::Object(target), _, _)) = given.first() else { return };
        let mut record = ObjectRecord::clone(self.memory.state.object(*target));
        for (value, _, _) in &given[1..] {
            self.spread_into(&mut record, value);
        }
        self.memory.state.change(*target, |slot| *slot = record);
    }

    /// An operation of the language on a receiver (a method) or on its first argument.
    fn operate(
        &mut self,
        it: &'a CallExpression<'a>,
        operation: &'static Operation,
        receiver: Option<(Value<'a>, &'a Expression<'a>)>,
        given: CallArguments<'a>,
    ) -> Value<'a> {
        let subject = match &receiver {
            Some((value, _)) => value.clone(),
            None => given.first().map_or(Value::Undefined, |(value, _, _)| value.clone()),
        };
        if let Some(callback) = operation.callback
            && let Some((function, at, false)) = given.get(callback.argument).cloned()
        {
            let over = match &receiver {
                Some((_, expression)) => expression.span(),
                None => given.first().map_or(it.span, |(_, span, _)| *span),
            };
            if self.memory.leads_to_tool(&function)
                || self.callback_calls_items(&function, &subject, callback.binds)
            {
                let start = given.get(callback.argument + 1).map(|(value, _, _)| value.clone());
                let name = self.name_of_function(it, at);
                return self.iterate_callback(
                    operation,
                    &subject,
                    (&function, at, name),
                    over,
                    callback.binds,
                    start,
                    it.span,
                );
            }
            if let Value::Function(closure) = &function {
                self.recording.enter_quiet();
                self.iterate_quietly(&Rc::clone(closure), &subject, callback.binds, over);
                self.recording.leave_quiet();
            }
        }
        let changes_outside = given.iter().any(|(value, _, _)| match value {
            Value::Function(closure) => self.facts.function(closure.function).changes_outside,
            _ => false,
        });
        // What was handed something opaque may do anything with it.
        let opaque = self.permissions.is_opaque_within(it.span);
        let fresh = match &receiver {
            Some((value, expression)) => is_fresh(expression) || self.is_stateless_pattern(value),
            None => it.arguments.first().and_then(|first| first.as_expression()).is_some_and(is_fresh),
        };
        let mut inputs: Vec<OperationInput<'a>> = Vec::with_capacity(2 + given.len());
        let mut scanned_from = it.span.start;
        if let Some((value, expression)) = &receiver {
            let span = expression.span();
            inputs.push((self.input.text(span).into(), value.clone(), span));
            scanned_from = span.end;
        }
        for (value, span, _) in &given {
            if !matches!(value, Value::Function(_) | Value::Literal(_)) {
                inputs.push((self.input.text(*span).into(), value.clone(), *span));
            }
        }
        self.add_captured(&given, scanned_from, &mut inputs);
        for (_, value, _) in &mut inputs {
            *value = self.memory.freeze(value);
        }
        if self.recording.is_quiet() {
            let values: ValueList<'a> = inputs.into_iter().map(|(_, value, _)| value).collect();
            return self.memory.computed(it.span, &values);
        }
        let kind = DraftKind::Operation {
            name: operation.name,
            pure: operation.is_pure(fresh) && !changes_outside && !opaque,
            inputs,
        };
        let node = self.node(ProbePlace::Operation, it.span, kind);
        let result = super::result_of(node);
        self.pass_functions_through(operation.name, &subject, &given, result)
    }

    /// The name at `at` among the arguments of a call, if it always means the same function and nobody can tell whether
    /// that function or one that calls it is handed over.
    fn name_of_function(&self, it: &'a CallExpression<'a>, at: Span) -> Option<Span> {
        let arguments = it.arguments.iter().filter_map(|argument| argument.as_expression());
        let handed = arguments.map(plain).find(|argument| at.contains_inclusive(argument.span()))?;
        let Expression::Identifier(name) = handed else { return None };
        let symbol = roots::resolve_variable(self.input.scoping, name)?;
        let flags = self.input.scoping.symbol_flags(symbol);
        let is_constant = flags.is_const_variable() || flags.is_function();
        let Value::Function(closure) = self.read_symbol(symbol) else { return None };
        let uses_this = self.facts.function(closure.function).uses_this;
        (is_constant && !uses_this && !self.input.scoping.symbol_is_mutated(symbol)).then_some(name.span)
    }

    /// A regular expression that keeps no place between uses.
    fn is_stateless_pattern(&self, value: &Value<'a>) -> bool {
        let Value::Computed(span, _) = value else { return false };
        let text = self.input.text(*span);
        let flags = text.rsplit_once('/').filter(|_| text.starts_with('/')).map(|(_, flags)| flags);
        flags.is_some_and(|flags| {
            flags.chars().all(|flag| flag.is_ascii_lowercase() && !matches!(flag, 'g' | 'y'))
        })
    }

    /// The name of a variable; the text it was declared with, unless that has escapes.
    fn name_at(&self, symbol: SymbolId, declared: Span) -> Cow<'a, str> {
        let name = self.input.scoping.symbol_name(symbol);
        let text = &self.input.source[declared.start as usize..declared.end as usize];
        if text == name { text.into() } else { name.to_owned().into() }
    }

    /// What functions among the arguments take from around them.
    fn add_captured(&mut self, given: &[CallArgument<'a>], from: u32, inputs: &mut Vec<OperationInput<'a>>) {
        let first = inputs.len();
        for (value, span, _) in given {
            if !matches!(value, Value::Function(_)) || span.start < from {
                continue;
            }
            for mention in self.facts.survey.distinct_mentions(span.start, span.end) {
                let (name, value) = match mention {
                    Mention::Variable(symbol) => {
                        let declared = self.input.scoping.symbol_span(symbol);
                        if span.contains_inclusive(declared) {
                            continue;
                        }
                        (self.name_at(symbol, declared), self.read_symbol(symbol))
                    }
                    Mention::Arguments => ("args".into(), Value::Parameter(MemberPath::default())),
                    Mention::Root => continue,
                };
                let interesting = !matches!(value, Value::Function(_) | Value::Class(_) | Value::Unknown);
                if interesting && !inputs[first..].iter().any(|(known, _, _)| *known == name) {
                    inputs.push((name, value, *span));
                }
            }
        }
    }
}

/// A value nobody else holds: written right there, or made by an operation that makes new ones.
fn is_fresh(expression: &Expression<'_>) -> bool {
    match plain(expression) {
        Expression::ArrayExpression(_)
        | Expression::ObjectExpression(_)
        | Expression::TemplateLiteral(_)
        | Expression::NewExpression(_) => true,
        Expression::CallExpression(call) => match plain(&call.callee) {
            Expression::StaticMemberExpression(member) => {
                let global = match &member.object {
                    Expression::Identifier(name) => operations::function(&name.name, &member.property.name),
                    _ => None,
                };
                match (global, operations::method(&member.property.name)) {
                    (Some(operation), _) => {
                        let first = call.arguments.first().and_then(|first| first.as_expression());
                        operation.is_fresh(first.is_some_and(is_fresh))
                    }
                    (None, Some(operation)) => operation.is_fresh(is_fresh(&member.object)),
                    (None, None) => false,
                }
            }
            Expression::Identifier(name) => {
                operations::global(&name.name).is_some_and(|operation| operation.is_fresh(false))
            }
            _ => false,
        },
        _ => false,
    }
}
