//! Destructuring: binds parts of a value to names.

use std::rc::Rc;

use oxc_ast::ast::{
    AssignmentTarget, AssignmentTargetMaybeDefault, AssignmentTargetProperty, BindingPattern, Expression,
};
use oxc_span::{GetSpan, Span};
use pml_model::structure::PathStep;

use super::Walker;
use super::places::MemberKey;
use crate::roots;
use crate::value::{AbstractValue, ObjectMember, ObjectRecord, RecordKind, one_of};

impl<'a> Walker<'a, '_> {
    /// Binds a declaration with an initializer; aliases of tools are made here.
    pub(super) fn bind_declared(
        &mut self,
        pattern: &'a BindingPattern<'a>,
        value: AbstractValue<'a>,
        span: Span,
    ) {
        let stays = match pattern {
            BindingPattern::BindingIdentifier(name) => {
                name.symbol_id.get().is_some_and(|symbol| self.facts.roots.aliases.contains_key(&symbol))
            }
            BindingPattern::ObjectPattern(_) => true,
            _ => false,
        };
        let value = if stays { value } else { self.note_escape(value, span) };
        self.bind(pattern, value);
    }

    pub(super) fn bind(&mut self, pattern: &'a BindingPattern<'a>, value: AbstractValue<'a>) {
        match pattern {
            BindingPattern::BindingIdentifier(name) => {
                if let Some(symbol) = name.symbol_id.get() {
                    self.write_symbol(symbol, value);
                }
            }
            BindingPattern::AssignmentPattern(it) => {
                let value = self.or_default(value, &it.right);
                self.bind(&it.left, value);
            }
            BindingPattern::ObjectPattern(it) => {
                let mut taken = Vec::new();
                for property in &it.properties {
                    let key = self.evaluate_property_key(&property.key);
                    let part = self.take_member(&value, &key, property.key.span(), &mut taken);
                    let part = self.keep_alias(part, &property.value);
                    self.bind(&property.value, part);
                }
                if let Some(rest) = &it.rest {
                    let left = self.without_members(&value, &taken, rest.span);
                    self.bind(&rest.argument, left);
                }
            }
            BindingPattern::ArrayPattern(it) => {
                let value = self.note_escape(value, it.span);
                self.uses.note_iteration(&value);
                for (index, element) in it.elements.iter().enumerate() {
                    if let Some(element) = element {
                        let part = self.memory.part(&value, &PathStep::Index(index as u64));
                        self.bind(element, part);
                    }
                }
                if let Some(rest) = &it.rest {
                    let left = self.items_after(&value, it.elements.len());
                    self.bind(&rest.argument, left);
                }
            }
        }
    }

    /// A tool taken out by a pattern stays an alias only where the bound name keeps it.
    fn keep_alias(&mut self, value: AbstractValue<'a>, pattern: &'a BindingPattern<'a>) -> AbstractValue<'a> {
        let keeps = match pattern {
            BindingPattern::BindingIdentifier(name) => {
                name.symbol_id.get().is_some_and(|symbol| self.facts.roots.aliases.contains_key(&symbol))
            }
            BindingPattern::ObjectPattern(_) => true,
            _ => false,
        };
        if keeps { value } else { self.note_escape(value, pattern.span()) }
    }

    fn take_member(
        &mut self,
        value: &AbstractValue<'a>,
        key: &MemberKey<'a>,
        span: Span,
        taken: &mut Vec<PathStep>,
    ) -> AbstractValue<'a> {
        match key {
            MemberKey::Known(step) => {
                taken.push(step.clone());
                self.read_member(value.clone(), step, span, span)
            }
            MemberKey::Computed(name) => self.read_computed_member(value.clone(), name, span, span),
        }
    }

    pub(super) fn or_default(
        &mut self,
        value: AbstractValue<'a>,
        default: &'a Expression<'a>,
    ) -> AbstractValue<'a> {
        if matches!(value, AbstractValue::Undefined) {
            return self.evaluate(default);
        }
        let fallback = self.evaluate_maybe(default);
        if let AbstractValue::Parameter(path) = &value {
            self.uses.note_default(path, &fallback);
        }
        one_of([value, fallback])
    }

    /// `{a, ...rest}`: the remaining members.
    fn without_members(
        &mut self,
        value: &AbstractValue<'a>,
        taken: &[PathStep],
        span: Span,
    ) -> AbstractValue<'a> {
        match value {
            AbstractValue::Mcp | AbstractValue::Server(_) | AbstractValue::Capabilities => {
                self.note_escape(value.clone(), span)
            }
            AbstractValue::Object(index) => {
                let mut record = ObjectRecord::clone(self.memory.state.object(*index));
                record.fields.retain(|member| !taken.contains(&member.key));
                record.written = None;
                self.memory.allocate(record)
            }
            AbstractValue::Record(record) => {
                let mut record = ObjectRecord::clone(record);
                record.fields.retain(|member| !taken.contains(&member.key));
                record.written = None;
                AbstractValue::Record(Rc::new(record))
            }
            other => self.memory.computed(span, std::slice::from_ref(other)),
        }
    }

    /// `[a, ...rest]`: the items from `from` on.
    pub(super) fn items_after(&mut self, value: &AbstractValue<'a>, from: usize) -> AbstractValue<'a> {
        let known = match value {
            AbstractValue::Object(index) => Some(Rc::clone(self.memory.state.object(*index))),
            AbstractValue::Record(record) => Some(Rc::clone(record)),
            _ => None,
        };
        let mut left = ObjectRecord { kind: RecordKind::Array, ..ObjectRecord::default() };
        match known {
            Some(record) if record.is_array() => {
                for member in record.fields.iter().skip(from) {
                    let key = PathStep::Index(left.fields.len() as u64);
                    left.fields.push(ObjectMember { key, ..member.clone() });
                }
                left.extra.clone_from(&record.extra);
                left.spreads.clone_from(&record.spreads);
            }
            _ => {
                let item = self.memory.part(value, &PathStep::Any);
                left.extra.push(item);
            }
        }
        self.memory.allocate(left)
    }

    /// Destructuring assignment to existing targets.
    pub(super) fn assign(&mut self, target: &'a AssignmentTarget<'a>, value: AbstractValue<'a>) {
        match target {
            AssignmentTarget::ArrayAssignmentTarget(it) => {
                self.uses.note_iteration(&value);
                for (index, element) in it.elements.iter().enumerate() {
                    if let Some(element) = element {
                        let part = self.memory.part(&value, &PathStep::Index(index as u64));
                        self.assign_maybe(element, part);
                    }
                }
                if let Some(rest) = &it.rest {
                    let left = self.items_after(&value, it.elements.len());
                    self.assign(&rest.target, left);
                }
            }
            AssignmentTarget::ObjectAssignmentTarget(it) => {
                let mut taken = Vec::new();
                for property in &it.properties {
                    self.assign_property(property, &value, &mut taken);
                }
                if let Some(rest) = &it.rest {
                    let left = self.without_members(&value, &taken, rest.span);
                    self.assign(&rest.target, left);
                }
            }
            simple => {
                if let Some(simple) = simple.as_simple_assignment_target() {
                    let place = self.assign_target(simple);
                    let value = self.note_escape(value, simple.span());
                    self.write_target(place, value, simple.span());
                }
            }
        }
    }

    fn assign_property(
        &mut self,
        it: &'a AssignmentTargetProperty<'a>,
        value: &AbstractValue<'a>,
        taken: &mut Vec<PathStep>,
    ) {
        match it {
            AssignmentTargetProperty::AssignmentTargetPropertyIdentifier(it) => {
                let step = PathStep::Key(it.binding.name.as_str().to_owned());
                let part = self.read_member(value.clone(), &step, it.span, it.span);
                taken.push(step);
                let part = match &it.init {
                    Some(default) => self.or_default(part, default),
                    None => part,
                };
                let part = self.note_escape(part, it.span);
                if let Some(symbol) = roots::resolve_variable(self.input.scoping, &it.binding) {
                    self.write_symbol(symbol, part);
                }
            }
            AssignmentTargetProperty::AssignmentTargetPropertyProperty(it) => {
                let key = self.evaluate_property_key(&it.name);
                let part = self.take_member(value, &key, it.span, taken);
                self.assign_maybe(&it.binding, part);
            }
        }
    }

    fn assign_maybe(&mut self, target: &'a AssignmentTargetMaybeDefault<'a>, value: AbstractValue<'a>) {
        match target {
            AssignmentTargetMaybeDefault::AssignmentTargetWithDefault(it) => {
                let value = self.or_default(value, &it.init);
                self.assign(&it.binding, value);
            }
            other => {
                if let Some(target) = other.as_assignment_target() {
                    self.assign(target, value);
                }
            }
        }
    }
}
