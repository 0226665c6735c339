//! Goes through JSON text and notes what has to change in it.
//!
//! The text is never parsed into values and printed again: numbers, spacing and escapes stay as they were. Depth
//! costs memory and no stack.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::value::RawValue;

use super::name::{Secrecy, secrecy};
use super::pair::Role;
use super::view::{Escapes, View};
use super::{Edit, MARK, Sanitiser, named};

/// How often JSON may be written into strings of JSON and still be opened; each time doubles its backslashes.
const DEEPEST: usize = 8;

/// An object or array that is open.
#[derive(Debug, Default)]
struct Frame {
    is_object: bool,
    /// The next string is the name of a member.
    expects_name: bool,
    secrecy: Secrecy,
    role: Role,
    /// The object is a pair like `{"name": "API_KEY", "value": "…"}` of a secret.
    names_secret: bool,
    value: Option<Range<usize>>,
}

/// Notes what to change in `json`, a valid JSON text that is in `level` strings of JSON.
pub(super) fn walk(sanitiser: &Sanitiser, json: &[u8], level: usize, edits: &mut Vec<Edit>) {
    let mut open: Vec<Frame> = Vec::new();
    // The one that a value at the top is in.
    let mut outside = Frame::default();
    let mut at = 0;
    while let Some(&byte) = json.get(at) {
        let frame = open.last_mut().unwrap_or(&mut outside);
        match byte {
            b'"' => {
                let end = end_of_string(json, at);
                if frame.expects_name {
                    member_name(sanitiser, json, at + 1..end - 1, level, frame, edits);
                } else {
                    string(sanitiser, json, at + 1..end - 1, level, frame, edits);
                }
                at = end;
            }
            b'{' | b'[' if frame.secrecy == Secrecy::All => {
                let end = end_of_container(json, at);
                if !json[at + 1..end - 1].iter().all(u8::is_ascii_whitespace) {
                    edits.push(mark_value(at..end));
                }
                at = end;
            }
            b'{' | b'[' => {
                let is_object = byte == b'{';
                open.push(Frame { is_object, expects_name: is_object, ..Frame::default() });
                at += 1;
            }
            b'}' | b']' => {
                if let Some(Frame { names_secret: true, value: Some(value), .. }) = open.pop() {
                    edits.push(mark_value(value));
                }
                at += 1;
            }
            b',' => {
                frame.expects_name = frame.is_object;
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                let end = end_of_number(json, at);
                if frame.role == Role::Value {
                    frame.value = Some(at..end);
                }
                if frame.secrecy == Secrecy::All || sanitiser.knows(&json[at..end]) {
                    edits.push(mark_value(at..end));
                }
                at = end;
            }
            _ => at += 1,
        }
    }
}

/// Reads the name of a member: what it says of the value, and whether it has a secret in it itself.
fn member_name(
    sanitiser: &Sanitiser,
    json: &[u8],
    inside: Range<usize>,
    level: usize,
    frame: &mut Frame,
    edits: &mut Vec<Edit>,
) {
    let view = View::without(Escapes::Json, &json[inside.clone()]);
    let name = view.as_ref().map_or(&json[inside.clone()], |view| &view.bytes);
    frame.expects_name = false;
    frame.secrecy = secrecy(name);
    frame.role = Role::of(name);
    look(sanitiser, json, inside, view, level, edits);
}

/// Looks at a string that is a value.
fn string(
    sanitiser: &Sanitiser,
    json: &[u8],
    inside: Range<usize>,
    level: usize,
    frame: &mut Frame,
    edits: &mut Vec<Edit>,
) {
    let text = &json[inside.clone()];
    if text.is_empty() || text == MARK.as_bytes() {
        return;
    }
    if frame.secrecy != Secrecy::None {
        if !(frame.secrecy == Secrecy::Text && named::is_path(text)) {
            edits.push(Edit::mark(inside));
        }
        return;
    }
    match frame.role {
        Role::Name => frame.names_secret |= secrecy(text) != Secrecy::None,
        Role::Value => frame.value = Some(inside.start - 1..inside.end + 1),
        Role::None => {}
    }
    let view = View::without(Escapes::Json, text);
    look(sanitiser, json, inside, view, level, edits);
}

/// Looks for secrets inside a string, which reads like `view` where it has escapes.
fn look(
    sanitiser: &Sanitiser,
    json: &[u8],
    inside: Range<usize>,
    view: Option<View>,
    level: usize,
    edits: &mut Vec<Edit>,
) {
    let Some(view) = view else {
        let text = &json[inside.clone()];
        if !sanitiser.is_ordinary(text) {
            let secrets = sanitiser.secrets(text).into_iter();
            edits.extend(
                secrets.map(|range| Edit::mark(inside.start + range.start..inside.start + range.end)),
            );
        }
        return;
    };
    let mut inner = Vec::new();
    if level < DEEPEST && is_json(&view.bytes) {
        walk(sanitiser, &view.bytes, level + 1, &mut inner);
    } else {
        inner.extend(sanitiser.secrets(&view.bytes).into_iter().map(Edit::mark));
    }
    edits.extend(inner.into_iter().map(|edit| {
        let range = view.source(edit.range);
        Edit { range: inside.start + range.start..inside.start + range.end, text: escaped(edit.text) }
    }));
}

/// A mark in place of a whole value.
fn mark_value(range: Range<usize>) -> Edit {
    Edit { range, text: Cow::Owned(format!("\"{MARK}\"")) }
}

/// `text` as it is written inside a string.
fn escaped(text: Cow<'static, str>) -> Cow<'static, str> {
    if text == MARK { text } else { Cow::Owned(text.replace('\\', "\\\\").replace('"', "\\\"")) }
}

/// Whether text is a JSON object, array or string.
fn is_json(bytes: &[u8]) -> bool {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(first, Some(b'{' | b'[' | b'"'))
        && std::str::from_utf8(bytes).is_ok_and(|text| serde_json::from_str::<&RawValue>(text).is_ok())
}

/// The end of the string that begins at `start`, behind its quote.
fn end_of_string(json: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        match json.get(at) {
            Some(b'\\') => at += 2,
            Some(b'"') | None => return at + 1,
            Some(_) => at += 1,
        }
    }
}

/// The end of the object or array that begins at `start`.
fn end_of_container(json: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => {
                at = end_of_string(json, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}

fn end_of_number(json: &[u8], start: usize) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    json[start..].iter().position(|byte| !is_part(byte)).map_or(json.len(), |len| start + len)
}
