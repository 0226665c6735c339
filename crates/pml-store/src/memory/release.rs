//! The numbers of versions: which capability is which version of which name.

use crate::sql::{Connection, OptionalExtension as _, params};
use pml_model::Principal;

use crate::vouch::vouched_condition;

/// Whether the name has versions of which none is in force.
pub(super) fn has_versions(
    connection: &Connection,
    principal: &Principal,
    name: &str,
) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM capability_release WHERE principal = ?1 AND name = ?2 LIMIT 1")?
        .exists(params![principal.0, name])
}

/// The name of which a capability is a version, and the number.
pub(super) fn place(connection: &Connection, capability: i64) -> rusqlite::Result<Option<(String, u32)>> {
    connection
        .prepare_cached(&format!(
            "SELECT name, number FROM capability_release WHERE capability = ?1 AND {}",
            vouched_condition("capability_release", "capability_release")
        ))?
        .query_row([capability], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
}

/// The number of the version that a capability is, which is given one if it has none.
pub(super) fn numbered(
    connection: &Connection,
    principal: &Principal,
    name: &str,
    capability: i64,
    now: i64,
) -> rusqlite::Result<u32> {
    if let Some((_, version)) = place(connection, capability)? {
        return Ok(version);
    }
    let version = next_number(connection, principal, name)?;
    insert(connection, principal, (name, version, capability), None, now)?;
    Ok(version)
}

pub(super) fn next_number(
    connection: &Connection,
    principal: &Principal,
    name: &str,
) -> rusqlite::Result<u32> {
    connection
        .prepare_cached(
            "SELECT coalesce(max(number), 0) + 1 FROM capability_release WHERE principal = ?1 AND name = ?2",
        )?
        .query_row(params![principal.0, name], |row| row.get(0))
}

pub(super) fn insert(
    connection: &Connection,
    principal: &Principal,
    (name, version, capability): (&str, u32, i64),
    because: Option<&str>,
    now: i64,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO capability_release (principal, name, number, capability, created_at, offered_because)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![principal.0, name, version, capability, now, because])
        .map(drop)
}
