//! The file beside the database that names the newest entry of the log.
//!
//! It is written after the commit, so it may lag and never names what was not stored. Only whoever
//! could write to the database writes it, so of several processes none takes it backwards.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use crate::Error;
use crate::writer::Failure;

/// Stands for the hash of the entry before the first.
pub(crate) const BEFORE_THE_FIRST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// More than any file of ours has.
const MAX_BYTES: u64 = 128;

/// The file.
pub(crate) struct Head {
    database: PathBuf,
    path: PathBuf,
    /// Entries were added since it was last written.
    lags: AtomicBool,
}

/// What the file says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// Number and hash of an entry; number 0 before there is any.
    Entry(i64, String),
    /// There is no file.
    Nothing,
    /// Not what we write.
    Unreadable,
}

impl Head {
    pub(crate) fn beside(database: &Path) -> Head {
        let path = database.with_file_name("audit.head");
        Head { database: database.to_owned(), path, lags: AtomicBool::new(false) }
    }

    /// Makes the file where there is none. Called before the first entry is stored, so that with
    /// entries and without a file something is amiss.
    pub(crate) fn begin(&self) -> Result<(), Error> {
        match self.read() {
            Ok(Named::Nothing) => self.write(0, BEFORE_THE_FIRST),
            Ok(Named::Entry(..) | Named::Unreadable) => Ok(()),
            Err(error) => Err(error),
        }
        .map_err(|error| self.complain(&error))
    }

    /// Entries were added, and are committed soon or not at all.
    pub(crate) fn lags(&self) {
        self.lags.store(true, Ordering::Relaxed);
    }

    /// Writes the file anew if entries were added. The thread that writes calls this after a commit.
    pub(crate) fn follow(&self, connection: &mut Connection) {
        if self.lags.swap(false, Ordering::Relaxed) {
            // A file that lags tells less and nothing wrong; the next entry brings it up.
            drop(self.catch_up(connection));
        }
    }

    fn catch_up(&self, connection: &mut Connection) -> Result<(), Failure> {
        // Nothing is changed; but while this lasts, nobody else adds entries or is here.
        let alone = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let Some((seq, hash)) = newest(&alone)? else { return Ok(()) };
        let named = self.read().map_err(|error| self.complain(&error))?;
        let goes_on = match &named {
            Named::Nothing | Named::Entry(0, _) => true,
            // Where the entry it names is gone, it stays as the proof of that.
            Named::Entry(named, hash) => *named < seq && has(&alone, *named, hash)?,
            Named::Unreadable => false,
        };
        if goes_on {
            self.write(seq, &hash).map_err(|error| self.complain(&error))?;
        }
        Ok(())
    }

    pub(crate) fn read(&self) -> io::Result<Named> {
        match fs::metadata(&self.path) {
            Ok(found) if !found.is_file() || found.len() > MAX_BYTES => return Ok(Named::Unreadable),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Named::Nothing),
            Ok(_) | Err(_) => {}
        }
        let text = fs::read(&self.path)?;
        Ok(std::str::from_utf8(&text).ok().and_then(parse).unwrap_or(Named::Unreadable))
    }

    /// The file is the old one or the new one, whatever happens meanwhile.
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

    /// The complaint that the file cannot be used.
    pub(crate) fn complain(&self, error: &io::Error) -> Error {
        let why = format!("`{}` beside it: {error}", self.path.display());
        Error::io(&self.database, io::Error::new(error.kind(), why))
    }
}

/// Number and hash of the newest entry.
pub(crate) fn newest(connection: &Connection) -> rusqlite::Result<Option<(i64, String)>> {
    connection
        .prepare_cached("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

/// Whether the entry with this number has this hash.
fn has(connection: &Connection, seq: i64, hash: &str) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM audit WHERE seq = ?1 AND hash = ?2")?.exists((seq, hash))
}

fn parse(text: &str) -> Option<Named> {
    let (seq, hash) = text.strip_suffix('\n')?.split_once(' ')?;
    let seq = seq.parse().ok().filter(|seq| *seq >= 0)?;
    let whole = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    whole.then(|| Named::Entry(seq, hash.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::database;
    use crate::vouch::Voucher;

    fn open(path: &Path) -> Connection {
        database::open(path, &Voucher::beside(path)).unwrap()
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
        let (mut one, other) = (open(&path), open(&path));
        one.busy_timeout(Duration::from_millis(1)).unwrap();
        let head = Head::beside(&path);
        head.begin().unwrap();
        add(&one, 1);
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        add(&other, 2);
        head.lags();
        head.follow(&mut one);
        assert_eq!(head.read().unwrap(), Named::Entry(0, BEFORE_THE_FIRST.to_owned()));
        other.execute_batch("COMMIT").unwrap();
        head.lags();
        head.follow(&mut one);
        assert_eq!(head.read().unwrap(), Named::Entry(2, hash(2)));
        // Nothing was added, so nothing is done.
        add(&other, 3);
        head.follow(&mut one);
        assert_eq!(head.read().unwrap(), Named::Entry(2, hash(2)));
    }
}
