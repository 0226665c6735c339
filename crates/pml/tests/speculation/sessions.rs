//! Sessions: what tells the conversations of a client apart, and what they remember for each other.

use serde_json::{Value, json};

use crate::place::Place;

/// Runs a program in the session that the context names.
#[track_caller]
fn run_in(place: &mut Place, session: &Value, intent: &str, code: &str, context: &Value) -> Value {
    let mut context = context.clone();
    if !session.is_null() {
        context["sessionId"] = session.clone();
    }
    let asked = json!({
        "intent": intent, "implementation": { "type": "code", "code": code }, "context": context,
        "options": { "cache": false },
    });
    let told = place.gateway.call("pml_execute", &asked);
    assert_eq!(told["status"], "success", "{told}");
    told
}

#[test]
fn the_context_of_a_request_names_its_session() {
    let mut place = Place::start("");
    let mut session = |id: &Value| {
        let told = run_in(&mut place, id, "a test", "return 1;", &json!({}));
        place.trace(&told).session
    };
    let (one, two, none) = (session(&json!("one")), session(&json!("two")), session(&Value::Null));
    assert_eq!(session(&json!("one")), one);
    assert!(one != two && one != none && two != none, "{one} {two} {none}");
    let long = session(&json!("x".repeat(100_000)));
    assert!(long.len() < 100, "{long}");
    assert_eq!(session(&json!({ "no": "id" })), none, "only texts and numbers are ids");
    // Another connection of the same client, in the same session.
    place.restart();
    let told = run_in(&mut place, &json!("one"), "a test", "return 1;", &json!({}));
    assert_eq!(place.trace(&told).session, one);
}

#[test]
fn a_trace_names_the_session_of_a_request_without_an_id() {
    let mut place = Place::start("");
    let mut session = |trace: &str| {
        let mut params =
            crate::gateway::execution("a test", "return 1;", &json!({}), &json!({ "cache": false }));
        params["_meta"] = json!({ "traceparent": trace });
        let request = place.gateway.begin("tools/call", &params);
        let told = place.gateway.outcome(request);
        place.trace(&told).session
    };
    let one = session("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    assert_eq!(session("00-4bf92f3577b34da6a3ce929d0e0e4736-1111111111111111-01"), one);
    assert_ne!(session("00-aaf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), one);
    let connection = session("nonsense");
    assert_eq!(session("00-00000000000000000000000000000000-00f067aa0ba902b7-01"), connection);
    assert_ne!(connection, one);
}

#[test]
fn the_id_of_a_session_is_an_argument_only_where_the_program_asks_for_it() {
    let mut place = Place::start("");
    let id = json!("one");
    let told = run_in(&mut place, &id, "all of it", "return Object.keys(args);", &json!({ "x": 1 }));
    assert_eq!(told["result"], json!(["x"]), "{told}");
    let told = run_in(&mut place, &id, "by name", "return [args.sessionId, args.x];", &json!({ "x": 1 }));
    assert_eq!(told["result"], json!(["one", 1]), "{told}");
    // The same program without the id is the same capability, and the intent alone finds it in any session.
    let code = "return (await mcp.a.read({ key: args.key })).given.key;";
    let first = run_in(&mut place, &id, "read the key", code, &json!({ "key": "k" }));
    let again = json!({
        "intent": "read the key", "context": { "sessionId": "two", "key": "other" }, "options": { "cache": false },
    });
    let told = place.gateway.call("pml_execute", &again);
    assert_eq!((&told["result"], &told["capabilityId"]), (&json!("other"), &first["capabilityId"]), "{told}");
    let tool = json!({
        "intent": "one call", "implementation": { "type": "tool", "toolId": "a:read" },
        "context": { "sessionId": "two", "key": "direct" }, "options": { "cache": false },
    });
    let told = place.gateway.call("pml_execute", &tool);
    assert_eq!(told["result"]["given"], json!({ "key": "direct" }), "{told}");
}

/// What is asked first, and what usually follows it.
const FIRST: &str = "return (await mcp.b.read({ key: `first ${args.name}` })).given.key;";
const ORDERS: &str = "return (await mcp.a.orders({ user_id: args.user_id })).count;";
const USER: &str = "return (await mcp.b.find_user({ key: args.name })).user.id;";

#[test]
fn an_argument_of_what_follows_is_found_under_another_name_in_a_result_of_the_same_session() {
    let rules = "[permissions]\n\"*\" = { approval_mode = \"auto\", cache_ttl = \"1h\" }\n";
    let mut place = Place::with_rules("[speculation]\npreset = \"eager\"\n", rules);
    let learned = json!("where it was learned");
    for turn in 0..12 {
        run_in(&mut place, &learned, "first of all", FIRST, &json!({ "name": format!("n{turn}") }));
        run_in(&mut place, &learned, "count orders", ORDERS, &json!({ "user_id": format!("taught {turn}") }));
    }
    let orders = |place: &Place| {
        let calls = place.begun().into_iter().filter(|call| call.tool == "a:orders");
        calls.map(|call| call.given["user_id"].clone()).collect::<Vec<_>>()
    };
    let taught = orders(&place).len();
    let (mine, other) = (json!("mine"), json!("another"));
    run_in(&mut place, &mine, "who is it", USER, &json!({ "name": "ann" }));
    let told = run_in(&mut place, &other, "first of all", FIRST, &json!({ "name": "there" }));
    assert!(told["next"].to_string().contains("cap_"), "{told}");
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(orders(&place).len(), taught, "another session knows no user: {:?}", orders(&place));
    run_in(&mut place, &mine, "first of all", FIRST, &json!({ "name": "here" }));
    crate::harness::eventually("the orders of the user are counted", || {
        orders(&place).last() == Some(&json!("u-ann"))
    });
}

#[test]
fn a_call_by_name_fills_in_arguments_of_what_follows() {
    let rules = "[permissions]\n\"*\" = { approval_mode = \"auto\", cache_ttl = \"1h\" }\n";
    let mut place = Place::with_rules("[speculation]\npreset = \"eager\"\n", rules);
    for turn in 0..12 {
        run_in(&mut place, &Value::Null, "first of all", FIRST, &json!({ "name": format!("n{turn}") }));
        run_in(
            &mut place,
            &Value::Null,
            "count orders",
            ORDERS,
            &json!({ "user_id": format!("taught {turn}") }),
        );
    }
    let orders = |place: &Place| {
        let calls = place.begun().into_iter().filter(|call| call.tool == "a:orders");
        calls.map(|call| call.given["user_id"].clone()).collect::<Vec<_>>()
    };
    place.gateway.call("b__find_user", &json!({ "key": "ann" }));
    run_in(&mut place, &Value::Null, "first of all", FIRST, &json!({ "name": "here" }));
    crate::harness::eventually("the orders of the user are counted", || {
        orders(&place).last() == Some(&json!("u-ann"))
    });
}
