//! Functions kept in lists, objects, maps and instances: which of them a call can mean.
//!
//! Only what can reach a tool is looked for here. What else is kept is data, whose way through the program is known
//! by where it comes from; a function has to be known itself, or its calls would stand in no order.

use std::rc::Rc;

use oxc_ast::ast::{ClassElement, MethodDefinitionKind};
use oxc_span::Span;
use pml_model::structure::Step;

use super::Walker;
use super::arguments::{CallArgument, CallArguments};
use super::iterate::callback_arguments;
use super::places::{MemberKey, WriteCertainty, put_into, step_of};
use super::syntax::step_of_key;
use crate::operations::CallbackParameters;
use crate::value::{ClassValue, ObjectMember, ObjectRecord, RecordKind, Value, ValueList, one_of};

impl<'a> Walker<'a, '_> {
    /// The functions that a member can be of a value that may be several objects, if one of them reaches a tool.
    pub(super) fn functions_behind(&mut self, object: &Value<'a>, key: &Step) -> Option<Value<'a>> {
        if !self.memory.can_reach_tool(object, 0) {
            return None;
        }
        let mut found = ValueList::new();
        self.collect_functions_behind(object, key, &mut found);
        let found = one_of(found);
        self.memory.can_reach_tool(&found, 0).then_some(found)
    }

    fn collect_functions_behind(&mut self, object: &Value<'a>, key: &Step, found: &mut ValueList<'a>) {
        match object {
            Value::OneOf(objects) => {
                objects.iter().for_each(|object| self.collect_functions_behind(object, key, found));
            }
            Value::Object(index) if is_method_of_list(self.memory.state.object(*index), key) => {}
            Value::Record(record) if is_method_of_list(record, key) => {}
            Value::Object(_) | Value::Class(_) => {
                found.push(self.read_member(object.clone(), key, Span::default(), Span::default()));
            }
            // An instance as it was: what its methods do to it is seen by nobody else.
            Value::Record(record) if matches!(record.kind, RecordKind::Instance(_)) => {
                let instance = Value::Object(self.memory.state.new_object(ObjectRecord::clone(record)));
                self.collect_functions_behind(&instance, key, found);
            }
            Value::Item(of, _, path) if path.steps().is_empty() => {
                let items = self.memory.part(of, &Step::Any);
                self.collect_functions_behind(&items, key, found);
            }
            Value::Record(_) => found.push(self.memory.part(object, key)),
            _ => {}
        }
    }

    /// Puts pairs of a key and a value into a map.
    pub(super) fn put_pairs(&mut self, map: u32, pairs: &Value<'a>, span: Span) {
        let pairs: ValueList<'a> = match pairs {
            Value::Object(list) if self.memory.state.object(*list).is_closed() => {
                self.memory.state.object(*list).fields.iter().map(|member| member.value.clone()).collect()
            }
            other => ValueList::from_iter([self.memory.part(other, &Step::Any)]),
        };
        for pair in pairs {
            let (key, value) =
                (self.memory.part(&pair, &Step::Index(0)), self.memory.part(&pair, &Step::Index(1)));
            let key = step_of(&key).map_or(MemberKey::Computed(key), MemberKey::Known);
            put_into(&mut self.memory.state, map, &key, value, span, WriteCertainty::Certain);
        }
    }

    /// Functions are put into one of several collections: each of them may hold them.
    pub(super) fn add_functions(&mut self, collections: &[Value<'a>], given: &[CallArgument<'a>]) {
        let functions: ValueList<'a> = given.iter().map(|(value, _, _)| value.clone()).collect();
        if !functions.iter().any(|value| self.memory.can_reach_tool(value, 0)) {
            return;
        }
        for collection in collections {
            if let Value::Object(index) = collection {
                self.memory.state.change(*index, |record| record.extra.extend(functions.iter().cloned()));
            }
        }
    }

    /// What a member of an unknown name can be.
    pub(super) fn any_member(&mut self, object: &Value<'a>) -> Value<'a> {
        let mut found = ValueList::from_iter([self.memory.part(object, &Step::Any)]);
        if let Value::Object(index) = object
            && let RecordKind::Instance(class) = &self.memory.state.object(*index).kind
        {
            let class = Rc::clone(class);
            let names = method_names(&class);
            found.extend(names.iter().filter_map(|name| self.inherited_member(&class, name, object)));
        }
        one_of(found)
    }

    /// What an operation gives that hands on what it was given: its node is where data comes from, functions stay what
    /// they are.
    pub(super) fn pass_functions_through(
        &mut self,
        operation: &str,
        subject: &Value<'a>,
        given: &[CallArgument<'a>],
        result: Value<'a>,
    ) -> Value<'a> {
        let holds = self.memory.can_reach_tool(subject, 0)
            || given.iter().any(|(value, _, _)| self.memory.can_reach_tool(value, 0));
        if !holds {
            return result;
        }
        let mut items = ValueList::from_iter([self.memory.part(subject, &Step::Any)]);
        if matches!(operation, "concat" | "splice" | "toSpliced" | "with") {
            for (value, _, _) in given {
                let is_list = matches!(value, Value::Object(_)) && operation == "concat";
                items.push(if is_list { self.memory.part(value, &Step::Any) } else { value.clone() });
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
                let pair = self.memory.part(&result, &Step::Any);
                let name = self.memory.part(&pair, &Step::Index(0));
                let member = |index, value| ObjectMember {
                    key: Step::Index(index),
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

    /// A list of some such items, made by an operation.
    fn list_of(&mut self, item: Value<'a>, made: Value<'a>) -> Value<'a> {
        let list = ObjectRecord {
            kind: RecordKind::Array,
            extra: vec![item],
            spreads: vec![made],
            ..ObjectRecord::default()
        };
        self.memory.allocate(list)
    }

    /// Whether a callback comes to call what it is given: it is followed, and nothing of that is kept.
    pub(super) fn callback_calls_items(
        &mut self,
        callback: &Value<'a>,
        subject: &Value<'a>,
        binds: CallbackParameters,
    ) -> bool {
        let Value::Function(closure) = callback else { return false };
        if self.recording.is_quiet() || self.recording.is_trial() || !self.memory.can_reach_tool(subject, 0) {
            return false;
        }
        let (mark, frontier) = (self.memory.state.mark(), self.flow.frontier.clone());
        let (kept, pendings) = (self.functions.kept.len(), self.memory.promises.len());
        self.recording.enter_quiet();
        self.recording.begin_trial();
        let item = self.memory.part(subject, &Step::Any);
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

/// Whether a name can only be one that the language gives lists, maps and sets.
fn is_method_of_list(record: &ObjectRecord<'_>, key: &Step) -> bool {
    let is_named = matches!(key, Step::Key(_)) && record.field(key).is_none();
    is_named && matches!(record.kind, RecordKind::Array | RecordKind::Collection)
}

/// The names of the methods that instances of a class have, its own first.
fn method_names(class: &ClassValue<'_>) -> Vec<Step> {
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
