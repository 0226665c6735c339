//! A tool's JSON Schema as a TypeScript declaration that can be called as written.
//!
//! Declarations are several times shorter than the schemas they come from, and they are what a model
//! reads before it writes a program. Schemas come from servers we do not trust: nothing in them can
//! end a comment, hide characters, make the text grow without bound or fetch anything. What is
//! malformed or too deep becomes `unknown`; building a signature never fails.

use std::collections::HashSet;

use pml_model::Definition;
use pml_model::name::{is_plain, shortened};
use serde_json::{Map, Value};

/// The longest signature.
const MAX_BYTES: usize = 16 * 1024;

/// The longest description of a tool.
const MAX_TOOL_DESCRIPTION_BYTES: usize = 2 * 1024;

/// The longest description of a parameter.
const MAX_PARAMETER_DESCRIPTION_CHARS: usize = 300;

/// The longest default or pattern shown, and the longest value an enum lists.
const MAX_NOTE_CHARS: usize = 80;

/// The most values an enum lists.
const MAX_VALUES: usize = 64;

/// The most schemas looked at for one type: references let a small text stand for a huge one.
const MAX_SCHEMAS: usize = 4000;

/// Objects up to this long stay on one line.
const MAX_LINE_CHARS: usize = 80;

/// How much of a schema is told, from everything to hardly anything; the first that fits is taken.
const DETAIL: [Detail; 4] = [
    Detail { depth: 8, comments: Comments::Shown },
    Detail { depth: 8, comments: Comments::Left },
    Detail { depth: 3, comments: Comments::Left },
    Detail { depth: 1, comments: Comments::Left },
];

#[derive(Clone, Copy)]
struct Detail {
    depth: usize,
    comments: Comments,
}

#[derive(Clone, Copy, PartialEq)]
enum Comments {
    Shown,
    Left,
}

/// The declaration of a tool that programs call as `mcp.server.identifier(…)`. Where the tool does not say what it gives,
/// what it was `seen` to give in so many results stands there, marked as that.
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
        + &if is_identifier(server) { format!("mcp.{server}") } else { format!("mcp[{}]", quoted(server)) }
        + &format!(".{identifier}");
    let declaration = declared(&start, &input, output.as_ref().or(seen.map(|(schema, _)| schema)));
    match seen.filter(|_| output.is_none()) {
        Some((_, 1)) => format!("{declaration} // as seen in 1 result"),
        Some((_, results)) => format!("{declaration} // as seen in {results} results"),
        None => declaration,
    }
}

/// The declaration of a capability as programs call it.
pub fn capability(name: &str, description: &str, parameters: &Value) -> String {
    declared(&format!("{}capabilities.{name}", tool_comment(description)), parameters, None)
}

fn declared(start: &str, input: &Value, output: Option<&Value>) -> String {
    let fits = DETAIL.iter().find_map(|detail| {
        let arguments = arguments(input, *detail);
        let result = output.map_or("unknown".to_owned(), |output| Printer::new(output, *detail).root().text);
        let size = start.len() + arguments.len() + result.len() + "(): Promise<>".len();
        (size <= MAX_BYTES).then(|| format!("{start}({arguments}): Promise<{result}>"))
    });
    fits.unwrap_or_else(|| format!("{start}(args: Record<string, unknown>): Promise<unknown>"))
}

fn arguments(schema: &Value, detail: Detail) -> String {
    let Some(object) = schema.as_object() else { return "args?: Record<string, unknown>".to_owned() };
    let composed = ["$ref", "anyOf", "oneOf", "allOf"].iter().any(|key| object.contains_key(*key));
    let empty = object.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty);
    let open = ["additionalProperties", "patternProperties"].iter().any(|key| object.contains_key(*key));
    let optional = if composed || !required(object).is_empty() { "" } else { "?" };
    if !composed && !optional.is_empty() && empty && !open {
        return "args?: {}".to_owned();
    }
    let mut printer = Printer::new(schema, detail);
    // Arguments are an object whether or not the schema says so.
    let printed = if composed { printer.root() } else { printer.object(object, 0) };
    let text = if printed.shape == Shape::Unknown { "Record<string, unknown>" } else { &printed.text };
    format!("args{optional}: {text}")
}

/// A printed type, and what has to be known to put it into another one.
#[derive(Clone)]
struct Type {
    text: String,
    shape: Shape,
}

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Single,
    Union,
    Intersection,
    Unknown,
}

impl Type {
    fn single(text: impl Into<String>) -> Type {
        Type { text: text.into(), shape: Shape::Single }
    }

    fn unknown() -> Type {
        Type { text: "unknown".to_owned(), shape: Shape::Unknown }
    }
}

/// Any of `types`. What may be anything swallows the rest.
fn union(types: Vec<Type>) -> Type {
    if let Some(unknown) = types.iter().find(|found| found.shape == Shape::Unknown) {
        return unknown.clone();
    }
    joined(types, " | ", Shape::Union)
}

/// All of `types` at once. What may be anything adds nothing.
fn intersection(mut types: Vec<Type>) -> Type {
    types.retain(|found| found.shape != Shape::Unknown);
    if types.len() > 1 {
        for union in types.iter_mut().filter(|found| found.shape == Shape::Union) {
            union.text = format!("({})", union.text);
        }
    }
    joined(types, " & ", Shape::Intersection)
}

fn joined(mut types: Vec<Type>, between: &str, shape: Shape) -> Type {
    let mut seen = HashSet::new();
    types.retain(|found| seen.insert(found.text.clone()));
    match types.len() {
        0 => Type::unknown(),
        1 => types.remove(0),
        _ => Type { text: types.into_iter().map(|one| one.text).collect::<Vec<_>>().join(between), shape },
    }
}

/// Prints the types of one schema document.
struct Printer<'a> {
    root: &'a Value,
    detail: Detail,
    schemas_left: usize,
    /// The references being followed: one that is among them is recursive.
    following: Vec<&'a str>,
}

impl<'a> Printer<'a> {
    fn new(root: &'a Value, detail: Detail) -> Printer<'a> {
        Printer { root, detail, schemas_left: MAX_SCHEMAS, following: Vec::new() }
    }

    fn root(&mut self) -> Type {
        self.schema(self.root, 0)
    }

    fn schema(&mut self, schema: &'a Value, depth: usize) -> Type {
        let object = match schema {
            Value::Bool(false) => return Type::single("never"),
            Value::Object(object) if depth <= self.detail.depth && self.schemas_left > 0 => object,
            _ => return Type::unknown(),
        };
        self.schemas_left -= 1;
        let printed = self.without_null(object, depth);
        let nullable = object.get("nullable") == Some(&Value::Bool(true));
        if nullable { union(vec![printed, Type::single("null")]) } else { printed }
    }

    fn without_null(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Type {
        if let Some(reference) = schema.get("$ref") {
            return reference
                .as_str()
                .map_or_else(Type::unknown, |reference| self.reference(reference, depth));
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
        // `{"type": "object", "anyOf": […]}` says object twice; the branches say which.
        let says_more = parts[1..].iter().any(|part| part.shape != Shape::Unknown);
        if says_more && parts[0].text == ANY_OBJECT {
            parts.remove(0);
        }
        intersection(parts)
    }

    /// What `type` and the keywords of objects and arrays say.
    fn plain(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Type {
        match schema.get("type") {
            Some(Value::String(name)) => self.named(name, schema, depth),
            Some(Value::Array(names)) => {
                let named = |name: &'a Value| name.as_str().map(|name| self.named(name, schema, depth));
                union(names.iter().map(named).map(|found| found.unwrap_or_else(Type::unknown)).collect())
            }
            _ if OBJECT_KEYWORDS.iter().any(|key| schema.contains_key(*key)) => self.object(schema, depth),
            _ if ARRAY_KEYWORDS.iter().any(|key| schema.contains_key(*key)) => self.array(schema, depth),
            _ => Type::unknown(),
        }
    }

    fn named(&mut self, name: &str, schema: &'a Map<String, Value>, depth: usize) -> Type {
        match name.to_ascii_lowercase().as_str() {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, depth),
            "number" | "integer" => Type::single("number"),
            simple @ ("string" | "boolean" | "null") => Type::single(simple),
            _ => Type::unknown(),
        }
    }

    fn reference(&mut self, reference: &'a str, depth: usize) -> Type {
        if self.following.contains(&reference) {
            let name = reference
                .rsplit('/')
                .next()
                .filter(|name| is_identifier(name) && name.len() <= MAX_NOTE_CHARS);
            let text = name.map_or("unknown".to_owned(), |name| format!("unknown /* {name} */"));
            return Type { text, shape: Shape::Unknown };
        }
        // Only what is in this document: `#`, `#/$defs/…`. Nothing is ever fetched.
        let target =
            reference.strip_prefix('#').and_then(|pointer| self.root.pointer(&percent_decoded(pointer)));
        let Some(target) = target else { return Type::unknown() };
        self.following.push(reference);
        let printed = self.schema(target, depth + 1);
        self.following.pop();
        printed
    }

    fn array(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Type {
        let tuple = schema.get("prefixItems").or_else(|| schema.get("items")).and_then(Value::as_array);
        if let Some(tuple) = tuple.filter(|items| !items.is_empty()) {
            let items: Vec<String> = tuple.iter().map(|item| self.schema(item, depth + 1).text).collect();
            let rest =
                schema.get(if schema.contains_key("prefixItems") { "items" } else { "additionalItems" });
            let rest = match rest {
                None | Some(Value::Bool(false)) => String::new(),
                Some(rest) => format!(", ...{}", array_of(&self.schema(rest, depth + 1)).text),
            };
            return Type::single(format!("[{}{rest}]", items.join(", ")));
        }
        let item = schema.get("items").map_or_else(Type::unknown, |items| self.schema(items, depth + 1));
        array_of(&item)
    }

    fn object(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Type {
        let required = required(schema);
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut members = Vec::new();
        for (name, property) in properties.into_iter().flatten() {
            let optional = if required.contains(name.as_str()) { "" } else { "?" };
            members.push(self.member(&format!("{}{optional}", key(name)), property, depth));
        }
        let unlisted = |name: &&str| !properties.is_some_and(|properties| properties.contains_key(*name));
        let mut unlisted: Vec<&str> = required.into_iter().filter(unlisted).collect();
        unlisted.sort_unstable();
        members.extend(unlisted.into_iter().map(|name| Member::plain(format!("{}: unknown", key(name)))));
        self.with_others(members, schema, depth)
    }

    /// An object of `members` and whatever else `schema` lets in.
    fn with_others(
        &mut self,
        mut members: Vec<Member>,
        schema: &'a Map<String, Value>,
        depth: usize,
    ) -> Type {
        let others = schema.get("additionalProperties");
        let mut types: Vec<Type> = Vec::new();
        if let Some(Value::Object(patterns)) = schema.get("patternProperties") {
            types.extend(patterns.values().map(|pattern| self.schema(pattern, depth + 1)));
        }
        match others {
            Some(Value::Bool(false)) => {}
            Some(others) => types.push(self.schema(others, depth + 1)),
            None if members.is_empty() && types.is_empty() => return Type::single(ANY_OBJECT),
            None => {}
        }
        if members.is_empty() {
            return Type::single(match types.is_empty() {
                true => "{}".to_owned(),
                false => format!("Record<string, {}>", union(types).text),
            });
        }
        if !types.is_empty() {
            // TypeScript wants every listed member to have the type of the others, so it is a note.
            let note = union(types);
            let shown = note.shape != Shape::Unknown
                && !note.text.contains('\n')
                && note.text.len() <= MAX_NOTE_CHARS;
            let note = if shown { note.text } else { String::new() };
            members.push(Member { note, ..Member::plain("[key: string]: unknown".to_owned()) });
        }
        Type::single(braces(&members))
    }

    fn member(&mut self, name: &str, property: &'a Value, depth: usize) -> Member {
        let printed = self.schema(property, depth + 1);
        let mut member = Member::plain(format!("{name}: {}", printed.text));
        if let (Some(property), Comments::Shown) = (property.as_object(), self.detail.comments) {
            let description = property.get("description").and_then(Value::as_str).unwrap_or_default();
            member.description = shortened(&comment_line(description), MAX_PARAMETER_DESCRIPTION_CHARS);
            member.note = note(property);
        }
        member
    }
}

/// What the type of an object without any further word is.
const ANY_OBJECT: &str = "Record<string, unknown>";
const OBJECT_KEYWORDS: [&str; 3] = ["properties", "additionalProperties", "patternProperties"];
const ARRAY_KEYWORDS: [&str; 2] = ["items", "prefixItems"];

/// One line of an object type.
struct Member {
    text: String,
    description: String,
    note: String,
}

impl Member {
    fn plain(text: String) -> Member {
        Member { text, description: String::new(), note: String::new() }
    }
}

fn braces(members: &[Member]) -> String {
    let plain = |member: &Member| {
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
        // Only our own line breaks are in here: those of a schema are escaped or stripped.
        out += &format!("  {};", member.text.replace('\n', "\n  "));
        if !member.note.is_empty() {
            out += &format!(" // {}", member.note);
        }
        out.push('\n');
    }
    out + "}"
}

fn array_of(item: &Type) -> Type {
    let short = item.shape == Shape::Single && !item.text.contains('\n');
    Type::single(if short || item.text == "unknown" {
        format!("{}[]", item.text)
    } else {
        format!("Array<{}>", item.text)
    })
}

fn literal(value: &Value) -> Type {
    match value {
        Value::String(text) if text.chars().count() > MAX_NOTE_CHARS => Type::single("string"),
        Value::String(text) => Type::single(quoted(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => Type::single(value.to_string()),
        Value::Array(_) | Value::Object(_) => Type::unknown(),
    }
}

fn enumeration(values: &[Value]) -> Type {
    let mut types: Vec<Type> = values.iter().take(MAX_VALUES).map(literal).collect();
    if values.len() > MAX_VALUES {
        let strings = values.iter().all(Value::is_string);
        types.push(if strings { Type::single("string") } else { Type::unknown() });
    }
    union(types)
}

fn required(schema: &Map<String, Value>) -> HashSet<&str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// What a type cannot say about a value, in a few words.
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
        notes.push(format!("{word}{}", shortened(&one_line(&text), MAX_NOTE_CHARS)));
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

/// `text` for the inside of a comment. Hidden characters go first, so that none of them can keep the
/// two that end a comment apart until then.
fn comment_line(text: &str) -> String {
    one_line(text).replace("*/", "* /")
}

/// `text` on one line, with single spaces and without characters that do not show.
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

/// `text` as a string literal that means exactly it and shows everything it contains.
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

/// A fragment of a URI as the text it stands for; left alone where it is not well formed.
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
