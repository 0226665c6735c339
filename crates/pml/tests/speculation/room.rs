//! Room for reads ahead: what is for nothing gives its own back, and what found none is made later.

use serde_json::{Value, json};

use crate::place::{Place, served};

fn keys(letter: &str) -> Vec<String> {
    (0..20).map(|number| format!("{letter}{number}")).collect()
}

#[test]
fn what_a_loop_left_early_leaves_its_room_to_what_follows() {
    let mut place = Place::start("");
    let code = "for (const key of args.first) { await mcp.a.read({ key, until: 'go' }); if (key === 'a1') break; }\n\
                await mcp.a.read({ key: 'between', until: 'later' });\n\
                for (const key of args.second) { await mcp.b.read({ key }); }\n\
                return 'done';";
    let request = place.begin(code, &json!({ "first": keys("a"), "second": keys("b") }));
    // As many as may wait for a run, and the call itself.
    place.wait_for_key("a16");
    place.allow("go");
    place.wait_for_end("b10");
    assert!(!place.has_ended("between"), "the program still waits for it");
    place.allow("later");
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], "done", "{told}");
    let ahead = served(&place.trace(&told)).0;
    assert!(ahead.contains(&"b0".to_owned()) && ahead.contains(&"b10".to_owned()), "{ahead:?}");
}

#[test]
fn a_branch_that_is_not_taken_cancels_its_reads() {
    let mut place = Place::start("[speculation]\npreset = \"eager\"\n");
    let code = "const one = await mcp.b.read({ key: 'decides', until: 'go' });\n\
                if (one.writes > 0) { await mcp.b.read({ key: 'branch', until: 'never' }); }\n\
                await mcp.b.look({ key: 'last', until: 'later' });\n\
                return 'done';";
    // The tool earns that reads of branches with even odds are made.
    let earn = "for (const key of args.keys) { await mcp.b.read({ key }); } return 1;";
    let keys: Vec<String> = (0..60).map(|number| format!("earn {number}")).collect();
    place.run(earn, &json!({ "keys": keys }));
    let request = place.begin(code, &json!({}));
    place.wait_for_key("branch");
    place.allow("go");
    // The program has passed the branch and not ended.
    crate::harness::eventually("the read of the branch is cancelled", || {
        place.calls("cancelled").iter().any(|call| call.given["key"] == "branch")
    });
    assert!(!place.has_ended("last"));
    place.allow("later");
    assert_eq!(place.gateway.outcome(request)["result"], "done");
}

#[test]
fn a_read_for_which_a_server_has_no_room_is_made_when_another_has_ended() {
    let mut place = Place::start("[speculation]\nper_server = 2\n");
    let code = "await mcp.b.read({ key: 'first', until: 'go' });\n\
                for (const key of args.keys) { await mcp.a.read({ key }); }\n\
                return 'done';";
    let keys = ["k1", "k2", "k3", "k4", "k5", "k6"];
    let request = place.begin(code, &json!({ "keys": keys }));
    for key in keys {
        place.wait_for_end(key);
    }
    assert!(!place.has_ended("first"), "the program still waits for it");
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], "done", "{told}");
    place.assert_served(&told, &keys, &["first"]);
}

#[test]
fn a_sleep_drops_reads_that_are_made_again_and_says_nothing_against_their_tool() {
    let mut place = Place::start("");
    let code = "await mcp.b.read({ key: 'one', until: 'go' });\n\
                await new Promise((wake) => setTimeout(wake, 30));\n\
                await mcp.b.read({ key: 'two', until: 'later' });\n\
                await mcp.a.read({ key: 'three' });\n\
                return (await mcp.a.read({ key: 'four' })).given.key;";
    let request = place.begin(code, &json!({}));
    place.wait_for_end("four");
    place.allow("go");
    for key in ["three", "four"] {
        place.wait_for(key, 2);
    }
    assert!(!place.has_ended("two"), "the program still waits for it");
    place.allow("later");
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], "four", "{told}");
    place.assert_served(&told, &["three", "four"], &["one", "two"]);
    let stats = place.stats("a:read", 2);
    assert_eq!([&stats["hits"], &stats["wasted"]], [&json!(2), &json!(0)], "{stats}");
}

#[test]
fn a_loop_that_sleeps_is_read_ahead_once_at_most() {
    let mut place = Place::start("");
    let code = "for (const key of args.keys) {\n\
                  await mcp.b.read({ key });\n\
                  await new Promise((wake) => setTimeout(wake, 5));\n\
                }\n\
                return 'done';";
    let told = place.run(code, &json!({ "keys": keys("k") }));
    assert_eq!(told["result"], "done", "{told}");
    let calls: Vec<Value> = place.keys("b:read");
    assert!(calls.len() <= 20 + 16, "{} calls for 20: {calls:?}", calls.len());
}

#[test]
fn a_read_that_is_never_answered_takes_nothing_from_the_time_of_a_task() {
    let mut place = Place::start("");
    // The calls of the tool are known to take two seconds, so a read of it is awaited for long.
    let usual = "await mcp.b.read({ key: 'first', until: 'go' });\n\
                 return (await mcp.a.flaky({ key: 'usual', times: 0, how: 'hang', wait: 2000 })).given.key;";
    let request = place.begin(usual, &json!({}));
    place.wait_for_end("usual");
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(told["speculated"]["calls"], 1, "{told}");
    let tasks = json!([
        { "id": "before", "tool": "b:read", "arguments": { "key": "before", "until": "on" } },
        { "id": "hangs", "tool": "a:flaky", "arguments": { "key": "hangs", "times": 1, "how": "hang" },
          "dependsOn": ["before"], "timeoutMs": 3000 },
    ]);
    let implementation = json!({ "type": "dag", "dagStructure": { "tasks": tasks } });
    let asked =
        json!({ "intent": "a test", "implementation": implementation, "options": { "cache": false } });
    let request = place.gateway.begin("tools/call", &json!({ "name": "pml_execute", "arguments": asked }));
    place.wait_for_key("hangs");
    place.allow("on");
    let told = place.gateway.outcome(request);
    assert_eq!(told["status"], "success", "{told}");
    assert_eq!(told["result"]["hangs"]["given"]["key"], "hangs", "{told}");
}
