//! Functions stored in lists, objects, maps and instances: which of them a call can reach.
//!
//! Only functions that can reach a tool are tracked here. Other contents are data, tracked by their sources. A function
//! must be known itself, or its calls would have no place in the order.

use std::rc::Rc;

use oxc_ast::ast::{ClassElement, MethodDefinitionKind};
use oxc_span::Span;
use pml_model::structure::PathStep;

use super::Walker;
use super::arguments::{CallArgument, CallArguments};
use super::iterate::callback_arguments;
use super::places::{MemberKey, WriteCertainty, put_into, step_of};
use super::syntax::step_of_key;
use crate::operations::CallbackParameters;
use crate::value::{AbstractValue, ClassValue, ObjectMember, ObjectRecord, RecordKind, ValueList, one_of};

impl<'a> Walker<'a, '_> {
    /// Functions that a member can be when the object may be one of several; `None` unless one of them reaches a tool.
    pub(super) fn functions_behind(
        &mut self,
        object: &AbstractValue<'a>,
        key: &PathStep,
    ) -> Option<AbstractValue<'a>> {
        if !self.memory.can_reach_tool(object, 0) {
            return None;
        }
        let mut found = ValueList::new();
        self.collect_functions_behind(object, key, &mut found);
        let found = one_of(found);
        self.memory.can_reach_tool(&found, 0).then_some(found)
    }

    fn collect_functions_behind(
        &mut self,
        object: &AbstractValue<'a>,
        key: &PathStep,
        found: &mut ValueList<'a>,
    ) {
        match object {
            AbstractValue::OneOf(objects) => {
                objects.iter().for_each(|object| self.collect_functions_behind(object, key, found));
            }
            AbstractValue::Object(index) if is_method_of_list(self.memory.state.object(*index), key) => {}
            AbstractValue::Record(record) if is_method_of_list(record, key) => {}
            AbstractValue::Object(_) | AbstractValue::Class(_) => {
                found.push(self.read_member(object.clone(), key, Span::default(), Span::default()));
            }
            // An instance in its original state: changes by its methods are not visible elsewhere.
            AbstractValue::Record(record) if matches!(record.kind, RecordKind::Instance(_)) => {
                let instance =
                    AbstractValue::Object(self.memory.state.new_object(ObjectRecord::clone(record)));
                self.collect_functions_behind(&instance, key, found);
            }
            AbstractValue::Item(of, _, path) if path.steps().is_empty() => {
                let items = self.memory.part(of, &PathStep::Any);
                self.collect_functions_behind(&items, key, found);
            }
            AbstractValue::Record(_) => found.push(self.memory.part(object, key)),
            _ => {}
        }
    }

    /// Inserts key-value pairs into a map.
    pub(super) fn put_pairs(&mut self, map: u32, pairs: &AbstractValue<'a>, span: Span) {
        let pairs: ValueList<'a> = match pairs {
            AbstractValue::Object(list) if self.memory.state.object(*list).is_closed() => {
                self.memory.state.object(*list).fields.iter().map(|member| member.value.clone()).collect()
            }
            other => ValueList::from_iter([self.memory.part(other, &PathStep::Any)]),
        };
        for pair in pairs {
            let (key, value) =
                (self.memory.part(&pair, &PathStep::Index(0)), self.memory.part(&pair, &PathStep::Index(1)));
            let key = step_of(&key).map_or(MemberKey::Computed(key), MemberKey::Known);
            put_into(&mut self.memory.state, map, &key, value, span, WriteCertainty::Certain);
        }
    }

    /// Functions are added to one of several collections: each of them may hold them.
    pub(super) fn add_functions(&mut self, collections: &[AbstractValue<'a>], given: &[CallArgument<'a>]) {
        let functions: ValueList<'a> = given.iter().map(|(value, _, _)| value.clone()).collect();
        if !functions.iter().any(|value| self.memory.can_reach_tool(value, 0)) {
            return;
        }
        for collection in collections {
            if let AbstractValue::Object(index) = collection {
                self.memory.state.change(*index, |record| record.extra.extend(functions.iter().cloned()));
            }
        }
    }

    /// Value of a member with an unknown name.
    pub(super) fn any_member(&mut self, object: &AbstractValue<'a>) -> AbstractValue<'a> {
        let mut found = ValueList::from_iter([self.memory.part(object, &PathStep::Any)]);
        if let AbstractValue::Object(index) = object
            && let RecordKind::Instance(class) = &self.memory.state.object(*index).kind
        {
            let class = Rc::clone(class);
            let names = method_names(&class);
            found.extend(names.iter().filter_map(|name| self.inherited_member(&class, name, object)));
        }
        one_of(found)
    }

    /// Result of an operation that passes its inputs through: data comes from the operation's node, functions stay what
    /// they are.
    pub(super) fn pass_functions_through(
        &mut self,
        operation: &str,
        subject: &AbstractValue<'a>,
        given: &[CallArgument<'a>],
        result: AbstractValue<'a>,
    ) -> AbstractValue<'a> {
        let holds = self.memory.can_reach_tool(subject, 0)
            || given.iter().any(|(value, _, _)| self.memory.can_reach_tool(value, 0));
        if !holds {
            return result;
        }
        let mut items = ValueList::from_iter([self.memory.part(subject, &PathStep::Any)]);
        if matches!(operation, "concat" | "splice" | "toSpliced" | "with") {
            for (value, _, _) in given {
                let is_list = matches!(value, AbstractValue::Object(_)) && operation == "concat";
                items.push(if is_list { self.memory.part(value, &PathStep::Any) } else { value.clone() });
            }
        }
        let item = one_of(items);
        match operation {
            "find" | "findLast" | "at" => one_of([item, result]),
            "filter" | "slice" | "sort" | "toSorted" | "reverse" | "toReversed" | "concat" | "flat"
            | "splice" | "toSpliced" | "with" | "values" | "Array.from" | "Object.values" => {
                self.list_of(item, result)
            }
            "entries" | "Object.entries" => {
                let pair = self.memory.part(&result, &PathStep::Any);
                let name = self.memory.part(&pair, &PathStep::Index(0));
                let member = |index, value| ObjectMember {
                    key: PathStep::Index(index),
                    value,
                    span: Span::default(),
                    getter: false,
                };
                let fields = vec![member(0, name), member(1, item)];
                let pair = ObjectRecord { kind: RecordKind::Array, fields, ..ObjectRecord::default() };
                let pair = self.memory.allocate(pair);
                self.list_of(pair, result)
            }
            _ => result,
        }
    }

    /// A list with such items, made by an operation.
    fn list_of(&mut self, item: AbstractValue<'a>, made: AbstractValue<'a>) -> AbstractValue<'a> {
        let list = ObjectRecord {
            kind: RecordKind::Array,
            extra: vec![item],
            spreads: vec![made],
            ..ObjectRecord::default()
        };
        self.memory.allocate(list)
    }

    /// Whether a callback calls its arguments: it is walked as a trial, and nothing of that is kept.
    pub(super) fn callback_calls_items(
        &mut self,
        callback: &AbstractValue<'a>,
        subject: &AbstractValue<'a>,
        binds: CallbackParameters,
    ) -> bool {
        let AbstractValue::Function(closure) = callback else { return false };
        if self.recording.is_quiet() || self.recording.is_trial() || !self.memory.can_reach_tool(subject, 0) {
            return false;
        }
        let (mark, frontier) = (self.memory.state.mark(), self.flow.frontier.clone());
        let (kept, pendings) = (self.functions.kept.len(), self.memory.promises.len());
        self.recording.enter_quiet();
        self.recording.begin_trial();
        let item = self.memory.part(subject, &PathStep::Any);
        let given: CallArguments<'a> = callback_arguments(binds, None, &item, closure.code.span());
        self.follow_call(closure, given, None, None);
        self.recording.leave_quiet();
        self.memory.state.undo(mark);
        self.functions.kept.truncate(kept);
        self.memory.promises.truncate(pendings);
        (self.flow.frontier, self.flow.live) = (frontier, true);
        self.recording.end_trial()
    }
}

/// Whether a name can only be a built-in member of lists, maps and sets.
fn is_method_of_list(record: &ObjectRecord<'_>, key: &PathStep) -> bool {
    let is_named = matches!(key, PathStep::Key(_)) && record.field(key).is_none();
    is_named && matches!(record.kind, RecordKind::Array | RecordKind::Collection)
}

/// Names of the methods of a class's instances, its own before inherited ones.
fn method_names(class: &ClassValue<'_>) -> Vec<PathStep> {
    let mut names = Vec::new();
    let mut at = Some(class);
    while let Some(class) = at {
        for element in &class.class.body.body {
            if let ClassElement::MethodDefinition(it) = element
                && !it.r#static
                && it.kind == MethodDefinitionKind::Method
                && let Some(name) = step_of_key(&it.key)
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        at = class.parent.as_deref();
    }
    names
}
