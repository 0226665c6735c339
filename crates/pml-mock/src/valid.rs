//! Whether a value satisfies a schema.

use jsonschema::{PatternOptions, Validator};
use pml_model::name::{printable, truncate_text};
use serde_json::{Value, json};

/// The first violation of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    /// JSON pointer of the value that breaks it; empty for the whole.
    pub(crate) path: String,
    /// The broken rule.
    pub(crate) reason: String,
}

/// The compiled schema; `None` if it cannot be compiled, in which case it checks nothing.
pub(crate) fn compile(schema: &Value) -> Option<Validator> {
    // The linear-time engine, as for arguments: a server's pattern must not be able to stall the gateway.
    jsonschema::options().with_pattern_options(PatternOptions::regex()).build(schema).ok()
}

/// The first violation of `schema` in `value`; `None` if the value satisfies it or the schema cannot be used.
pub(crate) fn violation(schema: &Value, value: &Value) -> Option<Violation> {
    let validator = compile(schema)?;
    let error = validator.iter_errors(value).next()?;
    Some(Violation {
        path: error.instance_path().to_string(),
        reason: printable(&truncate_text(&error.to_string(), 200)),
    })
}

/// Whether `value` has the `format` of a schema, which validators do not check by default; one that is not known says
/// nothing about a value.
pub(crate) fn has_format(value: &Value, format: &str) -> bool {
    let validator = jsonschema::options().should_validate_formats(true).build(&json!({"format": format}));
    validator.is_ok_and(|validator| validator.is_valid(value))
}
