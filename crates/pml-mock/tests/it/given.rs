//! Mocks that a caller gives.

use expect_test::{Expect, expect};
use pml_mock::{GivenAnswer, GivenMocks, MockError};
use pml_model::ToolId;
use serde_json::{Value, json};

fn parse(given: &Value) -> Result<GivenMocks, MockError> {
    let schema =
        json!({"type": "object", "properties": {"bytes": {"type": "integer"}}, "required": ["bytes"]});
    let tools = ["fs:write_file", "fs:read_file", "db:query", "web:query"];
    let tools = tools.map(|tool| ToolId::parse(tool).unwrap());
    let tools: Vec<_> = tools
        .into_iter()
        .map(|tool| {
            let schema = (tool.tool == "write_file").then_some(&schema);
            (tool, schema)
        })
        .collect();
    GivenMocks::parse(given, &tools)
}

#[track_caller]
fn refused(given: &Value, expected: &Expect) {
    let error = parse(given).unwrap_err();
    expected.assert_eq(&format!("{error}\nhint: {}", error.hint().unwrap_or_default()));
}

fn answer(mocks: &GivenMocks, tool: &str, arguments: &Value, earlier_calls: usize) -> Option<GivenAnswer> {
    mocks.answer(&ToolId::parse(tool).unwrap(), arguments, earlier_calls)
}

#[test]
fn tools_and_arguments_are_read_in_both_forms() {
    let sectioned = parse(&json!({"tools": {"fs:write_file": {"bytes": 3}}, "args": {"n": 5}})).unwrap();
    assert_eq!(
        answer(&sectioned, "fs:write_file", &json!({}), 0),
        Some(GivenAnswer::Value(json!({"bytes": 3})))
    );
    assert_eq!(answer(&sectioned, "fs:read_file", &json!({}), 0), None);
    assert_eq!(sectioned.args()["n"], 5);
    let flat = parse(&json!({"write_file": {"bytes": 3}})).unwrap();
    assert_eq!(answer(&flat, "fs:write_file", &json!({}), 9), Some(GivenAnswer::Value(json!({"bytes": 3}))));
    assert!(flat.args().is_empty());
    assert_eq!(parse(&json!({"args": {"n": 1}})).unwrap().tools().count(), 0);
}

#[test]
fn an_argument_may_be_a_member_of_another() {
    let request = json!({"config": {"env": "dev", "deep": {"n": 1}}, "list": [1], "odd.name": 2});
    let current = |name: &str| request.get(name).cloned();
    let changed =
        |args: Value| parse(&json!({"args": args})).unwrap().changed_arguments(current).map(Value::Object);
    assert_eq!(
        changed(json!({"config.env": "prod", "config.deep.m": true})).unwrap(),
        json!({"config": {"env": "prod", "deep": {"n": 1, "m": true}}})
    );
    assert_eq!(changed(json!({"new.one": 1, "n": 2})).unwrap(), json!({"new": {"one": 1}, "n": 2}));
    assert_eq!(changed(json!({"odd.name": 3, ".x": 4})).unwrap(), json!({"odd.name": 3, ".x": 4}));
    assert_eq!(changed(json!({"config.env": 1, "config": {}})).unwrap(), json!({"config": {"env": 1}}));
    let error = changed(json!({"list.first": 1})).unwrap_err();
    assert_eq!(error.to_string(), "`args` of the mocks sets `list.first`, but `list` is no object");
}

#[test]
fn calls_can_differ_and_fail() {
    let mocks = parse(&json!({
        "fs:read_file": {"$cases": [
            {"args": {"path": "gone"}, "result": {"$error": "no such file"}},
            {"args": {}, "result": {"$sequence": ["one", {"$value": {"$error": "a value"}}]}}
        ]}
    }))
    .unwrap();
    let read =
        |path: &str, earlier: usize| answer(&mocks, "fs:read_file", &json!({"path": path}), earlier).unwrap();
    assert_eq!(read("gone", 0), GivenAnswer::Error("no such file".to_owned()));
    assert_eq!(read("a", 0), GivenAnswer::Value(json!("one")));
    assert_eq!(read("a", 1), GivenAnswer::Value(json!({"$error": "a value"})));
    assert_eq!(read("a", 7), read("a", 1), "the last one answers all later calls");
}

#[test]
fn what_cannot_be_meant_is_refused_with_what_to_do() {
    refused(
        &json!({"fs:write_fil": 1}),
        &expect![[r#"
        there is no tool `fs:write_fil` to mock
        hint: did you mean `fs:write_file`?"#]],
    );
    refused(
        &json!({"tools": {"query": []}}),
        &expect![[r#"
        `query` is the name of several tools: `db:query` or `web:query`
        hint: name the server too, as in `server:tool`"#]],
    );
    refused(
        &json!({"write_file": {"bytes": "many"}}),
        &expect![[r#"
        the mock of `fs:write_file` breaks its output schema at `/bytes`: "many" is not of type "integer"
        hint: give a value that the tool could return, or `{"$error": "…"}` to make it fail"#]],
    );
    refused(
        &json!({"write_file": {"$sequence": [{"bytes": 1}, {}]}}),
        &expect![[r#"
        the mock of `fs:write_file` breaks its output schema at the top: "bytes" is a required property
        hint: give a value that the tool could return, or `{"$error": "…"}` to make it fail"#]],
    );
    refused(
        &json!({"read_file": "x".repeat(5_000_000)}),
        &expect![[r#"
        the mock of `fs:read_file` is 5000002 bytes; at most 4194304 are taken
        hint: give a smaller value: a few elements are enough"#]],
    );
    refused(
        &json!({"tools": []}),
        &expect![[r#"
        `tools` of the mocks is not a JSON object
        hint: give `{"tools": {"server:tool": result}, "args": {…}}`"#]],
    );
    refused(
        &json!({"read_file": {"$sequence": []}}),
        &expect![[r#"
        the mock of `fs:read_file`: `$sequence` is not a list of at least one result
        hint: give `{"tools": {"server:tool": result}, "args": {…}}`"#]],
    );
    refused(
        &json!({"read_file": "a", "fs:read_file": "b"}),
        &expect![[r#"
        `fs:read_file` has two mocks: with and without its server
        hint: give `{"tools": {"server:tool": result}, "args": {…}}`"#]],
    );
}
