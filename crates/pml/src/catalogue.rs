//! Which tools there are: the built-in ones and those the servers told of, now or the last time.
//!
//! A [`Snapshot`] never changes; when something does, a new one takes its place. It is made from
//! stored manifests, so it is there before any server has been started.

mod held;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use pml_graph::lexical::{Document, Index};
use pml_mcp::param_headers::{Mirrored, mirrored};
use pml_model::name::{identifier, look_alike};
use pml_model::{Definition, Digest, ServerName, ToolId};
use pml_store::AcceptedDefinition;
use serde_json::Value;

pub use held::{HeldBack, Why, difference};

use crate::config::Naming;
use crate::problem::{Code, Problem, did_you_mean, nearest, unknown_server};

/// The longest name a client is shown.
pub const MAX_EXPOSED: usize = 64;

/// One tool.
#[derive(Debug)]
pub struct Tool {
    /// `server:tool`.
    pub id: ToolId,
    /// What programs call it by: stable, and a JavaScript identifier.
    pub identifier: String,
    /// What clients are shown where every tool is listed.
    pub exposed: String,
    /// What its server says of it.
    pub definition: Arc<Definition>,
    /// Since when it has said so, without saying anything else in between.
    pub defined_at: i64,
    /// Parameters that HTTP clients mirror into headers.
    pub mirrored: Vec<Mirrored>,
}

/// A server as the catalogue knows it.
#[derive(Debug, Clone)]
pub struct Server {
    /// Its name.
    pub name: ServerName,
    /// What it is for, in the operator's, its own or our words.
    pub description: Option<String>,
    /// Whether its tools are known yet.
    pub known: bool,
    /// Its capabilities as it declared them, where known.
    pub capabilities: Option<String>,
}

/// A server's tools, from wherever they are known.
#[derive(Debug)]
pub struct Listing {
    /// The server.
    pub server: Server,
    /// Its tools.
    pub tools: Vec<Offer>,
    /// Which of them may be used.
    pub accepted: Accepted,
}

/// A tool as its server offers it.
#[derive(Debug, Clone)]
pub struct Offer {
    /// What its server says of it; shared, since it is much and is kept by all who know the tool.
    pub definition: Arc<Definition>,
    /// The identifier it keeps.
    pub identifier: String,
    /// When a tool of that name was first seen.
    pub since: i64,
    /// Since when it has had this definition.
    pub defined_at: i64,
}

/// Which definitions of a server may be used.
#[derive(Debug)]
pub enum Accepted {
    /// All it tells.
    All,
    /// Those a person accepted, by tool.
    Only(BTreeMap<String, AcceptedDefinition>),
}

/// All tools at one moment.
#[derive(Debug)]
pub struct Snapshot {
    /// In order of server and tool.
    pub tools: Vec<Tool>,
    /// In order of name.
    pub servers: Vec<Server>,
    /// Tools that are held back.
    pub held_back: Vec<HeldBack>,
    /// Servers that are off without anybody having said so, and why.
    pub off: BTreeMap<String, Problem>,
    by_id: HashMap<ToolId, usize>,
    by_exposed: HashMap<String, usize>,
    index: OnceLock<Index>,
}

impl Snapshot {
    /// Arranges the tools of all servers. Names reserved for PML's own tools are never given away.
    pub fn new(listings: Vec<Listing>, naming: Naming) -> Snapshot {
        let mut listings: BTreeMap<ServerName, Listing> =
            listings.into_iter().map(|listing| (listing.server.name.clone(), listing)).collect();
        let servers = listings.values().map(|listing| listing.server.clone()).collect();
        let (mut tools, mut held_back) = (Vec::new(), Vec::new());
        for (server, listing) in &mut listings {
            let offers = take_accepted(server, listing, &mut held_back);
            for offer in keep_distinct(server, offers, &mut held_back) {
                match mirrored(offer.definition.input_schema.get()) {
                    Ok(mirrored) => tools.push(Tool::new(server, offer, mirrored)),
                    Err(reason) => held_back.push(HeldBack::new(server, offer, Why::Unusable(reason))),
                }
            }
        }
        expose(&mut tools, naming);
        let by_id = tools.iter().enumerate().map(|(index, tool)| (tool.id.clone(), index)).collect();
        let by_exposed =
            tools.iter().enumerate().map(|(index, tool)| (tool.exposed.clone(), index)).collect();
        Snapshot {
            tools,
            servers,
            held_back,
            off: BTreeMap::new(),
            by_id,
            by_exposed,
            index: OnceLock::new(),
        }
    }

    /// The tool of an id.
    ///
    /// # Errors
    /// There is none; the problem names the nearest.
    pub fn tool(&self, id: &ToolId) -> Result<&Tool, Problem> {
        if let Some(index) = self.by_id.get(id) {
            return Ok(&self.tools[*index]);
        }
        if let Some(held) = self.held(id) {
            return Err(held.problem());
        }
        if let Some(why) = self.off.get(id.server.as_str()) {
            return Err(why.clone());
        }
        if !self.servers.iter().any(|server| server.name == id.server) {
            let known = self.servers.iter().map(|server| server.name.as_str());
            return Err(unknown_server(id.server.as_str(), known));
        }
        Err(self.unknown_tool(&id.to_string()))
    }

    /// Where among the tools the one of that id is.
    pub(crate) fn place(&self, id: &str) -> Option<usize> {
        self.by_id.get(&ToolId::parse(id).ok()?).copied()
    }

    /// The tool of an id, if it is held back.
    pub fn held(&self, id: &ToolId) -> Option<&HeldBack> {
        self.held_back.iter().find(|held| held.id == *id)
    }

    /// The tool a client means: by the name it was shown or by id.
    ///
    /// # Errors
    /// There is none; the problem names the nearest.
    pub fn named(&self, name: &str) -> Result<&Tool, Problem> {
        if let Some(index) = self.by_exposed.get(name) {
            return Ok(&self.tools[*index]);
        }
        match ToolId::parse(name) {
            Ok(id) => self.tool(&id),
            Err(_) => match (self.held_named(name), name.split_once("__")) {
                (Some(held), _) => Err(held.problem()),
                (None, Some((server, _))) if self.off.contains_key(server) => Err(self.off[server].clone()),
                (None, _) => Err(self.unknown_tool(&pml_model::name::printable(name))),
            },
        }
    }

    /// The tool that is held back and was shown to clients by this name, if it ever was.
    pub fn held_named(&self, name: &str) -> Option<&HeldBack> {
        self.held_back.iter().find(|held| format!("{}__{}", held.id.server, held.id.tool) == name)
    }

    fn unknown_tool(&self, wanted: &str) -> Problem {
        let ids: Vec<String> = self.tools.iter().map(|tool| tool.id.to_string()).collect();
        let near = nearest(wanted, ids.iter().map(String::as_str));
        let hint = did_you_mean(&near)
            .unwrap_or_else(|| "find tools with `pml_discover` or `pml discover`".to_owned());
        Problem::new(Code::UnknownTool, format!("no tool is called `{wanted}`")).hint(hint)
    }

    /// What the tool called `id` says of itself, if its definition is still that one.
    pub fn description(&self, id: &str, definition: &Digest) -> String {
        let tool = ToolId::parse(id).ok().and_then(|id| self.tool(&id).ok());
        let same = tool.filter(|tool| tool.definition.digest == *definition);
        same.and_then(|tool| tool.definition.description.clone()).unwrap_or_default()
    }

    /// Since when the tool called `id` has had this definition; none where it has another.
    pub fn defined_at(&self, id: &str, definition: &Digest) -> Option<i64> {
        let tool = ToolId::parse(id).ok().and_then(|id| self.tool(&id).ok())?;
        (tool.definition.digest == *definition).then_some(tool.defined_at)
    }

    /// The tools of one server.
    pub fn tools_of<'a>(&'a self, server: &'a ServerName) -> impl Iterator<Item = &'a Tool> {
        self.tools.iter().filter(move |tool| tool.id.server == *server)
    }

    /// What ranking looks tools up in; made when first asked for, because a start must not wait.
    pub fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let texts: Vec<Texts> = self.tools.iter().map(Texts::of).collect();
            Index::build(self.tools.iter().zip(&texts).map(|(tool, texts)| Document {
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

impl Tool {
    fn new(server: &ServerName, offer: Offer, mirrored: Vec<Mirrored>) -> Tool {
        let Offer { definition, identifier, defined_at, .. } = offer;
        let id = ToolId { server: server.clone(), tool: definition.name.clone() };
        Tool { id, identifier, exposed: String::new(), definition, defined_at, mirrored }
    }
}

/// Takes the offers that are accepted; what is new or changed is held back.
fn take_accepted(server: &ServerName, listing: &mut Listing, held_back: &mut Vec<HeldBack>) -> Vec<Offer> {
    let offers = std::mem::take(&mut listing.tools);
    let Accepted::Only(accepted) = &listing.accepted else { return offers };
    let mut kept = Vec::with_capacity(offers.len());
    for offer in offers {
        match Why::of(&offer.definition, accepted.get(&offer.definition.name)) {
            None => kept.push(offer),
            Some(why) => held_back.push(HeldBack::new(server, offer, why)),
        }
    }
    kept
}

/// Leaves out tools that could be taken for another. The one that was there first is kept, and of those that came
/// together one with a plain name.
fn keep_distinct(server: &ServerName, offers: Vec<Offer>, held_back: &mut Vec<HeldBack>) -> Vec<Offer> {
    let mut ranked: Vec<(usize, Offer)> = offers.into_iter().enumerate().collect();
    ranked.sort_by_key(|(_, offer)| (offer.since, !offer.definition.name.is_ascii()));
    let mut seen: HashMap<String, String> = HashMap::new();
    let mut kept = Vec::with_capacity(ranked.len());
    for (place, offer) in ranked {
        let name = offer.definition.name.clone();
        match seen.get(&look_alike(&name)) {
            // `get-sum` and `get_sum` can be told apart and have identifiers of their own.
            Some(other) if !is_plainly_different(other, &name) => {
                held_back.push(HeldBack::new(server, offer, Why::Alike { other: other.clone() }));
            }
            _ => {
                seen.insert(look_alike(&name), name);
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

/// Gives every tool a name of its own for clients: at most 64 letters, digits, `_`, `-` and `.`.
fn expose(tools: &mut [Tool], naming: Naming) {
    let mut plain: HashMap<String, usize> = HashMap::new();
    for tool in tools.iter() {
        *plain.entry(tool.id.tool.clone()).or_default() += 1;
    }
    // A tool that calls itself `server__tool` must not get the name another one has by right.
    let free = |name: &str| plain.get(name) == Some(&1) && !name.starts_with("pml_") && !name.contains("__");
    let wanted = |tool: &Tool| match naming {
        Naming::Plain if free(&tool.id.tool) => tool.id.tool.clone(),
        Naming::Plain | Naming::Qualified => format!("{}__{}", tool.id.server, tool.id.tool),
    };
    let mut claims: HashMap<String, usize> = HashMap::new();
    for tool in tools.iter() {
        *claims.entry(wanted(tool)).or_default() += 1;
    }
    let mut taken = HashSet::new();
    for tool in tools {
        let wanted = wanted(tool);
        let mut name: String = wanted.chars().map(|c| if is_name_character(c) { c } else { '_' }).collect();
        if name.len() > MAX_EXPOSED || name != wanted || claims[&wanted] > 1 || taken.contains(&name) {
            let mark = Digest::of(tool.id.to_string().as_bytes());
            name.truncate(MAX_EXPOSED - 9);
            name = format!("{name}_{}", &mark.as_str()[..8]);
        }
        taken.insert(name.clone());
        tool.exposed = name;
    }
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-' || c == '.'
}

/// The words of a tool's schemas.
struct Texts {
    names: Vec<String>,
    descriptions: Vec<String>,
    outputs: String,
}

impl Texts {
    fn of(tool: &Tool) -> Texts {
        let schema: Value = serde_json::from_str(tool.definition.input_schema.get()).unwrap_or_default();
        let mut texts = Texts { names: Vec::new(), descriptions: Vec::new(), outputs: String::new() };
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

/// The property names and descriptions of an output schema, as far as ranking reads them.
pub(crate) fn collect_words(schema: &Value, words: &mut String) {
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

/// The offers of tools that no store keeps: the built-in ones.
pub fn with_identifiers(definitions: Vec<Definition>) -> Vec<Offer> {
    let offer = |definition: Definition| {
        let identifier = identifier(&definition.name);
        Offer { definition: Arc::new(definition), identifier, since: 0, defined_at: 0 }
    };
    definitions.into_iter().map(offer).collect()
}

/// The snapshot in force.
#[derive(Debug)]
pub struct Catalogue {
    current: RwLock<Arc<Snapshot>>,
}

impl Catalogue {
    /// A catalogue that starts with `snapshot`.
    pub fn new(snapshot: Snapshot) -> Catalogue {
        Catalogue { current: RwLock::new(Arc::new(snapshot)) }
    }

    /// What is known now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts a new snapshot in force and gives back the one it replaces.
    pub fn replace(&self, snapshot: Snapshot) -> Arc<Snapshot> {
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

    fn listing(server: &str, tools: &[&str]) -> Listing {
        let tools = tools
            .iter()
            .map(|name| {
                Definition::parse(
                    RawValue::from_string(serde_json::json!({"name": name}).to_string()).unwrap(),
                )
                .unwrap()
            })
            .collect();
        let server = Server {
            name: ServerName::new(server).unwrap(),
            description: None,
            known: true,
            capabilities: None,
        };
        Listing { server, tools: with_identifiers(tools), accepted: Accepted::All }
    }

    fn exposed(listings: Vec<Listing>, naming: Naming) -> Vec<String> {
        Snapshot::new(listings, naming).tools.into_iter().map(|tool| tool.exposed).collect()
    }

    #[test]
    fn exposed_names_are_short_distinct_and_plain() {
        let long = "x".repeat(100);
        let names = exposed(
            vec![listing("a", &["read", "ré", &long]), listing("a__read", &["x"]), listing("b", &["read"])],
            Naming::Qualified,
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
            Naming::Plain,
        );
        assert_eq!(names, ["a__read", "stat", "a__pml_execute", "b__read"]);
    }

    #[test]
    fn no_tool_can_take_the_name_that_another_has_by_right() {
        let hostile =
            || vec![listing("aaa", &["git__push"]), listing("git", &["push"]), listing("hub", &["push"])];
        let names = exposed(hostile(), Naming::Plain);
        assert_eq!(names, ["aaa__git__push", "git__push", "hub__push"]);
        let names = exposed(vec![listing("a", &["b__c"]), listing("a__b", &["c"])], Naming::Qualified);
        assert!(names.iter().all(|name| name.starts_with("a__b__c_")), "{names:?}");
        assert_ne!(names[0], names[1]);
    }

    #[test]
    fn names_that_cannot_be_told_apart_are_held_back() {
        let snapshot = Snapshot::new(
            vec![listing("a", &["read", "Read", "reаd", "get-sum", "get_sum"])],
            Naming::Qualified,
        );
        let kept: Vec<&str> = snapshot.tools.iter().map(|tool| tool.id.tool.as_str()).collect();
        assert_eq!(kept, ["read", "get-sum", "get_sum"]);
        let held = ToolId::parse("a:Read").unwrap();
        assert_eq!(snapshot.tool(&held).unwrap_err().code, Code::Quarantined);
    }

    #[test]
    fn of_tools_that_look_alike_the_one_that_was_there_first_is_kept() {
        let mut listing = listing("a", &["reаd", "Read", "read"]);
        for (offer, since) in listing.tools.iter_mut().zip([3, 2, 1]) {
            offer.since = since;
        }
        let snapshot = Snapshot::new(vec![listing], Naming::Qualified);
        let kept: Vec<&str> = snapshot.tools.iter().map(|tool| tool.id.tool.as_str()).collect();
        assert_eq!(kept, ["read"]);
    }

    #[test]
    fn what_is_new_or_changed_is_held_back_and_never_pushes_another_out() {
        let mut listing = listing("a", &["read", "stat", "Read", "gone"]);
        let digest = |name: &str, listing: &Listing| {
            let is_it = |offer: &&Offer| offer.definition.name == name;
            listing.tools.iter().find(is_it).unwrap().definition.digest.clone()
        };
        // `Read` says of itself that it was there before.
        listing.tools.iter_mut().for_each(|offer| offer.since = i64::from(offer.definition.name != "Read"));
        let accepted = [("read", digest("read", &listing)), ("stat", Digest::of(b"another"))];
        listing.accepted = Accepted::Only(
            accepted
                .into_iter()
                .map(|(name, digest)| (name.to_owned(), AcceptedDefinition { digest, replaced: None }))
                .collect(),
        );
        let snapshot = Snapshot::new(vec![listing], Naming::Qualified);
        let kept: Vec<&str> = snapshot.tools.iter().map(|tool| tool.id.tool.as_str()).collect();
        assert_eq!(kept, ["read"]);
        let held: Vec<String> =
            snapshot.held_back.iter().map(|held| format!("{}: {}", held.id.tool, held.why)).collect();
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
        let snapshot = Snapshot::new(vec![listing("files", &["read_text"])], Naming::Qualified);
        let text = |name: &str| snapshot.named(name).unwrap_err().to_string();
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
