//! Exploration, seen from outside: the real binary finds ways to serve an intent, tries them without changing anything,
//! and runs the one that is chosen.
//!
//! `PML_EXPLORATIONS` sets how many explorations the honeypot sees (30 otherwise).
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at what they do not expect")]
#![expect(unreachable_pub, reason = "what the helpers offer is for all modules here")]

mod chosen;
#[path = "../durable/dice.rs"]
mod dice;
mod doors;
#[path = "../durable/gateway.rs"]
#[allow(dead_code, reason = "shared with the tests of durable runs, which need more of it")]
mod gateway;
#[path = "../it/harness.rs"]
#[allow(dead_code, reason = "shared with the other tests of the binary, which need more of it")]
mod harness;
mod honeypot;
mod learned;
mod limits;
#[path = "../memory/place.rs"]
#[allow(dead_code, reason = "shared with the tests of memory, which need more of it")]
mod place;
mod real;
mod refused;

use serde_json::Value;

use place::Place;

/// The structured reply of an exploration.
#[track_caller]
pub fn explore(place: &mut Place, arguments: &Value) -> Value {
    place.gateway.call("pml_explore", arguments)
}

/// The tools of a path, in order.
pub fn tools_of(path: &Value) -> Vec<&str> {
    path["path"].as_array().unwrap().iter().map(|tool| tool.as_str().unwrap()).collect()
}
