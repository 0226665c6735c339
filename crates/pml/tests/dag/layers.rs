//! Runs that wait for a word: after each layer, or when a task has failed.

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::place::{Place, outcomes};

fn chain() -> Value {
    json!([
        { "id": "a", "tool": "tools:add", "arguments": { "id": "a" } },
        { "id": "b", "tool": "tools:echo", "arguments": { "value": "x".repeat(1000) } },
        { "id": "c", "tool": "tools:add", "arguments": { "id": { "$ref": "a.id" } } },
        { "id": "d", "code": "return args.c + '!'", "arguments": { "c": { "$ref": "c.id" } }, "dependsOn": ["b"] },
    ])
}

fn shown(waiting: &Value) -> Vec<String> {
    let results = waiting["layer"]["results"].as_array().unwrap();
    let word =
        |one: &Value| format!("{} {}", one["taskId"].as_str().unwrap(), one["status"].as_str().unwrap());
    results.iter().map(word).collect()
}

#[test]
fn each_layer_is_shown_before_the_next_runs() {
    let mut place = Place::start("");
    let first = place.run_with(&chain(), &json!({}), &json!({ "perLayerValidation": true }));
    assert_eq!(first["status"], "layer_complete", "{first}");
    assert_eq!((&first["layer"]["layerIndex"], &first["layer"]["totalLayers"]), (&json!(0), &json!(3)));
    assert_eq!(shown(&first), ["a success", "b success"]);
    assert_eq!(first["layer"]["next"], json!(["c"]));
    let b = &first["layer"]["results"][1];
    let preview = b["resultPreview"].as_str().unwrap();
    assert!(preview.starts_with("{\"value\":\"xxx") && preview.chars().count() <= 241, "{b}");
    assert_eq!(b["resultSize"], 1012);
    assert_eq!(place.calls("got", "add").len(), 1, "the next layer has not begun");

    let second = place.go_on(&first);
    assert_eq!(shown(&second), ["c success"], "{second}");
    assert_ne!(second["questionId"], first["questionId"]);
    let last = place.go_on(&second);
    assert_eq!(last["result"], json!({ "d": "a!" }), "{last}");
    assert_eq!(place.calls("got", "add").len(), 2, "nothing ran twice");
    assert_eq!(outcomes(&last), ["a success", "b success", "c success", "d success"]);
}

#[test]
fn a_run_that_waits_after_a_layer_outlives_its_process() {
    let mut place = Place::start("");
    let options = json!({ "decisionPoints": "per_layer" });
    let waiting = place.run_with(&chain(), &json!({}), &options);
    assert_eq!(waiting["status"], "layer_complete", "{waiting}");
    let again = Gateway::start(place.home.command(&["stdio"]));
    std::mem::replace(&mut place.gateway, again).kill();
    let asked = json!({ "workflow_id": waiting["workflowId"] });
    let state = place.gateway.call("pml_get_task_result", &asked);
    assert_eq!(state["questionId"], waiting["questionId"], "{state}");
    let second = place.go_on(&waiting);
    assert_eq!(shown(&second), ["c success"], "{second}");
    assert_eq!(place.go_on(&second)["result"], json!({ "d": "a!" }));
    assert_eq!(place.calls("got", "add").len(), 2, "nothing ran twice");
}

#[test]
fn a_failure_waits_for_a_word_where_that_was_asked_for() {
    let mut place = Place::start("");
    let tasks = json!([
        { "id": "bad", "tool": "tools:fail", "arguments": { "message": "broken" } },
        { "id": "next", "tool": "tools:echo", "arguments": { "value": { "$ref": "bad" } } },
    ]);
    let waiting = place.run_with(&tasks, &json!({}), &json!({ "decisionPoints": "on_error" }));
    assert_eq!(waiting["status"], "layer_complete", "{waiting}");
    assert_eq!(shown(&waiting), ["bad error"]);
    let over = place.go_on(&waiting);
    assert_eq!((&over["status"], &over["error"]["code"]), (&json!("failed"), &json!("TOOL_ERROR")), "{over}");
    assert_eq!(outcomes(&over), ["bad error", "next skipped"]);

    let well = json!([{ "id": "good", "tool": "tools:echo", "arguments": { "value": 1 } }]);
    let said = place.run_with(&well, &json!({}), &json!({ "decisionPoints": "on_error" }));
    assert_eq!(said["status"], "success", "nobody is asked without need: {said}");
}

#[test]
fn a_run_that_is_ended_tells_what_it_has() {
    let mut place = Place::start("");
    let waiting = place.run_with(&chain(), &json!({}), &json!({ "perLayerValidation": true }));
    let over =
        place.gateway.call("pml_abort", &json!({ "workflow_id": waiting["workflowId"], "reason": "enough" }));
    assert_eq!((&over["status"], &over["error"]["code"]), (&json!("failed"), &json!("ABORTED")), "{over}");
    assert!(over["error"]["message"].as_str().unwrap().contains("enough"));
    assert_eq!(outcomes(&over), ["a success", "b success", "c skipped", "d skipped"]);
    let a = json!({ "workflow_id": waiting["workflowId"], "task_id": "a" });
    assert_eq!(place.gateway.call("pml_get_task_result", &a)["content"], r#"{"id":"a"}"#);
    let again = place.go_on(&waiting);
    assert_eq!(again["error"]["code"], "GONE", "{again}");
    assert_eq!(place.calls("got", "add").len(), 1);

    let tasks = json!([
        { "id": "done", "tool": "tools:echo", "arguments": { "value": 1 } },
        { "id": "slow", "tool": "tools:echo", "arguments": { "value": 2, "wait": 60000 }, "dependsOn": ["done"] },
        { "id": "never", "tool": "tools:echo", "arguments": { "value": 3 }, "dependsOn": ["slow"] },
    ]);
    // Without speculation, only tasks that run make calls.
    let running = place.run_with(&tasks, &json!({}), &json!({ "detach": true, "speculate": false }));
    crate::harness::eventually("the slow task runs", || place.calls("got", "echo").len() == 3);
    let over = place.gateway.call("pml_abort", &json!({ "workflow_id": running["workflowId"] }));
    assert_eq!(outcomes(&over), ["done success", "slow cancelled", "never skipped"], "{over}");
}

#[test]
fn results_are_asked_for_by_the_names_of_tasks() {
    let mut place = Place::start("");
    let waiting = place.run_with(&chain(), &json!({}), &json!({ "perLayerValidation": true }));
    let mut of = |task: &str| {
        place
            .gateway
            .call("pml_get_task_result", &json!({ "workflow_id": waiting["workflowId"], "task_id": task }))
    };
    assert_eq!(of("b")["totalBytes"], 1012);
    let unknown = of("z");
    assert!(unknown["error"]["message"].as_str().unwrap().contains("`z`"), "{unknown}");
    assert!(unknown["error"]["hint"].as_str().unwrap().contains("a, b, c, d"), "{unknown}");
    let early = of("d");
    assert!(early["error"]["message"].as_str().unwrap().contains("no result yet"), "{early}");
}

/// Tasks one after the other, the first of which takes a while.
fn slow_chain() -> Value {
    json!([
        { "id": "a", "tool": "tools:echo", "arguments": { "value": 1, "wait": 1500 } },
        { "id": "b", "tool": "tools:add", "arguments": { "id": "b" }, "dependsOn": ["a"] },
        { "id": "c", "tool": "tools:add", "arguments": { "id": "c" }, "dependsOn": ["b"] },
        { "id": "d", "tool": "tools:add", "arguments": { "id": "d" }, "dependsOn": ["c"] },
    ])
}

#[test]
fn a_manual_run_waits_only_where_somebody_asks_for_it() {
    let mut place = Place::start("");
    let manual = json!({ "decisionPoints": "manual" });
    let over = place.run_with(&chain(), &json!({}), &manual);
    assert_eq!((&over["status"], &over["result"]), (&json!("success"), &json!({ "d": "a!" })), "{over}");
    let bad = json!([{ "id": "bad", "tool": "tools:fail", "arguments": { "message": "broken" } }]);
    let over = place.run_with(&bad, &json!({}), &manual);
    assert_eq!(over["status"], "failed", "a failure is no reason to wait: {over}");

    let detached = json!({ "decisionPoints": "manual", "detach": true });
    let running = place.run_with(&slow_chain(), &json!({}), &detached);
    let pause = json!({ "workflow_id": running["workflowId"], "pause": true });
    let waiting = place.gateway.call("pml_continue", &pause);
    assert_eq!(waiting["status"], "layer_complete", "{waiting}");
    assert_eq!((shown(&waiting), &waiting["layer"]["next"]), (vec!["a success".to_owned()], &json!(["b"])));
    assert!(place.calls("got", "add").iter().all(|given| given["id"] != "b"), "the next layer has not begun");
    // Going on and asking again takes one layer at a time.
    let step = json!({ "workflow_id": running["workflowId"], "approved": true, "pause": true });
    let waiting = place.gateway.call("pml_continue", &step);
    assert_eq!(
        (shown(&waiting), &waiting["layer"]["next"]),
        (vec!["b success".to_owned()], &json!(["c"])),
        "{waiting}"
    );
    let over = place.go_on(&waiting);
    assert_eq!(over["status"], "success", "and to its end otherwise: {over}");
    assert_eq!(outcomes(&over), ["a success", "b success", "c success", "d success"]);
    let again = place.gateway.call("pml_continue", &pause);
    assert_eq!(again["status"], "success", "one that is over has nothing left to wait for: {again}");
}

#[test]
fn a_pause_is_asked_for_on_the_terminal_and_outlives_the_gateway() {
    let mut place = Place::start("");
    let detached = json!({ "decisionPoints": "manual", "detach": true });
    let running = place.run_with(&slow_chain(), &json!({}), &detached);
    let id = running["workflowId"].as_str().unwrap().to_owned();
    let asked = place.home.run(&["runs", "pause", &id]);
    assert_eq!(asked.code, 0, "{asked:?}");
    let again = Gateway::start(place.home.command(&["stdio"]));
    std::mem::replace(&mut place.gateway, again).kill();
    // What was under way is made again, because it changes nothing.
    place.home.run(&["runs", "resume", &id]);
    let waiting = place.gateway.call("pml_continue", &json!({ "workflow_id": id }));
    assert_eq!(waiting["status"], "layer_complete", "{waiting}");
    assert_eq!(waiting["layer"]["next"], json!(["b"]), "{waiting}");
    assert_eq!(place.go_on(&waiting)["status"], "success");
    assert_eq!(place.calls("got", "add").len(), 3, "nothing ran twice");
}

#[test]
fn runs_that_never_wait_cannot_be_paused_and_say_so() {
    let mut place = Place::start("");
    let running = place.run_with(&slow_chain(), &json!({}), &json!({ "detach": true }));
    let refused =
        place.gateway.call("pml_continue", &json!({ "workflow_id": running["workflowId"], "pause": true }));
    assert_eq!(refused["error"]["code"], "INVALID_REQUEST", "{refused}");
    assert!(refused["error"]["hint"].as_str().unwrap().contains("manual"), "{refused}");
}
