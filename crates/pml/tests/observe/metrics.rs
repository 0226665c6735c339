//! `GET /metrics`: every line by the rules of the text format, and figures that equal what was done.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::door::{ALL, call, get, run, send};
use crate::harness::{Home, Served, eventually};

/// The samples by name and labels.
type Samples = BTreeMap<String, f64>;

/// The numbers of `GET /api/metrics`, by name and labels as `/metrics` writes them.
fn summary(served: &Served) -> Samples {
    let (status, body) = get(served, "/api/metrics");
    assert_eq!(status, 200, "{body}");
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    let mut samples = Samples::new();
    for item in body["items"].as_array().unwrap() {
        let name = item["name"].as_str().unwrap();
        for sample in item["samples"].as_array().unwrap() {
            let labels = sample["labels"].as_object().unwrap().iter();
            let labels: Vec<String> = labels.map(|(label, value)| format!("{label}={value}")).collect();
            let series = |suffix: &str| match labels.as_slice() {
                [] => format!("{name}{suffix}"),
                labels => format!("{name}{suffix}{{{}}}", labels.join(",")),
            };
            let number = |value: &serde_json::Value| value.as_f64().unwrap_or(f64::NAN);
            if item["kind"] == "histogram" {
                samples.insert(series("_count"), number(&sample["count"]));
                samples.insert(series("_sum"), number(&sample["sum"]));
            } else {
                samples.insert(series(""), number(&sample["value"]));
            }
        }
    }
    samples
}

/// Reads the text format 0.0.4 and refuses everything that is not in it.
#[track_caller]
fn parse(text: &str) -> Samples {
    assert!(text.ends_with('\n'), "the last line must end");
    let (mut samples, mut seen) = (Samples::new(), BTreeSet::new());
    let mut family: Option<(String, String)> = None;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap_or_else(|| panic!("no text: {line}"));
            assert!(!help.is_empty() && is_name(name), "{line}");
            assert!(seen.insert(name.to_owned()), "{name} comes twice");
            let kind = lines.next().and_then(|line| line.strip_prefix(&format!("# TYPE {name} ")));
            let kind = kind.unwrap_or_else(|| panic!("no type: {name}"));
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{kind}");
            family = Some((name.to_owned(), kind.to_owned()));
            continue;
        }
        let (name, kind) = family.as_ref().unwrap_or_else(|| panic!("before any family: {line}"));
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value: {line}"));
        let (sample, labels) = match series.split_once('{') {
            Some((sample, labels)) => (sample, labels.strip_suffix('}').unwrap_or_else(|| panic!("{line}"))),
            None => (series, ""),
        };
        let suffix = sample.strip_prefix(name.as_str()).unwrap_or_else(|| panic!("not of {name}: {line}"));
        let suffixes: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        assert!(suffixes.contains(&suffix), "{line}");
        for label in labels.split("\",").filter(|label| !label.is_empty()) {
            let (label, value) = label.split_once("=\"").unwrap_or_else(|| panic!("{line}"));
            assert!(is_name(label) && !label.contains(':'), "{line}");
            assert!(!value.trim_end_matches('"').contains(['"', '\n']), "{line}");
        }
        let value: f64 = match value {
            "NaN" => f64::NAN,
            "+Inf" => f64::INFINITY,
            number => number.parse().unwrap_or_else(|_| panic!("{line}")),
        };
        assert!(kind == "gauge" || value >= 0.0, "{line}");
        assert!(samples.insert(series.to_owned(), value).is_none(), "twice: {line}");
    }
    check_histograms(&samples);
    samples
}

fn is_name(name: &str) -> bool {
    let rest = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == ':';
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') && name.chars().all(rest)
}

/// Buckets grow, and the last one equals the count.
fn check_histograms(samples: &Samples) {
    let infinite = samples.iter().filter(|(series, _)| series.contains("le=\"+Inf\""));
    for (series, all) in infinite {
        let (name, labels) = series.split_once("_bucket{").unwrap();
        let labels = labels.split(",le=").next().unwrap();
        assert_eq!(samples[&format!("{name}_count{{{labels}}}")].total_cmp(all), std::cmp::Ordering::Equal);
        let bound = |series: &str| {
            let bound = series.split("le=\"").nth(1)?.split('"').next()?;
            Some(if bound == "+Inf" { f64::INFINITY } else { bound.parse().unwrap() })
        };
        let prefix = format!("{name}_bucket{{{labels},");
        let mut buckets: Vec<(f64, f64)> = samples
            .iter()
            .filter(|(series, _)| series.starts_with(&prefix))
            .map(|(series, count)| (bound(series).unwrap(), *count))
            .collect();
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        assert!(buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{series}: {buckets:?}");
    }
}

#[track_caller]
fn scrape(served: &Served) -> Samples {
    let (status, text) = get(served, "/metrics");
    assert_eq!(status, 200, "{text}");
    parse(&text)
}

#[test]
fn figures_equal_what_was_done() {
    let home = Home::new(ALL);
    std::fs::write(home.path("a.txt"), "one").unwrap();
    let served = home.serve(&[]);
    let before = scrape(&served);
    let zero = [
        "capabilities_searched_total",
        "capabilities_matched_total",
        "capabilities_executed_total",
        "capabilities_cache_hits",
        "suggestions_generated_total",
        "suggestions_accepted_total",
        "patterns_detected_total",
        "capabilities_promoted_total",
    ];
    for name in zero {
        assert_eq!(before.get(name), Some(&0.0), "{name}");
    }
    for name in ["capabilities_match_rate", "capabilities_success_rate", "promotion_rate"] {
        assert!(before[name].is_nan(), "{name}: nothing to divide by");
    }

    // Three runs of one program, of which the first makes a capability, and one that fails.
    let code = "pml.hint({ name: 'reckoner' }); await mcp.math.evaluate({ expression: args.x });\n\
                return (await mcp.math.evaluate({ expression: args.x })).value;";
    let context = json!({"x": "2 * 4"});
    for _ in 0..3 {
        let implementation = json!({"type": "code", "code": code});
        let reply = call(
            &served,
            "pml_execute",
            &json!({"intent": "compute twice", "implementation": implementation, "context": context, "options": {"cache": false}}),
        );
        assert_eq!(reply["structuredContent"]["result"], 8, "{reply}");
    }
    run(&served, "read nothing", "return await mcp.fs.read({ path: 'none.txt' })");
    // By its name, twice; the second time the cache has it.
    let named = json!({"intent": "compute it", "context": context, "implementation": {"type": "capability", "id": "reckoner"}});
    for _ in 0..2 {
        let reply = call(&served, "pml_execute", &named);
        assert_eq!(reply["structuredContent"]["result"], 8, "{reply}");
    }
    // A tool called by name, outside any program.
    let direct = call(&served, "fs__stat", &json!({"path": "a.txt"}));
    assert_eq!(direct["isError"], false, "{direct}");
    call(&served, "pml_discover", &json!({"intent": "compute twice"}));
    call(&served, "pml_discover", &json!({"intent": "read", "filter": {"type": "tool"}}));
    let done = scrape(&served);
    let expect = |name: &str, expected: f64| {
        let found = done.get(name).copied();
        assert_eq!(found, Some(expected), "{name}\n{done:#?}");
    };
    expect("pml_runs_started_total{kind=\"code\"}", done["pml_runs_ended_total{status=\"done\"}"] + 1.0);
    expect("pml_runs_ended_total{status=\"failed\"}", 1.0);
    expect("pml_tool_calls_total{server=\"fs\",status=\"error\"}", 1.0);
    expect(
        "pml_tool_calls_total{server=\"math\",status=\"ok\"}",
        2.0 * done["pml_runs_ended_total{status=\"done\"}"],
    );
    expect("pml_tool_calls_total{server=\"fs\",status=\"ok\"}", 1.0);
    expect("pml_tool_call_duration_seconds_count{server=\"math\"}", 8.0);
    expect("pml_tool_call_duration_seconds_count{server=\"fs\"}", 2.0);
    expect("capabilities_searched_total", 1.0);
    expect("capabilities_matched_total", 1.0);
    expect("capabilities_match_rate", 1.0);
    expect("capabilities_promoted_total", 1.0);
    expect("patterns_detected_total", 6.0);
    expect("suggestions_generated_total", 0.0);
    expect("promotion_rate", 1.0 / 6.0);
    expect("pml_cache_lookups_total{outcome=\"hit\"}", 1.0);
    expect("capabilities_cache_hits", 1.0);
    expect("capabilities_executed_total", 1.0);
    expect("capabilities_success_rate", 1.0);
    expect("pml_sandbox_workers_total{event=\"taken\"}", done["pml_runs_started_total{kind=\"code\"}"]);
    expect("pml_runs_open{state=\"running\"}", 0.0);
    assert_eq!(done.keys().filter(|series| series.contains("build_info")).count(), 1);
    // The JSON has the same figures, apart from the buckets, where nothing is recorded between the two.
    let (mut done, mut told) = (scrape(&served), summary(&served));
    eventually("nothing changes meanwhile", || {
        let before = std::mem::replace(&mut done, scrape(&served));
        let still = format!("{before:?}") == format!("{done:?}");
        if !still {
            told = summary(&served);
        }
        still
    });
    let without_buckets: Samples =
        done.into_iter().filter(|(series, _)| !series.contains("_bucket{")).collect();
    assert_eq!(told.keys().collect::<Vec<_>>(), without_buckets.keys().collect::<Vec<_>>());
    for (series, value) in &told {
        let other = without_buckets[series];
        assert!(*value == other || value.is_nan() && other.is_nan(), "{series}: {value} and {other}");
    }
}

#[test]
fn a_suggestion_that_a_run_follows_is_accepted_once() {
    let home = Home::new(ALL);
    let served = home.serve(&[]);
    // Over HTTP nothing but its name tells a session.
    let context = json!({"sessionId": "one"});
    let suggestion = json!({"intent": "read and parse a JSON file", "context": context});
    let reply = call(&served, "pml_execute", &suggestion);
    let dag = &reply["structuredContent"]["suggestions"]["suggestedDag"]["dagStructure"];
    assert!(dag.to_string().contains("json:parse"), "{reply}");
    let counted = || {
        let samples = scrape(&served);
        (samples["suggestions_generated_total"], samples["suggestions_accepted_total"])
    };
    assert_eq!(counted(), (1.0, 0.0));
    let execute = |code: &str| {
        let implementation = json!({"type": "code", "code": code});
        let asked = json!({"intent": "do it", "implementation": implementation, "context": context});
        let reply = call(&served, "pml_execute", &asked);
        assert_eq!(reply["structuredContent"]["status"], "success", "{reply}");
    };
    execute("return (await mcp.math.evaluate({ expression: '1 + 1' })).value");
    assert_eq!(counted(), (1.0, 0.0), "something else is no answer to it");
    for _ in 0..2 {
        execute("return await mcp.json.parse({ json: '{}' })");
        assert_eq!(counted(), (1.0, 1.0));
    }
}

#[test]
fn approvals_are_counted_and_access_is_that_of_a_program() {
    let home = Home::new("[approvals]\nby = \"human\"\n[builtin.fs]\nroot = \".\"\n");
    let served = home.serve(&[]);
    let asked = run(&served, "write", "await mcp.fs.write({ path: 'b.txt', content: 'x' })");
    assert_eq!(asked["status"], "approval_required", "{asked}");
    let samples = scrape(&served);
    assert_eq!(samples.get("pml_approvals_total{event=\"asked\"}"), Some(&1.0), "{samples:#?}");
    assert_eq!(samples.get("pml_questions_open"), Some(&1.0));
    assert_eq!(samples.get("pml_runs_open{state=\"waiting\"}"), Some(&1.0));
    assert_eq!(send(&served, "GET /metrics", &[], "").0, 401);
    assert_eq!(send(&served, "GET /metrics", &[("Authorization", "Bearer wrong")], "").0, 401);
    let bearer = format!("Bearer {}", served.token);
    let (_, head, _) = send(&served, "GET /metrics", &[("Authorization", &bearer)], "");
    assert!(head.to_ascii_lowercase().contains("content-type: text/plain; version=0.0.4"), "{head}");
}
