//! Budgets: what is refused, how that is told, and that nothing is lost.

use pml_model::{KeyBudget, Role};
use serde_json::{Value, json};

use crate::door::{ALL, api, call, key, key_with_budget, run, run_with};
use crate::harness::{Home, eventually};

#[test]
fn one_run_too_many_is_told_when_to_come_back_and_the_others_go_on() {
    let home = Home::new(ALL);
    let few = key_with_budget(&home, "ann", KeyBudget { runs_at_once: Some(2), ..KeyBudget::default() });
    let served = home.serve(&[]);
    let detach = json!({"cache": false, "detach": true});
    let mut runs = Vec::new();
    for name in ["first", "second"] {
        // A program that does nothing but sleep is put aside and is under way no more, so it has a call that goes on.
        let begun = run_with(&served, &few, name, "while (true) await mcp.time.now({});", &detach);
        runs.push(begun["workflowId"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned());
    }
    let refused = run(&served, &few, "third", "return 3;");
    let error = &refused["error"];
    assert_eq!((&error["code"], &error["retryAfter"]), (&json!("BUDGET_EXHAUSTED"), &json!(2)), "{refused}");
    assert!(error["message"].as_str().unwrap().contains("2 runs at once"), "{refused}");
    for id in &runs {
        let aborted = call(&served, &few, "pml_abort", &json!({"workflow_id": id, "reason": "enough"}));
        assert_eq!(aborted["structuredContent"]["error"]["code"], "ABORTED", "{aborted}");
    }
    eventually("room", || run(&served, &few, "fourth", "return 4;")["result"] == 4);
    eventually("the count", || {
        let listed: Value = serde_json::from_str(&home.run(&["keys", "list", "--json"]).stdout).unwrap();
        listed[0]["use"]["refusedToday"].as_u64().is_some_and(|refused| refused >= 1)
    });
}

#[test]
fn the_api_answers_429_with_retry_after() {
    let home = Home::new(ALL);
    let owner = key(&home, "ann", Role::Member);
    let spent = KeyBudget { stored_bytes: Some(1), ..KeyBudget::default() };
    let poor = key_with_budget(&home, "ann", spent);
    let served = home.serve(&[]);
    let new = json!({"intent": "say one", "name": "say_one", "code": "return args.x ?? 1;"});
    assert_eq!(api(&served, &owner, "POST", "/api/capabilities", &new).status, 200);
    // The first run is admitted: nothing is stored yet. Then its record counts.
    let execute = json!({"capability": "say_one", "args": {"x": 7_000_000}});
    let mut number = 0;
    eventually("the limit", || {
        number += 1;
        let execute = json!({"capability": "say_one", "args": {"x": number}});
        api(&served, &poor, "POST", "/api/execute", &execute).status == 429
    });
    assert!(number > 1, "the first was admitted");
    let refused = api(&served, &poor, "POST", "/api/execute", &execute);
    assert_eq!((refused.status, refused.header("Retry-After")), (429, Some("60")), "{}", refused.body);
    let error = &refused.json()["error"];
    assert_eq!(error["code"], "BUDGET_EXHAUSTED");
    assert!(error["hint"].as_str().unwrap().contains("nothing was run"), "{error}");
    assert_eq!(
        api(&served, &owner, "POST", "/api/execute", &execute).status,
        200,
        "each key has its own budget"
    );
    let metrics = || api(&served, &served.token, "GET", "/metrics", &Value::Null).body;
    eventually("the figure", || {
        let line = metrics()
            .lines()
            .find(|line| line.starts_with("pml_key_refused_24h{key=\"2\"}"))
            .map(str::to_owned);
        line.is_some_and(|line| !line.ends_with(" 0"))
    });
}

#[test]
fn calls_beyond_the_budget_of_a_minute_wait_and_none_is_lost() {
    let home = Home::new(ALL);
    let slow = key_with_budget(&home, "ann", KeyBudget { calls_per_minute: Some(5), ..KeyBudget::default() });
    let served = home.serve(&[]);
    let code = "let n = 0; for (let i = 0; i < 8; i++) { await mcp.math.evaluate({ expression: '1+' + i }); n++; } return n;";
    let options = json!({"cache": false, "detach": true, "timeoutMs": 300000});
    let begun = run_with(&served, &slow, "count", code, &options);
    let id = begun["workflowId"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned();
    // Meanwhile, a call by name is refused rather than kept waiting. Where a new minute begins just then, more are made.
    eventually("a refusal", || {
        let direct = call(&served, &slow, "time:now", &json!({}));
        direct["isError"] == true && direct.to_string().contains("5 calls per minute")
    });
    let path = format!("/api/runs/{id}");
    // A minute at most, which is the patience of one wait.
    let ended = || api(&served, &slow, "GET", &path, &Value::Null).json()["status"] == "done";
    if !(0..400).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(250));
        ended()
    }) {
        panic!("the run goes on in the next minute");
    }
    let calls = api(&served, &slow, "GET", &path, &Value::Null).json();
    assert_eq!(calls["result"]["preview"], 8, "{calls}");
}

#[test]
fn the_reads_of_dry_runs_count_and_are_in_the_audit_log() {
    let home = Home::new(ALL);
    let few = key_with_budget(&home, "ann", KeyBudget { calls_per_minute: Some(2), ..KeyBudget::default() });
    let served = home.serve(&[]);
    let code = "for (let n = 0; n < 2; n++) await mcp.math.evaluate({ expression: '1+' + n }); return 1;";
    let dry = || run_with(&served, &few, "count", code, &json!({"dryRun": true, "timeoutMs": 300000}));
    let first = dry();
    assert_eq!((&first["status"], &first["result"]), (&json!("dry_run"), &json!(1)), "{first}");
    // Where a new minute begins just then, one more is made.
    eventually("a refusal", || dry()["error"]["code"] == "BUDGET_EXHAUSTED");
    eventually("an exploration is refused", || {
        dry();
        let explored = call(&served, &few, "pml_explore", &json!({"intent": "evaluate 1 + 1"}));
        explored["structuredContent"]["error"]["code"] == "BUDGET_EXHAUSTED"
            || explored.to_string().contains("BUDGET_EXHAUSTED")
    });
    let reads = || -> Vec<Value> {
        let rows: Value = serde_json::from_str(&home.run(&["audit", "list", "--json"]).stdout).unwrap();
        let rows = rows.as_array().unwrap().iter();
        rows.filter(|row| row["kind"] == "dry run read").map(|row| row["body"].clone()).collect()
    };
    eventually("the reads are in the log", || reads().len() >= 2);
    for read in reads() {
        assert_eq!((&read["tool"], &read["decision"]), (&json!("math:evaluate"), &json!("auto")), "{read}");
        assert!(read["key"].is_i64() && read["arguments"].is_string(), "{read}");
    }
}

#[test]
fn processor_time_is_counted_and_limited() {
    let home = Home::new(ALL);
    let budget = KeyBudget { cpu_seconds_per_day: Some(1), ..KeyBudget::default() };
    let busy = key_with_budget(&home, "ann", budget);
    let served = home.serve(&[]);
    let code = "let sum = 0; for (let i = 0; i < 3e6; i++) sum += i % 7; return sum;";
    eventually("the limit", || {
        let done = run(&served, &busy, "count for long", code);
        done["error"]["code"] == "BUDGET_EXHAUSTED"
            && done["error"]["message"].as_str().unwrap().contains("1 s of processor time")
    });
    eventually("the figure", || {
        let listed: Value = serde_json::from_str(&home.run(&["keys", "list", "--json"]).stdout).unwrap();
        let used = listed[0]["use"]["cpuSecondsToday"].as_f64().unwrap();
        (1.0..30.0).contains(&used)
    });
}
