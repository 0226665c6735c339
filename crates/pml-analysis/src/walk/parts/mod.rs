//! State of a walk, in parts. Each part has its own methods; what concerns several parts takes the others as arguments.

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
