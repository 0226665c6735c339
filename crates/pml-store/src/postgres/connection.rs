//! A connection to PostgreSQL. It blocks, keeps prepared statements, and marks and checks rows.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::try_join_all;
use rusqlite::types::{ToSqlOutput, Value};
use rusqlite::{Error, Result, ToSql};
use tokio_postgres::{Client, Statement};

use super::dialect::{MarkedValue, Marking, Source, Translation, translate};
use super::value::{Bound, Read};
use super::{Failure, Patience, Server};
use crate::vouch::RowAuthenticator;

/// Identifies the lock that the one writer holds; the schema is the other half.
const WRITE_LOCK: i32 = 0x504d_4c31;

pub(crate) struct PgConnection {
    server: Arc<Server>,
    client: RefCell<Arc<Client>>,
    /// Marks and checks rows; `None` for connections that touch no marked row.
    authenticator: Option<Arc<RowAuthenticator>>,
    statements: RefCell<HashMap<String, Arc<Prepared>>>,
    last_number: Cell<i64>,
    mode: Cell<Mode>,
    /// Whether the open transaction has changed anything.
    wrote: Cell<bool>,
    /// What the open transaction has done so far, to be done again if the connection is cut.
    steps: RefCell<Vec<Step>>,
    /// Name of this connection as a writer; nobody else uses it.
    writer: String,
    /// The number of the transaction that is open or was last.
    batch: Cell<i64>,
}

/// A step of a transaction, with what came of it.
#[derive(Clone)]
enum Step {
    Run { sql: String, given: Vec<Value>, answer: Answer },
    Batch(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Idle,
    Reading,
    Writing,
}

/// A translated statement, known to the server.
struct Prepared {
    translation: Translation,
    statement: Statement,
    before: Option<Statement>,
    set_mark: Option<Statement>,
}

/// What a statement returned.
#[derive(Clone, PartialEq)]
struct Answer {
    names: Arc<[String]>,
    rows: Vec<Vec<Value>>,
    count: usize,
    /// The number that the last new row got, if the table numbers its rows. Later statements refer to the row by it.
    number: Option<i64>,
}

/// How a transaction whose connection was cut is resolved.
enum Repeated {
    /// It had been committed.
    WasCommitted,
    /// It was not; all its steps are done again, and it is open.
    Anew,
}

/// Rows of a result, with the names of their columns.
pub(crate) struct PgRows {
    names: Arc<[String]>,
    rows: std::vec::IntoIter<Vec<Value>>,
}

/// A row of a result.
pub(crate) struct PgRow {
    names: Arc<[String]>,
    values: Vec<Value>,
}

impl PgConnection {
    pub(super) fn new(
        server: &Arc<Server>,
        client: Client,
        authenticator: Option<&Arc<RowAuthenticator>>,
    ) -> PgConnection {
        PgConnection {
            server: Arc::clone(server),
            client: RefCell::new(Arc::new(client)),
            authenticator: authenticator.cloned(),
            statements: RefCell::default(),
            last_number: Cell::new(0),
            mode: Cell::new(Mode::Idle),
            wrote: Cell::new(false),
            steps: RefCell::default(),
            writer: super::random_name(),
            batch: Cell::new(0),
        }
    }

    pub(super) fn server(&self) -> &Arc<Server> {
        &self.server
    }

    pub(super) fn client(&self) -> Arc<Client> {
        Arc::clone(&self.client.borrow())
    }

    pub(crate) fn last_number(&self) -> i64 {
        self.last_number.get()
    }

    pub(crate) fn is_autocommit(&self) -> bool {
        self.mode.get() == Mode::Idle
    }

    /// Opens a transaction that sees one snapshot. A connection that was cut meanwhile is replaced.
    pub(crate) fn begin_read(&self) -> Result<()> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        if let Err(error) = self.send_batch(begin) {
            self.reconnect_after(error, Patience::Reader)?;
            self.send_batch(begin)?;
        }
        self.mode.set(Mode::Reading);
        Ok(())
    }

    /// Opens a transaction that writes. There is one at a time, as with SQLite: numbers of rows grow in the order of
    /// commits, and a change may rely on what it has read. Waits for the database if it cannot be reached.
    pub(crate) fn begin_write(&self) -> Result<()> {
        self.wait_for_write_lock()?;
        self.mode.set(Mode::Writing);
        self.wrote.set(false);
        self.steps.borrow_mut().clear();
        self.batch.set(self.batch.get() + 1);
        Ok(())
    }

    /// Takes the write lock, however long other gateways hold it: a change that waits is stored later, and one that is
    /// refused is lost.
    fn wait_for_write_lock(&self) -> Result<()> {
        let mut told = false;
        while let Err(error) = self.lock_for_writing() {
            if !Failure::is_lock_timeout_in(&error) {
                self.reconnect_after(error, Patience::Writer)?;
            } else if self.server.gives_up() {
                return Err(error);
            } else if !std::mem::replace(&mut told, true) {
                tracing::warn!("changes wait for another writer of `{}`", self.server.name().display());
            }
        }
        Ok(())
    }

    fn lock_for_writing(&self) -> Result<()> {
        let locked = self.send_batch(&format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED;
             SELECT pg_advisory_xact_lock({WRITE_LOCK}, hashtext(current_schema()))"
        ));
        // A connection that was lost or fell silent would not answer to this either.
        if locked.as_ref().is_err_and(|error| !Failure::is_lost_in(error)) {
            drop(self.send_batch("ROLLBACK"));
        }
        locked
    }

    pub(crate) fn commit(&self) -> Result<()> {
        if self.mode.get() != Mode::Writing || !self.wrote.get() {
            // Nothing was changed, so nothing is lost with the connection.
            return self.end_without_changes("COMMIT");
        }
        let (writer, batch) = (&self.writer, self.batch.get());
        let commit = format!(
            "INSERT INTO committed_batch (writer, batch, at)
             VALUES ('{writer}', {batch}, (extract(epoch FROM now()) * 1000)::bigint)
             ON CONFLICT (writer) DO UPDATE SET batch = excluded.batch, at = excluded.at;
             UPDATE store SET version = version + 1; NOTIFY pml_changes; COMMIT"
        );
        let mut committed = self.send_batch(&commit);
        while let Err(error) = committed {
            if !self.may_repeat(&error) {
                self.mode.set(Mode::Idle);
                if !Failure::is_lost_in(&error) {
                    drop(self.send_batch("ROLLBACK"));
                }
                return Err(error);
            }
            // Nobody knows whether the server committed before the connection was cut; the batch number tells.
            committed = self.repeat(error).and_then(|done| match done {
                Repeated::WasCommitted => Ok(()),
                Repeated::Anew => self.send_batch(&commit),
            });
        }
        self.mode.set(Mode::Idle);
        Ok(())
    }

    pub(crate) fn rollback(&self) -> Result<()> {
        // With its connection the transaction is gone too.
        self.end_without_changes("ROLLBACK")
    }

    fn end_without_changes(&self, end: &str) -> Result<()> {
        self.mode.set(Mode::Idle);
        match self.send_batch(end) {
            Err(error) if Failure::is_lost_in(&error) => Ok(()),
            outcome => outcome,
        }
    }

    /// Whether what failed is worth another attempt: its connection was cut, and the store is not being closed.
    fn may_repeat(&self, error: &Error) -> bool {
        Failure::is_lost_in(error) && !self.server.gives_up()
    }

    /// Replaces a connection that was cut; other errors are returned as they are.
    fn reconnect_after(&self, error: Error, patience: Patience) -> Result<()> {
        if !Failure::is_lost_in(&error) {
            return Err(error);
        }
        let client = self.server.connect_patiently(patience)?;
        self.statements.borrow_mut().clear();
        *self.client.borrow_mut() = Arc::new(client);
        Ok(())
    }

    /// Does everything again that the open transaction did before its connection was cut, unless that was committed.
    /// The transaction goes on only if every step has the same result: other writers may have come between. Otherwise
    /// none is open any more, so that nobody commits a part of it.
    fn repeat(&self, error: Error) -> Result<Repeated> {
        self.repeat_steps(error).inspect_err(|error| {
            if !Failure::is_lost_in(error) {
                self.mode.set(Mode::Idle);
                drop(self.send_batch("ROLLBACK"));
            }
        })
    }

    fn repeat_steps(&self, error: Error) -> Result<Repeated> {
        self.reconnect_after(error, Patience::Writer)?;
        // With the lock, the transaction that was cut has ended, one way or the other.
        self.wait_for_write_lock()?;
        if self.last_committed()? == Some(self.batch.get()) {
            drop(self.send_batch("ROLLBACK"));
            return Ok(Repeated::WasCommitted);
        }
        for step in self.steps.borrow().iter() {
            match self.repeat_step(step) {
                Ok(true) => {}
                Err(error) if Failure::is_lost_in(&error) => return Err(error),
                // What succeeded before fails only because of what others changed.
                Ok(false) | Err(_) => return Err(Failure::overtaken().into()),
            }
        }
        Ok(Repeated::Anew)
    }

    /// Whether a step has the same result again.
    fn repeat_step(&self, step: &Step) -> Result<bool> {
        match step {
            Step::Batch(sql) => self.send_batch(sql).map(|()| true),
            Step::Run { sql, given, answer } => self.run_once(sql, given).map(|again| again == *answer),
        }
    }

    fn last_committed(&self) -> Result<Option<i64>> {
        let client = self.client();
        let sql = "SELECT batch FROM committed_batch WHERE writer = $1";
        let row = self.waited(client.query_opt(sql, &[&self.writer]))?;
        Ok(row.map(|row| row.get(0)))
    }

    /// Runs statements without parameters, as a part of the open transaction.
    pub(crate) fn batch_execute(&self, sql: &str) -> Result<()> {
        // `PRAGMA secure_delete` and the like mean nothing here.
        if sql.starts_with("PRAGMA") {
            return Ok(());
        }
        let mut outcome = self.send_batch(sql);
        while self.mode.get() == Mode::Writing && outcome.as_ref().is_err_and(|error| self.may_repeat(error))
        {
            outcome = match outcome {
                Err(error) => self.repeat(error).and_then(|_| self.send_batch(sql)),
                done => done,
            };
        }
        outcome.inspect_err(|error| self.leave_if_lost(error))?;
        if self.mode.get() == Mode::Writing {
            self.steps.borrow_mut().push(Step::Batch(sql.to_owned()));
        }
        Ok(())
    }

    /// With its connection the transaction is gone.
    fn leave_if_lost(&self, error: &Error) {
        if Failure::is_lost_in(error) {
            self.mode.set(Mode::Idle);
        }
    }

    pub(super) fn send_batch(&self, sql: &str) -> Result<()> {
        let client = self.client();
        self.waited(client.batch_execute(sql))
    }

    pub(crate) fn execute(&self, sql: &str, params: &[&dyn ToSql]) -> Result<usize> {
        self.run(sql, params).map(|(_, count)| count)
    }

    pub(crate) fn query(&self, sql: &str, params: &[&dyn ToSql]) -> Result<PgRows> {
        self.run(sql, params).map(|(rows, _)| rows)
    }

    pub(super) fn waited<T>(
        &self,
        future: impl Future<Output = std::result::Result<T, tokio_postgres::Error>>,
    ) -> Result<T> {
        match self.server.answer(future) {
            Some(outcome) => outcome.map_err(|error| Failure::of(&error).into()),
            None => {
                // Whatever the server still answers is the answer to something else.
                self.server.abandon(&self.client());
                Err(Failure::silent().into())
            }
        }
    }

    fn run(&self, sql: &str, params: &[&dyn ToSql]) -> Result<(PgRows, usize)> {
        let given = params.iter().map(|param| owned(*param)).collect::<Result<Vec<Value>>>()?;
        let mut outcome = self.run_once(sql, &given);
        while self.mode.get() == Mode::Writing && outcome.as_ref().is_err_and(|error| self.may_repeat(error))
        {
            outcome = match outcome {
                Err(error) => self.repeat(error).and_then(|_| self.run_once(sql, &given)),
                done => done,
            };
        }
        let answer = outcome.inspect_err(|error| self.leave_if_lost(error))?;
        if self.mode.get() == Mode::Writing {
            let (sql, answer) = (sql.to_owned(), answer.clone());
            self.steps.borrow_mut().push(Step::Run { sql, given, answer });
        }
        let Answer { names, rows, count, .. } = answer;
        Ok((PgRows { names, rows: rows.into_iter() }, count))
    }

    fn run_once(&self, sql: &str, given: &[Value]) -> Result<Answer> {
        let client = self.client();
        let prepared = self.prepared(sql)?;
        let Translation { sources, hidden, marking, returns_number, returns_rows, checks, text } =
            &prepared.translation;
        if !text.starts_with("SELECT") && !text.starts_with("WITH") {
            self.wrote.set(true);
        }
        let unsound = match (marking, &prepared.before) {
            (Some(marking), Some(before)) => self.unsound_before(marking, before, given)?,
            _ => Vec::new(),
        };
        let bound = self.bound(sources, given)?;
        let names: Arc<[String]> =
            prepared.statement.columns().iter().map(|column| column.name().to_owned()).collect();
        if !returns_rows && *hidden == 0 {
            let count = self.waited(client.execute_raw(&prepared.statement, bound.iter().map(Bound)))?;
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            return Ok(Answer { names, rows: Vec::new(), count, number: None });
        }
        let mut rows = self.rows(&prepared.statement, &bound)?;
        let visible = names.len() - hidden;
        if !checks.is_empty() {
            rows = self.checked(rows, &prepared.translation, visible)?;
        }
        if let (Some(marking), Some(set_mark)) = (marking, &prepared.set_mark) {
            self.mark(marking, set_mark, &rows, visible, &unsound)?;
        }
        let number = match (returns_number, rows.last().and_then(|row| row.last())) {
            (true, Some(Value::Integer(number))) => Some(*number),
            _ => None,
        };
        if let Some(number) = number {
            self.last_number.set(number);
        }
        let count = rows.len();
        rows.iter_mut().for_each(|row| row.truncate(visible));
        if !returns_rows {
            rows.clear();
        }
        Ok(Answer { names, rows, count, number })
    }

    fn prepared(&self, sql: &str) -> Result<Arc<Prepared>> {
        if let Some(known) = self.statements.borrow().get(sql) {
            return Ok(Arc::clone(known));
        }
        let translation = translate(sql, self.server.schema());
        let client = self.client();
        let statement = self.waited(client.prepare(&translation.text))?;
        let marking = translation.marking.as_ref();
        let before = marking.and_then(|marking| marking.before.as_ref());
        let before = before.map(|(text, _)| self.waited(client.prepare(text))).transpose()?;
        let set_mark = marking.map(|marking| self.waited(client.prepare(&marking.set_mark))).transpose()?;
        let prepared = Arc::new(Prepared { translation, statement, before, set_mark });
        self.statements.borrow_mut().insert(sql.to_owned(), Arc::clone(&prepared));
        Ok(prepared)
    }

    /// The rows that a statement without parameters returns, as they are.
    pub(super) fn fetch(&self, sql: &str) -> Result<Vec<Vec<Value>>> {
        let client = self.client();
        let statement = self.waited(client.prepare(sql))?;
        self.rows(&statement, &[])
    }

    pub(super) fn rows(&self, statement: &Statement, values: &[Value]) -> Result<Vec<Vec<Value>>> {
        let bound: Vec<Bound<'_>> = values.iter().map(Bound).collect();
        let params: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> =
            bound.iter().map(|value| value as &(dyn tokio_postgres::types::ToSql + Sync)).collect();
        let client = self.client();
        let rows = self.waited(client.query(statement, &params))?;
        rows.iter()
            .map(|row| {
                (0..row.len())
                    .map(|column| row.try_get::<_, Read>(column).map(|read| read.0))
                    .collect::<std::result::Result<Vec<Value>, _>>()
                    .map_err(|error| Failure::of(&error).into())
            })
            .collect()
    }

    fn bound(&self, sources: &[Source], given: &[Value]) -> Result<Vec<Value>> {
        let nothing = Value::Null;
        let value = |number: usize| given.get(number - 1).unwrap_or(&nothing);
        sources
            .iter()
            .map(|source| match source {
                Source::Given(number) => Ok(value(*number).clone()),
                Source::Mark { table, over } => {
                    let over: Vec<&Value> = over
                        .iter()
                        .map(|part| match part {
                            MarkedValue::Given(number) => value(*number),
                            MarkedValue::Constant(constant) => constant,
                        })
                        .collect();
                    Ok(Value::Blob(self.authenticator()?.mark_values(table, over.into_iter())?.to_vec()))
                }
            })
            .collect()
    }

    pub(super) fn authenticator(&self) -> Result<&Arc<RowAuthenticator>> {
        self.authenticator.as_ref().ok_or(Error::InvalidQuery)
    }

    /// Leaves out the rows whose marks are wrong, or tells so in the columns that ask for it.
    fn checked(
        &self,
        rows: Vec<Vec<Value>>,
        translation: &Translation,
        visible: usize,
    ) -> Result<Vec<Vec<Value>>> {
        let authenticator = self.authenticator()?;
        let mut sound_rows = Vec::with_capacity(rows.len());
        'rows: for mut row in rows {
            let mut at = visible;
            for check in &translation.checks {
                let hidden = &row[at..at + check.columns];
                let is_sound = authenticator.is_vouched(check.table, &hidden[0], &hidden[1..])?;
                at += check.columns;
                match check.tells {
                    Some(column) if !is_sound => row[column] = Value::Integer(0),
                    None if !is_sound => continue 'rows,
                    _ => {}
                }
            }
            sound_rows.push(row);
        }
        Ok(sound_rows)
    }

    /// The keys of the rows that are about to be changed and whose marks are wrong.
    fn unsound_before(
        &self,
        marking: &Marking,
        before: &Statement,
        given: &[Value],
    ) -> Result<Vec<Vec<Value>>> {
        let sources = marking.before.as_ref().map(|(_, sources)| sources.as_slice()).unwrap_or_default();
        let (table, key) = (marking.table, marking.table.key.len());
        let mut unsound = Vec::new();
        for row in self.rows(before, &self.bound(sources, given)?)? {
            if !self.authenticator()?.is_vouched(table.name, &row[key], &row[key + 1..])? {
                unsound.push(row[..key].to_vec());
            }
        }
        Ok(unsound)
    }

    fn mark(
        &self,
        marking: &Marking,
        set_mark: &Statement,
        rows: &[Vec<Value>],
        visible: usize,
        unsound: &[Vec<Value>],
    ) -> Result<()> {
        let (key, covered) = (marking.table.key.len(), marking.table.marked_columns().count());
        let authenticator = self.authenticator()?;
        let mut marks: Vec<Vec<Value>> = Vec::with_capacity(rows.len());
        for row in rows {
            let hidden = &row[visible..];
            let covered = hidden[key..key + covered].iter();
            if !unsound.iter().any(|unsound| *unsound == hidden[..key]) {
                let mark = authenticator.mark_values(marking.table.name, covered)?;
                marks.push(
                    std::iter::once(Value::Blob(mark.to_vec())).chain(hidden[..key].to_vec()).collect(),
                );
            }
        }
        // Sent one after the other without waiting for each answer.
        let client = self.client();
        let updates = marks.iter().map(|values| client.execute_raw(set_mark, values.iter().map(Bound)));
        self.waited(try_join_all(updates)).map(drop)
    }
}

impl Iterator for PgRows {
    type Item = PgRow;

    fn next(&mut self) -> Option<PgRow> {
        let values = self.rows.next()?;
        Some(PgRow { names: Arc::clone(&self.names), values })
    }
}

impl PgRow {
    pub(crate) fn value(&self, column: usize) -> Result<&Value> {
        self.values.get(column).ok_or(Error::InvalidColumnIndex(column))
    }

    pub(crate) fn column(&self, name: &str) -> Result<usize> {
        let place = self.names.iter().position(|known| known == name);
        place.ok_or_else(|| Error::InvalidColumnName(name.to_owned()))
    }

    pub(crate) fn name(&self, column: usize) -> &str {
        self.names.get(column).map_or("", String::as_str)
    }
}

fn owned(param: &dyn ToSql) -> Result<Value> {
    match param.to_sql()? {
        ToSqlOutput::Borrowed(value) => Ok(value.try_into().map_err(|_| Error::InvalidQuery)?),
        ToSqlOutput::Owned(value) => Ok(value),
        _ => Err(Error::InvalidQuery),
    }
}
