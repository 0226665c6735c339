//! What passes through the gateway comes out as it went in, byte for byte.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use crate::faulty::{self, Ledger, Remote};
use crate::harness::{Client, Home, Served};

/// Arguments that lose something in every careless parser.
const ARGUMENTS: &[&str] = &[
    r#"{"huge":10e110,"digits":1234567890123456789012345678901234567890,"float":1.0,"zero":-0,"minus":-0.0}"#,
    r#"{"exact":0.1000,"plus":1E+2,"small":5e-324,"long":3.14159265358979323846264338327950288}"#,
    r#"{"zebra":1,"apple":2,"mango":{"y":[],"x":{},"10":1,"9":2}}"#,
    r#"{"escaped":"\u00e9\ud83d\ude00\/\u0041\t","plain":"é😀/A","lone":"\u0000"}"#,
    r#"{ "space" : [ 1 , 2 ,  {"a" :null} ] , "__proto__": {"x":1}, "constructor":"c", "":"empty" }"#,
    "{}",
];

#[track_caller]
fn assert_arrived(home: &Home, server: &str, sent: &[&str]) {
    let calls = Ledger::of(home, server).events("call");
    let arrived: Vec<&str> = calls.iter().map(|call| call["arguments"].as_str().unwrap()).collect();
    assert_eq!(arrived, sent);
}

/// Sends a call as it is written here and gives the response line as it came.
fn call_raw(client: &mut Client, tool: &str, arguments: &str) -> String {
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","id":"raw","method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    ));
    loop {
        let line = client.line();
        if line.contains(r#""id":"raw""#) {
            return line;
        }
    }
}

#[test]
fn arguments_and_results_keep_their_bytes_over_standard_streams() {
    for era in ["legacy", "modern"] {
        let home = Home::new("");
        home.configure(&faulty::allowed(&home, "s", &["--era", era], ""));
        let mut client = home.stdio(&[]);
        for arguments in ARGUMENTS {
            let line = call_raw(&mut client, "s:echo", arguments);
            assert!(line.contains(&format!(r#""structuredContent":{arguments}"#)), "{line}");
        }
        assert_arrived(&home, "s", ARGUMENTS);
    }
}

#[test]
fn arguments_and_results_keep_their_bytes_to_and_from_remote_servers() {
    for era in ["legacy", "modern"] {
        let home = Home::new("");
        let remote = Remote::start(&home, "far", &["--era", era]);
        home.configure(&remote.allowed("far", ""));
        let mut client = home.stdio(&[]);
        for arguments in ARGUMENTS {
            let line = call_raw(&mut client, "far:echo", arguments);
            assert!(line.contains(&format!(r#""structuredContent":{arguments}"#)), "{line}");
        }
        assert_arrived(&home, "far", ARGUMENTS);
    }
}

/// Posts a body as it is written here; gives status line and headers, and the body.
fn post(served: &Served, headers: &str, body: &str) -> (String, String) {
    let address = served.url.trim_start_matches("http://").trim_end_matches("/mcp");
    let mut socket = std::net::TcpStream::connect(address).unwrap();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        served.token,
        body.len()
    );
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

#[test]
fn arguments_and_results_keep_their_bytes_over_http_with_a_session() {
    let home = faulty::home(&["s"]);
    let served = home.serve(&[]);
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let (head, _) = post(&served, "", &hello.to_string());
    let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
    for arguments in ARGUMENTS {
        let headers = format!("Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"s:echo","arguments":{arguments}}}}}"#
        );
        let (_, answer) = post(&served, &headers, &body);
        assert!(answer.contains(&format!(r#""structuredContent":{arguments}"#)), "{answer}");
    }
    assert_arrived(&home, "s", ARGUMENTS);
}

#[test]
fn arguments_and_results_keep_their_bytes_over_stateless_http() {
    let home = faulty::home(&["s"]);
    let served = home.serve(&[]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    });
    let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: s:echo\r\n";
    for arguments in ARGUMENTS {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"s:echo","arguments":{arguments},"_meta":{meta}}}}}"#
        );
        let (_, answer) = post(&served, headers, &body);
        assert!(answer.contains(&format!(r#""structuredContent":{arguments}"#)), "{answer}");
    }
    // Line breaks between tokens cannot be kept on a stream of lines; nothing else may change.
    let spread = "{\r\n\t\"a\": [\n1.0,\n2\n]\n}";
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"s:echo","arguments":{spread},"_meta":{meta}}}}}"#
    );
    post(&served, headers, &body);
    let flat = spread.replace(['\r', '\n'], " ");
    assert_arrived(&home, "s", &[ARGUMENTS, &[flat.as_str()]].concat());
}

#[test]
fn a_large_result_comes_back_as_it_was_written() {
    let home = faulty::home(&["s"]);
    let mut client = home.stdio(&[]);
    let count = 50_000;
    let rows: Vec<String> =
        (0..count).map(|n| format!(r#"{{"n":{n},"b":1.0,"a":-0,"e":10e110,"s":"\u00e9 é"}}"#)).collect();
    let expected =
        format!(r#""result":{{"content":[],"structuredContent":{{"rows":[{}]}}}}"#, rows.join(","));
    let line = call_raw(&mut client, "s:big", &json!({"count": count}).to_string());
    assert!(line.contains(&expected), "{}…", &line[..300]);
}

#[test]
fn definitions_keep_the_members_nobody_here_knows() {
    let home = faulty::home(&["s"]);
    let mut client = home.stdio(&["--expose", "full"]);
    client.call("s:ok", &json!({}));
    let listed = client.request("tools/list", &json!({}));
    let tool =
        listed["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "s__decorated").unwrap();
    let expected: Value = json!({
        "name": "s__decorated",
        "description": "the tool decorated",
        "inputSchema": {"type": "object"},
        "title": "Decorated",
        "icons": [{"src": "https://example.com/a.png", "mimeType": "image/png", "sizes": ["48x48"]}],
        "_meta": {"example.com/vendor": {"deep": [1, 2.5, null]}},
        "x-vendor": {"kept": true},
        "execution": {"taskSupport": "forbidden"},
    });
    assert_eq!(tool, &expected);
}
