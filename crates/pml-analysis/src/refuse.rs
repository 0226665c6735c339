//! Refuses TypeScript that cannot be a program: one pass over the tree that also measures its depth.

use std::cell::Cell;

use oxc_ast::AstKind;
use oxc_ast::ast::{
    ArrowFunctionExpression, Expression, Function, Program, Statement, TSEnumDeclaration,
    TSNamespaceDeclaration, TSType, VariableDeclarationKind,
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::Stats;
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::{ScopeFlags, ScopeId};

use crate::error::Error;
use crate::lines::SourceLines;

const MODULE_HINT: &str = "a program is the body of an async function: write its statements, \
                           call tools as `await mcp.server.tool({…})` and `return` the result";

/// Refuses what is too deep or cannot run. Returns the counts from which scopes are sized.
pub(crate) fn check_program(
    lines: &SourceLines<'_>,
    program: &Program<'_>,
    max_depth: usize,
) -> Result<Stats, Error> {
    let mut walk = RefusalVisitor {
        lines,
        max_depth,
        depth: 0,
        functions: 0,
        blocks: 0,
        in_namespace: false,
        stats: Stats::default(),
        found: None,
    };
    walk.visit_program(program);
    walk.found.map_or(Ok(walk.stats), Err)
}

/// Error of an import or export of more than types.
pub(crate) fn module_error(lines: &SourceLines<'_>, statement: &Statement<'_>) -> Error {
    let import =
        matches!(statement, Statement::ImportDeclaration(_) | Statement::TSImportEqualsDeclaration(_));
    let message =
        if import { "a program cannot `import`: it has no modules" } else { "a program cannot `export`" };
    let hint = if import {
        "everything there is has a name already: `args`, `mcp`, `capabilities`, `pml`, `console` and standard \
         JavaScript; types can come from `import type`"
    } else {
        MODULE_HINT
    };
    unsupported_error(lines, statement.span(), message, Some(hint))
}

/// Error of valid TypeScript that cannot run.
pub(crate) fn unsupported_error(
    lines: &SourceLines<'_>,
    span: Span,
    message: &str,
    hint: Option<&str>,
) -> Error {
    let at = lines.position(span);
    Error::Unsupported {
        message: message.to_owned(),
        at,
        excerpt: lines.excerpt(at),
        hint: hint.map(str::to_owned),
    }
}

/// Error of the first node that is too deep.
pub(crate) fn too_deep_error(lines: &SourceLines<'_>, span: Span, limit: usize) -> Error {
    let at = lines.position(span);
    Error::TooDeep { limit, at, excerpt: lines.excerpt(at) }
}

struct RefusalVisitor<'w, 's> {
    lines: &'w SourceLines<'s>,
    max_depth: usize,
    depth: usize,
    /// Number of enclosing functions with their own `arguments`.
    functions: usize,
    /// Number of enclosing blocks.
    blocks: usize,
    /// Directly in a namespace or an enum, which becomes a function of its own.
    in_namespace: bool,
    stats: Stats,
    found: Option<Error>,
}

impl RefusalVisitor<'_, '_> {
    fn refuse(&mut self, span: Span, message: &str, hint: &str) {
        if self.found.is_none() {
            self.found = Some(unsupported_error(self.lines, span, message, Some(hint)));
        }
    }

    fn look(&mut self, kind: AstKind<'_>) {
        match kind {
            AstKind::ImportMeta(it) => {
                self.refuse(
                    it.span,
                    "`import.meta` does not exist here: a program is not a module",
                    "hand in what it needs through `args`",
                );
            }
            AstKind::AccessorProperty(it) => {
                self.refuse(
                    it.span,
                    "`accessor` fields are not supported",
                    "write a `get` and a `set` method",
                );
            }
            AstKind::VariableDeclaration(it)
                if matches!(
                    it.kind,
                    VariableDeclarationKind::Using | VariableDeclarationKind::AwaitUsing
                ) =>
            {
                self.refuse(
                    it.span,
                    "`using` declarations are not supported",
                    "declare it with `const` and release it in a `finally` block",
                );
            }
            AstKind::ImportExpression(it) if it.phase.is_some() => {
                self.refuse(it.span, "a program cannot `import`: it has no modules", MODULE_HINT);
            }
            AstKind::IdentifierReference(it) if it.name == "arguments" && self.functions == 0 => {
                self.refuse(
                    it.span,
                    "`arguments` means nothing here",
                    "what the program is given is called `args`",
                );
            }
            AstKind::ImportDeclaration(_)
            | AstKind::ExportDeclaration(_)
            | AstKind::ExportNamedDeclaration(_)
            | AstKind::ExportFromDeclaration(_)
            | AstKind::ExportDefaultDeclaration(_)
            | AstKind::ExportAllDeclaration(_)
                if self.blocks > 0 =>
            {
                self.refuse(kind.span(), "`import` and `export` cannot stand in a block", MODULE_HINT);
            }
            AstKind::AwaitExpression(_) | AstKind::YieldExpression(_) if self.in_namespace => {
                self.refuse(
                    kind.span(),
                    "`await` and `yield` cannot stand in an enum or a namespace",
                    "put what is awaited into a `const` before it",
                );
            }
            AstKind::ForOfStatement(it) if it.r#await && self.in_namespace => {
                self.refuse(it.span, "`for await` cannot stand in a namespace", "put the loop after it");
            }
            AstKind::ReturnStatement(it) if self.in_namespace => {
                self.refuse(
                    it.span,
                    "a namespace cannot `return`",
                    "write the `return` after the namespace, or in a function",
                );
            }
            _ => {}
        }
    }

    fn with(&mut self, in_namespace: bool, walk: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.in_namespace, in_namespace);
        walk(self);
        self.in_namespace = before;
    }
}

impl<'a> Visit<'a> for RefusalVisitor<'_, '_> {
    fn enter_node(&mut self, kind: AstKind<'a>) {
        self.depth += 1;
        if self.depth > self.max_depth && self.found.is_none() {
            self.found = Some(too_deep_error(self.lines, kind.span(), self.max_depth));
        }
        self.stats.nodes += 1;
        match kind {
            AstKind::IdentifierReference(_) => self.stats.references += 1,
            AstKind::BindingIdentifier(_) | AstKind::TSEnumMember(_) => self.stats.symbols += 1,
            _ => {}
        }
        self.look(kind);
        self.blocks += usize::from(is_block(kind));
    }

    fn enter_scope(&mut self, _: ScopeFlags, _: &Cell<Option<ScopeId>>) {
        self.stats.scopes += 1;
    }

    fn leave_node(&mut self, kind: AstKind<'a>) {
        self.depth -= 1;
        self.blocks -= usize::from(is_block(kind));
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        self.functions += 1;
        self.with(false, |this| walk::walk_function(this, it, flags));
        self.functions -= 1;
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        self.with(false, |this| walk::walk_arrow_function_expression(this, it));
    }

    // The initialisers of an enum run in a function of its own, too.
    fn visit_ts_enum_declaration(&mut self, it: &TSEnumDeclaration<'a>) {
        self.with(true, |this| walk::walk_ts_enum_declaration(this, it));
    }

    fn visit_ts_namespace_declaration(&mut self, it: &TSNamespaceDeclaration<'a>) {
        self.with(true, |this| walk::walk_ts_namespace_declaration(this, it));
    }

    // Everything deep goes through one of these three methods; after a finding, the pass stops.
    fn visit_expression(&mut self, it: &Expression<'a>) {
        if self.found.is_none() {
            walk::walk_expression(self, it);
        }
    }

    fn visit_statement(&mut self, it: &Statement<'a>) {
        // The parser treats one with type parameters as a declaration.
        if let Statement::FunctionDeclaration(function) = it
            && function.id.is_none()
        {
            self.refuse(
                function.span,
                "a function that is declared needs a name",
                "write `function name(…)`",
            );
        }
        if self.found.is_none() {
            walk::walk_statement(self, it);
        }
    }

    fn visit_ts_type(&mut self, it: &TSType<'a>) {
        if self.found.is_none() {
            walk::walk_ts_type(self, it);
        }
    }
}

fn is_block(kind: AstKind<'_>) -> bool {
    matches!(
        kind,
        AstKind::BlockStatement(_)
            | AstKind::IfStatement(_)
            | AstKind::WhileStatement(_)
            | AstKind::DoWhileStatement(_)
            | AstKind::ForStatement(_)
            | AstKind::ForInStatement(_)
            | AstKind::ForOfStatement(_)
            | AstKind::LabeledStatement(_)
            | AstKind::FunctionBody(_)
            | AstKind::StaticBlock(_)
            | AstKind::SwitchCase(_)
    )
}
