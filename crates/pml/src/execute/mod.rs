//! Executes runs: in a worker, controlled by the run core, with every step in the journal.
//!
//! `run` decides (pure), `driver` carries out (the only part that waits), `journal` and `plan` are what is stored,
//! `observe` and `report` what is reported. A run belongs to the process whose driver has it; if that process ends,
//! another one resumes the run from its journal.

mod ask;
mod client_run;
mod dag;
mod delivery;
mod driver;
pub(crate) mod dry_run;
mod ending;
mod finished;
mod follow;
mod frames;
mod history;
mod issued_call;
mod journal;
mod keep;
mod live;
mod observe;
mod open_call;
mod operations;
mod path;
mod program_clock;
mod prove;
mod remember;
pub mod replay;
mod results;
mod resume;
mod run;
mod run_span;
mod speculation;
mod value;
mod worker_event;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use pml_mcp::Caller;
use pml_model::question::{ApprovalQuestion, Question};
use pml_model::{CapabilityId, Digest, Principal, RunId, RunState};
use pml_sandbox::{PoolUnavailable, WorkerPool};
use pml_store::{
    AskingRunOutcome, Idempotency, Lease, NewRun, OpenApprovalLimit, ProcessIdentity, RunKind, Store, Urgency,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::now_ms;
use crate::events::EventFeed;
use crate::keys::{ClientKeys, RunAdmission};
use crate::knowledge::Knowledge;
use crate::knowledge::cache::CacheTicket;
use crate::metrics::{ApprovalEvent, Metrics, SandboxEvent};
use crate::plan::Plan;
use crate::problem::{ErrorCode, Problem};
use crate::report::{RunProgress, RunReport, RunStatus};
use crate::runtime::program_of_parts;
use crate::settings::AppSettings;
use crate::tools::Toolset;
pub(crate) use client_run::ClientRun;
pub use dag::{DagTasks, rehearse, schedule};
use driver::{Ack, AckSender, Driver, DriverParts, StopSignals};
pub(crate) use finished::FinishedRunNotice;
use finished::NOTICES;
use follow::OwnRuns;
pub(crate) use follow::{follow_runs_task, missed_events};
pub use history::{
    CallContents, CallingCapability, PastCall, PastCallError, PastCallStatus, call_contents, page_of_calls,
};
use journal::History;
pub(crate) use keep::{lease_renewal_task, upkeep_task};
pub use live::LiveOutput;
pub(crate) use open_call::CallUnderWay;
pub use open_call::OpenCall;
pub(crate) use prove::prove;
pub use results::{ResultPage, ResultRequest, RunDetails, dag_tasks, overview, result_page};
pub use resume::{abort, cancel, pause, resume};
use speculation::Speculator;
pub(crate) use speculation::{EarlierRead, speculation_threshold, try_ahead};
pub(crate) use value::complete_value;

/// 15 s in milliseconds: how long the lease of a run holds without renewal.
const LEASE_MS: i64 = 15_000;
/// 30 days in milliseconds: how long a run may wait for a person or a timer.
const LONGEST_WAIT_MS: i64 = 30 * 24 * 60 * 60 * 1_000;
/// The number of programs that run concurrently in one process.
const AT_ONCE: usize = 64;
/// The number of programs that may queue.
const QUEUE: usize = 1_000;
/// 8 s: how long runs may take to suspend when the process ends.
const LEAVING: Duration = Duration::from_secs(8);

/// 60 s: how long a run without a waiting client waits for a worker.
const PATIENCE: Duration = Duration::from_secs(60);

/// The runs of this process.
pub struct RunRegistry {
    settings: Arc<AppSettings>,
    tools: Arc<Toolset>,
    knowledge: Arc<Knowledge>,
    /// The keys of clients: a run goes on only as long as its key is valid.
    keys: Arc<ClientKeys>,
    store: Store,
    process: ProcessIdentity,
    pool: OnceLock<WorkerPool>,
    local: Mutex<HashMap<RunId, Arc<RunHandle>>>,
    /// The runs being resumed: waiting for a worker takes as long as other runs occupy it.
    resuming: Mutex<HashSet<RunId>>,
    /// The runs about to ask, with their sessions: their questions count before they are stored.
    about_to_ask: Mutex<HashMap<RunId, String>>,
    drivers: TaskTracker,
    /// The reads made before programs ask for them.
    speculator: Arc<Speculator>,
    /// What this process has done, in numbers.
    pub(crate) metrics: Arc<Metrics>,
    /// What happens to runs, for whoever watches.
    pub(crate) feed: Arc<EventFeed>,
    /// The runs of which drivers of this process tell the feed.
    own: OwnRuns,
    /// Who prepares what follows the runs that end.
    ended: Mutex<Option<mpsc::Sender<FinishedRunNotice>>>,
    /// Cancelled when the program ends.
    stop: CancellationToken,
}

impl std::fmt::Debug for RunRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runs").field("process", &self.process).finish_non_exhaustive()
    }
}

/// The handle of a run in this process.
#[derive(Debug)]
pub struct RunHandle {
    /// The id of the run.
    pub id: RunId,
    /// The principal of the run.
    pub principal: Principal,
    store: Store,
    lease: Lease,
    stops: Arc<StopSignals>,
    status: watch::Receiver<RunStatus>,
    live: live::LiveRequests,
}

impl RunHandle {
    /// The current status.
    pub fn status(&self) -> RunStatus {
        self.status.borrow().clone()
    }

    /// Waits until the run has ended or is parked, at most `patience`, and returns its status then.
    pub async fn wait(&self, patience: Duration) -> RunStatus {
        let mut standing = self.status.clone();
        let settled = standing.wait_for(|standing| !matches!(standing, RunStatus::Running(_)));
        match tokio::time::timeout(patience, settled).await {
            Ok(Ok(standing)) => standing.clone(),
            // The driver is gone without a final status, which happens only if it panicked.
            Ok(Err(_)) => RunStatus::Elsewhere,
            Err(_) => self.status(),
        }
    }

    /// Waits until the progress so far is stored. A client that knows the id of a run then finds it again, whatever
    /// happens to this process.
    ///
    /// # Errors
    /// The run cannot be recorded.
    pub async fn wait_until_stored(&self) -> Result<(), Problem> {
        let (tell, told) = oneshot::channel();
        let told_of = move |stored| drop(tell.send(stored));
        self.store.append_journal(&self.lease, Vec::new(), None, Urgency::Soon, told_of);
        match told.await {
            // That the run has ended or has another owner is recorded too.
            Ok(Ok(()) | Err(pml_store::Error::RunEnded { .. } | pml_store::Error::Fenced { .. })) => Ok(()),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(Problem::new(ErrorCode::Storage, "the run could not be recorded")),
        }
    }

    /// Cancels the run because its client no longer wants it.
    pub fn cancel(&self) {
        self.stops.cancel.cancel();
    }

    /// Aborts the run.
    pub fn abort(&self, reason: &str) {
        self.stops.abort.send_replace(Some(reason.to_owned()));
    }
}

/// Reserves a run that is about to be resumed, until dropped.
#[derive(Debug)]
pub(crate) struct ResumeReservation {
    runs: Arc<RunRegistry>,
    /// `None` if another task reserved the run before.
    id: Option<RunId>,
}

impl Drop for ResumeReservation {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.runs.resuming().remove(id);
        }
    }
}

/// A run to be started.
#[derive(Debug)]
pub struct PlannedRun {
    /// The principal that the run acts for.
    pub principal: Principal,
    /// The session of the client.
    pub session: String,
    /// The plan to execute.
    pub plan: Plan,
    /// The receiver of progress and log messages.
    pub caller: Caller,
    /// The idempotency key that makes a repeated request the same run.
    pub idempotency: Option<Idempotency>,
    /// The mark of the request, by which a repeated request finds this run while its question is open.
    pub request_mark: Option<String>,
    /// How long the run may queue.
    pub max_wait: Duration,
    /// The permission to cache the result, with its cache key.
    pub(crate) ticket: Option<CacheTicket>,
    /// The reads of the dry run that the run confirms.
    pub(crate) earlier_reads: Vec<EarlierRead>,
    /// The call that the run goes on with: it was made before the run began.
    pub(crate) open_call: Option<OpenCall>,
    /// Its place among the runs that the budget of its key admits.
    pub(crate) admission: Option<RunAdmission>,
}

/// The outcome of starting a run that needs approval first.
#[derive(Debug)]
pub enum AskFirstOutcome {
    /// The run waits for the answer.
    Waiting(RunId, RunStatus),
    /// The same request was made before and its question is still open.
    AlreadyAsked(RunId, RunStatus),
}

/// The outcome of resuming a run.
#[derive(Debug)]
pub enum ResumeOutcome {
    /// The run is executing in this process.
    Running(Arc<RunHandle>),
    /// The run asks a question first.
    Asks {
        /// The id of the question.
        id: String,
        /// The open question.
        question: Question,
    },
    /// Another process has the run.
    HeldElsewhere,
    /// The run has ended.
    Over(RunState),
}

impl RunRegistry {
    /// An empty registry of the process `process`.
    pub(crate) fn new(
        (settings, tools, knowledge): (Arc<AppSettings>, Arc<Toolset>, Arc<Knowledge>),
        keys: Arc<ClientKeys>,
        store: Store,
        process: ProcessIdentity,
        stop: CancellationToken,
    ) -> Arc<RunRegistry> {
        let metrics = Arc::<Metrics>::default();
        let owners = (Arc::clone(&tools), Arc::clone(&settings), Arc::clone(&metrics));
        let speculator = Speculator::new(owners, store.clone());
        Arc::new(RunRegistry {
            settings,
            tools,
            knowledge,
            keys,
            store,
            process,
            pool: OnceLock::new(),
            local: Mutex::default(),
            resuming: Mutex::default(),
            about_to_ask: Mutex::default(),
            drivers: TaskTracker::new(),
            speculator,
            metrics,
            feed: EventFeed::new(),
            own: OwnRuns::default(),
            ended: Mutex::default(),
            stop,
        })
    }

    /// The runs of this process that end with a result, from now on; `None` if they are followed already.
    pub(crate) fn finished_runs(&self) -> Option<mpsc::Receiver<FinishedRunNotice>> {
        let mut ended = self.ended.lock();
        let (tell, told) = mpsc::channel(NOTICES);
        ended.is_none().then(|| {
            *ended = Some(tell);
            told
        })
    }

    fn announce_end(&self, notice: FinishedRunNotice) {
        if let Some(follower) = &*self.ended.lock()
            && follower.try_send(notice).is_err()
        {
            tracing::debug!("no time to prepare what follows a run");
        }
    }

    /// Whether a capability with this probability of being asked for next is run ahead.
    pub(crate) fn admits_prediction(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        confidence: f64,
    ) -> bool {
        self.speculator.admits_prediction(principal, id, confidence)
    }

    /// Records that the result of a capability is kept under `key` before anybody asked for it.
    pub(crate) fn note_prediction(&self, of: (&Principal, &CapabilityId), confidence: f64, key: Digest) {
        self.speculator.note_prediction(of, confidence, key);
    }

    /// Records that the result under `key` was used, if it was prepared before anybody asked for it.
    pub(crate) fn note_cache_hit(&self, key: &Digest) {
        self.speculator.note_prediction_used(key);
    }

    /// The handle of the run, if this process has it.
    pub fn local_handle(&self, id: &RunId) -> Option<Arc<RunHandle>> {
        self.lock().get(id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Arc<RunHandle>>> {
        self.local.lock()
    }

    fn resuming(&self) -> MutexGuard<'_, HashSet<RunId>> {
        self.resuming.lock()
    }

    /// Keeps the upkeep task from resuming a run that the request which answered it is about to resume. A run resumed
    /// in the background has no client for progress messages and for questions of its tools.
    pub(crate) fn reserve(self: &Arc<Self>, id: &RunId) -> ResumeReservation {
        let ours = self.resuming().insert(id.clone());
        ResumeReservation { runs: Arc::clone(self), id: ours.then(|| id.clone()) }
    }

    /// Reserves a question for a run, beside the `open` ones and those about to be asked.
    ///
    /// # Errors
    /// Too many questions are open.
    fn reserve_question(
        &self,
        run: &RunId,
        session: &str,
        mut open: Vec<(RunId, String)>,
        limit: OpenApprovalLimit,
    ) -> Result<(), Problem> {
        let mut about_to_ask = self.about_to_ask.lock();
        let stored: HashSet<RunId> = open.iter().map(|(run, _)| run.clone()).collect();
        let coming = about_to_ask.iter().filter(|(run, _)| !stored.contains(run));
        open.extend(coming.map(|(run, session)| (run.clone(), session.clone())));
        open.retain(|(other, _)| other != run);
        match limit.exceeded(&open, session) {
            Some(open) => Err(too_many_open(&open)),
            None => {
                about_to_ask.insert(run.clone(), session.to_owned());
                Ok(())
            }
        }
    }

    /// Releases the reservation: the run asks no more, or its question is stored and counts itself.
    fn release_question(&self, run: &RunId) {
        self.about_to_ask.lock().remove(run);
    }

    /// Starts the worker pool before the first program needs it.
    pub(crate) fn ensure_pool(&self, workers: u32) -> Result<&WorkerPool, Problem> {
        if let Some(pool) = self.pool.get() {
            return Ok(pool);
        }
        let failed = |error: std::io::Error| {
            Problem::new(ErrorCode::Sandbox, format!("no sandbox can be started: {error}"))
                .hint("`pml doctor` tells which walls stand")
        };
        let program = program_of_parts().map_err(failed)?;
        let mut settings = pml_sandbox::PoolSettings::new(program, vec![WORKER_COMMAND.into()]);
        settings.ready_workers = usize::try_from(workers).unwrap_or(1).max(1);
        settings.max_running = AT_ONCE;
        settings.max_waiting = QUEUE;
        let pool = WorkerPool::start(settings).map_err(failed)?;
        Ok(self.pool.get_or_init(|| pool))
    }

    /// Whether the process is ending; then it does not resume the runs that it suspended.
    pub(crate) fn is_closing(&self) -> bool {
        self.drivers.is_closed()
    }

    /// Suspends every run. The workers stay until [`RunRegistry::end_workers`].
    pub(crate) async fn close(&self) {
        self.drivers.close();
        self.lock().values().for_each(|handle| handle.stops.suspend.cancel());
        if tokio::time::timeout(LEAVING, self.drivers.wait()).await.is_err() {
            tracing::warn!(
                "some runs could not be left in good order; another process will find them interrupted"
            );
        }
        self.speculator.close().await;
    }
}

impl RunRegistry {
    /// Ends the workers, including those of runs that could not be suspended.
    pub(crate) async fn end_workers(&self) {
        if let Some(pool) = self.pool.get() {
            pool.close().await;
        }
    }
}

/// The argument that makes this program a sandbox worker.
pub const WORKER_COMMAND: &str = "sandbox-worker";

/// Starts a run.
///
/// # Errors
/// Too many runs are executing, or the run cannot be recorded.
pub async fn start(runs: &Arc<RunRegistry>, asked: PlannedRun) -> Result<Arc<RunHandle>, Problem> {
    if runs.is_closing() {
        return Err(Problem::new(ErrorCode::Busy, "the program is about to end and takes on nothing new"));
    }
    let worker = match asked.plan.program() {
        Some(_) => Some(take_worker(runs, asked.max_wait).await?),
        None => None,
    };
    let (acks, acked) = AckSender::for_run(asked.plan.limits.calls);
    let new = new_run(runs, &asked)?;
    runs.metrics.note_run_start(new.kind.as_str());
    let lease = create(runs, new, acks.clone(), asked.admission.as_ref()).await?;
    let most = asked.plan.limits.speculated_calls;
    let reader = (&asked.principal, lease.run());
    runs.speculator.add_earlier_reads(reader, asked.earlier_reads, most).await;
    Ok(spawn_driver(
        runs,
        DriverParts {
            runs: Arc::clone(runs),
            principal: asked.principal,
            plan: Arc::new(asked.plan),
            lease,
            worker,
            history: History::default(),
            ticket: asked.ticket,
            caller: asked.caller,
            stop_signals: Arc::default(),
            status: watch::Sender::new(RunStatus::Running(RunProgress::default())),
            acks,
            acked,
            open_call: asked.open_call.and_then(|open| open.take()),
            admission: asked.admission,
        },
    ))
}

async fn take_worker(runs: &RunRegistry, patience: Duration) -> Result<pml_sandbox::Worker, Problem> {
    let busy = |text: String| Problem::new(ErrorCode::Busy, text).hint("nothing was run; try again later");
    let pool = runs.ensure_pool(runs.settings.config().runs.workers)?;
    match tokio::time::timeout(patience, pool.take_worker()).await {
        Ok(Ok(worker)) => {
            runs.metrics.note_sandbox(SandboxEvent::Taken);
            Ok(worker)
        }
        Ok(Err(unavailable @ PoolUnavailable::Busy { .. })) => {
            runs.metrics.note_sandbox(SandboxEvent::Busy);
            Err(busy(unavailable.to_string()))
        }
        Ok(Err(unavailable @ PoolUnavailable::Failed(_))) => {
            runs.metrics.note_sandbox(SandboxEvent::Failed);
            Err(Problem::new(ErrorCode::Sandbox, unavailable.to_string())
                .hint("`pml doctor` tells which walls stand"))
        }
        Err(_) => {
            runs.metrics.note_sandbox(SandboxEvent::Busy);
            Err(busy("all sandboxes are in use".to_owned()))
        }
    }
}

/// Replaces the idle workers after one died. If none can be started, the next request for one gets the error.
fn renew_workers(runs: &RunRegistry) {
    if let Ok(pool) = runs.ensure_pool(runs.settings.config().runs.workers) {
        pool.replace_idle_workers();
    }
}

/// Checks that a program could be run.
///
/// # Errors
/// No worker is available.
pub async fn check_worker_available(runs: &RunRegistry) -> Result<(), Problem> {
    take_worker(runs, PATIENCE).await.map(drop)
}

/// The error code for a tool whose definition has changed.
pub(crate) const TOOL_CHANGED: ErrorCode = ErrorCode::ToolChanged;

pub(crate) fn tool_changed_message(tool: &str) -> String {
    format!("the definition of `{tool}` changed since it was asked whether it may be called")
}

/// Records a run that starts after approval, unless the same request is waiting already. It needs no worker until then.
///
/// # Errors
/// Too many questions are open, or the run cannot be recorded.
pub async fn create_waiting_run(
    runs: &Arc<RunRegistry>,
    asked: PlannedRun,
    question: ApprovalQuestion,
) -> Result<AskFirstOutcome, Problem> {
    let mut new = new_run(runs, &asked)?;
    let (run, now, kind) = (new.id.clone(), new.now, new.kind.as_str());
    let id = ask::question_id(&run, &question);
    new.audit.push(ask::asked_audit(&asked.principal, &run, &id, &question, now));
    let approvals = &runs.settings.config().approvals;
    new.expires_at = Some(now + approvals.expire_ms());
    let question = (id, Question::Approval(question));
    let (limit, stored) = (approvals.open_limit(), question.clone());
    let created = runs.store.create_asking_run(new, stored, limit).await;
    match created.map_err(|error| refused(error, asked.admission.as_ref()))? {
        AskingRunOutcome::Created => {
            runs.metrics.note_run_start(kind);
            runs.metrics.note_approval(ApprovalEvent::Asked);
            let most = asked.plan.limits.speculated_calls;
            let reader = (&asked.principal, &run);
            runs.speculator.add_earlier_reads(reader, asked.earlier_reads, most).await;
            let status = RunStatus::Waiting { question: Some(question), wake_at: None, in_flight: 0 };
            Ok(AskFirstOutcome::Waiting(run, status))
        }
        AskingRunOutcome::AlreadyAsked(same) => {
            let standing = run_status(runs, &asked.principal, &same).await?;
            Ok(AskFirstOutcome::AlreadyAsked(same, standing))
        }
        AskingRunOutcome::TooManyOpen(open) => Err(too_many_open(&open)),
    }
}

/// The error that no question can be asked before one of these is answered.
fn too_many_open(open: &[RunId]) -> Problem {
    let oldest: Vec<String> = open.iter().take(3).map(|run| format!("`{run}`")).collect();
    let text = format!("{} questions wait for an answer already, which is all there may be", open.len());
    Problem::new(ErrorCode::TooManyQuestions, text).hint(format!(
        "have one answered or end it with `pml_abort` first; the oldest are {}; `approvals.open` in pml.toml is how many \
         one client may have",
        oldest.join(", ")
    ))
}

fn new_run(runs: &RunRegistry, asked: &PlannedRun) -> Result<NewRun, Problem> {
    let (id, now) = (new_run_id()?, now_ms());
    let by_rules = asked.plan.grants.iter().map(|grant| ask::rule_audit(&asked.principal, &id, grant, now));
    Ok(NewRun {
        audit: by_rules.collect(),
        id,
        principal: asked.principal.clone(),
        session: asked.session.clone(),
        kind: match asked.plan.dag() {
            None => RunKind::Code,
            Some(dag) if dag.single => RunKind::Tool,
            Some(_) => RunKind::Dag,
        },
        // The intent is shown in lists for as long as the run exists, and is not encrypted.
        intent: runs.knowledge.memory.sanitiser().clean_text(&asked.plan.intent).into_owned(),
        code_hash: asked.plan.code_hash.clone(),
        capability: asked.plan.learn.as_ref().and_then(|learn| learn.capability.clone()),
        client_key: asked.plan.key,
        key_runs_at_once: asked.admission.as_ref().and_then(RunAdmission::runs_at_once),
        plan: serde_json::to_vec(&asked.plan).map_err(|error| {
            Problem::new(ErrorCode::InvalidRequest, format!("the plan cannot be recorded: {error}"))
        })?,
        expires_at: Some(now + LONGEST_WAIT_MS),
        idempotency: asked.idempotency.clone(),
        request_mark: asked.request_mark.clone(),
        owner: runs.process.clone(),
        lease_until: now + LEASE_MS,
        now,
    })
}

/// Creates the row of a run. With an idempotency key, or a limit of the runs of its client key, this waits until it is
/// known whether the run may be; otherwise the row is stored together with the next records.
async fn create(
    runs: &RunRegistry,
    new: NewRun,
    acks: AckSender,
    admission: Option<&RunAdmission>,
) -> Result<Lease, Problem> {
    if new.idempotency.is_none() && new.key_runs_at_once.is_none() {
        let told = move |stored: Result<(), pml_store::Error>| {
            if let Err(error) = stored {
                acks.tell(Ack::Failed(error));
            }
        };
        return Ok(runs.store.create_run(new, Urgency::Lazy, told)?);
    }
    let (tell, told) = oneshot::channel();
    let lease = runs.store.create_run(new, Urgency::Soon, move |stored| drop(tell.send(stored)))?;
    match told.await {
        Ok(stored) => stored.map_err(|error| refused(error, admission))?,
        Err(_) => return Err(Problem::new(ErrorCode::Storage, "the run could not be recorded")),
    }
    Ok(lease)
}

/// The problem of a run that was not stored.
fn refused(error: pml_store::Error, admission: Option<&RunAdmission>) -> Problem {
    match (&error, admission) {
        (pml_store::Error::TooManyKeyRuns { most, .. }, Some(admission)) => admission.overtaken(*most),
        _ => error.into(),
    }
}

/// Spawns the driver of a run.
fn spawn_driver(runs: &Arc<RunRegistry>, parts: DriverParts) -> Arc<RunHandle> {
    let (live, asked) = live::channel();
    let handle = Arc::new(RunHandle {
        id: parts.lease.run().clone(),
        principal: parts.principal.clone(),
        store: runs.store.clone(),
        lease: parts.lease.clone(),
        stops: Arc::clone(&parts.stop_signals),
        status: parts.status.subscribe(),
        live,
    });
    if let Some(before) = runs.lock().insert(handle.id.clone(), Arc::clone(&handle)) {
        before.stops.lost.cancel();
    }
    runs.own.begin(handle.id.clone(), handle.lease.fence());
    if runs.is_closing() {
        // Runs that existed when closing began have been notified already.
        handle.stops.suspend.cancel();
    }
    let (here, id, fence) = (Arc::clone(runs), handle.id.clone(), handle.lease.fence());
    let mut parts = parts;
    let admission = parts.admission.take();
    let span = run_span::begin_run(&runs.tools.telemetry, &handle, &parts.plan);
    let driven = Arc::clone(&handle);
    runs.drivers.spawn(async move {
        run_span::drive_in_span(Driver::new(parts, asked), span, driven).await;
        drop(admission);
        here.release_question(&id);
        // The run may have been lost to another driver of this very process; then the entry belongs to that driver.
        here.lock().retain(|held, handle| *held != id || handle.lease.fence() != fence);
    });
    handle
}

/// The status of a run, in whichever process it executes.
///
/// # Errors
/// There is no such run, or it cannot be read.
pub async fn run_status(runs: &RunRegistry, principal: &Principal, id: &RunId) -> Result<RunStatus, Problem> {
    if let Some(handle) = runs.local_handle(id).filter(|handle| handle.principal == *principal) {
        return Ok(handle.status());
    }
    let stored = runs.store.run_overview(principal, id).await?.ok_or_else(|| no_run(id))?;
    Ok(match stored.run.state {
        RunState::Running => {
            RunStatus::Running(RunProgress { calls: stored.run.calls, ..RunProgress::default() })
        }
        RunState::Interrupted => RunStatus::Interrupted,
        RunState::Waiting => {
            RunStatus::Waiting { question: stored.question, wake_at: stored.run.wake_at, in_flight: 0 }
        }
        RunState::Expired => {
            RunStatus::Finished(Arc::new(RunReport::expired(stored.run.created_at, stored.run.ended_at)))
        }
        RunState::Done | RunState::Failed | RunState::Cancelled | RunState::Aborted => {
            let (run, report) = (&stored.run, stored.outcome.as_deref());
            let report = match report.and_then(|outcome| serde_json::from_slice(outcome).ok()) {
                Some(report) => report,
                None if run.purged_at.is_none() => {
                    RunReport::unrecorded(run.error_code.as_deref(), run.created_at, run.ended_at)
                }
                None => {
                    return Err(Problem::new(
                        ErrorCode::Gone,
                        format!("the results of run `{id}` are no longer kept"),
                    )
                    .hint("`runs.keep_results` in pml.toml says how long they are"));
                }
            };
            RunStatus::Finished(Arc::new(report))
        }
    })
}

/// The error that the principal has no run with this id.
pub fn no_run(id: &RunId) -> Problem {
    Problem::new(ErrorCode::UnknownRun, format!("there is no run `{id}`"))
        .hint("`pml runs list` shows the runs there are")
}

pub(crate) fn new_run_id() -> Result<RunId, Problem> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| {
        Problem::new(ErrorCode::Sandbox, format!("the system gives no random numbers: {error}"))
    })?;
    Ok(RunId::new(u128::from_le_bytes(random)))
}

/// Counts the end of a run.
fn count_run_end(metrics: &Metrics, plan: &Plan, report: &RunReport) {
    let took = u64::try_from(report.ended_at - report.started_at).unwrap_or(0);
    let of_capability = plan.learn.as_ref().is_some_and(|learn| learn.capability.is_some());
    metrics.note_run_end(report.state, Duration::from_millis(took), of_capability);
}
