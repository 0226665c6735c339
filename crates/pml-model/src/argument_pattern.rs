//! Patterns of argument values: what calls of a tool have in common, and an intent may have too.
//!
//! A pattern is short and says what kind of value there is: `*.json`, `#prod`, `a URL`. Values themselves are no patterns, but
//! for the names of channels and handles, which are few and stand for themselves.

use std::collections::BTreeSet;

use serde_json::Value;

/// Maximum number of patterns of one call.
const MOST: usize = 8;
/// Maximum length of an extension and of a name of a channel, in characters.
const LONGEST_EXTENSION: usize = 8;
const LONGEST_NAME: usize = 32;

/// The patterns of the arguments of a call: those of its values, and of values in lists and objects one level below.
pub fn argument_patterns(arguments: &Value) -> BTreeSet<String> {
    let members = |value: &Value| -> Vec<Value> {
        match value {
            Value::Object(members) => members.values().cloned().collect(),
            Value::Array(items) => items.clone(),
            _ => Vec::new(),
        }
    };
    let mut patterns = BTreeSet::new();
    for value in members(arguments) {
        let inner = members(&value);
        patterns.extend(inner.iter().chain([&value]).filter_map(Value::as_str).filter_map(text_pattern));
    }
    patterns.into_iter().take(MOST).collect()
}

/// The pattern of a text; `None` for one that is like no other.
pub fn text_pattern(text: &str) -> Option<String> {
    if text.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return None;
    }
    if text.starts_with("http://") || text.starts_with("https://") {
        return Some("a URL".to_owned());
    }
    if let Some(name) = text.strip_prefix(['#', '@']) {
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        return (!name.is_empty() && name.chars().count() <= LONGEST_NAME && name.chars().all(is_name))
            .then(|| text.to_lowercase());
    }
    if is_email(text) {
        return Some("an e-mail address".to_owned());
    }
    if is_id(text) {
        return Some("an id".to_owned());
    }
    path_pattern(text)
}

/// The extension of a path or file name, or that it has none.
fn path_pattern(text: &str) -> Option<String> {
    let file = text.rsplit(['/', '\\']).next().unwrap_or_default();
    let extension =
        file.rsplit_once('.').filter(|(name, _)| !name.is_empty()).map(|(_, extension)| extension);
    let is_extension = |extension: &&str| {
        (1..=LONGEST_EXTENSION).contains(&extension.len())
            && extension.chars().all(|c| c.is_ascii_alphanumeric())
            && extension.starts_with(|c: char| c.is_ascii_alphabetic())
    };
    match extension.filter(is_extension) {
        Some(extension) => Some(format!("*.{}", extension.to_ascii_lowercase())),
        None if text.contains('/') && text.len() > 1 => Some("a path without an extension".to_owned()),
        None => None,
    }
}

fn is_email(text: &str) -> bool {
    text.split_once('@').is_some_and(|(name, host)| {
        !name.is_empty()
            && !host.contains('@')
            && host.split_once('.').is_some_and(|(one, other)| !one.is_empty() && !other.is_empty())
    })
}

/// Hexadecimal digits in groups, as of UUIDs and digests.
fn is_id(text: &str) -> bool {
    let digits = text.chars().filter(char::is_ascii_hexdigit).count();
    digits >= 16
        && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
        && text.contains(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_one_kind_have_one_pattern() {
        for (text, expected) in [
            ("data/a.json", Some("*.json")),
            ("B.JSON", Some("*.json")),
            ("/srv/app", Some("a path without an extension")),
            (".gitignore", None),
            ("https://example.org/a.json", Some("a URL")),
            ("#prod", Some("#prod")),
            ("@Ann", Some("@ann")),
            ("ann@example.org", Some("an e-mail address")),
            ("0d5f9f5e-1c7a-4f0e-9d57-0b8a3c1d2e4f", Some("an id")),
            ("hello world.txt", None),
            ("3.14", None),
            ("hello", None),
            ("", None),
        ] {
            assert_eq!(text_pattern(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_call_has_the_patterns_of_its_values() {
        let patterns =
            argument_patterns(&json!({ "path": "a.json", "to": ["#a", "#b"], "n": 3, "text": "some words" }));
        assert_eq!(patterns.into_iter().collect::<Vec<_>>(), ["#a", "#b", "*.json"]);
        assert!(argument_patterns(&json!("a.json")).is_empty());
    }
}
