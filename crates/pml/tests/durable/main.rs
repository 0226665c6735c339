//! What durable runs promise, seen from outside: the real binary with its database file, a server in a process of its
//! own that keeps a ledger of what really happened, and a clock.
//!
//! `PML_KILLS` sets how often the gateway is killed (300 otherwise), `PML_SEED` from which seed on, `PML_KILLS_ASKING` how
//! often while questions are open (200 otherwise).
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at what they do not expect")]
#![expect(unreachable_pub, reason = "what the helpers offer is for all modules here")]

mod approve;
mod crowd;
mod dice;
mod ending;
mod fight;
mod gateway;
#[path = "../it/harness.rs"]
#[allow(dead_code, reason = "shared with the other tests of the binary, which need more of it")]
mod harness;
mod journal;
mod kills;
mod ledger;
mod nested;
mod on_postgres;
mod postgres;
mod programs;
mod replay;
mod replicas;
mod requests;
mod resume;
#[path = "../../../pml-store/tests/postgres/server.rs"]
#[allow(dead_code, reason = "shared with the tests of the store, which need more of it")]
mod server;
mod sleep;
mod storage;
mod team;
mod time;

/// The tests that every test run repeats on PostgreSQL.
const ON_POSTGRES: &[&str] = &["nested::", "replay::"];
