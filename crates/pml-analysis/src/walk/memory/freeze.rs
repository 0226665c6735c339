//! Snapshots of values, independent of later changes.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::ProgramMemory;
use crate::value::{AbstractValue, MemberPath, ObjectRecord, one_of};

/// Maximum nesting of objects in a snapshot.
const MAX_NESTED_OBJECTS: usize = 40;

/// State of a freeze in progress.
#[derive(Default)]
pub(crate) struct FreezeCache<'a> {
    /// Objects that are being frozen, outermost first.
    open: Vec<u32>,
    /// Frozen objects: one that occurs several times is frozen once.
    done: FxHashMap<u32, AbstractValue<'a>>,
}

impl<'a> ProgramMemory<'a, '_> {
    /// Snapshot of the value.
    pub(crate) fn freeze(&mut self, value: &AbstractValue<'a>) -> AbstractValue<'a> {
        if !matches!(value, AbstractValue::Object(_) | AbstractValue::OneOf(_) | AbstractValue::Promise(..)) {
            return value.clone();
        }
        let mut freezing = std::mem::take(&mut self.freezing);
        let frozen = self.freeze_in(value, &mut freezing);
        if freezing.done.len() > 1_000 {
            freezing = FreezeCache::default();
        } else {
            freezing.done.clear();
        }
        self.freezing = freezing;
        frozen
    }

    pub(crate) fn freeze_in(
        &mut self,
        value: &AbstractValue<'a>,
        freezing: &mut FreezeCache<'a>,
    ) -> AbstractValue<'a> {
        self.state.budget.spend(1);
        match value {
            // Stops at an object that contains itself, and at nesting that is too deep.
            AbstractValue::Object(index)
                if freezing.open.len() > MAX_NESTED_OBJECTS || freezing.open.contains(index) =>
            {
                AbstractValue::Unknown
            }
            AbstractValue::Object(index) => {
                if let Some(frozen) = freezing.done.get(index) {
                    return frozen.clone();
                }
                if self.state.budget.is_spent() {
                    return AbstractValue::Unknown;
                }
                freezing.open.push(*index);
                let frozen = self.freeze_object(*index, freezing);
                freezing.open.pop();
                if !freezing.open.is_empty() {
                    freezing.done.insert(*index, frozen.clone());
                }
                frozen
            }
            AbstractValue::OneOf(values) => {
                one_of(values.iter().map(|value| self.freeze_in(value, freezing)).collect::<Vec<_>>())
            }
            AbstractValue::Promise(inner, pending) if !self.state.budget.is_spent() => {
                AbstractValue::Promise(Rc::new(self.freeze_in(inner, freezing)), *pending)
            }
            other => other.clone(),
        }
    }

    pub(crate) fn freeze_object(&mut self, index: u32, freezing: &mut FreezeCache<'a>) -> AbstractValue<'a> {
        let record = Rc::clone(self.state.object(index));
        self.state.budget.spend(record.size());
        let around = self.loop_phis_of(index);
        if around.is_empty() && is_frozen(&record) {
            return AbstractValue::Record(record);
        }
        let mut frozen = ObjectRecord {
            kind: record.kind.clone(),
            written: record.written,
            fields: Vec::with_capacity(record.fields.len()),
            ..ObjectRecord::default()
        };
        for member in &record.fields {
            let value = self.freeze_in(&member.value, freezing);
            frozen.fields.push(member.with_value(value));
        }
        frozen.extra = record.extra.iter().map(|value| self.freeze_in(value, freezing)).collect();
        frozen.spreads = record.spreads.iter().map(|value| self.freeze_in(value, freezing)).collect();
        frozen.names = record.names.iter().map(|value| self.freeze_in(value, freezing)).collect();
        frozen.extra.extend(around);
        AbstractValue::Record(Rc::new(frozen))
    }

    /// Values that later turns of the enclosing loops may have stored in an object older than them.
    pub(crate) fn loop_phis_of(&mut self, object: u32) -> Vec<AbstractValue<'a>> {
        let mut found = Vec::new();
        for index in 0..self.loops.len() {
            if object >= self.loops[index].objects {
                continue;
            }
            let phi = match self.loops[index].phis.get(&object) {
                Some(phi) => *phi,
                None => {
                    let node = self.loops[index].node;
                    let phi = self.new_phi(AbstractValue::Unknown, node);
                    self.loops[index].phis.insert(object, phi);
                    phi
                }
            };
            found.push(AbstractValue::Phi(phi, MemberPath::default()));
        }
        found
    }
}

/// Whether nothing in the record can change: a snapshot would be equal. Records are never changed, only replaced.
fn is_frozen(record: &ObjectRecord<'_>) -> bool {
    let plain = |value: &AbstractValue<'_>| {
        !matches!(value, AbstractValue::Object(_) | AbstractValue::OneOf(_) | AbstractValue::Promise(..))
    };
    record.setters.is_empty()
        && record.fields.iter().all(|member| plain(&member.value))
        && record.extra.iter().chain(&record.spreads).chain(&record.names).all(plain)
}
