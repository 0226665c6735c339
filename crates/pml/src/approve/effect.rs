//! Whether a tool reads or changes things, as far as anybody says so.
//!
//! A [`Verdict`](super::Verdict) answers what may be *done* with a tool, so what is not known counts as changing something.
//! Choosing a tool for a request needs the three cases apart: known to read, known to change, unknown. Nothing is allowed by
//! this answer, so what a server says of its own tool is believed here.

use pml_model::{Annotations, ToolId};

use super::{Policy, Reads};

/// What calling a tool does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It changes nothing.
    Reads,
    /// It changes something.
    Writes,
}

impl Policy {
    /// The effect of the tool `id` by the user's rules, else by what its server says of it; `None` where nobody says.
    pub fn effect(&self, id: &ToolId, annotations: &Annotations) -> Option<Effect> {
        let effect = |reads: bool| if reads { Effect::Reads } else { Effect::Writes };
        match self.case(id, annotations).read_only() {
            Reads::Rule(_, reads) => Some(effect(reads)),
            Reads::Contradicted(_) => Some(Effect::Writes),
            Reads::Annotations(_) | Reads::Unknown => match annotations.read_only_hint {
                Some(reads) => Some(effect(reads)),
                None => (annotations.destructive_hint == Some(true)).then_some(Effect::Writes),
            },
        }
    }
}
