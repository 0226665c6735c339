//! Prints a complaint in the style of a compiler: message, position, the underlined line, a hint.

use pml_model::name::{is_plain, printable};
use pml_model::structure::Position;
use serde::Serialize;
use unicode_width::UnicodeWidthChar;

use crate::{Complaint, DagError, Error, Severity};

/// Maximum columns shown of a long line.
const MAX_LINE: usize = 100;
/// Columns shown before the position.
const LEAD: usize = 40;

/// A source text with its file name.
#[derive(Debug, Clone, Copy)]
pub struct NamedSource<'a> {
    /// File name, such as `plan.ts`.
    pub name: &'a str,
    /// The whole text.
    pub text: &'a str,
}

/// A complaint or error, ready to print.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComplaintReport {
    /// Error or warning.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Position; `None` when it concerns the whole source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Position>,
}

impl From<&Complaint> for ComplaintReport {
    fn from(complaint: &Complaint) -> ComplaintReport {
        ComplaintReport {
            severity: complaint.severity,
            message: complaint.message.clone(),
            hint: complaint.hint.clone(),
            at: Some(complaint.at),
        }
    }
}

impl From<&Error> for ComplaintReport {
    fn from(error: &Error) -> ComplaintReport {
        ComplaintReport {
            severity: Severity::Error,
            message: error.to_string(),
            hint: error.hint(),
            at: error.position(),
        }
    }
}

impl From<&DagError> for ComplaintReport {
    fn from(error: &DagError) -> ComplaintReport {
        let at = error.location().map(|(at, _)| at);
        let message = error.to_string();
        // The position is printed separately, so it is removed from the message.
        let place = at.map(|at| format!("line {}, column {}: ", at.line, at.column)).unwrap_or_default();
        let message = message.strip_prefix(&place).unwrap_or(&message).to_owned();
        ComplaintReport { severity: Severity::Error, message, hint: error.hint(), at }
    }
}

impl ComplaintReport {
    /// The report about `file` in several lines, without a final line break.
    pub fn render(&self, file: &NamedSource<'_>) -> String {
        let kind = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let mut text = format!("{kind}: {}", printable(&self.message));
        if let Some(at) = self.at {
            place(&mut text, file, at);
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("\nhint: {}", printable(hint)));
        }
        text
    }
}

fn place(text: &mut String, file: &NamedSource<'_>, at: Position) {
    let number = at.line.to_string();
    let margin = " ".repeat(number.len());
    text.push_str(&format!("\n{margin}--> {}:{}:{}", printable(file.name), at.line, at.column));
    if let Some((line, underline)) = marked_line(file.text, at) {
        text.push_str(&format!("\n{margin} |\n{number} | {line}\n{margin} | {underline}"));
    }
}

/// The line at a position, shortened around it, and the line of carets below.
fn marked_line(text: &str, at: Position) -> Option<(String, String)> {
    let (before, rest) = text.split_at_checked(at.start as usize)?;
    let marked = text.get(at.start as usize..at.end as usize)?;
    let before = before.rsplit(BREAKS).next().unwrap_or_default();
    let after = rest.split(BREAKS).next().unwrap_or_default();
    let marked = marked.split(BREAKS).next().unwrap_or_default();
    let after = &after[marked.len()..];
    if before.trim().is_empty() && marked.is_empty() && after.trim().is_empty() {
        return None;
    }
    let before = last(&shown(before), LEAD);
    let marked = truncate_to_width(&shown(marked), MAX_LINE - LEAD);
    let room = MAX_LINE.saturating_sub(display_width(&before) + display_width(&marked));
    let after = if marked.ends_with('…') {
        String::new()
    } else {
        truncate_to_width(shown(after).trim_end(), room)
    };
    let underline =
        format!("{}{}", " ".repeat(display_width(&before)), "^".repeat(display_width(&marked).max(1)));
    Some((format!("{before}{marked}{after}"), underline))
}

/// Line terminators of TypeScript.
const BREAKS: [char; 4] = ['\n', '\r', '\u{2028}', '\u{2029}'];

/// Text of one line for printing: tabs as spaces, without invisible characters.
fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push_str("    "),
            c if is_plain(c) => out.push(c),
            c => out.extend(c.escape_unicode()),
        }
    }
    out
}

/// Width of a text in terminal columns.
pub(super) fn display_width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// The beginning of a text that fits into `room` columns.
pub(super) fn truncate_to_width(text: &str, room: usize) -> String {
    if display_width(text) <= room {
        return text.to_owned();
    }
    let mut taken = 0;
    let kept: String = text
        .chars()
        .take_while(|c| {
            taken += c.width().unwrap_or(0);
            taken < room
        })
        .collect();
    format!("{kept}…")
}

/// The end of a text that fits into `room` columns.
fn last(text: &str, room: usize) -> String {
    if display_width(text) <= room {
        return text.to_owned();
    }
    let mut taken = 0;
    let kept: Vec<char> = text
        .chars()
        .rev()
        .take_while(|c| {
            taken += c.width().unwrap_or(0);
            taken < room
        })
        .collect();
    format!("…{}", kept.into_iter().rev().collect::<String>())
}
