//! Literals of a program that could be taken from `args` instead, wherever they stand.
//!
//! Reads the syntax tree alone. Replacing a literal by `args["name"]` with that literal as the value gives the same
//! program only if `args` means the argument object at every place and nothing looks at it as a whole; otherwise
//! [`find_literal_sites`] finds no sites.

use oxc_ast::ast::{
    AssignmentExpression, AssignmentTarget, BinaryExpression, BindingIdentifier, BindingPattern,
    BooleanLiteral, CallExpression, ComputedMemberExpression, Expression, IdentifierReference,
    NumericLiteral, ObjectProperty, PropertyKey, RegExpLiteral, ReturnStatement, StaticMemberExpression,
    StringLiteral, SwitchCase, TemplateLiteral, ThrowStatement, UnaryExpression, VariableDeclarator,
};
use oxc_ast_visit::{VisitJs, walk_js};
use oxc_span::Span;
use oxc_syntax::operator::UnaryOperator;
use serde_json::Value;

use crate::{Error, lines, parse};

/// A literal that could be taken from `args`.
#[derive(Debug, Clone, PartialEq)]
pub struct LiteralSite {
    /// Byte range of the literal in the source, end exclusive.
    pub start: u32,
    /// End of that range.
    pub end: u32,
    /// A text, a number or a boolean.
    pub value: Value,
    /// How the literal is written.
    pub form: SiteForm,
    /// Name of the field, argument or variable that the literal is compared with, given to or stored in.
    pub name: Option<String>,
    /// What the program does with the literal.
    pub usage: SiteUsage,
    /// The flags of a regular expression; empty for anything else.
    pub flags: String,
}

/// How a literal is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteForm {
    /// As an expression of its own.
    Expression,
    /// As the fixed text of a template, between its expressions.
    TemplateText,
    /// As a regular expression; the value is its source.
    Pattern,
}

/// What a program does with a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SiteUsage {
    /// Computes with it, or gives it to a tool.
    Value,
    /// Limits how many elements it takes: `slice(0, 3)`.
    Count,
    /// Uses it as a position or for layout: `row[2]`, `toFixed(2)`.
    Layout,
    /// Only reports it: `return "done"`, an error, the console.
    Message,
}

/// The literals of a program that could be taken from `args`, in the order of the source; none if the program looks at
/// `args` as a whole or has another variable of that name.
///
/// # Errors
/// The program cannot be parsed.
pub fn find_literal_sites(source: &str) -> Result<Vec<LiteralSite>, Error> {
    if source.len() > parse::MAX_SOURCE_BYTES {
        return Err(Error::TooLarge { size_bytes: source.len(), limit: parse::MAX_SOURCE_BYTES });
    }
    parse::on_large_stack(source, |allocator| {
        let lines = lines::SourceLines::new(source);
        let (program, _) = parse::parse_program(allocator, &lines)?;
        let mut visitor = SiteVisitor::default();
        visitor.visit_program(&program);
        visitor.found.sort_by_key(|site| site.start);
        Ok(if visitor.sees_whole_args { Vec::new() } else { visitor.found })
    })?
}

#[derive(Default)]
struct SiteVisitor {
    found: Vec<LiteralSite>,
    name: Option<String>,
    usage: Option<SiteUsage>,
    sees_whole_args: bool,
}

/// Methods that limit how many elements are taken.
const COUNTING: &[&str] = &["slice", "splice", "take", "substring", "substr"];
/// Methods whose numbers only lay something out.
const LAYOUT: &[&str] =
    &["toFixed", "toPrecision", "padStart", "padEnd", "stringify", "charAt", "at", "charCodeAt"];

impl SiteVisitor {
    fn add(&mut self, span: Span, value: Value, form: SiteForm) {
        self.found.push(LiteralSite {
            start: span.start,
            end: span.end,
            value,
            form,
            name: self.name.clone(),
            usage: self.usage.unwrap_or(SiteUsage::Value),
            flags: String::new(),
        });
    }

    /// Visits something whose literals are known by `name`.
    fn within(
        &mut self,
        name: Option<String>,
        usage: Option<SiteUsage>,
        visit: impl FnOnce(&mut SiteVisitor),
    ) {
        let before = (self.name.take(), self.usage);
        (self.name, self.usage) = (name, usage.or(before.1));
        visit(self);
        (self.name, self.usage) = before;
    }
}

impl<'a> VisitJs<'a> for SiteVisitor {
    fn visit_string_literal(&mut self, text: &StringLiteral<'a>) {
        self.add(text.span, Value::from(text.value.as_str()), SiteForm::Expression);
    }

    fn visit_numeric_literal(&mut self, number: &NumericLiteral<'a>) {
        self.add(number.span, number_value(number.value), SiteForm::Expression);
    }

    fn visit_boolean_literal(&mut self, boolean: &BooleanLiteral) {
        self.add(boolean.span, Value::from(boolean.value), SiteForm::Expression);
    }

    fn visit_reg_exp_literal(&mut self, expression: &RegExpLiteral<'a>) {
        let text = expression.regex.pattern.text.as_str();
        self.add(expression.span, Value::from(text), SiteForm::Pattern);
        if let Some(site) = self.found.last_mut() {
            site.flags = expression.regex.flags.to_string();
        }
    }

    fn visit_template_literal(&mut self, template: &TemplateLiteral<'a>) {
        if let ([only], true) = (template.quasis.as_slice(), template.expressions.is_empty()) {
            if let Some(text) = &only.value.cooked {
                self.add(template.span, Value::from(text.as_str()), SiteForm::Expression);
            }
            return;
        }
        for part in &template.quasis {
            if let Some(text) = &part.value.cooked {
                self.add(part.span, Value::from(text.as_str()), SiteForm::TemplateText);
            }
        }
        self.visit_expressions(&template.expressions);
    }

    fn visit_binary_expression(&mut self, binary: &BinaryExpression<'a>) {
        // `typeof x === "string"` asks for a type, not for a value.
        let is_type = |side: &Expression<'_>| matches!(side, Expression::UnaryExpression(unary) if unary.operator == UnaryOperator::Typeof);
        if is_type(&binary.left) || is_type(&binary.right) {
            return;
        }
        let name = named(&binary.left).or_else(|| named(&binary.right)).or_else(|| self.name.clone());
        self.within(name, None, |inner| walk_js::walk_binary_expression(inner, binary));
    }

    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        let name = match &declarator.id {
            BindingPattern::BindingIdentifier(name) => Some(name.name.to_string()),
            _ => None,
        };
        self.visit_binding_pattern(&declarator.id);
        let Some(init) = &declarator.init else { return };
        // `const { a, b } = args` takes members, not the whole.
        let takes_members =
            matches!(&declarator.id, BindingPattern::ObjectPattern(pattern) if pattern.rest.is_none());
        if takes_members && is_args(init) {
            return;
        }
        self.within(name, None, |inner| inner.visit_expression(init));
    }

    fn visit_assignment_expression(&mut self, assignment: &AssignmentExpression<'a>) {
        if let AssignmentTarget::StaticMemberExpression(target) = &assignment.left
            && is_args(&target.object)
        {
            self.sees_whole_args = true;
        }
        if let AssignmentTarget::ComputedMemberExpression(target) = &assignment.left
            && is_args(&target.object)
        {
            self.sees_whole_args = true;
        }
        let name = match &assignment.left {
            AssignmentTarget::AssignmentTargetIdentifier(name) => Some(name.name.to_string()),
            AssignmentTarget::StaticMemberExpression(target) => Some(target.property.name.to_string()),
            _ => None,
        };
        self.visit_assignment_target(&assignment.left);
        self.within(name, None, |inner| inner.visit_expression(&assignment.right));
    }

    fn visit_object_property(&mut self, property: &ObjectProperty<'a>) {
        let name = property.key.static_name().map(std::borrow::Cow::into_owned);
        if name.is_none() || property.computed {
            self.visit_property_key(&property.key);
        }
        self.within(name, None, |inner| inner.visit_expression(&property.value));
    }

    fn visit_property_key(&mut self, key: &PropertyKey<'a>) {
        // The name of a field is a part of the program; a computed one is an expression.
        if let Some(expression) = key.as_expression() {
            self.visit_expression(expression);
        }
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        let method = match &call.callee {
            Expression::StaticMemberExpression(member) => Some((member, member.property.name.as_str())),
            _ => None,
        };
        let (name, usage) = match &method {
            Some((_, method)) if COUNTING.contains(method) => {
                (Some("count".to_owned()), Some(SiteUsage::Count))
            }
            Some((_, method)) if LAYOUT.contains(method) => {
                (Some("digits".to_owned()), Some(SiteUsage::Layout))
            }
            // `status.includes("open")`, `name.startsWith("A")`: known by what is asked.
            Some((member, _)) if named(&member.object).is_some() => (named(&member.object), None),
            Some(_) | None => (None, None),
        };
        let is_console = method.is_some_and(|(member, _)| matches!(&member.object, Expression::Identifier(it) if it.name == "console" || it.name == "pml"));
        let usage = if is_console { Some(SiteUsage::Message) } else { usage };
        let is_parse = matches!(&call.callee, Expression::Identifier(name) if name.name == "parseInt");
        self.visit_expression(&call.callee);
        for (at, argument) in call.arguments.iter().enumerate() {
            // The second argument of `parseInt` is the radix.
            let usage = if is_parse && at == 1 { Some(SiteUsage::Layout) } else { usage };
            self.within(name.clone(), usage, |inner| inner.visit_argument(argument));
        }
    }

    fn visit_static_member_expression(&mut self, member: &StaticMemberExpression<'a>) {
        if !is_args(&member.object) {
            self.visit_expression(&member.object);
        }
    }

    fn visit_computed_member_expression(&mut self, member: &ComputedMemberExpression<'a>) {
        if is_args(&member.object) {
            // A name computed at run time could be any of them.
            self.sees_whole_args |= !matches!(member.expression, Expression::StringLiteral(_));
            return;
        }
        self.visit_expression(&member.object);
        let usage = matches!(member.expression, Expression::NumericLiteral(_)).then_some(SiteUsage::Layout);
        self.within(Some("key".to_owned()), usage, |inner| inner.visit_expression(&member.expression));
    }

    fn visit_unary_expression(&mut self, unary: &UnaryExpression<'a>) {
        let deletes = unary.operator == UnaryOperator::Delete;
        let of_args = match &unary.argument {
            Expression::StaticMemberExpression(member) => is_args(&member.object),
            Expression::ComputedMemberExpression(member) => is_args(&member.object),
            _ => false,
        };
        self.sees_whole_args |= deletes && of_args;
        walk_js::walk_unary_expression(self, unary);
    }

    fn visit_return_statement(&mut self, returned: &ReturnStatement<'a>) {
        let usage =
            matches!(returned.argument, Some(Expression::StringLiteral(_))).then_some(SiteUsage::Message);
        self.within(None, usage, |inner| walk_js::walk_return_statement(inner, returned));
    }

    fn visit_throw_statement(&mut self, thrown: &ThrowStatement<'a>) {
        self.within(None, Some(SiteUsage::Message), |inner| walk_js::walk_throw_statement(inner, thrown));
    }

    fn visit_switch_case(&mut self, case: &SwitchCase<'a>) {
        // The outcomes of a `switch` are known by the literals of its cases.
        self.visit_statements(&case.consequent);
    }

    fn visit_binding_identifier(&mut self, name: &BindingIdentifier<'a>) {
        self.sees_whole_args |= name.name == "args";
    }

    fn visit_identifier_reference(&mut self, name: &IdentifierReference<'a>) {
        // Members of `args` are handled by the expressions that access them.
        self.sees_whole_args |= name.name == "args" || name.name == "arguments";
    }
}

fn is_args(expression: &Expression<'_>) -> bool {
    matches!(expression, Expression::Identifier(name) if name.name == "args")
}

/// Name of the field or variable that an expression reads, through calls such as `r.city.toLowerCase()`.
fn named(expression: &Expression<'_>) -> Option<String> {
    match expression {
        Expression::StaticMemberExpression(member) => Some(member.property.name.to_string()),
        Expression::ComputedMemberExpression(member) => match &member.expression {
            Expression::StringLiteral(name) => Some(name.value.to_string()),
            _ => None,
        },
        Expression::Identifier(name) => Some(name.name.to_string()),
        Expression::CallExpression(call) => match (&call.callee, call.arguments.first()) {
            // `Number(r.age) > 30` compares the age.
            (Expression::Identifier(_), Some(argument)) => argument.as_expression().and_then(named),
            (Expression::StaticMemberExpression(method), _) => named(&method.object),
            _ => None,
        },
        Expression::ParenthesizedExpression(inner) => named(&inner.expression),
        Expression::AwaitExpression(awaited) => named(&awaited.argument),
        _ => None,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "checked: a whole number within the exact range of a float"
)]
fn number_value(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0 {
        Value::from(number as i64)
    } else {
        Value::from(number)
    }
}

#[cfg(test)]
mod tests {
    use super::{SiteForm, SiteUsage, find_literal_sites};

    #[track_caller]
    fn check(source: &str, expected: &[&str]) {
        let shown: Vec<String> = find_literal_sites(source)
            .unwrap()
            .iter()
            .map(|site| {
                let usage = match site.usage {
                    SiteUsage::Value => "",
                    SiteUsage::Count => " count",
                    SiteUsage::Layout => " layout",
                    SiteUsage::Message => " message",
                };
                let form = match site.form {
                    SiteForm::Expression => "",
                    SiteForm::TemplateText => " part",
                    SiteForm::Pattern => " pattern",
                };
                let name = site.name.as_deref().unwrap_or("-");
                format!(
                    "{name}={} at {}{form}{usage}",
                    site.value,
                    &source[site.start as usize..site.end as usize]
                )
            })
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn literals_are_known_by_what_they_are_compared_with_or_given_to() {
        check(
            "return rows.filter((r) => r.department === 'Sales' && Number(r.age) > 30).slice(0, 3)",
            &["department=\"Sales\" at 'Sales'", "age=30 at 30", "count=0 at 0 count", "count=3 at 3 count"],
        );
        check(
            "await mcp.fs.write({ path: `out/${args.day}.txt`, content: 'call Bob\\n' }); return 'added'",
            &[
                "path=\"out/\" at out/ part",
                "path=\".txt\" at .txt part",
                "content=\"call Bob\\n\" at 'call Bob\\n'",
                "-=\"added\" at 'added' message",
            ],
        );
        check(
            "const rate = 5 / 1200; return rate.toFixed(2)",
            &["rate=5 at 5", "rate=1200 at 1200", "digits=2 at 2 layout"],
        );
        check("return ['a', x.status.includes('open')]", &["-=\"a\" at 'a'", "status=\"open\" at 'open'"]);
    }

    #[test]
    fn names_types_and_cases_are_no_sites() {
        check("return { 'a': 1, b: x['c'] }", &["a=1 at 1", "key=\"c\" at 'c'"]);
        check("if (typeof x === 'string') { switch (x) { case 'a': y() } }", &[]);
        check("type Kind = 'open'; const k: Kind = args.kind; return k", &[]);
    }

    #[test]
    fn a_program_that_sees_args_as_a_whole_has_no_sites() {
        for source in [
            "return JSON.stringify(args) + 'x'",
            "return { ...args, a: 'x' }",
            "const f = (args) => args.a + 'x'; return f({})",
            "args.a = 'x'; return args.a",
            "delete args.a; return 'x' + 1",
            "const { a, ...rest } = args; return 'x' + a",
            "return args[k] + 'x'",
        ] {
            check(source, &[]);
        }
        check("const { a } = args; return a + 'x'", &["a=\"x\" at 'x'"]);
    }
}
