//! The writer thread: the only thread of a store that writes.
//!
//! Changes are applied in the order in which they were queued. Changes that wait together share a commit, and a caller
//! gets its result only after the commit. A failed change does not affect the others of its batch.

mod queue;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};

use crate::sql::Connection;
use queue::WriteQueue;

use crate::Error;
use crate::backend::Backend;
use crate::vouch::RowAuthenticator;

/// Weight of a change in the queue in addition to its bodies, in bytes.
const WEIGHT_BYTES: usize = 1024;

/// How soon a change has to reach the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Committed within five milliseconds, together with other changes.
    Lazy,
    /// Committed at once. The change survives the end of this process, however it ends.
    Soon,
    /// Committed and synced at once. The change survives a loss of power too.
    Durable,
}

/// Why a change was not made: an SQLite error, or a refusal of this crate.
pub(crate) enum WriteFailure {
    Sqlite(rusqlite::Error),
    Refused(Error),
}

impl From<rusqlite::Error> for WriteFailure {
    fn from(error: rusqlite::Error) -> WriteFailure {
        WriteFailure::Sqlite(error)
    }
}

impl From<Error> for WriteFailure {
    fn from(error: Error) -> WriteFailure {
        WriteFailure::Refused(error)
    }
}

impl WriteFailure {
    pub(crate) fn into_error(self, path: &Path) -> Error {
        match self {
            WriteFailure::Sqlite(error) => Error::sqlite(path, &error),
            WriteFailure::Refused(error) => error,
        }
    }
}

/// Handle of the writer thread. Dropping it stores what is queued and ends the thread.
pub(crate) struct StoreWriter {
    path: PathBuf,
    backend: Backend,
    queue: Arc<WriteQueue>,
    thread: Option<JoinHandle<()>>,
}

impl StoreWriter {
    /// Starts the thread. It calls `committed` after every commit, before any caller gets its result.
    pub(crate) fn start(
        connection: Connection,
        backend: &Backend,
        voucher: &Arc<RowAuthenticator>,
        committed: impl FnMut(&Connection) + Send + 'static,
    ) -> Result<StoreWriter, Error> {
        let queue = Arc::new(WriteQueue::default());
        let (of_thread, database, voucher) = (Arc::clone(&queue), backend.clone(), Arc::clone(voucher));
        let path = backend.name();
        let thread = thread::Builder::new()
            .name("pml-store".to_owned())
            .spawn(move || serve(connection, &of_thread, (&database, &voucher), committed))
            .map_err(|error| Error::io(path, error))?;
        Ok(StoreWriter { path: path.to_owned(), backend: backend.clone(), queue, thread: Some(thread) })
    }

    /// Runs `work` inside a transaction and waits for the commit.
    pub(crate) fn write<T, E, F>(&self, urgency: Urgency, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        E: Into<WriteFailure> + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    {
        let (reply, answer) = sync_channel(1);
        // The caller waits for this reply unless it panicked, and then no one needs it.
        let done = move |outcome| drop(reply.send(outcome));
        self.queue.push_blocking(self.change(0, urgency, work, done));
        answer.recv().map_err(|_| Error::WriterStopped { path: self.path.clone() })?
    }

    /// Queues `work`, which carries bodies of `bytes` in total, and returns at once. `done` is called exactly once: on
    /// the writer thread after the commit or the failure, or on the caller's thread if the change cannot be queued.
    pub(crate) fn enqueue<E, F, D>(&self, bytes: usize, urgency: Urgency, work: F, done: D)
    where
        E: Into<WriteFailure> + 'static,
        F: FnOnce(&Connection) -> Result<(), E> + Send + 'static,
        D: FnOnce(Result<(), Error>) + Send + 'static,
    {
        if let Err((job, bytes)) = self.queue.push(self.change(bytes, urgency, work, done)) {
            job.answer(Err(Error::Backlog { path: self.path.clone(), bytes }));
        }
    }

    /// Number of bytes that are queued or being written, and not committed yet.
    pub(crate) fn backlog(&self) -> usize {
        self.queue.bytes()
    }

    fn change<T, E, F, D>(&self, bytes: usize, urgency: Urgency, work: F, done: D) -> Box<dyn WriteJob>
    where
        T: Send + 'static,
        E: Into<WriteFailure> + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
        D: FnOnce(Result<T, Error>) + Send + 'static,
    {
        let (path, bytes) = (self.path.clone(), bytes + WEIGHT_BYTES);
        Box::new(QueuedChange { path, bytes, urgency, work: Some(work), outcome: None, done: Some(done) })
    }
}

impl Drop for StoreWriter {
    fn drop(&mut self) {
        self.backend.begin_closing();
        self.queue.close();
        // The last owner of the store may be a change that was just answered, on the writer thread itself; it cannot
        // join itself.
        if let Some(thread) = self.thread.take_if(|thread| thread.thread().id() != thread::current().id()) {
            // A thread that panicked has reported that already, and every caller has got `WriterStopped`.
            drop(thread.join());
        }
    }
}

fn serve(
    connection: Connection,
    queue: &WriteQueue,
    (backend, voucher): (&Backend, &Arc<RowAuthenticator>),
    mut committed: impl FnMut(&Connection),
) {
    // However the thread ends, no caller may wait for it afterwards.
    let _end = queue.abandon_at_end();
    let mut file = WriteConnection {
        backend,
        voucher,
        connection: Some(connection),
        durable: false,
        keeps_marks: false,
    };
    while let Some(mut batch) = queue.take() {
        let outcome = file.commit_together(&mut batch);
        if let (Ok(()), Some(connection)) = (&outcome, &file.connection) {
            committed(connection);
        }
        queue.release_bytes(batch.iter().map(|job| job.bytes()).sum());
        for job in batch {
            job.answer(outcome.clone());
        }
    }
}

/// The writer thread's connection and its settings.
struct WriteConnection<'a> {
    backend: &'a Backend,
    voucher: &'a Arc<RowAuthenticator>,
    /// `None` after a failure from which only reopening the file recovers.
    connection: Option<Connection>,
    /// Whether commits are synced to the disk before they return.
    durable: bool,
    /// Whether the triggers that update row marks are installed. That takes some milliseconds, and many processes
    /// never write.
    keeps_marks: bool,
}

impl WriteConnection<'_> {
    fn commit_together(&mut self, batch: &mut [Box<dyn WriteJob>]) -> Result<(), Error> {
        self.voucher.refuse_if_broken()?;
        let open = match self.connection.take() {
            Some(open) => open,
            None => {
                (self.durable, self.keeps_marks) = (false, false);
                self.backend.open_writer(self.voucher)?
            }
        };
        if !self.keeps_marks {
            self.backend.keep_marks(&open).map_err(|error| Error::sqlite(self.backend.name(), &error))?;
            self.keeps_marks = true;
        }
        let durable = batch.iter().any(|job| job.urgency() == Urgency::Durable);
        let committed =
            self.set_durable(&open, durable).and_then(|()| run_together(&open, batch)).map_err(|error| {
                self.voucher.observe_error(&error);
                Error::sqlite(self.backend.name(), &error)
            });
        // After a failed write or sync the pages cached by the system may differ from the file. The connection is
        // closed, so that the next batch starts from what is really there.
        if !matches!(committed, Err(Error::Io { .. } | Error::Corrupt { .. } | Error::Unreachable { .. })) {
            self.connection = Some(open);
        }
        committed
    }

    /// SQLite accepts this setting only between transactions, and applies it while it compiles the statement: a
    /// statement from the cache would change nothing.
    fn set_durable(&mut self, connection: &Connection, durable: bool) -> rusqlite::Result<()> {
        // A server makes every commit durable.
        if durable != self.durable && matches!(connection, Connection::Sqlite(_)) {
            let level = if durable { "FULL" } else { "NORMAL" };
            connection.execute_batch(&format!("PRAGMA synchronous = {level}"))?;
            self.durable = durable;
        }
        Ok(())
    }
}

fn run_together(connection: &Connection, batch: &mut [Box<dyn WriteJob>]) -> rusqlite::Result<()> {
    let transaction = connection.begin_write()?;
    if let [only] = batch {
        // A failure here rolls back with the transaction.
        return if only.run(connection)? { transaction.commit() } else { transaction.rollback() };
    }
    for job in batch {
        connection.savepoint()?;
        match job.run(connection)? {
            true => connection.release_savepoint()?,
            false => connection.revert_to_savepoint()?,
        }
    }
    transaction.commit()
}

trait WriteJob: Send {
    fn bytes(&self) -> usize;
    fn urgency(&self) -> Urgency;
    /// Applies the change and returns whether it succeeded. An error means that the whole transaction is lost.
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<bool>;
    /// Reports the outcome to the caller.
    fn answer(self: Box<Self>, committed: Result<(), Error>);
}

struct QueuedChange<T, F, D: FnOnce(Result<T, Error>)> {
    path: PathBuf,
    bytes: usize,
    urgency: Urgency,
    work: Option<F>,
    outcome: Option<Result<T, WriteFailure>>,
    done: Option<D>,
}

impl<T, E, F, D> WriteJob for QueuedChange<T, F, D>
where
    T: Send,
    E: Into<WriteFailure>,
    F: FnOnce(&Connection) -> Result<T, E> + Send,
    D: FnOnce(Result<T, Error>) + Send,
{
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn urgency(&self) -> Urgency {
        self.urgency
    }

    fn run(&mut self, connection: &Connection) -> rusqlite::Result<bool> {
        let Some(work) = self.work.take() else { return Ok(false) };
        match work(connection).map_err(Into::into) {
            // On a full disk and the like SQLite rolls the whole transaction back by itself; continuing would run the
            // rest of the batch outside any transaction. A damaged file affects every change of the batch.
            Err(WriteFailure::Sqlite(error)) if connection.is_autocommit() || is_corrupt(&error) => {
                Err(error)
            }
            outcome => Ok(self.outcome.insert(outcome).is_ok()),
        }
    }

    fn answer(mut self: Box<Self>, committed: Result<(), Error>) {
        if let Some(done) = self.done.take() {
            let outcome =
                self.outcome.take().map(|outcome| outcome.map_err(|failure| failure.into_error(&self.path)));
            done(committed.and_then(|()| {
                outcome.unwrap_or_else(|| Err(Error::WriterStopped { path: self.path.clone() }))
            }));
        }
    }
}

fn is_corrupt(error: &rusqlite::Error) -> bool {
    matches!(error, rusqlite::Error::SqlInputError { .. })
        || error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt)
}

/// A change that is never applied, because the thread has ended, still gets its answer.
impl<T, F, D: FnOnce(Result<T, Error>)> Drop for QueuedChange<T, F, D> {
    fn drop(&mut self) {
        if let Some(done) = self.done.take() {
            done(Err(Error::WriterStopped { path: std::mem::take(&mut self.path) }));
        }
    }
}

#[cfg(test)]
mod tests;
