//! Runs that wait for a person: what may be read past the question is read meanwhile and served after the answer.

use serde_json::{Value, json};

use crate::place::Place;

/// A person is asked about `a:look`, which only reads, and about `a:write`.
const RULES: &str = "[permissions]\n\"*\" = { approval_mode = \"auto\" }\n\
                     \"a:look\" = { approval_mode = \"hil\", read_only = true }\n\
                     \"a:write\" = { approval_mode = \"hil\" }\n";

/// A place whose run waits at the call of this tool: its arguments are known only after the first read.
#[track_caller]
fn parked_at(tool: &str) -> (Place, Value) {
    let mut place = Place::with_rules("", RULES);
    let code = format!(
        "const first = await mcp.b.read({{ key: 'first' }});\n\
         await mcp.a.{tool}({{ key: `asked after ${{first.given.key}}` }});\n\
         const second = await mcp.b.read({{ key: 'second' }});\n\
         return [second.given.key, second.writes];"
    );
    let before = place.run(&code, &json!({}));
    assert_eq!(before["status"], "approval_required", "{before}");
    assert!(place.begun().is_empty(), "it asks before it begins: {:?}", place.begun());
    let waiting = place.go_on(&before);
    assert_eq!(waiting["status"], "approval_required", "{waiting}");
    assert!(!place.has_begun("asked after first"), "nobody has allowed it: {:?}", place.begun());
    (place, waiting)
}

#[test]
fn reads_behind_a_question_are_made_while_it_is_open_and_served_after_the_answer() {
    let (mut place, waiting) = parked_at("look");
    place.wait_for_end("second");
    let over = place.go_on(&waiting);
    assert_eq!(over["result"], json!(["second", 0]), "{over}");
    place.assert_served(&over, &["second"], &["first", "asked after first"]);
    assert_eq!(place.keys("b:read"), ["first", "second"], "it is read once");
}

#[test]
fn all_reads_behind_a_question_are_made_once() {
    let mut place = Place::with_rules("", RULES);
    let code = "const first = await mcp.b.read({ key: 'first' });\n\
                await mcp.a.look({ key: `asked after ${first.given.key}` });\n\
                const second = await mcp.b.read({ key: 'second' });\n\
                const third = await mcp.b.read({ key: 'third' });\n\
                return [second.given.key, third.given.key, (await mcp.b.read({ key: 'fourth' })).given.key];";
    let before = place.run(code, &json!({}));
    let waiting = place.go_on(&before);
    assert_eq!(waiting["status"], "approval_required", "{waiting}");
    place.wait_for_end("fourth");
    let over = place.go_on(&waiting);
    assert_eq!(over["result"], json!(["second", "third", "fourth"]), "{over}");
    place.assert_served(&over, &["second", "third", "fourth"], &["first", "asked after first"]);
    assert_eq!(place.keys("b:read"), ["first", "second", "third", "fourth"], "each is read once");
}

#[test]
fn a_sleep_before_the_question_does_not_cost_what_was_read_during_it() {
    let mut place = Place::with_rules("", RULES);
    let code = "await new Promise((done) => setTimeout(done, 5));\n\
                const first = await mcp.b.read({ key: 'first' });\n\
                await mcp.a.look({ key: `asked after ${first.given.key}` });\n\
                return (await mcp.b.read({ key: 'second' })).given.key;";
    let before = place.run(code, &json!({}));
    let waiting = place.go_on(&before);
    assert_eq!(waiting["status"], "approval_required", "{waiting}");
    place.wait_for_end("second");
    let over = place.go_on(&waiting);
    assert_eq!(over["result"], "second", "{over}");
    place.assert_served(&over, &["second"], &["first", "asked after first"]);
    assert_eq!(place.keys("b:read"), ["first", "second"], "it is read once");
}

#[test]
fn what_was_read_during_a_question_is_read_again_if_something_was_written_since() {
    let (mut place, waiting) = parked_at("look");
    place.wait_for_end("second");
    assert_eq!(place.run("return (await mcp.b.write({ key: 'other' })).writes", &json!({}))["result"], 1);
    let over = place.go_on(&waiting);
    assert_eq!(over["result"], json!(["second", 1]), "{over}");
}

#[test]
fn nothing_is_read_behind_a_question_about_a_write() {
    let (mut place, waiting) = parked_at("write");
    let over = place.go_on(&waiting);
    assert_eq!(over["result"], json!(["second", 1]), "{over}");
    place.assert_served(&over, &[], &["first", "asked after first", "second"]);
    assert_eq!(place.keys("b:read"), ["first", "second"], "nothing was read in vain");
}
