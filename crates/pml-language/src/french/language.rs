//! Language detection: whether a text is French.
//!
//! Function words distinguish languages best; words of the lexicon help where a request has none. Words of other
//! languages count against French, and words that English has too do not count.

use super::lexicon::{PartOfSpeech, lexicon};
use super::scan::{self, FrenchPiece, FrenchWord};

/// Maximum number of words read: enough to detect the language.
const WORDS_READ: usize = 300;

/// Weight of a function word, where a word of the lexicon has weight 1.
const TELLING: u32 = 2;

/// Whether most of the text is French.
pub(super) fn is_french(pieces: &[FrenchPiece<'_>]) -> bool {
    let shouted = scan::is_all_capitals(pieces);
    let words = pieces.iter().filter_map(|piece| match piece {
        FrenchPiece::Word(word) => Some(word),
        FrenchPiece::Kept(_) | FrenchPiece::Mark(_) => None,
    });
    let (mut telling, mut weak, mut listed, mut foreign, mut unknown) = (0, 0, 0, 0, 0);
    for word in words.take(WORDS_READ) {
        let folded = word.folded.as_str();
        let named = word.is_capitalised_name() && !shouted;
        let small = word.senses.plain.is_some_and(|entry| entry.kind == PartOfSpeech::Small);
        match () {
            () if FRENCH.binary_search(&folded).is_ok() => telling += 1,
            () if WEAK.contains(&folded) => weak += 1,
            () if FOREIGN.binary_search(&folded).is_ok() => foreign += 1,
            () if !named && is_french_word(word) => listed += 1,
            () if small || named => {}
            () => unknown += 1,
        }
    }
    let french = TELLING * telling + weak + listed;
    // Without function words, most of the others must be French: "météo demain", not "chat message".
    let enough = if telling > 0 {
        french > TELLING && french * 2 >= unknown
    } else {
        listed > 0 && listed + weak >= unknown
    };
    enough && french > TELLING * foreign
}

fn is_french_word(word: &FrenchWord<'_>) -> bool {
    let known =
        word.senses.plain.is_some_and(|entry| entry.kind != PartOfSpeech::Small || word.senses.is_exact)
            || word.senses.verb.is_some();
    known && word.folded.len() > 2 && !lexicon().is_english(&word.folded)
}

/// French function words that English and neighbouring languages do not have. Sorted, in folded form.
#[rustfmt::skip]
const FRENCH: &[&str] = &[
    "afin", "ainsi", "apres", "au", "aujourd'hui", "aupres", "aux", "avec", "avez", "avons", "beaucoup",
    "bonjour", "ceci", "cela", "celle", "celui", "ces", "cet", "cette", "chaque", "chez", "combien",
    "dans", "depuis", "des", "donc", "du", "elle", "elles", "est", "etaient", "etait", "etre", "faire",
    "fais", "faites", "faut", "ils", "j", "je", "jusqu", "lequel", "les", "leur", "leurs", "lorsque",
    "mais", "merci", "mes", "moi", "nos", "notre", "nous", "ont", "ou", "parce", "peut", "peux",
    "plait", "plusieurs", "pourquoi", "pourrais", "pouvez", "puis", "qu", "quand", "quel", "quelle",
    "quelles", "quelque", "quelques", "quels", "qui", "quoi", "sans", "ses", "sont", "sous", "suis",
    "tes", "toi", "tous", "toute", "toutes", "tres", "une", "veux", "voici", "vos", "votre", "voudrais",
    "vous",
];

/// French function words that other languages have too.
const WEAK: [&str; 18] = [
    "de", "d", "en", "et", "il", "l", "la", "le", "ma", "me", "mon", "par", "plus", "pour", "que", "sur",
    "tout", "un",
];

/// Function words of English, Spanish, Italian, Portuguese, Catalan, German, Dutch and Romanian that French does not
/// have. Sorted, in folded form.
#[rustfmt::skip]
const FOREIGN: &[&str] = &[
    "about", "al", "all", "als", "am", "amb", "an", "and", "any", "are", "auf", "aus", "be", "been",
    "bei", "between", "bir", "bitte", "but", "by", "can", "che", "ciao", "com", "como", "con", "cosa",
    "could", "cu", "cual", "da", "dal", "dalla", "das", "dat", "degli", "dei", "deine", "del", "dell",
    "della", "delle", "dels", "dem", "den", "der", "deze", "di", "die", "din", "do", "does", "dos", "e",
    "each", "een", "ein", "eine", "einem", "einen", "einer", "el", "els", "em", "es", "esta", "este",
    "estoy", "find", "for", "from", "fur", "get", "gli", "grazie", "had", "has", "have", "help", "het",
    "hola", "how", "hoy", "i", "ich", "if", "ik", "im", "in", "into", "io", "is", "ist", "it", "its",
    "ja", "kannst", "know", "las", "lo", "los", "mein", "meine", "meu", "mi", "mia", "mijn", "minha",
    "mio", "mir", "mit", "my", "na", "naar", "nach", "nao", "need", "nel", "nella", "nicht", "no",
    "not", "o", "of", "oggi", "op", "os", "our", "para", "per", "please", "por", "puedes", "puoi",
    "qual", "quale", "quali", "quero", "quiero", "quin", "sau", "sein", "should", "show", "sich",
    "sono", "su", "sus", "than", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "through", "to", "um", "uma", "una", "und", "unos", "us", "using", "van", "vom", "von",
    "voor", "vorrei", "vreau", "was", "wat", "we", "were", "what", "when", "where", "which", "who",
    "why", "wie", "will", "with", "would", "you", "your", "zu", "zum", "zur",
];
