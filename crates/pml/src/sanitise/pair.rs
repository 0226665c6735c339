//! Finds secrets in running text that stand in an object beside their name, as programs and documents write it:
//! `{ name: "api_key", value: "…" }`, whichever comes first and whatever stands between.

use std::ops::Range;

use super::MARK;
use super::name::{LONGEST, Secrecy, secrecy};
use super::named::is_placeholder;

/// What a member does in an object that is a pair of name and value.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    #[default]
    None,
    Name,
    Value,
}

impl Role {
    /// That of a member called so.
    pub(super) fn of(member: &[u8]) -> Role {
        match member {
            b"name" | b"key" | b"header" | b"Name" | b"Key" => Role::Name,
            b"value" | b"Value" => Role::Value,
            _ => Role::None,
        }
    }
}

/// Something in brackets that is open.
#[derive(Debug, Default)]
struct Frame {
    is_object: bool,
    /// A member may begin here.
    begins: bool,
    role: Role,
    names_secret: bool,
    value: Option<Range<usize>>,
}

/// Adds the values whose names beside them say that they are secrets.
pub(super) fn find(bytes: &[u8], found: &mut Vec<Range<usize>>) {
    if !bytes.contains(&b'{') {
        return;
    }
    let (mut open, mut at): (Vec<Frame>, usize) = (Vec::new(), 0);
    let mut unclosed = Unclosed::default();
    while let Some(&byte) = bytes.get(at) {
        at = match byte {
            b'{' | b'[' | b'(' => {
                let is_object = byte == b'{';
                open.push(Frame { is_object, begins: is_object, ..Frame::default() });
                at + 1
            }
            b'}' | b']' | b')' => {
                if let Some(Frame { names_secret: true, value: Some(value), .. }) = open.pop() {
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

/// Up to where no text ends, for each kind of quote. Where one does not end, those that begin inside of it do not either:
/// all quotes there are escaped. So no byte is looked at more than a few times.
#[derive(Debug, Default)]
struct Unclosed([usize; 3]);

impl Unclosed {
    fn until(&mut self, quote: u8) -> &mut usize {
        match quote {
            b'"' => &mut self.0[0],
            b'\'' => &mut self.0[1],
            _ => &mut self.0[2],
        }
    }
}

/// Takes in what begins at `at`, and says where it ends.
fn within(bytes: &[u8], at: usize, frame: &mut Frame, unclosed: &mut Unclosed) -> usize {
    match bytes[at] {
        b',' => {
            (frame.begins, frame.role) = (frame.is_object, Role::None);
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

/// A text, a number or a word: the name of a member, or what one has.
fn take(bytes: &[u8], inside: Range<usize>, after: usize, frame: &mut Frame) {
    let text = &bytes[inside.clone()];
    let blanks = bytes[after..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    if std::mem::take(&mut frame.begins) {
        frame.role = match bytes.get(after + blanks) {
            Some(b':') => Role::of(text),
            _ => Role::None,
        };
        return;
    }
    let is_known = text.is_empty() || text == MARK.as_bytes() || is_placeholder(text);
    match frame.role {
        Role::Name if text.len() <= LONGEST => frame.names_secret |= secrecy(text) != Secrecy::None,
        Role::Value if !is_known && !text.windows(2).any(|part| part == b"${") => frame.value = Some(inside),
        Role::Name | Role::Value | Role::None => {}
    }
}

/// Where a text ends that begins at `start`, or up to where it does not; only those in backticks go on over the end of a line.
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

/// Behind the next `end`.
fn position(bytes: &[u8], at: usize, end: &[u8]) -> usize {
    let found = bytes[at..].windows(end.len()).position(|part| part == end);
    found.map_or(bytes.len(), |len| at + len + end.len())
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.' | b'-') || !byte.is_ascii()
}
