//! Algorithms of memory: which tools answer a request, what served similar requests before, what comes next, and how
//! tools and capabilities relate.
//!
//! Everything here is a pure function of its arguments: no files, network, clock, threads or unseeded randomness. The
//! same catalogue and the same request always rank the same way.

pub mod call_paths;
pub mod confidence;
pub mod graph;
pub mod hyperpaths;
mod kernel;
pub mod layout;
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
pub mod weights;

pub use vectors::everyday;
