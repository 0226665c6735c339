//! One way to talk to both databases: connections, statements and rows, shaped like those of `rusqlite`.
//!
//! Every query of this crate is written once, in SQLite's dialect with parameters `?1`, `?2` …. Values, conversions
//! and errors are those of `rusqlite` for both databases, so a query cannot tell which one answers it.

mod params;

use rusqlite::types::{FromSql, FromSqlError, Value, ValueRef};

pub(crate) use params::Params;
pub(crate) use rusqlite::{OptionalExtension, Result, params};

use crate::ProcessIdentity;
pub(crate) use crate::postgres::OwnerPresence;
use crate::postgres::{PgConnection, PgRow, PgRows};
use crate::process;

/// A connection to the database.
pub(crate) enum Connection {
    Sqlite(rusqlite::Connection),
    Postgres(PgConnection),
}

/// A compiled statement.
pub(crate) enum Statement<'c> {
    Sqlite(rusqlite::Statement<'c>),
    CachedSqlite(rusqlite::CachedStatement<'c>),
    Postgres { connection: &'c PgConnection, sql: String },
}

/// A row of a result.
pub(crate) enum Row<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(PgRow),
}

/// The rows of a result, one at a time.
pub(crate) enum Rows<'s> {
    Sqlite(rusqlite::Rows<'s>),
    Postgres(PgRows),
}

impl From<rusqlite::Connection> for Connection {
    fn from(connection: rusqlite::Connection) -> Connection {
        Connection::Sqlite(connection)
    }
}

#[cfg(test)]
impl Connection {
    /// The connection to SQLite, for what only SQLite has.
    pub(crate) fn sqlite(&self) -> &rusqlite::Connection {
        match self {
            Connection::Sqlite(connection) => connection,
            Connection::Postgres(_) => panic!("this test is about SQLite"),
        }
    }
}

impl Connection {
    /// Whether a process that uses the database may still be there.
    pub(crate) fn may_be_alive(&self, process: &ProcessIdentity) -> Result<bool> {
        Ok(self.owner_presence(process)? != OwnerPresence::Gone)
    }

    /// Whether a process that uses the database is there, or may return.
    pub(crate) fn owner_presence(&self, process: &ProcessIdentity) -> Result<OwnerPresence> {
        match self {
            Connection::Sqlite(_) if process::may_be_alive(process) => Ok(OwnerPresence::Present),
            Connection::Sqlite(_) => Ok(OwnerPresence::Gone),
            Connection::Postgres(connection) => connection.owner_presence(process),
        }
    }

    pub(crate) fn prepare(&self, sql: &str) -> Result<Statement<'_>> {
        match self {
            Connection::Sqlite(connection) => connection.prepare(sql).map(Statement::Sqlite),
            Connection::Postgres(connection) => Ok(Statement::Postgres { connection, sql: sql.to_owned() }),
        }
    }

    pub(crate) fn prepare_cached(&self, sql: &str) -> Result<Statement<'_>> {
        match self {
            Connection::Sqlite(connection) => connection.prepare_cached(sql).map(Statement::CachedSqlite),
            Connection::Postgres(connection) => Ok(Statement::Postgres { connection, sql: sql.to_owned() }),
        }
    }

    pub(crate) fn execute(&self, sql: &str, params: impl Params) -> Result<usize> {
        self.prepare(sql)?.execute(params)
    }

    pub(crate) fn query_row<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        self.prepare(sql)?.query_row(params, read)
    }

    /// Runs statements without parameters.
    pub(crate) fn execute_batch(&self, sql: &str) -> Result<()> {
        match self {
            Connection::Sqlite(connection) => connection.execute_batch(sql),
            Connection::Postgres(connection) => connection.batch_execute(sql),
        }
    }

    /// The number that the last inserted row got.
    pub(crate) fn last_insert_rowid(&self) -> i64 {
        match self {
            Connection::Sqlite(connection) => connection.last_insert_rowid(),
            Connection::Postgres(connection) => connection.last_number(),
        }
    }

    /// Whether no transaction is open.
    pub(crate) fn is_autocommit(&self) -> bool {
        match self {
            Connection::Sqlite(connection) => connection.is_autocommit(),
            Connection::Postgres(connection) => connection.is_autocommit(),
        }
    }

    /// Opens a transaction that sees one snapshot and changes nothing.
    pub(crate) fn begin_read(&self) -> Result<Transaction<'_>> {
        match self {
            Connection::Sqlite(connection) => {
                connection.prepare_cached("BEGIN")?.execute([])?;
            }
            Connection::Postgres(connection) => connection.begin_read()?,
        }
        Ok(Transaction { connection: self, is_over: false })
    }

    /// Opens a transaction that is the only one to write until it ends.
    pub(crate) fn begin_write(&self) -> Result<Transaction<'_>> {
        match self {
            Connection::Sqlite(connection) => {
                connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            }
            Connection::Postgres(connection) => connection.begin_write()?,
        }
        Ok(Transaction { connection: self, is_over: false })
    }

    fn end(&self, how: &str) -> Result<()> {
        match (self, how) {
            (Connection::Sqlite(connection), _) => connection.prepare_cached(how)?.execute([]).map(drop),
            (Connection::Postgres(connection), "COMMIT") => connection.commit(),
            (Connection::Postgres(connection), "ROLLBACK") => connection.rollback(),
            (Connection::Postgres(connection), _) => connection.batch_execute(how),
        }
    }

    /// Makes the changes that follow revocable on their own.
    pub(crate) fn savepoint(&self) -> Result<()> {
        self.end("SAVEPOINT pml")
    }

    /// Keeps the changes since the savepoint, as a part of the transaction.
    pub(crate) fn release_savepoint(&self) -> Result<()> {
        self.end("RELEASE pml")
    }

    /// Revokes the changes since the savepoint.
    pub(crate) fn revert_to_savepoint(&self) -> Result<()> {
        self.end("ROLLBACK TO pml")?;
        self.end("RELEASE pml")
    }
}

/// An open transaction; dropping it rolls back.
pub(crate) struct Transaction<'c> {
    connection: &'c Connection,
    is_over: bool,
}

impl Transaction<'_> {
    pub(crate) fn commit(mut self) -> Result<()> {
        self.connection.end("COMMIT")?;
        self.is_over = true;
        Ok(())
    }

    pub(crate) fn rollback(mut self) -> Result<()> {
        self.is_over = true;
        self.connection.end("ROLLBACK")
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.is_over && !self.connection.is_autocommit() {
            // A connection that cannot roll back is closed by its owner, which rolls back too.
            drop(self.connection.end("ROLLBACK"));
        }
    }
}

impl Statement<'_> {
    pub(crate) fn execute(&mut self, params: impl Params) -> Result<usize> {
        match self {
            Statement::Sqlite(statement) => params.with_slice(|params| statement.execute(params)),
            Statement::CachedSqlite(statement) => params.with_slice(|params| statement.execute(params)),
            Statement::Postgres { connection, sql } => {
                params.with_slice(|params| connection.execute(sql, params))
            }
        }
    }

    pub(crate) fn query(&mut self, params: impl Params) -> Result<Rows<'_>> {
        let statement: &mut rusqlite::Statement<'_> = match self {
            Statement::Sqlite(statement) => statement,
            Statement::CachedSqlite(statement) => statement,
            Statement::Postgres { connection, sql } => {
                return params.with_slice(|params| connection.query(sql, params)).map(Rows::Postgres);
            }
        };
        params.with_slice(|params| statement.query(params)).map(Rows::Sqlite)
    }

    pub(crate) fn query_map<T, F>(&mut self, params: impl Params, read: F) -> Result<MappedRows<'_, F>>
    where
        F: FnMut(&Row<'_>) -> Result<T>,
    {
        Ok(MappedRows { rows: self.query(params)?, read })
    }

    pub(crate) fn query_row<T>(
        &mut self,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut rows = self.query(params)?;
        match rows.next()? {
            Some(row) => read(&row),
            None => Err(rusqlite::Error::QueryReturnedNoRows),
        }
    }

    /// Whether there is any row.
    pub(crate) fn exists(&mut self, params: impl Params) -> Result<bool> {
        self.query(params)?.next().map(|row| row.is_some())
    }
}

impl Rows<'_> {
    pub(crate) fn next(&mut self) -> Result<Option<Row<'_>>> {
        match self {
            Rows::Sqlite(rows) => Ok(rows.next()?.map(Row::Sqlite)),
            Rows::Postgres(rows) => Ok(rows.next().map(Row::Postgres)),
        }
    }
}

/// Rows as an iterator of what is read from them.
pub(crate) struct MappedRows<'s, F> {
    rows: Rows<'s>,
    read: F,
}

impl<T, F: FnMut(&Row<'_>) -> Result<T>> Iterator for MappedRows<'_, F> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        match self.rows.next() {
            Ok(row) => row.map(|row| (self.read)(&row)),
            Err(error) => Some(Err(error)),
        }
    }
}

/// A column, by number from 0 or by name.
pub(crate) trait ColumnIndex: rusqlite::RowIndex + Copy {
    /// The number of the column in a row of PostgreSQL.
    fn place(self, row: &PgRow) -> Result<usize>;
}

impl ColumnIndex for usize {
    fn place(self, _: &PgRow) -> Result<usize> {
        Ok(self)
    }
}

impl ColumnIndex for &str {
    fn place(self, row: &PgRow) -> Result<usize> {
        row.column(self)
    }
}

impl Row<'_> {
    pub(crate) fn get<I: ColumnIndex, T: FromSql>(&self, column: I) -> Result<T> {
        match self {
            Row::Sqlite(row) => row.get(column),
            Row::Postgres(row) => {
                let place = column.place(row)?;
                let value = row.value(place)?;
                T::column_result(ValueRef::from(value))
                    .map_err(|error| conversion_error(error, row, place, value))
            }
        }
    }

    pub(crate) fn get_ref(&self, column: usize) -> Result<ValueRef<'_>> {
        match self {
            Row::Sqlite(row) => row.get_ref(column),
            Row::Postgres(row) => row.value(column).map(ValueRef::from),
        }
    }
}

/// The error that SQLite's rows give for a value that is not what was asked for.
fn conversion_error(error: FromSqlError, row: &PgRow, column: usize, value: &Value) -> rusqlite::Error {
    match error {
        FromSqlError::InvalidType => {
            rusqlite::Error::InvalidColumnType(column, row.name(column).to_owned(), value.data_type())
        }
        FromSqlError::OutOfRange(number) => rusqlite::Error::IntegralValueOutOfRange(column, number),
        other => rusqlite::Error::FromSqlConversionFailure(column, value.data_type(), Box::new(other)),
    }
}
