//! The capabilities that their owners published, as others see them.
//!
//! Others see the procedure and how reliable it was, and none of what its runs were given: of its intents the first one
//! only, from which the defaults are, and neither examples nor what was decided. It is found by these words alone, so
//! that nobody learns from the ranking what else it was run for.

use std::collections::HashMap;
use std::sync::Arc;

use pml_model::capability::CapabilityState;
use pml_model::{CapabilityId, Membership, Principal};
use pml_store::CapabilityChanges;
use serde_json::Value;

use super::indexed::IndexedCapability;
use super::segment::IndexSegment;

/// What others published, with the members of projects who see it.
#[derive(Debug, Default)]
pub(super) struct PublishedCapabilities {
    all: HashMap<CapabilityId, Arc<IndexedCapability>>,
    by_name: HashMap<String, Vec<CapabilityId>>,
    pub(super) words: IndexSegment,
    members: HashMap<Principal, Membership>,
}

impl PublishedCapabilities {
    /// Applies changes: `changed` are the capabilities that are new or changed, as their owners see them.
    pub(super) fn take(
        &mut self,
        changes: &CapabilityChanges,
        changed: impl Iterator<Item = Arc<IndexedCapability>>,
    ) {
        self.members = changes.members.iter().cloned().collect();
        let mut any = false;
        for gone in &changes.gone {
            any |= self.all.remove(gone).is_some();
        }
        for known in changed {
            any |= match as_published(&known) {
                Some(seen) => {
                    self.all.insert(known.id.clone(), Arc::new(seen));
                    true
                }
                None => self.all.remove(&known.id).is_some(),
            };
        }
        if any {
            self.index_anew();
        }
    }

    fn index_anew(&mut self) {
        self.words = IndexSegment::build(self.all.values());
        self.by_name.clear();
        for known in self.all.values() {
            self.by_name.entry(known.name.clone()).or_default().push(known.id.clone());
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<IndexedCapability>> {
        self.all.values()
    }

    /// The capability with that id, if `principal` sees it and it is another's.
    pub(super) fn get(&self, principal: &Principal, id: &CapabilityId) -> Option<&Arc<IndexedCapability>> {
        self.all.get(id).filter(|known| self.is_visible(principal, known))
    }

    fn is_visible(&self, principal: &Principal, known: &IndexedCapability) -> bool {
        let nowhere = Membership::default();
        let member = self.members.get(principal).unwrap_or(&nowhere);
        known.owner != *principal && known.publication.as_ref().is_some_and(|found| found.is_for(member))
    }

    /// The capability that a name stands for where `principal` has none of that name: the one that was published for the
    /// fewest.
    pub(super) fn named(&self, principal: &Principal, name: &str) -> Option<&Arc<IndexedCapability>> {
        let ids = self.by_name.get(name)?;
        let visible = ids.iter().filter_map(|id| self.get(principal, id));
        visible.min_by_key(|known| {
            (known.publication.as_ref().map(|found| found.visibility), &known.owner, &known.id)
        })
    }

    /// The capability of that owner and that name, if `principal` sees it.
    pub(super) fn named_by(
        &self,
        principal: &Principal,
        owner: &Principal,
        name: &str,
    ) -> Option<&Arc<IndexedCapability>> {
        let ids = self.by_name.get(name)?;
        ids.iter().filter_map(|id| self.get(principal, id)).find(|known| known.owner == *owner)
    }

    /// Those of others that `principal` sees, by name.
    pub(super) fn visible_to(&self, principal: &Principal) -> Vec<&Arc<IndexedCapability>> {
        let mut visible: Vec<_> = self.all().filter(|known| self.is_visible(principal, known)).collect();
        visible.sort_by_key(|known| (&known.name, &known.owner, &known.id));
        visible
    }
}

/// The capability as others see it; `None` if it is private, has not worked yet, or is a version that is not in force.
fn as_published(known: &IndexedCapability) -> Option<IndexedCapability> {
    known.publication.as_ref()?;
    if known.state == CapabilityState::Planned || !known.is_current() {
        return None;
    }
    let mut seen = known.clone();
    seen.is_of_other = true;
    seen.intents = known.intents.first_only();
    without_examples(&mut seen.parameters);
    seen.examples.clear();
    seen.decisions.clear();
    // Whoever approved a run of it approved it for its owner.
    seen.approved = false;
    // Its lifted form is proven with a run of its owner.
    seen.program.unproven_by = None;
    Some(seen)
}

/// Removes the values that runs were given.
fn without_examples(parameters: &mut Value) {
    let members = parameters.get_mut("properties").and_then(Value::as_object_mut);
    for member in members.into_iter().flat_map(|members| members.values_mut()) {
        if let Some(member) = member.as_object_mut() {
            member.remove("examples");
        }
    }
}
