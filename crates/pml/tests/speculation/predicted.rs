//! After a run: the result of the capability that usually follows is prepared, if it only reads.

use serde_json::{Value, json};

use crate::harness::eventually;
use crate::place::Place;

/// What the first capability does.
const FIRST: &str = "return (await mcp.b.read({ key: `first ${args.name}` })).given.key;";

/// A place that has seen a program follow [`FIRST`] so often that it expects it.
fn place_that_expects(next: &str) -> Place {
    place_with_budget("", next)
}

/// The same with further settings of speculation.
fn place_with_budget(budget: &str, next: &str) -> Place {
    let rules = "[permissions]\n\"*\" = { approval_mode = \"auto\", cache_ttl = \"1h\" }\n";
    let mut place = Place::with_rules(&format!("[speculation]\npreset = \"eager\"\n{budget}\n"), rules);
    place.allow("go");
    for turn in 0..12 {
        let name = format!("n{turn}");
        run(&mut place, "first of all", FIRST, &name, false);
        run(&mut place, "then that", next, &name, true);
    }
    place
}

fn run(place: &mut Place, intent: &str, code: &str, name: &str, cache: bool) -> Value {
    let implementation = json!({ "type": "code", "code": code });
    let asked = json!({
        "intent": intent, "implementation": implementation, "context": { "name": name },
        "options": { "cache": cache },
    });
    let told = place.gateway.call("pml_execute", &asked);
    assert_eq!(told["status"], "success", "{told}");
    told
}

#[test]
fn the_result_of_what_usually_follows_is_there_when_it_is_asked_for() {
    let next = "return (await mcp.a.read({ key: `next ${args.name}` })).given.key;";
    let mut place = place_that_expects(next);
    let told = run(&mut place, "first of all", FIRST, "last", false);
    assert!(told["next"].to_string().contains("cap_"), "{told}");
    place.wait_for_end("next last");
    // Where it is kept is for the gateway to know; a moment after the read has ended it is.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let told = run(&mut place, "then that", next, "last", true);
    assert_eq!((&told["result"], told.get("cacheHit").is_some()), (&json!("next last"), true), "{told}");
    let reads = place.keys("a:read").into_iter().filter(|key| key == "next last").count();
    assert_eq!(reads, 1, "{:?}", place.begun());
}

#[test]
fn what_usually_follows_and_may_change_something_is_not_run() {
    let next = "const r = await mcp.a.read({ key: `next ${args.name}` }); await mcp.a.write({ key: args.name }); return r.given.key;";
    let mut place = place_that_expects(next);
    let writes = place.writes();
    run(&mut place, "first of all", FIRST, "last", false);
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(!place.has_begun("next last"), "{:?}", place.begun());
    assert_eq!(place.writes(), writes);
}

#[test]
fn what_usually_follows_sends_nothing_to_a_network_that_another_tool_gave() {
    let next = "const r = await mcp.a.read({ key: `next ${args.name}` });\nreturn (await mcp.b.web({ key: `out ${r.given.key}` })).given.key;";
    let mut place = place_that_expects(next);
    run(&mut place, "first of all", FIRST, "last", false);
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(!place.has_begun("out next last"), "{:?}", place.begun());
}

/// Three reads at once, which wait for a file named as an argument.
const THREE: &str = "const reads = await Promise.all(['x', 'y', 'z'].map((key) => \
                     mcp.a.read({ key: `${key} ${args.name}`, until: args.name === 'last' ? 'last' : 'go' })));\n\
                     return reads.length;";

/// The calls with these keys that have begun, of the three.
fn begun_of(place: &Place, name: &str) -> usize {
    ["x", "y", "z"].iter().filter(|key| place.has_begun(&format!("{key} {name}"))).count()
}

#[test]
fn the_reads_of_what_usually_follows_take_their_turn_in_the_budget_of_the_server() {
    let mut place = place_with_budget("per_server = 1", THREE);
    run(&mut place, "first of all", FIRST, "last", false);
    eventually("the first read begins", || begun_of(&place, "last") == 1);
    // Another run to its end: whatever could begin has begun.
    place.run("return (await mcp.b.read({ key: 'meanwhile' })).given.key", &json!({}));
    assert_eq!(begun_of(&place, "last"), 1, "{:?}", place.begun());
    place.allow("last");
    eventually("all are read, one after the other", || begun_of(&place, "last") == 3);
    eventually("the result is kept", || {
        run(&mut place, "then that", THREE, "last", true).get("cacheHit").is_some()
    });
}

#[test]
fn the_reads_of_what_usually_follows_count_in_the_budget_of_a_minute() {
    let mut place = place_with_budget("per_minute = 2", THREE);
    // A new process has the whole budget.
    place.restart();
    run(&mut place, "first of all", FIRST, "last", false);
    eventually("two reads begin", || begun_of(&place, "last") == 2);
    place.run("return (await mcp.b.read({ key: 'meanwhile' })).given.key", &json!({}));
    assert_eq!(begun_of(&place, "last"), 2, "the third has no place in the budget: {:?}", place.begun());
}
