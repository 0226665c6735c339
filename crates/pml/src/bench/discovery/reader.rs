//! What the texts of data sets mean, by the model inside the program, on all cores.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use pml_graph::everyday::{self, Everyday};
use pml_graph::request::Texts;
use pml_graph::vectors::Vectors;
use pml_model::{Digest, Principal};
use pml_store::BlockingStore;

use super::super::failed;
use crate::knowledge::embeddings::{Vector, restored, stored};
use crate::problem::Problem;

/// How many texts are kept at a time.
const TOGETHER: usize = 512;

/// Reads texts, each once.
pub(super) struct Reader {
    model: &'static pml_embed::Model,
    store: Option<BlockingStore>,
    known: HashMap<Digest, Vector>,
}

impl Reader {
    /// With what is in the file, where there is one.
    pub(super) fn open(kept: Option<&Path>) -> Result<Reader, Problem> {
        let model = pml_embed::Model::embedded();
        let store = kept.map(BlockingStore::open).transpose()?;
        let mut known = HashMap::new();
        if let Some(store) = &store {
            let stored = store.vectors(&Principal::local(), model.id())?;
            known.extend(stored.into_iter().map(|(text, stored)| (text, restored(&stored))));
        }
        Ok(Reader { model, store, known })
    }

    /// What the texts mean.
    pub(super) fn read(&mut self, texts: &[String]) -> Result<Vec<Vector>, Problem> {
        let keys: Vec<Digest> = texts.iter().map(|text| Digest::of(text.as_bytes())).collect();
        let mut seen = HashSet::new();
        let unknown: Vec<(&Digest, &str)> = keys
            .iter()
            .zip(texts.iter().map(String::as_str))
            .filter(|(key, _)| !self.known.contains_key(*key) && seen.insert(*key))
            .collect();
        for some in unknown.chunks(TOGETHER) {
            let read = self.compute(some)?;
            if let Some(store) = &self.store {
                let kept = read.iter().map(|(key, vector)| (key.clone(), stored(vector))).collect();
                store.keep_vectors(&Principal::local(), self.model.id(), kept)?;
            }
            self.known.extend(read);
        }
        Ok(keys.iter().map(|key| Arc::clone(&self.known[key])).collect())
    }

    /// A table for items, which are compared with what is asked for every day.
    pub(super) fn table(&mut self) -> Result<Vectors, Problem> {
        let texts: Vec<String> = everyday::texts().map(str::to_owned).collect();
        Ok(Vectors::with_everyday(Arc::new(Everyday::of(&self.read(&texts)?))))
    }

    /// What a request and its parts mean.
    pub(super) fn request(&mut self, request: &str) -> Result<(Vec<f32>, Vec<Vec<f32>>), Problem> {
        let texts = Texts::of(request);
        let read = self.read(&texts.all().map(str::to_owned).collect::<Vec<_>>())?;
        texts.meant(&read).ok_or_else(|| failed("a text of a request has no vector"))
    }

    fn compute(&self, texts: &[(&Digest, &str)]) -> Result<Vec<(Digest, Vector)>, Problem> {
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let model = self.model;
        thread::scope(|scope| {
            // Interleaved, so that long texts are shared out.
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
