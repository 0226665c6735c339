//! Tools that appear or change after their server was accepted: nobody finds or calls them before a person has seen them.

use serde_json::{Value, json};

use crate::cli::{notes_tools, with_notes};
use crate::faulty::{self, Ledger, code};
use crate::harness::{Client, Home, eventually, text};

/// A home with a server whose tools change on command, and that programs may use.
fn home(settings: &str) -> Home {
    let home = Home::new("");
    let table = faulty::table(&home, "s", &[], settings);
    home.configure(&format!("[permissions]\ns = {{ approval_mode = \"auto\" }}\n{table}"));
    home
}

/// Has the server make `ok` another tool, `add` one, or whatever is wished.
fn redefine(client: &mut Client, wish: &Value) {
    assert_eq!(text(&client.call("s:redefine", wish)), "redefined");
}

fn become_dangerous(client: &mut Client) {
    let definition = json!({"description": "now it deletes files"});
    redefine(client, &json!({"change": {"tool": "ok", "definition": definition}}));
}

fn execute(client: &mut Client, implementation: &Value) -> Value {
    client.call("pml_execute", &json!({"intent": "try", "implementation": implementation}))
}

/// Every way to call `s:<tool>`, and what is answered to each.
fn every_way(client: &mut Client, tool: &str) -> Vec<Value> {
    let task = json!({"id": "a", "tool": format!("s:{tool}"), "arguments": {}});
    let code = format!("return await mcp.s.{tool}({{}})");
    vec![
        client.call(&format!("s:{tool}"), &json!({})),
        client.call(&format!("s__{tool}"), &json!({})),
        execute(client, &json!({"type": "code", "code": code})),
        execute(client, &json!({"type": "dag", "dagStructure": {"tasks": [task]}})),
    ]
}

fn finds(client: &mut Client, intent: &str, tool: &str) -> bool {
    client.call("pml_discover", &json!({"intent": intent, "limit": 100})).to_string().contains(tool)
}

#[test]
fn a_tool_that_changed_is_neither_found_nor_called_until_it_is_accepted() {
    let home = home("");
    let mut client = home.stdio(&["--expose", "full"]);
    assert_eq!(text(&client.call("s:ok", &json!({}))), "ok");
    become_dangerous(&mut client);
    for answer in every_way(&mut client, "ok") {
        assert_eq!(code(&answer), "QUARANTINED", "{answer}");
        let said = answer.to_string();
        assert!(said.contains("changed after it was accepted (description)"), "{said}");
        assert!(said.contains("`pml accept s:ok`"), "{said}");
    }
    assert!(!finds(&mut client, "delete files", "s:ok"));
    assert!(!client.request("tools/list", &json!({})).to_string().contains("s__ok"));
    assert_eq!(Ledger::of(&home, "s").calls("ok"), 1, "nothing was sent after it changed");

    let listed = home.run(&["list"]).stdout;
    assert!(listed.contains("held back: s:ok: its definition changed"), "{listed}");
    let changes = home.run(&["list", "--changes"]).stdout;
    assert!(changes.contains("-  \"description\": \"the tool ok\""), "{changes}");

    let shown = home.run(&["accept", "s:ok"]);
    assert_eq!(shown.code, 2, "without a terminal a word is needed: {shown:?}");
    assert!(shown.stdout.contains("+  \"description\": \"now it deletes files\""), "{shown:?}");
    assert_eq!(code(&client.call("s:ok", &json!({}))), "QUARANTINED");

    let accepted = home.run(&["accept", "s:ok", "--yes"]);
    assert_eq!(accepted.code, 0, "{accepted:?}");
    assert!(accepted.stdout.contains("accepted the tool `s:ok` as shown"), "{accepted:?}");
    eventually("the gateway takes it over", || text(&client.call("s:ok", &json!({}))) == "ok");
    assert!(finds(&mut client, "delete files", "s:ok"));

    let log = home.run(&["audit", "list", "--json"]).stdout;
    let rows: Vec<Value> = serde_json::from_str(&log).unwrap();
    let entry = rows.iter().find(|row| row["kind"] == "accepted").unwrap();
    assert_eq!((&entry["body"]["tools"][0]["tool"], &entry["body"]["server"]), (&json!("s:ok"), &json!("s")));
    assert_ne!(entry["body"]["tools"][0]["before"], entry["body"]["tools"][0]["definition"]);
    assert_eq!(home.run(&["audit", "verify"]).code, 0);
}

#[test]
fn what_was_accepted_stays_so_and_what_was_before_does_not() {
    let home = home("");
    let mut client = home.stdio(&[]);
    assert_eq!(text(&client.call("s:ok", &json!({}))), "ok");
    become_dangerous(&mut client);
    assert_eq!(code(&client.call("s:ok", &json!({}))), "QUARANTINED");
    // Back to what was accepted: it is the same tool again.
    redefine(&mut client, &json!({"change": {"tool": "ok", "definition": {}}}));
    assert_eq!(text(&client.call("s:ok", &json!({}))), "ok");

    become_dangerous(&mut client);
    assert_eq!(code(&client.call("s:ok", &json!({}))), "QUARANTINED");
    assert_eq!(home.run(&["accept", "s", "--yes"]).code, 0);
    eventually("it is accepted", || text(&client.call("s:ok", &json!({}))) == "ok");
    client.finish();

    // A new process of the server is what it was at first, which is not accepted any more.
    let mut client = home.stdio(&[]);
    let answer = client.call("s:ok", &json!({}));
    assert_eq!(code(&answer), "QUARANTINED", "{answer}");
    become_dangerous(&mut client);
    assert_eq!(text(&client.call("s:ok", &json!({}))), "ok", "acceptance survives a restart");
}

#[test]
fn a_persons_word_for_a_tool_is_not_one_for_what_it_became() {
    let home = Home::new("");
    let auto =
        ["surroundings", "redefine"].map(|tool| format!("\"s:{tool}\" = {{ approval_mode = \"auto\" }}\n"));
    home.configure(&format!("{}[permissions]\n{}", faulty::table(&home, "s", &[], ""), auto.concat()));
    let mut client = home.stdio(&[]);
    assert_eq!(text(&client.call("s:surroundings", &json!({}))).get(..1), Some("{"));
    let program = json!({"type": "code", "code": "return await mcp.s.ok({})"});
    let asked = execute(&mut client, &program);
    assert_eq!(asked["structuredContent"]["status"], "approval_required", "{asked}");
    become_dangerous(&mut client);
    let run = &asked["structuredContent"]["workflowId"];
    let answer = client.call("pml_continue", &json!({"workflow_id": run, "approved": true}));
    assert_eq!(code(&answer), "TOOL_CHANGED", "{answer}");
    assert_eq!(code(&execute(&mut client, &program)), "QUARANTINED");
    assert_eq!(home.run(&["accept", "s", "--yes"]).code, 0);
    eventually("it is accepted, and asked for anew", || {
        execute(&mut client, &program)["structuredContent"]["status"] == "approval_required"
    });
    assert_eq!(Ledger::of(&home, "s").calls("ok"), 0);
}

#[test]
fn a_tool_that_appears_waits_and_one_that_goes_does_not() {
    let home = home("");
    let mut client = home.stdio(&["--expose", "full"]);
    assert_eq!(text(&client.call("s:ok", &json!({}))), "ok");
    redefine(&mut client, &json!({"add": "fresh"}));
    for answer in every_way(&mut client, "fresh") {
        assert_eq!(code(&answer), "QUARANTINED", "{answer}");
        assert!(answer.to_string().contains("it appeared after its server was accepted"), "{answer}");
    }
    assert_eq!(Ledger::of(&home, "s").calls("fresh"), 0);
    let accepted = home.run(&["accept", "s", "--yes"]);
    assert!(accepted.stdout.contains("+  \"description\": \"the tool fresh\""), "{accepted:?}");
    eventually("it is accepted", || code(&client.call("s:fresh", &json!({}))) != "QUARANTINED");
    assert_eq!(Ledger::of(&home, "s").calls("fresh"), 1);

    redefine(&mut client, &json!({"remove": "fresh"}));
    assert_eq!(code(&client.call("s:fresh", &json!({}))), "UNKNOWN_TOOL");
    redefine(&mut client, &json!({"add": "fresh"}));
    assert_ne!(code(&client.call("s:fresh", &json!({}))), "QUARANTINED", "it is what was accepted");
}

#[test]
fn a_tool_that_looks_like_one_that_is_there_never_takes_its_place() {
    let home = home("definitions = \"follow\"");
    let mut client = home.stdio(&[]);
    assert_eq!(text(&client.call("s:ok", &json!({}))), "ok");
    for twin in ["OK", "Ok", "\u{43e}k"] {
        redefine(&mut client, &json!({"add": twin}));
        eventually("the twin is held back", || {
            code(&client.call(&format!("s:{twin}"), &json!({}))) == "QUARANTINED"
        });
        assert_eq!(text(&client.call("s:ok", &json!({}))), "ok", "{twin}");
    }
    let listed = home.run(&["list"]).stdout;
    assert!(listed.contains("held back: s:OK: its name can be taken for `ok`"), "{listed}");
    // A person's word on the definition does not make the name another.
    let accepted = home.run(&["accept", "s:OK", "--yes"]);
    assert_eq!(accepted.code, 1, "{accepted:?}");
}

#[test]
fn a_single_call_does_not_reach_a_tool_that_is_another_when_its_server_starts() {
    let home = with_notes();
    let mut tools = notes_tools();
    tools[0]["description"] = json!("Writes a note down and tells everybody");
    std::fs::write(home.path("tools.json"), tools.to_string()).unwrap();
    let call = ["call", "notes:add_note", "--yes", "--args", r#"{"title": "milk"}"#];
    let refused = home.run(&call);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("`notes:add_note` is held back"), "{refused:?}");
    assert_eq!(home.run(&["call", "notes:search_notes", "--yes", "--args", r#"{"word": "milk"}"#]).code, 0);

    let doctor = home.run(&["doctor"]);
    assert!(doctor.stdout.contains("warn tool `notes:add_note` is held back"), "{doctor:?}");
    let said_no = home.run_on_terminal(&["accept", "notes"], &["n"]);
    assert_eq!(said_no.code, 1, "{said_no:?}");
    assert!(said_no.stdout.contains("tells everybody"), "{said_no:?}");
    assert!(said_no.stdout.contains("nothing was accepted"), "{said_no:?}");
    assert_eq!(home.run(&call).code, 1);
    let said_yes = home.run_on_terminal(&["accept", "notes:add_note"], &["y"]);
    assert_eq!(said_yes.code, 0, "{said_yes:?}");
    assert_eq!(home.run(&call).code, 0);
}

#[test]
fn a_server_that_is_followed_may_change_as_it_likes() {
    let home = home("definitions = \"follow\"");
    let mut client = home.stdio(&[]);
    assert_eq!(text(&client.call("s:ok", &json!({}))), "ok");
    become_dangerous(&mut client);
    redefine(&mut client, &json!({"add": "fresh"}));
    assert_eq!(text(&client.call("s:ok", &json!({}))), "ok");
    eventually("what is new is there", || !code(&client.call("s:fresh", &json!({}))).starts_with("UNKNOWN"));
    client.finish();
    // What was in use when it was followed is what is accepted from then on.
    home.configure(&faulty::allowed(&home, "s", &[], ""));
    let mut client = home.stdio(&[]);
    let answer = client.call("s:ok", &json!({}));
    assert_eq!(code(&answer), "QUARANTINED", "its new process has the definition of the beginning: {answer}");
}

#[test]
fn beginning_with_servers_that_are_imported_asks_about_each() {
    let home = with_notes();
    let configured = std::fs::read_to_string(home.path("pml.toml")).unwrap();
    let bare = &configured[..configured.find("[servers.notes]").unwrap()];
    let (script, tools) = (home.path("small.mjs"), home.path("tools.json"));
    let server = json!({"command": crate::harness::node(), "args": [script, tools]});
    let gone = json!({"command": "/nowhere/to/be/found"});
    std::fs::write(
        home.path("mcp.json"),
        json!({"mcpServers": {"gone": gone, "theirs": server}}).to_string(),
    )
    .unwrap();
    let config = format!("import = [{:?}]\n{bare}", home.path("mcp.json"));
    home.configure(&config);
    let rules =
        || std::fs::read_to_string(home.path("pml.toml")).unwrap().strip_prefix(&config).map(str::to_owned);

    let piped = home.run(&["init"]);
    assert!(piped.code == 0 && !piped.stdout.contains("theirs"), "no terminal, no questions: {piped:?}");
    let no = home.run_on_terminal(&["init"], &["n"]);
    assert!(no.stdout.contains("writing, or silent about it: add_note, fail"), "{no:?}");
    assert!(no.stdout.contains("`gone` is configured, but"), "the others are shown all the same: {no:?}");
    assert_eq!(rules().as_deref(), Some(""), "{no:?}");
    let yes = home.run_on_terminal(&["init"], &["y"]);
    assert_eq!(yes.code, 0, "{yes:?}");
    let written = rules().unwrap();
    assert!(written.contains("theirs = { approval_mode = \"hil\" }"), "{written}");
    assert!(written.contains("\"theirs:search_notes\" = { approval_mode = \"auto\""), "{written}");
    let again = home.run_on_terminal(&["init"], &[]);
    assert!(again.code == 0 && !again.stdout.contains("add_note"), "it was answered: {again:?}");
}

#[test]
fn adding_a_server_asks_once_what_programs_may_do_with_it() {
    let home = with_notes();
    let configured = std::fs::read_to_string(home.path("pml.toml")).unwrap();
    let at = configured.find("[servers.notes]").unwrap();
    let (bare, server) = configured.split_at(at);
    let node = crate::harness::node();
    let (script, tools) = (home.path("small.mjs"), home.path("tools.json"));
    let (script, tools) = (script.display().to_string(), tools.display().to_string());
    assert!(server.contains(&script));
    let with = |more: &[&'static str]| [&["add", "notes"], more, &["--", &node, &script, &tools]].concat();
    let rules = |home: &Home| {
        let text = std::fs::read_to_string(home.path("pml.toml")).unwrap();
        text.find("[permissions]").map(|at| text[at..].to_owned())
    };
    let mode = |tool: &str| -> Value {
        let explained = home.run(&["--json", "policy", "explain", tool]);
        serde_json::from_str::<Value>(&explained.stdout).unwrap()["mode"].clone()
    };

    home.configure(bare);
    let added = home.run(&with(&[]));
    assert_eq!((added.code, rules(&home)), (0, None), "{added:?}");
    assert!(added.stderr.contains("no permissions were written"), "{added:?}");
    assert_eq!(home.run(&["remove", "notes"]).code, 0);

    home.configure(bare);
    let added = home.run_on_terminal(&with(&[]), &["n"]);
    assert_eq!((added.code, rules(&home)), (0, None), "{added:?}");
    assert_eq!(home.run(&["remove", "notes"]).code, 0);

    let accepted = "[permissions]\nnotes = { approval_mode = \"hil\" }\n\
                    \"notes:search_notes\" = { approval_mode = \"auto\", read_only = true }\n";
    for terminal in [true, false] {
        home.configure(bare);
        let added = match terminal {
            true => home.run_on_terminal(&with(&[]), &["y"]),
            false => home.run(&with(&["--yes"])),
        };
        assert_eq!((added.code, rules(&home).as_deref()), (0, Some(accepted)), "{added:?}");
        assert_eq!((mode("notes:search_notes"), mode("notes:add_note")), (json!("auto"), json!("hil")));
        assert_eq!(home.run(&["remove", "notes"]).code, 0);
        assert_eq!(std::fs::read_to_string(home.path("pml.toml")).unwrap().trim_end(), bare.trim_end());
    }
}
