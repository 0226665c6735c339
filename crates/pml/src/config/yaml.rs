//! YAML as the same tree that TOML and JSON become, as far as settings need it.
//!
//! Aliases and tags are refused: a reader must see at the place of a rule what the rule says, and
//! without aliases a small file cannot become a large tree.

use pml_model::json::MAX_DEPTH;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

use super::error::Complaint;
use super::node::{File, Member, Node, Value};

/// The largest YAML file read; one rule has about a hundred bytes.
const MAX_BYTES: usize = 256 * 1024;

/// Reads one YAML document, which is a table; one without members where the file says nothing.
pub(super) fn yaml(file: &File) -> Result<Node, Complaint> {
    if file.text.len() > MAX_BYTES {
        let message = format!("the file is larger than {} KiB", MAX_BYTES >> 10);
        return Err(file.complaint(0, message).hint("say the same with fewer rules and `*`"));
    }
    let places = file.text.char_indices().map(|(at, _)| at).collect();
    let mut reader = Reader { file, places, open: Vec::new(), root: None };
    let mut events = Parser::new_from_str(&file.text);
    while let Some(event) = events.next_event() {
        let (event, span) = event.map_err(|error| reader.broken(*error.marker(), error.info()))?;
        reader.take(event, span.start)?;
    }
    match reader.root {
        None => Ok(Node { at: 0, value: Value::Table(Vec::new()) }),
        Some(root @ Node { value: Value::Table(_), .. }) => Ok(root),
        Some(other) => Err(file
            .complaint(other.at, format!("the file must be a table, not {}", other.value.kind()))
            .hint("write `key: value`")),
    }
}

struct Reader<'f> {
    file: &'f File,
    /// Where each character starts: the parser counts characters.
    places: Vec<usize>,
    /// The lists and tables that are not closed yet, the innermost last.
    open: Vec<Open>,
    root: Option<Node>,
}

enum Open {
    List { at: usize, items: Vec<Node> },
    Table { at: usize, members: Vec<Member>, key: Option<(String, usize)> },
}

impl Reader<'_> {
    fn take(&mut self, event: Event<'_>, start: Marker) -> Result<(), Complaint> {
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
            Event::SequenceStart(_, None) => self.open(Open::List { at, items: Vec::new() }),
            Event::MappingStart(_, None) => self.open(Open::Table { at, members: Vec::new(), key: None }),
            Event::SequenceEnd | Event::MappingEnd => self.close(),
        }
    }

    fn open(&mut self, open: Open) -> Result<(), Complaint> {
        let at = open.at();
        if matches!(self.open.last(), Some(Open::Table { key: None, .. })) {
            return Err(self.file.complaint(at, "a key must be a text").hint("write `key: value`"));
        }
        if self.open.len() == MAX_DEPTH {
            let message = format!("nested deeper than {MAX_DEPTH} levels");
            return Err(self.file.complaint(at, message).hint("rules need two"));
        }
        self.open.push(open);
        Ok(())
    }

    fn close(&mut self) -> Result<(), Complaint> {
        match self.open.pop() {
            Some(Open::List { at, items }) => self.put(Node { at, value: Value::List(items) }),
            Some(Open::Table { at, members, .. }) => self.put(Node { at, value: Value::Table(members) }),
            None => Ok(()),
        }
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, at: usize) -> Result<(), Complaint> {
        let Some(Open::Table { members, key: key @ None, .. }) = self.open.last_mut() else {
            let value = if style == ScalarStyle::Plain { plain(text) } else { Value::Text(text.to_owned()) };
            // Nothing at all is a file of comments.
            let nothing = self.open.is_empty() && text.is_empty();
            return if nothing { Ok(()) } else { self.put(Node { at, value }) };
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

    fn put(&mut self, node: Node) -> Result<(), Complaint> {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open::List { items, .. }) => items.push(node),
            Some(Open::Table { members, key, .. }) => {
                let (key, key_at) = key.take().expect("a table without a pending key takes no value");
                members.push(Member { key, key_at, node });
            }
        }
        Ok(())
    }

    fn place(&self, marker: Marker) -> usize {
        self.places.get(marker.index()).copied().unwrap_or(self.file.text.len())
    }

    fn broken(&self, marker: Marker, said: &str) -> Complaint {
        self.file
            .complaint(self.place(marker), format!("not YAML: {said}"))
            .hint("a key that starts with `*` stands in quotes, and tables are indented by spaces")
    }
}

impl Open {
    fn at(&self) -> usize {
        match self {
            Open::List { at, .. } | Open::Table { at, .. } => *at,
        }
    }
}

/// What a text without quotes means by the core schema of YAML 1.2.
fn plain(text: &str) -> Value {
    match text {
        "true" | "True" | "TRUE" => Value::Flag(true),
        "false" | "False" | "FALSE" => Value::Flag(false),
        "" | "~" | "null" | "Null" | "NULL" => Value::Other("null"),
        _ => match (text.parse(), text.parse::<f64>()) {
            (Ok(number), _) => Value::Whole(number),
            (Err(_), Ok(_)) if text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => {
                Value::Other("a number with a fraction")
            }
            (Err(_), _) => Value::Text(text.to_owned()),
        },
    }
}
