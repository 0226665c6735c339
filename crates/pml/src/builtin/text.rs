//! Work on text.
//!
//! Positions count characters (Unicode scalar values), not bytes. Patterns are those of the `regex` crate, whose
//! search takes linear time; what many searches add up to is ended by the common time limit.

mod edit;
mod pattern;

#[cfg(test)]
mod tests;

use super::tool::Tool;

/// The most pieces or matches given.
const MAX_PIECES: usize = 100_000;

/// The tools.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::work(edit::split_spec(), edit::split),
        Tool::work(edit::join_spec(), edit::join),
        Tool::work(pattern::replace_spec(), pattern::replace),
        Tool::work(pattern::match_spec(), pattern::matches),
        Tool::work(edit::slice_spec(), edit::slice),
        Tool::work(edit::case_spec(), edit::case),
        Tool::work(edit::diff_spec(), edit::diff),
        Tool::work(edit::count_spec(), edit::count),
    ]
}
