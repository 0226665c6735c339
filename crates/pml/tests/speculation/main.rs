//! Speculation, seen from outside: the real binary, servers that share a world and write down every call, and the same
//! programs with and without it.
//!
//! `PML_SPECULATION_PROGRAMS` sets how many programs are generated (150 otherwise), `PML_SPECULATION_KILLS` how often the
//! gateway is killed (12 otherwise), `PML_SEED` from which seed on.
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at what they do not expect")]
#![expect(unreachable_pub, reason = "what the helpers offer is for all modules here")]

mod changes;
#[path = "../durable/dice.rs"]
mod dice;
mod faults;
mod following;
#[path = "../durable/gateway.rs"]
#[allow(dead_code, reason = "shared with the tests of durable runs, which need more of it")]
mod gateway;
mod generate;
mod guard;
#[path = "../it/harness.rs"]
#[allow(dead_code, reason = "shared with the other tests of the binary, which need more of it")]
mod harness;
mod kills;
mod layers;
mod nested;
mod place;
mod predicted;
mod programs;
mod sessions;
mod settings;
mod shares;
mod soundness;
mod writes;
