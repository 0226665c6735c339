//! The Tasks extension: what takes longer than its client waits is a task, and a task outlives its gateway.

use serde_json::{Value, json};

use crate::harness::{Home, Served, eventually, material, node, text};
use crate::http::modern_by;

/// A client that takes tasks and can ask its user.
fn client() -> Value {
    json!({ "name": "tasky", "capabilities": {
        "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} },
    } })
}

fn request(served: &Served, method: &str, params: &Value) -> Value {
    modern_by(served, &client(), method, params).response()
}

#[track_caller]
fn result(served: &Served, method: &str, params: &Value) -> Value {
    let mut reply = request(served, method, params);
    assert!(reply.get("error").is_none(), "{reply}");
    reply["result"].take()
}

/// The id of the task that a call becomes.
#[track_caller]
fn begin(served: &Served, tool: &str, arguments: &Value) -> String {
    let task = result(served, "tools/call", &json!({ "name": tool, "arguments": arguments }));
    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{task}");
    assert!(task["createdAt"].as_str().unwrap().ends_with('Z'), "{task}");
    assert!(task["pollIntervalMs"].as_u64().unwrap() > 0 && task.get("ttlMs").is_some(), "{task}");
    assert!(task.get("result").is_none() && task.get("requestState").is_none(), "{task}");
    task["taskId"].as_str().unwrap().to_owned()
}

fn get(served: &Served, task: &str) -> Value {
    let task = result(served, "tasks/get", &json!({ "taskId": task }));
    assert_eq!(task["resultType"], "complete", "{task}");
    task
}

/// Waits until the task has this status.
fn settled(served: &Served, task: &str, status: &str) -> Value {
    eventually(status, || get(served, task)["status"] == status);
    get(served, task)
}

fn program(code: &str) -> Value {
    json!({ "intent": "wait", "implementation": { "type": "code", "code": code }, "context": { "n": 41 } })
}

#[test]
fn a_task_outlives_its_gateway() {
    let home = Home::new("client_wait = \"100ms\"\n");
    let mut served = home.serve(&[]);
    let discovered = result(&served, "server/discover", &json!({}));
    assert!(discovered["capabilities"]["extensions"].get("io.modelcontextprotocol/tasks").is_some());
    let code = "await new Promise((done) => setTimeout(done, 3000)); return args.n + 1;";
    let task = begin(&served, "pml_execute", &program(code));
    assert_eq!(get(&served, &task)["status"], "working");
    served.child.kill().unwrap();
    served.child.wait().unwrap();

    let served = home.serve(&[]);
    let done = settled(&served, &task, "completed");
    assert_eq!(done["result"]["structuredContent"]["result"], 42, "{done}");
    let acknowledged = result(&served, "tasks/cancel", &json!({ "taskId": task }));
    assert!(
        acknowledged["resultType"] == "complete" && acknowledged.get("taskId").is_none(),
        "{acknowledged}"
    );
    assert_eq!(get(&served, &task)["status"], "completed", "what is over stays as it is");
}

#[test]
fn only_clients_that_take_tasks_get_them() {
    let home = Home::new("client_wait = \"100ms\"\n");
    let served = home.serve(&[]);
    let other = json!({ "name": "plain", "capabilities": {} });
    let code = "await new Promise((done) => setTimeout(done, 1000)); return 1;";
    let params = json!({ "name": "pml_execute", "arguments": program(code) });
    let told = modern_by(&served, &other, "tools/call", &params).response();
    let run = &told["result"]["structuredContent"];
    assert_eq!(run["status"], "running", "{told}");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let params = json!({ "taskId": run["workflowId"], "inputResponses": {} });
        let refused = modern_by(&served, &other, method, &params).response();
        assert_eq!(refused["error"]["code"], -32021, "{method}: {refused}");
        let unknown = json!({ "taskId": "run_nothing", "inputResponses": {} });
        assert_eq!(request(&served, method, &unknown)["error"]["code"], -32602, "{method}");
    }
    for gone in ["tasks/list", "tasks/result"] {
        assert_eq!(request(&served, gone, &json!({}))["error"]["code"], -32601, "{gone}");
    }
}

#[test]
fn a_tool_that_takes_long_is_a_task_with_its_own_result() {
    let script = material("fixture/legacy.mjs");
    let home = Home::new(&format!(
        "expose = \"full\"\nclient_wait = \"300ms\"\n[servers.legacy]\ncommand = {:?}\nargs = [{script:?}, \"--stdio\"]\n\
         definitions = \"follow\"\n[permissions]\n\"*\" = {{ approval_mode = \"auto\" }}\n",
        node()
    ));
    let served = home.serve(&[]);
    let slow =
        |steps: u32| begin(&served, "legacy__test_slow", &json!({ "steps": steps, "interval_ms": 20 }));
    let (short, long) = (slow(60), slow(3000));
    let done = settled(&served, &short, "completed");
    assert_eq!(text(&done["result"]), "finished 60 steps", "{done}");
    result(&served, "tasks/cancel", &json!({ "taskId": long }));
    settled(&served, &long, "cancelled");
}

#[test]
fn the_question_of_a_task_is_answered_by_its_client() {
    let home =
        Home::new("client_wait = \"100ms\"\n[approvals]\nby = \"client\"\n[builtin.fs]\nroot = \".\"\n");
    let served = home.serve(&[]);
    let code = "await new Promise((done) => setTimeout(done, 1000));\n\
         const { value } = await mcp.math.evaluate({ expression: \"6 * 7\" });\n\
         return (await mcp.fs.write({ path: \"answer.txt\", content: `${value}` })).path;";
    let params = json!({ "name": "pml_execute", "arguments": program(code) });
    // What can be asked before anything runs is asked at once; the task begins with the answer.
    let mut answered = params.clone();
    let first = result(&served, "tools/call", &params);
    assert_eq!(first["resultType"], "input_required", "{first}");
    answered["requestState"] = first["requestState"].clone();
    answered["inputResponses"] = json!({ "q1": { "action": "accept", "content": { "decision": "allow" } } });
    let begun = result(&served, "tools/call", &answered);
    assert_eq!(begun["resultType"], "task", "{begun}");
    let task = begun["taskId"].as_str().unwrap().to_owned();
    // The arguments are known only now.
    let asks = settled(&served, &task, "input_required");
    let (name, asked) = asks["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(asked["method"], "elicitation/create", "{asks}");
    assert!(!home.path("answer.txt").exists());
    let answers = json!({ "taskId": task, "inputResponses": {
        "another": { "action": "accept", "content": { "decision": "deny" } },
        name: { "action": "accept", "content": { "decision": "allow" } },
    } });
    let acknowledged = result(&served, "tasks/update", &answers);
    assert_eq!(acknowledged["resultType"], "complete", "{acknowledged}");
    settled(&served, &task, "completed");
    assert_eq!(std::fs::read_to_string(home.path("answer.txt")).unwrap(), "42");
}
