//! The connection that detects changes.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::postgres::Server;
use crate::sql::Connection;
use crate::{Error, connection};

/// Polling interval for a file: people do not notice a tenth of a second.
const LOOK: Duration = Duration::from_millis(100);

/// How often a server is asked that reports no change: should a report be lost, it is made up for.
const CATCH_UP: Duration = Duration::from_secs(5);

/// How long reports of a server are gathered.
const GATHER: Duration = Duration::from_millis(10);

pub(crate) struct VersionWatcher {
    watched: Watched,
    connection: Mutex<Option<Connection>>,
}

/// Tells when to look at the version. It keeps what it has heard of, so that no report between two looks is missed.
pub(crate) struct VersionFollower(Option<watch::Receiver<u64>>);

impl VersionFollower {
    /// Waits until the version may have changed.
    pub(crate) async fn possible_change(&mut self) {
        match &mut self.0 {
            None => tokio::time::sleep(LOOK).await,
            Some(news) => {
                if let Ok(Err(_)) = tokio::time::timeout(CATCH_UP, news.changed()).await {
                    // The session has ended with the store; nothing is reported any more.
                    return tokio::time::sleep(CATCH_UP).await;
                }
                // A burst of commits is one change.
                tokio::time::sleep(GATHER).await;
                news.mark_unchanged();
            }
        }
    }
}

enum Watched {
    /// SQLite's data version is comparable only within one connection.
    File(PathBuf),
    /// A server, and what changes whenever it reports a change.
    Server(Arc<Server>, watch::Receiver<u64>),
}

impl VersionWatcher {
    pub(crate) fn of_file(path: &Path) -> VersionWatcher {
        VersionWatcher { watched: Watched::File(path.to_owned()), connection: Mutex::default() }
    }

    pub(crate) fn of_server(server: &Arc<Server>, news: watch::Receiver<u64>) -> VersionWatcher {
        let watched = Watched::Server(Arc::clone(server), news);
        VersionWatcher { watched, connection: Mutex::default() }
    }

    /// A number that differs whenever any process has committed anything since the last call.
    pub(crate) fn data_version(&self) -> Result<i64, Error> {
        let mut watcher = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ask = || {
            let connection = match watcher.take() {
                Some(connection) => connection,
                None => self.open()?,
            };
            let version = match self.watched {
                Watched::File(_) => "PRAGMA data_version",
                Watched::Server(..) => "SELECT version FROM store",
            };
            let version = connection.prepare_cached(version)?.query_row([], |row| row.get(0))?;
            *watcher = Some(connection);
            Ok(version)
        };
        // A connection that was cut meanwhile is replaced, once.
        match (&self.watched, ask()) {
            (Watched::Server(..), Err(_)) => ask(),
            (_, outcome) => outcome,
        }
        .map_err(|error| Error::sqlite(self.name(), &error))
    }

    /// Tells when to look at the version.
    pub(crate) fn follow(&self) -> VersionFollower {
        VersionFollower(match &self.watched {
            Watched::File(_) => None,
            Watched::Server(_, news) => Some(news.clone()),
        })
    }

    /// Whether the version is asked of another machine, which may take long.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.watched, Watched::Server(..))
    }

    fn open(&self) -> rusqlite::Result<Connection> {
        match &self.watched {
            Watched::File(path) => connection::open_unvouched(path).map(Connection::Sqlite),
            Watched::Server(server, _) => server.open_unvouched().map(Connection::Postgres),
        }
    }

    fn name(&self) -> &Path {
        match &self.watched {
            Watched::File(path) => path,
            Watched::Server(server, _) => server.name(),
        }
    }
}

impl fmt::Debug for VersionWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").field("path", &self.name()).finish_non_exhaustive()
    }
}
