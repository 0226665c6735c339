//! Assignment targets: variables, and members of objects.

use std::rc::Rc;

use oxc_ast::ast::{Expression, PropertyKey, SimpleAssignmentTarget};
use oxc_semantic::SymbolId;
use oxc_span::Span;
use pml_model::structure::PathStep;
use smallvec::smallvec;

use super::Walker;
use super::memory::has_sources;
use super::memory::state::ProgramState;
use super::syntax::{plain, root_of};
use crate::roots;
use crate::value::{AbstractValue, Closure, ObjectMember, ObjectRecord, RecordKind, one_of};

/// Target of an assignment.
#[derive(Clone)]
pub(super) enum AssignTarget<'a> {
    Variable(SymbolId),
    /// A member of an object; `root` is the variable at the start of the chain.
    Member {
        object: AbstractValue<'a>,
        key: MemberKey<'a>,
        root: Option<SymbolId>,
        direct: bool,
    },
    Nowhere,
}

/// Name of a member, as far as it is known.
#[derive(Clone)]
pub(super) enum MemberKey<'a> {
    Known(PathStep),
    Computed(AbstractValue<'a>),
}

#[derive(PartialEq, Eq, Clone, Copy)]
pub(super) enum WriteCertainty {
    Certain,
    Possible,
}

impl<'a> Walker<'a, '_> {
    pub(super) fn evaluate_property_key(&mut self, key: &'a PropertyKey<'a>) -> MemberKey<'a> {
        match key {
            PropertyKey::StaticIdentifier(name) => {
                MemberKey::Known(PathStep::Key(name.name.as_str().to_owned()))
            }
            PropertyKey::PrivateIdentifier(name) => {
                MemberKey::Known(PathStep::Key(format!("#{}", name.name)))
            }
            other => match other.as_expression() {
                Some(expression) => {
                    let value = self.evaluate(expression);
                    step_of(&value).map_or(MemberKey::Computed(value), MemberKey::Known)
                }
                None => MemberKey::Computed(AbstractValue::Unknown),
            },
        }
    }

    pub(super) fn assign_target(&mut self, target: &'a SimpleAssignmentTarget<'a>) -> AssignTarget<'a> {
        match target {
            SimpleAssignmentTarget::AssignmentTargetIdentifier(name) => {
                match roots::resolve_variable(self.input.scoping, name) {
                    Some(symbol) => AssignTarget::Variable(symbol),
                    None => {
                        self.read_free_name(name.name.as_str(), name.span);
                        AssignTarget::Nowhere
                    }
                }
            }
            SimpleAssignmentTarget::TSAsExpression(it) => self.assign_target_of(&it.expression),
            SimpleAssignmentTarget::TSSatisfiesExpression(it) => self.assign_target_of(&it.expression),
            SimpleAssignmentTarget::TSNonNullExpression(it) => self.assign_target_of(&it.expression),
            SimpleAssignmentTarget::TSTypeAssertion(it) => self.assign_target_of(&it.expression),
            SimpleAssignmentTarget::StaticMemberExpression(it) => {
                let object = self.evaluate(&it.object);
                self.member_target(
                    &it.object,
                    object,
                    MemberKey::Known(PathStep::Key(it.property.name.as_str().to_owned())),
                )
            }
            SimpleAssignmentTarget::PrivateFieldExpression(it) => {
                let object = self.evaluate(&it.object);
                self.member_target(
                    &it.object,
                    object,
                    MemberKey::Known(PathStep::Key(format!("#{}", it.field.name))),
                )
            }
            SimpleAssignmentTarget::ComputedMemberExpression(it) => {
                let object = self.evaluate(&it.object);
                let key = self.evaluate(&it.expression);
                let key = step_of(&key).map_or(MemberKey::Computed(key), MemberKey::Known);
                self.member_target(&it.object, object, key)
            }
        }
    }

    fn assign_target_of(&mut self, expression: &'a Expression<'a>) -> AssignTarget<'a> {
        match plain(expression) {
            Expression::Identifier(name) => roots::resolve_variable(self.input.scoping, name)
                .map_or(AssignTarget::Nowhere, AssignTarget::Variable),
            Expression::StaticMemberExpression(it) => {
                let object = self.evaluate(&it.object);
                self.member_target(
                    &it.object,
                    object,
                    MemberKey::Known(PathStep::Key(it.property.name.as_str().to_owned())),
                )
            }
            other => {
                self.evaluate(other);
                AssignTarget::Nowhere
            }
        }
    }

    fn member_target(
        &self,
        object: &'a Expression<'a>,
        value: AbstractValue<'a>,
        key: MemberKey<'a>,
    ) -> AssignTarget<'a> {
        let direct = matches!(plain(object), Expression::Identifier(_));
        AssignTarget::Member { object: value, key, root: root_of(self.input.scoping, object), direct }
    }

    pub(super) fn read_target(&mut self, spot: &AssignTarget<'a>, span: Span) -> AbstractValue<'a> {
        match spot {
            AssignTarget::Variable(symbol) => self.read_symbol(*symbol),
            AssignTarget::Member { object, key: MemberKey::Known(step), .. } => {
                self.read_member(object.clone(), step, span, span)
            }
            AssignTarget::Member { object, key: MemberKey::Computed(_), .. } => {
                self.memory.part(object, &PathStep::Any)
            }
            AssignTarget::Nowhere => AbstractValue::Unknown,
        }
    }

    pub(super) fn write_target(&mut self, spot: AssignTarget<'a>, value: AbstractValue<'a>, span: Span) {
        match spot {
            AssignTarget::Variable(symbol) => self.write_symbol(symbol, value),
            AssignTarget::Member { object, key, root, direct } => {
                self.write_member(&object, &key, root, direct, value, span);
            }
            AssignTarget::Nowhere => {}
        }
    }

    fn write_member(
        &mut self,
        object: &AbstractValue<'a>,
        key: &MemberKey<'a>,
        root: Option<SymbolId>,
        direct: bool,
        value: AbstractValue<'a>,
        span: Span,
    ) {
        match object {
            AbstractValue::Object(index) => match self.setter(*index, key) {
                Some(setter) => {
                    let this = Some(AbstractValue::Object(*index));
                    self.follow_call(&setter, smallvec![(value, span, false)], None, this);
                }
                None => put_into(&mut self.memory.state, *index, key, value, span, WriteCertainty::Certain),
            },
            AbstractValue::OneOf(values) => {
                for object in values.iter() {
                    if let AbstractValue::Object(index) = object {
                        put_into(
                            &mut self.memory.state,
                            *index,
                            key,
                            value.clone(),
                            span,
                            WriteCertainty::Possible,
                        );
                    }
                }
            }
            AbstractValue::Class(class) => {
                put_into(&mut self.memory.state, class.statics, key, value, span, WriteCertainty::Certain);
            }
            AbstractValue::Unknown
            | AbstractValue::Undefined
            | AbstractValue::Function(_)
            | AbstractValue::Global(_) => {}
            _ => {
                let Some(root) = root else { return };
                let mut record = ObjectRecord::default();
                match key {
                    MemberKey::Known(step) if direct => {
                        record.fields.push(ObjectMember { key: step.clone(), value, span, getter: false });
                    }
                    _ => record.extra.push(value),
                }
                self.add_to_variable(root, record);
            }
        }
    }

    /// Something is added to a value from outside: from now on the variable holds it with the addition.
    pub(super) fn add_to_variable(&mut self, variable: SymbolId, mut record: ObjectRecord<'a>) {
        record.spreads.push(self.read_symbol(variable));
        let object = self.memory.state.new_object(record);
        self.write_symbol(variable, AbstractValue::Object(object));
    }

    fn setter(&mut self, index: u32, key: &MemberKey<'a>) -> Option<Rc<Closure<'a>>> {
        let MemberKey::Known(step) = key else { return None };
        let record = Rc::clone(self.memory.state.object(index));
        let own = record.setters.iter().find(|(name, _)| name == step).map(|(_, setter)| Rc::clone(setter));
        match (&own, &record.kind) {
            (None, RecordKind::Instance(class)) => {
                self.inherited_setter(class, step, &AbstractValue::Object(index))
            }
            _ => own,
        }
    }
}

/// Stores a value in an object.
pub(super) fn put_into<'a>(
    state: &mut ProgramState<'a>,
    index: u32,
    key: &MemberKey<'a>,
    value: AbstractValue<'a>,
    span: Span,
    certainty: WriteCertainty,
) {
    match key {
        MemberKey::Known(step) => state.change(index, |record| {
            let member = record.fields.iter_mut().find(|member| member.key == *step);
            match member {
                Some(member) if certainty == WriteCertainty::Certain => {
                    member.value = value;
                    member.span = span;
                }
                Some(member) => member.value = one_of([member.value.clone(), value]),
                None => record.fields.push(ObjectMember { key: step.clone(), value, span, getter: false }),
            }
        }),
        MemberKey::Computed(name) => state.change(index, |record| {
            record.extra.push(value);
            if has_sources(name) {
                record.names.push(name.clone());
            }
        }),
    }
}

/// Path step named by a literal key.
pub(super) fn step_of(key: &AbstractValue<'_>) -> Option<PathStep> {
    let AbstractValue::Literal(literal) = key else { return None };
    match &literal.value {
        serde_json::Value::String(name) => Some(PathStep::Key(name.clone())),
        serde_json::Value::Number(number) => {
            Some(number.as_u64().map_or_else(|| PathStep::Key(number.to_string()), PathStep::Index))
        }
        serde_json::Value::Bool(flag) => Some(PathStep::Key(flag.to_string())),
        serde_json::Value::Null => Some(PathStep::Key("null".to_owned())),
        _ => None,
    }
}
