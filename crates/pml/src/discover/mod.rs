//! Finds tools and capabilities for an intent.
//!
//! Takes a snapshot of the catalogue, the capabilities that memory found and a request, gives one ranked page. It starts nothing and
//! remembers nothing.

mod prior;
pub mod signature;

use std::collections::HashMap;

use pml_graph::graph::closeness::Close;
use pml_graph::past::Advice;
use pml_graph::rank;
use pml_graph::vectors::Vectors;
use pml_model::ServerName;
use pml_model::capability::{Source, reliability};
use pml_model::json::without_hidden;
use pml_model::name::{is_plain, shortened};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::catalogue::{Snapshot, Tool};
use crate::knowledge::embeddings::{Progress, Wanted, evidence};
use crate::knowledge::{Candidate, Observed, Uses};
use crate::problem::{Code, Problem};
pub(crate) use prior::Prior;

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

impl Request {
    /// The first results for an intent.
    pub fn new(intent: String, limit: usize) -> Request {
        Request { intent, filter: Filter::default(), limit, offset: 0, detail: Detail::default() }
    }
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
    /// Procedures that worked before.
    Capability,
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

/// How many servers that have not listed their tools are named: the reply has a budget.
const MAX_UNREADY: usize = 3;

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
    /// What to do where nothing fits, and what else to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestions: Option<Vec<String>>,
}

impl Page {
    /// Says that more will be found once everything was read.
    pub(crate) fn note(&mut self, progress: Option<Progress>) {
        let Some(Progress { left: left @ 1.., trouble, .. }) = progress else { return };
        let why = match trouble {
            Some(trouble) => format!(": {}", pml_model::name::printable(&trouble)),
            None => String::new(),
        };
        let note = format!("{left} texts are not read yet, such tools are found by their words alone{why}");
        self.suggestions.get_or_insert_default().push(note);
    }

    /// Says of which servers nothing can be found yet, and why.
    pub(crate) fn note_unready(&mut self, servers: &[(ServerName, Problem)]) {
        for (_, problem) in servers.iter().take(MAX_UNREADY) {
            self.suggestions.get_or_insert_default().push(problem.message.clone());
        }
        if let Some(more @ 1..) = servers.len().checked_sub(MAX_UNREADY) {
            let note =
                format!("{more} more servers have not listed their tools; `pml list` shows their state");
            self.suggestions.get_or_insert_default().push(note);
        }
    }
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
    /// How often it worked of the times it was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_rate: Option<f64>,
    /// How often it was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_count: Option<u64>,
    /// Of a capability: what there is to know beside that.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub learned: Option<Learned>,
}

/// What is known of a capability.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Learned {
    /// The beginning of what it runs.
    pub source: String,
    /// What it takes; with full detail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<serde_json::Value>,
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

/// Finds what serves the intent, among the tools that are `visible` and the capabilities that have to do with it.
///
/// # Errors
/// The intent is empty or too long, or a number is out of range.
pub(crate) fn find(
    snapshot: &Snapshot,
    known: &Recalled<'_>,
    request: &Request,
    visible: impl Fn(&Tool) -> bool,
) -> Result<Page, Problem> {
    check(request)?;
    let words;
    let wanted = match known.wanted {
        Some(wanted) => wanted,
        None => {
            words = Wanted::words(&request.intent);
            &words
        }
    };
    let evidence = evidence(snapshot, known.vectors, wanted, known.past);
    let tools = rank::rank(&wanted.text, &evidence).into_iter();
    let tools = tools.filter(|found| visible(&snapshot.tools[found.item]));
    let priors = known.priors(snapshot);
    let tools = tools.map(|found| {
        let prior = priors.get(&found.item).copied().unwrap_or_default();
        (prior.apply(found.score), Item::Tool(found.item))
    });
    let capabilities = known
        .capabilities
        .iter()
        .map(|found| (known.prior(found.known.id.as_str()).apply(found.score), Item::Capability(found)));
    let asked_for = |item: &Item<'_>| match request.filter.kind {
        Kind::All => true,
        Kind::Tool => matches!(item, Item::Tool(_)),
        Kind::Capability => matches!(item, Item::Capability(_)),
    };
    // Of equals the one that worked before comes first; among each other both are in order already.
    let mut ranked: Vec<(f64, Item<'_>)> = capabilities.chain(tools).collect();
    ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
    ranked.retain(|(score, item)| asked_for(item) && shown(*score) >= request.filter.min_score);
    let total = ranked.len();
    let page = ranked.iter().skip(request.offset).take(request.limit);
    let results = page
        .map(|(score, item)| match item {
            Item::Tool(item) => {
                let reasons = rank::reasons(&wanted.text, &evidence, *item);
                let reasons = reasons.iter().map(ToString::to_string).collect();
                describe(&snapshot.tools[*item], known, *score, reasons, request.detail)
            }
            Item::Capability(found) => learned(found, known, *score, request.detail),
        })
        .collect();
    let suggestions = (total == 0).then(|| suggestions(snapshot));
    Ok(Page { results, total, suggestions })
}

/// The tools that are most likely wanted among those that are `eligible`, best first, with how likely each is.
pub(crate) fn best<'s>(
    snapshot: &'s Snapshot,
    vectors: Option<&Vectors>,
    wanted: &Wanted,
    past: Option<&Advice>,
    most: usize,
    eligible: impl Fn(&Tool) -> bool,
) -> Vec<(&'s Tool, f64)> {
    let evidence = evidence(snapshot, vectors, wanted, past);
    let ranked = rank::rank_among(&wanted.text, &evidence, |item| eligible(&snapshot.tools[item]));
    ranked.into_iter().take(most).map(|found| (&snapshot.tools[found.item], found.score)).collect()
}

/// What is remembered that has to do with a request.
#[derive(Debug, Default)]
pub(crate) struct Recalled<'m> {
    /// Capabilities, best first.
    pub(crate) capabilities: Vec<Candidate>,
    /// What tools were seen to give.
    pub(crate) observed: Option<&'m Observed>,
    /// What is wanted; by the words of the request where nothing is said.
    pub(crate) wanted: Option<&'m Wanted>,
    /// What the tools mean, in the order of the snapshot.
    pub(crate) vectors: Option<&'m Vectors>,
    /// What past requests say of the tools.
    pub(crate) past: Option<&'m Advice>,
    /// How often tools were called and failed.
    pub(crate) uses: Option<&'m Uses>,
    /// What hangs together with what was just used, by id.
    pub(crate) close: HashMap<String, Close>,
}

/// What adds less than this is not told.
const TOLD: f64 = 0.2;

impl Recalled<'_> {
    fn prior(&self, id: &str) -> Prior {
        let works = self.uses.and_then(|uses| uses.get(id));
        let works =
            works.map_or(1.0, |uses| reliability(uses.calls.saturating_sub(uses.failures), uses.calls));
        Prior { works, close: self.close.get(id).map_or(0.0, |close| close.score) }
    }

    /// The priors of tools that have one, by their places.
    fn priors(&self, snapshot: &Snapshot) -> HashMap<usize, Prior> {
        let known = self.uses.into_iter().flat_map(HashMap::keys).chain(self.close.keys());
        known.filter_map(|id| Some((snapshot.place(id)?, self.prior(id)))).collect()
    }

    /// Why something may be wanted next.
    fn closeness(&self, id: &str) -> Option<String> {
        self.close.get(id).filter(|close| close.score >= TOLD).map(|close| close.reason.clone())
    }
}

/// Something that was found.
enum Item<'c> {
    Tool(usize),
    Capability(&'c Candidate),
}

/// How many characters of what a capability runs are shown.
const SOURCE_CHARACTERS: usize = 400;

fn learned(found: &Candidate, recalled: &Recalled<'_>, score: f64, detail: Detail) -> Found {
    let known = &found.known;
    let statistics = &known.statistics;
    let mut reasons = Vec::new();
    if let Some(like) = &found.like {
        reasons.push(format!("served “{}”, which is {:.2} alike", shorten(like), found.similarity));
    }
    let tried = statistics.success_count + statistics.failure_count;
    if tried > 0 {
        reasons.push(format!("worked {} of {tried} times", statistics.success_count));
    }
    reasons.extend(recalled.closeness(known.id.as_str()));
    let source = match &known.source {
        Source::Code { code, .. } => code.clone(),
        Source::Dag { dag_structure, .. } => dag_structure.get().to_owned(),
        Source::Tool { tool_id, .. } => tool_id.clone(),
    };
    Found {
        kind: Kind::Capability,
        id: known.id.to_string(),
        name: known.name.clone(),
        description: shorten(&known.description),
        score: shown(score),
        reasons,
        success_rate: statistics.success_rate(),
        usage_count: Some(statistics.usage_count),
        signature: signature::capability(&known.name, &known.description, &known.parameters),
        schemas: None,
        learned: Some(Learned {
            source: shortened(&source, SOURCE_CHARACTERS),
            parameters: (detail == Detail::Full).then(|| known.parameters.clone()),
        }),
    }
}

/// Refuses an intent that is too long. Every door that takes one asks here: it is read, embedded, compared and kept.
pub(crate) fn check_length(intent: &str) -> Result<(), Problem> {
    if intent.len() <= MAX_INTENT_BYTES {
        return Ok(());
    }
    let text = format!("`intent` has {} bytes and may have {MAX_INTENT_BYTES}", intent.len());
    Err(Problem::new(Code::InvalidRequest, text)
        .hint("say it shorter; values go into `context`, and programs into `implementation`"))
}

/// Whether that can be looked for.
pub(crate) fn check(request: &Request) -> Result<(), Problem> {
    let invalid = |message: String| Err(Problem::new(Code::InvalidRequest, message));
    if request.intent.trim().is_empty() {
        return invalid("`intent` is empty; say in a few words what you want to do".to_owned());
    }
    check_length(&request.intent)?;
    if request.limit == 0 || request.limit > MAX_LIMIT {
        return invalid(format!("`limit` is {}; it must be from 1 to {MAX_LIMIT}", request.limit));
    }
    if !(0.0..=1.0).contains(&request.filter.min_score) {
        return invalid(format!("`filter.minScore` is {}; it must be from 0 to 1", request.filter.min_score));
    }
    Ok(())
}

fn describe(
    tool: &Tool,
    recalled: &Recalled<'_>,
    score: f64,
    mut reasons: Vec<String>,
    detail: Detail,
) -> Found {
    let definition = &tool.definition;
    let id = tool.id.to_string();
    let uses = recalled.uses.and_then(|uses| uses.get(&id)).filter(|uses| uses.calls > 0);
    // That something works is what everybody expects; a brief page has no room for it.
    let uses = uses.filter(|uses| detail == Detail::Full || uses.failures > 0);
    reasons.extend(recalled.closeness(&id));
    let failed = uses.filter(|uses| uses.failures > 0);
    reasons.extend(failed.map(|uses| format!("failed {} of {} times", uses.failures, uses.calls)));
    let seen = match definition.output_schema {
        Some(_) => None,
        None => recalled.observed.and_then(|seen| seen.get(&(id.clone(), definition.digest.clone()))),
    };
    let schemas = (detail == Detail::Full).then(|| Schemas {
        input: without_hidden(&definition.input_schema),
        output: definition.output_schema.as_deref().map(without_hidden),
    });
    Found {
        kind: Kind::Tool,
        id,
        name: tool.exposed.clone(),
        description: shorten(definition.description.as_deref().unwrap_or_default()),
        score: shown(score),
        reasons,
        signature: signature::signature(
            tool.id.server.as_str(),
            &tool.identifier,
            definition,
            seen.map(|seen| (&seen.schema, seen.count)),
        ),
        schemas,
        success_rate: uses.map(|uses| 1.0 - uses.failures as f64 / uses.calls as f64),
        usage_count: uses.map(|uses| uses.calls),
        learned: None,
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
