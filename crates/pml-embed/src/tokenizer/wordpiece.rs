//! WordPiece, as in BERT: splits text into words and punctuation, then each word into the longest known pieces.
//!
//! The text is processed as a stream, so that only the beginning of a long text is touched.

use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::UnicodeNormalization;

use super::vocabulary::Vocabulary;

/// Maximum length of a word in characters; a longer word becomes the unknown token.
const LONGEST_WORD: usize = 100;

/// Normalisation of characters before the lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct LetterRules {
    pub(crate) lowercase: bool,
    pub(crate) strip_accents: bool,
    pub(crate) split_chinese: bool,
}

/// Appends the pieces of `text` until there are at least `limit`; the last word is completed.
pub(crate) fn encode(
    text: &str,
    letters: LetterRules,
    vocabulary: &Vocabulary,
    unknown: u32,
    limit: usize,
    out: &mut Vec<u32>,
) {
    let mut word = WordBuffer { text: String::new(), length: 0 };
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

/// Calls `seen` with each character of the normalised `text`, as long as it returns true.
fn each_letter(text: &str, letters: LetterRules, mut seen: impl FnMut(char) -> bool) {
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

/// The current word. Characters beyond the maximum length are counted and not stored.
struct WordBuffer {
    text: String,
    length: usize,
}

impl WordBuffer {
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

/// Appends the pieces of a word, always the longest match. Returns false when there is none.
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

/// Ideographs, each of which is a word. The block boundaries, including a gap, are those of the reference
/// implementation.
fn is_chinese(letter: char) -> bool {
    matches!(letter,
        '\u{4E00}'..='\u{9FFF}' | '\u{3400}'..='\u{4DBF}' | '\u{20000}'..='\u{2A6DF}' | '\u{2A700}'..='\u{2B73F}'
        | '\u{2B740}'..='\u{2B81F}' | '\u{2B920}'..='\u{2CEAF}' | '\u{F900}'..='\u{FAFF}' | '\u{2F800}'..='\u{2FA1F}')
}
