//! Who sees capabilities, and who belongs where.

use pml_model::{CapabilityId, Membership, Principal, Visibility};

use super::Store;
use crate::{BlockingStore, Error};

impl Store {
    /// Sets who sees a capability, with an audit entry. Returns whether its owner has it.
    ///
    /// # Errors
    /// Those of [`BlockingStore::publish_capability`].
    pub async fn publish_capability(
        &self,
        owner: &Principal,
        id: &CapabilityId,
        visibility: Visibility,
        by: &Principal,
        now: i64,
    ) -> Result<bool, Error> {
        let (owner, id, by) = (owner.clone(), id.clone(), by.clone());
        self.ask(move |store| store.publish_capability(&owner, &id, visibility, &by, now)).await
    }

    /// How often others used a capability since it was published; `None` if it is private.
    ///
    /// # Errors
    /// Those of [`BlockingStore::uses_by_others`].
    pub async fn uses_by_others(&self, owner: &Principal, id: &CapabilityId) -> Result<Option<u64>, Error> {
        let (owner, id) = (owner.clone(), id.clone());
        self.ask(move |store| store.uses_by_others(&owner, &id)).await
    }

    /// Puts somebody into a project of an organisation, with an audit entry.
    ///
    /// # Errors
    /// Those of [`BlockingStore::set_membership`].
    pub async fn set_membership(
        &self,
        principal: &Principal,
        member: &Membership,
        now: i64,
    ) -> Result<(), Error> {
        let (principal, member) = (principal.clone(), member.clone());
        self.ask(move |store| store.set_membership(&principal, &member, now)).await
    }

    /// Everybody who was put into a project.
    ///
    /// # Errors
    /// Those of [`BlockingStore::memberships`].
    pub async fn memberships(&self) -> Result<Vec<(Principal, Membership)>, Error> {
        self.ask(BlockingStore::memberships).await
    }
}
