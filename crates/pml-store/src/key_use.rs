//! What is done with client keys: counted minute by minute, by all gateways together.
//!
//! A gateway counts in memory and adds what it counted about once a second, so that a call costs no write of its own.

use crate::sql::{Connection, params};
use pml_model::{KeyId, Principal};

use crate::{BlockingStore, Error};

/// 60 s in milliseconds.
const MINUTE_MS: i64 = 60_000;
/// The minutes of a day: how long the counts are kept.
const DAY_MINUTES: i64 = 24 * 60;

/// What a gateway counted for a key since it last added its counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedKeyUse {
    /// The key.
    pub key: KeyId,
    /// Its principal.
    pub principal: Principal,
    /// Tool calls.
    pub calls: u64,
    /// Processor time of programs, in milliseconds.
    pub cpu_ms: u64,
    /// Requests and calls that a budget did not admit.
    pub refused: u64,
    /// When it was last used.
    pub used_at: i64,
}

/// What was done with a key so far, in all gateways.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyUse {
    /// Tool calls in the current minute.
    pub calls_this_minute: u64,
    /// Tool calls in the last 24 hours.
    pub calls_today: u64,
    /// Processor time of programs in the last 24 hours, in milliseconds.
    pub cpu_ms_today: u64,
    /// Requests and calls that a budget did not admit, in the last 24 hours.
    pub refused_today: u64,
    /// Runs that are under way: neither ended nor waiting for an answer or a time.
    pub runs: u64,
    /// Bytes that the records of its runs take.
    pub stored_bytes: u64,
    /// When it was last used; `None` for never.
    pub used_at: Option<i64>,
}

impl BlockingStore {
    /// Adds what a gateway counted, and forgets counts that are older than a day. The last use is kept for good.
    ///
    /// # Errors
    /// The change cannot be stored.
    pub fn add_key_use(&self, counted: Vec<CountedKeyUse>) -> Result<(), Error> {
        self.write(move |connection| {
            for used in &counted {
                let minute = used.used_at.div_euclid(MINUTE_MS);
                connection
                    .prepare_cached(
                        "INSERT INTO key_use (number, principal, minute, calls, cpu_ms, refused, used_at)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                         ON CONFLICT (number, minute) DO UPDATE SET calls = key_use.calls + excluded.calls,
                            cpu_ms = key_use.cpu_ms + excluded.cpu_ms,
                            refused = key_use.refused + excluded.refused,
                            used_at = CASE WHEN excluded.used_at > key_use.used_at THEN excluded.used_at
                                ELSE key_use.used_at END",
                    )?
                    .execute(params![
                        used.key.0,
                        used.principal.0,
                        minute,
                        count(used.calls),
                        count(used.cpu_ms),
                        count(used.refused),
                        used.used_at,
                    ])?;
                connection
                    .prepare_cached(
                        "DELETE FROM key_use WHERE number = ?1 AND minute < ?2
                            AND minute < (SELECT max(last.minute) FROM key_use AS last WHERE last.number = ?1)",
                    )?
                    .execute(params![used.key.0, minute - DAY_MINUTES])?;
            }
            Ok(())
        })
    }

    /// The runs of a key that are under way, in all gateways.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn key_runs_under_way(&self, key: KeyId) -> Result<u64, Error> {
        self.read(|connection| runs_under_way(connection, key))
    }

    /// What was done with a key so far.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn key_use(&self, key: KeyId, now: i64) -> Result<KeyUse, Error> {
        let minute = now.div_euclid(MINUTE_MS);
        self.read(|connection| {
            let mut used = connection
                .prepare_cached(
                    "SELECT coalesce(sum(CASE WHEN minute = ?2 THEN calls ELSE 0 END), 0),
                        coalesce(sum(CASE WHEN minute > ?3 THEN calls ELSE 0 END), 0),
                        coalesce(sum(CASE WHEN minute > ?3 THEN cpu_ms ELSE 0 END), 0),
                        coalesce(sum(CASE WHEN minute > ?3 THEN refused ELSE 0 END), 0), max(used_at)
                     FROM key_use WHERE number = ?1",
                )?
                .query_row(params![key.0, minute, minute - DAY_MINUTES], |row| {
                    Ok(KeyUse {
                        calls_this_minute: row.get(0)?,
                        calls_today: row.get(1)?,
                        cpu_ms_today: row.get(2)?,
                        refused_today: row.get(3)?,
                        used_at: row.get(4)?,
                        ..KeyUse::default()
                    })
                })?;
            used.runs = runs_under_way(connection, key)?;
            used.stored_bytes = stored_bytes(connection, key)?;
            Ok(used)
        })
    }
}

pub(crate) fn runs_under_way(connection: &Connection, key: KeyId) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT count(*) FROM run WHERE client_key = ?1 AND state = 'running'")?
        .query_row([key.0], |row| row.get(0))
}

/// The bytes that the records of the runs of a key take: their journals, and their plans, questions and results.
/// Triggers keep the sum, so that this costs the same however many there are.
fn stored_bytes(connection: &Connection, key: KeyId) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT coalesce((SELECT bytes FROM key_storage WHERE number = ?1), 0)")?
        .query_row([key.0], |row| row.get(0))
}

fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
