//! One of the two databases of a copy: rows as they are stored, without checking or marking them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, params_from_iter};

use super::plan::CopiedTable;
use crate::Error;
use crate::postgres::{BulkConnection, Server};

/// A database that is copied from or to.
pub(crate) struct Side {
    pub(crate) name: PathBuf,
    pub(super) connection: SideConnection,
    /// Whether everything happens within one transaction that somebody else ends.
    is_one_transaction: bool,
}

pub(super) enum SideConnection {
    File(rusqlite::Connection),
    Server(BulkConnection),
}

impl Side {
    pub(crate) fn of_file(path: &Path, connection: rusqlite::Connection) -> Side {
        let connection = SideConnection::File(connection);
        Side { name: path.to_owned(), connection, is_one_transaction: false }
    }

    pub(crate) fn of_server(server: &Arc<Server>, connection: BulkConnection) -> Side {
        let connection = SideConnection::Server(connection);
        Side { name: server.name().to_owned(), connection, is_one_transaction: false }
    }

    /// Within a transaction that is open: it is neither begun nor ended here.
    pub(crate) fn within_transaction(self) -> Side {
        Side { is_one_transaction: true, ..self }
    }

    pub(crate) fn explain(&self, error: &rusqlite::Error) -> Error {
        Error::sqlite(&self.name, error)
    }

    /// Runs statements without parameters.
    pub(crate) fn run(&self, sql: &str) -> rusqlite::Result<()> {
        match &self.connection {
            SideConnection::File(connection) => connection.execute_batch(sql),
            SideConnection::Server(connection) => connection.run(sql),
        }
    }

    /// Makes the changes of `work` together.
    pub(super) fn together(&self, work: impl FnOnce() -> rusqlite::Result<()>) -> rusqlite::Result<()> {
        if self.is_one_transaction {
            return work();
        }
        self.run("BEGIN")?;
        match work() {
            Ok(()) => self.run("COMMIT"),
            Err(error) => {
                // The transaction is gone with a connection that was lost.
                drop(self.run("ROLLBACK"));
                Err(error)
            }
        }
    }

    /// The first `limit` rows of a table in the order of its key, after the row with the key `after`.
    pub(super) fn rows(
        &self,
        table: &CopiedTable,
        after: Option<&[Value]>,
        limit: usize,
    ) -> rusqlite::Result<Vec<Vec<Value>>> {
        let (columns, key) = (CopiedTable::list(&table.columns), CopiedTable::list(&table.key));
        let places: Vec<String> = (1..=table.key.len()).map(|place| self.parameter(place)).collect();
        let condition = after.map_or(String::new(), |_| format!("WHERE ({key}) > ({})", places.join(", ")));
        let sql =
            format!("SELECT {columns} FROM \"{}\" {condition} ORDER BY {key} LIMIT {limit}", table.name);
        self.query(&sql, after.unwrap_or_default())
    }

    pub(super) fn insert(&self, table: &CopiedTable, rows: &[Vec<Value>]) -> rusqlite::Result<()> {
        let places: Vec<String> = (1..=table.columns.len()).map(|place| self.parameter(place)).collect();
        let (columns, places) = (CopiedTable::list(&table.columns), places.join(", "));
        let sql = format!("INSERT INTO \"{}\" ({columns}) VALUES ({places})", table.name);
        match &self.connection {
            SideConnection::File(connection) => {
                let mut insert = connection.prepare_cached(&sql)?;
                rows.iter().try_for_each(|row| insert.execute(params_from_iter(row)).map(drop))
            }
            SideConnection::Server(connection) => connection.run_for_each(&sql, rows),
        }
    }

    /// Runs a statement whose parameters are written `?1`, `?2` ….
    pub(super) fn change(&self, sql: &str, values: &[Value]) -> rusqlite::Result<()> {
        match &self.connection {
            SideConnection::File(connection) => connection.execute(sql, params_from_iter(values)).map(drop),
            SideConnection::Server(connection) => {
                connection.run_for_each(&sql.replace('?', "$"), &[values.to_vec()])
            }
        }
    }

    pub(super) fn query(&self, sql: &str, values: &[Value]) -> rusqlite::Result<Vec<Vec<Value>>> {
        match &self.connection {
            SideConnection::File(connection) => {
                let mut statement = connection.prepare_cached(sql)?;
                let columns = statement.column_count();
                statement
                    .query_map(params_from_iter(values), |row| {
                        (0..columns).map(|column| row.get(column)).collect()
                    })?
                    .collect()
            }
            SideConnection::Server(connection) => connection.query(&sql.replace('?', "$"), values),
        }
    }

    /// Whether a table has any row.
    pub(crate) fn has_rows(&self, table: &str) -> rusqlite::Result<bool> {
        self.query(&format!("SELECT 1 FROM \"{table}\" LIMIT 1"), &[]).map(|rows| !rows.is_empty())
    }

    /// The last number that a row of a table got, also if that row is gone.
    pub(super) fn last_number(&self, table: &CopiedTable) -> rusqlite::Result<i64> {
        let most = format!("SELECT coalesce(max({}), 0) FROM \"{}\"", table.key[0], table.name);
        let most = number(&self.query(&most, &[])?);
        let name = [Value::Text(table.name.clone())];
        let given = match &self.connection {
            SideConnection::File(_) => "SELECT seq FROM sqlite_sequence WHERE name = ?1",
            SideConnection::Server(_) => "SELECT last FROM row_number WHERE \"of\" = ?1",
        };
        Ok(most.max(number(&self.query(given, &name)?)))
    }

    /// Lets the next row of a table get a number after `last`.
    pub(super) fn set_last_number(&self, table: &CopiedTable, last: i64) -> rusqlite::Result<()> {
        let values = [Value::Text(table.name.clone()), Value::Integer(last)];
        match &self.connection {
            SideConnection::File(connection) => {
                // Tables without a sequence take the number after the highest.
                let is_kept = connection
                    .query_row(
                        "SELECT 1 FROM sqlite_schema WHERE name = ?1 AND sql LIKE '%AUTOINCREMENT%'",
                        [&table.name],
                        |_| Ok(()),
                    )
                    .optional()?
                    .is_some();
                if is_kept {
                    self.change("DELETE FROM sqlite_sequence WHERE name = ?1", &values[..1])?;
                    self.change("INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)", &values)?;
                }
                Ok(())
            }
            SideConnection::Server(connection) => match connection.numbers_rows(&table.name) {
                true => self.change(
                    "INSERT INTO row_number (\"of\", last) VALUES (?1, ?2)
                     ON CONFLICT (\"of\") DO UPDATE SET last = excluded.last",
                    &values,
                ),
                false => Ok(()),
            },
        }
    }

    fn parameter(&self, place: usize) -> String {
        match &self.connection {
            SideConnection::File(_) => format!("?{place}"),
            SideConnection::Server(_) => format!("${place}"),
        }
    }
}

/// The one number of a result; 0 without any.
fn number(rows: &[Vec<Value>]) -> i64 {
    match rows.first().and_then(|row| row.first()) {
        Some(Value::Integer(number)) => *number,
        _ => 0,
    }
}
