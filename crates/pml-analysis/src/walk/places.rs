//! The places values are put into: variables, and members of objects.

use std::rc::Rc;

use oxc_ast::ast::{Expression, PropertyKey, SimpleAssignmentTarget};
use oxc_semantic::SymbolId;
use oxc_span::Span;
use pml_model::structure::Step;
use smallvec::smallvec;

use super::Walk;
use super::memory::has_sources;
use super::memory::state::State;
use super::syntax::{plain, root_of};
use crate::roots;
use crate::value::{Closure, Kind, Member, Record, Value, one_of};

/// Where a value is put.
#[derive(Clone)]
pub(super) enum Spot<'a> {
    Variable(SymbolId),
    /// A member of an object; `root` is the variable at the bottom of the chain.
    Member {
        object: Value<'a>,
        key: Key<'a>,
        root: Option<SymbolId>,
        direct: bool,
    },
    Nowhere,
}

/// The name of a member, as far as it is known.
#[derive(Clone)]
pub(super) enum Key<'a> {
    Known(Step),
    Computed(Value<'a>),
}

#[derive(PartialEq, Eq, Clone, Copy)]
pub(super) enum Certainty {
    Certain,
    Possible,
}

impl<'a> Walk<'a, '_> {
    pub(super) fn key(&mut self, key: &'a PropertyKey<'a>) -> Key<'a> {
        match key {
            PropertyKey::StaticIdentifier(name) => Key::Known(Step::Key(name.name.as_str().to_owned())),
            PropertyKey::PrivateIdentifier(name) => Key::Known(Step::Key(format!("#{}", name.name))),
            other => match other.as_expression() {
                Some(expression) => {
                    let value = self.value(expression);
                    step_of(&value).map_or(Key::Computed(value), Key::Known)
                }
                None => Key::Computed(Value::Unknown),
            },
        }
    }

    pub(super) fn place(&mut self, target: &'a SimpleAssignmentTarget<'a>) -> Spot<'a> {
        match target {
            SimpleAssignmentTarget::AssignmentTargetIdentifier(name) => {
                match roots::variable(self.input.scoping, name) {
                    Some(symbol) => Spot::Variable(symbol),
                    None => {
                        self.free_name(name.name.as_str(), name.span);
                        Spot::Nowhere
                    }
                }
            }
            SimpleAssignmentTarget::TSAsExpression(it) => self.place_of(&it.expression),
            SimpleAssignmentTarget::TSSatisfiesExpression(it) => self.place_of(&it.expression),
            SimpleAssignmentTarget::TSNonNullExpression(it) => self.place_of(&it.expression),
            SimpleAssignmentTarget::TSTypeAssertion(it) => self.place_of(&it.expression),
            SimpleAssignmentTarget::StaticMemberExpression(it) => {
                let object = self.value(&it.object);
                self.member_spot(
                    &it.object,
                    object,
                    Key::Known(Step::Key(it.property.name.as_str().to_owned())),
                )
            }
            SimpleAssignmentTarget::PrivateFieldExpression(it) => {
                let object = self.value(&it.object);
                self.member_spot(&it.object, object, Key::Known(Step::Key(format!("#{}", it.field.name))))
            }
            SimpleAssignmentTarget::ComputedMemberExpression(it) => {
                let object = self.value(&it.object);
                let key = self.value(&it.expression);
                let key = step_of(&key).map_or(Key::Computed(key), Key::Known);
                self.member_spot(&it.object, object, key)
            }
        }
    }

    fn place_of(&mut self, expression: &'a Expression<'a>) -> Spot<'a> {
        match plain(expression) {
            Expression::Identifier(name) => {
                roots::variable(self.input.scoping, name).map_or(Spot::Nowhere, Spot::Variable)
            }
            Expression::StaticMemberExpression(it) => {
                let object = self.value(&it.object);
                self.member_spot(
                    &it.object,
                    object,
                    Key::Known(Step::Key(it.property.name.as_str().to_owned())),
                )
            }
            other => {
                self.value(other);
                Spot::Nowhere
            }
        }
    }

    fn member_spot(&self, object: &'a Expression<'a>, value: Value<'a>, key: Key<'a>) -> Spot<'a> {
        let direct = matches!(plain(object), Expression::Identifier(_));
        Spot::Member { object: value, key, root: root_of(self.input.scoping, object), direct }
    }

    pub(super) fn get(&mut self, spot: &Spot<'a>, span: Span) -> Value<'a> {
        match spot {
            Spot::Variable(symbol) => self.read_symbol(*symbol),
            Spot::Member { object, key: Key::Known(step), .. } => {
                self.member(object.clone(), step, span, span)
            }
            Spot::Member { object, key: Key::Computed(_), .. } => self.memory.part(object, &Step::Any),
            Spot::Nowhere => Value::Unknown,
        }
    }

    pub(super) fn put(&mut self, spot: Spot<'a>, value: Value<'a>, span: Span) {
        match spot {
            Spot::Variable(symbol) => self.write_symbol(symbol, value),
            Spot::Member { object, key, root, direct } => {
                self.put_member(&object, &key, root, direct, value, span);
            }
            Spot::Nowhere => {}
        }
    }

    fn put_member(
        &mut self,
        object: &Value<'a>,
        key: &Key<'a>,
        root: Option<SymbolId>,
        direct: bool,
        value: Value<'a>,
        span: Span,
    ) {
        match object {
            Value::Object(index) => match self.setter(*index, key) {
                Some(setter) => {
                    let this = Some(Value::Object(*index));
                    self.follow(&setter, smallvec![(value, span, false)], None, this);
                }
                None => put_into(&mut self.memory.state, *index, key, value, span, Certainty::Certain),
            },
            Value::OneOf(values) => {
                for object in values.iter() {
                    if let Value::Object(index) = object {
                        put_into(
                            &mut self.memory.state,
                            *index,
                            key,
                            value.clone(),
                            span,
                            Certainty::Possible,
                        );
                    }
                }
            }
            Value::Class(class) => {
                put_into(&mut self.memory.state, class.statics, key, value, span, Certainty::Certain);
            }
            Value::Unknown | Value::Undefined | Value::Function(_) | Value::Global(_) => {}
            _ => {
                let Some(root) = root else { return };
                let mut record = Record::default();
                match key {
                    Key::Known(step) if direct => {
                        record.fields.push(Member { key: step.clone(), value, span, getter: false });
                    }
                    _ => record.extra.push(value),
                }
                self.add_to_variable(root, record);
            }
        }
    }

    /// Something of the outside is added to: from here on the variable holds it with the addition.
    pub(super) fn add_to_variable(&mut self, variable: SymbolId, mut record: Record<'a>) {
        record.spreads.push(self.read_symbol(variable));
        let object = self.memory.state.new_object(record);
        self.write_symbol(variable, Value::Object(object));
    }

    fn setter(&mut self, index: u32, key: &Key<'a>) -> Option<Rc<Closure<'a>>> {
        let Key::Known(step) = key else { return None };
        let record = Rc::clone(self.memory.state.object(index));
        let own = record.setters.iter().find(|(name, _)| name == step).map(|(_, setter)| Rc::clone(setter));
        match (&own, &record.kind) {
            (None, Kind::Instance(class)) => self.inherited_setter(class, step, &Value::Object(index)),
            _ => own,
        }
    }
}

/// Puts a value into an object.
pub(super) fn put_into<'a>(
    state: &mut State<'a>,
    index: u32,
    key: &Key<'a>,
    value: Value<'a>,
    span: Span,
    certainty: Certainty,
) {
    match key {
        Key::Known(step) => state.change(index, |record| {
            let member = record.fields.iter_mut().find(|member| member.key == *step);
            match member {
                Some(member) if certainty == Certainty::Certain => {
                    member.value = value;
                    member.span = span;
                }
                Some(member) => member.value = one_of([member.value.clone(), value]),
                None => record.fields.push(Member { key: step.clone(), value, span, getter: false }),
            }
        }),
        Key::Computed(name) => state.change(index, |record| {
            record.extra.push(value);
            if has_sources(name) {
                record.names.push(name.clone());
            }
        }),
    }
}

/// The member a literal key names.
pub(super) fn step_of(key: &Value<'_>) -> Option<Step> {
    let Value::Literal(literal) = key else { return None };
    match &literal.value {
        serde_json::Value::String(name) => Some(Step::Key(name.clone())),
        serde_json::Value::Number(number) => {
            Some(number.as_u64().map_or_else(|| Step::Key(number.to_string()), Step::Index))
        }
        serde_json::Value::Bool(flag) => Some(Step::Key(flag.to_string())),
        serde_json::Value::Null => Some(Step::Key("null".to_owned())),
        _ => None,
    }
}
