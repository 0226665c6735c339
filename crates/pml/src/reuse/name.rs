//! Names for capabilities that a program can write: `capabilities.countWords`.

use super::fold::fold;
use super::words::{IntentToken, WordFunction, tokenize};

/// The longest name, in characters, so that a list of names stays readable.
const LONGEST: usize = 40;
/// The number of words of an intent that make a name.
const WORDS: usize = 5;

/// A readable name for a capability: from the hint, else from the words of the intent, else from its tools. The name
/// consists of 3 to 40 ASCII letters and digits in camel case and is no reserved word of TypeScript.
pub fn name_for(hint: Option<&str>, intent: &str, tools: &[&str]) -> String {
    let words = [hint.map(split).unwrap_or_default(), of_intent(intent), of_tools(tools)];
    words.iter().filter_map(|words| camel(words)).next().unwrap_or_else(|| "procedure".to_owned())
}

/// The content words of the intent in order, without values.
fn of_intent(intent: &str) -> Vec<String> {
    let tokens = tokenize(intent);
    let wanted = tokens.iter().filter_map(|token| match token {
        IntentToken::Word(word)
            if matches!(word.function, WordFunction::Content | WordFunction::Negation) =>
        {
            Some(word.raw.as_str())
        }
        IntentToken::Word(word) if word.function == WordFunction::Ask && is_verb(&word.raw) => {
            Some(word.raw.as_str())
        }
        IntentToken::Literal(_) | IntentToken::Word(_) => None,
    });
    wanted.flat_map(split).take(WORDS).collect()
}

/// Whether a word is no question word. Question words request something too, but `what` names nothing.
fn is_verb(word: &str) -> bool {
    !["what", "which", "quel", "quelle", "quels", "quelles"].contains(&fold(word).as_str())
}

/// The words of the `server:tool` names, in order.
fn of_tools(tools: &[&str]) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut server = "";
    for tool in tools {
        // Consecutive tools of one server name the server once.
        let name = match tool.split_once(':') {
            Some((of, name)) if of == server => name,
            Some((of, _)) => {
                server = of;
                tool
            }
            None => tool,
        };
        words.extend(split(name));
    }
    words
}

/// The words of a text or an identifier, folded to ASCII.
fn split(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut lower) = (String::new(), false);
    for c in text.chars() {
        let boundary = !c.is_alphanumeric() || (lower && c.is_uppercase());
        if boundary && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.push_str(&fold(&c.to_string()));
        }
        lower = c.is_lowercase() || c.is_ascii_digit();
    }
    words.push(word);
    for word in &mut words {
        word.retain(|c| c.is_ascii_alphanumeric());
    }
    words.retain(|word| !word.is_empty());
    words
}

/// As many words as fit, in camel case; `None` where they make no name.
fn camel(words: &[String]) -> Option<String> {
    let mut name = String::new();
    for word in words.iter().skip_while(|word| word.starts_with(|c: char| c.is_ascii_digit())) {
        if !name.is_empty() && name.len() + word.len() > LONGEST {
            break;
        }
        let mut letters = word.chars();
        match letters.next() {
            Some(first) if !name.is_empty() => name.push(first.to_ascii_uppercase()),
            Some(first) => name.push(first),
            None => {}
        }
        name.push_str(letters.as_str());
    }
    name.truncate(LONGEST);
    if RESERVED.contains(&name.as_str()) {
        name.push_str("It");
    }
    (name.len() >= 3).then_some(name)
}

/// Reserved words of TypeScript, and properties that every object has.
const RESERVED: &[&str] = &[
    "abstract",
    "any",
    "arguments",
    "async",
    "await",
    "boolean",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "constructor",
    "continue",
    "debugger",
    "declare",
    "default",
    "delete",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "implements",
    "import",
    "instanceof",
    "interface",
    "let",
    "module",
    "namespace",
    "new",
    "null",
    "number",
    "object",
    "package",
    "private",
    "protected",
    "prototype",
    "public",
    "require",
    "return",
    "static",
    "string",
    "super",
    "switch",
    "symbol",
    "this",
    "throw",
    "toString",
    "true",
    "try",
    "type",
    "typeof",
    "undefined",
    "unknown",
    "valueOf",
    "var",
    "void",
    "while",
    "with",
    "yield",
    "then",
    "catch",
];
