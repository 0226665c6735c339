//! `split`, `join`, `slice`, `case`, `diff` and `count`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use super::MAX_PIECES;
use crate::builtin::tool::{
    BuiltinFailure, BuiltinSpec, MAX_RESULT_BYTES, READS, StopSignal, failure, object_schema,
};

/// The largest number of lines compared: the work grows with the product of lines and differences.
const MAX_DIFF_LINES: usize = 20_000;

fn text_schema(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TextSplitArguments {
    text: String,
    separator: String,
    #[serde(default)]
    trim: bool,
}

#[derive(Serialize)]
pub(super) struct TextSplitAnswer {
    parts: Vec<String>,
}

pub(super) fn split_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "split",
        title: "Split text",
        description:
            "Splits text at every occurrence of a separator; at every character when the separator is \
                      empty. With `trim`, white space around the parts and empty parts are dropped."
                .into(),
        effect: READS,
        input: object_schema(
            json!({
                "text": text_schema("The text to split."),
                "separator": text_schema("What stands between the parts, such as `,` or a line break."),
                "trim": { "type": "boolean", "description": "Trim parts and drop empty ones; false unless told." },
            }),
            &["text", "separator"],
        ),
        output: object_schema(
            json!({ "parts": { "type": "array", "items": { "type": "string" }, "description": "The parts in order." } }),
            &["parts"],
        ),
    }
}

pub(super) fn split(
    arguments: &TextSplitArguments,
    _: &StopSignal,
) -> Result<TextSplitAnswer, BuiltinFailure> {
    let pieces: Box<dyn Iterator<Item = String>> = if arguments.separator.is_empty() {
        Box::new(arguments.text.chars().map(String::from))
    } else {
        Box::new(arguments.text.split(&arguments.separator).map(ToOwned::to_owned))
    };
    let kept = pieces.filter_map(|part| match arguments.trim {
        true => Some(part.trim().to_owned()).filter(|part| !part.is_empty()),
        false => Some(part),
    });
    let parts: Vec<String> = kept.take(MAX_PIECES + 1).collect();
    if parts.len() > MAX_PIECES {
        return Err(failure!("the text has more than {MAX_PIECES} parts; split a part of it"));
    }
    Ok(TextSplitAnswer { parts })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TextJoinArguments {
    parts: Vec<String>,
    #[serde(default)]
    separator: String,
}

#[derive(Serialize)]
pub(super) struct TextAnswer {
    text: String,
}

fn text_answer(description: &str) -> Value {
    object_schema(json!({ "text": text_schema(description) }), &["text"])
}

pub(super) fn join_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "join",
        title: "Join text",
        description: "Joins parts into one text with a separator between them.".into(),
        effect: READS,
        input: object_schema(
            json!({
                "parts": { "type": "array", "items": { "type": "string" }, "description": "The parts in order." },
                "separator": text_schema("What to put between them; nothing unless told."),
            }),
            &["parts"],
        ),
        output: text_answer("The joined text."),
    }
}

pub(super) fn join(arguments: &TextJoinArguments, _: &StopSignal) -> Result<TextAnswer, BuiltinFailure> {
    let parts: usize = arguments.parts.iter().map(String::len).sum();
    let size_bytes = parts + arguments.separator.len() * arguments.parts.len().saturating_sub(1);
    if size_bytes > MAX_RESULT_BYTES {
        return Err(failure!(
            "the joined text would be {size_bytes} bytes; at most {MAX_RESULT_BYTES} are given"
        ));
    }
    Ok(TextAnswer { text: arguments.parts.join(&arguments.separator) })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TextSliceArguments {
    text: String,
    #[serde(default)]
    start: i64,
    end: Option<i64>,
}

pub(super) fn slice_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "slice",
        title: "Cut out text",
        description:
            "Gives the characters from `start` up to but not including `end`. Negative positions count \
                      from the end of the text."
                .into(),
        effect: READS,
        input: object_schema(
            json!({
                "text": text_schema("The text to cut from."),
                "start": { "type": "integer", "description": "First character, from 0; 0 unless told." },
                "end": { "type": "integer", "description": "Character to stop before; the end of the text unless told." },
            }),
            &["text"],
        ),
        output: text_answer("The characters in between; empty when there are none."),
    }
}

pub(super) fn slice(arguments: &TextSliceArguments, _: &StopSignal) -> Result<TextAnswer, BuiltinFailure> {
    let length = i64::try_from(arguments.text.chars().count()).unwrap_or(i64::MAX);
    let place = |at: i64| if at < 0 { length.saturating_add(at).max(0) } else { at.min(length) };
    let (start, end) = (place(arguments.start), arguments.end.map_or(length, place));
    let [skipped, taken] = [start, (end - start).max(0)].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    Ok(TextAnswer { text: arguments.text.chars().skip(skipped).take(taken).collect() })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TextCaseArguments {
    text: String,
    to: TextCase,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum TextCase {
    Upper,
    Lower,
    Title,
    Camel,
    Snake,
    Kebab,
}

pub(super) fn case_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "case",
        title: "Change case",
        description:
            "Writes text in upper, lower or title case, or as an identifier: `camelCase`, `snake_case`, \
                      `kebab-case`."
                .into(),
        effect: READS,
        input: object_schema(
            json!({
                "text": text_schema("The text to change."),
                "to": {
                    "type": "string",
                    "enum": ["upper", "lower", "title", "camel", "snake", "kebab"],
                    "description": "The form to give it."
                },
            }),
            &["text", "to"],
        ),
        output: text_answer("The text in that form."),
    }
}

pub(super) fn case(arguments: &TextCaseArguments, _: &StopSignal) -> Result<TextAnswer, BuiltinFailure> {
    let text = &arguments.text;
    let text = match arguments.to {
        TextCase::Upper => text.to_uppercase(),
        TextCase::Lower => text.to_lowercase(),
        TextCase::Title => title(text),
        TextCase::Camel => camel(&words(text)),
        TextCase::Snake => words(text).join("_"),
        TextCase::Kebab => words(text).join("-"),
    };
    Ok(TextAnswer { text })
}

fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside_word = false;
    for c in text.chars() {
        if inside_word {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
        inside_word = c.is_alphanumeric() || (inside_word && c == '\'');
    }
    out
}

fn camel(words: &[String]) -> String {
    words
        .iter()
        .enumerate()
        .map(|(index, word)| if index == 0 { word.clone() } else { title(word) })
        .collect()
}

/// The words of a sentence or an identifier, in lower case: `getHTTPStatus` is `get`, `http`, `status`.
fn words(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let (mut words, mut word) = (Vec::new(), String::new());
    for (index, &c) in characters.iter().enumerate() {
        let previous = index.checked_sub(1).map(|before| characters[before]);
        let next_is_lower = characters.get(index + 1).is_some_and(|next| next.is_lowercase());
        let starts_word = c.is_uppercase()
            && previous
                .is_some_and(|p| p.is_lowercase() || p.is_numeric() || (p.is_uppercase() && next_is_lower));
        if (starts_word || !c.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TextDiffArguments {
    before: String,
    after: String,
    context: Option<usize>,
}

#[derive(Serialize)]
pub(super) struct TextDiffAnswer {
    diff: String,
    added: usize,
    removed: usize,
}

pub(super) fn diff_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "diff",
        title: "Compare texts",
        description:
            "Compares two texts line by line and gives a unified diff; empty when they are equal. At most \
                      20,000 lines each."
                .into(),
        effect: READS,
        input: object_schema(
            json!({
                "before": text_schema("The old text."),
                "after": text_schema("The new text."),
                "context": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": 100,
                    "description": "Equal lines to show around each change; 3 unless told."
                },
            }),
            &["before", "after"],
        ),
        output: object_schema(
            json!({
                "diff": text_schema("The unified diff."),
                "added": { "type": "integer", "description": "Lines that are only in `after`." },
                "removed": { "type": "integer", "description": "Lines that are only in `before`." },
            }),
            &["diff", "added", "removed"],
        ),
    }
}

pub(super) fn diff(arguments: &TextDiffArguments, _: &StopSignal) -> Result<TextDiffAnswer, BuiltinFailure> {
    for (name, text) in [("before", &arguments.before), ("after", &arguments.after)] {
        let lines = text.lines().count();
        if lines > MAX_DIFF_LINES {
            return Err(failure!("`{name}` has {lines} lines; at most {MAX_DIFF_LINES} are compared"));
        }
    }
    let diff = TextDiff::from_lines(arguments.before.as_str(), arguments.after.as_str());
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    Ok(TextDiffAnswer {
        added: count(ChangeTag::Insert),
        removed: count(ChangeTag::Delete),
        diff: diff.unified_diff().context_radius(arguments.context.unwrap_or(3).min(100)).to_string(),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TextCountArguments {
    text: String,
}

#[derive(Serialize)]
pub(super) struct TextCountAnswer {
    characters: usize,
    words: usize,
    lines: usize,
    bytes: usize,
}

pub(super) fn count_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "count",
        title: "Count text",
        description: "Counts the characters, words, lines and UTF-8 bytes of a text.".into(),
        effect: READS,
        input: object_schema(json!({ "text": text_schema("The text to count.") }), &["text"]),
        output: object_schema(
            json!({
                "characters": { "type": "integer", "description": "Unicode characters." },
                "words": { "type": "integer", "description": "Runs of characters that are not white space." },
                "lines": { "type": "integer", "description": "Lines; a line break at the end starts no new one." },
                "bytes": { "type": "integer", "description": "Bytes in UTF-8." },
            }),
            &["characters", "words", "lines", "bytes"],
        ),
    }
}

pub(super) fn count(
    arguments: &TextCountArguments,
    _: &StopSignal,
) -> Result<TextCountAnswer, BuiltinFailure> {
    let text = &arguments.text;
    Ok(TextCountAnswer {
        characters: text.chars().count(),
        words: text.split_whitespace().count(),
        lines: text.lines().count(),
        bytes: text.len(),
    })
}
