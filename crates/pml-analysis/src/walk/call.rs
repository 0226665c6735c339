//! Calls: of tools, of capabilities, of operations of the language, of what we do not know.

use std::rc::Rc;

use oxc_ast::ast::{Argument, CallExpression, Expression};
use oxc_span::{GetSpan, Span};
use pml_model::structure::{LoopForm, Step};

use super::expression::plain;
use super::objects::{Certainty, Key, append, step_of};
use super::repeat::{Exit, Head};
use super::value::{Closure, Kind, Path, Record, Value, one_of};
use super::{Call, Changes, DraftKind, Target, Walk, Way};
use crate::analysis::{Code, Severity};
use crate::marks::Place;
use crate::operations::{self, Binds, Operation};
use crate::schema;
use crate::survey::Mention;

/// An argument: its value, where it stands, and whether it is spread.
pub(super) type Given<'a> = (Value<'a>, Span, bool);

impl<'a> Walk<'a, '_> {
    pub(super) fn call(&mut self, it: &'a CallExpression<'a>) -> Value<'a> {
        let callee = plain(&it.callee);
        if let Expression::Super(_) = callee {
            return self.super_call(it);
        }
        match callee {
            Expression::StaticMemberExpression(member) => {
                if let Expression::Super(_) = &member.object {
                    return self.super_method(it, &member.property.name);
                }
                let object = self.base(&member.object);
                let object = self.optional_link(member.optional, member.span, &member.object, object);
                let key = Step::Key(member.property.name.to_string());
                self.method_call(it, object, &member.object, &key, member.property.span)
            }
            Expression::PrivateFieldExpression(member) => {
                let object = self.base(&member.object);
                let object = self.optional_link(member.optional, member.span, &member.object, object);
                let key = Step::Key(format!("#{}", member.field.name));
                self.method_call(it, object, &member.object, &key, member.field.span)
            }
            Expression::ComputedMemberExpression(member) => {
                let object = self.base(&member.object);
                let object = self.optional_link(member.optional, member.span, &member.object, object);
                let key = self.key_value(&object, &member.expression);
                match step_of(&key) {
                    Some(step) => {
                        self.method_call(it, object, &member.object, &step, member.expression.span())
                    }
                    None if self.effectful(&object, 0) => {
                        let function = self.part(&object, &Step::Any);
                        self.function_call(it, function)
                    }
                    None => {
                        let function = self.member_by(object, &key, member.expression.span(), member.span);
                        let function = self.optional_link(it.optional, it.span, &it.callee, function);
                        self.function_call(it, function)
                    }
                }
            }
            other => {
                let function = self.raw(other);
                let function = self.optional_link(it.optional, it.span, &it.callee, function);
                self.function_call(it, function)
            }
        }
    }

    pub(super) fn arguments(&mut self, list: &'a [Argument<'a>]) -> Vec<Given<'a>> {
        let mut given = Vec::with_capacity(list.len());
        for argument in list {
            match argument {
                Argument::SpreadElement(spread) => {
                    let value = self.value(&spread.argument);
                    given.push((value, spread.span, true));
                }
                other => {
                    if let Some(expression) = other.as_expression() {
                        let value = self.value(expression);
                        given.push((value, expression.span(), false));
                    }
                }
            }
        }
        given
    }

    fn method_call(
        &mut self,
        it: &'a CallExpression<'a>,
        object: Value<'a>,
        object_expression: &'a Expression<'a>,
        key: &Step,
        key_span: Span,
    ) -> Value<'a> {
        let name = match key {
            Step::Key(name) => name.as_str(),
            Step::Index(_) | Step::Any => "",
        };
        if it.optional && !matches!(object, Value::Server(_) | Value::Capabilities) {
            self.optional_link(true, it.span, &it.callee, object.clone());
        }
        if name == "constructor" && !matches!(object, Value::Object(_)) {
            self.opaque(it.span, "`constructor` is called, which can make functions from text");
        }
        match &object {
            Value::Server(_) | Value::Capabilities => {
                let callee = self.member(object.clone(), key, key_span, it.callee.span());
                let callee = self.optional_link(it.optional, it.span, &it.callee, callee);
                self.function_call(it, callee)
            }
            Value::Mcp => {
                self.arguments(&it.arguments);
                self.complain(
                    Severity::Error,
                    Code::UnknownTool,
                    it.callee.span(),
                    format!("`mcp.{name}` is a server, not a tool"),
                    Some(format!("call one of its tools: `mcp.{name}.tool({{ … }})`")),
                );
                Value::Unknown
            }
            Value::Tool(..) | Value::Capability(_) => self.tool_method(it, &object, name),
            Value::Function(closure) if matches!(name, "call" | "apply" | "bind") => {
                self.function_method(it, &Rc::clone(closure), name)
            }
            Value::Global(global) => {
                let global: Rc<str> = if &**global == "globalThis" {
                    let member = self.member(object.clone(), key, key_span, it.callee.span());
                    return self.function_call(it, member);
                } else {
                    format!("{global}.{name}").into()
                };
                self.global_call(it, &global)
            }
            Value::Object(_) | Value::Class(_) => {
                self.own_method(it, object, object_expression, key, key_span)
            }
            _ if matches!(name, "then" | "catch" | "finally") => self.promise_method(it, &object, name),
            _ => self.operation_call(it, object, object_expression, key, key_span),
        }
    }

    /// A method of an object or class of the program.
    fn own_method(
        &mut self,
        it: &'a CallExpression<'a>,
        object: Value<'a>,
        object_expression: &'a Expression<'a>,
        key: &Step,
        key_span: Span,
    ) -> Value<'a> {
        let method = match &object {
            Value::Object(index) if self.is_plain_method(*index, key) => None,
            _ => Some(self.member(object.clone(), key, key_span, it.callee.span())),
        };
        match method {
            Some(Value::Function(closure)) => {
                let given = self.arguments(&it.arguments);
                self.follow_with_this(&closure, given, Some(it.span), Some(object))
            }
            Some(callable @ (Value::Tool(..) | Value::Capability(_) | Value::OneOf(_) | Value::Item(..))) => {
                self.function_call(it, callable)
            }
            _ => self.operation_call(it, object, object_expression, key, key_span),
        }
    }

    /// Nothing of the program's own is behind that name.
    fn is_plain_method(&self, object: u32, key: &Step) -> bool {
        let record = self.state.object(object);
        record.field(key).is_none() && !matches!(record.kind, Kind::Instance(_))
    }

    /// Calls what a variable or expression holds.
    pub(super) fn function_call(&mut self, it: &'a CallExpression<'a>, function: Value<'a>) -> Value<'a> {
        match function {
            Value::Tool(server, name) => {
                let given = self.arguments(&it.arguments);
                self.tool_call(Target::Tool { server, name }, given, it.span, it.span)
            }
            Value::Capability(name) => {
                let given = self.arguments(&it.arguments);
                self.tool_call(Target::Capability(name), given, it.span, it.span)
            }
            Value::Function(closure) => {
                let given = self.arguments(&it.arguments);
                self.follow(&closure, given, Some(it.span), None)
            }
            Value::Global(name) => self.global_call(it, &name),
            Value::OneOf(functions) => {
                let given = self.arguments(&it.arguments);
                self.one_of_calls(&functions, &given, it.span)
            }
            Value::Item(of, _, path) if path.steps().is_empty() && self.effectful(&of, 0) => {
                let given = self.arguments(&it.arguments);
                match self.part(&of, &Step::Any) {
                    Value::OneOf(functions) => self.one_of_calls(&functions, &given, it.span),
                    one => self.one_of_calls(&[one], &given, it.span),
                }
            }
            Value::Mcp | Value::Server(_) | Value::Capabilities => {
                self.arguments(&it.arguments);
                self.handed_on(function, it.callee.span())
            }
            other => {
                let given = self.arguments(&it.arguments);
                self.unknown_call(it.span, &[other], &given)
            }
        }
    }

    /// One of several functions is called; which one is known when the program runs.
    fn one_of_calls(&mut self, functions: &[Value<'a>], given: &[Given<'a>], span: Span) -> Value<'a> {
        let before = self.frontier.clone();
        let mark = self.state.mark();
        let mut ways = Vec::new();
        let mut results = Vec::new();
        for function in functions {
            self.frontier.clone_from(&before);
            let result = match function {
                Value::Function(closure) => {
                    self.follow(&Rc::clone(closure), given.to_vec(), Some(span), None)
                }
                Value::Tool(..) | Value::Capability(_) => {
                    self.variant = results.len() as u32;
                    let target = match function {
                        Value::Tool(server, name) => {
                            Target::Tool { server: Rc::clone(server), name: Rc::clone(name) }
                        }
                        Value::Capability(name) => Target::Capability(Rc::clone(name)),
                        _ => continue,
                    };
                    let result = self.tool_call(target, given.to_vec(), span, span);
                    self.variant = 0;
                    result
                }
                Value::Undefined | Value::Unknown => continue,
                other => self.unknown_call(span, std::slice::from_ref(other), given),
            };
            results.push(result);
            ways.extend(self.end_arm(mark));
        }
        if ways.is_empty() {
            return self.unknown_call(span, functions, given);
        }
        self.rejoin(ways);
        one_of(results)
    }

    /// A call into something that is not the program's and not an operation: functions it is given may be called.
    pub(super) fn unknown_call(
        &mut self,
        span: Span,
        callee: &[Value<'a>],
        given: &[Given<'a>],
    ) -> Value<'a> {
        let mut values = callee.to_vec();
        for (value, _, _) in given {
            self.consume(value);
            self.escaped(value, 0);
            values.push(value.clone());
        }
        self.computed(span, &values)
    }

    /// A function that somebody else may call, any number of times.
    pub(super) fn escaped(&mut self, value: &Value<'a>, depth: u32) {
        match value {
            Value::Function(closure) => {
                let before = self.frontier.clone();
                let mark = self.state.mark();
                let closure = Rc::clone(closure);
                let given = self.follow(&closure, Vec::new(), None, None);
                self.consume(&given);
                let done = self.end_arm(mark);
                let skipped = Way { changes: Changes::default(), frontier: before };
                self.rejoin(done.into_iter().chain([skipped]));
            }
            Value::Object(index) if depth < 3 => {
                let record = Rc::clone(self.state.object(*index));
                for member in &record.fields {
                    if self.effectful(&member.value, 0) {
                        self.escaped(&member.value, depth + 1);
                    }
                }
                record.extra.iter().for_each(|value| self.escaped(value, depth + 1));
            }
            Value::Tool(..) | Value::Capability(_) => {
                let at = self.tool_span(value);
                self.tool_as_value(value, at);
            }
            Value::OneOf(values) if depth < 3 => {
                values.iter().for_each(|value| self.escaped(value, depth + 1));
            }
            _ => {}
        }
    }

    /// A call of a tool or capability.
    pub(super) fn tool_call(
        &mut self,
        target: Target,
        given: Vec<Given<'a>>,
        span: Span,
        at: Span,
    ) -> Value<'a> {
        if let Some((_, extra, _)) = given.get(1) {
            self.complain(
                Severity::Warning,
                Code::UnknownArgument,
                *extra,
                "a tool takes one object; what follows it is not handed over",
                Some("put it into the object".to_owned()),
            );
        }
        let arguments = match given.into_iter().next() {
            None => Value::Undefined,
            Some((value, span, true)) => {
                let first = self.part(&value, &Step::Index(0));
                self.computed(span, &[first])
            }
            Some((value, span, false)) => {
                self.unawaited_inside(&value, span, 0);
                self.frozen(&value)
            }
        };
        self.declare(&target, at);
        let what = match &target {
            Target::Tool { server, name } => format!("`{server}:{name}`"),
            Target::Capability(name) => format!("`{name}`"),
        };
        let call = Call { target, arguments, span, as_value: false };
        let node = self.node(Place::Call, span, DraftKind::Call(call));
        let pending = self.pending(span, what, "put `await` before it, or the program may end first");
        Value::Promise(Rc::new(self.result_of(node)), Some(pending))
    }

    /// Promises among the arguments of a tool, which needs their values.
    fn unawaited_inside(&mut self, value: &Value<'a>, span: Span, depth: u32) {
        self.unawaited(value, span, "is handed over");
        if let (Value::Object(index), true) = (value, depth < 4) {
            let record = Rc::clone(self.state.object(*index));
            for member in &record.fields {
                self.unawaited_inside(&member.value, member.span, depth + 1);
            }
        }
    }

    /// A tool that is handed on: it may be called with anything.
    pub(super) fn tool_as_value(&mut self, tool: &Value<'a>, span: Span) {
        let target = match tool {
            Value::Tool(server, name) => Target::Tool { server: Rc::clone(server), name: Rc::clone(name) },
            Value::Capability(name) => Target::Capability(Rc::clone(name)),
            _ => return,
        };
        self.declare(&target, span);
        let arguments = self.computed(span, &[]);
        self.node(Place::Call, span, DraftKind::Call(Call { target, arguments, span, as_value: true }));
    }

    /// A tool that is kept: it can be called, so it counts.
    pub(super) fn declare_value(&mut self, tool: &Value<'a>, span: Span) {
        self.tools_kept.push((tool.clone(), span));
        match tool {
            Value::Tool(server, name) => {
                self.declare(&Target::Tool { server: Rc::clone(server), name: Rc::clone(name) }, span);
            }
            Value::Capability(name) => self.declare(&Target::Capability(Rc::clone(name)), span),
            _ => {}
        }
    }

    /// Where a tool that was kept is written.
    fn tool_span(&self, tool: &Value<'a>) -> Span {
        self.tools_kept.iter().find(|(kept, _)| kept.same(tool)).map_or(Span::default(), |(_, span)| *span)
    }

    /// Notes which tool it is, and complains when there is none.
    fn declare(&mut self, target: &Target, span: Span) {
        match target {
            Target::Tool { server, name } => {
                if let Some(tool) = self.catalogue.tool(server, name) {
                    self.permissions.declared.insert(tool.id.to_string());
                    return;
                }
                let id = format!("{server}:{name}");
                if self.catalogue.capability(&id).is_some() {
                    self.permissions.capabilities.insert(id);
                    return;
                }
                self.permissions.declared.insert(id.clone());
                let (message, hint) = self.no_such_tool(server, name, &id);
                self.complain(Severity::Error, Code::UnknownTool, span, message, hint);
            }
            Target::Capability(name) => {
                self.permissions.capabilities.insert(name.to_string());
                if self.catalogue.capability(name).is_none() {
                    let near = schema::nearest(name, self.catalogue.capability_names());
                    let hint = near.first().map(|near| format!("did you mean `{near}`?"));
                    let message = format!("there is no capability `{name}`");
                    self.complain(Severity::Error, Code::UnknownCapability, span, message, hint);
                }
            }
        }
    }

    fn no_such_tool(&self, server: &str, name: &str, id: &str) -> (String, Option<String>) {
        let tools = self.catalogue.tools();
        if self.catalogue.has_server(server) {
            let own = tools.iter().filter(|tool| tool.id.server.as_str() == server);
            let near = schema::nearest(name, own.map(|tool| tool.identifier.as_str()));
            let names: Vec<String> = near.iter().map(|near| format!("`mcp.{server}.{near}`")).collect();
            let hint = (!names.is_empty()).then(|| format!("did you mean {}?", names.join(" or ")));
            return (format!("server `{server}` has no tool `{name}`"), hint);
        }
        let ids: Vec<String> = tools.iter().map(|tool| tool.id.to_string()).collect();
        let near = schema::nearest(id, ids.iter().map(String::as_str));
        let hint = near.first().map(|near| format!("did you mean `{near}`?"));
        let fallback = || Some("`pml_discover` finds tools for what is to be done".to_owned());
        (format!("no connected server is called `{server}`"), hint.or_else(fallback))
    }

    /// `tool.call(…)`, `tool.apply(…)`, `tool.bind(…)`.
    fn tool_method(&mut self, it: &'a CallExpression<'a>, tool: &Value<'a>, name: &str) -> Value<'a> {
        let mut given = self.arguments(&it.arguments);
        let target = match tool {
            Value::Tool(server, name) => Target::Tool { server: Rc::clone(server), name: Rc::clone(name) },
            Value::Capability(name) => Target::Capability(Rc::clone(name)),
            _ => return Value::Unknown,
        };
        match name {
            "call" => {
                given.drain(..given.len().min(1));
                self.tool_call(target, given, it.span, it.span)
            }
            "apply" => {
                let list = given.into_iter().nth(1);
                let first = list.map(|(list, span, _)| (self.part(&list, &Step::Index(0)), span, false));
                self.tool_call(target, first.into_iter().collect(), it.span, it.span)
            }
            "bind" if given.len() <= 1 => tool.clone(),
            _ => {
                self.tool_as_value(tool, it.callee.span());
                Value::Unknown
            }
        }
    }

    fn function_method(
        &mut self,
        it: &'a CallExpression<'a>,
        closure: &Rc<Closure<'a>>,
        name: &str,
    ) -> Value<'a> {
        let mut given = self.arguments(&it.arguments);
        let this = given.first().map(|(value, _, _)| value.clone());
        given.drain(..given.len().min(1));
        match name {
            "call" => self.follow_with_this(closure, given, Some(it.span), this),
            "apply" => {
                let spread = given.into_iter().take(1).map(|(list, span, _)| (list, span, true)).collect();
                self.follow_with_this(closure, spread, Some(it.span), this)
            }
            _ if given.is_empty() => Value::Function(Rc::new(Closure {
                code: closure.code,
                function: closure.function,
                outer: Rc::clone(&closure.outer),
                context: closure.context,
                this: this.or_else(|| closure.this.clone()),
                class: closure.class.clone(),
            })),
            _ => {
                self.escaped(&Value::Function(Rc::clone(closure)), 0);
                Value::Unknown
            }
        }
    }

    /// A method that is not the program's own: an operation of the language, or something unknown.
    fn operation_call(
        &mut self,
        it: &'a CallExpression<'a>,
        object: Value<'a>,
        object_expression: &'a Expression<'a>,
        key: &Step,
        key_span: Span,
    ) -> Value<'a> {
        let Step::Key(name) = key else {
            let given = self.arguments(&it.arguments);
            return self.unknown_call(it.span, &[object], &given);
        };
        self.unawaited(&object, object_expression.span(), &format!("is asked for `{name}`"));
        let object = super::expression::settled(&object);
        if matches!(object, Value::Unknown) {
            let given = self.arguments(&it.arguments);
            return self.unknown_call(it.span, &[], &given);
        }
        if let Value::Parameter(path) = &object {
            self.uses.read(path);
        }
        let Some(operation) = operations::method(name) else {
            if let Value::Result(..) = object {
                self.member(object.clone(), key, key_span, it.callee.span());
            }
            let given = self.arguments(&it.arguments);
            return self.unknown_call(it.span, &[object], &given);
        };
        self.uses.receiver(&object, operation.receiver);
        let given = self.arguments(&it.arguments);
        if let Value::Object(index) = object
            && let Some(value) = self.collected(index, name, &given, it.span)
        {
            return value;
        }
        if matches!(name.as_str(), "push" | "unshift" | "add" | "set") {
            self.moved_about(&object, object_expression, name, &given);
            return Value::Unknown;
        }
        let value = self.operate(it, operation, Some((object.clone(), object_expression)), given.clone());
        self.moved_about(&object, object_expression, name, &given);
        let of_outside = !matches!(object, Value::Object(_));
        if let (true, "sort" | "reverse" | "fill" | "copyWithin" | "splice") = (of_outside, name.as_str())
            && let (Some(root), Expression::Identifier(_)) =
                (self.root_of(object_expression), plain(object_expression))
        {
            // What the variable holds has been changed in place.
            let changed = if name == "splice" {
                self.computed(it.span, &[object, value.clone()])
            } else {
                value.clone()
            };
            self.write_symbol(root, changed);
        }
        value
    }

    /// Putting into and taking out of the program's own collections: bookkeeping, not operations.
    fn collected(&mut self, index: u32, name: &str, given: &[Given<'a>], span: Span) -> Option<Value<'a>> {
        let record = Rc::clone(self.state.object(index));
        let values: Vec<Value<'a>> = given.iter().map(|(value, _, _)| value.clone()).collect();
        match (name, &record.kind) {
            ("push", Kind::Array) => {
                // The item of one turn is one of many: its position says nothing.
                let older_than_loop = self.loops.iter().any(|scope| index < scope.objects);
                let mut changed = Record::clone(&record);
                for (value, at, spread) in given {
                    if *spread {
                        self.append_all(&mut changed, value);
                    } else if older_than_loop {
                        changed.extra.push(value.clone());
                    } else {
                        append(&mut changed, value.clone(), *at);
                    }
                }
                self.state.change(index, |record| {
                    *record = changed;
                    record.written = None;
                });
                Some(Value::Unknown)
            }
            ("pop" | "shift", Kind::Array) => Some(self.taken_from(index, &record, name)),
            ("set", Kind::Holder) => {
                if let [key, value, ..] = values.as_slice() {
                    let spot = step_of(key).map_or_else(|| Key::Computed(key.clone()), Key::Known);
                    self.put_into(index, &spot, value.clone(), span, Certainty::Certain);
                }
                Some(Value::Object(index))
            }
            ("add", Kind::Holder) => {
                self.state.change(index, |record| record.extra.extend(values));
                Some(Value::Object(index))
            }
            ("get", Kind::Holder) => {
                let key = values.into_iter().next().unwrap_or(Value::Unknown);
                let step = step_of(&key).unwrap_or(Step::Any);
                let held = self.part(&Value::Object(index), &step);
                Some(self.looked_up(held, &key, span))
            }
            ("keys", Kind::Holder) => Some(self.names_of(&Value::Object(index))),
            ("values", Kind::Holder) => Some(self.values_of(&Value::Object(index))),
            ("entries", Kind::Holder) => Some(Value::Object(index)),
            ("has" | "delete" | "clear", Kind::Holder) => Some(Value::Unknown),
            _ => None,
        }
    }

    /// `pop` and `shift` take a known item from an array whose items are known.
    fn taken_from(&mut self, index: u32, record: &Record<'a>, name: &str) -> Value<'a> {
        if !record.closed() || !self.coming_around(index).is_empty() {
            return self.part(&Value::Object(index), &Step::Any);
        }
        let mut left = record.clone();
        if left.fields.is_empty() {
            return Value::Undefined;
        }
        let taken = if name == "pop" { left.fields.pop() } else { Some(left.fields.remove(0)) };
        for (position, member) in left.fields.iter_mut().enumerate() {
            member.key = Step::Index(position as u64);
        }
        self.state.change(index, |record| {
            *record = left;
            record.written = None;
        });
        taken.map_or(Value::Undefined, |member| member.value)
    }

    /// Operations that move the items of an array about, or put some in.
    fn moved_about(
        &mut self,
        object: &Value<'a>,
        expression: &'a Expression<'a>,
        name: &str,
        given: &[Given<'a>],
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
            Value::Object(index) => self.state.change(*index, |record| {
                let items = std::mem::take(&mut record.fields);
                record.extra.extend(items.into_iter().map(|member| member.value).chain(added));
                record.written = None;
            }),
            Value::Unknown | Value::Undefined | Value::Function(_) | Value::Literal(_) => {}
            _ => {
                let keeps = matches!(name, "push" | "unshift" | "add" | "set");
                if let (Some(root), true) = (self.root_of(expression), keeps && !added.is_empty()) {
                    let kind = if matches!(name, "set" | "add") { Kind::Holder } else { Kind::Array };
                    self.add_to_variable(root, Record { kind, extra: added, ..Record::default() });
                }
            }
        }
    }

    /// The names of an object's members, as far as they come from somewhere.
    fn names_of(&mut self, object: &Value<'a>) -> Value<'a> {
        match self.frozen(object) {
            Value::Record(record) => {
                let known = Record { kind: Kind::Array, extra: record.names.clone(), ..Record::default() };
                let mut known = known;
                known.spreads.clone_from(&record.spreads);
                Value::Object(self.state.new_object(known))
            }
            other => other,
        }
    }

    /// The values of an object's members.
    fn values_of(&mut self, object: &Value<'a>) -> Value<'a> {
        match self.frozen(object) {
            Value::Record(record) => {
                let mut values = Record::clone(&record);
                values.names.clear();
                Value::Object(self.state.new_object(values))
            }
            other => other,
        }
    }

    /// A call of a name of the language.
    fn global_call(&mut self, it: &'a CallExpression<'a>, name: &str) -> Value<'a> {
        if let Some(form) = super::parallel::form(name) {
            return self.fork(it, form);
        }
        let mut given = match name {
            "Promise.resolve" => {
                let given = self.arguments(&it.arguments);
                let value = given.into_iter().next().map_or(Value::Undefined, |(value, _, _)| value);
                return Value::Promise(Rc::new(value), None);
            }
            _ => self.arguments(&it.arguments),
        };
        if self.resolved(name, &given) {
            return Value::Undefined;
        }
        let (object, member) = name.split_once('.').unwrap_or((name, ""));
        match object {
            "console" | "pml" => {
                for (value, span, _) in &given {
                    self.unawaited(value, *span, "is shown");
                }
                return Value::Undefined;
            }
            "setTimeout" | "setInterval" | "queueMicrotask" => {
                given.iter().for_each(|(value, _, _)| self.escaped(value, 0));
                return Value::Unknown;
            }
            _ => {}
        }
        match name {
            "Object.keys" => {
                for (value, span, _) in &mut given {
                    let names = self.names_of(value);
                    *value = self.computed(*span, &[names]);
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
                    self.uses.receiver(value, operation.receiver);
                }
                let value = self.operate(it, operation, None, given.clone());
                if name == "Object.assign" {
                    self.assigned(&given);
                }
                match (name, given.first()) {
                    ("Object.assign" | "Object.freeze", Some((target @ Value::Object(_), _, _))) => {
                        target.clone()
                    }
                    _ => value,
                }
            }
            None => self.unknown_call(it.span, &[], &given),
        }
    }

    /// The function a promise's maker gets: what it is given becomes the promise's value.
    pub(super) fn resolved(&mut self, name: &str, given: &[Given<'a>]) -> bool {
        let Some(holder) = name.strip_prefix("#resolve:").and_then(|index| index.parse().ok()) else {
            return false;
        };
        for (value, _, _) in given {
            self.consume(value);
            let value = value.clone();
            self.state.change(holder, |record| record.extra.push(value));
        }
        true
    }

    /// `Object.assign(target, …)` on an object of the program.
    fn assigned(&mut self, given: &[Given<'a>]) {
        let Some((Value::Object(target), _, _)) = given.first() else { return };
        let mut record = Record::clone(self.state.object(*target));
        for (value, _, _) in &given[1..] {
            self.spread_into(&mut record, value);
        }
        self.state.change(*target, |slot| *slot = record);
    }

    /// An operation of the language on a receiver (a method) or on its first argument.
    fn operate(
        &mut self,
        it: &'a CallExpression<'a>,
        operation: &'static Operation,
        receiver: Option<(Value<'a>, &'a Expression<'a>)>,
        given: Vec<Given<'a>>,
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
            if self.calls_something(&function) {
                let start = given.get(callback.argument + 1).map(|(value, _, _)| value.clone());
                return self.iterate(
                    operation,
                    &subject,
                    (&function, at),
                    over,
                    callback.binds,
                    start,
                    it.span,
                );
            }
            if let Value::Function(closure) = &function {
                self.quiet += 1;
                self.iterate_quietly(&Rc::clone(closure), &subject, callback.binds, over);
                self.quiet -= 1;
            }
        }
        let changes_outside = given.iter().any(|(value, _, _)| match value {
            Value::Function(closure) => self.survey.functions[closure.function as usize].changes_outside,
            _ => false,
        });
        let fresh = match &receiver {
            Some((value, expression)) => is_fresh(expression) || self.is_stateless_pattern(value),
            None => it.arguments.first().and_then(|first| first.as_expression()).is_some_and(is_fresh),
        };
        let mut inputs: Vec<(String, Value<'a>, Span)> = Vec::new();
        let mut scanned_from = it.span.start;
        if let Some((value, expression)) = &receiver {
            let span = expression.span();
            inputs.push((self.text(span).to_owned(), value.clone(), span));
            scanned_from = span.end;
        }
        for (value, span, _) in &given {
            if !matches!(value, Value::Function(_) | Value::Literal(_)) {
                inputs.push((self.text(*span).to_owned(), value.clone(), *span));
            }
        }
        inputs.extend(self.captured(&given, scanned_from));
        for (_, value, _) in &mut inputs {
            *value = self.frozen(value);
        }
        if self.quiet > 0 {
            let values: Vec<Value<'a>> = inputs.into_iter().map(|(_, value, _)| value).collect();
            return self.computed(it.span, &values);
        }
        let kind = DraftKind::Operation {
            name: operation.name,
            pure: operation.is_pure(fresh) && !changes_outside,
            inputs,
        };
        let node = self.node(Place::Operation, it.span, kind);
        self.result_of(node)
    }

    /// A regular expression that keeps no place between uses.
    fn is_stateless_pattern(&self, value: &Value<'a>) -> bool {
        let Value::Computed(span, _) = value else { return false };
        let text = self.text(*span);
        let flags = text.rsplit_once('/').filter(|_| text.starts_with('/')).map(|(_, flags)| flags);
        flags.is_some_and(|flags| {
            flags.chars().all(|flag| flag.is_ascii_lowercase() && !matches!(flag, 'g' | 'y'))
        })
    }

    /// What functions among the arguments take from around them.
    fn captured(&mut self, given: &[Given<'a>], from: u32) -> Vec<(String, Value<'a>, Span)> {
        let mut found: Vec<(String, Value<'a>, Span)> = Vec::new();
        for (value, span, _) in given {
            if !matches!(value, Value::Function(_)) || span.start < from {
                continue;
            }
            for mention in self.survey.named(span.start, span.end) {
                let (name, value) = match mention {
                    Mention::Variable(symbol) => {
                        let declared = self.scoping.symbol_span(symbol);
                        if span.contains_inclusive(declared) {
                            continue;
                        }
                        (self.scoping.symbol_name(symbol).to_owned(), self.read_symbol(symbol))
                    }
                    Mention::Arguments => ("args".to_owned(), Value::Parameter(Path::default())),
                    Mention::Root => continue,
                };
                let interesting = !matches!(value, Value::Function(_) | Value::Class(_) | Value::Unknown);
                if interesting && !found.iter().any(|(known, _, _)| *known == name) {
                    found.push((name, value, *span));
                }
            }
        }
        found
    }

    /// An operation whose callback reaches a tool: a loop.
    #[expect(clippy::too_many_arguments, reason = "one story, told once")]
    fn iterate(
        &mut self,
        operation: &'static Operation,
        subject: &Value<'a>,
        (function, at): (&Value<'a>, Span),
        over: Span,
        binds: Binds,
        start: Option<Value<'a>>,
        call: Span,
    ) -> Value<'a> {
        let span = match function {
            Value::Function(closure) => closure.code.span(),
            _ => at,
        };
        let head = Head { place: Place::Turn, span, over, form: LoopForm::Callback, exit: Exit::AtHead };
        let start = start.unwrap_or_else(|| self.part(subject, &Step::Any));
        let accumulator = (binds == Binds::Reduce).then(|| self.new_phi(start, None));
        let mut returned = Value::Undefined;
        self.repeat(&head, |walk, node| {
            let item = walk.item(subject, node);
            if let (Some(phi), Some(node)) = (accumulator, node) {
                walk.phis[phi as usize].node = Some(node);
            }
            let given = callback_arguments(binds, accumulator, &item, over);
            returned = walk.called_back(function, given, at);
            // A callback's own result only matters here when it is collected.
            walk.live = true;
        });
        self.waits_for(operation.name, &returned, call);
        if let Some(phi) = accumulator {
            let result = super::expression::settled(&returned);
            self.consume(&returned);
            self.feed(phi, &result);
            let pending = matches!(returned, Value::Promise(..))
                .then(|| self.pending(call, "`reduce`".to_owned(), AWAIT));
            let value = Value::Phi(phi, Path::default());
            return if pending.is_some() { Value::Promise(Rc::new(value), pending) } else { value };
        }
        self.collected_by(operation.name, subject, returned, call)
    }

    pub(super) fn called_back(&mut self, function: &Value<'a>, given: Vec<Given<'a>>, at: Span) -> Value<'a> {
        match function {
            Value::Function(closure) => self.follow(&Rc::clone(closure), given, None, None),
            Value::Tool(server, name) => {
                let target = Target::Tool { server: Rc::clone(server), name: Rc::clone(name) };
                self.handed_tool_call(target, given, at)
            }
            Value::Capability(name) => self.handed_tool_call(Target::Capability(Rc::clone(name)), given, at),
            Value::OneOf(functions) => self.one_of_calls(functions, &given, at),
            _ => Value::Unknown,
        }
    }

    /// A tool called by an operation it was handed to.
    fn handed_tool_call(&mut self, target: Target, given: Vec<Given<'a>>, at: Span) -> Value<'a> {
        let value = self.tool_call(target, given, at, at);
        if let Value::Promise(result, _) = &value
            && let Value::Result(node, _) = **result
            && let DraftKind::Call(call) = &mut self.nodes[node as usize].kind
        {
            call.as_value = true;
        }
        value
    }

    /// Operations that do not wait for their callback.
    fn waits_for(&mut self, name: &str, returned: &Value<'a>, call: Span) {
        if !matches!(returned, Value::Promise(..)) {
            return;
        }
        let (message, hint) = match name {
            "forEach" => (
                "`forEach` does not wait for its async callback".to_owned(),
                "use `for (const item of items) { … }`, or `await Promise.all(items.map(async item => { … }))`",
            ),
            "filter" | "some" | "every" | "find" | "findIndex" | "findLast" | "findLastIndex" | "sort" => (
                format!("`{name}` does not wait for its async callback; every promise counts as true"),
                "await the results first, for example with `Promise.all`, and then test them",
            ),
            _ => return,
        };
        self.consume(returned);
        self.complain(Severity::Warning, Code::NotAwaited, call, message, Some(hint.to_owned()));
    }

    fn collected_by(
        &mut self,
        name: &str,
        subject: &Value<'a>,
        returned: Value<'a>,
        call: Span,
    ) -> Value<'a> {
        match name {
            "forEach" => Value::Undefined,
            "map" | "flatMap" | "Array.from" | "Array.fromAsync" => {
                let mut record = Record { kind: Kind::Array, ..Record::default() };
                record.extra.push(returned);
                Value::Object(self.state.new_object(record))
            }
            "filter" | "sort" | "toSorted" => {
                let item = self.part(subject, &Step::Any);
                let mut record = Record { kind: Kind::Array, ..Record::default() };
                record.extra.push(item);
                Value::Object(self.state.new_object(record))
            }
            "find" | "findLast" => self.part(subject, &Step::Any),
            _ => {
                self.consume(&returned);
                let returned = super::expression::settled(&returned);
                self.computed(call, &[subject.clone(), returned])
            }
        }
    }

    /// A callback that reaches no tool may still change the program's variables.
    fn iterate_quietly(&mut self, closure: &Rc<Closure<'a>>, subject: &Value<'a>, binds: Binds, over: Span) {
        let head = Head {
            place: Place::Turn,
            span: closure.code.span(),
            over,
            form: LoopForm::Callback,
            exit: Exit::AtHead,
        };
        self.repeat(&head, |walk, _| {
            let item = walk.part(subject, &Step::Any);
            let given = callback_arguments(binds, None, &item, over);
            walk.follow(closure, given, None, None);
            walk.live = true;
        });
    }
}

const AWAIT: &str = "put `await` before it";

fn callback_arguments<'a>(
    binds: Binds,
    accumulator: Option<u32>,
    item: &Value<'a>,
    span: Span,
) -> Vec<Given<'a>> {
    let given = |value: &Value<'a>| (value.clone(), span, false);
    match binds {
        Binds::Reduce => {
            let accumulator = accumulator.map_or(Value::Unknown, |phi| Value::Phi(phi, Path::default()));
            vec![given(&accumulator), given(item)]
        }
        Binds::Compare => vec![given(item), given(item)],
        Binds::Each | Binds::Match | Binds::Member => vec![given(item)],
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
