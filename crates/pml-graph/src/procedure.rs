//! Suggests the steps that serve an intent, from what served earlier intents.
//!
//! Every trace says which tools served its intent and how they were linked. A new intent is compared with all traces,
//! by meaning and by the tools that the catalogue alone offers for both. The nearest traces vote, and their votes
//! correct the catalogue: a tool that it offered to them as well, and that was not used, is not believed this time
//! either. This gives every tool and every link a probability. The answer is the graph with the largest expected
//! overlap with the right one: an earlier graph, or one composed from the likeliest tools, in the order of mention in
//! the request and of earlier use.
//!
//! This module does not know where vectors and ranking come from, and runs nothing.

mod compose;
mod kernel;
mod memory;
mod order;
mod recall;
mod row;

pub use compose::{EarlierProcedure, NeighbourTrace, ProcedureSuggestion, suggest_procedure};
pub use memory::{ProcedureMemory, ProcedureTrace, ToolMatch, ToolText, catalogue_matches};
pub(crate) use recall::ProcedureBeliefs;

/// A request for a procedure.
#[derive(Debug, Clone, Copy)]
pub struct ProcedureRequest<'a> {
    /// The intent, as text.
    pub intent: &'a str,
    /// Vector of the intent, of the same model as those of the traces; `None` without a model.
    pub vector: Option<&'a [f32]>,
    /// Tools that the catalogue alone offers, see [`catalogue_matches`]; only tools that the memory was created with.
    pub matches: &'a [ToolMatch],
}
