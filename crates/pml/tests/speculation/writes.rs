//! A read after a write sees what was written, whoever wrote it.

use serde_json::json;

use crate::place::{Place, served};

#[test]
fn a_read_after_a_write_is_made_after_it() {
    for writer in ["a", "b"] {
        let mut place = Place::start("");
        let code = format!(
            "const before = await mcp.a.read({{ key: 'before' }});\n\
             await mcp.{writer}.write({{ key: 'write', wait: 20 }});\n\
             const after = await mcp.a.read({{ key: 'after' }});\n\
             const last = await mcp.a.read({{ key: 'last' }});\n\
             return [before.writes, after.writes, last.writes];"
        );
        let told = place.run(&code, &json!({}));
        assert_eq!(told["result"], json!([0, 1, 1]), "{told}");
        place.assert_served(&told, &["last"], &["before", "write", "after"]);
        assert_eq!(place.begun().len(), 4, "nothing was read in vain: {:?}", place.begun());
    }
}

#[test]
fn a_built_in_tool_reads_what_another_server_wrote() {
    let mut place = Place::start("[builtin.fs]\nroot = \".\"\n");
    let code = "await mcp.a.write({ key: 'make it' });\n\
                const before = await mcp.fs.read({ path: 'world' });\n\
                await mcp.a.write({ key: 'change it' });\n\
                const after = await mcp.fs.read({ path: 'world' });\n\
                const again = await mcp.fs.read({ path: 'world' });\n\
                return [before.content, after.content, again.content];";
    let told = place.run(code, &json!({}));
    assert_eq!(told["result"], json!([".", "..", ".."]), "{told}");
}

/// A run reads ahead at `a`, another run writes at `b`, and the first goes on: what it sees.
fn after_the_write_of_another_run(rules: &str) -> (u64, bool) {
    let mut place =
        Place::with_rules("", &format!("[permissions]\n\"*\" = {{ approval_mode = \"auto\" }}\n{rules}"));
    let code = "await mcp.a.read({ key: 'first', until: 'go' });\n\
                return (await mcp.a.read({ key: 'second' })).writes;";
    let request = place.begin(code, &json!({}));
    place.wait_for_end("second");
    assert_eq!(place.run("return (await mcp.b.write({ key: 'write' })).writes", &json!({}))["result"], 1);
    place.allow("go");
    let told = place.gateway.outcome(request);
    let seen = told["result"].as_u64().unwrap_or_else(|| panic!("{told}"));
    (seen, served(&place.trace(&told)).0.contains(&"second".to_owned()))
}

#[test]
fn what_was_read_before_a_write_of_another_run_is_not_used_after_it() {
    assert_eq!(after_the_write_of_another_run(""), (1, false));
}

#[test]
fn writes_of_an_isolated_server_leave_what_others_read() {
    assert_eq!(after_the_write_of_another_run("b = { isolated = true }\n"), (0, true));
}

#[test]
fn nothing_is_read_while_a_write_is_under_way() {
    let mut place = Place::start("");
    let code = "const write = mcp.b.write({ key: 'write', until: 'go' });\n\
                await mcp.a.read({ key: 'meanwhile' });\n\
                await write;\n\
                return (await mcp.a.read({ key: 'after' })).writes;";
    let request = place.begin(code, &json!({}));
    place.wait_for_end("meanwhile");
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], 1, "{told}");
    assert_eq!(place.keys("a:read").len(), 2, "{:?}", place.begun());
    assert!(told.get("speculated").is_none(), "{told}");
}

/// A program that reads at `a` and at `b` after a write at `b`, and whether each was read ahead while the first call
/// waits.
const WRITES_BETWEEN: &str = "await mcp.a.read({ key: 'first', until: 'go' });\n\
                              await mcp.b.write({ key: 'write', wait: 20 });\n\
                              const there = await mcp.b.read({ key: 'there' });\n\
                              const here = await mcp.a.read({ key: 'here' });\n\
                              const last = await mcp.b.read({ key: 'last' });\n\
                              return [there.writes, here.writes, last.writes];";

#[test]
fn a_write_of_an_isolated_server_stands_before_its_own_reads_alone() {
    let mut place = Place::with_isolated_servers("");
    let request = place.begin(WRITES_BETWEEN, &json!({}));
    place.wait_for_end("here");
    assert!(!place.has_begun("there") && !place.has_begun("last"), "{:?}", place.begun());
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], json!([1, 0, 1]), "{told}");
    let (ahead, others) = served(&place.trace(&told));
    assert!(ahead.contains(&"here".to_owned()), "{ahead:?}");
    assert!(others.contains(&"there".to_owned()), "{others:?}");
    assert_eq!(place.begun().len(), 5, "nothing was read in vain: {:?}", place.begun());
}

#[test]
fn a_write_of_another_server_stands_before_all_reads() {
    let mut place = Place::start("");
    let request = place.begin(WRITES_BETWEEN, &json!({}));
    place.wait_for_key("first");
    std::thread::sleep(std::time::Duration::from_millis(150));
    assert_eq!(place.begun().len(), 1, "{:?}", place.begun());
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], json!([1, 1, 1]), "{told}");
}

#[test]
fn an_isolated_write_under_way_holds_up_its_own_reads_alone() {
    let mut place = Place::with_isolated_servers("");
    let code = "const write = mcp.b.write({ key: 'write', until: 'go' });\n\
                await mcp.a.read({ key: 'meanwhile', wait: 30 });\n\
                const here = await mcp.a.read({ key: 'here' });\n\
                await write;\n\
                return [here.writes, (await mcp.b.read({ key: 'there' })).writes];";
    let request = place.begin(code, &json!({}));
    place.wait_for_end("here");
    assert!(!place.has_begun("there"), "{:?}", place.begun());
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], json!([0, 1]), "{told}");
    assert!(served(&place.trace(&told)).0.contains(&"here".to_owned()), "{told}");
}
