//! Converts byte offsets of the source to lines and columns.

use oxc_span::Span;
use pml_model::name::printable;
use pml_model::structure::Position;

/// Maximum characters of an excerpt.
const EXCERPT_CHARACTERS: usize = 160;
/// Usual minimum bytes per line, for the initial capacity.
const USUAL_LINE: usize = 24;
/// Distance in bytes of the positions up to which characters are counted in advance.
const STRIDE: usize = 1024;

/// Line index of a source.
pub(crate) struct SourceLines<'s> {
    source: &'s str,
    /// First byte of each line.
    starts: Vec<u32>,
    /// Characters before each `STRIDE`th byte; empty when every character is one byte.
    characters: Vec<u32>,
}

impl<'s> SourceLines<'s> {
    /// Indexes `source` in one pass.
    pub(crate) fn new(source: &'s str) -> SourceLines<'s> {
        let characters = if source.is_ascii() { Vec::new() } else { counted(source.as_bytes()) };
        SourceLines { source, starts: starts(source.as_bytes()), characters }
    }

    /// The source text.
    pub(crate) fn source(&self) -> &'s str {
        self.source
    }

    /// Position of `span`. A span past the end is at the end.
    pub(crate) fn position(&self, span: Span) -> Position {
        let end = self.source.len() as u32;
        let start = span.start.min(end);
        let line = self.starts.partition_point(|first| *first <= start);
        let first = self.starts[line - 1];
        let column = self.characters_before(start) - self.characters_before(first) + 1;
        Position { line: line as u32, column, start, end: span.end.clamp(start, end) }
    }

    /// The line of `at`, shortened around its column, with misleading characters escaped.
    pub(crate) fn excerpt(&self, at: Position) -> String {
        let line = self.line(at.line);
        let start = self.starts[at.line as usize - 1] as usize;
        let ahead = self.source.get(start..at.start as usize).unwrap_or_default();
        // Searched backwards from the position: the line may be the whole program.
        let first =
            ahead.char_indices().rev().take(EXCERPT_CHARACTERS / 2).last().map_or(0, |(first, _)| first);
        let first = first.min(line.len());
        let mut rest = line[first..].chars();
        let cut: String = rest.by_ref().take(EXCERPT_CHARACTERS).collect();
        let ahead = if first > 0 { "…" } else { "" };
        let more = if rest.next().is_some() { "…" } else { "" };
        format!("{ahead}{}{more}", printable(cut.trim_end()))
    }

    /// A line without its terminator.
    fn line(&self, line: u32) -> &'s str {
        let index = line as usize - 1;
        let start = self.starts[index] as usize;
        let end = self.starts.get(index + 1).map_or(self.source.len(), |next| *next as usize);
        self.source[start..end].trim_end_matches(['\n', '\r', '\u{2028}', '\u{2029}'])
    }

    fn characters_before(&self, byte: u32) -> u32 {
        if self.characters.is_empty() {
            return byte;
        }
        let stride = byte as usize / STRIDE;
        let rest = &self.source.as_bytes()[stride * STRIDE..byte as usize];
        self.characters[stride] + rest.iter().filter(|byte| begins_character(**byte)).count() as u32
    }
}

fn starts(text: &[u8]) -> Vec<u32> {
    let mut starts = Vec::with_capacity(text.len() / USUAL_LINE + 1);
    starts.push(0);
    for at in memchr::memchr3_iter(b'\n', b'\r', 0xE2, text) {
        let length = match &text[at..] {
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => continue,
            [b'\r', ..] => 1,
            [0xE2, 0x80, 0xA8 | 0xA9, ..] => 3,
            _ => continue,
        };
        starts.push((at + length) as u32);
    }
    starts
}

fn counted(text: &[u8]) -> Vec<u32> {
    let mut before = 0;
    let mut characters = vec![0];
    for stride in text.chunks(STRIDE) {
        before += stride.iter().filter(|byte| begins_character(**byte)).count() as u32;
        characters.push(before);
    }
    characters
}

fn begins_character(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, wanted: &str, line: u32, column: u32, excerpt: &str) {
        let start = source.find(wanted).expect("the source contains it") as u32;
        let lines = SourceLines::new(source);
        let at = lines.position(Span::new(start, start + wanted.len() as u32));
        assert_eq!((at.line, at.column, at.start), (line, column, start));
        assert_eq!(lines.excerpt(at), excerpt);
    }

    #[test]
    fn every_line_terminator_ends_a_line() {
        let source = "a\nb\r\nc\rd\u{2028}e\u{2029}  f;";
        for (wanted, line) in [("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5)] {
            check(source, wanted, line, 1, wanted);
        }
        check(source, "f", 6, 3, "  f;");
    }

    #[test]
    fn columns_count_characters() {
        check("const é = '日本' + x", "x", 1, 18, "const é = '日本' + x");
        let long = format!("{}x", "é".repeat(5000));
        let at = SourceLines::new(&long).position(Span::new(10_000, 10_001));
        assert_eq!((at.line, at.column), (1, 5001));
    }

    #[test]
    fn a_long_line_is_cut_around_the_column() {
        let source = format!("{}HERE{}", "a".repeat(1000), "b".repeat(1000));
        let expected = format!("…{}HERE{}…", "a".repeat(80), "b".repeat(76));
        check(&source, "HERE", 1, 1001, &expected);
    }

    #[test]
    fn hidden_characters_are_shown() {
        check("a\u{202e}b\u{1b}[0m", "b", 1, 3, "a\\u{202e}b\\u{1b}[0m");
    }

    #[test]
    fn the_end_is_a_place() {
        let lines = SourceLines::new("a\n");
        let at = lines.position(Span::new(9, 12));
        assert_eq!((at.line, at.column, at.start, at.end), (2, 1, 2, 2));
        assert_eq!(lines.excerpt(at), "");
    }
}
