//! A connection for copying a whole database: many rows at once, as they are, without repeating anything.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use rusqlite::Result;
use rusqlite::types::Value;

use super::value::Bound;
use super::{Patience, PgConnection, Server};
use crate::Error;

/// Identifies the lock that everybody who uses a database shares; the schema is the other half.
pub(super) const USE_LOCK: i32 = 0x504d_4c32;

/// Rows that are sent without waiting for their answers.
const TOGETHER: usize = 500;

/// How long the server may take to notice that the last user of a database is gone.
const LEAVING: Duration = Duration::from_secs(2);

/// Chunks take their time, and so do the statements of an administrator.
const SETTINGS: &str =
    "SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0";

pub(crate) struct BulkConnection(PgConnection);

impl Server {
    /// A connection for copying, beside others that use the database.
    pub(crate) fn open_bulk(self: &Arc<Self>) -> Result<BulkConnection> {
        let client = self.connect_patiently(Patience::Opening)?;
        let connection = PgConnection::new(self, client, None);
        connection.send_batch(SETTINGS)?;
        Ok(BulkConnection(connection))
    }

    /// A connection for copying. As long as it is there, nobody else uses the database.
    pub(crate) fn open_alone(self: &Arc<Self>) -> Result<BulkConnection, Error> {
        let explain = |error: rusqlite::Error| Error::sqlite(self.name(), &error);
        let connection = self.open_bulk().map_err(explain)?;
        let take = format!("SELECT pg_try_advisory_lock({USE_LOCK}, hashtext(current_schema()))");
        let began = Instant::now();
        while connection.query(&take, &[]).map_err(explain)? != [[Value::Integer(1)]] {
            if began.elapsed() > LEAVING {
                return Err(Error::InUse { path: self.name().to_owned() });
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(connection)
    }
}

impl BulkConnection {
    /// Runs statements without parameters.
    pub(crate) fn run(&self, sql: &str) -> Result<()> {
        self.0.send_batch(sql)
    }

    /// The rows that a statement returns.
    pub(crate) fn query(&self, sql: &str, values: &[Value]) -> Result<Vec<Vec<Value>>> {
        let client = self.0.client();
        let statement = self.0.waited(client.prepare(sql))?;
        self.0.rows(&statement, values)
    }

    /// Runs a statement for each of these sets of values.
    pub(crate) fn run_for_each(&self, sql: &str, rows: &[Vec<Value>]) -> Result<()> {
        let client = self.0.client();
        let statement = self.0.waited(client.prepare(sql))?;
        for some in rows.chunks(TOGETHER) {
            let sent = some.iter().map(|row| client.execute_raw(&statement, row.iter().map(Bound)));
            self.0.waited(try_join_all(sent))?;
        }
        Ok(())
    }

    /// Whether the database gives numbers to the rows of a table.
    pub(crate) fn numbers_rows(&self, table: &str) -> bool {
        self.0.server().schema().table(table).is_some_and(|table| table.number.is_some())
    }
}
