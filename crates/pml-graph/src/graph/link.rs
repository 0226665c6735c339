//! One tool's results as another's arguments: what is said of such a pair.

use super::fields::Tool;
use super::names::How;

/// How much of what a tool requires another one gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coverage {
    /// Every required parameter.
    Strict,
    /// Some required parameters.
    Partial,
    /// Optional parameters only, or nothing is required.
    Optional,
}

/// One field of a result that can become one argument.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapping {
    /// Where the value is in the result: `user.id`, `items[].name`; empty for all of it.
    pub from: String,
    /// The parameter.
    pub to: String,
    /// How they were matched.
    pub how: How,
    /// How well, from 0 to 1, common fields less.
    pub weight: f32,
}

/// One tool's results can be arguments of another's.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// The tool that gives.
    pub from: String,
    /// The tool that takes.
    pub to: String,
    /// How much of what it requires is given.
    pub coverage: Coverage,
    /// How well they fit, from 0 to 1.
    pub weight: f32,
    /// Field by field, in the order of the parameters.
    pub mapping: Vec<Mapping>,
}

/// What the mapping covers of `taker`; `None` where it is nothing.
pub(super) fn coverage(taker: &Tool, mapping: &[Mapping]) -> Option<Coverage> {
    let covered = |name: &str| mapping.iter().any(|one| one.to == name);
    let mut required = taker.inputs.iter().filter(|input| input.required).peekable();
    if mapping.is_empty() {
        return None;
    }
    if required.peek().is_none() {
        return Some(Coverage::Optional);
    }
    let required: Vec<bool> = required.map(|input| covered(&input.name)).collect();
    Some(match (required.iter().all(|is| *is), required.iter().any(|is| *is)) {
        (true, _) => Coverage::Strict,
        (false, true) => Coverage::Partial,
        (false, false) => Coverage::Optional,
    })
}
