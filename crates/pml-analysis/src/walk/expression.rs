//! Expressions, in evaluation order.

use oxc_ast::ast::{
    AssignmentExpression, AssignmentOperator, BinaryExpression, BinaryOperator, Expression,
    IdentifierReference, TaggedTemplateExpression, TemplateLiteral, UnaryExpression, UnaryOperator,
    UpdateExpression,
};
use oxc_span::{GetSpan, Span};
use pml_model::structure::PathStep;
use smallvec::SmallVec;

use super::Walker;
use super::memory::settled_value;
use super::objects::append;
use super::syntax::number;
use crate::analysis::{ComplaintCode, Severity};
use crate::roots;
use crate::surface;
use crate::value::{AbstractValue, FunctionCode, MemberPath, ObjectRecord, RecordKind};

/// Maximum bytes of a text that is folded from literal parts.
const MAX_FOLDED_BYTES: usize = 64 * 1024;

impl<'a> Walker<'a, '_> {
    /// Value of an expression that is used: `mcp` and its servers must not be.
    pub(super) fn evaluate(&mut self, expression: &'a Expression<'a>) -> AbstractValue<'a> {
        let value = self.evaluate_raw(expression);
        self.note_escape(value, expression.span())
    }

    /// Value of a computed key. Which tool it names is read from the source alone, never from what a variable seems to
    /// hold.
    pub(super) fn evaluate_key(
        &mut self,
        object: &AbstractValue<'a>,
        key: &'a Expression<'a>,
    ) -> AbstractValue<'a> {
        let value = self.evaluate(key);
        let is_root = match object {
            AbstractValue::Mcp | AbstractValue::Server(_) | AbstractValue::Capabilities => true,
            AbstractValue::Global(name) => &**name == "globalThis",
            _ => false,
        };
        if !is_root {
            return value;
        }
        self.facts
            .roots
            .constant(self.input.scoping, key)
            .map_or(AbstractValue::Unknown, |text| AbstractValue::folded(text, key.span()))
    }

    /// Records that a value goes where it is not followed.
    pub(super) fn note_escape(&mut self, value: AbstractValue<'a>, span: Span) -> AbstractValue<'a> {
        match &value {
            AbstractValue::Mcp => {
                self.permissions
                    .note_opaque(span, "`mcp` is handed on, so which tools are called cannot be known");
            }
            AbstractValue::Server(server) => {
                let what =
                    format!("`mcp.{server}` is handed on, so which of its tools are called cannot be known");
                self.permissions.note_opaque(span, what);
            }
            AbstractValue::Capabilities => {
                self.permissions.note_opaque(
                    span,
                    "`capabilities` is handed on, so which of them are called cannot be known",
                );
            }
            AbstractValue::Global(name) if &**name == "globalThis" => {
                self.permissions.note_opaque(
                    span,
                    "`globalThis` is handed on, so which tools are called cannot be known",
                );
            }
            AbstractValue::Tool(..) | AbstractValue::Capability(_) => {
                self.permissions.declare_value(&value, span, &mut self.diagnostics);
                return value;
            }
            _ => return value,
        }
        AbstractValue::Unknown
    }

    /// Value of any expression; `mcp` and its servers are allowed here, as the object of a member access.
    pub(super) fn evaluate_raw(&mut self, expression: &'a Expression<'a>) -> AbstractValue<'a> {
        let span = expression.span();
        self.calls.step();
        self.memory.budget().spend(1);
        if self.is_spent_at(span) {
            return AbstractValue::Unknown;
        }
        match expression {
            Expression::BooleanLiteral(it) => AbstractValue::literal(it.value, span),
            Expression::NullLiteral(_) => AbstractValue::literal(serde_json::Value::Null, span),
            Expression::NumericLiteral(it) => AbstractValue::literal(number(it.value), span),
            Expression::StringLiteral(it) => AbstractValue::literal(it.value.as_str(), span),
            Expression::BigIntLiteral(_) | Expression::RegExpLiteral(_) => self.memory.computed(span, &[]),
            Expression::TemplateLiteral(it) => self.template(it),
            Expression::Identifier(it) => self.read_name(it),
            Expression::ThisExpression(_) => self.calls.this(),
            Expression::ArrayExpression(it) => self.array(it),
            Expression::ObjectExpression(it) => self.object(it),
            Expression::ArrowFunctionExpression(it) => self.make_closure(FunctionCode::Arrow(it)),
            Expression::FunctionExpression(it) => self.make_closure(FunctionCode::Function(it)),
            Expression::ClassExpression(it) => self.define_class(it),
            Expression::AssignmentExpression(it) => self.assignment(it),
            Expression::AwaitExpression(it) => {
                let value = self.evaluate(&it.argument);
                self.await_value(value)
            }
            Expression::BinaryExpression(it) => self.binary(it),
            Expression::CallExpression(it) => self.call(it),
            Expression::NewExpression(it) => self.new_expression(it),
            Expression::ChainExpression(it) => self.chain_expression(it),
            Expression::ConditionalExpression(it) => self.conditional(it),
            Expression::LogicalExpression(it) => self.logical(it),
            Expression::SequenceExpression(it) => {
                let mut last = AbstractValue::Undefined;
                for expression in &it.expressions {
                    last = self.evaluate(expression);
                }
                last
            }
            Expression::TaggedTemplateExpression(it) => self.tagged(it),
            Expression::UnaryExpression(it) => self.unary(it),
            Expression::UpdateExpression(it) => self.update(it),
            Expression::YieldExpression(it) => self.yield_value(it.argument.as_ref(), it.delegate),
            Expression::PrivateInExpression(it) => {
                self.evaluate(&it.right);
                AbstractValue::Unknown
            }
            Expression::ImportExpression(it) => {
                self.evaluate(&it.source);
                self.permissions.note_ambient(span, "import()");
                self.permissions.note_opaque(span, "`import()` could bring in anything");
                AbstractValue::Unknown
            }
            Expression::ParenthesizedExpression(it) => self.evaluate_raw(&it.expression),
            Expression::TSAsExpression(it) => {
                let value = self.evaluate_raw(&it.expression);
                self.note_optional_members(&value, &it.type_annotation);
                value
            }
            Expression::TSSatisfiesExpression(it) => self.evaluate_raw(&it.expression),
            Expression::TSTypeAssertion(it) => {
                let value = self.evaluate_raw(&it.expression);
                self.note_optional_members(&value, &it.type_annotation);
                value
            }
            Expression::TSNonNullExpression(it) => self.evaluate_raw(&it.expression),
            Expression::TSInstantiationExpression(it) => self.evaluate_raw(&it.expression),
            // The name of a class cannot create functions.
            Expression::StaticMemberExpression(it)
                if it.property.name == "name"
                    && matches!(&it.object, Expression::StaticMemberExpression(inner) if inner.property.name == "constructor") =>
            {
                let Expression::StaticMemberExpression(inner) = &it.object else {
                    return AbstractValue::Unknown;
                };
                let object = self.evaluate_operand(&inner.object);
                self.memory.computed(span, &[object])
            }
            Expression::StaticMemberExpression(it) => {
                let object = self.evaluate_raw(&it.object);
                let object = self.optional_link(it.optional, it.span, &it.object, object);
                let key = self.keys.take(&it.property.name);
                let value = self.read_member(object, &key, it.property.span, span);
                self.keys.put_back(key);
                value
            }
            Expression::ComputedMemberExpression(it) => {
                let object = self.evaluate_raw(&it.object);
                let object = self.optional_link(it.optional, it.span, &it.object, object);
                let key = self.evaluate_key(&object, &it.expression);
                self.read_computed_member(object, &key, it.expression.span(), span)
            }
            Expression::PrivateFieldExpression(it) => {
                let object = self.evaluate_raw(&it.object);
                let object = self.optional_link(it.optional, it.span, &it.object, object);
                self.read_member(object, &PathStep::Key(format!("#{}", it.field.name)), it.field.span, span)
            }
            _ => AbstractValue::Unknown,
        }
    }

    fn template(&mut self, it: &'a TemplateLiteral<'a>) -> AbstractValue<'a> {
        let mut parts: SmallVec<[(AbstractValue<'a>, Span); 4]> = SmallVec::new();
        for (index, quasi) in it.quasis.iter().enumerate() {
            let text = quasi.value.cooked.as_ref().map_or("", |text| text.as_str());
            if !text.is_empty() {
                parts.push((AbstractValue::folded(text, quasi.span), quasi.span));
            }
            if let Some(expression) = it.expressions.get(index) {
                let value = self.evaluate(expression);
                self.complain_if_unawaited(&value, expression.span(), "is put into a string");
                self.uses.note_text(&value);
                parts.push((self.memory.freeze(&value), expression.span()));
            }
        }
        if it.expressions.is_empty() {
            return AbstractValue::literal(
                parts.first().and_then(|(part, _)| part.text()).unwrap_or_default(),
                it.span,
            );
        }
        match folded_text(parts.iter().map(|(value, _)| value)) {
            Some(text) => AbstractValue::folded(text, it.span),
            None => AbstractValue::Template(parts.into_vec().into()),
        }
    }

    fn tagged(&mut self, it: &'a TaggedTemplateExpression<'a>) -> AbstractValue<'a> {
        let tag = self.evaluate_raw(&it.tag);
        let mut values = vec![AbstractValue::Unknown];
        for expression in &it.quasi.expressions {
            values.push(self.evaluate(expression));
        }
        match tag {
            AbstractValue::Mcp
            | AbstractValue::Server(_)
            | AbstractValue::Tool(..)
            | AbstractValue::Capabilities
            | AbstractValue::Capability(_) => {
                self.permissions.note_opaque(it.span, "a tool is used as the tag of a template");
                if let AbstractValue::Tool(..) | AbstractValue::Capability(_) = tag {
                    self.hand_on_tool(&tag, it.tag.span());
                }
                AbstractValue::Unknown
            }
            AbstractValue::Function(closure) => {
                let arguments = values.into_iter().map(|value| (value, it.span, false)).collect();
                self.follow_call(&closure, arguments, None, None)
            }
            other => {
                values.push(other);
                self.memory.computed(it.span, &values)
            }
        }
    }

    fn read_name(&mut self, it: &IdentifierReference<'a>) -> AbstractValue<'a> {
        let symbol = roots::resolve_variable(self.input.scoping, it);
        match symbol {
            Some(symbol) => match self.facts.roots.aliases.get(&symbol) {
                Some(root) => {
                    self.permissions.touch(it.span);
                    AbstractValue::from(root)
                }
                None => self.read_symbol(symbol),
            },
            None => self.read_free_name(it.name.as_str(), it.span),
        }
    }

    pub(super) fn read_free_name(&mut self, name: &'a str, span: Span) -> AbstractValue<'a> {
        self.permissions.touch(span);
        match name {
            "args" => AbstractValue::Parameter(MemberPath::default()),
            "mcp" => AbstractValue::Mcp,
            "capabilities" => AbstractValue::Capabilities,
            "undefined" => AbstractValue::Undefined,
            "NaN" | "Infinity" => self.memory.computed(span, &[]),
            "arguments" => {
                let mut record = ObjectRecord { kind: RecordKind::Array, ..ObjectRecord::default() };
                let given = self.calls.frames.last().map(|frame| frame.given.clone()).unwrap_or_default();
                given.into_iter().for_each(|value| append(&mut record, value, span));
                self.memory.allocate(record)
            }
            _ if surface::is_ambient(name) => {
                self.permissions.note_ambient(span, name);
                if matches!(name, "eval" | "Function") {
                    self.permissions.note_opaque(span, format!("`{name}` could run anything"));
                }
                let hint = surface::replacement_hint(name).map(str::to_owned);
                self.diagnostics.complain(
                    Severity::Error,
                    ComplaintCode::Ambient,
                    span,
                    format!("`{name}` does not exist in the sandbox"),
                    hint,
                );
                AbstractValue::Unknown
            }
            _ if surface::is_global(name) => AbstractValue::Global(name.into()),
            _ => {
                if !self.diagnostics.is_first_unknown(name) {
                    return AbstractValue::Unknown;
                }
                self.diagnostics.complain(
                    Severity::Error,
                    ComplaintCode::UnknownName,
                    span,
                    format!("`{name}` is not defined"),
                    Some(surface::nearest_global(name).map_or_else(
                        || format!("if it is an argument of the program, write `args.{name}`"),
                        |near| format!("did you mean `{near}`?"),
                    )),
                );
                AbstractValue::Unknown
            }
        }
    }

    /// The value of a promise.
    pub(super) fn await_value(&mut self, value: AbstractValue<'a>) -> AbstractValue<'a> {
        self.memory.mark_awaited(&value);
        settled_value(&value)
    }

    /// Complains about a promise that is used as if it were its value.
    pub(super) fn complain_if_unawaited(
        &mut self,
        value: &AbstractValue<'a>,
        span: Span,
        how: impl std::fmt::Display,
    ) {
        if let AbstractValue::Promise(_, Some(pending)) = value {
            let pending = &mut self.memory.promises[*pending as usize];
            pending.consumed = true;
            let what = pending.what.describe(&self.input);
            self.diagnostics.complain(
                Severity::Error,
                ComplaintCode::NotAwaited,
                span,
                format!("the promise of {what} {how}, not its result"),
                Some("put `await` before it".to_owned()),
            );
        }
    }

    fn binary(&mut self, it: &'a BinaryExpression<'a>) -> AbstractValue<'a> {
        let compares = it.operator.is_equality() || it.operator == BinaryOperator::In;
        let (left, right) = if compares {
            (self.evaluate_compared(&it.left), self.evaluate_compared(&it.right))
        } else {
            (self.evaluate_operand(&it.left), self.evaluate_operand(&it.right))
        };
        self.uses.note_operator(it.operator, &left, &right);
        if it.operator == BinaryOperator::Addition
            && let Some(text) = folded_text([&left, &right].into_iter())
        {
            return AbstractValue::folded(text, it.span);
        }
        if it.operator == BinaryOperator::In {
            // `"x" in args` tests whether an argument is given.
            if let (Some(name), AbstractValue::Parameter(path)) = (left.text(), &right) {
                self.uses.note_optional(&path.then(PathStep::Key(name.to_owned())));
            }
        }
        self.memory.computed(it.span, &[left, right])
    }

    pub(super) fn evaluate_operand(&mut self, expression: &'a Expression<'a>) -> AbstractValue<'a> {
        let value = self.evaluate(expression);
        self.complain_if_unawaited(&value, expression.span(), "is used in a computation");
        value
    }

    /// An operand of a comparison: comparing `mcp` with something, or testing its members, passes nothing on.
    fn evaluate_compared(&mut self, expression: &'a Expression<'a>) -> AbstractValue<'a> {
        let value = match self.evaluate_raw(expression) {
            AbstractValue::Mcp
            | AbstractValue::Server(_)
            | AbstractValue::Capabilities
            | AbstractValue::Tool(..)
            | AbstractValue::Capability(_) => AbstractValue::Unknown,
            AbstractValue::Global(name) if &*name == "globalThis" => AbstractValue::Unknown,
            value => value,
        };
        self.complain_if_unawaited(&value, expression.span(), "is used in a computation");
        value
    }

    fn unary(&mut self, it: &'a UnaryExpression<'a>) -> AbstractValue<'a> {
        if it.operator == UnaryOperator::UnaryNegation
            && let Expression::NumericLiteral(literal) = &it.argument
        {
            return AbstractValue::literal(number(-literal.value), it.span);
        }
        if it.operator == UnaryOperator::Void {
            let value = self.evaluate(&it.argument);
            self.memory.mark_awaited(&value);
            return AbstractValue::Undefined;
        }
        let value = match &it.argument {
            // `typeof unknownName` is the one safe use of a name that may not exist.
            Expression::Identifier(name)
                if it.operator == UnaryOperator::Typeof
                    && name.reference_id.get().is_none_or(|id| !self.input.scoping.has_binding(id))
                    && !matches!(name.name.as_str(), "args") =>
            {
                self.permissions.touch(name.span);
                if surface::is_ambient(&name.name) {
                    self.permissions.note_ambient(name.span, &name.name);
                }
                AbstractValue::Unknown
            }
            argument if matches!(it.operator, UnaryOperator::Typeof | UnaryOperator::LogicalNot) => {
                self.evaluate_compared(argument)
            }
            argument => self.evaluate_operand(argument),
        };
        match it.operator {
            UnaryOperator::UnaryPlus | UnaryOperator::UnaryNegation | UnaryOperator::BitwiseNot => {
                self.uses.note_number(&value);
            }
            UnaryOperator::Delete => self.delete_member(&it.argument),
            _ => {}
        }
        self.memory.computed(it.span, &[value])
    }

    fn delete_member(&mut self, argument: &'a Expression<'a>) {
        let Some(member) = argument.as_member_expression() else { return };
        let Some(name) = member.static_property_name() else { return };
        if let Some(AbstractValue::Object(object)) = self.peek(member.object()) {
            let key = PathStep::Key(name.to_owned());
            self.memory.state.change(object, |record| record.fields.retain(|member| member.key != key));
        }
    }

    fn update(&mut self, it: &'a UpdateExpression<'a>) -> AbstractValue<'a> {
        let place = self.assign_target(&it.argument);
        let old = self.read_target(&place, it.argument.span());
        self.uses.note_number(&old);
        let new = self.memory.computed(it.argument.span(), std::slice::from_ref(&old));
        self.write_target(place, new.clone(), it.span);
        if it.prefix { new } else { old }
    }

    fn assignment(&mut self, it: &'a AssignmentExpression<'a>) -> AbstractValue<'a> {
        let target = it.left.as_simple_assignment_target();
        if it.operator == AssignmentOperator::Assign {
            // The parts of a member target are evaluated before the right side.
            let place = target.map(|target| self.assign_target(target));
            let value = self.evaluate_raw(&it.right);
            let value = match (&it.left, &value) {
                (left, AbstractValue::Mcp | AbstractValue::Server(_))
                    if left.as_assignment_target_pattern().is_some() =>
                {
                    value
                }
                _ => self.note_escape(value, it.right.span()),
            };
            match place {
                Some(place) => self.write_target(place, value.clone(), it.right.span()),
                None => self.assign(&it.left, value.clone()),
            }
            return value;
        }
        let Some(target) = target else { return AbstractValue::Unknown };
        let place = self.assign_target(target);
        let old = self.read_target(&place, target.span());
        if let Some(operator) = it.operator.to_logical_operator() {
            return self.logical_assignment(it, operator, place, old);
        }
        let right = self.evaluate_operand(&it.right);
        if let Some(operator) = it.operator.to_binary_operator() {
            self.uses.note_operator(operator, &old, &right);
        }
        let new = self.memory.computed(target.span(), &[old, right]);
        self.write_target(place, new.clone(), it.span);
        new
    }
}

/// Concatenation of literal parts.
fn folded_text<'v, 'a: 'v>(parts: impl Iterator<Item = &'v AbstractValue<'a>> + Clone) -> Option<String> {
    let length: usize = parts.clone().filter_map(AbstractValue::text).map(str::len).sum();
    if length > MAX_FOLDED_BYTES {
        return None;
    }
    if !parts.clone().any(|part| part.text().is_some()) {
        return None;
    }
    let mut text = String::new();
    for part in parts {
        let AbstractValue::Literal(literal) = part else { return None };
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
