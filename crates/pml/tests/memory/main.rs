//! What runs leave behind, through the real binary: traces, what is learned from them, capabilities and their use, results
//! that are known, and that no secret and no count is lost or found where it should not be.
//!
//! `PML_MEMORY_KILLS` sets how often the gateway is killed (300 otherwise), `PML_SEED` from which seed on.
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at what they do not expect")]
#![expect(unreachable_pub, reason = "what the helpers offer is for all modules here")]

mod cached;
mod canaries;
mod capabilities;
mod exposed;
mod fixed;
#[path = "../durable/gateway.rs"]
#[allow(dead_code, reason = "shared with the tests of durable runs, which need more of it")]
mod gateway;
#[path = "../it/harness.rs"]
#[allow(dead_code, reason = "shared with the other tests of the binary, which need more of it")]
mod harness;
mod headline;
mod keeping;
mod kills;
mod learned;
mod lifted;
mod mocks;
mod nested;
#[path = "../durable/on_postgres.rs"]
mod on_postgres;
mod operations;
mod opposed;
mod place;
mod principals;
mod published;
mod recalled;
mod regression;
mod repaired;
mod reuse;
#[path = "../../../pml-store/tests/postgres/server.rs"]
#[allow(dead_code, reason = "shared with the tests of the store, which need more of it")]
mod server;
mod shared;
mod tools;
mod unfinished;
mod versions;
mod views;

/// The tests that every test run repeats on PostgreSQL.
const ON_POSTGRES: &[&str] = &["shared::", "versions::", "published::"];
