//! What a value is made from.

use std::rc::Rc;

use crate::budget::VisitedParts;
use crate::value::{DistinctValues, Value};

/// The value behind promises.
pub(crate) fn settled<'a>(value: &Value<'a>) -> Value<'a> {
    match value {
        Value::Promise(..) | Value::OneOf(_) => {
            let mut found = DistinctValues::default();
            settle(value, &mut found, &mut VisitedParts::default());
            found.one_of()
        }
        other => other.clone(),
    }
}

fn settle<'a>(value: &Value<'a>, found: &mut DistinctValues<'a>, seen: &mut VisitedParts) {
    match value {
        Value::Promise(inner, _) => {
            if seen.is_first_visit(Rc::as_ptr(inner) as usize, 0) {
                settle(inner, found, seen);
            }
        }
        Value::OneOf(values) => values.iter().for_each(|value| settle(value, found, seen)),
        other => found.add(other),
    }
}

/// The leaves something is computed from.
pub(crate) fn sources<'a>(value: &Value<'a>, into: &mut DistinctValues<'a>, seen: &mut VisitedParts) {
    seen.count_visit();
    match value {
        Value::Literal(_) | Value::Result(..) | Value::Parameter(_) | Value::Item(..) | Value::Phi(..) => {
            into.add(value);
        }
        Value::Record(record) if seen.is_first_visit(Rc::as_ptr(record) as usize, 0) => {
            record.fields.iter().for_each(|member| sources(&member.value, into, seen));
            let rest = record.extra.iter().chain(&record.spreads).chain(&record.names);
            rest.for_each(|value| sources(value, into, seen));
        }
        Value::Template(parts) if seen.is_first_visit(parts.as_ptr() as usize, 0) => {
            parts.iter().for_each(|(value, _)| sources(value, into, seen));
        }
        Value::Computed(_, values) | Value::OneOf(values)
            if seen.is_first_visit(values.as_ptr() as usize, 0) =>
        {
            values.iter().for_each(|value| sources(value, into, seen));
        }
        Value::Promise(inner, _) if seen.is_first_visit(Rc::as_ptr(inner) as usize, 0) => {
            sources(inner, into, seen);
        }
        _ => {}
    }
}

/// Something of interest goes into it.
pub(crate) fn has_sources(value: &Value<'_>) -> bool {
    has_sources_new(value, &mut VisitedParts::default())
}

fn has_sources_new(value: &Value<'_>, seen: &mut VisitedParts) -> bool {
    match value {
        Value::Result(..) | Value::Parameter(_) | Value::Item(..) | Value::Phi(..) | Value::Object(_) => true,
        Value::Record(_) => true,
        Value::Template(parts) => {
            seen.is_first_visit(parts.as_ptr() as usize, 0)
                && parts.iter().any(|(value, _)| has_sources_new(value, seen))
        }
        Value::Computed(_, values) | Value::OneOf(values) => {
            seen.is_first_visit(values.as_ptr() as usize, 0)
                && values.iter().any(|value| has_sources_new(value, seen))
        }
        Value::Promise(inner, _) => {
            seen.is_first_visit(Rc::as_ptr(inner) as usize, 0) && has_sources_new(inner, seen)
        }
        _ => false,
    }
}
