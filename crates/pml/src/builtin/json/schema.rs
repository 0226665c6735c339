//! Checks a value against a JSON Schema.

use jsonschema::PatternOptions;
use pml_model::name::truncate_text;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::tool::{BuiltinFailure, BuiltinSpec, READS, StopSignal, failure, object_schema};

/// The number of violations that are returned.
const MOST_ERRORS: usize = 50;
/// The longest message of a violation, in characters; it may quote the value.
const MESSAGE_CHARACTERS: usize = 300;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JsonValidateArguments {
    data: Box<RawValue>,
    schema: Value,
}

#[derive(Serialize)]
pub(super) struct JsonValidateAnswer {
    valid: bool,
    errors: Vec<SchemaViolation>,
}

#[derive(Serialize)]
struct SchemaViolation {
    path: String,
    message: String,
}

pub(super) fn validate_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "validate",
        title: "Check JSON against a schema",
        description:
            "Checks a value against a JSON Schema and says where it breaks it. References to other documents \
                      are not followed."
                .into(),
        effect: READS,
        input: object_schema(
            json!({
                "data": { "description": "The value to check." },
                "schema": { "type": "object", "description": "The JSON Schema." },
            }),
            &["data", "schema"],
        ),
        output: object_schema(
            json!({
                "valid": { "type": "boolean", "description": "Whether the value satisfies the schema." },
                "errors": {
                    "type": "array",
                    "description": "The first 50 violations.",
                    "items": object_schema(
                        json!({
                            "path": { "type": "string", "description": "JSON Pointer to the place in the value." },
                            "message": { "type": "string", "description": "What is wrong there." },
                        }),
                        &["path", "message"],
                    ),
                },
            }),
            &["valid", "errors"],
        ),
    }
}

pub(super) fn validate(
    arguments: &JsonValidateArguments,
    _: &StopSignal,
) -> Result<JsonValidateAnswer, BuiltinFailure> {
    let data: Value = serde_json::from_str(arguments.data.get())
        .map_err(|error| failure!("`data` has a number that cannot be compared: {error}"))?;
    let validator = jsonschema::options()
        // The linear-time engine: a pattern must not be able to stall the gateway.
        .with_pattern_options(PatternOptions::regex())
        .build(&arguments.schema)
        .map_err(|error| failure!("`schema` is not a JSON Schema: {error}"))?;
    let errors = validator.iter_errors(&data).take(MOST_ERRORS).map(|error| SchemaViolation {
        path: error.instance_path().to_string(),
        message: truncate_text(&error.to_string(), MESSAGE_CHARACTERS),
    });
    let errors: Vec<SchemaViolation> = errors.collect();
    Ok(JsonValidateAnswer { valid: errors.is_empty(), errors })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::builtin::check::{check, server};

    #[test]
    fn violations_are_named_by_their_place() {
        let schema =
            r#"{"type":"array","items":{"required":["id"],"properties":{"id":{"pattern":"^[0-9]+$"}}}}"#;
        let of = |data: &str| format!(r#"{{"data":{data},"schema":{schema}}}"#);
        let server = server("json");
        check(&server, "validate", &of(r#"[{"id":"1"}]"#), &expect![[r#"{"valid":true,"errors":[]}"#]]);
        check(
            &server,
            "validate",
            &of(r#"[{"id":"x"},{}]"#),
            &expect![[
                r#"{"valid":false,"errors":[{"path":"/0/id","message":"\"x\" does not match \"^[0-9]+$\""},{"path":"/1","message":"\"id\" is a required property"}]}"#
            ]],
        );
        check(
            &server,
            "validate",
            r#"{"data":1,"schema":{"type":"nothing"}}"#,
            &expect![[
                r#"error: `schema` is not a JSON Schema: "nothing" is not valid under any of the schemas listed in the 'anyOf' keyword"#
            ]],
        );
        check(
            &server,
            "validate",
            r#"{"data":1,"schema":{"$ref":"file:///etc/passwd"}}"#,
            &expect![
                "error: `schema` is not a JSON Schema: Resource 'file:///etc/passwd' is not present in a registry and retrieving it failed: `resolve-file` feature or a custom resolver is required to resolve external schemas via files"
            ],
        );
    }
}
