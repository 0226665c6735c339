//! Finds secrets in running text that stand in an object beside their name, as programs and documents write it:
//! `{ name: "api_key", value: "…" }`, in either order and with anything in between.

use std::ops::Range;

use super::MARK;
use super::appearance::is_placeholder;
use super::name::{LONGEST, Secrecy, secrecy};

/// The role of a member in an object that is a pair of name and value.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum PairRole {
    #[default]
    None,
    Name,
    Value,
}

impl PairRole {
    /// The role of a member with this name.
    pub(super) fn of(member: &[u8]) -> PairRole {
        match member {
            b"name" | b"key" | b"header" | b"Name" | b"Key" => PairRole::Name,
            b"value" | b"Value" => PairRole::Value,
            _ => PairRole::None,
        }
    }
}

/// An open bracket.
#[derive(Debug, Default)]
struct PairFrame {
    is_object: bool,
    /// Whether a member may begin here.
    begins: bool,
    role: PairRole,
    names_secret: bool,
    value: Option<Range<usize>>,
}

/// Adds the values whose adjacent names say that they are secrets.
pub(super) fn find(bytes: &[u8], found: &mut Vec<Range<usize>>) {
    if !bytes.contains(&b'{') {
        return;
    }
    let (mut open, mut at): (Vec<PairFrame>, usize) = (Vec::new(), 0);
    let mut unclosed = UnclosedQuotes::default();
    while let Some(&byte) = bytes.get(at) {
        at = match byte {
            b'{' | b'[' | b'(' => {
                let is_object = byte == b'{';
                open.push(PairFrame { is_object, begins: is_object, ..PairFrame::default() });
                at + 1
            }
            b'}' | b']' | b')' => {
                if let Some(PairFrame { names_secret: true, value: Some(value), .. }) = open.pop() {
                    found.push(value);
                }
                at + 1
            }
            _ => match open.last_mut() {
                Some(frame) => within(bytes, at, frame, &mut unclosed),
                None => at + 1,
            },
        };
    }
}

/// For each kind of quote, the position up to which no text ends. If a text does not end, those that begin inside it do
/// not either, because all quotes there are escaped. So no byte is examined more than a few times.
#[derive(Debug, Default)]
struct UnclosedQuotes([usize; 3]);

impl UnclosedQuotes {
    fn until(&mut self, quote: u8) -> &mut usize {
        match quote {
            b'"' => &mut self.0[0],
            b'\'' => &mut self.0[1],
            _ => &mut self.0[2],
        }
    }
}

/// Processes the token at `at`, and returns where it ends.
fn within(bytes: &[u8], at: usize, frame: &mut PairFrame, unclosed: &mut UnclosedQuotes) -> usize {
    match bytes[at] {
        b',' => {
            (frame.begins, frame.role) = (frame.is_object, PairRole::None);
            at + 1
        }
        quote @ (b'"' | b'\'' | b'`') if at >= *unclosed.until(quote) => {
            match end_of_text(bytes, at + 1, quote) {
                Ok(end) => {
                    take(bytes, at + 1..end, end + 1, frame);
                    end + 1
                }
                Err(end) => {
                    *unclosed.until(quote) = end;
                    at + 1
                }
            }
        }
        b'/' if bytes[at..].starts_with(b"//") => position(bytes, at, b"\n"),
        b'/' if bytes[at..].starts_with(b"/*") => position(bytes, at, b"*/"),
        byte if is_part(byte) => {
            let end = bytes[at..].iter().position(|byte| !is_part(*byte)).map_or(bytes.len(), |len| at + len);
            if frame.begins || byte.is_ascii_digit() {
                take(bytes, at..end, end, frame);
            }
            end
        }
        _ => at + 1,
    }
}

/// Takes a text, a number or a word: the name of a member, or its value.
fn take(bytes: &[u8], inside: Range<usize>, after: usize, frame: &mut PairFrame) {
    let text = &bytes[inside.clone()];
    let blanks = bytes[after..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    if std::mem::take(&mut frame.begins) {
        frame.role = match bytes.get(after + blanks) {
            Some(b':') => PairRole::of(text),
            _ => PairRole::None,
        };
        return;
    }
    let is_known = text.is_empty() || text == MARK.as_bytes() || is_placeholder(text);
    match frame.role {
        PairRole::Name if text.len() <= LONGEST => frame.names_secret |= secrecy(text) != Secrecy::None,
        PairRole::Value if !is_known && !text.windows(2).any(|part| part == b"${") => {
            frame.value = Some(inside);
        }
        PairRole::Name | PairRole::Value | PairRole::None => {}
    }
}

/// The end of the text that begins at `start`, or the position up to which it does not end; only texts in backticks
/// span lines.
fn end_of_text(bytes: &[u8], start: usize, quote: u8) -> Result<usize, usize> {
    let mut at = start;
    loop {
        match bytes.get(at) {
            None => return Err(bytes.len()),
            Some(b'\n') if quote != b'`' => return Err(at),
            Some(b'\\') => at += 2,
            Some(byte) if *byte == quote => return Ok(at),
            Some(_) => at += 1,
        }
    }
}

/// The position after the next `end`.
fn position(bytes: &[u8], at: usize, end: &[u8]) -> usize {
    let found = bytes[at..].windows(end.len()).position(|part| part == end);
    found.map_or(bytes.len(), |len| at + len + end.len())
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | b'-') || !byte.is_ascii()
}
