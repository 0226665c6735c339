//! Objects and arrays of the program.

use std::rc::Rc;

use oxc_ast::ast::{
    ArrayExpression, ArrayExpressionElement, Expression, ObjectExpression, ObjectPropertyKind, PropertyKind,
    TSEnumDeclaration, TSEnumMemberName,
};
use oxc_span::{GetSpan, Span};
use pml_model::structure::PathStep;

use rustc_hash::FxHashSet;

use super::Walker;
use super::places::MemberKey;
use super::syntax::{number, plain};
use crate::value::{
    AbstractValue, DistinctValues, FunctionCode, ObjectMember, ObjectRecord, RecordKind, one_of,
};

/// Maximum length of a list after spreading another into it; beyond it the other is kept as a whole.
const MAX_SPREAD_ITEMS: usize = 10_000;

impl<'a> Walker<'a, '_> {
    pub(super) fn array(&mut self, it: &'a ArrayExpression<'a>) -> AbstractValue<'a> {
        let mut record =
            ObjectRecord { kind: RecordKind::Array, written: Some(it.span), ..ObjectRecord::default() };
        for element in &it.elements {
            match element {
                ArrayExpressionElement::SpreadElement(spread) => {
                    let value = self.evaluate(&spread.argument);
                    self.uses.note_iteration(&value);
                    self.append_all(&mut record, &value);
                }
                ArrayExpressionElement::Elision(_) => append(&mut record, AbstractValue::Undefined, it.span),
                other => {
                    if let Some(expression) = other.as_expression() {
                        let value = self.evaluate(expression);
                        append(&mut record, value, plain(expression).span());
                    }
                }
            }
        }
        self.memory.allocate(record)
    }

    /// Appends the items of another array.
    pub(super) fn append_all(&mut self, record: &mut ObjectRecord<'a>, items: &AbstractValue<'a>) {
        record.written = None;
        match items {
            AbstractValue::Object(index)
                if self.memory.state.object(*index).is_array()
                    && self.memory.state.object(*index).is_closed() =>
            {
                let other = Rc::clone(self.memory.state.object(*index));
                self.memory.budget().spend(2 * other.fields.len());
                if record.fields.len() + other.fields.len() > MAX_SPREAD_ITEMS {
                    let whole = self.memory.freeze(items);
                    return record.spreads.push(whole);
                }
                other.fields.iter().for_each(|member| append(record, member.value.clone(), member.span));
            }
            AbstractValue::Object(_) => {
                let item = self.memory.part(items, &PathStep::Any);
                record.extra.push(item);
            }
            other => record.spreads.push(other.clone()),
        }
    }

    pub(super) fn object(&mut self, it: &'a ObjectExpression<'a>) -> AbstractValue<'a> {
        let fields = Vec::with_capacity(it.properties.len());
        let mut record = ObjectRecord { written: Some(it.span), fields, ..ObjectRecord::default() };
        let (mut methods, mut setters) = (Vec::new(), Vec::new());
        let mut keys = KeySet::default();
        for property in &it.properties {
            match property {
                ObjectPropertyKind::SpreadProperty(spread) => {
                    let value = self.evaluate(&spread.argument);
                    self.spread_into(&mut record, &value);
                    keys = KeySet::default();
                }
                ObjectPropertyKind::ObjectProperty(property) => {
                    let key = self.evaluate_property_key(&property.key);
                    if property.kind == PropertyKind::Set {
                        if let MemberKey::Known(step) = key {
                            setters.push((step, &property.value));
                        }
                        continue;
                    }
                    let getter = property.kind == PropertyKind::Get;
                    let is_function = matches!(
                        plain(&property.value),
                        Expression::FunctionExpression(_) | Expression::ArrowFunctionExpression(_)
                    );
                    let value =
                        if is_function { AbstractValue::Unknown } else { self.evaluate(&property.value) };
                    match key {
                        MemberKey::Known(key) => {
                            if keys.may_have(&record, &key) {
                                record.fields.retain(|member| member.key != key);
                            }
                            let span = plain(&property.value).span();
                            if is_function {
                                methods.push((Some(key.clone()), &property.value));
                            }
                            record.fields.push(ObjectMember { key, value, span, getter });
                        }
                        MemberKey::Computed(name) => {
                            record.extra.push(value);
                            record.names.push(name);
                            record.written = None;
                            if is_function {
                                methods.push((None, &property.value));
                            }
                        }
                    }
                }
            }
        }
        let object = self.memory.state.new_object(record);
        self.bind_methods(object, methods);
        for (key, setter) in setters {
            if let Expression::FunctionExpression(function) = plain(setter)
                && let AbstractValue::Function(closure) = self.make_closure_with(
                    FunctionCode::Function(function),
                    Some(AbstractValue::Object(object)),
                    None,
                )
            {
                self.memory.state.change(object, |record| record.setters.push((key, closure)));
            }
        }
        AbstractValue::Object(object)
    }

    /// Binds `this` in the functions of an object literal to the object.
    fn bind_methods(&mut self, object: u32, methods: Vec<(Option<PathStep>, &'a Expression<'a>)>) {
        if methods.is_empty() {
            return;
        }
        let written = self.memory.state.object(object).written;
        for (key, expression) in methods {
            let closure = match plain(expression) {
                Expression::FunctionExpression(function) => self.make_closure_with(
                    FunctionCode::Function(function),
                    Some(AbstractValue::Object(object)),
                    None,
                ),
                Expression::ArrowFunctionExpression(arrow) => self.make_closure(FunctionCode::Arrow(arrow)),
                _ => continue,
            };
            if let Some(key) = key {
                self.memory.state.change(object, |record| {
                    record.written = written;
                    if let Some(member) = record.fields.iter_mut().find(|member| member.key == key) {
                        member.value = closure;
                    }
                });
            }
        }
    }

    /// Spread of `{...value}`.
    pub(super) fn spread_into(&mut self, record: &mut ObjectRecord<'a>, value: &AbstractValue<'a>) {
        record.written = None;
        match value {
            AbstractValue::Object(index) => {
                let other = Rc::clone(self.memory.state.object(*index));
                let view = self.memory.freeze(value);
                let AbstractValue::Record(view) = view else { return };
                self.memory.budget().spend(record.size() + other.size());
                if self.memory.budget().is_spent() {
                    return;
                }
                if !other.is_closed() {
                    self.overwrite_by_spread(record, value);
                }
                let mut keys = KeySet::default();
                for member in &other.fields {
                    if keys.may_have(record, &member.key) {
                        record.fields.retain(|old| old.key != member.key);
                    }
                    record.fields.push(member.clone());
                }
                extend(&mut record.extra, &view.extra);
                extend(&mut record.spreads, &view.spreads);
                extend(&mut record.names, &view.names);
            }
            AbstractValue::Undefined | AbstractValue::Literal(_) => {}
            other => {
                self.overwrite_by_spread(record, other);
                record.spreads.push(other.clone());
            }
        }
    }

    /// A spread may overwrite the members before it.
    fn overwrite_by_spread(&mut self, record: &mut ObjectRecord<'a>, spread: &AbstractValue<'a>) {
        for member in &mut record.fields {
            member.value = one_of([member.value.clone(), self.memory.part(spread, &member.key)]);
        }
    }

    pub(super) fn enumeration(&mut self, it: &'a TSEnumDeclaration<'a>) -> AbstractValue<'a> {
        let mut record = ObjectRecord::default();
        let mut next = Some(0.0);
        for member in &it.body.members {
            let key = match &member.id {
                TSEnumMemberName::Identifier(name) => name.name.as_str().to_owned(),
                TSEnumMemberName::String(text) | TSEnumMemberName::ComputedString(text) => {
                    text.value.as_str().to_owned()
                }
                TSEnumMemberName::ComputedTemplateString(_) => continue,
            };
            let value = match &member.initializer {
                Some(initializer) => self.evaluate(initializer),
                None => next
                    .map_or(AbstractValue::Unknown, |next| AbstractValue::folded(number(next), member.span)),
            };
            next = match &value {
                AbstractValue::Literal(literal) => literal.value.as_f64().map(|value| value + 1.0),
                _ => None,
            };
            // A member of an enum is a name, not a value that a caller might vary.
            let value = match value {
                AbstractValue::Literal(literal) => AbstractValue::folded(literal.value.clone(), literal.span),
                other => other,
            };
            if let Some(number) = next.map(|next| next - 1.0) {
                let name = AbstractValue::folded(key.as_str(), member.span);
                let key = PathStep::Index(number as u64);
                record.fields.push(ObjectMember { key, value: name, span: member.span, getter: false });
            }
            record.fields.push(ObjectMember {
                key: PathStep::Key(key),
                value,
                span: member.span,
                getter: false,
            });
        }
        self.memory.allocate(record)
    }
}

/// Names of the members of a large object, while members are added.
#[derive(Default)]
struct KeySet {
    known: FxHashSet<PathStep>,
}

impl KeySet {
    /// Whether `record` may already have the member `key`.
    fn may_have(&mut self, record: &ObjectRecord<'_>, key: &PathStep) -> bool {
        if record.fields.len() < 64 {
            return true;
        }
        if self.known.is_empty() {
            self.known.extend(record.fields.iter().map(|member| member.key.clone()));
        }
        !self.known.insert(key.clone())
    }
}

pub(super) fn append<'a>(record: &mut ObjectRecord<'a>, value: AbstractValue<'a>, span: Span) {
    if record.is_closed() {
        let key = PathStep::Index(record.fields.len() as u64);
        record.fields.push(ObjectMember { key, value, span, getter: false });
    } else {
        record.extra.push(value);
    }
}

/// Appends values; beyond some number, without duplicates.
fn extend<'a>(values: &mut Vec<AbstractValue<'a>>, more: &[AbstractValue<'a>]) {
    values.extend(more.iter().cloned());
    if values.len() > 64 {
        let mut distinct = DistinctValues::default();
        values.iter().for_each(|value| distinct.add(value));
        *values = distinct.into_values().into_vec();
    }
}
