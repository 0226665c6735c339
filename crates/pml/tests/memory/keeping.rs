//! How results are kept: what is set for a capability, what drops them, and what is shown for nearly the same intent.

use serde_json::{Value, json};

use crate::harness::{Home, eventually};
use crate::place::{ALL, Place, api};
use crate::tools;

const READ: &str = "const file = await mcp.fs.read({ path: 'a.txt' }); return file.content;";

/// A place where the program has run once and worked.
fn place() -> Place {
    let mut place = Place::start(ALL);
    place.write_settled("a.txt", "text");
    assert_eq!(hit(&mut place), None, "it is new");
    place
}

/// Where the result of the program is from now.
fn hit(place: &mut Place) -> Option<String> {
    let told = place.run_with("read the file", READ, &json!({}), &json!({}));
    assert_eq!(told["result"], "text", "{told}");
    told["cacheHit"].as_str().map(str::to_owned)
}

fn set(home: &Home, options: &[&str]) -> Value {
    let set = home.run(&[&["capabilities", "cache", "readFile", "--json"], options].concat());
    assert_eq!(set.code, 0, "{options:?}: {}", set.stderr);
    serde_json::from_str(&set.stdout).unwrap()
}

/// Ends the gateway in peace, so that what it knows is stored, and starts another.
fn start_anew(place: &mut Place) {
    place.gateway.hang_up();
    assert_eq!(place.gateway.ends_within(std::time::Duration::from_secs(60)), 0);
    place.restart();
}

#[test]
fn it_is_set_on_the_terminal_and_tells_what_it_does() {
    let mut place = place();
    assert_eq!(hit(&mut place).as_deref(), Some("execution"));
    place.settled();
    let shown = set(&place.home, &[]);
    let default = json!({ "cacheable": true, "ttl_seconds": 1800, "key_strategy": "params_hash",
        "invalidate_on": ["tool_schema_change"], "max_entries": 10 });
    assert_eq!((&shown["cacheConfig"], &shown["cache"]["hit_count"]), (&default, &json!(1)), "{shown}");
    let shown = set(
        &place.home,
        &[
            "--ttl",
            "60",
            "--max-entries",
            "2",
            "--key-strategy",
            "intent_similarity",
            "--invalidate-on",
            "daily",
        ],
    );
    let wanted = json!({ "cacheable": true, "ttl_seconds": 60, "key_strategy": "intent_similarity",
        "invalidate_on": ["daily"], "max_entries": 2 });
    assert_eq!(shown["cacheConfig"], wanted);
    let shown = set(&place.home, &["--invalidate-on", "tool_schema_change,daily"]);
    assert_eq!(shown["cacheConfig"]["invalidate_on"], json!(["tool_schema_change", "daily"]));
    assert_eq!(set(&place.home, &["--invalidate-on"])["cacheConfig"]["invalidate_on"], json!([]));
    let words = place.home.run(&["capabilities", "show", "readFile"]).stdout;
    let kept = "results kept: for 60 s, 2 at most; found by intent_similarity; dropped on nothing; 0 there, given 1 times";
    assert!(words.contains(kept), "{words}");
    for (options, told) in [
        (["--key-strategy", "by_moon"], "params_hash, intent_similarity, none"),
        (["--invalidate-on", "full_moon"], "tool_schema_change, daily, manual_only"),
        (["--invalidate-on", "daily,manual_only"], "`manual_only` contradicts every other event"),
    ] {
        let refused = place.home.run(&[&["capabilities", "cache", "readFile"], &options[..]].concat());
        assert!(refused.code == 2 && refused.stderr.contains(told), "{options:?}: {}", refused.stderr);
    }
    let nobody = place.home.run(&["capabilities", "cache", "nobody", "--off"]);
    assert!(
        nobody.code == 1 && nobody.stderr.contains("there is no capability `nobody`"),
        "{}",
        nobody.stderr
    );
}

#[test]
fn a_use_of_a_known_result_counts_also_where_its_process_ends_at_once() {
    let place = place();
    place.settled();
    let mut hits = 0;
    for _ in 0..10 {
        let told = place.home.run(&["execute", "read the file", "--json"]);
        let told: Value = serde_json::from_str(&told.stdout).unwrap_or_else(|_| panic!("{}", told.stderr));
        assert_eq!(told["result"], "text", "{told}");
        hits += u64::from(!told["cacheHit"].is_null());
    }
    assert!(hits >= 9, "one at most is run to be known by its arguments: {hits}");
    assert_eq!(set(&place.home, &[])["cache"]["hit_count"], json!(hits));
}

#[test]
fn it_is_set_over_http_too() {
    let home = Home::new(ALL);
    std::fs::write(home.path("a.txt"), "text").unwrap();
    std::fs::write(home.path("read.ts"), READ).unwrap();
    assert_eq!(home.run(&["execute", "read the file", "--code", "read.ts"]).code, 0);
    let served = home.serve(&[]);
    let path = "/api/capabilities/readFile/cache";
    let (status, told) = api(&served, "POST", path, Some(json!({ "ttl_seconds": 5, "max_entries": 1 })));
    assert_eq!((status, &told["capability"]["cacheConfig"]["ttl_seconds"]), (200, &json!(5)), "{told}");
    let (_, shown) = api(&served, "GET", "/api/capabilities/readFile", None);
    assert_eq!(shown["capability"]["cacheConfig"]["max_entries"], 1, "{shown}");
    assert_eq!(shown["capability"]["cache"], json!({ "entries": 0, "hit_count": 0 }), "{shown}");
    for (wrong, known) in [
        (json!({ "key_strategy": "by_moon" }), "`params_hash`, `intent_similarity`, `none`"),
        (json!({ "invalidate_on": ["full_moon"] }), "`tool_schema_change`, `daily`, `manual_only`"),
        (json!({ "ttl": 5 }), "`ttl_seconds`"),
    ] {
        let (status, told) = api(&served, "POST", path, Some(wrong.clone()));
        let message = told["error"]["message"].as_str().unwrap_or_default();
        assert!(status == 400 && message.contains(known), "{wrong}: {told}");
    }
    let (status, _) =
        api(&served, "POST", "/api/capabilities/nobody/cache", Some(json!({ "cacheable": false })));
    assert_eq!(status, 404);
}

#[test]
fn what_is_set_elsewhere_counts_at_once_in_a_gateway_that_runs() {
    let mut place = place();
    for off in [&["--off"][..], &["--ttl", "0"], &["--max-entries", "0"], &["--key-strategy", "none"]] {
        set(&place.home, &["--on", "--ttl", "60", "--max-entries", "3", "--key-strategy", "params_hash"]);
        assert_eq!(hit(&mut place), None, "{off:?}: it was set how they are kept");
        assert_eq!(hit(&mut place).as_deref(), Some("execution"), "{off:?}");
        let told = set(&place.home, off);
        assert_eq!([hit(&mut place), hit(&mut place)], [None, None], "{off:?}: {told}");
    }
}

#[test]
fn results_of_what_changes_something_are_never_kept() {
    let mut place = Place::start(ALL);
    for (name, code, because) in [
        (
            "noteDown",
            "await mcp.fs.write({ path: 'a.txt', content: 'x' }); return 1",
            "`fs:write` may change something",
        ),
        ("rollDice", "return Math.random()", "it uses `random`"),
    ] {
        let code = format!("pml.hint({{ name: '{name}', description: 'x' }}); {code}");
        let told = place.run("do it", &code, &json!({}));
        assert_eq!(told["status"], "success", "{told}");
        place.settled();
        let shown = place.home.run(&["capabilities", "show", name]).stdout;
        assert!(shown.contains("results kept: never"), "{shown}");
        let refused = place.home.run(&["capabilities", "cache", name, "--on"]);
        assert!(refused.code == 2 && refused.stderr.contains(because), "{name}: {}", refused.stderr);
        let other = place.home.run(&["capabilities", "cache", name, "--ttl", "60"]);
        assert!(other.stdout.contains("results are kept never"), "{}", other.stdout);
    }
}

#[test]
fn what_a_tool_gives_is_kept_only_where_it_is_said_for_how_long() {
    let mut place = Place::start(ALL);
    let code = "pml.hint({ name: 'tellTime', description: 'x' }); return mcp.time.now({})";
    for _ in 0..2 {
        let told = place.run_with("what time is it", code, &json!({}), &json!({}));
        assert_eq!((told["status"].as_str(), told.get("cacheHit")), (Some("success"), None), "{told}");
    }
    place.settled();
    let refused = place.home.run(&["capabilities", "cache", "tellTime", "--on"]);
    assert!(refused.code == 2 && refused.stderr.contains("`time:now`"), "{}", refused.stderr);
    assert!(refused.stderr.contains("cache_ttl"), "{}", refused.stderr);
    let rule = "\"time:now\" = { cache_ttl = \"10m\" }\n[builtin.fs]";
    place.home.configure(&ALL.replace("[builtin.fs]", rule));
    place.restart();
    let told = place.run_with("what time is it", code, &json!({}), &json!({}));
    assert_eq!(told.get("cacheHit"), None, "{told}");
    let again = place.run_with("what time is it", code, &json!({}), &json!({}));
    assert_eq!(
        (again["cacheHit"].as_str(), &again["result"]),
        (Some("execution"), &told["result"]),
        "{again}"
    );
}

#[test]
fn results_that_somebody_drops_are_gone_from_gateways_that_run() {
    let mut place = place();
    assert_eq!(hit(&mut place).as_deref(), Some("execution"));
    assert_eq!(place.home.run(&["cache", "clear"]).code, 0);
    assert_eq!(hit(&mut place), None);
    assert_eq!(hit(&mut place).as_deref(), Some("execution"));
}

#[test]
fn no_more_results_are_kept_than_wanted() {
    let mut place = place();
    place.write_settled("b.txt", "other");
    set(&place.home, &["--max-entries", "1"]);
    let by_name = |place: &mut Place, path: &str| {
        let told = place.gateway.call(
            "pml_execute",
            &json!({ "intent": format!("read the file {path}"), "context": { "path": path },
                "implementation": { "type": "capability", "id": "readFile" } }),
        );
        assert_eq!(told["status"], "success", "{told}");
        told["cacheHit"].as_str().map(str::to_owned)
    };
    assert_eq!(by_name(&mut place, "a.txt"), None);
    assert_eq!(by_name(&mut place, "b.txt"), None);
    start_anew(&mut place);
    assert_eq!(set(&place.home, &[])["cache"]["entries"], 1);
    assert_eq!(by_name(&mut place, "b.txt").as_deref(), Some("capability"));
    assert_eq!(by_name(&mut place, "a.txt"), None, "it gave way");
}

#[test]
fn a_tool_that_changes_drops_results_only_where_it_should() {
    let mut place = tools::place();
    let wish = "how warm is it in Oslo";
    let told = place.run(wish, tools::CODE, &json!({}));
    let id = told["capabilityId"].as_str().unwrap().to_owned();
    let by_name = json!({ "intent": wish, "implementation": { "type": "capability", "id": id } });
    let other = "return mcp.weather.report({ city: 'Rome' })";
    for (events, version, known) in [("daily", "3", true), ("tool_schema_change", "1", false)] {
        let set = place.home.run(&["capabilities", "cache", &id, "--invalidate-on", events]);
        assert_eq!(set.code, 0, "{}", set.stderr);
        let told = place.gateway.call("pml_execute", &by_name);
        assert_eq!((told["result"].as_i64(), told.get("cacheHit")), (Some(21), None), "{told}");
        start_anew(&mut place);
        std::fs::write(place.home.path("version"), version).unwrap();
        // Being called starts the server, which tells of its tools.
        place.run("look", other, &json!({}));
        let told = place.gateway.call("pml_execute", &by_name);
        assert_eq!(told["cacheHit"].as_str(), known.then_some("capability"), "{events}: {told}");
    }
}

const LENGTH: &str = "const file = await mcp.fs.read({ path: args.path }); return file.content.length;";

/// Asks for whatever serves; what is known will do.
fn wish(place: &mut Place, intent: &str) -> Value {
    place.gateway.call("pml_execute", &json!({ "intent": intent }))
}

/// The same, once what came of it before is stored, which nobody waits for.
fn shown(place: &mut Place, intent: &str) -> Value {
    let mut told = Value::Null;
    eventually("an earlier result is shown", || {
        told = wish(place, intent);
        told.get("cacheHit").is_some()
    });
    told
}

/// The program ran for an intent that does not say which file it is about.
fn measured(config: &str) -> Place {
    let mut place = Place::start(config);
    place.write_settled("a.txt", "text");
    let told =
        place.run_with("measure part 3 of the report", LENGTH, &json!({ "path": "a.txt" }), &json!({}));
    assert_eq!(told["result"], 4, "{told}");
    place
}

#[test]
fn what_came_of_nearly_the_same_intent_is_shown_and_never_given() {
    let mut place = measured(&format!("{ALL}[memory]\nearlier_results = true\n"));
    let told = shown(&mut place, "please measure part 3 of the report");
    assert_eq!(
        (told["status"].as_str(), told["cacheHit"].as_str()),
        (Some("suggestions"), Some("intent_similar")),
        "{told}"
    );
    assert!(told["similarity"].as_f64().unwrap() > 0.95 && told["cacheAgeMs"].is_i64(), "{told}");
    assert_eq!(told.get("result"), None, "{told}");
    let earlier = &told["suggestions"]["earlier"];
    assert_eq!(
        (&earlier["result"], earlier["intent"].as_str()),
        (&json!(4), Some("measure part 3 of the report"))
    );
    let given = json!({ "intent": "measure part 3 of the report", "context": { "path": "b.txt" } });
    let given = place.gateway.call("pml_execute", &given);
    assert_eq!(given.get("cacheHit"), None, "that was of another file: {given}");
    let other = wish(&mut place, "measure part 4 of the report");
    assert_eq!((other["status"].as_str(), other.get("cacheHit")), (Some("suggestions"), None), "{other}");
    let unwanted = place.wish("measure part 3 of the report");
    assert_eq!(unwanted.get("cacheHit"), None, "{unwanted}");
    place.run("write", "await mcp.fs.write({ path: 'b.txt', content: 'x' })", &json!({}));
    let written = wish(&mut place, "measure part 3 of the report");
    assert_eq!(written.get("cacheHit"), None, "something was written: {written}");
}

#[test]
fn what_is_shown_for_nearly_the_same_intent_is_of_the_file_as_it_is() {
    let mut place = measured(&format!("{ALL}[memory]\nearlier_results = true\n"));
    shown(&mut place, "please measure part 3 of the report");
    std::fs::write(place.home.path("a.txt"), "much longer").unwrap();
    let told = wish(&mut place, "please measure part 3 of the report");
    assert_eq!(told.get("cacheHit"), None, "the file is another one: {told}");
}

#[test]
fn nothing_is_shown_for_nearly_the_same_intent_unless_it_is_wanted() {
    let mut place = measured(ALL);
    let told = wish(&mut place, "measure part 3 of the report");
    assert_eq!((told["status"].as_str(), told.get("cacheHit")), (Some("suggestions"), None), "{told}");
    let name = place.capability().name;
    let set = place.home.run(&["capabilities", "cache", &name, "--key-strategy", "intent_similarity"]);
    assert_eq!(set.code, 0, "{}", set.stderr);
    place.run_with("measure part 3 of the report", LENGTH, &json!({ "path": "a.txt" }), &json!({}));
    shown(&mut place, "measure part 3 of the report");
    let printed = place.home.run(&["execute", "measure part 3 of the report"]).stdout;
    assert!(
        printed.contains("an earlier result for \"measure part 3 of the report\" (similarity 1.00"),
        "{printed}"
    );
}

#[test]
fn what_was_learned_is_forgotten_on_the_terminal_and_by_running_gateways() {
    let mut place = place();
    assert_eq!(hit(&mut place).as_deref(), Some("execution"));
    place.settled();
    for (options, told) in [
        (vec!["--since", "2000-01-01"], "give `--yes`"),
        (vec!["--since", "yesterday", "--yes"], "`yesterday` is no date and no time"),
        (
            vec!["--since", "2030-01-01", "--before", "2029-01-01", "--yes"],
            "`--since` is not before `--before`",
        ),
        (vec!["--run", "run_00000000000000000000000000000001", "--yes"], "there is no run"),
        (vec!["--yes"], "--run"),
    ] {
        let refused = place.home.run(&[&["forget"], &options[..]].concat());
        assert!(refused.code != 0 && refused.stderr.contains(told), "{options:?}: {refused:?}");
    }
    let forgotten = place.home.run(&["forget", "--since", "2000-01-01", "--yes", "--json"]);
    assert_eq!(forgotten.code, 0, "{forgotten:?}");
    let forgotten: Value = serde_json::from_str(&forgotten.stdout).unwrap();
    // The cached result is in the memory of the gateway; that it is gone shows below.
    assert_eq!((&forgotten["runs"], &forgotten["capabilities"]), (&json!(1), &json!(1)), "{forgotten}");
    assert!(!place.home.run(&["capabilities", "list"]).stdout.contains("readFile"));
    assert_eq!(hit(&mut place), None, "it is new again");
    assert!(place.home.run(&["audit", "list"]).stdout.contains("forgotten"));
}
