//! Which database a store uses, and how its connections are opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::postgres::Server;
use crate::sql::Connection;
use crate::vouch::{self, RowAuthenticator};
use crate::{Error, database};

/// The database of a store.
#[derive(Clone)]
pub(crate) enum Backend {
    /// The file at this path.
    Sqlite(PathBuf),
    Postgres(Arc<Server>),
}

impl Backend {
    /// Path of the file, or address without its password.
    pub(crate) fn name(&self) -> &Path {
        match self {
            Backend::Sqlite(path) => path,
            Backend::Postgres(server) => server.name(),
        }
    }

    pub(crate) fn open_reader(&self, authenticator: &Arc<RowAuthenticator>) -> rusqlite::Result<Connection> {
        match self {
            Backend::Sqlite(path) => database::open_reader(path, authenticator).map(Connection::Sqlite),
            Backend::Postgres(server) => server.open(authenticator).map(Connection::Postgres),
        }
    }

    pub(crate) fn open_writer(&self, authenticator: &Arc<RowAuthenticator>) -> Result<Connection, Error> {
        match self {
            Backend::Sqlite(path) => database::open_writer(path, authenticator).map(Connection::Sqlite),
            Backend::Postgres(server) => {
                let opened = server.open_writer(authenticator).map(Connection::Postgres);
                opened.map_err(|error| Error::sqlite(server.name(), &error))
            }
        }
    }

    /// Lets a write connection keep the marks of the rows that it changes.
    pub(crate) fn keep_marks(&self, connection: &Connection) -> rusqlite::Result<()> {
        match connection {
            Connection::Sqlite(connection) => vouch::create_mark_triggers(connection),
            // The connection marks rows by itself.
            Connection::Postgres(_) => Ok(()),
        }
    }

    /// Changes no longer wait for a database that cannot be reached.
    pub(crate) fn begin_closing(&self) {
        if let Backend::Postgres(server) = self {
            server.begin_closing();
        }
    }
}
