//! Capabilities that `expose` names are tools of their own.

use serde_json::{Value, json};

use crate::harness::{Client, Home, eventually, text};

const WORDS: &str = "const file = await mcp.fs.read({ path: \"a.txt\" });\n\
    return file.content.split(/\\s+/).filter(Boolean).length;";
const WRITE: &str = "await mcp.fs.write({ path: \"out.txt\", content: args.text });\nreturn { wrote: true };";

/// A home in which `wordCount` is exposed, and reading needs no approval.
fn home(more: &str) -> Home {
    let home = Home::new(&format!(
        "expose = [\"wordCount\", \"noted\"]\n{more}[permissions]\n\"*\" = {{ approval_mode = \"auto\" }}\n\
         \"fs:write\" = {{ approval_mode = \"hil\" }}\n[builtin.fs]\nroot = \".\"\n"
    ));
    std::fs::write(home.path("a.txt"), "one two three").unwrap();
    std::fs::write(home.path("b.txt"), "four five").unwrap();
    std::fs::write(home.path("words.ts"), WORDS).unwrap();
    std::fs::write(home.path("write.ts"), WRITE).unwrap();
    home
}

/// Learns a program under a name, in another process.
fn learn(home: &Home, intent: &str, run: &[&str], name: &str) {
    let told = home.run(&[&["execute", intent], run].concat());
    assert_eq!(told.code, 0, "{}", told.stderr);
    let all = home.run(&["capabilities", "list", "--recent", "--json"]);
    let all: Value = serde_json::from_str(&all.stdout).unwrap();
    let told = home.run(&["capabilities", "rename", all[0]["name"].as_str().unwrap(), name]);
    assert_eq!(told.code, 0, "{}", told.stderr);
}

fn listed(client: &mut Client, name: &str) -> Option<Value> {
    let told = client.request("tools/list", &json!({}));
    let tools = told["tools"].as_array().unwrap_or_else(|| panic!("{told}")).clone();
    tools.into_iter().find(|tool| tool["name"] == name)
}

#[test]
fn a_capability_is_listed_called_and_announced_as_a_tool() {
    let home = home("");
    let mut client = home.stdio(&[]);
    assert!(listed(&mut client, "wordCount").is_none());
    learn(&home, "count the words in a.txt", &["--code", "words.ts"], "wordCount");
    client.announced("notifications/tools/list_changed");
    let tool = listed(&mut client, "wordCount").expect("it is listed");
    assert_eq!(tool["description"], "count the words in {path}");
    assert_eq!(tool["inputSchema"]["properties"]["path"]["type"], "string");
    let hints = &tool["annotations"];
    assert_eq!((&hints["readOnlyHint"], &hints["openWorldHint"]), (&json!(true), &json!(false)), "{tool}");

    let told = client.call("wordCount", &json!({ "path": "b.txt" }));
    assert_eq!((text(&told), &told["structuredContent"]), ("2", &json!({ "result": 2 })), "{told}");
    let told = client.call("wordCount", &json!({ "path": 7 }));
    assert_eq!(told["isError"], true, "{told}");
    let told = client.call("wordCount", &json!({ "path": "missing.txt" }));
    assert_eq!(told["isError"], true, "{told}");
    assert!(text(&told).contains("missing.txt"), "{told}");

    assert_eq!(home.run(&["capabilities", "delete", "wordCount"]).code, 0);
    client.announced("notifications/tools/list_changed");
    assert!(listed(&mut client, "wordCount").is_none());
    assert_eq!(client.call("wordCount", &json!({}))["isError"], true);
}

#[test]
fn what_needs_approval_needs_it_as_a_tool_too() {
    let home = home("");
    learn(&home, "note it", &["--code", "write.ts", "--args", r#"{"text":"a"}"#, "--yes"], "noted");
    std::fs::remove_file(home.path("out.txt")).unwrap();
    let mut client = home.stdio(&[]);
    let tool = listed(&mut client, "noted").expect("it is listed");
    assert_eq!(tool["annotations"]["readOnlyHint"], false, "{tool}");
    let told = client.call("noted", &json!({ "text": "b" }));
    assert_eq!(told["_meta"]["pml/status"], "approval_required", "{told}");
    assert!(!home.path("out.txt").exists());
}

#[test]
fn what_is_not_exposed_is_no_tool() {
    let home = home("");
    learn(&home, "count the words in a.txt", &["--code", "words.ts"], "otherName");
    let mut client = home.stdio(&[]);
    assert!(listed(&mut client, "otherName").is_none());
    assert_eq!(client.call("otherName", &json!({ "path": "b.txt" }))["isError"], true);
    let mut every = home.stdio(&["--expose", "capabilities:*"]);
    assert!(listed(&mut every, "otherName").is_some());
    assert_eq!(text(&every.call("otherName", &json!({ "path": "b.txt" }))), "2");
}

#[test]
fn a_list_on_the_command_line_may_name_capabilities() {
    let home = home("");
    learn(&home, "count the words in a.txt", &["--code", "words.ts"], "wordCount");
    learn(&home, "note it", &["--code", "write.ts", "--args", r#"{"text":"a"}"#, "--yes"], "noted");
    let mut client = home.stdio(&["--expose", "wordCount,math:*"]);
    assert!(listed(&mut client, "wordCount").is_some() && listed(&mut client, "noted").is_none());
    assert_eq!(text(&client.call("wordCount", &json!({ "path": "b.txt" }))), "2");
    let told = home.run(&["serve", "--listen", "127.0.0.1:0", "--expose", "word count"]);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(told.stderr.contains("`word count` is neither"), "{}", told.stderr);
}

#[test]
fn the_type_of_the_result_is_told_and_binds_nobody() {
    let home = home("");
    learn(&home, "count the words in a.txt", &["--code", "words.ts"], "wordCount");
    let mut client = home.stdio(&[]);
    let schema = |client: &mut Client| listed(client, "wordCount").unwrap()["outputSchema"].clone();
    eventually("the result is observed", || {
        schema(&mut client)["properties"]["result"]["anyOf"] == json!([{ "type": "integer" }, {}])
    });
    let schema = schema(&mut client);
    assert_eq!((&schema["type"], &schema["required"]), (&json!("object"), &json!(["result"])), "{schema}");
}

#[test]
fn clients_of_other_people_are_told_of_changes_too() {
    let home = home("");
    home.key_of("ann", pml::keys::KeyRequest::named("editor"));
    let ann: &[&str] = &["--key-file", "editor.key"];
    let mut client = home.stdio(ann);
    assert!(listed(&mut client, "wordCount").is_none());
    let mut other = home.stdio(&[ann, &["--expose", "full"]].concat());
    let told = other.call(
        "pml_execute",
        &json!({ "intent": "count the words in a.txt", "implementation": { "type": "code", "code": WORDS } }),
    );
    let id =
        told["structuredContent"]["capabilityId"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
    let store = pml_store::BlockingStore::open(&home.path("pml.db")).unwrap();
    let (ann, id) = (pml_model::Principal("ann".to_owned()), pml_model::CapabilityId::parse(&id).unwrap());
    store.rename_capability(&ann, &id, "wordCount").unwrap();
    client.announced("notifications/tools/list_changed");
    assert!(listed(&mut client, "wordCount").is_some());
}
