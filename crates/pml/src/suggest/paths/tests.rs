//! Candidate paths over the built-in tools.

use std::sync::Arc;

use expect_test::{Expect, expect};
use pml_graph::graph::fields::FieldsDefinition;
use pml_model::{ServerName, ToolId};

use super::*;
use crate::builtin::{BuiltinSettings, servers};
use crate::catalogue::CatalogueTool;
use crate::config::OwnFiles;

/// All built-in tools.
fn tools() -> Vec<CatalogueTool> {
    let root = tempfile::tempdir().expect("a directory");
    let settings = BuiltinSettings {
        fs_root: Some(root.path().to_owned()),
        own_files: OwnFiles::default(),
        http_hosts: vec!["example.org".to_owned()],
    };
    let tool = |server: &str, definition: pml_model::Definition| CatalogueTool {
        id: ToolId { server: ServerName::new(server).expect("a name"), tool: definition.name.clone() },
        identifier: definition.name.clone(),
        exposed_name: definition.name.clone(),
        definition: Arc::new(definition),
        first_seen_at: 0,
        defined_at: 0,
        header_parameters: Vec::new(),
    };
    let servers = servers(&settings).expect("sound settings");
    servers
        .iter()
        .flat_map(|server| server.definitions().into_iter().map(|one| tool(server.name(), one)))
        .collect()
}

fn path_tool(tool: &CatalogueTool) -> PathTool {
    let parse = |text: &str| serde_json::from_str::<Value>(text).expect("a schema");
    let input = parse(tool.definition.input_schema.get());
    let output = tool.definition.output_schema.as_ref().map(|schema| parse(schema.get()));
    let reads = tool.definition.annotations.read_only_hint == Some(true);
    PathTool {
        fields: ToolFields::from_definition(&FieldsDefinition {
            id: &tool.id.to_string(),
            name: &tool.definition.name,
            description: tool.definition.description.as_deref().unwrap_or_default(),
            input_schema: &input,
            output_schema: output.as_ref(),
        }),
        callee: PathCallee::Tool(tool.id.clone()),
        input_schema: input,
        output_schema: output.unwrap_or_default(),
        is_safe: reads,
        reads_only: reads,
        reliability: 0.9,
    }
}

/// The paths for an intent; the candidates of each step are `server:tool probability` lists.
fn find(
    intent: &str,
    context: &Value,
    steps: &[(&str, &[(&str, f64)])],
    (most, max_depth): (usize, usize),
) -> CandidatePaths {
    let catalogue = tools();
    let tools: Vec<PathTool> = catalogue.iter().map(path_tool).collect();
    let place =
        |id: &str| tools.iter().position(|tool| tool.callee.to_string() == id).expect("a built-in tool");
    let steps: Vec<PathStep> = steps
        .iter()
        .map(|(words, found)| PathStep {
            words: (*words).to_owned(),
            candidates: found.iter().map(|(id, score)| (place(id), *score)).collect(),
        })
        .collect();
    let request = PathRequest {
        intent: &Reading::of(intent),
        context: context.as_object().expect("an object"),
        tools: &tools,
        steps: &steps,
        max_depth,
    };
    let mut found = candidate_paths(&request);
    // Of the same tools in several wirings, the cheapest is enough to see.
    let mut seen = HashSet::new();
    found.paths.retain(|path| seen.insert(path.sorted_callees()));
    found.paths.truncate(most);
    found
}

fn render(found: &CandidatePaths) -> String {
    let mut text = String::new();
    for path in &found.paths {
        for task in path.document["tasks"].as_array().into_iter().flatten() {
            let id = task["id"].as_str().unwrap_or_default();
            text.push_str(&format!("{id} {} {}\n", task["tool"], task["arguments"]));
        }
        for warning in &path.warnings {
            text.push_str(&format!("  {warning}\n"));
        }
        text.push('\n');
    }
    text
}

#[track_caller]
fn check(found: &CandidatePaths, expected: &Expect) {
    expected.assert_eq(&render(found));
}

const CONVERT: &[(&str, &[(&str, f64)])] = &[
    ("convert data/orders.csv to JSON", &[("csv:parse", 0.7), ("json:stringify", 0.4), ("json:parse", 0.3)]),
    ("check it against data/orders.schema.json", &[("json:validate", 0.8)]),
];

#[test]
fn tools_that_read_are_put_before_those_that_need_content() {
    let intent = "convert data/orders.csv to JSON and check it against data/orders.schema.json";
    check(
        &find(intent, &json!({}), CONVERT, (2, 5)),
        &expect![[r#"
            t1 "fs:read" {"path":"data/orders.csv"}
            t2 "fs:read" {"path":"data/orders.schema.json"}
            t3 "json:parse" {"json":{"$ref":"t2.content"}}
            t4 "csv:parse" {"csv":{"$ref":"t1.content"}}
            t5 "json:validate" {"schema":{"$ref":"t3.data"},"data":{"$ref":"t4.rows"}}

            t1 "fs:read" {"path":"data/orders.csv"}
            t2 "fs:read" {"path":"data/orders.schema.json"}
            t3 "json:parse" {"json":{"$ref":"t2.content"}}
            t4 "json:parse" {"json":{"$ref":"t1.content"}}
            t5 "csv:parse" {"csv":{"$ref":"t4.data"}}
            t6 "json:validate" {"schema":{"$ref":"t3.data"},"data":{"$ref":"t5.rows"}}

        "#]],
    );
}

#[test]
fn values_of_the_context_go_where_their_name_is() {
    let intent = "convert the CSV in data/ to JSON and check it against the schema";
    let steps: &[(&str, &[(&str, f64)])] = &[
        ("convert the CSV in data/ to JSON", &[("csv:parse", 0.7), ("json:stringify", 0.4)]),
        ("check it against the schema", &[("json:validate", 0.8)]),
    ];
    let context = json!({ "path": "data/orders.csv", "schema": { "type": "array" } });
    check(
        &find(intent, &context, steps, (1, 5)),
        &expect![[r#"
            t1 "fs:read" {"path":"data/orders.csv"}
            t2 "csv:parse" {"csv":{"$ref":"t1.content"}}
            t3 "json:validate" {"schema":{"type":"array"},"data":{"$ref":"t2.rows"}}
              `data/` is not used

        "#]],
    );
    check(
        &find(intent, &json!({}), steps, (2, 5)),
        &expect![[r#"
            t1 "fs:search" {"pattern":"*csv*","path":"data/"}
            t2 "fs:search" {"pattern":"*schema*","path":"data/"}
            t3 "fs:read" {"path":{"$ref":"t1.matches[0].path"}}
            t4 "fs:read" {"path":{"$ref":"t2.matches[0].path"}}
            t5 "csv:parse" {"csv":{"$ref":"t3.content"}}
            t6 "json:parse" {"json":{"$ref":"t4.content"}}
            t7 "json:validate" {"data":{"$ref":"t5.rows"},"schema":{"$ref":"t6.data"}}
              only the first of several results is passed on

            t1 "fs:search" {"pattern":"*csv*","path":"data/"}
            t2 "fs:search" {"pattern":"*schema*","path":"data/"}
            t3 "fs:read" {"path":{"$ref":"t2.matches[0].path"}}
            t4 "json:parse" {"json":{"$ref":"t3.content"}}
            t5 "csv:parse" {"csv":{"$ref":"t1.matches[0].text"}}
            t6 "json:validate" {"schema":{"$ref":"t4.data"},"data":{"$ref":"t5.rows"}}
              only the first of several results is passed on

        "#]],
    );
}

#[test]
fn a_step_that_changes_something_waits_for_the_one_before() {
    let intent = "read a.txt and delete b.txt";
    let steps: &[(&str, &[(&str, f64)])] =
        &[("read a.txt", &[("fs:read", 0.9)]), ("delete b.txt", &[("fs:delete", 0.9)])];
    let found = find(intent, &json!({}), steps, (1, 5));
    assert_eq!(found.paths[0].document["tasks"][1]["dependsOn"], json!(["t1"]), "{}", render(&found));
}

#[test]
fn longer_chains_than_allowed_are_left_out() {
    let intent = "convert data/orders.csv to JSON and check it against data/orders.schema.json";
    let found = find(intent, &json!({}), CONVERT, (3, 2));
    assert!(!found.too_deep.is_empty() && found.paths.is_empty(), "{}", render(&found));
}

#[test]
fn nothing_is_found_where_a_value_is_missing() {
    let found = find("get the page", &json!({}), &[("get the page", &[("http:get", 0.9)])], (3, 5));
    assert!(found.paths.is_empty() && found.too_deep.is_empty(), "{}", render(&found));
}
