//! The definitions that a person accepted.
//!
//! The first manifest of a server is accepted with the server. Each tool has one accepted definition at a time; what
//! happens to a tool with another one is not decided here. Acceptance is bound to the launch configuration of the
//! server, and stays while a tool is not offered.

use std::collections::BTreeMap;

use crate::sql::{Connection, OptionalExtension, Row, params};
use pml_model::{Definition, Digest, Principal, ServerName, ToolId};

use super::restore::restore_definition;
use super::rows::{bump_catalogue_version, delete_unused_definition};
use crate::audit::{AuditBatch, NewAuditEntry};
use crate::column::{digest, server_name};
use crate::vouch::vouched_condition;
use crate::writer::WriteFailure;
use crate::{BlockingStore, Error, Urgency};

/// The accepted definitions, by server and launch digest, then by tool.
pub type AcceptedDefinitions = BTreeMap<(ServerName, Digest), BTreeMap<String, AcceptedDefinition>>;

/// An accepted definition.
#[derive(Debug, Clone)]
pub struct AcceptedDefinition {
    /// Digest of the definition.
    pub digest: Digest,
    /// The definition itself; only if the tool has another one now.
    pub replaced: Option<Definition>,
}

/// Definitions to be accepted, as a person saw them.
#[derive(Debug, Clone)]
pub struct Acceptance {
    /// The principal that the server belongs to.
    pub principal: Principal,
    /// Name of the server.
    pub server: ServerName,
    /// Digest of the launch configuration.
    pub launch: Digest,
    /// The tools, each with the digest of the definition that the person saw.
    pub tools: Vec<(String, Digest)>,
    /// Current time.
    pub now: i64,
}

impl BlockingStore {
    /// The principal's accepted definitions.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn accepted_definitions(&self, principal: &Principal) -> Result<AcceptedDefinitions, Error> {
        self.read(|connection| accepted(connection, principal))
    }

    /// Accepts definitions and returns the tools whose definition is no longer the one that was seen; for those
    /// nothing is accepted. `audit` is stored if any definition is accepted.
    ///
    /// # Errors
    /// The change could not be stored; then nothing is accepted.
    pub fn accept_definitions(
        &self,
        acceptance: Acceptance,
        audit: Vec<NewAuditEntry>,
    ) -> Result<Vec<ToolId>, Error> {
        let log = self.prepare_audit(audit)?;
        self.change(Urgency::Durable, move |connection| accept(connection, &acceptance, &log))
    }
}

fn accepted(connection: &Connection, principal: &Principal) -> rusqlite::Result<AcceptedDefinitions> {
    // Of a definition that is still the present one nothing is read here; the manifest checks it. So only the others
    // need their marks checked.
    let mut rows = connection.prepare_cached(&format!(
        "SELECT accepted.server, accepted.launch, accepted.tool, accepted.digest,
                CASE WHEN accepted.digest <> present.digest THEN definition.raw END
         FROM accepted_definition AS accepted
         JOIN definition ON definition.id = accepted.definition AND definition.digest = accepted.digest
         LEFT JOIN tool ON tool.principal = accepted.principal AND tool.server = accepted.server
             AND tool.tool = accepted.tool
         LEFT JOIN definition AS present ON present.id = tool.definition
         WHERE accepted.principal = ?1 AND {} AND (definition.id IS tool.definition OR {})",
        vouched_condition("accepted_definition", "accepted"),
        vouched_condition("definition", "definition"),
    ))?;
    let mut all = AcceptedDefinitions::new();
    let mut rows = rows.query([&principal.0])?;
    while let Some(row) = rows.next()? {
        let known = all.entry((server_name(&row, 0)?, digest(&row, 1)?)).or_default();
        known.insert(row.get(2)?, definition(&row)?);
    }
    Ok(all)
}

fn definition(row: &Row<'_>) -> rusqlite::Result<AcceptedDefinition> {
    let accepted = digest(row, 3)?;
    let replaced = row.get::<_, Option<String>>(4)?.and_then(|raw| restore_definition(raw, &accepted));
    Ok(AcceptedDefinition { digest: accepted, replaced })
}

fn accept(
    connection: &Connection,
    acceptance: &Acceptance,
    log: &AuditBatch,
) -> Result<Vec<ToolId>, WriteFailure> {
    let Acceptance { principal, server, launch, tools, now } = acceptance;
    let mut other = Vec::new();
    for (tool, seen) in tools {
        let present = connection
            .prepare_cached(
                "SELECT definition.id FROM tool JOIN definition ON definition.id = tool.definition
                 WHERE tool.principal = ?1 AND tool.server = ?2 AND tool.tool = ?3 AND definition.digest = ?4",
            )?
            .query_row(params![principal.0, server.as_str(), tool, seen.as_str()], |row| row.get(0))
            .optional()?;
        match present {
            Some(id) => {
                let put =
                    AcceptanceWriter { principal: &principal.0, server: server.as_str(), launch, now: *now };
                put.definition(connection, tool, id, seen)?;
            }
            None => other.push(ToolId { server: server.clone(), tool: tool.clone() }),
        }
    }
    if other.len() < tools.len() {
        bump_catalogue_version(connection, principal)?;
        log.store(connection)?;
    }
    Ok(other)
}

/// Writes accepted definitions of one server.
pub(super) struct AcceptanceWriter<'a> {
    pub(super) principal: &'a str,
    pub(super) server: &'a str,
    pub(super) launch: &'a Digest,
    pub(super) now: i64,
}

impl AcceptanceWriter<'_> {
    /// Records that the server was listed for the first time, and returns whether that is new. If this record was
    /// lost, the accepted definitions prove an earlier listing: the present tools must not be taken for the first
    /// ones.
    pub(super) fn record_first_meeting(&self, connection: &Connection) -> rusqlite::Result<bool> {
        let accepted = connection
            .prepare_cached(
                "SELECT 1 FROM accepted_definition WHERE principal = ?1 AND server = ?2 AND launch = ?3 LIMIT 1",
            )?
            .exists(params![self.principal, self.server, self.launch.as_str()])?;
        let added = connection
            .prepare_cached(
                "INSERT OR IGNORE INTO accepted_server (principal, server, launch) VALUES (?1, ?2, ?3)",
            )?
            .execute(params![self.principal, self.server, self.launch.as_str()])?;
        Ok(added > 0 && !accepted)
    }

    /// Accepts every definition that the server offers now, and returns whether any was not accepted before.
    pub(super) fn accept_all_offered(&self, connection: &Connection) -> rusqlite::Result<bool> {
        let offered: Vec<(String, i64, Digest)> = connection
            .prepare_cached(
                "SELECT tool.tool, definition.id, definition.digest
                 FROM tool JOIN definition ON definition.id = tool.definition
                 WHERE tool.principal = ?1 AND tool.server = ?2 AND tool.offered",
            )?
            .query_map([self.principal, self.server], |row| Ok((row.get(0)?, row.get(1)?, digest(row, 2)?)))?
            .collect::<rusqlite::Result<_>>()?;
        let mut changed = false;
        for (tool, id, digest) in &offered {
            changed |= self.definition(connection, tool, *id, digest)?;
        }
        Ok(changed)
    }

    fn definition(
        &self,
        connection: &Connection,
        tool: &str,
        id: i64,
        digest: &Digest,
    ) -> rusqlite::Result<bool> {
        let key = params![self.principal, self.server, self.launch.as_str(), tool];
        let before: Option<i64> = connection
            .prepare_cached(
                "SELECT definition FROM accepted_definition
                 WHERE principal = ?1 AND server = ?2 AND launch = ?3 AND tool = ?4",
            )?
            .query_row(key, |row| row.get(0))
            .optional()?;
        if before == Some(id) {
            return Ok(false);
        }
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO accepted_definition
                     (principal, server, launch, tool, definition, digest, accepted_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?
            .execute(params![
                self.principal,
                self.server,
                self.launch.as_str(),
                tool,
                id,
                digest.as_str(),
                self.now
            ])?;
        before.map_or(Ok(()), |before| delete_unused_definition(connection, before))?;
        Ok(true)
    }
}

/// Deletes the accepted definitions of a server.
pub(super) fn forget_accepted(
    connection: &Connection,
    principal: &Principal,
    server: &ServerName,
) -> rusqlite::Result<()> {
    let key = params![principal.0, server.as_str()];
    let definitions: Vec<i64> = connection
        .prepare_cached(
            "DELETE FROM accepted_definition WHERE principal = ?1 AND server = ?2 RETURNING definition",
        )?
        .query_map(key, |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    connection.execute("DELETE FROM accepted_server WHERE principal = ?1 AND server = ?2", key)?;
    definitions.into_iter().try_for_each(|id| delete_unused_definition(connection, id))
}
