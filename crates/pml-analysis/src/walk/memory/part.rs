//! Parts of values: members of objects, items of lists.

use std::rc::Rc;

use oxc_span::Span;
use pml_model::structure::PathStep;

use super::ProgramMemory;
use super::sources::collect_sources;
use crate::budget::VisitedParts;
use crate::value::{AbstractValue, DistinctValues, MemberPath, ObjectRecord, RecordKind, one_of};

impl<'a> ProgramMemory<'a, '_> {
    /// A part of a value.
    pub(crate) fn part(&mut self, value: &AbstractValue<'a>, step: &PathStep) -> AbstractValue<'a> {
        self.state.budget.spend(1 + value.width());
        if self.state.budget.is_spent() {
            return AbstractValue::Unknown;
        }
        match value {
            AbstractValue::Result(node, path) => AbstractValue::Result(*node, extend_path(path, step)),
            AbstractValue::Parameter(path) => AbstractValue::Parameter(extend_path(path, step)),
            AbstractValue::Item(of, node, path) if path.steps().is_empty() => {
                match self.functions_in_items(of, step) {
                    Some(held) => held,
                    None => self.part_of_items(of, *node, step),
                }
            }
            AbstractValue::Item(of, node, path) => {
                AbstractValue::Item(Rc::clone(of), *node, extend_path(path, step))
            }
            AbstractValue::Phi(phi, path) => AbstractValue::Phi(*phi, extend_path(path, step)),
            AbstractValue::Object(index) => {
                let record = Rc::clone(self.state.object(*index));
                self.state.budget.spend(part_cost(&record, step));
                let found = record_part(&record, step);
                let certain = record.field(step).is_some();
                if certain && !matches!(step, PathStep::Any) {
                    // An object keeps its identity turn after turn; a plain value may be that of an earlier turn.
                    if let AbstractValue::Object(_) | AbstractValue::Function(_) | AbstractValue::Class(_) =
                        found
                    {
                        return found;
                    }
                }
                let around = self.loop_phis_of(*index);
                one_of(std::iter::once(found).chain(around))
            }
            AbstractValue::Record(record) => {
                self.state.budget.spend(part_cost(record, step));
                record_part(record, step)
            }
            AbstractValue::OneOf(values) => {
                one_of(values.iter().map(|value| self.part(value, step)).collect::<Vec<_>>())
            }
            AbstractValue::Promise(inner, _) => self.part(inner, step),
            AbstractValue::Computed(..) => value.clone(),
            AbstractValue::Template(parts) => {
                let (mut reads, mut seen) = (DistinctValues::default(), VisitedParts::default());
                parts.iter().for_each(|(part, _)| collect_sources(part, &mut reads, &mut seen));
                self.state.budget.spend(seen.visit_count());
                AbstractValue::Computed(Span::default(), reads.shared())
            }
            AbstractValue::Undefined => AbstractValue::Undefined,
            _ => AbstractValue::Unknown,
        }
    }

    /// A part of the current item of a loop.
    pub(crate) fn part_of_items(
        &mut self,
        of: &Rc<AbstractValue<'a>>,
        node: u32,
        step: &PathStep,
    ) -> AbstractValue<'a> {
        match &**of {
            // A list of known records: the part of each of them.
            AbstractValue::Record(record) if record.is_array() && holds_records(record) => {
                self.state.budget.spend(record.size());
                let items = record_part(record, &PathStep::Any);
                let part = self.part(&items, step);
                AbstractValue::Item(Rc::new(part), node, MemberPath::default())
            }
            _ => AbstractValue::Item(Rc::clone(of), node, MemberPath::default().then(step.clone())),
        }
    }

    /// Functions that a part of the items of a list, a set or a map can be; `None` unless one of them reaches a tool.
    pub(crate) fn functions_in_items(
        &mut self,
        of: &AbstractValue<'a>,
        step: &PathStep,
    ) -> Option<AbstractValue<'a>> {
        if !self.can_reach_tool(of, 0) {
            return None;
        }
        let items = self.part(of, &PathStep::Any);
        // In a map only the values are known, the second of each pair.
        let is_map =
            matches!(of, AbstractValue::Record(record) if matches!(record.kind, RecordKind::Collection));
        let part = match step {
            PathStep::Index(1) if is_map && self.is_callable(&items) => items,
            _ => self.part(&items, step),
        };
        self.can_reach_tool(&part, 0).then_some(part)
    }

    pub(crate) fn is_callable(&self, value: &AbstractValue<'a>) -> bool {
        match value {
            AbstractValue::OneOf(values) => values.iter().any(|value| self.is_callable(value)),
            other => matches!(
                other,
                AbstractValue::Function(_) | AbstractValue::Tool(..) | AbstractValue::Capability(_)
            ),
        }
    }
}

pub(crate) fn extend_path(path: &MemberPath, step: &PathStep) -> MemberPath {
    // Longer paths come from following linked structures; which part is meant no longer matters.
    if path.steps().len() >= 64 { path.clone() } else { path.then(step.clone()) }
}

/// Cost of [`record_part`].
fn part_cost(record: &ObjectRecord<'_>, step: &PathStep) -> usize {
    match step {
        PathStep::Any => record.size(),
        PathStep::Key(_) | PathStep::Index(_) => {
            record.fields.len() / 16 + record.extra.len() + record.spreads.len()
        }
    }
}

fn holds_records(record: &ObjectRecord<'_>) -> bool {
    record.fields.iter().any(|member| matches!(member.value, AbstractValue::Record(_)))
}

fn record_part<'a>(record: &ObjectRecord<'a>, step: &PathStep) -> AbstractValue<'a> {
    let spread_part = |spread: &AbstractValue<'a>| match spread {
        AbstractValue::Result(node, path) => AbstractValue::Result(*node, extend_path(path, step)),
        AbstractValue::Parameter(path) => AbstractValue::Parameter(extend_path(path, step)),
        AbstractValue::Item(of, node, path) => {
            AbstractValue::Item(Rc::clone(of), *node, extend_path(path, step))
        }
        AbstractValue::Phi(phi, path) => AbstractValue::Phi(*phi, extend_path(path, step)),
        AbstractValue::Record(inner) => record_part(inner, step),
        other => other.clone(),
    };
    if !matches!(step, PathStep::Any)
        && let Some(member) = record.field(step)
    {
        return member.value.clone();
    }
    let mut found: Vec<AbstractValue<'a>> = Vec::new();
    if matches!(step, PathStep::Any) {
        found.extend(record.fields.iter().map(|member| member.value.clone()));
    }
    found.extend(record.extra.iter().cloned());
    found.extend(record.spreads.iter().map(spread_part));
    if found.is_empty() { AbstractValue::Undefined } else { one_of(found) }
}
