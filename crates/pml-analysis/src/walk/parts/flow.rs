//! Control flow: the frontier, and the targets of `break`, `continue`, `throw` and `?.`.

use std::rc::Rc;

use smallvec::SmallVec;

use super::super::memory::state::{ProgramState, StateChanges, StateMark};
use super::graph::{Frontier, add_points};
use crate::value::AbstractValue;

/// One path to a point of the program: the changes made on it, and the nodes it comes from.
pub(crate) struct FlowPath<'a> {
    pub(crate) changes: StateChanges<'a>,
    pub(crate) frontier: Frontier,
}

/// Target of `break` and `continue`.
pub(crate) struct JumpTarget<'a> {
    pub(crate) labels: Vec<&'a str>,
    pub(crate) kind: JumpTargetKind,
    pub(crate) mark: StateMark,
    pub(crate) breaks: Vec<FlowPath<'a>>,
    pub(crate) continues: Vec<FlowPath<'a>>,
    /// Number of functions being followed when it was entered.
    pub(crate) depth: usize,
}

#[derive(PartialEq, Eq, Clone, Copy)]
pub(crate) enum JumpTargetKind {
    Loop,
    Switch,
    Block,
}

/// An optional chain being evaluated.
pub(crate) struct OptionalChain {
    /// End offset in the source.
    pub(crate) end: u32,
    /// Decisions that may end it early, each with the outcome that does.
    pub(crate) decisions: Vec<(u32, &'static str)>,
}

impl<'a> FlowPath<'a> {
    /// A path without changes.
    pub(crate) fn unchanged(frontier: Frontier) -> FlowPath<'a> {
        FlowPath { changes: StateChanges::default(), frontier }
    }
}

/// How control leaves a statement early.
#[derive(PartialEq, Eq, Clone, Copy)]
pub(crate) enum JumpExit {
    Break,
    Continue,
}

/// Current position in the control flow, and the exits from it.
pub(crate) struct ControlFlow<'a> {
    pub(crate) frontier: Frontier,
    /// Whether the current point is reachable.
    pub(crate) live: bool,
    /// Enclosing loops, outermost first.
    pub(crate) loops: Rc<[u32]>,
    /// Labels of the next statement.
    pub(crate) labels: Vec<&'a str>,
    pub(crate) jumps: Vec<JumpTarget<'a>>,
    /// Thrown values of each enclosing `try`.
    pub(crate) thrown: Vec<Vec<(AbstractValue<'a>, Frontier)>>,
    pub(crate) chains: Vec<OptionalChain>,
}

impl<'a> ControlFlow<'a> {
    pub(crate) fn new() -> ControlFlow<'a> {
        ControlFlow {
            frontier: Frontier::new(),
            live: true,
            loops: Rc::new([]),
            labels: Vec::new(),
            jumps: Vec::new(),
            thrown: Vec::new(),
            chains: Vec::new(),
        }
    }

    /// Marks the code after this point as unreachable from it.
    pub(crate) fn stop(&mut self) {
        self.live = false;
        self.frontier.clear();
    }

    /// Ends an arm and undoes its changes, so that the next arm starts from the same state. `None` if the end of the
    /// arm is unreachable.
    pub(crate) fn end_arm(&mut self, state: &mut ProgramState<'a>, mark: StateMark) -> Option<FlowPath<'a>> {
        let way = self.live.then(|| self.path_since(state, mark));
        state.undo(mark);
        self.live = true;
        way
    }

    pub(crate) fn path_since(&self, state: &ProgramState<'a>, mark: StateMark) -> FlowPath<'a> {
        FlowPath { changes: state.changes(mark), frontier: self.frontier.clone() }
    }

    /// Continues from all the paths that lead here. Without any, the code after is unreachable.
    pub(crate) fn rejoin(
        &mut self,
        state: &mut ProgramState<'a>,
        ways: impl IntoIterator<Item = FlowPath<'a>>,
    ) {
        let mut frontier = Frontier::new();
        let mut changes: SmallVec<[StateChanges<'a>; 2]> = SmallVec::new();
        for way in ways {
            state.budget.spend(1 + 4 * way.frontier.len());
            add_points(&mut frontier, way.frontier);
            changes.push(way.changes);
        }
        self.live = !changes.is_empty();
        state.merge(&changes);
        self.frontier = frontier;
    }

    /// Ends an arm that may be skipped; a skipped arm continues from `skipped`.
    pub(crate) fn end_optional_arm(
        &mut self,
        state: &mut ProgramState<'a>,
        mark: StateMark,
        skipped: Frontier,
    ) {
        let done = self.end_arm(state, mark);
        self.rejoin(state, done.into_iter().chain([FlowPath::unchanged(skipped)]));
    }

    /// Makes the next statement a target of `break` and `continue`. `depth` is the number of functions being followed.
    pub(crate) fn enter_jump(
        &mut self,
        labels: Vec<&'a str>,
        kind: JumpTargetKind,
        mark: StateMark,
        depth: usize,
    ) {
        self.jumps.push(JumpTarget { labels, kind, mark, breaks: Vec::new(), continues: Vec::new(), depth });
    }

    /// `break` or `continue`, in a function at `depth`.
    pub(crate) fn jump(
        &mut self,
        state: &ProgramState<'a>,
        label: Option<&str>,
        out: JumpExit,
        depth: usize,
    ) {
        let target = self.jumps.iter().rposition(|jump| {
            jump.depth == depth
                && match label {
                    Some(label) => jump.labels.contains(&label),
                    None => {
                        jump.kind == JumpTargetKind::Loop
                            || (out == JumpExit::Break && jump.kind == JumpTargetKind::Switch)
                    }
                }
        });
        if let Some(target) = target {
            let way = self.path_since(state, self.jumps[target].mark);
            let jump = &mut self.jumps[target];
            match out {
                JumpExit::Break => jump.breaks.push(way),
                JumpExit::Continue => jump.continues.push(way),
            }
        }
        self.stop();
    }
}
