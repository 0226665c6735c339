//! Servers that answer reads ahead wrongly, slowly or not at all: the run does not notice.

use serde_json::json;

use crate::harness::eventually;
use crate::place::Place;

#[test]
fn a_call_whose_read_ahead_takes_long_is_made_beside_it_and_the_first_result_counts() {
    let mut place = Place::start("");
    // The read ahead is never answered; the call beside it, which is the second one, is.
    let code = "await mcp.b.read({ key: 'first' });\n\
                return (await mcp.a.flaky({ key: args.key, times: 1, how: 'hang' })).given.key;";
    for key in ["one", "two"] {
        let told = place.run(code, &json!({ "key": key }));
        assert_eq!(told["result"], key, "{told}");
    }
    // A read that is answered after the call was made beside it counts if it comes first.
    let code = "await mcp.b.read({ key: 'before' });\n\
                return (await mcp.a.read({ key: 'slow', until: args.until })).given.key;";
    let request = place.begin(code, &json!({ "until": "go" }));
    place.wait_for("slow", 2);
    place.allow("go");
    assert_eq!(place.gateway.outcome(request)["result"], "slow");
    assert_eq!(place.keys("a:read").len(), 2, "the call was made beside the read: {:?}", place.begun());
}

#[test]
fn a_server_that_refuses_a_second_call_beside_the_read_is_asked_again_alone() {
    let mut place = Place::start("");
    let code = "await mcp.b.read({ key: 'first' });\n\
                return (await mcp.a.single({ key: 'single', wait: 700 })).given.key;";
    let told = place.run(code, &json!({}));
    assert_eq!(told["result"], "single", "{told}");
}

/// Runs a program whose read ahead goes wrong in this way, and gives how often the tool was called.
#[track_caller]
fn with_fault(how: &str) -> usize {
    let mut place = Place::start("");
    let code = "await mcp.b.read({ key: 'first', until: 'go' });\n\
                const flaky = await mcp.a.flaky({ key: 'flaky', times: 1, how: args.how });\n\
                const last = await mcp.b.read({ key: 'last' });\n\
                return [flaky.given.key, last.given.key];";
    let request = place.begin(code, &json!({ "how": how }));
    place.wait_for_key("flaky");
    place.wait_for_end("last");
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], json!(["flaky", "last"]), "{told}");
    place.assert_served(&told, &["last"], &["first", "flaky"]);
    place.keys("a:flaky").len()
}

#[test]
fn a_read_ahead_that_fails_is_made_again_when_it_is_asked_for() {
    assert_eq!(with_fault("fail"), 2);
}

#[test]
fn a_read_ahead_that_is_never_answered_is_made_again_when_it_is_asked_for() {
    assert_eq!(with_fault("hang"), 2);
}

#[test]
fn a_server_that_dies_of_a_read_ahead_is_asked_again() {
    assert_eq!(with_fault("die"), 2);
}

#[test]
fn a_server_that_is_slow_with_a_read_ahead_gives_the_right_result_all_the_same() {
    let mut place = Place::start("");
    let code = "await mcp.b.read({ key: 'first' });\n\
                return (await mcp.a.read({ key: 'slow', wait: 700 })).given.key;";
    for run in 1..=3 {
        let told = place.run(code, &json!({}));
        assert_eq!(told["result"], "slow", "{told}");
        let calls = place.keys("a:read").len();
        assert!(
            (run..=2 * run).contains(&calls),
            "one read ahead and one that was asked for at most: {calls}"
        );
    }
}

#[test]
fn an_error_of_a_read_reaches_the_program_as_without_speculation() {
    let mut place = Place::start("");
    let code = "await mcp.a.read({ key: 'first' });\n\
                await mcp.a.read({ key: 'second' });\n\
                try { await mcp.a.fail({ key: 'bad' }); } catch (error) { return [error.code, error.message]; }";
    let with = place.run(code, &json!({}));
    let request = place.begin_with(code, &json!({}), json!({ "speculate": false }));
    assert_eq!(with["result"], place.gateway.outcome(request)["result"], "{with}");
    assert_eq!(with["result"][0], "TOOL_ERROR", "{with}");
}

#[test]
fn reads_that_nobody_wants_any_more_leave_nothing_behind() {
    let mut place = Place::start("");
    let code = "const one = await mcp.b.read({ key: 'one' });\n\
                if (one.writes === 0) return 'early';\n\
                return mcp.a.flaky({ key: 'never', times: 9, how: 'hang' });";
    for _ in 0..3 {
        assert_eq!(place.run(code, &json!({}))["result"], "early");
    }
    place.gateway.hang_up();
    assert_eq!(place.gateway.ends_within(crate::harness::PATIENCE), 0, "it does not wait for them");
    eventually("all is written down", || place.keys("b:read").len() == 3);
}
