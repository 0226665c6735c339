//! A task as it stands in the document, its members sorted.

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

/// Its names, the right one first for each; the others are what writers used to other languages write.
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

/// A task as it stands in the document.
pub(super) struct WrittenTask<'t, 'd> {
    pub(super) node: NodeId,
    pub(super) span: ByteSpan,
    pub(super) members: Vec<(TaskMember, &'t JsonTree<'d>)>,
}

impl<'t, 'd> WrittenTask<'t, 'd> {
    pub(super) fn get(&self, slot: TaskMember) -> Option<&'t JsonTree<'d>> {
        let found = self.members.iter().find(|(name, _)| *name == slot).map(|(_, tree)| *tree);
        // Writers of documents say "none" with null as often as by leaving a member out.
        found.filter(|tree| !matches!(tree.kind, JsonKind::Null))
    }
}
