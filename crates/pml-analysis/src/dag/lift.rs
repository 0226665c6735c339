//! Which literals of a document become parameters. The rules are those of programs: the arguments of tasks are shown to
//! [`LiteralLifter`] as those of calls are.

use std::rc::Rc;

use oxc_span::Span;
use pml_model::structure::{Argument, Step};
use rustc_hash::FxHashSet;
use serde_json::{Value as Json, json};

use super::complaints::Complaints;
use super::reference::{Reference, Source};
use super::row::TaskRow;
use super::text::{self, DocumentText, JsonKind, JsonTree};
use crate::budget::WorkBudget;
use crate::literals::{LiftedParameters, LiteralLifter};
use crate::value::{self, ObjectRecord, SourceLiteral, Value};
use crate::{Code, Parameters, Severity};

/// Reads arguments for the sake of their literals.
pub(super) struct LiteralReader<'t, 'd> {
    text: &'t DocumentText<'d>,
    /// Those that are escaped: they are meant as they are.
    escaped: FxHashSet<Span>,
}

impl<'t, 'd> LiteralReader<'t, 'd> {
    pub(super) fn new(text: &'t DocumentText<'d>) -> LiteralReader<'t, 'd> {
        LiteralReader { text, escaped: FxHashSet::default() }
    }

    /// The arguments of a task as those of a call of a program; `argument` says what was made of `tree`. Members come
    /// in the order of their names: the one they are written in is no part of what a document is.
    pub(super) fn read(&mut self, tree: &JsonTree<'_>, argument: &Argument) -> Value<'static> {
        match (&tree.kind, argument) {
            (JsonKind::Object(members), argument)
                if members.iter().any(|member| member.key == "$literal") =>
            {
                self.escaped(tree, argument)
            }
            (JsonKind::Object(members), Argument::Object { fields, .. }) => {
                let mut written: Vec<_> = members.iter().zip(fields).collect();
                written.sort_by(|(one, _), (other, _)| one.key.cmp(&other.key));
                let written = written.into_iter().map(|(member, field)| {
                    let key = Step::Key(field.name.clone());
                    self.member(key, &member.value, &field.value)
                });
                record(value::RecordKind::Object, tree, written.collect())
            }
            (JsonKind::Array(trees), Argument::Array { items }) => {
                let places = (0..).map(Step::Index);
                let written = places
                    .zip(trees)
                    .zip(items)
                    .map(|((place, tree), argument)| self.member(place, tree, argument));
                record(value::RecordKind::Array, tree, written.collect())
            }
            (JsonKind::Number, Argument::Literal { value }) if !self.is_spelled(tree, value) => {
                Value::Unknown
            }
            (_, Argument::Literal { value }) => literal(value, tree),
            _ => Value::Unknown,
        }
    }

    fn member(
        &mut self,
        key: Step,
        tree: &JsonTree<'_>,
        argument: &Argument,
    ) -> value::ObjectMember<'static> {
        value::ObjectMember { key, value: self.read(tree, argument), span: short(tree.span), getter: false }
    }

    /// Inside of what is escaped nothing could be referred to, so only a single value could be replaced.
    fn escaped(&mut self, tree: &JsonTree<'_>, argument: &Argument) -> Value<'static> {
        let Argument::Literal { value } = argument else { return Value::Unknown };
        self.escaped.insert(short(tree.span));
        literal(value, tree)
    }

    /// Another spelling of a number can be another number to who reads it, and only the value of a default is kept.
    fn is_spelled(&self, tree: &JsonTree<'_>, value: &Json) -> bool {
        let written = &self.text.text[tree.span.start..tree.span.end];
        matches!(value, Json::Number(number) if number.to_string() == written)
    }

    /// The parameters of a document: those it names, in `schema`, and the literals that could be some.
    pub(super) fn lift(
        &self,
        rows: &[TaskRow<'_>],
        schema: Json,
        complaints: &mut Complaints<'_, '_>,
    ) -> Parameters {
        let budget = WorkBudget::default();
        let named = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        let mut lifting = LiteralLifter::new(named, &self.escaped, &budget, usize::MAX);
        // Whoever is handed all arguments would be handed the literals too.
        if !rows.iter().any(hands_on_all) {
            for row in rows {
                lifting.call(row.task.node, &row.literals, row.input);
            }
        }
        let LiftedParameters { parameters, secrets, .. } =
            lifting.finish(schema, |span| self.text.position(long(span)));
        for (name, span) in secrets {
            let reference = Reference { of: Source::Arguments, path: vec![Step::Key(name.clone())] };
            let message = format!(
                "the document contains a secret; a capability learned from it takes `{name}` as a parameter instead"
            );
            let hint = format!("pass it as an argument: `{}`", json!({ "$ref": reference.to_string() }));
            let kind = (Severity::Warning, Code::Secret);
            // The line holds the secret.
            complaints.add_with(kind, (long(span), None), message, Some(hint), String::new());
        }
        parameters
    }
}

fn hands_on_all(row: &TaskRow<'_>) -> bool {
    let all = |reference: &Reference| reference.of == Source::Arguments && reference.path.is_empty();
    row.references.iter().any(|(reference, _)| all(reference))
}

fn record(
    kind: value::RecordKind<'static>,
    tree: &JsonTree<'_>,
    fields: Vec<value::ObjectMember<'static>>,
) -> Value<'static> {
    Value::Record(Rc::new(ObjectRecord {
        kind,
        fields,
        written: Some(short(tree.span)),
        ..ObjectRecord::default()
    }))
}

fn literal(value: &Json, tree: &JsonTree<'_>) -> Value<'static> {
    Value::Literal(Rc::new(SourceLiteral { value: value.clone(), span: short(tree.span), whole: true }))
}

/// A place as programs have it. A document has at most a megabyte, so none is lost.
fn short(span: text::ByteSpan) -> Span {
    let short = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    Span::new(short(span.start), short(span.end))
}

fn long(span: Span) -> text::ByteSpan {
    text::ByteSpan { start: span.start as usize, end: span.end as usize }
}
