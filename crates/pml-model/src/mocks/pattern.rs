//! Patterns of arguments: two calls with the same pattern have results of the same kind.

use serde_json::{Map, Value};

/// Maximum length of a pattern, in bytes. Beyond it the rest is cut, so such calls are similar by their beginnings.
const LONGEST_PATTERN: usize = 500;
/// Maximum depth of a pattern.
const MAX_DEPTH: usize = 6;
/// Strings of this many bytes or fewer are not replaced in a result: they are there by accident too easily.
const TRIVIAL_BYTES: usize = 2;

/// The pattern of arguments: the names, the types, and the classes of the texts.
pub fn argument_pattern(arguments: &Value) -> String {
    let mut out = String::new();
    write_pattern(arguments, MAX_DEPTH, &mut out);
    if out.len() > LONGEST_PATTERN {
        let end = (0..=LONGEST_PATTERN).rev().find(|end| out.is_char_boundary(*end)).unwrap_or(0);
        out.truncate(end);
    }
    out
}

fn write_pattern(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        // A flag chooses what a tool does, so its value is part of the pattern.
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(if number.is_f64() { "number" } else { "integer" }),
        Value::String(text) => write_class(text, out),
        Value::Array(_) | Value::Object(_) if depth == 0 || out.len() > LONGEST_PATTERN => out.push('…'),
        Value::Array(elements) => {
            out.push('[');
            if let Some(first) = elements.first() {
                write_pattern(first, depth - 1, out);
            }
            out.push(']');
        }
        Value::Object(members) => write_members(members, depth, out),
    }
}

fn write_members(members: &Map<String, Value>, depth: usize, out: &mut String) {
    let mut names: Vec<&String> = members.keys().collect();
    names.sort();
    out.push('{');
    for (index, name) in names.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(name);
        out.push(':');
        write_pattern(&members[name], depth - 1, out);
    }
    out.push('}');
}

/// The class of a text: what kind of thing it names.
fn write_class(text: &str, out: &mut String) {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let extension = text
        .rsplit_once('.')
        .map(|(_, end)| end)
        .filter(|end| (1..=5).contains(&end.len()) && end.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    let is_spaced = text.contains(char::is_whitespace);
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let class = if text.is_empty() {
        "empty"
    } else if text.contains("://") {
        "url"
    } else if !is_spaced && text.contains('@') && extension.is_some() {
        "email"
    } else if !is_spaced && digits == text.len() {
        "digits"
    } else if digits >= 6
        && text.starts_with(|c: char| c.is_ascii_digit())
        && text.contains('-')
        && text.len() <= 30
    {
        "date"
    } else if !is_spaced && (text.contains('/') || extension.is_some()) {
        // A result depends on the kind of file.
        match extension {
            Some(extension) => {
                out.push_str("path.");
                return out.push_str(&extension.to_lowercase());
            }
            None => "path",
        }
    } else if text.chars().all(is_word) {
        if digits > 0 { "id" } else { "word" }
    } else if is_spaced && text.len() > 80 {
        "text"
    } else {
        "words"
    };
    out.push_str(class);
}

/// The result that was recorded for similar arguments, with the arguments that it repeats replaced by those of the
/// present call.
pub fn adapt_result(result: &Value, recorded: &Value, present: &Value) -> Value {
    let mut changed: Vec<(&str, &str)> = Vec::new();
    for (name, before) in recorded.as_object().into_iter().flatten() {
        if let (Value::String(before), Some(Value::String(now))) = (before, present.get(name))
            && before != now
            && before.len() > TRIVIAL_BYTES
        {
            changed.push((before, now));
        }
    }
    if changed.is_empty() { result.clone() } else { replaced(result, &changed) }
}

fn replaced(value: &Value, changed: &[(&str, &str)]) -> Value {
    match value {
        Value::String(text) => match changed.iter().find(|(before, _)| before == text) {
            Some((_, now)) => Value::from(*now),
            None => value.clone(),
        },
        Value::Array(elements) => elements.iter().map(|element| replaced(element, changed)).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, member)| (name.clone(), replaced(member, changed)));
            Value::Object(members.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Whether two results have the same shape: the same types, the same members. Elements of lists are compared by the
/// first; an empty list and nothing at all are like anything.
pub fn same_shape(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Null, _) | (_, Value::Null) => true,
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(name, value)| right.get(name).is_some_and(|other| same_shape(value, other)))
        }
        (Value::Array(left), Value::Array(right)) => match (left.first(), right.first()) {
            (Some(left), Some(right)) => same_shape(left, right),
            _ => true,
        },
        (Value::Bool(_), Value::Bool(_))
        | (Value::Number(_), Value::Number(_))
        | (Value::String(_), Value::String(_)) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patterns_tell_kinds_of_arguments_apart() {
        for (arguments, expected) in [
            (json!({"path": "data/a.csv", "limit": 3}), "{limit:integer,path:path.csv}"),
            (json!({"path": "b.CSV", "limit": 300}), "{limit:integer,path:path.csv}"),
            (json!({"path": "b.json"}), "{path:path.json}"),
            (json!({"url": "https://x.org/a.b"}), "{url:url}"),
            (json!({"to": "a@b.org", "on": "2024-05-01"}), "{on:date,to:email}"),
            (json!({"q": "open issues", "all": true}), "{all:true,q:words}"),
            (json!({"id": "abc-12", "ids": ["1", "2"], "empty": []}), "{empty:[],id:id,ids:[digits]}"),
            (json!({"state": "open", "deep": {"x": null, "y": 1.5}}), "{deep:{x:null,y:number},state:word}"),
        ] {
            assert_eq!(argument_pattern(&arguments), expected);
        }
        let long: Value = (0..999).map(|n| (format!("name{n}"), json!("é"))).collect::<Map<_, _>>().into();
        assert!(argument_pattern(&long).len() <= LONGEST_PATTERN);
    }

    #[test]
    fn a_result_names_what_the_present_call_named() {
        let result = json!({"path": "a.txt", "of": ["a.txt", "ab"], "n": 1});
        let adapted =
            adapt_result(&result, &json!({"path": "a.txt", "x": "ab"}), &json!({"path": "b.txt", "x": "cd"}));
        assert_eq!(adapted, json!({"path": "b.txt", "of": ["b.txt", "ab"], "n": 1}));
        assert_eq!(adapt_result(&result, &json!({}), &json!({"path": "b.txt"})), result);
    }

    #[test]
    fn shapes_are_types_and_members() {
        assert!(same_shape(&json!({"a": [1, 2], "b": null}), &json!({"a": [], "b": "x"})));
        assert!(!same_shape(&json!({"a": [1]}), &json!({"a": ["x"]})));
        assert!(!same_shape(&json!({"a": 1}), &json!({"a": 1, "b": 2})));
        assert!(!same_shape(&json!("x"), &json!(1)));
    }
}
