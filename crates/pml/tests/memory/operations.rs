//! Pure operations: what traces and the graph have of them, and where they are never offered.

use pml_model::trace::{EdgeKind, Trace};
use serde_json::{Value, json};

use crate::harness::Home;
use crate::place::{ALL, Place};

/// What every description of the system shows: rows are asked for, sifted, shaped and added up.
const SUMS: &str = "const parsed = await mcp.json.parse({ json: args.text });\n\
    const total = parsed.data.filter((row) => row.ok).map((row) => row.n).reduce((sum, n) => sum + n, 0);\n\
    return mcp.json.stringify({ data: { total } });";
const ROWS: &str = r#"[{"ok":true,"n":40},{"ok":false,"n":7},{"ok":true,"n":2}]"#;

fn tools(trace: &Trace) -> Vec<&str> {
    trace.body.task_results.iter().map(|task| task.tool.as_str()).collect()
}

fn edges(trace: &Trace, kind: EdgeKind) -> Vec<String> {
    let tools = tools(trace);
    let of_kind = trace.body.edges.iter().filter(|edge| edge.kind == kind);
    let mut told: Vec<String> =
        of_kind.map(|edge| format!("{} → {}", tools[edge.from as usize], tools[edge.to as usize])).collect();
    told.sort();
    told
}

fn view(home: &Home) -> Value {
    let told = home.run(&["graph", "--json"]);
    serde_json::from_str(&told.stdout).unwrap_or_else(|_| panic!("{told:?}"))
}

#[test]
fn a_trace_has_what_operations_gave_and_how_long_they_took() {
    let mut place = Place::start(ALL);
    let told = place.run("add the rows up", SUMS, &json!({ "text": ROWS }));
    assert_eq!(told["status"], "success", "{told}");
    let trace = place.trace(&told);
    assert_eq!(tools(&trace), ["json:parse", "code:filter", "code:map", "code:reduce", "json:stringify"]);
    let given: Vec<&str> =
        trace.body.task_results[1..4].iter().map(|task| task.result.as_ref().unwrap().get()).collect();
    assert_eq!(given, [r#"[{"ok":true,"n":40},{"ok":true,"n":2}]"#, "[40,2]", "42"]);
    for task in &trace.body.task_results {
        assert_eq!(task.duration_us.is_some(), task.is_operation(), "{task:?}");
        assert!(task.success && task.duration_ms.is_some() && !task.altered, "{task:?}");
        assert_eq!((task.call == 0, task.node_id.is_some()), (task.is_operation(), true), "{task:?}");
    }
    // Calls follow from each other as if nothing were computed in between.
    assert_eq!(
        edges(&trace, EdgeKind::Sequence),
        [
            "code:filter → code:map",
            "code:map → code:reduce",
            "code:reduce → json:stringify",
            "json:parse → code:filter",
            "json:parse → json:stringify",
        ]
    );
    let data = edges(&trace, EdgeKind::Dependency);
    for pair in [
        "json:parse → code:filter",
        "code:filter → code:map",
        "code:map → code:reduce",
        "code:reduce → json:stringify",
    ] {
        assert!(data.iter().any(|told| told == pair), "{pair}: {data:?}");
    }
    let id = told["workflowId"].as_str().unwrap();
    let shown = place.home.run(&["runs", "show", id, "--timeline"]);
    let lines: Vec<&str> =
        shown.stdout.lines().filter(|line| line.contains(':') && line.contains('█')).collect();
    let order = ["json:parse", "code:filter", "code:map", "code:reduce", "json:stringify"];
    assert_eq!(lines.len(), order.len(), "{}", shown.stdout);
    assert!(lines.iter().zip(order).all(|(line, tool)| line.contains(tool)), "{}", shown.stdout);
    // Running it again from its record gives the same, however long it takes.
    let replayed = || place.home.run(&["runs", "replay", id, "--json"]).stdout;
    let (first, second) = (replayed(), replayed());
    assert!(first.contains("\"outcome\": \"same\"") && first.contains("code:reduce"), "{first}");
    assert_eq!(first, second);
}

#[test]
fn operations_are_kept_without_secrets_and_only_so_many() {
    let mut place = Place::start(ALL);
    let secret = "hunter2-Xk29-qqPz81mA";
    let rows =
        json!([{ "user": "ann", "password": secret }, { "user": "bob", "password": "other-Lp27-vvRw65nB" }]);
    let code = "const parsed = await mcp.json.parse({ json: args.text });\n\
        const known = parsed.data.filter((row) => row.user);\n\
        const words = known.map((row) => row.password);\n\
        const long = known[0].password.repeat(300);\n\
        let size = 0;\n\
        for (let i = 0; i < 60; i++) size += known[0].user.concat('!').length;\n\
        return size + words.length + long.length;";
    let told = place.run("count the users", code, &json!({ "text": rows.to_string() }));
    assert_eq!(told["status"], "success", "{told}");
    let trace = place.trace(&told);
    let text = serde_json::to_string(&trace).unwrap();
    assert!(!text.contains(secret) && !text.contains("Lp27"), "{text}");
    let of = |tool: &str| trace.body.task_results.iter().filter(|task| task.tool == tool).collect::<Vec<_>>();
    assert!(of("code:filter")[0].result.as_ref().unwrap().get().contains("ann"), "what is no secret stays");
    assert!(of("code:filter")[0].altered && of("code:map")[0].altered);
    assert_eq!(of("code:repeat")[0].result.as_ref().unwrap().get(), r#"{"_type":"string","_size":6300}"#);
    assert_eq!(of("code:concat").len(), 20, "as many as of a call");
    assert_eq!(trace.body.omitted, 0);
    let longest = trace.body.task_results.iter().filter(|task| task.is_operation());
    assert!(longest.map(|task| task.result.as_ref().unwrap().get().len()).max().unwrap() <= 300, "{text}");
}

#[test]
fn operations_are_in_the_graph_and_offered_nowhere() {
    let mut place = Place::start(ALL);
    let before = view(&place.home);
    for _ in 0..3 {
        let told = place.run("add the rows up", SUMS, &json!({ "text": ROWS }));
        assert!(!told["next"].to_string().contains("code:"), "{told}");
        assert!(!told["tasks"].to_string().contains("code:"), "they are no calls: {told}");
    }
    place.settled();
    let after = view(&place.home);
    let operations: Vec<&str> = after["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|node| node["type"] == "operation")
        .map(|node| node["id"].as_str().unwrap())
        .collect();
    assert_eq!(operations, ["code:filter", "code:map", "code:reduce"]);
    let edge = |from: &str, to: &str, kind: &str| {
        let edges = after["edges"].as_array().unwrap();
        edges
            .iter()
            .find(|edge| edge["from"] == from && edge["to"] == to && edge["type"] == kind)
            .cloned()
            .unwrap_or_default()
    };
    for (from, to) in
        [("json:parse", "code:filter"), ("code:filter", "code:map"), ("code:map", "code:reduce")]
    {
        for kind in ["sequence", "dependency"] {
            let found = edge(from, to, kind);
            assert_eq!(
                (&found["count"], &found["source"]),
                (&json!(3), &json!("observed")),
                "{from} {to} {kind}"
            );
        }
    }
    let ways = place.home.run(&["graph", "--from", "json:parse", "--to", "code:reduce", "--json"]);
    let ways: Value = serde_json::from_str(&ways.stdout).unwrap();
    assert_eq!(ways["ways"][0]["through"], json!(["json:parse", "code:filter", "code:map", "code:reduce"]));
    // How much tools count in the graph does not depend on what programs compute.
    let tools_of = |view: &Value| -> Vec<Value> {
        view["nodes"].as_array().unwrap().iter().filter(|node| node["type"] == "tool").cloned().collect()
    };
    assert_eq!(tools_of(&before).len(), tools_of(&after).len());
    let plain = "const parsed = await mcp.json.parse({ json: args.text }); let total = 0;\n\
        for (const row of parsed.data) if (row.ok) total += row.n;\n\
        return mcp.json.stringify({ data: { total } });";
    let mut other = Place::start(ALL);
    for _ in 0..3 {
        other.run("add the rows up", plain, &json!({ "text": ROWS }));
    }
    other.settled();
    let importance = |view: &Value| -> Vec<(Value, Value)> {
        tools_of(view).iter().map(|node| (node["id"].clone(), node["importance"].clone())).collect()
    };
    assert_eq!(importance(&after), importance(&view(&other.home)));
    for intent in ["filter rows", "reduce a list to its sum", "map values", "code filter"] {
        let found = place.gateway.call("pml_discover", &json!({ "intent": intent, "limit": 50 }));
        assert!(!found.to_string().contains("code:"), "{found}");
    }
    let rebuilt = place.home.run(&["learn", "rebuild"]);
    assert_eq!(rebuilt.code, 0, "{}", rebuilt.stderr);
    assert_eq!(view(&place.home)["edges"], after["edges"], "learned anew, the same");
}

#[test]
fn tasks_of_a_document_that_are_operations_are_in_its_trace() {
    let mut place = Place::start(ALL);
    let dag = json!({ "tasks": [
        { "id": "rows", "tool": "json:parse", "arguments": { "json": ROWS } },
        { "id": "good", "tool": "code:filter", "code": "return args.rows.filter((row) => row.ok)",
          "arguments": { "rows": { "$ref": "rows.data" } }, "dependsOn": ["rows"] },
        { "id": "text", "tool": "json:stringify", "arguments": { "data": { "$ref": "good" } }, "dependsOn": ["good"] },
    ] });
    let told = place.gateway.call(
        "pml_execute",
        &json!({ "intent": "keep the good rows", "implementation": { "type": "dag", "dagStructure": dag } }),
    );
    assert_eq!(told["status"], "success", "{told}");
    let trace = place.trace(&told);
    assert_eq!(tools(&trace), ["json:parse", "code:filter", "json:stringify"]);
    let filter = &trace.body.task_results[1];
    assert_eq!(filter.result.as_ref().unwrap().get(), r#"[{"ok":true,"n":40},{"ok":true,"n":2}]"#);
    assert_eq!((filter.task_id.as_deref(), filter.success), (Some("good"), true));
    assert!(filter.duration_ms.is_some());
    let sequence = edges(&trace, EdgeKind::Sequence);
    assert!(sequence.contains(&"json:parse → code:filter".to_owned()), "{sequence:?}");
    assert!(sequence.contains(&"code:filter → json:stringify".to_owned()), "{sequence:?}");
}
