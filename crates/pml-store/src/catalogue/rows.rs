//! Row changes shared by recording a listing and accepting definitions.

use crate::sql::Connection;
use pml_model::Principal;

/// Increments the version of the principal's catalogue.
pub(super) fn bump_catalogue_version(connection: &Connection, principal: &Principal) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT INTO catalogue_version (principal, version) VALUES (?1, 1)
         ON CONFLICT (principal) DO UPDATE SET version = version + 1",
        [&principal.0],
    )?;
    Ok(())
}

/// Deletes a definition that nothing refers to any more.
pub(super) fn delete_unused_definition(connection: &Connection, definition: i64) -> rusqlite::Result<()> {
    connection.execute(
        "DELETE FROM definition WHERE id = ?1
         AND NOT EXISTS (SELECT 1 FROM tool WHERE definition = ?1)
         AND NOT EXISTS (SELECT 1 FROM replaced_definition WHERE definition = ?1)
         AND NOT EXISTS (SELECT 1 FROM accepted_definition WHERE definition = ?1)",
        [definition],
    )?;
    Ok(())
}
