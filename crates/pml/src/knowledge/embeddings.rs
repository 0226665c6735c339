//! Embeddings: the vectors of tools, served intents and requests.
//!
//! The configured model computes them. Those of tools and served intents are computed in the background, a few at a
//! time, and stored by the digest of their text; until they exist, words alone decide. Everyday requests are embedded
//! once, after them, because that improves the search. Requests are embedded when they arrive. Vectors of two models
//! are never compared: each model has its own.

mod embed_queue;
mod embedder;
mod endpoint;
mod model;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use pml_graph::past::PastAdvice;
use pml_graph::rank::{DenseEvidence, RankingEvidence};
use pml_graph::request::RequestTexts;
use pml_graph::vectors::VectorTable;
use pml_language::french;
use pml_model::{Digest, Principal};
use pml_store::{Store, StoredVector};
use tokio::sync::{Notify, watch};

use crate::catalogue::{CatalogueTool, ToolSnapshot};
use crate::config::EmbeddingSettings;
use crate::sanitise::Sanitiser;
pub(super) use embed_queue::{EmbeddingScope, PrincipalTexts};
pub(super) use embedder::{AGAIN, Embedder};

/// Bytes of a text that are embedded.
const READ_BYTES: usize = 2_000;
/// 2 s: how long a request waits for its embedding by a model elsewhere.
const REMOTE_REQUEST: Duration = Duration::from_secs(2);
/// 20 s: how long a request waits for its embedding by the model in this process. It takes milliseconds unless the
/// machine is overloaded, and then a late answer is better than one by words alone.
const LOCAL_REQUEST: Duration = Duration::from_secs(20);

/// 300 ms: how long the first requests after a start wait for the stored vectors. Loading them takes a tenth of that;
/// without them, the best tool may not be found by its words.
const LOADING: Duration = Duration::from_millis(300);

/// The embedding of a text, normalised to length one.
pub type Vector = Arc<[f32]>;

/// Returns the current sanitiser: the set of secrets may change.
pub struct SanitiserSource(pub Box<dyn Fn() -> Arc<Sanitiser> + Send + Sync>);

impl std::fmt::Debug for SanitiserSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SanitiserOf")
    }
}

/// The embedding service of the program.
#[derive(Debug)]
pub struct Embeddings {
    store: Store,
    /// Removes secrets from texts that are sent to a remote model.
    sanitiser: SanitiserSource,
    /// The embedder; replaced after a configuration change.
    reader: RwLock<Arc<Embedder>>,
    /// Whether the stored vectors were loaded.
    loaded: watch::Sender<bool>,
    /// Whether a request has waited for them in vain; no other waits then.
    waited: AtomicBool,
    pub(super) changed: Notify,
}

/// An intent in the form for search.
#[derive(Debug, Clone)]
pub struct IntentReading {
    /// The text, translated to English as far as its words are known.
    pub text: String,
    /// The embeddings; `None` if there is no model or it failed.
    pub(crate) vectors: Option<IntentVectors>,
}

impl IntentReading {
    /// An intent without embeddings, searched by words only.
    pub fn words_only(text: &str) -> IntentReading {
        IntentReading { text: text.to_owned(), vectors: None }
    }
}

/// The embeddings of an intent.
#[derive(Debug, Clone)]
pub(crate) struct IntentVectors {
    /// The vector of the complete text.
    pub(crate) whole: Vector,
    /// The vector of each part.
    pub(crate) parts: Vec<Vec<f32>>,
}

impl IntentVectors {
    fn of(texts: &RequestTexts<'_>, read: &[Vector]) -> Option<IntentVectors> {
        let (whole, parts) = texts.assemble_vectors(read)?;
        Some(IntentVectors { whole: whole.into(), parts })
    }
}

/// The progress of the background embedding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingProgress {
    /// The name of the model.
    pub model: String,
    /// The number of embedded texts.
    pub embedded: usize,
    /// Whether the stored vectors are still being loaded.
    pub is_loading: bool,
    /// The number of texts still to be embedded.
    pub remaining: usize,
    /// The error that stopped it, if one did.
    pub last_error: Option<String>,
}

impl Embeddings {
    /// Embeddings by the configured model.
    pub fn new(store: Store, sanitiser: SanitiserSource, embedding: &EmbeddingSettings) -> Embeddings {
        let reader = RwLock::new(Arc::new(Embedder::new(embedding)));
        let loaded = watch::Sender::new(matches!(embedding, EmbeddingSettings::None));
        Embeddings {
            store,
            sanitiser,
            reader,
            loaded,
            waited: AtomicBool::new(false),
            changed: Notify::new(),
        }
    }

    /// Switches to another model.
    pub(crate) fn set_model(&self, embedding: &EmbeddingSettings) {
        if self.embedder().model.is_of(embedding) {
            return;
        }
        *self.reader.write() = Arc::new(Embedder::new(embedding));
        self.changed.notify_one();
    }

    pub(super) fn embedder(&self) -> Arc<Embedder> {
        Arc::clone(&self.reader.read())
    }

    /// Reads an intent, with its embeddings if they can be computed; else words alone must do.
    pub async fn read_intent(&self, intent: &str) -> IntentReading {
        let text = french::gloss(intent).unwrap_or_else(|| intent.to_owned());
        let (meant, ()) = tokio::join!(self.meant(&text), self.wait_until_loaded());
        IntentReading { text, vectors: meant }
    }

    /// Waits for the stored vectors, for a bounded time.
    async fn wait_until_loaded(&self) {
        let mut loaded = self.loaded.subscribe();
        if !self.waited.load(Ordering::Acquire)
            && tokio::time::timeout(LOADING, loaded.wait_for(|loaded| *loaded)).await.is_err()
        {
            self.waited.store(true, Ordering::Release);
        }
    }

    /// Notes that the stored vectors were loaded, and how many of `texts` have none.
    pub(super) fn finish_loading(&self, reader: &Embedder, texts: Vec<String>) {
        reader.remaining.store(reader.still_unread(keyed(texts)).len(), Ordering::Release);
        self.loaded.send_replace(true);
    }

    async fn meant(&self, text: &str) -> Option<IntentVectors> {
        let of_request = RequestTexts::of(text);
        let texts = of_request.iter().map(|text| beginning(text).to_owned()).collect();
        IntentVectors::of(&of_request, &self.embed_now(texts).await?)
    }

    /// The embedding of an intent without its values; `None` if there is no model or it failed.
    pub(super) async fn embed_masked(&self, intent: &str) -> Option<Vector> {
        self.embed_now(vec![masked_intent_text(intent)]).await?.pop()
    }

    async fn embed_now(&self, mut texts: Vec<String>) -> Option<Vec<Vector>> {
        let reader = self.embedder();
        if !reader.model.is_configured() || reader.failed_lately() {
            return None;
        }
        if reader.model.is_remote() {
            // Neither stored texts nor texts sent to a remote model contain secrets.
            let sanitiser = (self.sanitiser.0)();
            texts.iter_mut().for_each(|text| *text = sanitiser.clean_text(text).into_owned());
        }
        let patience = if reader.model.is_remote() { REMOTE_REQUEST } else { LOCAL_REQUEST };
        let read = tokio::time::timeout(patience, reader.embed_request(&texts)).await;
        match read.unwrap_or_else(|_| Err("it takes too long to answer".to_owned())) {
            Ok(vectors) => Some(vectors),
            Err(trouble) => {
                *reader.failed_at.lock() = Some(Instant::now());
                reader.note_failure(trouble);
                None
            }
        }
    }

    /// The vectors of the tools of `snapshot`, in its order, as far as they exist.
    pub fn tool_vectors(&self, snapshot: &Arc<ToolSnapshot>) -> Arc<VectorTable> {
        self.embedder().tool_vectors(snapshot)
    }

    /// Calls `look` with the known vectors, by text digest.
    pub(crate) fn with_known<T>(&self, look: impl FnOnce(&HashMap<Digest, StoredVector>) -> T) -> T {
        look(&self.embedder().vectors.read())
    }

    /// A number that changes whenever texts were embedded, and the number of the model.
    pub(crate) fn version(&self) -> (u64, u64) {
        let reader = self.embedder();
        (reader.number, reader.version.load(Ordering::Acquire))
    }

    /// The progress of embedding; `None` if there is no model.
    pub fn progress(&self) -> Option<EmbeddingProgress> {
        let reader = self.embedder();
        reader.model.is_configured().then(|| EmbeddingProgress {
            model: reader.model.name(),
            embedded: reader.vectors.read().len(),
            is_loading: !*self.loaded.borrow(),
            remaining: reader.remaining.load(Ordering::Acquire),
            last_error: reader.last_error.lock().clone(),
        })
    }

    /// Loads the stored vectors for the texts of these principals.
    pub fn load_stored(&self, principals: &[Principal]) -> Result<(), pml_store::Error> {
        let reader = self.embedder();
        if reader.model.is_configured() {
            for principal in principals {
                reader.add_vectors(
                    self.store.blocking().vectors(principal, &reader.model.name())?.into_iter().collect(),
                );
            }
        }
        Ok(())
    }

    /// A recently embedded request, for callers that cannot wait.
    pub(crate) fn cached_reading(&self, intent: &str) -> Option<IntentReading> {
        let text = french::gloss(intent).unwrap_or_else(|| intent.to_owned());
        let reader = self.embedder();
        let mut requests = reader.request_cache.lock();
        let of_request = RequestTexts::of(&text);
        let read = of_request.iter().map(|text| requests.get(beginning(text)).map(Arc::clone));
        let meant = IntentVectors::of(&of_request, &read.collect::<Option<Vec<_>>>()?);
        Some(IntentReading { vectors: meant, text })
    }
}

/// The search evidence for the tools of a snapshot and an intent.
pub(crate) fn evidence<'e>(
    snapshot: &'e ToolSnapshot,
    vectors: Option<&'e VectorTable>,
    wanted: &'e IntentReading,
    past: Option<&'e PastAdvice>,
) -> RankingEvidence<'e> {
    let dense = vectors.zip(wanted.vectors.as_ref()).map(|(items, meant)| DenseEvidence {
        items,
        whole: &meant.whole,
        parts: &meant.parts,
    });
    RankingEvidence { lexical: snapshot.index(), dense, advice: past }
}

/// The text of a served intent that is embedded.
pub(crate) fn intent_text(intent: &str) -> String {
    let text = french::gloss(intent).unwrap_or_else(|| intent.to_owned());
    beginning(&text).to_owned()
}

/// The text of a served intent without its values that is embedded.
pub(crate) fn masked_intent_text(intent: &str) -> String {
    beginning(&crate::reuse::masked(intent)).to_owned()
}

/// The beginning of a text, as much as a model would use; the rest would only take time.
fn beginning(text: &str) -> &str {
    pml_language::byte_prefix(text, READ_BYTES)
}

/// The key of a text.
pub fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

/// Texts with their keys.
fn keyed(texts: Vec<String>) -> Vec<(Digest, String)> {
    texts.into_iter().map(|text| (digest(&text), text)).collect()
}

/// The text of a tool that is embedded.
pub fn tool_text(tool: &CatalogueTool) -> String {
    let description = tool.definition.description.as_deref().unwrap_or_default();
    let text = pml_graph::vectors::document_text(tool.id.server.as_str(), &tool.definition.name, description);
    beginning(&text).to_owned()
}

/// A vector in storage form: one byte per number.
pub fn quantised(vector: &[f32]) -> StoredVector {
    let most = vector.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
    let scale = if most > 0.0 { most / 127.0 } else { 1.0 };
    #[expect(clippy::cast_possible_truncation, reason = "at most 127")]
    let numbers = vector.iter().map(|number| (number / scale).round() as i8).collect();
    StoredVector { scale, numbers }
}

/// A stored vector, restored up to the rounding error.
pub fn dequantised(stored: &StoredVector) -> Vector {
    stored.numbers.iter().map(|number| f32::from(*number) * stored.scale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_stored_with_little_loss() {
        let vector: Vec<f32> = (0_i16..384).map(|at| f32::from((at * 37) % 101 - 50) / 570.0).collect();
        let again = dequantised(&quantised(&vector));
        let dot = |one: &[f32], other: &[f32]| one.iter().zip(other).map(|(a, b)| a * b).sum::<f32>();
        let cosine = dot(&vector, &again) / (dot(&vector, &vector) * dot(&again, &again)).sqrt();
        assert!(cosine > 0.9999, "{cosine}");
        assert_eq!(quantised(&again), quantised(&vector), "storing it again changes nothing");
        assert!(dequantised(&quantised(&[0.0; 4])).iter().all(|number| *number == 0.0));
    }
}
