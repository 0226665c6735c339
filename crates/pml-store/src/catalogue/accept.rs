//! Which definitions a person accepted.
//!
//! The first manifest of a server is accepted with the server. Of each tool one definition is
//! accepted at a time; what becomes of tools that have another is not decided here. Acceptance is
//! bound to how the server is started, and outlives the offer of a tool.

use std::collections::BTreeMap;

use pml_model::{Definition, Digest, Principal, ServerName, ToolId};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::restore::restore;
use super::rows::{bump_version, drop_unused};
use crate::audit::{Audit, Log};
use crate::column::{digest, server_name};
use crate::vouch::vouched;
use crate::writer::Failure;
use crate::{BlockingStore, Error, Urgency};

/// The definitions that are accepted, by server and how it is started, then by tool.
pub type AcceptedDefinitions = BTreeMap<(ServerName, Digest), BTreeMap<String, AcceptedDefinition>>;

/// A definition that is accepted.
#[derive(Debug, Clone)]
pub struct AcceptedDefinition {
    /// Its digest.
    pub digest: Digest,
    /// The definition, where the tool is known to have another one now.
    pub replaced: Option<Definition>,
}

/// Definitions to be accepted, as a person saw them.
#[derive(Debug, Clone)]
pub struct Acceptance {
    /// Whose server it is.
    pub principal: Principal,
    /// The server.
    pub server: ServerName,
    /// How it is started.
    pub launch: Digest,
    /// The tools, each with the digest of the definition that was seen.
    pub tools: Vec<(String, Digest)>,
    /// The present time.
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

    /// Accepts definitions and gives the tools whose definition is no longer the one that was seen:
    /// of those nothing is accepted. `audit` is stored if anything is.
    ///
    /// # Errors
    /// The change could not be stored; then nothing is accepted.
    pub fn accept_definitions(
        &self,
        acceptance: Acceptance,
        audit: Vec<Audit>,
    ) -> Result<Vec<ToolId>, Error> {
        let log = self.log(audit)?;
        self.change(Urgency::Durable, move |connection| accept(connection, &acceptance, &log))
    }
}

fn accepted(connection: &Connection, principal: &Principal) -> rusqlite::Result<AcceptedDefinitions> {
    let mut rows = connection.prepare_cached(&format!(
        "SELECT accepted.server, accepted.launch, accepted.tool, accepted.digest,
                CASE WHEN accepted.digest <> present.digest THEN definition.raw END
         FROM accepted_definition AS accepted
         JOIN definition ON definition.id = accepted.definition AND definition.digest = accepted.digest
         LEFT JOIN tool ON tool.principal = accepted.principal AND tool.server = accepted.server
             AND tool.tool = accepted.tool
         LEFT JOIN definition AS present ON present.id = tool.definition
         WHERE accepted.principal = ?1 AND {} AND {}",
        vouched("accepted_definition", "accepted"),
        vouched("definition", "definition"),
    ))?;
    let mut all = AcceptedDefinitions::new();
    let mut rows = rows.query([&principal.0])?;
    while let Some(row) = rows.next()? {
        let known = all.entry((server_name(row, 0)?, digest(row, 1)?)).or_default();
        known.insert(row.get(2)?, definition(row)?);
    }
    Ok(all)
}

fn definition(row: &Row<'_>) -> rusqlite::Result<AcceptedDefinition> {
    let accepted = digest(row, 3)?;
    let replaced = row.get::<_, Option<String>>(4)?.and_then(|raw| restore(raw, &accepted));
    Ok(AcceptedDefinition { digest: accepted, replaced })
}

fn accept(connection: &Connection, acceptance: &Acceptance, log: &Log) -> Result<Vec<ToolId>, Failure> {
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
                let put = Put { principal: &principal.0, server: server.as_str(), launch, now: *now };
                put.definition(connection, tool, id, seen)?;
            }
            None => other.push(ToolId { server: server.clone(), tool: tool.clone() }),
        }
    }
    if other.len() < tools.len() {
        bump_version(connection, principal)?;
        log.store(connection)?;
    }
    Ok(other)
}

/// Whose accepted definitions are written.
pub(super) struct Put<'a> {
    pub(super) principal: &'a str,
    pub(super) server: &'a str,
    pub(super) launch: &'a Digest,
    pub(super) now: i64,
}

impl Put<'_> {
    /// Notes that the server was met; says whether that is new. Where that note was lost, what was accepted of the
    /// server tells that it is not: its present tools must not be taken for its first.
    pub(super) fn first_met(&self, connection: &Connection) -> rusqlite::Result<bool> {
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

    /// Takes every definition the server offers now as accepted; says whether any was not.
    pub(super) fn all_offered(&self, connection: &Connection) -> rusqlite::Result<bool> {
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
        before.map_or(Ok(()), |before| drop_unused(connection, before))?;
        Ok(true)
    }
}

/// Forgets what was accepted of a server.
pub(super) fn forget(
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
    definitions.into_iter().try_for_each(|id| drop_unused(connection, id))
}
