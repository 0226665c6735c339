//! Detects a number whose unit differs from that of the parameter: `5 minutes` is not 5 seconds.

use serde_json::Value;

/// Units by dimension, each with its names.
const KINDS: &[&[&[&str]]] = &[
    &[
        &["millisecond", "ms"],
        &["second", "sec", "seconde"],
        &["minute", "min"],
        &["hour", "heure"],
        &["day", "jour"],
        &["week", "semaine"],
        &["month", "mois"],
        &["year", "an"],
    ],
    &[
        &["meter", "metre", "m"],
        &["kilometer", "kilometre", "km"],
        &["mile"],
        &["foot", "feet", "ft"],
        &["centimeter", "centimetre", "cm"],
        &["inch", "inche"],
    ],
    &[&["gram", "gramme", "g"], &["kilogram", "kilogramme", "kg"], &["pound", "lb"]],
    &[&["byte"], &["kilobyte", "kb"], &["megabyte", "mb"], &["gigabyte", "gb"]],
];

/// Whether `after` begins with another unit than the name or the description of the parameter mentions.
pub(super) fn units_differ(after: &str, name: &str, schema: &Value) -> bool {
    // A unit stands right after its number, so only the next 20 bytes are searched.
    let said = words(pml_language::byte_prefix(after, 20)).next();
    let description = schema["description"].as_str().unwrap_or_default();
    let Some((kind, unit)) = said.and_then(|word| unit(&word)) else { return false };
    let own = super::words(name).into_iter();
    let named: Vec<(usize, usize)> =
        own.chain(words(description)).filter_map(|word| self::unit(&word)).collect();
    let mut alike = named.iter().filter(|(of, _)| *of == kind).peekable();
    alike.peek().is_some() && alike.all(|(_, named)| *named != unit)
}

/// The indices of a unit's dimension and of the unit within it.
fn unit(word: &str) -> Option<(usize, usize)> {
    let bare = word.strip_suffix('s').filter(|bare| bare.len() > 1).unwrap_or(word);
    KINDS.iter().enumerate().find_map(|(kind, units)| {
        let place = units.iter().position(|names| names.contains(&bare) || names.contains(&word))?;
        Some((kind, place))
    })
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn units_of_one_kind_have_to_be_the_same() {
        let schema = |description: &str| json!({ "description": description });
        assert!(units_differ(" minutes of audio", "x", &schema("how long, in seconds")));
        assert!(units_differ("km radius", "x", &schema("The radius in meters")));
        assert!(!units_differ(" minutes", "x", &schema("how long, in minutes")));
        assert!(!units_differ(" minutes", "x", &schema("how long")));
        assert!(!units_differ(" kg", "x", &schema("how long, in seconds")));
        assert!(
            units_differ(" minutes avant l’été", "x", &schema("in seconds")),
            "wherever the twentieth byte falls"
        );
        assert!(!units_differ(" apples", "x", &schema("in seconds")));
        assert!(units_differ(" minutes", "timeoutMs", &schema("")));
        assert!(!units_differ(" seconds", "duration_seconds", &schema("")));
        assert!(!units_differ(" min", "x", &schema("in minutes or seconds")));
    }
}
