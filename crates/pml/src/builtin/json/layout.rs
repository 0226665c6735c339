//! Changes the white space of JSON text, and nothing else.

use serde_json::value::RawValue;

/// The same value on one line, every token as it was written.
pub(in crate::builtin) fn compact(value: &RawValue) -> Box<RawValue> {
    let mut out = String::with_capacity(value.get().len());
    for token in JsonTokens(value.get()) {
        out.push_str(token);
    }
    RawValue::from_string(out).expect("JSON without the white space between its tokens is JSON")
}

/// The same value with each member and item on a line of its own.
pub(super) fn indented(value: &RawValue, indent: usize) -> String {
    let mut out = String::with_capacity(value.get().len() * 2);
    let mut level = 0;
    let mut tokens = JsonTokens(value.get()).peekable();
    while let Some(token) = tokens.next() {
        match token {
            "{" | "[" => {
                out.push_str(token);
                if tokens.peek().is_some_and(|next| matches!(*next, "}" | "]")) {
                    out.extend(tokens.next());
                } else {
                    level += 1;
                    new_line(&mut out, level * indent);
                }
            }
            "}" | "]" => {
                level -= 1;
                new_line(&mut out, level * indent);
                out.push_str(token);
            }
            "," => {
                out.push(',');
                new_line(&mut out, level * indent);
            }
            ":" => out.push_str(": "),
            _ => out.push_str(token),
        }
    }
    out
}

fn new_line(out: &mut String, spaces: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', spaces));
}

/// The tokens of a text that is known to be JSON.
struct JsonTokens<'a>(&'a str);

impl<'a> Iterator for JsonTokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.0 = self.0.trim_start_matches([' ', '\t', '\n', '\r']);
        let length = match self.0.as_bytes().first()? {
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            b'"' => string_length(self.0.as_bytes()),
            _ => self.0.find([' ', '\t', '\n', '\r', ',', ']', '}']).unwrap_or(self.0.len()),
        };
        let (token, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(token)
    }
}

/// The length of the string literal that `bytes` begin with.
fn string_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}
