//! Workers kept ready, and how many there may be.
//!
//! One process serves one program and is thrown away; the next is started the moment one is taken, off the path of
//! whoever took it.

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

use super::processes::{Process, Processes, Recipe, Wanted};
use super::worker::Worker;

/// How long a process may take to start and to say that it is ready.
const START: Duration = Duration::from_secs(5);
/// How many processes are tried for one that is ready.
const TRIES: usize = 3;

/// How a pool is kept.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program that calls [`worker_main`](crate::worker_main).
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// How many workers are kept ready.
    pub size: usize,
    /// How many programs run at a time.
    pub most: usize,
    /// How many may wait for a worker when that many run.
    pub queue: usize,
}

impl Settings {
    /// Two ready workers, eight programs at a time and 256 that wait.
    pub fn new(program: PathBuf, arguments: Vec<OsString>) -> Settings {
        Settings { program, arguments, size: 2, most: 8, queue: 256 }
    }
}

/// Why there is no worker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// As many as may run do, and as many as may wait do.
    #[error("{running} programs run and {waiting} wait already: try again later")]
    Busy {
        /// How many run.
        running: usize,
        /// How many wait.
        waiting: usize,
    },
    /// No process could be started, or none became ready.
    #[error("no worker process could be started: {0}")]
    Failed(String),
}

/// Worker processes that wait for a program. They end when it is dropped; those that were taken go on.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
    processes: Processes,
    running: Arc<Semaphore>,
    waiting: AtomicUsize,
    settings: Settings,
}

#[derive(Debug)]
struct Shared {
    idle: Mutex<Idle>,
    /// As many permits as there are idle processes.
    available: Semaphore,
}

#[derive(Debug, Default)]
struct Idle {
    processes: VecDeque<(Process, UnixStream)>,
    /// Why the last one could not be started.
    failure: Option<String>,
}

impl Shared {
    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    /// Starts the first workers.
    pub fn open(settings: Settings) -> io::Result<Pool> {
        let shared = Arc::new(Shared { idle: Mutex::default(), available: Semaphore::new(0) });
        let kept = Arc::downgrade(&shared);
        let recipe = Recipe { program: settings.program.clone(), arguments: settings.arguments.clone() };
        let processes = Processes::open(recipe, move |started| keep(&kept, started))?;
        for _ in 0..settings.size.max(1) {
            processes.start();
        }
        let running = Arc::new(Semaphore::new(settings.most.max(1)));
        Ok(Pool { shared, processes, running, waiting: AtomicUsize::new(0), settings })
    }

    /// A worker that is ready to begin. Waits in the order of asking when too many run.
    pub async fn take(&self) -> Result<Worker, Unavailable> {
        let permit = self.permit().await?;
        let mut failure = String::new();
        // Those that were killed while they waited are no fault of the next.
        for _ in 0..self.settings.size + TRIES {
            let (process, stream) = self.process().await?;
            match timeout(START, Worker::ready(process, stream)).await {
                Ok(Ok(mut worker)) => {
                    worker.hold(permit);
                    return Ok(worker);
                }
                Ok(Err(fault)) => failure = fault.to_string(),
                Err(_) => failure = format!("it was not ready after {} s", START.as_secs()),
            }
        }
        Err(Unavailable::Failed(failure))
    }

    /// Gives up the workers that wait, and starts others. Whoever killed one may have killed them all, and it takes a
    /// moment until that shows.
    pub fn renew(&self) {
        let old: Vec<(Process, UnixStream)> = {
            let mut idle = self.shared.idle();
            // Those whose permit somebody has already stay for them.
            let number = self.shared.available.forget_permits(idle.processes.len());
            idle.processes.drain(..number).collect()
        };
        old.iter().for_each(|_| self.processes.start());
    }

    fn refill(&self, others_are_ready: bool) {
        let processes = self.processes.clone();
        if others_are_ready {
            tokio::spawn(async move {
                tokio::time::sleep(REFILL_AFTER).await;
                processes.start();
            });
        } else {
            processes.start();
        }
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit, Unavailable> {
        if let Ok(permit) = Arc::clone(&self.running).try_acquire_owned() {
            return Ok(permit);
        }
        let _place = Place::take(&self.waiting, &self.settings)?;
        Ok(Arc::clone(&self.running).acquire_owned().await.expect("the semaphore is never closed"))
    }

    /// The process that has waited longest; another one is started in its stead.
    async fn process(&self) -> Result<(Process, UnixStream), Unavailable> {
        let Ok(permit) = timeout(START, self.shared.available.acquire()).await else {
            let failure = self.shared.idle().failure.clone();
            return Err(Unavailable::Failed(failure.unwrap_or_else(|| "it takes too long".to_owned())));
        };
        permit.expect("the semaphore is never closed").forget();
        let (process, left) = {
            let mut idle = self.shared.idle();
            (idle.processes.pop_front().expect("there are as many as permits"), idle.processes.len())
        };
        self.refill(left > 0);
        Ok(process)
    }
}

/// How long the next worker is put off while others are ready: a short program has the processors to itself.
const REFILL_AFTER: Duration = Duration::from_millis(3);

fn keep(shared: &Weak<Shared>, started: io::Result<(Process, UnixStream)>) -> Wanted {
    let Some(shared) = shared.upgrade() else { return Wanted::No };
    match started {
        Ok(process) => {
            shared.idle().processes.push_back(process);
            shared.available.add_permits(1);
        }
        Err(error) => shared.idle().failure = Some(error.to_string()),
    }
    Wanted::Yes
}

/// A place in the queue, given back when waiting ends in whatever way.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize, settings: &Settings) -> Result<Place<'a>, Unavailable> {
        let before = waiting.fetch_add(1, Ordering::Relaxed);
        let place = Place(waiting);
        match before < settings.queue {
            true => Ok(place),
            false => Err(Unavailable::Busy { running: settings.most, waiting: before }),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
