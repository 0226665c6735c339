//! The tasks of a DAG as a source of calls.
//!
//! Where a program in a worker asks for calls, [`Dag`] does: it is given what the run core delivers and says what it asks
//! for. It is deterministic, so a run that is taken up again is brought to where it was by giving it the same deliveries.
//! A task that is a program has a worker of its own; its end is a delivery too, so what such a task did is not gone
//! through again once it has ended.

mod frame;
mod numbers;
pub(crate) mod schedule;
mod told;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pml_analysis::dag::substitute;
use pml_model::json::raw;
use pml_model::question::Layer;
use pml_model::structure::NodeId;
use pml_sandbox::{Delivery, Event as Seen, Fault};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::journal::{CallError, Delivered, History};
use super::observe::Ending;
use super::run::{Event, Issued, Within};
use crate::plan::{DagPlan, DagTask, Plan, Replan, TaskCode, TaskWork};
use frame::{Frame, Trouble};
pub(super) use frame::{Frames, Said, Word};
use numbers::Numbers;
use schedule::{End, Node, Schedule, Step, Tried};

/// Errors after which an idempotent tool may work when it is called again.
const FOR_NOW: [&str; 5] = ["TIMEOUT", "SERVER_DOWN", "SERVER_STARTING", "DOWNSTREAM_DIED", "RATE_LIMITED"];
/// More tries than any task has.
const MOST_TRIES: u64 = 16;
/// How many programs of one run have workers at a time: the others of the process need some too.
const PROGRAMS_AT_ONCE: usize = 16;

/// The tasks of a run as they stand.
pub(super) struct Dag {
    plan: Arc<Plan>,
    tasks: Vec<DagTask>,
    schedule: Schedule,
    stood: Vec<Stood>,
    /// What references to tasks stand for.
    results: HashMap<String, Box<RawValue>>,
    numbers: Numbers,
    frames: HashMap<usize, Frame>,
    /// Programs whose end is recorded: they are not run again.
    finished: HashSet<usize>,
    /// Deliveries that are not a living program's, or were not taken by one that is gone.
    taken: u32,
    /// The time of the last delivery.
    now: i64,
    /// Tasks that have ended since somebody's word was last waited for.
    since: Vec<usize>,
    paused: Option<Layer>,
    said: VecDeque<Event<Ending>>,
    /// Programs that are to begin, the first first.
    wants: VecDeque<usize>,
    /// Capabilities that began as tasks, of which nobody was told yet.
    begun: Vec<Begun>,
    /// The run is not to go on.
    stopped: bool,
}

/// A capability that begins as a task.
pub(super) struct Begun {
    /// The frame of the task.
    pub(super) frame: u32,
    /// Which capability, by its place.
    pub(super) place: u32,
    pub(super) node: NodeId,
    /// What it is given, with its defaults.
    pub(super) arguments: Box<RawValue>,
    /// When it was its turn.
    pub(super) at: i64,
}

/// How a task stands.
#[derive(Debug, Clone, Default)]
struct Stood {
    begun: Option<i64>,
    ended: Option<i64>,
    value: Option<Box<RawValue>>,
    error: Option<CallError>,
}

/// The frame of a task; frame 0 is the DAG itself.
fn frame_of(task: usize) -> u32 {
    u32::try_from(task + 1).unwrap_or(u32::MAX)
}

fn task_of(frame: u32) -> Option<usize> {
    (frame as usize).checked_sub(1)
}

impl Dag {
    /// The tasks of `plan`, which `history` will be told to.
    pub(super) fn new(plan: &Arc<Plan>, dag: &DagPlan, history: &History) -> Dag {
        let finished = history.deliveries.iter().filter_map(|(_, what)| match what {
            Delivered::Frame { frame, .. } => task_of(*frame),
            _ => None,
        });
        Dag {
            schedule: Schedule::new(nodes(&dag.tasks), dag.pause),
            stood: vec![Stood::default(); dag.tasks.len()],
            tasks: dag.tasks.clone(),
            results: HashMap::new(),
            numbers: Numbers::of(history),
            frames: HashMap::new(),
            finished: finished.collect(),
            taken: 0,
            now: plan.start,
            since: Vec::new(),
            paused: None,
            said: VecDeque::new(),
            wants: VecDeque::new(),
            begun: Vec::new(),
            stopped: false,
            plan: Arc::clone(plan),
        }
    }

    /// As `history` left it; nothing is run.
    pub(super) fn as_it_stood(plan: &Arc<Plan>, history: &History) -> Option<Dag> {
        let mut dag = Dag::new(plan, plan.dag()?, history);
        dag.begin();
        history.deliveries.iter().for_each(|(at, what)| dag.deliver(*at, what));
        Some(dag)
    }

    /// Begins.
    pub(super) fn begin(&mut self) {
        let steps = self.schedule.go_on();
        self.carry_out(steps);
        self.say_if_quiet();
    }

    /// What is asked for, in this order.
    pub(super) fn said(&mut self) -> VecDeque<Event<Ending>> {
        let said = std::mem::take(&mut self.said);
        if self.stopped { VecDeque::new() } else { said }
    }

    /// Gives programs that are to begin their workers, as many as may have one. They begin in the order they were wanted
    /// in, so those that have done something come first also when the run is taken up again.
    pub(super) fn start_wanted(&mut self, frames: &Frames) {
        while !self.stopped
            && !self.is_full()
            && let Some(task) = self.wants.pop_front()
        {
            if let Some((program, frame)) = self.program(task).zip(self.frames.get_mut(&task)) {
                frame.start(task, program, frames);
            }
        }
    }

    fn is_full(&self) -> bool {
        self.frames.values().filter(|frame| frame.has_worker()).count() >= PROGRAMS_AT_ONCE
    }

    fn program(&self, task: usize) -> Option<pml_sandbox::Program> {
        let TaskWork::Code(code) = &self.tasks[task].work else { return None };
        let arguments = self.given(code, &self.arguments(task).ok()?);
        // Its time is the one at which it was its turn, however late it begins or begins again.
        let began = self.frames.get(&task)?.began();
        let which = u64::from(frame_of(task));
        Some(self.plan.program_for_worker(&code.program, arguments.get(), &code.sees, which, began))
    }

    /// What a program is given: a capability gets its defaults too.
    fn given(&self, code: &TaskCode, arguments: &RawValue) -> Box<RawValue> {
        let nested = code.capability.and_then(|place| self.plan.nested.get(place as usize));
        nested.map_or_else(|| arguments.to_owned(), |nested| nested.given(arguments))
    }

    /// The capabilities that have begun as tasks since this was last asked.
    pub(super) fn begun(&mut self) -> Vec<Begun> {
        std::mem::take(&mut self.begun)
    }

    /// How long the try of a task that makes `call` may take.
    pub(super) fn timeout(&self, call: u32) -> Option<Duration> {
        let (frame, _) = self.numbers.places.get(&call)?;
        let task = self.tasks.get(task_of(*frame)?)?;
        matches!(task.work, TaskWork::Tool { .. })
            .then_some(task.timeout_ms)
            .flatten()
            .map(Duration::from_millis)
    }

    /// A person's word is waited for before `call` is made; that is not the program's time.
    pub(super) fn stop_clock(&mut self, call: u32) {
        let asker = self.numbers.places.get(&call).and_then(|(frame, _)| task_of(*frame));
        if let Some(frame) = asker.and_then(|task| self.frames.get_mut(&task)) {
            frame.deadline = None;
        }
    }

    /// The word has come: programs that waited for it have their time anew.
    pub(super) fn restart_clocks(&mut self) {
        let now = Instant::now();
        for (task, frame) in &mut self.frames {
            if frame.deadline.is_none() && frame.has_worker() {
                frame.deadline = self.tasks[*task].timeout_ms.map(|ms| now + Duration::from_millis(ms));
            }
        }
    }

    /// When the first program is out of time, and which.
    pub(super) fn deadline(&self) -> Option<(Instant, usize)> {
        self.frames.iter().filter_map(|(task, frame)| Some((frame.deadline?, *task))).min()
    }

    /// A program is out of time.
    pub(super) fn out_of_time(&mut self, task: usize) {
        let ms = self.tasks[task].timeout_ms.unwrap_or_default();
        let message = format!("task `{}` took longer than {ms} ms", self.tasks[task].id);
        self.end_frame(task, Err(CallError::new("TIMEOUT", message)));
    }

    /// Ends all programs.
    pub(super) fn stop(&mut self) {
        self.frames.values_mut().for_each(Frame::stop);
        self.wants.clear();
        self.stopped = true;
    }

    /// What it waits for somebody's word on.
    pub(super) fn paused(&self) -> Option<Layer> {
        self.paused.clone()
    }

    /// Takes in a delivery.
    pub(super) fn deliver(&mut self, at: i64, what: &Delivered) {
        self.now = self.now.max(at);
        match what {
            Delivered::Result { call, .. } | Delivered::Error { call, .. } => self.answered(*call, at, what),
            Delivered::Timer { timer } => self.timer(*timer, at),
            Delivered::Frame { frame, value, error, .. } => {
                self.frame_over(*frame, at, value.as_deref(), error.as_ref());
            }
            Delivered::Layer { replan, .. } => {
                self.taken += 1;
                self.paused = None;
                self.since.clear();
                if let Some(replan) = replan {
                    self.replan(replan);
                }
                let steps = self.schedule.go_on();
                self.carry_out(steps);
            }
            Delivered::Pause => {
                self.taken += 1;
                self.schedule.pause();
            }
        }
        self.say_if_quiet();
    }

    fn answered(&mut self, call: u32, at: i64, what: &Delivered) {
        let place = self.numbers.places.get(&call).copied();
        let Some((task, seq)) = place.and_then(|(frame, seq)| Some((task_of(frame)?, seq))) else {
            self.taken += 1;
            return;
        };
        if let Some(frame) = self.frames.get_mut(&task) {
            let what = match what {
                Delivered::Result { value, .. } => {
                    pml_sandbox::What::Result { call: seq, json: value.get().to_owned() }
                }
                Delivered::Error { error, .. } => {
                    pml_sandbox::What::Error { call: seq, error: error.for_worker() }
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
            Delivered::Result { value, .. } => self.ended(task, at, Ok(value.clone()), false),
            Delivered::Error { error, .. } => {
                let again = FOR_NOW.contains(&error.code.as_str()) && self.is_idempotent(task);
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
            match self.frames.get_mut(&task) {
                Some(frame) => {
                    let timer = u32::try_from(timer & u64::from(u32::MAX)).unwrap_or(0);
                    frame.deliver(Delivery { now_ms: at, what: pml_sandbox::What::Timer { timer } });
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

    fn frame_over(&mut self, frame: u32, at: i64, value: Option<&RawValue>, error: Option<&CallError>) {
        self.taken += 1;
        let Some(task) = task_of(frame) else { return };
        if let Some(frame) = self.frames.remove(&task) {
            self.taken += frame.given;
        }
        self.wants.retain(|wanted| *wanted != task);
        let end = match (value, error) {
            (Some(value), _) => Ok(value.to_owned()),
            (None, Some(error)) => Err(error.clone()),
            (None, None) => Ok(raw(&Value::Null)),
        };
        let steps = self.ended(task, at, end, false);
        self.carry_out(steps);
    }

    /// A try of a task has ended; what is to be done then.
    fn ended(
        &mut self,
        task: usize,
        at: i64,
        end: Result<Box<RawValue>, CallError>,
        again: bool,
    ) -> Vec<Step> {
        let tried = match (&end, again) {
            (Ok(_), _) => Tried::Worked,
            (Err(_), true) => Tried::FailedForNow,
            (Err(_), false) => Tried::Failed,
        };
        let id = self.tasks[task].id.clone();
        let stood = &mut self.stood[task];
        stood.ended = Some(at);
        match end {
            Ok(value) => {
                stood.error = None;
                self.results.insert(id, value.clone());
                stood.value = Some(value);
            }
            Err(error) => {
                // Tasks that run all the same see what went wrong.
                self.results
                    .insert(id, raw(&json!({ "error": { "code": error.code, "message": error.message } })));
                stood.error = Some(error);
            }
        }
        let steps = self.schedule.tried(task, tried);
        if self.schedule.end_of(task).is_some() {
            self.since.push(task);
        }
        steps
    }

    fn carry_out(&mut self, steps: Vec<Step>) {
        let mut steps = VecDeque::from(steps);
        while let Some(step) = steps.pop_front() {
            match step {
                // One that ends at once may have others begin.
                Step::Start { task, attempt } => steps.extend(self.start(task, attempt)),
                Step::Rest { task, attempt, ms } => self.said.push_back(Event::TimerSet {
                    timer: task as u64 * MOST_TRIES + u64::from(attempt),
                    delay_ms: ms,
                    from: Some(self.now),
                }),
                Step::Pause { layer } => {
                    self.paused = Some(self.layer(layer));
                    self.said.push_back(Event::Paused);
                }
                Step::Over => {
                    let ending = self.ending();
                    self.said.push_back(Event::Ended(ending));
                }
            }
        }
    }

    fn start(&mut self, task: usize, attempt: u32) -> Vec<Step> {
        self.stood[task].begun.get_or_insert(self.now);
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
                let issued = Issued::new(call, (frame_of(task), handle), node, arguments.get(), asks);
                self.said.push_back(Event::Issued(issued));
            }
            TaskWork::Code(_) if self.finished.contains(&task) => {}
            TaskWork::Code(code) => {
                let begun = code.capability.map(|place| Begun {
                    frame: frame_of(task),
                    place,
                    node: self.tasks[task].node,
                    arguments: self.given(code, &arguments),
                    at: self.now,
                });
                self.begun.extend(begun);
                self.frames.insert(task, Frame::new(self.now));
                self.wants.push_back(task);
            }
        }
        Vec::new()
    }

    /// The number of a call, while the run may make another.
    fn number(&mut self, frame: u32, seq: u32) -> Option<u32> {
        let may =
            self.numbers.known.contains_key(&(frame, seq)) || self.numbers.last < self.plan.limits.calls;
        may.then(|| self.numbers.get(frame, seq))
    }

    fn too_many_calls(&self) -> CallError {
        let most = self.plan.limits.calls;
        let error =
            CallError::new("TOOL_CALL_LIMIT", format!("all tasks together make more than {most} calls"));
        CallError { hint: Some("call less often, or raise `limits.calls` in pml.toml".to_owned()), ..error }
    }

    fn arguments(&self, task: usize) -> Result<Box<RawValue>, CallError> {
        let result = |id: &str| self.results.get(id).map(|value| &**value);
        let given =
            substitute(&self.tasks[task].given, &self.plan.arguments, &result).map_err(|unresolved| {
                CallError::new("UNRESOLVED", format!("task `{}`: {unresolved}", self.tasks[task].id))
            })?;
        let (size, most) = (given.get().len() as u64, self.plan.limits.argument_bytes);
        if size > most {
            let id = &self.tasks[task].id;
            let error = CallError::new(
                "TOO_LARGE",
                format!("the arguments of task `{id}` have {size} bytes and may have {most}"),
            );
            let hint = "hand on less, or raise `limits.arguments` in pml.toml".to_owned();
            return Err(CallError { hint: Some(hint), ..error });
        }
        Ok(given)
    }

    /// What a program says. What is not for the tasks is given back, with the frame and the node of its task.
    pub(super) fn heard(&mut self, task: usize, word: Word) -> Option<(u32, NodeId, Seen)> {
        // What one that was stopped had said before does not count either.
        let frame = self.frames.get_mut(&task).filter(|frame| frame.has_worker())?;
        let seen = match word {
            Word::Began => {
                let timeout = self.tasks[task].timeout_ms.map(Duration::from_millis);
                frame.deadline = timeout.map(|timeout| Instant::now() + timeout);
                return None;
            }
            Word::Seen(seen) => seen,
            Word::Gone(trouble) => {
                if let (Trouble::Fault(Fault::Died { .. }), Some(again)) = (&trouble, frame.once_more()) {
                    self.frames.insert(task, again);
                    self.wants.push_front(task);
                    return None;
                }
                let error = frame::faulted(&self.plan, &trouble);
                self.end_frame(task, Err(error));
                return None;
            }
        };
        frame.touched |= matches!(seen, Seen::Call { .. } | Seen::Timer { .. });
        let number = u64::from(frame_of(task)) << 32;
        match seen {
            Seen::Call { call, frame: by, point, context, handle, arguments } => {
                let Some(number) = self.number(frame_of(task), call) else {
                    self.end_frame(task, Err(self.too_many_calls()));
                    return None;
                };
                let node = Some(self.tasks[task].node.to_string());
                let asks = self.plan.tools[handle as usize].asks.is_some();
                let issued = Issued::new(number, (frame_of(task), handle), node, &arguments, asks);
                let within = Some(Within { frame: by, order: call, point, context });
                self.said.push_back(Event::Issued(Issued { within, ..issued }));
            }
            Seen::Timer { timer, delay_ms } => {
                let from = Some(frame.time());
                self.said.push_back(Event::TimerSet { timer: number | u64::from(timer), delay_ms, from });
            }
            Seen::TimerCleared { timer } => {
                self.said.push_back(Event::TimerCleared { timer: number | u64::from(timer) });
            }
            Seen::Quiet { taken, .. } => {
                frame.taken = Some(taken);
                self.say_if_quiet();
            }
            Seen::Ended(ending) => {
                let end = self.outcome(task, &ending);
                self.end_frame(task, end);
            }
            other => return Some((frame_of(task), self.tasks[task].node, other)),
        }
        None
    }

    fn outcome(&self, task: usize, ended: &pml_sandbox::Ending) -> Result<Box<RawValue>, CallError> {
        let TaskWork::Code(code) = &self.tasks[task].work else { return Ok(raw(&Value::Null)) };
        frame::outcome(&self.plan, &code.program, ended)
    }

    fn end_frame(&mut self, task: usize, end: Result<Box<RawValue>, CallError>) {
        let (value, error) = match end {
            Ok(value) => (Some(value), None),
            Err(error) => (None, Some(error)),
        };
        if let Some(frame) = self.frames.get_mut(&task) {
            frame.stop();
        }
        self.said.push_back(Event::FrameOver(Delivered::Frame {
            frame: frame_of(task),
            value,
            error,
            called: Vec::new(),
        }));
        self.say_if_quiet();
    }

    /// The time of the program of a task, which is a past one while what it did is gone through again.
    pub(super) fn time_of(&self, task: usize) -> Option<i64> {
        self.frames.get(&task).map(Frame::time)
    }

    /// The layer of each task.
    pub(super) fn layers(&self) -> HashMap<NodeId, u32> {
        let layer = |task: usize| u32::try_from(self.schedule.layer_of(task)).unwrap_or(u32::MAX);
        self.tasks.iter().enumerate().map(|(place, task)| (task.node, layer(place))).collect()
    }

    /// The name of the task a frame is of.
    pub(super) fn name_of(&self, frame: u32) -> &str {
        task_of(frame).and_then(|task| self.tasks.get(task)).map_or("", |task| task.id.as_str())
    }

    /// Says that nobody does anything before the next delivery, where that is so. Programs for which there is no worker
    /// left do nothing until another ends.
    fn say_if_quiet(&mut self) {
        let full = self.is_full();
        let waits = |frame: &Frame| full && frame.is_new();
        let quiet = self.frames.values().all(|frame| frame.is_quiet() || waits(frame));
        if quiet && (full || self.wants.is_empty()) {
            let taken = self.frames.values().map(|frame| frame.given).sum::<u32>() + self.taken;
            self.said.push_back(Event::Quiet { taken });
        }
    }

    /// Puts other tasks in place of those that have not run.
    fn replan(&mut self, replan: &Replan) {
        // What was skipped has not run, and is dropped or may run now.
        let end = |(place, task): (usize, &DagTask)| match task.dropped {
            true => Some(End::Skipped),
            false if place < self.tasks.len() => {
                self.schedule.end_of(place).filter(|end| *end != End::Skipped)
            }
            false => None,
        };
        let ends: Vec<Option<End>> = replan.tasks.iter().enumerate().map(end).collect();
        self.plan = Arc::new(self.plan.replanned(replan));
        self.tasks.clone_from(&replan.tasks);
        self.stood.resize_with(self.tasks.len(), Stood::default);
        self.schedule = self.schedule.anew(nodes(&self.tasks), &ends);
    }
}

/// Goes through the tasks of a plan with calls that are answered at once, and gives how many there were: what a run of
/// them computes, apart from the calls. It is for plans that run no programs.
pub(crate) fn rehearse(plan: &Arc<Plan>) -> Option<u32> {
    let mut dag = Dag::new(plan, plan.dag()?, &History::default());
    let mut calls = 0;
    dag.begin();
    loop {
        let said = dag.said();
        if said.is_empty() {
            return Some(calls);
        }
        for event in said {
            if let Event::Issued(issued) = event {
                calls += 1;
                let value = raw(&issued.call);
                dag.deliver(plan.start, &Delivered::Result { call: issued.call, value, parts: Vec::new() });
            }
        }
    }
}

fn nodes(tasks: &[DagTask]) -> Vec<Node> {
    let node = |task: &DagTask| Node {
        after: task.after.clone(),
        safe_to_fail: task.safe_to_fail,
        retries: task.retries,
    };
    tasks.iter().map(node).collect()
}

#[cfg(test)]
mod tests;
