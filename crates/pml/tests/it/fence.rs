//! The built-in `fs` and PML's own files, in the layout of a person's home directory.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Client, text};

/// A home directory with a configuration, a database, a key, a token and a backup in their usual places.
struct Person {
    dir: tempfile::TempDir,
}

const AUTO: &str = "expose = \"full\"\n[permissions]\nfs = { approval_mode = \"auto\" }\n";
const CONFIG: &str = ".config/pml/pml.toml";
const DATA: &str = ".local/share/pml";

impl Person {
    fn new(more: &str) -> Person {
        let person = Person { dir: tempfile::tempdir().unwrap() };
        for dir in [".config/pml", ".local/share/pml/backups/old", "work", "work/project"] {
            std::fs::create_dir_all(person.path(dir)).unwrap();
        }
        person.write(CONFIG, &format!("{AUTO}{more}"));
        person.write(".local/share/pml/backups/old/pml.db", "canary-backup");
        person.write("work/mine.txt", "mine");
        // Makes the database and the key.
        let program = json!({ "type": "code", "code": "return 1" });
        let told = person
            .client("work")
            .call("pml_execute", &json!({ "intent": "count", "implementation": program }));
        assert_eq!(told["structuredContent"]["status"], "success", "{told}");
        person.write(".local/share/pml/token", "canary-token");
        assert!(person.path(DATA).join("seal.key").exists());
        person
    }

    fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join("ada").join(below)
    }

    fn write(&self, below: &str, content: &str) {
        std::fs::write(self.path(below), content).unwrap();
    }

    /// A `pml` that is started in a directory below the home.
    fn command(&self, cwd: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pml"));
        command.args(args).current_dir(self.path(cwd)).env_clear().env("HOME", self.path(""));
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    fn client(&self, cwd: &str) -> Client {
        opened(self.command(cwd, &["stdio"]))
    }

    /// Every file below `dir`, with its content.
    fn files(&self, dir: &str) -> Vec<(PathBuf, Vec<u8>)> {
        let (mut open, mut files) = (vec![self.path(dir)], Vec::new());
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
                match entry.file_type().unwrap().is_dir() {
                    true => open.push(entry.path()),
                    false => files.push((entry.path(), std::fs::read(entry.path()).unwrap())),
                }
            }
        }
        files.sort();
        files
    }
}

fn opened(command: Command) -> Client {
    let mut client = Client::start(command);
    client.initialize();
    client
}

/// Every tool of `fs`, used on `path`.
fn uses(path: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("stat", json!({ "path": path })),
        ("read", json!({ "path": path })),
        ("list", json!({ "path": path })),
        ("search", json!({ "path": path, "contains": "canary" })),
        ("create", json!({ "path": path, "content": "overwritten" })),
        ("write", json!({ "path": path, "content": "overwritten" })),
        ("write", json!({ "path": path, "content": "more", "append": true })),
        ("delete", json!({ "path": path, "recursive": true })),
    ]
}

/// Uses every tool on `path`, by itself and in a program; each use is refused with the reason.
#[track_caller]
fn assert_out_of_reach(client: &mut Client, path: &str) {
    for (tool, arguments) in uses(path) {
        let told = client.call(&format!("fs__{tool}"), &arguments);
        assert_eq!(told["isError"], true, "{tool} {path}: {told}");
        assert!(text(&told).contains("PML's own files"), "{tool} {path}: {told}");
        let code =
            format!("try {{ return await mcp.fs.{tool}(args) }} catch (error) {{ return error.message }}");
        let program = json!({ "type": "code", "code": code });
        let asked = json!({ "intent": "reach it", "implementation": program, "context": arguments, "options": { "cache": false } });
        let told = client.call("pml_execute", &asked);
        let result = told["structuredContent"]["result"].as_str().unwrap_or_default();
        assert!(result.contains("PML's own files"), "{tool} {path}: {told}");
    }
}

/// What PML keeps apart from its database, which changes while it runs.
fn kept(person: &Person) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = person.files(".config");
    files.extend(person.files(DATA));
    let changes = |path: &PathBuf| {
        ["pml/pml.db", "pml/audit."].iter().any(|name| path.display().to_string().contains(name))
    };
    files.retain(|(path, _)| !changes(path));
    files
}

#[test]
fn own_files_are_out_of_reach_by_every_way_to_them() {
    let person = Person::new("[builtin.fs]\nroot = \"~\"\n");
    let at = |below: &str| person.path(below);
    let mut client = person.client("work");
    client
        .call("pml_execute", &json!({"intent": "x", "implementation": {"type": "code", "code": "return 1"}}));
    let before = kept(&person);
    symlink("../.local/share/pml/seal.key", at("work/link")).unwrap();
    symlink("../.local/share/pml", at("work/linked")).unwrap();
    symlink("../../.config", at("work/project/up")).unwrap();
    std::fs::hard_link(at(DATA).join("seal.key"), at("work/hard.key")).unwrap();
    std::fs::hard_link(at(CONFIG), at("work/hard.toml")).unwrap();
    std::fs::hard_link(at(DATA).join("backups/old/pml.db"), at("work/project/hard.db")).unwrap();
    for path in [
        CONFIG,
        ".config/pml",
        ".config/pml/mcp-permissions.yaml",
        ".config/pml/new/deep.txt",
        DATA,
        ".local/share/pml/seal.key",
        ".local/share/pml/token",
        ".local/share/pml/pml.db",
        ".local/share/pml/pml.db-wal",
        ".local/share/pml/passphrase",
        ".local/share/pml/trust.json",
        ".local/share/pml/backups",
        ".local/share/pml/backups/old/pml.db",
        "./.local//share/./pml/token",
        "work/link",
        "work/linked",
        "work/linked/token",
        "work/linked/backups/old",
        "work/project/up/pml/pml.toml",
        "work/project/up/pml/fresh.yaml",
        "work/hard.key",
        "work/hard.toml",
        "work/project/hard.db",
    ] {
        assert_out_of_reach(&mut client, path);
    }
    // Directories that hold PML's cannot be removed with all that is in them, and say so before anything is gone.
    for path in [".config", ".local", ".local/share"] {
        let told = client.call("fs__delete", &json!({ "path": path, "recursive": true }));
        assert!(text(&told).contains("PML's own files"), "{path}: {told}");
    }
    assert_eq!(kept(&person), before);
    // What is not PML's is in reach as ever.
    let told = client.call("fs__read", &json!({ "path": "work/mine.txt" }));
    assert_eq!(told["structuredContent"]["content"], "mine", "{told}");
    for (path, content) in [("work/new/deep.txt", "new"), (".config/other/x.toml", "other")] {
        let told = client.call("fs__create", &json!({ "path": path, "content": content }));
        assert_ne!(told["isError"], true, "{told}");
        assert_eq!(std::fs::read_to_string(at(path)).unwrap(), content);
    }
    let told = client.call("fs__delete", &json!({ "path": ".config/other", "recursive": true }));
    assert_eq!(told["structuredContent"]["deleted"], true, "{told}");
}

#[test]
fn own_files_are_left_out_of_lists_and_searches_and_counted() {
    let person = Person::new("[builtin.fs]\nroot = \"~\"\n");
    std::fs::hard_link(person.path(DATA).join("token"), person.path("work/hard")).unwrap();
    person.write("work/canary.txt", "a canary of mine");
    let mut client = person.client("work");
    let told = client.call("fs__list", &json!({ "recursive": true }));
    let told = &told["structuredContent"];
    let paths: Vec<&str> =
        told["entries"].as_array().unwrap().iter().map(|entry| entry["path"].as_str().unwrap()).collect();
    let expected =
        [".config", ".local", ".local/share", "work", "work/canary.txt", "work/mine.txt", "work/project"];
    assert_eq!(paths, expected);
    assert_eq!(told["skipped"], 3, "both directories and the link: {told}");
    for asked in [json!({ "contains": "canary" }), json!({ "pattern": "*", "contains": "canary" })] {
        let told = client.call("fs__search", &asked);
        let told = &told["structuredContent"];
        assert_eq!(told["matches"].as_array().unwrap().len(), 1, "{told}");
        assert_eq!(told["matches"][0]["path"], "work/canary.txt");
    }
    let told = client.call("fs__search", &json!({ "pattern": "{token,*.key,pml.*}" }));
    assert_eq!(told["structuredContent"]["matches"], json!([]), "{told}");
}

#[test]
fn a_program_cannot_loosen_the_rules_that_hold_it() {
    let person = Person::new("[builtin.fs]\nroot = \"~\"\n");
    person
        .write(CONFIG, &format!("{AUTO}json = {{ approval_mode = \"hil\" }}\n[builtin.fs]\nroot = \"~\"\n"));
    let before = std::fs::read_to_string(person.path(CONFIG)).unwrap();
    let mut client = person.client("");
    for path in [CONFIG, ".config/pml/mcp-permissions.yaml"] {
        let loosened = json!({ "path": path, "content": "json: { approvalMode: auto }" });
        let told = client.call("fs__write", &loosened);
        assert_eq!(told["isError"], true, "{told}");
    }
    assert_eq!(std::fs::read_to_string(person.path(CONFIG)).unwrap(), before);
    assert!(!person.path(".config/pml/mcp-permissions.yaml").exists());
}

#[test]
fn configuration_is_out_of_reach_wherever_it_is() {
    let person = Person::new("");
    person.write("work/secret.txt", "canary");
    person.write("work/servers.json", "{}");
    person.write(
        "work/own.toml",
        &format!(
            "import = [\"servers.json\"]\n{AUTO}[servers.off]\nurl = \"https://example.com/mcp\"\nenabled = false\n\
             headers = {{ X-Key = \"${{file:secret.txt}}\" }}\n"
        ),
    );
    person.write("work/project/pml.toml", "[servers.other]\ncommand = \"true\"\nenabled = false\n");
    person.write("work/notes.toml", "x = 1");
    let with_config = |args: &[&str]| {
        let config = person.path("work/own.toml").display().to_string();
        person.command("work", &[&["--config", &config], args].concat())
    };
    let mut client = opened(with_config(&["stdio"]));
    for path in ["own.toml", "mcp-permissions.yaml", "secret.txt", "servers.json"] {
        assert_out_of_reach(&mut client, path);
    }
    // What nobody trusts is no configuration, and neither is what else lies beside one.
    for path in ["notes.toml", "project/pml.toml"] {
        let told = client.call("fs__read", &json!({ "path": path }));
        assert_ne!(told["isError"], true, "{told}");
    }
    let trusted = person.command("work", &["trust", "project"]).output().unwrap();
    assert!(trusted.status.success(), "{trusted:?}");
    let mut client = person.client("work/project");
    assert_out_of_reach(&mut client, "pml.toml");
}

/// Where the directory of PML's files is also that of somebody's work, theirs stay in reach and PML's do not.
#[test]
fn in_a_directory_shared_with_others_only_own_files_are_out_of_reach() {
    let person = Person::new("");
    person.write("work/pml.toml", AUTO);
    let mut command = person.command("work", &["stdio"]);
    command.env("PML_HOME", person.path("work"));
    let mut client = opened(command);
    client
        .call("pml_execute", &json!({"intent": "x", "implementation": {"type": "code", "code": "return 1"}}));
    person.write("work/token", "canary");
    for path in [
        "pml.toml",
        "pml.db",
        "pml.db-wal",
        "token",
        "seal.key",
        "mcp-permissions.yaml",
        "backups/x",
        "passphrase",
    ] {
        assert_out_of_reach(&mut client, path);
    }
    let told = client.call("fs__list", &json!({}));
    let entries = told["structuredContent"]["entries"].as_array().unwrap();
    let paths: Vec<&str> = entries.iter().map(|entry| entry["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["mine.txt", "project"], "every file PML makes is known as its own");
    let told = client.call("fs__write", &json!({ "path": "mine.txt", "content": "new" }));
    assert_eq!(told["structuredContent"]["size"], 3, "{told}");
}

#[test]
fn a_bind_mount_leads_no_further() {
    let person = Person::new("[builtin.fs]\nroot = \"~/work\"\n");
    std::fs::create_dir(person.path("work/mounted")).unwrap();
    std::fs::create_dir(person.path("work/above")).unwrap();
    person.write("work/file", "");
    let shell = |then: &str| {
        let mounts = format!(
            "mount --bind {data} mounted && mount --bind {data}/token file && mount --bind {home} above && {then}",
            data = person.path(DATA).display(),
            home = person.path("").display(),
        );
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &mounts]).current_dir(person.path("work"));
        command
            .env_clear()
            .env("HOME", person.path(""))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    };
    let tried = shell("true").output();
    if !tried.as_ref().is_ok_and(|tried| tried.status.success()) {
        eprintln!("skipped: this system lets no test mount anything: {tried:?}");
        return;
    }
    let mut client = opened(shell(&format!("exec {} stdio", env!("CARGO_BIN_EXE_pml"))));
    for path in [
        "mounted",
        "mounted/token",
        "mounted/fresh",
        "file",
        "above/.local/share/pml/token",
        "above/.config/pml",
    ] {
        assert_out_of_reach(&mut client, path);
    }
    let told = client.call("fs__search", &json!({ "contains": "canary" }));
    assert_eq!(told["structuredContent"]["matches"], json!([]), "{told}");
    let told = client.call("fs__delete", &json!({ "path": "above", "recursive": true }));
    assert!(text(&told).contains("PML's own files"), "{told}");
    assert!(person.path("work/mine.txt").exists());
}

#[test]
fn the_memory_of_processes_is_no_file() {
    let person = Person::new("[builtin.fs]\nroot = \"/\"\n");
    let mut client = person.client("work");
    if !Path::new("/proc/self/environ").exists() {
        return;
    }
    let pid = client.child.id();
    for path in ["proc/self/environ".to_owned(), format!("proc/{pid}/mem"), format!("proc/{pid}/cmdline")] {
        let told = client.call("fs__read", &json!({ "path": path, "encoding": "base64" }));
        assert_eq!(told["isError"], true, "{path}: {told}");
    }
}

#[test]
fn without_a_named_root_fs_is_off_in_a_home_directory_and_at_the_top() {
    let person = Person::new("");
    for (cwd, what) in [(person.path(""), "a home directory"), (PathBuf::from("/"), "the whole file system")]
    {
        let run = |args: &[&str]| {
            let output = person.command("", args).current_dir(&cwd).output().unwrap();
            String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
        };
        let mut command = person.command("", &["stdio"]);
        command.current_dir(&cwd);
        let mut client = opened(command);
        let program = json!({ "type": "code", "code": "return mcp.fs.read({ path: 'work/mine.txt' })" });
        let task = json!({ "id": "a", "tool": "fs:read", "arguments": { "path": "work/mine.txt" } });
        let dag = json!({ "type": "dag", "dagStructure": { "tasks": [task] } });
        let told = [
            client.call("fs__read", &json!({ "path": "work/mine.txt" })).to_string(),
            client.call("fs:read", &json!({ "path": "work/mine.txt" })).to_string(),
            client.call("pml_execute", &json!({ "intent": "read", "implementation": program })).to_string(),
            client.call("pml_execute", &json!({ "intent": "read", "implementation": dag })).to_string(),
            run(&["call", "fs:read", "--args", r#"{"path":"work/mine.txt"}"#]),
            run(&["doctor"]),
        ];
        for told in told {
            assert!(told.contains("the built-in server `fs` is off") && told.contains(what), "{told}");
            assert!(told.contains("[builtin.fs]"), "the way out: {told}");
        }
        let listed = run(&["list"]);
        assert!(listed.lines().any(|line| line.starts_with("fs ") && line.contains("off")), "{listed}");
    }
    // Below the home it is on, and so it is where the configuration names the home.
    let mut client = person.client("work");
    assert_eq!(
        client.call("fs__read", &json!({ "path": "mine.txt" }))["structuredContent"]["content"],
        "mine"
    );
    person.write(CONFIG, &format!("{AUTO}[builtin.fs]\nroot = \"~\"\n"));
    let mut client = person.client("");
    assert_eq!(
        client.call("fs__read", &json!({ "path": "work/mine.txt" }))["structuredContent"]["content"],
        "mine"
    );
    person.write(CONFIG, &format!("{AUTO}[builtin.fs]\nenabled = false\n"));
    let doctor = person.command("", &["doctor"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&doctor.stdout).contains("`fs` is off"), "switched off is no news");
}
