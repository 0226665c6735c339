//! Tasks that fail, hang and die, and what becomes of those that wait for them.

use serde_json::json;

use crate::place::{Place, outcomes};

#[test]
fn a_failure_takes_its_dependants_with_it_and_no_others() {
    let mut place = Place::start("");
    let said = place.run(&json!([
        { "id": "bad", "tool": "tools:fail", "arguments": { "message": "broken" } },
        { "id": "next", "tool": "tools:echo", "arguments": { "value": { "$ref": "bad" } } },
        { "id": "last", "tool": "tools:echo", "arguments": { "value": { "$ref": "next" } } },
        { "id": "other", "tool": "tools:echo", "arguments": { "value": 7 } },
    ]));
    assert_eq!(said["status"], "failed", "{said}");
    assert_eq!(said["error"]["code"], "TOOL_ERROR");
    let message = said["error"]["message"].as_str().unwrap();
    assert!(message.contains("`bad`") && message.contains("2 tasks"), "{message}");
    assert_eq!(outcomes(&said), ["bad error", "next skipped", "last skipped", "other success"]);
    let other = json!({ "workflow_id": said["workflowId"], "task_id": "other" });
    assert_eq!(place.gateway.call("pml_get_task_result", &other)["content"], r#"{"value":7}"#);
}

#[test]
fn what_waits_for_a_task_that_may_fail_sees_its_error() {
    let mut place = Place::start("");
    let said = place.run(&json!([
        { "id": "bad", "tool": "tools:fail", "arguments": { "message": "broken" }, "safeToFail": true },
        { "id": "thrown", "tool": "code:map", "code": "return args.list.map((x) => x.y)", "arguments": { "list": null } },
        { "id": "seen", "tool": "tools:echo",
          "arguments": { "value": [{ "$ref": "bad.error.code" }, "{{bad.error.message}}!", { "$ref": "thrown.error.code" }] } },
    ]));
    assert_eq!(said["status"], "success", "{said}");
    assert_eq!(said["result"]["seen"]["value"], json!(["TOOL_ERROR", "broken!", "PROGRAM_ERROR"]));
    assert_eq!(outcomes(&said), ["bad error", "thrown error", "seen success"]);
}

#[test]
fn an_idempotent_tool_that_hangs_or_dies_is_called_again() {
    let mut place = Place::start("");
    let said = place.run(&json!([
        { "id": "hangs", "tool": "tools:flaky", "arguments": { "key": "h", "times": 2, "how": "hang" },
          "timeoutMs": 400, "retries": 2 },
        { "id": "dies", "tool": "tools:flaky", "arguments": { "key": "d", "times": 1, "how": "die" },
          "dependsOn": ["hangs"], "retries": 3 },
        { "id": "after", "tool": "tools:echo", "arguments": { "value": { "$ref": "dies.key" } } },
    ]));
    assert_eq!(said["status"], "success", "{said}");
    assert_eq!(said["result"]["after"]["value"], "d");
    assert_eq!(place.calls("got", "flaky").len(), 5, "three tries of one, two of the other");
}

#[test]
fn tries_come_to_an_end_and_other_tools_are_called_once() {
    let mut place = Place::start("");
    let said = place.run(&json!([
        { "id": "never", "tool": "tools:flaky", "arguments": { "key": "n", "times": 99, "how": "hang" },
          "timeoutMs": 150, "retries": 2, "safeToFail": true },
        { "id": "once", "tool": "tools:add", "arguments": { "id": "x", "wait": 5000 },
          "timeoutMs": 150, "retries": 5, "safeToFail": true },
        { "id": "seen", "tool": "tools:echo",
          "arguments": { "value": [{ "$ref": "never.error.code" }, { "$ref": "once.error.code" }] } },
    ]));
    assert_eq!(said["result"]["seen"]["value"], json!(["TIMEOUT", "TIMEOUT"]), "{said}");
    assert_eq!(place.calls("got", "flaky").len(), 3);
    assert_eq!(place.calls("got", "add").len(), 1, "what may have acted is not called again");
}

#[test]
fn a_program_has_its_own_time() {
    let mut place = Place::start("");
    let said = place.run(&json!([
        { "id": "slow", "code": "await new Promise((done) => setTimeout(done, 60000)); return 1",
          "timeoutMs": 200, "safeToFail": true },
        { "id": "calls", "code": "return await mcp.tools.echo({ value: 1, wait: 60000 })",
          "timeoutMs": 200, "safeToFail": true },
        { "id": "loops", "code": "for (;;);", "timeoutMs": 200, "safeToFail": true },
        { "id": "seen", "tool": "tools:echo", "arguments":
          { "value": [{ "$ref": "slow.error.code" }, { "$ref": "calls.error.code" }, { "$ref": "loops.error.code" }] } },
    ]));
    assert_eq!(said["result"]["seen"]["value"], json!(["TIMEOUT", "TIMEOUT", "TIMEOUT"]), "{said}");
}

#[test]
fn parallel_tasks_never_swap_their_results() {
    let mut place = Place::start("");
    let mut tasks = Vec::new();
    for n in 0..40 {
        let wait = (n * 7) % 23;
        tasks.push(
            json!({ "id": format!("e{n}"), "tool": "tools:echo", "arguments": { "value": n, "wait": wait } }),
        );
        tasks.push(json!({ "id": format!("p{n}"), "arguments": { "n": n, "wait": (n * 5) % 17 },
            "code": "const a = await mcp.tools.echo({ value: `p${args.n}`, wait: args.wait }); return [args.n, a.value, Math.random()]" }));
        tasks.push(json!({ "id": format!("c{n}"), "tool": "tools:echo",
            "arguments": { "value": [n, { "$ref": format!("e{n}.value") }, { "$ref": format!("p{n}[0]") }, { "$ref": format!("p{n}[1]") }] } }));
    }
    let said = place.run(&json!(tasks));
    assert_eq!(said["status"], "success", "{said}");
    for n in 0..40 {
        assert_eq!(said["result"][format!("c{n}")]["value"], json!([n, n, n, format!("p{n}")]));
    }
    assert_eq!(place.calls("got", "echo").len(), 120, "each task runs once");
}
