//! Tasks that need a person's word, and one tool in place of a plan.

use serde_json::{Value, json};

use crate::place::Place;

const CLIENTS: &str = "[approvals]\nby = \"client\"\n";

fn asked(said: &Value) -> Vec<(String, Value)> {
    let calls = said["question"]["calls"].as_array().cloned().unwrap_or_default();
    calls.iter().map(|call| (call["tool"].as_str().unwrap().to_owned(), call["arguments"].clone())).collect()
}

#[test]
fn a_task_that_says_it_changes_something_is_asked_for() {
    let mut place = Place::start(CLIENTS);
    let tasks = json!([
        { "id": "free", "tool": "tools:add", "arguments": { "id": "free" } },
        { "id": "bound", "tool": "tools:add", "arguments": { "id": "bound" }, "sideEffects": true },
    ]);
    let waiting = place.run(&tasks);
    assert_eq!(waiting["status"], "approval_required", "{waiting}");
    let calls = asked(&waiting);
    assert_eq!(calls.len(), 1, "the other task is not asked for: {waiting}");
    assert!(calls[0].1["json"].as_str().unwrap().contains("bound"), "{waiting}");
    assert!(place.calls("got", "add").is_empty(), "nothing runs before the word");
    let said = place.go_on(&waiting);
    assert_eq!(said["status"], "success", "{said}");
    assert_eq!(place.calls("got", "add").len(), 2);
}

#[test]
fn arguments_that_come_from_results_are_asked_for_when_they_are_known() {
    let mut place = Place::start(CLIENTS);
    let tasks = json!([
        { "id": "text", "tool": "tools:echo", "arguments": { "value": "from a result" } },
        { "id": "send", "tool": "tools:add", "arguments": { "id": { "$ref": "text.value" } }, "sideEffects": true },
        { "id": "side", "tool": "tools:add", "arguments": { "id": "side" } },
    ]);
    let before = place.run(&tasks);
    assert_eq!(before["status"], "approval_required", "{before}");
    let during = place.go_on(&before);
    assert_eq!(during["status"], "approval_required", "what it is called with was not known: {during}");
    let calls = asked(&during);
    assert!(calls[0].1["json"].as_str().unwrap().contains("from a result"), "{during}");
    assert_eq!(place.calls("done", "add"), [json!({ "id": "side" })]);
    let said = place.go_on(&during);
    assert_eq!(said["status"], "success", "{said}");
    assert_eq!(place.calls("done", "add").len(), 2, "what had run did not run again");
}

#[test]
fn a_program_that_says_it_changes_something_asks_at_each_call() {
    let mut place = Place::start(CLIENTS);
    let tasks = json!([
        { "id": "quiet", "code": "return (await mcp.tools.add({ id: 'quiet' })).id" },
        { "id": "loud", "code": "return (await mcp.tools.add({ id: args.id })).id", "arguments": { "id": "loud" },
          "sideEffects": true },
        { "id": "end", "tool": "tools:echo", "arguments": { "value": [{ "$ref": "quiet" }, { "$ref": "loud" }] } },
    ]);
    let before = place.run(&tasks);
    assert_eq!(before["status"], "approval_required", "{before}");
    let during = place.go_on(&before);
    assert_eq!(during["status"], "approval_required", "{during}");
    assert!(asked(&during)[0].1["json"].as_str().unwrap().contains("loud"), "{during}");
    assert_eq!(place.calls("done", "add"), [json!({ "id": "quiet" })]);
    let said = place.go_on(&during);
    assert_eq!(said["result"]["end"]["value"], json!(["quiet", "loud"]), "{said}");
}

#[test]
fn a_no_is_the_failure_of_the_task() {
    let mut place = Place::start(CLIENTS);
    let tasks = json!([
        { "id": "text", "tool": "tools:echo", "arguments": { "value": "x" } },
        { "id": "send", "tool": "tools:add", "arguments": { "id": { "$ref": "text.value" } }, "sideEffects": true,
          "safeToFail": true },
        { "id": "after", "tool": "tools:echo", "arguments": { "value": { "$ref": "send.error.code" } } },
    ]);
    let before = place.run(&tasks);
    let during = place.go_on(&before);
    assert_eq!(during["status"], "approval_required", "{during}");
    let said = place.gateway.call(
        "pml_continue",
        &json!({ "workflow_id": during["workflowId"], "approved": false, "reason": "not now" }),
    );
    assert_eq!(said["result"]["after"]["value"], "DENIED", "{said}");
    assert!(place.calls("got", "add").is_empty());
}

#[test]
fn one_tool_is_given_its_defaults_under_what_the_caller_says() {
    let mut place = Place::start(CLIENTS);
    let implementation = json!({
        "type": "tool", "toolId": "tools:orchestrate",
        "defaultArgs": { "flow": "nightly", "mode": "dry", "input": { "$ref": "nothing" } },
    });
    let request = json!({
        "intent": "run the flow", "implementation": implementation,
        "context": { "mode": "real {{args.mode}}", "wait": 1 },
    });
    let said = place.gateway.call("pml_execute", &request);
    assert_eq!(said["status"], "success", "{said}");
    assert_eq!(
        said["result"]["given"],
        json!({ "flow": "nightly", "mode": "real {{args.mode}}", "input": { "$ref": "nothing" }, "wait": 1 }),
        "nothing in it is taken for a reference"
    );
    let unknown = json!({ "intent": "x", "implementation": { "type": "tool", "toolId": "tools:nothing" } });
    let refused = place.gateway.call("pml_execute", &unknown);
    assert!(refused["error"]["message"].as_str().unwrap().contains("tools:nothing"), "{refused}");
    let wrong = json!({
        "intent": "x", "implementation": { "type": "tool", "toolId": "tools:add", "defaultArgs": {} },
    });
    let refused = place.gateway.call("pml_execute", &wrong);
    assert!(
        refused["error"].to_string().contains("id"),
        "defaults are checked like any arguments: {refused}"
    );
    assert!(place.calls("got", "add").is_empty());
}
