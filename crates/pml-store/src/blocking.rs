//! The database for threads that may wait: connections for reading, the thread that writes, and what vouches for rows.
//! Other modules add the questions it answers.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use crate::head::Head;
use crate::lock::Lock;
use crate::vouch::{self, Voucher};
use crate::watcher::Watcher;
use crate::writer::{Failure, Urgency, Writer};
use crate::{Error, database};

/// How many idle connections for reading are kept.
const IDLE_READERS: usize = 2;

/// The database for threads that may wait: methods block, for as long as five seconds when another process holds the
/// file. Clones share it. The last clone to go stores what is queued before it returns.
#[derive(Clone)]
pub struct BlockingStore {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) path: PathBuf,
    // Before the writer, whose connection thus closes last and moves the log into the file.
    readers: Mutex<Vec<Connection>>,
    watcher: Arc<Watcher>,
    pub(crate) voucher: Arc<Voucher>,
    pub(crate) head: Arc<Head>,
    pub(crate) writer: Writer,
    // Last to go: until then the file is used.
    _used: Lock,
}

impl BlockingStore {
    /// Opens the database at `path`, makes it where there is none (directory 0700, file 0600), and
    /// brings an older one to the present version.
    ///
    /// # Errors
    /// The file is of another program, of a later version, damaged or out of reach; it is left as
    /// it was.
    pub fn open(path: &Path) -> Result<BlockingStore, Error> {
        // Absolute, so that no name is read as a URI or as SQLite's word for memory.
        let path = std::path::absolute(path).map_err(|error| Error::io(path, error))?;
        let head = Arc::new(Head::beside(&path));
        let followed = Arc::clone(&head);
        let follow = move |connection: &mut Connection| followed.follow(connection);
        let voucher = Voucher::beside(&path);
        let writer = Writer::start(database::open(&path, &voucher)?, &path, &voucher, follow)?;
        let used = Lock::shared(&path)?;
        let (readers, watcher) = (Mutex::default(), Arc::new(Watcher::of(&path)));
        Ok(BlockingStore {
            inner: Arc::new(Inner { path, readers, watcher, voucher, head, writer, _used: used }),
        })
    }

    /// Where the database is.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// A number that is another one whenever anything was committed, by whichever process, since this
    /// store was last asked. Cheap enough to be asked many times a second.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn data_version(&self) -> Result<i64, Error> {
        self.inner.watcher.version()
    }

    pub(crate) fn watcher(&self) -> &Arc<Watcher> {
        &self.inner.watcher
    }

    /// Waits until all that was given to be stored before is.
    ///
    /// # Errors
    /// It cannot be stored.
    pub fn flush(&self) -> Result<(), Error> {
        self.write(|_| Ok(()))
    }

    /// How many bytes were given to be stored and are not yet. Beyond 64 MiB nothing more is queued
    /// and [`Error::Backlog`] is the answer.
    pub fn backlog(&self) -> usize {
        self.inner.writer.backlog()
    }

    /// Whether anything is stored that the key beside the database was used for.
    pub(crate) fn uses_key(&self) -> Result<bool, Error> {
        self.read(|connection| {
            connection
                .prepare(&format!(
                    "SELECT 1 FROM run_key UNION ALL SELECT 1 FROM audit UNION ALL SELECT 1 FROM approval_rule
                     UNION ALL SELECT 1 FROM allowed UNION ALL SELECT 1 FROM client_key UNION ALL {} LIMIT 1",
                    vouch::any_marked()
                ))?
                .exists([])
        })
    }

    pub(crate) fn write<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        self.inner.writer.write(Urgency::Soon, work)
    }

    /// As `write`, for changes that may be refused for reasons of our own.
    pub(crate) fn change<T, F>(&self, urgency: Urgency, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Failure> + Send + 'static,
    {
        self.inner.writer.write(urgency, work)
    }

    /// Asks `question` of one moment of the database.
    pub(crate) fn read<T>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        self.try_read(question).map_err(|error| {
            self.inner.voucher.observe(&error);
            Error::sqlite(&self.inner.path, &error)
        })
    }

    fn try_read<T>(&self, question: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let idle = self.inner.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => database::open_reader(&self.inner.path, &self.inner.voucher)?,
        };
        let moment = connection.transaction()?;
        let answer = question(&moment)?;
        moment.commit()?;
        let mut readers = self.inner.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() < IDLE_READERS {
            readers.push(connection);
        }
        Ok(answer)
    }
}

impl fmt::Debug for BlockingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingStore").field("path", &self.inner.path).finish_non_exhaustive()
    }
}
