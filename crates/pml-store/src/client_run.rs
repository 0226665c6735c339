//! Runs that clients make themselves: what was analysed of each until its trace comes back, and the chain of the traces
//! that a client sent.
//!
//! A trace is taken once. The row of the chain, what the trace leaves in memory and the end of its context are one
//! transaction.

use pml_model::{KeyId, Principal, RunId};

use crate::memory::EncodedMemory;
use crate::seal::AuthenticatedData;
use crate::sql::{Connection, OptionalExtension, params};
use crate::vouch::vouched_condition;
use crate::writer::WriteFailure;
use crate::{BlockingStore, Error, RunMemory, Urgency};

/// The contexts that one principal may have at a time. More than a client can run within an hour; the oldest goes first.
const MOST_CONTEXTS: i64 = 1_024;

/// Whose program a learning context is of: a context is only there for whoever had it made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextOwner {
    /// The principal.
    pub principal: Principal,
    /// The key of the client, if it has one.
    pub key: Option<KeyId>,
    /// The id that the client was told.
    pub workflow: RunId,
}

/// The place of a trace in the chain of its client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientTraceRow {
    /// The principal.
    pub principal: Principal,
    /// The name of the chain.
    pub client: String,
    /// The position, from 1.
    pub seq: i64,
    /// The hash of the trace before it; empty for the first.
    pub previous: String,
    /// The hash of the trace.
    pub hash: String,
    /// When it arrived, in milliseconds since the Unix epoch.
    pub at: i64,
}

/// Whether a trace continues the chain of its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainPlace {
    /// It is the next one.
    Next,
    /// It was taken before.
    Taken,
    /// Another trace was taken at its position, or it names another one before it.
    Forked,
    /// Traces before it are missing.
    Missing {
        /// The position of the first one that is.
        expected: i64,
    },
}

/// What came of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakenTrace {
    /// It was stored.
    Stored,
    /// It was not: this is its place.
    Refused(ChainPlace),
    /// It was not: the context that it was to use up is gone.
    ContextGone,
}

impl BlockingStore {
    /// Keeps what was analysed of a program that its client runs itself.
    ///
    /// # Errors
    /// The key file cannot be used, or the change cannot be stored.
    pub fn keep_learning_context(
        &self,
        owner: &ContextOwner,
        body: &[u8],
        (now, expires_at): (i64, i64),
    ) -> Result<(), Error> {
        let keys = self.inner.authenticator.master.keys(|| self.is_key_in_use())?;
        let body = keys.carried.seal_data(&owner.context(expires_at), body)?;
        let owner = owner.clone();
        self.change(Urgency::Soon, move |connection| {
            connection
                .prepare_cached("DELETE FROM learning_context WHERE expires_at <= ?1")?
                .execute([now])?;
            connection
                .prepare_cached(
                    "DELETE FROM learning_context WHERE principal = ?1 AND workflow IN (
                        SELECT workflow FROM learning_context WHERE principal = ?1
                        ORDER BY expires_at DESC LIMIT -1 OFFSET ?2)",
                )?
                .execute(params![owner.principal.0, MOST_CONTEXTS - 1])?;
            connection
                .prepare_cached(
                    "INSERT INTO learning_context (principal, workflow, by_key, expires_at, body)
                     VALUES (?1, ?2, ?3, ?4, ?5)",
                )?
                .execute(params![
                    owner.principal.0,
                    owner.workflow.as_str(),
                    owner.key_number(),
                    expires_at,
                    body
                ])?;
            Ok(())
        })
    }

    /// What was analysed of a program; `None` if that is not known, was for another client, or has expired. One that
    /// cannot be opened counts as none: whoever can alter a row could delete it as well.
    ///
    /// # Errors
    /// The database cannot be read, or the key file cannot be used.
    pub fn learning_context(&self, owner: &ContextOwner, now: i64) -> Result<Option<Vec<u8>>, Error> {
        let found: Option<(i64, Vec<u8>)> = self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT expires_at, body FROM learning_context
                     WHERE principal = ?1 AND workflow = ?2 AND by_key = ?3 AND expires_at > ?4",
                )?
                .query_row(
                    params![owner.principal.0, owner.workflow.as_str(), owner.key_number(), now],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .optional()
        })?;
        let Some((expires_at, body)) = found else { return Ok(None) };
        let keys = self.inner.authenticator.master.keys(|| Ok(true))?;
        Ok(keys.carried.open_data(&owner.context(expires_at), body))
    }

    /// Whether a trace continues the chain of its client.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn client_trace_place(&self, row: &ClientTraceRow) -> Result<ChainPlace, Error> {
        self.read(|connection| row.place(connection))
    }

    /// Takes a trace: continues the chain, uses up its context if it has one, and stores what it leaves in memory, if
    /// that is anything.
    ///
    /// # Errors
    /// The change cannot be stored.
    pub fn take_client_trace(
        &self,
        row: &ClientTraceRow,
        context: Option<ContextOwner>,
        memory: Option<RunMemory>,
    ) -> Result<TakenTrace, Error> {
        let memory = memory.map(EncodedMemory::encode).transpose()?;
        let row = row.clone();
        self.change(Urgency::Durable, move |connection| {
            let place = row.place(connection)?;
            if place != ChainPlace::Next {
                return Ok(TakenTrace::Refused(place));
            }
            if let Some(owner) = context
                && !owner.use_up(connection, row.at)?
            {
                return Ok(TakenTrace::ContextGone);
            }
            memory.map_or(Ok(()), |memory| memory.store(connection))?;
            row.insert(connection)?;
            Ok::<TakenTrace, WriteFailure>(TakenTrace::Stored)
        })
    }
}

impl ContextOwner {
    fn key_number(&self) -> i64 {
        self.key.map_or(0, |key| key.0)
    }

    /// What is authenticated with a sealed body.
    fn context(&self, expires_at: i64) -> AuthenticatedData {
        AuthenticatedData::new()
            .text("learning context")
            .text(&self.principal.0)
            .text(self.workflow.as_str())
            .number(self.key_number())
            .number(expires_at)
    }

    /// Deletes the context, and returns whether it was there.
    fn use_up(&self, connection: &Connection, now: i64) -> rusqlite::Result<bool> {
        let deleted = connection
            .prepare_cached(
                "DELETE FROM learning_context
                 WHERE principal = ?1 AND workflow = ?2 AND by_key = ?3 AND expires_at > ?4",
            )?
            .execute(params![self.principal.0, self.workflow.as_str(), self.key_number(), now])?;
        Ok(deleted == 1)
    }
}

impl ClientTraceRow {
    fn place(&self, connection: &Connection) -> rusqlite::Result<ChainPlace> {
        let vouched = vouched_condition("client_trace", "client_trace");
        let taken: Option<String> = connection
            .prepare_cached(&format!(
                "SELECT hash FROM client_trace WHERE principal = ?1 AND client = ?2 AND seq = ?3 AND {vouched}"
            ))?
            .query_row(params![self.principal.0, self.client, self.seq], |row| row.get(0))
            .optional()?;
        if let Some(taken) = taken {
            return Ok(if taken == self.hash { ChainPlace::Taken } else { ChainPlace::Forked });
        }
        let is_damaged = connection
            .prepare_cached("SELECT 1 FROM client_trace WHERE principal = ?1 AND client = ?2 AND seq = ?3")?
            .exists(params![self.principal.0, self.client, self.seq])?;
        if is_damaged {
            return Ok(ChainPlace::Forked);
        }
        let last: Option<(i64, String)> = connection
            .prepare_cached(&format!(
                "SELECT seq, hash FROM client_trace WHERE principal = ?1 AND client = ?2 AND {vouched}
                 ORDER BY seq DESC LIMIT 1"
            ))?
            .query_row(params![self.principal.0, self.client], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let (last, head) = last.unwrap_or_default();
        Ok(match self.seq.cmp(&(last + 1)) {
            std::cmp::Ordering::Greater => ChainPlace::Missing { expected: last + 1 },
            std::cmp::Ordering::Equal if self.previous == head => ChainPlace::Next,
            // A position before the last one that is not there was removed.
            std::cmp::Ordering::Equal | std::cmp::Ordering::Less => ChainPlace::Forked,
        })
    }

    fn insert(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection
            .prepare_cached(
                "INSERT INTO client_trace (principal, client, seq, hash, at) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![self.principal.0, self.client, self.seq, self.hash, self.at])
            .map(drop)
    }
}
