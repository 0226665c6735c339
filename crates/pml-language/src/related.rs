//! Everyday words and the words by which tools name the same thing.
//!
//! People say what they want (`remember that …`, `what do you know about …`), and descriptions name what there is (`stores
//! observations in memory`). The pairs are common senses of English words, as in any dictionary; they are no synonyms in
//! the sense of [`vocabulary`](crate::vocabulary): a word is only evidence for the words it is related to, so they help to
//! find something and decide nothing.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::fold::fold;

/// Words in a row, and the words that they are related to.
const RELATED: &[(&[&[&str]], &[&str])] = &[
    (
        &[&["remember"], &["memorise"], &["memorize"], &["keep", "in", "mind"], &["bear", "in", "mind"]],
        &["memory", "store", "save", "add"],
    ),
    (&[&["note", "down"], &["jot", "down"], &["write", "down"]], &["note", "memory", "store", "add"]),
    (
        &[
            &["know", "about"],
            &["known", "about"],
            &["know", "of"],
            &["recall"],
            &["remind", "me", "of"],
            &["told", "you"],
        ],
        &["knowledge", "memory", "search", "information"],
    ),
    (&[&["forget"]], &["memory", "delete", "remove"]),
    (&[&["find", "out"], &["look", "up"], &["look", "for"], &["seek"]], &["search", "query", "lookup"]),
    (&[&["get", "rid"], &["throw", "away"]], &["delete", "remove"]),
    (&[&["how", "many"]], &["count", "number"]),
    (&[&["add", "up"], &["total"], &["altogether"]], &["sum", "statistics"]),
    (&[&["average"]], &["mean", "statistics"]),
    (&[&["how", "far"]], &["distance"]),
    (&[&["how", "long"]], &["duration", "difference", "length"]),
    (&[&["how", "much"], &["cost"], &["costs"], &["expensive"], &["cheap"]], &["price", "amount"]),
    (
        &[
            &["how", "warm"],
            &["how", "cold"],
            &["how", "hot"],
            &["rain"],
            &["sunny"],
            &["snow"],
            &["umbrella"],
        ],
        &["weather", "forecast", "temperature"],
    ),
    (&[&["way", "to"], &["drive", "to"], &["walk", "to"]], &["route", "directions"]),
    (&[&["wake"]], &["alarm"]),
    (&[&["let", "know"], &["inform"]], &["message", "send", "notify"]),
    (&[&["write", "to"], &["drop", "a", "line"]], &["message", "email", "send"]),
    (&[&["picture"], &["pictures"], &["photo"], &["photos"]], &["image"]),
    (&[&["movie"], &["movies"]], &["film", "video"]),
    (&[&["song"], &["songs"]], &["music", "track"]),
    (&[&["buy"], &["shop"]], &["purchase", "order"]),
    (&[&["put", "together"], &["combine"]], &["merge", "join"]),
    (&[&["turn", "into"], &["make", "into"]], &["convert"]),
    (&[&["shrink"], &["make", "smaller"], &["enlarge"], &["make", "bigger"]], &["resize", "compress"]),
    (&[&["what", "time"]], &["time", "clock"]),
    (&[&["what", "day"], &["which", "day"]], &["date", "calendar"]),
    (&[&["meeting"], &["appointment"]], &["calendar", "event"]),
    (&[&["undo"], &["go", "back"]], &["revert", "restore"]),
    (&[&["spell"], &["typo"], &["typos"]], &["spelling", "grammar"]),
    (&[&["folder"], &["folders"]], &["directory"]),
    (&[&["say", "in"], &["in", "french"], &["in", "german"], &["in", "spanish"]], &["translate"]),
];

/// A row of words, and what it is related to.
type RelatedPhrase = (&'static [&'static str], &'static [&'static str]);

/// The rows by their first word.
static BY_FIRST: LazyLock<HashMap<&'static str, Vec<RelatedPhrase>>> = LazyLock::new(|| {
    let mut by_first: HashMap<&str, Vec<RelatedPhrase>> = HashMap::new();
    for (phrases, related) in RELATED {
        for phrase in *phrases {
            by_first.entry(phrase[0]).or_default().push((phrase, related));
        }
    }
    by_first
});

/// The words to which the words of `text` are related, each once.
pub fn related_words(text: &str) -> Vec<&'static str> {
    let folded = fold(text);
    let words: Vec<&str> =
        folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let mut found: Vec<&str> = Vec::new();
    for at in 0..words.len() {
        for (phrase, related) in BY_FIRST.get(words[at]).into_iter().flatten() {
            if words[at..].starts_with(phrase) {
                found.extend(related.iter().filter(|word| !words.contains(word)));
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyday_words_are_related_to_those_of_tools() {
        for (text, expected) in [
            ("Remember that Bob prefers tea", "add memory save store"),
            ("what do you know about Bob?", "information knowledge memory search"),
            ("store it in memory and remember it", "add save"),
            ("read the file", ""),
            ("", ""),
        ] {
            assert_eq!(related_words(text).join(" "), expected, "{text}");
        }
    }
}
