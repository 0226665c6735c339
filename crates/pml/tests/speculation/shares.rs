//! How likely a branch is follows from what earlier runs decided.

use serde_json::{Value, json};

use crate::place::{Place, served};

/// A program whose branch depends on what it reads first.
const BRANCHES: &str = "const one = await mcp.b.read({ key: args.key, wait: 30 });\n\
                        if (one.given.key === 'yes') { return (await mcp.a.read({ key: 'branch' })).given.key; }\n\
                        return 'none';";

/// Runs it until `enough`, which learning takes a moment for; `false` if that never comes.
fn runs_until(place: &mut Place, key: &str, enough: impl Fn(&Place, &Value) -> bool) -> bool {
    (0..60).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        let told = place.run(BRANCHES, &json!({ "key": key }));
        assert_eq!(told["result"], if key == "yes" { "branch" } else { "none" }, "{told}");
        enough(place, &told)
    })
}

#[test]
fn a_branch_that_was_always_taken_is_read_ahead() {
    let mut place = Place::start("");
    let is_ahead = |place: &Place, told: &Value| served(&place.trace(told)).0.contains(&"branch".to_owned());
    let told = place.run(BRANCHES, &json!({ "key": "yes" }));
    assert!(!is_ahead(&place, &told), "nothing is known of it yet");
    assert!(runs_until(&mut place, "yes", is_ahead), "it was taken every time");
}

#[test]
fn a_branch_that_was_never_taken_is_not_read_ahead_any_more() {
    let mut place = Place::start("[speculation]\npreset = \"eager\"\n");
    // The tool has earned that reads of branches with even odds are made.
    let earn = "for (const key of args.keys) { await mcp.a.read({ key }); } return 1;";
    let keys: Vec<String> = (0..150).map(|n| format!("earn {n}")).collect();
    assert_eq!(place.run(earn, &json!({ "keys": keys }))["result"], 1);
    let reads = |place: &Place| place.keys("a:read").into_iter().filter(|key| key == "branch").count();
    assert_eq!(place.run(BRANCHES, &json!({ "key": "no" }))["result"], "none");
    assert_eq!(reads(&place), 1, "even odds: {:?}", place.begun());
    let seen = std::cell::Cell::new(1);
    let is_left_alone = |place: &Place, _: &Value| seen.replace(reads(place)) == reads(place);
    assert!(runs_until(&mut place, "no", is_left_alone), "it was never taken: {:?}", place.begun());
    let threshold = place.stats("a:read", 1)["threshold"].as_f64().unwrap();
    assert!(threshold < 0.5, "the tool still has what it earned: {threshold}");
}
