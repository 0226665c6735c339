//! The mathematics of memory: which tools answer a request.
//!
//! Everything here is a pure function of its arguments: no files, no network, no clock, no threads
//! and no unseeded randomness, so the same catalogue and the same request always rank the same way.

pub mod graph;
pub mod french;
mod confidence;
pub mod lexical;
pub mod next;
pub mod procedure;
pub mod past;
pub mod rank;
pub mod request;
pub mod tokens;
pub mod vectors;
