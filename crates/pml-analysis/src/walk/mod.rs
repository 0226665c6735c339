//! Abstract interpretation: follows a program in execution order and records what it can do.
//!
//! Every expression is visited once, in evaluation order. For each value the walk tracks where it comes from, not what
//! it is. Branches are followed one after the other and joined; loops are followed once, with a `Phi` for values that
//! come around; local functions are followed from each of their calls. Nothing is executed.
//!
//! The state of a walk is split into parts ([`parts`], [`memory`]). Language constructs are methods of [`Walker`],
//! which holds the parts; code that needs only some of them belongs to a part or takes those it needs. After the walk,
//! [`finish`] makes the result.

#![expect(clippy::needless_pass_by_value, reason = "values are handles; taking them keeps calls readable")]

mod arguments;
mod call;
mod choice;
mod class;
mod expression;
mod finish;
mod function;
mod held;
mod input;
mod iterate;
mod member;
mod memory;
mod objects;
mod operation;
mod parallel;
mod parts;
mod pattern;
mod places;
mod repeat;
mod statement;
mod syntax;
mod table;
mod target;
mod types;

use std::rc::Rc;

use oxc_ast::ast::Program;
use oxc_semantic::{Scoping, SymbolId};
use oxc_span::Span;
use pml_model::structure::{DecisionForm, NodeId, Structure};
use rustc_hash::FxHashSet;

use crate::analysis::{Complaint, ContextEntry, DecisionReads, Parameters, Permissions, ProbeSite};
use crate::catalogue::AnalysisCatalogue;
use crate::lines::SourceLines;
use crate::marks::{ProbeMarks, ProbePlace};
use crate::uses::ArgumentUses;
use crate::value::{AbstractValue, MemberPath, one_of};

use self::input::{ProgramFacts, WalkInput};
use self::memory::ProgramMemory;
use self::parts::calls::CallStack;
use self::parts::decided::DecidingLiterals;
use self::parts::diagnostics::Diagnostics;
use self::parts::flow::ControlFlow;
use self::parts::functions::FunctionLog;
use self::parts::graph::{DraftGraph, DraftKind};
use self::parts::keys::KeyPool;
use self::parts::permissions::PermissionLog;
use self::parts::probes::ProbeLog;
use self::parts::recording::WalkMode;

/// Findings of a walk.
pub(crate) struct WalkFindings {
    pub(crate) structure: Structure,
    pub(crate) parameters: Parameters,
    pub(crate) permissions: Permissions,
    pub(crate) complaints: Vec<Complaint>,
    pub(crate) marks: ProbeMarks,
    pub(crate) sites: Vec<ProbeSite>,
    pub(crate) entries: Vec<ContextEntry>,
    pub(crate) decided_by: Vec<DecisionReads>,
    pub(crate) returns_from: Vec<NodeId>,
    pub(crate) ends_after: Vec<Vec<NodeId>>,
}

/// The work budget is spent; the span reached.
pub(crate) struct BudgetSpent(pub(crate) Span);

/// Maximum number of alternatives of a node that is revisited in the same context; beyond it only the sources of its
/// inputs are kept.
const MAX_ALTERNATIVES: usize = 64;

/// Walks `program`.
///
/// # Errors
/// The walk would take too much time or memory.
pub(crate) fn walk_program<'a>(
    program: &'a Program<'a>,
    source: &'a str,
    lines: &SourceLines<'_>,
    scoping: &Scoping,
    catalogue: &AnalysisCatalogue,
) -> Result<WalkFindings, BudgetSpent> {
    let input = WalkInput { program, source, lines, scoping, catalogue };
    let facts = ProgramFacts::of(program, scoping).ok_or(BudgetSpent(Span::default()))?;
    let mut walk = Walker::new(input, &facts, FxHashSet::default());
    walk.program();
    let unsure = facts.changed_by_others(&walk.functions.visited);
    if !unsure.is_empty() && !walk.memory.budget().is_spent() {
        // The first walk assumed that these variables are unchanged, but a function that was never seen to be called
        // may change them. It is discarded; the second walk treats their values as uncertain. There is no third walk,
        // so the work stays bounded.
        walk = Walker::new(input, &facts, unsure);
        walk.program();
    }
    walk.finish()
}

/// A walk over a program. Language constructs are methods of this type because each may contain every other; the shared
/// state is in the parts.
struct Walker<'a, 's> {
    input: WalkInput<'a, 's>,
    facts: &'s ProgramFacts<'a>,
    memory: ProgramMemory<'a, 's>,
    graph: DraftGraph<'a>,
    flow: ControlFlow<'a>,
    calls: CallStack<'a>,
    functions: FunctionLog<'a>,
    probes: ProbeLog<'s>,
    recording: WalkMode,
    diagnostics: Diagnostics<'a, 's>,
    permissions: PermissionLog<'a, 's>,
    uses: ArgumentUses,
    deciding: DecidingLiterals,
    keys: KeyPool,
}

impl<'a, 's> Walker<'a, 's> {
    fn new(
        input: WalkInput<'a, 's>,
        facts: &'s ProgramFacts<'a>,
        unsure: FxHashSet<SymbolId>,
    ) -> Walker<'a, 's> {
        let WalkInput { source, lines, scoping, catalogue, .. } = input;
        Walker {
            input,
            facts,
            memory: ProgramMemory::new(&facts.survey, scoping.symbols_len(), unsure),
            graph: DraftGraph::new(),
            flow: ControlFlow::new(),
            calls: CallStack::new(source),
            functions: FunctionLog::new(facts.survey.functions.len()),
            probes: ProbeLog::new(lines),
            recording: WalkMode::default(),
            diagnostics: Diagnostics::new(lines),
            permissions: PermissionLog::new(catalogue, lines),
            uses: ArgumentUses::default(),
            deciding: DecidingLiterals::default(),
            keys: KeyPool::default(),
        }
    }

    fn program(&mut self) {
        self.calls.enter_program(self.memory.state.mark());
        self.statements(&self.input.program.body);
        if self.flow.live {
            self.note_end();
        }
    }

    /// Takes note of a place where the program ends.
    fn note_end(&mut self) {
        let before = self.flow.frontier.iter().map(|(node, _)| *node);
        self.graph.ends.push(before.collect());
    }
}

impl<'a> Walker<'a, '_> {
    /// The node at a place in the current context, connected to its predecessors.
    fn node(&mut self, place: ProbePlace, span: Span, kind: DraftKind<'a>) -> u32 {
        let point = self.probes.point(place, span);
        let place = self.probes.place(point);
        let node = match self.graph.revisit_node(place) {
            Some(node) => {
                self.merge_inputs(node, kind);
                node
            }
            None => self.graph.add_node(place, span, kind, &self.flow.loops),
        };
        self.graph.connect(&mut self.flow.frontier, node);
        node
    }

    /// A node that is revisited in the same context: its inputs may be either.
    fn merge_inputs(&mut self, node: u32, kind: DraftKind<'a>) {
        let Walker { graph, memory, .. } = self;
        let draft = &mut graph.nodes[node as usize];
        match (kind, &mut draft.kind) {
            (DraftKind::Call(new), DraftKind::Call(old)) => {
                either(memory, &mut old.arguments, new.arguments, draft.span);
            }
            (DraftKind::Operation { inputs: new, .. }, DraftKind::Operation { inputs: old, .. }) => {
                for ((_, old, span), (_, new, _)) in old.iter_mut().zip(new) {
                    either(memory, old, new, *span);
                }
            }
            _ => {}
        }
    }

    fn decision(
        &mut self,
        place: ProbePlace,
        span: Span,
        condition: Span,
        form: DecisionForm,
    ) -> Option<u32> {
        self.decision_with(place, span, condition, form, Vec::new(), "")
    }

    /// A decision with these outcomes; `None` when nothing is recorded.
    fn decision_with(
        &mut self,
        place: ProbePlace,
        span: Span,
        condition: Span,
        form: DecisionForm,
        outcomes: Vec<String>,
        suffix: &'static str,
    ) -> Option<u32> {
        if self.recording.is_quiet() {
            return None;
        }
        let tested = self.graph.tested.take();
        let decision = self.node(place, span, DraftKind::Decision { condition, form, outcomes, suffix });
        self.graph.decided.extend(tested.map(|tested| (decision, tested)));
        Some(decision)
    }

    fn read_symbol(&self, symbol: SymbolId) -> AbstractValue<'a> {
        self.memory.read(&self.calls.activation, symbol)
    }

    fn write_symbol(&mut self, symbol: SymbolId, value: AbstractValue<'a>) {
        self.memory.write(&self.calls.activation, symbol, value);
    }

    /// Whether the budget is spent. The caller must then return at once.
    fn is_spent_at(&self, at: Span) -> bool {
        self.memory.budget().is_spent_at(at)
    }
}

/// From now on `old` may be `new` as well; both are read at `span`.
fn either<'a>(
    memory: &mut ProgramMemory<'a, '_>,
    old: &mut AbstractValue<'a>,
    new: AbstractValue<'a>,
    span: Span,
) {
    let before = std::mem::replace(old, AbstractValue::Unknown);
    memory.budget().spend(1 + before.width() + new.width());
    let either = one_of([before, new]);
    *old = match &either {
        AbstractValue::OneOf(values) if values.len() > MAX_ALTERNATIVES => {
            let values = Rc::clone(values);
            memory.computed(span, &values)
        }
        _ => either,
    };
}

fn result_of<'a>(node: u32) -> AbstractValue<'a> {
    AbstractValue::Result(node, MemberPath::default())
}
