//! The scope, the expiry and the rotation of keys.

use pml_model::{KeyId, KeyRights, Role, ToolScope};
use pml_store::BlockingStore;
use serde_json::{Value, json};

use crate::door::{ALL, api, call, key, request, run, run_with};
use crate::harness::{Home, eventually};

fn scoped(home: &Home, tools: &[&str]) -> String {
    let tools = ToolScope::parse(tools.iter().map(|&tool| tool.to_owned())).unwrap();
    home.key_of("ann", request("scoped", KeyRights { tools, ..KeyRights::of_role(Role::Approver) }))
}

#[test]
fn a_key_reaches_the_tools_of_its_scope_by_no_way_but_those() {
    let home = Home::new(ALL);
    std::fs::write(home.path("note.txt"), "hello").unwrap();
    let (narrow, whole) = (scoped(&home, &["time:*", "fs:stat"]), key(&home, "ann", Role::Approver));
    let served = home.serve(&["--expose", "full"]);
    let read = "return (await mcp.fs.read({ path: 'note.txt' })).content;";
    let refused = run(&served, &narrow, "read the note", read);
    assert_eq!(refused["error"]["code"], "DENIED", "{refused}");
    assert_eq!(run(&served, &whole, "read the note", read)["result"], "hello");
    // The capability that the other key taught is there, and what it calls is out of reach.
    let recalled = call(
        &served,
        &narrow,
        "pml_execute",
        &json!({"intent": "read the note", "options": {"cache": false}}),
    );
    assert_ne!(recalled["structuredContent"]["result"], "hello", "{recalled}");
    let stat = "return (await mcp.fs.stat({ path: 'note.txt' })).exists;";
    assert_eq!(run(&served, &narrow, "is there a note", stat)["result"], true);
    // A program whose calls are not known beforehand sees nothing else either.
    let opaque = "const seen = []; for (const server of Object.keys(mcp)) for (const tool of Object.keys(mcp[server])) \
                  seen.push(server + ':' + tool); return seen;";
    let seen = run(&served, &narrow, "what is there", opaque);
    let seen: Vec<&str> = seen["result"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(
        seen.contains(&"fs:stat") && seen.iter().all(|tool| tool.starts_with("time:") || *tool == "fs:stat"),
        "{seen:?}"
    );
    let direct = call(&served, &narrow, "fs:read", &json!({"path": "note.txt"}));
    assert!(direct["isError"] == true && direct.to_string().contains("not exposed"), "{direct}");
    let found = call(&served, &narrow, "pml_discover", &json!({"intent": "read a file", "limit": 20}));
    assert!(!found.to_string().contains("fs:read"), "{found}");
    let found =
        api(&served, &narrow, "POST", "/api/discover", &json!({"intent": "read a file", "limit": 20}));
    assert!(!found.body.contains("fs:read"), "{}", found.body);
    let dry = api(&served, &narrow, "POST", "/api/dry-run", &json!({"code": read, "intent": "read"}));
    assert_eq!((dry.status, dry.json()["error"]["code"].clone()), (403, json!("DENIED")));
}

#[test]
fn an_expired_key_is_turned_away() {
    let home = Home::new(ALL);
    let expires_at = Some(1);
    let over =
        home.key_of("ann", request("over", KeyRights { expires_at, ..KeyRights::of_role(Role::Admin) }));
    let served = home.serve(&[]);
    assert_eq!(api(&served, &over, "GET", "/api/runs", &Value::Null).status, 401);
}

#[test]
fn a_run_whose_key_is_revoked_ends_at_its_next_call_and_says_why() {
    let home = Home::new(ALL);
    let agent = key(&home, "ann", Role::Agent);
    let reader = key(&home, "ann", Role::Agent);
    let served = home.serve(&[]);
    let code = "for (let i = 0; i < 600; i++) { await mcp.time.now({}); await new Promise(done => setTimeout(done, 100)); } \
                return 'to the end';";
    let begun = run_with(&served, &agent, "take long", code, &json!({"cache": false, "detach": true}));
    let id = begun["workflowId"].as_str().unwrap().to_owned();
    let path = format!("/api/runs/{id}");
    eventually("a call", || {
        api(&served, &reader, "GET", &format!("{path}/calls"), &Value::Null).body.contains("time:now")
    });
    let number = BlockingStore::open(&home.path("pml.db")).unwrap();
    number.revoke_client_key(&pml_model::Principal("ann".to_owned()), KeyId(1), 1).unwrap().unwrap();
    eventually("the end", || api(&served, &reader, "GET", &path, &Value::Null).json()["status"] == "failed");
    let run = api(&served, &reader, "GET", &path, &Value::Null).json();
    assert_eq!(run["error"]["code"], "UNAUTHORIZED", "{run}");
    assert!(run["error"]["message"].as_str().unwrap().contains("key 1 was revoked or has expired"), "{run}");
    assert_eq!(api(&served, &agent, "GET", &path, &Value::Null).status, 401);
}

#[test]
fn the_terminal_makes_keys_for_people_with_roles_and_replaces_them() {
    let home = Home::new(ALL);
    home.set_passphrase("correct horse");
    let create = [
        "keys",
        "create",
        "--json",
        "--client",
        "ci",
        "--for",
        "ann",
        "--role",
        "agent",
        "--servers",
        "time",
        "--tools",
        "fs:read",
        "--expires",
        "30d",
        "--runs-at-once",
        "2",
        "--calls-per-minute",
        "60",
    ];
    let made = home.run_on_terminal(&create, &["correct horse"]);
    assert_eq!(made.code, 0, "{made:?}");
    let secret = |told: &str| {
        let start = told.find("pmlk_").unwrap();
        told[start..start + 48].to_owned()
    };
    let first = secret(&made.stdout);
    let served = home.serve(&[]);
    let session = api(&served, &first, "GET", "/api/session", &Value::Null).json();
    assert_eq!(
        (&session["principal"], &session["grantedRole"]),
        (&json!("ann"), &json!("agent")),
        "{session}"
    );
    let rotated = home.run_on_terminal(&["keys", "rotate", "1"], &["correct horse"]);
    assert_eq!(rotated.code, 0, "{rotated:?}");
    let second = secret(&rotated.stdout);
    eventually("the change", || api(&served, &first, "GET", "/api/session", &Value::Null).status == 401);
    assert_eq!(api(&served, &second, "GET", "/api/session", &Value::Null).json()["principal"], "ann");
    eventually("the use", || home.run(&["keys", "list", "--json"]).stdout.contains("\"lastUsedAt\": 1"));
    drop(served);
    let listed: Value = serde_json::from_str(&home.run(&["keys", "list", "--json"]).stdout).unwrap();
    let key = &listed[0];
    assert_eq!((&key["key"], &key["for"], &key["role"]), (&json!(2), &json!("ann"), &json!("agent")));
    assert_eq!(key["tools"], json!(["time:*", "fs:read"]));
    assert_eq!(key["budget"], json!({"runsAtOnce": 2, "callsPerMinute": 60}));
    assert!(key["use"]["lastUsedAt"].is_i64() && key["expiresAt"].is_i64(), "{key}");
    assert!(listed[1]["revokedAt"].is_i64(), "{listed}");
    for (wrong, why) in [
        (["--for", "Ann"], "no name for a person"),
        (["--tools", "fs"], "names no tools"),
        (["--expires", "soon"], "no time"),
        (["--role", "root"], "invalid value"),
    ] {
        let refused = home.run(&[&["keys", "create", "--client", "x"][..], &wrong[..]].concat());
        assert!(refused.code == 2 && refused.stderr.contains(why), "{refused:?}");
    }
}
