//! Packages: their signatures and signers.

use pml_model::Principal;

use super::Store;
use crate::{Error, PackageSignature};

impl Store {
    /// See [`crate::BlockingStore::sign_package`].
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::sign_package`].
    pub async fn sign_package(&self, content: Vec<u8>) -> Result<PackageSignature, Error> {
        self.ask(move |store| store.sign_package(&content)).await
    }

    /// See [`crate::BlockingStore::package_signer`].
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::package_signer`].
    pub async fn package_signer(&self, principal: &Principal, name: &str) -> Result<Option<String>, Error> {
        let (principal, name) = (principal.clone(), name.to_owned());
        self.ask(move |store| store.package_signer(&principal, &name)).await
    }

    /// See [`crate::BlockingStore::remember_package_signer`].
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::remember_package_signer`].
    pub async fn remember_package_signer(
        &self,
        principal: &Principal,
        name: &str,
        signer: &str,
        now: i64,
    ) -> Result<(), Error> {
        let (principal, name, signer) = (principal.clone(), name.to_owned(), signer.to_owned());
        self.ask(move |store| store.remember_package_signer(&principal, &name, &signer, now)).await
    }
}
