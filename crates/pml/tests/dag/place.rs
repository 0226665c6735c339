//! A gateway with the server for tasks, and ways to run documents by it.

use std::path::Path;

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::harness::{Home, python};

/// A gateway in a home of its own.
pub struct Place {
    pub gateway: Gateway,
    pub home: Home,
}

impl Place {
    /// Starts one; `settings` are further lines of its `pml.toml`, before its tables.
    pub fn start(settings: &str) -> Place {
        let home = home(settings);
        let gateway = Gateway::start(home.command(&["stdio"]));
        Place { gateway, home }
    }

    /// Runs a document.
    #[track_caller]
    pub fn run(&mut self, tasks: &Value) -> Value {
        self.run_with(tasks, &json!({}), &json!({}))
    }

    /// Runs a document with these arguments and options.
    #[track_caller]
    pub fn run_with(&mut self, tasks: &Value, arguments: &Value, options: &Value) -> Value {
        let request = self.begin(tasks, arguments, options);
        self.gateway.outcome(request)
    }

    /// Asks for a run and does not wait.
    pub fn begin(&mut self, tasks: &Value, arguments: &Value, options: &Value) -> u64 {
        self.gateway.begin("tools/call", &execution(tasks, arguments, options))
    }

    /// Goes on with what waits.
    #[track_caller]
    pub fn go_on(&mut self, waiting: &Value) -> Value {
        self.gateway.call("pml_continue", &json!({ "workflow_id": waiting["workflowId"], "approved": true }))
    }

    /// Puts other tasks in place of those that have not run.
    #[track_caller]
    pub fn replan(&mut self, waiting: &Value, tasks: &Value) -> Value {
        let document = json!({ "tasks": tasks });
        self.gateway
            .call("pml_replan", &json!({ "workflow_id": waiting["workflowId"], "dagStructure": document }))
    }

    /// What the server for tasks wrote down of calls of `tool`.
    pub fn calls(&self, event: &str, tool: &str) -> Vec<Value> {
        let of = |one: &Value| one["event"] == event && one["tool"] == tool;
        self.events().into_iter().filter(of).map(|one| one["given"].clone()).collect()
    }

    /// All it wrote down.
    pub fn events(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.home.path("tools.ledger")).unwrap_or_default();
        // The last line may be half written.
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn home(settings: &str) -> Home {
    let home = Home::new("");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dag/tools.py").display().to_string();
    let ledger = home.path("tools.ledger").display().to_string();
    home.configure(&format!(
        "{settings}\n[servers.tools]\ncommand = {}\nargs = {}\n[permissions]\n\
         tools = {{ approval_mode = \"auto\" }}\n\
         \"tools:echo\" = {{ read_only = true }}\n\
         \"tools:flaky\" = {{ idempotent = true }}\n\
         \"tools:secret\" = {{ deny = true }}\n",
        json!(python("python3")),
        json!(["-I", "-S", script, ledger])
    ));
    home
}

/// The parameters of a call of `pml_execute` with a document.
pub fn execution(tasks: &Value, arguments: &Value, options: &Value) -> Value {
    let implementation = json!({ "type": "dag", "dagStructure": { "tasks": tasks } });
    let arguments = json!({
        "intent": "a test", "implementation": implementation, "context": arguments, "options": options,
    });
    json!({ "name": "pml_execute", "arguments": arguments })
}

/// How each task ended, as `id status`.
pub fn outcomes(said: &Value) -> Vec<String> {
    let all = said["outcomes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let word =
        |one: &Value| format!("{} {}", one["taskId"].as_str().unwrap(), one["status"].as_str().unwrap());
    all.iter().map(word).collect()
}

impl Place {
    /// The workers that wait for a program.
    pub fn idle_workers(&self) -> Vec<u32> {
        let mut last = Vec::new();
        crate::harness::eventually("the pool has come to rest", || {
            let now = self.gateway.workers();
            !now.is_empty() && std::mem::replace(&mut last, now.clone()) == now
        });
        last
    }
}

/// How long a process has computed, in ticks of the clock.
pub fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let field = |stat: &str| stat.rsplit(')').next()?.split_whitespace().nth(11)?.parse().ok();
    field(&stat).unwrap_or(0)
}
