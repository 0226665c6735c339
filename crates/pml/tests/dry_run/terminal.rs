//! `pml execute --dry-run`.

use std::path::Path;

use serde_json::Value;

use crate::harness::Home;

fn example() -> Home {
    let home = Home::new("[permissions]\nfs = { approval_mode = \"auto\" }\n");
    std::fs::create_dir_all(home.path("work/data")).unwrap();
    std::fs::write(home.path("work/data/sales.csv"), "day,amount\nmon,10.50\ntue,4\n").unwrap();
    std::fs::write(
        home.path("work/data/tickets.json"),
        r#"[{"title":"a","state":"open"},{"title":"b","state":"done"}]"#,
    )
    .unwrap();
    home
}

fn run(home: &Home, arguments: &[&str]) -> (Option<i32>, String, String) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/weekly-report.ts");
    let mut all = vec!["execute", "weekly report", "--code"];
    let file = file.to_str().unwrap().to_owned();
    all.push(&file);
    all.extend(["--args", r#"{"timezone": "Europe/Paris"}"#]);
    all.extend(arguments);
    let done = home.command(&all).current_dir(home.path("work")).output().unwrap();
    (done.status.code(), String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap())
}

#[test]
fn the_weekly_report_tells_what_it_would_write() {
    let home = example();
    let (code, told, errors) = run(&home, &["--dry-run"]);
    assert_eq!(code, Some(0), "{told}{errors}");
    assert!(told.contains("would create `reports/"), "{told}{errors}");
    assert!(told.contains("Sales: 14.50 in 2 orders"), "{told}");
    assert!(!home.path("work/reports").exists());
    let (code, json, errors) = run(&home, &["--dry-run", "--json"]);
    assert_eq!(code, Some(0), "{errors}");
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["effects"].as_array().unwrap().len(), 1, "{report:#}");
    let (code, _, errors) = run(&home, &[]);
    assert_eq!(code, Some(0), "{errors}");
    let path = report["effects"][0]["path"].as_str().unwrap();
    let written = std::fs::metadata(home.path("work").join(path)).unwrap().len();
    assert!(
        report["effects"][0]["text"].as_str().unwrap().contains(&format!("({written} bytes)")),
        "{report:#}"
    );
}

#[test]
fn mocked_it_reads_nothing() {
    let home = Home::new("");
    std::fs::create_dir_all(home.path("work")).unwrap();
    let (_, told, errors) = run(&home, &["--dry-run", "--mocked", "--json", "--seed", "3"]);
    let report: Value = serde_json::from_str(&told).unwrap_or_else(|_| panic!("{told}{errors}"));
    let calls = report["capturedCalls"].as_array().unwrap();
    assert!(calls.iter().all(|call| call["origin"] != "real"), "{report:#}");
}
