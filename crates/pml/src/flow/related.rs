//! What belongs to the results of a search without being among them.
//!
//! Three things say so: capabilities of the community of the graph that most results are in, tools that share neighbours
//! with the results, and what was observed to come after the first result. Only the graph and the edges that are known
//! are read; where there is no graph yet, nothing is suggested.

use std::collections::{HashMap, HashSet};

use pml_graph::graph::closeness::CloseNode;
use pml_model::name::printable;
use pml_model::{CapabilityId, Principal, ToolId};

use crate::app::App;
use crate::catalogue::{CatalogueTool, deprecated};
use crate::discover::{
    DiscoverFilter, DiscoverPage, DiscoverResult, RelatedKind, RelatedSuggestion, ResultKind,
    count_before_falloff,
};
use crate::knowledge::graph::ToolGraph;
use crate::knowledge::{PartVerdict, next_related};

/// The number of suggestions altogether, and of capabilities of the community.
const MOST: usize = 5;
const MOST_CAPABILITIES: usize = 3;
/// The number of results whose neighbours are looked at.
const CONTEXT: usize = 3;
/// The probability of a capability that only belongs to the same community.
const SAME_COMMUNITY: f64 = 0.5;
/// The least probability of a suggestion.
const LEAST: f64 = 0.2;

/// The tools and capabilities related to those just used in a session.
pub(super) fn related_to_session(
    app: &App,
    principal: &Principal,
    session: &str,
) -> HashMap<String, CloseNode> {
    let used = app.knowledge.memory.recent_session_tools(principal, session);
    let used: Vec<&str> = used.iter().map(String::as_str).collect();
    let graph = app.knowledge.of_principal(principal).graph().filter(|_| !used.is_empty());
    let close = graph.map(|graph| graph.related_to(&used)).unwrap_or_default();
    close.into_iter().map(|close| (close.id.clone(), close)).collect()
}

/// What is known of the worth of each part of what was learned.
pub fn learning_status(app: &App, principal: &Principal) -> Vec<PartVerdict> {
    app.knowledge.of_principal(principal).verdicts()
}

/// Suggestions beside the results of a page, most probable first.
pub(super) fn suggest_related(
    app: &App,
    principal: &Principal,
    page: &DiscoverPage,
    filter: &DiscoverFilter,
    visible: impl Fn(&CatalogueTool) -> bool,
) -> Vec<RelatedSuggestion> {
    let scores: Vec<f64> = page.results.iter().map(|found| found.score).collect();
    let likely = &page.results[..count_before_falloff(&scores)];
    let (Some(first), Some(graph)) = (likely.first(), app.knowledge.of_principal(principal).graph()) else {
        return Vec::new();
    };
    let mut related = Vec::new();
    if filter.kind != ResultKind::Tool {
        related.extend(capabilities(app, principal, &graph, likely));
    }
    if filter.kind != ResultKind::Capability {
        related.extend(next_tools(app, principal, first));
        related.extend(tools(&graph, likely));
    }
    let shown: HashSet<&str> = page
        .results
        .iter()
        .flat_map(|found| found.also.iter().chain([&found.id]))
        .map(String::as_str)
        .collect();
    let snapshot = app.tools.snapshot();
    let is_usable = |id: &str| {
        let tool = ToolId::parse(id).ok().and_then(|id| snapshot.tool(&id).ok());
        tool.is_some_and(|tool| visible(tool) && !deprecated::is_deprecated(tool))
    };
    related.sort_by(|one, other| other.confidence.total_cmp(&one.confidence));
    let mut seen: HashSet<String> = HashSet::new();
    related.retain(|one| {
        let id = one.subject();
        let is_right = one.kind == RelatedKind::Capability || is_usable(id);
        is_right && one.confidence >= LEAST && !shown.contains(id) && seen.insert(id.to_owned())
    });
    related.truncate(MOST);
    related
}

/// Capabilities of the community that most results are in, the most important ones first.
fn capabilities(
    app: &App,
    principal: &Principal,
    graph: &ToolGraph,
    likely: &[DiscoverResult],
) -> Vec<RelatedSuggestion> {
    let weights: Vec<(&str, f64)> = likely.iter().map(|found| (found.id.as_str(), found.score)).collect();
    let Some(community) = graph.dominant_community(&weights) else { return Vec::new() };
    let member = printable(graph.name(community.likeliest));
    let known = community.members.iter().filter_map(|id| {
        let id =
            CapabilityId::parse(id).ok().filter(|id| likely.iter().all(|found| found.id != id.as_str()))?;
        let known = app.knowledge.memory.active_by_id(principal, &id)?;
        let confidence = SAME_COMMUNITY * community.share * known.reliability();
        Some(RelatedSuggestion {
            kind: RelatedKind::Capability,
            id: Some(id.to_string()),
            tool_id: None,
            name: known.name.clone(),
            reason: format!("is used together with `{member}`"),
            confidence: (confidence * 100.0).round() / 100.0,
        })
    });
    known.take(MOST_CAPABILITIES).collect()
}

/// Tools that share neighbours in the graph with the results, or are tied to them.
fn tools(graph: &ToolGraph, likely: &[DiscoverResult]) -> Vec<RelatedSuggestion> {
    // The most recent node of a context counts most, so the first result comes last.
    let found: Vec<&str> = likely.iter().take(CONTEXT).rev().map(|found| found.id.as_str()).collect();
    let close = next_related(graph, &found).into_iter().filter(|close| close.kind == "tool");
    close.map(|close| RelatedSuggestion::of_tool(RelatedKind::Tool, &close)).collect()
}

/// Tools that were observed to come after the first result.
fn next_tools(app: &App, principal: &Principal, first: &DiscoverResult) -> Vec<RelatedSuggestion> {
    let next = app.knowledge.usual_successors(principal, &first.id, &first.name).into_iter();
    let tools = next.filter(|next| next.kind == "tool" && next.id != first.id);
    tools.map(|next| RelatedSuggestion::of_tool(RelatedKind::NextTool, &next)).collect()
}
