//! Servers from the files of other programs.

use super::*;

const IMPORT: &str = "import = [\"~/clients/mcp.json\"]\n";

fn import(json: &str) -> Home {
    Home::new(&[("pml/pml.toml", IMPORT), ("clients/mcp.json", json)])
}

#[test]
fn other_programs_servers_are_imported() {
    let home = import(
        r#"{
  // as editors write it
  "inputs": [{"type": "promptString"}],
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "a//b"], "env": {"T": "${TOKEN}"}, "type": "stdio", "alwaysAllow": []},
    "off": {"command": "x", "disabled": true},
  },
  "servers": { /* the other key */
    "remote": {"type": "streamable-http", "url": "https://example.com/mcp", "headers": {"A": "b"}},
    "older": {"type": "sse", "url": "https://example.com/sse"},
    "surf": {"serverUrl": "https://example.com/mcp", "env": {}}
  }
}"#,
    );
    let config = home.load().unwrap();
    assert_eq!(problems(&config), "");
    assert_eq!(names(&config), ["files", "off", "remote", "older", "surf"]);
    let ServerTransport::Stdio { args, env, .. } = &config.servers[0].transport else { panic!() };
    assert_eq!((args[1].as_str(), env["T"].as_str()), ("a//b", "s3cret"));
    assert!(!config.servers[1].enabled);
    assert_eq!(config.servers[2].source, home.path("clients/mcp.json"));
}

#[test]
fn a_broken_import_is_told_with_its_place() {
    let texts = [
        "{\n  \"mcpServers\": {\n    \"é\": {\"command\": \"x\" \"args\": []}\n  }\n}",
        "[]",
        "",
        "{\"mcpServers\": []}",
        "{\"mcpServers\": {}",
    ];
    let said: String = texts.iter().map(|text| format!("{}\n", import(text).load().unwrap_err())).collect();
    expect![[r#"
        ~/clients/mcp.json:3:26: not JSON: expected `,` or `}`
        hint: the file must be an object with `mcpServers` or `servers`
        ~/clients/mcp.json:1:1: not JSON: invalid type: sequence, expected an object
        hint: the file must be an object with `mcpServers` or `servers`
        ~/clients/mcp.json:1:1: not JSON: EOF while parsing a value
        hint: the file must be an object with `mcpServers` or `servers`
        ~/clients/mcp.json:1:16: `mcpServers` must be a table, not a list
        hint: give it keys and values of its own
        ~/clients/mcp.json:1:17: not JSON: EOF while parsing an object
        hint: the file must be an object with `mcpServers` or `servers`
    "#]]
    .assert_eq(&said);
    let deep = format!("{{\"x\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    expect![[r#"
        ~/clients/mcp.json:1:1: nested deeper than 128 levels
        hint: name a file of `mcpServers`"#]]
    .assert_eq(&import(&deep).load().unwrap_err().to_string());
}

#[test]
fn one_bad_server_of_an_import_leaves_the_others() {
    let config = import(
        r#"{"mcpServers": {
  "typo": {"comand": "npx"},
  "both": {"command": "x",
           "url": "https://x/"},
  "list": {"command": "x", "args": "a b"},
  "kind": {"type": "http", "command": "x"},
  "my server": {"command": "x"},
  "bad\"quote\\": 7,
  "unset": {"command": "x", "env": {"A": "${NOT_SET}"}},
  "good": {"command": "x"},
  "good": {"command": "y"}
}}"#,
    )
    .load()
    .unwrap();
    assert_eq!(names(&config), ["good"]);
    expect![[r#"
        ~/clients/mcp.json:2:11: `mcpServers.typo` has neither `command` nor `url`
        hint: did you mean `command`?
        ~/clients/mcp.json:4:12: `mcpServers.both` has both `command` and `url`
        hint: keep `command` for a program to start, or `url` for a server to reach
        ~/clients/mcp.json:5:36: `mcpServers.list.args` must be a list of texts, not a text
        hint: write it as ["one", "two"]
        ~/clients/mcp.json:6:20: `mcpServers.kind.type` is `http`
        hint: a server with `command` is of type "stdio"
        ~/clients/mcp.json:8:19: `mcpServers.bad"quote\` must be a table, not a number
        hint: give it keys and values of its own
        ~/clients/mcp.json:7:3: server name `my server` contains ' '; use ASCII letters, digits, `_` and `-`, such as `my-server`
        hint: give it another name
        ~/clients/mcp.json:9:3: server `unset` is left out: the variable `NOT_SET` is not set
        hint: set `NOT_SET` in the environment PML is started in
        ~/clients/mcp.json:11:3: server `good` is left out: its name belongs to the server `good` at ~/clients/mcp.json:10
        hint: rename one of them
    "#]].assert_eq(&problems(&config));
}

#[test]
fn a_missing_import_is_a_warning_and_watched() {
    let home = user(IMPORT);
    let config = home.load().unwrap();
    assert_eq!(
        config.findings.warnings[0].to_string(),
        "~/pml/pml.toml:1: the file `~/clients/mcp.json` does not exist\n\
         hint: remove it from `import`; it is used as soon as it exists"
    );
    let mut watcher = ConfigWatcher::new(&config.findings.sources);
    assert!(watcher.poll().is_empty());
    home.write("clients/mcp.json", "{}");
    assert_eq!(watcher.poll(), [home.path("clients/mcp.json")]);
}
