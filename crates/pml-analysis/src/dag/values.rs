//! Parses the arguments of a task: raw bytes where nothing has to be filled in, references where something has.

use std::collections::{HashMap, HashSet};

use pml_model::structure::{Argument, ArgumentField, NodeId, PathStep};
use serde_json::Value;

use super::complaints::DagComplaints;
use super::given::TaskArguments;
use super::reference::{self, Reference, ReferenceProblem, ReferenceRoot, TextPart, TextTemplate};
use super::shorten_for_message;
use super::text::{ByteSpan, JsonKind, JsonMember, JsonTree};
use crate::{ComplaintCode, Severity};

/// Nodes of the document's tasks, by task id.
pub(crate) type TaskIds<'t> = HashMap<&'t str, NodeId>;

/// Parses the arguments of one task.
pub(crate) struct ArgumentReader<'v, 't, 'd> {
    pub(crate) ids: &'v TaskIds<'t>,
    pub(crate) node: NodeId,
    pub(crate) complaints: &'v mut DagComplaints<'t, 'd>,
    /// Every reference found, with its span.
    pub(crate) found: Vec<(Reference, ByteSpan)>,
}

/// A parsed value.
enum ReadValue {
    /// It contains no reference and no escape: its raw bytes are enough.
    Plain,
    /// It contains a reference or an escape.
    Made(TaskArguments),
}

impl ArgumentReader<'_, '_, '_> {
    /// The value for the run and for the structure.
    pub(crate) fn read(&mut self, tree: &JsonTree<'_>) -> (TaskArguments, Argument) {
        let (read, argument) = self.value(tree);
        (self.made(read, tree), argument)
    }

    fn made(&self, read: ReadValue, tree: &JsonTree<'_>) -> TaskArguments {
        match read {
            ReadValue::Plain => TaskArguments::Literal(tree.raw(self.complaints.text)),
            ReadValue::Made(given) => given,
        }
    }

    fn value(&mut self, tree: &JsonTree<'_>) -> (ReadValue, Argument) {
        match &tree.kind {
            JsonKind::Null | JsonKind::Bool(_) | JsonKind::Number => (ReadValue::Plain, self.plain(tree)),
            JsonKind::String(text) => self.text(text, tree),
            JsonKind::Array(items) => self.items(items),
            JsonKind::Object(members) => self.object(members),
        }
    }

    fn items(&mut self, items: &[JsonTree<'_>]) -> (ReadValue, Argument) {
        let (reads, arguments): (Vec<ReadValue>, Vec<Argument>) =
            items.iter().map(|item| self.value(item)).unzip();
        let argument = Argument::Array { items: arguments };
        if reads.iter().all(|read| matches!(read, ReadValue::Plain)) {
            return (ReadValue::Plain, argument);
        }
        let made = reads.into_iter().zip(items).map(|(read, item)| self.made(read, item)).collect();
        (ReadValue::Made(TaskArguments::Array(made)), argument)
    }

    fn object(&mut self, members: &[JsonMember<'_>]) -> (ReadValue, Argument) {
        if let Some(special) = members.iter().find(|member| member.key == "$ref" || member.key == "$literal")
        {
            return self.special(special, members.len());
        }
        self.repeated(members);
        let (mut reads, mut fields) = (Vec::with_capacity(members.len()), Vec::with_capacity(members.len()));
        for member in members {
            let (read, value) = self.value(&member.value);
            reads.push(read);
            fields.push(ArgumentField { name: member.key.to_string(), value });
        }
        let argument = Argument::Object { fields, spreads: Vec::new() };
        if reads.iter().all(|read| matches!(read, ReadValue::Plain)) {
            return (ReadValue::Plain, argument);
        }
        let made = reads.into_iter().zip(members);
        let made =
            made.map(|(read, member)| (member.key.to_string(), self.made(read, &member.value))).collect();
        (ReadValue::Made(TaskArguments::Object(made)), argument)
    }

    /// Parses `{"$ref": …}` or `{"$literal": …}`.
    fn special(&mut self, member: &JsonMember<'_>, members: usize) -> (ReadValue, Argument) {
        if members > 1 {
            let message = format!("`{}` stands beside other members", member.key);
            let hint = "an object with `$ref` or `$literal` has no other members; \
                        wrap the whole object in `{\"$literal\": …}` if it is meant as it is";
            self.complain(ComplaintCode::BadReference, member.at, message, Some(hint.to_owned()));
        }
        if member.key == "$literal" {
            return (
                ReadValue::Made(TaskArguments::Escaped(member.value.raw(self.complaints.text))),
                self.plain(&member.value),
            );
        }
        let JsonKind::String(text) = &member.value.kind else {
            let message = format!("`$ref` is {}, not a text", member.value.name());
            let hint = "write it as `{\"$ref\": \"task.member\"}`".to_owned();
            self.complain(ComplaintCode::BadReference, member.value.span, message, Some(hint));
            return self.not_understood(&member.value);
        };
        match reference::parse_reference(text, &|id| self.ids.contains_key(id)) {
            Ok(reference) => {
                let argument = self.argument(&reference, member.value.span);
                (ReadValue::Made(TaskArguments::Reference(reference)), argument)
            }
            Err(why) => {
                self.unreadable(&why, text, member.value.span);
                self.not_understood(&member.value)
            }
        }
    }

    fn text(&mut self, text: &str, tree: &JsonTree<'_>) -> (ReadValue, Argument) {
        match reference::parse_template(text, &|id| self.ids.contains_key(id)) {
            Ok(TextTemplate::Plain) => {
                self.other_notation(text, tree.span);
                (ReadValue::Plain, Argument::Literal { value: Value::from(text) })
            }
            Ok(TextTemplate::Whole(reference)) => {
                let argument = self.argument(&reference, tree.span);
                (ReadValue::Made(TaskArguments::Reference(reference)), argument)
            }
            Ok(TextTemplate::Parts(parts)) => {
                let arguments = parts.iter().map(|part| match part {
                    TextPart::Text(text) => Argument::Literal { value: Value::from(text.as_str()) },
                    TextPart::Reference(reference) => self.argument(reference, tree.span),
                });
                let argument = Argument::Template { parts: arguments.collect() };
                (ReadValue::Made(TaskArguments::Text(parts)), argument)
            }
            Err(why) => {
                self.unreadable(&why, text, tree.span);
                self.not_understood(tree)
            }
        }
    }

    /// Placeholder for a value that was complained about.
    fn not_understood(&self, tree: &JsonTree<'_>) -> (ReadValue, Argument) {
        let written = &self.complaints.text.text[tree.span.start..tree.span.end];
        (ReadValue::Plain, Argument::Expression { source: shorten_for_message(written), reads: Vec::new() })
    }

    fn argument(&mut self, reference: &Reference, at: ByteSpan) -> Argument {
        self.found.push((reference.clone(), at));
        match &reference.of {
            ReferenceRoot::Task(id) => {
                let node = *self.ids.get(id.as_str()).expect("references are read against these ids");
                if node == self.node {
                    let message = format!("`{reference}` is a reference of the task to itself");
                    self.complain(ComplaintCode::Cycle, at, message, None);
                }
                Argument::Reference { node, path: reference.path.clone() }
            }
            ReferenceRoot::Arguments => {
                let (name, path) = match reference.path.split_first() {
                    Some((PathStep::Key(name), path)) => (name.clone(), path),
                    Some((PathStep::Index(index), path)) => (index.to_string(), path),
                    Some((PathStep::Any, path)) => (String::new(), path),
                    None => (String::new(), &[][..]),
                };
                Argument::Parameter { name, path: path.to_vec() }
            }
        }
    }

    /// A value without references, for the structure.
    fn plain(&mut self, tree: &JsonTree<'_>) -> Argument {
        match &tree.kind {
            JsonKind::Object(members) => {
                self.repeated(members);
                let field = |member: &JsonMember<'_>| ArgumentField {
                    name: member.key.to_string(),
                    value: self.plain(&member.value),
                };
                Argument::Object { fields: members.iter().map(field).collect(), spreads: Vec::new() }
            }
            JsonKind::Array(items) => {
                Argument::Array { items: items.iter().map(|item| self.plain(item)).collect() }
            }
            JsonKind::String(text) => Argument::Literal { value: Value::from(&**text) },
            JsonKind::Null => Argument::Literal { value: Value::Null },
            JsonKind::Bool(value) => Argument::Literal { value: Value::from(*value) },
            JsonKind::Number => {
                let written = &self.complaints.text.text[tree.span.start..tree.span.end];
                // `1e999` is valid JSON but not a number of `serde_json`; the run passes on its spelling all the same.
                let value = serde_json::from_str(written).unwrap_or_else(|_| Value::from(written));
                Argument::Literal { value }
            }
        }
    }

    /// Complains about duplicate keys. Parsers differ in which one counts, so the tool might see something else than
    /// what was approved.
    fn repeated(&mut self, members: &[JsonMember<'_>]) {
        if members.len() < 2 {
            return;
        }
        let mut seen = HashSet::with_capacity(members.len());
        for member in members {
            if !seen.insert(&*member.key) {
                let message = format!("argument `{}` is written twice", shorten_for_message(&member.key));
                self.complain(
                    ComplaintCode::BadTask,
                    member.at,
                    message,
                    Some("keep one of them".to_owned()),
                );
            }
        }
    }

    fn unreadable(&mut self, why: &ReferenceProblem, text: &str, at: ByteSpan) {
        let literal = format!(
            "write `{{\"$literal\": {}}}` if it is meant as text",
            Value::from(shorten_for_message(text))
        );
        match why {
            ReferenceProblem::Unknown(name) => {
                let ids = self.ids;
                let similar = self.complaints.did_you_mean(name, ids.keys().copied().chain(["args"]));
                let hint = similar.map_or(literal.clone(), |similar| format!("{similar} or {literal}"));
                let message = format!("`{}` refers to no task", shorten_for_message(name));
                self.complain(ComplaintCode::UnknownDependency, at, message, Some(hint));
            }
            ReferenceProblem::Path(unexpected) => {
                let message = format!(
                    "the reference in `{}` cannot be read at {}",
                    shorten_for_message(text),
                    shorten_for_message(unexpected)
                );
                let hint = format!("write paths like `task.list[0][\"odd key\"].name`; {literal}");
                self.complain(ComplaintCode::BadReference, at, message, Some(hint));
            }
        }
    }

    /// Complains about texts that are references in another notation, which are most likely mistakes.
    fn other_notation(&mut self, text: &str, at: ByteSpan) {
        let names = text.split('$').skip(1).map(|rest| {
            let rest = rest.strip_prefix('{').unwrap_or(rest);
            let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'));
            &rest[..end.unwrap_or(rest.len())]
        });
        let ids = self.ids;
        if let Some(name) = names.take(100).find(|name| ids.contains_key(name)) {
            let message = format!("`${name}` stays text, although `{name}` is a task");
            let hint = format!("write `{{{{{name}}}}}` to refer to its result");
            self.complaints.add(
                (Severity::Warning, ComplaintCode::BadReference),
                (at, Some(self.node)),
                message,
                Some(hint),
            );
        }
    }

    fn complain(&mut self, code: ComplaintCode, at: ByteSpan, message: String, hint: Option<String>) {
        self.complaints.add((Severity::Error, code), (at, Some(self.node)), message, hint);
    }
}
