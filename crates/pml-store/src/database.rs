//! Opens the database file: permissions, connection settings, migrations.
//!
//! A file of another program or of a later version is never touched. The file is opened only through SQLite: closing
//! any other descriptor of it would drop the locks that this process holds.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior};

use crate::Error;
use crate::connection::{BUSY_TIMEOUT, connect, open_unvouched};
use crate::vouch::{self, RowAuthenticator};

/// Migrations go forward only: a released one is never edited, a later one is added after it.
pub(crate) const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_catalogue.sql"),
    include_str!("../migrations/0002_runs.sql"),
    include_str!("../migrations/0003_decisions.sql"),
    include_str!("../migrations/0004_accepted.sql"),
    include_str!("../migrations/0005_memory.sql"),
    include_str!("../migrations/0006_allowed.sql"),
    include_str!("../migrations/0007_vectors.sql"),
    include_str!("../migrations/0008_results.sql"),
    include_str!("../migrations/0009_tools.sql"),
    include_str!("../migrations/0010_keys.sql"),
    include_str!("../migrations/0011_answers.sql"),
    include_str!("../migrations/0012_intents.sql"),
    MARKS,
    include_str!("../migrations/0015_speculation.sql"),
    include_str!("../migrations/0016_mocks.sql"),
    include_str!("../migrations/0017_explored_paths.sql"),
    include_str!("../migrations/0018_run_lists.sql"),
    include_str!("../migrations/0019_key_rights.sql"),
    include_str!("../migrations/0020_people.sql"),
    include_str!("../migrations/0025_packages.sql"),
    include_str!("../migrations/0026_key_storage.sql"),
    include_str!("../migrations/0027_dashboard_sessions.sql"),
    include_str!("../migrations/0040_server_sign_ins.sql"),
    include_str!("../migrations/0041_versions.sql"),
    include_str!("../migrations/0042_goldens.sql"),
    include_str!("../migrations/0043_speculation_confidence.sql"),
    include_str!("../migrations/0044_copies.sql"),
    include_str!("../migrations/0045_publications.sql"),
];

/// The migration that introduced row marks; existing rows are marked right after it.
const MARKS: &str = include_str!("../migrations/0014_marks.sql");

/// `PML1`: the SQLite application id, which tells PML's files from those of other programs.
const APPLICATION_ID: i64 = 0x504d_4c31;

/// Creates the file if it is missing, migrates it to the current version, and returns the write connection.
pub(crate) fn open(path: &Path, voucher: &Arc<RowAuthenticator>) -> Result<Connection, Error> {
    // Between creating a file and closing it, no other thread may hold locks on it through SQLite.
    static OPENING: Mutex<()> = Mutex::new(());
    let _alone = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    create(path).map_err(|error| Error::io(path, error))?;
    open_writer(path, voucher)
}

/// A write connection to a file that exists.
pub(crate) fn open_writer(path: &Path, voucher: &Arc<RowAuthenticator>) -> Result<Connection, Error> {
    let explain = |error: rusqlite::Error| Error::sqlite(path, &error);
    let mut connection = connect(path).map_err(explain)?;
    let version = schema_version(path, &mut connection)?;
    voucher.register(&connection).map_err(explain)?;
    settle(&mut connection, version).map_err(explain)?;
    Ok(connection)
}

/// A read-only connection to a file that [`open`] has accepted.
pub(crate) fn open_reader(path: &Path, voucher: &Arc<RowAuthenticator>) -> rusqlite::Result<Connection> {
    let connection = open_unvouched(path)?;
    voucher.register(&connection)?;
    Ok(connection)
}

/// Creates the directory of a file if it is missing.
pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
    let Some(directory) = path.parent() else { return Ok(()) };
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

fn create(path: &Path) -> io::Result<()> {
    create_directory(path)?;
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The schema version of a file that is PML's or empty.
pub(crate) fn schema_version(path: &Path, connection: &mut Connection) -> Result<usize, Error> {
    // If the file is not PML's, closing the connection must not checkpoint its log into it.
    let explain = |error: rusqlite::Error| Error::sqlite(path, &error);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(explain)?;
    let (application, version, objects) = identity(connection).map_err(explain)?;
    let empty = application == 0 && version == 0 && objects == 0 && !is_fragment(path);
    if application != APPLICATION_ID && !empty {
        return Err(Error::NotADatabase { path: path.to_owned() });
    }
    let known = MIGRATIONS.len();
    let Some(version) = usize::try_from(version).ok().filter(|version| *version <= known) else {
        return Err(Error::NewerVersion { path: path.to_owned(), found: version, known: known as i64 });
    };
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map_err(explain)?;
    Ok(version)
}

/// Whether the file is too short to be a database but not empty. SQLite would take it for an empty database and
/// overwrite it. The smallest SQLite page has 512 bytes.
fn is_fragment(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| (1..512).contains(&file.len()))
}

/// Application id, version and number of tables, read in one transaction.
fn identity(connection: &mut Connection) -> rusqlite::Result<(i64, i64, i64)> {
    let moment = connection.transaction()?;
    let objects = moment.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let application = moment.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let version = moment.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok((application, version, objects))
}

fn settle(connection: &mut Connection, version: usize) -> rusqlite::Result<()> {
    write_ahead(connection)?;
    // Sorting in memory keeps definitions out of the shared directory for temporary files. On systems where a plain
    // sync stops at the cache of the disk, as on macOS, durable commits use a full sync.
    connection.execute_batch(
        "PRAGMA synchronous = NORMAL;
         PRAGMA fullfsync = ON;
         PRAGMA foreign_keys = ON;
         PRAGMA cache_size = -2000;
         PRAGMA temp_store = MEMORY;
         PRAGMA journal_size_limit = 16777216;",
    )?;
    if version < MIGRATIONS.len() { migrate(connection) } else { Ok(()) }
}

/// Turns the write-ahead log on. SQLite does not apply its busy timeout to this switch, so it is retried here.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let started = Instant::now();
    loop {
        match connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())) {
            Err(error) if is_busy(&error) && started.elapsed() < BUSY_TIMEOUT => {
                thread::sleep(Duration::from_millis(2));
            }
            outcome => return outcome,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have migrated while this one waited for the lock.
    let version: usize = transaction.query_row("PRAGMA user_version", [], |row| {
        row.get::<_, i64>(0).map(|version| usize::try_from(version).unwrap_or(MIGRATIONS.len()))
    })?;
    for migration in MIGRATIONS.iter().skip(version) {
        transaction.execute_batch(migration)?;
        if *migration == MARKS {
            vouch::mark_all_rows(&transaction)?;
        }
    }
    if version < MIGRATIONS.len() {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", MIGRATIONS.len() as i64)?;
    }
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_has_no_dangerous_powers() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pml.db");
        let voucher = RowAuthenticator::beside(&path);
        let connection = open(&path, &voucher).unwrap();
        for statement in [
            "ATTACH 'other.db' AS other",
            "SELECT load_extension('evil')",
            "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema",
        ] {
            assert!(connection.execute_batch(statement).is_err(), "{statement}");
        }
        let setting = |name: &str| -> String {
            connection
                .query_row(&format!("PRAGMA {name}"), [], |row| {
                    row.get_ref(0).map(|value| {
                        value.as_str().map_or_else(|_| value.as_i64().unwrap().to_string(), str::to_owned)
                    })
                })
                .unwrap()
        };
        assert_eq!(setting("journal_mode"), "wal");
        assert_eq!(setting("synchronous"), "1");
        assert_eq!(setting("foreign_keys"), "1");
        assert_eq!(setting("trusted_schema"), "0");
        assert!(open_reader(&path, &voucher).unwrap().execute_batch("DELETE FROM tool").is_err());
    }
}
