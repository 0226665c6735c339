//! The measurement behind the headline of `docs/benchmarks.md` works: a few of its tasks, each arm with the right result.

use std::process::Command;

use serde_json::Value;

use crate::harness::{material, node};

#[test]
fn the_second_time_takes_less_than_the_first_and_the_first_less_than_all_tools() {
    let mut command = Command::new(node());
    command.arg(material("headline/run.mjs")).args(["--pml", env!("CARGO_BIN_EXE_pml")]);
    let output = command.args(["--tasks", "3", "--repeat", "1", "--json"]).output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaints}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["tasks"].as_array().unwrap().len(), 3, "{report}");
    assert_eq!(report["problems"], serde_json::json!([]), "{complaints}");
    for figure in ["once", "read"] {
        let tokens = |arm: &str| report["totals"][arm][figure].as_u64().unwrap();
        assert!(tokens("second") < tokens("first"), "{figure}: {report}");
        assert!(tokens("first") < tokens("plain"), "{figure}: {report}");
    }
}
