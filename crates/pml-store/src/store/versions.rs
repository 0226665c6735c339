//! Versions of capabilities, and the runs they are tested with.

use pml_model::capability::Procedure;
use pml_model::version::CapabilityVersion;
use pml_model::{CapabilityId, Principal, RunId};

use super::Store;
use crate::{Error, OfferOutcome, VersionOutcome};

impl Store {
    /// See [`crate::BlockingStore::capability_versions`].
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::capability_versions`].
    pub async fn capability_versions(
        &self,
        principal: &Principal,
        name: &str,
    ) -> Result<Vec<CapabilityVersion>, Error> {
        let (principal, name) = (principal.clone(), name.to_owned());
        self.ask(move |store| store.capability_versions(&principal, &name)).await
    }

    /// See [`crate::BlockingStore::version_of`].
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::version_of`].
    pub async fn version_of(
        &self,
        principal: &Principal,
        id: &CapabilityId,
    ) -> Result<Option<(String, u32)>, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.version_of(&principal, &id)).await
    }

    /// See [`crate::BlockingStore::golden_runs`].
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::golden_runs`].
    pub async fn golden_runs(&self, principal: &Principal, id: &CapabilityId) -> Result<Vec<RunId>, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.golden_runs(&principal, &id)).await
    }

    /// See [`crate::BlockingStore::put_version_in_force`].
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::put_version_in_force`].
    pub async fn put_version_in_force(
        &self,
        principal: &Principal,
        name: &str,
        id: &CapabilityId,
        now: i64,
    ) -> Result<VersionOutcome, Error> {
        let (principal, name, id) = (principal.clone(), name.to_owned(), id.clone());
        self.ask(move |store| store.put_version_in_force(&principal, &name, &id, now)).await
    }

    /// See [`crate::BlockingStore::offer_version`].
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::offer_version`].
    pub async fn offer_version(
        &self,
        procedure: Procedure,
        name: &str,
        because: &str,
        now: i64,
    ) -> Result<OfferOutcome, Error> {
        let (name, because) = (name.to_owned(), because.to_owned());
        self.ask(move |store| store.offer_version(procedure, &name, &because, now)).await
    }
}
