//! What a model has to read: tool definitions and replies, measured in tokens of cl100k.

use std::sync::LazyLock;

use serde_json::{Value, json};
use tiktoken_rs::CoreBPE;

use crate::harness::{Client, Home, material, node, text};

fn tokens(text: &str) -> usize {
    static TOKENIZER: LazyLock<CoreBPE> = LazyLock::new(|| tiktoken_rs::cl100k_base().unwrap());
    TOKENIZER.encode_ordinary(text).len()
}

/// Twenty servers of 250 tools each, all of them known.
fn five_thousand_tools() -> Home {
    let (node, script) = (node(), material("fixture/many.mjs"));
    let config: String = (0..20)
        .map(|n| {
            format!(
                "[servers.department{n}]\ncommand = {node:?}\nargs = [{script:?}, \"250\"]\n\
                 description = \"everything about department number {n}, its people, its papers and its money\"\n"
            )
        })
        .collect();
    let home = Home::new(&config);
    let checked = home.run(&["doctor"]);
    assert_eq!(checked.code, 0, "{}", checked.stdout);
    home
}

/// The part of `tools/list` that a client shows to its model.
fn shown_to_a_model(list: &Value) -> String {
    let tools = list["tools"].as_array().unwrap().iter();
    let shown = tools.map(|tool| {
        json!({"name": tool["name"], "description": tool["description"], "inputSchema": tool["inputSchema"]})
    });
    Value::from_iter(shown).to_string()
}

#[test]
fn five_thousand_tools_cost_a_model_less_than_nine_hundred_tokens() {
    let home = five_thousand_tools();
    let mut client = home.stdio(&[]);
    let list = client.request("tools/list", &json!({}));
    let meta = tokens(&shown_to_a_model(&list));
    println!(
        "tools/list: {meta} tokens in exposure `meta`, {} with all that is sent",
        tokens(&list.to_string())
    );
    assert!(meta <= 900, "{meta} tokens");

    let found = client.call("pml_discover", &json!({"intent": "give back a text"}));
    // The tools of one number are alike on all servers, so they are one result.
    assert!(found["structuredContent"]["total"].as_u64().unwrap() >= 250, "{found}");
    assert_eq!(found["structuredContent"]["results"][0]["also"].as_array().unwrap().len(), 19, "{found}");

    let mut all = home.stdio(&["--expose", "full"]);
    let (mut tools, mut cursor, mut full) = (0, None, 0);
    loop {
        let page =
            all.request("tools/list", &cursor.map_or(json!({}), |cursor: Value| json!({"cursor": cursor})));
        tools += page["tools"].as_array().unwrap().len();
        full += page.to_string().len();
        match page.get("nextCursor") {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
    }
    println!("exposure `full`: {tools} tools, {full} bytes");
    assert!(tools > 5_000);
}

#[test]
fn agents_are_told_where_values_belong_and_what_a_ready_call_is() {
    let home = Home::new("");
    let mut client = home.stdio(&[]);
    let list = client.request("tools/list", &json!({}));
    let tools = list["tools"].as_array().unwrap();
    let execute = tools.iter().find(|tool| tool["name"] == "pml_execute").unwrap();
    let described = execute["description"].as_str().unwrap();
    for part in ["values into `context`", "`args`", "the second time the intent alone", "sending it as it is"]
    {
        assert!(described.contains(part), "`{part}`: {described}");
    }
}

#[test]
fn what_is_found_is_read_in_seven_hundred_tokens() {
    let home = Home::new("");
    let mut client = home.stdio(&[]);
    let intents = [
        "read a file",
        "count the words of a text",
        "average of a column of a CSV file",
        "how many days are between two dates",
        "fetch a web page and extract the links",
        "find all files that contain a word and replace it",
        "parse JSON and query it",
        "convert a number to hexadecimal",
        "lire un fichier et compter les lignes",
        "write the sorted rows to a new file",
    ];
    for intent in intents {
        let found = client.call("pml_discover", &json!({"intent": intent}));
        let read = tokens(text(&found));
        println!("{read} tokens for `{intent}`");
        assert!(read <= 700, "{read} tokens: {}", text(&found));
        assert!(!found["structuredContent"]["results"].as_array().unwrap().is_empty(), "{found}");
    }
    let ten = client.call("pml_discover", &json!({"intent": "work with files and texts", "limit": 10}));
    assert_eq!(ten["structuredContent"]["results"].as_array().unwrap().len(), 10);
    assert!(tokens(text(&ten)) <= 700, "{}", text(&ten));
    let full = client.call("pml_discover", &json!({"intent": "read a file", "detail": "full", "limit": 1}));
    assert!(text(&full).contains("/**"), "full detail has all comments: {}", text(&full));
}

fn execute(client: &mut Client, request: &Value) -> Value {
    client.call("pml_execute", request)
}

fn run(client: &mut Client, intent: &str, code: &str) -> Value {
    let ran = execute(client, &json!({"intent": intent, "implementation": {"type": "code", "code": code}}));
    assert_eq!(ran["structuredContent"]["status"], "success", "{ran}");
    ran
}

/// The tokens of a reply beside its result: in the text, and in the structured content.
fn tokens_beside_result(reply: &Value) -> (usize, usize) {
    let mut told = reply["structuredContent"].clone();
    let result = told.as_object_mut().unwrap().remove("result").unwrap_or_default().to_string();
    (tokens(text(reply).strip_prefix(&result).unwrap_or(text(reply))), tokens(&told.to_string()))
}

#[test]
fn a_run_of_three_hundred_calls_is_told_in_five_hundred_tokens() {
    let home = Home::new("");
    let mut client = home.stdio(&[]);
    let many = "const all = [];\nfor (let n = 0; n < 300; n++) {\n  try {\n    \
        const { value } = await mcp.math.evaluate({ expression: n % 100 === 7 ? `${n} +` : `${n} + 1` });\n    all.push(value);\n  \
        } catch { all.push(null); }\n}\n";
    let done = run(&mut client, "add one to many numbers", &format!("{many}return all.length;"));
    let (said, structured) = tokens_beside_result(&done);
    println!("300 calls: {said} tokens of text, {structured} of structure");
    assert!(said <= 500 && structured <= 500, "{done}");
    let told = &done["structuredContent"];
    assert_eq!(told["calls"]["total"], 300);
    assert_eq!(told["calls"]["byTool"], json!({"math:evaluate": {"success": 297, "error": 3}}));
    let statuses: Vec<&str> =
        told["tasks"].as_array().unwrap().iter().map(|task| task["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["error", "error", "error", "success", "success", "success"], "failures come first");
    assert!(text(&done).contains("3 of 300 calls failed: math:evaluate (n"), "{}", text(&done));
    assert!(text(&done).contains("math:evaluate 3 error + 297 success"), "{}", text(&done));

    let id = &told["workflowId"];
    let all = client.call("pml_get_task_result", &json!({"workflow_id": id}));
    assert_eq!(all["structuredContent"]["tasks"].as_array().unwrap().len(), 300, "all of them can be read");

    let failing = json!({"type": "code", "code": format!("{many}throw new Error('enough');")});
    let failed = execute(&mut client, &json!({"intent": "fail late", "implementation": failing}));
    assert_eq!(failed["structuredContent"]["status"], "failed");
    let (said, structured) = tokens_beside_result(&failed);
    println!("300 calls and a failure: {said} tokens of text, {structured} of structure");
    assert!(said <= 500 && structured <= 900, "{failed}");
    let told = text(&failed);
    let places = ["PROGRAM_ERROR", "3 of 300 calls failed", "finished: math:evaluate × 297"];
    let places = places.map(|part| told.find(part).unwrap_or_else(|| panic!("`{part}`: {told}")));
    assert!(places.is_sorted(), "{told}");
}

#[test]
fn a_likely_capability_is_offered_as_a_call_that_can_be_sent_as_it_is() {
    let home = Home::new("");
    std::fs::create_dir(home.path("notes")).unwrap();
    for (name, content) in [("monday.md", "one two three"), ("friday.md", "one two three four")] {
        std::fs::write(home.path("notes").join(name), content).unwrap();
    }
    let mut client = home.stdio(&[]);
    let count = "const f = await mcp.fs.read({ path: \"notes/monday.md\" });\n\
        const c = await mcp.text.count({ text: f.content });\nreturn c.words;";
    run(&mut client, "count the words in notes/monday.md", count);

    let intent = "words counted: notes/friday.md, please";
    let offered = execute(&mut client, &json!({"intent": intent}));
    let suggested = &offered["structuredContent"]["suggestions"];
    let said = text(&offered);
    println!("{} tokens: {said}", tokens(said));
    assert_eq!(offered["structuredContent"]["status"], "suggestions", "{offered}");
    assert!(tokens(said) <= 150, "{said}");
    assert_eq!(suggested["tools"], json!([]), "{offered}");
    assert!(!said.contains("mcp."), "{said}");
    let candidate = &suggested["candidates"][0];
    for field in ["id", "name", "confidence", "arguments", "parameters"] {
        assert!(candidate.get(field).is_some(), "{field}: {candidate}");
    }
    let line = said.lines().find_map(|line| line.strip_prefix("pml_execute ")).unwrap();
    let arguments: Value = serde_json::from_str(line).unwrap();
    assert_eq!(arguments, suggested["readyCall"]["arguments"], "text and structure say the same");
    assert_eq!(execute(&mut client, &arguments)["structuredContent"]["result"], 4);

    let open = execute(&mut client, &json!({"intent": "count the words"}));
    assert!(text(&open).contains(r#"open: path (was "notes/monday.md")"#), "{}", text(&open));
    assert_eq!(
        open["structuredContent"]["suggestions"]["readyCall"]["open"],
        json!([{"name": "path", "was": "notes/monday.md"}])
    );

    let found = client.call("pml_discover", &json!({"intent": "count the words in notes/friday.md"}));
    assert_eq!(found["structuredContent"]["results"][0]["type"], "capability", "{found}");
    let line = text(&found).lines().find_map(|line| line.strip_prefix("pml_execute ")).unwrap();
    let call: Value = serde_json::from_str(line).unwrap();
    assert_eq!(call, found["structuredContent"]["readyCall"]["arguments"]);
    assert_eq!(execute(&mut client, &call)["structuredContent"]["result"], 4, "{}", text(&found));
}

#[test]
fn a_refusal_is_read_in_six_hundred_bytes() {
    let home = Home::new("");
    let mut client = home.stdio(&[]);
    let convert =
        "const { value } = await mcp.math.evaluate({ expression: \"5 * 1.8 + 32\" });\nreturn value;";
    run(&mut client, "convert 5 degrees Celsius to Fahrenheit", convert);
    let intents = [
        "average salary of the Sales department in data/employees.csv",
        "which files in logs/ mention a timeout",
        "extract all the links from docs/install.md and check that they work",
        "convert 5 degrees Celsius to Kelvin",
        "how many days are there from 2024-01-05 to 2024-03-01",
        "compose a sonnet about autumn leaves",
        "sort the rows of data/sales.csv by price and write them to data/sorted.csv",
    ];
    for intent in intents {
        let refused = execute(&mut client, &json!({"intent": intent}));
        if refused["structuredContent"]["status"] != "suggestions" {
            continue;
        }
        let said = text(&refused);
        println!("{} bytes for `{intent}`", said.len());
        assert!(said.len() <= 600, "{} bytes: {said}", said.len());
        let suggested = &refused["structuredContent"]["suggestions"];
        let is_empty = |of: &str| suggested[of].as_array().is_none_or(Vec::is_empty);
        assert!(
            !is_empty("tools") || suggested.get("readyCall").is_some() || said.contains("no tool"),
            "{refused}"
        );
    }
}
