//! Runs a program that only reads before anybody asks for it, and tells what its result would be.
//!
//! Nothing is journalled, traced or learned: it is no run. Every call is speculative and takes its place in the budget of
//! reads ahead. A program that does anything but read, compute and return is given up.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use pml_model::{Principal, RunId, RunState};
use pml_sandbox::{Delivery, ProgramEnding, Worker, WorkerEvent};
use serde_json::value::RawValue;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::speculative_call::SpeculativeCall;
use crate::builtin::ReadRecorder;
use crate::clock::now_ms;
use crate::execute::delivery::RunDelivery;
use crate::execute::value::{ResultBudget, outcome_delivery};
use crate::execute::{RunRegistry, new_run_id, take_worker};
use crate::plan::{Plan, PlannedTool};
use crate::report::{CallReport, RunReport, TaskStatus};
use crate::tools::CallOutcome;

/// 20 ms: how long a trial waits for a worker; real programs come first.
const WORKER_WAIT: Duration = Duration::from_millis(20);
/// 30 s: the longest trial.
const LONGEST: Duration = Duration::from_secs(30);
/// The calls of a trial: more are not worth making for nothing.
const MOST_CALLS: usize = 50;
/// 8 MiB: the results of a trial's calls together.
const MOST_BYTES: usize = 8 << 20;

/// Runs the program of a plan ahead. Returns the report that a run of it would have, as far as a cached result needs it;
/// `None` if it did not return, or did anything but read.
pub(crate) async fn try_ahead(
    runs: &Arc<RunRegistry>,
    principal: &Principal,
    plan: &Plan,
    witness: &ReadRecorder,
) -> Option<RunReport> {
    let program = plan.program()?;
    let mut worker = take_worker(runs, WORKER_WAIT).await.ok()?;
    worker.begin_program(&plan.for_worker(program));
    let cancel = CancellationToken::new();
    let trial = Trial {
        runs,
        plan,
        principal,
        witness,
        run: new_run_id().ok()?,
        cancel: cancel.clone(),
        calls: FuturesUnordered::new(),
        waiting: VecDeque::new(),
        tasks: Vec::new(),
        received: 0,
        _cancel: cancel.drop_guard(),
    };
    tokio::time::timeout(LONGEST, trial.run(worker)).await.ok()?
}

struct Trial<'t> {
    runs: &'t Arc<RunRegistry>,
    plan: &'t Plan,
    principal: &'t Principal,
    witness: &'t ReadRecorder,
    /// Names the trial to tools; no such run is stored.
    run: RunId,
    cancel: CancellationToken,
    calls: FuturesUnordered<BoxFuture<'static, (u32, CallOutcome)>>,
    /// The calls that the program issued and for which there is no room yet.
    waiting: VecDeque<(u32, SpeculativeCall)>,
    tasks: Vec<CallReport>,
    received: usize,
    _cancel: DropGuard,
}

impl Trial<'_> {
    async fn run(mut self, mut worker: Worker) -> Option<RunReport> {
        loop {
            tokio::select! {
                Some((call, outcome)) = self.calls.next() => {
                    self.start_calls()?;
                    let what = self.delivery(call, outcome)?;
                    worker.deliver(&Delivery { now_ms: now_ms(), what: what.for_worker() });
                }
                seen = worker.next_event() => match seen.ok()? {
                    WorkerEvent::Call { call, handle, arguments, .. } => self.call(call, handle, arguments)?,
                    WorkerEvent::Ended(ProgramEnding::Value(result)) => return self.report(&result),
                    // A program that waits on purpose, or fails, has no result to keep.
                    WorkerEvent::Ended(_) | WorkerEvent::Timer { .. } => return None,
                    _ => {}
                },
            }
        }
    }

    fn call(&mut self, call: u32, handle: u32, arguments: String) -> Option<()> {
        let PlannedTool { id, digest, .. } = self.plan.tools.get(handle as usize)?;
        let most = self.runs.settings.config().speculation.reads_per_run() as usize;
        if self.tasks.len() >= most.min(MOST_CALLS)
            || !self.runs.tools.may_speculate(id, digest)
            || self.runs.keys.check_call(self.plan.key, id).is_err()
        {
            return None;
        }
        self.tasks.push(CallReport::issued(call, id.to_string(), now_ms()));
        let made = SpeculativeCall {
            principal: self.principal.clone(),
            run: self.run.clone(),
            tool: id.clone(),
            definition: digest.clone(),
            arguments: Arc::from(arguments),
            cancel: self.cancel.clone(),
            witness: Some(self.witness.clone()),
        };
        self.waiting.push_back((call, made));
        self.start_calls()
    }

    /// Starts the waiting calls for which there is room. Returns `None` if there is none, and no call of the trial is
    /// under way whose end would make some: somebody else needs it, or it is used up.
    fn start_calls(&mut self) -> Option<()> {
        let concurrent = self.runs.settings.config().speculation.concurrent as usize;
        while let Some((_, next)) = self.waiting.front() {
            let slot = (self.calls.len() < concurrent)
                .then(|| self.runs.speculator.take_slot(&next.tool.server))
                .flatten();
            let Some(slot) = slot else { return (!self.calls.is_empty()).then_some(()) };
            let (call, made) = self.waiting.pop_front()?;
            let speculator = Arc::clone(&self.runs.speculator);
            self.calls.push(Box::pin(async move { (call, speculator.make(made, slot).await) }));
        }
        Some(())
    }

    /// What the program is given for a call that ended; `None` if the call failed.
    fn delivery(&mut self, call: u32, outcome: CallOutcome) -> Option<RunDelivery> {
        let task = self.tasks.iter_mut().find(|task| task.call == call)?;
        let each = usize::try_from(self.plan.limits.result_bytes).unwrap_or(usize::MAX);
        let budget = ResultBudget { each, all: MOST_BYTES, left: MOST_BYTES.saturating_sub(self.received) };
        let what = outcome_delivery(&self.run, call, &task.tool, outcome, budget);
        let RunDelivery::Result { parts, .. } = &what else { return None };
        if !parts.is_empty() {
            return None;
        }
        task.status = TaskStatus::Success;
        self.received += what.size();
        Some(what)
    }

    fn report(self, result: &str) -> Option<RunReport> {
        let now = now_ms();
        Some(RunReport {
            state: RunState::Done,
            result: Some(RawValue::from_string(result.to_owned()).ok()?),
            tasks: self.tasks,
            ..RunReport::empty(now, now)
        })
    }
}
