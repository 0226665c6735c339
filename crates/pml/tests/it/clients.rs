//! Official clients of three kinds, over both transports, with reference servers behind the gateway.
//!
//! The clients are programs in `tests/clients`; each plays one scenario and prints one JSON object.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Home, PATIENCE, Served, drain, eventually, material, node, npm_server, python, text};
use crate::http::served_with_fixture;

/// A client program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sdk {
    One,
    Two,
    Python,
}

const SDKS: [Sdk; 3] = [Sdk::One, Sdk::Two, Sdk::Python];

impl Sdk {
    fn command(self) -> Command {
        let (program, script) = match self {
            Sdk::One => (node(), "clients/sdk1.mjs"),
            Sdk::Two => (node(), "clients/sdk2.mjs"),
            Sdk::Python => (python("python"), "clients/sdk.py"),
        };
        let mut command = Command::new(program);
        command.arg(material(script));
        command
    }

    /// What it agrees on with a gateway that speaks everything.
    fn version(self) -> &'static str {
        match self {
            Sdk::One => "2025-11-25",
            Sdk::Two | Sdk::Python => "2026-07-28",
        }
    }
}

/// How a client reaches the gateway.
enum Door<'a> {
    Stdio(&'a Home),
    Http(&'a Served),
    /// With the key of the client `desk`.
    StdioWithKey(&'a Home),
    HttpWithKey(&'a Served, &'a str),
}

impl Door<'_> {
    /// Plays a scenario to its end; panics where the client could not.
    #[track_caller]
    fn play(&self, sdk: Sdk, scenario: &str, options: &[(&str, &str)]) -> Value {
        let mut command = sdk.command();
        command.arg(scenario).args(options.iter().flat_map(|(name, value)| [*name, *value]));
        command.args(["--timeout", "40000"]);
        match self {
            Door::Stdio(home) => {
                let pml = json!([env!("CARGO_BIN_EXE_pml"), "stdio"]).to_string();
                command.args(["--stdio", &pml]).env("PML_HOME", home.path("")).current_dir(home.path(""));
            }
            Door::StdioWithKey(home) => {
                let pml = json!([env!("CARGO_BIN_EXE_pml"), "stdio", "--key-file", "desk.key"]).to_string();
                command.args(["--stdio", &pml]).env("PML_HOME", home.path("")).current_dir(home.path(""));
            }
            Door::Http(served) => {
                command.args(["--url", &served.url, &format!("--token={}", served.token)]);
            }
            Door::HttpWithKey(served, key) => {
                command.args(["--url", &served.url, &format!("--token={key}")]);
            }
        }
        let outcome = last_line(command);
        assert_eq!(outcome["ok"], true, "{sdk:?} {scenario} {options:?}: {outcome}");
        assert_eq!(outcome["protocolVersion"], sdk.version(), "{sdk:?}");
        outcome
    }

    /// The result of one call.
    #[track_caller]
    fn call(&self, sdk: Sdk, tool: &str, arguments: &Value) -> Value {
        self.play(sdk, "call", &[("--tool", tool), ("--args", &arguments.to_string())])["result"].take()
    }
}

/// Runs a client and reads the object it prints.
fn last_line(command: Command) -> Value {
    last_line_within(PATIENCE, command)
}

fn last_line_within(patience: Duration, mut command: Command) -> Value {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let printed = std::thread::spawn(move || drain(stdout));
    let complained = std::thread::spawn(move || drain(stderr));
    let until = Instant::now() + patience;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("a client hangs: {command:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let printed = printed.join().unwrap();
    let last = printed.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|_| panic!("{printed}\n{}", complained.join().unwrap()))
}

/// Every tool of five reference servers, known already: three of npm, two of the Python index.
fn reference_servers() -> Home {
    let home = Home::new("");
    std::fs::create_dir(home.path("files")).unwrap();
    std::fs::write(home.path("files/greeting.txt"), "good morning").unwrap();
    empty_repository(&home);
    let files = npm_server("server-filesystem").replace(']', &format!(", {:?}]", home.path("files")));
    home.configure(&format!(
        "expose = \"full\"\n[servers.everything]\n{}\n[servers.files]\n{files}\n[servers.memory]\n{}\n\
         env = {{ MEMORY_FILE_PATH = {:?} }}\n[servers.clock]\ncommand = {:?}\n[servers.git]\ncommand = {:?}\n\
         args = [\"--repository\", {:?}]\n[permissions]\n\"*\" = {{ approval_mode = \"auto\" }}\n",
        npm_server("server-everything"),
        npm_server("server-memory"),
        home.path("memory.jsonl"),
        python("mcp-server-time"),
        python("mcp-server-git"),
        home.path("repository"),
    ));
    let looked = home.run(&["doctor"]);
    assert_eq!(looked.code, 0, "{}", looked.stdout);
    home
}

/// What `git init` makes, as far as git needs it.
fn empty_repository(home: &Home) {
    for folder in ["objects", "refs/heads"] {
        std::fs::create_dir_all(home.path("repository/.git").join(folder)).unwrap();
    }
    std::fs::write(home.path("repository/.git/HEAD"), "ref: refs/heads/trunk\n").unwrap();
    std::fs::write(home.path("repository/.git/config"), "[core]\n\trepositoryformatversion = 0\n").unwrap();
}

/// Lists, calls one tool of each server, and looks for one.
fn use_reference_servers(home: &Home, door: &Door<'_>, sdk: Sdk) {
    let listed = door.play(sdk, "list", &[]);
    assert_eq!(listed["serverInfo"]["name"], "pml", "{sdk:?}");
    let repository = home.path("repository");
    let calls = [
        ("everything__get-sum", json!({"a": 2, "b": 40}), "The sum of 2 and 40 is 42."),
        ("files__read_text_file", json!({"path": home.path("files/greeting.txt")}), "good morning"),
        ("memory__read_graph", json!({}), "entities"),
        ("clock__get_current_time", json!({"timezone": "Asia/Tokyo"}), "+09:00"),
        ("git__git_status", json!({"repo_path": repository}), "On branch trunk"),
    ];
    for (tool, arguments, expected) in calls {
        let names = listed["tools"].as_array().unwrap();
        assert!(names.contains(&json!(tool)), "{sdk:?}: {tool} is not in {names:?}");
        let result = door.call(sdk, tool, &arguments);
        assert_ne!(result["isError"], true, "{sdk:?} {tool}: {result}");
        assert!(text(&result).contains(expected), "{sdk:?} {tool}: {result}");
    }
    check_program(home, door, sdk);
    check_discovery(&door.call(
        sdk,
        "pml_discover",
        &json!({"intent": "add two numbers", "limit": 5, "filter": {"type": "tool"}}),
    ));
    check_progress(door, sdk);
}

/// A page of results as the output schema and the rules of scores have it.
fn check_discovery(result: &Value) {
    let page = &result["structuredContent"];
    let found = page["results"].as_array().unwrap();
    assert!(!found.is_empty() && found.len() <= 5, "{result}");
    assert!(page["total"].as_u64().unwrap() >= found.len() as u64);
    assert_eq!(found[0]["id"], "everything:get-sum", "{result}");
    for one in found {
        let (id, signature) = (one["id"].as_str().unwrap(), one["signature"].as_str().unwrap());
        let (server, tool) = id.split_once(':').unwrap();
        assert_eq!(one["type"], "tool");
        assert_eq!(one["name"], format!("{server}__{tool}"));
        assert!((0.0..=1.0).contains(&one["score"].as_f64().unwrap()), "{one}");
        assert!(signature.contains(&format!("mcp.{server}")) && signature.contains("(args"), "{signature}");
        assert!(!one["reasons"].as_array().unwrap().is_empty(), "{one}");
        assert!(text(result).contains(id), "the text names what the structure has: {result}");
    }
    let scores: Vec<f64> = found.iter().filter_map(|one| one["score"].as_f64()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b), "best first: {scores:?}");
}

/// One program over four of the servers, with a decision, a loop and an image.
fn check_program(home: &Home, door: &Door<'_>, sdk: Sdk) {
    let code = r#"
        interface Sum { text: string }
        const greeting: string = await mcp.files.read_text_file({ path: args.path });
        const sums: Sum[] = [];
        for (const b of [1, 2]) {
            if (b > 1) sums.push({ text: await mcp.everything.get_sum({ a: 40, b }) });
        }
        const [image, status] = await Promise.all([
            mcp.everything["get-tiny-image"]({}),
            mcp.git.git_status({ repo_path: args.repository }),
        ]);
        return { greeting, sums, image, branch: String(status).includes("trunk") };
    "#;
    let context = json!({"path": home.path("files/greeting.txt"), "repository": home.path("repository")});
    let program = json!({"type": "code", "code": code});
    let asked = json!({"intent": "read and add", "implementation": program, "context": context});
    let result = door.call(sdk, "pml_execute", &asked);
    let told = &result["structuredContent"];
    assert_eq!(told["status"], "success", "{sdk:?}: {result}");
    assert!(told["result"]["greeting"].to_string().contains("good morning"), "{sdk:?}: {told}");
    assert_eq!(told["result"]["sums"], json!([{"text": "The sum of 40 and 2 is 42."}]), "{sdk:?}");
    assert_eq!(told["result"]["branch"], true, "{sdk:?}: {told}");
    let image =
        told["result"]["image"].as_array().unwrap().iter().find(|part| part["type"] == "image").unwrap();
    assert!(image["uri"].as_str().unwrap().starts_with("pml://runs/run_"), "{sdk:?}: {image}");
    assert!(image.get("data").is_none(), "{sdk:?}: its bytes stay outside the result");
    let shown = result["content"].as_array().unwrap().iter().find(|part| part["type"] == "image");
    assert_eq!(shown.unwrap()["mimeType"], "image/png", "{sdk:?}: the client is shown it");
}

fn check_progress(door: &Door<'_>, sdk: Sdk) {
    let tool = ("--tool", "everything__trigger-long-running-operation");
    let outcome = door.play(sdk, "progress", &[tool, ("--args", r#"{"duration": 0.4, "steps": 4}"#)]);
    let steps: Vec<f64> = outcome["progress"].as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    // The last one may be lost in a client that has its result already.
    assert!(steps.starts_with(&[1.0, 2.0, 3.0]), "{sdk:?}: {outcome}");
    assert!(text(&outcome["result"]).contains("completed"), "{sdk:?}: {outcome}");
}

#[test]
fn reference_servers_are_used_over_stdio_by_every_client() {
    let home = reference_servers();
    for sdk in SDKS {
        use_reference_servers(&home, &Door::Stdio(&home), sdk);
    }
}

#[test]
fn reference_servers_are_used_over_http_by_every_client() {
    let home = reference_servers();
    let served = home.serve(&[]);
    for sdk in SDKS {
        use_reference_servers(&home, &Door::Http(&served), sdk);
    }
}

/// Two fixtures with the same tools, one of each era, known already.
fn fixtures() -> Home {
    let fixture = |name: &str, more: &str| {
        let script = material(&format!("fixture/{name}.mjs"));
        format!(
            "[servers.{name}]\ncommand = {:?}\nargs = [{script:?}, \"--stdio\"{more}]\ndefinitions = \"follow\"\n",
            node()
        )
    };
    let config = [fixture("legacy", ""), fixture("modern", ", \"--modern-only\"")].concat();
    let home = Home::new(&format!(
        "expose = \"full\"\n{config}[permissions]\n\"*\" = {{ approval_mode = \"auto\" }}\n"
    ));
    let looked = home.run(&["doctor"]);
    assert!(looked.stdout.contains("protocol 2025-11-25"), "{}", looked.stdout);
    assert!(looked.stdout.contains("protocol 2026-07-28"), "{}", looked.stdout);
    home
}

/// Everything beyond plain calls, with a server of either era behind the gateway.
fn use_fixtures(door: &Door<'_>, sdk: Sdk) {
    for server in ["legacy", "modern"] {
        check_elicitation(door, sdk, server);
        check_cancellation(door, sdk, server);
        check_list_change(door, sdk, server);
    }
}

/// The question reaches the user behind the client, and the answer the tool behind the gateway.
fn check_elicitation(door: &Door<'_>, sdk: Sdk, server: &str) {
    let tool = format!("{server}__test_elicitation");
    let outcome = door.play(
        sdk,
        "elicit",
        &[
            ("--tool", &tool),
            ("--args", r#"{"message": "Who are you?"}"#),
            ("--answer", r#"{"username": "ada", "email": "ada@example.com"}"#),
        ],
    );
    let asked = outcome["asked"].as_array().unwrap();
    assert_eq!(asked.len(), 1, "{sdk:?} {server}: {outcome}");
    let message = format!("Server `{server}` asks (the answer goes to server `{server}`): Who are you?");
    assert_eq!(asked[0]["message"], message.as_str());
    assert_eq!(asked[0]["requestedSchema"]["properties"]["username"]["type"], "string", "{outcome}");
    let said = text(&outcome["result"]);
    assert!(
        said.contains("action=accept") && said.contains("ada@example.com"),
        "{sdk:?} {server}: {outcome}"
    );
}

fn check_cancellation(door: &Door<'_>, sdk: Sdk, server: &str) {
    let tool = format!("{server}__test_slow");
    let slow = [("--tool", tool.as_str()), ("--args", r#"{"steps": 2000, "interval_ms": 20}"#)];
    let outcome = door.play(sdk, "cancel", &slow);
    assert_eq!(outcome["cancelled"], true, "{sdk:?} {server}: {outcome}");
    assert_ne!(outcome["ended"], "result", "{sdk:?} {server}: {outcome}");
    assert_eq!(outcome["usable"], true, "{sdk:?} {server}: {outcome}");
}

fn check_list_change(door: &Door<'_>, sdk: Sdk, server: &str) {
    let trigger = format!("{server}__test_trigger_tool_change");
    let outcome = door.play(sdk, "list-changed", &[("--tool", &trigger)]);
    let dynamic = json!(format!("{server}__test_dynamic_tool"));
    let has = |list: &str| outcome[list].as_array().unwrap().contains(&dynamic);
    assert_ne!(has("before"), has("tools"), "{sdk:?} {server}: {outcome}");
}

/// A call that takes longer than its client waits, also one that reports progress all the time: the SDKs do not wait
/// longer for it. `cargo xtask soak long-call` takes ten minutes and the SDKs' own limits.
#[test]
fn a_call_longer_than_its_client_waits_gives_its_result() {
    let seconds = std::env::var("PML_LONG_CALL_SECONDS").ok().and_then(|text| text.parse::<u64>().ok());
    let home = fixtures();
    let patience = Duration::from_secs(seconds.unwrap_or(8) + 60);
    let total_ms = patience.as_millis().to_string();
    // In full, both sides have their usual limits.
    let limit = seconds.is_none().then_some("6000");
    if limit.is_some() {
        let config = std::fs::read_to_string(home.path("pml.toml")).unwrap();
        home.configure(&format!("client_wait = \"1s\"\n{config}"));
    }
    let steps = seconds.unwrap_or(8) * 10;
    let arguments = json!({ "steps": steps, "interval_ms": 100 }).to_string();
    let play = |sdk: Sdk, options: &[&str]| {
        let mut command = sdk.command();
        command.args(["long", "--tool", "legacy__test_slow", "--args", &arguments, "--timeout", &total_ms]);
        command.args(limit.iter().flat_map(|limit| ["--limit", *limit])).args(options);
        command.env("PML_HOME", home.path("")).current_dir(home.path(""));
        let outcome = last_line_within(patience, command);
        assert_eq!(outcome["ok"], true, "{sdk:?}: {outcome}");
        assert_eq!(text(&outcome["result"]), format!("finished {steps} steps"), "{sdk:?}: {outcome}");
        assert!(outcome["requests"].as_u64().unwrap() > 1, "{sdk:?}: {outcome}");
        assert!(!outcome["progress"].as_array().unwrap().is_empty(), "{sdk:?}: {outcome}");
    };
    let stdio = json!([env!("CARGO_BIN_EXE_pml"), "stdio"]).to_string();
    let served = home.serve(&[]);
    let token = format!("--token={}", served.token);
    std::thread::scope(|scope| {
        scope.spawn(|| play(Sdk::One, &["--stdio", &stdio]));
        scope.spawn(|| play(Sdk::Python, &["--url", &served.url, &token]));
    });
}

#[test]
fn both_eras_meet_over_stdio() {
    let home = fixtures();
    for sdk in SDKS {
        use_fixtures(&Door::Stdio(&home), sdk);
    }
}

#[test]
fn both_eras_meet_over_http() {
    let home = fixtures();
    let served = home.serve(&[]);
    let door = Door::Http(&served);
    for sdk in SDKS {
        use_fixtures(&door, sdk);
    }
    for server in ["legacy", "modern"] {
        eventually("the tool hears of each cancellation", || {
            let count = door.call(Sdk::One, &format!("{server}__test_cancelled_calls"), &json!({}));
            text(&count) == SDKS.len().to_string()
        });
    }
}

/// Each client asks its user whether a program may call what needs their word, and the run goes on with the answer.
fn use_approvals(home: &Home, door: &Door<'_>) {
    let code = "return (await mcp.fs.write({ path: args.path, content: 'said' })).path;";
    for sdk in SDKS {
        for (decision, status) in [("allow", "success"), ("deny", "failed")] {
            let path = format!("{sdk:?}-{decision}.txt");
            let program = json!({"type": "code", "code": code});
            let asked = json!({"intent": "say it", "implementation": program, "context": {"path": path}});
            let answer = json!({"decision": decision}).to_string();
            let played = [("--tool", "pml_execute"), ("--args", &asked.to_string()), ("--answer", &answer)];
            let outcome = door.play(sdk, "elicit", &played);
            let questions = outcome["asked"].as_array().unwrap();
            assert_eq!(questions.len(), 1, "{sdk:?}: {outcome}");
            let message = questions[0]["message"].as_str().unwrap();
            assert!(message.contains("`fs:write`") && message.contains(&path), "{sdk:?}: {message}");
            assert_eq!(outcome["result"]["structuredContent"]["status"], status, "{sdk:?}: {outcome}");
            assert_eq!(home.path(&path).exists(), decision == "allow", "{sdk:?} {decision}");
        }
        let listed = home.run(&["runs", "list", "--json", "--limit", "100"]);
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        let waits = listed.as_array().unwrap().iter().filter(|run| run["state"] == "waiting").count();
        assert_eq!(waits, 0, "{sdk:?} left a run behind: {listed}");
    }
}

/// Only a person's word counts, and one sits in front of the clients that have the key of `desk`.
fn with_people() -> (Home, String) {
    let home = Home::new("[approvals]\nby = \"human\"\n");
    let key = home.key("desk", true, false);
    (home, key)
}

#[test]
fn every_client_asks_its_user_over_stdio() {
    let (home, _) = with_people();
    use_approvals(&home, &Door::StdioWithKey(&home));
}

#[test]
fn every_client_asks_its_user_over_http() {
    let (home, key) = with_people();
    let served = home.serve(&[]);
    use_approvals(&home, &Door::HttpWithKey(&served, &key));
}

/// Each client calls a tool that has to be asked about, by its own name, and its user is asked.
fn call_directly(home: &Home, door: &Door<'_>) {
    for sdk in SDKS {
        for decision in ["allow", "deny"] {
            let path = format!("{sdk:?}-{decision}-directly.txt");
            let asked = json!({"path": path, "content": "said"}).to_string();
            let answer = json!({"decision": decision}).to_string();
            let played = [("--tool", "fs:write"), ("--args", &asked), ("--answer", &answer)];
            let outcome = door.play(sdk, "elicit", &played);
            let questions = outcome["asked"].as_array().unwrap();
            assert_eq!(questions.len(), 1, "{sdk:?}: {outcome}");
            let message = questions[0]["message"].as_str().unwrap();
            assert!(message.contains("`fs:write`") && message.contains(&path), "{sdk:?}: {message}");
            assert_eq!(home.path(&path).exists(), decision == "allow", "{sdk:?} {decision}");
            let result = &outcome["result"];
            match decision {
                "allow" => assert!(result["structuredContent"]["path"].is_string(), "{sdk:?}: {outcome}"),
                _ => assert!(text(result).starts_with("DENIED"), "{sdk:?}: {outcome}"),
            }
        }
    }
}

#[test]
fn every_client_asks_its_user_about_a_direct_call_over_stdio() {
    let (home, _) = with_people();
    call_directly(&home, &Door::StdioWithKey(&home));
}

#[test]
fn every_client_asks_its_user_about_a_direct_call_over_http() {
    let (home, key) = with_people();
    let served = home.serve(&[]);
    call_directly(&home, &Door::HttpWithKey(&served, &key));
}

#[test]
fn a_client_whose_connection_breaks_resumes_its_call() {
    let (_home, served) = served_with_fixture();
    let slow = json!({"steps": 12, "interval_ms": 30}).to_string();
    let options = [("--tool", "legacy__test_slow"), ("--args", slow.as_str())];
    let outcome = Door::Http(&served).play(Sdk::One, "resume", &options);
    assert_eq!(outcome["cut"], 2, "{outcome}");
    assert_eq!(outcome["progress"], json!((1..=12).collect::<Vec<_>>()), "each once and in order");
    assert_eq!(text(&outcome["result"]), "finished 12 steps");
}
