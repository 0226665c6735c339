//! Literals that decide which way the program goes.

use std::rc::Rc;

use oxc_span::Span;
use rustc_hash::FxHashSet;

use crate::budget::{VisitedParts, WorkBudget};
use crate::value::Value;

/// Literals that reach a decision: they do not become parameters.
#[derive(Default)]
pub(crate) struct DecidingLiterals {
    pub(crate) spans: FxHashSet<Span>,
}

impl DecidingLiterals {
    /// The literals in `value` decide something: another value there would be another program.
    pub(crate) fn decide(&mut self, value: &Value<'_>, budget: &WorkBudget) {
        self.decide_new(value, &mut VisitedParts::default(), budget);
    }

    fn decide_new(&mut self, value: &Value<'_>, seen: &mut VisitedParts, budget: &WorkBudget) {
        budget.spend(1);
        if budget.is_spent() {
            return;
        }
        match value {
            Value::Literal(literal) => {
                self.spans.insert(literal.span);
            }
            Value::Computed(_, values) | Value::OneOf(values) => {
                values.iter().for_each(|value| self.decide_new(value, seen, budget));
            }
            Value::Template(parts) if seen.is_first_visit(parts.as_ptr() as usize, 0) => {
                parts.iter().for_each(|(value, _)| self.decide_new(value, seen, budget));
            }
            Value::Promise(inner, _) if seen.is_first_visit(Rc::as_ptr(inner) as usize, 0) => {
                self.decide_new(inner, seen, budget);
            }
            _ => {}
        }
    }
}
