//! What a question says of the last time a person allowed the same tool.

use serde_json::{Value, json};

use super::elicit::{answer, begin, desk, outcome};
use super::{code, execute_with, hits, home, say, yes};
use crate::harness::{Client, Home, text};

/// Its arguments are known beforehand.
const KNOWN: &str = "return await mcp.s.echo({ to: args.to, n: 1 });";
/// They are known at the call.
const LATER: &str = "return await mcp[args.server].echo({ to: args.to, n: 1 });";

fn to(name: &str) -> Value {
    json!({"to": name, "server": "s"})
}

/// A home where clients are taken at their word; the user of the one with the key of `desk` is a person.
fn with_a_person() -> Home {
    home("")
}

/// Has the person at the desk answer all that `code` asks, and gives what they were shown.
#[track_caller]
fn person(desk: &mut Client, code: &str, context: &Value, decision: &str, questions: usize) -> Vec<String> {
    let run = begin(desk, code, context);
    let said = json!({"action": "accept", "content": {"decision": decision}});
    let shown = (0..questions).map(|_| answer(desk, &said)["message"].as_str().unwrap().to_owned()).collect();
    let came = outcome(desk, run);
    assert_eq!(came["status"], if decision == "allow" { "success" } else { "failed" }, "{came}");
    shown
}

fn differs(reply: &Value) -> &Value {
    assert_eq!(reply["status"], "approval_required", "{reply}");
    &reply["question"]["calls"][0]["differs"]
}

#[test]
fn a_second_run_is_told_from_the_one_that_a_person_allowed() {
    let home = with_a_person();
    let mut desk = desk(&home);
    let first = person(&mut desk, KNOWN, &to("ann"), "allow", 1);
    assert!(!first[0].contains("different"), "nothing was allowed before: {}", first[0]);
    let same = person(&mut desk, KNOWN, &to("ann"), "allow", 1);
    assert!(!same[0].contains("different"), "it is the same: {}", same[0]);

    let words = "different from the last time a person allowed it:\n     `to`: \"ann\" → \"bob\"";
    let mut agent = home.stdio(&[]);
    let result = agent.call("pml_execute", &super::request(KNOWN, &to("bob")));
    let reply = &result["structuredContent"];
    assert_eq!(differs(reply), &json!(["`to`: \"ann\" → \"bob\""]));
    assert!(text(&result).contains(words), "{}", text(&result));
    let seen = agent.call("pml_get_task_result", &json!({"workflow_id": reply["workflowId"]}));
    assert_eq!(seen["structuredContent"]["question"], reply["question"]);
    let shown = home.run(&["runs", "resume", reply["workflowId"].as_str().unwrap()]);
    assert!(shown.stderr.contains(words), "{shown:?}");

    let other = person(&mut desk, KNOWN, &to("bob"), "allow", 1);
    assert!(other[0].contains(words), "{}", other[0]);
    let back = execute_with(&mut agent, KNOWN, &to("ann"));
    assert_eq!(differs(&back), &json!(["`to`: \"bob\" → \"ann\""]), "the last one counts");
}

#[test]
fn neither_a_no_nor_a_programs_word_is_what_a_person_allowed() {
    let home = with_a_person();
    let (mut desk, mut agent) = (desk(&home), home.stdio(&[]));
    person(&mut desk, KNOWN, &to("ann"), "deny", 1);
    let asked = execute_with(&mut agent, KNOWN, &to("bob"));
    assert_eq!(differs(&asked), &Value::Null, "nothing was allowed");
    assert_eq!(yes(&mut agent, &asked)["status"], "success");
    let asked = execute_with(&mut agent, KNOWN, &to("cid"));
    assert_eq!(differs(&asked), &Value::Null, "no person has seen that");
    let denied = say(&mut agent, &asked, &json!({"approved": false}));
    assert_eq!((code(&denied), hits(&home)), ("DENIED", 1));
    person(&mut desk, KNOWN, &to("dan"), "allow", 1);
    person(&mut desk, KNOWN, &to("eve"), "deny", 1);
    let asked = execute_with(&mut agent, KNOWN, &to("fay"));
    assert_eq!(differs(&asked), &json!(["`to`: \"dan\" → \"fay\""]));
}

#[test]
fn calls_of_programs_and_of_tasks_are_compared_alike() {
    let home = with_a_person();
    let (mut desk, mut agent) = (desk(&home), home.stdio(&[]));
    let shown = person(&mut desk, LATER, &to("ann"), "allow", 1);
    assert!(shown[0].contains("\"ann\"") && !shown[0].contains("different"), "{shown:?}");
    let asked = execute_with(&mut agent, LATER, &to("bob"));
    assert_eq!(asked["question"]["begun"], true, "{asked}");
    assert_eq!(differs(&asked), &json!(["`to`: \"ann\" → \"bob\""]));

    let tasks = json!({"tasks": [
        {"id": "a", "code": "return 1"},
        {"id": "b", "tool": "s:echo", "arguments": {"to": "cid", "n": {"$ref": "a"}}},
    ]});
    let dag =
        |intent: &str| json!({"intent": intent, "implementation": {"type": "dag", "dagStructure": tasks}});
    let before = agent.call("pml_execute", &dag("look"))["structuredContent"].clone();
    assert_eq!(differs(&before), &Value::Null, "its arguments are not known yet");
    assert_eq!(differs(&yes(&mut agent, &before)), &json!(["`to`: \"ann\" → \"cid\""]));
    let run = desk.begin("tools/call", &json!({"name": "pml_execute", "arguments": dag("do")}));
    for _ in ["that it may call it", "the call"] {
        answer(&mut desk, &json!({"action": "accept", "content": {"decision": "allow"}}));
    }
    assert_eq!(outcome(&mut desk, run)["status"], "success");
    let asked = execute_with(&mut agent, KNOWN, &to("ann"));
    assert_eq!(differs(&asked), &json!(["`to`: \"cid\" → \"ann\""]));
}
