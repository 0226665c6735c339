//! Literals that decide the control flow.

use std::rc::Rc;

use oxc_span::Span;
use rustc_hash::FxHashSet;

use crate::budget::{VisitedParts, WorkBudget};
use crate::value::AbstractValue;

/// Literals that reach a decision; they do not become parameters.
#[derive(Default)]
pub(crate) struct DecidingLiterals {
    pub(crate) spans: FxHashSet<Span>,
}

impl DecidingLiterals {
    /// Marks the literals in `value` as deciding: another value would make another program.
    pub(crate) fn decide(&mut self, value: &AbstractValue<'_>, budget: &WorkBudget) {
        self.decide_new(value, &mut VisitedParts::default(), budget);
    }

    fn decide_new(&mut self, value: &AbstractValue<'_>, seen: &mut VisitedParts, budget: &WorkBudget) {
        budget.spend(1);
        if budget.is_spent() {
            return;
        }
        match value {
            AbstractValue::Literal(literal) => {
                self.spans.insert(literal.span);
            }
            AbstractValue::Computed(_, values) | AbstractValue::OneOf(values) => {
                values.iter().for_each(|value| self.decide_new(value, seen, budget));
            }
            AbstractValue::Template(parts) if seen.is_first_visit(parts.as_ptr() as usize, 0) => {
                parts.iter().for_each(|(value, _)| self.decide_new(value, seen, budget));
            }
            AbstractValue::Promise(inner, _) if seen.is_first_visit(Rc::as_ptr(inner) as usize, 0) => {
                self.decide_new(inner, seen, budget);
            }
            _ => {}
        }
    }
}
