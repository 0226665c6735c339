//! The connection that is asked whether anything changed: only its own answers can be compared.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;

use crate::{Error, connection};

pub(crate) struct Watcher {
    path: PathBuf,
    connection: Mutex<Option<Connection>>,
}

impl Watcher {
    pub(crate) fn of(path: &Path) -> Watcher {
        Watcher { path: path.to_owned(), connection: Mutex::default() }
    }

    /// A number that is another one whenever anything was committed, by whichever process, since it was last asked for.
    pub(crate) fn version(&self) -> Result<i64, Error> {
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

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").field("path", &self.path).finish_non_exhaustive()
    }
}
