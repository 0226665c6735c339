//! The second time works: of the tasks in `tests/reuse` a sample, asked again with other values and in other words.
//!
//! `PML_REUSE_TASKS` sets how many tasks are taken (24 otherwise); `cargo xtask soak reuse` takes all.

use std::process::Command;

use serde_json::Value;

use crate::harness::{material, node};

/// Tasks in the sample: enough to have some of every group, in half a minute with a debug build.
const SAMPLE: &str = "24";

/// The least share of second intents that run right on the intent alone. A floor against regressions, not an aim: the
/// share that is measured lies above it, so that one task more or less in the sample does not matter.
const LEAST_RIGHT: f64 = 0.10;

#[test]
fn second_intents_run_right_or_not_at_all_and_distractors_do_not_run() {
    let count = std::env::var("PML_REUSE_TASKS").unwrap_or_else(|_| SAMPLE.to_owned());
    let mut command = Command::new(node());
    command.arg(material("reuse/run.mjs")).args(["--pml", env!("CARGO_BIN_EXE_pml")]);
    let output = command.args(["--sample", &count, "--json"]).output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{complaints}"));
    let failures: Vec<&str> =
        report["failures"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let right = report["seconds"]["rightShare"].as_f64().unwrap();
    assert!(right >= LEAST_RIGHT, "only {right} of the second intents ran right: {report}");
}
