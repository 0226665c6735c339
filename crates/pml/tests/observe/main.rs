//! Watching the real binary from outside: its events, its metrics, its spans.
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at what they do not expect")]
#![expect(unreachable_pub, reason = "what the helpers offer is for all modules here")]

mod door;
mod events;
#[path = "../it/harness.rs"]
#[allow(dead_code, reason = "shared with the other tests of the binary, which need more of it")]
mod harness;
mod log;
mod metrics;
mod progress;
mod spans;
mod watch;
