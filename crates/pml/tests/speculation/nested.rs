//! Reads within capabilities that a program calls.

use serde_json::json;

use crate::place::{Place, served};

/// Two reads, one after the other.
const PAIR: &str = "const one = await mcp.a.read({ key: `one ${args.key}` });\n\
                    const two = await mcp.b.read({ key: `two ${args.key}` });\n\
                    return { keys: [one.given.key, two.given.key] };";

/// Calls [`PAIR`] for each of a list.
const EACH: &str = "const all = [];\n\
                    for (const key of args.list) { all.push((await capabilities.pair({ key })).keys); }\n\
                    return all;";

/// A read, a write, and a read of what was written.
const WRITES: &str = "const before = await mcp.a.read({ key: `before ${args.key}` });\n\
                      await mcp.a.write({ key: args.key });\n\
                      const after = await mcp.a.read({ key: `after ${args.key}` });\n\
                      return [before.writes, after.writes];";

fn place() -> Place {
    let mut place = Place::start("");
    place.learn("pair", PAIR, &json!({ "key": "learned" }));
    place.learn("each", EACH, &json!({ "list": ["p", "q"] }));
    place.learn("writes", WRITES, &json!({ "key": "learned" }));
    place
}

#[test]
fn reads_within_a_called_capability_are_made_while_the_program_waits() {
    let mut place = place();
    let code = "await mcp.b.read({ key: 'first', until: 'go' });\n\
                const pair = await capabilities.pair({ key: args.name });\n\
                return pair.keys;";
    let request = place.begin(code, &json!({ "name": "x" }));
    for key in ["one x", "two x"] {
        place.wait_for_end(key);
    }
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], json!(["one x", "two x"]), "{told}");
    assert_eq!(told["speculated"]["calls"], 2, "{told}");
    for (tool, key) in [("a:read", "one x"), ("b:read", "two x")] {
        assert_eq!(place.keys(tool).iter().filter(|read| *read == key).count(), 1, "{:?}", place.begun());
    }
}

#[test]
fn reads_are_foreseen_through_several_levels_and_loops() {
    let mut place = place();
    let code = "await mcp.b.read({ key: 'first', until: 'go' });\n\
                return await capabilities.each({ list: ['r', args.name] });";
    let request = place.begin(code, &json!({ "name": "s" }));
    for key in ["one r", "two r", "one s", "two s"] {
        place.wait_for_end(key);
    }
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], json!([["one r", "two r"], ["one s", "two s"]]), "{told}");
    assert_eq!(told["speculated"]["calls"], 4, "{told}");
}

#[test]
fn what_a_capability_returns_is_known_to_the_reads_that_follow() {
    let mut place = place();
    let code = "const pair = await capabilities.pair({ key: 'x' });\n\
                await mcp.b.read({ key: 'wait', until: 'go' });\n\
                return (await mcp.a.read({ key: `of ${pair.keys[1]}` })).given.key;";
    let request = place.begin(code, &json!({}));
    place.wait_for_end("of two x");
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], "of two x", "{told}");
    assert!(served(&place.trace(&told)).0.contains(&"of two x".to_owned()), "{told}");
}

#[test]
fn reads_before_the_write_of_a_capability_are_made_and_those_after_it_are_not() {
    let mut place = place();
    let writes = place.writes();
    let code = "await mcp.b.read({ key: 'first', until: 'go' });\n\
                const seen = await capabilities.writes({ key: 'x' });\n\
                return [seen, (await mcp.b.read({ key: 'last' })).writes];";
    let request = place.begin(code, &json!({}));
    place.wait_for_end("before x");
    std::thread::sleep(std::time::Duration::from_millis(150));
    assert!(!place.has_begun("after x") && !place.has_begun("last"), "{:?}", place.begun());
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], json!([[writes, writes + 1], writes + 1]), "{told}");
}

#[test]
fn a_network_is_not_reached_with_what_another_tool_gave_to_a_capability() {
    let mut place = Place::start("");
    let web = "return (await mcp.b.web({ key: args.query })).given.key;";
    place.learn("searches", web, &json!({ "query": "learned" }));
    let code = "const one = await mcp.a.read({ key: 'one' });\n\
                await mcp.a.read({ key: 'two', until: 'go' });\n\
                await capabilities.searches({ query: one.given.key });\n\
                return await capabilities.searches({ query: args.query });";
    let request = place.begin(code, &json!({ "query": "from the caller" }));
    place.wait_for_end("from the caller");
    assert!(!place.keys("b:web").contains(&json!("one")), "{:?}", place.begun());
    place.allow("go");
    assert_eq!(place.gateway.outcome(request)["result"], "from the caller");
}
