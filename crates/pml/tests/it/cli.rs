//! The terminal door and PML's own tools: what they print, what they refuse and how they end.

use std::fmt::Write as _;
use std::process::Stdio;

use expect_test::{Expect, expect};
use regex::Regex;
use serde_json::{Value, json};

use crate::harness::{Client, Home, drain, node, text};

/// A server that lists the tools of a file and answers calls with what it was given.
const SMALL_SERVER: &str = r"
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
const tools = JSON.parse(readFileSync(process.argv[2], 'utf8'));
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) continue;
  const reply = (body) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...body })}\n`);
  if (method === 'initialize') {
    const serverInfo = { name: 'small', version: '1' };
    reply({ result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo } });
  } else if (method === 'tools/list') reply({ result: { tools } });
  else if (method === 'tools/call' && params.name === 'fail') {
    reply({ result: { content: [{ type: 'text', text: 'it did not work' }], isError: true } });
  } else if (method === 'tools/call') {
    reply({ result: { content: [{ type: 'text', text: `${params.name} got ${JSON.stringify(params.arguments)}` }] } });
  } else reply({ error: { code: -32601, message: 'no such method' } });
}
";

/// No built-in server, so that what is printed stays short.
const BARE: &str = "[builtin]\nfs.enabled = false\njson.enabled = false\ntext.enabled = false\ncsv.enabled = false\n\
    http.enabled = false\ntime.enabled = false\nmath.enabled = false\n";

/// The tools of the server `notes`.
pub fn notes_tools() -> Value {
    json!([
        {
            "name": "add_note",
            "description": "Writes a note down",
            "inputSchema": {
                "type": "object",
                "properties": { "title": { "type": "string" }, "lines": { "type": "array", "items": { "type": "string" } } },
                "required": ["title"],
                "additionalProperties": false
            }
        },
        {
            "name": "search_notes",
            "description": "Finds notes that contain a word",
            "inputSchema": {
                "type": "object",
                "properties": { "word": { "type": "string" }, "limit": { "type": "integer", "minimum": 1, "maximum": 100 } },
                "required": ["word"]
            },
            "annotations": { "readOnlyHint": true }
        },
        { "name": "fail", "description": "Always fails", "inputSchema": { "type": "object" } }
    ])
}

pub fn with_small_server(config: &str, tools: &Value) -> Home {
    let home = Home::new(config);
    std::fs::write(home.path("small.mjs"), SMALL_SERVER).unwrap();
    std::fs::write(home.path("tools.json"), tools.to_string()).unwrap();
    home
}

/// A home with the server `notes`, whose tools are known.
pub fn with_notes() -> Home {
    let home = with_small_server("", &notes_tools());
    let script = home.path("small.mjs");
    home.configure(&format!(
        "{BARE}[servers.notes]\ncommand = {:?}\nargs = [{script:?}, {:?}]\n",
        node(),
        home.path("tools.json")
    ));
    assert_eq!(home.run(&["doctor"]).code, 0);
    home
}

/// Text without what differs from one machine or moment to the next.
fn plain(home: &Home, text: &str) -> String {
    let text = text.replace(&node(), "NODE").replace(&home.path("").display().to_string(), "HOME/");
    let text = text.replace("HOME//", "HOME/");
    let rules = [
        (r"after \d+ ms", "after … ms"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "WHEN"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
        (r"pml \d+\.\d+\.\d+ .*", "pml VERSION"),
    ];
    rules.into_iter().fold(text, |text, (pattern, with)| {
        Regex::new(pattern).unwrap().replace_all(&text, with).into_owned()
    })
}

/// Runs a command and compares everything it leaves.
#[track_caller]
fn check(home: &Home, args: &[&str], expected: &Expect) {
    let done = home.run(args);
    let mut left = String::new();
    for (title, text) in [("", &done.stdout), ("--- stderr\n", &done.stderr)] {
        if !text.is_empty() {
            write!(left, "{title}{}", plain(home, text)).unwrap();
        }
    }
    writeln!(left, "--- exit {}", done.code).unwrap();
    expected.assert_eq(&left);
}

#[test]
fn init_writes_a_configuration_once() {
    let home = Home::new("");
    std::fs::remove_file(home.path("pml.toml")).unwrap();
    check(
        &home,
        &["init"],
        &expect![[r#"
        wrote HOME/pml.toml
        next: `pml add NAME -- COMMAND` adds a server, `pml serve` starts the gateway
        --- exit 0
    "#]],
    );
    let written = std::fs::read_to_string(home.path("pml.toml")).unwrap();
    check(
        &home,
        &["init"],
        &expect![[r#"
        HOME/pml.toml is there already and was not touched
        next: `pml add NAME -- COMMAND` adds a server, `pml serve` starts the gateway
        --- exit 0
    "#]],
    );
    check(
        &home,
        &["--json", "init"],
        &expect![[r#"
        {
          "config": "HOME/pml.toml",
          "created": false
        }
        --- exit 0
    "#]],
    );
    assert_eq!(std::fs::read_to_string(home.path("pml.toml")).unwrap(), written);
    assert_eq!(home.run(&["list"]).code, 0, "what init writes can be read");
}

#[test]
fn a_server_is_added_used_and_removed() {
    let home = with_small_server(BARE, &notes_tools());
    let (script, tools) =
        (home.path("small.mjs").display().to_string(), home.path("tools.json").display().to_string());
    let node = node();
    let add = ["add", "notes", "--description", "Keeps notes", "--", &node, &script, &tools];
    check(
        &home,
        &add,
        &expect![[r#"
            added `notes` to HOME/pml.toml: 3 tools
              reading, by their own word: search_notes
              writing, or silent about it: add_note, fail
            --- stderr
            no permissions were written: a person is asked before programs call them (`--yes` accepts what is shown)
            --- exit 0
        "#]],
    );
    check(
        &home,
        &add,
        &expect![[r#"
        --- stderr
        error: `HOME/pml.toml` already has a server `notes`
        hint: choose another name, or replace it
        --- exit 2
    "#]],
    );
    check(
        &home,
        &["list"],
        &expect![[r#"
        SERVER  STATE        TOOLS  HOW
        notes   not running  3      NODE HOME/small.mjs HOME/tools.json
        --- exit 0
    "#]],
    );
    check(
        &home,
        &["list", "notes"],
        &expect![[r#"
        TOOL                CLAIMS  DESCRIPTION
        notes:add_note              Writes a note down
        notes:fail                  Always fails
        notes:search_notes  reads   Finds notes that contain a word
        --- exit 0
    "#]],
    );
    check(
        &home,
        &["--json", "list"],
        &expect![[r#"
        {
          "servers": [
            {
              "name": "notes",
              "state": "not running",
              "tools": 3,
              "how": "NODE HOME/small.mjs HOME/tools.json"
            }
          ],
          "leftOut": [],
          "heldBack": [],
          "untrusted": []
        }
        --- exit 0
    "#]],
    );
    check(
        &home,
        &["call", "notes:add_note", "--yes", "--args", r#"{"title": "milk"}"#],
        &expect![[r#"
        add_note got {"title":"milk"}
        --- exit 0
    "#]],
    );
    check(
        &home,
        &["--json", "call", "notes:add_note", "--yes", "--args", r#"{"title": "milk"}"#],
        &expect![[r#"
        {"content":[{"type":"text","text":"add_note got {\"title\":\"milk\"}"}]}
        --- exit 0
    "#]],
    );
    check(
        &home,
        &["call", "notes:fail", "--yes"],
        &expect![[r#"
        it did not work
        --- exit 1
    "#]],
    );
    check(
        &home,
        &["discover", "search for a word", "--limit", "1", "--explain"],
        &expect![[r#"
            notes:search_notes 0.88
              Finds notes that contain a word
              mcp.notes.search_notes(args: { word: string; limit?: number }): Promise<unknown>
              because name matches `search`
              because description mentions `word`
              because means nearly what is asked (0.65)
            --- exit 0
        "#]],
    );
    check(
        &home,
        &["--json", "discover", "write a note", "--limit", "1", "--full"],
        &expect![[r#"
            {
              "results": [
                {
                  "type": "tool",
                  "id": "notes:add_note",
                  "name": "notes__add_note",
                  "description": "Writes a note down",
                  "score": 0.846,
                  "reasons": [
                    "name matches `note`",
                    "description mentions `write`",
                    "means nearly what is asked (0.72)"
                  ],
                  "signature": "/** Writes a note down */\nmcp.notes.add_note(args: { title: string; lines?: string[] }): Promise<unknown>",
                  "schemas": {
                    "input": {"type":"object","properties":{"title":{"type":"string"},"lines":{"type":"array","items":{"type":"string"}}},"required":["title"],"additionalProperties":false}
                  }
                }
              ],
              "total": 3
            }
            --- exit 0
        "#]],
    );
    check(
        &home,
        &["discover", "zzz"],
        &expect![[r#"
        --- stderr
        say it in other words; these servers are connected: notes
        --- exit 1
    "#]],
    );
    check(
        &home,
        &["doctor"],
        &expect![[r#"
            ok   configuration HOME/pml.toml
            ok   database HOME/pml.db, every page and row as it was stored
            warn no passphrase is set, so nobody can sign in at the dashboard or approve as a person
                 hint: run `pml passphrase` in a terminal
            ok   server processes end with PML, however it ends
            ok   programs run behind all walls: own process, limits, no privileges, no files, no network, few system calls
            ok   a sandbox was ready after … ms
            ok   server `notes`: 3 tools, protocol 2025-11-25, ready after … ms
            ok   all-MiniLM-L6-v2/int8/efaff7bc has read all tools and intents
            --- exit 0
        "#]],
    );
    check(
        &home,
        &["remove", "note"],
        &expect![[r#"
            --- stderr
            error: no server is called `note`
            hint: did you mean `notes`?
            --- exit 1
        "#]],
    );
    check(
        &home,
        &["--json", "accept", "notes"],
        &expect![[r#"
            {
              "accepted": "notes",
              "how": "NODE HOME/small.mjs HOME/tools.json",
              "tools": []
            }
            --- exit 0
        "#]],
    );
    check(
        &home,
        &["--json", "remove", "notes"],
        &expect![[r#"
            {
              "removed": "notes",
              "config": "HOME/pml.toml"
            }
            --- exit 0
        "#]],
    );
    check(
        &home,
        &["list"],
        &expect![[r#"
        SERVER  STATE  TOOLS  HOW
        --- exit 0
    "#]],
    );
}

#[test]
fn a_changed_definition_is_shown_with_its_difference() {
    let home = with_notes();
    check(
        &home,
        &["list", "--changes"],
        &expect![[r#"
        no definition has changed
        --- exit 0
    "#]],
    );
    let mut tools = notes_tools();
    tools[0]["description"] = json!("Writes a note down and tells everybody");
    std::fs::write(home.path("tools.json"), tools.to_string()).unwrap();
    assert_eq!(home.run(&["doctor"]).code, 0);
    check(
        &home,
        &["list", "--changes"],
        &expect![[r#"
        WHEN  notes:add_note  b1fbf548d500 → fda8bce352a7
        @@ -2,3 +2,3 @@
           "name": "add_note",
        -  "description": "Writes a note down",
        +  "description": "Writes a note down and tells everybody",
           "inputSchema": {
        --- exit 0
    "#]],
    );
    let changes: Value = serde_json::from_str(&home.run(&["--json", "list", "--changes"]).stdout).unwrap();
    assert_eq!(changes[0]["tool"], "notes:add_note");
    assert_ne!(changes[0]["before"], changes[0]["after"]);
}

#[test]
fn a_broken_configuration_is_shown_with_its_place() {
    let home = Home::new("");
    let broken = |config: &str, expected: Expect| {
        home.configure(config);
        check(&home, &["list"], &expected);
    };
    broken(
        "expose = \"full\"\n[servers.a\ncommand = 1\n",
        expect![[r#"
        --- stderr
        error: HOME/pml.toml:2:11: not TOML: unclosed table, expected `]`
        hint: texts stand in quotes, and a table or key may appear once
        --- exit 2
    "#]],
    );
    broken(
        "expose = \"full\"\nexposse = \"meta\"\n",
        expect![[r#"
        --- stderr
        error: HOME/pml.toml:2:1: unknown key `exposse`
        hint: did you mean `expose`?
        --- exit 2
    "#]],
    );
    broken(
        "expose = \"some\"\n",
        expect![[r#"
        --- stderr
        error: HOME/pml.toml:1:10: `expose` is `some`
        hint: write "meta", "full", or a list such as ["fs:read"]
        --- exit 2
    "#]],
    );
    broken(
        "[servers.a]\ncomand = \"x\"\n",
        expect![[r#"
        --- stderr
        error: HOME/pml.toml:2:1: unknown key `comand`
        hint: did you mean `command`?
        --- exit 2
    "#]],
    );
    broken(
        "[servers.a]\ncommand = 7\n",
        expect![[r#"
        --- stderr
        error: HOME/pml.toml:2:11: `servers.a.command` must be a text, not a number
        hint: put it in quotes: "7"
        --- exit 2
    "#]],
    );
    broken(
        "[servers.a]\nargs = []\n",
        expect![[r#"
        --- stderr
        error: HOME/pml.toml:1:1: `servers.a` has neither `command` nor `url`
        hint: give a `command` to start, or a `url` to reach
        --- exit 2
    "#]],
    );
    broken(
        "names = \"short\"\n",
        expect![[r#"
        --- stderr
        error: HOME/pml.toml:1:9: `names` is `short`
        hint: write "qualified" (`server__tool`) or "plain" (the tool's own name where it is the only one)
        --- exit 2
    "#]],
    );
    broken(
        "[serve]\nlisten = \"everywhere\"\n",
        expect![[r#"
        --- stderr
        error: HOME/pml.toml:2:10: `serve.listen` is `everywhere`
        hint: give an IP address and a port, such as "127.0.0.1:PORT"
        --- exit 2
    "#]],
    );
    home.configure("[servers.a]\ncomand = \"x\"\n");
    check(
        &home,
        &["--json", "list"],
        &expect![[r#"
        {
          "error": {
            "code": "CONFIG",
            "message": "HOME/pml.toml:2:1: unknown key `comand`",
            "hint": "did you mean `command`?"
          }
        }
        --- exit 2
    "#]],
    );
    check(
        &home,
        &["doctor"],
        &expect![[r#"
        bad  HOME/pml.toml:2:1: unknown key `comand`
             hint: did you mean `command`?
        --- exit 1
    "#]],
    );
}

#[test]
fn a_server_that_cannot_be_used_is_left_out_and_the_others_stay() {
    let home = Home::new("");
    let left_out = |config: &str, expected: Expect| {
        home.configure(&format!("{BARE}[servers.good]\ncommand = \"true\"\n{config}"));
        check(&home, &["list"], &expected);
    };
    left_out(
        "[servers.a]\ncommand = \"x\"\nenv = { TOKEN = \"${NOT_SET_ANYWHERE}\" }\n",
        expect![[r#"
        SERVER  STATE            TOOLS  HOW
        good    not started yet  0      true
        left out: HOME/pml.toml:11:10: server `a` is left out: the variable `NOT_SET_ANYWHERE` is not set
        hint: set `NOT_SET_ANYWHERE` in the environment PML is started in
        --- exit 0
    "#]],
    );
    left_out(
        "[servers.Good]\ncommand = \"x\"\n",
        expect![[r#"
        SERVER  STATE            TOOLS  HOW
        good    not started yet  0      true
        left out: HOME/pml.toml:11:10: server `Good` is left out: its name could be taken for that of the server `good` at HOME/pml.toml:9
        hint: rename one of them
        --- exit 0
    "#]],
    );
    left_out(
        "[servers.\"g\u{43e}od\"]\ncommand = \"x\"\n",
        expect![[r#"
        SERVER  STATE            TOOLS  HOW
        good    not started yet  0      true
        left out: HOME/pml.toml:11:10: server name `gоod` contains 'о'; use ASCII letters, digits, `_` and `-`, such as `g-od`
        hint: give it another name
        --- exit 0
    "#]],
    );
    left_out(
        "[servers.go0d]\ncommand = \"x\"\n",
        expect![[r#"
        SERVER  STATE            TOOLS  HOW
        good    not started yet  0      true
        left out: HOME/pml.toml:11:10: server `go0d` is left out: its name could be taken for that of the server `good` at HOME/pml.toml:9
        hint: rename one of them
        --- exit 0
    "#]],
    );
    left_out(
        "[servers.\"a:b\"]\ncommand = \"x\"\n",
        expect![[r#"
        SERVER  STATE            TOOLS  HOW
        good    not started yet  0      true
        left out: HOME/pml.toml:11:10: server name `a:b` contains ':'; use ASCII letters, digits, `_` and `-`, such as `a-b`
        hint: give it another name
        --- exit 0
    "#]],
    );
    left_out(
        "[servers.__proto__]\ncommand = \"x\"\n",
        expect![[r#"
        SERVER  STATE            TOOLS  HOW
        good    not started yet  0      true
        left out: HOME/pml.toml:11:10: server name `__proto__` is reserved
        hint: give it another name
        --- exit 0
    "#]],
    );
    left_out(
        "[servers.\"good \"]\ncommand = \"x\"\n",
        expect![[r#"
        SERVER  STATE            TOOLS  HOW
        good    not started yet  0      true
        left out: HOME/pml.toml:11:10: server name `good ` contains ' '; use ASCII letters, digits, `_` and `-`, such as `good`
        hint: give it another name
        --- exit 0
    "#]],
    );
    home.configure("[servers.fs]\ncommand = \"x\"\n");
    let listed: Value = serde_json::from_str(&home.run(&["--json", "list"]).stdout).unwrap();
    assert!(listed["leftOut"][0].as_str().unwrap().contains("the built-in server `fs`"), "{listed}");
}

#[test]
fn a_wrong_call_says_what_is_wrong_with_it() {
    let home = with_notes();
    check(
        &home,
        &["call", "nodes:add_note"],
        &expect![[r#"
        --- stderr
        error: no server is called `nodes`
        hint: did you mean `notes`?
        --- exit 1
    "#]],
    );
    check(
        &home,
        &["call", "notes:add_notes"],
        &expect![[r#"
            --- stderr
            error: no tool is called `notes:add_notes`
            hint: did you mean `notes:add_note`?
            --- exit 1
        "#]],
    );
    check(
        &home,
        &["call", "notes:unlike_anything"],
        &expect![[r#"
            --- stderr
            error: no tool is called `notes:unlike_anything`
            hint: find tools with `pml_discover` or `pml discover`
            --- exit 1
        "#]],
    );
    check(
        &home,
        &["call", "add_note"],
        &expect![[r#"
        --- stderr
        error: tool id `add_note` names no server; write it as `server:tool`
        --- exit 2
    "#]],
    );
    check(
        &home,
        &["call", "notes:add_note", "--args", "{title: 1}"],
        &expect![[r#"
        --- stderr
        error: `--args` is not JSON: key must be a string at line 1 column 2
        hint: write it as --args '{"path": "x"}'
        --- exit 2
    "#]],
    );
    check(
        &home,
        &["call", "notes:add_note", "--args", "[]"],
        &expect![[r#"
        --- stderr
        error: the arguments of `notes:add_note` are not a JSON object
        --- exit 1
    "#]],
    );
    check(
        &home,
        &["call", "notes:add_note"],
        &expect![[r#"
        --- stderr
        error: the arguments of `notes:add_note` break its schema: the whole: "title" is a required property
        hint: its parameters are `title` (required), `lines`
        --- exit 1
    "#]],
    );
    check(
        &home,
        &["call", "notes:add_note", "--args", r#"{"title": "a", "lines": ["b", 3], "x": 1}"#],
        &expect![[r#"
        --- stderr
        error: the arguments of `notes:add_note` break its schema: `/lines/1`: 3 is not of type "string"; the whole: Additional properties are not allowed ('x' was unexpected)
        hint: its parameters are `title` (required), `lines`
        --- exit 1
    "#]],
    );
    check(
        &home,
        &["--json", "call", "notes:search_notes", "--args", r#"{"word": "a", "limit": 1000}"#],
        &expect![[r#"
            {
              "error": {
                "code": "INVALID_ARGUMENTS",
                "message": "the arguments of `notes:search_notes` break its schema: `/limit`: 1000 is greater than the maximum of 100",
                "hint": "its parameters are `word` (required), `limit`",
                "sent": "no"
              }
            }
            --- exit 1
        "#]],
    );
    check(
        &home,
        &["list", "nodes"],
        &expect![[r#"
        --- stderr
        error: no server is called `nodes`
        hint: did you mean `notes`?
        --- exit 1
    "#]],
    );
    check(
        &home,
        &["add", "notes", "--", "true"],
        &expect![[r#"
        --- stderr
        error: `HOME/pml.toml` already has a server `notes`
        hint: choose another name, or replace it
        --- exit 2
    "#]],
    );
    check(
        &home,
        &["add", "n0tes", "--", "true"],
        &expect![[r#"
        --- stderr
        error: `n0tes` could be taken for the server `notes` of `HOME/pml.toml`
        hint: choose another name
        --- exit 2
    "#]],
    );
    check(
        &home,
        &["add", "a b", "--", "true"],
        &expect![[r#"
        --- stderr
        error: server name `a b` contains ' '; use ASCII letters, digits, `_` and `-`, such as `a-b`
        --- exit 2
    "#]],
    );
    check(
        &home,
        &["add", "other"],
        &expect![[r#"
        --- stderr
        error: a server needs a command after `--`, or `--url`
        hint: for example `pml add time -- uvx mcp-server-time`
        --- exit 2
    "#]],
    );
    check(
        &home,
        &["discover", " "],
        &expect![[r#"
        --- stderr
        error: `intent` is empty; say in a few words what you want to do
        --- exit 2
    "#]],
    );
    check(
        &home,
        &["discover", "x", "--limit", "0"],
        &expect![[r#"
        --- stderr
        error: `limit` is 0; it must be from 1 to 100
        --- exit 2
    "#]],
    );
    check(
        &home,
        &["discover", "x", "--min-score", "2"],
        &expect![[r#"
        --- stderr
        error: `filter.minScore` is 2; it must be from 0 to 1
        --- exit 2
    "#]],
    );
}

#[test]
fn a_server_that_does_not_start_is_added_all_the_same() {
    let home = Home::new(BARE);
    let added = home.run(&["add", "gone", "--", "/no/such/program"]);
    assert_eq!(added.code, 1);
    assert!(
        added.stderr.starts_with("error: `gone` was added, but server `gone` is down"),
        "{}",
        added.stderr
    );
    assert!(added.stderr.contains("pml remove gone"), "{}", added.stderr);
    let called = home.run(&["call", "gone:x"]);
    assert_eq!(called.code, 1);
    assert!(called.stderr.starts_with("error: server `gone` is down"), "{}", called.stderr);
    let looked = home.run(&["doctor"]);
    assert_eq!(looked.code, 1);
    assert!(looked.stdout.contains("bad  server `gone` is down"), "{}", looked.stdout);
    assert!(looked.stdout.contains("start it by hand to see more: /no/such/program"), "{}", looked.stdout);
}

#[test]
fn the_command_line_itself_is_checked() {
    let home = Home::new(BARE);
    assert_eq!(home.run(&["no-such-command"]).code, 2);
    assert_eq!(home.run(&[]).code, 2);
    assert_eq!(home.run(&["call"]).code, 2);
    assert_eq!(home.run(&["add", "a", "--env", "novalue", "--", "true"]).code, 2);
    check(
        &home,
        &["--version"],
        &expect![[r#"
        pml VERSION
        --- exit 0
    "#]],
    );
    check(
        &home,
        &["--config", "/no/such/file.toml", "list"],
        &expect![[r#"
            --- stderr
            error: there is no configuration at /no/such/file.toml
            hint: `pml init` with the same `--config` writes one
            --- exit 2
        "#]],
    );
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let done = home.run(&["completions", shell]);
        assert_eq!(done.code, 0, "{}", done.stderr);
        assert!(done.stdout.contains("discover") && done.stdout.contains("pml"), "{shell}");
    }
}

#[test]
fn a_port_that_is_taken_is_told() {
    let home = Home::new(BARE);
    let first = home.serve(&[]);
    let address = first.url.trim_start_matches("http://").trim_end_matches("/mcp");
    let other = Home::new(BARE);
    check(
        &other,
        &["serve", "--listen", address],
        &expect![[r#"
        --- stderr
        error: cannot listen on 127.0.0.1:PORT: Address already in use (os error 98)
        hint: another `pml serve` may be running; stop it, or choose a port with `--listen 127.0.0.1:PORT`
        --- exit 2
    "#]],
    );
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let home = with_notes();
    let mut child = home.command(&["list"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let complaint = drain(child.stderr.take());
    assert_eq!((child.wait().unwrap().code(), complaint.as_str()), (Some(0), ""));
}

#[test]
fn tools_of_the_first_version_name_what_replaced_them() {
    let home = Home::new(BARE);
    let mut client = home.stdio(&[]);
    let removed = [
        "pml_search_tools",
        "pml_search_capabilities",
        "pml_find_capabilities",
        "pml_execute_dag",
        "pml_execute_code",
    ];
    let listed = client.request("tools/list", &json!({}));
    let mut answers = String::new();
    for tool in removed {
        assert!(!listed.to_string().contains(tool));
        let result = client.call(tool, &json!({"anything": 1}));
        assert_eq!(result["isError"], true, "{tool}");
        assert_eq!(result["structuredContent"]["error"]["code"], "REMOVED_TOOL", "{tool}");
        writeln!(answers, "{}", text(&result)).unwrap();
    }
    expect![[r#"
        REMOVED_TOOL: `pml_search_tools` no longer exists
        hint: call `pml_discover` with {"intent": "…", "filter": {"type": "tool"}}
        REMOVED_TOOL: `pml_search_capabilities` no longer exists
        hint: call `pml_discover` with {"intent": "…"}
        REMOVED_TOOL: `pml_find_capabilities` no longer exists
        hint: call `pml_discover` with {"intent": "…"}
        REMOVED_TOOL: `pml_execute_dag` no longer exists
        hint: call `pml_execute` with {"intent": "…", "implementation": {"type": "dag", "dagStructure": {"tasks": […]}}}
        REMOVED_TOOL: `pml_execute_code` no longer exists
        hint: call `pml_execute` with {"intent": "…", "implementation": {"type": "code", "code": "…"}}
    "#]]
    .assert_eq(&answers);
}

#[test]
fn wrong_arguments_of_discovery_are_told_in_the_result() {
    let home = Home::new(BARE);
    let mut client = home.stdio(&[]);
    let mut answers = String::new();
    for arguments in [
        json!({}),
        json!({"intent": 5}),
        json!({"intent": "  "}),
        json!({"intent": "x", "limit": 0}),
        json!({"intent": "x", "limit": 101}),
        json!({"intent": "x", "limit": -1}),
        json!({"intent": "x", "filter": {"minScore": 1.5}}),
        json!({"intent": "x", "filter": {"type": "server"}}),
        json!({"intent": "x", "detail": "all"}),
        json!({"intent": "x", "colour": "red"}),
        json!({"intent": "x".repeat(9000)}),
        json!([]),
    ] {
        let result = client.call("pml_discover", &arguments);
        assert_eq!(result["isError"], true, "{arguments}");
        assert!(result["structuredContent"]["error"]["code"].is_string(), "{result}");
        writeln!(answers, "{}", text(&result).lines().next().unwrap()).unwrap();
    }
    expect![[r#"
        INVALID_ARGUMENTS: the arguments of `pml_discover` are wrong: missing field `intent` at line 1 column 2
        INVALID_ARGUMENTS: the arguments of `pml_discover` are wrong: invalid type: integer `5`, expected a string at line 1 column 11
        INVALID_REQUEST: `intent` is empty; say in a few words what you want to do
        INVALID_REQUEST: `limit` is 0; it must be from 1 to 100
        INVALID_REQUEST: `limit` is 101; it must be from 1 to 100
        INVALID_ARGUMENTS: the arguments of `pml_discover` are wrong: invalid value: integer `-1`, expected usize at line 1 column 24
        INVALID_REQUEST: `filter.minScore` is 1.5; it must be from 0 to 1
        INVALID_ARGUMENTS: the arguments of `pml_discover` are wrong: unknown variant `server`, expected one of `tool`, `capability`, `all` at line 1 column 39
        INVALID_ARGUMENTS: the arguments of `pml_discover` are wrong: unknown variant `all`, expected `brief` or `full` at line 1 column 28
        INVALID_ARGUMENTS: the arguments of `pml_discover` are wrong: unknown field `colour`, expected one of `intent`, `filter`, `limit`, `offset`, `detail` at line 1 column 22
        INVALID_REQUEST: `intent` has 9000 bytes and may have 8192
        INVALID_ARGUMENTS: the arguments of `pml_discover` are not a JSON object
    "#]].assert_eq(&answers);
}

fn discover(client: &mut Client, arguments: &Value) -> (Vec<(String, f64)>, u64) {
    let result = client.call("pml_discover", arguments);
    let page = &result["structuredContent"];
    let found = page["results"].as_array().unwrap_or_else(|| panic!("{arguments}: {result}"));
    let found =
        found.iter().map(|one| (one["id"].as_str().unwrap().to_owned(), one["score"].as_f64().unwrap()));
    (found.collect(), page["total"].as_u64().unwrap())
}

#[test]
fn pages_of_results_fit_together_and_scores_mean_the_same_on_each() {
    let home = Home::new("");
    let mut client = home.stdio(&[]);
    let intent = "read the text of a file";
    let (all, total) = discover(&mut client, &json!({"intent": intent, "limit": 100}));
    assert!(total > 6 && all.len() as u64 == total, "{total}");
    let mut pages = Vec::new();
    for offset in (0..total).step_by(4) {
        let (page, same) = discover(&mut client, &json!({"intent": intent, "limit": 4, "offset": offset}));
        assert_eq!(same, total);
        pages.extend(page);
    }
    assert_eq!(pages, all);
    assert_eq!(discover(&mut client, &json!({"intent": intent, "limit": 1})).0, all[..1]);
    assert_eq!(discover(&mut client, &json!({"intent": intent, "offset": total + 5})), (vec![], total));

    let bound = all[2].1;
    let good: Vec<_> = all.iter().filter(|(_, score)| *score >= bound).cloned().collect();
    let filter = json!({"type": "tool", "minScore": bound});
    assert_eq!(discover(&mut client, &json!({"intent": intent, "filter": filter, "limit": 100})).0, good);
    assert!(all.iter().all(|(_, score)| (0.0..=1.0).contains(score)), "{all:?}");
}

#[test]
fn the_list_of_tools_stays_small_in_front_of_five_thousand() {
    let describe = |n: usize| {
        json!({
            "name": format!("{n:04}_a_tool_with_a_long_name_which_goes_on_and_on"),
            "description": "Does one of very many things, and tells at length about how it does it. ".repeat(5),
            "inputSchema": { "type": "object", "properties": { "value": { "type": "string" } } },
        })
    };
    let home = with_small_server("", &(0..5000).map(describe).collect());
    let script = home.path("small.mjs");
    let many = format!(
        "[servers.many]\ncommand = {:?}\nargs = [{script:?}, {:?}]\n",
        node(),
        home.path("tools.json")
    );
    home.configure(&many);
    assert_eq!(home.run(&["doctor"]).code, 0);
    // More servers than are named, each with more to say of itself than is told.
    let purpose = "Knows a great deal about its subject ".repeat(10);
    let others = |n| format!("[servers.other-{n}]\ncommand = \"true\"\ndescription = {purpose:?}\n");
    home.configure(&(many + &(10..40).map(others).collect::<String>()));
    let mut client = home.stdio(&[]);
    let listed = client.request("tools/list", &json!({}));
    let tokens = tiktoken_rs::cl100k_base().unwrap().encode_ordinary(&listed.to_string()).len();
    assert!(tokens < 2000, "{tokens} tokens: {listed}");
    assert!(listed.get("nextCursor").is_none());
    let (found, _) = discover(&mut client, &json!({"intent": "the 4711 tool", "limit": 1}));
    assert_eq!(found[0].0, "many:4711_a_tool_with_a_long_name_which_goes_on_and_on");

    let mut client = home.stdio(&["--expose", "full"]);
    let (mut names, mut cursor) = (std::collections::HashSet::new(), json!({}));
    loop {
        let page = client.request("tools/list", &cursor);
        names.extend(
            page["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()),
        );
        match page["nextCursor"].as_str() {
            Some(next) => cursor = json!({"cursor": next}),
            None => break,
        }
    }
    assert!(names.iter().filter(|name| name.starts_with("many__")).count() == 5000, "{}", names.len());
    assert!(names.iter().all(|name| name.len() <= 64));
}
