//! Exploring and confirming by the other doors: the terminal and the API, and the figures of recorded results.

use serde_json::{Value, json};

use crate::harness::{Home, eventually};
use crate::place::{ALL, api};

fn home() -> Home {
    let home = Home::new(ALL);
    std::fs::write(home.path("notes.txt"), "hello").unwrap();
    home
}

const INTENT: &str = "read notes.txt and delete notes.txt";

#[test]
fn the_terminal_explores_and_runs_the_path_with_a_number() {
    let home = home();
    let told = home.run(&["explore", INTENT]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.stdout.contains("fs:delete") && told.stderr.contains("--run 1"), "{told:?}");
    assert!(home.path("notes.txt").exists());
    let none = home.run(&["explore", INTENT, "--run", "9"]);
    assert!(none.code != 0 && none.stderr.contains("there is no path 9"), "{none:?}");
    assert!(home.path("notes.txt").exists());
    let explored: Value = serde_json::from_str(&home.run(&["explore", INTENT, "--json"]).stdout).unwrap();
    let paths = explored["viablePaths"].as_array().unwrap();
    let deletes = |path: &Value| path["path"].to_string().contains("fs:delete");
    let number = (1 + paths.iter().position(deletes).unwrap()).to_string();
    let ran = home.run(&["explore", INTENT, "--run", &number, "--yes"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!home.path("notes.txt").exists(), "{ran:?}");
}

#[test]
fn the_api_explores_and_confirms() {
    let home = home();
    let served = home.serve(&[]);
    let post = |path: &str, body: Value| api(&served, "POST", path, Some(body));
    let (status, told) = post("/api/explore", json!({ "intent": INTENT, "maxPaths": 5 }));
    assert_eq!(status, 200, "{told:#}");
    let paths = told["exploration"]["viablePaths"].as_array().unwrap();
    let path = paths.iter().find(|path| path["path"].to_string().contains("fs:delete"));
    let id = path.unwrap_or_else(|| panic!("{told:#}"))["pathId"].clone();
    for (body, said) in [
        (json!({ "explorePath": id }), "`confirm`"),
        (json!({ "confirm": true }), "`explorePath`"),
        (json!({ "capability": "x", "explorePath": id, "confirm": true }), "exactly one"),
        (json!({}), "exactly one"),
    ] {
        let (status, refused) = post("/api/execute", body);
        assert!(status == 400 && refused.to_string().contains(said), "{status} {refused}");
    }
    let (status, missing) = post("/api/execute", json!({ "explorePath": "dry_0000", "confirm": true }));
    assert_eq!(status, 404, "{missing}");
    assert!(home.path("notes.txt").exists(), "nothing was run yet");
    let (status, ran) = post("/api/execute", json!({ "explorePath": id, "confirm": true }));
    assert_eq!(status, 200, "{ran}");
    assert!(ran["run"].as_str().is_some_and(|run| run.starts_with("run_")), "{ran}");
    eventually("it is run", || !home.path("notes.txt").exists());
}

#[test]
fn lookups_of_recorded_results_are_in_the_metrics() {
    let served_home = home();
    let served = served_home.serve(&[]);
    let figure = |series: &str| -> f64 {
        let text = metrics(&served);
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{series} ")));
        line.unwrap_or_else(|| panic!("no {series} in {text}")).parse().unwrap()
    };
    assert!(figure("pml_mock_hit_rate").is_nan() && figure("pml_mock_curation_accuracy").is_nan());
    // Recorded by a run, then found by a dry run that calls nothing.
    let code = "return (await mcp.math.evaluate({ expression: args.expression })).value";
    let create = json!({ "intent": "compute it", "name": "compute_it", "code": code });
    assert_eq!(api(&served, "POST", "/api/capabilities", Some(create)).0, 200);
    let run = json!({ "capability": "compute_it", "args": { "expression": "6 * 7" } });
    assert_eq!(api(&served, "POST", "/api/execute", Some(run)).0, 200);
    eventually("the result is recorded", || figure("pml_mocks") >= 1.0);
    for expression in ["6 * 7", "1 + 1"] {
        let args = json!({ "expression": expression });
        let dry = json!({ "capability": "compute_it", "args": args, "mode": "mocked" });
        let (status, told) = api(&served, "POST", "/api/dry-run", Some(dry));
        assert_eq!(status, 200, "{told}");
    }
    let lookups: f64 = ["equal", "similar", "missing"]
        .map(|outcome| figure(&format!("pml_mock_lookups{{outcome=\"{outcome}\"}}")))
        .iter()
        .sum();
    assert!(lookups >= 1.0, "{}", metrics(&served));
    assert!(figure("pml_mock_hit_rate") > 0.0, "{}", metrics(&served));
}

/// What `GET /metrics` says.
fn metrics(served: &crate::harness::Served) -> String {
    use std::io::{Read as _, Write as _};
    let authority = served.url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp")).unwrap();
    let mut stream = std::net::TcpStream::connect(authority).unwrap();
    let head = format!(
        "GET /metrics HTTP/1.0\r\nHost: {authority}\r\nAuthorization: Bearer {}\r\n\r\n",
        served.token
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}
