//! The connection that detects changes. SQLite's data version is comparable only within one connection.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

use crate::{Error, connection};

pub(crate) struct VersionWatcher {
    path: PathBuf,
    connection: Mutex<Option<Connection>>,
}

impl VersionWatcher {
    pub(crate) fn of(path: &Path) -> VersionWatcher {
        VersionWatcher { path: path.to_owned(), connection: Mutex::default() }
    }

    /// A number that differs whenever any process has committed anything since the last call.
    pub(crate) fn data_version(&self) -> Result<i64, Error> {
        let mut watcher = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ask = || {
            let connection = match watcher.take() {
                Some(connection) => connection,
                None => connection::open_unvouched(&self.path)?,
            };
            let version =
                connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
            *watcher = Some(connection);
            Ok(version)
        };
        ask().map_err(|error| Error::sqlite(&self.path, &error))
    }
}

impl fmt::Debug for VersionWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").field("path", &self.path).finish_non_exhaustive()
    }
}
