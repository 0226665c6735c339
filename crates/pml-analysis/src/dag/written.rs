//! A task as written in the document, with its members classified.

use pml_model::structure::NodeId;

use super::text::{ByteSpan, JsonKind, JsonTree};

/// A member of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskMember {
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

/// Accepted names of the members, for each the right one first; the others are habits from other formats.
pub(super) const MEMBERS: &[(&str, TaskMember)] = &[
    ("id", TaskMember::Id),
    ("tool", TaskMember::Tool),
    ("toolId", TaskMember::Tool),
    ("tool_id", TaskMember::Tool),
    ("code", TaskMember::Code),
    ("capability", TaskMember::Capability),
    ("capabilityId", TaskMember::Capability),
    ("capability_id", TaskMember::Capability),
    ("arguments", TaskMember::Arguments),
    ("args", TaskMember::Arguments),
    ("dependsOn", TaskMember::DependsOn),
    ("depends_on", TaskMember::DependsOn),
    ("type", TaskMember::Type),
    ("sideEffects", TaskMember::SideEffects),
    ("side_effects", TaskMember::SideEffects),
    ("safeToFail", TaskMember::SafeToFail),
    ("safe_to_fail", TaskMember::SafeToFail),
    ("timeoutMs", TaskMember::TimeoutMs),
    ("timeout_ms", TaskMember::TimeoutMs),
    ("retries", TaskMember::Retries),
];

/// A task as written in the document.
pub(super) struct WrittenTask<'t, 'd> {
    pub(super) node: NodeId,
    pub(super) span: ByteSpan,
    pub(super) members: Vec<(TaskMember, &'t JsonTree<'d>)>,
}

impl<'t, 'd> WrittenTask<'t, 'd> {
    pub(super) fn get(&self, slot: TaskMember) -> Option<&'t JsonTree<'d>> {
        let found = self.members.iter().find(|(name, _)| *name == slot).map(|(_, tree)| *tree);
        // Authors write null for an absent member as often as they leave it out.
        found.filter(|tree| !matches!(tree.kind, JsonKind::Null))
    }
}
