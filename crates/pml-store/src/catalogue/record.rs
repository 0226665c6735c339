//! Takes a listing in: compares it with what is known, then writes the difference.
//!
//! Runs inside one transaction of the writer and never starts or ends one itself.

use std::collections::{HashMap, HashSet};

use pml_model::name::identifier;
use pml_model::{Definition, Digest, Principal, ServerName};
use rusqlite::{Connection, OptionalExtension, params};

use super::accept::{self, Put};
use super::rows::{bump_version, drop_unused};
use super::{ChangedTool, Listing, ManifestChange, Welcome};
use crate::column::digest;
use crate::rule::{self, EndedRule};
use crate::run::void_questions;

/// How many predecessors of a definition are kept, so that a server that changes its tools without
/// end does not fill the disk.
pub(super) const HISTORY: u32 = 64;

/// How many changes are kept for showing, for each principal.
const CHANGES: u32 = 1000;

/// A tool as the database has it.
struct Known {
    identifier: String,
    offered: bool,
    definition: i64,
    content: Digest,
    digest: Digest,
    defined_at: i64,
}

/// One tool's difference between the listing and what is known.
enum Difference<'a> {
    New {
        definition: &'a Definition,
        identifier: String,
    },
    Changed {
        definition: &'a Definition,
        known: &'a Known,
    },
    /// Another text of the same meaning, or a tool that is back.
    Refreshed {
        definition: &'a Definition,
        known: &'a Known,
    },
    Gone {
        tool: &'a str,
        known: &'a Known,
    },
}

/// Where rows go.
struct Catalogue<'a> {
    connection: &'a Connection,
    principal: &'a str,
    server: &'a str,
    now: i64,
}

pub(super) fn record(
    connection: &Connection,
    principal: &Principal,
    listing: &Listing,
    now: i64,
) -> rusqlite::Result<ManifestChange> {
    let catalogue = Catalogue { connection, principal: &principal.0, server: listing.server.as_str(), now };
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
    let put = Put { principal: &principal.0, server: listing.server.as_str(), launch: &listing.launch, now };
    if put.first_met(connection)? || listing.welcome == Welcome::Always {
        touched |= put.all_offered(connection)?;
    }
    if touched {
        bump_version(connection, principal)?;
    }
    Ok(change)
}

pub(super) fn remove(
    connection: &Connection,
    principal: &Principal,
    server: &ServerName,
) -> rusqlite::Result<bool> {
    let key = params![principal.0, server.as_str()];
    let known = connection.execute("DELETE FROM server WHERE principal = ?1 AND server = ?2", key)? > 0;
    if known {
        connection.execute("UPDATE tool SET offered = 0 WHERE principal = ?1 AND server = ?2", key)?;
    }
    accept::forget(connection, principal, server)?;
    if known {
        bump_version(connection, principal)?;
    }
    Ok(known)
}

fn differences<'a>(known: &'a HashMap<String, Known>, listed: &'a [Definition]) -> Vec<Difference<'a>> {
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
                differences.push(Difference::New { definition, identifier });
            }
            Some(known) if known.digest != definition.digest => {
                differences.push(Difference::Changed { definition, known });
            }
            Some(known) if !known.offered || known.content != content(definition) => {
                differences.push(Difference::Refreshed { definition, known });
            }
            Some(_) => {}
        }
    }
    let gone = known.iter().filter(|(tool, known)| known.offered && !seen.contains(tool.as_str()));
    let mut gone: Vec<_> = gone.map(|(tool, known)| Difference::Gone { tool, known }).collect();
    gone.sort_by(|a, b| a.tool().cmp(b.tool()));
    differences.extend(gone);
    differences
}

/// The order in which identifiers are given: a tool whose name is one already keeps it, whatever
/// the order in which the server lists its tools.
fn in_naming_order(listed: &[Definition]) -> Vec<&Definition> {
    let mut ordered: Vec<&Definition> = listed.iter().collect();
    // Stable, so that of several tools with one name the first stays first.
    ordered.sort_by_cached_key(|tool| (identifier(&tool.name) != tool.name, tool.name.clone()));
    ordered
}

fn free_identifier(tool: &str, taken: &mut HashSet<String>) -> String {
    let plain = identifier(tool);
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

impl Difference<'_> {
    fn tool(&self) -> &str {
        match self {
            Difference::New { definition, .. }
            | Difference::Changed { definition, .. }
            | Difference::Refreshed { definition, .. } => &definition.name,
            Difference::Gone { tool, .. } => tool,
        }
    }

    /// The digests to show as before and after; `None` where nothing a caller relies on changed.
    fn digests(&self) -> Option<(Option<&Digest>, Option<&Digest>)> {
        match self {
            Difference::New { definition, .. } => Some((None, Some(&definition.digest))),
            Difference::Changed { definition, known } => {
                Some((Some(&known.digest), Some(&definition.digest)))
            }
            Difference::Refreshed { known, .. } if known.offered => None,
            Difference::Refreshed { definition, .. } => Some((None, Some(&definition.digest))),
            Difference::Gone { known, .. } => Some((Some(&known.digest), None)),
        }
    }
}

impl Catalogue<'_> {
    fn launch(&self) -> rusqlite::Result<Option<Digest>> {
        self.connection
            .query_row(
                "SELECT launch FROM server WHERE principal = ?1 AND server = ?2",
                [self.principal, self.server],
                |row| digest(row, 0),
            )
            .optional()
    }

    /// Stores what the server says of itself and tells whether it is anything new.
    fn put_server(&self, listing: &Listing) -> rusqlite::Result<bool> {
        let about = &listing.about;
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

    fn known_tools(&self) -> rusqlite::Result<HashMap<String, Known>> {
        let mut tools = self.connection.prepare(
            "SELECT tool.tool, tool.identifier, tool.offered, definition.id, definition.content,
                    definition.digest, tool.defined_at
             FROM tool JOIN definition ON definition.id = tool.definition
             WHERE tool.principal = ?1 AND tool.server = ?2",
        )?;
        let rows = tools.query_map([self.principal, self.server], |row| {
            let known = Known {
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

    fn apply(&self, differences: &[Difference<'_>], change: &mut ManifestChange) -> rusqlite::Result<()> {
        let mut insert = self.connection.prepare(
            "INSERT INTO tool (principal, server, tool, identifier, offered, definition, defined_at, first_seen_at)
             VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?6)",
        )?;
        for difference in differences {
            let tool = difference.tool().to_owned();
            match difference {
                Difference::New { definition, identifier } => {
                    let id = self.put_definition(definition)?;
                    insert.execute(params![self.principal, self.server, tool, identifier, id, self.now])?;
                    change.added.push(tool);
                }
                Difference::Changed { definition, known } => {
                    change.voided.extend(self.replace(definition, known)?);
                    let id = format!("{}:{}", self.server, definition.name);
                    change.voided_questions.extend(void_questions(self.connection, self.principal, &id)?);
                    let (before, after) = (known.digest.clone(), definition.digest.clone());
                    change.changed.push(ChangedTool { tool, before, after });
                }
                Difference::Refreshed { definition, known } => {
                    let id = self.offer(definition, known.defined_at)?;
                    self.accept_spelling(&tool, known.definition, id)?;
                    drop_unused(self.connection, known.definition)?;
                    if !known.offered {
                        change.added.push(tool);
                    }
                }
                Difference::Gone { .. } => {
                    self.withdraw(&tool)?;
                    change.removed.push(tool);
                }
            }
        }
        change.added.sort_unstable();
        change.changed.sort_unstable_by(|a, b| a.tool.cmp(&b.tool));
        Ok(())
    }

    /// Puts the definition in place of the one last known, which goes into the history. What people allowed for later
    /// runs was for that one, and stays void should it come back.
    fn replace(&self, definition: &Definition, known: &Known) -> rusqlite::Result<Vec<EndedRule>> {
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
        let voided = rule::void(self.connection, self.principal, &tool, &definition.digest, self.now)?;
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
        dropped.into_iter().try_for_each(|id| drop_unused(self.connection, id))
    }

    /// Where another text of the same meaning was accepted, this one is.
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

    /// Keeps the changes for showing. Of a server that is new every tool is, which tells nothing;
    /// a definition that changed while the server was away is told all the same.
    fn log(&self, differences: &[Difference<'_>], first_time: bool) -> rusqlite::Result<()> {
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
