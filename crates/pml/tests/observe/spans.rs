//! Spans over OTLP/HTTP: a receiver gets one tree per request, whose calls are the calls of the run.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::door::{ALL, call, call_with, get, run, send};
use crate::harness::{Home, eventually};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CLIENT_SPAN: &str = "b7ad6b7169203331";
/// An argument that must not leave the machine.
const SECRET: &str = "Tulpenfeld-93";

/// A collector that keeps what it is sent.
#[derive(Clone)]
struct Collector {
    url: String,
    received: Arc<Mutex<Vec<Value>>>,
    /// The heads of the requests.
    heads: Arc<Mutex<Vec<String>>>,
}

impl Collector {
    fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let collector = Collector { url, received: Arc::default(), heads: Arc::default() };
        let own = collector.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let own = own.clone();
                std::thread::spawn(move || own.serve(stream));
            }
        });
        collector
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if reader.read_line(&mut head).unwrap_or(0) == 0 {
                    return;
                }
            }
            let lower = head.to_ascii_lowercase();
            let length = lower.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
            let mut body = vec![0; length.parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            self.heads.lock().unwrap().push(head);
            self.received.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
            let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
            stream.write_all(answer.as_bytes()).unwrap();
        }
    }

    /// All spans that came so far.
    fn spans(&self) -> Vec<Span> {
        let received = self.received.lock().unwrap();
        let each = received.iter().flat_map(|export| {
            let resource = &export["resourceSpans"][0];
            assert_eq!(attributes(&resource["resource"])["service.name"], "pml");
            resource["scopeSpans"][0]["spans"].as_array().unwrap().clone()
        });
        each.map(Span).collect()
    }

    /// The spans, once one of this name is there and nothing more comes.
    fn spans_with(&self, name: &str) -> Vec<Span> {
        eventually(&format!("the span `{name}` comes"), || {
            self.spans().iter().any(|span| span.name() == name)
        });
        let mut before = 0;
        eventually("all spans are there", || {
            std::thread::sleep(Duration::from_millis(1_500));
            let spans = self.spans().len();
            std::mem::replace(&mut before, spans) == spans
        });
        self.spans()
    }
}

#[derive(Debug, Clone)]
struct Span(Value);

impl Span {
    fn name(&self) -> &str {
        self.0["name"].as_str().unwrap()
    }

    fn id(&self) -> &str {
        self.0["spanId"].as_str().unwrap()
    }

    fn attribute(&self, name: &str) -> Value {
        attributes(&self.0).remove(name).unwrap_or_default()
    }

    fn is_error(&self) -> bool {
        self.0["status"]["code"] == 2
    }

    fn children<'a>(&self, all: &'a [Span]) -> Vec<&'a Span> {
        all.iter().filter(|span| span.0["parentSpanId"] == self.0["spanId"]).collect()
    }
}

fn attributes(of: &Value) -> BTreeMap<String, Value> {
    let each = of["attributes"].as_array().unwrap().iter();
    each.map(|attribute| {
        let (_, value) = attribute["value"].as_object().unwrap().iter().next().unwrap();
        (attribute["key"].as_str().unwrap().to_owned(), value.clone())
    })
    .collect()
}

/// A home with the server `traced`.
fn home(settings: &str) -> Home {
    let home = Home::new("");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/observe/traced.py");
    let args = json!([script, home.path("traced.ledger")]);
    home.configure(&format!("{settings}\n[servers.traced]\ncommand = \"python3\"\nargs = {args}\n{ALL}"));
    home
}

/// The calls that arrived at `traced`.
fn ledger(home: &Home) -> Vec<Value> {
    let text = std::fs::read_to_string(home.path("traced.ledger")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn exporting(collector: &Collector) -> String {
    format!("[telemetry]\notlp_endpoint = \"{}\"\nheaders = {{ x-api-key = \"sesame\" }}\n", collector.url)
}

fn meta() -> Value {
    json!({"traceparent": format!("00-{TRACE}-{CLIENT_SPAN}-01"), "tracestate": "vendor=1"})
}

#[test]
fn the_spans_of_a_request_are_the_calls_of_its_run() {
    let collector = Collector::start();
    let home = home(&exporting(&collector));
    let served = home.serve(&[]);
    let code = format!(
        "const parts = await Promise.all([1, 2, 3].map((value) => mcp.traced.note({{ value }})));\n\
         await mcp.math.evaluate({{ expression: '1 + 1' }});\n\
         try {{ await mcp.traced.fail({{ value: '{SECRET}' }}) }} catch {{}}\n\
         try {{ await mcp.traced.refuse({{ value: '{SECRET}' }}) }} catch {{}}\n\
         return parts.length"
    );
    let implementation = json!({"type": "code", "code": code});
    let arguments = json!({"intent": format!("note what {SECRET} is"), "implementation": implementation});
    let reply = call_with(&served, "pml_execute", &arguments, &meta())["structuredContent"].clone();
    assert_eq!(reply["result"], 3, "{reply}");

    let spans = collector.spans_with("tools/call pml_execute");
    assert!(spans.iter().all(|span| span.0["traceId"] == TRACE), "one trace, that of the client: {spans:#?}");
    let request = spans.iter().find(|span| span.name() == "tools/call pml_execute").unwrap();
    assert_eq!(request.0["parentSpanId"], CLIENT_SPAN);
    assert_eq!((&request.0["kind"], request.is_error()), (&json!(2), false));
    assert_eq!(request.attribute("mcp.method.name"), "tools/call");
    assert_eq!(request.attribute("gen_ai.tool.name"), "pml_execute");
    assert_eq!(request.attribute("mcp.protocol.version"), "2026-07-28");
    assert_eq!(request.attribute("jsonrpc.request.id"), "1");
    assert_eq!(request.attribute("network.transport"), "tcp");
    let within = request.children(&spans);
    let names: Vec<&str> = within.iter().map(|span| span.name()).collect();
    assert_eq!(names, ["analysis", "run"], "{spans:#?}");
    let run = within[1];
    assert_eq!(run.attribute("pml.run.id"), reply["workflowId"]);
    assert_eq!(run.attribute("pml.run.status"), "done");

    // One to one with the calls that the run records.
    let recorded = call(&served, "pml_get_task_result", &json!({"workflow_id": reply["workflowId"]}));
    let recorded =
        recorded["structuredContent"]["tasks"].as_array().unwrap_or_else(|| panic!("{recorded}")).clone();
    let mut calls = run.children(&spans);
    calls.sort_by_key(|span| span.attribute("pml.call.number").as_str().unwrap().parse::<u32>().unwrap());
    let told: Vec<(String, bool)> = calls
        .iter()
        .map(|span| {
            let (server, tool) = (span.attribute("pml.server.name"), span.attribute("gen_ai.tool.name"));
            (format!("{}:{}", server.as_str().unwrap(), tool.as_str().unwrap()), span.is_error())
        })
        .collect();
    let expected: Vec<(String, bool)> = recorded
        .iter()
        .map(|task| (task["tool"].as_str().unwrap().to_owned(), task["status"] != "success"))
        .collect();
    assert_eq!(told, expected, "{recorded:#?}");
    assert_eq!(told.len(), 6);
    assert_eq!(spans.iter().filter(|span| span.name() != "tools/call pml_get_task_result").count(), 9);
    for span in &calls {
        let inside = |time: &str| span.0[time].as_str().unwrap().parse::<u128>().unwrap();
        assert!(inside("startTimeUnixNano") <= inside("endTimeUnixNano"));
        let is_builtin = span.attribute("pml.server.name") == "math";
        assert_eq!(span.0["kind"], if is_builtin { 1 } else { 3 });
        assert_eq!(span.attribute("gen_ai.operation.name"), "execute_tool");
    }
    let failed = |tool: &str| calls.iter().find(|span| span.attribute("gen_ai.tool.name") == tool).unwrap();
    assert_eq!(failed("fail").attribute("error.type"), "tool_error");
    assert_eq!(failed("fail").attribute("pml.arguments.shape"), "{value: string}");
    assert_eq!(failed("refuse").attribute("error.type"), "-32099");

    // Each call carried its own span to the server.
    let mut sent: Vec<String> = Vec::new();
    for arrived in ledger(&home) {
        assert_eq!(arrived["context"]["tracestate"], "vendor=1", "{arrived}");
        sent.push(arrived["context"]["traceparent"].as_str().unwrap().to_owned());
    }
    let downstream = calls.iter().filter(|span| span.attribute("pml.server.name") == "traced");
    let mut expected: Vec<String> = downstream.map(|span| format!("00-{TRACE}-{}-01", span.id())).collect();
    sent.sort();
    expected.sort();
    assert_eq!(sent, expected);

    let all = format!("{:?}", collector.received.lock().unwrap());
    assert!(!all.contains(SECRET), "values stay here: {all}");
    for head in &*collector.heads.lock().unwrap() {
        assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
        assert!(head.to_ascii_lowercase().contains("x-api-key: sesame"), "{head}");
    }
}

#[test]
fn a_tool_called_by_name_has_one_span_within_its_request() {
    let collector = Collector::start();
    let home = home(&exporting(&collector));
    let served = home.serve(&[]);
    let reply = call(&served, "traced__fail", &json!({"value": 1}));
    assert_eq!(reply["isError"], true, "{reply}");
    let spans = collector.spans_with("tools/call traced__fail");
    assert_eq!(spans.len(), 2, "{spans:#?}");
    let request = spans.iter().find(|span| span.name() == "tools/call traced__fail").unwrap();
    assert!(request.0.get("parentSpanId").is_none() && request.is_error(), "{request:?}");
    let [called] = request.children(&spans)[..] else { panic!("{spans:#?}") };
    assert_eq!((called.name(), called.is_error()), ("tools/call fail", true));
    let sent = ledger(&home)[0]["context"]["traceparent"].as_str().unwrap().to_owned();
    assert_eq!(sent, format!("00-{}-{}-01", called.0["traceId"].as_str().unwrap(), called.id()));
    // A trace that its client does not record has no spans here either, and is passed on.
    let unsampled = format!("00-{TRACE}-{CLIENT_SPAN}-00");
    call_with(&served, "traced__note", &json!({"value": 2}), &json!({"traceparent": unsampled}));
    assert_eq!(ledger(&home)[1]["context"]["traceparent"], unsampled);
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(collector.spans().len(), 2);
}

#[test]
fn a_request_to_the_api_has_a_span_around_all_it_causes() {
    let collector = Collector::start();
    let home = home(&exporting(&collector));
    let served = home.serve(&[]);
    let learned = run(&served, "note one", "return await mcp.traced.note({ value: 1 })");
    let capability = &learned["capabilityId"];
    let (token, parent) = (format!("Bearer {}", served.token), format!("00-{TRACE}-{CLIENT_SPAN}-01"));
    let headers = [
        ("Authorization", token.as_str()),
        ("Content-Type", "application/json"),
        ("traceparent", &parent),
        ("tracestate", "vendor=1"),
    ];
    let asked = json!({"capability": capability}).to_string();
    let (status, _, body) = send(&served, "POST /api/execute", &headers, &asked);
    assert_eq!(status, 200, "{body} {learned}");
    let started = serde_json::from_str::<Value>(&body).unwrap()["run"].clone();
    eventually("the run calls its tool", || ledger(&home).len() == 2);
    let (status, ..) = send(&served, &format!("GET /api/runs/{SECRET}"), &headers[..1], "");
    assert_eq!(status, 404);
    get(&served, "/metrics");

    let mut spans = collector.spans_with("GET /api/runs/{id}");
    // Those of the run that was learned from are a trace of their own.
    spans.retain(|span| span.0["traceId"] == TRACE || span.name().starts_with("GET"));
    let named = |name: &str| spans.iter().find(|span| span.name() == name).unwrap();
    let request = named("POST /api/execute");
    assert_eq!((&request.0["traceId"], &request.0["parentSpanId"]), (&json!(TRACE), &json!(CLIENT_SPAN)));
    assert_eq!((&request.0["kind"], request.is_error()), (&json!(2), false));
    assert_eq!(request.attribute("http.request.method"), "POST");
    assert_eq!(request.attribute("http.route"), "/api/execute");
    assert_eq!(request.attribute("http.response.status_code"), "200");
    let within = request.children(&spans);
    assert_eq!(within.iter().map(|span| span.name()).collect::<Vec<_>>(), ["analysis", "run"], "{spans:#?}");
    assert_eq!(within[1].attribute("pml.run.id"), started);
    let [called] = within[1].children(&spans)[..] else { panic!("{spans:#?}") };
    let arrived = &ledger(&home)[1]["context"];
    let expected = json!({"traceparent": format!("00-{TRACE}-{}-01", called.id()), "tracestate": "vendor=1"});
    assert_eq!(arrived, &expected);

    // What a program asked wrongly is no failure of PML, and its names stay here.
    let refused = named("GET /api/runs/{id}");
    assert!(refused.0.get("parentSpanId").is_none() && !refused.is_error(), "{refused:?}");
    assert_eq!(refused.attribute("http.response.status_code"), "404");
    assert_eq!(spans.len(), 5, "{spans:#?}");
    assert!(!format!("{spans:?}").contains(SECRET), "{spans:#?}");
}

#[test]
fn a_gateway_whose_database_is_held_by_another_is_not_ready() {
    let home = home("");
    let served = home.serve(&[]);
    let ready = || send(&served, "GET /ready", &[], "");
    assert_eq!(ready().0, 200);
    // Reading goes on, but no run could be recorded.
    let holds = "import sqlite3, sys\nheld = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)\n\
                 held.execute('BEGIN IMMEDIATE')\nprint('held', flush=True)\nsys.stdin.read()";
    let mut holder = Command::new("python3")
        .args(["-c", holds, &home.path("pml.db").display().to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut held = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut held).unwrap();
    assert_eq!(held, "held\n");
    let (status, _, body) = ready();
    let told: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &told["error"]["code"]), (503, &json!("STORAGE_BUSY")), "{body}");
    assert!(!body.contains("pml.db"), "anybody may ask: {body}");
    drop(holder.stdin.take());
    assert!(holder.wait().unwrap().success());
    eventually("it is ready again", || ready().0 == 200);
}

#[test]
fn without_a_collector_the_context_of_the_client_is_passed_on() {
    let home = home("");
    let served = home.serve(&[]);
    call(&served, "traced__note", &json!({"value": 1}));
    call_with(&served, "traced__note", &json!({"value": 2}), &meta());
    let code = "return await mcp.traced.note({ value: 3 })";
    let implementation = json!({"type": "code", "code": code});
    let arguments = json!({"intent": "note three", "implementation": implementation});
    call_with(&served, "pml_execute", &arguments, &meta());
    let contexts: Vec<Value> = ledger(&home).iter().map(|arrived| arrived["context"].clone()).collect();
    assert_eq!(contexts, [json!({}), meta(), meta()]);
}

#[test]
fn a_collector_that_is_not_there_costs_one_warning() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    // This one takes connections and never answers.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    for address in [nobody, mute.local_addr().unwrap()] {
        let home = home(&format!("[telemetry]\notlp_endpoint = \"http://{address}\"\n"));
        std::fs::write(
            home.path("program.ts"),
            "for (let i = 0; i < 700; i++) await mcp.math.evaluate({ expression: '1 + 1' });\nreturn 'done'",
        )
        .unwrap();
        let began = Instant::now();
        let program = home.path("program.ts").display().to_string();
        let finished = home.run(&["-v", "execute", "count", "--code", &program]);
        assert_eq!(finished.code, 0, "{}", finished.stderr);
        let warnings = finished.stderr.matches("the collector receives no spans").count();
        assert!(warnings <= 1, "{}", finished.stderr);
        if address == nobody {
            assert_eq!(warnings, 1, "{}", finished.stderr);
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    }
}

#[test]
fn the_spans_of_thousands_of_calls_all_arrive() {
    let collector = Collector::start();
    let home = home(&format!("{}[limits]\ncalls = 5000\n", exporting(&collector)));
    let served = home.serve(&[]);
    let code =
        "for (let i = 0; i < 3000; i++) await mcp.math.evaluate({ expression: '1 + 1' }); return 'all'";
    // The reply may come before the end: only the spans count.
    let reply = run(&served, "count for long", code);
    assert!(reply["workflowId"].is_string(), "{reply}");
    let is_call = |span: &Span| span.name() == "tools/call evaluate";
    eventually("all spans are there", || {
        collector.spans().iter().filter(|span| is_call(span)).count() == 3_000
    });
    let (status, metrics) = get(&served, "/metrics");
    assert_eq!(status, 200, "{metrics}");
    let figure = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("{name} "))).unwrap();
        line.parse::<f64>().unwrap()
    };
    assert_eq!(figure("pml_spans_dropped_total"), 0.0);
    assert!(
        figure("pml_spans_sent_total") >= 3_000.0 - 512.0,
        "the last batch may not be answered yet: {metrics}"
    );
}
