//! Questions about servers, their tools and which definitions were accepted.

use pml_model::{Principal, ServerName, ToolId};

use super::Store;
use crate::{
    Acceptance, AcceptedDefinitions, Audit, BlockingStore, CatalogueChange, Error, KnownDefinition, Listing,
    Manifest, ManifestChange, Process, ServerState,
};

impl Store {
    /// Takes a listing as the server's manifest and says what is different.
    ///
    /// # Errors
    /// Those of [`BlockingStore::record_manifest`].
    pub async fn record_manifest(
        &self,
        principal: &Principal,
        listing: Listing,
        now: i64,
    ) -> Result<ManifestChange, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.record_manifest(&principal, listing, now)).await
    }

    /// The manifests of all servers, by name.
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

    /// Forgets the manifest of a server and what was accepted of it, and says whether there was one. The
    /// definitions its tools had and their identifiers stay: a server that comes back under the name is compared with what it
    /// was, and programs that call its tools still mean the same ones.
    ///
    /// # Errors
    /// Those of [`BlockingStore::remove_server`].
    pub async fn remove_server(&self, principal: &Principal, server: &ServerName) -> Result<bool, Error> {
        let (principal, server) = (principal.clone(), server.clone());
        self.ask(move |store| store.remove_server(&principal, &server)).await
    }

    /// The definitions a tool had, oldest first, and last the one it has or last had. Returning to an
    /// earlier definition is a change like any other. The latest 64
    /// predecessors are kept.
    ///
    /// # Errors
    /// Those of [`BlockingStore::definition_history`].
    pub async fn definition_history(
        &self,
        principal: &Principal,
        tool: &ToolId,
    ) -> Result<Vec<KnownDefinition>, Error> {
        let (principal, tool) = (principal.clone(), tool.clone());
        self.ask(move |store| store.definition_history(&principal, &tool)).await
    }

    /// The latest changes of servers that were known already, newest first. That a server is seen for
    /// the first time, or removed by its operator, is not among them.
    ///
    /// # Errors
    /// Those of [`BlockingStore::recent_changes`].
    pub async fn recent_changes(
        &self,
        principal: &Principal,
        limit: u32,
    ) -> Result<Vec<CatalogueChange>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.recent_changes(&principal, limit)).await
    }

    /// A number that grows with every change of any manifest, in the same commit, whichever process
    /// makes it. Cheap enough to be asked several times a second.
    ///
    /// # Errors
    /// Those of [`BlockingStore::catalogue_version`].
    pub async fn catalogue_version(&self) -> Result<u64, Error> {
        self.ask(BlockingStore::catalogue_version).await
    }

    /// Says what state a server is in, in place of what this process said of it before, and forgets
    /// what processes that have ended said.
    ///
    /// # Errors
    /// Those of [`BlockingStore::publish_state`].
    pub async fn publish_state(
        &self,
        principal: &Principal,
        process: &Process,
        server: &ServerName,
        state: &str,
        now: i64,
    ) -> Result<(), Error> {
        let (principal, process, server, state) =
            (principal.clone(), process.clone(), server.clone(), state.to_owned());
        self.ask(move |store| store.publish_state(&principal, &process, &server, &state, now)).await
    }

    /// What the processes that run say of their servers, by server.
    ///
    /// # Errors
    /// Those of [`BlockingStore::states`].
    pub async fn states(&self, principal: &Principal, now: i64) -> Result<Vec<ServerState>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.states(&principal, now)).await
    }

    /// Forgets all a process said, which it asks for when it ends in good order.
    ///
    /// # Errors
    /// Those of [`BlockingStore::clear_states`].
    pub async fn clear_states(&self, process: &Process) -> Result<(), Error> {
        let process = process.clone();
        self.ask(move |store| store.clear_states(&process)).await
    }

    /// The principal's accepted definitions.
    ///
    /// # Errors
    /// Those of [`BlockingStore::accepted_definitions`].
    pub async fn accepted_definitions(&self, principal: &Principal) -> Result<AcceptedDefinitions, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.accepted_definitions(&principal)).await
    }

    /// Accepts definitions and gives the tools whose definition is no longer the one that was seen:
    /// of those nothing is accepted. `audit` is stored if anything is.
    ///
    /// # Errors
    /// Those of [`BlockingStore::accept_definitions`].
    pub async fn accept_definitions(
        &self,
        acceptance: Acceptance,
        audit: Vec<Audit>,
    ) -> Result<Vec<ToolId>, Error> {
        self.ask(move |store| store.accept_definitions(acceptance, audit)).await
    }
}
