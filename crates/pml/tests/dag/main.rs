//! Runs of DAGs by the real binary: with real servers, with tools that fail, with people who answer, and with a gateway
//! that is killed.
//!
//! `cargo xtask test` installs the servers they need into `tests/`. `PML_DAG_KILLS` sets how often the gateway is killed
//! (60 otherwise), `PML_SEED` from which seed on.
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at what they do not expect")]
#![expect(unreachable_pub, reason = "what the helpers offer is for all modules here")]

mod asking;
#[path = "../durable/dice.rs"]
mod dice;
mod failing;
#[path = "../durable/gateway.rs"]
#[allow(dead_code, reason = "shared with the tests of durable runs, which need more of it")]
mod gateway;
#[path = "../it/harness.rs"]
#[allow(dead_code, reason = "shared with the other tests of the binary, which need more of it")]
mod harness;
mod kills;
mod layers;
#[path = "../durable/ledger.rs"]
#[allow(dead_code, reason = "shared with the tests of durable runs, which need more of it")]
mod ledger;
mod limits;
mod place;
mod replan;
mod servers;
mod terminal;
