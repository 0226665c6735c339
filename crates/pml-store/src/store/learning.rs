//! Traces and what was learned from them.

use std::collections::HashMap;

use pml_model::exploration::ExploredPath;
use pml_model::learning::{CallCounts, Lesson};
use pml_model::trace::EdgeKind;
use pml_model::trace::Trace;
use pml_model::{Digest, Principal, RunId, TraceId};

use super::Store;
use crate::{
    BlockingStore, Error, ForgetScope, ForgottenCounts, LearnedBatch, LearnedEdge, ObservedSchema,
    StoredVector, ToolSpeculation, TraceQuery,
};

impl Store {
    /// What [`BlockingStore::forget`] would forget.
    ///
    /// # Errors
    /// Those of [`BlockingStore::count_forgettable`].
    pub async fn count_forgettable(&self, scope: &ForgetScope) -> Result<ForgottenCounts, Error> {
        let scope = scope.clone();
        self.ask(move |store| store.count_forgettable(&scope)).await
    }

    /// Forgets runs and everything that came of them, and learns anew from what is left.
    ///
    /// # Errors
    /// Those of [`BlockingStore::forget`].
    pub async fn forget(&self, scope: &ForgetScope, now: i64) -> Result<ForgottenCounts, Error> {
        let scope = scope.clone();
        self.ask(move |store| store.forget(&scope, now)).await
    }

    /// Deletes arguments, results and paths of old traces.
    ///
    /// # Errors
    /// Those of [`BlockingStore::drop_trace_details`].
    pub async fn drop_trace_details(&self, from: i64, before: i64) -> Result<i64, Error> {
        self.ask(move |store| store.drop_trace_details(from, before)).await
    }

    /// What came of speculated calls, by tool.
    ///
    /// # Errors
    /// Those of [`BlockingStore::speculation`].
    pub async fn speculation(&self, principal: &Principal) -> Result<Vec<ToolSpeculation>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.speculation(&principal)).await
    }

    /// What the latest traces of the principal's explored paths show, oldest first.
    ///
    /// # Errors
    /// Those of [`BlockingStore::explored_paths`].
    pub async fn explored_paths(
        &self,
        principal: &Principal,
        limit: u32,
    ) -> Result<Vec<ExploredPath>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.explored_paths(&principal, limit)).await
    }

    /// All embeddings that `model` gave for texts of the principal.
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

    /// Stores embeddings that `model` gave.
    ///
    /// # Errors
    /// Those of [`BlockingStore::store_vectors`].
    pub async fn store_vectors(
        &self,
        principal: &Principal,
        model: &str,
        vectors: Vec<(Digest, StoredVector)>,
    ) -> Result<(), Error> {
        let (principal, model) = (principal.clone(), model.to_owned());
        self.ask(move |store| store.store_vectors(&principal, &model, vectors)).await
    }

    /// Deletes the embeddings that `model` gave for these texts.
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

    /// Deletes the principal's embeddings of all models other than `model`, and returns their number.
    ///
    /// # Errors
    /// Those of [`BlockingStore::forget_vectors_of_other_models`].
    pub async fn forget_vectors_of_other_models(
        &self,
        principal: &Principal,
        model: &str,
    ) -> Result<usize, Error> {
        let (principal, model) = (principal.clone(), model.to_owned());
        self.ask(move |store| store.forget_vectors_of_other_models(&principal, &model)).await
    }

    /// The edges from `item`, most frequent first.
    ///
    /// # Errors
    /// Those of [`BlockingStore::learned_edges_from`].
    pub async fn learned_edges_from(
        &self,
        principal: &Principal,
        item: &str,
        kind: Option<EdgeKind>,
        limit: u32,
    ) -> Result<Vec<LearnedEdge>, Error> {
        let (principal, item) = (principal.clone(), item.to_owned());
        self.ask(move |store| store.learned_edges_from(&principal, &item, kind, limit)).await
    }

    /// All edges that the principal's traces show.
    ///
    /// # Errors
    /// Those of [`BlockingStore::learned_edges`].
    pub async fn learned_edges(&self, principal: &Principal) -> Result<Vec<LearnedEdge>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.learned_edges(&principal)).await
    }

    /// Learns from up to `limit` traces that were not learned yet, oldest first, of all principals.
    ///
    /// # Errors
    /// Those of [`BlockingStore::learn_traces`].
    pub async fn learn_traces(&self, limit: usize, now: i64) -> Result<LearnedBatch, Error> {
        self.ask(move |store| store.learn_traces(limit, now)).await
    }

    /// Deletes all learned numbers; [`BlockingStore::learn_traces`] learns them again from all traces.
    ///
    /// # Errors
    /// Those of [`BlockingStore::reset_learning`].
    pub async fn reset_learning(&self) -> Result<(), Error> {
        self.ask(BlockingStore::reset_learning).await
    }

    /// Deletes all learned numbers, learns them again from all traces, and returns the number of traces. `progress` is
    /// told how many are learned so far, and of how many. If this is interrupted, [`BlockingStore::learn_traces`]
    /// continues.
    ///
    /// # Errors
    /// Those of [`BlockingStore::relearn_all_observed`].
    pub async fn relearn_all(
        &self,
        now: i64,
        progress: impl Fn(usize, usize) + Send + 'static,
    ) -> Result<usize, Error> {
        self.ask(move |store| store.relearn_all_observed(now, progress)).await
    }

    /// The schema observed for a tool under the definition with this digest.
    ///
    /// # Errors
    /// Those of [`BlockingStore::observed_schema`].
    pub async fn observed_schema(
        &self,
        principal: &Principal,
        tool: &str,
        digest: &Digest,
    ) -> Result<Option<ObservedSchema>, Error> {
        let (principal, tool, digest) = (principal.clone(), tool.to_owned(), digest.clone());
        self.ask(move |store| store.observed_schema(&principal, &tool, &digest)).await
    }

    /// The observed schemas of all tools, by tool and digest of its definition.
    ///
    /// # Errors
    /// Those of [`BlockingStore::observed_schemas`].
    pub async fn observed_schemas(
        &self,
        principal: &Principal,
    ) -> Result<Vec<(String, Digest, ObservedSchema)>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.observed_schemas(&principal)).await
    }

    /// The lessons of the latest traces that count for tools, oldest first.
    ///
    /// # Errors
    /// Those of [`BlockingStore::latest_lessons`].
    pub async fn latest_lessons(&self, principal: &Principal, limit: u32) -> Result<Vec<Lesson>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.latest_lessons(&principal, limit)).await
    }

    /// Number of calls and failures of each tool by pattern of arguments.
    ///
    /// # Errors
    /// Those of [`BlockingStore::argument_pattern_counts`].
    pub async fn argument_pattern_counts(
        &self,
        principal: &Principal,
    ) -> Result<Vec<(String, String, CallCounts)>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.argument_pattern_counts(&principal)).await
    }

    /// Number of calls and failures of each tool.
    ///
    /// # Errors
    /// Those of [`BlockingStore::tool_call_counts`].
    pub async fn tool_call_counts(&self, principal: &Principal) -> Result<Vec<(String, CallCounts)>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.tool_call_counts(&principal)).await
    }

    /// A trace by id.
    ///
    /// # Errors
    /// Those of [`BlockingStore::trace`].
    pub async fn trace(&self, principal: &Principal, id: &TraceId) -> Result<Option<Trace>, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.trace(&principal, &id)).await
    }

    /// The trace of a run, once the run has ended.
    ///
    /// # Errors
    /// Those of [`BlockingStore::trace_of_run`].
    pub async fn trace_of_run(&self, principal: &Principal, run: &RunId) -> Result<Option<Trace>, Error> {
        let (principal, run) = (principal.clone(), run.clone());
        self.ask(move |store| store.trace_of_run(&principal, &run)).await
    }

    /// The principal's traces, one page.
    ///
    /// # Errors
    /// Those of [`BlockingStore::traces`].
    pub async fn traces(&self, principal: &Principal, wanted: &TraceQuery) -> Result<Vec<Trace>, Error> {
        let (principal, wanted) = (principal.clone(), wanted.clone());
        self.ask(move |store| store.traces(&principal, &wanted)).await
    }
}
