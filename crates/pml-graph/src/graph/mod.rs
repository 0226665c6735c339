//! What is known of tools and capabilities together: who feeds whom, what follows what, what belongs
//! together.
//!
//! [`fields`] reads what tools take and give from their schemas; [`provides`] finds which can feed which,
//! [`feeds`] which of a plan's calls do. [`edges`] keeps this and what runs have shown as one typed graph;
//! the algorithms look at it as numbers ([`csr`]), and [`insights`] and [`closeness`] say what follows
//! for ranking, for the next step and for people who look.

pub mod adamic_adar;
mod calls;
mod clauses;
pub mod closeness;
pub mod csr;
pub mod edges;
pub mod feeds;
pub mod fields;
pub mod insights;
mod link;
pub mod literals;
pub mod louvain;
mod names;
pub mod pagerank;
pub mod paths;
mod placing;
pub mod provides;
mod reading;
pub mod spectral;

#[cfg(test)]
mod tests;

pub use edges::{Edge, EdgeType, Graph, NodeKind, Snapshot, Source};
pub use names::How;
