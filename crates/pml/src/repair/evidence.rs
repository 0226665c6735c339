//! What definitions show of their fields: types, names and descriptions.

use serde_json::Value;

/// The number of words from which on an unchanged description is evidence. Shorter ones are shared by many fields.
const TELLING_WORDS: usize = 3;
/// The depth to which results are looked through.
const DEPTH: usize = 5;

/// A field of a schema.
#[derive(Debug, Clone)]
pub(super) struct FieldShape {
    pub(super) name: String,
    /// What tells values apart: type, values, format and the type of elements.
    pub(super) kind: String,
    pub(super) description: String,
    pub(super) required: bool,
    pub(super) schema: Value,
}

/// A place in a result that is no object itself.
#[derive(Debug, Clone)]
pub(super) struct Leaf {
    pub(super) path: Vec<String>,
    pub(super) shape: FieldShape,
}

impl FieldShape {
    /// Whether two fields of this tool have the same type and are named or described alike.
    pub(super) fn is_same_thing(&self, other: &FieldShape, tool: &str) -> bool {
        self.kind == other.kind
            && (self.has_same_name(other, tool) || same_descriptions(&self.description, &other.description))
    }

    /// Whether the names of two fields of this tool are forms of each other. A name with one word more is one if that
    /// word is what the field is known to be of: the last word of the tool, or a word of the field's old description.
    pub(super) fn has_same_name(&self, other: &FieldShape, tool: &str) -> bool {
        let mut known = words_of(&self.description);
        known.extend(words_of(tool).pop());
        names_agree(&self.name, &other.name, |word| known.iter().any(|known| is_form_of(word, known)))
    }

    /// Whether a value that the program does not give decides what a call does: another one may make it write where it
    /// only tried, or do nothing where it wrote. No recorded run shows that, so such values are for people to choose.
    pub(super) fn may_change_effect(&self) -> bool {
        let is_telling = |word: &String| EFFECT_WORDS.contains(&word.as_str());
        words_of(&self.name).iter().any(is_telling)
            || words_of(&self.description).iter().any(|word| EFFECT_DESCRIPTION.contains(&word.as_str()))
    }
}

/// Words in the names of fields that decide what a call does.
const EFFECT_WORDS: &[&str] = &[
    "action",
    "allow",
    "append",
    "apply",
    "approve",
    "approved",
    "async",
    "atomic",
    "background",
    "behavior",
    "behaviour",
    "bypass",
    "cascade",
    "commit",
    "confirm",
    "confirmed",
    "delete",
    "destroy",
    "disable",
    "draft",
    "dry",
    "dryrun",
    "enable",
    "execute",
    "force",
    "forced",
    "hard",
    "ignore",
    "merge",
    "method",
    "mode",
    "notify",
    "operation",
    "override",
    "overwrite",
    "permanent",
    "permanently",
    "persist",
    "policy",
    "preview",
    "publish",
    "purge",
    "readonly",
    "recursive",
    "remove",
    "replace",
    "save",
    "send",
    "silent",
    "simulate",
    "skip",
    "strategy",
    "test",
    "truncate",
    "unsafe",
    "upsert",
    "validate",
    "verify",
    "wipe",
    "write",
    "yes",
];

/// Words in the descriptions of such fields that are plain enough to go by.
const EFFECT_DESCRIPTION: &[&str] = &[
    "delete",
    "deletes",
    "deleting",
    "destructive",
    "dry",
    "force",
    "irreversible",
    "irreversibly",
    "overwrite",
    "overwrites",
    "overwriting",
    "permanently",
    "publish",
    "publishes",
    "recursively",
    "simulate",
    "simulates",
];

/// The fields of an object schema.
pub(super) fn fields(schema: &Value) -> Vec<FieldShape> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let members = schema["properties"].as_object().into_iter().flatten();
    members
        .map(|(name, schema)| FieldShape {
            name: name.clone(),
            kind: kind(schema),
            description: schema["description"].as_str().unwrap_or_default().to_owned(),
            required: required.contains(&name.as_str()),
            schema: schema.clone(),
        })
        .collect()
}

fn kind(schema: &Value) -> String {
    let items = schema.get("items").map(kind).unwrap_or_default();
    let members = schema["properties"].as_object().map(|members| {
        members.iter().map(|(name, member)| format!("{name}:{}", kind(member))).collect::<Vec<_>>().join(",")
    });
    format!(
        "{}|{}|{}|{items}|{}",
        schema["type"],
        schema["enum"],
        schema["format"].as_str().unwrap_or_default(),
        members.unwrap_or_default()
    )
}

/// The places of a result that are no objects themselves.
pub(super) fn leaves(schema: &Value) -> Vec<Leaf> {
    let mut found = Vec::new();
    collect(schema, &mut Vec::new(), &mut found);
    found
}

fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Leaf>) {
    for field in fields(schema) {
        path.push(field.name.clone());
        match field.schema.get("properties") {
            Some(_) if path.len() < DEPTH => collect(&field.schema, path, found),
            _ => found.push(Leaf { path: path.clone(), shape: field }),
        }
        path.pop();
    }
}

fn same_descriptions(one: &str, other: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let (one, other) = (words(one), words(other));
    one.len() >= TELLING_WORDS && one == other
}

/// Whether two tools are named alike, word for word, or described alike. A name with one word more is another tool unless
/// its description is the same.
pub(super) fn is_same_tool(one: (&str, &str), other: (&str, &str)) -> bool {
    let is_same_length = words_of(one.0).len() == words_of(other.0).len();
    same_descriptions(one.1, other.1)
        || (same_names(one.0, other.0) && (is_same_length || (!one.1.is_empty() && one.1 == other.1)))
}

/// Whether two names of tools are forms of each other: `list_issue` and `listIssues`, `report` and `get_report`.
fn same_names(one: &str, other: &str) -> bool {
    names_agree(one, other, |word| !is_other_in_kind(word))
}

/// Whether two names are forms of each other: `user_id` and `userId`, `repo` and `repository`, `path` and `file_path`
/// where `is_implied` knows that it is the path of a file.
fn names_agree(one: &str, other: &str, is_implied: impl Fn(&str) -> bool) -> bool {
    let (one, other) = (words_of(one), words_of(other));
    if one.is_empty() || other.is_empty() {
        return false;
    }
    let (fewer, more) = if one.len() <= other.len() { (&one, &other) } else { (&other, &one) };
    if fewer.len() == more.len() {
        return fewer.iter().zip(more).all(|(one, other)| is_form_of(one, other));
    }
    // What a name ends with is what it is; a word before that says of what, or which one of several: `family_name` is
    // not every `name`.
    more.len() - fewer.len() == 1
        && (ends_with(more, fewer) && !is_other_in_kind(&more[0]) && is_implied(&more[0])
            || starts_with(more, fewer) && is_filler(&more[more.len() - 1], &fewer[fewer.len() - 1]))
}

fn ends_with(more: &[String], fewer: &[String]) -> bool {
    more[more.len() - fewer.len()..].iter().zip(fewer).all(|(one, other)| is_form_of(one, other))
}

fn starts_with(more: &[String], fewer: &[String]) -> bool {
    more.iter().zip(fewer).all(|(one, other)| is_form_of(one, other))
}

/// Words before a name that make another thing of it.
fn is_other_in_kind(word: &str) -> bool {
    matches!(
        word,
        "new"
            | "old"
            | "from"
            | "to"
            | "source"
            | "target"
            | "destination"
            | "min"
            | "max"
            | "start"
            | "end"
            | "first"
            | "last"
            | "next"
            | "previous"
            | "parent"
            | "child"
            | "not"
            | "no"
            | "exclude"
            | "include"
            | "other"
            | "before"
            | "after"
            | "is"
            | "has"
            | "total"
            | "default"
            | "backup"
            | "delete"
            | "remove"
            | "create"
            | "update"
            | "set"
            | "put"
            | "add"
            | "send"
            | "cancel"
            | "post"
            | "patch"
            | "write"
            | "clear"
    )
}

/// Whether a word after a name adds nothing to it.
fn is_filler(word: &str, before: &str) -> bool {
    match word {
        // Such a thing is mostly given by its id, and its name is something else.
        "name" => !matches!(
            before,
            "user" | "account" | "member" | "owner" | "author" | "customer" | "contact" | "person" | "client"
        ),
        // Such a thing is mostly given by its path, and its text is something else.
        "text" | "value" | "string" | "input" => {
            !matches!(before, "file" | "document" | "doc" | "image" | "img" | "page" | "path" | "resource")
        }
        "list" | "param" | "arg" => true,
        _ => false,
    }
}

/// Words that are abbreviated in names, each with what is written for it.
const ABBREVIATIONS: [(&str, &[&str]); 44] = [
    ("address", &["addr"]),
    ("amount", &["amt"]),
    ("argument", &["arg"]),
    ("average", &["avg"]),
    ("column", &["col"]),
    ("command", &["cmd"]),
    ("configuration", &["config", "cfg"]),
    ("context", &["ctx"]),
    ("count", &["cnt"]),
    ("current", &["curr", "cur"]),
    ("description", &["desc"]),
    ("destination", &["dest", "dst"]),
    ("directory", &["dir"]),
    ("document", &["doc"]),
    ("environment", &["env"]),
    ("expression", &["expr"]),
    ("frequency", &["freq"]),
    ("identifier", &["id"]),
    ("image", &["img"]),
    ("index", &["idx"]),
    ("information", &["info"]),
    ("language", &["lang"]),
    ("latitude", &["lat"]),
    ("length", &["len"]),
    ("longitude", &["lon", "lng", "long"]),
    ("maximum", &["max"]),
    ("message", &["msg"]),
    ("minimum", &["min"]),
    ("number", &["num", "nr"]),
    ("organization", &["org"]),
    ("parameter", &["param"]),
    ("password", &["pwd", "pass"]),
    ("previous", &["prev"]),
    ("quantity", &["qty"]),
    ("query", &["q"]),
    ("reference", &["ref"]),
    ("repository", &["repo"]),
    ("source", &["src"]),
    ("specification", &["spec"]),
    ("string", &["str"]),
    ("temperature", &["temp"]),
    ("text", &["txt"]),
    ("timezone", &["tz"]),
    ("user", &["usr"]),
];

/// Whether one word is another form of the other: plural or abbreviation.
fn is_form_of(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    let abbreviates = |(word, forms): &(&str, &[&str])| *word == long && forms.contains(&short);
    short == long
        || format!("{short}s") == *long
        || format!("{short}es") == *long
        || ABBREVIATIONS.iter().any(abbreviates)
}

/// The words of a name, in lower case: of `camelCase`, `snake_case` and `kebab-case`.
fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut was_lower = false;
    for c in name.chars() {
        if !c.is_alphanumeric() {
            was_lower = false;
            words.push(String::new());
            continue;
        }
        if words.is_empty() || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = c.is_lowercase() || c.is_numeric();
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The value that a schema names for a field that is not given.
pub(super) fn names_one_value(schema: &Value) -> Option<Value> {
    let only =
        || schema["enum"].as_array().filter(|values| values.len() == 1).map(|values| values[0].clone());
    schema.get("default").or_else(|| schema.get("const")).cloned().or_else(only)
}
