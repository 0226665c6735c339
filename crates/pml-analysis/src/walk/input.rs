//! Input of a walk: the program, and facts computed before it.

use std::cell::OnceCell;

use oxc_ast::ast::Program;
use oxc_semantic::{Scoping, SymbolId};
use oxc_span::Span;
use rustc_hash::FxHashSet;

use super::types::{self, NamedTypes};
use crate::catalogue::AnalysisCatalogue;
use crate::lines::SourceLines;
use crate::roots::ToolRoots;
use crate::survey::{FunctionIndex, FunctionInfo, ProgramSurvey};

/// The program and the names it may use.
#[derive(Clone, Copy)]
pub(super) struct WalkInput<'a, 's> {
    pub(super) program: &'a Program<'a>,
    pub(super) source: &'a str,
    pub(super) lines: &'s SourceLines<'s>,
    pub(super) scoping: &'s Scoping,
    pub(super) catalogue: &'s AnalysisCatalogue,
}

impl<'a> WalkInput<'a, '_> {
    pub(super) fn text(&self, span: Span) -> &'a str {
        &self.source[span.start as usize..span.end as usize]
    }

    /// Beginning of the source of a call, for a message.
    pub(super) fn short(&self, span: Span) -> String {
        let text = self.text(span);
        let end = text.find(['(', '\n', '=']).unwrap_or(text.len());
        text[..end].trim().chars().take(40).collect()
    }
}

/// Facts read from the whole program before the walk.
pub(super) struct ProgramFacts<'a> {
    pub(super) types: NamedTypes<'a>,
    pub(super) survey: ProgramSurvey,
    pub(super) roots: ToolRoots,
    /// Variables whose objects may be changed; computed on first use.
    pub(super) loose: OnceCell<FxHashSet<SymbolId>>,
}

impl<'a> ProgramFacts<'a> {
    /// Computes the facts; `None` when the call graph is too large.
    pub(super) fn of(program: &'a Program<'a>, scoping: &Scoping) -> Option<ProgramFacts<'a>> {
        let roots = ToolRoots::of(program, scoping);
        let survey = ProgramSurvey::of(program, scoping, &roots)?;
        Some(ProgramFacts { types: types::named_types(program), survey, roots, loose: OnceCell::new() })
    }

    pub(super) fn function(&self, function: FunctionIndex) -> &FunctionInfo {
        self.survey.function(function)
    }

    /// Variables changed by functions that the walk never saw called. A function stored in a list or an object may be
    /// called in a way that is not understood. What it changes is then uncertain, and nothing may be claimed about it.
    pub(super) fn changed_by_others(&self, visited: &[bool]) -> FxHashSet<SymbolId> {
        let unseen = self.survey.changed.iter().filter(|(_, function)| !visited[*function as usize]);
        unseen.map(|(symbol, _)| *symbol).collect()
    }
}
