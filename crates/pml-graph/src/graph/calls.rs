//! The calls of a plan, as input of the data-flow inference.

use pml_language::Reading;

use super::fields::{InputField, OutputField, ToolFields};

/// Order of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOrder {
    /// A call takes results only from calls before it.
    AsListed,
    /// Any order that the data flow allows.
    AnyOrder,
}

/// Similarity of the descriptions of a result field and a parameter, from 0 to 1.
pub type DescriptionSimilarity<'a> = &'a dyn Fn(&OutputField, &InputField) -> f32;

/// The calls of a plan.
#[derive(Clone, Copy)]
pub struct PlannedCalls<'a> {
    /// The tool of each call; one tool may be called several times.
    pub tools: &'a [&'a ToolFields],
    /// Whether the list is in execution order.
    pub order: CallOrder,
    /// The request, when known.
    pub request: Option<&'a Reading<'a>>,
    /// Arguments that are known already: index of the call and name of the parameter.
    pub known_arguments: &'a [(usize, &'a str)],
    /// Similarity of descriptions; by their words when absent.
    pub similarity: Option<DescriptionSimilarity<'a>>,
}
