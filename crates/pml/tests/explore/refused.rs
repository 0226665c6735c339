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
    let told = error(&mut place, "pml_explore", &json!({ "intent": "evaluate the arithmetic expression" }));
    assert_eq!(told["code"], "NOT_FOUND", "{told}");
    assert!(told["hint"].as_str().unwrap().contains("math:evaluate"), "{told}");
}

#[test]
fn a_path_of_nobody_is_not_found() {
    let mut place = Place::start(ALL);
    let told = error(&mut place, "pml_execute", &json!({ "explorePath": "dry_0000", "confirm": true }));
    assert_eq!(told["code"], "NOT_FOUND", "{told}");
}
