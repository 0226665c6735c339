//! Tools that change: what was learned with them is looked at again.

use pml_model::capability::CapabilityState;
use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::harness::{Home, eventually, python};
use crate::place::{ALL, Place, server};

/// A server whose tool is as a file says.
const TOOLS: &str = r#"
def tools():
    version = open("version").read().strip()
    field = {"1": "city", "2": "town", "3": "city"}.get(version)
    if field is None:
        return []
    schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field], "additionalProperties": False}
    if version == "3":
        schema["properties"]["units"] = {"type": "string"}
    return [{"name": "report", "description": "the weather", "inputSchema": schema, "annotations": {"readOnlyHint": True}}]
def call():
    return {"content": [{"type": "text", "text": json.dumps({"degrees": 21, "sky": "clear"})}]}
"#;

pub fn place() -> Place {
    let home = Home::new("");
    std::fs::write(home.path("weather.py"), server(TOOLS)).unwrap();
    std::fs::write(home.path("version"), "1").unwrap();
    home.configure(&format!(
        "[servers.weather]\ncommand = {:?}\nargs = [{:?}]\ncwd = {:?}\ndefinitions = \"follow\"\n[permissions]\n\"*\" = {{ approval_mode = \"auto\", read_only = true, cache_ttl = \"1h\" }}\n",
        python("python"),
        home.path("weather.py"),
        home.path("")
    ));
    let gateway = Gateway::start(home.command(&["stdio"]));
    Place { home, gateway }
}

pub const CODE: &str = "const w = await mcp.weather.report({ city: 'Oslo' }); return w.degrees;";

#[test]
fn a_capability_whose_tool_changed_is_marked_before_anybody_meets_it_and_recovers() {
    let mut place = place();
    let told = place.run("how warm is it in Oslo", CODE, &json!({}));
    assert_eq!(told["result"], 21, "{told}");
    let id = told["capabilityId"].as_str().unwrap().to_owned();
    assert_eq!(place.capability_of(&id).state, CapabilityState::Active);
    // Uses of a result that is known say nothing of what the tool was given.
    for used in 0..60 {
        let told = place.run_with("how warm is it in Oslo", CODE, &json!({}), &json!({}));
        assert_eq!(told.get("cacheHit").is_some(), used > 0, "{told}");
    }
    std::fs::write(place.home.path("version"), "2").unwrap();
    place.restart();
    // Being called starts the server, which tells of its tools.
    let told = place.run("look", CODE, &json!({}));
    assert_eq!(told["status"], "failed", "{told}");
    eventually("it is marked", || place.capability_of(&id).state == CapabilityState::Degraded);
    let because = place.capability_of(&id).degraded_because.unwrap();
    assert!(because.contains("`weather:report` changed"), "{because}");
    goes_back_to_its_old_form(&mut place, &id);
}

/// The tool takes again what it took, which makes nothing active; one run that works does.
fn goes_back_to_its_old_form(place: &mut Place, id: &str) {
    std::fs::write(place.home.path("version"), "1").unwrap();
    place.restart();
    let wish = "how warm is it in Oslo";
    place.run("look", "return mcp.weather.report({ town: 'Oslo' })", &json!({}));
    let because = |place: &Place| place.capability_of(id).degraded_because.unwrap_or_default();
    eventually("it is known to be back", || because(place).contains("are there again"));
    assert_eq!(place.capability_of(id).state, CapabilityState::Degraded);
    let told = place.wish(wish);
    assert_eq!(told["status"], "suggestions", "nobody has seen it work: {told}");
    assert!(!told["suggestions"]["candidates"].to_string().contains(id), "{told}");
    let by_name = json!({ "intent": wish, "implementation": { "type": "capability", "id": id } });
    let told = place.gateway.call("pml_execute", &by_name);
    assert_eq!(told["result"], 21, "{told}");
    eventually("it is found again", || place.capability_of(id).state == CapabilityState::Active);
    let told = place.wish(wish);
    assert_eq!(
        (told["status"].as_str(), told["capabilityId"].as_str()),
        (Some("success"), Some(id)),
        "{told}"
    );
}

#[test]
fn a_capability_is_known_to_work_with_the_definitions_it_last_worked_with() {
    let mut place = place();
    let told = place.run("how warm is it in Oslo", CODE, &json!({}));
    let id = told["capabilityId"].as_str().unwrap().to_owned();
    let digest = |place: &Place| place.capability_of(&id).procedure.tools_used[0].digest.clone();
    let first = digest(&place);
    std::fs::write(place.home.path("version"), "3").unwrap();
    place.restart();
    // Being called starts the server, which tells of its tools.
    let other = "return mcp.weather.report({ city: 'Rome' })";
    place.run("look", other, &json!({}));
    let by_name =
        json!({ "intent": "how warm is it in Oslo", "implementation": { "type": "capability", "id": id } });
    let told = place.gateway.call("pml_execute", &by_name);
    assert_eq!(told["result"], 21, "{told}");
    assert_ne!(digest(&place), first, "it works with what is there now");
    // It is the server that tells of its tools anew, so everything is compared once more; the result is still known.
    place.gateway.hang_up();
    assert_eq!(place.gateway.ends_within(std::time::Duration::from_secs(60)), 0, "what it knows is stored");
    place.restart();
    place.run("look", other, &json!({}));
    let told = place.gateway.call("pml_execute", &by_name);
    assert_eq!(
        (told["result"].as_i64(), told["cacheHit"].as_str()),
        (Some(21), Some("capability")),
        "{told}"
    );
    assert_eq!(place.capability_of(&id).state, CapabilityState::Active);
}

#[test]
fn a_capability_whose_tool_is_gone_is_marked() {
    let mut place = place();
    let told = place.run("how warm is it in Oslo", CODE, &json!({}));
    let id = told["capabilityId"].as_str().unwrap().to_owned();
    std::fs::write(place.home.path("version"), "none").unwrap();
    place.restart();
    let told = place.run("look", CODE, &json!({}));
    assert_eq!(told["status"], "failed", "{told}");
    eventually("it is marked", || place.capability_of(&id).state == CapabilityState::Degraded);
    assert!(place.capability_of(&id).degraded_because.unwrap().contains("`weather:report` cannot be used"));
}

#[test]
fn what_a_tool_was_seen_to_give_stands_in_its_signature() {
    let mut place = place();
    for city in ["Oslo", "Rome", "Bern"] {
        place.run(
            "how warm is it",
            "return mcp.weather.report({ city: args.city })",
            &json!({ "city": city }),
        );
    }
    place.settled();
    let mut signature = String::new();
    eventually("it is shown", || {
        let found = place
            .gateway
            .call("pml_discover", &json!({ "intent": "weather report", "filter": { "type": "tool" } }));
        signature = found["results"][0]["signature"].as_str().unwrap_or_default().to_owned();
        signature.contains("as seen in 3 results")
    });
    assert!(
        signature.contains("degrees: number") && signature.contains("as seen in 3 results"),
        "{signature}"
    );
}

#[test]
fn every_pair_that_fits_is_known_whatever_the_catalogue() {
    let home = Home::new("");
    // Many tools that take what `json:parse` gives better than `http:post` does, and many that feed `http:post` better.
    let functions = r#"
def tools():
    fields = ["data", "json", "value", "payload"]
    takers = [{"name": f"take{n}", "inputSchema": {"type": "object", "properties": {fields[n % 4]: {}}, "required": [fields[n % 4]]}} for n in range(80)]
    page = {"type": "object", "properties": {"url": {"type": "string"}, "body": {"type": "string"}}}
    givers = [{"name": f"give{n}", "inputSchema": {"type": "object"}, "outputSchema": page} for n in range(40)]
    return takers + givers
def call():
    return {"content": []}
"#;
    std::fs::write(home.path("takers.py"), server(functions)).unwrap();
    let (program, script) = (python("python"), home.path("takers.py"));
    home.configure(&format!(
        "{ALL}[builtin.http]\nhosts = [\"example.com\"]\n[servers.takers]\ncommand = {program:?}\nargs = [{script:?}]\n"
    ));
    let gateway = Gateway::start(home.command(&["stdio"]));
    let mut place = Place { home, gateway };
    // Its tools are known once it was met.
    let found = place.gateway.call("pml_discover", &json!({ "intent": "take79" }));
    assert!(found.to_string().contains("takers:take79"), "{found}");
    let home = &place.home;
    let told = home.run(&["graph", "--from", "json:parse", "--to", "http:post", "--json"]);
    let ways: Value = serde_json::from_str(&told.stdout).unwrap_or_else(|_| panic!("{told:?}"));
    let direct =
        ways["ways"].as_array().unwrap().iter().find(|way| way["edges"].as_array().unwrap().len() == 1);
    let direct = direct.unwrap_or_else(|| panic!("{ways}"));
    assert_eq!(
        (&direct["edges"][0]["type"], &direct["edges"][0]["coverage"]),
        (&json!("provides"), &json!("partial"))
    );
    let told = home.run(&["graph", "--json"]);
    let view: Value = serde_json::from_str(&told.stdout).unwrap();
    let edges = view["edges"].as_array().unwrap();
    let shown: Vec<&Value> = edges
        .iter()
        .filter(|edge| {
            edge["from"] == "json:parse" && edge["to"] == "http:post" && edge["type"] == "provides"
        })
        .collect();
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert_eq!(
        (&shown[0]["coverage"], &shown[0]["mapping"][0]["from"], &shown[0]["mapping"][0]["to"]),
        (&json!("partial"), &json!("data"), &json!("body"))
    );
    // What is walked is the twenty that it feeds best; what can be asked for, and what is shown, is more.
    let fed = |to: &str| {
        edges
            .iter()
            .any(|edge| edge["from"] == "json:parse" && edge["to"] == to && edge["type"] == "provides")
    };
    let takers: Vec<String> = (0..80).map(|number| format!("takers:take{number}")).collect();
    assert!(takers.iter().filter(|taker| fed(taker)).count() >= 20, "it feeds these");
    let outgoing =
        edges.iter().filter(|edge| edge["from"] == "json:parse" && edge["type"] == "provides").count();
    assert!(outgoing > 20, "what is known is not bounded by what is walked: {outgoing}");
    for taker in takers.iter().step_by(20) {
        let told = home.run(&["graph", "--from", "json:parse", "--to", taker, "--json"]);
        assert!(told.stdout.contains("\"coverage\": \"strict\""), "{taker}: {told:?}");
    }
    assert!(
        view["nodes"].as_array().unwrap().iter().any(|node| node["id"] == "takers:take79"),
        "all are there"
    );
}
