//! People who sign in.

use pml_model::Principal;

use super::Store;
use crate::{BlockingStore, Error, Person};

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

    /// The people who may sign in, by name.
    ///
    /// # Errors
    /// Those of [`BlockingStore::people`].
    pub async fn people(&self) -> Result<Vec<Person>, Error> {
        self.ask(BlockingStore::people).await
    }
}
