//! YAML. Block collections are edited by lines, flow collections between their brackets.

use std::ops::Range;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

use crate::bracketed::{Collection, Comments, ItemStyle};
use crate::container::{Container, Entry, EntryTrace};
use crate::json::{self, quoted};
use crate::layout::{Layout, Splice, apply, indentation, indentation_at, line_end, line_start};
use crate::tree::{Error, Member, Node, NodeValue, Plain};

/// 100: deeper than any configuration, and shallow enough for the recursion that reads the tree.
const MAX_DEPTH: usize = 100;

/// The root value; `None` where the text has none.
pub(crate) fn parse(text: &str) -> Result<Option<Node>, Error> {
    let offsets: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let mut builder = TreeBuilder { text, offsets, open: Vec::new(), root: None };
    let mut events = Parser::new_from_str(text);
    while let Some(event) = events.next_event() {
        let (event, span) = event.map_err(|error| {
            Error::at(text, builder.offset(*error.marker()), format!("not YAML: {}", error.info()))
        })?;
        builder.take(event, span.start, span.end)?;
    }
    Ok(builder.root.filter(|root| !matches!(root.value, NodeValue::Null)))
}

struct TreeBuilder<'t> {
    text: &'t str,
    /// The byte offset of each character: the parser counts characters.
    offsets: Vec<usize>,
    open: Vec<OpenCollection>,
    root: Option<Node>,
}

enum OpenCollection {
    List { start: usize, items: Vec<Node> },
    Table { start: usize, members: Vec<Member>, key: Option<(String, Range<usize>)> },
}

impl TreeBuilder<'_> {
    fn offset(&self, marker: Marker) -> usize {
        self.offsets.get(marker.index()).copied().unwrap_or(self.text.len())
    }

    fn take(&mut self, event: Event<'_>, start: Marker, end: Marker) -> Result<(), Error> {
        let span = self.offset(start)..self.offset(end);
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(Error::at(self.text, span.start, "a second document starts here"))
            }
            Event::DocumentStart(_) => Ok(()),
            Event::Alias(_) => {
                let raw = self.text[span.clone()].trim_end().to_owned();
                self.put(Node { span, bracketed: false, value: NodeValue::Other(raw) })
            }
            Event::Scalar(text, style, _, _) => {
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                let span = match is_block {
                    true => span.start..self.end_of_block_scalar(span.start, &text).max(span.start),
                    false => span,
                };
                let value = match style {
                    ScalarStyle::Plain => plain_value(&text),
                    _ => NodeValue::Text(text.into_owned()),
                };
                self.scalar(Node { span, bracketed: false, value })
            }
            Event::SequenceStart(..) => {
                self.begin(OpenCollection::List { start: span.start, items: Vec::new() }, span.start)
            }
            Event::MappingStart(..) => self.begin(
                OpenCollection::Table { start: span.start, members: Vec::new(), key: None },
                span.start,
            ),
            Event::SequenceEnd | Event::MappingEnd => self.end(span),
        }
    }

    fn begin(&mut self, collection: OpenCollection, at: usize) -> Result<(), Error> {
        if matches!(self.open.last(), Some(OpenCollection::Table { key: None, .. })) {
            return Err(Error::at(self.text, at, "a key must be a text"));
        }
        if self.open.len() == MAX_DEPTH {
            return Err(Error::at(self.text, at, format!("nested deeper than {MAX_DEPTH} levels")));
        }
        self.open.push(collection);
        Ok(())
    }

    fn scalar(&mut self, node: Node) -> Result<(), Error> {
        if let Some(OpenCollection::Table { key: key @ None, .. }) = self.open.last_mut() {
            let text = match node.value {
                NodeValue::Text(text) | NodeValue::Other(text) => text,
                NodeValue::Boolean(flag) => flag.to_string(),
                _ => String::new(),
            };
            *key = Some((text, node.span));
            return Ok(());
        }
        self.put(node)
    }

    fn put(&mut self, node: Node) -> Result<(), Error> {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(OpenCollection::List { items, .. }) => items.push(node),
            Some(OpenCollection::Table { members, key, .. }) => match key.take() {
                Some((key, key_span)) => members.push(Member { key, key_span, node }),
                None => return Err(Error::at(self.text, node.span.start, "a key must be a text")),
            },
        }
        Ok(())
    }

    fn end(&mut self, closing: Range<usize>) -> Result<(), Error> {
        let bracketed = self.text[closing.clone()].starts_with(['}', ']']);
        let span = |start: usize, content: Option<usize>| {
            start..if bracketed { closing.start + 1 } else { content.unwrap_or(start) }
        };
        let node = match self.open.pop() {
            Some(OpenCollection::List { start, items }) => {
                let content = items.iter().map(|item| item.span.end).max();
                Node { span: span(start, content), bracketed, value: NodeValue::List(items) }
            }
            Some(OpenCollection::Table { start, members, .. }) => {
                let ends = members.iter().map(|member| member.node.span.end.max(member.key_span.end));
                Node { span: span(start, ends.max()), bracketed, value: NodeValue::Table(members) }
            }
            None => return Ok(()),
        };
        self.put(node)
    }

    /// The end of a literal or folded text that starts at `start`, at its mark or in its first line: of the last line
    /// that is not blank and as deep as the first.
    fn end_of_block_scalar(&self, start: usize, value: &str) -> usize {
        let text = self.text;
        let at_mark = text[start..].starts_with(['|', '>']);
        let mut at = if at_mark { line_end(text, start) } else { line_start(text, start) };
        let mut content = if at_mark { at } else { line_end(text, start) };
        let mut width = None;
        while at < text.len() && !value.trim().is_empty() {
            let next = line_end(text, at);
            let line = &text[at..next];
            let is_blank = line.trim().is_empty();
            if !is_blank && indentation(line).len() < *width.get_or_insert(indentation(line).len()) {
                break;
            }
            content = if is_blank { content } else { next };
            at = next;
        }
        text[..content].trim_end_matches(['\r', '\n']).len()
    }
}

/// The value of an unquoted text by the core schema of YAML 1.2.
fn plain_value(text: &str) -> NodeValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => NodeValue::Null,
        "true" | "True" | "TRUE" => NodeValue::Boolean(true),
        "false" | "False" | "FALSE" => NodeValue::Boolean(false),
        text if looks_like_number(text) => NodeValue::Other(text.to_owned()),
        text => NodeValue::Text(text.to_owned()),
    }
}

fn looks_like_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && (text.parse::<f64>().is_ok() || unsigned.starts_with("0x") || unsigned.starts_with("0o"))
}

/// Inserts `entry`, which is not there yet.
pub(crate) fn insert(
    text: &str,
    root: Option<&Node>,
    container: &Container<'_>,
    entry: &Entry,
) -> Result<(String, EntryTrace), Error> {
    let layout = Layout::of(text);
    let Some(root) = root else { return Ok(append(text, container, entry, &layout, 1)) };
    let (parent, depth) = container.deepest(text, root)?;
    let created = container.path.len() - depth;
    if parent.bracketed {
        let (key, value) = container.nested(depth, entry);
        let insertion = flow_collection(parent).insert(text, &layout, |_| {
            let mut out = key.map(|key| format!("{}: ", quoted(&key))).unwrap_or_default();
            json::render(&value, &ItemStyle::OneLine, &layout, &mut out);
            out
        });
        let trace = EntryTrace { created, before: String::new(), after: insertion.after };
        return Ok((apply(text, insertion.splices), trace));
    }
    if matches!(parent.value, NodeValue::Null) {
        return insert_below_key(text, root, container, entry, &layout);
    }
    if depth == 0 {
        let (appended, trace) = append(text, container, entry, &layout, 0);
        // Behind `...` or a text that has no end yet, a new key would be something else.
        let kept = parse(&appended).ok().flatten().is_some_and(|new| {
            new.members().len() == root.members().len() + 1
                && new.members().iter().zip(root.members()).all(|(a, b)| a.node.plain() == b.node.plain())
        });
        if kept {
            return Ok((appended, trace));
        }
    }
    let (at, indent) = first_line(text, parent)?;
    let (key, value) = container.nested(depth, entry);
    let lines = block_lines(key.as_deref(), &value, indent, &layout);
    Ok((apply(text, vec![Splice::insert(at, lines)]), EntryTrace { created, ..EntryTrace::default() }))
}

/// Appends the whole path to the entry at the end of the text.
fn append(
    text: &str,
    container: &Container<'_>,
    entry: &Entry,
    layout: &Layout,
    created_root: usize,
) -> (String, EntryTrace) {
    let before = if text.is_empty() || text.ends_with('\n') { "" } else { layout.newline };
    let (key, value) = container.nested(0, entry);
    let lines = block_lines(key.as_deref(), &value, "", layout);
    let created = container.path.len() + created_root;
    (
        format!("{text}{before}{lines}"),
        EntryTrace { created, before: before.to_owned(), after: String::new() },
    )
}

/// Inserts below a key that has no value.
fn insert_below_key(
    text: &str,
    root: &Node,
    container: &Container<'_>,
    entry: &Entry,
    layout: &Layout,
) -> Result<(String, EntryTrace), Error> {
    let chain = container.chain(root)?;
    let parent = chain[chain.len() - 2];
    let member = &parent.members()[container.position_of_step(parent, chain.len() - 2)];
    if !member.node.span.is_empty() {
        return Err(Error::at(text, member.node.span.start, format!("`{}` is null", member.key)));
    }
    let indent = format!("{}{}", indentation_at(text, member.key_span.start), spaces(layout));
    let at = line_end(text, member.key_span.end);
    let before = if text[..at].ends_with('\n') { "" } else { layout.newline };
    let (key, value) = container.nested(container.path.len(), entry);
    let lines = block_lines(key.as_deref(), &value, &indent, layout);
    let trace = EntryTrace { before: before.to_owned(), ..EntryTrace::default() };
    Ok((apply(text, vec![Splice::insert(at, format!("{before}{lines}"))]), trace))
}

/// Takes the entry `name` out, and the tables that were created for it and hold nothing else.
pub(crate) fn remove(
    text: &str,
    root: &Node,
    container: &Container<'_>,
    name: &str,
    trace: &EntryTrace,
) -> Result<String, Error> {
    let chain = container.chain(root)?;
    let mut depth = chain.len() - 1;
    let gone = || Error::Uneditable(format!("`{name}` is gone"));
    let mut index = container.index_of(chain[depth], name).ok_or_else(gone)?;
    for _ in 0..trace.created.min(depth) {
        if count(chain[depth]) > 1
            || !holds_nothing_else(text, chain[depth - 1], chain[depth], container, depth)
        {
            break;
        }
        depth -= 1;
        index = container.position_of_step(chain[depth], depth);
    }
    let parent = chain[depth];
    if parent.bracketed {
        return Ok(apply(text, flow_collection(parent).remove(text, index, &trace.after)));
    }
    let (mut start, _) = line_of(text, parent, index)?;
    let end = line_end(text, item_end(parent, index));
    if text[..start].ends_with(&trace.before) {
        start -= trace.before.len();
    }
    Ok(apply(text, vec![Splice::cut(start..end)]))
}

/// Replaces the value of an entry.
pub(crate) fn replace(text: &str, old: &Node, value: &Plain) -> Result<String, Error> {
    let layout = Layout::of(text);
    if old.bracketed {
        let mut out = String::new();
        json::render(value, &ItemStyle::OneLine, &layout, &mut out);
        return Ok(apply(text, vec![Splice { range: old.span.clone(), with: out }]));
    }
    let Plain::Table(members) = value else {
        return Err(Error::Uneditable("an entry is a table".to_owned()));
    };
    let Some(first) = old.members().first() else {
        return Err(Error::Uneditable("the entry has no value".to_owned()));
    };
    let column = first.key_span.start - line_start(text, first.key_span.start);
    let indent = " ".repeat(column);
    let mut lines = String::new();
    for (key, value) in members {
        lines.push_str(&block_lines(Some(key), value, &indent, &layout));
    }
    // The first line keeps what stands before its key: white space, or the dash of a list.
    let lines = lines[column..].trim_end_matches(['\r', '\n']).to_owned();
    Ok(apply(text, vec![Splice { range: first.key_span.start..old.span.end, with: lines }]))
}

fn flow_collection(node: &Node) -> Collection {
    Collection { comments: Comments::Hash, opens_lines: false, ..json::collection(node) }
}

fn count(node: &Node) -> usize {
    node.members().len().max(node.items().len())
}

/// Whether `inner`, the value of a key of `outer`, has no comment beside its one entry.
fn holds_nothing_else(
    text: &str,
    outer: &Node,
    inner: &Node,
    container: &Container<'_>,
    depth: usize,
) -> bool {
    if inner.bracketed {
        return flow_collection(inner).has_no_comments(text);
    }
    let member = &outer.members()[container.position_of_step(outer, depth - 1)];
    let from = member.key_span.end;
    let Ok((first, _)) = line_of(text, inner, 0) else { return false };
    from <= first && text[from..first].trim() == ":"
}

/// The start of the first line of a block collection, and its indentation.
fn first_line<'t>(text: &'t str, node: &Node) -> Result<(usize, &'t str), Error> {
    line_of(text, node, 0)
}

/// The start of the line on which the item `index` of a block collection starts, and its indentation.
fn line_of<'t>(text: &'t str, node: &Node, index: usize) -> Result<(usize, &'t str), Error> {
    let refused = |at: usize| {
        let Error::Broken { line, .. } = Error::at(text, at, "") else { unreachable!("made just now") };
        Error::Uneditable(format!("line {line} holds more than one thing"))
    };
    let at = match &node.value {
        NodeValue::Table(members) => members.get(index).map(|member| member.key_span.start),
        NodeValue::List(items) => items.get(index).and_then(|item| {
            let before = text[..item.span.start].trim_end();
            before.ends_with('-').then(|| before.len() - 1)
        }),
        _ => None,
    };
    let at = at.ok_or_else(|| refused(node.span.start))?;
    let start = line_start(text, at);
    let indent = &text[start..at];
    if indent.chars().all(|c| c == ' ') { Ok((start, indent)) } else { Err(refused(at)) }
}

/// The end of the content of the item `index`.
fn item_end(node: &Node, index: usize) -> usize {
    match &node.value {
        NodeValue::Table(members) => {
            let member = &members[index];
            member.node.span.end.max(member.key_span.end)
        }
        NodeValue::List(items) => items[index].span.end,
        _ => node.span.end,
    }
}

/// The lines of `key: value` at `indent`, or of a list item where there is no key.
fn block_lines(key: Option<&str>, value: &Plain, indent: &str, layout: &Layout) -> String {
    let mut out = String::new();
    match (key, value) {
        (Some(key), Plain::Table(members)) if !members.is_empty() => {
            out.push_str(&format!("{indent}{}:{}", scalar(key), layout.newline));
            let inner = format!("{indent}{}", spaces(layout));
            members
                .iter()
                .for_each(|(key, value)| out.push_str(&block_lines(Some(key), value, &inner, layout)));
        }
        (Some(key), Plain::List(items)) if !items.is_empty() => {
            out.push_str(&format!("{indent}{}:{}", scalar(key), layout.newline));
            let inner = format!("{indent}{}", spaces(layout));
            items.iter().for_each(|item| out.push_str(&block_lines(None, item, &inner, layout)));
        }
        (Some(key), value) => {
            out.push_str(&format!("{indent}{}: {}{}", scalar(key), flow(value, layout), layout.newline));
        }
        (None, Plain::Table(members)) if !members.is_empty() => {
            let inner = format!("{indent}  ");
            let lines: String =
                members.iter().map(|(key, value)| block_lines(Some(key), value, &inner, layout)).collect();
            out.push_str(&format!("{indent}- {}", &lines[inner.len()..]));
        }
        (None, value) => out.push_str(&format!("{indent}- {}{}", flow(value, layout), layout.newline)),
    }
    out
}

/// One level of indentation: YAML takes no tabs.
fn spaces(layout: &Layout) -> &str {
    if layout.unit.contains('\t') { "  " } else { &layout.unit }
}

fn flow(value: &Plain, layout: &Layout) -> String {
    match value {
        Plain::Text(text) => scalar(text),
        value => {
            let mut out = String::new();
            json::render(value, &ItemStyle::OneLine, layout, &mut out);
            out
        }
    }
}

/// `text` without quotes where it can only be a text, else quoted.
fn scalar(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./@".contains(c) || c == '-';
    let starts = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '_');
    let is_text = matches!(plain_value(text), NodeValue::Text(_));
    // Older parsers read these as true and false.
    let is_switch = matches!(text.to_ascii_lowercase().as_str(), "yes" | "no" | "on" | "off" | "y" | "n");
    if starts && is_text && !is_switch && text.chars().all(is_plain) { text.to_owned() } else { quoted(text) }
}
