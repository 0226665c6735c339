//! Scores the words around a value of a request for each parameter.
//!
//! A parameter may be one end of a range (`from` and `to`, `start` and `end`) or measure a quantity. So may a value, by
//! the preposition before it and the unit after it. Agreement counts for the parameter, contradiction against it.

use std::ops::Range;

use super::fields::InputField;

/// Gain when value and parameter agree.
const AGREE: f32 = 0.5;
/// Cost when they contradict each other.
const CONTRADICT: f32 = 0.6;

/// End of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RangeEnd {
    Start,
    Finish,
}

/// Quantity that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuantityKind {
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

/// Score of the context of the value at `at` for `input`; negative when it speaks against it.
pub(super) fn context_score(text: &str, at: &Range<usize>, input: &InputField) -> f32 {
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

/// Whether a word of the parameter's name begins with one of the stems; a short stem must match the whole word.
fn any(input: &InputField, stems: &[&str]) -> bool {
    let is =
        |word: &String| stems.iter().any(|stem| word == stem || (stem.len() > 3 && word.starts_with(stem)));
    input.words.iter().any(is)
}

fn end_meant(input: &InputField) -> Option<RangeEnd> {
    match (any(input, STARTS), any(input, FINISHES)) {
        (true, false) => Some(RangeEnd::Start),
        (false, true) => Some(RangeEnd::Finish),
        _ => None,
    }
}

fn end_of(text: &str, at: &Range<usize>, before: &str) -> Option<RangeEnd> {
    match before {
        "from" | "between" | "since" | "starting" | "depuis" | "entre" => Some(RangeEnd::Start),
        "to" | "until" | "till" | "through" | "into" | "in" | "vers" | "jusqu" => Some(RangeEnd::Finish),
        "and" if tail(&text[..at.start], 60).contains("between ") => Some(RangeEnd::Finish),
        _ => {
            let after = pml_language::byte_prefix(&text[at.end..], 12);
            let after = after.trim_start_matches(['\'', '"', '”', ' ']);
            ["to ", "until ", "through ", "till "]
                .iter()
                .any(|word| after.starts_with(word))
                .then_some(RangeEnd::Start)
        }
    }
}

/// Whether a count is taken from the beginning or from the end.
fn side_meant(input: &InputField) -> Option<RangeEnd> {
    let has = |words: &[&str]| {
        input
            .words
            .iter()
            .map(String::as_str)
            .chain(input.description.iter())
            .any(|word| words.contains(&word))
    };
    match (has(FIRSTS), has(LASTS)) {
        (true, false) => Some(RangeEnd::Start),
        (false, true) => Some(RangeEnd::Finish),
        _ => None,
    }
}

fn side_of(text: &str, at: &Range<usize>, before: &str) -> Option<RangeEnd> {
    let after: String = text[at.end..]
        .trim_start()
        .chars()
        .take_while(|c| c.is_alphabetic())
        .collect::<String>()
        .to_lowercase();
    match (before, after.as_str()) {
        ("first" | "top" | "premiers" | "premières", _) | (_, "first" | "premiers" | "premières") => {
            Some(RangeEnd::Start)
        }
        ("last" | "latest" | "recent" | "newest" | "derniers" | "dernières", _)
        | (_, "last" | "latest" | "newest" | "derniers" | "dernières") => Some(RangeEnd::Finish),
        _ => None,
    }
}

fn measure_meant(input: &InputField) -> Option<QuantityKind> {
    let meant = [(SHARE, QuantityKind::Share), (TIME, QuantityKind::Time), (MONEY, QuantityKind::Money)];
    meant.into_iter().find(|(words, _)| any(input, words)).map(|(_, measure)| measure)
}

fn measure_of(text: &str, at: &Range<usize>) -> Option<QuantityKind> {
    if text[..at.start].ends_with(['$', '€', '£']) {
        return Some(QuantityKind::Money);
    }
    let rest = text[at.end..].trim_start_matches([' ', '-']);
    if rest.starts_with(['%', '€', '$', '£']) {
        return Some(if rest.starts_with('%') { QuantityKind::Share } else { QuantityKind::Money });
    }
    let unit: String = rest.chars().take_while(|c| c.is_alphabetic()).collect::<String>().to_lowercase();
    match unit.trim_end_matches('s') {
        "percent" => Some(QuantityKind::Share),
        "dollar" | "euro" | "usd" | "eur" | "gbp" => Some(QuantityKind::Money),
        "year" | "month" | "week" | "day" | "hour" | "minute" => Some(QuantityKind::Time),
        _ => None,
    }
}

/// Last word of a text, in lower case.
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

    use super::super::fields::{FieldsDefinition, ToolFields};
    use super::*;

    /// Score for each parameter; the value is marked by `<` and `>`.
    fn speaks(marked: &str, parameters: &[&str]) -> Vec<f32> {
        let (start, end) = (marked.find('<').unwrap(), marked.find('>').unwrap() - 1);
        let text = marked.replace(['<', '>'], "");
        let properties: serde_json::Map<_, _> =
            parameters.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        let tool = ToolFields::from_definition(&FieldsDefinition {
            id: "a:b",
            name: "b",
            description: "",
            input_schema: &json!({ "properties": properties }),
            output_schema: None,
        });
        let of = |name: &&str| {
            let input = tool.inputs.iter().find(|input| input.name == **name).unwrap();
            context_score(&text, &(start..end), input)
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
