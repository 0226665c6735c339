//! The host side: a pool of ready processes, and a worker driven through one program.

mod check;
mod pool;
mod processes;
mod worker;

pub use pool::{PoolSettings, PoolUnavailable, WorkerPool};
pub use worker::{Worker, WorkerFault};
