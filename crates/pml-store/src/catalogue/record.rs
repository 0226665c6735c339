//! Records a listing: compares it with the stored manifest, then writes the difference.
//!
//! Runs inside one transaction of the writer and never starts or ends one itself.

use std::collections::{HashMap, HashSet};

use crate::sql::{Connection, OptionalExtension, params};
use pml_model::name::js_identifier;
use pml_model::{Definition, Digest, Principal, ServerName};

use super::accept::{self, AcceptanceWriter};
use super::rows::{bump_catalogue_version, delete_unused_definition};
use super::{AcceptancePolicy, ChangedTool, ManifestChange, ServerListing};
use crate::column::digest;
use crate::rule::{self, EndedRule};
use crate::run::void_questions;

/// Number of previous definitions that are kept per tool, so that a server that keeps changing its tools does not fill
/// the disk.
pub(super) const HISTORY: u32 = 64;

/// Number of changes that are kept for display, per principal.
const CHANGES: u32 = 1000;

/// A tool in the database.
struct KnownToolRow {
    identifier: String,
    offered: bool,
    definition: i64,
    content: Digest,
    digest: Digest,
    defined_at: i64,
}

/// The difference of one tool between the listing and the database.
enum ToolDifference<'a> {
    New {
        definition: &'a Definition,
        identifier: String,
    },
    Changed {
        definition: &'a Definition,
        known: &'a KnownToolRow,
    },
    /// The same definition in another spelling, or a tool that is back.
    Refreshed {
        definition: &'a Definition,
        known: &'a KnownToolRow,
    },
    Gone {
        tool: &'a str,
        known: &'a KnownToolRow,
    },
}

/// Target of the changes: the server and its principal.
struct CatalogueWriter<'a> {
    connection: &'a Connection,
    principal: &'a str,
    server: &'a str,
    now: i64,
}

pub(super) fn record_listing(
    connection: &Connection,
    principal: &Principal,
    listing: &ServerListing,
    now: i64,
) -> rusqlite::Result<ManifestChange> {
    let catalogue =
        CatalogueWriter { connection, principal: &principal.0, server: listing.server.as_str(), now };
    let launch_before = catalogue.launch()?;
    let first_time = launch_before.is_none();
    let mut touched = catalogue.put_server(listing)?;
    let known = catalogue.known_tools()?;
    let differences = differences(&known, &listing.tools);
    touched |= !differences.is_empty();
    let mut change = ManifestChange {
        launch_before: launch_before.filter(|before| *before != listing.launch),
        ..ManifestChange::default()
    };
    catalogue.apply(&differences, &mut change)?;
    catalogue.log(&differences, first_time)?;
    let put = AcceptanceWriter {
        principal: &principal.0,
        server: listing.server.as_str(),
        launch: &listing.launch,
        now,
    };
    if put.record_first_meeting(connection)? || listing.acceptance == AcceptancePolicy::EveryManifest {
        touched |= put.accept_all_offered(connection)?;
    }
    if touched {
        bump_catalogue_version(connection, principal)?;
    }
    Ok(change)
}

pub(super) fn remove_manifest(
    connection: &Connection,
    principal: &Principal,
    server: &ServerName,
) -> rusqlite::Result<bool> {
    let key = params![principal.0, server.as_str()];
    let known = connection.execute("DELETE FROM server WHERE principal = ?1 AND server = ?2", key)? > 0;
    if known {
        connection.execute("UPDATE tool SET offered = 0 WHERE principal = ?1 AND server = ?2", key)?;
    }
    accept::forget_accepted(connection, principal, server)?;
    if known {
        bump_catalogue_version(connection, principal)?;
    }
    Ok(known)
}

fn differences<'a>(
    known: &'a HashMap<String, KnownToolRow>,
    listed: &'a [Definition],
) -> Vec<ToolDifference<'a>> {
    let mut taken: HashSet<String> = known.values().map(|tool| tool.identifier.clone()).collect();
    let mut seen = HashSet::with_capacity(listed.len());
    let mut differences = Vec::new();
    for definition in in_naming_order(listed) {
        if !seen.insert(definition.name.as_str()) {
            continue;
        }
        match known.get(&definition.name) {
            None => {
                let identifier = free_identifier(&definition.name, &mut taken);
                differences.push(ToolDifference::New { definition, identifier });
            }
            Some(known) if known.digest != definition.digest => {
                differences.push(ToolDifference::Changed { definition, known });
            }
            Some(known) if !known.offered || known.content != content(definition) => {
                differences.push(ToolDifference::Refreshed { definition, known });
            }
            Some(_) => {}
        }
    }
    let gone = known.iter().filter(|(tool, known)| known.offered && !seen.contains(tool.as_str()));
    let mut gone: Vec<_> = gone.map(|(tool, known)| ToolDifference::Gone { tool, known }).collect();
    gone.sort_by(|a, b| a.tool().cmp(b.tool()));
    differences.extend(gone);
    differences
}

/// The order in which identifiers are assigned: a tool whose name is a valid identifier keeps it, in whatever order
/// the server lists its tools.
fn in_naming_order(listed: &[Definition]) -> Vec<&Definition> {
    let mut ordered: Vec<&Definition> = listed.iter().collect();
    // The sort is stable, so that of several tools with one name the first stays first.
    ordered.sort_by_cached_key(|tool| (js_identifier(&tool.name) != tool.name, tool.name.clone()));
    ordered
}

fn free_identifier(tool: &str, taken: &mut HashSet<String>) -> String {
    let plain = js_identifier(tool);
    let numbered = (2_u64..).map(|number| format!("{plain}_{number}"));
    let free = std::iter::once(plain.clone())
        .chain(numbered)
        .find(|candidate| !taken.contains(candidate))
        .expect("there are more numbers than identifiers in a set");
    taken.insert(free.clone());
    free
}

fn content(definition: &Definition) -> Digest {
    Digest::of(definition.raw.get().as_bytes())
}

impl ToolDifference<'_> {
    fn tool(&self) -> &str {
        match self {
            ToolDifference::New { definition, .. }
            | ToolDifference::Changed { definition, .. }
            | ToolDifference::Refreshed { definition, .. } => &definition.name,
            ToolDifference::Gone { tool, .. } => tool,
        }
    }

    /// The digests to report as before and after; `None` if nothing changed that a caller relies on.
    fn digests(&self) -> Option<(Option<&Digest>, Option<&Digest>)> {
        match self {
            ToolDifference::New { definition, .. } => Some((None, Some(&definition.digest))),
            ToolDifference::Changed { definition, known } => {
                Some((Some(&known.digest), Some(&definition.digest)))
            }
            ToolDifference::Refreshed { known, .. } if known.offered => None,
            ToolDifference::Refreshed { definition, .. } => Some((None, Some(&definition.digest))),
            ToolDifference::Gone { known, .. } => Some((Some(&known.digest), None)),
        }
    }
}

impl CatalogueWriter<'_> {
    fn launch(&self) -> rusqlite::Result<Option<Digest>> {
        self.connection
            .query_row(
                "SELECT launch FROM server WHERE principal = ?1 AND server = ?2",
                [self.principal, self.server],
                |row| digest(row, 0),
            )
            .optional()
    }

    /// Stores what the server says of itself and returns whether it changed.
    fn put_server(&self, listing: &ServerListing) -> rusqlite::Result<bool> {
        let about = &listing.profile;
        let row = params![
            self.principal,
            self.server,
            listing.launch.as_str(),
            about.info.as_ref().map(|raw| raw.get()),
            about.instructions,
            about.protocol_version,
            about.era,
            about.capabilities.as_ref().map(|raw| raw.get()),
            self.now,
        ];
        let same = self.connection.execute(
            "UPDATE server SET seen_at = ?9 WHERE principal = ?1 AND server = ?2 AND launch = ?3 AND info IS ?4
             AND instructions IS ?5 AND protocol_version IS ?6 AND era IS ?7 AND capabilities IS ?8",
            row,
        )? > 0;
        if !same {
            self.connection.execute(
                "INSERT OR REPLACE INTO server (principal, server, launch, info, instructions,
                     protocol_version, era, capabilities, seen_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                row,
            )?;
        }
        Ok(!same)
    }

    fn known_tools(&self) -> rusqlite::Result<HashMap<String, KnownToolRow>> {
        let mut tools = self.connection.prepare(
            "SELECT tool.tool, tool.identifier, tool.offered, definition.id, definition.content,
                    definition.digest, tool.defined_at
             FROM tool JOIN definition ON definition.id = tool.definition
             WHERE tool.principal = ?1 AND tool.server = ?2",
        )?;
        let rows = tools.query_map([self.principal, self.server], |row| {
            let known = KnownToolRow {
                identifier: row.get(1)?,
                offered: row.get(2)?,
                definition: row.get(3)?,
                content: digest(row, 4)?,
                digest: digest(row, 5)?,
                defined_at: row.get(6)?,
            };
            Ok((row.get(0)?, known))
        })?;
        rows.collect()
    }

    fn apply(&self, differences: &[ToolDifference<'_>], change: &mut ManifestChange) -> rusqlite::Result<()> {
        let mut insert = self.connection.prepare(
            "INSERT INTO tool (principal, server, tool, identifier, offered, definition, defined_at, first_seen_at)
             VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?6)",
        )?;
        for difference in differences {
            let tool = difference.tool().to_owned();
            match difference {
                ToolDifference::New { definition, identifier } => {
                    let id = self.put_definition(definition)?;
                    insert.execute(params![self.principal, self.server, tool, identifier, id, self.now])?;
                    change.added.push(tool);
                }
                ToolDifference::Changed { definition, known } => {
                    change.voided_rules.extend(self.replace(definition, known)?);
                    let id = format!("{}:{}", self.server, definition.name);
                    change.voided_questions.extend(void_questions(self.connection, self.principal, &id)?);
                    let (before, after) = (known.digest.clone(), definition.digest.clone());
                    change.changed.push(ChangedTool { tool, before, after });
                }
                ToolDifference::Refreshed { definition, known } => {
                    let id = self.offer(definition, known.defined_at)?;
                    self.accept_spelling(&tool, known.definition, id)?;
                    delete_unused_definition(self.connection, known.definition)?;
                    if !known.offered {
                        change.added.push(tool);
                    }
                }
                ToolDifference::Gone { .. } => {
                    self.withdraw(&tool)?;
                    change.removed.push(tool);
                }
            }
        }
        change.added.sort_unstable();
        change.changed.sort_unstable_by(|a, b| a.tool.cmp(&b.tool));
        Ok(())
    }

    /// Replaces the definition of a tool and moves the previous one to the history. Rules for the previous definition
    /// end, and stay void even if it returns.
    fn replace(&self, definition: &Definition, known: &KnownToolRow) -> rusqlite::Result<Vec<EndedRule>> {
        self.connection.execute(
            "INSERT INTO replaced_definition (principal, server, tool, definition, seen_at, replaced_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            params![
                self.principal,
                self.server,
                definition.name,
                known.definition,
                known.defined_at,
                self.now
            ],
        )?;
        let tool = format!("{}:{}", self.server, definition.name);
        let voided = rule::void_rules(self.connection, self.principal, &tool, &definition.digest, self.now)?;
        self.offer(definition, self.now)?;
        self.shorten_history(&definition.name)?;
        Ok(voided)
    }

    fn shorten_history(&self, tool: &str) -> rusqlite::Result<()> {
        let mut old = self.connection.prepare(
            "DELETE FROM replaced_definition WHERE id IN (
                 SELECT id FROM replaced_definition WHERE principal = ?1 AND server = ?2 AND tool = ?3
                 ORDER BY id DESC LIMIT -1 OFFSET ?4)
             RETURNING definition",
        )?;
        let rows = old.query_map(params![self.principal, self.server, tool, HISTORY], |row| row.get(0))?;
        let dropped: Vec<i64> = rows.collect::<rusqlite::Result<_>>()?;
        dropped.into_iter().try_for_each(|id| delete_unused_definition(self.connection, id))
    }

    /// Accepts this spelling of a definition if another spelling of it was accepted.
    fn accept_spelling(&self, tool: &str, before: i64, now: i64) -> rusqlite::Result<()> {
        self.connection.execute(
            "UPDATE accepted_definition SET definition = ?5
             WHERE principal = ?1 AND server = ?2 AND tool = ?3 AND definition = ?4",
            params![self.principal, self.server, tool, before, now],
        )?;
        Ok(())
    }

    fn offer(&self, definition: &Definition, defined_at: i64) -> rusqlite::Result<i64> {
        let id = self.put_definition(definition)?;
        self.connection.execute(
            "UPDATE tool SET offered = 1, definition = ?4, defined_at = ?5
             WHERE principal = ?1 AND server = ?2 AND tool = ?3",
            params![self.principal, self.server, definition.name, id, defined_at],
        )?;
        Ok(id)
    }

    fn withdraw(&self, tool: &str) -> rusqlite::Result<()> {
        self.connection.execute(
            "UPDATE tool SET offered = 0 WHERE principal = ?1 AND server = ?2 AND tool = ?3",
            [self.principal, self.server, tool],
        )?;
        Ok(())
    }

    fn put_definition(&self, definition: &Definition) -> rusqlite::Result<i64> {
        let content = content(definition);
        let stored = "SELECT id FROM definition WHERE principal = ?1 AND content = ?2";
        let id = self.connection.query_row(stored, [self.principal, content.as_str()], |row| row.get(0));
        if let Some(id) = id.optional()? {
            return Ok(id);
        }
        self.connection.execute(
            "INSERT INTO definition (principal, content, digest, raw) VALUES (?1, ?2, ?3, ?4)",
            [self.principal, content.as_str(), definition.digest.as_str(), definition.raw.get()],
        )?;
        Ok(self.connection.last_insert_rowid())
    }

    /// Stores the changes for display. On the first listing of a server all tools are new, which is not recorded. A
    /// definition that changed while the server was away is recorded all the same.
    fn log(&self, differences: &[ToolDifference<'_>], first_time: bool) -> rusqlite::Result<()> {
        let mut insert = self.connection.prepare(
            "INSERT INTO catalogue_change (principal, server, tool, before, after, at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        for difference in differences {
            let Some((before, after)) = difference.digests() else { continue };
            if first_time && before.is_none() {
                continue;
            }
            let (before, after) = (before.map(Digest::as_str), after.map(Digest::as_str));
            insert.execute(params![
                self.principal,
                self.server,
                difference.tool(),
                before,
                after,
                self.now
            ])?;
        }
        self.connection.execute(
            "DELETE FROM catalogue_change WHERE id IN (
                 SELECT id FROM catalogue_change WHERE principal = ?1 ORDER BY id DESC LIMIT -1 OFFSET ?2)",
            params![self.principal, CHANGES],
        )?;
        Ok(())
    }
}
