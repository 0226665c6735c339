//! Documents that wait after each layer: the reads of the next layer are made meanwhile.

use serde_json::{Value, json};

use crate::harness::eventually;
use crate::place::{Place, served};

/// A read, and after it two reads and a write.
fn document() -> Value {
    json!([
        { "id": "first", "tool": "a:read", "arguments": { "key": "first", "next": "second" } },
        { "id": "known", "tool": "a:read", "arguments": { "key": { "$ref": "args.name" } }, "dependsOn": ["first"] },
        { "id": "given", "tool": "b:read", "arguments": { "key": { "$ref": "first.given.next" } } },
        { "id": "write", "tool": "b:write", "arguments": { "key": "write" }, "dependsOn": ["first"] },
    ])
}

/// A place that waits after the first layer of the document, with the reads of the next made.
fn paused(settings: &str) -> (Place, Value) {
    let mut place = Place::start(settings);
    let waiting = place.run_layers(&document(), &json!({ "name": "known" }));
    assert_eq!(waiting["status"], "layer_complete", "{waiting}");
    for key in ["known", "second"] {
        place.wait_for_end(key);
    }
    assert!(place.keys("b:write").is_empty(), "what may change something waits: {:?}", place.begun());
    (place, waiting)
}

#[test]
fn safe_reads_of_the_next_layer_are_made_during_the_pause_and_served_after_it() {
    let (mut place, waiting) = paused("");
    let over = place.go_on(&waiting);
    assert_eq!(over["status"], "success", "{over}");
    assert_eq!(over["result"]["known"]["given"]["key"], "known", "{over}");
    assert_eq!((place.begun().len(), place.writes()), (4, 1), "each call is made once: {:?}", place.begun());
    place.assert_served(&over, &["known", "second"], &["first", "write"]);
    assert_eq!(place.stats("a:read", 1)["hits"], 1);
}

#[test]
fn a_layer_of_reads_is_made_as_a_whole_during_the_pause() {
    let mut place = Place::start("");
    let next = |n: usize| json!({ "id": format!("n{n}"), "tool": "a:read", "arguments": { "key": format!("k{n}") }, "dependsOn": ["first"] });
    let mut tasks = vec![json!({ "id": "first", "tool": "a:read", "arguments": { "key": "first" } })];
    tasks.extend((0..6).map(next));
    let waiting = place.run_layers(&json!(tasks), &json!({}));
    (0..6).for_each(|n| place.wait_for_end(&format!("k{n}")));
    let over = place.go_on(&waiting);
    assert_eq!(over["speculated"]["calls"], 6, "{over}");
    assert_eq!(place.begun().len(), 7);
}

#[test]
fn a_pause_after_each_layer_by_decision_points_is_read_ahead_in_too() {
    let mut place = Place::start("");
    let options = json!({ "decisionPoints": "per_layer" });
    let waiting = place.run_document(&document(), &json!({ "name": "known" }), options);
    assert_eq!(waiting["status"], "layer_complete", "{waiting}");
    for key in ["known", "second"] {
        place.wait_for_end(key);
    }
    assert!(place.keys("b:write").is_empty(), "what may change something waits: {:?}", place.begun());
    let over = place.go_on(&waiting);
    assert_eq!(over["status"], "success", "{over}");
    place.assert_served(&over, &["known", "second"], &["first", "write"]);
    assert_eq!(place.begun().len(), 4, "each call is made once: {:?}", place.begun());
}

#[test]
fn the_next_layer_of_a_new_plan_is_read_during_its_pause() {
    let (mut place, waiting) = paused("");
    let tasks = json!([
        { "id": "instead", "tool": "a:read", "arguments": { "key": "instead", "next": "given" }, "dependsOn": ["first"] },
        { "id": "later", "tool": "b:read", "arguments": { "key": "later" }, "dependsOn": ["instead"] },
        { "id": "given", "tool": "a:read", "arguments": { "key": { "$ref": "instead.given.next" } } },
    ]);
    let asked = json!({ "workflow_id": waiting["workflowId"], "dagStructure": { "tasks": tasks } });
    let next = place.gateway.call("pml_replan", &asked);
    assert_eq!(next["status"], "layer_complete", "{next}");
    for key in ["later", "given"] {
        place.wait_for_end(key);
    }
    let over = place.go_on(&next);
    assert_eq!(over["status"], "success", "{over}");
    let (ahead, others) = served(&place.trace(&over));
    assert!(["later", "given"].iter().all(|key| ahead.contains(&(*key).to_owned())), "{ahead:?} {others:?}");
    let later = place.begun().into_iter().filter(|call| call.given["key"] == "later").count();
    assert_eq!(later, 1, "it is read once: {:?}", place.begun());
}

#[test]
fn reads_of_layers_further_on_are_made_once_over_several_pauses() {
    let mut place = Place::start("");
    let read = |id: &str, after: &[&str]| json!({ "id": id, "tool": "a:read", "arguments": { "key": id }, "dependsOn": after });
    let tasks = json!([read("a", &[]), read("b", &["a"]), read("c", &["b"]), read("d", &["c"])]);
    let mut told = place.run_layers(&tasks, &json!({}));
    for key in ["b", "c", "d"] {
        place.wait_for_end(key);
    }
    while told["status"] == "layer_complete" {
        told = place.go_on(&told);
    }
    assert_eq!(told["status"], "success", "{told}");
    place.assert_served(&told, &["b", "c", "d"], &["a"]);
    assert_eq!(place.keys("a:read"), ["a", "b", "c", "d"], "each is read once");
}

#[test]
fn replanning_drops_what_was_read_for_the_old_layer() {
    let (mut place, waiting) = paused("");
    place.change_world();
    let tasks =
        json!([{ "id": "known", "tool": "a:read", "arguments": { "key": "known" }, "dependsOn": ["first"] }]);
    let document = json!({ "tasks": tasks });
    let asked = json!({ "workflow_id": waiting["workflowId"], "dagStructure": document });
    let mut over = place.gateway.call("pml_replan", &asked);
    while over["status"] == "layer_complete" {
        over = place.go_on(&over);
    }
    assert_eq!(over["status"], "success", "{over}");
    assert_eq!(over["result"]["known"]["writes"], 1, "it was read again: {over}");
    assert_eq!((place.keys("a:read").len(), place.keys("b:write").len()), (3, 0), "{:?}", place.begun());
}

#[test]
fn aborting_drops_what_was_read_and_nothing_has_happened() {
    let (mut place, waiting) = paused("");
    let over = place.gateway.call("pml_abort", &json!({ "workflow_id": waiting["workflowId"] }));
    assert_eq!(over["error"]["code"], "ABORTED", "{over}");
    assert_eq!((place.begun().len(), place.writes()), (3, 0), "{:?}", place.begun());
    let stats = place.stats("b:read", 1);
    assert_eq!([&stats["hits"], &stats["wasted"]], [&json!(0), &json!(1)], "{stats}");
}

#[test]
fn what_waited_longer_than_its_time_is_read_again() {
    let (mut place, waiting) = paused("[speculation]\nttl = \"1s\"\n");
    place.change_world();
    std::thread::sleep(std::time::Duration::from_millis(1_200));
    let over = place.go_on(&waiting);
    assert_eq!(over["status"], "success", "{over}");
    assert_eq!(over["result"]["known"]["writes"].as_u64().map(|writes| writes > 0), Some(true), "{over}");
    assert!(over.get("speculated").is_none(), "{over}");
    let stats = place.stats("a:read", 1);
    assert_eq!(stats["hits"], 0, "{stats}");
}

#[test]
fn what_was_read_before_a_write_of_another_run_is_read_again() {
    let (mut place, waiting) = paused("");
    assert_eq!(place.run("return (await mcp.a.write({ key: 'other' })).writes", &json!({}))["result"], 1);
    let over = place.go_on(&waiting);
    assert!(over.get("speculated").is_none(), "{over}");
    assert_eq!(place.keys("a:read").len(), 3, "{:?}", place.begun());
}

#[test]
fn what_depends_on_a_failed_task_is_not_served_from_before_the_failure() {
    let mut place = Place::start("");
    let tasks = json!([
        { "id": "bad", "tool": "a:fail", "arguments": { "key": "bad" }, "safeToFail": true },
        { "id": "good", "tool": "a:read", "arguments": { "key": "good" } },
        { "id": "after", "tool": "a:read", "arguments": { "key": "after" }, "dependsOn": ["bad"] },
        { "id": "free", "tool": "a:read", "arguments": { "key": "free" }, "dependsOn": ["good"] },
    ]);
    let waiting = place.run_layers(&tasks, &json!({}));
    place.wait_for_end("free");
    let over = place.go_on(&waiting);
    assert_eq!(over["status"], "success", "{over}");
    place.assert_served(&over, &["free"], &["bad", "good", "after"]);
    let after = place.keys("a:read").into_iter().filter(|key| key == "after").count();
    assert!(after <= 2, "it may be read while the task before it runs, and is read again then: {after}");
}

#[test]
fn a_pause_that_outlives_its_process_is_read_again() {
    let (mut place, waiting) = paused("");
    place.restart();
    let over = place.go_on(&waiting);
    assert_eq!(over["status"], "success", "{over}");
    assert_eq!(over["result"]["known"]["given"]["key"], "known", "{over}");
    assert_eq!(place.writes(), 1);
    eventually("all has ended", || place.calls("end").len() == place.begun().len());
}
