//! Cached results of capabilities.

use crate::sql::{Connection, OptionalExtension, Row, params};
use pml_model::capability::Invalidation;
use pml_model::{CapabilityId, Digest, Principal};
use serde::Serialize;
use serde_json::value::RawValue;

use super::capability::cache_config;
use super::identity::resolve_capability;
use crate::column::unexpected_value;
use crate::epoch::writes_of_others;
use crate::vouch::vouched_condition;
use crate::{BlockingStore, Error, ProcessIdentity, Urgency};

/// The key of a cache entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CacheKey {
    /// The principal that the entry belongs to.
    pub principal: Principal,
    /// The capability that was run.
    pub capability: CapabilityId,
    /// Digest of the arguments.
    pub parameters: Digest,
    /// The write epoch at the time of the run; after another write the result may differ.
    pub epoch: String,
}

/// A result to be cached.
#[derive(Debug, Clone, Copy)]
pub struct NewCachedResult<'r> {
    /// The result of the run.
    pub result: &'r RawValue,
    /// The intent, for entries that are found by intent ([`BlockingStore::results_cached_by_intent`]) and not by key.
    pub intent: Option<&'r str>,
    /// JSON: further conditions that have to be unchanged for the entry to be valid.
    pub stamps: &'r str,
    /// Time in milliseconds since the Unix epoch.
    pub at: i64,
    /// When the entry expires.
    pub expires_at: i64,
    /// Maximum number of such entries for the capability; beyond it the oldest are dropped.
    pub max_entries: u32,
}

/// Usage of the cache by a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CacheUsage {
    /// Number of entries.
    pub entries: u64,
    /// Number of hits, according to the traces that are kept.
    pub hit_count: u64,
}

/// A cached result.
#[derive(Debug, Clone)]
pub struct CachedResult {
    /// The result of the run.
    pub result: Box<RawValue>,
    /// Time in milliseconds since the Unix epoch.
    pub at: i64,
    /// Number of hits before this one.
    pub hit_count: u64,
    /// JSON: further conditions that have to be unchanged for the entry to be valid.
    pub stamps: String,
}

/// Which cache entries are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidationScope<'a> {
    /// Those of a capability.
    Capability(&'a CapabilityId),
    /// Those of a capability that are unreachable, because their keys refer to earlier definitions of tools.
    Outdated(&'a CapabilityId),
    /// All entries of the principal.
    All,
    /// Those that have expired.
    Expired,
}

/// A record of dropped cache entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheInvalidation {
    /// Time in milliseconds since the Unix epoch.
    pub at: i64,
    /// The reason, in words.
    pub reason: String,
    /// What was dropped: the id of a capability, `all` or `expired`.
    pub scope: String,
    /// Number of entries that were dropped.
    pub entries: u64,
}

/// What a process knew of writes when it made the key of a lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenWrites {
    /// The process.
    pub process: ProcessIdentity,
    /// The writes of other processes that count for each of these servers.
    pub of_others: Vec<(String, i64)>,
    /// The number of cache invalidations.
    pub drops: i64,
}

impl SeenWrites {
    fn still_holds(&self, connection: &Connection) -> rusqlite::Result<bool> {
        if cache_generation(connection)? != self.drops {
            return Ok(false);
        }
        let writes = writes_of_others(connection, &self.process)?;
        let count = |server: &str| writes.get(server).copied().unwrap_or(0);
        Ok(self.of_others.iter().all(|(server, seen)| count("") + count(server) == *seen))
    }
}

fn cache_generation(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("SELECT cache_drops FROM memory")?.query_row([], |row| row.get(0))
}

impl BlockingStore {
    /// The valid cache entry under `key`, if there is one. Counts the hit.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn cached_result(&self, key: &CacheKey, now: i64) -> Result<Option<CachedResult>, Error> {
        self.cached_result_unless_written(key, now, None)
    }

    /// As [`BlockingStore::cached_result`], if nobody wrote or invalidated anything since `seen` was read. Both are read
    /// in one snapshot of the database.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn cached_result_unless_written(
        &self,
        key: &CacheKey,
        now: i64,
        seen: Option<&SeenWrites>,
    ) -> Result<Option<CachedResult>, Error> {
        let found = self.read(|connection| {
            let Some(found) = find(connection, key, now)? else { return Ok(None) };
            let is_valid = seen.map_or(Ok(true), |seen| seen.still_holds(connection))?;
            Ok(is_valid.then_some(found))
        })?;
        if found.is_some() {
            let key = key.clone();
            let count = move |connection: &Connection| {
                connection
                    .prepare_cached(
                        "UPDATE cached_result SET hit_count = hit_count + 1
                         WHERE principal = ?1 AND capability = ?2 AND parameters = ?3",
                    )?
                    .execute([&key.principal.0, key.capability.as_str(), key.parameters.as_str()])
                    .map(drop)
            };
            // No result depends on the count, so it may be lost.
            self.inner.writer.enqueue(0, Urgency::Lazy, count, drop);
        }
        Ok(found)
    }

    /// The cache entries of a capability that were stored with an intent, latest first. Only valid ones of that write
    /// epoch are returned.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn results_cached_by_intent(
        &self,
        principal: &Principal,
        capability: &CapabilityId,
        epoch: &str,
        now: i64,
    ) -> Result<Vec<(String, CachedResult)>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT result, at, hit_count, stamps, intent FROM cached_result
                     WHERE principal = ?1 AND capability = ?2 AND epoch = ?3 AND expires_at > ?4
                        AND intent IS NOT NULL AND {}
                     ORDER BY at DESC, intent",
                    vouched_condition("cached_result", "cached_result")
                ))?
                .query_map(params![principal.0, capability.as_str(), epoch, now], |row| {
                    Ok((row.get(4)?, cached_result(row)?))
                })?
                .collect()
        })
    }

    /// Number of cache entries of a capability, and of hits.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn cache_usage(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        now: i64,
    ) -> Result<CacheUsage, Error> {
        self.read(|connection| {
            let entries = connection
                .prepare_cached(
                    "SELECT count(*) FROM cached_result
                     WHERE principal = ?1 AND capability = ?2 AND expires_at > ?3",
                )?
                .query_row(params![principal.0, id.as_str(), now], |row| row.get(0))?;
            let hit_count = match resolve_capability(connection, principal, id)? {
                Some((number, _)) => connection
                    .prepare_cached("SELECT count(*) FROM trace WHERE capability = ?1 AND cached")?
                    .query_row([number], |row| row.get(0))?,
                None => 0,
            };
            Ok(CacheUsage { entries, hit_count })
        })
    }

    /// Number of all cache entries of a principal, and of hits.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn whole_cache_usage(&self, principal: &Principal, now: i64) -> Result<CacheUsage, Error> {
        self.read(|connection| {
            let entries = connection
                .prepare_cached(
                    "SELECT count(*) FROM cached_result WHERE principal = ?1 AND expires_at > ?2",
                )?
                .query_row(params![principal.0, now], |row| row.get(0))?;
            let hit_count = connection
                .prepare_cached(
                    "SELECT count(*) FROM trace INDEXED BY trace_cached WHERE principal = ?1 AND cached = 1",
                )?
                .query_row([&principal.0], |row| row.get(0))?;
            Ok(CacheUsage { entries, hit_count })
        })
    }

    /// A number that grows whenever cache entries are dropped that a lookup might still find.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn cache_generation(&self) -> Result<i64, Error> {
        self.read(cache_generation)
    }

    /// Caches a result, replacing an earlier one for the same parameters. Results without a capability are not cached.
    pub fn cache_result(
        &self,
        key: &CacheKey,
        new: &NewCachedResult<'_>,
        done: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) {
        let (key, result, stamps) = (key.clone(), new.result.get().to_owned(), new.stamps.to_owned());
        let (intent, at, expires_at, most) =
            (new.intent.map(str::to_owned), new.at, new.expires_at, new.max_entries);
        let bytes = result.len() + stamps.len();
        let work = move |connection: &Connection| {
            keep(connection, &key, (&result, &stamps, intent.as_deref()), (at, expires_at), most)
        };
        self.inner.writer.enqueue(bytes, Urgency::Lazy, work, done);
    }

    /// Drops cache entries of the principal and returns their number.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn invalidate_cache(
        &self,
        principal: &Principal,
        which: InvalidationScope<'_>,
        because: &str,
        now: i64,
    ) -> Result<u64, Error> {
        let (principal, which, because) =
            (principal.clone(), OwnedInvalidationScope::from(which), because.to_owned());
        self.write(move |connection| {
            invalidate_results(connection, &principal, which.borrowed(), &because, now)
        })
    }

    /// The principal's cache invalidations, latest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn cache_invalidations(
        &self,
        principal: &Principal,
        limit: u32,
    ) -> Result<Vec<CacheInvalidation>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT at, because, what, entries FROM cache_drop WHERE principal = ?1
                     ORDER BY number DESC LIMIT ?2",
                )?
                .query_map(params![principal.0, limit], |row| {
                    Ok(CacheInvalidation {
                        at: row.get(0)?,
                        reason: row.get(1)?,
                        scope: row.get(2)?,
                        entries: row.get(3)?,
                    })
                })?
                .collect()
        })
    }
}

/// As [`InvalidationScope`], owned, for the writer thread.
pub(crate) enum OwnedInvalidationScope {
    Capability(CapabilityId),
    Outdated(CapabilityId),
    All,
    Expired,
}

impl From<InvalidationScope<'_>> for OwnedInvalidationScope {
    fn from(which: InvalidationScope<'_>) -> OwnedInvalidationScope {
        match which {
            InvalidationScope::Capability(id) => OwnedInvalidationScope::Capability(id.clone()),
            InvalidationScope::Outdated(id) => OwnedInvalidationScope::Outdated(id.clone()),
            InvalidationScope::All => OwnedInvalidationScope::All,
            InvalidationScope::Expired => OwnedInvalidationScope::Expired,
        }
    }
}

impl OwnedInvalidationScope {
    pub(crate) fn borrowed(&self) -> InvalidationScope<'_> {
        match self {
            OwnedInvalidationScope::Capability(id) => InvalidationScope::Capability(id),
            OwnedInvalidationScope::Outdated(id) => InvalidationScope::Outdated(id),
            OwnedInvalidationScope::All => InvalidationScope::All,
            OwnedInvalidationScope::Expired => InvalidationScope::Expired,
        }
    }
}

fn find(connection: &Connection, key: &CacheKey, now: i64) -> rusqlite::Result<Option<CachedResult>> {
    connection
        .prepare_cached(&format!(
            "SELECT result, at, hit_count, stamps FROM cached_result
             WHERE principal = ?1 AND capability = ?2 AND parameters = ?3 AND epoch = ?4 AND expires_at > ?5
                AND intent IS NULL AND {}",
            vouched_condition("cached_result", "cached_result")
        ))?
        .query_row(
            params![key.principal.0, key.capability.as_str(), key.parameters.as_str(), key.epoch, now],
            cached_result,
        )
        .optional()
}

/// Reads a cached result. The first columns are the result, its time, the number of hits and its stamps.
fn cached_result(row: &Row<'_>) -> rusqlite::Result<CachedResult> {
    let result = RawValue::from_string(row.get(0)?).map_err(|error| unexpected_value(0, error))?;
    Ok(CachedResult { result, at: row.get(1)?, hit_count: row.get(2)?, stamps: row.get(3)? })
}

fn keep(
    connection: &Connection,
    key: &CacheKey,
    (result, stamps, intent): (&str, &str, Option<&str>),
    (at, expires_at): (i64, i64),
    most: u32,
) -> rusqlite::Result<()> {
    if resolve_capability(connection, &key.principal, &key.capability)?.is_none() {
        return Ok(());
    }
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO cached_result
                (principal, capability, parameters, epoch, result, at, expires_at, intent, stamps)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?
        .execute(params![
            key.principal.0,
            key.capability.as_str(),
            key.parameters.as_str(),
            key.epoch,
            result,
            at,
            expires_at,
            intent,
            stamps
        ])?;
    connection
        .prepare_cached(
            "DELETE FROM cached_result WHERE principal = ?1 AND capability = ?2 AND parameters IN (
                SELECT parameters FROM cached_result
                WHERE principal = ?1 AND capability = ?2 AND (intent IS NULL) = ?5
                ORDER BY at DESC, parameters = ?4 DESC, parameters LIMIT -1 OFFSET ?3)",
        )?
        .execute(params![
            key.principal.0,
            key.capability.as_str(),
            most,
            key.parameters.as_str(),
            intent.is_none()
        ])
        .map(drop)
}

/// Drops cache entries and records how many.
pub(crate) fn invalidate_results(
    connection: &Connection,
    principal: &Principal,
    which: InvalidationScope<'_>,
    because: &str,
    now: i64,
) -> rusqlite::Result<u64> {
    let (what, entries) = match which {
        InvalidationScope::Capability(id) | InvalidationScope::Outdated(id) => {
            (id.as_str(), drop_of(connection, principal, id)?)
        }
        InvalidationScope::All => ("all", drop_until(connection, principal, i64::MAX)?),
        InvalidationScope::Expired => ("expired", drop_until(connection, principal, now)?),
    };
    if matches!(which, InvalidationScope::Capability(_) | InvalidationScope::All) {
        // Counted even if no row was dropped: processes may hold entries in memory. Outdated and expired entries are
        // not counted: no lookup can find them any more.
        connection.prepare_cached("UPDATE memory SET cache_drops = cache_drops + 1")?.execute([])?;
    }
    if entries > 0 {
        connection
            .prepare_cached(
                "INSERT INTO cache_drop (principal, at, because, what, entries) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![principal.0, now, because, what, entries as i64])?;
    }
    Ok(entries as u64)
}

/// Drops the cache entries of a capability because it changed, unless its policy leaves that to people.
pub(super) fn invalidate_unless_manual(
    connection: &Connection,
    principal: &Principal,
    (id, number): (&CapabilityId, i64),
    because: &str,
    now: i64,
) -> rusqlite::Result<()> {
    if cache_config(connection, number)?.is_invalidated_by(Invalidation::ManualOnly) {
        return Ok(());
    }
    invalidate_results(connection, principal, InvalidationScope::Capability(id), because, now).map(drop)
}

/// Drops the cache entries of a capability and of those that were merged into it.
fn drop_of(connection: &Connection, principal: &Principal, id: &CapabilityId) -> rusqlite::Result<usize> {
    connection
        .prepare_cached(
            "DELETE FROM cached_result WHERE principal = ?1 AND (capability = ?2 OR capability IN (
                SELECT capability_alias.id FROM capability_alias
                JOIN capability ON capability.number = capability_alias.capability
                WHERE capability.id = ?2 AND capability.principal = ?1))",
        )?
        .execute([principal.0.as_str(), id.as_str()])
}

fn drop_until(connection: &Connection, principal: &Principal, time: i64) -> rusqlite::Result<usize> {
    connection
        .prepare_cached("DELETE FROM cached_result WHERE principal = ?1 AND expires_at <= ?2")?
        .execute(params![principal.0, time])
}
