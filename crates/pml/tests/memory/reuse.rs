//! The second time works: of the tasks in `tests/reuse` a sample, asked again with other values and in other words.
//!
//! `PML_REUSE_TASKS` sets how many tasks are taken (40 otherwise); `cargo xtask soak reuse` takes all.

use std::process::Command;

use serde_json::Value;

use crate::harness::{material, node};

/// Tasks in the sample: enough to have some of every group, in half a minute with a debug build.
const SAMPLE: &str = "40";

#[test]
fn second_intents_run_right_or_not_at_all_where_values_are_written_into_programs() {
    check("reuse/tasks.jsonl", 0.35);
}

#[test]
fn second_intents_run_right_or_not_at_all_where_values_are_given_as_context() {
    check("reuse/tasks-args.jsonl", 0.35);
}

/// Nothing runs wrong, no distractor runs, and at least this share of second intents runs right on the intent alone. The
/// share is a floor against regressions, not an aim: what is measured lies above it, so that one task more or less does not
/// matter.
#[track_caller]
fn check(tasks: &str, least_right: f64) {
    let count = std::env::var("PML_REUSE_TASKS").unwrap_or_else(|_| SAMPLE.to_owned());
    let mut command = Command::new(node());
    command.arg(material("reuse/run.mjs")).args(["--pml", env!("CARGO_BIN_EXE_pml"), "--sample", &count]);
    let output = command.arg("--json").arg("--tasks").arg(material(tasks)).output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{complaints}"));
    let failures: Vec<&str> =
        report["failures"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let right = report["seconds"]["rightShare"].as_f64().unwrap();
    assert!(right >= least_right, "only {right} of the second intents ran right: {report}");
}
