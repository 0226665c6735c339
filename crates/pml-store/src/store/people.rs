//! Questions about what people allowed and by which keys clients are known.

use pml_model::{KeyId, Principal};

use super::Store;
use crate::{
    Allowed, ApprovalRule, Attempt, Audit, BlockingStore, ClientKey, EndedRule, Error, NewKey, NewRule,
};

impl Store {
    /// What was last allowed for each of `tools`; nothing of those for which nothing was.
    ///
    /// # Errors
    /// Those of [`BlockingStore::last_allowed`].
    pub async fn last_allowed(&self, principal: &Principal, tools: &[String]) -> Result<Vec<Allowed>, Error> {
        let (principal, tools) = (principal.clone(), tools.to_vec());
        self.ask(move |store| store.last_allowed(&principal, &tools)).await
    }

    /// Forgets what was last allowed at that time or earlier.
    ///
    /// # Errors
    /// Those of [`BlockingStore::forget_allowed`].
    pub async fn forget_allowed(&self, until: i64) -> Result<(), Error> {
        self.ask(move |store| store.forget_allowed(until)).await
    }

    /// Stores a key, with an entry in the audit log.
    ///
    /// # Errors
    /// Those of [`BlockingStore::add_key`].
    pub async fn add_key(&self, new: NewKey) -> Result<ClientKey, Error> {
        self.ask(move |store| store.add_key(new)).await
    }

    /// All keys of all principals, revoked ones included, newest first.
    ///
    /// # Errors
    /// Those of [`BlockingStore::keys`].
    pub async fn keys(&self) -> Result<Vec<ClientKey>, Error> {
        self.ask(BlockingStore::keys).await
    }

    /// Revokes a key, with an entry in the audit log. `None` where there is no such key or it was revoked
    /// before.
    ///
    /// # Errors
    /// Those of [`BlockingStore::revoke_key`].
    pub async fn revoke_key(
        &self,
        principal: &Principal,
        id: KeyId,
        now: i64,
    ) -> Result<Option<ClientKey>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.revoke_key(&principal, id, now)).await
    }

    /// The mark of `words`, which nobody makes who does not have the key beside the database. It is the same for every
    /// process on it and after every start.
    ///
    /// # Errors
    /// Those of [`BlockingStore::mark_request`].
    pub async fn mark_request(&self, words: &[String]) -> Result<String, Error> {
        let words = words.to_vec();
        self.ask(move |store| store.mark_request(&words)).await
    }

    /// Adds a rule and gives its number. `audit` is stored with it.
    ///
    /// # Errors
    /// Those of [`BlockingStore::add_rule`].
    pub async fn add_rule(&self, rule: NewRule, audit: Vec<Audit>) -> Result<i64, Error> {
        self.ask(move |store| store.add_rule(rule, audit)).await
    }

    /// The principal's rules that count now, oldest first.
    ///
    /// # Errors
    /// Those of [`BlockingStore::matching_rules`].
    pub async fn matching_rules(&self, principal: &Principal, now: i64) -> Result<Vec<ApprovalRule>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.matching_rules(&principal, now)).await
    }

    /// All rules the principal has or had, newest first.
    ///
    /// # Errors
    /// Those of [`BlockingStore::rules`].
    pub async fn rules(&self, principal: &Principal) -> Result<Vec<ApprovalRule>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.rules(&principal)).await
    }

    /// Counts a use of a rule, if it counts at this moment, and says whether it does. `audit` is
    /// stored only if it does.
    ///
    /// # Errors
    /// Those of [`BlockingStore::use_rule`].
    pub async fn use_rule(
        &self,
        principal: &Principal,
        number: i64,
        now: i64,
        audit: Vec<Audit>,
    ) -> Result<bool, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.use_rule(&principal, number, now, audit)).await
    }

    /// Takes a rule back, and says whether there was anything to take back. `audit` is stored only if
    /// there was.
    ///
    /// # Errors
    /// Those of [`BlockingStore::revoke_rule`].
    pub async fn revoke_rule(
        &self,
        principal: &Principal,
        number: i64,
        now: i64,
        audit: Vec<Audit>,
    ) -> Result<bool, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.revoke_rule(&principal, number, now, audit)).await
    }

    /// Ends the rules that have expired, of whomever, with an entry in the audit log for each.
    ///
    /// # Errors
    /// Those of [`BlockingStore::end_expired_rules`].
    pub async fn end_expired_rules(&self, now: i64) -> Result<Vec<EndedRule>, Error> {
        self.ask(move |store| store.end_expired_rules(now)).await
    }

    /// Counts a try at `door` before it is looked at, so that many at once are counted too. `delay` says for how many
    /// milliseconds no other is looked at after so many wrong ones in a row.
    ///
    /// # Errors
    /// Those of [`BlockingStore::attempt_sign_in`].
    pub async fn attempt_sign_in(
        &self,
        door: &'static str,
        now: i64,
        delay: fn(u32) -> i64,
    ) -> Result<Attempt, Error> {
        self.ask(move |store| store.attempt_sign_in(door, now, delay)).await
    }

    /// The last try at `door` was right.
    ///
    /// # Errors
    /// Those of [`BlockingStore::signed_in`].
    pub async fn signed_in(&self, door: &'static str) -> Result<(), Error> {
        self.ask(move |store| store.signed_in(door)).await
    }
}
