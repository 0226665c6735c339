//! The host's side: processes kept ready, and one of them driven through one program.

mod check;
mod pool;
mod processes;
mod worker;

pub use pool::{Pool, Settings, Unavailable};
pub use worker::{Fault, Worker};
