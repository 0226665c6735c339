//! Capabilities within the tasks of a DAG, and DAGs within programs: what they leave is what they leave by themselves.

use pml_model::trace::{EdgeKind, Trace, TraceStatus};
use pml_model::{CapabilityId, Principal, RunId, TraceId};
use serde_json::{Value, json};

use crate::harness::eventually;
use crate::place::{ALL, Place};

const DOUBLE: &str = "if (args.n > 100) throw new RangeError('too much');\n\
    const { value } = await mcp.math.evaluate({ expression: `${args.n} * 2` });\nreturn value;";

/// A place where doubling is known by its name, and the id it has.
fn place() -> (Place, String) {
    let mut place = Place::start(ALL);
    let told = place.run("double it", DOUBLE, &json!({ "n": 1 }));
    let id = told["capabilityId"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
    let renamed = place.home.run(&["capabilities", "rename", &id, "double"]);
    assert_eq!(renamed.code, 0, "{}", renamed.stderr);
    (place, id)
}

#[track_caller]
fn run(place: &mut Place, tasks: &Value, options: &Value) -> Value {
    let implementation = json!({ "type": "dag", "dagStructure": { "tasks": tasks } });
    let asked = json!({ "intent": "work it out", "implementation": implementation, "options": options });
    place.gateway.call("pml_execute", &asked)
}

fn chain() -> Value {
    json!([
        { "id": "first", "capability": "double", "arguments": { "n": 2 } },
        { "id": "second", "code": "const twice = await capabilities.double({ n: args.n }); return twice + 1;",
          "arguments": { "n": { "$ref": "first" } } },
        { "id": "third", "tool": "math:evaluate", "arguments": { "expression": "{{second}} + 1" } },
    ])
}

/// The traces of the capabilities that were called in a run, in the order they began.
fn parts(place: &Place, told: &Value) -> Vec<Trace> {
    let run = RunId::parse(told["workflowId"].as_str().unwrap()).unwrap();
    let part =
        |number: u32| place.store().trace(&Principal::local(), &TraceId::of_frame(&run, number)).unwrap();
    (1..).map_while(part).collect()
}

/// What a trace says of its calls.
fn calls(trace: &Trace) -> Value {
    let results = trace.body.task_results.iter();
    let told = |task: &pml_model::trace::TaskResult| {
        json!([task.task_id, task.layer, task.tool, task.args, task.result, task.success])
    };
    results.map(told).collect()
}

/// What is left of [`chain`], whether or not it was interrupted.
#[track_caller]
fn check_chain(place: &Place, told: &Value, double: &str) {
    assert_eq!(told["status"], "success", "{told}");
    let trace = place.trace(told);
    let expected = json!([
        ["first", 0, double, { "n": 2 }, 4, true],
        ["second", 1, double, { "n": 4 }, 8, true],
        ["third", 2, "math:evaluate", { "expression": "9 + 1" }, { "value": 10 }, true],
    ]);
    assert_eq!(calls(&trace), expected, "what its parts called is told of them");
    let parts = parts(place, told);
    assert_eq!(parts.len(), 2, "{parts:?}");
    for (part, expression, value) in [(&parts[0], "2 * 2", 4), (&parts[1], "4 * 2", 8)] {
        assert_eq!(part.parent_trace_id.as_ref(), Some(&trace.id));
        assert_eq!(part.capability_id.as_ref().map(CapabilityId::as_str), Some(double));
        let path: Vec<String> = part.body.executed_path.iter().map(ToString::to_string).collect();
        assert_eq!((part.status, path.join(" ").as_str()), (TraceStatus::Success, "d1 n1"), "{part:?}");
        let call =
            json!([null, null, "math:evaluate", { "expression": expression }, { "value": value }, true]);
        assert_eq!(calls(part), json!([call]));
    }
    let known = place.capability_of(double);
    assert_eq!((known.statistics.usage_count, known.statistics.success_count), (3, 3));
    assert_eq!((known.learning.paths.len(), known.learning.paths[0].count), (1, 3), "one way, three times");
    let outer = told["capabilityId"].as_str().unwrap();
    let contains =
        place.store().learned_edges_from(&Principal::local(), outer, Some(EdgeKind::Contains), 10).unwrap();
    let contains: Vec<(&str, u64)> = contains.iter().map(|edge| (edge.to.as_str(), edge.count)).collect();
    assert_eq!(contains, [(double, 2)]);
    let shown = place.home.run(&["capabilities", "show", outer, "--json"]).stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["contains"], json!([{ "id": double, "name": "double", "count": 2 }]));
}

#[test]
fn a_task_that_is_a_capability_and_one_that_calls_it_leave_traces_of_it() {
    let (mut place, double) = place();
    let told = run(&mut place, &chain(), &json!({}));
    check_chain(&place, &told, &double);
}

#[test]
fn what_a_task_called_is_known_also_to_a_process_that_did_not_see_it() {
    let (mut place, double) = place();
    let mut told = run(&mut place, &chain(), &json!({ "perLayerValidation": true }));
    while told["status"] == "layer_complete" {
        place.restart();
        let asked = json!({ "workflow_id": told["workflowId"], "approved": true });
        told = place.gateway.call("pml_continue", &asked);
    }
    check_chain(&place, &told, &double);
}

#[test]
fn a_capability_that_another_process_ends_has_done_all_that_both_saw() {
    let mut place = Place::start(&format!("{ALL}[runs]\npark_after = \"1s\"\n"));
    let slow = "const { value } = await mcp.math.evaluate({ expression: `${args.n} * 2` });\n\
        await new Promise((wake) => setTimeout(wake, args.ms));\n\
        return (await mcp.math.evaluate({ expression: `${value} + 1` })).value;";
    let told = place.run("double it slowly", slow, &json!({ "n": 1, "ms": 0 }));
    let id = told["capabilityId"].as_str().unwrap().to_owned();
    assert_eq!(place.home.run(&["capabilities", "rename", &id, "slow"]).code, 0);
    let tasks = json!([
        { "id": "named", "capability": "slow", "arguments": { "n": 2, "ms": 2500 } },
        { "id": "called", "code": "return capabilities.slow({ n: 5, ms: 2500 })", "arguments": {} },
    ]);
    let parked = run(&mut place, &tasks, &json!({}));
    assert!(parked["wakeAt"].is_i64(), "{parked}");
    place.restart();
    let mut told = parked;
    eventually("it is over", || {
        let asked = json!({ "workflow_id": told["workflowId"] });
        told = place.gateway.call("pml_continue", &asked);
        told["status"] != "running"
    });
    assert_eq!(told["result"], json!({ "named": 5, "called": 11 }), "{told}");
    let expected = json!([
        ["named", 0, id, { "n": 2, "ms": 2500 }, 5, true],
        ["called", 0, id, { "n": 5, "ms": 2500 }, 11, true],
    ]);
    assert_eq!(calls(&place.trace(&told)), expected);
    let mut seen: Vec<Value> = parts(&place, &told).iter().map(calls).collect();
    seen.sort_by_key(ToString::to_string);
    let part = |first: &str, value: u32| {
        let second = format!("{value} + 1");
        let call = |expression: &str, value: u32| json!([null, null, "math:evaluate", { "expression": expression }, { "value": value }, true]);
        json!([call(first, value), call(&second, value + 1)])
    };
    assert_eq!(seen, [part("2 * 2", 4), part("5 * 2", 10)]);
    let known = place.capability_of(&id);
    assert_eq!((known.learning.paths.len(), known.statistics.success_count), (1, 3), "{:?}", known.learning);
}

#[test]
fn a_capability_that_fails_as_a_task_has_failed() {
    let (mut place, double) = place();
    let tasks = json!([{ "id": "much", "capability": "double", "arguments": { "n": 1000 } }]);
    let told = run(&mut place, &tasks, &json!({}));
    assert_eq!(told["status"], "failed", "{told}");
    let trace = place.trace(&told);
    let result = &trace.body.task_results[0];
    assert_eq!((result.tool.as_str(), result.success), (double.as_str(), false));
    let parts = parts(&place, &told);
    let error = parts[0].error.as_ref().unwrap();
    assert_eq!((parts[0].status, error.code.as_str()), (TraceStatus::Failed, "PROGRAM_ERROR"));
    assert!(error.message.contains("too much"), "{error:?}");
    let statistics = place.capability_of(&double).statistics;
    assert_eq!((statistics.success_count, statistics.failure_count), (1, 1));
}

#[test]
fn a_task_that_failed_without_a_call_counts_as_failed() {
    let (mut place, _) = place();
    let tasks = json!([
        { "id": "odd", "code": "throw new Error('not today')", "safeToFail": true },
        { "id": "sum", "tool": "math:evaluate", "arguments": { "expression": "1 + 1" } },
    ]);
    for _ in 0..2 {
        let told = run(&mut place, &tasks, &json!({}));
        assert_eq!(told.get("cacheHit"), None, "what failed may work the next time: {told}");
        assert_eq!(place.trace(&told).status, TraceStatus::Partial, "{told}");
    }
}

#[test]
fn a_replay_of_other_code_says_beforehand_which_capability_was_not_recorded() {
    let (mut place, _) = place();
    let told = place.run("double it", DOUBLE, &json!({ "n": 4 }));
    std::fs::write(place.home.path("other.ts"), "return capabilities.double({ n: args.n });").unwrap();
    let run = told["workflowId"].as_str().unwrap();
    let file = place.home.path("other.ts");
    let replayed = place.home.run(&["runs", "replay", run, "--code", file.to_str().unwrap(), "--json"]);
    assert_eq!(replayed.code, 1, "{replayed:?}");
    let error: Value = serde_json::from_str(&replayed.stdout).unwrap();
    let text = "the recorded run has no capability `double`, so nothing can answer a call of it";
    assert_eq!(
        (&error["error"]["code"], &error["error"]["message"]),
        (&json!("INVALID_PROGRAM"), &json!(text))
    );
}

/// A document of everything that tasks can be, in which the first task waits for others.
fn everything() -> Value {
    json!([
        { "id": "all", "code": "args.list.push(0); return args.list.map((item) => item * args.by)",
          "arguments": { "list": [{ "$ref": "twice" }, { "$ref": "three.value" }, { "$ref": "list.data[1]" }], "by": { "$ref": "args.by" } } },
        { "id": "twice", "capability": "double", "arguments": { "n": 2 } },
        { "id": "three", "tool": "math:evaluate", "arguments": { "expression": "{{args.by}} + 2" } },
        { "id": "list", "tool": "json:parse", "arguments": { "json": "[1, 7]" } },
        { "id": "gone", "tool": "fs:read", "arguments": { "path": "nowhere.txt" }, "safeToFail": true },
        { "id": "why", "tool": "json:stringify", "arguments": { "data": { "instead": { "$ref": "gone" }, "said": "{{list.data}} of {{all.length}}", "{{x": { "$literal": "{{y}}" } } } },
    ])
}

/// Makes a capability of a document, by running it, and gives what came of that.
fn learn_document(place: &mut Place, name: &str, tasks: &Value, context: &Value) -> Value {
    let asked = json!({ "intent": "go through it", "context": context, "options": { "cache": false },
        "implementation": { "type": "dag", "dagStructure": { "tasks": tasks } } });
    let told = place.gateway.call("pml_execute", &asked);
    let id = told["capabilityId"].as_str().unwrap_or_else(|| panic!("{told}"));
    assert_eq!(place.home.run(&["capabilities", "rename", id, name]).code, 0);
    told
}

#[test]
fn a_program_calls_a_document_and_it_leaves_what_it_leaves_by_itself() {
    let (mut place, double) = place();
    let alone = learn_document(&mut place, "everything", &everything(), &json!({ "by": 1 }));
    assert_eq!(alone["status"], "success", "{alone}");
    let code = "return [await capabilities.everything({ by: 1 }), await capabilities.everything({ by: 3 })]";
    let told = place.run("go through it twice", code, &json!({}));
    assert_eq!(told["status"], "success", "{told}");
    assert_eq!(told["result"][0], alone["result"]);
    let said = told["result"][1]["why"]["json"].as_str().unwrap_or_else(|| panic!("{told}"));
    assert!(said.contains("1,7 of 4") && said.contains("TOOL_ERROR") && said.contains("{{y}}"), "{said}");

    let id = alone["capabilityId"].as_str().unwrap();
    let of_itself = place.trace(&alone);
    let parts = parts(&place, &told);
    let ids: Vec<&str> =
        parts.iter().filter_map(|part| part.capability_id.as_ref()).map(CapabilityId::as_str).collect();
    assert_eq!(ids, [id, &double, id, &double]);
    let (first, inner) = (&parts[0], &parts[1]);
    assert_eq!(first.parent_trace_id.as_ref(), Some(&place.trace(&told).id));
    assert_eq!(inner.parent_trace_id.as_ref(), Some(&first.id));
    assert_eq!((first.status, &first.body.executed_path), (of_itself.status, &of_itself.body.executed_path));
    let sorted = |trace: &Trace| {
        let mut calls: Vec<String> = trace
            .body
            .task_results
            .iter()
            .map(|task| {
                format!("{:?} {:?} {} {} {}", task.node_id, task.task_id, task.tool, task.args, task.success)
            })
            .collect();
        calls.sort();
        calls
    };
    assert_eq!(sorted(first), sorted(&of_itself));
    let known = place.capability_of(id);
    assert_eq!((known.statistics.usage_count, known.learning.paths.len()), (3, 1), "one way, three times");
    let outer = told["capabilityId"].as_str().unwrap();
    let contains =
        place.store().learned_edges_from(&Principal::local(), outer, Some(EdgeKind::Contains), 10).unwrap();
    assert_eq!(contains.iter().map(|edge| (edge.to.as_str(), edge.count)).collect::<Vec<_>>(), [(id, 2)]);
    let tasks = json!([{ "id": "whole", "capability": "everything", "arguments": { "by": 1 } }]);
    let within = run(&mut place, &tasks, &json!({ "cache": false }));
    assert_eq!(within["result"]["whole"], alone["result"], "{within}");
}

#[test]
fn tasks_of_a_document_within_a_program_fail_as_they_do_by_themselves() {
    let (mut place, _) = place();
    let tasks = json!([
        { "id": "later", "tool": "json:parse", "arguments": { "json": "{{file.content}}" } },
        { "id": "file", "tool": "fs:read", "arguments": { "path": { "$ref": "args.where.path" } } },
        { "id": "other", "tool": "fs:write", "arguments": { "path": "other.txt", "content": "done" } },
    ]);
    std::fs::write(place.home.path("a.json"), "[1]").unwrap();
    learn_document(&mut place, "reading", &tasks, &json!({ "where": { "path": "a.json" } }));
    std::fs::remove_file(place.home.path("other.txt")).unwrap();
    let code = "try { return await capabilities.reading({ where: { path: 'nowhere.json' } }) } catch (error) { return [error.code, error.message] }";
    let told = place.run("try it", code, &json!({}));
    let message = told["result"][1].as_str().unwrap_or_else(|| panic!("{told}"));
    assert_eq!(told["result"][0], "TOOL_ERROR", "{told}");
    assert!(message.contains("task `file` failed: "), "{message}");
    assert!(message.ends_with("; 1 task that waits for it was not run"), "{message}");
    assert_eq!(
        std::fs::read_to_string(place.home.path("other.txt")).unwrap(),
        "done",
        "it waits for nothing"
    );
    let part = &parts(&place, &told)[0];
    assert_eq!(part.status, TraceStatus::Failed, "{part:?}");
    let lost = place.run("lose it", "return capabilities.reading({ where: {} })", &json!({}));
    assert_eq!(lost["status"], "failed", "{lost}");
    let said = lost["error"]["message"].as_str().unwrap();
    assert!(said.contains("task `file` failed: `args.where.path` does not exist"), "{said}");
}

#[test]
fn a_document_within_a_program_asks_for_what_it_asks_for_by_itself() {
    let (mut place, _) = place();
    let tasks =
        json!([{ "id": "note", "tool": "json:stringify", "arguments": { "data": 1 }, "sideEffects": true }]);
    let asked = json!({ "intent": "note it", "implementation": { "type": "dag", "dagStructure": { "tasks": tasks } } });
    let waits = place.gateway.call("pml_execute", &asked);
    assert_eq!(waits["status"], "approval_required", "{waits}");
    let yes = |told: &Value| json!({ "workflow_id": told["workflowId"], "approved": true });
    let told = place.gateway.call("pml_continue", &yes(&waits));
    let id = told["capabilityId"].as_str().unwrap_or_else(|| panic!("{told}"));
    assert_eq!(place.home.run(&["capabilities", "rename", id, "noting"]).code, 0);
    let waits = place.run("note it within", "return capabilities.noting({})", &json!({}));
    assert_eq!(waits["status"], "approval_required", "{waits}");
    place.restart();
    // Allowed to begin, it asks for the call once it knows what it calls with.
    let asks = place.gateway.call("pml_continue", &yes(&waits));
    assert_eq!(asks["status"], "approval_required", "{asks}");
    let call = &asks["question"]["calls"][0];
    assert_eq!(
        (call["tool"].as_str(), call["arguments"]["json"].as_str()),
        (Some("json:stringify"), Some(r#"{"data":1}"#))
    );
    assert!(call["code"].as_str().is_some_and(|code| code.contains("\"note\"")), "{call}");
    place.restart();
    let told = place.gateway.call("pml_continue", &yes(&asks));
    assert_eq!(
        (told["status"].as_str(), &told["result"]["note"]["json"]),
        (Some("success"), &json!("1")),
        "{told}"
    );
}

#[test]
fn what_a_program_cannot_keep_of_a_document_is_refused() {
    let (mut place, _) = place();
    for (name, tasks, why) in [
        (
            "large",
            json!([{ "id": "number", "tool": "json:stringify", "arguments": { "data": 1_099_511_627_776_123_457_u64 } }]),
            "a number that programs cannot hold",
        ),
        (
            "asking",
            json!([
                { "id": "first", "code": "return 1", "sideEffects": true },
                { "id": "then", "capability": "double", "arguments": { "n": 2 }, "sideEffects": true },
            ]),
            "a capability with `sideEffects`",
        ),
    ] {
        let asked = json!({ "intent": "do it", "options": { "cache": false },
            "implementation": { "type": "dag", "dagStructure": { "tasks": tasks } } });
        let mut told = place.gateway.call("pml_execute", &asked);
        while told["status"] == "approval_required" {
            let yes = json!({ "workflow_id": told["workflowId"], "approved": true });
            told = place.gateway.call("pml_continue", &yes);
        }
        let id = told["capabilityId"].as_str().unwrap_or_else(|| panic!("{told}"));
        assert_eq!(place.home.run(&["capabilities", "rename", id, name]).code, 0);
        let refused = place.run("do it within", &format!("return capabilities.{name}({{}})"), &json!({}));
        let message = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("{refused}"));
        assert!(message.contains(why), "{refused}");
    }
}

#[test]
fn what_a_capability_says_of_itself_does_not_name_who_calls_it() {
    let mut place = Place::start(ALL);
    let code = "pml.hint({ name: 'doubler', description: 'doubles a number' });\n\
        return (await mcp.math.evaluate({ expression: `${args.n} * 2` })).value";
    let told = place.run("double it", code, &json!({ "n": 1 }));
    let child = place.capability_of(told["capabilityId"].as_str().unwrap());
    assert_eq!(child.name, "doubler");
    let tasks = json!([
        { "id": "first", "capability": "doubler", "arguments": { "n": 2 } },
        { "id": "second", "tool": "math:evaluate", "arguments": { "expression": "{{first}} + 1" } },
    ]);
    let told = run(&mut place, &tasks, &json!({}));
    let parent = place.capability_of(told["capabilityId"].as_str().unwrap());
    assert!(!parent.name.contains("doubler"), "{}", parent.name);
    assert!(!parent.procedure.description.contains("doubles a number"), "{}", parent.procedure.description);
    let told = place.run(
        "double it and add",
        "return 1 + await capabilities.doubler({ n: args.n })",
        &json!({ "n": 3 }),
    );
    let parent = place.capability_of(told["capabilityId"].as_str().unwrap());
    assert!(!parent.name.contains("doubler"), "{}", parent.name);
    // A program that is a task has no name but the one it gives.
    let tasks = json!([{ "id": "own", "code": "pml.hint({ name: 'tripler' }); return (await mcp.math.evaluate({ expression: '3 * 3' })).value" }]);
    let told = run(&mut place, &tasks, &json!({}));
    assert_eq!(place.capability_of(told["capabilityId"].as_str().unwrap()).name, "tripler");
}

#[test]
fn every_result_of_a_run_can_be_asked_for_by_the_name_it_is_listed_under() {
    let (mut place, _) = place();
    let code = "const first = await mcp.math.evaluate({ expression: '1 + 1' });\n\
        const twice = await capabilities.double({ n: first.value });\n\
        const all = [];\n\
        for (const n of [5, 6]) all.push(await capabilities.double({ n }));\n\
        const failed = await capabilities.double({ n: 200 }).catch((error) => error.message);\n\
        return { twice, all, failed, long: 'x'.repeat(50) };";
    let told = place.run("work it out twice", code, &json!({}));
    assert_eq!(told["status"], "success", "{told}");
    let id = told["workflowId"].clone();
    let mut fetch = |task: &str| {
        place.gateway.call("pml_get_task_result", &json!({ "workflow_id": id, "task_id": task }))
    };
    // Every call of a tool, wherever it was made.
    let mut seen = Vec::new();
    for task in told["tasks"].as_array().unwrap() {
        let name = task.get("taskId").unwrap_or(&task["nodeId"]).as_str().unwrap();
        let page = fetch(name);
        assert_eq!(page["status"], "success", "{name}: {page}");
        seen.push((name.to_owned(), page["content"].as_str().unwrap().to_owned()));
    }
    let expected = [("n1", 2), ("n2/n1", 4), ("n3/n1#1", 10), ("n3/n1#2", 12)]
        .map(|(name, value)| (name.to_owned(), format!("{{\"value\":{value}}}")));
    assert_eq!(seen, expected);
    // What the capabilities returned themselves.
    assert_eq!(fetch("n2")["content"], "4");
    assert_eq!(fetch("n3#1")["content"], "10");
    assert_eq!(fetch("n3#2")["content"], "12");
    assert_eq!(fetch("n3")["content"], "12", "the latest where nothing is said");
    let failed = fetch("n4");
    assert_eq!(failed["status"], "error", "{failed}");
    assert!(failed["content"].as_str().unwrap().contains("too much"), "{failed}");
    // What the run returned, in pages.
    let whole = fetch("result");
    let result: Value = serde_json::from_str(whole["content"].as_str().unwrap()).unwrap();
    assert_eq!(result, told["result"]);
    let page = place.gateway.call(
        "pml_get_task_result",
        &json!({ "workflow_id": id, "task_id": "result", "offset": 3, "limit": 10 }),
    );
    assert_eq!(page["content"].as_str(), whole["content"].as_str().map(|whole| &whole[3..13]), "{page}");
    assert_eq!(page["nextOffset"], 13);
    let listed = place.gateway.call("pml_get_task_result", &json!({ "workflow_id": id }));
    let names: Vec<&str> = listed["called"]
        .as_array()
        .unwrap()
        .iter()
        .map(|called| called["taskId"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["n2", "n3#1", "n3#2", "n4"], "{listed}");
    let listed: Vec<&str> =
        listed["tasks"].as_array().unwrap().iter().filter_map(|task| task["taskId"].as_str()).collect();
    assert_eq!(listed, ["n2/n1", "n3/n1#1", "n3/n1#2"]);
}

#[test]
fn the_result_of_a_dag_and_the_calls_of_its_programs_can_be_asked_for() {
    let (mut place, _) = place();
    let tasks = json!([
        { "id": "sum", "tool": "math:evaluate", "arguments": { "expression": "1 + 1" } },
        { "id": "result", "code": "await mcp.math.evaluate({ expression: '2 + 2' }); await mcp.math.evaluate({ expression: '3 + 3' }); return 'mine'", "dependsOn": ["sum"] },
    ]);
    let told = run(&mut place, &tasks, &json!({}));
    assert_eq!(told["status"], "success", "{told}");
    let mut fetch = |task: &str| {
        place
            .gateway
            .call("pml_get_task_result", &json!({ "workflow_id": told["workflowId"], "task_id": task }))
    };
    assert_eq!(fetch("result")["content"], "\"mine\"", "a task is asked for by its own name");
    assert_eq!(fetch("$result")["content"], r#"{"result":"mine"}"#);
    assert_eq!(fetch("sum")["content"], r#"{"value":2}"#);
    let names: Vec<&str> =
        told["tasks"].as_array().unwrap().iter().filter_map(|task| task["taskId"].as_str()).collect();
    let values: Vec<Value> = names.iter().map(|name| fetch(name)["content"].clone()).collect();
    assert_eq!(values, [r#"{"value":4}"#, r#"{"value":6}"#], "{names:?}");
    let unknown = fetch("n9");
    assert_eq!(unknown["error"]["code"], "INVALID_REQUEST", "{unknown}");
}

#[test]
fn paths_of_capabilities_in_loops_and_of_retries_have_the_order_of_the_structure() {
    let (mut place, _) = place();
    let path = |place: &mut Place, code: &str, context: &Value| {
        let told = place.run("go the way", code, context);
        assert_eq!(told["status"], "success", "{told}");
        let trace = place.trace(&told);
        trace.body.executed_path.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    let looped = "const all = [];\nfor (const n of args.ns) { all.push(await capabilities.double({ n })); }\nreturn all;";
    assert_eq!(path(&mut place, looped, &json!({ "ns": [1, 2] })), "l1 n1");
    let chosen = "for (const n of args.ns) {\n  if (n > 5) { await capabilities.double({ n }); }\n  \
        else { await mcp.math.evaluate({ expression: `${n}` }); }\n}\nawait capabilities.double({ n: 1 });";
    assert_eq!(path(&mut place, chosen, &json!({ "ns": [9, 1] })), "l1 d1 n1 n2 n3");
    assert_eq!(
        path(&mut place, chosen, &json!({ "ns": [1, 9] })),
        "l1 d1 n2 n1 n3",
        "in the order of the first visit"
    );
    // Something fails at first and is tried again.
    let retry = "const retry = async (work, times) => {\n  for (let i = 0; ; i++) {\n    \
        try { return await work(i); }\n    catch (error) { if (i >= times) throw error; }\n  }\n};\n\
        return retry((i) => CALL, 3);";
    let tool = retry.replace("CALL", "mcp.math.evaluate({ expression: args.all[i] })");
    assert_eq!(path(&mut place, &tool, &json!({ "all": ["1 + 1"] })), "l1 n1");
    let failing = path(&mut place, &tool, &json!({ "all": ["1 +", "2 +", "1 + 1"] }));
    assert!(failing.starts_with("l1 t1 n1"), "{failing}");
    let capability = retry.replace("CALL", "capabilities.double({ n: args.all[i] })");
    assert_eq!(path(&mut place, &capability, &json!({ "all": [2] })), "l1 n1");
    let failing = path(&mut place, &capability, &json!({ "all": [500, 2] }));
    assert!(failing.starts_with("l1 t1 n1"), "{failing}");
}
