//! What usually comes next.

use std::collections::HashSet;

use pml_graph::graph::closeness::Close;
use pml_graph::next::Reason;
use pml_model::name::printable;
use pml_model::trace::EdgeKind;
use pml_model::{CapabilityId, Principal};
use pml_store::LearnedEdge;

use super::Knowledge;
use super::graph::ToolGraph;
use crate::report::Next;

/// How many are told.
const MOST: usize = 3;
/// How many are looked at.
const LOOKED_AT: u32 = 20;
/// What is said to be close is this likely to come next.
const CLOSE: f64 = 0.5;
/// What is less likely than this is not told.
const LEAST: f64 = 0.2;
/// How much doubt there is before anything was seen, in observations.
const DOUBT: f64 = 1.0;

/// Adds what else may come next, the likeliest first, and keeps the first few. What `ran` just now is no next step.
pub(crate) fn add_next(next: &mut Vec<Next>, more: Vec<Next>, ran: &HashSet<&str>) {
    let known: Vec<String> = next.iter().map(|next| next.id.clone()).collect();
    let is_new = |more: &Next| !known.contains(&more.id) && !ran.contains(more.id.as_str());
    next.extend(more.into_iter().filter(is_new));
    next.sort_by(|one, other| other.confidence.total_cmp(&one.confidence));
    next.truncate(MOST);
}

/// What hangs together with what was just used: less sure than what was seen to come next.
pub(crate) fn next_close(graph: &ToolGraph, used: &[&str]) -> Vec<Next> {
    let told = |close: Close| {
        let is_tool = CapabilityId::parse(&close.id).is_err();
        Next {
            kind: if is_tool { "tool" } else { "capability" }.to_owned(),
            name: printable(graph.name(&close.id)),
            confidence: (close.score * CLOSE * 100.0).round() / 100.0,
            id: close.id,
            reason: close.reason,
        }
    };
    graph.close(used).into_iter().map(told).filter(|next| next.confidence >= LEAST).collect()
}

impl Knowledge {
    /// What usually comes after a run of `capability` whose last call was of `tool`, without what `ran` in it.
    pub(crate) fn next_after(
        &self,
        principal: &Principal,
        capability: Option<&CapabilityId>,
        tool: Option<&str>,
        ran: &HashSet<&str>,
    ) -> Vec<Next> {
        // A few rows each, read in less time than another thread takes to begin.
        let read = |item: Option<&str>| match item {
            Some(item) => {
                self.store.blocking().edges_from(principal, item, Some(EdgeKind::Follows), LOOKED_AT)
            }
            None => Ok(Vec::new()),
        };
        let after_run = read(capability.map(CapabilityId::as_str));
        match after_run.and_then(|after_run| Ok((after_run, read(tool)?))) {
            Ok((after_run, after_tool)) => {
                let mut next = Vec::new();
                add_next(&mut next, self.likely(principal, &after_run, "this"), ran);
                add_next(&mut next, self.likely(principal, &after_tool, "its last tool"), ran);
                next
            }
            Err(error) => {
                tracing::debug!(%error, "what usually comes next could not be read");
                Vec::new()
            }
        }
    }

    fn likely(&self, principal: &Principal, edges: &[LearnedEdge], what: &str) -> Vec<Next> {
        let all: u64 = edges.iter().map(|edge| edge.count).sum();
        let next = edges.iter().filter_map(|edge| {
            let (kind, name) = self.item(principal, &edge.to)?;
            let times = if all == 1 { "time" } else { "times" };
            Some(Next {
                kind: kind.to_owned(),
                id: edge.to.clone(),
                name,
                confidence: ((edge.count as f64 / (all as f64 + DOUBT)) * 100.0).round() / 100.0,
                reason: format!(
                    "came next {} of the {all} {times} that something followed {what}",
                    edge.count
                ),
            })
        });
        next.collect()
    }

    /// What came next when requests like this one had got as far; nothing where the request was not read yet.
    pub(crate) fn next_like(&self, principal: &Principal, intent: &str, used: &[&str]) -> Vec<Next> {
        let Some(wanted) = self.embeddings.at_hand(intent) else { return Vec::new() };
        let likely = self.of(principal).with_experience(|experience| {
            let vectors = self.embeddings.of_tools(experience.snapshot());
            let mut likely = Vec::new();
            for (tool, confidence, reason) in experience.next(&vectors, &wanted, used) {
                if f64::from(confidence) < LEAST || used.contains(&tool.id.to_string().as_str()) {
                    continue;
                }
                let like = match reason {
                    Reason::SimilarRequests { trace } => experience.owner(trace).cloned(),
                    Reason::FollowsOften { .. } | Reason::MatchesRequest => None,
                };
                likely.push((tool.id.to_string(), confidence, reason, like));
            }
            likely
        });
        let told = |(id, confidence, reason, like): (String, f32, Reason, Option<CapabilityId>)| Next {
            kind: "tool".to_owned(),
            name: printable(&id),
            id,
            confidence: (f64::from(confidence) * 100.0).round() / 100.0,
            reason: match reason {
                Reason::SimilarRequests { .. } => self.like(like),
                Reason::FollowsOften { times: 1 } => "came after its last tool once".to_owned(),
                Reason::FollowsOften { times } => format!("came after its last tool {times} times"),
                Reason::MatchesRequest => "serves what is asked for, and was not used yet".to_owned(),
            },
        };
        likely.into_iter().flatten().take(MOST).map(told).collect()
    }

    fn like(&self, capability: Option<CapabilityId>) -> String {
        let index = self.memory.index.read();
        let known = capability.and_then(|id| index.all().into_iter().find(|known| known.id == id));
        match known {
            Some(known) => format!("came next in `{}`, which served a request like this", known.name),
            None => "came next when requests like this were served".to_owned(),
        }
    }

    /// What an id of the graph stands for, if it can be used.
    fn item(&self, principal: &Principal, id: &str) -> Option<(&'static str, String)> {
        match CapabilityId::parse(id) {
            Ok(id) => self.memory.known(principal, &id).map(|known| ("capability", known.name.clone())),
            Err(_) => Some(("tool", printable(id))),
        }
    }
}
