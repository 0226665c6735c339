//! Authenticates the rows that decide what the program does: definitions, acceptances, capabilities, learning, traces
//! and cached results.
//!
//! The mark of a row is a MAC over its covered columns, with a key that is not in the database. A row that was damaged
//! on the disk or altered by another program no longer has a valid mark. Temporary triggers of the write connection
//! update marks with their rows, so statements need not care. An update of a row with an invalid mark is skipped,
//! because it would authenticate the damage. Queries leave such rows out with [`vouched_condition`], which also
//! reports them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, ErrorCode};

use crate::connection;
use crate::error::{Error, short_message, to_key_error};
use crate::seal::{DerivedKeys, MasterKey};
use crate::table::{MarkedTable, TABLES};

/// Maximum number of damaged rows that are remembered; a longer list helps nobody.
const MOST_NAMED: usize = 100;

/// SQL condition that row `row` of table `table` has a valid mark. Rows without one are reported.
pub(crate) fn vouched_condition(table: &str, row: &str) -> Cow<'static, str> {
    // Made once: composing a condition takes longer than the query of a single row.
    static CONDITIONS: LazyLock<Vec<String>> =
        LazyLock::new(|| TABLES.iter().map(|table| table.vouched_condition(table.name)).collect());
    let place = place_of(table);
    match row == table {
        true => Cow::Borrowed(&CONDITIONS[place]),
        false => Cow::Owned(TABLES[place].vouched_condition(row)),
    }
}

fn place_of(table: &str) -> usize {
    let place = TABLES.iter().position(|known| known.name == table);
    place.expect("the names of tables are written in this package")
}

/// SQL expression for the mark of a row to be inserted, over the parameters `?1`, `?2` … in the order of `columns`. It
/// saves rows that are written often from being written twice.
pub(crate) fn mark_sql(table: &str, columns: &[&str]) -> String {
    let place = |column: &str| {
        let at = columns.iter().position(|given| *given == column);
        format!(", ?{}", at.expect("every column that counts is given") + 1)
    };
    mark_of(table, place)
}

/// SQL expression for the mark of a row to be updated: `changed` has the new values of columns, as expressions. It
/// saves rows that are updated often from being written twice.
pub(crate) fn changed_mark_sql(table: &str, changed: &[(&str, &str)]) -> String {
    mark_of(table, |column| {
        let new = changed.iter().find(|(name, _)| *name == column);
        format!(", {}", new.map_or(column, |(_, value)| *value))
    })
}

fn mark_of(table: &str, value: impl Fn(&str) -> String) -> String {
    let values: String = TABLES[place_of(table)].marked_columns().map(value).collect();
    format!("row_mark('{table}'{values})")
}

/// SQL condition that the database holds any row with a mark, and thus needs the key.
pub(crate) fn any_marked_row_sql() -> String {
    let any = TABLES.iter().map(|table| format!("SELECT 1 FROM {}", table.name)).collect::<Vec<_>>();
    any.join(" UNION ALL ")
}

/// Creates the temporary triggers that update marks with their rows, for this connection alone.
pub(crate) fn create_mark_triggers(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&TABLES.iter().map(MarkedTable::trigger_sql).collect::<String>())
}

/// Marks every row, whatever it holds: for rows from before marks were introduced. Tables of later migrations are not
/// there then.
pub(crate) fn mark_all_rows(connection: &Connection) -> rusqlite::Result<()> {
    let mut exists = connection.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1")?;
    TABLES.iter().try_for_each(|table| {
        let MarkedTable { name, mark, .. } = table;
        if !exists.exists([name])? {
            return Ok(());
        }
        connection
            .execute(&format!("UPDATE {name} SET {mark} = row_mark({})", table.mark_arguments(name)), [])
            .map(drop)
    })
}

/// Number of rows that carry marks, and number of damaged ones among them.
#[derive(Debug, Default)]
pub(crate) struct RowCheck {
    pub(crate) all: u64,
    pub(crate) damaged: u64,
}

/// Checks every row that carries a mark, and reports the damaged ones.
pub(crate) fn check_all_rows(connection: &Connection) -> rusqlite::Result<RowCheck> {
    TABLES.iter().try_fold(RowCheck::default(), |sum, table| {
        let MarkedTable { name, .. } = table;
        let count = format!(
            "SELECT count(*), count(*) FILTER (WHERE NOT {}) FROM {name}",
            table.vouched_condition(name)
        );
        let (all, damaged): (u64, u64) =
            connection.query_row(&count, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(RowCheck { all: sum.all + all, damaged: sum.damaged + damaged })
    })
}

/// Makes and checks the marks of one database, and remembers the damage that was found.
pub(crate) struct RowAuthenticator {
    database: PathBuf,
    pub(crate) master: MasterKey,
    /// The derived keys, once they were needed: getting them takes a lock.
    keys: OnceLock<Arc<DerivedKeys>>,
    damaged: Mutex<BTreeSet<String>>,
    /// The damage that SQLite found in the file itself. Once it is set, all writes are refused.
    broken: OnceLock<String>,
}

impl RowAuthenticator {
    pub(crate) fn beside(database: &Path) -> Arc<RowAuthenticator> {
        RowAuthenticator::with_key_beside(database, database)
    }

    /// For a database that is called `name` and whose key file is beside `path`.
    pub(crate) fn with_key_beside(path: &Path, name: &Path) -> Arc<RowAuthenticator> {
        Arc::new(RowAuthenticator {
            database: name.to_owned(),
            master: MasterKey::beside(path),
            keys: OnceLock::new(),
            damaged: Mutex::default(),
            broken: OnceLock::new(),
        })
    }

    /// Registers the SQL functions `row_mark` and `row_is_vouched` with a connection.
    pub(crate) fn register(self: &Arc<Self>, connection: &Connection) -> rusqlite::Result<()> {
        let marks = Arc::clone(self);
        let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_INNOCUOUS;
        connection.create_scalar_function("row_mark", -1, flags, move |row| marks.mark(row, 0))?;
        let checks = Arc::clone(self);
        connection.create_scalar_function("row_is_vouched", -1, flags, move |row| {
            let sound = row.get_raw(0).as_blob_or_null().ok().flatten() == Some(&checks.mark(row, 1)?[..]);
            if !sound {
                let name = row.get_raw(1).as_str().unwrap_or_default();
                checks.report(name, (2..row.len()).map(|at| row.get_raw(at)));
            }
            Ok(sound)
        })
    }

    /// The mark over the SQL arguments from index `first` on; the first of them is the name of the table.
    fn mark(&self, row: &Context<'_>, first: usize) -> rusqlite::Result<[u8; 16]> {
        self.mark_all((first..row.len()).map(|at| row.get_raw(at)))
    }

    /// The mark of a row of `table` whose covered columns have these values.
    pub(crate) fn mark_values<'v>(
        &self,
        table: &'v str,
        values: impl Iterator<Item = &'v Value>,
    ) -> rusqlite::Result<[u8; 16]> {
        self.mark_all(std::iter::once(ValueRef::Text(table.as_bytes())).chain(values.map(ValueRef::from)))
    }

    /// Whether a row of `table` has the mark that its covered columns require. A row that does not is reported.
    pub(crate) fn is_vouched(&self, table: &str, mark: &Value, covered: &[Value]) -> rusqlite::Result<bool> {
        let expected = self.mark_values(table, covered.iter())?;
        let is_sound = matches!(mark, Value::Blob(mark) if mark[..] == expected);
        if !is_sound {
            self.report(table, covered.iter().map(ValueRef::from));
        }
        Ok(is_sound)
    }

    fn mark_all<'v>(&self, values: impl Iterator<Item = ValueRef<'v>>) -> rusqlite::Result<[u8; 16]> {
        let mut mark = self.keys()?.rows.begin();
        for value in values {
            match value {
                ValueRef::Null => mark.bytes(b"n"),
                ValueRef::Integer(number) => {
                    mark.bytes(b"i");
                    mark.number(number);
                }
                ValueRef::Real(number) => {
                    mark.bytes(b"r");
                    mark.bytes(&number.to_bits().to_le_bytes());
                }
                ValueRef::Text(text) => {
                    mark.bytes(b"t");
                    mark.bytes(text);
                }
                ValueRef::Blob(bytes) => {
                    mark.bytes(b"b");
                    mark.bytes(bytes);
                }
            }
        }
        Ok(mark.finish())
    }

    fn keys(&self) -> rusqlite::Result<&DerivedKeys> {
        if let Some(keys) = self.keys.get() {
            return Ok(keys);
        }
        let keys = self.master.keys(|| self.key_is_used()).map_err(to_key_error)?;
        Ok(self.keys.get_or_init(|| keys))
    }

    fn key_is_used(self: &RowAuthenticator) -> Result<bool, Error> {
        let used = || {
            let connection = connection::open_unvouched(&self.database)?;
            connection.prepare(&format!("{} LIMIT 1", any_marked_row_sql()))?.exists([])
        };
        used().map_err(|error| Error::sqlite(&self.database, &error))
    }

    fn report<'v>(&self, name: &str, covered: impl Iterator<Item = ValueRef<'v>>) {
        let text = |value: ValueRef<'v>| match value {
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Text(text) => {
                pml_model::name::printable(&String::from_utf8_lossy(text)).chars().take(80).collect()
            }
            _ => "?".to_owned(),
        };
        let table = TABLES.iter().find(|table| table.name == name);
        let named = table.map_or(0, |table| if table.marks_key { table.key.len() } else { 1 });
        let key: Vec<String> = covered.take(named).map(text).collect();
        self.report_damaged_row(format!("{} {}", name.replace('_', " "), key.join(" ")));
    }

    /// Remembers a damaged row and logs it, once.
    pub(crate) fn report_damaged_row(&self, row: String) {
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
    pub(crate) fn damaged_rows(&self) -> Vec<String> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Records damage of the file if an error indicates it.
    pub(crate) fn observe_error(&self, error: &rusqlite::Error) {
        let broken = match error {
            // PML's statements are valid, so the schema must have been altered.
            rusqlite::Error::SqlInputError { .. } => true,
            _ => matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
            ),
        };
        if broken {
            self.mark_file_broken(&short_message(error));
        }
    }

    pub(crate) fn mark_file_broken(&self, detail: &str) {
        if self.broken.set(detail.to_owned()).is_ok() {
            tracing::error!(
                "database `{}` is damaged, and nothing more is written to it: {detail}; end PML, then run \
                 `pml restore BACKUP`",
                self.database.display()
            );
        }
    }

    /// Refuses to write to a damaged file.
    pub(crate) fn refuse_if_broken(&self) -> Result<(), Error> {
        match self.broken.get() {
            Some(detail) => Err(Error::Corrupt { path: self.database.clone(), detail: detail.clone() }),
            None => Ok(()),
        }
    }
}
