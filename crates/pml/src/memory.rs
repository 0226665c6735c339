//! The memory of the program: what runs left behind, found again.
//!
//! Traces are written with the end of their run. What follows from them is learned by [`keep_learning`], in the order in
//! which they were written, by whichever process comes first. Capabilities are kept in memory to be found quickly
//! and read again where the database says that they changed.

mod index;
mod next;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use pml_model::capability::State;
use pml_model::{CapabilityId, Principal};
use pml_store::Store;
use tokio::sync::Notify;

use crate::app::{App, blocking, now_ms};
use crate::sanitise::Sanitiser;
use index::Index;
pub(crate) use index::{Candidate, Known};

/// How many traces are learned from at a time.
const TOGETHER: usize = 500;
/// How often it is looked whether other processes left something to learn from.
const LOOK: Duration = Duration::from_secs(5);

/// What runs left behind, as this process knows it.
#[derive(Debug)]
pub struct Memory {
    store: Store,
    sanitiser: RwLock<Arc<Sanitiser>>,
    index: RwLock<Index>,
    /// The state of the database the index was last compared with.
    compared: RwLock<Option<i64>>,
    /// There is something to learn from.
    left: Notify,
}

impl Memory {
    /// What is kept in `store`, with `secrets` never kept.
    pub fn new(store: Store, secrets: impl IntoIterator<Item = String>) -> Memory {
        Memory {
            store,
            sanitiser: RwLock::new(Arc::new(Sanitiser::new(secrets))),
            index: RwLock::default(),
            compared: RwLock::default(),
            left: Notify::new(),
        }
    }

    /// What takes secrets out.
    pub fn sanitiser(&self) -> Arc<Sanitiser> {
        Arc::clone(&self.sanitiser.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The secrets are others from now on. What was one once stays one as long as the process lives.
    pub fn also_secret(&self, secrets: impl IntoIterator<Item = String>) {
        *self.sanitiser.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Sanitiser::new(secrets));
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
    ) -> Result<Vec<Candidate>, pml_store::Error> {
        self.refresh().await?;
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        Ok(index.find(principal, intent))
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
    fn known(&self, principal: &Principal, id: &CapabilityId) -> Option<Arc<Known>> {
        let index = self.index.read().unwrap_or_else(PoisonError::into_inner);
        index.get(principal, id).filter(|known| known.state == State::Active).cloned()
    }

    /// Whether the principal has that capability, and it works.
    pub(crate) async fn is_active(self: &Arc<Self>, principal: &Principal, id: &CapabilityId) -> bool {
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
        let memory = Arc::clone(self);
        blocking(move || memory.read_changes(now)).await
    }

    fn read_changes(&self, now: i64) -> Result<(), pml_store::Error> {
        let known = self.index.read().unwrap_or_else(PoisonError::into_inner).version();
        if self.store.capability_version()? != known {
            let changes = self.store.capabilities_since(known)?;
            self.index.write().unwrap_or_else(PoisonError::into_inner).take(changes);
        }
        *self.compared.write().unwrap_or_else(PoisonError::into_inner) = Some(now);
        Ok(())
    }
}

/// Learns from what runs leave behind, as long as the program runs.
pub(crate) async fn keep_learning(app: Arc<App>) {
    let mut looks = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            () = app.stopping().cancelled() => return,
            () = app.memory.left.notified() => {}
            _ = looks.tick() => {}
        }
        learn_all(&app).await;
    }
}

/// Learns from everything that is left. Nothing is lost where this is not reached: the traces stay, marked as new.
pub(crate) async fn learn_all(app: &App) {
    loop {
        let store = app.store.clone();
        match blocking(move || store.learn(TOGETHER, now_ms())).await {
            Ok(learned) if learned.left => {}
            Ok(_) => return,
            Err(error) => {
                tracing::warn!(%error, "nothing could be learned from the last runs; it is tried again");
                return;
            }
        }
    }
}
