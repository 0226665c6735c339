//! The state of a walk, in parts. Each has its own methods; what belongs to several takes the others it needs.

pub(crate) mod calls;
pub(crate) mod decided;
pub(crate) mod diagnostics;
pub(crate) mod flow;
pub(crate) mod functions;
pub(crate) mod graph;
pub(crate) mod keys;
pub(crate) mod permissions;
pub(crate) mod probes;
pub(crate) mod recording;
