//! Programs that clients run themselves: what a server tells them to run, and the traces that they send back.

mod forged;

use pml_model::json::raw;
use pml_model::remote::chain_hash;
use serde_json::{Value, json};

use crate::harness::{Home, Served, text};
use crate::http::{api, modern_by, send};

/// Reads a file on the machine of the client, and works on it with a tool of the server.
const CODE: &str = "const read = await mcp.fs.read({ path: args.path });\n\
                    return await mcp.json.parse({ json: read.content });";

fn home() -> Home {
    Home::new(
        "[permissions]\nfs = { routing = \"client\" }\njson = { approval_mode = \"auto\" }\n\
         \"fs:delete\" = { deny = true }\n",
    )
}

fn served() -> (Home, Served) {
    let home = home();
    let served = home.serve(&[]);
    (home, served)
}

/// `pml_execute` of a client that runs programs itself, with these tools of its own.
fn execute(served: &Served, code: &str, tools: &Value) -> Value {
    let arguments = json!({"intent": "read the settings", "implementation": {"type": "code", "code": code},
        "context": {"path": "settings.json"}});
    let params =
        json!({"name": "pml_execute", "arguments": arguments, "_meta": {"pml/client": {"tools": tools}}});
    let client = json!({"name": "far", "capabilities": {}});
    modern_by(served, &client, "tools/call", &params).response()["result"].clone()
}

/// What the client is told to run.
#[track_caller]
fn told(served: &Served) -> Value {
    let told = execute(served, CODE, &json!([]))["structuredContent"].clone();
    assert_eq!(told["status"], "execute_locally", "{told}");
    told
}

/// The traces of a client, each with its place after the one before.
struct Chain {
    client: &'static str,
    seq: u64,
    previous: String,
}

impl Chain {
    fn new(client: &'static str) -> Chain {
        Chain { client, seq: 0, previous: String::new() }
    }

    /// Gives a trace its place.
    fn add(&mut self, trace: Value) -> Value {
        self.seq += 1;
        let trace = placed(trace, self.client, self.seq, &self.previous);
        self.previous = trace["hash"].as_str().unwrap().to_owned();
        trace
    }
}

fn placed(mut trace: Value, client: &str, seq: u64, previous: &str) -> Value {
    (trace["client"], trace["seq"], trace["previous"]) = (json!(client), json!(seq), json!(previous));
    trace.as_object_mut().unwrap().remove("hash");
    trace["hash"] = json!(chain_hash(previous, &raw(&trace)).unwrap());
    trace
}

/// The trace of a run of [`CODE`] that worked.
fn worked(workflow: &Value) -> Value {
    json!({
        "workflowId": workflow, "capabilityId": "", "success": true, "durationMs": 12.5,
        "taskResults": [
            {"taskId": "t1", "tool": "fs:read", "args": {"_withheld": true, "bytes": 24}, "success": true,
                "result": {"_withheld": true, "bytes": 120, "shape": "object"}, "durationMs": 4.0},
            {"taskId": "t2", "tool": "json:parse", "success": true, "durationMs": 3.0},
        ],
        "edges": [{"from": 0, "to": 1, "type": "dependency"}],
        "executedPath": ["n1", "n2"], "decisions": [], "timestamp": "2026-01-13T10:00:00Z",
    })
}

fn failed(workflow: &Value) -> Value {
    let mut trace = worked(workflow);
    (trace["success"], trace["error"]) = (json!(false), json!("the file is not there"));
    trace["taskResults"] =
        json!([{"tool": "fs:read", "success": false, "error": "not found", "durationMs": 1}]);
    (trace["edges"], trace["executedPath"]) = (json!([]), json!(["n1"]));
    trace
}

fn post(served: &Served, traces: &[&Value]) -> (u16, Value) {
    api(served, "POST", "/api/traces", &json!({ "traces": traces }).to_string())
}

/// Sends a trace that is taken, and gives what is said of it.
#[track_caller]
fn taken(served: &Served, trace: &Value) -> Value {
    let (status, reply) = post(served, &[trace]);
    assert_eq!((status, reply["results"].as_array().map(Vec::len)), (200, Some(1)), "{reply}");
    reply["results"][0].clone()
}

fn capabilities(served: &Served) -> Vec<Value> {
    let (status, page) = api(served, "GET", "/api/capabilities", "");
    assert_eq!(status, 200);
    page["capabilities"].as_array().unwrap_or_else(|| panic!("{page}")).clone()
}

fn traces(served: &Served) -> Vec<Value> {
    api(served, "GET", "/api/traces", "").1["traces"].as_array().unwrap().clone()
}

#[test]
fn a_program_that_its_client_ran_becomes_a_capability() {
    let (home, served) = served();
    let told = told(&served);
    assert_eq!(told["code"], CODE);
    assert_eq!(
        (&told["toolsUsed"], &told["clientTools"]),
        (&json!(["fs:read", "json:parse"]), &json!(["fs:read"]))
    );
    let dag = json!({"mode": "dag", "tasksCount": 2, "layersCount": 2, "toolsDiscovered": ["fs:read", "json:parse"]});
    assert_eq!(told["dag"], dag);
    assert!(told["executionTimeMs"].is_number(), "{told}");
    assert!(capabilities(&served).is_empty() && traces(&served).is_empty(), "nothing has run");

    let trace = Chain::new("desk").add(worked(&told["workflowId"]));
    let said = taken(&served, &trace);
    assert_eq!((&said["status"], said.get("warning")), (&json!("stored"), None), "{said}");
    let known = capabilities(&served);
    assert_eq!(known.len(), 1, "{known:?}");
    assert_eq!(said["capabilityId"], known[0]["id"], "{known:?}");
    let stored = &traces(&served)[0];
    assert_eq!((&stored["workflowId"], &stored["status"]), (&told["workflowId"], &json!("success")));
    assert_eq!(stored["intent"], "read the settings");
    let edge = json!({"from": 0, "to": 1, "type": "dependency"});
    assert!(stored["edges"].as_array().unwrap().contains(&edge), "{stored}");

    assert_eq!(taken(&served, &trace)["status"], "repeated", "the same trace again");
    assert_eq!((capabilities(&served).len(), traces(&served).len()), (1, 1));
    let listed = home.run(&["capabilities", "list", "--recent"]);
    assert!(listed.stdout.contains(known[0]["name"].as_str().unwrap()), "{listed:?}");
}

#[test]
fn a_failure_leaves_a_trace_and_uses_up_what_was_analysed() {
    let (_home, served) = served();
    let (told, mut chain) = (told(&served), Chain::new("desk"));
    let said = taken(&served, &chain.add(failed(&told["workflowId"])));
    assert_eq!((&said["status"], said.get("capabilityId")), (&json!("stored"), None), "{said}");
    let stored = traces(&served);
    assert_eq!((stored.len(), &stored[0]["status"]), (1, &json!("failed")), "{stored:?}");
    let said = taken(&served, &chain.add(worked(&told["workflowId"])));
    assert!(said["warning"].as_str().unwrap().contains("teaches nothing"), "{said}");
    assert!(capabilities(&served).is_empty());
    assert_eq!(traces(&served).len(), 2, "the second trace is kept");
}

#[test]
fn a_second_trace_of_a_run_counts_for_nothing() {
    let (_home, served) = served();
    let (told, mut chain) = (told(&served), Chain::new("desk"));
    let first = taken(&served, &chain.add(worked(&told["workflowId"])));
    assert!(first.get("warning").is_none(), "{first}");
    let second = taken(&served, &chain.add(worked(&told["workflowId"])));
    assert!(second["warning"].is_string() && second.get("capabilityId").is_none(), "{second}");
    let known = capabilities(&served);
    assert_eq!(known.len(), 1);
    let name = known[0]["id"].as_str().unwrap();
    let of = api(&served, "GET", &format!("/api/traces/{name}"), "").1;
    assert_eq!(of["traces"].as_array().unwrap().len(), 1, "{of}");
}

#[test]
fn lost_and_reordered_traces_are_seen() {
    let (home, served) = served();
    let mut chain = Chain::new("desk");
    let all: Vec<Value> = (0..3).map(|_| chain.add(worked(&told(&served)["workflowId"]))).collect();
    let (status, reply) = post(&served, &[&all[0], &all[2]]);
    assert_eq!((status, &reply["expected"], reply["results"].as_array().unwrap().len()), (200, &json!(2), 1));
    let (_, reply) = post(&served, &[&all[2], &all[1]]);
    assert_eq!((&reply["expected"], reply["results"].as_array().unwrap().len()), (&json!(2), 0), "{reply}");
    let (_, reply) = post(&served, &[&all[0], &all[1], &all[2]]);
    let said: Vec<&str> =
        reply["results"].as_array().unwrap().iter().map(|one| one["status"].as_str().unwrap()).collect();
    assert_eq!((said, reply.get("expected")), (vec!["repeated", "stored", "stored"], None), "{reply}");
    assert_eq!((capabilities(&served).len(), traces(&served).len()), (1, 3));

    let other = placed(failed(&all[1]["workflowId"]), "desk", 2, all[0]["hash"].as_str().unwrap());
    let (status, reply) = post(&served, &[&other]);
    assert_eq!((status, &reply["error"]["code"]), (409, &json!("TRACE_FORKED")), "{reply}");
    let rows = home.run(&["audit", "list", "--json"]).stdout;
    assert!(rows.contains("trace refused"), "{rows}");
    assert_eq!(traces(&served).len(), 3);
}

#[test]
fn only_programs_with_a_tool_of_the_client_are_its_to_run() {
    let (_home, served) = served();
    let here = execute(&served, "return await mcp.json.parse({ json: '[1]' });", &json!([]));
    assert_eq!(here["structuredContent"]["status"], "success", "{here}");

    let notes = json!([{"server": "notes", "name": "find", "description": "finds notes",
        "inputSchema": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}},
        {"server": "json", "name": "parse", "description": "takes the place of the server's"}]);
    let found = execute(&served, "return await mcp.notes.find({ word: 'tea' });", &notes);
    assert_eq!(found["structuredContent"]["clientTools"], json!(["notes:find"]), "{found}");
    let kept = execute(&served, "return await mcp.json.parse({ json: '[1]' });", &notes);
    assert_eq!(kept["structuredContent"]["status"], "success", "the server's own tool stays its own: {kept}");
    let wrong = execute(&served, "return await mcp.notes.find({});", &notes);
    assert_eq!(wrong["structuredContent"]["error"]["code"], "INVALID_PROGRAM", "{wrong}");
    let denied = execute(&served, "return await mcp.fs.delete({ path: 'a' });", &json!([]));
    assert_eq!(denied["structuredContent"]["error"]["code"], "DENIED", "{denied}");
    let unreadable = execute(&served, CODE, &json!("all of them"));
    assert_eq!(unreadable["structuredContent"]["error"]["code"], "INVALID_REQUEST", "{unreadable}");
    let unknown = execute(&served, "return await mcp.notes.find({ word: 'tea' });", &json!([]));
    assert_eq!(unknown["isError"], true, "what was told before counts no more: {unknown}");
}

#[test]
fn a_client_that_runs_nothing_itself_is_told_so_and_nothing_is_called_here() {
    let (_home, served) = served();
    let client = json!({"name": "near", "capabilities": {}});
    let arguments =
        json!({"intent": "read", "implementation": {"type": "code", "code": CODE}, "context": {"path": "a"}});
    let params = json!({"name": "pml_execute", "arguments": arguments});
    let refused = modern_by(&served, &client, "tools/call", &params).response()["result"].clone();
    assert_eq!(refused["structuredContent"]["error"]["code"], "DENIED", "{refused}");
    assert!(text(&refused).contains("`fs:read` is called on the machine of the client"), "{refused}");
    let direct = json!({"name": "fs:read", "arguments": {"path": "pml.toml"}});
    let refused = modern_by(&served, &client, "tools/call", &direct).response()["result"].clone();
    assert!(text(&refused).contains("`fs:read` is called on the machine of the client"), "{refused}");
    assert!(capabilities(&served).is_empty());
}

/// The reply to traces by somebody with this key.
fn post_by(served: &Served, key: &str, traces: &[&Value]) -> (u16, Value) {
    let token = format!("Bearer {key}");
    let host = crate::http::authority(served);
    let headers = [("Host", host), ("Authorization", token.as_str()), ("Content-Type", "application/json")];
    let body = json!({ "traces": traces }).to_string();
    let reply = send(served, "POST", "/api/traces", &headers, &body);
    (reply.status, serde_json::from_str(&reply.body()).unwrap())
}
