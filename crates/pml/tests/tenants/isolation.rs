//! Two people at one gateway: every id of one, used by the other, on every route and in every tool that takes one.

use pml_model::Role;
use serde_json::{Value, json};

use crate::door::{ALL, api, call, key, run};
use crate::harness::Home;

/// What the first person has, by the parameter that names it.
struct Belongings {
    run: String,
    asking: String,
    question: String,
    capability: String,
    capability_id: String,
    trace: String,
    mock: String,
    dry_run: String,
}

fn settle(served: &crate::harness::Served, ann: &str) -> Belongings {
    let read = "return (await mcp.fs.read({ path: 'note.txt' })).content + ' ann-secret';";
    let done = run(served, ann, "read the note of Ann", read);
    assert_eq!(done["status"], "success", "{done}");
    let asked = run(
        served,
        ann,
        "save a note of Ann",
        "await mcp.fs.write({ path: 'other.txt', content: 'ann-secret' }); return 1;",
    );
    assert_eq!(asked["status"], "approval_required", "{asked}");
    let approvals = api(served, ann, "GET", "/api/approvals", &Value::Null).json();
    let capabilities = api(served, ann, "GET", "/api/capabilities", &Value::Null).json();
    let capability = &capabilities["capabilities"][0];
    let traces = api(served, ann, "GET", "/api/traces", &Value::Null).json();
    let dry = json!({"intent": "read the note of Ann", "implementation": {"type": "code", "code": read},
        "options": {"dryRun": true}});
    let dry = call(served, ann, "pml_execute", &dry);
    crate::harness::eventually("a recorded result", || {
        api(served, ann, "GET", "/api/mocks", &Value::Null).body.contains("mock_")
    });
    let mocks = api(served, ann, "GET", "/api/mocks", &Value::Null).json();
    let text = |value: &Value| {
        value.as_str().unwrap_or_else(|| panic!("{value} {traces} {capabilities} {mocks} {dry}")).to_owned()
    };
    Belongings {
        run: text(&done["workflowId"]),
        asking: text(&asked["workflowId"]),
        question: text(&approvals["approvals"][0]["questionId"]),
        capability: text(&capability["name"]),
        capability_id: text(&capability["id"]),
        trace: text(&traces["traces"][0]["id"]),
        mock: text(&mocks["mocks"][0]["id"]),
        dry_run: text(&dry["structuredContent"]["report"]["id"]),
    }
}

#[test]
fn what_is_anothers_looks_like_what_is_not_there() {
    let home = Home::new(ALL);
    std::fs::write(home.path("note.txt"), "hello").unwrap();
    let [ann, bob] = ["ann", "bob"].map(|person| key(&home, person, Role::Admin));
    let served = home.serve(&[]);
    let theirs = settle(&served, &ann);
    let nothing = Belongings {
        run: "run_00000000000000000000000000000000".to_owned(),
        asking: "run_00000000000000000000000000000000".to_owned(),
        question: theirs.question.clone(),
        capability: "nothing_of_the_kind".to_owned(),
        capability_id: "cap_00000000000000000000000000000000".to_owned(),
        trace: format!("{}{}", &theirs.trace[..theirs.trace.len() - 4], "0000"),
        mock: format!("{}{}", &theirs.mock[..theirs.mock.len() - 4], "0000"),
        dry_run: format!("{}{}", &theirs.dry_run[..theirs.dry_run.len() - 4], "0000"),
    };
    let requests = |of: &Belongings| -> Vec<(&'static str, String, Value)> {
        let mut all = vec![
            ("GET", format!("/api/runs/{}", of.run), Value::Null),
            ("GET", format!("/api/runs/{}/calls", of.run), Value::Null),
            ("GET", format!("/api/runs/{}/calls/1", of.run), Value::Null),
            ("POST", format!("/api/runs/{}/abort", of.asking), json!({})),
            ("POST", format!("/api/approvals/{}/{}", of.asking, of.question), json!({"approved": true})),
            ("GET", format!("/api/trace/{}", of.trace), Value::Null),
            ("GET", format!("/api/trace/{}/invocation", of.trace), Value::Null),
            ("GET", format!("/api/mocks/{}", of.mock), Value::Null),
            ("GET", format!("/events?run={}", of.run), Value::Null),
        ];
        for name in [&of.capability, &of.capability_id] {
            all.extend([
                ("GET", format!("/api/capabilities/{name}"), Value::Null),
                ("GET", format!("/api/capabilities/{name}/definition"), Value::Null),
                ("POST", format!("/api/capabilities/{name}/rename"), json!({"name": "mine"})),
                ("POST", format!("/api/capabilities/{name}/merge"), json!({"from": "nothing"})),
                ("POST", format!("/api/capabilities/{name}/forget-intent"), json!({"intent": "x"})),
                ("POST", format!("/api/capabilities/{name}/cache"), json!({"ttlMs": 1000})),
                ("POST", format!("/api/capabilities/{name}/publish"), json!({"visibility": "public"})),
                ("DELETE", format!("/api/capabilities/{name}"), Value::Null),
                ("POST", "/api/execute".to_owned(), json!({"capability": name})),
                ("POST", "/api/dry-run".to_owned(), json!({"capability": name})),
                ("GET", format!("/api/traces/{name}"), Value::Null),
                ("GET", format!("/api/graph/node?id={name}"), Value::Null),
                ("GET", format!("/api/graph/ways?from={name}&to=fs:read"), Value::Null),
            ]);
        }
        all
    };
    let blurred = |text: &str, of: &Belongings| {
        let names =
            [&of.run, &of.asking, &of.capability_id, &of.capability, &of.trace, &of.mock, &of.dry_run];
        names.iter().fold(text.to_owned(), |text, name| text.replace(name.as_str(), "ID"))
    };
    for ((method, path, body), (_, absent, no_body)) in requests(&theirs).into_iter().zip(requests(&nothing))
    {
        let (status, told) = crate::door::status_of(&served, &bob, method, &path, &text(&body));
        let (same, as_well) = crate::door::status_of(&served, &bob, method, &absent, &text(&no_body));
        assert!(matches!(status, 400 | 404), "{method} {path}: {status} {told}");
        assert_eq!((status, blurred(&told, &theirs)), (same, blurred(&as_well, &nothing)), "{method} {path}");
    }
    let tools = |of: &Belongings| -> Vec<(&'static str, Value)> {
        vec![
            ("pml_continue", json!({"workflow_id": of.asking, "approved": true})),
            ("pml_continue", json!({"workflow_id": of.run})),
            ("pml_abort", json!({"workflow_id": of.asking})),
            ("pml_replan", json!({"workflow_id": of.asking, "new_requirement": "more"})),
            ("pml_replan", json!({"workflow_id": of.asking, "dagStructure": {"tasks": []}})),
            ("pml_get_task_result", json!({"workflow_id": of.run, "task_id": "n1"})),
            ("pml_execute", json!({"explorePath": of.dry_run, "confirm": true})),
            (
                "pml_execute",
                json!({"intent": "x", "implementation": {"type": "capability", "id": of.capability}}),
            ),
            (
                "pml_execute",
                json!({"intent": "x", "implementation": {"type": "capability", "id": of.capability_id}}),
            ),
        ]
    };
    for ((tool, arguments), (_, absent)) in tools(&theirs).into_iter().zip(tools(&nothing)) {
        let told = call(&served, &bob, tool, &arguments);
        let as_well = call(&served, &bob, tool, &absent);
        assert_eq!(told["isError"], true, "{tool} {arguments}: {told}");
        assert_eq!(
            blurred(&told.to_string(), &theirs),
            blurred(&as_well.to_string(), &nothing),
            "{tool} {arguments}"
        );
    }
    for list in [
        "/api/runs",
        "/api/approvals",
        "/api/capabilities",
        "/api/capabilities?published=true",
        "/api/traces",
        "/api/mocks",
        "/api/rules",
        "/api/audit",
        "/api/cache",
        "/api/savings",
        "/api/graph",
        "/api/graph/layout?expand=all",
        "/api/graph/search?q=note",
        "/api/speculation",
        "/api/servers",
        "/api/quarantine",
    ] {
        let told = api(&served, &bob, "GET", list, &Value::Null);
        assert_eq!(told.status, 200, "{list}: {}", told.body);
        for name in [
            &theirs.run,
            &theirs.asking,
            &theirs.capability,
            &theirs.capability_id,
            &theirs.trace,
            &theirs.mock,
        ] {
            assert!(!told.body.contains(name.as_str()), "{list} tells of {name}: {}", told.body);
        }
        assert!(!told.body.contains("Ann") && !told.body.contains("ann"), "{list}: {}", told.body);
    }
    let found = call(&served, &bob, "pml_discover", &json!({"intent": "read the note of Ann"}));
    assert!(!found.to_string().contains(&theirs.capability), "{found}");
    let recalled = call(&served, &bob, "pml_execute", &json!({"intent": "read the note of Ann"}));
    assert!(!recalled.to_string().contains("ann-secret"), "{recalled}");
    // All of it is still there, and nothing of it was answered or ended.
    let run = api(&served, &ann, "GET", &format!("/api/runs/{}", theirs.asking), &Value::Null).json();
    assert_eq!(run["status"], "waiting", "{run}");
    let path = format!("/api/capabilities/{}", theirs.capability);
    assert_eq!(api(&served, &ann, "GET", &path, &Value::Null).status, 200);
}

fn text(body: &Value) -> String {
    if body.is_null() { String::new() } else { body.to_string() }
}
