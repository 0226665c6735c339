//! The audit log: every question, answer and decision, in the order in which they were stored.
//!
//! Entries are stored in the transaction of the change they record, and survive a loss of power. Each entry carries a
//! keyed hash of itself and of its predecessor; the key is not in the database. A changed, removed, inserted or moved
//! entry therefore breaks the chain. Truncation is detected by the head file beside the database, which names the
//! newest entry. Bodies of entries are not sealed: they must not hold secrets.

mod chain;

use std::fmt;
use std::sync::Arc;

use crate::sql::{Connection, Row};
use pml_model::{Principal, RunId};
use serde_json::value::RawValue;

use crate::column::{run_id, unexpected_value};
use crate::head::{AuditHeadFile, BEFORE_THE_FIRST};
use crate::seal::DerivedKeys;
use crate::writer::WriteFailure;
use crate::{BlockingStore, Error, Urgency};

/// An audit entry to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NewAuditEntry {
    /// Time in milliseconds since the Unix epoch.
    pub at: i64,
    /// The principal it concerns.
    pub principal: Principal,
    /// The run it concerns, if any.
    pub run: Option<RunId>,
    /// The kind of event, as one word.
    pub kind: &'static str,
    /// Details, as a JSON object without secrets.
    pub body: serde_json::Value,
}

/// A stored audit entry.
#[derive(Debug, Clone)]
pub struct AuditEntry {
    /// Sequence number, from 1 without gaps.
    pub seq: i64,
    /// Time in milliseconds since the Unix epoch.
    pub at: i64,
    /// The principal it concerns.
    pub principal: Principal,
    /// The run it concerns, if any.
    pub run: Option<RunId>,
    /// The kind of event, as one word.
    pub kind: String,
    /// Details, as a JSON object.
    pub body: Box<RawValue>,
    /// Keyed hash of this entry and all before it: 64 hexadecimal digits.
    pub hash: String,
}

/// Result of verifying the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditVerification {
    /// The chain is intact and complete.
    Whole {
        /// Number of entries.
        rows: i64,
        /// Hash of the newest entry; zeros if the log is empty.
        head: String,
    },
    /// The chain is broken.
    Broken {
        /// Number of the first entry that is damaged or missing.
        seq: i64,
        /// The damage.
        why: AuditDamage,
    },
}

/// Damage of the audit log at one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditDamage {
    /// The entry differs from what was stored at this place, or it was stored with another key.
    Changed,
    /// The entry is missing, but later ones exist.
    Missing,
    /// The entry and all later ones are missing although they were stored.
    CutOff,
    /// The head file names another entry with this number: the log was truncated and then continued.
    Replaced,
    /// This is the newest entry, but the head file, which would prove that none followed, is missing.
    NoHead,
    /// This is the newest entry, but the head file is unreadable.
    BadHead,
}

impl fmt::Display for AuditDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AuditDamage::Changed => "it is not what was stored there, or `seal.key` is another one",
            AuditDamage::Missing => "it is missing",
            AuditDamage::CutOff => {
                "it and what followed it are cut off; where an older database was put back on purpose, move \
                 `audit.head` away"
            }
            AuditDamage::Replaced => {
                "another one stood there, and what followed that one is cut off; where an older database was put \
                 back on purpose, move `audit.head` away"
            }
            AuditDamage::NoHead => {
                "it is the newest, and nothing says whether others followed it, because `audit.head` is missing; \
                 put it back, or it is made again with the next entry"
            }
            AuditDamage::BadHead => {
                "it is the newest, and nothing says whether others followed it, because `audit.head` is damaged; \
                 put it back from a backup, or move it away"
            }
        })
    }
}

impl BlockingStore {
    /// Appends entries to the audit log and waits until they would survive a loss of power.
    ///
    /// # Errors
    /// The key file cannot be used, or the change cannot be stored. No entry is stored then.
    pub fn append_audit(&self, entries: Vec<NewAuditEntry>) -> Result<(), Error> {
        let log = self.prepare_audit(entries)?;
        if log.is_empty() {
            return Ok(());
        }
        self.change(Urgency::Durable, move |connection| log.store(connection))
    }

    /// Audit entries of all principals: up to `limit` of those after number `after`, in order.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn audit_entries(&self, after: i64, limit: u32) -> Result<Vec<AuditEntry>, Error> {
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

    /// Audit entries of a principal: up to `limit` of those before number `before`, newest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn audit_entries_before(
        &self,
        principal: &Principal,
        before: i64,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT seq, at, principal, run, kind, body, hash FROM audit
                     WHERE seq < ?2 AND principal = ?1 ORDER BY seq DESC LIMIT ?3",
                )?
                .query_map((&principal.0, before, limit), audit_row)?
                .collect()
        })
    }

    /// Audit entries of a principal about a run, oldest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn audit_entries_of_run(&self, principal: &Principal, run: &RunId) -> Result<Vec<AuditEntry>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT seq, at, principal, run, kind, body, hash FROM audit
                     WHERE run = ?2 AND principal = ?1 ORDER BY seq",
                )?
                .query_map((&principal.0, run.as_str()), audit_row)?
                .collect()
        })
    }

    /// Verifies the audit log: no entry was changed, removed, inserted, moved or cut off.
    ///
    /// # Errors
    /// The database or the files beside it cannot be read, or the key file is missing.
    pub fn verify_audit(&self) -> Result<AuditVerification, Error> {
        // The head is read before the entries: entries stored meanwhile can only be newer than the one it names.
        let named = self.inner.head.read().map_err(|error| self.inner.head.unusable_error(&error))?;
        if self.read(chain::is_empty)? {
            return Ok(chain::verify_end(0, BEFORE_THE_FIRST.to_owned(), &named));
        }
        let keys = self.inner.authenticator.master.keys(|| Ok(true))?;
        self.read(|connection| chain::verify(connection, &keys.audit, &named))
    }

    /// Encodes entries, to be stored in the transaction of the change they record.
    pub(crate) fn prepare_audit(&self, entries: Vec<NewAuditEntry>) -> Result<AuditBatch, Error> {
        let keys = match entries.is_empty() {
            true => None,
            false => Some(self.inner.authenticator.master.keys(|| self.is_key_in_use())?),
        };
        let entries = entries.into_iter().map(EncodedAuditEntry::new).collect();
        Ok(AuditBatch { keys, head: Arc::clone(&self.inner.head), entries })
    }

    /// An empty batch, for entries that are known only within the transaction of the change they record.
    pub(crate) fn begin_audit(&self) -> Result<AuditBatch, Error> {
        let keys = Some(self.inner.authenticator.master.keys(|| self.is_key_in_use())?);
        Ok(AuditBatch { keys, head: Arc::clone(&self.inner.head), entries: Vec::new() })
    }
}

fn audit_row(row: &Row<'_>) -> rusqlite::Result<AuditEntry> {
    let run = row.get_ref(3)?.as_str_or_null()?.map(|_| run_id(row, 3)).transpose()?;
    let body = RawValue::from_string(row.get(5)?).map_err(|error| unexpected_value(5, error))?;
    Ok(AuditEntry {
        seq: row.get(0)?,
        at: row.get(1)?,
        principal: Principal(row.get(2)?),
        run,
        kind: row.get(4)?,
        body,
        hash: row.get(6)?,
    })
}

/// Audit entries that wait for their transaction.
pub(crate) struct AuditBatch {
    /// The keys; `None` if there are no entries.
    keys: Option<Arc<DerivedKeys>>,
    head: Arc<AuditHeadFile>,
    entries: Vec<EncodedAuditEntry>,
}

/// An audit entry with its body serialised.
struct EncodedAuditEntry {
    at: i64,
    principal: Principal,
    run: Option<RunId>,
    kind: &'static str,
    body: String,
}

impl EncodedAuditEntry {
    fn new(entry: NewAuditEntry) -> EncodedAuditEntry {
        let NewAuditEntry { at, principal, run, kind, body } = entry;
        EncodedAuditEntry { at, principal, run, kind, body: body.to_string() }
    }
}

impl AuditBatch {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.entries.iter().map(|line| size_of::<EncodedAuditEntry>() + line.body.len()).sum()
    }

    /// The urgency of a change that carries these entries. It is durable if there are any: the head file must not name
    /// an entry that a loss of power could take away again.
    pub(crate) fn required_urgency(&self, urgency: Urgency) -> Urgency {
        if self.is_empty() { urgency } else { Urgency::Durable }
    }

    /// Appends entries to the audit log, within the transaction of the caller.
    pub(crate) fn append(
        &self,
        connection: &Connection,
        entries: impl Iterator<Item = NewAuditEntry>,
    ) -> Result<(), WriteFailure> {
        let entries: Vec<EncodedAuditEntry> = entries.map(EncodedAuditEntry::new).collect();
        match &self.keys {
            Some(keys) if !entries.is_empty() => chain::append(connection, &keys.audit, &self.head, &entries),
            Some(_) | None => Ok(()),
        }
    }

    /// Appends the entries of this batch to the audit log, within the transaction of the caller.
    pub(crate) fn store(&self, connection: &Connection) -> Result<(), WriteFailure> {
        match &self.keys {
            Some(keys) => chain::append(connection, &keys.audit, &self.head, &self.entries),
            None => Ok(()),
        }
    }
}
