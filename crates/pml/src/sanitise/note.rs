//! Records the removed secrets, so that they can be removed elsewhere too.

use std::collections::BTreeSet;

use serde_json::Value;

use super::appearance::is_likely;
use super::name::is_secret_name;

/// Adds the secrets in `text`: a JSON value, the contents of a JSON string, or plain text.
pub(super) fn collect(text: &str, noted: &mut BTreeSet<String>) {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Null | Value::Bool(_)) => {}
        // The complete value was removed because of its name; not every word in it is a secret.
        Ok(container @ (Value::Object(_) | Value::Array(_))) => members(&container, noted),
        Ok(Value::String(text)) => drop(noted.insert(text)),
        Ok(Value::Number(_)) => drop(noted.insert(text.trim().to_owned())),
        Err(_) => {
            let unescaped = serde_json::from_str::<String>(&format!("\"{text}\""));
            noted.insert(unescaped.unwrap_or_else(|_| text.to_owned()));
        }
    }
}

fn members(value: &Value, noted: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) if is_secret_name(name) => drop(noted.insert(text.clone())),
                    Value::Number(number) if is_secret_name(name) => drop(noted.insert(number.to_string())),
                    other => self::members(other, noted),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| members(item, noted)),
        Value::String(text) if is_likely(text) => drop(noted.insert(text.clone())),
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}
