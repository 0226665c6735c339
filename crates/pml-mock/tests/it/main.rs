//! Mocks as a dry run asks for them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod connectors;
mod given;
mod schemas;

use pml_mock::{Mock, MockRequest, generate};
use pml_model::ToolId;
use serde_json::Value;

/// The mock of a call with seed 1.
fn mock(tool: &str, arguments: &Value, output_schema: Option<&Value>, variant: u32) -> Mock {
    let tool = ToolId::parse(tool).unwrap();
    generate(&MockRequest { tool: &tool, arguments, output_schema, seed: 1, variant })
}
