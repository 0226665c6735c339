//! The server with the ledger, as the tests use it.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Home, eventually, python};

/// A home whose programs may use a ledger; `settings` are further lines of its `pml.toml`.
pub fn home(settings: &str) -> Home {
    home_with(settings, "auto")
}

/// A home whose programs may read the ledger, and where a person is asked before anything is added to it.
pub fn asking_home(settings: &str) -> Home {
    home_with(settings, "hil")
}

fn home_with(settings: &str, adding: &str) -> Home {
    let home = Home::new("");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/durable/ledger.py").display().to_string();
    let file = home.path("ledger").display().to_string();
    home.configure(&format!(
        "{settings}\n[servers.ledger]\ncommand = {}\nargs = {}\n[permissions]\n\
         fs = {{ approval_mode = \"auto\" }}\n\
         ledger = {{ approval_mode = \"auto\" }}\n\
         \"ledger:add\" = {{ approval_mode = \"{adding}\" }}\n\
         \"ledger:put\" = {{ idempotent = true }}\n\
         \"ledger:get\" = {{ read_only = true }}\n",
        json!(python("python3")),
        json!(["-I", "-S", script, file])
    ));
    home
}

/// Waits in a program until [`Ledger::go`].
pub const WAIT: &str = r#"while ((await mcp.ledger.get({ key: "go", before: 50 })).value === null);"#;

/// What the server wrote down.
pub struct Ledger(PathBuf);

impl Ledger {
    /// Of the server in `home`.
    pub fn of(home: &Home) -> Ledger {
        Ledger(home.path("ledger"))
    }

    /// Everything, oldest first.
    pub fn events(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        // The last line may be half written.
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        // The system ends the write of a killed process where a page ends; the next line comes right behind it.
        let whole = |line: &str| line.rfind("{\"event\"").unwrap_or(0);
        lines.map(|line| serde_json::from_str(&line[whole(line)..]).unwrap()).collect()
    }

    /// The ids that were added, in their order.
    pub fn added(&self) -> Vec<String> {
        self.ids("done")
    }

    /// The ids of the calls of `add` that came as far as `event`.
    pub fn ids(&self, event: &str) -> Vec<String> {
        let wanted = |one: &Value| one["event"] == event && one["tool"] == "add";
        let id = |one: &Value| one["id"].as_str().unwrap().to_owned();
        self.events().iter().filter(|one| wanted(one)).map(id).collect()
    }

    /// How many calls of `tool` came as far as `event`.
    pub fn count(&self, event: &str, tool: &str) -> usize {
        self.events().iter().filter(|one| one["event"] == event && one["tool"] == tool).count()
    }

    /// Waits until a call of `tool` has come as far as `event`.
    #[track_caller]
    pub fn wait_for(&self, event: &str, tool: &str) {
        eventually(&format!("{tool} {event}"), || self.count(event, tool) > 0);
    }

    /// Lets programs go on that wait for `go` to be there.
    pub fn go(&self) {
        let line = json!({ "event": "done", "tool": "put", "key": "go", "value": 1 });
        let mut file = std::fs::OpenOptions::new().append(true).open(&self.0).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// How often it was told that nobody waits for a call any more.
    pub fn called_off(&self) -> usize {
        self.events().iter().filter(|one| one["event"] == "cancelled").count()
    }
}
