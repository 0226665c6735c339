//! A server renames what a capability uses: a repaired version is offered, and nothing is switched.

use pml_model::Principal;
use pml_model::capability::CapabilityState;
use pml_store::BlockingStore;
use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::harness::{Home, eventually, python};
use crate::place::{Place, server};

/// A server whose tool has another form in each version.
const TOOLS: &str = r#"
def tools():
    version = open("version").read().strip()
    name = "weather_report" if version == "tool" else "report"
    field = {"field": "cityName", "unclear": "country"}.get(version, "city")
    output = {"degrees": {"type": "number"}, "sky": {"type": "string"}}
    if version == "result":
        output = {"current": {"type": "object", "properties": output}}
    properties = {field: {"type": "string"}}
    if version == "default":
        properties["days"] = {"type": "integer", "default": 1}
    return [{"name": name, "description": "tells how the weather is in a city",
        "inputSchema": {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False},
        "outputSchema": {"type": "object", "properties": output}, "annotations": {"readOnlyHint": True}}]
def call():
    result = {"degrees": 21, "sky": "clear"}
    if open("version").read().strip() == "result":
        result = {"current": result}
    return {"content": [{"type": "text", "text": json.dumps(result)}], "structuredContent": result}
"#;

const CODE: &str = "const w = await mcp.weather.report({ city: 'Oslo' }); return w.degrees;";

/// A place where `warmth` was learned, and the server is in this version now.
fn changed(version: &str) -> Place {
    let home = Home::new("");
    std::fs::write(home.path("weather.py"), server(TOOLS)).unwrap();
    std::fs::write(home.path("version"), "1").unwrap();
    home.configure(&format!(
        "[servers.weather]\ncommand = {:?}\nargs = [{:?}]\ncwd = {:?}\ndefinitions = \"follow\"\n\
         [permissions]\n\"*\" = {{ approval_mode = \"auto\" }}\n",
        python("python"),
        home.path("weather.py"),
        home.path("")
    ));
    let gateway = Gateway::start(home.command(&["stdio"]));
    let mut place = Place { home, gateway };
    let told = place.run("how warm is it in Oslo", CODE, &json!({}));
    let id = told["capabilityId"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
    assert_eq!(place.home.run(&["capabilities", "rename", &id, "warmth"]).code, 0);
    std::fs::write(place.home.path("version"), version).unwrap();
    place.restart();
    // Being called starts the server, which tells of its tools.
    place.run("look", "return [await mcp.weather.report({ city: 'Oslo' })]", &json!({}));
    place
}

fn versions(home: &Home) -> Vec<(u32, bool, bool)> {
    let store = BlockingStore::open(&home.path("pml.db")).unwrap();
    let all = store.capability_versions(&Principal::local(), "warmth").unwrap();
    all.iter().map(|one| (one.version, one.is_current(), one.offered_because.is_some())).collect()
}

fn by_name(place: &mut Place, name: &str) -> Value {
    let asked = json!({ "intent": "how warm is it in Oslo",
        "implementation": { "type": "capability", "id": name }, "options": { "cache": false } });
    place.gateway.call("pml_execute", &asked)
}

#[track_caller]
fn is_offered(version: &str, shown: &str) {
    let mut place = changed(version);
    eventually("a repair is offered", || versions(&place.home) == [(2, false, true), (1, true, false)]);
    let told = place.home.run(&["capabilities", "diff", "warmth"]);
    assert!(told.stdout.contains("offered: ") && told.stdout.contains(shown), "{told:?}");
    let told = place.home.run(&["capabilities", "accept", "warmth"]);
    assert_eq!(told.stdout.trim(), "version 2 of warmth is in force", "{told:?}");
    assert_eq!(by_name(&mut place, "warmth")["result"], 21);
    assert_eq!(versions(&place.home), [(2, true, false), (1, false, false)]);
    assert_eq!(place.home.run(&["capabilities", "accept", "warmth"]).code, 1, "none is offered any more");
}

#[test]
fn a_renamed_tool_is_followed_when_somebody_accepts_it() {
    is_offered("tool", "mcp.weather.weather_report(");
}

#[test]
fn a_renamed_field_is_followed_and_the_parameter_stays() {
    is_offered("field", "cityName: args[\"city\"]");
}

#[test]
fn a_new_required_field_with_a_default_is_given() {
    is_offered("default", "days: args[\"days\"]");
}

#[test]
fn a_moved_part_of_the_result_is_found_again() {
    is_offered("result", "r?.current?.degrees");
}

#[test]
fn a_change_that_is_not_understood_offers_nothing() {
    let mut place = changed("unclear");
    eventually("it is marked", || {
        let store = BlockingStore::open(&place.home.path("pml.db")).unwrap();
        let known = store.capability_named(&Principal::local(), "warmth").unwrap().unwrap();
        known.state == CapabilityState::Degraded
    });
    let told = place.home.run(&["capabilities", "repair", "warmth"]);
    assert_eq!(told.code, 1, "{told:?}");
    assert!(
        told.stderr.contains("do not show how to follow the change of `weather:report`"),
        "{}",
        told.stderr
    );
    assert_eq!(versions(&place.home), []);
    assert_eq!(by_name(&mut place, "warmth")["status"], "failed");
}

#[test]
fn a_version_whose_tool_changed_again_is_not_put_in_force() {
    let mut place = changed("field");
    eventually("a repair is offered", || versions(&place.home) == [(2, false, true), (1, true, false)]);
    std::fs::write(place.home.path("version"), "1").unwrap();
    place.restart();
    // Being called starts the server, which tells of its tools.
    place.run("look", "return [await mcp.weather.report({ cityName: 'Oslo' })]", &json!({}));
    eventually("the tool is as it was", || by_name(&mut place, "warmth")["result"] == 21);
    let told = place.home.run(&["capabilities", "accept", "warmth"]);
    assert_ne!(told.code, 0, "{told:?}");
    assert!(told.stderr.contains("`weather:report` has changed again"), "{}", told.stderr);
    assert_eq!(by_name(&mut place, "warmth")["result"], 21);
}

#[test]
fn a_change_that_was_seen_while_no_gateway_ran_is_followed_at_the_next_start() {
    let Place { home, gateway } = changed("1");
    drop(gateway.kill());
    std::fs::write(home.path("version"), "field").unwrap();
    // Being called starts the server, which tells of its tools.
    home.run(&["call", "weather:report", "--args", r#"{"city": "Oslo"}"#]);
    let _gateway = Gateway::start(home.command(&["stdio"]));
    eventually("a repair is offered", || versions(&home) == [(2, false, true), (1, true, false)]);
}
