//! People and keys at one gateway: what each role may do, that nobody sees what belongs to others, and budgets.
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at what they do not expect")]
#![expect(unreachable_pub, reason = "what the helpers offer is for all modules here")]

mod budgets;
mod door;
#[path = "../it/harness.rs"]
#[allow(dead_code, reason = "shared with the other tests of the binary, which need more of it")]
mod harness;
mod isolation;
mod people;
mod random;
mod rights;
mod roles;
