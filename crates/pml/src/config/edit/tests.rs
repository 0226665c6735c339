//! Tests of edits: the bytes before and after.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use expect_test::{Expect, expect};

use super::*;
use crate::config::ApprovalMode;

const CONFIG: &str = "\
# my servers   (two spaces, kept)
expose  =  'full'   # odd spacing

# the code host
[servers.github] # header comment
command = \"npx\"
args = [
  \"-y\", # yes
]

[servers.github.env]
TOKEN = '${TOKEN}'

# ---- a section of its own ----

# the web
[servers.search]
url = \"https://example.com/mcp\"

[serve]
listen = \"127.0.0.1:1\" # last
";

fn config(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pml.toml");
    fs::write(&path, text).unwrap();
    (dir, path)
}

fn stdio(name: &str, command: &str, args: &[&str]) -> NewServer {
    NewServer {
        name: ServerName::new(name).unwrap(),
        declared: DeclaredTransport::Stdio {
            command: command.to_owned(),
            args: args.iter().map(ToString::to_string).collect(),
            env: BTreeMap::from([("KEY".to_owned(), "${KEY}".to_owned())]),
            cwd: None,
        },
        description: Some("says \"hi\"".to_owned()),
        enabled: true,
        call_timeout: None,
        start_timeout: None,
    }
}

#[track_caller]
fn check(text: &str, edit: impl FnOnce(&Path), expected: &Expect) {
    let (_dir, path) = config(text);
    edit(&path);
    expected.assert_eq(&fs::read_to_string(&path).unwrap());
}

#[test]
fn the_starter_config_is_valid_private_and_never_overwrites() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new/pml/pml.toml");
    assert_eq!(init(&path).unwrap(), InitOutcome::Created);
    assert!(read(&path, STARTER).unwrap().drafts.is_empty());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    }
    fs::write(&path, "# mine").unwrap();
    assert_eq!(init(&path).unwrap(), InitOutcome::AlreadyThere);
    assert_eq!(fs::read_to_string(&path).unwrap(), "# mine");
}

#[test]
fn every_setting_the_starter_shows_is_a_setting() {
    let shown: String = STARTER
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(code) if code.starts_with('[') || code.contains(" = ") => format!("{code}\n"),
            _ => "\n".to_owned(),
        })
        .collect();
    let settings = read(Path::new("/x/pml.toml"), &shown).unwrap();
    assert_eq!(settings.drafts.len(), 2);
    assert_eq!(settings.builtin.http_hosts, ["api.example.com"]);
    assert_eq!(settings.permissions.len(), 2);
}

#[test]
fn adding_leaves_every_other_byte() {
    let (_dir, path) = config(CONFIG);
    add_server(&path, &stdio("new", "a b", &["x\"y", "'", "\\"]), ExistingServer::Keep).unwrap();
    let edited = fs::read_to_string(&path).unwrap();
    let added = edited.strip_prefix(CONFIG).expect("the old text stays in front");
    expect![[r#"

        [servers.new]
        description = 'says "hi"'
        command = "a b"
        args = ['x"y', "'", '\']
        env = { KEY = "${KEY}" }
    "#]]
    .assert_eq(added);
}

#[test]
fn removing_takes_the_server_and_its_own_comment_only() {
    check(
        CONFIG,
        |path| assert!(remove_server(path, "github").unwrap()),
        &expect![[r##"
        # my servers   (two spaces, kept)
        expose  =  'full'   # odd spacing

        # ---- a section of its own ----

        # the web
        [servers.search]
        url = "https://example.com/mcp"

        [serve]
        listen = "127.0.0.1:1" # last
    "##]],
    );
    check(
        CONFIG,
        |path| assert!(remove_server(path, "search").unwrap()),
        &expect![[r##"
        # my servers   (two spaces, kept)
        expose  =  'full'   # odd spacing

        # the code host
        [servers.github] # header comment
        command = "npx"
        args = [
          "-y", # yes
        ]

        [servers.github.env]
        TOKEN = '${TOKEN}'

        # ---- a section of its own ----

        [serve]
        listen = "127.0.0.1:1" # last
    "##]],
    );
}

#[test]
fn adding_and_removing_gives_the_same_bytes_back() {
    for text in
        [CONFIG, STARTER, "", &CONFIG.replace('\n', "\r\n"), "servers = { a = { command = \"x\" } }\n"]
    {
        let (_dir, path) = config(text);
        add_server(&path, &stdio("new", "x", &[]), ExistingServer::Keep).unwrap();
        assert_eq!(
            read(&path, &fs::read_to_string(&path).unwrap()).unwrap().drafts.last().unwrap().name,
            "new"
        );
        assert!(remove_server(&path, "new").unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap().trim_end(), text.trim_end());
    }
}

#[test]
fn replacing_happens_in_place() {
    let replace =
        |path: &Path| add_server(path, &stdio("github", "x", &[]), ExistingServer::Replace).unwrap();
    check(
        CONFIG,
        replace,
        &expect![[r##"
        # my servers   (two spaces, kept)
        expose  =  'full'   # odd spacing

        # the code host
        [servers.github]
        description = 'says "hi"'
        command = "x"
        env = { KEY = "${KEY}" }

        # ---- a section of its own ----

        # the web
        [servers.search]
        url = "https://example.com/mcp"

        [serve]
        listen = "127.0.0.1:1" # last
    "##]],
    );
    check(
        "servers.github.command = \"old\"\n# end\n",
        replace,
        &expect![[r#"
        servers.github = { description = 'says "hi"', command = "x", env = { KEY = "${KEY}" } }
        # end
    "#]],
    );
}

#[test]
fn what_is_not_there_is_not_removed() {
    check(
        "# only this\n",
        |path| assert!(!remove_server(path, "github").unwrap()),
        &expect![["
        # only this
    "]],
    );
    assert!(!remove_server(Path::new("/nonexistent/pml.toml"), "github").unwrap());
}

#[test]
fn names_that_are_taken_or_alike_are_refused_and_nothing_is_written() {
    let (_dir, path) = config(CONFIG);
    let refused = |name: &str| {
        let error = add_server(&path, &stdio(name, "x", &[]), ExistingServer::Keep).unwrap_err().to_string();
        error.replace(path.to_str().unwrap(), "PATH")
    };
    expect![[r#"
        `PATH` already has a server `github`
        hint: choose another name, or replace it
        `GitHub` could be taken for the server `github` of `PATH`
        hint: choose another name
        `fs` could be taken for the built-in server `fs`
        hint: choose another name, or set `enabled = false` in `[builtin.fs]`"#]]
    .assert_eq(&[refused("github"), refused("GitHub"), refused("fs")].join("\n"));
    assert_eq!(fs::read_to_string(&path).unwrap(), CONFIG);
}

#[test]
fn a_broken_config_is_told_and_not_touched() {
    let (_dir, path) = config("[servers.x]\ncomand = 1\n");
    let error = add_server(&path, &stdio("new", "x", &[]), ExistingServer::Keep).unwrap_err().to_string();
    assert!(error.contains(":2:1: unknown key `comand`"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "[servers.x]\ncomand = 1\n");
}

#[cfg(unix)]
#[test]
fn an_edit_keeps_mode_and_symbolic_link() {
    use std::os::unix::fs::PermissionsExt as _;
    let (dir, path) = config(CONFIG);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let link = dir.path().join("link.toml");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(remove_server(&link, "search").unwrap());
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(!fs::read_to_string(&path).unwrap().contains("search"));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "no temporary file stays");
}

fn accepted(server: &str) -> Vec<NewPermissionRule> {
    let rule = |subject: String, approval| NewPermissionRule { subject, approval };
    vec![
        rule(server.to_owned(), ApprovalMode::Hil),
        rule(format!("{server}:get"), ApprovalMode::Auto),
        rule(format!("{server}:list \"all\""), ApprovalMode::Auto),
    ]
}

#[test]
fn rules_are_added_where_rules_stand() {
    let has = "[permissions] # mine\ndynamic = \"ask\"\nfs = { approval_mode = \"auto\" } # yes\n\n# next\n[serve]\nlisten = \"127.0.0.1:1\"\n";
    check(
        has,
        |path| add_rules(path, &accepted("new")).unwrap(),
        &expect![[r#"
        [permissions] # mine
        dynamic = "ask"
        fs = { approval_mode = "auto" } # yes
        new = { approval_mode = "hil" }
        "new:get" = { approval_mode = "auto", read_only = true }
        'new:list "all"' = { approval_mode = "auto", read_only = true }

        # next
        [serve]
        listen = "127.0.0.1:1"
    "#]],
    );
    let empty = "[permissions]";
    check(
        empty,
        |path| add_rules(path, &accepted("new")).unwrap(),
        &expect![[r#"
        [permissions]
        new = { approval_mode = "hil" }
        "new:get" = { approval_mode = "auto", read_only = true }
        'new:list "all"' = { approval_mode = "auto", read_only = true }
    "#]],
    );
    let inline = "permissions = { fs = { deny = true } }\n";
    check(
        inline,
        |path| add_rules(path, &accepted("new")).unwrap(),
        &expect![[r#"
        permissions = { fs = { deny = true } , new = { approval_mode = "hil" }, "new:get" = { approval_mode = "auto", read_only = true }, 'new:list "all"' = { approval_mode = "auto", read_only = true } }
    "#]],
    );
    let below = "[permissions.\"fs:read\"]\ndeny = true\n";
    check(
        below,
        |path| add_rules(path, &accepted("new")).unwrap(),
        &expect![[r#"
        [permissions."fs:read"]
        deny = true

        [permissions]
        new = { approval_mode = "hil" }
        "new:get" = { approval_mode = "auto", read_only = true }
        'new:list "all"' = { approval_mode = "auto", read_only = true }
    "#]],
    );
}

#[test]
fn rules_go_with_their_server_and_give_the_same_bytes_back() {
    let own = "[permissions]\n\"new:get*\" = { approval_mode = \"auto\" }\n\"new:drop\" = { deny = true }\n";
    for text in [CONFIG, STARTER, "", &CONFIG.replace('\n', "\r\n"), own] {
        let (_dir, path) = config(text);
        add_server(&path, &stdio("new", "x", &[]), ExistingServer::Keep).unwrap();
        add_rules(&path, &accepted("new")).unwrap();
        let rules = read(&path, &fs::read_to_string(&path).unwrap()).unwrap().permissions;
        assert!(rules.iter().any(|rule| rule.subject.covers("new", "list \"all\"")), "{rules:?}");
        assert!(remove_server(&path, "new").unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap().trim_end(), text.trim_end());
    }
}

#[test]
fn a_rule_about_the_same_tools_is_not_written_twice() {
    let (_dir, path) = config("[permissions]\n\"new:*\" = { approval_mode = \"auto\" }\n");
    let before = fs::read_to_string(&path).unwrap();
    assert!(add_rules(&path, &accepted("new")).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
}
