//! Scores a value of a request for each parameter: by its class, by the words around it, and by its unit.
//!
//! A parameter may be one end of a range (`from` and `to`, `start` and `end`) or measure a quantity. So may a value, by
//! the preposition before it and its unit. Agreement counts for the parameter, contradiction against it.

use std::ops::Range;

use pml_language::literals::{IntentLiteral, LiteralClass};
use pml_language::units::Dimension;
use pml_language::vocabulary::{ABOUT, BETWEEN, BY, FOR, FROM, IN, OF, ON, TO};
use pml_language::words::{IntentToken, IntentWord, WordFunction};
use pml_language::{Language, Reading, byte_prefix};

use super::fields::{self, FieldKind, InputField};

/// Gain when value and parameter agree.
const AGREE: f32 = 0.5;
/// Cost when they contradict each other.
const CONTRADICT: f32 = 0.6;

/// Probability from 0 to 1 that a value of this class belongs to the parameter, by its class alone.
pub(super) fn suitability(class: LiteralClass, input: &InputField) -> f32 {
    let has = |words: &[&str]| input.words.iter().any(|word| words.contains(&word.as_str()));
    let dated = has(&["date", "time", "day", "birthdat", "timestamp", "year", "datetim"]);
    let number = input.kind == FieldKind::Number;
    match class {
        _ if input.kind == FieldKind::Boolean => 0.0,
        LiteralClass::Number | LiteralClass::Ordinal if number => 1.0,
        LiteralClass::Number | LiteralClass::Ordinal => 0.3,
        LiteralClass::Date if dated => 1.0,
        _ if number => 0.0,
        LiteralClass::Email if has(&["email", "mail"]) => 1.0,
        LiteralClass::Url | LiteralClass::Host if has(&["url", "uri", "link", "websit"]) => 1.0,
        LiteralClass::Path if has(&["path", "file"]) => 1.0,
        LiteralClass::Zone if has(&["timezon", "zone", "tz"]) => 1.0,
        LiteralClass::Zone => 0.0,
        LiteralClass::Phone if has(&["phone", "number", "mobil"]) => 1.0,
        LiteralClass::Version if has(&["version"]) => 1.0,
        LiteralClass::Channel if has(&["channel"]) => 1.0,
        LiteralClass::Handle if has(&["user", "usernam"]) => 1.0,
        LiteralClass::Path => 0.3,
        LiteralClass::Date | LiteralClass::Email | LiteralClass::Url | LiteralClass::Phone => 0.2,
        _ if dated || has(&["phone", "email", "url"]) => 0.1,
        LiteralClass::Quoted
        | LiteralClass::Name
        | LiteralClass::Host
        | LiteralClass::Id
        | LiteralClass::Version
        | LiteralClass::Channel
        | LiteralClass::Handle => 0.6,
    }
}

/// Share of the parameter's words that stand next to the value: `height of 1.7`, `5 pounds`.
pub(super) fn share_named_nearby(text: &str, at: &Range<usize>, input: &InputField) -> f32 {
    let far = byte_prefix(text, at.start.saturating_sub(45)).len();
    let before = fields::name_words(&text[far..at.start]);
    let after = fields::name_words(byte_prefix(&text[at.end..], 25));
    let before = &before[before.len().saturating_sub(4)..];
    // A preposition starts a new phrase: in `the sentence in French`, French is not the sentence.
    let parts = |word: &String| {
        matches!(word.as_str(), "in" | "into" | "from" | "with" | "by" | "using" | "and" | "to")
            && !input.words.contains(word)
    };
    let before = before.rsplit(parts).next().unwrap_or_default();
    let after = after.split(parts).next().unwrap_or_default();
    let near = |word: &&String| before.contains(word) || after.iter().take(2).any(|other| other == *word);
    #[expect(clippy::cast_precision_loss, reason = "names have few words")]
    let share = input.words.iter().filter(near).count() as f32 / input.words.len().max(1) as f32;
    share
}

/// Whether a preposition stands directly before the value, so that it is not the object of the verb. In a series of
/// values the words before the first one count.
pub(super) fn follows_preposition(
    reading: &Reading<'_>,
    at: &Range<usize>,
    before: Option<(&Range<usize>, bool)>,
) -> bool {
    if let Some((last, aside)) = before
        && matches!(reading.text[last.end..at.start].trim(), "," | "and" | ", and" | "or")
    {
        return aside;
    }
    // `for` and `about` lead to the object as often as not: "the weather for Paris".
    reading.word_before(at.start).is_some_and(|word| match word.function {
        WordFunction::Role(roles) => roles & (FOR | ABOUT) == 0,
        _ => word.concept == "using",
    })
}

/// End of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RangeEnd {
    Start,
    Finish,
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

/// Score of the context of a value for `input`; negative when it speaks against it.
pub(super) fn context_score(reading: &Reading<'_>, value: &IntentLiteral, input: &InputField) -> f32 {
    let makes = roles_of(reading.word_before(value.span.start)) & BY != 0;
    agreement(end_of(reading, &value.span), end_meant(input))
        + agreement(measure_of(value), measure_meant(input))
        + agreement(side_of(reading, &value.span), side_meant(input))
        + if makes && any(input, MAKERS) { AGREE } else { 0.0 }
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

/// The end of a range that the words around the value make it.
fn end_of(reading: &Reading<'_>, at: &Range<usize>) -> Option<RangeEnd> {
    let (before, after) = (reading.word_before(at.start), reading.word_after(at.end));
    let concept = before.map_or("", |word| word.concept.as_str());
    let leads = |roles: u16| roles & TO != 0 || (roles & IN != 0 && roles & ON == 0);
    match roles_of(before) {
        // "De" also stands before what is no range: "un virement de 300 euros".
        of if of & OF != 0 => {
            let range = reading.language == Language::French && roles_of(after) & TO != 0;
            return range.then_some(RangeEnd::Start);
        }
        start if start & (FROM | BETWEEN) != 0 => return Some(RangeEnd::Start),
        finish if leads(finish) => return Some(RangeEnd::Finish),
        _ => {}
    }
    match concept {
        "since" | "starting" => Some(RangeEnd::Start),
        "until" | "till" | "through" | "jusqu" => Some(RangeEnd::Finish),
        "and" if follows_between(reading, at) => Some(RangeEnd::Finish),
        _ => {
            let on = after.is_some_and(|word| ["until", "through", "till"].contains(&word.concept.as_str()));
            (on || roles_of(after) & TO != 0).then_some(RangeEnd::Start)
        }
    }
}

/// The relations that a word expresses, as bits.
fn roles_of(word: Option<&IntentWord>) -> u16 {
    match word.map(|word| word.function) {
        Some(WordFunction::Role(roles)) => roles,
        _ => 0,
    }
}

/// Whether the value is the second of two after "between".
fn follows_between(reading: &Reading<'_>, at: &Range<usize>) -> bool {
    // "between", the first value and "and": a value in words may be several.
    let nearby = reading.tokens_before(at.start).iter().rev().take(6);
    nearby
        .into_iter()
        .any(|token| matches!(token, IntentToken::Word(word) if roles_of(Some(word)) & BETWEEN != 0))
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

fn side_of(reading: &Reading<'_>, at: &Range<usize>) -> Option<RangeEnd> {
    let beside = [reading.word_before(at.start), reading.word_after(at.end)];
    beside.into_iter().flatten().find_map(|word| match word.concept.as_str() {
        "first" | "top" => Some(RangeEnd::Start),
        "last" | "recent" | "newest" => Some(RangeEnd::Finish),
        _ => None,
    })
}

fn measure_meant(input: &InputField) -> Option<Dimension> {
    let meant = [(SHARE, Dimension::Share), (TIME, Dimension::Time), (MONEY, Dimension::Money)];
    meant.into_iter().find(|(words, _)| any(input, words)).map(|(_, measure)| measure)
}

/// The quantity that the value's unit makes it, where parameters are known to measure it.
fn measure_of(value: &IntentLiteral) -> Option<Dimension> {
    let dimension = value.measured_in?.dimension;
    matches!(dimension, Dimension::Money | Dimension::Share | Dimension::Time).then_some(dimension)
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
        let reading = Reading::of(&text);
        let marked = start..end;
        let value = reading
            .values
            .iter()
            .find(|value| value.span.start <= marked.start && marked.end <= value.span.end)
            .unwrap();
        let of = |name: &&str| {
            let input = tool.inputs.iter().find(|input| input.name == **name).unwrap();
            context_score(&reading, value, input)
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
        let trip = ["origin", "destination"];
        assert_eq!(speaks("réserve un train de <Paris> à Lyon pour demain", &trip), [0.5, -0.6]);
        assert_eq!(speaks("réserve un train de Paris à <Lyon> pour demain", &trip), [-0.6, 0.5]);
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
