//! Sources of a value.

use std::rc::Rc;

use crate::budget::VisitedParts;
use crate::value::{AbstractValue, DistinctValues};

/// The value of a promise, or the value itself.
pub(crate) fn settled_value<'a>(value: &AbstractValue<'a>) -> AbstractValue<'a> {
    match value {
        AbstractValue::Promise(..) | AbstractValue::OneOf(_) => {
            let mut found = DistinctValues::default();
            settle(value, &mut found, &mut VisitedParts::default());
            found.one_of()
        }
        other => other.clone(),
    }
}

fn settle<'a>(value: &AbstractValue<'a>, found: &mut DistinctValues<'a>, seen: &mut VisitedParts) {
    match value {
        AbstractValue::Promise(inner, _) => {
            if seen.is_first_visit(Rc::as_ptr(inner) as usize, 0) {
                settle(inner, found, seen);
            }
        }
        AbstractValue::OneOf(values) => values.iter().for_each(|value| settle(value, found, seen)),
        other => found.add(other),
    }
}

/// Collects the leaves that a value is computed from.
pub(crate) fn collect_sources<'a>(
    value: &AbstractValue<'a>,
    into: &mut DistinctValues<'a>,
    seen: &mut VisitedParts,
) {
    seen.count_visit();
    match value {
        AbstractValue::Literal(_)
        | AbstractValue::Result(..)
        | AbstractValue::Parameter(_)
        | AbstractValue::Item(..)
        | AbstractValue::Phi(..) => {
            into.add(value);
        }
        AbstractValue::Record(record) if seen.is_first_visit(Rc::as_ptr(record) as usize, 0) => {
            record.fields.iter().for_each(|member| collect_sources(&member.value, into, seen));
            let rest = record.extra.iter().chain(&record.spreads).chain(&record.names);
            rest.for_each(|value| collect_sources(value, into, seen));
        }
        AbstractValue::Template(parts) if seen.is_first_visit(parts.as_ptr() as usize, 0) => {
            parts.iter().for_each(|(value, _)| collect_sources(value, into, seen));
        }
        AbstractValue::Computed(_, values) | AbstractValue::OneOf(values)
            if seen.is_first_visit(values.as_ptr() as usize, 0) =>
        {
            values.iter().for_each(|value| collect_sources(value, into, seen));
        }
        AbstractValue::Promise(inner, _) if seen.is_first_visit(Rc::as_ptr(inner) as usize, 0) => {
            collect_sources(inner, into, seen);
        }
        _ => {}
    }
}

/// Whether a value has sources: results, parameters or items.
pub(crate) fn has_sources(value: &AbstractValue<'_>) -> bool {
    has_sources_new(value, &mut VisitedParts::default())
}

fn has_sources_new(value: &AbstractValue<'_>, seen: &mut VisitedParts) -> bool {
    match value {
        AbstractValue::Result(..)
        | AbstractValue::Parameter(_)
        | AbstractValue::Item(..)
        | AbstractValue::Phi(..)
        | AbstractValue::Object(_) => true,
        AbstractValue::Record(_) => true,
        AbstractValue::Template(parts) => {
            seen.is_first_visit(parts.as_ptr() as usize, 0)
                && parts.iter().any(|(value, _)| has_sources_new(value, seen))
        }
        AbstractValue::Computed(_, values) | AbstractValue::OneOf(values) => {
            seen.is_first_visit(values.as_ptr() as usize, 0)
                && values.iter().any(|value| has_sources_new(value, seen))
        }
        AbstractValue::Promise(inner, _) => {
            seen.is_first_visit(Rc::as_ptr(inner) as usize, 0) && has_sources_new(inner, seen)
        }
        _ => false,
    }
}
