//! Fills the references in a task's arguments.
//!
//! Values are inserted as bytes and never parsed again: a result that contains `{{t2.secret}}` stays that text.

use std::borrow::Cow;
use std::collections::BTreeMap;

use pml_model::json::raw;
use pml_model::structure::PathStep;
use serde_json::value::RawValue;

use super::given::{TaskArguments, push_json_string, write_list};
use super::reference::{Reference, ReferenceRoot, TextPart};
use super::shorten_for_message;

/// Maximum size of the filled arguments of one task, in bytes.
pub const MAX_ARGUMENTS_BYTES: usize = 256 * 1024;

/// Reason why arguments could not be filled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubstitutionError {
    /// The task has not run, or has no result.
    #[error("`{reference}` refers to task `{task}`, which has no result")]
    NoResult {
        /// The reference, as written.
        reference: String,
        /// Id of the task.
        task: String,
    },
    /// The value has no such part.
    #[error("`{reference}` does not exist: `{reached}` {instead}")]
    NoSuchPart {
        /// The reference, as written.
        reference: String,
        /// The prefix of the path that exists.
        reached: String,
        /// Description of the value found there.
        instead: String,
    },
    /// The filled arguments exceed [`MAX_ARGUMENTS_BYTES`].
    #[error("the arguments become larger than {MAX_ARGUMENTS_BYTES} bytes; hand on less of `{reference}`")]
    TooLarge {
        /// The reference at which the limit was passed.
        reference: String,
    },
}

/// The arguments with every reference filled: references to `args` from `arguments`, references to tasks from `result`.
/// Literals and values keep their bytes.
///
/// # Errors
/// A reference does not resolve, or the arguments become too large.
pub fn fill_references<'v>(
    given: &TaskArguments,
    arguments: &'v RawValue,
    result: &dyn Fn(&str) -> Option<&'v RawValue>,
) -> Result<Box<RawValue>, SubstitutionError> {
    let mut filling = Substitution { arguments, result, failed: None };
    let mut out = String::new();
    filling.write(given, &mut out);
    match filling.failed {
        // After a failure the output may not be valid JSON.
        Some(why) => Err(why),
        None => Ok(RawValue::from_string(out).expect("put together from JSON values and JSON strings")),
    }
}

struct Substitution<'v, 'f> {
    arguments: &'v RawValue,
    result: &'f dyn Fn(&str) -> Option<&'v RawValue>,
    /// The first failure; nothing is filled after it.
    failed: Option<SubstitutionError>,
}

impl<'v> Substitution<'v, '_> {
    fn write(&mut self, given: &TaskArguments, out: &mut String) {
        match given {
            _ if self.failed.is_some() => {}
            TaskArguments::Literal(raw) | TaskArguments::Escaped(raw) => out.push_str(raw.get()),
            TaskArguments::Reference(reference) => {
                if let Some(value) = self.value(reference) {
                    self.put(reference, value.get(), out);
                }
            }
            TaskArguments::Text(parts) => {
                let text = self.text(parts);
                let json = serde_json::Value::from(text).to_string();
                match parts.iter().find_map(TextPart::reference) {
                    Some(reference) => self.put(reference, &json, out),
                    None => out.push_str(&json),
                }
            }
            TaskArguments::Object(members) => write_list(out, ('{', '}'), members, |(key, value), out| {
                push_json_string(key, out);
                out.push(':');
                self.write(value, out);
            }),
            TaskArguments::Array(items) => {
                write_list(out, ('[', ']'), items, |item, out| self.write(item, out));
            }
        }
    }

    fn text(&mut self, parts: &[TextPart]) -> String {
        let mut text = String::new();
        for part in parts {
            match part {
                TextPart::Text(written) => text.push_str(written),
                TextPart::Reference(reference) => {
                    if let Some(value) = self.value(reference) {
                        self.put(reference, &in_text(&value), &mut text);
                    }
                }
            }
        }
        text
    }

    fn put(&mut self, reference: &Reference, value: &str, out: &mut String) {
        if out.len() + value.len() <= MAX_ARGUMENTS_BYTES {
            out.push_str(value);
        } else {
            self.failed.get_or_insert(SubstitutionError::TooLarge { reference: reference.to_string() });
        }
    }

    fn value(&mut self, reference: &Reference) -> Option<Cow<'v, RawValue>> {
        if self.failed.is_some() {
            return None;
        }
        let found = match &reference.of {
            ReferenceRoot::Arguments => follow(self.arguments, reference),
            ReferenceRoot::Task(id) => match (self.result)(id) {
                Some(root) => follow(root, reference),
                None => {
                    Err(SubstitutionError::NoResult { reference: reference.to_string(), task: id.clone() })
                }
            },
        };
        found.map_err(|why| self.failed = Some(why)).ok()
    }
}

/// The part of `root` at the path of `reference`.
fn follow<'v>(root: &'v RawValue, reference: &Reference) -> Result<Cow<'v, RawValue>, SubstitutionError> {
    let mut reached = Cow::Borrowed(root);
    for (done, step) in reference.path.iter().enumerate() {
        let next = match &reached {
            Cow::Borrowed(value) => part(value, step),
            Cow::Owned(value) => part(value, step).map(|value| Cow::Owned(value.into_owned())),
        };
        reached = next.map_err(|instead| SubstitutionError::NoSuchPart {
            reference: reference.to_string(),
            reached: Reference { of: reference.of.clone(), path: reference.path[..done].to_vec() }
                .to_string(),
            instead,
        })?;
    }
    Ok(reached)
}

/// One step into a value with JavaScript semantics: `0` is a member of an object or an index of a list, and lists and
/// texts have a `length`. The error describes the value that is there instead.
fn part<'v>(value: &'v RawValue, step: &PathStep) -> Result<Cow<'v, RawValue>, String> {
    let key = match step {
        PathStep::Index(index) => Cow::Owned(index.to_string()),
        PathStep::Key(key) => Cow::Borrowed(key.as_str()),
        PathStep::Any => return Err("is no single value".to_owned()),
    };
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'{') => {
            let members: BTreeMap<Cow<'v, str>, &'v RawValue> =
                serde_json::from_str(text).unwrap_or_default();
            members.get(&*key).map(|value| Cow::Borrowed(*value)).ok_or_else(|| {
                let names: Vec<String> =
                    members.keys().take(8).map(|name| format!("`{}`", shorten_for_message(name))).collect();
                if names.is_empty() { "is empty".to_owned() } else { format!("has {}", names.join(", ")) }
            })
        }
        Some(b'[') => {
            let items: Vec<&'v RawValue> = serde_json::from_str(text).unwrap_or_default();
            if key == "length" {
                return Ok(Cow::Owned(raw(&items.len())));
            }
            let item = key.parse().ok().and_then(|index: usize| items.get(index));
            item.map(|item| Cow::Borrowed(*item)).ok_or_else(|| format!("is a list of {}", items.len()))
        }
        Some(b'"') if key == "length" => {
            let text: String = serde_json::from_str(text).unwrap_or_default();
            Ok(Cow::Owned(raw(&text.encode_utf16().count())))
        }
        Some(b'"') => Err("is a text".to_owned()),
        Some(b'n') => Err("is null".to_owned()),
        Some(b't' | b'f') => Err("is a boolean".to_owned()),
        _ => Err("is a number".to_owned()),
    }
}

/// Text of a value in a JavaScript template; an object becomes JSON instead of `[object Object]`.
fn in_text(value: &RawValue) -> String {
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'"') => serde_json::from_str(text).unwrap_or_default(),
        Some(b'{') => compact(text),
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
            let said = items
                .into_iter()
                .map(|item| if item.get() == "null" { String::new() } else { in_text(item) });
            said.collect::<Vec<_>>().join(",")
        }
        Some(b'n' | b't' | b'f') => text.to_owned(),
        _ => text.parse().map_or_else(|_| text.to_owned(), number_in_text),
    }
}

/// JSON without white space between its tokens.
fn compact(json: &str) -> String {
    let (mut inside, mut escaped) = (false, false);
    json.chars()
        .filter(|&c| {
            let keep = inside || !c.is_ascii_whitespace();
            match c {
                _ if escaped => escaped = false,
                '\\' if inside => escaped = true,
                '"' => inside = !inside,
                _ => {}
            }
            keep
        })
        .collect()
}

/// A number as JavaScript prints it: the shortest digits, without exponent from 1e-6 to below 1e21.
fn number_in_text(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() };
    }
    let scientific = format!("{:e}", number.abs());
    let (digits, exponent) = scientific.split_once('e').expect("`{:e}` writes an exponent");
    let (digits, exponent): (String, i32) =
        (digits.replace('.', ""), exponent.parse().expect("`{:e}` writes a whole exponent"));
    let sign = if number < 0.0 { "-" } else { "" };
    let count = i32::try_from(digits.len()).expect("a double has few digits");
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    let split = |at: i32| digits.split_at(usize::try_from(at).unwrap_or(0));
    match exponent {
        0..=20 if count <= exponent + 1 => format!("{sign}{digits}{}", zeros(exponent + 1 - count)),
        0..=20 => {
            let (whole, rest) = split(exponent + 1);
            format!("{sign}{whole}.{rest}")
        }
        -6..=-1 => format!("{sign}0.{}{digits}", zeros(-exponent - 1)),
        _ => {
            let (first, rest) = split(1);
            let point = if rest.is_empty() { "" } else { "." };
            format!("{sign}{first}{point}{rest}e{exponent:+}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_in_javascript() {
        let cases = [
            ("1.0", "1"),
            ("-0", "0"),
            ("0.1", "0.1"),
            ("-12.50", "-12.5"),
            ("123456789012345680000", "123456789012345680000"),
            ("12345678901234567890", "12345678901234567000"),
            ("1e21", "1e+21"),
            ("1.5e300", "1.5e+300"),
            ("0.000001", "0.000001"),
            ("0.0000001", "1e-7"),
            ("1.25e-9", "1.25e-9"),
            ("1e999", "Infinity"),
        ];
        for (json, expected) in cases {
            let raw = RawValue::from_string(json.to_owned()).unwrap();
            assert_eq!(in_text(&raw), expected, "{json}");
        }
    }
}
