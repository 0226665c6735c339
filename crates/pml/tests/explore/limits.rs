//! What bounds an exploration: the length of a path, its time, and how many are tried at a time.

use serde_json::{Value, json};

use crate::explore;
use crate::gateway::Gateway;
use crate::harness::{Home, python};
use crate::place::{ALL, Place, server};

/// A server with one tool that waits, and that writes down when each call begins and ends.
const SLOW: &str = r#"
import threading, time, os

def tools():
    output = {"type": "object", "properties": {"content": {"type": "string"}}}
    named = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return [{"name": "weigh_parcel" + suffix, "description": "Weigh the parcel on scale" + suffix, "inputSchema": named, "outputSchema": output} for suffix in ["", "_a", "_b", "_c", "_d", "_e"]]

def note(what):
    with open("ledger", "a") as ledger:
        ledger.write(what + "\n")

def answer(id):
    note("begin")
    time.sleep(float(open("seconds").read()))
    note("end")
    value = {"content": "heavy"}
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": {"content": [], "structuredContent": value}}), flush=True)

def call():
    threading.Thread(target=answer, args=(message["id"],)).start()
"#;

fn slow_place(seconds: &str) -> Place {
    let home = Home::new("");
    // The server answers by itself, so that calls are under way together.
    let script = server(SLOW).replace("told[\"result\"] = call()", "call(); continue");
    std::fs::write(home.path("slow.py"), script).unwrap();
    std::fs::write(home.path("seconds"), seconds).unwrap();
    let (program, script, cwd) = (python("python"), home.path("slow.py"), home.path(""));
    home.configure(&format!(
        "[servers.scales]\ncommand = {program:?}\nargs = [{script:?}]\ncwd = {cwd:?}\n[permissions]\n\"*\" = {{ approval_mode = \"auto\" }}\nscales = {{ approval_mode = \"auto\", read_only = true, open_world = false }}\n"
    ));
    let gateway = Gateway::start(home.command(&["stdio"]));
    Place { home, gateway }
}

const WEIGH: &str = "weigh the parcel";

#[test]
fn a_path_that_takes_too_long_is_told_with_what_it_has() {
    let mut place = slow_place("60");
    let context = json!({ "name": "p1" });
    let told = explore(
        &mut place,
        &json!({ "intent": WEIGH, "context": context, "maxPaths": 1, "timeoutMs": 1_000 }),
    );
    let failed = told["failedPaths"].as_array().unwrap_or_else(|| panic!("{told:#}"));
    assert!(!failed.is_empty() && told["viablePaths"] == json!([]), "{told:#}");
    for path in failed {
        assert_eq!(path["code"], "TIMEOUT", "{told:#}");
        assert!(path["error"].as_str().unwrap().contains("at most 1000 ms"), "{told:#}");
        assert!(path["failurePoint"].as_str().unwrap().starts_with("scales:weigh_parcel"), "{told:#}");
    }
}

#[test]
fn what_a_path_had_when_it_ran_out_of_time_is_there() {
    let mut place = slow_place("60");
    std::fs::write(place.home.path("parcel.txt"), "p1").unwrap();
    let told = explore(
        &mut place,
        &json!({ "intent": "read parcel.txt and weigh the parcel", "context": { "name": "p1" }, "maxPaths": 1, "timeoutMs": 2_000 }),
    );
    let failed = told["failedPaths"].as_array().unwrap_or_else(|| panic!("{told:#}"));
    let slow = failed.iter().find(|path| path["code"] == "TIMEOUT" && path["path"][0] == "fs:read");
    let slow = slow.unwrap_or_else(|| panic!("{told:#}"));
    assert!(slow["failurePoint"].as_str().unwrap().starts_with("scales:"), "{slow:#}");
    assert!(slow["outputs"][0].to_string().contains("p1"), "what was read is there: {slow:#}");
}

#[test]
fn two_paths_are_tried_at_a_time() {
    let mut place = slow_place("0.3");
    let context = json!({ "name": "p1" });
    let told = explore(&mut place, &json!({ "intent": WEIGH, "context": context, "maxPaths": 6 }));
    let viable = told["viablePaths"].as_array().unwrap_or_else(|| panic!("{told:#}"));
    assert!(viable.len() >= 3, "{told:#}");
    let ledger = std::fs::read_to_string(place.home.path("ledger")).unwrap();
    let (mut now, mut most) = (0_i32, 0);
    for line in ledger.lines() {
        now += if line == "begin" { 1 } else { -1 };
        most = most.max(now);
    }
    assert_eq!(most, 2, "{ledger}");
}

#[test]
fn a_path_that_is_too_long_is_tried_up_to_the_limit() {
    let mut place = Place::start(ALL);
    std::fs::write(place.home.path("orders.csv"), "id,customer\n1,Ada\n").unwrap();
    let intent = "read orders.csv, parse it as CSV and write it to orders.json";
    let told = explore(&mut place, &json!({ "intent": intent, "maxDepth": 1 }));
    let failed = told["failedPaths"].as_array().unwrap_or_else(|| panic!("{told:#}"));
    let partial: Vec<&Value> = failed.iter().filter(|path| path["code"] == "TOO_DEEP").collect();
    assert!(!partial.is_empty(), "{told:#}");
    let path = partial[0];
    assert!(path["outputs"].to_string().contains("Ada"), "what was read is there: {told:#}");
    assert!(path["path"].as_array().unwrap().len() > path["outputs"].as_array().unwrap().len(), "{told:#}");
    assert!(path["error"].as_str().unwrap().contains("`maxDepth`"), "{told:#}");
    assert!(!place.home.path("orders.json").exists());
}
