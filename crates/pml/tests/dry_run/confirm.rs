//! Turning a dry run into the real run.

use serde_json::{Value, json};

use crate::place::{Place, server};

fn confirm(place: &mut Place, request: &Value) -> Value {
    place.gateway.call("pml_execute", request)
}

#[test]
fn a_confirmed_dry_run_is_run_for_real() {
    let mut place = Place::start("");
    let report = crate::report(
        &mut place,
        "await mcp.a.write({ key: args.key }); return args.key;",
        &json!({ "key": "k" }),
        &json!(true),
    );
    let id = report["id"].as_str().unwrap();
    assert_eq!(place.writes(), 0);
    let unconfirmed = confirm(&mut place, &json!({ "explorePath": id }));
    assert!(unconfirmed.to_string().contains("`confirm` is missing"), "{unconfirmed}");
    let told = confirm(&mut place, &json!({ "explorePath": id, "confirm": true }));
    assert_eq!(told["status"], "success", "{told}");
    assert_eq!(told["result"], "k");
    assert_eq!(place.writes(), 1);
}

#[test]
fn arguments_of_mocks_are_never_run_for_real() {
    let mut place = Place::start("");
    let code =
        "await mcp.a.write({ key: args.email }); await mcp.b.write({ key: args.own }); return args.email;";
    let options = json!({ "dryRun": true, "mocks": { "args": { "email": "test@x", "own": "mocked" } } });
    let told = crate::dry(&mut place, code, &json!({ "own": "mine" }), &options);
    let report = &told["report"];
    assert_eq!((&report["result"], &report["missing"]), (&json!("test@x"), &json!(["email"])), "{told:#}");
    let refused = confirm(&mut place, &json!({ "explorePath": report["id"], "confirm": true }));
    assert!(refused.to_string().contains("made-up values for `email`"), "{refused}");
    assert_eq!(place.writes(), 0);
    let context = json!({ "email": "ada@example.org" });
    let request = json!({ "explorePath": report["id"], "confirm": true, "context": context });
    let ran = confirm(&mut place, &request);
    assert_eq!((&ran["status"], &ran["result"]), (&json!("success"), &json!("ada@example.org")), "{ran}");
    assert_eq!(place.keys("a:write"), ["ada@example.org"]);
    assert_eq!(place.keys("b:write"), ["mine"]);
}

#[test]
fn a_refused_confirmation_takes_no_reads_away() {
    let rules = "[permissions]\n\"*\" = { approval_mode = \"auto\" }\n\"a:read\" = { cache_ttl = \"1h\" }\n";
    let mut place = Place::with_rules("", rules);
    let code = "const r = await mcp.a.read({ key: 'k' }); return r.given.key;";
    let report = crate::report(&mut place, code, &json!({}), &json!(true));
    let wrong = json!({ "explorePath": report["id"], "confirm": true, "context": { "other": 1 } });
    assert!(confirm(&mut place, &wrong).to_string().contains("takes no `other`"));
    let ran = confirm(&mut place, &json!({ "explorePath": report["id"], "confirm": true }));
    assert_eq!((&ran["result"], &ran["speculated"]["fromDryRun"]), (&json!("k"), &json!(1)), "{ran}");
    assert_eq!(place.keys("a:read").len(), 1, "it is read once");
}

#[test]
fn a_dry_run_that_is_not_there_is_not_found() {
    let mut place = Place::start("");
    let told =
        confirm(&mut place, &json!({ "explorePath": "dry_00000000000000000000000000", "confirm": true }));
    assert!(told.to_string().contains("NOT_FOUND"), "{told}");
}

const BOTH: &str = "await mcp.a.read({}); await mcp.a.write({}); return 1;";

/// Changes the definition of `a:read` after a dry run, and returns how the confirmation is refused.
#[track_caller]
fn refusal_after_change(place: &mut Place) -> String {
    let report = crate::report(place, BOTH, &json!({}), &json!(true));
    let request = json!({ "explorePath": report["id"], "confirm": true });
    std::fs::write(place.home.path("definition"), "reads something\u{202e} else").unwrap();
    let mut refusal = Value::Null;
    crate::harness::eventually("the change is seen", || {
        refusal = confirm(place, &request);
        // A run that begins before the change is seen may fail at its call.
        let message = refusal["error"]["message"].as_str().unwrap_or_default();
        refusal["error"]["code"] == "TOOL_CHANGED" && message.starts_with("the tools are not")
    });
    let begun = place.begun().len();
    assert_eq!(confirm(place, &request), refusal);
    assert_eq!(place.begun().len(), begun, "nothing is run");
    refusal["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_tool_that_changed_since_is_told_with_the_difference_and_nothing_is_run() {
    let mut place = Place::with_servers(
        &|home| server(home, "a", "trust = \"annotations\"\ndefinitions = \"follow\"\n"),
        "[permissions]\n\"*\" = { approval_mode = \"auto\" }\n",
    );
    let refusal = refusal_after_change(&mut place);
    let lines: Vec<&str> = refusal.lines().collect();
    assert_eq!(lines[0], "the tools are not those of the dry run:", "{refusal}");
    assert_eq!(lines[1], "`a:read` changed:", "{refusal}");
    assert!(lines.contains(&"-  \"description\": \"reads the world\","), "{refusal}");
    assert!(lines.contains(&"+  \"description\": \"reads something\\u{202e} else\","), "{refusal}");
    assert!(!refusal.contains("a:write"), "{refusal}");
}

#[test]
fn a_tool_that_is_held_back_since_is_told_with_the_difference() {
    let refusal = refusal_after_change(&mut Place::start(""));
    assert!(refusal.contains("`a:read` changed and is held back"), "{refusal}");
    assert!(refusal.contains("`pml accept a:read`"), "{refusal}");
    assert!(refusal.contains("reads something\\u{202e} else"), "{refusal}");
}
