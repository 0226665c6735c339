//! Text tools.
//!
//! Positions count characters (Unicode scalar values), not bytes. Patterns are those of the `regex` crate, whose
//! search takes linear time; the common time limit bounds the sum of many searches.

mod edit;
mod pattern;

#[cfg(test)]
mod tests;

use super::tool::BuiltinTool;

/// The largest number of pieces or matches in a result.
const MAX_PIECES: usize = 100_000;

/// The tools of the server.
pub(super) fn tools() -> Vec<BuiltinTool> {
    vec![
        BuiltinTool::blocking(edit::split_spec(), edit::split),
        BuiltinTool::blocking(edit::join_spec(), edit::join),
        BuiltinTool::blocking(pattern::replace_spec(), pattern::replace),
        BuiltinTool::blocking(pattern::match_spec(), pattern::matches),
        BuiltinTool::blocking(edit::slice_spec(), edit::slice),
        BuiltinTool::blocking(edit::case_spec(), edit::case),
        BuiltinTool::blocking(edit::diff_spec(), edit::diff),
        BuiltinTool::blocking(edit::count_spec(), edit::count),
    ]
}
