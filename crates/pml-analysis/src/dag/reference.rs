//! References of a DAG document: `t1.content`, `t1.items[0].name`, `t1["odd key"]`, `t1.items.0`, `args.city`.
//!
//! A reference begins with the id of a task, or with `args` for the arguments of the run. Ids may contain dots: the
//! longest matching id wins, and documents in which that could surprise (`a` and `a.b` are both tasks) are refused. The
//! rest is a path in JavaScript notation.

use std::fmt;

use pml_model::structure::PathStep;
use serde::{Deserialize, Serialize};

/// Name of the run's arguments in references.
pub(crate) const ARGUMENTS: &str = "args";

/// Maximum length of a task id, in bytes.
pub(crate) const MAX_ID_BYTES: usize = 128;

/// A value, or a part of one, that is known only when the document runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The value that the path starts from.
    pub of: ReferenceRoot,
    /// Path to the part; never contains [`PathStep::Any`].
    pub path: Vec<PathStep>,
}

/// Start of a reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReferenceRoot {
    /// The result of the task with this id.
    Task(String),
    /// The arguments of the run.
    Arguments,
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.of {
            ReferenceRoot::Task(id) => id,
            ReferenceRoot::Arguments => ARGUMENTS,
        })?;
        self.path.iter().try_for_each(|step| write_step(step, f))
    }
}

fn write_step(step: &PathStep, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match step {
        PathStep::Index(index) => write!(f, "[{index}]"),
        PathStep::Key(key) if is_word(key) => write!(f, ".{key}"),
        PathStep::Key(key) => write!(f, "[{}]", serde_json::Value::from(key.as_str())),
        PathStep::Any => f.write_str("[*]"),
    }
}

fn is_word(key: &str) -> bool {
    key.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$')
        && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '-'))
}

/// Reason why a text is not a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReferenceProblem {
    /// It does not begin with a known id.
    Unknown(String),
    /// The path is malformed.
    Path(String),
}

/// A part of a text template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum TextPart {
    /// Literal text.
    Text(String),
    /// The value as text, as a JavaScript template would convert it; an object as JSON.
    Reference(Reference),
}

impl TextPart {
    /// The reference, if the part is one.
    pub fn reference(&self) -> Option<&Reference> {
        match self {
            TextPart::Reference(reference) => Some(reference),
            TextPart::Text(_) => None,
        }
    }
}

/// A text that may contain references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TextTemplate {
    /// No references: a plain text.
    Plain,
    /// Exactly one reference: stands for the value itself.
    Whole(Reference),
    /// Text with references.
    Parts(Vec<TextPart>),
}

/// Parses a text that is one reference.
pub(crate) fn parse_reference(
    text: &str,
    known: &dyn Fn(&str) -> bool,
) -> Result<Reference, ReferenceProblem> {
    let (reference, rest) = prefix(text.trim(), known)?;
    if rest.trim().is_empty() { Ok(reference) } else { Err(unexpected(rest)) }
}

/// Parses a text that may contain `{{references}}`.
pub(crate) fn parse_template(
    text: &str,
    known: &dyn Fn(&str) -> bool,
) -> Result<TextTemplate, ReferenceProblem> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once("{{") {
        if !before.is_empty() {
            parts.push(TextPart::Text(before.to_owned()));
        }
        let (reference, after) = prefix(after.trim_start(), known)?;
        rest = after.trim_start().strip_prefix("}}").ok_or_else(|| unexpected(after))?;
        parts.push(TextPart::Reference(reference));
    }
    if !rest.is_empty() {
        parts.push(TextPart::Text(rest.to_owned()));
    }
    Ok(match parts.as_mut_slice() {
        [] | [TextPart::Text(_)] => TextTemplate::Plain,
        [TextPart::Reference(_)] => match parts.remove(0) {
            TextPart::Reference(reference) => TextTemplate::Whole(reference),
            TextPart::Text(_) => TextTemplate::Plain,
        },
        _ => TextTemplate::Parts(parts),
    })
}

/// Parses the reference at the beginning of `text`. Also returns the rest.
fn prefix<'t>(text: &'t str, known: &dyn Fn(&str) -> bool) -> Result<(Reference, &'t str), ReferenceProblem> {
    let (head, mut rest) = text.split_at(text.find(['[', '{', '}']).unwrap_or(text.len()));
    let head = head.trim_end();
    let name = longest(head, known).ok_or_else(|| {
        ReferenceProblem::Unknown(head.split_once('.').map_or(head, |(name, _)| name).trim().to_owned())
    })?;
    let of = if name == ARGUMENTS { ReferenceRoot::Arguments } else { ReferenceRoot::Task(name.to_owned()) };
    let mut path = Vec::new();
    members(&head[name.len()..], &mut path)?;
    while let Some(inside) = rest.strip_prefix('[') {
        let (step, after) = bracket(inside)?;
        path.push(step);
        let (dotted, after) = after.split_at(after.find(['[', '{', '}']).unwrap_or(after.len()));
        members(dotted.trim_end(), &mut path)?;
        rest = after;
    }
    Ok((Reference { of, path }, rest))
}

/// The longest known prefix of `head` that ends at a dot. Ids are short, so few prefixes are tried.
fn longest<'t>(head: &'t str, known: &dyn Fn(&str) -> bool) -> Option<&'t str> {
    let ends = head.match_indices('.').map(|(at, _)| at).take_while(|&at| at <= MAX_ID_BYTES);
    let whole = (head.len() <= MAX_ID_BYTES).then_some(head.len());
    ends.chain(whole).map(|end| &head[..end]).filter(|name| known(name) || *name == ARGUMENTS).last()
}

/// Parses `.a.b.0`.
fn members(dotted: &str, path: &mut Vec<PathStep>) -> Result<(), ReferenceProblem> {
    if dotted.is_empty() {
        return Ok(());
    }
    let names = dotted.strip_prefix('.').ok_or_else(|| unexpected(dotted))?;
    for name in names.split('.') {
        if name.is_empty()
            || name.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ']' | '?'))
        {
            return Err(unexpected(if name.is_empty() { dotted } else { name }));
        }
        path.push(index(name).unwrap_or_else(|| PathStep::Key(name.to_owned())));
    }
    Ok(())
}

/// Parses `0]` or `"odd key"]`.
fn bracket(inside: &str) -> Result<(PathStep, &str), ReferenceProblem> {
    if inside.starts_with('"') {
        let mut keys = serde_json::Deserializer::from_str(inside).into_iter::<String>();
        if let Some(Ok(key)) = keys.next() {
            let rest = &inside[keys.byte_offset()..];
            return rest
                .strip_prefix(']')
                .map(|rest| (PathStep::Key(key), rest))
                .ok_or_else(|| unexpected(rest));
        }
    } else if let Some((number, rest)) = inside.split_once(']')
        && let Some(step) = index(number)
    {
        return Ok((step, rest));
    }
    Err(unexpected(&format!("[{}", inside.split_inclusive(']').next().unwrap_or(inside))))
}

fn index(text: &str) -> Option<PathStep> {
    let plain = text == "0" || !text.starts_with(['0', '+']);
    plain.then(|| text.parse().ok().map(PathStep::Index)).flatten()
}

fn unexpected(rest: &str) -> ReferenceProblem {
    let shown: String = rest.trim().chars().take(40).collect();
    ReferenceProblem::Path(if shown.is_empty() { "its end".to_owned() } else { format!("`{shown}`") })
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, expected: &Expect) {
        let known = |id: &str| ["t1", "a.b", "fetch data"].contains(&id);
        let shown = match parse_template(text, &known) {
            Ok(TextTemplate::Plain) => "plain".to_owned(),
            Ok(TextTemplate::Whole(reference)) => format!("whole {reference}"),
            Ok(TextTemplate::Parts(parts)) => parts
                .iter()
                .map(|part| match part {
                    TextPart::Text(text) => format!("{text:?}"),
                    TextPart::Reference(reference) => reference.to_string(),
                })
                .collect::<Vec<_>>()
                .join(" + "),
            Err(ReferenceProblem::Unknown(name)) => format!("unknown {name:?}"),
            Err(ReferenceProblem::Path(at)) => format!("unexpected {at}"),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn texts_and_their_references() {
        check("no reference } }} {", &expect!["plain"]);
        check("{{t1}}", &expect!["whole t1"]);
        check("{{ t1.items.0[1].name }}", &expect!["whole t1.items[0][1].name"]);
        check(r#"{{t1["odd }} key"].x}}"#, &expect![[r#"whole t1["odd }} key"].x"#]]);
        check(r#"{{t1["0"].007}}"#, &expect![[r#"whole t1["0"]["007"]"#]]);
        check("{{a.b.c}}", &expect!["whole a.b.c"]);
        check("{{fetch data.x}}", &expect!["whole fetch data.x"]);
        check("{{args.city}}", &expect!["whole args.city"]);
        check(
            "in {{args.city}}: {{t1.n}} of {{t1.m}}",
            &expect![[r#""in " + args.city + ": " + t1.n + " of " + t1.m"#]],
        );
        check(" {{t1}}", &expect![[r#"" " + t1"#]]);
        check("{{a}}", &expect![[r#"unknown "a""#]]);
        check("style={{color: red}}", &expect![[r#"unknown "color: red""#]]);
        check("{{", &expect![[r#"unknown """#]]);
        check("{{t1.a", &expect!["unexpected its end"]);
        check("{{t1.}}", &expect!["unexpected `.`"]);
        check("{{t1[-1]}}", &expect!["unexpected `[-1]`"]);
        check("{{t1.a[*].b}}", &expect!["unexpected `[*]`"]);
        check("{{t1?.a}}", &expect![[r#"unknown "t1?""#]]);
        check("{{t1.a b}}", &expect!["unexpected `a b`"]);
        check("{{{t1.a}}}", &expect![[r#"unknown """#]]);
    }
}
