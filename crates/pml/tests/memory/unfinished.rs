//! Nothing done is not success: calls that were cut off, programs that return nothing, and programs that call nothing.

use serde_json::{Value, json};

use crate::place::{ALL, Place};

fn warnings(told: &Value) -> String {
    told["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

#[test]
fn calls_that_nothing_waits_for_are_named_and_nothing_is_learned() {
    for (what, code, tool) in [
        ("no await", "mcp.fs.write({ path: 'a.txt', content: 'x' }); return 'done'", "`fs:write`"),
        (
            "forEach",
            "['a', 'b', 'c'].forEach(async (n) => { await mcp.fs.write({ path: n, content: n }) }); return 'done'",
            "`fs:write` (3 times)",
        ),
        (
            "within a helper",
            "const note = (text) => { mcp.fs.write({ path: 'a.txt', content: text }) }; note('x'); return 'done'",
            "`fs:write`",
        ),
    ] {
        let mut place = Place::start(ALL);
        let told = place.run("write it down", code, &json!({}));
        assert_eq!(told["status"], "success", "{what}: {told}");
        let said = warnings(&told);
        assert!(said.contains(tool) && said.contains("await"), "{what}: {told}");
        assert_eq!(told.get("capabilityId"), None, "{what}: {told}");
        assert!(place.capabilities().is_empty(), "{what}");
        let trace = place.trace(&told);
        assert_eq!(
            (trace.capability_id, trace.body.task_results.is_empty()),
            (None, false),
            "{what}: it leaves a trace"
        );
        let uses = place.store().tool_call_counts(&pml_model::Principal::local()).unwrap();
        assert!(uses.is_empty(), "{what}: {uses:?}");
        assert_eq!(place.wish("write it down")["status"], "suggestions", "{what}");
    }
}

#[test]
fn the_warning_is_in_the_text_too() {
    let mut place = Place::start(ALL);
    let code = "mcp.fs.write({ path: 'a.txt', content: 'x' }); return 'done'";
    let asked = json!({ "intent": "write it", "implementation": { "type": "code", "code": code } });
    let text = place.text("pml_execute", &asked);
    assert!(text.contains("warning:") && text.contains("`fs:write`"), "{text}");
    std::fs::write(place.home.path("p.ts"), code).unwrap();
    let printed = place.home.run(&["execute", "write it", "--code", "p.ts"]);
    assert!(printed.stderr.contains("`fs:write`"), "{}", printed.stderr);
}

#[test]
fn a_call_that_lost_a_race_was_waited_for() {
    let mut place = Place::start(ALL);
    std::fs::write(place.home.path("a.txt"), "a").unwrap();
    let code = "const late = new Promise((done) => setTimeout(() => done('late'), 0));\n\
                return await Promise.race([mcp.fs.search({ contains: 'nowhere' }), late])";
    let told = place.run("whichever is first", code, &json!({}));
    assert_eq!(told["status"], "success", "{told}");
    assert!(!warnings(&told).contains("called off"), "{told}");
    assert!(told["capabilityId"].is_string(), "{told}");
}

#[test]
fn a_program_that_returns_nothing_says_so() {
    let mut place = Place::start(ALL);
    let told = place.run("count", "const n = await mcp.text.count({ text: 'a b' }); n.words;", &json!({}));
    assert_eq!((told["status"].as_str(), &told["result"]), (Some("success"), &Value::Null), "{told}");
    assert!(warnings(&told).contains("returned nothing"), "{told}");
    let told =
        place.run("count", "const n = await mcp.text.count({ text: 'a b' }); return n.words;", &json!({}));
    assert_eq!((&told["result"], warnings(&told).as_str()), (&json!(2), ""), "{told}");
}

#[test]
fn a_program_that_calls_nothing_is_run_and_not_remembered_unless_it_asks_for_that() {
    let mut place = Place::start(ALL);
    let pure = "return [3, 1, 2].sort().map((n) => n * 2)";
    let told = place.run("sort and double", pure, &json!({}));
    assert_eq!((&told["result"], told.get("capabilityId")), (&json!([2, 4, 6]), None), "{told}");
    place.trace(&told);
    assert!(place.capabilities().is_empty());
    let failed = place.run("fail", "throw new Error('no')", &json!({}));
    assert_eq!(failed["status"], "failed", "{failed}");
    assert!(place.capabilities().is_empty(), "nor is one that failed");
    let hinted = format!("pml.hint({{ name: 'sortAndDouble', description: 'sorts and doubles' }}); {pure}");
    let told = place.run("sort and double", &hinted, &json!({}));
    assert!(told["capabilityId"].is_string(), "{told}");
    assert_eq!(place.capability().name, "sortAndDouble");
    let outer = place.run("use it", "return await capabilities.sortAndDouble({})", &json!({}));
    assert!(outer["capabilityId"].is_string(), "a call of a capability counts: {outer}");
    let tasks = json!({ "tasks": [{ "id": "a", "code": "return 1" }] });
    let asked = json!({ "intent": "a document", "implementation": { "type": "dag", "dagStructure": tasks } });
    let told = place.gateway.call("pml_execute", &asked);
    assert_eq!((told["status"].as_str(), told.get("capabilityId")), (Some("success"), None), "{told}");
}
