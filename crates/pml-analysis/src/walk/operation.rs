//! Operations of the language on values and collections of the program.

use std::borrow::Cow;
use std::rc::Rc;

use oxc_ast::ast::{CallExpression, Expression};
use oxc_semantic::SymbolId;
use oxc_span::{GetSpan, Span};
use pml_model::structure::PathStep;

use super::Walker;
use super::arguments::{CallArgument, CallArguments};
use super::memory::settled_value;
use super::objects::append;
use super::parts::graph::{DraftKind, OperationInput};
use super::places::{MemberKey, WriteCertainty, put_into, step_of};
use super::syntax::{plain, root_of};
use crate::marks::ProbePlace;
use crate::operations::{self, OperationSpec};
use crate::roots;
use crate::survey::SymbolMention;
use crate::value::{AbstractValue, MemberPath, ObjectRecord, RecordKind, ValueList};

impl<'a> Walker<'a, '_> {
    /// A method that is not the program's own: an operation of the language, or unknown.
    pub(super) fn operation_call(
        &mut self,
        it: &'a CallExpression<'a>,
        object: AbstractValue<'a>,
        object_expression: &'a Expression<'a>,
        key: &PathStep,
        key_span: Span,
    ) -> AbstractValue<'a> {
        let PathStep::Key(name) = key else {
            let given = self.evaluate_arguments(&it.arguments);
            return self.call_unknown(it.span, &[object], &given);
        };
        self.complain_if_unawaited(&object, object_expression.span(), format_args!("is asked for `{name}`"));
        let object = settled_value(&object);
        if matches!(object, AbstractValue::Unknown) {
            let given = self.evaluate_arguments(&it.arguments);
            return self.call_unknown(it.span, &[], &given);
        }
        if let AbstractValue::Parameter(path) = &object {
            self.uses.note_read(path);
        }
        let Some(operation) = operations::method_operation(name) else {
            if let AbstractValue::Result(..) = object {
                self.read_member(object.clone(), key, key_span, it.callee.span());
            }
            let given = self.evaluate_arguments(&it.arguments);
            return self.call_unknown(it.span, &[object], &given);
        };
        self.uses.note_receiver(&object, operation.receiver);
        let given = self.evaluate_arguments(&it.arguments);
        if let AbstractValue::Object(index) = object
            && let Some(value) = self.update_collection(index, name, &given, it.span)
        {
            return value;
        }
        if let ("push" | "unshift" | "add" | "set", AbstractValue::OneOf(objects)) = (name.as_str(), &object)
        {
            self.add_functions(objects, &given);
        }
        if matches!(name.as_str(), "push" | "unshift" | "add" | "set") {
            self.rearrange(&object, object_expression, name, &given);
            return AbstractValue::Unknown;
        }
        let value = self.operate(it, operation, Some((object.clone(), object_expression)), given.clone());
        self.rearrange(&object, object_expression, name, &given);
        let of_outside = !matches!(object, AbstractValue::Object(_));
        if let (true, "sort" | "reverse" | "fill" | "copyWithin" | "splice") = (of_outside, name.as_str())
            && let (Some(root), Expression::Identifier(_)) =
                (root_of(self.input.scoping, object_expression), plain(object_expression))
        {
            // The value of the variable has been changed in place.
            let changed = if name == "splice" {
                self.memory.computed(it.span, &[object, value.clone()])
            } else {
                value.clone()
            };
            self.write_symbol(root, changed);
        }
        value
    }

    /// Insertions into and removals from the program's own collections: state updates, not operations.
    fn update_collection(
        &mut self,
        index: u32,
        name: &str,
        given: &[CallArgument<'a>],
        span: Span,
    ) -> Option<AbstractValue<'a>> {
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
                Some(AbstractValue::Unknown)
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
                Some(AbstractValue::Object(index))
            }
            ("add", RecordKind::Collection) => {
                self.memory.state.change(index, |record| record.extra.extend(values));
                Some(AbstractValue::Object(index))
            }
            ("get", RecordKind::Collection) => {
                let key = values.into_iter().next().unwrap_or(AbstractValue::Unknown);
                let step = step_of(&key).unwrap_or(PathStep::Any);
                let held = self.memory.part(&AbstractValue::Object(index), &step);
                Some(self.look_up(held, &key, span))
            }
            ("keys", RecordKind::Collection) => Some(self.names_of(&AbstractValue::Object(index))),
            ("values", RecordKind::Collection) => Some(self.values_of(&AbstractValue::Object(index))),
            ("entries", RecordKind::Collection) => Some(AbstractValue::Object(index)),
            ("has" | "delete" | "clear", RecordKind::Collection) => Some(AbstractValue::Unknown),
            _ => None,
        }
    }

    /// `pop` and `shift` remove a known item from an array whose items are known.
    fn take_item(&mut self, index: u32, record: &ObjectRecord<'a>, name: &str) -> AbstractValue<'a> {
        if !record.is_closed() || !self.memory.loop_phis_of(index).is_empty() {
            return self.memory.part(&AbstractValue::Object(index), &PathStep::Any);
        }
        let mut left = record.clone();
        if left.fields.is_empty() {
            return AbstractValue::Undefined;
        }
        let taken = if name == "pop" { left.fields.pop() } else { Some(left.fields.remove(0)) };
        for (position, member) in left.fields.iter_mut().enumerate() {
            member.key = PathStep::Index(position as u64);
        }
        self.memory.state.change(index, |record| {
            *record = left;
            record.written = None;
        });
        taken.map_or(AbstractValue::Undefined, |member| member.value)
    }

    /// Operations that reorder the items of an array, or insert some.
    fn rearrange(
        &mut self,
        object: &AbstractValue<'a>,
        expression: &'a Expression<'a>,
        name: &str,
        given: &[CallArgument<'a>],
    ) {
        let added: Vec<AbstractValue<'a>> = match name {
            "splice" => given.iter().skip(2).map(|(value, _, _)| value.clone()).collect(),
            "push" | "unshift" | "add" => given.iter().map(|(value, _, _)| value.clone()).collect(),
            "set" => given.iter().skip(1).map(|(value, _, _)| value.clone()).collect(),
            "fill" => given.iter().take(1).map(|(value, _, _)| value.clone()).collect(),
            "reverse" | "sort" | "copyWithin" => Vec::new(),
            _ => return,
        };
        match object {
            AbstractValue::Object(index) => self.memory.state.change(*index, |record| {
                let items = std::mem::take(&mut record.fields);
                record.extra.extend(items.into_iter().map(|member| member.value).chain(added));
                record.written = None;
            }),
            AbstractValue::Unknown
            | AbstractValue::Undefined
            | AbstractValue::Function(_)
            | AbstractValue::Literal(_) => {}
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

    /// Names of an object's members, as far as they have sources.
    fn names_of(&mut self, object: &AbstractValue<'a>) -> AbstractValue<'a> {
        match self.memory.freeze(object) {
            AbstractValue::Record(record) => {
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

    /// Values of an object's members.
    fn values_of(&mut self, object: &AbstractValue<'a>) -> AbstractValue<'a> {
        match self.memory.freeze(object) {
            AbstractValue::Record(record) => {
                let mut values = ObjectRecord::clone(&record);
                values.names.clear();
                self.memory.allocate(values)
            }
            other => other,
        }
    }

    /// A call of a global function.
    pub(super) fn global_call(&mut self, it: &'a CallExpression<'a>, name: &str) -> AbstractValue<'a> {
        if let Some(form) = super::parallel::form(name) {
            return self.fork(it, form);
        }
        let mut given = match name {
            "Promise.resolve" => {
                let given = self.evaluate_arguments(&it.arguments);
                let value = given.into_iter().next().map_or(AbstractValue::Undefined, |(value, _, _)| value);
                return AbstractValue::Promise(Rc::new(value), None);
            }
            _ => self.evaluate_arguments(&it.arguments),
        };
        if self.resolve_promise(name, &given) {
            return AbstractValue::Undefined;
        }
        let (object, member) = name.split_once('.').unwrap_or((name, ""));
        match object {
            "console" | "pml" => {
                for (value, span, _) in &given {
                    self.complain_if_unawaited(value, *span, "is shown");
                }
                return AbstractValue::Undefined;
            }
            "setTimeout" | "setInterval" | "queueMicrotask" => {
                given.iter().for_each(|(value, _, _)| self.escape(value, 0));
                return AbstractValue::Unknown;
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
        let operation = if member.is_empty() {
            operations::global_operation(object)
        } else {
            operations::function_operation(object, member)
        };
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
                    ("Object.assign" | "Object.freeze", Some((target @ AbstractValue::Object(_), _, _))) => {
                        target.clone()
                    }
                    _ => value,
                }
            }
            None => self.call_unknown(it.span, &[], &given),
        }
    }

    /// The resolver passed to a promise's executor: its argument becomes the value of the promise.
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
        let Some((AbstractValue::Object(target), _, _)) = given.first() else { return };
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
        operation: &'static OperationSpec,
        receiver: Option<(AbstractValue<'a>, &'a Expression<'a>)>,
        given: CallArguments<'a>,
    ) -> AbstractValue<'a> {
        let subject = match &receiver {
            Some((value, _)) => value.clone(),
            None => given.first().map_or(AbstractValue::Undefined, |(value, _, _)| value.clone()),
        };
        if let Some(callback) = operation.callback
            && let Some((function, at, false)) = given.get(callback.argument).cloned()
        {
            let over = match &receiver {
                Some((_, expression)) => expression.span(),
                None => given.first().map_or(it.span, |(_, span, _)| *span),
            };
            if self.memory.leads_to_tool(&function)
                || self.callback_calls_items(&function, &subject, callback.parameters)
            {
                let start = given.get(callback.argument + 1).map(|(value, _, _)| value.clone());
                let name = self.name_of_function(it, at);
                return self.iterate_callback(
                    operation,
                    &subject,
                    (&function, at, name),
                    over,
                    callback.parameters,
                    start,
                    it.span,
                );
            }
            if let AbstractValue::Function(closure) = &function {
                self.recording.enter_quiet();
                self.iterate_quietly(&Rc::clone(closure), &subject, callback.parameters, over);
                self.recording.leave_quiet();
            }
        }
        let changes_outside = given.iter().any(|(value, _, _)| match value {
            AbstractValue::Function(closure) => self.facts.function(closure.function).changes_outside,
            _ => false,
        });
        // Code that receives something opaque may do anything with it.
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
            if !matches!(value, AbstractValue::Function(_) | AbstractValue::Literal(_)) {
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

    /// The name at `at` among the arguments of a call, if it always refers to the same function and no code can observe
    /// whether that function or a wrapper is passed.
    fn name_of_function(&self, it: &'a CallExpression<'a>, at: Span) -> Option<Span> {
        let arguments = it.arguments.iter().filter_map(|argument| argument.as_expression());
        let handed = arguments.map(plain).find(|argument| at.contains_inclusive(argument.span()))?;
        let Expression::Identifier(name) = handed else { return None };
        let symbol = roots::resolve_variable(self.input.scoping, name)?;
        let flags = self.input.scoping.symbol_flags(symbol);
        let is_constant = flags.is_const_variable() || flags.is_function();
        let AbstractValue::Function(closure) = self.read_symbol(symbol) else { return None };
        let uses_this = self.facts.function(closure.function).uses_this;
        (is_constant && !uses_this && !self.input.scoping.symbol_is_mutated(symbol)).then_some(name.span)
    }

    /// A regular expression without state between uses.
    fn is_stateless_pattern(&self, value: &AbstractValue<'a>) -> bool {
        let AbstractValue::Computed(span, _) = value else { return false };
        let text = self.input.text(*span);
        let flags = text.rsplit_once('/').filter(|_| text.starts_with('/')).map(|(_, flags)| flags);
        flags.is_some_and(|flags| {
            flags.chars().all(|flag| flag.is_ascii_lowercase() && !matches!(flag, 'g' | 'y'))
        })
    }

    /// Name of a variable: the text of its declaration, unless that has escapes.
    fn name_at(&self, symbol: SymbolId, declared: Span) -> Cow<'a, str> {
        let name = self.input.scoping.symbol_name(symbol);
        let text = &self.input.source[declared.start as usize..declared.end as usize];
        if text == name { text.into() } else { name.to_owned().into() }
    }

    /// Adds the variables that functions among the arguments capture.
    fn add_captured(&mut self, given: &[CallArgument<'a>], from: u32, inputs: &mut Vec<OperationInput<'a>>) {
        let first = inputs.len();
        for (value, span, _) in given {
            if !matches!(value, AbstractValue::Function(_)) || span.start < from {
                continue;
            }
            for mention in self.facts.survey.distinct_mentions(span.start, span.end) {
                let (name, value) = match mention {
                    SymbolMention::Variable(symbol) => {
                        let declared = self.input.scoping.symbol_span(symbol);
                        if span.contains_inclusive(declared) {
                            continue;
                        }
                        (self.name_at(symbol, declared), self.read_symbol(symbol))
                    }
                    SymbolMention::Arguments => {
                        ("args".into(), AbstractValue::Parameter(MemberPath::default()))
                    }
                    SymbolMention::Root => continue,
                };
                let interesting = !matches!(
                    value,
                    AbstractValue::Function(_) | AbstractValue::Class(_) | AbstractValue::Unknown
                );
                if interesting && !inputs[first..].iter().any(|(known, _, _)| *known == name) {
                    inputs.push((name, value, *span));
                }
            }
        }
    }
}

/// Whether nothing else refers to the value: it is a literal, or the result of an operation that creates new values.
fn is_fresh(expression: &Expression<'_>) -> bool {
    match plain(expression) {
        Expression::ArrayExpression(_)
        | Expression::ObjectExpression(_)
        | Expression::TemplateLiteral(_)
        | Expression::NewExpression(_) => true,
        Expression::CallExpression(call) => match plain(&call.callee) {
            Expression::StaticMemberExpression(member) => {
                let global = match &member.object {
                    Expression::Identifier(name) => {
                        operations::function_operation(&name.name, &member.property.name)
                    }
                    _ => None,
                };
                match (global, operations::method_operation(&member.property.name)) {
                    (Some(operation), _) => {
                        let first = call.arguments.first().and_then(|first| first.as_expression());
                        operation.is_fresh(first.is_some_and(is_fresh))
                    }
                    (None, Some(operation)) => operation.is_fresh(is_fresh(&member.object)),
                    (None, None) => false,
                }
            }
            Expression::Identifier(name) => {
                operations::global_operation(&name.name).is_some_and(|operation| operation.is_fresh(false))
            }
            _ => false,
        },
        _ => false,
    }
}
