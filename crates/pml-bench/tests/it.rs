//! Tests of the real `pml-bench`, with the `pml` that the same build left beside it.
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at what they do not expect")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

use serde_json::{Value, json};

const BENCH: &str = env!("CARGO_BIN_EXE_pml-bench");

/// The `pml` beside `pml-bench`. Cargo builds it for these tests only where the package `pml` is tested too, so it is
/// compared with its sources where Cargo lists them: a measurement of an old program would pass for one of the present.
fn pml() -> PathBuf {
    let pml = Path::new(BENCH).with_file_name("pml");
    let built = modified(&pml).unwrap_or_else(|| {
        panic!("{} is missing: run `cargo build --package pml`, or `cargo test --workspace`", pml.display())
    });
    // `cargo build` writes the list of sources, `cargo test` does not.
    let sources = std::fs::read_to_string(pml.with_extension("d")).unwrap_or_default();
    let sources = sources.split_once(": ").map_or("", |(_, sources)| sources);
    let newer = sources.split_whitespace().find(|source| modified(Path::new(source)) > Some(built));
    assert_eq!(newer, None, "{} is older than this source: run `cargo build --package pml`", pml.display());
    pml
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).ok()?.modified().ok()
}

fn run(program: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().env("NO_COLOR", "1");
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The names of the figures that a measurement prints.
fn figures(arguments: &[&str]) -> Vec<(String, String)> {
    pml();
    let ended = run(Path::new(BENCH), arguments);
    assert_eq!(ended.status.code(), Some(0), "{}{}", text(&ended.stdout), text(&ended.stderr));
    let figures: Vec<Value> = serde_json::from_slice(&ended.stdout).unwrap();
    let member = |figure: &Value, name: &str| figure[name].as_str().unwrap().to_owned();
    figures.iter().map(|figure| (member(figure, "what"), member(figure, "measured"))).collect()
}

#[test]
fn the_gateway_is_measured_with_the_pml_beside() {
    let names: Vec<String> =
        figures(&["gateway", "--calls", "20", "--json"]).into_iter().map(|(what, _)| what).collect();
    assert_eq!(
        names,
        [
            "one call, direct, median / p95",
            "one call, through the gateway, median / p95",
            "added by the gateway, median",
            "100 calls at once, each 0 ms at the server: gateway / direct",
            "100 calls at once, each 10 ms at the server: gateway / direct",
            "the same program printing its version, median",
            "start to first `tools/list`, 20 servers, 500 tools, median",
            "resident after listing and discovering, 500 tools",
        ]
    );
}

#[test]
fn programs_are_run_by_workers_of_the_pml_beside() {
    let data = tempfile::tempdir().unwrap();
    let attacks = r#"{"id": "sum", "source": "1+1", "required": "`2`"}
{"id": "endless", "source": "while(true){}", "required": "TIMEOUT"}
"#;
    std::fs::write(data.path().join("engine.jsonl"), attacks).unwrap();
    let figures = figures(&["--json", "attacks", "--data", &data.path().display().to_string()]);
    assert_eq!(figures[0], ("sum".to_owned(), "ok    VALUE 2".to_owned()));
    let (id, endless) = &figures[1];
    assert!(id == "endless" && endless.contains("TIMEOUT"), "{figures:?}");
}

#[test]
fn the_dashboard_is_measured_without_a_browser() {
    let small = ["--traces", "40", "--capabilities", "4", "--tools", "5", "--calls", "30", "--runs", "2"];
    let figures = figures(&[&["dashboard", "--no-browser", "--seconds", "1", "--json"], &small[..]].concat());
    let names: Vec<&str> = figures.iter().map(|(what, _)| what.as_str()).collect();
    let [all, routes @ .., alone] = names.as_slice() else { panic!("{names:?}") };
    assert_eq!(*all, "200 requests/s to the API while 20 programs run, median / p99");
    assert_eq!(*alone, "the discovery playground, alone, median");
    assert_eq!(routes.len(), 17, "{routes:?}");
    assert!(routes.contains(&"`/api/servers` of those, median / p99"), "{routes:?}");
}

#[test]
fn exploration_is_measured_on_data_sets() {
    let data = tempfile::tempdir().unwrap();
    let text = |names: &[&str]| {
        let fields: serde_json::Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
        json!({ "type": "object", "properties": fields, "required": names })
    };
    for (set, links) in [("nestful", "edges"), ("ultratool", "links")] {
        let find = json!({ "id": "find", "server": "shop", "name": "find_order",
            "description": "Find the order of a customer by email", "input_schema": text(&["email"]),
            "output_schema": text(&["order_number"]) });
        let cancel = json!({ "id": "cancel", "server": "shop", "name": "cancel_order",
            "description": "Cancel an order by its number", "input_schema": text(&["order_number"]),
            "output_schema": text(&["status"]) });
        let mut row = json!({ "id": "1", "seq": ["find", "cancel"], "gold": ["find", "cancel"],
            "query": "find the order of ann@example.com and cancel the order" });
        row[links] = if links == "edges" { json!([[0, 1]]) } else { json!([["find", "cancel"]]) };
        std::fs::create_dir(data.path().join(set)).unwrap();
        std::fs::write(data.path().join(set).join("tools.jsonl"), format!("{find}\n{cancel}\n")).unwrap();
        std::fs::write(data.path().join(set).join("dev.jsonl"), format!("{row}\n")).unwrap();
    }
    let data = data.path().display().to_string();
    let figures = figures(&["explore", "--rounds", "1", "--data", &data, "--json"]);
    let names: Vec<&str> = figures.iter().map(|(what, _)| what.as_str()).collect();
    assert_eq!(
        names,
        [
            "a dry run of 20 instant calls beside the run itself",
            "dry paths of a program in a second",
            "dry paths of three calls in a second",
            "a hypergraph of 5000 tools, built: median / slowest",
            "its 3 best hyperpaths, from cold",
            "the same after one changed weight",
            "nestful: node F1 / link F1 of the plain suggestion, 1 requests",
            "nestful: the same of the best explored path",
            "ultratool: node F1 / link F1 of the plain suggestion, 1 requests",
            "ultratool: the same of the best explored path",
        ]
    );
}

#[test]
fn pml_starts_it() {
    let help = run(&pml(), &["bench", "--help"]);
    assert_eq!(help.status.code(), Some(0));
    let said = text(&help.stdout);
    assert!(said.contains("Usage: pml-bench") && said.contains("dag-prediction"), "{said}");
    let wrong = run(&pml(), &["bench", "nothing"]);
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn a_measurement_of_pml_without_pml_says_what_is_missing() {
    let alone = tempfile::tempdir().unwrap();
    let program = alone.path().join("pml-bench");
    std::fs::copy(BENCH, &program).unwrap();
    for arguments in
        [&["gateway"][..], &["sandbox"], &["dag"], &["memory"], &["attacks", "--data", "nowhere"]]
    {
        let refused = run(&program, arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        let said = text(&refused.stderr);
        assert!(said.starts_with("error: there is no `pml` beside `pml-bench`"), "{arguments:?}: {said}");
        assert!(said.contains("cargo build --release --package pml"), "{arguments:?}: {said}");
    }
}
