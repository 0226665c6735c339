//! Edits the calls of a tool in the text of a program.
//!
//! The places come from the structure that analysis found; between them the text stays as it is. What cannot be edited with
//! certainty, such as arguments that are no object literal, is not edited at all.

use pml_model::structure::{NodeKind, Structure};
use serde_json::Value;

use super::ProgramEdit;

/// The program with all calls of `tool` changed; `None` if one of them cannot be.
pub fn edit_program(code: &str, structure: &Structure, tool: &str, edits: &[ProgramEdit]) -> Option<String> {
    let mut spans: Vec<(usize, usize)> = structure
        .nodes
        .iter()
        .filter(|node| matches!(&node.kind, NodeKind::Task { tool: called, .. } if called == tool))
        .map(|node| (node.at.start as usize, node.at.end as usize))
        .collect();
    spans.sort_unstable();
    spans.dedup();
    let mut text = String::with_capacity(code.len() + 64);
    let mut done = 0;
    for (start, end) in &spans {
        // A call within the arguments of another one is left to people.
        text.push_str(code.get(done..*start)?);
        text.push_str(&edit_call(code.get(*start..*end)?, edits)?);
        done = *end;
    }
    text.push_str(code.get(done..)?);
    (!spans.is_empty()).then_some(text)
}

/// `mcp.server.tool({ … })` with the edits applied.
fn edit_call(call: &str, edits: &[ProgramEdit]) -> Option<String> {
    let open = call.find('(')?;
    let (callee, rest) = call.split_at(open);
    let arguments = rest.strip_prefix('(')?.strip_suffix(')')?;
    let mut callee = callee.to_owned();
    let mut arguments = arguments.to_owned();
    let mut adapter = Vec::new();
    for edit in edits {
        match edit {
            ProgramEdit::RenameTool { identifier, .. } => {
                let (before, _) = callee.trim_end().rsplit_once('.')?;
                callee = format!("{before}.{identifier}");
            }
            ProgramEdit::RenameField { from, to } => arguments = rename_field(&arguments, from, to)?,
            ProgramEdit::AddField { name, value } => arguments = add_field(&arguments, name, value)?,
            ProgramEdit::MoveResult { from, to } => adapter.push((from.as_slice(), to.as_slice())),
        }
    }
    let then = match adapter.is_empty() {
        true => String::new(),
        false => format!(".then((r) => ({}))", adapted("r", &adapter)),
    };
    Some(format!("{callee}({arguments}){then}"))
}

/// The expression of an object that has everything that `of` has, and the moved parts where they were.
fn adapted(of: &str, moved: &[(&[String], &[String])]) -> String {
    let mut members = format!("{{ ...{of}");
    let mut firsts: Vec<&String> = moved.iter().filter_map(|(from, _)| from.first()).collect();
    firsts.dedup();
    for first in firsts {
        let within: Vec<(&[String], &[String])> =
            moved.iter().filter(|(from, _)| from.first() == Some(first)).copied().collect();
        let key = property_key(first);
        if let [(from, to)] = within.as_slice()
            && from.len() == 1
        {
            members.push_str(&format!(", {key}: {}", member_of("r", to)));
            continue;
        }
        let inner: Vec<(&[String], &[String])> = within.iter().map(|(from, to)| (&from[1..], *to)).collect();
        let own = format!("{of}{}", accessor(first));
        members.push_str(&format!(", {key}: {}", adapted(&own, &inner)));
    }
    members.push_str(" }");
    members
}

/// The expression for what is at `path`, whatever is missing on the way.
fn member_of(of: &str, path: &[String]) -> String {
    path.iter().fold(of.to_owned(), |expression, name| match is_plain_key(name) {
        true => format!("{expression}?.{name}"),
        false => format!("{expression}?.[{}]", Value::from(name.as_str())),
    })
}

fn accessor(name: &str) -> String {
    if is_plain_key(name) { format!("?.{name}") } else { format!("?.[{}]", Value::from(name)) }
}

fn property_key(name: &str) -> String {
    if is_plain_key(name) { name.to_owned() } else { Value::from(name).to_string() }
}

fn is_plain_key(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_' || c == '$')
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$')
}

fn rename_field(arguments: &str, from: &str, to: &str) -> Option<String> {
    let properties = properties(arguments)?;
    let mut named = properties.iter().filter(|property| property.name.as_deref() == Some(from));
    let (found, other) = (named.next()?, named.next());
    // What is spread may have the old name, too, and what is computed may be it.
    if other.is_some() || properties.iter().any(|property| property.name.is_none()) {
        return None;
    }
    let new = match found.is_shorthand {
        true => format!("{}: {from}", property_key(to)),
        false => property_key(to),
    };
    Some(format!("{}{new}{}", arguments.get(..found.key.0)?, arguments.get(found.key.1..)?))
}

fn add_field(arguments: &str, name: &str, value: &Value) -> Option<String> {
    let field = format!("{}: {value}", property_key(name));
    if arguments.trim().is_empty() {
        return Some(format!("{{ {field} }}"));
    }
    let properties = properties(arguments)?;
    if properties.iter().any(|property| property.name.as_deref() == Some(name)) {
        return None;
    }
    let open = arguments.find('{')?;
    // In front, so that a spread object that has it wins.
    let between = if properties.is_empty() { " " } else { ", " };
    Some(format!("{}{{ {field}{between}{}", &arguments[..open], arguments[open + 1..].trim_start()))
}

/// A property of an object literal.
struct Property {
    /// Its name; `None` if it is spread or computed.
    name: Option<String>,
    /// Where its key is.
    key: (usize, usize),
    is_shorthand: bool,
}

/// The properties of the object literal that `text` is; `None` if it is something else.
fn properties(text: &str) -> Option<Vec<Property>> {
    let mut scanner = Scanner { bytes: text.as_bytes(), at: 0 };
    let mut found = Vec::new();
    scanner.skip_space()?;
    scanner.expect(b'{')?;
    loop {
        scanner.skip_space()?;
        match scanner.peek()? {
            b'}' => break,
            b',' => scanner.at += 1,
            b'.' => {
                found.push(Property { name: None, key: (scanner.at, scanner.at), is_shorthand: false });
                scanner.skip_value()?;
            }
            b'[' => {
                found.push(Property { name: None, key: (scanner.at, scanner.at), is_shorthand: false });
                scanner.skip_bracketed()?;
                scanner.skip_space()?;
                scanner.expect(b':')?;
                scanner.skip_value()?;
            }
            _ => found.push(scanner.property(text)?),
        }
    }
    scanner.at += 1;
    scanner.skip_space()?;
    if scanner.peek() == Some(b',') {
        scanner.at += 1;
        scanner.skip_space()?;
    }
    (scanner.at == text.len()).then_some(found)
}

/// Goes through JavaScript without understanding it: strings, comments and brackets.
struct Scanner<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek() == Some(byte)).then(|| self.at += 1)
    }

    fn property(&mut self, text: &str) -> Option<Property> {
        let start = self.at;
        let name = match self.peek()? {
            b'\'' | b'"' => {
                self.skip_string()?;
                let inner = text.get(start + 1..self.at - 1)?;
                if inner.contains('\\') {
                    return None;
                }
                inner.to_owned()
            }
            _ => {
                let is_name =
                    |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80;
                while self.peek().is_some_and(is_name) {
                    self.at += 1;
                }
                text.get(start..self.at)?.to_owned()
            }
        };
        let key = (start, self.at);
        self.skip_space()?;
        match self.peek()? {
            b':' if !name.is_empty() => {
                self.at += 1;
                self.skip_value()?;
                Some(Property { name: Some(name), key, is_shorthand: false })
            }
            b',' | b'}' if !name.is_empty() => Some(Property { name: Some(name), key, is_shorthand: true }),
            // A method, a getter, or something that is not understood.
            _ => None,
        }
    }

    /// Goes to the `,` or `}` after a value.
    fn skip_value(&mut self) -> Option<()> {
        loop {
            self.skip_space()?;
            match self.peek()? {
                b',' | b'}' => return Some(()),
                b'(' | b'[' | b'{' => self.skip_bracketed()?,
                b'\'' | b'"' => self.skip_string()?,
                b'`' => self.skip_template()?,
                // A division or a regular expression: which of them it is depends on what comes before.
                b'/' => return None,
                _ => self.at += 1,
            }
        }
    }

    fn skip_bracketed(&mut self) -> Option<()> {
        let close = match self.peek()? {
            b'(' => b')',
            b'[' => b']',
            _ => b'}',
        };
        self.at += 1;
        loop {
            self.skip_space()?;
            match self.peek()? {
                byte if byte == close => {
                    self.at += 1;
                    return Some(());
                }
                b')' | b']' | b'}' | b'/' => return None,
                b'(' | b'[' | b'{' => self.skip_bracketed()?,
                b'\'' | b'"' => self.skip_string()?,
                b'`' => self.skip_template()?,
                _ => self.at += 1,
            }
        }
    }

    fn skip_string(&mut self) -> Option<()> {
        let quote = self.peek()?;
        self.at += 1;
        loop {
            match self.peek()? {
                b'\\' => self.at += 2,
                byte => {
                    self.at += 1;
                    if byte == quote {
                        return Some(());
                    }
                }
            }
        }
    }

    fn skip_template(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match self.peek()? {
                b'\\' => self.at += 2,
                b'`' => {
                    self.at += 1;
                    return Some(());
                }
                b'$' if self.bytes.get(self.at + 1) == Some(&b'{') => {
                    self.at += 1;
                    self.skip_bracketed()?;
                }
                _ => self.at += 1,
            }
        }
    }

    /// Skips white space and comments.
    fn skip_space(&mut self) -> Option<()> {
        loop {
            match (self.peek(), self.bytes.get(self.at + 1)) {
                (Some(byte), _) if byte.is_ascii_whitespace() => self.at += 1,
                (Some(b'/'), Some(b'/')) => {
                    while self.peek().is_some_and(|byte| byte != b'\n') {
                        self.at += 1;
                    }
                }
                (Some(b'/'), Some(b'*')) => {
                    self.at += 2;
                    while !self.bytes.get(self.at..)?.starts_with(b"*/") {
                        self.at += 1;
                    }
                    self.at += 2;
                }
                _ => return Some(()),
            }
        }
    }
}
