//! The HTTP API of the real binary: runs and their calls, discovery, servers, rules, and who may do what.

use std::time::{Duration, Instant};

use pml_model::{Digest, Principal, RunState};
use pml_store::{JournalEntry, JournalEntryKind, RunChange, Urgency};
use serde_json::{Value, json};

use crate::harness::{PATIENCE, Served, eventually, node};
use crate::place::{Place, approval, call, now};
use crate::wire::{Person, Reply, authority, send, viewer};

/// A program with the bearer token.
pub struct Program<'a>(pub &'a Served);

impl Program<'_> {
    pub fn ask(&self, method: &str, path: &str, body: &str) -> Reply {
        let token = format!("Bearer {}", self.0.token);
        let mut headers = vec![("Host", authority(self.0)), ("Authorization", token.as_str())];
        if !body.is_empty() {
            headers.push(("Content-Type", "application/json"));
        }
        send(self.0, method, path, &headers, body)
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        let reply = self.ask("GET", path, "");
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        let json = reply.json();
        assert_eq!(json["schemaVersion"], 1, "{path}: {json}");
        json
    }

    /// A document that is not a reply of ours.
    #[track_caller]
    pub fn get_unversioned(&self, path: &str) -> Value {
        let reply = self.ask("GET", path, "");
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        reply.json()
    }

    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Value {
        let reply = self.ask("POST", path, &body.to_string());
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        reply.json()
    }

    /// Waits until a run has another status than `running`, and shows it.
    #[track_caller]
    fn settled(&self, run: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let shown = self.get(&format!("/api/runs/{run}"));
            if shown["status"] != "running" {
                return shown;
            }
            assert!(Instant::now() < until, "{shown}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Runs a program through an agent and gives the id of its run.
pub fn execute(place: &Place, intent: &str, code: &str, context: &Value) -> String {
    let mut agent = place.home.stdio(&[]);
    let implementation = json!({"type": "code", "code": code});
    let told = agent.call(
        "pml_execute",
        &json!({"intent": intent, "implementation": implementation, "context": context}),
    );
    told["structuredContent"]["workflowId"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
}

const DAYS: &str = "
    console.log('from ' + args.from);
    const days = await mcp.time.diff({ from: args.from, to: '2026-01-31' });
    if (args.from) { console.warn('so it is'); }
    return days;";

#[test]
fn a_run_is_listed_found_and_shown_with_its_calls() {
    let place = Place::new();
    let days = execute(&place, "days until the end of January", DAYS, &json!({"from": "2026-01-01"}));
    let failing = execute(
        &place,
        "read what is not there",
        "return await mcp.fs.read({ path: 'nothing.txt' })",
        &json!({}),
    );
    let served = place.serve();
    let program = Program(&served);
    let listed = program.get("/api/runs");
    let ids = |page: &Value| -> Vec<String> {
        page["items"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&listed), [failing.as_str(), days.as_str()], "newest first");
    let (second, first) = (&listed["items"][0], &listed["items"][1]);
    assert_eq!(
        (&first["status"], &first["kind"], &first["calls"], &first["failedCalls"]),
        (&json!("done"), &json!("program"), &json!(1), &json!(0))
    );
    assert!(first["capability"]["name"].is_string(), "what it became: {first}");
    assert!(first["durationMs"].as_i64().unwrap() >= 0 && first["endedAt"].is_i64(), "{first}");
    assert_eq!((&second["status"], &second["failedCalls"]), (&json!("failed"), &json!(1)));
    assert!(second["error"]["message"].as_str().unwrap().contains("nothing.txt"), "{second}");

    let capability = first["capability"]["name"].as_str().unwrap();
    for (filter, expected) in [
        ("status=failed", vec![&failing]),
        ("status=waiting", vec![]),
        ("q=JANUARY", vec![&days]),
        ("q=100%25", vec![]),
        (&format!("q={}", &days[4..20]), vec![&days]),
        ("tool=time:diff", vec![&days]),
        ("tool=time:now", vec![]),
        (&format!("capability={capability}"), vec![&days]),
        ("capability=nothing", vec![]),
        ("tool=&status=&q=", vec![&failing, &days]),
    ] {
        assert_eq!(
            ids(&program.get(&format!("/api/runs?{filter}"))).iter().collect::<Vec<_>>(),
            expected,
            "{filter}"
        );
    }
    let page = program.get("/api/runs?limit=1");
    let cursor = page["nextCursor"].as_str().unwrap();
    let next = program.get(&format!("/api/runs?limit=1&cursor={cursor}"));
    assert_eq!((ids(&page), ids(&next)), (vec![failing.clone()], vec![days.clone()]));
    assert_eq!(next.get("nextCursor"), None);

    let shown = program.get(&format!("/api/runs/{days}"));
    assert_eq!((&shown["source"], &shown["language"]), (&json!(DAYS), &json!("ts")));
    assert_eq!(shown["arguments"]["preview"], json!({"from": "2026-01-01"}));
    assert_eq!(shown["tools"][0]["id"], "time:diff");
    assert_eq!(shown["decisions"][0]["taken"], "true", "{shown}");
    let console: Vec<(&str, &str)> = shown["console"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| {
            assert!(line["atMs"].as_i64().unwrap() >= shown["startedAt"].as_i64().unwrap());
            (line["level"].as_str().unwrap(), line["text"].as_str().unwrap())
        })
        .collect();
    assert_eq!(console, [("log", "from 2026-01-01"), ("warn", "so it is")]);
    assert!(shown["structure"]["nodes"].is_array() && shown["result"]["preview"] != Value::Null, "{shown}");
    assert_eq!(shown["spans"].as_array().unwrap().len(), 1, "one process: {shown}");
    assert_eq!(shown["spans"][0]["to"], shown["endedAt"]);

    let calls = program.get(&format!("/api/runs/{days}/calls"));
    let one = &calls["items"][0];
    assert_eq!(
        (&one["call"], &one["tool"], &one["status"], &one["nodeId"]),
        (&json!(1), &json!("time:diff"), &json!("ok"), &json!("n1"))
    );
    assert!(one["argumentBytes"].as_u64().unwrap() > 10 && one["resultBytes"].as_u64().unwrap() > 0, "{one}");
    let contents = program.get(&format!("/api/runs/{days}/calls/1"));
    assert_eq!(contents["arguments"], json!({"from": "2026-01-01", "to": "2026-01-31"}));
    assert_eq!(contents["truncated"], json!({"arguments": false, "result": false}));
    assert!(contents["result"].is_object(), "{contents}");
    let failed = program.get(&format!("/api/runs/{failing}/calls"));
    assert_eq!(failed["items"][0]["status"], "error", "{failed}");
    assert!(failed["items"][0]["error"]["message"].is_string(), "{failed}");
}

#[test]
fn what_cannot_be_read_and_what_belongs_to_others_is_told_in_one_shape() {
    let place = Place::new();
    let (foreign, _) =
        place.ask_as(&Principal("ann".to_owned()), "secret", approval(vec![call("fs:write", "{}")]));
    let (own, _) = place.ask("mine", approval(vec![call("fs:write", "{}")]));
    let served = place.serve();
    let program = Program(&served);
    let unknown = "run_00000000000000000000000000000000";
    for path in ["", "/calls", "/calls/1"] {
        let of = |run: &str| {
            let reply = program.ask("GET", &format!("/api/runs/{run}{path}"), "");
            (reply.status, reply.body.replace(run, "RUN"))
        };
        assert_eq!(of(foreign.as_str()).0, 404, "{path}");
        assert_eq!(of(foreign.as_str()), of(unknown), "{path}");
    }
    assert!(!program.ask("GET", "/api/runs", "").body.contains(foreign.as_str()));
    let abort = |run: &str| program.ask("POST", &format!("/api/runs/{run}/abort"), "{}");
    assert_eq!(abort(foreign.as_str()).status, 404);
    for (method, path, body, status) in [
        ("GET", "/api/runs?limit=0".to_owned(), "", 400),
        ("GET", "/api/runs?limit=201".to_owned(), "", 400),
        ("GET", "/api/runs?limit=x".to_owned(), "", 400),
        ("GET", "/api/runs?cursor=x".to_owned(), "", 400),
        ("GET", "/api/runs?status=x".to_owned(), "", 400),
        ("GET", "/api/runs?other=x".to_owned(), "", 400),
        ("GET", format!("/api/runs/{own}/calls?limit=2001"), "", 400),
        ("GET", format!("/api/runs/{own}/calls?cursor=-1"), "", 400),
        ("GET", format!("/api/runs/{own}/calls/1"), "", 404),
        ("GET", format!("/api/runs/{own}/calls/x"), "", 404),
        ("GET", "/api/runs/%ff".to_owned(), "", 404),
        ("GET", "/api/nothing".to_owned(), "", 404),
        ("DELETE", "/api/runs".to_owned(), "", 405),
        ("POST", "/api/discover".to_owned(), "{", 400),
        ("POST", "/api/discover".to_owned(), r#"{"intent": ""}"#, 400),
        ("POST", "/api/discover".to_owned(), r#"{"intent": "x", "limit": 0}"#, 400),
        ("POST", "/api/execute".to_owned(), r#"{"capability": "nothing"}"#, 404),
        ("POST", "/api/execute".to_owned(), r#"{"capability": "x", "args": []}"#, 404),
        ("POST", "/api/dry-run".to_owned(), "{}", 400),
        ("GET", "/api/policy/fs:nothing".to_owned(), "", 404),
        ("GET", "/api/policy/fs".to_owned(), "", 404),
        ("DELETE", "/api/rules/7".to_owned(), "", 404),
        ("DELETE", "/api/rules/x".to_owned(), "", 404),
        ("GET", "/api/savings?days=0".to_owned(), "", 400),
        ("POST", "/api/servers/nothing/restart".to_owned(), "", 404),
        ("GET", "/api/servers/nothing".to_owned(), "", 404),
    ] {
        let reply = program.ask(method, &path, body);
        let json = reply.json();
        assert_eq!((reply.status, &json["schemaVersion"]), (status, &json!(1)), "{method} {path}: {json}");
        assert!(json["error"]["code"].is_string() && json["error"]["message"].is_string(), "{path}: {json}");
    }
    let text = [("Content-Type", "text/plain"), ("Host", authority(&served))];
    let token = format!("Bearer {}", served.token);
    let headers = [text[0], text[1], ("Authorization", token.as_str())];
    assert_eq!(send(&served, "POST", "/api/discover", &headers, "{}").status, 415);
    assert_eq!(program.get(&format!("/api/runs/{own}"))["question"]["summary"], "asks to call fs:write");
}

#[test]
fn a_run_is_started_waits_is_aborted_and_says_so() {
    let place = Place::new();
    let run = place.wants_to_write("notes.md");
    let served = place.serve();
    let (program, viewer) = (Program(&served), viewer(&served));
    let waiting = program.get(&format!("/api/runs/{run}"));
    assert_eq!((&waiting["status"], &waiting["question"]["kind"]), (&json!("waiting"), &json!("approval")));
    assert_eq!(waiting["questions"][0]["kind"], "approval", "{waiting}");
    assert_eq!(waiting["spans"], json!([]), "no process has worked on it: {waiting}");
    let path = format!("/api/runs/{run}/abort");
    assert_eq!(viewer.post(&path, &[], "{}").status, 401);
    let aborted = program.post(&path, &json!({"reason": "not today"}));
    assert_eq!((&aborted["status"], &aborted["error"]["code"]), (&json!("aborted"), &json!("ABORTED")));
    assert!(aborted["error"]["message"].as_str().unwrap().contains("not today"), "{aborted}");
    assert_eq!(program.post(&path, &json!({}))["status"], "aborted", "it stays so");
    assert_eq!(program.ask("POST", &path, "").status, 200, "the body may be left out");

    let days = execute(&place, "days until the end of January", DAYS, &json!({"from": "2026-01-01"}));
    let capability = program.get(&format!("/api/runs/{days}"))["capability"]["name"].clone();
    let started =
        program.post("/api/execute", &json!({"capability": capability, "args": {"from": "2026-01-30"}}));
    let ended = program.settled(started["run"].as_str().unwrap());
    assert_eq!((&ended["status"], &ended["kind"]), (&json!("done"), &json!("capability")), "{ended}");
    assert_eq!(ended["capability"]["name"], capability);
    let person = Person::sign_in(&served);
    let body = json!({"capability": capability, "args": {"from": "2026-01-29"}}).to_string();
    assert_eq!(viewer.post("/api/execute", &[], &body).status, 401);
    assert_eq!(person.post("/api/execute", &[], &body).status, 200);
}

#[test]
fn a_failed_run_is_one_of_its_capability() {
    let place = Place::new();
    let good = execute(&place, "days until the end of January", DAYS, &json!({"from": "2026-01-01"}));
    let bad = execute(&place, "days until the end of January", DAYS, &json!({"from": "no day at all"}));
    let served = place.serve();
    let program = Program(&served);
    let shown = |run: &str| program.get(&format!("/api/runs/{run}"));
    let name = shown(&good)["capability"]["name"].as_str().unwrap().to_owned();
    assert_eq!(
        (&shown(&bad)["status"], &shown(&bad)["capability"]["name"]),
        (&json!("failed"), &json!(name))
    );
    let listed = program.get(&format!("/api/runs?capability={name}"));
    let ids: Vec<&str> =
        listed["items"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [bad.as_str(), good.as_str()], "{listed}");
}

#[test]
fn an_approved_run_shows_who_answered_and_when() {
    let place = Place::new();
    let run = place.wants_to_write("notes.md");
    let served = place.serve();
    let (program, person) = (Program(&served), Person::sign_in(&served));
    let asked = program.get("/api/approvals");
    let question = asked["approvals"][0]["questionId"].as_str().unwrap().to_owned();
    let answer = person.post(&format!("/api/approvals/{run}/{question}"), &[], r#"{"approved": true}"#);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let until = Instant::now() + PATIENCE;
    let shown = loop {
        let shown = program.get(&format!("/api/runs/{run}"));
        if shown["status"] == "done" {
            break shown;
        }
        assert!(Instant::now() < until, "{shown}");
        std::thread::sleep(Duration::from_millis(20));
    };
    let told = &shown["questions"][0];
    assert_eq!((&told["id"], &told["answer"]), (&json!(question), &json!("approved")));
    assert!(told["askedAt"].as_i64().unwrap() <= told["answeredAt"].as_i64().unwrap(), "{told}");
    assert!(told["by"].is_string(), "{told}");
    assert_eq!(shown["spans"].as_array().unwrap().len(), 1, "{shown}");
    let audit = program.get("/api/audit?limit=1");
    let older = program.get(&format!("/api/audit?cursor={}", audit["nextCursor"].as_str().unwrap()));
    let all: Vec<&Value> =
        audit["items"].as_array().unwrap().iter().chain(older["items"].as_array().unwrap()).collect();
    assert!(all.windows(2).all(|pair| pair[0]["entry"].as_i64() > pair[1]["entry"].as_i64()), "newest first");
    assert!(all.iter().any(|entry| entry["kind"] == "asked" && entry["run"] == run.as_str()), "{all:?}");
}

#[test]
fn a_run_that_was_killed_and_resumed_is_one_run_with_two_periods() {
    let place = Place::new();
    let mut agent = place.home.stdio(&[]);
    let code = "let n = 0; for (let i = 0; i < 900; i++) { await mcp.time.now({}); n++; } return n;";
    let told = agent.call(
        "pml_execute",
        &json!({"intent": "count", "implementation": {"type": "code", "code": code}, "options": {"detach": true}}),
    );
    let run = told["structuredContent"]["workflowId"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
    agent.child.kill().unwrap();
    agent.child.wait().unwrap();
    let served = place.serve();
    let program = Program(&served);
    let until = Instant::now() + PATIENCE;
    let shown = loop {
        let shown = program.get(&format!("/api/runs/{run}"));
        if shown["status"] == "done" {
            break shown;
        }
        assert!(Instant::now() < until, "{shown}");
        std::thread::sleep(Duration::from_millis(50));
    };
    let spans = shown["spans"].as_array().unwrap();
    assert_eq!((spans.len(), &shown["calls"]), (2, &json!(900)), "{spans:?}");
    assert!(spans[0]["to"].as_i64() <= spans[1]["from"].as_i64(), "{spans:?}");
    assert_eq!(program.get("/api/runs")["items"].as_array().unwrap().len(), 1);
}

/// A finished run with so many calls, straight in the store.
fn run_with_calls(place: &Place, calls: u32) -> String {
    let (run, question) = place.ask("many calls", approval(vec![call("fs:write", "{}")]));
    let store = place.store();
    drop(question);
    let begun = now();
    let owner = pml_store::ProcessIdentity::current().unwrap();
    let claim = store.claim_run(&Principal::local(), &run, &owner, i64::MAX, begun).unwrap();
    let pml_store::Claim::Taken(lease) = claim else { panic!("{claim:?}") };
    let entry = |kind, call, at, body: String| JournalEntry {
        kind,
        call: Some(call),
        frame: 0,
        node: Some("n1".to_owned()),
        tool: (kind == JournalEntryKind::Issued).then(|| "time:now".to_owned()),
        digest: (kind == JournalEntryKind::Issued).then(|| Digest::of(b"{}")),
        at,
        body: body.into_bytes(),
    };
    let (told, hears) = std::sync::mpsc::channel();
    for batch in (1..=calls).collect::<Vec<_>>().chunks(1000) {
        let entries = batch.iter().flat_map(|call| {
            let at = begun + i64::from(*call);
            let result = json!({"result": {"call": call, "value": {"n": call, "text": "x".repeat(200)}}});
            [
                entry(JournalEntryKind::Issued, *call, at, "{}".to_owned()),
                entry(JournalEntryKind::Delivered, *call, at + 5, result.to_string()),
            ]
        });
        let tell = told.clone();
        store.append_journal(&lease, entries.collect(), None, Urgency::Soon, move |done| {
            tell.send(done).unwrap();
        });
        hears.recv().unwrap().unwrap();
    }
    let end = RunChange { state: Some(RunState::Done), at: begun + 30_000, ..RunChange::default() };
    store.append_journal(&lease, Vec::new(), Some(end), Urgency::Durable, move |done| {
        told.send(done).unwrap();
    });
    hears.recv().unwrap().unwrap();
    run.as_str().to_owned()
}

/// The bytes that the gateway has read from files, whether or not they were in memory.
fn bytes_read(served: &Served) -> u64 {
    let counts = std::fs::read_to_string(format!("/proc/{}/io", served.child.id())).unwrap();
    counts.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

#[test]
fn a_page_of_a_run_with_many_calls_reads_no_more_than_itself() {
    let place = Place::new();
    let many = run_with_calls(&place, 20_000);
    let served = place.serve();
    let program = Program(&served);
    // The bytes that the gateway reads for a request. Its background tasks read now and then too: the least of some counts.
    let reads = |path: &str| {
        let count = |_| {
            let before = bytes_read(&served);
            program.get(path);
            bytes_read(&served) - before
        };
        (0..5).map(count).min().unwrap()
    };
    let (mut path, mut seen) = (format!("/api/runs/{many}/calls?limit=2000"), Vec::new());
    loop {
        let page = program.get(&path);
        seen.extend(page["items"].as_array().unwrap().iter().map(|call| call["call"].as_u64().unwrap()));
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        path = format!("/api/runs/{many}/calls?limit=2000&cursor={cursor}");
    }
    assert_eq!(seen, (1..=20_000).collect::<Vec<u64>>());
    let all = reads(&format!("/api/runs/{many}/calls?limit=2000"));
    assert!(all > 400_000, "a page of 2,000 calls is read from the database: {all} bytes");
    for path in ["/calls?limit=50", "/calls?limit=50&cursor=19900", "/calls/19999", ""] {
        let one = reads(&format!("/api/runs/{many}{path}"));
        assert!(one < 200_000, "`{path}` reads {one} bytes");
    }
    let one = program.get(&format!("/api/runs/{many}/calls/19999"));
    assert_eq!((&one["result"]["n"], &one["durationMs"]), (&json!(19_999), &json!(5)));
}

#[test]
fn discovery_tells_why_and_what_would_run() {
    let place = Place::new();
    let served = place.serve();
    let (program, viewer) = (Program(&served), viewer(&served));
    let found = program.post("/api/discover", &json!({"intent": "read a file", "limit": 5}));
    let first = &found["results"][0];
    assert_eq!(first["id"], "fs:read", "{found}");
    assert!(
        !first["reasons"].as_array().unwrap().is_empty() && first["score"].as_f64().unwrap() > 0.0,
        "{first}"
    );
    assert_eq!(viewer.post("/api/discover", &[], r#"{"intent": "read a file"}"#).status, 200);

    for from in ["2026-01-01", "2026-01-05", "2026-01-09"] {
        execute(&place, &format!("days from {from} until the end of January"), DAYS, &json!({"from": from}));
    }
    let until = Instant::now() + PATIENCE;
    let would_run = loop {
        let found = program
            .post("/api/discover", &json!({"intent": "days from 2026-01-20 until the end of January"}));
        if found["wouldRun"].is_object() {
            break found["wouldRun"].clone();
        }
        assert!(Instant::now() < until, "{found}");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(would_run["capability"]["id"].as_str().unwrap().starts_with("cap_"), "{would_run}");
    assert_eq!(would_run["arguments"]["from"], "2026-01-20", "{would_run}");
    let reasons = would_run["reasons"].as_array().unwrap();
    assert_eq!(would_run["ready"].as_bool().unwrap(), reasons.is_empty(), "{would_run}");

    let report = program
        .post("/api/dry-run", &json!({"code": "return await mcp.fs.write({ path: 'a.txt', content: 'x' })"}));
    assert_eq!(report["report"]["capturedCalls"][0]["tool"], "write", "{report}");
    assert!(!place.home.path("a.txt").exists() && program.get("/api/runs?q=a.txt")["items"] == json!([]));
    let dry = r#"{"code": "return 1"}"#;
    assert_eq!(viewer.post("/api/dry-run", &[], dry).status, 401, "a dry run makes real reads");
}

#[test]
fn servers_policy_rules_cache_and_savings_are_shown() {
    let place = Place::new();
    execute(&place, "days until the end of January", DAYS, &json!({"from": "2026-01-01"}));
    let served = place.serve();
    let (program, viewer) = (Program(&served), viewer(&served));
    let servers = program.get("/api/servers");
    let time = servers["items"].as_array().unwrap().iter().find(|server| server["name"] == "time").unwrap();
    assert_eq!((&time["state"], &time["transport"]), (&json!("built_in"), &json!("builtin")));
    let until = Instant::now() + PATIENCE;
    loop {
        let shown = program.get("/api/servers/time");
        assert_eq!(shown["toolCount"], shown["tools"].as_array().unwrap().len(), "{shown}");
        let diff = shown["tools"].as_array().unwrap().iter().find(|tool| tool["id"] == "time:diff").unwrap();
        assert_eq!((&diff["policy"]["verdict"], &diff["quarantined"]), (&json!("auto"), &json!(false)));
        // What was called is learned in the background.
        if diff["calls"] == 1 {
            break;
        }
        assert!(Instant::now() < until, "{diff}");
        std::thread::sleep(Duration::from_millis(50));
    }
    let policy = program.get("/api/policy/fs:write");
    assert_eq!((&policy["mode"], &policy["tool"]), (&json!("hil"), &json!("fs:write")));
    assert!(
        policy["attributes"].as_array().unwrap().iter().any(|one| one["name"] == "approval_mode"),
        "{policy}"
    );
    assert_eq!(program.get("/api/rules")["items"], json!([]));
    let cache = program.get("/api/cache");
    assert!(cache["entries"].is_u64() && cache["hits"].is_u64() && cache["items"].is_array(), "{cache}");
    assert_eq!(viewer.get("/api/cache").status, 200);
    let delete = |headers: &[(&str, &str)]| send(&served, "DELETE", "/api/cache", headers, "").status;
    assert_eq!(delete(&[("Host", authority(&served)), ("Cookie", viewer.cookie())]), 401);
    assert_eq!(program.ask("DELETE", "/api/cache", "").json()["dropped"], cache["entries"]);
    let savings = program.get("/api/savings?days=7");
    assert_eq!(savings["series"].as_array().unwrap().len(), 1, "{savings}");
    assert_eq!(savings["series"][0]["runs"], 1);
    for figure in ["tokens", "cacheMs", "speculationMs"] {
        assert!(savings["methods"][figure].is_string(), "{savings}");
    }
}

#[test]
fn a_new_command_is_accepted_as_shown_and_a_server_is_restarted() {
    let place = Place::new();
    let home = &place.home;
    let served = place.serve();
    let (program, person) = (Program(&served), Person::sign_in(&served));
    // The server says in the description of its tool which process it is.
    let script = crate::quarantine::SERVER.replace(
        "else if (method === 'tools/list') reply({ result: { tools } });",
        "else if (method === 'tools/list') { appendFileSync(process.argv[3], `${process.pid}\\n`); reply({ result: { tools } }); }",
    );
    let script = script.replace("import { readFileSync }", "import { appendFileSync, readFileSync }");
    std::fs::write(home.path("server.mjs"), script).unwrap();
    let tools = json!([{"name": "add", "description": "adds a note", "inputSchema": {"type": "object"}}]);
    std::fs::write(home.path("tools.json"), tools.to_string()).unwrap();
    home.configure(&format!(
        "[approvals]\nby = \"human\"\n[servers.notes]\ncommand = {:?}\nargs = [{:?}, {:?}, {:?}]\nenv = {{ NOTES = \"here\" }}\n",
        node(),
        home.path("server.mjs"),
        home.path("tools.json"),
        home.path("starts")
    ));
    let notes = || {
        let servers = program.get("/api/servers");
        servers["items"].as_array().unwrap().iter().find(|server| server["name"] == "notes").cloned()
    };
    eventually("the configuration is read again", || notes().is_some());
    let waiting = notes().unwrap();
    assert_eq!(waiting["state"], "awaiting_acceptance", "{waiting}");
    let pending = &waiting["pendingCommand"];
    assert!(pending["command"].as_str().unwrap().contains("server.mjs"), "{pending}");
    assert_eq!(pending["variables"], json!(["NOTES"]));
    let restart = |who: &Person<'_>| who.post("/api/servers/notes/restart", &[], "");
    assert_eq!(restart(&person).status, 400, "it waits to be accepted");
    let accept = "/api/servers/notes/accept";
    let body = json!({"launch": pending["launch"]}).to_string();
    assert_eq!(program.ask("POST", accept, &body).status, 403, "a program is no person");
    assert_eq!(viewer(&served).post(accept, &[], &body).status, 401);
    let other = json!({"launch": Digest::of(b"another command")}).to_string();
    assert_eq!(person.post(accept, &[], &other).status, 409, "only what was shown");
    assert!(!home.path("starts").exists(), "nothing was started");
    let accepted = person.post(accept, &[], &body);
    assert_eq!((accepted.status, &accepted.json()["state"]), (200, &json!("idle")), "{}", accepted.body);

    let starts = || std::fs::read_to_string(home.path("starts")).unwrap_or_default().lines().count();
    for expected in [1, 2] {
        let started = restart(&person);
        assert_eq!((started.status, &started.json()["state"]), (200, &json!("ready")), "{}", started.body);
        assert_eq!(starts(), expected, "another process");
    }
    eventually("its tools are known", || {
        program.get("/api/servers/notes")["tools"][0]["id"] == "notes:add"
            && notes().unwrap()["toolCount"] == 1
    });
    assert_eq!(viewer(&served).post("/api/servers/notes/restart", &[], "").status, 401);
}
