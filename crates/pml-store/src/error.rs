//! The errors of the store, sorted by what the caller can do about them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pml_model::{KeyId, RunId, RunState};
use rusqlite::ErrorCode;
use tokio_postgres::error::SqlState;

use crate::failure::Failure;

/// Why a query has no result or a change was not stored. A failed change leaves no trace in the database.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Another process held the lock of the database longer than `BUSY_TIMEOUT`.
    #[error("database `{path}` is held by another process; wait for it or end it, then try again")]
    Busy {
        /// Path of the database.
        path: PathBuf,
    },
    /// The disk is full. Reads go on; writes resume as soon as there is space.
    #[error("no space is left for database `{path}`; free some and try again")]
    DiskFull {
        /// Path of the database.
        path: PathBuf,
    },
    /// A later version of PML wrote the database.
    #[error("database `{path}` has version {found} and this program knows up to {known}; update the program")]
    NewerVersion {
        /// Path of the database.
        path: PathBuf,
        /// Schema version of the file.
        found: i64,
        /// Latest schema version that this program knows.
        known: i64,
    },
    /// The file is not a database, or one of another program.
    #[error("`{path}` is not a database of this program; move it away or name another file")]
    NotADatabase {
        /// Path of the file.
        path: PathBuf,
    },
    /// The database is damaged.
    #[error(
        "database `{path}` is damaged: {detail}; put a backup in its place with `pml restore`, or move the file away to start afresh"
    )]
    Corrupt {
        /// Path of the database.
        path: PathBuf,
        /// The damage, in words.
        detail: String,
    },
    /// Other processes use the database, so it cannot be replaced.
    #[error(
        "database `{path}` is in use by another PML process; end `pml serve` and the clients that run `pml stdio`"
    )]
    InUse {
        /// Path of the database.
        path: PathBuf,
    },
    /// A backup cannot be made or restored.
    #[error("cannot use backup `{path}`: {why}")]
    Backup {
        /// Path of the backup or the database.
        path: PathBuf,
        /// What is wrong and what to do.
        why: String,
    },
    /// The file or its directory cannot be opened, read or written.
    #[error("cannot use database `{path}`: {source}; check that its directory exists and can be written")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: Arc<io::Error>,
    },
    /// SQLite refused a statement, for example because a value exceeds its size limit.
    #[error("database `{path}` refused a statement: {detail}")]
    Sql {
        /// Path of the database.
        path: PathBuf,
        /// The message of SQLite, without the statement.
        detail: String,
    },
    /// The write queue is full.
    #[error(
        "{bytes} bytes wait to be written to database `{path}`, which is slower than what comes; wait and try again"
    )]
    Backlog {
        /// Path of the database.
        path: PathBuf,
        /// Number of bytes in the queue.
        bytes: usize,
    },
    /// Another process has claimed the run. The caller must not write or send anything on its behalf any more.
    #[error("run `{run}` was taken over; leave it to its new owner")]
    Fenced {
        /// Id of the run.
        run: RunId,
    },
    /// The run has ended and cannot change any more.
    #[error("run `{run}` is {state} already")]
    RunEnded {
        /// Id of the run.
        run: RunId,
        /// The final state.
        state: RunState,
    },
    /// An earlier append to the run was not stored, so later ones are refused.
    #[error("an earlier entry of run `{run}` could not be stored; give the run up, it resumes from what was")]
    JournalGap {
        /// Id of the run.
        run: RunId,
    },
    /// The principal has no such run, or no longer has it.
    #[error("there is no run `{run}`")]
    UnknownRun {
        /// Id of the run.
        run: RunId,
    },
    /// The idempotency key belongs to an earlier run.
    #[error("the idempotency key is that of run `{run}`; ask for its result, or use another key")]
    IdempotencyKeyInUse {
        /// Id of the earlier run.
        run: RunId,
    },
    /// As many runs of the client key are under way as may be.
    #[error("{most} runs of key {key} are under way, which is all there may be")]
    TooManyKeyRuns {
        /// Number of the key.
        key: KeyId,
        /// How many there may be.
        most: u32,
    },
    /// A body exceeds the size limit.
    #[error("{what} of run `{run}` has {bytes} bytes and at most {limit} are stored")]
    TooLarge {
        /// Id of the run.
        run: RunId,
        /// Name of the body, for the message.
        what: &'static str,
        /// Size of the body in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The retention time of the run is over, and its records are purged.
    #[error("the records of run `{run}` are no longer kept")]
    RecordsExpired {
        /// Id of the run.
        run: RunId,
    },
    /// A sealed body of a run cannot be opened: it is damaged, was exchanged, or was sealed with another key.
    #[error(
        "{what} of run `{run}` is damaged or sealed with another key; restore the database together with `{key}` from a backup, or abort the run"
    )]
    Unsealed {
        /// Id of the run.
        run: RunId,
        /// Name of the body, for the message.
        what: &'static str,
        /// Path of the key file.
        key: PathBuf,
    },
    /// The key file is missing, and the database holds data that needs it.
    #[error(
        "key file `{path}` is missing, and without it what is stored can be neither read nor continued; put it back from a backup, or move the database away to start afresh"
    )]
    KeyMissing {
        /// Path of the key file.
        path: PathBuf,
    },
    /// The key file cannot be used.
    #[error("cannot use key file `{path}`: {why}")]
    KeyUnusable {
        /// Path of the key file.
        path: PathBuf,
        /// What is wrong and what to do.
        why: String,
    },
    /// The database server cannot be reached.
    #[error("cannot reach database `{path}`: {detail}; check that the server runs and the address is right")]
    Unreachable {
        /// Address of the database, without its password.
        path: PathBuf,
        /// The error of the connection.
        detail: String,
    },
    /// The database server does not let this user in, or not do what is needed.
    #[error("database `{path}` refuses: {detail}; check the user, its password and its privileges")]
    Refused {
        /// Address of the database, without its password.
        path: PathBuf,
        /// The message of the server.
        detail: String,
    },
    /// The address of the database is not one of PostgreSQL.
    #[error(
        "the address of the database is wrong: {detail}; write it as `postgres://user:password@host/database`"
    )]
    BadDatabaseUrl {
        /// What is wrong with it.
        detail: String,
    },
    /// The database was filled with another key.
    #[error(
        "database `{path}` belongs to another key than `{key}`; copy `seal.key` from the data directory of a gateway that uses it"
    )]
    KeyMismatch {
        /// Address of the database, without its password.
        path: PathBuf,
        /// Path of the key file.
        key: PathBuf,
    },
    /// A run that should be forgotten has not ended.
    #[error("run `{run}` has not ended; abort it with `pml runs abort {run}`, or wait for its end")]
    RunNotEnded {
        /// Id of the run.
        run: RunId,
    },
    /// The database to be copied to holds something.
    #[error("database `{path}` is not empty: table `{table}` has rows; name an empty one")]
    NotEmpty {
        /// Path of the database, or its address without its password.
        path: PathBuf,
        /// A table with rows.
        table: String,
    },
    /// A copy into the database was begun and not finished.
    #[error(
        "the copy of `{source_name}` into database `{path}` is not finished; run `pml migrate` again to go on, or delete what was copied to begin anew"
    )]
    IncompleteCopy {
        /// Path of the database, or its address without its password.
        path: PathBuf,
        /// The database that is copied.
        source_name: String,
    },
    /// What was copied is not what is in the source.
    #[error(
        "table `{table}` of database `{path}` differs from what was copied; the source changed after the copy was begun, or the target was written to: delete what was copied and begin anew"
    )]
    CopyDiffers {
        /// Path of the target, or its address without its password.
        path: PathBuf,
        /// The first table that differs.
        table: String,
    },
    /// The writer thread has ended.
    #[error("nothing can be written to database `{path}` any more; restart the program")]
    WriterStopped {
        /// Path of the database.
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
        if let Some(failure) = Failure::within(error) {
            return Error::postgres(path, failure);
        }
        let (path, detail) = (path.to_owned(), short_message(error));
        match error {
            // The column does not hold what this crate stores there, or the schema was altered.
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..)
            | rusqlite::Error::SqlInputError { .. } => Error::Corrupt { path, detail },
            _ => match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy { path },
                Some(ErrorCode::DiskFull) => Error::DiskFull { path },
                Some(ErrorCode::NotADatabase) => Error::NotADatabase { path },
                Some(ErrorCode::DatabaseCorrupt) => Error::Corrupt { path, detail },
                // SQLite reports a full disk only when writing to the database file fails, not to its log or shared
                // memory.
                Some(ErrorCode::CannotOpen | ErrorCode::SystemIoFailure) if !has_room(&path) => {
                    Error::DiskFull { path }
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

impl Error {
    fn postgres(path: &Path, failure: &Failure) -> Error {
        let (path, detail) = (path.to_owned(), failure.to_string());
        match failure.code.as_ref().map(SqlState::code) {
            _ if failure.is_lost => Error::Unreachable { path, detail },
            // No space, too many rows for the disk quota.
            Some("53100") => Error::DiskFull { path },
            // A lock was not released in time.
            Some("55P03") => Error::Busy { path },
            // Wrong password or user, no such database, missing privileges.
            Some("28P01" | "28000" | "3D000" | "42501") => Error::Refused { path, detail },
            None if detail.contains("TLS") => Error::Refused { path, detail },
            _ => Error::Sql { path, detail },
        }
    }
}

/// Whether 64 KiB can be written beside the database.
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

/// The message of SQLite, without the statement it refers to.
pub(crate) fn short_message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        error => error.to_string(),
    }
}

/// Error text by which a key error passes through SQLite, which carries nothing but a text.
const KEY_MISSING: &str = "pml: the key is missing";
const KEY_UNUSABLE: &str = "pml: the key is unusable: ";

/// Wraps a key error so that it can pass through SQLite, out of an SQL function that needs the key.
pub(crate) fn to_key_error(error: Error) -> rusqlite::Error {
    let text = match error {
        Error::KeyMissing { .. } => KEY_MISSING.to_owned(),
        Error::KeyUnusable { why, .. } => format!("{KEY_UNUSABLE}{why}"),
        other => other.to_string(),
    };
    rusqlite::Error::UserFunctionError(text.into())
}

/// The key error that an SQLite error carries, if it carries one.
fn key_complaint(database: &Path, error: &rusqlite::Error) -> Option<Error> {
    let rusqlite::Error::SqliteFailure(_, Some(text)) = error else { return None };
    let path = database.with_file_name("seal.key");
    if text == KEY_MISSING {
        return Some(Error::KeyMissing { path });
    }
    text.strip_prefix(KEY_UNUSABLE).map(|why| Error::KeyUnusable { path, why: why.to_owned() })
}
