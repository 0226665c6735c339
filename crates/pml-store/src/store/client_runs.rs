//! Runs that clients make themselves.

use super::Store;
use crate::{ChainPlace, ClientTraceRow, ContextOwner, Error, RunMemory, TakenTrace};

impl Store {
    /// See [`crate::BlockingStore::keep_learning_context`].
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::keep_learning_context`].
    pub async fn keep_learning_context(
        &self,
        owner: &ContextOwner,
        body: Vec<u8>,
        when: (i64, i64),
    ) -> Result<(), Error> {
        let owner = owner.clone();
        self.ask(move |store| store.keep_learning_context(&owner, &body, when)).await
    }

    /// See [`crate::BlockingStore::learning_context`].
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::learning_context`].
    pub async fn learning_context(&self, owner: &ContextOwner, now: i64) -> Result<Option<Vec<u8>>, Error> {
        let owner = owner.clone();
        self.ask(move |store| store.learning_context(&owner, now)).await
    }

    /// See [`crate::BlockingStore::client_trace_place`].
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::client_trace_place`].
    pub async fn client_trace_place(&self, row: &ClientTraceRow) -> Result<ChainPlace, Error> {
        let row = row.clone();
        self.ask(move |store| store.client_trace_place(&row)).await
    }

    /// See [`crate::BlockingStore::take_client_trace`].
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::take_client_trace`].
    pub async fn take_client_trace(
        &self,
        row: &ClientTraceRow,
        context: Option<ContextOwner>,
        memory: Option<RunMemory>,
    ) -> Result<TakenTrace, Error> {
        let row = row.clone();
        self.ask(move |store| store.take_client_trace(&row, context, memory)).await
    }
}
