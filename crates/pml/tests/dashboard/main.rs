//! The dashboard of the real binary: on the wire, and in a real browser.
//!
//! `cargo xtask test` installs the browser and what drives it.
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at what they do not expect")]
#![expect(unreachable_pub, reason = "what the helpers offer is for all modules here")]

mod api;
mod browser;
#[expect(dead_code, reason = "the other tests use the rest of it")]
#[path = "../it/harness.rs"]
mod harness;
mod likeness;
mod marks;
mod modules;
mod openapi;
mod pages;
mod passphrase;
mod place;
mod quarantine;
mod real;
mod views;
mod wire;
