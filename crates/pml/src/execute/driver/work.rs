//! Where the calls of one run come from: a program in a worker, or the tasks of a DAG.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use pml_model::question::Layer;
use pml_sandbox::{Delivery, Event as Seen, Fault, What, Worker};
use tokio::sync::mpsc;

use super::super::Runs;
use super::super::dag::{Dag, Frames, Said};
use super::super::journal::{Delivered, History};
use crate::clock::now_ms;
use crate::plan::Plan;

/// A program or a DAG under way, with its timers.
pub(super) struct Work {
    worker: Option<Worker>,
    /// The tasks, where the run is one of tasks.
    pub(super) dag: Option<Box<Dag>>,
    pub(super) frames: Frames,
    frames_said: mpsc::UnboundedReceiver<Said>,
    /// When timers are due, and their numbers.
    timers: BTreeSet<(i64, u64)>,
    /// A worker has crashed before.
    pub(super) crashed: bool,
}

/// What the source of work has to say.
pub(super) enum Heard {
    /// The worker said something, or died.
    Worker(Result<Seen, Fault>),
    /// The program of a task said something.
    Task(Said),
    /// A task of the DAG has had its time.
    TaskLate(usize),
    /// A timer is due.
    Timer(u64),
}

impl Work {
    /// Nothing yet.
    pub(super) fn new(runs: Arc<Runs>) -> Work {
        let (frames, frames_said) = Frames::new(runs);
        Work { worker: None, dag: None, frames, frames_said, timers: BTreeSet::new(), crashed: false }
    }

    /// Starts the program of the plan in `worker`, or makes its tasks ready.
    pub(super) fn begin(&mut self, plan: &Arc<Plan>, worker: Option<Worker>, history: &History) {
        self.timers.clear();
        if let (Some(mut worker), Some(program)) = (worker, plan.program()) {
            worker.begin(&plan.for_worker(program));
            self.worker = Some(worker);
        }
        self.dag = plan.dag().map(|dag| Box::new(Dag::new(plan, dag, history)));
    }

    /// What is heard next. Nothing where nothing can be heard any more.
    pub(super) async fn next(&mut self, stopping: bool) -> Option<Heard> {
        let late = self.dag.as_ref().and_then(|dag| dag.deadline()).filter(|_| !stopping);
        let due = self.timers.first().map(|(at, _)| *at);
        tokio::select! {
            biased;
            seen = next_of(&mut self.worker) => Some(Heard::Worker(seen)),
            Some(said) = self.frames_said.recv() => Some(Heard::Task(said)),
            () = sleep_until(late.map(|(at, _)| at)) => late.map(|(_, task)| Heard::TaskLate(task)),
            () = sleep_until_ms(due) => self.timers.pop_first().map(|(_, timer)| Heard::Timer(timer)),
        }
    }

    /// When the run has to be awake for the sake of a task's time, in milliseconds since 1970.
    pub(super) fn awake_until(&self, now: i64) -> Option<i64> {
        let (at, _) = self.dag.as_ref()?.deadline()?;
        Some(now.saturating_add(ms_until(at)))
    }

    pub(super) fn set_timer(&mut self, timer: u64, at: i64) {
        self.timers.insert((at, timer));
    }

    pub(super) fn clear_timer(&mut self, timer: u64) {
        self.timers.retain(|(_, set)| *set != timer);
    }

    /// The program has ended, or its worker is gone.
    pub(super) fn forget_worker(&mut self) {
        self.worker = None;
    }

    /// Gives the program something.
    pub(super) fn deliver_to_worker(&mut self, at: i64, what: &Delivered) {
        if let Some(worker) = &mut self.worker {
            worker.deliver(&Delivery { now_ms: at, what: for_worker(what) });
        }
    }

    /// The layer of tasks after which it is waited, where it is.
    pub(super) fn paused(&self) -> Option<Layer> {
        self.dag.as_ref().and_then(|dag| dag.paused())
    }

    /// The time of tasks that waited for an answer counts again.
    pub(super) fn restart_clocks(&mut self) {
        if let Some(dag) = &mut self.dag {
            dag.restart_clocks();
        }
    }

    /// Ends all that computes for the run.
    pub(super) fn kill(&mut self) {
        self.worker = None;
        if let Some(dag) = &mut self.dag {
            dag.stop();
        }
    }
}

/// As a worker is given it.
pub(in crate::execute) fn for_worker(what: &Delivered) -> What {
    match what {
        Delivered::Result { call, value, .. } => What::Result { call: *call, json: value.get().to_owned() },
        Delivered::Error { call, error } => What::Error { call: *call, error: error.for_worker() },
        Delivered::Timer { timer } => What::Timer { timer: u32::try_from(*timer).unwrap_or(u32::MAX) },
        Delivered::Frame { .. } | Delivered::Layer { .. } | Delivered::Pause => {
            unreachable!("only the tasks of a DAG are given that")
        }
    }
}

fn ms_until(instant: Instant) -> i64 {
    i64::try_from(instant.saturating_duration_since(Instant::now()).as_millis()).unwrap_or(i64::MAX)
}

async fn next_of(worker: &mut Option<Worker>) -> Result<Seen, Fault> {
    match worker {
        Some(worker) => worker.next().await,
        None => std::future::pending().await,
    }
}

/// Waits until then; for ever where no time is given.
pub(super) async fn sleep_until(instant: Option<Instant>) {
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
