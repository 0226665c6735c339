//! Operations whose callback reaches a tool: loops.

use std::rc::Rc;

use oxc_span::Span;
use pml_model::structure::{LoopForm, Step};
use smallvec::smallvec;

use super::Walker;
use super::arguments::CallArguments;
use super::memory::{PromiseOrigin, settled};
use super::parts::graph::DraftKind;
use super::repeat::{LoopExit, LoopHead};
use super::target::CallTarget;
use crate::analysis::{Code, Severity};
use crate::marks::ProbePlace;
use crate::operations::{CallbackParameters, Operation};
use crate::value::{Closure, MemberPath, ObjectRecord, RecordKind, Value};

impl<'a> Walker<'a, '_> {
    /// An operation whose callback reaches a tool: a loop.
    #[expect(clippy::too_many_arguments, reason = "one story, told once")]
    pub(super) fn iterate_callback(
        &mut self,
        operation: &'static Operation,
        subject: &Value<'a>,
        (function, at, name): (&Value<'a>, Span, Option<Span>),
        over: Span,
        binds: CallbackParameters,
        start: Option<Value<'a>>,
        call: Span,
    ) -> Value<'a> {
        let span = match function {
            Value::Function(closure) => closure.code.span(),
            _ => at,
        };
        let head = LoopHead {
            place: ProbePlace::Turn,
            span,
            over,
            form: LoopForm::Callback,
            exit: LoopExit::AtHead,
        };
        let start = start.unwrap_or_else(|| self.memory.part(subject, &Step::Any));
        let accumulator = (binds == CallbackParameters::Reduce).then(|| self.memory.new_phi(start, None));
        let mut returned = Value::Undefined;
        let handed = match (function, name) {
            (Value::Function(closure), Some(name)) => self.context_when_handed(closure, name),
            _ => None,
        };
        // The function itself reports its turns, in the context that it has.
        let outer = self.probes.context;
        self.probes.context = handed.unwrap_or(outer);
        self.walk_loop(&head, |walk, node| {
            let item = walk.loop_item(subject, node);
            if let (Some(phi), Some(node)) = (accumulator, node) {
                walk.memory.phis[phi as usize].node = Some(node);
            }
            let given = callback_arguments(binds, accumulator, &item, over);
            returned = match (function, handed) {
                (Value::Function(closure), Some(context)) => walk.follow_in(context, closure, given),
                _ => walk.call_callback(function, given, at),
            };
            // A callback's own result only matters here when it is collected.
            walk.flow.live = true;
        });
        self.probes.context = outer;
        self.complain_unless_waiting(operation.name, &returned, call);
        if let Some(phi) = accumulator {
            let result = settled(&returned);
            self.memory.mark_awaited(&returned);
            self.memory.feed_phi(phi, &result);
            let pending = matches!(returned, Value::Promise(..))
                .then(|| self.memory.add_promise(call, PromiseOrigin::Reduce));
            let value = Value::Phi(phi, MemberPath::default());
            return if pending.is_some() { Value::Promise(Rc::new(value), pending) } else { value };
        }
        self.iteration_result(operation.name, subject, returned, call)
    }

    pub(super) fn call_callback(
        &mut self,
        function: &Value<'a>,
        given: CallArguments<'a>,
        at: Span,
    ) -> Value<'a> {
        match function {
            Value::Function(closure) => self.follow_call(&Rc::clone(closure), given, None, None),
            Value::Tool(server, name) => {
                let target = CallTarget::Tool { server: Rc::clone(server), name: Rc::clone(name) };
                self.handed_tool_call(target, given, at)
            }
            Value::Capability(name) => {
                self.handed_tool_call(CallTarget::Capability(Rc::clone(name)), given, at)
            }
            Value::OneOf(functions) => self.call_one_of(functions, &given, at),
            _ => Value::Unknown,
        }
    }

    /// A tool called by an operation it was handed to.
    fn handed_tool_call(&mut self, target: CallTarget, given: CallArguments<'a>, at: Span) -> Value<'a> {
        let value = self.call_tool(target, given, at, at);
        if let Value::Promise(result, _) = &value
            && let Value::Result(node, _) = **result
            && let DraftKind::Call(call) = &mut self.graph.nodes[node as usize].kind
        {
            call.as_value = true;
        }
        value
    }

    /// Operations that do not wait for their callback.
    fn complain_unless_waiting(&mut self, name: &str, returned: &Value<'a>, call: Span) {
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
        self.memory.mark_awaited(returned);
        self.diagnostics.complain(Severity::Warning, Code::NotAwaited, call, message, Some(hint.to_owned()));
    }

    fn iteration_result(
        &mut self,
        name: &str,
        subject: &Value<'a>,
        returned: Value<'a>,
        call: Span,
    ) -> Value<'a> {
        match name {
            "forEach" => Value::Undefined,
            "map" | "flatMap" | "Array.from" | "Array.fromAsync" => {
                let mut record = ObjectRecord { kind: RecordKind::Array, ..ObjectRecord::default() };
                record.extra.push(returned);
                self.memory.allocate(record)
            }
            "filter" | "sort" | "toSorted" => {
                let item = self.memory.part(subject, &Step::Any);
                let mut record = ObjectRecord { kind: RecordKind::Array, ..ObjectRecord::default() };
                record.extra.push(item);
                self.memory.allocate(record)
            }
            "find" | "findLast" => self.memory.part(subject, &Step::Any),
            _ => {
                self.memory.mark_awaited(&returned);
                let returned = settled(&returned);
                self.memory.computed(call, &[subject.clone(), returned])
            }
        }
    }

    /// A callback that reaches no tool may still change the program's variables.
    pub(super) fn iterate_quietly(
        &mut self,
        closure: &Rc<Closure<'a>>,
        subject: &Value<'a>,
        binds: CallbackParameters,
        over: Span,
    ) {
        let head = LoopHead {
            place: ProbePlace::Turn,
            span: closure.code.span(),
            over,
            form: LoopForm::Callback,
            exit: LoopExit::AtHead,
        };
        self.walk_loop(&head, |walk, _| {
            let item = walk.memory.part(subject, &Step::Any);
            let given = callback_arguments(binds, None, &item, over);
            walk.follow_call(closure, given, None, None);
            walk.flow.live = true;
        });
    }
}

pub(super) fn callback_arguments<'a>(
    binds: CallbackParameters,
    accumulator: Option<u32>,
    item: &Value<'a>,
    span: Span,
) -> CallArguments<'a> {
    let given = |value: &Value<'a>| (value.clone(), span, false);
    match binds {
        CallbackParameters::Reduce => {
            let accumulator =
                accumulator.map_or(Value::Unknown, |phi| Value::Phi(phi, MemberPath::default()));
            smallvec![given(&accumulator), given(item)]
        }
        CallbackParameters::Compare => smallvec![given(item), given(item)],
        CallbackParameters::Each | CallbackParameters::Match | CallbackParameters::Member => {
            smallvec![given(item)]
        }
    }
}
