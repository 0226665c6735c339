//! What texts mean: the vectors of tools, of intents that were served, and of requests.
//!
//! A model of the configuration gives them. Those of tools and of served intents are made in the background, a few at a
//! time, and kept in the database by the digest of their text; until they are there, words alone decide. What is asked for
//! every day is read once, after them: it makes finding better. Requests are read when they
//! come. Vectors of two models are never compared: each model has its own.

mod endpoint;
mod model;
mod reader;
mod reading;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use pml_graph::french;
use pml_graph::past::Advice;
use pml_graph::rank::{Dense, Evidence};
use pml_graph::request::Texts;
use pml_graph::vectors::Vectors;
use pml_model::{Digest, Principal};
use pml_store::{Store, StoredVector};
use tokio::sync::Notify;

use crate::catalogue::{Snapshot, Tool};
use crate::config::Embedding;
use crate::sanitise::Sanitiser;
pub(super) use reader::{AGAIN, Reader};
pub(super) use reading::Reading;

/// How much of a text is read.
const READ_BYTES: usize = 2_000;
/// How long a request waits for what it means.
const REQUEST: Duration = Duration::from_secs(2);

/// A text as numbers; of length one.
pub type Vector = Arc<[f32]>;

/// Gives the sanitiser of the moment: which texts are secret may change.
pub(crate) struct SanitiserOf(pub(crate) Box<dyn Fn() -> Arc<Sanitiser> + Send + Sync>);

impl std::fmt::Debug for SanitiserOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SanitiserOf")
    }
}

/// What texts mean.
#[derive(Debug)]
pub struct Embeddings {
    store: Store,
    /// Takes secrets out of what is sent to a service.
    sanitiser: SanitiserOf,
    /// Another one after the configuration changed.
    reader: RwLock<Arc<Reader>>,
    pub(super) changed: Notify,
}

/// A request as it is looked for.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// In English as far as its words are known.
    pub(crate) text: String,
    /// What it means.
    pub(crate) meant: Option<Meant>,
}

impl Wanted {
    /// A request of which nothing but the words count.
    pub(crate) fn words(text: &str) -> Wanted {
        Wanted { text: text.to_owned(), meant: None }
    }
}

/// What a request means.
#[derive(Debug, Clone)]
pub(crate) struct Meant {
    /// All of it.
    pub(crate) whole: Vector,
    /// Each of its parts.
    pub(crate) parts: Vec<Vec<f32>>,
}

impl Meant {
    fn of(texts: &Texts<'_>, read: &[Vector]) -> Option<Meant> {
        let (whole, parts) = texts.meant(read)?;
        Some(Meant { whole: whole.into(), parts })
    }
}

/// How far reading has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The model.
    pub model: String,
    /// How many texts it has read.
    pub known: usize,
    /// How many are left.
    pub left: usize,
    /// Why it does not go on.
    pub trouble: Option<String>,
}

impl Embeddings {
    /// By the model of the configuration.
    pub(crate) fn new(store: Store, sanitiser: SanitiserOf, embedding: &Embedding) -> Embeddings {
        let reader = RwLock::new(Arc::new(Reader::new(embedding)));
        Embeddings { store, sanitiser, reader, changed: Notify::new() }
    }

    /// From now on by this model.
    pub(crate) fn choose(&self, embedding: &Embedding) {
        if self.reader().model.is_of(embedding) {
            return;
        }
        *self.reader.write() = Arc::new(Reader::new(embedding));
        self.changed.notify_one();
    }

    pub(super) fn reader(&self) -> Arc<Reader> {
        Arc::clone(&self.reader.read())
    }

    /// A request, with what it means where that can be told; else words alone have to do.
    pub(crate) async fn wanted(&self, intent: &str) -> Wanted {
        let text = french::gloss(intent).unwrap_or_else(|| intent.to_owned());
        let meant = self.meant(&text).await;
        Wanted { text, meant }
    }

    async fn meant(&self, text: &str) -> Option<Meant> {
        let reader = self.reader();
        if !reader.model.is_there() || reader.failed_lately() {
            return None;
        }
        let of_request = Texts::of(text);
        let mut texts: Vec<String> = of_request.all().map(|text| beginning(text).to_owned()).collect();
        if reader.model.is_elsewhere() {
            // What is kept has no secrets; nor has what is sent away.
            let sanitiser = (self.sanitiser.0)();
            texts.iter_mut().for_each(|text| *text = sanitiser.text(text).into_owned());
        }
        let read = tokio::time::timeout(REQUEST, reader.request(&texts)).await;
        match read.unwrap_or_else(|_| Err("it takes too long to answer".to_owned())) {
            Ok(vectors) => Meant::of(&of_request, &vectors),
            Err(trouble) => {
                *reader.failed_at.lock() = Some(Instant::now());
                reader.failed(trouble);
                None
            }
        }
    }

    /// What the tools of `snapshot` mean, in its order, as far as that was read.
    pub(crate) fn of_tools(&self, snapshot: &Arc<Snapshot>) -> Arc<Vectors> {
        self.reader().tools(snapshot)
    }

    /// Looks at what was read, by the digests of texts.
    pub(crate) fn with_known<T>(&self, look: impl FnOnce(&HashMap<Digest, StoredVector>) -> T) -> T {
        look(&self.reader().known.read())
    }

    /// Another number whenever texts were read, and for every model.
    pub(crate) fn version(&self) -> (u64, u64) {
        let reader = self.reader();
        (reader.number, reader.version.load(Ordering::Acquire))
    }

    /// How far reading has come; nothing where there is no model.
    pub fn progress(&self) -> Option<Progress> {
        let reader = self.reader();
        reader.model.is_there().then(|| Progress {
            model: reader.model.name(),
            known: reader.known.read().len(),
            left: reader.left.load(Ordering::Acquire),
            trouble: reader.trouble.lock().clone(),
        })
    }

    /// Takes in what the model read before of the texts of these principals.
    pub(crate) fn remember_now(&self, principals: &[Principal]) -> Result<(), pml_store::Error> {
        let reader = self.reader();
        if reader.model.is_there() {
            for principal in principals {
                reader.take(
                    self.store.blocking().vectors(principal, &reader.model.name())?.into_iter().collect(),
                );
            }
        }
        Ok(())
    }

    /// A request that was read lately, for whoever cannot wait.
    pub(crate) fn at_hand(&self, intent: &str) -> Option<Wanted> {
        let text = french::gloss(intent).unwrap_or_else(|| intent.to_owned());
        let reader = self.reader();
        let mut requests = reader.requests.lock();
        let of_request = Texts::of(&text);
        let read = of_request.all().map(|text| requests.get(beginning(text)).map(Arc::clone));
        let meant = Meant::of(&of_request, &read.collect::<Option<Vec<_>>>()?);
        Some(Wanted { meant, text })
    }
}

/// What is known of the tools of a snapshot, with a request in mind.
pub(crate) fn evidence<'e>(
    snapshot: &'e Snapshot,
    vectors: Option<&'e Vectors>,
    wanted: &'e Wanted,
    past: Option<&'e Advice>,
) -> Evidence<'e> {
    let dense = vectors.zip(wanted.meant.as_ref()).map(|(items, meant)| Dense {
        items,
        whole: &meant.whole,
        parts: &meant.parts,
    });
    Evidence { lexical: snapshot.index(), dense, past }
}

/// What is read of an intent that was served.
pub(crate) fn of_intent(intent: &str) -> String {
    let text = french::gloss(intent).unwrap_or_else(|| intent.to_owned());
    beginning(&text).to_owned()
}

/// As much of a text as a model would read; the rest would only take time.
fn beginning(text: &str) -> &str {
    pml_graph::tokens::beginning(text, READ_BYTES)
}

/// What a text is known by.
pub(crate) fn digest(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

/// What is read of a tool.
pub(crate) fn text(tool: &Tool) -> String {
    let description = tool.definition.description.as_deref().unwrap_or_default();
    let text = pml_graph::vectors::document_text(tool.id.server.as_str(), &tool.definition.name, description);
    beginning(&text).to_owned()
}

/// A vector as it is stored: a byte for each number.
pub(crate) fn stored(vector: &[f32]) -> StoredVector {
    let most = vector.iter().fold(0.0_f32, |most, number| most.max(number.abs()));
    let scale = if most > 0.0 { most / 127.0 } else { 1.0 };
    #[expect(clippy::cast_possible_truncation, reason = "at most 127")]
    let numbers = vector.iter().map(|number| (number / scale).round() as i8).collect();
    StoredVector { scale, numbers }
}

pub(crate) fn restored(stored: &StoredVector) -> Vector {
    stored.numbers.iter().map(|number| f32::from(*number) * stored.scale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_stored_with_little_loss() {
        let vector: Vec<f32> = (0_i16..384).map(|at| f32::from((at * 37) % 101 - 50) / 570.0).collect();
        let again = restored(&stored(&vector));
        let dot = |one: &[f32], other: &[f32]| one.iter().zip(other).map(|(a, b)| a * b).sum::<f32>();
        let cosine = dot(&vector, &again) / (dot(&vector, &vector) * dot(&again, &again)).sqrt();
        assert!(cosine > 0.9999, "{cosine}");
        assert_eq!(stored(&again), stored(&vector), "storing it again changes nothing");
        assert!(restored(&stored(&[0.0; 4])).iter().all(|number| *number == 0.0));
    }
}
