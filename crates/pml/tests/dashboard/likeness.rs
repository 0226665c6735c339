//! The made-up gateway of the tests of pages answers as the real one says it does: its replies fit the OpenAPI document.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::{Map, Value};

use crate::harness::{material, node};
use crate::place::Place;
use crate::wire::viewer;

/// The schemas of a document.
struct Schemas<'d>(&'d Map<String, Value>);

impl<'d> Schemas<'d> {
    /// What a schema refers to, or itself.
    fn resolve(&self, schema: &'d Value) -> &'d Value {
        match schema["$ref"].as_str() {
            Some(name) => self.resolve(&self.0[name.rsplit('/').next().unwrap()]),
            None => schema,
        }
    }

    fn parts(schema: &'d Value, of: &str) -> impl Iterator<Item = &'d Value> {
        schema[of].as_array().into_iter().flatten().filter(|part| part["type"] != "null")
    }

    /// The schema of a member of an object; `None` where it has no member of that name.
    fn member(&self, schema: &'d Value, name: &str) -> Option<&'d Value> {
        let schema = self.resolve(schema);
        let own = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
        let parts = || Schemas::parts(schema, "allOf").chain(Schemas::parts(schema, "oneOf"));
        own.or_else(|| parts().find_map(|part| self.member(part, name)))
    }

    /// Whether nothing is said of the members of an object.
    fn is_open(&self, schema: &'d Value) -> bool {
        let schema = self.resolve(schema);
        ["properties", "additionalProperties", "allOf", "oneOf"].iter().all(|part| schema.get(part).is_none())
    }

    fn required(&self, schema: &'d Value) -> Vec<&'d str> {
        let schema = self.resolve(schema);
        let own = schema["required"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap());
        own.chain(Schemas::parts(schema, "allOf").flat_map(|part| self.required(part))).collect()
    }

    /// What is wrong with a value, each with its place.
    fn wrong(&self, value: &'d Value, schema: &'d Value, place: &str) -> Vec<String> {
        let schema = self.resolve(schema);
        if schema.get("allOf").is_none() && schema.get("oneOf").is_some() {
            let each = schema["oneOf"].as_array().unwrap().iter();
            let least = each.map(|one| self.wrong(value, one, place)).min_by_key(Vec::len);
            return least.unwrap_or_default();
        }
        let types: Vec<&str> = match &schema["type"] {
            Value::String(one) => vec![one],
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let fits = |kind: &&str| match (*kind, value) {
            ("null", Value::Null)
            | ("boolean", Value::Bool(_))
            | ("number", Value::Number(_))
            | ("string", Value::String(_))
            | ("array", Value::Array(_))
            | ("object", Value::Object(_)) => true,
            ("integer", Value::Number(number)) => !number.is_f64(),
            _ => false,
        };
        if !types.is_empty() && !types.iter().any(fits) {
            return vec![format!("{place} is {value} and no {types:?}")];
        }
        match value {
            Value::Array(items) => {
                let each = items.iter().filter(|_| schema.get("items").is_some());
                each.flat_map(|item| self.wrong(item, &schema["items"], &format!("{place}[]"))).collect()
            }
            Value::Object(members) => {
                let lacks = self.required(schema).into_iter().filter(|name| !members.contains_key(*name));
                let mut wrong: Vec<String> = lacks.map(|name| format!("{place} lacks {name}")).collect();
                for (name, value) in members.iter().filter(|_| !self.is_open(schema)) {
                    let place = format!("{place}.{name}");
                    match self.member(schema, name) {
                        Some(schema) => wrong.extend(self.wrong(value, schema, &place)),
                        None => wrong.push(format!("there is no {place}")),
                    }
                }
                wrong
            }
            value => match schema["enum"].as_array().filter(|known| !known.contains(value)) {
                Some(known) => vec![format!("{place} is {value} and none of {known:?}")],
                None => Vec::new(),
            },
        }
    }
}

/// The description of a route that is written with `*` for names.
fn operation<'d>(document: &'d Value, method: &str, route: &str) -> &'d Value {
    let is_it = |path: &str| {
        path.split('/').count() == route.split('/').count()
            && path
                .split('/')
                .zip(route.split('/'))
                .all(|(one, other)| one == other || (other == "*" && one.starts_with('{')))
    };
    let paths = document["paths"].as_object().unwrap().iter();
    let item = paths.filter(|(path, _)| is_it(path)).map(|(_, item)| item).next();
    item.map_or(&Value::Null, |item| &item[method.to_lowercase()])
}

#[test]
fn the_made_up_gateway_answers_as_the_real_one_would() {
    let output = Command::new(node()).arg(material("dashboard/fake-replies.mjs")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let replies: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert!(replies.len() > 50, "{} replies", replies.len());
    let place = Place::new();
    let document = viewer(&place.serve()).get("/api/openapi.json").json();
    let schemas = Schemas(document["components"]["schemas"].as_object().unwrap());
    let mut wrong = BTreeSet::new();
    for told in &replies {
        let (method, route) = (told["method"].as_str().unwrap(), told["route"].as_str().unwrap());
        let described = &operation(&document, method, route)["responses"][told["status"].to_string()];
        let schema = &described["content"]["application/json"]["schema"];
        if schema.is_null() {
            wrong.insert(format!("{method} {} answers {}", told["path"], told["status"]));
        } else {
            wrong.extend(schemas.wrong(&told["reply"], schema, &format!("{method} {route}: reply")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
