//! Parses YAML into the same tree as TOML and JSON, as far as settings need it.
//!
//! Aliases and tags are refused: a rule must be readable where it stands, and without aliases a small file cannot
//! become a large tree.

use pml_model::json::MAX_DEPTH;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

use super::error::ConfigComplaint;
use super::node::{ConfigFile, ConfigMember, ConfigNode, ConfigValue};

/// 256 KiB: the largest YAML file; one rule has about a hundred bytes.
const MAX_BYTES: usize = 256 * 1024;

/// Parses one YAML document, which must be a table; an empty file is an empty table.
pub(super) fn parse_yaml(file: &ConfigFile) -> Result<ConfigNode, ConfigComplaint> {
    if file.text.len() > MAX_BYTES {
        let message = format!("the file is larger than {} KiB", MAX_BYTES >> 10);
        return Err(file.complaint(0, message).hint("say the same with fewer rules and `*`"));
    }
    let places = file.text.char_indices().map(|(at, _)| at).collect();
    let mut reader = YamlTreeReader { file, places, open: Vec::new(), root: None };
    let mut events = Parser::new_from_str(&file.text);
    while let Some(event) = events.next_event() {
        let (event, span) = event.map_err(|error| reader.broken(*error.marker(), error.info()))?;
        reader.take(event, span.start)?;
    }
    match reader.root {
        None => Ok(ConfigNode { at: 0, value: ConfigValue::Table(Vec::new()) }),
        Some(root @ ConfigNode { value: ConfigValue::Table(_), .. }) => Ok(root),
        Some(other) => Err(file
            .complaint(other.at, format!("the file must be a table, not {}", other.value.kind()))
            .hint("write `key: value`")),
    }
}

struct YamlTreeReader<'f> {
    file: &'f ConfigFile,
    /// The byte offset of each character: the parser counts characters.
    places: Vec<usize>,
    /// The open lists and tables, innermost last.
    open: Vec<OpenCollection>,
    root: Option<ConfigNode>,
}

enum OpenCollection {
    List { at: usize, items: Vec<ConfigNode> },
    Table { at: usize, members: Vec<ConfigMember>, key: Option<(String, usize)> },
}

impl YamlTreeReader<'_> {
    fn take(&mut self, event: Event<'_>, start: Marker) -> Result<(), ConfigComplaint> {
        let at = self.place(start);
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(self.file.complaint(at, "a second document starts here").hint("keep everything in one"))
            }
            Event::DocumentStart(_) => Ok(()),
            Event::Alias(_) => Err(self
                .file
                .complaint(at, "aliases are not read")
                .hint("write the values out; a key that starts with `*` stands in quotes")),
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, Some(_))
            | Event::MappingStart(_, Some(_)) => {
                Err(self.file.complaint(at, "tags are not read").hint("remove what starts with `!`"))
            }
            Event::Scalar(text, style, _, None) => self.scalar(&text, style, at),
            Event::SequenceStart(_, None) => self.open(OpenCollection::List { at, items: Vec::new() }),
            Event::MappingStart(_, None) => {
                self.open(OpenCollection::Table { at, members: Vec::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
        }
    }

    fn open(&mut self, open: OpenCollection) -> Result<(), ConfigComplaint> {
        let at = open.at();
        if matches!(self.open.last(), Some(OpenCollection::Table { key: None, .. })) {
            return Err(self.file.complaint(at, "a key must be a text").hint("write `key: value`"));
        }
        if self.open.len() == MAX_DEPTH {
            let message = format!("nested deeper than {MAX_DEPTH} levels");
            return Err(self.file.complaint(at, message).hint("rules need two"));
        }
        self.open.push(open);
        Ok(())
    }

    fn close(&mut self) -> Result<(), ConfigComplaint> {
        match self.open.pop() {
            Some(OpenCollection::List { at, items }) => {
                self.put(ConfigNode { at, value: ConfigValue::List(items) })
            }
            Some(OpenCollection::Table { at, members, .. }) => {
                self.put(ConfigNode { at, value: ConfigValue::Table(members) })
            }
            None => Ok(()),
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, at: usize) -> Result<(), ConfigComplaint> {
        let Some(OpenCollection::Table { members, key: key @ None, .. }) = self.open.last_mut() else {
            let value =
                if style == ScalarStyle::Plain { plain(text) } else { ConfigValue::Text(text.to_owned()) };
            // An empty document is a file of comments.
            let nothing = self.open.is_empty() && text.is_empty();
            return if nothing { Ok(()) } else { self.put(ConfigNode { at, value }) };
        };
        if members.iter().any(|member| member.key == text) {
            return Err(self
                .file
                .complaint(at, format!("the key `{text}` appears twice"))
                .hint("keep one of them"));
        }
        *key = Some((text.to_owned(), at));
        Ok(())
    }

    fn put(&mut self, node: ConfigNode) -> Result<(), ConfigComplaint> {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(OpenCollection::List { items, .. }) => items.push(node),
            Some(OpenCollection::Table { members, key, .. }) => {
                let (key, key_at) = key.take().expect("a table without a pending key takes no value");
                members.push(ConfigMember { key, key_at, node });
            }
        }
        Ok(())
    }

    fn place(&self, marker: Marker) -> usize {
        self.places.get(marker.index()).copied().unwrap_or(self.file.text.len())
    }

    fn broken(&self, marker: Marker, said: &str) -> ConfigComplaint {
        self.file
            .complaint(self.place(marker), format!("not YAML: {said}"))
            .hint("a key that starts with `*` stands in quotes, and tables are indented by spaces")
    }
}

impl OpenCollection {
    fn at(&self) -> usize {
        match self {
            OpenCollection::List { at, .. } | OpenCollection::Table { at, .. } => *at,
        }
    }
}

/// The value of an unquoted text by the core schema of YAML 1.2.
fn plain(text: &str) -> ConfigValue {
    match text {
        "true" | "True" | "TRUE" => ConfigValue::Boolean(true),
        "false" | "False" | "FALSE" => ConfigValue::Boolean(false),
        "" | "~" | "null" | "Null" | "NULL" => ConfigValue::Other("null"),
        _ => match (text.parse(), text.parse::<f64>()) {
            (Ok(number), _) => ConfigValue::Integer(number),
            (Err(_), Ok(_)) if text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => {
                ConfigValue::Other("a number with a fraction")
            }
            (Err(_), _) => ConfigValue::Text(text.to_owned()),
        },
    }
}
