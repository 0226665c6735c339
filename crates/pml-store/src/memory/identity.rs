//! Which row a capability id stands for.

use crate::sql::{Connection, OptionalExtension as _};
use pml_model::Principal;
use pml_model::capability::CapabilityId;

use crate::vouch::vouched_condition;

/// The number of the capability that runs of `id` count for, and whether that is its own id rather than that of a
/// merged one.
pub(super) fn resolve_capability(
    connection: &Connection,
    principal: &Principal,
    id: &CapabilityId,
) -> rusqlite::Result<Option<(i64, bool)>> {
    let own = connection
        .prepare_cached("SELECT number FROM capability WHERE id = ?1 AND principal = ?2")?
        .query_row([id.as_str(), &principal.0], |row| row.get(0))
        .optional()?;
    if let Some(number) = own {
        return Ok(Some((number, true)));
    }
    let merged = connection
        .prepare_cached(&format!(
            "SELECT capability FROM capability_alias WHERE id = ?1 AND principal = ?2 AND {}",
            vouched_condition("capability_alias", "capability_alias")
        ))?
        .query_row([id.as_str(), &principal.0], |row| row.get(0))
        .optional()?;
    Ok(merged.map(|number| (number, false)))
}
