//! Whether the database is as it was written: after a process did not end properly, and when somebody asks.

use rusqlite::{Connection, params};

use crate::state::{Process, may_run};
use crate::{BlockingStore, Error, database, vouch};

/// How many complaints of SQLite are told.
const TOLD: u32 = 20;

/// What a look at the whole database found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integrity {
    /// What is wrong with the file, in SQLite's words; nothing where it is sound.
    pub file: Vec<String>,
    /// Rows that are not what was stored: these are left out wherever they would be served.
    pub rows: Vec<String>,
}

impl BlockingStore {
    /// Notes that a process keeps the database open, and gives those that did so and ended without
    /// [`BlockingStore::leave`].
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn enter(&self, process: &Process, now: i64) -> Result<Vec<Process>, Error> {
        let process = process.clone();
        self.write(move |connection| {
            let known: Vec<Process> = connection
                .prepare_cached("SELECT pid, started FROM process ORDER BY at")?
                .query_map([], |row| Ok(Process { pid: row.get(0)?, started: row.get(1)? }))?
                .collect::<rusqlite::Result<_>>()?;
            connection
                .prepare_cached("INSERT OR REPLACE INTO process (pid, started, at) VALUES (?1, ?2, ?3)")?
                .execute(params![process.pid, process.started, now])?;
            Ok(known.into_iter().filter(|other| !may_run(other)).collect())
        })
    }

    /// Notes that processes no longer keep the database open, or that their end was looked into.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn leave(&self, processes: Vec<Process>) -> Result<(), Error> {
        self.write(move |connection| {
            let mut leave =
                connection.prepare_cached("DELETE FROM process WHERE pid = ?1 AND started = ?2")?;
            processes
                .iter()
                .try_for_each(|process| leave.execute(params![process.pid, process.started]).map(drop))
        })
    }

    /// Looks whether the structure of the file is sound. If it is not, nothing more is written to it.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn quick_check(&self) -> Result<(), Error> {
        let found = self.ask_apart(|connection| complaints(connection, "quick_check"))?;
        self.take_note(&found);
        self.inner.voucher.refuse_if_broken()
    }

    /// Looks at every page and at every row that has a mark.
    ///
    /// # Errors
    /// The database cannot be read at all, or the key not be used.
    pub fn check(&self) -> Result<Integrity, Error> {
        let file = self.ask_apart(|connection| complaints(connection, "integrity_check"))?;
        self.take_note(&file);
        // On a broken file the rows that can be reached tell what they can.
        let rows = self.ask_apart(vouch::check_all);
        if file.is_empty() {
            rows?;
        }
        Ok(Integrity { file, rows: self.damaged_rows() })
    }

    /// Rows that were found not to be what was stored, by whatever was read so far.
    pub fn damaged_rows(&self) -> Vec<String> {
        self.inner.voucher.damaged()
    }

    fn take_note(&self, complaints: &[String]) {
        if let Some(first) = complaints.first() {
            self.inner.voucher.found_broken(first);
        }
    }

    /// Asks on a connection of its own: what takes long must not keep others from those that are shared.
    fn ask_apart<T>(&self, question: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        let path = &self.inner.path;
        database::open_reader(path, &self.inner.voucher)
            .and_then(|connection| question(&connection))
            .map_err(|error| Error::sqlite(path, &error))
    }
}

/// What SQLite finds wrong; what it cannot even look at counts as wrong.
pub(crate) fn complaints(connection: &Connection, pragma: &str) -> rusqlite::Result<Vec<String>> {
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
