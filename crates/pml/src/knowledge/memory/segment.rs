//! Capabilities by their words.

use std::sync::Arc;

use pml_graph::lexical::{self, ToolDocument};
use pml_graph::rank::{self, RankingEvidence};
use pml_model::CapabilityId;
use serde_json::Value;

use super::indexed::IndexedCapability;

/// The number of best candidates, by words and by embeddings, that are compared in detail.
pub(super) const CLOSELY: usize = 20;

#[derive(Debug, Default)]
pub(super) struct IndexSegment {
    words: lexical::LexicalIndex,
    pub(super) items: Vec<CapabilityId>,
}

impl IndexSegment {
    pub(super) fn build<'k>(all: impl Iterator<Item = &'k Arc<IndexedCapability>>) -> IndexSegment {
        let all: Vec<&Arc<IndexedCapability>> = all.collect();
        let texts: Vec<(String, Vec<&str>)> =
            all.iter().map(|known| (text(known), parameters(known))).collect();
        let documents = all.iter().zip(&texts).map(|(known, (text, parameters))| ToolDocument {
            server: "",
            name: &known.name,
            description: text,
            parameter_names: parameters.clone(),
            parameter_descriptions: Vec::new(),
            outputs: "",
        });
        IndexSegment {
            words: lexical::LexicalIndex::build(documents),
            items: all.iter().map(|known| known.id.clone()).collect(),
        }
    }

    pub(super) fn best(&self, intent: &str) -> impl Iterator<Item = (&CapabilityId, f64)> {
        let evidence = RankingEvidence { lexical: &self.words, dense: None, advice: None };
        let ranked = rank::rank_first(intent, &evidence, CLOSELY);
        ranked.into_iter().map(|found| (&self.items[found.item], found.score))
    }
}

fn text(known: &IndexedCapability) -> String {
    let tools = known.tools.iter().map(|tool| tool.id.as_str());
    let all: Vec<&str> = std::iter::once(known.description.as_str())
        .chain(known.intents.texts().iter().map(String::as_str))
        .chain(tools)
        .collect();
    all.join("\n")
}

fn parameters(known: &IndexedCapability) -> Vec<&str> {
    let members = known.parameters.get("properties").and_then(Value::as_object);
    members.into_iter().flat_map(|members| members.keys().map(String::as_str)).collect()
}
