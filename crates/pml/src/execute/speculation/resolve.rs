//! Resolves the argument tree of a call to the bytes that the program would send.
//!
//! Only what is certain is resolved: literals, references to results that are known, parameters that were given, items
//! of known lists, and templates of these. Anything else gives `None`, and the call is not speculated. A wrong guess
//! would not be unsound (a speculated result is used only for a call with the same bytes) but a wasted call.

use std::collections::HashMap;

use pml_model::structure::{Argument, NodeId, PathStep};
use serde_json::{Map, Number, Value};

/// 2^53: beyond it JavaScript's numbers skip integers.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

/// The values that arguments are resolved from.
#[derive(Debug, Default)]
pub(crate) struct KnownValues {
    /// The arguments of the program.
    pub(crate) arguments: Value,
    /// The results of nodes, as the program received them.
    pub(crate) results: HashMap<NodeId, Value>,
}

/// The current position in each loop around a call.
pub(crate) type LoopItems = HashMap<NodeId, usize>;

impl KnownValues {
    /// The arguments of a call, as the text that the program would send.
    pub(crate) fn resolve_call(&self, arguments: &Argument, items: &LoopItems) -> Option<String> {
        let value = self.resolve(arguments, items)?;
        value.is_object().then(|| value.to_string())
    }

    /// The number of items of the list that `of` denotes.
    pub(crate) fn list_length(&self, of: &Argument, items: &LoopItems) -> Option<usize> {
        self.resolve(of, items)?.as_array().map(Vec::len)
    }

    /// The value of an argument, with numbers as JavaScript prints them.
    pub(crate) fn resolve(&self, argument: &Argument, items: &LoopItems) -> Option<Value> {
        match argument {
            Argument::Literal { value } => as_printed(value),
            Argument::Reference { node, path } => as_printed(follow(self.results.get(node)?, path)?),
            Argument::Parameter { name, path } if name.is_empty() => {
                as_printed(follow(&self.arguments, path)?)
            }
            Argument::Parameter { name, path } => as_printed(follow(self.arguments.get(name)?, path)?),
            Argument::Item { of, r#loop, path } => {
                let list = self.resolve(of, items)?;
                follow(list.as_array()?.get(*items.get(r#loop)?)?, path).cloned()
            }
            Argument::Template { parts } => {
                let texts: Option<Vec<String>> =
                    parts.iter().map(|part| as_text(&self.resolve(part, items)?)).collect();
                Some(Value::String(texts?.concat()))
            }
            Argument::Object { fields, spreads } if spreads.is_empty() => {
                let mut object = Map::new();
                for field in fields {
                    object.insert(field.name.clone(), self.resolve(&field.value, items)?);
                }
                Some(Value::Object(object))
            }
            Argument::Array { items: elements } => elements
                .iter()
                .map(|element| self.resolve(element, items))
                .collect::<Option<_>>()
                .map(Value::Array),
            // The place of spread members among the others is not known.
            Argument::Object { .. } | Argument::Expression { .. } => None,
        }
    }
}

/// The part of a value at a path. An absent member would be `undefined` in the program, so it gives `None`.
fn follow<'v>(value: &'v Value, path: &[PathStep]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, step| match step {
        PathStep::Index(index) => value.as_array()?.get(usize::try_from(*index).ok()?),
        PathStep::Key(key) => value.as_object()?.get(key),
        PathStep::Any => None,
    })
}

/// The value with every number in the spelling of `JSON.stringify`; `None` if it has a number without one here.
fn as_printed(value: &Value) -> Option<Value> {
    Some(match value {
        Value::Number(number) => Value::Number(printed_number(number)?),
        Value::Array(items) => Value::Array(items.iter().map(as_printed).collect::<Option<_>>()?),
        Value::Object(fields) => {
            let printed = |(name, value): (&String, &Value)| Some((name.clone(), as_printed(value)?));
            // JavaScript orders members whose names are array indexes before all others.
            if fields.keys().any(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
                return None;
            }
            Value::Object(fields.iter().map(printed).collect::<Option<_>>()?)
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.clone(),
    })
}

/// A number that prints the same here and in JavaScript. Both print the shortest digits that identify it; they differ in
/// when they use exponents, so only a range without them is accepted.
fn printed_number(number: &Number) -> Option<Number> {
    let float = number.as_f64()?;
    if float.fract() == 0.0 && float.abs() <= MOST_EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "an integer of at most 53 bits")]
        return Some(Number::from(float as i64));
    }
    ((1e-4..1e15).contains(&float.abs())).then(|| Number::from_f64(float)).flatten()
}

/// The text of a value in a template string.
fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) | Value::Null => Some(value.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use pml_model::structure::{ArgumentField, NodeLetter};
    use serde_json::json;

    use super::*;

    fn node(number: u32) -> NodeId {
        NodeId { letter: NodeLetter::N, number }
    }

    fn object(fields: Vec<(&str, Argument)>) -> Argument {
        let field = |(name, value): (&str, Argument)| ArgumentField { name: name.to_owned(), value };
        Argument::Object { fields: fields.into_iter().map(field).collect(), spreads: Vec::new() }
    }

    fn literal(value: Value) -> Argument {
        Argument::Literal { value }
    }

    fn key(name: &str) -> PathStep {
        PathStep::Key(name.to_owned())
    }

    fn known() -> KnownValues {
        KnownValues {
            arguments: json!({"path": "/my/file.txt", "teams": [{"members": ["a", "b"]}, {"members": ["c"]}]}),
            results: HashMap::from([(node(1), json!({"content": "file data", "size": 12.0, "rate": 0.25}))]),
        }
    }

    #[track_caller]
    fn check(argument: Argument, expected: Option<&str>) {
        let whole = object(vec![("input", argument)]);
        assert_eq!(known().resolve_call(&whole, &LoopItems::new()).as_deref(), expected);
    }

    #[test]
    fn literals_references_and_parameters_become_values() {
        check(literal(json!("config.json")), Some(r#"{"input":"config.json"}"#));
        check(
            Argument::Reference { node: node(1), path: vec![key("content")] },
            Some(r#"{"input":"file data"}"#),
        );
        check(
            Argument::Parameter { name: "path".to_owned(), path: Vec::new() },
            Some(r#"{"input":"/my/file.txt"}"#),
        );
    }

    #[test]
    fn what_is_not_known_is_unresolvable() {
        check(Argument::Reference { node: node(2), path: vec![key("content")] }, None);
        check(Argument::Reference { node: node(1), path: vec![key("missing")] }, None);
        check(Argument::Reference { node: node(1), path: vec![PathStep::Any] }, None);
        check(Argument::Parameter { name: "absent".to_owned(), path: Vec::new() }, None);
        check(Argument::Expression { source: "a + b".to_owned(), reads: Vec::new() }, None);
    }

    #[test]
    fn numbers_are_spelled_as_javascript_spells_them() {
        check(
            Argument::Reference { node: node(1), path: Vec::new() },
            Some(r#"{"input":{"content":"file data","size":12,"rate":0.25}}"#),
        );
        check(literal(json!(1e20)), None);
        check(literal(json!(1e-7)), None);
        check(literal(json!({"1": true})), None);
    }

    #[test]
    fn templates_join_texts_numbers_and_constants() {
        let parts = vec![
            literal(json!("data/")),
            Argument::Parameter { name: "path".to_owned(), path: Vec::new() },
            literal(json!(3)),
            literal(json!(null)),
        ];
        check(Argument::Template { parts }, Some(r#"{"input":"data//my/file.txt3null"}"#));
        check(Argument::Template { parts: vec![literal(json!([1]))] }, None);
    }

    #[test]
    fn items_of_nested_loops_follow_both_positions() {
        let outer = NodeId { letter: NodeLetter::L, number: 1 };
        let inner = NodeId { letter: NodeLetter::L, number: 2 };
        let teams = Argument::Parameter { name: "teams".to_owned(), path: Vec::new() };
        let members = Argument::Item { of: Box::new(teams), r#loop: outer, path: vec![key("members")] };
        let member = Argument::Item { of: Box::new(members.clone()), r#loop: inner, path: Vec::new() };
        let at = |first, second| LoopItems::from([(outer, first), (inner, second)]);
        let known = known();
        assert_eq!(known.list_length(&members, &at(0, 0)), Some(2));
        assert_eq!(known.resolve(&member, &at(0, 1)), Some(json!("b")));
        assert_eq!(known.resolve(&member, &at(1, 0)), Some(json!("c")));
        assert_eq!(known.resolve(&member, &at(1, 1)), None);
    }
}
