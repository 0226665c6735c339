//! Documents run from a terminal.

use serde_json::{Value, json};

use crate::place::Place;

#[test]
fn a_document_runs_from_a_file_and_goes_on_layer_by_layer() {
    let place = Place::start("");
    let document = json!({ "tasks": [
        { "id": "a", "tool": "tools:add", "arguments": { "id": "{{args.name}}" } },
        { "id": "b", "tool": "tools:echo", "arguments": { "value": "{{a.id}}!" } },
    ] });
    let file = place.home.path("dag.json");
    std::fs::write(&file, document.to_string()).unwrap();
    let file = file.display().to_string();
    let arguments = r#"{"name": "n"}"#;
    let whole = place.home.run(&["--json", "execute", "a test", "--dag", &file, "--args", arguments]);
    assert_eq!(whole.code, 0, "{whole:?}");
    let said: Value = serde_json::from_str(&whole.stdout).unwrap();
    assert_eq!(said["result"]["b"]["value"], "n!", "{said}");

    let first =
        place.home.run(&["--json", "execute", "a test", "--dag", &file, "--per-layer", "--args", arguments]);
    let runs: Value = serde_json::from_str(&place.home.run(&["--json", "runs", "list"]).stdout).unwrap();
    let run = runs.as_array().unwrap().iter().find(|run| run["state"] == "waiting");
    let id = run.unwrap_or_else(|| panic!("{runs} {first:?}"))["workflowId"].as_str().unwrap().to_owned();
    let last = place.home.run(&["--json", "runs", "continue", &id]);
    assert_eq!(last.code, 0, "{last:?}");
    assert!(last.stdout.contains("n!"), "{last:?}");
    assert_eq!(place.calls("got", "add").len(), 2);
}
