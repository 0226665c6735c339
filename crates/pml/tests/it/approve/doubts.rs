//! Calls in doubt are resolved by the people who may approve: `again` makes a call happen that may have happened.

use serde_json::{Value, json};

use super::{by_api, code, home, over_http, refused, say, saying, state, told};
use crate::faulty::Ledger;
use crate::harness::{Client, Home, eventually};

/// A run whose one call was sent and whose gateway was killed; it asks what became of the call.
fn in_doubt(home: &Home) -> (Client, Value) {
    let mut client = home.stdio(&[]);
    let code = "return await mcp.s.wait({ file: args.file });";
    let mut request = super::request(code, &json!({"file": home.path("go")}));
    request["options"] = json!({"detach": true});
    let mut reply = client.call("pml_execute", &request)["structuredContent"].clone();
    Ledger::of(home, "s").await_call("wait");
    client.child.kill().unwrap();
    drop(client);
    let mut next = home.stdio(&[]);
    eventually("it asks", || {
        let seen = next.call("pml_get_task_result", &json!({"workflow_id": reply["workflowId"]}));
        reply["questionId"] = seen["structuredContent"]["questionId"].clone();
        seen["structuredContent"]["question"]["type"] == "in_doubt"
    });
    (next, reply)
}

fn calls(home: &Home) -> usize {
    Ledger::of(home, "s").calls("wait")
}

#[test]
fn where_only_a_person_may_approve_only_a_person_says_what_became_of_a_call() {
    let home = home("[approvals]\nby = \"human\"\n");
    let (mut client, reply) = in_doubt(&home);
    let served = home.serve(&[]);
    for verdict in [
        json!({"call": 1, "verdict": "again"}),
        json!({"call": 1, "verdict": "failed"}),
        json!({"call": 1, "verdict": "done", "result": "\"waited\""}),
    ] {
        let said = json!({"answer": {"calls": [verdict]}});
        assert_eq!(code(&say(&mut client, &reply, &said)), "DENIED", "{verdict}");
        assert_eq!(code(&over_http(&served, "pml_continue", &saying(&reply, &said))), "DENIED", "{verdict}");
        let (status, said) = by_api(&served, &reply, &said["answer"]);
        assert_eq!((status, code(&said)), (403, "DENIED"), "{said}");
    }
    let run = reply["workflowId"].as_str().unwrap();
    let shell = home.run(&["runs", "resume", run, "--call", "1=again"]);
    assert!(shell.code != 0 && shell.stderr.contains("passphrase"), "{shell:?}");
    assert_eq!((state(&home, &reply).as_str(), calls(&home), refused(&home, &reply)), ("waiting", 1, 9));
    std::fs::write(home.path("go"), "").unwrap();
    let person = home.run_as_person(&["runs", "resume", run, "--call", "1=again"]);
    assert_eq!((person.code, calls(&home)), (0, 2), "{person:?}");
    let entries = super::audit(&home, &reply);
    let answered = entries.iter().find(|row| row["kind"] == "answered").unwrap();
    assert_eq!(answered["body"]["said"]["calls"], json!([{"call": 1, "verdict": "again"}]), "{answered}");
    assert!(told(&home, &reply).contains(&"asked".to_owned()), "{entries:?}");
}

#[test]
fn where_a_client_may_approve_its_own_door_may_say_what_became_of_a_call_and_http_may_not() {
    let home = home("");
    let (mut client, reply) = in_doubt(&home);
    let served = home.serve(&[]);
    let said = json!({"answer": {"calls": [{"call": 1, "verdict": "again"}]}});
    assert_eq!(code(&over_http(&served, "pml_continue", &saying(&reply, &said))), "DENIED");
    assert_eq!(by_api(&served, &reply, &said["answer"]).0, 403);
    assert_eq!((calls(&home), refused(&home, &reply)), (1, 2));
    let failed = json!({"answer": {"calls": [{"call": 1, "verdict": "failed"}]}});
    assert_eq!(code(&say(&mut client, &reply, &failed)), "OUTCOME_UNKNOWN");
    assert_eq!(calls(&home), 1);
}
