//! The tools generated programs call, as the analysis is told of them.

use pml_analysis::{AnalysisCapability, AnalysisCatalogue, AnalysisTool};
use pml_model::ToolId;
use serde_json::value::RawValue;

/// `server:tool`, schema of the arguments, schema of the result, and whether it only reads.
const TOOLS: &[(&str, &str, Option<&str>, bool)] = &[
    ("fs:read", r#"{"type":"object","properties":{"path":{"type":"string"}}}"#, Some(RECORD), true),
    ("fs:list", r#"{"type":"object","properties":{"dir":{"type":"string"}}}"#, None, true),
    (
        "fs:write",
        r#"{"type":"object","properties":{"path":{"type":"string"},"text":{"type":"string"}}}"#,
        None,
        false,
    ),
    (
        "math:add",
        r#"{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}}}"#,
        None,
        true,
    ),
    ("math:get-sum", r#"{"type":"object","properties":{"values":{"type":"array"}}}"#, None, true),
    ("my-server:get-items", r#"{"type":"object","properties":{"count":{"type":"number"}}}"#, None, true),
    (
        "net:flaky",
        r#"{"type":"object","properties":{"key":{"type":"string"},"n":{"type":"number"}}}"#,
        None,
        false,
    ),
    (
        "db:query",
        r#"{"type":"object","properties":{"sql":{"type":"string"},"limit":{"type":"number"}}}"#,
        None,
        true,
    ),
    ("db:insert", r#"{"type":"object","properties":{"row":{"type":"object"}}}"#, Some(RECORD), false),
];

const RECORD: &str = r#"{"type":"object","properties":{"id":{"type":"number"},"name":{"type":"string"}}}"#;

/// All of them.
pub(crate) fn catalogue() -> AnalysisCatalogue {
    let mut catalogue = AnalysisCatalogue::default();
    for &(id, input, output, read_only) in TOOLS {
        let id = ToolId::parse(id).expect("the tools are well named");
        let identifier = id.tool.replace('-', "_");
        catalogue.add_tool(AnalysisTool::new(id, identifier, raw(input), output.map(raw), read_only));
    }
    catalogue.add_capability(AnalysisCapability::new("summarise".to_owned(), raw(r#"{"type":"object"}"#)));
    catalogue
}

fn raw(schema: &str) -> Box<RawValue> {
    RawValue::from_string(schema.to_owned()).expect("the schemas are JSON")
}
