//! Predicts what usually comes next.

use std::collections::HashSet;

use pml_graph::graph::closeness::CloseNode;
use pml_graph::graph::fields::{FieldsDefinition, ToolFields};
use pml_graph::next::NextReason;
use pml_graph::next::capabilities::{CallableCapability, ReachedCapability, reached_capabilities};
use pml_model::name::printable;
use pml_model::trace::{EdgeKind, is_operation};
use pml_model::{CapabilityId, Principal};
use pml_store::LearnedEdge;

use super::IndexedCapability;
use super::graph::ToolGraph;
use super::{Knowledge, LearnedPart};
use crate::report::NextSuggestion;

/// The number of suggestions.
const MOST: usize = 3;
/// The number of candidates considered.
const LOOKED_AT: u32 = 20;
/// The probability assigned to a suggestion that is only close in the graph.
const CLOSE: f64 = 0.5;
/// The least probability of a suggestion.
const LEAST: f64 = 0.2;
/// The weight of the prior, in observations.
const DOUBT: f64 = 1.0;

/// Adds further suggestions, sorts by probability and keeps the first few. What just `ran` is not suggested: the caller
/// leaves out what is observed to run again with other arguments.
pub(crate) fn add_next(next: &mut Vec<NextSuggestion>, more: Vec<NextSuggestion>, ran: &HashSet<&str>) {
    let known: Vec<String> = next.iter().map(|next| next.id.clone()).collect();
    let is_new = |more: &NextSuggestion| !known.contains(&more.id) && !ran.contains(more.id.as_str());
    next.extend(more.into_iter().filter(is_new));
    next.sort_by(|one, other| other.confidence.total_cmp(&one.confidence));
    next.truncate(MOST);
}

/// Suggestions related to what was just used; less certain than observed successors.
pub(crate) fn next_related(graph: &ToolGraph, used: &[&str]) -> Vec<NextSuggestion> {
    let told = |close: CloseNode| {
        let is_tool = CapabilityId::parse(&close.id).is_err();
        NextSuggestion {
            kind: if is_tool { "tool" } else { "capability" }.to_owned(),
            name: printable(graph.name(&close.id)),
            confidence: (close.score * CLOSE * 100.0).round() / 100.0,
            id: close.id,
            reason: close.reason,
        }
    };
    graph.related_to(used).into_iter().map(told).filter(|next| next.confidence >= LEAST).collect()
}

/// The capabilities that are looked at for those whose parameters are at hand, the most used ones.
const MOST_CAPABILITIES: usize = 64;

/// Why a tool on a path comes next: it takes a result of `from`, and serves the request or leads to `towards`.
fn path_reason(from: &str, towards: Option<&str>) -> String {
    let from = printable(from);
    match towards {
        None => format!("path: takes what `{from}` gives, and serves what is asked for"),
        Some(towards) => format!("path: takes what `{from}` gives, on the way to `{}`", printable(towards)),
    }
}

fn callable(known: &IndexedCapability) -> CallableCapability {
    let fields = ToolFields::from_definition(&FieldsDefinition {
        id: &known.name,
        name: &known.name,
        description: &known.description,
        input_schema: &known.parameters,
        output_schema: None,
    });
    CallableCapability { fields, reliability: known.reliability() }
}

impl Knowledge {
    /// The usual successors of a run of `capability` whose last call was of `tool`, without what `ran` in it; the
    /// tool itself only where it is usually called again with other arguments.
    pub(crate) fn next_after(
        &self,
        principal: &Principal,
        capability: Option<&CapabilityId>,
        tool: Option<&str>,
        ran: &HashSet<&str>,
    ) -> Vec<NextSuggestion> {
        // This reads a few rows, which takes less time than handing it to another thread.
        let read = |item: Option<&str>| match item {
            Some(item) => {
                self.store.blocking().learned_edges_from(principal, item, Some(EdgeKind::Follows), LOOKED_AT)
            }
            None => Ok(Vec::new()),
        };
        let after_run = read(capability.map(CapabilityId::as_str));
        match after_run.and_then(|after_run| Ok((after_run, read(tool)?))) {
            Ok((after_run, after_tool)) => {
                let mut next = Vec::new();
                add_next(&mut next, self.likely(principal, &after_run, "this"), ran);
                // The tool itself follows only where it was called with other arguments.
                let others = ran.iter().copied().filter(|ran| Some(*ran) != tool).collect();
                add_next(&mut next, self.likely(principal, &after_tool, "its last tool"), &others);
                next
            }
            Err(error) => {
                tracing::debug!(%error, "what usually comes next could not be read");
                Vec::new()
            }
        }
    }

    /// What was observed to come after a tool or capability, in a run or as the next one.
    pub(crate) fn usual_successors(
        &self,
        principal: &Principal,
        id: &str,
        name: &str,
    ) -> Vec<NextSuggestion> {
        let edges = match self.store.blocking().learned_edges_from(principal, id, None, LOOKED_AT) {
            Ok(edges) => edges,
            Err(error) => {
                tracing::debug!(%error, "what usually comes next could not be read");
                return Vec::new();
            }
        };
        let mut following: Vec<LearnedEdge> = Vec::new();
        for edge in
            edges.into_iter().filter(|edge| edge.kind != EdgeKind::Contains && !is_operation(&edge.to))
        {
            match following.iter_mut().find(|known| known.to == edge.to) {
                Some(known) => known.count += edge.count,
                None => following.push(edge),
            }
        }
        let mut next = self.likely(principal, &following, &format!("`{}`", printable(name)));
        next.sort_by(|one, other| other.confidence.total_cmp(&one.confidence));
        next
    }

    fn likely(&self, principal: &Principal, edges: &[LearnedEdge], what: &str) -> Vec<NextSuggestion> {
        let all: u64 = edges.iter().map(|edge| edge.count).sum();
        let next = edges.iter().filter_map(|edge| {
            let (kind, name) = self.item(principal, &edge.to)?;
            let times = if all == 1 { "time" } else { "times" };
            let again = if edge.from == edge.to { " with other arguments" } else { "" };
            Some(NextSuggestion {
                kind: kind.to_owned(),
                id: edge.to.clone(),
                name,
                confidence: ((edge.count as f64 / (all as f64 + DOUBT)) * 100.0).round() / 100.0,
                reason: format!(
                    "came next{again} {} of the {all} {times} that something followed {what}",
                    edge.count
                ),
            })
        });
        next.collect()
    }

    /// What came next at the same point of similar requests, and what can be called with the results of `used` by the
    /// schemas in `graph`; empty if the request is not embedded yet.
    pub(crate) fn next_in_similar_requests(
        &self,
        principal: &Principal,
        intent: &str,
        used: &[&str],
        graph: Option<&ToolGraph>,
    ) -> Vec<NextSuggestion> {
        let learned = self.of_principal(principal);
        let Some(wanted) = self.embeddings.cached_reading(intent) else { return Vec::new() };
        if !learned.is_on(LearnedPart::NextStep) {
            return Vec::new();
        }
        let likely = learned.with_experience(|experience| {
            let vectors = self.embeddings.tool_vectors(experience.snapshot());
            let mut likely = Vec::new();
            let name = |tool: u32| experience.snapshot().tools[tool as usize].id.to_string();
            for next in experience.predict_next(&vectors, &wanted, used, graph) {
                let id = name(next.tool);
                let is_observed = matches!(
                    next.reason,
                    NextReason::SimilarRequests { .. } | NextReason::FollowsOften { .. }
                );
                // The request asks for a tool that was used whether or not it is to be used again.
                if f64::from(next.confidence) < LEAST || (used.contains(&id.as_str()) && !is_observed) {
                    continue;
                }
                let reason = match next.reason {
                    NextReason::SimilarRequests { trace } => self.like(experience.owner(trace)),
                    NextReason::FollowsOften { times: 1 } => "came after its last tool once".to_owned(),
                    NextReason::FollowsOften { times } => format!("came after its last tool {times} times"),
                    NextReason::MatchesRequest => "serves what is asked for, and was not used yet".to_owned(),
                    NextReason::Path { from, towards } => {
                        path_reason(&name(from), (towards != next.tool).then(|| name(towards)).as_deref())
                    }
                };
                likely.push(NextSuggestion {
                    kind: "tool".to_owned(),
                    name: printable(&id),
                    id,
                    confidence: (f64::from(next.confidence) * 100.0).round() / 100.0,
                    reason,
                });
            }
            likely.truncate(MOST);
            likely
        });
        likely.unwrap_or_default()
    }

    /// The capabilities that can be called with the results of `used`, most recent last: the hyperpaths from these to
    /// everything that they need.
    pub(crate) fn next_on_capability_paths(
        &self,
        principal: &Principal,
        used: &[&str],
        graph: &ToolGraph,
    ) -> Vec<NextSuggestion> {
        let (ids, givers): (Vec<&str>, Vec<&ToolFields>) =
            used.iter().filter_map(|id| Some((*id, graph.provides().tool(id)?))).unzip();
        if givers.is_empty() {
            return Vec::new();
        }
        let mut known = self.memory.active_capabilities(principal);
        known.sort_by_key(|known| std::cmp::Reverse(known.statistics.usage_count));
        known.truncate(MOST_CAPABILITIES);
        let callable: Vec<CallableCapability> = known.iter().map(|known| callable(known)).collect();
        let told = |reached: &ReachedCapability| {
            let known = &known[reached.capability];
            NextSuggestion {
                kind: "capability".to_owned(),
                id: known.id.to_string(),
                name: known.name.clone(),
                confidence: (f64::from(reached.fit) * CLOSE * 100.0).round() / 100.0,
                reason: format!("path: takes what `{}` gives", printable(ids[reached.from])),
            }
        };
        let reached = reached_capabilities(&callable, &givers);
        reached.iter().map(told).filter(|next| next.confidence >= LEAST).take(MOST).collect()
    }

    fn like(&self, capability: Option<&CapabilityId>) -> String {
        let index = self.memory.index.read();
        let known = capability.and_then(|id| index.all().into_iter().find(|known| known.id == *id));
        match known {
            Some(known) => format!("came next in `{}`, which served a request like this", known.name),
            None => "came next when requests like this were served".to_owned(),
        }
    }

    /// The kind and name of a node of the graph, if it is usable.
    fn item(&self, principal: &Principal, id: &str) -> Option<(&'static str, String)> {
        match CapabilityId::parse(id) {
            Ok(id) => {
                self.memory.active_by_id(principal, &id).map(|known| ("capability", known.name.clone()))
            }
            Err(_) => Some(("tool", printable(id))),
        }
    }
}
