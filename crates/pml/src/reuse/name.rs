//! Names and descriptions of capabilities: `capabilities.averageSalaryByDepartment`, and the intent it was learned from
//! with its values as placeholders.

use serde_json::Value;

use super::fold::fold;
use super::literals::LiteralClass;
use super::read::ReadIntent;
use super::template::{IntentTemplate, LiteralPart, TemplateSlot};
use super::vocabulary as table;
use super::words::{IntentToken, IntentWord, WordFunction};

/// The longest name, in characters, so that a list of names stays readable.
const LONGEST: usize = 40;
/// The number of words of an intent that make a name, those that only join others not counted.
const WORDS: usize = 5;
/// The number of words up to which a name also says where its input comes from: `countWordsInFile`.
const SHORT: usize = 2;

/// A readable name for a capability: from the hint, else from the words of the intent, else from its tools. The values of
/// `parameters`, a JSON Schema with defaults, are no part of it. The name consists of 3 to 40 ASCII letters and digits in
/// camel case and is no reserved word of TypeScript.
pub fn name_for(hint: Option<&str>, intent: &str, parameters: &Value, tools: &[&str]) -> String {
    let words = [hint.map(split).unwrap_or_default(), of_intent(intent, parameters), of_tools(tools)];
    words.iter().filter_map(|words| camel(words)).next().unwrap_or_else(|| "procedure".to_owned())
}

/// The intent with the values of the parameters as placeholders: `count the words in {path}`.
pub fn describe(intent: &str, parameters: &Value) -> String {
    let read = ReadIntent::new(intent);
    let template = template(&read, parameters);
    let mut text = String::new();
    let mut from = 0;
    for slot in &template.slots {
        let start = template.tokens[slot.range.start].span().start;
        let end = template.tokens[slot.range.end - 1].span().end;
        if start >= from {
            text.push_str(&intent[from..start]);
            text.push_str(&placeholder(slot));
            from = end;
        }
    }
    text.push_str(&intent[from..]);
    text
}

/// The name of the parameter of a slot in braces; of a split literal, both names.
fn placeholder(slot: &TemplateSlot) -> String {
    let names = slot.parameters.iter().map(|(name, _, part)| (name, *part));
    let halves: Vec<String> = names
        .clone()
        .filter(|(_, part)| matches!(part, LiteralPart::Half(_)))
        .map(|(name, _)| format!("{{{name}}}"))
        .collect();
    match halves.is_empty() {
        true => names.take(1).map(|(name, _)| format!("{{{name}}}")).collect(),
        false => halves.join("/"),
    }
}

/// The intent with the slots in which it names the first values of the parameters.
fn template<'i>(intent: &'i ReadIntent, parameters: &Value) -> IntentTemplate<'i> {
    let properties = parameters.get("properties").and_then(Value::as_object);
    let first_value =
        |schema: &Value| schema.get("default").or_else(|| schema.get("examples")?.get(0)).cloned();
    let values = properties.into_iter().flatten().filter_map(|(name, schema)| {
        // A flag is said in words that belong to the sentence.
        let value = first_value(schema).filter(|value| !value.is_boolean())?;
        Some((name.clone(), vec![value]))
    });
    IntentTemplate::new(intent, &values.collect::<Vec<_>>())
}

/// The words of the intent that say what is done, in order.
fn of_intent(intent: &str, parameters: &Value) -> Vec<String> {
    let read = ReadIntent::new(intent);
    let template = template(&read, parameters);
    let mut name = NameWords::default();
    let mut at = 0;
    while at < template.tokens.len() {
        if let Some(slot) = template.slot_at(at) {
            let slot = &template.slots[slot];
            let literal = template.literal(slot).map(|literal| (literal.class, literal.text.as_str()));
            let noun = noun_after(&template, slot);
            at = slot.range.end + usize::from(name.value(slot_parameter(slot), literal, noun));
            continue;
        }
        match &template.tokens[at] {
            IntentToken::Literal(literal) if literal.class == LiteralClass::Name => {
                // Not a parameter, so it belongs to what is done: `to Celsius`.
                name.content(&literal.text);
            }
            IntentToken::Literal(literal) => {
                name.value("", Some((literal.class, &literal.text)), None);
            }
            IntentToken::Word(word)
                if CLAUSES.contains(&fold(&word.raw).as_str()) && !name.words.is_empty() =>
            {
                break;
            }
            IntentToken::Word(word) => name.word(word, at == 0),
        }
        at += 1;
    }
    name.finish()
}

/// The noun directly after a slot: `department` of `the Sales department`.
fn noun_after<'t>(template: &'t IntentTemplate<'_>, slot: &TemplateSlot) -> Option<&'t IntentWord> {
    let end = template.tokens[slot.range.end - 1].span().end;
    let noun = template.tokens.get(slot.range.end).and_then(IntentToken::content_word)?;
    let is_next = template.intent[end..noun.span.start].trim().is_empty();
    (is_next && !CLAUSES.contains(&fold(&noun.raw).as_str())).then_some(noun)
}

fn slot_parameter(slot: &TemplateSlot) -> &str {
    slot.parameters.first().map_or("", |(name, ..)| name)
}

/// A name while it is made.
#[derive(Default)]
struct NameWords {
    words: Vec<String>,
    /// The number of words that do not only join others.
    content: usize,
    /// The English preposition before the next word.
    role: Option<&'static str>,
    /// Whether a value that follows is the object of the word before it.
    object_follows: bool,
    /// The noun before a literal that repeats what the literal shows.
    noun: Option<String>,
    /// What the procedure is a function of: `ByDepartment`, `InFile`.
    suffixes: Vec<(SuffixKind, [String; 2])>,
}

/// What a suffix says, most telling first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum SuffixKind {
    /// A noun of the intent: `of the Sales department`.
    Noun,
    /// A parameter with a telling name.
    Parameter,
    /// A file or a folder.
    Source,
}

impl NameWords {
    fn word(&mut self, word: &IntentWord, is_first: bool) {
        let folded = fold(&word.raw);
        match word.function {
            WordFunction::Role(_) => {
                self.role = SMALL_WORDS.iter().copied().find(|small| *small == folded);
                self.noun = None;
            }
            WordFunction::Light => self.noun = Some(folded),
            WordFunction::Joining if folded == "and" && self.content > 0 => self.role = Some("and"),
            WordFunction::Stating if is_first && ["is", "are"].contains(&folded.as_str()) => {
                self.push(&folded);
            }
            // `and tell me` asks for what follows and does nothing itself.
            WordFunction::Ask if word.raw.contains(char::is_whitespace) => self.role = None,
            WordFunction::Ask if is_verb(&word.raw) => self.content(&word.raw),
            WordFunction::Content | WordFunction::Negation if EMPTY_WORDS.contains(&folded.as_str()) => {}
            WordFunction::Content if word.concept == "how_much" => {}
            // A phrase is named by what it means: `how many` counts.
            WordFunction::Content if word.raw.contains(char::is_whitespace) => self.content(&word.concept),
            WordFunction::Content | WordFunction::Negation => self.content(&word.raw),
            WordFunction::Stating => self.object_follows = false,
            WordFunction::Nothing | WordFunction::Ask | WordFunction::Joining => {}
        }
    }

    /// Adds words that say what is done, after the preposition before them.
    fn content(&mut self, text: &str) {
        if let Some(role) = self.role.take().filter(|_| self.content > 0 && self.content < WORDS) {
            self.words.push(role.to_owned());
        }
        for word in split(text) {
            self.push(&word);
        }
        self.object_follows = true;
        self.noun = None;
    }

    fn push(&mut self, word: &str) {
        if self.content < WORDS {
            self.words.push(word.to_owned());
            self.content += 1;
        }
    }

    /// Notes a value of the intent, with the noun after it. Whether that noun belongs to the value.
    fn value(
        &mut self,
        parameter: &str,
        literal: Option<(LiteralClass, &str)>,
        noun: Option<&IntentWord>,
    ) -> bool {
        let role = self.role.take();
        let class = literal.map(|(class, _)| class);
        let is_counted = matches!(class, Some(LiteralClass::Number | LiteralClass::Ordinal));
        let may_qualify = !is_counted && class != Some(LiteralClass::Path);
        if let (Some(_), Some(noun), true) = (role, noun, may_qualify) {
            self.suffixes.push((SuffixKind::Noun, ["by".to_owned(), fold(&noun.raw)]));
            return true;
        }
        match (literal, role) {
            (Some((LiteralClass::Path, path)), role) if !NO_PATHS.contains(&parameter) => {
                self.path(path, role);
            }
            (Some((LiteralClass::Date, _)), Some("between")) => {
                self.suffixes.push((SuffixKind::Parameter, ["between".to_owned(), "dates".to_owned()]));
            }
            (_, Some(role)) if is_telling(parameter) && !is_counted => {
                self.suffixes.push((SuffixKind::Parameter, [role.to_owned(), parameter.to_owned()]));
            }
            (_, _) => {}
        }
        self.noun = None;
        false
    }

    /// Notes a path: the object of the verb before it, or where the input comes from.
    fn path(&mut self, path: &str, role: Option<&'static str>) {
        let is_file = path.rsplit('/').next().is_some_and(|last| last.contains('.'));
        let shown = if is_file { "file" } else { "folder" };
        let noun = self.noun.take().filter(|noun| table::FILE_NOUNS.contains(&noun.as_str()));
        let noun = noun.unwrap_or_else(|| shown.to_owned());
        match role {
            Some(role) if role != "and" => {
                self.suffixes.push((SuffixKind::Source, [role.to_owned(), noun]));
            }
            Some(_) if self.words.last() == Some(&noun) => {
                self.words.last_mut().into_iter().for_each(|last| last.push('s'));
            }
            _ if self.content == 1 && self.object_follows => self.push(&noun),
            _ => {}
        }
    }

    /// The words of the name. Of what it is a function of, it says one thing.
    fn finish(mut self) -> Vec<String> {
        self.suffixes.sort_by_key(|(kind, _)| *kind);
        let room = |kind: SuffixKind| if kind == SuffixKind::Noun { SHORT + 1 } else { SHORT };
        let suffix = self.suffixes.into_iter().next().filter(|(kind, words)| {
            (1..=room(*kind)).contains(&self.content) && !self.words.contains(&words[1])
        });
        self.words.extend(suffix.into_iter().flat_map(|(_, words)| words));
        self.words
    }
}

/// Prepositions that a name can contain, and the word that joins two steps.
const SMALL_WORDS: &[&str] =
    &["by", "to", "into", "from", "in", "of", "for", "on", "between", "per", "with", "as", "at", "about"];

/// Parameters whose values look like paths and are none: `server.port`.
const NO_PATHS: &[&str] = &["key", "name", "pattern", "query"];

/// Words that begin a clause which says when or otherwise; a name ends before them.
const CLAUSES: &[&str] = &["or", "ou", "if", "si", "when", "quand", "unless", "because", "so"];

/// Content words that name nothing.
const EMPTY_WORDS: &[&str] = &[
    "all",
    "each",
    "every",
    "tous",
    "toutes",
    "chaque",
    "percent",
    "degrees",
    "according",
    "its",
    "much",
    "how",
];

/// Whether the name of a parameter says what it is. Those that any tool could have do not.
fn is_telling(parameter: &str) -> bool {
    let generic = [
        "text",
        "value",
        "values",
        "data",
        "input",
        "expression",
        "pattern",
        "query",
        "content",
        "path",
        "string",
        "arg",
        "args",
        "key",
        "name",
        "url",
        "limit",
    ];
    let plain = parameter.chars().all(|c| c.is_ascii_alphabetic());
    plain && (3..=14).contains(&parameter.len()) && !generic.contains(&parameter)
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
