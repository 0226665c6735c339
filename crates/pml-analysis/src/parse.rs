//! Parses source text to a syntax tree that can run.
//!
//! A program is the body of an async function in strict mode, written in TypeScript. What is legal in a module but not
//! in such a body is refused here, with a reason. Types are never an error. The parser recurses: [`nesting`] bounds its
//! work beforehand, and it must run on [`on_large_stack`].

use std::cell::Cell;
use std::ops::Range;
use std::panic::AssertUnwindSafe;

use corosensei::stack::DefaultStack;
use oxc_allocator::Allocator;
use oxc_ast::AstKind;
use oxc_ast::ast::{
    Declaration, ExportSpecifier, ImportDeclaration, ImportDeclarationSpecifier, ImportOrExportKind, Program,
    Statement,
};
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::{Reference, Scoping, Semantic, SemanticBuilder, SemanticBuilderReturn, Stats, SymbolId};
use oxc_span::{SourceType, Span};

use crate::error::Error;
use crate::lines::SourceLines;
use crate::nesting::{self, NestingRefusal};
use crate::{refuse, wrong};

/// Maximum size of a source, in bytes.
pub(crate) const MAX_SOURCE_BYTES: usize = 256 * 1024;
/// Maximum depth of the tree in nodes, and of nested brackets.
pub(crate) const MAX_DEPTH: usize = 500;
/// Size of the parser's stack. Unclosed brackets cost the parser up to 1.8 KB of stack each, so the longest source
/// would need 450 MiB without the limit of [`nesting`]; with it less than 100 MiB is needed. Only pages that are
/// touched become memory.
const STACK_BYTES: usize = 512 * 1024 * 1024;
/// Maximum size of a source whose stack and tree memory are reused.
const SMALL_SOURCE_BYTES: usize = 8 * 1024;

/// Parses the text of `lines`, counts what sizes the scopes, and checks everything that needs no scopes. The tree has
/// no module declarations, hashbang, decorators or `using`, and is at most [`MAX_DEPTH`] deep.
///
/// # Errors
/// The source is too large, too deep, not TypeScript, or not the body of an async function.
pub(crate) fn parse_program<'a>(
    allocator: &'a Allocator,
    lines: &SourceLines<'a>,
) -> Result<(Program<'a>, Stats), Error> {
    let source = lines.source();
    if source.len() > MAX_SOURCE_BYTES {
        return Err(Error::TooLarge { size_bytes: source.len(), limit: MAX_SOURCE_BYTES });
    }
    if let Some(error) = wrong::fenced_source_error(lines) {
        return Err(error);
    }
    if let Some(at) = memchr::memchr(0, source.as_bytes()) {
        let span = Span::new(at as u32, at as u32 + 1);
        return Err(refuse::unsupported_error(
            lines,
            span,
            "the text has a NUL character",
            Some("write `\\0` where a text must contain one"),
        ));
    }
    nesting::check_nesting(source, MAX_DEPTH).map_err(|refusal| refused(lines, refusal))?;
    let parsed =
        Parser::new(allocator, source, SourceType::ts().with_module(true)).with_options(options()).parse();
    let first = wrong::first_complaint(
        parsed.diagnostics.iter().map(|found| (&*found.message, &*found.labels, found.help.as_deref())),
    );
    if let Some(found) = first {
        return Err(wrong::syntax_error(lines, &found));
    }
    let mut program = parsed.program;
    let stats = refuse::check_program(lines, &program, MAX_DEPTH)?;
    without_module(lines, &mut program)?;
    program.hashbang = None;
    Ok((program, stats))
}

fn options() -> ParseOptions {
    ParseOptions {
        parse_regular_expression: true,
        allow_return_outside_function: true,
        preserve_parens: false,
        ..ParseOptions::default()
    }
}

/// Builds the scopes of `program`, and checks what needs them. Duplicate declarations and assignments to constants do
/// not hide the meaning of a program: they are returned with the scopes, in source order.
///
/// # Errors
/// The meaning is unclear, for example a jump to a missing label.
pub(crate) fn resolve_scopes<'a>(
    lines: &SourceLines<'_>,
    program: &'a Program<'a>,
    stats: Stats,
) -> Result<(Semantic<'a>, Vec<Error>), Error> {
    let mut built = build_scopes(program, stats, NodeRetention::Forgotten);
    if is_suspect(built.semantic.scoping()) {
        built = build_scopes(program, stats, NodeRetention::Kept);
    }
    let (twice, others): (Vec<_>, Vec<_>) = built
        .diagnostics
        .iter()
        .map(|found| (&*found.message, &*found.labels, found.help.as_deref()))
        .partition(|(message, _, _)| message.contains("has already been declared"));
    if let Some(found) = wrong::first_complaint(others.into_iter()) {
        return Err(wrong::syntax_error(lines, &found));
    }
    let mut beside: Vec<Error> = twice
        .into_iter()
        .filter_map(|found| wrong::first_complaint(std::iter::once(found)))
        .map(|found| wrong::syntax_error(lines, &found))
        .collect();
    beside.extend(reassigned(&built.semantic).map(|(name, at)| wrong::reassignment_error(lines, name, at)));
    beside.extend(
        function_twice(&built.semantic)
            .map(|(name, [first, second])| wrong::redeclaration_error(lines, name, first, second)),
    );
    beside.sort_by_key(|error| error.position().map(|at| at.start));
    Ok((built.semantic, beside))
}

/// Whether the syntax nodes stay accessible after the scopes are built.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NodeRetention {
    Kept,
    Forgotten,
}

fn build_scopes<'a>(
    program: &'a Program<'a>,
    stats: Stats,
    nodes: NodeRetention,
) -> SemanticBuilderReturn<'a> {
    SemanticBuilder::new()
        .with_stats(stats)
        .with_check_syntax_error(true)
        .with_build_nodes(nodes == NodeRetention::Kept)
        .with_enum_eval(true)
        .build(program)
}

/// Whether the position of a name will be needed, which takes the nodes. Keeping them for every program would cost more
/// than building the scopes of a wrong one again.
fn is_suspect(scoping: &Scoping) -> bool {
    twice_in_block(scoping).next().is_some()
        || classes_twice(scoping).next().is_some()
        || writes_to_constants(scoping).next().is_some()
}

/// The first function that a block declares twice, or that is a class as well. TypeScript leaves this check to the
/// compiler, because several signatures of one function, and those of a class declared elsewhere, are allowed.
fn function_twice<'s>(semantic: &'s Semantic<'_>) -> Option<(&'s str, [Span; 2])> {
    let scoping = semantic.scoping();
    let twice = |symbol| {
        let bodies: Vec<Span> = scoping
            .symbol_redeclarations(symbol)
            .iter()
            .filter_map(|one| match semantic.nodes().kind(one.declaration) {
                AstKind::Function(function) if function.body.is_some() => {
                    function.id.as_ref().map(|id| id.span)
                }
                AstKind::Class(class) if !class.declare => class.id.as_ref().map(|id| id.span),
                _ => None,
            })
            .collect();
        Some((scoping.symbol_name(symbol), [*bodies.first()?, *bodies.get(1)?]))
    };
    let all = twice_in_block(scoping).chain(classes_twice(scoping));
    all.filter_map(twice).min_by_key(|(_, [_, second])| second.start)
}

/// Symbols that a block declares more than once.
fn twice_in_block(scoping: &Scoping) -> impl Iterator<Item = SymbolId> {
    scoping
        .symbol_ids()
        .filter(|symbol| !scoping.symbol_redeclarations(*symbol).is_empty())
        .filter(|symbol| !scoping.scope_flags(scoping.symbol_scope_id(*symbol)).is_var())
}

/// Symbols declared more than once, of which one declaration is a class.
fn classes_twice(scoping: &Scoping) -> impl Iterator<Item = SymbolId> {
    let twice = scoping.symbol_ids().filter(|symbol| !scoping.symbol_redeclarations(*symbol).is_empty());
    twice.filter(|symbol| scoping.symbol_flags(*symbol).is_class())
}

/// Name and span of the first assignment to a constant. JavaScript would notice it only at run time.
fn reassigned<'s>(semantic: &'s Semantic<'_>) -> Option<(&'s str, Span)> {
    let scoping = semantic.scoping();
    writes_to_constants(scoping)
        .map(|(symbol, write)| (scoping.symbol_name(symbol), semantic.reference_span(write)))
        .min_by_key(|(_, span)| span.start)
}

fn writes_to_constants(scoping: &Scoping) -> impl Iterator<Item = (SymbolId, &Reference)> {
    scoping.symbol_ids().filter(|symbol| scoping.symbol_flags(*symbol).is_const_variable()).flat_map(
        |symbol| {
            let writes = scoping.get_resolved_references(symbol).filter(|reference| reference.is_write());
            writes.map(move |write| (symbol, write))
        },
    )
}

fn refused(lines: &SourceLines<'_>, refusal: NestingRefusal) -> Error {
    let (range, message, hint) = match refusal {
        NestingRefusal::Deep(range) => return refuse::too_deep_error(lines, span(&range), MAX_DEPTH),
        NestingRefusal::Decorator(range) => {
            (range, "decorators are not supported", "call the function on the class or method yourself")
        }
        NestingRefusal::Ambiguous(range) => (
            range,
            "the nested `(` and `<` before this place can be read in too many ways",
            "name the inner parts with `const`",
        ),
        NestingRefusal::Slash(range) => (
            range,
            "this `/` can be read as a division or as the beginning of a regular expression",
            "write `;` before a regular expression, or give it a name with `const`",
        ),
    };
    refuse::unsupported_error(lines, span(&range), message, Some(hint))
}

fn span(range: &Range<usize>) -> Span {
    Span::new(range.start as u32, range.end as u32)
}

/// Removes imports and exports of types; refuses all others.
fn without_module(lines: &SourceLines<'_>, program: &mut Program<'_>) -> Result<(), Error> {
    match program.body.iter().find(|statement| is_module(statement) && !is_type_only(statement)) {
        Some(statement) => Err(refuse::module_error(lines, statement)),
        None => {
            program.body.retain(|statement| !is_module(statement));
            Ok(())
        }
    }
}

fn is_module(statement: &Statement<'_>) -> bool {
    statement.is_module_declaration() || matches!(statement, Statement::TSImportEqualsDeclaration(_))
}

fn is_type_only(statement: &Statement<'_>) -> bool {
    match statement {
        Statement::ImportDeclaration(import) => imports_types(import),
        Statement::TSImportEqualsDeclaration(import) => import.import_kind == ImportOrExportKind::Type,
        Statement::ExportDeclaration(export) => declares_type(&export.declaration),
        Statement::ExportAllDeclaration(export) => export.export_kind == ImportOrExportKind::Type,
        Statement::ExportNamedDeclaration(export) => {
            export.export_kind == ImportOrExportKind::Type || export.specifiers.iter().all(exports_type)
        }
        Statement::ExportFromDeclaration(export) => {
            export.export_kind == ImportOrExportKind::Type
                || !export.specifiers.is_empty() && export.specifiers.iter().all(exports_type)
        }
        _ => false,
    }
}

fn imports_types(import: &ImportDeclaration<'_>) -> bool {
    let is_type = |specifier: &ImportDeclarationSpecifier<'_>| match specifier {
        ImportDeclarationSpecifier::ImportSpecifier(one) => one.import_kind == ImportOrExportKind::Type,
        _ => false,
    };
    let all = import.specifiers.as_ref().is_some_and(|these| !these.is_empty() && these.iter().all(is_type));
    all || import.import_kind == ImportOrExportKind::Type
}

fn exports_type(specifier: &ExportSpecifier<'_>) -> bool {
    specifier.export_kind == ImportOrExportKind::Type
}

fn declares_type(declaration: &Declaration<'_>) -> bool {
    match declaration {
        Declaration::TSTypeAliasDeclaration(_) | Declaration::TSInterfaceDeclaration(_) => true,
        other => other.declare(),
    }
}

/// Stack and tree memory that the next program can reuse.
struct ParseWorkspace {
    stack: DefaultStack,
    allocator: Allocator,
}

thread_local! {
    /// Workspace of the last small program: mapping a stack, touching its first pages and allocating a tree takes a
    /// tenth of the time of an analysis.
    static SPARE: Cell<Option<ParseWorkspace>> = const { Cell::new(None) };
}

/// Runs `work` on `source` on a separate stack, large enough for the deepest program, with an allocator for the tree. A
/// panic there becomes an error here. It is a stack and not a thread, because another thread often means another core
/// with cold caches, which took longer than the work.
///
/// # Errors
/// `work` panicked, or there is no memory for a stack.
pub(crate) fn on_large_stack<R>(source: &str, work: impl FnOnce(&Allocator) -> R) -> Result<R, Error> {
    let mut workspace = match SPARE.take() {
        Some(workspace) => workspace,
        None => ParseWorkspace {
            stack: DefaultStack::new(STACK_BYTES)
                .map_err(|error| Error::Crashed { reason: error.to_string() })?,
            allocator: Allocator::default(),
        },
    };
    let ParseWorkspace { stack, allocator } = &mut workspace;
    let result =
        std::panic::catch_unwind(AssertUnwindSafe(|| corosensei::on_stack(stack, || work(allocator))));
    // A stack keeps the memory that was touched, and long programs can be deep.
    if source.len() <= SMALL_SOURCE_BYTES {
        workspace.allocator.reset();
        SPARE.set(Some(workspace));
    }
    result.map_err(|panic| Error::Crashed { reason: reason(&*panic) })
}

fn reason(panic: &(dyn std::any::Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.map_or_else(|| "internal error".to_owned(), |text| format!("internal error: {text}"))
}

#[cfg(test)]
mod tests;
