//! Results that are known are given again, as long as nothing was written.

use serde_json::{Value, json};

use crate::place::{ALL, Place};

const READ: &str = "const file = await mcp.fs.read({ path: 'a.txt' }); return file.content;";

fn ask(place: &mut Place, code: &str) -> Value {
    place.run_with("read the file", code, &json!({}), &json!({}))
}

#[test]
fn a_result_is_known_until_something_is_written() {
    let mut place = Place::start(ALL);
    std::fs::write(place.home.path("a.txt"), "before").unwrap();
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
fn what_depends_on_more_than_it_is_given_is_run_each_time() {
    let mut place = Place::start(ALL);
    for code in [
        "return Math.random()",
        "return new Date().toISOString()",
        "return mcp.time.now({})",
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
    std::fs::write(place.home.path("a.txt"), "x").unwrap();
    ask(&mut place, READ);
    let told = place.run_with("read the file", READ, &json!({}), &json!({ "cache": false }));
    assert!(told.get("cacheHit").is_none(), "{told}");
}

#[test]
fn what_a_capability_gave_is_known_to_other_processes() {
    let mut place = Place::start(ALL);
    std::fs::write(place.home.path("a.txt"), "kept").unwrap();
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
