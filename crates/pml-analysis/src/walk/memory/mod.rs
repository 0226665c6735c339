//! Values of the program: variables, objects, phis and promises.

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

pub(crate) use self::part::extend_path;
pub(crate) use self::promise::{PendingPromise, PromiseOrigin};
pub(crate) use self::sources::{has_sources, settled_value};

use self::freeze::FreezeCache;
use self::sources::collect_sources;
use self::state::{ProgramState, VariableKey};
use crate::budget::{VisitedParts, WorkBudget};
use crate::survey::ProgramSurvey;
use crate::value::{AbstractValue, Activation, DistinctValues, ObjectRecord, one_of};

/// A loop being walked.
pub(crate) struct LoopScope {
    pub(crate) node: Option<u32>,
    /// Objects with a smaller index are older than the loop.
    pub(crate) objects: u32,
    pub(crate) phis: FxHashMap<u32, u32>,
}

/// Value of a variable at the head of a loop.
pub(crate) struct Phi<'a> {
    pub(crate) node: Option<u32>,
    pub(crate) before: AbstractValue<'a>,
    pub(crate) around: Vec<AbstractValue<'a>>,
    pub(crate) consumed: bool,
}

/// Variables, objects, phis and promises, with the operations to read them.
pub(crate) struct ProgramMemory<'a, 's> {
    survey: &'s ProgramSurvey,
    pub(crate) state: ProgramState<'a>,
    pub(crate) phis: Vec<Phi<'a>>,
    /// Loops being walked.
    pub(crate) loops: Vec<LoopScope>,
    pub(crate) promises: Vec<PendingPromise>,
    /// Reusable state of [`Self::freeze`].
    freezing: FreezeCache<'a>,
    /// Variables that are changed by functions without an observed call.
    unsure: FxHashSet<SymbolId>,
}

impl<'a, 's> ProgramMemory<'a, 's> {
    /// An empty memory with capacity for this many variables.
    pub(crate) fn new(
        survey: &'s ProgramSurvey,
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

    /// Creates an object or array of the program.
    pub(crate) fn allocate(&mut self, record: ObjectRecord<'a>) -> AbstractValue<'a> {
        AbstractValue::Object(self.state.new_object(record))
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

    /// Value of the variable that `symbol` refers to in `from`.
    pub(crate) fn read(&self, from: &Rc<Activation<'a>>, symbol: SymbolId) -> AbstractValue<'a> {
        self.variable(from, symbol)
            .and_then(|variable| self.state.read(variable).cloned())
            .unwrap_or(AbstractValue::Unknown)
    }

    pub(crate) fn write(&mut self, from: &Rc<Activation<'a>>, symbol: SymbolId, value: AbstractValue<'a>) {
        let value = if self.unsure.contains(&symbol) { self.widen(value) } else { value };
        if let Some(variable) = self.variable(from, symbol) {
            self.state.write(variable, value);
        }
    }

    /// The value, which may as well be, or contain, something else.
    fn widen(&mut self, value: AbstractValue<'a>) -> AbstractValue<'a> {
        match value {
            AbstractValue::Object(index) => {
                self.state.change(index, |record| record.extra.push(AbstractValue::Unknown));
                AbstractValue::Object(index)
            }
            // These are followed, or make a program opaque: their identity must not be lost.
            AbstractValue::Function(_)
            | AbstractValue::Class(_)
            | AbstractValue::Promise(..)
            | AbstractValue::Global(_)
            | AbstractValue::Mcp
            | AbstractValue::Server(_)
            | AbstractValue::Tool(..)
            | AbstractValue::Capabilities
            | AbstractValue::Capability(_) => value,
            other => one_of([other, AbstractValue::Unknown]),
        }
    }

    pub(crate) fn new_phi(&mut self, before: AbstractValue<'a>, node: Option<u32>) -> u32 {
        let before = self.freeze(&before);
        self.phis.push(Phi { node, before, around: Vec::new(), consumed: false });
        (self.phis.len() - 1) as u32
    }

    pub(crate) fn feed_phi(&mut self, phi: u32, value: &AbstractValue<'a>) {
        if let AbstractValue::Phi(same, path) = value
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

    /// A value computed at `span` from `values`.
    pub(crate) fn computed(&mut self, span: Span, values: &[AbstractValue<'a>]) -> AbstractValue<'a> {
        let mut reads = DistinctValues::default();
        for value in values {
            let value = self.freeze(value);
            let mut seen = VisitedParts::default();
            collect_sources(&value, &mut reads, &mut seen);
            self.state.budget.spend(seen.visit_count());
        }
        AbstractValue::Computed(span, reads.shared())
    }
}
