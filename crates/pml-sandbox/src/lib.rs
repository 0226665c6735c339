//! Runs one program in a killable, confined worker process, asking its host for every call.
//!
//! The host side is [`Pool`] and [`Worker`]: a worker is taken, begins one [`Program`], tells [`Event`]s, is given
//! [`Delivery`]s, ends, and is thrown away. The worker side is [`worker_main`], which the same binary runs in the
//! child process behind the walls of [`walls`]. Given the same program and the same deliveries a worker tells the
//! same events, which is what makes a run resumable.
//!
//! It never knows what a tool is: a tool is a number that the program may call with a JSON object. It keeps no
//! clock, no store and no retry; wall-clock deadlines are the caller's, who has [`Worker::kill`].

mod cpu;
mod host;
mod message;
mod walls;
mod wire;
mod worker;

pub use host::{Fault, Pool, Settings, Unavailable, Worker};
pub use message::{
    CallError, Delivery, Ending, Entry, Event, Granted, Kind, Level, Limit, Limits, MOST_DEPTH, Nested,
    PREVIEW_BYTES, Preview, Program, Reached, Thrown, What,
};
pub use walls::{Walls, confine, walls};
pub use worker::worker_main;

/// Which engine and which world programs have. A run is replayed only by what it was recorded with, so the second
/// number grows with every change that a program could notice.
pub const ENGINE: &str = "quickjs-ng 0.16.2, world 1";
