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

use crate::memory::TRACE_COLUMNS;
use crate::seal::{Keys, Master};
use crate::{Error, database};

/// How many damaged rows are remembered by name; more help nobody.
const MOST_NAMED: usize = 100;

/// A table with marks.
struct Table {
    name: &'static str,
    /// The column with the mark.
    mark: &'static str,
    /// The columns that tell a row from the others.
    key: &'static [&'static str],
    /// The columns that count beside them.
    columns: &'static [&'static str],
    /// The key counts, too. Where it is given by SQLite it is not known before the row is there, and a statement that
    /// inserts many rows could not mark them in passing.
    key_counts: bool,
}

const TABLES: &[Table] = &[
    Table {
        name: "approval_rule",
        mark: "row_mark",
        key: &["number"],
        columns: &[
            "principal",
            "tool",
            "definition",
            "code_hash",
            "arguments",
            "expires_at",
            "given_by",
            "created_at",
            "revoked_at",
            "uses",
            "used_at",
            "maker",
            "mark",
        ],
        key_counts: true,
    },
    Table {
        name: "definition",
        mark: "mark",
        key: &["id"],
        columns: &["principal", "content", "digest", "raw"],
        key_counts: true,
    },
    Table {
        name: "tool",
        mark: "mark",
        key: &["principal", "server", "tool"],
        columns: &["identifier", "offered", "definition", "defined_at", "first_seen_at"],
        key_counts: true,
    },
    Table {
        name: "accepted_definition",
        mark: "mark",
        key: &["principal", "server", "launch", "tool"],
        columns: &["definition", "digest", "accepted_at"],
        key_counts: true,
    },
    Table {
        name: "capability",
        mark: "mark",
        key: &["number"],
        columns: &[
            "id",
            "principal",
            "name",
            "created_at",
            "promoted_at",
            "approved",
            "outside_because",
            "outside_seq",
            "usage_count",
            "success_count",
            "failure_count",
            "failures_in_a_row",
            "avg_duration_ms",
            "last_used",
            "failing",
            "worked_seq",
            "learning",
            "examples",
        ],
        key_counts: true,
    },
    Table {
        name: "capability_procedure",
        mark: "mark",
        key: &["capability"],
        columns: &["tools", "procedure", "cache"],
        key_counts: true,
    },
    Table {
        name: "capability_intent",
        mark: "mark",
        key: &["capability", "text"],
        columns: &["count", "first_at", "last_at", "checked"],
        key_counts: true,
    },
    Table {
        name: "capability_alias",
        mark: "mark",
        key: &["id"],
        columns: &["principal", "capability"],
        key_counts: true,
    },
    Table { name: "trace", mark: "mark", key: &["seq"], columns: &TRACE_COLUMNS, key_counts: false },
    // Of the body nothing is learned but the lesson.
    Table { name: "trace_body", mark: "mark", key: &["seq"], columns: &["lesson"], key_counts: true },
    Table {
        name: "edge",
        mark: "mark",
        key: &["principal", "source", "kind", "target"],
        columns: &["count"],
        key_counts: true,
    },
    Table {
        name: "tool_use",
        mark: "mark",
        key: &["principal", "tool"],
        columns: &["calls", "failures"],
        key_counts: true,
    },
    Table {
        name: "observed",
        mark: "mark",
        key: &["principal", "tool", "digest"],
        columns: &["shape"],
        key_counts: true,
    },
    Table {
        name: "cached_result",
        mark: "mark",
        key: &["principal", "capability", "parameters"],
        columns: &["epoch", "result", "at", "expires_at", "intent", "stamps"],
        key_counts: true,
    },
];

impl Table {
    /// The name and all columns that count, as arguments of a function.
    fn arguments(&self, row: &str) -> String {
        let columns = self.counted().map(|column| format!(", {row}.{column}"));
        format!("'{}'{}", self.name, columns.collect::<String>())
    }

    fn counted(&self) -> impl Iterator<Item = &'static str> {
        let key = if self.key_counts { self.key } else { &[] };
        key.iter().chain(self.columns).copied()
    }

    fn vouched(&self, row: &str) -> String {
        format!("row_is_vouched({row}.{}, {})", self.mark, self.arguments(row))
    }

    fn triggers(&self) -> String {
        let Table { name, mark, key, .. } = self;
        let same = key.iter().map(|column| format!("{column} = new.{column}")).collect::<Vec<_>>();
        let same = same.join(" AND ");
        let counted = self.counted().collect::<Vec<_>>().join(", ");
        let (old, new) = (self.vouched("old"), self.arguments("new"));
        format!(
            "CREATE TEMP TRIGGER {name}_is_sound BEFORE UPDATE OF {counted} ON main.{name} WHEN NOT {old}
             BEGIN SELECT raise(IGNORE); END;
             CREATE TEMP TRIGGER {name}_is_marked AFTER INSERT ON main.{name} WHEN new.{mark} IS NULL
             BEGIN UPDATE {name} SET {mark} = row_mark({new}) WHERE {same}; END;
             CREATE TEMP TRIGGER {name}_is_marked_anew AFTER UPDATE OF {counted} ON main.{name}
             BEGIN UPDATE {name} SET {mark} = row_mark({new}) WHERE {same}; END;"
        )
    }
}

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
            let connection = database::open_unvouched(&self.database)?;
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

/// What SQLite says, without the statement it says it of.
pub(crate) fn short(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        error => error.to_string(),
    }
}

/// How complaints about the key get through SQLite, which passes on nothing but a text.
const KEY_MISSING: &str = "pml: the key is missing";
const KEY_UNUSABLE: &str = "pml: the key is unusable: ";

fn unusable(error: Error) -> rusqlite::Error {
    let text = match error {
        Error::KeyMissing { .. } => KEY_MISSING.to_owned(),
        Error::Key { why, .. } => format!("{KEY_UNUSABLE}{why}"),
        other => other.to_string(),
    };
    rusqlite::Error::UserFunctionError(text.into())
}

/// What an error of SQLite says about the key, if it is about the key.
pub(crate) fn key_complaint(database: &Path, error: &rusqlite::Error) -> Option<Error> {
    let rusqlite::Error::SqliteFailure(_, Some(text)) = error else { return None };
    let path = database.with_file_name("seal.key");
    if text == KEY_MISSING {
        return Some(Error::KeyMissing { path });
    }
    text.strip_prefix(KEY_UNUSABLE).map(|why| Error::Key { path, why: why.to_owned() })
}
