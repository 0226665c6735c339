//! Builds the syntax nodes of probes. The only place that constructs nodes.
//!
//! These nodes have no span, so that no mark and no source line refers to them.

use oxc_allocator::{Allocator, ArenaBox, ArenaVec, GetAllocator};
use oxc_ast::ast::*;
use oxc_ast::builder::AstBuilder;
use oxc_span::SPAN;
use oxc_syntax::operator::AssignmentOperator;

/// Builds nodes that use the probe object.
pub(super) struct TreeBuilder<'a> {
    ast: AstBuilder<'a>,
    allocator: &'a Allocator,
    probe: Str<'a>,
}

impl<'a> TreeBuilder<'a> {
    /// `probe` is the name of the probe object.
    pub(super) fn new(allocator: &'a Allocator, probe: &str) -> TreeBuilder<'a> {
        TreeBuilder { ast: AstBuilder::new(allocator), allocator, probe: Str::from_str_in(probe, &allocator) }
    }

    /// A text allocated with the tree.
    pub(super) fn text(&self, text: &str) -> Str<'a> {
        Str::from_str_in(text, &self.allocator)
    }

    /// A generated name: it begins with the probe's name, which no name of the program does.
    pub(super) fn own_name(&self, kind: char, number: u32) -> Str<'a> {
        let mut name = String::with_capacity(self.probe.len() + 12);
        name.extend([self.probe.as_str(), "_"]);
        name.push(kind);
        name.push_str(digits(number, &mut [0; 10]));
        self.text(&name)
    }

    /// `name`
    pub(super) fn name(&self, name: Str<'a>) -> Expression<'a> {
        self.name_at(SPAN, name)
    }

    /// `name`, with the span of the node it replaces.
    pub(super) fn name_at(&self, span: Span, name: Str<'a>) -> Expression<'a> {
        Expression::new_identifier(span, name, &self.ast)
    }

    /// The name of a member.
    pub(super) fn key(&self, span: Span, name: Str<'a>) -> PropertyKey<'a> {
        PropertyKey::new_static_identifier(span, name, &self.ast)
    }

    /// `7`, as an identifier because the printer treats every number literal as a fraction.
    pub(super) fn number(&self, value: u32) -> Expression<'a> {
        self.name(self.text(digits(value, &mut [0; 10])))
    }

    /// `"text"`
    pub(super) fn string(&self, value: Str<'a>) -> Expression<'a> {
        Expression::new_string_literal(SPAN, value, None, &self.ast)
    }

    /// `true`
    pub(super) fn yes(&self) -> Expression<'a> {
        Expression::new_boolean_literal(SPAN, true, &self.ast)
    }

    /// `false`
    pub(super) fn no(&self) -> Expression<'a> {
        Expression::new_boolean_literal(SPAN, false, &self.ast)
    }

    /// `null`
    pub(super) fn null(&self) -> Expression<'a> {
        Expression::new_null_literal(SPAN, &self.ast)
    }

    /// `probe.method(arguments)`
    pub(super) fn probe<const N: usize>(
        &self,
        method: &'static str,
        arguments: [Option<Expression<'a>>; N],
    ) -> Expression<'a> {
        let arguments = arguments.into_iter().flatten().map(Argument::from);
        let arguments = ArenaVec::from_iter_in(arguments, &self.ast);
        Expression::new_call_expression(SPAN, self.member(method), None, arguments, false, &self.ast)
    }

    fn member(&self, name: &'static str) -> Expression<'a> {
        let name = IdentifierName::new(SPAN, name, &self.ast);
        Expression::new_static_member_expression(SPAN, self.name(self.probe), name, false, &self.ast)
    }

    /// `(first, second)`
    pub(super) fn sequence(&self, first: Expression<'a>, second: Expression<'a>) -> Expression<'a> {
        let both = ArenaVec::from_iter_in([first, second], &self.ast);
        Expression::new_sequence_expression(SPAN, both, &self.ast)
    }

    /// `...expression`
    pub(super) fn spread(&self, expression: Expression<'a>) -> Argument<'a> {
        Argument::new_spread_element(SPAN, expression, &self.ast)
    }

    /// `(function, (...given) => function(...given, ...report))`, where `function` is a name
    pub(super) fn handed(
        &self,
        function: Expression<'a>,
        name: Str<'a>,
        given: Str<'a>,
        report: Expression<'a>,
    ) -> Expression<'a> {
        let arguments = [self.spread(self.name(given)), self.spread(report)];
        let arguments = ArenaVec::from_iter_in(arguments, &self.ast);
        let call = Expression::new_call_expression(SPAN, self.name(name), None, arguments, false, &self.ast);
        let rest = BindingRestElement::new(SPAN, self.binding(given), &self.ast);
        let rest = FormalParameterRest::boxed(SPAN, [], rest, None, &self.ast);
        let kind = FormalParameterKind::ArrowFormalParameters;
        let parameters = FormalParameters::boxed(SPAN, kind, [], Some(rest), &self.ast);
        self.sequence(function, self.arrow(parameters, call))
    }

    /// `((name) => (first, name))(value)`
    pub(super) fn tapped(
        &self,
        value: Expression<'a>,
        name: Str<'a>,
        first: Expression<'a>,
    ) -> Expression<'a> {
        let (binding, ast) = (self.binding(name), &self.ast);
        let parameter = FormalParameter::new(SPAN, [], binding, None, None, false, None, false, false, ast);
        let kind = FormalParameterKind::ArrowFormalParameters;
        let parameters = FormalParameters::boxed(SPAN, kind, [parameter], None, ast);
        let arrow = self.arrow(parameters, self.sequence(first, self.name(name)));
        let arguments = ArenaVec::from_iter_in([Argument::from(value)], ast);
        Expression::new_call_expression(SPAN, arrow, None, arguments, false, ast)
    }

    /// `name === "text" ? yes : no`
    pub(super) fn if_equal(
        &self,
        name: Str<'a>,
        text: &str,
        yes: Expression<'a>,
        no: Expression<'a>,
    ) -> Expression<'a> {
        self.if_same(self.name(name), text, yes, no)
    }

    /// `typeof name === "string" ? yes : no`
    pub(super) fn if_text(&self, name: Str<'a>, yes: Expression<'a>, no: Expression<'a>) -> Expression<'a> {
        let kind = Expression::new_unary_expression(SPAN, UnaryOperator::Typeof, self.name(name), &self.ast);
        self.if_same(kind, "string", yes, no)
    }

    /// `value === "text" ? yes : no`
    fn if_same(
        &self,
        value: Expression<'a>,
        text: &str,
        yes: Expression<'a>,
        no: Expression<'a>,
    ) -> Expression<'a> {
        let (operator, text) = (BinaryOperator::StrictEquality, self.string(self.text(text)));
        let test = Expression::new_binary_expression(SPAN, value, operator, text, &self.ast);
        Expression::new_conditional_expression(SPAN, test, yes, no, &self.ast)
    }

    fn arrow(&self, parameters: ArenaBox<'a, FormalParameters<'a>>, body: Expression<'a>) -> Expression<'a> {
        let body = ArrowFunctionBody::from(body);
        Expression::new_arrow_function_expression(SPAN, false, None, parameters, None, body, &self.ast)
    }

    /// `expression;`
    pub(super) fn statement(&self, expression: Expression<'a>) -> Statement<'a> {
        Statement::new_expression_statement(SPAN, expression, &self.ast)
    }

    /// `return expression;`
    fn returns(&self, expression: Expression<'a>) -> Statement<'a> {
        Statement::new_return_statement(SPAN, Some(expression), &self.ast)
    }

    /// `{ statements }`
    pub(super) fn block<const N: usize>(&self, statements: [Statement<'a>; N]) -> Statement<'a> {
        Statement::new_block_statement(SPAN, statements, &self.ast)
    }

    /// `const name = value;`
    pub(super) fn constant(&self, name: Str<'a>, value: Expression<'a>) -> Statement<'a> {
        self.declaration(VariableDeclarationKind::Const, name, value)
    }

    /// `let name = value;`
    pub(super) fn variable(&self, name: Str<'a>, value: Expression<'a>) -> Statement<'a> {
        self.declaration(VariableDeclarationKind::Let, name, value)
    }

    fn declaration(
        &self,
        kind: VariableDeclarationKind,
        name: Str<'a>,
        value: Expression<'a>,
    ) -> Statement<'a> {
        let declarator =
            VariableDeclarator::new(SPAN, self.binding(name), None, Some(value), false, &self.ast);
        Statement::new_variable_declaration(SPAN, kind, [declarator], false, &self.ast)
    }

    fn binding(&self, name: Str<'a>) -> BindingPattern<'a> {
        BindingPattern::new_binding_identifier(SPAN, name, &self.ast)
    }

    /// `name &&= value;`
    pub(super) fn and_assign(&self, name: Str<'a>, value: Expression<'a>) -> Statement<'a> {
        let target = AssignmentTarget::new_assignment_target_identifier(SPAN, name, &self.ast);
        let operator = AssignmentOperator::LogicalAnd;
        self.statement(Expression::new_assignment_expression(SPAN, operator, target, value, &self.ast))
    }

    /// `default: statement`
    pub(super) fn default_case(&self, statement: Statement<'a>) -> SwitchCase<'a> {
        SwitchCase::new(SPAN, None, [statement], &self.ast)
    }

    /// Body of an arrow function as a block; an expression body becomes a `return`.
    pub(super) fn arrow_block(&self, body: ArrowFunctionBody<'a>) -> ArrowFunctionBody<'a> {
        match body {
            ArrowFunctionBody::FunctionBody(_) => body,
            expression => {
                let statement = self.returns(expression.into_expression());
                ArrowFunctionBody::FunctionBody(FunctionBody::boxed(SPAN, [], [statement], &self.ast))
            }
        }
    }
}

/// Decimal digits of `number`, written to the end of `room`.
pub(super) fn digits(mut number: u32, room: &mut [u8; 10]) -> &str {
    let mut at = room.len();
    loop {
        at -= 1;
        room[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return std::str::from_utf8(&room[at..]).expect("digits are text");
        }
    }
}

impl<'a> GetAllocator<'a> for TreeBuilder<'a> {
    fn allocator(&self) -> &'a Allocator {
        self.allocator
    }
}
