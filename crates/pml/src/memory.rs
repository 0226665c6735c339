//! The memory of the program: what runs left behind, found again.
//!
//! Traces are written with the end of their run. What follows from them is learned by [`keep_learning`], in the order in
//! which they were written, by whichever process comes first. Capabilities are kept in memory to be found quickly
//! and read again where the database says that they changed.

mod check;
mod context;
pub(crate) mod experience;
mod index;
pub(crate) mod intents;
mod next;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use pml_graph::past::Advice;
use pml_mcp::server::Change;
use pml_model::capability::State;
use pml_model::{CapabilityId, Digest, Principal};
use pml_store::{CallCounts, Dropped, ObservedSchema, Store};
use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;

use crate::app::App;
use crate::catalogue::Snapshot;
use crate::clock::now_ms;
use crate::meaning::{self, Meaning, Wanted};
use crate::runtime::blocking;
use crate::sanitise::{KnownSecret, Sanitiser};
use context::Contexts;
use experience::Experience;
pub(crate) use index::{Candidate, Known};
use index::{Index, Meanings};
pub(crate) use next::{add_next, next_close};

/// How many traces are learned from at a time.
const TOGETHER: usize = 500;
/// How long a trace waits for others: whoever runs one thing often runs another, and learning would take its time.
const TOGETHER_WITHIN: Duration = Duration::from_millis(100);
/// How often it is read at most what tools were seen to give.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// How often it is looked whether other processes left something to learn from.
const LOOK: Duration = Duration::from_secs(5);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What runs left behind, as this process knows it.
#[derive(Debug)]
pub struct Memory {
    store: Store,
    /// All secrets that this process has known.
    secrets: Mutex<BTreeSet<KnownSecret>>,
    sanitiser: RwLock<Arc<Sanitiser>>,
    index: RwLock<Index>,
    /// The state of the database the index was last compared with.
    compared: RwLock<Option<i64>>,
    /// There is something to learn from.
    left: Notify,
    observed: RwLock<Arc<Observed>>,
    uses: RwLock<Arc<Uses>>,
    contexts: Contexts,
    meanings: Mutex<Option<Arc<Meanings>>>,
    experience: RwLock<Option<Experience>>,
}

/// What tools that do not say what they give were seen to give, by their definitions.
pub(crate) type Observed = HashMap<(String, Digest), ObservedSchema>;

/// How often tools were called and failed, by their ids.
pub(crate) type Uses = HashMap<String, CallCounts>;

impl Memory {
    /// What is kept in `store`, with `secrets` never kept.
    pub fn new(store: Store, secrets: impl IntoIterator<Item = KnownSecret>) -> Memory {
        let secrets: BTreeSet<KnownSecret> = secrets.into_iter().collect();
        Memory {
            store,
            sanitiser: RwLock::new(Arc::new(Sanitiser::new(secrets.iter().cloned()))),
            secrets: Mutex::new(secrets),
            index: RwLock::default(),
            compared: RwLock::default(),
            left: Notify::new(),
            observed: RwLock::default(),
            uses: RwLock::default(),
            contexts: Contexts::default(),
            meanings: Mutex::default(),
            experience: RwLock::default(),
        }
    }

    /// What tools were seen to give.
    pub(crate) fn observed(&self) -> Arc<Observed> {
        Arc::clone(&self.observed.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// How often tools were called and failed.
    pub(crate) fn uses(&self) -> Arc<Uses> {
        Arc::clone(&self.uses.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// These were used in a session, the most recent last.
    pub(crate) fn used(&self, principal: &Principal, session: &str, tools: &[&str]) {
        self.contexts.used(principal, session, tools, Instant::now());
    }

    /// What was just used in a session, the most recent last.
    pub(crate) fn context(&self, principal: &Principal, session: &str) -> Vec<String> {
        self.contexts.of(principal, session, Instant::now())
    }

    /// Reads again what became of the calls of tools.
    fn observe(&self, principal: &Principal) -> Result<(), pml_store::Error> {
        let uses = self.store.tool_uses(principal)?.into_iter().collect();
        *self.uses.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(uses);
        let seen = self.store.observed_all(principal)?.into_iter();
        let seen: Observed = seen.map(|(tool, digest, schema)| ((tool, digest), schema)).collect();
        let mut observed = self.observed.write().unwrap_or_else(PoisonError::into_inner);
        if **observed != seen {
            *observed = Arc::new(seen);
        }
        Ok(())
    }

    /// Every capability.
    async fn all(self: &Arc<Self>) -> Result<Vec<Arc<Known>>, pml_store::Error> {
        self.refresh().await?;
        Ok(self.index.read().unwrap_or_else(PoisonError::into_inner).all())
    }

    /// What takes secrets out.
    pub fn sanitiser(&self) -> Arc<Sanitiser> {
        Arc::clone(&self.sanitiser.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// These are secrets too from now on. What was one once stays one as long as the process lives: runs that were given it
    /// may still be under way.
    pub fn also_secret(&self, secrets: impl IntoIterator<Item = KnownSecret>) {
        let mut all = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(secrets);
        let sanitiser = Arc::new(Sanitiser::new(all.iter().cloned()));
        *self.sanitiser.write().unwrap_or_else(PoisonError::into_inner) = sanitiser;
    }

    /// A run has left something to learn from.
    pub(crate) fn left(&self) {
        self.left.notify_one();
    }

    /// The capabilities of `principal` that have most to do with `intent`.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(crate) async fn find(
        self: &Arc<Self>,
        principal: &Principal,
        intent: &str,
        wanted: &Wanted,
        meaning: Option<&Meaning>,
    ) -> Result<Vec<Candidate>, pml_store::Error> {
        self.refresh().await?;
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        let meanings = meaning.map(|meaning| self.meanings(&index, meaning));
        Ok(index.find(principal, intent, wanted, meanings.as_deref()))
    }

    /// Puts capabilities that are about as likely in the order of how well they fit by all that they served and by their
    /// tools. Takes as long as finding tools.
    pub(crate) fn put_in_order(&self, found: &mut [Candidate], meaning: &Meaning, wanted: &Wanted) {
        if found.len() > 1 {
            self.with_experience(|experience| {
                let fits = experience.fits(&meaning.of_tools(experience.snapshot()), wanted);
                index::order_by_fit(found, &fits);
            });
        }
    }

    /// The state of the database that the capabilities here are of.
    pub(crate) fn version(&self) -> i64 {
        self.index.read().unwrap_or_else(PoisonError::into_inner).version()
    }

    /// What past requests say of the tools of `snapshot`; nothing where they are not known for it yet.
    pub(crate) fn advice(&self, snapshot: &Arc<Snapshot>, wanted: &Wanted) -> Option<Advice> {
        self.with_experience(|experience| experience.advice(snapshot, wanted)).flatten()
    }

    /// What served requests before, where there is any.
    pub(crate) fn with_experience<T>(&self, look: impl FnOnce(&Experience) -> T) -> Option<T> {
        self.experience.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(look)
    }

    /// The capabilities of `principal` that work, in an order that does not change.
    pub(crate) fn active(&self, principal: &Principal) -> Vec<Arc<Known>> {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        let mut all = index.all();
        all.retain(|known| known.owner == *principal && known.state == State::Active);
        all.sort_by(|one, other| one.id.cmp(&other.id));
        all
    }

    /// A capability that calls that tool, as far as this process knows; the one used most.
    pub(crate) fn that_uses(&self, principal: &Principal, tool: &str) -> Option<Arc<Known>> {
        self.index.read().unwrap_or_else(PoisonError::into_inner).that_uses(principal, tool)
    }

    /// What the intents mean that were served, as far as they were read.
    fn meanings(&self, index: &Index, meaning: &Meaning) -> Arc<Meanings> {
        let now = (index.version(), meaning.version());
        let mut meanings = self.meanings.lock().unwrap_or_else(PoisonError::into_inner);
        match &*meanings {
            Some(known) if known.of == now => Arc::clone(known),
            _ => {
                let new = Arc::new(Meanings::new(now, index, meaning));
                *meanings = Some(Arc::clone(&new));
                new
            }
        }
    }

    /// The intents that were served, as they are read.
    pub(crate) fn intents(&self) -> Vec<String> {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        let all = index.all();
        all.iter().flat_map(|known| known.intents.iter().map(|intent| meaning::of_intent(intent))).collect()
    }

    /// The capability of that name or id, if it can be used.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(crate) async fn named(
        self: &Arc<Self>,
        principal: &Principal,
        name: &str,
    ) -> Result<Option<Arc<Known>>, pml_store::Error> {
        self.refresh().await?;
        Ok(self.index.read().unwrap_or_else(PoisonError::into_inner).named(principal, name))
    }

    /// The capability of that id, as far as this process knows, if it works.
    pub(crate) fn known(&self, principal: &Principal, id: &CapabilityId) -> Option<Arc<Known>> {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        index.get(principal, id).filter(|known| known.state == State::Active).cloned()
    }

    /// Whether the principal has that capability, and it works. One that was deleted this very moment counts as there: the
    /// next run makes it anew.
    pub(crate) async fn is_active(self: &Arc<Self>, principal: &Principal, id: &CapabilityId) -> bool {
        if self.known(principal, id).is_some() {
            return true;
        }
        if let Err(error) = self.refresh().await {
            tracing::debug!(%error, "which capabilities there are could not be read");
            return false;
        }
        self.known(principal, id).is_some()
    }

    /// The capability of that name, as far as this process knows.
    pub(crate) fn called(&self, principal: &Principal, name: &str) -> Option<Arc<Known>> {
        self.index.read().unwrap_or_else(PoisonError::into_inner).named(principal, name)
    }

    /// The capabilities that `source` may name, as far as this process knows, and the names of others.
    pub(crate) fn mentioned(&self, principal: &Principal, source: &str) -> (Vec<Arc<Known>>, Vec<String>) {
        self.index.read().unwrap_or_else(PoisonError::into_inner).mentioned(principal, source)
    }

    /// Brings the index up to date.
    pub(crate) async fn refresh(self: &Arc<Self>) -> Result<(), pml_store::Error> {
        let now = self.store.data_version()?;
        if *self.compared.read().unwrap_or_else(PoisonError::into_inner) == Some(now) {
            return Ok(());
        }
        let known = self.index.read().unwrap_or_else(PoisonError::into_inner).version();
        // One number, read in less time than another thread takes to begin.
        if self.store.capability_version()? != known {
            let memory = Arc::clone(self);
            blocking(move || memory.read_changes(known)).await?;
        }
        *self.compared.write().unwrap_or_else(PoisonError::into_inner) = Some(now);
        Ok(())
    }

    fn read_changes(&self, known: i64) -> Result<(), pml_store::Error> {
        let changes = self.store.capabilities_since(known)?;
        self.index.write().unwrap_or_else(PoisonError::into_inner).take(changes);
        Ok(())
    }
}

/// Learns from what runs leave behind, as long as the program runs.
pub(crate) async fn keep_learning(app: Arc<App>) {
    let mut looks = tokio::time::interval(LOOK);
    let (mut seen, mut observed) = (None, None);
    let mut expired = Instant::now();
    drop_expired(&app).await;
    loop {
        tokio::select! {
            () = app.stopping().cancelled() => return,
            () = app.memory.left.notified() => tokio::time::sleep(TOGETHER_WITHIN).await,
            _ = looks.tick() => {}
        }
        let learned = learn_all(&app).await;
        intents::check_all(&app).await;
        // Another process may have learned it.
        let changed = app.store.data_version().ok().filter(|version| seen != Some(*version));
        if (learned || changed.is_some()) && observed.is_none_or(|at: Instant| at.elapsed() > BETWEEN_LOOKS) {
            (seen, observed) = (changed.or(seen), Some(Instant::now()));
            observe(&app).await;
        }
        if expired.elapsed() > DAY {
            expired = Instant::now();
            drop_expired(&app).await;
        }
    }
}

/// Drops results whose time is over; they are not given out anyway.
async fn drop_expired(app: &App) {
    let (store, principal) = (app.store.clone(), app.principal.clone());
    let dropped = move || store.drop_cached(&principal, Dropped::Expired, "its time was over", now_ms());
    if let Err(error) = blocking(dropped).await {
        tracing::debug!(%error, "results whose time is over could not be dropped");
    }
}

async fn observe(app: &App) {
    let (memory, principal) = (Arc::clone(&app.memory), app.principal.clone());
    if let Err(error) = blocking(move || memory.observe(&principal)).await {
        tracing::debug!(%error, "what tools were seen to give could not be read");
    }
}

/// Compares what was learned with the tools there are, whenever these change.
pub(crate) async fn keep_checking(app: Arc<App>) {
    let mut changes = app.changes();
    loop {
        check::check(&app).await;
        loop {
            tokio::select! {
                () = app.stopping().cancelled() => return,
                change = changes.recv() => match change {
                    Ok(Change::Tools) | Err(RecvError::Lagged(_)) => break,
                    Ok(_) => {}
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }
}

/// Learns from everything that is left, and says whether there was anything. Nothing is lost where this is not reached: the
/// traces stay, marked as new.
pub(crate) async fn learn_all(app: &App) -> bool {
    let mut any = false;
    loop {
        let store = app.store.clone();
        match blocking(move || store.learn(TOGETHER, now_ms())).await {
            Ok(learned) => {
                any |= learned.traces > 0;
                if !learned.left {
                    return any;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "nothing could be learned from the last runs; it is tried again");
                return any;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sanitise::Certainty;

    #[test]
    fn a_secret_that_was_replaced_stays_one() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("pml.db")).unwrap();
        let memory = Memory::new(store, [KnownSecret::new(Certainty::Certain, "first-Zq81kP")]);
        memory.also_secret([KnownSecret::new(Certainty::Certain, "second-Wm37xT")]);
        let text = memory.sanitiser().text("first-Zq81kP and second-Wm37xT").into_owned();
        assert_eq!(text, "[REDACTED] and [REDACTED]");
    }
}
