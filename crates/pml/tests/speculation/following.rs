//! What speculation does not change: waiting on purpose, the order in traces, and what leaves the machine.

use pml_model::trace::EdgeKind;
use serde_json::json;

use crate::place::Place;

#[test]
fn a_read_after_a_sleep_sees_what_is_there_after_the_sleep() {
    let mut place = Place::start("");
    let code = "const one = await mcp.a.read({ key: 'one', until: 'go' });\n\
                await new Promise((wake) => setTimeout(wake, 30));\n\
                const two = await mcp.a.read({ key: 'two' });\n\
                const three = await mcp.a.read({ key: 'three' });\n\
                return [one.given.key, two.writes, three.writes];";
    let request = place.begin(code, &json!({}));
    place.wait_for_key("one");
    // Long enough for whatever is read ahead; nobody tells the gateway of the change.
    std::thread::sleep(std::time::Duration::from_millis(100));
    place.change_world();
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], json!(["one", 1, 1]), "{told}");
}

#[test]
fn a_program_that_polls_with_sleeps_sees_the_change() {
    let mut place = Place::start("");
    let code = "for (const turn of [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) {\n\
                  const now = await mcp.a.read({ key: 'state', turn });\n\
                  if (now.writes > 0) return 'changed';\n\
                  await mcp.b.read({ key: `polled ${turn}` });\n\
                  await new Promise((wake) => setTimeout(wake, 20));\n\
                }\n\
                return 'never';";
    let request = place.begin(code, &json!({}));
    place.wait_for_key("polled 2");
    place.change_world();
    assert_eq!(place.gateway.outcome(request)["result"], "changed");
}

#[test]
fn what_is_learned_from_a_sequence_stays_a_sequence() {
    let mut place = Place::start("");
    let code = "const one = await mcp.a.read({ key: 'one', wait: 30 });\n\
                const two = await mcp.b.read({ key: 'two', wait: 30 });\n\
                const three = await mcp.a.read({ key: one.given.key, wait: 30 });\n\
                const four = await mcp.b.read({ key: 'four' });\n\
                return [two.given.key, three.given.key, four.given.key];";
    let edges = |place: &mut Place, speculate: bool| {
        let request = place.begin_with(code, &json!({}), json!({ "speculate": speculate }));
        let told = place.gateway.outcome(request);
        assert_eq!(told.get("speculated").is_some(), speculate, "{told}");
        place.trace(&told).body.edges
    };
    let (with, without) = (edges(&mut place, true), edges(&mut place, false));
    assert_eq!(with, without);
    for (from, to) in [(0, 1), (1, 2), (2, 3)] {
        let is_there =
            with.iter().any(|edge| (edge.from, edge.to) == (from, to) && edge.kind != EdgeKind::Contains);
        assert!(is_there, "{from} ended before {to} began: {with:?}");
    }
}

#[test]
fn a_tool_that_reaches_a_network_is_called_ahead_only_with_what_no_tool_gave() {
    let mut place = Place::start("");
    let code = "const one = await mcp.a.read({ key: 'one', word: 'from one' });\n\
                await mcp.a.read({ key: 'two', until: 'go' });\n\
                await mcp.b.web({ key: one.given.word });\n\
                await mcp.b.web({ key: `x ${one.given.word}` });\n\
                for (const key of [one.given.word]) { await mcp.b.web({ key, again: true }); }\n\
                await mcp.b.web({ key: args.query });\n\
                return (await mcp.b.web({ key: 'literal' })).given.key;";
    let request = place.begin(code, &json!({ "query": "from the caller" }));
    for key in ["from the caller", "literal"] {
        place.wait_for_end(key);
    }
    assert_eq!(place.keys("b:web").len(), 2, "nothing else has left the machine: {:?}", place.begun());
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], "literal", "{told}");
    place.assert_served(
        &told,
        &["two", "from the caller", "literal"],
        &["one", "from one", "x from one", "from one"],
    );
    assert_eq!(place.keys("b:web").len(), 5);
}

#[test]
fn a_tool_that_reaches_a_network_is_not_called_for_a_branch_that_is_not_decided() {
    let mut place = Place::start("[speculation]\npreset = \"eager\"\n");
    // Whatever the tool has earned: reads of branches are then made ahead.
    let earn =
        "for (const key of args.keys) { await mcp.b.web({ key }); await mcp.b.read({ key }); } return 1;";
    let keys: Vec<String> = (0..40).map(|n| format!("earn {n}")).collect();
    assert_eq!(place.run(earn, &json!({ "keys": keys }))["result"], 1);
    let code = "const one = await mcp.a.read({ key: 'one', until: 'go' });\n\
                if (one.writes > 0) {\n\
                  await mcp.b.read({ key: 'closed' });\n\
                  await mcp.b.web({ key: 'open' });\n\
                }\n\
                return (await mcp.b.read({ key: 'last' })).given.key;";
    let request = place.begin(code, &json!({}));
    for key in ["closed", "last"] {
        place.wait_for_end(key);
    }
    place.allow("go");
    assert_eq!(place.gateway.outcome(request)["result"], "last");
    assert!(!place.keys("b:web").contains(&json!("open")), "{:?}", place.begun());
}

#[test]
fn what_came_of_reads_belongs_to_one_principal() {
    let mut place = Place::start("");
    let code = "await mcp.a.read({ key: 'one' }); return (await mcp.a.read({ key: 'two' })).given.key;";
    assert_eq!(place.run(code, &json!({}))["result"], "two");
    assert_eq!(place.stats("a:read", 1)["hits"], 1);
    let other = serde_json::from_value(json!("somebody else")).unwrap();
    assert!(place.store().speculation(&other).unwrap().is_empty());
    assert_eq!(place.store().speculation(&pml_model::Principal::local()).unwrap().len(), 1);
}
