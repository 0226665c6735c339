//! Programs run by the real binary: what users ask for, what must work, and what must never happen.
//!
//! `cargo xtask test` installs the servers they need into `tests/`.
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at what they do not expect")]
#![expect(unreachable_pub, reason = "what the helpers offer is for all modules here")]

mod benign;
mod boundary;
mod evasions;
mod gateway;
mod grammar;
#[expect(dead_code, reason = "the other tests use the rest of it")]
#[path = "../it/harness.rs"]
mod harness;
mod running;
mod sandbox;
mod workflows;
