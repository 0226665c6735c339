//! Why the database could not answer, sorted by what the caller can do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pml_model::{RunId, RunState};
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
    #[error(
        "database `{path}` is damaged: {detail}; put a backup in its place with `pml restore`, or move the file away to start afresh"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// Other processes use the database.
    #[error(
        "database `{path}` is in use by another PML process; end `pml serve` and the clients that run `pml stdio`"
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A backup cannot be made or put back.
    #[error("cannot use backup `{path}`: {why}")]
    Backup {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        why: String,
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
    /// More waits to be written than is held in memory.
    #[error(
        "{bytes} bytes wait to be written to database `{path}`, which is slower than what comes; wait and try again"
    )]
    Backlog {
        /// The file.
        path: PathBuf,
        /// How much waits.
        bytes: usize,
    },
    /// The run is another's now; nothing may be written or sent on its behalf any more.
    #[error("run `{run}` was taken over; leave it to its new owner")]
    Fenced {
        /// The run.
        run: RunId,
    },
    /// The run has ended, so nothing of it changes any more.
    #[error("run `{run}` is {state} already")]
    Over {
        /// The run.
        run: RunId,
        /// How it ended.
        state: RunState,
    },
    /// Something earlier of the run was not stored, so what follows it is not stored either.
    #[error("an earlier entry of run `{run}` could not be stored; give the run up, it resumes from what was")]
    Lost {
        /// The run.
        run: RunId,
    },
    /// The principal has no such run, or no longer any.
    #[error("there is no run `{run}`")]
    NoRun {
        /// The run.
        run: RunId,
    },
    /// The idempotency key belongs to an earlier run.
    #[error("the idempotency key is that of run `{run}`; ask for its result, or use another key")]
    Repeated {
        /// The earlier run.
        run: RunId,
    },
    /// A body is over the limit.
    #[error("{what} of run `{run}` has {bytes} bytes and at most {limit} are stored")]
    TooLarge {
        /// The run.
        run: RunId,
        /// Which body.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The results of the run were kept as long as results are, and are gone.
    #[error("the records of run `{run}` are no longer kept")]
    Expired {
        /// The run.
        run: RunId,
    },
    /// What is stored for a run is not what was stored: damaged, exchanged, or sealed by another key.
    #[error(
        "{what} of run `{run}` is damaged or sealed with another key; restore the database together with `{key}` from a backup, or abort the run"
    )]
    Unsealed {
        /// The run.
        run: RunId,
        /// Which body.
        what: &'static str,
        /// The file with the key.
        key: PathBuf,
    },
    /// The file with the key is gone, and something is stored that needs it.
    #[error(
        "key file `{path}` is missing, and without it what is stored can be neither read nor continued; put it back from a backup, or move the database away to start afresh"
    )]
    KeyMissing {
        /// The file.
        path: PathBuf,
    },
    /// The file with the key cannot be used.
    #[error("cannot use key file `{path}`: {why}")]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        why: String,
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
        if let Some(complaint) = key_complaint(path, error) {
            return complaint;
        }
        let (path, detail) = (path.to_owned(), short(error));
        match error {
            // A column that does not hold what we put there, or a schema that is not ours any more.
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..)
            | rusqlite::Error::SqlInputError { .. } => Error::Corrupt { path, detail },
            _ => match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy { path },
                Some(ErrorCode::DiskFull) => Error::Full { path },
                Some(ErrorCode::NotADatabase) => Error::NotADatabase { path },
                Some(ErrorCode::DatabaseCorrupt) => Error::Corrupt { path, detail },
                // SQLite says so only where writing to the database itself fails, not its log or shared memory.
                Some(ErrorCode::CannotOpen | ErrorCode::SystemIoFailure) if !has_room(&path) => {
                    Error::Full { path }
                }
                Some(ErrorCode::FileLockingProtocolFailed) => Error::Busy { path },
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

/// Whether a little can be written beside the database.
fn has_room(database: &Path) -> bool {
    let probe = database.with_extension(format!("room-{}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&probe).and_then(|mut file| {
        io::Write::write_all(&mut file, &[0; 64 * 1024])?;
        file.sync_all()
    });
    drop(std::fs::remove_file(&probe));
    let full =
        |error: io::Error| matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    !written.is_err_and(full)
}

/// What SQLite says, without the statement it says it of.
pub(crate) fn short(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        error => error.to_string(),
    }
}

/// How complaints about the key get through SQLite, which passes on nothing but a text.
const KEY_MISSING: &str = "pml: the key is missing";
const KEY_UNUSABLE: &str = "pml: the key is unusable: ";

/// How SQLite carries a complaint about the key out of a function that needs it.
pub(crate) fn unusable(error: Error) -> rusqlite::Error {
    let text = match error {
        Error::KeyMissing { .. } => KEY_MISSING.to_owned(),
        Error::Key { why, .. } => format!("{KEY_UNUSABLE}{why}"),
        other => other.to_string(),
    };
    rusqlite::Error::UserFunctionError(text.into())
}

/// What an error of SQLite says about the key, if it is about the key.
fn key_complaint(database: &Path, error: &rusqlite::Error) -> Option<Error> {
    let rusqlite::Error::SqliteFailure(_, Some(text)) = error else { return None };
    let path = database.with_file_name("seal.key");
    if text == KEY_MISSING {
        return Some(Error::KeyMissing { path });
    }
    text.strip_prefix(KEY_UNUSABLE).map(|why| Error::Key { path, why: why.to_owned() })
}
