//! Which reads of a dry run the run that confirms it uses, and which it makes again.

use serde_json::{Value, json};

use crate::place::Place;

/// Results of `a:read` may be used again for an hour.
const CACHED: &str =
    "[permissions]\n\"*\" = { approval_mode = \"auto\" }\n\"a:read\" = { cache_ttl = \"1h\" }\n";

const READS: &str = "const one = await mcp.a.read({ key: 'k1' });\n\
    const two = await mcp.a.read({ key: 'k2' });\n\
    await mcp.b.write({ key: 'w' });\n\
    return [one.writes, two.writes];";

fn cached() -> Place {
    Place::with_rules("", CACHED)
}

/// Runs a program dry and returns the id to confirm it with.
#[track_caller]
fn dry(place: &mut Place, code: &str) -> String {
    crate::report(place, code, &json!({}), &json!(true))["id"].as_str().unwrap().to_owned()
}

#[track_caller]
fn confirm_with(place: &mut Place, id: &str, options: &Value) -> Value {
    let request = json!({ "explorePath": id, "confirm": true, "options": options });
    place.gateway.call("pml_execute", &request)
}

#[track_caller]
fn confirm(place: &mut Place, id: &str) -> Value {
    let told = confirm_with(place, id, &json!({}));
    assert_eq!(told["status"], "success", "{told}");
    told
}

/// Checks how often `a:read` was called with each of the keys, by the dry run and by the run together. In which order
/// does not matter: the run reads ahead.
#[track_caller]
fn assert_read(place: &Place, expected: &[&str]) {
    let mut read: Vec<String> =
        place.keys("a:read").iter().map(|key| key.as_str().expect("keys are texts").to_owned()).collect();
    read.sort();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(read, expected);
}

#[test]
fn a_fresh_read_of_a_tool_with_a_cache_lifetime_is_not_made_again() {
    let mut place = cached();
    let id = dry(&mut place, READS);
    let told = confirm(&mut place, &id);
    assert_read(&place, &["k1", "k2"]);
    assert_eq!(place.writes(), 1, "what was made up is executed");
    place.assert_served(&told, &["k1", "k2"], &["w"]);
    assert_eq!(told["speculated"]["fromDryRun"], 2, "{told}");
    assert!(told["speculated"]["oldestMs"].is_u64(), "{told}");
    let shown = place.home.run(&["runs", "show", told["workflowId"].as_str().unwrap()]);
    assert!(shown.stdout.contains("from the dry run"), "{shown:?}");
}

#[test]
fn each_read_is_used_once() {
    let mut place = cached();
    let id = dry(&mut place, "const r = await mcp.a.read({ key: 'k' }); return r.writes;");
    let request = json!({ "cache": true });
    assert_eq!(confirm_with(&mut place, &id, &request)["result"], 0);
    assert_read(&place, &["k"]);
    assert_eq!(confirm_with(&mut place, &id, &request)["result"], 0);
    assert_read(&place, &["k", "k"]);
}

#[test]
fn a_read_of_a_tool_without_a_cache_lifetime_is_made_again() {
    let mut place = Place::start("");
    let id = dry(&mut place, READS);
    place.change_world();
    let told = confirm(&mut place, &id);
    assert_eq!(told["result"], json!([1, 1]), "{told}");
    assert_read(&place, &["k1", "k2", "k1", "k2"]);
}

#[test]
fn a_read_that_is_older_than_its_cache_lifetime_is_made_again() {
    let mut place = Place::with_rules("", &CACHED.replace("1h", "1ms"));
    let id = dry(&mut place, READS);
    confirm(&mut place, &id);
    assert_read(&place, &["k1", "k2", "k1", "k2"]);
}

#[test]
fn a_write_between_the_dry_run_and_its_confirmation_makes_the_reads_useless() {
    let mut place = cached();
    let id = dry(&mut place, READS);
    place.run("await mcp.b.write({ key: 'between' });", &json!({}));
    let told = confirm(&mut place, &id);
    assert_eq!(told["result"], json!([1, 1]), "{told}");
    assert_read(&place, &["k1", "k2", "k1", "k2"]);
}

#[test]
fn a_read_that_follows_a_write_of_the_program_is_made_again() {
    let mut place = cached();
    let code = "await mcp.b.write({ key: 'w' }); const r = await mcp.a.read({ key: 'k' }); return r.writes;";
    let id = dry(&mut place, code);
    let told = confirm(&mut place, &id);
    assert_eq!(told["result"], 1, "{told}");
    assert_read(&place, &["k", "k"]);
}

#[test]
fn a_read_that_follows_a_timer_is_made_again() {
    let mut place = cached();
    let code = "const one = await mcp.a.read({ key: 'k1' });\n\
        await new Promise((done) => setTimeout(done, 50));\n\
        const two = await mcp.a.read({ key: 'k2' });\n\
        return [one.writes, two.writes];";
    let id = dry(&mut place, code);
    confirm(&mut place, &id);
    assert_read(&place, &["k1", "k2", "k2"]);
}

#[test]
fn nothing_is_used_again_where_speculation_or_the_cache_is_off() {
    let mut place = cached();
    for options in [json!({ "speculate": false }), json!({ "cache": false })] {
        let before = place.keys("a:read").len();
        let id = dry(&mut place, "const r = await mcp.a.read({ key: 'k' }); return r.writes;");
        confirm_with(&mut place, &id, &options);
        assert_eq!(place.keys("a:read").len(), before + 2, "{options}");
    }
    let mut off = Place::with_rules("[speculation]\nenabled = false\n", CACHED);
    let id = dry(&mut off, READS);
    confirm(&mut off, &id);
    assert_read(&off, &["k1", "k2", "k1", "k2"]);
}

#[test]
fn dropped_results_are_not_used_again() {
    let mut place = cached();
    let id = dry(&mut place, READS);
    let dropped = place.home.run(&["cache", "clear"]);
    assert_eq!(dropped.code, 0, "{dropped:?}");
    confirm(&mut place, &id);
    assert_read(&place, &["k1", "k2", "k1", "k2"]);
}

#[test]
fn a_result_with_a_secret_is_not_kept() {
    let mut place = cached();
    let secret = format!("ghp_{}", "a1B2c3D4e5".repeat(4));
    let id = dry(
        &mut place,
        &format!("await mcp.a.read({{ key: '{secret}' }}); await mcp.a.read({{ key: 'k' }}); return 1;"),
    );
    confirm(&mut place, &id);
    assert_read(&place, &[&secret, "k", &secret]);
}

#[test]
fn a_run_that_waits_for_approval_uses_the_reads_after_it() {
    let rules = format!("{CACHED}\"b:write\" = {{ approval_mode = \"hil\" }}\n");
    let mut place = Place::with_rules("[approvals]\nby = \"client\"\n", &rules);
    let id = dry(&mut place, READS);
    let asks = confirm_with(&mut place, &id, &json!({}));
    assert_eq!(asks["status"], "approval_required", "{asks}");
    let told = place.go_on(&asks);
    assert_eq!(told["status"], "success", "{told}");
    assert_read(&place, &["k1", "k2"]);
}

#[test]
fn the_tasks_of_a_document_use_reads_too() {
    let mut place = cached();
    let tasks = json!([
        { "id": "r", "type": "mcp_tool", "tool": "a:read", "arguments": { "key": "k" } },
        { "id": "w", "type": "mcp_tool", "tool": "b:write", "arguments": { "key": "w" }, "depends_on": ["r"] },
    ]);
    let implementation = json!({ "type": "dag", "dagStructure": { "tasks": tasks } });
    let asked =
        json!({ "intent": "a test", "implementation": implementation, "options": { "dryRun": true } });
    let report = place.gateway.call("pml_execute", &asked);
    let id = report["report"]["id"].as_str().unwrap_or_else(|| panic!("{report}")).to_owned();
    confirm(&mut place, &id);
    assert_read(&place, &["k"]);
    assert_eq!(place.writes(), 1);
}

const FILE: &str =
    "const f = await mcp.fs.read({ path: 'a.txt' }); await mcp.b.write({ key: 'w' }); return f.content;";

/// A place with a file that has not changed for some time.
fn with_file() -> Place {
    let place = Place::start("");
    std::fs::write(place.home.path("a.txt"), "one").unwrap();
    // Files that changed less than two seconds ago may change again without another time stamp.
    std::thread::sleep(std::time::Duration::from_millis(2_200));
    place
}

#[test]
fn a_file_that_did_not_change_is_not_read_again() {
    let mut place = with_file();
    let id = dry(&mut place, FILE);
    let told = confirm(&mut place, &id);
    assert_eq!(told["result"], "one", "{told}");
    assert_eq!(told["speculated"]["fromDryRun"], 1, "{told}");
}

#[test]
fn a_file_that_changed_is_read_again_even_if_its_size_did_not() {
    let mut place = with_file();
    for text in ["two", "three"] {
        let id = dry(&mut place, FILE);
        std::fs::write(place.home.path("a.txt"), text).unwrap();
        let told = confirm(&mut place, &id);
        assert_eq!(told["result"], text, "{told}");
        assert!(told.get("speculated").is_none(), "{told}");
    }
}

#[test]
fn a_file_that_the_program_itself_wrote_is_read_for_real() {
    let mut place = with_file();
    let code = "const before = await mcp.fs.read({ path: 'a.txt' });\n\
        await mcp.fs.write({ path: 'a.txt', content: 'new' });\n\
        const after = await mcp.fs.read({ path: 'a.txt' });\n\
        return [before.content, after.content];";
    let report = crate::report(&mut place, code, &json!({}), &json!(true));
    assert_eq!(report["result"], json!(["one", "new"]), "{report}");
    let told = confirm(&mut place, report["id"].as_str().unwrap());
    assert_eq!(told["result"], json!(["one", "new"]), "{told}");
    assert_eq!(told["speculated"]["fromDryRun"], 1, "{told}");
}
