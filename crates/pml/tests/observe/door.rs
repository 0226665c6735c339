//! Requests to `pml serve`, and a reader of its events.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use pml_model::Principal;
use serde_json::{Value, json};

use crate::harness::{Home, PATIENCE, Served};

/// All built-in tools may be called; files are those of the home.
pub const ALL: &str = "[permissions]\n\"*\" = { approval_mode = \"auto\" }\n[builtin.fs]\nroot = \".\"\n";

pub fn authority(served: &Served) -> &str {
    served.url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp")).unwrap()
}

/// A request whose reply is read until the server closes the connection: status, head and body.
pub fn send(served: &Served, request: &str, headers: &[(&str, &str)], body: &str) -> (u16, String, String) {
    let mut stream = begin(served, request, headers, body);
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    (status(head), head.to_owned(), body.to_owned())
}

/// HTTP 1.0: the body comes as it is, not in chunks.
fn begin(served: &Served, request: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
    let mut head = format!("{request} HTTP/1.0\r\nHost: {}\r\n", authority(served));
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    let mut stream = TcpStream::connect(authority(served)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes()).unwrap();
    stream
}

fn status(head: &str) -> u16 {
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

pub fn get(served: &Served, path: &str) -> (u16, String) {
    let token = format!("Bearer {}", served.token);
    let (status, _, body) = send(served, &format!("GET {path}"), &[("Authorization", &token)], "");
    (status, body)
}

/// Calls a tool of the gateway over HTTP and gives the JSON-RPC result.
#[track_caller]
pub fn call_with(served: &Served, tool: &str, arguments: &Value, meta: &Value) -> Value {
    let mut params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    for (key, value) in [
        ("io.modelcontextprotocol/protocolVersion", json!("2026-07-28")),
        ("io.modelcontextprotocol/clientInfo", json!({"name": "test", "version": "1"})),
        ("io.modelcontextprotocol/clientCapabilities", json!({})),
    ] {
        params["_meta"][key] = value;
    }
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let token = format!("Bearer {}", served.token);
    let headers = [
        ("Authorization", token.as_str()),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", tool),
    ];
    let (status, head, body) = send(served, "POST /mcp", &headers, &body.to_string());
    assert_eq!(status, 200, "{body}");
    let answer: Value = match head.contains("text/event-stream") {
        true => {
            let messages = body.lines().filter_map(|line| line.strip_prefix("data: "));
            let mut messages = messages.map(|data| serde_json::from_str::<Value>(data).unwrap());
            messages.next_back().unwrap()
        }
        false => serde_json::from_str(&body).unwrap(),
    };
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].clone()
}

#[track_caller]
pub fn call(served: &Served, tool: &str, arguments: &Value) -> Value {
    call_with(served, tool, arguments, &json!({}))
}

/// Runs a program and gives the structured reply.
#[track_caller]
pub fn run(served: &Served, intent: &str, code: &str) -> Value {
    let implementation = json!({"type": "code", "code": code});
    let arguments = json!({"intent": intent, "implementation": implementation, "options": {"cache": false}});
    call(served, "pml_execute", &arguments)["structuredContent"].clone()
}

/// A key of somebody else than the operator.
pub fn key_of(home: &Home, principal: &str) -> String {
    let store = pml_store::BlockingStore::open(&home.path("pml.db")).unwrap().into();
    let wanted = pml::keys::KeyRequest::named("theirs");
    let making = pml::keys::create(&store, Principal(principal.to_owned()), wanted);
    let (key, _) = tokio::runtime::Runtime::new().unwrap().block_on(making).unwrap();
    key.reveal().to_owned()
}

/// An event as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub name: String,
    pub id: String,
    pub data: Value,
}

impl Event {
    pub fn run(&self) -> &str {
        self.data["run"].as_str().unwrap_or_default()
    }
}

/// A reader of `/events`, connected.
pub struct Reader {
    stream: BufReader<TcpStream>,
}

impl Reader {
    #[track_caller]
    pub fn open(served: &Served, path: &str, headers: &[(&str, &str)]) -> Reader {
        let token = format!("Bearer {}", served.token);
        Reader::open_as(served, &token, path, headers)
    }

    #[track_caller]
    pub fn open_as(served: &Served, authorization: &str, path: &str, headers: &[(&str, &str)]) -> Reader {
        let headers: Vec<(&str, &str)> =
            headers.iter().copied().chain([("Authorization", authorization)]).collect();
        let mut stream = BufReader::new(begin(served, &format!("GET {path}"), &headers, ""));
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(stream.read_line(&mut head).unwrap(), 0, "{head}");
        }
        assert_eq!(status(&head), 200, "{head}");
        assert!(head.to_ascii_lowercase().contains("content-type: text/event-stream"), "{head}");
        let mut reader = Reader { stream };
        assert_eq!(reader.block().unwrap(), "retry: 1000\n: connected\n");
        reader
    }

    /// The next lines up to an empty one; `None` at the end of the stream.
    pub fn block(&mut self) -> Option<String> {
        let mut block = String::new();
        while !block.ends_with("\n\n") {
            if self.stream.read_line(&mut block).ok()? == 0 {
                return None;
            }
        }
        block.pop();
        Some(block)
    }

    /// The next event.
    #[track_caller]
    pub fn next(&mut self) -> Event {
        let until = Instant::now() + PATIENCE;
        loop {
            let block = self.block().expect("the stream goes on");
            assert!(Instant::now() < until, "nothing comes but heartbeats");
            let field = |name: &str| {
                block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap_or_default()
            };
            if !field("event").is_empty() {
                let data = serde_json::from_str(field("data")).unwrap();
                return Event { name: field("event").to_owned(), id: field("id").to_owned(), data };
            }
        }
    }

    /// The events up to one of this name, without progress.
    #[track_caller]
    pub fn until(&mut self, name: &str) -> Vec<Event> {
        let (mut events, until) = (Vec::new(), Instant::now() + PATIENCE);
        loop {
            assert!(Instant::now() < until, "no `{name}` in {:?}", names(&events));
            let event = self.next();
            let last = event.name == name;
            if event.name != "progress" {
                events.push(event);
            }
            if last {
                return events;
            }
        }
    }

    /// Whether nothing comes for a while.
    pub fn is_silent(&mut self) -> bool {
        self.stream.get_ref().set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let silent = self.block().is_none();
        self.stream.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
        silent
    }
}

pub fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}
