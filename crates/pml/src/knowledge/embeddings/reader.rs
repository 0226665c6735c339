//! A model and what it read.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use lru::LruCache;
use parking_lot::{Mutex, RwLock};
use pml_graph::everyday::{self, Everyday};
use pml_graph::vectors::Vectors;
use pml_model::Digest;
use pml_store::StoredVector;

use super::model::Model;
use super::{Vector, digest, restored, text};
use crate::catalogue::Snapshot;
use crate::config::Embedding;

/// How long it is waited after a failure.
pub(in crate::knowledge) const AGAIN: Duration = Duration::from_secs(30);
/// How many requests are remembered.
const REQUESTS: NonZeroUsize = NonZeroUsize::new(512).expect("not zero");

/// What the texts of what is asked for every day are known by.
pub(super) static EVERYDAY: LazyLock<Vec<Digest>> = LazyLock::new(|| everyday::texts().map(digest).collect());

/// A model and what it read.
#[derive(Debug)]
pub(in crate::knowledge) struct Reader {
    /// Tells it from those before it.
    pub(super) number: u64,
    pub(in crate::knowledge) model: Model,
    /// As it is stored: much is known, and little of it is looked at twice.
    pub(in crate::knowledge) known: RwLock<HashMap<Digest, StoredVector>>,
    /// Another number whenever something was read.
    pub(super) version: AtomicU64,
    /// How many texts are yet to be read.
    pub(super) left: AtomicUsize,
    pub(super) requests: Mutex<LruCache<String, Vector>>,
    /// The tools of a moment, as far as they were read then.
    tools: Mutex<Option<Arranged>>,
    /// What is asked for every day, once all of it was read.
    everyday: Mutex<Option<Arc<Everyday>>>,
    pub(super) trouble: Mutex<Option<String>>,
    /// When a request could not be read for the last time.
    pub(super) failed_at: Mutex<Option<Instant>>,
    /// Texts that the model does not take.
    pub(super) refused: Mutex<HashSet<Digest>>,
}

#[derive(Debug)]
struct Arranged {
    snapshot: Arc<Snapshot>,
    texts: Arc<Vec<Digest>>,
    version: u64,
    everyday: Option<Arc<Everyday>>,
    vectors: Arc<Vectors>,
}

impl Arranged {
    /// Where each text is that was read by then and compared with the same requests; that is not done again. What was
    /// read before those requests is quick to arrange.
    fn places(&self, everyday: Option<&Arc<Everyday>>) -> HashMap<&Digest, usize> {
        let same = self.everyday.as_ref().zip(everyday).is_some_and(|(one, other)| Arc::ptr_eq(one, other));
        let read = self.texts.iter().enumerate().filter(|(place, _)| same && self.vectors.has(*place));
        read.map(|(place, text)| (text, place)).collect()
    }
}

impl Reader {
    pub(super) fn new(embedding: &Embedding) -> Reader {
        static READERS: AtomicU64 = AtomicU64::new(0);
        Reader {
            number: READERS.fetch_add(1, Ordering::Relaxed),
            failed_at: Mutex::default(),
            refused: Mutex::default(),
            model: Model::new(embedding),
            known: RwLock::default(),
            version: AtomicU64::new(0),
            left: AtomicUsize::new(0),
            requests: Mutex::new(LruCache::new(REQUESTS)),
            tools: Mutex::default(),
            everyday: Mutex::default(),
            trouble: Mutex::default(),
        }
    }

    /// Whether it is no use to ask again so soon.
    pub(super) fn failed_lately(&self) -> bool {
        let failed_at = *self.failed_at.lock();
        failed_at.is_some_and(|at| at.elapsed() < AGAIN)
    }

    pub(in crate::knowledge) fn failed(&self, trouble: String) {
        tracing::debug!(trouble, model = self.model.name(), "what a text means could not be told");
        *self.trouble.lock() = Some(trouble);
    }

    pub(super) async fn request(self: &Arc<Self>, texts: &[String]) -> Result<Vec<Vector>, String> {
        let remembered = |text: &String| self.requests.lock().get(text).map(Arc::clone);
        let mut vectors: Vec<Option<Vector>> = texts.iter().map(remembered).collect();
        let mut unknown: Vec<String> = Vec::new();
        for (text, vector) in texts.iter().zip(&vectors) {
            if vector.is_none() && !unknown.contains(text) {
                unknown.push(text.clone());
            }
        }
        if !unknown.is_empty() {
            let read = self.model.read(unknown.clone()).await?;
            let mut requests = self.requests.lock();
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

    /// Reads a few texts. What the model does not take among others that it does is left out for good.
    pub(super) async fn read_some(&self, some: &[(Digest, String)]) -> Result<Vec<(Digest, Vector)>, String> {
        let texts = some.iter().map(|(_, text)| text.clone()).collect();
        let trouble = match self.model.read(texts).await {
            Ok(vectors) => return Ok(some.iter().map(|(key, _)| key.clone()).zip(vectors).collect()),
            Err(trouble) => trouble,
        };
        let (mut read, mut refused) = (Vec::new(), Vec::new());
        for (key, text) in some {
            match self.model.read(vec![text.clone()]).await {
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

    /// Those of the texts that were not read yet, each once.
    pub(super) fn unread(&self, texts: Vec<String>) -> Vec<(Digest, String)> {
        let known = self.known.read();
        let mut seen = self.refused.lock().clone();
        let keyed = texts.into_iter().map(|text| (digest(&text), text));
        keyed.filter(|(key, _)| !known.contains_key(key) && seen.insert(key.clone())).collect()
    }

    pub(super) fn tools(&self, snapshot: &Arc<Snapshot>) -> Arc<Vectors> {
        let version = self.version.load(Ordering::Acquire);
        let mut tools = self.tools.lock();
        let texts = match &*tools {
            Some(known) if Arc::ptr_eq(&known.snapshot, snapshot) => {
                if known.version == version {
                    return Arc::clone(&known.vectors);
                }
                Arc::clone(&known.texts)
            }
            _ => Arc::new(snapshot.tools.iter().map(|tool| digest(&text(tool))).collect()),
        };
        let known = self.known.read();
        let everyday = self.everyday(&known);
        let mut vectors = everyday.clone().map(Vectors::with_everyday).unwrap_or_default();
        let before = tools.as_ref().map(|tools| (tools, tools.places(everyday.as_ref())));
        for text in texts.iter() {
            let kept = before.as_ref().and_then(|(tools, places)| Some((tools, *places.get(text)?)));
            match (kept, known.get(text)) {
                (Some((tools, place)), Some(_)) => vectors.push_kept(&tools.vectors, place),
                (_, vector) => vectors.push(vector.map(restored).as_deref()),
            }
        }
        vectors.shrink_to_fit();
        let vectors = Arc::new(vectors);
        let snapshot = Arc::clone(snapshot);
        *tools = Some(Arranged { snapshot, texts, version, everyday, vectors: Arc::clone(&vectors) });
        vectors
    }

    /// What is asked for every day, where all of it was read.
    fn everyday(&self, known: &HashMap<Digest, StoredVector>) -> Option<Arc<Everyday>> {
        let mut everyday = self.everyday.lock();
        if everyday.is_none() {
            let refused = self.refused.lock();
            let taken = EVERYDAY.iter().filter(|text| !refused.contains(*text));
            let read: Option<Vec<Vector>> = taken.map(|text| known.get(text).map(restored)).collect();
            *everyday = read.map(|read| Arc::new(Everyday::of(&read)));
        }
        everyday.clone()
    }

    /// Takes in what is known of texts. A service may have another model behind the same name one day: what has another
    /// length than the newest cannot be compared with it, and goes.
    pub(super) fn take(&self, read: Vec<(Digest, StoredVector)>) {
        let Some(length) = read.last().map(|(_, vector)| vector.numbers.len()) else { return };
        let mut known = self.known.write();
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
    use super::super::stored;
    use super::*;

    #[test]
    fn what_is_asked_for_every_day_counts_once_all_of_it_was_read_by_one_model() {
        let reader = Reader::new(&Embedding::BuiltIn);
        let counts = || reader.everyday(&reader.known.read()).is_some();
        let all: Vec<(Digest, StoredVector)> =
            EVERYDAY.iter().map(|text| (text.clone(), stored(&[0.6, 0.8]))).collect();
        reader.take(all[1..].to_vec());
        assert!(!counts());
        // What the model does not take is not waited for.
        reader.refused.lock().insert(all[0].0.clone());
        assert!(counts());
        reader.take(vec![(digest("by another model"), stored(&[0.0, 0.6, 0.8]))]);
        assert!(!counts());
    }
}
