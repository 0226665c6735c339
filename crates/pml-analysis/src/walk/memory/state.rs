//! Variables and objects at one point of the program, with an undo log.
//!
//! Entering a branch takes a mark; changes since then can be undone, so that a branch costs as much as its own writes.

use std::rc::Rc;

use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;

use crate::budget::WorkBudget;
use crate::value::{AbstractValue, ObjectMember, ObjectRecord, RecordKind, ValueList, one_of};

/// A variable of one activation: (activation, symbol).
pub(crate) type VariableKey = (u32, u32);

/// Values of all variables and objects. Every write goes through the log, so that [`ProgramState::undo`] can revert it.
/// Objects are never freed, so that an index stays valid when the branch that created the object is undone.
#[derive(Debug, Default)]
pub(crate) struct ProgramState<'a> {
    variables: FxHashMap<VariableKey, AbstractValue<'a>>,
    variable_log: Vec<(VariableKey, Option<AbstractValue<'a>>)>,
    objects: Vec<Rc<ObjectRecord<'a>>>,
    object_log: Vec<(u32, Rc<ObjectRecord<'a>>)>,
    /// Remaining budget of the walk.
    pub(crate) budget: WorkBudget,
}

/// A position in the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateMark {
    variables: usize,
    objects: usize,
}

/// Variables and objects that have changed since a mark.
#[derive(Debug, Default, Clone)]
pub(crate) struct StateChanges<'a> {
    pub(crate) variables: ChangeMap<VariableKey, AbstractValue<'a>>,
    pub(crate) objects: ChangeMap<u32, Rc<ObjectRecord<'a>>>,
}

/// New values by key, sorted: on most paths next to nothing changes.
#[derive(Debug, Clone)]
pub(crate) struct ChangeMap<K, V>(Vec<(K, V)>);

impl<K, V> Default for ChangeMap<K, V> {
    fn default() -> ChangeMap<K, V> {
        ChangeMap(Vec::new())
    }
}

impl<K: Ord + Copy, V> ChangeMap<K, V> {
    /// Distinct `keys` with their current values from `now`.
    fn of(keys: impl Iterator<Item = K>, mut now: impl FnMut(K) -> Option<V>) -> ChangeMap<K, V> {
        let mut keys: SmallVec<[K; 8]> = keys.collect();
        keys.sort_unstable();
        keys.dedup();
        ChangeMap(keys.into_iter().filter_map(|key| Some((key, now(key)?))).collect())
    }

    fn place(&self, key: K) -> Result<usize, usize> {
        self.0.binary_search_by_key(&key, |(key, _)| *key)
    }

    pub(crate) fn get(&self, key: K) -> Option<&V> {
        self.place(key).ok().map(|place| &self.0[place].1)
    }

    fn get_mut(&mut self, key: K) -> Option<&mut V> {
        self.place(key).ok().map(|place| &mut self.0[place].1)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        match self.place(key) {
            Ok(place) => self.0[place].1 = value,
            Err(place) => self.0.insert(place, (key, value)),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.0.iter().map(|(key, value)| (*key, value))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(K) -> bool) {
        self.0.retain(|(key, _)| keep(*key));
    }
}

impl<'a> ProgramState<'a> {
    /// An empty state with capacity for this many variables.
    pub(crate) fn with_room_for(variables: usize) -> ProgramState<'a> {
        let map = FxHashMap::with_capacity_and_hasher(variables, FxBuildHasher);
        ProgramState {
            variables: map,
            variable_log: Vec::with_capacity(2 * variables),
            objects: Vec::with_capacity(variables),
            ..ProgramState::default()
        }
    }

    pub(crate) fn read(&self, variable: VariableKey) -> Option<&AbstractValue<'a>> {
        self.variables.get(&variable)
    }

    pub(crate) fn write(&mut self, variable: VariableKey, value: AbstractValue<'a>) {
        self.budget.spend(1 + value.width());
        let old = self.variables.insert(variable, value);
        self.variable_log.push((variable, old));
    }

    pub(crate) fn new_object(&mut self, record: ObjectRecord<'a>) -> u32 {
        self.objects.push(Rc::new(record));
        (self.objects.len() - 1) as u32
    }

    pub(crate) fn object_count(&self) -> u32 {
        self.objects.len() as u32
    }

    pub(crate) fn object(&self, index: u32) -> &Rc<ObjectRecord<'a>> {
        &self.objects[index as usize]
    }

    pub(crate) fn change(&mut self, index: u32, change: impl FnOnce(&mut ObjectRecord<'a>)) {
        let slot = &mut self.objects[index as usize];
        self.budget.spend(1 + slot.size());
        self.object_log.push((index, Rc::clone(slot)));
        let mut record = ObjectRecord::clone(slot);
        record.written = None;
        change(&mut record);
        *slot = Rc::new(record);
    }

    fn replace(&mut self, index: u32, record: Rc<ObjectRecord<'a>>) {
        let slot = &mut self.objects[index as usize];
        self.object_log.push((index, std::mem::replace(slot, record)));
    }

    pub(crate) fn mark(&self) -> StateMark {
        StateMark { variables: self.variable_log.len(), objects: self.object_log.len() }
    }

    /// Changes since `mark`.
    pub(crate) fn changes(&self, mark: StateMark) -> StateChanges<'a> {
        let mut changes = StateChanges::default();
        let (variables, objects) = (&self.variable_log[mark.variables..], &self.object_log[mark.objects..]);
        self.budget.spend(3 * (variables.len() + objects.len()));
        if self.budget.is_spent() {
            return changes;
        }
        changes.variables = ChangeMap::of(variables.iter().map(|(variable, _)| *variable), |variable| {
            self.variables.get(&variable).cloned()
        });
        changes.objects = ChangeMap::of(objects.iter().map(|(index, _)| *index), |index| {
            Some(Rc::clone(self.object(index)))
        });
        changes
    }

    /// Every value that a variable or object has had since `mark`, including the first and last. This is what a `catch`
    /// sees: an exception can come from anywhere in the block.
    pub(crate) fn all_values_since(&self, mark: StateMark) -> StateChanges<'a> {
        let mut changes = self.changes(mark);
        for (variable, old) in &self.variable_log[mark.variables..] {
            if let (Some(old), Some(now)) = (old, changes.variables.get_mut(*variable)) {
                self.budget.spend(old.width() + now.width());
                if self.budget.is_spent() {
                    break;
                }
                *now = one_of([old.clone(), now.clone()]);
            }
        }
        for (index, old) in &self.object_log[mark.objects..] {
            if let Some(now) = changes.objects.get_mut(*index) {
                self.budget.spend(merge_cost(old, now));
                if self.budget.is_spent() {
                    break;
                }
                *now = Rc::new(merge_records(old, now));
            }
        }
        changes
    }

    /// Reverts to `mark`.
    pub(crate) fn undo(&mut self, mark: StateMark) {
        while self.variable_log.len() > mark.variables {
            if let Some((variable, old)) = self.variable_log.pop() {
                match old {
                    Some(old) => self.variables.insert(variable, old),
                    None => self.variables.remove(&variable),
                };
            }
        }
        while self.object_log.len() > mark.objects {
            if let Some((index, old)) = self.object_log.pop() {
                self.objects[index as usize] = old;
            }
        }
    }

    /// Joins several paths, each given by its changes.
    pub(crate) fn merge(&mut self, ways: &[StateChanges<'a>]) {
        match ways {
            [] => {}
            [only] => {
                for (variable, value) in only.variables.iter() {
                    self.write(variable, value.clone());
                }
                for (index, record) in only.objects.iter() {
                    self.replace(index, Rc::clone(record));
                }
            }
            several => self.merge_several(several),
        }
    }

    fn merge_several(&mut self, ways: &[StateChanges<'a>]) {
        let mut variables: Vec<VariableKey> =
            ways.iter().flat_map(|way| way.variables.iter().map(|(variable, _)| variable)).collect();
        variables.sort_unstable();
        variables.dedup();
        for variable in variables {
            let base = self.variables.get(&variable).cloned();
            let values =
                ways.iter().filter_map(|way| way.variables.get(variable).cloned().or_else(|| base.clone()));
            let value = one_of(values.collect::<ValueList<'_>>());
            self.write(variable, value);
        }
        let mut objects: Vec<u32> =
            ways.iter().flat_map(|way| way.objects.iter().map(|(index, _)| index)).collect();
        objects.sort_unstable();
        objects.dedup();
        for index in objects {
            let base = Rc::clone(self.object(index));
            if self.is_too_much(&base, ways, index) {
                return;
            }
            let mut records = ways.iter().map(|way| way.objects.get(index).unwrap_or(&base));
            let first = records
                .next()
                .map_or_else(|| ObjectRecord::clone(&base), |record| ObjectRecord::clone(record));
            let merged = records.fold(first, |merged, record| merge_records(&merged, record));
            self.replace(index, Rc::new(merged));
        }
    }

    /// Spends budget for merging an object of several paths.
    fn is_too_much(&self, base: &ObjectRecord<'a>, ways: &[StateChanges<'a>], index: u32) -> bool {
        let costs =
            ways.iter().map(|way| merge_cost(base, way.objects.get(index).map_or(base, |record| record)));
        self.budget.spend(costs.sum());
        self.budget.is_spent()
    }
}

/// A list that may be either of two of different length: beyond their common prefix, positions are unknown.
fn merge_lists<'a>(a: &ObjectRecord<'a>, b: &ObjectRecord<'a>) -> ObjectRecord<'a> {
    let shared = a.fields.iter().zip(&b.fields).take_while(|(a, b)| a.value.same(&b.value)).count();
    let mut merged = ObjectRecord { kind: RecordKind::Array, ..ObjectRecord::default() };
    merged.fields.extend(a.fields[..shared].iter().cloned());
    let rest = a.fields[shared..].iter().chain(&b.fields[shared..]).map(|member| &member.value);
    for value in rest.chain(&a.extra).chain(&b.extra) {
        if !merged.extra.iter().any(|other| other.same(value)) {
            merged.extra.push(value.clone());
        }
    }
    merged.spreads = a.spreads.iter().chain(&b.spreads).cloned().collect();
    merged
}

/// Cost of [`merge_records`]: each member of one is searched in the other.
pub(crate) fn merge_cost(a: &ObjectRecord<'_>, b: &ObjectRecord<'_>) -> usize {
    1 + a.size() + b.size() + a.fields.len() * b.fields.len() / 64 + a.extra.len() * b.extra.len() / 16
}

/// A record that may be either.
pub(crate) fn merge_records<'a>(a: &ObjectRecord<'a>, b: &ObjectRecord<'a>) -> ObjectRecord<'a> {
    let mut fields: Vec<ObjectMember<'a>> = Vec::new();
    if a.is_array() && b.is_array() && a.fields.len() != b.fields.len() {
        return merge_lists(a, b);
    }
    for member in &a.fields {
        let value = match b.field(&member.key) {
            Some(other) => one_of([member.value.clone(), other.value.clone()]),
            None => one_of([member.value.clone(), AbstractValue::Undefined]),
        };
        fields.push(member.with_value(value));
    }
    for member in b.fields.iter().filter(|member| a.field(&member.key).is_none()) {
        fields.push(member.with_value(one_of([member.value.clone(), AbstractValue::Undefined])));
    }
    let union = |a: &[AbstractValue<'a>], b: &[AbstractValue<'a>]| {
        let mut all = a.to_vec();
        all.extend(b.iter().filter(|value| !a.iter().any(|other| other.same(value))).cloned());
        all
    };
    ObjectRecord {
        kind: match (&a.kind, &b.kind) {
            (RecordKind::Array, _) => RecordKind::Array,
            (kind, _) => kind.clone(),
        },
        fields,
        extra: union(&a.extra, &b.extra),
        spreads: union(&a.spreads, &b.spreads),
        names: union(&a.names, &b.names),
        setters: a.setters.clone(),
        written: if a.written == b.written { a.written } else { None },
    }
}
