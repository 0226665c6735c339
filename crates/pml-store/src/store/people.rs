//! Approvals, approval rules and client keys.

use pml_model::{KeyId, Principal};

use super::Store;
use crate::{
    AllowedArguments, ApprovalRule, BlockingStore, ClientKey, EndedRule, Error, NewApprovalRule,
    NewAuditEntry, NewClientKey, SignInAttempt,
};

impl Store {
    /// The arguments last approved for each of `tools`; tools without an approval are left out.
    ///
    /// # Errors
    /// Those of [`BlockingStore::last_allowed_arguments`].
    pub async fn last_allowed_arguments(
        &self,
        principal: &Principal,
        tools: &[String],
    ) -> Result<Vec<AllowedArguments>, Error> {
        let (principal, tools) = (principal.clone(), tools.to_vec());
        self.ask(move |store| store.last_allowed_arguments(&principal, &tools)).await
    }

    /// Deletes the arguments that were approved at that time or earlier.
    ///
    /// # Errors
    /// Those of [`BlockingStore::forget_allowed_arguments`].
    pub async fn forget_allowed_arguments(&self, until: i64) -> Result<(), Error> {
        self.ask(move |store| store.forget_allowed_arguments(until)).await
    }

    /// Stores a client key, with an audit entry.
    ///
    /// # Errors
    /// Those of [`BlockingStore::add_client_key`].
    pub async fn add_client_key(&self, new: NewClientKey) -> Result<ClientKey, Error> {
        self.ask(move |store| store.add_client_key(new)).await
    }

    /// The client keys of all principals, revoked ones included, newest first.
    ///
    /// # Errors
    /// Those of [`BlockingStore::client_keys`].
    pub async fn client_keys(&self) -> Result<Vec<ClientKey>, Error> {
        self.ask(BlockingStore::client_keys).await
    }

    /// Revokes a client key, with an audit entry. Returns `None` if there is no such key or it was revoked before.
    ///
    /// # Errors
    /// Those of [`BlockingStore::revoke_client_key`].
    pub async fn revoke_client_key(
        &self,
        principal: &Principal,
        id: KeyId,
        now: i64,
    ) -> Result<Option<ClientKey>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.revoke_client_key(&principal, id, now)).await
    }

    /// The mark of `words`, which only a holder of the key beside the database can make. It is the same in every
    /// process on this database and after every start.
    ///
    /// # Errors
    /// Those of [`BlockingStore::mark_request`].
    pub async fn mark_request(&self, words: &[String]) -> Result<String, Error> {
        let words = words.to_vec();
        self.ask(move |store| store.mark_request(&words)).await
    }

    /// Adds a rule and returns its number. `audit` is stored with it.
    ///
    /// # Errors
    /// Those of [`BlockingStore::add_rule`].
    pub async fn add_rule(&self, rule: NewApprovalRule, audit: Vec<NewAuditEntry>) -> Result<i64, Error> {
        self.ask(move |store| store.add_rule(rule, audit)).await
    }

    /// The principal's rules that are in force now, oldest first.
    ///
    /// # Errors
    /// Those of [`BlockingStore::rules_in_force`].
    pub async fn rules_in_force(&self, principal: &Principal, now: i64) -> Result<Vec<ApprovalRule>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.rules_in_force(&principal, now)).await
    }

    /// All rules that the principal has or had, newest first.
    ///
    /// # Errors
    /// Those of [`BlockingStore::rules`].
    pub async fn rules(&self, principal: &Principal) -> Result<Vec<ApprovalRule>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.rules(&principal)).await
    }

    /// Counts a use of a rule if it is in force now, and returns whether it is. `audit` is stored only if it is.
    ///
    /// # Errors
    /// Those of [`BlockingStore::use_rule`].
    pub async fn use_rule(
        &self,
        principal: &Principal,
        number: i64,
        now: i64,
        audit: Vec<NewAuditEntry>,
    ) -> Result<bool, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.use_rule(&principal, number, now, audit)).await
    }

    /// Revokes a rule and returns whether there was one to revoke. `audit` is stored only if there was.
    ///
    /// # Errors
    /// Those of [`BlockingStore::revoke_rule`].
    pub async fn revoke_rule(
        &self,
        principal: &Principal,
        number: i64,
        now: i64,
        audit: Vec<NewAuditEntry>,
    ) -> Result<bool, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.revoke_rule(&principal, number, now, audit)).await
    }

    /// Ends the expired rules of all principals, with an audit entry for each.
    ///
    /// # Errors
    /// Those of [`BlockingStore::end_expired_rules`].
    pub async fn end_expired_rules(&self, now: i64) -> Result<Vec<EndedRule>, Error> {
        self.ask(move |store| store.end_expired_rules(now)).await
    }

    /// Counts an attempt at `door` before its passphrase is checked, so that concurrent attempts count too. `delay`
    /// maps the number of failures in a row to the milliseconds for which further attempts are refused.
    ///
    /// # Errors
    /// Those of [`BlockingStore::attempt_sign_in`].
    pub async fn attempt_sign_in(
        &self,
        door: &str,
        now: i64,
        delay: fn(u32) -> i64,
    ) -> Result<SignInAttempt, Error> {
        let door = door.to_owned();
        self.ask(move |store| store.attempt_sign_in(&door, now, delay)).await
    }

    /// Resets the failures at `door`, after a correct passphrase.
    ///
    /// # Errors
    /// Those of [`BlockingStore::clear_failed_sign_ins`].
    pub async fn clear_failed_sign_ins(&self, door: &str) -> Result<(), Error> {
        let door = door.to_owned();
        self.ask(move |store| store.clear_failed_sign_ins(&door)).await
    }
}
