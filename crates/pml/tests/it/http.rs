//! The HTTP door, byte by byte: who is let in, what is refused, and how requests and sessions live.
//!
//! The client here is written by hand, because the interesting requests are those no library sends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Home, PATIENCE, Served, eventually, material, node, text};

/// An answer whose head has been read and whose body has not.
pub struct Reply {
    /// The status.
    pub status: u16,
    headers: Vec<(String, String)>,
    rest: BufReader<TcpStream>,
}

impl Reply {
    /// Reads the head. None where the connection was closed without a word.
    pub fn read(stream: TcpStream) -> Option<Reply> {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut rest = BufReader::new(stream);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if rest.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let status = lines[0].split(' ').nth(1)?.parse().ok()?;
        let headers: Vec<(String, String)> = lines[1..]
            .iter()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let shared = headers.iter().find(|(name, _)| name.starts_with("access-control-"));
        assert_eq!(shared, None, "no page of another origin may read anything");
        Some(Reply { status, headers, rest })
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    /// The whole body; the request asked for the connection to be closed after it.
    pub fn body(mut self) -> String {
        if self.header("transfer-encoding") == Some("chunked") {
            let chunks: Vec<Vec<u8>> = std::iter::from_fn(|| self.chunk()).collect();
            return String::from_utf8(chunks.concat()).unwrap();
        }
        let mut body = String::new();
        self.rest.read_to_string(&mut body).unwrap();
        body
    }

    fn chunk(&mut self) -> Option<Vec<u8>> {
        let mut size = String::new();
        self.rest.read_line(&mut size).unwrap();
        let size = usize::from_str_radix(size.trim(), 16).ok().filter(|size| *size > 0)?;
        let mut chunk = vec![0; size + 2];
        self.rest.read_exact(&mut chunk).unwrap();
        chunk.truncate(size);
        Some(chunk)
    }

    /// The next event of a stream, as it came; `None` at its end.
    pub fn next_event(&mut self) -> Option<String> {
        // An event may come in several chunks, but no chunk has parts of two.
        let mut event = Vec::new();
        while !event.ends_with(b"\n\n") {
            event.extend(self.chunk()?);
        }
        Some(String::from_utf8(event).unwrap())
    }

    /// The next message of an event stream.
    pub fn event(&mut self) -> Value {
        loop {
            let event = self.next_event().expect("the stream goes on");
            let data = event.lines().find_map(|line| line.strip_prefix("data:")).map(str::trim);
            if let Some(data) = data.filter(|data| !data.is_empty()) {
                return serde_json::from_str(data).unwrap();
            }
        }
    }

    /// The JSON-RPC response, in a body or at the end of a stream.
    pub fn response(mut self) -> Value {
        if self.is_stream() {
            loop {
                let message = self.event();
                if message.get("method").is_none() {
                    return message;
                }
            }
        }
        let status = self.status;
        let body = self.body();
        serde_json::from_str(&body).unwrap_or_else(|_| panic!("{status}: {body}"))
    }
}

/// Sends bytes as they are.
pub fn send_raw(served: &Served, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(authority(served)).unwrap();
    // What is refused early may be cut while it is being sent.
    stream.write_all(bytes).ok();
    stream
}

pub fn authority(served: &Served) -> &str {
    served.url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp")).unwrap()
}

/// One request with exactly these headers, besides those that frame it.
#[track_caller]
pub fn send(served: &Served, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let mut head =
        format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    Reply::read(send_raw(served, format!("{head}\r\n{body}").as_bytes())).expect("an answer")
}

/// A POST to the endpoint by someone who is let in.
#[track_caller]
fn post(served: &Served, more: &[(&str, &str)], body: &str) -> Reply {
    post_as(served, &served.token, more, body)
}

/// A POST to the endpoint with this token.
#[track_caller]
pub fn post_as(served: &Served, token: &str, more: &[(&str, &str)], body: &str) -> Reply {
    let token = format!("Bearer {token}");
    let mut headers = vec![("Host", authority(served)), ("Authorization", token.as_str())];
    headers.extend([("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")]);
    headers.extend(more);
    send(served, "POST", "/mcp", &headers, body)
}

/// A request to the API by someone with the token: its status and its body.
pub fn api(served: &Served, method: &str, path: &str, body: &str) -> (u16, Value) {
    let token = format!("Bearer {}", served.token);
    let headers = [
        ("Host", authority(served)),
        ("Authorization", token.as_str()),
        ("Content-Type", "application/json"),
    ];
    let reply = send(served, method, path, &headers, body);
    let status = reply.status;
    let body = reply.body();
    (status, serde_json::from_str(&body).unwrap_or_else(|_| panic!("{status}: {body}")))
}

/// A request of the stateless era.
fn modern(served: &Served, method: &str, params: &Value) -> Reply {
    modern_by(served, &json!({"name": "test", "capabilities": {"elicitation": {}}}), method, params)
}

/// A request of the stateless era by a client of that name with those capabilities.
pub fn modern_by(served: &Served, client: &Value, method: &str, params: &Value) -> Reply {
    modern_as(served, &served.token, client, method, params)
}

/// The same with this token.
pub fn modern_as(served: &Served, token: &str, client: &Value, method: &str, params: &Value) -> Reply {
    let mut params = params.clone();
    for (key, value) in [
        ("io.modelcontextprotocol/protocolVersion", json!("2026-07-28")),
        ("io.modelcontextprotocol/clientInfo", json!({"name": client["name"], "version": "1"})),
        ("io.modelcontextprotocol/clientCapabilities", client["capabilities"].clone()),
        ("progressToken", json!("p")),
    ] {
        params["_meta"][key] = value;
    }
    let name = ["name", "uri", "taskId"].iter().find_map(|key| params[*key].as_str());
    let name = name.unwrap_or_default().to_owned();
    let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method), ("Mcp-Name", &name)];
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    post_as(served, token, &headers, &body.to_string())
}

/// A call of the stateless era, to its end.
fn call(served: &Served, params: &Value) -> Value {
    modern(served, "tools/call", params).response()
}

/// Opens a session; gives its id and the answer.
pub fn initialize(served: &Served) -> (String, Value) {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let reply = post(served, &[], &body.to_string());
    assert_eq!(reply.status, 200);
    (reply.header("mcp-session-id").expect("a session id").to_owned(), reply.response())
}

/// A request within a session.
fn in_session(served: &Served, session: &str, method: &str) -> Reply {
    in_session_with(served, session, method, &json!({}))
}

/// The same with parameters.
pub fn in_session_with(served: &Served, session: &str, method: &str, params: &Value) -> Reply {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    post(served, &[("Mcp-Session-Id", session), ("MCP-Protocol-Version", "2025-11-25")], &body.to_string())
}

#[test]
fn an_answer_that_nobody_waits_for_is_refused() {
    let (_home, served) = served();
    let (session, _) = initialize(&served);
    let answer = json!({"jsonrpc": "2.0", "id": 41, "result": {"action": "accept", "content": {}}});
    let headers = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", "2025-11-25")];
    let reply = post(&served, &headers, &answer.to_string());
    assert_eq!(reply.status, 400);
    let told = reply.body();
    assert!(told.contains("no question with this id is open at this gateway"), "{told}");
}

fn served() -> (Home, Served) {
    let home = Home::new("");
    let served = home.serve(&[]);
    (home, served)
}

/// Nobody is asked before tools are called.
const AUTO: &str = "[permissions]\n\"*\" = { approval_mode = \"auto\" }\n";

/// A gateway in front of the fixture of the older era, which asks its questions while a call runs.
pub fn served_with_fixture() -> (Home, Served) {
    let script = material("fixture/legacy.mjs");
    let server =
        format!("[servers.legacy]\ncommand = {:?}\nargs = [{script:?}, \"--stdio\"]\n{AUTO}", node());
    let home = Home::new(&server);
    assert_eq!(home.run(&["doctor"]).code, 0);
    let served = home.serve(&[]);
    (home, served)
}

const ROUTES: [(&str, &str); 8] = [
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("DELETE", "/mcp"),
    ("OPTIONS", "/mcp"),
    ("GET", "/health"),
    ("GET", "/ready"),
    ("GET", "/"),
    ("GET", "/no/such/path"),
];

#[test]
fn foreign_hosts_and_origins_are_refused_on_every_route() {
    let (_home, served) = served();
    let own = authority(&served);
    let port = own.rsplit(':').next().unwrap();
    let token = format!("Bearer {}", served.token);
    let hosts = [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("localhost.evil.example:{port}"),
        format!("127.0.0.1.nip.io:{port}"),
        format!("0.0.0.0:{port}"),
        format!("[::2]:{port}"),
        "2130706433".to_owned(),
        String::new(),
        // Only the beginning or the end of these is ours.
        format!("{own}.evil.example"),
        format!("{own}@evil.example"),
        format!("evil.example@{own}"),
        "127.0.0.1:evil.example".to_owned(),
        format!("[::1]evil.example:{port}"),
        format!("{own}:{port}"),
        "127.0.0.1:3000".to_owned(),
        format!("localhost.:{port}"),
    ];
    let origins = [
        "null".to_owned(),
        "http://evil.example".to_owned(),
        format!("http://{own}.evil.example"),
        format!("http://localhost:{port}"),
        "http://127.0.0.1:3000".to_owned(),
        "file://".to_owned(),
    ];
    let foreign: Vec<(String, Option<String>)> = hosts
        .into_iter()
        .map(|host| (host, None))
        .chain(origins.into_iter().map(|origin| (own.to_owned(), Some(origin))))
        .collect();
    assert_eq!(foreign.len(), 22);
    for (host, origin) in &foreign {
        for (method, path) in ROUTES {
            let mut headers = vec![("Host", host.as_str()), ("Authorization", token.as_str())];
            headers.extend([("Content-Type", "application/json"), ("Accept", "*/*")]);
            headers.extend(origin.iter().map(|origin| ("Origin", origin.as_str())));
            let reply = send(&served, method, path, &headers, "");
            assert_eq!(reply.status, 403, "{method} {path} with Host {host:?}, Origin {origin:?}");
        }
    }
    // The same without any name, and with two of them.
    for hosts in [&[][..], &[("Host", own), ("Host", "evil.example")]] {
        let reply = send(&served, "GET", "/health", hosts, "");
        assert!(matches!(reply.status, 400 | 403), "{hosts:?}: {}", reply.status);
    }
    let same = format!("http://{own}");
    let reply = send(&served, "GET", "/health", &[("Host", own), ("Origin", &same)], "");
    assert_eq!((reply.status, reply.body().as_str()), (200, r#"{"status":"ok"}"#));
}

#[test]
fn every_route_but_health_and_the_pages_needs_the_token() {
    let (_home, served) = served();
    let own = authority(&served);
    let almost = format!("Bearer {}", &served.token[1..]);
    let basic = format!("Basic {}", served.token);
    for value in
        [None, Some("Bearer wrong"), Some("Bearer "), Some(&served.token), Some(&almost), Some(&basic)]
    {
        for (method, path) in
            ROUTES.into_iter().filter(|(_, path)| !["/", "/health", "/ready"].contains(path))
        {
            let mut headers = vec![("Host", own), ("Content-Type", "application/json"), ("Accept", "*/*")];
            headers.extend(value.map(|value| ("Authorization", value)));
            let reply = send(&served, method, path, &headers, "");
            assert_eq!(reply.status, 401, "{method} {path} with {value:?}");
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"), "{method} {path}");
        }
    }
    let token = format!("Bearer {}", served.token);
    let reply = send(&served, "GET", "/no/such/path", &[("Host", own), ("Authorization", &token)], "");
    assert_eq!(reply.status, 404);
    for path in ["/health", "/ready"] {
        assert_eq!(send(&served, "GET", path, &[("Host", own)], "").status, 200, "{path}");
    }
    let link = served.link.strip_prefix(&format!("http://{own}")).unwrap();
    assert_eq!(send(&served, "GET", link, &[("Host", own)], "").status, 303, "the link is the credential");
}

#[test]
fn a_form_or_a_script_without_preflight_cannot_post() {
    let (_home, served) = served();
    let token = format!("Bearer {}", served.token);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
    for kind in [
        None,
        Some("text/plain"),
        Some("text/plain; application/json"),
        Some("application/x-www-form-urlencoded"),
        Some("multipart/form-data"),
        Some("application/jsonp"),
    ] {
        let mut headers =
            vec![("Host", authority(&served)), ("Authorization", token.as_str()), ("Accept", "*/*")];
        headers.extend(kind.map(|kind| ("Content-Type", kind)));
        assert_eq!(send(&served, "POST", "/mcp", &headers, body).status, 415, "{kind:?}");
    }
}

#[test]
fn every_route_that_takes_a_body_looks_at_its_content_type() {
    let (_home, served) = served();
    let (own, token) = (authority(&served), format!("Bearer {}", served.token));
    let routes = [
        ("POST", "/mcp"),
        ("POST", "/api/analyse"),
        ("POST", "/api/capabilities"),
        ("POST", "/api/capabilities/x/rename"),
        ("PUT", "/api/capabilities/x/cache"),
        ("POST", "/api/approvals/x/y"),
        ("POST", "/api/quarantine"),
        ("DELETE", "/api/capabilities/x"),
        ("POST", "/login"),
        ("POST", "/logout"),
    ];
    for (method, path) in routes {
        for kind in [Some("text/plain"), Some("application/json5"), Some("multipart/form-data"), None] {
            let mut headers = vec![("Host", own), ("Authorization", token.as_str()), ("Accept", "*/*")];
            headers.extend(kind.map(|kind| ("Content-Type", kind)));
            let reply = send(&served, method, path, &headers, r#"{"code":"return 1"}"#);
            assert_eq!(reply.status, 415, "{method} {path} with {kind:?}");
        }
    }
    let twice = [("Content-Type", "application/json"), ("Content-Type", "text/plain")];
    let headers = [&[("Host", own), ("Authorization", token.as_str())][..], &twice].concat();
    assert_eq!(send(&served, "POST", "/api/analyse", &headers, r#"{"code":"return 1"}"#).status, 415);
    let right = [
        ("Host", own),
        ("Authorization", token.as_str()),
        ("Content-Type", "Application/JSON; charset=utf-8"),
    ];
    assert_eq!(send(&served, "POST", "/api/analyse", &right, r#"{"code":"return 1"}"#).status, 200);
}

#[test]
fn a_request_for_another_authority_than_its_host_is_refused() {
    let (_home, served) = served();
    let own = authority(&served);
    for (target, status) in [("http://evil.example/health", 403), (&*format!("http://{own}/health"), 200)] {
        let head = format!("GET {target} HTTP/1.1\r\nHost: {own}\r\nConnection: close\r\n\r\n");
        let reply = Reply::read(send_raw(&served, head.as_bytes())).unwrap();
        assert_eq!(reply.status, status, "{target}");
    }
}

#[test]
fn what_is_no_json_rpc_message_is_answered_with_an_error() {
    let (_home, served) = served();
    let cases = [
        ("", -32700, Value::Null),
        ("{", -32700, Value::Null),
        ("\u{feff}{}", -32700, Value::Null),
        ("42", -32600, Value::Null),
        ("[]", -32600, Value::Null),
        (r#"["2.0",1,"ping",{},null,null]"#, -32600, Value::Null),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600, Value::Null),
        (r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#, -32600, json!(3)),
        (r#"{"jsonrpc":"2.0","id":"a","method":5}"#, -32600, json!("a")),
        (r#"{"jsonrpc":"2.0","id":4}"#, -32600, json!(4)),
    ];
    for (body, code, id) in cases {
        let reply = post(&served, &[], body);
        assert_eq!(reply.status, 400, "{body}");
        let answer = reply.response();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{body}: {answer}");
    }
}

#[test]
fn heads_and_bodies_have_limits() {
    let (_home, served) = served();
    let long = "x".repeat(20 * 1024);
    assert_eq!(post(&served, &[("X-Long", &long)], "{}").status, 431);
    let many: Vec<(String, String)> = (0..200).map(|n| (format!("X-{n}"), n.to_string())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(post(&served, &many, "{}").status, 431);
    let large = " ".repeat(16 * 1024 * 1024 + 1);
    assert_eq!(post(&served, &[], &large).status, 413);
    assert_eq!(send(&served, "GET", "/health", &[("Host", authority(&served))], "").status, 200);
}

#[test]
fn a_client_that_does_not_finish_its_headers_is_cut_off() {
    let (_home, served) = served();
    let mut stream = send_raw(&served, b"GET /health HTTP/1.1\r\nHost: loc");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the connection is closed, with or without a word");
    assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
}

#[test]
fn a_session_lives_from_initialize_to_delete() {
    let (_home, served) = served();
    let (session, welcome) = initialize(&served);
    let (other, _) = initialize(&served);
    assert_eq!(welcome["result"]["protocolVersion"], "2025-11-25");
    assert!(session.len() >= 22 && session.bytes().all(|b| (0x21..=0x7e).contains(&b)), "{session}");
    assert_ne!(session, other);

    assert_eq!(
        in_session(&served, &session, "tools/list").response()["result"]["tools"][0]["name"],
        "pml_discover"
    );
    assert_eq!(in_session(&served, &session, "no/such/method").response()["error"]["code"], -32601);
    for unknown in ["", "x", &session[1..], &session.to_uppercase()] {
        assert_eq!(in_session(&served, unknown, "tools/list").status, 404, "{unknown:?}");
    }
    let without = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    assert_eq!(post(&served, &[("MCP-Protocol-Version", "2025-11-25")], &without).status, 400);

    let token = format!("Bearer {}", served.token);
    let own =
        [("Host", authority(&served)), ("Authorization", token.as_str()), ("Accept", "text/event-stream")];
    let with = |session: &'static str| [&own[..], &[("Mcp-Session-Id", session)]].concat();
    assert_eq!(send(&served, "GET", "/mcp", &own, "").status, 405);
    assert_eq!(send(&served, "DELETE", "/mcp", &own, "").status, 405);
    assert_eq!(send(&served, "GET", "/mcp", &with("unknown"), "").status, 404);
    assert_eq!(send(&served, "DELETE", "/mcp", &with("unknown"), "").status, 404);

    let known = [&own[..], &[("Mcp-Session-Id", session.as_str())]].concat();
    assert!(send(&served, "GET", "/mcp", &known, "").is_stream());
    assert_eq!(send(&served, "DELETE", "/mcp", &known, "").status, 204);
    assert_eq!(send(&served, "DELETE", "/mcp", &known, "").status, 404);
    assert_eq!(send(&served, "GET", "/mcp", &known, "").status, 404);
    assert_eq!(in_session(&served, &session, "tools/list").status, 404);
    assert_eq!(in_session(&served, &other, "ping").status, 200, "other sessions go on");
}

#[test]
fn headers_that_differ_from_the_body_are_refused() {
    let (_home, served) = served();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "pml_discover", "arguments": {"intent": "read a file"}, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params}).to_string();
    let status = |version: &str, method: &str, name: &str| {
        let headers = [("MCP-Protocol-Version", version), ("Mcp-Method", method), ("Mcp-Name", name)];
        let reply = post(&served, &headers, &body);
        (reply.status, reply.response()["error"]["code"].as_i64())
    };
    assert_eq!(status("2026-07-28", "tools/call", "pml_discover"), (200, None));
    assert_eq!(status("2026-07-28", "tools/list", "pml_discover"), (400, Some(-32020)));
    assert_eq!(status("2026-07-28", "tools/call", "fs__read"), (400, Some(-32020)));
    assert_eq!(status("2025-11-25", "tools/call", "pml_discover"), (400, Some(-32020)));
}

#[test]
fn being_asked_to_end_with_a_call_in_flight_ends_well() {
    let (_home, mut served) = served_with_fixture();
    let slow = json!({"name": "legacy__test_slow", "arguments": {"steps": 100_000, "interval_ms": 50}});
    let mut under_way = modern(&served, "tools/call", &slow);
    assert_eq!(under_way.event()["method"], "notifications/progress");
    let pid = served.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    eventually("the gateway ends", || served.child.try_wait().unwrap().is_some());
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
}

/// What the call below asks, as it reaches the client.
const QUESTION: &str = "Server `legacy` asks (the answer goes to server `legacy`): Who are you?";

/// A call that asks for an account while it runs.
fn asking() -> Value {
    json!({"name": "legacy__test_elicitation", "arguments": {"message": "Who are you?"}})
}

/// The same call again, with a state and answers.
fn again(state: &Value, answers: &Value) -> Value {
    let mut params = asking();
    params["requestState"] = state.clone();
    params["inputResponses"] = answers.clone();
    params
}

fn accepted() -> Value {
    json!({"action": "accept", "content": {"username": "ada", "email": "ada@example.com"}})
}

/// Puts the question of `asking` and gives the state and the key to answer under.
fn asked(served: &Served) -> (Value, String) {
    let answer = call(served, &asking());
    let result = &answer["result"];
    assert_eq!(result["resultType"], "input_required", "{answer}");
    let requests = result["inputRequests"].as_object().unwrap();
    let (key, request) = requests.iter().next().unwrap();
    assert_eq!(requests.len(), 1, "{answer}");
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["message"], QUESTION);
    (result["requestState"].clone(), key.clone())
}

#[test]
fn a_question_of_an_older_server_becomes_a_result_and_the_call_goes_on_with_the_answer() {
    let (_home, served) = served_with_fixture();
    let (state, key) = asked(&served);
    let done = call(&served, &again(&state, &json!({&key: accepted()})));
    assert_eq!(done["result"]["resultType"], "complete", "{done}");
    assert!(text(&done["result"]).contains("action=accept"), "{done}");
    // A state is good for one time.
    let replayed = call(&served, &again(&state, &json!({&key: accepted()})));
    assert_eq!(replayed["error"]["code"], -32602, "{replayed}");
}

#[test]
fn a_question_without_an_answer_is_asked_again() {
    let (_home, served) = served_with_fixture();
    let (state, key) = asked(&served);
    let repeated = call(&served, &again(&state, &json!({"other": accepted()})));
    let result = &repeated["result"];
    assert_eq!(result["resultType"], "input_required", "{repeated}");
    assert_eq!(result["inputRequests"][&key]["params"]["message"], QUESTION, "{repeated}");
    assert_ne!(result["requestState"], state);
    let done = call(&served, &again(&result["requestState"], &json!({&key: accepted()})));
    assert_eq!(done["result"]["resultType"], "complete", "{done}");
}

#[test]
fn a_state_is_good_only_for_the_call_it_was_given_to() {
    let (_home, served) = served_with_fixture();
    let (state, key) = asked(&served);
    let answers = json!({&key: accepted()});
    let text_of = state.as_str().unwrap();
    for forged in [
        format!("{text_of}-TAMPERED"),
        text_of[..text_of.len() - 1].to_owned(),
        text_of.to_uppercase(),
        "pml1.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned(),
    ] {
        let refused = call(&served, &again(&json!(forged), &answers));
        assert!(refused.get("error").is_some(), "{forged}: {refused}");
    }
    let mut changed = again(&state, &answers);
    changed["arguments"]["message"] = json!("Who else?");
    assert_eq!(call(&served, &changed)["error"]["code"], -32602);
    let mut moved = again(&state, &answers);
    moved["name"] = json!("legacy__test_simple_text");
    moved["arguments"] = json!({});
    assert_eq!(call(&served, &moved)["error"]["code"], -32602);
    // None of these has used it up.
    let done = call(&served, &again(&state, &answers));
    assert_eq!(done["result"]["resultType"], "complete", "{done}");
}

#[test]
fn a_question_that_could_be_for_either_of_two_clients_reaches_neither() {
    let (_home, served) = served_with_fixture();
    let slow = json!({"name": "legacy__test_slow", "arguments": {"steps": 100_000, "interval_ms": 20}});
    let mut other = modern(&served, "tools/call", &slow);
    assert_eq!(other.event()["method"], "notifications/progress");
    // The server asks over the pipe that both calls share, and does not say for which of them.
    let refused = call(&served, &asking());
    assert_ne!(refused["result"]["resultType"], "input_required", "{refused}");
    assert!(refused.get("error").is_some() || refused["result"]["isError"] == true, "{refused}");
    for _ in 0..3 {
        assert_eq!(other.event()["method"], "notifications/progress", "the other client hears nothing of it");
    }
    drop(other);
    eventually("once the other call has ended, the question is placed again", || {
        call(&served, &asking())["result"]["resultType"] == "input_required"
    });
}

/// A POST to the API by someone who is let in.
fn analysed(served: &Served, body: &Value) -> (u16, Value) {
    let token = format!("Bearer {}", served.token);
    let headers = [
        ("Host", authority(served)),
        ("Authorization", token.as_str()),
        ("Content-Type", "application/json"),
    ];
    let reply = send(served, "POST", "/api/analyse", &headers, &body.to_string());
    (reply.status, serde_json::from_str(&reply.body()).expect("JSON"))
}

#[test]
fn a_program_is_analysed_and_not_run() {
    let (home, served) = served();
    let (status, answer) =
        analysed(&served, &json!({"code": "await mcp.fs.write({ path: 'x', content: args.text })"}));
    assert_eq!((status, &answer["structure"]["nodes"][0]["tool"]), (200, &json!("fs:write")));
    let (_, answer) = analysed(&served, &json!({"code": "return await mcp.fs.stat({ path: 'x' })"}));
    assert_eq!(answer["complaints"], json!([]));
    assert!(!home.path("x").exists(), "nothing is run");
    let dag = json!({"dagStructure": {"tasks": [{"id": "t", "tool": "time:now", "arguments": {}}]}});
    let (status, answer) = analysed(&served, &dag);
    assert_eq!((status, &answer["structure"]["nodes"][0]["tool"]), (200, &json!("time:now")));
    let (status, answer) = analysed(&served, &json!({"code": "const x = ;"}));
    assert_eq!((status, &answer["error"]["at"]["column"]), (422, &json!(11)));
    let (status, answer) = analysed(&served, &json!({"code": "1", "dagStructure": {}}));
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("INVALID_REQUEST")));
}

#[test]
fn nesting_without_end_is_refused_and_the_gateway_lives_on() {
    let (_home, served) = served();
    let kinds = [
        ("(", "1", ")"),
        ("[", "", "]"),
        ("{", "", "}"),
        ("!", "1", ""),
        ("- ", "1", ""),
        ("a ? b : ", "1", ""),
        ("x => ", "1", ""),
        ("if (a) ", ";", ""),
        ("`${", "1", "}`"),
        ("a = ", "1", ""),
        ("f(", "", ")"),
        ("typeof ", "1", ""),
        ("a.b.", "c", ""),
        ("(function () { ", "", " })()"),
        ("new ", "A", ""),
        ("a + ", "a", ""),
    ];
    for (open, middle, close) in kinds {
        let times = 250_000 / (open.len() + close.len());
        let code = format!("{}{middle}{}", open.repeat(times), close.repeat(times));
        let (status, answer) = analysed(&served, &json!({ "code": code }));
        assert_eq!(status, 422, "`{open}`: {answer}");
        assert!(answer["error"]["message"].is_string(), "`{open}`: {answer}");
    }
    assert_eq!(analysed(&served, &json!({"code": "return 1"})).0, 200, "still there");
}
