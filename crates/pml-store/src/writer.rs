//! The one thread of a store that writes.
//!
//! Changes are made in the order in which they were given. Those that wait together are committed
//! together, and a caller hears of its change only after the commit. A change that fails takes
//! nothing of its neighbours with it.

mod queue;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};

use queue::Queue;
use rusqlite::{Connection, TransactionBehavior};

use crate::vouch::{self, Voucher};
use crate::{Error, database};

/// What a change weighs in the queue beside the bodies it carries.
const WEIGHT_BYTES: usize = 1024;

/// How soon a change is to be on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// It may wait up to five milliseconds to be committed together with others.
    Lazy,
    /// It is committed at once, and survives the end of this process however that ends.
    Soon,
    /// It is committed at once and survives a loss of power too.
    Durable,
}

/// Why a change was not made: in SQLite's words or in ours.
pub(crate) enum Failure {
    Sqlite(rusqlite::Error),
    Refused(Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Failure {
        Failure::Sqlite(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Refused(error)
    }
}

impl Failure {
    pub(crate) fn told(self, path: &Path) -> Error {
        match self {
            Failure::Sqlite(error) => Error::sqlite(path, &error),
            Failure::Refused(error) => error,
        }
    }
}

/// Handle of the thread; dropping it stores what is queued and ends the thread.
pub(crate) struct Writer {
    path: PathBuf,
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread, which calls `committed` after every commit and before anyone hears of it.
    pub(crate) fn start(
        connection: Connection,
        path: &Path,
        voucher: &Arc<Voucher>,
        committed: impl FnMut(&mut Connection) + Send + 'static,
    ) -> Result<Writer, Error> {
        let queue = Arc::new(Queue::default());
        let (of_thread, file, voucher) = (Arc::clone(&queue), path.to_owned(), Arc::clone(voucher));
        let thread = thread::Builder::new()
            .name("pml-store".to_owned())
            .spawn(move || serve(connection, &of_thread, (&file, &voucher), committed))
            .map_err(|error| Error::io(path, error))?;
        Ok(Writer { path: path.to_owned(), queue, thread: Some(thread) })
    }

    /// Runs `work` inside a transaction and waits until it is committed.
    pub(crate) fn write<T, E, F>(&self, urgency: Urgency, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        E: Into<Failure> + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
    {
        let (reply, answer) = sync_channel(1);
        // The caller waits for this answer unless it panicked, and then nobody needs it.
        let done = move |outcome| drop(reply.send(outcome));
        self.queue.push_when_there_is_room(self.change(0, urgency, work, done));
        answer.recv().map_err(|_| Error::Stopped { path: self.path.clone() })?
    }

    /// Queues `work`, which carries bodies of `bytes`, and returns at once. `done` is called exactly
    /// once: after the commit or the failure on the thread that writes, or on the caller's where
    /// nothing can be queued.
    pub(crate) fn enqueue<E, F, D>(&self, bytes: usize, urgency: Urgency, work: F, done: D)
    where
        E: Into<Failure> + 'static,
        F: FnOnce(&Connection) -> Result<(), E> + Send + 'static,
        D: FnOnce(Result<(), Error>) + Send + 'static,
    {
        if let Err((job, bytes)) = self.queue.push(self.change(bytes, urgency, work, done)) {
            job.answer(Err(Error::Backlog { path: self.path.clone(), bytes }));
        }
    }

    /// Bytes that were given and are not committed yet.
    pub(crate) fn backlog(&self) -> usize {
        self.queue.bytes()
    }

    fn change<T, E, F, D>(&self, bytes: usize, urgency: Urgency, work: F, done: D) -> Box<dyn Job>
    where
        T: Send + 'static,
        E: Into<Failure> + 'static,
        F: FnOnce(&Connection) -> Result<T, E> + Send + 'static,
        D: FnOnce(Result<T, Error>) + Send + 'static,
    {
        let (path, bytes) = (self.path.clone(), bytes + WEIGHT_BYTES);
        Box::new(Change { path, bytes, urgency, work: Some(work), outcome: None, done: Some(done) })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.close();
        // The last to hold the store may be a change that was just answered, on the thread itself.
        if let Some(thread) = self.thread.take_if(|thread| thread.thread().id() != thread::current().id()) {
            // A thread that panicked has said so already, and every caller has got `Stopped`.
            drop(thread.join());
        }
    }
}

fn serve(
    connection: Connection,
    queue: &Queue,
    (path, voucher): (&Path, &Arc<Voucher>),
    mut committed: impl FnMut(&mut Connection),
) {
    // However the thread ends, nobody waits for it afterwards.
    let _end = queue.abandon_at_end();
    let mut file = File { path, voucher, connection: Some(connection), durable: false, keeps_marks: false };
    while let Some(mut batch) = queue.take() {
        let outcome = file.commit_together(&mut batch);
        if let (Ok(()), Some(connection)) = (&outcome, &mut file.connection) {
            committed(connection);
        }
        queue.give_back(batch.iter().map(|job| job.bytes()).sum());
        for job in batch {
            job.answer(outcome.clone());
        }
    }
}

/// The database as the thread holds it.
struct File<'a> {
    path: &'a Path,
    voucher: &'a Arc<Voucher>,
    /// `None` after a failure that only opening the file again mends.
    connection: Option<Connection>,
    /// Commits reach the disk before they return.
    durable: bool,
    /// The connection keeps marks in step with rows. That takes some milliseconds to set up, and many processes
    /// never write.
    keeps_marks: bool,
}

impl File<'_> {
    fn commit_together(&mut self, batch: &mut [Box<dyn Job>]) -> Result<(), Error> {
        self.voucher.refuse_if_broken()?;
        let mut open = match self.connection.take() {
            Some(open) => open,
            None => {
                (self.durable, self.keeps_marks) = (false, false);
                database::open_writer(self.path, self.voucher)?
            }
        };
        if !self.keeps_marks {
            vouch::keep_marks(&open).map_err(|error| Error::sqlite(self.path, &error))?;
            self.keeps_marks = true;
        }
        let durable = batch.iter().any(|job| job.urgency() == Urgency::Durable);
        let committed =
            self.set_durable(&open, durable).and_then(|()| run_together(&mut open, batch)).map_err(|error| {
                self.voucher.observe(&error);
                Error::sqlite(self.path, &error)
            });
        // After a failed write or sync the system's pages may not be those of the file: the next batch
        // starts from what is really there.
        if !matches!(committed, Err(Error::Io { .. } | Error::Corrupt { .. })) {
            self.connection = Some(open);
        }
        committed
    }

    /// SQLite takes this setting between transactions only, and while it compiles the statement: one
    /// from the cache would change nothing.
    fn set_durable(&mut self, connection: &Connection, durable: bool) -> rusqlite::Result<()> {
        if durable != self.durable {
            let level = if durable { "FULL" } else { "NORMAL" };
            connection.execute_batch(&format!("PRAGMA synchronous = {level}"))?;
            self.durable = durable;
        }
        Ok(())
    }
}

fn run_together(connection: &mut Connection, batch: &mut [Box<dyn Job>]) -> rusqlite::Result<()> {
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let [only] = batch {
        // What fails here rolls back with the transaction.
        return if only.run(&transaction)? { transaction.commit() } else { transaction.rollback() };
    }
    for job in batch {
        let savepoint = transaction.savepoint()?;
        if job.run(&savepoint)? {
            savepoint.commit()?;
        }
    }
    transaction.commit()
}

trait Job: Send {
    fn bytes(&self) -> usize;
    fn urgency(&self) -> Urgency;
    /// Does the work and says whether it succeeded; an error means that the whole transaction is lost.
    fn run(&mut self, connection: &Connection) -> rusqlite::Result<bool>;
    /// Tells the caller what became of it.
    fn answer(self: Box<Self>, committed: Result<(), Error>);
}

struct Change<T, F, D: FnOnce(Result<T, Error>)> {
    path: PathBuf,
    bytes: usize,
    urgency: Urgency,
    work: Option<F>,
    outcome: Option<Result<T, Failure>>,
    done: Option<D>,
}

impl<T, E, F, D> Job for Change<T, F, D>
where
    T: Send,
    E: Into<Failure>,
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
            // On a full disk and the like SQLite rolls everything back by itself; going on would put
            // the rest of the batch outside any transaction.
            // A damaged file concerns all of them.
            Err(Failure::Sqlite(error)) if connection.is_autocommit() || is_corrupt(&error) => Err(error),
            outcome => Ok(self.outcome.insert(outcome).is_ok()),
        }
    }

    fn answer(mut self: Box<Self>, committed: Result<(), Error>) {
        if let Some(done) = self.done.take() {
            let outcome =
                self.outcome.take().map(|outcome| outcome.map_err(|failure| failure.told(&self.path)));
            done(
                committed.and_then(|()| {
                    outcome.unwrap_or_else(|| Err(Error::Stopped { path: self.path.clone() }))
                }),
            );
        }
    }
}

fn is_corrupt(error: &rusqlite::Error) -> bool {
    matches!(error, rusqlite::Error::SqlInputError { .. })
        || error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt)
}

/// A change that is never made, because the thread has ended, is answered all the same.
impl<T, F, D: FnOnce(Result<T, Error>)> Drop for Change<T, F, D> {
    fn drop(&mut self) {
        if let Some(done) = self.done.take() {
            done(Err(Error::Stopped { path: std::mem::take(&mut self.path) }));
        }
    }
}

#[cfg(test)]
mod tests;
