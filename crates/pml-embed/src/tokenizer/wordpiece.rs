//! WordPiece, as BERT has it: words and marks, then the longest pieces that are known.
//!
//! Text is gone through as it comes, so that of a long one only the beginning that counts is touched.

use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::UnicodeNormalization;

use super::vocabulary::Vocabulary;

/// A longer word is unknown, whatever it is made of.
const LONGEST_WORD: usize = 100;

/// What happens to letters before they are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Letters {
    pub(crate) lowercase: bool,
    pub(crate) strip_accents: bool,
    pub(crate) split_chinese: bool,
}

/// Adds the pieces of `text` until there are `limit` of them, or more by the last word.
pub(crate) fn encode(
    text: &str,
    letters: Letters,
    vocabulary: &Vocabulary,
    unknown: u32,
    limit: usize,
    out: &mut Vec<u32>,
) {
    let mut word = Word { text: String::new(), length: 0 };
    each_letter(text, letters, |letter| {
        if letter.is_whitespace() {
            word.finish(vocabulary, unknown, out);
        } else if is_mark(letter) {
            word.finish(vocabulary, unknown, out);
            word.push(letter);
            word.finish(vocabulary, unknown, out);
        } else {
            word.push(letter);
        }
        out.len() < limit
    });
    word.finish(vocabulary, unknown, out);
}

/// Calls `seen` with the letters that are left of `text` after normalisation, as long as it says so.
fn each_letter(text: &str, letters: Letters, mut seen: impl FnMut(char) -> bool) {
    let clean = text
        .chars()
        .filter(|letter| !is_control(*letter))
        .map(|letter| if letter.is_whitespace() { ' ' } else { letter })
        .flat_map(|letter| {
            let alone = letters.split_chinese && is_chinese(letter);
            [alone.then_some(' '), Some(letter), alone.then_some(' ')].into_iter().flatten()
        });
    let mut lower = |letter: char| {
        if letters.lowercase { letter.to_lowercase().all(&mut seen) } else { seen(letter) }
    };
    if letters.strip_accents {
        let accent = |letter: &char| get_general_category(*letter) == GeneralCategory::NonspacingMark;
        clean.nfd().filter(|letter| !accent(letter)).all(&mut lower);
    } else {
        let mut clean = clean;
        clean.all(&mut lower);
    }
}

/// A word as it grows. What is beyond the longest that can be known is counted and not kept.
struct Word {
    text: String,
    length: usize,
}

impl Word {
    fn push(&mut self, letter: char) {
        self.length += 1;
        if self.length <= LONGEST_WORD {
            self.text.push(letter);
        }
    }

    fn finish(&mut self, vocabulary: &Vocabulary, unknown: u32, out: &mut Vec<u32>) {
        let before = out.len();
        if self.length > LONGEST_WORD || !pieces(&self.text, vocabulary, out) {
            out.truncate(before);
            out.push(unknown);
        }
        self.text.clear();
        self.length = 0;
    }
}

/// Adds the pieces of a word: always the longest that fits next. False if there is none.
fn pieces(word: &str, vocabulary: &Vocabulary, out: &mut Vec<u32>) -> bool {
    let mut start = 0;
    while start < word.len() {
        let prefix = if start == 0 { "" } else { "##" };
        let ends = word[start..].char_indices().rev().map(|(at, letter)| start + at + letter.len_utf8());
        let longest =
            ends.filter_map(|end| vocabulary.find(prefix, &word[start..end]).map(|id| (id, end))).next();
        let Some((id, end)) = longest else { return false };
        out.push(id);
        start = end;
    }
    true
}

fn is_control(letter: char) -> bool {
    use GeneralCategory::{Control, Format, PrivateUse};
    match letter {
        '\t' | '\n' | '\r' => false,
        '\0' | '\u{fffd}' => true,
        _ if letter.is_ascii_graphic() => false,
        _ => matches!(get_general_category(letter), Control | Format | PrivateUse),
    }
}

fn is_mark(letter: char) -> bool {
    use GeneralCategory::{
        ClosePunctuation, ConnectorPunctuation, DashPunctuation, FinalPunctuation, InitialPunctuation,
        OpenPunctuation, OtherPunctuation,
    };
    letter.is_ascii_punctuation()
        || !letter.is_ascii()
            && matches!(
                get_general_category(letter),
                ClosePunctuation
                    | ConnectorPunctuation
                    | DashPunctuation
                    | FinalPunctuation
                    | InitialPunctuation
                    | OpenPunctuation
                    | OtherPunctuation
            )
}

/// Ideographs, each of which is a word. Where a block begins is as in the reference, gap included.
fn is_chinese(letter: char) -> bool {
    matches!(letter,
        '\u{4E00}'..='\u{9FFF}' | '\u{3400}'..='\u{4DBF}' | '\u{20000}'..='\u{2A6DF}' | '\u{2A700}'..='\u{2B73F}'
        | '\u{2B740}'..='\u{2B81F}' | '\u{2B920}'..='\u{2CEAF}' | '\u{F900}'..='\u{FAFF}' | '\u{2F800}'..='\u{2FA1F}')
}
