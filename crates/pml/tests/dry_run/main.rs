//! Dry runs, seen from outside: the real binary, servers that write down every call, and the real run afterwards.
//!
//! `PML_DRY_PROGRAMS` sets how many programs are generated (60 otherwise), `PML_SEED` from which seed on.
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at what they do not expect")]
#![expect(unreachable_pub, reason = "what the helpers offer is for all modules here")]

mod branches;
mod confirm;
#[path = "../durable/dice.rs"]
mod dice;
#[path = "../speculation/documents.rs"]
#[allow(dead_code, reason = "shared with the tests of speculation, which need more of it")]
mod documents;
mod effects;
#[path = "../durable/gateway.rs"]
#[allow(dead_code, reason = "shared with the tests of durable runs, which need more of it")]
mod gateway;
#[path = "../speculation/generate.rs"]
#[allow(dead_code, reason = "shared with the tests of speculation, which need more of it")]
mod generate;
#[path = "../it/harness.rs"]
#[allow(dead_code, reason = "shared with the other tests of the binary, which need more of it")]
mod harness;
mod honeypot;
#[path = "../speculation/place.rs"]
#[allow(dead_code, reason = "shared with the tests of speculation, which need more of it")]
mod place;
mod prices;
mod principals;
mod report;
mod reuse;
mod taint;
mod terminal;

use serde_json::{Value, json};

use place::Place;

/// Runs a program dry and gives the reply.
#[track_caller]
pub fn dry(place: &mut Place, code: &str, arguments: &Value, options: &Value) -> Value {
    let implementation = json!({ "type": "code", "code": code });
    let asked = json!({
        "intent": "a test", "implementation": implementation, "context": arguments, "options": options,
    });
    place.gateway.call("pml_execute", &asked)
}

/// The report of a dry run.
#[track_caller]
pub fn report(place: &mut Place, code: &str, arguments: &Value, how: &Value) -> Value {
    let told = dry(place, code, arguments, &json!({ "dryRun": how }));
    assert_eq!(told["status"], "dry_run", "{told}\n{code}");
    told["report"].clone()
}

/// The effects of a report, in words.
pub fn effects_of(report: &Value) -> Vec<String> {
    let effects = report["effects"].as_array().unwrap();
    effects.iter().map(|effect| effect["text"].as_str().unwrap().to_owned()).collect()
}
