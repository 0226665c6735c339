//! Emits the JavaScript that runs, and the canonical form that is hashed.
//!
//! Three passes over one tree: types are stripped (enums, namespaces and parameter properties become plain JavaScript,
//! nothing is compiled to an older language), the canonical form is printed, and the probes of [`marks`](crate::marks)
//! are inserted. The program with probes behaves like the one without: the same values and exceptions, in the same
//! order, at the same ticks. No helper is imported, and nothing is dropped but types, comments, `'use strict'`, empty
//! statements, unused imports and `export {}`.

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

use crate::analysis::LineBreak;
use crate::marks::ProbeMarks;

/// The program that runs, and the form that is hashed.
#[derive(Debug)]
pub(crate) struct EmittedProgram {
    /// Body of an async function in strict mode.
    pub(crate) js: String,
    /// Name of the probe object.
    pub(crate) probe: String,
    /// For every line of `js`, the line of the source it comes from (0: none).
    pub(crate) lines: Vec<u32>,
    /// Columns at which a line of `js` continues with another line of the source.
    pub(crate) breaks: Vec<LineBreak>,
    /// Canonical form: the same for programs that differ only in names, layout, types, comments and lifted literals.
    pub(crate) canonical: String,
}

/// Reason why a parsed program cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EmitError {
    /// A feature that the sandbox does not have.
    #[error("`{what}` cannot be run: {instead}")]
    Unsupported {
        /// The keyword in the program.
        what: &'static str,
        /// What to use instead.
        instead: &'static str,
        /// Byte range in the source.
        at: Span,
    },
    /// TypeScript without a JavaScript equivalent.
    #[error(
        "this TypeScript has no JavaScript: let a `namespace` export only `const`, functions and classes"
    )]
    Types {
        /// Byte range in the source.
        at: Span,
    },
}

/// Emits `program`, the tree of `source`. `scoping` must have been built with enum values
/// (`SemanticBuilder::with_enum_eval(true)`), and the tree not changed since.
pub(crate) fn emit_program<'a>(
    allocator: &'a Allocator,
    source: &'a str,
    program: &mut Program<'a>,
    scoping: Scoping,
    marks: &ProbeMarks,
) -> Result<EmittedProgram, EmitError> {
    let scoping = strip_types(allocator, program, scoping)?;
    let probe = free_name(&scoping);
    let (canonical, kept) = canonical::print_canonical(allocator, program, scoping, &marks.lifted)?;
    let guard = probes::insert_probes(allocator, source, program, marks, kept, &probe);
    let (js, lines, breaks) = print(program, guard.as_deref());
    Ok(EmittedProgram { js, probe, lines, breaks, canonical })
}

/// Converts TypeScript to JavaScript.
fn strip_types<'a>(
    allocator: &'a Allocator,
    program: &mut Program<'a>,
    scoping: Scoping,
) -> Result<Scoping, EmitError> {
    program.comments.clear();
    program.hashbang = None;
    let has_more_than_types = has_more_than_types(&scoping);
    let stripped = Transformer::new(allocator, Path::new(""), &TransformOptions::default())
        .build_with_scoping(scoping, program);
    if let Some(problem) = stripped.diagnostics.first() {
        let at = problem.labels.first().map_or(Span::default(), LabeledSpan::span);
        return Err(EmitError::Types { at });
    }
    refuse_modules(program)?;
    if has_more_than_types {
        // Scopes are rebuilt, because names generated for enums and namespaces are not resolved yet.
        return Ok(SemanticBuilder::new().build(program).semantic.into_scoping());
    }
    Ok(stripped.scoping)
}

/// Whether there are enums or namespaces.
fn has_more_than_types(scoping: &Scoping) -> bool {
    let lowered = SymbolFlags::Enum | SymbolFlags::ValueModule;
    scoping.symbol_ids().any(|symbol| scoping.symbol_flags(symbol).intersects(lowered))
}

/// Refuses used imports and exports, which cannot stand in the body of a function.
fn refuse_modules(program: &mut Program<'_>) -> Result<(), EmitError> {
    // `import type` leaves an `export {}` that marks the text as a module.
    let is_empty_export = |statement: &Statement<'_>| matches!(statement, Statement::ExportNamedDeclaration(it) if it.specifiers.is_empty());
    program.body.retain(|statement| !is_empty_export(statement));
    match program.body.iter().find_map(Statement::as_module_declaration) {
        Some(ModuleDeclaration::ImportDeclaration(it)) => Err(EmitError::Unsupported {
            what: "import",
            instead: "there are no modules, use `mcp`, `capabilities` and standard JavaScript",
            at: it.span,
        }),
        Some(other) => Err(EmitError::Unsupported {
            what: "export",
            instead: "leave it out, what the program gives back is what it returns",
            at: other.span(),
        }),
        None => Ok(()),
    }
}

/// A name that is not a prefix of any name of the program.
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

/// Text of `program` and the source line of each of its lines. `guard` is a text to remove.
fn print(program: &Program<'_>, guard: Option<&str>) -> (String, Vec<u32>, Vec<LineBreak>) {
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
    let mut breaks: Vec<LineBreak> = Vec::new();
    if let Some(map) = printed.map {
        let (mut on, mut from) = (u32::MAX, 0);
        for token in map.get_tokens() {
            let (line, source) = (token.get_dst_line(), token.get_src_line() + 1);
            // The first token of a line determines its source line.
            if let Some(first @ 0) = lines.get_mut(line as usize) {
                *first = source;
                (on, from) = (line, source);
            } else if on == line && from != source {
                from = source;
                breaks.push(LineBreak { line: line + 1, column: token.get_dst_col() + 1, source });
            }
        }
    }
    (js, lines, breaks)
}
