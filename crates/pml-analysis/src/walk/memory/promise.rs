//! Promises, and whether they are awaited.

use std::rc::Rc;

use oxc_span::Span;

use super::super::input::WalkInput;
use super::super::target::CallTarget;
use super::ProgramMemory;
use crate::budget::VisitedParts;
use crate::value::{AbstractValue, ObjectRecord, RecordKind};

/// A promise that should be awaited.
pub(crate) struct PendingPromise {
    pub(crate) span: Span,
    pub(crate) what: PromiseOrigin,
    pub(crate) consumed: bool,
}

/// Origin of a promise.
pub(crate) enum PromiseOrigin {
    Call(CallTarget),
    /// A call of a local function, by span.
    Function(Span),
    Callback,
    Fork,
    Reduce,
    /// `then`, `catch` or `finally`.
    Method(&'static str),
}

impl PromiseOrigin {
    /// Describes the origin in a message.
    pub(crate) fn describe(&self, input: &WalkInput<'_, '_>) -> String {
        match self {
            PromiseOrigin::Call(CallTarget::Tool { server, name }) => format!("`{server}:{name}`"),
            PromiseOrigin::Call(CallTarget::Capability(name)) => format!("`{name}`"),
            PromiseOrigin::Function(call) => format!("`{}`", input.short(*call)),
            PromiseOrigin::Callback => "an async callback".to_owned(),
            PromiseOrigin::Fork => "the fork".to_owned(),
            PromiseOrigin::Reduce => "`reduce`".to_owned(),
            PromiseOrigin::Method(name) => format!("`{name}`"),
        }
    }
}

impl<'a> ProgramMemory<'a, '_> {
    /// Marks the promises in `value` as awaited.
    pub(crate) fn mark_awaited(&mut self, value: &AbstractValue<'a>) {
        self.mark_awaited_new(value, &mut VisitedParts::default());
    }

    pub(crate) fn mark_awaited_new(&mut self, value: &AbstractValue<'a>, seen: &mut VisitedParts) {
        self.state.budget.spend(1);
        if self.state.budget.is_spent() {
            return;
        }
        match value {
            AbstractValue::Promise(inner, pending) => {
                if let Some(pending) = pending {
                    self.promises[*pending as usize].consumed = true;
                }
                if seen.is_first_visit(Rc::as_ptr(inner) as usize, 0) {
                    self.mark_awaited_new(&inner.clone(), seen);
                }
            }
            AbstractValue::OneOf(values) => {
                values.iter().for_each(|value| self.mark_awaited_new(value, seen));
            }
            AbstractValue::Object(index) => {
                let record = Rc::clone(self.state.object(*index));
                if matches!(record.kind, RecordKind::Array | RecordKind::Collection)
                    && seen.is_first_visit(*index as usize, 1)
                {
                    self.mark_awaited_in(&record, seen);
                }
            }
            AbstractValue::Record(record)
                if record.is_array() && seen.is_first_visit(Rc::as_ptr(record) as usize, 0) =>
            {
                self.mark_awaited_in(&record.clone(), seen);
            }
            AbstractValue::Phi(phi, _) => {
                let phi = &mut self.phis[*phi as usize];
                if !std::mem::replace(&mut phi.consumed, true) {
                    let values: Vec<AbstractValue<'a>> =
                        std::iter::once(phi.before.clone()).chain(phi.around.iter().cloned()).collect();
                    values.iter().for_each(|value| self.mark_awaited_new(value, seen));
                }
            }
            _ => {}
        }
    }

    pub(crate) fn mark_awaited_in(&mut self, record: &ObjectRecord<'a>, seen: &mut VisitedParts) {
        record.fields.iter().for_each(|member| self.mark_awaited_new(&member.value, seen));
        record.extra.iter().chain(&record.spreads).for_each(|value| self.mark_awaited_new(value, seen));
    }

    pub(crate) fn add_promise(&mut self, span: Span, what: PromiseOrigin) -> u32 {
        self.promises.push(PendingPromise { span, what, consumed: false });
        (self.promises.len() - 1) as u32
    }
}
