//! Input and output fields of a tool, read from its schemas: words, kind and path.
//!
//! Schemas are untrusted: references, unions and unusual type names are read as well as possible, nothing is followed
//! beyond the limits below, and what is not understood counts as "any kind".

use serde_json::Value;

use crate::tokens;

/// Maximum depth of result fields.
const DEPTH: usize = 4;
/// Maximum number of fields of one tool, on each side.
const MOST_FIELDS: usize = 120;
/// Maximum number of references followed from one schema.
const MOST_REFERENCES: usize = 8;

/// Definition of a tool, from its server or from traces.
#[derive(Debug, Clone, Copy)]
pub struct FieldsDefinition<'a> {
    /// Id of the tool in edges.
    pub id: &'a str,
    /// Name of the tool, without the server's.
    pub name: &'a str,
    /// Description of the tool.
    pub description: &'a str,
    /// JSON Schema of the arguments.
    pub input_schema: &'a Value,
    /// JSON Schema of the result, declared or observed.
    pub output_schema: Option<&'a Value>,
}

/// Fields of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolFields {
    /// Id, as in [`FieldsDefinition`].
    pub id: String,
    /// Words of its name, in order: usually a verb and its object.
    pub name_words: Vec<String>,
    /// Words of its description.
    pub description: WordList,
    /// Parameters, at the first level of its arguments.
    pub inputs: Vec<InputField>,
    /// Whether its schema declares no parameters but does not rule them out either.
    pub has_undeclared_inputs: bool,
    /// Fields of its result, at every level up to the maximum depth.
    pub outputs: Vec<OutputField>,
}

/// A parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct InputField {
    /// Name of the parameter, as in calls.
    pub name: String,
    /// Words of the name.
    pub words: Vec<String>,
    /// Kind of value it takes.
    pub kind: FieldKind,
    /// Whether the schema requires it.
    pub required: bool,
    /// The words of its description.
    pub description: WordList,
    /// Allowed values in lower case; empty when the schema does not limit them.
    pub choices: Vec<String>,
}

/// A field of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputField {
    /// Path in the result: `user.id`, `items[].name`; empty for the whole result.
    pub path: String,
    /// Words of the last name in the path.
    pub words: Vec<String>,
    /// Kind of value it holds.
    pub kind: FieldKind,
    /// The words of its description.
    pub description: WordList,
}

/// A list of words stored as one string: there are many of them, and they are seldom read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WordList(Box<str>);

impl WordList {
    /// Iterates over the words.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split_terminator(' ')
    }
}

impl<W: AsRef<str>> FromIterator<W> for WordList {
    fn from_iter<I: IntoIterator<Item = W>>(words: I) -> WordList {
        let mut text = String::new();
        for word in words {
            text.push_str(word.as_ref());
            text.push(' ');
        }
        WordList(text.into())
    }
}

/// Kind of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// Text.
    String,
    /// A number, integer or not.
    Number,
    /// True or false.
    Boolean,
    /// A list.
    Array,
    /// An object.
    Object,
    /// Unspecified, or several kinds.
    Any,
}

impl FieldKind {
    /// How well a value of this kind fits where `wanted` is expected, from 0 (not at all) to 1.
    ///
    /// A list fits where one of its elements would, and a single value where a list of one would. Numbers and objects
    /// can be written as text; text is rarely a number, and a list rarely one of numbers.
    pub fn compatibility(self, wanted: FieldKind) -> f32 {
        use FieldKind::{Any, Array, Boolean, Number, Object, String};
        match (self, wanted) {
            (a, b) if a == b => 1.0,
            // Below 1, so that an unspecified kind matches another unspecified one before it matches text.
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

impl ToolFields {
    /// Reads the fields of a tool.
    pub fn from_definition(definition: &FieldsDefinition<'_>) -> ToolFields {
        ToolFields {
            id: definition.id.to_owned(),
            name_words: name_words(definition.name),
            description: content_words(definition.description),
            inputs: inputs(definition.input_schema),
            has_undeclared_inputs: is_undeclared(definition.input_schema),
            outputs: definition.output_schema.map(outputs).unwrap_or_default(),
        }
    }

    /// The input of this name.
    pub fn input(&self, name: &str) -> Option<&InputField> {
        self.inputs.iter().find(|input| input.name == name)
    }
}

/// Words of a name: split, folded, stemmed, without trailing numbers (`num1` is another `num`).
pub(crate) fn name_words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folded = String::new();
    tokens::for_each_word(text, |word| {
        if word.compound {
            return;
        }
        tokens::fold_word(word.text, &mut folded);
        let bare = folded.trim_end_matches(|c: char| c.is_ascii_digit());
        if !bare.is_empty() {
            // Small words matter in names (`from`, `to`), so they stay unstemmed.
            found.push(tokens::stem_word(bare).map_or_else(|| bare.to_owned(), std::borrow::Cow::into_owned));
        }
    });
    found
}

/// Words of a sentence, without stop words.
fn content_words(text: &str) -> WordList {
    let sentence = pml_language::byte_prefix(text, 1000);
    tokens::tokenize(sentence).into_iter().filter(|token| !token.compound).map(|token| token.term).collect()
}

fn inputs(schema: &Value) -> Vec<InputField> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut found = Vec::new();
    for (name, member) in schema["properties"].as_object().into_iter().flatten().take(MOST_FIELDS) {
        let member = resolve(schema, member);
        found.push(InputField {
            name: name.clone(),
            words: name_words(name),
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

fn outputs(schema: &Value) -> Vec<OutputField> {
    let mut found = Vec::new();
    let root = resolve(schema, schema);
    if root["properties"].is_object() {
        members(schema, root, "", DEPTH, &mut found);
    } else if root.is_object() {
        // A result without members is the purpose of the tool; it has no better name than `result`.
        found.push(output(String::new(), "result", root));
        elements(schema, root, "", DEPTH, &mut found);
    }
    found
}

fn members(root: &Value, schema: &Value, path: &str, depth: usize, found: &mut Vec<OutputField>) {
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

fn elements(root: &Value, schema: &Value, path: &str, depth: usize, found: &mut Vec<OutputField>) {
    if schema["items"].is_object() {
        members(root, resolve(root, &schema["items"]), &format!("{path}[]"), depth, found);
    }
}

fn output(path: String, name: &str, schema: &Value) -> OutputField {
    OutputField {
        path,
        words: name_words(name),
        kind: kind(schema),
        description: content_words(schema["description"].as_str().unwrap_or_default()),
    }
}

/// Resolves references within `root`; of alternatives, the first that is not null.
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

fn kind(schema: &Value) -> FieldKind {
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
    // Besides the type names of JSON Schema, those of languages that schemas are generated from.
    match said.to_ascii_lowercase().as_str() {
        "string" | "str" | "file" | "date" | "enum" => FieldKind::String,
        "number" | "integer" | "int" | "float" | "double" => FieldKind::Number,
        "boolean" | "bool" => FieldKind::Boolean,
        "array" | "list" | "tuple" | "set" => FieldKind::Array,
        "object" | "dict" | "map" => FieldKind::Object,
        _ if schema["properties"].is_object() => FieldKind::Object,
        _ if schema["items"].is_object() => FieldKind::Array,
        _ => FieldKind::Any,
    }
}
