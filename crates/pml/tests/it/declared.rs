//! What replies tell a client to send next fits the input schemas that `tools/list` declares, so that a client which
//! checks its own requests can follow them.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::harness::{Client, Home, text};

const ALL: &str =
    "[permissions]\n\"*\" = { approval_mode = \"auto\" }\n\"fs:delete\" = { approval_mode = \"hil\" }\n";

/// The declared input schemas, closed: what is not declared is refused.
struct Declared(HashMap<String, jsonschema::Validator>);

impl Declared {
    fn of(client: &mut Client) -> Declared {
        let list = client.request("tools/list", &json!({}));
        let tools = list["tools"].as_array().unwrap().iter();
        let validator = |tool: &Value| {
            let mut schema = tool["inputSchema"].clone();
            schema["additionalProperties"] = json!(false);
            (tool["name"].as_str().unwrap().to_owned(), jsonschema::validator_for(&schema).unwrap())
        };
        Declared(tools.map(validator).collect())
    }

    #[track_caller]
    fn check(&self, tool: &str, arguments: &Value) {
        let validator = self.0.get(tool).unwrap_or_else(|| panic!("`{tool}` is not listed"));
        if let Err(error) = validator.validate(arguments) {
            panic!("`{tool}` declares no {arguments}: {error}");
        }
    }

    /// Checks every request that a text shows, and returns the first one.
    #[track_caller]
    fn check_text(&self, shown: &str) -> (String, Value) {
        let mut found = Vec::new();
        for tool in self.0.keys() {
            for (at, _) in shown.match_indices(tool.as_str()) {
                let rest = shown[at + tool.len()..].trim_start_matches(['`', ':']).trim_start();
                if !rest.starts_with('{') {
                    continue;
                }
                let line = rest.lines().next().unwrap_or_default().replace('…', "1");
                let mut values = serde_json::Deserializer::from_str(&line).into_iter::<Value>();
                let request = values.next().unwrap().unwrap_or_else(|error| panic!("{error}: {line}"));
                self.check(tool, &request);
                found.push((at, tool.clone(), request));
            }
        }
        found.sort_by_key(|(at, _, _)| *at);
        let first = found.into_iter().next().unwrap_or_else(|| panic!("no request in {shown}"));
        (first.1, first.2)
    }
}

fn program(code: &str, options: &Value) -> Value {
    json!({ "intent": "a test", "implementation": { "type": "code", "code": code }, "options": options })
}

#[test]
fn what_a_dry_run_and_an_exploration_ask_for_is_declared() {
    let home = Home::new(ALL);
    std::fs::write(home.path("notes.txt"), "one\ntwo\n").unwrap();
    let mut client = home.stdio(&[]);
    let declared = Declared::of(&mut client);

    let code = "return await mcp.math.evaluate({ expression: args.expression });";
    let options = json!({ "dryRun": true, "mocks": { "args": { "expression": "1 + 1" } } });
    let dry = client.call("pml_execute", &program(code, &options));
    let (tool, mut request) = declared.check_text(text(&dry));
    assert_eq!(tool, "pml_execute", "{}", text(&dry));
    assert_eq!(request["context"]["expression"], 1, "{}", text(&dry));
    request["context"]["expression"] = json!("2 + 2");
    let ran = client.call(&tool, &request);
    assert_eq!(ran["structuredContent"]["result"]["value"], 4, "{ran}");

    let asked = json!({ "intent": "read notes.txt", "context": {}, "maxPaths": 1, "timeoutMs": 20_000 });
    declared.check("pml_explore", &asked);
    let explored = client.call("pml_explore", &asked);
    let (tool, request) = declared.check_text(text(&explored));
    let ran = client.call(&tool, &request);
    assert_eq!(ran["structuredContent"]["status"], "success", "{ran}");
}

#[test]
fn what_runs_ask_for_is_declared() {
    let home = Home::new(ALL);
    std::fs::write(home.path("old.txt"), "x").unwrap();
    std::fs::create_dir(home.path("notes")).unwrap();
    std::fs::write(home.path("notes/monday.md"), "one two three").unwrap();
    std::fs::write(home.path("notes/friday.md"), "one two three four").unwrap();
    let mut client = home.stdio(&[]);
    let declared = Declared::of(&mut client);

    // A result that is paged, and calls that are summarised.
    let code = "for (let n = 0; n < 50; n++) await mcp.math.evaluate({ expression: `${n}` });\n\
        return 'x'.repeat(40000);";
    let long = client.call("pml_execute", &program(code, &json!({})));
    let (tool, request) = declared.check_text(text(&long));
    let page = client.call(&tool, &request);
    assert_ne!(page["isError"], true, "{page}");
    let more = json!({ "workflow_id": request["workflow_id"], "task_id": "result", "offset": 1, "limit": 10, "format": "raw" });
    declared.check("pml_get_task_result", &more);

    // A question, in the words of its reply.
    let code = "return await mcp.fs.delete({ path: 'old.txt' });";
    let asked = client.call("pml_execute", &program(code, &json!({})));
    assert_eq!(asked["structuredContent"]["status"], "approval_required", "{asked}");
    let id = &asked["structuredContent"]["workflowId"];
    declared.check("pml_continue", &json!({ "workflow_id": id, "approved": true }));
    declared.check("pml_continue", &json!({ "workflow_id": id, "answer": { "calls": [] } }));
    declared.check("pml_replan", &json!({ "workflow_id": id, "dagStructure": { "tasks": [] } }));
    declared.check("pml_replan", &json!({ "workflow_id": id, "new_requirement": "count" }));
    declared.check("pml_abort", &json!({ "workflow_id": id, "reason": "enough" }));

    // A call that is ready to be sent.
    let count = "const f = await mcp.fs.read({ path: \"notes/monday.md\" });\n\
        const c = await mcp.text.count({ text: f.content });\nreturn c.words;";
    let learn = json!({ "intent": "count the words in notes/monday.md",
        "implementation": { "type": "code", "code": count } });
    assert_eq!(client.call("pml_execute", &learn)["structuredContent"]["result"], 3);
    let ready = client.call("pml_execute", &json!({ "intent": "words counted: notes/friday.md, please" }));
    let (tool, request) = declared.check_text(text(&ready));
    assert_eq!(client.call(&tool, &request)["structuredContent"]["result"], 4, "{}", text(&ready));
}
