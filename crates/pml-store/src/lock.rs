//! Tells whether any process uses a database, whatever condition the database itself is in.
//!
//! Every store holds a shared lock on a file beside its database while it exists. The system releases the lock when
//! the process ends, however it ends. Replacing the database file requires the exclusive lock.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use crate::Error;

/// The lock, released when dropped.
pub(crate) struct DatabaseLock {
    _file: Option<File>,
}

impl DatabaseLock {
    /// Takes the shared lock, which marks the database as in use. On a file system without locks it succeeds without
    /// one.
    pub(crate) fn shared(database: &Path) -> Result<DatabaseLock, Error> {
        let Ok(file) = open(database) else { return Ok(DatabaseLock { _file: None }) };
        match file.try_lock_shared() {
            Ok(()) => Ok(DatabaseLock { _file: Some(file) }),
            Err(TryLockError::WouldBlock) => Err(Error::Busy { path: database.to_owned() }),
            Err(TryLockError::Error(_)) => Ok(DatabaseLock { _file: None }),
        }
    }

    /// Takes the exclusive lock.
    pub(crate) fn exclusive(database: &Path) -> Result<DatabaseLock, Error> {
        let file = open(database).map_err(|error| Error::io(database, error))?;
        match file.try_lock() {
            Ok(()) => Ok(DatabaseLock { _file: Some(file) }),
            Err(TryLockError::WouldBlock) => Err(Error::InUse { path: database.to_owned() }),
            Err(TryLockError::Error(error)) => Err(Error::io(database, error)),
        }
    }
}

fn open(database: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(beside(database))
}

fn beside(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-lock");
    PathBuf::from(name)
}
