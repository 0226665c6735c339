//! Which process is which, and whether it still runs.
//!
//! On Linux the process table tells; elsewhere a process counts as alive.

use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::LazyLock;

/// Identity of a process, which distinguishes it from a later one with the same process id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessIdentity {
    /// Process id.
    pub pid: u32,
    /// Start time, or another token unique to the process: opaque, for comparison only.
    pub started: String,
}

impl ProcessIdentity {
    /// Identity of this process.
    ///
    /// # Errors
    /// The process table cannot be read, so no other process could tell when this one has ended.
    pub fn current() -> io::Result<ProcessIdentity> {
        // Where there is no process table, any token that a later process will not repeat will do.
        static TOKEN: LazyLock<String> =
            LazyLock::new(|| format!("{:016x}", RandomState::new().build_hasher().finish()));
        let pid = std::process::id();
        let started = if cfg!(target_os = "linux") { start_ticks(pid)? } else { TOKEN.clone() };
        Ok(ProcessIdentity { pid, started })
    }

    /// Identity of this process among those of all machines.
    ///
    /// # Errors
    /// Those of [`ProcessIdentity::current`].
    pub(crate) fn current_anywhere() -> io::Result<ProcessIdentity> {
        static MACHINE: LazyLock<String> = LazyLock::new(|| {
            // The boot of a machine, and the process numbers within it, of which each container has its own.
            let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
            let numbers = fs::read_link("/proc/self/ns/pid");
            match (boot, numbers) {
                (Ok(boot), Ok(numbers)) => format!("{} {}", boot.trim(), numbers.display()),
                _ => format!("{:016x}", RandomState::new().build_hasher().finish()),
            }
        });
        let ProcessIdentity { pid, started } = ProcessIdentity::current()?;
        Ok(ProcessIdentity { pid, started: format!("{started} {}", *MACHINE) })
    }
}

/// Whether a process may still be alive. Always `true` where the process table is not available.
pub(crate) fn may_be_alive(process: &ProcessIdentity) -> bool {
    !cfg!(target_os = "linux") || start_ticks(process.pid).is_ok_and(|started| started == process.started)
}

/// Start time of a process in clock ticks since boot, from `/proc/PID/stat`, fields 3 and 22. The process name before
/// them may hold any character, so fields are counted from its closing bracket. A zombie counts as ended.
fn start_ticks(pid: u32) -> io::Result<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    match (fields.next(), fields.nth(18)) {
        (Some(state), Some(started)) if state != "Z" && state != "X" => Ok(started.to_owned()),
        _ => Err(io::Error::new(io::ErrorKind::NotFound, "the process has ended")),
    }
}
