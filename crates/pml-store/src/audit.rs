//! The audit log: every question, answer and decision, in the order in which they were stored.
//!
//! Entries are stored in the transaction of what they tell of, and survive a loss of power. Each
//! carries a hash of itself and of the one before, made with a key that is not in the database, so an
//! entry that was changed, taken out, put in or moved is noticed. That the newest were cut off is
//! noticed by a file beside the database, which names the newest that was there. What entries tell
//! stands in the open: nothing secret belongs there.

mod chain;

use std::fmt;
use std::sync::Arc;

use pml_model::{Principal, RunId};
use rusqlite::{Connection, Row};
use serde_json::value::RawValue;

use crate::column::{run_id, unexpected};
use crate::head::{BEFORE_THE_FIRST, Head};
use crate::seal::Keys;
use crate::writer::Failure;
use crate::{BlockingStore, Error, Urgency};

/// An entry to be.
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    /// When.
    pub at: i64,
    /// Whose matter it is.
    pub principal: Principal,
    /// The run it is about.
    pub run: Option<RunId>,
    /// What it tells, in one word.
    pub kind: &'static str,
    /// The particulars: an object, without anything secret.
    pub body: serde_json::Value,
}

/// An entry of the log.
#[derive(Debug, Clone)]
pub struct AuditRow {
    /// Its number, from 1 without gaps.
    pub seq: i64,
    /// When.
    pub at: i64,
    /// Whose matter it is.
    pub principal: Principal,
    /// The run it is about.
    pub run: Option<RunId>,
    /// What it tells, in one word.
    pub kind: String,
    /// The particulars.
    pub body: Box<RawValue>,
    /// Vouches for the entry and for all before it: 64 hexadecimal digits.
    pub hash: String,
}

/// Whether the log is what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verified {
    /// It is.
    Whole {
        /// How many entries it has.
        rows: i64,
        /// The hash of the newest, or zeros where there is none.
        head: String,
    },
    /// It is not.
    Broken {
        /// The first entry that is not as it was, or is not there.
        seq: i64,
        /// What is wrong with it.
        why: Damage,
    },
}

/// What is wrong with an entry of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// It is not what was stored at this place, or the key is not the one it was stored with.
    Changed,
    /// It is not there, and later ones are.
    Missing,
    /// It and all that followed are not there, and once were.
    CutOff,
    /// Another stood in its place once; all that followed that one was cut off.
    Replaced,
    /// It is the newest, and the file that says whether more followed is missing.
    NoHead,
    /// It is the newest, and the file that says whether more followed says something else.
    BadHead,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Damage::Changed => "it is not what was stored there, or `seal.key` is another one",
            Damage::Missing => "it is missing",
            Damage::CutOff => {
                "it and what followed it are cut off; where an older database was put back on purpose, move \
                 `audit.head` away"
            }
            Damage::Replaced => {
                "another one stood there, and what followed that one is cut off; where an older database was put \
                 back on purpose, move `audit.head` away"
            }
            Damage::NoHead => {
                "it is the newest, and nothing says whether others followed it, because `audit.head` is missing; \
                 put it back, or it is made again with the next entry"
            }
            Damage::BadHead => {
                "it is the newest, and nothing says whether others followed it, because `audit.head` is damaged; \
                 put it back from a backup, or move it away"
            }
        })
    }
}

impl BlockingStore {
    /// Adds entries to the log, and waits until they would survive a loss of power.
    ///
    /// # Errors
    /// The key file cannot be used, or the change not be stored; then none of them is.
    pub fn audit(&self, entries: Vec<Audit>) -> Result<(), Error> {
        let log = self.log(entries)?;
        if log.is_empty() {
            return Ok(());
        }
        self.change(Urgency::Durable, move |connection| log.store(connection))
    }

    /// Entries of the log, of all principals: up to `limit` of those after number `after`, in order.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn audit_rows(&self, after: i64, limit: u32) -> Result<Vec<AuditRow>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT seq, at, principal, run, kind, body, hash FROM audit
                     WHERE seq > ?1 ORDER BY seq LIMIT ?2",
                )?
                .query_map((after, limit), audit_row)?
                .collect()
        })
    }

    /// Whether the log is what was written: nothing changed, taken out, put in, moved or cut off.
    ///
    /// # Errors
    /// The database or the files beside it cannot be read, or the key file is missing.
    pub fn verify_audit(&self) -> Result<Verified, Error> {
        // Read before the entries: what is stored meanwhile can only be more than it names.
        let named = self.inner.head.read().map_err(|error| self.inner.head.complain(&error))?;
        if self.read(chain::is_empty)? {
            return Ok(chain::end(0, BEFORE_THE_FIRST.to_owned(), &named));
        }
        let keys = self.inner.voucher.master.keys(|| Ok(true))?;
        self.read(|connection| chain::verify(connection, &keys.audit, &named))
    }

    /// Entries, ready to be stored in the transaction of what they tell of.
    pub(crate) fn log(&self, entries: Vec<Audit>) -> Result<Log, Error> {
        let keys = match entries.is_empty() {
            true => None,
            false => Some(self.inner.voucher.master.keys(|| self.uses_key())?),
        };
        let entries = entries.into_iter().map(Line::new).collect();
        Ok(Log { keys, head: Arc::clone(&self.inner.head), entries })
    }

    /// For entries that are known only within the transaction of what they tell of.
    pub(crate) fn log_within(&self) -> Result<Log, Error> {
        let keys = Some(self.inner.voucher.master.keys(|| self.uses_key())?);
        Ok(Log { keys, head: Arc::clone(&self.inner.head), entries: Vec::new() })
    }
}

fn audit_row(row: &Row<'_>) -> rusqlite::Result<AuditRow> {
    let run = row.get_ref(3)?.as_str_or_null()?.map(|_| run_id(row, 3)).transpose()?;
    let body = RawValue::from_string(row.get(5)?).map_err(|error| unexpected(5, error))?;
    Ok(AuditRow {
        seq: row.get(0)?,
        at: row.get(1)?,
        principal: Principal(row.get(2)?),
        run,
        kind: row.get(4)?,
        body,
        hash: row.get(6)?,
    })
}

/// Entries on their way into the log.
pub(crate) struct Log {
    /// Present where there are entries.
    keys: Option<Arc<Keys>>,
    head: Arc<Head>,
    entries: Vec<Line>,
}

/// An entry with its particulars written out.
struct Line {
    at: i64,
    principal: Principal,
    run: Option<RunId>,
    kind: &'static str,
    body: String,
}

impl Line {
    fn new(entry: Audit) -> Line {
        let Audit { at, principal, run, kind, body } = entry;
        Line { at, principal, run, kind, body: body.to_string() }
    }
}

impl Log {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.entries.iter().map(|line| size_of::<Line>() + line.body.len()).sum()
    }

    /// How soon a change is to be on the disk that carries these entries: no file may name one that a
    /// loss of power could take away again.
    pub(crate) fn urgency(&self, urgency: Urgency) -> Urgency {
        if self.is_empty() { urgency } else { Urgency::Durable }
    }

    /// Adds entries to the log, within the transaction of whoever calls.
    pub(crate) fn tell(
        &self,
        connection: &Connection,
        entries: impl Iterator<Item = Audit>,
    ) -> Result<(), Failure> {
        let entries: Vec<Line> = entries.map(Line::new).collect();
        match &self.keys {
            Some(keys) if !entries.is_empty() => chain::append(connection, &keys.audit, &self.head, &entries),
            Some(_) | None => Ok(()),
        }
    }

    /// Adds the entries to the log, within the transaction of whoever calls.
    pub(crate) fn store(&self, connection: &Connection) -> Result<(), Failure> {
        match &self.keys {
            Some(keys) => chain::append(connection, &keys.audit, &self.head, &self.entries),
            None => Ok(()),
        }
    }
}
