//! The head file beside the database, which names the newest entry of the audit log.
//!
//! It is written after the commit, so it may lag but never names an entry that was not stored. It is written only
//! while the write lock of the database is held, so no process can set it back.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::sql::{Connection, OptionalExtension};

use crate::Error;
use crate::writer::WriteFailure;

/// Stands for the hash of the entry before the first.
pub(crate) const BEFORE_THE_FIRST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Maximum size of the file in bytes: more than PML ever writes.
const MAX_BYTES: u64 = 128;

/// The head file.
pub(crate) struct AuditHeadFile {
    database: PathBuf,
    path: PathBuf,
    /// Whether entries were added since it was last written.
    lags: AtomicBool,
}

/// Content of the head file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AuditHead {
    /// Number and hash of an entry; number 0 while the log is empty.
    Entry(i64, String),
    /// The file does not exist.
    Missing,
    /// The content is not in PML's format.
    Unreadable,
}

impl AuditHeadFile {
    pub(crate) fn beside(database: &Path) -> AuditHeadFile {
        let path = database.with_file_name("audit.head");
        AuditHeadFile { database: database.to_owned(), path, lags: AtomicBool::new(false) }
    }

    /// Creates the file if it is missing. Called before the first entry is stored, so that entries without a file
    /// prove damage.
    pub(crate) fn create_if_missing(&self) -> Result<(), Error> {
        match self.read() {
            Ok(AuditHead::Missing) => self.write(0, BEFORE_THE_FIRST),
            Ok(AuditHead::Entry(..) | AuditHead::Unreadable) => Ok(()),
            Err(error) => Err(error),
        }
        .map_err(|error| self.unusable_error(&error))
    }

    /// Names the newest entry if the file is missing: a gateway that joins others has none yet.
    pub(crate) fn adopt(&self, connection: &Connection) -> Result<(), Error> {
        let explain = |error: rusqlite::Error| Error::sqlite(&self.database, &error);
        match (self.read(), newest_entry(connection).map_err(explain)?) {
            (Ok(AuditHead::Missing), Some((seq, hash))) => self.write(seq, &hash),
            (outcome, _) => outcome.map(drop),
        }
        .map_err(|error| self.unusable_error(&error))
    }

    /// Records that entries were added, which will be committed soon or not at all.
    pub(crate) fn mark_stale(&self) {
        self.lags.store(true, Ordering::Relaxed);
    }

    /// Rewrites the file if entries were added. The writer thread calls this after a commit.
    pub(crate) fn update_if_stale(&self, connection: &Connection) {
        if self.lags.swap(false, Ordering::Relaxed) {
            // A file that lags proves less but nothing wrong; the next entry updates it.
            drop(self.catch_up(connection));
        }
    }

    fn catch_up(&self, connection: &Connection) -> Result<(), WriteFailure> {
        // The transaction writes nothing; its write lock keeps other processes from adding entries or updating the
        // file.
        let _alone = connection.begin_write()?;
        let Some((seq, hash)) = newest_entry(connection)? else { return Ok(()) };
        let named = self.read().map_err(|error| self.unusable_error(&error))?;
        let goes_on = match &named {
            AuditHead::Missing | AuditHead::Entry(0, _) => true,
            // If the entry that the file names is gone, the file stays unchanged as the proof of that.
            AuditHead::Entry(named, hash) => *named < seq && has(connection, *named, hash)?,
            AuditHead::Unreadable => false,
        };
        if goes_on {
            self.write(seq, &hash).map_err(|error| self.unusable_error(&error))?;
        }
        Ok(())
    }

    pub(crate) fn read(&self) -> io::Result<AuditHead> {
        match fs::metadata(&self.path) {
            Ok(found) if !found.is_file() || found.len() > MAX_BYTES => return Ok(AuditHead::Unreadable),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(AuditHead::Missing),
            Ok(_) | Err(_) => {}
        }
        let text = fs::read(&self.path)?;
        Ok(std::str::from_utf8(&text).ok().and_then(parse).unwrap_or(AuditHead::Unreadable))
    }

    /// Replaces the file atomically.
    fn write(&self, seq: i64, hash: &str) -> io::Result<()> {
        let draft = self.path.with_extension("draft");
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&draft)?;
        writeln!(file, "{seq} {hash}")?;
        file.sync_all()?;
        drop(file);
        fs::rename(&draft, &self.path)
    }

    /// The error that the file cannot be used.
    pub(crate) fn unusable_error(&self, error: &io::Error) -> Error {
        let why = format!("`{}` beside it: {error}", self.path.display());
        Error::io(&self.database, io::Error::new(error.kind(), why))
    }
}

/// Number and hash of the newest entry.
pub(crate) fn newest_entry(connection: &Connection) -> rusqlite::Result<Option<(i64, String)>> {
    connection
        .prepare_cached("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

/// Whether the entry with this number has this hash.
fn has(connection: &Connection, seq: i64, hash: &str) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM audit WHERE seq = ?1 AND hash = ?2")?.exists((seq, hash))
}

fn parse(text: &str) -> Option<AuditHead> {
    let (seq, hash) = text.strip_suffix('\n')?.split_once(' ')?;
    let seq = seq.parse().ok().filter(|seq| *seq >= 0)?;
    let whole = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    whole.then(|| AuditHead::Entry(seq, hash.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::database;
    use crate::vouch::RowAuthenticator;

    fn open(path: &Path) -> Connection {
        database::open(path, &RowAuthenticator::beside(path)).unwrap().into()
    }

    fn add(connection: &Connection, seq: i64) {
        let row = "INSERT INTO audit VALUES (?1, 1, 'local', NULL, 'told', '{}', ?2)";
        connection.execute(row, (seq, hash(seq))).unwrap();
    }

    fn hash(seq: i64) -> String {
        format!("{seq:064x}")
    }

    #[test]
    fn nobody_writes_the_file_while_another_adds_entries() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pml.db");
        let (one, other) = (open(&path), open(&path));
        one.sqlite().busy_timeout(Duration::from_millis(1)).unwrap();
        let head = AuditHeadFile::beside(&path);
        head.create_if_missing().unwrap();
        add(&one, 1);
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        add(&other, 2);
        head.mark_stale();
        head.update_if_stale(&one);
        assert_eq!(head.read().unwrap(), AuditHead::Entry(0, BEFORE_THE_FIRST.to_owned()));
        other.execute_batch("COMMIT").unwrap();
        head.mark_stale();
        head.update_if_stale(&one);
        assert_eq!(head.read().unwrap(), AuditHead::Entry(2, hash(2)));
        // Nothing was added, so nothing is done.
        add(&other, 3);
        head.update_if_stale(&one);
        assert_eq!(head.read().unwrap(), AuditHead::Entry(2, hash(2)));
    }
}
