//! Probe points of the program, and their contexts.
//!
//! A context is one way to enter a local function. The program itself is context 0, and a call of a function from one
//! place and context always enters the same context.

use oxc_span::Span;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::graph::{NodePlace, USUAL_NODES};
use crate::analysis::ContextEntry;
use crate::lines::SourceLines;
use crate::marks::{FollowedFunction, ProbeMarks, ProbePlace};
use crate::survey::{FunctionIndex, FunctionInfo};
use crate::value::Closure;

/// Number of followed calls after which functions are no longer distinguished by caller. Programs of the largest size
/// with a helper called on every line stay well below.
const MAX_FOLLOWED: u32 = 20_000;

/// Probe points and contexts assigned so far, and the current ones.
pub(crate) struct ProbeLog<'s> {
    lines: &'s SourceLines<'s>,
    pub(crate) marks: ProbeMarks,
    next_point: u32,
    /// The current context.
    pub(crate) context: u32,
    /// Index among several tools that one place may call.
    pub(crate) variant: u32,
    /// From point and context of a call to the context it enters.
    contexts: FxHashMap<(u32, u32), u32>,
    next_context: u32,
    pub(crate) entries: Vec<ContextEntry>,
    entered: FxHashSet<(u32, u32, FunctionIndex)>,
}

impl<'s> ProbeLog<'s> {
    pub(crate) fn new(lines: &'s SourceLines<'s>) -> ProbeLog<'s> {
        ProbeLog {
            lines,
            marks: ProbeMarks {
                points: FxHashMap::with_capacity_and_hasher(2 * USUAL_NODES, FxBuildHasher),
                ..ProbeMarks::default()
            },
            next_point: 1,
            context: 0,
            variant: 0,
            contexts: FxHashMap::default(),
            next_context: 1,
            entries: Vec::new(),
            entered: FxHashSet::default(),
        }
    }

    /// The point of a place; the same each time.
    pub(crate) fn point(&mut self, place: ProbePlace, span: Span) -> u32 {
        *self.marks.points.entry((place, span)).or_insert_with(|| {
            self.next_point += 1;
            self.next_point - 1
        })
    }

    /// Key of the node of `point` in the current context.
    pub(crate) fn place(&self, point: u32) -> NodePlace {
        NodePlace { point, context: self.context, variant: self.variant }
    }

    /// The context that a call of a local function enters.
    pub(crate) fn enter(&mut self, call: Span, closure: &Closure<'_>, info: &FunctionInfo) -> u32 {
        if self.next_context >= MAX_FOLLOWED {
            return closure.context;
        }
        let point = self.point(ProbePlace::Enter, call);
        let enters = match self.contexts.get(&(point, self.context)) {
            Some(context) => *context,
            None => {
                let context = self.next_context;
                self.next_context += 1;
                self.contexts.insert((point, self.context), context);
                context
            }
        };
        self.note_entry(call, point, enters, (closure.function, info));
        enters
    }

    /// Records that a recursive call enters the context that its function already has.
    pub(crate) fn enter_again(&mut self, call: Span, enters: u32, function: (FunctionIndex, &FunctionInfo)) {
        let point = self.point(ProbePlace::Enter, call);
        self.note_entry(call, point, enters, function);
    }

    fn note_entry(
        &mut self,
        call: Span,
        point: u32,
        enters: u32,
        (function, info): (FunctionIndex, &FunctionInfo),
    ) {
        let entry =
            ContextEntry { point, context: self.context, function, enters, at: self.lines.position(call) };
        if self.entered.insert((point, self.context, function)) {
            self.entries.push(entry);
        }
        self.marks.followed.insert(info.span, FollowedFunction { function });
    }
}
