//! The switches and budgets of speculation.

use serde_json::{Value, json};

use crate::harness::{Home, eventually};
use crate::place::Place;

/// Three reads, of which two can be made ahead.
const CODE: &str = "await mcp.a.read({ key: 'one' });\nawait mcp.a.read({ key: 'two' });\nreturn (await mcp.a.read({ key: 'three' })).given.key;";

/// How many calls were made ahead of [`CODE`].
#[track_caller]
fn ahead(place: &mut Place, options: Value) -> u64 {
    let request = place.begin_with(CODE, &json!({}), options);
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], "three", "{told}");
    assert_eq!(place.keys("a:read").len() % 3, 0, "{:?}", place.begun());
    told["speculated"]["calls"].as_u64().unwrap_or(0)
}

#[test]
fn a_budget_of_zero_and_a_switch_turn_it_off() {
    for setting in ["enabled = false", "concurrent = 0", "per_run = 0", "per_server = 0", "per_minute = 0"] {
        let mut place = Place::start(&format!("[speculation]\n{setting}\n"));
        assert_eq!(ahead(&mut place, json!({})), 0, "{setting}");
    }
}

#[test]
fn budgets_bound_what_is_read_ahead() {
    for setting in ["per_run = 1", "per_minute = 1"] {
        let mut place = Place::start(&format!("[speculation]\n{setting}\nsample = 0\n"));
        assert_eq!(ahead(&mut place, json!({})), 1, "{setting}");
    }
    for setting in ["concurrent = 2", "per_server = 2"] {
        let mut place = Place::start(&format!("[speculation]\n{setting}\n"));
        let code = "await mcp.b.read({ key: 'first', until: 'go' });\n\
                    for (const key of args.keys) { await mcp.a.read({ key, until: 'go' }); }\n\
                    return 'done';";
        let request = place.begin(code, &json!({ "keys": [1, 2, 3, 4, 5, 6] }));
        eventually("two reads are under way", || place.keys("a:read").len() >= 2);
        place.run("return (await mcp.b.read({ key: 'meanwhile' })).given.key", &json!({}));
        assert_eq!(place.keys("a:read").len(), 2, "{setting}");
        place.allow("go");
        assert_eq!(place.gateway.outcome(request)["result"], "done", "{setting}");
    }
}

#[test]
fn the_budget_of_a_run_lasts_over_its_pauses() {
    let mut place = Place::start("[speculation]\nper_run = 2\n");
    let read = |id: &str, after: &[&str]| json!({ "id": id, "tool": "a:read", "arguments": { "key": id }, "dependsOn": after });
    let tasks =
        json!([read("a", &[]), read("b", &["a"]), read("c", &["b"]), read("d", &["c"]), read("e", &["d"])]);
    let mut told = place.run_layers(&tasks, &json!({}));
    while told["status"] == "layer_complete" {
        // Whatever could begin has begun once another run is over.
        place.run("return (await mcp.b.read({ key: 'meanwhile' })).given.key", &json!({}));
        told = place.go_on(&told);
    }
    assert_eq!(told["status"], "success", "{told}");
    place.assert_served(&told, &["b", "c"], &["a", "d", "e"]);
}

#[test]
fn a_budget_bounds_what_is_read_of_branches_that_are_not_decided() {
    for (branches, reads) in [(0, 0), (2, 2), (8, 6)] {
        let mut place = Place::start(&format!("[speculation]\npreset = \"eager\"\nbranches = {branches}\n"));
        // The tool earns that reads of branches with even odds are made.
        let earn = "for (const key of args.keys) { await mcp.a.read({ key }); } return 1;";
        let keys: Vec<String> = (0..60).map(|n| format!("earn {n}")).collect();
        assert_eq!(place.run(earn, &json!({ "keys": keys }))["result"], 1);
        let code = "const one = await mcp.b.read({ key: 'decides', until: 'go' });\n\
                    if (one.writes > 0) {\n\
                      for (const key of ['b1', 'b2', 'b3', 'b4', 'b5', 'b6']) { await mcp.a.read({ key }); }\n\
                    }\n\
                    await mcp.a.read({ key: 'after' });\n\
                    return 'done';";
        let request = place.begin(code, &json!({}));
        let of_branch = |place: &Place| {
            place.keys("a:read").iter().filter(|key| key.as_str().is_some_and(|key| key.len() == 2)).count()
        };
        place.wait_for_key("after");
        eventually("the branch is read as far as may be", || of_branch(&place) == reads);
        place.allow("go");
        assert_eq!(place.gateway.outcome(request)["result"], "done");
        assert_eq!(of_branch(&place), reads, "branches = {branches}: {:?}", place.begun());
    }
}

#[test]
fn a_run_can_do_without_it() {
    let mut place = Place::start("[speculation]\nsample = 0\n");
    assert_eq!(ahead(&mut place, json!({ "speculate": false })), 0);
    assert_eq!(ahead(&mut place, json!({ "speculate": true })), 2);
    std::fs::write(place.home.path("program.ts"), CODE).unwrap();
    for (switch, calls) in [(vec!["--no-speculation"], 0), (Vec::new(), 2)] {
        let mut args = vec!["execute", "--code", "program.ts", "--no-cache", "--json"];
        args.extend(switch);
        let told = place.home.run(&args);
        assert_eq!(told.code, 0, "{told:?}");
        assert_eq!(told.stdout.matches("\"speculated\": true").count(), calls, "{told:?}");
    }
}

#[test]
fn presets_have_names() {
    for preset in ["eager", "balanced", "cautious"] {
        let mut place = Place::start(&format!("[speculation]\npreset = \"{preset}\"\nsample = 0\n"));
        assert_eq!(ahead(&mut place, json!({})), 2, "{preset}");
    }
}

#[test]
fn an_eager_preset_reads_further_ahead_than_a_cautious_one() {
    let task = |number: usize| {
        let before = if number == 0 { Vec::new() } else { vec![format!("t{}", number - 1)] };
        let mut arguments = json!({ "key": format!("t{number}") });
        if number == 0 {
            arguments["until"] = json!("go");
        }
        json!({ "id": format!("t{number}"), "tool": "a:read", "arguments": arguments, "dependsOn": before })
    };
    let tasks: Vec<Value> = (0..9).map(task).collect();
    // Each step until a task starts makes it less likely.
    for (preset, steps) in [("eager", 5), ("balanced", 3), ("cautious", 1)] {
        let mut place = Place::start(&format!("[speculation]\npreset = \"{preset}\"\n"));
        let implementation = json!({ "type": "dag", "dagStructure": { "tasks": tasks } });
        let asked =
            json!({ "intent": "a test", "implementation": implementation, "options": { "cache": false } });
        let request =
            place.gateway.begin("tools/call", &json!({ "name": "pml_execute", "arguments": asked }));
        place.wait_for_end(&format!("t{steps}"));
        // Whatever could begin has begun once another run is over.
        place.run("return (await mcp.b.read({ key: 'meanwhile' })).given.key", &json!({}));
        assert_eq!(place.keys("a:read").len(), 1 + steps, "{preset}: {:?}", place.begun());
        place.allow("go");
        assert_eq!(place.gateway.outcome(request)["status"], "success", "{preset}");
    }
}

#[test]
fn settings_out_of_range_are_refused_with_file_and_line() {
    for (setting, wrong) in [
        ("preset = \"bold\"", "bold"),
        ("concurrent = 129", "concurrent"),
        ("concurrent = -1", "concurrent"),
        ("per_run = 100001", "per_run"),
        ("per_server = 1025", "per_server"),
        ("per_minute = 1000001", "per_minute"),
        ("branches = 1001", "branches"),
        ("sample = 101", "sample"),
        ("ttl = \"500ms\"", "ttl"),
        ("ttl = \"2h\"", "ttl"),
        ("ttl = true", "ttl"),
        ("enabled = \"yes\"", "enabled"),
        ("budget = 1", "budget"),
    ] {
        let home = Home::new(&format!("# a comment\n[speculation]\n{setting}\n"));
        let told = home.run(&["runs", "list"]);
        assert_ne!(told.code, 0, "{setting}: {told:?}");
        let place = format!("{}:3:", home.path("pml.toml").display());
        assert!(told.stderr.contains(&place) && told.stderr.contains(wrong), "{setting}: {told:?}");
    }
}
