//! What people see of calls that were made ahead, and why others were not.

use serde_json::{Value, json};

use crate::place::Place;

/// The calls in the report of a run, as `pml runs show --json` has them.
fn calls(place: &Place, told: &Value) -> Vec<Value> {
    let shown = place.home.run(&["runs", "show", told["workflowId"].as_str().unwrap(), "--json"]);
    assert_eq!(shown.code, 0, "{shown:?}");
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    shown["recording"]["report"]["tasks"].as_array().unwrap_or_else(|| panic!("{shown:#}")).clone()
}

/// Why each call was not made ahead; null if it was, or if nothing kept it from being.
fn reasons(place: &Place, told: &Value) -> Vec<Value> {
    calls(place, told).iter().map(|call| call["notAhead"].clone()).collect()
}

fn timeline(place: &Place, told: &Value) -> Vec<String> {
    let shown = place.home.run(&["runs", "show", told["workflowId"].as_str().unwrap(), "--timeline"]);
    assert_eq!(shown.code, 0, "{shown:?}");
    shown.stdout.lines().map(str::to_owned).collect()
}

#[track_caller]
fn line<'l>(lines: &'l [String], part: &str) -> &'l str {
    lines.iter().find(|line| line.contains(part)).unwrap_or_else(|| panic!("no {part} in {lines:#?}"))
}

/// Two reads, a write, and a read of what it wrote.
const WRITES: &str = "await mcp.a.read({ key: 'one', wait: 300 });\n\
                      await mcp.b.read({ key: 'two', wait: 300 });\n\
                      await mcp.a.write({ key: 'three' });\n\
                      return (await mcp.a.read({ key: 'four' })).writes;";

#[test]
fn the_timeline_shows_what_was_under_way_before_it_was_asked_for_and_what_held_back_a_read() {
    let mut place = Place::start("");
    let told = place.run(WRITES, &json!({}));
    assert_eq!(told["result"], 1, "{told}");
    let on = timeline(&place, &told);
    assert!(line(&on, "b:read").contains("success, ahead") && line(&on, "b:read").contains('░'), "{on:#?}");
    let held = line(&on, "not ahead");
    assert!(held.contains("n4") && held.contains("stands behind n3, which may change it"), "{on:#?}");
    let behind = json!({ "reason": "behind", "node": "n3" });
    assert_eq!(reasons(&place, &told), [Value::Null, Value::Null, Value::Null, behind]);
    let request = place.begin_with(WRITES, &json!({}), json!({ "speculate": false }));
    let without = place.gateway.outcome(request);
    let off = timeline(&place, &without);
    assert!(!off.iter().any(|line| line.contains("ahead") || line.contains('░')), "{off:#?}");
}

#[test]
fn a_read_right_after_a_write_was_held_back_by_it() {
    let mut place = Place::start("");
    let code = "await mcp.b.write({ key: 'first', wait: 20 });\n\
                return (await mcp.a.read({ key: 'second' })).writes;";
    let told = place.run(code, &json!({}));
    assert_eq!(reasons(&place, &told), [Value::Null, json!({ "reason": "behind", "node": "n1" })]);
}

#[test]
fn a_write_within_a_capability_has_no_node_of_the_program() {
    let mut place = Place::start("");
    let writes = "await mcp.b.write({ key: args.key }); return 'written';";
    place.learn("writes", writes, &json!({ "key": "learned" }));
    let code = "await mcp.a.read({ key: 'first', wait: 50 });\n\
                await capabilities.writes({ key: 'second' });\n\
                return (await mcp.a.read({ key: 'third' })).writes;";
    let told = place.run(code, &json!({}));
    assert_eq!(reasons(&place, &told).last(), Some(&json!({ "reason": "behind" })));
}

#[test]
fn a_read_made_before_a_write_of_another_run_says_so() {
    let mut place = Place::start("");
    let code = "await mcp.a.read({ key: 'first', until: 'go' });\n\
                return (await mcp.a.read({ key: 'second' })).writes;";
    let request = place.begin(code, &json!({}));
    place.wait_for_end("second");
    place.run("return (await mcp.b.write({ key: 'write' })).writes", &json!({}));
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(reasons(&place, &told), [Value::Null, json!({ "reason": "written" })]);
    assert!(line(&timeline(&place, &told), "not ahead").contains("written since it was read"));
}

#[test]
fn a_read_that_fails_or_waits_too_long_says_so() {
    let mut place = Place::start("[speculation]\nttl = \"1s\"\n");
    let code = "await mcp.b.read({ key: 'first', until: 'go' });\n\
                await mcp.a.flaky({ key: 'flaky', times: 1, how: 'fail' });\n\
                return (await mcp.a.read({ key: 'old' })).given.key;";
    let request = place.begin(code, &json!({}));
    place.wait_for_end("old");
    place.wait_for_end("flaky");
    std::thread::sleep(std::time::Duration::from_millis(1_200));
    place.allow("go");
    let told = place.gateway.outcome(request);
    let (unanswered, expired) = (json!({ "reason": "unanswered" }), json!({ "reason": "expired" }));
    assert_eq!(reasons(&place, &told), [Value::Null, unanswered, expired]);
}
