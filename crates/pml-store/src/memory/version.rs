//! Versions of capabilities: several procedures under one name, of which one is in force.
//!
//! The capability in force has the name itself, all others have it with `@` and their number, so names stay unique and
//! whoever calls a capability by its name follows the versions. A capability that never had a second version has no rows
//! here and is version 1.

use crate::sql::{Connection, params};
use pml_model::Principal;
use pml_model::capability::{CapabilityId, Procedure};
use pml_model::version::{CapabilityVersion, version_name};

use super::capability::{NewProcedure, add_intent, number_by_name};
use super::identity::resolve_capability;
use super::release::{insert, next_number, numbered, place};
use super::{bump_capability_version, publication};
use crate::column::capability_id;
use crate::vouch::vouched_condition;
use crate::{BlockingStore, Error};

/// Outcome of putting a version in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionOutcome {
    /// The version of this number is in force.
    InForce(u32),
    /// The capability is a version of another name, and stays one.
    VersionOf(String),
    /// The principal has no such capability.
    Unknown,
}

/// Outcome of offering a procedure as a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OfferOutcome {
    /// It is there under this number, and not in force.
    Offered(u32),
    /// The same procedure exists already.
    Existing(CapabilityId),
    /// The principal has no such capability.
    Unknown,
}

impl BlockingStore {
    /// The versions of the principal's capability of this name, latest first; empty if there is only one.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn capability_versions(
        &self,
        principal: &Principal,
        name: &str,
    ) -> Result<Vec<CapabilityVersion>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT capability_release.number, capability.id, capability.name,
                        capability_release.created_at, offered_because
                     FROM capability_release JOIN capability ON capability.number = capability_release.capability
                     WHERE capability_release.principal = ?1 AND capability_release.name = ?2 AND {}
                     ORDER BY capability_release.number DESC",
                    vouched_condition("capability_release", "capability_release")
                ))?
                .query_map(params![principal.0, name], |row| {
                    Ok(CapabilityVersion {
                        version: row.get(0)?,
                        id: capability_id(row, 1)?,
                        name: row.get(2)?,
                        created_at: row.get(3)?,
                        offered_because: row.get(4)?,
                    })
                })?
                .collect()
        })
    }

    /// The name and the number of the version that a capability is; `None` if its name has one version only.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn version_of(
        &self,
        principal: &Principal,
        id: &CapabilityId,
    ) -> Result<Option<(String, u32)>, Error> {
        self.read(|connection| match resolve_capability(connection, principal, id)? {
            Some((number, _)) => place(connection, number),
            None => Ok(None),
        })
    }

    /// Puts a capability in force under a name. The one that had the name stays as an earlier version, and what it
    /// served is asked of the new one from then on.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn put_version_in_force(
        &self,
        principal: &Principal,
        name: &str,
        id: &CapabilityId,
        now: i64,
    ) -> Result<VersionOutcome, Error> {
        let (principal, name, id) = (principal.clone(), name.to_owned(), id.clone());
        self.write(move |connection| match resolve_capability(connection, &principal, &id)? {
            Some((number, true)) => put_in_force(connection, &principal, &name, number, now),
            Some((_, false)) | None => Ok(VersionOutcome::Unknown),
        })
    }

    /// Stores a procedure as a version of a capability that is not in force.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn offer_version(
        &self,
        procedure: Procedure,
        name: &str,
        because: &str,
        now: i64,
    ) -> Result<OfferOutcome, Error> {
        let (procedure, name, because) =
            (NewProcedure::encode(procedure), name.to_owned(), because.to_owned());
        self.write(move |connection| {
            let owner = &procedure.owner;
            if let Some((number, _)) = resolve_capability(connection, owner, &procedure.id)? {
                let id = connection
                    .prepare_cached("SELECT id FROM capability WHERE number = ?1")?
                    .query_row([number], |row| capability_id(row, 0))?;
                return Ok(OfferOutcome::Existing(id));
            }
            let Some(present) = number_by_name(connection, owner, &name)? else {
                return Ok(OfferOutcome::Unknown);
            };
            numbered(connection, owner, &name, present, now)?;
            let version = next_number(connection, owner, &name)?;
            let offered =
                procedure.insert(connection, &version_name(&name, version), Some(now), false, now)?;
            insert(connection, owner, (&name, version, offered), Some(&because), now)?;
            Ok(OfferOutcome::Offered(version))
        })
    }
}

/// As [`BlockingStore::put_version_in_force`], within a transaction.
pub(super) fn put_in_force(
    connection: &Connection,
    principal: &Principal,
    name: &str,
    capability: i64,
    now: i64,
) -> rusqlite::Result<VersionOutcome> {
    if let Some((family, _)) = place(connection, capability)?.filter(|(family, _)| family != name) {
        return Ok(VersionOutcome::VersionOf(family));
    }
    let present = number_by_name(connection, principal, name)?.filter(|present| *present != capability);
    if let Some(present) = present {
        let version = numbered(connection, principal, name, present, now)?;
        rename(connection, present, &version_name(name, version))?;
    }
    let version = numbered(connection, principal, name, capability, now)?;
    connection
        .prepare_cached(
            "UPDATE capability_release SET offered_because = NULL
             WHERE principal = ?1 AND name = ?2 AND number = ?3 AND offered_because IS NOT NULL",
        )?
        .execute(params![principal.0, name, version])?;
    rename(connection, capability, name)?;
    if let Some(present) = present {
        publication::follow_version(connection, principal, present, capability, now)?;
        let served: Vec<String> = connection
            .prepare_cached(
                "SELECT text FROM capability_intent WHERE capability = ?1 ORDER BY first_at, text",
            )?
            .query_map([present], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        served.iter().try_for_each(|text| add_intent(connection, capability, text, 0, now))?;
    }
    Ok(VersionOutcome::InForce(version))
}

/// Keeps the versions of a name together when one of them gets another name: all of them if it is in force; any other
/// one leaves them.
pub(super) fn follow_rename(
    connection: &Connection,
    principal: &Principal,
    capability: i64,
    before: &str,
    after: &str,
) -> rusqlite::Result<()> {
    let Some((family, _)) = place(connection, capability)? else { return Ok(()) };
    if family != before {
        return connection
            .prepare_cached("DELETE FROM capability_release WHERE capability = ?1")?
            .execute([capability])
            .map(drop);
    }
    let versions: Vec<(i64, u32, i64, Option<String>)> = connection
        .prepare_cached(
            "SELECT capability, number, created_at, offered_because FROM capability_release
             WHERE principal = ?1 AND name = ?2 ORDER BY number",
        )?
        .query_map(params![principal.0, family], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })?
        .collect::<rusqlite::Result<_>>()?;
    connection
        .prepare_cached("DELETE FROM capability_release WHERE principal = ?1 AND name = ?2")?
        .execute(params![principal.0, family])?;
    for (version_id, number, created_at, because) in versions {
        insert(connection, principal, (after, number, version_id), because.as_deref(), created_at)?;
        if version_id != capability {
            rename(connection, version_id, &version_name(after, number))?;
        }
    }
    Ok(())
}

fn rename(connection: &Connection, capability: i64, name: &str) -> rusqlite::Result<()> {
    let changed = connection
        .prepare_cached("UPDATE capability SET name = ?2 WHERE number = ?1 AND name <> ?2")?
        .execute(params![capability, name])?;
    if changed > 0 { bump_capability_version(connection, capability) } else { Ok(()) }
}
