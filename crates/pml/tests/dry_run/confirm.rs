//! Turning a dry run into the real run.

use serde_json::{Value, json};

use crate::place::Place;

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
fn a_dry_run_that_is_not_there_is_not_found() {
    let mut place = Place::start("");
    let told =
        confirm(&mut place, &json!({ "explorePath": "dry_00000000000000000000000000", "confirm": true }));
    assert!(told.to_string().contains("NOT_FOUND"), "{told}");
}

#[test]
fn a_tool_that_changed_since_is_told_and_nothing_is_run() {
    let mut place = Place::start("");
    let code = "await mcp.a.read({}); await mcp.a.write({}); return 1;";
    let report = crate::report(&mut place, code, &json!({}), &json!(true));
    std::fs::write(place.home.path("definition"), "reads something else").unwrap();
    crate::harness::eventually("the change is seen", || {
        let told =
            place.gateway.call("pml_execute", &json!({ "explorePath": report["id"], "confirm": true }));
        let changed = told.to_string().contains("TOOL_CHANGED")
            || told.to_string().contains("not those of the dry run");
        assert!(changed || told["status"] == "success" || told["status"] == "approval_required", "{told}");
        changed
    });
}
