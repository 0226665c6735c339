//! Tool arguments that are mirrored into HTTP headers (`x-mcp-header`), and the encoding of header values.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// A parameter that the schema of its tool wants in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirroredParameter {
    /// Name of the header, `Mcp-Param-<name>`.
    pub header: String,
    path: Vec<String>,
}

/// The parameters that the input schema of a tool wants in headers.
///
/// # Errors
/// An annotation is malformed or misplaced. The tool must not be used over HTTP then.
pub fn mirrored_parameters(schema: &str) -> Result<Vec<MirroredParameter>, String> {
    if !schema.contains("x-mcp-header") {
        return Ok(Vec::new());
    }
    let schema: Value = serde_json::from_str(schema).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    walk(&schema, &mut Vec::new(), SchemaReach::Static, &mut found)?;
    let mut seen = HashSet::new();
    if let Some(twice) = found.iter().find(|m| !seen.insert(m.header.to_ascii_lowercase())) {
        return Err(format!("two parameters want the header `{}`", twice.header));
    }
    Ok(found)
}

#[derive(Clone, Copy, PartialEq)]
enum SchemaReach {
    Static,
    Dynamic,
}

fn walk(
    schema: &Value,
    path: &mut Vec<String>,
    reach: SchemaReach,
    found: &mut Vec<MirroredParameter>,
) -> Result<(), String> {
    let members = match schema {
        Value::Object(members) => members,
        Value::Array(items) => {
            return items.iter().try_for_each(|item| walk(item, path, SchemaReach::Dynamic, found));
        }
        _ => return Ok(()),
    };
    if let Some(name) = members.get("x-mcp-header") {
        found.push(annotation(name, members, path, reach)?);
    }
    for (key, value) in members {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (property, below) in properties {
                    path.push(property.clone());
                    walk(below, path, reach, found)?;
                    path.pop();
                }
            }
            // These members hold values, not schemas: an annotation in them is just data.
            ("default" | "const" | "enum" | "examples" | "x-mcp-header", _) => {}
            (_, below) => walk(below, path, SchemaReach::Dynamic, found)?,
        }
    }
    Ok(())
}

fn annotation(
    name: &Value,
    schema: &Map<String, Value>,
    path: &[String],
    reach: SchemaReach,
) -> Result<MirroredParameter, String> {
    let at = path.join(".");
    let name = name.as_str().filter(|name| !name.is_empty() && name.bytes().all(is_token));
    let Some(name) = name else {
        return Err(format!("`x-mcp-header` of `{at}` is not a header name"));
    };
    if reach == SchemaReach::Dynamic || path.is_empty() {
        return Err(format!("`x-mcp-header: {name}` stands where it cannot be read from the arguments"));
    }
    if !matches!(schema.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
        return Err(format!(
            "`x-mcp-header: {name}` is on `{at}`, which is not a string, an integer or a boolean"
        ));
    }
    Ok(MirroredParameter { header: format!("Mcp-Param-{name}"), path: path.to_vec() })
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

impl MirroredParameter {
    /// The header value for these arguments; `None` if the parameter is absent.
    pub fn value(&self, arguments: &Value) -> Option<String> {
        let value = self.path.iter().try_fold(arguments, |value, key| value.get(key))?;
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }
}

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// Encodes a header value: as it is if that is safe, else in base64.
pub fn encode(value: &str) -> String {
    let plain = value.bytes().all(|byte| (0x20..=0x7e).contains(&byte) || byte == b'\t')
        && value.trim() == value
        && !value.is_empty()
        && !(value.starts_with(PREFIX) && value.ends_with(SUFFIX));
    if plain { value.to_owned() } else { format!("{PREFIX}{}{SUFFIX}", STANDARD.encode(value)) }
}

/// Decodes a header value; `None` if it is malformed.
pub fn decode(value: &str) -> Option<String> {
    let value = value.trim_matches([' ', '\t']);
    match value.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX)) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => {
            value.bytes().all(|byte| (0x20..=0x7e).contains(&byte) || byte == b'\t').then(|| value.to_owned())
        }
    }
}

/// Whether a header and an argument have the same value; numbers are compared as numbers.
pub fn is_same_value(header: &str, argument: &str) -> bool {
    header == argument || matches!((header.parse::<f64>(), argument.parse::<f64>()), (Ok(a), Ok(b)) if a == b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nested_parameters_are_found_and_read() {
        let schema = json!({"type":"object","properties":{
            "region":{"type":"string","x-mcp-header":"Region"},
            "page":{"type":"object","properties":{"size":{"type":"integer","x-mcp-header":"Page-Size"}}}}});
        let found = mirrored_parameters(&schema.to_string()).unwrap();
        let arguments = json!({"region":"eu","page":{"size":42}});
        let values: Vec<_> = found.iter().map(|m| (m.header.as_str(), m.value(&arguments))).collect();
        assert_eq!(
            values,
            [("Mcp-Param-Region", Some("eu".into())), ("Mcp-Param-Page-Size", Some("42".into()))]
        );
        assert_eq!(found[0].value(&json!({"region":null})), None);
    }

    #[test]
    fn annotations_that_cannot_work_are_refused() {
        for schema in [
            json!({"properties":{"a":{"type":"string","x-mcp-header":""}}}),
            json!({"properties":{"a":{"type":"string","x-mcp-header":"bad name"}}}),
            json!({"properties":{"a":{"type":"number","x-mcp-header":"A"}}}),
            json!({"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}),
            json!({"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}),
            json!({"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}),
        ] {
            assert!(mirrored_parameters(&schema.to_string()).is_err(), "{schema}");
        }
    }

    #[test]
    fn header_values_come_back_as_they_went() {
        for value in ["us-west1", "Hello, 世界", " padded ", "line1\nline2", "=?base64?literal?=", ""] {
            assert_eq!(decode(&encode(value)).as_deref(), Some(value));
        }
        assert_eq!(decode("=?base64?SGVsbG8?="), None);
        assert_eq!(decode("=?base64?SGVsbG8=").as_deref(), Some("=?base64?SGVsbG8="));
        assert!(is_same_value("42.0", "42") && !is_same_value("a", "b"));
    }
}
