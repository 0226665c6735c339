//! What may be called before a program asks for it: what needs no approval and only reads, by the word of the operator.

use serde_json::{Value, json};

use crate::place::{Place, served, server};

/// A place with a server `c` that is not believed.
fn place(rules: &str) -> Place {
    let settings = |home: &crate::harness::Home| server(home, "c", "");
    Place::with_servers(&settings, &format!("[permissions]\n{rules}\n"))
}

/// Whether `tool` of a place with these rules is called ahead.
#[track_caller]
fn is_called_ahead(rules: &str, tool: &str) -> bool {
    let mut place = place(rules);
    let (server, name) = tool.split_once(':').unwrap();
    let code = format!(
        "await mcp.a.read({{ key: 'first' }}); await mcp.a.read({{ key: 'second' }});\n\
         return (await mcp.{server}.{name}({{ key: 'guarded' }})).given.key;"
    );
    let mut told = place.run(&code, &json!({}));
    if told["status"] == "approval_required" {
        assert!(!place.has_begun("guarded"), "nobody has allowed it: {:?}", place.begun());
        told = place.go_on(&told);
    }
    assert_eq!(told["result"], "guarded", "{told}");
    let calls = place.begun().into_iter().filter(|call| call.given["key"] == "guarded").count();
    assert_eq!(calls, 1, "{:?}", place.begun());
    let (ahead, others) = served(&place.trace(&told));
    assert!(ahead.contains(&"second".to_owned()), "{ahead:?} {others:?}");
    let explained = place.home.run(&["policy", "explain", tool]);
    let line = explained.stdout.lines().find(|line| line.starts_with("speculate")).unwrap_or_default();
    let is_ahead = ahead.contains(&"guarded".to_owned());
    assert!(line.contains(if is_ahead { " yes " } else { " no " }), "{explained:?}");
    is_ahead
}

const AUTO: &str = "\"*\" = { approval_mode = \"auto\" }";

#[test]
fn tools_that_only_read_by_the_operators_word_are_called_ahead() {
    assert!(is_called_ahead(AUTO, "a:read"), "its server is believed");
    let by_rule = |rule: &str| format!("{AUTO}\n\"c:look\" = {{ {rule} }}");
    assert!(is_called_ahead(&by_rule("read_only = true, open_world = false"), "c:look"));
    assert!(is_called_ahead(&by_rule("scope = \"minimal\""), "c:look"));
    assert!(is_called_ahead(&by_rule("scope = \"readonly\""), "c:look"));
}

#[test]
fn tools_that_a_person_is_asked_about_are_not_called_ahead() {
    assert!(!is_called_ahead("\"c:look\" = { approval_mode = \"hil\", read_only = true }", "c:look"));
    assert!(!is_called_ahead("", "c:look"), "nothing is known of it");
    assert!(!is_called_ahead("", "c:read"), "its server says that it reads, and is not believed");
}

#[test]
fn tools_that_may_change_something_are_not_called_ahead() {
    for tool in ["a:write", "a:look", "c:read", "c:read_file", "c:delete_file"] {
        assert!(!is_called_ahead(AUTO, tool), "{tool}: a name says nothing");
    }
    let scoped = format!("{AUTO}\n\"a:write\" = {{ scope = \"readonly\" }}");
    assert!(!is_called_ahead(&scoped, "a:write"), "its own annotations contradict the scope");
}

#[test]
fn tools_that_a_rule_keeps_from_it_are_not_called_ahead() {
    assert!(!is_called_ahead(
        &format!(
            "{AUTO}\n\"a:read\" = {{ speculate = true }}\nc = {{ read_only = true, speculate = false }}"
        ),
        "c:look"
    ));
    let server_only = format!("{AUTO}\nb = {{ speculate = false }}");
    assert!(!is_called_ahead(&server_only, "b:read"), "a switch for a server");
}

/// A place with two capabilities: one only reads, one also writes.
fn with_capabilities() -> Place {
    let mut place = Place::start("");
    for (name, code) in [
        ("onlyReads", "return (await mcp.a.read({ key: `in ${args.key}` })).given.key;"),
        (
            "alsoWrites",
            "const r = await mcp.a.read({ key: `in ${args.key}` }); await mcp.a.write({ key: args.key }); return r.given.key;",
        ),
    ] {
        place.learn(name, code, &json!({ "key": name }));
    }
    place
}

/// The reads ahead while a program waits that calls a capability next.
#[track_caller]
fn reads_past(place: &mut Place, capability: &str) -> (Value, Vec<String>) {
    let code = format!(
        "await mcp.b.read({{ key: 'first', until: 'go' }});\n\
         const key = await capabilities.{capability}({{ key: 'called' }});\n\
         return [key, (await mcp.b.read({{ key: 'after' }})).writes];"
    );
    let request = place.begin(&code, &json!({}));
    place.wait_for_key("first");
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(told["status"], "success", "{told}");
    (told["result"].clone(), served(&place.trace(&told)).0)
}

#[test]
fn reads_are_made_past_a_capability_whose_tools_all_may_be() {
    let mut place = with_capabilities();
    let (result, ahead) = reads_past(&mut place, "onlyReads");
    assert_eq!(result, json!(["in called", 1]));
    assert!(ahead.contains(&"after".to_owned()), "{ahead:?}");
}

#[test]
fn reads_are_not_made_past_a_capability_with_a_tool_that_may_change_something() {
    let mut place = with_capabilities();
    let (result, ahead) = reads_past(&mut place, "alsoWrites");
    assert_eq!(result, json!(["in called", 2]), "it reads what the capability wrote");
    assert!(!ahead.contains(&"after".to_owned()), "{ahead:?}");
    let reads = place.keys("b:read").into_iter().filter(|key| key == "after").count();
    assert_eq!(reads, 1, "nothing is read in vain while it is under way");
    assert_eq!(place.writes(), 2, "one when it was made, one when it was called");
}

#[test]
fn the_clock_is_read_when_the_program_asks() {
    let mut place = Place::start("");
    let code = "await mcp.a.read({ key: 'first', until: 'go' });\n\
                const far = await mcp.time.diff({ from: '2026-01-01', to: '2026-01-02' });\n\
                return (await mcp.time.now({})).unixMs;";
    let request = place.begin(code, &json!({}));
    place.wait_for_key("first");
    // Long enough for whatever is read ahead.
    std::thread::sleep(std::time::Duration::from_millis(100));
    let before = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis();
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert!(u128::from(told["result"].as_u64().unwrap()) >= before, "{told}");
    let trace = place.trace(&told);
    let ahead = |tool: &str| trace.body.task_results.iter().any(|call| call.tool == tool && call.speculated);
    assert!(ahead("time:diff") && !ahead("time:now"), "{told}");
}
