//! Servers of the HTTP transport of 2024-11-05, against one made with an official SDK.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{Client, Home, eventually, material, node, text};

/// The fixture server.
struct Older {
    child: Child,
    url: String,
}

impl Older {
    fn start(options: &[&str]) -> Older {
        let mut command = Command::new(node());
        command.arg(material("fixture/older.mjs")).args(options).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Older { child, url: url.trim().to_owned() }
    }

    fn home(&self, settings: &str) -> Home {
        let url = &self.url;
        Home::new(&format!(
            "[servers.old]\nurl = \"{url}\"\n{settings}\n[permissions]\n\"*\" = {{ approval_mode = \"auto\" }}\n"
        ))
    }
}

impl Drop for Older {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn echo(client: &mut Client, given: &str) -> String {
    let told = client.call("old:echo", &json!({ "text": given }));
    text(&told).to_owned()
}

#[test]
fn an_older_server_is_used_like_any_other() {
    let server = Older::start(&["--token", "s3cret"]);
    let home = server.home("bearer = \"s3cret\"\ndefinitions = \"follow\"\ncall_timeout = \"2s\"");
    let mut client = home.stdio(&[]);
    assert_eq!(echo(&mut client, "one\ntwo"), "one\ntwo");
    // Answers come back to whom they belong to, whatever their order.
    let ids: Vec<u64> = (0..20)
        .map(|n| {
            client
                .begin("tools/call", &json!({ "name": "old:echo", "arguments": { "text": format!("{n}") } }))
        })
        .collect();
    for (n, id) in ids.into_iter().enumerate() {
        assert_eq!(text(&client.response_or_aside(id)["result"]), n.to_string());
    }
    let done = client.call("old:tick", &json!({ "times": 14, "ms": 250 }));
    assert_eq!(text(&done), "ticked", "{done}");
    client.call("old:grow", &json!({}));
    eventually("the new tool is known", || home.run(&["list", "old"]).stdout.contains("grown"));
}

#[test]
fn an_older_server_may_ask_and_may_end_its_stream() {
    let server = Older::start(&[]);
    let home = server.home("");
    let mut client = home.stdio_unopened(&[]);
    let who = json!({ "name": "test", "version": "1" });
    let opening =
        json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} }, "clientInfo": who });
    client.request("initialize", &opening);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
    let ask = json!({ "name": "old:ask", "arguments": { "message": "Which colour?" } });
    let id = client.begin("tools/call", &ask);
    let asked = loop {
        let message = client.message();
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    let answer = json!({ "action": "accept", "content": { "colour": "green" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer }).to_string());
    let told = client.response(id);
    assert_eq!(serde_json::from_str::<Value>(text(&told["result"])).unwrap(), answer);

    let sessions =
        |client: &mut Client| text(&client.call("old:sessions", &json!({}))).parse::<u32>().unwrap();
    let before = sessions(&mut client);
    let cut = client.call("old:cut", &json!({}));
    assert!(cut.to_string().contains("DOWNSTREAM_DIED"), "{cut}");
    assert_eq!(sessions(&mut client), before + 1);
}

#[test]
fn an_older_server_cannot_have_messages_sent_elsewhere() {
    let server = Older::start(&["--endpoint", "http://127.0.0.1:9/steal"]);
    let home = Home::new(&format!("[servers.old]\nurl = \"{}\"\nbearer = \"s3cret\"\n", server.url));
    let mut client = home.stdio(&[]);
    let refused = client.call("old:echo", &json!({ "text": "x" })).to_string();
    assert!(refused.contains("SERVER_DOWN") && refused.contains("405"), "{refused}");
}

#[test]
fn an_imported_entry_of_type_sse_works() {
    let server = Older::start(&[]);
    let home = Home::new("");
    let file = home.path("home/.claude.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let entry = json!({ "mcpServers": { "old": { "type": "sse", "url": server.url } } });
    std::fs::write(&file, entry.to_string()).unwrap();
    let done = home.run(&["init", "--yes"]);
    assert_eq!(done.code, 0, "{done:?}");
    let call = home.run(&["call", "old:echo", "--yes", "--args", r#"{"text":"hello"}"#]);
    assert!(call.code == 0 && call.stdout.contains("hello"), "{call:?}");
}
