//! Converts a literal or words into the value of a parameter, in the form of its earlier value.
//!
//! Nothing is guessed. There is no value where it is unclear how the earlier value was derived from its text, or
//! where the new value does not fit the schema.

use serde_json::Value;

use super::fold::fold;
use super::literals::{IntentLiteral, LiteralClass};
use super::vocabulary as table;
use super::words;
use super::{dates, kinds};

/// Whether `literal` means `value`.
pub(super) fn says(literal: &IntentLiteral, value: &Value) -> bool {
    match value {
        Value::String(text) => {
            literal.text == *text
                || literal.bare() == text
                || literal.value.as_str() == Some(text)
                || (loose(literal.class)
                    && (same_case(&literal.text, text) || same_case(literal.bare(), text)))
                || (matches!(literal.class, LiteralClass::Name | LiteralClass::Date)
                    && same_text(&literal.text, text))
                || (literal.class == LiteralClass::Path && literal.text.trim_start_matches("./") == text)
                || says_digits(literal, text)
        }
        Value::Number(number) => {
            let (said, wanted) = (literal.value.as_f64(), number.as_f64());
            let counts = matches!(literal.class, LiteralClass::Number | LiteralClass::Id);
            counts && (said == wanted || (literal.unit() == "%" && said.map(|said| said / 100.0) == wanted))
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Whether a text is the number of a literal without its unit: `20` of `20 percent`.
fn says_digits(literal: &IntentLiteral, text: &str) -> bool {
    literal.class == LiteralClass::Number
        && text.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        && text.parse::<f64>().is_ok_and(|number| literal.value.as_f64() == Some(number))
}

/// Classes whose literals are compared without case.
fn loose(class: LiteralClass) -> bool {
    matches!(
        class,
        LiteralClass::Name
            | LiteralClass::Quoted
            | LiteralClass::Channel
            | LiteralClass::Handle
            | LiteralClass::Email
            | LiteralClass::Zone
            | LiteralClass::Date
            | LiteralClass::Host
    )
}

fn same_case(a: &str, b: &str) -> bool {
    a.to_lowercase() == b.to_lowercase()
}

/// Whether two texts are equal except for case and accents.
pub(super) fn same_text(a: &str, b: &str) -> bool {
    fold(a) == fold(b)
}

/// The value of `new` for a parameter that was `before` when the intent said `old`.
pub(super) fn fill(
    old: &IntentLiteral,
    before: &Value,
    new: &IntentLiteral,
    schema: &Value,
    strict: Strictness,
) -> Option<Value> {
    let value = match before {
        _ if !can_replace(old, new, strict) => return None,
        _ if old.class == LiteralClass::Date => date(old, before, new)?,
        Value::String(text) if *text == old.bare() && *text != old.text => Value::from(new.bare()),
        Value::String(text) if *text == old.text || text.as_str() == old.text.trim_start_matches("./") => {
            Value::from(new.text.as_str())
        }
        Value::String(text) if says_digits(old, text) && new.value.is_number() => {
            Value::from(new.value.to_string())
        }
        Value::String(text) => Value::from(recase(&old.text, text, &new.text)?),
        Value::Number(_) if !new.value.is_number() => return None,
        Value::Number(number) if number.as_f64() == old.value.as_f64() => new.value.clone(),
        Value::Number(_) => serde_json::Number::from_f64(new.value.as_f64()? / 100.0).map(Value::Number)?,
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    fit_to_schema(value, schema)
}

/// How strictly values and intents are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strictness {
    /// The procedure changes something: only the exact same form is accepted.
    Writes,
    /// The procedure only reads.
    Reads,
}

/// Whether `new` can replace `old`.
pub(super) fn can_replace(old: &IntentLiteral, new: &IntentLiteral, strict: Strictness) -> bool {
    let numbers = |class, text: &str| {
        class == LiteralClass::Number || (class == LiteralClass::Id && text.starts_with('#'))
    };
    match (old.class, new.class) {
        (LiteralClass::Path, LiteralClass::Path) => same_form(&old.text, &new.text, strict),
        (LiteralClass::Quoted, LiteralClass::Name) | (LiteralClass::Name, LiteralClass::Quoted) => true,
        (LiteralClass::Name, LiteralClass::Name) => !table::MANNER.contains(&fold(&new.text).as_str()),
        (one, other) if numbers(one, &old.text) && numbers(other, &new.text) => {
            old.unit() == new.unit() || (is_code(old) && is_code(new))
        }
        (one, other) => one == other,
    }
}

/// Whether what looks like a number with a unit is rather a code: `7b`.
fn is_code(literal: &IntentLiteral) -> bool {
    literal.measured_in.is_none()
        && literal.text.starts_with(|c: char| c.is_ascii_digit())
        && literal.text.ends_with(char::is_alphabetic)
        && !literal.text.contains(' ')
}

fn same_form(old: &str, new: &str, strict: Strictness) -> bool {
    let glob = |path: &str| path.contains(['*', '?']);
    let folder = |path: &str| path.ends_with(['/', '\\']);
    let file = |path: &str| {
        path.rsplit(['/', '\\']).next().is_some_and(|name| name.trim_start_matches('.').contains('.'))
    };
    let outside = |path: &str| path.starts_with(['/', '~']) || path.contains("..") || path.contains(":\\");
    let form = |path: &str| (folder(path), file(path), outside(path));
    // Plain texts can be read alike; any other kind of file is read by a program made for it.
    let plain = |extension: &str| matches!(extension, "" | "md" | "txt" | "text" | "log" | "rst");
    let (was, is) = (extension(old), extension(new));
    let same_kind = was == is || (plain(&was) && plain(&is));
    glob(old) == glob(new)
        && (glob(old) || same_kind)
        && (strict == Strictness::Reads || form(old) == form(new))
}

/// The extension of a file, in lower case; empty for a folder.
fn extension(path: &str) -> String {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    name.trim_start_matches('.')
        .rsplit_once('.')
        .map(|(_, extension)| extension.to_lowercase())
        .unwrap_or_default()
}

/// A date replaces another as text only where both have the same form, else as the day it names.
fn date(old: &IntentLiteral, before: &Value, new: &IntentLiteral) -> Option<Value> {
    let (was, is) = (dates::parse_date(&old.text), dates::parse_date(&new.text));
    let text = before.as_str()?;
    if was.day.as_deref() == Some(text) {
        return is.day.map(Value::from);
    }
    (was.shape == is.shape && same_text(text, &old.text)).then(|| Value::from(new.text.as_str()))
}

/// `new` with the case conversion that turned `old` into `before`.
fn recase(old: &str, before: &str, new: &str) -> Option<String> {
    match before {
        _ if before == old => Some(new.to_owned()),
        _ if before == old.to_lowercase() => Some(new.to_lowercase()),
        _ if before == old.to_uppercase() => Some(new.to_uppercase()),
        _ => None,
    }
}

/// Plain words that replace the words of an earlier value.
pub(super) struct WordSwap<'a> {
    /// The words of the earlier intent.
    pub(super) old: &'a str,
    /// The value of those words.
    pub(super) before: &'a str,
    /// The words of the new intent in their place.
    pub(super) new: &'a str,
    /// Values of earlier runs.
    pub(super) examples: &'a [Value],
    /// The schema of the parameter.
    pub(super) schema: &'a Value,
    /// Whether the new words begin the sentence, where a capital carries no information.
    pub(super) begins: bool,
    /// Whether the same preposition governs the words in both intents: `for Berlin` and `for chess`.
    pub(super) governed: bool,
    /// Whether the intents are equal apart from their values.
    pub(super) aligned: bool,
    /// Whether besides, the same noun or verb stands next to the words.
    pub(super) beside_same: bool,
    /// Whether an article follows the words, as after a verb: `who built the ship`.
    pub(super) takes_object: bool,
}

/// The value of plain words that replaced the words of an earlier value.
pub(super) fn swap(swap: &WordSwap<'_>, strict: Strictness) -> Option<Value> {
    if same_text(swap.old, swap.new) {
        return Some(Value::from(swap.before));
    }
    if let Some(allowed) = swap.schema.get("enum").and_then(Value::as_array) {
        return member(allowed, swap.new);
    }
    let (was, is) = (fold(swap.old), fold(swap.new));
    let kinds = (kinds::word_kind(&was), kinds::word_kind(&is));
    let known =
        swap.examples.iter().find(|example| example.as_str().is_some_and(|text| same_text(text, swap.new)));
    if let Some(known) = known {
        return fit_to_schema(known.clone(), swap.schema);
    }
    // `the branch winter` is a name, `in winter` a time.
    let manner = table::MANNER.contains(&is.as_str()) && !swap.beside_same;
    // Not every format is known: `the raw files`, `the jpg files`.
    let formats = [kinds.0, kinds.1].iter().all(|kind| matches!(kind, None | Some(kinds::WordKind::Format)));
    let other_kind = kinds.0 != kinds.1 && !(formats && swap.beside_same && strict == Strictness::Reads);
    if other_kind || opposite(swap.old, swap.new) || manner {
        return None;
    }
    let named = |text: &str| {
        text.starts_with(char::is_uppercase) || text.contains(|c: char| c.is_ascii_digit() || c == '_')
    };
    let certain = kinds.0.is_some() || (named(swap.new) && !swap.begins);
    let known = words::is_known_word(swap.new);
    // A known request word is rather another request than another value: `current weather`.
    let asking = swap.begins || (known && !words::is_known_word(swap.old));
    // Where nothing else differs, a word that asks for nothing is another value.
    let strictly = strict == Strictness::Writes || named(swap.old);
    let value =
        (swap.governed || swap.beside_same || (swap.aligned && !strictly && !swap.takes_object)) && !known;
    if !certain && (asking || !value) {
        return None;
    }
    fit_to_schema(Value::from(recase(swap.old, swap.before, swap.new)?), swap.schema)
}

/// The enum member that `text` names: by spelling, else by concept where exactly one member has it.
fn member(allowed: &[Value], text: &str) -> Option<Value> {
    let spelled = |value: &&Value| value.as_str().is_some_and(|name| same_text(name, text));
    if let Some(value) = allowed.iter().find(spelled) {
        return Some(value.clone());
    }
    let wanted = words::concept(text);
    let mut meant =
        allowed.iter().filter(|value| value.as_str().is_some_and(|name| words::concept(name) == wanted));
    meant.next().filter(|_| meant.next().is_none()).cloned()
}

fn opposite(a: &str, b: &str) -> bool {
    table::are_opposites(&words::concept(a), &words::concept(b))
}

/// `value` converted to the type of the schema: numbers to text or text to numbers. `None` where it does not fit.
pub(super) fn fit_to_schema(value: Value, schema: &Value) -> Option<Value> {
    // The type of a parameter may be inferred from its use; the first run shows what it takes.
    let is_number = value.is_number() && schema.get("default").is_some_and(Value::is_number);
    let declared =
        schema.get("type").and_then(Value::as_str).filter(|kind| !(is_number && *kind == "string"));
    let value = match (declared, value) {
        (Some("string"), Value::Number(number)) => Value::from(number.to_string()),
        (Some("string"), value) if !value.is_string() => return None,
        (Some("integer"), Value::Number(number)) => Value::from(whole(number.as_f64()?)?),
        (Some("integer" | "number"), Value::String(text)) => {
            return fit_to_schema(plain_number(&text)?, schema);
        }
        (Some("integer" | "number"), value) if !value.is_number() => return None,
        (Some("boolean"), value) if !value.is_boolean() => return None,
        (Some("array"), value) if !value.is_array() => return None,
        (Some("object"), value) if !value.is_object() => return None,
        (_, value) => value,
    };
    let allowed = schema.get("enum").and_then(Value::as_array);
    if let Some(allowed) = allowed {
        return match &value {
            Value::String(text) => member(allowed, text),
            value => allowed.contains(value).then(|| value.clone()),
        };
    }
    let pattern = schema.get("pattern").and_then(Value::as_str).and_then(|text| regex::Regex::new(text).ok());
    if pattern.zip(value.as_str()).is_some_and(|(pattern, text)| !pattern.is_match(text)) {
        return None;
    }
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let number = value.as_f64();
    let low = bound("minimum").zip(number).is_some_and(|(least, number)| number < least);
    let high = bound("maximum").zip(number).is_some_and(|(most, number)| number > most);
    (!low && !high).then_some(value)
}

fn plain_number(text: &str) -> Option<Value> {
    text.parse::<i64>().map(Value::from).ok().or_else(|| text.parse::<f64>().ok().map(Value::from))
}

#[expect(clippy::cast_possible_truncation, reason = "only whole numbers that a float holds exactly get here")]
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0).then_some(number as i64)
}
