//! Results that are known are given again, as long as nothing they were made of has changed.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::place::{ALL, Place, settle};

const READ: &str = "const file = await mcp.fs.read({ path: 'a.txt' }); return file.content;";
const LIST: &str =
    "const l = await mcp.fs.list({ path: 'notes' }); return l.entries.map((e) => e.path + ' ' + e.size);";

fn ask(place: &mut Place, code: &str) -> Value {
    place.run_with("read the file", code, &json!({}), &json!({}))
}

#[track_caller]
fn is_known(place: &mut Place, code: &str, result: &Value) {
    let told = ask(place, code);
    assert_eq!((&told["result"], told["cacheHit"].as_str()), (result, Some("execution")), "{told}");
}

#[track_caller]
fn is_run(place: &mut Place, code: &str, result: &Value) {
    let told = ask(place, code);
    assert_eq!((&told["result"], told.get("cacheHit")), (result, None), "{told}");
}

#[test]
fn a_result_is_known_until_something_is_written() {
    let mut place = Place::start(ALL);
    place.write_settled("a.txt", "before");
    let first = ask(&mut place, READ);
    assert_eq!((first["result"].as_str(), first.get("cacheHit")), (Some("before"), None), "{first}");
    let second = ask(&mut place, READ);
    assert_eq!((second["result"].as_str(), second["cacheHit"].as_str()), (Some("before"), Some("execution")));
    assert!(second["cacheAgeMs"].is_i64(), "{second}");
    place.run("write", "await mcp.fs.write({ path: 'a.txt', content: 'after' })", &json!({}));
    let third = ask(&mut place, READ);
    assert_eq!((third["result"].as_str(), third.get("cacheHit")), (Some("after"), None), "{third}");
    let id = first["capabilityId"].as_str().unwrap();
    let statistics = place.capability_of(id).statistics;
    assert_eq!((statistics.usage_count, statistics.success_count), (3, 2), "a use, and no evidence");
}

#[test]
fn every_hit_says_so_in_the_text_with_its_age() {
    let mut place = Place::start(ALL);
    let code = "return (await mcp.text.count({ text: 'a b c' })).words";
    let asked = json!({ "intent": "count", "implementation": { "type": "code", "code": code } });
    let first = place.text("pml_execute", &asked);
    assert!(!first.contains("kept"), "{first}");
    let second = place.text("pml_execute", &asked);
    assert!(
        second.starts_with("3\n") && second.contains("kept by an earlier run") && second.contains("ago"),
        "{second}"
    );
    fs::write(place.home.path("p.ts"), code).unwrap();
    let by_id =
        |place: &Place| place.home.run(&["execute", "count", "--capability", "count", "--args", "{}"]);
    by_id(&place);
    let printed = by_id(&place);
    assert!(printed.stderr.contains("kept by an earlier run"), "{}{}", printed.stdout, printed.stderr);
}

#[test]
fn a_file_edited_outside_between_two_reads_is_read_again() {
    let mut place = Place::start(ALL);
    place.write_settled("a.txt", "one");
    is_run(&mut place, READ, &json!("one"));
    is_known(&mut place, READ, &json!("one"));
    // The same size, so that only times and content differ.
    fs::write(place.home.path("a.txt"), "two").unwrap();
    is_run(&mut place, READ, &json!("two"));
    // What changed a moment ago may change again unseen.
    is_run(&mut place, READ, &json!("two"));
    settle();
    is_run(&mut place, READ, &json!("two"));
    is_known(&mut place, READ, &json!("two"));
}

#[test]
fn a_file_replaced_by_another_is_read_again() {
    let mut place = Place::start(ALL);
    place.write_settled("a.txt", "one");
    fs::write(place.home.path("b.txt"), "two").unwrap();
    settle();
    is_run(&mut place, READ, &json!("one"));
    is_known(&mut place, READ, &json!("one"));
    fs::rename(place.home.path("b.txt"), place.home.path("a.txt")).unwrap();
    is_run(&mut place, READ, &json!("two"));
}

#[test]
fn a_time_that_was_set_back_deceives_nobody() {
    let mut place = Place::start(ALL);
    let (file, like) = (place.home.path("a.txt"), place.home.path("like"));
    fs::write(&file, "one").unwrap();
    let touch = |what: &std::path::Path, arguments: &[&std::ffi::OsStr]| {
        assert!(Command::new("touch").args(arguments).arg(what).status().unwrap().success());
    };
    touch(&file, &["-d".as_ref(), "2020-01-01T00:00:00".as_ref()]);
    touch(&like, &["-r".as_ref(), file.as_os_str()]);
    settle();
    is_run(&mut place, READ, &json!("one"));
    is_known(&mut place, READ, &json!("one"));
    fs::write(&file, "two").unwrap();
    touch(&file, &["-r".as_ref(), like.as_os_str()]);
    is_run(&mut place, READ, &json!("two"));
}

#[test]
fn a_link_that_leads_elsewhere_is_followed_again() {
    let mut place = Place::start(ALL);
    fs::write(place.home.path("one.txt"), "one").unwrap();
    fs::write(place.home.path("two.txt"), "two").unwrap();
    std::os::unix::fs::symlink("one.txt", place.home.path("a.txt")).unwrap();
    settle();
    is_run(&mut place, READ, &json!("one"));
    is_known(&mut place, READ, &json!("one"));
    fs::remove_file(place.home.path("a.txt")).unwrap();
    std::os::unix::fs::symlink("two.txt", place.home.path("a.txt")).unwrap();
    is_run(&mut place, READ, &json!("two"));
}

#[test]
fn a_directory_put_in_the_place_of_another_is_read_again() {
    let mut place = Place::start(ALL);
    let read = "const file = await mcp.fs.read({ path: 'now/a.txt' }); return file.content;";
    for (directory, text) in [("now", "one"), ("next", "two")] {
        fs::create_dir(place.home.path(directory)).unwrap();
        fs::write(place.home.path(directory).join("a.txt"), text).unwrap();
    }
    settle();
    is_run(&mut place, read, &json!("one"));
    is_known(&mut place, read, &json!("one"));
    fs::rename(place.home.path("now"), place.home.path("before")).unwrap();
    fs::rename(place.home.path("next"), place.home.path("now")).unwrap();
    is_run(&mut place, read, &json!("two"));
}

#[test]
fn listings_and_searches_see_what_is_new() {
    let mut place = Place::start(ALL);
    fs::create_dir_all(place.home.path("notes/deep")).unwrap();
    fs::write(place.home.path("notes/a.txt"), "alpha").unwrap();
    fs::write(place.home.path("notes/deep/b.txt"), "beta").unwrap();
    settle();
    let found = "const s = await mcp.fs.search({ path: 'notes', contains: 'alpha' }); return s.matches.map((m) => m.path);";
    let there = "return (await mcp.fs.stat({ path: 'notes/c.txt' })).exists;";
    is_run(&mut place, LIST, &json!(["notes/a.txt 5", "notes/deep null"]));
    is_known(&mut place, LIST, &json!(["notes/a.txt 5", "notes/deep null"]));
    is_run(&mut place, found, &json!(["notes/a.txt"]));
    is_known(&mut place, found, &json!(["notes/a.txt"]));
    is_run(&mut place, there, &json!(false));
    is_known(&mut place, there, &json!(false));
    fs::write(place.home.path("notes/c.txt"), "gamma").unwrap();
    is_run(&mut place, LIST, &json!(["notes/a.txt 5", "notes/c.txt 5", "notes/deep null"]));
    is_run(&mut place, there, &json!(true));
    settle();
    is_run(&mut place, found, &json!(["notes/a.txt"]));
    is_known(&mut place, found, &json!(["notes/a.txt"]));
    // Deep below, in a file that was there.
    fs::write(place.home.path("notes/deep/b.txt"), "alpha").unwrap();
    is_run(&mut place, found, &json!(["notes/a.txt", "notes/deep/b.txt"]));
    is_run(&mut place, LIST, &json!(["notes/a.txt 5", "notes/c.txt 5", "notes/deep null"]));
    is_known(&mut place, LIST, &json!(["notes/a.txt 5", "notes/c.txt 5", "notes/deep null"]));
    fs::write(place.home.path("notes/a.txt"), "longer than before").unwrap();
    is_run(&mut place, LIST, &json!(["notes/a.txt 18", "notes/c.txt 5", "notes/deep null"]));
}

#[test]
fn what_depends_on_more_than_it_is_given_is_run_each_time() {
    let mut place = Place::start(ALL);
    for code in [
        "return Math.random()",
        "return new Date().toISOString()",
        "return mcp.time.now({})",
        "return mcp.time.diff({ from: '2026-01-01', to: '2026-01-02' })",
        "await mcp.fs.write({ path: 'a.txt', content: 'x' }); return 1",
    ] {
        for _ in 0..2 {
            let told = ask(&mut place, code);
            assert_eq!(
                (told["status"].as_str(), told.get("cacheHit")),
                (Some("success"), None),
                "{code}: {told}"
            );
        }
    }
    place.write_settled("a.txt", "x");
    ask(&mut place, READ);
    let told = place.run_with("read the file", READ, &json!({}), &json!({ "cache": false }));
    assert!(told.get("cacheHit").is_none(), "{told}");
}

#[test]
fn what_computes_from_its_arguments_alone_is_kept_and_so_is_what_the_operator_calls_closed() {
    let mut place =
        Place::start(&ALL.replace("[builtin.fs]", "\"time:diff\" = { closed = true }\n[builtin.fs]"));
    for code in [
        "return (await mcp.json.parse({ json: '[1]' })).data",
        "return (await mcp.text.count({ text: 'a b' })).words",
        "return (await mcp.csv.parse({ csv: 'a\\n1' })).rows",
        "return (await mcp.math.evaluate({ expression: '1 + 1' })).value",
        "return (await mcp.time.diff({ from: '2026-01-01', to: '2026-01-02' })).days",
    ] {
        let first = ask(&mut place, code);
        assert_eq!(
            (first["status"].as_str(), first.get("cacheHit")),
            (Some("success"), None),
            "{code}: {first}"
        );
        is_known(&mut place, code, &first["result"]);
    }
}

#[test]
fn what_a_capability_gave_is_known_to_other_processes() {
    let mut place = Place::start(ALL);
    place.write_settled("a.txt", "kept");
    let id = ask(&mut place, READ)["capabilityId"].clone();
    let by_id = json!({ "intent": "read the file", "implementation": { "type": "capability", "id": id } });
    let first = place.gateway.call("pml_execute", &by_id);
    assert_eq!((first["result"].as_str(), first.get("cacheHit")), (Some("kept"), None), "{first}");
    place.settled();
    // What is only kept to be quicker is not waited for; a gateway that ends in peace has stored it.
    place.gateway.hang_up();
    assert_eq!(place.gateway.ends_within(std::time::Duration::from_secs(60)), 0);
    place.restart();
    let second = place.gateway.call("pml_execute", &by_id);
    assert_eq!(
        (second["result"].as_str(), second["cacheHit"].as_str()),
        (Some("kept"), Some("capability")),
        "{second}"
    );
    place.run("write", "await mcp.fs.write({ path: 'a.txt', content: 'new' })", &json!({}));
    let third = place.gateway.call("pml_execute", &by_id);
    assert_eq!((third["result"].as_str(), third.get("cacheHit")), (Some("new"), None), "{third}");
    let cleared = place.home.run(&["cache", "clear"]).stdout;
    assert_eq!(cleared, "dropped: 1\n");
    let log = place.home.run(&["cache", "log"]).stdout;
    assert!(log.contains("somebody wished it"), "{log}");
}

#[test]
fn what_other_processes_kept_is_compared_with_the_files_too() {
    let mut place = Place::start(ALL);
    place.write_settled("a.txt", "kept");
    let id = ask(&mut place, READ)["capabilityId"].clone();
    let by_id = json!({ "intent": "read the file", "implementation": { "type": "capability", "id": id } });
    place.gateway.call("pml_execute", &by_id);
    place.settled();
    place.gateway.hang_up();
    assert_eq!(place.gateway.ends_within(std::time::Duration::from_secs(60)), 0);
    fs::write(place.home.path("a.txt"), "edit").unwrap();
    place.restart();
    let told = place.gateway.call("pml_execute", &by_id);
    assert_eq!((told["result"].as_str(), told.get("cacheHit")), (Some("edit"), None), "{told}");
}
