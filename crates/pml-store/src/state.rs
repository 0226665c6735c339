//! The server states that running processes publish, so that other processes can show them.
//!
//! A row counts only while the process that wrote it is alive. On Linux the process table tells; elsewhere a row is
//! valid for a minute and has to be published again before it lapses.

use std::io;

use crate::sql::{Connection, Row, params};
use pml_model::{Principal, ServerName};

use crate::backend::Backend;
use crate::column::server_name;
use crate::process::ProcessIdentity;
use crate::{BlockingStore, Error};

/// Validity of a row where the process table is not available, in milliseconds.
const LIFETIME_MS: i64 = 60_000;

/// A server state that a process published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedServerState {
    /// The process that published it.
    pub process: ProcessIdentity,
    /// Name of the server.
    pub server: ServerName,
    /// The state, as text.
    pub state: String,
    /// Time in milliseconds since the Unix epoch.
    pub at: i64,
}

impl BlockingStore {
    /// Identity of this process, as the runs that it owns in this database name it.
    ///
    /// # Errors
    /// Those of [`ProcessIdentity::current`].
    pub fn current_process(&self) -> io::Result<ProcessIdentity> {
        match self.inner.backend {
            Backend::Sqlite(_) => ProcessIdentity::current(),
            Backend::Postgres(_) => ProcessIdentity::current_anywhere(),
        }
    }

    /// Publishes the state of a server, replacing the one this process published before, and deletes the states of
    /// processes that have ended.
    ///
    /// # Errors
    /// The state could not be stored.
    pub fn publish_server_state(
        &self,
        principal: &Principal,
        process: &ProcessIdentity,
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

    /// The server states that live processes have published, sorted by server.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn server_states(&self, principal: &Principal, now: i64) -> Result<Vec<PublishedServerState>, Error> {
        self.read(|connection| {
            let mut rows = connection.prepare(
                "SELECT pid, started, server, state, at FROM server_state
                 WHERE principal = ?1 ORDER BY server, pid",
            )?;
            let state = |row: &Row<'_>| {
                let process = process(row)?;
                Ok(PublishedServerState {
                    process,
                    server: server_name(row, 2)?,
                    state: row.get(3)?,
                    at: row.get(4)?,
                })
            };
            let all = rows.query_map([&principal.0], state)?.collect::<rusqlite::Result<Vec<_>>>()?;
            let mut states = Vec::with_capacity(all.len());
            for state in all {
                if runs(connection, &state.process, state.at, now)? {
                    states.push(state);
                }
            }
            Ok(states)
        })
    }

    /// Deletes all states that a process has published. A process calls this when it shuts down in good order.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn clear_server_states(&self, process: &ProcessIdentity) -> Result<(), Error> {
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
        if !runs(connection, &process, at, now)? {
            forget(connection, &process)?;
        }
    }
    Ok(())
}

fn forget(connection: &Connection, process: &ProcessIdentity) -> rusqlite::Result<()> {
    connection.execute(
        "DELETE FROM server_state WHERE pid = ?1 AND started = ?2",
        params![process.pid, process.started],
    )?;
    Ok(())
}

fn process(row: &Row<'_>) -> rusqlite::Result<ProcessIdentity> {
    Ok(ProcessIdentity { pid: row.get(0)?, started: row.get(1)? })
}

fn runs(connection: &Connection, process: &ProcessIdentity, at: i64, now: i64) -> rusqlite::Result<bool> {
    let is_known = cfg!(target_os = "linux") || matches!(connection, Connection::Postgres(_));
    Ok(connection.may_be_alive(process)? && (is_known || now.saturating_sub(at) < LIFETIME_MS))
}
