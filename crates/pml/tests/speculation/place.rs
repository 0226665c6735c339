//! A gateway whose servers share a world, and what they wrote down.

use std::cell::OnceCell;
use std::io::Write as _;
use std::path::Path;

use pml_model::trace::{TaskResult, Trace};
use pml_model::{Principal, RunId, TraceId};
use pml_store::BlockingStore;
use serde_json::{Value, json};

use crate::gateway::{self, Gateway};
use crate::harness::{Home, eventually, python};

/// A gateway in a home of its own.
pub struct Place {
    pub gateway: Gateway,
    pub home: Home,
    store: OnceCell<BlockingStore>,
}

/// The rules of a place: everything may be called, `a` and `b` are believed in what they say of their tools.
const RULES: &str = "[permissions]\n\"*\" = { approval_mode = \"auto\" }\n";

impl Place {
    /// Starts one; `settings` are further lines of its `pml.toml`.
    pub fn start(settings: &str) -> Place {
        Place::with_rules(settings, RULES)
    }

    /// The same with other rules.
    pub fn with_rules(settings: &str, rules: &str) -> Place {
        Place::with_servers(&|_| settings.to_owned(), rules)
    }

    /// The same where `b` has a world of its own, and the operator says so.
    pub fn with_isolated_servers(settings: &str) -> Place {
        Place::with_servers(
            &|home| format!("{settings}\n{}", server_on(home, "b", OWN_WORLD)),
            &format!("{RULES}b = {{ isolated = true }}\n"),
        )
    }

    /// Learns a program and gives it a name by which others call it.
    #[track_caller]
    pub fn learn(&mut self, name: &str, code: &str, arguments: &Value) {
        let told = self.run(code, arguments);
        let id = told["capabilityId"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
        let renamed = self.home.run(&["capabilities", "rename", &id, name]);
        assert_eq!(renamed.code, 0, "{renamed:?}");
    }

    /// The same with settings that depend on its home.
    pub fn with_servers(settings: &dyn Fn(&Home) -> String, rules: &str) -> Place {
        let home = Home::new("");
        configure(&home, &settings(&home), rules);
        let gateway = Gateway::start(home.command(&["stdio"]));
        Place { gateway, home, store: OnceCell::new() }
    }

    /// Runs a program to its end.
    #[track_caller]
    pub fn run(&mut self, code: &str, arguments: &Value) -> Value {
        let request = self.begin(code, arguments);
        self.gateway.outcome(request)
    }

    /// Asks for a run and does not wait.
    pub fn begin(&mut self, code: &str, arguments: &Value) -> u64 {
        self.begin_with(code, arguments, json!({}))
    }

    /// The same with options.
    pub fn begin_with(&mut self, code: &str, arguments: &Value, mut options: Value) -> u64 {
        options["cache"] = json!(false);
        self.gateway.begin("tools/call", &gateway::execution("a test", code, arguments, &options))
    }

    /// Runs a document and waits after each layer.
    #[track_caller]
    pub fn run_layers(&mut self, tasks: &Value, arguments: &Value) -> Value {
        self.run_document(tasks, arguments, json!({ "perLayerValidation": true }))
    }

    /// Runs a document with options.
    #[track_caller]
    pub fn run_document(&mut self, tasks: &Value, arguments: &Value, mut options: Value) -> Value {
        let implementation = json!({ "type": "dag", "dagStructure": { "tasks": tasks } });
        options["cache"] = json!(false);
        let asked = json!({
            "intent": "a test", "implementation": implementation, "context": arguments, "options": options,
        });
        self.gateway.call("pml_execute", &asked)
    }

    /// Goes on with what waits.
    #[track_caller]
    pub fn go_on(&mut self, waiting: &Value) -> Value {
        self.gateway.call("pml_continue", &json!({ "workflow_id": waiting["workflowId"], "approved": true }))
    }

    /// Kills the gateway and starts another.
    pub fn restart(&mut self) {
        let next = Gateway::start(self.home.command(&["stdio"]));
        std::mem::replace(&mut self.gateway, next).kill();
    }

    /// Lets calls go on that wait for this.
    pub fn allow(&self, until: &str) {
        std::fs::write(self.home.path(until), "").unwrap();
    }

    /// The calls that came as far as `event`, in their order.
    pub fn calls(&self, event: &str) -> Vec<LedgerCall> {
        ledger_of(&self.home, event)
    }

    /// The calls that began.
    pub fn begun(&self) -> Vec<LedgerCall> {
        self.calls("begin")
    }

    /// The arguments that a tool was called with, as the `key` of each.
    pub fn keys(&self, tool: &str) -> Vec<Value> {
        self.begun()
            .into_iter()
            .filter(|call| call.tool == tool)
            .map(|call| call.given["key"].clone())
            .collect()
    }

    /// Waits until a call with this `key` has begun.
    #[track_caller]
    pub fn wait_for_key(&self, key: &str) {
        self.wait_for(key, 1);
    }

    /// Waits until so many calls with this `key` have begun.
    #[track_caller]
    pub fn wait_for(&self, key: &str, calls: usize) {
        let begun = || self.begun().iter().filter(|call| call.given["key"] == key).count();
        eventually(&format!("{key} is called"), || begun() >= calls);
    }

    /// Waits until a call with this `key` has been answered.
    #[track_caller]
    pub fn wait_for_end(&self, key: &str) {
        eventually(&format!("{key} is answered"), || self.has_ended(key));
    }

    /// Whether a call with this `key` has begun.
    pub fn has_begun(&self, key: &str) -> bool {
        self.begun().iter().any(|call| call.given["key"] == key)
    }

    /// Whether a call with this `key` has been answered.
    pub fn has_ended(&self, key: &str) -> bool {
        self.calls("end").iter().any(|call| call.given["key"] == key)
    }

    /// Changes the world, and nobody tells the gateway.
    pub fn change_world(&self) {
        let mut world =
            std::fs::OpenOptions::new().append(true).create(true).open(self.home.path("world")).unwrap();
        world.write_all(b".").unwrap();
    }

    /// Checks which calls of a run were served ahead, by their keys, in the order of the program.
    #[track_caller]
    pub fn assert_served(&self, told: &Value, ahead: &[&str], others: &[&str]) {
        let served = served(&self.trace(told));
        assert_eq!(served, (owned(ahead), owned(others)), "ahead, and others, of {told}");
    }

    /// How many writes there were.
    pub fn writes(&self) -> u64 {
        let size = |world: &str| std::fs::metadata(self.home.path(world)).map_or(0, |world| world.len());
        size("world") + size(OWN_WORLD)
    }

    /// The database.
    pub fn store(&self) -> &BlockingStore {
        self.store.get_or_init(|| BlockingStore::open(&self.home.path("pml.db")).unwrap())
    }

    /// What `pml speculation stats` counts of a tool, once it counts `sum` results.
    #[track_caller]
    pub fn stats(&self, tool: &str, sum: u64) -> Value {
        let mut stats = Value::Null;
        eventually(&format!("{sum} results of {tool} are counted"), || {
            let told = self.home.run(&["speculation", "stats", "--json"]);
            assert_eq!(told.code, 0, "{told:?}");
            let all: Value = serde_json::from_str(&told.stdout).unwrap_or_else(|_| panic!("{told:?}"));
            let of = all.as_array().unwrap().iter().find(|one| one["tool"] == tool).cloned();
            stats = of.unwrap_or_default();
            let count = |name: &str| stats[name].as_u64().unwrap_or(0);
            count("hits") + count("misses") + count("wasted") >= sum
        });
        stats
    }

    /// The trace of a run.
    #[track_caller]
    pub fn trace(&self, told: &Value) -> Trace {
        let run = RunId::parse(told["workflowId"].as_str().unwrap_or_else(|| panic!("{told}"))).unwrap();
        let mut trace = None;
        eventually("the trace is stored", || {
            trace = self.store().trace(&Principal::local(), &TraceId::of(&run)).unwrap();
            trace.is_some()
        });
        trace.unwrap()
    }
}

/// A call in the ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct LedgerCall {
    /// `server:tool`.
    pub tool: String,
    pub given: Value,
}

impl LedgerCall {
    fn of(event: &Value) -> LedgerCall {
        let word = |name: &str| event[name].as_str().unwrap().to_owned();
        LedgerCall { tool: format!("{}:{}", word("server"), word("tool")), given: event["given"].clone() }
    }
}

/// The calls that came as far as `event` at the servers of a home, in their order.
pub fn ledger_of(home: &Home, event: &str) -> Vec<LedgerCall> {
    let text = std::fs::read_to_string(home.path("ledger")).unwrap_or_default();
    // The last line may be half written.
    let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let events = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|one| one["event"] == event).map(|one| LedgerCall::of(&one)).collect()
}

/// The configuration of a server on the world.
pub fn server(home: &Home, name: &str, settings: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/speculation/world.py");
    format!(
        "[servers.{name}]\ncommand = {}\nargs = {}\n{settings}\n",
        json!(python("python3")),
        json!(["-I", "-S", script, home.path(""), name])
    )
}

/// The world of a server that shares it with no other.
const OWN_WORLD: &str = "own-world";

/// The configuration of a believed server on another world.
fn server_on(home: &Home, name: &str, world: &str) -> String {
    let (shared, own) = (r#""]"#, format!(r#"", {}]"#, json!(world)));
    server(home, name, "trust = \"annotations\"\n").replacen(
        &format!("{name}{shared}"),
        &format!("{name}{own}"),
        1,
    )
}

/// Gives a home these settings and rules, and two servers whose annotations are believed. Nothing is read again to be
/// compared unless the settings say so: the ledger has each call once.
pub fn configure(home: &Home, settings: &str, rules: &str) {
    const TABLE: &str = "[speculation]\n";
    let settings = match (settings.contains("sample"), settings.contains(TABLE)) {
        (true, _) => settings.to_owned(),
        (false, true) => settings.replace(TABLE, &format!("{TABLE}sample = 0\n")),
        (false, false) => format!("{settings}\n{TABLE}sample = 0\n"),
    };
    let missing = |name: &&&str| !settings.contains(&format!("[servers.{name}]"));
    let servers: String = ["a", "b"]
        .iter()
        .filter(missing)
        .map(|name| server(home, name, "trust = \"annotations\"\n"))
        .collect();
    home.configure(&format!("{settings}\n{rules}\n{servers}"));
}

fn owned(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

/// The keys of the calls of a run that were served ahead, and those of the others.
pub fn served(trace: &Trace) -> (Vec<String>, Vec<String>) {
    let key = |task: &TaskResult| {
        let given: Value = serde_json::from_str(task.args.get()).unwrap();
        given["key"].as_str().map_or_else(|| given["key"].to_string(), str::to_owned)
    };
    let calls = trace.body.task_results.iter().filter(|task| !task.is_operation());
    let (ahead, others): (Vec<&TaskResult>, Vec<&TaskResult>) = calls.partition(|task| task.speculated);
    (ahead.into_iter().map(key).collect(), others.into_iter().map(key).collect())
}
