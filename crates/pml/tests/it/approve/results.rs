//! `pml_get_task_result`: how a run stands, and results too large for a reply.

use serde_json::{Value, json};

use super::{code, execute, execute_with, home};
use crate::harness::{Client, eventually, text};

#[track_caller]
fn result(client: &mut Client, run: &Value, more: &Value) -> Value {
    let mut arguments = more.clone();
    arguments["workflow_id"] = run["workflowId"].clone();
    client.call("pml_get_task_result", &arguments)["structuredContent"].clone()
}

#[test]
fn a_large_result_is_read_in_pages_that_end_where_characters_do() {
    let home = home("");
    // Characters of one to four bytes.
    let line = "a\u{e9}\u{20ac}\u{1f600}\n";
    std::fs::write(home.path("large.txt"), line.repeat(1_000_000 / line.len())).unwrap();
    let mut client = home.stdio(&[]);
    let run =
        execute(&mut client, "const file = await mcp.fs.read({ path: \"large.txt\" });\nreturn file.size;");
    assert_eq!(run["status"], "success", "{run}");
    let (mut whole, mut offset, mut pages) = (String::new(), json!(0), 0);
    while !offset.is_null() {
        let page = result(&mut client, &run, &json!({"task_id": "n1", "offset": offset, "limit": 99_999}));
        assert_eq!((&page["offset"], &page["status"]), (&offset, &json!("success")), "{}", page["error"]);
        let content = page["content"].as_str().unwrap();
        assert!(!content.is_empty() && content.len() <= 99_999);
        whole.push_str(content);
        pages += 1;
        offset = page.get("nextOffset").cloned().unwrap_or(Value::Null);
        assert_eq!(page["totalBytes"].as_u64().unwrap() as usize == whole.len(), offset.is_null());
    }
    assert!(pages > 10);
    let value: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(value["content"], line.repeat(1_000_000 / line.len()));
    // In the middle of a character, and past the end.
    let inside = result(
        &mut client,
        &run,
        &json!({"task_id": "n1", "offset": whole.find('\u{20ac}').unwrap() + 1, "limit": 3}),
    );
    assert_eq!(inside["content"], "\u{20ac}");
    let past = result(&mut client, &run, &json!({"task_id": "n1", "offset": whole.len() + 5}));
    assert_eq!((&past["content"], past.get("nextOffset")), (&json!(""), None));
}

#[test]
fn a_run_tells_its_state_its_tasks_and_their_results() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let program = "for (const n of args.list) await mcp.math.evaluate({ expression: `${n}*2` });\nreturn await mcp.fs.read({ path: 'absent' });";
    let run = execute_with(&mut client, program, &json!({"list": [1, 2, 3]}));
    let seen = result(&mut client, &run, &json!({}));
    assert_eq!((&seen["status"], seen.get("question")), (&json!("failed"), None), "{seen}");
    let tasks = seen["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 4);
    let node = tasks[0]["nodeId"].as_str().unwrap();
    for (task, expected) in
        [(node.to_owned(), 6), (format!("{node}#1"), 2), (format!("{node}#2"), 4), ("3".to_owned(), 6)]
    {
        let page = result(&mut client, &run, &json!({"task_id": task}));
        assert_eq!(page["content"], format!(r#"{{"value":{expected}}}"#), "{task}: {page}");
    }
    let pretty = result(&mut client, &run, &json!({"task_id": "3", "format": "pretty"}));
    assert_eq!(pretty["content"], "{\n  \"value\": 6\n}");
    let failed = result(&mut client, &run, &json!({"task_id": tasks[3]["nodeId"]}));
    assert_eq!(failed["status"], "error", "{failed}");
    for (task, words) in [
        ("n99", "no task `n99`"),
        (&format!("{node}#9"), "no task"),
        ("5", "no task"),
        ("0", "no task"),
        ("", "no task"),
    ] {
        let mut arguments = json!({"task_id": task});
        arguments["workflow_id"] = run["workflowId"].clone();
        let unknown = client.call("pml_get_task_result", &arguments);
        assert!(unknown["isError"] == true && text(&unknown).contains(words), "{task}: {unknown}");
    }
    let nobody = json!({"workflowId": "run_00000000000000000000000000000001"});
    assert_eq!(code(&result(&mut client, &nobody, &json!({}))), "UNKNOWN_RUN");
    assert_eq!(code(&result(&mut client, &json!({"workflowId": "../x"}), &json!({}))), "UNKNOWN_RUN");
}

#[test]
fn a_task_that_waits_for_a_person_has_no_result_yet() {
    let home = home("");
    let mut client = home.stdio(&[]);
    let program = "const [a, b] = await Promise.all([mcp.math.evaluate({ expression: '1' }), mcp.s.echo({ v: Number(args.v) })]);\nreturn [a.value, b.v];";
    let begun = execute_with(&mut client, program, &json!({"v": "1"}));
    let waiting = super::yes(&mut client, &begun);
    let seen = result(&mut client, &waiting, &json!({}));
    assert_eq!((&seen["status"], &seen["questionId"]), (&json!("waiting"), &waiting["questionId"]), "{seen}");
    let node = |tool: &str| {
        let tasks = seen["tasks"].as_array().unwrap();
        tasks.iter().find(|task| task["tool"] == tool).unwrap()["nodeId"].clone()
    };
    let (ended, open) = (node("math:evaluate"), node("s:echo"));
    assert_eq!(result(&mut client, &waiting, &json!({"task_id": ended}))["content"], r#"{"value":1}"#);
    let none = result(&mut client, &waiting, &json!({"task_id": open}));
    assert!(none["error"]["message"].as_str().unwrap().contains("no result yet"), "{none}");
}

#[test]
fn results_that_are_no_longer_kept_are_said_to_be() {
    let home = home("[runs]\nkeep_results = \"1s\"\n[memory]\ngolden_runs = false\n");
    let run = execute(&mut home.stdio(&[]), "return (await mcp.math.evaluate({ expression: '1' })).value;");
    assert_eq!(run["result"], 1, "{run}");
    // Each gateway looks what can go when it starts.
    let mut last = Value::Null;
    eventually("they are gone", || {
        last = result(&mut home.stdio(&[]), &run, &json!({"task_id": "n1"}));
        code(&last) == "GONE"
    });
    let message = last["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("expired") && last["error"]["hint"].as_str().unwrap().contains("keep_results"),
        "{last}"
    );
    let whole = result(&mut home.stdio(&[]), &run, &json!({}));
    assert_eq!(code(&whole), "GONE", "{whole}");
}
