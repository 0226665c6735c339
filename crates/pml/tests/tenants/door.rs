//! Requests to `pml serve` by holders of keys.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use pml::keys::KeyRequest;
use pml_model::{KeyBudget, KeyRights, Role};
use serde_json::{Value, json};

use crate::harness::{Home, PATIENCE, Served};

/// All built-in tools may be called, except `fs:write`, which asks; files are those of the home.
pub const ALL: &str = "[permissions]\n\"*\" = { approval_mode = \"auto\" }\n\"fs:write\" = { approval_mode = \"hil\" }\n\
                       [builtin.fs]\nroot = \".\"\n";

pub struct HttpReply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl HttpReply {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{}: {}", self.status, self.body))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }
}

pub fn authority(served: &Served) -> &str {
    served.url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp")).unwrap()
}

/// One request. HTTP 1.0: the body comes as it is, not in chunks.
#[track_caller]
pub fn send(served: &Served, request: &str, headers: &[(&str, &str)], body: &str) -> HttpReply {
    let mut stream = begin(served, request, headers, body);
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    parse(&reply)
}

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

#[track_caller]
fn parse(reply: &[u8]) -> HttpReply {
    let reply = String::from_utf8_lossy(reply).into_owned();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap_or((&reply, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    HttpReply { status: status.unwrap(), head: head.to_owned(), body: body.to_owned() }
}

/// The status of a request whose reply may be an endless stream.
#[track_caller]
pub fn status_of(served: &Served, key: &str, method: &str, path: &str, body: &str) -> (u16, String) {
    let bearer = format!("Bearer {key}");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    let mut stream = begin(served, &format!("{method} {path}"), &headers, body);
    let mut reply = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let got = stream.read(&mut piece).unwrap();
        reply.extend_from_slice(&piece[..got]);
        let streams = String::from_utf8_lossy(&reply).contains("text/event-stream");
        let head_is_there = reply.windows(4).any(|four| four == b"\r\n\r\n");
        if got == 0 || (head_is_there && streams) {
            let reply = parse(&reply);
            return (reply.status, reply.body);
        }
    }
}

/// A request to the API with a key.
#[track_caller]
pub fn api(served: &Served, key: &str, method: &str, path: &str, body: &Value) -> HttpReply {
    let bearer = format!("Bearer {key}");
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    send(served, &format!("{method} {path}"), &headers, &body)
}

/// Calls a tool of the gateway and gives the JSON-RPC result.
#[track_caller]
pub fn call(served: &Served, key: &str, tool: &str, arguments: &Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let bearer = format!("Bearer {key}");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", tool),
    ];
    let reply = send(served, "POST /mcp", &headers, &body.to_string());
    assert_eq!(reply.status, 200, "{}", reply.body);
    let answer: Value = match reply.head.contains("text/event-stream") {
        true => {
            let messages = reply.body.lines().filter_map(|line| line.strip_prefix("data: "));
            messages.map(|data| serde_json::from_str::<Value>(data).unwrap()).next_back().unwrap()
        }
        false => reply.json(),
    };
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].clone()
}

/// Runs a program and gives the structured reply.
#[track_caller]
pub fn run(served: &Served, key: &str, intent: &str, code: &str) -> Value {
    run_with(served, key, intent, code, &json!({"cache": false}))
}

#[track_caller]
pub fn run_with(served: &Served, key: &str, intent: &str, code: &str, options: &Value) -> Value {
    let implementation = json!({"type": "code", "code": code});
    let arguments = json!({"intent": intent, "implementation": implementation, "options": options});
    call(served, key, "pml_execute", &arguments)["structuredContent"].clone()
}

pub fn key(home: &Home, person: &str, role: Role) -> String {
    home.key_of(person, request(&format!("{person}-{role}"), KeyRights::of_role(role)))
}

pub fn key_with_budget(home: &Home, person: &str, budget: KeyBudget) -> String {
    home.key_of(person, request(person, KeyRights { budget, ..KeyRights::of_role(Role::Agent) }))
}

pub fn request(client: &str, rights: KeyRights) -> KeyRequest {
    KeyRequest { rights, ..KeyRequest::named(client) }
}
