//! Rules about tools, from `pml.toml` and from `mcp-permissions.yaml` beside it.

use super::complaints::complaints;
use super::*;

fn yaml(text: &str) -> Home {
    Home::new(&[("pml/mcp-permissions.yaml", text)])
}

/// The rules of a configuration, one per line.
fn rules(home: &Home) -> String {
    let config = home.load().unwrap();
    let line = |rule: &PermissionRule| {
        let mut words = Vec::new();
        words.extend(rule.approval.map(|approval| format!("{approval:?}")));
        words.extend(rule.deny.then(|| "deny".to_owned()));
        words.extend(rule.scope.map(|scope| scope.as_str().to_owned()));
        let attributes = [
            ("reads", rule.read_only),
            ("idempotent", rule.idempotent),
            ("open", rule.open_world),
            ("isolated", rule.isolated),
        ];
        for (name, value) in attributes {
            words.extend(value.map(|value| format!("{name}={value}")));
        }
        let (server, tool) = (rule.subject.server.as_str(), rule.subject.tool.as_str());
        format!("{} {}: {server} {tool}: {}\n", rule.place, rule.label, words.join(" "))
    };
    config.permissions.iter().map(line).collect()
}

#[test]
fn rules_are_read_in_both_spellings() {
    let home = user(
        r#"
[permissions]
memory = { approval_mode = "auto", isolated = true }
"memory:create_entities" = { approvalMode = "hil", readOnly = false, openWorld = true }
"github:search_*" = { scope = "readonly", read_only = true, idempotent = true, open_world = false }
"*:delete*" = { deny = true }
"*" = { scope = "standard" }
[permissions."docs:a:b"]
scope = "network-api"
deny = false
"#,
    );
    expect![[r#"
        ~/pml/pml.toml:3 `memory` in [permissions]: memory *: Auto isolated=true
        ~/pml/pml.toml:4 `memory:create_entities` in [permissions]: memory create_entities: Hil reads=false open=true
        ~/pml/pml.toml:5 `github:search_*` in [permissions]: github search_*: readonly reads=true idempotent=true open=false
        ~/pml/pml.toml:6 `*:delete*` in [permissions]: * delete*: deny
        ~/pml/pml.toml:7 `*` in [permissions]: * *: mcp-standard
        ~/pml/pml.toml:8 `docs:a:b` in [permissions]: docs a:b: network-api
    "#]].assert_eq(&rules(&home));
}

#[test]
fn rules_are_read_from_yaml() {
    let home = yaml(
        r#"# Who may do what.
---
filesystem:            # a server
  scope: filesystem
  approvalMode: hil
json: { permissionSet: minimal, isReadOnly: true }   # short form
"github:search_*": { scope: readonly, approvalMode: 'auto' }
old: {permissionSet: privileged, idempotent: False}
? web
: permissionSet: standard
  deny: TRUE
"#,
    );
    expect![[r#"
        ~/pml/mcp-permissions.yaml:3 `filesystem` in mcp-permissions.yaml: filesystem *: Hil filesystem
        ~/pml/mcp-permissions.yaml:6 `json` in mcp-permissions.yaml: json *: minimal reads=true
        ~/pml/mcp-permissions.yaml:7 `github:search_*` in mcp-permissions.yaml: github search_*: Auto readonly
        ~/pml/mcp-permissions.yaml:8 `old` in mcp-permissions.yaml: old *: mcp-standard idempotent=false
        ~/pml/mcp-permissions.yaml:9 `web` in mcp-permissions.yaml: web *: deny mcp-standard
    "#]]
    .assert_eq(&rules(&home));
    for nothing in ["", "# nothing yet\n", "---\n", "{}"] {
        assert_eq!(rules(&yaml(nothing)), "", "{nothing:?}");
    }
}

#[test]
fn both_files_count_and_may_not_say_the_same() {
    let home = user("[permissions]\nfs = { approval_mode = \"auto\" }\n");
    home.write("pml/mcp-permissions.yaml", "json: { approvalMode: auto }\n");
    expect![[r#"
        ~/pml/pml.toml:2 `fs` in [permissions]: fs *: Auto
        ~/pml/mcp-permissions.yaml:1 `json` in mcp-permissions.yaml: json *: Auto
    "#]]
    .assert_eq(&rules(&home));

    home.write("pml/mcp-permissions.yaml", "json: { approvalMode: auto }\n\"fs:*\": { approvalMode: hil }\n");
    expect![[r#"
        ~/pml/mcp-permissions.yaml:2:1: `fs:*` is about the same tools as `fs` in [permissions] at ~/pml/pml.toml:2
        hint: keep one of them"#]].assert_eq(&home.load().unwrap_err().to_string());
}

#[test]
fn wrong_rules_are_told_with_their_place() {
    expect![[r#"
        ~/pml/pml.toml:1:15: `permissions` must be a table, not a text
        hint: give it keys and values of its own
        ~/pml/pml.toml:2:6: `permissions.fs` must be a table, not a text
        hint: give it keys and values of its own
        ~/pml/pml.toml:2:8: unknown key `aproval_mode`
        hint: did you mean `approval_mode`?
        ~/pml/pml.toml:2:18: `permissions.fs.routing` is `here`
        hint: write "server", or "client" for tools that are on the machines of clients
        ~/pml/pml.toml:2:8: unknown key `isReadOnly`
        hint: did you mean `read_only`?
        ~/pml/pml.toml:2:24: `permissions.fs.approval_mode` is `ask`
        hint: write "auto", or "hil" to have a person asked
        ~/pml/pml.toml:2:24: `permissions.fs.approval_mode` must be a text, not true or false
        hint: write it in quotes
        ~/pml/pml.toml:2:16: `permissions.fs.scope` is `all`
        hint: write "minimal", "readonly", "filesystem", "network-api" or "mcp-standard"
        ~/pml/pml.toml:2:15: `permissions.fs.deny` must be true or false, not a text
        hint: write `true` or `false`, without quotes
        ~/pml/pml.toml:2:26: `permissions.fs.readOnly` is `read_only` in another spelling
        hint: keep one of them
        ~/pml/pml.toml:2:4: unknown key `write`
        hint: known here: `scope`, `approval_mode`, `deny`, `read_only`, `idempotent`, `open_world`, `isolated`, `closed`, `cache_ttl`, `speculate`, `routing`, `approvalMode`, `readOnly`, `openWorld`, `cacheTtl`
        ~/pml/pml.toml:2:1: `` names no tools
        hint: write a server (`github`), a tool (`"github:search"`) or a pattern (`"github:get_*"`)
        ~/pml/pml.toml:2:1: `fs:` names no tools
        hint: write a server (`github`), a tool (`"github:search"`) or a pattern (`"github:get_*"`)
        ~/pml/pml.toml:2:1: `fs: write` names no tools
        hint: write a server (`github`), a tool (`"github:search"`) or a pattern (`"github:get_*"`)
        ~/pml/pml.toml:2:1: `f s` names no tools
        hint: write a server (`github`), a tool (`"github:search"`) or a pattern (`"github:get_*"`)
        ~/pml/pml.toml:2:1: `f?*:x` names no tools
        hint: write a server (`github`), a tool (`"github:search"`) or a pattern (`"github:get_*"`)
        ~/pml/pml.toml:3:1: `fs:*` is about the same tools as `fs` in [permissions] at ~/pml/pml.toml:2
        hint: keep one of them
    "#]].assert_eq(&complaints(&[
        "permissions = \"auto\"",
        "[permissions]\nfs = \"auto\"",
        "[permissions]\nfs = { aproval_mode = \"auto\" }",
        "[permissions]\nfs = { routing = \"here\" }",
        "[permissions]\nfs = { isReadOnly = true }",
        "[permissions]\nfs = { approval_mode = \"ask\" }",
        "[permissions]\nfs = { approval_mode = true }",
        "[permissions]\nfs = { scope = \"all\" }",
        "[permissions]\nfs = { deny = \"yes\" }",
        "[permissions]\nfs = { read_only = true, readOnly = false }",
        "[permissions]\nfs.write = { deny = true }",
        "[permissions]\n\"\" = { deny = true }",
        "[permissions]\n\"fs:\" = { deny = true }",
        "[permissions]\n\"fs: write\" = { deny = true }",
        "[permissions]\n\"f s\" = { deny = true }",
        "[permissions]\n\"f?*:x\" = { deny = true }",
        "[permissions]\nfs = { deny = true }\n\"fs:*\" = { deny = true }",
    ]));
}

#[test]
fn wrong_yaml_is_told_with_its_place() {
    let deep = format!("a: {}", "[".repeat(200));
    let said: String = [
        "fs: auto\n",
        "- fs\n",
        "fs\n",
        "fs:\n  approvalMode: hil\n  isReadOnly: yes\n",
        "é: { deny: true }\n",
        "fs: { é: 1, cacheTtl: 60 }\n",
        "fs: { scope: 1.5 }\n",
        "fs: { scope: ~ }\n",
        "fs:\n  scope: readonly\n\tdeny: true\n",
        "*:delete*: { deny: true }\n",
        "fs: &a { deny: true }\njson: *a\n",
        "fs: !!map { deny: true }\n",
        "fs: { deny: true }\nfs: { deny: false }\n",
        "fs: { deny: true\n",
        "[fs]: { deny: true }\n",
        "fs: { deny: true }\n---\njson: { deny: true }\n",
        &deep,
    ]
    .iter()
    .map(|text| format!("{}\n", yaml(text).load().unwrap_err()))
    .collect();
    expect![[r#"
        ~/pml/mcp-permissions.yaml:1:5: `fs` must be a table, not a text
        hint: give it keys and values of its own
        ~/pml/mcp-permissions.yaml:1:1: the file must be a table, not a list
        hint: write `key: value`
        ~/pml/mcp-permissions.yaml:1:1: the file must be a table, not a text
        hint: write `key: value`
        ~/pml/mcp-permissions.yaml:3:15: `fs.isReadOnly` must be true or false, not a text
        hint: write `true` or `false`, without quotes
        ~/pml/mcp-permissions.yaml:1:1: `é` names no tools
        hint: write a server (`github`), a tool (`"github:search"`) or a pattern (`"github:get_*"`)
        ~/pml/mcp-permissions.yaml:1:7: unknown key `é`
        hint: known here: `scope`, `deny`, `idempotent`, `isolated`, `closed`, `speculate`, `routing`, `approvalMode`, `readOnly`, `openWorld`, `cacheTtl`, `permissionSet`, `isReadOnly`, `approval_mode`, `read_only`, `open_world`, `cache_ttl`
        ~/pml/mcp-permissions.yaml:1:14: `fs.scope` must be a text, not a number with a fraction
        hint: write it in quotes
        ~/pml/mcp-permissions.yaml:1:14: `fs.scope` must be a text, not null
        hint: write it in quotes
        ~/pml/mcp-permissions.yaml:2:10: not YAML: while scanning a plain scalar, found a tab
        hint: a key that starts with `*` stands in quotes, and tables are indented by spaces
        ~/pml/mcp-permissions.yaml:1:1: not YAML: while parsing node, found unknown anchor
        hint: a key that starts with `*` stands in quotes, and tables are indented by spaces
        ~/pml/mcp-permissions.yaml:2:7: aliases are not read
        hint: write the values out; a key that starts with `*` stands in quotes
        ~/pml/mcp-permissions.yaml:1:5: tags are not read
        hint: remove what starts with `!`
        ~/pml/mcp-permissions.yaml:2:1: the key `fs` appears twice
        hint: keep one of them
        ~/pml/mcp-permissions.yaml:2:1: not YAML: while parsing a flow mapping, did not find expected ',' or '}'
        hint: a key that starts with `*` stands in quotes, and tables are indented by spaces
        ~/pml/mcp-permissions.yaml:1:1: a key must be a text
        hint: write `key: value`
        ~/pml/mcp-permissions.yaml:2:1: a second document starts here
        hint: keep everything in one
        ~/pml/mcp-permissions.yaml:1:131: nested deeper than 128 levels
        hint: rules need two
    "#]].assert_eq(&said);
}

#[test]
fn a_misspelled_server_is_told() {
    let home = user(
        r#"
[servers.github]
command = "x"
[permissions]
"githib:delete*" = { deny = true }
"GitHub" = { deny = true }
"github:delete*" = { deny = true }
"git*" = { deny = true }
fs = { deny = true }
another-project = { deny = true }
"#,
    );
    let said: String =
        home.load().unwrap().findings.warnings.iter().map(|warning| format!("{warning}\n")).collect();
    expect![[r#"
        ~/pml/pml.toml:5: `githib:delete*` in [permissions] is about no server there is
        hint: did you mean `github`?
        ~/pml/pml.toml:6: `GitHub` in [permissions] is about no server there is
        hint: did you mean `github`?
    "#]]
    .assert_eq(&said);
}

#[test]
fn the_file_beside_is_watched() {
    let home = Home::new(&[]);
    let config = home.load().unwrap();
    let mut watcher = ConfigWatcher::new(&config.findings.sources);
    home.write("pml/mcp-permissions.yaml", "fs: { deny: true }\n");
    assert_eq!(watcher.poll(), [home.path("pml/mcp-permissions.yaml")]);
}
