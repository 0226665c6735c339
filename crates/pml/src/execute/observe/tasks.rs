//! Capabilities that the tasks of a DAG are or call.
//!
//! Each task that is a program has a worker of its own, which numbers what it calls for itself. One that has ended is not
//! gone through again when the run is taken up: what it called stands in the journal beside its end.

use pml_model::structure::{NodeId, NodeKind};
use pml_sandbox::Event as Seen;
use serde_json::value::RawValue;

use super::{Observer, outer};
use crate::execute::dag::Begun;
use crate::execute::frames::{Began, Kept, Root, ToolCall};
use crate::execute::journal::{CallError, Delivered, History};
use crate::execute::report::{Failure, Task, TaskStatus};
use crate::execute::run::Issued;
use crate::trace::{Ended, When, Which};

impl Observer {
    /// Takes in what was recorded of a run that is not gone through again.
    pub(in crate::execute) fn remember(&mut self, history: &History) {
        for (index, call) in history.calls.iter().enumerate() {
            let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
            let node = outer(call.node.as_deref());
            self.nodes.push(call.node.clone());
            self.take_on(number, 0, node, &call.tool, call.at);
            self.lines.push(None);
        }
        let given: Vec<i64> = history.deliveries.iter().map(|(at, _)| *at).collect();
        for (_, what) in &history.deliveries {
            if let Delivered::Frame { frame, called, .. } = what {
                called.iter().for_each(|kept| self.take_up(*frame, kept, &given));
            }
        }
        self.record(history);
    }

    /// Takes in what was given, with each call where it was asked for.
    fn record(&mut self, history: &History) {
        let mut calls = history.calls.iter().zip(1..).peekable();
        let mut asked = |observer: &mut Observer, until: i64| {
            while let Some((call, number)) = calls.next_if(|(call, _)| call.at <= until) {
                let when = When { turn: observer.deliveries, at: call.at };
                if observer.frame_of(number) == 0 {
                    let node = outer(call.node.as_deref());
                    observer.recorder.issued(Which::Call(number), node, &call.tool, &call.arguments, when);
                }
            }
        };
        for (at, what) in &history.deliveries {
            asked(self, *at);
            self.delivered(what, *at);
        }
        asked(self, i64::MAX);
    }

    fn take_up(&mut self, task: u32, kept: &Kept, given: &[i64]) {
        let turn = |at: i64| When { turn: turn_at(given, at), at };
        let number = self.frames.take_up(&self.plan, &mut self.recorder, task, kept, turn);
        let name = self.frames.get(number).and_then(|frame| frame.nested(&self.plan));
        let name = name.map(|nested| nested.name.clone());
        for index in kept.calls.iter().filter_map(|call| (*call as usize).checked_sub(1)) {
            if let (Some(by), Some(task)) = (self.made_by.get_mut(index), self.tasks.get_mut(index)) {
                *by = number;
                task.capability.clone_from(&name);
            }
        }
    }

    /// What the task that ends called, for the journal.
    pub(in crate::execute) fn called_by(&self, task: u32) -> Vec<Kept> {
        self.frames.kept(task, |number| {
            let made = (1..).zip(&self.made_by).filter(|(_, by)| **by == number);
            made.map(|(call, _)| call).collect()
        })
    }

    /// A capability begins as a task.
    pub(in crate::execute) fn task_began(&mut self, begun: &Begun) {
        let began = Began {
            caller: (begun.frame, 0),
            parent: None,
            place: begun.place,
            point: 0,
            context: 0,
            arguments: begun.arguments.get(),
            after: 0,
        };
        let when = self.when(begun.at);
        let (node, line) = (Some(begun.node), self.line_of_node(begun.node));
        let mut root = Root { node, line, recorder: &mut self.recorder };
        self.frames.began(&self.plan, &mut root, &began, when);
    }

    /// The program of a task has ended.
    pub(super) fn task_ended(&mut self, what: &Delivered, when: When) {
        let Delivered::Frame { frame, value, error, .. } = what else { return };
        self.operation_ended(*frame, value.as_deref(), error.as_ref(), when);
        let end = match (value, error) {
            (Some(value), _) => Ok(value.clone()),
            (None, Some(CallError { code, message, .. })) => Err(Failure::new(code, message.clone())),
            (None, None) => return,
        };
        self.frames.came_to(&mut self.recorder, self.frames.number((*frame, 0)), end, when);
    }

    /// A task that is a pure operation has ended.
    fn operation_ended(
        &mut self,
        frame: u32,
        value: Option<&RawValue>,
        error: Option<&CallError>,
        when: When,
    ) {
        let tasks = self.plan.dag().map(|dag| dag.tasks.as_slice()).unwrap_or_default();
        let Some(task) = (frame as usize).checked_sub(1).and_then(|place| tasks.get(place)) else { return };
        let kind = self.plan.structure.node(task.node).map(|node| &node.kind);
        let Some(NodeKind::Task { tool, pure: true, .. }) = kind else { return };
        let ended = match (value, error) {
            (Some(value), _) => Ended::Result(value),
            (None, Some(CallError { code, message, data, .. })) => {
                Ended::Error { code, message, data: data.as_deref() }
            }
            (None, None) => return,
        };
        let after: Vec<NodeId> =
            task.after.iter().filter_map(|place| Some(tasks.get(*place)?.node)).collect();
        self.recorder.operation_task(task.node, tool, &after, &ended, when);
    }

    /// Takes in what the program of a task says of itself, at `at`.
    pub(in crate::execute) fn see_in_task(&mut self, task: u32, node: NodeId, seen: &Seen, at: i64) {
        let number = |inner: u32| self.frames.number((task, inner));
        match seen {
            // A capability that is a task has its name; what it says of itself does not name the DAG.
            Seen::Hint { .. } if number(0) != 0 => {}
            Seen::Reached { frame, places } => self.frames.reached(number(*frame), places),
            Seen::Operation { .. } => self.see_operation(task, seen, at),
            Seen::Console { frame, level, text } => self.print(number(*frame), *level, text),
            Seen::FrameBegan { frame, parent, nested, point, context, arguments } => {
                let began = Began {
                    caller: (task, *frame),
                    parent: Some((task, *parent)),
                    place: *nested,
                    point: *point,
                    context: *context,
                    arguments,
                    after: self.asked.get(&task).copied().unwrap_or(0),
                };
                let when = self.when(at);
                let line = self.line_of_node(node);
                let mut root = Root { node: Some(node), line, recorder: &mut self.recorder };
                self.frames.began(&self.plan, &mut root, &began, when);
            }
            Seen::FrameEnded { frame, end } => {
                let (number, when) = (number(*frame), self.when(at));
                self.frames.ended(&self.plan, &mut self.recorder, number, end, when);
            }
            other => self.see(other, at),
        }
    }

    /// The program of a task asks for a call, perhaps for one that is recorded already.
    pub(in crate::execute) fn asked_for(&mut self, issued: &Issued) {
        let Some(within) = issued.within else { return };
        self.asked.insert(issued.frame, within.order);
        let number = self.frames.number((issued.frame, within.frame));
        let Some(index) = (issued.call as usize).checked_sub(1) else { return };
        // One that is new is told of when it is recorded.
        if number == 0 || self.made_by.get(index) != Some(&0) {
            return;
        }
        let tool = self.plan.tools[issued.handle as usize].id.to_string();
        self.frames.take_over(number, &tool_call(issued, &tool), &mut self.recorder);
        self.made_by[index] = number;
        let name = self.frames.get(number).and_then(|frame| frame.nested(&self.plan));
        self.tasks[index].capability = name.map(|nested| nested.name.clone());
    }

    /// A task of a DAG asks for a call.
    pub(in crate::execute) fn note(&mut self, issued: &Issued, at: i64) {
        let node = outer(issued.node.as_deref());
        let tool = self.plan.tools[issued.handle as usize].id.to_string();
        let number = issued.within.map_or(0, |within| self.frames.number((issued.frame, within.frame)));
        let when = When { turn: self.deliveries, at };
        match self.frames.issued(number, &tool_call(issued, &tool), when) {
            Some(place) => self.lines.push(place.line),
            None => {
                self.recorder.issued(Which::Call(issued.call), node, &tool, &issued.arguments, when);
                self.lines.push(node.and_then(|node| self.line_of_node(node)));
            }
        }
        self.nodes.push(issued.node.clone());
        self.take_on(issued.call, number, node, &tool, at);
    }

    /// One call more.
    fn take_on(&mut self, call: u32, made_by: u32, node_id: Option<NodeId>, tool: &str, at: i64) {
        let called = self.frames.get(made_by).and_then(|frame| frame.nested(&self.plan));
        let capability = called.map(|nested| nested.name.clone()).or_else(|| self.capability_at(node_id));
        self.made_by.push(made_by);
        self.progress.calls += 1;
        self.tasks.push(Task {
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
        });
    }

    fn line_of_node(&self, node: NodeId) -> Option<u32> {
        self.plan.structure.node(node).map(|node| node.at.line)
    }

    /// What happened at `at`, which may be long ago.
    pub(super) fn when(&self, at: i64) -> When {
        When { turn: turn_at(&self.given_at, at), at }
    }
}

/// How often something had been given by then.
fn turn_at(given: &[i64], at: i64) -> u64 {
    given.partition_point(|given| *given <= at) as u64
}

fn tool_call<'c>(issued: &'c Issued, tool: &'c str) -> ToolCall<'c> {
    let (order, point, context) =
        issued.within.map_or((0, 0, 0), |within| (within.order, within.point, within.context));
    ToolCall { call: issued.call, order, point, context, tool, arguments: &issued.arguments }
}
