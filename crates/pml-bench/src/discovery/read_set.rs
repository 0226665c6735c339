//! A data set with the embeddings of all its texts, and the scores of rankings of it.

use std::collections::{HashMap, HashSet};

use pml::knowledge::embeddings::Vector;
use pml::problem::Problem;
use pml_graph::past::{EmbeddedIntent, IntentTrace, PastAdvice, PastIntents};
use pml_graph::rank::{self, DenseEvidence, RankingEvidence};
use pml_graph::vectors::VectorTable;
use serde_json::{Value, json};

use super::data::{BenchRequest, BenchSet};
use super::{BenchEmbedder, DiscoveryBench, retrieval, score};

/// The number of random halves.
pub(super) const HALVES: u64 = 4;

/// A data set with all its texts embedded.
pub(super) struct EmbeddedSet {
    pub(super) set: BenchSet,
    pub(super) vectors: VectorTable,
    /// The embedding of each request, by its text.
    pub(super) vectors_by_text: HashMap<String, Vector>,
}

impl EmbeddedSet {
    pub(super) fn read(bench: &mut DiscoveryBench<'_>, name: &str) -> Result<EmbeddedSet, Problem> {
        let set = BenchSet::read(bench.data, name)?;
        let vectors = retrieval::vectors(&mut bench.reader, &set.tools)?;
        let texts: Vec<String> = set.requests.iter().map(|row| row.query.clone()).collect();
        let read = bench.reader.embed(&texts)?;
        Ok(EmbeddedSet { set, vectors, vectors_by_text: texts.into_iter().zip(read).collect() })
    }

    pub(super) fn past<'r>(&self, traces: impl Iterator<Item = &'r BenchRequest>) -> PastIntents {
        let mut past = PastIntents::default();
        for row in traces {
            let Some(item) = row.gold.first().and_then(|id| self.set.place(id)) else { continue };
            let vector = &self.vectors_by_text[&row.query];
            let likeness = self.vectors.similarities(vector).unwrap_or_default();
            let items = [item as u32];
            let intent = EmbeddedIntent { text: &row.query, vector: Some(vector), parts: &[] };
            past.learn_trace(&IntentTrace { items: &items, intent, item_cosines: &likeness });
        }
        past
    }

    pub(super) fn ranked(
        &self,
        reader: &mut BenchEmbedder,
        past: Option<&PastIntents>,
        row: &BenchRequest,
    ) -> Result<Vec<usize>, Problem> {
        let (whole, parts) = reader.embed_request(&row.query)?;
        let dense = DenseEvidence { items: &self.vectors, whole: &whole, parts: &parts };
        let intent = EmbeddedIntent { text: &row.query, vector: Some(&whole), parts: &parts };
        let advice = past.map(|past| PastAdvice { hints: past.hints(&intent, self.set.tools.len()) });
        let evidence =
            RankingEvidence { lexical: &self.set.index, dense: Some(dense), advice: advice.as_ref() };
        Ok(rank::rank(&row.query, &evidence).into_iter().map(|ranked| ranked.item).collect())
    }

    /// The mean nDCG@5 of the requests, and the prediction for each.
    pub(super) fn ndcg(
        &self,
        reader: &mut BenchEmbedder,
        past: Option<&PastIntents>,
        rows: &[&BenchRequest],
    ) -> Result<(f64, Vec<Value>), Problem> {
        let (mut sum, mut predictions) = (0.0, Vec::new());
        for row in rows {
            let ranked = self.ranked(reader, past, row)?;
            let ids: Vec<&str> = ranked.iter().map(|item| self.set.tools[*item].id.as_str()).collect();
            sum += score::ranking(&ids, &row.groups()).ndcg_5;
            predictions.push(json!({ "id": row.id, "ranked": &ids[..ids.len().min(50)] }));
        }
        Ok((sum / rows.len().max(1) as f64, predictions))
    }
}

/// A random half of the indices below `items`; each `number` gives another half.
pub(super) fn half_of(items: usize, number: u64) -> HashSet<usize> {
    let mut all: Vec<usize> = (0..items).collect();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64 ^ (number + 1).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    for last in (1..items).rev() {
        // A xorshift generator is good enough for shuffling.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        all.swap(last, (state % (last as u64 + 1)) as usize);
    }
    all.truncate(items / 2);
    all.into_iter().collect()
}
