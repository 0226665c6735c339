//! The worker of a task that is a program.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pml_analysis::Program;
use pml_model::json::raw;
use pml_sandbox::{Delivery, Ending as Ended, Event as Seen, Fault, Limit, Worker};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::execute::Runs;
use crate::execute::journal::CallError;
use crate::execute::observe::{faulted as failed, out_of_memory};
use crate::execute::{PATIENCE, renew_workers, take_worker};
use crate::plan::Plan;
use crate::problem::{Code, Problem};

/// How long it is until a worker is asked for again where too many ask for one.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// What the workers of a run's tasks say: which task, and what.
pub(in crate::execute) type Said = (usize, Word);

/// One word of a worker.
pub(in crate::execute) enum Word {
    /// The program has begun: its time runs from here.
    Began,
    /// What it does.
    Seen(Seen),
    /// It does nothing more.
    Gone(Trouble),
}

/// Why a program has no worker.
pub(in crate::execute) enum Trouble {
    /// It had one.
    Fault(Fault),
    /// None could be had.
    NoWorker(Problem),
}

/// Where workers come from and where what they say goes.
pub(in crate::execute) struct Frames {
    runs: Arc<Runs>,
    say: mpsc::UnboundedSender<Said>,
}

impl Frames {
    pub(in crate::execute) fn new(runs: Arc<Runs>) -> (Frames, mpsc::UnboundedReceiver<Said>) {
        let (say, said) = mpsc::unbounded_channel();
        (Frames { runs, say }, said)
    }
}

/// A program under way.
pub(super) struct Frame {
    deliver: Option<mpsc::UnboundedSender<Delivery>>,
    waiting: Vec<Delivery>,
    /// Deliveries it was given.
    pub(super) given: u32,
    /// Deliveries after which it had nothing left to do.
    pub(super) taken: Option<u32>,
    /// Its time at its start and after each delivery.
    times: Vec<i64>,
    pub(super) deadline: Option<Instant>,
    work: Option<AbortOnDropHandle<()>>,
    /// It has asked for something.
    pub(super) touched: bool,
    /// It was begun before, and its worker died.
    pub(super) again: bool,
    over: bool,
}

impl Frame {
    pub(super) fn new(now: i64) -> Frame {
        Frame {
            deliver: None,
            waiting: Vec::new(),
            given: 0,
            taken: None,
            times: vec![now],
            deadline: None,
            work: None,
            touched: false,
            again: false,
            over: false,
        }
    }

    /// The same in another worker, once, if it has asked for nothing yet.
    pub(super) fn once_more(&self) -> Option<Frame> {
        let untouched = !self.touched && !self.again && self.given == 0;
        untouched.then(|| Frame { again: true, ..Frame::new(self.began()) })
    }

    /// Begins it. Its worker is waited for in a task of its own, so that nothing else waits.
    pub(super) fn start(&mut self, task: usize, program: pml_sandbox::Program, frames: &Frames) {
        let deliveries = self.attach();
        let (runs, say) = (Arc::clone(&frames.runs), frames.say.clone());
        if self.again {
            renew_workers(&runs);
        }
        self.work = Some(AbortOnDropHandle::new(tokio::spawn(async move {
            match worker_for(&runs).await {
                Ok(worker) => work(worker, &program, deliveries, task, &say).await,
                // Whoever no longer listens does not want it any more.
                Err(problem) => drop(say.send((task, Word::Gone(Trouble::NoWorker(problem))))),
            }
        })));
    }

    /// What it is given from now on, beginning with what it was given before.
    pub(super) fn attach(&mut self) -> mpsc::UnboundedReceiver<Delivery> {
        let (deliver, deliveries) = mpsc::unbounded_channel();
        for delivery in std::mem::take(&mut self.waiting) {
            drop(deliver.send(delivery));
        }
        self.deliver = Some(deliver);
        deliveries
    }

    /// When it was its turn.
    pub(super) fn began(&self) -> i64 {
        self.times[0]
    }

    /// It has a worker, or waits for one.
    pub(super) fn has_worker(&self) -> bool {
        self.deliver.is_some()
    }

    /// It has not begun, here or in another process.
    pub(super) fn is_new(&self) -> bool {
        self.deliver.is_none() && self.given == 0
    }

    pub(super) fn deliver(&mut self, delivery: Delivery) {
        self.given += 1;
        self.times.push(delivery.now_ms);
        match &self.deliver {
            // A worker that is gone has said so, or will.
            Some(deliver) => drop(deliver.send(delivery)),
            None => self.waiting.push(delivery),
        }
    }

    /// Ends its worker; nothing it says counts any more.
    pub(super) fn stop(&mut self) {
        self.deliver = None;
        self.work = None;
        self.deadline = None;
        self.over = true;
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.over || self.taken == Some(self.given)
    }

    /// The program's own time.
    pub(super) fn time(&self) -> i64 {
        let step = self.taken.map_or(0, |taken| taken as usize + 1).min(self.times.len() - 1);
        self.times[step]
    }
}

/// A worker, however long that takes: a run whose time is over ends without it.
async fn worker_for(runs: &Runs) -> Result<Worker, Problem> {
    loop {
        match take_worker(runs, PATIENCE).await {
            Err(busy) if busy.code == Code::Busy => tokio::time::sleep(ASK_AGAIN).await,
            got => return got,
        }
    }
}

/// Hands deliveries to a worker and says what it says, until it has ended or nobody wants it any more.
async fn work(
    mut worker: Worker,
    program: &pml_sandbox::Program,
    mut deliveries: mpsc::UnboundedReceiver<Delivery>,
    task: usize,
    say: &mpsc::UnboundedSender<Said>,
) {
    worker.begin(program);
    drop(say.send((task, Word::Began)));
    loop {
        tokio::select! {
            delivery = deliveries.recv() => match delivery {
                Some(delivery) => worker.deliver(&delivery),
                None => return,
            },
            seen = worker.next() => {
                let last = matches!(seen, Err(_) | Ok(Seen::Ended(_)));
                let word = seen.map_or_else(|fault| Word::Gone(Trouble::Fault(fault)), Word::Seen);
                if say.send((task, word)).is_err() || last {
                    return;
                }
            }
        }
    }
}

/// What a program came to.
pub(super) fn outcome(plan: &Plan, program: &Program, ended: &Ended) -> Result<Box<RawValue>, CallError> {
    let thrown = |thrown: &pml_sandbox::Thrown| {
        let code = thrown.code.as_deref().unwrap_or("PROGRAM_ERROR");
        let line = crate::plan::source_line(program, thrown.line, thrown.column);
        let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        let message = match (thrown.name.as_str(), thrown.message.as_str()) {
            ("ToolError", message) => message.to_owned(),
            (name, "") => name.to_owned(),
            (name, message) => format!("{name}: {message}"),
        };
        CallError::new(code, format!("{place}{message}"))
    };
    match ended {
        Ended::Value(json) => Ok(RawValue::from_string(json.clone()).unwrap_or_else(|_| raw(&Value::Null))),
        Ended::Thrown(error) | Ended::Unhandled(error) => Err(thrown(error)),
        Ended::Deadlock => Err(CallError::new(
            "DEADLOCK",
            "the program waits for something that cannot come: no call and no timer is left".to_owned(),
        )),
        Ended::Limit(Limit::Memory) => {
            let failure = out_of_memory(plan);
            Err(CallError { hint: failure.hint, ..CallError::new(&failure.code, failure.message) })
        }
        Ended::Limit(Limit::Calls) => {
            let most = plan.limits.calls;
            Err(CallError::new("TOOL_CALL_LIMIT", format!("the program made more than {most} calls")))
        }
        Ended::Limit(Limit::Result) => {
            let most = plan.limits.result_bytes;
            Err(CallError::new("RESULT_TOO_LARGE", format!("the program returned more than {most} bytes")))
        }
    }
}

/// That a program has no worker, as the failure of its task.
pub(super) fn faulted(plan: &Plan, trouble: &Trouble) -> CallError {
    match trouble {
        Trouble::Fault(fault) => {
            let failure = failed(plan, fault);
            CallError { hint: failure.hint, ..CallError::new(&failure.code, failure.message) }
        }
        Trouble::NoWorker(problem) => CallError {
            hint: problem.hint.clone(),
            ..CallError::new(&problem.code_text(), problem.message.clone())
        },
    }
}
