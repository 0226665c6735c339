//! Other tasks in place of those that have not run.

use serde_json::{Value, json};

use crate::place::{Place, outcomes};

fn waiting(place: &mut Place) -> Value {
    let tasks = json!([
        { "id": "a", "tool": "tools:add", "arguments": { "id": "a" } },
        { "id": "p", "tool": "code:map", "code": "return [1, 2].map((x) => x + args.n)", "arguments": { "n": "{{args.n}}" } },
        { "id": "old", "tool": "tools:add", "arguments": { "id": "old" }, "dependsOn": ["a"] },
    ]);
    let said = place.run_with(&tasks, &json!({ "n": 5 }), &json!({ "perLayerValidation": true }));
    assert_eq!(said["status"], "layer_complete", "{said}");
    said
}

#[test]
fn other_tasks_take_the_place_of_those_that_have_not_run() {
    let mut place = Place::start("");
    let first = waiting(&mut place);
    let second = place.replan(
        &first,
        &json!([
            { "id": "new", "tool": "tools:add", "arguments": { "id": "new {{a.id}}" } },
            { "id": "more", "code": "return (await mcp.tools.echo({ value: args.from })).value", "arguments": { "from": { "$ref": "p[1]" } } },
            { "id": "last", "tool": "tools:echo", "arguments": { "value": [{ "$ref": "new.id" }, { "$ref": "more" }] } },
        ]),
    );
    assert_eq!(second["status"], "layer_complete", "{second}");
    assert_eq!(second["layer"]["layerIndex"], 1, "{second}");
    let shown: Vec<&str> = second["layer"]["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["taskId"].as_str().unwrap())
        .collect();
    assert_eq!(shown, ["new", "more"], "only what came since is shown");
    let third = place.replan(&second, &json!([
        { "id": "a", "tool": "tools:add", "arguments": { "id": "a" } },
        { "id": "p", "tool": "code:map", "code": "return [1, 2].map((x) => x + args.n)", "args": { "n": { "$ref": "args.n" } } },
        { "id": "end", "tool": "tools:echo", "arguments": { "value": "{{more}}" }, "dependsOn": ["p"] },
    ]));
    assert_eq!(third["status"], "success", "what has run may be written again as it was: {third}");
    assert_eq!(third["result"]["end"]["value"], 7);
    assert!(third.get("capabilityId").is_none(), "what ran is no document that anybody wrote: {third}");
    let added: Vec<Value> = place.calls("got", "add").iter().map(|given| given["id"].clone()).collect();
    assert_eq!(added, ["a", "new a"], "what was replaced did not run, what had run did not run again");
    assert_eq!(outcomes(&third), ["a success", "p success", "new success", "more success", "end success"]);
}

#[test]
fn a_plan_that_cannot_be_is_refused_and_the_run_still_waits() {
    let mut place = Place::start("");
    let first = waiting(&mut place);
    let refused = [
        (json!([{ "id": "a", "tool": "tools:add", "arguments": { "id": "other" } }]), "`a` has run"),
        (json!([{ "id": "a", "tool": "tools:echo", "arguments": { "value": "a" } }]), "`a` has run"),
        (json!([{ "id": "p", "code": "return 1" }]), "`p` has run"),
        (
            json!([{ "id": "n", "tool": "tools:echo", "arguments": { "value": 1 }, "dependsOn": ["nobody"] }]),
            "nobody",
        ),
        (json!([{ "id": "n", "tool": "tools:echo", "arguments": { "value": { "$ref": "old.id" } } }]), "old"),
        (
            json!([
                { "id": "x", "tool": "tools:echo", "arguments": { "value": 1 }, "dependsOn": ["y"] },
                { "id": "y", "tool": "tools:echo", "arguments": { "value": 1 }, "dependsOn": ["x"] },
            ]),
            "x",
        ),
        (json!([{ "id": "n", "tool": "tools:nothing", "arguments": {} }]), "tools:nothing"),
        (json!([{ "id": "n", "tool": "tools:echo", "arguments": {} }]), "value"),
        (json!([{ "id": "n", "tool": "tools:secret", "arguments": {} }]), "tools:secret"),
        (json!([{ "id": "n", "code": "return await mcp.tools.secret({})" }]), "tools:secret"),
        (json!([{ "tool": "tools:echo" }]), "id"),
    ];
    for (tasks, named) in refused {
        let said = place.replan(&first, &tasks);
        assert_eq!(said["status"], "failed", "{tasks}: {said}");
        assert!(said["error"].to_string().contains(named), "{named}: {said}");
    }
    let cycle = place.replan(
        &first,
        &json!([
            { "id": "x", "tool": "tools:echo", "arguments": { "value": { "$ref": "y" } } },
            { "id": "y", "tool": "tools:echo", "arguments": { "value": { "$ref": "x" } } },
        ]),
    );
    let message = cycle["error"]["message"].as_str().unwrap();
    assert!(message.contains('x') && message.contains('y'), "the cycle is named: {message}");
    let said = place
        .replan(&first, &json!([{ "id": "n", "tool": "tools:echo", "arguments": { "value": "{{a.id}}" } }]));
    assert_eq!(said["result"]["n"]["value"], "a", "{said}");
}

#[test]
fn only_a_run_that_waits_after_a_layer_can_be_planned_anew() {
    let mut place = Place::start("");
    let over = place.run(&json!([{ "id": "n", "tool": "tools:echo", "arguments": { "value": 1 } }]));
    let said =
        place.replan(&over, &json!([{ "id": "m", "tool": "tools:echo", "arguments": { "value": 2 } }]));
    assert_eq!(said["error"]["code"], "INVALID_REQUEST", "{said}");
    let words = place
        .gateway
        .call("pml_replan", &json!({ "workflow_id": over["workflowId"], "new_requirement": "echo a value" }));
    assert_eq!(words["status"], "suggestions", "{words}");
}

#[test]
fn a_failure_can_be_worked_around() {
    let mut place = Place::start("");
    let tasks = json!([
        { "id": "bad", "tool": "tools:fail", "arguments": { "message": "broken" } },
        { "id": "next", "tool": "tools:echo", "arguments": { "value": { "$ref": "bad" } } },
    ]);
    let waiting = place.run_with(&tasks, &json!({}), &json!({ "decisionPoints": "on_error" }));
    let said = place.replan(
        &waiting,
        &json!([
            { "id": "next", "tool": "tools:echo", "arguments": { "value": { "$ref": "bad.error.message" } } },
        ]),
    );
    assert_eq!(said["status"], "success", "{said}");
    assert_eq!(said["result"]["next"]["value"], "broken");
}
