//! Embeds the texts of data sets, on all cores.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use pml::knowledge::embeddings::{Vector, dequantised, quantised};
use pml::problem::Problem;
use pml_embed::TransformerModel;
use pml_graph::everyday::{self, EverydayVectors};
use pml_graph::request::RequestTexts;
use pml_graph::vectors::VectorTable;
use pml_model::{Digest, Principal};
use pml_store::BlockingStore;

use crate::figure::failed;

/// The number of texts that are embedded and stored at a time.
const TOGETHER: usize = 512;

fn open_model(path: &Path) -> Result<TransformerModel, Problem> {
    let opened =
        if path.is_dir() { TransformerModel::open(path) } else { TransformerModel::open_packed(path) };
    opened.map_err(|error| failed(format!("{error}; {}", error.hint())))
}

/// Embeds each text once.
pub(super) struct BenchEmbedder {
    model: &'static TransformerModel,
    store: Option<BlockingStore>,
    vectors: HashMap<Digest, Vector>,
}

impl BenchEmbedder {
    /// An embedder with the vectors stored in the file `kept`, if one is given. The model is the one at `model`, else
    /// the built-in one.
    pub(super) fn open(kept: Option<&Path>, model: Option<&Path>) -> Result<BenchEmbedder, Problem> {
        let model = match model {
            // Leaked: it is used until the process ends, as the built-in one is.
            Some(path) => &*Box::leak(Box::new(open_model(path)?)),
            None => TransformerModel::embedded(),
        };
        let store = kept.map(BlockingStore::open).transpose()?;
        let mut known = HashMap::new();
        if let Some(store) = &store {
            let stored = store.vectors(&Principal::local(), model.id())?;
            known.extend(stored.into_iter().map(|(text, stored)| (text, dequantised(&stored))));
        }
        Ok(BenchEmbedder { model, store, vectors: known })
    }

    /// The embeddings of the texts.
    pub(super) fn embed(&mut self, texts: &[String]) -> Result<Vec<Vector>, Problem> {
        let keys: Vec<Digest> = texts.iter().map(|text| Digest::of(text.as_bytes())).collect();
        let mut seen = HashSet::new();
        let unknown: Vec<(&Digest, &str)> = keys
            .iter()
            .zip(texts.iter().map(String::as_str))
            .filter(|(key, _)| !self.vectors.contains_key(*key) && seen.insert(*key))
            .collect();
        for some in unknown.chunks(TOGETHER) {
            let read = self.compute(some)?;
            if let Some(store) = &self.store {
                let kept = read.iter().map(|(key, vector)| (key.clone(), quantised(vector))).collect();
                store.store_vectors(&Principal::local(), self.model.id(), kept)?;
            }
            self.vectors.extend(read);
        }
        Ok(keys.iter().map(|key| Arc::clone(&self.vectors[key])).collect())
    }

    /// An empty table for items, with the embeddings of everyday texts for comparison.
    pub(super) fn table(&mut self) -> Result<VectorTable, Problem> {
        let texts: Vec<String> = everyday::everyday_texts().map(str::to_owned).collect();
        Ok(VectorTable::with_everyday(Arc::new(EverydayVectors::from_vectors(&self.embed(&texts)?))))
    }

    /// The embeddings of a request and of its parts.
    pub(super) fn embed_request(&mut self, request: &str) -> Result<(Vec<f32>, Vec<Vec<f32>>), Problem> {
        let texts = RequestTexts::of(request);
        let read = self.embed(&texts.iter().map(str::to_owned).collect::<Vec<_>>())?;
        texts.assemble_vectors(&read).ok_or_else(|| failed("a text of a request has no vector"))
    }

    fn compute(&self, texts: &[(&Digest, &str)]) -> Result<Vec<(Digest, Vector)>, Problem> {
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let model = self.model;
        thread::scope(|scope| {
            // Interleaved, so that long texts are distributed evenly.
            let workers: Vec<_> = (0..cores)
                .map(|first| {
                    let own: Vec<&(&Digest, &str)> = texts.iter().skip(first).step_by(cores).collect();
                    scope.spawn(move || {
                        let texts: Vec<&str> = own.iter().map(|(_, text)| *text).collect();
                        let vectors = model.embed_all(&texts).into_iter().map(Vector::from);
                        own.iter().map(|(key, _)| (*key).clone()).zip(vectors).collect::<Vec<_>>()
                    })
                })
                .collect();
            let mut all = Vec::new();
            for worker in workers {
                all.extend(worker.join().map_err(|_| failed("a thread that reads texts panicked"))?);
            }
            Ok(all)
        })
    }
}
