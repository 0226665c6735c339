//! Calls: of tools, of capabilities, of local functions and of unknown ones.

use std::rc::Rc;

use oxc_ast::ast::{Argument, CallExpression, Expression};
use oxc_span::{GetSpan, Span};
use pml_model::structure::PathStep;

use super::Walker;
use super::arguments::{CallArgument, CallArguments};
use super::memory::PromiseOrigin;
use super::parts::graph::{CallDraft, DraftKind};
use super::places::step_of;
use super::syntax::plain;
use super::target::CallTarget;
use crate::analysis::{ComplaintCode, Severity};
use crate::budget::VisitedParts;
use crate::marks::ProbePlace;
use crate::value::{AbstractValue, Closure, RecordKind, one_of};

impl<'a> Walker<'a, '_> {
    pub(super) fn call(&mut self, it: &'a CallExpression<'a>) -> AbstractValue<'a> {
        let callee = plain(&it.callee);
        if let Expression::Super(_) = callee {
            return self.super_call(it);
        }
        match callee {
            Expression::StaticMemberExpression(member) => {
                if let Expression::Super(_) = &member.object {
                    return self.super_method(it, &member.property.name);
                }
                let object = self.evaluate_raw(&member.object);
                let object = self.optional_link(member.optional, member.span, &member.object, object);
                let key = self.keys.take(&member.property.name);
                let value = self.method_call(it, object, &member.object, &key, member.property.span);
                self.keys.put_back(key);
                value
            }
            Expression::PrivateFieldExpression(member) => {
                let object = self.evaluate_raw(&member.object);
                let object = self.optional_link(member.optional, member.span, &member.object, object);
                let key = PathStep::Key(format!("#{}", member.field.name));
                self.method_call(it, object, &member.object, &key, member.field.span)
            }
            Expression::ComputedMemberExpression(member) => {
                let object = self.evaluate_raw(&member.object);
                let object = self.optional_link(member.optional, member.span, &member.object, object);
                let key = self.evaluate_key(&object, &member.expression);
                match step_of(&key) {
                    Some(step) => {
                        self.method_call(it, object, &member.object, &step, member.expression.span())
                    }
                    None if self.memory.can_reach_tool(&object, 0) => {
                        match self.function_table(it, member, &object) {
                            Some(table) => self.call_from_table(it, member, &key, &table),
                            None => {
                                let function = self.any_member(&object);
                                let function = self.optional_link(it.optional, it.span, &it.callee, function);
                                self.call_value(it, function)
                            }
                        }
                    }
                    None => {
                        let function =
                            self.read_computed_member(object, &key, member.expression.span(), member.span);
                        let function = self.optional_link(it.optional, it.span, &it.callee, function);
                        self.call_value(it, function)
                    }
                }
            }
            other => {
                let function = self.evaluate_raw(other);
                let function = self.optional_link(it.optional, it.span, &it.callee, function);
                self.call_value(it, function)
            }
        }
    }

    pub(super) fn evaluate_arguments(&mut self, list: &'a [Argument<'a>]) -> CallArguments<'a> {
        let mut given = CallArguments::with_capacity(list.len());
        for argument in list {
            match argument {
                Argument::SpreadElement(spread) => {
                    let value = self.evaluate(&spread.argument);
                    given.push((value, spread.span, true));
                }
                other => {
                    if let Some(expression) = other.as_expression() {
                        let value = self.evaluate(expression);
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
        object: AbstractValue<'a>,
        object_expression: &'a Expression<'a>,
        key: &PathStep,
        key_span: Span,
    ) -> AbstractValue<'a> {
        let name = match key {
            PathStep::Key(name) => name.as_str(),
            PathStep::Index(_) | PathStep::Any => "",
        };
        if it.optional && !matches!(object, AbstractValue::Server(_) | AbstractValue::Capabilities) {
            self.optional_link(true, it.span, &it.callee, object.clone());
        }
        if name == "constructor" && !matches!(object, AbstractValue::Object(_)) {
            self.permissions
                .note_opaque(it.span, "`constructor` is called, which can make functions from text");
        }
        match &object {
            AbstractValue::Server(_) | AbstractValue::Capabilities => {
                let callee = self.read_member(object.clone(), key, key_span, it.callee.span());
                let callee = self.optional_link(it.optional, it.span, &it.callee, callee);
                self.call_value(it, callee)
            }
            AbstractValue::Mcp => {
                self.evaluate_arguments(&it.arguments);
                self.diagnostics.complain(
                    Severity::Error,
                    ComplaintCode::UnknownTool,
                    it.callee.span(),
                    format!("`mcp.{name}` is a server, not a tool"),
                    Some(format!("call one of its tools: `mcp.{name}.tool({{ … }})`")),
                );
                AbstractValue::Unknown
            }
            AbstractValue::Tool(..) | AbstractValue::Capability(_) => {
                self.call_tool_method(it, &object, name)
            }
            AbstractValue::Function(closure) if matches!(name, "call" | "apply" | "bind") => {
                self.call_function_method(it, &Rc::clone(closure), name)
            }
            AbstractValue::Global(global) => {
                let global: Rc<str> = if &**global == "globalThis" {
                    let member = self.read_member(object.clone(), key, key_span, it.callee.span());
                    return self.call_value(it, member);
                } else {
                    format!("{global}.{name}").into()
                };
                self.global_call(it, &global)
            }
            AbstractValue::Object(_) | AbstractValue::Class(_) => {
                self.call_own_method(it, object, object_expression, key, key_span)
            }
            _ if matches!(name, "then" | "catch" | "finally") => self.promise_method(it, &object, name),
            _ => match self.functions_behind(&object, key) {
                Some(function) => self.call_value(it, function),
                None => self.operation_call(it, object, object_expression, key, key_span),
            },
        }
    }

    /// Calls a method of an object or class of the program.
    fn call_own_method(
        &mut self,
        it: &'a CallExpression<'a>,
        object: AbstractValue<'a>,
        object_expression: &'a Expression<'a>,
        key: &PathStep,
        key_span: Span,
    ) -> AbstractValue<'a> {
        let method = match &object {
            AbstractValue::Object(index) if self.is_plain_method(*index, key) => None,
            _ => Some(self.read_member(object.clone(), key, key_span, it.callee.span())),
        };
        match method {
            Some(AbstractValue::Function(closure)) => {
                let given = self.evaluate_arguments(&it.arguments);
                self.follow_call(&closure, given, Some(it.span), Some(object))
            }
            Some(
                callable @ (AbstractValue::Tool(..)
                | AbstractValue::Capability(_)
                | AbstractValue::OneOf(_)
                | AbstractValue::Item(..)),
            ) => self.call_value(it, callable),
            _ => self.operation_call(it, object, object_expression, key, key_span),
        }
    }

    /// Whether the program defines nothing under that name.
    fn is_plain_method(&self, object: u32, key: &PathStep) -> bool {
        let record = self.memory.state.object(object);
        let may_be_own = match record.kind {
            RecordKind::Instance(_) => true,
            RecordKind::Object => record.extra.iter().any(|value| self.memory.can_reach_tool(value, 0)),
            RecordKind::Array | RecordKind::Collection => false,
        };
        record.field(key).is_none() && !may_be_own
    }

    /// Calls the value of a variable or expression.
    pub(super) fn call_value(
        &mut self,
        it: &'a CallExpression<'a>,
        function: AbstractValue<'a>,
    ) -> AbstractValue<'a> {
        match function {
            AbstractValue::Tool(server, name) => {
                let given = self.evaluate_arguments(&it.arguments);
                self.call_tool(CallTarget::Tool { server, name }, given, it.span, it.span)
            }
            AbstractValue::Capability(name) => {
                let given = self.evaluate_arguments(&it.arguments);
                self.call_tool(CallTarget::Capability(name), given, it.span, it.span)
            }
            AbstractValue::Function(closure) => {
                let given = self.evaluate_arguments(&it.arguments);
                self.follow_call(&closure, given, Some(it.span), None)
            }
            AbstractValue::Global(name) => self.global_call(it, &name),
            AbstractValue::OneOf(functions) => {
                let given = self.evaluate_arguments(&it.arguments);
                self.call_one_of(&functions, &given, it.span)
            }
            AbstractValue::Item(of, _, path)
                if path.steps().is_empty() && self.memory.can_reach_tool(&of, 0) =>
            {
                let given = self.evaluate_arguments(&it.arguments);
                match self.memory.part(&of, &PathStep::Any) {
                    AbstractValue::OneOf(functions) => self.call_one_of(&functions, &given, it.span),
                    one => self.call_one_of(&[one], &given, it.span),
                }
            }
            AbstractValue::Mcp | AbstractValue::Server(_) | AbstractValue::Capabilities => {
                self.evaluate_arguments(&it.arguments);
                self.note_escape(function, it.callee.span())
            }
            other => {
                let given = self.evaluate_arguments(&it.arguments);
                self.call_unknown(it.span, &[other], &given)
            }
        }
    }

    /// Calls one of several functions; which one is known only at run time.
    pub(super) fn call_one_of(
        &mut self,
        functions: &[AbstractValue<'a>],
        given: &[CallArgument<'a>],
        span: Span,
    ) -> AbstractValue<'a> {
        let before = self.flow.frontier.clone();
        let mark = self.memory.state.mark();
        let mut ways = Vec::new();
        let mut results = Vec::new();
        for function in functions {
            self.flow.frontier.clone_from(&before);
            let Some(result) = self.call_alternative(function, given, span, results.len() as u32) else {
                continue;
            };
            results.push(result);
            ways.extend(self.flow.end_arm(&mut self.memory.state, mark));
        }
        if ways.is_empty() {
            return self.call_unknown(span, functions, given);
        }
        self.flow.rejoin(&mut self.memory.state, ways);
        one_of(results)
    }

    /// Calls the `variant`th of several functions; does nothing if it is none.
    pub(super) fn call_alternative(
        &mut self,
        function: &AbstractValue<'a>,
        given: &[CallArgument<'a>],
        span: Span,
        variant: u32,
    ) -> Option<AbstractValue<'a>> {
        let target = match function {
            AbstractValue::Function(closure) => {
                return Some(self.follow_call(&Rc::clone(closure), given.into(), Some(span), None));
            }
            AbstractValue::Tool(server, name) => {
                CallTarget::Tool { server: Rc::clone(server), name: Rc::clone(name) }
            }
            AbstractValue::Capability(name) => CallTarget::Capability(Rc::clone(name)),
            AbstractValue::Undefined
            | AbstractValue::Unknown
            | AbstractValue::Result(..)
            | AbstractValue::Parameter(_)
            | AbstractValue::Literal(_) => {
                return None;
            }
            other => return Some(self.call_unknown(span, std::slice::from_ref(other), given)),
        };
        self.probes.variant = variant;
        let result = self.call_tool(target, given.into(), span, span);
        self.probes.variant = 0;
        Some(result)
    }

    /// A call of something unknown, neither of the program nor an operation: functions passed to it may be called.
    pub(super) fn call_unknown(
        &mut self,
        span: Span,
        callee: &[AbstractValue<'a>],
        given: &[CallArgument<'a>],
    ) -> AbstractValue<'a> {
        let mut values = callee.to_vec();
        for (value, _, _) in given {
            self.memory.mark_awaited(value);
            self.escape(value, 0);
            values.push(value.clone());
        }
        self.memory.computed(span, &values)
    }

    /// A function that unknown code may call, any number of times.
    pub(super) fn escape(&mut self, value: &AbstractValue<'a>, depth: u32) {
        match value {
            AbstractValue::Function(closure) => {
                let before = self.flow.frontier.clone();
                let mark = self.memory.state.mark();
                let closure = Rc::clone(closure);
                let given = self.follow_call(&closure, CallArguments::new(), None, None);
                self.memory.mark_awaited(&given);
                self.flow.end_optional_arm(&mut self.memory.state, mark, before);
            }
            AbstractValue::Object(index) if depth < 3 => {
                let record = Rc::clone(self.memory.state.object(*index));
                for member in &record.fields {
                    if self.memory.can_reach_tool(&member.value, 0) {
                        self.escape(&member.value, depth + 1);
                    }
                }
                record.extra.iter().for_each(|value| self.escape(value, depth + 1));
            }
            AbstractValue::Tool(..) | AbstractValue::Capability(_) => {
                let at = self.permissions.tool_span(value);
                self.hand_on_tool(value, at);
            }
            AbstractValue::OneOf(values) if depth < 3 => {
                values.iter().for_each(|value| self.escape(value, depth + 1));
            }
            _ => {}
        }
    }

    /// A call of a tool or capability.
    pub(super) fn call_tool(
        &mut self,
        target: CallTarget,
        given: CallArguments<'a>,
        span: Span,
        at: Span,
    ) -> AbstractValue<'a> {
        if self.recording.ends_trial() {
            return AbstractValue::Unknown;
        }
        if let Some((_, extra, _)) = given.get(1) {
            self.diagnostics.complain(
                Severity::Warning,
                ComplaintCode::UnknownArgument,
                *extra,
                "a tool takes one object; further arguments are ignored",
                Some("put it into the object".to_owned()),
            );
        }
        let arguments = match given.into_iter().next() {
            None => AbstractValue::Undefined,
            Some((value, span, true)) => {
                let first = self.memory.part(&value, &PathStep::Index(0));
                self.memory.computed(span, &[first])
            }
            Some((value, span, false)) => {
                self.complain_of_unawaited_inside(&value, span, 0, &mut VisitedParts::default());
                self.memory.freeze(&value)
            }
        };
        self.permissions.declare(&target, at, &mut self.diagnostics);
        let what = PromiseOrigin::Call(target.clone());
        let call = CallDraft { target, arguments, span, as_value: false };
        let node = self.node(ProbePlace::Call, span, DraftKind::Call(call));
        let pending = self.memory.add_promise(span, what);
        AbstractValue::Promise(Rc::new(super::result_of(node)), Some(pending))
    }

    /// Complains about promises in the arguments of a tool, which needs their values.
    fn complain_of_unawaited_inside(
        &mut self,
        value: &AbstractValue<'a>,
        span: Span,
        depth: u32,
        seen: &mut VisitedParts,
    ) {
        self.complain_if_unawaited(value, span, "is passed to a tool");
        if let (AbstractValue::Object(index), true) = (value, depth < 4)
            && seen.is_first_visit(*index as usize, depth as usize)
        {
            let record = Rc::clone(self.memory.state.object(*index));
            self.memory.budget().spend(record.size() / 4);
            for member in &record.fields {
                self.complain_of_unawaited_inside(&member.value, member.span, depth + 1, seen);
            }
        }
    }

    /// A tool passed on as a value: it may be called with anything.
    pub(super) fn hand_on_tool(&mut self, tool: &AbstractValue<'a>, span: Span) {
        let target = match tool {
            AbstractValue::Tool(server, name) => {
                CallTarget::Tool { server: Rc::clone(server), name: Rc::clone(name) }
            }
            AbstractValue::Capability(name) => CallTarget::Capability(Rc::clone(name)),
            _ => return,
        };
        self.permissions.declare(&target, span, &mut self.diagnostics);
        let arguments = self.memory.computed(span, &[]);
        self.node(
            ProbePlace::Call,
            span,
            DraftKind::Call(CallDraft { target, arguments, span, as_value: true }),
        );
    }

    /// `tool.call(…)`, `tool.apply(…)`, `tool.bind(…)`.
    fn call_tool_method(
        &mut self,
        it: &'a CallExpression<'a>,
        tool: &AbstractValue<'a>,
        name: &str,
    ) -> AbstractValue<'a> {
        let mut given = self.evaluate_arguments(&it.arguments);
        let target = match tool {
            AbstractValue::Tool(server, name) => {
                CallTarget::Tool { server: Rc::clone(server), name: Rc::clone(name) }
            }
            AbstractValue::Capability(name) => CallTarget::Capability(Rc::clone(name)),
            _ => return AbstractValue::Unknown,
        };
        match name {
            "call" => {
                given.drain(..given.len().min(1));
                self.call_tool(target, given, it.span, it.span)
            }
            "apply" => {
                let list = given.into_iter().nth(1);
                let first =
                    list.map(|(list, span, _)| (self.memory.part(&list, &PathStep::Index(0)), span, false));
                self.call_tool(target, first.into_iter().collect(), it.span, it.span)
            }
            "bind" if given.len() <= 1 => tool.clone(),
            _ => {
                self.hand_on_tool(tool, it.callee.span());
                AbstractValue::Unknown
            }
        }
    }

    fn call_function_method(
        &mut self,
        it: &'a CallExpression<'a>,
        closure: &Rc<Closure<'a>>,
        name: &str,
    ) -> AbstractValue<'a> {
        let mut given = self.evaluate_arguments(&it.arguments);
        let this = given.first().map(|(value, _, _)| value.clone());
        given.drain(..given.len().min(1));
        match name {
            "call" => self.follow_call(closure, given, Some(it.span), this),
            "apply" => {
                let spread = given.into_iter().take(1).map(|(list, span, _)| (list, span, true)).collect();
                self.follow_call(closure, spread, Some(it.span), this)
            }
            _ if given.is_empty() => AbstractValue::Function(Rc::new(Closure {
                code: closure.code,
                function: closure.function,
                outer: Rc::clone(&closure.outer),
                context: closure.context,
                this: this.or_else(|| closure.this.clone()),
                class: closure.class.clone(),
            })),
            _ => {
                self.escape(&AbstractValue::Function(Rc::clone(closure)), 0);
                AbstractValue::Unknown
            }
        }
    }
}
