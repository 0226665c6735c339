//! Keys of clients: who can make one, what it is good for, and that a revoked one is good for nothing.

use pml_model::{KeyId, Principal};
use pml_store::BlockingStore;
use serde_json::{Value, json};

use crate::harness::{Home, Served, eventually, text};
use crate::http::{modern_as, post_as};

const PASSPHRASE: &str = "correct horse";

fn audit(home: &Home) -> Vec<(String, Value)> {
    assert_eq!(home.run(&["audit", "verify"]).code, 0);
    let rows: Vec<Value> = serde_json::from_str(&home.run(&["audit", "list", "--json"]).stdout).unwrap();
    rows.into_iter().map(|row| (row["kind"].as_str().unwrap().to_owned(), row["body"].clone())).collect()
}

fn listed(home: &Home) -> Vec<Value> {
    let list = home.run(&["keys", "list", "--json"]);
    assert_eq!(list.code, 0, "{list:?}");
    serde_json::from_str(&list.stdout).unwrap()
}

fn revoke(home: &Home, number: i64) {
    let store = BlockingStore::open(&home.path("pml.db")).unwrap();
    store.revoke_client_key(&Principal::local(), KeyId(number), 1).unwrap().unwrap();
}

/// The status of a request of the stateless era with this token.
fn status(served: &Served, token: &str) -> u16 {
    let who = json!({"name": "test", "capabilities": {}});
    modern_as(served, token, &who, "tools/list", &json!({})).status
}

/// Writes a file through the built-in `fs`, which has to be asked for.
fn write(path: &str) -> Value {
    json!({"name": "fs:write", "arguments": {"path": path, "content": "x"}})
}

fn call(served: &Served, token: &str, params: &Value) -> Value {
    let who = json!({"name": "test", "capabilities": {"elicitation": {}}});
    modern_as(served, token, &who, "tools/call", params).response()["result"].clone()
}

#[test]
fn only_a_person_at_a_terminal_makes_and_revokes_keys() {
    let home = Home::new("");
    let create = ["keys", "create", "--client", "desk", "--interactive"];
    let unset = home.run_on_terminal(&create, &["anything"]);
    assert_eq!(unset.code, 1, "{unset:?}");
    assert!(unset.stdout.contains("no passphrase is set"), "{unset:?}");
    home.set_passphrase(PASSPHRASE);
    let mut piped = home.command(&create);
    let pml = piped.get_program().to_owned();
    let args: Vec<_> = piped.get_args().map(ToOwned::to_owned).collect();
    piped = std::process::Command::new("setsid");
    piped.arg("--wait").arg(pml).args(args).env("PML_HOME", home.path("")).current_dir(home.path(""));
    let piped = piped.stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(piped.status.code(), Some(1), "{piped:?}");
    let wrong = home.run_on_terminal(&create, &["battery staple"]);
    assert_eq!(wrong.code, 1, "{wrong:?}");
    assert!(listed(&home).is_empty() && audit(&home).is_empty());

    let made = home.run_on_terminal(&create, &[PASSPHRASE]);
    assert_eq!(made.code, 0, "{made:?}");
    let key = made.stdout.lines().find(|line| line.starts_with("pmlk_")).unwrap().trim().to_owned();
    let keys = listed(&home);
    assert_eq!(
        (&keys[0]["key"], &keys[0]["client"], &keys[0]["interactive"]),
        (&json!(1), &json!("desk"), &json!(true))
    );
    assert_eq!((&keys[0]["asksItself"], &keys[0]["revokedAt"]), (&json!(false), &Value::Null));
    assert!(!home.run(&["keys", "list"]).stdout.contains(&key[..12]));
    for file in ["pml.db", "pml.db-wal"] {
        let bytes = std::fs::read(home.path(file)).unwrap_or_default();
        assert!(
            !bytes.windows(key.len()).any(|window| window == key.as_bytes()),
            "only its digest is in {file}"
        );
    }
    let wrong = home.run_on_terminal(&["keys", "revoke", "1"], &["battery staple"]);
    assert_eq!((wrong.code, &listed(&home)[0]["revokedAt"]), (1, &Value::Null), "{wrong:?}");
    let revoked = home.run_on_terminal(&["keys", "revoke", "1"], &[PASSPHRASE]);
    assert_eq!(revoked.code, 0, "{revoked:?}");
    assert!(listed(&home)[0]["revokedAt"].is_i64());
    let again = home.run_on_terminal(&["keys", "revoke", "1"], &[PASSPHRASE]);
    assert_eq!(again.code, 1, "{again:?}");
    let told = audit(&home);
    let kinds: Vec<&str> = told.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["key created", "key revoked"]);
    let body = json!({"key": 1, "client": "desk", "interactive": true, "asksItself": false,
        "rights": {"role": "approver"}});
    assert_eq!((&told[0].1, &told[1].1), (&body, &body));
}

#[test]
fn a_key_goes_into_a_file_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new("");
    home.set_passphrase(PASSPHRASE);
    let create = ["keys", "create", "--client", "desk", "--asks-itself", "--key-file", "desk.key"];
    let made = home.run_on_terminal(&create, &[PASSPHRASE]);
    assert_eq!(made.code, 0, "{made:?}");
    assert!(!made.stdout.contains("pmlk_"), "{made:?}");
    let path = home.path("desk.key");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let key = std::fs::read_to_string(&path).unwrap();
    assert_eq!(status(&home.serve(&[]), key.trim()), 200);
    let again = home.run_on_terminal(&create, &[PASSPHRASE]);
    assert_eq!(again.code, 2, "{again:?}");
    assert_eq!((std::fs::read_to_string(&path).unwrap(), listed(&home).len()), (key, 1));

    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let open = home.run(&["stdio", "--key-file", "desk.key"]);
    assert_eq!(open.code, 2, "{open:?}");
    assert!(open.stderr.contains("other users can read"), "{open:?}");
    std::fs::write(home.path("other.key"), "hello").unwrap();
    std::fs::set_permissions(home.path("other.key"), std::fs::Permissions::from_mode(0o600)).unwrap();
    for file in ["other.key", "absent.key"] {
        assert_eq!(home.run(&["stdio", "--key-file", file]).code, 2, "{file}");
    }
}

#[test]
fn a_client_with_a_key_that_asks_itself_calls_at_once_and_is_audited_as_such() {
    let home = Home::new("[approvals]\nby = \"human\"\n");
    let key = home.key("editor", false, true);
    let served = home.serve(&[]);
    let done = call(&served, &key, &write("by-http"));
    assert_ne!(done["isError"], true, "{done}");
    let mut stdio = home.stdio(&["--key-file", "editor.key"]);
    stdio.request("tools/call", &write("by-stdio"));
    assert!(home.path("by-http").exists() && home.path("by-stdio").exists());
    // It is about the tools it calls by name: what its programs do is asked for.
    let code =
        json!({"type": "code", "code": "return await mcp.fs.write({ path: 'by-program', content: 'x' })"});
    let program = stdio.call("pml_execute", &json!({"intent": "x", "implementation": code}));
    assert_eq!(program["structuredContent"]["status"], "approval_required", "{program}");
    // And it is about the key, not about the name.
    let asked = call(&served, &served.token, &write("by-token"));
    assert!(text(&asked).starts_with("approval_required"), "{asked}");
    assert!(!home.path("by-program").exists() && !home.path("by-token").exists());
    let calls = || -> Vec<Value> {
        audit(&home).into_iter().filter(|(kind, _)| kind == "direct call").map(|(_, body)| body).collect()
    };
    eventually("both calls are in the log", || calls().len() == 2);
    for call in calls() {
        assert_eq!((&call["client"], &call["key"]), (&json!("editor"), &json!(1)), "{call}");
        assert_eq!((&call["tool"], &call["decision"]), (&json!("fs:write"), &json!("asked by the client")));
        assert!(call["because"].as_str().unwrap().contains("this client's key"), "{call}");
    }
}

#[test]
fn a_revoked_key_is_good_for_nothing_in_running_gateways_too() {
    let home = Home::new("[approvals]\nby = \"human\"\n");
    let (key, other) = (home.key("editor", true, true), home.key("desk", true, true));
    let served = home.serve(&[]);
    let mut stdio = home.stdio(&["--key-file", "editor.key"]);
    assert_eq!((status(&served, &key), status(&served, &other)), (200, 200));
    assert_ne!(stdio.request("tools/call", &write("before"))["isError"], true);
    revoke(&home, 1);
    eventually("the key is refused over HTTP", || status(&served, &key) == 401);
    assert_eq!(status(&served, &other), 200, "another key counts on");
    eventually("the stdio client is refused", || {
        let reply = stdio.request("tools/call", &write("after"));
        text(&reply).contains("key 1 was revoked or has expired")
    });
    let refused = home.run(&["stdio", "--key-file", "editor.key"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("was revoked"), "{refused:?}");
}

#[test]
fn a_key_that_is_made_while_a_gateway_runs_is_known_to_it() {
    let home = Home::new("");
    let served = home.serve(&[]);
    let key = home.key("late", false, false);
    eventually("the key is known", || status(&served, &key) == 200);
    for wrong in [key[..key.len() - 1].to_owned(), format!("{key}x"), "pmlk_".to_owned()] {
        assert_eq!(status(&served, &wrong), 401, "{wrong}");
    }
}

#[test]
fn a_session_belongs_to_the_key_it_was_opened_with() {
    let home = Home::new("");
    let (key, other) = (home.key("desk", true, false), home.key("editor", false, false));
    let served = home.serve(&[]);
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string();
    let session = post_as(&served, &key, &[], &body).header("mcp-session-id").unwrap().to_owned();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).to_string();
    // The answer to a question that the client's user was asked.
    let answer =
        json!({"jsonrpc": "2.0", "id": 1, "result": {"action": "accept", "content": {"decision": "allow"}}});
    let head = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", "2025-11-25")];
    for (token, expected) in [(&key, 200), (&other, 404), (&served.token, 404)] {
        assert_eq!(post_as(&served, token, &head, &list).status, expected);
    }
    for token in [&other, &served.token] {
        assert_eq!(post_as(&served, token, &head, &answer.to_string()).status, 404);
    }
}

#[test]
fn the_name_of_a_key_is_the_name_of_its_client() {
    let home = Home::new("[clients.desk]\nexpose = \"full\"\n");
    home.key("desk", false, false);
    let names = |client: &mut crate::harness::Client| client.request("tools/list", &json!({})).to_string();
    assert!(names(&mut home.stdio(&["--key-file", "desk.key"])).contains("fs__read"));
    assert!(!names(&mut home.stdio(&[])).contains("fs__read"));
}

#[test]
fn a_config_that_calls_a_name_interactive_is_told_to_make_a_key() {
    let home = Home::new("[clients.desk]\ninteractive = true\nexpose = \"full\"\n");
    let doctor = home.run(&["doctor"]);
    assert_eq!(doctor.code, 0, "{doctor:?}");
    for words in [
        "pml.toml:2:",
        "`clients.desk.interactive` counts for nothing",
        "pml keys create --client desk --interactive",
    ] {
        assert!(doctor.stdout.contains(words), "{words}: {}", doctor.stdout);
    }
}
