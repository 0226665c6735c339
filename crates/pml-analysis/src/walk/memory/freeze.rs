//! Values as they are at one moment, whatever the program changes later.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::ProgramMemory;
use crate::value::{MemberPath, ObjectRecord, Value, one_of};

/// How deep objects within objects are frozen.
const MAX_NESTED_OBJECTS: usize = 40;

/// What is remembered while a value is frozen.
#[derive(Default)]
pub(crate) struct FreezeCache<'a> {
    /// The objects we are in.
    open: Vec<u32>,
    /// Objects that are held several times are frozen once.
    done: FxHashMap<u32, Value<'a>>,
}

impl<'a> ProgramMemory<'a, '_> {
    /// The value as it is now.
    pub(crate) fn freeze(&mut self, value: &Value<'a>) -> Value<'a> {
        if !matches!(value, Value::Object(_) | Value::OneOf(_) | Value::Promise(..)) {
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

    pub(crate) fn freeze_in(&mut self, value: &Value<'a>, freezing: &mut FreezeCache<'a>) -> Value<'a> {
        self.state.budget.spend(1);
        match value {
            // An object that contains itself ends here; so does nesting nobody reads.
            Value::Object(index)
                if freezing.open.len() > MAX_NESTED_OBJECTS || freezing.open.contains(index) =>
            {
                Value::Unknown
            }
            Value::Object(index) => {
                if let Some(frozen) = freezing.done.get(index) {
                    return frozen.clone();
                }
                if self.state.budget.is_spent() {
                    return Value::Unknown;
                }
                freezing.open.push(*index);
                let frozen = self.freeze_object(*index, freezing);
                freezing.open.pop();
                if !freezing.open.is_empty() {
                    freezing.done.insert(*index, frozen.clone());
                }
                frozen
            }
            Value::OneOf(values) => {
                one_of(values.iter().map(|value| self.freeze_in(value, freezing)).collect::<Vec<_>>())
            }
            Value::Promise(inner, pending) if !self.state.budget.is_spent() => {
                Value::Promise(Rc::new(self.freeze_in(inner, freezing)), *pending)
            }
            other => other.clone(),
        }
    }

    pub(crate) fn freeze_object(&mut self, index: u32, freezing: &mut FreezeCache<'a>) -> Value<'a> {
        let record = Rc::clone(self.state.object(index));
        self.state.budget.spend(record.size());
        let around = self.loop_phis_of(index);
        if around.is_empty() && is_frozen(&record) {
            return Value::Record(record);
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
        Value::Record(Rc::new(frozen))
    }

    /// What later turns of the loops around us may have put into an object that is older than they are.
    pub(crate) fn loop_phis_of(&mut self, object: u32) -> Vec<Value<'a>> {
        let mut found = Vec::new();
        for index in 0..self.loops.len() {
            if object >= self.loops[index].objects {
                continue;
            }
            let phi = match self.loops[index].phis.get(&object) {
                Some(phi) => *phi,
                None => {
                    let node = self.loops[index].node;
                    let phi = self.new_phi(Value::Unknown, node);
                    self.loops[index].phis.insert(object, phi);
                    phi
                }
            };
            found.push(Value::Phi(phi, MemberPath::default()));
        }
        found
    }
}

/// Nothing in it can change: another moment would show the same. Records are never changed, only replaced.
fn is_frozen(record: &ObjectRecord<'_>) -> bool {
    let plain = |value: &Value<'_>| !matches!(value, Value::Object(_) | Value::OneOf(_) | Value::Promise(..));
    record.setters.is_empty()
        && record.fields.iter().all(|member| plain(&member.value))
        && record.extra.iter().chain(&record.spreads).chain(&record.names).all(plain)
}
