//! The log: text for people, and JSON objects for programs that collect logs.

use serde_json::{Value, json};

use crate::harness::Home;

#[test]
fn a_call_is_one_line_with_the_shape_of_its_arguments() {
    let home = Home::new("");
    let mut command = home.command(&["call", "math:evaluate", "--args", r#"{"expression":"40 + 4671"}"#]);
    let output = command.env("PML_LOG", "pml=debug").env("PML_LOG_FORMAT", "json").output().unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    let calls: Vec<Value> = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|event| event["message"] == "a call ended")
        .collect();
    let [call] = calls.as_slice() else { panic!("{log}") };
    let call = &call["fields"];
    assert_eq!(
        (&call["server"], &call["tool"], &call["status"]),
        (&json!("math"), &json!("evaluate"), &json!("ok")),
        "{call}"
    );
    assert_eq!(
        (&call["arguments"], &call["argument_bytes"]),
        (&json!("{expression: string}"), &json!(26)),
        "{call}"
    );
    assert!(call["duration_ms"].is_u64() && call["result_bytes"].as_u64() > Some(0), "{call}");
    assert!(!log.contains("4671") && !log.contains("4711"), "values stay out: {log}");
}

/// What a command writes to standard error with this format of the log.
fn logged(home: &Home, format: &str) -> String {
    let mut command = home.command(&["discover", "days between two dates"]);
    let output = command.env("PML_LOG", "debug").env("PML_LOG_FORMAT", format).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn each_line_is_a_json_object_if_asked_for() {
    // Nobody answers there, which is logged.
    let home = Home::new("[embedding]\nurl = \"http://127.0.0.1:9\"\nname = \"none\"\n");
    let log = logged(&home, "json");
    let lines: Vec<&str> = log.lines().filter(|line| line.starts_with('{')).collect();
    assert!(lines.len() > 3, "{log}");
    for line in lines {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        for field in ["timestamp", "level", "target", "message"] {
            assert!(event[field].is_string(), "{field}: {line}");
        }
        assert!(event["timestamp"].as_str().unwrap().ends_with('Z'), "{line}");
    }
    assert!(!logged(&home, "text").contains("\"timestamp\""));
    assert!(logged(&home, "yaml").contains("`PML_LOG_FORMAT` is neither `text` nor `json`"));
}
