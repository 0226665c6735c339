//! The guard: the small process between PML and each server it starts.
//!
//! A server is often a tree of processes (`npx` → `sh` → `node`). The guard is the root of that tree and adopts every
//! orphan in it. When the server ends, PML asks for it, or PML dies in whatever way, the guard kills the whole tree.
//! It does not touch the standard streams and does not speak MCP.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getppid};

/// The hidden subcommand that runs the program as a guard.
pub const COMMAND: &str = "__guard";

/// How long a server gets between the request to end and the kill.
const GRACE: Duration = Duration::from_secs(1);

/// How long killed processes may take to disappear.
const LAST_RESORT: Duration = Duration::from_secs(10);

/// Exit code if the server could not be started, as in shells.
const NOT_STARTED: u8 = 127;

/// Runs the server. `arguments` are the parent pid, the command and its arguments. Returns when the server has ended.
pub fn main(arguments: &[std::ffi::OsString]) -> ExitCode {
    let [parent, command, rest @ ..] = arguments else {
        return ExitCode::from(NOT_STARTED);
    };
    let parent = parent.to_str().and_then(|text| text.parse().ok()).map(Pid::from_raw);
    let watched = SigSet::from_iter([Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]);
    if watched.thread_block().is_err() || !tie_to_parent(parent) {
        return ExitCode::from(NOT_STARTED);
    }
    close_on_exec();
    match start(command, rest) {
        Ok(server) => watch(Pid::from_raw(server), &watched),
        Err(error) => {
            report(&format!("cannot start `{}`: {error}\n", command.to_string_lossy()));
            ExitCode::from(NOT_STARTED)
        }
    }
}

#[expect(clippy::print_stderr, reason = "standard error is where PML reads a server's last words")]
fn report(text: &str) {
    eprint!("{text}");
}

/// Closes every descriptor but the standard streams on exec: the process that started PML may have left some open that
/// the server must not see.
#[expect(unsafe_code, reason = "a descriptor known by its number only has no safe owner")]
fn close_on_exec() {
    let Ok(open) = std::fs::read_dir("/dev/fd").or_else(|_| std::fs::read_dir("/proc/self/fd")) else {
        return;
    };
    let numbers = open.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for number in numbers.filter(|number| *number > 2) {
        // SAFETY: setting a flag of a descriptor touches no memory; one that is closed meanwhile is an error.
        let set = unsafe { nix::libc::fcntl(number, nix::libc::F_SETFD, nix::libc::FD_CLOEXEC) };
        if set != 0 {
            report(&format!("descriptor {number} could not be kept from the server\n"));
        }
    }
}

/// Asks the kernel to signal the death of the parent, and to reparent orphans of the tree to the guard.
#[cfg(target_os = "linux")]
fn tie_to_parent(parent: Option<Pid>) -> bool {
    nix::sys::prctl::set_pdeathsig(Signal::SIGTERM).is_ok()
        && nix::sys::prctl::set_child_subreaper(true).is_ok()
        // The parent may have died before the calls above.
        && parent == Some(getppid())
}

#[cfg(not(target_os = "linux"))]
fn tie_to_parent(parent: Option<Pid>) -> bool {
    parent == Some(getppid())
}

#[expect(
    unsafe_code,
    reason = "mask and death signal can only be set between fork and exec; both calls are safe there"
)]
fn start(command: &std::ffi::OsStr, arguments: &[std::ffi::OsString]) -> std::io::Result<i32> {
    let mut server = Command::new(command);
    server.args(arguments).process_group(0).stdin(Stdio::inherit());
    // SAFETY: the closure makes two system calls and allocates nothing.
    unsafe {
        server.pre_exec(|| {
            // The guard blocks these signals; the server must receive them.
            SigSet::empty().thread_set_mask()?;
            #[cfg(target_os = "linux")]
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
            Ok(())
        });
    }
    // `reap` waits for every child alike, so the handle is not needed.
    server.spawn().map(|child| child.id().cast_signed())
}

/// Waits until the server has ended or must end, then kills what is left of the tree.
fn watch(server: Pid, watched: &SigSet) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    loop {
        match watched.wait() {
            Ok(Signal::SIGCHLD) => {
                if let Some(ended) = reap(server) {
                    code = ended;
                    break;
                }
            }
            Ok(_) => {
                end_politely(server);
                break;
            }
            Err(_) => break,
        }
    }
    kill_tree(server);
    code
}

/// Collects ended children. Returns the exit code of the server if it is among them.
fn reap(server: Pid) -> Option<ExitCode> {
    let mut code = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, status)) if pid == server => code = Some(ExitCode::from(status as u8)),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == server => {
                code = Some(ExitCode::from(128_u8.wrapping_add(signal as u8)));
            }
            Ok(WaitStatus::StillAlive) | Err(_) => return code,
            Ok(_) => {}
        }
    }
}

fn end_politely(server: Pid) {
    signal(-server.as_raw(), Signal::SIGTERM);
    let until = Instant::now() + GRACE;
    while Instant::now() < until && reap(server).is_none() {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Signals a process or, with a negative number, a group. A process that is gone already is no error.
fn signal(pid: i32, signal: Signal) {
    if let Err(error) = kill(Pid::from_raw(pid), signal)
        && error != nix::errno::Errno::ESRCH
    {
        report(&format!("cannot signal process {pid}: {error}\n"));
    }
}

/// Kills the server's group and every descendant, in whatever group, until none is left or [`LAST_RESORT`] has passed.
fn kill_tree(server: Pid) {
    let until = Instant::now() + LAST_RESORT;
    while Instant::now() < until {
        signal(-server.as_raw(), Signal::SIGKILL);
        let descendants = descendants(std::process::id());
        if descendants.is_empty() {
            return;
        }
        for pid in descendants {
            signal(pid, Signal::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(2));
        reap(server);
    }
}

/// Every process below `root`, from `/proc`; empty if there is no `/proc`.
fn descendants(root: u32) -> Vec<i32> {
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(pid) = open.pop() {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for thread in threads.flatten() {
            let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace().filter_map(|text| text.parse::<u32>().ok()) {
                found.push(child.cast_signed());
                open.push(child);
            }
        }
    }
    found
}
