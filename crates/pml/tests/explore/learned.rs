//! What explorations teach: traces that count as no run, a choice that is remembered, paths that misled, and paths that
//! become capabilities.

use pml_model::Principal;
use pml_model::capability::{CapabilityOrigin, CapabilityState};
use pml_model::exploration::{MisleadingCause, PathOutcome};
use pml_model::trace::{Trace, TraceId};
use pml_store::{TraceOrder, TraceQuery};
use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::harness::{Home, python};
use crate::place::{ALL, Place, server};
use crate::{explore, tools_of};

/// A shop with a tool that reads and two that write. A file named `NAME.says` makes a tool fail with its text; the file
/// `changed` gives them other definitions.
const SHOP: &str = r#"
import os

def tools():
    more = " now" if os.path.exists("changed") else ""
    customer = {"type": "object", "properties": {"customer_id": {"type": "string"}}, "required": ["customer_id"]}
    email = {"type": "object", "properties": {"email": {"type": "string", "format": "email"}}, "required": ["email"]}
    sent = {"type": "object", "properties": {"sent": {"type": "boolean"}}}
    return [
        {"name": "find_customer", "description": "Find a customer by email" + more, "inputSchema": email, "outputSchema": customer},
        {"name": "send_reminder", "description": "Send a reminder to a customer" + more, "inputSchema": customer, "outputSchema": sent},
        {"name": "send_notice", "description": "Send a notice to a customer as a reminder" + more, "inputSchema": customer, "outputSchema": sent},
    ]

def call():
    name = message["params"]["name"]
    if os.path.exists("changed"):
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}), flush=True)
    if os.path.exists(name + ".says"):
        return {"content": [{"type": "text", "text": open(name + ".says").read()}], "isError": True}
    value = {"customer_id": "c1"} if name == "find_customer" else {"sent": True}
    return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}
"#;

const REMIND: &str = "find the customer ada@example.org and send a reminder";

fn shop(more: &str) -> Place {
    let home = Home::new("");
    std::fs::write(home.path("shop.py"), server(SHOP)).unwrap();
    let (program, script, cwd) = (python("python"), home.path("shop.py"), home.path(""));
    home.configure(&format!(
        "{more}[servers.shop]\ncommand = {program:?}\nargs = [{script:?}]\ncwd = {cwd:?}\ndefinitions = \"follow\"\n[permissions]\n\"*\" = {{ approval_mode = \"auto\" }}\n\"shop:find_customer\" = {{ approval_mode = \"auto\", read_only = true }}\n"
    ));
    let gateway = Gateway::start(home.command(&["stdio"]));
    Place { home, gateway }
}

fn exploratory(place: &Place) -> Vec<Trace> {
    let all = TraceQuery { capability: None, order: TraceOrder::Newest, limit: 1_000, after: None };
    let traces = place.store().traces(&Principal::local(), &all).unwrap();
    traces.into_iter().filter(|trace| trace.exploratory).collect()
}

/// Explores once the server is there.
#[track_caller]
fn explore_shop(place: &mut Place, intent: &str) -> Value {
    let asked = json!({ "intent": intent, "maxPaths": 5 });
    let mut told = explore(place, &asked);
    for _ in 0..50 {
        if told["viablePaths"].is_array() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        told = explore(place, &asked);
    }
    assert!(told["viablePaths"].is_array(), "{told:#}");
    told
}

/// Explores, and returns the place among the viable paths and the path with exactly these tools.
#[track_caller]
fn path_of(place: &mut Place, intent: &str, tools: &[&str]) -> (usize, Value) {
    let told = explore_shop(place, intent);
    let viable = told["viablePaths"].as_array().unwrap();
    let found = viable.iter().position(|path| tools_of(path) == tools).unwrap_or_else(|| panic!("{told:#}"));
    (found, viable[found].clone())
}

fn reminding(place: &mut Place) -> (usize, Value) {
    path_of(place, REMIND, &["shop:find_customer", "shop:send_reminder"])
}

fn confirm(place: &mut Place, path: &Value) -> Value {
    let options = json!({ "cache": false });
    let asked = json!({ "explorePath": path["pathId"], "confirm": true, "options": options });
    place.gateway.call("pml_execute", &asked)
}

#[test]
fn every_tried_path_leaves_a_trace_that_counts_as_no_run() {
    let mut place = shop("");
    let told = explore_shop(&mut place, REMIND);
    let traces = exploratory(&place);
    assert_eq!(traces.len(), told["pathsExplored"].as_u64().unwrap() as usize, "{told:#}");
    for trace in &traces {
        let seen = trace.body.explored.as_ref().unwrap();
        assert_eq!(Some(seen.exploration_id.as_str()), told["explorationId"].as_str());
        assert_eq!(trace.capability_id, None);
    }
    let path = &told["viablePaths"]
        .as_array()
        .unwrap()
        .iter()
        .find(|path| tools_of(path).contains(&"shop:send_reminder"))
        .unwrap();
    let id = path["pathId"].as_str().unwrap().replacen("dry_", "trace_", 1);
    let trace = place.store().trace(&Principal::local(), &TraceId::from_text(&id)).unwrap().unwrap();
    let calls: Vec<(&str, bool, Option<f64>)> = trace
        .body
        .task_results
        .iter()
        .map(|task| (task.tool.as_str(), task.mocked, task.mock_weight))
        .collect();
    assert_eq!(calls, [("shop:find_customer", false, None), ("shop:send_reminder", true, Some(0.5))]);
    assert_eq!((trace.body.mock_ratio, trace.intent.as_str()), (0.5, REMIND));
    assert_eq!(trace.body.explored.unwrap().weight, 0.0, "too little of it was real to count");
    assert!(place.capabilities().is_empty());
    assert!(place.store().tool_call_counts(&Principal::local()).unwrap().is_empty(), "no call counts");
    let numbers = place.store().learned_edges(&Principal::local()).unwrap();
    assert!(numbers.is_empty(), "{numbers:?}");
}

#[test]
fn a_plain_dry_run_leaves_no_trace_and_nothing_is_kept_without_learning() {
    let mut place = shop("");
    let code = "return await mcp.shop.find_customer({ email: 'ada@example.org' });";
    let ran = place.run_with("find", code, &json!({}), &json!({ "dryRun": true }));
    assert_eq!(ran["status"], "dry_run", "{ran:#}");
    assert!(exploratory(&place).is_empty());
    let mut place = shop("[memory]\nlearn = false\n");
    let told = explore(&mut place, &json!({ "intent": REMIND }));
    assert!(told["explorationId"].is_null() && told["pathsExplored"].as_u64() > Some(0), "{told:#}");
    assert!(exploratory(&place).is_empty());
}

#[test]
fn the_run_of_a_chosen_path_refers_to_the_exploration() {
    let mut place = shop("");
    let told = explore_shop(&mut place, REMIND);
    let viable = told["viablePaths"].as_array().unwrap();
    let path = &viable[0];
    assert!(viable.len() > 1, "there is a choice: {told:#}");
    let ran = confirm(&mut place, path);
    assert_eq!(ran["status"], "success", "{ran:#}");
    let trace = place.trace(&ran);
    let seen = trace.body.explored.as_ref().unwrap();
    assert!(!trace.exploratory);
    assert_eq!(seen.outcome, PathOutcome::Worked);
    assert_eq!(Some(seen.exploration_id.as_str()), told["explorationId"].as_str());
    assert_eq!(Some(seen.path_id.as_str()), path["pathId"].as_str());
    let others = viable.iter().map(|path| path["pathId"].as_str().unwrap()).filter(|id| *id != seen.path_id);
    assert_eq!(seen.not_chosen, others.collect::<Vec<_>>());
    assert_eq!(Some(seen.procedure.as_str()), ran["capabilityId"].as_str(), "the same procedure by any name");
    assert_eq!(place.capability().statistics.success_count, 1);
}

#[test]
fn a_path_that_fails_for_real_is_told_and_comes_last_the_next_time() {
    for (tool, cause) in [("send_reminder", MisleadingCause::Mock), ("find_customer", MisleadingCause::Tool)]
    {
        let mut place = shop("");
        let (before, path) = reminding(&mut place);
        assert_eq!(before, 0, "it is the best at first");
        let says = place.home.path(&format!("{tool}.says"));
        std::fs::write(&says, "the ledger is closed").unwrap();
        let ran = confirm(&mut place, &path);
        assert_eq!(ran["status"], "failed", "{ran:#}");
        let seen = place.trace(&ran).body.explored.unwrap();
        assert_eq!((seen.outcome, seen.cause), (PathOutcome::Misleading, Some(cause)), "{ran:#}");
        std::fs::remove_file(says).unwrap();
        // Another value, another process, the same path.
        place.restart();
        let other = REMIND.replace("ada", "grace");
        let told = explore_shop(&mut place, &other);
        let viable = told["viablePaths"].as_array().unwrap();
        let again = viable.iter().position(|other| tools_of(other) == tools_of(&path));
        assert!(viable.len() > 1 && again == Some(viable.len() - 1), "{told:#}");
        let again = &viable[viable.len() - 1];
        let note = again["warnings"][0].as_str().unwrap_or_default();
        assert!(note.contains("the ledger is closed"), "{:#} {told:#}", path["dagStructure"]);
        assert!(again["confidence"].as_f64() < path["confidence"].as_f64(), "{told:#}");
        let text = place.text("pml_explore", &json!({ "intent": other, "maxPaths": 5 }));
        assert!(text.contains("failed when run for real: "), "{text}");
    }
}

#[test]
fn a_path_that_was_chosen_and_worked_comes_first_for_a_similar_intent() {
    let mut place = shop("");
    let chosen = ["shop:find_customer", "shop:send_notice"];
    let (before, path) = path_of(&mut place, REMIND, &chosen);
    assert!(before > 0, "another comes first as long as nobody has chosen: {path:#}");
    let ran = confirm(&mut place, &path);
    assert_eq!(ran["status"], "success", "{ran:#}");
    place.settled();
    // Another value, another process.
    place.restart();
    let told = explore_shop(&mut place, &REMIND.replace("ada", "grace"));
    let first = &told["viablePaths"][0];
    assert_eq!((tools_of(first), &first["workedBefore"]), (chosen.to_vec(), &json!(1)), "{told:#}");
    // The same where only one path is wanted.
    let told = explore(&mut place, &json!({ "intent": REMIND.replace("ada", "linus"), "maxPaths": 1 }));
    assert_eq!(tools_of(&told["viablePaths"][0]), chosen, "{told:#}");
    // Something else that is asked for is not concerned.
    let (_, other) =
        path_of(&mut place, "find the customer by email ada@example.org", &["shop:find_customer"]);
    assert!(other["workedBefore"].is_null(), "{other:#}");
}

#[test]
fn a_run_that_was_prevented_marks_nothing() {
    let mut place = shop("");
    let (before, path) = reminding(&mut place);
    std::fs::write(place.home.path("send_reminder.says"), "429 Too Many Requests: rate limit exceeded")
        .unwrap();
    let ran = confirm(&mut place, &path);
    assert_eq!(ran["status"], "failed", "{ran:#}");
    assert_eq!(place.trace(&ran).body.explored.unwrap().outcome, PathOutcome::Undecided);
    let (after, again) = reminding(&mut place);
    assert!(after <= before && again["confidence"].as_f64() >= path["confidence"].as_f64(), "{again:#}");
    assert!(!again["warnings"].to_string().contains("failed when run"), "{again:#}");
}

#[test]
fn a_chosen_path_whose_tools_have_changed_is_marked() {
    let mut place = shop("");
    let (before, path) = reminding(&mut place);
    std::fs::write(place.home.path("changed"), "").unwrap();
    // The server tells with its next answer that its tools have changed.
    place.run("find", "return await mcp.shop.find_customer({ email: 'ada@example.org' });", &json!({}));
    let mut known = String::new();
    for _ in 0..100 {
        let asked = json!({ "intent": "find a customer by email" });
        known = place.gateway.call("pml_discover", &asked).to_string();
        if known.contains("by email now") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert!(known.contains("by email now"), "{known}");
    let refused = confirm(&mut place, &path);
    assert_eq!(refused["error"]["code"], "TOOL_CHANGED", "{refused:#}");
    confirm(&mut place, &path);
    let marked: Vec<_> = exploratory(&place)
        .into_iter()
        .filter_map(|trace| trace.body.explored)
        .filter(|seen| seen.outcome == PathOutcome::Misleading)
        .map(|seen| seen.cause)
        .collect();
    assert_eq!(marked, [Some(MisleadingCause::ToolChange)], "once, however often it is tried");
    let (after, again) = reminding(&mut place);
    assert!(again["warnings"].to_string().contains("its tools have changed since"), "{again:#}");
    assert_eq!(after, before, "what was seen with other definitions does not lower it");
}

#[test]
fn a_path_that_is_viable_three_times_is_suggested_and_runs_on_an_intent_after_one_success() {
    let mut place = Place::start(ALL);
    std::fs::create_dir(place.home.path("data")).unwrap();
    for name in ["a", "b", "c", "d"] {
        std::fs::write(place.home.path(&format!("data/{name}.csv")), "id,customer\n1,Ada\n").unwrap();
    }
    let intent = |name: &str| format!("read the file data/{name}.csv and parse the CSV");
    let first = |place: &mut Place, name: &str| {
        let told = explore(place, &json!({ "intent": intent(name), "maxPaths": 3 }));
        let path = told["viablePaths"][0].clone();
        assert_eq!(path["mockedExecutions"], 0, "{told:#}");
        (tools_of(&path).join(" "), told)
    };
    let (tools, told) = first(&mut place, "a");
    assert!(told["pathsExplored"].as_u64() > Some(1), "there is a choice: {told:#}");
    assert_eq!(first(&mut place, "b").0, tools);
    assert!(place.capabilities().is_empty(), "twice may be chance");
    let (again, told) = first(&mut place, "c");
    let learned = place.capability();
    assert_eq!(again, tools);
    assert!(told["warnings"].to_string().contains(&learned.name), "{told:#}");
    for tool in &learned.procedure.tools_used {
        assert!(tools.contains(&tool.id), "the first path, and not the others: {tools}");
    }
    assert_eq!(learned.procedure.origin, CapabilityOrigin::Explored);
    assert_eq!((learned.state, learned.statistics.usage_count), (CapabilityState::Active, 0));
    let wished = place.wish(&intent("d"));
    assert_ne!(wished["capabilityId"].as_str(), Some(learned.procedure.id.as_str()), "{wished:#}");
    let offered = wished["suggestions"]["candidates"].to_string();
    assert!(wished["status"] != "success" && offered.contains(&learned.name), "{wished:#}");
    let call = &wished["suggestions"]["readyCall"];
    assert!(call.to_string().contains("data/d.csv"), "the call that runs it is ready: {wished:#}");
    let ran = place.gateway.call("pml_execute", &call["arguments"]);
    assert_eq!(ran["status"], "success", "{ran:#}");
    place.settled();
    let again = place.wish(&intent("b"));
    assert_eq!(again["status"], "success", "{again:#}");
    assert_eq!(again["capabilityId"].as_str(), Some(learned.procedure.id.as_str()), "{again:#}");
    let id = &learned.procedure.id;
    assert!(place.store().delete_capability(&Principal::local(), id, 0).unwrap());
    first(&mut place, "a");
    assert!(place.capabilities().iter().all(|one| one.procedure.id != *id), "what was deleted stays so");
}

#[test]
fn learning_anew_changes_nothing_after_explorations() {
    let mut place = shop("");
    let (_, path) = reminding(&mut place);
    confirm(&mut place, &path);
    reminding(&mut place);
    let numbers = |place: &Place| {
        let one = place.capability();
        (one.statistics, one.learning, place.store().learned_edges(&Principal::local()).unwrap())
    };
    let before = numbers(&place);
    let rebuilt = place.home.command(&["learn", "rebuild"]).output().unwrap();
    assert!(rebuilt.status.success(), "{rebuilt:?}");
    assert_eq!(numbers(&place), before);
}

#[test]
fn secrets_of_an_exploration_are_not_kept() {
    let mut place = shop("");
    let secret = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
    let intent = format!("{REMIND} with the token {secret}");
    let asked = json!({ "intent": intent, "context": { "email": "ada@example.org", "customer_id": "c1" } });
    let told = explore(&mut place, &asked);
    assert!(told["pathsExplored"].as_u64() > Some(0), "{told:#}");
    assert!(!exploratory(&place).is_empty());
    for file in std::fs::read_dir(place.home.path("")).unwrap().map(Result::unwrap) {
        if file.file_type().unwrap().is_file() && file.file_name().to_string_lossy().starts_with("pml.db") {
            let bytes = std::fs::read(file.path()).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains(secret), "{:?}", file.file_name());
        }
    }
}
