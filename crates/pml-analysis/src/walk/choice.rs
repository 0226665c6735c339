//! Conditional expressions: `? :`, `&&`, `||`, `??` and their assignments.

use oxc_ast::ast::{
    AssignmentExpression, BinaryOperator, ConditionalExpression, Expression, LogicalExpression,
    LogicalOperator, UnaryOperator,
};
use oxc_span::{GetSpan, Span};
use pml_model::structure::{DecisionForm, PathStep};

use super::Walker;
use super::places::AssignTarget;
use crate::marks::ProbePlace;
use crate::roots;
use crate::survey::SymbolMention;
use crate::value::{AbstractValue, MemberPath, one_of};

impl<'a> Walker<'a, '_> {
    pub(super) fn logical_assignment(
        &mut self,
        it: &'a AssignmentExpression<'a>,
        operator: LogicalOperator,
        place: AssignTarget<'a>,
        old: AbstractValue<'a>,
    ) -> AbstractValue<'a> {
        if let AbstractValue::Parameter(path) = &old {
            self.uses.note_optional(path);
        }
        let LogicalBranch { form, outcome, other, suffix, .. } = guarding(operator);
        let decision = self.decide_guarded(
            &old,
            &it.right,
            (ProbePlace::Assign, it.span),
            it.left.span(),
            (form, suffix),
        );
        let before = self.flow.frontier.clone();
        let mark = self.memory.state.mark();
        self.flow.frontier = self.graph.arm(decision, outcome, &before);
        let right = self.evaluate(&it.right);
        self.note_default(operator, &old, &right);
        self.write_target(place, right.clone(), it.right.span());
        let skipped = self.graph.arm(decision, other, &before);
        self.flow.end_optional_arm(&mut self.memory.state, mark, skipped);
        self.memory.budget().spend(old.width() + right.width());
        one_of([old, right])
    }

    /// The decision of a logical operator whose right side reaches a tool.
    fn decide_guarded(
        &mut self,
        left: &AbstractValue<'a>,
        right: &Expression<'a>,
        (place, span): (ProbePlace, Span),
        condition: Span,
        (form, suffix): (DecisionForm, &'static str),
    ) -> Option<u32> {
        if !self.reaches_tool(right.span()) {
            return None;
        }
        self.deciding.decide(left, self.memory.budget());
        self.note_tested(left);
        self.decision_with(place, span, condition, form, Vec::new(), suffix)
    }

    /// Whether code within `span` can reach a tool: by what is written, or by the value of a variable, such as a
    /// parameter that was passed a function.
    pub(super) fn reaches_tool(&self, span: Span) -> bool {
        let holds_function = |symbol| match self.read_symbol(symbol) {
            held @ (AbstractValue::Function(_)
            | AbstractValue::Tool(..)
            | AbstractValue::Capability(_)
            | AbstractValue::OneOf(_)
            | AbstractValue::Item(..)
            | AbstractValue::Object(_)) => self.memory.leads_to_tool(&held),
            _ => false,
        };
        let mentions = self.facts.survey.mentions_between(span.start, span.end);
        self.memory.budget().spend(mentions.len() / 4);
        self.facts.survey.reaches_tool(span.start, span.end)
            || mentions.iter().any(|(_, mention)| match mention {
                SymbolMention::Variable(symbol) => holds_function(*symbol),
                SymbolMention::Arguments | SymbolMention::Root => false,
            })
    }

    pub(super) fn conditional(&mut self, it: &'a ConditionalExpression<'a>) -> AbstractValue<'a> {
        self.evaluate_test(&it.test);
        self.note_optional_test(&it.test, false);
        let decision = self.decision(ProbePlace::Test, it.span, it.test.span(), DecisionForm::Ternary);
        let before = self.flow.frontier.clone();
        let mark = self.memory.state.mark();
        self.flow.frontier = self.graph.arm(decision, "true", &before);
        let consequent = self.evaluate(&it.consequent);
        let yes = self.flow.end_arm(&mut self.memory.state, mark);
        self.flow.frontier = self.graph.arm(decision, "false", &before);
        let alternate = self.evaluate(&it.alternate);
        let no = self.flow.end_arm(&mut self.memory.state, mark);
        self.flow.rejoin(&mut self.memory.state, yes.into_iter().chain(no));
        if let Some(path) = self.peek_parameter(&it.test) {
            self.uses.note_optional(&path);
        }
        self.memory.budget().spend(consequent.width() + alternate.width());
        one_of([consequent, alternate])
    }

    pub(super) fn logical(&mut self, it: &'a LogicalExpression<'a>) -> AbstractValue<'a> {
        let left = self.evaluate_operand(&it.left);
        self.note_optional_test(&it.left, false);
        let LogicalBranch { place, form, outcome, other, suffix } = guarding(it.operator);
        let decision =
            self.decide_guarded(&left, &it.right, (place, it.span), it.left.span(), (form, suffix));
        let before = self.flow.frontier.clone();
        let mark = self.memory.state.mark();
        self.flow.frontier = self.graph.arm(decision, outcome, &before);
        let right = self.evaluate(&it.right);
        let skipped = self.graph.arm(decision, other, &before);
        self.flow.end_optional_arm(&mut self.memory.state, mark, skipped);
        self.note_default(it.operator, &left, &right);
        self.memory.budget().spend(left.width() + right.width());
        one_of([left, right])
    }

    /// `args.x ?? 5` and `args.x || 5`: `x` is optional.
    fn note_default(
        &mut self,
        operator: LogicalOperator,
        left: &AbstractValue<'a>,
        right: &AbstractValue<'a>,
    ) {
        if let (LogicalOperator::Or | LogicalOperator::Coalesce, AbstractValue::Parameter(path)) =
            (operator, left)
        {
            self.uses.note_default(path, right);
        }
    }

    /// A test whether an argument is given makes it optional, unless the program then fails.
    pub(super) fn note_optional_test(&mut self, test: &'a Expression<'a>, gives_up: bool) {
        match test.without_parentheses() {
            Expression::UnaryExpression(it) if it.operator == UnaryOperator::LogicalNot => {
                if !gives_up {
                    self.note_optional_test(&it.argument, false);
                }
            }
            Expression::UnaryExpression(it) if it.operator == UnaryOperator::Typeof => {
                self.note_optional_test(&it.argument, false);
            }
            Expression::LogicalExpression(it) => {
                self.note_optional_test(&it.left, gives_up);
                self.note_optional_test(&it.right, gives_up);
            }
            Expression::BinaryExpression(it) if it.operator.is_equality() => {
                let is_nothing = |side: &Expression<'_>| side.is_null_or_undefined();
                let sides = [(&it.left, &it.right), (&it.right, &it.left)];
                for (asked, other) in sides {
                    let is_typeof = matches!(asked, Expression::UnaryExpression(it) if it.operator == UnaryOperator::Typeof);
                    let is_not =
                        matches!(it.operator, BinaryOperator::Inequality | BinaryOperator::StrictInequality);
                    if (is_nothing(other) || is_typeof) && (!gives_up || is_not) {
                        self.note_optional_test(asked, false);
                    }
                }
            }
            other => {
                if let Some(path) = self.peek_parameter(other) {
                    self.uses.note_optional(&path);
                }
            }
        }
    }

    fn peek_parameter(&self, expression: &'a Expression<'a>) -> Option<MemberPath> {
        match self.peek(expression) {
            Some(AbstractValue::Parameter(path)) if !path.steps().is_empty() => Some(path),
            _ => None,
        }
    }

    /// Value of a chain of names and members, without following anything.
    pub(super) fn peek(&self, expression: &'a Expression<'a>) -> Option<AbstractValue<'a>> {
        match expression.without_parentheses() {
            Expression::Identifier(it) => match roots::resolve_variable(self.input.scoping, it) {
                Some(symbol) => Some(self.read_symbol(symbol)),
                None if it.name == "args" => Some(AbstractValue::Parameter(MemberPath::default())),
                None => None,
            },
            Expression::StaticMemberExpression(it) => match self.peek(&it.object)? {
                AbstractValue::Parameter(path) => Some(AbstractValue::Parameter(
                    path.then(PathStep::Key(it.property.name.as_str().to_owned())),
                )),
                AbstractValue::Object(object) => self
                    .memory
                    .state
                    .object(object)
                    .field(&PathStep::Key(it.property.name.as_str().to_owned()))
                    .map(|member| member.value.clone()),
                _ => None,
            },
            Expression::TSAsExpression(it) => self.peek(&it.expression),
            Expression::TSNonNullExpression(it) => self.peek(&it.expression),
            _ => None,
        }
    }
}

/// How a logical operator decides whether its right side is evaluated.
struct LogicalBranch {
    place: ProbePlace,
    form: DecisionForm,
    /// Outcome with which the right side is evaluated.
    outcome: &'static str,
    /// Outcome with which it is not.
    other: &'static str,
    /// The condition on the left side, as text.
    suffix: &'static str,
}

fn guarding(operator: LogicalOperator) -> LogicalBranch {
    let (place, form, outcome, other, suffix) = match operator {
        LogicalOperator::And => (ProbePlace::Test, DecisionForm::And, "true", "false", ""),
        LogicalOperator::Or => (ProbePlace::Test, DecisionForm::Or, "false", "true", ""),
        LogicalOperator::Coalesce => {
            (ProbePlace::Nullish, DecisionForm::Nullish, "true", "false", " == null")
        }
    };
    LogicalBranch { place, form, outcome, other, suffix }
}
