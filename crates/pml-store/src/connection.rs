//! A connection to the file, with the settings that every one has.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

/// How long a statement waits for another process.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The largest body taken in.
pub(crate) const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// The largest value or row SQLite takes: a body and what stands beside it.
const MAX_ROW_BYTES: i32 = 16 * 1024 * 1024 + 64 * 1024;

/// How many statements a connection keeps compiled: all that are asked again and again.
const STATEMENTS: usize = 64;

/// A connection that cannot write, for questions that no mark is needed for.
pub(crate) fn open_unvouched(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path)?;
    connection
        .execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -1000; PRAGMA temp_store = MEMORY")?;
    Ok(connection)
}

pub(crate) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(
        path,
        // Every connection has one user at a time, so SQLite need not lock within the process.
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_ROW_BYTES)?;
    Ok(connection)
}
