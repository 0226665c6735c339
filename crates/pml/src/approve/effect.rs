//! The effect of a tool: whether it reads or changes things, as far as rules or annotations say so.
//!
//! A [`ToolVerdict`](super::ToolVerdict) decides what may be *done* with a tool, so an unknown effect counts as a
//! change. Choosing a tool for a request needs three cases: known to read, known to change, unknown. The effect permits
//! nothing, so the annotations of every server are trusted here.

use pml_model::{Annotations, ToolId};

use super::{Policy, ReadOnlyBasis};

/// What calling a tool does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The tool changes nothing.
    Reads,
    /// The tool changes something.
    Writes,
}

impl Policy {
    /// The effect of the tool `id` by the user's rules, else by its annotations; `None` if neither says.
    pub fn effect(&self, id: &ToolId, annotations: &Annotations) -> Option<Effect> {
        let effect = |reads: bool| if reads { Effect::Reads } else { Effect::Writes };
        match self.facts_of(id, annotations).read_only() {
            ReadOnlyBasis::Rule(_, reads) => Some(effect(reads)),
            ReadOnlyBasis::Contradicted(_) => Some(Effect::Writes),
            ReadOnlyBasis::Annotations(_) | ReadOnlyBasis::Unknown => match annotations.read_only_hint {
                Some(reads) => Some(effect(reads)),
                None => (annotations.destructive_hint == Some(true)).then_some(Effect::Writes),
            },
        }
    }
}
