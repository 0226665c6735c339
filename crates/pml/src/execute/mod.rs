//! Runs programs: in a worker, by the run core, with every step in the journal.
//!
//! `run` decides (pure), `driver` carries out (the only part that waits), `journal` and `plan` are what is kept,
//! `observe` and `report` what is told. A run belongs to the process whose driver has it; where that process ends, another
//! takes the run up from its journal.

mod ask;
mod dag;
mod driver;
mod frames;
mod journal;
mod keep;
mod observe;
mod operations;
mod path;
mod plan;
mod remember;
pub mod replay;
mod report;
mod results;
mod resume;
mod run;
mod value;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use pml_mcp::Caller;
use pml_model::question::{Approval, Question};
use pml_model::{Principal, RunId, RunState};
use pml_sandbox::{Pool, Settings, Unavailable};
use pml_store::{Idempotency, Lease, NewRun, OpenLimit, Opened, Process, RunKind, Store, Urgency};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::TaskTracker;

use crate::app::{App, blocking, now_ms, this_program};
use crate::cache::Ticket;
use crate::problem::{Code, Problem};
pub use dag::schedule::Pause;
pub(crate) use dag::{rehearse, schedule};
use driver::{Ack, Driver, Parts, Stops};
pub use journal::Grant;
use journal::History;
pub(crate) use keep::{keep, keep_leases};
pub use path::{Decided, Path, Turns};
pub use plan::{
    Asks, Bounds, DagPlan, DagTask, Granted, Nested, Plan, Replan, Sees, TaskCode, TaskWork, Understood, Work,
};
pub use report::{Called, Failure, Line, Next, Operated, Progress, Report, Standing, Task, TaskStatus};
pub use results::{Overview, Page, Tasks, Wanted, overview, result, tasks_of};
pub use resume::{abort, cancel, pause, resume};

/// How long a process holds a run without saying so again.
const LEASE_MS: i64 = 15_000;
/// How long a run may wait for a person or a time.
const LONGEST_WAIT_MS: i64 = 30 * 24 * 60 * 60 * 1_000;
/// How many programs run at a time in one process.
const AT_ONCE: usize = 64;
/// How many may wait for their turn.
const QUEUE: usize = 1_000;
/// How long runs are given to be left in good order when the process ends.
const LEAVING: Duration = Duration::from_secs(8);

/// How long a run that nobody waits for is patient.
const PATIENCE: Duration = Duration::from_secs(60);

/// The runs of this process.
#[derive(Debug)]
pub struct Runs {
    process: Process,
    pool: OnceLock<Pool>,
    here: Mutex<HashMap<RunId, Arc<Handle>>>,
    /// Those that are being taken up: waiting for a worker takes as long as others run.
    coming: Mutex<HashSet<RunId>>,
    /// Those that are about to ask, with their sessions: their questions count before they are stored.
    about_to_ask: Mutex<HashMap<RunId, String>>,
    drivers: TaskTracker,
}

/// A run of this process.
#[derive(Debug)]
pub struct Handle {
    /// Its name.
    pub id: RunId,
    /// Whose it is.
    pub principal: Principal,
    store: Store,
    lease: Lease,
    stops: Arc<Stops>,
    standing: watch::Receiver<Standing>,
}

impl Handle {
    /// How it stands now.
    pub fn standing(&self) -> Standing {
        self.standing.borrow().clone()
    }

    /// Waits until it is over or put aside, `patience` at most, and says how it stands then.
    pub async fn wait(&self, patience: Duration) -> Standing {
        let mut standing = self.standing.clone();
        let settled = standing.wait_for(|standing| !matches!(standing, Standing::Running(_)));
        match tokio::time::timeout(patience, settled).await {
            Ok(Ok(standing)) => standing.clone(),
            // The driver is gone without a word, which it is only when it panicked.
            Ok(Err(_)) => Standing::Elsewhere,
            Err(_) => self.standing(),
        }
    }

    /// Waits until it is stored as far as it has come. Whoever is told the name of a run that goes on finds it again,
    /// whatever becomes of this process.
    ///
    /// # Errors
    /// It cannot be recorded.
    pub async fn kept(&self) -> Result<(), Problem> {
        let (tell, told) = oneshot::channel();
        let told_of = move |stored| drop(tell.send(stored));
        self.store.append(&self.lease, Vec::new(), None, Urgency::Soon, told_of);
        match told.await {
            // That it is over or another's by now is recorded too.
            Ok(Ok(()) | Err(pml_store::Error::Over { .. } | pml_store::Error::Fenced { .. })) => Ok(()),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(Problem::new(Code::Storage, "the run could not be recorded")),
        }
    }

    /// Whoever asked for it no longer wants it.
    pub fn cancel(&self) {
        self.stops.cancel.cancel();
    }

    /// Ends it.
    pub fn abort(&self, reason: &str) {
        self.stops.abort.send_replace(Some(reason.to_owned()));
    }
}

/// A run that is about to be resumed, until this is dropped.
#[derive(Debug)]
pub(crate) struct Reserved {
    runs: Arc<Runs>,
    /// `None` where somebody else reserved it before.
    id: Option<RunId>,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.runs.coming().remove(id);
        }
    }
}

/// A run to be made.
#[derive(Debug)]
pub struct Asked {
    /// Who asks.
    pub principal: Principal,
    /// In which session.
    pub session: String,
    /// What is run.
    pub plan: Plan,
    /// Who hears of it meanwhile.
    pub caller: Caller,
    /// What makes a repeated request the same run.
    pub idempotency: Option<Idempotency>,
    /// Marks what is asked for, where a repeated request finds this run while its question is open.
    pub request_mark: Option<String>,
    /// How long it may wait for its turn.
    pub patience: Duration,
    /// What its result may be kept under.
    pub(crate) ticket: Option<Ticket>,
}

/// What became of a run that a person has to allow before it begins.
#[derive(Debug)]
pub enum First {
    /// It waits for the answer.
    Waits(RunId, Standing),
    /// The same was asked for before and its question is still open.
    Same(RunId, Standing),
}

/// What became of taking a run up again.
#[derive(Debug)]
pub enum Resumed {
    /// It goes on in this process.
    Going(Arc<Handle>),
    /// It asks something first.
    Asks {
        /// The name of the question.
        id: String,
        /// What.
        question: Question,
    },
    /// Another process has it.
    Held,
    /// It is over.
    Over(RunState),
}

impl Runs {
    /// None yet. `process` is this one.
    pub fn new(process: Process) -> Runs {
        Runs {
            process,
            pool: OnceLock::new(),
            here: Mutex::default(),
            coming: Mutex::default(),
            about_to_ask: Mutex::default(),
            drivers: TaskTracker::new(),
        }
    }

    /// The run of that name, if this process has it.
    pub fn here(&self, id: &RunId) -> Option<Arc<Handle>> {
        self.lock().get(id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Arc<Handle>>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn coming(&self) -> MutexGuard<'_, HashSet<RunId>> {
        self.coming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the background from taking up a run that whoever answers it is about to resume: then the run would have
    /// nobody to tell and ask what its tools say meanwhile.
    pub(crate) fn reserve(self: &Arc<Self>, id: &RunId) -> Reserved {
        let ours = self.coming().insert(id.clone());
        Reserved { runs: Arc::clone(self), id: ours.then(|| id.clone()) }
    }

    /// Makes room for a question of a run, beside those that are `open` and those that are about to be.
    ///
    /// # Errors
    /// There is no room.
    fn reserve_question(
        &self,
        run: &RunId,
        session: &str,
        mut open: Vec<(RunId, String)>,
        limit: OpenLimit,
    ) -> Result<(), Problem> {
        let mut about_to_ask = self.about_to_ask.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// A run does not ask any more, or its question is stored and counts by itself.
    fn release_question(&self, run: &RunId) {
        self.about_to_ask.lock().unwrap_or_else(PoisonError::into_inner).remove(run);
    }

    /// Has workers ready before the first program comes.
    pub(crate) fn warm_up(&self, workers: u32) -> Result<&Pool, Problem> {
        if let Some(pool) = self.pool.get() {
            return Ok(pool);
        }
        let failed = |error: std::io::Error| {
            Problem::new(Code::Sandbox, format!("no sandbox can be started: {error}"))
                .hint("`pml doctor` tells which walls stand")
        };
        let program = this_program().map_err(failed)?;
        let mut settings = Settings::new(program, vec![WORKER_COMMAND.into()]);
        settings.size = usize::try_from(workers).unwrap_or(1).max(1);
        settings.most = AT_ONCE;
        settings.queue = QUEUE;
        let pool = Pool::open(settings).map_err(failed)?;
        Ok(self.pool.get_or_init(|| pool))
    }

    /// Whether the process is about to end: what it left to others it does not take up again.
    fn is_closing(&self) -> bool {
        self.drivers.is_closed()
    }

    /// Leaves every run in good order.
    pub(crate) async fn close(&self) {
        self.drivers.close();
        self.lock().values().for_each(|handle| handle.stops.suspend.cancel());
        if tokio::time::timeout(LEAVING, self.drivers.wait()).await.is_err() {
            tracing::warn!(
                "some runs could not be left in good order; another process will find them interrupted"
            );
        }
    }
}

/// The argument that makes this program a sandbox worker.
pub const WORKER_COMMAND: &str = "sandbox-worker";

/// Starts a run.
///
/// # Errors
/// Too many run already, or nothing can be recorded.
pub async fn start(app: &Arc<App>, asked: Asked) -> Result<Arc<Handle>, Problem> {
    if app.runs.is_closing() {
        return Err(Problem::new(Code::Busy, "the program is about to end and takes on nothing new"));
    }
    let worker = match asked.plan.program() {
        Some(_) => Some(take_worker(app, asked.patience).await?),
        None => None,
    };
    let (acks, acked) = mpsc::unbounded_channel();
    let lease = create(app, new_run(app, &asked)?, acks.clone()).await?;
    Ok(go(
        app,
        Parts {
            app: Arc::clone(app),
            principal: asked.principal,
            plan: Arc::new(asked.plan),
            lease,
            worker,
            history: History::default(),
            ticket: asked.ticket,
            caller: asked.caller,
            stops: Arc::default(),
            standing: watch::Sender::new(Standing::Running(Progress::default())),
            acks,
            acked,
        },
    ))
}

async fn take_worker(app: &App, patience: Duration) -> Result<pml_sandbox::Worker, Problem> {
    let busy = |text: String| Problem::new(Code::Busy, text).hint("nothing was run; try again later");
    let pool = app.runs.warm_up(app.config().runs.workers)?;
    match tokio::time::timeout(patience, pool.take()).await {
        Ok(Ok(worker)) => Ok(worker),
        Ok(Err(unavailable @ Unavailable::Busy { .. })) => Err(busy(unavailable.to_string())),
        Ok(Err(unavailable @ Unavailable::Failed(_))) => {
            Err(Problem::new(Code::Sandbox, unavailable.to_string())
                .hint("`pml doctor` tells which walls stand"))
        }
        Err(_) => Err(busy("all sandboxes are in use".to_owned())),
    }
}

/// Gives up the workers that waited beside one that died. Where none can be started, whoever takes one is told.
fn renew_workers(app: &App) {
    if let Ok(pool) = app.runs.warm_up(app.config().runs.workers) {
        pool.renew();
    }
}

/// Whether a program could be run.
///
/// # Errors
/// No worker can be had.
pub async fn try_out(app: &App) -> Result<(), Problem> {
    take_worker(app, PATIENCE).await.map(drop)
}

/// The code of what fails because a tool is no longer what it was.
pub(crate) const TOOL_CHANGED: &str = "TOOL_CHANGED";

pub(crate) fn changed_since_asked(tool: &str) -> String {
    format!("the definition of `{tool}` changed since it was asked whether it may be called")
}

/// Records a run that begins when a person has allowed it, unless the same is asked already. It needs no worker until
/// then.
///
/// # Errors
/// Too many questions are open, or nothing can be recorded.
pub async fn ask_first(app: &Arc<App>, asked: Asked, question: Approval) -> Result<First, Problem> {
    let mut new = new_run(app, &asked)?;
    let (run, now) = (new.id.clone(), new.now);
    let id = ask::question_id(&run, &question);
    new.audit.push(ask::asked_audit(&asked.principal, &run, &id, &question, now));
    let approvals = &app.config().approvals;
    new.expires_at = Some(now + approvals.expire_ms());
    let question = (id, Question::Approval(question));
    let (store, limit, stored) = (app.store.clone(), approvals.open_limit(), question.clone());
    match blocking(move || store.create_asking_run(new, stored, limit)).await? {
        Opened::Made => {
            Ok(First::Waits(run, Standing::Waiting { question: Some(question), wake_at: None, in_flight: 0 }))
        }
        Opened::Same(same) => {
            let standing = standing(app, &asked.principal, &same).await?;
            Ok(First::Same(same, standing))
        }
        Opened::Full(open) => Err(too_many_open(&open)),
    }
}

/// That no more questions can be asked before one of these has its answer.
fn too_many_open(open: &[RunId]) -> Problem {
    let oldest: Vec<String> = open.iter().take(3).map(|run| format!("`{run}`")).collect();
    let text = format!("{} questions wait for an answer already, which is all there may be", open.len());
    Problem::new(Code::TooManyQuestions, text).hint(format!(
        "have one answered or end it with `pml_abort` first; the oldest are {}; `approvals.open` in pml.toml is how many \
         one client may have",
        oldest.join(", ")
    ))
}

fn new_run(app: &App, asked: &Asked) -> Result<NewRun, Problem> {
    let (id, now) = (new_id()?, now_ms());
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
        // It stands in lists for as long as there are any, unsealed.
        intent: app.memory.sanitiser().text(&asked.plan.intent).into_owned(),
        code_hash: asked.plan.code_hash.clone(),
        plan: serde_json::to_vec(&asked.plan).map_err(|error| {
            Problem::new(Code::InvalidRequest, format!("the plan cannot be recorded: {error}"))
        })?,
        expires_at: Some(now + LONGEST_WAIT_MS),
        idempotency: asked.idempotency.clone(),
        request_mark: asked.request_mark.clone(),
        owner: app.runs.process.clone(),
        lease_until: now + LEASE_MS,
        now,
    })
}

/// With a key that makes a request the same run, whether it is new has to be known first; otherwise the row is stored
/// together with what comes next.
async fn create(app: &App, new: NewRun, acks: mpsc::UnboundedSender<Ack>) -> Result<Lease, Problem> {
    if new.idempotency.is_none() {
        let told = move |stored: Result<(), pml_store::Error>| {
            if let Err(error) = stored {
                drop(acks.send(Ack::Failed(error)));
            }
        };
        return Ok(app.store.create_run(new, Urgency::Lazy, told)?);
    }
    let (tell, told) = oneshot::channel();
    let lease = app.store.create_run(new, Urgency::Soon, move |stored| drop(tell.send(stored)))?;
    match told.await {
        Ok(stored) => stored?,
        Err(_) => return Err(Problem::new(Code::Storage, "the run could not be recorded")),
    }
    Ok(lease)
}

/// Gives a run to a driver of its own.
fn go(app: &Arc<App>, parts: Parts) -> Arc<Handle> {
    let handle = Arc::new(Handle {
        id: parts.lease.run().clone(),
        principal: parts.principal.clone(),
        store: app.store.clone(),
        lease: parts.lease.clone(),
        stops: Arc::clone(&parts.stops),
        standing: parts.standing.subscribe(),
    });
    if let Some(before) = app.runs.lock().insert(handle.id.clone(), Arc::clone(&handle)) {
        before.stops.lost.cancel();
    }
    if app.runs.is_closing() {
        // Those that were there when closing began have been told.
        handle.stops.suspend.cancel();
    }
    let (app, id, fence) = (Arc::clone(app), handle.id.clone(), handle.lease.fence());
    app.clone().runs.drivers.spawn(async move {
        Driver::new(parts).drive().await;
        app.runs.release_question(&id);
        // It may have been lost to this very process, and then the name is another driver's.
        app.runs.lock().retain(|held, handle| *held != id || handle.lease.fence() != fence);
    });
    handle
}

/// How a run stands, wherever it is.
///
/// # Errors
/// There is no such run, or it cannot be read.
pub async fn standing(app: &App, principal: &Principal, id: &RunId) -> Result<Standing, Problem> {
    if let Some(handle) = app.runs.here(id).filter(|handle| handle.principal == *principal) {
        return Ok(handle.standing());
    }
    let (store, whose, run) = (app.store.clone(), principal.clone(), id.clone());
    let stored = blocking(move || store.standing(&whose, &run)).await?.ok_or_else(|| no_run(id))?;
    Ok(match stored.run.state {
        RunState::Running => Standing::Running(Progress { calls: stored.run.calls, ..Progress::default() }),
        RunState::Interrupted => Standing::Interrupted,
        RunState::Waiting => {
            Standing::Waiting { question: stored.question, wake_at: stored.run.wake_at, in_flight: 0 }
        }
        RunState::Expired => {
            Standing::Over(Arc::new(Report::expired(stored.run.created_at, stored.run.ended_at)))
        }
        RunState::Done | RunState::Failed | RunState::Cancelled | RunState::Aborted => {
            let (run, report) = (&stored.run, stored.outcome.as_deref());
            let report = match report.and_then(|outcome| serde_json::from_slice(outcome).ok()) {
                Some(report) => report,
                None if run.purged_at.is_none() => {
                    Report::unrecorded(run.error_code.as_deref(), run.created_at, run.ended_at)
                }
                None => {
                    return Err(Problem::new(
                        Code::Gone,
                        format!("the results of run `{id}` are no longer kept"),
                    )
                    .hint("`runs.keep_results` in pml.toml says how long they are"));
                }
            };
            Standing::Over(Arc::new(report))
        }
    })
}

/// That the principal has no run of this name.
pub fn no_run(id: &RunId) -> Problem {
    Problem::new(Code::UnknownRun, format!("there is no run `{id}`"))
        .hint("`pml runs list` shows the runs there are")
}

pub(crate) fn new_id() -> Result<RunId, Problem> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| {
        Problem::new(Code::Sandbox, format!("the system gives no random numbers: {error}"))
    })?;
    Ok(RunId::new(u128::from_le_bytes(random)))
}
