//! Marks of the rows that decide what the program does: definitions, what was accepted, capabilities, learning, traces
//! and kept results.
//!
//! A mark is made of the columns that count, with a key that is not in the database: a row that was damaged on the
//! disk or altered by somebody else no longer has the mark it should have. Temporary triggers of the connection that
//! writes keep marks in step with rows, so statements need not care. An update of a row whose mark is wrong is
//! skipped, because it would vouch for the damage. Statements that read leave such rows out with [`vouched`], which
//! also reports them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode};

use crate::connection;
use crate::error::{Error, short, unusable};
use crate::seal::{Keys, Master};
use crate::table::{TABLES, Table};

/// How many damaged rows are remembered by name; more help nobody.
const MOST_NAMED: usize = 100;

/// The condition that the row `row` of table `table` is as it was stored. Rows that are not are reported.
pub(crate) fn vouched(table: &str, row: &str) -> String {
    let known = TABLES.iter().find(|known| known.name == table);
    known.expect("the names of tables are written in this package").vouched(row)
}

/// The value of the mark of a row that is about to be inserted, of the values in the order of `columns`: as `?1` and so
/// on. Saves rows that are written often from being written twice.
pub(crate) fn mark_of_values(table: &str, columns: &[&str]) -> String {
    let known = TABLES.iter().find(|known| known.name == table);
    let known = known.expect("the names of tables are written in this package");
    let place = |column: &str| {
        let at = columns.iter().position(|given| *given == column);
        format!(", ?{}", at.expect("every column that counts is given") + 1)
    };
    format!("row_mark('{}'{})", known.name, known.counted().map(place).collect::<String>())
}

/// The condition that anything is stored that the key was used for by marks.
pub(crate) fn any_marked() -> String {
    let any = TABLES.iter().map(|table| format!("SELECT 1 FROM {}", table.name)).collect::<Vec<_>>();
    any.join(" UNION ALL ")
}

/// Makes the triggers that keep marks in step with rows, for this connection alone.
pub(crate) fn keep_marks(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&TABLES.iter().map(Table::triggers).collect::<String>())
}

/// Marks every row, whatever it holds: for rows from before there were marks.
pub(crate) fn mark_all(connection: &Connection) -> rusqlite::Result<()> {
    TABLES.iter().try_for_each(|table| {
        let Table { name, mark, .. } = table;
        connection
            .execute(&format!("UPDATE {name} SET {mark} = row_mark({})", table.arguments(name)), [])
            .map(drop)
    })
}

/// How many rows there are that have marks, and how many of them are damaged.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    pub(crate) all: u64,
    pub(crate) damaged: u64,
}

/// Looks at every row, and reports those that are damaged.
pub(crate) fn check_all(connection: &Connection) -> rusqlite::Result<Checked> {
    TABLES.iter().try_fold(Checked::default(), |sum, table| {
        let Table { name, .. } = table;
        let count =
            format!("SELECT count(*), count(*) FILTER (WHERE NOT {}) FROM {name}", table.vouched(name));
        let (all, damaged): (u64, u64) =
            connection.query_row(&count, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Checked { all: sum.all + all, damaged: sum.damaged + damaged })
    })
}

/// What makes and checks the marks of one database, and what was found to be damaged in it.
pub(crate) struct Voucher {
    database: PathBuf,
    pub(crate) master: Master,
    /// Its keys, once they were needed: asking for them takes a lock.
    keys: OnceLock<Arc<Keys>>,
    damaged: Mutex<BTreeSet<String>>,
    /// What SQLite found wrong with the file itself. From then on nothing is written.
    broken: OnceLock<String>,
}

impl Voucher {
    pub(crate) fn beside(database: &Path) -> Arc<Voucher> {
        Arc::new(Voucher {
            database: database.to_owned(),
            master: Master::beside(database),
            keys: OnceLock::new(),
            damaged: Mutex::default(),
            broken: OnceLock::new(),
        })
    }

    /// Gives a connection the functions `row_mark` and `row_is_vouched`.
    pub(crate) fn register(self: &Arc<Self>, connection: &Connection) -> rusqlite::Result<()> {
        let marks = Arc::clone(self);
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_INNOCUOUS;
        connection.create_scalar_function("row_mark", -1, flags, move |row| marks.mark(row, 0))?;
        let checks = Arc::clone(self);
        connection.create_scalar_function("row_is_vouched", -1, flags, move |row| {
            let sound = row.get_raw(0).as_blob_or_null().ok().flatten() == Some(&checks.mark(row, 1)?[..]);
            if !sound {
                checks.report(row);
            }
            Ok(sound)
        })
    }

    /// The mark of the values from the argument `first` on, which starts with the name of the table.
    fn mark(&self, row: &Context<'_>, first: usize) -> rusqlite::Result<[u8; 16]> {
        let mut mark = self.keys()?.rows.begin();
        for at in first..row.len() {
            match row.get_raw(at) {
                ValueRef::Null => mark.word(b"n"),
                ValueRef::Integer(number) => {
                    mark.word(b"i");
                    mark.number(number);
                }
                ValueRef::Real(number) => {
                    mark.word(b"r");
                    mark.word(&number.to_bits().to_le_bytes());
                }
                ValueRef::Text(text) => {
                    mark.word(b"t");
                    mark.word(text);
                }
                ValueRef::Blob(bytes) => {
                    mark.word(b"b");
                    mark.word(bytes);
                }
            }
        }
        Ok(mark.short())
    }

    fn keys(&self) -> rusqlite::Result<&Keys> {
        if let Some(keys) = self.keys.get() {
            return Ok(keys);
        }
        let keys = self.master.keys(|| self.key_is_used()).map_err(unusable)?;
        Ok(self.keys.get_or_init(|| keys))
    }

    fn key_is_used(self: &Voucher) -> Result<bool, Error> {
        let used = || {
            let connection = connection::open_unvouched(&self.database)?;
            connection.prepare(&format!("{} LIMIT 1", any_marked()))?.exists([])
        };
        used().map_err(|error| Error::sqlite(&self.database, &error))
    }

    fn report(&self, row: &Context<'_>) {
        let text = |at: usize| match row.get_raw(at) {
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Text(text) => {
                pml_model::name::printable(&String::from_utf8_lossy(text)).chars().take(80).collect()
            }
            _ => "?".to_owned(),
        };
        let name = text(1);
        let table = TABLES.iter().find(|table| table.name == name);
        let named = table.map_or(0, |table| if table.key_counts { table.key.len() } else { 1 });
        let key: Vec<String> = (2..2 + named).map(text).collect();
        self.note(format!("{} {}", name.replace('_', " "), key.join(" ")));
    }

    /// Remembers a damaged row and says so, once.
    pub(crate) fn note(&self, row: String) {
        let mut damaged = self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
        if damaged.len() < MOST_NAMED && !damaged.contains(&row) {
            tracing::error!(
                "a row of database `{}` is damaged or was altered, and is left out: {row}; `pml doctor` tells more",
                self.database.display()
            );
            damaged.insert(row);
        }
    }

    /// The damaged rows that were found so far.
    pub(crate) fn damaged(&self) -> Vec<String> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Takes note of what an error tells about the file.
    pub(crate) fn observe(&self, error: &rusqlite::Error) {
        let broken = match error {
            // Our statements are right, so the schema they are for is not what it was.
            rusqlite::Error::SqlInputError { .. } => true,
            _ => matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
            ),
        };
        if broken {
            self.found_broken(&short(error));
        }
    }

    pub(crate) fn found_broken(&self, detail: &str) {
        if self.broken.set(detail.to_owned()).is_ok() {
            tracing::error!(
                "database `{}` is damaged, and nothing more is written to it: {detail}; end PML, then run \
                 `pml restore BACKUP`",
                self.database.display()
            );
        }
    }

    /// Refuses to write to a file that is damaged.
    pub(crate) fn refuse_if_broken(&self) -> Result<(), Error> {
        match self.broken.get() {
            Some(detail) => Err(Error::Corrupt { path: self.database.clone(), detail: detail.clone() }),
            None => Ok(()),
        }
    }
}
