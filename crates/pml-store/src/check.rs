//! Integrity checks: after a process ended without unregistering, and on request.

use crate::backend::Backend;
use crate::sql::params;

use crate::process::ProcessIdentity;
use crate::{BlockingStore, Error, database, vouch};

/// Maximum number of SQLite errors that are reported.
const TOLD: u32 = 20;

/// Result of checking the whole database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntegrityReport {
    /// Errors of the file, in SQLite's words; empty if it is sound.
    pub file_errors: Vec<String>,
    /// Rows that differ from what was stored; every query leaves them out.
    pub damaged_rows: Vec<String>,
}

impl BlockingStore {
    /// Records that a process has the database open. Returns the processes that were recorded and ended without
    /// [`BlockingStore::unregister_processes`].
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn register_process(
        &self,
        process: &ProcessIdentity,
        now: i64,
    ) -> Result<Vec<ProcessIdentity>, Error> {
        let process = process.clone();
        self.write(move |connection| {
            let known: Vec<ProcessIdentity> = connection
                .prepare_cached("SELECT pid, started FROM process ORDER BY at")?
                .query_map([], |row| Ok(ProcessIdentity { pid: row.get(0)?, started: row.get(1)? }))?
                .collect::<rusqlite::Result<_>>()?;
            connection
                .prepare_cached("INSERT OR REPLACE INTO process (pid, started, at) VALUES (?1, ?2, ?3)")?
                .execute(params![process.pid, process.started, now])?;
            let mut ended = Vec::new();
            for other in known {
                if !connection.may_be_alive(&other)? {
                    ended.push(other);
                }
            }
            Ok(ended)
        })
    }

    /// Records that processes have closed the database, or that their unclean end was dealt with.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn unregister_processes(&self, processes: Vec<ProcessIdentity>) -> Result<(), Error> {
        self.write(move |connection| {
            let mut leave =
                connection.prepare_cached("DELETE FROM process WHERE pid = ?1 AND started = ?2")?;
            processes
                .iter()
                .try_for_each(|process| leave.execute(params![process.pid, process.started]).map(drop))
        })
    }

    /// Checks the structure of the file. If it is damaged, the store refuses all further writes.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn quick_check(&self) -> Result<(), Error> {
        let Backend::Sqlite(_) = &self.inner.backend else { return Ok(()) };
        let found = self.ask_apart(|connection| integrity_errors(connection, "quick_check"))?;
        self.take_note(&found);
        self.inner.authenticator.refuse_if_broken()
    }

    /// Checks every page of the file and every row that has a mark.
    ///
    /// # Errors
    /// The database cannot be read at all, or the key file cannot be used.
    pub fn check_integrity(&self) -> Result<IntegrityReport, Error> {
        if let Backend::Postgres(server) = &self.inner.backend {
            let checked =
                server.open(&self.inner.authenticator).and_then(|connection| connection.check_all_rows());
            checked.map_err(|error| Error::sqlite(&self.inner.path, &error))?;
            return Ok(IntegrityReport { file_errors: Vec::new(), damaged_rows: self.damaged_rows() });
        }
        let file = self.ask_apart(|connection| integrity_errors(connection, "integrity_check"))?;
        self.take_note(&file);
        // On a damaged file, the rows that can still be reached are checked all the same.
        let rows = self.ask_apart(vouch::check_all_rows);
        if file.is_empty() {
            rows?;
        }
        Ok(IntegrityReport { file_errors: file, damaged_rows: self.damaged_rows() })
    }

    /// Damaged rows that queries have found so far.
    pub fn damaged_rows(&self) -> Vec<String> {
        self.inner.authenticator.damaged_rows()
    }

    fn take_note(&self, complaints: &[String]) {
        if let Some(first) = complaints.first() {
            self.inner.authenticator.mark_file_broken(first);
        }
    }

    /// Runs a query on a connection of its own: a long one must not occupy the shared connections.
    fn ask_apart<T>(
        &self,
        question: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let path = &self.inner.path;
        database::open_reader(path, &self.inner.authenticator)
            .and_then(|connection| question(&connection))
            .map_err(|error| Error::sqlite(path, &error))
    }
}

/// The errors that SQLite reports. A failure of the check itself counts as one.
pub(crate) fn integrity_errors(
    connection: &rusqlite::Connection,
    pragma: &str,
) -> rusqlite::Result<Vec<String>> {
    let told = connection.prepare(&format!("PRAGMA {pragma}({TOLD})")).and_then(|mut check| {
        check.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()
    });
    match told {
        Ok(told) if told == ["ok"] => Ok(Vec::new()),
        Ok(told) => Ok(told),
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt) => {
            Ok(vec![error.to_string()])
        }
        Err(error) => Err(error),
    }
}
