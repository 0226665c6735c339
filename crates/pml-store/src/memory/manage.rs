//! Management of capabilities by people and the program: create, rename, delete, merge, degrade. Traces always stay,
//! so that numbers can be learned again from them.

use crate::sql::{Connection, OptionalExtension, params};
use pml_model::Principal;
use pml_model::capability::{CacheConfig, CapabilityId, Procedure};
use pml_model::trace::TraceStatus;

use super::cache::{self, InvalidationScope};
use super::capability::{NewProcedure, add_intent, free_name, number_by_name};
use super::edge::move_edges;
use super::identity::resolve_capability;
use super::learn::relearn_capability;
use super::{bump_capability_version, next_version, release, version};
use crate::column::capability_id;
use crate::package::remember_signer;
use crate::{BlockingStore, Error};

/// How long a procedure that never worked is kept after its last run: 30 days, in milliseconds.
const PLAN_MS: i64 = 30 * 24 * 60 * 60 * 1000;

/// Plans per transaction: few, so that other writers are not kept waiting.
const TOGETHER: u32 = 64;

/// The name of a new capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewName {
    /// The one that its procedure suggests; if it is taken, with a number.
    Suggested,
    /// This one, which has to be free.
    Free(String),
    /// This one. A capability that has it becomes an earlier version.
    VersionOf(String),
}

/// Outcome of creating a capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreateOutcome {
    /// The capability is stored under its own id, and active.
    Created,
    /// An equivalent capability exists. If it was a plan, it is active from now on.
    Existing(CapabilityId),
    /// Another capability has this name; nothing was stored.
    NameTaken,
}

/// Outcome of renaming a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenameOutcome {
    /// The capability has the new name.
    Done,
    /// Another capability has this name.
    NameTaken,
    /// The principal has no such capability.
    Unknown,
}

impl BlockingStore {
    /// Creates a capability that was never run and serves these intents.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn create_capability(
        &self,
        procedure: Procedure,
        name: NewName,
        intents: &[String],
        now: i64,
    ) -> Result<CreateOutcome, Error> {
        let (procedure, intents) = (NewProcedure::encode(procedure), intents.to_vec());
        self.write(move |connection| create(connection, &procedure, &name, &intents, now))
    }

    /// As [`BlockingStore::create_capability`], and remembers who signed the package that it comes from. Where an
    /// equivalent capability exists, nothing of that name was taken from the signer.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn import_capability(
        &self,
        procedure: Procedure,
        name: NewName,
        intents: &[String],
        signer: &str,
        now: i64,
    ) -> Result<CreateOutcome, Error> {
        let (procedure, intents) = (NewProcedure::encode(procedure), intents.to_vec());
        let signer = signer.to_owned();
        self.write(move |connection| {
            let outcome = create(connection, &procedure, &name, &intents, now)?;
            if let (CreateOutcome::Created, NewName::Free(name) | NewName::VersionOf(name)) =
                (&outcome, &name)
            {
                remember_signer(connection, &procedure.owner, name, &signer, now)?;
            }
            Ok(outcome)
        })
    }

    /// Renames a capability.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn rename_capability(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        name: &str,
    ) -> Result<RenameOutcome, Error> {
        let (principal, id, name) = (principal.clone(), id.clone(), name.to_owned());
        self.write(move |connection| {
            let Some(number) = find(connection, &principal, &id)? else { return Ok(RenameOutcome::Unknown) };
            match number_by_name(connection, &principal, &name)? {
                Some(other) if other == number => return Ok(RenameOutcome::Done),
                Some(_) => return Ok(RenameOutcome::NameTaken),
                None if release::has_versions(connection, &principal, &name)? => {
                    return Ok(RenameOutcome::NameTaken);
                }
                None => {}
            }
            let before: String = connection
                .prepare_cached("SELECT name FROM capability WHERE number = ?1")?
                .query_row([number], |row| row.get(0))?;
            version::follow_rename(connection, &principal, number, &before, &name)?;
            connection
                .prepare_cached("UPDATE capability SET name = ?2 WHERE number = ?1")?
                .execute(params![number, name])?;
            bump_capability_version(connection, number)?;
            Ok(RenameOutcome::Done)
        })
    }

    /// Deletes a capability with everything that was learned of it. Returns whether it existed. Its traces stay,
    /// without a capability; a later run of the same procedure starts from nothing.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn delete_capability(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        now: i64,
    ) -> Result<bool, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.write(move |connection| match find(connection, &principal, &id)? {
            Some(number) => {
                delete(connection, &principal, &id, number, now)?;
                Ok(true)
            }
            None => Ok(false),
        })
    }

    /// Merges `from` into `into`, which has the same meaning. Returns whether both existed. Everything of `from`
    /// counts for `into` from now on, except path statistics: its nodes differ.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn merge_capabilities(
        &self,
        principal: &Principal,
        into: &CapabilityId,
        from: &CapabilityId,
        now: i64,
    ) -> Result<bool, Error> {
        let (principal, into, from) = (principal.clone(), into.clone(), from.clone());
        self.write(move |connection| {
            let (found, other) = (find(connection, &principal, &into)?, find(connection, &principal, &from)?);
            match (found, other) {
                (Some(number), Some(other)) if number != other => {
                    merge(connection, &principal, (&into, number), (&from, other), now)?;
                    Ok(true)
                }
                _ => Ok(false),
            }
        })
    }

    /// Sets the cache policy of a capability, drops its cache entries, and returns whether the capability exists.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn set_cache_config(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        config: &CacheConfig,
        now: i64,
    ) -> Result<bool, Error> {
        let config = serde_json::to_string(config).expect("settings are plain data");
        let (principal, id) = (principal.clone(), id.clone());
        self.write(move |connection| {
            let Some(number) = find(connection, &principal, &id)? else { return Ok(false) };
            connection
                .prepare_cached("UPDATE capability_procedure SET cache = ?2 WHERE capability = ?1")?
                .execute(params![number, config])?;
            bump_capability_version(connection, number)?;
            let because = "it was set how they are kept";
            cache::invalidate_results(
                connection,
                &principal,
                InvalidationScope::Capability(&id),
                because,
                now,
            )?;
            Ok(true)
        })
    }

    /// Marks a capability as degraded for a reason that its traces do not show, and drops its cache entries. Returns
    /// whether anything changed. A plan is never degraded.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn degrade_capability(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        because: &str,
        now: i64,
    ) -> Result<bool, Error> {
        let (principal, id, because) = (principal.clone(), id.clone(), because.to_owned());
        self.write(move |connection| {
            let changed = connection
                .prepare_cached(
                    "UPDATE capability SET outside_because = ?3,
                        outside_seq = (SELECT coalesce(max(seq), 0) FROM trace)
                     WHERE id = ?1 AND principal = ?2 AND promoted_at IS NOT NULL
                        AND degraded_because IS NOT ?3
                     RETURNING number",
                )?
                .query_row([id.as_str(), &principal.0, &because], |row| row.get(0))
                .optional()?;
            let Some(number) = changed else { return Ok(false) };
            bump_capability_version(connection, number)?;
            cache::invalidate_unless_manual(connection, &principal, (&id, number), &because, now)?;
            Ok(true)
        })
    }

    /// Records that the reason given to [`BlockingStore::degrade_capability`] no longer holds, and returns whether
    /// that changed anything. The capability stays degraded, for the reason given here, until a run of it succeeds:
    /// that its tools are back proves nothing.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn mark_recoverable(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        because: &str,
    ) -> Result<bool, Error> {
        let (principal, id, because) = (principal.clone(), id.clone(), because.to_owned());
        self.write(move |connection| {
            let changed = connection
                .prepare_cached(
                    "UPDATE capability SET outside_because = ?3
                     WHERE id = ?1 AND principal = ?2 AND outside_because <> ?3 AND worked_seq <= outside_seq
                     RETURNING number",
                )?
                .query_row([id.as_str(), &principal.0, &because], |row| row.get(0))
                .optional()?;
            let Some(number) = changed else { return Ok(false) };
            bump_capability_version(connection, number)?;
            Ok(true)
        })
    }
}

/// A batch of procedures that never worked and were not run for a long time.
pub(crate) fn expired_plans(
    connection: &Connection,
    now: i64,
) -> rusqlite::Result<Vec<(i64, CapabilityId, Principal)>> {
    connection
        .prepare_cached(
            "SELECT number, id, principal FROM capability
             WHERE promoted_at IS NULL AND created_at <= ?1 AND coalesce(last_used, created_at) <= ?1 LIMIT ?2",
        )?
        .query_map(params![now.saturating_sub(PLAN_MS), TOGETHER], |row| {
            Ok((row.get(0)?, capability_id(row, 1)?, Principal(row.get(2)?)))
        })?
        .collect()
}

/// Deletes a batch of [`expired_plans`].
pub(crate) fn delete_expired_plans(connection: &Connection, now: i64) -> rusqlite::Result<()> {
    for (number, id, principal) in expired_plans(connection, now)? {
        delete(connection, &principal, &id, number, now)?;
    }
    Ok(())
}

/// The number of the capability with this id, merged ones excluded.
fn create(
    connection: &Connection,
    procedure: &NewProcedure,
    name: &NewName,
    intents: &[String],
    now: i64,
) -> rusqlite::Result<CreateOutcome> {
    if let Some((number, _)) = resolve_capability(connection, &procedure.owner, &procedure.id)? {
        procedure.insert_or_update(connection, Some(now), false, now)?;
        return Ok(CreateOutcome::Existing(id_of(connection, number)?));
    }
    let owner = &procedure.owner;
    let (name, replaced) = match name {
        NewName::Free(name) if number_by_name(connection, owner, name)?.is_some() => {
            return Ok(CreateOutcome::NameTaken);
        }
        NewName::Free(name) => (name.clone(), None),
        NewName::Suggested => (free_name(connection, owner, &procedure.suggested_name)?, None),
        NewName::VersionOf(name) => (free_name(connection, owner, &procedure.suggested_name)?, Some(name)),
    };
    let number = procedure.insert(connection, &name, Some(now), false, now)?;
    if let Some(name) = replaced {
        version::put_in_force(connection, owner, name, number, now)?;
    }
    for intent in intents.iter().filter(|intent| !intent.is_empty()) {
        add_intent(connection, number, intent, 0, now)?;
    }
    Ok(CreateOutcome::Created)
}

fn find(connection: &Connection, principal: &Principal, id: &CapabilityId) -> rusqlite::Result<Option<i64>> {
    Ok(resolve_capability(connection, principal, id)?.filter(|(_, own)| *own).map(|(number, _)| number))
}

fn id_of(connection: &Connection, number: i64) -> rusqlite::Result<CapabilityId> {
    connection
        .prepare_cached("SELECT id FROM capability WHERE number = ?1")?
        .query_row([number], |row| capability_id(row, 0))
}

pub(crate) fn delete(
    connection: &Connection,
    principal: &Principal,
    id: &CapabilityId,
    number: i64,
    now: i64,
) -> rusqlite::Result<()> {
    cache::invalidate_results(
        connection,
        principal,
        InvalidationScope::Capability(id),
        "it was deleted",
        now,
    )?;
    move_edges(connection, principal, id.as_str(), None)?;
    // Keeps the priority that learning gives to a trace without a capability.
    let telling: Vec<String> = TraceStatus::ALL
        .into_iter()
        .filter(|status| status.evidence().is_some())
        .map(|status| format!("'{}'", status.as_str()))
        .collect();
    connection
        .prepare_cached(&format!(
            "UPDATE trace SET capability = NULL, priority = CASE
                WHEN priority IS NULL THEN NULL
                WHEN NOT cached AND NOT exploratory AND status IN ({}) THEN 1.0
                ELSE 0.0 END
             WHERE capability = ?1",
            telling.join(", ")
        ))?
        .execute([number])?;
    leave(connection, id, number)
}

/// Deletes the row of a capability that nothing refers to any more.
fn leave(connection: &Connection, id: &CapabilityId, number: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM capability WHERE number = ?1")?.execute([number])?;
    let version = next_version(connection)?;
    connection
        .prepare_cached("INSERT OR REPLACE INTO capability_gone (id, version) VALUES (?1, ?2)")?
        .execute(params![id.as_str(), version])
        .map(drop)
}

fn merge(
    connection: &Connection,
    principal: &Principal,
    (into, number): (&CapabilityId, i64),
    (from, other): (&CapabilityId, i64),
    now: i64,
) -> rusqlite::Result<()> {
    cache::invalidate_results(
        connection,
        principal,
        InvalidationScope::Capability(from),
        "it was merged",
        now,
    )?;
    move_edges(connection, principal, from.as_str(), Some(into.as_str()))?;
    for statement in [
        "UPDATE trace SET capability = ?1, own = 0 WHERE capability = ?2",
        "UPDATE capability_alias SET capability = ?1 WHERE capability = ?2",
        "INSERT INTO capability_intent (capability, text, count, first_at, last_at)
            SELECT ?1, text, 0, first_at, last_at FROM capability_intent WHERE capability = ?2
            ON CONFLICT DO UPDATE SET first_at = min(first_at, excluded.first_at),
                last_at = max(last_at, excluded.last_at)",
        "INSERT OR IGNORE INTO forgotten_intent (capability, text)
            SELECT ?1, text FROM forgotten_intent WHERE capability = ?2",
        "UPDATE capability SET created_at = min(capability.created_at, other.created_at),
            promoted_at = coalesce(min(capability.promoted_at, other.promoted_at), capability.promoted_at,
                other.promoted_at)
            FROM capability AS other WHERE capability.number = ?1 AND other.number = ?2",
    ] {
        connection.prepare_cached(statement)?.execute([number, other])?;
    }
    leave(connection, from, other)?;
    connection
        .prepare_cached("INSERT INTO capability_alias (id, principal, capability) VALUES (?1, ?2, ?3)")?
        .execute(params![from.as_str(), principal.0, number])?;
    relearn_capability(connection, number, now)?;
    bump_capability_version(connection, number)
}
