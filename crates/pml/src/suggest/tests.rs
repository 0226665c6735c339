//! Building DAGs from steps: one rule per test.

use std::sync::Arc;

use pml_graph::graph::fields::{self, FieldsDefinition};
use pml_language::Reading;
use pml_model::{Definition, ServerName, ToolId};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{SuggestStep, SuggestedDag, build_dag};
use crate::catalogue::CatalogueTool;

fn tool(
    id: &str,
    properties: &Value,
    required: &Value,
    output: &Value,
) -> (CatalogueTool, fields::ToolFields) {
    let (server, name) = id.split_once(':').unwrap();
    let input = json!({ "type": "object", "properties": properties, "required": required });
    let definition = json!({ "name": name, "inputSchema": input, "outputSchema": output });
    let tool = CatalogueTool {
        id: ToolId { server: ServerName::new(server).unwrap(), tool: name.to_owned() },
        identifier: name.to_owned(),
        exposed_name: name.to_owned(),
        definition: Arc::new(
            Definition::parse(RawValue::from_string(definition.to_string()).unwrap()).unwrap(),
        ),
        first_seen_at: 0,
        defined_at: 0,
        header_parameters: Vec::new(),
    };
    let fields = fields::ToolFields::from_definition(&FieldsDefinition {
        id,
        name,
        description: "",
        input_schema: &input,
        output_schema: Some(output),
    });
    (tool, fields)
}

fn dag(
    intent: &str,
    context: &Value,
    steps: &[(&str, &(CatalogueTool, fields::ToolFields), bool)],
) -> SuggestedDag {
    let steps: Vec<SuggestStep<'_>> = steps
        .iter()
        .map(|(words, (tool, fields), reads)| SuggestStep {
            words,
            tool,
            fields,
            score: 0.9,
            reads_only: *reads,
            from_intent: true,
            alternatives: Vec::new(),
        })
        .collect();
    let context: Map<String, Value> = context.as_object().unwrap().clone();
    build_dag(&Reading::of(intent), &context, &steps, |_| None, |_| Vec::new())
}

fn arguments(dag: &SuggestedDag, task: usize) -> &Value {
    &dag.dag_structure["tasks"][task]["arguments"]
}

#[test]
fn what_changes_something_waits_for_the_step_before() {
    let text = json!({ "path": { "type": "string" } });
    let make = tool("fs:mkdir", &text, &json!(["path"]), &json!({}));
    let touch = tool("fs:touch", &text, &json!(["path"]), &json!({}));
    let steps = [("create a folder", &make), ("touch a file", &touch)];
    let with = |reads: bool| {
        dag("create a folder, then touch a file", &json!({}), &steps.map(|(w, t)| (w, t, reads)))
    };
    assert_eq!(with(false).dag_structure["tasks"][1]["dependsOn"], json!(["t1"]));
    assert_eq!(with(true).dag_structure["tasks"][1]["dependsOn"], json!([]));
}

#[test]
fn what_is_given_by_name_counts_and_what_finds_no_place_keeps_it_from_running() {
    let read = tool("fs:read", &json!({ "path": { "type": "string" } }), &json!(["path"]), &json!({}));
    let step = [("read the file notes.txt", &read, true)];
    let said = dag("read the file notes.txt", &json!({}), &step);
    assert_eq!(arguments(&said, 0)["path"], "notes.txt");
    assert!(said.complete, "{said:?}");
    let given = dag("read the file notes.txt", &json!({ "path": "other.txt" }), &step);
    assert_eq!(arguments(&given, 0)["path"], "other.txt");
    assert!(!given.complete, "`notes.txt` has no place");
    let unknown = dag("read the file notes.txt", &json!({ "colour": "red" }), &step);
    assert!(!unknown.complete, "nobody takes `colour`");
    let more = dag("read the file notes.txt from 2026-01-05", &json!({}), &step);
    assert!(!more.complete, "the date has no place: {more:?}");
}

#[test]
fn a_value_with_braces_is_meant_as_it_is_written() {
    let render = tool("text:render", &json!({ "text": { "type": "string" } }), &json!(["text"]), &json!({}));
    let given = dag("render it", &json!({ "text": "Hello {{name}}" }), &[("render it", &render, true)]);
    assert_eq!(arguments(&given, 0)["text"], json!({ "$literal": "Hello {{name}}" }));
}

#[test]
fn fields_are_referred_to_as_documents_write_them() {
    for (path, expected) in
        [("", ""), ("content", ".content"), ("items[].id", ".items[0].id"), ("full name", "[\"full name\"]")]
    {
        assert_eq!(super::reference_path(path), expected);
    }
}
