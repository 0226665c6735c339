//! JSON with comments and trailing commas.

use jsonc_parser::ast;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use crate::bracketed::{Collection, Comments, ItemStyle};
use crate::container::{Container, Entry, EntryTrace};
use crate::layout::{Layout, Splice, apply};
use crate::tree::{Error, Member, Node, NodeValue, Plain};

/// Comments and trailing commas, which editors write, and nothing else that JSON lacks.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The root value; `None` where there is none.
pub(crate) fn parse(text: &str) -> Result<Option<Node>, Error> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS)
        .map_err(|error| Error::at(text, error.range().start, format!("not JSON: {}", error.kind())))?;
    Ok(parsed.value.as_ref().map(node))
}

fn node(value: &ast::Value<'_>) -> Node {
    use jsonc_parser::common::Ranged as _;
    let range = value.range();
    let value = match value {
        ast::Value::StringLit(literal) => NodeValue::Text(literal.value.to_string()),
        ast::Value::NumberLit(literal) => NodeValue::Other(literal.value.to_owned()),
        ast::Value::BooleanLit(literal) => NodeValue::Boolean(literal.value),
        ast::Value::NullKeyword(_) => NodeValue::Null,
        ast::Value::Array(array) => NodeValue::List(array.elements.iter().map(node).collect()),
        ast::Value::Object(object) => {
            let member = |property: &ast::ObjectProp<'_>| {
                let key = property.name.range();
                Member {
                    key: property.name.as_str().to_owned(),
                    key_span: key.start..key.end,
                    node: node(&property.value),
                }
            };
            NodeValue::Table(object.properties.iter().map(member).collect())
        }
    };
    Node { span: range.start..range.end, bracketed: true, value }
}

/// Inserts `entry`, which is not there yet.
pub(crate) fn insert(
    text: &str,
    root: Option<&Node>,
    container: &Container<'_>,
    entry: &Entry,
) -> Result<(String, EntryTrace), Error> {
    let layout = Layout::of(text);
    let Some(root) = root else { return Ok(insert_root(text, container, entry, &layout)) };
    let (parent, depth) = container.deepest(text, root)?;
    if matches!(parent.value, NodeValue::Null) {
        let message = format!("`{}` is null", container.path.join("."));
        return Err(Error::at(text, parent.span.start, message));
    }
    let (key, value) = container.nested(depth, entry);
    let insertion = collection(parent).insert(text, &layout, |style| {
        let mut out = String::new();
        if let Some(key) = &key {
            out.push_str(&quoted(key));
            out.push_str(": ");
        }
        render(&value, style, &layout, &mut out);
        out
    });
    let trace =
        EntryTrace { created: container.path.len() - depth, before: String::new(), after: insertion.after };
    Ok((apply(text, insertion.splices), trace))
}

/// A file without a value gets one behind its comments.
fn insert_root(
    text: &str,
    container: &Container<'_>,
    entry: &Entry,
    layout: &Layout,
) -> (String, EntryTrace) {
    let before = if text.is_empty() || text.ends_with('\n') { "" } else { layout.newline };
    let mut out = format!("{text}{before}");
    render(&container.whole(entry), &ItemStyle::Lines { indent: String::new() }, layout, &mut out);
    out.push_str(layout.newline);
    let created = container.path.len() + 1;
    (out, EntryTrace { created, before: before.to_owned(), after: layout.newline.to_owned() })
}

/// Takes the entry `name` out, and the containers that were created for it and hold nothing else.
pub(crate) fn remove(
    text: &str,
    root: &Node,
    container: &Container<'_>,
    name: &str,
    trace: &EntryTrace,
) -> Result<String, Error> {
    let chain = container.chain(root)?;
    let Some(index) = container.index_of(chain[chain.len() - 1], name) else { return Ok(text.to_owned()) };
    let (mut depth, mut index) = (chain.len() - 1, index);
    let mut created = trace.created;
    while created > 0 {
        let collection = collection(chain[depth]);
        if collection.items.len() > 1 || !collection.has_no_comments(text) {
            break;
        }
        created -= 1;
        if depth == 0 {
            return Ok(remove_root(text, root, trace));
        }
        depth -= 1;
        index = container.position_of_step(chain[depth], depth);
    }
    Ok(apply(text, collection(chain[depth]).remove(text, index, &trace.after)))
}

fn remove_root(text: &str, root: &Node, trace: &EntryTrace) -> String {
    let mut range = root.span.clone();
    if text[..range.start].ends_with(&trace.before) {
        range.start -= trace.before.len();
    }
    if text[range.end..].starts_with(&trace.after) {
        range.end += trace.after.len();
    }
    apply(text, vec![Splice::cut(range)])
}

/// Replaces the value of an entry.
pub(crate) fn replace(text: &str, old: &Node, entry: &Plain) -> String {
    let layout = Layout::of(text);
    let one_line = !text[old.span.clone()].contains('\n');
    let style = if one_line && text[..old.span.start].contains('{') && text.lines().count() <= 1 {
        ItemStyle::OneLine
    } else {
        ItemStyle::Lines { indent: crate::layout::indentation_at(text, old.span.start).to_owned() }
    };
    let mut out = String::new();
    render(entry, &style, &layout, &mut out);
    apply(text, vec![Splice { range: old.span.clone(), with: out }])
}

pub(crate) fn collection(node: &Node) -> Collection {
    let items = match &node.value {
        NodeValue::Table(members) => {
            members.iter().map(|member| member.key_span.start..member.node.span.end).collect()
        }
        NodeValue::List(items) => items.iter().map(|item| item.span.clone()).collect(),
        _ => Vec::new(),
    };
    Collection { span: node.span.clone(), items, comments: Comments::Slashes, opens_lines: true }
}

/// Writes `value`: tables over several lines unless everything is on one, lists on one line.
pub(crate) fn render(value: &Plain, style: &ItemStyle, layout: &Layout, out: &mut String) {
    match (value, style) {
        (Plain::Table(members), ItemStyle::Lines { indent }) if !members.is_empty() => {
            let inner = format!("{indent}{}", layout.unit);
            out.push('{');
            for (index, (key, value)) in members.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                out.push_str(&format!("{}{inner}{}: ", layout.newline, quoted(key)));
                render(value, &ItemStyle::Lines { indent: inner.clone() }, layout, out);
            }
            out.push_str(&format!("{}{indent}}}", layout.newline));
        }
        (Plain::Table(members), _) => {
            let members = members.iter().map(|(key, value)| {
                let mut member = format!("{}: ", quoted(key));
                render(value, &ItemStyle::OneLine, layout, &mut member);
                member
            });
            let members: Vec<String> = members.collect();
            out.push_str(&if members.is_empty() {
                "{}".to_owned()
            } else {
                format!("{{ {} }}", members.join(", "))
            });
        }
        (Plain::List(items), style) => {
            let has_tables = items.iter().any(|item| matches!(item, Plain::Table(_)));
            let style = if has_tables { style } else { &ItemStyle::OneLine };
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                render(item, style, layout, out);
            }
            out.push(']');
        }
        (Plain::Text(text), _) => out.push_str(&quoted(text)),
        (Plain::Other(raw), _) => out.push_str(raw),
        (Plain::Boolean(flag), _) => out.push_str(if *flag { "true" } else { "false" }),
        (Plain::Null, _) => out.push_str("null"),
    }
}

/// `text` as a JSON string, which is a string of YAML and TOML too.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || ('\u{2028}'..='\u{2029}').contains(&c) => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
