//! References of a DAG document: `t1.content`, `t1.items[0].name`, `t1["odd key"]`, `t1.items.0`, `args.city`.
//!
//! A reference begins with the id of a task, or with `args` for the arguments of the run. Ids may contain
//! dots: the longest id that fits is meant, and documents in which that could surprise (`a` and `a.b` are
//! both tasks) are refused. What follows is a path as JavaScript would write it.

use std::fmt;

use pml_model::structure::Step;
use serde::{Deserialize, Serialize};

/// The name of the run's arguments in references.
pub(crate) const ARGUMENTS: &str = "args";

/// How long the id of a task may be.
pub(crate) const MAX_ID_BYTES: usize = 128;

/// (Part of) a value that is known only when the document runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// Of which value.
    pub of: Source,
    /// Which part; never [`Step::Any`].
    pub path: Vec<Step>,
}

/// What a reference begins with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// The result of the task of this id.
    Task(String),
    /// The arguments of the run.
    Arguments,
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.of {
            Source::Task(id) => id,
            Source::Arguments => ARGUMENTS,
        })?;
        self.path.iter().try_for_each(|step| write_step(step, f))
    }
}

fn write_step(step: &Step, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match step {
        Step::Index(index) => write!(f, "[{index}]"),
        Step::Key(key) if is_word(key) => write!(f, ".{key}"),
        Step::Key(key) => write!(f, "[{}]", serde_json::Value::from(key.as_str())),
        Step::Any => f.write_str("[*]"),
    }
}

fn is_word(key: &str) -> bool {
    key.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$')
        && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '-'))
}

/// Why a text is no reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReferenceProblem {
    /// It begins with no known id.
    Unknown(String),
    /// The path cannot be read.
    Path(String),
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// As it is.
    Text(String),
    /// What a value says, as a JavaScript template would put it; an object as JSON.
    Reference(Reference),
}

impl Part {
    /// The reference, where it is one.
    pub fn reference(&self) -> Option<&Reference> {
        match self {
            Part::Reference(reference) => Some(reference),
            Part::Text(_) => None,
        }
    }
}

/// A text that holds references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TextTemplate {
    /// Nothing in it: a plain text.
    Plain,
    /// Nothing but one reference: the value itself.
    Whole(Reference),
    /// Text and references.
    Parts(Vec<Part>),
}

/// Reads a text that is one reference.
pub(crate) fn whole(text: &str, known: &dyn Fn(&str) -> bool) -> Result<Reference, ReferenceProblem> {
    let (reference, rest) = prefix(text.trim(), known)?;
    if rest.trim().is_empty() { Ok(reference) } else { Err(unexpected(rest)) }
}

/// Reads a text that may hold `{{references}}`.
pub(crate) fn template(text: &str, known: &dyn Fn(&str) -> bool) -> Result<TextTemplate, ReferenceProblem> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while let Some((before, after)) = rest.split_once("{{") {
        if !before.is_empty() {
            parts.push(Part::Text(before.to_owned()));
        }
        let (reference, after) = prefix(after.trim_start(), known)?;
        rest = after.trim_start().strip_prefix("}}").ok_or_else(|| unexpected(after))?;
        parts.push(Part::Reference(reference));
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest.to_owned()));
    }
    Ok(match parts.as_mut_slice() {
        [] | [Part::Text(_)] => TextTemplate::Plain,
        [Part::Reference(_)] => match parts.remove(0) {
            Part::Reference(reference) => TextTemplate::Whole(reference),
            Part::Text(_) => TextTemplate::Plain,
        },
        _ => TextTemplate::Parts(parts),
    })
}

/// Reads the reference at the beginning of `text`; what follows it is returned.
fn prefix<'t>(text: &'t str, known: &dyn Fn(&str) -> bool) -> Result<(Reference, &'t str), ReferenceProblem> {
    let (head, mut rest) = text.split_at(text.find(['[', '{', '}']).unwrap_or(text.len()));
    let head = head.trim_end();
    let name = longest(head, known).ok_or_else(|| {
        ReferenceProblem::Unknown(head.split_once('.').map_or(head, |(name, _)| name).trim().to_owned())
    })?;
    let of = if name == ARGUMENTS { Source::Arguments } else { Source::Task(name.to_owned()) };
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

/// The longest beginning of `head`, up to a dot, that is known. Ids are short, so few beginnings are tried.
fn longest<'t>(head: &'t str, known: &dyn Fn(&str) -> bool) -> Option<&'t str> {
    let ends = head.match_indices('.').map(|(at, _)| at).take_while(|&at| at <= MAX_ID_BYTES);
    let whole = (head.len() <= MAX_ID_BYTES).then_some(head.len());
    ends.chain(whole).map(|end| &head[..end]).filter(|name| known(name) || *name == ARGUMENTS).last()
}

/// Reads `.a.b.0`.
fn members(dotted: &str, path: &mut Vec<Step>) -> Result<(), ReferenceProblem> {
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
        path.push(index(name).unwrap_or_else(|| Step::Key(name.to_owned())));
    }
    Ok(())
}

/// Reads `0]` or `"odd key"]`.
fn bracket(inside: &str) -> Result<(Step, &str), ReferenceProblem> {
    if inside.starts_with('"') {
        let mut keys = serde_json::Deserializer::from_str(inside).into_iter::<String>();
        if let Some(Ok(key)) = keys.next() {
            let rest = &inside[keys.byte_offset()..];
            return rest.strip_prefix(']').map(|rest| (Step::Key(key), rest)).ok_or_else(|| unexpected(rest));
        }
    } else if let Some((number, rest)) = inside.split_once(']')
        && let Some(step) = index(number)
    {
        return Ok((step, rest));
    }
    Err(unexpected(&format!("[{}", inside.split_inclusive(']').next().unwrap_or(inside))))
}

fn index(text: &str) -> Option<Step> {
    let plain = text == "0" || !text.starts_with(['0', '+']);
    plain.then(|| text.parse().ok().map(Step::Index)).flatten()
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
        let shown = match template(text, &known) {
            Ok(TextTemplate::Plain) => "plain".to_owned(),
            Ok(TextTemplate::Whole(reference)) => format!("whole {reference}"),
            Ok(TextTemplate::Parts(parts)) => parts
                .iter()
                .map(|part| match part {
                    Part::Text(text) => format!("{text:?}"),
                    Part::Reference(reference) => reference.to_string(),
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
