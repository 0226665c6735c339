//! The tool catalogue: the built-in tools and those of the servers' manifests.
//!
//! A [`ToolSnapshot`] is immutable; a change replaces it by a new one. It is built from stored manifests, so it is
//! available before any server has been started.

mod alike;
mod client_tools;
pub(crate) mod deprecated;
mod quarantine;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use pml_graph::lexical::{LexicalIndex, ToolDocument};
use pml_mcp::param_headers::{MirroredParameter, mirrored_parameters};
use pml_model::name::{confusable_skeleton, js_identifier, nearest};
use pml_model::{Definition, Digest, ServerName, ToolId};
use pml_store::AcceptedDefinition;
use serde_json::Value;

pub use client_tools::ClientTools;
pub(crate) use client_tools::OverlaidTools;
pub use quarantine::{QuarantineReason, QuarantinedTool, difference};

use crate::config::ToolNaming;
use crate::problem::{ErrorCode, Problem, did_you_mean, unknown_server};

/// The longest exposed name, in characters.
pub const MAX_EXPOSED: usize = 64;

/// A tool in the catalogue.
#[derive(Debug)]
pub struct CatalogueTool {
    /// The id, `server:tool`.
    pub id: ToolId,
    /// The name in programs: stable, and a JavaScript identifier.
    pub identifier: String,
    /// The name in `tools/list` when every tool is listed.
    pub exposed_name: String,
    /// The definition from its server.
    pub definition: Arc<Definition>,
    /// When a tool of that name was first seen, in milliseconds since the Unix epoch.
    pub first_seen_at: i64,
    /// Since when it has had this definition without interruption, in the same unit.
    pub defined_at: i64,
    /// The parameters that HTTP clients mirror into headers.
    pub header_parameters: Vec<MirroredParameter>,
}

/// A server in the catalogue.
#[derive(Debug, Clone)]
pub struct CatalogueServer {
    /// Name of the server.
    pub name: ServerName,
    /// The description: the operator's, its own or PML's.
    pub description: Option<String>,
    /// Whether its manifest is known.
    pub tools_known: bool,
    /// Its declared MCP capabilities as JSON, if known.
    pub capabilities: Option<String>,
}

/// A server's tools, live or from the stored manifest.
#[derive(Debug)]
pub struct ServerOffers {
    /// The server.
    pub server: CatalogueServer,
    /// The tools that it offers.
    pub tools: Vec<Offer>,
    /// The definitions that may be used.
    pub accepted: UsableDefinitions,
}

/// A tool as its server offers it.
#[derive(Debug, Clone)]
pub struct Offer {
    /// The definition; shared, because it is large and many parts hold it.
    pub definition: Arc<Definition>,
    /// The identifier, which stays the same.
    pub identifier: String,
    /// When a tool of that name was first seen, in milliseconds since the Unix epoch.
    pub first_seen_at: i64,
    /// Since when it has had this definition, in the same unit.
    pub defined_at: i64,
}

/// The definitions of a server that may be used.
#[derive(Debug)]
pub enum UsableDefinitions {
    /// All that it lists.
    All,
    /// Those that a person accepted, by tool.
    Only(BTreeMap<String, AcceptedDefinition>),
}

/// All tools at one moment.
#[derive(Debug)]
pub struct ToolSnapshot {
    /// The tools, sorted by server and tool.
    pub tools: Vec<CatalogueTool>,
    /// The servers, sorted by name.
    pub servers: Vec<CatalogueServer>,
    /// The quarantined tools.
    pub quarantined: Vec<QuarantinedTool>,
    /// The servers that are off although the configuration does not disable them, with the reason.
    pub disabled_servers: BTreeMap<String, Problem>,
    by_id: HashMap<ToolId, usize>,
    by_exposed: HashMap<String, usize>,
    index: OnceLock<LexicalIndex>,
    kinds: OnceLock<ToolKinds>,
}

/// What ranking needs to know of each tool beside its words.
#[derive(Debug)]
struct ToolKinds {
    first_alike: Vec<usize>,
    deprecated: Vec<bool>,
}

impl ToolSnapshot {
    /// Builds a snapshot of the tools of all servers. Names reserved for PML's own tools are never assigned.
    pub fn new(listings: Vec<ServerOffers>, naming: ToolNaming) -> ToolSnapshot {
        let mut listings: BTreeMap<ServerName, ServerOffers> =
            listings.into_iter().map(|listing| (listing.server.name.clone(), listing)).collect();
        let servers = listings.values().map(|listing| listing.server.clone()).collect();
        let (mut tools, mut held_back) = (Vec::new(), Vec::new());
        for (server, listing) in &mut listings {
            let offers = take_accepted(server, listing, &mut held_back);
            for offer in keep_distinct(server, offers, &mut held_back) {
                match mirrored_parameters(offer.definition.input_schema.get()) {
                    Ok(mirrored) => tools.push(CatalogueTool::new(server, offer, mirrored)),
                    Err(reason) => held_back.push(QuarantinedTool::new(
                        server,
                        offer,
                        QuarantineReason::Unusable(reason),
                    )),
                }
            }
        }
        expose(&mut tools, naming);
        let by_id = tools.iter().enumerate().map(|(index, tool)| (tool.id.clone(), index)).collect();
        let by_exposed =
            tools.iter().enumerate().map(|(index, tool)| (tool.exposed_name.clone(), index)).collect();
        ToolSnapshot {
            tools,
            servers,
            quarantined: held_back,
            disabled_servers: BTreeMap::new(),
            by_id,
            by_exposed,
            index: OnceLock::new(),
            kinds: OnceLock::new(),
        }
    }

    /// The tool with that id.
    ///
    /// # Errors
    /// There is no such tool; the problem names the most similar one.
    pub fn tool(&self, id: &ToolId) -> Result<&CatalogueTool, Problem> {
        if let Some(index) = self.by_id.get(id) {
            return Ok(&self.tools[*index]);
        }
        if let Some(held) = self.find_quarantined(id) {
            return Err(held.problem());
        }
        if let Some(why) = self.disabled_servers.get(id.server.as_str()) {
            return Err(why.clone());
        }
        if !self.servers.iter().any(|server| server.name == id.server) {
            let known = self.servers.iter().map(|server| server.name.as_str());
            return Err(unknown_server(id.server.as_str(), known));
        }
        Err(self.unknown_tool(&id.to_string()))
    }

    /// The index of the tool with that id.
    pub fn index_of(&self, id: &str) -> Option<usize> {
        self.by_id.get(&ToolId::parse(id).ok()?).copied()
    }

    /// The quarantined tool with that id.
    pub fn find_quarantined(&self, id: &ToolId) -> Option<&QuarantinedTool> {
        self.quarantined.iter().find(|held| held.id == *id)
    }

    /// The tool that a client names, by exposed name or id.
    ///
    /// # Errors
    /// There is no such tool; the problem names the most similar one.
    pub fn resolve_name(&self, name: &str) -> Result<&CatalogueTool, Problem> {
        if let Some(index) = self.by_exposed.get(name) {
            return Ok(&self.tools[*index]);
        }
        match ToolId::parse(name) {
            Ok(id) => self.tool(&id),
            Err(_) => match (self.find_quarantined_by_name(name), name.split_once("__")) {
                (Some(held), _) => Err(held.problem()),
                (None, Some((server, _))) if self.disabled_servers.contains_key(server) => {
                    Err(self.disabled_servers[server].clone())
                }
                (None, _) => Err(self.unknown_tool(&pml_model::name::printable(name))),
            },
        }
    }

    /// The quarantined tool that had this exposed name.
    pub fn find_quarantined_by_name(&self, name: &str) -> Option<&QuarantinedTool> {
        self.quarantined.iter().find(|held| format!("{}__{}", held.id.server, held.id.tool) == name)
    }

    fn unknown_tool(&self, wanted: &str) -> Problem {
        let ids: Vec<String> = self.tools.iter().map(|tool| tool.id.to_string()).collect();
        let near = nearest(wanted, ids.iter().map(String::as_str));
        let hint = did_you_mean(&near)
            .unwrap_or_else(|| "find tools with `pml_discover` or `pml discover`".to_owned());
        Problem::new(ErrorCode::UnknownTool, format!("no tool is called `{wanted}`")).hint(hint)
    }

    /// The description of the tool `id`, if its definition is still that one.
    pub fn description(&self, id: &str, definition: &Digest) -> String {
        let tool = ToolId::parse(id).ok().and_then(|id| self.tool(&id).ok());
        let same = tool.filter(|tool| tool.definition.digest == *definition);
        same.and_then(|tool| tool.definition.description.clone()).unwrap_or_default()
    }

    /// Since when the tool `id` has had this definition; `None` if it has another.
    pub fn defined_at(&self, id: &str, definition: &Digest) -> Option<i64> {
        let tool = ToolId::parse(id).ok().and_then(|id| self.tool(&id).ok())?;
        (tool.definition.digest == *definition).then_some(tool.defined_at)
    }

    /// The tools of one server.
    pub fn tools_of<'a>(&'a self, server: &'a ServerName) -> impl Iterator<Item = &'a CatalogueTool> {
        self.tools.iter().filter(move |tool| tool.id.server == *server)
    }

    /// The tool whose number stands for all tools that do the same as the tool `item` of the snapshot: the first of them.
    pub(crate) fn first_alike(&self, item: usize) -> usize {
        self.kinds().first_alike[item]
    }

    /// Whether the tool `item` of the snapshot is deprecated according to its definition.
    pub(crate) fn is_deprecated(&self, item: usize) -> bool {
        self.kinds().deprecated[item]
    }

    /// Found on first use: comparing thousands of tools would delay the start.
    fn kinds(&self) -> &ToolKinds {
        self.kinds.get_or_init(|| ToolKinds {
            first_alike: alike::first_alike(&self.tools),
            deprecated: self.tools.iter().map(deprecated::is_deprecated).collect(),
        })
    }

    /// The word index for ranking; built on first use, because it must not delay the start.
    pub fn index(&self) -> &LexicalIndex {
        self.index.get_or_init(|| {
            let texts: Vec<SchemaWords> = self.tools.iter().map(SchemaWords::of).collect();
            LexicalIndex::build(self.tools.iter().zip(&texts).map(|(tool, texts)| ToolDocument {
                server: tool.id.server.as_str(),
                name: &tool.definition.name,
                description: tool.definition.description.as_deref().unwrap_or_default(),
                parameter_names: texts.names.iter().map(String::as_str).collect(),
                parameter_descriptions: texts.descriptions.iter().map(String::as_str).collect(),
                outputs: &texts.outputs,
            }))
        })
    }
}

impl CatalogueTool {
    fn new(server: &ServerName, offer: Offer, mirrored: Vec<MirroredParameter>) -> CatalogueTool {
        let Offer { definition, identifier, first_seen_at, defined_at } = offer;
        let id = ToolId { server: server.clone(), tool: definition.name.clone() };
        CatalogueTool {
            id,
            identifier,
            exposed_name: String::new(),
            definition,
            first_seen_at,
            defined_at,
            header_parameters: mirrored,
        }
    }
}

/// Takes the accepted offers; new or changed tools are quarantined.
fn take_accepted(
    server: &ServerName,
    listing: &mut ServerOffers,
    held_back: &mut Vec<QuarantinedTool>,
) -> Vec<Offer> {
    let offers = std::mem::take(&mut listing.tools);
    let UsableDefinitions::Only(accepted) = &listing.accepted else { return offers };
    let mut kept = Vec::with_capacity(offers.len());
    for offer in offers {
        match QuarantineReason::of(&offer.definition, accepted.get(&offer.definition.name)) {
            None => kept.push(offer),
            Some(why) => held_back.push(QuarantinedTool::new(server, offer, why)),
        }
    }
    kept
}

/// Quarantines tools whose names could be confused with another. The oldest tool is kept, and of those that arrived
/// together one with a plain name.
fn keep_distinct(
    server: &ServerName,
    offers: Vec<Offer>,
    held_back: &mut Vec<QuarantinedTool>,
) -> Vec<Offer> {
    let mut ranked: Vec<(usize, Offer)> = offers.into_iter().enumerate().collect();
    ranked.sort_by_key(|(_, offer)| (offer.first_seen_at, !offer.definition.name.is_ascii()));
    let mut seen: HashMap<String, String> = HashMap::new();
    let mut kept = Vec::with_capacity(ranked.len());
    for (place, offer) in ranked {
        let name = offer.definition.name.clone();
        match seen.get(&confusable_skeleton(&name)) {
            // `get-sum` and `get_sum` are distinguishable and have distinct identifiers.
            Some(other) if !is_plainly_different(other, &name) => {
                held_back.push(QuarantinedTool::new(
                    server,
                    offer,
                    QuarantineReason::LookAlike { other: other.clone() },
                ));
            }
            _ => {
                seen.insert(confusable_skeleton(&name), name);
                kept.push((place, offer));
            }
        }
    }
    kept.sort_by_key(|(place, _)| *place);
    kept.into_iter().map(|(_, offer)| offer).collect()
}

fn is_plainly_different(a: &str, b: &str) -> bool {
    a.is_ascii() && b.is_ascii() && !a.eq_ignore_ascii_case(b)
}

/// Assigns every tool its exposed name.
fn expose(tools: &mut [CatalogueTool], naming: ToolNaming) {
    let own: Vec<(&ServerName, &str)> =
        tools.iter().map(|tool| (&tool.id.server, tool.id.tool.as_str())).collect();
    let names = exposed_names(&own, naming);
    for (tool, name) in tools.iter_mut().zip(names) {
        tool.exposed_name = name;
    }
}

/// A unique exposed name for each pair of a server and a name that it uses once: at most 64 letters, digits, `_`, `-`
/// and `.`.
pub fn exposed_names(own: &[(&ServerName, &str)], naming: ToolNaming) -> Vec<String> {
    let mut plain: HashMap<&str, usize> = HashMap::new();
    for (_, name) in own {
        *plain.entry(name).or_default() += 1;
    }
    // A tool that calls itself `server__tool` must not take the name that belongs to another.
    let free = |name: &str| plain.get(name) == Some(&1) && !name.starts_with("pml_") && !name.contains("__");
    let wanted = |server: &ServerName, name: &str| match naming {
        ToolNaming::Plain if free(name) => name.to_owned(),
        ToolNaming::Plain | ToolNaming::Qualified => format!("{server}__{name}"),
    };
    let mut claims: HashMap<String, usize> = HashMap::new();
    for (server, name) in own {
        *claims.entry(wanted(server, name)).or_default() += 1;
    }
    let mut taken = HashSet::new();
    let exposed = own.iter().map(|(server, own)| {
        let wanted = wanted(server, own);
        let mut name: String = wanted.chars().map(|c| if is_name_character(c) { c } else { '_' }).collect();
        if name.len() > MAX_EXPOSED || name != wanted || claims[&wanted] > 1 || taken.contains(&name) {
            let mark = Digest::of(format!("{server}:{own}").as_bytes());
            name.truncate(MAX_EXPOSED - 9);
            name = format!("{name}_{}", &mark.as_str()[..8]);
        }
        taken.insert(name.clone());
        name
    });
    exposed.collect()
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.'
}

/// The words in a tool's schemas.
struct SchemaWords {
    names: Vec<String>,
    descriptions: Vec<String>,
    outputs: String,
}

impl SchemaWords {
    fn of(tool: &CatalogueTool) -> SchemaWords {
        let schema: Value = serde_json::from_str(tool.definition.input_schema.get()).unwrap_or_default();
        let mut texts = SchemaWords { names: Vec::new(), descriptions: Vec::new(), outputs: String::new() };
        for (name, parameter) in schema["properties"].as_object().into_iter().flatten() {
            texts.names.push(name.clone());
            texts.descriptions.extend(parameter["description"].as_str().map(str::to_owned));
        }
        if let Some(output) = &tool.definition.output_schema {
            let output: Value = serde_json::from_str(output.get()).unwrap_or_default();
            collect_words(&output, &mut texts.outputs);
        }
        texts
    }
}

/// Collects the property names and descriptions of an output schema that ranking uses.
pub fn collect_words(schema: &Value, words: &mut String) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if words.len() > 1_500 {
            return;
        }
        words.push_str(name);
        words.push(' ');
        if let Some(description) = property["description"].as_str() {
            words.push_str(description);
            words.push(' ');
        }
        collect_words(property, words);
        collect_words(&property["items"], words);
    }
}

/// The offers of tools that are not stored: the built-in ones.
pub fn with_identifiers(definitions: Vec<Definition>) -> Vec<Offer> {
    let offer = |definition: Definition| {
        let identifier = js_identifier(&definition.name);
        Offer { definition: Arc::new(definition), identifier, first_seen_at: 0, defined_at: 0 }
    };
    definitions.into_iter().map(offer).collect()
}

/// The catalogue: the current snapshot.
#[derive(Debug)]
pub struct ToolCatalogue {
    current: RwLock<Arc<ToolSnapshot>>,
}

impl ToolCatalogue {
    /// A catalogue that starts with `snapshot`.
    pub fn new(snapshot: ToolSnapshot) -> ToolCatalogue {
        ToolCatalogue { current: RwLock::new(Arc::new(snapshot)) }
    }

    /// The current snapshot.
    pub fn snapshot(&self) -> Arc<ToolSnapshot> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the snapshot and returns the previous one.
    pub fn replace(&self, snapshot: ToolSnapshot) -> Arc<ToolSnapshot> {
        std::mem::replace(
            &mut *self.current.write().unwrap_or_else(PoisonError::into_inner),
            Arc::new(snapshot),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    fn listing(server: &str, tools: &[&str]) -> ServerOffers {
        let tools = tools
            .iter()
            .map(|name| {
                Definition::parse(
                    RawValue::from_string(serde_json::json!({"name": name}).to_string()).unwrap(),
                )
                .unwrap()
            })
            .collect();
        let server = CatalogueServer {
            name: ServerName::new(server).unwrap(),
            description: None,
            tools_known: true,
            capabilities: None,
        };
        ServerOffers { server, tools: with_identifiers(tools), accepted: UsableDefinitions::All }
    }

    fn exposed(listings: Vec<ServerOffers>, naming: ToolNaming) -> Vec<String> {
        ToolSnapshot::new(listings, naming).tools.into_iter().map(|tool| tool.exposed_name).collect()
    }

    #[test]
    fn exposed_names_are_short_distinct_and_plain() {
        let long = "x".repeat(100);
        let names = exposed(
            vec![listing("a", &["read", "ré", &long]), listing("a__read", &["x"]), listing("b", &["read"])],
            ToolNaming::Qualified,
        );
        assert!(
            names
                .iter()
                .all(|name| name.len() <= MAX_EXPOSED && name.bytes().all(|b| is_name_character(b.into()))),
            "{names:?}"
        );
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        assert_eq!((names[0].as_str(), names.last().unwrap().as_str()), ("a__read", "b__read"));
    }

    #[test]
    fn plain_names_are_kept_where_no_other_tool_has_them() {
        let names = exposed(
            vec![listing("a", &["read", "stat", "pml_execute"]), listing("b", &["read"])],
            ToolNaming::Plain,
        );
        assert_eq!(names, ["a__read", "stat", "a__pml_execute", "b__read"]);
    }

    #[test]
    fn no_tool_can_take_the_name_that_another_has_by_right() {
        let hostile =
            || vec![listing("aaa", &["git__push"]), listing("git", &["push"]), listing("hub", &["push"])];
        let names = exposed(hostile(), ToolNaming::Plain);
        assert_eq!(names, ["aaa__git__push", "git__push", "hub__push"]);
        let names = exposed(vec![listing("a", &["b__c"]), listing("a__b", &["c"])], ToolNaming::Qualified);
        assert!(names.iter().all(|name| name.starts_with("a__b__c_")), "{names:?}");
        assert_ne!(names[0], names[1]);
    }

    #[test]
    fn names_that_cannot_be_told_apart_are_held_back() {
        let snapshot = ToolSnapshot::new(
            vec![listing("a", &["read", "Read", "reаd", "get-sum", "get_sum"])],
            ToolNaming::Qualified,
        );
        let kept: Vec<&str> = snapshot.tools.iter().map(|tool| tool.id.tool.as_str()).collect();
        assert_eq!(kept, ["read", "get-sum", "get_sum"]);
        let held = ToolId::parse("a:Read").unwrap();
        assert_eq!(snapshot.tool(&held).unwrap_err().code, ErrorCode::Quarantined);
    }

    #[test]
    fn of_tools_that_look_alike_the_one_that_was_there_first_is_kept() {
        let mut listing = listing("a", &["reаd", "Read", "read"]);
        for (offer, since) in listing.tools.iter_mut().zip([3, 2, 1]) {
            offer.first_seen_at = since;
        }
        let snapshot = ToolSnapshot::new(vec![listing], ToolNaming::Qualified);
        let kept: Vec<&str> = snapshot.tools.iter().map(|tool| tool.id.tool.as_str()).collect();
        assert_eq!(kept, ["read"]);
    }

    #[test]
    fn what_is_new_or_changed_is_held_back_and_never_pushes_another_out() {
        let mut listing = listing("a", &["read", "stat", "Read", "gone"]);
        let digest = |name: &str, listing: &ServerOffers| {
            let is_it = |offer: &&Offer| offer.definition.name == name;
            listing.tools.iter().find(is_it).unwrap().definition.digest.clone()
        };
        // `Read` claims to have been there before.
        listing
            .tools
            .iter_mut()
            .for_each(|offer| offer.first_seen_at = i64::from(offer.definition.name != "Read"));
        let accepted = [("read", digest("read", &listing)), ("stat", Digest::of(b"another"))];
        listing.accepted = UsableDefinitions::Only(
            accepted
                .into_iter()
                .map(|(name, digest)| (name.to_owned(), AcceptedDefinition { digest, replaced: None }))
                .collect(),
        );
        let snapshot = ToolSnapshot::new(vec![listing], ToolNaming::Qualified);
        let kept: Vec<&str> = snapshot.tools.iter().map(|tool| tool.id.tool.as_str()).collect();
        assert_eq!(kept, ["read"]);
        let held: Vec<String> =
            snapshot.quarantined.iter().map(|held| format!("{}: {}", held.id.tool, held.reason)).collect();
        assert_eq!(
            held,
            [
                "stat: its definition changed after it was accepted",
                "Read: it appeared after its server was accepted",
                "gone: it appeared after its server was accepted"
            ]
        );
    }

    #[test]
    fn unknown_names_come_with_the_nearest() {
        let snapshot = ToolSnapshot::new(vec![listing("files", &["read_text"])], ToolNaming::Qualified);
        let text = |name: &str| snapshot.resolve_name(name).unwrap_err().to_string();
        assert!(
            text("files:read_txt").contains("did you mean `files:read_text`?"),
            "{}",
            text("files:read_txt")
        );
        assert!(text("file:read_text").contains("no server is called `file`"), "{}", text("file:read_text"));
        assert!(text("file:read_text").contains("did you mean `files`?"));
        assert!(text("read_text").contains("did you mean `files:read_text`?"));
    }
}
