//! Operations whose callback reaches a tool: they are loops.

use std::rc::Rc;

use oxc_span::Span;
use pml_model::structure::{LoopForm, PathStep};
use smallvec::smallvec;

use super::Walker;
use super::arguments::CallArguments;
use super::memory::{PromiseOrigin, settled_value};
use super::parts::graph::DraftKind;
use super::repeat::{LoopExit, LoopHead};
use super::target::CallTarget;
use crate::analysis::{ComplaintCode, Severity};
use crate::marks::ProbePlace;
use crate::operations::{CallbackParameters, OperationSpec};
use crate::value::{AbstractValue, Closure, MemberPath, ObjectRecord, RecordKind};

impl<'a> Walker<'a, '_> {
    /// Walks an operation whose callback reaches a tool, as a loop.
    #[expect(clippy::too_many_arguments, reason = "one story, told once")]
    pub(super) fn iterate_callback(
        &mut self,
        operation: &'static OperationSpec,
        subject: &AbstractValue<'a>,
        (function, at, name): (&AbstractValue<'a>, Span, Option<Span>),
        over: Span,
        binds: CallbackParameters,
        start: Option<AbstractValue<'a>>,
        call: Span,
    ) -> AbstractValue<'a> {
        let span = match function {
            AbstractValue::Function(closure) => closure.code.span(),
            _ => at,
        };
        let head = LoopHead {
            place: ProbePlace::Turn,
            span,
            over,
            form: LoopForm::Callback,
            exit: LoopExit::AtHead,
        };
        let start = start.unwrap_or_else(|| self.memory.part(subject, &PathStep::Any));
        let accumulator = (binds == CallbackParameters::Reduce).then(|| self.memory.new_phi(start, None));
        let mut returned = AbstractValue::Undefined;
        let handed = match (function, name) {
            (AbstractValue::Function(closure), Some(name)) => self.context_when_handed(closure, name),
            _ => None,
        };
        // The function itself reports its turns, in its own context.
        let outer = self.probes.context;
        self.probes.context = handed.unwrap_or(outer);
        self.walk_loop(&head, |walk, node| {
            walk.note_turns(node, subject);
            let item = walk.loop_item(subject, node);
            if let (Some(phi), Some(node)) = (accumulator, node) {
                walk.memory.phis[phi as usize].node = Some(node);
            }
            let given = callback_arguments(binds, accumulator, &item, over);
            returned = match (function, handed) {
                (AbstractValue::Function(closure), Some(context)) => walk.follow_in(context, closure, given),
                _ => walk.call_callback(function, given, at),
            };
            // The callback's own result matters only when it is collected.
            walk.flow.live = true;
        });
        self.probes.context = outer;
        self.complain_unless_waiting(operation.name, &returned, call);
        if let Some(phi) = accumulator {
            let result = settled_value(&returned);
            self.memory.mark_awaited(&returned);
            self.memory.feed_phi(phi, &result);
            let pending = matches!(returned, AbstractValue::Promise(..))
                .then(|| self.memory.add_promise(call, PromiseOrigin::Reduce));
            let value = AbstractValue::Phi(phi, MemberPath::default());
            return if pending.is_some() { AbstractValue::Promise(Rc::new(value), pending) } else { value };
        }
        self.iteration_result(operation.name, subject, returned, call)
    }

    pub(super) fn call_callback(
        &mut self,
        function: &AbstractValue<'a>,
        given: CallArguments<'a>,
        at: Span,
    ) -> AbstractValue<'a> {
        match function {
            AbstractValue::Function(closure) => self.follow_call(&Rc::clone(closure), given, None, None),
            AbstractValue::Tool(server, name) => {
                let target = CallTarget::Tool { server: Rc::clone(server), name: Rc::clone(name) };
                self.handed_tool_call(target, given, at)
            }
            AbstractValue::Capability(name) => {
                self.handed_tool_call(CallTarget::Capability(Rc::clone(name)), given, at)
            }
            AbstractValue::OneOf(functions) => self.call_one_of(functions, &given, at),
            _ => AbstractValue::Unknown,
        }
    }

    /// A tool that is passed to an operation and called by it.
    fn handed_tool_call(
        &mut self,
        target: CallTarget,
        given: CallArguments<'a>,
        at: Span,
    ) -> AbstractValue<'a> {
        let value = self.call_tool(target, given, at, at);
        if let AbstractValue::Promise(result, _) = &value
            && let AbstractValue::Result(node, _) = **result
            && let DraftKind::Call(call) = &mut self.graph.nodes[node as usize].kind
        {
            call.as_value = true;
        }
        value
    }

    /// Complains about operations that do not await their callback.
    fn complain_unless_waiting(&mut self, name: &str, returned: &AbstractValue<'a>, call: Span) {
        if !matches!(returned, AbstractValue::Promise(..)) {
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
        self.diagnostics.complain(
            Severity::Warning,
            ComplaintCode::NotAwaited,
            call,
            message,
            Some(hint.to_owned()),
        );
    }

    fn iteration_result(
        &mut self,
        name: &str,
        subject: &AbstractValue<'a>,
        returned: AbstractValue<'a>,
        call: Span,
    ) -> AbstractValue<'a> {
        match name {
            "forEach" => AbstractValue::Undefined,
            "map" | "flatMap" | "Array.from" | "Array.fromAsync" => {
                let mut record = ObjectRecord { kind: RecordKind::Array, ..ObjectRecord::default() };
                record.extra.push(returned);
                self.memory.allocate(record)
            }
            "filter" | "sort" | "toSorted" => {
                let item = self.memory.part(subject, &PathStep::Any);
                let mut record = ObjectRecord { kind: RecordKind::Array, ..ObjectRecord::default() };
                record.extra.push(item);
                self.memory.allocate(record)
            }
            "find" | "findLast" => self.memory.part(subject, &PathStep::Any),
            _ => {
                self.memory.mark_awaited(&returned);
                let returned = settled_value(&returned);
                self.memory.computed(call, &[subject.clone(), returned])
            }
        }
    }

    /// Walks a callback that reaches no tool but may change the program's variables.
    pub(super) fn iterate_quietly(
        &mut self,
        closure: &Rc<Closure<'a>>,
        subject: &AbstractValue<'a>,
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
            let item = walk.memory.part(subject, &PathStep::Any);
            let given = callback_arguments(binds, None, &item, over);
            walk.follow_call(closure, given, None, None);
            walk.flow.live = true;
        });
    }
}

pub(super) fn callback_arguments<'a>(
    binds: CallbackParameters,
    accumulator: Option<u32>,
    item: &AbstractValue<'a>,
    span: Span,
) -> CallArguments<'a> {
    let given = |value: &AbstractValue<'a>| (value.clone(), span, false);
    match binds {
        CallbackParameters::Reduce => {
            let accumulator = accumulator
                .map_or(AbstractValue::Unknown, |phi| AbstractValue::Phi(phi, MemberPath::default()));
            smallvec![given(&accumulator), given(item)]
        }
        CallbackParameters::Compare => smallvec![given(item), given(item)],
        CallbackParameters::Each | CallbackParameters::Match | CallbackParameters::Member => {
            smallvec![given(item)]
        }
    }
}
