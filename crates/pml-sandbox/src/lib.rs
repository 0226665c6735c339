//! Runs one program in a killable, confined worker process that asks its host for every call.
//!
//! The host side is [`WorkerPool`] and [`Worker`]: a worker is taken from the pool, begins one [`SandboxProgram`],
//! reports [`WorkerEvent`]s, receives [`Delivery`]s, ends, and is discarded. The worker side is [`worker_main`], which
//! the same binary runs in the child process behind the walls of [`available_walls`]. The same program with the same
//! deliveries produces the same events; this makes a run resumable.
//!
//! The sandbox does not know what a tool is: to it, a tool is a number that the program may call with a JSON object. It
//! has no clock, no store and no retry. Wall-clock deadlines belong to the caller, who has [`Worker::kill`].

mod cpu;
mod host;
mod message;
mod walls;
mod wire;
mod worker;

pub use host::{PoolSettings, PoolUnavailable, Worker, WorkerFault, WorkerPool};
pub use message::{
    ConsoleLevel, Delivery, DeliveryPayload, ExceededLimit, GrantedTool, MOST_DEPTH, NestedProgram,
    PREVIEW_BYTES, ProbeEntry, ProbeKind, ProgramEnding, ReachedPoint, SandboxLimits, SandboxProgram,
    ThrownError, ToolCallError, ValuePreview, WorkerEvent,
};
pub use walls::{Walls, available_walls, confine};
pub use worker::worker_main;

/// Version of the engine and of the environment that programs see. A run is replayed only by the version it was
/// recorded with, so the `world` number grows with every change that a program could notice.
pub const ENGINE: &str = "quickjs-ng 0.16.2, world 1";
