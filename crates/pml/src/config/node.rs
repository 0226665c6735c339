//! TOML and JSON as one kind of tree in which every key and value knows its place.
//!
//! The tree is short-lived: [`section`](super::section) reads meanings out of it and complains by place.

use std::path::{Path, PathBuf};

use pml_model::json;
use pml_model::name::printable;
use serde_json::value::RawValue;
use toml_edit::{Document, Item, TableLike};

use super::error::Complaint;
use super::paths::Env;

/// A file that was read, for complaints about it.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    shown: String,
    pub(super) text: String,
}

impl File {
    pub(super) fn new(path: &Path, bytes: Vec<u8>, env: &Env) -> Result<File, Complaint> {
        let (text, bad_at) = match String::from_utf8(bytes) {
            Ok(text) => (text, None),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                (String::from_utf8_lossy(error.as_bytes()).into_owned(), Some(at))
            }
        };
        let text = text.strip_prefix('\u{feff}').map(ToOwned::to_owned).unwrap_or(text);
        let file = File { path: path.to_owned(), shown: env.shown(path), text };
        match bad_at {
            None => Ok(file),
            Some(at) => Err(file.complaint(at, "the file is not UTF-8").hint("save it as UTF-8")),
        }
    }

    /// A complaint about the byte `at`.
    pub(super) fn complaint(&self, at: usize, message: impl Into<String>) -> Complaint {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Complaint {
            file: self.path.clone(),
            shown: self.shown.clone(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            // Texts of the file may hold anything; a complaint stays on its line and drives no terminal.
            message: printable(&message.into()).replace('\n', "\\n").replace('\t', "\\t"),
            hint: None,
        }
    }
}

impl Complaint {
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Complaint {
        self.hint = Some(hint.into());
        self
    }
}

/// A value and where it starts.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) at: usize,
    pub(super) value: Value,
}

/// What a node holds.
#[derive(Debug)]
pub(super) enum Value {
    Text(String),
    Whole(i64),
    Flag(bool),
    List(Vec<Node>),
    Table(Vec<Member>),
    /// Something no setting takes, by its name: a date, a number with a fraction, null.
    Other(&'static str),
}

/// One key of a table.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) key: String,
    pub(super) key_at: usize,
    pub(super) node: Node,
}

impl Value {
    /// The kind of value, for complaints.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a text",
            Value::Whole(_) => "a number",
            Value::Flag(_) => "true or false",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
            Value::Other(kind) => kind,
        }
    }

    /// Whether it is a list or table of nothing, or nothing itself.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Value::List(items) => items.is_empty(),
            Value::Table(members) => members.is_empty(),
            Value::Text(text) => text.is_empty(),
            Value::Other(kind) => *kind == "null",
            Value::Whole(_) | Value::Flag(_) => false,
        }
    }
}

/// Reads TOML.
pub(super) fn toml(file: &File) -> Result<Node, Complaint> {
    let document = Document::parse(file.text.as_str()).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let said = error.message().lines().collect::<Vec<_>>().join(", ");
        file.complaint(at, format!("not TOML: {said}"))
            .hint("texts stand in quotes, and a table or key may appear once")
    })?;
    Ok(Node { at: 0, value: Value::Table(toml_members(document.as_table())) })
}

fn toml_members(table: &dyn TableLike) -> Vec<Member> {
    table
        .iter()
        .map(|(key, item)| {
            let key_at = table.key(key).and_then(toml_edit::Key::span).map_or(0, |span| span.start);
            Member { key: key.to_owned(), key_at, node: toml_node(item, key_at) }
        })
        .collect()
}

/// `inherited` is the place of tables that exist only through their children.
fn toml_node(item: &Item, inherited: usize) -> Node {
    let at = item.span().map_or(inherited, |span| span.start);
    let value = match item {
        Item::Table(table) => Value::Table(toml_members(table)),
        Item::ArrayOfTables(tables) => Value::List(
            tables
                .iter()
                .map(|table| Node {
                    at: table.span().map_or(at, |span| span.start),
                    value: Value::Table(toml_members(table)),
                })
                .collect(),
        ),
        Item::Value(value) => toml_value(value, at),
        Item::None => Value::Other("nothing"),
    };
    Node { at, value }
}

fn toml_value(value: &toml_edit::Value, at: usize) -> Value {
    use toml_edit::Value as Toml;
    match value {
        Toml::String(text) => Value::Text(text.value().clone()),
        Toml::Integer(number) => Value::Whole(*number.value()),
        Toml::Boolean(flag) => Value::Flag(*flag.value()),
        Toml::Float(_) => Value::Other("a number with a fraction"),
        Toml::Datetime(_) => Value::Other("a date or time"),
        Toml::InlineTable(table) => Value::Table(toml_members(table)),
        Toml::Array(array) => Value::List(
            array
                .iter()
                .map(|value| {
                    let at = value.span().map_or(at, |span| span.start);
                    Node { at, value: toml_value(value, at) }
                })
                .collect(),
        ),
    }
}

/// Reads the members `keys` of a JSON object; other members, which may be many, are not opened.
/// Comments and trailing commas pass, because editors write them into such files.
pub(super) fn json(file: &File, keys: &[&str]) -> Result<Vec<Member>, Complaint> {
    let text = plain_json(&file.text);
    if json::depth(&text) > json::MAX_DEPTH {
        return Err(file
            .complaint(0, format!("nested deeper than {} levels", json::MAX_DEPTH))
            .hint("name a file of `mcpServers`"));
    }
    let reader = Json { file, text: &text };
    let mut members = reader.members(&text, 0)?;
    members.retain(|member| keys.contains(&member.0.as_str()));
    members.into_iter().map(|(key, key_at, raw)| reader.member(key, key_at, raw)).collect()
}

struct Json<'f> {
    file: &'f File,
    /// The text in which all places are; as long as the file's, with comments blanked.
    text: &'f str,
}

impl<'f> Json<'f> {
    fn members(&self, object: &'f str, at: usize) -> Result<Vec<(String, usize, &'f RawValue)>, Complaint> {
        let members: Members<'f> = serde_json::from_str(object).map_err(|error| self.broken(at, &error))?;
        Ok(members.0.into_iter().map(|(key, raw)| (key, self.key_before(raw), raw)).collect())
    }

    fn member(&self, key: String, key_at: usize, raw: &'f RawValue) -> Result<Member, Complaint> {
        Ok(Member { key, key_at, node: self.node(raw)? })
    }

    fn node(&self, raw: &'f RawValue) -> Result<Node, Complaint> {
        let (text, at) = (raw.get(), self.place(raw));
        let broken = |error| self.broken(at, &error);
        let value = match text.as_bytes().first() {
            Some(b'{') => Value::Table(
                self.members(text, at)?
                    .into_iter()
                    .map(|(key, key_at, raw)| self.member(key, key_at, raw))
                    .collect::<Result<_, _>>()?,
            ),
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(text).map_err(broken)?;
                Value::List(items.into_iter().map(|item| self.node(item)).collect::<Result<_, _>>()?)
            }
            Some(b'"') => Value::Text(serde_json::from_str(text).map_err(broken)?),
            Some(b't') => Value::Flag(true),
            Some(b'f') => Value::Flag(false),
            Some(b'n') => Value::Other("null"),
            _ => text.parse().map_or(Value::Other("a number with a fraction"), Value::Whole),
        };
        Ok(Node { at, value })
    }

    /// Raw values are slices of the text, so their addresses tell their places.
    fn place(&self, raw: &RawValue) -> usize {
        raw.get().as_ptr() as usize - self.text.as_ptr() as usize
    }

    /// Where the key of the value `raw` starts: before the value stand the colon and the key, whose
    /// inner quotes all have a backslash in front.
    fn key_before(&self, raw: &RawValue) -> usize {
        let before = &self.text.as_bytes()[..self.place(raw)];
        let end = before.iter().rposition(|byte| *byte == b'"').unwrap_or(0);
        let opens = |at: &usize| before[*at] == b'"' && (*at == 0 || before[at - 1] != b'\\');
        (0..end).rev().find(opens).unwrap_or(end)
    }

    fn broken(&self, at: usize, error: &serde_json::Error) -> Complaint {
        let said = error.to_string();
        let said = said.split(" at line ").next().unwrap_or_default();
        // serde_json counts columns in bytes and from the text it was given.
        let lines_before = self.text[at..].split('\n').take(error.line().saturating_sub(1));
        let line_start = at + lines_before.map(|line| line.len() + 1).sum::<usize>();
        let mut place = (line_start + error.column().saturating_sub(1)).min(self.text.len());
        while !self.text.is_char_boundary(place) {
            place -= 1;
        }
        self.file
            .complaint(place, format!("not JSON: {said}"))
            .hint("the file must be an object with `mcpServers` or `servers`")
    }
}

/// Unlike `pml_model::json::Fields`, its values can be borrowed for as long as the text.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry::<String, &'de RawValue>()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

/// `text` with comments and trailing commas turned to spaces, so that every byte keeps its place.
fn plain_json(text: &str) -> String {
    let mut out = text.as_bytes().to_vec();
    let (mut at, mut comma) = (0, None);
    while at < out.len() {
        let rest = &out[at..];
        match rest[0] {
            b'"' => {
                comma = None;
                at += string_length(rest);
                continue;
            }
            b'/' if rest.starts_with(b"//") || rest.starts_with(b"/*") => {
                let length = comment_length(rest);
                for byte in out[at..at + length].iter_mut().filter(|byte| **byte != b'\n') {
                    *byte = b' ';
                }
                at += length;
                continue;
            }
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    out[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at += 1;
    }
    String::from_utf8(out).expect("only whole characters were replaced, by spaces")
}

fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    while at < text.len() && text[at] != b'"' {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(text.len())
}

fn comment_length(text: &[u8]) -> usize {
    let end: &[u8] = if text.starts_with(b"//") { b"\n" } else { b"*/" };
    text.windows(end.len())
        .skip(2)
        .position(|window| window == end)
        .map_or(text.len(), |start| start + 2 + end.len())
}
