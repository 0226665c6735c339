//! Capabilities and their cached results.

use pml_model::capability::CacheConfig;
use pml_model::capability::Capability;
use pml_model::capability::Procedure;
use pml_model::{CapabilityId, Principal};

use super::Store;
use crate::memory::OwnedInvalidationScope;
use crate::{
    CacheInvalidation, CacheKey, CacheUsage, CachedResult, CapabilityChanges, CapabilityQuery, CreateOutcome,
    DailySavings, Error, InvalidationScope, NewName, RenameOutcome, SeenWrites, ServedIntent,
};

impl Store {
    /// The valid cache entry under `key`, if there is one and nothing was written since `seen`. Counts the hit.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::cached_result_unless_written`].
    pub async fn cached_result(
        &self,
        key: &CacheKey,
        now: i64,
        seen: SeenWrites,
    ) -> Result<Option<CachedResult>, Error> {
        let key = key.clone();
        self.ask(move |store| store.cached_result_unless_written(&key, now, Some(&seen))).await
    }

    /// The cache entries of a capability that were stored with an intent, latest first. Only valid ones of that write
    /// epoch are returned.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::results_cached_by_intent`].
    pub async fn results_cached_by_intent(
        &self,
        principal: &Principal,
        capability: &CapabilityId,
        epoch: &str,
        now: i64,
    ) -> Result<Vec<(String, CachedResult)>, Error> {
        let (principal, capability, epoch) = (principal.clone(), capability.clone(), epoch.to_owned());
        self.ask(move |store| store.results_cached_by_intent(&principal, &capability, &epoch, now)).await
    }

    /// Number of cache entries of a capability, and of hits.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::cache_usage`].
    pub async fn cache_usage(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        now: i64,
    ) -> Result<CacheUsage, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.cache_usage(&principal, &id, now)).await
    }

    /// Number of all cache entries of a principal, and of hits.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::whole_cache_usage`].
    pub async fn whole_cache_usage(&self, principal: &Principal, now: i64) -> Result<CacheUsage, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.whole_cache_usage(&principal, now)).await
    }

    /// What was saved on each day since `since` on which something happened, oldest first.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::daily_savings`].
    pub async fn daily_savings(&self, principal: &Principal, since: i64) -> Result<Vec<DailySavings>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.daily_savings(&principal, since)).await
    }

    /// The principal's cache invalidations, latest first.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::cache_invalidations`].
    pub async fn cache_invalidations(
        &self,
        principal: &Principal,
        limit: u32,
    ) -> Result<Vec<CacheInvalidation>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.cache_invalidations(&principal, limit)).await
    }

    /// A capability by id. The id of one that was merged into another returns that other.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::capability`].
    pub async fn capability(
        &self,
        principal: &Principal,
        id: &CapabilityId,
    ) -> Result<Option<Capability>, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.capability(&principal, &id)).await
    }

    /// The principal's capability of this name.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::capability_named`].
    pub async fn capability_named(
        &self,
        principal: &Principal,
        name: &str,
    ) -> Result<Option<Capability>, Error> {
        let (principal, name) = (principal.clone(), name.to_owned());
        self.ask(move |store| store.capability_named(&principal, &name)).await
    }

    /// The principal's capabilities, one page.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::capabilities`].
    pub async fn capabilities(
        &self,
        principal: &Principal,
        wanted: &CapabilityQuery,
    ) -> Result<Vec<Capability>, Error> {
        let (principal, wanted) = (principal.clone(), wanted.clone());
        self.ask(move |store| store.capabilities(&principal, &wanted)).await
    }

    /// The capabilities of all principals that changed after version `since`; all of them if that is 0.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::capabilities_since`].
    pub async fn capabilities_since(&self, since: i64) -> Result<CapabilityChanges, Error> {
        self.ask(move |store| store.capabilities_since(since)).await
    }

    /// Removes an intent from a capability: it no longer finds the capability, and later runs with the same intent do
    /// not bring it back. Returns whether the capability had it.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::forget_intent`].
    pub async fn forget_intent(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        text: &str,
        now: i64,
    ) -> Result<bool, Error> {
        let (principal, id, text) = (principal.clone(), id.clone(), text.to_owned());
        self.ask(move |store| store.forget_intent(&principal, &id, &text, now)).await
    }

    /// Capabilities of all principals with intents that this version of the analysis has not checked.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::capabilities_with_unchecked_intents`].
    pub async fn capabilities_with_unchecked_intents(
        &self,
        version: u32,
        limit: u32,
    ) -> Result<Vec<(Principal, CapabilityId)>, Error> {
        self.ask(move |store| store.capabilities_with_unchecked_intents(version, limit)).await
    }

    /// The intents of a capability, those it served first at the front.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::served_intents`].
    pub async fn served_intents(
        &self,
        principal: &Principal,
        id: &CapabilityId,
    ) -> Result<Vec<ServedIntent>, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.served_intents(&principal, &id)).await
    }

    /// Records that this version of the analysis checked these intents of a capability, and removes those that do not
    /// fit. Idempotent.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::record_intent_check`].
    pub async fn record_intent_check(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        version: u32,
        fit: Vec<String>,
        unfit: Vec<String>,
    ) -> Result<(), Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.record_intent_check(&principal, &id, version, fit, unfit)).await
    }

    /// Puts the lifted form of a capability's program in force if it is `proven`, and drops it otherwise. Idempotent.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::settle_lift`].
    pub async fn settle_lift(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        proven: bool,
    ) -> Result<(), Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.settle_lift(&principal, &id, proven)).await
    }

    /// Creates a capability that was never run and serves these intents.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::create_capability`].
    pub async fn create_capability(
        &self,
        procedure: Procedure,
        name: NewName,
        intents: &[String],
        now: i64,
    ) -> Result<CreateOutcome, Error> {
        let intents = intents.to_vec();
        self.ask(move |store| store.create_capability(procedure, name, &intents, now)).await
    }

    /// As [`Store::create_capability`], and remembers who signed the package that it comes from.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::import_capability`].
    pub async fn import_capability(
        &self,
        procedure: Procedure,
        name: NewName,
        intents: &[String],
        signer: &str,
        now: i64,
    ) -> Result<CreateOutcome, Error> {
        let (intents, signer) = (intents.to_vec(), signer.to_owned());
        self.ask(move |store| store.import_capability(procedure, name, &intents, &signer, now)).await
    }

    /// Makes a procedure that was only explored a capability. Returns whether that is new.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::promote_explored`].
    pub async fn promote_explored(
        &self,
        procedure: Procedure,
        intent: &str,
        now: i64,
    ) -> Result<bool, Error> {
        let intent = intent.to_owned();
        self.ask(move |store| store.promote_explored(procedure, &intent, now)).await
    }

    /// Renames a capability.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::rename_capability`].
    pub async fn rename_capability(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        name: &str,
    ) -> Result<RenameOutcome, Error> {
        let (principal, id, name) = (principal.clone(), id.clone(), name.to_owned());
        self.ask(move |store| store.rename_capability(&principal, &id, &name)).await
    }

    /// Deletes a capability with everything that was learned of it. Returns whether it existed. Its traces stay,
    /// without a capability; a later run of the same procedure starts from nothing.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::delete_capability`].
    pub async fn delete_capability(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        now: i64,
    ) -> Result<bool, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.delete_capability(&principal, &id, now)).await
    }

    /// Merges `from` into `into`, which has the same meaning. Returns whether both existed. Everything of `from`
    /// counts for `into` from now on, except path statistics: its nodes differ.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::merge_capabilities`].
    pub async fn merge_capabilities(
        &self,
        principal: &Principal,
        into: &CapabilityId,
        from: &CapabilityId,
        now: i64,
    ) -> Result<bool, Error> {
        let (principal, into, from) = (principal.clone(), into.clone(), from.clone());
        self.ask(move |store| store.merge_capabilities(&principal, &into, &from, now)).await
    }

    /// Sets the cache policy of a capability, drops its cache entries, and returns whether the capability exists.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::set_cache_config`].
    pub async fn set_cache_config(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        config: &CacheConfig,
        now: i64,
    ) -> Result<bool, Error> {
        let (principal, id, config) = (principal.clone(), id.clone(), config.clone());
        self.ask(move |store| store.set_cache_config(&principal, &id, &config, now)).await
    }

    /// Marks a capability as degraded for a reason that its traces do not show, and drops its cache entries. Returns
    /// whether anything changed. A plan is never degraded.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::degrade_capability`].
    pub async fn degrade_capability(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        because: &str,
        now: i64,
    ) -> Result<bool, Error> {
        let (principal, id, because) = (principal.clone(), id.clone(), because.to_owned());
        self.ask(move |store| store.degrade_capability(&principal, &id, &because, now)).await
    }

    /// Records that the reason given to [`crate::BlockingStore::degrade_capability`] no longer holds, and returns
    /// whether that changed anything. The capability stays degraded, for the reason given here, until a run of it
    /// succeeds: that its tools are back proves nothing.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::mark_recoverable`].
    pub async fn mark_recoverable(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        because: &str,
    ) -> Result<bool, Error> {
        let (principal, id, because) = (principal.clone(), id.clone(), because.to_owned());
        self.ask(move |store| store.mark_recoverable(&principal, &id, &because)).await
    }

    /// Drops cache entries of the principal and returns their number.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::invalidate_cache`].
    pub async fn invalidate_cache(
        &self,
        principal: &Principal,
        which: InvalidationScope<'_>,
        because: &str,
        now: i64,
    ) -> Result<u64, Error> {
        let (principal, which, because) =
            (principal.clone(), OwnedInvalidationScope::from(which), because.to_owned());
        self.ask(move |store| store.invalidate_cache(&principal, which.borrowed(), &because, now)).await
    }
}
