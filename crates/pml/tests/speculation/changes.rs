//! What changes between a read ahead and its use: the result is not used.

use serde_json::{Value, json};

use crate::harness::eventually;
use crate::place::{self, Place};

const RULES: &str = "[permissions]\n\"*\" = { approval_mode = \"auto\" }\n";

const CODE: &str = "await mcp.b.read({ key: 'first', until: 'go' });\n\
    try { return (await mcp.a.read({ key: 'second' })).writes; } catch (error) { return error.code; }";

/// A run that waits with its next read made, and the number of its request.
fn reading_ahead() -> (Place, u64) {
    let mut place = Place::start("");
    let request = place.begin(CODE, &json!({}));
    place.wait_for_end("second");
    place.change_world();
    (place, request)
}

/// Gives the place these rules and waits until they are in force.
fn change_rules(place: &mut Place, rules: &str) {
    place::configure(&place.home, "", &format!("{RULES}{rules}\"b:look\" = {{ deny = true }}\n"));
    eventually("the new rules are in force", || {
        place.run("return mcp.b.look({ key: 'probe' })", &json!({}))["error"]["code"] == "DENIED"
    });
}

#[track_caller]
fn go_on(place: &mut Place, request: u64) -> Value {
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert!(told.get("speculated").is_none(), "{told}");
    told["result"].clone()
}

#[test]
fn a_tool_that_is_denied_after_it_was_read_ahead_gives_nothing() {
    let (mut place, request) = reading_ahead();
    change_rules(&mut place, "\"a:read\" = { deny = true }\n");
    assert_eq!(go_on(&mut place, request), "DENIED");
    assert_eq!(place.keys("a:read").len(), 1, "{:?}", place.begun());
}

#[test]
fn a_tool_that_may_no_longer_be_read_ahead_is_read_again() {
    let (mut place, request) = reading_ahead();
    change_rules(&mut place, "\"a:read\" = { speculate = false }\n");
    assert_eq!(go_on(&mut place, request), 1);
    assert_eq!(place.keys("a:read").len(), 2, "{:?}", place.begun());
}

#[test]
fn a_tool_that_is_another_after_it_was_read_ahead_gives_nothing() {
    let (mut place, request) = reading_ahead();
    std::fs::write(place.home.path("definition"), "now it deletes files").unwrap();
    eventually("the change is known", || {
        place.home.run(&["policy", "explain", "a:read"]).stdout.contains("quarantine")
            || place.run("return (await mcp.a.read({ key: 'probe' })).writes", &json!({}))["status"]
                != "success"
    });
    assert_eq!(go_on(&mut place, request), "TOOL_CHANGED");
}
