//! Why the database could not answer, sorted by what the caller can do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::ErrorCode;

/// Why a question had no answer or a change was not stored. A change that failed left nothing behind.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Another process held the database longer than we wait.
    #[error("database `{path}` is held by another process; wait for it or end it, then try again")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The disk is full. Reading goes on, and writing does as soon as there is space.
    #[error("no space is left for database `{path}`; free some and try again")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Written by a later version of the program.
    #[error("database `{path}` has version {found} and this program knows up to {known}; update the program")]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: i64,
        /// The latest version this program knows.
        known: i64,
    },
    /// Some other file, or a database of another program.
    #[error("`{path}` is not a database of this program; move it away or name another file")]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged.
    #[error("database `{path}` is damaged: {detail}; restore a backup or move the file away to start afresh")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// The file or its directory cannot be reached, read or written.
    #[error("cannot use database `{path}`: {source}; check that its directory exists and can be written")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// The database refused a statement, as it does a value over its size limit.
    #[error("database `{path}` refused a statement: {detail}")]
    Sql {
        /// The file.
        path: PathBuf,
        /// What it said.
        detail: String,
    },
    /// The thread that writes has ended.
    #[error("nothing can be written to database `{path}` any more; restart the program")]
    Stopped {
        /// The file.
        path: PathBuf,
    },
}

impl Error {
    pub(crate) fn io(path: &Path, source: io::Error) -> Error {
        Error::Io { path: path.to_owned(), source: Arc::new(source) }
    }

    pub(crate) fn sqlite(path: &Path, error: &rusqlite::Error) -> Error {
        let (path, detail) = (path.to_owned(), error.to_string());
        match error {
            // A column that does not hold what we put there.
            rusqlite::Error::FromSqlConversionFailure(..) | rusqlite::Error::InvalidColumnType(..) => {
                Error::Corrupt { path, detail }
            }
            _ => match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy { path },
                Some(ErrorCode::DiskFull) => Error::Full { path },
                Some(ErrorCode::NotADatabase) => Error::NotADatabase { path },
                Some(ErrorCode::DatabaseCorrupt) => Error::Corrupt { path, detail },
                Some(
                    ErrorCode::CannotOpen
                    | ErrorCode::SystemIoFailure
                    | ErrorCode::PermissionDenied
                    | ErrorCode::ReadOnly,
                ) => Error::io(&path, io::Error::other(detail)),
                _ => Error::Sql { path, detail },
            },
        }
    }
}
