//! The log: text for people, and JSON objects for programs that collect logs.

use serde_json::Value;

use crate::harness::Home;

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
