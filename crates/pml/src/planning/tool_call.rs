//! One call of a tool as a DAG document.

use pml_model::ToolId;
use pml_model::json::{Fields, raw};
use serde_json::value::RawValue;

use crate::problem::{ErrorCode, Problem};

/// The arguments of a tool call: `arguments` over `defaults`.
pub(super) fn merged(defaults: &RawValue, arguments: &RawValue) -> Box<RawValue> {
    let mut merged = Fields::parse(defaults.get()).unwrap_or_default();
    let given = Fields::parse(arguments.get()).unwrap_or_default();
    given.iter().for_each(|(key, value)| merged.set(key.to_owned(), value.to_owned()));
    merged.to_raw()
}

/// The DAG document for one call of a tool: the run's arguments over the defaults.
pub(crate) fn tool_call_document(
    tool: &ToolId,
    defaults: &RawValue,
    arguments: &RawValue,
) -> Result<String, Problem> {
    let object = |what: &str, json: &'_ RawValue| {
        serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(json.get()).map_err(|_| {
            Problem::new(ErrorCode::InvalidArguments, format!("{what} are no JSON object"))
                .hint("write {\"name\": value, …}")
        })
    };
    object("the default arguments", defaults)?;
    object("the arguments", arguments)?;
    // Assembled as text, so that numbers in the arguments stay as they were written.
    let (mut literal, mut task, mut document) = (Fields::default(), Fields::default(), Fields::default());
    literal.set("$literal", merged(defaults, arguments));
    task.set("id", raw(&"call"));
    task.set("tool", raw(&tool.to_string()));
    task.set("arguments", literal.to_raw());
    document.set("tasks", raw(&[task.to_raw()]));
    Ok(document.to_raw().get().to_owned())
}
