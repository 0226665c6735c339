//! The tasks of a DAG as a source of calls.
//!
//! Where a program in a worker asks for calls, [`Dag`] does: it is given what the run core delivers and says what it asks
//! for. It is deterministic, so a run that is taken up again is brought to where it was by giving it the same deliveries.
//! A task that is a program has a worker of its own; its end is a delivery too, so what such a task did is not gone
//! through again once it has ended.

mod frame;
pub(crate) mod schedule;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pml_analysis::dag::substitute;
use pml_model::json::{Fields, raw};
use pml_model::question::{Layer, LayerResult};
use pml_sandbox::{Delivery, Event as Seen};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::journal::{CallError, Delivered, History};
use super::observe::Ending;
use super::plan::{DagPlan, DagTask, Plan, Replan, TaskWork};
use super::report::{Failure, preview};
use super::results::Tasks;
use super::run::{Event, Issued};
use frame::Frame;
pub(super) use frame::{Frames, Said, Trouble};
use schedule::{End, Node, Schedule, Step, Tried};

/// Errors after which an idempotent tool may work when it is called again.
const FOR_NOW: [&str; 5] = ["TIMEOUT", "SERVER_DOWN", "SERVER_STARTING", "DOWNSTREAM_DIED", "RATE_LIMITED"];
/// More tries than any task has.
const MOST_TRIES: u64 = 16;

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
    paused: Option<Layer>,
    said: VecDeque<Event<Ending>>,
    /// Programs that are to begin.
    wants: Vec<usize>,
}

/// How a task stands.
#[derive(Debug, Clone, Default)]
struct Stood {
    begun: Option<i64>,
    ended: Option<i64>,
    value: Option<Box<RawValue>>,
    error: Option<CallError>,
}

/// The numbers of calls: a call has the number it was recorded with, whichever order they are asked for in.
#[derive(Debug, Default)]
struct Numbers {
    known: HashMap<(u32, u32), u32>,
    places: HashMap<u32, (u32, u32)>,
    last: u32,
}

impl Numbers {
    fn of(history: &History) -> Numbers {
        let mut numbers = Numbers::default();
        let mut asked: HashMap<u32, u32> = HashMap::new();
        for call in &history.calls {
            // The calls of one task are recorded in their order.
            let seq = asked.entry(call.frame).or_default();
            *seq += 1;
            numbers.get(call.frame, *seq);
        }
        numbers
    }

    fn get(&mut self, frame: u32, seq: u32) -> u32 {
        let next = self.last + 1;
        let number = *self.known.entry((frame, seq)).or_insert(next);
        if number == next {
            self.last = next;
            self.places.insert(number, (frame, seq));
        }
        number
    }
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
            schedule: Schedule::new(nodes(&dag.tasks), &[], dag.pause),
            stood: vec![Stood::default(); dag.tasks.len()],
            tasks: dag.tasks.clone(),
            results: HashMap::new(),
            numbers: Numbers::of(history),
            frames: HashMap::new(),
            finished: finished.collect(),
            taken: 0,
            now: plan.start,
            paused: None,
            said: VecDeque::new(),
            wants: Vec::new(),
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
    pub(super) fn said(&mut self) -> impl Iterator<Item = Event<Ending>> {
        std::mem::take(&mut self.said).into_iter()
    }

    /// Gives programs that are to begin their workers.
    pub(super) fn start_wanted(&mut self, frames: &Frames) {
        for task in std::mem::take(&mut self.wants) {
            let Some(program) = self.program(task) else { continue };
            let timeout = self.tasks[task].timeout_ms.map(|ms| Instant::now() + Duration::from_millis(ms));
            let frame = self.frames.entry(task).or_insert_with(|| Frame::new(self.now, timeout));
            frame.start(task, program, frames);
        }
    }

    fn program(&self, task: usize) -> Option<pml_sandbox::Program> {
        let TaskWork::Code(code) = &self.tasks[task].work else { return None };
        let arguments = self.arguments(task).ok()?;
        Some(self.plan.program_for_worker(
            &code.program,
            arguments.get(),
            &code.tools,
            u64::from(frame_of(task)),
            self.now,
        ))
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
            Delivered::Frame { frame, value, error } => {
                self.frame_over(*frame, at, value.as_deref(), error.as_ref());
            }
            Delivered::Layer { replan, .. } => {
                self.taken += 1;
                self.paused = None;
                if let Some(replan) = replan {
                    self.replan(replan);
                }
                let steps = self.schedule.go_on();
                self.carry_out(steps);
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
        match what {
            Delivered::Result { value, .. } => self.ended(task, at, Ok(value.clone()), false),
            Delivered::Error { error, .. } => {
                let again = FOR_NOW.contains(&error.code.as_str()) && self.is_idempotent(task);
                self.ended(task, at, Err(error.clone()), again);
            }
            _ => {}
        }
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
        self.ended(task, at, end, false);
    }

    /// A try of a task has ended.
    fn ended(&mut self, task: usize, at: i64, end: Result<Box<RawValue>, CallError>, again: bool) {
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
        self.carry_out(steps);
    }

    fn carry_out(&mut self, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Start { task, attempt } => self.start(task, attempt),
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

    fn start(&mut self, task: usize, attempt: u32) {
        self.stood[task].begun.get_or_insert(self.now);
        let arguments = match self.arguments(task) {
            Ok(arguments) => arguments,
            Err(error) => return self.ended(task, self.now, Err(error), false),
        };
        match self.tasks[task].work {
            TaskWork::Tool { handle } => {
                let call = self.numbers.get(frame_of(task), attempt);
                let node = Some(self.tasks[task].node.to_string());
                let asks = self.plan.tools[handle as usize].asks.is_some();
                let issued = Issued::new(call, (frame_of(task), handle), node, arguments.get(), asks);
                self.said.push_back(Event::Issued(issued));
            }
            TaskWork::Code(_) if self.finished.contains(&task) => {}
            TaskWork::Code(_) => {
                self.frames.insert(task, Frame::new(self.now, None));
                self.wants.push(task);
            }
        }
    }

    fn arguments(&self, task: usize) -> Result<Box<RawValue>, CallError> {
        let result = |id: &str| self.results.get(id).map(|value| &**value);
        substitute(&self.tasks[task].given, &self.plan.arguments, &result).map_err(|unresolved| {
            CallError::new("UNRESOLVED", format!("task `{}`: {unresolved}", self.tasks[task].id))
        })
    }

    /// What a program says.
    pub(super) fn heard(&mut self, task: usize, said: Result<Seen, Trouble>) -> Option<Seen> {
        let frame = self.frames.get_mut(&task)?;
        let seen = match said {
            Ok(seen) => seen,
            Err(fault) => {
                let error = frame::faulted(&self.plan, &fault);
                self.end_frame(task, Err(error));
                return None;
            }
        };
        let number = u64::from(frame_of(task)) << 32;
        match seen {
            Seen::Call { call, handle, arguments, .. } => {
                let number = self.numbers.get(frame_of(task), call);
                let node = Some(self.tasks[task].node.to_string());
                let asks = self.plan.tools[handle as usize].asks.is_some();
                let issued = Issued::new(number, (frame_of(task), handle), node, &arguments, asks);
                self.said.push_back(Event::Issued(issued));
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
            other => return Some(other),
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
        self.said.push_back(Event::FrameOver(Delivered::Frame { frame: frame_of(task), value, error }));
    }

    /// Nobody does anything before the next delivery.
    fn say_if_quiet(&mut self) {
        if self.frames.values().all(Frame::is_quiet) && self.wants.is_empty() {
            let taken = self.frames.values().map(|frame| frame.given).sum::<u32>() + self.taken;
            self.said.push_back(Event::Quiet { taken });
        }
    }

    fn layer(&self, index: usize) -> Layer {
        let of_layer =
            |task: &usize| self.schedule.layer_of(*task) == index && self.stood[*task].ended.is_some();
        Layer {
            layer_index: u32::try_from(index).unwrap_or(u32::MAX),
            total_layers: u32::try_from(self.schedule.layers()).unwrap_or(u32::MAX),
            results: (0..self.tasks.len()).filter(of_layer).map(|task| self.told(task)).collect(),
            next: self.schedule.next().into_iter().map(|task| self.tasks[task].id.clone()).collect(),
        }
    }

    /// What there is to tell of each task.
    pub(super) fn outcomes(&self) -> Vec<LayerResult> {
        (0..self.tasks.len()).filter(|task| !self.tasks[*task].dropped).map(|task| self.told(task)).collect()
    }

    /// The tasks and which of them have run.
    pub(super) fn into_tasks(self) -> Tasks {
        let ends: Vec<Option<End>> = (0..self.tasks.len()).map(|task| self.schedule.end_of(task)).collect();
        Tasks {
            has_run: ends.iter().map(|end| matches!(end, Some(End::Done | End::Failed))).collect(),
            failed: ends.iter().map(|end| *end == Some(End::Failed)).collect(),
            tools: self.plan.tools.clone(),
            limits: self.plan.limits,
            tasks: self.tasks,
        }
    }

    fn told(&self, task: usize) -> LayerResult {
        let stood = &self.stood[task];
        let status = match self.schedule.end_of(task) {
            Some(End::Done) => "success",
            Some(End::Failed) => "error",
            Some(End::Skipped) => "skipped",
            None if stood.begun.is_some() => "running",
            None => "waiting",
        };
        let shown = match (&stood.value, &stood.error) {
            (_, Some(error)) => Some(format!("{}: {}", error.code, error.message)),
            (Some(value), None) => Some(value.get().to_owned()),
            (None, None) => None,
        };
        LayerResult {
            task_id: self.tasks[task].id.clone(),
            status: status.to_owned(),
            execution_time_ms: stood.begun.zip(stood.ended).map(|(begun, ended)| ended - begun),
            result_preview: shown.as_deref().map(preview),
            result_size: stood.value.as_ref().map(|value| value.get().len()),
        }
    }

    /// The result of a task, or its error.
    pub(super) fn result(&self, id: &str) -> Option<Result<&RawValue, &CallError>> {
        let is_it = |task: &DagTask| !task.dropped && (task.id == id || task.node.to_string() == id);
        let task = self.tasks.iter().position(is_it)?;
        match &self.stood[task] {
            Stood { value: Some(value), error: None, .. } => Some(Ok(value)),
            Stood { error: Some(error), .. } => Some(Err(error)),
            Stood { .. } => None,
        }
    }

    /// The ids of the tasks.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.tasks.iter().filter(|task| !task.dropped).map(|task| task.id.as_str())
    }

    /// What came of it all: the results of those tasks that no other waits for.
    fn ending(&self) -> Ending {
        let failed = (0..self.tasks.len())
            .find(|task| self.schedule.end_of(*task) == Some(End::Failed) && !self.tasks[*task].safe_to_fail);
        if let Some(task) = failed {
            return Ending::Failed(self.failure(task));
        }
        let kept = |task: &usize| !self.tasks[*task].dropped;
        let waited_for: HashSet<usize> = (0..self.tasks.len())
            .filter(kept)
            .flat_map(|task| self.tasks[task].after.iter().copied())
            .collect();
        let last = (0..self.tasks.len()).filter(kept).filter(|task| !waited_for.contains(task));
        let results: Vec<(&str, &RawValue)> = last
            .filter_map(|task| {
                let id = self.tasks[task].id.as_str();
                Some((id, &**self.results.get(id)?))
            })
            .collect();
        if let ([(_, value)], true) = (results.as_slice(), self.plan.dag().is_some_and(|dag| dag.single)) {
            return Ending::Value(value.get().to_owned());
        }
        let mut object = Fields::default();
        results.into_iter().for_each(|(id, value)| object.set(id.to_owned(), value.to_owned()));
        Ending::Value(object.to_raw().get().to_owned())
    }

    fn failure(&self, task: usize) -> Failure {
        let skipped =
            |task: &usize| self.schedule.end_of(*task) == Some(End::Skipped) && !self.tasks[*task].dropped;
        let skipped = (0..self.tasks.len()).filter(skipped).count();
        let skipped = match skipped {
            0 => String::new(),
            1 => "; 1 task that waits for it was not run".to_owned(),
            more => format!("; {more} tasks that wait for it were not run"),
        };
        let fallback = CallError::new("UNKNOWN", "it does not say why".to_owned());
        let error = self.stood[task].error.as_ref().unwrap_or(&fallback);
        let mut failure = Failure::new(
            &error.code,
            format!("task `{}` failed: {}{skipped}", self.tasks[task].id, error.message),
        );
        failure.hint.clone_from(&error.hint);
        failure.node_id = Some(self.tasks[task].node.to_string());
        failure
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
        let pause = self.plan.dag().map(|dag| dag.pause).unwrap_or_default();
        self.schedule = Schedule::new(nodes(&self.tasks), &ends, pause);
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
