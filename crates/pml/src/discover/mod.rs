//! Finds tools and capabilities for an intent.
//!
//! The input is a snapshot of the catalogue, the candidate capabilities and a request; the output is one ranked page.
//! Nothing is started and nothing is stored.

mod arrange;
mod falloff;
mod prior;
mod ready_call;
pub mod signature;

use std::collections::HashMap;

use pml_graph::graph::closeness::CloseNode;
use pml_graph::past::PastAdvice;
use pml_graph::rank;
use pml_graph::vectors::VectorTable;
use pml_language::Reading;
use pml_model::ServerName;
use pml_model::argument_pattern::text_pattern;
use pml_model::capability::{CapabilitySource, expected_success, reliability};
use pml_model::json::strip_hidden_characters;
use pml_model::learning::CallCounts;
use pml_model::name::{is_plain, printable, truncate_text};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::catalogue::{CatalogueTool, ToolSnapshot};
use crate::knowledge::embeddings::{EmbeddingProgress, IntentReading, evidence};
use crate::knowledge::{ArgumentPatternCounts, CapabilityCandidate, ObservedSchemas, ToolUseCounts};
use crate::problem::{ErrorCode, Problem};
use crate::report::NextSuggestion;
pub(crate) use falloff::count_before_falloff;
pub use prior::Prior;
pub use ready_call::{OpenInput, ReadyCall};

/// A request to find tools and capabilities.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DiscoverRequest {
    /// The intent, in the caller's words.
    pub intent: String,
    /// The filter for results.
    #[serde(default)]
    pub filter: DiscoverFilter,
    /// The number of results on the page, 1 to [`MAX_LIMIT`].
    #[serde(default = "default_limit")]
    pub limit: usize,
    /// The number of results to skip.
    #[serde(default)]
    pub offset: usize,
    /// The level of detail of each result.
    #[serde(default)]
    pub detail: ResultDetail,
}

impl DiscoverRequest {
    /// A request for the first `limit` results for an intent.
    pub fn new(intent: String, limit: usize) -> DiscoverRequest {
        DiscoverRequest {
            intent,
            filter: DiscoverFilter::default(),
            limit,
            offset: 0,
            detail: ResultDetail::default(),
        }
    }
}

/// The filter for results.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DiscoverFilter {
    /// The kind of results.
    #[serde(default, rename = "type")]
    pub kind: ResultKind,
    /// The lowest score of a result, from 0 to 1.
    #[serde(default)]
    pub min_score: f64,
}

/// The kind of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResultKind {
    /// Tools of servers.
    Tool,
    /// Learned procedures.
    Capability,
    /// Both.
    #[default]
    All,
}

/// The level of detail of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultDetail {
    /// A TypeScript signature on one line.
    #[default]
    Brief,
    /// The signature with all comments, and the JSON Schemas.
    Full,
}

/// The longest intent that is accepted, in bytes.
pub const MAX_INTENT_BYTES: usize = 8 * 1024;
/// The largest page.
pub const MAX_LIMIT: usize = 100;

/// The number of unready servers that a reply names: its size is limited.
const MAX_UNREADY: usize = 3;

/// The default page size. Ten results are enough to choose from and short to read.
pub fn default_limit() -> usize {
    10
}

/// One page of results.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscoverPage {
    /// The results, best first.
    pub results: Vec<DiscoverResult>,
    /// The number of results on all pages.
    pub total: usize,
    /// The call that runs the first result, a capability that probably does what is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_call: Option<ReadyCall>,
    /// What belongs to the results without being among them, at most five, most probable first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<RelatedSuggestion>,
    /// What to do where nothing fits, and why results may be incomplete.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A tool or capability that belongs to the results of a search.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RelatedSuggestion {
    /// How it belongs to them.
    #[serde(rename = "type")]
    pub kind: RelatedKind,
    /// The id of a capability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The id of a tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<String>,
    /// The name that programs call a capability by, or the id of a tool.
    pub name: String,
    /// Why it is suggested.
    pub reason: String,
    /// The probability that it is of use, from 0 to 1.
    pub confidence: f64,
}

/// How a suggestion belongs to the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RelatedKind {
    /// A capability of the same community.
    Capability,
    /// A tool with the same neighbours, or tied to a result.
    Tool,
    /// A tool that usually comes after the first result.
    NextTool,
}

/// The least confidence of a suggestion that texts name; structured content has them all.
const LIKELY: f64 = 0.35;

impl RelatedSuggestion {
    pub(crate) fn of_tool(kind: RelatedKind, next: &NextSuggestion) -> RelatedSuggestion {
        RelatedSuggestion {
            kind,
            id: None,
            tool_id: Some(next.id.clone()),
            name: next.name.clone(),
            reason: next.reason.clone(),
            confidence: next.confidence,
        }
    }

    /// Whether it is worth a line of text. What schemas alone say is less than that.
    pub(crate) fn is_likely(&self) -> bool {
        self.confidence >= LIKELY
    }

    /// The id of the tool or capability.
    pub(crate) fn subject(&self) -> &str {
        self.id.as_deref().or(self.tool_id.as_deref()).unwrap_or_default()
    }
}

impl DiscoverPage {
    /// Puts the capability `id` first and adds the call that runs it. Where the page does not show that capability, it
    /// stays as it is.
    pub(crate) fn put_first(&mut self, id: &str, call: ReadyCall) {
        if let Some(place) = self.results.iter().position(|found| found.id == id) {
            self.results[..=place].rotate_right(1);
            self.ready_call = Some(call);
        }
    }

    /// Ends the page where the scores fall off. A capability that was put first does not count, since it is there for
    /// another reason than its score.
    pub(crate) fn end_at_falloff(&mut self) {
        let first = usize::from(self.ready_call.is_some());
        let scores: Vec<f64> = self.results.iter().skip(first).map(|found| found.score).collect();
        self.results.truncate(first + count_before_falloff(&scores));
    }

    /// Adds hints why results may be incomplete.
    pub(crate) fn add_notes(&mut self, notes: Vec<String>) {
        self.notes.extend(notes);
    }
}

/// Why a search may find less than there is: texts that are not embedded yet, and servers whose tools are not known.
pub(crate) fn readiness_notes(
    progress: Option<EmbeddingProgress>,
    unready: &[(ServerName, Problem)],
) -> Vec<String> {
    let mut notes = Vec::new();
    if progress.as_ref().is_some_and(|progress| progress.is_loading) {
        notes.push(
            "texts that are embedded are still being loaded; until then words alone find them".to_owned(),
        );
    }
    if let Some(EmbeddingProgress { remaining: left @ 1.., last_error: trouble, .. }) = progress {
        let why = match trouble {
            Some(trouble) => format!(": {}", printable(&trouble)),
            None => String::new(),
        };
        notes.push(format!("{left} texts are not embedded yet; until then words alone find them{why}"));
    }
    notes.extend(unready.iter().take(MAX_UNREADY).map(|(_, problem)| problem.message.clone()));
    if let Some(more @ 1..) = unready.len().checked_sub(MAX_UNREADY) {
        notes.push(format!("{more} more servers have not listed their tools; `pml list` shows their state"));
    }
    notes
}

/// One result of a search.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiscoverResult {
    /// Tool or capability.
    #[serde(rename = "type")]
    pub kind: ResultKind,
    /// `server:tool`, or the id of a capability.
    pub id: String,
    /// The name to call it by over MCP.
    pub name: String,
    /// The first sentences of the description.
    pub description: String,
    /// The probability that it serves the intent, from 0 to 1; comparable across pages.
    pub score: f64,
    /// Why it was found.
    pub reasons: Vec<String>,
    /// A TypeScript declaration, callable as written: on one line, or with full detail with all comments.
    pub signature: String,
    /// The part of the compact declaration that is the call, without the type of the result.
    #[serde(skip)]
    pub call: String,
    /// The schemas from the tool's definition; with full detail only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schemas: Option<ResultSchemas>,
    /// The share of its runs or calls that succeeded; `None` where there were none. A brief result of a tool has it
    /// only if some failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_rate: Option<f64>,
    /// The number of its runs or calls. A brief result of a tool has it only if some failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_count: Option<u64>,
    /// The ids of tools of other servers that do the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub also: Vec<String>,
    /// The excerpt of a capability; `None` for a tool.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub learned: Option<CapabilityExcerpt>,
}

/// The source and the parameters of a capability.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapabilityExcerpt {
    /// The beginning of its source.
    #[schema(required = false)]
    pub source: String,
    /// The JSON Schema of its parameters; with full detail only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub parameters: Option<serde_json::Value>,
}

/// The JSON Schemas of a tool.
#[derive(Debug, Serialize, ToSchema)]
pub struct ResultSchemas {
    /// The schema of the arguments.
    #[schema(value_type = Object)]
    pub input: Box<RawValue>,
    /// The schema of the structured result.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub output: Option<Box<RawValue>>,
}

/// Ranks the `visible` tools and the candidate capabilities for the intent, and returns one page.
///
/// # Errors
/// The intent is empty or too long, or a number is out of range.
pub fn find(
    snapshot: &ToolSnapshot,
    known: &DiscoverMemory<'_>,
    request: &DiscoverRequest,
    visible: impl Fn(&CatalogueTool) -> bool,
) -> Result<DiscoverPage, Problem> {
    check_request(request)?;
    let words;
    let wanted = match known.reading {
        Some(wanted) => wanted,
        None => {
            words = IntentReading::words_only(&request.intent);
            &words
        }
    };
    let evidence = evidence(snapshot, known.vectors, wanted, known.advice);
    let tools = rank::rank(&wanted.text, &evidence).into_iter();
    let tools = tools.filter(|found| visible(&snapshot.tools[found.item]));
    let priors = known.priors(snapshot);
    let tools = tools.map(|found| {
        let prior = priors.get(&found.item).copied().unwrap_or_default();
        (prior.apply(found.score), RankedItem::Tool(found.item))
    });
    let capabilities = known.capabilities.iter().map(|found| {
        (known.prior(found.capability.id.as_str()).apply(found.score), RankedItem::Capability(found))
    });
    let asked_for = |item: &RankedItem<'_>| match request.filter.kind {
        ResultKind::All => true,
        ResultKind::Tool => matches!(item, RankedItem::Tool(_)),
        ResultKind::Capability => matches!(item, RankedItem::Capability(_)),
    };
    // Between equal scores a capability comes first; within each kind the order is already right (the sort is
    // stable).
    let mut ranked: Vec<(f64, RankedItem<'_>)> = capabilities.chain(tools).collect();
    ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
    ranked.retain(|(_, item)| asked_for(item));
    let mut ranked = arrange::deprecated_last(snapshot, ranked);
    // Only now: a deprecated tool loses a part of its score.
    ranked.retain(|(score, _)| rounded_score(*score) >= request.filter.min_score);
    arrange::order_alike(snapshot, known.uses, &mut ranked, |(_, item)| match item {
        RankedItem::Tool(tool) => Some(tool),
        RankedItem::Capability(_) => None,
    });
    let groups = arrange::group_alike(snapshot, ranked);
    let total = groups.len();
    let page = groups.iter().skip(request.offset).take(request.limit);
    let results = page
        .map(|RankedGroup { score, item, also }| match item {
            RankedItem::Tool(item) => {
                let reasons = rank::explain_rank(&wanted.text, &evidence, *item);
                let reasons = reasons.iter().map(ToString::to_string).collect();
                let found = tool_entry(&snapshot.tools[*item], known, *score, reasons, request.detail);
                let also = also.iter().map(|item| snapshot.tools[*item].id.to_string()).collect();
                DiscoverResult { also, ..found }
            }
            RankedItem::Capability(found) => capability_entry(found, known, *score, request.detail),
        })
        .collect();
    let notes = if total == 0 { what_to_do(snapshot) } else { Vec::new() };
    Ok(DiscoverPage { results, total, ready_call: None, suggestions: Vec::new(), notes })
}

/// The most probable tools among those that are `eligible`, best first, with their probabilities.
pub(crate) fn best_tools<'s>(
    snapshot: &'s ToolSnapshot,
    vectors: Option<&VectorTable>,
    wanted: &IntentReading,
    (past, uses): (Option<&PastAdvice>, &ToolUseCounts),
    most: usize,
    eligible: impl Fn(&CatalogueTool) -> bool,
) -> Vec<(&'s CatalogueTool, f64)> {
    let evidence = evidence(snapshot, vectors, wanted, past);
    let mut ranked = rank::rank_among(&wanted.text, &evidence, |item| eligible(&snapshot.tools[item]));
    arrange::order_alike(snapshot, Some(uses), &mut ranked, |found| Some(&mut found.item));
    ranked.into_iter().take(most).map(|found| (&snapshot.tools[found.item], found.score)).collect()
}

/// Learned data that the ranking uses.
#[derive(Debug, Default)]
pub struct DiscoverMemory<'m> {
    /// Candidate capabilities, best first.
    pub capabilities: Vec<CapabilityCandidate>,
    /// Schemas of results that tools were observed to return.
    pub observed: Option<&'m ObservedSchemas>,
    /// The reading of the intent; `None` ranks by the words of the request.
    pub reading: Option<&'m IntentReading>,
    /// The embeddings of the tools, in the order of the snapshot.
    pub vectors: Option<&'m VectorTable>,
    /// What past requests suggest about the tools.
    pub advice: Option<&'m PastAdvice>,
    /// The number of calls and failures of each tool.
    pub uses: Option<&'m ToolUseCounts>,
    /// Whether tools that fail sink.
    pub ranks_by_uses: bool,
    /// The number of calls and failures of each tool by pattern of arguments.
    pub patterns: Option<&'m ArgumentPatternCounts>,
    /// The patterns of the values in the intent, see [`intent_patterns`].
    pub intent_patterns: Vec<String>,
    /// Neighbours in the tool graph of what was just used, by id.
    pub close_by_id: HashMap<String, CloseNode>,
}

/// The patterns of the values in an intent: those that arguments may have.
pub(crate) fn intent_patterns(intent: &str) -> Vec<String> {
    let reading = Reading::of(intent);
    let mut patterns: Vec<String> =
        reading.literals().filter_map(|literal| text_pattern(&literal.text)).collect();
    patterns.sort_unstable();
    patterns.dedup();
    patterns
}

/// The least number of calls with a pattern that is given as a reason.
const TOLD_CALLS: u64 = 2;
/// The lowest closeness that is given as a reason.
const TOLD: f64 = 0.2;

impl DiscoverMemory<'_> {
    fn prior(&self, id: &str) -> Prior {
        let works = self.uses.filter(|_| self.ranks_by_uses).and_then(|uses| uses.get(id));
        let (worked, tried) =
            works.map_or((0, 0), |uses| (uses.calls.saturating_sub(uses.failures), uses.calls));
        let works = match self.patterns_of(id).map(|(_, counts)| counts).collect::<Vec<_>>().as_slice() {
            [] if tried == 0 => 1.0,
            [] => reliability(worked, tried),
            patterns => prior::reliability_by_patterns(expected_success(worked, tried), patterns),
        };
        Prior { reliability: works, closeness: self.close_by_id.get(id).map_or(0.0, |close| close.score) }
    }

    /// The patterns of the intent that the tool was called with, and what came of it.
    fn patterns_of(&self, id: &str) -> impl Iterator<Item = (&String, CallCounts)> {
        let known = self.patterns.and_then(|patterns| patterns.get(id));
        known.into_iter().flat_map(|known| {
            self.intent_patterns.iter().filter_map(|pattern| Some((pattern, *known.get(pattern)?)))
        })
    }

    /// The priors of the tools that have one, by their index in the snapshot.
    fn priors(&self, snapshot: &ToolSnapshot) -> HashMap<usize, Prior> {
        let by_pattern = self.patterns.filter(|_| !self.intent_patterns.is_empty());
        let by_pattern = by_pattern.into_iter().flat_map(HashMap::keys);
        let known =
            self.uses.into_iter().flat_map(HashMap::keys).chain(self.close_by_id.keys()).chain(by_pattern);
        known.filter_map(|id| Some((snapshot.index_of(id)?, self.prior(id)))).collect()
    }

    /// Why the graph suggests something next; `None` below `TOLD`.
    fn closeness(&self, id: &str) -> Option<String> {
        self.close_by_id.get(id).filter(|close| close.score >= TOLD).map(|close| close.reason.clone())
    }
}

/// A result before it is rendered.
enum RankedItem<'c> {
    Tool(usize),
    Capability(&'c CapabilityCandidate),
}

/// A result before it is rendered, with the tools that it stands for too.
struct RankedGroup<'c> {
    score: f64,
    item: RankedItem<'c>,
    also: Vec<usize>,
}

/// The number of characters of a capability's source in a result.
const SOURCE_CHARACTERS: usize = 400;

fn capability_entry(
    found: &CapabilityCandidate,
    recalled: &DiscoverMemory<'_>,
    score: f64,
    detail: ResultDetail,
) -> DiscoverResult {
    let known = &found.capability;
    let statistics = &known.statistics;
    let mut reasons = Vec::new();
    if let Some(like) = &found.similar_intent {
        reasons.push(format!("served “{}”, which is {:.2} alike", shorten(like), found.similarity));
    }
    let tried = statistics.success_count + statistics.failure_count;
    if tried > 0 {
        reasons.push(format!("worked {} of {tried} times", statistics.success_count));
    }
    reasons.extend(recalled.closeness(known.id.as_str()));
    let compact = signature::compact_capability_signature(&known.name, &known.parameters);
    let source = match &known.program.source {
        CapabilitySource::Code { code, .. } => code.clone(),
        CapabilitySource::Dag { dag_structure, .. } => dag_structure.get().to_owned(),
        CapabilitySource::Tool { tool_id, .. } => tool_id.clone(),
    };
    DiscoverResult {
        kind: ResultKind::Capability,
        id: known.id.to_string(),
        name: known.name.clone(),
        description: shorten(&known.description),
        score: rounded_score(score),
        reasons,
        success_rate: statistics.success_rate(),
        usage_count: Some(statistics.usage_count),
        signature: match detail {
            ResultDetail::Brief => compact.to_string(),
            ResultDetail::Full => {
                signature::capability_signature(&known.name, &known.description, &known.parameters)
            }
        },
        call: compact.call,
        schemas: None,
        also: Vec::new(),
        learned: Some(CapabilityExcerpt {
            source: truncate_text(&source, SOURCE_CHARACTERS),
            parameters: (detail == ResultDetail::Full).then(|| known.parameters.clone()),
        }),
    }
}

/// Refuses an intent that is too long. Every interface that accepts an intent calls this, since intents are embedded,
/// compared and stored.
pub(crate) fn check_intent_length(intent: &str) -> Result<(), Problem> {
    if intent.len() <= MAX_INTENT_BYTES {
        return Ok(());
    }
    let text = format!("`intent` has {} bytes and may have {MAX_INTENT_BYTES}", intent.len());
    Err(Problem::new(ErrorCode::InvalidRequest, text)
        .hint("say it shorter; values go into `context`, and programs into `implementation`"))
}

/// Checks the intent and the ranges of the numbers.
pub(crate) fn check_request(request: &DiscoverRequest) -> Result<(), Problem> {
    let invalid = |message: String| Err(Problem::new(ErrorCode::InvalidRequest, message));
    if request.intent.trim().is_empty() {
        return invalid("`intent` is empty; say in a few words what you want to do".to_owned());
    }
    check_intent_length(&request.intent)?;
    if request.limit == 0 || request.limit > MAX_LIMIT {
        return invalid(format!("`limit` is {}; it must be from 1 to {MAX_LIMIT}", request.limit));
    }
    if !(0.0..=1.0).contains(&request.filter.min_score) {
        return invalid(format!("`filter.minScore` is {}; it must be from 0 to 1", request.filter.min_score));
    }
    Ok(())
}

fn tool_entry(
    tool: &CatalogueTool,
    recalled: &DiscoverMemory<'_>,
    score: f64,
    mut reasons: Vec<String>,
    detail: ResultDetail,
) -> DiscoverResult {
    let definition = &tool.definition;
    let id = tool.id.to_string();
    let uses = recalled.uses.and_then(|uses| uses.get(&id)).filter(|uses| uses.calls > 0);
    // Success is the expected case, so a brief page only mentions failures.
    let uses = uses.filter(|uses| detail == ResultDetail::Full || uses.failures > 0);
    reasons.extend(recalled.closeness(&id));
    let patterns = recalled.patterns_of(&id).filter(|(_, counts)| counts.calls >= TOLD_CALLS);
    reasons.extend(patterns.map(|(pattern, counts)| {
        let worked = 100.0 * (counts.calls - counts.failures) as f64 / counts.calls as f64;
        format!("`{}` succeeds {worked:.0} % ({} calls)", printable(pattern), counts.calls)
    }));
    let failed = uses.filter(|uses| uses.failures > 0);
    reasons.extend(failed.map(|uses| format!("failed {} of {} times", uses.failures, uses.calls)));
    let seen = match definition.output_schema {
        Some(_) => None,
        None => recalled.observed.and_then(|seen| seen.get(&(id.clone(), definition.digest.clone()))),
    };
    let server = tool.id.server.as_str();
    let seen = seen.map(|seen| (&seen.schema, seen.count));
    let compact = signature::compact_signature(server, &tool.identifier, definition, seen);
    let schemas = (detail == ResultDetail::Full).then(|| ResultSchemas {
        input: strip_hidden_characters(&definition.input_schema),
        output: definition.output_schema.as_deref().map(strip_hidden_characters),
    });
    DiscoverResult {
        kind: ResultKind::Tool,
        id,
        name: tool.exposed_name.clone(),
        description: shorten(definition.description.as_deref().unwrap_or_default()),
        score: rounded_score(score),
        reasons,
        signature: match detail {
            ResultDetail::Brief => compact.to_string(),
            ResultDetail::Full => signature::signature(server, &tool.identifier, definition, seen),
        },
        call: compact.call,
        schemas,
        success_rate: uses.map(|uses| 1.0 - uses.failures as f64 / uses.calls as f64),
        usage_count: uses.map(|uses| uses.calls),
        also: Vec::new(),
        learned: None,
    }
}

/// A score as shown, and therefore as compared: rounded to three decimals.
fn rounded_score(score: f64) -> f64 {
    (score * 1000.0).round() / 1000.0
}

/// The longest description in a result, in characters; the signature carries the rest.
const DESCRIPTION_CHARACTERS: usize = 200;

fn shorten(text: &str) -> String {
    let clean: String = text.chars().filter(|c| *c == '\n' || is_plain(*c)).collect();
    truncate_text(clean.trim().lines().next().unwrap_or_default(), DESCRIPTION_CHARACTERS)
}

/// What to do where nothing is found.
fn what_to_do(snapshot: &ToolSnapshot) -> Vec<String> {
    let servers: Vec<&str> = snapshot.servers.iter().map(|server| server.name.as_str()).take(30).collect();
    let unknown: Vec<&str> = snapshot
        .servers
        .iter()
        .filter(|server| !server.tools_known)
        .map(|server| server.name.as_str())
        .take(10)
        .collect();
    let mut notes =
        vec![format!("say it in other words; these servers are connected: {}", servers.join(", "))];
    if !unknown.is_empty() {
        notes.push(format!(
            "the tools of {} are not known yet; they are listed once it has started",
            unknown.join(", ")
        ));
    }
    notes
}
