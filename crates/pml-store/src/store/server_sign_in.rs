//! Sign-ins to remote servers.

use pml_model::{Principal, ServerName};

use super::Store;
use crate::{Error, ServerSignIn};

impl Store {
    /// See [`crate::BlockingStore::server_sign_in`].
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::server_sign_in`].
    pub async fn server_sign_in(
        &self,
        principal: &Principal,
        server: &ServerName,
    ) -> Result<Option<ServerSignIn>, Error> {
        let (principal, server) = (principal.clone(), server.clone());
        self.ask(move |store| store.server_sign_in(&principal, &server)).await
    }

    /// See [`crate::BlockingStore::put_server_sign_in`].
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::put_server_sign_in`].
    pub async fn put_server_sign_in(
        &self,
        principal: &Principal,
        server: &ServerName,
        body: String,
        now: i64,
    ) -> Result<(), Error> {
        let (principal, server) = (principal.clone(), server.clone());
        self.ask(move |store| store.put_server_sign_in(&principal, &server, body, now)).await
    }

    /// See [`crate::BlockingStore::claim_sign_in_renewal`].
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::claim_sign_in_renewal`].
    pub async fn claim_sign_in_renewal(
        &self,
        principal: &Principal,
        server: &ServerName,
        version: i64,
        times: (i64, i64),
    ) -> Result<bool, Error> {
        let (principal, server) = (principal.clone(), server.clone());
        self.ask(move |store| store.claim_sign_in_renewal(&principal, &server, version, times)).await
    }

    /// See [`crate::BlockingStore::replace_server_sign_in`].
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::replace_server_sign_in`].
    pub async fn replace_server_sign_in(
        &self,
        principal: &Principal,
        server: &ServerName,
        version: i64,
        body: String,
    ) -> Result<Option<i64>, Error> {
        let (principal, server) = (principal.clone(), server.clone());
        self.ask(move |store| store.replace_server_sign_in(&principal, &server, version, body)).await
    }

    /// See [`crate::BlockingStore::remove_server_sign_in`].
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::remove_server_sign_in`].
    pub async fn remove_server_sign_in(
        &self,
        principal: &Principal,
        server: &ServerName,
        now: i64,
    ) -> Result<bool, Error> {
        let (principal, server) = (principal.clone(), server.clone());
        self.ask(move |store| store.remove_server_sign_in(&principal, &server, now)).await
    }
}
