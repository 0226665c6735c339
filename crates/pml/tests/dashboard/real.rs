//! Runs, one run, Discover, Test, Servers and Savings in Chromium, on a real gateway with real runs.

use std::process::{Command, Stdio};

use pml_model::capability::{CacheConfig, CapabilityOrigin, CapabilitySource, Procedure, ToolUse};
use pml_model::json::raw;
use pml_model::structure::{NodeId, NodeLetter, Structure};
use pml_model::trace::{TaskResult, Trace, TraceBody, TraceStatus};
use pml_model::{CapabilityId, Digest, Principal, RunId, TraceId};
use pml_store::{RunMemory, Urgency};
use serde_json::{Map, Value, json};

use crate::api::{Program, execute};
use crate::harness::{Client, Served, eventually, material, node};
use crate::place::{PASSPHRASE, Place, approval, call, now};
use crate::quarantine::SERVER;
use crate::wire::{authority, send};

/// Ways to become more than text.
fn payloads() -> Vec<String> {
    let source = std::fs::read_to_string(material("dashboard/payloads.mjs")).unwrap();
    let lines = source.lines().filter_map(|line| line.trim().strip_suffix(','));
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn run(agent: &mut Client, intent: &str, code: &str, context: &Value) -> Value {
    let implementation = json!({"type": "code", "code": code});
    let options = json!({"cache": false});
    let asked =
        json!({"intent": intent, "implementation": implementation, "context": context, "options": options});
    agent.call("pml_execute", &asked)["structuredContent"].clone()
}

fn id(told: &Value) -> &str {
    told["workflowId"].as_str().unwrap_or_else(|| panic!("{told}"))
}

const COUNT: &str = "const a = await mcp.math.evaluate({ expression: `${args.n} + 1` });\n\
    const b = await mcp.math.evaluate({ expression: `${a.value} + 1` });\n\
    const c = await mcp.math.evaluate({ expression: `${b.value} + 1` });\nreturn c.value;";

/// Three calls at once, something on the console, a branch, and a result of nearly 4 MB.
const PARALLEL: &str = "
    const files = await Promise.all([1, 2, 3].map((n) => mcp.math.evaluate({ expression: `${n} + 1` })));
    console.log('read the files', files.length);
    if (args.large) { const all = await mcp.fs.read({ path: 'large.txt' }); return all.content.length; }
    return files.length;";

/// A capability whose structure knows none of the nodes that its trace ran.
fn store_orphan(place: &Place) -> String {
    let (owner, identity) = (Principal::local(), "an older analysis".to_owned());
    let procedure = Procedure {
        id: CapabilityId::of(&owner, &identity),
        owner,
        suggested_name: "fromAnOlderTime".to_owned(),
        description: "something from an older time".to_owned(),
        source: CapabilitySource::Code { code: "return 1".to_owned(), template: None },
        code_hash: "hash".to_owned(),
        identity,
        analysis_version: 1,
        tools_used: vec![ToolUse { id: "fs:read".to_owned(), digest: Digest::of(b"fs:read") }],
        dependencies: Vec::new(),
        parameters_schema: json!({"type": "object"}),
        static_structure: Structure::default(),
        origin: CapabilityOrigin::Emergent,
        cache_config: CacheConfig::default(),
        unproven_lift: None,
    };
    let run = RunId::new(77);
    let gone = |number: u32| NodeId { letter: NodeLetter::N, number };
    let task = |call: u32| TaskResult {
        call,
        node_id: Some(gone(call + 40)),
        task_id: None,
        tool: "gone:tool".to_owned(),
        tool_digest: Digest::of(b"gone"),
        args: raw(&json!({"path": "a.txt"})),
        result: Some(raw(&json!({"content": "text"}))),
        success: true,
        error: None,
        started_at: 1_000 * i64::from(call),
        duration_us: None,
        duration_ms: Some(20),
        attempt: 1,
        layer: None,
        altered: false,
        speculated: false,
        saved_ms: None,
        age_ms: None,
        mocked: false,
        mock_weight: None,
    };
    let name = procedure.suggested_name.clone();
    let trace = Trace {
        id: TraceId::of(&run),
        workflow_id: run,
        principal: procedure.owner.clone(),
        session: "claude-code".to_owned(),
        capability_id: Some(procedure.id.clone()),
        plan_hash: procedure.code_hash.clone(),
        intent: procedure.description.clone(),
        status: TraceStatus::Success,
        error: None,
        duration_ms: 200,
        created_at: now(),
        parent_trace_id: None,
        learn_seq: None,
        priority: None,
        cached: false,
        exploratory: false,
        approved: false,
        body: TraceBody {
            executed_path: vec![gone(41), gone(42)],
            decisions: Vec::new(),
            task_results: vec![task(1), task(2)],
            omitted: 0,
            edges: Vec::new(),
            initial_context: None,
            mock_ratio: 0.0,
            explored: None,
        },
    };
    let memory = RunMemory {
        procedure: Some(Box::new(procedure)),
        activates: true,
        tools: Vec::new(),
        values: Map::new(),
        result: None,
        golden: false,
        intent: pml_store::IntentFit::Unchecked,
        excluded_from_learning: false,
        trace: Box::new(trace),
        nested: Vec::new(),
    };
    let (told, hears) = std::sync::mpsc::channel();
    place.store().store_memory(memory, Urgency::Durable, move |stored| told.send(stored).unwrap());
    hears.recv().unwrap().unwrap();
    name
}

/// The calls that the killed run makes before it is killed.
const BEFORE_KILL: u32 = 200;

/// A run whose process is killed in the middle of it: it has made [`BEFORE_KILL`] calls and waits for a file, which is there
/// only afterwards.
fn start_and_kill(place: &Place) -> String {
    let mut agent = place.home.stdio(&[]);
    let code = format!(
        "let n = 0; for (let i = 0; i < {BEFORE_KILL}; i++) {{ await mcp.time.now({{}}); n++; }}\n\
         const begun = async () => JSON.stringify(await mcp.fs.list({{ path: '.' }})).includes('after-the-kill');\n\
         while (!await begun()) await new Promise((done) => setTimeout(done, 50));\n\
         for (let i = 0; i < 200; i++) {{ await mcp.time.now({{}}); n++; }} return {{ counted: n }};"
    );
    let implementation = json!({"type": "code", "code": code});
    let asked = json!({"intent": "killed and resumed", "implementation": implementation, "options": {"detach": true}});
    let told = agent.call("pml_execute", &asked);
    let run = id(&told["structuredContent"]).to_owned();
    let (store, parsed) = (place.store(), RunId::parse(&run).unwrap());
    let waits = || {
        let calls = store.run_calls(&Principal::local(), &parsed, BEFORE_KILL, 1);
        calls.is_ok_and(|calls| !calls.entries.is_empty())
    };
    eventually("the run has made its calls and waits", waits);
    agent.child.kill().unwrap();
    agent.child.wait().unwrap();
    std::fs::write(place.home.path("after-the-kill"), "").unwrap();
    run
}

/// Prints, decides, prints more once the file `say-more` is there, and ends once `let-go` is.
const WATCHED: &str = "
    console.log('seen while it runs');
    if (args.live) { console.warn('the branch was taken'); }
    for (let said = false; ;) {
        const found = JSON.stringify(await mcp.fs.list({ path: '.' }));
        if (found.includes('let-go')) break;
        if (!said && found.includes('say-more')) { said = true; console.log('and more is said'); }
        await new Promise((done) => setTimeout(done, 50));
    }
    console.log('it is over');
    return 'over';";

/// Has the gateway itself begin a run, so that it is in the process of the pages.
fn start_in(served: &Served, intent: &str, code: &str, context: &Value) -> String {
    let implementation = json!({"type": "code", "code": code});
    let arguments = json!({"intent": intent, "implementation": implementation, "context": context, "options": {"detach": true}});
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "pml_execute", "arguments": arguments, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let token = format!("Bearer {}", served.token);
    let headers = [
        ("Host", authority(served)),
        ("Authorization", token.as_str()),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("Mcp-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "pml_execute"),
    ];
    let reply = send(served, "POST", "/mcp", &headers, &body.to_string());
    // The reply is one message, or the last one of a stream.
    let found = regex::Regex::new(r#""workflowId":"(run_[0-9a-f]+)""#).unwrap();
    found.captures(&reply.body).unwrap_or_else(|| panic!("{}: {}", reply.status, reply.body))[1].to_owned()
}

#[test]
fn a_live_run_shows_what_it_prints_and_decides() {
    let place = Place::new();
    let home = &place.home;
    home.configure("[approvals]\nby = \"human\"\n[builtin.fs]\nroot = \".\"\n");
    let served = place.serve();
    let run = start_in(&served, "watched", WATCHED, &json!({"live": true}));
    let mut agent = home.stdio(&[]);
    let implementation = json!({"type": "code", "code": WATCHED});
    let elsewhere = json!({"intent": "elsewhere", "implementation": implementation, "context": {"live": true},
        "options": {"detach": true}});
    let elsewhere = agent.call("pml_execute", &elsewhere)["structuredContent"].clone();

    let program = Program(&served);
    let shown = |run: &str| program.get(&format!("/api/runs/{run}"));
    eventually("both runs have begun", || {
        shown(&run)["decisions"].as_array().is_some_and(|made| !made.is_empty())
            && shown(id(&elsewhere))["calls"] != 0
    });
    let live = shown(&run);
    assert_eq!((&live["status"], &live["output"]), (&json!("running"), &json!("live")), "{live}");
    let printed = |shown: &Value| -> Vec<String> {
        let lines = shown["console"].as_array().unwrap().iter();
        lines.map(|line| line["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(printed(&live), ["seen while it runs", "the branch was taken"], "{live}");
    assert!(live["console"][0]["atMs"].as_i64().unwrap() >= live["startedAt"].as_i64().unwrap(), "{live}");
    assert_eq!(live["decisions"][0]["taken"], "true", "{live}");
    // What another process prints is known at the end.
    let told = shown(id(&elsewhere));
    assert_eq!((&told["status"], &told["output"]), (&json!("running"), &json!("at_end")), "{told}");
    assert_eq!(printed(&told), [] as [String; 0], "{told}");

    let given = json!({
        "link": served.link, "passphrase": PASSPHRASE, "part": "watched", "run": run, "elsewhere": id(&elsewhere),
        "more": home.path("say-more"), "end": home.path("let-go"),
    });
    let seen = play(&given);
    assert_eq!(seen["wrong"], json!([]), "{seen:#}");
    assert_eq!((&seen["live"], &seen["elsewhere"]), (&json!(true), &json!(true)), "{seen:#}");
    let all = ["seen while it runs", "the branch was taken", "and more is said", "it is over"];
    for run in [run.as_str(), id(&elsewhere)] {
        eventually("the run has ended", || shown(run)["status"] == "done");
        let ended = shown(run);
        assert_eq!(ended["output"], "complete", "{ended}");
        assert_eq!(printed(&ended), all, "{ended}");
    }
}

#[test]
fn six_pages_show_what_a_real_gateway_did() {
    let place = Place::new();
    let home = &place.home;
    let allowed = "[approvals]\nby = \"human\"\n[builtin.fs]\nroot = \".\"\n";
    home.configure(allowed);
    std::fs::write(home.path("large.txt"), "a line of text\n".repeat(250_000)).unwrap();
    let mut agent = home.stdio(&[]);
    let mut counted = Value::Null;
    for n in 1..=3 {
        counted = run(&mut agent, "count up by three", COUNT, &json!({"n": n}));
    }
    let parallel = run(&mut agent, "read the files at once", PARALLEL, &json!({"large": true}));
    assert_eq!(
        (&parallel["status"], &parallel["result"]),
        (&json!("success"), &json!(3_750_000)),
        "{parallel}"
    );
    let failed = run(&mut agent, "fail", "return await mcp.json.parse({ json: '{' })", &json!({}));
    assert_eq!(failed["status"], "failed", "{failed}");
    let payloads = payloads();
    assert!(payloads.len() >= 60, "{}", payloads.len());
    for payload in &payloads {
        run(&mut agent, payload, "return args.text", &json!({"text": payload}));
    }
    let all = json!({"text": payloads.join("\n")});
    let code =
        "console.log(args.text); await mcp.json.stringify({ data: [args.text] }); throw new Error(args.text)";
    let poisoned = run(&mut agent, "show what others wrote", code, &all);
    let large: String =
        (0..500).map(|n| format!("if (args.n > {n}) {{ await mcp.time.now({{}}); }}\n")).collect();
    let large = run(&mut agent, "take five hundred branches", &large, &json!({"n": 2}));
    assert_eq!(large["status"], "success", "{large}");
    drop(agent);
    let orphan = store_orphan(&place);
    let (foreign, _) =
        place.ask_as(&Principal("somebody".to_owned()), "theirs", approval(vec![call("fs:write", "{}")]));
    let resumed = start_and_kill(&place);

    let served = place.serve();
    let program = Program(&served);
    let name = |run: &str| {
        program.get(&format!("/api/runs/{run}"))["capability"]["name"].as_str().map(str::to_owned)
    };
    eventually("all is learned", || name(id(&counted)).is_some() && name(id(&large)).is_some());
    std::fs::write(home.path("server.mjs"), SERVER).unwrap();
    let tools = json!([{"name": "add", "description": payloads[5], "inputSchema": {"type": "object"}}]);
    std::fs::write(home.path("tools.json"), tools.to_string()).unwrap();
    let args = json!([home.path("server.mjs"), home.path("tools.json")]);
    home.configure(&format!("{allowed}[servers.notes]\ncommand = {:?}\nargs = {args}\n", node()));
    eventually("the new server is known", || program.get("/api/servers").to_string().contains("\"notes\""));
    let untouched = Place::new();
    let empty = untouched.serve();

    let (begin, finish) = (home.path("begin"), home.path("finish"));
    let given = json!({
        "link": served.link, "passphrase": PASSPHRASE, "empty": empty.link, "begin": begin, "finish": finish,
        "run": id(&parallel), "poisoned": id(&poisoned), "resumed": resumed, "foreign": foreign.as_str(),
        "capability": name(id(&counted)), "large": name(id(&large)), "orphan": orphan,
    });
    let seen = std::thread::scope(|scope| {
        let browser = scope.spawn(|| play(&given));
        eventually("the list of runs is open", || begin.exists() || browser.is_finished());
        let code = "for (;;) { const found = await mcp.fs.list({ path: '.' });\n\
            if (JSON.stringify(found).includes('finish')) return 'over'; await new Promise((done) => setTimeout(done, 50)); }";
        if begin.exists() {
            execute(&place, "seen live", code, &json!({}));
        }
        browser.join().unwrap()
    });
    assert_eq!(seen["wrong"], json!([]), "{seen:#}");
    assert_eq!(seen["axe"], json!([]), "{seen:#}");
    assert_eq!((&seen["wide"], &seen["injected"]), (&json!([]), &json!(0)), "{seen:#}");
    assert!(seen["pages"].as_array().unwrap().len() >= 18, "{seen:#}");
    assert_eq!((&seen["live"], &seen["empty"]), (&json!(true), &json!(8)), "{seen:#}");
    assert_eq!(seen["intents"], payloads.len(), "every intent is there as it was written");

    // The command that an empty list suggests works on a fresh install, and makes a run.
    let suggested = seen["tryIt"].as_str().unwrap().strip_prefix("pml execute \"").unwrap();
    let tried = untouched.home.run(&["execute", suggested.strip_suffix('"').unwrap()]);
    assert!(tried.stdout.contains("42"), "{tried:?}");
    assert_eq!(Program(&empty).get("/api/runs")["items"].as_array().unwrap().len(), 1);

    let one = |name: &str| match seen[name].as_array().unwrap().as_slice() {
        [row] => row.as_str().unwrap().to_owned(),
        other => panic!("{name}: {other:?}"),
    };
    assert!(one("resumedRows").contains("done"), "one run: {seen:#}");
    assert!(seen["resumed"].as_str().unwrap().contains("done"), "{seen:#}");
    assert_eq!(seen["gaps"], json!(["No process had it: interrupted, then resumed"]), "{seen:#}");
    let shown = program.get(&format!("/api/runs/{resumed}"));
    assert_eq!(shown["spans"].as_array().unwrap().len(), 2, "two processes worked on it: {}", shown["spans"]);
    assert_eq!(shown["result"]["preview"], json!({"counted": 400}), "{shown}");
    assert!(one("byTool").contains("read the files at once"), "{seen:#}");
    assert!(seen["failed"].to_string().contains("fail"), "{seen:#}");
    assert_eq!(seen["calls"], 4, "{seen:#}");
    let lines = seen["lines"].as_u64().unwrap();
    assert!(lines > 10 && lines < 500, "{lines} lines of a result of 4 MB are drawn");
    assert_eq!(seen["unknown"][0], seen["unknown"][1], "{seen:#}");
    assert!(seen["found"].as_str().unwrap().contains(given["capability"].as_str().unwrap()), "{seen:#}");
    assert!(seen["wouldRun"].as_str().unwrap().contains("What would run"), "{seen:#}");
    assert!(seen["nodes"].as_u64().unwrap() >= 500, "{seen:#}");
    assert_eq!(seen["orphanCalls"], 2, "{seen:#}");
    assert!(seen["report"].as_str().unwrap().contains("math:evaluate"), "{seen:#}");
    assert_eq!(seen["ranForReal"], 3, "{seen:#}");
    assert!(seen["ways"].as_str().unwrap().contains("time:diff"), "{seen:#}");
    assert!(seen["policy"].as_str().unwrap().contains("approval_mode"), "{seen:#}");
    assert!(seen["savings"].as_str().unwrap().contains("okens"), "{seen:#}");
}

/// Plays `tests/dashboard/real-browser.mjs`.
fn play(given: &Value) -> Value {
    let output = Command::new(node())
        .arg(material("dashboard/real-browser.mjs"))
        .arg(given.to_string())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(&told)
        .unwrap_or_else(|_| panic!("{told}\n{}", String::from_utf8_lossy(&output.stderr)))
}
