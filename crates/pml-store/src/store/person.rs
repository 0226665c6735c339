//! People who sign in.

use pml_model::{Digest, Principal};

use super::Store;
use crate::{BlockingStore, DashboardSession, Error, Person};

impl Store {
    /// Adds a person. Returns whether there was none of that name.
    ///
    /// # Errors
    /// Those of [`BlockingStore::add_person`].
    pub async fn add_person(&self, person: Person) -> Result<bool, Error> {
        self.ask(move |store| store.add_person(person)).await
    }

    /// Changes the passphrase of a person. Returns whether there is one of that name.
    ///
    /// # Errors
    /// Those of [`BlockingStore::set_person_passphrase`].
    pub async fn set_person_passphrase(
        &self,
        principal: &Principal,
        hash: String,
        now: i64,
    ) -> Result<bool, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.set_person_passphrase(&principal, hash, now)).await
    }

    /// Removes a person and revokes their keys. Returns how many; `None` if there is nobody of that name.
    ///
    /// # Errors
    /// Those of [`BlockingStore::remove_person`].
    pub async fn remove_person(&self, principal: &Principal, now: i64) -> Result<Option<usize>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.remove_person(&principal, now)).await
    }

    /// Sets the passphrase of the operator of gateways that share a database.
    ///
    /// # Errors
    /// Those of [`BlockingStore::set_operator_passphrase`].
    pub async fn set_operator_passphrase(&self, hash: String, now: i64) -> Result<(), Error> {
        self.ask(move |store| store.set_operator_passphrase(hash, now)).await
    }

    /// See [`BlockingStore::operator_passphrase`]. Synchronous: it is read for each request of a person's session.
    ///
    /// # Errors
    /// Those of [`BlockingStore::operator_passphrase`].
    pub fn operator_passphrase(&self) -> Result<Option<String>, Error> {
        self.on_this_thread(BlockingStore::operator_passphrase)
    }

    /// Stores a session of somebody who signed in.
    ///
    /// # Errors
    /// Those of [`BlockingStore::start_dashboard_session`].
    pub async fn start_dashboard_session(
        &self,
        session: DashboardSession,
        most: usize,
        idle_before: i64,
    ) -> Result<(), Error> {
        self.ask(move |store| store.start_dashboard_session(session, most, idle_before)).await
    }

    /// See [`BlockingStore::dashboard_session`]. Synchronous: it is read for each request of a person's session.
    ///
    /// # Errors
    /// Those of [`BlockingStore::dashboard_session`].
    pub fn dashboard_session(&self, cookie: &Digest) -> Result<Option<DashboardSession>, Error> {
        self.on_this_thread(|store| store.dashboard_session(cookie))
    }

    /// See [`BlockingStore::touch_dashboard_session`]. Queues the change and returns at once.
    pub fn touch_dashboard_session(&self, cookie: &Digest, now: i64) {
        self.blocking.touch_dashboard_session(cookie, now);
    }

    /// Ends a session.
    ///
    /// # Errors
    /// Those of [`BlockingStore::end_dashboard_session`].
    pub async fn end_dashboard_session(&self, cookie: Digest) -> Result<(), Error> {
        self.ask(move |store| store.end_dashboard_session(&cookie)).await
    }

    /// The people who may sign in beside the operator, by name.
    ///
    /// # Errors
    /// Those of [`BlockingStore::people`].
    pub async fn people(&self) -> Result<Vec<Person>, Error> {
        self.ask(BlockingStore::people).await
    }
}
