//! Real results that stand in for calls which a dry run does not make: recorded, found, judged, shown and dropped.

use std::time::Duration;

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::harness::{Home, eventually, python};
use crate::place::{Place, api, server};

/// A customer database. Its tools change things, as nobody says otherwise.
const TOOLS: &str = r#"
def tools():
    text = {"type": "string"}
    return [
        {"name": "create", "inputSchema": {"type": "object", "properties": {"name": text, "token": text}, "required": ["name"]}},
        {"name": "charge", "inputSchema": {"type": "object", "properties": {"id": {"type": "string", "pattern": "^c[0-9]+$"}}, "required": ["id"]}},
    ]
def call():
    arguments = message["params"]["arguments"]
    with open("calls", "a") as log:
        log.write(message["params"]["name"] + "\n")
    if message["params"]["name"] == "charge":
        return {"content": [{"type": "text", "text": json.dumps({"charged": True, "id": arguments["id"]})}]}
    made = {"id": "c41", "name": arguments["name"], "plan": "basic"}
    if "token" in arguments:
        made["seen"] = arguments["token"]
    return {"content": [{"type": "text", "text": json.dumps(made)}]}
"#;

const CREATE: &str = "return await mcp.crm.create({ name: args.name });";

fn place() -> Place {
    let home = Home::new("");
    std::fs::write(home.path("crm.py"), server(TOOLS)).unwrap();
    home.configure(&format!(
        "[servers.crm]\ncommand = {:?}\nargs = [{:?}]\ncwd = {:?}\n[permissions]\n\"*\" = {{ approval_mode = \"auto\" }}\n",
        python("python"),
        home.path("crm.py"),
        home.path("")
    ));
    let gateway = Gateway::start(home.command(&["stdio"]));
    Place { home, gateway }
}

/// The call of a dry run of `code`.
fn dry(place: &mut Place, code: &str, context: &Value) -> Value {
    let told = place.run_with("make a customer", code, context, &json!({ "dryRun": true }));
    assert_eq!(told["status"], "dry_run", "{told}");
    told["report"].clone()
}

fn mocks(place: &Place) -> Vec<Value> {
    let told = place.home.run(&["mocks", "list", "--json"]);
    serde_json::from_str(&told.stdout).unwrap_or_else(|_| panic!("{told:?}"))
}

/// Waits until the gateway has written what its runs returned.
fn recorded(place: &Place, number: usize) -> Vec<Value> {
    eventually("results are recorded", || mocks(place).len() == number);
    mocks(place)
}

fn calls(place: &Place) -> usize {
    std::fs::read_to_string(place.home.path("calls")).unwrap_or_default().lines().count()
}

#[test]
fn a_dry_run_gets_what_the_tool_returned_before() {
    let mut place = place();
    let before = dry(&mut place, CREATE, &json!({ "name": "Ana" }));
    assert_eq!(before["capturedCalls"][0]["origin"], "placeholder", "{before}");
    place.run("make a customer", CREATE, &json!({ "name": "Ana" }));
    recorded(&place, 1);
    let made = calls(&place);
    let equal = dry(&mut place, CREATE, &json!({ "name": "Ana" }));
    assert_eq!(equal["capturedCalls"][0]["origin"], "recorded", "{equal}");
    assert_eq!(equal["result"], json!({ "id": "c41", "name": "Ana", "plan": "basic" }));
    let similar = dry(&mut place, CREATE, &json!({ "name": "Omar" }));
    assert_eq!(similar["capturedCalls"][0]["origin"], "recorded", "{similar}");
    assert_eq!(similar["result"]["name"], "Omar", "the argument that was repeated is the present one");
    let other = dry(&mut place, "return await mcp.crm.create({ name: '12' });", &json!({}));
    assert_ne!(other["capturedCalls"][0]["origin"], "recorded", "{other}");
    assert_eq!(calls(&place), made, "nothing was called");
    eventually("lookups are counted", || {
        let stats: Value =
            serde_json::from_str(&place.home.run(&["mocks", "stats", "--json"]).stdout).unwrap();
        (&stats[0]["equal"], &stats[0]["similar"]) == (&json!(1), &json!(1))
    });
}

#[test]
fn calls_by_name_and_the_reads_of_dry_runs_are_recorded_too() {
    let mut place = place();
    let token = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    for arguments in [json!({ "name": "Ana" }), json!({ "name": "Eve", "token": token })] {
        let made =
            place.gateway.begin("tools/call", &json!({ "name": "crm:create", "arguments": arguments }));
        let made = place.gateway.answer(made, Duration::from_secs(60)).expect("it answers");
        assert!(made.to_string().contains("c41"), "{made}");
    }
    let all = recorded(&place, 1);
    assert_eq!(all[0]["arguments"], json!({ "name": "Ana" }), "nothing with a secret: {all:?}");
    let told = dry(&mut place, CREATE, &json!({ "name": "Ana" }));
    assert_eq!(told["capturedCalls"][0]["origin"], "recorded", "{told}");

    let parse = "return await mcp.json.parse({ json: args.text });";
    let told = dry(&mut place, parse, &json!({ "text": "[1]" }));
    assert_eq!(told["capturedCalls"][0]["origin"], "real", "{told}");
    recorded(&place, 2);
    let mocked = json!({ "dryRun": { "mode": "mocked" } });
    let told = place.run_with("make a customer", parse, &json!({ "text": "[1]" }), &mocked);
    assert_eq!(told["report"]["capturedCalls"][0]["origin"], "recorded", "{told}");
}

#[test]
fn results_with_secrets_are_not_recorded() {
    let mut place = place();
    let code = "return await mcp.crm.create({ name: 'Ana', token: args.token });";
    place.run("make a customer", code, &json!({ "token": "ghp_0123456789abcdefghijklmnopqrstuvwxyz" }));
    place.run("make a customer", CREATE, &json!({ "name": "Omar" }));
    let all = recorded(&place, 1);
    assert_eq!(all[0]["arguments"], json!({ "name": "Omar" }), "{all:?}");
    let bytes = std::fs::read(place.home.path("pml.db")).unwrap();
    assert!(!bytes.windows(20).any(|window| window == b"ghp_0123456789abcdef"));
}

#[test]
fn a_result_that_fails_downstream_is_not_used_again() {
    let mut place = place();
    let chain = "const made = await mcp.crm.create({ name: args.name }); return await mcp.crm.charge({ id: made.plan });";
    place.run("make a customer", CREATE, &json!({ "name": "Ana" }));
    recorded(&place, 1);
    // `plan` is no identifier, so the recorded result makes the next call fail.
    let told = dry(&mut place, chain, &json!({ "name": "Ana" }));
    assert_eq!(told["status"], "failed", "{told}");
    eventually("the mock is judged", || mocks(&place)[0]["status"] == "deprecated");
    let again = dry(&mut place, CREATE, &json!({ "name": "Ana" }));
    assert_ne!(again["capturedCalls"][0]["origin"], "recorded", "{again}");
    // The tool returns the same once more, so it was not the result that was wrong.
    place.run("make a customer", CREATE, &json!({ "name": "Ana" }));
    eventually("it is used again", || mocks(&place)[0]["status"] == "fresh");
    assert_eq!((&mocks(&place)[0]["checked"], &mocks(&place)[0]["confirmed"]), (&json!(1), &json!(0)));
}

#[test]
fn a_result_that_fails_within_a_capability_is_not_used_again() {
    let mut place = place();
    // `plan` is no identifier, so the charge is refused, and the capability goes on without it.
    let code = "const made = await mcp.crm.create({ name: args.name });\n\
        try { await mcp.crm.charge({ id: made.plan }); } catch {}\n\
        return made.id;";
    let ran = place.run("make and charge a customer", code, &json!({ "name": "Ana" }));
    let id = ran["capabilityId"].as_str().unwrap_or_else(|| panic!("{ran}")).to_owned();
    assert_eq!(place.home.run(&["capabilities", "rename", &id, "makeCustomer"]).code, 0);
    recorded(&place, 1);
    let told = dry(&mut place, "return await capabilities.makeCustomer({ name: 'Ana' });", &json!({}));
    assert_eq!((&told["status"], &told["result"]), (&json!("success"), &json!("c41")), "{told}");
    assert_eq!(told["capturedCalls"][0]["origin"], "recorded", "{told}");
    eventually("the mock is judged", || mocks(&place)[0]["status"] == "deprecated");
}

#[test]
fn a_result_that_fails_in_a_capability_that_is_given_it_is_not_used_again() {
    let mut place = place();
    let code = "try { await mcp.crm.charge({ id: args.id }); } catch { return 'refused'; } return 'charged';";
    let ran = place.run("charge a customer", code, &json!({ "id": "c41" }));
    let id = ran["capabilityId"].as_str().unwrap_or_else(|| panic!("{ran}")).to_owned();
    assert_eq!(place.home.run(&["capabilities", "rename", &id, "chargeCustomer"]).code, 0);
    place.run("make a customer", CREATE, &json!({ "name": "Ana" }));
    recorded(&place, 2);
    let program = "const made = await mcp.crm.create({ name: 'Ana' });\n\
        return await capabilities.chargeCustomer({ id: made.plan });";
    let told = dry(&mut place, program, &json!({}));
    assert_eq!(told["result"], "refused", "{told}");
    eventually("the mock is judged", || {
        let all = mocks(&place);
        all.iter().any(|mock| mock["tool"] == "crm:create" && mock["status"] == "deprecated")
    });
}

#[test]
fn five_good_uses_make_a_result_canonical() {
    let mut place = place();
    place.run("make a customer", CREATE, &json!({ "name": "Ana" }));
    recorded(&place, 1);
    for _ in 0..5 {
        dry(&mut place, CREATE, &json!({ "name": "Ana" }));
    }
    eventually("it is canonical", || mocks(&place)[0]["status"] == "canonical");
    assert_eq!(mocks(&place)[0]["successes"], 5);
}

#[test]
fn mocks_are_shown_pinned_and_dropped() {
    let mut place = place();
    for name in ["Ana", "Omar"] {
        place.run("make a customer", CREATE, &json!({ "name": name }));
    }
    let all = recorded(&place, 2);
    let id = all.iter().find(|mock| mock["arguments"]["name"] == "Ana").unwrap()["id"].as_str().unwrap();
    let home = &place.home;
    let shown: Value = serde_json::from_str(&home.run(&["mocks", "show", id, "--json"]).stdout).unwrap();
    assert_eq!((&shown["result"]["id"], &shown["pattern"]), (&json!("c41"), &json!("{name:word}")));
    assert!(home.run(&["mocks", "list"]).stdout.contains("crm:create"));
    assert!(home.run(&["mocks", "pin", id]).stdout.contains("pinned"));
    let served = home.serve(&[]);
    let (status, listed) = api(&served, "GET", "/api/mocks?tool=create", None);
    assert_eq!((status, listed["mocks"].as_array().unwrap().len()), (200, 2), "{listed}");
    assert_eq!(listed["tools"][0]["mocks"]["pinned"], 1, "{listed}");
    assert_eq!(api(&served, "GET", &format!("/api/mocks/{id}"), None).1["status"], "pinned");
    assert_eq!(api(&served, "GET", "/api/mocks/mock_0", None).0, 404);
    let missing = home.run(&["mocks", "drop", "mock_0"]);
    assert!(missing.stderr.contains("there is no mock `mock_0`"), "{missing:?}");
    assert!(home.run(&["mocks", "drop"]).stderr.contains("required"), "something has to be named");
    home.run(&["mocks", "drop", id]);
    assert_eq!(mocks(&place).len(), 1);
    home.run(&["mocks", "drop", "--all"]);
    assert!(mocks(&place).is_empty());
}
