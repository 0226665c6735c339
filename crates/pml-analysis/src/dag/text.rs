//! JSON text as a tree with spans.
//!
//! The text is validated by `serde_json` first, so the scanner reads only valid JSON, once, from beginning to end. It
//! keeps bytes and offsets; it never changes the spelling of a number.

use std::borrow::Cow;

use pml_model::structure::Position;
use serde_json::value::RawValue;

/// Maximum characters of a line in an excerpt; documents are often one line of a megabyte.
const EXCERPT_CHARS: usize = 120;

/// Distance in bytes of the positions up to which characters are counted in advance.
const BLOCK: usize = 1024;

/// Byte range: first byte, and the byte after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteSpan {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A document with its line index.
pub(crate) struct DocumentText<'d> {
    pub(crate) text: &'d str,
    /// Offset of the first byte of every line.
    lines: Vec<usize>,
    /// Number of characters that begin before byte `i * BLOCK`.
    blocks: Vec<usize>,
}

impl<'d> DocumentText<'d> {
    pub(crate) fn new(text: &'d str) -> DocumentText<'d> {
        let (mut lines, mut blocks, mut characters) =
            (vec![0], Vec::with_capacity(text.len() / BLOCK + 1), 0);
        for (at, byte) in text.bytes().enumerate() {
            if at % BLOCK == 0 {
                blocks.push(characters);
            }
            characters += usize::from(begins_character(byte));
            if byte == b'\n' {
                lines.push(at + 1);
            }
        }
        DocumentText { text, lines, blocks }
    }

    /// Line and column of a span.
    pub(crate) fn position(&self, span: ByteSpan) -> Position {
        let line = self.lines.partition_point(|&begin| begin <= span.start);
        let column = self.characters(span.start) - self.characters(self.lines[line - 1]) + 1;
        Position {
            line: number(line),
            column: number(column),
            start: number(span.start),
            end: number(span.end),
        }
    }

    /// Offset of a line and a column in bytes, both from 1, as `serde_json` reports them.
    pub(crate) fn offset(&self, line: usize, column: usize) -> usize {
        let begin = self.lines.get(line.saturating_sub(1)).copied().unwrap_or(self.text.len());
        let mut at = (begin + column.saturating_sub(1)).min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }

    /// The line of byte `at`, or the part of it around `at`.
    pub(crate) fn excerpt(&self, at: usize) -> String {
        let line = self.lines.partition_point(|&begin| begin <= at);
        let begin = self.lines[line - 1];
        let end = self.lines.get(line).map_or(self.text.len(), |&next| next - 1);
        let whole = self.text[begin..end].trim_end_matches('\r');
        if whole.len() <= EXCERPT_CHARS {
            return whole.to_owned();
        }
        let at = at.min(begin + whole.len());
        let before = self.text[begin..at].char_indices().rev().nth(EXCERPT_CHARS / 4).map_or(0, |(i, _)| i);
        let rest = &whole[before..];
        let after = rest.char_indices().nth(EXCERPT_CHARS).map_or(rest.len(), |(i, _)| i);
        let (front, back) =
            (if before > 0 { "…" } else { "" }, if before + after < whole.len() { "…" } else { "" });
        format!("{front}{}{back}", &rest[..after])
    }

    /// Number of characters that begin before byte `at`.
    fn characters(&self, at: usize) -> usize {
        let block = (at / BLOCK).min(self.blocks.len().saturating_sub(1));
        let rest = &self.text.as_bytes()[block * BLOCK..at];
        let counted = self.blocks.get(block).copied().unwrap_or(0);
        counted + rest.iter().filter(|&&byte| begins_character(byte)).count()
    }
}

fn begins_character(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// A value with its span.
#[derive(Debug)]
pub(crate) struct JsonTree<'d> {
    pub(crate) span: ByteSpan,
    pub(crate) kind: JsonKind<'d>,
}

/// Kind of a value.
#[derive(Debug)]
pub(crate) enum JsonKind<'d> {
    Null,
    Bool(bool),
    Number,
    String(Cow<'d, str>),
    Array(Vec<JsonTree<'d>>),
    Object(Vec<JsonMember<'d>>),
}

/// A member of an object.
#[derive(Debug)]
pub(crate) struct JsonMember<'d> {
    pub(crate) key: Cow<'d, str>,
    pub(crate) at: ByteSpan,
    pub(crate) value: JsonTree<'d>,
}

impl<'d> JsonTree<'d> {
    /// Name of the kind in messages.
    pub(crate) fn name(&self) -> &'static str {
        match &self.kind {
            JsonKind::Null => "null",
            JsonKind::Bool(_) => "a boolean",
            JsonKind::Number => "a number",
            JsonKind::String(_) => "a text",
            JsonKind::Array(_) => "a list",
            JsonKind::Object(_) => "an object",
        }
    }

    /// Raw bytes of the value.
    pub(crate) fn raw(&self, text: &DocumentText<'d>) -> Box<RawValue> {
        let written = text.text[self.span.start..self.span.end].to_owned();
        RawValue::from_string(written).expect("a value of a text that was checked to be JSON")
    }
}

/// A string whose `\u` escapes are not valid characters.
#[derive(Debug)]
pub(crate) struct BadEscape(pub(crate) ByteSpan);

/// Tree of `text`, which must be JSON and not too deeply nested for the stack.
pub(crate) fn parse_json<'d>(text: &'d str) -> Result<JsonTree<'d>, BadEscape> {
    JsonScanner { text, at: 0 }.value()
}

struct JsonScanner<'d> {
    text: &'d str,
    at: usize,
}

impl<'d> JsonScanner<'d> {
    fn value(&mut self) -> Result<JsonTree<'d>, BadEscape> {
        let first = self.peek();
        let start = self.at;
        let kind = match first {
            b'{' => JsonKind::Object(self.members()?),
            b'[' => JsonKind::Array(self.items()?),
            b'"' => JsonKind::String(self.string()?),
            _ => self.word(),
        };
        Ok(JsonTree { span: ByteSpan { start, end: self.at }, kind })
    }

    fn members(&mut self) -> Result<Vec<JsonMember<'d>>, BadEscape> {
        let mut members = Vec::new();
        self.at += 1;
        while self.peek() != b'}' {
            self.skip(b',');
            self.peek();
            let start = self.at;
            let key = self.string()?;
            let at = ByteSpan { start, end: self.at };
            self.skip(b':');
            members.push(JsonMember { key, at, value: self.value()? });
        }
        self.at += 1;
        Ok(members)
    }

    fn items(&mut self) -> Result<Vec<JsonTree<'d>>, BadEscape> {
        let mut items = Vec::new();
        self.at += 1;
        while self.peek() != b']' {
            self.skip(b',');
            items.push(self.value()?);
        }
        self.at += 1;
        Ok(items)
    }

    fn string(&mut self) -> Result<Cow<'d, str>, BadEscape> {
        let (start, bytes) = (self.at, self.text.as_bytes());
        let mut escapes = false;
        self.at += 1;
        while bytes[self.at] != b'"' {
            escapes |= bytes[self.at] == b'\\';
            self.at += if bytes[self.at] == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        if !escapes {
            return Ok(Cow::Borrowed(&self.text[start + 1..self.at - 1]));
        }
        serde_json::from_str(&self.text[start..self.at])
            .map(Cow::Owned)
            .map_err(|_| BadEscape(ByteSpan { start, end: self.at }))
    }

    fn word(&mut self) -> JsonKind<'d> {
        let rest = &self.text[self.at..];
        let ends = |byte: u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t');
        let length = rest.bytes().position(ends).unwrap_or(rest.len());
        self.at += length;
        match &rest[..length] {
            "null" => JsonKind::Null,
            "true" => JsonKind::Bool(true),
            "false" => JsonKind::Bool(false),
            _ => JsonKind::Number,
        }
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while matches!(bytes[self.at], b' ' | b'\n' | b'\r' | b'\t') {
            self.at += 1;
        }
        bytes[self.at]
    }

    fn skip(&mut self, separator: u8) {
        if self.peek() == separator {
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_place_and_their_bytes() {
        let json = "\n { \"é\" : [ 10e110 , {} , [] ],\n\"\\u0061\":\"x\\\"y\" } ";
        let text = DocumentText::new(json);
        let tree = parse_json(json).unwrap();
        let JsonKind::Object(members) = &tree.kind else { panic!("an object") };
        assert_eq!(members[1].key, "a");
        assert_eq!(members[1].value.raw(&text).get(), r#""x\"y""#);
        assert_eq!(members[0].value.raw(&text).get(), "[ 10e110 , {} , [] ]");
        let at = text.position(members[0].value.span);
        assert_eq!((at.line, at.column), (2, 10), "columns count characters");
        assert_eq!(text.position(members[1].at).line, 3);
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let json = format!("[{}\"here\"]", "\"é\",".repeat(2_000));
        let text = DocumentText::new(&json);
        let at = json.find("here").unwrap();
        let excerpt = text.excerpt(at);
        assert!(excerpt.starts_with('…') && excerpt.ends_with("\"here\"]"), "{excerpt}");
        assert_eq!(text.position(ByteSpan { start: at, end: at }).column, 8_003);
    }

    #[test]
    fn half_a_character_is_found() {
        assert_eq!(parse_json(r#"["\ud800"]"#).unwrap_err().0, ByteSpan { start: 1, end: 9 });
    }
}
