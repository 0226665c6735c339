//! Units of measurement: which unit a word or a sign names. Nothing is converted.

/// What a unit measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// A duration.
    Time,
    /// A distance.
    Length,
    /// A weight.
    Mass,
    /// An amount of data.
    Data,
    /// An amount of money.
    Money,
    /// A volume.
    Volume,
    /// Energy or power.
    Energy,
    /// A part of a whole.
    Share,
}

/// A unit of measurement. Two units are equal when they are the same, however they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// What it measures.
    pub dimension: Dimension,
    /// The first of its names.
    name: &'static str,
}

impl Unit {
    /// The first of its names, which is English.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// The units of each dimension, each with its names in English and French. All words are singular and folded.
const UNITS: &[(Dimension, &[&[&str]])] = &[
    (
        Dimension::Time,
        &[
            &["millisecond", "milliseconde", "ms"],
            &["second", "sec", "seconde"],
            &["minute", "min"],
            &["hour", "heure"],
            &["day", "jour"],
            &["week", "semaine"],
            &["month", "mois"],
            &["year", "an", "annee"],
        ],
    ),
    (
        Dimension::Length,
        &[
            &["meter", "metre", "m"],
            &["kilometer", "kilometre", "km"],
            &["mile"],
            &["foot", "feet", "ft"],
            &["centimeter", "centimetre", "cm"],
            &["inch", "inche"],
        ],
    ),
    (Dimension::Mass, &[&["gram", "gramme", "g"], &["kilogram", "kilogramme", "kg"], &["pound", "lb"]]),
    (Dimension::Data, &[&["byte", "octet"], &["kilobyte", "kb"], &["megabyte", "mb"], &["gigabyte", "gb"]]),
    // A pound is mostly a weight, so the currency is recognised by its sign and its code alone.
    (Dimension::Money, &[&["dollar", "usd", "$"], &["euro", "eur", "€"], &["gbp", "£"]]),
    (Dimension::Volume, &[&["litre", "liter"], &["millilitre", "milliliter", "ml"], &["gallon"], &["pint"]]),
    (
        Dimension::Energy,
        &[&["kilowatthour", "kwh"], &["watt"], &["kilowatt", "kw"], &["calorie", "kcal"], &["joule"]],
    ),
    (Dimension::Share, &[&["percent", "%", "pourcent"]]),
];

/// The unit that a word or a sign names.
pub fn unit_named(word: &str) -> Option<Unit> {
    let folded = crate::fold::fold(word);
    let singular = folded.strip_suffix('s').filter(|bare| bare.len() > 1).unwrap_or(&folded);
    UNITS.iter().find_map(|(dimension, units)| {
        let names =
            units.iter().find(|names| names.contains(&singular) || names.contains(&folded.as_str()))?;
        Some(Unit { dimension: *dimension, name: names[0] })
    })
}

/// The unit that the beginning of `after`, the text behind a number, names: ` minutes of audio`, `-pound`.
pub(crate) fn unit_after(after: &str) -> Option<Unit> {
    let rest = after.trim_start_matches([' ', '-', '\u{a0}', '\u{202f}']);
    let sign = rest.chars().next().filter(|c| "%€$£".contains(*c));
    match sign {
        Some(sign) => unit_named(sign.encode_utf8(&mut [0; 4])),
        None => {
            let end = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
            unit_named(&rest[..end])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_has_many_names() {
        for (one, other) in
            [("minutes", "min"), ("Heures", "hour"), ("$", "USD"), ("années", "years"), ("km", "kilomètres")]
        {
            assert_eq!(unit_named(one), unit_named(other), "{one} {other}");
            assert!(unit_named(one).is_some(), "{one}");
        }
        for word in ["", "apples", "s", "£$"] {
            assert_eq!(unit_named(word), None, "{word}");
        }
    }

    #[test]
    fn a_unit_stands_right_after_its_number() {
        let dimension = |after: &str| unit_after(after).map(|unit| unit.dimension);
        assert_eq!(dimension(" minutes avant l’été"), Some(Dimension::Time));
        assert_eq!(dimension("-pound hammer"), Some(Dimension::Mass));
        assert_eq!(dimension(" % of it"), Some(Dimension::Share));
        assert_eq!(dimension(" of the minutes"), None);
        assert_eq!(dimension(". Minutes"), None);
    }
}
