//! What servers told about their tools, now and before.
//!
//! A definition that changes is kept with its predecessors, and a tool keeps its identifier for
//! ever, also while it or its whole server is away. Whether a change is welcome is decided
//! elsewhere; here it is only never forgotten.

mod accept;
mod record;
mod restore;
mod rows;

pub use accept::{Acceptance, AcceptedDefinition, AcceptedDefinitions};
use pml_model::{Definition, Digest, Principal, ServerName, ToolId};
use restore::restore;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::value::RawValue;

use crate::column::{digest, optional_digest, server_name, unexpected};
use crate::run::has_questions;
use crate::vouch::vouched;
use crate::{BlockingStore, EndedRule, Error, Urgency, VoidedQuestion};

/// What a server answered when it was asked for its tools.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The server.
    pub server: ServerName,
    /// Digest of how it is started: a changed command is another server.
    pub launch: Digest,
    /// What it says of itself.
    pub about: ServerAbout,
    /// Its tools. Of several with one name the first is taken.
    pub tools: Vec<Definition>,
    /// Which of their definitions count as accepted.
    pub welcome: Welcome,
}

/// Which definitions count as accepted without a person's word on each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Welcome {
    /// Those of the first manifest of a server that is started this way.
    First,
    /// All that are told.
    Always,
}

/// What a server says of itself.
#[derive(Debug, Clone, Default)]
pub struct ServerAbout {
    /// Its name and version, as it wrote them.
    pub info: Option<Box<RawValue>>,
    /// Its words to whoever uses it: data, never instructions to us.
    pub instructions: Option<String>,
    /// The protocol version spoken with it.
    pub protocol_version: Option<String>,
    /// The era of that version, as the package that speaks MCP spells it.
    pub era: Option<String>,
    /// Its capabilities, as it wrote them.
    pub capabilities: Option<Box<RawValue>>,
}

/// A server's tools as it last told them.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The server.
    pub server: ServerName,
    /// Digest of how it was started then.
    pub launch: Digest,
    /// What it said of itself.
    pub about: ServerAbout,
    /// Its tools, by name.
    pub tools: Vec<StoredTool>,
    /// Tools whose stored definition is not what was stored; the server has to be asked again.
    pub unreadable: Vec<String>,
    /// When it told them.
    pub seen_at: i64,
}

/// A tool of a manifest.
#[derive(Debug, Clone)]
pub struct StoredTool {
    /// The definition, byte for byte.
    pub definition: Definition,
    /// What programs call it by: unique within the server and never given to another tool of it.
    pub identifier: String,
    /// When a tool of this name was first seen.
    pub first_seen_at: i64,
    /// Since when it has had this definition. Another time where it had another one in between.
    pub defined_at: i64,
}

/// How a listing differs from what was known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManifestChange {
    /// Tools that are new, or back with the definition they last had.
    pub added: Vec<String>,
    /// Tools that are no longer offered.
    pub removed: Vec<String>,
    /// Tools whose definition is not the one last known, also if they were away in between.
    pub changed: Vec<ChangedTool>,
    /// The rules that were for the definitions those had before, and are void.
    pub voided: Vec<EndedRule>,
    /// The open questions that showed the definitions those had before: nobody can answer them any more.
    pub voided_questions: Vec<VoidedQuestion>,
    /// How the server was started when it was last seen, where that differs.
    pub launch_before: Option<Digest>,
}

/// A tool that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedTool {
    /// Its name.
    pub tool: String,
    /// The definition last known.
    pub before: Digest,
    /// The definition now.
    pub after: Digest,
}

/// A definition a tool has or had.
#[derive(Debug, Clone)]
pub struct KnownDefinition {
    /// Its digest.
    pub digest: Digest,
    /// The definition; `None` where it is not what was stored.
    pub definition: Option<Definition>,
    /// Since when the tool had it.
    pub seen_at: i64,
    /// When another took its place; `None` for the last one known.
    pub replaced_at: Option<i64>,
}

/// A change of a server that was known already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueChange {
    /// The tool.
    pub tool: ToolId,
    /// The definition before; `None` for a tool that was not offered.
    pub before: Option<Digest>,
    /// The definition after; `None` for a tool that is no longer offered.
    pub after: Option<Digest>,
    /// When it was seen.
    pub at: i64,
}

impl BlockingStore {
    /// Takes a listing as the server's manifest and says what is different.
    ///
    /// # Errors
    /// The listing could not be stored; nothing of it was.
    pub fn record_manifest(
        &self,
        principal: &Principal,
        listing: Listing,
        now: i64,
    ) -> Result<ManifestChange, Error> {
        // Other definitions void rules and questions, which the audit log is told of. Where the key cannot be used no rule
        // counts and no question can be read, and servers are known all the same.
        let voids = self.has_rules(principal, &listing.server)?
            || self.read(|connection| has_questions(connection, &listing.server))?;
        let log = match voids {
            true => self.log_within().ok(),
            false => None,
        };
        let urgency = if log.is_some() { Urgency::Durable } else { Urgency::Soon };
        let principal = principal.clone();
        self.change(urgency, move |connection| {
            let change = record::record(connection, &principal, &listing, now)?;
            if let Some(log) = log {
                log.tell(connection, change.voided.iter().map(|rule| rule.audit("rule voided", now)))?;
                log.tell(connection, change.voided_questions.iter().map(|question| question.audit(now)))?;
            }
            Ok(change)
        })
    }

    /// The manifests of all servers, by name.
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

    /// Forgets the manifest of a server and what was accepted of it, and says whether there was one. The
    /// definitions its tools had and their identifiers stay: a server that comes back under the name is compared with what it
    /// was, and programs that call its tools still mean the same ones.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn remove_server(&self, principal: &Principal, server: &ServerName) -> Result<bool, Error> {
        let (principal, server) = (principal.clone(), server.clone());
        self.write(move |connection| record::remove(connection, &principal, &server))
    }

    /// The definitions a tool had, oldest first, and last the one it has or last had. Returning to an
    /// earlier definition is a change like any other. The latest 64
    /// predecessors are kept.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn definition_history(
        &self,
        principal: &Principal,
        tool: &ToolId,
    ) -> Result<Vec<KnownDefinition>, Error> {
        self.read(|connection| history(connection, principal, tool))
    }

    /// The latest changes of servers that were known already, newest first. That a server is seen for
    /// the first time, or removed by its operator, is not among them.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn recent_changes(&self, principal: &Principal, limit: u32) -> Result<Vec<CatalogueChange>, Error> {
        self.read(|connection| recent_changes(connection, principal, limit))
    }

    /// A number that grows with every change of any manifest, in the same commit, whichever process
    /// makes it. Cheap enough to be asked several times a second.
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
        vouched("tool", "tool"),
        vouched("definition", "definition"),
    ))?;
    let mut rows = tools.query(params![principal.0, only])?;
    while let Some(row) = rows.next()? {
        let server = row.get_ref(0)?.as_str()?;
        // Tools that are offered always have a server's row: both change in one transaction.
        if let Ok(index) = manifests.binary_search_by(|manifest| manifest.server.as_str().cmp(server)) {
            add_tool(&mut manifests[index], row)?;
        }
    }
    Ok(manifests)
}

fn manifest(row: &Row<'_>) -> rusqlite::Result<Manifest> {
    Ok(Manifest {
        server: server_name(row, 0)?,
        launch: digest(row, 1)?,
        about: ServerAbout {
            info: json(row, 2)?,
            instructions: row.get(3)?,
            protocol_version: row.get(4)?,
            era: row.get(5)?,
            capabilities: json(row, 6)?,
        },
        tools: Vec::new(),
        unreadable: Vec::new(),
        seen_at: row.get(7)?,
    })
}

fn add_tool(manifest: &mut Manifest, row: &Row<'_>) -> rusqlite::Result<()> {
    let sound: bool = row.get(6)?;
    match if sound { restore(row.get(5)?, &digest(row, 4)?) } else { None } {
        Some(definition) => manifest.tools.push(StoredTool {
            definition,
            identifier: row.get(2)?,
            first_seen_at: row.get(3)?,
            defined_at: row.get(7)?,
        }),
        None => manifest.unreadable.push(row.get(1)?),
    }
    Ok(())
}

fn history(
    connection: &Connection,
    principal: &Principal,
    tool: &ToolId,
) -> rusqlite::Result<Vec<KnownDefinition>> {
    let known = |row: &Row<'_>| {
        let digest = digest(row, 0)?;
        let definition = if row.get(2)? { restore(row.get(1)?, &digest) } else { None };
        Ok(KnownDefinition { digest, definition, seen_at: row.get(3)?, replaced_at: row.get(4)? })
    };
    let key = params![principal.0, tool.server.as_str(), tool.tool];
    let sound = vouched("definition", "definition");
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
    text.map(RawValue::from_string).transpose().map_err(|error| unexpected(column, error))
}
