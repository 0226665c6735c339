//! What a program is followed with: the program, and what is known of it before it is followed.

use std::cell::OnceCell;

use oxc_ast::ast::Program;
use oxc_semantic::{Scoping, SymbolId};
use oxc_span::Span;
use rustc_hash::FxHashSet;

use super::types::{self, NamedTypes};
use crate::catalogue::Catalogue;
use crate::lines::Lines;
use crate::roots::ToolRoots;
use crate::survey::{FunctionIndex, FunctionInfo, Survey};

/// The program and what it may name.
#[derive(Clone, Copy)]
pub(super) struct WalkInput<'a, 's> {
    pub(super) program: &'a Program<'a>,
    pub(super) source: &'a str,
    pub(super) lines: &'s Lines<'s>,
    pub(super) scoping: &'s Scoping,
    pub(super) catalogue: &'s Catalogue,
}

impl<'a> WalkInput<'a, '_> {
    pub(super) fn text(&self, span: Span) -> &'a str {
        &self.source[span.start as usize..span.end as usize]
    }

    /// The beginning of a call, for a message.
    pub(super) fn short(&self, span: Span) -> String {
        let text = self.text(span);
        let end = text.find(['(', '\n', '=']).unwrap_or(text.len());
        text[..end].trim().chars().take(40).collect()
    }
}

/// What was read off the whole program before it is followed.
pub(super) struct ProgramFacts<'a> {
    pub(super) types: NamedTypes<'a>,
    pub(super) survey: Survey,
    pub(super) roots: ToolRoots,
    /// Variables whose objects may be changed, once somebody asks.
    pub(super) loose: OnceCell<FxHashSet<SymbolId>>,
}

impl<'a> ProgramFacts<'a> {
    /// None when there are too many ways in which functions can lead to each other.
    pub(super) fn of(program: &'a Program<'a>, scoping: &Scoping) -> Option<ProgramFacts<'a>> {
        let roots = ToolRoots::of(program, scoping);
        let survey = Survey::of(program, scoping, &roots)?;
        Some(ProgramFacts { types: types::named(program), survey, roots, loose: OnceCell::new() })
    }

    pub(super) fn function(&self, function: FunctionIndex) -> &FunctionInfo {
        self.survey.function(function)
    }

    /// The variables changed by functions that nothing was seen to call: a function kept in a list or an object may be
    /// called in a way that is not understood. What it changes is then not what it seems to be, and nothing may be
    /// claimed of it.
    pub(super) fn changed_by_others(&self, visited: &[bool]) -> FxHashSet<SymbolId> {
        let unseen = self.survey.changed.iter().filter(|(_, function)| !visited[*function as usize]);
        unseen.map(|(symbol, _)| *symbol).collect()
    }
}
