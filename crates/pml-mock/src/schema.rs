//! Values from a JSON Schema.

use serde_json::{Map, Value, json};

use crate::MockRequest;
use crate::random::Random;
use crate::valid;

/// A value that satisfies `schema`; `None` if none is found.
pub(crate) fn generate(request: &MockRequest<'_>, schema: &Value) -> Option<Value> {
    let mut random = Random::for_request(request);
    let value = plain(schema, &mut random, 0);
    valid::violation(schema, &value).is_none().then_some(value)
}

fn plain(schema: &Value, random: &mut Random, depth: usize) -> Value {
    if let Some(Value::Array(examples)) = schema.get("examples") {
        if let Some(example) = random.pick(examples) {
            return example.clone();
        }
    }
    match schema["type"].as_str() {
        Some("object") if depth < 8 => {
            let members = schema["properties"].as_object().into_iter().flatten();
            Value::Object(members.map(|(k, s)| (k.clone(), plain(s, random, depth + 1))).collect())
        }
        Some("object") => Value::Object(Map::new()),
        Some("array") => json!([plain(&schema["items"], random, depth + 1)]),
        Some("integer" | "number") => json!(random.below(100)),
        Some("boolean") => json!(true),
        Some("null") => Value::Null,
        _ => json!("example"),
    }
}
