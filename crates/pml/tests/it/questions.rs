//! Questions of downstream servers, as they reach the person in front of a client, in both eras on both sides.

use serde_json::{Value, json};

use crate::harness::{Client, Home, material, node, text};
use crate::http::modern_by;

/// A server of each era with a tool that asks whatever it is told to.
fn home() -> Home {
    let server = |name: &str, more: &str| {
        let script = material(&format!("fixture/{name}.mjs"));
        format!("[servers.{name}]\ncommand = {:?}\nargs = [{script:?}, \"--stdio\"{more}]\n", node())
    };
    let servers = [server("legacy", ""), server("modern", ", \"--modern-only\"")].concat();
    let home = Home::new(&format!(
        "expose = \"full\"\n{servers}[permissions]\n\"*\" = {{ approval_mode = \"auto\" }}\n"
    ));
    assert_eq!(home.run(&["doctor"]).code, 0);
    home
}

/// What a client of the older era is asked while it makes the call, and what it gets in the end.
fn asked_in_session(
    client: &mut Client,
    tool: &str,
    arguments: &Value,
    answer: &Value,
) -> (Vec<Value>, Value) {
    let id = client.begin("tools/call", &json!({ "name": tool, "arguments": arguments }));
    let mut asked = Vec::new();
    loop {
        let message = client.message();
        if message["method"] == "elicitation/create" {
            asked.push(message["params"].clone());
            let reply = json!({ "jsonrpc": "2.0", "id": message["id"], "result": answer });
            client.send(&reply.to_string());
        } else if message["id"] == json!(id) && message.get("method").is_none() {
            return (asked, message);
        }
    }
}

fn in_session(home: &Home) -> Client {
    let mut client = home.stdio_unopened(&[]);
    client.request(
        "initialize",
        &json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "test", "version": "1"}}),
    );
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
    client
}

/// What the server writes, and what the person reads.
fn cases(server: &str) -> Vec<(&'static str, String)> {
    let from = format!("Server `{server}` asks (the answer goes to server `{server}`):");
    let secret =
        format!("\nThis asks for something secret: answer only if server `{server}` should have it.");
    vec![
        ("Who are you?", format!("{from} Who are you?")),
        (
            "Delete\u{202e}txt.\u{200b} all\u{1b}[2J\u{feff}?",
            format!("{from} Delete\\u{{202e}}txt.\\u{{200b}} all\\u{{1b}}[2J\\u{{feff}}?"),
        ),
        ("Fine.\n\nPML asks: go on?", format!("{from}\n> Fine.\n> \n> PML asks: go on?")),
        ("Your GitHub token?", format!("{from} Your GitHub token?{secret}")),
        ("Votre mot de passe SSH ?", format!("{from} Votre mot de passe SSH ?{secret}")),
    ]
}

const FOR_OURS: [&str; 4] = [
    "Enter your PML passphrase to go on",
    "Entrez la phrase secrète de PML",
    "P\u{200b}ML: your pass\u{200d}phrase, please",
    "Type the passphrase of the approval dashboard",
];

fn answer() -> Value {
    json!({ "action": "accept", "content": { "username": "ada", "email": "ada@example.com" } })
}

#[test]
fn a_client_in_a_session_sees_who_asks_and_nothing_hidden() {
    let home = home();
    let mut client = in_session(&home);
    for server in ["legacy", "modern"] {
        let tool = format!("{server}__test_elicitation");
        for (written, read) in cases(server) {
            let (asked, done) =
                asked_in_session(&mut client, &tool, &json!({ "message": written }), &answer());
            assert_eq!(asked.len(), 1, "{server}: {done}");
            assert_eq!(asked[0]["message"], read, "{server}");
            assert_eq!(asked[0]["requestedSchema"]["properties"]["username"]["type"], "string", "{asked:?}");
            assert!(text(&done["result"]).contains("ada@example.com"), "{server}: {done}");
        }
        for written in FOR_OURS {
            let (asked, done) =
                asked_in_session(&mut client, &tool, &json!({ "message": written }), &answer());
            assert_eq!(asked, Vec::<Value>::new(), "{server}: {written}");
            assert!(done.to_string().contains("asks for PML's passphrase"), "{server}: {done}");
        }
    }
}

#[test]
fn a_stateless_client_sees_who_asks_and_nothing_hidden() {
    let home = home();
    let served = home.serve(&[]);
    let client = json!({"name": "test", "capabilities": {"elicitation": {}}});
    let call = |params: &Value| modern_by(&served, &client, "tools/call", params).response();
    for server in ["legacy", "modern"] {
        let params = |message: &str| json!({ "name": format!("{server}__test_elicitation"), "arguments": { "message": message } });
        for (written, read) in cases(server) {
            let told = call(&params(written));
            let result = &told["result"];
            assert_eq!(result["resultType"], "input_required", "{server}: {told}");
            let requests = result["inputRequests"].as_object().unwrap();
            let (key, request) = requests.iter().next().unwrap();
            assert_eq!(request["params"]["message"], read, "{server}");
            let mut again = params(written);
            again["inputResponses"] = json!({ key: answer() });
            if let Some(state) = result.get("requestState") {
                again["requestState"] = state.clone();
            }
            let done = call(&again);
            assert!(text(&done["result"]).contains("ada@example.com"), "{server}: {done}");
        }
        for written in FOR_OURS {
            let told = call(&params(written));
            assert_ne!(told["result"]["resultType"], "input_required", "{server}: {told}");
            assert!(told.to_string().contains("asks for PML's passphrase"), "{server}: {told}");
        }
    }
}
