//! A task as it stands in the document, its members sorted.

use pml_model::structure::NodeId;

use super::text::{Kind, Span, Tree};

/// A member of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    Id,
    Tool,
    Code,
    Capability,
    Arguments,
    DependsOn,
    Type,
    SideEffects,
    SafeToFail,
    TimeoutMs,
    Retries,
}

/// Its names, the right one first for each; the others are what writers used to other languages write.
pub(super) const MEMBERS: &[(&str, Slot)] = &[
    ("id", Slot::Id),
    ("tool", Slot::Tool),
    ("toolId", Slot::Tool),
    ("tool_id", Slot::Tool),
    ("code", Slot::Code),
    ("capability", Slot::Capability),
    ("capabilityId", Slot::Capability),
    ("capability_id", Slot::Capability),
    ("arguments", Slot::Arguments),
    ("args", Slot::Arguments),
    ("dependsOn", Slot::DependsOn),
    ("depends_on", Slot::DependsOn),
    ("type", Slot::Type),
    ("sideEffects", Slot::SideEffects),
    ("side_effects", Slot::SideEffects),
    ("safeToFail", Slot::SafeToFail),
    ("safe_to_fail", Slot::SafeToFail),
    ("timeoutMs", Slot::TimeoutMs),
    ("timeout_ms", Slot::TimeoutMs),
    ("retries", Slot::Retries),
];

/// A task as it stands in the document.
pub(super) struct Written<'t, 'd> {
    pub(super) node: NodeId,
    pub(super) span: Span,
    pub(super) members: Vec<(Slot, &'t Tree<'d>)>,
}

impl<'t, 'd> Written<'t, 'd> {
    pub(super) fn get(&self, slot: Slot) -> Option<&'t Tree<'d>> {
        let found = self.members.iter().find(|(name, _)| *name == slot).map(|(_, tree)| *tree);
        // Writers of documents say "none" with null as often as by leaving a member out.
        found.filter(|tree| !matches!(tree.kind, Kind::Null))
    }
}
