//! What the words around a value of a request say about which parameter it is meant for.
//!
//! A parameter may be one end of something (`from` and `to`, `start` and `end`), or measure something; so may a value, by the
//! preposition before it and the unit after it. Where both tell and agree, that speaks for the parameter; where they
//! contradict each other, against it.

use std::ops::Range;

use super::fields::Input;
use crate::tokens;

/// What it is worth that value and parameter tell the same, and what it costs that they tell another.
const AGREE: f32 = 0.5;
const CONTRADICT: f32 = 0.6;

/// Which end of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Start,
    Finish,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    Money,
    Share,
    Time,
}

const STARTS: &[&str] = &["from", "start", "begin", "sourc", "origin", "depart", "sinc", "min", "lower"];
const FINISHES: &[&str] = &["to", "end", "target", "destin", "until", "arriv", "max", "upper"];
const MAKERS: &[&str] = &["artist", "author", "singer", "band", "writer", "director", "creator", "compos"];

const MONEY: &[&str] = &[
    "amount",
    "principal",
    "price",
    "cost",
    "salari",
    "incom",
    "revenu",
    "expens",
    "balanc",
    "budget",
    "payment",
    "allowanc",
    "fee",
    "bill",
];
const SHARE: &[&str] = &["rate", "percent", "percentag"];
const TIME: &[&str] = &["term", "period", "durat", "tenur", "year", "month", "week", "day", "hour", "minut"];

const FIRSTS: &[&str] = &["first", "head", "top", "oldest", "earliest"];
const LASTS: &[&str] = &["last", "tail", "latest", "newest", "recent", "bottom"];

/// How much the surroundings of the value at `at` speak for `input`, or against it.
pub(super) fn placed(text: &str, at: &Range<usize>, input: &Input) -> f32 {
    let before = last_word(&text[..at.start]);
    let makes = before == "by" && any(input, MAKERS);
    agreement(end_of(text, at, &before), end_meant(input))
        + agreement(measure_of(text, at), measure_meant(input))
        + agreement(side_of(text, at, &before), side_meant(input))
        + if makes { AGREE } else { 0.0 }
}

fn agreement<T: PartialEq>(value: Option<T>, parameter: Option<T>) -> f32 {
    match (value, parameter) {
        (Some(value), Some(parameter)) if value == parameter => AGREE,
        (Some(_), Some(_)) => -CONTRADICT,
        _ => 0.0,
    }
}

/// Whether a word of the parameter's name begins with one of these; short ones have to be it.
fn any(input: &Input, stems: &[&str]) -> bool {
    let is =
        |word: &String| stems.iter().any(|stem| word == stem || (stem.len() > 3 && word.starts_with(stem)));
    input.words.iter().any(is)
}

fn end_meant(input: &Input) -> Option<End> {
    match (any(input, STARTS), any(input, FINISHES)) {
        (true, false) => Some(End::Start),
        (false, true) => Some(End::Finish),
        _ => None,
    }
}

fn end_of(text: &str, at: &Range<usize>, before: &str) -> Option<End> {
    match before {
        "from" | "between" | "since" | "starting" | "depuis" | "entre" => Some(End::Start),
        "to" | "until" | "till" | "through" | "into" | "in" | "vers" | "jusqu" => Some(End::Finish),
        "and" if tail(&text[..at.start], 60).contains("between ") => Some(End::Finish),
        _ => {
            let after = tokens::beginning(&text[at.end..], 12);
            let after = after.trim_start_matches(['\'', '"', '”', ' ']);
            ["to ", "until ", "through ", "till "]
                .iter()
                .any(|word| after.starts_with(word))
                .then_some(End::Start)
        }
    }
}

/// Whether "so many" are counted from the beginning or from the end.
fn side_meant(input: &Input) -> Option<End> {
    let has = |words: &[&str]| {
        input
            .words
            .iter()
            .map(String::as_str)
            .chain(input.description.iter())
            .any(|word| words.contains(&word))
    };
    match (has(FIRSTS), has(LASTS)) {
        (true, false) => Some(End::Start),
        (false, true) => Some(End::Finish),
        _ => None,
    }
}

fn side_of(text: &str, at: &Range<usize>, before: &str) -> Option<End> {
    let after: String = text[at.end..]
        .trim_start()
        .chars()
        .take_while(|c| c.is_alphabetic())
        .collect::<String>()
        .to_lowercase();
    match (before, after.as_str()) {
        ("first" | "top" | "premiers" | "premières", _) | (_, "first" | "premiers" | "premières") => {
            Some(End::Start)
        }
        ("last" | "latest" | "recent" | "newest" | "derniers" | "dernières", _)
        | (_, "last" | "latest" | "newest" | "derniers" | "dernières") => Some(End::Finish),
        _ => None,
    }
}

fn measure_meant(input: &Input) -> Option<Measure> {
    let meant = [(SHARE, Measure::Share), (TIME, Measure::Time), (MONEY, Measure::Money)];
    meant.into_iter().find(|(words, _)| any(input, words)).map(|(_, measure)| measure)
}

fn measure_of(text: &str, at: &Range<usize>) -> Option<Measure> {
    if text[..at.start].ends_with(['$', '€', '£']) {
        return Some(Measure::Money);
    }
    let rest = text[at.end..].trim_start_matches([' ', '-']);
    if rest.starts_with(['%', '€', '$', '£']) {
        return Some(if rest.starts_with('%') { Measure::Share } else { Measure::Money });
    }
    let unit: String = rest.chars().take_while(|c| c.is_alphabetic()).collect::<String>().to_lowercase();
    match unit.trim_end_matches('s') {
        "percent" => Some(Measure::Share),
        "dollar" | "euro" | "usd" | "eur" | "gbp" => Some(Measure::Money),
        "year" | "month" | "week" | "day" | "hour" | "minute" => Some(Measure::Time),
        _ => None,
    }
}

/// The last word of a text, in lower case.
fn last_word(text: &str) -> String {
    let text = tail(text, 30).trim_end_matches(['\'', '"', '“', ' ']).to_lowercase();
    text.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

fn tail(text: &str, bytes: usize) -> &str {
    let mut from = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fields::{Definition, Tool};
    use super::*;

    /// What speaks for each of the parameters, with the value marked by `<` and `>`.
    fn speaks(marked: &str, parameters: &[&str]) -> Vec<f32> {
        let (start, end) = (marked.find('<').unwrap(), marked.find('>').unwrap() - 1);
        let text = marked.replace(['<', '>'], "");
        let properties: serde_json::Map<_, _> =
            parameters.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        let tool = Tool::read(&Definition {
            id: "a:b",
            name: "b",
            description: "",
            input: &json!({ "properties": properties }),
            output: None,
        });
        let of = |name: &&str| {
            let input = tool.inputs.iter().find(|input| input.name == **name).unwrap();
            placed(&text, &(start..end), input)
        };
        parameters.iter().map(of).collect()
    }

    #[test]
    fn ends_are_told_by_prepositions() {
        let dates = ["start_date", "end_date", "title"];
        assert_eq!(speaks("sales from <2022-01-01> to 2022-12-31", &dates), [0.5, -0.6, 0.0]);
        assert_eq!(speaks("sales for <2022-01-01> to 2022-12-31", &dates), [0.5, -0.6, 0.0]);
        assert_eq!(speaks("sales from 2022-01-01 to <2022-12-31>", &dates), [-0.6, 0.5, 0.0]);
        assert_eq!(speaks("between 2022-01-01 and <2022-12-31>", &dates), [-0.6, 0.5, 0.0]);
        assert_eq!(speaks("translate it to <Spanish>", &["source_language", "target_language"]), [-0.6, 0.5]);
        assert_eq!(speaks("the song 'Happy' by <Pharrell Williams>", &["artist", "title"]), [0.5, 0.0]);
    }

    #[test]
    fn sides_are_told_by_first_and_last() {
        let counted = ["head", "tail", "limit"];
        assert_eq!(speaks("the last <5> lines of a.txt", &counted), [-0.6, 0.5, 0.0]);
        assert_eq!(speaks("the first <5> lines of a.txt", &counted), [0.5, -0.6, 0.0]);
        assert_eq!(speaks("les <5> dernières lignes", &counted), [-0.6, 0.5, 0.0]);
    }

    #[test]
    fn measures_are_told_by_units() {
        let loan = ["loan_amount", "interest_rate", "loan_term", "name"];
        assert_eq!(speaks("a loan of $<10,000> at 5% for 3 years", &loan), [0.5, -0.6, -0.6, 0.0]);
        assert_eq!(speaks("a loan of $10,000 at <5>% for 3 years", &loan), [-0.6, 0.5, -0.6, 0.0]);
        assert_eq!(speaks("a loan of $10,000 at 5% for <3> years", &loan), [-0.6, -0.6, 0.5, 0.0]);
        assert_eq!(speaks("<20> dollars", &loan), [0.5, -0.6, -0.6, 0.0]);
        assert_eq!(speaks("<20> apples", &loan), [0.0; 4]);
    }
}
