//! Makes up the results of tools that are not called.
//!
//! [`generate`] makes one result from what is known of the tool: a generator for its service, its output schema, or a
//! placeholder. [`GivenMocks`] are results that the caller of a dry run dictates. Everything is a pure function: the
//! same request gives the same value on every machine, and nothing here reads a clock, a file or a socket.

mod connectors;
mod echo;
mod given;
mod names;
mod pattern;
mod random;
mod schema;
mod valid;

use pml_model::ToolId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use given::{GivenAnswer, GivenMocks, MockError};

/// What a value of a dry run comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MockOrigin {
    /// The tool was really called.
    Real,
    /// The caller of the dry run dictated it.
    Given,
    /// An earlier real result for equal or similar arguments.
    Recorded,
    /// A generator for the service of the tool.
    Connector,
    /// Generated from the output schema.
    Schema,
    /// Nothing is known of the tool's results.
    Placeholder,
    /// What the same dry run wrote before.
    Overlay,
}

/// A call whose result is to be made up.
#[derive(Debug, Clone, Copy)]
pub struct MockRequest<'a> {
    /// The tool.
    pub tool: &'a ToolId,
    /// Its arguments.
    pub arguments: &'a Value,
    /// Its output schema, declared or observed.
    pub output_schema: Option<&'a Value>,
    /// Seed of the dry run: the same seed gives the same values.
    pub seed: u64,
    /// 0 for the most plausible value; others take other branches: empty lists, other enum values, absent fields.
    pub variant: u32,
}

/// A made-up result.
#[derive(Debug, Clone, PartialEq)]
pub struct Mock {
    /// The result, as a program sees it.
    pub value: Value,
    /// What it was made from.
    pub origin: MockOrigin,
}

/// Makes up the result of a call: by the connector of its service, else from the output schema, else a placeholder
/// that says so. The value is valid against the schema unless no value could be found that is.
pub fn generate(request: &MockRequest<'_>) -> Mock {
    if let Some(value) = connectors::generate(request) {
        return Mock { value, origin: MockOrigin::Connector };
    }
    if let Some(value) = request.output_schema.and_then(|schema| schema::generate(request, schema)) {
        return Mock { value, origin: MockOrigin::Schema };
    }
    let reason = match request.output_schema {
        Some(_) => "no value was found that satisfies its output schema",
        None => "its results are not described by a schema and were not seen before",
    };
    let value = json!({"_mocked": true, "toolId": request.tool.to_string(), "reason": reason});
    Mock { value, origin: MockOrigin::Placeholder }
}

/// Makes up an argument of a tool that is valid by its schema; `None` if no value was found that is.
pub fn generate_argument(tool: &ToolId, schema: &Value, seed: u64) -> Option<Value> {
    let request = MockRequest { tool, arguments: &Value::Null, output_schema: None, seed, variant: 0 };
    schema::generate(&request, schema)
}
