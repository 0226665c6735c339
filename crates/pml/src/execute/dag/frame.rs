//! The worker of a DAG task that is a program.

use pml_model::ErrorCode;
use pml_model::KeyId;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pml_analysis::InstrumentedProgram;
use pml_model::json::raw;
use pml_sandbox::{Delivery, ExceededLimit, ProgramEnding, Worker, WorkerEvent, WorkerFault};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_util::task::AbortOnDropHandle;

use crate::execute::RunRegistry;
use crate::execute::delivery::CallFailure;
use crate::execute::ending::{fault_failure as failed, out_of_memory};
use crate::execute::program_clock::ProgramClock;
use crate::execute::{PATIENCE, renew_workers, take_worker};
use crate::plan::Plan;
use crate::problem::Problem;

/// 100 ms: the pause before a worker is requested again if too many requests wait for one.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// The number of messages of a run's task programs that may queue for the driver; further ones block their workers.
const UNHEARD: usize = 64;
/// The number of deliveries that may be in flight to one worker. Further ones wait with the driver, which sends them
/// when it next receives a message from the worker: a worker reports when it has taken its deliveries.
const DELIVERIES: usize = 256;

/// A message of a task's worker: the index of the task, and the message.
pub(in crate::execute) type FrameEvent = (usize, FrameMessage);

/// A message of a worker.
pub(in crate::execute) enum FrameMessage {
    /// The program has started: its timeout runs from here.
    Started,
    /// An event of the program.
    Event(WorkerEvent),
    /// The worker has ended or could not be had.
    WorkerGone(WorkerFailure),
}

/// Why a program has no worker.
pub(in crate::execute) enum WorkerFailure {
    /// Its worker failed.
    Fault(WorkerFault),
    /// No worker was available.
    NoWorker(Problem),
}

/// The source of workers and the channel for their messages.
#[derive(Clone)]
pub(in crate::execute) struct TaskWorkers {
    runs: Arc<RunRegistry>,
    say: mpsc::Sender<FrameEvent>,
    /// The key of the run.
    pub(in crate::execute) key: Option<KeyId>,
}

impl TaskWorkers {
    pub(in crate::execute) fn new(runs: Arc<RunRegistry>) -> (TaskWorkers, mpsc::Receiver<FrameEvent>) {
        let (say, said) = mpsc::channel(UNHEARD);
        (TaskWorkers { runs, say, key: None }, said)
    }

    /// Has the processor time of a worker counted against the budget of the key.
    pub(in crate::execute) fn meter(&self, worker: &mut Worker) {
        if self.key.is_some() {
            let (keys, key) = (Arc::clone(&self.runs.keys), self.key);
            worker.report_cpu_to(move |used| keys.count_cpu(key, used));
        }
    }
}

/// A task program under way.
pub(super) struct TaskFrame {
    deliver: Option<mpsc::Sender<Delivery>>,
    /// The deliveries that have not been sent to its worker yet.
    waiting: VecDeque<Delivery>,
    pub(super) clock: ProgramClock,
    pub(super) deadline: Option<Instant>,
    work: Option<AbortOnDropHandle<()>>,
    /// Whether it has issued anything.
    pub(super) has_acted: bool,
    /// Whether it was started before and its worker died.
    pub(super) is_restart: bool,
    over: bool,
}

impl TaskFrame {
    pub(super) fn new(now: i64) -> TaskFrame {
        TaskFrame {
            deliver: None,
            waiting: VecDeque::new(),
            clock: ProgramClock::new(now),
            deadline: None,
            work: None,
            has_acted: false,
            is_restart: false,
            over: false,
        }
    }

    /// The same program in another worker; only once, and only if it has issued nothing yet.
    pub(super) fn restarted(&self) -> Option<TaskFrame> {
        let untouched = !self.has_acted && !self.is_restart && self.clock.delivered() == 0;
        untouched.then(|| TaskFrame { is_restart: true, ..TaskFrame::new(self.clock.start()) })
    }

    /// Starts the program. A separate task waits for the worker, so that nothing else is blocked. That task ends with
    /// the frame, and is joined with the drivers.
    pub(super) fn start(&mut self, task: usize, program: pml_sandbox::SandboxProgram, frames: &TaskWorkers) {
        let deliveries = self.attach();
        let workers = frames.clone();
        let (runs, say) = (Arc::clone(&frames.runs), frames.say.clone());
        if self.is_restart {
            renew_workers(&runs);
        }
        let drivers = frames.runs.drivers.clone();
        self.work = Some(AbortOnDropHandle::new(drivers.spawn(async move {
            match worker_for(&runs).await {
                Ok(mut worker) => {
                    workers.meter(&mut worker);
                    work(worker, &program, deliveries, task, &say).await;
                }
                // A closed channel means that the program is no longer wanted.
                Err(problem) => {
                    drop(say.send((task, FrameMessage::WorkerGone(WorkerFailure::NoWorker(problem)))).await);
                }
            }
        })));
    }

    /// The channel of its deliveries, which starts with the earlier ones.
    pub(super) fn attach(&mut self) -> mpsc::Receiver<Delivery> {
        let (deliver, deliveries) = mpsc::channel(DELIVERIES);
        self.deliver = Some(deliver);
        self.hand_over();
        deliveries
    }

    /// Sends its worker as many waiting deliveries as fit. It never blocks: the driver serves other programs too.
    pub(super) fn hand_over(&mut self) {
        let Some(deliver) = &self.deliver else { return };
        while let Some(next) = self.waiting.pop_front() {
            match deliver.try_send(next) {
                Ok(()) => {}
                Err(TrySendError::Full(next)) => return self.waiting.push_front(next),
                // A worker that is gone has reported so, or will.
                Err(TrySendError::Closed(_)) => return self.waiting.clear(),
            }
        }
    }

    /// Whether it has a worker, or waits for one.
    pub(super) fn has_worker(&self) -> bool {
        self.deliver.is_some()
    }

    /// Whether it has not started, in this or another process.
    pub(super) fn is_new(&self) -> bool {
        self.deliver.is_none() && self.clock.delivered() == 0
    }

    pub(super) fn deliver(&mut self, delivery: Delivery) {
        self.clock.on_delivery(delivery.now_ms);
        self.waiting.push_back(delivery);
        self.hand_over();
    }

    /// Ends its worker; its further messages do not count.
    pub(super) fn stop(&mut self) {
        self.deliver = None;
        self.work = None;
        self.deadline = None;
        self.over = true;
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.over || self.clock.is_quiet()
    }
}

/// A worker, however long that takes: a run that reaches its deadline ends without it.
async fn worker_for(runs: &RunRegistry) -> Result<Worker, Problem> {
    loop {
        match take_worker(runs, PATIENCE).await {
            Err(busy) if busy.code == ErrorCode::Busy => tokio::time::sleep(ASK_AGAIN).await,
            got => return got,
        }
    }
}

/// Passes deliveries to a worker and its messages to the driver, until it has ended or is no longer wanted. Deliveries
/// are accepted even while its messages are blocked; nothing more is read from the worker meanwhile.
async fn work(
    mut worker: Worker,
    program: &pml_sandbox::SandboxProgram,
    mut deliveries: mpsc::Receiver<Delivery>,
    task: usize,
    say: &mpsc::Sender<FrameEvent>,
) {
    worker.begin_program(program);
    let (mut unheard, mut last) = (Some(FrameMessage::Started), false);
    loop {
        tokio::select! {
            delivery = deliveries.recv() => match delivery {
                Some(delivery) => worker.deliver(&delivery),
                None => return,
            },
            room = say.reserve(), if unheard.is_some() => {
                let (Ok(room), Some(word)) = (room, unheard.take()) else { return };
                room.send((task, word));
                if last {
                    return;
                }
            }
            seen = worker.next_event(), if unheard.is_none() => {
                last = matches!(seen, Err(_) | Ok(WorkerEvent::Ended(_)));
                unheard = Some(seen.map_or_else(|fault| FrameMessage::WorkerGone(WorkerFailure::Fault(fault)), FrameMessage::Event));
            }
        }
    }
}

/// The outcome of a program.
pub(super) fn outcome(
    plan: &Plan,
    program: &InstrumentedProgram,
    ended: &ProgramEnding,
) -> Result<Box<RawValue>, CallFailure> {
    let thrown = |thrown: &pml_sandbox::ThrownError| {
        let code = thrown.code.unwrap_or(ErrorCode::ProgramError);
        let line = crate::plan::source_line(program, thrown.line, thrown.column);
        let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        let message = match (thrown.name.as_str(), thrown.message.as_str()) {
            ("ToolError", message) => message.to_owned(),
            (name, "") => name.to_owned(),
            (name, message) => format!("{name}: {message}"),
        };
        CallFailure::new(code, format!("{place}{message}"))
    };
    match ended {
        ProgramEnding::Value(json) => {
            Ok(RawValue::from_string(json.clone()).unwrap_or_else(|_| raw(&Value::Null)))
        }
        ProgramEnding::Thrown(error) | ProgramEnding::Unhandled(error) => Err(thrown(error)),
        ProgramEnding::Deadlock => Err(CallFailure::new(
            ErrorCode::Deadlock,
            "the program waits for something that cannot come: no call and no timer is left".to_owned(),
        )),
        ProgramEnding::Limit(ExceededLimit::Memory) => {
            let failure = out_of_memory(plan);
            Err(CallFailure { hint: failure.hint, ..CallFailure::new(failure.code, failure.message) })
        }
        ProgramEnding::Limit(ExceededLimit::Calls) => {
            let most = plan.limits.calls;
            Err(CallFailure::new(
                ErrorCode::ToolCallLimit,
                format!("the program made more than {most} calls"),
            ))
        }
        ProgramEnding::Limit(ExceededLimit::Result) => {
            let most = plan.limits.result_bytes;
            Err(CallFailure::new(
                ErrorCode::ResultTooLarge,
                format!("the program returned more than {most} bytes"),
            ))
        }
    }
}

/// The failure of a task whose program has no worker.
pub(super) fn worker_call_failure(plan: &Plan, trouble: &WorkerFailure) -> CallFailure {
    match trouble {
        WorkerFailure::Fault(fault) => {
            let failure = failed(plan, fault);
            CallFailure { hint: failure.hint, ..CallFailure::new(failure.code, failure.message) }
        }
        WorkerFailure::NoWorker(problem) => CallFailure {
            hint: problem.hint.clone(),
            ..CallFailure::new(problem.code, problem.message.clone())
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_handed_over_in_order_when_the_worker_says_something() {
        let timer =
            |number: usize| pml_sandbox::DeliveryPayload::Timer { timer: u32::try_from(number).unwrap() };
        let mut frame = TaskFrame::new(0);
        let most = 2 * DELIVERIES + 7;
        // Some deliveries come before it has a worker, the rest after.
        (0..3).for_each(|number| frame.deliver(Delivery { now_ms: 0, what: timer(number) }));
        let mut deliveries = frame.attach();
        (3..most).for_each(|number| frame.deliver(Delivery { now_ms: 0, what: timer(number) }));
        let mut taken = Vec::new();
        while taken.len() < most {
            let before = taken.len();
            while let Ok(Delivery { what: pml_sandbox::DeliveryPayload::Timer { timer }, .. }) =
                deliveries.try_recv()
            {
                taken.push(timer as usize);
            }
            assert!((1..=DELIVERIES).contains(&(taken.len() - before)), "{} at once", taken.len() - before);
            frame.hand_over();
        }
        assert!(taken.iter().copied().eq(0..most));
        assert_eq!(frame.clock.delivered() as usize, most);
    }
}
