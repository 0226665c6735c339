//! Capabilities by hand, on the terminal and over HTTP.

use serde_json::{Value, json};

use crate::harness::Home;
use crate::place::{ALL, Place, api};

/// What is told of every capability that has worked.
const RECORD: [&str; 25] = [
    "id",
    "name",
    "description",
    "intents",
    "source",
    "codeHash",
    "identity",
    "toolsUsed",
    "parametersSchema",
    "staticStructure",
    "learning",
    "usageCount",
    "successCount",
    "failureCount",
    "successRate",
    "avgDurationMs",
    "lastUsed",
    "promotedAt",
    "createdAt",
    "origin",
    "owner",
    "state",
    "cacheConfig",
    "contains",
    "cache",
];

#[test]
fn they_are_listed_shown_renamed_merged_and_deleted_on_the_terminal() {
    let mut place = Place::start(ALL);
    std::fs::write(place.home.path("a.txt"), "x").unwrap();
    place.run("read the notes", "return mcp.fs.read({ path: 'a.txt' })", &json!({}));
    place.run("sum it up", "return mcp.math.evaluate({ expression: '1 + 1' })", &json!({}));
    place.settled();
    let run = |args: &[&str]| place.home.run(args);
    let listed = run(&["capabilities", "list"]).stdout;
    assert!(listed.contains("readNotes") && listed.contains("active"), "{listed}");
    let shown = run(&["capabilities", "show", "readNotes"]);
    for part in
        ["readNotes cap_", "worked 1 of 1 times", "calls fs:read", "\"a.txt\"", "ways it went", "latest runs"]
    {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    for fact in [
        "used: 1 times, last 2",
        "success rate: 1.00",
        "first worked: 2",
        "comes from: a run that worked",
        "results kept: for 1800 s, 10 at most; found by params_hash; dropped on tool_schema_change; 0 there, given 0 times",
        "owner: local",
        "structure: n1 fs:read",
    ] {
        assert!(shown.stdout.contains(fact), "{fact}: {}", shown.stdout);
    }
    let renamed = run(&["capabilities", "rename", "readNotes", "notes"]);
    assert_eq!(renamed.code, 0, "{}", renamed.stderr);
    let bad = run(&["capabilities", "rename", "notes", "two words"]);
    assert!(bad.code == 2 && bad.stderr.contains("cannot be the name"), "{}", bad.stderr);
    let merged = run(&["capabilities", "merge", "notes", "sumUp"]);
    assert_eq!(merged.code, 0, "{}", merged.stderr);
    let left: Value = serde_json::from_str(&run(&["capabilities", "list", "--json"]).stdout).unwrap();
    assert_eq!((left.as_array().unwrap().len(), left[0]["name"].as_str()), (1, Some("notes")), "{left}");
    assert_eq!(run(&["capabilities", "delete", "notes"]).code, 0);
    let gone = run(&["capabilities", "show", "notes"]);
    assert!(gone.code == 1 && gone.stderr.contains("there is no capability `notes`"), "{}", gone.stderr);
}

#[test]
fn one_that_is_written_down_can_be_run() {
    let home = Home::new(ALL);
    std::fs::write(home.path("double.ts"), "return mcp.math.evaluate({ expression: `${args.n} * 2` })")
        .unwrap();
    let made =
        home.run(&["capabilities", "create", "double a number", "--name", "double", "--code", "double.ts"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let run = home.run(&["execute", "--capability", "double", "--args", r#"{"n": 21}"#, "--json"]);
    let told: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
    assert_eq!(told["result"]["value"], 42, "{told}");
    let again = home.run(&["capabilities", "create", "double it", "--code", "double.ts"]);
    assert!(again.code == 2 && again.stderr.contains("is there already"), "{}", again.stderr);
    std::fs::write(home.path("other.ts"), "return 1").unwrap();
    let taken = home.run(&["capabilities", "create", "x", "--name", "double", "--code", "other.ts"]);
    assert!(
        taken.code == 2 && taken.stderr.contains("another capability is called `double`"),
        "{}",
        taken.stderr
    );
    let tool =
        home.run(&["capabilities", "create", "what time is it", "--tool", "time:now", "--defaults", "{}"]);
    assert_eq!(tool.code, 0, "{}", tool.stderr);
    let wrong = home.run(&["capabilities", "create", "x", "--tool", "nobody:nothing"]);
    assert_eq!(wrong.code, 1, "{}", wrong.stderr);
}

#[test]
fn traces_are_read_a_page_at_a_time() {
    let mut place = Place::start(ALL);
    let mut ids = Vec::new();
    for n in 0..7 {
        let code = "return mcp.math.evaluate({ expression: `${args.n} + 1` })";
        let told = place.run("add one", code, &json!({ "n": n }));
        ids.push(told["workflowId"].as_str().unwrap().replacen("run_", "trace_", 1));
    }
    let other = place.run("the time", "return mcp.time.now({})", &json!({}));
    place.settled();
    let capability =
        place.capabilities().iter().find(|one| one.statistics.usage_count == 7).unwrap().procedure.id.clone();
    let served = place.home.serve(&[]);
    let pages = |route: &str, order: &str| {
        let (mut all, mut cursor, mut sizes) = (Vec::new(), String::new(), Vec::new());
        loop {
            let (status, page) = api(&served, "GET", &format!("{route}?limit=3&order={order}{cursor}"), None);
            assert_eq!(status, 200, "{page}");
            let traces = page["traces"].as_array().unwrap();
            all.extend(traces.iter().map(|trace| trace["id"].as_str().unwrap().to_owned()));
            sizes.push(traces.len());
            match page["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return (all, sizes),
            }
        }
    };
    let newest: Vec<String> = ids.iter().rev().cloned().collect();
    let of_capability = format!("/api/traces/{capability}");
    assert_eq!(pages(&of_capability, "newest"), (newest.clone(), vec![3, 3, 1]));
    let (by_priority, sizes) = pages(&of_capability, "priority");
    assert_eq!(
        (by_priority[0].as_str(), &sizes),
        (ids[0].as_str(), &vec![3, 3, 1]),
        "the first was the newest way"
    );
    let sorted = |mut all: Vec<String>| {
        all.sort();
        all
    };
    assert_eq!(sorted(by_priority), sorted(ids.clone()), "each of them once");
    let (all, sizes) = pages("/api/traces", "newest");
    assert_eq!(all[0], other["workflowId"].as_str().unwrap().replacen("run_", "trace_", 1));
    assert_eq!((&all[1..], sizes), (newest.as_slice(), vec![3, 3, 2]));

    let (status, wrong) = api(&served, "GET", "/api/traces?cursor=trace_none", None);
    assert_eq!((status, wrong["error"]["code"].as_str()), (400, Some("INVALID_REQUEST")), "{wrong}");
    let (status, page) = api(&served, "GET", "/api/traces?limit=0", None);
    assert_eq!(
        (status, page["traces"].as_array().map(Vec::len)),
        (200, Some(1)),
        "a page has something: {page}"
    );
}

#[test]
fn they_are_served_over_http() {
    let mut place = Place::start(ALL);
    std::fs::write(place.home.path("a.txt"), "x").unwrap();
    let told = place.run("read the notes", "return mcp.fs.read({ path: 'a.txt' })", &json!({}));
    place.settled();
    let served = place.home.serve(&[]);
    let ask = |method: &str, path: &str, body: Option<Value>| api(&served, method, path, body);
    let (status, all) = ask("GET", "/api/capabilities?recent=true", None);
    assert_eq!((status, all["capabilities"][0]["name"].as_str()), (200, Some("readNotes")), "{all}");
    let id = told["capabilityId"].as_str().unwrap();
    let (status, one) = ask("GET", &format!("/api/capabilities/{id}"), None);
    assert_eq!((status, one["capability"]["usageCount"].as_u64()), (200, Some(1)), "{one}");
    assert_eq!(one["capability"]["successRate"], 1.0, "{one}");
    let shown = place.home.run(&["capabilities", "show", id, "--json"]).stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    for field in RECORD {
        assert!(one["capability"].get(field).is_some(), "`{field}` is told over HTTP: {one}");
        assert_eq!(shown[field], one["capability"][field], "`{field}` on the terminal");
    }
    let (status, traces) = ask("GET", &format!("/api/traces/{id}?order=priority&limit=5"), None);
    assert_eq!((status, traces["traces"].as_array().map(Vec::len)), (200, Some(1)), "{traces}");
    let trace = traces["traces"][0]["id"].as_str().unwrap();
    let (status, one) = ask("GET", &format!("/api/trace/{trace}"), None);
    assert_eq!((status, one["trace"]["status"].as_str()), (200, Some("success")), "{one}");
    let new = json!({ "intent": "add one", "name": "addOne", "code": "return mcp.math.evaluate({ expression: `${args.n} + 1` })" });
    let (status, made) = ask("POST", "/api/capabilities", Some(new));
    assert_eq!((status, made["capability"]["origin"].as_str()), (200, Some("manual")), "{made}");
    let (status, renamed) =
        ask("POST", "/api/capabilities/addOne/rename", Some(json!({ "name": "plusOne" })));
    assert_eq!((status, renamed["capability"]["name"].as_str()), (200, Some("plusOne")), "{renamed}");
    let (status, gone) = ask("DELETE", "/api/capabilities/plusOne", None);
    assert_eq!(status, 200, "{gone}");
    let (status, missing) = ask("GET", "/api/capabilities/plusOne", None);
    assert_eq!((status, missing["error"]["code"].as_str()), (404, Some("NOT_FOUND")), "{missing}");
    let (status, bad) = ask("POST", "/api/capabilities", Some(json!({ "intent": "x" })));
    assert_eq!(status, 400, "{bad}");
}

#[test]
fn a_program_given_in_place_of_an_intent_is_run_and_learned() {
    let home = Home::new(ALL);
    std::fs::write(home.path("a.txt"), "one two").unwrap();
    let told = home.run(&["execute", "(await mcp.fs.read({ path: 'a.txt' })).content"]);
    assert_eq!((told.code, told.stdout.trim()), (0, "one two"), "{told:?}");
    let told = home.run(&["capabilities", "list", "--recent", "--json"]);
    let all: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!((&all[0]["description"], &all[0]["intents"]), (&json!("calls fs:read"), &json!([])), "{all}");

    let told =
        home.run(&["execute", "const a = await mcp.fs.read({ path: 'a.txt' }); return a.content.length"]);
    assert_eq!(told.stdout.trim(), "7", "{told:?}");
    let told = home.run(&["execute", "await mcp.nothing.here({})"]);
    assert_eq!(told.code, 1, "{told:?}");
    assert!(told.stderr.contains("`nothing"), "the program is refused: {}", told.stderr);
    for intent in ["use mcp to read a.txt", "mcp", "1 + 1"] {
        let told = home.run(&["execute", intent]);
        assert!(told.stderr.contains("nothing was run"), "{intent}: {told:?}");
    }
}
