//! Splits a text into words to translate, punctuation, and pieces to keep.
//!
//! Quoted text, addresses, paths, numbers and identifiers are kept. Elided words (`l'`, `d'`) and hyphenated words
//! (`peux-tu`) are split.

use super::forms::split_elision;
use super::lexicon::{WordSenses, lexicon};
use crate::fold::fold;

/// A piece of a text.
#[derive(Debug)]
pub(super) enum FrenchPiece<'a> {
    Word(FrenchWord<'a>),
    /// Copied unchanged.
    Kept(&'a str),
    /// Punctuation or a line break.
    Mark(&'a str),
}

/// A word of a text.
#[derive(Debug)]
pub(super) struct FrenchWord<'a> {
    pub(super) written: &'a str,
    pub(super) folded: String,
    /// Whether it stands where every word has a capital.
    pub(super) opens_sentence: bool,
    pub(super) senses: WordSenses,
}

impl FrenchWord<'_> {
    /// Whether its capital marks it as a name.
    pub(super) fn is_capitalised_name(&self) -> bool {
        let mut characters = self.written.chars();
        let capital = characters.next().is_some_and(char::is_uppercase);
        capital && (!self.opens_sentence || characters.next().is_some_and(char::is_uppercase))
    }
}

/// Whether no word of the text has a lower-case letter, so that capitals say nothing.
pub(super) fn is_all_capitals(pieces: &[FrenchPiece<'_>]) -> bool {
    !pieces
        .iter()
        .any(|piece| matches!(piece, FrenchPiece::Word(word) if word.written.contains(char::is_lowercase)))
}

/// Maximum distance of a closing quotation mark, in bytes; also keeps the scan linear.
const QUOTED_BYTES: usize = 400;

/// Maximum bytes of a word; longer runs of letters are kept.
const WORD_BYTES: usize = 40;

/// The pieces of `text`, in order.
pub(super) fn scan_pieces(text: &str) -> Vec<FrenchPiece<'_>> {
    let mut scan = FrenchScanner { pieces: Vec::new(), first: true };
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let size = match c {
            '\n' => scan.mark(&rest[..1]),
            _ if c.is_whitespace() => c.len_utf8(),
            _ => quoted(rest).map(|size| scan.keep(&rest[..size])).unwrap_or_else(|| scan.chunk(rest)),
        };
        rest = &rest[size..];
    }
    scan.pieces
}

/// Length of the quotation that `text` starts with.
fn quoted(text: &str) -> Option<usize> {
    let open = text.chars().next()?;
    let close = match open {
        '"' | '`' | '\'' => open,
        '«' => '»',
        '“' => '”',
        '‘' => '’',
        _ => return None,
    };
    let inside = crate::byte_prefix(&text[open.len_utf8()..], QUOTED_BYTES);
    let inside = &inside[..inside.find('\n').unwrap_or(inside.len())];
    let ends = |at: usize| !inside[at + close.len_utf8()..].starts_with(char::is_alphanumeric);
    let at = inside.match_indices(close).map(|(at, _)| at).find(|at| ends(*at))?;
    Some(open.len_utf8() + at + close.len_utf8())
}

struct FrenchScanner<'a> {
    pieces: Vec<FrenchPiece<'a>>,
    /// Whether a sentence starts here.
    first: bool,
}

impl<'a> FrenchScanner<'a> {
    fn mark(&mut self, mark: &'a str) -> usize {
        self.first =
            self.first || mark.contains(['\n', '.', '!', '?', ':', ';', '…', '-', '*', '•', '—', '–']);
        self.pieces.push(FrenchPiece::Mark(mark));
        mark.len()
    }

    fn keep(&mut self, kept: &'a str) -> usize {
        self.first = false;
        self.pieces.push(FrenchPiece::Kept(kept));
        kept.len()
    }

    /// Scans up to the next space or quotation.
    fn chunk(&mut self, text: &'a str) -> usize {
        let first_size = text.chars().next().map_or(0, char::len_utf8);
        let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '«' | '“' | '`');
        let size = text[first_size..].find(ends).map_or(text.len(), |at| first_size + at);
        let chunk = &text[..size];
        let start = chunk.find(opens_core).unwrap_or(size);
        let end = chunk
            .rfind(closes_core)
            .map_or(start, |at| at + chunk[at..].chars().next().map_or(0, char::len_utf8));
        self.marks(&chunk[..start]);
        if start < end {
            self.core(&chunk[start..end]);
        }
        self.marks(&chunk[end.max(start)..]);
        size
    }

    fn marks(&mut self, marks: &'a str) {
        if !marks.is_empty() {
            self.mark(marks);
        }
    }

    fn core(&mut self, core: &'a str) {
        let core = self.elided(core);
        if core.contains('/') && core.len() <= WORD_BYTES && core.split('/').all(is_listed) {
            core.split('/').for_each(|word| self.word(word));
        } else if is_literal(core) || core.len() > WORD_BYTES {
            self.keep(core);
        } else {
            self.letters(core);
        }
    }

    /// Scans an elided word at the start of `core`. Returns the rest.
    fn elided(&mut self, core: &'a str) -> &'a str {
        let Some((before, after)) = split_elision(core) else { return core };
        self.word(before);
        after
    }

    /// Scans words with only punctuation between them.
    fn letters(&mut self, core: &'a str) {
        let mut rest = core;
        while let Some(c) = rest.chars().next() {
            let inside = is_inside_word(c);
            let size = rest.find(|c| is_inside_word(c) != inside).unwrap_or(rest.len());
            let (run, after) = rest.split_at(size);
            if inside {
                self.hyphenated(run);
            } else {
                self.marks(run);
            }
            rest = after;
        }
    }

    /// Splits `peux-tu` into two words, but keeps `rendez-vous` because it is listed, and `x-men` because none of its
    /// parts is.
    fn hyphenated(&mut self, run: &'a str) {
        let is_name = run.split(HYPHENS).filter(|part| part.starts_with(char::is_uppercase)).count() > 1;
        let whole = !run.contains(HYPHENS) || is_name || is_listed(run) || !run.split(HYPHENS).any(is_listed);
        if whole {
            return self.word(run);
        }
        for part in run.split(HYPHENS).filter(|part| !part.is_empty()) {
            match split_elision(part) {
                Some((before, after)) => {
                    self.word(before);
                    self.word(after);
                }
                None => self.word(part),
            }
        }
    }

    fn word(&mut self, written: &'a str) {
        let folded = fold(written);
        let senses = lexicon().senses(&written.to_lowercase().replace('’', "'"), &folded);
        self.pieces.push(FrenchPiece::Word(FrenchWord {
            written,
            folded,
            opens_sentence: self.first,
            senses,
        }));
        self.first = false;
    }
}

const HYPHENS: [char; 2] = ['-', '‑'];

fn is_listed(word: &str) -> bool {
    let senses = lexicon().senses(&word.to_lowercase(), &fold(word));
    senses.plain.is_some() || senses.verb.is_some()
}

/// Start of the part of a chunk without leading punctuation. Slashes, dots and the like belong to it if they can begin
/// a path or a name.
fn opens_core(c: char) -> bool {
    c.is_alphanumeric()
        || matches!(c, '/' | '\\' | '~' | '@' | '#' | '$' | '_' | '<' | '{' | '[' | '+' | '=' | '%' | '&')
}

fn closes_core(c: char) -> bool {
    c.is_alphanumeric()
        || ('\u{0300}'..='\u{036F}').contains(&c)
        || matches!(c, '/' | '\\' | '_' | '>' | '}' | ']' | '+' | '=' | '%' | '€' | '$' | '#' | '°' | '*')
}

fn is_inside_word(c: char) -> bool {
    c.is_alphabetic()
        || ('\u{0300}'..='\u{036F}').contains(&c)
        || matches!(c, '\'' | '’')
        || HYPHENS.contains(&c)
}

/// Whether a chunk is not a word of a language: it has digits, code characters, or a capital inside.
fn is_literal(core: &str) -> bool {
    let sign = |c: char| c.is_numeric() || "_/\\@#=<>{}[].:&%$~+*|^€°".contains(c);
    let camel = || core.chars().zip(core.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    core.contains(sign) || camel()
}
