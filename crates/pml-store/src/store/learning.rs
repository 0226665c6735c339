//! Questions about traces and what was learned from them.

use std::collections::HashMap;

use pml_model::learning::CallCounts;
use pml_model::trace::EdgeKind;
use pml_model::trace::Trace;
use pml_model::{Digest, Principal, RunId, TraceId};

use super::Store;
use crate::{BlockingStore, Error, Learned, LearnedEdge, ObservedSchema, StoredVector, Traces};

impl Store {
    /// All that `model` gave for texts of the principal.
    ///
    /// # Errors
    /// Those of [`BlockingStore::vectors`].
    pub async fn vectors(
        &self,
        principal: &Principal,
        model: &str,
    ) -> Result<HashMap<Digest, StoredVector>, Error> {
        let (principal, model) = (principal.clone(), model.to_owned());
        self.ask(move |store| store.vectors(&principal, &model)).await
    }

    /// Keeps what `model` gave for texts.
    ///
    /// # Errors
    /// Those of [`BlockingStore::keep_vectors`].
    pub async fn keep_vectors(
        &self,
        principal: &Principal,
        model: &str,
        vectors: Vec<(Digest, StoredVector)>,
    ) -> Result<(), Error> {
        let (principal, model) = (principal.clone(), model.to_owned());
        self.ask(move |store| store.keep_vectors(&principal, &model, vectors)).await
    }

    /// Forgets what `model` gave for these texts.
    ///
    /// # Errors
    /// Those of [`BlockingStore::forget_vectors`].
    pub async fn forget_vectors(
        &self,
        principal: &Principal,
        model: &str,
        texts: Vec<Digest>,
    ) -> Result<(), Error> {
        let (principal, model) = (principal.clone(), model.to_owned());
        self.ask(move |store| store.forget_vectors(&principal, &model, texts)).await
    }

    /// Forgets what other models than `model` gave for texts of the principal; says how much that was.
    ///
    /// # Errors
    /// Those of [`BlockingStore::forget_other_vectors`].
    pub async fn forget_other_vectors(&self, principal: &Principal, model: &str) -> Result<usize, Error> {
        let (principal, model) = (principal.clone(), model.to_owned());
        self.ask(move |store| store.forget_other_vectors(&principal, &model)).await
    }

    /// What came after `item`, most frequent first.
    ///
    /// # Errors
    /// Those of [`BlockingStore::edges_from`].
    pub async fn edges_from(
        &self,
        principal: &Principal,
        item: &str,
        kind: Option<EdgeKind>,
        limit: u32,
    ) -> Result<Vec<LearnedEdge>, Error> {
        let (principal, item) = (principal.clone(), item.to_owned());
        self.ask(move |store| store.edges_from(&principal, &item, kind, limit)).await
    }

    /// All that the principal's traces tell of what comes after what.
    ///
    /// # Errors
    /// Those of [`BlockingStore::edges`].
    pub async fn edges(&self, principal: &Principal) -> Result<Vec<LearnedEdge>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.edges(&principal)).await
    }

    /// Learns from up to `limit` traces that were not learned from, oldest first, of all principals.
    ///
    /// # Errors
    /// Those of [`BlockingStore::learn`].
    pub async fn learn(&self, limit: usize, now: i64) -> Result<Learned, Error> {
        self.ask(move |store| store.learn(limit, now)).await
    }

    /// Forgets all numbers; [`BlockingStore::learn`] makes them anew from all traces.
    ///
    /// # Errors
    /// Those of [`BlockingStore::forget_learned`].
    pub async fn forget_learned(&self) -> Result<(), Error> {
        self.ask(BlockingStore::forget_learned).await
    }

    /// Forgets all numbers and learns them anew from all traces, and says from how many. Should this be
    /// stopped in the middle, [`BlockingStore::learn`] goes on.
    ///
    /// # Errors
    /// Those of [`BlockingStore::relearn`].
    pub async fn relearn(&self, now: i64) -> Result<usize, Error> {
        self.ask(move |store| store.relearn(now)).await
    }

    /// What a tool was seen to return while its definition was the one with this digest.
    ///
    /// # Errors
    /// Those of [`BlockingStore::observed`].
    pub async fn observed(
        &self,
        principal: &Principal,
        tool: &str,
        digest: &Digest,
    ) -> Result<Option<ObservedSchema>, Error> {
        let (principal, tool, digest) = (principal.clone(), tool.to_owned(), digest.clone());
        self.ask(move |store| store.observed(&principal, &tool, &digest)).await
    }

    /// What all tools were seen to return, by tool and digest of its definition.
    ///
    /// # Errors
    /// Those of [`BlockingStore::observed_all`].
    pub async fn observed_all(
        &self,
        principal: &Principal,
    ) -> Result<Vec<(String, Digest, ObservedSchema)>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.observed_all(&principal)).await
    }

    /// How often each tool was called, and failed.
    ///
    /// # Errors
    /// Those of [`BlockingStore::tool_uses`].
    pub async fn tool_uses(&self, principal: &Principal) -> Result<Vec<(String, CallCounts)>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.tool_uses(&principal)).await
    }

    /// A trace.
    ///
    /// # Errors
    /// Those of [`BlockingStore::trace`].
    pub async fn trace(&self, principal: &Principal, id: &TraceId) -> Result<Option<Trace>, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.trace(&principal, &id)).await
    }

    /// The trace of a run, once that is over.
    ///
    /// # Errors
    /// Those of [`BlockingStore::trace_of_run`].
    pub async fn trace_of_run(&self, principal: &Principal, run: &RunId) -> Result<Option<Trace>, Error> {
        let (principal, run) = (principal.clone(), run.clone());
        self.ask(move |store| store.trace_of_run(&principal, &run)).await
    }

    /// The principal's traces, a page at a time.
    ///
    /// # Errors
    /// Those of [`BlockingStore::traces`].
    pub async fn traces(&self, principal: &Principal, wanted: &Traces) -> Result<Vec<Trace>, Error> {
        let (principal, wanted) = (principal.clone(), wanted.clone());
        self.ask(move |store| store.traces(&principal, &wanted)).await
    }
}
