//! The embedder: a model and the vectors it computed.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use lru::LruCache;
use parking_lot::{Mutex, RwLock};
use pml_graph::everyday::{self, EverydayVectors};
use pml_graph::vectors::VectorTable;
use pml_model::Digest;
use pml_store::StoredVector;

use super::model::EmbeddingModel;
use super::{Vector, dequantised, digest, tool_text};
use crate::catalogue::ToolSnapshot;
use crate::config::EmbeddingSettings;

/// 30 s: the pause after a failure.
pub(in crate::knowledge) const AGAIN: Duration = Duration::from_secs(30);
/// The number of requests whose embeddings are cached.
const REQUESTS: NonZeroUsize = NonZeroUsize::new(512).expect("not zero");

/// The text digests of the everyday requests.
pub(super) static EVERYDAY: LazyLock<Vec<Digest>> =
    LazyLock::new(|| everyday::everyday_texts().map(digest).collect());

/// A model and the vectors it computed.
#[derive(Debug)]
pub(in crate::knowledge) struct Embedder {
    /// The number of this embedder, unique in the process.
    pub(super) number: u64,
    pub(in crate::knowledge) model: EmbeddingModel,
    /// The vectors in storage form: there are many, and few are used twice.
    pub(in crate::knowledge) vectors: RwLock<HashMap<Digest, StoredVector>>,
    /// A number that changes whenever vectors were added.
    pub(super) version: AtomicU64,
    /// The number of texts still to be embedded.
    pub(super) remaining: AtomicUsize,
    pub(super) request_cache: Mutex<LruCache<String, Vector>>,
    /// The vectors of the latest tool snapshot.
    tools: Mutex<Option<SnapshotVectors>>,
    /// The vectors of the everyday requests, once all of them exist.
    everyday: Mutex<Option<Arc<EverydayVectors>>>,
    pub(super) last_error: Mutex<Option<String>>,
    /// When embedding a request failed last.
    pub(super) failed_at: Mutex<Option<Instant>>,
    /// The digests of texts that the model rejects.
    pub(super) refused: Mutex<HashSet<Digest>>,
}

#[derive(Debug)]
struct SnapshotVectors {
    snapshot: Arc<ToolSnapshot>,
    texts: Arc<Vec<Digest>>,
    version: u64,
    everyday: Option<Arc<EverydayVectors>>,
    vectors: Arc<VectorTable>,
}

impl SnapshotVectors {
    /// The index of each text that was embedded by then and compared with the same everyday requests; that comparison
    /// is not repeated. Texts without it are quick to arrange.
    fn places(&self, everyday: Option<&Arc<EverydayVectors>>) -> HashMap<&Digest, usize> {
        let same = self.everyday.as_ref().zip(everyday).is_some_and(|(one, other)| Arc::ptr_eq(one, other));
        let read = self.texts.iter().enumerate().filter(|(place, _)| same && self.vectors.has_vector(*place));
        read.map(|(place, text)| (text, place)).collect()
    }
}

impl Embedder {
    pub(super) fn new(embedding: &EmbeddingSettings) -> Embedder {
        static READERS: AtomicU64 = AtomicU64::new(0);
        Embedder {
            number: READERS.fetch_add(1, Ordering::Relaxed),
            failed_at: Mutex::default(),
            refused: Mutex::default(),
            model: EmbeddingModel::new(embedding),
            vectors: RwLock::default(),
            version: AtomicU64::new(0),
            remaining: AtomicUsize::new(0),
            request_cache: Mutex::new(LruCache::new(REQUESTS)),
            tools: Mutex::default(),
            everyday: Mutex::default(),
            last_error: Mutex::default(),
        }
    }

    /// Whether it is too early to try again after a failure.
    pub(super) fn failed_lately(&self) -> bool {
        let failed_at = *self.failed_at.lock();
        failed_at.is_some_and(|at| at.elapsed() < AGAIN)
    }

    pub(in crate::knowledge) fn note_failure(&self, trouble: String) {
        tracing::debug!(trouble, model = self.model.name(), "what a text means could not be told");
        *self.last_error.lock() = Some(trouble);
    }

    pub(super) async fn embed_request(self: &Arc<Self>, texts: &[String]) -> Result<Vec<Vector>, String> {
        let remembered = |text: &String| self.request_cache.lock().get(text).map(Arc::clone);
        let mut vectors: Vec<Option<Vector>> = texts.iter().map(remembered).collect();
        let mut unknown: Vec<String> = Vec::new();
        for (text, vector) in texts.iter().zip(&vectors) {
            if vector.is_none() && !unknown.contains(text) {
                unknown.push(text.clone());
            }
        }
        if !unknown.is_empty() {
            let read = self.model.embed(unknown.clone()).await?;
            let mut requests = self.request_cache.lock();
            for (text, vector) in unknown.iter().zip(&read) {
                requests.put(text.clone(), Arc::clone(vector));
            }
            for (text, vector) in texts.iter().zip(&mut vectors) {
                if let (None, Some(at)) = (&vector, unknown.iter().position(|unknown| unknown == text)) {
                    *vector = Some(Arc::clone(&read[at]));
                }
            }
        }
        Ok(vectors.into_iter().flatten().collect())
    }

    /// Embeds a batch of texts. A text that the model rejects, while it accepts others, is left out for good.
    pub(super) async fn embed_batch(
        &self,
        some: &[(Digest, String)],
    ) -> Result<Vec<(Digest, Vector)>, String> {
        let texts = some.iter().map(|(_, text)| text.clone()).collect();
        let trouble = match self.model.embed(texts).await {
            Ok(vectors) => return Ok(some.iter().map(|(key, _)| key.clone()).zip(vectors).collect()),
            Err(trouble) => trouble,
        };
        let (mut read, mut refused) = (Vec::new(), Vec::new());
        for (key, text) in some {
            match self.model.embed(vec![text.clone()]).await {
                Ok(vectors) => read.extend(vectors.into_iter().map(|vector| (key.clone(), vector))),
                Err(_) => refused.push(key.clone()),
            }
        }
        if read.is_empty() {
            return Err(trouble);
        }
        self.refused.lock().extend(refused);
        Ok(read)
    }

    /// The texts without a vector, each once.
    pub(super) fn still_unread(&self, texts: Vec<(Digest, String)>) -> Vec<(Digest, String)> {
        let known = self.vectors.read();
        let mut seen = self.refused.lock().clone();
        let is_unread = |(key, _): &(Digest, String)| !known.contains_key(key) && seen.insert(key.clone());
        texts.into_iter().filter(is_unread).collect()
    }

    pub(super) fn tool_vectors(&self, snapshot: &Arc<ToolSnapshot>) -> Arc<VectorTable> {
        let version = self.version.load(Ordering::Acquire);
        let mut tools = self.tools.lock();
        let texts = match &*tools {
            Some(known) if Arc::ptr_eq(&known.snapshot, snapshot) => {
                if known.version == version {
                    return Arc::clone(&known.vectors);
                }
                Arc::clone(&known.texts)
            }
            _ => Arc::new(snapshot.tools.iter().map(|tool| digest(&tool_text(tool))).collect()),
        };
        let known = self.vectors.read();
        let everyday = self.everyday(&known);
        let mut vectors = everyday.clone().map(VectorTable::with_everyday).unwrap_or_default();
        let before = tools.as_ref().map(|tools| (tools, tools.places(everyday.as_ref())));
        for text in texts.iter() {
            let kept = before.as_ref().and_then(|(tools, places)| Some((tools, *places.get(text)?)));
            match (kept, known.get(text)) {
                (Some((tools, place)), Some(_)) => vectors.copy_from(&tools.vectors, place),
                (_, vector) => vectors.push(vector.map(dequantised).as_deref()),
            }
        }
        vectors.shrink_to_fit();
        let vectors = Arc::new(vectors);
        let snapshot = Arc::clone(snapshot);
        *tools = Some(SnapshotVectors { snapshot, texts, version, everyday, vectors: Arc::clone(&vectors) });
        vectors
    }

    /// The vectors of the everyday requests, if all of them exist.
    fn everyday(&self, known: &HashMap<Digest, StoredVector>) -> Option<Arc<EverydayVectors>> {
        let mut everyday = self.everyday.lock();
        if everyday.is_none() {
            let refused = self.refused.lock();
            let taken = EVERYDAY.iter().filter(|text| !refused.contains(*text));
            let read: Option<Vec<Vector>> = taken.map(|text| known.get(text).map(dequantised)).collect();
            *everyday = read.map(|read| Arc::new(EverydayVectors::from_vectors(&read)));
        }
        everyday.clone()
    }

    /// Adds vectors. A service may change the model behind the same name: vectors of another length than the newest
    /// cannot be compared with it and are dropped.
    pub(super) fn add_vectors(&self, read: Vec<(Digest, StoredVector)>) {
        let Some(length) = read.last().map(|(_, vector)| vector.numbers.len()) else { return };
        let mut known = self.vectors.write();
        if known.values().next().is_some_and(|vector| vector.numbers.len() != length) {
            known.clear();
            *self.everyday.lock() = None;
        }
        known.extend(read.into_iter().filter(|(_, vector)| vector.numbers.len() == length));
        self.version.fetch_add(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::super::quantised;
    use super::*;

    #[test]
    fn what_is_asked_for_every_day_counts_once_all_of_it_was_read_by_one_model() {
        let reader = Embedder::new(&EmbeddingSettings::BuiltIn);
        let counts = || reader.everyday(&reader.vectors.read()).is_some();
        let all: Vec<(Digest, StoredVector)> =
            EVERYDAY.iter().map(|text| (text.clone(), quantised(&[0.6, 0.8]))).collect();
        reader.add_vectors(all[1..].to_vec());
        assert!(!counts());
        // A rejected text is not waited for.
        reader.refused.lock().insert(all[0].0.clone());
        assert!(counts());
        reader.add_vectors(vec![(digest("by another model"), quantised(&[0.0, 0.6, 0.8]))]);
        assert!(!counts());
    }
}
