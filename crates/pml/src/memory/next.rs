//! What usually comes next.

use pml_model::name::printable;
use pml_model::trace::EdgeKind;
use pml_model::{CapabilityId, Principal};
use pml_store::LearnedEdge;

use super::Memory;
use crate::execute::Next;

/// How many are told.
const MOST: usize = 3;
/// How many are looked at.
const LOOKED_AT: u32 = 20;
/// How much doubt there is before anything was seen, in observations.
const DOUBT: f64 = 1.0;

impl Memory {
    /// What usually comes after a run of `capability` whose last call was of `tool`.
    pub(crate) fn next_after(
        &self,
        principal: &Principal,
        capability: Option<&CapabilityId>,
        tool: Option<&str>,
    ) -> Vec<Next> {
        // A few rows each, read in less time than another thread takes to begin.
        let read = |item: Option<&str>| match item {
            Some(item) => self.store.edges_from(principal, item, Some(EdgeKind::Follows), LOOKED_AT),
            None => Ok(Vec::new()),
        };
        let after_run = read(capability.map(CapabilityId::as_str));
        match after_run.and_then(|after_run| Ok((after_run, read(tool)?))) {
            Ok((after_run, after_tool)) => self.told(principal, &after_run, &after_tool),
            Err(error) => {
                tracing::debug!(%error, "what usually comes next could not be read");
                Vec::new()
            }
        }
    }

    fn told(
        &self,
        principal: &Principal,
        after_run: &[LearnedEdge],
        after_tool: &[LearnedEdge],
    ) -> Vec<Next> {
        let mut next = self.likely(principal, after_run, "this");
        let by_tool = self.likely(principal, after_tool, "its last tool");
        let is_new = |one: &Next| next.iter().all(|known| known.id != one.id);
        let by_tool: Vec<Next> = by_tool.into_iter().filter(is_new).collect();
        next.extend(by_tool);
        next.sort_by(|one, other| other.confidence.total_cmp(&one.confidence));
        next.truncate(MOST);
        next
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

    /// What an id of the graph stands for, if it can be used.
    fn item(&self, principal: &Principal, id: &str) -> Option<(&'static str, String)> {
        match CapabilityId::parse(id) {
            Ok(id) => self.known(principal, &id).map(|known| ("capability", known.name.clone())),
            Err(_) => Some(("tool", printable(id))),
        }
    }
}
