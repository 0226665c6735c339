//! Observes the capabilities that are tasks of a DAG or are called by them.
//!
//! Each task that is a program has its own worker, which numbers its calls itself. A finished task is not replayed when
//! the run is resumed: its calls are in the journal beside its end.

use pml_model::structure::{NodeId, NodeKind};
use pml_sandbox::WorkerEvent;
use serde_json::value::RawValue;

use super::turns::turn_at;
use super::{ObservedCall, Observer, outer};
use crate::execute::delivery::{CallFailure, RunDelivery};
use crate::execute::frames::{FrameRecord, FrameStart, RootFrame, StartedTask, ToolCall};
use crate::execute::issued_call::IssuedCall;
use crate::execute::journal::History;
use crate::report::{CallReport, RunFailure, TaskStatus};
use crate::trace::{CallEnding, CallRef, TurnTime};

impl Observer {
    /// Restores what was recorded of a run that is not replayed.
    pub(in crate::execute) fn restore(&mut self, history: &History) {
        for (index, call) in history.calls.iter().enumerate() {
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let node = outer(call.node.as_deref());
            let report = self.new_report(number, 0, node, &call.tool, call.issued_at);
            self.take_on(ObservedCall::new(report, call.node.clone(), None, 0));
        }
        let given: Vec<i64> = history.deliveries.iter().map(|(at, _)| *at).collect();
        for (_, what) in &history.deliveries {
            if let RunDelivery::Frame { frame, called, .. } = what {
                called.iter().for_each(|kept| self.take_up(*frame, kept, &given));
            }
        }
        self.record(history);
    }

    /// Takes in the recorded deliveries, with each call at the point where it was issued.
    fn record(&mut self, history: &History) {
        let mut calls = history.calls.iter().zip(1..).peekable();
        let mut asked = |observer: &mut Observer, until: i64| {
            while let Some((call, number)) = calls.next_if(|(call, _)| call.issued_at <= until) {
                let when = observer.turns.after_all(call.issued_at);
                if observer.calls.frame_of(number) == 0 {
                    let node = outer(call.node.as_deref());
                    observer.recorder.record_call(
                        CallRef::Call(number),
                        node,
                        &call.tool,
                        &call.arguments,
                        when,
                    );
                }
            }
        };
        for (at, what) in &history.deliveries {
            asked(self, *at);
            self.on_delivery(what, *at);
        }
        asked(self, i64::MAX);
    }

    fn take_up(&mut self, task: u32, kept: &FrameRecord, given: &[i64]) {
        let turn = |at: i64| TurnTime { turn: turn_at(given, at), at };
        let number = self.frames.restore(&self.plan, &mut self.recorder, task, kept, turn);
        let name = self.frames.get(number).and_then(|frame| frame.planned_capability(&self.plan));
        let name = name.map(|nested| nested.name.clone());
        for call in &kept.calls {
            if let Some(call) = self.calls.get_mut(*call) {
                call.made_by = number;
                call.report.capability.clone_from(&name);
            }
        }
    }

    /// The capability calls of the task that ends, for the journal.
    pub(in crate::execute) fn frame_records_of(&self, task: u32) -> Vec<FrameRecord> {
        self.frames.records_of_task(task, |number| self.calls.made_by(number))
    }

    /// Handles the start of a task that is a capability.
    pub(in crate::execute) fn on_task_start(&mut self, begun: &StartedTask) {
        let began = FrameStart {
            caller: (begun.frame, 0),
            parent: None,
            nested_index: begun.place,
            point: 0,
            context: 0,
            arguments: begun.arguments.get(),
            after: 0,
        };
        let when = self.turns.at(begun.at);
        let (node, line) = (Some(begun.node), self.line_of_node(begun.node));
        let mut root = RootFrame { node, line, recorder: &mut self.recorder };
        self.frames.on_start(&self.plan, &mut root, &began, when);
    }

    /// Handles the end of a task's program.
    pub(super) fn on_task_end(&mut self, what: &RunDelivery, when: TurnTime) {
        let RunDelivery::Frame { frame, value, error, .. } = what else { return };
        self.operation_ended(*frame, value.as_deref(), error.as_ref(), when);
        let end = match (value, error) {
            (Some(value), _) => Ok(value.clone()),
            (None, Some(CallFailure { code, message, .. })) => Err(RunFailure::new(*code, message.clone())),
            (None, None) => return,
        };
        self.frames.set_end(&mut self.recorder, self.frames.number((*frame, 0)), end, when);
    }

    /// Handles the end of a task that is a pure operation.
    fn operation_ended(
        &mut self,
        frame: u32,
        value: Option<&RawValue>,
        error: Option<&CallFailure>,
        when: TurnTime,
    ) {
        let tasks = self.plan.dag().map(|dag| dag.tasks.as_slice()).unwrap_or_default();
        let Some(task) = (frame as usize).checked_sub(1).and_then(|place| tasks.get(place)) else { return };
        let kind = self.plan.structure.node(task.node).map(|node| &node.kind);
        let Some(NodeKind::Task { tool, pure: true, .. }) = kind else { return };
        let ended = match (value, error) {
            (Some(value), _) => CallEnding::Result { value, saved_ms: None, age_ms: None },
            (None, Some(CallFailure { code, message, data, .. })) => {
                CallEnding::Error { code: code.as_str(), message, data: data.as_deref() }
            }
            (None, None) => return,
        };
        let after: Vec<NodeId> =
            task.after.iter().filter_map(|place| Some(tasks.get(*place)?.node)).collect();
        self.recorder.record_operation_task(task.node, tool, &after, &ended, when);
    }

    /// Handles an event from the program of a task at the time `at`.
    pub(in crate::execute) fn on_task_event(&mut self, task: u32, node: NodeId, seen: &WorkerEvent, at: i64) {
        let number = |inner: u32| self.frames.number((task, inner));
        match seen {
            // A capability that is a task has a name already; its own hint does not name the DAG.
            WorkerEvent::Hint { .. } if number(0) != 0 => {}
            WorkerEvent::Reached { frame, places } => self.frames.reached(number(*frame), places),
            WorkerEvent::Operation { .. } => self.see_operation(task, seen, at),
            WorkerEvent::Console { frame, level, text } => self.print(number(*frame), *level, text, at),
            WorkerEvent::FrameBegan { frame, parent, nested, point, context, arguments } => {
                let began = FrameStart {
                    caller: (task, *frame),
                    parent: Some((task, *parent)),
                    nested_index: *nested,
                    point: *point,
                    context: *context,
                    arguments,
                    after: self.asked.get(&task).copied().unwrap_or(0),
                };
                let when = self.turns.at(at);
                let line = self.line_of_node(node);
                let mut root = RootFrame { node: Some(node), line, recorder: &mut self.recorder };
                self.frames.on_start(&self.plan, &mut root, &began, when);
            }
            WorkerEvent::FrameEnded { frame, end } => {
                let (number, when) = (number(*frame), self.turns.at(at));
                self.frames.on_end(&self.plan, &mut self.recorder, number, end, when);
            }
            other => self.on_event(other, at),
        }
    }

    /// Handles a call request from the program of a task; the call may be recorded already.
    pub(in crate::execute) fn on_task_call_request(&mut self, issued: &IssuedCall) {
        let Some(within) = issued.task_site else { return };
        self.asked.insert(issued.frame, within.order);
        let number = self.frames.number((issued.frame, within.frame));
        // A new call is reported when it is recorded.
        let Some(call) = self.calls.get_mut(issued.call).filter(|call| number != 0 && call.made_by == 0)
        else {
            return;
        };
        let tool = self.plan.tools[issued.handle as usize].id.to_string();
        self.frames.adopt_call(number, &tool_call(issued, &tool), &mut self.recorder);
        call.made_by = number;
        let name = self.frames.get(number).and_then(|frame| frame.planned_capability(&self.plan));
        call.report.capability = name.map(|nested| nested.name.clone());
    }

    /// Handles a call that a task of a DAG issues.
    pub(in crate::execute) fn on_task_call(&mut self, issued: &IssuedCall, at: i64) {
        let node = outer(issued.node.as_deref());
        let tool = self.plan.tools[issued.handle as usize].id.to_string();
        let number = issued.task_site.map_or(0, |within| self.frames.number((issued.frame, within.frame)));
        let when = self.turns.after_all(at);
        let line = match self.frames.on_call(number, &tool_call(issued, &tool), when) {
            Some(place) => place.line,
            None => {
                self.recorder.record_call(CallRef::Call(issued.call), node, &tool, &issued.arguments, when);
                node.and_then(|node| self.line_of_node(node))
            }
        };
        let report = self.new_report(issued.call, number, node, &tool, at);
        self.take_on(ObservedCall::new(report, issued.node.clone(), line, number));
    }

    /// Adds one call.
    fn take_on(&mut self, call: ObservedCall) {
        self.progress.calls += 1;
        self.calls.push(call);
    }

    /// The report of a call that has just been issued.
    fn new_report(
        &self,
        call: u32,
        made_by: u32,
        node_id: Option<NodeId>,
        tool: &str,
        at: i64,
    ) -> CallReport {
        let called = self.frames.get(made_by).and_then(|frame| frame.planned_capability(&self.plan));
        let capability = called.map(|nested| nested.name.clone()).or_else(|| self.capability_at(node_id));
        CallReport {
            call,
            node_id,
            task_id: None,
            capability,
            tool: tool.to_owned(),
            status: TaskStatus::Cancelled,
            result_preview: None,
            result_size: None,
            issued_at: at,
            execution_time_ms: None,
            speculated: false,
            saved_ms: None,
            age_ms: None,
            not_ahead: None,
        }
    }

    fn line_of_node(&self, node: NodeId) -> Option<u32> {
        self.plan.structure.node(node).map(|node| node.at.line)
    }
}

fn tool_call<'c>(issued: &'c IssuedCall, tool: &'c str) -> ToolCall<'c> {
    let (order, point, context) =
        issued.task_site.map_or((0, 0, 0), |within| (within.order, within.point, within.context));
    ToolCall { call: issued.call, order, point, context, tool, arguments: &issued.arguments }
}
