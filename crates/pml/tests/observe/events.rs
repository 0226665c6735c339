//! `GET /events`: in order, resumable, bounded, and only for the principal whose runs they are about.

use serde_json::json;

use crate::door::{ALL, Reader, call, get, key_of, names, run, send};
use crate::harness::{Home, eventually};

const TWO_READS: &str = "const a = await mcp.fs.read({ path: 'a.txt' }); console.log('between');\n\
    const b = await mcp.fs.read({ path: 'b.txt' }); return a.content + b.content;";

fn home() -> Home {
    let home = Home::new(ALL);
    std::fs::write(home.path("a.txt"), "one").unwrap();
    std::fs::write(home.path("b.txt"), "two").unwrap();
    home
}

#[test]
fn a_run_is_told_live_and_in_order() {
    let home = home();
    let served = home.serve(&[]);
    let mut reader = Reader::open(&served, "/events", &[]);
    let reply = run(&served, "read two files", TWO_READS);
    assert_eq!(reply["result"], "onetwo", "{reply}");
    let events = reader.until("run_end");
    assert_eq!(
        names(&events),
        ["run_start", "task_start", "task_complete", "log", "task_start", "task_complete", "run_end"]
    );
    assert!(events.iter().all(|event| event.run() == reply["workflowId"]), "{events:#?}");
    assert!(events.iter().all(|event| event.data["at"].is_i64()), "{events:#?}");
    let started = &events[0].data;
    assert_eq!((&started["kind"], &started["intent"]), (&json!("program"), &json!("read two files")));
    let read = &events[2].data;
    assert_eq!((&read["tool"], &read["call"], &read["status"]), (&json!("fs:read"), &json!(1), &json!("ok")));
    assert!(read["resultPreview"].as_str().unwrap().contains("one"), "{read}");
    assert!(read["resultSize"].as_u64() > Some(10), "{read}");
    assert_eq!(events[3].data["text"], "between");
    let end = &events[6].data;
    assert_eq!((&end["status"], &end["calls"], &end["failedCalls"]), (&json!("done"), &json!(2), &json!(0)));

    let failed = run(&served, "read nothing", "return await mcp.fs.read({ path: 'none.txt' })");
    let events = reader.until("run_end");
    assert_eq!(names(&events), ["run_start", "task_start", "task_complete", "run_end"]);
    assert_eq!((&events[2].data["status"], &events[3].data["status"]), (&json!("error"), &json!("failed")));
    assert_eq!(events[3].data["error"]["code"], failed["error"]["code"], "{failed}");
}

#[test]
fn layers_capabilities_and_hints_are_told() {
    let home = home();
    let served = home.serve(&[]);
    let mut reader = Reader::open(&served, "/events", &[]);
    let tasks = json!([
        {"id": "a", "tool": "fs:read", "arguments": {"path": "a.txt"}},
        {"id": "b", "tool": "fs:read", "arguments": {"path": "b.txt"}},
        {"id": "c", "tool": "fs:write", "arguments": {"path": "c.txt", "content": "three"}, "dependsOn": ["a", "b"]},
    ]);
    let dag = json!({"type": "dag", "dagStructure": {"tasks": tasks}});
    let reply = call(&served, "pml_execute", &json!({"intent": "copy", "implementation": dag}));
    assert_eq!(reply["isError"], false, "{reply}");
    let events = reader.until("run_end");
    let layers: Vec<_> = events.iter().filter(|event| event.name == "layer_complete").collect();
    let layers: Vec<_> = layers.iter().map(|event| (&event.data["layer"], &event.data["layers"])).collect();
    assert_eq!(layers, [(&json!(0), &json!(2)), (&json!(1), &json!(2))]);
    assert_eq!(events[0].data["kind"], "dag");

    let hinted = "pml.hint({ name: 'firstText', description: 'reads the first text' });\n\
                  return (await mcp.fs.read({ path: 'a.txt' })).content;";
    let reply = run(&served, "read the first text", hinted);
    assert_eq!(reply["result"], "one", "{reply}");
    let events = reader.until("run_end");
    let hint = events.iter().find(|event| event.name == "capability_hint").unwrap();
    assert_eq!((&hint.data["name"], &hint.data["tools_used"]), (&json!("firstText"), &json!(["fs:read"])));

    let reply =
        run(&served, "shout the first text", "return (await capabilities.firstText({})).toUpperCase();");
    assert_eq!(reply["result"], "ONE", "{reply}");
    let events = reader.until("run_end");
    let shown: Vec<&str> = names(&events).into_iter().filter(|name| *name != "log").collect();
    assert_eq!(
        shown,
        ["run_start", "capability_start", "task_start", "task_complete", "capability_end", "run_end"]
    );
    assert_eq!(events[1].data["capability"]["name"], "firstText");
}

#[test]
fn questions_and_runs_of_other_processes_are_told() {
    let home = Home::new("[approvals]\nby = \"human\"\n[builtin.fs]\nroot = \".\"\n");
    std::fs::write(home.path("a.txt"), "one").unwrap();
    let served = home.serve(&[]);
    let mut reader = Reader::open(&served, "/events", &[]);
    // An agent whose gateway is another process.
    let mut agent = home.stdio(&[]);
    let code = |code: &str| json!({"intent": "work", "implementation": {"type": "code", "code": code}});
    let read = agent.call("pml_execute", &code("return await mcp.fs.read({ path: 'a.txt' })"));
    assert_eq!(read["isError"], false, "{read}");
    let events = reader.until("run_end");
    assert_eq!(names(&events), ["run_start", "task_start", "task_complete", "run_end"]);
    assert_eq!(events[2].data["tool"], "fs:read");
    assert!(events[2].data["resultPreview"].as_str().unwrap().contains("one"));

    let asked = agent.call("pml_execute", &code("await mcp.fs.write({ path: 'b.txt', content: 'x' })"));
    let asked = &asked["structuredContent"];
    assert_eq!(asked["status"], "approval_required", "{asked}");
    let events = reader.until("approval_required");
    let question = &events.last().unwrap().data;
    assert_eq!((&question["run"], &question["kind"]), (&asked["workflowId"], &json!("approval")));
    assert!(question["summary"].as_str().unwrap().contains("fs:write"), "{question}");
    let id = asked["workflowId"].as_str().unwrap();
    let ended = home.run_as_person(&["runs", "deny", id]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let end = reader.until("run_end").pop().unwrap();
    assert_eq!((&end.data["run"], &end.data["status"]), (&json!(id), &json!("failed")), "{end:?}");
}

#[test]
fn a_reader_goes_on_where_it_was_and_one_run_can_be_followed_alone() {
    let home = home();
    let served = home.serve(&[]);
    let mut reader = Reader::open(&served, "/events", &[]);
    let first = run(&served, "first", TWO_READS);
    let seen = reader.until("log");
    let last = &seen.last().unwrap().id;
    drop(reader);
    let second = run(&served, "second", "return 1");
    let mut again = Reader::open(&served, "/events", &[("Last-Event-ID", last)]);
    let rest = again.until("run_end");
    assert_eq!(names(&rest), ["task_start", "task_complete", "run_end"], "nothing twice, nothing lost");
    assert!(rest.iter().all(|event| event.run() == first["workflowId"]));
    assert!(again.until("run_end").iter().all(|event| event.run() == second["workflowId"]));

    let path = format!("/events?lastEventId={last}&run={}", second["workflowId"].as_str().unwrap());
    let only = Reader::open(&served, &path, &[]).until("run_end");
    assert_eq!(names(&only), ["run_start", "run_end"]);
    for unknown in ["run_00000000000000000000000000000000", "x"] {
        let (status, body) = get(&served, &format!("/events?run={unknown}"));
        assert_eq!(status, 404, "{body}");
    }
    assert_eq!(get(&served, "/events?runs=x").0, 400);
    let mut lost = Reader::open(&served, "/events", &[("Last-Event-ID", "nonsense")]);
    let reset = lost.next();
    assert_eq!((reset.name.as_str(), reset.data["reason"].as_str()), ("reset", Some("unknown_position")));
}

#[test]
fn after_a_restart_the_journal_tells_what_was_missed() {
    let home = home();
    let served = home.serve(&[]);
    let mut reader = Reader::open(&served, "/events", &[]);
    let first = run(&served, "first", TWO_READS);
    let last = reader.until("run_end").pop().unwrap().id;
    drop(reader);
    // More than the slack that covers clocks and commits.
    std::thread::sleep(std::time::Duration::from_millis(400));
    let second = run(&served, "second", TWO_READS);
    drop(served);
    let served = home.serve(&[]);
    let mut again = Reader::open(&served, "/events", &[("Last-Event-ID", &last)]);
    let resumed = again.next();
    assert_eq!(resumed.name, "resumed");
    assert!(resumed.data["notRepeated"].as_array().unwrap().contains(&json!("log")), "{resumed:?}");
    let mut events = again.until("run_end");
    // What happened at the moment of the last event may come twice.
    while events.last().unwrap().run() == first["workflowId"] {
        events = again.until("run_end");
    }
    let ours: Vec<_> = events.iter().filter(|event| event.run() == second["workflowId"]).cloned().collect();
    assert_eq!(
        names(&ours),
        ["run_start", "task_start", "task_complete", "task_start", "task_complete", "run_end"]
    );
    // Live again.
    let third = run(&served, "third", "return 1");
    assert!(again.until("run_end").iter().any(|event| event.run() == third["workflowId"]));
}

#[test]
fn a_slow_reader_is_told_and_holds_nobody_up() {
    let home = Home::new("[limits]\nconsole = \"8MiB\"\n");
    let served = home.serve(&[]);
    let mut slow = Reader::open(&served, "/events", &[]);
    // 15,600 lines of 2,000 characters: more than what is kept and what lies in the buffers of the connection.
    let chatty = "const text = 'x'.repeat(2000); for (let i = 0; i < 3900; i++) console.log(text); return 1";
    for _ in 0..4 {
        let reply = run(&served, "talk", chatty);
        assert_eq!(reply["result"], 1, "{reply}");
    }
    let reset = slow.until("reset").pop().unwrap();
    assert_eq!(reset.data["reason"], "too_slow");
    let reply = run(&served, "afterwards", "return 2");
    let afterwards = slow.until("run_end");
    assert!(afterwards.iter().any(|event| event.run() == reply["workflowId"]), "{afterwards:?}");
}

#[test]
fn somebody_else_sees_nothing() {
    let home = home();
    let key = key_of(&home, "somebody else");
    let served = home.serve(&[]);
    let mut ours = Reader::open(&served, "/events", &[]);
    let mut theirs = Reader::open_as(&served, &format!("Bearer {key}"), "/events", &[]);
    let reply = run(&served, "ours", TWO_READS);
    let last = ours.until("run_end").remove(0).id;
    assert!(theirs.is_silent());
    let bearer = format!("Bearer {key}");
    let id = reply["workflowId"].as_str().unwrap();
    let (status, _, foreign) =
        send(&served, &format!("GET /events?run={id}"), &[("Authorization", &bearer)], "");
    let unknown = "run_00000000000000000000000000000000";
    let (_, _, missing) =
        send(&served, &format!("GET /events?run={unknown}"), &[("Authorization", &bearer)], "");
    assert_eq!(
        (status, foreign.replace(id, "")),
        (404, missing.replace(unknown, "")),
        "as if it did not exist"
    );
    let mut resumed = Reader::open_as(&served, &bearer, "/events", &[("Last-Event-ID", &last)]);
    assert!(resumed.is_silent());
    assert_eq!(send(&served, "GET /events", &[], "").0, 401);
    assert_eq!(send(&served, "POST /events", &[("Authorization", &bearer)], "").0, 405);
}

#[test]
fn the_stream_ends_when_the_gateway_does() {
    let home = home();
    let mut served = home.serve(&[]);
    let mut reader = Reader::open(&served, "/events", &[]);
    std::process::Command::new("kill").arg(served.child.id().to_string()).status().unwrap();
    assert_eq!(reader.block(), None);
    eventually("it has ended", || served.child.try_wait().unwrap().is_some());
}
