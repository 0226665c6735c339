//! Links between tools: results of one as arguments of another.

use super::fields::ToolFields;
use super::names::MatchBasis;

/// How much of a tool's required input another tool provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InputCoverage {
    /// Every required parameter.
    Strict,
    /// Some required parameters.
    Partial,
    /// Optional parameters only, or nothing is required.
    Optional,
}

/// One result field that can become one argument.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldMapping {
    /// Path of the value in the result: `user.id`, `items[].name`; empty for the whole result.
    pub from: String,
    /// Name of the parameter.
    pub to: String,
    /// Basis of the match.
    pub basis: MatchBasis,
    /// Strength of the match from 0 to 1; lower for common fields.
    pub weight: f32,
}

/// Results of one tool can be arguments of another.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolLink {
    /// Id of the tool that gives.
    pub from: String,
    /// Id of the tool that takes.
    pub to: String,
    /// How much of its required input is provided.
    pub coverage: InputCoverage,
    /// Weight of the link, from 0 to 1.
    pub weight: f32,
    /// Field mappings, in the order of the parameters.
    pub mapping: Vec<FieldMapping>,
}

/// Coverage of the inputs of `taker` by the mapping; `None` when nothing is covered.
pub(super) fn coverage(taker: &ToolFields, mapping: &[FieldMapping]) -> Option<InputCoverage> {
    let covered = |name: &str| mapping.iter().any(|one| one.to == name);
    let mut required = taker.inputs.iter().filter(|input| input.required).peekable();
    if mapping.is_empty() {
        return None;
    }
    if required.peek().is_none() {
        return Some(InputCoverage::Optional);
    }
    let required: Vec<bool> = required.map(|input| covered(&input.name)).collect();
    Some(match (required.iter().all(|is| *is), required.iter().any(|is| *is)) {
        (true, _) => InputCoverage::Strict,
        (false, true) => InputCoverage::Partial,
        (false, false) => InputCoverage::Optional,
    })
}
