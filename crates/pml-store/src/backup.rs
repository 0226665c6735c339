//! Backups of the database, and restoring them.
//!
//! A backup is one SQLite file. It holds the database as of one moment and, in a table of its own, the files that
//! belong to it: the key that rows are sealed and marked with, unless it was left out, and the head of the audit log.
//! A backup is checked before it gets its final name, and again before it is restored. Backups of a server have the same
//! form, so either kind of database can be restored from either.

mod server;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use crate::backend::Backend;
use crate::check::integrity_errors;
use crate::lock::DatabaseLock;
use crate::vouch::{self, RowAuthenticator};
use crate::{BlockingStore, Error, connection, database};

pub use server::restore_backup_to_server;

/// The files beside the database that belong to it.
const KEY: &str = "seal.key";
const HEAD: &str = "audit.head";

/// Whether a backup holds the key that its rows are sealed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyInBackup {
    /// The backup can be restored anywhere, and its holder can read everything.
    Included,
    /// The backup can be restored only where the key file is.
    LeftOut,
}

/// Result of making a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupReport {
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Number of damaged rows, which are as damaged in the database.
    pub damaged_rows: u64,
}

/// Result of restoring a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreReport {
    /// Directory that the replaced files were moved to; `None` if there were none.
    pub replaced_files_dir: Option<PathBuf>,
    /// Whether the key came from the backup.
    pub key: KeyInBackup,
    /// Damaged rows, which every query leaves out.
    pub damaged_rows: Vec<String>,
}

impl BlockingStore {
    /// Copies the database to a new file while other processes go on using it.
    ///
    /// # Errors
    /// The file exists already, it cannot be written, or the copy is damaged. No file is left behind.
    pub fn backup(&self, to: &Path, key: KeyInBackup) -> Result<BackupReport, Error> {
        let refuse = |why: String| Error::Backup { path: to.to_owned(), why };
        if to.exists() {
            return Err(refuse("there is such a file already; name another one".to_owned()));
        }
        self.flush()?;
        let draft = suffixed(to, ".draft");
        let made = self.fill(&draft, key).and_then(|damaged_rows| {
            let bytes = finish(&draft, to).map_err(|error| refuse(error.to_string()))?;
            Ok(BackupReport { bytes, damaged_rows })
        });
        if made.is_err() {
            // An incomplete draft is useless, and may hold the key.
            drop(fs::remove_file(&draft));
        }
        made
    }

    fn fill(&self, draft: &Path, key: KeyInBackup) -> Result<u64, Error> {
        let refuse = |why: String| Error::Backup { path: draft.to_owned(), why };
        let explain = |error: rusqlite::Error| Error::sqlite(draft, &error);
        // The head is read before the copy: it may lag behind the log but must never be ahead of it.
        let beside = self.inner.authenticator.master.path();
        let head = read(beside, HEAD)?;
        create(draft).map_err(|error| refuse(error.to_string()))?;
        let copy = match &self.inner.backend {
            Backend::Sqlite(path) => {
                let source = connection::open_unvouched(path).map_err(|error| Error::sqlite(path, &error))?;
                let mut copy = plain(draft, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(explain)?;
                copy_all(&source, &mut copy).map_err(explain)?;
                copy
            }
            Backend::Postgres(of_server) => {
                server::copy_to_file(of_server, draft, &self.inner.authenticator)?
            }
        };
        let key = match key {
            KeyInBackup::Included => read(beside, KEY)?,
            KeyInBackup::LeftOut => None,
        };
        add_files(&copy, [(KEY, key), (HEAD, head)]).map_err(explain)?;
        if let Some(complaint) =
            integrity_errors(&copy, "integrity_check").map_err(explain)?.into_iter().next()
        {
            return Err(refuse(format!("the copy is damaged, as the database is: {complaint}")));
        }
        self.inner.authenticator.register(&copy).map_err(explain)?;
        let found = vouch::check_all_rows(&copy).map_err(|error| Error::sqlite(&self.inner.path, &error))?;
        Ok(found.damaged)
    }
}

/// Stores files in a backup.
fn add_files(copy: &Connection, files: [(&str, Option<Vec<u8>>); 2]) -> rusqlite::Result<()> {
    copy.execute_batch("CREATE TABLE backup_file (name TEXT PRIMARY KEY, content BLOB NOT NULL) STRICT")?;
    for (name, content) in files {
        let Some(content) = content else { continue };
        copy.execute("INSERT INTO backup_file (name, content) VALUES (?1, ?2)", params![name, content])?;
    }
    Ok(())
}

/// Replaces the database at `database` with a backup. The files that were there are moved to a directory whose name
/// ends with `label`.
///
/// # Errors
/// A process uses the database, or the file is not a PML backup, is damaged or lacks its key. Nothing is changed then.
pub fn restore_backup(backup: &Path, database: &Path, label: &str) -> Result<RestoreReport, Error> {
    let database = std::path::absolute(database).map_err(|error| Error::io(database, error))?;
    let explain = |error: io::Error| Error::io(&database, error);
    let home = database.parent().unwrap_or(Path::new("/"));
    make_directory(home).map_err(explain)?;
    let _alone = DatabaseLock::exclusive(&database)?;
    let room = home.join(".restoring");
    if room.exists() {
        fs::remove_dir_all(&room).map_err(explain)?;
    }
    make_directory(&room).map_err(explain)?;
    let prepared = prepare(backup, &database, &room);
    let restored = prepared.and_then(|(key, damaged_rows)| {
        let aside = exchange(&database, &room, label).map_err(explain)?;
        Ok(RestoreReport { replaced_files_dir: aside, key, damaged_rows })
    });
    drop(fs::remove_dir_all(&room));
    restored
}

/// Creates the new files in a directory of their own, and checks them.
fn prepare(backup: &Path, database: &Path, room: &Path) -> Result<(KeyInBackup, Vec<String>), Error> {
    let refuse = |why: String| Error::Backup { path: backup.to_owned(), why };
    if !backup.is_file() {
        return Err(refuse("there is no such file".to_owned()));
    }
    let explain = |error: rusqlite::Error| Error::sqlite(backup, &error);
    let mut source = plain(backup, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(explain)?;
    if database::schema_version(backup, &mut source)? == 0 {
        return Err(Error::NotADatabase { path: backup.to_owned() });
    }
    if let Some(complaint) = integrity_errors(&source, "integrity_check").map_err(explain)?.into_iter().next()
    {
        return Err(Error::Corrupt { path: backup.to_owned(), detail: complaint });
    }
    let new = room.join("pml.db");
    create(&new).map_err(|error| Error::io(&new, error))?;
    let mut copy = plain(&new, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(explain)?;
    copy_all(&source, &mut copy).map_err(explain)?;
    let file = |name: &str| file_in(&source, name).map_err(explain);
    let (included, head) = (file(KEY)?, file(HEAD)?);
    // The key must not remain in unused pages of the file.
    copy.execute_batch(
        "PRAGMA journal_mode = MEMORY; PRAGMA secure_delete = ON; DROP TABLE IF EXISTS backup_file",
    )
    .map_err(explain)?;
    drop(copy);
    let key = match &included {
        Some(_) => KeyInBackup::Included,
        None => KeyInBackup::LeftOut,
    };
    let secret = match included {
        Some(secret) => Some(secret),
        None => read(database, KEY)?,
    };
    for (name, content) in [(KEY, secret), (HEAD, head)] {
        if let Some(content) = content {
            let path = room.join(name);
            create(&path)
                .and_then(|()| fs::write(&path, content))
                .map_err(|error| Error::io(&path, error))?;
        }
    }
    // Opening migrates an older database to the current version.
    let store = BlockingStore::open(&new)?;
    let voucher = RowAuthenticator::beside(&new);
    let checked =
        database::open_reader(&new, &voucher).and_then(|connection| vouch::check_all_rows(&connection));
    let found = checked.map_err(|error| Error::sqlite(&new, &error))?;
    if found.damaged > 0 && found.damaged == found.all {
        let why = "it was made with another key; put the `seal.key` that belongs to it beside the database";
        return Err(refuse(why.to_owned()));
    }
    let whole = store.check_integrity()?;
    match whole.file_errors.into_iter().next() {
        Some(complaint) => Err(Error::Corrupt { path: backup.to_owned(), detail: complaint }),
        None => Ok((key, whole.damaged_rows)),
    }
}

/// Moves the existing files aside and the prepared ones in their place.
fn exchange(database: &Path, room: &Path, label: &str) -> io::Result<Option<PathBuf>> {
    let home = database.parent().unwrap_or(Path::new("/"));
    let aside = home.join(format!("replaced-{label}"));
    let mut old = vec![database.to_owned(), suffixed(database, "-wal"), suffixed(database, "-shm")];
    old.extend([KEY, HEAD].map(|name| database.with_file_name(name)));
    old.retain(|path| path.exists());
    if !old.is_empty() {
        make_directory(&aside)?;
    }
    for path in &old {
        fs::rename(path, aside.join(path.file_name().unwrap_or_default()))?;
    }
    for name in [KEY, HEAD] {
        let new = room.join(name);
        if new.exists() {
            fs::rename(new, database.with_file_name(name))?;
        }
    }
    // The database comes last: without its key file it would look like one whose key was lost.
    fs::rename(room.join("pml.db"), database)?;
    sync_directory(home)?;
    Ok((!old.is_empty()).then_some(aside))
}

/// Copies one database to another. One step, so that the copy is of one moment and nobody has to wait.
fn copy_all(from: &Connection, to: &mut Connection) -> rusqlite::Result<()> {
    {
        let copying = Backup::new(from, to)?;
        while copying.step(-1)? != StepResult::Done {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    // A backup is one file, without a write-ahead log beside it.
    to.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(()))
}

/// A connection without PML's SQL functions and triggers.
fn plain(path: &Path, mode: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF")?;
    Ok(connection)
}

/// A file that is stored in a backup.
fn file_in(backup: &Connection, name: &str) -> rusqlite::Result<Option<Vec<u8>>> {
    let has = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'backup_file'";
    if !backup.prepare(has)?.exists([])? {
        return Ok(None);
    }
    backup.query_row("SELECT content FROM backup_file WHERE name = ?1", [name], |row| row.get(0)).optional()
}

fn read(database: &Path, name: &str) -> Result<Option<Vec<u8>>, Error> {
    let path = database.with_file_name(name);
    match fs::read(&path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(&path, error)),
    }
}

/// Creates an empty file that only its owner can access.
fn create(path: &Path) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Syncs a draft, renames it to its final name, and returns its size in bytes.
fn finish(draft: &Path, to: &Path) -> io::Result<u64> {
    let file = File::open(draft)?;
    file.sync_all()?;
    let bytes = file.metadata()?.len();
    fs::rename(draft, to)?;
    sync_directory(to.parent().unwrap_or(Path::new(".")))?;
    Ok(bytes)
}

fn sync_directory(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(path)?.sync_all()?;
    Ok(())
}

fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}
