//! Whether a number is said in another unit than a parameter takes: `5 minutes` is not 5 for one that counts seconds.

use serde_json::Value;

/// Units of one kind, each by its names.
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

/// Whether the unit that `after` begins with is another than the one that the name or the description of a parameter names.
pub(super) fn differ(after: &str, name: &str, schema: &Value) -> bool {
    // A unit stands next to its number, which the next sentence does not.
    let said = words(pml_graph::tokens::beginning(after, 20)).next();
    let description = schema["description"].as_str().unwrap_or_default();
    let Some((kind, unit)) = said.and_then(|word| unit(&word)) else { return false };
    let own = super::words(name).into_iter();
    let named: Vec<(usize, usize)> =
        own.chain(words(description)).filter_map(|word| self::unit(&word)).collect();
    let mut alike = named.iter().filter(|(of, _)| *of == kind).peekable();
    alike.peek().is_some() && alike.all(|(_, named)| *named != unit)
}

/// The kind and the number of a unit.
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
        assert!(differ(" minutes of audio", "x", &schema("how long, in seconds")));
        assert!(differ("km radius", "x", &schema("The radius in meters")));
        assert!(!differ(" minutes", "x", &schema("how long, in minutes")));
        assert!(!differ(" minutes", "x", &schema("how long")));
        assert!(!differ(" kg", "x", &schema("how long, in seconds")));
        assert!(
            differ(" minutes avant l’été", "x", &schema("in seconds")),
            "wherever the twentieth byte falls"
        );
        assert!(!differ(" apples", "x", &schema("in seconds")));
        assert!(differ(" minutes", "timeoutMs", &schema("")));
        assert!(!differ(" seconds", "duration_seconds", &schema("")));
        assert!(!differ(" min", "x", &schema("in minutes or seconds")));
    }
}
