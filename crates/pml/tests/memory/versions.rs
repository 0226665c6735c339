//! Versions of capabilities, on the terminal and over HTTP.

use serde_json::{Value, json};

use crate::harness::Home;
use crate::place::{Place, api};

const CONFIG: &str = "[permissions]\n\"*\" = { approval_mode = \"auto\" }\n\"fs:write\" = { approval_mode = \"hil\" }\n\
    [builtin.fs]\nroot = \".\"\n";
const FIRST: &str =
    "const file = await mcp.fs.read({ path: args.path });\nreturn file.content.split(' ').length;";
const SECOND: &str = "const file = await mcp.fs.read({ path: args.path });\n\
    const count = file.content.split(/\\s+/).filter(Boolean).length;\n\
    await mcp.fs.write({ path: args.into, content: `${count}` });\nreturn count;";

/// A home with two versions of `words`, of which the second writes.
fn home() -> Home {
    let home = Home::new(CONFIG);
    std::fs::write(home.path("a.txt"), "one  two").unwrap();
    for (code, more) in [(FIRST, None), (SECOND, Some("--new-version"))] {
        std::fs::write(home.path("code.ts"), code).unwrap();
        let args = ["capabilities", "create", "count the words", "--name", "words", "--code", "code.ts"];
        let told = home.run(&[&args[..], more.as_slice()].concat());
        assert_eq!(told.code, 0, "{}", told.stderr);
    }
    home
}

#[track_caller]
fn said(home: &Home, args: &[&str]) -> Value {
    let told = home.run(&[args, &["--json"]].concat());
    assert_eq!(told.code, 0, "{told:?}");
    serde_json::from_str(&told.stdout).unwrap()
}

#[track_caller]
fn refused(home: &Home, args: &[&str], why: &str) {
    let told = home.run(args);
    assert_ne!(told.code, 0, "{told:?}");
    assert!(told.stderr.contains(why), "{}", told.stderr);
}

fn result(home: &Home, name: &str) -> String {
    home.run(&["execute", "--capability", name, "--args", r#"{"path":"a.txt"}"#]).stdout.trim().to_owned()
}

#[test]
fn new_code_under_a_name_is_a_version_that_can_be_compared_and_taken_back() {
    let home = home();
    let all = said(&home, &["capabilities", "versions", "words"]);
    let one = |at: usize| (all["versions"][at]["name"].clone(), all["versions"][at]["current"].clone());
    assert_eq!((one(0), one(1)), ((json!("words"), json!(true)), (json!("words@1"), json!(false))), "{all}");

    let diff = said(&home, &["capabilities", "diff", "words"]);
    assert_eq!(
        (&diff["from"], &diff["to"], &diff["parameters"]["added"]),
        (&json!(1), &json!(2), &json!(["into"]))
    );
    let writes = json!([{ "tool": "fs:write", "added": true, "effect": "writes", "approval": "hil" }]);
    assert_eq!(diff["effects"], writes, "{diff}");
    let told = home.run(&["capabilities", "diff", "words"]);
    assert!(told.stdout.contains("effect + fs:write writes, needs approval"), "{}", told.stdout);
    assert!(told.stdout.contains("- return file.content.split(' ').length;"), "{}", told.stdout);

    assert_eq!(result(&home, "words@1"), "3", "an earlier version runs by its own name");
    assert!(result(&home, "words").contains("needed: `into`"), "the one in force takes more");
    let told = home.run(&["capabilities", "rollback", "words"]);
    assert_eq!((told.code, told.stdout.trim()), (0, "version 1 of words is in force"), "{told:?}");
    assert_eq!((result(&home, "words"), result(&home, "words@1")), ("3".into(), "3".into()));
    let qualified =
        said(&home, &["capabilities", "show", "words"])["qualifiedName"].as_str().unwrap().to_owned();
    assert!(qualified.starts_with("local.default.fs.words."), "{qualified}");
    assert_eq!(result(&home, &qualified), "3");
    assert_eq!(said(&home, &["capabilities", "rollback", &qualified, "2"])["version"], 2);
    let record = said(&home, &["capabilities", "show", "words"]);
    assert_eq!((&record["version"], &record["visibility"]), (&json!(2), &json!("private")), "{record}");
}

#[test]
fn what_has_no_other_version_cannot_be_rolled_back() {
    let home = home();
    refused(&home, &["capabilities", "rollback", "words", "7"], "`words` has no version 7");
    refused(&home, &["capabilities", "diff", "words", "1", "3"], "`words` has no version 3");
    for command in ["versions", "diff", "rollback"] {
        refused(&home, &["capabilities", command, "nothing"], "there is no capability `nothing`");
    }
    let told = home.run(&["capabilities", "rename", "words@1", "alone"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    refused(&home, &["capabilities", "rollback", "alone"], "`alone` has no other version to go back to");
    refused(&home, &["capabilities", "diff", "alone"], "`alone` has no other version");
    refused(&home, &["capabilities", "rename", "alone", "words"], "--new-version");
    let told = home.run(&["capabilities", "rename", "alone", "words", "--new-version"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    let all = said(&home, &["capabilities", "versions", "words"]);
    let numbers: Vec<&Value> =
        all["versions"].as_array().unwrap().iter().map(|version| &version["version"]).collect();
    assert_eq!(numbers, [3, 2], "{all}");
}

#[test]
fn a_version_that_is_not_in_force_serves_no_intent() {
    let mut place = Place::start(CONFIG);
    std::fs::write(place.home.path("a.txt"), "one  two").unwrap();
    let intent = "count the words in a.txt";
    let first = FIRST.replace("args.path", "'a.txt'");
    let told = place.run(intent, &first, &json!({}));
    let id = told["capabilityId"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
    assert_eq!(place.home.run(&["capabilities", "rename", &id, "words"]).code, 0);
    let better = "const file = await mcp.fs.read({ path: 'a.txt' });\n\
        return file.content.split(/\\s+/).filter(Boolean).length;";
    let told = place.run("words in the file a.txt", better, &json!({}));
    let id = told["capabilityId"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
    assert_eq!(place.home.run(&["capabilities", "rename", &id, "words", "--new-version"]).code, 0);
    assert_eq!(place.wish(intent)["result"], 2, "the new version serves what the old one did");
    let told =
        place.run("both", "return [await capabilities.words(), await capabilities['words@1']()]", &json!({}));
    assert_eq!(told["result"], json!([2, 3]), "a program follows the versions or stays with one: {told}");
    assert_eq!(place.home.run(&["capabilities", "rollback", "words"]).code, 0);
    assert_eq!(place.wish(intent)["result"], 3);
}

#[test]
fn versions_are_served_over_http() {
    let home = home();
    let served = home.serve(&[]);
    let ask = |method: &str, path: &str, body: Option<Value>| api(&served, method, path, body);
    let (status, all) = ask("GET", "/api/capabilities/words/versions", None);
    assert_eq!((status, all["versions"].as_array().map(Vec::len)), (200, Some(2)), "{all}");
    let (status, diff) = ask("GET", "/api/capabilities/words/diff?from=1&to=2", None);
    assert_eq!((status, &diff["diff"]["effects"][0]["tool"]), (200, &json!("fs:write")), "{diff}");
    let (status, back) = ask("POST", "/api/capabilities/words/rollback", Some(json!({})));
    assert_eq!((status, &back["version"]), (200, &json!(1)), "{back}");
    let (status, told) = ask("POST", "/api/capabilities/words/rollback", Some(json!({ "version": 9 })));
    assert_eq!(status, 404, "{told}");
}
