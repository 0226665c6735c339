//! Checks arguments against a tool's JSON Schema before anything is sent.
//!
//! Compiled schemas are cached by definition digest. A schema that cannot be compiled checks nothing: then the server
//! decides, and `pml doctor` reports it. References to other documents are never followed.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::{PatternOptions, Validator};
use pml_model::json::{MAX_DEPTH, nesting_depth};
use pml_model::name::{printable, truncate_text};
use pml_model::{Definition, Digest, ToolId};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::problem::{ErrorCode, Problem};

/// The compiled schemas.
#[derive(Debug, Default)]
pub struct Validators {
    compiled: Mutex<HashMap<Digest, Arc<CompiledSchema>>>,
}

type CompiledSchema = Result<Validator, String>;

/// The number of compiled schemas; beyond it all are dropped and compiled again on demand.
const KEPT: usize = 512;
/// The number of violations named in one error.
const NAMED: usize = 5;

impl Validators {
    /// Checks `arguments` against the input schema of `definition`.
    ///
    /// # Errors
    /// They are no object, nest too deep, or break the schema; each violation is named by its path.
    pub fn check(&self, tool: &ToolId, definition: &Definition, arguments: &RawValue) -> Result<(), Problem> {
        let text = arguments.get();
        let invalid = |message: String| Problem::new(ErrorCode::InvalidArguments, message);
        if nesting_depth(text) > MAX_DEPTH {
            return Err(invalid(format!(
                "the arguments of `{tool}` are nested deeper than {MAX_DEPTH} levels"
            )));
        }
        let compiled = self.compiled(definition);
        let Ok(validator) = &*compiled else { return Ok(()) };
        let value = value(text)
            .map_err(|error| invalid(format!("the arguments of `{tool}` are not JSON: {error}")))?;
        if !value.is_object() {
            return Err(invalid(format!("the arguments of `{tool}` are not a JSON object")));
        }
        if validator.is_valid(&value) {
            return Ok(());
        }
        let violations: Vec<String> =
            validator.iter_errors(&value).take(NAMED).map(|error| describe(&error)).collect();
        let problem =
            invalid(format!("the arguments of `{tool}` break its schema: {}", violations.join("; ")));
        Err(problem.hint(expected(definition)))
    }

    /// Why the schema of a definition cannot be used; `None` if it can.
    pub fn schema_problem(&self, definition: &Definition) -> Option<String> {
        self.compiled(definition).as_ref().as_ref().err().cloned()
    }

    fn compiled(&self, definition: &Definition) -> Arc<CompiledSchema> {
        let all = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(&definition.digest) {
            return Arc::clone(known);
        }
        drop(all);
        // Compiled outside the lock: a huge schema must not delay calls of other tools.
        let made = Arc::new(compile(definition.input_schema.get()));
        let mut all = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= KEPT {
            all.clear();
        }
        all.insert(definition.digest.clone(), Arc::clone(&made));
        made
    }
}

/// Parses the value to check. A number out of range counts as the largest one; it is still sent as written.
fn value(text: &str) -> Result<Value, serde_json::Error> {
    let error = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    match text.trim_start().as_bytes().first() {
        Some(b'{') => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
            let read = members.into_iter().map(|(key, member)| Ok((key, value(member.get())?)));
            read.collect::<Result<_, _>>().map(Value::Object)
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text)?;
            items.into_iter().map(|item| value(item.get())).collect::<Result<_, _>>().map(Value::Array)
        }
        Some(b'-') => Ok(Value::from(f64::MIN)),
        Some(digit) if digit.is_ascii_digit() => Ok(Value::from(f64::MAX)),
        _ => Err(error),
    }
}

fn compile(schema: &str) -> CompiledSchema {
    let schema: Value = serde_json::from_str(schema).map_err(|error| error.to_string())?;
    jsonschema::options()
        // The linear-time engine: a server's pattern must not be able to stall the gateway.
        .with_pattern_options(PatternOptions::regex())
        .build(&schema)
        .map_err(|error| error.to_string())
}

fn describe(error: &jsonschema::ValidationError<'_>) -> String {
    let path = error.instance_path().to_string();
    let at = if path.is_empty() { "the whole".to_owned() } else { format!("`{path}`") };
    format!("{at}: {}", printable(&truncate_text(&error.to_string(), 200)))
}

/// The hint that lists the parameters.
fn expected(definition: &Definition) -> String {
    let schema: Value = serde_json::from_str(definition.input_schema.get()).unwrap_or_default();
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let names = schema["properties"].as_object().into_iter().flat_map(|properties| properties.keys());
    let listed: Vec<String> = names
        .take(30)
        .map(|name| {
            if required.contains(&name.as_str()) {
                format!("`{name}` (required)")
            } else {
                format!("`{name}`")
            }
        })
        .collect();
    if listed.is_empty() {
        "it takes no parameters".to_owned()
    } else {
        format!("its parameters are {}", listed.join(", "))
    }
}

/// Whether `value` satisfies `schema`; an invalid schema accepts everything.
pub(crate) fn satisfies(schema: &Value, value: &RawValue) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(value.get()) else { return true };
    compile(&schema.to_string()).map_or(true, |validator| validator.is_valid(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: &str, arguments: &str) -> Result<(), String> {
        let raw = RawValue::from_string(format!(r#"{{"name":"t","inputSchema":{schema}}}"#)).unwrap();
        let definition = Definition::parse(raw).unwrap();
        let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
        Validators::default()
            .check(&ToolId::parse("s:t").unwrap(), &definition, &arguments)
            .map_err(|problem| problem.to_string())
    }

    const SUM: &str = r#"{"type":"object","properties":{"a":{"type":"number"},"list":{"type":"array","items":{"type":"integer"}}},"required":["a"]}"#;

    #[test]
    fn violations_are_named_by_path_and_reason() {
        let text = check(SUM, r#"{"list":[1,"two"]}"#).unwrap_err();
        assert!(text.contains("`/list/1`: \"two\" is not of type \"integer\""), "{text}");
        assert!(text.contains("\"a\" is a required property"), "{text}");
        assert!(text.contains("hint: its parameters are `a` (required), `list`"), "{text}");
    }

    #[test]
    fn numbers_no_machine_holds_are_still_numbers() {
        assert_eq!(check(SUM, r#"{"a":1e400,"list":[]}"#), Ok(()));
        assert!(check(SUM, r#"{"a":-1e400,"list":["x"]}"#).unwrap_err().contains("`/list/0`"));
        assert_eq!(check(SUM, r#"{"a":10e110,"list":[1234567890123456789012345678901234567890]}"#), Ok(()));
    }

    #[test]
    fn a_schema_that_cannot_be_compiled_checks_nothing() {
        assert_eq!(check(r#"{"type":"int"}"#, "{}"), Ok(()));
        assert_eq!(check(r#"{"$ref":"https://example.com/x.json"}"#, "{}"), Ok(()));
    }

    #[test]
    fn deep_arguments_are_refused_before_they_are_parsed() {
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert!(check(SUM, &deep).unwrap_err().contains("nested deeper"));
    }
}
