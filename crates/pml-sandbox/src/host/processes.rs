//! Starts and ends worker processes, on one thread that lives as long as any of them.
//!
//! A worker is told by the kernel when its parent dies, and "parent" means the thread that started it: so this is
//! one thread and not a task that wanders. It also keeps starting and waiting off the threads that serve.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use tokio::sync::oneshot;

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// What to start.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
}

/// A worker process. It is killed and waited for when dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Option<Child>,
    pid: u32,
    orders: Sender<Order>,
}

impl Process {
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Ends it now. It stays waited for until it is dropped, so its number is not given to another meanwhile.
    pub(super) fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            // It fails when the process is gone already, which is what is wanted.
            drop(child.kill());
        }
    }

    /// Ends it and gives how it ended, which is its own doing when it was ending anyway.
    pub(super) async fn end(&mut self) -> Option<ExitStatus> {
        self.kill();
        let (tell, told) = oneshot::channel();
        self.orders.send(Order::Wait { child: self.child.take()?, tell: Some(tell) }).ok()?;
        told.await.ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if let Some(child) = self.child.take() {
            // The thread lives as long as there is a sender to it, and this is one.
            drop(self.orders.send(Order::Wait { child, tell: None }));
        }
    }
}

enum Order {
    /// Carries the sender that the process will have.
    Start(Sender<Order>),
    Wait {
        child: Child,
        tell: Option<oneshot::Sender<ExitStatus>>,
    },
}

/// Whether whoever asked for processes is still there.
pub(super) enum Wanted {
    Yes,
    No,
}

/// Asks for processes.
#[derive(Debug, Clone)]
pub(super) struct Processes {
    orders: Sender<Order>,
}

impl Processes {
    /// Starts the thread, which ends with the last process and the last of these. `started` gets each new process
    /// with the host's end of its socket, or why there is none yet.
    pub(super) fn open(
        recipe: Recipe,
        started: impl Fn(io::Result<(Process, UnixStream)>) -> Wanted + Send + 'static,
    ) -> io::Result<Processes> {
        let (orders, received) = mpsc::channel();
        std::thread::Builder::new().name("pml-workers".to_owned()).spawn(move || {
            Thread { recipe, received, started, owed: Vec::new(), pause: FIRST_PAUSE }.serve();
        })?;
        Ok(Processes { orders })
    }

    /// One more process.
    pub(super) fn start(&self) {
        // It fails only when the thread is gone, and then nobody waits for a process any more.
        drop(self.orders.send(Order::Start(self.orders.clone())));
    }
}

struct Thread<F> {
    recipe: Recipe,
    received: Receiver<Order>,
    started: F,
    /// Processes asked for that could not be started yet.
    owed: Vec<Sender<Order>>,
    pause: Duration,
}

impl<F: Fn(io::Result<(Process, UnixStream)>) -> Wanted> Thread<F> {
    fn serve(mut self) {
        loop {
            let order = match self.owed.is_empty() {
                true => self.received.recv().map_err(RecvTimeoutError::from),
                false => self.received.recv_timeout(self.pause),
            };
            match order {
                Ok(Order::Start(orders)) if self.owed.is_empty() => self.start(orders),
                Ok(Order::Start(orders)) => self.owed.push(orders),
                Ok(Order::Wait { child, tell }) => wait(child, tell),
                Err(RecvTimeoutError::Timeout) => self.again(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn again(&mut self) {
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        for orders in std::mem::take(&mut self.owed) {
            match self.owed.is_empty() {
                true => self.start(orders),
                // The last one failed: the rest wait with it.
                false => self.owed.push(orders),
            }
        }
    }

    fn start(&mut self, orders: Sender<Order>) {
        let started = start(&self.recipe, &orders);
        match &started {
            Ok(_) => self.pause = FIRST_PAUSE,
            Err(_) => self.owed.push(orders),
        }
        match (self.started)(started) {
            Wanted::Yes => {}
            Wanted::No => self.owed.clear(),
        }
    }
}

fn start(recipe: &Recipe, orders: &Sender<Order>) -> io::Result<(Process, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    // Nothing here needs code between fork and exec, so the host's memory is not copied. The time zone is named
    // because an absent one is looked up in a file.
    let child = Command::new(&recipe.program)
        .args(&recipe.arguments)
        .env_clear()
        .env("TZ", "UTC0")
        .current_dir("/")
        // What is meant for the host's group, such as Ctrl-C, is the host's to act on.
        .process_group(0)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let pid = child.id();
    Ok((Process { child: Some(child), pid, orders: orders.clone() }, ours))
}

fn wait(mut child: Child, tell: Option<oneshot::Sender<ExitStatus>>) {
    // It has been killed, so this is short. Waiting fails only for a process that is not ours.
    let Ok(status) = child.wait() else { return };
    if let Some(tell) = tell {
        // Nobody listens when the question was given up.
        tell.send(status).ok();
    }
}
