//! What a run of tasks may use up.

use serde_json::{Value, json};

use crate::place::{Place, outcomes};

#[test]
fn all_tasks_together_make_no_more_calls_than_a_run_may() {
    let mut place = Place::start("[limits]\ncalls = 10\n");
    let program = "for (let i = 0; i < 8; i++) await mcp.tools.add({ id: args.n * 10 + i }); return 'all'";
    let said = place.run(&json!([
        { "id": "a", "code": program, "arguments": { "n": 1 }, "safeToFail": true },
        { "id": "b", "code": program, "arguments": { "n": 2 }, "safeToFail": true },
        { "id": "c", "tool": "tools:add", "arguments": { "id": "c" }, "dependsOn": ["a", "b"] },
    ]));
    assert_eq!(said["error"]["code"], "TOOL_CALL_LIMIT", "{said}");
    assert_eq!(place.calls("got", "add").len(), 10);
    assert!(outcomes(&said).contains(&"c error".to_owned()), "{said}");
    let many: Vec<Value> = (0..11)
        .map(|n| json!({ "id": format!("t{n}"), "tool": "tools:add", "arguments": { "id": n } }))
        .collect();
    let refused = place.run(&json!(many));
    assert_eq!(refused["error"]["code"], "TOO_LARGE", "{refused}");
}

#[test]
fn all_results_together_have_their_bounds() {
    let mut place = Place::start("");
    let program = "return 'x'.repeat(3900000)";
    let mut tasks: Vec<Value> =
        (0..20).map(|n| json!({ "id": format!("t{n}"), "code": program, "safeToFail": true })).collect();
    let before: Vec<String> = (0..20).map(|n| format!("t{n}")).collect();
    tasks
        .push(json!({ "id": "end", "tool": "tools:echo", "arguments": { "value": 1 }, "dependsOn": before }));
    let said = place.run(&json!(tasks));
    assert_eq!(said["status"], "success", "{said}");
    let ended = outcomes(&said);
    let refused = ended.iter().filter(|one| one.ends_with("error")).count();
    assert_eq!(refused, 3, "64 MiB hold 17 of them: {ended:?}");
    let sinks = place.run(&json!([{ "id": "a", "code": program }, { "id": "b", "code": program }]));
    assert_eq!(sinks["error"]["code"], "RESULT_TOO_LARGE", "{sinks}");
    let a = json!({ "workflow_id": sinks["workflowId"], "task_id": "a", "limit": 5 });
    assert_eq!(place.gateway.call("pml_get_task_result", &a)["totalBytes"], 3_900_002);
}

#[test]
fn what_is_handed_on_has_its_bounds() {
    let mut place = Place::start("[limits]\narguments = \"4KiB\"\n");
    let said = place.run(&json!([
        { "id": "a", "code": "return 'x'.repeat(5000)" },
        { "id": "b", "tool": "tools:echo", "arguments": { "value": { "$ref": "a" } } },
    ]));
    assert_eq!(said["error"]["code"], "TOO_LARGE", "{said}");
    assert!(said["error"]["message"].as_str().unwrap().contains("4096"), "{said}");
    assert!(place.calls("got", "echo").is_empty());
}

#[test]
fn programs_beyond_those_that_can_run_wait_for_their_turn() {
    let mut place = Place::start("");
    let program = "await new Promise((done) => setTimeout(done, 20)); return (await mcp.tools.echo({ value: args.n })).value";
    let tasks: Vec<Value> =
        (0..80).map(|n| json!({ "id": format!("t{n}"), "code": program, "arguments": { "n": n } })).collect();
    let said = place.run(&json!(tasks));
    assert_eq!(said["status"], "success", "{said}");
    for n in 0..80 {
        assert_eq!(said["result"][format!("t{n}")], n);
    }
}

#[test]
fn a_worker_that_dies_is_the_failure_of_its_task_alone() {
    let mut place = Place::start("");
    let tasks = json!([
        { "id": "dies", "code": "await mcp.tools.echo({ value: 1, wait: 60000 }); return 1", "safeToFail": true },
        { "id": "other", "tool": "tools:echo", "arguments": { "value": 2 } },
        { "id": "after", "tool": "tools:echo", "arguments": { "value": { "$ref": "dies.error.code" } } },
    ]);
    let request = place.begin(&tasks, &json!({}), &json!({}));
    crate::harness::eventually("the program calls", || place.calls("got", "echo").len() == 2);
    // Idle ones are replaced.
    for worker in place.gateway.workers() {
        crate::gateway::signal(worker, "-KILL");
    }
    let said = place.gateway.outcome(request);
    assert_eq!(said["result"]["after"]["value"], "WORKER_CRASHED", "{said}");
    assert_eq!(said["result"]["other"]["value"], 2);
}

#[test]
fn a_program_whose_worker_dies_before_it_asked_for_anything_is_begun_again_once() {
    let mut place = Place::start("[limits]\ncpu = \"60s\"\n");
    let tasks = json!([{ "id": "busy", "code": "const until = args.turns; let n = 0; while (n < until) n++; return n",
                         "arguments": { "turns": 5_000_000 } }]);
    let idle: Vec<(u32, u64)> =
        place.idle_workers().into_iter().map(|pid| (pid, crate::place::cpu_ticks(pid))).collect();
    let request = place.begin(&tasks, &json!({}), &json!({}));
    let mut killed = None;
    crate::harness::eventually("the program computes", || {
        let computes = |(pid, before): &&(u32, u64)| crate::place::cpu_ticks(*pid) > before + 2;
        killed = idle.iter().find(computes).map(|(pid, _)| *pid);
        killed.is_some()
    });
    crate::gateway::signal(killed.unwrap(), "-KILL");
    let said = place.gateway.outcome(request);
    assert_eq!(said["result"]["busy"], 5_000_000, "{said}");
}

#[test]
fn a_run_out_of_time_says_what_it_has() {
    let mut place = Place::start("");
    let tasks = json!([
        { "id": "quick", "tool": "tools:echo", "arguments": { "value": 1 } },
        { "id": "slow", "tool": "tools:echo", "arguments": { "value": 2, "wait": 60000 }, "dependsOn": ["quick"] },
    ]);
    let said = place.run_with(&tasks, &json!({}), &json!({ "timeoutMs": 1500 }));
    assert_eq!(said["error"]["code"], "TIMEOUT", "{said}");
    assert_eq!(outcomes(&said), ["quick success", "slow cancelled"]);
}
