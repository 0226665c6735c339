//! A database without a store in between: for tests that alter it, or count what is in it.

use std::path::Path;

use rusqlite::types::Value;

pub(crate) enum Raw {
    File(rusqlite::Connection),
    Server { client: tokio_postgres::Client, runtime: tokio::runtime::Runtime },
}

impl Raw {
    pub(crate) fn open(path: &Path) -> Raw {
        Raw::File(rusqlite::Connection::open(path).unwrap())
    }

    pub(crate) fn connect(url: &str) -> Raw {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let client = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
            tokio::spawn(connection);
            client
        });
        Raw::Server { client, runtime }
    }

    /// Runs statements; returns how many rows the last one changed, or why it was refused.
    pub(crate) fn try_execute(&self, sql: &str) -> Result<u64, String> {
        match self {
            Raw::File(connection) => {
                connection.execute_batch(sql).map_err(|error| error.to_string())?;
                Ok(connection.changes())
            }
            Raw::Server { client, runtime } => {
                // Bytes are written otherwise.
                let sql = sql.replace(" x'", " '\\x");
                let done = runtime.block_on(client.simple_query(&sql));
                let done = done.map_err(|error| {
                    error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned())
                })?;
                let changed = |message: &tokio_postgres::SimpleQueryMessage| match message {
                    tokio_postgres::SimpleQueryMessage::CommandComplete(rows) => Some(*rows),
                    _ => None,
                };
                Ok(done.iter().filter_map(changed).next_back().unwrap_or(0))
            }
        }
    }

    #[track_caller]
    pub(crate) fn execute(&self, sql: &str) -> u64 {
        self.try_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The one number that a query returns.
    #[track_caller]
    pub(crate) fn number(&self, sql: &str) -> i64 {
        match self {
            Raw::File(connection) => connection.query_row(sql, [], |row| row.get(0)).unwrap(),
            Raw::Server { client, runtime } => runtime.block_on(client.query_one(sql, &[])).unwrap().get(0),
        }
    }

    /// The rows of a query, each value as a text; the same for both databases.
    #[track_caller]
    pub(crate) fn texts(&self, sql: &str) -> Vec<Vec<String>> {
        match self {
            Raw::File(connection) => {
                let mut statement = connection.prepare(sql).unwrap();
                let columns = statement.column_count();
                let read = |row: &rusqlite::Row<'_>| {
                    (0..columns).map(|column| row.get::<_, Value>(column).map(text)).collect()
                };
                statement.query_map([], read).unwrap().map(Result::unwrap).collect()
            }
            Raw::Server { client, runtime } => {
                let messages = runtime.block_on(client.simple_query(sql)).unwrap();
                let row = |message: &tokio_postgres::SimpleQueryMessage| match message {
                    tokio_postgres::SimpleQueryMessage::Row(row) => Some(
                        (0..row.len()).map(|column| row.get(column).unwrap_or("null").to_owned()).collect(),
                    ),
                    _ => None,
                };
                messages.iter().filter_map(row).collect()
            }
        }
    }
}

fn text(value: Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text,
        Value::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}
