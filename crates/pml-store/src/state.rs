//! What running processes say of their servers, so that another process can show it.
//!
//! A row is worth as much as the process that wrote it: those of processes that ended, however they
//! ended, are never shown. On Linux that is known from the process table; elsewhere a row counts
//! for a minute and has to be published again before.

use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::sync::LazyLock;

use pml_model::{Principal, ServerName};
use rusqlite::{Connection, Row, params};

use crate::column::server_name;
use crate::{BlockingStore, Error};

/// How long a row counts where the process table cannot be asked.
const LIFETIME_MS: i64 = 60_000;

/// A process, told from a later one with the same number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it started, in words of the system that only serve comparing.
    pub started: String,
}

/// What a process said of one of its servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerState {
    /// Who said it.
    pub process: Process,
    /// The server.
    pub server: ServerName,
    /// What it said.
    pub state: String,
    /// When.
    pub at: i64,
}

impl Process {
    /// This process.
    ///
    /// # Errors
    /// The process table cannot be read, and so nobody could tell when this process has ended.
    pub fn current() -> io::Result<Process> {
        // Where there is no process table to ask, any token that a later process will not repeat does.
        static TOKEN: LazyLock<String> =
            LazyLock::new(|| format!("{:016x}", RandomState::new().build_hasher().finish()));
        let pid = std::process::id();
        let started = if cfg!(target_os = "linux") { start_ticks(pid)? } else { TOKEN.clone() };
        Ok(Process { pid, started })
    }
}

impl BlockingStore {
    /// Says what state a server is in, in place of what this process said of it before, and forgets
    /// what processes that have ended said.
    ///
    /// # Errors
    /// The state could not be stored.
    pub fn publish_state(
        &self,
        principal: &Principal,
        process: &Process,
        server: &ServerName,
        state: &str,
        now: i64,
    ) -> Result<(), Error> {
        let (principal, process, server) = (principal.clone(), process.clone(), server.clone());
        let state = state.to_owned();
        self.write(move |connection| {
            connection.execute(
                "INSERT OR REPLACE INTO server_state (principal, pid, started, server, state, at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![principal.0, process.pid, process.started, server.as_str(), state, now],
            )?;
            drop_ended(connection, now)
        })
    }

    /// What the processes that run say of their servers, by server.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn states(&self, principal: &Principal, now: i64) -> Result<Vec<ServerState>, Error> {
        let mut states = self.read(|connection| {
            let mut rows = connection.prepare(
                "SELECT pid, started, server, state, at FROM server_state
                 WHERE principal = ?1 ORDER BY server, pid",
            )?;
            let state = |row: &Row<'_>| {
                let process = process(row)?;
                Ok(ServerState { process, server: server_name(row, 2)?, state: row.get(3)?, at: row.get(4)? })
            };
            rows.query_map([&principal.0], state)?.collect::<rusqlite::Result<Vec<_>>>()
        })?;
        states.retain(|state| runs(&state.process, state.at, now));
        Ok(states)
    }

    /// Forgets all a process said, which it asks for when it ends in good order.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn clear_states(&self, process: &Process) -> Result<(), Error> {
        let process = process.clone();
        self.write(move |connection| forget(connection, &process))
    }
}

fn drop_ended(connection: &Connection, now: i64) -> rusqlite::Result<()> {
    let mut processes =
        connection.prepare("SELECT pid, started, max(at) FROM server_state GROUP BY pid, started")?;
    let rows = processes.query_map([], |row| Ok((process(row)?, row.get(2)?)))?;
    for row in rows.collect::<rusqlite::Result<Vec<_>>>()? {
        let (process, at) = row;
        if !runs(&process, at, now) {
            forget(connection, &process)?;
        }
    }
    Ok(())
}

fn forget(connection: &Connection, process: &Process) -> rusqlite::Result<()> {
    connection.execute(
        "DELETE FROM server_state WHERE pid = ?1 AND started = ?2",
        params![process.pid, process.started],
    )?;
    Ok(())
}

fn process(row: &Row<'_>) -> rusqlite::Result<Process> {
    Ok(Process { pid: row.get(0)?, started: row.get(1)? })
}

fn runs(process: &Process, at: i64, now: i64) -> bool {
    may_run(process) && (cfg!(target_os = "linux") || now.saturating_sub(at) < LIFETIME_MS)
}

/// Whether a process may still be there. Where the process table cannot be asked, it may.
pub(crate) fn may_run(process: &Process) -> bool {
    !cfg!(target_os = "linux") || start_ticks(process.pid).is_ok_and(|started| started == process.started)
}

/// When a process started, in clock ticks since boot: fields 3 and 22 of its `stat`. The name before
/// them may hold anything, so they are counted from its closing bracket.
fn start_ticks(pid: u32) -> io::Result<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    match (fields.next(), fields.nth(18)) {
        (Some(state), Some(started)) if state != "Z" && state != "X" => Ok(started.to_owned()),
        _ => Err(io::Error::new(io::ErrorKind::NotFound, "the process has ended")),
    }
}
