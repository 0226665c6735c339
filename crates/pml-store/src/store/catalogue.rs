//! Servers, their tools and the accepted definitions.

use pml_model::{Principal, ServerName, ToolId};

use super::Store;
use crate::{
    Acceptance, AcceptedDefinitions, BlockingStore, CatalogueChange, DefinitionVersion, Error, Manifest,
    ManifestChange, NewAuditEntry, ProcessIdentity, PublishedServerState, ServerListing,
};

impl Store {
    /// Stores a listing as the manifest of the server and returns the difference.
    ///
    /// # Errors
    /// Those of [`BlockingStore::record_manifest`].
    pub async fn record_manifest(
        &self,
        principal: &Principal,
        listing: ServerListing,
        now: i64,
    ) -> Result<ManifestChange, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.record_manifest(&principal, listing, now)).await
    }

    /// The manifests of all servers, sorted by name.
    ///
    /// # Errors
    /// Those of [`BlockingStore::manifests`].
    pub async fn manifests(&self, principal: &Principal) -> Result<Vec<Manifest>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.manifests(&principal)).await
    }

    /// The manifest of one server.
    ///
    /// # Errors
    /// Those of [`BlockingStore::manifest`].
    pub async fn manifest(
        &self,
        principal: &Principal,
        server: &ServerName,
    ) -> Result<Option<Manifest>, Error> {
        let (principal, server) = (principal.clone(), server.clone());
        self.ask(move |store| store.manifest(&principal, &server)).await
    }

    /// Deletes the manifest of a server and its accepted definitions. Returns whether there was one. The definition
    /// history and the identifiers stay: a server that returns under this name is compared with its previous
    /// definitions, and programs that call its tools still call the same ones.
    ///
    /// # Errors
    /// Those of [`BlockingStore::remove_server`].
    pub async fn remove_server(&self, principal: &Principal, server: &ServerName) -> Result<bool, Error> {
        let (principal, server) = (principal.clone(), server.clone());
        self.ask(move |store| store.remove_server(&principal, &server)).await
    }

    /// The definitions that a tool had, oldest first; the last is the one it has or last had. Returning to an earlier
    /// definition is a change like any other. The latest 64 predecessors are kept.
    ///
    /// # Errors
    /// Those of [`BlockingStore::definition_history`].
    pub async fn definition_history(
        &self,
        principal: &Principal,
        tool: &ToolId,
    ) -> Result<Vec<DefinitionVersion>, Error> {
        let (principal, tool) = (principal.clone(), tool.clone());
        self.ask(move |store| store.definition_history(&principal, &tool)).await
    }

    /// The latest changes of servers that were known before, newest first. The first listing of a server and its
    /// removal by the operator are not included.
    ///
    /// # Errors
    /// Those of [`BlockingStore::recent_catalogue_changes`].
    pub async fn recent_catalogue_changes(
        &self,
        principal: &Principal,
        limit: u32,
    ) -> Result<Vec<CatalogueChange>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.recent_catalogue_changes(&principal, limit)).await
    }

    /// A number that grows with every change of any manifest by any process, in the same commit. Cheap enough to be
    /// read several times a second.
    ///
    /// # Errors
    /// Those of [`BlockingStore::catalogue_version`].
    pub async fn catalogue_version(&self) -> Result<u64, Error> {
        self.ask(BlockingStore::catalogue_version).await
    }

    /// Publishes the state of a server, replacing the one this process published before, and deletes the states of
    /// processes that have ended.
    ///
    /// # Errors
    /// Those of [`BlockingStore::publish_server_state`].
    pub async fn publish_server_state(
        &self,
        principal: &Principal,
        process: &ProcessIdentity,
        server: &ServerName,
        state: &str,
        now: i64,
    ) -> Result<(), Error> {
        let (principal, process, server, state) =
            (principal.clone(), process.clone(), server.clone(), state.to_owned());
        self.ask(move |store| store.publish_server_state(&principal, &process, &server, &state, now)).await
    }

    /// The server states that live processes have published, sorted by server.
    ///
    /// # Errors
    /// Those of [`BlockingStore::server_states`].
    pub async fn server_states(
        &self,
        principal: &Principal,
        now: i64,
    ) -> Result<Vec<PublishedServerState>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.server_states(&principal, now)).await
    }

    /// Deletes all states that a process has published. A process calls this when it shuts down in good order.
    ///
    /// # Errors
    /// Those of [`BlockingStore::clear_server_states`].
    pub async fn clear_server_states(&self, process: &ProcessIdentity) -> Result<(), Error> {
        let process = process.clone();
        self.ask(move |store| store.clear_server_states(&process)).await
    }

    /// The principal's accepted definitions.
    ///
    /// # Errors
    /// Those of [`BlockingStore::accepted_definitions`].
    pub async fn accepted_definitions(&self, principal: &Principal) -> Result<AcceptedDefinitions, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.accepted_definitions(&principal)).await
    }

    /// Accepts definitions and returns the tools whose definition is no longer the one that was seen; for those
    /// nothing is accepted. `audit` is stored if any definition is accepted.
    ///
    /// # Errors
    /// Those of [`BlockingStore::accept_definitions`].
    pub async fn accept_definitions(
        &self,
        acceptance: Acceptance,
        audit: Vec<NewAuditEntry>,
    ) -> Result<Vec<ToolId>, Error> {
        self.ask(move |store| store.accept_definitions(acceptance, audit)).await
    }
}
