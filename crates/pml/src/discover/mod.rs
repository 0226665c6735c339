//! Finds tools for an intent.
//!
//! Takes a snapshot of the catalogue and a request, gives one ranked page. It starts nothing and
//! remembers nothing.

pub mod signature;

use pml_graph::rank::{self, Evidence};
use pml_model::json::without_hidden;
use pml_model::name::{is_plain, shortened};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::catalogue::{Snapshot, Tool};
use crate::problem::{Code, Problem};

/// What is looked for.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Request {
    /// What the caller wants to do, in its own words.
    pub intent: String,
    /// Which results count.
    #[serde(default)]
    pub filter: Filter,
    /// How many results.
    #[serde(default = "default_limit")]
    pub limit: usize,
    /// How many to pass over.
    #[serde(default)]
    pub offset: usize,
    /// How much to say of each.
    #[serde(default)]
    pub detail: Detail,
}

/// Which results count.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Filter {
    /// Of which kind.
    #[serde(default, rename = "type")]
    pub kind: Kind,
    /// Only results with at least this score.
    #[serde(default)]
    pub min_score: f64,
}

/// A kind of result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Tools of servers.
    Tool,
    /// Everything there is.
    #[default]
    All,
}

/// How much is said of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Detail {
    /// A signature.
    #[default]
    Brief,
    /// The JSON Schemas too.
    Full,
}

/// The longest intent that is ranked.
pub const MAX_INTENT_BYTES: usize = 8 * 1024;
/// The most results on one page.
pub const MAX_LIMIT: usize = 100;

/// Ten: enough to choose from, little to read.
pub fn default_limit() -> usize {
    10
}

/// One page of results.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Page {
    /// Best first.
    pub results: Vec<Found>,
    /// How many there are on all pages.
    pub total: usize,
    /// What to do where nothing fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestions: Option<Vec<String>>,
}

/// One result.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// `server:tool`.
    pub id: String,
    /// The name to call it by over MCP.
    pub name: String,
    /// Its first sentences.
    pub description: String,
    /// From 0 to 1; means the same on every page.
    pub score: f64,
    /// Why it is here.
    pub reasons: Vec<String>,
    /// A TypeScript declaration, callable as written.
    pub signature: String,
    /// The schemas as the server gives them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schemas: Option<Schemas>,
}

/// JSON Schemas of a tool.
#[derive(Debug, Serialize)]
pub struct Schemas {
    /// Of the arguments.
    pub input: Box<RawValue>,
    /// Of the structured result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Box<RawValue>>,
}

/// Finds what serves the intent, among the tools that are `visible`.
///
/// # Errors
/// The intent is empty or too long, or a number is out of range.
pub fn find(
    snapshot: &Snapshot,
    request: &Request,
    visible: impl Fn(&Tool) -> bool,
) -> Result<Page, Problem> {
    check(request)?;
    let evidence = Evidence { lexical: snapshot.index() };
    let mut ranked = rank::rank(&request.intent, &evidence);
    ranked.retain(|found| {
        shown(found.score) >= request.filter.min_score && visible(&snapshot.tools[found.item])
    });
    let total = ranked.len();
    let page = ranked.iter().skip(request.offset).take(request.limit);
    let results = page
        .map(|found| {
            let reasons = rank::reasons(&request.intent, &evidence, found.item);
            let reasons = reasons.iter().map(ToString::to_string).collect();
            describe(&snapshot.tools[found.item], found.score, reasons, request.detail)
        })
        .collect();
    let suggestions = (total == 0).then(|| suggestions(snapshot));
    Ok(Page { results, total, suggestions })
}

fn check(request: &Request) -> Result<(), Problem> {
    let invalid = |message: String| Err(Problem::new(Code::InvalidRequest, message));
    if request.intent.trim().is_empty() {
        return invalid("`intent` is empty; say in a few words what you want to do".to_owned());
    }
    if request.intent.len() > MAX_INTENT_BYTES {
        return invalid(format!("`intent` is longer than {MAX_INTENT_BYTES} bytes; say it shorter"));
    }
    if request.limit == 0 || request.limit > MAX_LIMIT {
        return invalid(format!("`limit` is {}; it must be from 1 to {MAX_LIMIT}", request.limit));
    }
    if !(0.0..=1.0).contains(&request.filter.min_score) {
        return invalid(format!("`filter.minScore` is {}; it must be from 0 to 1", request.filter.min_score));
    }
    Ok(())
}

fn describe(tool: &Tool, score: f64, reasons: Vec<String>, detail: Detail) -> Found {
    let definition = &tool.definition;
    let schemas = (detail == Detail::Full).then(|| Schemas {
        input: without_hidden(&definition.input_schema),
        output: definition.output_schema.as_deref().map(without_hidden),
    });
    Found {
        kind: Kind::Tool,
        id: tool.id.to_string(),
        name: tool.exposed.clone(),
        description: shorten(definition.description.as_deref().unwrap_or_default()),
        score: shown(score),
        reasons,
        signature: signature::signature(tool.id.server.as_str(), &tool.identifier, definition),
        schemas,
    }
}

/// A score as it is told, and so as it is compared: to three places.
fn shown(score: f64) -> f64 {
    (score * 1000.0).round() / 1000.0
}

/// The longest description in a result; the signature carries the rest.
const DESCRIPTION_CHARACTERS: usize = 200;

fn shorten(text: &str) -> String {
    let clean: String = text.chars().filter(|c| *c == '\n' || is_plain(*c)).collect();
    shortened(clean.trim().lines().next().unwrap_or_default(), DESCRIPTION_CHARACTERS)
}

fn suggestions(snapshot: &Snapshot) -> Vec<String> {
    let servers: Vec<&str> = snapshot.servers.iter().map(|server| server.name.as_str()).take(30).collect();
    let unknown: Vec<&str> = snapshot
        .servers
        .iter()
        .filter(|server| !server.known)
        .map(|server| server.name.as_str())
        .take(10)
        .collect();
    let mut suggestions =
        vec![format!("say it in other words; these servers are connected: {}", servers.join(", "))];
    if !unknown.is_empty() {
        suggestions.push(format!(
            "the tools of {} are not known yet; they are listed once it has started",
            unknown.join(", ")
        ));
    }
    suggestions
}
