//! Objects and arrays of the program, and the places values are put into.

use std::rc::Rc;

use oxc_ast::ast::{
    ArrayExpression, ArrayExpressionElement, Expression, ObjectExpression, ObjectPropertyKind, PropertyKey,
    PropertyKind, SimpleAssignmentTarget, TSEnumDeclaration, TSEnumMemberName,
};
use oxc_semantic::SymbolId;
use oxc_span::{GetSpan, Span};
use pml_model::structure::Step;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::smallvec;

use super::Walk;
use super::budget::Seen;
use super::expression::{number, plain};
use super::value::{Closure, Distinct, FunctionCode, Kind, Member, Path, Record, Value, one_of};
use crate::roots;

/// How deep objects within objects are frozen.
const MAX_NESTED_OBJECTS: usize = 40;
/// A list that would become longer by spreading another into it keeps the other as a whole.
const MAX_SPREAD_ITEMS: usize = 10_000;

/// What is remembered while a value is frozen.
#[derive(Default)]
pub(super) struct Freezing<'a> {
    /// The objects we are in.
    open: Vec<u32>,
    /// Objects that are held several times are frozen once.
    done: FxHashMap<u32, Value<'a>>,
}

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

impl<'a> Walk<'a, '_> {
    pub(super) fn array(&mut self, it: &'a ArrayExpression<'a>) -> Value<'a> {
        let mut record = Record { kind: Kind::Array, written: Some(it.span), ..Record::default() };
        for element in &it.elements {
            match element {
                ArrayExpressionElement::SpreadElement(spread) => {
                    let value = self.value(&spread.argument);
                    self.uses.iterated(&value);
                    self.append_all(&mut record, &value);
                }
                ArrayExpressionElement::Elision(_) => append(&mut record, Value::Undefined, it.span),
                other => {
                    if let Some(expression) = other.as_expression() {
                        let value = self.value(expression);
                        append(&mut record, value, plain(expression).span());
                    }
                }
            }
        }
        Value::Object(self.state.new_object(record))
    }

    /// Appends the items of another array.
    pub(super) fn append_all(&mut self, record: &mut Record<'a>, items: &Value<'a>) {
        record.written = None;
        match items {
            Value::Object(index)
                if self.state.object(*index).is_array() && self.state.object(*index).closed() =>
            {
                let other = Rc::clone(self.state.object(*index));
                self.state.budget.spend(2 * other.fields.len());
                if record.fields.len() + other.fields.len() > MAX_SPREAD_ITEMS {
                    let whole = self.frozen(items);
                    return record.spreads.push(whole);
                }
                other.fields.iter().for_each(|member| append(record, member.value.clone(), member.span));
            }
            Value::Object(_) => {
                let item = self.part(items, &Step::Any);
                record.extra.push(item);
            }
            other => record.spreads.push(other.clone()),
        }
    }

    pub(super) fn object(&mut self, it: &'a ObjectExpression<'a>) -> Value<'a> {
        let fields = Vec::with_capacity(it.properties.len());
        let mut record = Record { written: Some(it.span), fields, ..Record::default() };
        let (mut methods, mut setters) = (Vec::new(), Vec::new());
        let mut keys = Keys::default();
        for property in &it.properties {
            match property {
                ObjectPropertyKind::SpreadProperty(spread) => {
                    let value = self.value(&spread.argument);
                    self.spread_into(&mut record, &value);
                    keys = Keys::default();
                }
                ObjectPropertyKind::ObjectProperty(property) => {
                    let key = self.key(&property.key);
                    if property.kind == PropertyKind::Set {
                        if let Key::Known(step) = key {
                            setters.push((step, &property.value));
                        }
                        continue;
                    }
                    let getter = property.kind == PropertyKind::Get;
                    let is_function = matches!(
                        plain(&property.value),
                        Expression::FunctionExpression(_) | Expression::ArrowFunctionExpression(_)
                    );
                    let value = if is_function { Value::Unknown } else { self.value(&property.value) };
                    match key {
                        Key::Known(key) => {
                            if keys.may_have(&record, &key) {
                                record.fields.retain(|member| member.key != key);
                            }
                            let span = plain(&property.value).span();
                            if is_function {
                                methods.push((Some(key.clone()), &property.value));
                            }
                            record.fields.push(Member { key, value, span, getter });
                        }
                        Key::Computed(name) => {
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
        let object = self.state.new_object(record);
        self.methods(object, methods);
        for (key, setter) in setters {
            if let Expression::FunctionExpression(function) = plain(setter)
                && let Value::Function(closure) =
                    self.closure_of(FunctionCode::Function(function), Some(Value::Object(object)), None)
            {
                self.state.change(object, |record| record.setters.push((key, closure)));
            }
        }
        Value::Object(object)
    }

    /// Functions of an object literal know the object as `this`.
    fn methods(&mut self, object: u32, methods: Vec<(Option<Step>, &'a Expression<'a>)>) {
        if methods.is_empty() {
            return;
        }
        let written = self.state.object(object).written;
        for (key, expression) in methods {
            let closure = match plain(expression) {
                Expression::FunctionExpression(function) => {
                    self.closure_of(FunctionCode::Function(function), Some(Value::Object(object)), None)
                }
                Expression::ArrowFunctionExpression(arrow) => self.closure(FunctionCode::Arrow(arrow)),
                _ => continue,
            };
            if let Some(key) = key {
                self.state.change(object, |record| {
                    record.written = written;
                    if let Some(member) = record.fields.iter_mut().find(|member| member.key == key) {
                        member.value = closure;
                    }
                });
            }
        }
    }

    /// `{...value}`.
    pub(super) fn spread_into(&mut self, record: &mut Record<'a>, value: &Value<'a>) {
        record.written = None;
        match value {
            Value::Object(index) => {
                let other = Rc::clone(self.state.object(*index));
                let view = self.frozen(value);
                let Value::Record(view) = view else { return };
                self.state.budget.spend(record.size() + other.size());
                if self.state.budget.is_spent() {
                    return;
                }
                if !other.closed() {
                    self.unknown_spread(record, value);
                }
                let mut keys = Keys::default();
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
            Value::Undefined | Value::Literal(_) => {}
            other => {
                self.unknown_spread(record, other);
                record.spreads.push(other.clone());
            }
        }
    }

    /// Members that stand before a spread may be overwritten by it.
    fn unknown_spread(&mut self, record: &mut Record<'a>, spread: &Value<'a>) {
        for member in &mut record.fields {
            member.value = one_of([member.value.clone(), self.part(spread, &member.key)]);
        }
    }

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

    pub(super) fn enumeration(&mut self, it: &'a TSEnumDeclaration<'a>) -> Value<'a> {
        let mut record = Record::default();
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
                Some(initializer) => self.value(initializer),
                None => next.map_or(Value::Unknown, |next| Value::folded(number(next), member.span)),
            };
            next = match &value {
                Value::Literal(literal) => literal.value.as_f64().map(|value| value + 1.0),
                _ => None,
            };
            // A member of an enumeration is a name, not a value somebody might vary.
            let value = match value {
                Value::Literal(literal) => Value::folded(literal.value.clone(), literal.span),
                other => other,
            };
            if let Some(number) = next.map(|next| next - 1.0) {
                let name = Value::folded(key.as_str(), member.span);
                let key = Step::Index(number as u64);
                record.fields.push(Member { key, value: name, span: member.span, getter: false });
            }
            record.fields.push(Member { key: Step::Key(key), value, span: member.span, getter: false });
        }
        Value::Object(self.state.new_object(record))
    }

    /// The value as it is now.
    pub(super) fn frozen(&mut self, value: &Value<'a>) -> Value<'a> {
        if !matches!(value, Value::Object(_) | Value::OneOf(_) | Value::Promise(..)) {
            return value.clone();
        }
        let mut freezing = std::mem::take(&mut self.freezing);
        let frozen = self.frozen_in(value, &mut freezing);
        if freezing.done.len() > 1_000 {
            freezing = Freezing::default();
        } else {
            freezing.done.clear();
        }
        self.freezing = freezing;
        frozen
    }

    fn frozen_in(&mut self, value: &Value<'a>, freezing: &mut Freezing<'a>) -> Value<'a> {
        self.state.budget.spend(1);
        match value {
            // An object that contains itself ends here; so does nesting nobody reads.
            Value::Object(index)
                if freezing.open.len() > MAX_NESTED_OBJECTS || freezing.open.contains(index) =>
            {
                Value::Unknown
            }
            Value::Object(index) => {
                if let Some(frozen) = freezing.done.get(index) {
                    return frozen.clone();
                }
                if self.state.budget.is_spent() {
                    return Value::Unknown;
                }
                freezing.open.push(*index);
                let frozen = self.frozen_object(*index, freezing);
                freezing.open.pop();
                if !freezing.open.is_empty() {
                    freezing.done.insert(*index, frozen.clone());
                }
                frozen
            }
            Value::OneOf(values) => {
                one_of(values.iter().map(|value| self.frozen_in(value, freezing)).collect::<Vec<_>>())
            }
            Value::Promise(inner, pending) if !self.state.budget.is_spent() => {
                Value::Promise(Rc::new(self.frozen_in(inner, freezing)), *pending)
            }
            other => other.clone(),
        }
    }

    fn frozen_object(&mut self, index: u32, freezing: &mut Freezing<'a>) -> Value<'a> {
        let record = Rc::clone(self.state.object(index));
        self.state.budget.spend(record.size());
        let around = self.coming_around(index);
        if around.is_empty() && is_frozen(&record) {
            return Value::Record(record);
        }
        let mut frozen = Record {
            kind: record.kind.clone(),
            written: record.written,
            fields: Vec::with_capacity(record.fields.len()),
            ..Record::default()
        };
        for member in &record.fields {
            let value = self.frozen_in(&member.value, freezing);
            frozen.fields.push(member.with(value));
        }
        frozen.extra = record.extra.iter().map(|value| self.frozen_in(value, freezing)).collect();
        frozen.spreads = record.spreads.iter().map(|value| self.frozen_in(value, freezing)).collect();
        frozen.names = record.names.iter().map(|value| self.frozen_in(value, freezing)).collect();
        frozen.extra.extend(around);
        Value::Record(Rc::new(frozen))
    }

    /// What later turns of the loops around us may have put into an object that is older than they are.
    pub(super) fn coming_around(&mut self, object: u32) -> Vec<Value<'a>> {
        let mut found = Vec::new();
        for index in 0..self.loops.len() {
            if object >= self.loops[index].objects {
                continue;
            }
            let phi = match self.loops[index].phis.get(&object) {
                Some(phi) => *phi,
                None => {
                    let node = self.loops[index].node;
                    let phi = self.new_phi(Value::Unknown, node);
                    self.loops[index].phis.insert(object, phi);
                    phi
                }
            };
            found.push(Value::Phi(phi, Path::default()));
        }
        found
    }

    /// A part of a value.
    pub(super) fn part(&mut self, value: &Value<'a>, step: &Step) -> Value<'a> {
        self.state.budget.spend(1 + value.width());
        if self.state.budget.is_spent() {
            return Value::Unknown;
        }
        match value {
            Value::Result(node, path) => Value::Result(*node, longer(path, step)),
            Value::Parameter(path) => Value::Parameter(longer(path, step)),
            Value::Item(of, node, path) if path.steps().is_empty() => match self.held_in_items(of, step) {
                Some(held) => held,
                None => self.part_of_items(of, *node, step),
            },
            Value::Item(of, node, path) => Value::Item(Rc::clone(of), *node, longer(path, step)),
            Value::Phi(phi, path) => Value::Phi(*phi, longer(path, step)),
            Value::Object(index) => {
                let record = Rc::clone(self.state.object(*index));
                self.state.budget.spend(part_cost(&record, step));
                let found = record_part(&record, step);
                let certain = record.field(step).is_some();
                if certain && !matches!(step, Step::Any) {
                    // What is inside an object stays inside, turn after turn; a plain value may be that of an earlier one.
                    if let Value::Object(_) | Value::Function(_) | Value::Class(_) = found {
                        return found;
                    }
                }
                let around = self.coming_around(*index);
                one_of(std::iter::once(found).chain(around))
            }
            Value::Record(record) => {
                self.state.budget.spend(part_cost(record, step));
                record_part(record, step)
            }
            Value::OneOf(values) => {
                one_of(values.iter().map(|value| self.part(value, step)).collect::<Vec<_>>())
            }
            Value::Promise(inner, _) => self.part(inner, step),
            Value::Computed(..) => value.clone(),
            Value::Template(parts) => {
                let (mut reads, mut seen) = (Distinct::default(), Seen::default());
                parts.iter().for_each(|(part, _)| super::expression::sources(part, &mut reads, &mut seen));
                self.state.budget.spend(seen.looked_at());
                Value::Computed(Span::default(), reads.shared())
            }
            Value::Undefined => Value::Undefined,
            _ => Value::Unknown,
        }
    }

    /// A part of what a loop is at.
    fn part_of_items(&mut self, of: &Rc<Value<'a>>, node: u32, step: &Step) -> Value<'a> {
        match &**of {
            // A list of known records: the part of each of them.
            Value::Record(record) if record.is_array() && holds_records(record) => {
                self.state.budget.spend(record.size());
                let items = record_part(record, &Step::Any);
                let part = self.part(&items, step);
                Value::Item(Rc::new(part), node, Path::default())
            }
            _ => Value::Item(Rc::clone(of), node, Path::default().then(step.clone())),
        }
    }

    pub(super) fn place(&mut self, target: &'a SimpleAssignmentTarget<'a>) -> Spot<'a> {
        match target {
            SimpleAssignmentTarget::AssignmentTargetIdentifier(name) => {
                match roots::variable(self.scoping, name) {
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
                roots::variable(self.scoping, name).map_or(Spot::Nowhere, Spot::Variable)
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

    /// The variable at the bottom of a chain of members.
    pub(super) fn root_of(&self, expression: &'a Expression<'a>) -> Option<SymbolId> {
        let mut at = plain(expression);
        loop {
            at = match at {
                Expression::Identifier(name) => {
                    return roots::variable(self.scoping, name);
                }
                Expression::StaticMemberExpression(it) => plain(&it.object),
                Expression::ComputedMemberExpression(it) => plain(&it.object),
                _ => return None,
            }
        }
    }

    fn member_spot(&self, object: &'a Expression<'a>, value: Value<'a>, key: Key<'a>) -> Spot<'a> {
        let direct = matches!(plain(object), Expression::Identifier(_));
        Spot::Member { object: value, key, root: self.root_of(object), direct }
    }

    pub(super) fn get(&mut self, spot: &Spot<'a>, span: Span) -> Value<'a> {
        match spot {
            Spot::Variable(symbol) => self.read_symbol(*symbol),
            Spot::Member { object, key: Key::Known(step), .. } => {
                self.member(object.clone(), step, span, span)
            }
            Spot::Member { object, key: Key::Computed(_), .. } => self.part(object, &Step::Any),
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
                None => self.put_into(*index, key, value, span, Certainty::Certain),
            },
            Value::OneOf(values) => {
                for object in values.iter() {
                    if let Value::Object(index) = object {
                        self.put_into(*index, key, value.clone(), span, Certainty::Possible);
                    }
                }
            }
            Value::Class(class) => self.put_into(class.statics, key, value, span, Certainty::Certain),
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
        let object = self.state.new_object(record);
        self.write_symbol(variable, Value::Object(object));
    }

    fn setter(&mut self, index: u32, key: &Key<'a>) -> Option<Rc<Closure<'a>>> {
        let Key::Known(step) = key else { return None };
        let record = Rc::clone(self.state.object(index));
        let own = record.setters.iter().find(|(name, _)| name == step).map(|(_, setter)| Rc::clone(setter));
        match (&own, &record.kind) {
            (None, Kind::Instance(class)) => self.inherited_setter(class, step, &Value::Object(index)),
            _ => own,
        }
    }

    pub(super) fn put_into(
        &mut self,
        index: u32,
        key: &Key<'a>,
        value: Value<'a>,
        span: Span,
        certainty: Certainty,
    ) {
        match key {
            Key::Known(step) => self.state.change(index, |record| {
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
            Key::Computed(name) => self.state.change(index, |record| {
                record.extra.push(value);
                if has_sources(name) {
                    record.names.push(name.clone());
                }
            }),
        }
    }
}

/// The names of the members of an object that has many, while members are added to it.
#[derive(Default)]
struct Keys {
    known: FxHashSet<Step>,
}

impl Keys {
    /// Whether `record`, to which `key` is about to be added, may have it already.
    fn may_have(&mut self, record: &Record<'_>, key: &Step) -> bool {
        if record.fields.len() < 64 {
            return true;
        }
        if self.known.is_empty() {
            self.known.extend(record.fields.iter().map(|member| member.key.clone()));
        }
        !self.known.insert(key.clone())
    }
}

#[derive(PartialEq, Eq, Clone, Copy)]
pub(super) enum Certainty {
    Certain,
    Possible,
}

pub(super) fn append<'a>(record: &mut Record<'a>, value: Value<'a>, span: Span) {
    if record.closed() {
        let key = Step::Index(record.fields.len() as u64);
        record.fields.push(Member { key, value, span, getter: false });
    } else {
        record.extra.push(value);
    }
}

pub(super) fn longer(path: &Path, step: &Step) -> Path {
    // Longer paths come from chasing links; which one is meant no longer matters to anybody.
    if path.steps().len() >= 64 { path.clone() } else { path.then(step.clone()) }
}

/// Adds values to those that are there; past some number, each once.
fn extend<'a>(values: &mut Vec<Value<'a>>, more: &[Value<'a>]) {
    values.extend(more.iter().cloned());
    if values.len() > 64 {
        let mut distinct = Distinct::default();
        values.iter().for_each(|value| distinct.add(value));
        *values = distinct.into_values().into_vec();
    }
}

/// What [`record_part`] costs.
fn part_cost(record: &Record<'_>, step: &Step) -> usize {
    match step {
        Step::Any => record.size(),
        Step::Key(_) | Step::Index(_) => record.fields.len() / 16 + record.extra.len() + record.spreads.len(),
    }
}

/// Nothing in it can change: another moment would show the same. Records are never changed, only replaced.
fn is_frozen(record: &Record<'_>) -> bool {
    let plain = |value: &Value<'_>| !matches!(value, Value::Object(_) | Value::OneOf(_) | Value::Promise(..));
    record.setters.is_empty()
        && record.fields.iter().all(|member| plain(&member.value))
        && record.extra.iter().chain(&record.spreads).chain(&record.names).all(plain)
}

fn holds_records(record: &Record<'_>) -> bool {
    record.fields.iter().any(|member| matches!(member.value, Value::Record(_)))
}

fn record_part<'a>(record: &Record<'a>, step: &Step) -> Value<'a> {
    let spread_part = |spread: &Value<'a>| match spread {
        Value::Result(node, path) => Value::Result(*node, longer(path, step)),
        Value::Parameter(path) => Value::Parameter(longer(path, step)),
        Value::Item(of, node, path) => Value::Item(Rc::clone(of), *node, longer(path, step)),
        Value::Phi(phi, path) => Value::Phi(*phi, longer(path, step)),
        Value::Record(inner) => record_part(inner, step),
        other => other.clone(),
    };
    if !matches!(step, Step::Any)
        && let Some(member) = record.field(step)
    {
        return member.value.clone();
    }
    let mut found: Vec<Value<'a>> = Vec::new();
    if matches!(step, Step::Any) {
        found.extend(record.fields.iter().map(|member| member.value.clone()));
    }
    found.extend(record.extra.iter().cloned());
    found.extend(record.spreads.iter().map(spread_part));
    if found.is_empty() { Value::Undefined } else { one_of(found) }
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

/// Something of interest goes into it.
pub(super) fn has_sources(value: &Value<'_>) -> bool {
    has_sources_new(value, &mut Seen::default())
}

fn has_sources_new(value: &Value<'_>, seen: &mut Seen) -> bool {
    match value {
        Value::Result(..) | Value::Parameter(_) | Value::Item(..) | Value::Phi(..) | Value::Object(_) => true,
        Value::Record(_) => true,
        Value::Template(parts) => {
            seen.is_new(parts.as_ptr() as usize, 0)
                && parts.iter().any(|(value, _)| has_sources_new(value, seen))
        }
        Value::Computed(_, values) | Value::OneOf(values) => {
            seen.is_new(values.as_ptr() as usize, 0)
                && values.iter().any(|value| has_sources_new(value, seen))
        }
        Value::Promise(inner, _) => {
            seen.is_new(Rc::as_ptr(inner) as usize, 0) && has_sources_new(inner, seen)
        }
        _ => false,
    }
}
