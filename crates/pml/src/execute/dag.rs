//! The tasks of a DAG as a source of calls.
//!
//! [`DagRun`] issues calls as a program in a worker does: it receives the deliveries of the run core and returns
//! events. It is deterministic, so a resumed run reaches its former state by receiving the same deliveries. A task that
//! is a program has its own worker; its end is a delivery too, so a finished task is not replayed.

mod frame;
mod numbers;
mod programs;
pub mod schedule;
mod task_report;

use pml_model::ErrorCode;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pml_analysis::dag::fill_references;
use pml_model::json::raw;
use pml_model::question::LayerQuestion;
use pml_model::structure::{Argument, NodeId};
use pml_sandbox::{Delivery, WorkerEvent, WorkerFault};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::delivery::{CallFailure, RunDelivery};
use super::ending::RunEnding;
use super::frames::StartedTask;
use super::issued_call::{IssuedCall, TaskCallSite};
use super::journal::History;
use super::run::RunEvent;
use crate::plan::{DagPlan, DagTask, Plan, Replan, TaskCode, TaskWork};
use frame::WorkerFailure;
pub(super) use frame::{FrameEvent, FrameMessage, TaskWorkers};
use numbers::CallNumbers;
use programs::TaskPrograms;
use schedule::{AttemptOutcome, Schedule, ScheduleStep, ScheduledTask, TaskEnd, WaitingTask};
pub use task_report::DagTasks;

/// The errors after which a retry of an idempotent tool may succeed.
const FOR_NOW: [ErrorCode; 5] = [
    ErrorCode::Timeout,
    ErrorCode::ServerDown,
    ErrorCode::ServerStarting,
    ErrorCode::DownstreamDied,
    ErrorCode::RateLimited,
];
/// More attempts than any task may have.
const MOST_TRIES: u64 = 16;

/// The state of the tasks of a run.
pub(super) struct DagRun {
    plan: Arc<Plan>,
    tasks: Vec<DagTask>,
    schedule: Schedule,
    progress: Vec<TaskProgress>,
    /// The results that references to tasks resolve to.
    results: HashMap<String, Box<RawValue>>,
    numbers: CallNumbers,
    programs: TaskPrograms,
    /// The number of deliveries that belong to no live program, or that an ended one did not take.
    taken: u32,
    /// The time of the last delivery.
    now: i64,
    /// The tasks that have ended since the last wait for an answer.
    ended_since_pause: Vec<usize>,
    paused: Option<LayerQuestion>,
    said: VecDeque<RunEvent<RunEnding>>,
    /// The capabilities started as tasks that have not been reported yet.
    begun: Vec<StartedTask>,
    /// Whether the run is to stop.
    stopped: bool,
}

/// A call that a task makes once it may start.
#[derive(Debug, Clone)]
pub(super) struct UpcomingCall {
    /// The index of the task.
    pub(super) task: usize,
    /// How many steps the task is from starting.
    pub(super) steps: usize,
    pub(super) handle: u32,
    /// The bytes that the task sends.
    pub(super) arguments: String,
    /// Whether a part of them came from another task.
    pub(super) from_results: bool,
}

/// The state of a task.
#[derive(Debug, Clone, Default)]
struct TaskProgress {
    begun: Option<i64>,
    ended: Option<i64>,
    value: Option<Box<RawValue>>,
    error: Option<CallFailure>,
}

/// The frame number of a task; frame 0 is the DAG itself.
fn frame_of(task: usize) -> u32 {
    u32::try_from(task + 1).unwrap_or(u32::MAX)
}

fn task_of(frame: u32) -> Option<usize> {
    (frame as usize).checked_sub(1)
}

impl DagRun {
    /// The tasks of `plan`. The deliveries in `history` must be made to them afterwards.
    pub(super) fn new(plan: &Arc<Plan>, dag: &DagPlan, history: &History) -> DagRun {
        let finished = history.deliveries.iter().filter_map(|(_, what)| match what {
            RunDelivery::Frame { frame, .. } => task_of(*frame),
            _ => None,
        });
        DagRun {
            schedule: Schedule::new(nodes(&dag.tasks), dag.pause),
            progress: vec![TaskProgress::default(); dag.tasks.len()],
            tasks: dag.tasks.clone(),
            results: HashMap::new(),
            numbers: CallNumbers::of(history),
            programs: TaskPrograms::new(finished.collect()),
            taken: 0,
            now: plan.start,
            ended_since_pause: Vec::new(),
            paused: None,
            said: VecDeque::new(),
            begun: Vec::new(),
            stopped: false,
            plan: Arc::clone(plan),
        }
    }

    /// The state that `history` leads to; nothing is run.
    pub(super) fn restore(plan: &Arc<Plan>, history: &History) -> Option<DagRun> {
        let mut dag = DagRun::new(plan, plan.dag()?, history);
        dag.begin();
        history.deliveries.iter().for_each(|(at, what)| dag.deliver(*at, what));
        Some(dag)
    }

    /// Starts the schedule.
    pub(super) fn begin(&mut self) {
        let steps = self.schedule.go_on();
        self.carry_out(steps);
        self.say_if_quiet();
    }

    /// Takes the events issued so far, in order.
    pub(super) fn take_events(&mut self) -> VecDeque<RunEvent<RunEnding>> {
        let said = std::mem::take(&mut self.said);
        if self.stopped { VecDeque::new() } else { said }
    }

    /// Gives waiting programs their workers, as many as the limit allows. They start in the order in which they were
    /// queued, so that programs which have done something come first after a resume too.
    pub(super) fn start_queued_programs(&mut self, frames: &TaskWorkers) {
        while !self.stopped
            && let Some(task) = self.programs.next_queued()
        {
            if let Some((program, frame)) = self.program(task).zip(self.programs.get_mut(task)) {
                frame.start(task, program, frames);
            }
        }
    }

    fn program(&self, task: usize) -> Option<pml_sandbox::SandboxProgram> {
        let TaskWork::Code(code) = &self.tasks[task].work else { return None };
        let arguments = self.given(code, &self.arguments(task).ok()?);
        // The program's clock starts at its turn, however late it starts or restarts.
        let began = self.programs.get(task)?.clock.start();
        let which = u64::from(frame_of(task));
        Some(self.plan.program_for_worker(&code.program, arguments.get(), &code.sees, which, began))
    }

    /// The arguments of a program; a capability also gets its defaults.
    fn given(&self, code: &TaskCode, arguments: &RawValue) -> Box<RawValue> {
        let nested = code.capability.and_then(|place| self.plan.nested.get(place as usize));
        nested.map_or_else(|| arguments.to_owned(), |nested| nested.with_defaults(arguments))
    }

    /// The capabilities started as tasks since the last call of this function.
    pub(super) fn take_started_capabilities(&mut self) -> Vec<StartedTask> {
        std::mem::take(&mut self.begun)
    }

    /// The layers completed since the last call of this function, and the number of layers.
    pub(super) fn take_completed_layers(&mut self) -> (Vec<usize>, usize) {
        (self.schedule.take_completed_layers(), self.schedule.layer_count())
    }

    /// The timeout of the attempt that makes `call`.
    pub(super) fn timeout(&self, call: u32) -> Option<Duration> {
        let (frame, _) = self.numbers.places.get(&call)?;
        let task = self.tasks.get(task_of(*frame)?)?;
        matches!(task.work, TaskWork::Tool { .. })
            .then_some(task.timeout_ms)
            .flatten()
            .map(Duration::from_millis)
    }

    /// Stops the timeout of a program while `call` waits for approval.
    pub(super) fn stop_clock(&mut self, call: u32) {
        let asker = self.numbers.places.get(&call).and_then(|(frame, _)| task_of(*frame));
        if let Some(frame) = asker.and_then(|task| self.programs.get_mut(task)) {
            frame.deadline = None;
        }
    }

    /// Restarts the timeouts of programs that waited for an answer.
    pub(super) fn restart_clocks(&mut self) {
        let now = Instant::now();
        for (task, frame) in self.programs.iter_mut() {
            if frame.deadline.is_none() && frame.has_worker() {
                frame.deadline = self.tasks[task].timeout_ms.map(|ms| now + Duration::from_millis(ms));
            }
        }
    }

    /// The earliest timeout of a program, and its task.
    pub(super) fn deadline(&self) -> Option<(Instant, usize)> {
        self.programs.deadline()
    }

    /// Handles a program that reached its timeout.
    pub(super) fn fail_timed_out(&mut self, task: usize) {
        let ms = self.tasks[task].timeout_ms.unwrap_or_default();
        let message = format!("task `{}` took longer than {ms} ms", self.tasks[task].id);
        self.end_frame(task, Err(CallFailure::new(ErrorCode::Timeout, message)));
    }

    /// Stops all programs.
    pub(super) fn stop(&mut self) {
        self.programs.stop();
        self.stopped = true;
    }

    /// The layer question that the run waits on.
    pub(super) fn paused_layer(&self) -> Option<LayerQuestion> {
        self.paused.clone()
    }

    /// Handles a delivery.
    pub(super) fn deliver(&mut self, at: i64, what: &RunDelivery) {
        self.now = self.now.max(at);
        match what {
            RunDelivery::Result { call, .. } | RunDelivery::Error { call, .. } => {
                self.answered(*call, at, what);
            }
            RunDelivery::Timer { timer } => self.timer(*timer, at),
            RunDelivery::Frame { frame, value, error, .. } => {
                self.frame_over(*frame, at, value.as_deref(), error.as_ref());
            }
            RunDelivery::Layer { replan, .. } => {
                self.taken += 1;
                self.paused = None;
                self.ended_since_pause.clear();
                if let Some(replan) = replan {
                    self.replan(replan);
                }
                let steps = self.schedule.go_on();
                self.carry_out(steps);
            }
            RunDelivery::Pause => {
                self.taken += 1;
                self.schedule.request_pause();
            }
        }
        self.say_if_quiet();
    }

    fn answered(&mut self, call: u32, at: i64, what: &RunDelivery) {
        let place = self.numbers.places.get(&call).copied();
        let Some((task, seq)) = place.and_then(|(frame, seq)| Some((task_of(frame)?, seq))) else {
            self.taken += 1;
            return;
        };
        if let Some(frame) = self.programs.get_mut(task) {
            let what = match what {
                RunDelivery::Result { value, .. } => {
                    pml_sandbox::DeliveryPayload::Result { call: seq, json: value.get().to_owned() }
                }
                RunDelivery::Error { error, .. } => {
                    pml_sandbox::DeliveryPayload::Error { call: seq, error: error.for_worker() }
                }
                _ => return,
            };
            frame.deliver(Delivery { now_ms: at, what });
            return;
        }
        self.taken += 1;
        if !matches!(self.tasks[task].work, TaskWork::Tool { .. }) {
            return;
        }
        let steps = match what {
            RunDelivery::Result { value, .. } => self.ended(task, at, Ok(value.clone()), false),
            RunDelivery::Error { error, .. } => {
                let again = FOR_NOW.contains(&error.code) && self.is_idempotent(task);
                self.ended(task, at, Err(error.clone()), again)
            }
            _ => Vec::new(),
        };
        self.carry_out(steps);
    }

    fn is_idempotent(&self, task: usize) -> bool {
        match self.tasks[task].work {
            TaskWork::Tool { handle } => self.plan.tools[handle as usize].idempotent,
            TaskWork::Code(_) => false,
        }
    }

    fn timer(&mut self, timer: u64, at: i64) {
        let frame = u32::try_from(timer >> 32).unwrap_or(0);
        if let Some(task) = task_of(frame) {
            match self.programs.get_mut(task) {
                Some(frame) => {
                    let timer = u32::try_from(timer & u64::from(u32::MAX)).unwrap_or(0);
                    frame.deliver(Delivery {
                        now_ms: at,
                        what: pml_sandbox::DeliveryPayload::Timer { timer },
                    });
                }
                None => self.taken += 1,
            }
            return;
        }
        self.taken += 1;
        if let Ok(task) = usize::try_from(timer / MOST_TRIES) {
            let steps = self.schedule.rested(task);
            self.carry_out(steps);
        }
    }

    fn frame_over(&mut self, frame: u32, at: i64, value: Option<&RawValue>, error: Option<&CallFailure>) {
        self.taken += 1;
        let Some(task) = task_of(frame) else { return };
        if let Some(frame) = self.programs.remove(task) {
            self.taken += frame.clock.delivered();
        }
        let end = match (value, error) {
            (Some(value), _) => Ok(value.to_owned()),
            (None, Some(error)) => Err(error.clone()),
            (None, None) => Ok(raw(&Value::Null)),
        };
        let steps = self.ended(task, at, end, false);
        self.carry_out(steps);
    }

    /// Handles the end of an attempt and returns the next steps.
    fn ended(
        &mut self,
        task: usize,
        at: i64,
        end: Result<Box<RawValue>, CallFailure>,
        again: bool,
    ) -> Vec<ScheduleStep> {
        let tried = match (&end, again) {
            (Ok(_), _) => AttemptOutcome::Succeeded,
            (Err(_), true) => AttemptOutcome::FailedTransiently,
            (Err(_), false) => AttemptOutcome::Failed,
        };
        let id = self.tasks[task].id.clone();
        let stood = &mut self.progress[task];
        stood.ended = Some(at);
        match end {
            Ok(value) => {
                stood.error = None;
                self.results.insert(id, value.clone());
                stood.value = Some(value);
            }
            Err(error) => {
                // Tasks that run despite the failure see the error.
                self.results
                    .insert(id, raw(&json!({ "error": { "code": error.code, "message": error.message } })));
                stood.error = Some(error);
            }
        }
        let steps = self.schedule.on_attempt_ended(task, tried);
        if self.schedule.end_of(task).is_some() {
            self.ended_since_pause.push(task);
        }
        steps
    }

    fn carry_out(&mut self, steps: Vec<ScheduleStep>) {
        let mut steps = VecDeque::from(steps);
        while let Some(step) = steps.pop_front() {
            match step {
                // A task that ends at once may let others start.
                ScheduleStep::Start { task, attempt } => steps.extend(self.start(task, attempt)),
                ScheduleStep::Rest { task, attempt, ms } => self.said.push_back(RunEvent::TimerSet {
                    timer: task as u64 * MOST_TRIES + u64::from(attempt),
                    delay_ms: ms,
                    from: Some(self.now),
                }),
                ScheduleStep::Pause { layer } => {
                    self.paused = Some(self.layer(layer));
                    self.said.push_back(RunEvent::Paused);
                }
                ScheduleStep::Over => {
                    let ending = self.ending();
                    self.said.push_back(RunEvent::Ended(ending));
                }
            }
        }
    }

    fn start(&mut self, task: usize, attempt: u32) -> Vec<ScheduleStep> {
        self.progress[task].begun.get_or_insert(self.now);
        let arguments = match self.arguments(task) {
            Ok(arguments) => arguments,
            Err(error) => return self.ended(task, self.now, Err(error), false),
        };
        match &self.tasks[task].work {
            TaskWork::Tool { handle } => {
                let handle = *handle;
                let Some(call) = self.number(frame_of(task), attempt) else {
                    return self.ended(task, self.now, Err(self.too_many_calls()), false);
                };
                let node = Some(self.tasks[task].node.to_string());
                let asks = self.plan.tools[handle as usize].asks.is_some();
                let issued = IssuedCall::new(call, (frame_of(task), handle), node, arguments.get(), asks);
                self.said.push_back(RunEvent::Issued(issued));
            }
            TaskWork::Code(_) if self.programs.is_finished(task) => {}
            TaskWork::Code(code) => {
                let begun = code.capability.map(|place| StartedTask {
                    frame: frame_of(task),
                    place,
                    node: self.tasks[task].node,
                    arguments: self.given(code, &arguments),
                    at: self.now,
                });
                self.begun.extend(begun);
                self.programs.queue(task, self.now);
            }
        }
        Vec::new()
    }

    /// The number for a call, if the run may make another one.
    fn number(&mut self, frame: u32, seq: u32) -> Option<u32> {
        let may =
            self.numbers.known.contains_key(&(frame, seq)) || self.numbers.last < self.plan.limits.calls;
        may.then(|| self.numbers.get(frame, seq))
    }

    fn too_many_calls(&self) -> CallFailure {
        let most = self.plan.limits.calls;
        let error = CallFailure::new(
            ErrorCode::ToolCallLimit,
            format!("all tasks together make more than {most} calls"),
        );
        CallFailure { hint: Some("call less often, or raise `limits.calls` in pml.toml".to_owned()), ..error }
    }

    fn arguments(&self, task: usize) -> Result<Box<RawValue>, CallFailure> {
        let result = |id: &str| self.results.get(id).map(|value| &**value);
        let given = fill_references(&self.tasks[task].given, &self.plan.arguments, &result).map_err(
            |unresolved| {
                CallFailure::new(
                    ErrorCode::Unresolved,
                    format!("task `{}`: {unresolved}", self.tasks[task].id),
                )
            },
        )?;
        let (size, most) = (given.get().len() as u64, self.plan.limits.argument_bytes);
        if size > most {
            let id = &self.tasks[task].id;
            let error = CallFailure::new(
                ErrorCode::TooLarge,
                format!("the arguments of task `{id}` have {size} bytes and may have {most}"),
            );
            let hint = "hand on less, or raise `limits.arguments` in pml.toml".to_owned();
            return Err(CallFailure { hint: Some(hint), ..error });
        }
        Ok(given)
    }

    /// Handles a message of a task's program. Returns the event, with the frame and node of the task, if it is not for
    /// the tasks.
    pub(super) fn on_frame_message(
        &mut self,
        task: usize,
        word: FrameMessage,
    ) -> Option<(u32, NodeId, WorkerEvent)> {
        // Messages that a stopped program sent before do not count either.
        let frame = self.programs.get_mut(task).filter(|frame| frame.has_worker())?;
        frame.hand_over();
        let seen = match word {
            FrameMessage::Started => {
                let timeout = self.tasks[task].timeout_ms.map(Duration::from_millis);
                frame.deadline = timeout.map(|timeout| Instant::now() + timeout);
                return None;
            }
            FrameMessage::Event(seen) => seen,
            FrameMessage::WorkerGone(trouble) => {
                if let (WorkerFailure::Fault(WorkerFault::Died { .. }), Some(again)) =
                    (&trouble, frame.restarted())
                {
                    self.programs.queue_again(task, again);
                    return None;
                }
                let error = frame::worker_call_failure(&self.plan, &trouble);
                self.end_frame(task, Err(error));
                return None;
            }
        };
        frame.has_acted |= matches!(seen, WorkerEvent::Call { .. } | WorkerEvent::Timer { .. });
        let number = u64::from(frame_of(task)) << 32;
        match seen {
            WorkerEvent::Call { call, frame: by, point, context, handle, arguments } => {
                let Some(number) = self.number(frame_of(task), call) else {
                    self.end_frame(task, Err(self.too_many_calls()));
                    return None;
                };
                let node = Some(self.tasks[task].node.to_string());
                let asks = self.plan.tools[handle as usize].asks.is_some();
                let issued = IssuedCall::new(number, (frame_of(task), handle), node, &arguments, asks);
                let within = Some(TaskCallSite { frame: by, order: call, point, context });
                self.said.push_back(RunEvent::Issued(IssuedCall { task_site: within, ..issued }));
            }
            WorkerEvent::Timer { timer, delay_ms } => {
                let from = Some(frame.clock.now());
                self.said.push_back(RunEvent::TimerSet { timer: number | u64::from(timer), delay_ms, from });
            }
            WorkerEvent::TimerCleared { timer } => {
                self.said.push_back(RunEvent::TimerCleared { timer: number | u64::from(timer) });
            }
            WorkerEvent::Quiet { taken, .. } => {
                frame.clock.on_quiet(taken);
                self.say_if_quiet();
            }
            WorkerEvent::Ended(ending) => {
                let end = self.outcome(task, &ending);
                self.end_frame(task, end);
            }
            other => return Some((frame_of(task), self.tasks[task].node, other)),
        }
        None
    }

    fn outcome(&self, task: usize, ended: &pml_sandbox::ProgramEnding) -> Result<Box<RawValue>, CallFailure> {
        let TaskWork::Code(code) = &self.tasks[task].work else { return Ok(raw(&Value::Null)) };
        frame::outcome(&self.plan, &code.program, ended)
    }

    fn end_frame(&mut self, task: usize, end: Result<Box<RawValue>, CallFailure>) {
        let (value, error) = match end {
            Ok(value) => (Some(value), None),
            Err(error) => (None, Some(error)),
        };
        if let Some(frame) = self.programs.get_mut(task) {
            frame.stop();
        }
        self.said.push_back(RunEvent::FrameOver(RunDelivery::Frame {
            frame: frame_of(task),
            value,
            error,
            called: Vec::new(),
        }));
        self.say_if_quiet();
    }

    /// The clock of a task's program, which is in the past during replay.
    pub(super) fn time_of(&self, task: usize) -> Option<i64> {
        self.programs.get(task).map(|frame| frame.clock.now())
    }

    /// The layer of each task, by node.
    pub(super) fn layers(&self) -> HashMap<NodeId, u32> {
        let layer = |task: usize| u32::try_from(self.schedule.layer_of(task)).unwrap_or(u32::MAX);
        self.tasks.iter().enumerate().map(|(place, task)| (task.node, layer(place))).collect()
    }

    /// The id of the task that a frame belongs to.
    pub(super) fn name_of(&self, frame: u32) -> &str {
        task_of(frame).and_then(|task| self.tasks.get(task)).map_or("", |task| task.id.as_str())
    }

    /// The tasks that come after the one whose failure a delivery tells; none if it tells of no failure.
    pub(super) fn tasks_after_failure(&self, what: &RunDelivery) -> Vec<usize> {
        let failed = match what {
            RunDelivery::Error { call, .. } => {
                let place = self.numbers.places.get(call).and_then(|(frame, _)| task_of(*frame));
                place.filter(|task| matches!(self.tasks[*task].work, TaskWork::Tool { .. }))
            }
            RunDelivery::Frame { frame, error: Some(_), .. } => task_of(*frame),
            _ => None,
        };
        let mut after: Vec<usize> = Vec::new();
        let mut open: Vec<usize> = failed.into_iter().collect();
        while let Some(before) = open.pop() {
            for (task, of_task) in self.tasks.iter().enumerate() {
                if of_task.after.contains(&before) && !after.contains(&task) {
                    after.push(task);
                    open.push(task);
                }
            }
        }
        after
    }

    /// The calls of the tasks that have not started and whose arguments are known, the next ones first. `may_write` says
    /// of a task that it may change something: what comes after it is not known before it has ended.
    pub(super) fn upcoming_calls(
        &self,
        may_write: impl Fn(&TaskWork) -> bool,
    ) -> impl Iterator<Item = UpcomingCall> {
        let mut waiting = self.schedule.waiting_tasks(&|task| may_write(&self.tasks[task].work));
        waiting.sort_by_key(|waiting| waiting.steps);
        waiting.into_iter().filter_map(|waiting| self.upcoming_call(waiting))
    }

    fn upcoming_call(&self, WaitingTask { task, steps }: WaitingTask) -> Option<UpcomingCall> {
        let TaskWork::Tool { handle } = self.tasks[task].work else { return None };
        // What a failed task returned is no value to read anything with.
        let failed = |on: &usize| self.progress[*on].error.is_some();
        if self.tasks[task].after.iter().any(failed) {
            return None;
        }
        let arguments = self.arguments(task).ok()?.get().to_owned();
        let mut from_results = false;
        let node = self.plan.structure.node(self.tasks[task].node);
        // A task that a replan added has no node; what its arguments come from is not known.
        match node.and_then(|node| node.kind.arguments()) {
            Some(given) => {
                given.visit_leaves(&mut |leaf| from_results |= matches!(leaf, Argument::Reference { .. }));
            }
            None => from_results = true,
        }
        Some(UpcomingCall { task, steps, handle, arguments, from_results })
    }

    /// Issues a quiet event if nothing happens before the next delivery.
    fn say_if_quiet(&mut self) {
        if self.programs.is_quiet() {
            let taken = self.programs.delivered() + self.taken;
            self.said.push_back(RunEvent::Quiet { taken });
        }
    }

    /// Replaces the tasks that have not run.
    fn replan(&mut self, replan: &Replan) {
        // A skipped task has not run; it is dropped or may run now.
        let end = |(place, task): (usize, &DagTask)| match task.dropped {
            true => Some(TaskEnd::Skipped),
            false if place < self.tasks.len() => {
                self.schedule.end_of(place).filter(|end| *end != TaskEnd::Skipped)
            }
            false => None,
        };
        let ends: Vec<Option<TaskEnd>> = replan.tasks.iter().enumerate().map(end).collect();
        self.plan = Arc::new(self.plan.replanned(replan));
        self.tasks.clone_from(&replan.tasks);
        self.progress.resize_with(self.tasks.len(), TaskProgress::default);
        self.schedule = self.schedule.with_tasks(nodes(&self.tasks), &ends);
    }
}

/// Runs the tasks of a plan with calls that are answered at once, and returns the number of calls. This measures what a
/// run computes apart from its calls. It is for plans without programs.
pub fn rehearse(plan: &Arc<Plan>) -> Option<u32> {
    let mut dag = DagRun::new(plan, plan.dag()?, &History::default());
    let mut calls = 0;
    dag.begin();
    loop {
        let said = dag.take_events();
        if said.is_empty() {
            return Some(calls);
        }
        for event in said {
            if let RunEvent::Issued(issued) = event {
                calls += 1;
                let value = raw(&issued.call);
                dag.deliver(
                    plan.start,
                    &RunDelivery::Result {
                        call: issued.call,
                        value,
                        parts: Vec::new(),
                        saved_ms: None,
                        age_ms: None,
                        not_ahead: None,
                    },
                );
            }
        }
    }
}

fn nodes(tasks: &[DagTask]) -> Vec<ScheduledTask> {
    let node = |task: &DagTask| ScheduledTask {
        after: task.after.clone(),
        safe_to_fail: task.safe_to_fail,
        retries: task.retries,
    };
    tasks.iter().map(node).collect()
}

#[cfg(test)]
mod tests;
