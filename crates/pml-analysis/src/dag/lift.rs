//! Lifts literals of a document to parameters. The rules are those of programs: the arguments of tasks are passed to
//! [`LiteralLifter`] like those of calls.

use std::rc::Rc;

use oxc_span::Span;
use pml_model::structure::{Argument, PathStep};
use rustc_hash::FxHashSet;
use serde_json::{Value as Json, json};

use super::complaints::DagComplaints;
use super::reference::{Reference, ReferenceRoot};
use super::row::TaskRow;
use super::text::{self, DocumentText, JsonKind, JsonTree};
use crate::budget::WorkBudget;
use crate::literals::{LiftedParameters, LiteralLifter};
use crate::value::{self, AbstractValue, ObjectRecord, SourceLiteral};
use crate::{ComplaintCode, Parameters, Severity};

/// Converts arguments for the lifter.
pub(super) struct LiteralReader<'t, 'd> {
    text: &'t DocumentText<'d>,
    /// Spans of escaped literals, which must stay as they are.
    escaped: FxHashSet<Span>,
}

impl<'t, 'd> LiteralReader<'t, 'd> {
    pub(super) fn new(text: &'t DocumentText<'d>) -> LiteralReader<'t, 'd> {
        LiteralReader { text, escaped: FxHashSet::default() }
    }

    /// The arguments of a task as those of a call in a program; `argument` is the parsed form of `tree`. Members are
    /// sorted by name, because their order is not part of a document's identity.
    pub(super) fn read(&mut self, tree: &JsonTree<'_>, argument: &Argument) -> AbstractValue<'static> {
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
                    let key = PathStep::Key(field.name.clone());
                    self.member(key, &member.value, &field.value)
                });
                record(value::RecordKind::Object, tree, written.collect())
            }
            (JsonKind::Array(trees), Argument::Array { items }) => {
                let places = (0..).map(PathStep::Index);
                let written = places
                    .zip(trees)
                    .zip(items)
                    .map(|((place, tree), argument)| self.member(place, tree, argument));
                record(value::RecordKind::Array, tree, written.collect())
            }
            (JsonKind::Number, Argument::Literal { value }) if !self.is_spelled(tree, value) => {
                AbstractValue::Unknown
            }
            (_, Argument::Literal { value }) => literal(value, tree),
            _ => AbstractValue::Unknown,
        }
    }

    fn member(
        &mut self,
        key: PathStep,
        tree: &JsonTree<'_>,
        argument: &Argument,
    ) -> value::ObjectMember<'static> {
        value::ObjectMember { key, value: self.read(tree, argument), span: short(tree.span), getter: false }
    }

    /// Inside an escape nothing can be a reference, so only a single value could be replaced.
    fn escaped(&mut self, tree: &JsonTree<'_>, argument: &Argument) -> AbstractValue<'static> {
        let Argument::Literal { value } = argument else { return AbstractValue::Unknown };
        self.escaped.insert(short(tree.span));
        literal(value, tree)
    }

    /// Whether a number keeps its spelling: another spelling can be another number to its reader, and only the value of
    /// a default is kept.
    fn is_spelled(&self, tree: &JsonTree<'_>, value: &Json) -> bool {
        let written = &self.text.text[tree.span.start..tree.span.end];
        matches!(value, Json::Number(number) if number.to_string() == written)
    }

    /// Parameters of a document: those it names, in `schema`, and the literals that can be lifted.
    pub(super) fn lift(
        &self,
        rows: &[TaskRow<'_>],
        schema: Json,
        complaints: &mut DagComplaints<'_, '_>,
    ) -> Parameters {
        let budget = WorkBudget::default();
        let named = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str());
        let mut lifting = LiteralLifter::new(named, &self.escaped, &budget, usize::MAX);
        // A task that receives all arguments would receive the lifted literals too.
        if !rows.iter().any(hands_on_all) {
            for row in rows {
                lifting.lift_call(row.task.node, &row.literals, row.input);
            }
        }
        let LiftedParameters { parameters, secrets, .. } =
            lifting.finish(schema, |span| self.text.position(long(span)));
        for (name, span) in secrets {
            let reference =
                Reference { of: ReferenceRoot::Arguments, path: vec![PathStep::Key(name.clone())] };
            let message = format!(
                "the document contains a secret; a capability learned from it takes `{name}` as a parameter instead"
            );
            let hint = format!("pass it as an argument: `{}`", json!({ "$ref": reference.to_string() }));
            let kind = (Severity::Warning, ComplaintCode::Secret);
            // No excerpt: the line contains the secret.
            complaints.add_with(kind, (long(span), None), message, Some(hint), String::new());
        }
        parameters
    }
}

fn hands_on_all(row: &TaskRow<'_>) -> bool {
    let all = |reference: &Reference| reference.of == ReferenceRoot::Arguments && reference.path.is_empty();
    row.references.iter().any(|(reference, _)| all(reference))
}

fn record(
    kind: value::RecordKind<'static>,
    tree: &JsonTree<'_>,
    fields: Vec<value::ObjectMember<'static>>,
) -> AbstractValue<'static> {
    AbstractValue::Record(Rc::new(ObjectRecord {
        kind,
        fields,
        written: Some(short(tree.span)),
        ..ObjectRecord::default()
    }))
}

fn literal(value: &Json, tree: &JsonTree<'_>) -> AbstractValue<'static> {
    AbstractValue::Literal(Rc::new(SourceLiteral {
        value: value.clone(),
        span: short(tree.span),
        whole: true,
    }))
}

/// The span in the type used for programs. A document has at most a megabyte, so no offset is lost.
fn short(span: text::ByteSpan) -> Span {
    let short = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    Span::new(short(span.start), short(span.end))
}

fn long(span: Span) -> text::ByteSpan {
    text::ByteSpan { start: span.start as usize, end: span.end as usize }
}
