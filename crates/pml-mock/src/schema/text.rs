//! Texts: of a format, of a pattern, or plausible for the name of their field.

use serde_json::{Map, Value};

use super::Choice;
use crate::names;
use crate::pattern::Pattern;
use crate::random::Random;

/// Maximum number of characters that a `minLength` makes a text have; a longer one would be a text bomb.
const MAX_CHARS: usize = 100_000;

/// A text that satisfies `schema`, plausible for a field of this name in an object of that name.
pub(super) fn text(
    schema: &Map<String, Value>,
    parent: &str,
    name: &str,
    choice: Choice,
    random: &mut Random,
) -> String {
    let length = |keyword: &str| {
        let length = schema.get(keyword).and_then(Value::as_f64).filter(|length| *length >= 0.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        length.map(|length| length as usize)
    };
    let min = length("minLength").unwrap_or(0).min(MAX_CHARS);
    let max = length("maxLength").unwrap_or(MAX_CHARS).max(min);
    let usual = match schema.get("format").and_then(Value::as_str) {
        Some(format) => names::of_format(format, random),
        None => None,
    };
    let is_formatted = usual.is_some();
    let usual = usual.unwrap_or_else(|| names::text(parent, name, random));
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        return matching(pattern, usual, min, max, random);
    }
    match choice {
        Choice::Lowest if !is_formatted => fit(String::new(), min, max),
        Choice::Highest if !is_formatted && max <= 1_000 => fit(usual, max, max),
        Choice::Other if !is_formatted => fit(names::other_text(random), min, max),
        Choice::Usual | Choice::Lowest | Choice::Highest | Choice::Other => fit(usual, min, max),
    }
}

/// A text that matches `pattern`: a plausible one if one does, else a drawn one.
fn matching(pattern: &str, usual: String, min: usize, max: usize, random: &mut Random) -> String {
    if let Ok(expression) = regex::Regex::new(pattern) {
        let fits = |text: &String| (min..=max).contains(&text.chars().count()) && expression.is_match(text);
        if fits(&usual) {
            return usual;
        }
        if let Some(plausible) = names::common(random).into_iter().find(fits) {
            return plausible;
        }
    }
    match Pattern::parse(pattern) {
        Some(pattern) => pattern.draw(random, min, max),
        None => fit(usual, min, max),
    }
}

/// `text` cut or filled up to `min` to `max` characters.
fn fit(text: String, min: usize, max: usize) -> String {
    let length = text.chars().count();
    if length > max {
        return text.chars().take(max).collect();
    }
    let filler = if text.is_empty() { "example".to_owned() } else { text.clone() };
    let mut text = text;
    text.extend(filler.chars().cycle().take(min.saturating_sub(length)));
    text
}
