//! The blocking store: the pool of read connections, the writer thread, and the authentication of rows. Other modules
//! add its queries.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::sql::{Connection, OptionalExtension};

use crate::backend::Backend;
use crate::head::AuditHeadFile;
use crate::lock::DatabaseLock;
use crate::postgres::{Presence, Server};
use crate::vouch::{self, RowAuthenticator};
use crate::watcher::VersionWatcher;
use crate::writer::{StoreWriter, Urgency, WriteFailure};
use crate::{Error, ProcessIdentity, database};

/// Number of idle read connections to a file that are kept open. Opening one reads the schema and compiles every statement anew,
/// which takes longer than most queries; each has a page cache of at most 1 MB. A page of the dashboard asks six at once.
const IDLE_READERS: usize = 8;

/// Number of read connections to a server, idle or not. A server has a hundred for all its clients, and each costs it a
/// process; more than this wait for their turn.
const SERVER_READERS: usize = 8;

/// The blocking interface of the database. Methods block, for up to five seconds while another process holds the file.
/// Clones share it. Dropping the last clone blocks until all queued changes are stored.
#[derive(Clone)]
pub struct BlockingStore {
    pub(crate) inner: Arc<StoreInner>,
}

/// How a database server is doing, as this process sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerHealth {
    /// Whether it answered within the last seconds.
    pub is_reachable: bool,
    /// How long it took to store one row, about a second ago.
    pub answer_time: Duration,
    /// By how many milliseconds its clock is ahead of this machine's.
    pub clock_ahead_ms: i64,
    /// Connections for queries that are in use.
    pub readers_in_use: usize,
    /// Connections for queries that there are at most; further queries wait.
    pub most_readers: usize,
}

pub(crate) struct StoreInner {
    /// Path of the file, or address of the database without its password.
    pub(crate) path: PathBuf,
    pub(crate) backend: Backend,
    // Declared before the writer, whose connection thus closes last and moves the write-ahead log into the file.
    readers: Mutex<Vec<Connection>>,
    /// Number of read connections to a server that are in use, and what is signalled when there is one fewer.
    used_readers: (Mutex<usize>, Condvar),
    watcher: Arc<VersionWatcher>,
    pub(crate) authenticator: Arc<RowAuthenticator>,
    pub(crate) head: Arc<AuditHeadFile>,
    pub(crate) writer: StoreWriter,
    // Dropped last: they must outlive every use of the database.
    _used: Option<DatabaseLock>,
    _presence: Option<Presence>,
}

impl BlockingStore {
    /// Opens the database at `path`, creates it if it is missing (directory 0700, file 0600), and migrates an older
    /// one to the current version.
    ///
    /// # Errors
    /// The file belongs to another program or a later version, is damaged or cannot be reached. It is left unchanged.
    pub fn open(path: &Path) -> Result<BlockingStore, Error> {
        // Absolute, so that SQLite takes no path for a URI or for `:memory:`.
        let path = std::path::absolute(path).map_err(|error| Error::io(path, error))?;
        let head = Arc::new(AuditHeadFile::beside(&path));
        let followed = Arc::clone(&head);
        let follow = move |connection: &Connection| followed.update_if_stale(connection);
        let voucher = RowAuthenticator::beside(&path);
        let writer = {
            let connection = database::open(&path, &voucher)?.into();
            refuse_incomplete(&path, &connection)?;
            StoreWriter::start(connection, &Backend::Sqlite(path.clone()), &voucher, follow)?
        };
        let used = DatabaseLock::shared(&path)?;
        let (readers, watcher) = (Mutex::default(), Arc::new(VersionWatcher::of_file(&path)));
        Ok(BlockingStore {
            inner: Arc::new(StoreInner {
                backend: Backend::Sqlite(path.clone()),
                path,
                readers,
                used_readers: Default::default(),
                watcher,
                authenticator: voucher,
                head,
                writer,
                _used: Some(used),
                _presence: None,
            }),
        })
    }

    /// Opens a database of a PostgreSQL server, creates its tables if there are none, and migrates older ones to the
    /// current version. `beside` is a path in the directory of the key file.
    ///
    /// # Errors
    /// The server cannot be reached or refuses, the database is one of a later version, or it belongs to another key.
    pub fn open_postgres(url: &str, beside: &Path) -> Result<BlockingStore, Error> {
        let server = Arc::new(Server::parse(url)?);
        let beside = std::path::absolute(beside).map_err(|error| Error::io(beside, error))?;
        database::create_directory(&beside).map_err(|error| Error::io(&beside, error))?;
        let path = server.name().to_owned();
        let voucher = RowAuthenticator::with_key_beside(&beside, &path);
        server.prepare(&voucher)?;
        let process = ProcessIdentity::current_anywhere().map_err(|error| Error::io(&path, error))?;
        let presence = Presence::open(&server, process)?;
        let backend = Backend::Postgres(Arc::clone(&server));
        let connection = backend.open_writer(&voucher)?;
        refuse_incomplete(&path, &connection)?;
        let head = Arc::new(AuditHeadFile::beside(&beside));
        head.adopt(&connection)?;
        let followed = Arc::clone(&head);
        let follow = move |connection: &Connection| followed.update_if_stale(connection);
        let writer = StoreWriter::start(connection, &backend, &voucher, follow)?;
        let watcher = Arc::new(VersionWatcher::of_server(&server, presence.news()));
        Ok(BlockingStore {
            inner: Arc::new(StoreInner {
                path,
                backend,
                readers: Mutex::default(),
                used_readers: Default::default(),
                watcher,
                authenticator: voucher,
                head,
                writer,
                _used: None,
                _presence: Some(presence),
            }),
        })
    }

    /// Path of the database file, or address of the database without its password.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// A number that differs whenever any process has committed anything since the last call on this store. Cheap
    /// enough to be read many times a second.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn data_version(&self) -> Result<i64, Error> {
        self.inner.watcher.data_version()
    }

    /// By how many milliseconds the clock that all processes of the database go by is ahead of this machine's. Processes
    /// on one file share a clock; gateways on several machines go by the clock of the server.
    pub fn clock_ahead_ms(&self) -> i64 {
        match &self.inner.backend {
            Backend::Sqlite(_) => 0,
            Backend::Postgres(server) => server.clock_ahead_ms(),
        }
    }

    /// How the database server is doing; `None` if the database is a file.
    pub fn server_health(&self) -> Option<ServerHealth> {
        let Backend::Postgres(server) = &self.inner.backend else { return None };
        let (is_reachable, answer_time) = server.health();
        let readers_in_use = *self.inner.used_readers.0.lock().unwrap_or_else(PoisonError::into_inner);
        Some(ServerHealth {
            is_reachable,
            answer_time,
            clock_ahead_ms: server.clock_ahead_ms(),
            readers_in_use,
            most_readers: SERVER_READERS,
        })
    }

    pub(crate) fn watcher(&self) -> &Arc<VersionWatcher> {
        &self.inner.watcher
    }

    /// Waits until all changes that were queued before are stored.
    ///
    /// # Errors
    /// A queued change cannot be stored.
    pub fn flush(&self) -> Result<(), Error> {
        self.write(|_| Ok(()))
    }

    /// Number of bytes that are queued and not stored yet. Beyond 64 MiB nothing more is queued and callers get
    /// [`Error::Backlog`].
    pub fn backlog_bytes(&self) -> usize {
        self.inner.writer.backlog()
    }

    /// Whether the database holds anything that was sealed or marked with the key beside it.
    pub(crate) fn is_key_in_use(&self) -> Result<bool, Error> {
        self.read(|connection| {
            connection
                .prepare(&format!(
                    "SELECT 1 FROM run_key UNION ALL SELECT 1 FROM audit UNION ALL SELECT 1 FROM approval_rule
                     UNION ALL SELECT 1 FROM allowed UNION ALL SELECT 1 FROM client_key
                     UNION ALL SELECT 1 FROM server_sign_in UNION ALL SELECT 1 FROM learning_context
                     UNION ALL {} LIMIT 1",
                    vouch::any_marked_row_sql()
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

    /// As `write`, for changes that this crate may refuse for reasons other than an SQLite error.
    pub(crate) fn change<T, F>(&self, urgency: Urgency, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, WriteFailure> + Send + 'static,
    {
        self.inner.writer.write(urgency, work)
    }

    /// Runs `question` on a read connection, in one snapshot of the database.
    pub(crate) fn read<T>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        self.try_read(question).map_err(|error| {
            self.inner.authenticator.observe_error(&error);
            Error::sqlite(&self.inner.path, &error)
        })
    }

    fn try_read<T>(&self, question: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let _turn = match self.inner.backend {
            Backend::Sqlite(_) => None,
            Backend::Postgres(_) => Some(ReaderTurn::wait(&self.inner.used_readers)),
        };
        let idle = self.inner.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.inner.backend.open_reader(&self.inner.authenticator)?,
        };
        let moment = connection.begin_read()?;
        let answer = question(&connection)?;
        moment.commit()?;
        let mut readers = self.inner.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let most = match self.inner.backend {
            Backend::Sqlite(_) => IDLE_READERS,
            Backend::Postgres(_) => SERVER_READERS,
        };
        if readers.len() < most {
            readers.push(connection);
        }
        Ok(answer)
    }
}

/// Refuses a database into which another one was copied in part.
fn refuse_incomplete(path: &Path, connection: &Connection) -> Result<(), Error> {
    let begun = connection.query_row("SELECT source FROM store_copy", [], |row| row.get(0)).optional();
    match begun.map_err(|error| Error::sqlite(path, &error))? {
        Some(source_name) => Err(Error::IncompleteCopy { path: path.to_owned(), source_name }),
        None => Ok(()),
    }
}

/// The right to one read connection to a server; dropping it lets the next one go on.
struct ReaderTurn<'s>(&'s (Mutex<usize>, Condvar));

impl ReaderTurn<'_> {
    fn wait(readers: &(Mutex<usize>, Condvar)) -> ReaderTurn<'_> {
        let used = readers.0.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |used: &mut usize| *used >= SERVER_READERS;
        *readers.1.wait_while(used, full).unwrap_or_else(PoisonError::into_inner) += 1;
        ReaderTurn(readers)
    }
}

impl Drop for ReaderTurn<'_> {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.1.notify_one();
    }
}

impl fmt::Debug for BlockingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingStore").field("path", &self.inner.path).finish_non_exhaustive()
    }
}
