//! What an intent says, as a value that a parameter takes.

use serde_json::Value;

use crate::reuse::{self, Literal};

/// A parameter that wants a value.
pub(super) struct Wanted<'p> {
    pub(super) name: &'p str,
    pub(super) schema: &'p Value,
}

impl Wanted<'_> {
    /// The value that is said, or what is written where it is none of a kind; nothing where it does not fit.
    pub(super) fn value(&self, literal: Option<&Literal>, written: &str) -> Option<Value> {
        let text = literal.map_or_else(|| unquoted(written), |literal| literal.text.as_str());
        if let Some(choices) = self.schema["enum"].as_array() {
            let same =
                |choice: &&Value| choice.as_str().is_some_and(|choice| choice.eq_ignore_ascii_case(text));
            return choices.iter().find(same).cloned();
        }
        match self.schema["type"].as_str() {
            Some("integer") => literal?.value.as_i64().map(Value::from),
            Some("number") => self.number(literal?),
            Some("string") => self.text(text),
            Some(_) => None,
            // Anything is taken: as it was written.
            None => Some(literal.map_or_else(|| Value::from(text), |literal| literal.value.clone())),
        }
    }

    /// A number; `5 %` is 0.05 where a decimal is asked for.
    fn number(&self, literal: &Literal) -> Option<Value> {
        let decimal = self.says(&["decimal", "fraction"]);
        match literal.value.as_f64() {
            Some(number) if decimal && literal.text.ends_with('%') => Some(Value::from(number / 100.0)),
            _ => literal.value.is_number().then(|| literal.value.clone()),
        }
    }

    /// A text; where a day is wanted, that day as programs write it, and nothing where a time is wanted as well.
    fn text(&self, text: &str) -> Option<Value> {
        let wants_time = self.schema["format"] == "date-time" || self.says(&["hh:mm"]);
        let wants_day = self.schema["format"] == "date" || self.says(&["yyyy-mm-dd"]);
        let day = reuse::day(text);
        match day {
            Some(_) if wants_time => None,
            None if wants_day && !wants_time => None,
            Some(day) if wants_day || self.name.to_lowercase().ends_with("date") => Some(Value::from(day)),
            _ => Some(Value::from(text)),
        }
    }

    fn says(&self, words: &[&str]) -> bool {
        let description = self.schema["description"].as_str().unwrap_or_default().to_lowercase();
        words.iter().any(|word| description.contains(word))
    }
}

/// `text` without the quotes around it.
fn unquoted(text: &str) -> &str {
    let pairs = [('\'', '\''), ('"', '"'), ('“', '”'), ('«', '»'), ('`', '`')];
    let inner = pairs.iter().find_map(|(open, close)| text.strip_prefix(*open)?.strip_suffix(*close));
    inner.unwrap_or(text).trim()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(intent: &str, name: &str, schema: &Value) -> Option<Value> {
        let literals = reuse::literals(intent);
        Wanted { name, schema }.value(literals.first(), intent)
    }

    #[test]
    fn dates_are_written_as_they_are_wanted() {
        let string = |description: &str| json!({ "type": "string", "description": description });
        assert_eq!(said("due January 31, 2025", "due_date", &string("")), Some(json!("2025-01-31")));
        assert_eq!(said("on January 31, 2025", "when", &string("")), Some(json!("January 31, 2025")));
        assert_eq!(said("on January 31, 2025", "when", &string("as YYYY-MM-DD")), Some(json!("2025-01-31")));
        assert_eq!(said("on 2025-01-31", "start", &string("YYYY-MM-DD HH:MM")), None, "no time is said");
        assert_eq!(said("tomorrow", "day", &json!({ "type": "string", "format": "date" })), None);
    }

    #[test]
    fn shares_are_numbers_or_decimals() {
        let number = |description: &str| json!({ "type": "number", "description": description });
        assert_eq!(said("a tax of 7%", "rate", &number("in percent")), Some(json!(7)));
        assert_eq!(said("a tax of 7%", "rate", &number("the rate as a decimal")), Some(json!(0.07)));
    }

    #[test]
    fn quotes_are_no_part_of_a_text() {
        let wanted = Wanted { name: "text", schema: &json!({ "type": "string" }) };
        assert_eq!(wanted.value(None, "'he don't like it'"), Some(json!("he don't like it")));
    }
}
