//! The graph of tools and capabilities: which tool feeds which, what follows what, what belongs together.
//!
//! [`fields`] reads inputs and outputs of tools from their schemas. [`provides`] finds which tools can feed which,
//! [`feeds`] which calls of a plan do. [`edges`] stores these and the observations of runs as one typed graph. The
//! algorithms use its numeric form ([`csr`]). [`insights`] and [`closeness`] derive results for ranking, for the next
//! step and for display.

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

pub use edges::{EdgeSource, EdgeType, GraphEdge, GraphNodeKind, GraphSnapshot, TypedGraph};
pub use names::MatchBasis;
