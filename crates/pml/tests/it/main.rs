//! Tests of the real binary, with real servers and official clients.
//!
//! `cargo xtask test` installs what they need (Node packages, a Python environment) into `tests/`.

mod cli;
mod clients;
mod faults;
mod faulty;
mod harness;
mod http;
mod lifecycle;
mod raw;
