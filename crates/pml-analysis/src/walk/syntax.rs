//! Helpers that read the syntax tree alone.

use oxc_ast::ast::{Expression, PropertyKey};
use oxc_semantic::{Scoping, SymbolId};
use pml_model::structure::PathStep;

use crate::roots;

/// The expression without `as`, `!` and parentheses.
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

/// A number as JSON; integers without a decimal point.
pub(super) fn number(value: f64) -> serde_json::Value {
    if value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0 {
        return (value as i64).into();
    }
    serde_json::Number::from_f64(value).map_or(serde_json::Value::Null, Into::into)
}

pub(super) fn step_of_key(key: &PropertyKey<'_>) -> Option<PathStep> {
    match key {
        PropertyKey::StaticIdentifier(name) => Some(PathStep::Key(name.name.as_str().to_owned())),
        PropertyKey::PrivateIdentifier(name) => Some(PathStep::Key(format!("#{}", name.name))),
        PropertyKey::StringLiteral(text) => Some(PathStep::Key(text.value.as_str().to_owned())),
        PropertyKey::NumericLiteral(number) => Some(PathStep::Index(number.value as u64)),
        _ => None,
    }
}

/// The variable at the start of a member chain.
pub(super) fn root_of(scoping: &Scoping, expression: &Expression<'_>) -> Option<SymbolId> {
    let mut at = plain(expression);
    loop {
        at = match at {
            Expression::Identifier(name) => {
                return roots::resolve_variable(scoping, name);
            }
            Expression::StaticMemberExpression(it) => plain(&it.object),
            Expression::ComputedMemberExpression(it) => plain(&it.object),
            _ => return None,
        }
    }
}
