//! A running `pml` that is given programs, and what it answers.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Client, Home, node};

/// `pml stdio` with a root for `fs`, and the ledgers of honeypots.
pub struct Gateway {
    client: Client,
    home: Home,
}

/// What came of a program.
#[derive(Debug, Clone)]
pub struct Reply {
    /// All of it.
    pub body: Value,
}

impl Reply {
    /// The result of a program that succeeded.
    pub fn result(&self) -> Option<&Value> {
        (self.body["status"] == "success").then(|| &self.body["result"])
    }

    /// `error.code`; empty where there is none.
    pub fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }

    /// `error.message`; empty where there is none.
    pub fn message(&self) -> &str {
        self.body["error"]["message"].as_str().unwrap_or_default()
    }

    /// The tools that were called, in the order of the calls.
    pub fn calls(&self) -> Vec<&str> {
        let tasks = self.body["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
        tasks.iter().filter_map(|task| task["tool"].as_str()).collect()
    }

    /// The tools a person is asked for, in the order they are asked for; none where nobody is asked.
    pub fn asked(&self) -> Vec<&str> {
        let calls = self.body["question"]["calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        calls.iter().filter_map(|call| call["tool"].as_str()).collect()
    }

    /// The run that asks a person something.
    pub fn asks(&self) -> Option<String> {
        (self.body["status"] == "approval_required")
            .then(|| self.body["workflowId"].as_str().unwrap().to_owned())
    }

    /// What the program printed.
    pub fn console(&self) -> Vec<&str> {
        let lines = self.body["console"].as_array().map(Vec::as_slice).unwrap_or_default();
        lines.iter().filter_map(|line| line["text"].as_str()).collect()
    }
}

impl Gateway {
    /// Starts one. In `config`, `{home}` stands for its home; the root of `fs` is `{home}/root`.
    pub fn start(config: &str) -> Gateway {
        let home = Home::new("");
        std::fs::create_dir(home.path("root")).unwrap();
        let place = home.path("").display().to_string();
        let config = config.replace("{home}", place.trim_end_matches('/'));
        let root = home.path("root").display().to_string();
        home.configure(&format!("{config}\n[builtin.fs]\nroot = {root:?}\n"));
        let client = home.stdio(&[]);
        Gateway { client, home }
    }

    /// A path below its home.
    pub fn path(&self, below: &str) -> PathBuf {
        self.home.path(below)
    }

    /// The home of it, for further commands.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// The conversation with it.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// The parameters of a request to run `code`.
    pub fn asking(code: &str, arguments: &Value) -> Value {
        json!({
            "name": "pml_execute",
            "arguments": {
                "intent": "test", "implementation": { "type": "code", "code": code }, "context": arguments,
            },
        })
    }

    /// Runs `code` with `args`.
    #[track_caller]
    pub fn run_with(&mut self, code: &str, arguments: &Value) -> Reply {
        let id = self.begin(code, arguments);
        self.reply(id)
    }

    /// Runs `code`.
    #[track_caller]
    pub fn run(&mut self, code: &str) -> Reply {
        self.run_with(code, &json!({}))
    }

    /// Answers what a run asks: `said` are the arguments of `pml_continue` beside its name.
    #[track_caller]
    pub fn decide(&mut self, run: &str, said: &Value) -> Reply {
        let mut arguments = said.clone();
        arguments["workflow_id"] = json!(run);
        let id = self.client.begin("tools/call", &json!({ "name": "pml_continue", "arguments": arguments }));
        self.reply(id)
    }

    /// Asks for a run and does not wait.
    pub fn begin(&mut self, code: &str, arguments: &Value) -> u64 {
        self.client.begin("tools/call", &Gateway::asking(code, arguments))
    }

    /// Waits for what came of a run.
    #[track_caller]
    pub fn reply(&mut self, id: u64) -> Reply {
        let mut body = self.structured_reply(id);
        // Many calls are only counted in a reply; this lists them all.
        if body.get("calls").is_some() {
            let arguments = json!({ "workflow_id": body["workflowId"] });
            let asked = json!({ "name": "pml_get_task_result", "arguments": arguments });
            let id = self.client.begin("tools/call", &asked);
            body["tasks"] = self.structured_reply(id)["tasks"].clone();
        }
        Reply { body }
    }

    #[track_caller]
    fn structured_reply(&mut self, id: u64) -> Value {
        let response = self.client.response_or_aside(id);
        let body = response["result"]["structuredContent"].clone();
        assert!(body.is_object(), "{response}");
        body
    }

    /// How many messages of this kind arrived at the honeypot `name`.
    pub fn arrived(&self, name: &str, method: &str) -> usize {
        let text = std::fs::read_to_string(self.path(&format!("{name}.ledger"))).unwrap_or_default();
        // The last line may be half written.
        let lines = text.split_inclusive('\n').filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line["method"] == method).count()
    }

    /// How many calls arrived at the honeypot `name`.
    pub fn hits(&self, name: &str) -> usize {
        self.arrived(name, "tools/call")
    }
}

/// The table of a honeypot called `name`.
pub fn honeypot(name: &str, options: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/honeypot.mjs");
    let ledger = format!("{{home}}/{name}.ledger");
    let script = script.display().to_string();
    let args: Vec<&str> = [&[script.as_str(), "--ledger", &ledger], options].concat();
    format!("[servers.{name}]\ncommand = {}\nargs = {}\n", json!(node()), json!(args))
}
