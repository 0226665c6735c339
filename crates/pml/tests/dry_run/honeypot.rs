//! Generated programs against servers that write down every call: a dry run sends nothing that could have an effect.

use std::ops::Range;

use serde_json::json;

use crate::dice::{Dice, number};
use crate::dry;
use crate::generate::{self, Work};
use crate::place::Place;
use crate::report::without_times;

/// The tools that may be called, because they only read by the operator's word.
const HARMLESS: [&str; 3] = ["read", "web", "fail"];

/// The programs that one gateway runs.
const AT_ONCE: u64 = 250;

#[test]
fn generated_programs_and_documents_cause_no_effect_in_a_dry_run() {
    let (programs, first) = (number("PML_DRY_PROGRAMS", 60), number("PML_SEED", 1));
    let after = first + programs;
    let (mut calls, mut ended) = (0, 0);
    let mut next = first;
    while next < after {
        // The log of calls is read after each run, so it must not grow over thousands of them.
        let end = after.min(next + AT_ONCE);
        let (more_calls, more_ended) = run_dry(next..end);
        calls += more_calls;
        ended += more_ended;
        next = end;
    }
    println!("{programs} programs, {calls} calls in dry runs, {ended} returned, 0 writes");
    assert!(
        calls as u64 > programs && ended > programs / 2,
        "{calls} calls, {ended} returned: the programs do something"
    );
}

/// The calls and the successes of the dry runs of the programs with these seeds, in both modes.
fn run_dry(seeds: Range<u64>) -> (usize, u64) {
    let mut place = Place::start("[runs]\nworkers = 2\n");
    for (name, code) in generate::CAPABILITIES {
        place.learn(name, code, &json!({ "key": "learned" }));
    }
    let written = place.writes();
    let (mut calls, mut ended) = (0, 0);
    for seed in seeds {
        for mode in ["mocked", "hybrid"] {
            let before = place.begun().len();
            let work = generate::work(&mut Dice(seed));
            // One in four is run again and again, until its branches were taken.
            let explore = seed % 4 == 0;
            let options =
                json!({ "dryRun": { "mode": mode, "seed": seed, "explore": explore, "maxBranches": 8 } });
            let told = match &work {
                Work::Program { code, arguments } => dry(&mut place, code, arguments, &options),
                Work::Document { document, arguments } => {
                    let implementation =
                        json!({ "type": "dag", "dagStructure": { "tasks": document.tasks } });
                    let asked = json!({
                        "intent": "a test", "implementation": implementation, "context": arguments, "options": options,
                    });
                    place.gateway.call("pml_execute", &asked)
                }
            };
            assert_eq!(told["status"], "dry_run", "{told}\n{}", work.shown());
            let sent = place.begun().split_off(before);
            let harmful: Vec<_> = sent
                .iter()
                .filter(|call| !HARMLESS.iter().any(|tool| call.tool.ends_with(&format!(":{tool}"))))
                .collect();
            assert!(harmful.is_empty(), "{harmful:?} were called for\n{}", work.shown());
            assert!(mode == "hybrid" || sent.is_empty(), "{sent:?} were called for\n{}", work.shown());
            calls += told["report"]["capturedCalls"].as_array().unwrap().len();
            ended += u64::from(told["report"]["status"] == "success");
        }
    }
    assert_eq!(place.writes(), written, "nothing was written");
    (calls, ended)
}

#[test]
fn the_same_seed_gives_the_same_report_for_generated_programs() {
    let (programs, first) = (number("PML_DRY_PROGRAMS", 60) / 4, number("PML_SEED", 1));
    for seeds in (first..first + programs).collect::<Vec<u64>>().chunks(AT_ONCE as usize) {
        let mut place = Place::start("");
        // Nothing is run for real: no recorded result is judged between two reports.
        for (name, code) in generate::CAPABILITIES {
            let file = place.home.path("capability.ts");
            std::fs::write(&file, code).unwrap();
            let file = file.display().to_string();
            let made = place.home.run(&["capabilities", "create", name, "--name", name, "--code", &file]);
            assert_eq!(made.code, 0, "{made:?}");
        }
        for &seed in seeds {
            let Work::Program { code, arguments } = generate::work(&mut Dice(seed)) else { continue };
            let how = json!({ "seed": seed, "explore": seed % 2 == 0, "maxBranches": 8 });
            let mut report = || without_times(crate::report(&mut place, &code, &arguments, &how));
            assert_eq!(report(), report(), "{code}");
        }
    }
}

#[test]
fn what_a_tool_returned_reaches_no_network() {
    let mut place = Place::start("");
    let code = "const secret = await mcp.a.read({ key: 's' });\n\
                const sent = await mcp.b.web({ key: secret.given.key });\n\
                const said = await mcp.b.web({ key: 'literal' });\n\
                return [sent, said.given.key];";
    let report = crate::report(&mut place, code, &json!({}), &json!(true));
    let origins: Vec<&str> = report["capturedCalls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["origin"].as_str().unwrap())
        .collect();
    assert_eq!(origins, ["real", "placeholder", "real"], "{report}");
    assert_eq!(place.keys("b:web"), [json!("literal")]);
}

#[test]
fn arguments_that_exploration_makes_up_reach_no_network() {
    let mut place = Place::start("");
    let code = "const said = await mcp.b.web({ key: args.key });\n\
                if (args.key === 'invented') await mcp.a.write({});\n\
                if (args.more) await mcp.b.write({});\n\
                return said;";
    let how = json!({ "mode": "hybrid", "explore": true, "maxBranches": 30 });
    let report = crate::report(&mut place, code, &json!({ "key": "mine" }), &how);
    assert_eq!(report["branches"]["uncovered"], json!([]), "{report:#}");
    assert_eq!(place.keys("b:web"), [json!("mine")], "only with what was given");
}

#[test]
fn a_tool_that_asks_is_made_up_without_asking_and_a_denied_one_is_refused() {
    let mut place = Place::with_rules(
        "",
        "[permissions]\n\"*\" = { approval_mode = \"auto\" }\n\"a:look\" = { approval_mode = \"hil\", read_only = true }\n\"a:delete_file\" = { deny = true }\n",
    );
    let report =
        crate::report(&mut place, "return await mcp.a.look({ key: 'k' });", &json!({}), &json!(true));
    assert_eq!(report["capturedCalls"][0]["origin"], "placeholder", "{report}");
    let denied =
        dry(&mut place, "return await mcp.a.delete_file({});", &json!({}), &json!({ "dryRun": true }));
    assert_eq!(denied["status"], "failed", "{denied}");
    assert_eq!(denied["error"]["code"], "DENIED", "{denied}");
    assert!(place.begun().is_empty(), "{:?}", place.begun());
}
