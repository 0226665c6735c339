//! The mathematics of memory: which tools answer a request, what served such requests before, what comes
//! next, and how everything hangs together.
//!
//! Everything here is a pure function of its arguments: no files, no network, no clock, no threads
//! and no unseeded randomness, so the same catalogue and the same request always rank the same way.

pub mod confidence;
pub mod french;
pub mod graph;
mod kernel;
pub mod lexical;
mod linear;
mod measure;
pub mod next;
mod pairs;
pub mod past;
pub mod procedure;
pub mod rank;
pub mod request;
pub mod tokens;
pub mod vectors;

pub use vectors::everyday;
