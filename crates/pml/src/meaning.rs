//! What texts mean: the vectors of tools, of intents that were served, and of requests.
//!
//! A model of the configuration gives them. Those of tools and of served intents are made in the background, a few at a
//! time, and kept in the database by the digest of their text; until they are there, words alone decide. What is asked for
//! every day is read once, after them: it makes finding better, but nothing waits for it. Requests are read when they
//! come. Vectors of two models are never compared: each model has its own.

mod endpoint;
mod model;

use std::collections::{HashMap, HashSet};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use lru::LruCache;
use pml_graph::everyday::{self, Everyday};
use pml_graph::french;
use pml_graph::request::Texts;
use pml_graph::vectors::Vectors;
use pml_mcp::server::Change;
use pml_model::{Digest, Principal};
use pml_store::{Store, StoredVector};
use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;

use crate::app::{App, blocking};
use crate::catalogue::{Snapshot, Tool};
use crate::config::Embedding;
use crate::heap;
use crate::memory::{Memory, experience};
use model::Model;

/// How many texts are read at a time: what is done so far is kept, and counts at once.
const TOGETHER: usize = 8;
/// How much of a text is read.
const READ_BYTES: usize = 2_000;
/// How many requests are remembered.
const REQUESTS: NonZeroUsize = NonZeroUsize::new(512).expect("not zero");
/// How long after the start reading begins: what was read before is there at once, and whoever started us waits for other
/// things.
const BEFORE_READING: Duration = Duration::from_millis(500);
/// How long a request waits for what it means.
const REQUEST: Duration = Duration::from_secs(2);
/// How long it is waited after a failure.
const AGAIN: Duration = Duration::from_secs(30);
/// How many texts that are gone may be known.
const SPARE: usize = 10_000;
/// How often it is looked whether there is something new to read.
const LOOK: Duration = Duration::from_secs(5);

/// What the texts of what is asked for every day are known by.
static EVERYDAY: LazyLock<Vec<Digest>> = LazyLock::new(|| everyday::texts().map(digest).collect());

/// A text as numbers; of length one.
pub type Vector = Arc<[f32]>;

/// What texts mean.
#[derive(Debug)]
pub struct Meaning {
    store: Store,
    /// Knows which texts are secret.
    memory: Arc<Memory>,
    principal: Principal,
    /// Another one after the configuration changed.
    reader: RwLock<Arc<Reader>>,
    changed: Notify,
}

/// A model and what it read.
#[derive(Debug)]
struct Reader {
    /// Tells it from those before it.
    number: u64,
    model: Model,
    /// As it is stored: much is known, and little of it is looked at twice.
    known: RwLock<HashMap<Digest, StoredVector>>,
    /// Another number whenever something was read.
    version: AtomicU64,
    /// How many texts are yet to be read.
    left: AtomicUsize,
    requests: Mutex<LruCache<String, Vector>>,
    /// The tools of a moment, as far as they were read then.
    tools: Mutex<Option<Arranged>>,
    /// What is asked for every day, once all of it was read.
    everyday: Mutex<Option<Arc<Everyday>>>,
    trouble: Mutex<Option<String>>,
    /// When a request could not be read for the last time.
    failed_at: Mutex<Option<Instant>>,
    /// Texts that the model does not take.
    refused: Mutex<HashSet<Digest>>,
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

impl Meaning {
    /// By the model of the configuration.
    pub fn new(store: Store, memory: Arc<Memory>, principal: Principal, embedding: &Embedding) -> Meaning {
        let reader = RwLock::new(Arc::new(Reader::new(embedding)));
        Meaning { store, memory, principal, reader, changed: Notify::new() }
    }

    /// From now on by this model.
    pub(crate) fn choose(&self, embedding: &Embedding) {
        if self.reader().model.is_of(embedding) {
            return;
        }
        *self.reader.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Reader::new(embedding));
        self.changed.notify_one();
    }

    fn reader(&self) -> Arc<Reader> {
        Arc::clone(&self.reader.read().unwrap_or_else(PoisonError::into_inner))
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
            let sanitiser = self.memory.sanitiser();
            texts.iter_mut().for_each(|text| *text = sanitiser.text(text).into_owned());
        }
        let read = tokio::time::timeout(REQUEST, reader.request(&texts)).await;
        match read.unwrap_or_else(|_| Err("it takes too long to answer".to_owned())) {
            Ok(vectors) => Meant::of(&of_request, &vectors),
            Err(trouble) => {
                *reader.failed_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
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
        look(&self.reader().known.read().unwrap_or_else(PoisonError::into_inner))
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
            known: reader.known.read().unwrap_or_else(PoisonError::into_inner).len(),
            left: reader.left.load(Ordering::Acquire),
            trouble: reader.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        })
    }

    /// Takes in what the model read before.
    pub(crate) fn remember_now(&self) -> Result<(), pml_store::Error> {
        let reader = self.reader();
        if reader.model.is_there() {
            reader.take(self.store.vectors(&self.principal, &reader.model.name())?.into_iter().collect());
        }
        Ok(())
    }

    /// A request that was read lately, for whoever cannot wait.
    pub(crate) fn at_hand(&self, intent: &str) -> Option<Wanted> {
        let text = french::gloss(intent).unwrap_or_else(|| intent.to_owned());
        let reader = self.reader();
        let mut requests = reader.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let of_request = Texts::of(&text);
        let read = of_request.all().map(|text| requests.get(beginning(text)).map(Arc::clone));
        let meant = Meant::of(&of_request, &read.collect::<Option<Vec<_>>>()?);
        Some(Wanted { meant, text })
    }
}

impl Reader {
    fn new(embedding: &Embedding) -> Reader {
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
    fn failed_lately(&self) -> bool {
        let failed_at = *self.failed_at.lock().unwrap_or_else(PoisonError::into_inner);
        failed_at.is_some_and(|at| at.elapsed() < AGAIN)
    }

    fn failed(&self, trouble: String) {
        tracing::debug!(trouble, model = self.model.name(), "what a text means could not be told");
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(trouble);
    }

    async fn request(self: &Arc<Self>, texts: &[String]) -> Result<Vec<Vector>, String> {
        let remembered = |text: &String| {
            self.requests.lock().unwrap_or_else(PoisonError::into_inner).get(text).map(Arc::clone)
        };
        let mut vectors: Vec<Option<Vector>> = texts.iter().map(remembered).collect();
        let mut unknown: Vec<String> = Vec::new();
        for (text, vector) in texts.iter().zip(&vectors) {
            if vector.is_none() && !unknown.contains(text) {
                unknown.push(text.clone());
            }
        }
        if !unknown.is_empty() {
            let read = self.model.read(unknown.clone()).await?;
            let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
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
    async fn read_some(&self, some: &[(Digest, String)]) -> Result<Vec<(Digest, Vector)>, String> {
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
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).extend(refused);
        Ok(read)
    }

    /// Those of the texts that were not read yet, each once.
    fn unread(&self, texts: Vec<String>) -> Vec<(Digest, String)> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut seen = self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let keyed = texts.into_iter().map(|text| (digest(&text), text));
        keyed.filter(|(key, _)| !known.contains_key(key) && seen.insert(key.clone())).collect()
    }

    fn tools(&self, snapshot: &Arc<Snapshot>) -> Arc<Vectors> {
        let version = self.version.load(Ordering::Acquire);
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let texts = match &*tools {
            Some(known) if Arc::ptr_eq(&known.snapshot, snapshot) => {
                if known.version == version {
                    return Arc::clone(&known.vectors);
                }
                Arc::clone(&known.texts)
            }
            _ => Arc::new(snapshot.tools.iter().map(|tool| digest(&text(tool))).collect()),
        };
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
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
        let mut everyday = self.everyday.lock().unwrap_or_else(PoisonError::into_inner);
        if everyday.is_none() {
            let read: Option<Vec<Vector>> =
                EVERYDAY.iter().map(|text| known.get(text).map(restored)).collect();
            *everyday = read.map(|read| Arc::new(Everyday::of(&read)));
        }
        everyday.clone()
    }

    /// Takes in what is known of texts. A service may have another model behind the same name one day: what has another
    /// length than the newest cannot be compared with it, and goes.
    fn take(&self, read: Vec<(Digest, StoredVector)>) {
        let Some(length) = read.last().map(|(_, vector)| vector.numbers.len()) else { return };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.values().next().is_some_and(|vector| vector.numbers.len() != length) {
            known.clear();
            *self.everyday.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        known.extend(read.into_iter().filter(|(_, vector)| vector.numbers.len() == length));
        self.version.fetch_add(1, Ordering::AcqRel);
    }
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

/// Reads the tools there are and the intents that were served, as long as the program runs.
pub(crate) async fn keep_reading(app: Arc<App>) {
    let mut changes = app.changes();
    let mut looks = tokio::time::interval(LOOK);
    let mut of: Option<Arc<Reader>> = None;
    let mut seen = None;
    tokio::select! {
        () = app.stopping().cancelled() => return,
        () = tokio::time::sleep(BEFORE_READING) => {}
    }
    loop {
        let reader = app.meaning.reader();
        let read = match of.as_ref().is_some_and(|of| Arc::ptr_eq(of, &reader)) {
            true => Ok(()),
            false => remember(&app, &reader).await,
        };
        let read = match read {
            Ok(()) => {
                of = Some(Arc::clone(&reader));
                read_all(&app, &reader, Reading::Everything).await
            }
            Err(trouble) => Err(trouble),
        };
        let told = Arc::clone(&app);
        let new = seen.replace(app.meaning.version()) != Some(app.meaning.version());
        blocking(move || {
            take_in(&told);
            if new {
                heap::give_back();
            }
        })
        .await;
        let pause = match read {
            Ok(()) => Duration::ZERO,
            Err(trouble) => {
                reader.failed(trouble);
                AGAIN
            }
        };
        tokio::select! {
            () = app.stopping().cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        loop {
            tokio::select! {
                () = app.stopping().cancelled() => return,
                () = app.meaning.changed.notified() => break,
                _ = looks.tick() => break,
                change = changes.recv() => match change {
                    Ok(Change::Tools) | Err(RecvError::Lagged(_)) => break,
                    Ok(_) => {}
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }
}

/// Lets what was read be used: by what served requests before, and by what hangs together.
fn take_in(app: &App) {
    experience::bring_up_to_date(&app.memory, &app.meaning, app.catalogue.snapshot(), &app.principal);
    if let Err(error) = app.network.bring_up_to_date(app) {
        tracing::debug!(%error, "how tools hang together could not be read");
    }
}

/// Reads what can be found, for at most that long: a command ends soon, and the next one goes on where it stopped.
pub(crate) async fn read_for(app: &Arc<App>, patience: Duration) {
    let reader = app.meaning.reader();
    let all = async {
        remember(app, &reader).await?;
        read_all(app, &reader, Reading::Findable).await
    };
    match tokio::time::timeout(patience, all).await {
        Ok(Ok(())) | Err(_) => {}
        Ok(Err(trouble)) => reader.failed(trouble),
    }
    let told = Arc::clone(app);
    blocking(move || take_in(&told)).await;
}

/// Takes in what the model read before.
async fn remember(app: &Arc<App>, reader: &Arc<Reader>) -> Result<(), String> {
    reader.model.open().await?;
    let app = Arc::clone(app);
    blocking(move || app.meaning.remember_now()).await.map_err(|error| error.to_string())
}

/// What is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Tools and intents: what can be found.
    Findable,
    /// What is asked for every day as well, which makes finding better.
    Everything,
}

/// Reads what was not read yet; ends early where the model is changed.
async fn read_all(app: &Arc<App>, reader: &Arc<Reader>, what: Reading) -> Result<(), String> {
    app.memory.refresh().await.map_err(|error| error.to_string())?;
    if !reader.model.is_there() {
        return Ok(());
    }
    let mut texts: Vec<String> = app.catalogue.snapshot().tools.iter().map(text).collect();
    texts.extend(app.memory.intents());
    let wanted: HashSet<Digest> =
        texts.iter().map(|text| digest(text)).chain(EVERYDAY.iter().cloned()).collect();
    let mut unread = reader.unread(texts);
    // Nobody waits for the rest, so it is not told as left.
    let mut left = unread.len();
    if what == Reading::Everything {
        unread.extend(reader.unread(everyday::texts().map(str::to_owned).collect()));
    }
    reader.left.store(left, Ordering::Release);
    for some in unread.chunks(TOGETHER) {
        if app.stopping().is_cancelled() || !Arc::ptr_eq(reader, &app.meaning.reader()) {
            return Ok(());
        }
        let read = reader.read_some(some).await?;
        let kept: Vec<_> = read.iter().map(|(key, vector)| (key.clone(), stored(vector))).collect();
        reader.take(kept.clone());
        left = left.saturating_sub(some.len());
        reader.left.store(left, Ordering::Release);
        let (store, principal, model) =
            (app.store.clone(), app.meaning.principal.clone(), reader.model.name());
        let keep = blocking(move || store.keep_vectors(&principal, &model, kept));
        keep.await.map_err(|error| error.to_string())?;
    }
    *reader.trouble.lock().unwrap_or_else(PoisonError::into_inner) = None;
    forget_others(app, reader).await;
    forget_gone(app, reader, &wanted).await;
    Ok(())
}

/// Forgets what texts mean that are gone, once there are many.
async fn forget_gone(app: &Arc<App>, reader: &Arc<Reader>, wanted: &HashSet<Digest>) {
    let gone = {
        let known = reader.known.read().unwrap_or_else(PoisonError::into_inner);
        too_many(known.keys(), wanted, SPARE)
    };
    if gone.is_empty() {
        return;
    }
    let (store, principal, model) = (app.store.clone(), app.meaning.principal.clone(), reader.model.name());
    let forgotten = gone.clone();
    match blocking(move || store.forget_vectors(&principal, &model, forgotten)).await {
        Ok(()) => {
            let mut known = reader.known.write().unwrap_or_else(PoisonError::into_inner);
            gone.iter().for_each(|text| drop(known.remove(text)));
        }
        Err(error) => tracing::debug!(%error, "what texts mean that are gone could not be forgotten"),
    }
}

/// What is known and not wanted, where that is more than `spare` and more than what is wanted: a server that is away for a
/// while need not be read again.
fn too_many<'k>(
    known: impl Iterator<Item = &'k Digest>,
    wanted: &HashSet<Digest>,
    spare: usize,
) -> Vec<Digest> {
    let gone: Vec<Digest> = known.filter(|text| !wanted.contains(*text)).cloned().collect();
    if gone.len() > spare.max(wanted.len()) { gone } else { Vec::new() }
}

/// What other models read is of no use once this one has read it all.
async fn forget_others(app: &Arc<App>, reader: &Arc<Reader>) {
    let (store, principal, model) = (app.store.clone(), app.meaning.principal.clone(), reader.model.name());
    if let Err(error) = blocking(move || store.forget_other_vectors(&principal, &model)).await {
        tracing::debug!(%error, "what other models read could not be forgotten");
    }
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
    fn what_is_gone_is_forgotten_once_it_is_much() {
        let texts: Vec<Digest> = (0..10).map(|number| digest(&format!("text {number}"))).collect();
        let wanted: HashSet<Digest> = texts[..3].iter().cloned().collect();
        assert_eq!(too_many(texts.iter(), &wanted, 7), []);
        assert_eq!(too_many(texts.iter(), &wanted, 6), texts[3..]);
        assert_eq!(too_many(texts[..6].iter(), &wanted, 0), [], "as many may be gone as are there");
    }

    #[test]
    fn what_is_asked_for_every_day_counts_once_all_of_it_was_read_by_one_model() {
        let reader = Reader::new(&Embedding::BuiltIn);
        let counts = || reader.everyday(&reader.known.read().unwrap()).is_some();
        let all: Vec<(Digest, StoredVector)> =
            EVERYDAY.iter().map(|text| (text.clone(), stored(&[0.6, 0.8]))).collect();
        reader.take(all[1..].to_vec());
        assert!(!counts());
        reader.take(all[..1].to_vec());
        assert!(counts());
        reader.take(vec![(digest("by another model"), stored(&[0.0, 0.6, 0.8]))]);
        assert!(!counts());
    }

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
