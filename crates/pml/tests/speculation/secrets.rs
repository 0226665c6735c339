//! Secrets in what is read ahead: nothing that is stored has them, whether the program asked for the read or not.

use std::path::Path;

use serde_json::json;

use crate::place::Place;

/// What is recognised as a secret by its form.
const TOKEN: &str = "ghp_x9QzK7wPtL3vB8mRx9QzK7wPtL3vB8mRabcd";
/// What is recognised as a secret by the name of its field.
const PASSWORD: &str = "canaryQ1w2e3r4T5z6";

/// The files below a directory that have this text, without what the servers wrote down themselves.
fn files_with(dir: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if path.file_name().is_none_or(|name| name != "ledger") {
            let content = std::fs::read(&path).unwrap_or_default();
            if content.windows(text.len()).any(|window| window == text.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

#[test]
fn secrets_in_reads_ahead_are_not_stored() {
    let mut place = Place::start("");
    let code = "const first = await mcp.b.read({ key: 'first', until: 'go' });\n\
                const used = await mcp.a.read({ key: 'used', note: args.token, password: args.word });\n\
                for (const key of ['x', 'for nothing']) {\n\
                  await mcp.b.read({ key, note: args.token, password: args.word });\n\
                  if (first.writes === 0) break;\n\
                }\n\
                return used.given.key;";
    let request = place.begin(code, &json!({ "token": TOKEN, "word": PASSWORD }));
    place.wait_for_end("used");
    place.wait_for_end("for nothing");
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], "used", "{told}");
    place.assert_served(&told, &["used", "x"], &["first"]);
    let trace = serde_json::to_string(&place.trace(&told)).unwrap();
    assert!(trace.contains("[REDACTED]"), "{trace}");
    assert_eq!(place.stats("b:read", 2)["wasted"], 1);
    // What was sent and returned has both, so they were there to be stored.
    assert!(
        place.begun().iter().any(|call| call.given["note"] == TOKEN && call.given["password"] == PASSWORD)
    );
    place.gateway.hang_up();
    assert_eq!(place.gateway.ends_within(crate::harness::PATIENCE), 0);
    for secret in [TOKEN, PASSWORD] {
        assert_eq!(files_with(&place.home.path(""), secret), [""; 0], "{secret}");
    }
}
