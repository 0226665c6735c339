//! Traces, and the numbers that follow from them.

use pml_model::trace::{EdgeKind, ErrorType, TraceStatus};
use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::harness::{Home, eventually, python};
use crate::place::{ALL, Place, server};

/// The example every description of the system uses.
const EXISTS: &str = "const file = await mcp.fs.stat({ path: args.path });\n\
    if (file.exists) { return await mcp.fs.read({ path: args.path }); }\n\
    return await mcp.fs.create({ path: args.path, content: '' });";

fn nodes(path: &[pml_model::structure::NodeId]) -> String {
    path.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

#[test]
fn three_runs_of_the_example_give_its_paths_counts_and_rates() {
    let mut place = Place::start(ALL);
    std::fs::write(place.home.path("here.txt"), "something").unwrap();
    for path in ["here.txt", "new.txt", "here.txt"] {
        let told = place.run("have the file", EXISTS, &json!({ "path": path }));
        assert_eq!(told["status"], "success", "{told}");
    }
    let capability = place.capability();
    let learning = &capability.learning;
    let paths: Vec<(String, u64, String)> = learning
        .paths
        .iter()
        .map(|path| (nodes(&path.path), path.count, format!("{:.4}", path.success_rate)))
        .collect();
    assert_eq!(
        paths,
        [("n1 d1 n2".to_owned(), 2, "0.5950".to_owned()), ("n1 d1 n3".to_owned(), 1, "0.5500".to_owned())]
    );
    assert_eq!(nodes(&learning.dominant_path), "n1 d1 n2");
    let decision = &learning.decision_stats[0];
    assert_eq!((decision.node_id.to_string().as_str(), decision.condition.as_str()), ("d1", "file.exists"));
    let outcomes: Vec<(&str, u64)> =
        decision.outcomes.iter().map(|(outcome, stats)| (outcome.as_str(), stats.count)).collect();
    assert_eq!(outcomes, [("false", 1), ("true", 2)]);
    assert_eq!((capability.statistics.usage_count, capability.statistics.success_count), (3, 3));

    let before = serde_json::to_value(&capability).unwrap();
    let rebuilt = place.home.run(&["learn", "rebuild"]);
    assert_eq!(
        (rebuilt.code, rebuilt.stdout.as_str()),
        (0, "learned anew from 3 traces\n"),
        "{}",
        rebuilt.stderr
    );
    assert_eq!(serde_json::to_value(place.capability()).unwrap(), before, "the same numbers");
}

#[test]
fn a_trace_says_what_was_called_with_what_and_what_depended_on_what() {
    let mut place = Place::start(ALL);
    std::fs::write(place.home.path("a.json"), r#"{"items": [{"id": 48213}]}"#).unwrap();
    let code = "const file = await mcp.fs.read({ path: 'a.json' });\n\
        const [parsed, length] = await Promise.all([mcp.json.parse({ json: file.content }), mcp.math.evaluate({ expression: '1 + 1' })]);\n\
        await mcp.fs.write({ path: 'b.txt', content: String(length.value) });\n\
        return mcp.json.stringify({ data: parsed.data.items[0] });";
    let told = place.run("take the first item of a.json", code, &json!({}));
    assert_eq!(told["status"], "success", "{told}");
    let trace = place.trace(&told);
    assert_eq!(trace.status, TraceStatus::Success);
    assert_eq!(trace.priority, Some(1.0));
    let tools: Vec<&str> = trace.body.task_results.iter().map(|task| task.tool.as_str()).collect();
    let order = ["fs:read", "json:parse", "math:evaluate", "code:String", "fs:write", "json:stringify"];
    assert_eq!(tools, order);
    assert_eq!(trace.body.task_results[0].args.get(), r#"{"path":"a.json"}"#);
    let result: Value =
        serde_json::from_str(trace.body.task_results[1].result.as_ref().unwrap().get()).unwrap();
    assert_eq!(result["data"]["items"][0]["id"], 48213);
    let edges = |kind: EdgeKind| -> Vec<(u32, u32)> {
        let edges = trace.body.edges.iter().filter(|edge| edge.kind == kind);
        edges.map(|edge| (edge.from + 1, edge.to + 1)).collect()
    };
    // First those between calls, then those of what is computed in between.
    assert_eq!(edges(EdgeKind::Dependency), [(1, 2), (2, 6), (3, 4), (4, 5)], "data");
    let (calls, computed) = ([(1, 2), (1, 3), (2, 5), (3, 5), (5, 6)], [(2, 4), (3, 4), (4, 5)]);
    assert_eq!(edges(EdgeKind::Sequence), [&calls[..], &computed[..]].concat(), "time");
}

#[test]
fn failures_are_kept_and_said_to_be_what_they_are() {
    let mut place = Place::start(ALL);
    let read = "return mcp.fs.read({ path: args.path })";
    let gone = place.run("read it", read, &json!({ "path": "nowhere.txt" }));
    assert_eq!(gone["status"], "failed", "{gone}");
    let trace = place.trace(&gone);
    let error = trace.body.task_results[0].error.as_ref().unwrap();
    assert_eq!((trace.status, error.error_type), (TraceStatus::Failed, ErrorType::NotFound));
    let capability = place.capability();
    assert_eq!(capability.state.as_str(), "planned", "it never worked");
    assert_eq!((capability.statistics.success_count, capability.statistics.failure_count), (0, 1));

    std::fs::write(place.home.path("there.txt"), "x").unwrap();
    place.run("read it", read, &json!({ "path": "there.txt" }));
    let capability = place.capability();
    assert_eq!((capability.state.as_str(), capability.statistics.success_count), ("active", 1));

    let caught = "try { return await mcp.fs.read({ path: args.path }) } catch { return 'none' }";
    let told = place.run("read it if it is there", caught, &json!({ "path": "nowhere.txt" }));
    assert_eq!(told["result"], "none");
    let trace = place.trace(&told);
    assert_eq!(trace.status, TraceStatus::Partial);
    assert_eq!(place.capability_of(told["capabilityId"].as_str().unwrap()).state.as_str(), "active");
}

#[test]
fn what_the_caller_did_wrong_is_no_failure_of_the_procedure() {
    let mut place = Place::start(ALL);
    std::fs::write(place.home.path("a.txt"), "x").unwrap();
    let code = "return mcp.fs.read({ path: args.path })";
    place.run("read it", code, &json!({ "path": "a.txt" }));
    let told = place.run("read it", code, &json!({ "path": 7 }));
    assert_eq!(told["status"], "failed", "{told}");
    assert_eq!(place.trace(&told).status, TraceStatus::Blocked);
    let statistics = place.capability().statistics;
    assert_eq!((statistics.success_count, statistics.failure_count), (1, 0));

    // What is missing or of another type fails in the program itself; what a tool finds invalid comes back as an error.
    for (intent, code, well, wrong) in [
        (
            "read it neatly",
            "return mcp.fs.read({ path: args.path.trim() })",
            json!({ "path": "a.txt" }),
            json!({}),
        ),
        (
            "count them",
            "const all = args.items.map((item) => item.length); return mcp.math.evaluate({ expression: `${all.length}` })",
            json!({ "items": ["a"] }),
            json!({ "items": 7 }),
        ),
        (
            "work it out",
            "return mcp.math.evaluate({ expression: args.expression })",
            json!({ "expression": "1 + 1" }),
            json!({ "expression": "1 + + (" }),
        ),
    ] {
        let id = place.run(intent, code, &well)["capabilityId"].as_str().unwrap().to_owned();
        let told = place.run(intent, code, &wrong);
        assert_eq!(told["status"], "failed", "{told}");
        assert_eq!(place.trace(&told).status, TraceStatus::Blocked, "{intent}: {told}");
        let statistics = place.capability_of(&id).statistics;
        assert_eq!((statistics.success_count, statistics.failure_count), (1, 0), "{intent}");
    }
    // What the program made itself of good arguments is its own failure.
    let own = "return mcp.math.evaluate({ expression: [args.a, args.b].join(' + + ') + ' (' })";
    let told = place.run("add them", own, &json!({ "a": 1, "b": 2 }));
    assert_eq!(place.trace(&told).status, TraceStatus::Failed, "{told}");
}

#[test]
fn a_decision_says_what_was_found() {
    let mut place = Place::start(ALL);
    std::fs::write(place.home.path("here.txt"), "something").unwrap();
    for (path, exists) in [("here.txt", true), ("new.txt", false)] {
        let told = place.run("have the file", EXISTS, &json!({ "path": path }));
        let decisions = serde_json::to_value(&place.trace(&told).body.decisions).unwrap();
        let expected = json!([{
            "nodeId": "d1", "condition": "file.exists", "value": exists, "outcome": exists.to_string(), "times": 1,
        }]);
        assert_eq!(decisions, expected);
    }
    let code = "switch (args.kind) {\n  case 'sum': return mcp.math.evaluate({ expression: '1 + 1' });\n  \
        case 2: return mcp.math.evaluate({ expression: '2' });\n  default: return mcp.time.now({});\n}";
    for (kind, value) in [(json!("sum"), json!("sum")), (json!(2), json!(2)), (json!("other"), json!(null))] {
        let told = place.run("do what is asked", code, &json!({ "kind": kind }));
        let decided = place.trace(&told).body.decisions;
        assert_eq!(json!(decided[0].value), value, "{decided:?}");
    }
}

#[test]
fn the_example_of_the_design_runs_and_its_first_result_could_be_read_from() {
    let mut place = Place::start(ALL);
    let code = "const { path } = args;\n\
        const file = await mcp.fs.stat({ path });\n\
        if (file.exists) {\n\
          const content = await mcp.fs.read({ path });\n\
          return content;\n\
        } else {\n\
          await mcp.fs.create({ path });\n\
          await mcp.fs.write({ path, content: \"\" });\n\
        }";
    std::fs::write(place.home.path("example.ts"), code).unwrap();
    let analysed = place.home.run(&["analyse", "example.ts", "--json"]);
    assert_eq!(analysed.code, 0, "{analysed:?}");
    let analysed: Value = serde_json::from_str(&analysed.stdout).unwrap();
    let edges = analysed["structure"]["edges"].as_array().unwrap();
    let provides = |edge: &&Value| edge["from"] == "n1" && edge["to"] == "n2" && edge["basis"] == "schema";
    assert!(edges.iter().any(|edge| provides(&edge)), "{edges:?}");
    std::fs::write(place.home.path("here.txt"), "something").unwrap();
    for (path, expected) in [("here.txt", "n1 d1 n2"), ("new/one.txt", "n1 d1 n3 n4")] {
        let told = place.run("have the file", code, &json!({ "path": path }));
        assert_eq!(told["status"], "success", "{told}");
        assert_eq!(nodes(&place.trace(&told).body.executed_path), expected);
    }
    assert_eq!(std::fs::read_to_string(place.home.path("new/one.txt")).unwrap(), "");
}

#[test]
fn what_a_reference_names_is_a_dependency_however_small() {
    let mut place = Place::start(ALL);
    let dependencies = |place: &Place, told: &Value| -> Vec<(u32, u32)> {
        let trace = place.trace(told);
        let edges = trace.body.edges.iter().filter(|edge| edge.kind == EdgeKind::Dependency);
        edges.map(|edge| (edge.from + 1, edge.to + 1)).collect()
    };
    let tasks = json!([
        { "id": "one", "tool": "math:evaluate", "arguments": { "expression": "1 + 1" } },
        { "id": "other", "tool": "math:evaluate", "arguments": { "expression": "1 + 2" } },
        { "id": "text", "tool": "json:stringify", "arguments": { "data": { "$ref": "one.value" } } },
        { "id": "both", "tool": "math:evaluate", "arguments": { "expression": "{{one.value}} * {{other.value}}" } },
    ]);
    let implementation = json!({ "type": "dag", "dagStructure": { "tasks": tasks } });
    let told = place.gateway.call(
        "pml_execute",
        &json!({ "intent": "sums", "implementation": implementation, "options": { "cache": false } }),
    );
    assert_eq!(told["status"], "success", "{told}");
    assert_eq!(dependencies(&place, &told), [(1, 3), (1, 4), (2, 4)]);

    let code = "const one = await mcp.math.evaluate({ expression: '1 + 1' });\n\
        const other = await mcp.math.evaluate({ expression: '2 * 1' });\n\
        return mcp.json.stringify({ data: one.value });";
    let told = place.run("a sum as text", code, &json!({}));
    assert_eq!(
        dependencies(&place, &told),
        [(1, 3)],
        "the other has the same value, and nothing was taken from it"
    );
}

#[test]
fn large_results_are_not_kept_and_loops_only_in_part() {
    let mut place = Place::start(ALL);
    std::fs::write(place.home.path("large.txt"), "x".repeat(50_000)).unwrap();
    let told = place.run("read much", "await mcp.fs.read({ path: 'large.txt' }); return 1", &json!({}));
    let trace = place.trace(&told);
    let kept: Value =
        serde_json::from_str(trace.body.task_results[0].result.as_ref().unwrap().get()).unwrap();
    assert_eq!(kept["_truncated"], true);
    assert!(kept["_originalSize"].as_u64().unwrap() > 50_000, "{kept}");
    let code = "for (let i = 0; i < 60; i++) await mcp.math.evaluate({ expression: `${i}` }); return 1";
    let told = place.run("count", code, &json!({}));
    let trace = place.trace(&told);
    assert_eq!((trace.body.task_results.len(), trace.body.omitted), (20, 40));
    assert_eq!(nodes(&trace.body.executed_path), "l1 n1");
}

#[test]
fn nothing_is_learned_where_nothing_is_to_be() {
    let mut place = Place::start(ALL);
    let told = place.run_with("once", "return 1", &json!({}), &json!({ "learn": false }));
    assert_eq!((told["status"].as_str(), told.get("capabilityId")), (Some("success"), None));
    assert!(place.capabilities().is_empty());
}

#[test]
fn documents_and_single_calls_become_capabilities_too() {
    let mut place = Place::start(ALL);
    std::fs::write(place.home.path("a.json"), "[1, 2]").unwrap();
    let tasks = json!({ "tasks": [
        { "id": "file", "tool": "fs:read", "arguments": { "path": "a.json" } },
        { "id": "parsed", "tool": "json:parse", "arguments": { "json": "{{file.content}}" } },
    ] });
    let dag = place.gateway.call(
        "pml_execute",
        &json!({ "intent": "parse a.json", "implementation": { "type": "dag", "dagStructure": tasks } }),
    );
    assert_eq!(dag["status"], "success", "{dag}");
    let trace = place.trace(&dag);
    assert_eq!(nodes(&trace.body.executed_path), "n1 n2");
    let ids: Vec<Option<&str>> = trace.body.task_results.iter().map(|task| task.task_id.as_deref()).collect();
    assert_eq!(ids, [Some("file"), Some("parsed")]);
    let tool = place.gateway.call(
        "pml_execute",
        &json!({ "intent": "add", "context": { "expression": "2 + 2" },
            "implementation": { "type": "tool", "toolId": "math:evaluate" } }),
    );
    assert_eq!(tool["result"]["value"], 4, "{tool}");
    let kinds: Vec<Value> = [&dag, &tool]
        .map(|told| place.capability_of(told["capabilityId"].as_str().unwrap()))
        .map(|capability| serde_json::to_value(&capability.procedure.source).unwrap()["type"].clone())
        .to_vec();
    assert_eq!(kinds, ["dag", "tool"]);
}

#[test]
fn what_usually_comes_next_is_told() {
    let mut place = Place::start(ALL);
    std::fs::write(place.home.path("a.txt"), "hello").unwrap();
    let (read, count) =
        ("return mcp.fs.read({ path: 'a.txt' })", "return mcp.math.evaluate({ expression: '5 * 2' })");
    for _ in 0..3 {
        place.run("read the text", read, &json!({}));
        place.run("do the sum", count, &json!({}));
    }
    place.settled();
    let told = place.run("read the text", read, &json!({}));
    let next = &told["next"][0];
    assert_eq!((next["type"].as_str(), next["name"].as_str()), (Some("capability"), Some("sum")), "{told}");
    let confidence = next["confidence"].as_f64().unwrap();
    assert!((0.5..=1.0).contains(&confidence), "{next}");
    assert!(next["reason"].as_str().unwrap().contains("3 of the 3 times"), "{next}");
}

#[test]
fn what_just_ran_is_no_next_step() {
    let mut place = Place::start(ALL);
    std::fs::write(place.home.path("a.txt"), "hello").unwrap();
    let read = "return mcp.fs.read({ path: 'a.txt' })";
    let id = place.run("read the text", read, &json!({}))["capabilityId"].clone();
    let renamed = place.home.run(&["capabilities", "rename", id.as_str().unwrap(), "readText"]);
    assert_eq!(renamed.code, 0, "{}", renamed.stderr);
    let both = "await capabilities.readText({}); return mcp.math.evaluate({ expression: '1 + 1' })";
    for _ in 0..3 {
        place.run("read the text", read, &json!({}));
        place.run("read the text and do the sum", both, &json!({}));
    }
    place.settled();
    let offered = |told: &Value| -> Vec<String> {
        let all = told["next"].as_array().cloned().unwrap_or_default();
        all.iter().map(|next| next["id"].as_str().unwrap().to_owned()).collect()
    };
    // The very same call with the same arguments is no step.
    let told = place.run("read the text", read, &json!({}));
    let own = [id.as_str().unwrap(), "fs:read"];
    assert!(offered(&told).iter().all(|next| !own.contains(&next.as_str())), "{told}");
    let again = place.run("read the text", read, &json!({}));
    assert!(offered(&again).iter().all(|next| !own.contains(&next.as_str())), "{again}");
    let told = place.run("read the text and do the sum", both, &json!({}));
    let outer = told["capabilityId"].as_str().unwrap();
    let ran = [outer, id.as_str().unwrap(), "fs:read", "math:evaluate"];
    assert!(offered(&told).iter().all(|next| !ran.contains(&next.as_str())), "{told}");
    let cached = place.run_with("read the text and do the sum", both, &json!({}), &json!({}));
    assert!(offered(&cached).iter().all(|next| !ran.contains(&next.as_str())), "{cached}");
}

#[test]
fn what_usually_runs_again_with_other_arguments_is_a_next_step() {
    let mut place = Place::start(ALL);
    let read = "return mcp.fs.read({ path: args.path })";
    let mut told = Value::Null;
    for name in ["a.txt", "b.txt", "c.txt", "d.txt"] {
        std::fs::write(place.home.path(name), name).unwrap();
        told = place.run("read one more text", read, &json!({ "path": name }));
        place.settled();
    }
    let next = told["next"].as_array().unwrap();
    let again = |id: &Value| next.iter().find(|next| next["id"] == *id).unwrap_or_else(|| panic!("{told}"));
    let reason = again(&json!("fs:read"))["reason"].as_str().unwrap();
    assert!(reason.contains("with other arguments"), "{told}");
    let before = place.store().learned_edges(&pml_model::Principal::local()).unwrap();
    let rebuilt = place.home.run(&["learn", "rebuild"]);
    assert_eq!(rebuilt.code, 0, "{}", rebuilt.stderr);
    assert_eq!(place.store().learned_edges(&pml_model::Principal::local()).unwrap(), before);
}

#[test]
fn arguments_that_a_tool_refuses_lower_it_for_intents_with_such_values() {
    let mut place = Place::start(ALL);
    std::fs::write(place.home.path("a.json"), "{}").unwrap();
    std::fs::write(place.home.path("b.bin"), [0xff_u8, 0xfe, 0x00, 0xff]).unwrap();
    let read = "return mcp.fs.read({ path: args.path })";
    for name in ["a.json", "a.json", "b.bin", "b.bin", "b.bin"] {
        place.run("read it", read, &json!({ "path": name }));
    }
    place.settled();
    let known = place.store().argument_pattern_counts(&pml_model::Principal::local()).unwrap();
    let counts = |pattern: &str| {
        let found = known.iter().find(|(tool, of, _)| tool == "fs:read" && of == pattern);
        found.map(|(.., counts)| (counts.calls, counts.failures)).unwrap_or_else(|| panic!("{known:?}"))
    };
    assert_eq!((counts("*.json"), counts("*.bin").0), ((2, 0), 3));
    let rebuilt = place.home.run(&["learn", "rebuild"]);
    assert_eq!(rebuilt.code, 0, "{}", rebuilt.stderr);
    assert_eq!(place.store().argument_pattern_counts(&pml_model::Principal::local()).unwrap(), known);
    let status = place.home.run(&["--json", "learn", "status"]);
    let status: Value = serde_json::from_str(&status.stdout).unwrap_or_else(|_| panic!("{status:?}"));
    let parts = status["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 4, "{status}");
    assert!(parts.iter().all(|part| part["state"] == "not_judged"), "five runs decide nothing: {status}");
    let found = |place: &mut Place, intent: &str| -> Value {
        let page = place
            .gateway
            .call("pml_discover", &json!({ "intent": intent, "limit": 50, "filter": { "type": "tool" } }));
        let all = page["results"].as_array().unwrap();
        all.iter().find(|found| found["id"] == "fs:read").unwrap_or_else(|| panic!("{page}")).clone()
    };
    let said = |of: &Value, pattern: &str| of["reasons"].to_string().contains(pattern);
    eventually("what came of such arguments is a reason", || {
        said(&found(&mut place, "read the file c.json"), "`*.json` succeeds 100 %")
            && said(&found(&mut place, "read the file c.bin"), "`*.bin` succeeds")
    });
    assert!(!said(&found(&mut place, "read the file c.json"), "*.bin"));
}

#[test]
fn what_belongs_to_the_results_of_a_search_is_suggested_beside_them() {
    let mut place = Place::start(ALL);
    std::fs::write(place.home.path("a.json"), "{}").unwrap();
    let code = "const file = await mcp.fs.read({ path: args.path });\n\
        return mcp.json.parse({ json: file.content });";
    for _ in 0..4 {
        let told = place.run("load the settings", code, &json!({ "path": "a.json" }));
        assert_eq!(told["status"], "success", "{told}");
    }
    place.settled();
    let asked = json!({ "intent": "read a text file", "limit": 1, "filter": { "type": "all" } });
    eventually("what follows is suggested", || {
        let page = place.gateway.call("pml_discover", &asked);
        let found = page["suggestions"].as_array().cloned().unwrap_or_default();
        assert!(found.len() <= 5, "{page}");
        let of = |kind: &str| found.iter().filter(|one| one["type"] == kind).cloned().collect::<Vec<_>>();
        assert!(of("capability").len() <= 3, "{page}");
        for one in &found {
            assert_eq!(one.get("id").is_some(), one["type"] == "capability", "{page}");
            assert_eq!(one.get("toolId").is_some(), one["type"] != "capability", "{page}");
            assert!(one["reason"].is_string() && one["confidence"].as_f64().is_some_and(|sure| sure <= 1.0));
            assert!(page["results"].as_array().unwrap().iter().all(|found| found["id"] != one["toolId"]));
        }
        page["results"][0]["id"] == "fs:read"
            && of("next_tool").iter().any(|next| next["toolId"] == "json:parse")
            && of("capability").iter().any(|known| known["name"].is_string())
    });
}

#[test]
fn a_tool_that_fails_sinks_and_what_others_get_wrong_is_not_its_fault() {
    let home = Home::new("");
    std::fs::write(home.path("flaky.py"), server(FLAKY)).unwrap();
    let (program, script) = (python("python"), home.path("flaky.py"));
    home.configure(&format!("{ALL}[servers.flaky]\ncommand = {program:?}\nargs = [{script:?}]\n"));
    let gateway = Gateway::start(home.command(&["stdio"]));
    let mut place = Place { home, gateway };
    let found = |place: &mut Place, tool: &str| -> Value {
        let page = place.gateway.call("pml_discover", &json!({ "intent": "the weather report of a town" }));
        let all = page["results"].as_array().unwrap();
        all.iter().find(|found| found["id"] == tool).unwrap_or_else(|| panic!("{page}")).clone()
    };
    // Words alone rank otherwise, so scores are compared once the tools are embedded.
    let embedded = |place: &mut Place| {
        eventually("the texts are embedded", || {
            let page = place.gateway.call("pml_discover", &json!({ "intent": "anything" }));
            !page.to_string().contains("not embedded yet")
        });
    };
    embedded(&mut place);
    let before = found(&mut place, "flaky:weather_report");
    assert!(before.get("usageCount").is_none(), "{before}");
    for number in 0..4 {
        let code = format!(
            "try {{ await mcp.flaky.weather_report({{ town: 'Oslo {number}' }}) }} catch {{ }}
             try {{ await mcp.fs.read({{ path: 'there is no such file {number}' }}) }} catch {{ }}"
        );
        place.run("look at the weather", &code, &json!({}));
    }
    place.settled();
    embedded(&mut place);
    let mut after = Value::Null;
    eventually("it is known that it fails", || {
        after = found(&mut place, "flaky:weather_report");
        after["usageCount"] == 4
    });
    assert_eq!(after["successRate"], 0.0, "{after}");
    assert!(after["score"].as_f64() < before["score"].as_f64(), "{before} {after}");
    let told = after["reasons"].as_array().unwrap().iter().any(|reason| reason == "failed 4 of 4 times");
    assert!(told, "{after}");
    let whole = json!({ "intent": "read a file", "detail": "full" });
    let page = place.gateway.call("pml_discover", &whole);
    let read = page["results"].as_array().unwrap().iter().find(|found| found["id"] == "fs:read").unwrap();
    assert_eq!((&read["usageCount"], &read["successRate"]), (&json!(4), &json!(1.0)), "{read}");
}

/// A server that is out of order.
const FLAKY: &str = r#"
def tools():
    schema = {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]}
    return [{"name": "weather_report", "description": "The weather report of a town", "inputSchema": schema}]
def call():
    return {"content": [{"type": "text", "text": "internal error: the station does not answer"}], "isError": True}
"#;

#[test]
fn what_was_just_used_speaks_for_what_goes_with_it() {
    // By words alone, which change no more while they are compared.
    let mut place = Place::start(&format!("{ALL}[embedding]\nmodel = \"none\"\n"));
    std::fs::write(place.home.path("a.csv"), "a,b\n1,2\n").unwrap();
    let parse = |place: &mut Place| -> Value {
        let page = place.gateway.call("pml_discover", &json!({ "intent": "parse the text" }));
        let all = page["results"].as_array().unwrap();
        all.iter().find(|found| found["id"] == "csv:parse").unwrap_or_else(|| panic!("{page}")).clone()
    };
    let told = |found: &Value| found["reasons"].to_string().contains("`fs:read`");
    let before = parse(&mut place);
    assert!(!told(&before), "{before}");
    let mut after = Value::Null;
    eventually("how tools hang together is known", || {
        let run = place.run("read the table", "return mcp.fs.read({ path: 'a.csv' })", &json!({}));
        assert_eq!(run["status"], "success", "{run}");
        after = parse(&mut place);
        told(&after)
    });
    assert!(after["score"].as_f64() > before["score"].as_f64(), "{before} {after}");
}
