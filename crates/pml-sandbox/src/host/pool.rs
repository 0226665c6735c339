//! A pool of ready workers with a limit on running ones.
//!
//! One process serves one program and is discarded. A replacement starts in the background as soon as one is taken.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::processes::{PoolStatus, ProcessStarter, WorkerCommand, WorkerProcess};
use super::worker::Worker;

/// Time within which a process has to start and report that it is ready.
const START: Duration = Duration::from_secs(5);
/// Number of processes tried for one that is ready, in addition to the idle ones.
const TRIES: usize = 3;

/// Settings of a pool.
#[derive(Debug, Clone)]
pub struct PoolSettings {
    /// The executable, which must call [`worker_main`](crate::worker_main).
    pub executable: PathBuf,
    /// Arguments of the executable.
    pub arguments: Vec<OsString>,
    /// Number of idle workers kept ready.
    pub ready_workers: usize,
    /// Maximum number of programs that run at the same time.
    pub max_running: usize,
    /// Maximum number of callers that wait for a worker while [`Self::max_running`] programs run.
    pub max_waiting: usize,
}

impl PoolSettings {
    /// Settings with two ready workers, eight running programs and 256 waiting callers.
    pub fn new(program: PathBuf, arguments: Vec<OsString>) -> PoolSettings {
        PoolSettings { executable: program, arguments, ready_workers: 2, max_running: 8, max_waiting: 256 }
    }
}

/// Reason why no worker is available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PoolUnavailable {
    /// Both the running and the waiting limit are reached.
    #[error("{running} programs run and {waiting} wait already: try again later")]
    Busy {
        /// Number of running programs.
        running: usize,
        /// Number of waiting callers.
        waiting: usize,
    },
    /// No process could be started, or none became ready; the reason.
    #[error("no worker process could be started: {0}")]
    Failed(String),
}

/// Pool of idle worker processes. Dropping it ends the idle ones; workers that were taken continue.
#[derive(Debug)]
pub struct WorkerPool {
    shared: Arc<PoolShared>,
    processes: ProcessStarter,
    running: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// Delayed starts of replacement workers.
    refills: TaskTracker,
    settings: PoolSettings,
}

#[derive(Debug)]
struct PoolShared {
    idle: Mutex<IdleProcesses>,
    /// One permit per idle process.
    available: Semaphore,
}

#[derive(Debug, Default)]
struct IdleProcesses {
    processes: VecDeque<(WorkerProcess, UnixStream)>,
    /// Reason why the last process could not be started.
    failure: Option<String>,
    /// The pool is closed and keeps no processes any more.
    closed: bool,
}

impl PoolShared {
    fn idle(&self) -> MutexGuard<'_, IdleProcesses> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WorkerPool {
    /// Creates the pool and starts the first workers.
    pub fn start(settings: PoolSettings) -> io::Result<WorkerPool> {
        let shared = Arc::new(PoolShared { idle: Mutex::default(), available: Semaphore::new(0) });
        let kept = Arc::downgrade(&shared);
        let recipe =
            WorkerCommand { executable: settings.executable.clone(), arguments: settings.arguments.clone() };
        let most = settings.max_running.max(1);
        // One start and one end for each process that can exist: idle ones, their replacements and those in use.
        let room = 2 * (settings.ready_workers.max(1) + most);
        let processes = ProcessStarter::spawn_thread(recipe, room, move |started| keep(&kept, started))?;
        for _ in 0..settings.ready_workers.max(1) {
            processes.start_process();
        }
        let running = Arc::new(Semaphore::new(most));
        let refills = TaskTracker::new();
        Ok(WorkerPool { shared, processes, running, waiting: AtomicUsize::new(0), refills, settings })
    }

    /// Ends the idle workers and the thread that started all workers; the kernel then ends the workers in use. Nothing
    /// can be taken afterwards.
    pub async fn close(&self) {
        self.running.close();
        self.refills.close();
        self.refills.wait().await;
        let idle = {
            let mut idle = self.shared.idle();
            idle.closed = true;
            self.shared.available.close();
            std::mem::take(&mut idle.processes)
        };
        let processes = self.processes.clone();
        let ended = tokio::task::spawn_blocking(move || {
            drop(idle);
            processes.close();
        });
        // It fails only when the runtime shuts down first, and the process with it.
        drop(ended.await);
    }

    /// A worker that is ready to begin. When too many run, callers wait in order of arrival.
    pub async fn take_worker(&self) -> Result<Worker, PoolUnavailable> {
        let permit = self.permit().await?;
        let mut failure = String::new();
        // Workers that were killed while idle do not count against this caller's tries.
        for _ in 0..self.settings.ready_workers + TRIES {
            let (process, stream) = self.process().await?;
            match timeout(START, Worker::wait_until_ready(process, stream)).await {
                Ok(Ok(mut worker)) => {
                    worker.hold_permit(permit);
                    return Ok(worker);
                }
                Ok(Err(fault)) => failure = fault.to_string(),
                Err(_) => failure = format!("it was not ready after {} s", START.as_secs()),
            }
        }
        Err(PoolUnavailable::Failed(failure))
    }

    /// Replaces all idle workers. Call it after a worker was killed from outside: the others may have been killed too,
    /// and that shows only after a moment.
    pub fn replace_idle_workers(&self) {
        let old: Vec<(WorkerProcess, UnixStream)> = {
            let mut idle = self.shared.idle();
            // Processes whose permit a caller already holds stay for that caller.
            let number = self.shared.available.forget_permits(idle.processes.len());
            idle.processes.drain(..number).collect()
        };
        old.iter().for_each(|_| self.processes.start_process());
    }

    fn refill(&self, others_are_ready: bool) {
        let processes = self.processes.clone();
        if others_are_ready {
            self.refills.spawn(async move {
                tokio::time::sleep(REFILL_AFTER).await;
                processes.start_process();
            });
        } else {
            processes.start_process();
        }
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, PoolUnavailable> {
        if let Ok(permit) = Arc::clone(&self.running).try_acquire_owned() {
            return Ok(permit);
        }
        let _place = QueuePlace::take(&self.waiting, &self.settings)?;
        Arc::clone(&self.running).acquire_owned().await.map_err(|_| closed())
    }

    /// The process that has been idle longest; starts a replacement.
    async fn process(&self) -> Result<(WorkerProcess, UnixStream), PoolUnavailable> {
        let Ok(permit) = timeout(START, self.shared.available.acquire()).await else {
            let failure = self.shared.idle().failure.clone();
            return Err(PoolUnavailable::Failed(failure.unwrap_or_else(|| "it takes too long".to_owned())));
        };
        let taken = permit.ok().and_then(|permit| {
            permit.forget();
            let mut idle = self.shared.idle();
            Some((idle.processes.pop_front()?, idle.processes.len()))
        });
        // There are as many processes as permits until the pool is closed.
        let (process, left) = taken.ok_or_else(closed)?;
        self.refill(left > 0);
        Ok(process)
    }
}

fn closed() -> PoolUnavailable {
    PoolUnavailable::Failed("no programs are run any more".to_owned())
}

/// Delay of a replacement while others are ready: a short program should have the processors to itself.
const REFILL_AFTER: Duration = Duration::from_millis(3);

fn keep(shared: &Weak<PoolShared>, started: io::Result<(WorkerProcess, UnixStream)>) -> PoolStatus {
    let Some(shared) = shared.upgrade() else { return PoolStatus::Closed };
    match started {
        Ok(process) => {
            let mut idle = shared.idle();
            if idle.closed {
                return PoolStatus::Closed;
            }
            idle.processes.push_back(process);
            shared.available.add_permits(1);
        }
        Err(error) => shared.idle().failure = Some(error.to_string()),
    }
    PoolStatus::Open
}

/// A place in the queue, released when waiting ends for any reason.
struct QueuePlace<'a>(&'a AtomicUsize);

impl<'a> QueuePlace<'a> {
    fn take(waiting: &'a AtomicUsize, settings: &PoolSettings) -> Result<QueuePlace<'a>, PoolUnavailable> {
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        let place = QueuePlace(waiting);
        match before < settings.max_waiting {
            true => Ok(place),
            false => Err(PoolUnavailable::Busy { running: settings.max_running, waiting: before }),
        }
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
