//! Documents that wait for nobody: the reads of later tasks are made while earlier ones run.

use serde_json::{Value, json};

use crate::place::Place;

/// Asks for the run of a document and does not wait.
fn begin(place: &mut Place, tasks: &Value) -> u64 {
    let implementation = json!({ "type": "dag", "dagStructure": { "tasks": tasks } });
    let arguments =
        json!({ "intent": "a test", "implementation": implementation, "options": { "cache": false } });
    place.gateway.begin("tools/call", &json!({ "name": "pml_execute", "arguments": arguments }))
}

/// A read that ends once it is allowed to.
fn held(id: &str) -> Value {
    json!({ "id": id, "tool": "b:read", "arguments": { "key": id, "until": "go" } })
}

fn read(id: &str, after: &[&str]) -> Value {
    json!({ "id": id, "tool": "a:read", "arguments": { "key": id }, "dependsOn": after })
}

#[test]
fn tasks_that_only_wait_for_their_turn_are_read_while_the_first_runs() {
    let mut place = Place::start("");
    let request =
        begin(&mut place, &json!([held("first"), read("second", &["first"]), read("third", &["second"])]));
    for key in ["second", "third"] {
        place.wait_for_end(key);
    }
    assert!(!place.has_ended("first"));
    place.allow("go");
    let over = place.gateway.outcome(request);
    assert_eq!(over["status"], "success", "{over}");
    place.assert_served(&over, &["second", "third"], &["first"]);
    assert_eq!(place.begun().len(), 3, "each call is made once: {:?}", place.begun());
}

#[test]
fn a_task_whose_arguments_are_there_is_read_while_a_slow_sibling_runs() {
    let mut place = Place::start("");
    let tasks = json!([
        held("slow"),
        { "id": "quick", "tool": "a:read", "arguments": { "key": "quick", "next": "joined" } },
        { "id": "joined", "tool": "a:read", "arguments": { "key": { "$ref": "quick.given.next" } },
          "dependsOn": ["slow"] },
    ]);
    let request = begin(&mut place, &tasks);
    place.wait_for_end("joined");
    assert!(!place.has_ended("slow"));
    place.allow("go");
    let over = place.gateway.outcome(request);
    assert_eq!(over["result"]["joined"]["given"]["key"], "joined", "{over}");
    place.assert_served(&over, &["joined"], &["slow", "quick"]);
}

#[test]
fn what_comes_after_a_write_is_not_read_before_it() {
    let mut place = Place::start("");
    let tasks = json!([
        held("first"),
        { "id": "write", "tool": "b:write", "arguments": { "key": "write" }, "dependsOn": ["first"] },
        read("after", &["write"]),
        read("beyond", &["after"]),
        { "id": "program", "code": "await mcp.b.write({ key: 'in a program' }); return 1", "dependsOn": ["first"] },
        read("after_program", &["program"]),
        read("beside", &["first"]),
    ]);
    let request = begin(&mut place, &tasks);
    place.wait_for_end("beside");
    let early: Vec<Value> = place.keys("a:read");
    assert_eq!(early, ["beside"], "{:?}", place.begun());
    place.allow("go");
    let over = place.gateway.outcome(request);
    assert_eq!(over["status"], "success", "{over}");
    let result = &over["result"];
    assert!(result["beyond"]["writes"].as_u64() >= Some(1), "{over}");
    assert!(result["after_program"]["writes"].as_u64() >= Some(1), "{over}");
}

#[test]
fn what_depends_on_a_task_that_fails_is_not_served_from_before_the_failure() {
    let mut place = Place::start("");
    let tasks = json!([
        { "id": "bad", "tool": "a:fail", "arguments": { "key": "bad", "until": "fail" }, "safeToFail": true },
        held("slow"),
        read("after", &["bad", "slow"]),
        read("free", &["slow"]),
    ]);
    let request = begin(&mut place, &tasks);
    for key in ["after", "free"] {
        place.wait_for_end(key);
    }
    place.allow("fail");
    place.wait_for_end("bad");
    place.allow("go");
    let over = place.gateway.outcome(request);
    assert_eq!(over["status"], "success", "{over}");
    place.assert_served(&over, &["free"], &["bad", "slow", "after"]);
    assert_eq!(place.keys("a:read"), ["after", "free", "after"], "it is read again");
}
