//! Variables and objects as they are at one point of the program, with a log of changes.
//!
//! Going into a branch takes a mark; what changed since can be taken out again, so that the cost of
//! a branch is that of its own writes, not of everything there is.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::budget::Budget;
use super::value::{Kind, Member, Record, Value, one_of};

/// A variable of one activation: (activation, symbol).
pub(crate) type Variable = (u32, u32);

/// Everything that can change.
#[derive(Debug, Default)]
pub(crate) struct State<'a> {
    variables: FxHashMap<Variable, Value<'a>>,
    variable_log: Vec<(Variable, Option<Value<'a>>)>,
    objects: Vec<Rc<Record<'a>>>,
    object_log: Vec<(u32, Rc<Record<'a>>)>,
    /// What following the program may still cost.
    pub(crate) budget: Budget,
}

/// A moment in the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    variables: usize,
    objects: usize,
}

/// What is different since a mark.
#[derive(Debug, Default, Clone)]
pub(crate) struct Changes<'a> {
    pub(crate) variables: FxHashMap<Variable, Value<'a>>,
    pub(crate) objects: FxHashMap<u32, Rc<Record<'a>>>,
}

impl<'a> State<'a> {
    pub(crate) fn read(&self, variable: Variable) -> Option<&Value<'a>> {
        self.variables.get(&variable)
    }

    pub(crate) fn write(&mut self, variable: Variable, value: Value<'a>) {
        self.budget.spend(1 + value.width());
        let old = self.variables.insert(variable, value);
        self.variable_log.push((variable, old));
    }

    pub(crate) fn new_object(&mut self, record: Record<'a>) -> u32 {
        self.objects.push(Rc::new(record));
        (self.objects.len() - 1) as u32
    }

    pub(crate) fn object_count(&self) -> u32 {
        self.objects.len() as u32
    }

    pub(crate) fn object(&self, index: u32) -> &Rc<Record<'a>> {
        &self.objects[index as usize]
    }

    pub(crate) fn change(&mut self, index: u32, change: impl FnOnce(&mut Record<'a>)) {
        let slot = &mut self.objects[index as usize];
        self.budget.spend(1 + slot.size());
        self.object_log.push((index, Rc::clone(slot)));
        let mut record = Record::clone(slot);
        record.written = None;
        change(&mut record);
        *slot = Rc::new(record);
    }

    fn replace(&mut self, index: u32, record: Rc<Record<'a>>) {
        let slot = &mut self.objects[index as usize];
        self.object_log.push((index, std::mem::replace(slot, record)));
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { variables: self.variable_log.len(), objects: self.object_log.len() }
    }

    /// What is different since `mark`.
    pub(crate) fn changes(&self, mark: Mark) -> Changes<'a> {
        let mut changes = Changes::default();
        let (variables, objects) = (&self.variable_log[mark.variables..], &self.object_log[mark.objects..]);
        self.budget.spend(3 * (variables.len() + objects.len()));
        if self.budget.is_spent() {
            return changes;
        }
        for (variable, _) in variables {
            if let Some(value) = self.variables.get(variable) {
                changes.variables.insert(*variable, value.clone());
            }
        }
        for (index, _) in objects {
            changes.objects.insert(*index, Rc::clone(self.object(*index)));
        }
        changes
    }

    /// Every value a variable or object had at some moment since `mark`, the first and last included.
    pub(crate) fn ever(&self, mark: Mark) -> Changes<'a> {
        let mut changes = self.changes(mark);
        for (variable, old) in &self.variable_log[mark.variables..] {
            if let (Some(old), Some(now)) = (old, changes.variables.get_mut(variable)) {
                self.budget.spend(old.width() + now.width());
                if self.budget.is_spent() {
                    break;
                }
                *now = one_of([old.clone(), now.clone()]);
            }
        }
        for (index, old) in &self.object_log[mark.objects..] {
            if let Some(now) = changes.objects.get_mut(index) {
                self.budget.spend(cost(old, now));
                if self.budget.is_spent() {
                    break;
                }
                *now = Rc::new(both(old, now));
            }
        }
        changes
    }

    /// Goes back to `mark`.
    pub(crate) fn undo(&mut self, mark: Mark) {
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

    /// Goes on from several ways that lead here; each is what changed on it.
    pub(crate) fn merge(&mut self, ways: &[Changes<'a>]) {
        match ways {
            [] => {}
            [only] => {
                for (variable, value) in &only.variables {
                    self.write(*variable, value.clone());
                }
                for (index, record) in &only.objects {
                    self.replace(*index, Rc::clone(record));
                }
            }
            several => self.merge_several(several),
        }
    }

    fn merge_several(&mut self, ways: &[Changes<'a>]) {
        let mut variables: Vec<Variable> =
            ways.iter().flat_map(|way| way.variables.keys().copied()).collect();
        variables.sort_unstable();
        variables.dedup();
        for variable in variables {
            let base = self.variables.get(&variable).cloned();
            let values =
                ways.iter().filter_map(|way| way.variables.get(&variable).cloned().or_else(|| base.clone()));
            let value = one_of(values.collect::<Vec<_>>());
            self.write(variable, value);
        }
        let mut objects: Vec<u32> = ways.iter().flat_map(|way| way.objects.keys().copied()).collect();
        objects.sort_unstable();
        objects.dedup();
        for index in objects {
            let base = Rc::clone(self.object(index));
            if self.is_too_much(&base, ways, index) {
                return;
            }
            let mut records = ways.iter().map(|way| way.objects.get(&index).unwrap_or(&base));
            let first = records.next().map_or_else(|| Record::clone(&base), |record| Record::clone(record));
            let merged = records.fold(first, |merged, record| both(&merged, record));
            self.replace(index, Rc::new(merged));
        }
    }

    /// Counts what putting together an object of several ways costs.
    fn is_too_much(&self, base: &Record<'a>, ways: &[Changes<'a>], index: u32) -> bool {
        let costs = ways.iter().map(|way| cost(base, way.objects.get(&index).map_or(base, |record| record)));
        self.budget.spend(costs.sum());
        self.budget.is_spent()
    }
}

/// A list that may be either of two of different length: behind what they share, positions say nothing.
fn lists<'a>(a: &Record<'a>, b: &Record<'a>) -> Record<'a> {
    let shared = a.fields.iter().zip(&b.fields).take_while(|(a, b)| a.value.same(&b.value)).count();
    let mut merged = Record { kind: Kind::Array, ..Record::default() };
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

/// What [`both`] costs: each member of one is looked for in the other.
pub(crate) fn cost(a: &Record<'_>, b: &Record<'_>) -> usize {
    1 + a.size() + b.size() + a.fields.len() * b.fields.len() / 64 + a.extra.len() * b.extra.len() / 16
}

/// A record that may be either.
pub(crate) fn both<'a>(a: &Record<'a>, b: &Record<'a>) -> Record<'a> {
    let mut fields: Vec<Member<'a>> = Vec::new();
    if a.is_array() && b.is_array() && a.fields.len() != b.fields.len() {
        return lists(a, b);
    }
    for member in &a.fields {
        let value = match b.field(&member.key) {
            Some(other) => one_of([member.value.clone(), other.value.clone()]),
            None => one_of([member.value.clone(), Value::Undefined]),
        };
        fields.push(member.with(value));
    }
    for member in b.fields.iter().filter(|member| a.field(&member.key).is_none()) {
        fields.push(member.with(one_of([member.value.clone(), Value::Undefined])));
    }
    let union = |a: &[Value<'a>], b: &[Value<'a>]| {
        let mut all = a.to_vec();
        all.extend(b.iter().filter(|value| !a.iter().any(|other| other.same(value))).cloned());
        all
    };
    Record {
        kind: match (&a.kind, &b.kind) {
            (Kind::Array, _) => Kind::Array,
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
