//! The values of the program: its variables and objects, what comes around loops, and promises.

mod freeze;
mod part;
mod promise;
mod reach;
mod sources;
pub(crate) mod state;

use std::rc::Rc;

use oxc_semantic::SymbolId;
use oxc_span::Span;
use rustc_hash::{FxHashMap, FxHashSet};

pub(crate) use self::part::longer;
pub(crate) use self::promise::{PendingPromise, PromiseOrigin};
pub(crate) use self::sources::{has_sources, settled};

use self::freeze::FreezeCache;
use self::sources::sources;
use self::state::{ProgramState, VariableKey};
use crate::budget::{VisitedParts, WorkBudget};
use crate::survey::Survey;
use crate::value::{Activation, DistinctValues, ObjectRecord, Value, one_of};

/// A loop being gone through.
pub(crate) struct LoopScope {
    pub(crate) node: Option<u32>,
    /// Objects with a smaller index are older than the loop.
    pub(crate) objects: u32,
    pub(crate) phis: FxHashMap<u32, u32>,
}

/// What a variable holds at the head of a loop.
pub(crate) struct Phi<'a> {
    pub(crate) node: Option<u32>,
    pub(crate) before: Value<'a>,
    pub(crate) around: Vec<Value<'a>>,
    pub(crate) consumed: bool,
}

/// Variables, objects, phis and promises, and how values are read from them.
pub(crate) struct ProgramMemory<'a, 's> {
    survey: &'s Survey,
    pub(crate) state: ProgramState<'a>,
    pub(crate) phis: Vec<Phi<'a>>,
    /// The loops being gone through.
    pub(crate) loops: Vec<LoopScope>,
    pub(crate) promises: Vec<PendingPromise>,
    /// What freezing a value remembers, kept to be used again.
    freezing: FreezeCache<'a>,
    /// Variables that functions change of which no call was seen.
    unsure: FxHashSet<SymbolId>,
}

impl<'a, 's> ProgramMemory<'a, 's> {
    /// Nothing yet, with room for so many variables.
    pub(crate) fn new(
        survey: &'s Survey,
        variables: usize,
        unsure: FxHashSet<SymbolId>,
    ) -> ProgramMemory<'a, 's> {
        ProgramMemory {
            survey,
            state: ProgramState::with_room_for(variables),
            phis: Vec::new(),
            loops: Vec::new(),
            promises: Vec::new(),
            freezing: FreezeCache::default(),
            unsure,
        }
    }

    pub(crate) fn budget(&self) -> &WorkBudget {
        &self.state.budget
    }

    /// A new object or array of the program.
    pub(crate) fn allocate(&mut self, record: ObjectRecord<'a>) -> Value<'a> {
        Value::Object(self.state.new_object(record))
    }

    pub(crate) fn variable(&self, from: &Rc<Activation<'a>>, symbol: SymbolId) -> Option<VariableKey> {
        let home = self.survey.home[symbol.index()];
        let mut at = Some(from);
        while let Some(activation) = at {
            if activation.function == home {
                return Some((activation.id, symbol.index() as u32));
            }
            at = activation.outer.as_ref();
        }
        None
    }

    /// What the variable that `symbol` means in `from` holds.
    pub(crate) fn read(&self, from: &Rc<Activation<'a>>, symbol: SymbolId) -> Value<'a> {
        self.variable(from, symbol)
            .and_then(|variable| self.state.read(variable).cloned())
            .unwrap_or(Value::Unknown)
    }

    pub(crate) fn write(&mut self, from: &Rc<Activation<'a>>, symbol: SymbolId, value: Value<'a>) {
        let value = if self.unsure.contains(&symbol) { self.widen(value) } else { value };
        if let Some(variable) = self.variable(from, symbol) {
            self.state.write(variable, value);
        }
    }

    /// A value that may as well be, or hold, something else.
    fn widen(&mut self, value: Value<'a>) -> Value<'a> {
        match value {
            Value::Object(index) => {
                self.state.change(index, |record| record.extra.push(Value::Unknown));
                Value::Object(index)
            }
            // These are followed, or make a program opaque: what they are must not be lost.
            Value::Function(_)
            | Value::Class(_)
            | Value::Promise(..)
            | Value::Global(_)
            | Value::Mcp
            | Value::Server(_)
            | Value::Tool(..)
            | Value::Capabilities
            | Value::Capability(_) => value,
            other => one_of([other, Value::Unknown]),
        }
    }

    pub(crate) fn new_phi(&mut self, before: Value<'a>, node: Option<u32>) -> u32 {
        let before = self.freeze(&before);
        self.phis.push(Phi { node, before, around: Vec::new(), consumed: false });
        (self.phis.len() - 1) as u32
    }

    pub(crate) fn feed_phi(&mut self, phi: u32, value: &Value<'a>) {
        if let Value::Phi(same, path) = value
            && *same == phi
            && path.steps().is_empty()
        {
            return;
        }
        let value = self.freeze(value);
        if self.phis[phi as usize].consumed {
            self.mark_awaited(&value);
        }
        self.phis[phi as usize].around.push(value);
    }

    /// Something computed at `span` from `values`.
    pub(crate) fn computed(&mut self, span: Span, values: &[Value<'a>]) -> Value<'a> {
        let mut reads = DistinctValues::default();
        for value in values {
            let value = self.freeze(value);
            let mut seen = VisitedParts::default();
            sources(&value, &mut reads, &mut seen);
            self.state.budget.spend(seen.visit_count());
        }
        Value::Computed(span, reads.shared())
    }
}
