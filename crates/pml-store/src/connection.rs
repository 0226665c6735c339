//! Opens connections, with the settings that all of them share.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

/// How long a statement waits for the lock of another process.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum size of a body, in bytes.
pub(crate) const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// Maximum size of an SQLite value or row: a body and 64 KiB for the columns beside it.
const MAX_ROW_BYTES: i32 = 16 * 1024 * 1024 + 64 * 1024;

/// Number of compiled statements that a connection caches: enough for all that are used repeatedly.
const STATEMENTS: usize = 64;

/// A read-only connection for queries that check no row marks.
pub(crate) fn open_unvouched(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path)?;
    connection
        .execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -1000; PRAGMA temp_store = MEMORY")?;
    Ok(connection)
}

pub(crate) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(
        path,
        // Every connection has one user at a time, so SQLite needs no mutex of its own.
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // Without this SQLite looks at bound values when it plans, and so compiles most cached statements again for every
    // execution. That takes longer than most of them run, and no plan here depends on a value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_ROW_BYTES)?;
    Ok(connection)
}
