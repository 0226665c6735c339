//! Which links of an optional chain can be tested by a probe.
//!
//! A chain `a?.b.c?.(x)` is a spine of member accesses and calls down to its head `a`. A link with `?.` that finds null
//! or undefined ends the whole chain. Testing a link moves the spine below it out of the chain, into an argument. So
//! every `?.` further down must be tested too, to know whether the chain ended there.

use oxc_ast::ast::{CallExpression, ChainElement, Expression};
use oxc_span::Span;

/// Whether there is a `?.` between here and the head.
pub(super) fn has_optional(spine: &Expression<'_>) -> bool {
    match spine {
        Expression::CallExpression(it) => it.optional || has_optional(&it.callee),
        Expression::StaticMemberExpression(it) => it.optional || has_optional(&it.object),
        Expression::ComputedMemberExpression(it) => it.optional || has_optional(&it.object),
        Expression::PrivateFieldExpression(it) => it.optional || has_optional(&it.object),
        _ => false,
    }
}

/// The call that ends an optional chain.
pub(super) fn last_call(chain: &Expression<'_>) -> Option<Span> {
    match chain {
        Expression::ChainExpression(it) => match &it.expression {
            ChainElement::CallExpression(call) => Some(call.span),
            _ => None,
        },
        _ => None,
    }
}

/// Whether every `?.` between here and the head can be tested.
pub(super) fn is_testable(spine: &Expression<'_>) -> bool {
    match spine {
        Expression::CallExpression(it) => is_testable_call(it),
        Expression::StaticMemberExpression(it) => is_testable(&it.object),
        Expression::ComputedMemberExpression(it) => is_testable(&it.object),
        Expression::PrivateFieldExpression(it) => is_testable(&it.object),
        _ => true,
    }
}

/// The same for a call and everything below it.
pub(super) fn is_testable_call(call: &CallExpression<'_>) -> bool {
    (!call.optional || is_testable_callee(&call.callee)) && is_testable(&call.callee)
}

/// The probe reads the member itself to preserve `this`. It cannot read a private member or one of `super`, and a
/// computed key must not be evaluated when the chain ends before it.
fn is_testable_callee(callee: &Expression<'_>) -> bool {
    match callee {
        Expression::StaticMemberExpression(it) => !matches!(it.object, Expression::Super(_)),
        Expression::ComputedMemberExpression(it) => {
            !matches!(it.object, Expression::Super(_))
                && (it.expression.is_literal() || !has_optional(callee))
        }
        Expression::PrivateFieldExpression(_) | Expression::ChainExpression(_) => false,
        _ => true,
    }
}
