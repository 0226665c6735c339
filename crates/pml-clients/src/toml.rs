//! TOML. Tables with a header are edited by lines, inline tables between their braces.

use std::ops::Range;

use toml_edit::{Document, InlineTable, Item, Table, TableLike, Value};

use crate::bracketed::{Collection, Comments};
use crate::container::{Container, Entry, EntryTrace};
use crate::json::quoted;
use crate::layout::{Layout, Splice, apply, line_end, line_start};
use crate::tree::{Error, Member, Node, NodeValue, Plain};

pub(crate) fn parse(text: &str) -> Result<Node, Error> {
    let document = document(text)?;
    let members = members(document.as_table());
    Ok(Node { span: 0..text.len(), bracketed: false, value: NodeValue::Table(members) })
}

fn document(text: &str) -> Result<Document<&str>, Error> {
    Document::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let said = error.message().lines().collect::<Vec<_>>().join(", ");
        Error::at(text, at, format!("not TOML: {said}"))
    })
}

fn members(table: &dyn TableLike) -> Vec<Member> {
    let member = |(key, item): (&str, &Item)| {
        let key_span = table.key(key).and_then(toml_edit::Key::span).unwrap_or(0..0);
        let span = item.span().unwrap_or(key_span.clone());
        Member {
            key: key.to_owned(),
            key_span,
            node: Node { span, bracketed: false, value: item_value(item) },
        }
    };
    table.iter().map(member).collect()
}

fn item_value(item: &Item) -> NodeValue {
    match item {
        Item::None => NodeValue::Null,
        Item::Value(value) => inline_value(value),
        Item::Table(table) => NodeValue::Table(members(table)),
        Item::ArrayOfTables(tables) => NodeValue::List(
            tables
                .iter()
                .map(|table| Node {
                    span: table.span().unwrap_or(0..0),
                    bracketed: false,
                    value: NodeValue::Table(members(table)),
                })
                .collect(),
        ),
    }
}

fn inline_value(value: &Value) -> NodeValue {
    match value {
        Value::String(text) => NodeValue::Text(text.value().clone()),
        Value::Boolean(flag) => NodeValue::Boolean(*flag.value()),
        Value::Integer(number) => NodeValue::Other(number.value().to_string()),
        Value::Float(number) => NodeValue::Other(number.value().to_string()),
        Value::Datetime(time) => NodeValue::Other(time.value().to_string()),
        Value::InlineTable(table) => NodeValue::Table(members(table)),
        Value::Array(items) => NodeValue::List(
            items
                .iter()
                .map(|item| Node {
                    span: item.span().unwrap_or(0..0),
                    bracketed: false,
                    value: inline_value(item),
                })
                .collect(),
        ),
    }
}

/// Inserts `entry`, which is not there yet.
pub(crate) fn insert(
    text: &str,
    container: &Container<'_>,
    entry: &Entry,
) -> Result<(String, EntryTrace), Error> {
    let document = document(text)?;
    let layout = Layout::of(text);
    let servers = find(document.as_table(), &container.path);
    if let Some(Item::Value(Value::InlineTable(servers))) = servers {
        let insertion = inline_collection(servers)?
            .insert(text, &layout, |_| format!("{} = {}", key(&entry.name), inline(&entry.value)));
        return Ok((
            apply(text, insertion.splices),
            EntryTrace { after: insertion.after, ..EntryTrace::default() },
        ));
    }
    let blank = format!("{0}{0}", layout.newline);
    let before = match text {
        "" => "",
        text if text.ends_with(&blank) => "",
        text if text.ends_with('\n') => layout.newline,
        _ => &blank,
    };
    let out = format!("{text}{before}{}", block(container, entry, &layout));
    Ok((out, EntryTrace { before: before.to_owned(), ..EntryTrace::default() }))
}

/// Takes the entry `name` out: every table of it and every line that sets a part of it.
pub(crate) fn remove(
    text: &str,
    container: &Container<'_>,
    name: &str,
    trace: &EntryTrace,
) -> Result<String, Error> {
    let document = document(text)?;
    let gone = || Error::Uneditable(format!("`{name}` is gone"));
    let servers = find(document.as_table(), &container.path).ok_or_else(gone)?;
    if let Item::Value(Value::InlineTable(servers)) = servers {
        let index = servers.iter().position(|(key, _)| key == name).ok_or_else(gone)?;
        if servers.get(name).and_then(Value::as_inline_table).is_some_and(InlineTable::is_dotted) {
            return Err(dotted(name));
        }
        return Ok(apply(text, inline_collection(servers)?.remove(text, index, &trace.after)));
    }
    let mut ranges = lines_of_entry(text, servers, name).ok_or_else(gone)?;
    ranges.sort_by_key(|range| range.start);
    ranges.dedup();
    if let Some(first) = ranges.first_mut()
        && text[..first.start].ends_with(&trace.before)
    {
        first.start -= trace.before.len();
    }
    if *trace == EntryTrace::default() {
        ranges = ranges.into_iter().map(|range| with_blank_lines(text, range)).collect();
    }
    Ok(apply(text, ranges.into_iter().map(Splice::cut).collect()))
}

/// Replaces an entry in its place.
pub(crate) fn replace(
    text: &str,
    container: &Container<'_>,
    name: &str,
    value: &Plain,
) -> Result<String, Error> {
    let document = document(text)?;
    let gone = || Error::Uneditable(format!("`{name}` is gone"));
    let servers = find(document.as_table(), &container.path).ok_or_else(gone)?;
    let old = servers.as_table_like().and_then(|servers| servers.get(name)).ok_or_else(gone)?;
    if let Item::Value(old) = old {
        let range = old.span().ok_or_else(gone)?;
        return Ok(apply(text, vec![Splice { range, with: inline(value) }]));
    }
    let mut ranges = lines_of_entry(text, servers, name).ok_or_else(gone)?;
    ranges.sort_by_key(|range| range.start);
    ranges.dedup();
    let first = ranges.remove(0);
    let mut splices: Vec<Splice> = ranges.into_iter().map(Splice::cut).collect();
    let mut with =
        block(container, &Entry { name: name.to_owned(), value: value.clone() }, &Layout::of(text));
    // Dotted keys stand in a table of their own, which a header would end.
    if old.as_table().is_some_and(Table::is_dotted) {
        return Err(dotted(name));
    }
    if !text[first.clone()].ends_with('\n') {
        with.truncate(with.trim_end().len());
    }
    splices.push(Splice { range: first, with });
    Ok(apply(text, splices))
}

fn dotted(name: &str) -> Error {
    Error::Uneditable(format!("`{name}` is written with dotted keys; write it as a table"))
}

fn find<'d>(root: &'d Table, path: &[&str]) -> Option<&'d Item> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(root.get(first)?, |item, key| item.as_table_like()?.get(key))
}

fn inline_collection(table: &InlineTable) -> Result<Collection, Error> {
    let no_place = || Error::Uneditable("an inline table has no place".to_owned());
    let item = |(key, value): (&str, &Value)| {
        let start = table.key(key).and_then(toml_edit::Key::span).map(|span| span.start);
        Some(start?..value.span()?.end)
    };
    Ok(Collection {
        span: table.span().ok_or_else(no_place)?,
        items: table.iter().map(item).collect::<Option<_>>().ok_or_else(no_place)?,
        comments: Comments::Hash,
        opens_lines: false,
    })
}

/// The lines of the entry, in any order.
fn lines_of_entry(text: &str, servers: &Item, name: &str) -> Option<Vec<Range<usize>>> {
    let servers = servers.as_table()?;
    let whole_lines = |range: Range<usize>| line_start(text, range.start)..line_end(text, range.end);
    match servers.get(name)? {
        Item::Table(table) => {
            let mut ranges = Vec::new();
            collect_lines(table, &mut ranges);
            Some(ranges.into_iter().map(whole_lines).collect())
        }
        item => {
            let start = servers.key(name)?.span()?.start;
            Some(vec![whole_lines(start..item.span()?.end)])
        }
    }
}

/// The ranges of a table: from its header to its last value, and the same for tables below it. A dotted table has no
/// header; each of its values is a range.
fn collect_lines(table: &Table, out: &mut Vec<Range<usize>>) {
    if let Some(header) = table.span().filter(|_| !table.is_dotted() && !table.is_implicit()) {
        let last = table.get_values().iter().filter_map(|(_, value)| value.span()).map(|span| span.end).max();
        out.push(header.start..last.unwrap_or(0).max(header.end));
    }
    for (key, item) in table.iter() {
        match item {
            Item::Table(inner) => collect_lines(inner, out),
            Item::Value(value) if table.is_dotted() => {
                let start = table.key(key).and_then(toml_edit::Key::span).map(|span| span.start);
                out.extend(start.zip(value.span()).map(|(start, span)| start..span.end));
            }
            Item::ArrayOfTables(tables) => tables.iter().for_each(|inner| collect_lines(inner, out)),
            Item::Value(_) | Item::None => {}
        }
    }
}

fn with_blank_lines(text: &str, mut range: Range<usize>) -> Range<usize> {
    while range.end < text.len() && text[range.end..line_end(text, range.end)].trim().is_empty() {
        range.end = line_end(text, range.end);
    }
    range
}

/// `[path.name]` and its values.
fn block(container: &Container<'_>, entry: &Entry, layout: &Layout) -> String {
    let path: Vec<String> = container.path.iter().copied().chain([entry.name.as_str()]).map(key).collect();
    let mut out = format!("[{}]{}", path.join("."), layout.newline);
    if let Plain::Table(members) = &entry.value {
        for (name, value) in members {
            out.push_str(&format!("{} = {}{}", key(name), inline(value), layout.newline));
        }
    }
    out
}

fn key(text: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !text.is_empty() && text.chars().all(is_bare) { text.to_owned() } else { quoted(text) }
}

fn inline(value: &Plain) -> String {
    match value {
        Plain::Null => quoted(""),
        Plain::Boolean(flag) => flag.to_string(),
        Plain::Text(text) => quoted(text),
        Plain::Other(raw) => raw.clone(),
        Plain::List(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Plain::Table(members) if members.is_empty() => "{}".to_owned(),
        Plain::Table(members) => {
            let members = members.iter().map(|(name, value)| format!("{} = {}", key(name), inline(value)));
            format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
        }
    }
}
