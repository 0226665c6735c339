//! Where the outcome of a dry run depends on made-up values because of a branch or a loop.

use serde_json::{Value, json};

use crate::place::Place;

/// The warnings of a dry run, and which effects depend on made-up values.
fn tainted(code: &str) -> (Vec<String>, Vec<(String, bool)>) {
    let report = crate::report(&mut Place::start(""), code, &json!({ "key": "k" }), &json!(true));
    told(&report)
}

fn told(report: &Value) -> (Vec<String>, Vec<(String, bool)>) {
    let list = |name: &str| report[name].as_array().unwrap().clone();
    let warnings = list("warnings").iter().map(|one| one["message"].as_str().unwrap().to_owned()).collect();
    let effects = list("effects")
        .iter()
        .map(|one| (one["tool"].as_str().unwrap().to_owned(), one["tainted"] == true))
        .collect();
    (warnings, effects)
}

#[track_caller]
fn check(code: &str, warnings: &[&str], effects: &[(&str, bool)]) {
    let (found, changed) = tainted(code);
    assert_eq!(found, warnings, "{code}");
    let changed: Vec<(&str, bool)> =
        changed.iter().map(|(tool, tainted)| (tool.as_str(), *tainted)).collect();
    assert_eq!(changed, effects, "{code}");
}

#[test]
fn what_happens_in_a_branch_depends_on_what_decided_it() {
    check(
        "const made = await mcp.a.write({ key: 'x' });\n\
         if (made._mocked) {\nawait mcp.b.write({ key: 'constant' });\n}\n\
         await mcp.b.delete_file({ key: 'always' });",
        &[
            "line 3: `b:write` is called because of the made-up result of `a:write`",
            "line 2: `made._mocked` is decided by the made-up result of `a:write`",
        ],
        &[("a:write", false), ("b:write", true), ("b:delete_file", false)],
    );
}

#[test]
fn what_happens_after_an_early_end_depends_on_it_too() {
    check(
        "const made = await mcp.a.write({ key: 'x' });\n\
         if (!made._mocked) return 'nothing';\n\
         await mcp.b.write({ key: 'constant' });\nreturn 'done';",
        &[
            "line 3: `b:write` is called because of the made-up result of `a:write`",
            "line 2: `!made._mocked` is decided by the made-up result of `a:write`",
            "the result depends on the made-up result of `a:write`",
        ],
        &[("a:write", false), ("b:write", true)],
    );
}

#[test]
fn how_often_a_loop_turns_depends_on_what_it_goes_through() {
    check(
        "const made = await mcp.a.write({ key: 'x' });\n\
         for (const one of Object.keys(made)) {\nawait mcp.b.write({ key: 'constant' });\n}",
        &[
            "line 3: `b:write` is called because of the made-up result of `a:write`",
            "line 2: how often the loop over `Object.keys(made)` turns is decided by the made-up result of `a:write`",
        ],
        &[("a:write", false), ("b:write", true)],
    );
    check(
        "const seen = await mcp.a.read({ items: ['a', 'b'] });\n\
         for (const one of seen.given.items) {\nawait mcp.b.write({ key: one });\n}",
        &[],
        &[("b:write", false)],
    );
}

#[test]
fn a_value_that_is_read_because_of_a_made_up_one_depends_on_it() {
    check(
        "const made = await mcp.a.write({ key: 'x' });\n\
         let seen = null;\n\
         if (made._mocked) seen = await mcp.b.read({ key: 'constant' });\n\
         return seen;",
        &[
            "line 3: `b:read` is called because of the made-up result of `a:write`",
            "line 3: `made._mocked` is decided by the made-up result of `a:write`",
            "the result depends on the made-up result of `a:write`",
        ],
        &[("a:write", false)],
    );
}

#[test]
fn the_calls_of_a_capability_are_followed_within_it() {
    let mut place = Place::start("");
    let code = "const made = await mcp.a.write({ key: args.key });\n\
        if (made.ok !== 'no') await mcp.b.write({ key: 'constant' });\n\
        return 1;";
    place.learn("decidesItself", code, &json!({ "key": "k" }));
    let program = "return await capabilities.decidesItself({ key: 'inner' });";
    let report = crate::report(&mut place, program, &json!({}), &json!(true));
    let (warnings, effects) = told(&report);
    assert!(
        warnings
            .iter()
            .any(|text| text.starts_with("`decidesItself`, line 2: `b:write` is called because of")),
        "{report:#}"
    );
    assert_eq!(effects, [("a:write".to_owned(), false), ("b:write".to_owned(), true)], "{report:#}");
}

#[test]
fn a_file_that_is_written_because_of_a_made_up_value_carries_it() {
    check(
        "const made = await mcp.a.write({ key: 'x' });\n\
         if (made._mocked) {\nawait mcp.fs.write({ path: 'flag', content: 'set' });\n}\n\
         const flag = await mcp.fs.stat({ path: 'flag' });\n\
         if (flag.exists) {\nawait mcp.b.write({ key: 'constant' });\n}",
        &[
            "line 3: `fs:write` is called because of the made-up result of `a:write`",
            "line 7: `b:write` is called because of the made-up result of `fs:stat`",
            "line 2: `made._mocked` is decided by the made-up result of `a:write`",
            "line 6: `flag.exists` is decided by the made-up result of `fs:stat`",
        ],
        &[("a:write", false), ("fs:write", true), ("b:write", true)],
    );
}

#[test]
fn a_file_that_is_not_written_because_of_a_made_up_value_carries_it() {
    check(
        "const made = await mcp.a.write({ key: 'x' });\n\
         if (!made._mocked) {\nawait mcp.fs.write({ path: 'flag', content: 'set' });\n}\n\
         const other = await mcp.fs.stat({ path: 'other' });\n\
         if (!other.exists) {\nawait mcp.b.delete_file({ key: 'constant' });\n}\n\
         const flag = await mcp.fs.stat({ path: './flag' });\n\
         if (!flag.exists) {\nawait mcp.b.write({ key: 'constant' });\n}",
        &[
            "line 11: `b:write` is called because of the made-up result of `fs:stat`",
            "line 2: `!made._mocked` is decided by the made-up result of `a:write`",
            "line 10: `!flag.exists` is decided by the made-up result of `fs:stat`",
        ],
        &[("a:write", false), ("b:delete_file", false), ("b:write", true)],
    );
}
