//! TOML and JSON as one kind of tree in which every key and value has its position.
//!
//! The tree is short-lived: [`section`](super::section) reads typed settings from it and reports errors by position.

use std::path::{Path, PathBuf};

use pml_model::json;
use pml_model::name::printable;
use serde_json::value::RawValue;
use toml_edit::{Document, Item, TableLike};

use super::error::ConfigComplaint;
use super::paths::Env;

/// A file that was read, for error messages about it.
#[derive(Debug)]
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    shown: String,
    pub(super) text: String,
}

impl ConfigFile {
    pub(super) fn new(path: &Path, bytes: Vec<u8>, env: &Env) -> Result<ConfigFile, ConfigComplaint> {
        let (text, bad_at) = match String::from_utf8(bytes) {
            Ok(text) => (text, None),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                (String::from_utf8_lossy(error.as_bytes()).into_owned(), Some(at))
            }
        };
        let text = text.strip_prefix('\u{feff}').map(ToOwned::to_owned).unwrap_or(text);
        let file = ConfigFile { path: path.to_owned(), shown: env.display_path(path), text };
        match bad_at {
            None => Ok(file),
            Some(at) => Err(file.complaint(at, "the file is not UTF-8").hint("save it as UTF-8")),
        }
    }

    /// An error at the byte offset `at`.
    pub(super) fn complaint(&self, at: usize, message: impl Into<String>) -> ConfigComplaint {
        let before = self.text.get(..at).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        ConfigComplaint {
            file: self.path.clone(),
            shown_path: self.shown.clone(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            // The file may contain any text; the message stays on one line and carries no terminal control
            // characters.
            message: printable(&message.into()).replace('\n', "\\n").replace('\t', "\\t"),
            hint: None,
        }
    }
}

impl ConfigComplaint {
    pub(super) fn hint(mut self, hint: impl Into<String>) -> ConfigComplaint {
        self.hint = Some(hint.into());
        self
    }
}

/// A value and its byte offset.
#[derive(Debug)]
pub(super) struct ConfigNode {
    pub(super) at: usize,
    pub(super) value: ConfigValue,
}

/// The value of a node.
#[derive(Debug)]
pub(super) enum ConfigValue {
    Text(String),
    Integer(i64),
    Boolean(bool),
    List(Vec<ConfigNode>),
    Table(Vec<ConfigMember>),
    /// A type that no setting takes, by name: a date, a number with a fraction, null.
    Other(&'static str),
}

/// One key of a table.
#[derive(Debug)]
pub(super) struct ConfigMember {
    pub(super) key: String,
    pub(super) key_at: usize,
    pub(super) node: ConfigNode,
}

impl ConfigValue {
    /// The type of the value, for error messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            ConfigValue::Text(_) => "a text",
            ConfigValue::Integer(_) => "a number",
            ConfigValue::Boolean(_) => "true or false",
            ConfigValue::List(_) => "a list",
            ConfigValue::Table(_) => "a table",
            ConfigValue::Other(kind) => kind,
        }
    }

    /// Whether it is an empty list or table, or null.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            ConfigValue::List(items) => items.is_empty(),
            ConfigValue::Table(members) => members.is_empty(),
            ConfigValue::Text(text) => text.is_empty(),
            ConfigValue::Other(kind) => *kind == "null",
            ConfigValue::Integer(_) | ConfigValue::Boolean(_) => false,
        }
    }
}

/// Parses TOML.
pub(super) fn parse_toml(file: &ConfigFile) -> Result<ConfigNode, ConfigComplaint> {
    let document = Document::parse(file.text.as_str()).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let said = error.message().lines().collect::<Vec<_>>().join(", ");
        file.complaint(at, format!("not TOML: {said}"))
            .hint("texts stand in quotes, and a table or key may appear once")
    })?;
    Ok(ConfigNode { at: 0, value: ConfigValue::Table(toml_members(document.as_table())) })
}

fn toml_members(table: &dyn TableLike) -> Vec<ConfigMember> {
    table
        .iter()
        .map(|(key, item)| {
            let key_at = table.key(key).and_then(toml_edit::Key::span).map_or(0, |span| span.start);
            ConfigMember { key: key.to_owned(), key_at, node: toml_node(item, key_at) }
        })
        .collect()
}

/// Converts a TOML item. `inherited` is the offset of tables that exist only through their children.
fn toml_node(item: &Item, inherited: usize) -> ConfigNode {
    let at = item.span().map_or(inherited, |span| span.start);
    let value = match item {
        Item::Table(table) => ConfigValue::Table(toml_members(table)),
        Item::ArrayOfTables(tables) => ConfigValue::List(
            tables
                .iter()
                .map(|table| ConfigNode {
                    at: table.span().map_or(at, |span| span.start),
                    value: ConfigValue::Table(toml_members(table)),
                })
                .collect(),
        ),
        Item::Value(value) => toml_value(value, at),
        Item::None => ConfigValue::Other("nothing"),
    };
    ConfigNode { at, value }
}

fn toml_value(value: &toml_edit::Value, at: usize) -> ConfigValue {
    use toml_edit::Value as Toml;
    match value {
        Toml::String(text) => ConfigValue::Text(text.value().clone()),
        Toml::Integer(number) => ConfigValue::Integer(*number.value()),
        Toml::Boolean(flag) => ConfigValue::Boolean(*flag.value()),
        Toml::Float(_) => ConfigValue::Other("a number with a fraction"),
        Toml::Datetime(_) => ConfigValue::Other("a date or time"),
        Toml::InlineTable(table) => ConfigValue::Table(toml_members(table)),
        Toml::Array(array) => ConfigValue::List(
            array
                .iter()
                .map(|value| {
                    let at = value.span().map_or(at, |span| span.start);
                    ConfigNode { at, value: toml_value(value, at) }
                })
                .collect(),
        ),
    }
}

/// Parses the members `keys` of a JSON object; other members, which may be many, are skipped. Comments and trailing
/// commas are accepted, because editors write them into such files.
pub(super) fn parse_json_members(
    file: &ConfigFile,
    keys: &[&str],
) -> Result<Vec<ConfigMember>, ConfigComplaint> {
    let text = plain_json(&file.text);
    if json::nesting_depth(&text) > json::MAX_DEPTH {
        return Err(file
            .complaint(0, format!("nested deeper than {} levels", json::MAX_DEPTH))
            .hint("name a file of `mcpServers`"));
    }
    let reader = JsonTreeReader { file, text: &text };
    let mut members = reader.members(&text, 0)?;
    members.retain(|member| keys.contains(&member.0.as_str()));
    members.into_iter().map(|(key, key_at, raw)| reader.member(key, key_at, raw)).collect()
}

struct JsonTreeReader<'f> {
    file: &'f ConfigFile,
    /// The text that all offsets refer to: as long as the file, with comments blanked.
    text: &'f str,
}

impl<'f> JsonTreeReader<'f> {
    fn members(
        &self,
        object: &'f str,
        at: usize,
    ) -> Result<Vec<(String, usize, &'f RawValue)>, ConfigComplaint> {
        let members: BorrowedMembers<'f> =
            serde_json::from_str(object).map_err(|error| self.broken(at, &error))?;
        Ok(members.0.into_iter().map(|(key, raw)| (key, self.key_before(raw), raw)).collect())
    }

    fn member(&self, key: String, key_at: usize, raw: &'f RawValue) -> Result<ConfigMember, ConfigComplaint> {
        Ok(ConfigMember { key, key_at, node: self.node(raw)? })
    }

    fn node(&self, raw: &'f RawValue) -> Result<ConfigNode, ConfigComplaint> {
        let (text, at) = (raw.get(), self.place(raw));
        let broken = |error| self.broken(at, &error);
        let value = match text.as_bytes().first() {
            Some(b'{') => ConfigValue::Table(
                self.members(text, at)?
                    .into_iter()
                    .map(|(key, key_at, raw)| self.member(key, key_at, raw))
                    .collect::<Result<_, _>>()?,
            ),
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(text).map_err(broken)?;
                ConfigValue::List(items.into_iter().map(|item| self.node(item)).collect::<Result<_, _>>()?)
            }
            Some(b'"') => ConfigValue::Text(serde_json::from_str(text).map_err(broken)?),
            Some(b't') => ConfigValue::Boolean(true),
            Some(b'f') => ConfigValue::Boolean(false),
            Some(b'n') => ConfigValue::Other("null"),
            _ => text.parse().map_or(ConfigValue::Other("a number with a fraction"), ConfigValue::Integer),
        };
        Ok(ConfigNode { at, value })
    }

    /// The byte offset of a raw value: raw values are slices of the text, so their addresses give their offsets.
    fn place(&self, raw: &RawValue) -> usize {
        raw.get().as_ptr() as usize - self.text.as_ptr() as usize
    }

    /// The byte offset of the key of the value `raw`: before the value stand the colon and the key, whose inner
    /// quotes are all escaped by a backslash.
    fn key_before(&self, raw: &RawValue) -> usize {
        let before = &self.text.as_bytes()[..self.place(raw)];
        let end = before.iter().rposition(|byte| *byte == b'"').unwrap_or(0);
        let opens = |at: &usize| before[*at] == b'"' && (*at == 0 || before[at - 1] != b'\\');
        (0..end).rev().find(opens).unwrap_or(end)
    }

    fn broken(&self, at: usize, error: &serde_json::Error) -> ConfigComplaint {
        let said = error.to_string();
        let said = said.split(" at line ").next().unwrap_or_default();
        // serde_json counts columns in bytes, from the start of the text it was given.
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

/// Unlike in `pml_model::json::Fields`, the values borrow from the text.
struct BorrowedMembers<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for BorrowedMembers<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BorrowedMembersVisitor;
        impl<'de> serde::de::Visitor<'de> for BorrowedMembersVisitor {
            type Value = BorrowedMembers<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry::<String, &'de RawValue>()? {
                    members.push(member);
                }
                Ok(BorrowedMembers(members))
            }
        }
        deserializer.deserialize_map(BorrowedMembersVisitor)
    }
}

/// `text` with comments and trailing commas replaced by spaces, so that every byte keeps its offset.
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
