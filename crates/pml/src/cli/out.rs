//! Printing. A closed pipe is no error: its reader has seen enough.

use std::io::Write as _;

use serde::Serialize;

use crate::problem::Problem;

/// Prints a line of the result to standard output.
pub(super) fn line(text: impl AsRef<str>) {
    written(writeln!(anstream::stdout(), "{}", text.as_ref()));
}

/// Prints the result as JSON to standard output.
pub(super) fn json(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => line(text),
        Err(error) => note(format!("the result cannot be printed: {error}")),
    }
}

/// Prints a line that is not part of the result to standard error.
pub(super) fn note(text: impl AsRef<str>) {
    written(writeln!(anstream::stderr(), "{}", text.as_ref()));
}

/// Prints why a command failed to standard error.
pub(super) fn error(problem: &Problem) {
    note(format!("{BOLD_RED}error{RESET}: {}", problem.message));
    if let Some(hint) = &problem.hint {
        note(format!("{CYAN}hint{RESET}: {hint}"));
    }
}

pub(super) use super::style::{BOLD, BOLD_RED, CYAN, DIM, GREEN, RESET, YELLOW};
pub(super) use super::table::table;

fn written(result: std::io::Result<()>) {
    if let Err(error) = result {
        tracing::debug!(%error, "nobody reads the output");
    }
}
