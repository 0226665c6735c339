//! Tells whether any process uses a database, whatever state the database itself is in.
//!
//! Every store holds a shared lock on a file beside its database for as long as it lives; the system releases it when
//! the process ends, however it ends. Whoever puts another file in place of the database needs the lock for itself.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use crate::Error;

/// The lock, released when it is dropped.
pub(crate) struct Lock {
    _file: Option<File>,
}

impl Lock {
    /// Says that the database is used. Where the file system knows no locks, nothing is said.
    pub(crate) fn shared(database: &Path) -> Result<Lock, Error> {
        let Ok(file) = open(database) else { return Ok(Lock { _file: None }) };
        match file.try_lock_shared() {
            Ok(()) => Ok(Lock { _file: Some(file) }),
            Err(TryLockError::WouldBlock) => Err(Error::Busy { path: database.to_owned() }),
            Err(TryLockError::Error(_)) => Ok(Lock { _file: None }),
        }
    }

    /// The lock for its holder alone.
    pub(crate) fn exclusive(database: &Path) -> Result<Lock, Error> {
        let file = open(database).map_err(|error| Error::io(database, error))?;
        match file.try_lock() {
            Ok(()) => Ok(Lock { _file: Some(file) }),
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
