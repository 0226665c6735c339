//! Constants written into a program.
//!
//! Reads the syntax tree alone. The constants are the values that a caller cannot change, once the lifted literals are
//! taken from `args`.

use oxc_ast::ast::{
    BindingProperty, CallExpression, ComputedMemberExpression, Expression, NumericLiteral, ObjectProperty,
    PropertyKey, RegExpLiteral, ReturnStatement, StaticMemberExpression, StringLiteral, TemplateElement,
};
use oxc_ast_visit::{VisitJs, walk_js};

use crate::{Error, lines, parse};

/// A value written into a program.
#[derive(Debug, Clone, PartialEq)]
pub enum Constant {
    /// A string, a fixed part of a template, or a regular expression.
    Text(String),
    /// A number.
    Number(f64),
    /// Name of a member or a field, or of the server of a tool.
    Name(String),
}

/// Distinct constants of a program, in the order of first occurrence. Names of methods and tools are verbs, not values;
/// a text that is returned as it is only reports that the work is done. Both are left out.
///
/// # Errors
/// The program cannot be parsed.
pub fn find_constants(source: &str) -> Result<Vec<Constant>, Error> {
    if source.len() > parse::MAX_SOURCE_BYTES {
        return Err(Error::TooLarge { size_bytes: source.len(), limit: parse::MAX_SOURCE_BYTES });
    }
    parse::on_large_stack(source, |allocator| {
        let lines = lines::SourceLines::new(source);
        let (program, _) = parse::parse_program(allocator, &lines)?;
        let mut constants = ConstantVisitor::default();
        constants.visit_program(&program);
        Ok(constants.found)
    })?
}

#[derive(Default)]
struct ConstantVisitor {
    found: Vec<Constant>,
}

impl ConstantVisitor {
    fn add(&mut self, constant: Constant) {
        if !self.found.contains(&constant) {
            self.found.push(constant);
        }
    }

    /// Adds the name of a field; a computed key is visited like any other expression.
    fn key(&mut self, key: &PropertyKey<'_>) -> bool {
        let name = key.static_name();
        let found = name.is_some();
        if let Some(name) = name {
            self.add(Constant::Name(name.into_owned()));
        }
        found
    }
}

impl<'a> VisitJs<'a> for ConstantVisitor {
    fn visit_string_literal(&mut self, text: &StringLiteral<'a>) {
        self.add(Constant::Text(text.value.to_string()));
    }

    fn visit_template_element(&mut self, part: &TemplateElement<'a>) {
        let text = part.value.cooked.as_ref().unwrap_or(&part.value.raw).to_string();
        if !text.is_empty() {
            self.add(Constant::Text(text));
        }
    }

    fn visit_reg_exp_literal(&mut self, expression: &RegExpLiteral<'a>) {
        self.add(Constant::Text(expression.regex.pattern.text.to_string()));
    }

    fn visit_numeric_literal(&mut self, number: &NumericLiteral<'a>) {
        self.add(Constant::Number(number.value));
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        match &call.callee {
            Expression::StaticMemberExpression(method) => self.visit_expression(&method.object),
            callee => self.visit_expression(callee),
        }
        self.visit_arguments(&call.arguments);
    }

    fn visit_return_statement(&mut self, returned: &ReturnStatement<'a>) {
        match &returned.argument {
            Some(Expression::StringLiteral(_)) | None => {}
            Some(value) => self.visit_expression(value),
        }
    }

    fn visit_static_member_expression(&mut self, member: &StaticMemberExpression<'a>) {
        if !is_args(&member.object) {
            self.add(Constant::Name(member.property.name.to_string()));
        }
        walk_js::walk_static_member_expression(self, member);
    }

    fn visit_computed_member_expression(&mut self, member: &ComputedMemberExpression<'a>) {
        match &member.expression {
            // Arguments of the program are not constants of it.
            Expression::StringLiteral(_) if is_args(&member.object) => {}
            Expression::StringLiteral(name) => self.add(Constant::Name(name.value.to_string())),
            other => self.visit_expression(other),
        }
        self.visit_expression(&member.object);
    }

    fn visit_object_property(&mut self, property: &ObjectProperty<'a>) {
        if !self.key(&property.key) {
            self.visit_property_key(&property.key);
        }
        self.visit_expression(&property.value);
    }

    fn visit_binding_property(&mut self, property: &BindingProperty<'a>) {
        if !self.key(&property.key) {
            self.visit_property_key(&property.key);
        }
        self.visit_binding_pattern(&property.value);
    }
}

fn is_args(expression: &Expression<'_>) -> bool {
    matches!(expression, Expression::Identifier(name) if name.name == "args")
}

#[cfg(test)]
mod tests {
    use super::{Constant, find_constants};

    #[track_caller]
    fn check(source: &str, expected: &[&str]) {
        let found = find_constants(source).unwrap();
        let shown: Vec<String> = found
            .iter()
            .map(|constant| match constant {
                Constant::Text(text) => format!("{text:?}"),
                Constant::Number(number) => number.to_string(),
                Constant::Name(name) => name.clone(),
            })
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn values_are_found_wherever_they_stand() {
        check(
            "const { rows } = await load(args.path);\n\
             return rows.filter((r) => r.kind === 'pending').slice(0, 3).map((r) => `to ${r['city']} by ${args[\"way\"]}`)",
            &["rows", "kind", "\"pending\"", "0", "3", "\"to \"", "\" by \"", "city"],
        );
        check(
            "return /^ERR-\\d+/.test(args.x) ? { code: 7 } : -1.5",
            &["\"^ERR-\\\\d+\"", "code", "7", "1.5"],
        );
    }

    #[test]
    fn verbs_and_what_is_only_told_are_no_constants() {
        check("await mcp.csv.parse({ csv: args.csv }); return 'done'", &["csv"]);
    }

    #[test]
    fn types_and_local_names_are_no_constants() {
        check("type Kind = 'open' | 'closed'; const open: Kind = args.kind; return open", &[]);
    }

    #[test]
    fn what_cannot_be_parsed_is_an_error() {
        assert!(find_constants("return (").is_err());
    }
}
