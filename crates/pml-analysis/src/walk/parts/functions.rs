//! Record of the program's own functions during a walk.

use std::rc::Rc;

use oxc_span::Span;
use rustc_hash::FxHashMap;

use crate::survey::FunctionIndex;
use crate::value::Closure;

/// Functions that were followed, and functions that were only seen as values.
pub(crate) struct FunctionLog<'a> {
    /// Whether each function was followed.
    pub(crate) visited: Vec<bool>,
    /// Functions seen as values, to be followed at the end if nothing called them.
    pub(crate) kept: Vec<Rc<Closure<'a>>>,
    next_kept: usize,
    /// For each function and context, the first place where it was passed to an operation.
    pub(crate) handed: FxHashMap<(FunctionIndex, u32), (Span, u32)>,
    /// Whether some call of a local function was not followed.
    pub(crate) left_out: bool,
}

impl<'a> FunctionLog<'a> {
    pub(crate) fn new(functions: usize) -> FunctionLog<'a> {
        FunctionLog {
            visited: vec![false; functions],
            kept: Vec::new(),
            next_kept: 0,
            handed: FxHashMap::default(),
            left_out: false,
        }
    }

    pub(crate) fn next_kept(&mut self) -> Option<Rc<Closure<'a>>> {
        let closure = self.kept.get(self.next_kept).cloned();
        self.next_kept += 1;
        closure
    }
}
