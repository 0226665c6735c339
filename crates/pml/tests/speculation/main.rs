//! Speculation, seen from outside: the real binary, servers that share a world and write down every call, and the same
//! programs with and without it.
//!
//! `PML_SPECULATION_PROGRAMS` sets how many programs are generated (150 otherwise), `PML_SPECULATION_KILLS` how often the
//! gateway is killed (12 otherwise), `PML_SEED` from which seed on.
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at what they do not expect")]
#![expect(unreachable_pub, reason = "what the helpers offer is for all modules here")]

mod changes;
mod dags;
#[path = "../durable/dice.rs"]
mod dice;
mod documents;
#[path = "../tenants/door.rs"]
#[allow(dead_code, reason = "shared with the tests of tenants, which need more of it")]
mod door;
mod faults;
mod following;
#[path = "../durable/gateway.rs"]
#[allow(dead_code, reason = "shared with the tests of durable runs, which need more of it")]
mod gateway;
mod generate;
mod git;
mod guard;
#[path = "../it/harness.rs"]
#[allow(dead_code, reason = "shared with the other tests of the binary, which need more of it")]
mod harness;
mod kills;
mod layers;
mod metrics;
mod nested;
mod parked;
mod place;
mod predicted;
mod principals;
mod programs;
mod room;
mod secrets;
mod sessions;
mod settings;
mod shares;
mod shown;
mod soundness;
mod writes;
mod yielding;
