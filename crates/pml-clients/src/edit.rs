//! Reads the servers of a text, and puts one entry in or takes one out.
//!
//! Every edit is checked before it is returned: the new text is parsed again, and apart from the entry it must hold
//! what the old one held.

use crate::container::{Container, Entry, EntryTrace};
use crate::dialect::{ClientServer, Dialect, LaunchCommand, UnreadableServer};
use crate::tree::{Error, Node, Plain};
use crate::variables::VariableValues;
use crate::{json, toml, yaml};

/// The format of a file and where its servers stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileShape {
    /// How the file is written.
    pub format: Format,
    /// The keys that lead to the servers.
    pub path: Vec<String>,
    /// How one server is written.
    pub dialect: Dialect,
    /// What its variables stand for.
    pub values: VariableValues,
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON, with comments and trailing commas where the client takes them.
    Json,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
}

/// The servers of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServersRead {
    /// The servers, in the order of the file.
    pub servers: Vec<ClientServer>,
    /// Entries that are no server that PML can use, with the reason.
    pub unreadable: Vec<UnreadableServer>,
}

/// The result of [`put`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// The entry is there already and says the same.
    Unchanged,
    /// The entry was inserted.
    Inserted {
        /// The new text.
        text: String,
        /// What [`take_out`] needs to leave nothing behind.
        trace: EntryTrace,
    },
    /// An entry of that name said something else and was replaced.
    Replaced {
        /// The new text.
        text: String,
    },
}

/// Reads the servers of `text`.
///
/// # Errors
/// The text is not of its format, or its servers are no table.
pub fn read(text: &str, shape: &FileShape) -> Result<ServersRead, Error> {
    let text = without_mark(text);
    let Some(root) = parse(text, shape.format)? else { return Ok(ServersRead::default()) };
    let container = shape.container();
    let Some(node) = container.find(text, &root)? else { return Ok(ServersRead::default()) };
    let mut found = ServersRead::default();
    for (name, entry) in container.entries(node) {
        match shape.dialect.read(&name, entry, text, &shape.values) {
            Ok(Some(server)) => found.servers.push(server),
            Ok(None) => {}
            Err(unreadable) => found.unreadable.push(unreadable),
        }
    }
    Ok(found)
}

/// Puts the entry `name` into `text`, with the command to start.
///
/// # Errors
/// The text is not of its format, or cannot be edited without changing something else.
pub fn put(text: &str, shape: &FileShape, name: &str, launch: &LaunchCommand) -> Result<Put, Error> {
    let bare = without_mark(text);
    let entry = Entry { name: name.to_owned(), value: shape.dialect.write(name, launch) };
    let root = parse(bare, shape.format)?;
    let container = shape.container();
    let old = match &root {
        Some(root) => container.find(bare, root)?.and_then(|node| container.entry(node, name)),
        None => None,
    };
    if let Some(old) = old {
        if old.plain() == entry.value {
            return Ok(Put::Unchanged);
        }
        let edited = match shape.format {
            Format::Json => json::replace(bare, old, &entry.value),
            Format::Toml => toml::replace(bare, &container, name, &entry.value)?,
            Format::Yaml => yaml::replace(bare, old, &entry.value)?,
        };
        check(bare, &edited, shape, name, Some(&entry.value))?;
        return Ok(Put::Replaced { text: marked(text, edited) });
    }
    let (edited, trace) = match shape.format {
        Format::Json => json::insert(bare, root.as_ref(), &container, &entry)?,
        Format::Toml => toml::insert(bare, &container, &entry)?,
        Format::Yaml => yaml::insert(bare, root.as_ref(), &container, &entry)?,
    };
    check(bare, &edited, shape, name, Some(&entry.value))?;
    Ok(Put::Inserted { text: marked(text, edited), trace })
}

/// Takes the entry `name` out of `text`; `None` where it is not there. `trace` comes from the [`put`] that inserted it;
/// the default fits entries that others wrote.
///
/// # Errors
/// The text is not of its format, or cannot be edited without changing something else.
pub fn take_out(
    text: &str,
    shape: &FileShape,
    name: &str,
    trace: &EntryTrace,
) -> Result<Option<String>, Error> {
    let bare = without_mark(text);
    let Some(root) = parse(bare, shape.format)? else { return Ok(None) };
    let container = shape.container();
    let there = container.find(bare, &root)?.is_some_and(|node| container.entry(node, name).is_some());
    if !there {
        return Ok(None);
    }
    let edited = match shape.format {
        Format::Json => json::remove(bare, &root, &container, name, trace)?,
        Format::Toml => toml::remove(bare, &container, name, trace)?,
        Format::Yaml => yaml::remove(bare, &root, &container, name, trace)?,
    };
    check(bare, &edited, shape, name, None)?;
    Ok(Some(marked(text, edited)))
}

impl FileShape {
    fn container(&self) -> Container<'_> {
        let key: Vec<&str> = self.path.iter().map(String::as_str).collect();
        Container { path: key, named_items: self.dialect.is_list() }
    }
}

fn parse(text: &str, format: Format) -> Result<Option<Node>, Error> {
    match format {
        Format::Json => json::parse(text),
        Format::Toml => toml::parse(text).map(Some),
        Format::Yaml => yaml::parse(text),
    }
}

/// Fails unless `new` holds `entry` as wanted, and beside it what `old` holds.
fn check(old: &str, new: &str, shape: &FileShape, name: &str, entry: Option<&Plain>) -> Result<(), Error> {
    let unreadable = |error: Error| Error::Uneditable(error.to_string());
    let container = shape.container();
    let after = parse(new, shape.format).map_err(unreadable)?;
    let written = match &after {
        Some(root) => {
            container.find(new, root).map_err(unreadable)?.and_then(|node| container.entry(node, name))
        }
        None => None,
    };
    if written.map(Node::plain).as_ref() != entry {
        return Err(Error::Uneditable(format!("`{name}` would not be what it should")));
    }
    let rest = |text: &str| -> Result<Plain, Error> {
        let root = parse(text, shape.format)?;
        Ok(root.map_or(Plain::Table(Vec::new()), |root| without_entry(&root.plain(), &container.path, name)))
    };
    // The order of tables has no meaning where they have headers.
    if rest(old)?.sorted() != rest(new)?.sorted() {
        return Err(Error::Uneditable("other settings would change".to_owned()));
    }
    Ok(())
}

/// `value` without the entry `name`, and without tables on the way that are empty then.
fn without_entry(value: &Plain, path: &[&str], name: &str) -> Plain {
    match (value, path) {
        (Plain::Table(members), []) => {
            Plain::Table(members.iter().filter(|(key, _)| key != name).cloned().collect())
        }
        (Plain::List(items), []) => {
            let is_it = |item: &Plain| {
                matches!(item, Plain::Table(members)
                    if members.iter().any(|(key, value)| key == "name" && *value == Plain::text(name)))
            };
            Plain::List(items.iter().filter(|item| !is_it(item)).cloned().collect())
        }
        (Plain::Table(members), [key, rest @ ..]) => {
            let mut kept = Vec::new();
            for (member, value) in members {
                let value = if member == key { without_entry(value, rest, name) } else { value.clone() };
                let is_empty = match &value {
                    Plain::Table(members) => members.is_empty(),
                    Plain::List(items) => items.is_empty(),
                    Plain::Null => true,
                    _ => false,
                };
                if !(member == key && is_empty) {
                    kept.push((member.clone(), value));
                }
            }
            Plain::Table(kept)
        }
        (value, _) => value.clone(),
    }
}

const MARK: &str = "\u{feff}";

fn without_mark(text: &str) -> &str {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// `edited` with the byte order mark that `text` has.
fn marked(text: &str, edited: String) -> String {
    if text.starts_with(MARK) { format!("{MARK}{edited}") } else { edited }
}
