//! Signatures on one line, for lists that a model reads: comments only where a name does not say it, none on outputs,
//! and the names alone of what does not fit.

use pml_model::Definition;
use pml_model::name::truncate_text;
use serde_json::{Map, Value};

use super::{
    SignatureComments, SignatureDetail, TypeLayout, TypeMember, TypePrinter, arguments, one_line,
    qualified_name,
};

/// The longest compact type of arguments, in characters; what is longer loses detail.
const INPUT_CHARS: usize = 260;
/// The longest compact type of a result, in characters. Programs read a field or two of it.
const OUTPUT_CHARS: usize = 110;
/// The longest comment on a parameter, in characters.
const COMMENT_CHARS: usize = 60;
/// The longest list of the names that are left out, in characters.
const NAMES_CHARS: usize = 100;

/// A signature on one line, in two parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactSignature {
    /// The call: `mcp.fs.read(args: { path: string })`.
    pub call: String,
    /// The type of the result; `None` if it is not known.
    pub output: Option<String>,
    /// The number of results that the type was seen in, where the tool does not declare it.
    pub seen_in: Option<u64>,
}

impl std::fmt::Display for CompactSignature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: Promise<{}>", self.call, self.output.as_deref().unwrap_or("unknown"))?;
        self.seen_in.map_or(Ok(()), |results| write!(f, "{}", super::seen_comment(results)))
    }
}

/// The compact declaration of a tool; `seen` is the observed schema of results where the tool declares none.
pub fn compact_signature(
    server: &str,
    identifier: &str,
    definition: &Definition,
    seen: Option<(&Value, u64)>,
) -> CompactSignature {
    let input = serde_json::from_str(definition.input_schema.get()).unwrap_or(Value::Null);
    let declared =
        definition.output_schema.as_ref().map(|raw| serde_json::from_str(raw.get()).unwrap_or(Value::Null));
    CompactSignature {
        call: format!("{}({})", qualified_name(server, identifier), compact_arguments(&input)),
        output: declared.as_ref().or(seen.map(|(schema, _)| schema)).map(compact_output),
        seen_in: seen.filter(|_| declared.is_none()).map(|(_, results)| results),
    }
}

/// The compact declaration of a capability as programs call it.
pub fn compact_capability_signature(name: &str, parameters: &Value) -> CompactSignature {
    CompactSignature {
        call: format!("capabilities.{name}({})", compact_arguments(parameters)),
        output: None,
        seen_in: None,
    }
}

fn compact_arguments(input: &Value) -> String {
    let printed = |depth, comments| {
        arguments(input, SignatureDetail { depth, comments, layout: TypeLayout::Line(INPUT_CHARS) })
    };
    let commented = printed(4, SignatureComments::Shown);
    // What does not fit loses its comments first, then its depth, and in the end its optional members.
    let candidates = [(4, SignatureComments::Omitted), (2, SignatureComments::Omitted)];
    std::iter::once(commented)
        .chain(candidates.into_iter().map(|(depth, comments)| printed(depth, comments)))
        .find(|text| is_whole(text, INPUT_CHARS))
        .unwrap_or_else(|| printed(1, SignatureComments::Omitted))
}

fn compact_output(output: &Value) -> String {
    let printed = |depth| {
        let layout = TypeLayout::Line(OUTPUT_CHARS);
        let detail = SignatureDetail { depth, comments: SignatureComments::Omitted, layout };
        TypePrinter::new(output, detail).root().text
    };
    let whole = [4, 2].into_iter().map(printed).find(|text| is_whole(text, OUTPUT_CHARS));
    whole.unwrap_or_else(|| printed(1))
}

/// Whether nothing was left out of a printed type, and it is short enough.
fn is_whole(text: &str, chars: usize) -> bool {
    text.chars().count() <= chars && !text.contains(LEFT_OUT)
}

/// Begins the names of the members that were left out.
const LEFT_OUT: &str = "/* also ";

/// An object type on one line. If it does not fit, required members come first and the others are only named.
pub(super) fn braces(members: &[TypeMember], chars: usize) -> String {
    let printed = |member: &TypeMember| {
        let comment: Vec<&str> = [&member.description, &member.note]
            .into_iter()
            .map(String::as_str)
            .filter(|s| !s.is_empty())
            .collect();
        match comment.is_empty() {
            true => member.text.clone(),
            false => format!("{} /* {} */", member.text, comment.join(", ")),
        }
    };
    let all: Vec<String> = members.iter().map(printed).collect();
    let size = |text: &str| text.chars().count() + "; ".len();
    if all.iter().map(|text| size(text)).sum::<usize>() <= chars {
        return format!("{{ {} }}", all.join("; "));
    }
    let mut room = chars;
    let mut kept = vec![false; members.len()];
    for wants_required in [true, false] {
        for (at, member) in members.iter().enumerate().filter(|(_, one)| one.is_required == wants_required) {
            let fits = size(&all[at]) <= room;
            // A required argument is never left out: the call would be wrong without it.
            kept[at] = fits || member.is_required && chars == INPUT_CHARS;
            room = room.saturating_sub(if kept[at] { size(&all[at]) } else { 0 });
        }
    }
    let shown: Vec<&str> = (0..all.len()).filter(|at| kept[*at]).map(|at| all[at].as_str()).collect();
    let names: Vec<&str> =
        (0..all.len()).filter(|at| !kept[*at]).map(|at| members[at].name.as_str()).collect();
    if names.is_empty() {
        return format!("{{ {} }}", shown.join("; "));
    }
    let names = truncate_text(&names.join(", "), NAMES_CHARS);
    format!("{{ {}{LEFT_OUT}{names} */ }}", shown.iter().map(|text| format!("{text}; ")).collect::<String>())
}

/// The beginning of a description that says more than the name does; empty if it does not.
pub(super) fn telling_description(name: &str, description: &str) -> String {
    let first = description.split(". ").next().unwrap_or_default().trim_end_matches('.');
    let said = words(name);
    let is_new = |word: &String| {
        !said.iter().any(|known| known.starts_with(word.as_str()) || word.starts_with(known.as_str()))
            && !EMPTY_WORDS.contains(&word.as_str())
    };
    // One word more than the name is rarely worth a comment.
    match words(first).iter().filter(|word| is_new(word)).count() {
        0 | 1 => String::new(),
        _ => truncate_text(first, COMMENT_CHARS),
    }
}

/// The format and the default that a type cannot express.
pub(super) fn note(schema: &Map<String, Value>) -> String {
    let format = schema.get("format").and_then(Value::as_str).map(one_line);
    let default =
        schema.get("default").filter(|value| !is_empty(value)).map(|value| format!("default {value}"));
    let notes = format.into_iter().chain(default).map(|text| truncate_text(&one_line(&text), COMMENT_CHARS));
    notes.collect::<Vec<_>>().join(", ").replace("*/", "* /")
}

/// Whether a default is what anybody expects: nothing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

/// The lower-case words of a name or a text.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in text.chars() {
        if !c.is_alphanumeric() || (was_lower && c.is_uppercase()) {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words.last_mut().into_iter().for_each(|word| word.extend(c.to_lowercase()));
        }
        was_lower = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Words that say nothing about a parameter.
const EMPTY_WORDS: &[&str] = &[
    "a",
    "an",
    "and",
    "any",
    "as",
    "at",
    "be",
    "by",
    "data",
    "field",
    "for",
    "from",
    "given",
    "if",
    "in",
    "input",
    "is",
    "it",
    "its",
    "name",
    "number",
    "object",
    "of",
    "on",
    "one",
    "optional",
    "or",
    "parameter",
    "required",
    "set",
    "string",
    "that",
    "the",
    "this",
    "to",
    "tool",
    "true",
    "use",
    "used",
    "value",
    "whether",
    "which",
    "with",
    "you",
    "your",
];
