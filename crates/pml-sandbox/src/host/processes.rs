//! Starts and ends worker processes, on one thread that outlives all of them.
//!
//! The kernel notifies a worker when its parent dies, and the parent is the thread that started it. So a dedicated
//! thread starts workers, not a task that moves between threads. It also keeps spawning and waiting off the threads
//! that serve.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;

/// Pause after the first failed start; it doubles with each further failure.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// Upper limit of that pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Command line of a worker.
#[derive(Debug, Clone)]
pub(super) struct WorkerCommand {
    pub(super) executable: PathBuf,
    pub(super) arguments: Vec<OsString>,
}

/// A worker process. Dropping it kills the process and reaps it.
#[derive(Debug)]
pub(super) struct WorkerProcess {
    child: Option<Child>,
    pid: u32,
    orders: SyncSender<ProcessOrder>,
}

impl WorkerProcess {
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Kills the process. It is reaped only when this value is dropped, so its pid is not reused meanwhile.
    pub(super) fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            // It fails only when the process is gone already.
            drop(child.kill());
        }
    }

    /// Kills the process and returns its exit status: its own one when it was exiting already.
    pub(super) async fn kill_and_wait(&mut self) -> Option<ExitStatus> {
        self.kill();
        let (tell, told) = oneshot::channel();
        let child = self.child.take()?;
        self.have_waited_for(child, Some(tell));
        told.await.ok()
    }

    /// Reaps a killed process on the thread, or here when the thread's queue is full or the thread is gone. Waiting for
    /// a killed process is short, and the thread itself must not wait for room in its own queue.
    fn have_waited_for(&self, child: Child, tell: Option<oneshot::Sender<ExitStatus>>) {
        match self.orders.try_send(ProcessOrder::Wait { child, tell }) {
            Ok(()) => {}
            Err(TrySendError::Full(order) | TrySendError::Disconnected(order)) => {
                if let ProcessOrder::Wait { child, tell } = order {
                    wait(child, tell);
                }
            }
        }
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        self.kill();
        if let Some(child) = self.child.take() {
            self.have_waited_for(child, None);
        }
    }
}

enum ProcessOrder {
    /// Carries the sender that the new process will hold.
    Start(SyncSender<ProcessOrder>),
    Wait {
        child: Child,
        tell: Option<oneshot::Sender<ExitStatus>>,
    },
    /// Stops the thread.
    End,
}

/// Whether the pool that requested processes still exists.
pub(super) enum PoolStatus {
    Open,
    Closed,
}

/// Requests processes from the thread.
#[derive(Debug, Clone)]
pub(super) struct ProcessStarter {
    orders: SyncSender<ProcessOrder>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl ProcessStarter {
    /// Spawns the thread. It stops on request, or with the last process and the last `ProcessStarter`. `started`
    /// receives each new process with the host's end of its socket, or the reason why there is none yet. `room` is the
    /// capacity of the queue: when it is full, a caller that orders a process waits.
    pub(super) fn spawn_thread(
        recipe: WorkerCommand,
        room: usize,
        started: impl Fn(io::Result<(WorkerProcess, UnixStream)>) -> PoolStatus + Send + 'static,
    ) -> io::Result<ProcessStarter> {
        let (orders, received) = mpsc::sync_channel(room);
        let thread = std::thread::Builder::new().name("pml-workers".to_owned()).spawn(move || {
            StarterThread { recipe, received, started, owed: Vec::new(), pause: FIRST_PAUSE }.serve();
        })?;
        Ok(ProcessStarter { orders, thread: Arc::new(Mutex::new(Some(thread))) })
    }

    /// Stops the thread after its queued orders, and joins it. The kernel then ends the processes that it started and
    /// that are still in use.
    pub(super) fn close(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // It fails only when the thread is gone.
            drop(self.orders.send(ProcessOrder::End));
            // A panic of the thread has been reported already.
            drop(thread.join());
        }
    }

    /// Orders one more process.
    pub(super) fn start_process(&self) {
        // It fails only when the thread is gone, and then nobody waits for a process any more.
        drop(self.orders.send(ProcessOrder::Start(self.orders.clone())));
    }
}

struct StarterThread<F> {
    recipe: WorkerCommand,
    received: Receiver<ProcessOrder>,
    started: F,
    /// Orders whose process could not be started yet.
    owed: Vec<SyncSender<ProcessOrder>>,
    pause: Duration,
}

impl<F: Fn(io::Result<(WorkerProcess, UnixStream)>) -> PoolStatus> StarterThread<F> {
    fn serve(mut self) {
        loop {
            let order = match self.owed.is_empty() {
                true => self.received.recv().map_err(RecvTimeoutError::from),
                false => self.received.recv_timeout(self.pause),
            };
            match order {
                Ok(ProcessOrder::Start(orders)) if self.owed.is_empty() => self.start(orders),
                Ok(ProcessOrder::Start(orders)) => self.owed.push(orders),
                Ok(ProcessOrder::Wait { child, tell }) => wait(child, tell),
                Err(RecvTimeoutError::Timeout) => self.again(),
                Ok(ProcessOrder::End) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn again(&mut self) {
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        for orders in std::mem::take(&mut self.owed) {
            match self.owed.is_empty() {
                true => self.start(orders),
                // The previous start failed: later orders wait with it.
                false => self.owed.push(orders),
            }
        }
    }

    fn start(&mut self, orders: SyncSender<ProcessOrder>) {
        let started = start(&self.recipe, &orders);
        match &started {
            Ok(_) => self.pause = FIRST_PAUSE,
            Err(_) => self.owed.push(orders),
        }
        match (self.started)(started) {
            PoolStatus::Open => {}
            PoolStatus::Closed => self.owed.clear(),
        }
    }
}

fn start(
    recipe: &WorkerCommand,
    orders: &SyncSender<ProcessOrder>,
) -> io::Result<(WorkerProcess, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    // Nothing here needs code between fork and exec, so the host's memory is not copied. `TZ` is set because the C
    // library would otherwise look the time zone up in a file.
    let child = Command::new(&recipe.executable)
        .args(&recipe.arguments)
        .env_clear()
        .env("TZ", "UTC0")
        .current_dir("/")
        // Signals for the host's process group, such as Ctrl-C, are for the host alone to handle.
        .process_group(0)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let pid = child.id();
    Ok((WorkerProcess { child: Some(child), pid, orders: orders.clone() }, ours))
}

fn wait(mut child: Child, tell: Option<oneshot::Sender<ExitStatus>>) {
    // The process has been killed, so this is short. Waiting fails only for a process that is not ours.
    let Ok(status) = child.wait() else { return };
    if let Some(tell) = tell {
        // The receiver is gone when the caller was cancelled.
        tell.send(status).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that hands each process to the test and continues on the test's signal.
    fn held_back() -> (ProcessStarter, Receiver<WorkerProcess>, SyncSender<()>) {
        let (give, given) = mpsc::sync_channel(1);
        let (go_on, gate) = mpsc::sync_channel(1);
        let recipe = WorkerCommand { executable: "/bin/sleep".into(), arguments: vec!["600".into()] };
        let started = move |started: io::Result<(WorkerProcess, UnixStream)>| {
            give.send(started.unwrap().0).unwrap();
            gate.recv().map_or(PoolStatus::Closed, |()| PoolStatus::Open)
        };
        (ProcessStarter::spawn_thread(recipe, 1, started).unwrap(), given, go_on)
    }

    fn exists(pid: u32) -> bool {
        std::path::Path::new(&format!("/proc/{pid}")).exists()
    }

    #[test]
    fn a_process_is_waited_for_also_where_the_thread_has_too_much_to_do() {
        let (processes, given, go_on) = held_back();
        processes.start_process();
        let first = given.recv().unwrap();
        // The thread waits for the test, and this order fills its queue.
        processes.start_process();
        let pid = first.pid();
        assert!(exists(pid));
        drop(first);
        assert!(!exists(pid), "nobody else would have waited for it");
        go_on.send(()).unwrap();
        drop(given.recv().unwrap());
        go_on.send(()).unwrap();
        processes.close();
    }

    #[test]
    fn a_process_is_waited_for_also_where_the_thread_is_gone() {
        let (processes, given, go_on) = held_back();
        processes.start_process();
        let kept = given.recv().unwrap();
        go_on.send(()).unwrap();
        processes.close();
        // Closing is idempotent.
        processes.close();
        let pid = kept.pid();
        assert!(exists(pid));
        drop(kept);
        assert!(!exists(pid));
    }
}
