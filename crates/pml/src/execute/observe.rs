//! Watches a run and can tell what it did, live or replayed.

mod tasks;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use pml_model::RunState;
use pml_model::json::raw;
use pml_model::structure::{NodeId, NodeKind};
use pml_sandbox::{Ending as Ended, Event as Seen, Fault, Level, Limit, Thrown};
use serde_json::value::RawValue;

use super::frames::{Began, Frames, Place, Root, ToolCall};
use super::journal::{CallError, Delivered, Part};
use super::operations::{OperationPlace, OperationSeen};
use super::path::{Path, Sites, Way};
use super::plan::{Plan, TaskWork, source_line};
use super::report::{
    Failure, Line, MOST_OPERATIONS, Operated, Progress, Report, Task, TaskStatus, numbered, preview,
};
use super::run::Issued;
use crate::trace::{Ended as CallEnded, Recorder, When, Which};

/// How a program came to its end.
#[derive(Debug, Clone)]
pub(super) enum Ending {
    /// It returned this; JSON.
    Value(String),
    /// It did not get that far.
    Failed(Failure),
    /// Whoever asked for it no longer wants it.
    Cancelled,
    /// Somebody ended it.
    Aborted(Option<String>),
    /// This process ends; another may go on.
    Suspended,
}

/// What is known of a run so far.
#[derive(Debug)]
pub(super) struct Observer {
    plan: Arc<Plan>,
    sites: Sites,
    way: Way,
    tasks: Vec<Task>,
    operations: Vec<Operated>,
    parts: Vec<Part>,
    console: Vec<Line>,
    console_cut: bool,
    hint: Option<Box<RawValue>>,
    progress: Progress,
    /// What to do about calls that failed.
    hints: HashMap<u32, String>,
    /// The lines of the source the calls stand at, in their order, and who makes them.
    lines: Vec<Option<u32>>,
    made_by: Vec<u32>,
    /// The nodes of the calls, within the capabilities that make them too.
    nodes: Vec<Option<String>>,
    /// The capabilities that are called.
    frames: Frames,
    /// The program has run until it had nothing left to do.
    has_rested: bool,
    /// Deliveries that are on their way to a program that is gone through again.
    coming: VecDeque<(i64, Delivered)>,
    caught_up: u32,
    recorder: Recorder,
    /// How often the program had been given something when it said what it says now.
    turn: u64,
    /// How often it was given something, and when.
    deliveries: u64,
    given_at: Vec<i64>,
    /// How many calls the program of each task has asked for, by its frame.
    asked: HashMap<u32, u32>,
}

impl Observer {
    pub(super) fn new(plan: Arc<Plan>) -> Observer {
        Observer {
            sites: plan.program().map_or_else(Sites::none, |program| Sites::new(program, &plan.structure)),
            plan,
            way: Way::default(),
            tasks: Vec::new(),
            operations: Vec::new(),
            parts: Vec::new(),
            console: Vec::new(),
            console_cut: false,
            hint: None,
            progress: Progress::default(),
            hints: HashMap::new(),
            lines: Vec::new(),
            made_by: Vec::new(),
            nodes: Vec::new(),
            frames: Frames::default(),
            has_rested: false,
            coming: VecDeque::new(),
            caught_up: 0,
            recorder: Recorder::default(),
            turn: 0,
            deliveries: 0,
            given_at: Vec::new(),
            asked: HashMap::new(),
        }
    }

    /// Its calls so far.
    pub(super) fn tasks(&self) -> Vec<Task> {
        let mut tasks = self.tasks.clone();
        for (task, id) in tasks.iter_mut().zip(numbered(&self.nodes)) {
            let own = task.node_id.map(|node| node.to_string());
            task.task_id = id.filter(|id| own.as_ref() != Some(id) || self.is_program(task.node_id));
            if task.task_id == own {
                // The node alone stands for the task, which may make further calls.
                task.task_id = own.map(|own| format!("{own}#1"));
            }
        }
        tasks
    }

    /// Whether a node is a task of a DAG that is a program: its result is not that of a call.
    fn is_program(&self, node: Option<NodeId>) -> bool {
        let mut tasks = self.plan.dag().into_iter().flat_map(|dag| &dag.tasks);
        tasks.any(|task| Some(task.node) == node && matches!(task.work, TaskWork::Code(_)))
    }

    /// What is kept of its calls.
    pub(super) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// The capabilities that were called.
    pub(super) fn frames(&self) -> &Frames {
        &self.frames
    }

    /// Its calls that `frame` made.
    pub(super) fn made_by<'t>(&self, frame: u32, tasks: &'t [Task]) -> Vec<&'t Task> {
        let own = |task: &&Task| self.frame_of(task.call) == frame;
        tasks.iter().filter(own).collect()
    }

    fn frame_of(&self, call: u32) -> u32 {
        (call as usize).checked_sub(1).and_then(|index| self.made_by.get(index)).copied().unwrap_or(0)
    }

    /// How far it has come.
    pub(super) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// A call the program asks for, at `at`.
    pub(super) fn issued(&mut self, seen: &CallSeen, at: i64) -> Issued {
        let tool = self.plan.tools[seen.handle as usize].id.to_string();
        let place = self.placed(seen, &tool, at);
        self.lines.push(place.line);
        let frame = self.frames.number((0, seen.frame));
        self.made_by.push(frame);
        self.progress.calls += 1;
        let called = self.frames.get(frame).and_then(|frame| frame.nested(&self.plan));
        self.tasks.push(Task {
            call: seen.call,
            node_id: place.node,
            task_id: None,
            capability: called.map(|nested| nested.name.clone()),
            tool,
            status: TaskStatus::Cancelled,
            result_preview: None,
            result_size: None,
            issued_at: at,
            execution_time_ms: None,
        });
        let asks = self.plan.tools[seen.handle as usize].asks.is_some();
        let node = match (place.node, place.inner) {
            (Some(node), Some(inner)) => Some(format!("{node}/{inner}")),
            (Some(node), None) => Some(node.to_string()),
            (None, _) => None,
        };
        self.nodes.push(node.clone());
        Issued::new(seen.call, (seen.frame, seen.handle), node, &seen.arguments, asks)
    }

    /// Where a call stands, which is part of the way from now on.
    fn placed(&mut self, seen: &CallSeen, tool: &str, at: i64) -> Place {
        let call = ToolCall {
            call: seen.call,
            order: seen.call,
            point: seen.point,
            context: seen.context,
            tool,
            arguments: &seen.arguments,
        };
        let when = When { turn: self.turn, at };
        if let Some(place) = self.frames.issued(self.frames.number((0, seen.frame)), &call, when) {
            return place;
        }
        let found = self.sites.call(seen.point, seen.context, tool);
        let (node, line) = (found.map(|site| site.node), found.map(|site| site.at.line));
        node.into_iter().for_each(|node| self.way.call(node, seen.call));
        self.recorder.issued(Which::Call(seen.call), node, tool, &seen.arguments, when);
        Place { node, inner: None, line }
    }

    /// The name of the capability that a node calls.
    fn capability_at(&self, node: Option<NodeId>) -> Option<String> {
        if let Some(task) =
            self.plan.dag().and_then(|dag| dag.tasks.iter().find(|task| Some(task.node) == node))
        {
            let TaskWork::Code(code) = &task.work else { return None };
            return Some(self.plan.nested.get(code.capability? as usize)?.name.clone());
        }
        match &self.plan.structure.node(node?)?.kind {
            NodeKind::Capability { capability, .. } => Some(capability.clone()),
            _ => None,
        }
    }

    /// The program will be given something that it was given before.
    pub(super) fn will_be_delivered(&mut self, what: Delivered, at: i64) {
        self.coming.push_back((at, what));
    }

    /// The program was given something, at `at`.
    pub(super) fn delivered(&mut self, what: &Delivered, at: i64) {
        self.deliveries += 1;
        self.given_at.push(at);
        self.task_ended(what, When { turn: self.deliveries, at });
        let made_by = what.call().map_or(0, |call| self.frame_of(call));
        let Some(task) = what.call().and_then(|call| self.tasks.get_mut(call as usize - 1)) else { return };
        let when = When { turn: self.deliveries, at };
        let mut ended = |call: u32, ended: &CallEnded<'_>| match made_by {
            0 => self.recorder.ended(Which::Call(call), ended, when),
            frame => self.frames.answered(frame, call, ended, when),
        };
        self.progress.ended += 1;
        task.execution_time_ms = Some(at - task.issued_at);
        match what {
            Delivered::Result { value, parts, .. } => {
                ended(task.call, &CallEnded::Result(value));
                task.status = TaskStatus::Success;
                task.result_preview = Some(preview(value.get()));
                task.result_size = Some(value.get().len());
                self.parts.extend(parts.iter().cloned());
            }
            Delivered::Error { error, .. } => {
                let CallError { code, message, data, .. } = error;
                ended(task.call, &CallEnded::Error { code, message, data: data.as_deref() });
                task.status = if error.unknown { TaskStatus::Unknown } else { TaskStatus::Error };
                task.result_preview = Some(preview(&format!("{}: {}", error.code, error.message)));
                if let Some(hint) = &error.hint {
                    self.hints.insert(task.call, hint.clone());
                }
            }
            Delivered::Timer { .. }
            | Delivered::Frame { .. }
            | Delivered::Layer { .. }
            | Delivered::Pause => {}
        }
    }

    /// The plan is another from now on.
    pub(super) fn replanned(&mut self, plan: Arc<Plan>) {
        self.plan = plan;
    }

    fn catch_up(&mut self, taken: u32) {
        while self.caught_up < taken
            && let Some((at, what)) = self.coming.pop_front()
        {
            self.caught_up += 1;
            self.delivered(&what, at);
        }
    }

    /// When something happens that is gone through again: at the time of what the program was given then.
    fn replayed_at(&self) -> Option<i64> {
        let (next, _) = self.coming.front()?;
        Some(if self.has_rested { *next } else { self.plan.start })
    }

    /// A capability that a program calls begins or ends, at `at` unless it did before.
    fn see_frame(&mut self, seen: &Seen, at: i64) {
        let when = When { turn: self.turn, at: self.replayed_at().unwrap_or(at) };
        match seen {
            Seen::FrameBegan { frame, parent, nested, point, context, arguments } => {
                let began = Began {
                    caller: (0, *frame),
                    parent: Some((0, *parent)),
                    place: *nested,
                    point: *point,
                    context: *context,
                    arguments,
                    after: self.progress.calls,
                };
                let site = self.called_at(&began);
                let (node, line) = (site.map(|(node, _)| node), site.map(|(_, line)| line));
                let mut root = Root { node, line, recorder: &mut self.recorder };
                self.frames.began(&self.plan, &mut root, &began, when);
            }
            Seen::FrameEnded { frame, end } => {
                let number = self.frames.number((0, *frame));
                self.frames.ended(&self.plan, &mut self.recorder, number, end, when);
            }
            _ => {}
        }
    }

    /// Where the program itself calls a capability, which is part of its way from now on.
    fn called_at(&mut self, began: &Began<'_>) -> Option<(NodeId, u32)> {
        let called = self.plan.nested.get(began.place as usize)?;
        if began.parent.is_some_and(|parent| self.frames.number(parent) != 0) {
            return None;
        }
        let site = self.sites.call(began.point, began.context, &called.name)?;
        self.way.capability(site.node, began.after);
        Some((site.node, site.at.line))
    }

    /// A pure operation of the program of `task`, or of a capability it calls, gave something at `at`.
    fn see_operation(&mut self, task: u32, seen: &Seen, at: i64) {
        let Seen::Operation { frame, point, context, took, gave } = seen else { return };
        let Some(seen) = OperationSeen::new(*point, *context, *took, gave) else { return };
        let turn = if task == 0 { self.turn } else { self.when(at).turn };
        let when = When { turn, at };
        let number = self.frames.number((task, *frame));
        let place = match number {
            0 => self.sites.operation(*point, *context, &self.plan.structure).map(|(node, tool)| {
                self.recorder.operation(&seen.at(node, tool), when);
                OperationPlace { node_id: Some(node), tool, capability: None }
            }),
            number => self.frames.operation(&self.plan, number, &seen, when),
        };
        if self.operations.len() < MOST_OPERATIONS {
            self.operations.extend(place.map(|place| seen.told(place, self.progress.calls, at)));
        }
    }

    fn print(&mut self, frame: u32, level: Level, text: &str) {
        let called = self.frames.get(frame).and_then(|frame| frame.nested(&self.plan));
        self.console.push(Line {
            level: word(level).to_owned(),
            text: text.to_owned(),
            capability: called.map(|nested| nested.name.clone()),
        });
    }

    /// Takes in what the program says of itself at `now`.
    pub(super) fn see(&mut self, seen: &Seen, now: i64) {
        match seen {
            // Only when a delivery is taken is it sure that the call it answers has been seen.
            Seen::Quiet { taken, .. } => {
                self.turn = u64::from(*taken) + 1;
                self.catch_up(*taken);
                self.has_rested = true;
            }
            Seen::Ended(_) => self.catch_up(u32::MAX),
            Seen::Reached { frame: 0, places } => {
                for reached in places {
                    self.way.take(reached, &self.sites);
                }
            }
            Seen::Reached { frame, places } => self.frames.reached(self.frames.number((0, *frame)), places),
            Seen::Operation { .. } => self.see_operation(0, seen, self.replayed_at().unwrap_or(now)),
            Seen::FrameBegan { .. } | Seen::FrameEnded { .. } => self.see_frame(seen, now),
            Seen::Console { frame, level, text } => {
                self.print(self.frames.number((0, *frame)), *level, text);
            }
            Seen::ConsoleCut => self.console_cut = true,
            Seen::Hint { json } => self.hint = RawValue::from_string(json.clone()).ok(),
            Seen::Progress { done, total, message } => {
                self.progress.done = Some(*done);
                self.progress.total = *total;
                self.progress.message = message.clone();
            }
            Seen::Call { .. } | Seen::Timer { .. } | Seen::TimerCleared { .. } => {}
        }
    }

    /// The node a call belongs to.
    pub(super) fn node_of(&self, call: u32) -> Option<NodeId> {
        self.tasks.get(call as usize - 1)?.node_id
    }

    /// The line a call stands at.
    pub(super) fn line_of(&self, call: u32) -> Option<u32> {
        *self.lines.get(call as usize - 1)?
    }

    /// The text that line is of.
    pub(super) fn text_of(&self, call: u32) -> &str {
        let called = self.frames.get(self.frame_of(call)).and_then(|frame| frame.nested(&self.plan));
        called.map_or(&self.plan.source, |nested| &nested.source)
    }

    /// The name of the capability that makes a call, where one does.
    pub(super) fn caller_of(&self, call: u32) -> Option<&str> {
        self.tasks.get((call as usize).checked_sub(1)?)?.capability.as_deref()
    }

    /// The tool of a call.
    pub(super) fn tool(&self, call: u32) -> Option<&str> {
        self.tasks.get((call as usize).checked_sub(1)?).map(|task| task.tool.as_str())
    }

    /// How the program says it ended.
    pub(super) fn ending(&self, ended: &Ended) -> Ending {
        let failure = match ended {
            Ended::Value(json) => return Ending::Value(json.clone()),
            Ended::Thrown(thrown) => self.thrown(thrown),
            Ended::Unhandled(thrown) => {
                let failure = self.thrown(thrown);
                let message = format!("nobody handled an error: {}", failure.message);
                Failure { message, ..failure }.hint("put `await` before the call, or catch its error")
            }
            Ended::Deadlock => Failure::new(
                "DEADLOCK",
                "the program waits for something that cannot come: no call and no timer is left",
            )
            .hint("look for a promise that nothing resolves"),
            Ended::Limit(Limit::Memory) => out_of_memory(&self.plan),
            Ended::Limit(Limit::Calls) => {
                let most = self.plan.limits.calls;
                Failure::new("TOOL_CALL_LIMIT", format!("the program made more than {most} calls"))
                    .hint("call less often, or raise `limits.calls` in pml.toml")
            }
            Ended::Limit(Limit::Result) => {
                let most = self.plan.limits.result_bytes;
                Failure::new("RESULT_TOO_LARGE", format!("the program returned more than {most} bytes"))
                    .hint("return less, or raise `limits.result` in pml.toml")
            }
        };
        Ending::Failed(failure)
    }

    /// An uncaught error, in the words and lines of the source.
    fn thrown(&self, thrown: &Thrown) -> Failure {
        let code = thrown.code.as_deref().unwrap_or("PROGRAM_ERROR");
        let tool = thrown.call.and_then(|call| self.tool(call));
        let message = match (thrown.name.as_str(), thrown.message.as_str()) {
            // The program has the tool's own words; whoever reads this does not know whose they are.
            ("ToolError", message) if code == "TOOL_ERROR" => {
                tool.map_or_else(|| message.to_owned(), |tool| format!("`{tool}` failed: {message}"))
            }
            ("ToolError" | "CapabilityError", message) => message.to_owned(),
            (name, "") => name.to_owned(),
            (name, message) => format!("{name}: {message}"),
        };
        let frame = thrown.frame.and_then(|frame| self.frames.get(self.frames.number((0, frame))));
        let (node, line) = match (frame, thrown.call) {
            (Some(frame), _) => (frame.node, frame.line),
            (None, Some(call)) => (self.node_of(call), self.line_of(call)),
            (None, None) => (None, None),
        };
        Failure {
            hint: thrown.call.and_then(|call| self.hints.get(&call).cloned()),
            node_id: node.map(|node| node.to_string()),
            // An error that came from outside has no place in the program but that of its call.
            line: line.or_else(|| source_line(self.plan.program()?, thrown.line, thrown.column)),
            ..Failure::new(code, message)
        }
    }

    /// What there is to tell.
    pub(super) fn report(&self, ending: &Ending, in_doubt: &[u32], ended_at: i64) -> Report {
        let (state, result, error) = match ending {
            Ending::Value(json) => (RunState::Done, RawValue::from_string(json.clone()).ok(), None),
            Ending::Failed(failure) => (RunState::Failed, None, Some(failure.clone())),
            Ending::Cancelled => {
                (RunState::Cancelled, None, Some(Failure::new("CANCELLED", "the run was cancelled")))
            }
            Ending::Aborted(reason) => {
                let reason = reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
                (
                    RunState::Aborted,
                    None,
                    Some(Failure::new("ABORTED", format!("the run was aborted{reason}"))),
                )
            }
            Ending::Suspended => (RunState::Interrupted, None, None),
        };
        let mut tasks = self.tasks();
        for task in &mut tasks {
            if in_doubt.contains(&task.call) {
                task.status = TaskStatus::Unknown;
            }
        }
        let text = result.as_ref().map(|result| result.get()).unwrap_or_default();
        Report {
            state,
            whole: false,
            parts: self.named_in(text),
            error: error.map(|error| Failure { in_doubt: in_doubt.to_vec(), ..error }),
            result: result.or_else(|| (state == RunState::Done).then(|| raw(&serde_json::Value::Null))),
            tasks,
            operations: self.operations.clone(),
            path: self.path(),
            console: self.console.clone(),
            console_cut: self.console_cut,
            outcomes: Vec::new(),
            called: self.frames.results(&self.plan),
            hint: self.hint.clone(),
            started_at: self.plan.start,
            ended_at,
            capability_id: None,
            withheld: Vec::new(),
            next: Vec::new(),
            warnings: Vec::new(),
            cache_hit: None,
        }
    }
}

impl Observer {
    /// Which way it went, where it is a program.
    fn path(&self) -> Path {
        self.way.path(&self.plan.structure)
    }

    /// The parts that a result names, as many as may be shown with it.
    fn named_in(&self, result: &str) -> Vec<Part> {
        let mut left = MAX_PARTS_BYTES;
        let named = self.parts.iter().filter(|part| result.contains(&format!("\"{}\"", part.uri)));
        let fits = named.take_while(|part| {
            let size = part.content.get().len();
            let fits = size <= left;
            left = left.saturating_sub(size);
            fits
        });
        fits.cloned().collect()
    }
}

/// The node of a call in the program's own structure: where a capability made it, its own node stands behind that.
fn outer(node: Option<&str>) -> Option<NodeId> {
    let own = node.map(|node| node.split_once('/').map_or(node, |(own, _)| own));
    own.and_then(|node| NodeId::try_from(node.to_owned()).ok())
}

/// What is shown with a result has at most this many bytes.
const MAX_PARTS_BYTES: usize = 8 << 20;

/// A worker's fault, as a failure of the run.
pub(super) fn faulted(plan: &Plan, fault: &Fault) -> Failure {
    match fault {
        Fault::Cpu => {
            let time = plan.limits.cpu_ms;
            Failure::new("TIMEOUT", format!("the program computed for {time} ms without an end"))
                .hint("look for an endless loop, or raise `limits.cpu` in pml.toml")
        }
        Fault::Died { .. } => Failure::new("WORKER_CRASHED", fault.to_string())
            .hint("run it again; if it happens again, please report the program"),
        Fault::Broke(_) => Failure::new("DENIED", fault.to_string()),
    }
}

/// A call as the worker tells of it.
#[derive(Debug)]
pub(super) struct CallSeen {
    pub(super) call: u32,
    pub(super) frame: u32,
    pub(super) point: u32,
    pub(super) context: u32,
    pub(super) handle: u32,
    pub(super) arguments: String,
}

/// The program wanted more memory than it may have.
pub(super) fn out_of_memory(plan: &Plan) -> Failure {
    let most = plan.limits.heap_bytes;
    Failure::new("MEMORY", format!("the program needs more than {most} bytes of memory"))
        .hint("work on less at a time, or raise `limits.heap` in pml.toml")
}

/// The word for a level of the console.
pub(super) fn word(level: Level) -> &'static str {
    match level {
        Level::Debug => "debug",
        Level::Log => "log",
        Level::Info => "info",
        Level::Warn => "warn",
        Level::Error => "error",
    }
}
