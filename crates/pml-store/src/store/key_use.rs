//! What is done with client keys, and replacing them.

use pml_model::{Digest, KeyId};

use super::Store;
use crate::{ClientKey, CountedKeyUse, Error, KeyUse};

impl Store {
    /// Replaces a client key by one with the same rights; the old one is revoked, or expires at `old_until`.
    ///
    /// # Errors
    /// Those of [`BlockingStore::rotate_client_key`](crate::BlockingStore::rotate_client_key).
    pub async fn rotate_client_key(
        &self,
        id: KeyId,
        digest: Digest,
        old_until: Option<i64>,
        now: i64,
    ) -> Result<Option<(ClientKey, ClientKey)>, Error> {
        self.ask(move |store| store.rotate_client_key(id, digest, old_until, now)).await
    }

    /// Adds what a gateway counted.
    ///
    /// # Errors
    /// Those of [`BlockingStore::add_key_use`](crate::BlockingStore::add_key_use).
    pub async fn add_key_use(&self, counted: Vec<CountedKeyUse>) -> Result<(), Error> {
        self.ask(move |store| store.add_key_use(counted)).await
    }

    /// The runs of a key that are under way, in all gateways.
    ///
    /// # Errors
    /// Those of [`BlockingStore::key_runs_under_way`](crate::BlockingStore::key_runs_under_way).
    pub async fn key_runs_under_way(&self, key: KeyId) -> Result<u64, Error> {
        self.ask(move |store| store.key_runs_under_way(key)).await
    }

    /// What was done with a key so far.
    ///
    /// # Errors
    /// Those of [`BlockingStore::key_use`](crate::BlockingStore::key_use).
    pub async fn key_use(&self, key: KeyId, now: i64) -> Result<KeyUse, Error> {
        self.ask(move |store| store.key_use(key, now)).await
    }
}
