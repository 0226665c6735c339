//! A complaint as a compiler prints it: what, where, the line with the place underlined, a way out.

use pml_model::name::{is_plain, printable};
use pml_model::structure::Position;
use serde::Serialize;
use unicode_width::UnicodeWidthChar;

use crate::{Complaint, DagError, Error, Severity};

/// How much of a long line is shown.
const MAX_LINE: usize = 100;
/// How much of it is shown before the place.
const LEAD: usize = 40;

/// A text and the name its reader knows it by.
#[derive(Debug, Clone, Copy)]
pub struct File<'a> {
    /// Such as `plan.ts`.
    pub name: &'a str,
    /// All of it.
    pub text: &'a str,
}

/// Something wrong, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// How bad.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Where, unless it is about the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Position>,
}

impl From<&Complaint> for Report {
    fn from(complaint: &Complaint) -> Report {
        Report {
            severity: complaint.severity,
            message: complaint.message.clone(),
            hint: complaint.hint.clone(),
            at: Some(complaint.at),
        }
    }
}

impl From<&Error> for Report {
    fn from(error: &Error) -> Report {
        Report {
            severity: Severity::Error,
            message: error.to_string(),
            hint: error.hint(),
            at: error.position(),
        }
    }
}

impl From<&DagError> for Report {
    fn from(error: &DagError) -> Report {
        let at = error.place().map(|(at, _)| at);
        let message = error.to_string();
        // The place is told apart from the message.
        let place = at.map(|at| format!("line {}, column {}: ", at.line, at.column)).unwrap_or_default();
        let message = message.strip_prefix(&place).unwrap_or(&message).to_owned();
        Report { severity: Severity::Error, message, hint: error.hint(), at }
    }
}

impl Report {
    /// Several lines about `file`, without a line break at the end.
    pub fn text(&self, file: &File<'_>) -> String {
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

fn place(text: &mut String, file: &File<'_>, at: Position) {
    let number = at.line.to_string();
    let margin = " ".repeat(number.len());
    text.push_str(&format!("\n{margin}--> {}:{}:{}", printable(file.name), at.line, at.column));
    if let Some((line, underline)) = marked_line(file.text, at) {
        text.push_str(&format!("\n{margin} |\n{number} | {line}\n{margin} | {underline}"));
    }
}

/// The line at a place, shown around it where it is long, and the carets below it.
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
    let marked = start(&shown(marked), MAX_LINE - LEAD);
    let room = MAX_LINE.saturating_sub(width(&before) + width(&marked));
    let after = if marked.ends_with('…') { String::new() } else { start(shown(after).trim_end(), room) };
    let underline = format!("{}{}", " ".repeat(width(&before)), "^".repeat(width(&marked).max(1)));
    Some((format!("{before}{marked}{after}"), underline))
}

/// What ends a line of TypeScript.
const BREAKS: [char; 4] = ['\n', '\r', '\u{2028}', '\u{2029}'];

/// Text of one line as it is printed: tabs as spaces, and nothing that does not show.
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

/// How many columns of a terminal a text takes.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// The beginning of a text, as much as has room.
pub(super) fn start(text: &str, room: usize) -> String {
    if width(text) <= room {
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

/// The end of a text, as much as has room.
fn last(text: &str, room: usize) -> String {
    if width(text) <= room {
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
