//! `pml_execute` and `pml execute`: what they answer, when they refuse, and in which words.

use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::{Client, Home, text};

/// Reading tools that are built in may be called; for those that write a person is asked.
const BARE: &str = "";
/// So may writing files.
const WRITING: &str = "[permissions]\n\"fs:*\" = { approval_mode = \"auto\" }\n";

fn run(client: &mut Client, code: &str, context: &Value) -> Value {
    run_with(client, code, context, &json!({}))
}

fn run_with(client: &mut Client, code: &str, context: &Value, options: &Value) -> Value {
    let implementation = json!({"type": "code", "code": code});
    client.call(
        "pml_execute",
        &json!({"intent": "try", "implementation": implementation, "context": context, "options": options}),
    )
}

/// What is told, without what differs from run to run.
fn told(result: &Value) -> Value {
    let mut told = result["structuredContent"].clone();
    if let Some(told) = told.as_object_mut() {
        told.remove("workflowId");
    }
    for task in told["tasks"].as_array_mut().into_iter().flatten() {
        for timing in ["executionTimeMs", "issuedAt"] {
            if let Some(task) = task.as_object_mut() {
                task.remove(timing);
            }
        }
    }
    told
}

#[test]
fn a_program_gives_its_result_and_what_it_did() {
    let home = Home::new(BARE);
    let mut client = home.stdio(&[]);
    let code = "const sum = await mcp.math.evaluate({ expression: `${args.a} + 1` });\nconsole.log('sum', sum.value);\nreturn { sum, big: 12345678901234567 };";
    let result = run(&mut client, code, &json!({"a": 41}));
    assert_eq!(result["isError"], false);
    expect![[r#"
        {
          "status": "success",
          "capabilityId": "cap_a88adc0e14fd28213cc4f3d638f86469",
          "result": {
            "sum": {
              "value": 42
            },
            "big": 12345678901234568
          },
          "tasks": [
            {
              "nodeId": "n1",
              "tool": "math:evaluate",
              "status": "success"
            }
          ],
          "console": [
            {
              "level": "log",
              "text": "sum 42"
            }
          ]
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&told(&result)).unwrap());
    assert_eq!(text(&result), r#"{"sum":{"value":42},"big":12345678901234568}"#);
    assert!(result["structuredContent"]["workflowId"].as_str().unwrap().starts_with("run_"));
}

#[test]
fn a_failure_names_code_node_and_line_of_the_source_and_keeps_what_was_done() {
    let home = Home::new(BARE);
    let mut client = home.stdio(&[]);
    let code = "interface Wanted { path: string }\nconst wanted: Wanted = { path: \"absent.txt\" };\nawait mcp.math.evaluate({ expression: \"1\" });\nconst file = await mcp.fs.read(wanted);\nreturn file;";
    let result = run(&mut client, code, &json!({}));
    assert_eq!(result["isError"], true);
    let error = &result["structuredContent"]["error"];
    assert_eq!(
        (&error["code"], &error["nodeId"], &error["line"]),
        (&json!("TOOL_ERROR"), &json!("n2"), &json!(4))
    );
    assert!(error["message"].as_str().unwrap().contains("absent.txt"), "{error}");
    let tasks = told(&result)["tasks"].clone();
    assert_eq!(tasks[0]["status"], "success");
    assert_eq!(tasks[0]["resultPreview"], r#"{"value":1}"#);
    assert_eq!(tasks[1]["status"], "error");
    assert!(text(&result).contains("(line 4)"), "{}", text(&result));

    let thrown = run(&mut client, "const a = 1;\nthrow new RangeError(`bad ${a}`);", &json!({}));
    let error = &thrown["structuredContent"]["error"];
    assert_eq!((&error["code"], &error["line"]), (&json!("PROGRAM_ERROR"), &json!(2)));
    assert_eq!(error["message"], "RangeError: bad 1");
}

#[test]
fn what_may_not_run_is_refused_before_it_starts() {
    let home = Home::new("[permissions]\ndynamic = \"refuse\"\n\"fs:write\" = { deny = true }\n");
    let mut client = home.stdio(&[]);
    let programs = [
        ("await mcp.fs.write({ path: 'x', content: 'y' })", json!({})),
        ("const name = args.tool; return mcp.fs[name]({ path: 'x' })", json!({"tool": "delete"})),
        ("return mcp.fs.raed({ path: 'x' })", json!({})),
        ("return 1 +", json!({})),
        ("return 1", json!([1])),
    ];
    let answers: Vec<String> = programs
        .iter()
        .map(|(code, context)| {
            let result = run(&mut client, code, context);
            assert_eq!(result["isError"], true, "{code}");
            text(&result).to_owned()
        })
        .collect();
    expect![[r#"
        not run: line 1: DENIED: `fs:write` may not be called, because `fs:write` in [permissions] denies it
        hint: do without the tool, or have the user change that rule
        not run: line 1: DENIED: the program may call tools that cannot be known before it runs: `mcp.fs[name]` is decided when the program runs
        hint: write each call out, as `mcp.server.tool(…)`
        not run: line 1: INVALID_PROGRAM: server `fs` has no tool `raed`
        hint: did you mean `mcp.fs.read`?
        not run: line 1: INVALID_PROGRAM: the program ends too early
        not run: INVALID_ARGUMENTS: the arguments of the program are not a JSON object
        hint: give them as `context`, such as {"path": "notes.txt"}"#]]
    .assert_eq(&answers.join("\n"));
    assert!(!home.path("x").exists());
}

#[test]
fn order_of_effects_and_the_one_arm_of_a_condition_are_those_of_the_program() {
    let home = Home::new(WRITING);
    let mut client = home.stdio(&[]);
    let code = r#"
        await mcp.fs.write({ path: "log.txt", content: "one" });
        const before = await mcp.fs.read({ path: "log.txt" });
        if (before.content === "one") await mcp.fs.write({ path: "then.txt", content: "yes" });
        else await mcp.fs.write({ path: "else.txt", content: "no" });
        await mcp.fs.write({ path: "log.txt", content: before.content + " two" });
        return (await mcp.fs.read({ path: "log.txt" })).content;
    "#;
    let result = run(&mut client, code, &json!({}));
    assert_eq!(result["structuredContent"]["result"], "one two", "{result}");
    assert!(home.path("then.txt").exists());
    assert!(!home.path("else.txt").exists(), "the other arm never runs");
}

#[test]
fn a_long_run_answers_running_and_is_waited_for_or_ended() {
    let home = Home::new(BARE);
    let mut client = home.stdio(&[]);
    let slow = "pml.progress(3, 10, 'reading files'); await mcp.time.now({}); \
        await new Promise((done) => setTimeout(done, 2000)); return 'late'";
    let running = run_with(&mut client, slow, &json!({}), &json!({"waitMs": 1000}));
    assert_eq!(running["structuredContent"]["status"], "running", "{running}");
    assert!(text(&running).contains("3 of 10 done, reading files, 1 of 1 calls ended"), "{}", text(&running));
    let id = running["structuredContent"]["workflowId"].clone();
    let done = client.call("pml_continue", &json!({"workflow_id": id}));
    assert_eq!(done["structuredContent"]["result"], "late", "{done}");
    let again = client.call("pml_continue", &json!({"workflow_id": id}));
    assert_eq!(again["structuredContent"]["result"], "late", "the result is kept");

    let endless = "for (;;) await new Promise((done) => setTimeout(done, 20))";
    let detached = run_with(&mut client, endless, &json!({}), &json!({"detach": true}));
    let id = detached["structuredContent"]["workflowId"].clone();
    let ended = client.call("pml_abort", &json!({"workflow_id": id, "reason": "enough"}));
    assert_eq!(ended["structuredContent"]["error"]["code"], "ABORTED", "{ended}");
    assert!(text(&ended).contains("enough"));
    assert_eq!(ended["isError"], false, "the run was to end, and it did: {ended}");
    let again = client.call("pml_abort", &json!({"workflow_id": id}));
    assert_eq!(again["isError"], false, "ending it again changes nothing: {again}");
    let looked = client.call("pml_continue", &json!({"workflow_id": id}));
    assert_eq!(looked["isError"], true, "whoever waits for its result gets none: {looked}");
    for tool in ["pml_continue", "pml_abort"] {
        let unknown = client.call(tool, &json!({"workflow_id": "run_00000000000000000000000000000001"}));
        assert_eq!(unknown["structuredContent"]["error"]["code"], "UNKNOWN_RUN", "{unknown}");
    }
}

#[test]
fn progress_that_a_client_hears_of_only_grows() {
    let home = Home::new(BARE);
    let mut client = home.stdio(&[]);
    // More than a tenth of a second apart, so that each of them could be told.
    let code = "const step = async (done, total) => { pml.progress(done, total, `${done}`); await mcp.time.now({}); \
        await new Promise((rested) => setTimeout(rested, 150)); };\n\
        await step(5, 10); await step(9, 10); await step(0, 3); await step(2, 3); await step(2, 3); await step(-1, 3); await step(3, 3);";
    let arguments = json!({ "intent": "go on", "implementation": { "type": "code", "code": code } });
    let request =
        json!({ "name": "pml_execute", "arguments": arguments, "_meta": { "progressToken": "mine" } });
    let id = client.begin("tools/call", &request);
    let mut told = Vec::new();
    loop {
        let message = client.message();
        if message["method"] == "notifications/progress" {
            assert_eq!(message["params"]["progressToken"], "mine");
            told.push(message["params"]["progress"].as_f64().unwrap());
        } else if message["id"] == id {
            assert_eq!(message["result"]["structuredContent"]["status"], "success", "{message}");
            break;
        }
    }
    assert!(told.len() >= 3, "{told:?}");
    assert!(told.windows(2).all(|pair| pair[0] < pair[1]), "{told:?}");
    assert!(told.last().is_some_and(|last| *last > 9.0), "what comes after a restart is told too: {told:?}");
}

#[test]
fn values_cross_as_json_and_what_is_none_is_named() {
    let home = Home::new(BARE);
    let mut client = home.stdio(&[]);
    let fine = "return { date: new Date(0), set: new Set([1]), map: new Map([['a', 1]]), none: undefined, list: [undefined] }";
    let result = run(&mut client, fine, &json!({}));
    assert_eq!(
        result["structuredContent"]["result"],
        json!({"date": "1970-01-01T00:00:00.000Z", "set": [1], "map": {"a": 1}, "list": [null]})
    );
    for (code, words) in [
        ("return { a: [1, NaN] }", "$.a[1]"),
        ("return { f: () => 1 }", "$.f"),
        ("return { big: 5n }", "$.big"),
        ("const o = {}; o.o = o; return o", "$.o"),
        ("return { p: mcp.time.now({}) }", "await"),
        ("await mcp.math.evaluate({ expression: Promise.resolve('1') })", "await"),
    ] {
        let result = run(&mut client, code, &json!({}));
        let message = result["structuredContent"]["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(words), "{code}: {result}");
    }
}

#[test]
fn the_terminal_runs_a_program_shows_it_and_replays_it() {
    let home = Home::new(BARE);
    std::fs::write(
        home.path("p.ts"),
        "console.log('hello');\nconst x = await mcp.math.evaluate({ expression: args.e });\nreturn { x: x.value, r: Math.random() };",
    )
    .unwrap();
    let ran = home.run(&["execute", "--code", "p.ts", "--args", r#"{"e": "6*7"}"#]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("\"x\": 42"), "{}", ran.stdout);
    assert!(ran.stderr.contains("│ hello"), "{}", ran.stderr);
    let listed: Value = serde_json::from_str(&home.run(&["runs", "list", "--json"]).stdout).unwrap();
    let id = listed[0]["workflowId"].as_str().unwrap();
    assert_eq!(listed[0]["state"], "done");
    let shown = home.run(&["runs", "show", id]);
    assert!(shown.stdout.contains("math:evaluate") && shown.stdout.contains("path   n1"), "{}", shown.stdout);
    let replayed = home.run(&["runs", "replay", id]);
    assert_eq!(replayed.code, 0, "{}", replayed.stderr);
    assert!(replayed.stderr.contains("the same"), "{}", replayed.stderr);

    std::fs::write(home.path("wrong.ts"), "const a = 1;\nreturn a.b.c;").unwrap();
    let failed = home.run(&["execute", "--code", "wrong.ts"]);
    assert_eq!(failed.code, 1);
    assert!(
        failed.stderr.contains("wrong.ts:2") && failed.stderr.contains("return a.b.c;"),
        "{}",
        failed.stderr
    );
}

#[test]
fn a_denied_tool_is_denied_to_clients_as_well() {
    let home = Home::new("[permissions]\n\"math:evaluate\" = { deny = true }\n");
    let mut client = home.stdio(&[]);
    let direct = client.call("math:evaluate", &json!({"expression": "1"}));
    // Its results have a schema, which clients hold structured content against.
    assert_eq!(direct["_meta"]["pml/error"]["code"], "DENIED", "{direct}");
    assert!(direct.get("structuredContent").is_none() && direct["isError"] == true, "{direct}");
    let program = run(&mut client, "return mcp.math.evaluate({ expression: '1' })", &json!({}));
    assert_eq!(program["structuredContent"]["error"]["code"], "DENIED", "{program}");
}

/// A result of which the text has only the beginning comes with a link to all of it, and its size.
#[test]
fn a_large_result_is_linked_as_a_resource() {
    let home = Home::new(BARE);
    let mut client = home.stdio(&[]);
    let result = run(
        &mut client,
        "return { rows: Array.from({ length: 4000 }, (_, n) => `row ${n} é`) };",
        &json!({}),
    );
    let links: Vec<&Value> = result["content"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|block| block["type"] == "resource_link")
        .collect();
    let [link] = links[..] else { panic!("{}", text(&result)) };
    let whole = client.request("resources/read", &json!({ "uri": link["uri"] }));
    let read = whole["contents"][0]["text"].as_str().unwrap();
    assert_eq!(link["size"], read.len(), "{link}");
    assert_eq!(serde_json::from_str::<Value>(read).unwrap(), result["structuredContent"]["result"]);
    let small = run(&mut client, "return { rows: 1 };", &json!({}));
    assert_eq!(small["content"].as_array().unwrap().len(), 1, "{small}");
}
