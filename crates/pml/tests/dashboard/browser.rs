//! Plays scenarios of `tests/dashboard/browse.mjs` in Chromium.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{Served, material, node};
use crate::place::PASSPHRASE;

/// What was seen. Nothing may have gone wrong in the page, whatever was shown.
#[track_caller]
pub fn play(served: &Served, scenario: &str, more: &[(&str, &str)]) -> Value {
    play_at(served.url.strip_suffix("/mcp").unwrap(), scenario, more)
}

/// The same at an address, where the process behind it may change.
#[track_caller]
pub fn play_at(url: &str, scenario: &str, more: &[(&str, &str)]) -> Value {
    let mut given = json!({ "url": url, "passphrase": PASSPHRASE });
    for (name, value) in more {
        given[name] = json!(value);
    }
    let output = Command::new(node())
        .arg(material("dashboard/browse.mjs"))
        .args([scenario, &given.to_string()])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (told, wrong) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    let seen: Value = serde_json::from_str(&told).unwrap_or_else(|_| panic!("{scenario}: {told}\n{wrong}"));
    assert_eq!(seen["wrong"], json!([]), "{scenario}");
    seen
}
