//! Requests that cannot be explored, and paths that cannot be run.

use serde_json::{Value, json};

use crate::place::{ALL, Place};

/// The error of a call.
#[track_caller]
fn error(place: &mut Place, tool: &str, arguments: &Value) -> Value {
    let told = place.gateway.call(tool, arguments);
    assert!(told["error"]["code"].is_string(), "{told:#}");
    told["error"].clone()
}

#[test]
fn numbers_out_of_range_and_unknown_tools_are_named() {
    let mut place = Place::start(ALL);
    for (arguments, said) in [
        (json!({ "intent": "read a.txt", "maxPaths": 0 }), "`maxPaths` is 0"),
        (json!({ "intent": "read a.txt", "maxPaths": 11 }), "`maxPaths` is 11"),
        (json!({ "intent": "read a.txt", "maxDepth": 0 }), "`maxDepth` is 0"),
        (json!({ "intent": "read a.txt", "maxDepth": 99 }), "`maxDepth` is 99"),
        (json!({ "intent": " " }), "`intent` is empty"),
        (json!({ "intent": "read a.txt", "timeoutMs": 0 }), "`timeoutMs` is 0"),
        (json!({ "intent": "read a.txt", "timeoutMs": 30_001 }), "`timeoutMs` is 30001"),
    ] {
        let told = error(&mut place, "pml_explore", &arguments);
        assert_eq!(told["code"], "INVALID_ARGUMENTS", "{told}");
        assert!(told["message"].as_str().unwrap().contains(said), "{told}");
    }
    std::fs::write(place.home.path("a.txt"), "hello").unwrap();
    let told =
        error(&mut place, "pml_explore", &json!({ "intent": "read a.txt", "mockConfig": { "fs:raed": {} } }));
    assert_eq!(told["code"], "UNKNOWN_TOOL", "{told}");
    assert!(told.to_string().contains("fs:read"), "the nearest name is given: {told}");
}

#[test]
fn an_intent_that_nothing_serves_is_told_with_the_nearest_tools() {
    let mut place = Place::start(ALL);
    // Nothing gives what has to be sent, and no tool sends anything.
    let told =
        error(&mut place, "pml_explore", &json!({ "intent": "fax the quarterly invoice to the landlord" }));
    assert_eq!(told["code"], "NOT_FOUND", "{told}");
    assert!(told["hint"].as_str().is_some_and(|hint| hint.contains("tool")), "{told}");
}

#[test]
fn a_mock_of_an_unknown_tool_is_told_where_no_path_is_found_too() {
    let mut place = Place::start(ALL);
    let asked = json!({ "intent": "fax the quarterly invoice to the landlord", "mockConfig": { "tools": { "fs:raed": {} } } });
    let told = error(&mut place, "pml_explore", &asked);
    assert_eq!(told["code"], "UNKNOWN_TOOL", "{told}");
}

#[test]
fn a_path_that_needs_more_than_the_request_says_runs_only_with_what_is_missing() {
    let mut place = Place::start(ALL);
    let told = place.gateway.call("pml_explore", &json!({ "intent": "evaluate the arithmetic expression" }));
    let path = &told["viablePaths"][0];
    assert_eq!(
        (&path["path"], &path["missing"]),
        (&json!(["math:evaluate"]), &json!(["expression"])),
        "{told:#}"
    );
    assert_eq!(path["realExecutions"], 0, "no tool is called with a value that was made up: {told:#}");
    assert!(path["warnings"].to_string().contains("`expression`"), "{told:#}");
    let mut confirm = json!({ "explorePath": path["pathId"], "confirm": true });
    let refused = error(&mut place, "pml_execute", &confirm);
    assert_eq!(refused["code"], "INVALID_ARGUMENTS", "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("`expression`"), "{refused}");
    confirm["context"] = json!({ "other": 1 });
    let refused = error(&mut place, "pml_execute", &confirm);
    assert!(refused.to_string().contains("`other`"), "{refused}");
    confirm["context"] = json!({ "expression": "6 * 7" });
    let ran = place.gateway.call("pml_execute", &confirm);
    assert_eq!(ran["status"], "success", "{ran}");
    assert!(ran["result"].to_string().contains("42"), "{ran}");
}

#[test]
fn a_path_of_nobody_is_not_found() {
    let mut place = Place::start(ALL);
    let told = error(&mut place, "pml_execute", &json!({ "explorePath": "dry_0000", "confirm": true }));
    assert_eq!(told["code"], "NOT_FOUND", "{told}");
}
