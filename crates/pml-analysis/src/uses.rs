//! How a program uses its arguments, and the JSON Schema inferred from that.

use oxc_ast::ast::BinaryOperator;
use pml_model::structure::PathStep;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value as Json, json};

use crate::operations::ValueKinds;
use crate::schema::parameter_schema;
use crate::value::{AbstractValue, MemberPath};

/// Facts about `args`, as a tree.
#[derive(Debug, Default)]
pub(crate) struct ArgumentUses {
    root: ParameterUse,
    /// Members that a type annotation of `args` makes optional, read or not.
    declared_optional: Vec<MemberPath>,
}

/// Number of members up to which a linear search is used.
const FEW: usize = 64;

#[derive(Debug, Default)]
struct ParameterUse {
    members: Vec<(String, ParameterUse)>,
    /// Index of each member, once there are many.
    places: FxHashMap<String, usize>,
    items: Option<Box<ParameterUse>>,
    /// Whether it is read anywhere.
    read: bool,
    /// Whether it is optional.
    optional: bool,
    default: Option<Json>,
    /// JSON types suggested by its uses.
    types: Vec<&'static str>,
    /// Schema of the tool input that it fills.
    declared: Option<Json>,
}

impl ArgumentUses {
    /// Part of `args` is read.
    pub(crate) fn note_read(&mut self, path: &MemberPath) {
        if let Some(parameter) = self.at(path.steps()) {
            parameter.read = true;
        }
    }

    /// The member is optional.
    pub(crate) fn note_optional(&mut self, path: &MemberPath) {
        if let Some(parameter) = self.at(path.steps()) {
            parameter.read = true;
            parameter.optional = true;
        }
    }

    /// A type annotation makes the member optional.
    pub(crate) fn note_declared_optional(&mut self, path: MemberPath) {
        self.declared_optional.push(path);
    }

    /// Applies the optional members of type annotations. A type alone does not add a member.
    pub(crate) fn apply_declared_optional(&mut self) {
        for path in std::mem::take(&mut self.declared_optional) {
            if let Some(parameter) = self.root.known(path.steps()) {
                parameter.optional = true;
            }
        }
    }

    /// The member is optional, with this default.
    pub(crate) fn note_default(&mut self, path: &MemberPath, default: &AbstractValue<'_>) {
        let Some(parameter) = self.at(path.steps()) else { return };
        parameter.read = true;
        parameter.optional = true;
        if let AbstractValue::Literal(literal) = default {
            if let Some(name) = type_name(&literal.value) {
                parameter.suggest(name);
            }
            parameter.default.get_or_insert_with(|| literal.value.clone());
        }
    }

    /// Two values are compared: an argument has the type of the other operand.
    pub(crate) fn note_comparison(&mut self, left: &AbstractValue<'_>, right: &AbstractValue<'_>) {
        for (asked, other) in [(left, right), (right, left)] {
            if let (AbstractValue::Parameter(path), AbstractValue::Literal(literal)) = (asked, other)
                && let Some(name) = type_name(&literal.value)
            {
                self.suggest(path, name);
            }
        }
    }

    /// Two values are combined by an operator.
    pub(crate) fn note_operator(
        &mut self,
        operator: BinaryOperator,
        left: &AbstractValue<'_>,
        right: &AbstractValue<'_>,
    ) {
        match operator {
            BinaryOperator::Addition => {
                for (asked, other) in [(left, right), (right, left)] {
                    match (asked, other) {
                        (AbstractValue::Parameter(path), AbstractValue::Literal(literal))
                            if literal.value.is_number() =>
                        {
                            self.suggest(path, "number");
                        }
                        (AbstractValue::Parameter(path), other) if other.text().is_some() => {
                            self.suggest(path, "string");
                        }
                        (AbstractValue::Parameter(path), AbstractValue::Template(_)) => {
                            self.suggest(path, "string");
                        }
                        _ => {}
                    }
                }
            }
            BinaryOperator::In | BinaryOperator::Instanceof => {}
            _ if operator.is_arithmetic() || operator.is_bitwise() => {
                self.note_number(left);
                self.note_number(right);
            }
            _ if operator.is_compare() || operator.is_equality() => self.note_comparison(left, right),
            _ => {}
        }
    }

    /// The value is used as a number.
    pub(crate) fn note_number(&mut self, value: &AbstractValue<'_>) {
        if let AbstractValue::Parameter(path) = value {
            self.suggest(path, "number");
        }
    }

    /// The value is inserted into a text.
    pub(crate) fn note_text(&mut self, value: &AbstractValue<'_>) {
        if let AbstractValue::Parameter(path) = value {
            self.suggest(path, "string");
        }
    }

    /// The members of the value are enumerated by name.
    pub(crate) fn note_object(&mut self, value: &AbstractValue<'_>) {
        if let AbstractValue::Parameter(path) = value {
            self.suggest(path, "object");
        }
    }

    /// The value is iterated over.
    pub(crate) fn note_iteration(&mut self, value: &AbstractValue<'_>) {
        if let AbstractValue::Parameter(path) = value {
            self.suggest(path, "array");
        }
    }

    /// The value is the receiver of an operation for some kinds of value only.
    pub(crate) fn note_receiver(&mut self, value: &AbstractValue<'_>, kind: ValueKinds) {
        let AbstractValue::Parameter(path) = value else { return };
        let kind = kind.in_json();
        for (one, name) in [
            (ValueKinds::ARRAY, "array"),
            (ValueKinds::STRING, "string"),
            (ValueKinds::NUMBER, "number"),
            (ValueKinds::OBJECT, "object"),
        ] {
            if kind.is(one) {
                self.suggest(path, name);
            }
        }
    }

    /// The value fills an input of a tool with this schema.
    pub(crate) fn note_tool_input(
        &mut self,
        path: &[PathStep],
        (root, schema): (&Json, &Json),
        required: bool,
    ) {
        if let Some(parameter) = self.at(path) {
            if !required && !parameter.read {
                parameter.optional = true;
            }
            parameter.read = true;
            // Of two tools the narrower schema wins; a single type cannot be narrowed further.
            if parameter.declared.as_ref().is_none_or(|known| known["type"].is_array()) {
                let schema = parameter_schema(root, schema);
                if parameter.declared.as_ref().is_none_or(|known| narrows(&schema, known)) {
                    parameter.declared = Some(schema);
                }
            }
        }
    }

    /// Names of the arguments.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.root.members.iter().map(|(name, _)| name.as_str())
    }

    /// The JSON Schema of `args`.
    pub(crate) fn into_schema(self) -> Json {
        self.root.into_object()
    }

    fn suggest(&mut self, path: &MemberPath, name: &'static str) {
        if let Some(parameter) = self.at(path.steps()) {
            parameter.read = true;
            parameter.suggest(name);
        }
    }

    fn at(&mut self, path: &[PathStep]) -> Option<&mut ParameterUse> {
        let mut parameter = &mut self.root;
        // Bounded depth: a deeper schema would be unreadable.
        for step in path.iter().take(8) {
            parameter = match step {
                PathStep::Key(name) if name == "length" => return None,
                PathStep::Key(name) => parameter.member(name),
                PathStep::Index(_) | PathStep::Any => parameter.items.get_or_insert_default(),
            };
        }
        (!path.is_empty()).then_some(parameter)
    }
}

impl ParameterUse {
    fn member(&mut self, name: &str) -> &mut ParameterUse {
        if self.members.len() == FEW && self.places.is_empty() {
            self.places = self.members.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect();
        }
        let found = match self.members.len() < FEW {
            true => self.members.iter().position(|(known, _)| known == name),
            false => self.places.get(name).copied(),
        };
        let index = match found {
            Some(index) => index,
            None => {
                if !self.places.is_empty() {
                    self.places.insert(name.to_owned(), self.members.len());
                }
                self.members.push((name.to_owned(), ParameterUse::default()));
                self.members.len() - 1
            }
        };
        &mut self.members[index].1
    }

    /// The part at `path`, if anything is known of it.
    fn known(&mut self, path: &[PathStep]) -> Option<&mut ParameterUse> {
        path.iter().try_fold(self, |parameter, step| match step {
            PathStep::Key(name) => {
                parameter.members.iter_mut().find(|(known, _)| known == name).map(|(_, member)| member)
            }
            PathStep::Index(_) | PathStep::Any => parameter.items.as_deref_mut(),
        })
    }

    fn suggest(&mut self, name: &'static str) {
        if !self.types.contains(&name) {
            self.types.push(name);
        }
    }

    fn into_schema(mut self) -> Json {
        let default = self.default.take();
        let mut schema = match (self.declared.take(), self.members.is_empty(), self.items.take()) {
            (Some(declared), _, _) => declared,
            (None, false, _) => self.into_object(),
            (None, true, Some(items)) => match items.into_schema() {
                items if items == json!({}) => json!({ "type": "array" }),
                items => json!({ "type": "array", "items": items }),
            },
            (None, true, None) => match self.types.as_slice() {
                [] => json!({}),
                [one] => json!({ "type": one }),
                several => json!({ "type": several }),
            },
        };
        if let (Some(object), Some(default)) = (schema.as_object_mut(), default) {
            object.insert("default".to_owned(), default);
        }
        schema
    }

    fn into_object(self) -> Json {
        let required = self.members.iter().filter(|(_, member)| !member.optional);
        let required = required.map(|(name, _)| name.as_str().into()).collect();
        let properties: Map<String, Json> =
            self.members.into_iter().map(|(name, member)| (name, member.into_schema())).collect();
        let mut object = Map::with_capacity(3);
        object.insert("type".to_owned(), "object".into());
        object.insert("properties".to_owned(), Json::Object(properties));
        object.insert("required".to_owned(), Json::Array(required));
        Json::Object(object)
    }
}

/// Whether `one` allows a single type out of several that `other` allows.
fn narrows(one: &Json, other: &Json) -> bool {
    match (&one["type"], &other["type"]) {
        (Json::String(one), Json::Array(several)) => several.iter().any(|other| other == one),
        _ => false,
    }
}

/// JSON type of a literal, when it tells the type of what it stands for.
pub(crate) fn type_name(value: &Json) -> Option<&'static str> {
    match value {
        Json::Bool(_) => Some("boolean"),
        Json::Number(_) => Some("number"),
        Json::String(_) => Some("string"),
        Json::Array(_) => Some("array"),
        Json::Object(_) => Some("object"),
        Json::Null => None,
    }
}
