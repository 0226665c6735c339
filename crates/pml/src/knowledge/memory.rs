//! The memory of the program: what runs left behind, found again.
//!
//! Traces are written with the end of their run; what follows from them is learned in the background. Capabilities are kept in memory to be found quickly
//! and read again where the database says that they changed.

mod index;
mod sessions;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, RwLock};
use pml_model::capability::State;
use pml_model::learning::CallCounts;
use pml_model::{CapabilityId, Digest, Principal};
use pml_store::{ObservedSchema, Store};
use tokio::sync::Notify;

use super::embeddings::{self, Embeddings, Wanted};
use crate::runtime::blocking;
use crate::sanitise::{KnownSecret, Sanitiser};
pub(super) use index::order_by_fit;
pub(crate) use index::{Candidate, Known};
use index::{Index, Meanings};
use sessions::Sessions;

/// What runs left behind, as this process knows it.
#[derive(Debug)]
pub struct Memory {
    store: Store,
    /// All secrets that this process has known.
    secrets: Mutex<BTreeSet<KnownSecret>>,
    sanitiser: RwLock<Arc<Sanitiser>>,
    pub(super) index: RwLock<Index>,
    /// The state of the database the index was last compared with.
    compared: RwLock<Option<i64>>,
    /// There is something to learn from.
    pub(super) left: Notify,
    sessions: Sessions,
    meanings: Mutex<Option<Arc<Meanings>>>,
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
            sessions: Sessions::default(),
            meanings: Mutex::default(),
        }
    }

    /// These were used in a session, the most recent last.
    pub(crate) fn used(&self, principal: &Principal, session: &str, tools: &[&str]) {
        self.sessions.used(principal, session, tools, Instant::now());
    }

    /// What was just used in a session, the most recent last.
    pub(crate) fn context(&self, principal: &Principal, session: &str) -> Vec<String> {
        self.sessions.of(principal, session, Instant::now())
    }

    /// Every capability.
    pub(super) async fn all(self: &Arc<Self>) -> Result<Vec<Arc<Known>>, pml_store::Error> {
        self.refresh().await?;
        Ok(self.index.read().all())
    }

    /// What takes secrets out.
    pub fn sanitiser(&self) -> Arc<Sanitiser> {
        Arc::clone(&self.sanitiser.read())
    }

    /// These are secrets too from now on. What was one once stays one as long as the process lives: runs that were given it
    /// may still be under way.
    pub fn also_secret(&self, secrets: impl IntoIterator<Item = KnownSecret>) {
        let mut all = self.secrets.lock();
        all.extend(secrets);
        let sanitiser = Arc::new(Sanitiser::new(all.iter().cloned()));
        *self.sanitiser.write() = sanitiser;
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
        meaning: Option<&Embeddings>,
    ) -> Result<Vec<Candidate>, pml_store::Error> {
        self.refresh().await?;
        let index = self.index.read();
        let meanings = meaning.map(|meaning| self.meanings(&index, meaning));
        Ok(index.find(principal, intent, wanted, meanings.as_deref()))
    }

    /// The state of the database that the capabilities here are of.
    pub(crate) fn version(&self) -> i64 {
        self.index.read().version()
    }

    /// The capabilities of `principal` that work, in an order that does not change.
    pub(crate) fn active(&self, principal: &Principal) -> Vec<Arc<Known>> {
        let index = self.index.read();
        let mut all = index.all();
        all.retain(|known| known.owner == *principal && known.state == State::Active);
        all.sort_by(|one, other| one.id.cmp(&other.id));
        all
    }

    /// A capability that calls that tool, as far as this process knows; the one used most.
    pub(crate) fn that_uses(&self, principal: &Principal, tool: &str) -> Option<Arc<Known>> {
        self.index.read().that_uses(principal, tool)
    }

    /// What the intents mean that were served, as far as they were read.
    fn meanings(&self, index: &Index, meaning: &Embeddings) -> Arc<Meanings> {
        let now = (index.version(), meaning.version());
        let mut meanings = self.meanings.lock();
        match &*meanings {
            Some(known) if known.of == now => Arc::clone(known),
            _ => {
                let new = Arc::new(Meanings::new(now, index, meaning));
                *meanings = Some(Arc::clone(&new));
                new
            }
        }
    }

    /// The intents that were served, as they are read, by whose they are.
    pub(super) fn intents(&self) -> BTreeMap<Principal, Vec<String>> {
        let mut intents: BTreeMap<Principal, Vec<String>> = BTreeMap::new();
        for known in self.index.read().all() {
            let read = known.intents.iter().map(|intent| embeddings::of_intent(intent));
            intents.entry(known.owner.clone()).or_default().extend(read);
        }
        intents
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
        Ok(self.index.read().named(principal, name))
    }

    /// The capability of that id, as far as this process knows, if it works.
    pub(crate) fn known(&self, principal: &Principal, id: &CapabilityId) -> Option<Arc<Known>> {
        let index = self.index.read();
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
        self.index.read().named(principal, name)
    }

    /// The capabilities that `source` may name, as far as this process knows, and the names of others.
    pub(crate) fn mentioned(&self, principal: &Principal, source: &str) -> (Vec<Arc<Known>>, Vec<String>) {
        self.index.read().mentioned(principal, source)
    }

    /// Brings the index up to date.
    pub(crate) async fn refresh(self: &Arc<Self>) -> Result<(), pml_store::Error> {
        let now = self.store.data_version()?;
        if *self.compared.read() == Some(now) {
            return Ok(());
        }
        let known = self.index.read().version();
        // One number, read in less time than another thread takes to begin.
        if self.store.capability_version()? != known {
            let (memory, changes) = (Arc::clone(self), self.store.capabilities_since(known).await?);
            // After a start these are all capabilities.
            blocking(move || memory.index.write().take(changes)).await;
        }
        *self.compared.write() = Some(now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sanitise::Certainty;

    #[test]
    fn a_secret_that_was_replaced_stays_one() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::from(pml_store::BlockingStore::open(&dir.path().join("pml.db")).unwrap());
        let memory = Memory::new(store, [KnownSecret::new(Certainty::Certain, "first-Zq81kP")]);
        memory.also_secret([KnownSecret::new(Certainty::Certain, "second-Wm37xT")]);
        let text = memory.sanitiser().text("first-Zq81kP and second-Wm37xT").into_owned();
        assert_eq!(text, "[REDACTED] and [REDACTED]");
    }
}
