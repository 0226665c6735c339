//! Reads of programs: which are made before the program asks for them, and with which arguments.

use serde_json::json;

use crate::place::{Place, served};

#[test]
fn reads_with_literals_and_parameters_are_made_while_the_program_waits_for_another() {
    let mut place = Place::start("");
    let code = "const one = await mcp.a.read({ key: 'one', until: 'go' });\n\
                const two = await mcp.a.read({ key: 'two' });\n\
                const three = await mcp.b.read({ key: args.path });\n\
                return [one.given.key, two.given.key, three.given.key];";
    let request = place.begin(code, &json!({ "path": "/file.txt" }));
    for key in ["two", "/file.txt"] {
        place.wait_for_end(key);
    }
    assert!(!place.has_ended("one"), "the program still waits for it");
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], json!(["one", "two", "/file.txt"]), "{told}");
    assert_eq!(told["speculated"]["calls"], 2, "{told}");
    place.assert_served(&told, &["two", "/file.txt"], &["one"]);
    assert_eq!(place.begun().len(), 3, "each call is made once");
}

#[test]
fn a_result_so_far_is_an_argument_of_a_read_ahead() {
    let mut place = Place::start("");
    let code = "const one = await mcp.a.read({ key: 'one', next: { names: ['n1'] } });\n\
                await mcp.a.read({ key: 'two', until: 'go' });\n\
                const three = await mcp.b.read({ key: one.given.next.names[0] });\n\
                const four = await mcp.b.read({ key: `in ${one.given.key}` });\n\
                return [three.given.key, four.given.key];";
    let request = place.begin(code, &json!({}));
    for key in ["n1", "in one"] {
        place.wait_for_end(key);
    }
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], json!(["n1", "in one"]), "{told}");
    // The second one was under way with the first: its arguments are known from the start.
    place.assert_served(&told, &["two", "n1", "in one"], &["one"]);
}

#[test]
fn what_cannot_be_resolved_is_read_only_when_it_is_asked_for() {
    let mut place = Place::start("");
    // One waits for the result of a call under way, one is computed, one has a parameter that is not given.
    let code = "const one = await mcp.a.read({ key: 'one', until: 'go', next: 'two' });\n\
                await mcp.a.read({ key: one.given.next });\n\
                await mcp.a.read({ key: 'x' + args.three });\n\
                await mcp.a.read({ key: 'four', missing: args.missing });\n\
                return (await mcp.a.read({ key: 'last' })).given.key;";
    let request = place.begin(code, &json!({ "three": "three" }));
    place.wait_for_end("last");
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], "last", "{told}");
    place.assert_served(&told, &["last"], &["one", "two", "xthree", "four"]);
    assert_eq!(place.begun().len(), 5, "nothing was read in vain: {:?}", place.begun());
}

#[test]
fn what_depends_on_a_failed_call_is_not_read_ahead() {
    let mut place = Place::start("");
    let code = "let failed = { next: 'none' };\n\
                try { failed = await mcp.a.fail({ key: 'failing' }); } catch (error) { failed = { next: 'else' }; }\n\
                await mcp.a.read({ key: 'one', until: 'go' });\n\
                await mcp.a.read({ key: failed.next });\n\
                return (await mcp.a.read({ key: 'last' })).given.key;";
    let request = place.begin(code, &json!({}));
    place.wait_for_end("last");
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], "last", "{told}");
    let (ahead, others) = served(&place.trace(&told));
    assert!(
        ahead.contains(&"last".to_owned()) && others.contains(&"else".to_owned()),
        "{ahead:?} {others:?}"
    );
    assert_eq!(place.keys("a:read").iter().filter(|key| *key == "else").count(), 1);
}

#[test]
fn the_items_of_known_lists_are_read_while_the_program_is_at_the_first() {
    let mut place = Place::start("");
    let code = "const found = await mcp.a.read({ key: 'list', files: ['f1', 'f2'] });\n\
                const seen = [];\n\
                for (const file of found.given.files) { seen.push((await mcp.a.read({ key: file })).given.key); }\n\
                await mcp.a.read({ key: 'first', until: 'go' });\n\
                for (const name of args.names) { seen.push((await mcp.b.read({ key: name })).given.key); }\n\
                return seen;";
    let request = place.begin(code, &json!({ "names": ["n1", "n2", "n3"] }));
    for key in ["n1", "n2", "n3"] {
        place.wait_for_end(key);
    }
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], json!(["f1", "f2", "n1", "n2", "n3"]), "{told}");
    place.assert_served(&told, &["f2", "first", "n1", "n2", "n3"], &["list", "f1"]);
}

#[test]
fn a_read_ahead_is_used_only_for_the_same_arguments() {
    let mut place = Place::start("");
    // What the structure says of these is one thing, what the program sends another, or spelled in another way.
    let code = r#"const given = { key: 'first' };
        await mcp.a.read({ key: 'start' });
        const change = () => { given.key = 'changed'; };
        change();
        const seen = [(await mcp.a.read(given)).given.key];
        for (const value of [1.0, -0, 1e21, 0.1, 'é\u2028', true, null, { b: 1, a: 2, 1: 3 }]) {
            seen.push((await mcp.a.read({ key: value, b: 1, a: undefined })).given.key);
        }
        return seen;"#;
    let told = place.run(code, &json!({}));
    let expected = json!(["changed", 1, 0, 1e21, 0.1, "é\u{2028}", true, null, { "1": 3, "b": 1, "a": 2 }]);
    assert_eq!(told["result"].to_string(), expected.to_string(), "{told}");
}

#[test]
fn every_read_ahead_is_used_once_and_results_that_were_asked_for_are_not_kept() {
    let mut place = Place::start("");
    let code = "await mcp.a.read({ key: 'one' });\n\
                const two = await mcp.a.read({ key: 'same' });\n\
                const three = await mcp.a.read({ key: 'same' });\n\
                return [two.writes, three.writes];";
    for run in 1..=2 {
        let told = place.run(code, &json!({}));
        assert_eq!(told["result"], json!([0, 0]), "{told}");
        assert_eq!(place.keys("a:read").len(), 3 * run, "as many calls as the program asks for");
    }
}

#[test]
fn runs_do_not_share_what_they_read_ahead() {
    let mut place = Place::start("");
    let code = "await mcp.b.read({ key: args.first, until: args.until });\n\
                return (await mcp.a.read({ key: 'shared' })).writes;";
    let first = place.begin(code, &json!({ "first": "f1", "until": "go1" }));
    place.wait_for_end("shared");
    // The world changes in a way that nobody tells the gateway of.
    place.change_world();
    let second = place.begin(code, &json!({ "first": "f2", "until": "go2" }));
    place.wait_for("shared", 2);
    place.allow("go2");
    assert_eq!(place.gateway.outcome(second)["result"], 1, "what it read itself");
    place.allow("go1");
    assert_eq!(place.gateway.outcome(first)["result"], 0, "what it read itself");
    assert_eq!(place.keys("a:read").len(), 2);
}

#[test]
fn a_program_that_ends_early_wastes_reads_and_nothing_else() {
    let mut place = Place::start("");
    let code = "const one = await mcp.a.read({ key: 'one', until: 'go' });\n\
                if (one.writes === 0) throw new Error('enough');\n\
                await mcp.a.write({ key: 'never' });\n\
                return mcp.a.read({ key: 'two' });";
    place.allow("go");
    let told = place.run(code, &json!({}));
    assert_eq!((&told["status"], place.writes()), (&json!("failed"), 0), "{told}");
    let code = "for (const key of ['x', 'y', 'z']) { const r = await mcp.a.read({ key }); if (key === 'x') return r.given.key; }";
    assert_eq!(place.run(code, &json!({}))["result"], "x");
}

#[test]
fn hits_misses_and_waste_are_counted_by_tool() {
    let mut place = Place::start("[speculation]\nsample = 0\n");
    let code = "await mcp.a.read({ key: 'one' });\n\
                await mcp.b.read({ key: 'two' });\n\
                try { await mcp.b.fail({ key: 'three' }); } catch {}\n\
                return (await mcp.b.read({ key: 'four' })).given.key;";
    assert_eq!(place.run(code, &json!({}))["result"], "four");
    let stats = place.stats("b:read", 2);
    assert_eq!(
        [&stats["hits"], &stats["misses"], &stats["wasted"], &stats["differing"]],
        [&json!(2), &json!(0), &json!(0), &json!(0)],
        "{stats}"
    );
    let failing = place.stats("b:fail", 1);
    assert_eq!([&failing["hits"], &failing["misses"]], [&json!(0), &json!(1)], "{failing}");
    assert!(stats["threshold"].as_f64() < failing["threshold"].as_f64(), "{stats} {failing}");
    // All of them were certain to be asked for, unless the program ended early.
    let certain = |hits: u64, misses: u64, wasted: u64| json!([{ "confidence": 0.9, "hits": hits, "misses": misses, "wasted": wasted }]);
    assert_eq!(stats["byConfidence"], certain(2, 0, 0), "{stats}");
    assert_eq!(failing["byConfidence"], certain(0, 1, 0), "{failing}");
    let told = place.home.run(&["speculation", "stats"]);
    assert!(told.stdout.contains("b:read") && told.stdout.contains("hits"), "{told:?}");
    assert!(told.stdout.contains(" (0.90)"), "{told:?}");
    // What is there of items that a loop did not come to is waste.
    let code = "for (const key of ['x', 'y', 'z']) { await mcp.a.web({ key, until: 'go' }); if (args.stop) break; } return 1;";
    let request = place.begin(code, &json!({ "stop": true }));
    place.wait_for_key("z");
    place.allow("go");
    assert_eq!(place.gateway.outcome(request)["result"], 1);
    assert_eq!(place.stats("a:web", 2)["wasted"], 2);
}

#[test]
fn what_an_early_end_did_not_stop_is_read_ahead_once_that_is_decided() {
    let mut place = Place::start("");
    let code = "const one = await mcp.a.read({ key: 'one' });\n\
                if (one.writes > 0) return 'early';\n\
                await mcp.a.read({ key: 'two', until: 'go' });\n\
                return (await mcp.a.read({ key: 'three' })).given.key;";
    let request = place.begin(code, &json!({}));
    place.wait_for_end("three");
    place.allow("go");
    let told = place.gateway.outcome(request);
    assert_eq!(told["result"], "three", "{told}");
    place.assert_served(&told, &["three"], &["one", "two"]);
}

#[test]
fn a_sample_of_hits_is_read_again_and_a_difference_counts() {
    let mut place = Place::start("[speculation]\nsample = 100\n");
    let code = "await mcp.a.read({ key: 'one', until: 'go' });\n\
                const two = await mcp.b.read({ key: 'two' });\n\
                return two.writes;";
    let request = place.begin(code, &json!({}));
    place.wait_for_end("two");
    // Nobody tells the gateway of this: the server gives another answer for no reason that can be known.
    place.change_world();
    place.allow("go");
    assert_eq!(place.gateway.outcome(request)["result"], 0);
    place.wait_for("two", 2);
    crate::harness::eventually("the difference is counted", || {
        // What came of a comparison is stored with the next run that ends.
        place.run("return 1", &json!({}));
        place.stats("b:read", 1)["differing"] == 1
    });
    let stats = place.stats("b:read", 1);
    assert_eq!([&stats["hits"], &stats["misses"]], [&json!(0), &json!(1)], "a difference is a miss: {stats}");
    let threshold = |place: &Place, tool: &str| place.stats(tool, 0)["threshold"].as_f64();
    assert_eq!(threshold(&place, "b:read"), Some(0.95), "a difference counts as much waste");
    let told = place.run(code, &json!({}));
    place.assert_served(&told, &[], &["one", "two"]);
}
