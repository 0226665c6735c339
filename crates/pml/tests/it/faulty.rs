//! The server that fails on command, as the tests use it, and its ledger.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{Client, Home, eventually, material, node};

/// The `[servers.…]` table of one more faulty server; `options` go to it beside its ledger.
pub fn table(home: &Home, name: &str, options: &[&str], settings: &str) -> String {
    let ledger = home.path(&format!("{name}.ledger")).display().to_string();
    let script = material("fixture/faulty.mjs").display().to_string();
    let args: Vec<&str> = [&[script.as_str(), "--ledger", &ledger], options].concat();
    format!("[servers.{name}]\ncommand = {}\nargs = {}\n{settings}\n", json!(node()), json!(args))
}

/// The same, and nobody has to be asked about its tools.
pub fn allowed(home: &Home, name: &str, options: &[&str], settings: &str) -> String {
    table(home, name, options, settings) + &without_asking(name)
}

fn without_asking(name: &str) -> String {
    format!("[permissions.{name}]\napproval_mode = \"auto\"\n")
}

/// A home with faulty servers of these names, about whose tools nobody has to be asked, and nothing else configured.
pub fn home(names: &[&str]) -> Home {
    let home = Home::new("");
    let tables: Vec<String> = names.iter().map(|name| allowed(&home, name, &[], "")).collect();
    home.configure(&format!("{NO_MODEL}{}", tables.join("\n")));
    home
}

/// The gateway reads the weights of its model some time after its start: 20 MB, which no fault has cost.
pub const NO_MODEL: &str = "[embedding]\nmodel = \"none\"\n";

/// What a faulty server wrote down.
pub struct Ledger(PathBuf);

impl Ledger {
    /// The ledger of the server `name` in `home`.
    pub fn of(home: &Home, name: &str) -> Ledger {
        Ledger(home.path(&format!("{name}.ledger")))
    }

    /// The events of one kind, oldest first.
    pub fn events(&self, kind: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        // The last line may be half written.
        text.split_inclusive('\n')
            .filter_map(|line| serde_json::from_str(line).ok())
            .filter(|event: &Value| event["event"] == kind)
            .collect()
    }

    /// How many calls of `tool` arrived.
    pub fn calls(&self, tool: &str) -> usize {
        self.events("call").iter().filter(|call| call["tool"] == tool).count()
    }

    /// The processes the server has been so far.
    pub fn pids(&self) -> Vec<u32> {
        self.events("start").iter().map(pid).collect()
    }

    /// Waits until a call of `tool` has arrived.
    #[track_caller]
    pub fn await_call(&self, tool: &str) {
        eventually(&format!("a call of `{tool}` arrives"), || self.calls(tool) > 0);
    }
}

fn pid(event: &Value) -> u32 {
    u32::try_from(event["pid"].as_u64().unwrap()).unwrap()
}

/// The code of a problem in a tool result; empty where there is none.
pub fn code(result: &Value) -> &str {
    let error = [&result["structuredContent"]["error"], &result["_meta"]["pml/error"]];
    error.iter().find_map(|error| error["code"].as_str()).unwrap_or_default()
}

/// Begins a call and gives its id.
pub fn begin(client: &mut Client, tool: &str, arguments: &Value) -> u64 {
    client.begin("tools/call", &json!({"name": tool, "arguments": arguments}))
}

/// A faulty server reached over HTTP; killed when dropped.
pub struct Remote {
    child: Child,
    /// Its endpoint.
    pub url: String,
}

impl Remote {
    /// Starts one whose ledger is that of the server `name` in `home`.
    pub fn start(home: &Home, name: &str, options: &[&str]) -> Remote {
        let mut command = Command::new(node());
        command.arg(material("fixture/faulty.mjs")).args(["--port", "0", "--ledger"]);
        command.arg(home.path(&format!("{name}.ledger"))).args(options);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Remote { child, url: url.trim().to_owned() }
    }

    /// Its `[servers.…]` table.
    pub fn table(&self, name: &str, settings: &str) -> String {
        format!("[servers.{name}]\nurl = {}\n{settings}\n", json!(self.url))
    }

    /// The same, and nobody has to be asked about its tools.
    pub fn allowed(&self, name: &str, settings: &str) -> String {
        self.table(name, settings) + &without_asking(name)
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Bytes of memory a process has in use now, from `/proc`.
pub fn resident(pid: u32) -> u64 {
    memory(pid, "VmRSS:")
}

/// The most it has had in use since [`forget_peak`].
pub fn peak(pid: u32) -> u64 {
    memory(pid, "VmHWM:")
}

/// Makes what a process has in use now the most it ever had.
pub fn forget_peak(pid: u32) {
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
}

fn memory(pid: u32, what: &str) -> u64 {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Sends a signal to a process.
pub fn signal(pid: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}
