//! Servers that run as child processes.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::{mpsc, oneshot};

/// How a child process is started: an argument vector, never a shell.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Path or name of the program.
    pub command: String,
    /// Its arguments, passed without interpretation.
    pub args: Vec<String>,
    /// The complete environment; nothing is inherited.
    pub env: BTreeMap<String, String>,
    /// Working directory; `None` for PML's own.
    pub cwd: Option<PathBuf>,
    /// The program that guards the process tree: PML itself, run with [`crate::guard::COMMAND`].
    pub guard: Option<PathBuf>,
}

/// How long a server gets to end after its input was closed.
const CLOSING_GRACE: Duration = Duration::from_secs(2);

pub(crate) async fn spawn_server(launch: &Launch) -> std::io::Result<Child> {
    let mut command = match &launch.guard {
        Some(guard) => {
            let mut command = Command::new(guard);
            command.arg(GUARD_COMMAND).arg(std::process::id().to_string()).arg(&launch.command);
            command
        }
        None => Command::new(&launch.command),
    };
    command.args(&launch.args).env_clear().envs(&launch.env);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(launch.guard.is_none());
    // A signal to PML's group, such as Ctrl-C, must not reach the server: PML waits for active calls first.
    #[cfg(unix)]
    command.process_group(0);
    if let Some(cwd) = &launch.cwd {
        command.current_dir(cwd);
    }
    on_spawner(command).await
}

#[cfg(unix)]
use crate::guard::COMMAND as GUARD_COMMAND;
#[cfg(not(unix))]
const GUARD_COMMAND: &str = "";

type SpawnJob = (Command, tokio::runtime::Handle, oneshot::Sender<std::io::Result<Child>>);

/// Capacity of the queue of starts. Further starts wait for room, which each start makes within milliseconds.
const WAITING_STARTS: usize = 64;

/// Spawns on one thread that lives as long as the program. The kernel's parent-death signal, by which a guard learns
/// that PML is gone, is bound to the thread that started it.
async fn on_spawner(command: Command) -> std::io::Result<Child> {
    static SPAWNER: LazyLock<mpsc::Sender<SpawnJob>> = LazyLock::new(|| {
        let (jobs, mut queue) = mpsc::channel::<SpawnJob>(WAITING_STARTS);
        let work = move || {
            while let Some((mut command, runtime, reply)) = queue.blocking_recv() {
                let _inside = runtime.enter();
                // If the requester is gone, the child is dropped too.
                drop(reply.send(command.spawn()));
            }
        };
        std::thread::Builder::new().name("pml-spawner".into()).spawn(work).expect("a thread can be started");
        jobs
    });
    let (reply, spawned) = oneshot::channel();
    let gone = || std::io::Error::other("the spawning thread is gone");
    SPAWNER.send((command, tokio::runtime::Handle::current(), reply)).await.map_err(|_| gone())?;
    spawned.await.map_err(|_| gone())?
}

/// Ends a child whose input was closed: waits a little, then terminates, then kills. Returns how it ended.
pub(crate) async fn end_child(child: &mut Child) -> String {
    if let Ok(status) = tokio::time::timeout(CLOSING_GRACE, child.wait()).await {
        return describe_exit(status);
    }
    terminate(child);
    match tokio::time::timeout(CLOSING_GRACE, child.wait()).await {
        Ok(status) => describe_exit(status),
        Err(_) => match child.kill().await {
            Ok(()) => "it had to be killed".to_owned(),
            Err(error) => format!("it could not be killed: {error}"),
        },
    }
}

/// Asks a child, or its guard, to end at once.
pub(crate) fn terminate(child: &Child) {
    #[cfg(unix)]
    if let Some(pid) = child.id() {
        let pid = nix::unistd::Pid::from_raw(pid.cast_signed());
        if let Err(error) = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM) {
            tracing::debug!(%pid, %error, "a server was gone before it was asked to end");
        }
    }
    #[cfg(not(unix))]
    let _unused = child;
}

pub(crate) fn describe_exit(status: std::io::Result<std::process::ExitStatus>) -> String {
    match status {
        Ok(status) => status.to_string(),
        Err(error) => format!("its end could not be observed: {error}"),
    }
}

/// The last lines that a server wrote to standard error, safe to show.
#[derive(Debug, Clone, Default)]
pub struct StderrTail(Arc<Mutex<VecDeque<String>>>);

const KEPT_LINES: usize = 40;
const KEPT_LINE_BYTES: usize = 400;

impl StderrTail {
    /// The lines, oldest first.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// The last line that is not blank.
    pub fn last(&self) -> Option<String> {
        self.lines().into_iter().rev().find(|line| !line.trim().is_empty())
    }

    fn push(&self, line: &[u8]) {
        let text = String::from_utf8_lossy(&line[..line.len().min(KEPT_LINE_BYTES)]);
        let text = pml_model::name::printable(text.trim_end());
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(text);
    }
}

/// Read rate of one server's standard error, in bytes per second. Beyond it the server has to wait.
const STDERR_BYTES_PER_SECOND: usize = 1024 * 1024;

/// Reads standard error to its end and keeps the last lines. A flood is read at a bounded rate, so that it slows the
/// server down and not PML.
pub(crate) async fn collect_stderr(mut stderr: ChildStderr, last_words: StderrTail) {
    let mut chunk = vec![0; 8 * 1024];
    let mut line = Vec::with_capacity(KEPT_LINE_BYTES);
    let mut budget = STDERR_BYTES_PER_SECOND;
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        for byte in &chunk[..count] {
            if *byte == b'\n' {
                last_words.push(&line);
                line.clear();
            } else if line.len() < KEPT_LINE_BYTES {
                line.push(*byte);
            }
        }
        budget = budget.saturating_sub(count);
        if budget == 0 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            budget = STDERR_BYTES_PER_SECOND;
        }
    }
    if !line.is_empty() {
        last_words.push(&line);
    }
}
