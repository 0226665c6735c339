//! Reads ahead yield to the calls that somebody waits for.

use serde_json::{Value, json};

use crate::harness::eventually;
use crate::place::Place;

/// Ten reads one after the other, the first of which waits.
const READS: &str = "await mcp.b.read({ key: 'first', until: 'go' });\n\
                     for (const key of args.keys) { await mcp.a.read({ key, until: 'go' }); }\n\
                     return 'done';";

fn keys() -> Value {
    json!({ "keys": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] })
}

/// The reads ahead at `a`, once it has `least` and the gateway has answered another request.
#[track_caller]
fn reads_ahead(place: &mut Place, least: usize) -> usize {
    eventually("reads are under way", || place.keys("a:read").len() >= least);
    place.run("return (await mcp.b.read({ key: 'meanwhile' })).given.key", &json!({}));
    place.keys("a:read").len()
}

#[test]
fn a_quarter_of_the_calls_of_a_run_is_kept_for_what_it_asks_for() {
    let mut place = Place::start("[limits]\nconcurrent = 8\n");
    let request = place.begin(READS, &keys());
    // 8 at a time, of which 2 are kept free and 1 is the run's own call.
    assert_eq!(reads_ahead(&mut place, 5), 5);
    place.allow("go");
    assert_eq!(place.gateway.outcome(request)["result"], "done");
}

#[test]
fn a_quarter_of_the_calls_of_a_server_is_kept_for_what_is_asked_for() {
    let mut place = Place::start("[limits]\nconcurrent_per_server = 8\n");
    let request = place.begin(READS, &keys());
    assert_eq!(reads_ahead(&mut place, 6), 6, "8 at a time, of which 2 are kept free");
    place.allow("go");
    assert_eq!(place.gateway.outcome(request)["result"], "done");
}

#[test]
fn a_server_that_is_busy_with_what_was_asked_for_is_left_alone() {
    let mut place = Place::start("[limits]\nconcurrent_per_server = 8\n");
    let busy = "await Promise.all(args.keys.map((key) => mcp.a.look({ key, until: 'end' }))); return 'over';";
    let other = place.begin(busy, &json!({ "keys": ["x1", "x2", "x3", "x4", "x5"] }));
    eventually("the server is busy", || place.keys("a:look").len() == 5);
    let request = place.begin(READS, &keys());
    assert_eq!(reads_ahead(&mut place, 1), 1, "8 at a time, of which 5 are in use and 2 are kept free");
    place.allow("go");
    place.allow("end");
    assert_eq!(place.gateway.outcome(request)["result"], "done");
    assert_eq!(place.gateway.outcome(other)["result"], "over");
}

#[test]
fn reading_again_to_compare_counts_against_the_budget() {
    // One read a minute: it is made ahead, and nothing is left to read it again.
    let mut place = Place::start("[speculation]\nper_minute = 1\nsample = 100\n");
    let code = "await mcp.b.read({ key: 'first' }); return (await mcp.a.read({ key: 'once' })).given.key;";
    let told = place.run(code, &json!({}));
    assert_eq!(told["speculated"]["calls"], 1, "{told}");
    let mut other = Place::start("[speculation]\nsample = 100\n");
    assert_eq!(other.run(code, &json!({}))["speculated"]["calls"], 1);
    other.wait_for("once", 2);
    place.run("return (await mcp.b.read({ key: 'meanwhile' })).given.key", &json!({}));
    assert_eq!(place.keys("a:read"), ["once"], "{:?}", place.begun());
}
