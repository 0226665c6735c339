//! The one thread of a store that writes.
//!
//! Changes wait in a bounded queue; those that wait together are committed together, and a caller
//! hears of its change only after the commit. A change that fails takes nothing of its neighbours
//! with it.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::{Error, database};

/// How many changes may wait before callers do.
const QUEUE: usize = 256;

/// How many changes share a commit at most, so that other processes get their turn.
const BATCH: usize = 64;

/// Handle of the thread; dropping it stores what is queued and ends the thread.
pub(crate) struct Writer {
    path: PathBuf,
    queue: Option<SyncSender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(connection: Connection, path: &Path) -> Result<Writer, Error> {
        let (queue, jobs) = sync_channel(QUEUE);
        let of_thread = path.to_owned();
        let thread = thread::Builder::new()
            .name("pml-store".to_owned())
            .spawn(move || serve(connection, &jobs, &of_thread))
            .map_err(|error| Error::io(path, error))?;
        Ok(Writer { path: path.to_owned(), queue: Some(queue), thread: Some(thread) })
    }

    /// Runs `work` inside a transaction and waits until it is committed.
    pub(crate) fn write<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let stopped = || Error::Stopped { path: self.path.clone() };
        let (reply, answer) = sync_channel(1);
        let queue = self.queue.as_ref().ok_or_else(stopped)?;
        queue.send(Box::new(Change { stage: Stage::Waiting(work), reply })).map_err(|_| stopped())?;
        answer.recv().map_err(|_| stopped())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so already, and every caller has got `Stopped`.
            drop(thread.join());
        }
    }
}

fn serve(connection: Connection, jobs: &Receiver<Box<dyn Job>>, path: &Path) {
    let mut connection = Some(connection);
    while let Ok(first) = jobs.recv() {
        let mut batch = vec![first];
        batch.extend(jobs.try_iter().take(BATCH - 1));
        let committed = commit_together(&mut connection, &mut batch, path);
        for job in batch {
            job.answer(&committed, path);
        }
    }
}

fn commit_together(
    connection: &mut Option<Connection>,
    batch: &mut [Box<dyn Job>],
    path: &Path,
) -> Result<(), Error> {
    let mut open = match connection.take() {
        Some(open) => open,
        None => database::open_writer(path)?,
    };
    let committed = run_together(&mut open, batch).map_err(|error| Error::sqlite(path, &error));
    // After a failed write or sync the system's pages may not be those of the file: the next batch
    // starts from what is really there.
    if !matches!(committed, Err(Error::Io { .. } | Error::Corrupt { .. })) {
        *connection = Some(open);
    }
    committed
}

fn run_together(connection: &mut Connection, batch: &mut [Box<dyn Job>]) -> rusqlite::Result<()> {
    let mut transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for job in batch {
        job.run(&mut transaction)?;
    }
    transaction.commit()
}

trait Job: Send {
    /// Does the work; an error means that the whole transaction is lost.
    fn run(&mut self, transaction: &mut Transaction<'_>) -> rusqlite::Result<()>;
    /// Tells the caller.
    fn answer(self: Box<Self>, committed: &Result<(), Error>, path: &Path);
}

struct Change<T, F> {
    stage: Stage<T, F>,
    reply: SyncSender<Result<T, Error>>,
}

enum Stage<T, F> {
    Waiting(F),
    Taken,
    Done(rusqlite::Result<T>),
}

impl<T, F> Job for Change<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> rusqlite::Result<T> + Send,
{
    fn run(&mut self, transaction: &mut Transaction<'_>) -> rusqlite::Result<()> {
        let Stage::Waiting(work) = std::mem::replace(&mut self.stage, Stage::Taken) else {
            return Ok(());
        };
        let savepoint = transaction.savepoint()?;
        let outcome = work(&savepoint);
        if outcome.is_ok() {
            savepoint.commit()?;
        } else {
            drop(savepoint);
        }
        // On a full disk and the like SQLite rolls everything back by itself; going on would put
        // the rest of the batch outside any transaction.
        match outcome {
            Err(error) if transaction.is_autocommit() => Err(error),
            outcome => {
                self.stage = Stage::Done(outcome);
                Ok(())
            }
        }
    }

    fn answer(self: Box<Self>, committed: &Result<(), Error>, path: &Path) {
        let answer = match (committed, self.stage) {
            (Err(error), _) => Err(error.clone()),
            (Ok(()), Stage::Done(outcome)) => outcome.map_err(|error| Error::sqlite(path, &error)),
            (Ok(()), Stage::Waiting(_) | Stage::Taken) => Err(Error::Stopped { path: path.to_owned() }),
        };
        // The caller waits for this answer unless it panicked, and then nobody needs it.
        drop(self.reply.send(answer));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn fresh() -> (tempfile::TempDir, PathBuf, Connection) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pml.db");
        let connection = database::open(&path).unwrap();
        connection.execute_batch("CREATE TABLE note (text TEXT UNIQUE) STRICT").unwrap();
        (directory, path, connection)
    }

    fn insert(text: String) -> impl FnOnce(&Connection) -> rusqlite::Result<usize> + Send {
        move |connection| connection.execute("INSERT INTO note VALUES (?1)", [text])
    }

    fn count(connection: &Connection) -> i64 {
        connection.query_row("SELECT count(*) FROM note", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_failed_change_leaves_the_others_of_its_batch_alone() {
        let (_directory, path, connection) = fresh();
        let (reply, answers) = sync_channel(3);
        let mut batch: Vec<Box<dyn Job>> = ["a", "a", "b"]
            .into_iter()
            .map(|text| -> Box<dyn Job> {
                Box::new(Change { stage: Stage::Waiting(insert(text.to_owned())), reply: reply.clone() })
            })
            .collect();
        let mut connection = Some(connection);
        let committed = commit_together(&mut connection, &mut batch, &path);
        for job in batch {
            job.answer(&committed, &path);
        }
        let stored: Vec<bool> = answers.try_iter().map(|answer| answer.is_ok()).collect();
        assert_eq!(stored, [true, false, true]);
        assert_eq!(count(&connection.unwrap()), 2);
    }

    #[test]
    fn a_full_disk_is_told_and_writing_resumes_when_there_is_space() {
        let (_directory, path, connection) = fresh();
        let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
        let writer = Writer::start(connection, &path).unwrap();
        let refused = writer.write(insert("x".repeat(100_000))).unwrap_err();
        assert!(matches!(refused, Error::Full { .. }), "{refused}");
        writer
            .write(|connection| {
                connection.pragma_update_and_check(None, "max_page_count", 1_000_000, |_| Ok(()))
            })
            .unwrap();
        writer.write(insert("x".repeat(100_000))).unwrap();
        drop(writer);
        assert_eq!(count(&database::open(&path).unwrap()), 1);
    }

    #[test]
    fn a_database_held_by_another_is_busy_and_free_afterwards() {
        let (_directory, path, connection) = fresh();
        connection.busy_timeout(Duration::from_millis(1)).unwrap();
        let other = database::open(&path).unwrap();
        let writer = Writer::start(connection, &path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let refused = writer.write(insert("a".to_owned())).unwrap_err();
        assert!(matches!(refused, Error::Busy { .. }), "{refused}");
        other.execute_batch("COMMIT").unwrap();
        writer.write(insert("a".to_owned())).unwrap();
    }

    #[test]
    fn writes_of_many_threads_are_all_stored() {
        let (_directory, path, connection) = fresh();
        let writer = Writer::start(connection, &path).unwrap();
        thread::scope(|scope| {
            for number in 0..100 {
                let writer = &writer;
                scope.spawn(move || writer.write(insert(number.to_string())).unwrap());
            }
        });
        drop(writer);
        assert_eq!(count(&database::open(&path).unwrap()), 100);
    }
}
