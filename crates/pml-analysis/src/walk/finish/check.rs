//! Checks the arguments of calls against the schemas of their callees.

use std::rc::Rc;

use oxc_span::Span;
use pml_model::structure::{Argument, PathStep};
use serde_json::Value as Json;

use super::super::parts::decided::DecidingLiterals;
use super::super::parts::diagnostics::Diagnostics;
use super::super::parts::graph::{DraftGraph, DraftKind};
use super::callees::Callees;
use super::lowering::Lowering;
use crate::analysis::ComplaintCode;
use crate::budget::VisitedParts;
use crate::schema;
use crate::uses::ArgumentUses;
use crate::value::{AbstractValue, MemberPath, RecordKind};

/// Complains about arguments that the schema of the callee does not allow.
pub(crate) fn check_arguments(
    graph: &DraftGraph<'_>,
    callees: &Callees<'_>,
    arguments: &[Option<Argument>],
    deciding: &mut DecidingLiterals,
    diagnostics: &mut Diagnostics<'_, '_>,
) {
    for (node, argument) in arguments.iter().enumerate() {
        let DraftKind::Call(call) = &graph.nodes[node].kind else { continue };
        let (Some(argument), false) = (argument, call.as_value) else { continue };
        let Some(input) = callees.input_schema(node as u32, call) else { continue };
        let findings = schema::check_arguments(input, argument);
        // A tool takes precedence over a capability of the same name.
        let inferred = callees.tools[node].is_none() && callees.as_capability(&call.target).is_some();
        let id = graph.nodes[node].id;
        for finding in findings {
            let span = span_of(&call.arguments, &finding.path).unwrap_or(call.span);
            let message = format!("`{}`: {}", callees.name_of(&call.target), finding.message);
            if matches!(finding.code, ComplaintCode::WrongType | ComplaintCode::UnknownArgument) {
                // A literal that the tool refuses must not become a parameter with that default.
                deciding.spans.insert(span);
            }
            let severity = if inferred { finding.inferred() } else { finding.severity };
            diagnostics.complain_of_node(id, (severity, finding.code), span, message, finding.hint);
        }
    }
}

/// Span of the member at `path`.
fn span_of(value: &AbstractValue<'_>, path: &[PathStep]) -> Option<Span> {
    let mut at = value;
    let mut span = None;
    for step in path {
        let AbstractValue::Record(record) = at else { break };
        let Some(member) = record.field(step) else { break };
        span = Some(member.span);
        at = &member.value;
    }
    span
}

/// Arguments of the program that become inputs of this call get the declared type of that input.
pub(crate) fn use_parameters<'a>(
    graph: &DraftGraph<'a>,
    callees: &Callees<'_>,
    lowering: &Lowering<'_, 'a>,
    uses: &mut ArgumentUses,
) {
    for (draft, node) in graph.nodes.iter().zip(0..) {
        let DraftKind::Call(call) = &draft.kind else { continue };
        let Some(input) = callees.input_schema(node, call) else { continue };
        if call.as_value {
            continue;
        }
        let mut finder =
            ParameterFinder { root: input, lowering, found: Vec::new(), seen: VisitedParts::default() };
        finder.find(input, &call.arguments);
        for DeclaredUse { path, schema, required } in finder.found {
            uses.note_tool_input(path.steps(), (input, schema), required);
        }
    }
}

/// Declared schema of the input that an argument of the program fills.
struct DeclaredUse<'s> {
    path: MemberPath,
    schema: &'s Json,
    required: bool,
}

/// Finds the parameters in the arguments of one call.
struct ParameterFinder<'w, 'a, 'j> {
    root: &'j Json,
    lowering: &'w Lowering<'w, 'a>,
    found: Vec<DeclaredUse<'j>>,
    seen: VisitedParts,
}

impl<'a, 'j> ParameterFinder<'_, 'a, 'j> {
    /// Visits the parameters in the arguments of a call, each with the schema of its place.
    fn find(&mut self, schema: &'j Json, value: &AbstractValue<'a>) {
        self.lowering.budget.spend(1);
        if self.lowering.budget.is_spent() {
            return;
        }
        match value {
            AbstractValue::Parameter(path) if path.steps().is_empty() => {
                let required = schema::required(self.root, schema);
                for property in schema::properties(self.root, schema) {
                    if let schema::MemberLookup::Found(inner) = schema::property(self.root, schema, property)
                    {
                        self.found.push(DeclaredUse {
                            path: vec![PathStep::Key(property.to_owned())].into(),
                            schema: inner,
                            required: required.contains(&property),
                        });
                    }
                }
            }
            AbstractValue::Parameter(path) => {
                self.found.push(DeclaredUse { path: path.clone(), schema, required: true });
            }
            AbstractValue::Item(of, _, path) => {
                if let AbstractValue::Parameter(of) = &**of {
                    let mut whole = of.steps().to_vec();
                    whole.push(PathStep::Any);
                    whole.extend(path.steps().iter().cloned());
                    self.found.push(DeclaredUse { path: whole.into(), schema, required: true });
                }
            }
            AbstractValue::OneOf(values) => {
                values.iter().for_each(|value| self.find(schema, value));
            }
            AbstractValue::Phi(..) => {
                for source in self.lowering.sources_of(value) {
                    if !matches!(source, AbstractValue::Phi(..)) {
                        self.find(schema, &source);
                    }
                }
            }
            // A record is checked against the schema of a place once.
            AbstractValue::Record(record)
                if self
                    .seen
                    .is_first_visit(Rc::as_ptr(record) as usize, std::ptr::from_ref(schema) as usize) =>
            {
                for member in &record.fields {
                    if let schema::MemberLookup::Found(inner) =
                        schema::step_into(self.root, schema, &member.key)
                    {
                        self.find(inner, &member.value);
                    }
                }
                if record.is_array()
                    && let schema::MemberLookup::Found(inner) =
                        schema::step_into(self.root, schema, &PathStep::Any)
                {
                    record.extra.iter().for_each(|value| self.find(inner, value));
                }
                if matches!(record.kind, RecordKind::Object) {
                    record.spreads.iter().for_each(|spread| self.find(schema, spread));
                }
            }
            _ => {}
        }
    }
}
