//! Which places of the program report something, and in which contexts.
//!
//! A context is one way in which a local function is entered: the program itself is context 0, and a call of a function
//! from one place and context always leads to the same context.

use oxc_span::Span;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::graph::{NodePlace, USUAL_NODES};
use crate::analysis::Entry;
use crate::lines::Lines;
use crate::marks::{FollowedFunction, ProbeMarks, ProbePlace};
use crate::survey::{FunctionIndex, FunctionInfo};
use crate::value::Closure;

/// How often functions may be followed into before they are no longer told apart by caller. Programs of
/// the largest size with a helper called on every line stay well below.
const MAX_FOLLOWED: u32 = 20_000;

/// The probe points and contexts given so far, and where we are among them.
pub(crate) struct ProbeLog<'s> {
    lines: &'s Lines<'s>,
    pub(crate) marks: ProbeMarks,
    next_point: u32,
    /// The context we are in.
    pub(crate) context: u32,
    /// Which of several tools that one place may call.
    pub(crate) variant: u32,
    /// Point and context of a call → the context it leads to.
    contexts: FxHashMap<(u32, u32), u32>,
    next_context: u32,
    pub(crate) entries: Vec<Entry>,
    entered: FxHashSet<(u32, u32, FunctionIndex)>,
}

impl<'s> ProbeLog<'s> {
    pub(crate) fn new(lines: &'s Lines<'s>) -> ProbeLog<'s> {
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

    /// The point of a place, which is the same each time.
    pub(crate) fn point(&mut self, place: ProbePlace, span: Span) -> u32 {
        *self.marks.points.entry((place, span)).or_insert_with(|| {
            self.next_point += 1;
            self.next_point - 1
        })
    }

    /// Where the node of `point` is found in the context we are in.
    pub(crate) fn place(&self, point: u32) -> NodePlace {
        NodePlace { point, context: self.context, variant: self.variant }
    }

    /// The context a call of a local function leads to.
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

    /// A call of a function that is being followed leads to the context it has.
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
        let entry = Entry { point, context: self.context, function, enters, at: self.lines.position(call) };
        if self.entered.insert((point, self.context, function)) {
            self.entries.push(entry);
        }
        self.marks.followed.insert(info.span, FollowedFunction { function });
    }
}
