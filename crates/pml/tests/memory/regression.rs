//! `pml capabilities test`: recorded runs with the present program and tools.

use serde_json::{Value, json};

use crate::harness::{Home, eventually};
use crate::tools::{CODE, place};

/// What the test of a capability says, as JSON.
fn tested(home: &Home, name: &str) -> Value {
    let told = home.run(&["capabilities", "test", name, "--json"]);
    let said: Value = serde_json::from_str(&told.stdout).unwrap_or_else(|_| panic!("{told:?}"));
    assert_eq!(told.code == 0, said["failed"] == 0, "{told:?}");
    assert!(said["tests"][0].is_object(), "{told:?}");
    said["tests"][0].clone()
}

#[test]
fn a_capability_passes_until_a_tool_no_longer_takes_what_it_gives() {
    let mut place = place();
    let told = place.run("how warm is it in Oslo", CODE, &json!({}));
    let id = told["capabilityId"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
    eventually("the intent alone runs it", || place.wish("how warm is it in Rome")["result"] == 21);
    let test = tested(&place.home, &id);
    let runs = test["replays"].as_array().unwrap();
    assert!(runs.len() >= 2 && runs.iter().all(|run| run.get("failure").is_none()), "{test}");
    assert!(runs.iter().all(|run| run["presentForm"] == true), "also the run it was learned from: {test}");

    std::fs::write(place.home.path("version"), "2").unwrap();
    place.restart();
    // Being called starts the server, which tells of its tools.
    assert_eq!(place.run("look", CODE, &json!({}))["status"], "failed");
    let test = tested(&place.home, &id);
    let failure = test["replays"][0]["failure"].as_str().unwrap_or_else(|| panic!("{test}"));
    assert!(failure.contains("city") || failure.contains("town"), "{failure}");
}

#[test]
fn programs_with_other_values_are_tested_with_the_form_that_takes_them() {
    let mut place = place();
    let told = place.run("how warm is it in Oslo", CODE, &json!({}));
    let id = told["capabilityId"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
    eventually("the form that takes the city is in force", || {
        place.wish("how warm is it in Rome")["result"] == 21
    });
    let other = CODE.replace("Oslo", "Turin");
    assert_ne!(other, CODE);
    let told = place.run("how warm is it in Turin", &other, &json!({}));
    assert_eq!(told["capabilityId"], json!(id), "{told}");
    let test = tested(&place.home, &id);
    let runs = test["replays"].as_array().unwrap();
    assert!(runs.len() >= 3, "{test}");
    assert!(runs.iter().all(|run| run.get("failure").is_none() && run["presentForm"] == true), "{test}");
}

#[test]
fn a_capability_without_recorded_runs_is_said_to_be_untested() {
    let place = place();
    std::fs::write(place.home.path("code.ts"), "return (await mcp.math.evaluate({ expression: '1' })).value")
        .unwrap();
    let told = place.home.run(&["capabilities", "create", "one", "--name", "one", "--code", "code.ts"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    let told = place.home.run(&["capabilities", "test"]);
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(told.stdout.contains("no recorded run is kept"), "{}", told.stdout);
    assert!(told.stderr.contains("0 tested, 0 failed, 1 without a recorded run"), "{}", told.stderr);
    let told = place.home.run(&["capabilities", "test", "two"]);
    assert_ne!(told.code, 0);
    assert!(told.stderr.contains("there is no capability `two`"), "{}", told.stderr);
}

#[test]
fn golden_runs_are_there_after_the_records_of_others_are_gone() {
    let mut place = place();
    let told = place.run("how warm is it in Oslo", CODE, &json!({}));
    let id = told["capabilityId"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
    for _ in 0..4 {
        assert_eq!(place.wish("how warm is it in Oslo")["result"], 21);
    }
    let store = pml_store::BlockingStore::open(&place.home.path("pml.db")).unwrap();
    assert!(store.purge_ended_runs(i64::MAX, 0).unwrap() > 0, "the others go");
    let test = tested(&place.home, &id);
    assert_eq!(test["replays"].as_array().map(Vec::len), Some(3), "{test}");
    assert_eq!(place.home.run(&["capabilities", "delete", &id]).code, 0);
    assert_eq!(store.purge_ended_runs(i64::MAX, 0).unwrap(), 3, "they go with their capability");
}
