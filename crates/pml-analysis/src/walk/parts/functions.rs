//! What has become of the program's own functions so far.

use std::rc::Rc;

use oxc_span::Span;
use rustc_hash::FxHashMap;

use crate::survey::FunctionIndex;
use crate::value::Closure;

/// Which functions were followed, and which were only seen as values.
pub(crate) struct FunctionLog<'a> {
    /// Whether each function was followed into.
    pub(crate) visited: Vec<bool>,
    /// Functions seen as values, to be followed at the end if nothing called them.
    pub(crate) kept: Vec<Rc<Closure<'a>>>,
    next_kept: usize,
    /// Where each function, of each context, was handed to an operation first.
    pub(crate) handed: FxHashMap<(FunctionIndex, u32), (Span, u32)>,
    /// Some call of a local function was not followed.
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
