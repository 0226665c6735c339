//! Text with its escapes decoded, and the position of each piece in the original.

use std::ops::Range;

/// The encodings to decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escapes {
    /// The escapes of a JSON string.
    Json,
    /// The escapes of programs (`\n`, `\u0041`, `\x41`), URLs (`%41`) and HTML (`&#x41;`, `&amp;`).
    Any,
    /// Line ends, with the indentation that follows.
    Lines,
}

/// Decoded text with its positions in the original.
#[derive(Debug)]
pub(super) struct DecodedText {
    /// The text; UTF-8 unless the escapes encode something else.
    pub(super) bytes: Vec<u8>,
    units: Vec<Unit>,
}

/// One escape: the `len` bytes from `at` on are the decoded form of `source`.
#[derive(Debug)]
struct Unit {
    at: usize,
    len: usize,
    source: Range<usize>,
}

/// The value of one escape, and its length in bytes.
struct DecodedEscape {
    bytes: [u8; 4],
    len: usize,
    used: usize,
}

impl DecodedText {
    /// `source` with the escapes decoded; `None` if it has none.
    pub(super) fn decode(escapes: Escapes, source: &[u8]) -> Option<DecodedText> {
        let mut view = DecodedText { bytes: Vec::new(), units: Vec::new() };
        let (mut done, mut at) = (0, 0);
        while let Some(step) = source[at..].iter().position(|byte| escapes.may_begin_with(*byte)) {
            let start = at + step;
            let Some(decoded) = escapes.decode(&source[start..]) else {
                at = start + 1;
                continue;
            };
            at = start + decoded.used;
            view.bytes.extend_from_slice(&source[done..start]);
            view.units.push(Unit { at: view.bytes.len(), len: decoded.len, source: start..at });
            view.bytes.extend_from_slice(&decoded.bytes[..decoded.len]);
            done = at;
        }
        if view.units.is_empty() {
            return None;
        }
        view.bytes.extend_from_slice(&source[done..]);
        Some(view)
    }

    /// The position of `range` in the original, with complete escapes.
    pub(super) fn source(&self, range: Range<usize>) -> Range<usize> {
        let start = self.byte(range.start).start;
        if range.is_empty() { start..start } else { start..self.byte(range.end - 1).end }
    }

    /// The bytes of the original that byte `at` of the view comes from.
    fn byte(&self, at: usize) -> Range<usize> {
        let before = self.units.partition_point(|unit| unit.at <= at);
        let Some(unit) = before.checked_sub(1).map(|last| &self.units[last]) else {
            return at..at + 1;
        };
        if at < unit.at + unit.len {
            return unit.source.clone();
        }
        let start = unit.source.end + (at - unit.at - unit.len);
        start..start + 1
    }
}

impl Escapes {
    /// Whether an escape can begin with `byte`.
    pub(super) fn may_begin_with(self, byte: u8) -> bool {
        match self {
            Escapes::Json => byte == b'\\',
            Escapes::Any => matches!(byte, b'\\' | b'%' | b'&'),
            Escapes::Lines => matches!(byte, b'\r' | b'\n'),
        }
    }

    /// Decodes the escape at the beginning of `text`.
    fn decode(self, text: &[u8]) -> Option<DecodedEscape> {
        match (self, text[0]) {
            (Escapes::Lines, _) => {
                let used = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                Some(DecodedEscape { bytes: [0; 4], len: 0, used })
            }
            (_, b'\\') => backslash(text),
            (_, b'%') => byte(hex(text.get(1..3)?)?, 3),
            _ => entity(text),
        }
    }
}

fn backslash(text: &[u8]) -> Option<DecodedEscape> {
    match *text.get(1)? {
        b'n' => byte(b'\n'.into(), 2),
        b'r' => byte(b'\r'.into(), 2),
        b't' => byte(b'\t'.into(), 2),
        b'b' => byte(8, 2),
        b'f' => byte(12, 2),
        b'x' => byte(hex(text.get(2..4)?)?, 4),
        b'u' => unicode(text),
        plain @ (b'"' | b'\'' | b'\\' | b'/') => byte(plain.into(), 2),
        _ => None,
    }
}

/// Decodes `\u0041`, `\ud83d\ude00` or `\u{1f600}`.
fn unicode(text: &[u8]) -> Option<DecodedEscape> {
    if text.get(2) == Some(&b'{') {
        let end = text.iter().take(10).position(|byte| *byte == b'}')?;
        return character(hex(&text[3..end])?, end + 1);
    }
    let unit = hex(text.get(2..6)?)?;
    if let (0xD800..0xDC00, Some(b"\\u")) = (unit, text.get(6..8)) {
        let low = hex(text.get(8..12)?)?;
        if (0xDC00..0xE000).contains(&low) {
            return character(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00), 12);
        }
    }
    character(unit, 6)
}

fn entity(text: &[u8]) -> Option<DecodedEscape> {
    let end = text.iter().take(12).position(|byte| *byte == b';')?;
    let code = match &text[1..end] {
        [b'#', b'x' | b'X', digits @ ..] => hex(digits)?,
        [b'#', digits @ ..] => std::str::from_utf8(digits).ok()?.parse().ok()?,
        b"amp" => '&'.into(),
        b"lt" => '<'.into(),
        b"gt" => '>'.into(),
        b"quot" => '"'.into(),
        b"apos" => '\''.into(),
        b"nbsp" => ' '.into(),
        b"sol" => '/'.into(),
        b"equals" => '='.into(),
        b"colon" => ':'.into(),
        b"commat" => '@'.into(),
        b"plus" => '+'.into(),
        _ => return None,
    };
    character(code, end + 1)
}

fn hex(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn byte(value: u32, used: usize) -> Option<DecodedEscape> {
    Some(DecodedEscape { bytes: [u8::try_from(value).ok()?, 0, 0, 0], len: 1, used })
}

fn character(code: u32, used: usize) -> Option<DecodedEscape> {
    let mut bytes = [0; 4];
    let len = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut bytes).len();
    Some(DecodedEscape { bytes, len, used })
}
