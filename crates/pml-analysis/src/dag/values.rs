//! Reads the arguments of a task: bytes where nothing has to be filled in, references where something has.

use std::collections::{HashMap, HashSet};

use pml_model::structure::{Argument, Field, NodeId, Step};
use serde_json::Value;

use super::complaints::Complaints;
use super::given::Given;
use super::reference::{self, Part, Reference, ReferenceProblem, Source, TextTemplate};
use super::shown;
use super::text::{ByteSpan, JsonKind, JsonMember, JsonTree};
use crate::{Code, Severity};

/// The tasks of the document by id.
pub(crate) type TaskIds<'t> = HashMap<&'t str, NodeId>;

/// How one task's arguments are read.
pub(crate) struct ArgumentReader<'v, 't, 'd> {
    pub(crate) ids: &'v TaskIds<'t>,
    pub(crate) node: NodeId,
    pub(crate) complaints: &'v mut Complaints<'t, 'd>,
    /// Every reference that was read, and where.
    pub(crate) found: Vec<(Reference, ByteSpan)>,
}

/// A value as it was read.
enum ReadValue {
    /// Nothing in it is a reference or escaped: its bytes say it all.
    Plain,
    /// Something is.
    Made(Given),
}

impl ArgumentReader<'_, '_, '_> {
    /// The value for the run and for the structure.
    pub(crate) fn read(&mut self, tree: &JsonTree<'_>) -> (Given, Argument) {
        let (read, argument) = self.value(tree);
        (self.made(read, tree), argument)
    }

    fn made(&self, read: ReadValue, tree: &JsonTree<'_>) -> Given {
        match read {
            ReadValue::Plain => Given::Literal(tree.raw(self.complaints.text)),
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
        (ReadValue::Made(Given::Array(made)), argument)
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
            fields.push(Field { name: member.key.to_string(), value });
        }
        let argument = Argument::Object { fields, spreads: Vec::new() };
        if reads.iter().all(|read| matches!(read, ReadValue::Plain)) {
            return (ReadValue::Plain, argument);
        }
        let made = reads.into_iter().zip(members);
        let made =
            made.map(|(read, member)| (member.key.to_string(), self.made(read, &member.value))).collect();
        (ReadValue::Made(Given::Object(made)), argument)
    }

    /// Reads `{"$ref": …}` or `{"$literal": …}`.
    fn special(&mut self, member: &JsonMember<'_>, members: usize) -> (ReadValue, Argument) {
        if members > 1 {
            let message = format!("`{}` stands beside other members", member.key);
            let hint = "an object with `$ref` or `$literal` has no other members; \
                        wrap the whole object in `{\"$literal\": …}` if it is meant as it is";
            self.complain(Code::BadReference, member.at, message, Some(hint.to_owned()));
        }
        if member.key == "$literal" {
            return (
                ReadValue::Made(Given::Escaped(member.value.raw(self.complaints.text))),
                self.plain(&member.value),
            );
        }
        let JsonKind::String(text) = &member.value.kind else {
            let message = format!("`$ref` is {}, not a text", member.value.name());
            let hint = "write it as `{\"$ref\": \"task.member\"}`".to_owned();
            self.complain(Code::BadReference, member.value.span, message, Some(hint));
            return self.not_understood(&member.value);
        };
        match reference::whole(text, &|id| self.ids.contains_key(id)) {
            Ok(reference) => {
                let argument = self.argument(&reference, member.value.span);
                (ReadValue::Made(Given::Reference(reference)), argument)
            }
            Err(why) => {
                self.unreadable(&why, text, member.value.span);
                self.not_understood(&member.value)
            }
        }
    }

    fn text(&mut self, text: &str, tree: &JsonTree<'_>) -> (ReadValue, Argument) {
        match reference::template(text, &|id| self.ids.contains_key(id)) {
            Ok(TextTemplate::Plain) => {
                self.other_notation(text, tree.span);
                (ReadValue::Plain, Argument::Literal { value: Value::from(text) })
            }
            Ok(TextTemplate::Whole(reference)) => {
                let argument = self.argument(&reference, tree.span);
                (ReadValue::Made(Given::Reference(reference)), argument)
            }
            Ok(TextTemplate::Parts(parts)) => {
                let arguments = parts.iter().map(|part| match part {
                    Part::Text(text) => Argument::Literal { value: Value::from(text.as_str()) },
                    Part::Reference(reference) => self.argument(reference, tree.span),
                });
                let argument = Argument::Template { parts: arguments.collect() };
                (ReadValue::Made(Given::Text(parts)), argument)
            }
            Err(why) => {
                self.unreadable(&why, text, tree.span);
                self.not_understood(tree)
            }
        }
    }

    /// A value that was complained of: nothing more can be said about it.
    fn not_understood(&self, tree: &JsonTree<'_>) -> (ReadValue, Argument) {
        let written = &self.complaints.text.text[tree.span.start..tree.span.end];
        (ReadValue::Plain, Argument::Expression { source: shown(written), reads: Vec::new() })
    }

    fn argument(&mut self, reference: &Reference, at: ByteSpan) -> Argument {
        self.found.push((reference.clone(), at));
        match &reference.of {
            Source::Task(id) => {
                let node = *self.ids.get(id.as_str()).expect("references are read against these ids");
                if node == self.node {
                    let message = format!("`{reference}` is a reference of the task to itself");
                    self.complain(Code::Cycle, at, message, None);
                }
                Argument::Reference { node, path: reference.path.clone() }
            }
            Source::Arguments => {
                let (name, path) = match reference.path.split_first() {
                    Some((Step::Key(name), path)) => (name.clone(), path),
                    Some((Step::Index(index), path)) => (index.to_string(), path),
                    Some((Step::Any, path)) => (String::new(), path),
                    None => (String::new(), &[][..]),
                };
                Argument::Parameter { name, path: path.to_vec() }
            }
        }
    }

    /// A value in which nothing is a reference, as the structure shows it.
    fn plain(&mut self, tree: &JsonTree<'_>) -> Argument {
        match &tree.kind {
            JsonKind::Object(members) => {
                self.repeated(members);
                let field = |member: &JsonMember<'_>| Field {
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
                // `1e999` is JSON but no number of ours; the run hands on its spelling all the same.
                let value = serde_json::from_str(written).unwrap_or_else(|_| Value::from(written));
                Argument::Literal { value }
            }
        }
    }

    /// Which of two equal keys counts differs from reader to reader, so what was approved might not be what
    /// the tool sees.
    fn repeated(&mut self, members: &[JsonMember<'_>]) {
        if members.len() < 2 {
            return;
        }
        let mut seen = HashSet::with_capacity(members.len());
        for member in members {
            if !seen.insert(&*member.key) {
                let message = format!("argument `{}` is written twice", shown(&member.key));
                self.complain(Code::BadTask, member.at, message, Some("keep one of them".to_owned()));
            }
        }
    }

    fn unreadable(&mut self, why: &ReferenceProblem, text: &str, at: ByteSpan) {
        let literal =
            format!("write `{{\"$literal\": {}}}` if it is meant as text", Value::from(shown(text)));
        match why {
            ReferenceProblem::Unknown(name) => {
                let ids = self.ids;
                let similar = self.complaints.did_you_mean(name, ids.keys().copied().chain(["args"]));
                let hint = similar.map_or(literal.clone(), |similar| format!("{similar} or {literal}"));
                let message = format!("`{}` refers to no task", shown(name));
                self.complain(Code::UnknownDependency, at, message, Some(hint));
            }
            ReferenceProblem::Path(unexpected) => {
                let message =
                    format!("the reference in `{}` cannot be read at {}", shown(text), shown(unexpected));
                let hint = format!("write paths like `task.list[0][\"odd key\"].name`; {literal}");
                self.complain(Code::BadReference, at, message, Some(hint));
            }
        }
    }

    /// Texts that would be references in other notations are most likely meant so.
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
                (Severity::Warning, Code::BadReference),
                (at, Some(self.node)),
                message,
                Some(hint),
            );
        }
    }

    fn complain(&mut self, code: Code, at: ByteSpan, message: String, hint: Option<String>) {
        self.complaints.add((Severity::Error, code), (at, Some(self.node)), message, hint);
    }
}
