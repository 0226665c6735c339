//! Where control is, and where it can go: the frontier, and what `break`, `continue`, `throw` and `?.` lead to.

use std::rc::Rc;

use smallvec::SmallVec;

use super::super::memory::state::{ProgramState, StateChanges, StateMark};
use super::graph::{Frontier, add_points};
use crate::value::Value;

/// One path by which a point of the program is reached: what was changed on it, and the nodes it comes from.
pub(crate) struct FlowPath<'a> {
    pub(crate) changes: StateChanges<'a>,
    pub(crate) frontier: Frontier,
}

/// Where `break` and `continue` lead.
pub(crate) struct JumpTarget<'a> {
    pub(crate) labels: Vec<&'a str>,
    pub(crate) kind: JumpTargetKind,
    pub(crate) mark: StateMark,
    pub(crate) breaks: Vec<FlowPath<'a>>,
    pub(crate) continues: Vec<FlowPath<'a>>,
    /// How many functions were being followed.
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
    /// Where it ends in the source.
    pub(crate) end: u32,
    /// Decisions that may end it early, each with the outcome that does.
    pub(crate) decisions: Vec<(u32, &'static str)>,
}

impl<'a> FlowPath<'a> {
    /// A way on which nothing was changed.
    pub(crate) fn unchanged(frontier: Frontier) -> FlowPath<'a> {
        FlowPath { changes: StateChanges::default(), frontier }
    }
}

/// How control left a statement other than by its end.
#[derive(PartialEq, Eq, Clone, Copy)]
pub(crate) enum JumpExit {
    Break,
    Continue,
}

/// The place in the program that is being walked, and the ways out of it.
pub(crate) struct ControlFlow<'a> {
    pub(crate) frontier: Frontier,
    /// Whether the program can get to where we are.
    pub(crate) live: bool,
    /// The loops we are in, outermost first.
    pub(crate) loops: Rc<[u32]>,
    /// Labels of the statement that comes next.
    pub(crate) labels: Vec<&'a str>,
    pub(crate) jumps: Vec<JumpTarget<'a>>,
    /// What is thrown inside each `try` we are in.
    pub(crate) thrown: Vec<Vec<(Value<'a>, Frontier)>>,
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

    /// Nothing after this place is reached from it.
    pub(crate) fn stop(&mut self) {
        self.live = false;
        self.frontier.clear();
    }

    /// Ends an arm: its changes are undone, so that the next arm begins where this one began. None if the end of the arm is
    /// never reached.
    pub(crate) fn end_arm(&mut self, state: &mut ProgramState<'a>, mark: StateMark) -> Option<FlowPath<'a>> {
        let way = self.live.then(|| self.path_since(state, mark));
        state.undo(mark);
        self.live = true;
        way
    }

    pub(crate) fn path_since(&self, state: &ProgramState<'a>, mark: StateMark) -> FlowPath<'a> {
        FlowPath { changes: state.changes(mark), frontier: self.frontier.clone() }
    }

    /// Goes on from all the paths that lead here. Without any, what follows is unreachable.
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

    /// Ends an arm that may not have been taken; without it, control comes from `skipped`.
    pub(crate) fn end_optional_arm(
        &mut self,
        state: &mut ProgramState<'a>,
        mark: StateMark,
        skipped: Frontier,
    ) {
        let done = self.end_arm(state, mark);
        self.rejoin(state, done.into_iter().chain([FlowPath::unchanged(skipped)]));
    }

    /// Makes the statement that follows a target of `break` and `continue`. `depth` is how many functions are being
    /// followed.
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
