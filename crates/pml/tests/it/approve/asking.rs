//! How often people are asked, and what happens meanwhile.

use serde_json::json;

use super::{asked, code, execute, execute_with, hits, home, say, saying, yes};
use crate::faulty::Ledger;
use crate::harness::eventually;

#[test]
fn a_hundred_calls_at_once_are_two_questions() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let code = "const all = Array.from({ length: 100 }, (_, v) => v);\nreturn (await Promise.all(all.map((v) => mcp.s.echo({ v })))).map(({ v }) => v);";
    let begun = execute(&mut client, code);
    let first = yes(&mut client, &begun);
    let calls = asked(&first);
    assert_eq!((calls.len(), hits(&home)), (50, 0));
    assert_eq!((calls[0].as_str(), calls[49].as_str()), (r#"s:echo {"v":0}"#, r#"s:echo {"v":49}"#));
    let second = yes(&mut client, &first);
    let calls = asked(&second);
    assert_eq!((calls.len(), hits(&home)), (50, 50));
    assert_eq!(calls[0], r#"s:echo {"v":50}"#);
    let done = yes(&mut client, &second);
    let all: Vec<u32> = (0..100).collect();
    assert_eq!((&done["result"], hits(&home)), (&json!(all), 100), "{done}");
}

#[test]
fn what_was_denied_is_not_asked_for_again_and_the_program_may_go_on() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let program = "const ends = [];\nfor (let i = 0; i < 1000; i++) {\n  try { await mcp.s.echo({ v: 1 }); ends.push('sent') } catch (error) { ends.push(error.code) }\n}\nreturn [...new Set(ends), ends.length];";
    let begun = execute(&mut client, program);
    let call = yes(&mut client, &begun);
    assert_eq!(asked(&call), [r#"s:echo {"v":1}"#]);
    let done = say(&mut client, &call, &json!({"approved": false}));
    assert_eq!((&done["result"], hits(&home)), (&json!(["DENIED", 1000]), 0), "{done}");
}

#[test]
fn a_program_that_tries_something_else_each_time_is_told_no_after_a_few() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let program = "let denied = 0;\nfor (let v = 0; v < 100; v++) try { await mcp.s.echo({ v }) } catch { denied++ }\nreturn denied;";
    let begun = execute(&mut client, program);
    let (mut reply, mut questions) = (yes(&mut client, &begun), 0);
    while reply["status"] == "approval_required" {
        questions += 1;
        assert!(questions < 10, "{reply}");
        reply = say(&mut client, &reply, &json!({"approved": false}));
    }
    assert_eq!((&reply["result"], questions, hits(&home)), (&json!(100), 3, 0), "{reply}");
}

#[test]
fn a_no_to_many_calls_is_one_no() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let program = "const tried = await Promise.allSettled([1, 2, 3].map((v) => mcp.s.echo({ v })));\nconst last = await mcp.s.echo({ v: tried.length + 1 });\nreturn [tried.map((one) => one.status), last.v];";
    let begun = execute(&mut client, program);
    let three = yes(&mut client, &begun);
    assert_eq!(asked(&three).len(), 3);
    let other = say(&mut client, &three, &json!({"approved": false}));
    assert_eq!(asked(&other), [r#"s:echo {"v":4}"#]);
    let done = yes(&mut client, &other);
    assert_eq!((&done["result"][1], hits(&home)), (&json!(4), 1), "{done}");
}

#[test]
fn a_no_to_one_call_leaves_the_rest_of_the_program() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let program = "const said = await mcp.s.echo({ v: Number(args.v) }).catch((error) => `${error.code}: ${error.message}`);\nreturn [said, (await mcp.math.evaluate({ expression: '6*7' })).value];";
    let begun = execute_with(&mut client, program, &json!({"v": "7"}));
    let call = yes(&mut client, &begun);
    let done = say(&mut client, &call, &json!({"approved": false, "reason": "not this one"}));
    let said = done["result"][0].as_str().unwrap_or_default();
    assert!(said.starts_with("DENIED: ") && said.contains("not this one"), "{done}");
    assert_eq!((&done["result"][1], hits(&home)), (&json!(42), 0));
}

#[test]
fn a_busy_loop_is_ended_also_while_a_question_is_open() {
    let home = home("[limits]\ncpu = \"3s\"\n");
    let mut client = home.stdio(&[]);
    let program = "mcp.s.echo({ v: Number(args.v) });\nawait Promise.resolve();\nfor (;;);";
    let begun = execute_with(&mut client, program, &json!({"v": "x"}));
    let reply = yes(&mut client, &begun);
    let ended =
        if reply["status"] == "approval_required" { say(&mut client, &reply, &json!({})) } else { reply };
    assert_eq!((code(&ended), hits(&home)), ("TIMEOUT", 0), "{ended}");
    let late = yes(&mut client, &begun);
    assert_eq!((code(&late), hits(&home)), ("GONE", 0), "{late}");
}

#[test]
fn a_question_does_not_wait_for_slow_calls_and_its_answer_is_taken_meanwhile() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let program = "const [waited, said] = await Promise.all([mcp.s.wait({ file: args.file }), mcp.s.echo({ v: Number(args.v) })]);\nreturn [waited, said.v];";
    let file = home.path("go");
    let begun = execute_with(&mut client, program, &json!({"file": file, "v": "7"}));
    let meanwhile = yes(&mut client, &begun);
    assert_eq!(
        (asked(&meanwhile), &meanwhile["inFlight"]),
        (vec![r#"s:echo {"v":7}"#.to_owned()], &json!(1))
    );
    let ledger = Ledger::of(&home, "s");
    assert_eq!((ledger.calls("wait"), hits(&home)), (1, 0));
    let params = json!({"name": "pml_continue", "arguments": saying(&meanwhile, &json!({"approved": true}))});
    let answering = client.begin("tools/call", &params);
    eventually("the call is made while the other is under way", || hits(&home) == 1);
    std::fs::write(file, "").unwrap();
    let done = client.response_or_aside(answering)["result"]["structuredContent"].clone();
    assert_eq!(done["result"], json!(["waited", 7]), "{done}");
    assert_eq!((ledger.calls("wait"), hits(&home)), (1, 1));
}

#[test]
fn a_no_that_comes_while_other_calls_are_under_way_is_taken_as_well() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let program = "const said = mcp.s.echo({ v: Number(args.v) }).catch((error) => error.code);\nreturn [await mcp.s.wait({ file: args.file }), await said];";
    let file = home.path("go");
    let begun = execute_with(&mut client, program, &json!({"file": file, "v": "7"}));
    let meanwhile = yes(&mut client, &begun);
    assert_eq!(meanwhile["inFlight"], 1, "{meanwhile}");
    let params =
        json!({"name": "pml_continue", "arguments": saying(&meanwhile, &json!({"approved": false}))});
    let answering = client.begin("tools/call", &params);
    eventually("the question is closed", || {
        let seen = client.call("pml_get_task_result", &json!({"workflow_id": begun["workflowId"]}));
        seen["structuredContent"].get("question").is_none()
    });
    std::fs::write(file, "").unwrap();
    let done = client.response_or_aside(answering)["result"]["structuredContent"].clone();
    assert_eq!((&done["result"], hits(&home)), (&json!(["waited", "DENIED"]), 0), "{done}");
}

#[test]
fn an_open_question_stays_visible_while_other_calls_come_and_go() {
    let home = home("[permissions]\n\"s:ok\" = { approval_mode = \"auto\" }\n");
    let mut client = home.stdio(&[]);
    let program = "const said = mcp.s.echo({ v: Number(args.v) });\nlet n = 0;\nwhile (!(await mcp.fs.stat({ path: 'go' })).exists) { await mcp.s.ok({}); await new Promise((done) => setTimeout(done, 50)); n++ }\nawait mcp.s.ok({});\nreturn (await said).v;";
    let begun = execute_with(&mut client, program, &json!({"v": "7"}));
    let meanwhile = yes(&mut client, &begun);
    assert_eq!(asked(&meanwhile), [r#"s:echo {"v":7}"#]);
    let before = Ledger::of(&home, "s").calls("ok");
    eventually("it goes on meanwhile", || Ledger::of(&home, "s").calls("ok") > before + 5);
    let waiting = client
        .begin("tools/call", &json!({"name": "pml_continue", "arguments": saying(&meanwhile, &json!({}))}));
    client.request("ping", &json!({}));
    let answered = client.begin(
        "tools/call",
        &json!({"name": "pml_continue", "arguments": saying(&meanwhile, &json!({"approved": true}))}),
    );
    eventually("the call is made", || hits(&home) == 1);
    std::fs::write(home.path("go"), "").unwrap();
    for request in [waiting, answered] {
        let done = client.response_or_aside(request)["result"]["structuredContent"].clone();
        assert_eq!(done["result"], 7, "{done}");
    }
}

#[test]
fn a_question_stays_small_however_much_a_program_asks_for() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let big = "x".repeat(100_000);
    // Three thousand places on one line.
    let many = "await mcp.s.echo({ v: args.big });".repeat(3_000);
    let reply = execute_with(&mut client, &many, &json!({"big": big}));
    assert!(reply.to_string().len() < 4 << 20, "{} bytes", reply.to_string().len());
    let shown = asked(&reply);
    assert_eq!(shown.len(), 51, "fifty places, and that there are more");
    assert!(shown.iter().filter(|call| call.ends_with(&format!("{}\"}}", "x".repeat(100)))).count() >= 5);
    let code = reply["question"]["calls"][1]["code"].as_str().unwrap();
    assert!(code.chars().count() <= 401, "{code}");

    // Fifty calls at once, of two hundred thousand bytes each.
    let at_once = "await Promise.all(Array.from({ length: 50 }, (_, n) => mcp.s.echo({ n, v: args.big + args.big })));\nreturn 1;";
    let begun = execute_with(&mut client, at_once, &json!({"big": big}));
    let mut reply = yes(&mut client, &begun);
    let mut questions = 0;
    while reply["status"] == "approval_required" {
        assert!(reply.to_string().len() < 4 << 20, "{} bytes", reply.to_string().len());
        questions += 1;
        reply = yes(&mut client, &reply);
    }
    assert_eq!((&reply["result"], questions, hits(&home)), (&json!(1), 10, 50), "{reply}");
}

#[test]
fn finding_where_arguments_come_from_holds_nobody_up() {
    let home = home("[limits]\ncpu = \"20s\"\n");
    std::fs::write(home.path("large.txt"), "abcdefgh".repeat(490_000)).unwrap();
    let mut client = home.stdio(&[]);
    let program = "for (let n = 0; n < 15; n++) await mcp.fs.read({ path: 'large.txt' });\nconst parts = Array.from({ length: 2000 }, (_, n) => `not in it ${n}`);\nreturn (await mcp.s.echo({ first: 'abcdefgh', parts })).parts.length;";
    let begun = execute(&mut client, program);
    let call = if begun["question"]["begun"] == true { begun } else { yes(&mut client, &begun) };
    let origins = call["question"]["calls"][0]["origins"].as_array().unwrap();
    assert_eq!(origins[0]["part"], "first", "{origins:?}");
    assert_eq!(yes(&mut client, &call)["result"], 2000);
}
