//! The tools and capabilities that a program may call by their names.
//!
//! A program that somebody else published calls the capabilities of its owner that are published too, and never one of
//! the same name that belongs to whoever runs it.

use std::sync::Arc;

use pml_analysis::AnalysisCatalogue;
use pml_model::{CapabilityId, Principal};

use crate::app::App;
use crate::knowledge::{IndexedCapability, may_call_capabilities};
use crate::planning;

/// The capabilities that a program may call.
pub(super) struct CapabilitiesOf<'a> {
    pub(super) app: &'a App,
    /// Who runs the program.
    principal: &'a Principal,
    /// Whose program it is.
    owner: Principal,
}

impl<'a> CapabilitiesOf<'a> {
    /// For a program of its own.
    pub(super) fn new(app: &'a App, principal: &'a Principal) -> CapabilitiesOf<'a> {
        CapabilitiesOf { app, principal, owner: principal.clone() }
    }

    /// For the program of a capability, if it is one.
    pub(super) fn of_program(
        app: &'a App,
        principal: &'a Principal,
        capability: Option<&CapabilityId>,
    ) -> CapabilitiesOf<'a> {
        let known = capability.and_then(|id| app.knowledge.memory.cached_by_name(principal, id.as_str()));
        let owner = known.map_or_else(|| principal.clone(), |known| known.owner.clone());
        CapabilitiesOf { app, principal, owner }
    }

    /// The current tools, and the capabilities that `source` may name.
    pub(super) async fn current_catalogue(&self, source: &str) -> Arc<AnalysisCatalogue> {
        if may_call_capabilities(source)
            && let Err(error) = self.app.knowledge.memory.refresh().await
        {
            tracing::warn!(%error, "which capabilities there are could not be read");
        }
        self.app.knowledge.catalogue_within(self.principal, &self.owner, source)
    }
}

impl planning::CapabilityLookup for CapabilitiesOf<'_> {
    fn find_by_name(&self, owner: Option<&Principal>, name: &str) -> Option<Arc<IndexedCapability>> {
        let owner = owner.unwrap_or(&self.owner);
        self.app.knowledge.memory.cached_by_name_within(self.principal, owner, name)
    }

    fn catalogue_for(&self, owner: Option<&Principal>, source: &str) -> Arc<AnalysisCatalogue> {
        self.app.knowledge.catalogue_within(self.principal, owner.unwrap_or(&self.owner), source)
    }
}
