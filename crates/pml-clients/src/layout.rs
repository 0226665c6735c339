//! How a text is laid out: its line endings and its indentation.

use std::ops::Range;

/// Line ending and indentation of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) newline: &'static str,
    /// One level of indentation.
    pub(crate) unit: String,
}

impl Layout {
    /// The layout of `text`: its first line ending, and the indentation of its first indented line.
    pub(crate) fn of(text: &str) -> Layout {
        let first_newline = text.find('\n');
        let crlf = first_newline.is_some_and(|at| text[..at].ends_with('\r'));
        let is_comment = |line: &str| line.trim_start().starts_with(['#', '*', '/']);
        let indented = text
            .lines()
            .find(|line| line.starts_with([' ', '\t']) && !line.trim().is_empty() && !is_comment(line));
        let unit = indented.map(indentation).filter(|unit| unit.len() <= 8).unwrap_or("  ").to_owned();
        Layout { newline: if crlf { "\r\n" } else { "\n" }, unit }
    }
}

/// The white space that `line` starts with.
pub(crate) fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// The offset at which the line of `at` starts.
pub(crate) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// The offset after the line of `at`, its line ending included.
pub(crate) fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1)
}

/// The indentation of the line of `at`.
pub(crate) fn indentation_at(text: &str, at: usize) -> &str {
    indentation(&text[line_start(text, at)..])
}

/// A replacement of a range of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Splice {
    pub(crate) range: Range<usize>,
    pub(crate) with: String,
}

impl Splice {
    pub(crate) fn insert(at: usize, with: impl Into<String>) -> Splice {
        Splice { range: at..at, with: with.into() }
    }

    pub(crate) fn cut(range: Range<usize>) -> Splice {
        Splice { range, with: String::new() }
    }
}

/// `text` with all `splices` applied. They do not overlap; of two at the same place the earlier one comes first.
pub(crate) fn apply(text: &str, mut splices: Vec<Splice>) -> String {
    splices.sort_by_key(|splice| splice.range.start);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for splice in splices {
        out.push_str(&text[at..splice.range.start]);
        out.push_str(&splice.with);
        at = splice.range.end;
    }
    out.push_str(&text[at..]);
    out
}
