//! `pml init` and `pml setup` with the files of every client, under a home directory of their own.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use pml_clients::{CLIENTS, Directories, ResolvedLocation, System};
use serde_json::Value;

use crate::harness::{Finished, Home};

/// A home directory with clients in it, and a project.
struct Machine {
    home: Home,
}

impl Machine {
    fn new() -> Machine {
        let home = Home::new("");
        for below in ["home", "project", "appdata"] {
            std::fs::create_dir(home.path(below)).unwrap();
        }
        Machine { home }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.home.path("home").join(below)
    }

    fn write(&self, below: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(below);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(args);
        command.current_dir(self.home.path("project")).env("NO_COLOR", "1");
        command.env("XDG_CONFIG_HOME", self.path(".config")).env("APPDATA", self.home.path("appdata"));
        command
    }

    fn run(&self, args: &[&str]) -> Finished {
        let output = self.command(args).stdin(std::process::Stdio::null()).output().unwrap();
        Finished {
            code: output.status.code().unwrap_or(-1),
            stdout: self.plain(&String::from_utf8(output.stdout).unwrap()),
            stderr: self.plain(&String::from_utf8(output.stderr).unwrap()),
        }
    }

    fn json(&self, args: &[&str]) -> Value {
        let done = self.run(&[&["--json"], args].concat());
        serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{done:?}"))
    }

    fn plain(&self, text: &str) -> String {
        let here = self.home.path("");
        text.replace(here.to_str().unwrap().trim_end_matches('/'), "HERE")
            .replace(env!("CARGO_BIN_EXE_pml"), "PML")
    }

    fn config(&self) -> String {
        self.plain(&std::fs::read_to_string(self.home.path("pml.toml")).unwrap())
    }
}

fn locations(machine: &Machine, client: &pml_clients::Client) -> Vec<ResolvedLocation> {
    let project = machine.home.path("project").canonicalize().unwrap();
    let home = machine.path("");
    client.resolve(&Directories {
        project: Some(project.to_str().unwrap().to_owned()),
        ..Directories::below(home.to_str().unwrap().trim_end_matches('/'), System::Linux)
    })
}

/// Every fixture of every client: imported, PML put in its place, taken back, identical bytes.
#[test]
fn every_fixture_is_imported_registered_and_given_back() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pml-clients/tests/fixtures");
    let mut checked = 0;
    for client in CLIENTS {
        for entry in std::fs::read_dir(fixtures.join(client.id)).unwrap() {
            let fixture = entry.unwrap();
            let name = fixture.file_name().into_string().unwrap();
            let index: usize = name.split('-').next().unwrap().parse().unwrap();
            let machine = Machine::new();
            let location = locations(&machine, client)[index].clone();
            let project = machine.home.path("project").canonicalize().unwrap();
            let bytes = std::fs::read_to_string(fixture.path())
                .unwrap()
                .replace("/work/app", project.to_str().unwrap());
            let path = Path::new(&location.path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, &bytes).unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o640)).unwrap();

            let label = format!("{}:{}", client.id, location.scope.name());
            // Two scopes of a client may share a file.
            let same_file = locations(&machine, client).into_iter().filter(|one| one.path == location.path);
            let readable: usize =
                same_file.map(|one| pml_clients::read(&bytes, &one.shape).unwrap().servers.len()).sum();
            let done = machine.json(&["init", "--yes", "--project", "--register", &label, "--replace"]);
            let imported = done["import"]["servers"].as_array().map_or(0, Vec::len);
            assert_eq!(imported, readable, "{label} {name}: {done}");
            let listed = machine.json(&["list"]);
            assert!(listed.to_string().len() > 2, "what was imported can be read");

            // An older shape is imported from, and the entry goes into the present file.
            if location.current {
                let text = std::fs::read_to_string(path).unwrap();
                let left = pml_clients::read(&text, &location.shape).unwrap().servers;
                let names: Vec<&str> = left.iter().map(|server| server.name.as_str()).collect();
                assert_eq!(names, ["pml"], "{label} {name}\n{text}");
            }
            let again = machine.json(&["init", "--yes", "--project", "--register", &label, "--replace"]);
            assert_eq!(again["registered"][0]["state"], "alreadyThere", "{label} {name}: {again}");
            assert_eq!(
                again["import"]["servers"].as_array().map_or(0, Vec::len),
                0,
                "{label} {name}: {again}"
            );

            let undone = machine.run(&["init", "--undo", &label]);
            assert_eq!(undone.code, 0, "{undone:?}");
            assert_eq!(std::fs::read_to_string(path).unwrap(), bytes, "{label} {name}");
            let mode = std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o640, "{label} {name}");
            checked += 1;
        }
    }
    assert!(checked > 40, "{checked}");
}

fn names_in(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let config: Value = serde_json::from_str(&text).unwrap();
    config["mcpServers"].as_object().unwrap().keys().cloned().collect()
}

/// However a client reaches PML, its entry is never imported, and one entry is left.
#[test]
fn pml_is_not_put_in_front_of_itself() {
    let own = [
        r#""pml": { "command": "npx", "args": ["-y", "procedural-memory-layer", "stdio"] }"#,
        r#""pml": { "url": "http://127.0.0.1:7717/mcp", "headers": { "Authorization": "Bearer t0ken-0123456789" } }"#,
        r#""memory": { "command": "uvx", "args": ["procedural-memory-layer", "stdio"] }"#,
    ];
    for entry in own {
        let machine = Machine::new();
        let before = format!(r#"{{ "mcpServers": {{ "notes": {{ "command": "notes-mcp" }}, {entry} }} }}"#);
        let path = machine.write(".cursor/mcp.json", &before);
        let done = machine.json(&["init", "--yes", "--register", "cursor", "--replace"]);
        let imported = done["import"]["servers"].as_array().unwrap();
        assert_eq!(imported.len(), 1, "{done}");
        assert_eq!(imported[0]["name"], "notes", "{done}");
        assert_eq!(done["registered"][0]["state"], "registered", "{done}");
        let replaced = entry.starts_with("\"pml\"");
        assert_eq!(done["registered"][0].get("replacedEntry").is_some(), replaced, "{done}");
        assert_eq!(names_in(&path), ["pml"], "{entry}");
        let again = machine.json(&["init", "--yes", "--register", "cursor", "--replace"]);
        assert_eq!(again["registered"][0]["state"], "alreadyThere", "{again}");
        assert_eq!(machine.run(&["init", "--undo"]).code, 0);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
    }
}

/// Somebody's own server called `pml` is not overwritten; in its place PML stands only once PML has it.
#[test]
fn another_server_of_the_same_name_is_not_overwritten() {
    let machine = Machine::new();
    let before = r#"{ "mcpServers": { "pml": { "command": "markup-mcp" } } }"#;
    let path = machine.write(".cursor/mcp.json", before);
    let refused = machine.run(&["init", "--yes", "--no-import", "--register", "cursor"]);
    assert!(refused.code != 0 && refused.stderr.contains("another server called `pml`"), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
    let done = machine.json(&["init", "--yes", "--register", "cursor", "--replace"]);
    assert_eq!(done["registered"][0]["takenOut"], serde_json::json!(["pml"]), "{done}");
    assert!(machine.config().contains("markup-mcp"), "{}", machine.config());
    assert_eq!(names_in(&path), ["pml"]);
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written.contains("stdio") && !written.contains("markup-mcp"), "{written}");
    assert_eq!(machine.run(&["init", "--undo"]).code, 0);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), before);
}

const CURSOR: &str = r#"{
  // mine
  "mcpServers": {
    "notes": { "command": "notes-mcp", "args": ["--dir", "/n"], "env": { "NOTES_API_KEY": "k3y-0123456789abcdef" } },
  },
}
"#;

#[test]
fn nothing_is_done_without_a_yes_and_everything_is_shown() {
    let machine = Machine::new();
    let path = machine.write(".cursor/mcp.json", CURSOR);
    let done = machine.run(&["init", "--register", "cursor"]);
    assert_eq!(done.code, 1, "{done:?}");
    expect_test::expect![[r#"
          notes from ~/.cursor/mcp.json:4, secrets into files: NOTES_API_KEY
        --- HERE/pml.toml
        +++ HERE/pml.toml
        @@ -0,0 +1,4 @@
        +[servers.notes]
        +command = "notes-mcp"
        +args = ["--dir", "/n"]
        +env = { NOTES_API_KEY = "${file:HERE/secrets/notes.NOTES_API_KEY}" }
        --- ~/.cursor/mcp.json
        +++ ~/.cursor/mcp.json
        @@ -3,4 +3,11 @@
           "mcpServers": {
             "notes": { "command": "notes-mcp", "args": ["--dir", "/n"], "env": { "NOTES_API_KEY": "[REDACTED]" } },
        +    "pml": {
        +      "command": "PML",
        +      "args": ["stdio"],
        +      "env": {
        +        "PML_HOME": "HERE"
        +      }
        +    },
           },
         }
        HERE/pml.toml is there already and was not touched
        next: `pml add NAME -- COMMAND` adds a server, `pml serve` starts the gateway
        ---
        nothing was imported: `pml init --yes` imports what is shown
        ~/.cursor/mcp.json was not touched: `--yes` does what is shown
    "#]].assert_eq(&format!("{}---\n{}", done.stdout, done.stderr));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), CURSOR);
    assert_eq!(machine.config(), "", "the configuration is as it was");

    let preview = machine.json(&["init", "--register", "cursor"]);
    assert_eq!(preview["import"]["done"], false);
    assert_eq!(preview["registered"][0]["state"], "preview");
    assert!(!preview.to_string().contains("k3y-0123456789abcdef"), "{preview}");
}

#[test]
fn secrets_are_moved_into_files_that_only_the_user_can_read() {
    let machine = Machine::new();
    machine.write(".cursor/mcp.json", CURSOR);
    let done = machine.run(&["init", "--yes"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(!format!("{done:?}").contains("k3y-0123456789abcdef"), "{done:?}");
    assert!(!machine.config().contains("k3y-0123456789abcdef"), "{}", machine.config());
    let secret = machine.home.path("secrets/notes.NOTES_API_KEY");
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "k3y-0123456789abcdef");
    assert_eq!(std::fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(machine.config().contains("${file:HERE/secrets/notes.NOTES_API_KEY}"), "{}", machine.config());
    let kept = Machine::new();
    kept.write(".cursor/mcp.json", CURSOR);
    assert_eq!(kept.run(&["init", "--yes", "--keep-secrets"]).code, 0);
    assert!(kept.config().contains("k3y-0123456789abcdef"));
}

#[test]
fn a_file_that_changed_since_loses_only_the_entry_of_pml() {
    let machine = Machine::new();
    let path = machine.write(".cursor/mcp.json", CURSOR);
    assert_eq!(machine.run(&["init", "--yes", "--no-import", "--register", "cursor"]).code, 0);
    let registered = std::fs::read_to_string(&path).unwrap();
    let edited = registered.replace("// mine", "// mine, edited");
    assert_ne!(registered, edited);
    std::fs::write(&path, &edited).unwrap();
    let undone = machine.run(&["init", "--undo"]);
    assert_eq!(undone.code, 0, "{undone:?}");
    assert!(undone.stdout.contains("has changed since"), "{undone:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), CURSOR.replace("// mine", "// mine, edited"));
    let again = machine.run(&["init", "--undo"]);
    assert_eq!(again.code, 1, "{again:?}");
}

#[test]
fn links_stay_links_and_new_files_are_removed_again() {
    let machine = Machine::new();
    let real = machine.write("dotfiles/cursor.json", CURSOR);
    let link = machine.path(".cursor/mcp.json");
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    assert_eq!(
        machine.run(&["init", "--yes", "--no-import", "--register", "cursor", "--register", "codex"]).code,
        0
    );
    assert!(std::fs::symlink_metadata(&link).unwrap().file_type().is_symlink());
    assert!(std::fs::read_to_string(&real).unwrap().contains("\"pml\""));
    let codex = machine.path(".codex/config.toml");
    let text = machine.plain(&std::fs::read_to_string(&codex).unwrap());
    assert_eq!(
        text,
        "[mcp_servers.pml]\ncommand = \"PML\"\nargs = [\"stdio\"]\nenv = { PML_HOME = \"HERE\" }\n"
    );
    assert_eq!(machine.run(&["init", "--undo"]).code, 0);
    assert!(std::fs::symlink_metadata(&link).unwrap().file_type().is_symlink());
    assert_eq!(std::fs::read_to_string(&real).unwrap(), CURSOR);
    assert!(!codex.exists());
    assert!(!codex.parent().unwrap().exists(), "the directory was created for the file");
    assert!(link.parent().unwrap().exists(), "this one was there");
}

#[test]
fn broken_and_read_only_files_are_left_alone() {
    let machine = Machine::new();
    let broken = "{\n  \"mcpServers\": {\n    \"half\": {\"command\": \"x\"";
    let path = machine.write(".cursor/mcp.json", broken);
    machine.write(".codex/config.toml", "[mcp_servers.ok]\ncommand = \"ok-mcp\"\n");
    let done = machine.run(&["init", "--yes"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(done.stderr.contains("~/.cursor/mcp.json was left alone: line 3, column 13"), "{done:?}");
    assert!(machine.config().contains("[servers.ok]"), "the others are imported");
    let refused = machine.run(&["init", "--yes", "--register", "cursor"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), broken);

    let zed = machine.write(".config/zed/settings.json", "{}");
    std::fs::set_permissions(&zed, std::fs::Permissions::from_mode(0o444)).unwrap();
    let refused = machine.run(&["init", "--yes", "--no-import", "--register", "zed"]);
    assert!(refused.code != 0 && refused.stderr.contains("is read-only"), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&zed).unwrap(), "{}");
    assert_eq!(machine.run(&["init", "--undo", "zed"]).code, 1, "nothing was recorded for it");
}

#[test]
fn different_settings_of_one_name_are_asked_about() {
    let other = r#"{"mcpServers": {"notes": {"command": "other-notes"}}}"#;
    let machine = Machine::new();
    machine.write(".cursor/mcp.json", r#"{"mcpServers": {"notes": {"command": "notes-mcp"}}}"#);
    machine.write(".gemini/settings.json", other);
    let first = machine.run(&["init", "--yes", "--register", "gemini", "--replace"]);
    assert_eq!(first.code, 0, "{first:?}");
    assert!(first.stdout.contains("other settings in ~/.gemini/settings.json:1 are not taken"), "{first:?}");
    assert!(machine.config().contains("command = \"notes-mcp\""), "{}", machine.config());
    let gemini = std::fs::read_to_string(machine.path(".gemini/settings.json")).unwrap();
    assert!(gemini.contains("other-notes"), "what PML does not have stays: {gemini}");

    let asked = Machine::new();
    asked.write(".cursor/mcp.json", r#"{"mcpServers": {"notes": {"command": "notes-mcp"}}}"#);
    asked.write(".gemini/settings.json", other);
    // No to the first, yes to the second, yes to the import; the review of servers that follows gets no answer.
    let done = asked.home.on_terminal(&asked.command(&["init"]), &["n", "y", "y"]);
    assert!(asked.config().contains("command = \"other-notes\""), "{done:?}\n{}", asked.config());
}

#[test]
fn unknown_clients_get_the_nearest() {
    let machine = Machine::new();
    let done = machine.run(&["init", "--register", "curser"]);
    assert_eq!(
        (done.code, done.stderr.as_str()),
        (2, "error: no client is called `curser`\nhint: did you mean `cursor`?\n")
    );
    let done = machine.run(&["setup", "windsurf:project"]);
    assert!(done.stderr.contains("did you mean `windsurf`?"), "{done:?}");
}

#[test]
fn setup_makes_a_working_client_from_nothing_and_can_be_repeated() {
    let machine = Machine::new();
    std::fs::remove_file(machine.home.path("pml.toml")).unwrap();
    let path = machine.write(".cursor/mcp.json", "{}\n");
    let done = machine.json(&["setup", "--yes"]);
    assert_eq!(done["init"]["registered"][0]["client"], "cursor", "{done}");
    assert!(done["doctor"].as_array().is_some_and(|findings| !findings.is_empty()), "{done}");
    let written = std::fs::read_to_string(&path).unwrap();

    // The client starts what the file says, without this shell's variables.
    let config: Value = serde_json::from_str(&written).unwrap();
    let entry = &config["mcpServers"]["pml"];
    let mut command = Command::new(entry["command"].as_str().unwrap());
    command.args(entry["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap())).env_clear();
    for (name, value) in entry["env"].as_object().unwrap() {
        command.env(name, value.as_str().unwrap());
    }
    let mut client = crate::harness::Client::start(command);
    client.initialize();
    let tools = client.request("tools/list", &serde_json::json!({}));
    assert!(tools.to_string().contains("pml_discover"), "{tools}");

    let again = machine.json(&["setup", "--yes"]);
    assert_eq!(again["init"]["registered"][0]["state"], "alreadyThere", "{again}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), written);
}

#[test]
fn a_client_that_is_known_by_an_older_file_is_set_up_too() {
    let machine = Machine::new();
    let older =
        r#"{ "mcp": { "servers": { "notes": { "type": "http", "url": "http://127.0.0.1:9/mcp" } } } }"#;
    machine.write(".config/Code/User/settings.json", older);
    let done = machine.json(&["setup", "--yes"]);
    assert_eq!(done["init"]["registered"][0]["client"], "vscode", "{done}");
    let written = std::fs::read_to_string(machine.path(".config/Code/User/mcp.json")).unwrap();
    assert!(written.contains("stdio"), "{written}");
    assert_eq!(std::fs::read_to_string(machine.path(".config/Code/User/settings.json")).unwrap(), older);
}

/// What was shown is what is written: a file that another program changes meanwhile keeps that change.
#[test]
fn a_file_that_changes_after_it_was_shown_is_not_overwritten() {
    use pml::config::clients::{file_to_register, records};
    let machine = Machine::new();
    let path = machine.write(".cursor/mcp.json", CURSOR);
    let home = machine.path("");
    let env = pml::config::Env::from_iter([("HOME", home.to_str().unwrap().trim_end_matches('/'))]);
    let paths = pml::config::Paths { config: machine.home.path("pml.toml"), data: machine.home.path("") };
    let (client, scope) = pml_clients::find("cursor").unwrap();
    let file = file_to_register(&env, Path::new("/"), client, scope).unwrap();
    let launch = pml_clients::LaunchCommand {
        command: "pml".to_owned(),
        args: vec!["stdio".to_owned()],
        env: Vec::new(),
    };
    let change = file.registration(&launch, &[]).unwrap().unwrap();

    let newer = CURSOR.replace("// mine", "// written by Cursor just now");
    std::fs::write(&path, &newer).unwrap();
    let refused = records::register(&paths, &file, &change).unwrap_err().to_string();
    assert!(refused.contains("changed meanwhile and was not touched"), "{refused}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), newer);
    assert_eq!(records::read(&paths).unwrap(), [], "there is nothing to take back");
    let left: Vec<_> =
        std::fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["mcp.json"], "no temporary file is left");

    // The same for a file that did not exist when it was shown.
    let (client, scope) = pml_clients::find("codex").unwrap();
    let file = file_to_register(&env, Path::new("/"), client, scope).unwrap();
    let change = file.registration(&launch, &[]).unwrap().unwrap();
    let codex = machine.write(".codex/config.toml", "model = \"new\"\n");
    assert!(records::register(&paths, &file, &change).is_err());
    assert_eq!(std::fs::read_to_string(codex).unwrap(), "model = \"new\"\n");
}

/// Two scopes of Claude Code share a file: each can be taken back in any order.
#[test]
fn scopes_that_share_a_file_are_undone_one_by_one() {
    for order in [["claude-code", "claude-code:local"], ["claude-code:local", "claude-code"]] {
        let machine = Machine::new();
        let before = "{\n  \"numStartups\": 3\n}\n";
        let path = machine.write(".claude.json", before);
        assert_eq!(machine.run(&["init", "--yes", "--register", "claude-code"]).code, 0);
        assert_eq!(machine.run(&["init", "--yes", "--register", "claude-code:local"]).code, 0);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches("\"pml\"").count(), 2, "{text}");
        for label in order {
            let undone = machine.run(&["init", "--undo", label]);
            assert_eq!(undone.code, 0, "{undone:?}");
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), before, "{order:?}");
    }
}

/// Files of a project may come from others, so their commands are imported only on request.
#[test]
fn servers_of_a_project_are_imported_only_on_request() {
    let machine = Machine::new();
    let file = machine.home.path("project/.mcp.json");
    std::fs::write(&file, r#"{"mcpServers": {"theirs": {"command": "./run"}}}"#).unwrap();
    assert_eq!(machine.run(&["init", "--yes"]).code, 0);
    assert!(!machine.config().contains("theirs"), "{}", machine.config());
    assert_eq!(machine.run(&["init", "--yes", "--project"]).code, 0);
    assert!(machine.config().contains("command = \"HERE/project/run\""), "{}", machine.config());
}
