//! Expressions, in the order they are evaluated.

use std::rc::Rc;

use oxc_ast::ast::{
    AssignmentExpression, AssignmentOperator, BinaryExpression, BinaryOperator, ConditionalExpression,
    Expression, IdentifierReference, LogicalExpression, LogicalOperator, TaggedTemplateExpression,
    TemplateLiteral, UnaryExpression, UnaryOperator, UpdateExpression,
};
use oxc_span::{GetSpan, Span};
use pml_model::structure::{DecisionForm, Step};
use smallvec::SmallVec;

use super::Walk;
use super::budget::Seen;
use super::objects::append;
use super::value::{Distinct, FunctionCode, Kind, Path, Record, Value, one_of};
use crate::analysis::{Code, Severity};
use crate::marks::Place;
use crate::roots;
use crate::surface;
use crate::survey::Mention;

/// Longer texts are not put together from their parts.
const MAX_FOLDED_BYTES: usize = 64 * 1024;

impl<'a> Walk<'a, '_> {
    /// The value of an expression that goes somewhere: `mcp` and its servers may not.
    pub(super) fn value(&mut self, expression: &'a Expression<'a>) -> Value<'a> {
        let value = self.raw(expression);
        self.handed_on(value, expression.span())
    }

    /// The value of a computed key. Which tool is meant is read off the source alone, never off what a variable
    /// seems to hold.
    pub(super) fn key_value(&mut self, object: &Value<'a>, key: &'a Expression<'a>) -> Value<'a> {
        let value = self.value(key);
        let is_root = match object {
            Value::Mcp | Value::Server(_) | Value::Capabilities => true,
            Value::Global(name) => &**name == "globalThis",
            _ => false,
        };
        if !is_root {
            return value;
        }
        self.roots.constant(self.scoping, key).map_or(Value::Unknown, |text| Value::folded(text, key.span()))
    }

    /// A value that goes somewhere we do not follow it.
    pub(super) fn handed_on(&mut self, value: Value<'a>, span: Span) -> Value<'a> {
        match &value {
            Value::Mcp => self.opaque(span, "`mcp` is handed on, so which tools are called cannot be known"),
            Value::Server(server) => {
                let what =
                    format!("`mcp.{server}` is handed on, so which of its tools are called cannot be known");
                self.opaque(span, what);
            }
            Value::Capabilities => {
                self.opaque(span, "`capabilities` is handed on, so which of them are called cannot be known");
            }
            Value::Global(name) if &**name == "globalThis" => {
                self.opaque(span, "`globalThis` is handed on, so which tools are called cannot be known");
            }
            Value::Tool(..) | Value::Capability(_) => {
                self.declare_value(&value, span);
                return value;
            }
            _ => return value,
        }
        Value::Unknown
    }

    pub(super) fn raw(&mut self, expression: &'a Expression<'a>) -> Value<'a> {
        let span = expression.span();
        self.steps = self.steps.saturating_add(1);
        self.state.budget.spend(1);
        if self.too_much(span) {
            return Value::Unknown;
        }
        match expression {
            Expression::BooleanLiteral(it) => Value::literal(it.value, span),
            Expression::NullLiteral(_) => Value::literal(serde_json::Value::Null, span),
            Expression::NumericLiteral(it) => Value::literal(number(it.value), span),
            Expression::StringLiteral(it) => Value::literal(it.value.as_str(), span),
            Expression::BigIntLiteral(_) | Expression::RegExpLiteral(_) => self.computed(span, &[]),
            Expression::TemplateLiteral(it) => self.template(it),
            Expression::Identifier(it) => self.name(it),
            Expression::ThisExpression(_) => self.this(),
            Expression::ArrayExpression(it) => self.array(it),
            Expression::ObjectExpression(it) => self.object(it),
            Expression::ArrowFunctionExpression(it) => self.closure(FunctionCode::Arrow(it)),
            Expression::FunctionExpression(it) => self.closure(FunctionCode::Function(it)),
            Expression::ClassExpression(it) => self.class(it),
            Expression::AssignmentExpression(it) => self.assignment(it),
            Expression::AwaitExpression(it) => {
                let value = self.value(&it.argument);
                self.awaited(value)
            }
            Expression::BinaryExpression(it) => self.binary(it),
            Expression::CallExpression(it) => self.call(it),
            Expression::NewExpression(it) => self.new_expression(it),
            Expression::ChainExpression(it) => self.chain_expression(it),
            Expression::ConditionalExpression(it) => self.conditional(it),
            Expression::LogicalExpression(it) => self.logical(it),
            Expression::SequenceExpression(it) => {
                let mut last = Value::Undefined;
                for expression in &it.expressions {
                    last = self.value(expression);
                }
                last
            }
            Expression::TaggedTemplateExpression(it) => self.tagged(it),
            Expression::UnaryExpression(it) => self.unary(it),
            Expression::UpdateExpression(it) => self.update(it),
            Expression::YieldExpression(it) => self.yielded(it.argument.as_ref(), it.delegate),
            Expression::PrivateInExpression(it) => {
                self.value(&it.right);
                Value::Unknown
            }
            Expression::ImportExpression(it) => {
                self.value(&it.source);
                self.ambient(span, "import()");
                self.opaque(span, "`import()` could bring in anything");
                Value::Unknown
            }
            Expression::ParenthesizedExpression(it) => self.raw(&it.expression),
            Expression::TSAsExpression(it) => {
                let value = self.raw(&it.expression);
                self.typed(&value, &it.type_annotation);
                value
            }
            Expression::TSSatisfiesExpression(it) => self.raw(&it.expression),
            Expression::TSTypeAssertion(it) => {
                let value = self.raw(&it.expression);
                self.typed(&value, &it.type_annotation);
                value
            }
            Expression::TSNonNullExpression(it) => self.raw(&it.expression),
            Expression::TSInstantiationExpression(it) => self.raw(&it.expression),
            // The name of a class is no way to make functions.
            Expression::StaticMemberExpression(it)
                if it.property.name == "name"
                    && matches!(&it.object, Expression::StaticMemberExpression(inner) if inner.property.name == "constructor") =>
            {
                let Expression::StaticMemberExpression(inner) = &it.object else { return Value::Unknown };
                let object = self.operand(&inner.object);
                self.computed(span, &[object])
            }
            Expression::StaticMemberExpression(it) => {
                let object = self.base(&it.object);
                let object = self.optional_link(it.optional, it.span, &it.object, object);
                let key = self.step(&it.property.name);
                let value = self.member(object, &key, it.property.span, span);
                self.asked(key);
                value
            }
            Expression::ComputedMemberExpression(it) => {
                let object = self.base(&it.object);
                let object = self.optional_link(it.optional, it.span, &it.object, object);
                let key = self.key_value(&object, &it.expression);
                self.member_by(object, &key, it.expression.span(), span)
            }
            Expression::PrivateFieldExpression(it) => {
                let object = self.base(&it.object);
                let object = self.optional_link(it.optional, it.span, &it.object, object);
                self.member(object, &Step::Key(format!("#{}", it.field.name)), it.field.span, span)
            }
            _ => Value::Unknown,
        }
    }

    /// The object of a member: here `mcp` and its servers are at home.
    pub(super) fn base(&mut self, expression: &'a Expression<'a>) -> Value<'a> {
        self.raw(expression)
    }

    /// Something computed at `span` from `values`.
    pub(super) fn computed(&mut self, span: Span, values: &[Value<'a>]) -> Value<'a> {
        let mut reads = Distinct::default();
        for value in values {
            let value = self.frozen(value);
            let mut seen = Seen::default();
            sources(&value, &mut reads, &mut seen);
            self.state.budget.spend(seen.looked_at());
        }
        Value::Computed(span, reads.shared())
    }

    fn template(&mut self, it: &'a TemplateLiteral<'a>) -> Value<'a> {
        let mut parts: SmallVec<[(Value<'a>, Span); 4]> = SmallVec::new();
        for (index, quasi) in it.quasis.iter().enumerate() {
            let text = quasi.value.cooked.as_ref().map_or("", |text| text.as_str());
            if !text.is_empty() {
                parts.push((Value::folded(text, quasi.span), quasi.span));
            }
            if let Some(expression) = it.expressions.get(index) {
                let value = self.value(expression);
                self.unawaited(&value, expression.span(), "is put into a text");
                self.uses.as_text(&value);
                parts.push((self.frozen(&value), expression.span()));
            }
        }
        if it.expressions.is_empty() {
            return Value::literal(
                parts.first().and_then(|(part, _)| part.text()).unwrap_or_default(),
                it.span,
            );
        }
        match folded_text(parts.iter().map(|(value, _)| value)) {
            Some(text) => Value::folded(text, it.span),
            None => Value::Template(parts.into_vec().into()),
        }
    }

    fn tagged(&mut self, it: &'a TaggedTemplateExpression<'a>) -> Value<'a> {
        let tag = self.raw(&it.tag);
        let mut values = vec![Value::Unknown];
        for expression in &it.quasi.expressions {
            values.push(self.value(expression));
        }
        match tag {
            Value::Mcp | Value::Server(_) | Value::Tool(..) | Value::Capabilities | Value::Capability(_) => {
                self.opaque(it.span, "a tool is used as the tag of a template");
                if let Value::Tool(..) | Value::Capability(_) = tag {
                    self.tool_as_value(&tag, it.tag.span());
                }
                Value::Unknown
            }
            Value::Function(closure) => {
                let arguments = values.into_iter().map(|value| (value, it.span, false)).collect();
                self.follow(&closure, arguments, None, None)
            }
            other => {
                values.push(other);
                self.computed(it.span, &values)
            }
        }
    }

    fn name(&mut self, it: &IdentifierReference<'a>) -> Value<'a> {
        let symbol = roots::variable(self.scoping, it);
        match symbol {
            Some(symbol) => match self.roots.aliases.get(&symbol) {
                Some(root) => {
                    self.touched.insert(it.span.start);
                    Value::from(root)
                }
                None => self.read_symbol(symbol),
            },
            None => self.free_name(it.name.as_str(), it.span),
        }
    }

    pub(super) fn free_name(&mut self, name: &'a str, span: Span) -> Value<'a> {
        self.touched.insert(span.start);
        match name {
            "args" => Value::Parameter(Path::default()),
            "mcp" => Value::Mcp,
            "capabilities" => Value::Capabilities,
            "undefined" => Value::Undefined,
            "NaN" | "Infinity" => self.computed(span, &[]),
            "arguments" => {
                let mut record = Record { kind: Kind::Array, ..Record::default() };
                let given = self.frames.last().map(|frame| frame.given.clone()).unwrap_or_default();
                given.into_iter().for_each(|value| append(&mut record, value, span));
                Value::Object(self.state.new_object(record))
            }
            _ if surface::is_ambient(name) => {
                self.ambient(span, name);
                if matches!(name, "eval" | "Function") {
                    self.opaque(span, format!("`{name}` could run anything"));
                }
                let hint = surface::instead_of(name).map(str::to_owned);
                self.complain(
                    Severity::Error,
                    Code::Ambient,
                    span,
                    format!("`{name}` does not exist in the sandbox"),
                    hint,
                );
                Value::Unknown
            }
            _ if surface::is_global(name) => Value::Global(name.into()),
            _ => {
                if !self.unknown_names.insert(name) {
                    return Value::Unknown;
                }
                self.complain(
                    Severity::Error,
                    Code::UnknownName,
                    span,
                    format!("`{name}` is not defined"),
                    Some(surface::nearest_global(name).map_or_else(
                        || format!("if it is an argument of the program, write `args.{name}`"),
                        |near| format!("did you mean `{near}`?"),
                    )),
                );
                Value::Unknown
            }
        }
    }

    pub(super) fn this(&self) -> Value<'a> {
        let mut at = Some(&self.activation);
        while let Some(activation) = at {
            if let Some(this) = &activation.this {
                return this.clone();
            }
            at = activation.outer.as_ref();
        }
        Value::Undefined
    }

    /// What a promise gives.
    pub(super) fn awaited(&mut self, value: Value<'a>) -> Value<'a> {
        self.consume(&value);
        settled(&value)
    }

    fn binary(&mut self, it: &'a BinaryExpression<'a>) -> Value<'a> {
        let compares = it.operator.is_equality() || it.operator == BinaryOperator::In;
        let (left, right) = if compares {
            (self.compared(&it.left), self.compared(&it.right))
        } else {
            (self.operand(&it.left), self.operand(&it.right))
        };
        self.uses.operated(it.operator, &left, &right);
        if it.operator == BinaryOperator::Addition
            && let Some(text) = folded_text([&left, &right].into_iter())
        {
            return Value::folded(text, it.span);
        }
        if it.operator == BinaryOperator::In {
            // `"x" in args` asks whether an argument was given.
            if let (Some(name), Value::Parameter(path)) = (left.text(), &right) {
                self.uses.optional(&path.then(Step::Key(name.to_owned())));
            }
        }
        self.computed(it.span, &[left, right])
    }

    fn operand(&mut self, expression: &'a Expression<'a>) -> Value<'a> {
        let value = self.value(expression);
        self.unawaited(&value, expression.span(), "is computed with");
        value
    }

    /// A side of a comparison: comparing `mcp` with something, or asking what it has, gives nothing away.
    fn compared(&mut self, expression: &'a Expression<'a>) -> Value<'a> {
        let value = match self.raw(expression) {
            Value::Mcp | Value::Server(_) | Value::Capabilities | Value::Tool(..) | Value::Capability(_) => {
                Value::Unknown
            }
            Value::Global(name) if &*name == "globalThis" => Value::Unknown,
            value => value,
        };
        self.unawaited(&value, expression.span(), "is computed with");
        value
    }

    fn unary(&mut self, it: &'a UnaryExpression<'a>) -> Value<'a> {
        if it.operator == UnaryOperator::UnaryNegation
            && let Expression::NumericLiteral(literal) = &it.argument
        {
            return Value::literal(number(-literal.value), it.span);
        }
        if it.operator == UnaryOperator::Void {
            let value = self.value(&it.argument);
            self.consume(&value);
            return Value::Undefined;
        }
        let value = match &it.argument {
            // `typeof unknownName` is the one safe way to name what may not exist.
            Expression::Identifier(name)
                if it.operator == UnaryOperator::Typeof
                    && name.reference_id.get().is_none_or(|id| !self.scoping.has_binding(id))
                    && !matches!(name.name.as_str(), "args") =>
            {
                self.touched.insert(name.span.start);
                if surface::is_ambient(&name.name) {
                    self.ambient(name.span, &name.name);
                }
                Value::Unknown
            }
            argument if matches!(it.operator, UnaryOperator::Typeof | UnaryOperator::LogicalNot) => {
                self.compared(argument)
            }
            argument => self.operand(argument),
        };
        match it.operator {
            UnaryOperator::UnaryPlus | UnaryOperator::UnaryNegation | UnaryOperator::BitwiseNot => {
                self.uses.as_number(&value);
            }
            UnaryOperator::Delete => self.deleted(&it.argument),
            _ => {}
        }
        self.computed(it.span, &[value])
    }

    fn deleted(&mut self, argument: &'a Expression<'a>) {
        let Some(member) = argument.as_member_expression() else { return };
        let Some(name) = member.static_property_name() else { return };
        if let Some(Value::Object(object)) = self.peek(member.object()) {
            let key = Step::Key(name.to_owned());
            self.state.change(object, |record| record.fields.retain(|member| member.key != key));
        }
    }

    fn update(&mut self, it: &'a UpdateExpression<'a>) -> Value<'a> {
        let place = self.place(&it.argument);
        let old = self.get(&place, it.argument.span());
        self.uses.as_number(&old);
        let new = self.computed(it.argument.span(), std::slice::from_ref(&old));
        self.put(place, new.clone(), it.span);
        if it.prefix { new } else { old }
    }

    fn assignment(&mut self, it: &'a AssignmentExpression<'a>) -> Value<'a> {
        let target = it.left.as_simple_assignment_target();
        if it.operator == AssignmentOperator::Assign {
            // The parts of a member target are evaluated before the right side.
            let place = target.map(|target| self.place(target));
            let value = self.raw(&it.right);
            let value = match (&it.left, &value) {
                (left, Value::Mcp | Value::Server(_)) if left.as_assignment_target_pattern().is_some() => {
                    value
                }
                _ => self.handed_on(value, it.right.span()),
            };
            match place {
                Some(place) => self.put(place, value.clone(), it.right.span()),
                None => self.assign(&it.left, value.clone()),
            }
            return value;
        }
        let Some(target) = target else { return Value::Unknown };
        let place = self.place(target);
        let old = self.get(&place, target.span());
        if let Some(operator) = it.operator.to_logical_operator() {
            return self.logical_assignment(it, operator, place, old);
        }
        let right = self.operand(&it.right);
        if let Some(operator) = it.operator.to_binary_operator() {
            self.uses.operated(operator, &old, &right);
        }
        let new = self.computed(target.span(), &[old, right]);
        self.put(place, new.clone(), it.span);
        new
    }

    fn logical_assignment(
        &mut self,
        it: &'a AssignmentExpression<'a>,
        operator: LogicalOperator,
        place: super::objects::Spot<'a>,
        old: Value<'a>,
    ) -> Value<'a> {
        if let Value::Parameter(path) = &old {
            self.uses.optional(path);
        }
        let Guarding { form, outcome, other, suffix, .. } = guarding(operator);
        let decision =
            self.guarded(&old, &it.right, (Place::Assign, it.span), it.left.span(), (form, suffix));
        let before = self.frontier.clone();
        let mark = self.state.mark();
        self.frontier = self.arm(decision, outcome, &before);
        let right = self.value(&it.right);
        self.default_for(operator, &old, &right);
        self.put(place, right.clone(), it.right.span());
        let done = self.end_arm(mark);
        let frontier = self.arm(decision, other, &before);
        let skipped = super::Way { changes: super::Changes::default(), frontier };
        self.rejoin(done.into_iter().chain([skipped]));
        self.state.budget.spend(old.width() + right.width());
        one_of([old, right])
    }

    /// The decision of a logical operator, where a tool is reached in its right side.
    fn guarded(
        &mut self,
        left: &Value<'a>,
        right: &Expression<'a>,
        (place, span): (Place, Span),
        condition: Span,
        (form, suffix): (DecisionForm, &'static str),
    ) -> Option<u32> {
        if !self.reaches(right.span()) {
            return None;
        }
        self.decide(left);
        self.decision_with(place, span, condition, form, Vec::new(), suffix)
    }

    /// Whether something between the bytes of `span` can reach a tool: by what is written, or by what a variable, such as
    /// a parameter that was handed a function, holds here.
    pub(super) fn reaches(&self, span: Span) -> bool {
        let holds_function = |symbol| match self.read_symbol(symbol) {
            held @ (Value::Function(_)
            | Value::Tool(..)
            | Value::Capability(_)
            | Value::OneOf(_)
            | Value::Item(..)
            | Value::Object(_)) => self.calls_something(&held),
            _ => false,
        };
        let mentions = self.survey.mentioned(span.start, span.end);
        self.state.budget.spend(mentions.len() / 4);
        self.survey.reaches(span.start, span.end)
            || mentions.iter().any(|(_, mention)| match mention {
                Mention::Variable(symbol) => holds_function(*symbol),
                Mention::Arguments | Mention::Root => false,
            })
    }

    fn conditional(&mut self, it: &'a ConditionalExpression<'a>) -> Value<'a> {
        self.tested(&it.test);
        self.guard(&it.test, false);
        let decision = self.decision(Place::Test, it.span, it.test.span(), DecisionForm::Ternary);
        let before = self.frontier.clone();
        let mark = self.state.mark();
        self.frontier = self.arm(decision, "true", &before);
        let consequent = self.value(&it.consequent);
        let yes = self.end_arm(mark);
        self.frontier = self.arm(decision, "false", &before);
        let alternate = self.value(&it.alternate);
        let no = self.end_arm(mark);
        self.rejoin(yes.into_iter().chain(no));
        if let Some(path) = self.peek_parameter(&it.test) {
            self.uses.optional(&path);
        }
        self.state.budget.spend(consequent.width() + alternate.width());
        one_of([consequent, alternate])
    }

    fn logical(&mut self, it: &'a LogicalExpression<'a>) -> Value<'a> {
        let left = self.operand(&it.left);
        self.guard(&it.left, false);
        let Guarding { place, form, outcome, other, suffix } = guarding(it.operator);
        let decision = self.guarded(&left, &it.right, (place, it.span), it.left.span(), (form, suffix));
        let before = self.frontier.clone();
        let mark = self.state.mark();
        self.frontier = self.arm(decision, outcome, &before);
        let right = self.value(&it.right);
        let done = self.end_arm(mark);
        let frontier = self.arm(decision, other, &before);
        let skipped = super::Way { changes: super::Changes::default(), frontier };
        self.rejoin(done.into_iter().chain([skipped]));
        self.default_for(it.operator, &left, &right);
        self.state.budget.spend(left.width() + right.width());
        one_of([left, right])
    }

    /// `args.x ?? 5` and `args.x || 5`: `x` need not be given.
    fn default_for(&mut self, operator: LogicalOperator, left: &Value<'a>, right: &Value<'a>) {
        if let (LogicalOperator::Or | LogicalOperator::Coalesce, Value::Parameter(path)) = (operator, left) {
            self.uses.defaulted(path, right);
        }
    }

    /// A test that asks whether an argument was given makes it optional, unless the program then gives up.
    pub(super) fn guard(&mut self, test: &'a Expression<'a>, gives_up: bool) {
        match test.without_parentheses() {
            Expression::UnaryExpression(it) if it.operator == UnaryOperator::LogicalNot => {
                if !gives_up {
                    self.guard(&it.argument, false);
                }
            }
            Expression::UnaryExpression(it) if it.operator == UnaryOperator::Typeof => {
                self.guard(&it.argument, false);
            }
            Expression::LogicalExpression(it) => {
                self.guard(&it.left, gives_up);
                self.guard(&it.right, gives_up);
            }
            Expression::BinaryExpression(it) if it.operator.is_equality() => {
                let is_nothing = |side: &Expression<'_>| side.is_null_or_undefined();
                let sides = [(&it.left, &it.right), (&it.right, &it.left)];
                for (asked, other) in sides {
                    let is_typeof = matches!(asked, Expression::UnaryExpression(it) if it.operator == UnaryOperator::Typeof);
                    let is_not =
                        matches!(it.operator, BinaryOperator::Inequality | BinaryOperator::StrictInequality);
                    if (is_nothing(other) || is_typeof) && (!gives_up || is_not) {
                        self.guard(asked, false);
                    }
                }
            }
            other => {
                if let Some(path) = self.peek_parameter(other) {
                    self.uses.optional(&path);
                }
            }
        }
    }

    fn peek_parameter(&self, expression: &'a Expression<'a>) -> Option<Path> {
        match self.peek(expression) {
            Some(Value::Parameter(path)) if !path.steps().is_empty() => Some(path),
            _ => None,
        }
    }

    /// What a chain of names and members holds, without following anything.
    pub(super) fn peek(&self, expression: &'a Expression<'a>) -> Option<Value<'a>> {
        match expression.without_parentheses() {
            Expression::Identifier(it) => match roots::variable(self.scoping, it) {
                Some(symbol) => Some(self.read_symbol(symbol)),
                None if it.name == "args" => Some(Value::Parameter(Path::default())),
                None => None,
            },
            Expression::StaticMemberExpression(it) => match self.peek(&it.object)? {
                Value::Parameter(path) => {
                    Some(Value::Parameter(path.then(Step::Key(it.property.name.as_str().to_owned()))))
                }
                Value::Object(object) => self
                    .state
                    .object(object)
                    .field(&Step::Key(it.property.name.as_str().to_owned()))
                    .map(|member| member.value.clone()),
                _ => None,
            },
            Expression::TSAsExpression(it) => self.peek(&it.expression),
            Expression::TSNonNullExpression(it) => self.peek(&it.expression),
            _ => None,
        }
    }

    /// A promise used as if it were its value.
    pub(super) fn unawaited(&mut self, value: &Value<'a>, span: Span, how: impl std::fmt::Display) {
        if let Value::Promise(_, Some(pending)) = value {
            let what = self.promised(&self.pendings[*pending as usize].what);
            self.pendings[*pending as usize].consumed = true;
            self.complain(
                Severity::Error,
                Code::NotAwaited,
                span,
                format!("the promise of {what} {how}, not its result"),
                Some("put `await` before it".to_owned()),
            );
        }
    }
}

/// The value behind promises.
pub(super) fn settled<'a>(value: &Value<'a>) -> Value<'a> {
    match value {
        Value::Promise(..) | Value::OneOf(_) => {
            let mut found = Distinct::default();
            settle(value, &mut found, &mut Seen::default());
            found.one_of()
        }
        other => other.clone(),
    }
}

fn settle<'a>(value: &Value<'a>, found: &mut Distinct<'a>, seen: &mut Seen) {
    match value {
        Value::Promise(inner, _) => {
            if seen.is_new(Rc::as_ptr(inner) as usize, 0) {
                settle(inner, found, seen);
            }
        }
        Value::OneOf(values) => values.iter().for_each(|value| settle(value, found, seen)),
        other => found.add(other),
    }
}

/// The leaves something is computed from.
pub(super) fn sources<'a>(value: &Value<'a>, into: &mut Distinct<'a>, seen: &mut Seen) {
    seen.look();
    match value {
        Value::Literal(_) | Value::Result(..) | Value::Parameter(_) | Value::Item(..) | Value::Phi(..) => {
            into.add(value);
        }
        Value::Record(record) if seen.is_new(Rc::as_ptr(record) as usize, 0) => {
            record.fields.iter().for_each(|member| sources(&member.value, into, seen));
            let rest = record.extra.iter().chain(&record.spreads).chain(&record.names);
            rest.for_each(|value| sources(value, into, seen));
        }
        Value::Template(parts) if seen.is_new(parts.as_ptr() as usize, 0) => {
            parts.iter().for_each(|(value, _)| sources(value, into, seen));
        }
        Value::Computed(_, values) | Value::OneOf(values) if seen.is_new(values.as_ptr() as usize, 0) => {
            values.iter().for_each(|value| sources(value, into, seen));
        }
        Value::Promise(inner, _) if seen.is_new(Rc::as_ptr(inner) as usize, 0) => sources(inner, into, seen),
        _ => {}
    }
}

/// A number as JSON has it: whole numbers without a point.
pub(super) fn number(value: f64) -> serde_json::Value {
    if value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0 {
        return (value as i64).into();
    }
    serde_json::Number::from_f64(value).map_or(serde_json::Value::Null, Into::into)
}

/// The text that literal parts make together.
fn folded_text<'v, 'a: 'v>(parts: impl Iterator<Item = &'v Value<'a>> + Clone) -> Option<String> {
    let length: usize = parts.clone().filter_map(Value::text).map(str::len).sum();
    if length > MAX_FOLDED_BYTES {
        return None;
    }
    if !parts.clone().any(|part| part.text().is_some()) {
        return None;
    }
    let mut text = String::new();
    for part in parts {
        let Value::Literal(literal) = part else { return None };
        match &literal.value {
            serde_json::Value::String(part) => text.push_str(part),
            other @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_) | serde_json::Value::Null) => {
                text.push_str(&other.to_string());
            }
            _ => return None,
        }
    }
    Some(text)
}

/// The same expression behind `as`, `!` and parentheses.
pub(super) fn plain<'a, 'e>(expression: &'e Expression<'a>) -> &'e Expression<'a> {
    match expression {
        Expression::ParenthesizedExpression(it) => plain(&it.expression),
        Expression::TSAsExpression(it) => plain(&it.expression),
        Expression::TSSatisfiesExpression(it) => plain(&it.expression),
        Expression::TSTypeAssertion(it) => plain(&it.expression),
        Expression::TSNonNullExpression(it) => plain(&it.expression),
        Expression::TSInstantiationExpression(it) => plain(&it.expression),
        other => other,
    }
}

/// How a logical operator chooses whether its right side is evaluated.
struct Guarding {
    place: Place,
    form: DecisionForm,
    /// With which the right side is evaluated.
    outcome: &'static str,
    /// With which it is not.
    other: &'static str,
    /// What is asked of the left side.
    suffix: &'static str,
}

fn guarding(operator: LogicalOperator) -> Guarding {
    let (place, form, outcome, other, suffix) = match operator {
        LogicalOperator::And => (Place::Test, DecisionForm::And, "true", "false", ""),
        LogicalOperator::Or => (Place::Test, DecisionForm::Or, "false", "true", ""),
        LogicalOperator::Coalesce => (Place::Nullish, DecisionForm::Nullish, "true", "false", " == null"),
    };
    Guarding { place, form, outcome, other, suffix }
}
