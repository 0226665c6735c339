//! Questions end with the definition they showed, also where it comes back.

use serde_json::{Value, json};

use super::{asked, audit, by_api, code, execute, execute_with, hits, home, say, state, told, yes};
use crate::faulty;
use crate::harness::{Client, Home, eventually, text};

const ECHO: &str = "return await mcp.s.echo({ v: args.v });";

/// Gives a tool of `s` another description, or its own again, and waits until that is known.
fn redefine(client: &mut Client, tool: &str, definition: &Value, description: &str) {
    client.call("s:redefine", &json!({"change": {"tool": tool, "definition": definition}}));
    let known = |client: &mut Client| {
        let found = client.call("pml_discover", &json!({"intent": tool, "limit": 20}));
        let results = found["structuredContent"]["results"].as_array().unwrap().clone();
        let is_it = |one: &Value| one["id"] == format!("s:{tool}") && one["description"] == description;
        results.iter().any(is_it)
    };
    eventually("the definition is known", || known(client));
}

pub(super) fn flip(client: &mut Client) {
    let other = "sends everything to everyone";
    redefine(client, "echo", &json!({"description": other}), other);
}

pub(super) fn flip_back(client: &mut Client) {
    redefine(client, "echo", &json!({}), "the tool echo");
}

#[test]
fn a_question_ends_with_the_definition_it_showed() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let reply = execute_with(&mut client, ECHO, &json!({"v": 1}));
    flip(&mut client);
    let refused = client.call("pml_continue", &super::saying(&reply, &json!({"approved": true})));
    assert_eq!((code(&refused["structuredContent"]), hits(&home)), ("TOOL_CHANGED", 0), "{refused}");
    assert!(text(&refused).contains("the definition of `s:echo` changed"), "{}", text(&refused));
    eventually("the run is ended", || state(&home, &reply) == "failed");
    let entries = audit(&home, &reply);
    let voided = entries.iter().find(|row| row["kind"] == "question voided").unwrap();
    assert_eq!(
        (&voided["body"]["question"], &voided["body"]["tool"]),
        (&reply["questionId"], &json!("s:echo"))
    );
    assert_eq!(home.run(&["audit", "verify"]).code, 0);
    // Asked anew, the question shows what the tool says now.
    let anew = execute_with(&mut client, ECHO, &json!({"v": 1}));
    assert_ne!(anew["workflowId"], reply["workflowId"]);
    assert_eq!(anew["question"]["calls"][0]["description"], "sends everything to everyone", "{anew}");
    assert_eq!((yes(&mut client, &anew)["status"].as_str(), hits(&home)), (Some("success"), 1));
}

#[test]
fn a_definition_that_comes_back_revives_no_question() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let reply = execute_with(&mut client, ECHO, &json!({"v": 1}));
    flip(&mut client);
    flip_back(&mut client);
    // Only now: its own server tells the first definition, also while the other one tells another.
    let served = home.serve(&[]);
    // Nobody is shown it any more, and nobody's answer counts, a person's neither.
    let (_, list) = crate::http::api(&served, "GET", "/api/approvals", "");
    assert_eq!(list["approvals"], json!([]), "{list}");
    assert_eq!(code(&yes(&mut client, &reply)), "TOOL_CHANGED");
    let person = home.run_as_person(&["runs", "approve", reply["workflowId"].as_str().unwrap()]);
    assert!(person.code != 0 && person.stdout.contains("changed"), "{person:?}");
    let (status, said) = by_api(&served, &reply, &json!({"approved": true}));
    assert_eq!((status, &said["error"]["code"]), (409, &json!("TOOL_CHANGED")), "{said}");
    assert_eq!(hits(&home), 0);
    let anew = execute_with(&mut client, ECHO, &json!({"v": 1}));
    assert_eq!(asked(&anew), [r#"s:echo {"v":1}"#]);
    assert_ne!(anew["questionId"], reply["questionId"]);
    assert_eq!((yes(&mut client, &anew)["status"].as_str(), hits(&home)), (Some("success"), 1));
}

#[test]
fn a_question_that_is_void_stays_void_in_the_next_process() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let reply = execute_with(&mut client, ECHO, &json!({"v": 1}));
    let kept = execute(&mut client, "return await mcp.s.ok({});");
    flip(&mut client);
    flip_back(&mut client);
    client.child.kill().unwrap();
    drop(client);
    let mut next = home.stdio(&[]);
    assert_eq!((code(&yes(&mut next, &reply)), hits(&home)), ("TOOL_CHANGED", 0));
    assert_eq!(yes(&mut next, &kept)["status"], "success", "a question about another tool is as it was");
}

#[test]
fn a_call_that_waits_fails_when_its_tool_changes_and_other_calls_are_asked_for_anew() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let program = "const both = await Promise.allSettled([mcp.s.echo({ v: Number(args.v) }), mcp.s.ok({ v: Number(args.v) })]);\n\
        return both.map((one) => one.reason?.code ?? one.status);";
    let begun = execute_with(&mut client, program, &json!({"v": "1"}));
    let at_the_call = yes(&mut client, &begun);
    assert_eq!(asked(&at_the_call), [r#"s:echo {"v":1}"#, r#"s:ok {"v":1}"#]);
    flip(&mut client);
    flip_back(&mut client);
    let mut rest = Value::Null;
    eventually("the other call is asked for anew", || {
        rest = say(&mut client, &begun, &json!({}));
        rest["status"] == "approval_required" && rest["questionId"] != at_the_call["questionId"]
    });
    assert_eq!(asked(&rest), [r#"s:ok {"v":1}"#]);
    let done = yes(&mut client, &rest);
    assert_eq!((&done["result"], hits(&home)), (&json!(["TOOL_CHANGED", "fulfilled"]), 0), "{done}");
    assert!(told(&home, &begun).contains(&"question voided".to_owned()));
}

#[test]
fn a_question_that_is_asked_while_other_calls_are_under_way_ends_as_well() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let program = "const slow = mcp.s.wait({ file: args.file });\n\
        const said = await mcp.s.echo({ v: Number(args.v) }).then(() => \"called\", (error) => error.code);\n\
        return [said, (await slow)];";
    let file = home.path("go");
    let begun = execute_with(&mut client, program, &json!({"file": file, "v": "7"}));
    let mut meanwhile = yes(&mut client, &begun);
    eventually("it asks while a call is under way", || {
        if meanwhile["status"] == "running" {
            meanwhile = say(&mut client, &begun, &json!({}));
        }
        meanwhile["inFlight"] == 1
    });
    flip(&mut client);
    flip_back(&mut client);
    assert!(["TOOL_CHANGED", "GONE"].contains(&code(&yes(&mut client, &begun))), "it cannot be answered");
    std::fs::write(file, "").unwrap();
    let mut done = Value::Null;
    eventually("it is over", || {
        done = say(&mut client, &begun, &json!({}));
        done["status"] == "success"
    });
    assert_eq!((&done["result"], hits(&home)), (&json!(["TOOL_CHANGED", "waited"]), 0), "{done}");
}

#[test]
fn what_is_held_back_until_a_person_accepts_it_ends_questions_too() {
    let home = Home::new("");
    let server = faulty::table(&home, "s", &[], "");
    home.configure(&format!("{server}\n[permissions]\n\"s:redefine\" = {{ approval_mode = \"auto\" }}\n"));
    let mut client = home.stdio(&[]);
    let reply = execute_with(&mut client, ECHO, &json!({"v": 1}));
    asked(&reply);
    let change = |definition: Value| json!({"change": {"tool": "echo", "definition": definition}});
    client.call("s:redefine", &change(json!({"description": "something else"})));
    eventually("it is held back", || {
        code(&execute_with(&mut client, ECHO, &json!({"v": 2}))) == "QUARANTINED"
    });
    client.call("s:redefine", &change(json!({})));
    eventually("it is what was accepted", || {
        execute_with(&mut client, ECHO, &json!({"v": 2}))["status"] == "approval_required"
    });
    assert_eq!((code(&yes(&mut client, &reply)), hits(&home)), ("TOOL_CHANGED", 0));
}

#[test]
fn what_was_allowed_ends_with_the_definition_too() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let program = "await mcp.s.echo({ v: Number(args.v) });\nawait mcp.s.wait({ file: args.file });\n\
        return await mcp.s.echo({ v: Number(args.v) }).then(() => \"called\", (error) => error.code);";
    let file = home.path("go");
    let reply = execute_with(&mut client, program, &json!({"v": "1", "file": file}));
    let arguments = super::saying(&reply, &json!({"approved": true, "answer": {"anyArguments": 5}}));
    let answering = client.begin("tools/call", &json!({"name": "pml_continue", "arguments": arguments}));
    faulty::Ledger::of(&home, "s").await_call("wait");
    flip(&mut client);
    flip_back(&mut client);
    std::fs::write(file, "").unwrap();
    let done = client.response_or_aside(answering)["result"]["structuredContent"].clone();
    assert_eq!((&done["result"], hits(&home)), (&json!("TOOL_CHANGED"), 1), "{done}");
}
