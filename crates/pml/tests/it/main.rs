//! Tests of the real binary, with real servers and official clients.
//!
//! `cargo xtask test` installs what they need (Node packages, a Python environment) into `tests/`.
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at what they do not expect")]
#![expect(unreachable_pub, reason = "what the harness offers is for all modules here")]

mod agreeing;
mod analyse;
mod approve;
mod audit;
mod changed;
mod cli;
mod clients;
mod conformance;
mod epoch;
mod execute;
mod exposure;
mod faults;
mod faulty;
mod harness;
mod http;
mod lifecycle;
mod meaning;
mod nested;
mod policy;
mod quarantine;
mod raw;
mod tidy;
mod tokens;
