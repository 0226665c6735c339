//! A gateway with a memory, and ways to look into it.

use pml_model::capability::Capability;
use pml_model::trace::Trace;
use pml_model::{CapabilityId, Principal, RunId, TraceId};
use pml_store::{BlockingStore, CapabilityQuery};
use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::harness::{Home, Served};

/// Everything that is built in may be called.
pub const ALL: &str = "[permissions]\n\"*\" = { approval_mode = \"auto\" }\n[builtin.fs]\nroot = \".\"\n";

/// An MCP server in Python that lists what `tools()` gives and answers every call with what `call()` gives.
pub fn server(functions: &str) -> String {
    let answer = r#"
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    told = {"jsonrpc": "2.0", "id": message["id"]}
    method = message["method"]
    if method == "initialize":
        told["result"] = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "a server", "version": "1"}}
    elif method == "tools/list":
        told["result"] = {"tools": tools()}
    elif method == "tools/call":
        told["result"] = call()
    else:
        told["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(told), flush=True)
"#;
    format!("import json, sys\n{functions}{answer}")
}

/// A home and the gateway that runs in it.
pub struct Place {
    pub home: Home,
    pub gateway: Gateway,
}

impl Place {
    /// Starts a gateway with this configuration.
    pub fn start(config: &str) -> Place {
        let home = Home::new(config);
        let gateway = Gateway::start(home.command(&["stdio"]));
        Place { home, gateway }
    }

    /// Kills the gateway and starts another.
    pub fn restart(&mut self) {
        let next = Gateway::start(self.home.command(&["stdio"]));
        std::mem::replace(&mut self.gateway, next).kill();
    }

    /// Runs a program for an intent.
    #[track_caller]
    pub fn run(&mut self, intent: &str, code: &str, context: &Value) -> Value {
        self.run_with(intent, code, context, &json!({ "cache": false }))
    }

    /// The same with options.
    #[track_caller]
    pub fn run_with(&mut self, intent: &str, code: &str, context: &Value, options: &Value) -> Value {
        let implementation = json!({ "type": "code", "code": code });
        self.gateway.call(
            "pml_execute",
            &json!({ "intent": intent, "implementation": implementation, "context": context, "options": options }),
        )
    }

    /// Asks for whatever serves an intent.
    #[track_caller]
    pub fn wish(&mut self, intent: &str) -> Value {
        self.gateway.call("pml_execute", &json!({ "intent": intent, "options": { "cache": false } }))
    }

    /// What a call of one of our tools says as text.
    #[track_caller]
    pub fn text(&mut self, tool: &str, arguments: &Value) -> String {
        let request = self.gateway.begin("tools/call", &json!({ "name": tool, "arguments": arguments }));
        let answer = self.gateway.answer(request, std::time::Duration::from_secs(60)).unwrap();
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Writes a file, and waits until it is old enough for what is read of it to be kept.
    pub fn write_settled(&self, name: &str, text: &str) {
        std::fs::write(self.home.path(name), text).unwrap();
        settle();
    }

    /// The database.
    pub fn store(&self) -> BlockingStore {
        BlockingStore::open(&self.home.path("pml.db")).unwrap()
    }

    /// Waits until everything is learned from.
    pub fn settled(&self) {
        let store = self.store();
        // Whoever comes first learns, and each trace counts once.
        while store.learn_traces(1_000, 0).unwrap().has_more {}
    }

    /// Every capability.
    pub fn capabilities(&self) -> Vec<Capability> {
        self.settled();
        let all = CapabilityQuery { state: None, recent: false, limit: 1_000, offset: 0 };
        self.store().capabilities(&Principal::local(), &all).unwrap()
    }

    /// The one capability there is.
    #[track_caller]
    pub fn capability(&self) -> Capability {
        let mut all = self.capabilities();
        assert_eq!(all.len(), 1, "{:?}", all.iter().map(|one| &one.name).collect::<Vec<_>>());
        all.remove(0)
    }

    /// The capability with this id.
    pub fn capability_of(&self, id: &str) -> Capability {
        self.settled();
        self.store().capability(&Principal::local(), &CapabilityId::parse(id).unwrap()).unwrap().unwrap()
    }

    /// The trace of a run.
    #[track_caller]
    pub fn trace(&self, told: &Value) -> Trace {
        self.settled();
        let run = RunId::parse(told["workflowId"].as_str().unwrap_or_else(|| panic!("{told}"))).unwrap();
        self.store().trace(&Principal::local(), &TraceId::of(&run)).unwrap().unwrap()
    }
}

/// Waits until files that were just written are old enough for what is read of them to be kept.
pub fn settle() {
    std::thread::sleep(std::time::Duration::from_millis(2_200));
}

/// Asks the API of a gateway; the status and what it says.
pub fn api(served: &Served, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    api_as(served, &served.token, method, path, body)
}

/// The same with this token.
pub fn api_as(served: &Served, token: &str, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    let base = served.url.trim_end_matches("/mcp");
    let mut command = std::process::Command::new("curl");
    command.args(["-s", "-X", method, "-w", "\n%{http_code}"]);
    command.args(["-H", &format!("Authorization: Bearer {token}")]);
    if let Some(body) = body {
        command.args(["-H", "content-type: application/json", "-d", &body.to_string()]);
    }
    let output = command.arg(format!("{base}{path}")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, status) = text.rsplit_once('\n').unwrap();
    (status.parse().unwrap(), serde_json::from_str(body).unwrap_or_default())
}
