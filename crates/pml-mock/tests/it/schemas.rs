//! Values from schemas: valid whatever the schema, plausible, reproducible, and different in other variants.

use pml_mock::{MockOrigin, MockRequest, generate};
use pml_model::ToolId;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::mock;

/// Whether `value` satisfies `schema`, formats included.
fn is_valid(schema: &Value, value: &Value) -> bool {
    let validator = jsonschema::options().should_validate_formats(true).build(schema).unwrap();
    validator.is_valid(value)
}

fn of_schema(schema: &Value, arguments: &Value) -> Value {
    let made = mock("shop:get_order", arguments, Some(schema), 0);
    assert_eq!(made.origin, MockOrigin::Schema, "{schema}");
    assert!(is_valid(schema, &made.value), "{schema}: {}", made.value);
    made.value
}

#[test]
fn fields_have_values_that_their_names_and_formats_suggest() {
    let schema = json!({
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "customer": {"type": "object", "properties": {"name": {"type": "string"}, "email": {"type": "string"}}},
            "created_at": {"type": "string"},
            "site": {"type": "string", "format": "uri"},
            "total": {"type": "number"},
            "has_more": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "status": {"enum": ["open", "paid"]},
            "plan": {"type": "string", "pattern": "^plan_[a-z]{3}$"}
        }
    });
    let value = of_schema(&schema, &json!({}));
    expect_test::expect![[r#"
        {
          "id": 15482,
          "customer": {
            "name": "Ana Silva",
            "email": "mei-t@example.com"
          },
          "created_at": "2025-03-05T17:10:03Z",
          "site": "https://example.com/search-index/674",
          "total": 651.33,
          "has_more": false,
          "tags": [
            "inventory",
            "onboarding"
          ],
          "status": "open",
          "plan": "plan_bys"
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&value).unwrap());
}

#[test]
fn arguments_come_back_under_their_names() {
    let schema = json!({
        "type": "object",
        "properties": {
            "ownerName": {"type": "string"},
            "path": {"type": "string"},
            "user": {"type": "object", "properties": {"id": {"type": "integer"}}},
            "state": {"enum": ["open", "closed"]},
            "issues": {
                "type": "array",
                "items": {"type": "object", "properties": {"repo": {"type": "string"}, "name": {"type": "string"}}}
            }
        }
    });
    let arguments = json!({
        "owner_name": "acme", "path": "a/b.txt", "user_id": 7, "state": "closed", "repo": "core", "name": "x", "limit": 1
    });
    let value = of_schema(&schema, &arguments);
    assert_eq!(value["ownerName"], "acme");
    assert_eq!(value["path"], "a/b.txt");
    assert_eq!(value["user"]["id"], 7);
    assert_eq!(value["state"], "closed");
    assert_eq!(value["issues"].as_array().unwrap().len(), 1, "no more than were asked for");
    assert_eq!(value["issues"][0]["repo"], "core");
    assert_ne!(value["issues"][0]["name"], "x", "elements of a list have names of their own");
    // An argument that the schema forbids is not repeated.
    let strict = json!({"type": "object", "properties": {"path": {"type": "string", "maxLength": 3}}, "required": ["path"]});
    assert_ne!(of_schema(&strict, &arguments)["path"], "a/b.txt");
}

#[test]
fn the_same_call_has_the_same_value_and_another_call_another() {
    let schema = json!({"type": "object", "properties": {"sha": {"type": "string"}}, "required": ["sha"]});
    let tool = ToolId::parse("git:log").unwrap();
    let make = |seed: u64, arguments: &Value| {
        generate(&MockRequest { tool: &tool, arguments, output_schema: Some(&schema), seed, variant: 0 })
            .value
    };
    assert_eq!(make(1, &json!({"a": 1, "b": 2})), make(1, &json!({"b": 2, "a": 1})));
    assert_ne!(make(1, &json!({"a": 1})), make(1, &json!({"a": 2})));
    assert_ne!(make(1, &json!({"a": 1})), make(2, &json!({"a": 1})));
}

#[test]
fn variants_take_other_branches() {
    let schema = json!({
        "type": "object",
        "properties": {
            "ok": {"type": "boolean"},
            "items": {"type": "array", "items": {"type": "string"}},
            "error": {"type": ["string", "null"]},
            "state": {"enum": ["open", "closed"]},
            "count": {"type": "integer", "minimum": 0, "maximum": 10},
            "note": {"type": "string"}
        },
        "required": ["ok", "items", "error", "state", "count"]
    });
    let variants: Vec<Value> =
        (0..24).map(|variant| mock("s:t", &json!({}), Some(&schema), variant).value).collect();
    let all = |seen: &dyn Fn(&Value) -> bool| variants.iter().any(seen) && !variants.iter().all(seen);
    assert!(all(&|value| value["ok"] == true));
    assert!(all(&|value| value["items"] == json!([])));
    assert!(all(&|value| value["error"].is_null()));
    assert!(all(&|value| value["state"] == "open"));
    assert!(all(&|value| value["count"] == 0));
    assert!(all(&|value| value["count"] == 10));
    assert!(all(&|value| value.get("note").is_none()));
    assert!(all(&|value| value["ok"] == true && value["items"] == json!([])), "combinations occur too");
}

#[test]
fn recursive_schemas_end() {
    let tree = json!({
        "$ref": "#/$defs/node",
        "$defs": {"node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}
            },
            "required": ["name", "children", "next"]
        }}
    });
    let value = of_schema(&tree, &json!({}));
    assert!(value.to_string().len() < 100_000);
    let endless = json!({"$ref": "#/$defs/x", "$defs": {"x": {"type": "object", "properties": {"x": {"$ref": "#/$defs/x"}}, "required": ["x"]}}});
    let made = mock("s:t", &json!({}), Some(&endless), 0);
    assert_eq!(made.origin, MockOrigin::Placeholder);
    assert_eq!(made.value["_mocked"], true);
    assert_eq!(made.value["toolId"], "s:t");
}

/// Schemas that have values, of every keyword that the generator knows.
fn schema() -> impl Strategy<Value = Value> {
    let bounds = || (-1_000_i64..1_000, 0_i64..1_000);
    let leaf = prop_oneof![
        Just(json!({"type": "boolean"})),
        Just(json!({"type": "null"})),
        Just(json!(true)),
        bounds().prop_map(|(low, span)| json!({"type": "integer", "minimum": low, "maximum": low + span})),
        bounds().prop_map(
            |(low, span)| json!({"type": "integer", "exclusiveMinimum": low, "maximum": low + span + 1})
        ),
        bounds().prop_map(
            |(low, _)| json!({"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": low + 1})
        ),
        (bounds(), 1_i64..40).prop_map(|((low, _), step)| {
            json!({"type": "integer", "minimum": low, "maximum": low + step, "multipleOf": step})
        }),
        (1_i64..900).prop_map(|low| json!({"type": "number", "minimum": low, "multipleOf": 0.01})),
        (0_usize..30, 0_usize..30)
            .prop_map(|(min, more)| json!({"type": "string", "minLength": min, "maxLength": min + more})),
        prop::sample::select(vec![
            "email",
            "date-time",
            "date",
            "time",
            "uri",
            "uuid",
            "ipv4",
            "ipv6",
            "hostname",
            "duration",
            "json-pointer",
            "uri-reference",
            "regex",
        ])
        .prop_map(|format| json!({"type": "string", "format": format})),
        prop::sample::select(vec![
            "^[a-z]{3,8}$",
            "^\\d{4}-\\d{2}-\\d{2}$",
            "^https?://",
            "[A-Z]{2}-[0-9]+",
            "^(red|green|blue)$",
            "^#[0-9a-fA-F]{6}$",
            "^[^@]+@[^@]+$",
            "^\\S+$",
            "^v?\\d+\\.\\d+\\.\\d+$",
            "^sha256:[a-f0-9]{64}$",
            "x*y",
        ])
        .prop_map(|pattern| json!({"type": "string", "pattern": pattern})),
        vec(any::<i32>().prop_map(Value::from), 1..4).prop_map(|values| json!({"enum": values})),
        any::<i32>().prop_map(|value| json!({"const": value})),
        Just(json!({"type": ["string", "null"]})),
        Just(json!({"type": ["integer", "string", "array"], "minItems": 1})),
        vec("[a-z]{1,5}", 1..3).prop_map(|examples| json!({"type": "string", "examples": examples})),
        Just(json!({"type": "integer", "default": 5})),
        Just(
            json!({"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 6}, "uniqueItems": true, "minItems": 5})
        ),
        Just(
            json!({"type": "object", "patternProperties": {"^k_[a-z]+$": {"type": "integer"}}, "additionalProperties": false, "minProperties": 2})
        ),
        Just(
            json!({"type": "object", "additionalProperties": {"type": "boolean"}, "propertyNames": {"pattern": "^[a-z]{4}$"}})
        ),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let members = || vec((prop::sample::select(vec!["id", "name", "state", "items", "created_at", "x"]), inner.clone(), any::<bool>()), 0..5);
        let object = move |members: Vec<(&str, Value, bool)>, closed: bool| {
            let required: Vec<&str> = members.iter().filter(|(_, _, needed)| *needed).map(|(name, ..)| *name).collect();
            let properties: Map<String, Value> =
                members.iter().map(|(name, of, _)| ((*name).to_owned(), of.clone())).collect();
            let mut of = json!({"type": "object", "properties": properties});
            let mut unique = required.clone();
            unique.sort_unstable();
            unique.dedup();
            of["required"] = json!(unique);
            if closed {
                of["additionalProperties"] = json!(false);
            }
            of
        };
        prop_oneof![
            (members(), any::<bool>()).prop_map(move |(members, closed)| object(members, closed)),
            (inner.clone(), 0_usize..4, 0_usize..4)
                .prop_map(|(of, min, more)| json!({"type": "array", "items": of, "minItems": min, "maxItems": min + more})),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"type": "array", "prefixItems": [a, b], "items": false})),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"anyOf": [a, b]})),
            inner.clone().prop_map(|of| json!({"anyOf": [of, {"type": "null"}]})),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"oneOf": [
                {"type": "object", "properties": {"kind": {"const": "a"}, "a": a}, "required": ["kind"]},
                {"type": "object", "properties": {"kind": {"const": "b"}, "b": b}, "required": ["kind"]}
            ]})),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"allOf": [
                {"type": "object", "properties": {"left": a}, "required": ["left"]},
                {"properties": {"right": b}, "required": ["right"]}
            ]})),
            inner.prop_map(|of| json!({
                "if": {"type": "object", "properties": {"kind": {"const": "a"}}, "required": ["kind"]},
                "then": {"properties": {"a": of}, "required": ["a"]},
                "else": {"type": "integer"}
            })),
        ]
    })
}

#[test]
fn an_argument_is_repeated_only_where_it_has_the_format() {
    let schema = json!({"type": "object", "properties": {"owner": {"type": "string", "format": "email"}}, "required": ["owner"]});
    assert_eq!(of_schema(&schema, &json!({"owner": "ann@example.org"}))["owner"], "ann@example.org");
    assert_ne!(of_schema(&schema, &json!({"owner": "ann"}))["owner"], "ann");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn values_are_valid_whatever_the_schema(schema in schema(), seed in any::<u64>(), variant in 0_u32..10) {
        let tool = ToolId::parse("s:t").unwrap();
        let arguments = json!({"id": 4, "name": "given", "x": [1], "limit": 2});
        // References from within, too.
        let schema = json!({"$defs": {"it": schema}, "type": "object", "properties": {"it": {"$ref": "#/$defs/it"}}, "required": ["it"]});
        let request = MockRequest { tool: &tool, arguments: &arguments, output_schema: Some(&schema), seed, variant };
        let made = generate(&request);
        prop_assert_eq!(made.origin, MockOrigin::Schema, "{}", schema);
        prop_assert!(is_valid(&schema, &made.value), "{}", made.value);
        prop_assert_eq!(generate(&request), made);
    }
}
