//! Converts the JSON Schema of a tool into a TypeScript declaration that can be called as written.
//!
//! Declarations are several times shorter than the schemas they come from, and a model reads them before it writes a
//! program. Schemas come from untrusted servers: nothing in them can end a comment, hide characters, make the text
//! grow without bound or fetch anything. A malformed or too deep schema becomes `unknown`; building a signature never
//! fails.

mod compact;

use std::collections::HashSet;

use pml_model::Definition;
use pml_model::name::{is_plain, truncate_text};
use serde_json::{Map, Value};

pub use compact::{CompactSignature, compact_capability_signature, compact_signature};

/// The longest signature, in bytes.
const MAX_BYTES: usize = 16 * 1024;

/// The longest description of a tool, in bytes.
const MAX_TOOL_DESCRIPTION_BYTES: usize = 2 * 1024;

/// The longest description of a parameter, in characters.
const MAX_PARAMETER_DESCRIPTION_CHARS: usize = 300;

/// The longest default, pattern or enum value that is shown, in characters.
const MAX_NOTE_CHARS: usize = 80;

/// The largest number of enum values that are listed.
const MAX_VALUES: usize = 64;

/// The largest number of schemas visited for one type: references let a small text stand for a huge one.
const MAX_SCHEMAS: usize = 4000;

/// Objects of at most this many characters stay on one line.
const MAX_LINE_CHARS: usize = 80;

/// Levels of detail, from most to least; the first whose signature fits `MAX_BYTES` is used.
const DETAIL: [SignatureDetail; 4] = [
    SignatureDetail { depth: 8, comments: SignatureComments::Shown, layout: TypeLayout::Block },
    SignatureDetail { depth: 8, comments: SignatureComments::Omitted, layout: TypeLayout::Block },
    SignatureDetail { depth: 3, comments: SignatureComments::Omitted, layout: TypeLayout::Block },
    SignatureDetail { depth: 1, comments: SignatureComments::Omitted, layout: TypeLayout::Block },
];

#[derive(Clone, Copy)]
struct SignatureDetail {
    depth: usize,
    comments: SignatureComments,
    layout: TypeLayout,
}

/// How object types are laid out.
#[derive(Clone, Copy, PartialEq)]
enum TypeLayout {
    /// One member per line, unless the object is short and has no comments.
    Block,
    /// All on one line, with at most this many characters per object; members beyond are only named.
    Line(usize),
}

#[derive(Clone, Copy, PartialEq)]
enum SignatureComments {
    Shown,
    Omitted,
}

/// The declaration of a tool that programs call as `mcp.server.identifier(…)`. Where the tool declares no output
/// schema, the observed schema in `seen` is used, with a comment that gives the number of results it was seen in.
pub fn signature(
    server: &str,
    identifier: &str,
    definition: &Definition,
    seen: Option<(&Value, u64)>,
) -> String {
    let input = serde_json::from_str(definition.input_schema.get()).unwrap_or(Value::Null);
    let output =
        definition.output_schema.as_ref().map(|raw| serde_json::from_str(raw.get()).unwrap_or(Value::Null));
    let start = tool_comment(definition.description.as_deref().unwrap_or_default())
        + &qualified_name(server, identifier);
    let declaration = declared(&start, &input, output.as_ref().or(seen.map(|(schema, _)| schema)));
    match seen.filter(|_| output.is_none()) {
        Some((_, results)) => format!("{declaration}{}", seen_comment(results)),
        None => declaration,
    }
}

/// The comment on the type of a result that was seen and not declared.
fn seen_comment(results: u64) -> String {
    match results {
        1 => " // as seen in 1 result".to_owned(),
        results => format!(" // as seen in {results} results"),
    }
}

/// The name of a tool in programs.
fn qualified_name(server: &str, identifier: &str) -> String {
    match is_identifier(server) {
        true => format!("mcp.{server}.{identifier}"),
        false => format!("mcp[{}].{identifier}", quoted(server)),
    }
}

/// The declaration of a capability as programs call it.
pub fn capability_signature(name: &str, description: &str, parameters: &Value) -> String {
    declared(&format!("{}capabilities.{name}", tool_comment(description)), parameters, None)
}

fn declared(start: &str, input: &Value, output: Option<&Value>) -> String {
    let fits = DETAIL.iter().find_map(|detail| {
        let arguments = arguments(input, *detail);
        let result =
            output.map_or("unknown".to_owned(), |output| TypePrinter::new(output, *detail).root().text);
        let size = start.len() + arguments.len() + result.len() + "(): Promise<>".len();
        (size <= MAX_BYTES).then(|| format!("{start}({arguments}): Promise<{result}>"))
    });
    fits.unwrap_or_else(|| format!("{start}(args: Record<string, unknown>): Promise<unknown>"))
}

fn arguments(schema: &Value, detail: SignatureDetail) -> String {
    let Some(object) = schema.as_object() else { return "args?: Record<string, unknown>".to_owned() };
    let composed = ["$ref", "anyOf", "oneOf", "allOf"].iter().any(|key| object.contains_key(*key));
    let empty = object.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty);
    let open = ["additionalProperties", "patternProperties"].iter().any(|key| object.contains_key(*key));
    let optional = if composed || !required(object).is_empty() { "" } else { "?" };
    if !composed && !optional.is_empty() && empty && !open {
        return "args?: {}".to_owned();
    }
    let mut printer = TypePrinter::new(schema, detail);
    // Arguments are an object even where the schema does not say so.
    let printed = if composed { printer.root() } else { printer.object(object, 0) };
    let text = if printed.shape == TypeShape::Unknown { "Record<string, unknown>" } else { &printed.text };
    format!("args{optional}: {text}")
}

/// A printed type, with what is needed to embed it in another one.
#[derive(Clone)]
struct PrintedType {
    text: String,
    shape: TypeShape,
}

#[derive(Clone, Copy, PartialEq)]
enum TypeShape {
    Single,
    Union,
    Intersection,
    Unknown,
}

impl PrintedType {
    fn single(text: impl Into<String>) -> PrintedType {
        PrintedType { text: text.into(), shape: TypeShape::Single }
    }

    fn unknown() -> PrintedType {
        PrintedType { text: "unknown".to_owned(), shape: TypeShape::Unknown }
    }
}

/// The union of `types`. `unknown` absorbs the others.
fn union(types: Vec<PrintedType>) -> PrintedType {
    if let Some(unknown) = types.iter().find(|found| found.shape == TypeShape::Unknown) {
        return unknown.clone();
    }
    joined(types, " | ", TypeShape::Union)
}

/// The intersection of `types`. `unknown` adds nothing.
fn intersection(mut types: Vec<PrintedType>) -> PrintedType {
    types.retain(|found| found.shape != TypeShape::Unknown);
    if types.len() > 1 {
        for union in types.iter_mut().filter(|found| found.shape == TypeShape::Union) {
            union.text = format!("({})", union.text);
        }
    }
    joined(types, " & ", TypeShape::Intersection)
}

fn joined(mut types: Vec<PrintedType>, between: &str, shape: TypeShape) -> PrintedType {
    let mut seen = HashSet::new();
    types.retain(|found| seen.insert(found.text.clone()));
    match types.len() {
        0 => PrintedType::unknown(),
        1 => types.remove(0),
        _ => PrintedType {
            text: types.into_iter().map(|one| one.text).collect::<Vec<_>>().join(between),
            shape,
        },
    }
}

/// Prints the types of one schema document.
struct TypePrinter<'a> {
    root: &'a Value,
    detail: SignatureDetail,
    schemas_left: usize,
    /// The references being followed; a reference that is among them is recursive.
    following: Vec<&'a str>,
}

impl<'a> TypePrinter<'a> {
    fn new(root: &'a Value, detail: SignatureDetail) -> TypePrinter<'a> {
        TypePrinter { root, detail, schemas_left: MAX_SCHEMAS, following: Vec::new() }
    }

    fn root(&mut self) -> PrintedType {
        self.schema(self.root, 0)
    }

    fn schema(&mut self, schema: &'a Value, depth: usize) -> PrintedType {
        let object = match schema {
            Value::Bool(false) => return PrintedType::single("never"),
            Value::Object(object) if depth <= self.detail.depth && self.schemas_left > 0 => object,
            _ => return PrintedType::unknown(),
        };
        self.schemas_left -= 1;
        let printed = self.without_null(object, depth);
        let nullable = object.get("nullable") == Some(&Value::Bool(true));
        if nullable { union(vec![printed, PrintedType::single("null")]) } else { printed }
    }

    fn without_null(&mut self, schema: &'a Map<String, Value>, depth: usize) -> PrintedType {
        if let Some(reference) = schema.get("$ref") {
            return reference
                .as_str()
                .map_or_else(PrintedType::unknown, |reference| self.reference(reference, depth));
        }
        if let Some(value) = schema.get("const") {
            return literal(value);
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            return enumeration(values);
        }
        let mut parts = vec![self.plain(schema, depth)];
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = schema.get(key) {
                let branches = branches.iter().map(|branch| self.schema(branch, depth + 1)).collect();
                parts.push(union(branches));
            }
        }
        if let Some(Value::Array(all)) = schema.get("allOf") {
            parts.extend(all.iter().map(|part| self.schema(part, depth + 1)));
        }
        // `{"type": "object", "anyOf": […]}` says object twice; the branches are more specific.
        let says_more = parts[1..].iter().any(|part| part.shape != TypeShape::Unknown);
        if says_more && parts[0].text == ANY_OBJECT {
            parts.remove(0);
        }
        intersection(parts)
    }

    /// The type according to `type` and the keywords of objects and arrays.
    fn plain(&mut self, schema: &'a Map<String, Value>, depth: usize) -> PrintedType {
        match schema.get("type") {
            Some(Value::String(name)) => self.named(name, schema, depth),
            Some(Value::Array(names)) => {
                let named = |name: &'a Value| name.as_str().map(|name| self.named(name, schema, depth));
                union(
                    names.iter().map(named).map(|found| found.unwrap_or_else(PrintedType::unknown)).collect(),
                )
            }
            _ if OBJECT_KEYWORDS.iter().any(|key| schema.contains_key(*key)) => self.object(schema, depth),
            _ if ARRAY_KEYWORDS.iter().any(|key| schema.contains_key(*key)) => self.array(schema, depth),
            _ => PrintedType::unknown(),
        }
    }

    fn named(&mut self, name: &str, schema: &'a Map<String, Value>, depth: usize) -> PrintedType {
        match name.to_ascii_lowercase().as_str() {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, depth),
            "number" | "integer" => PrintedType::single("number"),
            simple @ ("string" | "boolean" | "null") => PrintedType::single(simple),
            _ => PrintedType::unknown(),
        }
    }

    fn reference(&mut self, reference: &'a str, depth: usize) -> PrintedType {
        if self.following.contains(&reference) {
            let name = reference
                .rsplit('/')
                .next()
                .filter(|name| is_identifier(name) && name.len() <= MAX_NOTE_CHARS);
            let text = name.map_or("unknown".to_owned(), |name| format!("unknown /* {name} */"));
            return PrintedType { text, shape: TypeShape::Unknown };
        }
        // Only references within this document: `#`, `#/$defs/…`. Nothing is ever fetched.
        let target =
            reference.strip_prefix('#').and_then(|pointer| self.root.pointer(&percent_decoded(pointer)));
        let Some(target) = target else { return PrintedType::unknown() };
        self.following.push(reference);
        let printed = self.schema(target, depth + 1);
        self.following.pop();
        printed
    }

    fn array(&mut self, schema: &'a Map<String, Value>, depth: usize) -> PrintedType {
        let tuple = schema.get("prefixItems").or_else(|| schema.get("items")).and_then(Value::as_array);
        if let Some(tuple) = tuple.filter(|items| !items.is_empty()) {
            let items: Vec<String> = tuple.iter().map(|item| self.schema(item, depth + 1).text).collect();
            let rest =
                schema.get(if schema.contains_key("prefixItems") { "items" } else { "additionalItems" });
            let rest = match rest {
                None | Some(Value::Bool(false)) => String::new(),
                Some(rest) => format!(", ...{}", array_of(&self.schema(rest, depth + 1)).text),
            };
            return PrintedType::single(format!("[{}{rest}]", items.join(", ")));
        }
        let item =
            schema.get("items").map_or_else(PrintedType::unknown, |items| self.schema(items, depth + 1));
        array_of(&item)
    }

    fn object(&mut self, schema: &'a Map<String, Value>, depth: usize) -> PrintedType {
        let required = required(schema);
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut members = Vec::new();
        for (name, property) in properties.into_iter().flatten() {
            members.push(self.member(name, required.contains(name.as_str()), property, depth));
        }
        let unlisted = |name: &&str| !properties.is_some_and(|properties| properties.contains_key(*name));
        let mut unlisted: Vec<&str> = required.into_iter().filter(unlisted).collect();
        unlisted.sort_unstable();
        members.extend(unlisted.into_iter().map(|name| TypeMember::plain(format!("{}: unknown", key(name)))));
        self.with_others(members, schema, depth)
    }

    /// An object with `members` and the additional properties that `schema` allows.
    fn with_others(
        &mut self,
        mut members: Vec<TypeMember>,
        schema: &'a Map<String, Value>,
        depth: usize,
    ) -> PrintedType {
        let others = schema.get("additionalProperties");
        let mut types: Vec<PrintedType> = Vec::new();
        if let Some(Value::Object(patterns)) = schema.get("patternProperties") {
            types.extend(patterns.values().map(|pattern| self.schema(pattern, depth + 1)));
        }
        match others {
            Some(Value::Bool(false)) => {}
            Some(others) => types.push(self.schema(others, depth + 1)),
            None if members.is_empty() && types.is_empty() => return PrintedType::single(ANY_OBJECT),
            None => {}
        }
        if members.is_empty() {
            return PrintedType::single(match types.is_empty() {
                true => "{}".to_owned(),
                false => format!("Record<string, {}>", union(types).text),
            });
        }
        if !types.is_empty() {
            // In TypeScript an index signature must cover every listed member, so this becomes a comment.
            let note = union(types);
            let shown = note.shape != TypeShape::Unknown
                && !note.text.contains('\n')
                && note.text.len() <= MAX_NOTE_CHARS;
            let note = if shown { note.text } else { String::new() };
            members.push(TypeMember { note, ..TypeMember::plain("[key: string]: unknown".to_owned()) });
        }
        PrintedType::single(match self.detail.layout {
            TypeLayout::Block => braces(&members),
            TypeLayout::Line(chars) => compact::braces(&members, chars),
        })
    }

    fn member(&mut self, name: &str, is_required: bool, property: &'a Value, depth: usize) -> TypeMember {
        let printed = self.schema(property, depth + 1);
        let name = format!("{}{}", key(name), if is_required { "" } else { "?" });
        let mut member = TypeMember::plain(format!("{name}: {}", printed.text));
        member.is_required = is_required;
        if let (Some(property), SignatureComments::Shown) = (property.as_object(), self.detail.comments) {
            let description = property.get("description").and_then(Value::as_str).unwrap_or_default();
            let description = comment_line(description);
            (member.description, member.note) = match self.detail.layout {
                TypeLayout::Block => {
                    (truncate_text(&description, MAX_PARAMETER_DESCRIPTION_CHARS), note(property))
                }
                TypeLayout::Line(_) => {
                    (compact::telling_description(&name, &description), compact::note(property))
                }
            };
        }
        member.name = name;
        member
    }
}

/// The type of an object without further constraints.
const ANY_OBJECT: &str = "Record<string, unknown>";
const OBJECT_KEYWORDS: [&str; 3] = ["properties", "additionalProperties", "patternProperties"];
const ARRAY_KEYWORDS: [&str; 2] = ["items", "prefixItems"];

/// A member of an object type.
struct TypeMember {
    /// The name, with a `?` if it may be left out.
    name: String,
    text: String,
    is_required: bool,
    description: String,
    note: String,
}

impl TypeMember {
    fn plain(text: String) -> TypeMember {
        let (name, description, note) = (String::new(), String::new(), String::new());
        TypeMember { name, text, is_required: true, description, note }
    }
}

fn braces(members: &[TypeMember]) -> String {
    let plain = |member: &TypeMember| {
        member.description.is_empty() && member.note.is_empty() && !member.text.contains('\n')
    };
    if members.iter().all(plain) {
        let line = members.iter().map(|member| member.text.as_str()).collect::<Vec<_>>().join("; ");
        if line.len() <= MAX_LINE_CHARS {
            return format!("{{ {line} }}");
        }
    }
    let mut out = "{\n".to_owned();
    for member in members {
        if !member.description.is_empty() {
            out += &format!("  /** {} */\n", member.description);
        }
        // All line breaks here are ours: those of a schema are escaped or stripped.
        out += &format!("  {};", member.text.replace('\n', "\n  "));
        if !member.note.is_empty() {
            out += &format!(" // {}", member.note);
        }
        out.push('\n');
    }
    out + "}"
}

fn array_of(item: &PrintedType) -> PrintedType {
    let short = item.shape == TypeShape::Single && !item.text.contains('\n');
    PrintedType::single(if short || item.text == "unknown" {
        format!("{}[]", item.text)
    } else {
        format!("Array<{}>", item.text)
    })
}

fn literal(value: &Value) -> PrintedType {
    match value {
        Value::String(text) if text.chars().count() > MAX_NOTE_CHARS => PrintedType::single("string"),
        Value::String(text) => PrintedType::single(quoted(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => PrintedType::single(value.to_string()),
        Value::Array(_) | Value::Object(_) => PrintedType::unknown(),
    }
}

fn enumeration(values: &[Value]) -> PrintedType {
    let mut types: Vec<PrintedType> = values.iter().take(MAX_VALUES).map(literal).collect();
    if values.len() > MAX_VALUES {
        let strings = values.iter().all(Value::is_string);
        types.push(if strings { PrintedType::single("string") } else { PrintedType::unknown() });
    }
    union(types)
}

fn required(schema: &Map<String, Value>) -> HashSet<&str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The constraints that a type cannot express, in a few words.
fn note(schema: &Map<String, Value>) -> String {
    let mut notes = Vec::new();
    if schema.get("type").and_then(Value::as_str) == Some("integer") {
        notes.push("integer".to_owned());
    }
    for (key, word) in [
        ("format", ""),
        ("minimum", ">= "),
        ("exclusiveMinimum", "> "),
        ("maximum", "<= "),
        ("exclusiveMaximum", "< "),
        ("minLength", "length >= "),
        ("maxLength", "length <= "),
        ("minItems", "items >= "),
        ("maxItems", "items <= "),
        ("pattern", "pattern "),
        ("default", "default "),
    ] {
        let text = match schema.get(key) {
            Some(Value::String(text)) if key != "default" => text.clone(),
            Some(value @ Value::Number(_)) => value.to_string(),
            Some(value) if key == "default" && !value.is_null() => value.to_string(),
            _ => continue,
        };
        notes.push(format!("{word}{}", truncate_text(&one_line(&text), MAX_NOTE_CHARS)));
    }
    notes.join(", ")
}

fn tool_comment(description: &str) -> String {
    let mut text = String::new();
    for line in description.lines().map(comment_line).filter(|line| !line.is_empty()) {
        text += &line;
        text.push('\n');
    }
    let room = MAX_TOOL_DESCRIPTION_BYTES.min(text.trim_end().len());
    let end = (0..=room).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let ellipsis = if end < text.trim_end().len() { "…" } else { "" };
    let text = format!("{}{ellipsis}", text[..end].trim_end());
    match text.contains('\n') {
        _ if text.is_empty() => String::new(),
        true => format!("/**\n * {}\n */\n", text.replace('\n', "\n * ")),
        false => format!("/** {text} */\n"),
    }
}

/// `text` for the inside of a comment. Hidden characters are removed first, since one of them could separate the two
/// characters that end a comment until then.
fn comment_line(text: &str) -> String {
    one_line(text).replace("*/", "* /")
}

/// `text` on one line, with single spaces and without invisible characters.
fn one_line(text: &str) -> String {
    let shown: String = text.chars().filter(|c| c.is_whitespace() || is_plain(*c)).collect();
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn key(name: &str) -> String {
    if is_identifier(name) { name.to_owned() } else { quoted(name) }
}

fn is_identifier(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$';
    !text.is_empty() && text.bytes().all(legal) && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// `text` as a string literal with the same value in which every character is visible.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    for c in Value::from(text).to_string().chars() {
        if is_plain(c) {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out += &format!("\\u{unit:04x}");
            }
        }
    }
    out
}

/// Decodes a URI fragment; a malformed one is left unchanged.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.filter(|_| *first == b'%').and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests;
