//! What a tool takes and gives, read from its schemas: fields with words, a kind and a place.
//!
//! Schemas are written by strangers: references, unions and odd type names are read as well as can be,
//! nothing is followed deeper or further than the limits below, and what is not understood counts as
//! "any kind".

use serde_json::Value;

use crate::tokens;

/// How deep results are looked into.
const DEPTH: usize = 4;
/// How many fields of one tool are told apart, on each side.
const MOST_FIELDS: usize = 120;
/// How many references are followed from one schema to another.
const MOST_REFERENCES: usize = 8;

/// A tool as its server or its traces describe it.
#[derive(Debug, Clone, Copy)]
pub struct Definition<'a> {
    /// The id under which edges name it.
    pub id: &'a str,
    /// Its own name, without the server's.
    pub name: &'a str,
    /// What it does.
    pub description: &'a str,
    /// JSON Schema of the arguments.
    pub input: &'a Value,
    /// JSON Schema of the result, declared or observed.
    pub output: Option<&'a Value>,
}

/// A tool's fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// As in [`Definition`].
    pub id: String,
    /// The words of its name, in order: usually a verb and what it works on.
    pub name: Vec<String>,
    /// The words of its description.
    pub description: Words,
    /// What it takes, at the first level of its arguments.
    pub inputs: Vec<Input>,
    /// Whether its schema says nothing of what it takes, neither that it takes nothing.
    pub undeclared: bool,
    /// What it gives, at every level that was looked into.
    pub outputs: Vec<Output>,
}

/// A parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// Its name, as calls write it.
    pub name: String,
    /// The words of the name.
    pub words: Vec<String>,
    /// What kind of value it takes.
    pub kind: Kind,
    /// Whether a call has to give it.
    pub required: bool,
    /// The words of its description.
    pub description: Words,
    /// The values it is limited to, in lower case, where the schema says so.
    pub choices: Vec<String>,
}

/// A field of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// Where it is: `user.id`, `items[].name`; empty for the whole result.
    pub path: String,
    /// The words of its own name.
    pub words: Vec<String>,
    /// What kind of value it holds.
    pub kind: Kind,
    /// The words of its description.
    pub description: Words,
}

/// Words in order, as one text: there are many of them, and they are seldom looked at.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Words(Box<str>);

impl Words {
    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split_terminator(' ')
    }
}

impl<W: AsRef<str>> FromIterator<W> for Words {
    fn from_iter<I: IntoIterator<Item = W>>(words: I) -> Words {
        let mut text = String::new();
        for word in words {
            text.push_str(word.as_ref());
            text.push(' ');
        }
        Words(text.into())
    }
}

/// Kinds of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    String,
    /// A number, whole or not.
    Number,
    /// True or false.
    Boolean,
    /// A list.
    Array,
    /// An object.
    Object,
    /// Not said, or several.
    Any,
}

impl Kind {
    /// How well a value of this kind serves where `wanted` is asked for, from 0 (not at all) to 1.
    ///
    /// A list serves where one of its elements would, and one value where a list of one would. Numbers
    /// and objects can be written as text; text is rarely a number, and a list rarely one of numbers.
    pub fn serves(self, wanted: Kind) -> f32 {
        use Kind::{Any, Array, Boolean, Number, Object, String};
        match (self, wanted) {
            (a, b) if a == b => 1.0,
            // What may be anything goes where anything goes before it goes where a text is wanted.
            (Any, _) | (_, Any) => 0.9,
            (Boolean, _) | (_, Boolean) => 0.0,
            (String | Array, Number) => 0.5,
            (Array, _) | (_, Array) | (Number, String) => 0.8,
            (Object, String) => 0.7,
            (Object, Number) | (String | Number, Object) => 0.0,
            (String, String) | (Number, Number) | (Object, Object) => 1.0,
        }
    }
}

impl Tool {
    /// Reads the fields of a tool.
    pub fn read(definition: &Definition<'_>) -> Tool {
        Tool {
            id: definition.id.to_owned(),
            name: words(definition.name),
            description: content_words(definition.description),
            inputs: inputs(definition.input),
            undeclared: is_undeclared(definition.input),
            outputs: definition.output.map(outputs).unwrap_or_default(),
        }
    }

    /// The input of this name.
    pub fn input(&self, name: &str) -> Option<&Input> {
        self.inputs.iter().find(|input| input.name == name)
    }
}

/// The words of a name: split, folded, stemmed, without numbers at their end (`num1` is another `num`).
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folded = String::new();
    tokens::each_word(text, |word| {
        if word.compound {
            return;
        }
        tokens::fold(word.text, &mut folded);
        let bare = folded.trim_end_matches(|c: char| c.is_ascii_digit());
        if !bare.is_empty() {
            // Small words matter in names (`from`, `to`), so they stay, as they are.
            found.push(tokens::term(bare).map_or_else(|| bare.to_owned(), std::borrow::Cow::into_owned));
        }
    });
    found
}

/// The words of a sentence, without those that every sentence has.
fn content_words(text: &str) -> Words {
    let sentence = tokens::beginning(text, 1000);
    tokens::tokens(sentence).into_iter().filter(|token| !token.compound).map(|token| token.term).collect()
}

fn inputs(schema: &Value) -> Vec<Input> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut found = Vec::new();
    for (name, member) in schema["properties"].as_object().into_iter().flatten().take(MOST_FIELDS) {
        let member = resolve(schema, member);
        found.push(Input {
            name: name.clone(),
            words: words(name),
            kind: kind(member),
            required: required.contains(&name.as_str()),
            description: content_words(member["description"].as_str().unwrap_or_default()),
            choices: choices(member),
        });
    }
    found
}

fn is_undeclared(schema: &Value) -> bool {
    let nothing = schema["properties"].as_object().is_none_or(serde_json::Map::is_empty);
    nothing && schema["additionalProperties"] != false
}

fn choices(schema: &Value) -> Vec<String> {
    let values = schema["enum"].as_array().into_iter().flatten();
    values.filter_map(Value::as_str).take(MOST_FIELDS).map(str::to_lowercase).collect()
}

fn outputs(schema: &Value) -> Vec<Output> {
    let mut found = Vec::new();
    let root = resolve(schema, schema);
    if root["properties"].is_object() {
        members(schema, root, "", DEPTH, &mut found);
    } else if root.is_object() {
        // A result without members is what the tool is for; it has no better name than that.
        found.push(output(String::new(), "result", root));
        elements(schema, root, "", DEPTH, &mut found);
    }
    found
}

fn members(root: &Value, schema: &Value, path: &str, depth: usize, found: &mut Vec<Output>) {
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        if found.len() >= MOST_FIELDS {
            return;
        }
        let member = resolve(root, member);
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        found.push(output(path.clone(), name, member));
        if depth > 1 {
            members(root, member, &path, depth - 1, found);
            elements(root, member, &path, depth - 1, found);
        }
    }
}

fn elements(root: &Value, schema: &Value, path: &str, depth: usize, found: &mut Vec<Output>) {
    if schema["items"].is_object() {
        members(root, resolve(root, &schema["items"]), &format!("{path}[]"), depth, found);
    }
}

fn output(path: String, name: &str, schema: &Value) -> Output {
    Output {
        path,
        words: words(name),
        kind: kind(schema),
        description: content_words(schema["description"].as_str().unwrap_or_default()),
    }
}

/// What `schema` refers to, within `root`; the first alternative that is not null.
fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut here = schema;
    for _ in 0..MOST_REFERENCES {
        let referred = here["$ref"].as_str().and_then(|at| root.pointer(at.strip_prefix('#')?));
        let alternatives = ["anyOf", "oneOf", "allOf"].iter().find_map(|word| here[word].as_array());
        let alternative = alternatives.and_then(|all| all.iter().find(|one| one["type"] != "null"));
        match referred.or(if here["type"].is_null() { alternative } else { None }) {
            Some(next) => here = next,
            None => break,
        }
    }
    here
}

fn kind(schema: &Value) -> Kind {
    let said = match &schema["type"] {
        Value::Array(several) => {
            let mut real = several.iter().filter_map(Value::as_str).filter(|name| *name != "null");
            match (real.next(), real.next()) {
                (Some(one), None) => one,
                _ => "",
            }
        }
        other => other.as_str().unwrap_or_default(),
    };
    // Beside the words of JSON Schema, those of the languages that schemas are generated from.
    match said.to_ascii_lowercase().as_str() {
        "string" | "str" | "file" | "date" | "enum" => Kind::String,
        "number" | "integer" | "int" | "float" | "double" => Kind::Number,
        "boolean" | "bool" => Kind::Boolean,
        "array" | "list" | "tuple" | "set" => Kind::Array,
        "object" | "dict" | "map" => Kind::Object,
        _ if schema["properties"].is_object() => Kind::Object,
        _ if schema["items"].is_object() => Kind::Array,
        _ => Kind::Any,
    }
}
