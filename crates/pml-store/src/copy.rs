//! Copies everything from one database to another one that is empty: from a file to a server, back, or between two of a
//! kind.
//!
//! Rows are copied as they are: sealed bodies stay sealed, and marks stay valid, because both databases use the same key.
//! Nobody else may use either database meanwhile. A copy that is interrupted goes on where it stopped. At the end every
//! row of both is read and compared.

mod plan;
mod side;
mod tables;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use plan::copied_tables;
pub(crate) use side::Side;
pub(crate) use tables::copy_tables;
pub use tables::{CopyProgress, TableReport};

use crate::head::AuditHeadFile;
use crate::lock::DatabaseLock;
use crate::postgres::Server;
use crate::vouch::RowAuthenticator;
use crate::{Error, database};

/// Where a database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatabasePlace {
    /// A file.
    File(PathBuf),
    /// The address of a database of a PostgreSQL server, with its password.
    Server(String),
}

/// Copies everything from one database to another one. `beside` is a path in the directory of the key of databases on
/// servers; the key of a file is beside it.
///
/// # Errors
/// One of them is used by a process or cannot be reached, the target holds something else, or the two differ at the end.
pub fn copy_database(
    from: &DatabasePlace,
    to: &DatabasePlace,
    beside: &Path,
    progress: impl FnMut(CopyProgress<'_>),
) -> Result<Vec<TableReport>, Error> {
    if let DatabasePlace::File(path) = from {
        // Opening it would create it.
        fs::metadata(path).map_err(|error| Error::io(path, error))?;
    }
    let source_key = key_place(from, beside);
    let (source, _alone) = open(from, &source_key)?;
    let target_key = key_place(to, beside);
    if let DatabasePlace::File(path) = to {
        let explain = |error: io::Error| Error::io(path, error);
        database::create_directory(path).map_err(explain)?;
        take_key_along(&source_key, &target_key)?;
    }
    let (target, _alone_too) = open(to, &target_key)?;
    let copied = copy_tables(&source, &target, progress)?;
    if let DatabasePlace::File(path) = to {
        target
            .run("PRAGMA synchronous = FULL; PRAGMA wal_checkpoint(TRUNCATE)")
            .map_err(|error| target.explain(&error))?;
        // The head of the audit log belongs to the file as the key does.
        let connection = database::open_writer(path, &RowAuthenticator::beside(path))?.into();
        AuditHeadFile::beside(path).adopt(&connection)?;
    }
    Ok(copied)
}

/// Quoted names of tables, separated by commas.
pub(crate) fn quoted_list(names: &[String]) -> String {
    plan::CopiedTable::list(names)
}

/// The right to be the only one who uses a database.
enum Alone {
    File {
        _lock: DatabaseLock,
    },
    /// The connection of the side itself holds a lock.
    Server,
}

fn key_place(place: &DatabasePlace, beside: &Path) -> PathBuf {
    match place {
        DatabasePlace::File(path) => path.clone(),
        DatabasePlace::Server(_) => beside.to_owned(),
    }
}

fn open(place: &DatabasePlace, key: &Path) -> Result<(Side, Alone), Error> {
    match place {
        DatabasePlace::File(path) => {
            let lock = DatabaseLock::exclusive(path)?;
            let connection = database::open(path, &RowAuthenticator::beside(path))?;
            Ok((Side::of_file(path, connection), Alone::File { _lock: lock }))
        }
        DatabasePlace::Server(url) => {
            let server = Arc::new(Server::parse(url)?);
            let authenticator = RowAuthenticator::with_key_beside(key, server.name());
            let connection = server.open_alone()?;
            server.prepare(&authenticator)?;
            Ok((Side::of_server(&server, connection), Alone::Server))
        }
    }
}

/// Puts the key of the source beside a target that has none. One that has another key is refused: nothing that is copied
/// could be read there.
fn take_key_along(source: &Path, target: &Path) -> Result<(), Error> {
    let (from, to) = (source.with_file_name("seal.key"), target.with_file_name("seal.key"));
    let explain = |error: io::Error| Error::io(&to, error);
    let Some(key) = read(&from).map_err(explain)? else { return Ok(()) };
    match read(&to).map_err(explain)? {
        Some(other) if other == key => Ok(()),
        Some(_) => Err(Error::KeyMismatch { path: target.to_owned(), key: to }),
        None => {
            let mut options = fs::OpenOptions::new();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut file = options.open(&to).map_err(explain)?;
            io::Write::write_all(&mut file, &key).and_then(|()| file.sync_all()).map_err(explain)
        }
    }
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
