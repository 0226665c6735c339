//! Walks through JSON text and collects the edits that remove secrets.
//!
//! The text is never parsed into values and printed again: numbers, spacing and escapes stay unchanged. Depth costs
//! memory and no stack.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::value::RawValue;

use super::appearance::is_path;
use super::name::{Secrecy, secrecy};
use super::pair::PairRole;
use super::view::{DecodedText, Escapes};
use super::{Edit, MARK, Sanitiser};

/// How many times JSON may be nested in JSON strings and still be decoded; each level doubles the backslashes.
const DEEPEST: usize = 8;

/// An open object or array.
#[derive(Debug, Default)]
struct JsonFrame {
    is_object: bool,
    /// Whether the next string is the name of a member.
    expects_name: bool,
    secrecy: Secrecy,
    role: PairRole,
    /// Whether the object is a pair like `{"name": "API_KEY", "value": "…"}` for a secret.
    names_secret: bool,
    value: Option<Range<usize>>,
}

/// Collects the edits of `json`, a valid JSON text inside `level` JSON strings.
pub(super) fn walk(sanitiser: &Sanitiser, json: &[u8], level: usize, edits: &mut Vec<Edit>) {
    let mut open: Vec<JsonFrame> = Vec::new();
    // The frame around a top-level value.
    let mut outside = JsonFrame::default();
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
                open.push(JsonFrame { is_object, expects_name: is_object, ..JsonFrame::default() });
                at += 1;
            }
            b'}' | b']' => {
                if let Some(JsonFrame { names_secret: true, value: Some(value), .. }) = open.pop() {
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
                if frame.role == PairRole::Value {
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

/// Reads the name of a member: what it says about the value, and whether it contains a secret itself.
fn member_name(
    sanitiser: &Sanitiser,
    json: &[u8],
    inside: Range<usize>,
    level: usize,
    frame: &mut JsonFrame,
    edits: &mut Vec<Edit>,
) {
    let view = DecodedText::decode(Escapes::Json, &json[inside.clone()]);
    let name = view.as_ref().map_or(&json[inside.clone()], |view| &view.bytes);
    frame.expects_name = false;
    frame.secrecy = secrecy(name);
    frame.role = PairRole::of(name);
    look(sanitiser, json, inside, view, level, edits);
}

/// Examines a string value.
fn string(
    sanitiser: &Sanitiser,
    json: &[u8],
    inside: Range<usize>,
    level: usize,
    frame: &mut JsonFrame,
    edits: &mut Vec<Edit>,
) {
    let text = &json[inside.clone()];
    if text.is_empty() || text == MARK.as_bytes() {
        return;
    }
    if frame.secrecy != Secrecy::None {
        if !(frame.secrecy == Secrecy::Text && is_path(text)) {
            edits.push(Edit::mark(inside));
        }
        return;
    }
    match frame.role {
        PairRole::Name => frame.names_secret |= secrecy(text) != Secrecy::None,
        PairRole::Value => frame.value = Some(inside.start - 1..inside.end + 1),
        PairRole::None => {}
    }
    let view = DecodedText::decode(Escapes::Json, text);
    look(sanitiser, json, inside, view, level, edits);
}

/// Searches a string for secrets; `view` is its decoded form if it has escapes.
fn look(
    sanitiser: &Sanitiser,
    json: &[u8],
    inside: Range<usize>,
    view: Option<DecodedText>,
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

/// Replaces a complete value by the mark.
fn mark_value(range: Range<usize>) -> Edit {
    Edit { range, text: Cow::Owned(format!("\"{MARK}\"")) }
}

/// `text` escaped for use inside a string.
fn escaped(text: Cow<'static, str>) -> Cow<'static, str> {
    if text == MARK { text } else { Cow::Owned(text.replace('\\', "\\\\").replace('"', "\\\"")) }
}

/// Whether text is a JSON object, array or string.
fn is_json(bytes: &[u8]) -> bool {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(first, Some(b'{' | b'[' | b'"'))
        && std::str::from_utf8(bytes).is_ok_and(|text| serde_json::from_str::<&RawValue>(text).is_ok())
}

/// The position after the closing quote of the string that begins at `start`.
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
