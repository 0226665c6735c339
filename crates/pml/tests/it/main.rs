//! Tests of the real binary, with real servers and official clients.
//!
//! `cargo xtask test` installs what they need (Node packages, a Python environment) into `tests/`.
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at what they do not expect")]
#![expect(unreachable_pub, reason = "what the harness offers is for all modules here")]

mod agreeing;
mod analyse;
mod approve;
mod audit;
mod backup;
mod bench;
mod changed;
mod cli;
mod clients;
mod conformance;
mod declared;
mod direct;
mod docs;
mod epoch;
mod execute;
mod exposure;
mod faults;
mod faulty;
mod fence;
mod harness;
mod http;
mod init;
mod keys;
mod large;
mod lifecycle;
mod load;
mod long_life;
mod meaning;
mod nested;
mod older;
mod packages;
mod passing;
mod policy;
mod quarantine;
mod questions;
mod raw;
mod refused;
mod remote;
mod resuming;
mod sign_in;
mod tasks;
mod tidy;
mod tokens;
