//! The writer thread: order, batches, failures.

use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use super::*;
use crate::database;

type Answers = Sender<(String, Result<usize, Error>)>;

fn fresh() -> (tempfile::TempDir, PathBuf, Connection) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pml.db");
    let connection = Connection::from(database::open(&path, &RowAuthenticator::beside(&path)).unwrap());
    connection.execute_batch("CREATE TABLE note (text TEXT UNIQUE) STRICT").unwrap();
    (directory, path, connection)
}

fn insert(text: String) -> impl FnOnce(&Connection) -> rusqlite::Result<usize> + Send {
    move |connection| connection.execute("INSERT INTO note VALUES (?1)", [text])
}

fn job(path: &Path, urgency: Urgency, text: &str, answers: &Answers) -> Box<dyn WriteJob> {
    let (text, answers) = (text.to_owned(), answers.clone());
    let work = Some(insert(text.clone()));
    let done = Some(move |answer| drop(answers.send((text, answer))));
    Box::new(QueuedChange { path: path.to_owned(), bytes: 1, urgency, work, outcome: None, done })
}

fn count(connection: &Connection) -> i64 {
    connection.query_row("SELECT count(*) FROM note", [], |row| row.get(0)).unwrap()
}

#[test]
fn a_failed_change_leaves_the_others_of_its_batch_alone() {
    let (_directory, path, connection) = fresh();
    let voucher = RowAuthenticator::beside(&path);
    let mut file = WriteConnection {
        backend: &Backend::Sqlite(path.clone()),
        voucher: &voucher,
        connection: Some(connection),
        durable: false,
        keeps_marks: false,
    };
    let (reply, answers) = channel();
    for texts in [["a", "a", "b"].as_slice(), &["b"], &["c"]] {
        let mut batch: Vec<_> = texts.iter().map(|text| job(&path, Urgency::Soon, text, &reply)).collect();
        let committed = file.commit_together(&mut batch);
        batch.into_iter().for_each(|job| job.answer(committed.clone()));
    }
    let stored: Vec<bool> = answers.try_iter().map(|(_, answer)| answer.is_ok()).collect();
    assert_eq!(stored, [true, false, true, false, true]);
    assert_eq!(count(&file.connection.unwrap()), 3);
}

#[test]
fn a_durable_change_is_synced_and_the_next_one_is_not() {
    let (_directory, path, connection) = fresh();
    let writer = StoreWriter::start(
        connection,
        &Backend::Sqlite(path.clone()),
        &RowAuthenticator::beside(&path),
        |_| (),
    )
    .unwrap();
    let level = |urgency| {
        writer
            .write(urgency, |connection| {
                connection.query_row("PRAGMA synchronous", [], |row| row.get::<_, i64>(0))
            })
            .unwrap()
    };
    let levels = [Urgency::Soon, Urgency::Durable, Urgency::Lazy, Urgency::Durable, Urgency::Soon].map(level);
    assert_eq!(levels, [1, 2, 1, 2, 1]);
}

#[test]
fn an_urgent_change_takes_those_before_it_along() {
    let (_directory, path, _connection) = fresh();
    let (queue, (reply, _answers)) = (WriteQueue::default(), channel());
    let push = |urgency| assert!(queue.push(job(&path, urgency, "x", &reply)).is_ok());
    for urgency in [Urgency::Lazy, Urgency::Lazy, Urgency::Durable, Urgency::Lazy] {
        push(urgency);
    }
    let taken = |batch: Vec<Box<dyn WriteJob>>| batch.iter().map(|job| job.urgency()).collect::<Vec<_>>();
    let all = [Urgency::Lazy, Urgency::Lazy, Urgency::Durable, Urgency::Lazy];
    assert_eq!(taken(queue.take().unwrap()), all);
    // Lazy changes share a commit too, once they have waited.
    push(Urgency::Lazy);
    push(Urgency::Lazy);
    assert_eq!(taken(queue.take().unwrap()), [Urgency::Lazy, Urgency::Lazy]);
}

#[test]
fn changes_are_made_and_answered_in_the_order_they_were_given() {
    let (_directory, path, connection) = fresh();
    let writer = StoreWriter::start(
        connection,
        &Backend::Sqlite(path.clone()),
        &RowAuthenticator::beside(&path),
        |_| (),
    )
    .unwrap();
    let (reply, answers) = channel();
    let given: Vec<String> = (0..2000).map(|number| number.to_string()).collect();
    for (number, text) in given.iter().enumerate() {
        let urgency = match number % 7 {
            0 => Urgency::Soon,
            1 if number % 5 == 0 => Urgency::Durable,
            _ => Urgency::Lazy,
        };
        let (reply, text) = (reply.clone(), text.clone());
        let note = text.clone();
        let work = move |connection: &Connection| insert(text)(connection).map(drop);
        writer.enqueue(10, urgency, work, move |answer| reply.send((note, answer)).unwrap());
    }
    drop((writer, reply));
    let answered: Vec<String> =
        answers.iter().inspect(|(_, answer)| assert!(answer.is_ok())).map(|(note, _)| note).collect();
    assert_eq!(answered, given);
    let connection = database::open(&path, &RowAuthenticator::beside(&path)).unwrap();
    let mut rows = connection.prepare("SELECT text FROM note ORDER BY rowid").unwrap();
    let stored: Vec<String> = rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(stored, given);
}

#[test]
fn what_waits_is_bounded_and_whoever_comes_too_much_is_told() {
    let (_directory, path, connection) = fresh();
    let writer = StoreWriter::start(
        connection,
        &Backend::Sqlite(path.clone()),
        &RowAuthenticator::beside(&path),
        |_| (),
    )
    .unwrap();
    let (go, wait) = channel::<()>();
    writer.enqueue(0, Urgency::Soon, move |_| wait.recv().map_err(|_| rusqlite::Error::InvalidQuery), |_| ());
    let (reply, answers) = channel();
    let give = |text: &str| {
        let (reply, text) = (reply.clone(), text.to_owned());
        let work = move |connection: &Connection| insert(text)(connection).map(drop);
        writer.enqueue(16 * 1024 * 1024, Urgency::Lazy, work, move |answer| reply.send(answer).unwrap());
    };
    for text in ["1", "2", "3", "4", "too much"] {
        give(text);
    }
    let refused = answers.recv().unwrap().unwrap_err();
    assert!(matches!(refused, Error::Backlog { .. }), "{refused}");
    go.send(()).unwrap();
    assert!(answers.iter().take(4).all(|answer| answer.is_ok()));
    writer.write(Urgency::Soon, insert("5".to_owned())).unwrap();
    drop(writer);
    assert_eq!(count(&database::open(&path, &RowAuthenticator::beside(&path)).unwrap().into()), 5);
}

#[test]
fn everybody_is_told_when_the_thread_has_ended() {
    let (_directory, path, connection) = fresh();
    let writer = StoreWriter::start(
        connection,
        &Backend::Sqlite(path.clone()),
        &RowAuthenticator::beside(&path),
        |_| (),
    )
    .unwrap();
    let (reply, answers) = channel();
    let (go, wait) = channel::<()>();
    let panics = move |_: &Connection| -> rusqlite::Result<()> {
        wait.recv().unwrap();
        panic!("as it should in this test")
    };
    let tell = || {
        let reply = reply.clone();
        move |answer| reply.send(answer).unwrap()
    };
    writer.enqueue(0, Urgency::Soon, panics, tell());
    writer.enqueue(0, Urgency::Lazy, |_| Ok::<_, rusqlite::Error>(()), tell());
    go.send(()).unwrap();
    for _ in 0..2 {
        assert!(matches!(answers.recv().unwrap(), Err(Error::WriterStopped { .. })));
    }
    let refused = writer.write(Urgency::Soon, insert("a".to_owned())).unwrap_err();
    assert!(matches!(refused, Error::WriterStopped { .. }), "{refused}");
}

#[test]
fn a_full_disk_is_told_and_writing_resumes_when_there_is_space() {
    let (_directory, path, connection) = fresh();
    let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    connection.sqlite().pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
    let writer = StoreWriter::start(
        connection,
        &Backend::Sqlite(path.clone()),
        &RowAuthenticator::beside(&path),
        |_| (),
    )
    .unwrap();
    let refused = writer.write(Urgency::Soon, insert("x".repeat(100_000))).unwrap_err();
    assert!(matches!(refused, Error::DiskFull { .. }), "{refused}");
    writer
        .write(Urgency::Soon, |connection| {
            connection.sqlite().pragma_update_and_check(None, "max_page_count", 1_000_000, |_| Ok(()))
        })
        .unwrap();
    writer.write(Urgency::Soon, insert("x".repeat(100_000))).unwrap();
    drop(writer);
    assert_eq!(count(&database::open(&path, &RowAuthenticator::beside(&path)).unwrap().into()), 1);
}

#[test]
fn a_database_held_by_another_is_busy_and_free_afterwards() {
    let (_directory, path, connection) = fresh();
    connection.sqlite().busy_timeout(Duration::from_millis(1)).unwrap();
    let other = database::open(&path, &RowAuthenticator::beside(&path)).unwrap();
    let writer = StoreWriter::start(
        connection,
        &Backend::Sqlite(path.clone()),
        &RowAuthenticator::beside(&path),
        |_| (),
    )
    .unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = writer.write(Urgency::Soon, insert("a".to_owned())).unwrap_err();
    assert!(matches!(refused, Error::Busy { .. }), "{refused}");
    other.execute_batch("COMMIT").unwrap();
    writer.write(Urgency::Soon, insert("a".to_owned())).unwrap();
}

#[test]
fn writes_of_many_threads_are_all_stored() {
    let (_directory, path, connection) = fresh();
    let writer = StoreWriter::start(
        connection,
        &Backend::Sqlite(path.clone()),
        &RowAuthenticator::beside(&path),
        |_| (),
    )
    .unwrap();
    thread::scope(|scope| {
        for number in 0..100 {
            let writer = &writer;
            scope.spawn(move || writer.write(Urgency::Soon, insert(number.to_string())).unwrap());
        }
    });
    drop(writer);
    assert_eq!(count(&database::open(&path, &RowAuthenticator::beside(&path)).unwrap().into()), 100);
}
