//! How text looks on a terminal; `anstream` takes these out where the output goes elsewhere.

pub(super) const BOLD: &str = "\u{1b}[1m";
pub(super) const BOLD_RED: &str = "\u{1b}[1;31m";
pub(super) const CYAN: &str = "\u{1b}[36m";
pub(super) const DIM: &str = "\u{1b}[2m";
pub(super) const GREEN: &str = "\u{1b}[32m";
pub(super) const YELLOW: &str = "\u{1b}[33m";
pub(super) const RESET: &str = "\u{1b}[0m";
