//! Test helpers: call a built-in tool and render its result.

use std::path::Path;

use expect_test::Expect;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{BuiltinServer, BuiltinSettings, servers};
use crate::config::OwnFiles;

/// The server `name`, with `fs` below `root` and `http` open to `hosts`.
pub(super) fn server_with(name: &str, root: Option<&Path>, hosts: &[&str]) -> BuiltinServer {
    let settings = BuiltinSettings {
        fs_root: root.map(Path::to_owned),
        own_files: OwnFiles::default(),
        http_hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
    };
    servers(&settings).unwrap().into_iter().find(|server| server.name() == name).unwrap()
}

/// A server that needs no settings.
pub(super) fn server(name: &str) -> BuiltinServer {
    server_with(name, None, &[])
}

/// Calls a tool and returns its structured content, or its error message.
pub(super) async fn answer(server: &BuiltinServer, tool: &str, arguments: &str) -> Result<String, String> {
    let arguments = RawValue::from_string(arguments.to_owned()).unwrap();
    let result = server.call(tool, &arguments).await.unwrap();
    let parsed: Value = serde_json::from_str(result.get()).unwrap();
    let text = parsed["content"][0]["text"].as_str().unwrap().to_owned();
    if parsed["isError"] == true {
        return Err(text);
    }
    // The text equals the structured content byte for byte, so numbers appear as they were written.
    let tail = format!(r#""structuredContent":{text},"isError":false}}"#);
    assert!(result.get().ends_with(&tail), "{result}");
    assert_fits(server, tool, &text);
    Ok(text)
}

/// Every result in every test has to satisfy the output schema.
#[track_caller]
fn assert_fits(server: &BuiltinServer, tool: &str, structured: &str) {
    let definition = server.definitions().into_iter().find(|definition| definition.name == tool).unwrap();
    let schema: Value = serde_json::from_str(definition.output_schema.unwrap().get()).unwrap();
    let instance: Value = serde_json::from_str(structured).unwrap();
    if let Err(error) = jsonschema::draft202012::new(&schema).unwrap().validate(&instance) {
        panic!("the answer of `{tool}` does not fit its schema: {error}");
    }
}

/// Calls a tool and compares its structured content, or `error: …`, with `expected`.
pub(super) fn check(server: &BuiltinServer, tool: &str, arguments: &str, expected: &Expect) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let shown =
        runtime.block_on(answer(server, tool, arguments)).unwrap_or_else(|error| format!("error: {error}"));
    expected.assert_eq(&shown);
}

#[tokio::test]
async fn every_tool_is_defined_in_full() {
    let root = tempfile::tempdir().unwrap();
    let settings = BuiltinSettings {
        fs_root: Some(root.path().to_owned()),
        http_hosts: vec!["*".to_owned()],
        ..BuiltinSettings::default()
    };
    let servers = servers(&settings).unwrap();
    let names: Vec<&str> = servers.iter().map(BuiltinServer::name).collect();
    assert_eq!(names, ["fs", "json", "text", "csv", "time", "math", "http"]);
    for server in &servers {
        assert!(server.description().ends_with('.'));
        for definition in server.definitions() {
            let name = format!("{}:{}", server.name(), definition.name);
            let parsed = pml_model::Definition::parse(definition.raw.clone()).unwrap();
            assert_eq!(parsed.digest, definition.digest, "{name}");
            assert!(definition.title.is_some() && definition.description.is_some(), "{name}");
            let hints = definition.annotations;
            for hint in
                [hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint]
            {
                assert!(hint.is_some(), "{name}");
            }
            for schema in [Some(definition.input_schema), definition.output_schema] {
                let schema: Value = serde_json::from_str(schema.expect(&name).get()).unwrap();
                jsonschema::draft202012::new(&schema).unwrap();
                assert_described(&name, &schema);
            }
        }
    }
}

/// Every object schema is closed and lists its required properties; every property has a description.
#[track_caller]
fn assert_described(name: &str, schema: &Value) {
    if let Some(properties) = schema["properties"].as_object() {
        assert_eq!(schema["additionalProperties"], false, "{name}");
        assert!(schema["required"].is_array(), "{name}");
        for (property, schema) in properties {
            assert!(schema["description"].is_string(), "{name} {property}");
            assert_described(name, schema);
        }
    }
    if schema["items"].is_object() {
        assert_described(name, &schema["items"]);
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_named_and_never_panic() {
    let root = tempfile::tempdir().unwrap();
    let settings = BuiltinSettings {
        fs_root: Some(root.path().to_owned()),
        http_hosts: vec!["*".to_owned()],
        ..BuiltinSettings::default()
    };
    for server in servers(&settings).unwrap() {
        for definition in server.definitions() {
            for arguments in ["null", "[]", "7", r#"{"surprise":1}"#] {
                let error = answer(&server, &definition.name, arguments).await.unwrap_err();
                assert!(error.starts_with("the arguments do not fit: "), "{} {error}", definition.name);
            }
        }
    }
}

#[tokio::test]
async fn an_unknown_tool_is_told_what_there_is() {
    let error = server("csv").call("guess", &pml_model::json::empty_object()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the built-in server `csv` has no tool `guess`; it has `parse`, `stringify`"
    );
}

#[tokio::test]
async fn limits_are_named() {
    let text = server("text");
    let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(super::tool::MAX_ARGUMENT_BYTES));
    let error = answer(&text, "count", &long).await.unwrap_err();
    assert_eq!(error, "the arguments are 8388619 bytes; at most 8388608 are taken");
    let deep = format!(r#"{{"data":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    let error = answer(&server("json"), "stringify", &deep).await.unwrap_err();
    assert_eq!(error, "the arguments nest 201 levels deep; at most 128 are taken");
}

#[test]
fn a_root_that_is_not_there_is_named() {
    let root = tempfile::tempdir().unwrap();
    let absent = root.path().join("absent");
    let error = servers(&BuiltinSettings { fs_root: Some(absent.clone()), ..BuiltinSettings::default() })
        .err()
        .unwrap();
    let message = error.to_string();
    assert!(message.starts_with(&format!("cannot open `{}`: ", absent.display())), "{message}");
    assert!(message.ends_with("change `[builtin.fs] root`"), "{message}");
}
