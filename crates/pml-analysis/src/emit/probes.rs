//! Inserts the probes of [`marks`](crate::marks) into the tree.
//!
//! A probe takes a value and returns it, or stands where a statement may stand. It never awaits, never adds an
//! argument, and never moves an evaluation. State that it needs is in local variables of its activation.

use oxc_allocator::{Allocator, ArenaVec, ReplaceWith, TakeIn};
use oxc_ast::ast::*;
use oxc_ast_visit::{VisitJsMut, walk_js_mut};
use oxc_span::GetSpan;
use oxc_syntax::scope::ScopeFlags;

use super::build::TreeBuilder;
use super::canonical::RemovedParts;
use super::chain;
use crate::marks::{ProbeMarks, ProbePlace};

/// Fills the gaps that the canonical form left and inserts the probes. Returns a text to remove from the printed
/// program, if there is one.
pub(super) fn insert_probes<'a>(
    allocator: &'a Allocator,
    source: &str,
    program: &mut Program<'a>,
    marks: &ProbeMarks,
    kept: RemovedParts<'a>,
    probe: &str,
) -> Option<String> {
    let build = TreeBuilder::new(allocator, probe);
    let mut probes =
        ProbeInserter { build, source, marks, kept, context: None, enclosed: false, guard: None };
    probes.visit_program(program);
    probes.guard
}

struct ProbeInserter<'a, 'm> {
    build: TreeBuilder<'a>,
    source: &'m str,
    marks: &'m ProbeMarks,
    kept: RemovedParts<'a>,
    /// Variable that holds the context, inside a followed function.
    context: Option<Str<'a>>,
    /// Whether the next link to visit belongs to a chain with a tested link further out.
    enclosed: bool,
    guard: Option<String>,
}

/// Point that a tested `?.` reports; `None` when only the outer chain needs the result.
type TestedPoint = Option<u32>;

impl<'a> ProbeInserter<'a, '_> {
    fn point(&self, place: ProbePlace, span: Span) -> Option<u32> {
        self.marks.points.get(&(place, span)).copied()
    }

    fn context(&self) -> Option<Expression<'a>> {
        self.context.map(|name| self.build.name(name))
    }

    /// `P.method(point, ctx)`
    fn report(&self, method: &'static str, point: u32) -> Expression<'a> {
        self.build.probe(method, [Some(self.build.number(point)), self.context()])
    }

    /// Wraps `value` as `P.method(point, value, ctx)` if there is a mark.
    fn around(&self, method: &'static str, place: ProbePlace, span: Span, value: &mut Expression<'a>) {
        if let Some(point) = self.point(place, span) {
            let point = Some(self.build.number(point));
            value.replace_with(|value| self.build.probe(method, [point, Some(value), self.context()]));
        }
    }

    /// Wraps a call of an operation as `P.did(point, f(…, P.does(point, x, ctx)), ctx)`, where `x` is what is evaluated
    /// last before the operation begins: its last argument, else its receiver, else its name.
    fn operation(&self, it: &mut Expression<'a>) {
        let span = it.span();
        if let Expression::CallExpression(call) = it {
            let last = match call.arguments.last_mut() {
                Some(Argument::SpreadElement(last)) => Some(&mut last.argument),
                Some(last) => last.as_expression_mut(),
                None => match &mut call.callee {
                    Expression::StaticMemberExpression(it) => Some(&mut it.object),
                    Expression::ComputedMemberExpression(it) => Some(&mut it.object),
                    Expression::PrivateFieldExpression(it) => Some(&mut it.object),
                    callee @ Expression::Identifier(_) => Some(callee),
                    // `(a?.f)()` calls with `this`, which a wrapper would lose.
                    _ => None,
                },
            };
            if let Some(last) = last.filter(|last| !matches!(last, Expression::Super(_))) {
                self.around("does", ProbePlace::Operation, span, last);
            }
        }
        self.around("did", ProbePlace::Operation, span, it);
    }

    /// Wraps an optional chain that ends with an operation as `P.got(P.may(point, ctx), chain)`: the result belongs to
    /// the operation only if it happened.
    fn operation_of_chain(&self, it: &mut Expression<'a>, last: Span) {
        if let Some(point) = self.point(ProbePlace::Operation, last) {
            let may = self.report("may", point);
            it.replace_with(|chain| self.build.probe("got", [Some(may), Some(chain)]));
        }
    }

    /// Statement to insert before a loop or `switch` and its labels.
    fn before(&self, statement: &Statement<'a>) -> Option<Statement<'a>> {
        let mut inner = statement;
        while let Statement::LabeledStatement(labelled) = inner {
            inner = &labelled.body;
        }
        match inner {
            Statement::SwitchStatement(it) => self
                .point(ProbePlace::Switch, it.span)
                .map(|point| self.build.variable(self.build.own_name('s', point), self.build.yes())),
            _ if inner.is_iteration_statement() => self
                .point(ProbePlace::Loop, inner.span())
                .map(|point| self.build.statement(self.report("loop", point))),
            _ => None,
        }
    }

    /// Inserts `P.turn(point, ctx);` first in the body of a loop.
    fn turn(&self, span: Span, body: &mut Statement<'a>) {
        let Some(point) = self.point(ProbePlace::Loop, span) else { return };
        let turn = self.build.statement(self.report("turn", point));
        match body {
            Statement::BlockStatement(block) => block.body.insert(0, turn),
            Statement::EmptyStatement(_) => *body = self.build.block([turn]),
            _ => body.replace_with(|body| self.build.block([turn, body])),
        }
    }

    /// `P.take(function, ctx)` for a followed function, and the variable for its result.
    fn take(&self, span: Span) -> Option<(Str<'a>, Expression<'a>)> {
        let function = self.marks.followed.get(&span)?.function;
        Some((self.build.own_name('c', function), self.report("take", function)))
    }

    /// `P.turn(point, ctx);` of a callback or recursive function.
    fn turn_of_function(&self, span: Span) -> Option<Statement<'a>> {
        self.point(ProbePlace::Turn, span).map(|point| self.build.statement(self.report("turn", point)))
    }

    /// Whether the `?.` of a link is tested, and the point it reports.
    fn test(&self, span: Span, enclosed: bool, is_testable: impl FnOnce() -> bool) -> Option<TestedPoint> {
        let point = self.point(ProbePlace::Optional, span);
        (enclosed || (point.is_some() && is_testable())).then_some(point)
    }

    /// Visits the operand of a link.
    fn visit_spine(&mut self, spine: &mut Expression<'a>, enclosed: bool) {
        self.enclosed =
            enclosed && (spine.is_member_expression() || matches!(spine, Expression::CallExpression(_)));
        self.visit_expression(spine);
    }

    /// Visits the object of a member access, and tests it if needed.
    fn visit_object(&mut self, span: Span, optional: bool, object: &mut Expression<'a>) {
        let enclosed = std::mem::take(&mut self.enclosed);
        let test = if optional { self.test(span, enclosed, || chain::is_testable(object)) } else { None };
        self.visit_spine(object, enclosed || test.is_some());
        if let Some(report) = test {
            object.replace_with(|object| {
                let [point, context, more] = self.test_arguments(report, enclosed);
                self.build.probe("has", [point, Some(object), context, more])
            });
        }
    }

    /// Point, context, and `true` when a link further out is tested.
    fn test_arguments(&self, report: TestedPoint, enclosed: bool) -> [Option<Expression<'a>>; 3] {
        let point = report.map_or_else(|| self.build.null(), |point| self.build.number(point));
        if enclosed {
            let context = self.context().unwrap_or_else(|| self.build.number(0));
            [Some(point), Some(context), Some(self.build.yes())]
        } else {
            [Some(point), self.context(), None]
        }
    }

    /// Tests the callee of an optional call, preserving the `this` of a member.
    fn test_callee(&self, callee: &mut Expression<'a>, report: TestedPoint, enclosed: bool) {
        let [point, context, more] = self.test_arguments(report, enclosed);
        callee.replace_with(|callee| match callee {
            Expression::StaticMemberExpression(member) => {
                let member = member.unbox();
                let key = self.build.string(member.property.name.into());
                self.build.probe("bound", [point, Some(member.object), Some(key), context, more])
            }
            Expression::ComputedMemberExpression(member) => {
                let member = member.unbox();
                self.build
                    .probe("bound", [point, Some(member.object), Some(member.expression), context, more])
            }
            callee => self.build.probe("has", [point, Some(callee), context, more]),
        });
    }

    /// Appends `...P.method(point, ctx)` to the arguments if there is a mark.
    fn last_argument(
        &self,
        method: &'static str,
        place: ProbePlace,
        span: Span,
        arguments: &mut ArenaVec<'a, Argument<'a>>,
    ) {
        if let Some(point) = self.point(place, span) {
            arguments.push(self.build.spread(self.report(method, point)));
        }
    }

    /// Reports the requested key of a function table if there is a mark. Only strings are compared: any other value
    /// must be converted to a key only once.
    fn choose(&self, callee: &mut Expression<'a>) {
        if let Expression::ComputedMemberExpression(it) = callee
            && let Some(table) = self.marks.tables.get(&it.span)
            && let Some(point) = self.point(ProbePlace::Switch, it.span)
        {
            let name = self.build.own_name('k', point);
            let report = |index: usize| {
                let numbers =
                    [Some(self.build.number(point)), Some(self.build.number(index as u32)), self.context()];
                self.build.probe("case", numbers)
            };
            let none = match table.optional {
                true => self.build.if_text(name, report(table.keys.len()), self.build.null()),
                false => self.build.null(),
            };
            let reports = table.keys.iter().enumerate().rfold(none, |otherwise, (index, key)| {
                self.build.if_equal(name, key, report(index), otherwise)
            });
            it.expression.replace_with(|key| self.build.tapped(key, name, reports));
        }
    }

    /// Replaces the name `g` by `(g, (...given) => g(...given, ...P.enter(point, ctx)))` if there is a mark. The name
    /// is still evaluated in place, which may be before it has a value.
    fn hand_on(&self, argument: &mut Argument<'a>) {
        if let Argument::Identifier(it) = argument
            && let Some(point) = self.point(ProbePlace::Enter, it.span)
            && let Some(function) = argument.as_expression_mut()
        {
            let given = self.build.own_name('g', point);
            let report = self.report("enter", point);
            function.replace_with(|function| match &function {
                Expression::Identifier(it) => {
                    let name = it.name.into();
                    self.build.handed(function, name, given, report)
                }
                _ => function,
            });
        }
    }

    /// Merges several labels of one statement into one: the engine allows `continue` with the innermost only.
    fn keep_innermost_label(&mut self, it: &mut LabeledStatement<'a>) {
        let mut innermost = &*it;
        while let Statement::LabeledStatement(inner) = &innermost.body {
            innermost = inner;
        }
        let name = innermost.label.name;
        while let Statement::LabeledStatement(inner) = &mut it.body {
            self.kept.rename_label(it.label.name, name);
            std::mem::swap(&mut it.label.name, &mut inner.label.name);
            let body = inner.body.take_in(&self.build);
            it.body = body;
        }
    }

    /// A text that does not occur in the source.
    fn guard(&mut self) -> String {
        let mut guard = String::from('\u{10FFFD}');
        while self.source.contains(&guard) {
            guard.push('\u{10FFFD}');
        }
        self.guard.get_or_insert(guard).clone()
    }
}

impl<'a> VisitJsMut<'a> for ProbeInserter<'a, '_> {
    fn visit_statements(&mut self, it: &mut ArenaVec<'a, Statement<'a>>) {
        let mut statements = ArenaVec::with_capacity_in(it.len(), &self.build);
        for mut statement in it.take_in(&self.build) {
            statements.extend(self.before(&statement));
            walk_js_mut::walk_statement(self, &mut statement);
            statements.push(statement);
        }
        *it = statements;
    }

    /// A statement outside a statement list.
    fn visit_statement(&mut self, it: &mut Statement<'a>) {
        let before = self.before(it);
        walk_js_mut::walk_statement(self, it);
        if let Some(before) = before {
            it.replace_with(|it| self.build.block([before, it]));
        }
    }

    fn visit_labeled_statement(&mut self, it: &mut LabeledStatement<'a>) {
        self.keep_innermost_label(it);
        self.kept.restore_label(&mut it.label);
        // The statement before a loop was inserted before its labels.
        walk_js_mut::walk_statement(self, &mut it.body);
    }

    fn visit_label_identifier(&mut self, it: &mut LabelIdentifier<'a>) {
        self.kept.restore_label(it);
    }

    fn visit_for_statement(&mut self, it: &mut ForStatement<'a>) {
        walk_js_mut::walk_for_statement(self, it);
        self.turn(it.span, &mut it.body);
    }

    fn visit_for_in_statement(&mut self, it: &mut ForInStatement<'a>) {
        walk_js_mut::walk_for_in_statement(self, it);
        self.turn(it.span, &mut it.body);
    }

    fn visit_for_of_statement(&mut self, it: &mut ForOfStatement<'a>) {
        walk_js_mut::walk_for_of_statement(self, it);
        self.turn(it.span, &mut it.body);
    }

    fn visit_while_statement(&mut self, it: &mut WhileStatement<'a>) {
        walk_js_mut::walk_while_statement(self, it);
        self.turn(it.span, &mut it.body);
    }

    fn visit_do_while_statement(&mut self, it: &mut DoWhileStatement<'a>) {
        walk_js_mut::walk_do_while_statement(self, it);
        self.turn(it.span, &mut it.body);
    }

    fn visit_if_statement(&mut self, it: &mut IfStatement<'a>) {
        walk_js_mut::walk_if_statement(self, it);
        self.around("is", ProbePlace::Test, it.span, &mut it.test);
    }

    fn visit_conditional_expression(&mut self, it: &mut ConditionalExpression<'a>) {
        walk_js_mut::walk_conditional_expression(self, it);
        self.around("is", ProbePlace::Test, it.span, &mut it.test);
    }

    fn visit_logical_expression(&mut self, it: &mut LogicalExpression<'a>) {
        walk_js_mut::walk_logical_expression(self, it);
        if it.operator.is_coalesce() {
            self.around("has", ProbePlace::Nullish, it.span, &mut it.left);
        } else {
            self.around("is", ProbePlace::Test, it.span, &mut it.left);
        }
    }

    fn visit_assignment_expression(&mut self, it: &mut AssignmentExpression<'a>) {
        walk_js_mut::walk_assignment_expression(self, it);
        let Some(point) = self.point(ProbePlace::Assign, it.span) else { return };
        // A function that takes its name from the assignment would lose it.
        if it.right.is_function() || matches!(it.right, Expression::ClassExpression(_)) {
            return;
        }
        let (method, value) = match it.operator {
            AssignmentOperator::LogicalAnd => ("is", self.build.yes()),
            AssignmentOperator::LogicalOr => ("is", self.build.no()),
            AssignmentOperator::LogicalNullish => ("has", self.build.null()),
            _ => return,
        };
        let report = self.build.probe(method, [Some(self.build.number(point)), Some(value), self.context()]);
        it.right.replace_with(|right| self.build.sequence(report, right));
    }

    fn visit_switch_statement(&mut self, it: &mut SwitchStatement<'a>) {
        walk_js_mut::walk_switch_statement(self, it);
        let Some(point) = self.point(ProbePlace::Switch, it.span) else { return };
        let unmatched = self.build.own_name('s', point);
        let report = |index: usize| {
            let numbers =
                [Some(self.build.number(point)), Some(self.build.number(index as u32)), self.context()];
            self.build.and_assign(unmatched, self.build.probe("case", numbers))
        };
        for (index, case) in it.cases.iter_mut().enumerate() {
            case.consequent.insert(0, report(index));
        }
        if it.cases.iter().all(|case| case.test.is_some()) {
            let none = report(it.cases.len());
            it.cases.push(self.build.default_case(none));
        }
    }

    fn visit_try_statement(&mut self, it: &mut TryStatement<'a>) {
        walk_js_mut::walk_try_statement(self, it);
        if let Some(handler) = &mut it.handler
            && let Some(point) = self.point(ProbePlace::Catch, it.span)
        {
            handler.body.body.insert(0, self.build.statement(self.report("caught", point)));
        }
    }

    fn visit_function(&mut self, it: &mut Function<'a>, _: ScopeFlags) {
        // Parameters come before the context is taken: their defaults belong to the outer context.
        self.visit_formal_parameters(&mut it.params);
        let Some(body) = &mut it.body else { return };
        let outer = self.context;
        let mut first = Vec::new();
        if let Some((name, take)) = self.take(it.span) {
            self.context = Some(name);
            first.push(self.build.constant(name, take));
        }
        first.extend(self.turn_of_function(it.span));
        self.visit_statements(&mut body.statements);
        body.statements.splice(0..0, first);
        self.context = outer;
    }

    fn visit_arrow_function_expression(&mut self, it: &mut ArrowFunctionExpression<'a>) {
        self.visit_formal_parameters(&mut it.params);
        let outer = self.context;
        let mut first = Vec::new();
        if let Some((name, take)) = self.take(it.span) {
            self.context = Some(name);
            first.push(self.build.constant(name, take));
        }
        first.extend(self.turn_of_function(it.span));
        self.visit_arrow_function_body(&mut it.body);
        self.context = outer;
        if !first.is_empty() {
            it.body.replace_with(|body| self.build.arrow_block(body));
            if let ArrowFunctionBody::FunctionBody(body) = &mut it.body {
                body.statements.splice(0..0, first);
            }
        }
    }

    fn visit_expression(&mut self, it: &mut Expression<'a>) {
        self.kept.restore_literal(it);
        let always_happens = matches!(it, Expression::CallExpression(_)) && !chain::has_optional(it);
        let end_of_chain = chain::last_call(it);
        walk_js_mut::walk_expression(self, it);
        if always_happens {
            self.operation(it);
        } else if let Some(last) = end_of_chain {
            self.operation_of_chain(it, last);
        }
    }

    fn visit_static_member_expression(&mut self, it: &mut StaticMemberExpression<'a>) {
        // The property directly follows a name on the same line: the position of the name is enough for the line
        // mapping.
        if matches!(it.object, Expression::Identifier(_) | Expression::StaticMemberExpression(_))
            && it.object.span().end + 1 == it.property.span.start
        {
            it.property.span = Span::default();
        }
        self.visit_object(it.span, it.optional, &mut it.object);
    }

    fn visit_private_field_expression(&mut self, it: &mut PrivateFieldExpression<'a>) {
        self.visit_object(it.span, it.optional, &mut it.object);
    }

    fn visit_computed_member_expression(&mut self, it: &mut ComputedMemberExpression<'a>) {
        self.visit_object(it.span, it.optional, &mut it.object);
        self.visit_expression(&mut it.expression);
    }

    fn visit_call_expression(&mut self, it: &mut CallExpression<'a>) {
        let enclosed = std::mem::take(&mut self.enclosed);
        let test =
            if it.optional { self.test(it.span, enclosed, || chain::is_testable_call(it)) } else { None };
        let may_not_happen = it.optional || chain::has_optional(&it.callee);
        self.visit_spine(&mut it.callee, enclosed || test.is_some());
        self.choose(&mut it.callee);
        self.visit_arguments(&mut it.arguments);
        it.arguments.iter_mut().for_each(|argument| self.hand_on(argument));
        if let Some(report) = test {
            self.test_callee(&mut it.callee, report, enclosed);
        }
        if let Some(first) = it.arguments.first_mut().and_then(Argument::as_expression_mut) {
            self.around("fork", ProbePlace::Fork, it.span, first);
        }
        if may_not_happen {
            // A call that ends with its chain cannot be wrapped.
            self.last_argument("doing", ProbePlace::Operation, it.span, &mut it.arguments);
        }
        self.last_argument("at", ProbePlace::Call, it.span, &mut it.arguments);
        self.last_argument("enter", ProbePlace::Enter, it.span, &mut it.arguments);
    }

    fn visit_new_expression(&mut self, it: &mut NewExpression<'a>) {
        walk_js_mut::walk_new_expression(self, it);
        self.last_argument("at", ProbePlace::Call, it.span, &mut it.arguments);
        self.last_argument("enter", ProbePlace::Enter, it.span, &mut it.arguments);
    }

    fn visit_tagged_template_expression(&mut self, it: &mut TaggedTemplateExpression<'a>) {
        walk_js_mut::walk_tagged_template_expression(self, it);
        for quasi in &mut it.quasi.quasis {
            // The printer escapes `</script`, which a tag function could see in the raw text.
            if quasi.value.raw.to_ascii_lowercase().contains("</script") {
                let guarded = format!("<{}/", self.guard());
                quasi.value.raw = self.build.text(&quasi.value.raw.replace("</", &guarded));
            }
        }
    }
}
