//! Tests of the crate through its public functions.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

mod clients;
mod documents;
mod edits;
mod fixtures;
mod merging;
