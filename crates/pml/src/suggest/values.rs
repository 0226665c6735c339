//! Converts values of an intent into arguments for parameters.
//!
//! A value is bound only where type, format and limits of the schema allow it and where it is of the kind that the
//! parameter's name suggests: a number is no message, a time zone is no time of day. A value that does not fit stays
//! unbound, so the agent is asked; a wrong value would produce a wrong result.

use jsonschema::PatternOptions;
use pml_language::dates;
use pml_language::literals::{IntentLiteral, LiteralClass};
use pml_language::units::{self, Unit};
use serde_json::Value;

/// A parameter that needs a value.
pub(super) struct WantedParameter<'p> {
    pub(super) name: &'p str,
    pub(super) schema: &'p Value,
    /// Whether the parameter's name stands next to the value in the intent: "revision 5".
    pub(super) is_named: bool,
}

/// The kind of value that a parameter's name suggests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParameterKind {
    Zone,
    /// A time of day, a date or both.
    Time,
    Email,
    Url,
    Path,
    /// Free text: a message, a title.
    Content,
    /// Something that may be a number: an id, a count.
    Numbered,
    Other,
}

/// Words in parameter names, by kind.
const NAMES: &[(ParameterKind, &str)] = &[
    (ParameterKind::Zone, "timezone timezones zone tz"),
    (ParameterKind::Email, "email mail emails"),
    (ParameterKind::Url, "url uri link href website webpage"),
    (ParameterKind::Path, "path file filename filepath dir directory folder paths"),
    (ParameterKind::Time, "time date datetime timestamp day hour clock birthday birthdate deadline"),
    (
        ParameterKind::Numbered,
        "id ids number no num code zip zipcode postal phone version year port issue ticket pr sku isbn account amount \
         quantity count page size level rating age price limit pin index rank score",
    ),
    (
        ParameterKind::Content,
        "message text content contents body title subject query description comment note notes caption summary prompt \
         question answer name label reason topic keyword keywords search phrase sentence term",
    ),
];

impl WantedParameter<'_> {
    /// The argument for a literal, or for the text `written` where it is no literal; `None` where it does not fit.
    pub(super) fn value_of(&self, literal: Option<&IntentLiteral>, written: &str) -> Option<Value> {
        let text = literal.map_or_else(|| unquoted(written), |literal| literal.text.as_str());
        if let Some(choices) = self.schema["enum"].as_array() {
            let same = |choice: &&Value| {
                let word = choice.as_str().is_some_and(|choice| choice.eq_ignore_ascii_case(text));
                word || literal.is_some_and(|literal| literal.value == **choice)
            };
            return choices.iter().find(same).cloned();
        }
        let types = types(self.schema);
        let number = literal.filter(|literal| literal.value.is_number());
        let value = match (types.as_slice(), number) {
            (types, Some(number)) if types.contains(&"number") => self.number(number),
            (types, Some(number)) if types.contains(&"integer") => number.value.as_i64().map(Value::from),
            (types, _) if types.contains(&"string") => self.text(literal, text),
            // The schema allows any type, so the value is taken as written.
            ([], _) => Some(literal.map_or_else(|| Value::from(text), |literal| literal.value.clone())),
            _ => None,
        };
        let unit = literal.and_then(|literal| literal.measured_in);
        let same_unit = unit.is_none_or(|unit| !self.measures_otherwise(unit));
        value.filter(|value| same_unit && self.suits(literal, value) && fits(self.schema, value))
    }

    /// Whether its name and its description mention units of the same dimension, and not this one: `5 minutes` is not
    /// 5 seconds.
    fn measures_otherwise(&self, unit: Unit) -> bool {
        let description = self.schema["description"].as_str().unwrap_or_default();
        let words = super::words(self.name).into_iter().chain(super::words(description));
        let named: Vec<Unit> = words.filter_map(|word| units::unit_named(&word)).collect();
        let mut alike = named.iter().filter(|named| named.dimension == unit.dimension).peekable();
        alike.peek().is_some() && alike.all(|named| *named != unit)
    }

    /// Whether the value is of the kind that the parameter's name suggests.
    fn suits(&self, literal: Option<&IntentLiteral>, value: &Value) -> bool {
        let Some(class) = literal.map(|literal| literal.class) else {
            return !matches!(
                self.kind(),
                ParameterKind::Zone | ParameterKind::Time | ParameterKind::Email | ParameterKind::Url
            );
        };
        let named_after = match self.kind() {
            ParameterKind::Zone => class == LiteralClass::Zone,
            ParameterKind::Time => matches!(class, LiteralClass::Date) || value.is_number(),
            ParameterKind::Email => class == LiteralClass::Email,
            ParameterKind::Url => matches!(class, LiteralClass::Url | LiteralClass::Host),
            ParameterKind::Path => matches!(
                class,
                LiteralClass::Path | LiteralClass::Quoted | LiteralClass::Name | LiteralClass::Handle
            ),
            ParameterKind::Content => {
                !matches!(class, LiteralClass::Number | LiteralClass::Ordinal | LiteralClass::Date)
            }
            ParameterKind::Numbered => true,
            // A number inside a text parameter means something only with the word next to it.
            ParameterKind::Other => {
                value.is_number() || !matches!(class, LiteralClass::Number | LiteralClass::Ordinal)
            }
        };
        let zone_elsewhere = class == LiteralClass::Zone && self.kind() != ParameterKind::Zone;
        let said = self.is_named && matches!(self.kind(), ParameterKind::Content | ParameterKind::Other);
        (named_after || said) && !zone_elsewhere && (said || !self.is_for_what_the_file_holds(class))
    }

    /// Whether a path was given for a parameter that takes the content: the path of a table is no table.
    fn is_for_what_the_file_holds(&self, class: LiteralClass) -> bool {
        class == LiteralClass::Path
            && matches!(self.kind(), ParameterKind::Content | ParameterKind::Other)
            && !self.says(&["path", "file", "folder", "directory"])
    }

    /// The kind of the parameter: by its format, else by the last known word of its name.
    fn kind(&self) -> ParameterKind {
        match self.schema["format"].as_str() {
            Some("date" | "time" | "date-time") => return ParameterKind::Time,
            Some("email" | "idn-email") => return ParameterKind::Email,
            Some("uri" | "url" | "iri") => return ParameterKind::Url,
            _ => {}
        }
        if self.says(&["iana"]) {
            return ParameterKind::Zone;
        }
        let words = super::words(self.name);
        let of = |word: &String| NAMES.iter().find(|(_, names)| names.split(' ').any(|name| name == word));
        // `time_zone` is no time, and `zone` is its last word.
        words.iter().rev().find_map(of).map_or(ParameterKind::Other, |(kind, _)| *kind)
    }

    /// A number; `5 %` is 0.05 where the schema asks for a decimal.
    fn number(&self, literal: &IntentLiteral) -> Option<Value> {
        let decimal = self.says(&["decimal", "fraction"]);
        match literal.value.as_f64() {
            Some(number) if decimal && literal.text.ends_with('%') => Some(Value::from(number / 100.0)),
            _ => Some(literal.value.clone()),
        }
    }

    /// A text. Where the schema asks for a date, the day as `2026-11-16`, and `None` where it asks for a time as
    /// well. Where it asks for a time of day, only that.
    fn text(&self, literal: Option<&IntentLiteral>, text: &str) -> Option<Value> {
        let clock = self.schema["format"] == "time" || (self.says(&["hh:mm"]) && !self.says(&["yyyy"]));
        if clock {
            let is_date = literal.is_some_and(|literal| literal.class == LiteralClass::Date);
            return is_date.then(|| clock_time(text)).flatten().map(Value::from);
        }
        let wants_time = self.schema["format"] == "date-time" || self.says(&["hh:mm"]);
        let wants_day = self.schema["format"] == "date" || self.says(&["yyyy-mm-dd"]);
        let day = dates::parse_day(text);
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

/// The types that a schema allows, without null; empty where it does not restrict them.
fn types(schema: &Value) -> Vec<&str> {
    let mut types: Vec<&str> = Vec::new();
    match &schema["type"] {
        Value::String(one) => types.push(one),
        Value::Array(several) => types.extend(several.iter().filter_map(Value::as_str)),
        _ => {}
    }
    for member in ["anyOf", "oneOf"] {
        let several = schema[member].as_array().into_iter().flatten();
        types.extend(several.flat_map(self::types));
    }
    types.retain(|one| *one != "null");
    types
}

/// A time of day as `15:30`; `None` for anything else or more.
fn clock_time(text: &str) -> Option<String> {
    let lower = text.trim().to_lowercase();
    let (digits, afternoon) = match (lower.strip_suffix("am"), lower.strip_suffix("pm")) {
        (Some(digits), _) => (digits.trim_end(), Some(false)),
        (_, Some(digits)) => (digits.trim_end(), Some(true)),
        _ => (lower.as_str(), None),
    };
    let (hour, minute) = digits.split_once([':', 'h']).unwrap_or((digits, ""));
    let hour: u32 = hour.parse().ok()?;
    let minute: u32 = if minute.is_empty() { 0 } else { minute.get(..2)?.parse().ok()? };
    let hour = match afternoon {
        Some(afternoon) if (1..=12).contains(&hour) => hour % 12 + if afternoon { 12 } else { 0 },
        Some(_) => return None,
        None => hour,
    };
    (hour < 24 && minute < 60).then(|| format!("{hour:02}:{minute:02}"))
}

/// Whether a value satisfies a parameter's schema: limits, pattern, format. An invalid schema forbids nothing.
fn fits(schema: &Value, value: &Value) -> bool {
    let made = jsonschema::options()
        .with_pattern_options(PatternOptions::regex())
        .should_validate_formats(true)
        .build(schema);
    made.map_or(true, |validator| validator.is_valid(value))
}

/// `text` without the quotes around it.
fn unquoted(text: &str) -> &str {
    let pairs = [('\'', '\''), ('"', '"'), ('“', '”'), ('«', '»'), ('`', '`')];
    let inner = pairs.iter().find_map(|(open, close)| text.strip_prefix(*open)?.strip_suffix(*close));
    inner.unwrap_or(text).trim()
}

#[cfg(test)]
mod tests {
    use pml_language::literals;
    use serde_json::json;

    use super::*;

    fn said(intent: &str, name: &str, schema: &Value) -> Option<Value> {
        let literals = literals::literals(intent);
        WantedParameter { name, schema, is_named: false }.value_of(literals.first(), intent)
    }

    fn string(description: &str) -> Value {
        json!({ "type": "string", "description": description })
    }

    #[test]
    fn dates_are_written_as_they_are_wanted() {
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
    fn units_of_one_dimension_have_to_be_the_same() {
        let of = |intent: &str, name: &str, description: &str| {
            said(intent, name, &json!({ "type": "number", "description": description })).is_some()
        };
        assert!(!of("5 minutes of audio", "x", "how long, in seconds"));
        assert!(!of("within a 5km radius", "x", "The radius in meters"));
        assert!(!of("5 minutes avant l’été", "x", "in seconds"));
        assert!(!of("5 minutes", "timeoutMs", ""));
        assert!(!of("$5", "x", "the price in euros"));
        assert!(of("5 minutes", "x", "how long, in minutes"));
        assert!(of("5 minutes", "x", "how long"));
        assert!(of("5 kg", "x", "how long, in seconds"));
        assert!(of("5 apples", "x", "in seconds"));
        assert!(of("5 seconds", "duration_seconds", ""));
        assert!(of("5 min", "x", "in minutes or seconds"));
    }

    #[test]
    fn quotes_are_no_part_of_a_text() {
        let wanted = WantedParameter { name: "text", schema: &json!({ "type": "string" }), is_named: false };
        assert_eq!(wanted.value_of(None, "'he don't like it'"), Some(json!("he don't like it")));
    }

    #[test]
    fn a_value_goes_only_where_the_parameter_is_called_after_its_kind() {
        let plain = string("");
        for (intent, name) in [
            ("the last 5 commits", "message"),
            ("the last 5 commits", "revision"),
            ("now in Europe/Paris", "time"),
            ("now in Europe/Paris", "city"),
            ("at 15:00", "timezone"),
            ("meet tomorrow", "message"),
            ("write to ann@example.org", "url"),
            ("see https://example.org/a", "email"),
            ("the 3 newest", "path"),
            ("print data/people.csv", "csv"),
            ("parse config/app.json", "text"),
        ] {
            assert_eq!(said(intent, name, &plain), None, "{intent} as {name}");
        }
        for (intent, name, expected) in [
            ("issue 42", "issue_number", "42"),
            ("now in Europe/Paris", "timezone", "Europe/Paris"),
            ("now in Asia/Tokyo", "source_time_zone", "Asia/Tokyo"),
            ("write to ann@example.org", "email", "ann@example.org"),
            ("say 'hello there'", "message", "hello there"),
            ("read notes/a.txt", "file_path", "notes/a.txt"),
        ] {
            assert_eq!(said(intent, name, &plain), Some(json!(expected)), "{intent} as {name}");
        }
        let source = string("The file to parse.");
        assert_eq!(said("parse config/app.json", "source", &source), Some(json!("config/app.json")));
        let literals = literals::literals("revision 5");
        let revision = WantedParameter { name: "revision", schema: &plain, is_named: true };
        assert_eq!(revision.value_of(literals.first(), "5"), Some(json!("5")), "the word next to it says so");
    }

    #[test]
    fn a_time_of_day_is_written_as_clocks_show_it() {
        let time = string("Time to convert in 24-hour format (HH:MM)");
        for (intent, expected) in [
            ("at 15:30", Some("15:30")),
            ("at 3 pm", Some("15:00")),
            ("à 9h05", Some("09:05")),
            ("on 2025-01-31", None),
            ("tomorrow", None),
            ("in Asia/Tokyo", None),
        ] {
            assert_eq!(said(intent, "time", &time), expected.map(Value::from), "{intent}");
        }
    }

    #[test]
    fn limits_patterns_and_types_of_the_schema_hold() {
        let limited = json!({ "type": "integer", "minimum": 1, "maximum": 10 });
        assert_eq!(said("5 links", "count", &limited), Some(json!(5)));
        assert_eq!(said("50 links", "count", &limited), None);
        assert_eq!(said("2.5 links", "count", &limited), None);
        let pattern = json!({ "type": "string", "pattern": "^[A-Z]+-[0-9]+$" });
        assert_eq!(said("close ABC-12", "key", &pattern), Some(json!("ABC-12")));
        assert_eq!(said("close v1.2.3", "key", &pattern), None);
        let optional = json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] });
        assert_eq!(said("from 'main'", "base_branch", &optional), Some(json!("main")));
        let either = json!({ "type": ["integer", "null"] });
        assert_eq!(said("the first 7", "limit", &either), Some(json!(7)));
        let choice = json!({ "enum": [10, 20] });
        assert_eq!(said("show 20 rows", "rows", &choice), Some(json!(20)));
        assert_eq!(said("show 30 rows", "rows", &choice), None);
        let address = json!({ "type": "string", "format": "uri" });
        assert_eq!(said("of example.org", "data", &address), None, "no scheme");
    }
}
