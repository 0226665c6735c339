//! Tokenises text into the terms that ranking compares.
//!
//! Names of tools are written in many ways (`readFile`, `read_file`, `Read files`), so words are split where a reader
//! would split them, folded to lower case without accents, and reduced to an English stem. Scripts without spaces
//! become pairs of characters. Stop words are left out. This module does not know documents or scores.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::char::decompose_compatible;

/// A word of a text with its term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token<'a> {
    /// The whole run as written: `readFile` for the word `File`.
    pub written: &'a str,
    /// Term for comparison.
    pub term: String,
    /// Whether it joins two words, which are also given separately just before it.
    pub compound: bool,
}

/// A word found in a text.
pub(crate) struct SplitWord<'a> {
    /// The run of letters it is part of.
    pub(crate) written: &'a str,
    /// The word itself.
    pub(crate) text: &'a str,
    /// As in [`Token`].
    pub(crate) compound: bool,
}

/// The tokens of `text` in order, without stop words.
pub fn tokenize(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut folded = String::new();
    for_each_word(text, |word| {
        fold_word(word.text, &mut folded);
        if let Some(term) = stem_word(&folded) {
            found.push(Token { written: word.written, term: term.into_owned(), compound: word.compound });
        }
    });
    found
}

/// Term of a folded word; `None` for a stop word.
pub(crate) fn stem_word(folded: &str) -> Option<Cow<'_, str>> {
    if folded.is_empty() || STOP_WORDS.binary_search(&folded).is_ok() {
        return None;
    }
    // The stemmer is for English and must not be applied to words of other alphabets.
    if folded.len() < 3 || !folded.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Some(Cow::Borrowed(folded));
    }
    Some(Stemmer::create(Algorithm::English).stem(folded))
}

/// Appends `word` to `out` in lower case and without accents.
pub(crate) fn fold_word(word: &str, out: &mut String) {
    out.clear();
    for c in word.chars() {
        if c.is_ascii() {
            out.push(c.to_ascii_lowercase());
        } else if unspaced(c) {
            // Decomposition would split the syllables of these scripts.
            out.push(c);
        } else {
            decompose_compatible(c, |part| {
                if !is_accent(part) {
                    out.extend(part.to_lowercase().filter(|lower| !is_accent(*lower)));
                }
            });
        }
    }
}

fn is_accent(c: char) -> bool {
    matches!(c, '\u{0300}'..='\u{036F}')
}

/// Calls `each` with every word of `text` in order: runs of letters and digits, split where case shows a new word, and
/// overlapping pairs in scripts without spaces.
pub(crate) fn for_each_word<'a>(text: &'a str, mut each: impl FnMut(SplitWord<'a>)) {
    let mut rest = text;
    while let Some(start) = rest.find(is_word_character) {
        rest = &rest[start..];
        let pairs = rest.starts_with(unspaced);
        let end = rest.find(|c| !is_word_character(c) || unspaced(c) != pairs).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        if pairs {
            each_pair(run, &mut each);
        } else {
            each_cased(run, &mut each);
        }
        rest = after;
    }
}

/// Letters, digits, and combining marks.
fn is_word_character(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_alphanumeric() } else { c.is_alphanumeric() || is_accent(c) }
}

/// Scripts without spaces between words, or (Hangul) with grammar at the end of words.
fn unspaced(c: char) -> bool {
    matches!(c,
        '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}'
        | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}')
}

fn each_pair<'a>(run: &'a str, each: &mut impl FnMut(SplitWord<'a>)) {
    let mut pair = |text| each(SplitWord { written: text, text, compound: false });
    let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
    if starts.len() == 2 {
        pair(run);
    }
    for window in starts.windows(3) {
        pair(&run[window[0]..window[2]]);
    }
}

/// Splits `readFile` and `HTTPServer` into words, and keeps `URLs`, `utf8` and `3D` whole. Two words are also given
/// joined, because names such as `GitHub` are written in one case as well.
fn each_cased<'a>(run: &'a str, each: &mut impl FnMut(SplitWord<'a>)) {
    let (mut from, mut cuts) = (0, 0);
    let mut before = None;
    for (at, c) in run.char_indices() {
        if before.is_some_and(|before| starts_word(before, c, &run[at + c.len_utf8()..])) {
            each(SplitWord { written: run, text: &run[from..at], compound: false });
            (from, cuts) = (at, cuts + 1);
        }
        before = Some(c);
    }
    each(SplitWord { written: run, text: &run[from..], compound: false });
    if cuts == 1 {
        each(SplitWord { written: run, text: run, compound: true });
    }
}

/// Appends the words of a name such as `readFile` or `read_file` to `out`, separated by spaces.
pub(crate) fn spell_out(name: &str, out: &mut String) {
    let mut before = None;
    for (at, c) in name.char_indices() {
        let starts = before.is_none_or(|before| starts_word(before, c, &name[at + c.len_utf8()..]));
        if is_word_character(c) {
            if starts && !out.is_empty() {
                out.push(' ');
            }
            out.push(c);
        }
        before = is_word_character(c).then_some(c);
    }
}

fn starts_word(before: char, c: char, after: &str) -> bool {
    let lower_follows = after.chars().next().is_some_and(char::is_lowercase);
    c.is_uppercase() && (before.is_lowercase() || (lower_follows && !is_plural(after)))
}

/// Whether only the plural `s` of an acronym follows a capital, as in `URLs` or `IDsOnly`.
fn is_plural(after: &str) -> bool {
    let mut characters = after.chars();
    characters.next() == Some('s') && !characters.next().is_some_and(char::is_lowercase)
}

/// Stop words: function words of English and French, and the words that every request contains. French words that mean
/// something in English (`car`, `note`, `date`) are not among them. Sorted, in folded form.
#[rustfmt::skip]
const STOP_WORDS: &[&str] = &[
    "a", "able", "about", "above", "after", "again", "ai", "aimerais", "ain", "all", "allow", "allows",
    "also", "am", "an", "and", "any", "anything", "are", "aren", "as", "assist", "at", "au", "aux", "avec",
    "avez", "avons", "be", "because", "been", "before", "being", "below", "between", "bonjour", "both",
    "but", "by", "can", "cannot", "ce", "ceci", "cela", "ces", "cet", "cette", "chaque", "chez", "comme",
    "comment", "could", "couldn", "curious", "currently", "d", "dans", "de", "des", "did", "didn", "do",
    "does", "doesn", "doing", "don", "donc", "done", "du", "during", "each", "either", "elle", "elles",
    "else", "en", "entre", "est", "et", "etait", "etc", "etes", "etre", "eux", "ever", "every", "faire",
    "fait", "few", "find", "finding", "finds", "for", "from", "further",
    "get", "gets", "getting", "give", "gives", "giving", "got", "had", "hadn", "has", "hasn", "have",
    "haven", "having", "he", "hello", "help", "helping", "helps", "her", "here", "hers", "hey", "hi", "him",
    "his", "how", "however", "i", "if", "il", "ils", "in", "interested", "into", "is", "isn", "it", "its",
    "itself", "j", "je", "just", "kindly", "know", "knows", "l", "la", "le", "les", "let", "lets", "leur",
    "leurs", "like", "ll", "look", "looking", "lui", "m", "ma", "mais", "me",
    "meme", "merci", "mes", "might", "mine", "moi", "mon", "more", "most", "much", "must", "mustn", "my",
    "myself", "n", "ne", "need", "needed", "needs", "neither", "no", "nor", "nos", "not", "notre", "nous",
    "of", "off", "on", "once", "only", "ont", "onto", "or", "other", "ou", "our", "ours", "out", "over",
    "own", "par", "parce", "pas", "per", "peut", "peux", "plait", "please", "possible", "pour", "pourquoi",
    "provide", "provided", "provides", "providing", "qu", "quand", "que", "quel", "quelle", "quelles",
    "quels", "qui", "quoi", "rather", "re", "really", "return", "returned",
    "returns", "s", "sa", "same", "sans", "se", "ses", "she", "should", "shouldn", "show", "showing",
    "shows", "si", "since", "so", "soit", "some", "son", "sont", "sous", "specific", "such", "sur", "sure",
    "svp", "t", "ta", "te", "tell", "telling", "tells", "tes", "than", "thank", "thanks", "that", "the",
    "their", "theirs", "them", "then", "there", "these", "they", "this", "those", "through", "thus", "to",
    "toi", "ton", "too", "tous", "tout", "toute", "toutes", "tres", "tu", "un", "under", "une", "until",
    "up", "upon", "us", "use", "used", "uses", "using", "various", "ve", "vers", "very", "veut", "veux",
    "via", "voici", "voila", "vos", "votre", "voudrais", "vouloir", "vous", "want", "wanted", "wanting",
    "wants", "was", "wasn", "we", "were", "weren", "what", "whatever", "when", "where", "whether", "which",
    "while", "who", "whom", "whose", "why", "will", "wish", "with", "within", "without", "won", "would",
    "wouldn", "y", "yes", "yet", "you", "your", "yours", "yourself",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> String {
        tokenize(text).into_iter().map(|token| token.term).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_are_split_folded_stemmed_and_stopped() {
        for (text, expected) in [
            ("read_file", "read file"),
            ("readFile", "read file readfil"),
            ("parseHTTPResponse", "pars http respons"),
            ("URLs and IDs", "url id"),
            ("utf8-base64Encode 3D", "utf8 base64 encod base64encode 3d"),
            ("Reading the files, please!", "read file"),
            ("Could you get me the weather?", "weather"),
            ("Traduire l'image dans une réponse française", "traduir imag repons francais"),
            ("e\u{301}te\u{301} ÉTÉ", "ete ete"),
            ("搜索关键词", "搜索 索关 关键 键词"),
            ("が 한국어", "が 한국 국어"),
            ("必应search结果", "必应 search 结果"),
            ("Ｆｕｌｌ width", "full width"),
            ("Поиск ФАЙЛОВ", "поиск фаилов"),
            ("🙂 -- \u{200b}", ""),
        ] {
            assert_eq!(terms(text), expected, "{text}");
        }
    }

    #[test]
    fn tokens_know_what_was_written() {
        let written: Vec<&str> =
            tokenize("open GitHub Issues").into_iter().map(|token| token.written).collect();
        assert_eq!(written, ["open", "GitHub", "GitHub", "GitHub", "Issues"]);
    }

    #[test]
    fn the_stop_list_can_be_searched() {
        assert!(STOP_WORDS.is_sorted());
    }
}
