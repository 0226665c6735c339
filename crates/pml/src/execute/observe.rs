//! Observes a run, live or replayed, and builds its report.

mod calls;
mod tasks;
mod turns;

use pml_model::ErrorCode;
use std::collections::HashMap;
use std::sync::Arc;

use pml_model::RunState;
use pml_model::json::raw;
use pml_model::structure::{NodeId, NodeKind};
use pml_sandbox::{ConsoleLevel, ExceededLimit, ProgramEnding, ThrownError, WorkerEvent};
use pml_store::RunCallCounts;
use serde_json::value::RawValue;

use super::delivery::{CallFailure, RunDelivery};
use super::ending::{RunEnding, out_of_memory};
use super::frames::{CallSite, CapabilityFrames, FrameStart, NodePlace, RootFrame, ToolCall};
use super::issued_call::IssuedCall;
use super::live::LiveOutput;
use super::operations::{OperationPlace, ReportedOperation};
use super::path::{PathBuilder, Sites};
use super::remember::RecordedFrame;
use crate::plan::{Plan, TaskWork, source_line};
use crate::report::ContentPart;
use crate::report::ExecutedPath;
use crate::report::{
    CallReport, ConsoleLine, MOST_OPERATIONS, OperationReport, PathDecision, RunFailure, RunProgress,
    RunReport, TaskStatus, preview,
};
use crate::trace::{CallEnding, CallRef, Recorder};
use calls::{ObservedCall, ObservedCalls};
use turns::{RepeatedDeliveries, Turns};

/// The observations of a run so far.
#[derive(Debug)]
pub(super) struct Observer {
    plan: Arc<Plan>,
    sites: Sites,
    way: PathBuilder,
    /// The calls, including those within capabilities.
    calls: ObservedCalls,
    operations: Vec<OperationReport>,
    /// The parts of the results of all calls.
    parts: Vec<ContentPart>,
    console: Console,
    hint: Option<Box<RawValue>>,
    progress: RunProgress,
    /// The failed and the speculated calls.
    counts: RunCallCounts,
    /// The frames of called capabilities.
    frames: CapabilityFrames,
    repeated: RepeatedDeliveries,
    recorder: Recorder,
    turns: Turns,
    /// The number of calls that the program of each task has issued, by frame.
    asked: HashMap<u32, u32>,
}

/// What the programs of a run printed.
#[derive(Debug, Default)]
struct Console {
    lines: Vec<ConsoleLine>,
    /// When each line was printed.
    printed_at: Vec<i64>,
    /// Whether lines are missing, because there were too many.
    is_cut: bool,
}

impl Observer {
    pub(super) fn new(plan: Arc<Plan>) -> Observer {
        Observer {
            sites: plan.program().map_or_else(Sites::none, |program| Sites::new(program, &plan.structure)),
            plan,
            way: PathBuilder::default(),
            calls: ObservedCalls::default(),
            operations: Vec::new(),
            parts: Vec::new(),
            console: Console::default(),
            hint: None,
            progress: RunProgress::default(),
            counts: RunCallCounts::default(),
            frames: CapabilityFrames::default(),
            repeated: RepeatedDeliveries::default(),
            recorder: Recorder::default(),
            turns: Turns::default(),
            asked: HashMap::new(),
        }
    }

    /// The reports of the calls so far.
    pub(super) fn call_reports(&self) -> Vec<CallReport> {
        let named = |(mut task, id): (CallReport, Option<String>)| {
            let own = task.node_id.map(|node| node.to_string());
            task.task_id = id.filter(|id| own.as_ref() != Some(id) || self.is_program(task.node_id));
            if task.task_id == own {
                // The node alone names the task, which may make further calls.
                task.task_id = own.map(|own| format!("{own}#1"));
            }
            task
        };
        self.calls.placed_reports().map(named).collect()
    }

    /// Whether a node is a DAG task with a program: its result is not that of a call.
    fn is_program(&self, node: Option<NodeId>) -> bool {
        let mut tasks = self.plan.dag().into_iter().flat_map(|dag| &dag.tasks);
        tasks.any(|task| Some(task.node) == node && matches!(task.work, TaskWork::Code(_)))
    }

    /// The report of a call so far.
    pub(super) fn call_report(&self, call: u32) -> Option<&CallReport> {
        self.calls.get(call).map(|call| &call.report)
    }

    /// The node of a call; one within a capability follows that of the capability, after a `/`.
    pub(super) fn node_path(&self, call: u32) -> Option<&str> {
        self.calls.get(call)?.node_path.as_deref()
    }

    /// The recorder of the calls, for the trace.
    pub(super) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// The called capabilities that leave a trace, each with the calls that it made.
    pub(super) fn recorded_frames(&self, report: &RunReport) -> Vec<RecordedFrame<'_>> {
        let calls = |frame: u32| {
            let own = |task: &&CallReport| self.calls.frame_of(task.call) == frame;
            report.tasks.iter().filter(own).cloned().collect()
        };
        let traced = self.frames.traced();
        traced.map(|frame| RecordedFrame { frame, calls: calls(frame.number) }).collect()
    }

    /// The frames of called capabilities.
    pub(super) fn frames(&self) -> &CapabilityFrames {
        &self.frames
    }

    /// The progress so far.
    pub(super) fn progress(&self) -> &RunProgress {
        &self.progress
    }

    /// The numbers of calls so far.
    pub(super) fn call_counts(&self) -> RunCallCounts {
        RunCallCounts { made: self.progress.calls, ..self.counts }
    }

    /// Handles a call that the program issues at the time `at`.
    pub(super) fn on_call(&mut self, seen: &ReportedCall, at: i64) -> IssuedCall {
        let tool = self.plan.tools[seen.handle as usize].id.to_string();
        let place = self.placed(seen, &tool, at);
        let frame = self.frames.number((0, seen.frame));
        self.progress.calls += 1;
        let called = self.frames.get(frame).and_then(|frame| frame.planned_capability(&self.plan));
        let node = match (place.node, place.inner) {
            (Some(node), Some(inner)) => Some(format!("{node}/{inner}")),
            (Some(node), None) => Some(node.to_string()),
            (None, _) => None,
        };
        let report = CallReport {
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
            speculated: false,
            saved_ms: None,
            age_ms: None,
            not_ahead: None,
        };
        self.calls.push(ObservedCall::new(report, node.clone(), place.line, frame));
        let asks = self.plan.tools[seen.handle as usize].asks.is_some();
        IssuedCall::new(seen.call, (seen.frame, seen.handle), node, &seen.arguments, asks)
    }

    /// The place of a call, which becomes part of the path.
    fn placed(&mut self, seen: &ReportedCall, tool: &str, at: i64) -> CallSite {
        let call = ToolCall {
            call: seen.call,
            order: seen.call,
            point: seen.point,
            context: seen.context,
            tool,
            arguments: &seen.arguments,
        };
        let when = self.turns.current(at);
        if let Some(place) = self.frames.on_call(self.frames.number((0, seen.frame)), &call, when) {
            return place;
        }
        let found = self.sites.call(seen.point, seen.context, tool);
        let (node, line) = (found.map(|site| site.node), found.map(|site| site.at.line));
        node.into_iter().for_each(|node| self.way.visit_call(node, seen.call));
        self.recorder.record_call(CallRef::Call(seen.call), node, tool, &seen.arguments, when);
        CallSite { node, inner: None, line }
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

    /// Announces a recorded delivery that the program will receive again.
    pub(super) fn expect_delivery(&mut self, what: RunDelivery, at: i64) {
        self.repeated.expect(what, at);
    }

    /// Handles a delivery to the program at the time `at`.
    pub(super) fn on_delivery(&mut self, what: &RunDelivery, at: i64) {
        let when = self.turns.on_delivery(at);
        self.on_task_end(what, when);
        let Some(call) = what.call().and_then(|call| self.calls.get_mut(call)) else { return };
        let made_by = call.made_by;
        let mut ended = |call: u32, ended: &CallEnding<'_>| match made_by {
            0 => self.recorder.record_end(CallRef::Call(call), ended, when),
            frame => self.frames.on_call_end(frame, call, ended, when),
        };
        self.progress.ended += 1;
        let task = &mut call.report;
        task.execution_time_ms = Some(at - task.issued_at);
        match what {
            RunDelivery::Result { value, parts, saved_ms, age_ms, not_ahead, .. } => {
                let (saved_ms, age_ms) = (*saved_ms, *age_ms);
                ended(task.call, &CallEnding::Result { value, saved_ms, age_ms });
                (task.speculated, task.saved_ms) = (saved_ms.is_some(), saved_ms);
                self.counts.speculated += u32::from(saved_ms.is_some());
                task.age_ms = age_ms;
                task.not_ahead.clone_from(not_ahead);
                task.status = TaskStatus::Success;
                task.result_preview = Some(preview(value.get()));
                task.result_size = Some(value.get().len());
                self.parts.extend(parts.iter().cloned());
            }
            RunDelivery::Error { error, .. } => {
                let CallFailure { code, message, data, .. } = error;
                ended(task.call, &CallEnding::Error { code: code.as_str(), message, data: data.as_deref() });
                task.status = if error.unknown { TaskStatus::Unknown } else { TaskStatus::Error };
                self.counts.failed += 1;
                task.result_preview = Some(preview(&format!("{}: {}", error.code, error.message)));
                call.hint.clone_from(&error.hint);
            }
            RunDelivery::Timer { .. }
            | RunDelivery::Frame { .. }
            | RunDelivery::Layer { .. }
            | RunDelivery::Pause => {}
        }
    }

    /// Replaces the plan.
    pub(super) fn set_plan(&mut self, plan: Arc<Plan>) {
        self.plan = plan;
    }

    fn catch_up(&mut self, taken: u32) {
        while let Some((at, what)) = self.repeated.next_taken(taken) {
            self.on_delivery(&what, at);
        }
    }

    /// The time of an event at `now`, unless it is replayed: then the time it had.
    fn time_of_event(&self, now: i64) -> i64 {
        self.repeated.time_of_event(self.plan.start).unwrap_or(now)
    }

    /// Handles the start or end of a called capability, at the time `at` unless it is replayed.
    fn see_frame(&mut self, seen: &WorkerEvent, at: i64) {
        let when = self.turns.current(self.time_of_event(at));
        match seen {
            WorkerEvent::FrameBegan { frame, parent, nested, point, context, arguments } => {
                let began = FrameStart {
                    caller: (0, *frame),
                    parent: Some((0, *parent)),
                    nested_index: *nested,
                    point: *point,
                    context: *context,
                    arguments,
                    after: self.progress.calls,
                };
                let site = self.called_at(&began);
                let (node, line) = (site.map(|(node, _)| node), site.map(|(_, line)| line));
                let mut root = RootFrame { node, line, recorder: &mut self.recorder };
                self.frames.on_start(&self.plan, &mut root, &began, when);
            }
            WorkerEvent::FrameEnded { frame, end } => {
                let number = self.frames.number((0, *frame));
                self.frames.on_end(&self.plan, &mut self.recorder, number, end, when);
            }
            _ => {}
        }
    }

    /// The place where the program itself calls a capability, which becomes part of the path.
    fn called_at(&mut self, began: &FrameStart<'_>) -> Option<(NodeId, u32)> {
        let called = self.plan.nested.get(began.nested_index as usize)?;
        if began.parent.is_some_and(|parent| self.frames.number(parent) != 0) {
            return None;
        }
        let site = self.sites.call(began.point, began.context, &called.name)?;
        self.way.visit_capability(site.node, began.after);
        Some((site.node, site.at.line))
    }

    /// Handles a pure operation of the program of `task`, or of a capability it calls, at the time `at`.
    fn see_operation(&mut self, task: u32, seen: &WorkerEvent, at: i64) {
        let WorkerEvent::Operation { frame, point, context, took, gave } = seen else { return };
        let Some(seen) = ReportedOperation::new(*point, *context, *took, gave) else { return };
        let when = if task == 0 { self.turns.current(at) } else { self.turns.at(at) };
        let number = self.frames.number((task, *frame));
        let place = match number {
            0 => self.sites.operation(*point, *context, &self.plan.structure).map(|(node, tool)| {
                self.recorder.record_operation(&seen.to_traced(node, tool), when);
                OperationPlace { node_id: Some(node), tool, capability: None }
            }),
            number => self.frames.on_operation(&self.plan, number, &seen, when),
        };
        if self.operations.len() < MOST_OPERATIONS {
            self.operations.extend(place.map(|place| seen.to_report(place, self.progress.calls, at)));
        }
    }

    fn print(&mut self, frame: u32, level: ConsoleLevel, text: &str, at: i64) {
        self.console.printed_at.push(at);
        let called = self.frames.get(frame).and_then(|frame| frame.planned_capability(&self.plan));
        self.console.lines.push(ConsoleLine {
            level: level_name(level).to_owned(),
            text: text.to_owned(),
            capability: called.map(|nested| nested.name.clone()),
        });
    }

    /// Handles an event of the program at the time `now`.
    pub(super) fn on_event(&mut self, seen: &WorkerEvent, now: i64) {
        match seen {
            // Only a taken delivery proves that the call it answers has been observed.
            WorkerEvent::Quiet { taken, .. } => {
                self.turns.on_quiet(*taken);
                self.catch_up(*taken);
                self.repeated.on_quiet();
            }
            WorkerEvent::Ended(_) => self.catch_up(u32::MAX),
            WorkerEvent::Reached { frame: 0, places } => {
                for reached in places {
                    self.way.add_report(reached, &self.sites);
                }
            }
            WorkerEvent::Reached { frame, places } => {
                self.frames.reached(self.frames.number((0, *frame)), places);
            }
            WorkerEvent::Operation { .. } => self.see_operation(0, seen, self.time_of_event(now)),
            WorkerEvent::FrameBegan { .. } | WorkerEvent::FrameEnded { .. } => self.see_frame(seen, now),
            WorkerEvent::Console { frame, level, text } => {
                self.print(self.frames.number((0, *frame)), *level, text, self.time_of_event(now));
            }
            WorkerEvent::ConsoleCut => self.console.is_cut = true,
            WorkerEvent::Hint { json } => self.hint = RawValue::from_string(json.clone()).ok(),
            WorkerEvent::Progress { done, total, message } => {
                self.progress.done = Some(*done);
                self.progress.total = *total;
                self.progress.message = message.clone();
            }
            WorkerEvent::Call { .. } | WorkerEvent::Timer { .. } | WorkerEvent::TimerCleared { .. } => {}
        }
    }

    /// The nodes that the program has reached and the decisions it has made. Both lists only grow.
    pub(super) fn path_progress(&self) -> (&[NodeId], &[PathDecision]) {
        self.way.progress()
    }

    /// What the run has shown so far.
    pub(super) fn live_output(&self) -> LiveOutput {
        let (_, decisions) = self.way.progress();
        LiveOutput {
            console: self.console.lines.clone(),
            console_at: self.console.printed_at.clone(),
            console_cut: self.console.is_cut,
            decisions: decisions.to_vec(),
        }
    }

    /// The place of a pure operation of the program or of a capability that it calls.
    pub(super) fn operation_place(&self, frame: u32, point: u32, context: u32) -> Option<NodePlace> {
        match self.frames.number((0, frame)) {
            0 => {
                let (node, _) = self.sites.operation(point, context, &self.plan.structure)?;
                Some((Vec::new(), node))
            }
            number => self.frames.operation_place(&self.plan, number, point, context),
        }
    }

    /// The nodes that lead to a capability that the program calls, that of its own call last.
    pub(super) fn frame_path(&self, frame: u32) -> Option<Vec<NodeId>> {
        self.frames.call_path(self.frames.number((0, frame)))
    }

    /// The place of a call of the program or of a capability that it calls.
    pub(super) fn call_place(&self, call: u32) -> Option<NodePlace> {
        let call = self.calls.get(call)?;
        let path = call.node_path.as_deref()?;
        let node = path.rsplit_once('/').map_or(path, |(_, inner)| inner);
        Some((self.frames.call_path(call.made_by)?, NodeId::try_from(node.to_owned()).ok()?))
    }

    /// The node that a call belongs to.
    pub(super) fn node_of(&self, call: u32) -> Option<NodeId> {
        self.calls.get(call)?.report.node_id
    }

    /// The source line of a call.
    pub(super) fn line_of(&self, call: u32) -> Option<u32> {
        self.calls.get(call)?.line
    }

    /// The source text that the line belongs to.
    pub(super) fn text_of(&self, call: u32) -> &str {
        let frame = self.frames.get(self.calls.frame_of(call));
        let called = frame.and_then(|frame| frame.planned_capability(&self.plan));
        called.map_or(&self.plan.source, |nested| &nested.source)
    }

    /// The name of the capability that makes a call, if one does.
    pub(super) fn caller_of(&self, call: u32) -> Option<&str> {
        self.calls.get(call)?.report.capability.as_deref()
    }

    /// The tool of a call.
    pub(super) fn tool(&self, call: u32) -> Option<&str> {
        self.calls.get(call).map(|call| call.report.tool.as_str())
    }

    /// The ending that the program reports.
    pub(super) fn ending(&self, ended: &ProgramEnding) -> RunEnding {
        let failure = match ended {
            ProgramEnding::Value(json) => return RunEnding::Value(json.clone()),
            ProgramEnding::Thrown(thrown) => self.thrown(thrown),
            ProgramEnding::Unhandled(thrown) => {
                let failure = self.thrown(thrown);
                let message = format!("nobody handled an error: {}", failure.message);
                RunFailure { message, ..failure }.hint("put `await` before the call, or catch its error")
            }
            ProgramEnding::Deadlock => RunFailure::new(
                ErrorCode::Deadlock,
                "the program waits for something that cannot come: no call and no timer is left",
            )
            .hint("look for a promise that nothing resolves"),
            ProgramEnding::Limit(ExceededLimit::Memory) => out_of_memory(&self.plan),
            ProgramEnding::Limit(ExceededLimit::Calls) => {
                let most = self.plan.limits.calls;
                RunFailure::new(ErrorCode::ToolCallLimit, format!("the program made more than {most} calls"))
                    .hint("call less often, or raise `limits.calls` in pml.toml")
            }
            ProgramEnding::Limit(ExceededLimit::Result) => {
                let most = self.plan.limits.result_bytes;
                RunFailure::new(
                    ErrorCode::ResultTooLarge,
                    format!("the program returned more than {most} bytes"),
                )
                .hint("return less, or raise `limits.result` in pml.toml")
            }
        };
        RunEnding::Failed(failure)
    }

    /// The failure for an uncaught error, with messages and lines of the source.
    fn thrown(&self, thrown: &ThrownError) -> RunFailure {
        let code = thrown.code.unwrap_or(ErrorCode::ProgramError);
        let tool = thrown.call.and_then(|call| self.tool(call));
        let message = match (thrown.name.as_str(), thrown.message.as_str()) {
            // The program knows that these are the tool's own words; a reader of the report does not.
            ("ToolError", message) if code == ErrorCode::ToolError => {
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
        RunFailure {
            hint: thrown.call.and_then(|call| self.calls.get(call)?.hint.clone()),
            node_id: node.map(|node| node.to_string()),
            // An error from outside has no place in the program but that of its call.
            line: line.or_else(|| source_line(self.plan.program()?, thrown.line, thrown.column)),
            ..RunFailure::new(code, message)
        }
    }

    /// Builds the report of the run.
    pub(super) fn build_report(&self, ending: &RunEnding, in_doubt: &[u32], ended_at: i64) -> RunReport {
        let (state, result, error) = match ending {
            RunEnding::Value(json) => (RunState::Done, RawValue::from_string(json.clone()).ok(), None),
            RunEnding::Failed(failure) => (RunState::Failed, None, Some(failure.clone())),
            RunEnding::Cancelled => (
                RunState::Cancelled,
                None,
                Some(RunFailure::new(ErrorCode::Cancelled, "the run was cancelled")),
            ),
            RunEnding::Aborted(reason) => {
                let reason = reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
                (
                    RunState::Aborted,
                    None,
                    Some(RunFailure::new(ErrorCode::Aborted, format!("the run was aborted{reason}"))),
                )
            }
            RunEnding::Suspended => (RunState::Interrupted, None, None),
        };
        let mut tasks = self.call_reports();
        for task in &mut tasks {
            if in_doubt.contains(&task.call) {
                task.status = TaskStatus::Unknown;
            }
        }
        let text = result.as_ref().map(|result| result.get()).unwrap_or_default();
        RunReport {
            state,
            whole: false,
            parts: self.named_in(text),
            error: error.map(|error| RunFailure { in_doubt: in_doubt.to_vec(), ..error }),
            result: result.or_else(|| (state == RunState::Done).then(|| raw(&serde_json::Value::Null))),
            tasks,
            operations: self.operations.clone(),
            path: self.path(),
            console: self.console.lines.clone(),
            console_at: self.console.printed_at.clone(),
            console_cut: self.console.is_cut,
            outcomes: Vec::new(),
            called: self.frames.results(&self.plan),
            hint: self.hint.clone(),
            started_at: self.plan.start,
            ended_at,
            capability_id: None,
            withheld: Vec::new(),
            lifted: Vec::new(),
            next: Vec::new(),
            warnings: Vec::new(),
            cache_hit: None,
        }
    }
}

impl Observer {
    /// The path of the run; empty unless it is a program.
    fn path(&self) -> ExecutedPath {
        self.way.build(&self.plan.structure)
    }

    /// The parts that a result refers to, up to the size limit.
    fn named_in(&self, result: &str) -> Vec<ContentPart> {
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

/// The node of a call in the run's own structure. For a call within a capability, that capability's node follows it.
fn outer(node: Option<&str>) -> Option<NodeId> {
    let own = node.map(|node| node.split_once('/').map_or(node, |(own, _)| own));
    own.and_then(|node| NodeId::try_from(node.to_owned()).ok())
}

/// 8 MiB: the limit of all parts that are shown with a result.
const MAX_PARTS_BYTES: usize = 8 << 20;

/// A call as the worker reports it.
#[derive(Debug)]
pub(super) struct ReportedCall {
    pub(super) call: u32,
    pub(super) frame: u32,
    pub(super) point: u32,
    pub(super) context: u32,
    pub(super) handle: u32,
    pub(super) arguments: String,
}

/// The name of a console level.
pub(super) fn level_name(level: ConsoleLevel) -> &'static str {
    match level {
        ConsoleLevel::Debug => "debug",
        ConsoleLevel::Log => "log",
        ConsoleLevel::Info => "info",
        ConsoleLevel::Warn => "warn",
        ConsoleLevel::Error => "error",
    }
}
