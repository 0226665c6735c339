//! Programs run in the real engine with and without probes.

mod behaviour;
mod identity;
mod reports;

use oxc_allocator::Allocator;
use oxc_ast::ast::*;
use oxc_ast_visit::{VisitJs, walk_js};
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::SemanticBuilder;
use oxc_span::GetSpan;
use oxc_syntax::scope::ScopeFlags;

use super::{EmitError, EmittedProgram, emit_program};
use crate::marks::{FollowedFunction, ProbeMarks, ProbePlace};

const HOST: &str = include_str!("tests/host.js");
const WORLD: &str = include_str!("tests/world.js");

/// Emits `source` with the marks that `mark` makes for its tree.
fn emitted(source: &str, mark: impl FnOnce(&Program<'_>) -> ProbeMarks) -> Result<EmittedProgram, EmitError> {
    let allocator = Allocator::default();
    let source = allocator.alloc_str(source);
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let parsed =
        Parser::new(&allocator, source, SourceType::ts().with_module(true)).with_options(options).parse();
    assert!(parsed.diagnostics.is_empty(), "{source}\n{:?}", parsed.diagnostics);
    let mut program = parsed.program;
    let marks = mark(&program);
    let scoping = SemanticBuilder::new().with_enum_eval(true).build(&program).semantic.into_scoping();
    emit_program(&allocator, source, &mut program, scoping, &marks)
}

fn plain(source: &str) -> EmittedProgram {
    emitted(source, |_| ProbeMarks::default()).expect("the program can be emitted")
}

/// Log of a program in the engine, line by line, and the reports of its probes.
struct Ran {
    did: String,
    reports: Vec<String>,
}

fn run(emitted: &EmittedProgram) -> Ran {
    let script = format!(
        "({})(async function (args, log, mcp, {}) {{\"use strict\";\n{}}})",
        WORLD.replace("HOST", HOST.trim_end()),
        emitted.probe,
        emitted.js
    );
    let runtime = rquickjs::Runtime::new().expect("a runtime");
    let context = rquickjs::Context::full(&runtime).expect("a context");
    context.with(|ctx| {
        if ctx.eval::<(), _>(script).is_err() {
            panic!("the engine refused it: {:?}\n{}", ctx.catch(), emitted.js);
        }
        while ctx.execute_pending_job() {}
        let outcome: Option<String> = ctx.eval("outcome").expect("a text");
        let outcome = outcome.unwrap_or_else(|| panic!("it never ended:\n{}", emitted.js));
        let (did, reports) = outcome.split_once('\0').expect("two parts");
        Ran { did: did.to_owned(), reports: reports.lines().map(str::to_owned).collect() }
    })
}

/// Marks every place for which `wanted` returns true, with points from 1 in the order of the tree.
fn mark_all(program: &Program<'_>, wanted: impl FnMut(ProbePlace) -> bool) -> ProbeMarks {
    let mut marker = Marker { wanted, marks: ProbeMarks::default(), next: 1 };
    marker.visit_program(program);
    marker.marks
}

struct Marker<W> {
    wanted: W,
    marks: ProbeMarks,
    next: u32,
}

impl<W: FnMut(ProbePlace) -> bool> Marker<W> {
    fn mark(&mut self, place: ProbePlace, span: Span) {
        if (self.wanted)(place) {
            self.marks.points.insert((place, span), self.next);
        }
        self.next += 1;
    }

    fn function(&mut self, span: Span) {
        self.mark(ProbePlace::Turn, span);
        // A function is followed wherever calls enter.
        if (self.wanted)(ProbePlace::Enter) {
            self.marks.followed.insert(span, FollowedFunction { function: self.next });
        }
    }
}

impl<'a, W: FnMut(ProbePlace) -> bool> VisitJs<'a> for Marker<W> {
    fn visit_expression(&mut self, it: &Expression<'a>) {
        if matches!(it, Expression::StringLiteral(_) | Expression::NumericLiteral(_)) {
            self.marks.lifted.insert(it.span(), self.next);
        }
        walk_js::walk_expression(self, it);
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        for place in [ProbePlace::Call, ProbePlace::Enter, ProbePlace::Operation, ProbePlace::Fork] {
            self.mark(place, it.span);
        }
        if it.optional {
            self.mark(ProbePlace::Optional, it.span);
        }
        walk_js::walk_call_expression(self, it);
    }

    fn visit_new_expression(&mut self, it: &NewExpression<'a>) {
        self.mark(ProbePlace::Enter, it.span);
        walk_js::walk_new_expression(self, it);
    }

    fn visit_member_expression(&mut self, it: &MemberExpression<'a>) {
        if it.optional() {
            self.mark(ProbePlace::Optional, it.span());
        }
        walk_js::walk_member_expression(self, it);
    }

    fn visit_if_statement(&mut self, it: &IfStatement<'a>) {
        self.mark(ProbePlace::Test, it.span);
        walk_js::walk_if_statement(self, it);
    }

    fn visit_conditional_expression(&mut self, it: &ConditionalExpression<'a>) {
        self.mark(ProbePlace::Test, it.span);
        walk_js::walk_conditional_expression(self, it);
    }

    fn visit_logical_expression(&mut self, it: &LogicalExpression<'a>) {
        self.mark(if it.operator.is_coalesce() { ProbePlace::Nullish } else { ProbePlace::Test }, it.span);
        walk_js::walk_logical_expression(self, it);
    }

    fn visit_switch_statement(&mut self, it: &SwitchStatement<'a>) {
        self.mark(ProbePlace::Switch, it.span);
        walk_js::walk_switch_statement(self, it);
    }

    fn visit_statement(&mut self, it: &Statement<'a>) {
        if it.is_iteration_statement() {
            self.mark(ProbePlace::Loop, it.span());
        }
        walk_js::walk_statement(self, it);
    }

    fn visit_try_statement(&mut self, it: &TryStatement<'a>) {
        self.mark(ProbePlace::Catch, it.span);
        walk_js::walk_try_statement(self, it);
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        self.function(it.span);
        walk_js::walk_function(self, it, flags);
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        self.function(it.span);
        walk_js::walk_arrow_function_expression(self, it);
    }
}
