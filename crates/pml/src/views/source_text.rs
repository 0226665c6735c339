//! The source of a capability as pages show it, and where the nodes of its structure are in it.

use pml_model::capability::CapabilitySource;
use pml_model::structure::Position;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

/// A place in the shown source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct SourceSpan {
    /// Line, from 1.
    #[schema(required = false)]
    pub line: u32,
    /// Column, from 1, in characters.
    #[schema(required = false)]
    pub column: u32,
    /// Offset of the first UTF-16 unit: what JavaScript counts in.
    #[schema(required = false)]
    pub from: u32,
    /// Offset of the UTF-16 unit after the last.
    #[schema(required = false)]
    pub to: u32,
}

/// The shown source.
pub(super) struct SourceText {
    pub(super) text: String,
    /// `ts` or `json`.
    pub(super) language: &'static str,
    /// Where each byte of the stored source is in `text`; `None` if they are the same.
    moved: Option<Vec<u32>>,
    /// Whether positions of the structure refer to the source.
    is_positioned: bool,
}

impl SourceText {
    pub(super) fn of(source: &CapabilitySource) -> SourceText {
        match source {
            CapabilitySource::Code { code, .. } => {
                SourceText { text: code.clone(), language: "ts", moved: None, is_positioned: true }
            }
            CapabilitySource::Dag { dag_structure, .. } => {
                let stored = dag_structure.get();
                // A document of one line is how programs write it; nobody can read that.
                let (text, moved) = if stored.contains('\n') {
                    (stored.to_owned(), None)
                } else {
                    let (text, moved) = indent_json(stored);
                    (text, Some(moved))
                };
                SourceText { text, language: "json", moved, is_positioned: true }
            }
            CapabilitySource::Tool { tool_id, default_args } => {
                let call = json!({ "tool": tool_id, "arguments": default_args });
                let text = serde_json::to_string_pretty(&call).unwrap_or_default();
                SourceText { text, language: "json", moved: None, is_positioned: false }
            }
        }
    }

    /// Where a node is in the shown text; `None` if its position does not fit the text.
    pub(super) fn span(&self, at: Position) -> Option<SourceSpan> {
        if !self.is_positioned {
            let to = u32::try_from(self.text.encode_utf16().count()).ok()?;
            return Some(SourceSpan { line: 1, column: 1, from: 0, to });
        }
        let (start, end) = match &self.moved {
            // The byte after the last one may have gone to the next line; tasks end with a brace of one byte.
            Some(moved) => (*moved.get(at.start as usize)?, *moved.get(at.end.checked_sub(1)? as usize)? + 1),
            None => (at.start, at.end),
        };
        let (start, end) = (start as usize, end as usize);
        let (before, within) = (self.text.get(..start)?, self.text.get(start..end)?);
        if within.is_empty() || (self.language == "json" && !within.starts_with('{')) {
            return None;
        }
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let from = u32::try_from(before.encode_utf16().count()).ok()?;
        Some(SourceSpan {
            line: u32::try_from(before.matches('\n').count()).ok()? + 1,
            column: u32::try_from(before[line_start..].chars().count()).ok()? + 1,
            from,
            to: from + u32::try_from(within.encode_utf16().count()).ok()?,
        })
    }
}

/// JSON with a line for each member, and where each byte of the given text is in it. Nothing but white space differs.
fn indent_json(text: &str) -> (String, Vec<u32>) {
    let mut out = String::with_capacity(text.len() * 2);
    let mut moved = Vec::with_capacity(text.len() + 1);
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let mut characters = text.char_indices().peekable();
    let new_line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some((_, character)) = characters.next() {
        let closes = matches!(character, '}' | ']') && !quoted;
        if closes {
            depth = depth.saturating_sub(1);
            if !matches!(out.chars().last(), Some('{' | '[')) {
                new_line(&mut out, depth);
            }
        }
        let at = u32::try_from(out.len()).unwrap_or(u32::MAX);
        moved.extend(std::iter::repeat_n(at, character.len_utf8()));
        if quoted {
            out.push(character);
            quoted = escaped || character != '"';
            escaped = !escaped && character == '\\';
            continue;
        }
        match character {
            ' ' | '\t' | '\r' => continue,
            ':' => out.push_str(": "),
            '"' => {
                quoted = true;
                out.push(character);
            }
            _ => out.push(character),
        }
        let opens = matches!(character, '{' | '[');
        if opens {
            depth += 1;
        }
        while characters.peek().is_some_and(|(_, next)| matches!(next, ' ' | '\t' | '\r')) {
            characters.next();
            moved.push(u32::try_from(out.len()).unwrap_or(u32::MAX));
        }
        let empty = opens && characters.peek().is_some_and(|(_, next)| matches!(next, '}' | ']'));
        if (opens && !empty) || character == ',' {
            new_line(&mut out, depth);
        }
    }
    moved.push(u32::try_from(out.len()).unwrap_or(u32::MAX));
    (out, moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_indented_and_its_parts_are_found_again() {
        let text = r#"{"tasks": [{"id":"a","x":{},"t":"é{\"}"},{"id":"b"}],"n":[ ]}"#;
        let (shown, moved) = indent_json(text);
        let same: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(same, serde_json::from_str::<serde_json::Value>(text).unwrap());
        assert_eq!(shown.lines().nth(2), Some("    {"), "{shown}");
        assert!(shown.contains("\"x\": {},"), "{shown}");
        let start = text.find("{\"id\":\"b\"").unwrap();
        let source = SourceText { text: shown, language: "json", moved: Some(moved), is_positioned: true };
        let end = start + r#"{"id":"b"}"#.len();
        let at = |start: usize, end: usize| Position {
            start: u32::try_from(start).unwrap(),
            end: u32::try_from(end).unwrap(),
            ..Position::default()
        };
        let span = source.span(at(start, end)).unwrap();
        let units: Vec<u16> = source.text.encode_utf16().collect();
        let found = String::from_utf16(&units[span.from as usize..span.to as usize]).unwrap();
        assert!(found.starts_with('{') && found.ends_with('}'), "{found:?}");
        assert!(found.contains("\"b\"") && !found.contains("\"a\""), "{found:?}");
        assert_eq!((span.line, span.column), (8, 5));
        assert_eq!(source.span(at(start, 9_999)), None, "a position beyond the text");
        assert_eq!(source.span(at(start + 1, end)), None, "not the beginning of a task");
    }

    #[test]
    fn code_is_counted_as_javascript_counts() {
        let text = "// 🙂 é\nawait mcp.fs.read({})".to_owned();
        let start = u32::try_from(text.find("mcp").unwrap()).unwrap();
        let at = Position { line: 2, column: 7, start, end: start + 3 };
        let source = SourceText { text, language: "ts", moved: None, is_positioned: true };
        assert_eq!(source.span(at), Some(SourceSpan { line: 2, column: 7, from: 14, to: 17 }));
    }
}
