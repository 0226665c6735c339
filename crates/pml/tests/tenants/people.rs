//! People who sign in, each with their own passphrase.

use pml_model::{Principal, Role};
use pml_store::{BlockingStore, Store};
use serde_json::{Value, json};

use crate::door::{ALL, HttpReply, api, key, run, send};
use crate::harness::{Home, Served, eventually};

pub fn add(home: &Home, name: &str, role: Role, passphrase: &str) {
    let store: Store = BlockingStore::open(&home.path("pml.db")).unwrap().into();
    let adding = pml::people::add(&store, Principal(name.to_owned()), role, passphrase);
    tokio::runtime::Runtime::new().unwrap().block_on(adding).unwrap();
}

/// A session: its cookie and its second secret.
struct Session {
    cookie: String,
    csrf: String,
}

fn sign_in(served: &Served, name: &str, passphrase: &str) -> Result<Session, HttpReply> {
    let form = format!("name={name}&passphrase={}", passphrase.replace(' ', "+"));
    let reply = send(served, "POST /login", &[("Content-Type", "application/x-www-form-urlencoded")], &form);
    if reply.status != 200 {
        return Err(reply);
    }
    let cookie = reply.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    Ok(Session { cookie, csrf: reply.json()["csrf"].as_str().unwrap().to_owned() })
}

impl Session {
    fn ask(&self, served: &Served, method: &str, path: &str, body: &Value) -> HttpReply {
        let headers = [
            ("Cookie", self.cookie.as_str()),
            ("x-pml-csrf", self.csrf.as_str()),
            ("Content-Type", "application/json"),
        ];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        send(served, &format!("{method} {path}"), &headers, &body)
    }
}

#[test]
fn each_signs_in_as_themselves_answers_their_own_questions_and_is_named_in_the_log() {
    let home = Home::new(ALL);
    home.set_passphrase("correct horse");
    add(&home, "ann", Role::Approver, "horse of ann");
    add(&home, "bob", Role::Approver, "horse of bob");
    let agent = key(&home, "ann", Role::Agent);
    let served = home.serve(&[]);
    let code = "await mcp.fs.write({ path: 'note.txt', content: 'x' }); return 'saved';";
    let asked = run(&served, &agent, "save a note", code);
    let id = asked["workflowId"].as_str().unwrap();
    assert_eq!(sign_in(&served, "ann", "horse of bob").err().unwrap().status, 401);
    assert_eq!(sign_in(&served, "", "horse of ann").err().unwrap().status, 401);
    assert_eq!(sign_in(&served, "nobody", "horse of ann").err().unwrap().status, 401);
    let ann = sign_in(&served, "ann", "horse of ann").ok().unwrap();
    let bob = sign_in(&served, "bob", "horse of bob").ok().unwrap();
    let operator = sign_in(&served, "", "correct horse").ok().unwrap();
    for (session, who, role) in
        [(&ann, "ann", "approver"), (&bob, "bob", "approver"), (&operator, "local", "admin")]
    {
        let told = session.ask(&served, "GET", "/api/session", &Value::Null).json();
        assert_eq!((&told["principal"], &told["grantedRole"]), (&json!(who), &json!(role)), "{told}");
    }
    let open = ann.ask(&served, "GET", "/api/approvals", &Value::Null).json();
    let question = open["approvals"][0]["questionId"].as_str().unwrap();
    let path = format!("/api/approvals/{id}/{question}");
    for other in [&bob, &operator] {
        assert_eq!(other.ask(&served, "GET", "/api/approvals", &Value::Null).json()["approvals"], json!([]));
        assert_eq!(other.ask(&served, "POST", &path, &json!({"approved": true})).status, 404);
    }
    assert!(!home.path("note.txt").exists());
    let answered = ann.ask(&served, "POST", &path, &json!({"approved": true}));
    assert_eq!(answered.status, 200, "{}", answered.body);
    eventually("the end", || home.path("note.txt").exists());
    let audit = ann.ask(&served, "GET", "/api/audit", &Value::Null).body;
    assert!(audit.contains("ann at the dashboard"), "{audit}");
    assert!(!bob.ask(&served, "GET", "/api/audit", &Value::Null).body.contains("ann at the dashboard"));
    // The roles of people are those of the table.
    assert_eq!(ann.ask(&served, "POST", "/api/servers/fs/restart", &json!({})).status, 403);
    assert_eq!(ann.ask(&served, "GET", "/metrics", &Value::Null).status, 403);
    assert_eq!(operator.ask(&served, "GET", "/metrics", &Value::Null).status, 200);
}

#[test]
fn somebody_who_is_removed_or_has_another_passphrase_is_signed_out_and_their_keys_end() {
    let home = Home::new(ALL);
    home.set_passphrase("correct horse");
    add(&home, "ann", Role::Member, "horse of ann");
    let agent = key(&home, "ann", Role::Agent);
    let served = home.serve(&[]);
    let ann = sign_in(&served, "ann", "horse of ann").ok().unwrap();
    let status = |session: &Session| session.ask(&served, "GET", "/api/runs", &Value::Null).status;
    assert_eq!(status(&ann), 200);
    let changed = home.run_on_terminal(
        &["people", "passphrase", "ann"],
        &["horse of ann", "new horse of ann", "new horse of ann"],
    );
    assert_eq!(changed.code, 0, "{changed:?}");
    eventually("the end of the session", || status(&ann) == 401);
    let ann = sign_in(&served, "ann", "new horse of ann").ok().unwrap();
    assert_eq!(status(&ann), 200);
    let removed = home.run_on_terminal(&["people", "remove", "ann"], &["correct horse"]);
    assert!(removed.code == 0 && removed.stdout.contains("1 keys were revoked"), "{removed:?}");
    eventually("the end of the session", || status(&ann) == 401);
    eventually("the end of the key", || api(&served, &agent, "GET", "/api/runs", &Value::Null).status == 401);
    assert!(sign_in(&served, "ann", "new horse of ann").is_err());
}

#[test]
fn the_terminal_adds_and_lists_people() {
    let home = Home::new(ALL);
    home.set_passphrase("correct horse");
    let add = ["people", "add", "ann", "--role", "member"];
    let made = home.run_on_terminal(&add, &["correct horse", "horse of ann", "horse of ann"]);
    assert_eq!(made.code, 0, "{made:?}");
    let wrong =
        home.run_on_terminal(&["people", "add", "bob"], &["wrong horse", "horse of bob", "horse of bob"]);
    assert_eq!(wrong.code, 1, "{wrong:?}");
    let listed: Value = serde_json::from_str(&home.run(&["people", "list", "--json"]).stdout).unwrap();
    assert_eq!((&listed[0]["person"], &listed[0]["role"]), (&json!("ann"), &json!("member")));
    assert_eq!(listed.as_array().unwrap().len(), 1);
    for name in ["local", "Ann"] {
        let refused = home
            .run_on_terminal(&["people", "add", name], &["correct horse", "horse of ann", "horse of ann"]);
        assert_eq!(refused.code, 2, "{refused:?}");
    }
    for file in ["pml.db", "pml.db-wal"] {
        let bytes = std::fs::read(home.path(file)).unwrap_or_default();
        assert!(!bytes.windows(12).any(|window| window == b"horse of ann"), "{file}");
    }
    let audit = home.run(&["audit", "list", "--json"]).stdout;
    assert!(audit.contains("person added"), "{audit}");
}
