//! `match` and `replace`.

use regex::{Captures, Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::MAX_PIECES;
use crate::builtin::tool::{
    BuiltinFailure, BuiltinSpec, MAX_RESULT_BYTES, QuotedName, READS, StopSignal, failure, object_schema,
};

/// The longest pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 4 * 1024;
/// The most memory a compiled pattern may take, in bytes.
const MAX_COMPILED_BYTES: usize = 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TextMatchArguments {
    text: String,
    pattern: String,
    #[serde(default)]
    ignore_case: bool,
    limit: Option<usize>,
}

#[derive(Serialize)]
pub(super) struct TextMatchAnswer {
    matches: Vec<TextMatch>,
    truncated: bool,
}

#[derive(Serialize)]
struct TextMatch {
    text: String,
    start: usize,
    end: usize,
    groups: Vec<Option<String>>,
    named: Map<String, Value>,
}

fn pattern_schema(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": MAX_PATTERN_BYTES, "description": description })
}

pub(super) fn match_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "match",
        title: "Match a pattern",
        description: "Finds every match of a regular expression, with its capture groups. `^` and `$` mean the \
                      whole text unless the pattern starts with `(?m)`; look-around and back-references are not \
                      there.".into(),
        effect: READS,
        input: object_schema(
            json!({
                "text": { "type": "string", "description": "The text to search." },
                "pattern": pattern_schema("Regular expression, such as `(?<year>\\d{4})-(\\d\\d)`."),
                "ignoreCase": { "type": "boolean", "description": "Take upper and lower case as equal; false unless told." },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_PIECES,
                    "description": "Most matches to give; 1000 unless told."
                },
            }),
            &["text", "pattern"],
        ),
        output: object_schema(
            json!({
                "matches": {
                    "type": "array",
                    "description": "The matches in order.",
                    "items": object_schema(
                        json!({
                            "text": { "type": "string", "description": "What matched." },
                            "start": { "type": "integer", "description": "Its first character, from 0." },
                            "end": { "type": "integer", "description": "The character after it." },
                            "groups": {
                                "type": "array",
                                "items": { "type": ["string", "null"] },
                                "description": "The capture groups from the first on; null where one took no part."
                            },
                            "named": {
                                "type": "object",
                                "additionalProperties": { "type": ["string", "null"] },
                                "description": "The named groups."
                            },
                        }),
                        &["text", "start", "end", "groups", "named"],
                    ),
                },
                "truncated": { "type": "boolean", "description": "Whether there are more matches." },
            }),
            &["matches", "truncated"],
        ),
    }
}

pub(super) fn matches(
    arguments: &TextMatchArguments,
    stop: &StopSignal,
) -> Result<TextMatchAnswer, BuiltinFailure> {
    let regex = compile(&arguments.pattern, arguments.ignore_case)?;
    let limit = arguments.limit.unwrap_or(1000).clamp(1, MAX_PIECES);
    let (mut matches, mut positions) = (Vec::new(), CharacterPositions::new(&arguments.text));
    for captures in regex.captures_iter(&arguments.text) {
        stop.check()?;
        if matches.len() == limit {
            return Ok(TextMatchAnswer { matches, truncated: true });
        }
        matches.push(found(&regex, &captures, &mut positions));
    }
    Ok(TextMatchAnswer { matches, truncated: false })
}

fn found(regex: &Regex, captures: &Captures<'_>, positions: &mut CharacterPositions<'_>) -> TextMatch {
    let whole = captures.get_match();
    let text = |group: Option<regex::Match<'_>>| group.map(|group| group.as_str().to_owned());
    TextMatch {
        text: whole.as_str().to_owned(),
        start: positions.character(whole.start()),
        end: positions.character(whole.end()),
        groups: captures.iter().skip(1).map(text).collect(),
        named: regex
            .capture_names()
            .flatten()
            .map(|name| (name.to_owned(), text(captures.name(name)).into()))
            .collect(),
    }
}

/// Converts byte positions, given in rising order, to character positions.
struct CharacterPositions<'a> {
    text: &'a str,
    byte: usize,
    character: usize,
}

impl<'a> CharacterPositions<'a> {
    fn new(text: &'a str) -> CharacterPositions<'a> {
        CharacterPositions { text, byte: 0, character: 0 }
    }

    fn character(&mut self, byte: usize) -> usize {
        self.character += self.text[self.byte..byte].chars().count();
        self.byte = byte;
        self.character
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TextReplaceArguments {
    text: String,
    find: String,
    with: String,
    #[serde(default)]
    regex: bool,
    #[serde(default)]
    ignore_case: bool,
    limit: Option<usize>,
}

#[derive(Serialize)]
pub(super) struct TextReplaceAnswer {
    text: String,
    replaced: usize,
}

pub(super) fn replace_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "replace",
        title: "Replace text",
        description: "Replaces every occurrence of a text, or with `regex` of a regular expression, in which case \
                      `$1` and `${name}` in the replacement stand for capture groups and `$$` for a dollar sign.".into(),
        effect: READS,
        input: object_schema(
            json!({
                "text": { "type": "string", "description": "The text to change." },
                "find": pattern_schema("What to replace."),
                "with": { "type": "string", "description": "What to put there." },
                "regex": { "type": "boolean", "description": "Read `find` as a regular expression; false unless told." },
                "ignoreCase": { "type": "boolean", "description": "Take upper and lower case as equal; false unless told." },
                "limit": { "type": "integer", "minimum": 1, "description": "Most replacements to make; all unless told." },
            }),
            &["text", "find", "with"],
        ),
        output: object_schema(
            json!({
                "text": { "type": "string", "description": "The changed text." },
                "replaced": { "type": "integer", "description": "How many replacements were made." },
            }),
            &["text", "replaced"],
        ),
    }
}

pub(super) fn replace(
    arguments: &TextReplaceArguments,
    stop: &StopSignal,
) -> Result<TextReplaceAnswer, BuiltinFailure> {
    let pattern = if arguments.regex { arguments.find.clone() } else { regex::escape(&arguments.find) };
    let regex = compile(&pattern, arguments.ignore_case)?;
    let (mut text, mut replaced, mut copied) = (String::new(), 0, 0);
    for captures in regex.captures_iter(&arguments.text).take(arguments.limit.unwrap_or(usize::MAX)) {
        stop.check()?;
        let whole = captures.get_match();
        text.push_str(&arguments.text[copied..whole.start()]);
        if arguments.regex {
            captures.expand(&arguments.with, &mut text);
        } else {
            text.push_str(&arguments.with);
        }
        copied = whole.end();
        replaced += 1;
        if text.len() > MAX_RESULT_BYTES {
            return Err(failure!(
                "the changed text would be larger than {MAX_RESULT_BYTES} bytes, which is the limit"
            ));
        }
    }
    text.push_str(&arguments.text[copied..]);
    Ok(TextReplaceAnswer { text, replaced })
}

fn compile(pattern: &str, ignore_case: bool) -> Result<Regex, BuiltinFailure> {
    if pattern.is_empty() {
        return Err(failure!("the pattern is empty; give what to look for"));
    }
    if pattern.len() > MAX_PATTERN_BYTES * 2 {
        return Err(failure!(
            "the pattern is {} bytes; at most {MAX_PATTERN_BYTES} are taken",
            pattern.len()
        ));
    }
    RegexBuilder::new(pattern)
        .case_insensitive(ignore_case)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_COMPILED_BYTES)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => failure!(
                "pattern {} is too large once compiled; at most {MAX_COMPILED_BYTES} bytes are taken, so use \
                 smaller repetitions",
                QuotedName(pattern)
            ),
            error => failure!("pattern {} is no regular expression: {error}", QuotedName(pattern)),
        })
}
