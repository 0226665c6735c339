//! Results of capabilities that need not be worked out again.

use pml_model::capability::Invalidation;
use pml_model::{CapabilityId, Digest, Principal};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde_json::value::RawValue;

use super::capability::{cache_config, resolve};
use crate::column::unexpected;
use crate::vouch::vouched;
use crate::{BlockingStore, Error, Urgency};

/// What a result is kept under.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CacheKey {
    /// Whose it is.
    pub principal: Principal,
    /// What was run.
    pub capability: CapabilityId,
    /// Digest of what it was given.
    pub parameters: Digest,
    /// What had been written until then; with another, the result may be another.
    pub epoch: String,
}

/// A result to be kept.
#[derive(Debug, Clone, Copy)]
pub struct NewResult<'r> {
    /// What came out.
    pub result: &'r RawValue,
    /// What was asked for, where it is found by that: by [`BlockingStore::cached_for_intents`] and not by its key.
    pub intent: Option<&'r str>,
    /// JSON: what else has to be as it was for the result to count.
    pub stamps: &'r str,
    /// When.
    pub at: i64,
    /// Until when it counts.
    pub expires_at: i64,
    /// How many of its kind the capability may have; beyond, the oldest go.
    pub most: u32,
}

/// What is kept of a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CacheUse {
    /// How many results.
    pub entries: u64,
    /// How often one was given instead of a run, as long as there are traces.
    pub hit_count: u64,
}

/// A result that was kept.
#[derive(Debug, Clone)]
pub struct CachedResult {
    /// What came out.
    pub result: Box<RawValue>,
    /// When.
    pub at: i64,
    /// How often it was asked for before.
    pub hit_count: u64,
    /// JSON: what else has to be as it was for the result to count.
    pub stamps: String,
}

/// Which results are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped<'a> {
    /// Those of a capability.
    Capability(&'a CapabilityId),
    /// Those of a capability of which nobody asks any more, because their keys tell of tools as they were.
    Outdated(&'a CapabilityId),
    /// All.
    All,
    /// Those that were kept long enough.
    Expired,
}

/// That results were dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheDrop {
    /// When.
    pub at: i64,
    /// Why.
    pub because: String,
    /// Which: the id of a capability, `all` or `expired`.
    pub what: String,
    /// How many.
    pub entries: u64,
}

impl BlockingStore {
    /// The result kept under `key`, if it still counts. Counts the hit.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn cached(&self, key: &CacheKey, now: i64) -> Result<Option<CachedResult>, Error> {
        let found = self.read(|connection| find(connection, key, now))?;
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
            // Nobody's answer depends on the count.
            self.inner.writer.enqueue(0, Urgency::Lazy, count, drop);
        }
        Ok(found)
    }

    /// The results of a capability that were kept with what was asked for, latest first, as far as they
    /// still count and were kept with that epoch.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn cached_for_intents(
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
                    vouched("cached_result", "cached_result")
                ))?
                .query_map(params![principal.0, capability.as_str(), epoch, now], |row| {
                    Ok((row.get(4)?, cached_result(row)?))
                })?
                .collect()
        })
    }

    /// What is kept of a capability, and how often that was of use.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn cache_use(&self, principal: &Principal, id: &CapabilityId, now: i64) -> Result<CacheUse, Error> {
        self.read(|connection| {
            let entries = connection
                .prepare_cached(
                    "SELECT count(*) FROM cached_result
                     WHERE principal = ?1 AND capability = ?2 AND expires_at > ?3",
                )?
                .query_row(params![principal.0, id.as_str(), now], |row| row.get(0))?;
            let hit_count = match resolve(connection, principal, id)? {
                Some((number, _)) => connection
                    .prepare_cached("SELECT count(*) FROM trace WHERE capability = ?1 AND cached")?
                    .query_row([number], |row| row.get(0))?,
                None => 0,
            };
            Ok(CacheUse { entries, hit_count })
        })
    }

    /// A number that grows whenever results are dropped that might still be asked for.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn cache_drops(&self) -> Result<i64, Error> {
        self.read(|connection| {
            connection.prepare_cached("SELECT cache_drops FROM memory")?.query_row([], |row| row.get(0))
        })
    }

    /// Keeps a result in place of an earlier one for the same parameters. What has no capability is not kept.
    pub fn cache(
        &self,
        key: &CacheKey,
        new: &NewResult<'_>,
        done: impl FnOnce(Result<(), Error>) + Send + 'static,
    ) {
        let (key, result, stamps) = (key.clone(), new.result.get().to_owned(), new.stamps.to_owned());
        let (intent, at, expires_at, most) =
            (new.intent.map(str::to_owned), new.at, new.expires_at, new.most);
        let bytes = result.len() + stamps.len();
        let work = move |connection: &Connection| {
            keep(connection, &key, (&result, &stamps, intent.as_deref()), (at, expires_at), most)
        };
        self.inner.writer.enqueue(bytes, Urgency::Lazy, work, done);
    }

    /// Drops results of the principal and says how many.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn drop_cached(
        &self,
        principal: &Principal,
        which: Dropped<'_>,
        because: &str,
        now: i64,
    ) -> Result<u64, Error> {
        let (principal, which, because) = (principal.clone(), OwnedDropped::from(which), because.to_owned());
        self.write(move |connection| drop_results(connection, &principal, which.borrowed(), &because, now))
    }

    /// What was dropped of the principal's results, latest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn cache_log(&self, principal: &Principal, limit: u32) -> Result<Vec<CacheDrop>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT at, because, what, entries FROM cache_drop WHERE principal = ?1
                     ORDER BY number DESC LIMIT ?2",
                )?
                .query_map(params![principal.0, limit], |row| {
                    Ok(CacheDrop {
                        at: row.get(0)?,
                        because: row.get(1)?,
                        what: row.get(2)?,
                        entries: row.get(3)?,
                    })
                })?
                .collect()
        })
    }
}

/// As [`Dropped`], for the thread that writes.
pub(crate) enum OwnedDropped {
    Capability(CapabilityId),
    Outdated(CapabilityId),
    All,
    Expired,
}

impl From<Dropped<'_>> for OwnedDropped {
    fn from(which: Dropped<'_>) -> OwnedDropped {
        match which {
            Dropped::Capability(id) => OwnedDropped::Capability(id.clone()),
            Dropped::Outdated(id) => OwnedDropped::Outdated(id.clone()),
            Dropped::All => OwnedDropped::All,
            Dropped::Expired => OwnedDropped::Expired,
        }
    }
}

impl OwnedDropped {
    pub(crate) fn borrowed(&self) -> Dropped<'_> {
        match self {
            OwnedDropped::Capability(id) => Dropped::Capability(id),
            OwnedDropped::Outdated(id) => Dropped::Outdated(id),
            OwnedDropped::All => Dropped::All,
            OwnedDropped::Expired => Dropped::Expired,
        }
    }
}

fn find(connection: &Connection, key: &CacheKey, now: i64) -> rusqlite::Result<Option<CachedResult>> {
    connection
        .prepare_cached(&format!(
            "SELECT result, at, hit_count, stamps FROM cached_result
             WHERE principal = ?1 AND capability = ?2 AND parameters = ?3 AND epoch = ?4 AND expires_at > ?5
                AND intent IS NULL AND {}",
            vouched("cached_result", "cached_result")
        ))?
        .query_row(
            params![key.principal.0, key.capability.as_str(), key.parameters.as_str(), key.epoch, now],
            cached_result,
        )
        .optional()
}

/// The first columns are the result, when it came, how often it was asked for and what it depends on.
fn cached_result(row: &Row<'_>) -> rusqlite::Result<CachedResult> {
    let result = RawValue::from_string(row.get(0)?).map_err(|error| unexpected(0, error))?;
    Ok(CachedResult { result, at: row.get(1)?, hit_count: row.get(2)?, stamps: row.get(3)? })
}

fn keep(
    connection: &Connection,
    key: &CacheKey,
    (result, stamps, intent): (&str, &str, Option<&str>),
    (at, expires_at): (i64, i64),
    most: u32,
) -> rusqlite::Result<()> {
    if resolve(connection, &key.principal, &key.capability)?.is_none() {
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

/// Drops results and logs how many.
pub(super) fn drop_results(
    connection: &Connection,
    principal: &Principal,
    which: Dropped<'_>,
    because: &str,
    now: i64,
) -> rusqlite::Result<u64> {
    let (what, entries) = match which {
        Dropped::Capability(id) | Dropped::Outdated(id) => (id.as_str(), drop_of(connection, principal, id)?),
        Dropped::All => ("all", drop_until(connection, principal, i64::MAX)?),
        Dropped::Expired => ("expired", drop_until(connection, principal, now)?),
    };
    if matches!(which, Dropped::Capability(_) | Dropped::All) {
        // Also where none was stored: processes may keep some in memory.
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

/// Drops the results of a capability for what became of it, unless a person alone does that.
pub(super) fn drop_unless_manual(
    connection: &Connection,
    principal: &Principal,
    (id, number): (&CapabilityId, i64),
    because: &str,
    now: i64,
) -> rusqlite::Result<()> {
    if cache_config(connection, number)?.goes_with(Invalidation::ManualOnly) {
        return Ok(());
    }
    drop_results(connection, principal, Dropped::Capability(id), because, now).map(drop)
}

/// Drops the results of a capability and of those that were merged into it.
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
