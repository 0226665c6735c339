//! Parts of values: members of objects, items of lists.

use std::rc::Rc;

use oxc_span::Span;
use pml_model::structure::Step;

use super::ProgramMemory;
use super::sources::sources;
use crate::budget::VisitedParts;
use crate::value::{DistinctValues, MemberPath, ObjectRecord, RecordKind, Value, one_of};

impl<'a> ProgramMemory<'a, '_> {
    /// A part of a value.
    pub(crate) fn part(&mut self, value: &Value<'a>, step: &Step) -> Value<'a> {
        self.state.budget.spend(1 + value.width());
        if self.state.budget.is_spent() {
            return Value::Unknown;
        }
        match value {
            Value::Result(node, path) => Value::Result(*node, longer(path, step)),
            Value::Parameter(path) => Value::Parameter(longer(path, step)),
            Value::Item(of, node, path) if path.steps().is_empty() => match self.functions_in_items(of, step)
            {
                Some(held) => held,
                None => self.part_of_items(of, *node, step),
            },
            Value::Item(of, node, path) => Value::Item(Rc::clone(of), *node, longer(path, step)),
            Value::Phi(phi, path) => Value::Phi(*phi, longer(path, step)),
            Value::Object(index) => {
                let record = Rc::clone(self.state.object(*index));
                self.state.budget.spend(part_cost(&record, step));
                let found = record_part(&record, step);
                let certain = record.field(step).is_some();
                if certain && !matches!(step, Step::Any) {
                    // What is inside an object stays inside, turn after turn; a plain value may be that of an earlier one.
                    if let Value::Object(_) | Value::Function(_) | Value::Class(_) = found {
                        return found;
                    }
                }
                let around = self.loop_phis_of(*index);
                one_of(std::iter::once(found).chain(around))
            }
            Value::Record(record) => {
                self.state.budget.spend(part_cost(record, step));
                record_part(record, step)
            }
            Value::OneOf(values) => {
                one_of(values.iter().map(|value| self.part(value, step)).collect::<Vec<_>>())
            }
            Value::Promise(inner, _) => self.part(inner, step),
            Value::Computed(..) => value.clone(),
            Value::Template(parts) => {
                let (mut reads, mut seen) = (DistinctValues::default(), VisitedParts::default());
                parts.iter().for_each(|(part, _)| sources(part, &mut reads, &mut seen));
                self.state.budget.spend(seen.visit_count());
                Value::Computed(Span::default(), reads.shared())
            }
            Value::Undefined => Value::Undefined,
            _ => Value::Unknown,
        }
    }

    /// A part of what a loop is at.
    pub(crate) fn part_of_items(&mut self, of: &Rc<Value<'a>>, node: u32, step: &Step) -> Value<'a> {
        match &**of {
            // A list of known records: the part of each of them.
            Value::Record(record) if record.is_array() && holds_records(record) => {
                self.state.budget.spend(record.size());
                let items = record_part(record, &Step::Any);
                let part = self.part(&items, step);
                Value::Item(Rc::new(part), node, MemberPath::default())
            }
            _ => Value::Item(Rc::clone(of), node, MemberPath::default().then(step.clone())),
        }
    }

    /// The functions that a part of the items of a list, a set or a map can be, if one of them reaches a tool.
    pub(crate) fn functions_in_items(&mut self, of: &Value<'a>, step: &Step) -> Option<Value<'a>> {
        if !self.can_reach_tool(of, 0) {
            return None;
        }
        let items = self.part(of, &Step::Any);
        // Of a map only the values are known, which are the second of each pair.
        let is_map = matches!(of, Value::Record(record) if matches!(record.kind, RecordKind::Collection));
        let part = match step {
            Step::Index(1) if is_map && self.is_callable(&items) => items,
            _ => self.part(&items, step),
        };
        self.can_reach_tool(&part, 0).then_some(part)
    }

    pub(crate) fn is_callable(&self, value: &Value<'a>) -> bool {
        match value {
            Value::OneOf(values) => values.iter().any(|value| self.is_callable(value)),
            other => matches!(other, Value::Function(_) | Value::Tool(..) | Value::Capability(_)),
        }
    }
}

pub(crate) fn longer(path: &MemberPath, step: &Step) -> MemberPath {
    // Longer paths come from chasing links; which one is meant no longer matters to anybody.
    if path.steps().len() >= 64 { path.clone() } else { path.then(step.clone()) }
}

/// What [`record_part`] costs.
fn part_cost(record: &ObjectRecord<'_>, step: &Step) -> usize {
    match step {
        Step::Any => record.size(),
        Step::Key(_) | Step::Index(_) => record.fields.len() / 16 + record.extra.len() + record.spreads.len(),
    }
}

fn holds_records(record: &ObjectRecord<'_>) -> bool {
    record.fields.iter().any(|member| matches!(member.value, Value::Record(_)))
}

fn record_part<'a>(record: &ObjectRecord<'a>, step: &Step) -> Value<'a> {
    let spread_part = |spread: &Value<'a>| match spread {
        Value::Result(node, path) => Value::Result(*node, longer(path, step)),
        Value::Parameter(path) => Value::Parameter(longer(path, step)),
        Value::Item(of, node, path) => Value::Item(Rc::clone(of), *node, longer(path, step)),
        Value::Phi(phi, path) => Value::Phi(*phi, longer(path, step)),
        Value::Record(inner) => record_part(inner, step),
        other => other.clone(),
    };
    if !matches!(step, Step::Any)
        && let Some(member) = record.field(step)
    {
        return member.value.clone();
    }
    let mut found: Vec<Value<'a>> = Vec::new();
    if matches!(step, Step::Any) {
        found.extend(record.fields.iter().map(|member| member.value.clone()));
    }
    found.extend(record.extra.iter().cloned());
    found.extend(record.spreads.iter().map(spread_part));
    if found.is_empty() { Value::Undefined } else { one_of(found) }
}
