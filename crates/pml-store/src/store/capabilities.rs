//! Questions about capabilities and their kept results.

use pml_model::capability::CacheConfig;
use pml_model::capability::Capability;
use pml_model::capability::Procedure;
use pml_model::{CapabilityId, Principal};

use super::Store;
use crate::memory::OwnedDropped;
use crate::{
    CacheDrop, CacheKey, CacheUse, CachedResult, Capabilities, CapabilityChanges, Dropped, Error, Made,
    Renamed, ServedIntent,
};

impl Store {
    /// The result kept under `key`, if it still counts. Counts the hit.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::cached`].
    pub async fn cached(&self, key: &CacheKey, now: i64) -> Result<Option<CachedResult>, Error> {
        let key = key.clone();
        self.ask(move |store| store.cached(&key, now)).await
    }

    /// The results of a capability that were kept with what was asked for, latest first, as far as they
    /// still count and were kept with that epoch.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::cached_for_intents`].
    pub async fn cached_for_intents(
        &self,
        principal: &Principal,
        capability: &CapabilityId,
        epoch: &str,
        now: i64,
    ) -> Result<Vec<(String, CachedResult)>, Error> {
        let (principal, capability, epoch) = (principal.clone(), capability.clone(), epoch.to_owned());
        self.ask(move |store| store.cached_for_intents(&principal, &capability, &epoch, now)).await
    }

    /// What is kept of a capability, and how often that was of use.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::cache_use`].
    pub async fn cache_use(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        now: i64,
    ) -> Result<CacheUse, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.cache_use(&principal, &id, now)).await
    }

    /// What was dropped of the principal's results, latest first.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::cache_log`].
    pub async fn cache_log(&self, principal: &Principal, limit: u32) -> Result<Vec<CacheDrop>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.cache_log(&principal, limit)).await
    }

    /// A capability; one that was merged into another is that other.
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

    /// The capability the principal calls so.
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

    /// The principal's capabilities, a page at a time.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::capabilities`].
    pub async fn capabilities(
        &self,
        principal: &Principal,
        wanted: &Capabilities,
    ) -> Result<Vec<Capability>, Error> {
        let (principal, wanted) = (principal.clone(), wanted.clone());
        self.ask(move |store| store.capabilities(&principal, &wanted)).await
    }

    /// What changed of all principals' capabilities after `since`, everything where that is 0.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::capabilities_since`].
    pub async fn capabilities_since(&self, since: i64) -> Result<CapabilityChanges, Error> {
        self.ask(move |store| store.capabilities_since(since)).await
    }

    /// Takes back that `text` is served by a capability: it is no longer found by it, and later runs for the same do not
    /// change that. Says whether it was found by it.
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

    /// Capabilities of anybody with intents that were not checked with this version of the analysis.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::with_unchecked_intents`].
    pub async fn with_unchecked_intents(
        &self,
        version: u32,
        limit: u32,
    ) -> Result<Vec<(Principal, CapabilityId)>, Error> {
        self.ask(move |store| store.with_unchecked_intents(version, limit)).await
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

    /// Notes that these intents of a capability were checked with this version of the analysis, and takes back those
    /// that do not fit. Doing so twice is doing it once.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::settle_intents`].
    pub async fn settle_intents(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        version: u32,
        fit: Vec<String>,
        unfit: Vec<String>,
    ) -> Result<(), Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.settle_intents(&principal, &id, version, fit, unfit)).await
    }

    /// Makes a capability that nobody has run. Where no name is given it gets the one it suggests.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::make_capability`].
    pub async fn make_capability(
        &self,
        procedure: Procedure,
        name: Option<String>,
        intent: &str,
        now: i64,
    ) -> Result<Made, Error> {
        let intent = intent.to_owned();
        self.ask(move |store| store.make_capability(procedure, name, &intent, now)).await
    }

    /// Gives a capability another name.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::rename_capability`].
    pub async fn rename_capability(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        name: &str,
    ) -> Result<Renamed, Error> {
        let (principal, id, name) = (principal.clone(), id.clone(), name.to_owned());
        self.ask(move |store| store.rename_capability(&principal, &id, &name)).await
    }

    /// Deletes a capability with what was learned of it, and says whether there was one. Its traces stay
    /// and are those of no capability; what is run again later starts anew.
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

    /// Makes one capability of two that do the same, and says whether there were two. All of `from`
    /// counts for `into` from now on, but for the ways it went: its nodes are others.
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

    /// Sets how results of a capability are kept, drops those there are, and says whether there is such a one.
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

    /// Marks a capability as degraded for a reason that its traces do not tell, drops its kept results, and
    /// says whether anything changed. A plan is never degraded.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::degrade`].
    pub async fn degrade(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        because: &str,
        now: i64,
    ) -> Result<bool, Error> {
        let (principal, id, because) = (principal.clone(), id.clone(), because.to_owned());
        self.ask(move |store| store.degrade(&principal, &id, &because, now)).await
    }

    /// What [`crate::BlockingStore::degrade`] told of is over, and says whether that is news. It stays degraded, for the reason
    /// given here, until a run of it works: that its tools are there shows nothing.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::may_work_again`].
    pub async fn may_work_again(
        &self,
        principal: &Principal,
        id: &CapabilityId,
        because: &str,
    ) -> Result<bool, Error> {
        let (principal, id, because) = (principal.clone(), id.clone(), because.to_owned());
        self.ask(move |store| store.may_work_again(&principal, &id, &because)).await
    }

    /// Drops results of the principal and says how many.
    ///
    /// # Errors
    /// Those of [`crate::BlockingStore::drop_cached`].
    pub async fn drop_cached(
        &self,
        principal: &Principal,
        which: Dropped<'_>,
        because: &str,
        now: i64,
    ) -> Result<u64, Error> {
        let (principal, which, because) = (principal.clone(), OwnedDropped::from(which), because.to_owned());
        self.ask(move |store| store.drop_cached(&principal, which.borrowed(), &because, now)).await
    }
}
