//! Runs programs: in a worker, by the run core, with every step in the journal.
//!
//! `run` decides (pure), `driver` carries out (the only part that waits), `journal` and `plan` are what is kept,
//! `observe` and `report` what is told. A run belongs to the process whose driver has it; where that process ends, another
//! takes the run up from its journal.

mod driver;
mod journal;
mod observe;
mod path;
mod plan;
pub mod replay;
mod report;
mod run;
mod value;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use pml_mcp::Caller;
use pml_model::run::{Answer, Question};
use pml_model::{Digest, Principal, RunId, RunState};
use pml_sandbox::{Pool, Settings, Unavailable};
use pml_store::{Change, Claim, Idempotency, Lease, NewRun, Process, Recorded, RunKind, Store, Urgency};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::task::TaskTracker;

use crate::app::{App, blocking, now_ms};
use crate::problem::{Code, Problem};
use driver::{Ack, Driver, Parts, Stops};
use journal::History;
pub use path::{Decided, Path, Turns};
pub use plan::{Bounds, Granted, Plan};
pub use report::{Failure, Line, Progress, Report, Standing, Task, TaskStatus};

/// How long a process holds a run without saying so again.
const LEASE_MS: i64 = 15_000;
/// How often it says so.
const RENEWAL: Duration = Duration::from_secs(4);
/// How long a run may wait for a person or a time.
const LONGEST_WAIT_MS: i64 = 30 * 24 * 60 * 60 * 1_000;
/// How many programs run at a time in one process.
const AT_ONCE: usize = 64;
/// How many may wait for their turn.
const QUEUE: usize = 1_000;
/// How long runs are given to be left in good order when the process ends.
const LEAVING: Duration = Duration::from_secs(8);

/// The runs of this process.
#[derive(Debug)]
pub struct Runs {
    process: Process,
    pool: OnceLock<Pool>,
    here: Mutex<HashMap<RunId, Arc<Handle>>>,
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

    /// Waits until how far it has come changes.
    pub async fn changed(&self) -> Standing {
        let mut standing = self.standing.clone();
        standing.mark_unchanged();
        // An error means that nothing will change any more.
        drop(standing.changed().await);
        self.standing()
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
        Runs { process, pool: OnceLock::new(), here: Mutex::default(), drivers: TaskTracker::new() }
    }

    /// The run of that name, if this process has it.
    pub fn here(&self, id: &RunId) -> Option<Arc<Handle>> {
        self.lock().get(id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Arc<Handle>>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
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
        let program = std::env::current_exe().map_err(failed)?;
        let mut settings = Settings::new(program, vec![WORKER_COMMAND.into()]);
        settings.size = usize::try_from(workers).unwrap_or(1).max(1);
        settings.most = AT_ONCE;
        settings.queue = QUEUE;
        let pool = Pool::open(settings).map_err(failed)?;
        Ok(self.pool.get_or_init(|| pool))
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
    let worker = take_worker(app).await?;
    let now = now_ms();
    let (acks, acked) = mpsc::unbounded_channel();
    let new = NewRun {
        id: new_id()?,
        principal: asked.principal.clone(),
        session: asked.session,
        kind: RunKind::Code,
        intent: asked.plan.intent.clone(),
        code_hash: asked.plan.code_hash.clone(),
        plan: serde_json::to_vec(&asked.plan).map_err(|error| {
            Problem::new(Code::InvalidRequest, format!("the plan cannot be recorded: {error}"))
        })?,
        expires_at: Some(now + LONGEST_WAIT_MS),
        idempotency: asked.idempotency,
        owner: app.runs.process.clone(),
        lease_until: now + LEASE_MS,
        now,
    };
    let lease = create(app, new, acks.clone()).await?;
    Ok(go(
        app,
        Parts {
            app: Arc::clone(app),
            principal: asked.principal,
            plan: Arc::new(asked.plan),
            lease,
            worker,
            history: History::default(),
            caller: asked.caller,
            stops: Arc::default(),
            standing: watch::Sender::new(Standing::Running(Progress::default())),
            acks,
            acked,
        },
    ))
}

async fn take_worker(app: &App) -> Result<pml_sandbox::Worker, Problem> {
    app.runs.warm_up(app.config().runs.workers)?.take().await.map_err(|unavailable| match unavailable {
        Unavailable::Busy { .. } => Problem::new(Code::Busy, unavailable.to_string()),
        Unavailable::Failed(_) => {
            Problem::new(Code::Sandbox, unavailable.to_string()).hint("`pml doctor` tells which walls stand")
        }
    })
}

/// Whether a program could be run.
///
/// # Errors
/// No worker can be had.
pub async fn try_out(app: &App) -> Result<(), Problem> {
    take_worker(app).await.map(drop)
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
    app.runs.lock().insert(handle.id.clone(), Arc::clone(&handle));
    let (app, id) = (Arc::clone(app), handle.id.clone());
    app.clone().runs.drivers.spawn(async move {
        Driver::new(parts).drive().await;
        app.runs.lock().remove(&id);
    });
    handle
}

/// Takes a run up again where its journal ends.
///
/// # Errors
/// There is no such run, or it cannot be read.
pub async fn resume(
    app: &Arc<App>,
    principal: &Principal,
    id: &RunId,
    caller: Caller,
) -> Result<Resumed, Problem> {
    let now = now_ms();
    let (store, owner) = (app.store.clone(), app.runs.process.clone());
    let (whose, run) = (principal.clone(), id.clone());
    let claim = blocking(move || store.claim(&whose, &run, &owner, now + LEASE_MS, now)).await?;
    let lease = match claim {
        Claim::Taken(lease) => lease,
        Claim::Held { .. } => {
            return Ok(app.runs.here(id).map_or(Resumed::Held, Resumed::Going));
        }
        Claim::Over(state) => return Ok(Resumed::Over(state)),
        Claim::Unknown => return Err(no_run(id)),
    };
    let (store, whose, run) = (app.store.clone(), principal.clone(), id.clone());
    let recorded = blocking(move || store.load(&whose, &run)).await?;
    let taken = take_up(app, &lease, recorded).await?;
    let (plan, history) = match taken {
        TakenUp::Ready(plan, history) => (plan, history),
        TakenUp::Asks { id, question } => return Ok(Resumed::Asks { id, question }),
        TakenUp::Over => return Ok(Resumed::Over(RunState::Failed)),
    };
    let worker = match take_worker(app).await {
        Ok(worker) => worker,
        Err(problem) => {
            let given_back = Change {
                state: Some(RunState::Interrupted),
                release: true,
                at: now_ms(),
                ..Change::default()
            };
            change(app, &lease, Vec::new(), given_back).await?;
            return Err(problem);
        }
    };
    let (acks, acked) = mpsc::unbounded_channel();
    Ok(Resumed::Going(go(
        app,
        Parts {
            app: Arc::clone(app),
            principal: principal.clone(),
            plan: Arc::new(*plan),
            lease,
            worker,
            history,
            caller,
            stops: Arc::default(),
            standing: watch::Sender::new(Standing::Running(Progress::default())),
            acks,
            acked,
        },
    )))
}

enum TakenUp {
    Ready(Box<Plan>, History),
    Asks { id: String, question: Question },
    Over,
}

/// Reads what was recorded, with what was answered meanwhile; asks about calls nobody knows the end of.
async fn take_up(app: &App, lease: &Lease, recorded: Recorded) -> Result<TakenUp, Problem> {
    let unreadable = |what: String| {
        Problem::new(Code::Storage, format!("the record of run `{}` cannot be read: {what}", lease.run()))
    };
    let plan: Plan = serde_json::from_slice(&recorded.plan).map_err(|error| unreadable(error.to_string()))?;
    let mut history =
        History::read(recorded.entries.clone()).map_err(|error| unreadable(error.to_string()))?;
    if plan.engine != pml_sandbox::ENGINE {
        let failure = Failure::new(
            "ENGINE_CHANGED",
            format!("the run was begun by `{}` and this is `{}`", plan.engine, pml_sandbox::ENGINE),
        )
        .hint("run it anew; nothing was sent");
        end(app, lease, &plan, observe::Ending::Failed(failure)).await?;
        return Ok(TakenUp::Over);
    }
    let Some(question) = history.doubts() else { return Ok(TakenUp::Ready(Box::new(plan), history)) };
    let answer = recorded.question.as_ref().and_then(|(id, _)| {
        recorded.answers.iter().find(|answer| answer.question_id == *id).map(|answer| &answer.answer)
    });
    if let Some(Answer::Doubts { calls }) = answer {
        let now = now_ms();
        if let Ok(records) = history.resolve(calls, now) {
            let entries: Vec<_> = records.iter().map(|record| record.entry(now)).collect();
            let answered = Change { question: Some(None), at: now, ..Change::default() };
            let all = recorded.entries.into_iter().chain(entries.iter().cloned()).collect();
            change(app, lease, entries, answered).await?;
            history = History::read(all).map_err(|error| unreadable(error.to_string()))?;
            return Ok(TakenUp::Ready(Box::new(plan), history));
        }
    }
    // The same question keeps its name, so that an answer on its way still counts.
    let id = match recorded.question {
        Some((id, asked)) if asked == question && answer.is_none() => id,
        Some(_) | None => Digest::of(format!("{}{}", lease.run(), now_ms()).as_bytes()).short().to_owned(),
    };
    let asks = Change {
        state: Some(RunState::Waiting),
        question: Some(Some((id.clone(), question.clone()))),
        release: true,
        at: now_ms(),
        ..Change::default()
    };
    change(app, lease, Vec::new(), asks).await?;
    Ok(TakenUp::Asks { id, question })
}

/// Ends a run that no driver has.
async fn end(app: &App, lease: &Lease, plan: &Plan, ending: observe::Ending) -> Result<(), Problem> {
    let observer = observe::Observer::new(Arc::new(plan.clone()));
    let report = observer.report(&ending, &[], now_ms());
    let over = Change {
        state: Some(report.state),
        outcome: Some(serde_json::to_vec(&report).expect("a report is plain data")),
        error_code: report.error.map(|error| error.code),
        release: true,
        at: now_ms(),
        ..Change::default()
    };
    change(app, lease, Vec::new(), over).await
}

async fn change(
    app: &App,
    lease: &Lease,
    entries: Vec<pml_store::Entry>,
    change: Change,
) -> Result<(), Problem> {
    let (tell, told) = oneshot::channel();
    app.store.append(lease, entries, Some(change), Urgency::Soon, move |stored| drop(tell.send(stored)));
    match told.await {
        Ok(stored) => Ok(stored?),
        Err(_) => Err(Problem::new(Code::Storage, "the database does not answer any more")),
    }
}

/// Ends a run.
///
/// # Errors
/// There is no such run, another process has it, or the end cannot be recorded.
pub async fn abort(
    app: &Arc<App>,
    principal: &Principal,
    id: &RunId,
    reason: &str,
) -> Result<Standing, Problem> {
    if let Some(handle) = app.runs.here(id).filter(|handle| handle.principal == *principal) {
        handle.abort(reason);
        return Ok(handle.wait(LEAVING).await);
    }
    let now = now_ms();
    let (store, owner) = (app.store.clone(), app.runs.process.clone());
    let (whose, run) = (principal.clone(), id.clone());
    match blocking(move || store.claim(&whose, &run, &owner, now + LEASE_MS, now)).await? {
        Claim::Taken(lease) => {
            let recorded = {
                let (store, whose, run) = (app.store.clone(), principal.clone(), id.clone());
                blocking(move || store.load(&whose, &run)).await?
            };
            let plan: Plan = serde_json::from_slice(&recorded.plan).map_err(|error| {
                Problem::new(Code::Storage, format!("the record of run `{id}` cannot be read: {error}"))
            })?;
            let reason = (!reason.is_empty()).then(|| reason.to_owned());
            end(app, &lease, &plan, observe::Ending::Aborted(reason)).await?;
            standing(app, principal, id).await
        }
        Claim::Over(_) => standing(app, principal, id).await,
        Claim::Held { .. } => Err(Problem::new(Code::Busy, format!("another process works on run `{id}`"))
            .hint("end it there, or try again when that process has ended")),
        Claim::Unknown => Err(no_run(id)),
    }
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
        RunState::Interrupted => Standing::Elsewhere,
        RunState::Waiting => Standing::Waiting {
            question: stored.question.map(|(_, question)| question),
            wake_at: stored.run.wake_at,
        },
        _ => {
            let report = stored.outcome.as_deref().and_then(|outcome| serde_json::from_slice(outcome).ok());
            Standing::Over(Arc::new(report.ok_or_else(|| {
                Problem::new(Code::Gone, format!("the results of run `{id}` are no longer kept"))
                    .hint("`runs.keep_results` in pml.toml says how long they are")
            })?))
        }
    })
}

/// That the principal has no run of this name.
pub fn no_run(id: &RunId) -> Problem {
    Problem::new(Code::UnknownRun, format!("there is no run `{id}`"))
        .hint("`pml runs list` shows the runs there are")
}

fn new_id() -> Result<RunId, Problem> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|error| {
        Problem::new(Code::Sandbox, format!("the system gives no random numbers: {error}"))
    })?;
    Ok(RunId::new(u128::from_le_bytes(random)))
}

/// Sees to the runs that somebody has to see to: keeps our own, takes up those that are due.
pub(crate) async fn keep(app: Arc<App>, resumes: bool) {
    let mut renewed = tokio::time::Instant::now();
    let mut purged = None;
    let mut seen = None;
    loop {
        if renewed.elapsed() >= RENEWAL {
            renewed = tokio::time::Instant::now();
            renew(&app).await;
        }
        if purged.is_none_or(|purged: tokio::time::Instant| purged.elapsed() >= Duration::from_secs(60)) {
            purged = Some(tokio::time::Instant::now());
            purge(&app).await;
        }
        if resumes && let Err(problem) = see_to_due(&app, &mut seen).await {
            tracing::warn!(%problem, "runs that are due could not be looked for");
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = app.stopping().cancelled() => return,
        }
    }
}

/// How often runs that are due are looked for.
const LOOK: Duration = Duration::from_millis(100);

async fn renew(app: &App) {
    let leases: Vec<Lease> = app.runs.lock().values().map(|handle| handle.lease.clone()).collect();
    if leases.is_empty() {
        return;
    }
    let store = app.store.clone();
    // A run that was lost hears of it with its next entry.
    if let Err(error) = blocking(move || store.renew(&leases, now_ms() + LEASE_MS)).await {
        tracing::warn!(%error, "the runs of this process could not be kept");
    }
}

async fn purge(app: &App) {
    let keep = i64::try_from(app.config().runs.keep_results.as_millis()).unwrap_or(i64::MAX);
    let store = app.store.clone();
    let work = move || {
        store.expire(now_ms())?;
        store.purge(now_ms(), keep)
    };
    if let Err(error) = blocking(work).await {
        tracing::warn!(%error, "old results could not be removed");
    }
}

/// Takes up what is due. `seen` is when the database was last looked at in earnest, and its version then: most of the
/// time nothing has changed and no time has come.
async fn see_to_due(app: &Arc<App>, seen: &mut Option<Seen>) -> Result<(), Problem> {
    let store = app.store.clone();
    let now = now_ms();
    let before = *seen;
    let (found, next) = blocking(move || look(&store, before, now)).await?;
    *seen = Some(next);
    let automatic = app.config().runs.resume;
    for found in found {
        if found.state == RunState::Interrupted && !automatic {
            continue;
        }
        match resume(app, &found.principal, &found.run, Caller::silent()).await {
            Ok(Resumed::Going(handle)) => tracing::info!(run = %handle.id, "a run was taken up again"),
            Ok(Resumed::Asks { .. }) => {
                tracing::warn!(run = %found.run, "a run waits for a word on calls in doubt")
            }
            Ok(Resumed::Held | Resumed::Over(_)) => {}
            Err(problem) => tracing::warn!(run = %found.run, %problem, "a run could not be taken up again"),
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    version: i64,
    next_wake: Option<i64>,
    orphans_at: i64,
}

/// How often it is looked whether the owners of runs still live.
const ORPHANS_MS: i64 = 1_000;

fn look(
    store: &pml_store::Store,
    seen: Option<Seen>,
    now: i64,
) -> Result<(Vec<pml_store::Found>, Seen), pml_store::Error> {
    let version = store.data_version()?;
    let orphans_due = seen.is_none_or(|seen| now - seen.orphans_at >= ORPHANS_MS);
    if orphans_due {
        store.interrupt_orphans(now)?;
    }
    let quiet = seen.filter(|seen| {
        seen.version == version && !orphans_due && seen.next_wake.is_none_or(|wake| wake > now)
    });
    if let Some(seen) = quiet {
        return Ok((Vec::new(), seen));
    }
    let found = store.due(now)?;
    let orphans_at = if orphans_due { now } else { seen.map_or(now, |seen| seen.orphans_at) };
    Ok((found, Seen { version, next_wake: store.next_wake()?, orphans_at }))
}
