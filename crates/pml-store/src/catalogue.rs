//! The catalogue: the manifests of servers, now and before.
//!
//! A changed definition is kept together with its predecessors. A tool keeps its identifier for ever, also while it or
//! its whole server is away. Whether a change is acceptable is decided elsewhere; this module only records it.

mod accept;
mod record;
mod restore;
mod rows;

use crate::sql::{Connection, OptionalExtension, Row, params};
pub use accept::{Acceptance, AcceptedDefinition, AcceptedDefinitions};
use pml_model::{Definition, Digest, Principal, ServerName, ToolId};
use restore::restore_definition;
use serde_json::value::RawValue;

use crate::column::{digest, optional_digest, server_name, unexpected_value};
use crate::run::has_questions_about_server;
use crate::vouch::vouched_condition;
use crate::{BlockingStore, EndedRule, Error, Urgency, VoidedQuestion};

/// The reply of a server to `tools/list`.
#[derive(Debug, Clone)]
pub struct ServerListing {
    /// Name of the server.
    pub server: ServerName,
    /// Digest of the launch configuration: with a changed command it counts as another server.
    pub launch: Digest,
    /// What the server says of itself.
    pub profile: StoredServerProfile,
    /// Its tools. Of several with the same name the first is taken.
    pub tools: Vec<Definition>,
    /// Which of the definitions count as accepted.
    pub acceptance: AcceptancePolicy,
}

/// Which definitions count as accepted without a decision of a person on each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptancePolicy {
    /// Those of the first manifest of a server with this launch configuration.
    FirstManifest,
    /// Those of every manifest.
    EveryManifest,
}

/// What a server says of itself when it connects.
#[derive(Debug, Clone, Default)]
pub struct StoredServerProfile {
    /// Name and version, as the server wrote them.
    pub info: Option<Box<RawValue>>,
    /// The server's instructions for its users: data, never instructions to PML.
    pub instructions: Option<String>,
    /// The negotiated protocol version.
    pub protocol_version: Option<String>,
    /// The era of that version, as `pml-mcp` spells it.
    pub era: Option<String>,
    /// Its MCP capabilities, as the server wrote them.
    pub capabilities: Option<Box<RawValue>>,
}

/// The tools of a server, as last listed.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// Name of the server.
    pub server: ServerName,
    /// Digest of the launch configuration at that time.
    pub launch: Digest,
    /// What the server said of itself.
    pub profile: StoredServerProfile,
    /// Its tools, sorted by name.
    pub tools: Vec<StoredTool>,
    /// Names of tools whose stored definition is damaged; the server has to be listed again.
    pub damaged_tools: Vec<String>,
    /// When the server listed them.
    pub seen_at: i64,
}

/// A tool of a manifest.
#[derive(Debug, Clone)]
pub struct StoredTool {
    /// The definition, byte for byte as the server sent it.
    pub definition: Definition,
    /// The identifier in programs: unique within the server and never given to another of its tools.
    pub identifier: String,
    /// When a tool of this name was first seen.
    pub first_seen_at: i64,
    /// Since when it has had this definition. A definition that returns after another one gets a new time.
    pub defined_at: i64,
}

/// The difference between a listing and the stored manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManifestChange {
    /// Names of tools that are new, or back with the definition they last had.
    pub added: Vec<String>,
    /// Names of tools that are no longer offered.
    pub removed: Vec<String>,
    /// Tools whose definition differs from the one last stored, also if they were away in between.
    pub changed: Vec<ChangedTool>,
    /// The rules for the previous definitions, which are void now.
    pub voided_rules: Vec<EndedRule>,
    /// The open questions that showed the previous definitions, which are void now: nobody can answer them.
    pub voided_questions: Vec<VoidedQuestion>,
    /// The previous launch digest, if it differs.
    pub launch_before: Option<Digest>,
}

/// A tool whose definition changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedTool {
    /// Name of the tool within its server.
    pub tool: String,
    /// Digest of the previous definition.
    pub before: Digest,
    /// Digest of the current definition.
    pub after: Digest,
}

/// A definition that a tool has or had.
#[derive(Debug, Clone)]
pub struct DefinitionVersion {
    /// Digest of the definition.
    pub digest: Digest,
    /// The definition; `None` if the stored text is damaged.
    pub definition: Option<Definition>,
    /// Since when the tool had it.
    pub seen_at: i64,
    /// When another definition replaced it; `None` for the latest.
    pub replaced_at: Option<i64>,
}

/// A change of a tool on a server that was known before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueChange {
    /// Id of the tool.
    pub tool: ToolId,
    /// Digest of the definition before; `None` if the tool was not offered.
    pub before: Option<Digest>,
    /// Digest of the definition after; `None` if the tool is no longer offered.
    pub after: Option<Digest>,
    /// When the change was seen.
    pub at: i64,
}

impl BlockingStore {
    /// Stores a listing as the manifest of the server and returns the difference.
    ///
    /// # Errors
    /// The listing could not be stored; no part of it was.
    pub fn record_manifest(
        &self,
        principal: &Principal,
        listing: ServerListing,
        now: i64,
    ) -> Result<ManifestChange, Error> {
        // Changed definitions void rules and questions, and the audit log records that, which needs the key. Without a
        // usable key no rule counts and no question can be read, so the manifest is stored all the same.
        let voids = self.has_rules(principal, &listing.server)?
            || self.read(|connection| has_questions_about_server(connection, &listing.server))?;
        let log = match voids {
            true => self.begin_audit().ok(),
            false => None,
        };
        let urgency = if log.is_some() { Urgency::Durable } else { Urgency::Soon };
        let principal = principal.clone();
        self.change(urgency, move |connection| {
            let change = record::record_listing(connection, &principal, &listing, now)?;
            if let Some(log) = log {
                log.append(
                    connection,
                    change.voided_rules.iter().map(|rule| rule.audit_entry("rule voided", now)),
                )?;
                log.append(
                    connection,
                    change.voided_questions.iter().map(|question| question.audit_entry(now)),
                )?;
            }
            Ok(change)
        })
    }

    /// The manifests of all servers, sorted by name.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn manifests(&self, principal: &Principal) -> Result<Vec<Manifest>, Error> {
        self.read(|connection| manifests(connection, principal, None))
    }

    /// The manifest of one server.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn manifest(&self, principal: &Principal, server: &ServerName) -> Result<Option<Manifest>, Error> {
        self.read(|connection| Ok(manifests(connection, principal, Some(server))?.pop()))
    }

    /// Deletes the manifest of a server and its accepted definitions. Returns whether there was one. The definition
    /// history and the identifiers stay: a server that returns under this name is compared with its previous
    /// definitions, and programs that call its tools still call the same ones.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn remove_server(&self, principal: &Principal, server: &ServerName) -> Result<bool, Error> {
        let (principal, server) = (principal.clone(), server.clone());
        self.write(move |connection| record::remove_manifest(connection, &principal, &server))
    }

    /// The definitions that a tool had, oldest first; the last is the one it has or last had. Returning to an earlier
    /// definition is a change like any other. The latest 64 predecessors are kept.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn definition_history(
        &self,
        principal: &Principal,
        tool: &ToolId,
    ) -> Result<Vec<DefinitionVersion>, Error> {
        self.read(|connection| history(connection, principal, tool))
    }

    /// The latest changes of servers that were known before, newest first. The first listing of a server and its
    /// removal by the operator are not included.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn recent_catalogue_changes(
        &self,
        principal: &Principal,
        limit: u32,
    ) -> Result<Vec<CatalogueChange>, Error> {
        self.read(|connection| recent_changes(connection, principal, limit))
    }

    /// A number that grows with every change of any manifest by any process, in the same commit. Cheap enough to be
    /// read several times a second.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn catalogue_version(&self) -> Result<u64, Error> {
        self.read(|connection| {
            connection.query_row("SELECT coalesce(sum(version), 0) FROM catalogue_version", [], |row| {
                row.get::<_, i64>(0).map(i64::unsigned_abs)
            })
        })
    }
}

fn manifests(
    connection: &Connection,
    principal: &Principal,
    only: Option<&ServerName>,
) -> rusqlite::Result<Vec<Manifest>> {
    let only = only.map(ServerName::as_str);
    let mut servers = connection.prepare(
        "SELECT server, launch, info, instructions, protocol_version, era, capabilities, seen_at
         FROM server WHERE principal = ?1 AND (?2 IS NULL OR server = ?2) ORDER BY server",
    )?;
    let mut manifests =
        servers.query_map(params![principal.0, only], manifest)?.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut tools = connection.prepare(&format!(
        "SELECT tool.server, tool.tool, tool.identifier, tool.first_seen_at, definition.digest, definition.raw,
                {} AND {}, tool.defined_at
         FROM tool JOIN definition ON definition.id = tool.definition AND definition.principal = tool.principal
         WHERE tool.principal = ?1 AND tool.offered AND (?2 IS NULL OR tool.server = ?2)
         ORDER BY tool.server, tool.tool",
        vouched_condition("tool", "tool"),
        vouched_condition("definition", "definition"),
    ))?;
    let mut rows = tools.query(params![principal.0, only])?;
    while let Some(row) = rows.next()? {
        let server = row.get_ref(0)?.as_str()?;
        // A tool that is offered always has the row of its server: both change in one transaction.
        if let Ok(index) = manifests.binary_search_by(|manifest| manifest.server.as_str().cmp(server)) {
            add_tool(&mut manifests[index], &row)?;
        }
    }
    Ok(manifests)
}

fn manifest(row: &Row<'_>) -> rusqlite::Result<Manifest> {
    Ok(Manifest {
        server: server_name(row, 0)?,
        launch: digest(row, 1)?,
        profile: StoredServerProfile {
            info: json(row, 2)?,
            instructions: row.get(3)?,
            protocol_version: row.get(4)?,
            era: row.get(5)?,
            capabilities: json(row, 6)?,
        },
        tools: Vec::new(),
        damaged_tools: Vec::new(),
        seen_at: row.get(7)?,
    })
}

fn add_tool(manifest: &mut Manifest, row: &Row<'_>) -> rusqlite::Result<()> {
    let sound: bool = row.get(6)?;
    match if sound { restore_definition(row.get(5)?, &digest(row, 4)?) } else { None } {
        Some(definition) => manifest.tools.push(StoredTool {
            definition,
            identifier: row.get(2)?,
            first_seen_at: row.get(3)?,
            defined_at: row.get(7)?,
        }),
        None => manifest.damaged_tools.push(row.get(1)?),
    }
    Ok(())
}

fn history(
    connection: &Connection,
    principal: &Principal,
    tool: &ToolId,
) -> rusqlite::Result<Vec<DefinitionVersion>> {
    let known = |row: &Row<'_>| {
        let digest = digest(row, 0)?;
        let definition = if row.get(2)? { restore_definition(row.get(1)?, &digest) } else { None };
        Ok(DefinitionVersion { digest, definition, seen_at: row.get(3)?, replaced_at: row.get(4)? })
    };
    let key = params![principal.0, tool.server.as_str(), tool.tool];
    let sound = vouched_condition("definition", "definition");
    let mut replaced = connection.prepare(&format!(
        "SELECT definition.digest, definition.raw, {sound}, past.seen_at, past.replaced_at
         FROM replaced_definition AS past JOIN definition ON definition.id = past.definition
         WHERE past.principal = ?1 AND past.server = ?2 AND past.tool = ?3 ORDER BY past.id"
    ))?;
    let mut history = replaced.query_map(key, known)?.collect::<rusqlite::Result<Vec<_>>>()?;
    let last = format!(
        "SELECT definition.digest, definition.raw, {sound}, tool.defined_at, NULL
         FROM tool JOIN definition ON definition.id = tool.definition
         WHERE tool.principal = ?1 AND tool.server = ?2 AND tool.tool = ?3"
    );
    history.extend(connection.query_row(&last, key, known).optional()?);
    Ok(history)
}

fn recent_changes(
    connection: &Connection,
    principal: &Principal,
    limit: u32,
) -> rusqlite::Result<Vec<CatalogueChange>> {
    let mut changes = connection.prepare(
        "SELECT server, tool, before, after, at FROM catalogue_change
         WHERE principal = ?1 ORDER BY id DESC LIMIT ?2",
    )?;
    let change = |row: &Row<'_>| {
        Ok(CatalogueChange {
            tool: ToolId { server: server_name(row, 0)?, tool: row.get(1)? },
            before: optional_digest(row, 2)?,
            after: optional_digest(row, 3)?,
            at: row.get(4)?,
        })
    };
    changes.query_map(params![principal.0, limit], change)?.collect()
}

fn json(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Box<RawValue>>> {
    let text: Option<String> = row.get(column)?;
    text.map(RawValue::from_string).transpose().map_err(|error| unexpected_value(column, error))
}
