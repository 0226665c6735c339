//! `examples/team` as processes: two people at gateways on one database, behind a proxy.

use pml::keys::KeyRequest;
use pml_model::{KeyRights, Role};
use serde_json::{Value, json};

use crate::harness::eventually;
use crate::ledger::Ledger;
use crate::replicas::Replicas;

/// Makes a key for a person.
fn key(replicas: &Replicas, name: &str) -> String {
    let rights = KeyRights::of_role(Role::Approver);
    replicas.homes[0].key_of(name, KeyRequest { rights, ..KeyRequest::named(name) })
}

/// Asks the API of whichever gateway; the status and what it says.
fn api(replicas: &Replicas, key: &str, path: &str, body: &Value) -> (u16, Value) {
    let token = format!("Bearer {key}");
    let headers = [("Authorization", token.as_str()), ("Content-Type", "application/json")];
    let reply = replicas.proxy.send("POST", path, &headers, &body.to_string()).unwrap();
    (reply.status, serde_json::from_str(&reply.body).unwrap_or_default())
}

#[test]
fn one_person_publishes_another_reuses_and_the_approval_outlives_the_gateway_that_asked() {
    let mut replicas = Replicas::start("[approvals]\nby = \"client\"\n", true);
    let [ann, bob] = ["ann", "bob"].map(|name| key(&replicas, name));
    let code = "return (await mcp.ledger.add({ id: args.id })).id;";
    let new = json!({ "intent": "write an entry into the ledger", "name": "enter", "code": code });
    replicas.token = bob.clone();
    let mut session = None;
    // Keys are known to each gateway within a second; these connections reach all of them.
    eventually("the keys are known", || {
        let opened: Vec<Option<String>> = (0..3).map(|_| replicas.try_open()).collect();
        session = opened.iter().flatten().next().cloned();
        opened.iter().all(Option::is_some)
    });
    let session = session.unwrap();
    let (status, told) = api(&replicas, &ann, "/api/capabilities", &new);
    assert_eq!(status, 200, "{told}");
    let run = json!({ "intent": "enter it", "context": { "id": "of Bob" },
        "implementation": { "type": "capability", "id": "enter" } });
    let private =
        replicas.request(&session, "tools/call", &json!({ "name": "pml_execute", "arguments": run }));
    assert!(private.unwrap().to_string().contains("there is no capability"));
    let (status, told) =
        api(&replicas, &ann, "/api/capabilities/enter/publish", &json!({ "visibility": "project" }));
    assert_eq!(status, 200, "{told}");

    // The first gateway asks, and is gone before anybody answers.
    for replica in [1, 2] {
        replicas.proxy.point(replica, None);
    }
    let mut asked = Value::Null;
    eventually("the gateway has heard of it and asks", || {
        asked = replicas.call(&session, "pml_execute", &run).unwrap();
        asked["status"] == "approval_required"
    });
    replicas.kill(0);
    for replica in [1, 2] {
        replicas.proxy.point(replica, replicas.served[replica].as_ref());
    }
    let answer = json!({ "workflow_id": asked["workflowId"], "approved": true });
    let done = replicas.call(&session, "pml_continue", &answer).unwrap();
    assert_eq!((&done["status"], &done["result"]), (&json!("success"), &json!("of Bob")), "{done}");
    assert_eq!(Ledger::of(&replicas.homes[0]).added(), ["of Bob"]);

    let (status, told) =
        api(&replicas, &ann, "/api/capabilities/enter/publish", &json!({ "visibility": "private" }));
    assert_eq!((status, &told["capability"]["usesByOthers"]), (200, &Value::Null), "{told}");
    eventually("it is taken back", || {
        let again = json!({ "name": "pml_execute", "arguments": run });
        let told = replicas.request(&session, "tools/call", &again).unwrap();
        told.to_string().contains("there is no capability")
    });
}
