//! The shape of a JSON value: names and types without values.

use serde_json::Value;

/// 16 KiB: of larger values the shape is not worth the time.
const MAX_BYTES: usize = 16 << 10;
/// The levels that are shown.
const MAX_DEPTH: usize = 3;
/// The members of an object that are shown.
const MAX_MEMBERS: usize = 24;
/// The longest member name. Longer ones are rather data, such as a token that is used as a name.
const MAX_NAME: usize = 32;

/// The shape of JSON text, such as `{path: string, lines: [number]}`.
pub(crate) fn shape(text: &str) -> String {
    let value = (text.len() <= MAX_BYTES).then(|| serde_json::from_str::<Value>(text).ok()).flatten();
    let mut shape = String::new();
    match value {
        Some(value) => write_shape(&value, 0, &mut shape),
        None => shape.push('…'),
    }
    shape
}

fn write_shape(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(_) => out.push_str("boolean"),
        Value::Number(_) => out.push_str("number"),
        Value::String(_) => out.push_str("string"),
        Value::Array(items) => {
            out.push('[');
            match items.first() {
                Some(_) if depth == MAX_DEPTH => out.push('…'),
                Some(first) => write_shape(first, depth + 1, out),
                None => {}
            }
            out.push(']');
        }
        Value::Object(members) if depth == MAX_DEPTH && !members.is_empty() => out.push_str("{…}"),
        Value::Object(members) => {
            out.push('{');
            for (index, (name, member)) in members.iter().take(MAX_MEMBERS).enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                out.push_str(if is_plain_name(name) { name } else { "?" });
                out.push_str(": ");
                write_shape(member, depth + 1, out);
            }
            out.push_str(if members.len() > MAX_MEMBERS { ", …}" } else { "}" });
        }
    }
}

/// Whether a member name is one that a schema would have. Others may be data, such as addresses that are used as names.
fn is_plain_name(name: &str) -> bool {
    let starts_well =
        name.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '_' | '$'));
    let is_plain = |each: char| each.is_ascii_alphanumeric() || matches!(each, '_' | '-' | '$');
    starts_well && name.len() <= MAX_NAME && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_has_names_and_types_and_no_values() {
        for (text, expected) in [
            (
                r#"{"path":"/etc/secret","n":4,"deep":{"list":[{"a":true}],"no":null}}"#,
                "{path: string, n: number, deep: {list: [{…}], no: null}}",
            ),
            (r#"{"jo@example.com":1}"#, "{?: number}"),
            (r#"[]"#, "[]"),
            ("{}", "{}"),
            ("not json", "…"),
        ] {
            assert_eq!(shape(text), expected);
        }
    }
}
