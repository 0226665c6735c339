//! Publishing: which capabilities others see beside their owner, and to which project and organisation people belong.
//!
//! A publication belongs to a procedure, not to a name: one that is deleted, or gets its name back later, is private.
//! When another version is put in force, the publication goes over to it.

use crate::sql::{Connection, OptionalExtension, Row, params};
use pml_model::{CapabilityId, Membership, Principal, Publication, Visibility};
use serde_json::json;

use super::identity::resolve_capability;
use super::{bump_capability_version, next_version};
use crate::audit::NewAuditEntry;
use crate::column::unexpected_value;
use crate::vouch::vouched_condition;
use crate::{BlockingStore, Error, Urgency};

/// The columns that [`publication`] reads.
const COLUMNS: &str = "visibility, org, project";

impl BlockingStore {
    /// Sets who sees a capability, with an audit entry. Returns whether its owner has it.
    ///
    /// # Errors
    /// The key file beside the database cannot be used, or the change cannot be stored.
    pub fn publish_capability(
        &self,
        owner: &Principal,
        id: &CapabilityId,
        visibility: Visibility,
        by: &Principal,
        now: i64,
    ) -> Result<bool, Error> {
        let log = self.begin_audit()?;
        let (owner, id, by) = (owner.clone(), id.clone(), by.clone());
        self.change(Urgency::Durable, move |connection| {
            let Some((number, true)) = resolve_capability(connection, &owner, &id)? else { return Ok(false) };
            let place = membership(connection, &owner)?;
            replace(connection, number, &owner, &Publication { visibility, place }, &by, now)?;
            bump_capability_version(connection, number)?;
            let body = json!({ "capability": id.as_str(), "visibility": visibility, "by": by });
            let entry =
                NewAuditEntry { at: now, principal: owner, run: None, kind: "capability published", body };
            log.append(connection, std::iter::once(entry))?;
            Ok(true)
        })
    }

    /// How often others used a capability since it was published; `None` if it is private.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn uses_by_others(&self, owner: &Principal, id: &CapabilityId) -> Result<Option<u64>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT uses FROM capability_publication
                     WHERE principal = ?1 AND capability = (SELECT number FROM capability WHERE id = ?2)",
                )?
                .query_row([owner.0.as_str(), id.as_str()], |row| row.get(0))
                .optional()
        })
    }

    /// Puts somebody into a project of an organisation, with an audit entry.
    ///
    /// # Errors
    /// The key file beside the database cannot be used, or the change cannot be stored.
    pub fn set_membership(&self, principal: &Principal, member: &Membership, now: i64) -> Result<(), Error> {
        let log = self.begin_audit()?;
        let (principal, member) = (principal.clone(), member.clone());
        self.change(Urgency::Durable, move |connection| {
            connection
                .prepare_cached("DELETE FROM membership WHERE principal = ?1")?
                .execute([&principal.0])?;
            connection
                .prepare_cached("INSERT INTO membership (principal, org, project) VALUES (?1, ?2, ?3)")?
                .execute(params![principal.0, member.org, member.project])?;
            // Every gateway reads the members again when the capabilities have another version.
            next_version(connection)?;
            let body = json!({ "person": principal, "org": member.org, "project": member.project });
            let entry = NewAuditEntry { at: now, principal, run: None, kind: "person assigned", body };
            log.append(connection, std::iter::once(entry))?;
            Ok(())
        })
    }

    /// Everybody who was put into a project.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn memberships(&self) -> Result<Vec<(Principal, Membership)>, Error> {
        self.read(members)
    }
}

/// Everybody who was put into a project.
pub(super) fn members(connection: &Connection) -> rusqlite::Result<Vec<(Principal, Membership)>> {
    connection
        .prepare_cached(&format!(
            "SELECT principal, org, project FROM membership WHERE {} ORDER BY principal",
            vouched_condition("membership", "membership")
        ))?
        .query_map([], |row| {
            Ok((Principal(row.get(0)?), Membership { org: row.get(1)?, project: row.get(2)? }))
        })?
        .collect()
}

fn membership(connection: &Connection, principal: &Principal) -> rusqlite::Result<Membership> {
    let found = connection
        .prepare_cached(&format!(
            "SELECT org, project FROM membership WHERE principal = ?1 AND {}",
            vouched_condition("membership", "membership")
        ))?
        .query_row([&principal.0], |row| Ok(Membership { org: row.get(0)?, project: row.get(1)? }))
        .optional()?;
    Ok(found.unwrap_or_default())
}

/// How far a capability is published; `None` for a private one.
pub(super) fn publication(connection: &Connection, capability: i64) -> rusqlite::Result<Option<Publication>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM capability_publication WHERE capability = ?1 AND {}",
            vouched_condition("capability_publication", "capability_publication")
        ))?
        .query_row([capability], read)
        .optional()
}

fn read(row: &Row<'_>) -> rusqlite::Result<Publication> {
    let visibility = row.get_ref(0)?.as_str()?;
    Ok(Publication {
        visibility: Visibility::parse(visibility)
            .ok_or_else(|| unexpected_value(0, format!("`{visibility}` is no visibility")))?,
        place: Membership { org: row.get(1)?, project: row.get(2)? },
    })
}

fn replace(
    connection: &Connection,
    capability: i64,
    owner: &Principal,
    publication: &Publication,
    by: &Principal,
    now: i64,
) -> rusqlite::Result<()> {
    let before: Option<i64> = connection
        .prepare_cached("SELECT uses FROM capability_publication WHERE capability = ?1")?
        .query_row([capability], |row| row.get(0))
        .optional()?;
    connection
        .prepare_cached("DELETE FROM capability_publication WHERE capability = ?1")?
        .execute([capability])?;
    if publication.visibility == Visibility::Private {
        return Ok(());
    }
    connection
        .prepare_cached(
            "INSERT INTO capability_publication (capability, principal, visibility, org, project, published_by, at,
                uses)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            capability,
            owner.0,
            publication.visibility.as_str(),
            publication.place.org,
            publication.place.project,
            by.0,
            now,
            before.unwrap_or(0),
        ])
        .map(drop)
}

/// Lets the version that is put in force have the publication of the one that was.
pub(super) fn follow_version(
    connection: &Connection,
    owner: &Principal,
    before: i64,
    after: i64,
    now: i64,
) -> rusqlite::Result<()> {
    let Some(published) = publication(connection, before)? else { return Ok(()) };
    replace(connection, after, owner, &published, owner, now)?;
    let private = Publication { visibility: Visibility::Private, ..published };
    replace(connection, before, owner, &private, owner, now)?;
    bump_capability_version(connection, before)?;
    bump_capability_version(connection, after)
}

/// Counts that somebody else used a capability, if it is published.
pub(super) fn count_use(
    connection: &Connection,
    principal: &Principal,
    id: &CapabilityId,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE capability_publication SET uses = uses + 1
             WHERE capability = (SELECT number FROM capability WHERE id = ?1) AND principal <> ?2",
        )?
        .execute([id.as_str(), principal.0.as_str()])
        .map(drop)
}
