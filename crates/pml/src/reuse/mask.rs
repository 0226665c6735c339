//! Texts of intents without their values, and in one language.
//!
//! Two requests for the same procedure differ mostly in their values, and what an embedding says of a sentence is
//! mostly about these. With the values replaced by what they are (`file`, `number`), requests for the same procedure
//! are closer than others.

use pml_language::french;

use super::LONGEST;
use super::literals::{IntentLiteral, LiteralClass, literals};

/// The intent in English with its values replaced by what they are.
pub fn masked(intent: &str) -> String {
    let english = in_english(intent);
    let english = english.map(|english| english.replace(french::BETWEEN_MEANINGS, " "));
    let text = english.as_deref().unwrap_or(intent).replace("°F", "Fahrenheit").replace("°C", "Celsius");
    replace_literals(&text, kind)
}

/// The English gloss of a French intent, with its values as they are and its words with all their meanings; `None` for any
/// other intent.
pub(super) fn in_english(intent: &str) -> Option<String> {
    if intent.len() > LONGEST || intent.contains('`') {
        return None;
    }
    // What is in quotation marks is not translated. A preposition before a value stays as it is, because many French ones
    // have several meanings: `à Paris` is `in Paris` or `to Paris`.
    let mut values: Vec<&str> = Vec::new();
    let mut held = String::with_capacity(intent.len());
    let mut done = 0;
    for literal in literals(intent) {
        let start = start_with_preposition(&intent[done..literal.span.start]) + done;
        held.push_str(&intent[done..start]);
        held.push_str(&format!("`{}`", values.len()));
        values.push(&intent[start..literal.span.end]);
        done = literal.span.end;
    }
    held.push_str(&intent[done..]);
    let mut gloss = french::gloss_with_meanings(&held)?;
    for (at, value) in values.iter().enumerate() {
        let place = format!("`{at}`");
        if gloss.matches(&place).count() != 1 {
            return None;
        }
        gloss = gloss.replace(&place, value);
    }
    Some(gloss)
}

/// Where the preposition begins that ends `text`, or the end of `text` if there is none.
fn start_with_preposition(text: &str) -> usize {
    let Some(before) = text.strip_suffix(' ') else { return text.len() };
    let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    // `plus de 20` and `moins de 20` compare.
    let compares = before[..before.len() - word.len()].trim_end().rsplit(char::is_whitespace).next();
    if compares.is_some_and(|word| ["plus", "moins"].contains(&word.to_lowercase().as_str())) {
        return text.len();
    }
    let known =
        ["à", "au", "aux", "de", "du", "des", "en", "par", "selon"].contains(&word.to_lowercase().as_str());
    if known { before.len() - word.len() } else { text.len() }
}

fn replace_literals(intent: &str, with: impl Fn(&IntentLiteral) -> String) -> String {
    let mut text = String::with_capacity(intent.len());
    let mut done = 0;
    for literal in &literals(intent) {
        text.push_str(&intent[done..literal.span.start]);
        text.push_str(&with(literal));
        done = literal.span.end;
    }
    text.push_str(&intent[done..]);
    text
}

/// What a value is, in words.
fn kind(literal: &IntentLiteral) -> String {
    let word = match literal.class {
        LiteralClass::Path => {
            match literal.text.rsplit(['/', '\\']).next().and_then(|name| name.rsplit_once('.')) {
                Some((_, extension)) if !extension.is_empty() => return format!("{extension} file"),
                Some(_) | None => "folder",
            }
        }
        LiteralClass::Quoted => "\"text\"",
        LiteralClass::Url => "url",
        LiteralClass::Host => "host",
        LiteralClass::Email => "email address",
        LiteralClass::Zone => "time zone",
        LiteralClass::Date => "date",
        LiteralClass::Id => "id",
        LiteralClass::Version => "version",
        LiteralClass::Channel => "channel",
        LiteralClass::Handle => "user",
        LiteralClass::Phone => "phone number",
        LiteralClass::Number | LiteralClass::Ordinal => return format!("number{}", unit(literal)),
        LiteralClass::Name => "name",
    };
    word.to_owned()
}

fn unit(literal: &IntentLiteral) -> String {
    let unit = literal.unit();
    if unit.is_empty() { unit } else { format!(" {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_replaced_by_what_they_are() {
        let cases = [
            ("add the line \"call Bob\" to inbox/home.md", "add the line \"text\" to md file"),
            ("top 3 products in data/", "top number products in folder"),
            ("mail bob@example.org about 5 %", "mail email address about number %"),
        ];
        for (intent, expected) in cases {
            assert_eq!(masked(intent), expected);
        }
    }

    #[test]
    fn a_gloss_keeps_values() {
        let gloss = in_english("ajoute la ligne \"relire le contrat\" à inbox/later.md").unwrap();
        assert!(gloss.contains("\"relire le contrat\"") && gloss.contains("inbox/later.md"), "{gloss}");
        assert!(gloss.contains("add") && gloss.contains("line"), "{gloss}");
        assert_eq!(in_english("add the line to inbox/later.md"), None);
    }
}
