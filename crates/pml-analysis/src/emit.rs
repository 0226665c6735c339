//! From a tree and its marks to the JavaScript that is run, and to the canonical form that is hashed.
//!
//! Three steps on one tree: types are stripped (enums, namespaces and parameter properties become plain
//! JavaScript, nothing is brought down to an older language), the canonical form is printed, the probes
//! of [`marks`](crate::marks) are put in. The program with probes does what the program without them
//! does: the same values and exceptions, in the same order, at the same ticks. No helper is ever imported
//! and no part of the program is dropped but types, comments, `'use strict'`, empty statements, unused
//! imports and `export {}`.

mod build;
mod canonical;
mod chain;
mod probes;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use oxc_allocator::Allocator;
use oxc_ast::ast::{ModuleDeclaration, Program, Statement};
use oxc_codegen::{Codegen, CodegenOptions, CommentOptions};
use oxc_semantic::{Scoping, SemanticBuilder, SymbolFlags};
use oxc_span::{GetSpan, LabeledSpan, Span};
use oxc_transformer::{TransformOptions, Transformer};

use crate::analysis::Break;
use crate::marks::ProbeMarks;

/// What is run and what is hashed.
#[derive(Debug)]
pub(crate) struct EmittedProgram {
    /// Body of an async function in strict mode.
    pub(crate) js: String,
    /// The name of the probe object.
    pub(crate) probe: String,
    /// For every line of `js`, the line of the source it comes from (0: none).
    pub(crate) lines: Vec<u32>,
    /// Where a line of `js` goes on with another line of the source.
    pub(crate) breaks: Vec<Break>,
    /// The same for programs that differ in names, layout, types, comments and lifted literals only.
    pub(crate) canonical: String,
}

/// Why a program that could be read cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    /// Something the sandbox does not have.
    #[error("`{what}` cannot be run: {instead}")]
    Unsupported {
        /// The word in the program.
        what: &'static str,
        /// What to do about it.
        instead: &'static str,
        /// Where.
        at: Span,
    },
    /// TypeScript that cannot be made JavaScript.
    #[error(
        "this TypeScript has no JavaScript: let a `namespace` export only `const`, functions and classes"
    )]
    Types {
        /// Where.
        at: Span,
    },
}

/// Emits `program`, the tree of `source`. `scoping` must have been built with enum values
/// (`SemanticBuilder::with_enum_eval(true)`), and the tree not changed since.
pub(crate) fn emit<'a>(
    allocator: &'a Allocator,
    source: &'a str,
    program: &mut Program<'a>,
    scoping: Scoping,
    marks: &ProbeMarks,
) -> Result<EmittedProgram, Error> {
    let scoping = strip_types(allocator, program, scoping)?;
    let probe = free_name(&scoping);
    let (canonical, kept) = canonical::print(allocator, program, scoping, &marks.lifted)?;
    let guard = probes::insert(allocator, source, program, marks, kept, &probe);
    let (js, lines, breaks) = print(program, guard.as_deref());
    Ok(EmittedProgram { js, probe, lines, breaks, canonical })
}

/// Makes JavaScript of TypeScript.
fn strip_types<'a>(
    allocator: &'a Allocator,
    program: &mut Program<'a>,
    scoping: Scoping,
) -> Result<Scoping, Error> {
    program.comments.clear();
    program.hashbang = None;
    let has_more_than_types = has_more_than_types(&scoping);
    let stripped = Transformer::new(allocator, Path::new(""), &TransformOptions::default())
        .build_with_scoping(scoping, program);
    if let Some(problem) = stripped.diagnostics.first() {
        let at = problem.labels.first().map_or(Span::default(), LabeledSpan::span);
        return Err(Error::Types { at });
    }
    refuse_modules(program)?;
    if has_more_than_types {
        // Some names that were made for them are not yet known to mean what they mean.
        return Ok(SemanticBuilder::new().build(program).semantic.into_scoping());
    }
    Ok(stripped.scoping)
}

/// Whether there are enums or namespaces.
fn has_more_than_types(scoping: &Scoping) -> bool {
    let lowered = SymbolFlags::Enum | SymbolFlags::ValueModule;
    scoping.symbol_ids().any(|symbol| scoping.symbol_flags(symbol).intersects(lowered))
}

/// Imports that are used and exports cannot stand in the body of a function.
fn refuse_modules(program: &mut Program<'_>) -> Result<(), Error> {
    // What is left of `import type` is an `export {}` that says the text was a module.
    let is_empty_export = |statement: &Statement<'_>| matches!(statement, Statement::ExportNamedDeclaration(it) if it.specifiers.is_empty());
    program.body.retain(|statement| !is_empty_export(statement));
    match program.body.iter().find_map(Statement::as_module_declaration) {
        Some(ModuleDeclaration::ImportDeclaration(it)) => Err(Error::Unsupported {
            what: "import",
            instead: "there are no modules, use `mcp`, `capabilities` and standard JavaScript",
            at: it.span,
        }),
        Some(other) => Err(Error::Unsupported {
            what: "export",
            instead: "leave it out, what the program gives back is what it returns",
            at: other.span(),
        }),
        None => Ok(()),
    }
}

/// A name such that no name of the program begins with it.
fn free_name(scoping: &Scoping) -> String {
    let free = scoping.root_unresolved_references();
    let mut name = String::from("__pml");
    while scoping.symbol_names().any(|it| it.starts_with(&name))
        || free.keys().any(|it| it.starts_with(&name))
    {
        name.push('_');
    }
    name
}

/// The text of `program` and the source line of each of its lines. A `guard` is a text to leave out.
fn print(program: &Program<'_>, guard: Option<&str>) -> (String, Vec<u32>, Vec<Break>) {
    let options = CodegenOptions {
        comments: CommentOptions::disabled(),
        source_map_path: Some(PathBuf::new()),
        ..CodegenOptions::default()
    };
    let printed = Codegen::new().with_options(options).build(program);
    let js = match guard {
        Some(guard) => printed.code.replace(guard, ""),
        None => printed.code,
    };
    let unended = usize::from(!js.is_empty() && !js.ends_with('\n'));
    let mut lines: Vec<u32> = vec![0; memchr::memchr_iter(b'\n', js.as_bytes()).count() + unended];
    let mut breaks: Vec<Break> = Vec::new();
    if let Some(map) = printed.map {
        let (mut on, mut from) = (u32::MAX, 0);
        for token in map.get_tokens() {
            let (line, source) = (token.get_dst_line(), token.get_src_line() + 1);
            // The first thing on a line says where the line comes from.
            if let Some(first @ 0) = lines.get_mut(line as usize) {
                *first = source;
                (on, from) = (line, source);
            } else if on == line && from != source {
                from = source;
                breaks.push(Break { line: line + 1, column: token.get_dst_col() + 1, source });
            }
        }
    }
    (js, lines, breaks)
}
