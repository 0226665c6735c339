//! The source of calls of one run: a program in a worker, or the tasks of a DAG.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use pml_model::question::LayerQuestion;
use pml_sandbox::{Delivery, Worker, WorkerEvent, WorkerFault};
use tokio::sync::mpsc;

use super::super::RunRegistry;
use super::super::dag::{DagRun, FrameEvent, TaskWorkers};
use super::super::journal::History;
use crate::clock::now_ms;
use crate::execute::delivery::RunDelivery;
use crate::plan::Plan;

/// A program or a DAG under way, with its timers.
pub(in crate::execute) struct WorkSource {
    worker: Option<Worker>,
    /// The tasks; `None` unless the run is a DAG.
    pub(in crate::execute) dag: Option<Box<DagRun>>,
    pub(in crate::execute) frames: TaskWorkers,
    frames_said: mpsc::Receiver<FrameEvent>,
    /// The due times of timers, with their numbers.
    timers: BTreeSet<(i64, u64)>,
    /// Whether a worker has crashed before.
    pub(in crate::execute) crashed: bool,
}

/// An event from the source of calls.
pub(in crate::execute) enum WorkEvent {
    /// The worker sent an event, or failed.
    Worker(Result<WorkerEvent, WorkerFault>),
    /// The program of a task sent a message.
    Task(FrameEvent),
    /// A task of the DAG reached its timeout.
    TaskTimedOut(usize),
    /// A timer is due.
    Timer(u64),
}

impl WorkSource {
    /// An empty source.
    pub(in crate::execute) fn new(runs: Arc<RunRegistry>) -> WorkSource {
        let (frames, frames_said) = TaskWorkers::new(runs);
        WorkSource { worker: None, dag: None, frames, frames_said, timers: BTreeSet::new(), crashed: false }
    }

    /// Starts the program of the plan in `worker`, or prepares its tasks.
    pub(in crate::execute) fn begin(&mut self, plan: &Arc<Plan>, worker: Option<Worker>, history: &History) {
        self.timers.clear();
        self.frames.key = plan.key;
        if let (Some(mut worker), Some(program)) = (worker, plan.program()) {
            self.frames.meter(&mut worker);
            worker.begin_program(&plan.for_worker(program));
            self.worker = Some(worker);
        }
        self.dag = plan.dag().map(|dag| Box::new(DagRun::new(plan, dag, history)));
    }

    /// The next event; `None` if none can come any more.
    pub(in crate::execute) async fn next(&mut self, stopping: bool) -> Option<WorkEvent> {
        let late = self.dag.as_ref().and_then(|dag| dag.deadline()).filter(|_| !stopping);
        let due = self.timers.first().map(|(at, _)| *at);
        tokio::select! {
            biased;
            seen = next_of(&mut self.worker) => Some(WorkEvent::Worker(seen)),
            Some(said) = self.frames_said.recv() => Some(WorkEvent::Task(said)),
            () = sleep_until(late.map(|(at, _)| at)) => late.map(|(_, task)| WorkEvent::TaskTimedOut(task)),
            () = sleep_until_ms(due) => self.timers.pop_first().map(|(_, timer)| WorkEvent::Timer(timer)),
        }
    }

    /// Until when the run must stay awake for the timeout of a task, in milliseconds since the Unix epoch.
    pub(in crate::execute) fn awake_until(&self, now: i64) -> Option<i64> {
        let (at, _) = self.dag.as_ref()?.deadline()?;
        Some(now.saturating_add(ms_until(at)))
    }

    pub(in crate::execute) fn set_timer(&mut self, timer: u64, at: i64) {
        self.timers.insert((at, timer));
    }

    pub(in crate::execute) fn clear_timer(&mut self, timer: u64) {
        self.timers.retain(|(_, set)| *set != timer);
    }

    /// Drops the worker, after the program ended or the worker failed.
    pub(in crate::execute) fn forget_worker(&mut self) {
        self.worker = None;
    }

    /// Makes a delivery to the program.
    pub(in crate::execute) fn deliver_to_worker(&mut self, at: i64, what: &RunDelivery) {
        if let Some(worker) = &mut self.worker {
            worker.deliver(&Delivery { now_ms: at, what: what.for_worker() });
        }
    }

    /// The layer after which the run is paused; `None` if it is not.
    pub(in crate::execute) fn paused_layer(&self) -> Option<LayerQuestion> {
        self.dag.as_ref().and_then(|dag| dag.paused_layer())
    }

    /// Restarts the timeouts of tasks that waited for an answer.
    pub(in crate::execute) fn restart_clocks(&mut self) {
        if let Some(dag) = &mut self.dag {
            dag.restart_clocks();
        }
    }

    /// Ends everything that computes for the run.
    pub(in crate::execute) fn kill(&mut self) {
        self.worker = None;
        if let Some(dag) = &mut self.dag {
            dag.stop();
        }
    }
}

fn ms_until(instant: Instant) -> i64 {
    i64::try_from(instant.saturating_duration_since(Instant::now()).as_millis()).unwrap_or(i64::MAX)
}

async fn next_of(worker: &mut Option<Worker>) -> Result<WorkerEvent, WorkerFault> {
    match worker {
        Some(worker) => worker.next_event().await,
        None => std::future::pending().await,
    }
}

/// Sleeps until `instant`; for ever if that is `None`.
pub(in crate::execute) async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}

async fn sleep_until_ms(at: Option<i64>) {
    match at {
        Some(at) => {
            let wait = u64::try_from(at.saturating_sub(now_ms())).unwrap_or(0);
            tokio::time::sleep(std::time::Duration::from_millis(wait)).await;
        }
        None => std::future::pending().await,
    }
}
